"""Which columns a method counts by: chosen from public settings and the schema alone."""

from dpublish.data.column import Column
from dpublish.data.schema import Schema, listed_names, refuse_unit
from dpublish.data.table import Table
from dpublish.errors import InvalidParameter, require_known
from dpublish.privacy.neighbors import AddRemoveRecord

MOST_COLUMNS = 64
COUNTED_COLUMNS = (
    "Columns to count by, each value or bin apart; all numeric, integer and ordinal ones if none "
    "is named."
)
"""What the setting of the columns says in the help of several methods."""


def require_single_records(table: Table, method: str) -> None:
    """Refuse a table that hides anything but one record added or removed."""
    if not isinstance(table.neighbors, AddRemoveRecord):
        raise InvalidParameter(f"{method} hides one record added or removed, nothing else")


def counted_columns(schema: Schema, names: tuple[str, ...]) -> tuple[Column, ...]:
    """Find the named columns, in the schema's order; every column with an order unless named.

    >>> from dpublish.data.schema import column
    >>> sex = column("sex", "category", values=["F", "M"])
    >>> age = column("age", "integer", bounds=[0, 99])
    >>> [c.name for c in counted_columns(Schema((sex, age)), ())]
    ['age']
    """
    refuse_unit(schema)
    for name in names:
        require_known("column", name, schema.names)
        if names.count(name) > 1:
            raise InvalidParameter(f"column {name!r} is listed twice")
    found = tuple(
        column
        for column in schema.columns
        if (column.name in names if names else column.kind != "category")
    )
    if not found:
        raise InvalidParameter("no column has an order; name columns to count by")
    return found


def counted_names(schema: Schema, names: tuple[str, ...]) -> tuple[str, ...]:
    """Name the columns that `counted_columns` finds; every column with an order unless named."""
    ordered = (x.name for x in schema.columns if x.kind != "category" and x.name != schema.unit)
    return listed_names(names, schema) if names else tuple(ordered)


def require_ordered(columns: tuple[Column, ...]) -> None:
    """Refuse categories: boxes would cut the arbitrary order in which their values are listed.

    Two values have an order, whichever comes first.
    """
    for column in columns:
        if column.kind == "category" and column.axis().ordinary_leaves > 2:
            raise InvalidParameter(
                f"column {column.name!r} has no order, so boxes make no sense along it; leave it "
                "out, or use histogram or dpcopula-hybrid"
            )


def require_few(columns: tuple[Column, ...]) -> None:
    """Refuse more columns than an array of cells can have."""
    if len(columns) > MOST_COLUMNS:
        raise InvalidParameter(
            f"{len(columns)} columns are too many to be counted together (at most {MOST_COLUMNS})"
        )


def require_names(columns: object) -> None:
    """Refuse a setting that is not a list of names."""
    if not isinstance(columns, tuple) or not all(isinstance(name, str) for name in columns):
        raise InvalidParameter("columns must be a list of names")
