"""Read rows in the clear, for the owner who measures and for whoever classifies own rows.

Nothing here is private, and no method imports it.
"""

from collections.abc import Sequence

import pyarrow as pa

from dpublish.data.engines.prepared import prepare_source
from dpublish.data.engines.source import check_header, read_quietly, scan
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
    is taken through `steps` first.
    """
    parts = []
    for raw in find_source(path, columns if columns is None else steps.wanted(columns)):
        source = raw
        if schema is not None and columns is not None:
            source = prepare_source(raw, schema, steps, columns)
        names = list(source.header.names if columns is None else columns)
        if not names:
            raise UnreadableData(f"{path} has no columns")
        check_header(source, names)
        batches = list(read_quietly(scan(source, names), source.label))
        if batches:
            parts.append(pa.Table.from_batches(batches))
        else:
            header = pa.schema([source.header.field(name) for name in names])
            parts.append(header.empty_table())
    return pa.concat_tables(parts, promote_options="permissive")
