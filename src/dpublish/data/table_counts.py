"""Count what becomes of a table's values under its schema.  For the owner alone: exact counts.

Nothing here is private: the counts are computed from rows and get no noise.  Values are read by
the same code as in a release, batch by batch and in one pass; no value is kept but the units,
of which each is held once.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from dpublish.data.column import CategoryColumn, Column, NumberColumn
from dpublish.data.encoding import MISSING, UNKNOWN, is_text, plain_array
from dpublish.data.engines.units import to_units
from dpublish.data.schema import Schema
from dpublish.types import IntArray

BOUNDS_TRIED = (1, 2, 3, 5, 10, 20, 50, 100, 200, 500, 1000)
_MERGE_ROWS = 1 << 20


@dataclass(frozen=True)
class ColumnCounts:
    """What becomes of the values of one column; each is a number of rows.

    Attributes:
        column: Name of the column in the table.
        missing: Rows without a value.
        unreadable: Rows with text that is no number, or no date.
        below: Rows with a value under the lower bound, which count as it.
        above: Rows with a value over the upper bound.
        not_whole: Rows with decimals in a column of integers; they are rounded down.
        unlisted: Rows with a value that the schema does not list.
        left_out: Rows that the column's missing rule leaves out of a release that reads it.
    """

    column: str
    missing: int = 0
    unreadable: int = 0
    below: int = 0
    above: int = 0
    not_whole: int = 0
    unlisted: int = 0
    left_out: int = 0


@dataclass(frozen=True)
class UnitCounts:
    """How many rows the units have.

    Attributes:
        column: The unit's column.
        units: How many units there are.
        without: Rows without a unit; they are left out of every release.
        median: Rows of a unit, in the median.
        percentile_95: Rows that 95 % of the units have at most.
        most: Rows of the unit that has most.
        kept: For some bounds m, how many rows are kept if each unit keeps at most m.
    """

    column: str
    units: int
    without: int
    median: int
    percentile_95: int
    most: int
    kept: tuple[tuple[int, int], ...]


class TableCounts:
    """Counts while rows go by."""

    def __init__(self, schema: Schema) -> None:
        self._schema = schema
        self._own = [each for each in schema.columns if each.name == each.source_name]
        self._counts: dict[str, Counter[str]] = {each.name: Counter() for each in self._own}
        self._units: list[Any] = []
        self._held = 0
        self._without = 0
        self.rows = 0
        self.left_out = 0

    def add(self, batch: Any, names: Sequence[str], label: str) -> None:
        """Count the rows of an Arrow batch; only the columns `names` are looked at."""
        absent = np.zeros(batch.num_rows, dtype=bool)
        for column in self._own:
            if column.name in names:
                absent |= self._add_column(column, batch.column(column.name))
        if self._schema.unit in names:
            absent |= self._add_units(to_units(batch.column(self._schema.unit), label))
        self.rows += batch.num_rows
        self.left_out += int(absent.sum())

    def columns(self) -> tuple[ColumnCounts, ...]:
        """Return what was counted of each column."""
        return tuple(ColumnCounts(name, **found) for name, found in self._counts.items())

    def units(self) -> UnitCounts | None:
        """Return how many rows the units have; None if rows have no units."""
        if self._schema.unit is None:
            return None
        self._merge()
        found = self._units[0]["rows"].to_numpy() if self._units else np.zeros(0, dtype=np.int64)
        return count_units(self._schema.unit, np.sort(found), self._without)

    def _add_column(self, column: Column, array: Any) -> NDArray[np.bool_]:
        """Count a column; mark the rows that its missing rule leaves out."""
        found, absent = count_values(column, array)
        if column.missing == "category":
            absent[:] = False
        self._counts[column.name].update(found | {"left_out": int(absent.sum())})
        return absent

    def _add_units(self, units: Any) -> NDArray[np.bool_]:
        blank = np.asarray(pc.is_null(units).to_numpy(zero_copy_only=False))
        self._without += int(blank.sum())
        seen = pc.value_counts(units.drop_null())
        names = seen.field("values").cast(pa.large_string())
        self._units.append(pa.table({"unit": names, "rows": seen.field("counts")}))
        self._held += len(names)
        if self._held > max(_MERGE_ROWS, 2 * self._units[0].num_rows):
            self._merge()
        return blank

    def _merge(self) -> None:
        if self._units:
            whole = pa.concat_tables(self._units).group_by("unit", use_threads=False)
            merged = whole.aggregate([("rows", "sum")]).rename_columns(["unit", "rows"])
            self._units, self._held = [merged], merged.num_rows


def count_values(column: Column, array: Any) -> tuple[dict[str, int], NDArray[np.bool_]]:
    """Count what becomes of some values, and mark those that are missing to the schema."""
    if isinstance(column, NumberColumn):
        return _count_numbers(column, array)
    return _count_categories(column, array)


def count_units(column: str, rows: IntArray, without: int) -> UnitCounts:
    """Describe the rows of units, which are sorted.

    >>> count_units("patient", np.array([1, 1, 2, 6]), 0).kept
    ((1, 4), (2, 6), (3, 7), (5, 9), (10, 10))
    """
    most = int(rows[-1]) if rows.size else 0
    tried = [m for i, m in enumerate(BOUNDS_TRIED) if i == 0 or BOUNDS_TRIED[i - 1] < most]
    return UnitCounts(
        column=column,
        units=int(rows.size),
        without=without,
        median=_at(rows, 0.5),
        percentile_95=_at(rows, 0.95),
        most=most,
        kept=tuple((m, int(np.minimum(rows, m).sum())) for m in tried),
    )


def _at(rows: IntArray, part: float) -> int:
    """Return the least number that a part of the units do not exceed."""
    return int(rows[max(int(np.ceil(part * rows.size)) - 1, 0)]) if rows.size else 0


def _count_numbers(column: NumberColumn, array: Any) -> tuple[dict[str, int], NDArray[np.bool_]]:
    numbers = column.read(array)
    absent = np.isnan(numbers)
    blank = _blank(array) & absent
    low, high = column.bounds
    with np.errstate(invalid="ignore"):
        uneven = (numbers != np.floor(numbers)) & ~absent & (column.kind == "integer")
        masks = {
            "missing": blank,
            "unreadable": absent & ~blank,
            "below": numbers < low,
            "above": numbers > high,
            "not_whole": uneven,
        }
    return {name: int(mask.sum()) for name, mask in masks.items()}, absent


def _count_categories(
    column: CategoryColumn, array: Any
) -> tuple[dict[str, int], NDArray[np.bool_]]:
    positions = column.find(array)
    missing, unlisted = positions == MISSING, positions == UNKNOWN
    absent = missing if column.other is not None else missing | unlisted
    return {"missing": int(missing.sum()), "unlisted": int(unlisted.sum())}, absent.copy()


def _blank(array: Any) -> NDArray[np.bool_]:
    """Mark values that are null or blank; of numbers, all that may be missing."""
    array = plain_array(array)
    if pa.types.is_dictionary(array.type):
        array = array.dictionary_decode()
    if not is_text(array.type):
        return np.ones(len(array), dtype=bool)
    empty = pc.equal(pc.binary_length(pc.ascii_trim_whitespace(array)), 0)
    return np.asarray(empty.fill_null(True).to_numpy(zero_copy_only=False), dtype=bool)
