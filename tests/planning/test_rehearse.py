"""Rehearsals: what stands in, what is measured, where more epsilon stops paying."""

import json
import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

import dpublish
from dpublish import datasets
from dpublish.core.catalog import CATALOG
from dpublish.core.registry import make_method
from dpublish.data.schema import Schema, column
from dpublish.data.sources import open_table
from dpublish.errors import InvalidParameter, InvalidType, UnreadableData
from dpublish.evaluation.metrics.tables import total_variation
from dpublish.planning.goals import Goal
from dpublish.planning.measures import (
    AUC,
    BY_TASK,
    NOT_REHEARSED,
    WRONG,
    CountMeasurer,
    PairMeasurer,
    coarse_cells,
    measurer_class,
)
from dpublish.planning.rehearsal import Point, Rehearsal, Repeats, Wanted
from dpublish.planning.rehearse import Stage, describe, lost_by, rehearse
from dpublish.planning.stand_in import (
    STAMP,
    STAMP_OF_SEEDED,
    STAMP_OF_TABLE,
    read_stand_in,
    simulate,
)
from dpublish.privacy.budget import Budget
from dpublish.randomness import seeded
from method_examples import CASES, SCHEMA, arrow_table

CENSUS = datasets.schema("census")
MODULE = "dpublish.planning.rehearse.lost_by"
COLUMNS = ("age", "education", "sex", "income")


@pytest.fixture(scope="module")
def people():
    return datasets.census(3_000).select(list(COLUMNS))


@pytest.fixture(scope="module")
def schema():
    return Schema(tuple(CENSUS[name] for name in COLUMNS))


@pytest.fixture(scope="module")
def earlier(people, schema):
    """Publish the rows once."""
    table = open_table(people, schema)
    return make_method("synth", {}).release(table, budget=Budget.seeded(4), rng=seeded(1))


def curve(values, *, measure=WRONG, width=0.0, repeats=4, wanted=None, first="0.1"):
    """Make up a rehearsal with the given medians at epsilons that double."""
    points = [
        Point(
            Fraction(first) * 2**number,
            {measure.name: Repeats(value, value - width, value + width)},
        )
        for number, value in enumerate(values)
    ]
    return Rehearsal(
        method="privpfc target=income",
        stand_in="rows",
        n_records=100,
        repeats=repeats,
        measures=(measure,),
        points=tuple(points),
        wanted=None if wanted is None else Wanted.parse(wanted, (measure,)),
    )


# --- What stands in -----------------------------------------------------------------------------


def test_rows_of_an_earlier_release_are_as_many_as_it_counted(earlier, schema):
    found = read_stand_in(earlier, schema, COLUMNS)
    assert found.rows.num_rows == earlier.rows(seed=0).num_rows
    assert found.held_out.num_rows == found.rows.num_rows // 4
    assert found.origin == "release"
    assert found.stamp == STAMP_OF_SEEDED
    kept = replace(earlier, receipt=replace(earlier.receipt, stamps=()))
    assert read_stand_in(kept, schema, COLUMNS).stamp == STAMP
    assert read_stand_in(earlier, schema, COLUMNS, n_records=500).rows.num_rows == 500


def test_a_folder_stands_in_like_the_release_itself(earlier, schema, tmp_path):
    earlier.save(tmp_path / "earlier")
    kept, folder = (read_stand_in(one, schema, COLUMNS) for one in (earlier, tmp_path / "earlier"))
    assert kept.rows.equals(folder.rows)
    assert kept.held_out.equals(folder.held_out)


def test_a_public_table_is_cut_into_rows_and_rows_held_out(people, schema):
    found = read_stand_in(people, schema, COLUMNS)
    assert (found.rows.num_rows, found.held_out.num_rows) == (2_400, 600)
    both = pa.concat_tables([found.rows, found.held_out]).sort_by(
        [(n, "ascending") for n in COLUMNS]
    )
    assert both.equals(people.sort_by([(name, "ascending") for name in COLUMNS]).combine_chunks())
    assert found.stamp == STAMP_OF_TABLE


def test_more_rows_than_there_are_are_drawn_with_replacement(people, schema):
    found = read_stand_in(people.slice(0, 100), schema, COLUMNS, n_records=1_000)
    assert found.rows.num_rows == 1_000
    assert any("with replacement" in note for note in found.notes)


@pytest.mark.parametrize("ending", [".parquet", ".csv"])
def test_a_file_stands_in_like_its_table(people, schema, tmp_path, ending):
    path = tmp_path / f"people{ending}"
    if ending == ".csv":
        pa.csv.write_csv(people, path)
    else:
        pq.write_table(people, path)
    found = read_stand_in(path, schema, COLUMNS)
    assert found.rows.num_rows == 2_400
    assert found.origin == "table"


def test_stated_shares_are_drawn_and_the_rest_is_even(schema):
    found = simulate(
        schema, COLUMNS, {"sex": {"Female": 0.8}, "income": [0.9, 0.1]}, n_records=20_000
    )
    shares = found.rows["sex"].value_counts().to_pylist()
    women = next(one["counts"] for one in shares if one["values"] == "Female")
    assert women / 20_000 == pytest.approx(0.8, abs=0.015)
    ages = np.asarray(found.rows["age"], dtype=float)
    low, high = schema["age"].bounds
    assert ages.mean() == pytest.approx((low + high) / 2, rel=0.05)
    assert "dependence between columns is missing" in found.notes[0]


@pytest.mark.parametrize("ending", [".toml", ".json"])
def test_shares_may_come_from_a_file(schema, tmp_path, ending):
    path = tmp_path / f"shares{ending}"
    stated = {"sex": {"Female": 1.0}}
    path.write_text(json.dumps(stated) if ending == ".json" else "[sex]\nFemale = 1.0\n")
    assert set(read_stand_in(path, schema, ["sex"]).rows["sex"].to_pylist()) == {"Female"}


def test_columns_that_rules_fill_in_follow_from_those_drawn():
    made = Schema(
        (
            column("age", "integer", bounds=[0, 99]),
            column("adult", "category", values=["yes", "no"]),
        ),
        functions=(dpublish.Formula("adult", "if(age >= 18, 'yes', 'no')"),),
    )
    rows = simulate(made, ["adult"], {}, n_records=500).rows.to_pylist()
    assert all((row["age"] >= 18) == (row["adult"] == "yes") for row in rows)
    assert len({row["adult"] for row in rows}) == 2


@pytest.mark.parametrize(
    ("source", "told"),
    [
        ("nowhere", "is not there"),
        (7, "not int"),
        ({"sx": {}}, "did you mean 'sex'"),
        ({"sex": {"F": 1}}, "Female"),
        ({"sex": [1.0]}, "2 values"),
        ({"sex": {"Female": -1}}, "from 0 on"),
        ({"sex": {"Female": 0, "Male": 0}}, "add up to 0"),
        ({"sex": "Female"}, "a list or a table"),
        (pa.table({"sex": ["Female"] * 9}), "has no column 'age'"),
    ],
)
def test_what_cannot_stand_in_is_refused(schema, source, told):
    with pytest.raises((InvalidParameter, UnreadableData), match=told):
        read_stand_in(source, schema, COLUMNS)


def test_values_that_the_schema_does_not_list_are_told(schema, people):
    other = people.set_column(2, "sex", pa.array(["f"] * people.num_rows))
    with pytest.raises(InvalidParameter, match="no value in the column 'sex'"):
        read_stand_in(other, schema, COLUMNS)


def test_a_release_without_rows_cannot_stand_in(people, schema):
    release = make_method("majority", {"target": "income"}).release(
        open_table(people, schema), budget=Budget.seeded(1), rng=seeded(1)
    )
    with pytest.raises(InvalidParameter, match="gives no rows"):
        read_stand_in(release, schema, ["income"])


# --- What is measured ---------------------------------------------------------------------------


@pytest.mark.parametrize(("name", "settings"), CASES, ids=lambda value: str(value)[:40])
def test_every_method_is_measured_or_refused_with_advice(name, settings):
    """On the small table, so that every kind of release meets its measures."""
    method = make_method(name, settings)
    rows = pa.concat_tables([arrow_table()] * 40).drop(["note"])
    if method.task in NOT_REHEARSED:
        with pytest.raises(InvalidParameter, match="is not rehearsed"):
            rehearse(method, SCHEMA, stand_in=rows)
        return
    found = rehearse(method, SCHEMA, stand_in=rows, epsilons=[10], repeats=1)
    (point,) = found.points
    assert found.measures[0].name in point.figures
    assert all(math.isfinite(values.median) for values in point.figures.values())


def test_every_task_of_the_index_is_known():
    assert {entry.task for entry in CATALOG.values()} <= BY_TASK.keys() | NOT_REHEARSED.keys()


def test_streams_are_refused_with_what_to_do(schema, people):
    with pytest.raises(InvalidParameter, match="plan"):
        rehearse("dsat columns=age horizon=10", schema, stand_in=people)


def test_a_classifier_is_measured_by_what_it_gets_wrong(schema, people):
    found = rehearse("privpfc target=income", schema, stand_in=people, epsilons=[5], repeats=1)
    standing = read_stand_in(people, schema, COLUMNS)
    release = make_method("privpfc", {"target": "income"}).release(
        open_table(standing.rows, schema), budget=Budget.seeded(5), rng=seeded(0)
    )
    predicted = release.predict(standing.held_out).to_pylist()
    wrong = np.mean(
        [a != b for a, b in zip(predicted, standing.held_out["income"].to_pylist(), strict=True)]
    )
    assert found.points[0].figures["wrong"].median == pytest.approx(wrong)
    assert found.points[0].figures["auc"].median > 0.6


def test_auc_of_a_support_vector_machine_comes_from_its_scores(schema, people):
    words = "model target=income model=svm"
    found = rehearse(words, schema, stand_in=people, epsilons=[5], repeats=1)
    assert 0.6 < found.points[0].figures["auc"].median <= 1


def test_without_noise_measures_are_perfect(schema, people):
    top = rehearse("topk column=education count=3", schema, stand_in=people, epsilons=[1_000])
    assert top.points[0].figures["precision"].median == 1
    counts = rehearse("histogram columns=sex,income", schema, stand_in=people, epsilons=[1_000])
    assert counts.points[0].figures["relative"].median == 0
    words = "statistics measures=count,mean(age) by=sex"
    numbers = rehearse(words, schema, stand_in=people, epsilons=[1_000_000])
    assert numbers.points[0].figures["relative"].median == pytest.approx(0, abs=1e-9)
    grid = rehearse("kmeans n_clusters=3 columns=age", schema, stand_in=people, epsilons=[20])
    assert grid.points[0].figures["distance"].median == pytest.approx(1, abs=0.1)


def test_pairs_are_compared_on_few_cells(schema, people):
    cells, size = coarse_cells(people, schema, "age")
    assert size <= 21
    assert cells.max() < size
    method = make_method("synth", {})
    release = method.release(open_table(people, schema), budget=Budget.seeded(2), rng=seeded(3))
    found = PairMeasurer(method, schema, people, people).measure(release, 3)
    drawn = release.rows(people.num_rows, seed=3)
    apart = []
    for first, second in [(a, b) for i, a in enumerate(COLUMNS) for b in COLUMNS[i + 1 :]]:
        tables = []
        for rows in (people, drawn):
            (one, _), (other, width) = (coarse_cells(rows, schema, n) for n in (first, second))
            tables.append(np.bincount(one * width + other, minlength=10_000))
        apart.append(total_variation(*tables))
    assert found["tv"] == pytest.approx(np.mean(apart))


def test_a_goal_says_how_rows_are_measured(schema):
    method = make_method("synth", {})
    assert measurer_class(method, schema) is PairMeasurer
    goal = Goal.parse("counts")
    assert measurer_class(method, schema, goal) is CountMeasurer


def test_what_an_earlier_release_missed_is_added_to_distances(people, schema, earlier, monkeypatch):
    standing = read_stand_in(earlier, schema, COLUMNS)
    lost = lost_by(standing, 0)
    stated = earlier.mean_distance().value
    assert 0 <= lost <= stated
    monkeypatch.setattr(MODULE, lambda standing, seed: 0.3)
    with_loss = rehearse("synth", schema, stand_in=earlier, epsilons=[1], repeats=1)
    monkeypatch.setattr(MODULE, lambda standing, seed: 0.0)
    without = rehearse("synth", schema, stand_in=earlier, epsilons=[1], repeats=1)
    pair = [one.points[0].figures["tv"].median for one in (without, with_loss)]
    assert pair[1] == pytest.approx(math.hypot(pair[0], 0.3))
    assert any("quadrature" in note for note in with_loss.notes)
    assert not any("quadrature" in note for note in without.notes)


# --- Running ------------------------------------------------------------------------------------


def test_a_seed_decides_everything(earlier, schema):
    def run(seed):
        found = rehearse("privpfc target=income", schema, stand_in=earlier, epsilons=[1], seed=seed)
        return found.to_dict()

    assert run(1) == run(1)
    assert run(1) != run(2)


def test_more_epsilon_gives_less_error(earlier, schema):
    found = rehearse(
        "histogram columns=age", schema, stand_in=earlier, epsilons="0.01,1", repeats=3
    )
    low, high = (point.figures["relative"].median for point in found.points)
    assert high < low / 5


def test_a_goal_takes_the_method_that_is_advised(earlier, schema):
    advised = dpublish.advise(schema, "classify:income").choices[0]
    found = rehearse("classify:income", schema, stand_in=earlier, epsilons=[1], repeats=1)
    assert found.method == describe(advised.method)


def test_settings_go_with_a_name(earlier, schema):
    given = {"stand_in": earlier, "epsilons": [1], "repeats": 1}
    one = rehearse("kmeans", schema, n_clusters=3, columns=("age",), **given)
    other = rehearse("kmeans n_clusters=3 columns=age", schema, **given)
    assert one.to_dict() == other.to_dict()


def test_units_are_rehearsed_on_rows_without_them(people, schema):
    """A release that keeps m rows of a unit spends epsilon / m on each."""
    unit = Schema((*schema.columns,), unit="person")
    bounded = make_method("histogram", {"columns": "sex", "contribution": 4})
    kind = measurer_class(bounded, unit)
    standing = read_stand_in(people, unit, ["sex"])
    stage = Stage.of(bounded, unit, standing, kind, repeats=3, seed=0, progress=None)
    assert stage.rows_of_unit == 4
    assert stage.runs.contribution is None
    plain = rehearse("histogram columns=sex", schema, stand_in=people, epsilons=[1], repeats=3)
    found = stage.rehearse([Fraction(4)], None)
    assert found.points[0].figures == plain.points[0].figures


def test_units_that_only_people_can_show_are_refused(people, schema):
    unit = Schema(schema.columns, unit="person")
    with pytest.raises(InvalidParameter, match="no such column"):
        rehearse("histogram columns=sex contribution=auto", unit, stand_in=people)
    with pytest.raises(InvalidParameter, match="contribution"):
        rehearse("histogram columns=sex", unit, stand_in=people)


def test_progress_is_told_to_the_end(earlier, schema):
    seen = []
    rehearse(
        "histogram columns=age",
        schema,
        stand_in=earlier,
        epsilons=[1, 2],
        repeats=2,
        progress=lambda *what: seen.append(what),
    )
    assert [done for done, _, _ in seen] == [1, 2, 3, 4]
    assert {total for _, total, _ in seen} == {4}


def test_figures_are_frames_of_pandas_and_polars():
    found = curve([0.3, 0.2], width=0.1)
    frame = found.to_pandas()
    assert frame["median"].tolist() == [0.3, 0.2]
    assert found.to_polars().to_dicts() == frame.to_dict("records")


@pytest.mark.parametrize(
    ("given", "changes", "told", "kind"),
    [
        ("privpf target=income", {}, "did you mean 'privpfc'", InvalidParameter),
        ("", {}, "names no method", InvalidParameter),
        ('privpfc "', {}, "names no method", InvalidParameter),
        ("stream", {}, "not rehearsed", InvalidParameter),
        (7, {}, "not int", InvalidType),
        ("privpfc", {}, "--target", InvalidParameter),
        ("privpfc income", {}, "name=value", InvalidParameter),
        ("privpfc target=incom", {}, "income", InvalidParameter),
        ("privpfc target=income", {"epsilons": []}, "at least one", InvalidParameter),
        ("privpfc target=income", {"epsilons": "0"}, "epsilon", InvalidParameter),
        ("privpfc target=income", {"repeats": 0}, "repeats", InvalidParameter),
        ("privpfc target=income", {"n_records": 0}, "n_records", InvalidParameter),
        ("privpfc target=income", {"wanted": "wrong"}, "wrong <= 0.2", InvalidParameter),
        ("privpfc target=income", {"wanted": "rong <= 1"}, "did you mean", InvalidParameter),
        ("privpfc target=income", {"wanted": "auc <= 0.9"}, "auc >= 0.9", InvalidParameter),
        ("privpfc target=income", {"wanted": 0.1}, "not float", InvalidType),
        ("privpfc target=income", {"schema": 3}, "type int", InvalidType),
        ("privpfc target=income", {"seed": -1}, "seed", InvalidParameter),
    ],
)
def test_wrong_requests_are_told_what_to_write(people, schema, given, changes, told, kind):
    options = {"schema": schema, "stand_in": people, **changes}
    with pytest.raises(kind, match=told):
        rehearse(given, options.pop("schema"), **options)


# --- What follows -------------------------------------------------------------------------------


def test_it_stops_paying_where_a_tenth_is_left():
    assert curve([0.4, 0.3, 0.21, 0.2]).knee == Fraction("0.4")
    assert curve([0.4, 0.3, 0.23, 0.2]).knee == Fraction("0.8")
    assert "still improves" in curve([0.4, 0.3, 0.23, 0.2]).answer()[0]
    assert "stops paying at epsilon 0.4" in curve([0.4, 0.3, 0.21, 0.2]).answer()[0]


def test_it_stops_paying_within_the_noise_of_repeats():
    assert curve([0.24, 0.22, 0.2], width=0.04, repeats=4).knee == Fraction("0.2")
    assert curve([0.24, 0.22, 0.2], width=0.04, repeats=400).knee == Fraction("0.4")
    assert curve([0.2, 0.2]).knee == Fraction("0.1")


def test_curves_are_made_monotone():
    assert curve([0.4, 0.2, 0.3]).fitted.tolist() == pytest.approx([0.4, 0.25, 0.25])
    assert curve([0.6, 0.9, 0.8], measure=AUC).fitted.tolist() == pytest.approx([0.6, 0.85, 0.85])


def test_the_wanted_epsilon_is_interpolated_on_a_logarithmic_scale():
    found = curve([0.4, 0.2], wanted="wrong <= 0.3")
    assert found.epsilon == Fraction("0.15")  # 0.1 * 2 ** 0.5, rounded up
    assert "epsilon 0.15, interpolated" in found.answer()[1]
    rising = curve([0.5, 0.7, 0.9], measure=AUC, wanted="auc >= 0.7")
    assert rising.epsilon == Fraction("0.2")


def test_what_no_epsilon_suffices_for_is_told():
    found = curve([0.4, 0.2], wanted="wrong <= 0.1")
    assert found.epsilon is None
    assert "no epsilon up to 0.2 suffices" in found.answer()[1]
    assert found.to_dict()["epsilon"] is None
    first = curve([0.4, 0.2], wanted="wrong <= 0.5")
    assert first.epsilon == Fraction("0.1")
    assert "the smallest one tried" in first.answer()[1]
    with pytest.raises(InvalidParameter, match="nothing was wanted"):
        _ = curve([0.4]).epsilon


def test_the_wanted_epsilon_is_tried(earlier, schema):
    found = rehearse(
        "histogram columns=age",
        schema,
        stand_in=earlier,
        epsilons="0.01,10",
        repeats=3,
        wanted="relative <= 0.05",
    )
    tried = [point.epsilon for point in found.points]
    assert len(tried) > 2
    assert tried == sorted(tried)
    at = next(i for i, value in enumerate(found.fitted) if value <= 0.05)
    assert found.points[at - 1].epsilon <= found.epsilon <= found.points[at].epsilon


def test_a_rehearsal_is_shown_as_text_table_and_picture(earlier, schema, tmp_path):
    found = rehearse("privpfc target=income", schema, stand_in=earlier, epsilons="1,2", repeats=2)
    assert STAMP_OF_SEEDED in str(found)
    assert "wrong" in str(found)
    assert "Rehearsal(privpfc target=income" in repr(found)
    assert STAMP_OF_SEEDED in found._repr_html_()
    frame = found.to_pandas()
    assert list(frame.columns) == ["epsilon", "measure", "median", "low", "high"]
    assert len(frame) == 4
    pytest.importorskip("matplotlib")
    for name, start in (("a.svg", b"<svg"), ("a.png", b"\x89PNG")):
        found.plot(tmp_path / name)
        assert (tmp_path / name).read_bytes().startswith(start)
    assert STAMP_OF_SEEDED in (tmp_path / "a.svg").read_text()
    assert found.plot() is not None
    for wrong, told in (("a.txt", "ending in"), ("a.svg", "exists already")):
        with pytest.raises(InvalidParameter, match=told):
            found.plot(tmp_path / wrong)


def test_names_are_escaped_in_pages():
    made = curve([0.4, 0.2])
    odd = Rehearsal(
        method="<script>",
        stand_in="rows",
        n_records=1,
        repeats=1,
        measures=made.measures,
        points=made.points,
    )
    assert "<script>" not in odd._repr_html_()


def test_a_classifier_without_scores_has_no_area_under_the_curve(people, schema, monkeypatch):
    monkeypatch.setattr("dpublish.planning.measures.release_scores", lambda *_: None)
    with pytest.raises(InvalidParameter, match="gives no scores"):
        rehearse("diffpid3 target=income", schema, stand_in=people, wanted="auc >= 0.9", repeats=2)


def test_a_classifier_is_set_beside_the_most_frequent_class(people, schema):
    found = rehearse("majority target=income", schema, stand_in=people, epsilons=[10], repeats=1)
    (note,) = [note for note in found.notes if "most frequent class" in note]
    assert f"wrong for {found.points[0].figures['wrong'].median:.3f}" in note
