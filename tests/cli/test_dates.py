"""A table with dates, from the command line: every method, rows, counts, pages and refusals."""

import json
import re
from datetime import date, datetime, timedelta

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow import csv

from dpublish.core.folder.data_package import describe_package
from dpublish.core.folder.folder import load
from dpublish.core.folder.opening import _claim
from dpublish.ledger.ledger import Ledger
from dpublish.randomness import plain_generator

SCHEMA = """
[[columns]]
name = "admitted"
kind = "date"
bounds = [2023-01-01, 2024-12-31]
bins = "month"
missing = "drop"

[[columns]]
name = "seen"
kind = "datetime"
bounds = ["2023-01-01", "2024-12-31"]
bins = "quarter"
time_zone = "Europe/Paris"

[[columns]]
name = "born"
kind = "date"
bounds = ["1940", "2009"]
bins = 14
format = "%d.%m.%Y"

[[columns]]
name = "weekday"
from = "admitted"
part = "weekday"

[[columns]]
name = "cost"
kind = "numeric"
bounds = [0, 1000]

[[columns]]
name = "ward"
kind = "category"
values = ["A", "B"]
"""
CLUSTERS = {"columns": "admitted,cost", "n-clusters": "2"}
METHODS = {
    "histogram": {"columns": "admitted@2,weekday"},
    "marginals": {},
    "privpfc": {"target": "ward", "pool": "200"},
    "diffgen": {"target": "ward"},
    "pph": {"target": "ward"},
    "privbayes": {},
    "dpcopula": {"columns": "admitted,seen,born,cost"},
    "dpcopula-hybrid": {},
    "psd": {"columns": "admitted,seen"},
    "ug": {"columns": "admitted,seen"},
    "ag": {"columns": "admitted,seen"},
    "privelet": {"columns": "admitted,born"},
    "p-hp": {"columns": "admitted,born"},
    "filter-priority": {"columns": "admitted,ward"},
    "diffpid3": {"target": "ward"},
    "model": {"target": "ward"},
    "functional": {"target": "cost", "predictors": "admitted,weekday", "model": "linear"},
    "kmeans": CLUSTERS,
    "dplloyd": CLUSTERS,
    "eugkm": CLUSTERS,
    "privthr": {"columns": "admitted,seen"},
    "wave-baseline": {"columns": "admitted,cost"},
    "topk": {"column": "admitted", "count": "3"},
}
WITHOUT_COUNTS = {"model", "functional", "dplloyd", "topk"}
WITHOUT_ROWS = {*WITHOUT_COUNTS, "diffpid3"}
CHOOSING = {"privpfc", "pph"}  # whether the dates are among the columns is chosen at random
RAW = re.compile(r">[^<]*\b(19[34]\d{3}|19,[34]\d{2}|1[67]\d{8}|1,[67]\d\d,\d{3},\d{3})\b")


@pytest.fixture
def visits(tmp_path):
    (tmp_path / "visits.toml").write_text(SCHEMA)
    rng = plain_generator(4)
    lines = ["admitted,seen,born,cost,ward"]
    for number in range(400):
        day = date(2023, 1, 1) + timedelta(days=int(rng.integers(0, 731)))
        seen = datetime(day.year, day.month, day.day, int(rng.integers(0, 24)))
        born = date(1945, 1, 1) + timedelta(days=int(rng.integers(0, 20_000)))
        written = {0: "", 1: "2024-02-30"}.get(number, day.isoformat())
        cost, ward = rng.uniform(0, 1000), "AB"[number % 2]
        lines.append(f"{written},{seen.isoformat()}Z,{born:%d.%m.%Y},{cost:.2f},{ward}")
    (tmp_path / "visits.csv").write_text("\n".join(lines) + "\n")
    with Ledger.create(tmp_path / "visits.db") as ledger:
        ledger.add("people", cap="1000")
    return tmp_path


@pytest.fixture
def publish(release, visits):
    def call(output="out", **changes):
        settings = {"data": "visits.csv", "schema": "visits.toml", "epsilon": "8"}
        settings |= {"columns": None, "ledger": "visits.db"}
        return release(output, **{**settings, **changes})

    return call


@pytest.mark.parametrize("method", METHODS)
def test_every_method_takes_dates_and_shows_them_as_dates(publish, run, visits, method):
    published = publish(method=method, **METHODS[method])
    assert published.code == 0, published.err
    page = (visits / "out" / "report.html").read_text()
    assert not RAW.search(re.sub(r"<(svg|script).*?</\1>", "", page, flags=re.DOTALL))
    assert re.search(r"20(23|24)-(0|1|Q)|Monday|admitted", page)
    if method not in WITHOUT_COUNTS | CHOOSING:
        found = run("count", "out", "admitted in 2023-Q1..2024-Q2", "--json").json()
        assert found["value"] == pytest.approx(295, abs=120)
    if method not in WITHOUT_ROWS:
        assert run("rows", "out", "-n", "20", "-o", "rows.parquet").code == 0
        kinds = {"admitted": pa.date32(), "born": pa.date32(), "weekday": pa.string()}
        for field in pq.read_schema(visits / "rows.parquet"):
            if field.name in kinds:
                assert field.type == kinds[field.name]
            elif field.name == "seen":
                assert pa.types.is_timestamp(field.type)


def test_rows_are_written_to_csv_as_iso_dates(publish, run, visits):
    assert publish(method="marginals").code == 0
    assert run("rows", "out", "-n", "50", "--seed", "1", "-o", "rows.csv").code == 0
    text = csv.read_csv(
        visits / "rows.csv",
        convert_options=csv.ConvertOptions(
            column_types=dict.fromkeys(("admitted", "seen", "born", "weekday"), pa.string())
        ),
    ).to_pydict()
    assert all(re.fullmatch(r"202[34]-\d\d-\d\d", value) for value in text["admitted"])
    assert all(re.fullmatch(r"\d{4}-\d\d-\d\d", value) for value in text["born"])
    assert all(re.fullmatch(r"202[34]-\d\d-\d\d \d\d:\d\d:\d\d", x) for x in text["seen"])
    assert set(text["weekday"]) <= {f"{x}day" for x in ("Mon", "Tues", "Wednes", "Thurs")} | {
        *("Friday", "Saturday", "Sunday")
    }


def test_a_release_of_dates_is_read_back_with_its_schema(publish, visits):
    assert publish(method="privbayes").code == 0
    head = json.loads((visits / "out" / "release.json").read_text())
    columns = {each["name"]: each for each in head["schema"]["columns"]}
    assert columns["admitted"]["bounds"] == ["2023-01-01", "2024-12-31"]
    assert columns["seen"]["time_zone"] == "Europe/Paris"
    assert columns["weekday"] == {
        "name": "weekday",
        "kind": "ordinal",
        "from": "admitted",
        "part": "weekday",
    }
    release = load(visits / "out")
    assert release.schema["born"].format == "%d.%m.%Y"
    assert release.count("weekday = Monday").value > 0


def test_the_data_package_names_dates_and_times(publish, visits):
    assert publish(method="topk", column="admitted", count="2").code == 0
    release = load(visits / "out")
    stamps = pa.table(
        {"day": pa.array([19_000], pa.date32()), "at": pa.array([0], pa.timestamp("s"))}
    )
    files = {"data/rows.parquet": {"bytes": 1, "sha256": "0"}}
    fields = describe_package(release, {"rows": stamps}, files)["resources"][0]["schema"]["fields"]
    assert [field["type"] for field in fields] == ["date", "datetime"]


@pytest.mark.parametrize("method", ["kmeans", "privthr"])
def test_numbers_that_stand_for_dates_are_described(publish, visits, method):
    assert publish(method=method, **METHODS[method]).code == 0
    package = json.loads((visits / "out" / "datapackage.json").read_text())
    fields = [x for part in package["resources"] for x in part["schema"]["fields"]]
    told = {field.get("description") for field in fields if field["name"] in ("admitted", "seen")}
    assert "Value of admitted: days since 1970-01-01." in told
    assert None not in told


def test_a_release_that_claims_centuries_of_hours_is_measured_before_it_is_read():
    column = {"kind": "datetime", "bounds": ["0001-01-01", "9999-12-31"], "bins": "hour"}
    assert _claim(column) == 100_000
    assert _claim({**column, "bins": "year"}) == 9_999
    assert _claim({**column, "bounds": ["x", 5], "bins": "day"}) <= 366


def test_classes_are_predicted_from_the_dates_of_fresh_rows(publish, run, visits):
    assert publish(method="model", target="ward", predictors="weekday,seen").code == 0
    (visits / "fresh.csv").write_text("admitted,seen\n2024-01-01,2024-01-01T12:00Z\n,\n")
    assert run("predict", "out", "fresh.csv", "-o", "predicted.csv").code == 0
    assert (visits / "predicted.csv").read_text().count("\n") == 3


def test_the_sparse_vector_compares_dates(run, visits):
    start = run(
        *("svt", "start", "dates", "--data", "visits.csv", "--schema", "visits.toml"),
        *("--epsilon", "8", "--max-positives", "2", "--threshold", "20"),
        *("--ledger", "visits.db", "--dataset", "people"),
    )
    assert start.code == 0, start.err
    assert run("svt", "ask", "dates", "admitted > 2023").out.startswith("above")
    assert run("svt", "ask", "dates", "admitted > 2024").out.startswith("below")
    refused = run("svt", "ask", "dates", "admitted = 2024-02-03")
    assert "name a value within a bin; write a range, such as admitted in 2024-02" in refused.err


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("2024-12-31]", '"2024-13-31"]', "'2024-13-31' is no date"),
        ("[2023-01-01, 2024-12-31]", "[2024-12-31, 2023-01-01]", "the later one comes first"),
        ("[2023-01-01, 2024-12-31]", "[1, 2]", "must be two dates"),
        ("[2023-01-01, 2024-12-31]", "[12:00:00, 13:00:00]", "must be two dates"),
        ('"month"', '"fortnight"', "must be one of hour, day, week, month"),
        ("Europe/Paris", "Europe/Atlantis", "is not known here; write an IANA name"),
        ("%d.%m.%Y", "%d.%m", "format must name the year"),
        ('part = "weekday"', 'part = "minute"', "part must be"),
        ('from = "admitted"', 'from = "cost"', "must be the name of a column of kind date"),
        ('bins = "month"', 'bins = "month"\nbounds_ = 1', "bounds_"),
    ],
)
def test_a_bad_schema_of_dates_is_refused_before_any_debit(publish, run, visits, old, new, message):
    assert old in SCHEMA
    (visits / "visits.toml").write_text(SCHEMA.replace(old, new, 1))
    refused = publish(method="marginals")
    assert refused.code != 0
    assert message in refused.err
    assert not run("ledger", "show", "visits.db", "--json").json()[0]["grants"]


def test_a_column_that_holds_no_dates_is_refused_before_any_debit(publish, run, visits):
    rows = csv.read_csv(visits / "visits.csv")
    wrong = rows.set_column(0, "admitted", pa.array(range(rows.num_rows)))
    pq.write_table(wrong.set_column(2, "born", rows["born"].cast(pa.string())), "visits.parquet")
    refused = publish(method="marginals", data="visits.parquet")
    assert refused.code != 0
    assert "column 'admitted'" in refused.err
    assert not run("ledger", "show", "visits.db", "--json").json()[0]["grants"]


@pytest.mark.parametrize("method", ["privbayes", "model", "privpfc", "functional"])
def test_dates_are_no_classes_and_no_numbers_to_predict(publish, method):
    refused = publish(method=method, target="admitted")
    assert refused.code != 0
    assert "the target 'admitted' holds dates" in refused.err


def test_a_draft_of_stored_dates_asks_for_their_bounds(run, visits):
    pq.write_table(
        pa.table({"day": pa.array([1], pa.date32()), "at": pa.array([1], pa.timestamp("us"))}),
        "days.parquet",
    )
    assert run("schema", "draft", "days.parquet", "-o", "days.toml").code == 0
    drafted = (visits / "days.toml").read_text()
    assert 'kind = "date"' in drafted
    assert 'kind = "datetime"' in drafted
    checked = run("schema", "check", "days.toml")
    assert checked.code != 0
    assert "bounds are missing" in checked.out + checked.err
    (visits / "days.toml").write_text(drafted.replace("# bounds", "bounds"))
    assert run("schema", "check", "days.toml", "days.parquet").code == 0
