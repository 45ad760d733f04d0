"""The audit: it passes what follows the distribution, and cannot pass what does not."""

from math import inf, log

import pytest

from dpublish.testing import frequency_p_value, privacy_loss


def test_an_outcome_that_only_one_dataset_can_produce_gives_everything_away():
    assert privacy_loss({"a": 1.0}, {"a": 0.5, "b": 0.5}) == inf
    assert privacy_loss({"a": 0.5, "b": 0.5}, {"a": 1.0, "b": 0.0}) == inf


def test_the_loss_is_the_largest_log_ratio_in_either_direction():
    here, there = {"a": 0.8, "b": 0.2}, {"a": 0.4, "b": 0.6}
    assert privacy_loss(here, there) == privacy_loss(there, here) == pytest.approx(log(3))
    assert privacy_loss(here, here) == 0


def test_samples_that_follow_the_distribution_pass_and_others_do_not():
    distribution = {"a": 0.5, "b": 0.3, "c": 0.2}
    assert frequency_p_value("a" * 50 + "b" * 30 + "c" * 20, distribution) == pytest.approx(1)
    assert frequency_p_value("a" * 20 + "b" * 30 + "c" * 50, distribution) < 1e-9


@pytest.mark.parametrize("distribution", [{"a": 0.5, "b": 0.5}, {"a": 0.5, "b": 0.5, "c": 0.0}])
def test_a_single_impossible_outcome_is_enough_to_fail(distribution):
    assert frequency_p_value("a" * 500 + "b" * 500, distribution) > 0.9
    assert frequency_p_value("a" * 500 + "b" * 499 + "c", distribution) == 0


def test_an_impossible_outcome_fails_among_rare_ones_too():
    distribution = {"a": 0.98, "b": 0.01, "c": 0.01, "d": 0.0}
    assert frequency_p_value("a" * 98 + "b" + "c", distribution) > 0.9
    assert frequency_p_value("a" * 98 + "b" + "d", distribution) == 0


def test_rare_outcomes_are_pooled_but_not_forgotten():
    distribution = {"a": 0.9} | {str(digit): 0.01 for digit in range(10)}
    assert frequency_p_value("a" * 90 + "0123456789", distribution) > 0.9
    assert frequency_p_value("a" * 50 + "01234" * 10, distribution) < 1e-9


@pytest.mark.parametrize("distribution", [{"a": 1.0}, {"a": 0.5, "b": 0.5}, {"a": 1.0, "b": 0.0}])
def test_a_test_that_could_not_fail_is_refused(distribution):
    with pytest.raises(ValueError, match="cannot fail"):
        frequency_p_value("aaaa", distribution)
