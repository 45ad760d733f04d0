"""Per snapshot: publish a fresh histogram at every step, each with an equal share."""

from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

from dpublish.methods.streams.method import HorizonOrWindow
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
class PerSnapshot(HorizonOrWindow):
    """Publish a fresh noisy histogram at every step.

    Each step costs an equal share of the budget.  Choose it when there are few steps, or as a
    baseline; choose `DSAT` or `DSATw` otherwise.

    Guarantee:
        Pure epsilon-differential privacy for one person: all rows in the `horizon` steps, or in
        any `window` consecutive steps, at most `contribution` in a snapshot.  Shares add up to
        epsilon.  Proof: docs/proofs/stream.md.

    Parameters:
        columns: Columns to count by; `"age@2"` takes age at level 2 of its taxonomy.
        horizon: Number of steps of the stream; or `window` instead.
        window: Number of consecutive steps within which a person is hidden; the stream never ends.
        contribution, static, smoothing, trust_rows: Settings of every stream: the bound on a
            person's rows and how one histogram is published (`help(StreamMethod)`).

    Returns:
        A `Stream`, from `start`.  Its `next(table, rng=...)` returns a `Step` with the noisy
        counts (`released`), their `noise` and what was `spent` so far.

    Example:
        >>> import pyarrow as pa
        >>> from dpublish import Budget, PerSnapshot, Schema, column, open_table, seeded
        >>> schema = Schema((column("zone", "category", values=["north", "south"]),), unit="user")
        >>> rows = pa.table({"user": range(1_000), "zone": ["north"] * 900 + ["south"] * 100})
        >>> rng, snapshot = seeded(7), open_table(rows, schema)
        >>> method = PerSnapshot(columns=("zone",), horizon=4)
        >>> stream = method.start(schema, budget=Budget.seeded("2"), rng=rng)
        >>> stream.next(snapshot, rng=rng).released.tolist()
        [900, 102]
        >>> stream.next(snapshot, rng=rng).released.tolist()
        [898, 98]

    Reference:
        The baseline of H. Li, L. Xiong, X. Jiang, J. Liu (2015), "Differentially Private
        Histogram Publication for Dynamic Datasets: An Adaptive Sampling Approach", CIKM.
    """

    name: ClassVar[str] = "per-snapshot"
    proofs: ClassVar[tuple[str, ...]] = ("stream", "exact")
    publishes: ClassVar[str] = "a fresh noisy histogram at every step"
    prefer_when: ClassVar[str] = "there are few steps, or you want a baseline"

    def policy(self, bins: Bins, epsilon: Fraction) -> Policy:
        """Return the policy for a stream of `epsilon`."""
        return EveryStep(self.publication_epsilon(bins, epsilon))

    def publication_epsilon(self, bins: Bins, epsilon: Fraction) -> Fraction:
        """Return what every step costs."""
        return epsilon / self.span
