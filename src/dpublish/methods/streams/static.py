"""One histogram of one snapshot: the static method inside a stream."""

from fractions import Fraction
from typing import Literal, Protocol, get_args

import numpy as np
from numpy.typing import NDArray

from dpublish.accuracy.noise_distribution import noise_variance
from dpublish.data.schema import Schema
from dpublish.errors import require_known
from dpublish.mechanisms.exact.sampler import require_rate
from dpublish.mechanisms.noise import add_geometric
from dpublish.methods.streams.bins import Bins
from dpublish.methods.streams.reading import Reading
from dpublish.privacy.budget import Budget
from dpublish.randomness import RandomSource

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

    def publish(
        self, reading: Reading, *, contribution: int, budget: Budget, rng: RandomSource
    ) -> tuple[NDArray[np.int64], float]:
        """Publish a count for every bin, and say what variance noise gives one of them.

        Privacy:
            `budget.epsilon`-differentially private when up to `contribution` rows are added
            or removed; the variance is computed from public facts.
        """
        ...


class IdentityHistogram:
    """Independent noise in every bin."""

    def check(self, schema: Schema, bins: Bins, rate: Fraction = Fraction(1)) -> None:
        """Take any bins."""
        require_rate(rate)

    def publish(
        self, reading: Reading, *, contribution: int, budget: Budget, rng: RandomSource
    ) -> tuple[NDArray[np.int64], float]:
        """Perturb every bin by itself.

        Privacy:
            `budget.epsilon`-differentially private when up to `contribution` rows are added
            or removed: each lies in one bin, so the counts move by at most that in all
            (`add_geometric`).
        """
        rate = budget.epsilon / contribution
        share = budget.split(counts=1)["counts"]  # opened before the snapshot is read
        noisy = add_geometric(reading.counts, sensitivity=contribution, budget=share, rng=rng)
        return noisy, max(noise_variance(rate), LEAST_VARIANCE)


def static_histogram(name: StaticName) -> StaticHistogram:
    """Find a static method by its name; the others are loaded only when they are wanted."""
    require_known("static", name, get_args(StaticName))
    if name == "identity":
        return IdentityHistogram()
    if name == "grouped":
        from dpublish.methods.streams.grouped_histogram import GroupedHistogram

        return GroupedHistogram()
    from dpublish.methods.streams.method_histogram import MethodHistogram

    return MethodHistogram(name)


def round_running(values: NDArray[np.float64]) -> NDArray[np.int64]:
    """Round estimates to integers so that every running total is right, but for 1/2.

    Each by itself would lose all records that many bins hold less than half a one of.

    >>> round_running(np.array([0.4, 0.4, 0.4, 7.0, -0.6])).tolist()
    [0, 1, 0, 7, 0]
    """
    below = np.floor(values)
    carried = np.diff(np.rint(np.cumsum(values - below)), prepend=0.0)
    return np.asarray(below + carried).astype(np.int64)
