"""Per snapshot: publish a fresh histogram at every step, each with an equal share."""

from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

from dpublish.core.method import setting
from dpublish.methods.streams.method import StreamMethod, require_horizon_or_window
from dpublish.methods.streams.policy import History, Policy, Publication, Publish
from dpublish.methods.streams.snapshot import Bins


@dataclass(frozen=True)
class EveryStep:
    """Policy: publish at every step, at an equal price."""

    price: Fraction

    def plan(self, history: History) -> Publish:
        """Publish."""
        return Publish(self.price)

    def learn(self, history: History, publication: Publication) -> None:
        """Learn nothing."""


@dataclass(frozen=True, kw_only=True)
class PerSnapshot(StreamMethod):
    """Publish a fresh noisy histogram at every step.

    Each step costs an equal share of the budget.  Choose it when there are few steps, or as a
    baseline; choose `DSAT` or `DSATw` otherwise.

    Guarantee:
        Pure epsilon-differential privacy for all rows of one user in all steps of the horizon,
        or within any `window` consecutive steps.  A snapshot keeps at most `contribution` rows
        of a user.  Proof: docs/proofs/stream.md.

    Parameters:
        columns: Columns to count by; `"age@2"` takes age at level 2 of its taxonomy.
        horizon: Number of steps of the stream; give this or `window`.
        window: Number of consecutive steps within which a user is hidden; the stream never ends.
        contribution: Most rows of one user that a snapshot keeps.
        static: How one histogram is published; `"identity"` adds noise to every bin.
        smoothing: Whether publications are weighed against each other over time.
        trust_rows: Take a schema without a unit; you vouch for the contribution bound.

    Returns:
        `start` returns a `Stream`.  Its `next(table, rng=...)` returns a `Step` with `estimate`,
        `released`, `noise` and `spent`.  `StreamOperator` keeps a stream in files for years.

    Example:
        >>> from dpublish import Budget, PerSnapshot, open_table, seeded
        >>> from dpublish.datasets.streams import drifting_stream, snapshots
        >>> people = drifting_stream((10,), people=2_000, steps=6, seed=1)
        >>> rng, method = seeded(7), PerSnapshot(columns=("x1",), window=4)
        >>> stream = method.start(people.schema, budget=Budget.seeded("2"), rng=rng)
        >>> tables = (open_table(rows, people.schema) for rows in snapshots(people))
        >>> steps = [stream.next(table, rng=rng) for table in tables]
        >>> [(step.number, step.action, str(step.epsilon)) for step in steps[:3]]
        [(1, 'published', '1/2'), (2, 'published', '1/2'), (3, 'published', '1/2')]

    Reference:
        The baseline of H. Li, L. Xiong, X. Jiang, J. Liu (2015), "Differentially Private
        Histogram Publication for Dynamic Datasets: An Adaptive Sampling Approach", CIKM.
    """

    name: ClassVar[str] = "per-snapshot"

    horizon: int | None = setting("Number of steps of the stream.", default=None)
    window: int | None = setting(
        "Hide a user within so many consecutive steps, for ever; give horizon or window.",
        default=None,
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        require_horizon_or_window(self.horizon, self.window)

    def policy(self, bins: Bins, epsilon: Fraction) -> Policy:
        """Return the policy for a stream of `epsilon`."""
        return EveryStep(self.publication_epsilon(bins, epsilon))

    def publication_epsilon(self, bins: Bins, epsilon: Fraction) -> Fraction:
        """Return what every step costs."""
        return epsilon / (self.horizon or self.window or 1)
