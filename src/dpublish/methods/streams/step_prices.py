"""Methods that pay for a comparison at every step: what BD and BA have in common.

Reference: G. Kellaris, S. Papadopoulos, X. Xiao, D. Papadias, "Differentially Private Event
Sequences over Infinite Streams", PVLDB 7(12), 2014.  Comparisons are perturbed with noise of
their own at every step; the distance is that from the last release, never from the snapshot
behind it.
"""

from dataclasses import dataclass
from fractions import Fraction
from math import ceil, sqrt
from typing import ClassVar

from dpublish.core.method import ExpectedError, setting
from dpublish.data.schema import Schema
from dpublish.errors import InvalidParameter, require_count
from dpublish.mechanisms.exact.sampler import require_rate
from dpublish.methods.streams.bins import Bins
from dpublish.methods.streams.history import History, Publication
from dpublish.methods.streams.method import StreamMethod

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


@dataclass(frozen=True, kw_only=True)
class PricedMethod(StreamMethod):
    """Settings of both methods, and what they check before a stream starts."""

    horizon: ClassVar[int | None] = None

    window: int = setting("Hide a user within so many consecutive steps (w), for ever.")
    decision_share: Fraction | None = setting(
        "Part of epsilon that buys the comparisons; unless given 1/2, or window / bins if there "
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
        """Give the part of epsilon that buys comparisons.

        The distance adds up over all bins, so with many bins its noise matters less than that
        of the publications, and most of epsilon goes there.
        """
        if self.decision_share is not None:
            return self.decision_share
        return Fraction(self.window, bins.size) if bins.size > 2 * self.window else Fraction(1, 2)

    def pool(self, bins: Bins, epsilon: Fraction) -> Fraction:
        """Give what the publications of any window may cost together."""
        return (1 - self.share(bins)) * epsilon

    def price(self, bins: Bins, epsilon: Fraction) -> Fraction:
        """Give what the comparison of one step costs."""
        return self.share(bins) * epsilon / self.window

    def smallest(self, bins: Bins, epsilon: Fraction) -> Fraction:
        """Give the least that a publication costs."""
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
