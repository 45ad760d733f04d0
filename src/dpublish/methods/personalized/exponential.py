"""Choose a count or a median by how little people's records would have to change for it.

Known as: the personalized exponential mechanism (PE).
Reference: Z. Jorgensen, T. Yu and G. Cormode, "Conservative or liberal? Personalized
differential privacy", ICDE 2015.  Proof: docs/proofs/personal_choice.md.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from math import inf
from typing import ClassVar, Literal

import numpy as np

from dpublish.aggregates.counts import Counts
from dpublish.core.method import ExpectedError, Run, setting
from dpublish.data.schema import Schema
from dpublish.data.table import Table
from dpublish.errors import InvalidParameter, require_count, require_known
from dpublish.mechanisms.selection import EXPONENTIAL, select, selection_rate
from dpublish.methods.personalized.choice_query import asked_leaves, median_axis
from dpublish.methods.personalized.method import (
    PersonalSettings,
    known_sizes,
    level_counts,
    personal_receipt,
)
from dpublish.methods.personalized.released_answer import PersonalizedAnswer
from dpublish.methods.personalized.scores import (
    Step,
    Whole,
    common_prices,
    count_distances,
    count_error,
    dearest,
    median_distances,
    median_error,
    require_distances,
)

MAX_CANDIDATES = 20_000_000
MAX_CELLS = 20_000_000
MOST_PEOPLE = 1 << 34  # more than any table holds, where nobody declares a number


@dataclass(frozen=True, kw_only=True)
class PersonalizedEM(PersonalSettings):
    """Method: choose an answer at odds that fall with the price of making it true."""

    name: ClassVar[str] = "personalized-em"

    question: Literal["count", "median"] = setting(
        "What to publish: count (of the records that satisfy a query) or median (of a column)."
    )
    query: str = setting(
        "Conditions on the records to count, such as: age >= 40 and sex = Female.", default=""
    )
    column: str | None = setting("Column of numbers whose median to publish.", default=None)
    most: int | None = setting(
        "Largest count that may be published; needed for a count in the mode levels.", default=None
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        require_known("question", self.question, ("count", "median"))
        if (self.question == "median") != (self.column is not None):
            raise InvalidParameter("a median needs a column, and a count has none")
        if self.question == "median" and self.query:
            raise InvalidParameter("a median is that of all records; it takes no query")
        self._check_most()
        # A false number of people would only make distances overflow, so none is allowed to.
        require_distances(self._units, 2 * self._people)

    def _check_most(self) -> None:
        if self.most is not None:
            require_count(most=self.most)
        if self.mode == "levels" and self.question == "median":
            raise InvalidParameter(
                "where anybody could be added at the lowest level, personal prices do not help a "
                "median; give sizes (mode frame), or use the mode values-only"
            )
        if (self.mode == "levels") != (self.most is not None):
            raise InvalidParameter(
                "most goes with a count in the mode levels, and only there: it is the largest "
                "count that may be published (--most 5000); or give sizes"
            )

    @property
    def _units(self) -> tuple[int, ...]:
        return common_prices(self.levels).units

    @property
    def _people(self) -> int:
        """How many people prices may have to be added up for; public."""
        if self.most is not None:
            return self.most * len(self.levels)
        if self.question == "count" and self.mode == "frame":
            return sum(self.sizes)
        return max(sum(self.sizes), MOST_PEOPLE)  # a median is safe with people not declared

    @property
    def _range(self) -> int:
        """How far one neighbor pulls two scores apart at most: there and back, in units.

        Counting, an exchange of values is one step: it changes whether a person is counted.
        """
        return 2 * self._units[-1] * (1 if self.question == "count" else self.halves)

    def spending(self, epsilon: Fraction) -> dict[Fraction, Fraction]:
        """Say what each level pays: its whole share."""
        return self.preferences.amounts(epsilon)

    def _release(self, run: Run) -> PersonalizedAnswer:
        """Publish one answer.

        Privacy:
            A record of level e loses at most its share a_e.  The score of an answer is minus
            the least total of shares over edits of the records that make it true.  Adding or
            removing a record is one edit, so by the triangle inequality no score changes by
            more than that record's share; odds are exp(score / 2), so the odds of an answer
            and the sum of all odds change by exp(a_e / 2) each, at most.  Scores are whole
            multiples of the levels' common unit and odds are exact.  The answers that can be
            chosen are public.  If values are exchanged, a median's shares are halved.
            Proof: docs/proofs/personal_choice.md.
        """
        table, budget, rng, progress = run.table, run.budget, run.rng, run.progress
        epsilon = self.epsilon_of(budget)
        self._check(table.schema, epsilon)
        # Opened before any row is read: a share that is already used stops here.
        share = budget.split(choice=1)["choice"]
        sizes = known_sizes(self, table)
        candidates, distances = (
            self._count(table, sizes)
            if self.question == "count"
            else self._median(table, sizes or self.sizes)
        )
        chosen = select(
            -distances, sensitivity_range=self._range, method=EXPONENTIAL, budget=share, rng=rng
        )
        if progress is not None:
            progress(1, 1, self.question)
        inner = self.preferences.without(table.schema)
        columns = inner.columns if self.column is None else (inner[self.column],)
        return PersonalizedAnswer(
            receipt=personal_receipt(self, epsilon, table.schema, budget=budget, rng=rng),
            schema=replace(inner, columns=columns),
            question=self.question,
            query=self.query,
            column=self.column,
            value=int(candidates[chosen]),
            most=int(candidates[-1]),
            expected=self._figures(table.schema, sizes, epsilon),
        )

    def expected_error(
        self, schema: Schema, n_records: int | None, epsilon: Fraction
    ) -> ExpectedError:
        """Predict the error of the answer; without sizes as if all had the lowest level."""
        prepared = self.prepare(schema)
        self._check(prepared, epsilon)
        figures = self._figures(prepared, self.sizes or None, epsilon)
        target = next(iter(figures))
        if self.question == "count":
            summary = f"a count, within {figures[target]:,.0f} of the truth (95 %)"
        else:
            reach = f"{figures[target]:,.0f} people"
            summary = f"a median; its two sides differ by at most {reach} (95 %)"
        return ExpectedError(summary, figures, target)

    def _check(self, schema: Schema, epsilon: Fraction) -> None:
        """Refuse what cannot be asked, or not at this epsilon; from public facts."""
        selection_rate(self.spending(epsilon)[self.levels[-1]], self._range)
        inner = self.preferences.without(schema)
        if self.column is None:
            asked_leaves(inner, self.query)
            return
        leaves = median_axis(inner, self.column).size
        if (len(self.levels) + 1) * leaves > MAX_CELLS:
            raise InvalidParameter(
                f"{len(self.levels):,} levels by {leaves:,} values are too many; use fewer bins"
            )

    def _count(self, table: Table, sizes: Sequence[int] | None) -> tuple[Whole, Whole]:
        """List the counts that can be published, and the distance of each."""
        asked = asked_leaves(self.preferences.without(table.schema), self.query)
        counted = table.sum(level_counts(self, table.schema, asked))
        units = np.array(self._units, dtype=np.int64)
        if sizes is None:
            limit = int(self.most or 0)
            counted = np.minimum(counted, limit)
            others = np.zeros_like(counted)
            others[0] = limit  # anybody could come, at the lowest level
        else:
            limit = sum(sizes)
            eligible = np.array(sizes, dtype=np.int64)
            counted = np.minimum(counted, eligible)
            others = eligible - counted
        candidates = np.append(np.arange(0, limit, _step(limit), dtype=np.int64), limit)
        return candidates, count_distances(counted, others, units, candidates)

    def _median(self, table: Table, sizes: Sequence[int]) -> tuple[Whole, Whole]:
        """List the leaves that can be published, and the distance of each.

        Whoever has no value is absent, as if she had no record.
        """
        axis = median_axis(self.preferences.without(table.schema), str(self.column))
        present = self._present(table, axis.ordinary_leaves)
        eligible, units = np.array(sizes, dtype=np.int64), np.array(self._units, dtype=np.int64)
        leaves = np.arange(axis.ordinary_leaves, dtype=np.int64)
        return leaves, median_distances(present, eligible, units)

    def _present(self, table: Table, leaves: int) -> Whole:
        """Count the people of each level (row) in each leaf of the column."""
        number = self.preferences.level_of_leaf(table.schema)
        names = dict.fromkeys((self.preference, str(self.column)))
        kernel = Counts(table.schema, (tuple((name, None) for name in names),))
        [counts] = kernel.split(table.sum(kernel))
        if len(names) == 1:  # a rule gives levels by the same column
            counts = np.diag(counts)
        present = np.zeros((len(self.levels) + 1, leaves), dtype=np.int64)
        np.add.at(present, number, counts[:, :leaves])
        return present[1:]

    def _figures(
        self, schema: Schema, sizes: Sequence[int] | None, epsilon: Fraction
    ) -> dict[str, float]:
        prices = [float(amount) for amount in self.spending(epsilon).values()]
        if self.question == "median":
            each = [price / self.halves for price in prices]
            numbers = [inf] * len(each) if sizes is None else [2.0 * size for size in sizes]
            leaves = median_axis(self.preferences.without(schema), str(self.column)).ordinary_leaves
            steps = list(map(Step, each, numbers))
            return {"sides_differ_95": median_error(steps, leaves)}
        if sizes is None:
            limit = inf if self.most is None else float(self.most)
            dear = [] if self.most is None else [Step(prices[-1], limit / 2)]
            error = _count_error([Step(prices[0], inf)], dear, int(self.most or 0))
            return {"count_95": min(error, limit)}
        cheap, people = list(map(Step, prices, map(float, sizes))), sum(sizes)
        error = _count_error(cheap, dearest(cheap, people / 2), people)
        return {"count_95": error, "eligible_people": float(people)}


def _step(limit: int) -> int:
    """Say how far the counts that can be published are apart: 1, unless they are too many."""
    return limit // MAX_CANDIDATES + 1


def _count_error(cheap: list[Step], dear: list[Step], limit: int) -> float:
    """Bound how far a count is off, also from one that is not in the list."""
    step = _step(limit)
    return count_error(cheap, dear if step == 1 else []) + step - 1
