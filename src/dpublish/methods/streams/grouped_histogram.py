"""A histogram whose small bins share their counts: alike bins are counted together.

Half of the budget buys a rough histogram.  It tells which bins are so small, or so much like
many others, that a count of their own would be mostly noise.  These are put into groups of
similar rough counts; the other half of the budget buys one total for every group, and for
every bin that stands alone.  An estimate weighs both.

Related: NoiseFirst and StructureFirst (J. Xu et al., "Differentially Private Histogram
Publication", ICDE 2012) merge neighboring bins; here bins are alike by count, wherever they
are.  The rough counts are read by nonparametric empirical Bayes (H. Robbins, 1956).
"""

from fractions import Fraction
from math import ceil
from typing import NamedTuple

import numpy as np

from dpublish.accuracy.noise_distribution import noise_variance
from dpublish.data.schema import Schema
from dpublish.mechanisms.exact.sampler import require_rate
from dpublish.mechanisms.noise import add_geometric
from dpublish.methods.streams.bins import Bins
from dpublish.methods.streams.reading import Reading
from dpublish.methods.streams.static import ROUNDING, round_running
from dpublish.privacy.budget import Budget
from dpublish.randomness import RandomSource
from dpublish.types import FloatArray, IntArray

ROUGH_SHARE = Fraction(1, 2)
_ALONE = 0.5  # bins less sure than this, in units of a total's variance, get one of their own
_STEPS = 4  # steps of the lattice in a standard deviation of the noise
_REACH = 8  # standard deviations beyond which noise is not looked for
_LONGEST = 1 << 13  # steps of the lattice; larger counts stand alone, as they are
_ROUNDS = 40  # of fitting; more would fit the noise
_OTHERS = 2.0  # with so many bins nearby, half of what is guessed from them is believed


class Guess(NamedTuple):
    """What rough counts say about the true ones: mean and variance of each."""

    means: FloatArray
    variances: FloatArray


class GroupedHistogram:
    """Rough counts first, then totals of groups of bins that look alike."""

    def check(self, schema: Schema, bins: Bins, rate: Fraction = Fraction(1)) -> None:
        """Take any bins; both halves of the budget must allow for noise."""
        require_rate(rate * min(ROUGH_SHARE, 1 - ROUGH_SHARE))

    def publish(
        self, reading: Reading, *, contribution: int, budget: Budget, rng: RandomSource
    ) -> tuple[IntArray, float]:
        """Publish an estimate of every bin, and its expected squared error.

        Privacy:
            `budget.epsilon`-differentially private when up to `contribution` rows are added
            or removed.  Each row lies in one bin, so the rough counts cost their share.  The
            groups are a function of the noisy rough counts; whatever they are, each bin is
            in one group, so a row lies in one group and the totals cost the other share.
            The shares add up (adaptive composition).  Estimates and their error are computed
            from noisy numbers alone.  Proof: docs/proofs/grouped_histogram.md.
        """
        budgets = budget.split(rough=ROUGH_SHARE, totals=1 - ROUGH_SHARE)
        rough_rate = budgets["rough"].epsilon / contribution
        noise = noise_variance(budgets["totals"].epsilon / contribution)
        rough = add_geometric(
            reading.counts, sensitivity=contribution, budget=budgets["rough"], rng=rng
        )
        guess = read_rough(rough, float(rough_rate))
        groups = group_bins(guess, noise)
        exact = np.zeros(int(groups.max()) + 1, dtype=np.int64)
        np.add.at(exact, groups, reading.counts)
        totals = add_geometric(exact, sensitivity=contribution, budget=budgets["totals"], rng=rng)
        found = weigh(guess, groups, totals, noise)
        return round_running(found.means), float(found.variances.mean()) + ROUNDING


def read_rough(rough: IntArray, rate: float) -> Guess:
    """Guess true counts from rough ones: how all bins spread tells what each is likely to be.

    The spread of the true counts is fitted to that of the rough ones (the distribution of the noise
    is known), on a lattice of a quarter of the noise.  Then Bayes' rule gives mean and
    variance of each bin.  Where few bins are nearby there is nothing to learn from them, and
    the rough count stands for itself.
    """
    variance = noise_variance(rate)
    step = max(1, round(variance**0.5 / _STEPS))
    reach = ceil(_REACH * variance**0.5 / step) + 1
    places = np.rint(rough / step).astype(np.int64)
    size = int(np.clip(places.max() + 1, 1, _LONGEST))
    is_near = places < size
    places = np.clip(places, -reach, size - 1)
    decay = np.exp(-rate * step * np.abs(np.arange(-reach, reach + 1)))
    seen = np.bincount(places[is_near] + reach, minlength=size + 2 * reach).astype(np.float64)
    spread = _fit_spread(seen, decay / decay.sum(), size)
    means, variances = _apply_bayes(spread, decay, step, variance)
    nearby = np.convolve(seen, decay, mode="same") - 1
    trust = np.maximum(nearby, 0) / (np.maximum(nearby, 0) + _OTHERS)
    at = places + reach
    weight = np.where(is_near, trust[at], 0.0)
    return Guess(
        weight * means[at] + (1 - weight) * rough,
        weight * variances[at] + (1 - weight) * variance,
    )


def _fit_spread(seen: FloatArray, noise: FloatArray, size: int) -> FloatArray:
    """Find how likely each true count is, by expectation and maximization from a smooth start."""
    reach = noise.size // 2
    total = max(float(seen.sum()), 1.0)
    inside = seen[reach : reach + size].copy()
    inside[0] += seen[:reach].sum()  # no count is below 0
    spread = np.convolve(inside + 0.1 * total / size, noise)[reach : reach + size]
    spread /= spread.sum()
    for _ in range(_ROUNDS):
        predicted = np.maximum(np.convolve(spread, noise), np.finfo(np.float64).tiny)
        spread *= np.convolve(seen / predicted, noise, mode="valid") / total
    return np.asarray(spread)


def _apply_bayes(spread: FloatArray, decay: FloatArray, step: int, most: float) -> Guess:
    """Give mean and variance of the true count for every place of a rough one."""
    counts = np.arange(spread.size) * float(step)
    weight = np.maximum(np.convolve(spread, decay), np.finfo(np.float64).tiny)
    means = np.convolve(spread * counts, decay) / weight
    squares = np.convolve(spread * counts**2, decay) / weight
    return Guess(means, np.clip(squares - means**2, 0, most))


def group_bins(guess: Guess, noise: float) -> IntArray:
    """Number the groups: alone where a bin is unsure, else with bins of a similar guess.

    `noise` is the variance of a total.  A group of bins, each of variance W, leaves less error
    in ranges of bins than totals of their own if W is below `noise`; a margin is kept, for
    single bins are asked for, too.
    """
    is_alone = guess.variances >= _ALONE * noise
    groups = np.empty(is_alone.size, dtype=np.int64)
    alone = int(np.count_nonzero(is_alone))
    groups[is_alone] = np.arange(alone)
    similar = guess.means[~is_alone]
    width = max(noise**0.5, 1.0)
    bands = np.floor((similar - similar.min(initial=0.0)) / width)
    groups[~is_alone] = alone + np.unique(bands, return_inverse=True)[1]
    return groups


def weigh(guess: Guess, groups: IntArray, totals: IntArray, noise: float) -> Guess:
    """Share the difference between total and guesses out, the more to a bin the less sure it is.

    It is the best linear estimate if the guesses are independent and have these variances.
    """
    unsure = np.bincount(groups, weights=guess.variances) + noise
    gap = totals - np.bincount(groups, weights=guess.means)
    # Noise of a steep rate is 0, and so may be all that a group is unsure of.
    share = guess.variances / np.maximum(unsure, np.finfo(np.float64).tiny)[groups]
    return Guess(
        guess.means + share * gap[groups],
        np.maximum(guess.variances * (1 - share), 0.0),
    )
