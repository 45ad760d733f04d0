"""What was missed: the two measures of a choice."""

import numpy as np
import pytest

from dpublish.errors import InvalidParameter
from dpublish.evaluation.metrics.selection import false_negative_rate, score_error_rate

SCORES = np.array([5, 60, 20, 40, 20])


@pytest.mark.parametrize(
    ("chosen", "score_error", "false_negatives"),
    [
        ([1, 3, 2], 0.0, 0.0),
        ([4, 1, 3], 0.0, 0.0),  # as good as the third, with which it ties
        ([1, 3, 0], 15 / 120, 1 / 3),
        ([2, 4, 0], 75 / 120, 1 / 3),
        ([1], 60 / 120, 2 / 3),  # one is missing is worth nothing
        ([], 1.0, 1.0),
    ],
)
def test_missing_more_measures_more(chosen, score_error, false_negatives):
    assert score_error_rate(chosen, SCORES, 3) == pytest.approx(score_error)
    assert false_negative_rate(chosen, SCORES, 3) == pytest.approx(false_negatives)


@pytest.mark.parametrize("measure", [score_error_rate, false_negative_rate])
@pytest.mark.parametrize(
    ("chosen", "count"), [([1, 1], 2), ([1, 2, 3], 2), ([9], 2), ([-1], 2), ([1], 0), ([1], 6)]
)
def test_what_is_no_choice_is_not_measured(measure, chosen, count):
    with pytest.raises(InvalidParameter):
        measure(chosen, SCORES, count)
