"""Read rows in the clear, for the owner who measures and for whoever classifies own rows.

Nothing here is private, and no method imports it.
"""

from collections.abc import Sequence

import pyarrow as pa

from dpublish.data.column_function import ColumnFunction, fill_functions, to_row_values
from dpublish.data.engines.prepared import prepare_source
from dpublish.data.engines.source import check_header, read_columns
from dpublish.data.schema import Schema
from dpublish.data.sources import find_source
from dpublish.data.steps import NO_STEPS, Steps
from dpublish.errors import UnreadableData


def read_rows(
    path: str,
    columns: Sequence[str] | None = None,
    *,
    schema: Schema | None = None,
    steps: Steps = NO_STEPS,
) -> pa.Table:
    """Read some columns (None: all) of a file, or of the files that a pattern stands for.

    Fields of CSV files stay text: the schema says how they are read.  With a schema, each record
    is taken through `steps` first, and columns that a rule of the schema fills in need not be
    there.
    """
    parts = []
    for raw in find_source(path, columns if columns is None else steps.wanted(columns)):
        source = raw
        if schema is not None and columns is not None:
            source = prepare_source(raw, schema, steps, columns)
        names = list(source.header.names if columns is None else columns)
        rules = [] if schema is None else _rules(schema, names, source.header.names)
        names = [name for name in names if name not in {rule.column for rule in rules}]
        if not names:
            raise UnreadableData(f"{path} has no columns")
        check_header(source, names)
        rows = read_columns(source, names)
        parts.append(rows if schema is None else _filled(rows, schema, rules))
    return pa.concat_tables(parts, promote_options="permissive")


def _rules(schema: Schema, wanted: Sequence[str], there: Sequence[str]) -> list[ColumnFunction]:
    """List the functions whose columns are wanted and not there."""
    return [one for one in schema.functions if one.column in wanted and one.column not in there]


def _filled(rows: pa.Table, schema: Schema, rules: Sequence[ColumnFunction]) -> pa.Table:
    """Fill in columns by rule, from values as the schema reads them."""
    made = {rule.column for rule in rules}
    needed = dict.fromkeys(name for rule in rules for name in rule.of if name not in made)
    read = pa.table(
        {
            name: to_row_values(schema[name], rows[schema[name].source_name].combine_chunks())
            for name in needed
        }
    )
    read = fill_functions(read, rules)
    for name in sorted(made):
        rows = rows.append_column(name, read[name])
    return rows
