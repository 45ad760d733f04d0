"""Bounds: lower and upper bound of a column, chosen among public round numbers."""

from dataclasses import dataclass, replace
from fractions import Fraction
from math import ceil
from typing import ClassVar

from dpublish.core.method import ExpectedError, Method, Run, Standing, setting
from dpublish.data.column import NumberColumn
from dpublish.data.schema import Schema
from dpublish.errors import InvalidParameter, require_known
from dpublish.mechanisms.tail_bounds import (
    MOST_PARTS,
    SIDES,
    Sides,
    TailBounds,
    bounds_rate,
    least_tail,
)
from dpublish.methods.bounds.grid import grid_points
from dpublish.methods.bounds.kernels import PointCounts
from dpublish.methods.bounds.released import BoundsRelease

HALF = Fraction(1, 2)


@dataclass(frozen=True, kw_only=True)
class Bounds(Method[BoundsRelease]):
    """Publish bounds that most values of a column lie within.

    Chooses round numbers (1, 1.5, 2, 3, 5 and 7 times every power of ten) within the bounds that
    the schema declares.  Choose it when no one knows good bounds of a column: the declared ones
    may be absurdly wide.  `dpublish schema bounds` and `dpublish.measure_bounds` run it and enter
    the result in the schema.  Known as: approximate bounds, private quantiles on a log scale.

    Guarantee:
        Pure epsilon-differential privacy for adding or removing one record.  Proof:
        docs/proofs/tail_bounds.md.

    Parameters:
        column: Column of numbers whose bounds are wanted.
        coverage: Part of the values that should lie within the bounds, from 0.5 to less than 1.
            The rest lies beyond the measured bounds, half of it on each side.
        sides: Which bounds to measure: `"both"`, `"upper"` or `"lower"`; the other one stays as
            the schema declares it.

    Returns:
        A `BoundsRelease` with `bounds`, `lower`, `upper` and `summary()`.

    Example:
        >>> from dpublish import Bounds, Budget, datasets, seeded
        >>> people = datasets.table("census", 5_000)
        >>> method = Bounds(column="hours", coverage="0.95")
        >>> release = method.release(people, budget=Budget.seeded("0.5"), rng=seeded(7))
        >>> release.bounds
        (0, 70)

    Reference:
        A. Smith, "Privacy-preserving Statistical Estimation with Optimal Convergence Rates",
        STOC 2011, for private quantiles; the scores, and two bounds at one price, are our own.
    """

    name: ClassVar[str] = "bounds"
    proofs: ClassVar[tuple[str, ...]] = ("tail_bounds", "selection", "exact")
    task: ClassVar[str] = "bounds"
    publishes: ClassVar[str] = "a lower and an upper bound that most values of a column lie within"
    prefer_when: ClassVar[str] = "no one knows the bounds of a column, which every method needs"
    standing: ClassVar[Standing] = "default"

    column: str = setting("Column of numbers whose bounds are wanted.")
    coverage: Fraction = setting(
        "Part of the values that should lie within the bounds, from 0.5 to less than 1.",
        default=Fraction(99, 100),
    )
    sides: Sides = setting(
        "Which bounds to measure; the other one stays as the schema declares it.", default="both"
    )

    def __post_init__(self) -> None:
        if not isinstance(self.column, str) or not self.column:
            raise InvalidParameter("column must name one column")
        try:
            object.__setattr__(self, "coverage", Fraction(self.coverage))
        except (TypeError, ValueError, OverflowError):
            raise InvalidParameter("coverage must be an exact number, such as 0.99") from None
        require_known("choice of sides", self.sides, SIDES)
        if not HALF <= self.coverage < 1 or self.tail.denominator > MOST_PARTS:
            raise InvalidParameter(
                f"coverage ({self.coverage}) must be from 0.5 to less than 1, with few digits"
            )

    @property
    def tail(self) -> Fraction:
        """Part of the values that may lie beyond each measured bound."""
        return (1 - self.coverage) / (2 if self.sides == "both" else 1)

    def reads(self, schema: Schema) -> tuple[str, ...]:
        """Name the one column that a release reads."""
        return (self.column,)

    def _release(self, run: Run) -> BoundsRelease:
        """Publish the bounds.

        Privacy:
            `run.epsilon`-differentially private: the points are public, a record has one value
            and changes one of the counts by one, and `choose_bounds` spends the whole budget.
            What is made of the points it chose, is computed from them alone.
        """
        column = self._column(run.schema)
        points = grid_points(column)
        least = least_tail(len(points), run.epsilon, self.sides)
        budget = run.split(bounds=1)["bounds"]
        counts = run.sum(PointCounts(self.column, tuple(points.tolist())))
        chosen = run.choose_bounds(
            counts, tail=self.tail, least=least, sides=self.sides, budget=budget
        )
        run.step(1, 1, "bounds")
        low, high = _in_order(chosen, len(points))
        return BoundsRelease(
            receipt=run.receipt(),
            schema=replace(run.schema, columns=(column,)),
            column=self.column,
            lower=float(points[low]),
            upper=float(points[high]),
            measured=self.sides,
            tail=self.tail,
            least=least,
            expected=run.expected,
        )

    def expected_error(
        self, schema: Schema, n_records: int | None, epsilon: Fraction
    ) -> ExpectedError:
        """Predict how many values may lie beyond a bound: its error in rank."""
        points = len(grid_points(self._column(schema)))
        bounds_rate(epsilon, self.tail, self.sides)  # refuses an epsilon that is too small
        least = least_tail(points, epsilon, self.sides)
        aimed = max(least, ceil(self.tail * (n_records or 0)))
        figures = {
            "points_to_choose_from": float(points),
            "values_aimed_at_beyond": float(aimed),
            "values_beyond_95": float(aimed + 2 * least),
        }
        claim = (
            f"about {aimed:,} values beyond each measured bound, at most {aimed + 2 * least:,} "
            "(95 %)"
        )
        if n_records:
            figures["values_beyond_95_per_record"] = figures["values_beyond_95"] / n_records
            if n_records < 2 * least:
                claim += (
                    f"; {n_records:,} records are too few: half of them would lie beyond, so "
                    "spend more"
                )
        return ExpectedError(f"{points:,} points; {claim}", figures, target="values_beyond_95")

    def _column(self, schema: Schema) -> NumberColumn:
        found = schema[self.column]
        if not isinstance(found, NumberColumn):
            raise InvalidParameter(
                f"column {self.column!r} is of kind {found.kind}; only numbers have bounds"
            )
        return found


def _in_order(chosen: TailBounds, points: int) -> tuple[int, int]:
    """Put two points in order, and at least one step apart if there are two."""
    low = 0 if chosen.lower is None else chosen.lower
    high = points - 1 if chosen.upper is None else chosen.upper
    low, high = min(low, high), max(low, high)
    if low < high or points == 1:
        return low, high
    return (low, high + 1) if high + 1 < points else (low - 1, high)
