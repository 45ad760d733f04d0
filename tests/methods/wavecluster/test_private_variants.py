"""What all private variants of WaveCluster share, and what each pays for."""

from collections import Counter
from fractions import Fraction
from math import ceil

import numpy as np
import pytest

from dpublish.accuracy.noise_distribution import noise_pmf
from dpublish.aggregates.box_grid import BoxGrid
from dpublish.core import run as run_module
from dpublish.core.registry import make_method
from dpublish.errors import InvalidParameter
from dpublish.methods.wavecluster import baseline
from dpublish.methods.wavecluster.baseline import (
    Pieces,
    WaveBaseline,
    combine,
    distribute,
    distribute_cells,
    draw_points,
    pieces_of,
    split_sizes,
)
from dpublish.methods.wavecluster.plan import WavePlan
from dpublish.methods.wavecluster.privqt import PrivQT
from dpublish.methods.wavecluster.privthr import PrivTHR
from dpublish.methods.wavecluster.wavecluster import connect, significant_cells
from dpublish.privacy.budget import Budget
from dpublish.randomness import plain_generator, seeded
from dpublish.testing import frequency_p_value, privacy_loss
from methods.wavecluster.wave_worlds import CATALOG, SQUARE, line, spirals, square

POINTS = [(0.1, 0.1), (0.1, 0.15), (0.2, 0.1), (0.9, 0.9), (0.6, 0.9)]


def run(method, table, epsilon=1, seed=7):
    return method.release(table, budget=Budget.seeded(epsilon), rng=seeded(seed))


@pytest.mark.parametrize("kind", CATALOG)
class TestEveryVariant:
    @pytest.mark.parametrize("points", [[], POINTS[:1], POINTS[:1] * 50], ids=["0", "1", "same"])
    @pytest.mark.parametrize("epsilon", ["0.01", 1])
    def test_any_table_can_be_published(self, kind, points, epsilon):
        for seed in range(5):
            release = run(kind(cells=4), square(points), epsilon, seed)
            assert release.labels.shape == (2, 2)
            assert release.counts.shape == (16,)
            assert release.clusters == len(release.masses())

    @pytest.mark.parametrize("dimensions", [1, 2, 3, 10])
    def test_any_number_of_columns_can_be_clustered(self, kind, dimensions):
        table = line(dimensions, [[0.3] * dimensions] * 200)
        release = run(kind(), table, 10)
        assert release.labels.ndim == dimensions
        assert release.clusters >= 1
        assert release.label(release.rows(5, seed=1)).shape == (5,)

    @pytest.mark.parametrize("wavelet", ["db2", "sym4", "coif1", "bior2.2", "bior3.1"])
    def test_every_wavelet_and_level_works(self, kind, wavelet):
        for levels in (1, 2):
            release = run(kind(cells=8, wavelet=wavelet, levels=levels), square(POINTS * 20))
            assert release.labels.shape == (8 >> levels,) * 2

    def test_columns_may_have_different_numbers_of_cells(self, kind):
        release = run(make_method(kind.name, {"cells": "8,4"}), square(POINTS * 20))
        assert release.grid.sizes == (8, 4)
        assert release.labels.shape == (4, 2)
        again = make_method(kind.name, dict(release.receipt.settings))  # as a receipt keeps them
        assert again.cells == (8, 4)
        assert hash(again) == hash(kind(cells=(8, 4)))

    def test_the_budget_is_emptied(self, kind):
        budget = Budget.seeded("0.7")
        release = kind(cells=4).release(square(POINTS), budget=budget, rng=seeded(1))
        assert all(leaf.is_used for leaf in budget.account())
        shares = sum((share for _, share in release.receipt.shares), Fraction(0))
        assert budget.cost() == shares == release.receipt.epsilon == Fraction(7, 10)

    @pytest.mark.parametrize(
        "settings",
        [
            {"cells": 5},
            {"cells": 0},
            {"cells": 4000},
            {"cells": (4, 5)},
            {"cells": (4,)},
            {"cells": (4, 0)},
            {"levels": 0},
            {"levels": 4, "cells": 8},
            {"wavelet": "dbl2"},
            {"percentile": Fraction(1)},
            {"percentile": Fraction(1, 2**21)},
            {"adjacency": "corner"},
            {"min_cells": 0},
            {"columns": ("z",)},
            {"columns": 3},
        ],
    )
    def test_bad_settings_are_refused_before_anything_is_paid(self, kind, settings):
        with pytest.raises(InvalidParameter):
            kind(**settings).expected_error(SQUARE, None, Fraction(1))

    def test_what_expected_error_refuses_release_refuses_with_a_full_budget(self, kind):
        budget = Budget.seeded(1)
        with pytest.raises(InvalidParameter):
            kind(cells=5).release(square(POINTS), budget=budget, rng=seeded(1))
        assert not budget.is_used


# The baseline clusters a grid of its own, so it is not among these.
@pytest.mark.parametrize("kind", CATALOG[:3])
def test_much_budget_finds_what_the_plain_algorithm_finds(kind):
    rng = plain_generator(2)
    points = np.concatenate([rng.normal(c, 0.04, (400, 2)) for c in (0.3, 0.8)]).clip(0, 1)
    table = square(points)
    method = kind(cells=16, percentile=Fraction(1, 2))
    plan = WavePlan.of(SQUARE, method)
    exact = plan.transform.apply(table.sum(plan.kernel))
    plain = connect(significant_cells(exact, Fraction(1, 2)))
    assert plain.max() == 1
    releases = [run(method, table, 2000, seed) for seed in range(5)]
    sizes = [np.count_nonzero(r.labels != plain) for r in releases]
    # Equal coefficients at the edge may be told apart differently, nothing else.
    assert max(sizes) <= 3


def draw_noise(method, runs=400, epsilon=Fraction(1, 2)):
    """Noise of all counts of many releases of one table."""
    table = square(POINTS)
    exact = table.sum(BoxGrid(WavePlan.of(SQUARE, method).box, (4, 4)))
    draws = [run(method, table, epsilon, seed).counts - exact for seed in range(runs)]
    return np.concatenate(draws).astype(int).tolist()


def noise_distribution(rate):
    values = range(-200, 201)
    return dict(zip(values, noise_pmf(rate, list(values)).tolist(), strict=True))


@pytest.mark.parametrize(
    ("method", "share"),
    [
        (PrivQT(cells=4), Fraction(1)),
        (PrivTHR(cells=4), Fraction(7, 10)),
        (PrivTHR(cells=4, counts_share=Fraction(1, 5)), Fraction(1, 5)),
    ],
)
def test_counts_get_the_noise_that_their_share_pays_for(method, share):
    rate = share / 2
    noise = draw_noise(method)
    assert frequency_p_value(noise, noise_distribution(rate)) > 1e-4
    for factor in (Fraction(7, 10), Fraction(13, 10)):
        assert frequency_p_value(noise, noise_distribution(rate * factor)) < 1e-20


def chosen_distribution(empty, size, epsilon, sensitivity, percentile=Fraction(1, 10)):
    """Probabilities of each number of coefficients taken, by enumeration of the noise."""
    distribution = Counter()
    values = np.arange(-3000, 3001)
    for noise, probability in zip(
        values.tolist(), noise_pmf(epsilon / sensitivity, values), strict=True
    ):
        positive = size - min(max(empty + noise, 0), size)
        distribution[ceil((1 - percentile) * positive)] += float(probability)
    return distribution


@pytest.mark.parametrize(("wavelet", "sensitivity"), [("haar", 1), ("db2", 4)])
def test_the_number_taken_follows_the_distribution_that_its_share_pays_for(wavelet, sensitivity):
    method = PrivTHR(cells=8, wavelet=wavelet, variant="direct")
    table = square(POINTS)
    plan = WavePlan.of(SQUARE, method)
    empty = int((plan.transform.apply(table.sum(plan.kernel)) <= 0).sum())
    drawn = [run(method, table, 2, seed).chosen for seed in range(1500)]
    share = Fraction(6, 10)
    assert frequency_p_value(drawn, chosen_distribution(empty, 16, share, sensitivity)) > 1e-4
    for factor in (Fraction(1, 2), Fraction(2)):
        wrong = chosen_distribution(empty, 16, share, sensitivity * factor)
        assert frequency_p_value(drawn, wrong) < 1e-10


def test_a_record_that_fills_four_coefficients_is_hidden_and_by_haars_noise_is_not():
    here, there = 16, 12
    proved = privacy_loss(
        chosen_distribution(here, 16, 0.5, 4), chosen_distribution(there, 16, 0.5, 4)
    )
    broken = privacy_loss(
        chosen_distribution(here, 16, 0.5, 1), chosen_distribution(there, 16, 0.5, 1)
    )
    assert proved <= 0.5 + 1e-9
    assert broken > 1.5


def test_the_variants_count_as_they_say():
    noisy = np.array([9, 7, 5, 3, 1, -1, -3, 0, 2, 4])  # 7 positive
    direct = PrivTHR(variant="direct").count_significant(noisy, 4, Fraction(1))
    assert direct == 6  # 0.9 of 10 - 4, rounded up
    paper = PrivTHR(variant="paper").count_significant(noisy, 4, Fraction(1))
    assert paper == 5  # 0.9 of 7 - 2, rounded up
    still = np.array([9, 7, 5, 0, 0, 0, 0])  # without noise: 3 positive, 4 empty
    assert PrivTHR(variant="paper").count_significant(still, 4, Fraction(1)) == 3
    auto = PrivTHR()
    assert auto.count_significant(noisy, 4, Fraction(3, 10)) == direct
    assert auto.count_significant(noisy, 4, Fraction(29, 100)) == paper
    for variant in ("direct", "paper"):
        method = PrivTHR(variant=variant)
        assert method.count_significant(noisy, 10**9, Fraction(1)) >= 0
        assert method.count_significant(noisy, -(10**9), Fraction(1)) <= 9


def test_no_coefficient_may_be_taken_and_no_cluster_follows():
    method = PrivTHR(cells=4, variant="direct")
    empty = [run(method, square([]), 1, seed) for seed in range(20)]
    assert any(release.chosen == release.clusters == 0 for release in empty)
    assert all(release.significant == release.chosen for release in empty)


class TestAdaptiveGrid:
    def test_parts_are_cut_by_noisy_counts_never_by_exact_ones(self, monkeypatch):
        asked, noisy = [], []
        real = baseline.SplitGrid

        def add(counts, *, sensitivity, budget, rng):
            budget.spend()
            noisy.append(counts * 0 + 500)  # nothing of the truth is left
            return noisy[-1]

        def remember(box, size, splits):
            asked.append(splits)
            return real(box, size, splits)

        monkeypatch.setattr(run_module, "add_geometric", add)
        monkeypatch.setattr(baseline, "SplitGrid", remember)
        run(WaveBaseline(cells=4), square(POINTS * 100))
        epsilon = Fraction(98, 100)
        assert asked[0].tolist() == split_sizes(noisy[0], epsilon).tolist()
        assert len(noisy) == 2

    def test_parts_add_up_to_the_weighted_mean_of_both_levels(self):
        splits = np.array([1, 2])
        first, parts = np.array([10, 20]), np.array([6, 1, 2, 3, 4])
        found = combine(first, parts, splits)
        # With equal budgets the four parts of the second cell weigh a quarter of its count.
        assert found[0] == pytest.approx(8)
        assert found[1:].sum() == pytest.approx(0.8 * 20 + 0.2 * 10)
        assert np.diff(found[1:]).tolist() == pytest.approx([1, 1, 1])

    def test_distributing_keeps_every_record_and_its_position(self):
        splits = np.array([1, 3, 2, 5])
        parts = plain_generator(1).random(int((splits**2).sum()))
        found = distribute(pieces_of(parts, splits, 2), (8, 6))
        assert found.sum() == pytest.approx(parts.sum())
        assert found[:4, :3].sum() == pytest.approx(parts[0])
        assert found[4:, 3:].sum() == pytest.approx(parts[-25:].sum())
        fine = plain_generator(2).random((7, 3, 5))
        assert distribute_cells(fine, (2, 4, 10)).sum() == pytest.approx(fine.sum())
        assert distribute_cells(fine, (7, 3, 5)) == pytest.approx(fine)

    def test_drawn_points_are_as_frequent_as_their_areas(self):
        # Three pieces of a third of the box each, over four by two cells.
        row, column = np.array([0, 1, 2]), np.array([0, 0, 0])
        pieces = [Pieces(np.array([0.0, 899.6, 300.0]), (row, column), 3)]
        drawn = [draw_points(pieces, (4, 2), plain_generator(seed)) for seed in range(400)]
        assert {int(one.sum()) for one in drawn} == {1200}  # rounded, and none is lost
        assert not np.any(drawn[0][0]) or drawn[0][0].sum() < 900
        mean = np.mean(drawn, axis=0)
        # The middle third covers the cells from 1/4 to 3/4 by halves; one third of the height.
        expected = distribute([Pieces(np.array([0.0, 900.0, 300.0]), (row, column), 3)], (4, 2))
        assert mean == pytest.approx(expected, abs=4)
        assert np.std([one[1, 0] for one in drawn]) == pytest.approx(
            (900 * 0.5 * 0.5) ** 0.5, rel=0.15
        )

    def test_drawn_points_are_counted_in_any_number_of_columns(self):
        cube = np.unravel_index(np.arange(27), (3, 3, 3))
        pieces = [Pieces(np.full(27, 50.0), cube, 3)]
        found = draw_points(pieces, (2, 4, 3), plain_generator(1))
        assert found.sum() == 27 * 50
        assert np.all(found.sum(axis=(0, 1)) == 450)  # the same cells along the last column

    def test_huge_estimates_are_drawn_without_drawing_every_point(self):
        pieces = [Pieces(np.array([1e15]), (np.zeros(1, int), np.zeros(1, int)), 1)]
        assert draw_points(pieces, (4, 4), plain_generator(1)).sum() == 1 << 40

    def test_no_estimate_draws_nothing(self):
        pieces = [Pieces(np.array([0.4]), (np.zeros(1, int), np.zeros(1, int)), 1)]
        assert not draw_points(pieces, (4, 4), plain_generator(1)).any()

    def test_the_baseline_as_printed_publishes_whole_points(self):
        table = square(POINTS * 100)
        drawn = run(WaveBaseline(cells=4, points="drawn"), table)
        even = run(WaveBaseline(cells=4), table)
        assert np.all(drawn.counts == np.rint(drawn.counts))
        assert not np.all(even.counts == np.rint(even.counts))
        assert drawn.counts.sum() == pytest.approx(even.counts.sum(), abs=60)  # rounding only
        with pytest.raises(InvalidParameter, match="points"):
            WaveBaseline(points="sampled")

    def test_a_huge_noisy_count_does_not_make_too_many_parts(self):
        splits = split_sizes(np.full(10_000, 10**15), Fraction(1))
        assert 1 <= splits.min() <= splits.max() <= 64
        assert (splits**2).sum() <= 4_000_000


class TestSpirals:
    def test_the_plain_algorithm_finds_three(self, real_data):
        method = PrivQT(cells=40)
        table = spirals(real_data)
        plan = WavePlan.of(table.schema, method)
        exact = plan.transform.apply(table.sum(plan.kernel))
        assert (exact > 0).sum() == 159
        assert (exact <= 0).sum() == 241
        significant = significant_cells(exact, method.percentile)
        assert significant.sum() == 144
        assert connect(significant).max() + 1 == 3
        assert connect(significant, "face").max() + 1 == 17

    def test_the_noisy_threshold_takes_as_many_as_are_significant(self, real_data):
        table = spirals(real_data)

        def mean_significant(method):
            return np.mean([run(method, table, 1, seed).significant for seed in range(50)])

        assert mean_significant(PrivTHR()) == pytest.approx(144, rel=0.05)
        assert mean_significant(PrivQT()) == pytest.approx(249, rel=0.05)
