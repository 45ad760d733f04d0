"""The network method: what its size allows, how it chooses, and what noise its counts carry."""

from fractions import Fraction
from itertools import combinations, product
from math import prod

import numpy as np
import pyarrow as pa
import pytest

from dpublish.accuracy.noise_distribution import noise_pmf
from dpublish.aggregates.complete_counts import CompleteCounts
from dpublish.aggregates.dependence import distance_from_independence
from dpublish.core.run import Run
from dpublish.data.schema import Schema, column
from dpublish.data.sources import open_table
from dpublish.errors import InvalidParameter
from dpublish.methods.privbayes import structure as bayes_structure
from dpublish.methods.privbayes.network import joint_sets
from dpublish.methods.privbayes.privbayes import PrivBayes
from dpublish.methods.privbayes.structure import MOST_CELLS, Plan, make_plan, parent_sets
from dpublish.privacy.budget import Budget
from dpublish.randomness import seeded
from dpublish.testing import frequency_p_value
from method_examples import ROWS, SCHEMA, arrow_table

BINARY = tuple(column(name, "category", values=["0", "1"]) for name in "abcdef")


def plan(size, columns=BINARY, **changes):
    settings = {
        "joint_budget": Fraction(1, 2),
        "whole_budget": Fraction(3, 4),
        "theta": Fraction(4),
        "max_degree": 4,
        "target": None,
    }
    return make_plan(columns, size=size, **settings | changes)


def tied_table(rows=2000, columns=BINARY[:3]):
    """The second column mostly repeats the first, the third mostly does not."""
    draw = np.random.Generator(np.random.Philox(8)).random((rows, 3))
    first = draw[:, 0] < 0.5
    second = first ^ (draw[:, 1] < 0.40)
    third = first ^ (draw[:, 2] < 0.46)
    values = [np.where(bits, "1", "0") for bits in (first, second, third)]
    names = [column.name for column in columns]
    return open_table(pa.table(dict(zip(names, values, strict=True))), Schema(columns))


# --- what is allowed ---------------------------------------------------------------------------


@pytest.mark.parametrize("size", [-50, 0, 1, 30, 150, 200, 300, 500, 1000, 10**6])
def test_the_degree_is_the_largest_whose_counts_are_useful(size):
    useful = [
        k for k in range(1, 5) if Fraction(max(size, 0), 2) / ((6 - k) * 2 ** (k + 1)) >= 4
    ]  # fmt: skip
    assert plan(size).degree == max(useful, default=0)


def test_the_degree_is_bounded_by_its_setting_and_by_the_number_of_columns():
    assert plan(10**6, max_degree=2).degree == 2
    assert plan(10**6, columns=BINARY[:3]).degree == 2
    assert plan(10**6, columns=BINARY[:1]).degree == 0
    many = tuple(column(f"c{i}", "category", values=["0", "1"]) for i in range(100))
    assert plan(10**9, columns=many).degree == 1  # there are too many sets of two to list


def test_a_column_is_drawn_on_the_finest_level_that_leaves_room_for_a_parent():
    age = column("age", "integer", bounds=[0, 63], branching=2)
    found = plan(1000, columns=(age, BINARY[0]))  # 1000 / 2 / 4 / 1 joint = 125 cells
    assert found.degree == 1
    assert found.own("age") == (5, 32)
    assert plan(1000, columns=(age, BINARY[0]), target="age").own("age") == (6, 64)
    # Alone it is drawn finely: neighbors can be added up, but not taken apart.
    assert plan(-3, columns=(age, BINARY[0])).own("age") == (6, 64)
    wide = column("wide", "integer", bounds=[0, 1023], branching=2)
    assert plan(-3, columns=(wide, BINARY[0])).own("wide") == (7, 128)


@pytest.mark.parametrize(("epsilon", "has_network"), [("0.06", False), ("0.12", True)])
def test_a_network_is_chosen_where_marginals_leave_something_to_gain(epsilon, has_network):
    # Six cells of 2,000 records: 32 times the noise of a marginal's cell from 0.099 on.
    release = PrivBayes().release(tied_table(), budget=Budget.seeded(epsilon), rng=seeded(4))
    assert any(node.parents for node in release.nodes) == has_network
    named = PrivBayes(target="a", theta=Fraction(1)).release(
        tied_table(), budget=Budget.seeded("0.06"), rng=seeded(4)
    )
    assert any(node.parents for node in named.nodes)  # a class is to be predicted


def test_rows_hold_of_a_rare_class_what_its_noisy_counts_say():
    """Counts that are made non-negative cell by cell would give it several times as many."""
    draws = np.random.Generator(np.random.Philox(8)).random((20_000, 6))
    rare = draws[:, 0] < 0.01
    rows = {"rare": np.where(rare, "yes", "no")}
    columns = [column("rare", "category", values=["no", "yes"])]
    for name, draw in zip("abcde", draws[:, 1:].T, strict=True):
        cells = np.floor(8 * draw ** np.where(rare, 2, 1)).astype(np.int64)
        rows[name] = np.array([f"{name}{cell}" for cell in range(8)])[cells]
        columns.append(column(name, "category", values=[f"{name}{cell}" for cell in range(8)]))
    table = open_table(pa.table(rows), Schema(tuple(columns)))
    told, seen, raw = [], [], []
    for seed in range(4):
        release = PrivBayes().release(table, budget=Budget.seeded(1), rng=seeded(seed))
        assert any(node.parents for node in release.nodes)
        found = release.rows(20_000, seed=seed)["rare"].to_pylist().count("yes")
        told.append(release.network.marginal("rare")[1])
        seen.append(found)
        cells = release.network.draw(20_000, np.random.Generator(np.random.Philox(seed)))
        raw.append(np.sum(cells["rare"]))
    assert np.abs(np.array(seen) - told).max() < 60
    assert np.abs(np.array(raw) - told).max() > 120  # as it was, without raking


def test_without_a_pair_that_fits_no_network_is_chosen():
    wide = tuple(column(name, "integer", bounds=[0, 99]) for name in "xy")
    assert plan(10_000, columns=wide).degree == 0  # 1,250 cells, and a pair has 10,000
    assert plan(100_000, columns=wide).degree == 1


def test_sets_of_parents_fit_and_leave_no_room_for_another_column():
    levels = {"a": [(1, 2), (2, 4), (3, 8)], "b": [(1, 3)], "c": [(1, 2), (2, 5)], "d": [(1, 7)]}
    sizes = {(name, level): size for name, many in levels.items() for level, size in many}
    for degree, room in product(range(1, 4), range(1, 60)):
        found = parent_sets("abcd", room, Plan(degree, 0, levels))
        named = [tuple(name for name, _ in one) for one in found]
        assert len(set(named)) == len(named)
        for one in found:
            cells = prod(sizes[pair] for pair in one)
            assert cells <= room
            finer = (
                cells // sizes[n, at] * sizes[n, at + 1] for n, at in one if (n, at + 1) in sizes
            )
            assert all(size > room for size in finer)
        for names in (n for k in range(degree + 1) for n in combinations("abcd", k)):
            if names in named or prod(levels[n][0][1] for n in names) > room:
                continue
            assert any(set(names) < set(other) for other in named)  # left out for a larger set


def test_too_many_candidates_are_thinned_at_random(monkeypatch):
    monkeypatch.setattr(bayes_structure, "MOST_CANDIDATES", 3)
    candidates = list(range(10))
    kept = [tuple(bayes_structure._thin(candidates, Run(None, rng=seeded(s)))) for s in range(2000)]
    distribution = dict.fromkeys(combinations(range(10), 3), 1.0)
    assert frequency_p_value(kept, distribution) > 1e-4


# --- what is chosen, and what it costs ---------------------------------------------------------


def first_choices(epsilon, count):
    """Which column was chosen after the first, many times."""
    table = tied_table()
    method = PrivBayes(target="a", max_degree=1)
    rng = seeded(3)
    releases = [method.release(table, budget=Budget.seeded(epsilon), rng=rng) for _ in range(count)]
    assert all(len(release.nodes) == 3 for release in releases)
    assert all(release.nodes[1].parents == (("a", 1),) for release in releases)
    return [release.nodes[1].column for release in releases]


def permute_and_flip(gap, rate):
    """Probabilities of the better and of the worse of two candidates."""
    coin = np.exp(-float(rate) * gap)
    return {"b": 1 - coin / 2, "c": coin / 2}


def test_the_network_is_chosen_with_the_odds_that_were_paid_for():
    epsilon = Fraction(1, 2)
    table = tied_table()
    kernel = CompleteCounts(table.schema, ((("b", 1), ("a", 1)), (("c", 1), ("a", 1))), ("a",))
    scores = [distance_from_independence(part) for part in kernel.split(table.sum(kernel))]
    gap = scores[0] - scores[1]
    # 97 % of epsilon is left after the size, three tenths of it pay for two choices.
    rate = epsilon * Fraction(97, 100) * Fraction(3, 10) / 2 / (4 * 1024)
    seen = first_choices(epsilon, 700)
    assert frequency_p_value(seen, permute_and_flip(gap, rate)) > 1e-4
    assert frequency_p_value(seen, permute_and_flip(gap, 2 * rate)) < 1e-9  # half the range


def exact(table, release):
    kernel = CompleteCounts(table.schema, joint_sets(release.nodes), table.schema.names)
    return table.sum(kernel)


@pytest.mark.parametrize(
    ("theta", "share", "joints"),
    [(4, Fraction(97, 100) * Fraction(7, 10), 2), (10**6, Fraction(97, 100), 3)],
    ids=["network", "marginals"],
)
def test_counts_carry_just_the_noise_of_the_proof(theta, share, joints):
    table, rng = tied_table(), seeded(5)
    method = PrivBayes(target="a", max_degree=1, theta=Fraction(theta))
    samples = []
    for _ in range(300):
        release = method.release(table, budget=Budget.seeded("0.6"), rng=rng)
        assert len(release.joints) == joints
        samples.extend((release.counts - exact(table, release)).tolist())
    rate = Fraction("0.6") * share / joints
    assert release.noise_rate == rate
    values = np.arange(-400, 401)
    distribution = dict(zip(values.tolist(), noise_pmf(rate, values), strict=True))
    twin = dict(zip(values.tolist(), noise_pmf(rate * joints, values), strict=True))
    assert frequency_p_value(samples, distribution) > 1e-4
    assert frequency_p_value(samples, twin) < 1e-20  # as if a record lay in one joint only


@pytest.mark.parametrize(("rows", "theta"), [(0, 4), (1, 4), (2000, 4), (2000, 10**6)])
@pytest.mark.parametrize("score", ["R", "F"])
def test_every_share_is_spent_with_and_without_a_network(rows, theta, score):
    budget = Budget.seeded("0.7")
    release = PrivBayes(score=score, theta=Fraction(theta)).release(
        tied_table(rows), budget=budget, rng=seeded(rows)
    )
    assert all(share.is_used for share in budget.account())
    assert budget.cost() == release.receipt.epsilon == Fraction("0.7")
    names = [share.purpose for share in budget.account()]
    structured = any("structure" in name for name in names)
    assert structured == any(node.parents for node in release.nodes)
    if rows == 2000:
        assert structured == (theta == 4)


def test_a_record_that_lacks_a_column_is_counted_nowhere():
    table = open_table(arrow_table(ROWS), SCHEMA)
    method = PrivBayes(columns=("sex", "town", "age"))
    release = method.release(table, budget=Budget.seeded(10**9), rng=seeded(1))
    assert release.size == 4
    assert all(joint.sum() == 4 for joint in release.joints)


@pytest.mark.parametrize("score", ["R", "F"])
def test_with_much_budget_rows_keep_the_dependence(score):
    release = PrivBayes(score=score).release(
        tied_table(), budget=Budget.seeded(1000), rng=seeded(1)
    )
    rows = release.rows(20_000, seed=1)
    agree = np.mean(np.asarray(rows["a"]) == np.asarray(rows["b"]))
    assert agree == pytest.approx(0.6, abs=0.03)


# --- what is refused ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    "bad",
    [
        {"columns": 3},
        {"score": "MI"},
        {"theta": Fraction(0)},
        {"theta": "four"},
        {"structure_share": Fraction(1)},
        {"structure_share": Fraction(0)},
        {"max_degree": 0},
        {"max_degree": 7},
        {"max_degree": 5, "score": "F"},
    ],
)
def test_settings_that_make_no_sense_are_refused(bad):
    with pytest.raises(InvalidParameter):
        PrivBayes(**bad)


HUGE = Schema((column("x", "integer", bounds=[0, MOST_CELLS]), BINARY[0]))
UNITS = Schema(BINARY, unit="person")


@pytest.mark.parametrize(
    ("schema", "settings", "epsilon"),
    [
        (SCHEMA, {"columns": ("wealth",)}, "1"),
        (SCHEMA, {"columns": ("age", "age")}, "1"),
        (SCHEMA, {"target": "age"}, "1"),
        (SCHEMA, {"target": "sex", "columns": ("age", "town")}, "1"),
        (SCHEMA, {"score": "F"}, "1"),
        (SCHEMA, {}, "1e-11"),
        (HUGE, {}, "1"),
        (UNITS, {}, "1"),
    ],
)
def test_what_a_release_would_refuse_the_plan_refuses_and_nothing_is_spent(
    schema, settings, epsilon
):
    class Untouchable:
        neighbors = SCHEMA.neighbors

        def sum(self, kernel):
            pytest.fail("rows were read")

    table, budget = Untouchable(), Budget.seeded(epsilon)
    table.schema = schema
    method = PrivBayes(**settings)
    with pytest.raises(InvalidParameter) as predicted:
        method.expected_error(schema, None, budget.epsilon)
    with pytest.raises(InvalidParameter) as refused:
        method.release(table, budget=budget, rng=seeded(1))
    assert str(predicted.value) == str(refused.value)
    assert not budget.is_used


def test_the_predicted_noise_is_never_less_than_the_published():
    method = PrivBayes()
    for rows in (0, 2000):
        release = method.release(tied_table(rows), budget=Budget.seeded("0.5"), rng=seeded(2))
        predicted = method.expected_error(release.schema, rows, Fraction(1, 2))
        assert release.expected_error()["one_cell_95"] <= predicted.figures["one_cell_95"]
