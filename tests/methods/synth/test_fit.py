"""The fitted distribution: the solution of its convex problem, and what is certain about it."""

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from scipy.optimize import minimize

from dpublish.accuracy.noise_distribution import noise_variance
from dpublish.data.schema import Schema, column
from dpublish.data.statements import Combination, KnownTotal
from dpublish.methods.marginals.noisy_marginal import NoisyMarginal
from dpublish.methods.synth import fit as fitting
from dpublish.methods.synth.classes import ColumnClasses
from dpublish.methods.synth.fit import Measured, fit
from dpublish.methods.synth.junction_tree import JunctionTree
from dpublish.methods.synth.model import CountedTable, Known, fit_model
from dpublish.randomness import plain_generator

RATE = Fraction(1, 20)
SIZES = (2, 3, 2)


def _noisy(joint, sets, rng, deviation):
    total = joint.sum()
    found = []
    for columns in sets:
        others = tuple(i for i in range(joint.ndim) if i not in columns)
        counts = joint.sum(axis=others)
        counts = counts + rng.normal(0, deviation, counts.shape)
        variance = np.array(deviation**2 + 1e-9)
        found.append(Measured(columns, (None,) * len(columns), counts, variance, columns))
    return total, found


def _objective(tree, measured, start, total):
    """Write the primal problem out over the full joint, as a function of softmax parameters."""
    problem = fitting._Dual(tree, measured, start, total)
    shape = tuple(tree.sizes)
    base = np.zeros(shape)
    for clique, table in enumerate(start):
        members = tree.cliques[clique]
        base = base + table.reshape([n if i in members else 1 for i, n in enumerate(shape)])
    base = np.exp(base)
    base /= base.sum()

    def value(logs):
        p = np.exp(logs - logs.max()).reshape(shape)
        p /= p.sum()
        found = problem.tau * total * float((p * np.log(p / base)).sum())
        for one in measured:
            others = tuple(i for i in range(len(shape)) if i not in one.columns)
            gap = one.scale * (one.counts - total * one.coarsen(p.sum(axis=others)))
            found += 0.5 * float((gap**2).sum())
        return found

    return value


@pytest.mark.parametrize("seed", range(6))
def test_the_fit_solves_its_convex_problem(monkeypatch, seed):
    """Against a minimizer that knows nothing of trees and duals, over all 12 combinations."""
    rng = plain_generator(seed)
    monkeypatch.setattr(fitting, "TAU", 0.02)  # so that the optimum is sharp
    joint = rng.gamma(0.7, 1, SIZES)
    joint *= 1000 / joint.sum()
    total, measured = _noisy(joint, [(0, 1), (1, 2), (0,), (1,), (2,)], rng, 30.0)
    tree = JunctionTree.of(SIZES, [(0, 1), (1, 2)])
    start = [rng.normal(0, 0.5, shape) for shape in tree.shapes]
    value = _objective(tree, measured, start, total)
    best = min(
        minimize(value, rng.normal(0, 1, 12), method="BFGS", options={"maxiter": 4000}).fun
        for _ in range(2)
    )
    found = fit(tree, measured, start, total, steps=2000)
    logs = np.zeros(SIZES)
    for clique, shared in enumerate(tree.separators):
        given = tree.conditional(found.tables, clique, shared)
        members = tree.cliques[clique]
        logs = logs + np.log(given.reshape([n if i in members else 1 for i, n in enumerate(SIZES)]))
    assert value(logs.ravel()) <= best + 1e-3 * max(1.0, abs(best))
    # The problem is strictly convex: a distribution that is shifted a little is worse.
    for _ in range(5):
        shifted = logs.ravel() + rng.normal(0, 0.3, 12)
        assert value(shifted) > value(logs.ravel())


def test_gradient_and_value_of_the_dual_agree():
    rng = plain_generator(3)
    joint = rng.gamma(1, 50, SIZES)
    total, measured = _noisy(joint, [(0, 1), (1, 2)], rng, 10.0)
    tree = JunctionTree.of(SIZES, [(0, 1), (1, 2)])
    problem = fitting._Dual(tree, measured, tree.start(), total)
    for scale in (0.0, 0.01):
        duals = scale * rng.normal(0, 1, problem.size)
        _, gradient = problem(duals)
        for k in range(problem.size):
            step = np.zeros(problem.size)
            step[k] = 1e-6
            slope = (problem(duals + step)[0] - problem(duals - step)[0]) / 2e-6
            assert slope == pytest.approx(gradient[k], rel=1e-3, abs=1e-3)


@pytest.mark.parametrize("seed", range(5))
def test_consistent_tables_without_noise_are_recovered(seed):
    rng = plain_generator(seed)
    joint = rng.gamma(1, 1, (3, 4, 3, 2)) + 0.05
    joint *= 100_000 / joint.sum()
    sets = [(0, 1), (1, 2), (2, 3)]
    total, measured = _noisy(joint, sets, rng, 0.0)
    measured = [replace(one, variance=np.array(1.0)) for one in measured]
    tree = JunctionTree.of(joint.shape, sets)
    found = fit(tree, measured, tree.start(), total, steps=3000)
    for one in measured:
        fitted = tree.joint(found.tables, one.columns)
        assert np.allclose(fitted, one.counts / total, atol=2e-4)


def test_a_warm_start_ends_where_a_cold_one_does():
    rng = plain_generator(9)
    joint = rng.gamma(1, 1, (3, 3, 3)) + 0.1
    joint *= 5_000 / joint.sum()
    total, measured = _noisy(joint, [(0, 1), (1, 2), (0,), (1,)], rng, 15.0)
    tree = JunctionTree.of((3, 3, 3), [(0, 1), (1, 2)])
    first = fit(tree, measured[:1], tree.start(), total, steps=2000)
    cold = fit(tree, measured, tree.start(), total, steps=3000)
    warm = fit(tree, measured, tree.start(), total, duals=first.duals, steps=3000)
    again = fit(tree, measured, tree.start(), total, duals=cold.duals, steps=3000)
    for one, other, third in zip(cold.tables, warm.tables, again.tables, strict=True):
        assert np.allclose(one, other, atol=2e-3)
        assert np.allclose(one, third, atol=2e-3)
    assert again.steps < cold.steps


def test_a_table_on_coarser_classes_moves_all_of_its_finer_ones():
    tree = JunctionTree.of((4, 2), [(0, 1)])
    maps = (np.array([0, 0, 1, 1]), None)
    counts = np.array([[300.0, 100.0], [100.0, 500.0]])
    found = fit(
        tree, [Measured((0, 1), maps, counts, np.array(1.0))], tree.start(), 1000.0, steps=500
    )
    fine = found.tables[0]
    assert np.allclose(fine.reshape(2, 2, 2).sum(axis=1), counts / 1000, atol=1e-3)
    assert np.allclose(fine[0], fine[1], atol=1e-9)  # nothing tells them apart


def test_cells_of_infinite_variance_say_nothing():
    tree = JunctionTree.of((2, 2), [(0, 1)])
    counts = np.array([[900.0, 0.0], [0.0, 0.0]])
    variance = np.array([[1.0, np.inf], [np.inf, np.inf]])
    found = fit(tree, [Measured((0, 1), (None, None), counts, variance)], tree.start(), 1000.0)
    assert found.tables[0][0, 0] == pytest.approx(0.9, abs=1e-3)
    rest = [found.tables[0][cell] for cell in ((0, 1), (1, 0), (1, 1))]
    assert rest == pytest.approx([1 / 30] * 3, abs=1e-3)


# --- Models: what is impossible, and known totals ------------------------------------------------

A = column("a", "category", values=["x", "y", "z"])
B = column("b", "category", values=["p", "q"])
C = column("c", "category", values=["k", "l", "m"])


def _marginal(counts):
    return NoisyMarginal("identity", len(counts), np.array(counts, dtype=np.int64), RATE)


def _known(impossible=(), totals=(), tables=()):
    schema = Schema(
        (A, B, C),
        impossible=tuple(map(Combination, impossible)),
        totals=tuple(KnownTotal(where, count=count) for where, count in totals),
    )
    classes = tuple(
        ColumnClasses((np.arange(one.size, dtype=np.int64),), 0) for one in schema.columns
    )
    return Known(
        schema.names,
        classes,
        (_marginal([500, 300, 200]), _marginal([600, 400]), _marginal([100, 700, 210])),
        tables=tables,
        impossible=schema.impossible,
        totals=schema.totals,
    )


TABLE = CountedTable((0, 1), (0, 0), np.array([[400, 90], [10, 310], [180, 20]]), RATE)


def test_impossible_cells_have_probability_0_and_rows_sum_to_1():
    known = _known(["a = x and b = q", "b = p and c in {k, l} and a = z"], tables=(TABLE,))
    model = fit_model(known)
    ab = model.tree.joint(model.tables, (0, 1))
    abc = model.tree.joint(model.tables, (0, 1, 2))
    assert ab[0, 1] == 0
    assert abc[2, 0, 0] == abc[2, 0, 1] == 0
    assert abc.sum() == pytest.approx(1, abs=1e-9)
    assert (abc > 0).sum() == abc.size - 3 - 2  # all else stays possible


def test_known_totals_are_hit_after_raking():
    totals = [("a = x and b = p", 123), ("c = m", 555), ("", 2000)]
    model = fit_model(_known(totals=totals, tables=(TABLE,)))
    assert model.known.total == 2000
    assert model.tree.joint(model.tables, (0, 1))[0, 0] * 2000 == pytest.approx(123, abs=1e-3)
    assert model.tree.joint(model.tables, (2,))[2] * 2000 == pytest.approx(555, abs=1e-3)


def test_without_raking_totals_would_be_missed(monkeypatch):
    from dpublish.methods.synth import model as modeling

    monkeypatch.setattr(modeling, "_RAKINGS", 0)
    model = fit_model(_known(totals=[("a = x and b = p", 123)], tables=(TABLE,)))
    found = model.tree.joint(model.tables, (0, 1))[0, 0] * model.known.total
    assert abs(found - 123) > 1e-3


def test_totals_that_contradict_each_other_end_in_a_distribution():
    totals = [("a = x", 900), ("a = y", 800), ("", 1000)]
    model = fit_model(_known(totals=totals, tables=(TABLE,)))
    for table in model.tables:
        assert np.all(np.isfinite(table))
        assert np.all(table >= 0)
        assert table.sum() == pytest.approx(1, abs=1e-9)


@pytest.mark.parametrize("counts", [[0, 0, 0], [-50, -80, -3], [10**9, 0, 0]])
def test_any_released_numbers_end_in_a_distribution(counts):
    """Also negative, empty and huge ones: no number may stop a release after it has paid."""
    known = replace(
        _known(["a = x and b = q"], tables=(TABLE,)),
        marginals=(_marginal(counts), _marginal(counts[:2]), _marginal(counts)),
    )
    model = fit_model(known)
    for table in model.tables:
        assert np.all(np.isfinite(table))
        assert table.sum() == pytest.approx(1, abs=1e-9)
    assert model.tree.joint(model.tables, (0, 1))[0, 1] == 0


@pytest.mark.parametrize("seed", range(60))
def test_noise_of_any_size_ends_in_a_distribution(seed):
    """Tables that contradict each other by factors of billions: a release must not stop there."""
    rng = plain_generator(seed)

    def numbers(shape):
        size = 10.0 ** rng.integers(0, 13)
        return np.rint(rng.normal(rng.choice([0, 1, -1]), 1, shape) * size).astype(np.int64)

    def rate():
        return Fraction(int(rng.integers(1, 1000)), int(10 ** rng.integers(1, 7)))

    number = int(rng.integers(2, 6))
    sizes = [int(x) for x in rng.integers(1, 6, number)]
    tables = []
    for _ in range(int(rng.integers(0, 6))):
        picked = rng.choice(number, int(rng.integers(2, min(4, number) + 1)), replace=False)
        columns = tuple(sorted(int(i) for i in picked))
        counts = numbers(tuple(sizes[i] for i in columns))
        tables.append(CountedTable(columns, (0,) * len(columns), counts, rate()))
    known = Known(
        tuple("abcde"[:number]),
        tuple(ColumnClasses((np.arange(n, dtype=np.int64),), 0) for n in sizes),
        tuple(NoisyMarginal("identity", n, numbers(n), rate()) for n in sizes),
        tables=tuple(tables),
    )
    for table in fit_model(known).tables:
        assert np.isfinite(table).all()
        assert np.all(table >= 0)
        assert table.sum() == pytest.approx(1, abs=1e-9)


def test_the_number_of_records_weighs_the_totals_of_all_marginals():
    known = replace(
        _known(),
        marginals=(
            NoisyMarginal("identity", 3, np.array([500, 300, 200]), Fraction(1, 10)),
            NoisyMarginal("identity", 2, np.array([800, 400]), Fraction(1, 40)),
            NoisyMarginal("identity", 3, np.array([500, 500, 400]), Fraction(1, 10)),
        ),
    )
    weights = [1 / (3 * noise_variance(0.1)), 1 / (2 * noise_variance(0.025))]
    wanted = (weights[0] * (1000 + 1400) + weights[1] * 1200) / (2 * weights[0] + weights[1])
    assert known.total == pytest.approx(wanted)
