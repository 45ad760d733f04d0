"""DPCopula-Kendall: noisy Kendall's tau of every two columns, ties counted as neither.

Values are put into classes of neighboring values first.  From counts by two columns' classes,
the number of concordant pairs of records minus that of discordant pairs follows exactly by sums
over quadrants, without sorting: the work per pair of columns grows with the records only.
"""

from collections.abc import Mapping, Sequence
from fractions import Fraction
from math import ceil, comb, floor, isqrt, sqrt
from typing import Literal

import numpy as np

from dpublish.core.method import Run
from dpublish.core.noisy_size import NoisySize
from dpublish.errors import require_count
from dpublish.mechanisms.exact.lattice import lattice_sensitivity
from dpublish.methods.dpcopula.column_marginals import (
    complete_columns,
    fewest_records,
    half_for_exchange,
    require_correlated,
    value_distributions,
)
from dpublish.methods.dpcopula.correlation import NoisyCorrelation
from dpublish.methods.dpcopula.kernels import MOST_CELLS, PairTables
from dpublish.methods.dpcopula.latent_correlation import MOST_CLASSES, class_of_values
from dpublish.methods.marginals.noisy_marginal import NoisyMarginal
from dpublish.privacy.budget import Budget
from dpublish.privacy.epsilon import format_epsilon
from dpublish.types import IntArray

SampleSize = int | Literal["auto", "paper"]
"""Of how many records agreement is counted: as many as time allows, or as the thesis asks for."""
MOST_WORK = 2_000_000_000
"""Records times pairs of columns that are counted; of more, a sample is drawn."""
_HALF = 20


def release_kendall(
    run: Run,
    columns: Sequence[str],
    marginals: Mapping[str, NoisyMarginal],
    size: NoisySize,
    *,
    budget: Budget,
    sample: SampleSize = "auto",
    most_work: int = MOST_WORK,
    public_records: int | None = None,
) -> NoisyCorrelation:
    """Publish tau, ties counted as neither, of every two columns cut into classes.

    `columns`, `marginals` and `size` are those of `release_spearman`.  A random sample of about
    `sample_records` is taken if there are more records.

    Privacy:
        `budget.epsilon`-differentially private when one record is added or removed.  The
        classes, the sampling rate and the fewest records n_lo are functions of what was
        released before.  Divided by the pairs among max(n, n_lo) records, all taus together
        move by at most 4 floor(m^2 / 4) / (n_lo + 1) in L1, whatever n_lo >= m and n are, and
        get noise for that.  On a sample that keeps each record with probability q, an epsilon
        of ln(1 + (e^epsilon - 1) / q) costs `budget.epsilon`; it is rounded down.  With
        `public_records` it is private when one record is exchanged: taus divided by the pairs
        among all n records move by at most 4 floor(m^2 / 4) / n; on a sample, half of the budget
        pays for each of a removal and an addition.  Proof: docs/proofs/correlation.md.
    """
    require_correlated(run, columns)
    share = budget.split(agreement=1)["agreement"]  # opened before any row is read
    pairs = comb(len(columns), 2)
    found = value_distributions(run.schema, columns, marginals)
    most = min(MOST_CLASSES, isqrt(MOST_CELLS // pairs) - 1)
    classes = tuple(x.pad(class_of_values(x.listed_probabilities, most), -1) for x in found)
    used = complete_columns(columns, marginals)
    fewest = fewest_records(size, len(columns))
    wanted = sample_records(sample, len(columns), budget.epsilon, most_work=most_work)
    rate = min(Fraction(1), Fraction(wanted, max(size.value, 1)))
    is_exchange = public_records is not None and rate == 1
    if rate < 1:
        share = share if public_records is None else half_for_exchange(share)
        share = share.amplified(rate)
        run = run.sample(rate, used)
        expected = float(rate) * fewest
        fewest = max(len(columns), floor(expected - 3 * sqrt(expected)))
    tables = run.sum(PairTables(run.schema, tuple(columns), classes, used))
    run.step(1, 1, "correlations")
    if is_exchange:
        fewest, sensitivity = size.value, exchange_sensitivity(len(columns), size.value)
    else:
        sensitivity = tau_sensitivity(len(columns), fewest)
    taus = np.array(tau_values(tables, fewest), dtype=object)
    noisy = run.add_laplace(taus, sensitivity=sensitivity, budget=share)
    return NoisyCorrelation(
        method="kendall",
        columns=tuple(columns),
        units=noisy.units,
        exponent=noisy.exponent,
        rate=share.epsilon / lattice_sensitivity(sensitivity, noisy.exponent, pairs),
        settings={
            "classes": most,
            "fewest_records": fewest,
            "sample_rate": format_epsilon(rate),
            "kept": [x.kept for x in found],
        },
    )


def sample_records(
    sample: SampleSize, columns: int, epsilon: Fraction, *, most_work: int = MOST_WORK
) -> int:
    """Return of how many records agreement is counted, if there are as many: public.

    "auto": as many as `most_work` allows; "paper": 50 m (m - 1) / epsilon - 1 for m columns, the
    fewest that the thesis asks for; a number: so many.  Never more than `most_work` allows.

    >>> [sample_records(one, 8, Fraction(1, 9)) for one in ("auto", "paper", 1_000)]
    [71428571, 25199, 1000]
    """
    most = max(most_work // comb(columns, 2), 1)
    if sample == "auto":
        return most
    wanted = ceil(50 * columns * (columns - 1) / epsilon) - 1 if sample == "paper" else sample
    return min(max(wanted, columns), most)


def count_agreement(counts: IntArray) -> int:
    """Count the concordant pairs of records minus the discordant ones.

    Pairs that are equal in one of the columns count as neither.  The number is exact for up
    to 2^40 records: products are added up in two halves.

    >>> count_agreement(np.array([[2, 0], [1, 3]]))
    6
    """
    left = np.cumsum(counts, axis=1) - counts
    right = counts.sum(axis=1, keepdims=True) - left - counts
    # Of records in earlier rows, those in earlier columns agree and those in later ones do not.
    difference = left - right
    earlier = np.cumsum(difference, axis=0) - difference
    high, low = earlier >> _HALF, earlier & ((1 << _HALF) - 1)
    return (int((counts * high).sum()) << _HALF) + int((counts * low).sum())


def tau_values(tables: IntArray, fewest: int) -> list[Fraction]:
    """Divide agreement by the number of pairs of records, or of `fewest` records if that is more.

    `tables` is an answer of `PairTables`; the last class of either column is outside the order,
    so its records agree with nothing but count as records.
    """
    records = max(int(tables[0].sum()), fewest)
    return [Fraction(count_agreement(table[:-1, :-1]), comb(records, 2)) for table in tables]


def tau_sensitivity(columns: int, fewest: int) -> Fraction:
    """Bound how much all `tau_values` together change (L1) when one record is added or removed.

    Holds for every table if `fewest` is at least the number of columns
    (docs/proofs/correlation.md).

    >>> tau_sensitivity(5, 99)
    Fraction(6, 25)
    """
    require_count(columns=columns, at_least=2)
    require_count(fewest=fewest, at_least=columns)
    return Fraction(4 * (columns**2 // 4), fewest + 1)


def exchange_sensitivity(columns: int, records: int) -> Fraction:
    """Bound how much all `tau_values` together change (L1) when one of `records` is exchanged.

    A record is in n - 1 of the n (n - 1) / 2 pairs of records, and the products of the signs of
    a pair move by at most 2 floor(m^2 / 4) in all (docs/proofs/correlation.md).

    >>> exchange_sensitivity(5, 100)
    Fraction(6, 25)
    """
    require_count(columns=columns, at_least=2)
    require_count(records=records, at_least=2)
    return Fraction(4 * (columns**2 // 4), records)
