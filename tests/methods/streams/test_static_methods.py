"""Methods for one table inside a stream: group privacy, counts of all bins, and their noise."""

from fractions import Fraction

import numpy as np
import pytest

from dpublish.core import run as method_run
from dpublish.data.schema import Schema, column
from dpublish.errors import InvalidParameter
from dpublish.mechanisms import noise
from dpublish.methods.privelet import privelet as wavelet
from dpublish.methods.streams import static
from dpublish.methods.streams.snapshot import Bins, Snapshot, StepRun, rows_of
from dpublish.methods.streams.static import MethodHistogram
from dpublish.privacy.budget import Budget, Grant
from dpublish.randomness import plain_generator, secure, seeded
from transcript import privacy_loss

SCHEMA = Schema(
    (
        column("x", "integer", bounds=[0, 7]),
        column("y", "integer", bounds=[0, 15], branching=2, missing="category"),
        column("town", "category", values=["a", "b", "c"]),
        column("long", "integer", bounds=[0, 999]),
        column("wide", "integer", bounds=[0, 999]),
    )
)
MODULES = (
    method_run,
    noise,
    wavelet,
)
FLAT = Bins.of(SCHEMA, "x")
SQUARE = Bins.of(SCHEMA, "x,y@2")
EPSILON = Fraction(2)
# Those that publish through noise and choices that a transcript can replay.
REPLAYED = ["hierarchical", "noise-first", "psd", "ug", "ag", "privelet"]
ONE_COLUMN = {"hierarchical", "efpa", "noise-first"}


def bins_for(name):
    return FLAT if name in ONE_COLUMN else SQUARE


def publish(name, counts, bins, *, contribution=1, epsilon=EPSILON, seed=1):
    run = StepRun(Snapshot.of_counts(counts, bins), contribution, seeded(seed))
    return MethodHistogram(name).publish(run, budget=Budget.seeded(epsilon))


def worst_loss(monkeypatch, name, *, rows, contribution, runs=12):
    """Compare snapshots with and without a user of so many rows, some alike and some not."""
    bins, losses = bins_for(name), []
    for seed in range(runs):
        rng = plain_generator(seed)
        here = rng.integers(0, 1 + 4 * (seed % 3), bins.size)
        user = rng.integers(0, bins.size if seed % 2 else 1, rows)
        there = here + np.bincount(user, minlength=bins.size)

        def release(counts, seed=seed):
            return publish(name, counts, bins, contribution=contribution, seed=seed)

        for pair in ((here, there), (there, here)):
            losses.append(privacy_loss(release, *pair, MODULES, monkeypatch))
    return max(losses)


@pytest.mark.parametrize("name", REPLAYED)
def test_a_user_with_several_rows_is_hidden_by_the_whole_budget(name, monkeypatch):
    found = worst_loss(monkeypatch, name, rows=3, contribution=3)
    assert float(EPSILON) / 3 < found <= float(EPSILON) * (1 + 1e-6)


@pytest.mark.parametrize("name", ["hierarchical", "ag", "privelet"])
def test_the_audit_notices_a_bound_that_is_not_kept(name, monkeypatch):
    assert worst_loss(monkeypatch, name, rows=3, contribution=1) > 1.2 * float(EPSILON)


def test_the_audit_notices_noise_that_is_measured_on_the_snapshot_itself(monkeypatch):
    honest = static._measure_noise

    def release(counts, seed=1):
        with monkeypatch.context() as patch:
            patch.setattr(
                static,
                "_measure_noise",
                lambda method, released, rate, bins: honest(method, counts, rate, bins),
            )
            return publish("hierarchical", counts, FLAT)

    here = np.arange(8)
    there = here + np.eye(8, dtype=np.int64)[0]
    assert privacy_loss(release, here, there, MODULES, monkeypatch) > 1.2 * float(EPSILON)


@pytest.mark.parametrize("name", ["hierarchical", "psd", "ug", "ag", "privelet"])
def test_with_hardly_any_noise_every_bin_is_found_again(name):
    bins = bins_for(name)
    counts = plain_generator(5).integers(0, 50, bins.size)
    released, variance = publish(name, counts, bins, epsilon=Fraction(10**5))
    assert np.abs(released - counts).max() <= 1
    assert variance < 1


def test_a_sample_of_cells_counts_what_it_kept():
    counts = np.array([900, 0, 0, 700, 0, 0, 0, 2])
    released, _ = publish("filter-priority", counts, FLAT)
    assert np.abs(released[[0, 3]] - [900, 700]).max() < 20
    assert released[[1, 2, 4, 5, 6, 7]].max() < 20


@pytest.mark.parametrize("name", ["psd", "ug", "ag", "p-hp", "privelet"])
def test_bins_are_counted_as_the_release_counts_boxes(name):
    counts = plain_generator(6).integers(0, 50, SQUARE.size)
    method = MethodHistogram(name)._method(SQUARE)
    release = method.release(rows_of(counts, SQUARE), budget=Budget.seeded(1), rng=seeded(1))
    lows = np.stack(np.unravel_index(np.arange(SQUARE.size), SQUARE.shape), axis=1)
    asked = release.count_boxes(SQUARE.names, lows, lows + 1)
    found = static._count_bins(release, SQUARE)
    assert np.abs(np.cumsum(found) - np.cumsum(asked)).max() <= 0.5 + 1e-6


@pytest.mark.parametrize("name", ["hierarchical", "privelet"])
@pytest.mark.parametrize("most_rows", [100_000, 500])
def test_the_variance_is_that_of_the_noise(name, most_rows, monkeypatch):
    monkeypatch.setattr(static, "MOST_ROWS", most_rows)
    bins = Bins.of(SCHEMA, "long")
    counts = plain_generator(7).integers(0, 20, bins.size)
    released, variance = publish(name, counts, bins, epsilon=Fraction(1, 5))
    error = float(np.mean(np.square(released - counts)))
    assert variance == pytest.approx(error, rel=0.35)


def test_the_variance_is_a_function_of_what_was_published():
    counts = plain_generator(8).integers(0, 20, FLAT.size)
    released, variance = publish("ag", counts, FLAT)
    method = MethodHistogram("ag")._method(FLAT)
    assert static._measure_noise(method, released, EPSILON, FLAT) == variance


@pytest.mark.parametrize(
    ("name", "columns", "reason"),
    [
        ("hierarchical", "x,y", "one column"),
        ("psd", "town,x", "no order"),
        ("ug", "long,wide", "at most 262,144 bins"),
    ],
)
def test_bins_that_a_method_cannot_publish_are_refused_beforehand(name, columns, reason):
    with pytest.raises(InvalidParameter, match=reason):
        MethodHistogram(name).check(SCHEMA, Bins.of(SCHEMA, columns))


def test_a_granted_budget_takes_secure_noise_only():
    counted = Snapshot.of_counts(np.arange(8), FLAT)
    grant = Grant("town", 1, "0" * 64)
    with pytest.raises(InvalidParameter, match="secure"):
        MethodHistogram("ug").publish(
            StepRun(counted, 1, seeded(1)), budget=Budget.granted(1, grant=grant)
        )
    budget = Budget.granted(1, grant=grant)
    MethodHistogram("ug").publish(StepRun(counted, 1, secure()), budget=budget)
    assert budget.is_used
