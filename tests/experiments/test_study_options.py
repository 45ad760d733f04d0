"""What every study takes: values of its axis, settings by name, a table of one's own."""

from typing import ClassVar

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner

from dpublish.cli.main import command
from dpublish.errors import InvalidParameter, UnreadableData
from dpublish.experiments.own_table import OwnTable
from dpublish.experiments.study import Figure, Study
from dpublish.experiments.trials import Trial

SCHEMA = """
[columns.age]
kind = "integer"
bounds = [0, 120]

[columns.sex]
kind = "category"
values = ["f", "m"]
"""
ROWS = pa.table({"age": [3, 40, 77], "sex": ["f", "m", "f"], "unused": [1, 2, 3]})


class _Rows:
    def __init__(self, rows):
        self.rows = rows

    def missing_file(self, folder):
        return None


class CountingStudy(Study):
    """Counts rows, which takes no noise: enough to see what enters a trial."""

    name = "counting"
    knobs: ClassVar = {"window": "how many steps"}
    figures: ClassVar = {
        "size": Figure("t", "size", "r", ("count",), key="size", values=(1, 2)),
        "epsilon": Figure("t", "epsilon", "r", ("count",), epsilons=("1",)),
        "share": Figure("t", "share", "r", ("count",), key="share", values=("1/2",)),
        "fixed": Figure("t", "size", "r", ("count",), fixed={"window": 40}),
    }
    datasets: ClassVar = {"usual": _Rows(ROWS)}

    def own_dataset(self, table):
        return _Rows(table.rows.select([table.require_target()]))

    def trials(self, asked, **_):
        for dataset in asked.figure.datasets:
            for moved in asked.axis():
                yield Trial(self.name, "count", "1", 0, asked.setting(dataset, **moved))

    def runner(self, folder):
        return lambda trial: {"rows": float(self.datasets[trial.dataset].rows.num_columns)}

    def explanation(self, figure):
        return []

    def method_points(self, used):
        return []

    def how_it_was_run(self, results):
        return []

    def about(self, dataset, results):
        return ""


STUDY = CountingStudy()


@pytest.fixture
def files(tmp_path):
    pq.write_table(ROWS, tmp_path / "people.parquet")
    (tmp_path / "people.toml").write_text(SCHEMA)
    return {"data": tmp_path / "people.parquet", "schema": tmp_path / "people.toml"}


def settings_of(plan, name):
    return [trial.setting.get(name) for trial in plan.trials]


def test_values_of_the_axis_can_be_chosen():
    assert settings_of(STUDY.plan(1, figure="size"), "size") == [1, 2]
    assert settings_of(STUDY.plan(1, figure="size", values=("7", 9)), "size") == [7, 9]
    assert settings_of(STUDY.plan(1, figure="share", values=("1/3", "1")), "share") == ["1/3", "1"]


@pytest.mark.parametrize(
    ("figure", "values", "words"),
    [("epsilon", ("1",), "--epsilons"), ("size", (), "at least one"), ("size", ("x",), "integer")],
)
def test_values_that_no_axis_has_are_refused(figure, values, words):
    with pytest.raises(InvalidParameter, match=words):
        STUDY.plan(1, figure=figure, values=values)


def test_settings_enter_every_trial_and_its_seed():
    plain, given = STUDY.plan(1), STUDY.plan(1, settings={"window": "800"})
    assert settings_of(given, "window") == [800, 800]
    assert settings_of(plain, "window") == [None, None]
    assert {t.key for t in plain.trials}.isdisjoint(t.key for t in given.trials)
    assert settings_of(STUDY.plan(1, figure="fixed"), "window") == [40]
    assert settings_of(STUDY.plan(1, figure="fixed", settings={"window": 7}), "window") == [7]
    with pytest.raises(InvalidParameter, match="it has window: how many steps"):
        STUDY.plan(1, settings={"widnow": 1})


def test_a_table_of_ones_own_is_the_only_dataset(files, tmp_path):
    plan = STUDY.plan(1, target="sex", **files)
    assert {trial.dataset for trial in plan.trials} == {"people"}
    assert plan.run(tmp_path / "r.jsonl")[0].measured == {"rows": 1.0}
    assert set(STUDY.datasets) == {"usual"}
    assert set(plan.study.datasets) == {"people"}


def test_results_of_another_table_are_not_taken_for_it(files):
    before = STUDY.plan(1, target="sex", **files).trials
    pq.write_table(ROWS.slice(1), files["data"])
    after = STUDY.plan(1, target="sex", **files).trials
    assert {t.key for t in before}.isdisjoint(t.key for t in after)


def test_numbers_of_a_csv_are_read_and_text_among_them_is_refused(files, tmp_path):
    path = tmp_path / "people.csv"
    pa.csv.write_csv(ROWS, path)
    read = OwnTable.read(path, files["schema"])
    assert read.rows["age"].to_pylist() == [3, 40, 77]
    assert read.rows.column_names == ["age", "sex"]
    path.write_text("age,sex\n,f\n")
    assert OwnTable.read(path, files["schema"]).rows["age"].to_pylist() == [None]
    path.write_text("age,sex\nold,f\n")
    with pytest.raises(UnreadableData, match="'age' has text"):
        OwnTable.read(path, files["schema"])


def test_half_a_table_of_ones_own_is_refused(files):
    for given in ({"data": files["data"]}, {"schema": files["schema"]}, {"target": "sex"}):
        with pytest.raises(InvalidParameter, match="--data FILE and --schema FILE"):
            STUDY.plan(1, **given)
    with pytest.raises(InvalidParameter, match="either datasets or a table"):
        STUDY.plan(1, datasets=("usual",), target="sex", **files)
    with pytest.raises(InvalidParameter, match="no column 'weight'"):
        STUDY.plan(1, target="weight", **files)
    with pytest.raises(InvalidParameter, match="--target COLUMN"):
        STUDY.plan(1, **files)
    pq.write_table(ROWS.slice(0, 0), files["data"])
    with pytest.raises(UnreadableData, match="no rows"):
        STUDY.plan(1, target="sex", **files)


def test_the_command_says_how_a_setting_is_written(tmp_path):
    words = ["experiment", "kmeans", "--set", "window", "-o", str(tmp_path)]
    ran = CliRunner().invoke(command, words)
    assert isinstance(ran.exception, InvalidParameter)
    assert "NAME=VALUE" in str(ran.exception)
