"""The method p-hp: cuts are chosen as the proof says, and every level is paid for."""

from fractions import Fraction
from itertools import product

import numpy as np
import pyarrow as pa
import pytest

from dpublish.core.run import Run
from dpublish.data.schema import Schema, column
from dpublish.data.sources import open_table
from dpublish.errors import InvalidParameter
from dpublish.methods.spatial.php import (
    PHP,
    SCORE_RANGE,
    SCORE_STEP,
    Box,
    OccupiedBox,
    choose_cuts,
    cut_again,
)
from dpublish.methods.spatial.php import cut_scores as scores_of_cuts
from dpublish.privacy.budget import Budget
from dpublish.randomness import plain_generator, seeded
from dpublish.testing import frequency_p_value, privacy_loss


def integers(**sizes):
    return Schema(
        tuple(column(name, "integer", bounds=[0, size - 1]) for name, size in sizes.items())
    )


NO_RECORDS = open_table(pa.table({"x": pa.array([], pa.int64())}), integers(x=4))


def whole(counts):
    return Box((0,) * counts.ndim, counts.shape)


def occupied(counts, lows=None):
    """List the cells of a box that hold records; `lows` is its first corner."""
    codes = np.array(np.nonzero(counts))
    lows = (0,) * counts.ndim if lows is None else lows
    highs = tuple(low + length for low, length in zip(lows, counts.shape, strict=True))
    return OccupiedBox(Box(lows, highs), codes + np.array(lows)[:, None], counts[counts > 0])


def cut_scores(counts):
    return scores_of_cuts(occupied(counts))


def slices(box):
    return tuple(map(slice, box.lows, box.highs))


def test_a_score_is_how_many_records_a_part_has_beyond_its_even_share():
    counts = plain_generator(2).integers(0, 20, (4, 3, 5))
    for number, score in enumerate(cut_scores(counts)):
        left, right = whole(counts).cut(number)
        share = Fraction(int(np.prod(np.subtract(left.highs, left.lows))), counts.size)
        beyond = abs(int(counts[slices(left)].sum()) - share * int(counts.sum()))
        assert score == int(beyond * SCORE_STEP)
        assert counts[slices(left)].size + counts[slices(right)].size == counts.size
    assert whole(counts).cuts == cut_scores(counts).size == 3 + 2 + 4


def ranges_of(counts):
    """For each record that may be added, how far it pulls two scores apart."""
    before = cut_scores(counts)
    for cell in product(*map(range, counts.shape)):
        more = counts.copy()
        more[cell] += 1
        moved = cut_scores(more) - before
        assert np.abs(moved).max() <= SCORE_STEP
        yield int(moved.max() - moved.min())


@pytest.mark.parametrize("shape", [(4,), (2, 2), (3, 2), (5,)])
def test_no_record_pulls_two_scores_further_apart_than_is_said(shape):
    cells = int(np.prod(shape))
    widest = max(
        apart
        for counts in product(range(3), repeat=cells)
        for apart in ranges_of(np.array(counts, dtype=np.int64).reshape(shape))
    )
    assert widest <= SCORE_RANGE
    if max(shape) > 2:
        assert widest > SCORE_RANGE // 2  # half the range would be too small


def selection_distribution(scores, rate):
    """Distribution of permute-and-flip: of independent coins, an even choice among the heads."""
    coins = np.exp(-rate * (scores.max() - scores).astype(np.float64))
    distribution = {}
    for chosen, coin in enumerate(coins):
        others = np.ones(1)
        for other in np.delete(coins, chosen):
            others = np.convolve(others, [1 - other, other])
        distribution[chosen] = coin * float(others @ (1 / np.arange(1, others.size + 1)))
    return distribution


def worst_neighbors():
    """A record in a corner whose column is dense and whose row is sparse."""
    counts = np.zeros((8, 8), dtype=np.int64)
    counts[0, 1:] = 4  # the first slice along one column has more than its share,
    counts[1:, 1:] = 1
    more = counts.copy()
    more[0, 0] += 1  # the first along the other less: the scores move apart
    return counts, more


def test_a_cut_keeps_the_guarantee_and_half_the_range_would_not():
    here, there = map(cut_scores, worst_neighbors())
    for epsilon in (1.0, 0.3):
        loss = privacy_loss(
            *(selection_distribution(s, epsilon / SCORE_RANGE) for s in (here, there))
        )
        assert loss <= epsilon
        twin = privacy_loss(
            *(selection_distribution(s, 2 * epsilon / SCORE_RANGE) for s in (here, there))
        )
        assert twin > epsilon


def best_of_two(scores, rate):
    """The twin that draws twice, pays once and keeps the better cut."""
    distribution = selection_distribution(scores, rate)
    kept = dict.fromkeys(distribution, 0.0)
    for (one, first), (two, second) in product(distribution.items(), repeat=2):
        kept[one if scores[one] >= scores[two] else two] += first * second
    return kept


def test_a_cut_that_is_chosen_again_without_paying_is_caught():
    here, there = map(cut_scores, worst_neighbors())
    rate = 1 / SCORE_RANGE
    assert (
        privacy_loss(selection_distribution(here, rate), selection_distribution(there, rate)) <= 1
    )
    assert privacy_loss(best_of_two(here, rate), best_of_two(there, rate)) > 1


def test_cuts_are_drawn_with_the_distribution_of_the_proof(rng):
    counts = np.array([[5, 0, 1], [1, 3, 0]])
    parts = [occupied(counts[:1]), occupied(counts[1:], (1, 0))]
    run = Run(NO_RECORDS, rng=rng)
    drawn = [choose_cuts(run, parts, budget=Budget.seeded("0.7")) for _ in range(4000)]
    for index in range(2):
        samples = [numbers[index] for numbers in drawn]
        scores = cut_scores(counts[index : index + 1])
        assert frequency_p_value(samples, selection_distribution(scores, 0.7 / SCORE_RANGE)) > 1e-4
        assert frequency_p_value(samples, selection_distribution(scores, 1.4 / SCORE_RANGE)) < 1e-6


def publish(schema, rows, epsilon="1", seed=1, **settings):
    arrow = pa.table({name: pa.array(rows[name]) for name in schema.names})
    budget = Budget.seeded(epsilon)
    release = PHP(**settings).release(open_table(arrow, schema), budget=budget, rng=seeded(seed))
    return release, budget


@pytest.mark.parametrize("count", [0, 1, 5000])
def test_every_level_is_paid_for_also_when_nothing_is_left_to_cut(count):
    rows = {"x": np.zeros(count, dtype=np.int64), "y": np.zeros(count, dtype=np.int64)}
    release, budget = publish(integers(x=3, y=2), rows, depth=5)
    assert release.ends.size == 6  # all single cells
    assert all(portion.is_used for portion in budget.account())
    assert budget.cost() == budget.epsilon == release.receipt.epsilon
    shares = {portion.purpose: portion.epsilon for portion in budget.account()}
    assert shares["release/counts"] == release.rates[1]
    assert sum(share for name, share in shares.items() if "/cuts/" in name) == Fraction(1, 2)


def test_the_depth_follows_the_noisy_size_and_epsilon():
    rows = {"x": np.arange(20_000) % 512}
    few, _ = publish(integers(x=512), rows, "0.02")
    many, _ = publish(integers(x=512), rows, "1")
    assert few.ends.size < 32 < 100 < many.ends.size
    assert publish(integers(x=512), {"x": rows["x"][:0]}, "0.02")[0].ends.size <= 4


def test_the_cuts_find_where_the_records_are():
    rows = {"x": 300 + np.arange(30_000) % 50, "y": np.arange(30_000) % 7}
    release, _ = publish(integers(x=1000, y=7), rows, "1")
    lows, highs = np.array([[300], [0], [350]]), np.array([[350], [300], [1000]])
    inside, *outside = release.count_boxes(("x",), lows, highs)
    assert inside == pytest.approx(30_000, rel=0.02)
    assert np.abs(outside).max() < 600


def test_noise_of_final_counts_is_what_is_said():
    samples = []
    for seed in range(400):
        release, _ = publish(integers(x=4), {"x": [0, 0, 3]}, "2", seed, depth=2)
        truth = [
            sum(low <= x < high for x in (0, 0, 3))
            for low, high in zip(
                release.lows[release.ends, 0], release.highs[release.ends, 0], strict=True
            )
        ]
        samples.extend((release.counts[release.ends] - truth).tolist())
    values = np.arange(-40, 41)
    weights = {r: np.exp(-r * np.abs(values)) for r in (0.96, 1.92)}
    right, twin = (dict(zip(values.tolist(), w / w.sum(), strict=True)) for w in weights.values())
    assert frequency_p_value(samples, right) > 1e-4
    assert frequency_p_value(samples, twin) < 1e-20


def test_progress_shows_levels_only(rng):
    shown = []
    cells = occupied(np.array([4, 0, 0, 1]))
    run = Run(NO_RECORDS, rng=rng, progress=lambda *step: shown.append(step))
    cut_again(run, cells, 2, budget=Budget.seeded(1))
    assert shown == [(1, 2, "levels"), (2, 2, "levels")]


def test_boxes_of_a_huge_domain_hold_the_records_that_lie_in_them(rng):
    sizes = dict.fromkeys("abcdef", 1000)  # 10^18 cells
    rows = {name: rng.words(3_000).astype(np.int64) % 400 for name in sizes}
    release, _ = publish(integers(**sizes), rows, "1000", depth=6)
    inside = np.ones((release.ends.size, 3_000), dtype=bool)
    for which, name in enumerate(sizes):
        inside &= rows[name] >= release.lows[release.ends, which, None]
        inside &= rows[name] < release.highs[release.ends, which, None]
    assert (release.counts[release.ends] == inside.sum(axis=1)).all()
    assert inside.sum() == 3_000


def test_what_a_release_would_refuse_the_plan_refuses():
    for method, schema, epsilon in (
        (PHP(), integers(**dict.fromkeys("abcd", 2**16)), 1),
        (PHP(columns=("z",)), integers(a=3), 1),
        (PHP(), integers(a=3), Fraction(1, 2**38)),
    ):
        with pytest.raises(InvalidParameter):
            method.expected_error(schema, None, Fraction(epsilon))
    for bad in ({"depth": 0}, {"depth": 13}, {"depth": 1.5}, {"columns": 3}):
        with pytest.raises(InvalidParameter):
            PHP(**bad)


def test_without_a_number_of_records_the_plan_states_the_most_boxes_there_may_be():
    for sizes, rows, boxes in (
        ({"a": 1000, "b": 1000}, None, 4096),
        ({"a": 1000, "b": 1000}, 0, 2),
        ({"a": 1000, "b": 1000}, 10**9, 4096),
        ({"a": 5}, None, 5),
        ({"a": 1}, None, 1),
    ):
        expected = PHP().expected_error(integers(**sizes), rows, Fraction(1))
        assert expected.figures["most_boxes"] == boxes
        assert expected.summary.startswith(f"at most {boxes:,} boxes")
