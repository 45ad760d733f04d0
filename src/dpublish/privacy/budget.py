"""A budget: an amount of epsilon that can be split or spent, once.

An algorithm is handed one `Budget` and hands parts of it down.  No budget opens twice and
shares are exact fractions, so the parts never add up to more than the whole, and no code keeps
a running total by hand.  Budgets are made by the ledger (`granted`), for experiments
(`seeded`), or from other budgets by the verbs below; there is no other way.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from fractions import Fraction
from threading import Lock
from typing import NoReturn

from dpublish.errors import BudgetAlreadyUsed, InvalidParameter, require_count, require_positive
from dpublish.privacy.amplification import amplified_epsilon
from dpublish.privacy.epsilon import (
    EpsilonLike,
    format_epsilon,
    format_short,
    how_read,
    parse_epsilon,
)
from dpublish.privacy.levels import LevelAmounts, largest, require_amounts
from dpublish.privacy.neighbors import AddRemoveRecord, Neighbors, hides_units


@dataclass(frozen=True)
class Grant:
    """Where a budget came from: an entry of a ledger, debited before any row was read."""

    dataset: str
    entry: int
    entry_hash: str
    time: str = field(default="", compare=False)


class Budget:
    """A budget of `epsilon`, granted by the ledger or split off another budget.

    >>> whole = Budget.seeded("0.5")
    >>> shares = whole.split(size=1, counts=4)
    >>> shares["counts"].spend()
    Fraction(2, 5)
    >>> [(share.purpose, str(share.epsilon)) for share in whole.account()]
    [('release/size', '1/10'), ('release/counts', '2/5')]
    """

    _epsilon: Fraction
    _purpose: str
    _grant: Grant | None
    _levels: LevelAmounts | None
    _hides: Neighbors | None
    _opened: str
    _epsilon_read: str
    _lock: Lock
    _process: int
    _is_used: bool
    _is_part: bool
    _children: list[Budget]
    _is_parallel: bool

    def __init__(self, *_: object, **__: object) -> None:
        raise TypeError(
            "budgets are not constructed: Ledger.grant(...) debits one, and "
            "Budget.seeded(epsilon) makes one for experiments"
        )

    @classmethod
    def seeded(
        cls,
        epsilon: EpsilonLike,
        purpose: str = "release",
        *,
        levels: LevelAmounts | None = None,
    ) -> Budget:
        """Make a budget that no ledger granted: for experiments, plans and tests.

        Whatever it pays for is stamped: no ledger adds it up.

        >>> Budget.seeded("0.5").grant is None
        True
        """
        exact = _require_largest(parse_epsilon(epsilon), levels)
        return cls._make(exact, purpose, levels=levels, epsilon_read=how_read(epsilon))

    @classmethod
    def granted(
        cls,
        epsilon: EpsilonLike,
        purpose: str = "release",
        *,
        grant: Grant,
        levels: LevelAmounts | None = None,
        hides: Neighbors | None = None,
        epsilon_read: str = "",
    ) -> Budget:
        """Make the budget that an entry of a ledger has debited; for the ledger alone.

        Its time is that of the entry, so that it does not depend on any row.  `epsilon_read`
        says how epsilon was read, if it was not given exactly (`how_read`).
        """
        exact = _require_largest(parse_epsilon(epsilon), levels)
        opened = grant.time or None
        return cls._make(
            exact,
            purpose,
            grant=grant,
            levels=levels,
            hides=hides,
            opened=opened,
            epsilon_read=epsilon_read or how_read(epsilon),
        )

    @classmethod
    def _make(
        cls,
        epsilon: Fraction,
        purpose: str,
        *,
        grant: Grant | None = None,
        levels: LevelAmounts | None = None,
        hides: Neighbors | None = None,
        opened: str | None = None,
        is_part: bool = False,
        epsilon_read: str = "",
    ) -> Budget:
        budget = object.__new__(cls)
        budget._epsilon = epsilon
        budget._purpose = purpose
        budget._grant = grant
        budget._levels = levels
        budget._hides = hides
        budget._opened = opened or datetime.now(UTC).isoformat(timespec="seconds")
        budget._is_part = is_part
        budget._epsilon_read = epsilon_read
        budget._lock = Lock()
        budget._process = os.getpid()
        budget._is_used = False
        budget._children = []
        budget._is_parallel = False
        return budget

    def __repr__(self) -> str:
        state = "used" if self._is_used else "full"
        return f"Budget({format_epsilon(self.epsilon)!r}, {self.purpose!r}, {state})"

    def __reduce__(self) -> NoReturn:
        # A copy would be a second budget with the same epsilon.
        raise TypeError("a budget cannot be copied or pickled")

    @property
    def epsilon(self) -> Fraction:
        """What the budget holds; what a ledger debited cannot be changed afterward."""
        return self._epsilon

    @property
    def purpose(self) -> str:
        """What the budget is for."""
        return self._purpose

    @property
    def is_part(self) -> bool:
        """Whether it was made from another budget: it pays within that one's release only."""
        return self._is_part

    @property
    def grant(self) -> Grant | None:
        """The entry that debited it, if a ledger granted it."""
        return self._grant

    @property
    def levels(self) -> LevelAmounts | None:
        """What each level paid for the grant that the budget is part of, if it is personalized."""
        return self._levels

    @property
    def hides(self) -> Neighbors | None:
        """The change that the ledger was told it pays to hide, if a ledger granted it."""
        return self._hides

    @property
    def opened(self) -> str:
        """When the ledger granted it, or when it was made: in any case before rows were read.

        The only time that a release may show.  The time at which it ended would reveal how long
        it took, and so how many rows there are.
        """
        return self._opened

    @property
    def epsilon_read(self) -> str:
        """How epsilon was read, for the receipt, if it was given as a float."""
        return self._epsilon_read

    @property
    def is_used(self) -> bool:
        """Whether the budget was split or spent already."""
        return self._is_used

    def spend(self) -> Fraction:
        """Empty the budget on one mechanism and return its epsilon."""
        self._open()
        return self.epsilon

    def split(self, **weights: int | Fraction) -> dict[str, Budget]:
        """Share the budget out by name, in proportion to `weights` (sequential composition).

        Weights are exact: integers or fractions (`rational_weight` rounds a real one).
        The last share takes what is left, so that the shares add up to the whole exactly.
        """
        if not weights:
            raise InvalidParameter("a budget is split into at least one share")
        for name, weight in weights.items():
            if isinstance(weight, bool) or not isinstance(weight, (int, Fraction)):
                raise InvalidParameter(f"the weight of {name!r} must be an integer or Fraction")
        require_positive(**weights)
        total = sum(weights.values(), Fraction(0))
        shares = [self.epsilon * weight / total for weight in weights.values()]
        shares[-1] = self.epsilon - sum(shares[:-1], Fraction(0))
        self._open()
        return self._hand_down(dict(zip(weights, shares, strict=True)))

    def split_evenly(self, count: int, name: str = "round") -> list[Budget]:
        """Share the budget out into `count` equal parts, named by number."""
        require_count(count=count)
        return list(self.split(**{f"{name}-{index + 1}": 1 for index in range(count)}).values())

    def share_disjoint(self, names: Iterable[str]) -> dict[str, Budget]:
        """Share the whole budget with every one of several disjoint parts of the data.

        Privacy:
            Parallel composition: under adding or removing one record, that record lies in one
            part only, so the cost is the largest share, not the sum.  The caller must assign
            records to parts by a rule that looks at the record alone (or at earlier releases).
            It does not hold when a record is replaced, or where a unit owns several rows.
        """
        parts = dict.fromkeys(names, self.epsilon)
        if not parts:
            raise InvalidParameter("a budget is shared over at least one part")
        self._open()
        self._is_parallel = True
        return self._hand_down(parts)

    def share_groups(self, amounts: Mapping[str, Fraction]) -> dict[str, Budget]:
        """Share the budget with several disjoint parts of the data, each with its own amount.

        The largest amount is the whole budget, so that nothing is left over.

        Privacy:
            Parallel composition as in `share_disjoint`, with the same assumptions: a record
            lies in one part only and pays that part's amount, the largest at most.
        """
        if not amounts:
            raise InvalidParameter("a budget is shared over at least one part")
        if not all(isinstance(amount, Fraction) and amount > 0 for amount in amounts.values()):
            raise InvalidParameter("every part's amount must be a Fraction greater than 0")
        most = max(amounts.values())
        if most != self.epsilon:
            raise InvalidParameter(
                f"the largest amount ({format_short(most)}) must be the whole budget "
                f"({format_short(self.epsilon)})"
            )
        self._open()
        self._is_parallel = True
        return self._hand_down(dict(amounts))

    def at_most(self, epsilon: Fraction, *, hides: Neighbors | None = None) -> Budget:
        """Empty the budget, and return one of `epsilon`, which is not more, to spend instead.

        For a release within a release that costs less than its share, or that costs its share
        by an argument of the caller's: names the change that it `hides` itself, if that is not
        what the whole grant hides.

        Privacy:
            The whole budget is spent, and what is spent with the one returned is at most that.
            If the inner release hides another change than the grant (a row, where the grant
            hides all rows of a unit), the caller must argue that it costs the grant's change
            no more than this budget.
        """
        if not isinstance(epsilon, Fraction) or not 0 < epsilon <= self.epsilon:
            raise InvalidParameter(
                f"a share of {format_short(self.epsilon)} pays for a Fraction above 0 and at most "
                "that, nothing else"
            )
        self._open()
        return self._derive(epsilon, self.purpose, hides or self.hides)

    def for_rows(self, most: int, *, hides: Neighbors | None = None) -> Budget:
        """Empty the budget, and return the one that may be spent on single rows of a unit.

        For a table in which every unit has at most `most` rows, chosen among its own alone.
        `hides` is the change to such a row that is hidden, if it has a level of its own.

        >>> str(Budget.seeded("0.5").for_rows(4).epsilon)
        '1/8'

        Privacy:
            Group privacy.  The tables of two neighbors, one with a unit more, differ in at most
            m = `most` rows of that unit, all added or all removed.  Adding them one by one is a
            chain of at most m tables, each with one record more than the one before; what is
            epsilon / m-private for one record changes no probability by more than
            exp(epsilon / m) at each step, and by exp(epsilon) over the chain.  Where people have
            levels, all rows of a person are at the person's level, so each step costs what one
            row of that level does: the amount of every level is divided by m, too.
        """
        require_count(most=most)
        if self.hides is not None and not hides_units(self.hides):
            raise InvalidParameter(f"records of a person do not make up {self.hides.brief()}")
        levels = None
        if self.levels is not None:
            levels = tuple((level, amount / most) for level, amount in self.levels)
        self._open()
        return self._derive(self.epsilon / most, self.purpose, hides or AddRemoveRecord(), levels)

    def amplified(self, rate: Fraction) -> Budget:
        """Empty the budget, and return the larger one that may be spent on a random sample.

        >>> budget = Budget.seeded("0.1").amplified(Fraction(1, 10))
        >>> round(float(budget.epsilon), 4)
        0.7187

        Privacy:
            Amplification by sampling.  The caller keeps each record with probability `rate`,
            exactly, independently and unseen.  A mechanism that is y-private for one record of
            the sample added or removed is ln(1 + rate (e^y - 1))-private for one of the table;
            y is chosen such that this is at most the budget (`amplified_epsilon` rounds down).
            It does not hold when a record is exchanged, or where a unit owns several rows.
        """
        if not isinstance(rate, Fraction) or not 0 < rate <= 1:
            raise InvalidParameter("a sampling rate must be a Fraction above 0 and at most 1")
        if not isinstance(self.hides, AddRemoveRecord | None):
            raise InvalidParameter(f"sampling does not help to hide {self.hides.brief()}")
        self._open()
        return self._derive(
            amplified_epsilon(self.epsilon, rate), f"{self.purpose}/sample", self.hides
        )

    def require_levels(self, amounts: LevelAmounts) -> None:
        """Refuse to cost any level more than was granted there; call it before rows are read."""
        require_amounts(amounts)
        granted = None if self.levels is None else dict(self.levels)
        if granted is not None and granted.keys() != dict(amounts).keys():
            raise InvalidParameter("the release has other levels than the grant that pays for it")
        for level, amount in amounts:
            limit = self.epsilon if granted is None else granted[level]
            if amount > limit:
                raise InvalidParameter(
                    f"the release would cost level {format_short(level)} "
                    f"{format_short(amount)}, but only {format_short(limit)} was granted there"
                )

    def account(self) -> list[Budget]:
        """List the budgets at the ends of the tree, in the order in which they were made."""
        if not self._children:
            return [self]
        return [leaf for child in self._children for leaf in child.account()]

    def parallel_purposes(self) -> list[str]:
        """List the purposes whose budget was shared over disjoint parts."""
        below = [purpose for child in self._children for purpose in child.parallel_purposes()]
        return [self.purpose, *below] if self._is_parallel else below

    def cost(self) -> Fraction:
        """Add up the tree from its ends: sums of sequential shares, the largest of parallel ones.

        It equals `epsilon` by construction; tests compare the two.
        """
        if not self._children:
            return self.epsilon
        costs = [child.cost() for child in self._children]
        return max(costs) if self._is_parallel else sum(costs, Fraction(0))

    def _hand_down(self, shares: dict[str, Fraction]) -> dict[str, Budget]:
        budgets = {
            name: self._derive(share, f"{self.purpose}/{name}", self.hides, self.levels)
            for name, share in shares.items()
        }
        self._children = list(budgets.values())
        return budgets

    def _derive(
        self,
        epsilon: Fraction,
        purpose: str,
        hides: Neighbors | None,
        levels: LevelAmounts | None = None,
    ) -> Budget:
        """Make a budget of the same grant and time; levels are what the whole grant cost."""
        return self._make(
            epsilon,
            purpose,
            grant=self.grant,
            levels=levels,
            hides=hides,
            opened=self.opened,
            is_part=True,
        )

    def _open(self) -> None:
        if os.getpid() != self._process:
            # Parent and child hold the same budget after a fork; only one may spend it.
            raise BudgetAlreadyUsed(f"the budget for {self.purpose!r} belongs to another process")
        with self._lock:
            if self._is_used:
                raise BudgetAlreadyUsed(
                    f"the budget for {self.purpose!r} is already used; grant a new one"
                )
            self._is_used = True


def _require_largest(epsilon: Fraction, levels: LevelAmounts | None) -> Fraction:
    if levels is not None:
        require_amounts(levels)
        if largest(levels) != epsilon:
            raise InvalidParameter("epsilon must be the largest amount that any level pays")
    return epsilon
