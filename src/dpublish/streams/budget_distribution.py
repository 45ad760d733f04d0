"""Publish when the counts have moved, with half of what the window has left.

Known as: BD, budget distribution.
Reference: G. Kellaris, S. Papadopoulos, X. Xiao, D. Papadias, "Differentially Private Event
Sequences over Infinite Streams", PVLDB 7(12), 2014.  Comparisons are blurred with noise of
their own at every step; the distance is that from the last release, never from the snapshot
behind it.
"""

from dataclasses import dataclass
from fractions import Fraction
from math import ceil, sqrt
from typing import ClassVar

from dpublish.data.schema import Schema
from dpublish.errors import InvalidParameter, require_count
from dpublish.mechanisms.exact import require_rate
from dpublish.release.recipe import ExpectedError, setting
from dpublish.streams.bins import Bins
from dpublish.streams.history import History, Publication
from dpublish.streams.method import StreamMethod
from dpublish.streams.plan import Ask, Repeat
from dpublish.streams.stream import Policy

SMALLEST_PART = Fraction(1, 1 << 20)
"""Publications cost multiples of this part of epsilon, so that fractions stay short."""
REACH = "reach"
"""Where the history remembers how noisy the last publication was."""


@dataclass(frozen=True)
class NoiseFloor:
    """How far a fresh publication would be from the counts, by its noise alone.

    Noise of rate epsilon / s strays by s / epsilon in each of d bins, d s / epsilon in all.
    A static histogram that is noisier than that shows it in its last publication.

    Attributes:
        bins: Number of bins (d).
        contribution: Most rows of one user in a snapshot (s).
    """

    bins: int
    contribution: int

    def threshold(self, history: History, epsilon: Fraction) -> int:
        """Give the least whole distance at which a publication with `epsilon` is worth it.

        >>> NoiseFloor(10, 1).threshold(History(5), Fraction(3))
        4
        """
        reach = max(self.bins * self.contribution, int(history.memory.get(REACH, 0)))
        return int(reach // epsilon) + 1

    def learn(self, history: History, publication: Publication) -> None:
        """Remember how far all bins stray together, for a publication with epsilon 1."""
        deviation = sqrt(history.noise / 2)  # on average, if the noise is a Laplace variable
        history.memory[REACH] = ceil(self.bins * deviation * float(publication.epsilon))


@dataclass(frozen=True)
class HalveTheRest:
    """Policy: offer half of what is left of the window's pool for publications.

    Attributes:
        pool: What the publications of any window may cost together.
        unit: What a publication costs is a multiple of this.
        price: What the comparison of a step costs.
        floor: Number of bins, and most rows of a user.
    """

    pool: Fraction
    unit: Fraction
    price: Fraction
    floor: NoiseFloor

    def plan(self, history: History) -> Ask | Repeat:
        """Ask whether the counts are further from the last release than noise would be."""
        half = (self.pool - history.recent_spending) / 2
        epsilon = half // self.unit * self.unit
        if epsilon == 0:  # known from past publications, so no question is needed
            return Repeat()
        return Ask(self.floor.threshold(history, epsilon), epsilon, self.price)

    def learn(self, history: History, publication: Publication) -> None:
        """Remember how noisy the static histogram is."""
        self.floor.learn(history, publication)


@dataclass(frozen=True, kw_only=True)
class BudgetDistribution(StreamMethod):
    """Recipe: half of the window's remaining budget for each publication, if it is worth it."""

    name: ClassVar[str] = "bd"
    horizon: ClassVar[int | None] = None

    window: int = setting("Hide a user within so many consecutive steps (w), for ever.")
    decision_share: Fraction | None = setting(
        "Part of epsilon that buys the comparisons; unless given 1/2, or window / bins if there "
        "are more than twice as many bins as steps in a window.",
        default=None,
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        require_decisions(self.window, self.decision_share)

    def policy(self, bins: Bins, epsilon: Fraction) -> Policy:
        """Give the policy for windows of `epsilon`."""
        share = share_of_decisions(self.decision_share, self.window, bins)
        return HalveTheRest(
            pool=(1 - share) * epsilon,
            unit=SMALLEST_PART * epsilon,
            price=share * epsilon / self.window,
            floor=NoiseFloor(bins.size, self.contribution),
        )

    def publication_epsilon(self, bins: Bins, epsilon: Fraction) -> Fraction:
        """Take the second publication of a window as a usual one: a quarter of the pool."""
        share = share_of_decisions(self.decision_share, self.window, bins)
        return (1 - share) * epsilon / 4

    def expected_error(
        self, schema: Schema, n_hint: int | None, epsilon: Fraction
    ) -> ExpectedError:
        """Foretell the noise of a publication, and refuse all that `start` would."""
        found = super().expected_error(schema, n_hint, epsilon)
        bins = Bins.of(schema, self.columns)
        share = share_of_decisions(self.decision_share, self.window, bins)
        require_rate(share * epsilon / self.window / self.contribution)
        smallest = SMALLEST_PART * epsilon / self.contribution
        self.static_histogram().check(schema, bins, smallest)
        return found


def share_of_decisions(given: Fraction | None, window: int, bins: Bins) -> Fraction:
    """Give the part of epsilon that buys comparisons.

    The distance adds up over all bins, so with many bins its noise matters less than that of
    the publications, and most of epsilon goes there.
    """
    if given is not None:
        return given
    return Fraction(window, bins.size) if bins.size > 2 * window else Fraction(1, 2)


def require_decisions(window: int, share: Fraction | None) -> None:
    """Refuse a window or a share of decisions that makes no sense."""
    require_count(window=window)
    if share is not None and not (isinstance(share, (Fraction, int)) and 0 < share < 1):
        raise InvalidParameter(f"decision_share ({share}) must be a Fraction between 0 and 1")
