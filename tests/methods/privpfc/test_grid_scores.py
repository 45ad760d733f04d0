"""Scores of many grids: the same as one would get grid by grid, on the same records."""

from fractions import Fraction
from functools import partial
from itertools import product

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpublish.core.run import Run
from dpublish.core.task import Task
from dpublish.data.schema import Schema, column
from dpublish.data.sources import open_table
from dpublish.errors import InvalidParameter
from dpublish.mechanisms.exact.sampler import uniform_below
from dpublish.methods.privpfc import cuboids, grid_scores
from dpublish.methods.privpfc.candidate_grids import enumerate_grids
from dpublish.methods.privpfc.grid_quality import GridQuality
from dpublish.methods.privpfc.grid_scores import score_grids
from dpublish.randomness import plain_generator, seeded

QUALITY = GridQuality(Fraction(1, 2))
TREE = {"paid": {"public": ["a", "b"], "private": ["c"]}, "unpaid": ["d", "e", "f"], "none": []}


def uniform(seed):
    return partial(uniform_below, rng=seeded(seed))


def run_on(rows, schema):
    return Run(open_table(rows, schema), rng=seeded(1))


def make_schema(classes, bins=(9, 5, 4), missing="drop"):
    """Columns with trees of all shapes, and rules for missing values of all kinds."""
    numbers = [
        column(f"n{i}", "numeric", bounds=[0, size], bins=size, branching=2, missing=missing)
        for i, size in enumerate(bins)
    ]
    job = column("job", "category", taxonomy=TREE, missing="category")
    flag = column("flag", "category", values=["no", "yes"], missing=missing)
    target = column("class", "category", values=[f"c{i}" for i in range(classes)], missing=missing)
    return Schema((*numbers, target, job, flag))


def make_rows(schema, count, seed, blanks=0.1):
    rng = plain_generator(seed)
    rows = {}
    for one in schema.columns:
        if one.kind == "numeric":
            values = rng.beta(1, 3, count) * one.bounds[1]
        else:
            labels = one.axis().leaf_labels
            values = rng.choice([*labels, labels[0], labels[0]], count)
        rows[one.name] = pa.array(values, mask=rng.random(count) < blanks)
    return pa.table(rows)


def sizes_of(task):
    return [[len(level.starts) for level in x.taxonomy.levels] for x in task.predictors]


def score_one_by_one(rows, task, grids, quality=QUALITY):
    """Count every grid from the rows by itself."""
    columns = (*task.predictors, task.target)
    encoded = [one.encode(rows[one.name].combine_chunks()) for one in columns]
    keep = np.ones(rows.num_rows, dtype=bool)
    for _, known in encoded:
        keep &= True if known is None else known
    codes = [codes[keep].astype(np.int64) for codes, _ in encoded]
    scores = []
    for grid in grids.tolist():
        cells = np.zeros(keep.sum(), dtype=np.int64)
        size = 1
        for one, leaves, level in zip(task.predictors, codes, grid, strict=False):
            axis = one.axis(level)
            cells = cells * axis.size + axis.leaf_to_cell[leaves]
            size *= axis.size
        counts = np.bincount(codes[-1] * size + cells, minlength=size * task.target.size)
        scores.append(int(quality.score_cells(counts.reshape(-1, size)).sum()))
    return scores


@pytest.fixture(params=["as it is", "tiny cuboids", "long axes"])
def machinery(request, monkeypatch):
    """Small limits lead small examples through all of the machinery."""
    if request.param == "tiny cuboids":
        monkeypatch.setattr(grid_scores, "_LEAST_CAP", 64)
        monkeypatch.setattr(grid_scores, "_COUNTS_PER_PASS", 200)
        monkeypatch.setattr(grid_scores, "_SHRINK", 2)
        monkeypatch.setattr(grid_scores, "_SMALL", 8)
        monkeypatch.setattr(grid_scores, "_PART", 5)
        monkeypatch.setattr(cuboids, "_PRODUCT", 64)
    if request.param == "long axes":
        monkeypatch.setattr(cuboids, "LONGEST", 3)


@pytest.mark.parametrize("classes", [2, 3, 5])
@pytest.mark.usefixtures("machinery")
def test_scores_are_those_of_counting_grid_by_grid(classes):
    schema = make_schema(classes)
    task = Task.of(schema, target="class")
    grids = enumerate_grids(sizes_of(task), max_cells=300, limit=400, uniform=uniform(classes))
    rows = make_rows(schema, 700, classes)
    scores = score_grids(run_on(rows, schema), task, grids, QUALITY)
    assert scores.dtype == np.int64
    assert scores.tolist() == score_one_by_one(rows, task, grids)


@settings(max_examples=40)
@given(
    classes=st.sampled_from([2, 3, 5]),
    bins=st.tuples(*[st.integers(1, 12)] * 3),
    missing=st.sampled_from(["drop", "category"]),
    count=st.integers(0, 60),
    seed=st.integers(0, 999),
    cap=st.sampled_from([1, 10, 100, 10**6]),
)
def test_any_schema_and_any_plan_give_the_same_scores(classes, bins, missing, count, seed, cap):
    schema = make_schema(classes, bins, missing)
    task = Task.of(schema, target="class", predictors=("flag", "n2", "n0", "job", "n1"))
    rows = make_rows(schema, count, seed, blanks=0.05)
    rng = plain_generator(seed)
    grids = np.stack([rng.integers(0, x.height + 1, 30) for x in task.predictors], axis=1)
    grids = (grids * (rng.random(grids.shape) < 0.6)).astype(np.int8)  # with repeats, unordered
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(grid_scores, "_LEAST_CAP", cap)
        patch.setattr(grid_scores, "_MOST_CAP", cap)
        scores = score_grids(run_on(rows, schema), task, grids, QUALITY)
    assert scores.tolist() == score_one_by_one(rows, task, grids)


@pytest.mark.parametrize("hint", [-5, 0, 10**12])
def test_the_hint_changes_no_score(hint):
    schema = make_schema(2)
    task = Task.of(schema, target="class")
    grids = enumerate_grids(sizes_of(task), max_cells=100, limit=100, uniform=uniform(1))
    rows = make_rows(schema, 200, 1)
    scores = score_grids(run_on(rows, schema), task, grids, QUALITY, rows_hint=hint)
    assert scores.tolist() == score_one_by_one(rows, task, grids)


@pytest.mark.parametrize("classes", [2, 4])
def test_one_record_moves_two_grids_apart_by_no_more_than_the_range(classes):
    schema = make_schema(classes, bins=(4, 3, 2))
    task = Task.of(schema, target="class")
    grids = enumerate_grids(sizes_of(task), max_cells=100, limit=300, uniform=uniform(1))
    rows = make_rows(schema, 120, 3)
    all_scores = score_grids(run_on(rows, schema), task, grids, QUALITY)
    widest = 0
    for row in range(120):
        others = pa.concat_tables([rows.slice(0, row), rows.slice(row + 1)])
        change = all_scores - score_grids(run_on(others, schema), task, grids, QUALITY)
        widest = max(widest, np.ptp(change))
    assert 0.9 * QUALITY.unit < widest <= QUALITY.range_sensitivity


def test_leaving_records_out_grid_by_grid_would_break_the_range():
    """Broken twin: read only the columns that a grid uses."""
    schema = make_schema(2, bins=(4, 3, 2))
    task = Task.of(schema, target="class")
    whole = make_rows(schema, 1, 0, blanks=0)
    rows = whole.set_column(0, "n0", pa.array([None], pa.float64()))
    grids = np.eye(len(task.predictors), dtype=np.int8)
    assert score_grids(run_on(rows, schema), task, grids, QUALITY).tolist() == [0] * len(grids)
    alone = [Task(task.target, (one,)) for one in task.predictors]
    twin = [
        score_grids(run_on(rows, schema), one, np.ones((1, 1), np.int8), QUALITY)[0]
        for one in alone
    ]
    assert twin[0] == 0 < min(twin[1:])


def test_progress_counts_candidates_whatever_the_records_are(monkeypatch):
    monkeypatch.setattr(grid_scores, "_LEAST_CAP", 100)
    schema = make_schema(3)
    task = Task.of(schema, target="class")
    grids = enumerate_grids(sizes_of(task), max_cells=60, limit=50, uniform=uniform(1))
    told = {}
    for count in (0, 500):
        seen = told.setdefault(count, [])
        table = open_table(make_rows(schema, count, 1), schema)
        run = Run(table, rng=seeded(1), progress=lambda *x, seen=seen: seen.append(x))
        score_grids(run, task, grids, QUALITY)
    assert told[0] == told[500]
    assert told[0][-1][:2] == (50, 50)
    assert len(told[0]) > 3


def test_wide_columns_and_many_predictors_are_scored():
    wide = column("wide", "integer", bounds=[0, 69_999], bins=70_000, branching=300)
    flags = [column(f"f{i:02}", "category", values=["no", "yes"]) for i in range(40)]
    schema = Schema((wide, *flags))
    task = Task.of(schema, target="f39")
    rng = plain_generator(4)
    labels = {f"f{i:02}": np.array(["no", "yes"])[rng.integers(0, 2, 300)] for i in range(40)}
    rows = pa.table({"wide": rng.integers(0, 70_000, 300), **labels})
    grids = enumerate_grids(sizes_of(task), max_cells=200_000, limit=2000, uniform=uniform(1))
    scores = score_grids(run_on(rows, schema), task, grids, QUALITY)
    some = [*range(50), *range(50, 2000, 97)]
    assert scores[some].tolist() == score_one_by_one(rows, task, grids[some])


@pytest.mark.parametrize(("classes", "most"), [(2, 2**24), (20, 2**24 // 20)])
def test_a_grid_of_too_many_cells_is_refused_before_a_row_is_read(classes, most):
    columns = [column(f"n{i}", "integer", bounds=[0, 255]) for i in range(4)]
    target = column("class", "category", values=[f"c{i}" for i in range(classes)])
    schema = Schema((*columns, target))
    with pytest.raises(InvalidParameter, match=f"at most {most:,} cells"):
        score_grids(
            Run(None, rng=seeded(1)),
            Task.of(schema, target="class"),
            np.ones((1, 4), np.int8),
            QUALITY,
        )


def test_all_grids_of_a_small_schema_are_scored():
    schema = make_schema(2, bins=(3, 2, 1))
    task = Task.of(schema, target="class")
    every = product(*(range(x.height + 1) for x in task.predictors))
    grids = np.array(list(every), dtype=np.int8)
    rows = make_rows(schema, 90, 8)
    scores = score_grids(run_on(rows, schema), task, grids, QUALITY)
    assert scores.tolist() == score_one_by_one(rows, task, grids)
