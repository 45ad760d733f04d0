"""Publish the marginal of one column by the method that suits its number of values.

Which suits is decided from public facts alone, never from the counts: a choice by the data
would have to be paid for, and costs more than it gains.
"""

from fractions import Fraction
from functools import lru_cache
from math import sqrt
from typing import Literal, get_args

import numpy as np

from dpublish.accuracy.noise_distribution import noise_variance, sum_quantile
from dpublish.core.run import Run
from dpublish.errors import InvalidParameter, require_count, require_known
from dpublish.mechanisms.exact.sampler import require_rate
from dpublish.methods.marginals.efpa import WHOLE_BITS, spectrum
from dpublish.methods.marginals.hierarchical import best_branching, count_hierarchy
from dpublish.methods.marginals.noisy_marginal import MOST_MERGED, NoisyMarginal, PublishedMethod
from dpublish.methods.marginals.released import middle_half
from dpublish.methods.marginals.structure_first import (
    CHOICE_RANGE,
    LARGEST_COUNT,
    MOST_STRUCTURED,
    best_costs,
    count_buckets,
    deviations,
    last_cut_costs,
)
from dpublish.privacy.budget import Budget
from dpublish.types import IntArray

MarginalMethod = Literal[
    "auto", "identity", "hierarchical", "efpa", "noise-first", "structure-first"
]
MOST_SINGLE = 128
"""Most values that are counted one by one unless another method is named."""
CHOICE, NUMBERS = 3, 7
"""EFPA's weights of the choice of how many coefficients are kept, and of the coefficients."""
_MOST_VALUES = {
    "efpa": MOST_MERGED,
    "noise-first": MOST_MERGED,
    "structure-first": MOST_STRUCTURED,
}
_NORMAL = 1.96
_FEW = 64  # sums of more terms are as good as normal


def choose_marginal(method: MarginalMethod, size: int) -> PublishedMethod:
    """Choose how to count so many values, or check that a named method can.

    >>> choose_marginal("auto", 100), choose_marginal("auto", 1000)
    ('identity', 'hierarchical')
    """
    require_known("method", method, get_args(MarginalMethod))
    require_count(size=size)
    if method == "auto":
        return "identity" if size <= MOST_SINGLE else "hierarchical"
    most = _MOST_VALUES.get(method, size)
    if size > most:
        raise InvalidParameter(
            f"{method} takes at most {most:,} values of a column, not {size:,}; "
            "use hierarchical, or coarser bins"
        )
    return method


def require_marginal(method: MarginalMethod, size: int, epsilon: Fraction) -> None:
    """Refuse from public facts what `release_marginal` would refuse."""
    chosen = choose_marginal(method, size)
    if chosen == "hierarchical":
        require_rate(epsilon / count_hierarchy(size, best_branching(size)).levels)
    elif chosen == "efpa":
        plan = spectrum(size)
        require_rate(epsilon * NUMBERS / (CHOICE + NUMBERS) / max(plan.sensitivities.values()))
        require_rate(epsilon * CHOICE / (CHOICE + NUMBERS) / plan.choice_range)
    elif chosen == "structure-first":
        require_rate(epsilon / 2 / max(count_buckets(size) - 1, 1) / CHOICE_RANGE)
    else:
        require_rate(epsilon)


def release_marginal(
    run: Run, counts: IntArray, *, method: MarginalMethod, budget: Budget
) -> NoisyMarginal:
    """Publish the marginal of a column from the exact counts of its values.

    Privacy:
        `budget.epsilon`-differentially private when one record is added to or removed from
        one value.  Which method is used depends on the number of values only.  Counts value
        by value (identity, noise-first) move by 1 in all and get two-sided geometric noise of
        rate epsilon; runs are then chosen from noisy counts alone.  The others argue for
        themselves: `release_hierarchical`, `release_efpa`, `release_structure_first`.
    """
    require_marginal(method, counts.size, budget.epsilon)
    chosen = choose_marginal(method, counts.size)
    if chosen == "hierarchical":
        return release_hierarchical(run, counts, budget=budget)
    if chosen == "efpa":
        return release_efpa(run, counts, budget=budget)
    if chosen == "structure-first":
        return release_structure_first(run, counts, budget=budget)
    rate = budget.epsilon
    noisy = run.add_noise(counts, sensitivity=1, budget=budget)
    return NoisyMarginal(chosen, counts.size, noisy, rate)


def release_hierarchical(run: Run, counts: IntArray, *, budget: Budget) -> NoisyMarginal:
    """Publish noisy counts of all nodes of a tree over the values.

    Privacy:
        `budget.epsilon`-differentially private when one record is added to or removed from
        one value.  The tree depends on the number of values only.  A record lies in one node of
        each of its h levels, so all counts together move by h and get two-sided geometric
        noise of rate epsilon / h.
    """
    width = best_branching(counts.size)
    tree = count_hierarchy(counts.size, width)
    rate = budget.epsilon / tree.levels
    noisy = run.add_noise(tree.totals(counts), sensitivity=tree.levels, budget=budget)
    return NoisyMarginal("hierarchical", counts.size, noisy, rate, branching=width)


def release_efpa(run: Run, counts: IntArray, *, budget: Budget) -> NoisyMarginal:
    """Publish the noisy lowest coefficients of `counts`, or noisy counts if these are better.

    Privacy:
        `budget.epsilon`-differentially private when one record is added to or removed from
        one value.  The choice: a candidate's cost is the norm of the coefficients that it
        leaves out, plus a public number; two of these norms are nested, so one record moves
        them apart by at most `choice_range`, below sqrt(2) times the norm of its own image.
        The numbers: the coefficients kept move by at most `sensitivities` in all (L1),
        counts by value by 1, and get geometric noise for that.  All are integers, computed exactly.
        Proof: docs/proofs/marginals.md.
    """
    budgets = budget.split(choice=CHOICE, numbers=NUMBERS)
    plan = spectrum(counts.size)
    exact = plan.transform(counts)
    epsilon = budgets["numbers"].epsilon
    left_out = [*plan.norms_left_out(exact), 0]
    noise = plan.noise_norms(epsilon)
    costs = [min(left + added, 1 << 62) for left, added in zip(left_out, noise, strict=True)]
    chosen = run.select(
        -np.array(costs, dtype=np.int64),
        sensitivity_range=plan.choice_range,
        budget=budgets["choice"],
    )
    if chosen == len(plan.candidates):
        noisy = run.add_noise(counts, sensitivity=1, budget=budgets["numbers"])
        return NoisyMarginal("efpa", counts.size, noisy, epsilon)
    kept = plan.candidates[chosen]
    moved = plan.sensitivities[kept]
    noisy = run.add_noise(exact[:kept], sensitivity=moved, budget=budgets["numbers"])
    rate = epsilon / moved
    return NoisyMarginal("efpa", counts.size, noisy, rate, exponent=-WHOLE_BITS, kept=kept)


def release_structure_first(run: Run, counts: IntArray, *, budget: Budget) -> NoisyMarginal:
    """Publish noisy counts of buckets of values that were chosen before, to be alike.

    Privacy:
        `budget.epsilon`-differentially private when one record is added to or removed from
        one value.  Half pays for the cuts, in equal shares, from the last to the first.  A
        cut's cost is the least sum, over the buckets of a partition that has it, of the
        absolute deviations of counts from their bucket's median.  One record moves one
        count by 1, hence the deviation from any fixed numbers by at most 1, and so their
        minimum: two costs move by at most `CHOICE_RANGE` apart.  Half pays for the counts of
        the buckets, which move by 1 in all.  The number of buckets is public.  All are
        integers.  Proof: docs/proofs/marginals.md.
    """
    buckets = count_buckets(counts.size)
    if buckets == 1:
        rate = budget.epsilon
        total = run.add_noise(counts.sum(keepdims=True), sensitivity=1, budget=budget)
        return NoisyMarginal("structure-first", counts.size, total, rate, ends=(counts.size,))
    budgets = budget.split(cuts=1, counts=1)
    ends = choose_ends(run, counts, buckets, budget=budgets["cuts"])
    rate = budgets["counts"].epsilon
    sums = np.add.reduceat(counts, (0, *ends[:-1]))
    noisy = run.add_noise(sums, sensitivity=1, budget=budgets["counts"])
    return NoisyMarginal("structure-first", counts.size, noisy, rate, ends=ends)


def choose_ends(run: Run, counts: IntArray, buckets: int, *, budget: Budget) -> tuple[int, ...]:
    """Choose where so many buckets of like counts end, from the last cut to the first.

    Privacy:
        As argued in `release_structure_first`; each cut gets an equal share.  Where earlier
        choices leave only one possibility, it is paid for all the same.
    """
    shares = iter(budget.split_evenly(buckets - 1, "cut"))
    costs = deviations(np.minimum(counts, LARGEST_COUNT))
    best = best_costs(costs, buckets)
    ends = [counts.size]
    for left in range(buckets, 1, -1):
        found = last_cut_costs(costs, best, left, ends[-1])
        chosen = run.select(-found, sensitivity_range=CHOICE_RANGE, budget=next(shares))
        ends.append(left - 1 + chosen)
    return tuple(reversed(ends))


def marginal_half_width(method: MarginalMethod, size: int, epsilon: Fraction) -> float:
    """Predict the error (95 %) of counting the records in the middle half of the values.

    Noise alone is predicted.  For noise-first and efpa it is that of counting value by
    value with what they leave for the numbers; on marginals that suit them they do better.
    For structure-first it is that of half of its buckets.
    """
    require_marginal(method, size, epsilon)
    chosen = choose_marginal(method, size)
    if chosen == "hierarchical":
        levels = count_hierarchy(size, best_branching(size)).levels
        return _NORMAL * sqrt(_middle_weight(size) * noise_variance(epsilon / levels))
    rate = epsilon * NUMBERS / (CHOICE + NUMBERS) if chosen == "efpa" else epsilon
    if chosen == "structure-first" and count_buckets(size) > 1:
        rate /= 2
    terms = -(-(count_buckets(size) if chosen == "structure-first" else size) // 2)
    if terms <= _FEW:
        return float(sum_quantile(rate, terms, 0.95))
    return _NORMAL * sqrt(terms * noise_variance(rate))


@lru_cache(maxsize=256)
def _middle_weight(size: int) -> float:
    """Add up the squares of what each node of the tree weighs in a count of the middle half."""
    nodes = count_hierarchy(size, best_branching(size)).adjoint(middle_half(size))
    return float(nodes @ nodes)
