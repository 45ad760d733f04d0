"""The account of a stream: what each step costs, checked before it is spent.

Two rules.  *User level*: all that is ever spent adds up to at most epsilon.  *Window level*:
so does all that one user's snapshots within any `window` consecutive steps can touch: the
publications and single comparisons made in those steps, and every run of comparisons that
shares a noisy threshold and was evaluated at least once in them.

Privacy:
    Budgets are debited before they are handed out, by exact fractions, and a debit that would
    exceed epsilon is refused.  So what a user's rows can touch costs at most epsilon, whatever
    a policy does (adaptive composition; docs/proofs/stream.md).
"""

from collections import deque
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

from dpublish.errors import BudgetExhausted
from dpublish.privacy.budget import Budget, Grant
from dpublish.privacy.epsilon import format_epsilon, format_short, read_exact


@dataclass
class StreamAccount:
    """What was spent, as far as it still counts.

    Attributes:
        epsilon: The most that any window (or the whole stream) may cost.
        window: Number of steps in a window; None for the whole stream.
        entries: Step and amount of what was spent (window level: in the current window).
        runs: First step, last step and amount of each run of comparisons that still counts.
        worst: The most that any window has cost so far (or the whole stream).
    """

    epsilon: Fraction
    window: int | None
    grant: Grant | None = None
    entries: deque[tuple[int, Fraction]] = field(default_factory=deque)
    runs: deque[tuple[int, int, Fraction]] = field(default_factory=deque)
    spent: Fraction = Fraction(0)
    worst: Fraction = Fraction(0)

    def begin_step(self, number: int) -> None:
        """Forget what no window with step `number` in it contains."""
        if self.window is None:
            return
        before = number - self.window
        while self.entries and self.entries[0][0] <= before:
            self.spent -= self.entries.popleft()[1]
        while self.runs and self.runs[0][1] <= before:
            self.spent -= self.runs.popleft()[2]

    def draw(self, number: int, epsilon: Fraction, purpose: str) -> Budget:
        """Debit what step `number` spends, and hand out the budget for it."""
        self._debit(epsilon, number)
        if self.window is not None:
            self.entries.append((number, epsilon))
        return self._budget(epsilon, f"step-{number}/{purpose}")

    def open_run(self, number: int, epsilon: Fraction) -> Budget:
        """Debit a new run of comparisons, the first of which is at step `number`."""
        self._debit(epsilon, number)
        if self.window is not None:
            self.runs.append((number, number, epsilon))
        return self._budget(epsilon, f"step-{number}/comparisons")

    def continue_run(self, number: int, epsilon: Fraction) -> None:
        """Note that the last run compares again at step `number`.

        If the window holds none of its earlier comparisons, the run counts in it anew.
        """
        if self.window is None:
            return
        if self.runs:
            first, _, amount = self.runs.pop()
            self.runs.append((first, number, amount))
        else:
            self._debit(epsilon, number)
            self.runs.append((number, number, epsilon))

    def ahead(self, number: int, steps: int) -> list[tuple[int, Fraction]]:
        """Return what the windows that end at each of the next `steps` steps hold already."""
        found, account = [], self._copy()
        for later in range(number + 1, number + 1 + steps):
            account.begin_step(later)
            found.append((later, account.spent))
        return found

    def to_dict(self) -> dict[str, Any]:
        """Turn the account into plain values for a file."""
        return {
            "epsilon": format_epsilon(self.epsilon),
            "window": self.window,
            "entries": [[number, format_epsilon(amount)] for number, amount in self.entries],
            "runs": [[first, last, format_epsilon(amount)] for first, last, amount in self.runs],
            "spent": format_epsilon(self.spent),
            "worst": format_epsilon(self.worst),
        }

    @classmethod
    def from_dict(cls, plain: dict[str, Any], grant: Grant | None) -> "StreamAccount":
        """Read back what `to_dict` wrote."""
        return cls(
            epsilon=read_exact(plain["epsilon"]),
            window=plain["window"],
            grant=grant,
            entries=deque((number, read_exact(amount)) for number, amount in plain["entries"]),
            runs=deque((first, last, read_exact(amount)) for first, last, amount in plain["runs"]),
            spent=read_exact(plain["spent"]),
            worst=read_exact(plain["worst"]),
        )

    def _debit(self, epsilon: Fraction, number: int) -> None:
        after = self.spent + epsilon
        if epsilon <= 0 or after > self.epsilon:
            raise BudgetExhausted(
                f"step {number} needs {format_short(epsilon)}, but of "
                f"{format_short(self.epsilon)} only {format_short(self.epsilon - self.spent)} "
                "is left; a fault of the method, and nothing was spent"
            )
        self.spent = after
        self.worst = max(self.worst, after)

    def _budget(self, epsilon: Fraction, purpose: str) -> Budget:
        if self.grant is None:
            return Budget.seeded(epsilon, purpose)
        return Budget.granted(epsilon, purpose, grant=self.grant)

    def _copy(self) -> "StreamAccount":
        return StreamAccount(
            self.epsilon, self.window, None, deque(self.entries), deque(self.runs), self.spent
        )
