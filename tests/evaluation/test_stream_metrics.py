"""Counts in boxes of bins, against a plain sum over the bins."""

import numpy as np
import pytest

from dpublish.errors import InvalidParameter
from dpublish.evaluation.metrics.streams import RangeQueries
from dpublish.randomness import plain_generator


def plain_answers(queries, counts):
    grid = counts.reshape(queries.shape)
    boxes = [
        tuple(slice(low, high) for low, high in zip(lows, highs, strict=True))
        for lows, highs in zip(queries.lows, queries.highs, strict=True)
    ]
    return [grid[box].sum() for box in boxes]


@pytest.mark.parametrize("shape", [(7,), (4, 5), (3, 1, 4), (2, 3, 2, 3)])
@pytest.mark.parametrize("share", [None, 0.3])
def test_answers_are_the_sums_over_the_boxes(shape, share):
    queries = RangeQueries.draw(shape, 40, seed=3, share=share)
    counts = plain_generator(1).integers(-50, 1_000, size=int(np.prod(shape)))
    assert queries.answers(counts) == pytest.approx(plain_answers(queries, counts))


def test_the_error_is_the_mean_of_absolute_differences():
    queries = RangeQueries((3,), np.array([[0], [1]]), np.array([[2], [3]]))
    truth = np.array([1, 2, 3])
    estimate = np.array([2.0, 1.5, 1.0])  # 0.5 too many; 2.5 too few
    assert queries.mean_error(estimate, truth) == pytest.approx(1.5)
    assert queries.mean_error(truth.astype(float), truth) == 0


def test_both_corners_are_uniform():
    queries = RangeQueries.draw((3, 2), 30_000, seed=5)
    widths = queries.highs - queries.lows
    # Two of three bins: 3 of 9 pairs are one wide, 4 two, 2 three; two of two: 2 of 4, 2.
    for axis, probabilities in enumerate(([3 / 9, 4 / 9, 2 / 9], [1 / 2, 1 / 2])):
        found = np.bincount(widths[:, axis], minlength=len(probabilities) + 1)[1:] / 30_000
        assert found == pytest.approx(probabilities, abs=0.015)  # five standard errors


@pytest.mark.parametrize(("share", "sides"), [(1, (10, 20)), (0.25, (5, 10)), (0.0001, (1, 1))])
def test_boxes_of_a_share_have_that_size_and_lie_everywhere(share, sides):
    queries = RangeQueries.draw((10, 20), 2_000, seed=6, share=share)
    assert (queries.highs - queries.lows == sides).all()
    assert queries.lows.min(axis=0).tolist() == [0, 0]
    assert queries.highs.max(axis=0).tolist() == [10, 20]


def test_the_same_seed_draws_the_same_queries():
    first, again, other = (RangeQueries.draw((9, 9), 20, seed=seed) for seed in (1, 1, 2))
    assert np.array_equal(first.lows, again.lows)
    assert not np.array_equal(first.lows, other.lows)


@pytest.mark.parametrize(
    ("lows", "highs"), [([[0]], [[4]]), ([[-1]], [[2]]), ([[2]], [[1]]), ([[0, 0]], [[1, 1]])]
)
def test_queries_outside_the_bins_are_refused(lows, highs):
    with pytest.raises(InvalidParameter):
        RangeQueries((3,), np.array(lows), np.array(highs))


@pytest.mark.parametrize("share", [0, -0.1, 1.5])
def test_a_share_of_no_sense_is_refused(share):
    with pytest.raises(InvalidParameter, match="share"):
        RangeQueries.draw((3,), 5, seed=1, share=share)


def test_no_queries_are_refused():
    with pytest.raises(InvalidParameter):
        RangeQueries.draw((3,), 0, seed=1)
