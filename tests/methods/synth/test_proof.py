"""The proof's lemmas: what one record moves, exactly, on all small tables."""

from fractions import Fraction
from itertools import combinations, product

import numpy as np
import pytest

from choice_distribution import choice_distribution
from dpublish.data.schema import Schema, column
from dpublish.errors import InvalidParameter
from dpublish.methods.synth import choice, plan, quality
from dpublish.methods.synth.choice import STEPS, ExcessScores, excess, in_steps
from dpublish.privacy.neighbors import AddRemoveRecord, ReplaceRecord
from dpublish.randomness import plain_generator

PAIRS = ((0, 1), (0, 2), (1, 2))
RECORDS = list(product(range(2), repeat=3))
EPSILON = 1.0


def tables(records):
    """Count the pairs of three columns of two values."""
    found = [np.zeros((2, 2), dtype=np.int64) for _ in PAIRS]
    for record in records:
        for table, (a, b) in zip(found, PAIRS, strict=True):
            table[record[a], record[b]] += 1
    return found


def small_neighbors(most=3):
    """List all tables of few records, with every record that may be added."""
    for number in range(most + 1):
        for records in combinations(RECORDS * 2, number):
            for record in RECORDS:
                yield records, (*records, record)


NEIGHBORS = sorted(set(small_neighbors(2))) + sorted(set(small_neighbors(3)))[::7]


def expectations(seed):
    """Draw what is expected of the three tables: any numbers, negative and fractional ones too."""
    rng = plain_generator(seed)
    return [in_steps(rng.uniform(-1, 3, (2, 2))) for _ in PAIRS]


def honest_scores(records, expected, weights):
    return [
        weight * excess(table, m)
        for table, m, weight in zip(tables(records), expected, weights, strict=True)
    ]


def moves(scores, here, there):
    return [b - a for a, b in zip(scores(here), scores(there), strict=True)]


@pytest.mark.parametrize("weights", [(1, 1, 1), (3, 1, 1), (2, 5, 1)])
@pytest.mark.parametrize("seed", range(4))
def test_a_record_raises_every_score_by_0_to_its_weight(seed, weights):
    expected = expectations(seed)
    attained = 0
    for here, there in NEIGHBORS:
        found = moves(lambda x: honest_scores(x, expected, weights), here, there)
        for move, weight in zip(found, weights, strict=True):
            assert 0 <= move <= STEPS * weight
        attained = max(attained, max(found) - min(found))
    stated = ExcessScores(weights).range_sensitivity(AddRemoveRecord())
    assert attained <= stated == STEPS * max(weights)
    assert attained > 0.5 * stated  # no smaller range would do


def test_scores_are_exact_integers_however_large():
    counts = np.array([2**40, 0, 5])
    assert excess(counts, in_steps(np.array([2.0**40 - 3, 10, 5]))) == 3 * STEPS
    assert isinstance(excess(counts, counts), int)
    assert in_steps(np.array([0.5, 1 / STEPS, 1e9])).tolist() == [STEPS // 2, 1, 10**9 * STEPS]


def test_exchanged_records_have_no_range_here():
    with pytest.raises(InvalidParameter):
        ExcessScores((1, 1)).range_sensitivity(ReplaceRecord())


def worst_odds(scores, sensitivity_range):
    """Compute exactly by how much one record changes the odds of a choice, over all neighbors."""
    worst, rate = 0.0, EPSILON / sensitivity_range
    for here, there in NEIGHBORS:
        odds = [choice_distribution(scores(one), rate) for one in (here, there)]
        worst = max(worst, float(np.abs(np.log(odds[0] / odds[1])).max()))
    return worst


@pytest.mark.parametrize("weights", [(1, 1, 1), (3, 1, 1)])
def test_choices_have_the_odds_that_their_share_pays_for(weights):
    expected = expectations(1)
    stated = ExcessScores(weights).range_sensitivity(AddRemoveRecord())
    worst = worst_odds(lambda x: honest_scores(x, expected, weights), stated)
    assert 0.5 * EPSILON < worst <= EPSILON + 1e-9


def true_products(records):
    """Expect the product of the true marginals: the twin."""
    found = []
    for table in tables(records):
        total = max(table.sum(), 1)
        found.append(in_steps(np.outer(table.sum(axis=1), table.sum(axis=0)) / total))
    return found


def distances(records, expected):
    return [
        int(np.abs(STEPS * table - m).sum())
        for table, m in zip(tables(records), expected, strict=True)
    ]


@pytest.mark.parametrize(
    "scores",
    [
        lambda x: honest_scores(x, true_products(x), (1, 1, 1)),
        lambda x: distances(x, expectations(1)),
        lambda x: honest_scores(x, expectations(1), (3, 1, 1)),
    ],
    ids=["expected of true marginals", "L1 distances", "weights"],
)
def test_twins_at_the_price_of_one_record_are_caught(scores):
    assert worst_odds(scores, STEPS) > 1.05 * EPSILON


def test_the_smallest_witness_against_true_marginals():
    """{000, 000} and 011: scores (0, 0, 0) become (0, 0, 4/3), and the odds e^(4/3)."""
    here, there = ((0, 0, 0), (0, 0, 0)), ((0, 0, 0), (0, 0, 0), (0, 1, 1))
    found = moves(lambda x: honest_scores(x, true_products(x), (1, 1, 1)), here, there)
    assert found == pytest.approx([0, 0, 4 / 3 * STEPS], abs=1)
    fixed = true_products(here)
    honest = moves(lambda x: honest_scores(x, fixed, (1, 1, 1)), here, there)
    assert all(0 <= move <= STEPS for move in honest)


# --- Quality -----------------------------------------------------------------------------------


def test_steps_of_scores_and_of_quality_are_the_same():
    assert quality.STEPS == choice.STEPS


@pytest.mark.parametrize("seed", range(4))
def test_a_record_moves_the_sum_by_the_pairs_and_the_largest_distance_by_one(seed):
    expected = [np.maximum(m, 0) for m in expectations(seed)]
    if seed == 3:
        expected = [np.zeros((2, 2), dtype=np.int64)] * 3
    sums, largest = 0, 0
    for here, there in NEIGHBORS:
        one, other = distances(here, expected), distances(there, expected)
        sums = max(sums, abs(sum(other) - sum(one)))
        largest = max(largest, abs(max(other) - max(one)))
    assert sums <= STEPS * len(PAIRS)
    assert largest <= STEPS
    if seed == 3:  # attained: nothing smaller would do
        assert (sums, largest) == (STEPS * len(PAIRS), STEPS)


def test_distances_from_what_the_true_size_expects_move_by_twice_as_much():
    """The twin: all in cell 0 expected; no record, or one in cell 1."""
    shares = np.array([1.0, 0.0])
    found = [
        int(np.abs(STEPS * counts - in_steps(shares * counts.sum())).sum())
        for counts in (np.array([0, 0]), np.array([0, 1]))
    ]
    assert found[1] - found[0] == 2 * STEPS


# --- Shares ------------------------------------------------------------------------------------


def columns_of(sizes):
    return tuple(column(f"c{i}", "integer", bounds=[0, n - 1]) for i, n in enumerate(sizes))


@pytest.mark.parametrize("sizes", [(2,), (2, 3), (5, 7, 11, 13), (2, 5_000, 17) * 5])
def test_shares_of_columns_and_tables_are_exact_integers(sizes):
    """C4: roots would be irrational, and floats add up to more than one."""
    weights = plan.column_weights(columns_of(sizes))
    assert all(type(weight) is int and weight > 0 for weight in weights)
    shares = [Fraction(weight, sum(weights)) for weight in weights]
    assert sum(shares) == 1
    assert min(shares) >= Fraction(1, 2 * len(sizes))  # half of it equally
    tables = plan.table_weights([n * n for n in sizes])
    assert all(type(weight) is int and weight > 0 for weight in tables)


SIZES = (-(10**12), -1, 0, 1, 299, 301, 5_000, 10**6, 10**12)


@pytest.mark.parametrize("number", [1, 2, 3, 15, 60])
def test_plans_are_finite_and_never_ask_for_more_tables_than_pairs(number):
    pairs = number * (number - 1) // 2
    for records in SIZES:
        for epsilon in (Fraction(1, 1000), Fraction(1), Fraction(100)):
            made = plan.make_plan(number, 4 * number, records, epsilon)
            assert made.tables == sum(made.batches)
            assert 0 <= made.tables <= min(pairs, plan.MOST_TABLES)
            assert all(batch > 0 for batch in made.batches)
            assert all(type(weight) is int and weight > 0 for weight in made.weights.values())
            wanted = {"marginals", "choices", "tables"} if made.tables else {"marginals"}
            assert set(made.weights) == wanted


def test_expectations_look_at_nothing_but_releases():
    """C6: `_Look` holds no exact counts at all."""
    assert {*choice._Look.__dataclass_fields__} == {"known", "model", "chosen"}
    assert {*choice.Known.__dataclass_fields__} == {
        "names",
        "classes",
        "marginals",
        "tables",
        "prior",
        "impossible",
        "totals",
        "fixed_levels",
    }


def test_a_schema_of_one_column_has_no_pairs_to_pay_for():
    from dpublish.methods.synth.synth import Synth

    shares = Synth()._shares(1)
    assert set(shares) == {"size", "model"}
    assert sum(shares.values()) == 1
    assert Schema(columns_of((2,))).names == ("c0",)
