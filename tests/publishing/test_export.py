"""Tables of a release are exported whole or not at all, and read back as they were."""

import csv
import json
from datetime import date

import frictionless
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from dpublish import Publication, Schema, column, export, load
from dpublish.core.folder.data_package import describe_table
from dpublish.data.sources import open_table
from dpublish.errors import CorruptRelease, InvalidParameter, InvalidType
from dpublish.methods.histogram.histogram import Histogram
from dpublish.methods.marginals.marginals import Marginals
from dpublish.privacy.budget import Budget
from dpublish.publishing import workbook
from dpublish.publishing.workbook import sheet_names, write_workbook
from dpublish.randomness import seeded

FORMULA = '=HYPERLINK("http://x.example","x")'
SCHEMA = Schema(
    (
        column("day", "date", bounds=["2024-01-01", "2024-12-31"], bins="quarter"),
        column("cost", "numeric", bounds=[0, 9], bins=3, missing="category", measured_in="euros"),
        column("name", "category", values=[FORMULA, 'say "ä", or, not', "two\nlines"]),
    ),
    publication=Publication(title="Costs", license="CC0-1.0"),
)
ROWS = pa.table(
    {
        "day": pa.array(["2024-02-03", "2024-05-01", "2024-05-02"]),
        "cost": pa.array([1.0, None, 8.0]),
        "name": pa.array([FORMULA, "two\nlines", FORMULA]),
    }
)


def publish(method=None):
    method = method or Histogram(columns=("day", "cost", "name"))
    return method.release(open_table(ROWS, SCHEMA), budget=Budget.seeded(1), rng=seeded(4))


@pytest.fixture
def folder(tmp_path):
    return publish().save(tmp_path / "costs")


def left_in(path):
    return sorted(each.name for each in path.iterdir())


def plain(value):
    return value.isoformat() if isinstance(value, date) else value


def test_csv_is_read_back_value_by_value(folder, tmp_path):
    done = export(folder, to="csv")
    assert done.path == tmp_path / "costs-csv"
    assert left_in(done.path) == ["counts.csv", "datapackage.json", "receipt.json"]
    content = (done.path / "counts.csv").read_bytes()
    table = publish().tables()["counts"]
    assert content.count(b"\r\n") == table.num_rows + 1
    with (done.path / "counts.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    wanted = [
        {key: "" if value is None else str(plain(value)) for key, value in row.items()}
        for row in table.to_pylist()
    ]
    assert rows == wanted
    assert done.to_dict()["tables"] == {"counts": table.num_rows}


@pytest.mark.parametrize("to", ["csv", "parquet", "json"])
def test_an_exported_folder_is_a_data_package(folder, to):
    for release in (folder, publish(Marginals())):
        done = export(release, to=to, output=folder.with_name(f"{type(release).__name__}-{to}"))
        report = frictionless.validate(str(done.path / "datapackage.json"))
        assert [e.message for part in (report, *report.tasks) for e in part.errors] == []
        package = json.loads((done.path / "datapackage.json").read_text())
        assert (package["title"], package["licenses"]) == ("Costs", [{"name": "CC0-1.0"}])
        for resource in package["resources"]:
            assert all(field["description"] for field in resource["schema"]["fields"])


def test_frictionless_finds_a_wrong_cell_in_an_exported_table(folder):
    done = export(folder, to="csv")
    path = done.path / "counts.csv"
    path.write_bytes(path.read_bytes().replace(b"\r\n0,", b"\r\nzero,", 1))
    assert not frictionless.validate(str(done.path / "datapackage.json")).valid


def test_json_and_parquet_hold_the_same_records(folder, tmp_path):
    table = publish().tables()["counts"]
    found = json.loads((export(folder, to="json").path / "counts.json").read_text("utf-8"))
    assert found["records"] == [
        {key: plain(value) for key, value in row.items()} for row in table.to_pylist()
    ]
    assert [f["name"] for f in found["fields"] if f.get("unit") == "euros"] == [
        "cost",
        "cost_low",
        "cost_high",
    ]
    parquet = pq.read_table(export(folder, to="parquet").path / "counts.parquet")
    assert parquet.to_pylist() == table.to_pylist()
    assert not any(pa.types.is_dictionary(field.type) for field in parquet.schema)


def test_formulas_in_csv_files_are_made_harmless_on_request(folder):
    done = export(folder, to="csv", for_spreadsheets=True)
    with (done.path / "counts.csv").open(encoding="utf-8", newline="") as file:
        names = {row["name"] for row in csv.DictReader(file)}
    assert f"'{FORMULA}" in names
    assert FORMULA not in names
    fields = [
        json.loads((path / "datapackage.json").read_text())["resources"][0]["schema"]["fields"]
        for path in (done.path, export(folder, to="csv", output=f"{folder}-plain").path)
    ]
    assert fields[0] == fields[1]  # no name of these begins as a formula does
    assert all("description" in field for field in fields[0])


def test_a_workbook_holds_texts_numbers_and_dates_as_such(folder, tmp_path):
    pytest.importorskip("xlsxwriter")
    openpyxl = pytest.importorskip("openpyxl")
    done = export(folder, to="xlsx")
    assert done.path == tmp_path / "costs-tables.xlsx"
    book = openpyxl.load_workbook(done.path)
    assert book.sheetnames == ["read me", "counts"]
    table = publish().tables()["counts"]
    header, *rows = book["counts"].iter_rows()
    assert [cell.value for cell in header] == table.column_names
    for cells, row in zip(rows, table.to_pylist(), strict=True):
        assert {cell.data_type for cell in cells} <= {"s", "n", "d"}  # and no formula, "f"
        values = [c.value.date() if c.data_type == "d" else c.value for c in cells]
        assert values == list(row.values())
    told = [[cell.value for cell in row] for row in book["read me"].iter_rows()]
    assert told[0][:2] == ["title", "Costs"]
    assert any(row[0] == "guarantee" for row in told)
    described = {row[1]: row[2:5] for row in told if row[0] == "counts"}
    assert list(described) == table.column_names
    assert described["cost_low"][1] == "euros"
    frame = pd.read_excel(done.path, sheet_name="counts")
    assert frame["noisy_count"].tolist() == table["noisy_count"].to_pylist()


def test_what_a_sheet_cannot_hold_is_refused_before_anything_is_written(tmp_path, monkeypatch):
    pytest.importorskip("xlsxwriter")
    monkeypatch.setattr(workbook, "MOST_ROWS", 5)
    with pytest.raises(InvalidParameter, match=r"holds 4 and .*export to csv or parquet"):
        export(publish(), to="xlsx", output=tmp_path / "a.xlsx")
    monkeypatch.setattr(workbook, "MOST_ROWS", 1_048_576)
    monkeypatch.setattr(workbook, "MOST_CHARACTERS", 20)
    with pytest.raises(InvalidParameter, match="more than 20 characters"):
        export(publish(), to="xlsx", output=tmp_path / "a.xlsx")
    assert left_in(tmp_path) == []


def test_odd_values_are_stored_as_texts_or_left_out(tmp_path):
    pytest.importorskip("xlsxwriter")
    openpyxl = pytest.importorskip("openpyxl")
    table = pa.table(
        {
            "large": [(1 << 60) + 1, 5],
            "early": pa.array([date(1850, 1, 2), None]),
            "float": [np.nan, np.inf],
        }
    )
    write_workbook(publish(), {"odd": table}, tmp_path / "a.xlsx")
    first, second = openpyxl.load_workbook(tmp_path / "a.xlsx")["odd"].iter_rows(
        min_row=2, max_col=3
    )
    assert [cell.value for cell in first] == [str((1 << 60) + 1), "1850-01-02", None]
    assert [cell.value for cell in second] == [5, None, None]


def test_sheets_have_names_that_excel_takes():
    found = sheet_names(
        ["read me", "Read Me", "a[b]:c*d?e/f\\g", "history", "y" * 40, "y" * 50, "'"]
    )
    assert len({name.lower() for name in found}) == len(found)
    assert all(0 < len(name) <= 31 and not set("[]:*?/\\") & set(name) for name in found)
    assert "history" not in found


def test_a_release_with_a_folder_is_exported_beside_it(folder):
    done = export(load(folder), to="json")
    assert done.path == folder.with_name("costs-json")
    assert left_in(done.path) == left_in(export(folder, to="json", output=folder.parent / "b").path)


def test_only_the_named_tables_are_written(tmp_path):
    release = publish(Marginals())
    done = export(release, to="csv", output=tmp_path / "some", tables="marginals")
    assert left_in(done.path) == ["datapackage.json", "marginals.csv", "receipt.json"]
    with pytest.raises(InvalidParameter, match="did you mean 'marginals'"):
        export(release, to="csv", output=tmp_path / "more", tables=["marginal"])
    assert left_in(tmp_path) == ["some"]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"to": "xls"}, "did you mean 'xlsx'"),
        ({"output": "a.xlsx"}, "csv is written to a folder"),
        ({"to": "xlsx", "output": "a"}, "a file ending in .xlsx"),
        ({"output": "costs/in"}, "lies inside the release folder"),
        ({"output": "costs"}, "exists already"),
    ],
)
def test_wrong_requests_are_refused_and_leave_nothing(
    folder, tmp_path, monkeypatch, changes, message
):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InvalidParameter, match=message):
        export("costs", **{"to": "csv", "output": "new"} | changes)
    assert left_in(tmp_path) == ["costs"]


def test_what_is_no_release_is_refused(folder, tmp_path):
    with pytest.raises(InvalidType, match="not list"):
        export([], to="csv", output=tmp_path / "new")
    with pytest.raises(InvalidParameter, match="output is missing"):
        export(publish(), to="csv")
    (folder / "data" / "counts.parquet").write_bytes(b"other")
    with pytest.raises(CorruptRelease, match="changed or cut"):
        export(folder, to="csv")
    assert left_in(tmp_path) == ["costs"]


def test_an_interrupted_export_leaves_nothing(folder, tmp_path, monkeypatch):
    def fail(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr("dpublish.publishing.export.json_bytes", fail)
    with pytest.raises(KeyboardInterrupt):
        export(folder, to="csv")
    assert left_in(tmp_path) == ["costs"]


def test_fields_keep_the_words_of_the_schema():
    table = publish().tables()["counts"]
    fields = {field["name"]: field for field in describe_table(SCHEMA, "counts", table)["fields"]}
    assert fields["day_low"] == {
        "name": "day_low",
        "type": "date",
        "description": "First date of the bin of day.",
    }
    assert fields["cost"]["description"] == "Bin of cost."
