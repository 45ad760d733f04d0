"""The copula method: the exact privacy loss of whole releases, and what they recover."""

from fractions import Fraction

import numpy as np
import pyarrow as pa
import pytest

from dpublish.core import run
from dpublish.data.schema import Schema, column
from dpublish.data.sources import open_table
from dpublish.errors import InvalidParameter
from dpublish.mechanisms import noise
from dpublish.methods.dpcopula import column_marginals, dpcopula
from dpublish.methods.dpcopula.column_marginals import marginal_shares
from dpublish.methods.dpcopula.dpcopula import DPCopula, ordered_columns
from dpublish.privacy.budget import Budget
from dpublish.randomness import plain_generator, seeded
from transcript import privacy_loss

SCHEMA = Schema(
    (
        column("age", "integer", bounds=[0, 3]),
        column("pay", "integer", bounds=[0, 4]),
        column("sex", "category", values=["F", "M"]),
        column("town", "category", values=["a", "b", "c"]),
    )
)
MODULES = (run, noise)
EPSILON = Fraction(3)


def make_table(records, schema=SCHEMA):
    ages, pays, sexes, towns = zip(*records, strict=True) if records else ([], [], [], [])
    rows = pa.table(
        {
            "age": pa.array(ages, pa.int64()),
            "pay": pa.array(pays, pa.int64()),
            "sex": pa.array(["FM"[code] for code in sexes], pa.string()),
            "town": pa.array(["abc"[code] for code in towns], pa.string()),
        }
    )
    return open_table(rows, schema)


def random_records(seed, size):
    draws = plain_generator(seed).integers(0, [4, 5, 2, 3], size=(size + 1, 4)).tolist()
    return draws[:-1], draws[-1]


def worst_loss(monkeypatch, method, runs=30, sizes=(0, 2, 15, 40)):
    losses = []
    for seed in range(runs):
        records, extra = random_records(seed, sizes[seed % len(sizes)])

        def release(table, seed=seed):
            return method.release(table, budget=Budget.seeded(EPSILON), rng=seeded(seed))

        pair = make_table(records), make_table([*records, extra])
        losses.append(privacy_loss(release, *pair, MODULES, monkeypatch))
        losses.append(privacy_loss(release, *pair[::-1], MODULES, monkeypatch))
    return max(losses)


@pytest.mark.parametrize("method", ["spearman", "kendall"])
@pytest.mark.parametrize("marginal", ["auto", "hierarchical"])
def test_no_release_tells_neighbors_apart_by_more_than_the_budget(method, marginal, monkeypatch):
    found = worst_loss(monkeypatch, DPCopula(correlation=method, marginal=marginal))
    assert found <= float(EPSILON) * (1 + 1e-6)
    assert found > float(EPSILON) / 2  # the releases are not so noisy that nothing was tested


def test_the_audit_notices_marginals_that_each_take_the_whole_share(monkeypatch):
    """As if a record were in one column only."""
    honest = column_marginals.release_marginal

    def reckless(run, counts, *, method, budget):
        return honest(run, counts, method=method, budget=Budget.seeded(4 * budget.spend()))

    monkeypatch.setattr(column_marginals, "release_marginal", reckless)
    assert worst_loss(monkeypatch, DPCopula()) > float(EPSILON)


@pytest.mark.parametrize("method", ["spearman", "kendall", "mle"])
@pytest.mark.parametrize("size", [0, 1, 30])
def test_every_share_is_spent_and_costs_the_budget(method, size):
    budget = Budget.seeded("0.7")
    release = DPCopula(correlation=method).release(
        make_table(random_records(5, size)[0]), budget=budget, rng=seeded(2)
    )
    assert all(share.is_used for share in budget.account())
    assert budget.cost() == release.receipt.epsilon == Fraction("0.7")
    assert release.ordered == ("age", "pay", "sex")
    assert np.isfinite(release.matrix).all()
    assert release.rows(20, seed=1).num_rows == 20


def test_marginals_and_correlations_come_back_with_much_budget():
    draws = plain_generator(8)
    normals = draws.multivariate_normal([0, 0], [[1, 0.7], [0.7, 1]], size=20_000)
    schema = Schema(tuple(column(x, "numeric", bounds=[-4, 4], bins=400) for x in "xy"))
    table = open_table(pa.table({"x": normals[:, 0], "y": np.exp(normals[:, 1]) - 3}), schema)
    release = DPCopula().release(table, budget=Budget.seeded(50), rng=seeded(1))
    assert release.matrix[0, 1] == pytest.approx(0.7, abs=0.02)
    rows = release.rows(20_000, seed=3)
    for name, true in (("x", normals[:, 0]), ("y", np.clip(np.exp(normals[:, 1]) - 3, -4, 4))):
        gap = np.quantile(rows[name].to_numpy(), [0.1, 0.5, 0.9]) - np.quantile(
            true, [0.1, 0.5, 0.9]
        )
        assert np.abs(gap).max() < 0.1


def test_columns_without_an_order_stand_alone():
    assert ordered_columns(SCHEMA.columns) == ("age", "pay", "sex")
    assert ordered_columns((SCHEMA["sex"], SCHEMA["town"])) == ()
    release = DPCopula(columns=("town", "sex")).release(
        make_table(random_records(1, 50)[0]), budget=Budget.seeded(1), rng=seeded(1)
    )
    assert release.correlation is None
    assert [share.purpose.split("/")[1] for share in release_shares(release)] == [
        "size",
        "marginals",
        "marginals",
    ]


def release_shares(release):
    return [type("Share", (), {"purpose": purpose}) for purpose, _ in release.receipt.shares]


def test_longer_columns_get_more_of_the_budget():
    schema = Schema(
        (column("short", "integer", bounds=[0, 9]), column("long", "integer", bounds=[0, 9999]))
    )
    shares = marginal_shares(schema.columns, "auto")
    assert sum(shares.values()) == 1
    assert shares["long"] > shares["short"]


def test_the_predicted_error_falls_with_epsilon_and_knows_the_correlations():
    method = DPCopula()
    errors = [method.expected_error(SCHEMA, 1000, Fraction(e)) for e in (1, 2, 4)]
    widths = [error.figures["range_count_95"] for error in errors]
    assert widths == sorted(widths, reverse=True)
    assert errors[0].figures["correlation_95"] > errors[2].figures["correlation_95"]
    assert "correlation_95" not in method.expected_error(SCHEMA, None, Fraction(1)).figures


@pytest.mark.parametrize(
    "bad",
    [
        {"columns": 3},
        {"correlation": "pearson"},
        {"marginal": "best"},
        {"ratio": 8},
        {"ratio": Fraction(0)},
    ],
)
def test_settings_that_make_no_sense_are_refused(bad):
    with pytest.raises(InvalidParameter):
        DPCopula(**bad)


@pytest.mark.parametrize("columns", [("age", "age"), ("wealth",)])
def test_what_a_release_would_refuse_the_plan_refuses_and_nothing_is_spent(columns):
    method = DPCopula(columns=columns)
    budget = Budget.seeded(1)
    with pytest.raises(InvalidParameter):
        method.expected_error(SCHEMA, 10, Fraction(1))
    with pytest.raises(InvalidParameter):
        method.release(make_table([]), budget=budget, rng=seeded(1))
    assert not budget.is_used


def test_too_many_columns_are_refused_before_any_of_them_is_planned(monkeypatch):
    def plan(*_):
        pytest.fail("a marginal was planned, which takes minutes for all of them")

    monkeypatch.setattr(dpcopula, "require_marginals", plan)
    schema = Schema(tuple(column(f"x{i}", "integer", bounds=[0, 9]) for i in range(2_000)))
    with pytest.raises(InvalidParameter, match=r"2,000 columns are too many .* name fewer"):
        DPCopula().expected_error(schema, None, Fraction(1))
