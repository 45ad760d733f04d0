"""The JSON Schemas describe what is written and read, and refuse what is neither."""

import json
import tomllib
from pathlib import Path

import jsonschema
import pytest

from dpublish import datasets, histogram
from dpublish.data import schema_file
from dpublish.data.schema_file import load_schema
from dpublish.datasets.files import SAMPLES
from dpublish.errors import DPublishError
from dpublish.ledger.ledger import Ledger
from dpublish.publishing.formats import FORMATS, json_schema
from dpublish.storage.files import write_text

ROOT = Path(__file__).resolve().parents[2]
PAGES = ROOT / "docs" / "reference" / "schemas"


def fits(name, plain):
    checker = jsonschema.Draft202012Validator(json_schema(name))
    return checker.is_valid(plain)


@pytest.mark.parametrize("name", FORMATS)
def test_it_is_a_json_schema_and_the_page_has_it(name):
    jsonschema.Draft202012Validator.check_schema(json_schema(name))
    assert json.loads((PAGES / f"{name}.json").read_text("utf-8")) == json_schema(name)


@pytest.mark.parametrize("name", SAMPLES)
def test_schemas_fit_as_files_and_as_releases_hold_them(name, tmp_path):
    text = SAMPLES[name].schema()
    assert fits("schema", tomllib.loads(text))
    write_text(tmp_path / "table.toml", text)
    assert fits("schema", schema_file.to_dict(load_schema(tmp_path / "table.toml")))


@pytest.mark.parametrize(
    "text",
    [
        'bound = [1, 2]\n[columns.a]\nkind = "integer"',
        '[columns.a]\nkind = "text"',
        '[columns.a]\nkind = "integer"\nbounds = "1 to 2"',
        '[columns.a]\nkind = "integer"\nbins_ = 3',
        "columns = 3",
        '[[totals]]\nwhere = "a = 1"\n[columns.a]',
        "[[impossible]]\n[columns.a]",
        '[publication]\ntitel = "x"\n[columns.a]',
    ],
)
def test_what_the_reader_refuses_for_its_keys_does_not_fit(text, tmp_path):
    assert not fits("schema", tomllib.loads(text))
    write_text(tmp_path / "table.toml", text)
    with pytest.raises(DPublishError):
        load_schema(tmp_path / "table.toml")


@pytest.fixture
def published(tmp_path):
    with Ledger.create(tmp_path / "books.db") as ledger:
        ledger.add("people", cap="1")
    rows = datasets.census(60)
    histogram(
        rows,
        columns=["sex"],
        schema=datasets.schema("census"),
        epsilon="0.5",
        ledger=tmp_path / "books.db",
        dataset="people",
        output=tmp_path / "sexes",
    )
    return tmp_path


def test_a_release_and_its_ledger_fit(published):
    head = json.loads((published / "sexes" / "release.json").read_text("utf-8"))
    assert fits("release", head)
    with Ledger(published / "books.db") as ledger:
        entries = list(ledger.entries())
    assert len(entries) >= 4
    assert all(fits("ledger", json.loads(entry.body)) for entry in entries)


@pytest.mark.parametrize("missing", ["receipt", "files", "schema", "kind"])
def test_a_release_without_a_part_does_not_fit(missing, published):
    head = json.loads((published / "sexes" / "release.json").read_text("utf-8"))
    assert not fits("release", {key: part for key, part in head.items() if key != missing})


def test_a_receipt_whose_epsilon_is_a_number_does_not_fit(published):
    head = json.loads((published / "sexes" / "release.json").read_text("utf-8"))
    head["receipt"]["epsilon"] = 0.5
    assert not fits("release", head)
