"""One histogram of one snapshot: the static method inside a stream.

- `identity` adds independent noise to every bin.
- `grouped` counts similar bins together.  Half of the budget measures a rough histogram, which
  shows which bins are so small, or so much like many others, that a count of their own would be
  mostly noise.  These are put into groups of similar rough counts; the other half of the budget
  measures one total for every group, and for every bin that stands alone.  An estimate weighs
  both.  Related: NoiseFirst and StructureFirst (J. Xu et al., "Differentially Private Histogram
  Publication", ICDE 2012) merge neighboring bins; here bins are alike by count, wherever they
  are.  The rough counts are read by nonparametric empirical Bayes (H. Robbins, 1956).
- Every other name is a method that counts.  It sees a table with one row for every record that
  the snapshot keeps; each row holds its bin and nothing else.  The count of every bin is read
  from what the method published.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from importlib import import_module
from math import ceil
from typing import Any, Literal, NamedTuple, Protocol, get_args

import numpy as np

from dpublish.accuracy.noise_distribution import noise_variance
from dpublish.core.method import Method
from dpublish.core.released import Release
from dpublish.data.schema import Schema
from dpublish.errors import InvalidParameter, require_known
from dpublish.mechanisms.exact.sampler import require_rate
from dpublish.methods.streams.snapshot import Bins, StepRun, rows_of, schema_of
from dpublish.privacy.budget import Budget
from dpublish.privacy.neighbors import AddRemoveRecord
from dpublish.randomness import seeded
from dpublish.types import FloatArray, IntArray

StaticName = Literal[
    "identity",
    "grouped",
    "hierarchical",
    "efpa",
    "noise-first",
    "psd",
    "ug",
    "ag",
    "privelet",
    "p-hp",
    "filter-priority",
]

LEAST_VARIANCE = 1e-9
"""Noise of a steep rate is 0 but for one draw in very many; estimates are weighed by it."""
ROUNDING = 1 / 6
"""About what `round_running` adds to the variance of a count."""


class StaticHistogram(Protocol):
    """A method that publishes one histogram of a snapshot."""

    def check(self, schema: Schema, bins: Bins, rate: Fraction = Fraction(1)) -> None:
        """Refuse bins that the method cannot publish, or not at `rate` = epsilon per row."""
        ...

    def publish(self, run: StepRun, *, budget: Budget) -> tuple[IntArray, float]:
        """Publish a count for every bin, and the variance that noise gives one of them.

        Privacy:
            `budget.epsilon`-differentially private when up to `run.contribution` rows are
            added or removed; the variance is computed from what is public.
        """
        ...


def static_histogram(name: StaticName) -> StaticHistogram:
    """Find a static method by its name."""
    require_known("static", name, get_args(StaticName))
    if name == "identity":
        return IdentityHistogram()
    return GroupedHistogram() if name == "grouped" else MethodHistogram(name)


def round_running(values: FloatArray) -> IntArray:
    """Round estimates to integers so that every running total is right, but for 1/2.

    Each by itself would lose all records that many bins hold less than half a one of.

    >>> round_running(np.array([0.4, 0.4, 0.4, 7.0, -0.6])).tolist()
    [0, 1, 0, 7, 0]
    """
    below = np.floor(values)
    carried = np.diff(np.rint(np.cumsum(values - below)), prepend=0.0)
    return np.asarray(below + carried).astype(np.int64)


class IdentityHistogram:
    """Independent noise in every bin."""

    def check(self, schema: Schema, bins: Bins, rate: Fraction = Fraction(1)) -> None:
        """Take any bins."""
        require_rate(rate)

    def publish(self, run: StepRun, *, budget: Budget) -> tuple[IntArray, float]:
        """Add noise to every bin by itself.

        Privacy:
            `budget.epsilon`-differentially private when up to `run.contribution` rows are
            added or removed: each lies in one bin, so the counts move by at most that in all
            (`StepRun.add_noise`).
        """
        rate = budget.epsilon / run.contribution
        share = budget.split(counts=1)["counts"]  # opened before the snapshot is read
        noisy = run.add_noise(run.counts, budget=share)
        return noisy, max(noise_variance(rate), LEAST_VARIANCE)


# --- Similar bins counted together ----------------------------------------------------------

ROUGH_SHARE = Fraction(1, 2)
_ALONE = 0.5  # bins of more variance, in units of a total's, get a total of their own
_STEPS = 4  # steps of the lattice in a standard deviation of the noise
_WIDEST = 8  # standard deviations beyond which noise is taken for 0
_LONGEST = 1 << 13  # steps of the lattice; larger counts stand alone, as they are
_ROUNDS = 40  # of fitting; more would fit the noise
_OTHERS = 2.0  # with so many bins nearby, half of the weight is theirs


class Guess(NamedTuple):
    """What rough counts say about the true ones: mean and variance of each."""

    means: FloatArray
    variances: FloatArray


class GroupedHistogram:
    """Rough counts first, then totals of groups of similar bins."""

    def check(self, schema: Schema, bins: Bins, rate: Fraction = Fraction(1)) -> None:
        """Take any bins; both halves of the budget must allow for noise."""
        require_rate(rate * min(ROUGH_SHARE, 1 - ROUGH_SHARE))

    def publish(self, run: StepRun, *, budget: Budget) -> tuple[IntArray, float]:
        """Publish an estimate of every bin, and its expected squared error.

        Privacy:
            `budget.epsilon`-differentially private when up to `run.contribution` rows are
            added or removed.  Each row lies in one bin, so the rough counts cost their share.
            The groups are a function of the noisy rough counts; whatever they are, each bin is
            in one group, so a row lies in one group and the totals cost the other share.
            The shares add up (adaptive composition).  Estimates and their error are computed
            from noisy numbers alone.  Proof: docs/proofs/grouped_histogram.md.
        """
        budgets = budget.split(rough=ROUGH_SHARE, totals=1 - ROUGH_SHARE)
        rough_rate = budgets["rough"].epsilon / run.contribution
        noise = noise_variance(budgets["totals"].epsilon / run.contribution)
        rough = run.add_noise(run.counts, budget=budgets["rough"])
        guess = read_rough(rough, float(rough_rate))
        groups = group_bins(guess, noise)
        exact = np.zeros(int(groups.max()) + 1, dtype=np.int64)
        np.add.at(exact, groups, run.counts)
        totals = run.add_noise(exact, budget=budgets["totals"])
        found = weigh(guess, groups, totals, noise)
        return round_running(found.means), float(found.variances.mean()) + ROUNDING


def read_rough(rough: IntArray, rate: float) -> Guess:
    """Estimate true counts from rough ones, by the distribution of all of them.

    The distribution of the true counts is fitted to that of the rough ones (the distribution of
    the noise is known), on a lattice of a quarter of the noise.  Then Bayes' rule gives mean and
    variance of each bin.  Where few bins are nearby there is nothing to learn from them, and
    the rough count stands for itself.
    """
    variance = noise_variance(rate)
    step = max(1, round(variance**0.5 / _STEPS))
    width = ceil(_WIDEST * variance**0.5 / step) + 1
    positions = np.rint(rough / step).astype(np.int64)
    size = int(np.clip(positions.max() + 1, 1, _LONGEST))
    is_near = positions < size
    positions = np.clip(positions, -width, size - 1)
    decay = np.exp(-rate * step * np.abs(np.arange(-width, width + 1)))
    seen = np.bincount(positions[is_near] + width, minlength=size + 2 * width).astype(np.float64)
    prior = _fit_prior(seen, decay / decay.sum(), size)
    means, variances = _apply_bayes(prior, decay, step, variance)
    nearby = np.convolve(seen, decay, mode="same") - 1
    trust = np.maximum(nearby, 0) / (np.maximum(nearby, 0) + _OTHERS)
    at = positions + width
    weight = np.where(is_near, trust[at], 0.0)
    return Guess(
        weight * means[at] + (1 - weight) * rough,
        weight * variances[at] + (1 - weight) * variance,
    )


def _fit_prior(seen: FloatArray, noise: FloatArray, size: int) -> FloatArray:
    """Find how likely each true count is, by expectation maximization from a smooth start."""
    width = noise.size // 2
    total = max(float(seen.sum()), 1.0)
    inside = seen[width : width + size].copy()
    inside[0] += seen[:width].sum()  # no count is below 0
    prior = np.convolve(inside + 0.1 * total / size, noise)[width : width + size]
    prior /= prior.sum()
    for _ in range(_ROUNDS):
        predicted = np.maximum(np.convolve(prior, noise), np.finfo(np.float64).tiny)
        prior *= np.convolve(seen / predicted, noise, mode="valid") / total
    return np.asarray(prior)


def _apply_bayes(prior: FloatArray, decay: FloatArray, step: int, most: float) -> Guess:
    """Compute mean and variance of the true count for every lattice point of a rough one."""
    counts = np.arange(prior.size) * float(step)
    weight = np.maximum(np.convolve(prior, decay), np.finfo(np.float64).tiny)
    means = np.convolve(prior * counts, decay) / weight
    squares = np.convolve(prior * counts**2, decay) / weight
    return Guess(means, np.clip(squares - means**2, 0, most))


def group_bins(guess: Guess, noise: float) -> IntArray:
    """Number the groups: alone where a bin is unsure, else with bins of a similar guess.

    `noise` is the variance of a total.  A group of bins, each of variance W, leaves less error
    in ranges of bins than totals of their own if W is below `noise`.  Bins are grouped only
    if W is below half of it, because queries name single bins, too.
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


# --- Any method that counts -----------------------------------------------------------------

MOST_BINS = 1 << 18
MOST_ROWS = 100_000
"""Most rows of the public table on which a method's noise is measured."""
_SEED = 1

_MARGINALS = ("hierarchical", "efpa", "noise-first")
_LOCATIONS: Mapping[str, str] = {
    **dict.fromkeys(_MARGINALS, "dpublish.methods.marginals.marginals:Marginals"),
    "psd": "dpublish.methods.spatial.psd:PSD",
    "ug": "dpublish.methods.spatial.ug:UG",
    "ag": "dpublish.methods.spatial.ag:AG",
    "privelet": "dpublish.methods.privelet.privelet:Privelet",
    "p-hp": "dpublish.methods.spatial.php:PHP",
    "filter-priority": "dpublish.methods.filter_priority.filter_priority:FilterPriority",
}


@dataclass(frozen=True)
class MethodHistogram:
    """One of the methods for a single table, run on every snapshot that is published."""

    name: str

    def check(self, schema: Schema, bins: Bins, rate: Fraction = Fraction(1)) -> None:
        """Refuse bins that the method cannot publish, or not at `rate` per row."""
        if bins.size > MOST_BINS:
            raise InvalidParameter(
                f"{self.name} takes at most {MOST_BINS:,} bins, not {bins.size:,}; use identity, "
                "or coarser columns"
            )
        if self.name in _MARGINALS and len(bins.axes) > 1:
            raise InvalidParameter(
                f"{self.name} publishes one column, not {len(bins.axes)}; use psd, ag or privelet"
            )
        self._method(bins).expected_error(schema_of(bins), None, rate)

    def publish(self, run: StepRun, *, budget: Budget) -> tuple[IntArray, float]:
        """Publish by the method, and count every bin in what it published.

        Privacy:
            `budget.epsilon`-differentially private when up to `run.contribution` = s rows are
            added or removed.  The method is epsilon / s-private for one row (it is handed a
            share of that much), so s rows, added one after the other, cost epsilon (group
            privacy).  A row of the snapshot is a row of the method's table (`rows_of`).
            Counts of bins are read from the release.  The variance is found by running the
            method again, on the published counts: that reads nothing private.
        """
        rate = budget.epsilon / run.contribution
        share = budget.at_most(rate, hides=AddRemoveRecord())
        method = self._method(run.bins)
        released = _count_bins(run.release(method, budget=share), run.bins)
        return released, _measure_noise(method, released, rate, run.bins)

    def _method(self, bins: Bins) -> Method[Any]:
        module, _, attribute = _LOCATIONS[self.name].partition(":")
        make: Callable[..., Method[Any]] = getattr(import_module(module), attribute)
        settings: dict[str, Any] = {"marginal": self.name} if self.name in _MARGINALS else {}
        return make(columns=bins.names, **settings)


def _count_bins(release: Release, bins: Bins) -> IntArray:
    """Read the count of every bin from a release about a table of bins; may be negative."""
    if release.kind not in _READERS:
        raise InvalidParameter(f"a release of kind {release.kind!r} does not count bins")
    return round_running(_READERS[release.kind](release, bins))


def _read_sample(release: Any, bins: Bins) -> FloatArray:
    """Add up the weights of a weighted sample of cells."""
    sums = np.bincount(release.cells, weights=release.weights, minlength=bins.size)
    return sums.astype(np.float64)


def _read_boxes(release: Any, bins: Bins) -> FloatArray:
    """Divide the estimate of every box evenly over its bins; a query for each bin takes long."""
    lows, highs = release.lows[release.ends], release.highs[release.ends]
    heights = release.estimates / np.prod(highs - lows, axis=1)
    found = np.zeros(bins.shape)
    for low, high, height in zip(lows.tolist(), highs.tolist(), heights.tolist(), strict=True):
        found[tuple(map(slice, low, high))] = height
    return found.ravel()


_READERS: Mapping[str, Callable[[Any, Bins], FloatArray]] = {
    "marginals": lambda release, bins: release.marginals[0].bins,
    "wavelet-histogram": lambda release, bins: release.estimates.ravel(),
    "cell-sample": _read_sample,
    "boxes": _read_boxes,
}
"""How the counts of bins are read, by the kind of a release; its module loads with its method."""


def _measure_noise(method: Method[Any], released: IntArray, rate: Fraction, bins: Bins) -> float:
    """Run a method on what it published, and compute the mean squared error of a bin.

    The published counts stand for the truth, which they resemble.  Of many records only a
    part is taken; with a rate that is higher in proportion the method works alike, on a
    smaller scale.
    """
    total = int(np.maximum(released, 0).sum())
    scale = Fraction(min(MOST_ROWS, total), total) if total else Fraction(1)
    public = round_running(np.maximum(released, 0) * float(scale))
    table = rows_of(public, bins)
    again = method.release(table, budget=Budget.seeded(rate / scale), rng=seeded(_SEED))
    error = (_count_bins(again, bins) - public) / float(scale)
    return max(float(np.mean(np.square(error))), ROUNDING)
