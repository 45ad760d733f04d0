"""PersonalizedEM: choose a count or a median at each person's own price (PE)."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from math import inf
from typing import Any, ClassVar

import numpy as np

from dpublish.aggregates.counts import Counts
from dpublish.core.method import ExpectedError, Run, setting
from dpublish.data.axis import Axis
from dpublish.data.column import NumberColumn
from dpublish.data.query.language import parse_query, require_columns
from dpublish.data.query.weights import axis_weights, is_partial
from dpublish.data.schema import Schema
from dpublish.errors import InvalidParameter, InvalidQuery, require_count, require_known
from dpublish.mechanisms.selection import EXPONENTIAL, selection_rate
from dpublish.methods.personalized.kernels import AskedCodes
from dpublish.methods.personalized.method import (
    PersonalSettings,
    known_sizes,
    level_counts,
    personal_receipt,
)
from dpublish.methods.personalized.released import STATISTICS, PersonalizedAnswer, Statistic
from dpublish.methods.personalized.scores import (
    Step,
    common_prices,
    count_distances,
    count_error,
    dearest,
    median_distances,
    median_error,
    require_distances,
)
from dpublish.types import IntArray

MAX_CANDIDATES = 20_000_000
MAX_CELLS = 20_000_000
MOST_PEOPLE = 1 << 34  # more than any table holds, where no number is declared


@dataclass(frozen=True, kw_only=True)
class PersonalizedEM(PersonalSettings):
    """Publish one count or one median, with a probability that falls with its price.

    The personalized exponential mechanism (PE): the price of an answer is the least total of
    people's shares over the records that would have to change to make it true.  Choose it for
    one number when few people are at the lowest level and nothing may be assumed about levels.
    If many people are at the lowest level, `Minimum` is as good and answers more; if levels
    tell nothing about the values, `Weighting` is better.

    Guarantee:
        Personalized pure differential privacy for one record added or removed (or its values
        exchanged, in the mode `values-only`): a record loses at most its own level's share.
        Proof: docs/proofs/personal_choice.md.

    Parameters:
        preference, levels, mode, sizes, rule, derived: How much each person accepts, and what is
            public about it; see `PersonalSettings`.
        statistic: `"count"` (of the records that satisfy a query) or `"median"` (of a column).
        query: Conditions on the records to count, such as `"age >= 40 and sex = Female"`.
        column: Column of numbers whose median to publish.
        most: Largest count that may be published; needed for a count in the mode `"levels"`.

    Returns:
        A `PersonalizedAnswer` with `value`, `label`, `number` and, for a count, `count(query)`.

    Example:
        >>> from dpublish import PersonalizedEM, datasets, seeded
        >>> method = PersonalizedEM(
        ...     statistic="median",
        ...     column="age",
        ...     preference="region",
        ...     rule="North=0.1, *=1",
        ...     derived=True,
        ...     levels=("0.1", "1"),
        ...     mode="values-only",
        ... )
        >>> people = datasets.table("census", 10_000)
        >>> method.release(people, budget=method.budget(1), rng=seeded(7)).label
        '41..45'

    Reference:
        The PE mechanism of Jorgensen, Yu and Cormode (ICDE 2015), as for `Minimum`.
    """

    name: ClassVar[str] = "personalized-em"
    proofs: ClassVar[tuple[str, ...]] = ("personal_choice", "selection", "exact")
    publishes: ClassVar[str] = "one count or one median that respects each person's own epsilon"
    prefer_when: ClassVar[str] = "you need one number, and few people are at the lowest level"

    statistic: Statistic = setting(
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
        require_known("statistic", self.statistic, STATISTICS)
        if (self.statistic == "median") != (self.column is not None):
            raise InvalidParameter("a median needs --column, and a count has none")
        if self.statistic == "median" and self.query:
            raise InvalidParameter("a median is that of all records; it takes no --query")
        self._check_most()
        # A false number of people would only make distances overflow, so none is allowed to.
        require_distances(self._units, 2 * self._people)

    def _check_most(self) -> None:
        if self.most is not None:
            require_count(most=self.most)
        if self.mode == "levels" and self.statistic == "median":
            raise InvalidParameter(
                "where anyone could be added at the lowest level, personal prices do not help a "
                "median; give --sizes (mode frame), or use --mode values-only"
            )
        if (self.mode == "levels") != (self.most is not None):
            raise InvalidParameter(
                "--most goes with a count in the mode levels, and only there: it is the largest "
                "count that may be published (--most 5000); or give --sizes"
            )

    @property
    def _units(self) -> tuple[int, ...]:
        return common_prices(self.levels).units

    @property
    def _people(self) -> int:
        """How many people prices may have to be added up for; public."""
        if self.most is not None:
            return self.most * len(self.levels)
        if self.statistic == "count" and self.mode == "frame":
            return sum(self.sizes)
        return max(sum(self.sizes), MOST_PEOPLE)  # a median is safe with people not declared

    @property
    def _range(self) -> int:
        """How far one neighbor pulls two scores apart at most: there and back, in units.

        Counting, an exchange of values is one step: it changes whether a person is counted.
        """
        return 2 * self._units[-1] * (1 if self.statistic == "count" else self.halves)

    def _for_rows(self, rows: int) -> dict[str, Any]:
        """Let every eligible person come with so many rows."""
        return {"sizes": tuple(rows * size for size in self.sizes)}

    def row_spending(self, epsilon: Fraction) -> dict[Fraction, Fraction]:
        """Return what each level pays: its whole share."""
        return self.preferences.amounts(epsilon)

    def _release(self, run: Run) -> PersonalizedAnswer:
        """Publish one answer.

        Privacy:
            A record of level e loses at most its share a_e.  The score of an answer is minus
            the least total of shares over edits of the records that make it true.  Adding or
            removing a record is one edit, so by the triangle inequality no score changes by
            more than that record's share; odds are exp(score / 2), so the odds of an answer
            and the sum of all odds change by exp(a_e / 2) each, at most.  Scores are integer
            multiples of the levels' common unit and odds are exact.  The answers that can be
            chosen are public.  If values are exchanged, a median's shares are halved.
            Proof: docs/proofs/personal_choice.md.
        """
        epsilon = self.epsilon_of(run.budget)
        self._check(run.schema, epsilon)
        # Opened before any row is read: a share that is already used stops here.
        share = run.split(choice=1)["choice"]
        sizes = known_sizes(run, self)
        candidates, distances = (
            self._count(run, sizes)
            if self.statistic == "count"
            else self._median(run, sizes or self.sizes)
        )
        chosen = run.select(
            -distances, sensitivity_range=self._range, method=EXPONENTIAL, budget=share
        )
        run.step(1, 1, self.statistic)
        inner = self._about(run.schema)
        columns = inner.columns if self.column is None else (inner[self.column],)
        return PersonalizedAnswer(
            receipt=personal_receipt(run, self),
            schema=replace(inner, columns=columns),
            statistic=self.statistic,
            query=self.query,
            column=self.column,
            value=int(candidates[chosen]),
            most=int(candidates[-1]),
            expected=self._figures(run.schema, sizes, epsilon),
        )

    def reads(self, schema: Schema) -> tuple[str, ...]:
        """Name the columns that a release reads; public, from settings and schema alone."""
        asked = parse_query(self.query).columns if self.column is None else (self.column,)
        return self.with_levels(asked, schema)

    def expected_error(
        self, schema: Schema, n_records: int | None, epsilon: Fraction
    ) -> ExpectedError:
        """Predict the error of the answer; without sizes as if all had the lowest level."""
        prepared = self.prepare(schema)
        self._check(prepared, epsilon)
        figures = self._figures(prepared, self.sizes or None, epsilon)
        target = next(iter(figures))
        if self.statistic == "count":
            summary = f"a count, within {figures[target]:,.0f} of the truth (95 %)"
        else:
            bound = f"{figures[target]:,.0f} records"
            summary = f"a median; its two sides differ by at most {bound} (95 %)"
        return ExpectedError(summary, figures, target)

    def _about(self, schema: Schema) -> Schema:
        """Return the schema of what is asked about: without levels, unless nothing else is read."""
        return self.preferences.without(schema) if len(schema.columns) > 1 else schema

    def _check(self, schema: Schema, epsilon: Fraction) -> None:
        """Refuse what cannot be answered, or not at this epsilon; from public facts."""
        selection_rate(self.spending(epsilon)[self.levels[-1]], self._range)
        inner = self._about(schema)
        if self.column is None:
            asked_codes(inner, self.query)
            return
        size = median_axis(inner, self.column).size
        if (len(self.levels) + 1) * size > MAX_CELLS:
            raise InvalidParameter(
                f"{len(self.levels):,} levels by {size:,} values are too many; use fewer bins"
            )

    def _count(self, run: Run, sizes: Sequence[int] | None) -> tuple[IntArray, IntArray]:
        """List the counts that can be published, and the distance of each."""
        asked = asked_codes(self._about(run.schema), self.query)
        counted = run.sum(level_counts(self, run.schema, asked))
        units = np.array(self._units, dtype=np.int64)
        if sizes is None:
            limit = int(self.most or 0)
            counted = np.minimum(counted, limit)
            others = np.zeros_like(counted)
            others[0] = limit  # anyone could come, at the lowest level
        else:
            limit = sum(sizes)
            eligible = np.array(sizes, dtype=np.int64)
            counted = np.minimum(counted, eligible)
            others = eligible - counted
        candidates = np.append(np.arange(0, limit, _step(limit), dtype=np.int64), limit)
        return candidates, count_distances(counted, others, units, candidates)

    def _median(self, run: Run, sizes: Sequence[int]) -> tuple[IntArray, IntArray]:
        """List the bins that can be published, and the distance of each.

        Whoever has no value is absent, as if they had no record.
        """
        axis = median_axis(self._about(run.schema), str(self.column))
        present = self._present(run, axis.ordinary_leaves)
        eligible, units = np.array(sizes, dtype=np.int64), np.array(self._units, dtype=np.int64)
        bins = np.arange(axis.ordinary_leaves, dtype=np.int64)
        return bins, median_distances(present, eligible, units)

    def _present(self, run: Run, bins: int) -> IntArray:
        """Count the people of each level (row) in each bin of the column."""
        number = self.preferences.level_of_code(run.schema)
        names = dict.fromkeys((self.preference, str(self.column)))
        kernel = Counts(run.schema, (tuple((name, None) for name in names),))
        [counts] = kernel.split(run.sum(kernel))
        if len(names) == 1:  # a rule gives levels by the same column
            counts = np.diag(counts)
        present = np.zeros((len(self.levels) + 1, bins), dtype=np.int64)
        np.add.at(present, number, counts[:, :bins])
        return present[1:]

    def _figures(
        self, schema: Schema, sizes: Sequence[int] | None, epsilon: Fraction
    ) -> dict[str, float]:
        prices = [float(amount) for amount in self.spending(epsilon).values()]
        if self.statistic == "median":
            each = [price / self.halves for price in prices]
            numbers = [inf] * len(each) if sizes is None else [2.0 * size for size in sizes]
            bins = median_axis(self._about(schema), str(self.column)).ordinary_leaves
            steps = list(map(Step, each, numbers))
            return {"sides_differ_95": median_error(steps, bins)}
        if sizes is None:
            limit = inf if self.most is None else float(self.most)
            dear = [] if self.most is None else [Step(prices[-1], limit / 2)]
            error = _count_error([Step(prices[0], inf)], dear, int(self.most or 0))
            return {"count_95": min(error, limit)}
        cheap, people = list(map(Step, prices, map(float, sizes))), sum(sizes)
        error = _count_error(cheap, dearest(cheap, people / 2), people)
        return {"count_95": error, "eligible_people": float(people)}


def _step(limit: int) -> int:
    """Return the step between counts that can be published: 1, unless they are too many."""
    return limit // MAX_CANDIDATES + 1


def _count_error(cheap: list[Step], dear: list[Step], limit: int) -> float:
    """Bound how far a count is off, also from one that is not in the list."""
    step = _step(limit)
    return count_error(cheap, dear if step == 1 else []) + step - 1


def asked_codes(schema: Schema, query: str) -> AskedCodes:
    """Mark the codes of each column that satisfy the conditions of `query`.

    >>> from dpublish.data.schema import column
    >>> schema = Schema((column("age", "integer", bounds=[0, 99], bins=4),))
    >>> asked_codes(schema, "age >= 50")
    (('age', (False, False, True, True)),)
    """
    parsed = parse_query(query)
    require_columns(parsed, schema.names, "the table tells")
    asked = []
    for name in parsed.columns:
        axis = schema[name].axis()
        weights = axis_weights(axis, parsed.about(name))
        split = np.flatnonzero(is_partial(weights))
        if split.size:
            raise InvalidQuery(
                f"the query takes in only part of {axis.labels[int(split[0])]!r}, the finest "
                f"value of column {name!r} in the schema; move its ends, or use finer bins"
            )
        asked.append((name, tuple((weights > 0).tolist())))
    return tuple(asked)


def median_axis(schema: Schema, column: str) -> Axis:
    """Find the axis of the bins among which a median is chosen."""
    found = schema[column]
    if not isinstance(found, NumberColumn):
        raise InvalidParameter(f"column {column!r} holds no numbers, so it has no median")
    return found.axis()
