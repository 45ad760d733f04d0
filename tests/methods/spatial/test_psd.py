"""The tree of boxes: medians and counts of every level are paid for, and nothing else is used."""

from collections import Counter
from fractions import Fraction

import numpy as np
import pyarrow as pa
import pytest

from choice_distribution import choice_distribution
from dpublish.audit import frequency_p_value, privacy_loss
from dpublish.core.run import Run
from dpublish.data.schema import Schema, column
from dpublish.data.sources import open_table
from dpublish.errors import BudgetAlreadyUsed, InvalidParameter
from dpublish.methods.spatial.box_domain import BoxDomain
from dpublish.methods.spatial.psd import (
    PSD,
    Growth,
    cut_at_medians,
    median_scores,
    most_levels,
    tree_height,
)
from dpublish.privacy.budget import Budget
from dpublish.randomness import plain_generator, seeded
from method_examples import ROWS, SCHEMA, arrow_table
from methods.spatial.box_distribution import (
    largest_loss,
    log_counts,
    log_medians,
    log_size,
)

SIZES = (5, 4)
SMALL = Schema(
    (column("x", "integer", bounds=[0, 4]), column("y", "integer", bounds=[0, 3])),
)
EPSILON = 40


@pytest.fixture(scope="module")
def codes():
    return plain_generator(1).integers(0, SIZES, (9, 2))


@pytest.fixture(scope="module")
def releases(codes):
    table = open_table(pa.table({"x": codes[:, 0], "y": codes[:, 1]}), SMALL)
    method = PSD(median_share=Fraction(1, 2))
    made = [
        method.release(table, budget=Budget.seeded(EPSILON), rng=seeded(seed)) for seed in range(30)
    ]
    return [release for release in made if len(release.rates) == 5]  # two levels of medians


def median_shares(release):
    """What each level of medians was given, as the receipt states."""
    shares = dict(release.receipt.shares)
    return [
        next(e for name, e in shares.items() if f"/median-{depth}/" in name) for depth in (0, 1)
    ]


def test_no_neighbor_changes_the_probability_of_a_release_by_more_than_epsilon(codes, releases):
    assert len(releases) > 10

    def distribution(release, table):
        return (
            log_size(release, table)
            + log_medians(release, table, median_shares(release))
            + log_counts(release, table)
        )

    assert 0.6 * EPSILON < largest_loss(releases, codes, SIZES, distribution) <= EPSILON + 1e-9


def test_each_kind_of_choice_keeps_within_its_share(codes, releases):
    one = releases[0]
    medians = [float(share) for share in median_shares(one)]

    def cuts(release, table):
        return log_medians(release, table, medians)

    assert medians == [0.49 * EPSILON / 2] * 2
    assert 0.2 * sum(medians) < largest_loss(releases, codes, SIZES, cuts) <= sum(medians) + 1e-9
    assert sum(rate for rate in one.rates if rate) == Fraction(49, 100) * EPSILON


def two_levels_of_medians(runs, epsilon):
    """The distribution of the cuts of a column and of its halves, each level paid with epsilon."""
    distribution = {}
    whole = choice_distribution(median_scores(runs).tolist(), epsilon / 2)
    for cut, probability in enumerate(whole, start=1):
        halves = [half for half in (runs[:cut], runs[cut:]) if half.size > 1]
        distributions = [
            choice_distribution(median_scores(half).tolist(), epsilon / 2) for half in halves
        ]
        for chosen in np.ndindex(*map(len, distributions)):
            below = [one[index] for one, index in zip(distributions, chosen, strict=True)]
            distribution[cut, chosen] = probability * float(np.prod(below))
    return distribution


def test_nested_medians_that_share_one_payment_would_be_noticed():
    """Both levels look at the same record, so each has to be paid for."""
    honest = twin = 0.0
    for counts in np.ndindex(4, 4, 4, 4):
        for more in np.eye(4, dtype=np.int64):
            pair = np.array(counts), np.array(counts) + more
            honest = max(honest, privacy_loss(*(two_levels_of_medians(r, 0.5) for r in pair)))
            twin = max(twin, privacy_loss(*(two_levels_of_medians(r, 1.0) for r in pair)))
    assert 0.5 < honest <= 1 + 1e-9  # halves of one level hold other records: paid once
    assert twin > 1.1


def test_levels_of_counts_that_share_one_payment_would_be_noticed(codes, releases):
    def distribution(release, table):
        paid = sum(rate for rate in release.rates if rate)
        rates = [None if rate is None else paid for rate in release.rates]
        return log_size(release, table) + log_counts(release, table, rates)

    assert largest_loss(releases, codes, SIZES, distribution) > 1.5 * EPSILON


def test_medians_are_drawn_by_the_distribution_of_the_proof():
    schema = Schema((column("x", "integer", bounds=[0, 4]),))
    values = [0, 0, 1, 3, 3, 3, 4]
    table = open_table(pa.table({"x": values}), schema)
    domain = BoxDomain.choose((), schema, Fraction(1))
    run, seen = Run(table, rng=seeded(6)), []
    for _ in range(3000):
        growth = Growth(domain)
        cut_at_medians(run, growth, budget=Budget.seeded("1.5"))
        seen.append(int(growth.cuts[0][0]))
    scores = [-abs(2 * sum(v < cut for v in values) - 7) for cut in range(1, 5)]
    assert scores == median_scores(np.bincount(values)).tolist()
    distribution = dict(zip(range(1, 5), choice_distribution(scores, 0.75), strict=True))
    twin = dict(zip(range(1, 5), choice_distribution(scores, 1.5), strict=True))  # as if R were 1
    assert frequency_p_value(seen, distribution) > 1e-4
    assert frequency_p_value(seen, twin) < 1e-9


def test_a_score_range_of_one_would_break_the_guarantee():
    """Records on the one side of the median raise some scores and lower others."""
    worst = max(
        abs(np.log(a / b))
        for runs in np.ndindex(4, 4, 4)
        for code in range(3)
        for a, b in zip(
            choice_distribution(median_scores(np.array(runs)).tolist(), 0.5),
            choice_distribution(
                median_scores(np.array(runs) + np.eye(3, dtype=int)[code]).tolist(), 0.5
            ),
            strict=True,
        )
    )
    assert worst <= 1 + 1e-9  # epsilon 1 at R = 2
    assert worst > 0.6  # more than the 0.5 that R = 1 would guarantee


def test_counts_carry_just_the_noise_of_their_level(codes):
    table = open_table(pa.table({"x": codes[:, 0], "y": codes[:, 1]}), SMALL)
    rng, noise, heights = seeded(7), Counter(), []
    for _ in range(400):
        release = PSD().release(table, budget=Budget.seeded(12), rng=rng)
        heights.append(len(release.rates) - 1)
        if heights[-1] != 2:
            continue
        held = (release.lows[:, None] <= codes) & (codes < release.highs[:, None])
        exact = np.all(held, axis=2).sum(axis=1)
        noise.update((release.counts - exact)[release.levels == 2].tolist())
        rate = float(release.rates[2])
    assert set(heights) >= {1, 2}  # the height follows from the noisy size, not from the true one
    values = np.arange(-30, 31)
    distribution = np.exp(-rate * np.abs(values))
    p_value = frequency_p_value(
        noise.elements(), dict(zip(values.tolist(), distribution, strict=True))
    )
    assert p_value > 1e-4


def test_boxes_of_every_level_are_a_partition_and_columns_take_turns():
    schema = Schema(tuple(column(name, "integer", bounds=[0, 99]) for name in "xyz"))
    rng = plain_generator(8)
    rows = pa.table({name: rng.zipf(1.7, 20_000).clip(0, 99) for name in "xyz"})
    release = PSD().release(open_table(rows, schema), budget=Budget.seeded(1), rng=seeded(8))
    stacked = np.stack([rows[name].to_numpy() for name in "xyz"], axis=1)
    for level in range(len(release.rates)):
        boxes = np.flatnonzero(release.levels == level)
        volume = np.prod(release.highs[boxes] - release.lows[boxes], axis=1).sum()
        assert volume == 100**3
    cut = [
        int(np.flatnonzero(np.any(release.highs[release.levels == level] < 100, axis=0)).size)
        for level in range(4)
    ]
    assert cut == [0, 1, 2, 3]
    # Cuts at medians: half of the records are in each half, which lie near the low end.
    assert release.highs[1, 0] < 10
    truth = np.all((stacked >= [0, 0, 2]) & (stacked < [3, 50, 9]), axis=1).sum()
    answer = release.count("x < 3 and y < 50 and z in 2..8")
    assert abs(answer.value - truth) < 0.15 * 20_000


def test_domains_of_any_size_are_cut_into_boxes_that_fit():
    names = [f"c{index}" for index in range(6)]
    schema = Schema(tuple(column(name, "numeric", bounds=[0, 1], bins=100_000) for name in names))
    rng = plain_generator(9)
    rows = pa.table({name: rng.random(3000) for name in names})
    release = PSD().release(open_table(rows, schema), budget=Budget.seeded(2), rng=seeded(9))
    assert 100 < release.parents.size <= 1 << 18
    assert abs(release.total - 3000) < 150
    assert release.rows(10, seed=1).num_rows == 10
    domain = BoxDomain.choose((), schema, Fraction(1))
    assert most_levels(domain) == 17
    assert tree_height(domain, 10**12, Fraction(1)) == 17
    assert tree_height(domain, -5, Fraction(1)) == 0


def test_a_tree_of_one_box_spends_all_on_its_count():
    budget = Budget.seeded(4)
    table = open_table(pa.table({"x": [0], "y": [3]}), SMALL)
    release = PSD().release(table, budget=budget, rng=seeded(10))
    assert release.rates == (Fraction(4) * 49 / 50,)
    assert release.levels.tolist() == [0]
    assert budget.cost() == 4
    assert not release.receipt.parallel


def test_after_the_medians_boxes_are_cut_in_the_middle():
    schema = Schema((column("x", "integer", bounds=[0, 1023]),))
    table = open_table(pa.table({"x": np.arange(4000) % 50}), schema)
    release = PSD().release(table, budget=Budget.seeded(4), rng=seeded(10))
    extents = (release.highs - release.lows).ravel()
    medians = (len(release.rates) - 1 + 1) // 2
    halves = [
        extents[release.parents == box]
        for box in np.flatnonzero(release.levels >= medians)
        if box in release.parents
    ]
    assert len(halves) > 4
    assert all(np.ptp(pair) <= 1 for pair in halves)
    assert extents[1] < 100  # a median is where the records are, not in the middle


@pytest.mark.parametrize("rows", [[], ROWS[:1], ROWS[:1] * 6, ROWS, ROWS[:1] * 300])
def test_small_tables_are_no_error(rows):
    for seed, epsilon in enumerate(("0.1", "1.5", "60")):
        budget = Budget.seeded(epsilon)
        table = open_table(arrow_table(rows), SCHEMA)
        release = PSD().release(table, budget=budget, rng=seeded(seed))
        assert all(share.is_used for share in budget.account())
        assert budget.cost() == release.receipt.epsilon == Fraction(epsilon)
        assert release.schema.names == ("age", "height")
        release.rows(seed=1)
        with pytest.raises(BudgetAlreadyUsed):
            PSD().release(table, budget=budget, rng=seeded(seed))


def test_a_level_without_choices_is_paid_all_the_same():
    schema = Schema((column("x", "integer", bounds=[0, 0]),))
    growth = Growth(BoxDomain.choose((), schema, Fraction(1)))
    budget = Budget.seeded(1)
    table = open_table(pa.table({"x": [0]}), schema)
    cut_at_medians(Run(table, rng=seeded(1)), growth, budget=budget)
    assert budget.is_used
    assert growth.last.lows.tolist() == [[0]]


def test_the_error_is_predicted_and_unfit_settings_are_refused():
    loose = PSD().expected_error(SCHEMA, None, Fraction(1, 10))
    tight = PSD().expected_error(SCHEMA, 1000, Fraction(1))
    assert tight.figures["one_box_95"] < loose.figures["one_box_95"]
    assert tight.figures["boxes"] == 32
    with pytest.raises(InvalidParameter):
        PSD().expected_error(SCHEMA, None, Fraction("1e-30"))
    with pytest.raises(InvalidParameter, match="2\\*\\*-40"):
        # The size could be paid for, but not the counts of the deepest tree.
        PSD(median_share=1 - Fraction(1, 10**9)).expected_error(SCHEMA, None, Fraction(1, 10**4))
    for share in (Fraction(1), Fraction(0), Fraction(-1, 2)):
        with pytest.raises(InvalidParameter, match="median_share"):
            PSD(median_share=share)


def test_missing_values_share_no_box_with_others():
    schema = Schema(
        (
            column("x", "integer", bounds=[0, 99], missing="category"),
            column("y", "integer", bounds=[0, 99], missing="category"),
        )
    )
    draws = plain_generator(4)
    lost = draws.random((2, 20_000)) < 0.4
    rows = pa.table(
        {
            name: pa.array(draws.integers(60, 100, 20_000), mask=lost[index])
            for index, name in enumerate("xy")
        }
    )
    release = PSD().release(open_table(rows, schema), budget=Budget.seeded(1), rng=seeded(1))
    ends = np.delete(np.arange(release.parents.size), release.parents[release.parents >= 0])
    for index in range(2):
        low, high = release.lows[ends, index], release.highs[ends, index]
        assert not np.any((low < 100) & (high > 100))
    answer = release.count('x = "(missing)"')
    assert answer.low <= lost[0].sum() <= answer.high
