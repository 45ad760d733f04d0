"""The Python door: one call for a release, with rows, schema and ledger as they are at hand."""

from fractions import Fraction

import duckdb
import numpy as np
import polars as pl
import pytest

import dpublish
from dpublish import datasets
from dpublish.data.schema_file import to_dict
from dpublish.errors import BudgetExhausted, InvalidParameter, InvalidType

ROWS = datasets.census(400)
SCHEMA = datasets.schema("census")


@pytest.fixture
def paid(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with dpublish.Ledger.create("books.db") as ledger:
        ledger.add("people", cap=5.0)
    return {"schema": SCHEMA, "epsilon": 0.5, "ledger": "books.db", "dataset": "people"}


def sources(folder):
    from pyarrow import csv

    csv.write_csv(ROWS, folder / "people.csv")
    rows = ROWS  # noqa: F841 - DuckDB finds it by its name
    return {
        "pandas": ROWS.to_pandas(),
        "polars": pl.from_arrow(ROWS),
        "arrow": ROWS,
        "reader": ROWS.to_reader(),
        "duckdb": duckdb.sql("select * from rows"),
        "path": folder / "people.csv",
        "text": str(folder / "people.csv"),
        "table": dpublish.open_table(ROWS, SCHEMA),
    }


def test_rows_may_be_whatever_holds_them(paid, tmp_path):
    for name, data in sources(tmp_path).items():
        release = dpublish.release("histogram", data, columns=["age", "sex"], **paid)
        assert release.folder.is_dir(), name
        assert dpublish.load(release.folder) == release
        assert [axis.column for axis in release.axes] == ["age", "sex"]
    assert dpublish.Ledger("books.db").status("people").spent == 4


@pytest.mark.parametrize("columns", [["age", "sex"], ("age", "sex"), "age,sex", "age, sex"])
def test_columns_may_be_a_list_or_text(columns):
    assert dpublish.Histogram(columns=columns) == dpublish.Histogram(columns=("age", "sex"))


def test_a_method_may_be_a_name_a_class_or_a_method(paid):
    set_up = dpublish.Histogram(columns=["sex"])
    for method in ("histogram", dpublish.Histogram):
        assert dpublish.release(method, ROWS, columns="sex", **paid).receipt.method == "histogram"
    assert dpublish.release(set_up, ROWS, **paid).receipt.settings["columns"] == ["sex"]
    with pytest.raises(InvalidParameter, match="is set already, so columns cannot be set again"):
        dpublish.release(set_up, ROWS, columns="age", **paid)


def test_a_schema_may_be_a_path_or_a_dict(paid, tmp_path):
    from dpublish.data.schema_file import dumps_toml

    (tmp_path / "people.toml").write_text(dumps_toml(SCHEMA))
    for schema in ("people.toml", tmp_path / "people.toml", to_dict(SCHEMA)):
        dpublish.histogram(ROWS, "sex", **paid | {"schema": schema})


def test_each_task_has_a_function(paid):
    small = paid | {"epsilon": "0.3"}
    assert dpublish.histogram(ROWS, ["sex"], **small).kind == "histogram"
    assert dpublish.statistics(ROWS, ["count", "mean(age)"], "sex", **small).kind == "statistics"
    assert dpublish.topk(ROWS, "education", 3, **small).receipt.settings["count"] == 3
    assert len(dpublish.kmeans(ROWS, 2, ["age", "hours"], **small).centers) == 2
    assert dpublish.classifier(ROWS, "income", ["age", "sex"], **small).predict(ROWS)
    rows = dpublish.synthesize(ROWS, ["age", "sex"], method="privbayes", **small).rows(5)
    assert rows.column_names == ["age", "sex"]


def test_a_release_without_a_folder_gets_the_next_free_one(paid, tmp_path):
    first, second = (dpublish.histogram(ROWS, "sex", **paid) for _ in range(2))
    assert first.folder.as_posix() == "releases/people-histogram-1"
    assert second.folder.as_posix() == "releases/people-histogram-2"
    assert "in releases/people-histogram-2" in repr(second)
    named = dpublish.histogram(ROWS, "sex", output=tmp_path / "mine", **paid)
    assert named.folder == tmp_path / "mine"


def test_a_float_is_read_by_its_shortest_decimal_and_the_receipt_says_so(paid):
    given = [(0.1, True), (np.float32(0.1), True), ("0.1", False), (Fraction(1, 10), False)]
    for epsilon, is_told in given:
        release = dpublish.histogram(ROWS, "sex", **paid | {"epsilon": epsilon})
        receipt = dpublish.load(release.folder).receipt
        assert receipt.epsilon == Fraction(1, 10)
        assert ("read by its shortest decimal" in receipt.epsilon_read) is is_told
        assert ("epsilon_read" in receipt.to_dict()) is is_told
        page = (release.folder / "report.html").read_text()
        assert ("shortest decimal" in page) is is_told
    assert dpublish.Ledger("books.db").status("people").spent == Fraction(2, 5)


def test_ten_tenths_fill_a_cap_of_one(paid):
    with dpublish.Ledger("books.db") as ledger:
        ledger.add("town", cap=1.0)
    for _ in range(10):
        dpublish.histogram(ROWS, "sex", **paid | {"epsilon": 0.1, "dataset": "town"})
    with pytest.raises(BudgetExhausted):
        dpublish.histogram(ROWS, "sex", **paid | {"epsilon": 0.1, "dataset": "town"})


def test_units_and_filters_go_through(paid):
    visits, schema = datasets.hospital(200), datasets.schema("hospital")
    release = dpublish.histogram(
        visits, "ward", contribution=2, where="sex = Female", **paid | {"schema": schema}
    )
    assert release.receipt.contribution == 2
    assert "shortest decimal" in release.receipt.epsilon_read
    assert any("sex" in step for step in release.receipt.steps)


@pytest.mark.parametrize(
    ("change", "error", "told"),
    [
        ({"method": "dsat"}, InvalidParameter, r"StreamOperator\.start\(.*dpublish\.DSAT"),
        ({"method": dpublish.DSAT}, InvalidParameter, "publishes a stream"),
        ({"method": 5}, InvalidType, "method must be a name"),
        ({"epsilon": 6}, BudgetExhausted, "5 left of its cap"),
        ({"progress": 3}, InvalidType, "progress must be True, False, or a function"),
    ],
)
def test_what_is_refused_costs_nothing(paid, tmp_path, change, error, told):
    asked = {"method": "histogram", "columns": "sex", **paid, **change}
    with pytest.raises(error, match=told):
        dpublish.release(asked.pop("method"), ROWS, **asked)
    assert dpublish.Ledger("books.db").status("people").spent == 0
    assert not (tmp_path / "releases").exists()


def test_steps_of_a_table_that_is_open_belong_to_open_table(paid):
    table = dpublish.open_table(ROWS, SCHEMA)
    with pytest.raises(InvalidParameter, match="give where to open_table instead"):
        dpublish.histogram(table, "sex", where="age > 30", **paid)
    other = datasets.schema("hospital")
    with pytest.raises(InvalidParameter, match="opened with another schema"):
        dpublish.histogram(table, "sex", **paid | {"schema": other})
    assert dpublish.histogram(table, "sex", **paid | {"schema": None}).folder.is_dir()


def test_progress_may_be_a_function(paid):
    seen = []
    dpublish.statistics(ROWS, "count", progress=lambda *step: seen.append(step), **paid)
    assert seen


def test_plans_take_names_and_paths():
    wide = dpublish.plan("histogram", to_dict(SCHEMA), columns=["age"], epsilon=0.5)
    assert wide == dpublish.plan(dpublish.Histogram(columns=("age",)), SCHEMA, epsilon="0.5")
    with pytest.raises(InvalidType, match="wanted_error must be a positive number"):
        dpublish.plan("histogram", SCHEMA, columns="age", wanted_error="small")


@pytest.mark.parametrize("column", [ROWS.to_pandas()["sex"], pl.from_arrow(ROWS)["sex"], ROWS])
def test_no_message_repeats_values_that_are_passed_by_mistake(paid, column):
    calls = (
        lambda: dpublish.histogram(ROWS, column, **paid),
        lambda: dpublish.kmeans(ROWS, column, **paid),
        lambda: dpublish.topk(ROWS, "sex", column, **paid),
    )
    for call in calls:
        with pytest.raises(InvalidType) as refused:
            call()
        assert "ale" not in str(refused.value)
