"""Replay itself: it notices what goes around the mechanisms, and knows all of them."""

import importlib
import inspect
import pkgutil
import warnings
from fractions import Fraction
from functools import partial

import numpy as np
import pytest

from dpublish import mechanisms
from dpublish.mechanisms import noise, selection
from dpublish.mechanisms.exact import sampler as exact
from dpublish.mechanisms.sparse_vector import vector as sparse_vector
from dpublish.mechanisms.sparse_vector.stored import StoredVector
from dpublish.privacy.budget import Budget
from replay import MECHANISMS, SAMPLERS, Diverged, Tape, path_loss, watch

PUBLIC_DRAWS = {"uniform_below", "random_order", "draw_uniform", "breed"}
"""They draw what depends on no record; the words are played back."""
MADE_OF_OTHERS = {"noisy_size", "retraverse", "above_threshold", "search"}
VECTORS = {"SparseVector", "StoredVector"}
FOR_EXPERIMENTS = {"above_threshold_book"}


def test_every_mechanism_that_draws_is_known():
    found = set()
    for listed in pkgutil.walk_packages(mechanisms.__path__, f"{mechanisms.__name__}."):
        module = importlib.import_module(listed.name)
        for name, item in vars(module).items():
            if name.startswith("_") or getattr(item, "__module__", None) != module.__name__:
                continue
            if inspect.isclass(item):
                makers = [item.__init__, *vars(item).values()]
                makers = [getattr(one, "__func__", one) for one in makers]
            else:
                makers = [item]
            if any(_draws(one) for one in makers):
                found.add(name)
    known = {one.function.__name__ for one in MECHANISMS}
    known |= {sampler.__name__ for sampler in SAMPLERS}
    known |= PUBLIC_DRAWS | MADE_OF_OTHERS | VECTORS | FOR_EXPERIMENTS
    assert found - {"Shelves"} == known  # shelves belong to weighted_choice


def _draws(item):
    return inspect.isfunction(item) and "rng" in inspect.signature(item).parameters


def replayed(run, here=1000, there=3):
    """Run something on one count, and replay it on another."""
    first = Tape()
    seen = watch(partial(run, np.array([here])), first)
    second = Tape(first)
    return watch(partial(run, np.array([there])), second) == seen, first, second


def noisy(counts, rng, sensitivity=1, epsilon=1):
    return noise.add_geometric(
        counts, sensitivity=sensitivity, budget=Budget.seeded(epsilon), rng=rng
    )


def test_noise_of_a_mechanism_is_played_back():
    same, first, second = replayed(lambda counts, rng, progress: noisy(counts, rng))
    assert same
    with pytest.raises(AssertionError):
        path_loss(first, second)  # no neighbors


def test_an_exact_count_that_is_published_is_noticed():
    same, *_ = replayed(lambda counts, rng, progress: (noisy(counts, rng), counts.sum()))
    assert not same


def test_an_exact_count_in_a_warning_or_in_progress_is_noticed():
    same, *_ = replayed(lambda counts, rng, progress: progress(1, int(counts[0]), "rows"))
    assert not same
    same, *_ = replayed(lambda counts, rng, progress: warnings.warn(f"{counts}", stacklevel=1))
    assert not same


def test_a_plan_made_from_an_exact_count_is_noticed():
    def run(counts, rng, progress):
        return [noisy(counts, rng) for _ in range(1 + int(counts[0]) // 500)]

    with pytest.raises(Diverged, match="was not asked"):
        replayed(run)
    with pytest.raises(Diverged, match="after the last call"):
        replayed(run, here=3, there=1000)


def test_a_rate_made_from_an_exact_count_is_noticed():
    with pytest.raises(Diverged, match="but was"):
        replayed(lambda counts, rng, progress: noisy(counts, rng, sensitivity=int(counts[0])))


def test_noise_of_a_method_s_own_is_noticed():
    same, *_ = replayed(lambda counts, rng, progress: counts + int(rng.words(1)[0] % 7))
    assert not same


def test_a_sampler_that_no_mechanism_calls_is_refused():
    with pytest.raises(AssertionError, match="does not know"):
        replayed(
            lambda counts, rng, progress: (
                counts + exact.discrete_laplace(Fraction(1), counts.size, rng)
            )
        )


@pytest.mark.parametrize("change", [1, 2])
def test_a_call_that_costs_more_than_it_was_paid_is_noticed(change):
    same, first, second = replayed(
        lambda counts, rng, progress: noisy(counts, rng), 1000, 1000 + change
    )
    assert same
    if change == 1:
        assert path_loss(first, second) == pytest.approx(1)
    else:
        with pytest.raises(AssertionError):
            path_loss(first, second)


def test_a_choice_costs_the_range_of_its_changes():
    def run(scores, rng, progress):
        return selection.select(
            np.array([0, *scores, 5]), sensitivity_range=2, budget=Budget.seeded(1), rng=rng
        )

    same, first, second = replayed(run, 7, 8)
    assert same
    assert path_loss(first, second) == pytest.approx(0.5)


@pytest.mark.parametrize("move", [-1, 1])
def test_comparisons_cost_what_their_proof_says(move):
    """Two negatives and two positives; a record moves all answers one way."""

    def run(answers, rng, progress):
        vector = sparse_vector.SparseVector(
            sensitivity=1, max_positives=2, budget=Budget.seeded(40), rng=rng
        )
        asked = np.array([0, 0, 1000, 1000]) + answers
        return vector.above_each(asked, 500), vector.positives_left

    same, first, second = replayed(run, 0, move)
    assert same
    assert first.calls[-1].output.tolist() == [False, False, True, True]
    rates = [float(rate) for rate in first.calls[-1].public[1:3]]
    # The threshold rises with them, one way; positives fall behind it, the other way.
    assert path_loss(first, second) == pytest.approx(max(rates[0], 2 * rates[1]))
    assert path_loss(first, second) <= 40


def test_a_stored_vector_is_played_back():
    def run(answers, rng, progress):
        vector = StoredVector.draw(
            sensitivity=1, max_positives=1, budget=Budget.seeded(20), rng=rng
        )
        is_above, vector = vector.above(int(answers[0]), 500, rng)
        return is_above, vector.to_dict()

    same, first, _ = replayed(run, 1000, 3)
    assert same
    assert first.calls[-1].output.tolist() == [True]
