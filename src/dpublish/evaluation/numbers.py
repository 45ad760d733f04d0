"""Published numbers beside the true ones: statistics, bounds, counts and single answers.

NOT PRIVATE: everything here looks at true rows.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import product
from statistics import fmean
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from dpublish.core.prediction import UNKNOWN, encode_rows, find_column
from dpublish.data.axis import Axis
from dpublish.data.column import NumberColumn
from dpublish.data.query.language import parse_query
from dpublish.data.query.weights import axis_weights
from dpublish.data.schema import Schema
from dpublish.errors import InvalidParameter
from dpublish.evaluation.classification import require_columns
from dpublish.evaluation.findings import Finding
from dpublish.evaluation.score import Part, figure, scaled
from dpublish.methods.bounds.released import BoundsRelease
from dpublish.methods.personalized.released import PersonalizedAnswer
from dpublish.methods.statistics.measures import Measure, read_measure
from dpublish.methods.statistics.plan import bounds_of
from dpublish.methods.statistics.released import StatisticsRelease
from dpublish.randomness import plain_generator
from dpublish.types import BoolArray, FloatArray, IntArray

SAMPLES = 8
"""Fresh samples that the reference is averaged over."""
LEAST_GAP = 0.1
"""Of what is possible, between what scores 100 and 0."""
HEADERS = ("number", "groups", "mean error", "fresh sample", "a guess", "score", "intervals hold")


class Numbers(NamedTuple):
    """One published number of each group beside the true one; NaN where there is none.

    Attributes:
        name: What was published, such as "mean(age)".
        published: What the release says.
        true: What the rows say.
        sampled: What fresh samples of as many rows say, a row for each sample.
        guess: What one would say who knows only the schema.
        least_gap: The least distance between what scores 100 and 0.
        holds: Whether each interval holds the true number; None without intervals.
    """

    name: str
    published: FloatArray
    true: FloatArray
    sampled: FloatArray
    guess: FloatArray
    least_gap: float
    holds: BoolArray | None = None

    @property
    def defined(self) -> BoolArray:
        """Which groups have a true number."""
        return np.isfinite(self.true)

    @property
    def error(self) -> float:
        """The mean error; of what was not published, that of the guess."""
        said = np.where(np.isfinite(self.published), self.published, self.guess)
        return _mean(np.abs(said - self.true)[self.defined])

    @property
    def sample_error(self) -> float:
        """The mean error of a fresh sample; of a group that it has no row of, that of the guess."""
        said = np.where(np.isfinite(self.sampled), self.sampled, self.guess)
        return _mean(np.abs(said - self.true)[:, self.defined])

    @property
    def guess_error(self) -> float:
        """The mean error of the guess, and at least so much that the scale has room."""
        return max(
            _mean(np.abs(self.guess - self.true)[self.defined]),
            self.sample_error + self.least_gap,
        )

    @property
    def score(self) -> float:
        """From 0 to 100."""
        return scaled(self.error, self.sample_error, self.guess_error)

    @property
    def share_that_holds(self) -> float | None:
        """The part of the intervals that hold the true number."""
        return None if self.holds is None else _mean(self.holds[self.defined].astype(np.float64))


def numbers_finding(
    name: str, title: str, numbers: Sequence[Numbers], purpose: str, notes: Sequence[str] = ()
) -> Finding:
    """Report and score published numbers."""
    usable = [one for one in numbers if one.defined.any()]
    if not usable:
        raise InvalidParameter("none of the published numbers can be computed from these rows")
    return Finding(
        name=name,
        title=title,
        headers=HEADERS,
        rows=[_row(one) for one in usable],
        notes=[
            "a guess knows the schema alone: 0 for counts and sums, the middle of the bounds and "
            "so on for others; it also stands for what was not published",
            *notes,
        ],
        figures={"numbers": [_figures(one) for one in usable]},
        parts=[numbers_part(name, usable, purpose)],
    )


def numbers_part(name: str, numbers: Sequence[Numbers], purpose: str) -> Part:
    """Score published numbers: the mean over what they are of."""
    return Part(
        name=name,
        purpose=purpose,
        measure="the error as a part of that of a guess",
        measured=fmean(one.error / one.guess_error for one in numbers),
        reference=fmean(one.sample_error / one.guess_error for one in numbers),
        baseline=1.0,
        score=fmean(one.score for one in numbers),
        references="a fresh sample",
        baselines="a guess from the schema",
    )


# --- Statistics -----------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class _Records:
    """The group of each record, and its numbers; NaN where there is none."""

    groups: int
    group: IntArray
    values: Mapping[str, FloatArray]

    def sample(self, rng: np.random.Generator) -> "_Records":
        """Draw as many records, with replacement."""
        size = len(self.group)
        some = rng.integers(0, size, size) if size else np.empty(0, dtype=np.int64)
        return _Records(
            self.groups, self.group[some], {name: x[some] for name, x in self.values.items()}
        )

    def compute(self, measure: Measure) -> FloatArray:
        """Compute a measure of every group; NaN where it is not defined."""
        if measure.column is None:
            return np.bincount(self.group, minlength=self.groups).astype(np.float64)
        values = self.values[measure.column]
        known = np.isfinite(values)
        group, values = self.group[known], values[known]
        count = np.bincount(group, minlength=self.groups).astype(np.float64)
        if measure.function == "count":
            return count
        if measure.function == "quantile":
            return _quantiles(group, values, count, float(measure.part or 0))
        total = self._total(group, values)
        if measure.function == "sum":
            return total
        mean = _divided(total, count)
        if measure.function == "mean":
            return mean
        variance = _divided(self._total(group, (values - mean[group]) ** 2), count)
        return variance if measure.function == "variance" else np.sqrt(variance)

    def _total(self, group: IntArray, weights: FloatArray) -> FloatArray:
        found = np.bincount(group, weights=weights, minlength=self.groups)
        return np.asarray(found, dtype=np.float64)


def statistics_finding(release: StatisticsRelease, against: pa.Table, seed: int) -> Finding:
    """Report how far published statistics are from the true ones."""
    require_columns(against, release.schema)
    measures = [read_measure(one) for one in release.measures]
    records = _records(release, against, measures)
    rng = plain_generator(seed)
    samples = [records.sample(rng) for _ in range(SAMPLES)]
    numbers = [_statistic(release, one, records, samples) for one in measures]
    return numbers_finding(
        "statistics",
        f"Statistics of {release.plan.groups:,} groups beside those of {len(records.group):,} "
        "true rows",
        numbers,
        "the published statistics",
        [
            "counts and sums are compared as they are: give the rows that were published",
            f"intervals should hold in {float(release.confidence):.0%} of the cases",
        ],
    )


def _records(
    release: StatisticsRelease, against: pa.Table, measures: Sequence[Measure]
) -> _Records:
    names = [axis.column for axis in release.axes]
    group, known = locate(release.axes, encode_rows(against, release.schema, names), against)
    values = {
        name: column_values(release.schema, name, against)[known]
        for name in dict.fromkeys(one.column for one in measures if one.column is not None)
    }
    return _Records(release.plan.groups, group[known], values)


def _statistic(
    release: StatisticsRelease, measure: Measure, records: _Records, samples: Sequence[_Records]
) -> Numbers:
    found, true = release.estimates(str(measure)), records.compute(measure)
    published = np.where(found.known, found.values, np.nan)
    if release.suppress:
        shown = {(one.group, one.measure) for one in release.statistics()}
        groups = product(*(axis.labels for axis in release.axes))
        kept = np.array([(group, str(measure)) in shown for group in groups])
        published = np.where(kept, published, np.nan)
    guess, possible = _guess(release.schema, measure)
    return Numbers(
        str(measure),
        published,
        true,
        np.stack([one.compute(measure) for one in samples]),
        np.full(true.size, guess),
        possible * (1.0 if measure.is_additive else LEAST_GAP),
        (found.lows <= true + _slack(true)) & (true - _slack(true) <= found.highs),
    )


def _slack(true: FloatArray) -> FloatArray:
    """Allow for rounding of what is computed in another order."""
    return np.asarray(1e-9 * np.maximum(np.abs(true), 1.0))


def _guess(schema: Schema, measure: Measure) -> tuple[float, float]:
    """Return what the schema alone suggests, and how far numbers may lie apart."""
    if measure.function == "count":
        return 0.0, 1.0
    bounds = bounds_of(schema, measure.column)
    if measure.function == "sum":
        return 0.0, bounds.largest
    uniform = {"variance": bounds.width**2 / 12, "std": bounds.width / np.sqrt(12)}
    possible = {"variance": bounds.width**2 / 4, "std": bounds.width / 2}
    middle = bounds.low + bounds.width * float(0.5 if measure.part is None else measure.part)
    guess = uniform.get(measure.function, middle)
    return float(guess), float(possible.get(measure.function, bounds.width))


# --- Bounds and single answers --------------------------------------------------------------------


def bounds_finding(release: BoundsRelease, against: pa.Table, seed: int) -> Finding:
    """Report how far published bounds are from the quantiles that they stand for."""
    require_columns(against, release.schema)
    values = _present_values(release.schema, release.column, against)
    bounds = bounds_of(release.schema, release.column)
    part = min(max(float(release.tail), release.least / values.size), 0.5)
    declared = {"lower": bounds.low, "upper": bounds.high}
    parts = {"lower": part, "upper": 1 - part}
    numbers = [
        single(
            f"{side} bound",
            float(getattr(release, side)),
            values,
            partial(_quantile, part=parts[side]),
            guess=declared[side],
            least_gap=LEAST_GAP * bounds.width,
            seed=seed,
        )
        for side in ("lower", "upper")
        if release.measured in ("both", side)
    ]
    beyond = np.count_nonzero((values < release.lower) | (values > release.upper))
    return numbers_finding(
        "bounds",
        f"Bounds of {release.column} beside the true quantiles of {values.size:,} rows",
        numbers,
        f"bounds of {release.column}",
        [
            f"{part:.3g} of the values should lie beyond each measured bound; beyond both "
            f"together lie {beyond / values.size:.3g}"
        ],
    )


def answer_finding(release: PersonalizedAnswer, against: pa.Table, seed: int) -> Finding:
    """Report how far a published count or median is from the true one."""
    require_columns(against, release.schema)
    if release.column is not None:
        values = _present_values(release.schema, release.column, against)
        bounds = bounds_of(release.schema, release.column)
        number = single(
            f"median of {release.column}",
            release.number,
            values,
            partial(_quantile, part=0.5),
            guess=(bounds.low + bounds.high) / 2,
            least_gap=LEAST_GAP * bounds.width,
            seed=seed,
        )
    else:
        inside = _satisfies(release, against)
        number = single(
            release.query or "all records",
            release.number,
            inside,
            lambda x: float(x.sum()),
            guess=0.0,
            least_gap=1.0,
            seed=seed,
        )
    return numbers_finding(
        "answer", "The published answer beside the true one", [number], "the published answer"
    )


def single(
    name: str,
    published: float,
    values: FloatArray,
    compute: Callable[[FloatArray], float],
    *,
    guess: float,
    least_gap: float,
    seed: int,
) -> Numbers:
    """Compare one number with what is computed from the values of true rows."""
    rng = plain_generator(seed)
    sampled = [
        compute(values[rng.integers(0, values.size, values.size)] if values.size else values)
        for _ in range(4 * SAMPLES)
    ]
    return Numbers(
        name,
        np.array([published]),
        np.array([compute(values)]),
        np.array(sampled)[:, None],
        np.array([guess]),
        least_gap,
    )


def _satisfies(release: PersonalizedAnswer, against: pa.Table) -> FloatArray:
    """Compute how far each row satisfies the query: 1, 0, or the part of a bin that it covers."""
    parsed = parse_query(release.query)
    codes = encode_rows(against, release.schema, parsed.columns)
    found = np.ones(against.num_rows)
    for name in parsed.columns:
        weights = axis_weights(release.schema[name].axis(), parsed.about(name))
        known = codes[name] != UNKNOWN
        found *= np.where(known, weights[np.maximum(codes[name], 0)], 0.0)
    return found


# --- What all of them need ------------------------------------------------------------------------


def locate(
    axes: Sequence[Axis], codes: Mapping[str, IntArray], rows: pa.Table
) -> tuple[IntArray, BoolArray]:
    """Find the cell of each row, numbered row by row, and whether all its values are known."""
    cells = np.zeros(rows.num_rows, dtype=np.int64)
    known = np.ones(rows.num_rows, dtype=np.bool_)
    for axis in axes:
        known &= codes[axis.column] != UNKNOWN
        cells = cells * axis.size + axis.leaf_to_cell[np.maximum(codes[axis.column], 0)]
    return cells, known


def column_values(schema: Schema, name: str, rows: pa.Table) -> FloatArray:
    """Read the numbers of a column, clipped to its bounds; NaN where there is none."""
    column = schema[name]
    if not isinstance(column, NumberColumn):
        raise InvalidParameter(f"{name!r} is no column of numbers")
    values, keep = column.values(rows[find_column(rows, column)])
    return np.asarray(values if keep is None else np.where(keep, values, np.nan), dtype=np.float64)


def _present_values(schema: Schema, name: str, rows: pa.Table) -> FloatArray:
    values = column_values(schema, name, rows)
    values = values[np.isfinite(values)]
    if not values.size:
        raise InvalidParameter(f"no row has a number in the column {name!r}")
    return values


def _quantile(values: FloatArray, part: float) -> float:
    return float(np.quantile(values, part, method="inverted_cdf"))


def _quantiles(group: IntArray, values: FloatArray, count: FloatArray, part: float) -> FloatArray:
    order = np.lexsort((values, group))
    ends = np.cumsum(count).astype(np.int64)
    rank = np.maximum(np.ceil(part * count - 1e-9), 1).astype(np.int64) - 1
    found = np.full(count.size, np.nan)
    filled = count > 0
    found[filled] = values[order][(ends - count.astype(np.int64) + rank)[filled]]
    return found


def _divided(total: FloatArray, count: FloatArray) -> FloatArray:
    empty = np.full(count.size, np.nan)
    return np.asarray(np.divide(total, count, out=empty, where=count > 0))


def _mean(numbers: FloatArray) -> float:
    return float(numbers.mean()) if numbers.size else 0.0


def _row(one: Numbers) -> list[str]:
    holds = one.share_that_holds
    return [
        one.name,
        f"{int(one.defined.sum()):,}",
        *(figure(x) for x in (one.error, one.sample_error, one.guess_error)),
        f"{one.score:.0f}",
        "" if holds is None else f"{holds:.0%}".replace("%", " %"),
    ]


def _figures(one: Numbers) -> dict[str, object]:
    return {
        "number": one.name,
        "groups": int(one.defined.sum()),
        "mean_error": one.error,
        "mean_error_of_fresh_sample": one.sample_error,
        "mean_error_of_guess": one.guess_error,
        "score": one.score,
        "intervals_hold": one.share_that_holds,
    }
