"""Grid quality: how much a record can change it, and that a choice by it hides records."""

from fractions import Fraction
from itertools import combinations_with_replacement, product
from math import exp, inf

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpublish.errors import InvalidParameter
from dpublish.methods.privpfc.grid_quality import (
    SMALLEST_EPSILON,
    GridQuality,
    best_lead,
    largest_change,
)
from dpublish.testing import privacy_loss

EPSILONS = ["0.01", "0.1", "0.5", "1", "2", "5"]
PUBLISHED = dict(
    zip(EPSILONS, [1.088908, 1.088877, 1.088325, 1.083969, 1.080388, 1.011519], strict=True)
)


def quality_of(text):
    return GridQuality(Fraction(text))


def changes_of(counts, quality):
    """The change of a cell's score for a record of each class that may be added."""
    before = quality.score_cells(counts)
    for one in range(len(counts)):
        after = counts.copy()
        after[one] += 1
        yield quality.score_cells(after) - before


def small_cells(classes, most):
    """All cells with so many classes and at most so many records of each, up to order."""
    return np.array(list(combinations_with_replacement(range(most + 1), classes))).T


# --- what it says -------------------------------------------------------------------------------


@pytest.mark.parametrize("text", EPSILONS)
def test_scores_are_the_expected_number_of_records_told_right(text):
    quality, epsilon = quality_of(text), float(text)
    for a, b in [(0, 0), (1, 0), (1, 1), (7, 3), (60, 2), (500, 0)]:
        wrong = exp(-epsilon * (a - b)) / 2 * (1 + epsilon * (a - b) / 2)
        score = quality.score_cells(np.array([[b], [a]]))[0]
        assert score / quality.unit == pytest.approx(a * (1 - wrong) + b * wrong, abs=1e-6)


@given(counts=st.lists(st.integers(0, 50), min_size=2, max_size=6), order=st.randoms())
def test_only_the_two_most_frequent_classes_matter_in_any_order(counts, order):
    quality = quality_of("0.3")
    a, b = sorted(counts)[:-3:-1]
    order.shuffle(counts)
    (score,) = quality.score_cells(np.array(counts, dtype=np.int32)[:, None])
    assert score == quality.score_cells(np.array([[a], [b]]))[0]


@given(pairs=st.lists(st.tuples(st.integers(0, 90), st.integers(0, 90)), min_size=1))
def test_differences_give_the_same_scores_but_for_half_the_records(pairs):
    quality = quality_of("0.1")
    counts = np.array(pairs).T
    differences = quality.score_differences(counts[0] - counts[1])
    halves = quality.unit // 2 * counts.sum(axis=0)
    assert (differences + halves).tolist() == quality.score_cells(counts).tolist()


def test_a_cell_without_records_scores_nothing():
    assert quality_of("1").score_cells(np.zeros((3, 2, 2), dtype=np.int64)).tolist() == [[0, 0]] * 2


# --- how much a record changes it ---------------------------------------------------------------


@pytest.mark.parametrize("text", EPSILONS)
def test_the_range_is_that_of_the_spec(text):
    quality = quality_of(text)
    assert quality.range_sensitivity / quality.unit == pytest.approx(
        2 * PUBLISHED[text] - 1, abs=5e-6
    )


@pytest.mark.parametrize("text", EPSILONS)
@pytest.mark.parametrize(("classes", "most"), [(2, 60), (3, 60), (4, 60)])
def test_no_record_changes_a_cell_by_more_than_the_range_allows(text, classes, most):
    quality = quality_of(text)
    changes = np.concatenate(list(changes_of(small_cells(classes, most), quality)))
    largest = (quality.range_sensitivity + quality.unit) // 2
    assert quality.unit - largest <= changes.min()
    assert changes.max() <= largest
    if text != "0.01":  # there the largest change needs 274 records more of a class
        assert np.ptp(changes) == quality.range_sensitivity  # so it is no larger than needed


@pytest.mark.parametrize("text", ["1/1000000000", str(SMALLEST_EPSILON), "0.0001", "40", "1e9"])
def test_extreme_budgets_have_an_exact_range_and_a_small_table(text):
    quality = quality_of(text)
    losses = [*quality.losses.tolist(), 0]
    assert len(losses) < 2**21
    assert losses[0] == losses[-2] == 0
    assert min(losses) == 0
    steps = np.diff(losses)
    changes = [*(quality.unit - steps), *steps]
    assert quality.range_sensitivity == max(changes) - min(changes)
    assert quality.unit <= quality.range_sensitivity < 1.178 * quality.unit


def probability_first(apart, others, epsilon):
    """Probability that a class stays ahead of others that all lie so far behind, by a fine sum."""
    width = 0.01 / epsilon
    noise = np.arange(-40 / epsilon, 40 / epsilon + apart, width) + width / 2
    density = epsilon / 2 * np.exp(-epsilon * np.abs(noise))
    shifted = noise + apart
    below = np.where(
        shifted < 0,
        np.exp(epsilon * np.minimum(shifted, 0)) / 2,
        1 - np.exp(-epsilon * np.abs(shifted)) / 2,
    )
    return float((density * below**others).sum() * width)


@pytest.mark.parametrize(
    ("classes", "least", "most"),
    [(2, 1.088, 1.089), (3, 1.1339, inf), (5, 1.193, inf), (10, 1.283, inf), (20, 1.388, inf)],
)
def test_counting_all_classes_would_change_by_more_than_the_paper_says(classes, least, most):
    told_right = [x * probability_first(x, classes - 1, 0.1) for x in range(80)]
    assert least <= np.diff(told_right).max() <= most


def change(lead, epsilon):
    """Eq. 4 as the paper prints it, over real leads."""

    def lost(x):
        return np.exp(-epsilon * x) / 2 * (1 + epsilon * x / 2)

    return np.abs((lead - 1) * (lost(lead - 1) - lost(lead)) + (1 - lost(lead)))


@pytest.mark.parametrize("epsilon", [1e-5, 0.01, 0.1, 0.5, 1, 2, 5, 20, 100])
def test_the_best_lead_in_closed_form_is_where_the_printed_curve_is_highest(epsilon):
    lead = best_lead(epsilon)
    leads = np.linspace(1, max(3 * lead, 10), 200_001)
    highest = change(leads, epsilon).max()
    assert change(lead, epsilon) == pytest.approx(highest, abs=1e-7)
    if epsilon <= 5:
        assert change(lead * 0.98, epsilon) < change(lead, epsilon)
        assert change(lead * 1.02, epsilon) < change(lead, epsilon)


@pytest.mark.parametrize("text", [*EPSILONS, "0.0001", "20", "100"])
def test_the_paper_and_the_table_have_the_same_sensitivity(text):
    quality = quality_of(text)
    tabulated = (quality.range_sensitivity / quality.unit + 1) / 2
    assert largest_change(float(text)) == pytest.approx(tabulated, abs=3e-6)
    whole = change(np.arange(1, 60 / float(text) + 3), float(text)).max()
    assert largest_change(float(text)) == pytest.approx(whole, abs=1e-12)
    assert tabulated <= 1.1


# --- that a choice by it hides records ----------------------------------------------------------

CELLS_OF_GRIDS = [[0, 0, 0, 0], [0, 0, 1, 1], [0, 1, 0, 1], [0, 1, 2, 3]]  # of four values


def odds(table, quality, epsilon, sensitivity_range):
    """Probabilities of the four grids under the exponential mechanism, from its definition."""
    scores = []
    for cells in CELLS_OF_GRIDS:
        counts = np.zeros((table.shape[0], 4), dtype=np.int64)
        np.add.at(counts.T, cells, table.T)
        scores.append(int(quality.score_cells(counts).sum()))
    weights = [exp(epsilon * (x - max(scores)) / sensitivity_range) for x in scores]
    return {grid: weight / sum(weights) for grid, weight in enumerate(weights)}


def largest_loss(text, epsilon, halved=1):
    quality = quality_of(text)
    most = quality.range_sensitivity / halved
    loss = 0.0
    for entries in product([0, 1, 3, 9], repeat=6):
        table = np.array([*entries, 2, 0]).reshape(2, 4)
        here = odds(table, quality, epsilon, most)
        for one, value in product(range(2), range(2)):
            table[one, value] += 1
            loss = max(loss, privacy_loss(here, odds(table, quality, epsilon, most)))
            table[one, value] -= 1
    return loss


def test_neighbors_choose_alike_and_half_the_range_would_give_them_away():
    assert 0.8 < largest_loss("0.5", 1) <= 1
    assert largest_loss("0.5", 1, halved=2) > 1.5


@pytest.mark.parametrize("epsilon", [Fraction(0), Fraction(-1)])
def test_a_budget_must_be_positive(epsilon):
    with pytest.raises(InvalidParameter, match="epsilon"):
        GridQuality(epsilon)
