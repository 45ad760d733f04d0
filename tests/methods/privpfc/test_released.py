"""A published grid classifier: what it predicts, what it draws, and what it refuses to be."""

import hashlib
import json
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet

from dpublish.core.folder.folder import load
from dpublish.core.noisy_size import NoisySize
from dpublish.core.query import sampled as sampled_count
from dpublish.data.schema import Schema, column
from dpublish.data.sources import open_table
from dpublish.errors import CorruptRelease, DPublishError, InvalidParameter, InvalidQuery
from dpublish.methods.privpfc.kernels import sums_shape
from dpublish.methods.privpfc.privpfc import PrivPfC
from dpublish.methods.privpfc.refined_rows import draw_evenly, fit_shares
from dpublish.methods.privpfc.released import PrivPfCRelease, grid_scores, grid_term, to_scores
from dpublish.methods.privpfc.released_columns import _DOUBT as DOUBT
from dpublish.methods.privpfc.released_columns import Refinement, ValueCounts
from dpublish.methods.privpfc.score_card import LIMIT, STEP, UNIT, to_probabilities
from dpublish.privacy.budget import Budget
from dpublish.privacy.neighbors import AddRemoveRecord
from dpublish.privacy.receipt import Receipt
from dpublish.randomness import plain_generator, seeded

AGE = column("age", "integer", bounds=[0, 9], bins=5, missing="category")
JOB = column("job", "category", taxonomy={"Paid": ["clerk", "nurse"], "Unpaid": ["none"]})
SEX = column("sex", "category", values=["F", "M"], other="X")
RISK = column("risk", "category", taxonomy={"Calm": ["low"], "Wild": ["high"]})
SCHEMA = Schema((AGE, JOB, SEX, RISK))

JOBS = JOB.axis(1)  # Paid, Unpaid
COUNTS = np.array([60, 20, -3, 31])  # Paid: low, high; Unpaid: low, high
RATE = Fraction(1, 2)


def receipt():
    budget = Budget.seeded(1)
    budget.spend()
    return Receipt.issue(
        method="privpfc", settings={}, budget=budget, neighbors=AddRemoveRecord(), rng=seeded(1)
    )


def refine_by(axis, residuals, variances, rate=Fraction(1, 100), remainders=((0,) * 3,) * 2):
    first, second = (remainder[: axis.size] for remainder in remainders)
    sums = np.array([[residuals], [variances], [first], [second]])
    return Refinement(axis, 2, UNIT * sums, rate / UNIT)


BY_SEX = refine_by(SEX.axis(), [-900, 900, 0], [300, 100, 0])


def make(**changes):
    settings = {
        "receipt": receipt(),
        "schema": SCHEMA,
        "axes": (JOBS, RISK.axis()),
        "cells": np.arange(4),
        "counts": COUNTS,
        "noise_rate": RATE,
        "records": NoisySize(110, Fraction(1, 20)),
        "scores": grid_scores(COUNTS.reshape(2, 2), (2,), 108.0, float(RATE)).ravel(),
        "refinements": (BY_SEX,),
    }
    return PrivPfCRelease(**{**settings, **changes})


def rows(jobs, sexes=None):
    return pa.table({"job": jobs, "sex": ["X"] * len(jobs) if sexes is None else sexes})


# --- what it predicts --------------------------------------------------------------------------


def test_the_grid_alone_predicts_the_majority_class_of_a_cell():
    for rule in ("scores", "counts"):
        found = make(refinements=()).predict(pa.table({"job": ["nurse", "none"]}), rule=rule)
        assert found.to_pylist() == ["low", "high"]


def test_refinements_add_to_the_scores_and_only_to_them():
    tree, people = make(), rows(["clerk", "clerk", "none"], ["F", "M", "F"])
    assert tree.predict(people).to_pylist() == ["low", "high", "high"]
    assert tree.predict(people, rule="counts").to_pylist() == ["low", "low", "high"]


def test_by_counts_only_the_columns_of_the_grid_are_needed():
    only_jobs = pa.table({"job": ["clerk", "none"]})
    assert make().predict(only_jobs, rule="counts").to_pylist() == ["low", "high"]
    with pytest.raises(InvalidQuery, match="sex"):
        make().predict(only_jobs)


def test_unknown_values_count_as_all_records_do():
    tree = make(refinements=())
    assert tree.predict(pa.table({"job": ["pilot", None]})).to_pylist() == ["low", "low"]
    assert tree.predict(pa.table({"job": ["pilot"]}), rule="counts").to_pylist() == ["low"]
    probabilities = tree.predict_proba(pa.table({"job": ["pilot"]}))[0]
    assert probabilities == pytest.approx([58 / 110, 52 / 110], abs=0.01)  # 57 and 51, and one each
    codes = {"job": np.array([-1]), "sex": np.array([-1])}
    assert make().predict_codes(codes, 1).tolist() == [0]


def test_values_that_are_not_listed_follow_the_rule_of_their_column():
    assert make().predict(rows(["clerk"], ["?"])) == make().predict(rows(["clerk"], ["X"]))


def test_probabilities_add_up_and_agree_with_what_is_predicted():
    people = rows(["clerk", "nurse", "none", "pilot"] * 3, ["F"] * 4 + ["M"] * 4 + ["X"] * 4)
    probabilities = make().predict_proba(people)
    assert probabilities.sum(axis=1) == pytest.approx(np.ones(12))
    labels = np.array(["low", "high"])[probabilities.argmax(axis=1)]
    assert labels.tolist() == make().predict(people).to_pylist()


def test_no_rows_have_no_classes():
    assert make().predict(rows([])).to_pylist() == []
    assert make().predict_proba(rows([])).shape == (0, 2)


def test_without_grid_or_refinements_all_records_are_alike():
    root = make(
        axes=(RISK.axis(),),
        cells=np.arange(2),
        counts=np.array([3, 9]),
        scores=np.array([-STEP, STEP]),
        refinements=(),
    )
    assert root.card.columns == ()
    assert root.predict(pa.table({"job": ["x", "y"]})).to_pylist() == ["high", "high"]
    assert root.rows(4, seed=1).column_names == ["risk"]
    assert root.rows(seed=1).num_rows == root.estimates.sum()


def test_a_class_is_named_after_its_leaf_even_below_a_group_of_one():
    assert make().classes.labels == ("low", "high")
    assert "low, high" in make().summary()["predicts"]
    assert make().summary()["refined by"] == "sex"


@pytest.mark.parametrize("method", ["predict", "rows"])
def test_an_unknown_rule_is_refused(method):
    arguments = (rows(["clerk"]),) if method == "predict" else ()
    with pytest.raises(InvalidParameter, match="rule"):
        getattr(make(), method)(*arguments, rule="votes")


def test_boxes_of_refined_columns_are_counted_in_rows_and_others_in_the_grid():
    release = make()
    first_job, one_sex = np.array([[0]]), np.array([[0, 0]])
    of_grid = release.count_boxes(["job"], first_job, first_job + 2)
    assert of_grid.tolist() == [80.0]  # Paid, the noisy counts as they are
    women = release.count_boxes(["sex", "risk"], one_sex, np.array([[1, 2]]))[0]
    assert women == pytest.approx(release.count("sex = F").value)
    with pytest.raises(InvalidQuery, match="age"):
        release.count_boxes(["age"], first_job, first_job + 1)


# --- what it draws ------------------------------------------------------------------------------


def test_rows_have_the_probabilities_of_the_scores():
    drawn = make().rows(40_000, seed=3)
    table = drawn.to_pandas()
    women = table[(table.sex == "F") & (table.job == "none")]
    expected = make().predict_proba(rows(["none"], ["F"]))[0, 1]
    assert (women.risk == "high").mean() == pytest.approx(expected, abs=0.02)
    assert set(table.job) == {"clerk", "nurse", "none"}
    assert (table.sex == "F").mean() > (table.sex == "M").mean() > (table.sex == "X").mean()


def test_classes_of_alike_rows_are_shared_out_evenly():
    scores = np.repeat([[0, 0, 0], [0, STEP, 2 * STEP]], 1000, axis=0)
    cells = np.repeat([0, 1, 0, 1], 500)
    probabilities = to_probabilities(scores) / UNIT
    for seed in range(5):
        drawn = draw_evenly(scores, cells, plain_generator(seed))
        for part in range(4):
            block = slice(500 * part, 500 * (part + 1))
            found = np.bincount(drawn[block], minlength=3)
            # Independent draws would miss this by more than 6 in every second block.
            assert found == pytest.approx(500 * probabilities[block][0], abs=6)
    assert draw_evenly(scores[:0], cells[:0], plain_generator(1)).size == 0


def test_rows_by_counts_know_the_grid_only():
    drawn = make().rows(5000, seed=3, rule="counts").to_pandas()
    assert list(drawn.columns) == ["job", "risk"]
    estimates = make().estimates.reshape(2, 2)
    unpaid = drawn[drawn.job == "none"]
    assert (unpaid.risk == "high").mean() == pytest.approx(
        estimates[1, 1] / estimates[1].sum(), abs=0.02
    )


@pytest.mark.parametrize("rule", ["scores", "counts"])
def test_filled_rows_have_all_columns_in_the_schema_s_order(rule):
    drawn = make().rows(50, seed=1, fill=True, rule=rule)
    assert drawn.column_names == ["age", "job", "sex", "risk"]
    assert drawn.num_rows == 50
    assert drawn == make().rows(50, seed=1, fill=True, rule=rule)
    assert drawn != make().rows(50, seed=2, fill=True, rule=rule)


@pytest.mark.parametrize("rule", ["scores", "counts"])
def test_without_a_number_as_many_rows_are_drawn_as_were_counted(rule):
    assert make().rows(seed=1, rule=rule).num_rows == int(make().estimates.sum()) > 100


@pytest.mark.parametrize("rule", ["scores", "counts"])
def test_a_release_of_no_records_draws_none_or_evenly(rule):
    empty = make(counts=np.full(4, -7), records=NoisySize(-3, Fraction(1, 20)))
    assert not empty.estimates.any()
    assert empty.rows(seed=1, rule=rule).num_rows == 0
    drawn = empty.rows(400, seed=1, rule=rule).to_pandas()
    assert 100 < (drawn.job == "none").sum() < 300


def test_refinements_that_know_nothing_of_sizes_are_drawn_from_about_evenly():
    blank = refine_by(SEX.axis(), [0, 0, 0], [-5, -1, 0])
    drawn = make(refinements=(blank,)).rows(9000, seed=1).to_pandas().sex.value_counts()
    assert drawn.min() > 2500


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("extreme", [1 << 60, -(1 << 60), 0])
def test_rows_are_drawn_whatever_noise_did_to_the_sums(classes, extreme):
    kinds, planes, cells = sums_shape(classes, 3)
    for rate in (Fraction(1, 1 << 39), Fraction(1, UNIT), Fraction(10**9)):
        one = Refinement(SEX.axis(), classes, np.full((kinds, planes, cells), extreme), rate)
        scores = np.array([[0] * classes, [LIMIT, *[-LIMIT] * (classes - 1)]])
        allowed = np.array([[True, True, True], [False, True, False]])
        shares = fit_shares(one, scores, np.array([5.0, 0.0]), allowed)
        assert shares.sum(axis=1) == pytest.approx([1, 1])
        assert shares[1].tolist() == [0, 1, 0]


@pytest.mark.parametrize(("n", "seed"), [(-1, 1), (1.5, 1), (5, -1), (10**9, 1)])
def test_impossible_numbers_of_rows_are_refused(n, seed):
    with pytest.raises(InvalidParameter):
        make().rows(n, seed=seed)


# --- scores -------------------------------------------------------------------------------------


def test_scores_are_log_odds_within_the_limit():
    scores = to_scores(np.array([[0.5, 0.5], [1.0, 0.0], [0.25, 0.75]]))
    assert scores[0].tolist() == [0, 0]
    assert scores[1].tolist() == [LIMIT, -LIMIT]
    assert scores[2, 1] - scores[2, 0] == pytest.approx(np.log(3) * STEP, abs=1)


@pytest.mark.parametrize("total", [-5.0, 0.0, 90.0])
@pytest.mark.parametrize("rate", [1e-9, 0.5, 1e9])
def test_scores_stay_within_the_limit_whatever_noise_did(total, rate):
    noisy = np.array([[10**9, -(10**9)], [-(10**9), 0], [0, 0]])
    scores = grid_scores(noisy, (3,), total, rate)
    assert np.abs(scores).max() <= LIMIT
    term = grid_term((JOB.axis(),), noisy, scores)
    assert np.abs(term.unknown).max() <= LIMIT


def test_a_step_is_a_residual_over_its_variance_and_the_doubt_that_noise_casts():
    doubt = DOUBT * 100  # in records: the noise has a scale of 100
    longest = 2 * STEP
    first = -900 * STEP // (300 + doubt)
    second = min(900 * STEP // (100 + doubt), longest)
    assert BY_SEX.term.scores.tolist() == [[0, first], [0, second], [0, 0]]
    assert BY_SEX.term.unknown.tolist() == [0, 0]


def test_steps_are_bounded_and_never_overflow():
    sums = np.zeros((4, 1, 3), dtype=np.int64)
    sums[:2] = [[[1 << 60, -(1 << 60), 5]], [[-(1 << 60), 1 << 60, 0]]]
    extreme = Refinement(SEX.axis(), 2, sums, Fraction(10**9))
    assert extreme.term.scores.tolist() == [[0, 2 * STEP], [0, -STEP], [0, 2 * STEP]]
    timid = Refinement(SEX.axis(), 2, sums, Fraction(1, 1 << 39))
    assert np.abs(timid.term.scores).max() <= 2 * STEP


def test_steps_of_many_classes_are_taken_for_each():
    sums = UNIT * np.array([[[50], [-50], [0]], [[100], [100], [100]], [[0], [0], [0]]])
    one = Refinement(JOB.axis(0), 3, sums, Fraction(1))
    assert one.term.scores.tolist() == [[STEP // 2 - 1, -STEP // 2, 0]]  # floors, like all of it


# --- folders ------------------------------------------------------------------------------------


@pytest.mark.parametrize("refinements", [(), (BY_SEX,), (BY_SEX, BY_SEX)], ids=len)
def test_it_comes_back_as_it_was_saved(refinements, tmp_path):
    tree = make(refinements=refinements)
    tree.save(tmp_path / "out")
    again = load(tmp_path / "out")
    assert again == tree
    people = rows(["clerk", "none", "pilot"], ["F", "M", "?"])
    assert again.predict(people) == tree.predict(people)
    assert again.predict_proba(people).tolist() == tree.predict_proba(people).tolist()
    assert again.classes.labels == tree.classes.labels
    assert again.rows(30, seed=2) == tree.rows(30, seed=2)


def test_what_is_predicted_rests_on_published_scores_not_on_a_fit(tmp_path, monkeypatch):
    """Another machine may round a fit otherwise; it does not fit anything."""
    tree = make(scores=np.array([5, -5, 7, -7]))
    tree.save(tmp_path / "out")
    monkeypatch.setattr("scipy.optimize.minimize", None)
    monkeypatch.setattr("dpublish.methods.privpfc.smoothing.minimize", None)
    assert load(tmp_path / "out").scores.tolist() == [5, -5, 7, -7]
    assert load(tmp_path / "out").predict(rows(["none"])).to_pylist() == ["low"]


def test_equal_means_equal_in_counts_scores_and_refinements():
    tree = make()
    assert tree == make(receipt=tree.receipt)
    for changes in (
        {"counts": COUNTS + 1},
        {"scores": tree.scores + 1},
        {"refinements": ()},
        {"refinements": (refine_by(SEX.axis(), [-900, 900, 1], [300, 100, 0]),)},
        {"records": NoisySize(111, Fraction(1, 20))},
    ):
        assert tree != make(receipt=tree.receipt, **changes)


def rewrite(folder, name, table):
    """Write another table into a folder, with the digest that belongs to it."""
    path = folder / "data" / f"{name}.parquet"
    parquet.write_table(table, path)
    head = json.loads((folder / "release.json").read_text())
    content = path.read_bytes()
    entry = {"sha256": hashlib.sha256(content).hexdigest(), "bytes": len(content)}
    head["files"][f"data/{name}.parquet"] = entry
    (folder / "release.json").write_text(json.dumps(head))


def column_set(table, name, values):
    return table.set_column(table.column_names.index(name), name, pa.array(values))


@pytest.mark.parametrize(
    ("table", "name", "values"),
    [
        ("counts", "class_score", [0, 0, 0, LIMIT + 1]),
        ("counts", "class_score", [0.0, 0.0, 0.0, 0.5]),
        ("counts", "class_score", [0, 0, 0, None]),
        ("counts", "noisy_count", [1.5, 2.0, 3.0, 4.0]),
        ("counts", "cell_number", [3, 2, 1, 0]),
        ("refinements", "refinement", [0, 0, 1]),
        ("refinements", "refinement", [0, 0, -1]),
        ("refinements", "noisy_residual", [0.5, 0.0, 0.0]),
        ("refinements", "noisy_variance", [1, 2, None]),
        ("refinements", "noisy_remainder", [1, 2, None]),
        ("refinements", "noisy_remainder_of_second", [0.5, 0.0, 0.0]),
    ],
)
def test_a_folder_with_other_numbers_is_refused(table, name, values, tmp_path):
    tree = make()
    tree.save(tmp_path / "out")
    rewrite(tmp_path / "out", table, column_set(tree.tables()[table], name, values))
    with pytest.raises(CorruptRelease):
        load(tmp_path / "out")


@pytest.mark.parametrize("table", ["counts", "refinements"])
def test_a_folder_that_lacks_rows_or_columns_is_refused(table, tmp_path):
    tree = make()
    for number, cut in enumerate((lambda t: t.slice(1), lambda t: t.select([0]))):
        folder = tmp_path / f"{number}"
        tree.save(folder)
        rewrite(folder, table, cut(tree.tables()[table]))
        with pytest.raises(CorruptRelease):
            load(folder)


@pytest.mark.parametrize(
    "change",
    [
        lambda metadata: metadata.update(axes=[]),
        lambda metadata: metadata.update(axes=metadata["axes"][::-1]),
        lambda metadata: metadata["axes"][0].update(starts=[0, 1]),
        lambda metadata: metadata["axes"][0].update(column="nonsense"),
        lambda metadata: metadata["axes"][1].update(starts=[0]),
        lambda metadata: metadata.update(threshold=3),
        lambda metadata: metadata.update(noise_rate="-1"),
        lambda metadata: metadata.pop("records"),
        lambda metadata: metadata["records"].update(count=1.5),
        lambda metadata: metadata["records"].update(rate="0"),
        lambda metadata: metadata.update(refinements=[]),
        lambda metadata: metadata.update(refinements=metadata["refinements"] * 2),
        lambda metadata: metadata["refinements"][0].update(column="risk", starts=[0, 1]),
        lambda metadata: metadata["refinements"][0].update(starts=[0, 1]),
        lambda metadata: metadata["refinements"][0].update(starts=[0, 2, 1]),
        lambda metadata: metadata["refinements"][0].update(rate="1/0"),
        lambda metadata: metadata["refinements"][0].pop("rate"),
    ],
)
def test_a_folder_with_other_facts_is_refused(change, tmp_path):
    make().save(tmp_path / "out")
    path = tmp_path / "out" / "release.json"
    head = json.loads(path.read_text())
    change(head["metadata"])
    path.write_text(json.dumps(head))
    with pytest.raises(CorruptRelease):
        load(tmp_path / "out")


@pytest.mark.parametrize(
    "changes",
    [
        {"scores": np.zeros(3, dtype=np.int64)},
        {"scores": np.zeros(4)},
        {"scores": np.full(4, LIMIT + 1)},
        {"threshold": 10},
        {"refinements": (refine_by(RISK.axis(), [1, 1], [1, 1]),)},
        {"refinements": (Refinement(SEX.axis(), 3, np.zeros((3, 3, 3), np.int64), RATE),)},
        {"axes": (RISK.axis(), JOBS)},
    ],
    ids=str,
)
def test_what_no_method_would_publish_is_refused(changes):
    with pytest.raises(InvalidParameter):
        make(**changes)


@pytest.mark.parametrize(
    ("sums", "rate"),
    [
        (np.zeros((4, 1, 2), np.int64), RATE),
        (np.zeros((4, 2, 3), np.int64), RATE),
        (np.zeros((2, 1, 3), np.int64), RATE),
        (np.zeros((4, 1, 3)), RATE),
        (np.zeros((4, 1, 3), np.int64), Fraction(0)),
        (np.zeros((4, 1, 3), np.int64), 0.5),
    ],
)
def test_refinements_of_the_wrong_shape_or_noise_are_refused(sums, rate):
    with pytest.raises(DPublishError):
        Refinement(SEX.axis(), 2, sums, rate)


def test_published_tables_name_every_cell_and_class():
    tables = make().tables()
    assert tables["counts"]["job"].to_pylist() == ["Paid", "Paid", "Unpaid", "Unpaid"]
    assert tables["counts"]["risk"].to_pylist() == ["low", "high"] * 2
    assert tables["refinements"].to_pydict() == {
        "refinement": [0, 0, 0],
        "column": ["sex"] * 3,
        "cell": ["F", "M", "X"],
        "class": ["high"] * 3,
        "noisy_residual": [-900 * UNIT, 900 * UNIT, 0],
        "noisy_variance": [300 * UNIT, 100 * UNIT, 0],
        "noisy_remainder": [0, 0, 0],
        "noisy_remainder_of_second": [0, 0, 0],
    }
    assert make(refinements=()).tables()["refinements"].num_rows == 0
    assert replace(make(), refinements=()).card.columns == ("job",)


# --- what refined rows carry --------------------------------------------------------------------


def refined_release():
    """A grid of `job` alone, refined by `town`, which goes together with `job` and the class."""
    draws = plain_generator(8)
    size = 40_000
    job = draws.integers(0, 2, size)
    town = np.where(draws.random(size) < 0.7, 2 * job, 2 * (1 - job)) + (draws.random(size) < 0.2)
    odds = 3.0 * job - 2.2 + np.array([0.0, 1.5, 0.0, -1.5])[town]
    risk = (draws.random(size) < 1 / (1 + np.exp(-odds))).astype(np.int64)
    schema = Schema(
        (
            column("job", "category", values=["a", "b"]),
            column("town", "category", values=["p", "q", "r", "s"]),
            column("risk", "category", values=["low", "high"]),
        )
    )
    true = pa.table(
        {
            "job": np.array(["a", "b"])[job],
            "town": np.array(["p", "q", "r", "s"])[town],
            "risk": np.array(["low", "high"])[risk],
        }
    )
    method = PrivPfC(target="risk", rounds=1, cells_per_record=Fraction(1, 5000))
    release = method.release(open_table(true, schema), budget=Budget.seeded(1), rng=seeded(3))
    return release, true.to_pandas()


def test_refined_columns_are_drawn_as_often_as_published_and_together_with_grid_and_class():
    release, true = refined_release()
    assert [axis.column for axis in release.predictors] == ["job"]
    assert [one.axis.column for one in release.refinements] == ["town"]
    drawn = release.rows(40_000, seed=1).to_pandas()
    for town in "pqrs":
        here, there = drawn[drawn.town == town], true[true.town == town]
        assert len(here) == pytest.approx(len(there), rel=0.15)
        assert (here.job == "b").mean() == pytest.approx((there.job == "b").mean(), abs=0.08)
        assert (here.risk == "high").mean() == pytest.approx(
            (there.risk == "high").mean(), abs=0.06
        )
    assert (drawn.risk == "high").mean() == pytest.approx((true.risk == "high").mean(), abs=0.02)


# --- values within cells ------------------------------------------------------------------------

JOB_COUNTS = ValueCounts(JOB.axis(), np.array([900, 100, 500]), Fraction(1, 10))


def test_values_within_a_cell_are_drawn_as_often_as_they_were_counted():
    drawn = make(values=(JOB_COUNTS,)).rows(20_000, seed=1).to_pandas().job.value_counts()
    assert drawn["clerk"] / (drawn["clerk"] + drawn["nurse"]) == pytest.approx(0.9, abs=0.02)
    even = make().rows(20_000, seed=1).to_pandas().job.value_counts()
    assert even["clerk"] / (even["clerk"] + even["nurse"]) == pytest.approx(0.5, abs=0.02)
    assert drawn["none"] == pytest.approx(even["none"], rel=0.05)


def test_no_value_is_left_out_whatever_noise_did_to_its_count():
    shares = ValueCounts(JOB.axis(), np.array([-500, 90, -1]), Fraction(1, 10)).shares(JOBS)
    assert shares.tolist() == [[0.1, 0.9, 0.0], [0.0, 0.0, 1.0]]


def test_counts_agree_with_rows_about_values_within_cells(monkeypatch):
    monkeypatch.setattr(sampled_count, "SAMPLE", 20_000)
    release = make(values=(JOB_COUNTS,))
    part, cell = release.count("job = clerk"), release.count("job in {clerk, nurse}")
    assert (part.low, cell.value) == (0, 80)  # any of the cell's records may be clerks
    assert part.high == cell.high
    assert part.value == pytest.approx(0.9 * 80, rel=0.05)
    found = release.count_boxes(("job",), np.array([[0], [0]]), np.array([[1], [2]]))
    assert found[0] == pytest.approx(part.value)
    whole = release.count_boxes(("job",), np.array([[0]]), np.array([[2]]))
    assert whole.tolist() == [80]


def test_counted_values_come_back_from_a_folder_and_others_are_refused(tmp_path):
    release = make(values=(JOB_COUNTS,))
    release.save(tmp_path / "out")
    assert load(tmp_path / "out") == release != make(receipt=release.receipt)
    assert release.tables()["values"].to_pydict() == {
        "column": ["job"] * 3,
        "value": ["clerk", "nurse", "none"],
        "noisy_count": [900, 100, 500],
        "count_low": [870, 70, 470],
        "count_high": [930, 130, 530],
    }
    for number, values in enumerate((["job", "job", "sex"], ["job", "job", None])):
        folder = tmp_path / f"{number}"
        release.save(folder)
        rewrite(folder, "values", column_set(release.tables()["values"], "column", values))
        with pytest.raises(CorruptRelease):
            load(folder)


@pytest.mark.parametrize(
    "values",
    [
        (JOB_COUNTS, JOB_COUNTS),
        (ValueCounts(SEX.axis(), np.array([1, 2, 3]), Fraction(1)),),
        (ValueCounts(RISK.axis(), np.array([1, 2]), Fraction(1)),),
    ],
    ids=["twice", "not in the grid", "the class"],
)
def test_values_of_other_columns_are_refused(values):
    with pytest.raises(InvalidParameter):
        make(values=values)


@pytest.mark.parametrize(
    ("axis", "counts", "rate"),
    [
        (JOBS, np.array([1, 2]), Fraction(1)),
        (JOB.axis(), np.array([1, 2]), Fraction(1)),
        (JOB.axis(), np.array([1.0, 2.0, 3.0]), Fraction(1)),
        (JOB.axis(), np.array([1, 2, 3]), Fraction(0)),
    ],
)
def test_value_counts_of_the_wrong_shape_or_noise_are_refused(axis, counts, rate):
    with pytest.raises(DPublishError):
        ValueCounts(axis, counts, rate)
