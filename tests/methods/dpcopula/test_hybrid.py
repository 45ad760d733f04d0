"""Mixed tables: the exact privacy loss of whole releases, marginals that are kept, dependence."""

from fractions import Fraction

import numpy as np
import pyarrow as pa
import pytest

from dpublish.accuracy.noise_distribution import noise_variance
from dpublish.core import run
from dpublish.core.folder.folder import load
from dpublish.data.schema import Schema, column
from dpublish.data.sources import open_table
from dpublish.datasets.benchmarks import BENCHMARKS
from dpublish.errors import InvalidParameter
from dpublish.evaluation.synthetic_table import Comparison
from dpublish.mechanisms import noise
from dpublish.methods.dpcopula import hybrid as hybrid_copula
from dpublish.methods.dpcopula import mixed_network
from dpublish.methods.dpcopula.hybrid import DPCopulaHybrid
from dpublish.methods.dpcopula.released_hybrid import DPCopulaHybridRelease
from dpublish.privacy.budget import Budget
from dpublish.randomness import plain_generator, seeded
from transcript import privacy_loss

SCHEMA = Schema(
    (
        column("age", "integer", bounds=[0, 5]),
        column("sex", "category", values=["F", "M"]),
        column("pay", "integer", bounds=[0, 7]),
        column("town", "category", values=["a", "b", "c"]),
    )
)
MODULES = (run, noise)
EPSILON = Fraction(4)
DESIGNS = ["network", "numbers-first"]


def method_of(design, **changes):
    settings = {"least_values": 3, "theta": Fraction(1, 4), "max_degree": 2}
    return DPCopulaHybrid(design=design, **settings | changes)


def make_table(records):
    ages, sexes, pays, towns = zip(*records, strict=True) if records else ([], [], [], [])
    return open_table(
        pa.table(
            {
                "age": pa.array(ages, pa.int64()),
                "sex": pa.array(["FM"[code] for code in sexes], pa.string()),
                "pay": pa.array(pays, pa.int64()),
                "town": pa.array(["abc"[code] for code in towns], pa.string()),
            }
        ),
        SCHEMA,
    )


def random_records(seed, size):
    draws = plain_generator(seed).integers(0, [6, 2, 8, 3], size=(size + 1, 4)).tolist()
    return draws[:-1], draws[-1]


def worst_loss(monkeypatch, method, runs=24, sizes=(0, 3, 25, 60)):
    losses = []
    for seed in range(runs):
        records, extra = random_records(seed, sizes[seed % len(sizes)])

        def release(table, seed=seed):
            return method.release(table, budget=Budget.seeded(EPSILON), rng=seeded(seed))

        pair = make_table(records), make_table([*records, extra])
        losses.append(privacy_loss(release, *pair, MODULES, monkeypatch))
    return max(losses)


@pytest.mark.parametrize("design", DESIGNS)
def test_no_release_tells_neighbors_apart_by_more_than_the_budget(design, monkeypatch):
    found = worst_loss(monkeypatch, method_of(design))
    assert found <= float(EPSILON) * (1 + 1e-6)
    assert found > float(EPSILON) / 3  # the releases are not so noisy that nothing was tested


@pytest.mark.parametrize("design", DESIGNS)
def test_the_audit_notices_joints_that_each_take_the_whole_share(design, monkeypatch):
    honest = mixed_network.release_network

    def forgetful(*args, **settings):
        # The transcript stands in for the mechanism, so what it is told is what is changed.
        outer = run.add_geometric

        def one_joint(counts, *, sensitivity, budget, rng):
            return outer(counts, sensitivity=1, budget=budget, rng=rng)

        with monkeypatch.context() as patch:
            patch.setattr(run, "add_geometric", one_joint)
            return honest(*args, **settings)

    monkeypatch.setattr(hybrid_copula, "release_network", forgetful)
    assert worst_loss(monkeypatch, method_of(design)) > float(EPSILON)


def test_the_audit_notices_classes_from_exact_marginals(monkeypatch):
    """Quantiles of the table itself move with one record, and tell of it for nothing."""
    honest = mixed_network.rank_levels

    def release(table):
        kernel = mixed_network.CompleteCounts(SCHEMA, ((("pay", None),),), SCHEMA.names)
        counts = table.sum(kernel)

        def peeking(probabilities, listed):
            exact = counts / max(counts.sum(), 1)
            return honest(exact if listed == len(counts) else probabilities, listed)

        monkeypatch.setattr(mixed_network, "rank_levels", peeking)
        coarse.release(table, budget=Budget.seeded(EPSILON), rng=seeded(1))

    coarse = method_of("network", theta=Fraction(5), max_degree=1)  # two classes a number
    records = [[0, pay % 2, pay, 0] for pay in (0, 3, 7)] * 60  # the middle of 3 is the middle
    losses = []
    for pay in range(8):
        pair = make_table(records), make_table([*records, [0, 1, pay, 0]])
        losses.append(privacy_loss(release, *pair, MODULES, monkeypatch))
    assert max(losses) > float(EPSILON)


@pytest.mark.parametrize("design", [*DESIGNS, "cells"])
@pytest.mark.parametrize("size", [0, 1, 60])
@pytest.mark.parametrize("theta", [Fraction(1, 4), Fraction(10**6)])
def test_every_share_is_spent_whatever_the_table_holds(design, size, theta):
    budget = Budget.seeded("0.9")
    release = method_of(design, theta=theta).release(
        make_table(random_records(4, size)[0]), budget=budget, rng=seeded(3)
    )
    assert all(share.is_used for share in budget.account())
    assert budget.cost() == release.receipt.epsilon == Fraction("0.9")
    assert release.rows(10, seed=1).column_names == list(SCHEMA.names)


def mixed_rows(rows=30_000):
    """Pay rises with age; sex and town follow age, town without any order."""
    draws = plain_generator(11)
    age = draws.integers(0, 60, size=rows)
    pay = np.clip(age * 10 + draws.normal(0, 120, size=rows), 0, 999).astype(np.int64)
    sex = np.where(draws.random(rows) < 0.2 + 0.01 * age, "M", "F")
    town = np.array(["a", "b", "c"])[np.where(draws.random(rows) < 0.8, (age // 20 + 1) % 3, 0)]
    schema = Schema(
        (
            column("age", "integer", bounds=[0, 59]),
            column("pay", "integer", bounds=[0, 999]),
            column("sex", "category", values=["F", "M"]),
            column("town", "category", values=["a", "b", "c"]),
        )
    )
    return pa.table({"age": age, "pay": pay, "sex": sex, "town": town}), schema


@pytest.mark.parametrize("design", DESIGNS)
def test_marginals_and_dependence_come_back(design):
    rows, schema = mixed_rows()
    table = open_table(rows, schema)
    release = DPCopulaHybrid(design=design).release(table, budget=Budget.seeded(3), rng=seeded(2))
    drawn = release.rows(30_000, seed=5)
    assert release.records == pytest.approx(30_000, rel=0.02)
    for name in ("age", "pay"):
        points = [0.1, 0.3, 0.5, 0.7, 0.9]
        gap = np.quantile(drawn[name], points) - np.quantile(rows[name], points)
        assert np.abs(gap).max() < 0.04 * schema[name].size
    for name in ("sex", "town"):
        for value in schema[name].labels:
            share = np.mean(drawn[name].to_numpy(zero_copy_only=False) == value)
            true = np.mean(rows[name].to_numpy(zero_copy_only=False) == value)
            assert share == pytest.approx(true, abs=0.03)
    found = np.corrcoef(drawn["age"], drawn["pay"])[0, 1]
    assert found == pytest.approx(np.corrcoef(rows["age"], rows["pay"])[0, 1], abs=0.12)
    old = rows["age"].to_numpy() >= 40
    drawn_old = drawn["age"].to_numpy() >= 40
    for name, value in (("sex", "M"), ("town", "a")):
        true = np.mean(rows[name].to_numpy(zero_copy_only=False)[old] == value)
        share = np.mean(drawn[name].to_numpy(zero_copy_only=False)[drawn_old] == value)
        assert share == pytest.approx(true, abs=0.15)


def test_numbers_follow_their_marginals_not_the_noisier_joint():
    rows, schema = mixed_rows(3000)
    table = open_table(rows, schema)
    gaps, raw_gaps = [], []
    for seed in range(8):
        release = DPCopulaHybrid(design="network").release(
            table, budget=Budget.seeded(1), rng=seeded(seed)
        )
        wanted = release.cell_shares["age"]
        for probabilities, found in ((release.probabilities, gaps), (None, raw_gaps)):
            cells = release.network.draw(40_000, plain_generator(1), probabilities=probabilities)[
                "age"
            ]
            share = np.bincount(cells, minlength=wanted.size) / 40_000
            found.append(np.abs(share - wanted).sum())
    assert np.mean(gaps) < 0.03
    assert np.mean(gaps) < np.mean(raw_gaps) / 2


@pytest.mark.parametrize("design", DESIGNS)
def test_a_saved_release_gives_the_same_rows_and_answers(design, tmp_path):
    rows, schema = mixed_rows(2000)
    release = DPCopulaHybrid(design=design).release(
        open_table(rows, schema), budget=Budget.seeded(1), rng=seeded(2)
    )
    release.save(tmp_path / "mixed")
    again = load(tmp_path / "mixed")
    assert isinstance(again, DPCopulaHybridRelease)
    assert again == release
    assert again.rows(500, seed=3).equals(release.rows(500, seed=3))
    assert again.count("age >= 30") == release.count("age >= 30")
    assert release.count("age >= 30").low is not None
    mixed = release.count("age >= 30 and town = a")
    assert mixed.low <= mixed.value <= mixed.high <= release.count("town = a").high + 50
    assert "synthetic rows" in mixed.assumption


def test_records_without_a_category_are_left_out_of_everything():
    rows, schema = mixed_rows(20_000)
    towns = rows["town"].to_pylist()
    lost = plain_generator(3).random(len(towns)) < 0.6
    town = column("town", "category", values=["a", "b", "c"], missing="drop")
    table = open_table(
        rows.set_column(3, "town", pa.array(towns, mask=lost)),
        Schema((*schema.columns[:3], town)),
    )
    release = DPCopulaHybrid(design="numbers-first").release(
        table, budget=Budget.seeded(20), rng=seeded(2)
    )
    assert release.records == pytest.approx(8000, rel=0.05)
    complete = DPCopulaHybrid(design="numbers-first").release(
        open_table(rows, schema), budget=Budget.seeded(20), rng=seeded(2)
    )
    assert release.numbers.matrix[0, 1] == pytest.approx(complete.numbers.matrix[0, 1], abs=0.03)


def test_classes_get_names_that_no_value_has():
    values = ["1", "2", "1 to 2", *(f"v{i}" for i in range(7))]
    schema = Schema((column("x", "ordinal", values=values), column("s", "category", values=["F"])))
    drawn = np.repeat(values[:4], [250, 250, 500, 1000])
    table = open_table(pa.table({"x": drawn, "s": ["F"] * 2000}), schema)
    release = DPCopulaHybrid(design="network").release(
        table, budget=Budget.seeded(5), rng=seeded(1)
    )
    assert release.rows(10, seed=1).num_rows == 10


@pytest.mark.parametrize("design", DESIGNS)
def test_long_categories_keep_their_marginals_at_a_small_budget(design):
    """Their cells in the network are coarse; within them values are not uniform."""
    rows, schema = mixed_rows(20_000)
    probabilities = 0.6 ** np.arange(40)
    drawn = plain_generator(6).choice(40, 20_000, p=probabilities / probabilities.sum())
    values = [f"land {number}" for number in range(40)]
    tree = [values[start : start + 8] for start in range(0, 40, 8)]
    land = column("land", "category", taxonomy=tree)
    table = open_table(
        rows.append_column("land", pa.array(np.array(values)[drawn])),
        Schema((*schema.columns, land)),
    )
    release = DPCopulaHybrid(design=design).release(
        table, budget=Budget.seeded("0.3"), rng=seeded(5)
    )
    found = release.rows(20_000, seed=1)["land"].to_pylist()
    share = np.array([found.count(value) for value in values]) / 20_000
    assert np.abs(share - np.bincount(drawn, minlength=40) / 20_000).sum() / 2 < 0.12
    assert release.count('land = "land 0"').low is not None


def test_the_design_follows_from_the_schema():
    rows, schema = mixed_rows(500)
    table = open_table(rows, schema)
    for names, are_first in (
        (("age", "pay", "sex"), True),
        (("age", "pay", "sex", "town"), False),
        (("age", "sex", "town"), False),
    ):
        method = DPCopulaHybrid(columns=names)
        release = method.release(table, budget=Budget.seeded(1), rng=seeded(1))
        assert release.numbers_first == are_first


def test_indices_of_few_values_are_not_taken_for_numbers_of_a_copula():
    indices = [column(f"i{k}", "integer", bounds=[0, 11]) for k in range(4)]
    schema = Schema((*indices, column("sex", "category", values=["F", "M"])))
    rows = {one.name: np.arange(60) % 12 for one in indices} | {"sex": ["F", "M"] * 30}
    release = DPCopulaHybrid().release(
        open_table(pa.table(rows), schema), budget=Budget.seeded(1), rng=seeded(1)
    )
    assert not release.numbers_first


# --- shares by the noisy size --------------------------------------------------------------------


def shares_of(design, size, epsilon="1"):
    """Purposes of a release's shares, and what each cost."""
    rows, schema = mixed_rows(size)
    budget = Budget.seeded(epsilon)
    release = DPCopulaHybrid(design=design).release(
        open_table(rows, schema), budget=budget, rng=seeded(1)
    )
    spent = {}
    for share in budget.account():
        part = share.purpose.split("/")[2] if "/rest" in share.purpose else "size"
        spent[part] = spent.get(part, 0) + share.epsilon
    assert sum(spent.values()) == Fraction(epsilon)
    return release, spent


@pytest.mark.parametrize("design", DESIGNS)
def test_the_fewer_records_the_more_of_epsilon_marginals_get(design):
    left = Fraction(98, 100)
    for size, wanted in ((300, left), (2_000, left * 6 / 10), (30_000, left * 4 / 10)):
        release, spent = shares_of(design, size)
        assert spent["marginals"] == wanted
        assert bool(release.network.joints) == (size > 300)
        assert all(marginal.rate > 0 for marginal in release.numbers.marginals)


def test_without_a_network_rows_follow_the_marginals():
    release, _ = shares_of("network", 300)
    assert release.summary()["network"].startswith("none")
    assert "one_cell_95" not in release.expected_error()
    drawn = release.rows(6_000, seed=1)
    for name in ("sex", "town"):
        values = drawn[name].to_numpy(zero_copy_only=False)
        shares = [np.mean(values == value) for value in release.schema[name].labels]
        assert np.abs(shares - release.cell_shares[name]).max() < 2 / 6_000
        assert release.marginal_counts(name) / release.records == pytest.approx(
            release.cell_shares[name]
        )


def test_an_older_release_without_marginals_of_short_categories_still_draws_rows():
    """It counted every column that has no parents, and says nothing of `apart`."""
    rows, schema = mixed_rows(2_000)
    release = DPCopulaHybrid(design="network").release(
        open_table(rows, schema), budget=Budget.seeded(1), rng=seeded(1)
    )
    parts = {"receipt": release.receipt, "schema": release.schema}
    metadata, tables = release.metadata(), release.tables()
    assert DPCopulaHybridRelease.from_parts(**parts, metadata=metadata, tables=tables) == release
    del metadata["apart"]
    metadata["number_columns"] = ["age", "pay"]
    metadata["numbers"]["marginals"] = metadata["numbers"]["marginals"][:2]
    kept = np.isin(tables["marginals"]["column"].to_pylist(), ["age", "pay"])
    tables["marginals"] = tables["marginals"].filter(pa.array(kept))
    nodes = metadata["nodes"]
    for node in nodes:
        node["parents"] = []
    schema_of = release.network.schema
    sizes = [schema_of[node["column"]].axis(node["level"]).size for node in nodes]
    tables["counts"] = pa.table({"noisy_count": pa.array(np.full(sum(sizes), 50))})
    old = DPCopulaHybridRelease.from_parts(**parts, metadata=metadata, tables=tables)
    assert old.rows(100, seed=1).num_rows == 100
    assert len(old.network.joints) == 4
    assert old.marginal_counts("sex") == pytest.approx([old.records / 2] * 2)


@pytest.mark.parametrize(
    ("columns", "advice"), [(("age", "pay"), "dpcopula"), (("sex", "town"), "privbayes")]
)
def test_tables_of_one_sort_are_sent_elsewhere(columns, advice):
    method = method_of("auto", columns=columns)
    budget = Budget.seeded(1)
    with pytest.raises(InvalidParameter, match=advice):
        method.release(make_table([]), budget=budget, rng=seeded(1))
    with pytest.raises(InvalidParameter, match=advice):
        method.expected_error(SCHEMA, None, Fraction(1))
    assert not budget.is_used


@pytest.mark.parametrize(
    "bad",
    [
        {"design": "best"},
        {"least_values": 2},
        {"theta": Fraction(0)},
        {"max_degree": 9},
        {"least_records": 0},
        {"columns": 3},
    ],
)
def test_settings_that_make_no_sense_are_refused(bad):
    with pytest.raises(InvalidParameter):
        DPCopulaHybrid(**bad)


@pytest.mark.parametrize("design", [*DESIGNS, "cells"])
def test_the_predicted_error_falls_with_epsilon(design):
    method = method_of(design)
    errors = [method.expected_error(SCHEMA, 1000, Fraction(e)) for e in (1, 2, 8)]
    figures = [error.figures[error.target] for error in errors]
    assert figures == sorted(figures, reverse=True)
    assert figures[0] > figures[-1]


@pytest.mark.parametrize("name", ["adult", "census"])
def test_every_marginal_of_a_real_table_is_sensible(name, real_data):
    benchmark = BENCHMARKS[name]
    schema = benchmark.schema(real_data)
    rows = benchmark.rows(real_data).select(schema.names)
    release = DPCopulaHybrid().release(
        open_table(rows, schema), budget=Budget.seeded(1), rng=seeded(1)
    )
    for marginal in Comparison.of(release, rows, seed=1).marginals:
        assert marginal.total_variation < 0.1


# --- rare classes -------------------------------------------------------------------------------


def rare_rows(share, size=30_000, seed=3):
    """A rare class with which two numbers and four categories go together."""
    draws = plain_generator(seed)
    rare = draws.random(size) < share
    hidden = draws.normal(size=size) + 1.2 * rare
    columns, found = [], {}
    for name in ("age", "pay"):
        values = np.rint(50 + 15 * (0.6 * hidden + 0.8 * draws.normal(size=size)))
        found[name] = np.clip(values, 0, 99).astype(np.int64)
        columns.append(column(name, "integer", bounds=[0, 99]))
    for name, cells in (("a", 3), ("b", 4), ("c", 5), ("d", 8)):
        cell = np.floor((0.5 * hidden + draws.normal(size=size) + 2) / 4 * cells)
        labels = [f"{name}{number}" for number in range(cells)]
        found[name] = np.array(labels)[np.clip(cell, 0, cells - 1).astype(np.int64)]
        columns.append(column(name, "category", values=labels))
    found["fraud"] = np.where(rare, "yes", "no")
    columns.append(column("fraud", "category", values=["no", "yes"]))
    return pa.table(found), Schema(tuple(columns))


def deviation(release, name):
    """Standard deviation of the records with one of a column's two values, by its joints."""
    cells = [
        joint.size / 2
        for columns, joint in zip(release.network.joint_sets, release.network.joints, strict=True)
        if name in dict(columns)
    ]
    variance = noise_variance(release.noise_rate) / sum(1 / count for count in cells)
    return np.sqrt(variance / 2)  # that both values add up to all records halves it


@pytest.mark.parametrize("design", DESIGNS)
@pytest.mark.parametrize("share", [0.01, 0.03])
def test_rows_keep_the_share_of_a_rare_class(design, share):
    """Joint counts made non-negative cell by cell would give rare classes several times as many."""
    rows, schema = rare_rows(share)
    true = np.sum(rows["fraud"].to_numpy(zero_copy_only=False) == "yes")
    errors = []
    for seed in range(3):
        release = DPCopulaHybrid(design=design).release(
            open_table(rows, schema), budget=Budget.seeded(1), rng=seeded(seed)
        )
        drawn = release.rows(rows.num_rows, seed=1)
        found = np.sum(drawn["fraud"].to_numpy(zero_copy_only=False) == "yes")
        scale = np.hypot(deviation(release, "fraud"), np.sqrt(2 * true))
        errors.append((found - true) / scale)
        counted = release.count("fraud = yes").value
        assert abs(counted - found) < 4 * np.sqrt(max(found, 50))  # both are drawn
        told = release.marginal_counts("fraud")[1]
        assert abs(told - found) < 4 * np.sqrt(max(found, 50))
    assert np.max(np.abs(errors)) < 3.5
