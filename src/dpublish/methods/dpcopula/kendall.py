"""Publish how often two records are ordered alike by two columns: Kendall's tau of every pair.

Known as: DPCopula-Kendall.
Reference: H. Li, L. Xiong, X. Jiang, "Differentially Private Synthesization of
Multi-Dimensional Data using Copula Functions", EDBT 2014, repaired.
"""

from collections.abc import Mapping, Sequence
from fractions import Fraction
from math import comb, floor, isqrt, sqrt

import numpy as np

from dpublish.core.method import Progress
from dpublish.core.noisy_size import NoisySize
from dpublish.data.table import Table
from dpublish.mechanisms.exact.lattice import lattice_sensitivity
from dpublish.mechanisms.noise import add_laplace
from dpublish.methods.dpcopula.concordance_bridge import MOST_CLASSES, class_of_leaves
from dpublish.methods.dpcopula.kernel_concordance import (
    MOST_CELLS,
    PairTables,
    tau_sensitivity,
    tau_values,
)
from dpublish.methods.dpcopula.noisy_correlation import NoisyCorrelation
from dpublish.methods.dpcopula.ordinary_leaves import (
    complete_columns,
    fewest_records,
    ordinary_leaves,
    require_correlated,
)
from dpublish.methods.marginals.noisy_marginal import NoisyMarginal
from dpublish.privacy.budget import Budget
from dpublish.privacy.epsilon import format_epsilon
from dpublish.randomness import RandomSource

MOST_WORK = 2_000_000_000
"""Records times pairs of columns that are counted; of more, a sample is drawn."""


def release_kendall(
    table: Table,
    columns: Sequence[str],
    marginals: Mapping[str, NoisyMarginal],
    size: NoisySize,
    *,
    budget: Budget,
    rng: RandomSource,
    progress: Progress | None = None,
    most_work: int = MOST_WORK,
) -> NoisyCorrelation:
    """Publish tau, ties counted as neither, of every two columns cut into classes.

    Args:
        table: Private rows.
        columns: Columns with an order, at least two.
        marginals: Released marginals; a record without a value in one of them is left out.
        size: Noisy number of records.
        budget: Budget to empty.
        rng: Source of the noise.
        progress: Told when the pairs are counted.
        most_work: Records times pairs of columns above which a random sample is taken.

    Privacy:
        `budget.epsilon`-differentially private when one record is added or removed.  The
        classes, the sampling rate and the fewest records n_lo are functions of what was
        released before.  Divided by the pairs among max(n, n_lo) records, all taus together
        move by at most 4 floor(m^2 / 4) / (n_lo + 1) in L1, whatever n_lo >= m and n are, and
        get noise for that.  On a sample that keeps each record with probability q, an epsilon
        of ln(1 + (e^epsilon - 1) / q) costs `budget.epsilon`; it is rounded down.
        Proof: docs/proofs/correlation.md.
    """
    require_correlated(table, columns)
    share = budget.split(agreement=1)["agreement"]  # opened before any row is read
    pairs = comb(len(columns), 2)
    leaves = ordinary_leaves(table.schema, columns, marginals)
    most = min(MOST_CLASSES, isqrt(MOST_CELLS // pairs) - 1)
    classes = tuple(x.pad(class_of_leaves(x.probabilities, most), -1) for x in leaves)
    used = complete_columns(columns, marginals)
    fewest = fewest_records(size, len(columns))
    rate = min(Fraction(1), Fraction(max(most_work // pairs, 1), max(size.value, 1)))
    if rate < 1:
        share = share.amplified(rate)
        table = table.sample(rate, rng, used)
        expected = float(rate) * fewest
        fewest = max(len(columns), floor(expected - 3 * sqrt(expected)))
    tables = table.sum(PairTables(table.schema, tuple(columns), classes, used))
    if progress is not None:
        progress(1, 1, "correlations")
    sensitivity = tau_sensitivity(len(columns), fewest)
    taus = np.array(tau_values(tables, fewest), dtype=object)
    noisy = add_laplace(taus, sensitivity=sensitivity, budget=share, rng=rng)
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
            "kept": [x.kept for x in leaves],
        },
    )
