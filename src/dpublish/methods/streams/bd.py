"""BD: publish when the counts have moved, with half of what the window has left.

Known as: budget distribution.
Reference: G. Kellaris, S. Papadopoulos, X. Xiao, D. Papadias, "Differentially Private Event
Sequences over Infinite Streams", PVLDB 7(12), 2014.

`WEventMethod` and `NoiseFloor` are what BD and BA share: both pay for a comparison at every
step.  Each comparison has noise of its own; the distance is that from the last release, never
from the snapshot behind it.
"""

from dataclasses import dataclass
from fractions import Fraction
from math import ceil, sqrt
from typing import ClassVar

from dpublish.core.method import ExpectedError, Standing, setting
from dpublish.data.schema import Schema
from dpublish.errors import InvalidParameter, require_count
from dpublish.mechanisms.exact.sampler import require_rate
from dpublish.methods.streams.method import StreamMethod
from dpublish.methods.streams.policy import Compare, History, Policy, Publication, Repeat
from dpublish.methods.streams.snapshot import Bins

DEVIATION = "deviation"
"""Where the history remembers how noisy the last publication was."""
SMALLEST_PART = Fraction(1, 1 << 20)
"""Publications cost multiples of this part of epsilon, so that fractions stay short."""


@dataclass(frozen=True)
class NoiseFloor:
    """How far a fresh publication would be from the counts, by its noise alone.

    Noise of rate epsilon / s deviates by s / epsilon on average in each of d bins, so by
    d s / epsilon in all.
    A static histogram that is noisier than that shows it in its last publication.

    Attributes:
        bins: Number of bins (d).
        contribution: Most rows of one person in a snapshot (s).
    """

    bins: int
    contribution: int

    def threshold(self, history: History, epsilon: Fraction) -> int:
        """Return the least integer distance at which a publication with `epsilon` pays.

        >>> NoiseFloor(10, 1).threshold(History(5), Fraction(3))
        4
        """
        deviation = max(self.bins * self.contribution, int(history.memory.get(DEVIATION, 0)))
        return int(deviation // epsilon) + 1

    def learn(self, history: History, publication: Publication) -> None:
        """Remember how far all bins deviate together, for a publication with epsilon 1."""
        deviation = sqrt(history.noise / 2)  # on average, if the noise is a Laplace variable
        history.memory[DEVIATION] = ceil(self.bins * deviation * float(publication.epsilon))


@dataclass(frozen=True, kw_only=True)
class WEventMethod(StreamMethod):
    """What BD and BA share: settings, prices, and what they check before a stream starts."""

    horizon: ClassVar[int | None] = None

    window: int = setting("Hide a person within so many consecutive steps (w), for ever.")
    decision_share: Fraction | None = setting(
        "Share of epsilon that pays for comparisons; unless given 1/2, or window / bins if there "
        "are more than twice as many bins as steps in a window.",
        default=None,
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        require_count(window=self.window)
        share = self.decision_share
        if share is not None and not (isinstance(share, (Fraction, int)) and 0 < share < 1):
            raise InvalidParameter(f"decision_share ({share}) must be a Fraction between 0 and 1")

    def share(self, bins: Bins) -> Fraction:
        """Return the share of epsilon that pays for comparisons.

        The distance adds up over all bins, so with many bins its noise matters less than that
        of the publications, and most of epsilon goes there.
        """
        if self.decision_share is not None:
            return self.decision_share
        return Fraction(self.window, bins.size) if bins.size > 2 * self.window else Fraction(1, 2)

    def pool(self, bins: Bins, epsilon: Fraction) -> Fraction:
        """Return what the publications of any window may cost together."""
        return (1 - self.share(bins)) * epsilon

    def price(self, bins: Bins, epsilon: Fraction) -> Fraction:
        """Return what the comparison of one step costs."""
        return self.share(bins) * epsilon / self.window

    def smallest(self, bins: Bins, epsilon: Fraction) -> Fraction:
        """Return the least that a publication costs."""
        raise NotImplementedError

    def expected_error(
        self, schema: Schema, n_records: int | None, epsilon: Fraction
    ) -> ExpectedError:
        """Predict the noise of a publication, and refuse all that `start` would."""
        found = super().expected_error(schema, n_records, epsilon)
        bins = Bins.of(schema, self.columns)
        require_rate(self.price(bins, epsilon) / self.contribution)
        rate = self.smallest(bins, epsilon) / self.contribution
        self.static_histogram().check(schema, bins, rate)
        return found


@dataclass(frozen=True)
class BudgetDistribution:
    """Policy: offer half of what is left of the window's pool for publications.

    Attributes:
        pool: What the publications of any window may cost together.
        unit: What a publication costs is a multiple of this.
        price: What the comparison of a step costs.
        floor: Number of bins, and most rows of a person.
    """

    pool: Fraction
    unit: Fraction
    price: Fraction
    floor: NoiseFloor

    def plan(self, history: History) -> Compare | Repeat:
        """Compare: are the counts further from the last release than noise would be?"""
        half = (self.pool - history.recent_spending) / 2
        epsilon = half // self.unit * self.unit
        if epsilon == 0:  # known from past publications, so no comparison is needed
            return Repeat()
        return Compare(self.floor.threshold(history, epsilon), epsilon, self.price)

    def learn(self, history: History, publication: Publication) -> None:
        """Remember how noisy the static histogram is."""
        self.floor.learn(history, publication)


@dataclass(frozen=True, kw_only=True)
class BD(WEventMethod):
    """Publish a fresh histogram when it is closer than the last, with half of what is left.

    BD is budget distribution: a publication costs half of what the window has left.  Choose it
    to compare with the literature; `DSATw` has the smaller error.

    Guarantee:
        Pure epsilon-differential privacy for all rows of one person within any `window`
        consecutive steps (w-event privacy for people).  A snapshot keeps at most `contribution`
        rows of a person.  Proof: docs/proofs/stream.md.

    Parameters:
        columns: Columns to count by; `"age@2"` takes age at level 2 of its taxonomy.
        window: Number of consecutive steps within which a person is hidden (w).
        decision_share: Share of epsilon that pays for comparisons; as in `BA`.
        contribution, static, smoothing, trust_rows: Settings of every stream: the bound on a
            person's rows and how one histogram is published (`help(StreamMethod)`).

    Returns:
        A `Stream`, from `start`.  `next(table, rng=...)` publishes a `Step`, and
        `next_counts(counts, rng=...)` does if you have bounded and counted the rows yourself.

    Example:
        >>> import numpy as np
        >>> from dpublish import BD, Budget, Schema, column, seeded
        >>> zones = Schema((column("zone", "category", values=["north", "south"]),), unit="user")
        >>> rng, method = seeded(7), BD(columns=("zone",), window=6)
        >>> stream = method.start(zones, budget=Budget.seeded("2"), rng=rng)
        >>> for counts in [[900, 100]] * 3 + [[500, 500]] * 3:  # 400 people move
        ...     step = stream.next_counts(np.array(counts), rng=rng)
        ...     print(step.number, step.action, step.epsilon, step.estimate.tolist())
        1 published 1/2 [902.0, 98.0]
        2 published 1/4 [890.0, 101.0]
        3 published 1/8 [896.0, 134.0]
        4 published 1/16 [497.0, 510.0]
        5 repeated 0 [497.0, 510.0]
        6 repeated 0 [497.0, 510.0]

    Reference:
        G. Kellaris, S. Papadopoulos, X. Xiao, D. Papadias (2014), "Differentially Private Event
        Sequences over Infinite Streams", PVLDB 7(12).
    """

    name: ClassVar[str] = "bd"
    proofs: ClassVar[tuple[str, ...]] = ("stream", "exact")
    publishes: ClassVar[str] = (
        "a fresh histogram when it is closer than the last, with half of what is left"
    )
    prefer_when: ClassVar[str] = "you compare with the literature (BD)"
    standing: ClassVar[Standing] = "baseline"

    def policy(self, bins: Bins, epsilon: Fraction) -> Policy:
        """Return the policy for windows of `epsilon`."""
        return BudgetDistribution(
            pool=self.pool(bins, epsilon),
            unit=self.smallest(bins, epsilon),
            price=self.price(bins, epsilon),
            floor=NoiseFloor(bins.size, self.contribution),
        )

    def smallest(self, bins: Bins, epsilon: Fraction) -> Fraction:
        """Return the least that a publication costs."""
        return SMALLEST_PART * epsilon

    def publication_epsilon(self, bins: Bins, epsilon: Fraction) -> Fraction:
        """Take the second publication of a window as a usual one: a quarter of the pool."""
        return self.pool(bins, epsilon) / 4
