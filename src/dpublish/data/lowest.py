"""The smallest number of each unit: a column in which all rows of a unit are alike."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpublish.data.column import Column
from dpublish.data.encoding import code_type
from dpublish.errors import InvalidParameter


@dataclass(frozen=True)
class Lowest:
    """How all rows of a unit get one code: the smallest number that any of them has.

    Attributes:
        source: Column that gives each row a number.
        numbers: The number of each code of `source`, public.
        column: Column in which every row of a unit then has the unit's smallest number as its
            code, instead of `source` if it has the same name.
    """

    source: Column
    numbers: tuple[int, ...]
    column: Column

    def __post_init__(self) -> None:
        if len(self.numbers) != self.source.size:
            raise InvalidParameter(f"each code of column {self.source.name!r} needs a number")
        if not all(0 <= number < self.column.size for number in self.numbers):
            raise InvalidParameter(f"every number must be a code of column {self.column.name!r}")

    @classmethod
    def of(cls, column: Column) -> "Lowest":
        """Take the smallest code of a column itself."""
        return cls(column, tuple(range(column.size)), column)

    def rank(self, raw: Any) -> NDArray[Any]:
        """Number the rows of a record batch from 1; 0 where the column leaves a row out."""
        kind = code_type(self.column.size + 1)
        ranks = np.array(self.numbers, dtype=kind) + kind.type(1)
        codes, keep = self.source.encode_source(raw.column(self.source.source_name))
        found: NDArray[Any] = ranks[codes]
        return found if keep is None else np.where(keep, found, kind.type(0))
