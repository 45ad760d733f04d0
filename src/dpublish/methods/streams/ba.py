"""BA: publish when the counts have moved, with what the steps that were skipped have saved.

Known as: budget absorption.
Reference: G. Kellaris, S. Papadopoulos, X. Xiao, D. Papadias, "Differentially Private Event
Sequences over Infinite Streams", PVLDB 7(12), 2014.
"""

from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

from dpublish.core.method import Standing
from dpublish.methods.streams.bd import NoiseFloor, WEventMethod
from dpublish.methods.streams.policy import Compare, History, Policy, Publication, Repeat
from dpublish.methods.streams.snapshot import Bins

UNITS = "units"
"""Where the history remembers how many units the last publication took."""


@dataclass(frozen=True)
class BudgetAbsorption:
    """Policy: every step has one unit; a publication takes those of the steps skipped before.

    It then pays them back: as many steps after it as it took units beyond its own repeat.

    Attributes:
        window: Steps in a window, and most units that a publication takes.
        unit: An equal part of the pool for publications.
        price: What the comparison of a step costs.
        floor: Number of bins, and most rows of a person.
    """

    window: int
    unit: Fraction
    price: Fraction
    floor: NoiseFloor

    def plan(self, history: History) -> Compare | Repeat:
        """Repeat while the last publication is paid back, then compare with what is saved."""
        taken = int(history.memory.get(UNITS, 1))
        if history.age <= taken - 1:
            return Repeat()
        saved = history.age - (taken - 1)
        epsilon = min(self.window, saved) * self.unit
        return Compare(self.floor.threshold(history, epsilon), epsilon, self.price)

    def learn(self, history: History, publication: Publication) -> None:
        """Remember how many units the publication took, and how noisy it was."""
        self.floor.learn(history, publication)
        history.memory[UNITS] = int(publication.epsilon / self.unit)


@dataclass(frozen=True, kw_only=True)
class BA(WEventMethod):
    """Publish a fresh histogram when it is closer than the last, with what skipped steps saved.

    BA is budget absorption: a publication spends the units of the steps that were skipped before
    it, and steps after it pay them back.  Choose it to compare with the literature; `DSATw` has
    the smaller error.

    Guarantee:
        Pure epsilon-differential privacy for all rows of one person within any `window`
        consecutive steps (w-event privacy for people).  A snapshot keeps at most `contribution`
        rows of a person.  Proof: docs/proofs/stream.md.

    Parameters:
        columns: Columns to count by; `"age@2"` takes age at level 2 of its taxonomy.
        window: Number of consecutive steps within which a person is hidden (w).
        decision_share: Share of epsilon that pays for comparisons; unless given 1/2, or
            window / bins if there are more than twice as many bins as steps in a window.
        contribution, static, smoothing, trust_rows: Settings of every stream: the bound on a
            person's rows and how one histogram is published (`help(StreamMethod)`).

    Returns:
        A `Stream`, from `start`.  Its `next(table, rng=...)` returns a `Step`: `epsilon` is what
        the step took, 0 if it repeated the last histogram; `estimate` has a count for each bin.

    Example:
        >>> from dpublish import BA, Budget, open_table, seeded
        >>> from dpublish.datasets.streams import bursty_stream, snapshots
        >>> people = bursty_stream((10,), people=2_000, steps=12, bursts=2, seed=1)
        >>> rng, budget = seeded(7), Budget.seeded("2")
        >>> stream = BA(columns=("x1",), window=6).start(people.schema, budget=budget, rng=rng)
        >>> for rows in snapshots(people):
        ...     step = stream.next(open_table(rows, people.schema), rng=rng)
        ...     if step.epsilon > stream.receipt.epsilon / 10:  # more than one unit
        ...         print(f"step {step.number} took epsilon {step.epsilon}")
        step 4 took epsilon 1/3
        step 9 took epsilon 1/3
        step 12 took epsilon 1/3

    Reference:
        G. Kellaris, S. Papadopoulos, X. Xiao, D. Papadias (2014), "Differentially Private Event
        Sequences over Infinite Streams", PVLDB 7(12).
    """

    name: ClassVar[str] = "ba"
    proofs: ClassVar[tuple[str, ...]] = ("stream", "exact")
    publishes: ClassVar[str] = (
        "a fresh histogram when it is closer than the last, with what skipped steps left"
    )
    prefer_when: ClassVar[str] = "you compare with the literature (BA)"
    standing: ClassVar[Standing] = "baseline"

    def policy(self, bins: Bins, epsilon: Fraction) -> Policy:
        """Return the policy for windows of `epsilon`."""
        return BudgetAbsorption(
            window=self.window,
            unit=self.smallest(bins, epsilon),
            price=self.price(bins, epsilon),
            floor=NoiseFloor(bins.size, self.contribution),
        )

    def smallest(self, bins: Bins, epsilon: Fraction) -> Fraction:
        """Return the unit: a publication costs at least one, and more after skipped steps."""
        return self.pool(bins, epsilon) / self.window

    def publication_epsilon(self, bins: Bins, epsilon: Fraction) -> Fraction:
        """Return the unit as what a publication costs."""
        return self.smallest(bins, epsilon)
