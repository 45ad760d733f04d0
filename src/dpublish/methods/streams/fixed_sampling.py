"""Fixed sampling: publish at fixed intervals and repeat the last histogram in between."""

from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

from dpublish.core.method import setting
from dpublish.errors import InvalidParameter, require_count
from dpublish.methods.streams.method import HorizonOrWindow
from dpublish.methods.streams.policy import History, Plan, Publication, Publish, Repeat
from dpublish.methods.streams.snapshot import Bins

USUAL_RELEASES = 10


@dataclass(frozen=True)
class FixedIntervals:
    """Policy: publish at steps 1, 1 + interval, 1 + 2 interval, ..., at an equal price."""

    interval: int
    price: Fraction

    def plan(self, history: History) -> Plan:
        """Publish if it is time."""
        return Repeat() if history.number % self.interval else Publish(self.price)

    def learn(self, history: History, publication: Publication) -> None:
        """Learn nothing."""


@dataclass(frozen=True, kw_only=True)
class FixedSampling(HorizonOrWindow):
    """Publish a fresh histogram at equal intervals, and repeat it in between.

    Each publication costs an equal share of the budget.  Choose it when counts drift steadily and
    you know how fast; choose `DSAT` or `DSATw` when you do not.

    Guarantee:
        Pure epsilon-differential privacy for all rows of one person in all steps of the horizon,
        or within any `window` consecutive steps.  A snapshot keeps at most `contribution` rows
        of a person.  Proof: docs/proofs/stream.md.

    Parameters:
        columns: Columns to count by; `"age@2"` takes age at level 2 of its taxonomy.
        horizon: Number of steps of the stream; give this or `window`.
        window: Number of consecutive steps within which a person is hidden; the stream never ends.
        releases: Most histograms within the horizon or a window (10 unless given).
        interval: Steps from one histogram to the next; give this or `releases`.
        contribution, static, smoothing, trust_rows: Settings of every stream: the bound on a
            person's rows and how one histogram is published (`help(StreamMethod)`).

    Returns:
        A `Stream`, from `start`.  Its `next(table, rng=...)` returns a `Step`; `noise` is the
        standard deviation that noise gives the estimate of one bin.

    Example:
        >>> from dpublish import Budget, FixedSampling, open_table, seeded
        >>> from dpublish.datasets.streams import drifting_stream, snapshots
        >>> people = drifting_stream((10,), people=2_000, steps=6, seed=1)
        >>> method = FixedSampling(columns=("x1",), horizon=6, interval=2)
        >>> stream = method.start(people.schema, budget=Budget.seeded("2"), rng=seeded(7))
        >>> for number, rows in enumerate(snapshots(people)):
        ...     step = stream.next(open_table(rows, people.schema), rng=seeded(number))
        ...     print(step.number, step.action, f"{step.noise:.1f}")
        1 published 2.1
        2 repeated 2.1
        3 published 2.1
        4 repeated 2.1
        5 published 2.1
        6 repeated 2.1

    Reference:
        The baseline of H. Li, L. Xiong, X. Jiang, J. Liu (2015), "Differentially Private
        Histogram Publication for Dynamic Datasets: An Adaptive Sampling Approach", CIKM.
    """

    name: ClassVar[str] = "fixed-sampling"
    proofs: ClassVar[tuple[str, ...]] = ("stream", "exact")
    publishes: ClassVar[str] = "a fresh histogram at equal intervals"
    prefer_when: ClassVar[str] = "counts drift steadily and you know how fast"

    releases: int | None = setting(
        "Most histograms to publish within the horizon or a window; 10 unless given.",
        default=None,
    )
    interval: int | None = setting(
        "Steps from one histogram to the next, instead of releases.", default=None
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.releases is not None and self.interval is not None:
            raise InvalidParameter(
                "give releases or interval, not both: one follows from the other"
            )
        for name in ("releases", "interval"):
            if getattr(self, name) is not None:
                require_count(**{name: getattr(self, name)})

    def policy(self, bins: Bins, epsilon: Fraction) -> FixedIntervals:
        """Return the policy for a stream of `epsilon`."""
        return FixedIntervals(self._steps_between(), self.publication_epsilon(bins, epsilon))

    def publication_epsilon(self, bins: Bins, epsilon: Fraction) -> Fraction:
        """Return what every histogram costs: no more of them lie in the horizon or any window."""
        return epsilon / _divided_up(self.span, self._steps_between())

    def _steps_between(self) -> int:
        return self.interval or _divided_up(self.span, self.releases or USUAL_RELEASES)


def _divided_up(total: int, parts: int) -> int:
    return -(-total // parts)
