"""Replay every method and every stream on neighboring and on unrelated tables."""

from dataclasses import dataclass
from fractions import Fraction
from functools import partial

import numpy as np
import pytest
from threadpoolctl import threadpool_limits

from dpublish.auditing.examples import STREAM_EXAMPLES
from dpublish.auditing.worlds import (
    LAST,
    OTHERWISE,
    and_last,
    make_rows,
    replay_neighbors,
    replay_stream,
    replay_unrelated,
    strangers,
    stream_runner,
)
from dpublish.auditing.worlds import runner as run_method
from dpublish.core.catalog import STREAMS
from dpublish.core.registry import CATALOG, make_method
from dpublish.core.run import Run
from dpublish.methods.dpcopula import dpcopula
from dpublish.methods.dpcopula.kendall import release_kendall
from dpublish.methods.histogram.histogram import Histogram
from dpublish.methods.kmeans import kmeans as default_kmeans
from dpublish.methods.linear_models import minimizer
from dpublish.methods.linear_models import model as synopsis_model
from dpublish.methods.linear_models.output_perturbation import OutputPerturbation
from dpublish.methods.linear_models.released import LinearModelRelease
from dpublish.methods.marginals import structure_first
from dpublish.methods.streams.method import make_stream_method
from dpublish.randomness import seeded
from method_examples import CASES as EXAMPLES
from replay import ROUNDING, Tape, exchange_loss, removal_loss, watch

EPSILON = Fraction(3, 2)


ROWS = make_rows(many=20_000)
BASE, EMPTY, STRANGERS = ROWS.base, ROWS.empty, ROWS.strangers
MORE = [
    ("privgene", {"target": "sex", "population": 30}),
    ("output-perturbation", {"target": "sex", "regularization": Fraction(1, 100)}),
    ("pgkm", {"n_clusters": 2, "columns": ("height",), "population": 20}),
]
"""Settings for which the number of records decides how a method goes on."""
CASES = [*EXAMPLES, *MORE]


STREAM_EPSILON = Fraction(2)
STREAM_CASES = STREAM_EXAMPLES


def runner(method):
    """Make the function that publishes from a table, for `watch`."""
    return run_method(method, EPSILON)


def _number(cases):
    """Name each case by its method and the number of its settings."""
    return [
        f"{name}-{[one for other, one in cases if other == name].index(settings) + 1}"
        for name, settings in cases
    ]


@pytest.fixture(autouse=True)
def small_fits(monkeypatch):
    """Fit `model` to few rows of its synopsis, in one thread: it takes most of the time."""
    monkeypatch.setattr(synopsis_model, "ROWS", 200)
    with threadpool_limits(1):
        yield


def test_every_method_is_here():
    assert {name for name, _ in CASES} == set(CATALOG)
    assert {name for name, _ in STREAM_CASES} == set(STREAMS)
    assert len(CATALOG) + len(STREAMS) == 55


@pytest.mark.parametrize(("name", "settings"), CASES, ids=_number(CASES))
def test_replay(name, settings):
    method = make_method(name, settings)
    _replay(method, runner(method))


def _replay(method, run):
    """Replay on unrelated and on neighboring tables, or on other values of the same records."""
    replay_unrelated(method, run, ROWS)
    for loss in replay_neighbors(method, run, ROWS, EPSILON):
        assert loss.lost <= loss.allowed + ROUNDING


def test_replay_of_an_amplified_sample(monkeypatch):
    """Taus of a third of the records: with that much more of epsilon, and no more."""
    monkeypatch.setitem(release_kendall.__kwdefaults__, "most_work", 100)
    run = runner(make_method("dpcopula", {"columns": ("age", "height"), "correlation": "kendall"}))
    played = Tape()
    seen = watch(partial(run, BASE), played)
    [rate] = [call.public[0] for call in played.calls if call.kind == "sample"]
    assert 0 < rate < Fraction(1, 2)
    for rows in (EMPTY, STRANGERS):
        assert watch(partial(run, rows), Tape(played)) == seen
    for last in LAST:
        assert removal_loss(run, and_last(BASE, last), played, seen) <= float(EPSILON) + ROUNDING


def test_replay_of_chosen_buckets(monkeypatch):
    """Buckets of three values here, so that there is something to choose."""
    monkeypatch.setattr(structure_first, "VALUES_PER_BUCKET", 3)
    method = make_method("marginals", {"columns": ("age", "height"), "marginal": "structure-first"})
    _replay(method, runner(method))


EXCHANGED = [
    {"correlation": "spearman"},
    {"correlation": "kendall"},
    {"correlation": "mle"},
]


def _exchanged(settings):
    """Publish where the number of records is public, and exchange the last one."""
    given = {"columns": ("age", "height"), "public_records": BASE.num_rows + 1, **settings}
    run = runner(make_method("dpcopula", given))
    return [
        exchange_loss(run, *(and_last(BASE, last | change) for change in ({}, OTHERWISE)))
        for last in LAST
    ]


@pytest.mark.parametrize("settings", EXCHANGED, ids=["spearman", "kendall", "mle"])
def test_replay_of_a_public_number_of_records(settings):
    method = {"columns": ("age", "height"), "public_records": BASE.num_rows, **settings}
    run = runner(make_method("dpcopula", method))
    played = Tape()
    seen = watch(partial(run, BASE), played)
    assert watch(partial(run, strangers(BASE.num_rows)), Tape(played)) == seen
    assert max(_exchanged(settings)) <= float(EPSILON) + ROUNDING


@pytest.mark.parametrize("settings", EXCHANGED[::2], ids=["spearman", "mle"])
def test_an_exchange_at_the_price_of_an_addition_is_noticed(monkeypatch, settings):
    monkeypatch.setattr(dpcopula, "half_for_exchange", lambda budget: budget)
    assert max(_exchanged(settings)) > float(EPSILON)


def test_replay_of_kmeans_with_many_columns(monkeypatch):
    """Two columns are taken for too many here, so that marginals replace a grid."""
    monkeypatch.setattr(default_kmeans, "MOST_GRID_COLUMNS", 1)
    method = make_method("kmeans", {"n_clusters": 2})
    _replay(method, runner(method))


@pytest.mark.parametrize(("name", "settings"), STREAM_CASES, ids=_number(STREAM_CASES))
def test_replay_stream(name, settings):
    method = make_stream_method(name, settings)
    _, losses = replay_stream(method, stream_runner(method, STREAM_EPSILON), STREAM_EPSILON)
    assert len(losses) == (3 if method.window else 1)
    for loss in losses:
        assert loss.lost <= loss.allowed + ROUNDING


@dataclass(frozen=True, kw_only=True)
class OwnSeed(Histogram):
    """Draws its noise from a seed of its own, around the source that the owner chose."""

    name = "own-seed"

    def _release(self, run):
        """Publish.

        Privacy:
            None: whoever knows the seed takes the noise off.
        """
        own = Run(run.table, rng=seeded(1), method=self, budget=run.budget)
        return super()._release(own)


def test_noise_from_a_seed_of_a_methods_own_is_noticed():
    method = OwnSeed(columns=("sex",))
    with pytest.raises(AssertionError):
        _replay(method, runner(method))


@dataclass(frozen=True, kw_only=True)
class ExactMinimum(OutputPerturbation):
    """Publishes the weights that it found, without noise."""

    name = "exact-minimum"

    def _release(self, run):
        """Publish.

        Privacy:
            None.
        """
        run.split(noise=1)["noise"].spend()
        task = self.model_task(run.schema)
        rows = [
            minimizer.minimize_on(run, task, positive, 0.5, np.zeros(task.features.size))
            for positive in task.problems
        ]
        return LinearModelRelease(
            receipt=run.receipt(),
            schema=task.schema,
            model=self.model,
            target=self.target,
            weights=np.array(rows),
            expected={},
            standard_deviation=np.zeros((len(rows), task.features.size)),
        )


def test_a_minimum_without_noise_is_noticed():
    method = ExactMinimum(target="sex", predictors=("age",))
    with pytest.raises(AssertionError):
        _replay(method, runner(method))
