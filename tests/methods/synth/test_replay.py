"""Replay of synth where tables are chosen: nothing goes around the mechanisms, nor costs more.

The same checks catch every broken twin below.
"""

import ast
from dataclasses import replace
from fractions import Fraction
from functools import partial
from inspect import signature
from itertools import combinations
from math import comb
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pytest
from threadpoolctl import threadpool_limits

from dpublish.core.run import Run
from dpublish.data.schema import Schema
from dpublish.data.sources import open_table
from dpublish.methods.marginals.noisy_marginal import NoisyMarginal
from dpublish.methods.synth import choice, measure, plan, synth
from dpublish.methods.synth.choice import STEPS
from dpublish.methods.synth.synth import Synth
from dpublish.privacy.budget import Budget
from methods.synth import synth_world
from methods.synth.synth_world import AGE, JOB, SCHEMA, SEX, TOWN
from replay import ROUNDING, Diverged, Tape, path_loss, watch

EPSILON = Fraction(6)
ROWS = synth_world.make_rows(3_300)
STRANGERS = synth_world.strangers(300)
EMPTY = ROWS.slice(0, 0)
RECORDS = [
    {"sex": "M", "age": 9, "town": "Nord", "job": "cook", "pay": 47.0},
    {"sex": "F", "age": None, "town": "Ost", "job": "none", "pay": 99.0},
    {"sex": "F", "age": 1, "town": "Sued", "job": "smith", "pay": 0.0},
]
"""A usual record, a rare one, and one that no one can have."""


@pytest.fixture(autouse=True)
def short_fits(monkeypatch):
    """Fit in one thread and by a few steps: any model will do, and they take most of the time."""
    synth_world.shorten_fits(monkeypatch, 12)
    with threadpool_limits(1):
        yield


def runner(method, schema=SCHEMA, epsilon=EPSILON):
    """Make the function that publishes from rows, for `watch`."""

    def run(rows, rng, progress):
        release = method.release(
            open_table(rows, schema), budget=Budget.seeded(epsilon), rng=rng, progress=progress
        )
        return release, release.metadata(), release.tables(), release.summary()

    return run


class Replayed:
    """A release that was recorded on some rows."""

    def __init__(self, method, rows=ROWS, schema=SCHEMA, epsilon=EPSILON):
        self.run, self.rows, self.epsilon = runner(method, schema, epsilon), rows, epsilon
        self.tape = Tape()
        self.seen = watch(partial(self.run, rows), self.tape)

    def calls(self, kind):
        return [call for call in self.tape.calls if call.kind == kind]

    def is_same_on(self, rows):
        """Replay on other rows."""
        return watch(partial(self.run, rows), Tape(self.tape)) == self.seen

    def loss(self, record):
        """Replay with one record more; give what that costs."""
        tape = Tape(self.tape)
        rows = synth_world.with_last(self.rows, **record)
        assert watch(partial(self.run, rows), tape) == self.seen
        return path_loss(self.tape, tape)

    def is_private(self, records=RECORDS, others=(EMPTY, STRANGERS)):
        """Check all that a release owes, and say whether it holds."""
        try:
            whole = all(map(self.is_same_on, others))
            losses = [self.loss(record) for record in records]
        except AssertionError:  # other calls, or one that costs more than it was paid
            return False
        return whole and max(losses, default=0.0) <= float(self.epsilon) + ROUNDING


def test_a_release_with_several_looks_keeps_its_guarantee():
    found = Replayed(Synth())
    looks = {told[0] for told in found.seen.progress if told[2] == "choosing tables"}
    assert len(looks) >= 3
    assert len(found.calls("select")) >= 5
    assert found.is_same_on(EMPTY)
    assert found.is_same_on(STRANGERS)
    losses = [found.loss(record) for record in RECORDS]
    assert max(losses) <= float(EPSILON) + ROUNDING
    # Counts are paid for to the last bit; only choices and quality may cost less.
    noisy = sum(call.epsilon for call in found.calls("add_geometric"))
    assert max(losses) > 0.95 * float(noisy * (1 - Synth().quality_share))


def test_a_record_that_a_missing_rule_drops_costs_nothing():
    found = Replayed(Synth(columns=("sex", "town", "job")))
    assert found.loss({"sex": "M", "age": 3, "town": None, "job": "cook", "pay": 1.0}) == 0


def test_calls_are_asked_as_the_proof_argues():
    """C5, C7, C11, C12, C13: integers, all cells, and rates that follow from the shares."""
    found = Replayed(Synth(target=("job",), target_weight=3))
    assert {call.kind for call in found.tape.calls} <= {"add_geometric", "select"}
    for call in found.tape.calls:
        assert call.private.dtype == np.int64
    for call in found.calls("select"):
        assert call.epsilon / call.public[0] in (STEPS, 3 * STEPS)
        assert call.public[2] == "permute-and-flip"
    size, *_, summed, worst = found.calls("add_geometric")
    pairs = comb(len(SCHEMA.columns), 2)
    assert summed.epsilon / summed.public[0] == STEPS * pairs
    assert worst.epsilon / worst.public[0] == STEPS
    assert size.epsilon == EPSILON * plan.SIZE_SHARE
    released = _published(found)[0]
    sizes = [call.private.size for call in found.calls("add_geometric")]
    cells = [table.counts.size for table in released.counted]
    assert sizes == [1, *(one.size for one in SCHEMA.columns), *cells, 1, 1]
    assert min(table.counts.min() for table in released.counted) < 0  # nothing is cut off


def _published(found):
    """Publish once more what a tape recorded, as values."""
    kept = []

    def run(rng, progress):
        kept.extend(found.run(found.rows, rng=rng, progress=progress))

    watch(run, Tape(found.tape))
    return kept


def test_the_stored_model_is_the_one_that_quality_was_measured_against():
    """C10: what is published and what was compared with the rows are the same numbers."""
    found = Replayed(Synth())
    release = _published(found)[0]
    *_, summed, worst = found.calls("add_geometric")
    kernel = choice.ClassCounts(
        release.names,
        {
            (name, 9): classes.levels[-1]
            for name, classes in zip(release.names, release.classes, strict=True)
        },
        tuple(combinations([(name, 9) for name in release.names], 2)),
    )
    exact = kernel.split(open_table(ROWS, SCHEMA).sum(kernel))
    distances = []
    for one, counts in zip(kernel.sets, exact, strict=True):
        pair = tuple(release.names.index(name) for name, _ in one)
        levels = tuple(len(release.classes[i].levels) - 1 for i in pair)
        expected = choice.in_steps(release.model.expected(pair, levels))
        distances.append(int(np.abs(STEPS * counts - expected).sum()))
    assert summed.private.tolist() == [sum(distances)]
    assert worst.private.tolist() == [max(distances)]


@pytest.mark.parametrize("most", [3, 5])
def test_tables_of_three_columns_or_more_keep_the_guarantee(monkeypatch, most):
    synth_world.limit_tables(monkeypatch, most)
    found = Replayed(Synth())
    release = _published(found)[0]
    assert any(len(table.columns) >= 3 for table in release.counted)
    assert found.is_private()


@pytest.mark.parametrize("fits", [True, False])
def test_a_prior_keeps_the_guarantee(tmp_path, fits):
    path = tmp_path / "public.csv"
    rows = synth_world.make_rows(4_000, seed=9) if fits else synth_world.strangers(900)
    pyarrow.csv.write_csv(rows.select(["age", "job", "town"]), path)
    found = Replayed(Synth(prior=str(path)))
    release = _published(found)[0]
    assert release.prior == ("chosen" if fits else "not chosen")
    first = found.calls("select")[0]
    assert first.epsilon == EPSILON * plan.PRIOR_SHARE
    assert first.epsilon / first.public[0] == STEPS * comb(len(SCHEMA.columns), 2)
    assert found.is_private()


def test_stated_facts_keep_the_guarantee_also_on_rows_that_violate_them():
    schema = synth_world.stated_schema()
    extended = ROWS.append_column("double", pa.array([0] * ROWS.num_rows))
    found = Replayed(Synth(), rows=extended, schema=schema)
    release = _published(found)[0]
    assert len(release.counted) >= 5
    others = [
        rows.append_column("double", pa.array([7] * rows.num_rows)) for rows in (EMPTY, STRANGERS)
    ]
    assert found.is_private([record | {"double": 30} for record in RECORDS], others)


def test_a_target_keeps_the_guarantee():
    assert Replayed(Synth(target=("job",), target_weight=3)).is_private()
    assert Replayed(Synth(target=("sex", "pay"), target_weight=100)).is_private(RECORDS[:1])


def test_persons_of_several_rows_keep_the_guarantee_where_tables_are_chosen():
    """Three rows of one person are all hidden: each at a third of epsilon."""
    schema = Schema(SCHEMA.columns, unit="person")
    method, epsilon = Synth(contribution=3), 3 * EPSILON
    persons = pa.array([f"p{i // 2}" for i in range(ROWS.num_rows)])
    rows = ROWS.append_column("person", persons)
    found = Replayed(method, rows=rows, schema=schema, epsilon=epsilon)
    assert len(_published(found)[0].counted) >= 4
    more = rows
    for record in (*RECORDS, *RECORDS):
        more = synth_world.with_last(more, **record, person="new")
    tape = Tape(found.tape)
    assert watch(partial(found.run, more), tape) == found.seen
    loss = path_loss(found.tape, tape, changes=3)
    assert float(EPSILON) < loss <= float(epsilon) + ROUNDING


def test_nothing_looks_at_the_clock_or_the_machine():
    """C8: a fit that ends by time, or by memory, tells of the rows that were read before."""
    watched = {"time", "timeit", "os", "psutil", "resource", "threading", "multiprocessing"}
    folder = Path(synth.__file__).parent
    files = sorted(folder.glob("*.py"))
    assert len(files) > 10
    for path in files:
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            names = []
            if isinstance(node, ast.Import):
                names = [one.name for one in node.names]
            elif isinstance(node, ast.ImportFrom):
                names = [node.module or ""]
            assert not {name.split(".")[0] for name in names} & watched, path


# --- Broken twins: each goes wrong in one point, and the same checks notice it -------------------


def _stash_marginals(monkeypatch):
    """Keep the exact marginals, which nothing but their noise may see."""
    kept, release = [], synth._release_marginals

    def stashing(run, columns, exact, *, budget):
        kept[:] = exact
        return release(run, columns, exact, budget=budget)

    monkeypatch.setattr(synth, "_release_marginals", stashing)
    return kept


def classes_cut_at_true_quantiles(monkeypatch):
    exact, make = _stash_marginals(monkeypatch), synth.make_classes

    def make_from_exact(axis, marginal, **named):
        own = NoisyMarginal("identity", marginal.leaves, exact.pop(0).ravel(), marginal.rate)
        return make(axis, own, **named)

    monkeypatch.setattr(synth, "make_classes", make_from_exact)


def expected_from_true_marginals(monkeypatch):
    """Compare with the product of the true marginals, at the price of released ones."""
    batch, kept = choice._choose_batch, []

    def stashing(run, look, exact, *given, **named):
        kept[:] = [exact]
        return batch(run, look, exact, *given, **named)

    def expected(self, candidate):
        counts = kept[0].on_levels(candidate)
        found = np.full((), float(max(counts.sum(), 1)))
        for axis in range(counts.ndim):
            others = tuple(k for k in range(counts.ndim) if k != axis)
            found = np.multiply.outer(found, counts.sum(axis=others) / max(counts.sum(), 1))
        return choice.in_steps(found)

    monkeypatch.setattr(choice, "_choose_batch", stashing)
    monkeypatch.setattr(choice._Look, "expected", expected)


def plan_from_the_true_size(monkeypatch):
    kept, noisy, make = [], Run.noisy_size, synth.make_plan

    def stashing(self, size, *, budget):
        kept[:] = [size]
        return noisy(self, size, budget=budget)

    def planning(*given, **named):
        bound = signature(make).bind(*given, **named)
        bound.arguments["records"] = kept[0] if kept else bound.arguments["records"]
        return make(*bound.args, **bound.kwargs)

    monkeypatch.setattr(Run, "noisy_size", stashing)
    monkeypatch.setattr(synth, "make_plan", planning)


def every_table_takes_the_whole_share(monkeypatch):
    def count(run, known, exact, chosen, *, budget):
        found = []
        for one in chosen:
            table, own = exact.on_levels(one), Budget.seeded(budget.epsilon)
            noisy = run.add_noise(table.ravel(), sensitivity=1, budget=own)
            noisy = noisy.reshape(table.shape)
            found.append(choice.CountedTable(one.columns, one.levels, noisy, budget.epsilon))
        budget.spend()
        return replace(known, tables=(*known.tables, *found))

    monkeypatch.setattr(choice, "_count", count)


def size_rule_on_true_counts(monkeypatch):
    """Leave out tables most of whose cells are empty."""
    batch = choice._choose_batch

    def counting(run, look, exact, pool, *given, **named):
        pool = [
            one
            for one in pool
            if len(one.columns) == 2
            and 2 * (exact.on_levels(one) > 0).sum() > exact.on_levels(one).size
        ]
        return batch(run, look, exact, pool, *given, **named)

    monkeypatch.setattr(choice, "_choose_batch", counting)


def cells_by_the_true_size(monkeypatch):
    """Choose how fine tables are by the true number of records."""
    choose = synth.choose_tables

    def choosing(run, known, exact, plan, *, tables, **named):
        size = max(int(exact.last((0, 1)).sum()), 1)
        limit = 0.4 * size * float(tables.epsilon) / plan.tables
        with pytest.MonkeyPatch.context() as patch:
            real = choice.list_candidates
            patch.setattr(choice, "list_candidates", lambda known, _: real(known, max(4.0, limit)))
            return choose(run, known, exact, plan, tables=tables, **named)

    monkeypatch.setattr(synth, "choose_tables", choosing)


class _OfTrueSize:
    """A model that expects so many records as there are."""

    def __init__(self, model, size):
        self.known, self._model, self._size = model.known, model, size

    def expected(self, columns, levels):
        return self._model.expected(columns, levels) * self._size / self.known.total


def quality_with_the_true_size(monkeypatch):
    exact_quality = synth.measure_quality

    def measuring(run, model, exact, *, budget):
        twin = _OfTrueSize(model, int(exact.last((0, 1)).sum()))
        return exact_quality(run, twin, exact, budget=budget)

    monkeypatch.setattr(synth, "measure_quality", measuring)


def noise_on_occupied_cells_only(monkeypatch):
    add = Run.add_noise

    def adding(self, counts, *, sensitivity, budget):
        there = np.flatnonzero(counts)
        if counts.size < 3 or there.size in (0, counts.size):
            return add(self, counts, sensitivity=sensitivity, budget=budget)
        found = np.zeros_like(counts)
        found[there] = add(self, counts[there], sensitivity=sensitivity, budget=budget)
        return found

    monkeypatch.setattr(Run, "add_noise", adding)


def distances_as_scores(monkeypatch):
    """Score by the L1 distance, which moves both ways, at the price of one way."""
    monkeypatch.setattr(choice, "excess", lambda counts, m: int(np.abs(STEPS * counts - m).sum()))


def weights_that_are_not_paid_for(monkeypatch):
    monkeypatch.setattr(choice.ExcessScores, "range_sensitivity", lambda self, neighbors: STEPS)


def all_pairs_at_the_price_of_one(monkeypatch):
    monkeypatch.setattr(measure, "comb", lambda number, size: 1)


TWINS = (
    classes_cut_at_true_quantiles,
    expected_from_true_marginals,
    plan_from_the_true_size,
    every_table_takes_the_whole_share,
    size_rule_on_true_counts,
    cells_by_the_true_size,
    noise_on_occupied_cells_only,
    distances_as_scores,
    weights_that_are_not_paid_for,
    all_pairs_at_the_price_of_one,
)
TARGETED = Synth(target=("job",), target_weight=3)


def test_what_is_not_broken_is_private():
    assert Replayed(TARGETED).is_private()


@pytest.mark.parametrize("twin", TWINS)
def test_a_broken_twin_is_noticed(monkeypatch, twin):
    twin(monkeypatch)
    assert not Replayed(TARGETED).is_private()


def test_quality_compared_with_the_true_size_is_noticed(monkeypatch):
    """Of no record at all, the first one moves each pair by almost 2."""
    assert Replayed(Synth(), rows=EMPTY).is_private(others=(ROWS,))
    quality_with_the_true_size(monkeypatch)
    found = Replayed(Synth(), rows=EMPTY)
    with pytest.raises(AssertionError):
        found.loss(RECORDS[0])


# --- Smallest witnesses: neighbors on which a twin does something else ---------------------------


def test_one_record_decides_on_the_number_of_tables_of_a_twin(monkeypatch):
    """As many records as a table needs, or one less: only the twin counts a table or none."""
    schema = Schema((SEX, JOB))
    least = next(
        n for n in range(1, 5_000) if Synth().expected_error(schema, n, EPSILON).figures["tables"]
    )
    rows = synth_world.make_rows(4 * least).select(["sex", "job"]).slice(0, least - 1)
    record = {"sex": "F", "job": "cook"}
    assert Replayed(Synth(), rows, schema).loss(record) <= float(EPSILON) + ROUNDING
    plan_from_the_true_size(monkeypatch)
    with pytest.raises(Diverged):
        Replayed(Synth(), rows, schema).loss(record)


def test_one_record_cuts_the_classes_of_a_twin_elsewhere(monkeypatch):
    """Two or three records of the values 0, 1, 2: the lower median moves."""
    schema = Schema((synth_world.column("x", "integer", bounds=[0, 2]), SEX))
    rows = pa.table({"x": [0, 0, 1, 1], "sex": ["F", "M", "F", "M"]})
    record = {"x": 2, "sex": "F"}
    epsilon = Fraction(400)  # so that single records stand out
    assert Replayed(Synth(), rows, schema, epsilon).loss(record) <= float(epsilon) + ROUNDING
    classes_cut_at_true_quantiles(monkeypatch)
    found = Replayed(Synth(), rows, schema, epsilon)
    with pytest.raises(AssertionError):
        found.loss(record)


def test_tables_that_each_take_the_whole_share_cost_more_than_epsilon(monkeypatch):
    schema = Schema((SEX, TOWN, JOB, AGE))
    rows = ROWS.select(["sex", "town", "job", "age"])
    record = {name: RECORDS[0][name] for name in schema.names}
    assert Replayed(Synth(), rows, schema).loss(record) <= float(EPSILON) + ROUNDING
    every_table_takes_the_whole_share(monkeypatch)
    assert Replayed(Synth(), rows, schema).loss(record) > float(EPSILON) + 1
