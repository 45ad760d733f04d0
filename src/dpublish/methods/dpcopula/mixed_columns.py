"""Which columns of a mixed table count as numbers, and which as categories: all of it public."""

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

from dpublish.data.column import Column
from dpublish.data.schema import Schema
from dpublish.errors import InvalidParameter


class MixedColumns(NamedTuple):
    """The columns of a mixed table by their role."""

    numbers: tuple[Column, ...]
    categories: tuple[Column, ...]
    long: tuple[Column, ...]
    """Categories of many values: they get marginals of their own, as numbers do."""

    @classmethod
    def of(cls, columns: Sequence[Column], least_values: int) -> "MixedColumns":
        """Tell numbers, which have an order and many values, from the rest; both must occur."""
        numbers = tuple(
            column
            for column in columns
            if column.kind != "category" and column.axis().ordinary_leaves >= least_values
        )
        categories = tuple(column for column in columns if column not in numbers)
        if not numbers:
            raise InvalidParameter(
                f"no column has an order and {least_values} values or more; use privbayes"
            )
        if not categories:
            raise InvalidParameter("all columns are numbers; use dpcopula")
        long = tuple(c for c in categories if c.axis().ordinary_leaves >= least_values)
        return cls(numbers, categories, long)

    @property
    def counted(self) -> tuple[Column, ...]:
        """The columns that get a marginal."""
        return (*self.numbers, *self.long)

    @property
    def all(self) -> tuple[Column, ...]:
        """All columns, numbers first."""
        return (*self.numbers, *self.categories)

    @property
    def names(self) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Names of the numbers, and of the categories."""
        return tuple(c.name for c in self.numbers), tuple(c.name for c in self.categories)


def restrict(schema: Schema, columns: Sequence[Column]) -> Schema:
    """Leave out all other columns; the order stays the schema's."""
    return replace(schema, columns=tuple(column for column in schema.columns if column in columns))
