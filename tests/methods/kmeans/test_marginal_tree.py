"""A tree of marginals: exact odds of its choices, noise as proved, and rows that follow it."""

from fractions import Fraction
from itertools import product

import numpy as np
import pyarrow as pa
import pytest

from dpublish.accuracy.noise_distribution import noise_pmf
from dpublish.aggregates.dependence import DISTANCE
from dpublish.core import run as run_module
from dpublish.core.noisy_size import NoisySize
from dpublish.core.run import Run
from dpublish.data.box import Box
from dpublish.data.schema import Schema, column
from dpublish.data.sources import open_table
from dpublish.errors import InvalidParameter
from dpublish.methods.kmeans.kmeans import Bins, choose_bins, publish_tree
from dpublish.methods.kmeans.synopsis import MarginalTree
from dpublish.privacy.budget import Budget
from dpublish.randomness import plain_generator, seeded
from dpublish.testing import frequency_p_value

NAMES = "abcd"
SCHEMA = Schema(tuple(column(name, "numeric", bounds=[0, 16]) for name in NAMES))
BOX = Box.of(SCHEMA)
MANY = NoisySize(10**6, Fraction(1))


def opened(points):
    columns = np.asarray(points, dtype=np.float64).reshape(-1, len(NAMES)).T
    return open_table(pa.table(dict(zip(NAMES, columns, strict=True))), SCHEMA)


def publish(points, epsilon="1", records=MANY, seed=1, budget=None):
    share = Budget.seeded(epsilon) if budget is None else budget
    run = Run(opened(points), rng=seeded(seed))
    return publish_tree(run, BOX, records, budget=share)


def linked(size=3000):
    """Columns a and b agree, so do c and d, and the two pairs know nothing of each other."""
    rng = plain_generator(5)
    first, second = rng.uniform(0, 16, (2, size))
    return np.stack([first, first, second, second], axis=1)


def test_ample_budget_finds_the_columns_that_hang_together():
    tree = publish(linked(), epsilon="1000", records=NoisySize(3000, Fraction(1)))
    edges = {frozenset(e) for e in zip(tree.parents[1:], tree.order[1:], strict=True)}
    assert {frozenset({0, 1}), frozenset({2, 3})} <= edges


def test_rows_drawn_from_the_tree_follow_it():
    tree = publish(linked(), epsilon="1000", records=NoisySize(3000, Fraction(1)))
    points = tree.draw(4000, plain_generator(3))
    assert points.shape == (4000, 4)
    assert np.abs(points).max() <= 1
    correlation = np.corrcoef(points.T)
    assert correlation[0, 1] > 0.95
    assert correlation[2, 3] > 0.95
    assert abs(correlation[0, 2]) < 0.1


def test_all_of_the_budget_is_spent_with_and_without_a_choice():
    for records in (MANY, NoisySize(-5, Fraction(1)), NoisySize(0, Fraction(1))):
        budget = Budget.seeded("0.7")
        publish(linked(50), records=records, budget=budget)
        assert all(leaf.is_used for leaf in budget.account())
        assert budget.cost() == Fraction(7, 10)


def test_without_enough_records_columns_are_published_one_by_one():
    budget = Budget.seeded("0.1")
    tree = publish(linked(50), records=NoisySize(10, Fraction(1)), budget=budget)
    assert (tree.bins, tree.coarse_bins) == (16, 1)
    assert [leaf.purpose for leaf in budget.account()] == ["release/counts"]


def test_bins_follow_from_the_noisy_number_of_records_alone():
    assert choose_bins(-3, 4, Fraction(1)) == Bins(16, 1)
    for size, epsilon in product((10, 10**3, 10**5, 10**9), (Fraction(1, 100), Fraction(3))):
        bins = choose_bins(size, 4, epsilon)
        assert bins.fine % bins.coarse == 0
        assert bins.coarse <= bins.fine <= 32
    shapes = {publish(points, seed=2).counts.shape for points in (linked(1), linked(900), [])}
    assert len(shapes) == 1


def choice_losses(here, there, sensitivity_range, epsilon):
    """Largest log ratio of the odds of permute-and-flip on two lists of scores, exactly."""
    distributions = []
    for scores in (here, there):
        accept = [np.exp(-epsilon * (max(scores) - s) / sensitivity_range) for s in scores]
        odds = np.zeros(len(scores))
        for heads in product((False, True), repeat=len(scores)):
            probability = np.prod([a if h else 1 - a for a, h in zip(accept, heads, strict=True)])
            if any(heads):
                odds[list(heads)] += probability / sum(heads)
        distributions.append(odds / odds.sum())
    return float(np.abs(np.log(distributions[0] / distributions[1])).max())


def test_no_record_gives_the_choice_away_and_a_quarter_of_the_range_would():
    """Scores of pairs on tiny neighboring tables: the loss is within the budget, exactly."""
    generator = plain_generator(8)
    worst = loose = 0.0
    for _ in range(300):
        size = int(generator.integers(0, 6))
        pair_tables = generator.multinomial(size, np.full(4, 0.25), 3).reshape(3, 2, 2)
        more = pair_tables.copy()
        for one in more:
            one[tuple(generator.integers(0, 2, 2))] += 1
        here = [DISTANCE.measure(one) for one in pair_tables]
        there = [DISTANCE.measure(one) for one in more]
        width = DISTANCE.sensitivity_range
        worst = max(worst, choice_losses(here, there, width, 1.0))
        loose = max(loose, choice_losses(here, there, width / 4, 1.0))
    assert worst <= 1 + 1e-9
    assert loose > 1.0


def test_counts_have_the_noise_that_the_proof_assumes():
    found = []
    for seed in range(40):
        tree = publish([], epsilon="2", records=NoisySize(10**4, Fraction(1)), seed=seed)
        found += np.clip(tree.counts.ravel()[:200], -9, 9).tolist()
    rate = Fraction(2) * 7 / 10 / 4
    assert tree.rate == rate
    inner = noise_pmf(rate, np.arange(-8, 9))
    tail = (1 - inner.sum()) / 2
    expected = {-9: tail, **dict(zip(range(-8, 9), inner, strict=True)), 9: tail}
    assert frequency_p_value(found, expected) > 1e-3
    wrong = noise_pmf(rate * 4, np.arange(-8, 9))  # as if a record were in one table only
    rest = (1 - wrong.sum()) / 2 + 1e-12
    broken = {-9: rest, **dict(zip(range(-8, 9), wrong + 1e-12, strict=True)), 9: rest}
    assert frequency_p_value(found, broken) < 1e-20


def test_a_record_moves_the_published_counts_by_the_number_of_columns(monkeypatch):
    seen = []

    def keep(counts, *, sensitivity, budget, rng):
        budget.spend()
        seen.append((counts, sensitivity))
        return counts

    monkeypatch.setattr(run_module, "add_geometric", keep)
    monkeypatch.setattr(
        run_module, "select", lambda scores, *, budget, **_: int(budget.spend() * 0)
    )
    points = linked(30)
    for rows in (points, np.vstack([points, [[3, 9, 15, 0]]])):
        publish(rows)
    (here, sensitivity), (there, _) = seen
    assert np.abs(here - there).sum() == sensitivity == len(NAMES)


@pytest.mark.parametrize(
    "changes",
    [
        {"order": (0, 0)},
        {"parents": (-1, 1)},
        {"parents": (0, 0)},
        {"root": np.zeros(3, dtype=np.int64)},
        {"counts": np.zeros((1, 3, 4), dtype=np.int64)},
        {"counts": np.zeros((2, 2, 4), dtype=np.int64)},
        {"counts": np.zeros((1, 2, 4))},
    ],
    ids=str,
)
def test_a_tree_that_no_method_would_publish_is_refused(changes):
    parts = {
        "order": (0, 1),
        "parents": (-1, 0),
        "root": np.zeros(4, dtype=np.int64),
        "counts": np.zeros((1, 2, 4), dtype=np.int64),
        "rate": Fraction(1),
        "records": NoisySize(3, Fraction(1)),
    }
    MarginalTree(**parts)
    with pytest.raises(InvalidParameter):
        MarginalTree(**(parts | changes))
