"""What evaluations find; of a synthetic table, about marginals, pairs and range counts."""

from collections.abc import Sequence
from statistics import fmean
from typing import Any, NamedTuple

from dpublish.evaluation.score import Part
from dpublish.evaluation.shares import GROUPS, LEAST_GAP, ShareErrors, share_errors
from dpublish.evaluation.synthetic_table import QUANTILES, Association, Comparison
from dpublish.methods.marginals.released import MarginalsRelease
from dpublish.randomness import plain_generator

WORST = 10
"""How many pairs of columns are listed, those that differ most."""
SCALED = "answers are scaled to the number of true rows, which may be others than those published"

INDEPENDENT = "marginals do not say how columns hang together: columns are taken as independent"


class Finding(NamedTuple):
    """A table of figures for people, the same figures for programs, and what they score."""

    name: str
    title: str
    headers: Sequence[str]
    rows: Sequence[Sequence[str]]
    notes: Sequence[str]
    figures: dict[str, Any]
    parts: Sequence[Part] = ()


def share_finding(comparison: Comparison) -> Finding:
    """Report how far shares of values, pairs and triples are from the true ones."""
    found = share_errors(comparison)
    return Finding(
        name="shares",
        title="Shares of values, pairs and triples: mean total variation from the true rows",
        headers=["columns crossed", "sets", "release", "fresh sample", "knowing nothing"],
        rows=[
            [
                str(one.depth),
                f"{one.subsets:,}",
                *(f"{x:.4f}" for x in (one.release, one.sample, one.uninformed)),
            ]
            for one in found
        ],
        notes=_share_notes(found, comparison.records),
        figures={"rows": comparison.records, "depths": [vars(one) for one in found]},
        parts=[one.part(comparison.records) for one in found],
    )


def _share_notes(found: Sequence[ShareErrors], records: int) -> list[str]:
    several = " (32 of single columns)" if found[1:] else ""
    return [
        f"a column with more than {GROUPS[found[-1].depth]} values{several} is cut into as many "
        "groups: an order at true quantiles, and of other values the rarest are taken together",
        f"the fresh sample has {records:,} rows, drawn from the true ones; knowing nothing means "
        "equally frequent values, and of several columns that they are independent",
        f"0 is scored {LEAST_GAP} beyond the fresh sample at the earliest",
    ]


def marginal_finding(comparison: Comparison) -> Finding:
    """Report how far the marginals of each column are from the true ones."""
    marginals = comparison.marginals
    return Finding(
        name="marginals",
        title=f"Marginals: synthetic rows beside {comparison.records:,} true rows "
        "(0 is alike, 1 is nothing in common)",
        headers=["column", "total variation", "largest CDF gap"],
        rows=[
            [m.column, f"{m.total_variation:.4f}", "" if m.cdf_gap is None else f"{m.cdf_gap:.4f}"]
            for m in marginals
        ],
        notes=["values without an order have no CDF"] if any(m.cdf_gap is None for m in marginals)
        else [],
        figures={
            "rows": comparison.records,
            "mean_total_variation": fmean(m.total_variation for m in marginals),
            "columns": [m._asdict() for m in marginals],
        },
    )  # fmt: skip


def association_finding(comparison: Comparison) -> Finding:
    """Report which pairs of columns depend on each other otherwise than in the true rows."""
    pairs = sorted(comparison.associations, key=lambda pair: -pair.difference)
    mean = fmean(pair.difference for pair in pairs)
    measures = {pair.measure for pair in pairs}
    notes = [f"the mean over all {len(pairs):,} pairs is {mean:.4f}"]
    if len(measures) > 1 or "Cramer's V" in measures:
        notes.append(
            "Cramer's V is for pairs with a column that has no order; columns with many values "
            f"are cut at {QUANTILES} true quantiles for it"
        )
    return Finding(
        name="association",
        title=f"Pairs of columns: the {min(WORST, len(pairs))} whose dependence differs most",
        headers=["columns", "measure", "true", "synthetic", "difference"],
        rows=[_pair_row(pair) for pair in pairs[:WORST]],
        notes=notes,
        figures={"mean_difference": mean, "pairs": [pair._asdict() for pair in pairs]},
    )


def query_finding(comparison: Comparison) -> Finding:
    """Report how far range counts are from the true ones."""
    answered = comparison.answered
    source = "the release's own estimates" if comparison.has_estimates else "synthetic rows"
    return Finding(
        name="queries",
        title=f"Random range counts, answered from {source}",
        headers=["columns queried", "queries", "mean relative", "median relative", "mean absolute"],
        rows=[
            [
                str(one.depth),
                f"{len(one.truth):,}",
                f"{one.errors.mean_relative:.3f}",
                f"{one.errors.median_relative:.3f}",
                f"{one.errors.mean_absolute:,.1f}",
            ]
            for one in answered
        ],
        notes=[
            f"errors are relative to the true count, or to {answered[0].sanity:,.1f} rows where "
            "that is more",
            SCALED,
            *(
                [INDEPENDENT]
                if isinstance(comparison.release, MarginalsRelease) and answered[1:]
                else []
            ),
        ],
        figures={
            "source": source,
            "sanity": answered[0].sanity,
            "depths": [
                {"columns": one.depth, "queries": len(one.truth), **one.errors._asdict()}
                for one in answered
            ],
        },
        parts=[_query_part(comparison)],
    )


def _query_part(comparison: Comparison) -> Part:
    """Score all range counts together; an error counts as 100 % at most."""
    answered, records = comparison.answered, comparison.records
    rng = plain_generator(comparison.seed)
    sampled = [rng.binomial(records, one.truth / records) for one in answered]
    measured = fmean(one.capped(one.estimates) for one in answered)
    reference = fmean(one.capped(own) for one, own in zip(answered, sampled, strict=True))
    baseline = fmean(one.capped(one.even) for one in answered)
    return Part.of(
        "queries",
        "counts of ranges",
        "the mean relative error of a count, each at most 1,",
        measured,
        reference=(f"a fresh sample of {records:,} rows", reference),
        baseline=("all values equally frequent", baseline),
        least_gap=LEAST_GAP,
    )


def _pair_row(pair: Association) -> list[str]:
    numbers = (pair.true, pair.synthetic, pair.difference)
    return [f"{pair.first}, {pair.second}", pair.measure, *(f"{x:.3f}" for x in numbers)]
