"""Replay every method and every stream on neighboring and on unrelated tables."""

import json
from dataclasses import dataclass
from fractions import Fraction
from functools import partial

import numpy as np
import pyarrow as pa
import pytest
from threadpoolctl import threadpool_limits

from dpublish.core.catalog import STREAMS
from dpublish.core.registry import CATALOG, make_method
from dpublish.core.run import Run
from dpublish.data.schema import Schema, column
from dpublish.data.sources import open_table
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
from dpublish.methods.streams.stream import StreamState
from dpublish.privacy.budget import Budget
from dpublish.randomness import seeded
from method_examples import CASES as EXAMPLES
from method_examples import SCHEMA, arrow_table
from replay import ROUNDING, Tape, exchange_loss, path_loss, removal_loss, watch

EPSILON = Fraction(3, 2)


def _people(count, seed):
    rng = np.random.default_rng(seed)  # noqa: TID251 - public rows for a test
    ages = rng.integers(0, 100, count)
    sexes = np.where(rng.random(count) < 0.3 + ages / 250, "Female", "Male")
    heights = rng.normal(165 + 12 * (sexes == "Male"), 9)
    towns = np.array(["Ost", "West", "Nord", "Sued"])[np.minimum(ages // 30, 3)]
    return pa.table({"age": ages, "sex": sexes, "height": heights, "town": towns})


def _strangers(count):
    """Rows of another kind altogether, many of them out of bounds, missing or unknown."""
    rng = np.random.default_rng(77)  # noqa: TID251 - public rows for a test
    ages = rng.integers(-50, 1000, count).astype(object)
    ages[::7] = None
    heights = rng.standard_cauchy(count) * 50 + 100
    heights[::11] = np.nan
    heights[::13] = np.inf
    towns = np.where(rng.random(count) < 0.5, "", "nowhere").astype(object)
    towns[::5] = "Sued"
    towns[::17] = None
    sexes = np.where(rng.random(count) < 0.9, "Male", "?")
    return pa.table(
        {
            "age": pa.array(ages, pa.int64()),
            "sex": pa.array(sexes, pa.string()),
            "height": pa.array(heights, pa.float64()),
            "town": pa.array(towns, pa.string()),
        }
    )


def _and_last(table, *rows):
    last = arrow_table([dict(row, note="") for row in rows]).select(table.column_names)
    return pa.concat_tables([table, last.cast(table.schema)])


BASE, MANY = _people(300, 5), _people(20_000, 6)
LAST = (
    {"age": 64, "sex": "Male", "height": 181.0, "town": "Nord"},
    {"age": 0, "sex": "Female", "height": 220.0, "town": "Atlantis"},
)
OTHERWISE = {"age": 99, "height": 100.0, "town": "Sued"}
"""Other values of the last record, for methods that hide values alone."""
EMPTY, STRANGERS = arrow_table([]), _strangers(20_000)
UNRELATED = ((MANY, (EMPTY,)), (BASE, (EMPTY, STRANGERS)))
"""Tables to record on, and those to replay on."""
MORE = [
    ("privgene", {"target": "sex", "population": 30}),
    ("output-perturbation", {"target": "sex", "regularization": Fraction(1, 100)}),
    ("pgkm", {"n_clusters": 2, "columns": ("height",), "population": 20}),
]
"""Settings for which the number of records decides how a method goes on."""
CASES = [*EXAMPLES, *MORE]


STREAM_SCHEMA = Schema(
    (
        column("zone", "category", values=["north", "south", "east"]),
        column("hour", "integer", bounds=[0, 7]),
    ),
    unit="user",
)
STREAM_EPSILON = Fraction(2)
SPAN = 6
_ENDS, _WINDOW, _HOURS = {"horizon": 2 * SPAN}, {"window": SPAN}, {"columns": ("hour",)}
STREAM_CASES = [
    ("dsat", _ENDS),
    ("dsat", {**_ENDS, "controller": "schedule", "contribution": 3}),
    ("dsat", {**_ENDS, "controller": "paper", "releases": 3, "static": "grouped"}),
    ("dsat-w", _WINDOW),
    ("dsat-w", {**_WINDOW, "controller": "schedule", "contribution": 3}),
    ("per-snapshot", _ENDS),
    ("per-snapshot", {**_WINDOW, **_HOURS, "static": "hierarchical", "contribution": 2}),
    ("fixed-sampling", _ENDS),
    ("fixed-sampling", {**_WINDOW, **_HOURS, "static": "efpa"}),
    ("dsft", {**_ENDS, "releases": 4}),
    ("dsft", {**_ENDS, "releases": 2, "threshold": Fraction(50), "contribution": 3}),
    ("bd", _WINDOW),
    ("bd", {**_WINDOW, "static": "grouped", "contribution": 3}),
    ("ba", _WINDOW),
    ("ba", {**_WINDOW, **_HOURS, "static": "ug"}),
]


def runner(method):
    """Make the function that publishes from a table, for `watch`."""
    schema = method.prepare(SCHEMA) if hasattr(method, "prepare") else SCHEMA

    def run(rows, rng, progress):
        budget = method.budget(EPSILON) if hasattr(method, "budget") else Budget.seeded(EPSILON)
        release = method.release(
            open_table(rows, schema), budget=budget, rng=rng, progress=progress
        )
        return release, release.metadata(), release.tables(), release.summary()

    return run


def guaranteed(method, record):
    """Say what a record may lose: epsilon, or what its own level pays."""
    if not hasattr(method, "spending"):
        return float(EPSILON)
    level = Fraction(3) if record["sex"] == "Male" else Fraction(3, 2)
    return float(method.spending(EPSILON)[level])


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
    run = runner(method)
    if getattr(method, "mode", None) == "values-only":
        _replay_values(method, run)
    else:
        _replay_presence(method, run)


def _replay_presence(method, run):
    for first, others in UNRELATED:
        played = Tape()
        seen = watch(partial(run, first), played)
        assert any(call.private is not None for call in played.calls)
        for rows in others:
            assert watch(partial(run, rows), Tape(played)) == seen
    for last in LAST:
        loss = removal_loss(run, _and_last(BASE, last), played, seen)
        assert loss <= guaranteed(method, last) + ROUNDING


def _replay_values(method, run):
    """Who is there, and at which level, is public here: tables differ in all other columns."""
    played = Tape()
    seen = watch(partial(run, BASE), played)
    others = _strangers(BASE.num_rows).set_column(1, "sex", BASE["sex"])
    assert watch(partial(run, others), Tape(played)) == seen
    for last in LAST:
        here, there = (_and_last(BASE, last | change) for change in ({}, OTHERWISE))
        assert exchange_loss(run, here, there) <= guaranteed(method, last) + ROUNDING


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
        assert removal_loss(run, _and_last(BASE, last), played, seen) <= float(EPSILON) + ROUNDING


def test_replay_of_chosen_buckets(monkeypatch):
    """Buckets of three values here, so that there is something to choose."""
    monkeypatch.setattr(structure_first, "VALUES_PER_BUCKET", 3)
    method = make_method("marginals", {"columns": ("age", "height"), "marginal": "structure-first"})
    _replay_presence(method, runner(method))


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
        exchange_loss(run, *(_and_last(BASE, last | change) for change in ({}, OTHERWISE)))
        for last in LAST
    ]


@pytest.mark.parametrize("settings", EXCHANGED, ids=["spearman", "kendall", "mle"])
def test_replay_of_a_public_number_of_records(settings):
    method = {"columns": ("age", "height"), "public_records": BASE.num_rows, **settings}
    run = runner(make_method("dpcopula", method))
    played = Tape()
    seen = watch(partial(run, BASE), played)
    assert watch(partial(run, _strangers(BASE.num_rows)), Tape(played)) == seen
    assert max(_exchanged(settings)) <= float(EPSILON) + ROUNDING


@pytest.mark.parametrize("settings", EXCHANGED[::2], ids=["spearman", "mle"])
def test_an_exchange_at_the_price_of_an_addition_is_noticed(monkeypatch, settings):
    monkeypatch.setattr(dpcopula, "half_for_exchange", lambda budget: budget)
    assert max(_exchanged(settings)) > float(EPSILON)


def test_replay_of_kmeans_with_many_columns(monkeypatch):
    """Two columns are taken for too many here, so that marginals replace a grid."""
    monkeypatch.setattr(default_kmeans, "MOST_GRID_COLUMNS", 1)
    method = make_method("kmeans", {"n_clusters": 2})
    _replay_presence(method, runner(method))


def _snapshots(seed, most, bins):
    """Counts of bins over time, with a jump now and then."""
    rng = np.random.default_rng(seed)  # noqa: TID251 - public rows for a test
    levels = [rng.integers(0, most + 1, bins) for _ in range(4)]
    return [levels[step // 3] + rng.integers(0, 3, bins) for step in range(2 * SPAN)]


def _with_user(snapshots, steps, contribution):
    """Add a user who has as many rows as they may, in a few bins, at the given steps."""
    changed = [counts.copy() for counts in snapshots]
    for step in steps:
        cells = (5 * step + 7 * np.arange(contribution)) % changed[step].size
        np.add.at(changed[step], cells, 1)
    return changed


def stream_runner(method):
    """Make the function that publishes a stream, stored and opened again after every step."""

    def run(snapshots, rng, progress):
        stream = method.start(STREAM_SCHEMA, budget=Budget.seeded(STREAM_EPSILON), rng=rng)
        shown = []
        for counts in snapshots:
            step = stream.next_counts(counts, rng=rng)
            state = stream.state()
            public, secret = (json.loads(json.dumps(x)) for x in (state.public, state.secret))
            shown.append((step, public, secret, state.arrays, stream.spent, stream.worst))
            state = StreamState(public, secret, state.arrays)
            stream = method.resume(STREAM_SCHEMA, state, stream.receipt)
        return shown, stream.receipt

    return run


@pytest.mark.parametrize(("name", "settings"), STREAM_CASES, ids=_number(STREAM_CASES))
def test_replay_stream(name, settings):
    method = make_stream_method(name, {"columns": ("zone", "hour"), **settings})
    run = stream_runner(method)
    bins = 8 if method.columns == ("hour",) else 24
    usual = _snapshots(1, 40, bins)
    played = Tape()
    seen = watch(partial(run, usual), played)
    assert any(call.private is not None for call in played.calls)
    for other in (_snapshots(2, 0, bins), _snapshots(3, 10**6, bins)):
        assert watch(partial(run, other), Tape(played)) == seen
    starts = (0, SPAN // 2, SPAN) if method.window else (0,)
    for start in starts:
        tape = Tape(played)
        steps = range(start, start + (method.window or len(usual)))
        changed = _with_user(usual, steps, method.contribution)
        assert watch(partial(run, changed), tape) == seen
        loss = path_loss(played, tape, changes=method.contribution)
        assert loss <= float(STREAM_EPSILON) + ROUNDING


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
        _replay_presence(method, runner(method))


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
        _replay_presence(method, runner(method))
