"""How many records there are at each level of a preference, of those that satisfy conditions."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from dpublish.aggregates.kernel import CodeSums
from dpublish.data.batch import Batch
from dpublish.errors import InvalidParameter, require_count

AskedCodes = tuple[tuple[str, tuple[bool, ...]], ...]
"""For some columns, which of their codes satisfy a condition."""


@dataclass(frozen=True)
class LevelCounts(CodeSums):
    """Kernel: count the records of every level that have the asked codes in all columns.

    Attributes:
        column: The preference column.
        level_of: For each code of it the position of the level, or -1 for no level.
        levels: Number of levels.
        asked: For each further column which of its codes are counted.

    >>> kernel = LevelCounts("pref", (-1, 0, 1), 2, (("sex", (True, False)),))
    >>> answer = kernel.zero()
    >>> pref, sex = np.array([0, 1, 2, 2], dtype=np.uint8), np.array([0, 0, 0, 1], dtype=np.uint8)
    >>> kernel.add(Batch(4, codes={"pref": pref, "sex": sex}), answer)
    >>> answer
    array([1, 1])
    """

    column: str
    level_of: tuple[int, ...]
    levels: int
    asked: AskedCodes = ()

    def __post_init__(self) -> None:
        require_count(levels=self.levels)
        if not all(-1 <= level < self.levels for level in self.level_of):
            raise InvalidParameter("a code of the preference column stands for a level or none")

    @property
    def codes(self) -> tuple[str, ...]:
        """Columns that it reads as codes."""
        return tuple(dict.fromkeys((self.column, *(name for name, _ in self.asked))))

    @cached_property
    def _positions(self) -> NDArray[np.int64]:
        # Records without a level are counted at one more position, which is then left out.
        levels = np.array(self.level_of, dtype=np.int64)
        return np.where(levels < 0, self.levels, levels)

    @cached_property
    def _masks(self) -> Mapping[str, NDArray[np.bool_]]:
        masks: dict[str, NDArray[np.bool_]] = {}
        for name, asked in self.asked:
            mask = np.array(asked, dtype=np.bool_)
            masks[name] = masks[name] & mask if name in masks else mask
        return masks

    def zero(self) -> NDArray[np.int64]:
        """Make the answer for no records."""
        return np.zeros(self.levels, dtype=np.int64)

    def add(self, batch: Batch, out: NDArray[np.int64]) -> None:
        """Add the records of `batch` to `out`."""
        positions = self._positions[batch.codes(self.column)]
        for name, mask in self._masks.items():
            positions = np.where(mask[batch.codes(name)], positions, self.levels)
        out += np.bincount(positions, minlength=self.levels + 1)[:-1]
