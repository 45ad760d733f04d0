"""How far the counts of a stream are from the true ones, step by step.  NOT PRIVATE."""

from collections.abc import Mapping
from statistics import fmean
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from dpublish.core.prediction import encode_rows
from dpublish.errors import InvalidParameter
from dpublish.evaluation.findings import Finding
from dpublish.evaluation.metrics.queries import SANITY, relative_errors
from dpublish.evaluation.metrics.streams import RangeQueries
from dpublish.evaluation.numbers import locate
from dpublish.evaluation.score import Part
from dpublish.methods.streams.released import StreamRelease
from dpublish.randomness import plain_generator
from dpublish.types import FloatArray, IntArray

QUERIES = 300
LEAST_GAP = 0.05
_SHOWN = 20


class StepErrors(NamedTuple):
    """Errors of one step: of the release, a fresh sample, and counts of 0."""

    time: str
    action: str
    records: int
    relative: float
    absolute: float
    sample: float
    zeros: float


def stream_finding(release: StreamRelease, steps: Mapping[str, pa.Table], seed: int) -> Finding:
    """Report how far range counts of each step are from the true ones."""
    known = [time for time in release.times if time in steps]
    if not known:
        raise InvalidParameter(
            "there are no true rows of any step of the stream: its steps are called "
            f"{_some(release.times)}, the rows given {_some(tuple(steps))}"
        )
    queries = RangeQueries.draw(release.shape, QUERIES, seed=seed)
    rng = plain_generator(seed)
    found = [_step(release, time, steps[time], queries, rng) for time in known]
    measured = fmean(one.relative for one in found)
    reference = fmean(one.sample for one in found)
    baseline = fmean(one.zeros for one in found)
    worst = sorted(found, key=lambda one: -one.relative)[:_SHOWN]
    left_out = len(release.times) - len(known)
    return Finding(
        name="stream",
        title=f"Counts of {len(found):,} steps: {QUERIES} random range counts at each",
        headers=["step", "published or repeated", "true rows", "mean relative", "mean absolute"],
        rows=[
            [
                one.time,
                one.action,
                f"{one.records:,}",
                f"{one.relative:.3f}",
                f"{one.absolute:,.1f}",
            ]
            for one in worst
        ],
        notes=[
            "errors are relative to the true count, or to 0.05 % of the rows (at least one row) "
            "where that is more, and count as 1 at most",
            *([f"the {_SHOWN} worst steps are shown"] if len(found) > _SHOWN else []),
            *([f"{left_out:,} steps have no true rows to compare with"] if left_out else []),
        ],
        figures={"queries": QUERIES, "steps": [one._asdict() for one in found]},
        parts=[
            Part.of(
                "stream",
                "counts of ranges at every step",
                "the mean relative error of a count, each at most 1,",
                measured,
                reference=("fresh samples of as many rows", reference),
                baseline=("counts of 0", baseline),
                least_gap=LEAST_GAP,
            )
        ],
    )


def _step(
    release: StreamRelease,
    time: str,
    rows: pa.Table,
    queries: RangeQueries,
    rng: np.random.Generator,
) -> StepErrors:
    names = [axis.column for axis in release.axes]
    cells, known = locate(release.axes, encode_rows(rows, release.schema, names), rows)
    truth = np.bincount(cells[known], minlength=release.size)
    records = int(truth.sum())
    estimate = release.at(time).ravel()
    fresh = rng.multinomial(records, truth / records) if records else truth
    answers = queries.answers(truth)
    sanity = max(SANITY * records, 1.0)

    def capped(counts: FloatArray | IntArray) -> float:
        errors = relative_errors(queries.answers(counts), np.rint(answers).astype(np.int64), sanity)
        return float(np.minimum(errors, 1.0).mean())

    return StepErrors(
        time,
        release.record(time).action,
        records,
        capped(estimate),
        queries.mean_error(estimate, truth),
        capped(fresh),
        capped(np.zeros(release.size)),
    )


def _some(names: tuple[str, ...]) -> str:
    shown = ", ".join(names[:3]) or "nothing"
    return f"{shown}, ..." if len(names) > 3 else shown
