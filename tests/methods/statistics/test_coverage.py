"""Intervals hold the truth as often as they say, in groups of any size, and no more than that."""

import numpy as np
import pytest

from methods.statistics import coverage

ALL = "count, count(x), sum(x), mean(x), variance(x), std(x), median(x), quantile(x, 0.9)"
SIZES = (0, 1, 5, 30, 300, 3_000, 100_000)


def _check(measures, n, kind, epsilon, releases, *, slack, whole=False):
    values = coverage.make_values(n, kind, coverage.generator(n))
    found = coverage.measure_coverage(
        measures, values, epsilon=epsilon, releases=releases, seed=n + 7, whole=whole
    )
    for measure, one in found.items():
        case = f"{measure} of {n} {kind} values: {one}"
        assert one.covered >= 0.93 - slack, case
        if measure == "count" or measure == "sum(x)":
            assert one.half_width > 3, case
            assert one.covered <= 0.98 + slack, case
    return found


@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize("kind", ["even", "edge", "tail"])
def test_intervals_hold_the_truth_as_often_as_they_say(n, kind):
    # 400 releases: by chance alone the part that is covered is off by less than this.
    _check(ALL, n, kind, "1", 400, slack=0.03)


@pytest.mark.audit
@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize("kind", ["even", "edge", "tail"])
@pytest.mark.parametrize("epsilon", ["0.1", "1"])
@pytest.mark.parametrize("measures", [ALL, "sum(x)", "count, mean(x), sum(x)"])
def test_2000_releases_hold_the_truth_as_often_as_they_say(n, kind, epsilon, measures):
    for whole in (False, True):
        _check(measures, n, kind, epsilon, 2_000, slack=0.0, whole=whole)


def test_intervals_of_half_the_noise_would_be_noticed(monkeypatch):
    from dpublish.methods.statistics import intervals

    exact = intervals.laplace_bound
    monkeypatch.setattr(intervals, "laplace_bound", lambda *given: exact(*given) / 2)
    with pytest.raises(AssertionError, match="mean"):
        _check("mean(x)", 3_000, "even", "1", 400, slack=0.03)


def test_the_mean_of_an_empty_group_is_unknown():
    found = _check("count, mean(x), variance(x), std(x)", 0, "even", "1", 2_000, slack=0.01)
    for measure in ("mean(x)", "variance(x)", "std(x)"):
        assert found[measure].known <= 0.002


def test_a_mean_of_many_records_is_known_and_narrow():
    found = _check("mean(x)", 3_000, "even", "1", 400, slack=0.03)
    assert found["mean(x)"].known == 1
    # Sums of 1 - t and t, in the middle of the bounds: 2.06 / (epsilon n) of the width.
    assert np.isclose(found["mean(x)"].half_width, 120 * 2.06 / 3_000, rtol=0.05)
