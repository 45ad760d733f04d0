"""The additive model and its edges; weights that keep the total and the sums along axes."""

import numpy as np
import pytest

from dpublish.accuracy.projection import plausible_counts
from dpublish.methods.privpfc import smoothing
from dpublish.methods.privpfc.smoothing import (
    additive_probabilities,
    grid_weights,
    smooth_probabilities,
)
from dpublish.randomness import plain_generator


def softmax(logits):
    powers = np.exp(logits - logits.max(axis=-1, keepdims=True))
    return powers / powers.sum(axis=-1, keepdims=True)


def additive_truth(shape, classes, seed):
    """Probabilities whose log-odds are sums of one effect per cell of each axis."""
    rng = plain_generator(seed)
    logits = np.zeros((*shape, classes))
    for axis, size in enumerate(shape):
        effects = rng.normal(0, 0.8, (size, classes))
        wide = [1] * len(shape) + [classes]
        wide[axis] = size
        logits = logits + effects.reshape(wide)
    return softmax(logits).reshape(-1, classes)


@pytest.mark.parametrize(("shape", "classes"), [((4, 3), 2), ((3, 2, 5), 3), ((7,), 4)])
def test_an_additive_truth_is_found(shape, classes):
    truth = additive_truth(shape, classes, 1)
    found = additive_probabilities(5000 * truth, shape)
    assert np.abs(found - truth).max() < 0.01
    assert np.abs(truth - truth.mean(axis=0)).max() > 0.2  # there was something to find


def test_the_fit_is_where_the_likelihood_is_level():
    """For each cell of an axis the expected classes are those counted, but for the ridge."""
    counts = plain_generator(2).integers(0, 400, (12, 3)).astype(float)
    errors = counts - counts.sum(axis=1, keepdims=True) * additive_probabilities(counts, (4, 3))
    by_axis = [errors.reshape(4, 3, 3).sum(axis=axis) for axis in (0, 1)]
    assert max(np.abs(part).max() for part in by_axis) < 5  # of thousands of records


def test_effects_of_rare_cells_are_kept_small():
    """Where the penalized likelihood is level, a cell's errors equal its effects, if centered."""
    counts = np.array([[9.0, 1], [2, 6], [0, 1]])
    found = additive_probabilities(counts, (3,))
    overall = np.log((counts.sum(axis=0) + 0.5) / (counts.sum() + 1))
    effects = np.log(found) - overall
    effects -= effects.mean(axis=1, keepdims=True)
    errors = counts - counts.sum(axis=1, keepdims=True) * found
    assert errors == pytest.approx(effects, abs=1e-3)
    assert np.abs(effects).max() > 0.3


def test_a_cell_without_records_borrows_from_its_neighbors_along_each_axis():
    counts = np.array([[900.0, 100], [500, 500], [500, 500], [0, 0]])  # 2 x 2, the last empty
    found = additive_probabilities(counts, (2, 2))
    assert found[3] == pytest.approx([0.1, 0.9], abs=0.02)  # twice the way from 0.9 to 0.5


def test_cells_with_many_records_speak_for_themselves_and_others_listen():
    # No sum of effects can have this pattern: the cells must say it.
    counts = np.array([[900, 100], [100, 900], [100, 900], [900, 100]])
    sure = smooth_probabilities(counts, (2, 2), 4000.0, 1.0)
    assert sure[0] == pytest.approx([0.9, 0.1], abs=0.01)
    doubtful = smooth_probabilities(counts, (2, 2), 4000.0, 1e9)
    assert doubtful == pytest.approx(np.full((4, 2), 0.5), abs=0.01)
    model = additive_probabilities(counts.astype(float), (2, 2))
    assert doubtful == pytest.approx(model, abs=1e-4)


@pytest.mark.parametrize("total", [-50.0, 0.0, 0.25, 1e9])
@pytest.mark.parametrize("shape", [(), (6,), (2, 3)])
def test_probabilities_are_probabilities_whatever_noise_did(total, shape):
    size = int(np.prod(shape, dtype=int))
    for seed in range(5):
        noisy = plain_generator(seed).integers(-500, 500, (size, 3))
        found = smooth_probabilities(noisy, shape, total, 5.0)
        assert found.shape == (size, 3)
        assert (found > 0).all()
        assert found.sum(axis=1) == pytest.approx(np.ones(size))


def test_without_records_every_class_is_equally_likely():
    found = smooth_probabilities(np.full((4, 2), -9), (2, 2), -3.0, 5.0)
    assert found == pytest.approx(np.full((4, 2), 0.5))


def test_without_predictors_the_classes_are_as_common_as_they_are():
    counts = np.array([[600.0, 300, 100]])
    assert additive_probabilities(counts, ()) == pytest.approx(
        np.array([[0.6, 0.3, 0.1]]), abs=0.001
    )


def test_of_very_many_cells_the_largest_decide_the_fit(monkeypatch):
    truth = additive_truth((5, 4), 2, 3)
    sizes = np.where(np.arange(20) % 5 == 4, 1.0, 3000.0)
    truth[sizes == 1] = [0.5, 0.5]  # the small ones say something else
    counts = sizes[:, None] * truth
    monkeypatch.setattr(smoothing, "_MAX_CELLS", 16)
    large_only = additive_probabilities(counts, (5, 4))
    counts[sizes == 1] = [[1.0, 0.0]]
    assert additive_probabilities(counts, (5, 4)) == pytest.approx(large_only, abs=0.01)


def test_the_same_counts_give_the_same_probabilities():
    counts = plain_generator(5).integers(0, 50, (30, 2)).astype(float)
    first = additive_probabilities(counts, (5, 6))
    assert first.tolist() == additive_probabilities(counts.copy(), (5, 6)).tolist()


def test_sums_of_slices_are_kept_where_clipping_would_move_them():
    draws = plain_generator(5)
    true = np.zeros((6, 5, 20), dtype=np.int64)
    true[:, :, 0] = draws.integers(800, 1600, (6, 5))
    true[:, :, 1] = 20
    noisy = true + np.rint(draws.laplace(0, 25, true.shape)).astype(np.int64)
    total = int(true.sum())
    weights = grid_weights(noisy, total)
    clipped = plausible_counts(noisy, total)
    assert weights.sum() == total
    assert weights.min() >= 0
    off, off_clipped = (abs(int(w[:, :, 2:].sum())) for w in (weights, clipped))
    assert off_clipped > 3 * off


@pytest.mark.parametrize("shape", [(), (4,), (1, 3), (2, 1, 2), (3, 2, 2, 2)])
@pytest.mark.parametrize("total", [0, 1, 57])
def test_weights_add_up_whatever_noise_did(shape, total):
    for noisy in (np.full(shape, -9), np.zeros(shape, np.int64), np.full(shape, 1 << 40)):
        found = grid_weights(noisy, total)
        assert found.sum() == total
        assert found.min() >= 0


def test_without_records_nothing_has_weight():
    assert not grid_weights(np.array([[3, -2], [1, 0]]), 0).any()
