"""The personalized exponential mechanism: every person's loss is bounded by their own number."""

from dataclasses import replace
from fractions import Fraction
from itertools import product
from math import ceil, inf, log

import numpy as np
import pyarrow as pa
import pytest

from dpublish.core import run
from dpublish.data.schema import Schema, column
from dpublish.data.sources import open_table
from dpublish.errors import BudgetAlreadyUsed, InvalidParameter, InvalidQuery
from dpublish.methods.personalized import exponential as personal_choice
from dpublish.methods.personalized.exponential import PersonalizedEM
from dpublish.methods.personalized.released import PersonalizedAnswer
from dpublish.methods.personalized.scores import (
    Step,
    cheapest,
    common_prices,
    count_distances,
    count_error,
    dearest,
    median_distances,
    median_error,
)
from dpublish.privacy.budget import Budget
from dpublish.randomness import secure, seeded
from dpublish.testing import frequency_p_value, privacy_loss

LEVELS = (Fraction(1, 10), Fraction(3, 10), Fraction(1))
SCHEMA = Schema(
    (
        column("age", "integer", bounds=[0, 3], missing="drop"),
        column("sex", "category", values=["F", "M"], missing="drop"),
    )
)
PEOPLE = (0, 0, 1, 2, 2)  # levels of five people, by position
SIZES = (2, 1, 2)


def counting(**settings):
    settings = {"sizes": SIZES} | settings
    return PersonalizedEM(
        preference="own", levels=LEVELS, statistic="count", query="sex = F", **settings
    )


def middle(**settings):
    settings = {"sizes": SIZES} | settings
    return PersonalizedEM(
        preference="own", levels=LEVELS, statistic="median", column="age", **settings
    )


def people_table(rows, method):
    """Open a table of (level position, age, sex) rows."""
    source = pa.table(
        {
            "own": pa.array([float(LEVELS[level]) for level, _, _ in rows], pa.float64()),
            "age": pa.array([age for _, age, _ in rows], pa.int64()),
            "sex": pa.array([sex for _, _, sex in rows], pa.string()),
        }
    )
    return open_table(source, method.prepare(SCHEMA))


def distribution(chosen, rows, monkeypatch, epsilon=LEVELS[-1]):
    """The exact distribution of what the whole chosen publishes, by the scores it hands over."""
    seen = []

    def record(scores, *, sensitivity_range, method, weights, budget, rng):
        assert method == "exponential"
        odds = np.exp(float(budget.spend() / sensitivity_range) * scores.astype(np.float64))
        seen.append(dict(enumerate((odds / odds.sum()).tolist())))
        return 0

    with monkeypatch.context() as patch:
        patch.setattr(run, "select", record)
        chosen.release(people_table(rows, chosen), budget=chosen.budget(epsilon), rng=seeded(1))
    return seen[0]


def losses(distributions, neighbors_of):
    """The largest loss of every person over all pairs of neighboring tables."""
    worst = dict.fromkeys(range(len(PEOPLE)), 0.0)
    for state in distributions:
        for person in worst:
            for other in neighbors_of(state, person):
                worst[person] = max(
                    worst[person], privacy_loss(distributions[state], distributions[other])
                )
    return worst


def with_value(state, person, value):
    return (*state[:person], value, *state[person + 1 :])


class TestCount:
    def test_distances_are_those_of_all_edits_tried_out(self):
        units = np.array([1, 3, 10])
        prices = [units[level] for level in PEOPLE]
        tried = list(product((0, 1), repeat=len(PEOPLE)))
        for bits in tried:
            counted = np.array(
                [
                    sum(b for b, q in zip(bits, PEOPLE, strict=True) if q == level)
                    for level in range(3)
                ]
            )
            found = count_distances(counted, np.array(SIZES) - counted, units, np.arange(6))
            best = [inf] * 6
            for there in tried:
                changed = [p for p, a, b in zip(prices, bits, there, strict=True) if a != b]
                best[sum(there)] = min(best[sum(there)], sum(changed))
            assert found.tolist() == best

    def audit(self, method, monkeypatch, **options):
        """Each person is absent (None), or present and counted or not."""
        distributions = {}
        for state in product((None, "F", "M"), repeat=len(PEOPLE)):
            rows = [(q, 0, sex) for q, sex in zip(PEOPLE, state, strict=True) if sex is not None]
            key = tuple(sorted(rows))
            distributions[state] = distributions.get(key) or distribution(
                method, rows, monkeypatch, **options
            )

        def added(state, person):
            return [with_value(state, person, None)] if state[person] is not None else []

        return losses(distributions, added)

    @pytest.mark.parametrize("settings", [{}, {"sizes": (), "most": 4}], ids=["frame", "levels"])
    def test_no_one_loses_more_than_their_level_and_someone_much_of_it(self, settings, monkeypatch):
        found = self.audit(counting(**settings), monkeypatch)
        for person, loss in found.items():
            assert loss <= float(LEVELS[PEOPLE[person]]) * (1 + 1e-12)
        assert max(found[p] / float(LEVELS[PEOPLE[p]]) for p in found) > 0.7

    def test_a_smaller_epsilon_is_shared_in_proportion(self, monkeypatch):
        found = self.audit(counting(), monkeypatch, epsilon=Fraction(1, 4))
        for person, loss in found.items():
            assert loss <= float(LEVELS[PEOPLE[person]]) / 4 * (1 + 1e-12)

    @pytest.mark.parametrize("broken", ["full odds", "one price"])
    def test_broken_twins_are_caught(self, broken, monkeypatch):
        """Odds of exp(score) instead of exp(score / 2); the mean price for all people."""

        def mean_price(counted, others, units, candidates):
            price = int(units.mean())
            return count_distances(counted, others, np.full_like(units, price), candidates)

        if broken == "one price":
            monkeypatch.setattr(personal_choice, "count_distances", mean_price)
        else:
            monkeypatch.setattr(PersonalizedEM, "_range", 10)
        found = self.audit(counting(), monkeypatch)
        assert max(found[p] / float(LEVELS[PEOPLE[p]]) for p in found) > 1.2

    def test_values_that_are_exchanged_cost_no_more_either(self, monkeypatch):
        method = counting(sizes=(), mode="values-only")
        distributions = {
            state: distribution(
                method,
                [(q, 0, sex) for q, sex in zip(PEOPLE, state, strict=True)],
                monkeypatch,
            )
            for state in product("FM", repeat=len(PEOPLE))
        }
        found = losses(distributions, lambda s, p: [with_value(s, p, "F")])
        for person, loss in found.items():
            assert loss <= float(LEVELS[PEOPLE[person]]) * (1 + 1e-12)
        assert found[0] > 0.7 * float(LEVELS[0])

    def test_what_is_drawn_follows_the_distribution_and_another_distribution_is_told_apart(
        self, monkeypatch
    ):
        method = counting()
        rows = [(0, 1, "F"), (1, 1, "F"), (2, 1, "F"), (2, 2, "M")]
        table = people_table(rows, method)
        drawn = [
            method.release(table, budget=method.budget(LEVELS[-1]), rng=seeded(seed)).value
            for seed in range(1500)
        ]
        assert frequency_p_value(drawn, distribution(method, rows, monkeypatch)) > 1e-4
        twice = {
            answer: probability**2
            for answer, probability in distribution(method, rows, monkeypatch).items()
        }
        assert frequency_p_value(drawn, twice) < 1e-12

    def test_a_million_people_are_counted(self, rng):
        levels = (Fraction(1, 100), Fraction(1, 5), Fraction(1))
        sizes = (50_000, 350_000, 600_000)
        method = PersonalizedEM(
            preference="own", levels=levels, sizes=sizes, statistic="count", query="sex = F"
        )
        rows = 200_000
        source = pa.table(
            {"own": np.full(rows, 0.5), "age": np.zeros(rows, int), "sex": ["F"] * rows}
        )
        table = open_table(source, method.prepare(SCHEMA))
        release = method.release(table, budget=method.budget(Fraction(1)), rng=rng)
        answer = release.count("sex = F")
        assert answer.low <= rows <= answer.high
        assert answer.high - answer.low < 20_000

    @pytest.mark.parametrize("sizes", [(300, 0, 0), (0, 0, 90), (20, 100, 180), (3, 2, 40)])
    def test_the_error_predicted_holds_whoever_is_counted(self, sizes):
        prices = [float(level) for level in LEVELS]
        cheap = list(map(Step, prices, map(float, sizes)))
        half_width = count_error(cheap, dearest(cheap, sum(sizes) / 2))
        units = np.array(common_prices(LEVELS).units)
        people = sum(sizes)
        worst = 0.0
        for part in (0.0, 0.3, 0.5, 1.0):
            for order in (1, -1):
                counted = np.zeros(3, dtype=np.int64)
                left = ceil(part * people)
                for level in range(3)[::order]:
                    counted[level] = min(left, sizes[level])
                    left -= counted[level]
                distances = count_distances(
                    counted, np.array(sizes) - counted, units, np.arange(people + 1)
                )
                odds = np.exp(-0.05 * distances)
                far = np.abs(np.arange(people + 1) - counted.sum()) > half_width
                worst = max(worst, odds[far].sum() / odds.sum())
        assert worst <= 0.05

    @pytest.mark.parametrize("counted", [0, 4, 15, 16, 46, 77, 86, 90])
    @pytest.mark.parametrize("level", [0, 2])
    def test_the_interval_holds_where_not_every_count_is_a_candidate(
        self, counted, level, monkeypatch
    ):
        monkeypatch.setattr(personal_choice, "MAX_CANDIDATES", 3)
        sizes = tuple(90 * (position == level) for position in range(3))
        method = counting(sizes=sizes)
        rows = [(level, 0, "F")] * counted
        probabilities = dict(
            zip((0, 31, 62, 90), distribution(method, rows, monkeypatch).values(), strict=True)
        )
        release = method.release(
            people_table(rows, method), budget=method.budget(LEVELS[-1]), rng=seeded(1)
        )
        intervals = {
            value: replace(release, value=value).count("sex = F") for value in probabilities
        }
        missed = [
            v for v, interval in intervals.items() if not interval.low <= counted <= interval.high
        ]
        assert sum(probabilities[value] for value in missed) <= 0.05
        if (counted, level) == (46, 2):  # an interval that forgets the gaps misses nearly always
            narrow = count_error([Step(1.0, 90)], [Step(1.0, 45)])
            assert sum(c for v, c in probabilities.items() if abs(v - counted) > narrow) > 0.9

    def test_half_the_error_predicted_would_be_too_little(self):
        distances = count_distances(np.array([150]), np.array([150]), np.array([1]), np.arange(301))
        odds = np.exp(-0.05 * distances)
        half_width = count_error([Step(0.1, 300)], [Step(0.1, 150)]) / 2
        far = np.abs(np.arange(301) - 150) > half_width
        assert odds[far].sum() / odds.sum() > 0.05


class TestMedian:
    LEAVES = 3

    def states(self, people):
        return list(product((None, *range(self.LEAVES)), repeat=len(people)))

    def test_distances_are_those_of_all_edits_tried_out(self):
        people, units = (0, 1, 1, 2), np.array([1, 3, 10])
        states = self.states(people)
        medians = {state: self.medians(state) for state in states}

        def price(here, there):
            if here == there:
                return 0
            return 1 if here is None or there is None else 2

        for state in states[::3]:
            best = [inf] * self.LEAVES
            for there in states:
                cost = sum(
                    units[level] * price(a, b)
                    for level, a, b in zip(people, state, there, strict=True)
                )
                for leaf in medians[there]:
                    best[leaf] = min(best[leaf], cost)
            present, sizes = self.counts(state, people)
            assert median_distances(present, sizes, units).tolist() == best

    def medians(self, state):
        values = [leaf for leaf in state if leaf is not None]
        return [
            leaf
            for leaf in range(self.LEAVES)
            if abs(sum(v < leaf for v in values) - sum(v > leaf for v in values))
            <= sum(v == leaf for v in values)
        ]

    def counts(self, state, people):
        present = np.zeros((3, self.LEAVES), dtype=np.int64)
        for level, leaf in zip(people, state, strict=True):
            if leaf is not None:
                present[level, leaf] += 1
        return present, np.bincount(people, minlength=3)

    def audit(self, method, monkeypatch, values=(None, 0, 2, 3)):
        """Each person has one of `values`; None is no record, or a record without a value.

        In a frame a record comes or goes; otherwise any value is exchanged for any other.
        """
        is_exchanged = method.mode == "values-only"
        distributions = {}
        by_rows = {}
        for state in product(values, repeat=len(PEOPLE)):
            people = zip(PEOPLE, state, strict=True)
            rows = [(q, age, "F") for q, age in people if is_exchanged or age is not None]
            key = tuple(sorted(rows, key=str))
            if key not in by_rows:
                by_rows[key] = distribution(method, rows, monkeypatch)
            distributions[state] = by_rows[key]
        others = values if is_exchanged else (None,)
        return losses(distributions, lambda s, p: [with_value(s, p, value) for value in others])

    def worst(self, method, monkeypatch):
        """The largest loss of anybody, as a share of their level."""
        found = self.audit(method, monkeypatch)
        return max(loss / float(LEVELS[PEOPLE[person]]) for person, loss in found.items())

    @pytest.mark.parametrize("sizes", [SIZES, (1, 0, 1), (0, 0, 0), (0, 3, 1), (3, 1, 2)])
    def test_no_one_loses_more_than_their_level_even_if_the_sizes_are_false(
        self, sizes, monkeypatch
    ):
        found = self.worst(middle(sizes=sizes), monkeypatch)
        assert found <= 1 + 1e-12
        assert found > 0.3 or sizes == (0, 0, 0)

    def test_people_who_were_not_declared_and_are_cut_off_are_caught(self, monkeypatch):
        """The lowest leaves are kept, so that one more record drives out another."""

        def cut(present, sizes, units):
            upto = np.minimum(np.cumsum(present, axis=1), sizes[:, None])
            return median_distances(np.diff(upto, axis=1, prepend=0), sizes, units)

        monkeypatch.setattr(personal_choice, "median_distances", cut)
        assert self.worst(middle(sizes=(1, 0, 1)), monkeypatch) > 1.2
        assert self.worst(middle(), monkeypatch) <= 1 + 1e-12  # true sizes hide the fault

    def test_values_that_are_exchanged_or_missing_cost_no_more_either(self, monkeypatch):
        found = self.worst(middle(sizes=(), mode="values-only"), monkeypatch)
        assert 0.3 < found <= 1 + 1e-12

    def test_whole_prices_for_exchanged_values_are_caught(self, monkeypatch):
        monkeypatch.setattr(PersonalizedEM, "_range", 2 * 10)  # not halved
        assert self.worst(middle(sizes=(), mode="values-only"), monkeypatch) > 1.2

    @pytest.mark.parametrize("settings", [{}, {"sizes": (), "mode": "values-only"}])
    def test_absent_people_at_no_price_are_caught(self, settings, monkeypatch):
        """The frame taken from those with a value: who could be given one is then private."""

        def without_absent(present, sizes, units):
            return median_distances(present, present.sum(axis=1), units)

        monkeypatch.setattr(personal_choice, "median_distances", without_absent)
        assert self.worst(middle(**settings), monkeypatch) > 1.2

    def test_the_median_of_many_is_found(self, rng):
        method = middle(sizes=(0, 0, 3000))
        rows = [(2, age, "F") for age in (0, 1, 2, 2, 2, 3)] * 100
        release = method.release(
            people_table(rows, method), budget=method.budget(Fraction(1)), rng=rng
        )
        assert (release.label, release.number) == ("2", 2.0)
        with pytest.raises(InvalidQuery, match="median of 'age'"):
            release.count()

    def test_the_error_predicted_adds_up_the_cheapest_edits(self):
        afford = 2 * log(10 / 0.05)
        assert median_error([Step(1.0, inf)], 10) == afford // 1
        assert median_error([Step(0.5, 4), Step(1.0, inf)], 10) == 4 + (afford - 2) // 1


class TestMethod:
    def test_budget_in_is_budget_spent_and_stands_in_the_receipt(self):
        method = counting()
        budget = method.budget(Fraction(1, 2))
        release = method.release(people_table([], method), budget=budget, rng=secure())
        assert budget.is_used
        assert all(leaf.is_used for leaf in budget.account())
        assert budget.cost() == release.receipt.epsilon == Fraction(1, 2)
        assert release.receipt.personal == tuple((level, level / 2) for level in LEVELS)
        assert "level" in release.receipt.guarantee()
        with pytest.raises(BudgetAlreadyUsed):
            method.release(people_table([], method), budget=budget, rng=secure())

    @pytest.mark.parametrize("method", [counting(), middle()], ids=["count", "median"])
    @pytest.mark.parametrize("rows", [[], [(1, 2, "F")], [(0, 0, None)] * 9])
    def test_it_works_on_small_and_false_tables(self, method, rows):
        table = people_table(rows, method)
        release = method.release(table, budget=method.budget(Fraction(1)), rng=seeded(5))
        assert 0 <= release.value <= release.most
        assert release.summary()["error"]
        again = PersonalizedAnswer.from_parts(
            receipt=release.receipt,
            schema=release.schema,
            metadata=release.metadata(),
            tables=release.tables(),
        )
        assert again == release

    def test_people_below_the_first_level_are_not_counted(self, monkeypatch):
        method = counting()
        source = pa.table({"own": [0.05, None, 0.1], "age": [0, 0, 0], "sex": ["F", "F", "F"]})
        seen = []
        monkeypatch.setattr(
            personal_choice,
            "count_distances",
            lambda counted, *rest: seen.append(counted.tolist()) or count_distances(counted, *rest),
        )
        table = open_table(source, method.prepare(SCHEMA))
        method.release(table, budget=method.budget(Fraction(1)), rng=seeded(1))
        assert seen == [[1, 0, 0]]

    def test_levels_may_come_from_a_rule_about_the_same_column(self):
        method = PersonalizedEM(
            preference="age",
            levels=LEVELS,
            rule="0=0.1, 1..2=0.3, 3=1",
            derived=True,
            statistic="median",
            column="age",
            mode="values-only",
        )
        source = pa.table({"age": [0, 1, 3, 3, 3] * 60, "sex": ["F"] * 300})
        table = open_table(source, method.prepare(SCHEMA))
        release = method.release(table, budget=method.budget(Fraction(1)), rng=seeded(3))
        assert release.label == "3"

    @pytest.mark.parametrize("make", [counting, middle])
    def test_the_error_is_predicted_and_falls_with_epsilon(self, make):
        method = make(sizes=(4000, 4000, 4000))
        loose = method.expected_error(SCHEMA, None, Fraction(1, 10))
        tight = method.expected_error(SCHEMA, 1000, Fraction(1))
        assert tight.figures[tight.target] < loose.figures[loose.target]

    @pytest.mark.parametrize(
        ("settings", "words"),
        [
            ({"sizes": ()}, "most goes with"),
            ({"most": 3}, "most goes with"),
            ({"statistic": "median"}, "needs --column"),
            ({"sizes": (), "statistic": "median", "column": "age", "query": ""}, "lowest level"),
            ({"statistic": "median", "column": "age"}, "takes no --query"),
            ({"statistic": "mode"}, "statistic"),
            ({"levels": (Fraction(1, 3**40), Fraction(1, 2), Fraction(1))}, "fewer digits"),
        ],
    )
    def test_what_does_not_fit_together_is_refused(self, settings, words):
        given = {
            "preference": "own",
            "levels": LEVELS,
            "sizes": SIZES,
            "statistic": "count",
            "query": "sex = F",
        }
        with pytest.raises(InvalidParameter, match=words):
            PersonalizedEM(**(given | settings))

    @pytest.mark.parametrize(
        ("method", "words"),
        [
            (counting(sizes=SIZES), "epsilon"),
            (
                PersonalizedEM(
                    preference="own", levels=LEVELS, sizes=SIZES, statistic="count", query="x = 1"
                ),
                "nothing of 'x'",
            ),
        ],
    )
    def test_the_forecast_refuses_what_the_release_refuses(self, method, words):
        epsilon = Fraction(2)
        with pytest.raises(InvalidParameter, match=words):
            method.expected_error(SCHEMA, None, epsilon if words == "epsilon" else Fraction(1))

    def test_a_query_that_cuts_a_leaf_is_refused(self):
        coarse = Schema((column("age", "integer", bounds=[0, 9], bins=2),))
        method = PersonalizedEM(
            preference="own", levels=LEVELS, sizes=SIZES, statistic="count", query="age > 6"
        )
        with pytest.raises(InvalidQuery, match="only part of"):
            method.expected_error(coarse, None, Fraction(1))

    def test_the_median_of_words_is_refused(self):
        method = PersonalizedEM(
            preference="own", levels=LEVELS, sizes=SIZES, statistic="median", column="sex"
        )
        with pytest.raises(InvalidParameter, match="holds no numbers"):
            method.expected_error(SCHEMA, None, Fraction(1))

    def test_other_queries_than_the_one_answered_are_refused(self):
        method = counting()
        release = method.release(
            people_table([], method), budget=method.budget(Fraction(1)), rng=seeded(1)
        )
        with pytest.raises(InvalidQuery, match="one query only"):
            release.count("sex = M")
        assert release.count("sex = F", confidence=0.5).low is None

    def test_a_plain_budget_gives_every_level_its_share(self):
        method = counting()
        release = method.release(
            people_table([], method), budget=Budget.seeded("0.5"), rng=seeded(1)
        )
        assert dict(release.receipt.personal)[LEVELS[0]] == Fraction(1, 20)


def test_cheapest_prices_are_added_up_in_order():
    prices = [1, 1, 7, 7, 7, 9]
    found = cheapest(np.arange(7), np.array([2, 3, 1]), np.array([1, 7, 9]))
    assert found.tolist() == [sum(prices[:k]) for k in range(7)]
