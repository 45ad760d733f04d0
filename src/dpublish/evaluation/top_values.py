"""How many of the most frequent values a ranking has found.  NOT PRIVATE."""

from statistics import fmean

import numpy as np
import pyarrow as pa

from dpublish.core.prediction import encode_rows
from dpublish.errors import InvalidParameter
from dpublish.evaluation.classification import require_columns
from dpublish.evaluation.findings import Finding
from dpublish.evaluation.metrics.selection import false_negative_rate, score_error_rate
from dpublish.evaluation.numbers import SAMPLES, Numbers, locate, numbers_part
from dpublish.evaluation.score import Part
from dpublish.methods.topk.released import TopKRelease
from dpublish.privacy.neighbors import AddRemoveUnit
from dpublish.randomness import plain_generator
from dpublish.types import IntArray

LEAST_GAP = 0.05
_SHOWN = 20


def top_finding(release: TopKRelease, against: pa.Table, seed: int) -> Finding:
    """Report which of the most frequent values were found, and how much is missed."""
    require_columns(against, release.schema)
    axis = release.axis
    codes = encode_rows(against, release.schema, [axis.column])
    cells, known = locate([axis], codes, against)
    counts = np.bincount(cells[known], minlength=axis.size)
    records = int(counts.sum())
    if not records:
        raise InvalidParameter(f"no row has a known value in the column {axis.column!r}")
    wanted = _wanted(release)
    rng = plain_generator(seed)
    samples = rng.multinomial(records, counts / records, size=2 * SAMPLES)
    chosen = release.chosen.tolist()
    ranks = np.empty(axis.size, dtype=np.int64)
    ranks[np.argsort(-counts, kind="stable")] = np.arange(1, axis.size + 1)
    missed = score_error_rate(chosen, counts, wanted)
    reference = fmean(score_error_rate(_best(one, wanted), counts, wanted) for one in samples)
    best = np.sort(counts)[::-1][:wanted].sum()
    baseline = float(1 - wanted * counts.mean() / best)
    not_found = false_negative_rate(chosen, counts, wanted)
    part = Part.of(
        "top-k",
        f"the most frequent values of {axis.column}",
        f"the part of the rows with one of the {wanted:,} best values that is missed",
        missed,
        reference=(f"a fresh sample of {records:,} rows", reference),
        baseline=("values chosen at random", baseline),
        least_gap=LEAST_GAP,
    )
    return Finding(
        name="top-k",
        title=f"The {wanted:,} most frequent values of {axis.column}: "
        f"{round((1 - not_found) * wanted):,} were found",
        headers=["value", "true rank", "true rows", "noisy count"],
        rows=_rows(release, counts, ranks),
        notes=_notes(release),
        figures={
            "rows": records,
            "wanted": wanted,
            "score_error_rate": missed,
            "false_negative_rate": not_found,
        },
        parts=[part, *_count_parts(release, counts, samples)],
    )


def _notes(release: TopKRelease) -> list[str]:
    notes = [f"the first {_SHOWN} are shown"] if len(release.chosen) > _SHOWN else []
    if _counts_units(release):
        notes.append("the release counts people and not rows: its counts are not scored")
    return notes


def _counts_units(release: TopKRelease) -> bool:
    """Whether a noisy count is one of people, of whom rows alone do not tell how many."""
    return isinstance(release.receipt.neighbors, AddRemoveUnit)


def _wanted(release: TopKRelease) -> int:
    asked = release.receipt.settings.get("count")
    number = asked if isinstance(asked, int) else len(release.chosen)
    return max(min(number, release.axis.size), len(release.chosen), 1)


def _best(counts: IntArray, wanted: int) -> list[int]:
    best: list[int] = np.argsort(-counts, kind="stable")[:wanted].tolist()
    return best


def _count_parts(release: TopKRelease, counts: IntArray, samples: IntArray) -> list[Part]:
    if release.counts is None or not len(release.chosen) or _counts_units(release):
        return []
    chosen = release.chosen
    numbers = Numbers(
        "counts",
        release.counts.astype(np.float64),
        counts[chosen].astype(np.float64),
        samples[:, chosen].astype(np.float64),
        np.zeros(len(chosen)),
        1.0,
    )
    return [numbers_part("counts", [numbers], "counts of these values")]


def _rows(release: TopKRelease, counts: IntArray, ranks: IntArray) -> list[list[str]]:
    noisy = release.counts
    return [
        [
            release.axis.labels[cell],
            f"{ranks[cell]:,}",
            f"{counts[cell]:,}",
            "" if noisy is None else f"{noisy[number]:,}",
        ]
        for number, cell in enumerate(release.chosen[:_SHOWN].tolist())
    ]
