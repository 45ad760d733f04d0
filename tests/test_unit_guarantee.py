"""All visits of one patient are hidden: each method is replayed with a patient more or less.

The mechanisms give the same values with the patient and without (`replay`).  Then a method must
publish the same, and all that the mechanisms were asked may differ by what epsilon pays for and
no more, however many visits the patient has and wherever they are in the table.  The sum over
the calls is the composition bound itself.

A *twin* does one thing wrong with the visits, or with epsilon, and must be caught in every method.
"""

from collections import Counter
from dataclasses import replace
from fractions import Fraction
from functools import partial

import numpy as np
import pyarrow as pa
import pytest
from threadpoolctl import threadpool_limits

from dpublish import datasets
from dpublish.accuracy.noise_distribution import noise_pmf
from dpublish.core.contribution import MOST_ROWS
from dpublish.core.registry import make_method
from dpublish.data.schema import Schema, column
from dpublish.data.sources import open_table
from dpublish.datasets.hospital import LEVELS, hospital
from dpublish.methods.linear_models import model as synopsis_model
from dpublish.methods.streams.method import make_stream_method
from dpublish.privacy.budget import Budget
from dpublish.randomness import seeded
from dpublish.testing import frequency_p_value
from hospital_methods import CONTRIBUTION, HOME, METHODS, PERSONALIZED
from replay import ROUNDING, Tape, path_loss, watch

EPSILON = Fraction(3, 2)
# Among few values every visit matters to the ranking, and losses come near to epsilon.
CASES = METHODS | {"topk": {"column": "insurance", "count": 1, "with_counts": True}}
SCHEMA = datasets.schema("hospital")


def _moving(rows):
    """Let patients move and be insured anew all the time, so that it matters which visits stay."""
    order = np.random.default_rng(8).permutation(rows.num_rows)  # noqa: TID251 - public rows
    for name in (*HOME, "insurance"):
        rows = rows.set_column(rows.column_names.index(name), name, rows[name].take(order))
    return rows


OTHERS = _moving(hospital(500, seed=6))
NEWCOMER, RESIDENT = "NEW", "P000001"


def _of(patient, rows):
    units = pa.array([patient] * rows.num_rows, pa.string())
    return rows.set_column(rows.column_names.index("patient_id"), "patient_id", units)


def _alike(patient, count, **values):
    """Repeat one visit with these values."""
    found = next(
        position
        for position, row in enumerate(OTHERS.to_pylist())
        if row | values == row and row["age"] is not None and row["cost"] is not None
    )
    return _of(patient, pa.concat_tables([OTHERS.slice(found, 1)] * count))


# One resident comes again and again for the same reason, and no newcomer is like them.
VISITS = pa.concat_tables(
    [
        _moving(hospital(60, seed=5)),
        _alike(RESIDENT, 5, ward="Geriatrics", insurance="Public", sex="Female", readmitted="yes"),
    ]
)
EMPTY = VISITS.slice(0, 0)
ALIKE = _alike(NEWCOMER, 30, ward="Emergency", insurance="Private", sex="Male", readmitted="no")
DIFFERENT = _of(NEWCOMER, OTHERS.slice(50, 30))
"""Thirty visits of one patient: all of the same kind, or of every kind."""


def last(rows, visits):
    return pa.concat_tables([rows, visits])


def first(rows, visits):
    return pa.concat_tables([visits, rows])


def scattered(rows, visits):
    """Put a visit between any two rows, and cut the table into small batches."""
    half = [rows.slice(start, 7) for start in range(0, rows.num_rows, 7)]
    parts = []
    for number in range(max(len(half), visits.num_rows)):
        parts += [*half[number : number + 1], visits.slice(number, 1)]
    return pa.concat_tables(parts)


NEIGHBORS = [
    put(VISITS, visits) for put in (last, first, scattered) for visits in (ALIKE, DIFFERENT)
]
"""The visits of all others, and of one more patient somewhere among them."""


def runner(name, epsilon=EPSILON, *, rule=lambda rows: rows, contribution=CONTRIBUTION):
    """Make the function that publishes from visits, for `watch`; `rule` may change them first."""
    method = make_method(name, {**CASES[name], "contribution": contribution})

    def run(rows, rng, progress):
        table = open_table(rule(rows), SCHEMA)
        budget = Budget.seeded(epsilon)
        release = method.release(table, budget=budget, rng=rng, progress=progress)
        return release, release.metadata(), release.tables(), release.summary()

    return run


def worst_loss(run, changes=CONTRIBUTION):
    """Replay what was published without the newcomer on tables with them; give what that cost.

    No call may cost more than it was paid for so many records that come or go.
    """
    played = Tape()
    seen = watch(partial(run, VISITS), played)
    found = []
    for rows in NEIGHBORS:
        tape = Tape(played)
        assert watch(partial(run, rows), tape) == seen
        found.append(path_loss(played, tape, changes=changes))
    return max(found)


@pytest.fixture(autouse=True)
def small_fits(monkeypatch):
    """Fit `model` to few rows of its synopsis, in one thread: it takes most of the time."""
    monkeypatch.setattr(synopsis_model, "ROWS", 200)
    with threadpool_limits(1):
        yield


@pytest.mark.parametrize("name", CASES)
def test_a_patient_costs_epsilon_whatever_their_visits(name):
    assert worst_loss(runner(name)) <= float(EPSILON) + ROUNDING


@pytest.mark.parametrize("name", ["histogram", "statistics", "kmeans", "dpcopula-hybrid"])
def test_a_bound_that_is_chosen_privately_costs_its_share(name):
    """The choice of the bound is one more query; on both tables it comes out the same."""
    loss = worst_loss(runner(name, contribution="auto"), changes=MOST_ROWS)
    assert float(EPSILON) / 2 < loss <= float(EPSILON) + ROUNDING


@pytest.mark.parametrize("name", CASES)
def test_nothing_goes_around_the_mechanisms(name):
    run = runner(name)
    played = Tape()
    seen = watch(partial(run, VISITS), played)
    assert any(call.private is not None for call in played.calls)
    for rows in (EMPTY, OTHERS):
        assert watch(partial(run, rows), Tape(played)) == seen


@pytest.mark.parametrize("name", CASES)
def test_neither_the_order_of_rows_nor_batches_change_anything(name):
    here = last(VISITS, DIFFERENT)
    order = np.random.default_rng(3).permutation(here.num_rows)  # noqa: TID251 - a public order
    there = scattered(here.take(order), EMPTY)
    run = runner(name)
    played = Tape()
    seen = watch(partial(run, here), played)
    tape = Tape(played)
    assert watch(partial(run, there), tape) == seen
    assert path_loss(played, tape) == 0


# --- Twins: rules that look right and are not ---------------------------------------------------


def _alone(rows):
    """Make every row a patient of its own, so that the true rule keeps all that a twin kept."""
    units = pa.array([f"row {number}" for number in range(rows.num_rows)], pa.string())
    return rows.set_column(rows.column_names.index("patient_id"), "patient_id", units)


def _first_of_each(rows, order, name_of=lambda unit: unit):
    """Keep the first rows of each patient in some order."""
    taken, kept = Counter(), []
    units = rows["patient_id"].to_pylist()
    for position in order:
        if units[position] is not None:
            taken[name_of(units[position])] += 1
            if taken[name_of(units[position])] <= CONTRIBUTION:
                kept.append(position)
    return _alone(rows.take(pa.array(sorted(kept), pa.int64())))


def bound_skipped(rows):
    return _alone(rows.filter(rows["patient_id"].is_valid()))


def bounded_by_row_order(rows):
    """Keep those of a patient's rows whose positions in the table end in the least digits."""
    positions = range(rows.num_rows)
    return _first_of_each(rows, sorted(positions, key=lambda position: (position % 10, position)))


def bounded_batch_by_batch(rows):
    parts = pa.Table.from_batches(rows.to_batches(max_chunksize=20)).to_batches()
    tables = [pa.Table.from_batches([part]) for part in parts]
    kept = [_first_of_each(part, range(part.num_rows)) for part in tables]
    return _alone(pa.concat_tables(kept)) if kept else rows


def hash_shared_between_units(rows):
    """Tell patients apart by the last digit of their number; the newcomer shares another's."""
    backward = reversed(range(rows.num_rows))
    return _first_of_each(
        rows, backward, name_of=lambda unit: "1" if unit == NEWCOMER else unit[-1]
    )


ANY = VISITS.num_rows + ALIKE.num_rows
"""As many rows as a twin may move: the sum over all calls is what it is caught by."""
TWINS = (
    bound_skipped,
    bounded_by_row_order,
    bounded_batch_by_batch,
    hash_shared_between_units,
)


@pytest.mark.parametrize("twin", TWINS)
@pytest.mark.parametrize("name", CASES)
def test_a_wrong_bound_is_caught(name, twin):
    assert worst_loss(runner(name, rule=twin), changes=ANY) > float(EPSILON) + ROUNDING


@pytest.mark.parametrize("name", CASES)
def test_an_epsilon_that_is_not_divided_is_caught(name):
    assert worst_loss(runner(name, CONTRIBUTION * EPSILON)) > float(EPSILON) + ROUNDING


# --- Each patient's own epsilon: the least that any of their visits accepts ----------------------

PERSONAL = {
    "minimum": PERSONALIZED,
    "threshold": PERSONALIZED | {"threshold": "1"},
    "partitioning": PERSONALIZED,
}
TOP = Fraction(2)


def _accepting(rows, *accepted):
    """Let the first rows accept these levels, and all others the last of them."""
    levels = [*accepted, *accepted[-1:] * rows.num_rows][: rows.num_rows]
    return rows.set_column(rows.column_names.index("accepts"), "accepts", pa.array(levels))


ACCEPTING = {
    Fraction(level): _accepting(ALIKE, *[LEVELS[-1]] * 17, level, *LEVELS[-1:]) for level in LEVELS
}
"""One of the newcomer's thirty visits accepts the level, all others the largest."""


def personal_runner(name, *, rule=lambda rows: rows):
    method = make_method(name, {**PERSONAL[name], "contribution": CONTRIBUTION})
    schema = method.prepare(SCHEMA)

    def run(rows, rng, progress):
        table = open_table(rule(rows), schema)
        release = method.release(table, budget=method.budget(TOP), rng=rng, progress=progress)
        return release, release.metadata(), release.tables(), release.summary()

    return method, run


def excess(method, run):
    """Tell by how much a newcomer of any level may lose more than that level pays."""
    played = Tape()
    seen = watch(partial(run, VISITS), played)
    found = []
    for level, visits in ACCEPTING.items():
        for put in (last, first, scattered):
            tape = Tape(played)
            assert watch(partial(run, put(VISITS, visits)), tape) == seen
            paid = method.spending(TOP)[level]
            assert paid <= level
            found.append(path_loss(played, tape, changes=ANY) - float(paid))
    return max(found)


@pytest.mark.parametrize("name", PERSONAL)
def test_a_patient_loses_at_most_what_the_least_of_their_visits_accepts(name):
    assert excess(*personal_runner(name)) <= ROUNDING


def level_of_each_visit(rows):
    """Bound the visits first, and let each of those that stay have its own level."""
    return _first_of_each(rows, range(rows.num_rows))


def largest_level(rows):
    units, accepted = (rows[name].to_pylist() for name in ("patient_id", "accepts"))
    most = dict(sorted(zip(units, map(float, accepted), strict=True), key=lambda pair: pair[1]))
    levels = pa.array([format(most[unit], "g") for unit in units])
    return rows.set_column(rows.column_names.index("accepts"), "accepts", levels)


@pytest.mark.parametrize("twin", [level_of_each_visit, largest_level, bound_skipped])
def test_a_wrong_level_of_a_patient_is_caught(twin):
    assert excess(*personal_runner("threshold", rule=twin)) > ROUNDING


# --- Streams: the patient comes at every step ---------------------------------------------------

STEPS = 6
STREAMS = {
    "per-snapshot": {"horizon": STEPS},
    "dsat": {"horizon": STEPS},
    "bd": {"window": STEPS},
}


def _snapshots(visits):
    """Cut the visits of all others into so many snapshots, and add the newcomer to each."""
    size = VISITS.num_rows // STEPS
    return [scattered(VISITS.slice(step * size, size), visits) for step in range(STEPS)]


def stream_runner(name, epsilon=EPSILON, *, rule=lambda rows: rows):
    """Make the function that publishes snapshots one after the other, for `watch`."""
    settings = {"columns": ("ward",), "contribution": CONTRIBUTION, **STREAMS[name]}
    method = make_stream_method(name, settings)

    def run(snapshots, rng, progress):
        stream = method.start(SCHEMA, budget=Budget.seeded(epsilon), rng=rng)
        # The name is drawn at random for every start, and is the key of the bound.
        stream.receipt = replace(stream.receipt, release_id="the same for all")
        tables = [open_table(rule(rows), SCHEMA) for rows in snapshots]
        return [stream.next(table, rng=rng) for table in tables], stream.spent

    return run


def worst_stream_loss(run, changes=CONTRIBUTION):
    played = Tape()
    seen = watch(partial(run, _snapshots(EMPTY)), played)
    found = []
    for visits in (ALIKE, DIFFERENT):
        tape = Tape(played)
        assert watch(partial(run, _snapshots(visits)), tape) == seen
        found.append(path_loss(played, tape, changes=changes))
    return max(found)


@pytest.mark.parametrize("name", STREAMS)
def test_a_patient_of_every_step_costs_epsilon_in_all(name):
    assert 0 < worst_stream_loss(stream_runner(name)) <= float(EPSILON) + ROUNDING


@pytest.mark.parametrize("twin", TWINS)
def test_a_wrong_bound_of_a_snapshot_is_caught(twin):
    run = stream_runner("per-snapshot", rule=twin)
    assert worst_stream_loss(run, changes=ANY) > float(EPSILON) + ROUNDING


@pytest.mark.parametrize("name", STREAMS)
def test_an_epsilon_of_steps_that_is_not_divided_is_caught(name):
    run = stream_runner(name, CONTRIBUTION * EPSILON)
    assert worst_stream_loss(run) > float(EPSILON) + ROUNDING


# --- Noise: what a release draws is what the bound asks for, no more and no less ------------------


def _published_noise(contribution, cells=20_000):
    """Publish 20,000 counts of an empty table: nothing but noise."""
    schema = Schema((column("visit", "integer", bounds=[0, cells - 1]),), unit="patient")
    empty = pa.table({name: pa.array([], pa.int64()) for name in ("patient", "visit")})
    method = make_method("histogram", {"columns": ("visit",), "contribution": contribution})
    release = method.release(
        open_table(empty, schema), budget=Budget.seeded(EPSILON), rng=seeded(5)
    )
    return release.counts.ravel().tolist()


@pytest.mark.parametrize("contribution", [1, 3, 8])
def test_counts_get_the_noise_that_hides_so_many_visits(contribution):
    noise = _published_noise(contribution)

    def p_value(rate):
        values = np.arange(min(noise), max(noise) + 1)
        tail = noise_pmf(rate, values)
        return frequency_p_value(noise, dict(zip(values.tolist(), tail / tail.sum(), strict=True)))

    rate = EPSILON / contribution
    assert p_value(rate) > 1e-4
    assert max(p_value(rate * Fraction(7, 10)), p_value(rate * Fraction(13, 10))) < 1e-20
