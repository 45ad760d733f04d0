"""Fixed sampling: when it publishes, and for how much."""

from fractions import Fraction

import numpy as np
import pytest

from dpublish.errors import InvalidParameter
from dpublish.methods.streams.fixed_sampling import FixedSampling
from dpublish.privacy.budget import Budget
from dpublish.randomness import seeded
from methods.streams.stream_distribution import BINS, SCHEMA, SHARED


def published(steps, **settings):
    """Publish so many steps: when histograms came out, at what price, and the stream."""
    opened = FixedSampling(**SHARED, **settings).start(
        SCHEMA, budget=Budget.seeded(1), rng=seeded(1)
    )
    counts = np.zeros(BINS, dtype=np.int64)
    found = [opened.next_counts(counts, rng=seeded(2)) for _ in range(steps)]
    times = [step.number for step in found if step.released is not None]
    return times, {step.epsilon for step in found if step.epsilon}, opened


@pytest.mark.parametrize(
    ("settings", "times"),
    [
        ({"horizon": 10, "releases": 3}, [1, 5, 9]),  # an interval of 4
        ({"horizon": 10, "releases": 4}, [1, 4, 7, 10]),
        ({"horizon": 10, "releases": 7}, [1, 3, 5, 7, 9]),  # 7 do not fit: 5 get more each
        ({"horizon": 10, "releases": 1}, [1]),
        ({"horizon": 10, "releases": 99}, list(range(1, 11))),
        ({"horizon": 10, "interval": 4}, [1, 5, 9]),
        ({"horizon": 10, "interval": 99}, [1]),
        ({"horizon": 10}, list(range(1, 11))),
    ],
)
def test_a_finite_stream_spends_all_in_equal_parts_at_equal_intervals(settings, times):
    found, prices, opened = published(10, **settings)
    assert found == times
    assert prices == {Fraction(1, len(times))}
    assert opened.spent == 1


@pytest.mark.parametrize(
    ("settings", "most"),
    [
        ({"window": 5, "interval": 2}, 3),
        ({"window": 6, "interval": 2}, 3),
        ({"window": 6, "interval": 7}, 1),
        ({"window": 6, "releases": 2}, 2),
    ],
)
def test_every_window_holds_as_many_publications_as_its_budget_pays_for(settings, most):
    times, prices, opened = published(40, **settings)
    assert prices == {Fraction(1, most)}
    assert opened.worst == 1
    window = settings["window"]
    inside = [sum(first <= t < first + window for t in times) for first in range(1, 30)]
    assert max(inside) == most


@pytest.mark.parametrize(
    "bad",
    [
        {"horizon": 5, "window": 5},
        {},
        {"horizon": 5, "releases": 2, "interval": 2},
        {"horizon": 5, "releases": 0},
        {"window": 5, "interval": 0},
        {"horizon": 0},
    ],
)
def test_settings_that_make_no_sense_are_refused(bad):
    with pytest.raises(InvalidParameter):
        FixedSampling(**SHARED, **bad)


def test_the_predicted_error_is_that_of_a_publications_share():
    few = FixedSampling(**SHARED, horizon=100, releases=2)
    many = FixedSampling(**SHARED, horizon=100, releases=50)
    one = Fraction(1)
    assert few.expected_error(SCHEMA, None, one).figures["one_bin_95"] == 6
    assert many.expected_error(SCHEMA, None, one).figures["one_bin_95"] == 150
