"""What personalized methods share: settings, amounts by level, budgets and receipts."""

from fractions import Fraction

import pyarrow as pa
import pytest

from dpublish.core.run import Run
from dpublish.data.schema import Schema, column
from dpublish.data.sources import open_table
from dpublish.errors import BudgetAlreadyUsed, InvalidParameter
from dpublish.methods.histogram.histogram import Histogram
from dpublish.methods.personalized.method import full_epsilon, inner_release, known_sizes
from dpublish.methods.personalized.minimum import Minimum
from dpublish.methods.personalized.sampling import Sampling
from dpublish.methods.personalized.threshold import Threshold
from dpublish.privacy.budget import Budget, Grant
from dpublish.privacy.neighbors import PersonalRecord
from dpublish.randomness import secure, seeded

LEVELS = (Fraction(1, 100), Fraction(1, 5), Fraction(1))
SCHEMA = Schema((column("sex", "category", values=["F", "M"]),))
INNER = Histogram(columns=("sex",))
COMMON = {"preference": "own", "levels": LEVELS, "inner": INNER}
METHODS = [
    Minimum(**COMMON),
    Minimum(**COMMON, sizes=(0, 5, 7)),
    Threshold(**COMMON, threshold=Fraction(1, 5)),
    Threshold(**COMMON, threshold=Fraction(1), mode="values-only", exchangeable=True),
    Sampling(**COMMON),
    Sampling(**COMMON, threshold="mean", sizes=(500, 3500, 6000), exchangeable=True),
    Sampling(**COMMON, threshold=Fraction(1, 2), mode="values-only"),
]


def open_rows(method, own=(0.01, 0.3, 1.0, 0.005, None), sex=("F", "M", "M", "F", "F")):
    source = pa.table({"own": pa.array(own, pa.float64()), "sex": pa.array(sex, pa.string())})
    return open_table(source, method.prepare(SCHEMA))


@pytest.mark.parametrize("method", METHODS, ids=lambda r: f"{r.name}-{r.mode}")
class TestEveryMethod:
    def test_no_level_pays_more_than_its_share(self, method):
        for epsilon in (Fraction(1), Fraction(1, 7)):
            amounts = method.spending(epsilon)
            assert tuple(amounts) == LEVELS
            for level, amount in amounts.items():
                assert 0 <= amount <= level * epsilon
        with pytest.raises(InvalidParameter, match="largest level"):
            method.spending(Fraction(2))

    def test_the_epsilon_of_a_budget_is_found_again(self, method):
        for epsilon in (Fraction(1), Fraction(1, 7)):
            budget = method.budget(epsilon)
            assert full_epsilon(method, budget) == epsilon
            assert full_epsilon(method, Budget.seeded(budget.epsilon)) == epsilon

    def test_a_budget_of_other_amounts_is_refused(self, method):
        amounts = tuple((level, amount / 2) for level, amount in method.spending(1).items())
        amounts = ((LEVELS[0], Fraction(1, 2000)), *amounts[1:])
        budget = Budget.seeded(max(amount for _, amount in amounts), levels=amounts)
        with pytest.raises(InvalidParameter, match="other amounts"):
            full_epsilon(method, budget)
        with pytest.raises(InvalidParameter, match="may spend with these levels"):
            full_epsilon(method, Budget.seeded("1.5"))

    def test_budget_in_is_budget_spent_and_stands_in_the_receipt(self, method):
        budget = method.budget(Fraction(1, 2))
        table = open_rows(method)
        release = method.release(table, budget=budget, rng=secure())
        assert all(leaf.is_used for leaf in budget.account())
        assert budget.cost() == budget.epsilon == release.receipt.epsilon
        assert dict(release.receipt.personal) == method.spending(Fraction(1, 2))
        [part] = release.parts
        halves = 2 if method.mode == "values-only" else 1
        assert part.epsilon == part.release.receipt.epsilon == budget.epsilon / halves
        assert release.receipt.neighbors == PersonalRecord("own", ("0.01", "0.2", "1"), method.mode)
        with pytest.raises(BudgetAlreadyUsed):
            method.release(table, budget=budget, rng=secure())

    def test_a_used_budget_is_refused_before_any_row_is_read(self, method):
        class Untouchable:
            schema = method.prepare(SCHEMA)
            neighbors = SCHEMA.neighbors

            def sum(self, kernel):
                pytest.fail("rows were read, though nothing paid for them")

            only = sample_by = sum

        budget = method.budget(Fraction(1))
        budget.spend()
        with pytest.raises(BudgetAlreadyUsed):
            method.release(Untouchable(), budget=budget, rng=seeded(1))

    @pytest.mark.parametrize("own", [(), (1.0,), (0.2,) * 6, (0.001, None, float("nan"))])
    def test_it_works_on_small_tables(self, method, own):
        table = open_rows(method, own, ("F",) * len(own))
        release = method.release(table, budget=method.budget(Fraction(1)), rng=seeded(2))
        assert release.summary()
        assert abs(release.count("sex = F").value) < 5000

    def test_granted_money_buys_no_seeded_noise(self, method):
        granted = Budget.granted(
            method.budget(Fraction(1)).epsilon, grant=Grant("people", 3, "ab" * 32)
        )
        with pytest.raises(InvalidParameter, match="secure"):
            method.release(open_rows(method), budget=granted, rng=seeded(1))
        assert not granted.is_used

    def test_the_error_is_predicted_and_falls_with_epsilon(self, method):
        loose = method.expected_error(SCHEMA, None, Fraction(1, 10))
        tight = method.expected_error(method.prepare(SCHEMA), 1000, Fraction(1))
        assert tight.figures[tight.target] < loose.figures[loose.target]
        with pytest.raises(InvalidParameter, match="2\\*\\*-40"):
            method.expected_error(SCHEMA, None, Fraction(1, 10**30))


def test_a_table_without_the_levels_is_refused():
    table = open_table(pa.table({"own": [1.0], "sex": ["F"]}), SCHEMA)
    with pytest.raises(InvalidParameter, match=r"preferences\.schema"):
        METHODS[0].release(table, budget=METHODS[0].budget(Fraction(1)), rng=seeded(1))


def test_a_personalized_method_within_another_is_refused():
    with pytest.raises(InvalidParameter, match="ordinary method"):
        Minimum(**(COMMON | {"inner": METHODS[0]}))


def test_the_mode_follows_from_the_sizes():
    assert Minimum(**COMMON).mode == "levels"
    assert Minimum(**COMMON, sizes=(1, 2, 3)).mode == "frame"
    with pytest.raises(InvalidParameter, match="mode frame"):
        Minimum(**COMMON, mode="frame")


def test_an_inner_release_cannot_spend_more_than_its_budget():
    run = Run(open_table(pa.table({"sex": ["F"]}), SCHEMA), rng=seeded(1))
    budget = Budget.seeded("0.5")
    with pytest.raises(InvalidParameter, match="at most that"):
        inner_release(run, INNER, budget, Fraction(1))
    assert not budget.is_used
    release = inner_release(run, INNER, budget, Fraction(1, 4))
    assert budget.is_used
    assert release.receipt.epsilon == Fraction(1, 4)


def test_people_are_counted_only_where_their_number_is_public():
    class Unread:
        schema = METHODS[0].prepare(SCHEMA)

        def sum(self, kernel):
            pytest.fail("the number of people is private")

    unread = Run(Unread(), rng=seeded(1))
    assert known_sizes(unread, METHODS[0]) is None
    assert known_sizes(unread, METHODS[1]) == (0, 5, 7)
    counted = Run(open_rows(METHODS[3]), rng=seeded(1))
    assert known_sizes(counted, METHODS[3]) == (1, 1, 1)
