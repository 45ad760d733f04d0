"""Published bounds of a column, and what clipping to them means."""

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from math import isfinite
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa

from dpublish.core.axis_rows import whole_array
from dpublish.core.codecs import FIGURES, FLOAT, RATE
from dpublish.core.released import Release, in_metadata
from dpublish.data.column import NumberColumn
from dpublish.data.date_column import DateColumn
from dpublish.data.periods import write_bounds
from dpublish.data.schema import Schema
from dpublish.errors import InvalidParameter
from dpublish.mechanisms.tail_bounds import SIDES
from dpublish.privacy.receipt import Receipt


@dataclass(frozen=True, eq=False, kw_only=True)
class BoundsRelease(Release):
    """Bounds of one column.

    Attributes:
        column: Whose bounds they are.
        lower: Bound below; values under it are to be counted as it.
        upper: Bound above.
        measured: Which of the two were measured: `both`, `upper` or `lower`; the other one was
            declared.
        tail: Part of the records that was aimed at beyond each measured bound.
        least: How many records were aimed at if that part was fewer.
    """

    kind: ClassVar[str] = "bounds"
    report: ClassVar[str] = "dpublish.methods.bounds.report:section"

    receipt: Receipt
    schema: Schema
    column: str = in_metadata()
    lower: float = in_metadata(FLOAT)
    upper: float = in_metadata(FLOAT)
    measured: str = in_metadata()
    tail: Fraction = in_metadata(RATE)
    least: int = in_metadata()
    expected: Mapping[str, float] = in_metadata(FIGURES, default=dict)

    def __post_init__(self) -> None:
        """Refuse what no method would publish: a release may come from anywhere."""
        declared = self.schema[self.column]
        if not isinstance(declared, NumberColumn) or self.measured not in SIDES:
            raise InvalidParameter("bounds are those of a column of numbers")
        low, high = declared.bounds
        if not low <= self.lower <= self.upper <= high:
            raise InvalidParameter("bounds must lie in the declared ones, the lower first")
        if type(self.least) is not int or self.least < 1 or not 0 < self.tail <= Fraction(1, 2):
            raise InvalidParameter("bounds must state what was aimed at")
        if not all(isinstance(v, float) and isfinite(v) for v in dict(self.expected).values()):
            raise InvalidParameter("expected errors must be finite numbers")

    @property
    def bounds(self) -> tuple[Any, Any]:
        """Lower and upper bound, as a schema takes them: numbers, or dates as text."""
        declared = self.schema[self.column]
        if isinstance(declared, DateColumn):
            low, high = write_bounds(int(self.lower), int(self.upper), declared.kind)
            return low, high
        return plain_number(self.lower), plain_number(self.upper)

    def tables(self) -> dict[str, pa.Table]:
        """Return the column and its bounds."""
        table = pa.table(
            {
                "column": pa.array([self.column], pa.string()),
                "lower": pa.array([self.lower], pa.float64()),
                "upper": pa.array([self.upper], pa.float64()),
            }
        )
        declared = self.schema[self.column]
        if isinstance(declared, DateColumn):
            ends = np.array([self.lower, self.upper]).astype(np.int64)
            dates = whole_array(declared.kind, ends)
            for number, name in enumerate(("lower_date", "upper_date")):
                table = table.append_column(name, dates.slice(number, 1))
        return {"bounds": table}

    def expected_error(self) -> dict[str, float]:
        """Return the error predicted from public facts."""
        return dict(self.expected)

    def summary(self) -> dict[str, str]:
        """Say what the bounds are, and what clipping to them means."""
        low, high = map(_words, self.bounds)
        lines = {f"bounds of {self.column}": f"{low} to {high}"}
        part = f"about {_percent(self.tail)} of the values (or {self.least:,}, if that is more)"
        if self.measured != "upper":
            lines["below"] = f"{part} lie under {low}; they count as {low}"
        if self.measured != "lower":
            lines["above"] = f"{part} lie over {high}; they count as {high}"
        lines["error"] = (
            "with probability 95 % a measured bound is at most a step beyond all values, and at "
            f"most {3 * self.least:,} values lie beyond it (or {_percent(self.tail)} and "
            f"{2 * self.least:,}, if that is more); fewer than {2 * self.least:,} are too few"
        )
        return lines


def plain_number(number: float) -> float:
    """Turn a float without decimals into an integer.

    >>> plain_number(1500.0), plain_number(0.15)
    (1500, 0.15)
    """
    return int(number) if float(number).is_integer() else float(number)


def _words(bound: Any) -> str:
    return bound if isinstance(bound, str) else f"{bound:,.12g}"


def _percent(part: Fraction) -> str:
    return f"{float(100 * part):.3g} %"
