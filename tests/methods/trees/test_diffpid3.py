"""The method of private trees: settings, accounts, refusals, and trees that are of use."""

from fractions import Fraction

import numpy as np
import pyarrow as pa
import pytest

from dpublish.data.schema import Schema, column
from dpublish.data.sources import open_table
from dpublish.errors import BudgetAlreadyUsed, InvalidParameter
from dpublish.methods.trees.diffpid3 import DiffPID3
from dpublish.privacy.budget import Budget
from dpublish.randomness import plain_generator, seeded
from method_examples import SCHEMA, arrow_table

LOANS = Schema(
    (
        column("age", "integer", bounds=[0, 99], bins=10),
        column(
            "job", "category", taxonomy={"Paid": ["clerk", "nurse"], "Unpaid": ["carer", "none"]}
        ),
        column("risk", "category", values=["low", "high"]),
    )
)


def loans(size=2000):
    rng = plain_generator(5)
    ages = rng.integers(0, 100, size)
    jobs = rng.integers(0, 4, size)
    risky = (ages < 60) & (jobs >= 2)
    return pa.table(
        {
            "age": ages,
            "job": pa.array(np.array(["clerk", "nurse", "carer", "none"])[jobs].tolist()),
            "risk": pa.array(np.where(risky, "high", "low").tolist()),
        }
    )


def release(table, epsilon=2, seed=1, schema=LOANS, budget=None, **settings):
    method = DiffPID3(**{"target": "risk", **settings})
    budget = budget or Budget.seeded(epsilon)
    return method.release(open_table(table, schema), budget=budget, rng=seeded(seed))


@pytest.mark.parametrize(
    "settings",
    [{}, {"score": "gini"}, {"score": "entropy", "max_records": 5000}, {"cuts": "staged"}],
    ids=str,
)
def test_a_clear_rule_is_learned(settings):
    tree = release(loans(), depth=2, **settings)
    fresh = loans(500).drop_columns(["risk"])
    assert tree.predict(fresh).to_pylist() == loans(500)["risk"].to_pylist()


def test_the_budget_pays_for_every_path_and_the_receipt_says_so():
    budget = Budget.seeded("0.8")
    tree = release(loans(), budget=budget, depth=3)
    assert len(tree.shape.leaves) > 3
    assert budget.cost() == budget.epsilon == tree.receipt.epsilon == Fraction(4, 5)
    assert all(leaf.is_used for leaf in budget.account())
    assert tree.receipt.parallel
    with pytest.raises(BudgetAlreadyUsed):
        release(loans(), budget=budget)


def test_leaves_that_stop_early_have_less_noise():
    tree = release(loans(), depth=3)
    assert list(tree.count_rates) == sorted(tree.count_rates, reverse=True)
    assert tree.size_rate == Fraction(2, 8)
    assert tree.count_rates[-1] == 2 * tree.size_rate


def test_noise_has_the_rates_that_are_published():
    # A tree that stops at its root: one size and two counts, of an empty table.
    sizes, counts = [], []
    for seed in range(300):
        tree = release(loans(0), epsilon=1, seed=seed, depth=1)
        assert tree.branches == {}
        sizes.append(tree.sizes[0])
        counts.extend(tree.counts[0].tolist())
    for drawn, rate in ((sizes, tree.size_rate), (counts, tree.count_rates[0])):
        decay = np.exp(-float(rate))
        expected = 2 * decay / (1 - decay) ** 2  # the variance of two-sided geometric noise
        ratio = np.var(drawn) / expected
        assert 0.7 < ratio < 1.4
        assert not 0.7 < ratio * 4 < 1.4  # half the rate would be noticed


def test_a_level_of_a_taxonomy_can_be_asked_for():
    tree = release(loans(), predictors=("job@1",), depth=1)
    assert tree.branches[0].starts == (0, 2)
    assert tree.schema.names == ("job", "risk")
    assert "job = Unpaid" in tree.tables()["nodes"]["condition"].to_pylist()


def test_a_column_of_one_cell_is_never_split():
    tree = release(loans(), predictors=("job@0",))
    assert tree.branches == {}


@pytest.mark.parametrize("target", ["sex", "town"])
def test_missing_values_and_strange_rows_do_no_harm(target):
    tree = release(arrow_table(), schema=SCHEMA, target=target, epsilon=40)
    predicted = tree.predict(arrow_table()).to_pylist()
    assert len(predicted) == len(arrow_table())


def test_progress_tells_levels_only():
    seen = []
    DiffPID3(target="risk", depth=2).release(
        open_table(loans(), LOANS),
        budget=Budget.seeded(2),
        rng=seeded(1),
        progress=lambda *step: seen.append(step),
    )
    assert seen == [(1, 2, "tree"), (2, 2, "tree")]


@pytest.mark.parametrize(
    "settings",
    [
        {"depth": 0},
        {"depth": 31},
        {"depth": 1.5},
        {"score": "gain-ratio"},
        {"cuts": "both"},
        {"score": "entropy"},
        {"max_records": 10},
        {"score": "entropy", "max_records": 2**31},
    ],
    ids=str,
)
def test_bad_settings_are_refused_at_once(settings):
    with pytest.raises(InvalidParameter):
        DiffPID3(target="risk", **settings)


@pytest.mark.parametrize(
    ("settings", "epsilon"),
    [
        ({"target": "age"}, 1),
        ({"target": "nonsense"}, 1),
        ({"predictors": ("risk",)}, 1),
        ({"predictors": ("job@7",)}, 1),
        ({}, Fraction(1, 2**41)),
    ],
    ids=str,
)
def test_what_release_refuses_the_forecast_refuses_too_and_nothing_is_spent(settings, epsilon):
    method = DiffPID3(**{"target": "risk", **settings})
    budget = Budget.seeded(epsilon)
    with pytest.raises(InvalidParameter) as predicted:
        method.expected_error(LOANS, None, Fraction(epsilon))
    with pytest.raises(InvalidParameter) as refused:
        method.release(open_table(loans(), LOANS), budget=budget, rng=seeded(1))
    assert str(predicted.value) == str(refused.value)
    assert not budget.is_used


def test_the_forecast_of_a_choice_holds():
    """Of many choices among equal splits and a better one, few fall behind by more."""
    method = DiffPID3(target="risk", predictors=("age",), depth=1)
    predicted = method.expected_error(LOANS, None, Fraction(1)).figures["choice_shortfall_95"]
    ages = np.arange(600) % 100
    table = pa.table(
        {
            "age": ages,
            "job": ["clerk"] * 600,
            "risk": np.where(ages < 30, "high", "low").tolist(),
        }
    )
    behind = 0
    for seed in range(200):
        root = release(table, epsilon=1, seed=seed, predictors=("age",), depth=1).branches[0]
        cut = root.starts[1] * 10
        behind += 6 * abs(cut - 30) > predicted  # each year of age holds six records
    assert behind <= 20
