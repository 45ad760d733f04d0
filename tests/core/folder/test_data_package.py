"""Every release folder is a data package that other tools accept, and that says what it holds."""

import json
import tomllib
from dataclasses import replace

import frictionless
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from dpublish.core.folder.folder import load
from dpublish.core.registry import make_method
from dpublish.data.schema import Schema, column
from dpublish.data.schema_file import from_dict
from dpublish.data.sources import open_table
from dpublish.privacy.budget import Budget
from dpublish.publishing.streams.operator import StreamOperator
from dpublish.randomness import seeded
from method_examples import CASES, SCHEMA, SCHEMA_TEXT, arrow_table
from stream_world import ASKING, METHOD, THRESHOLD, arguments, make_ledger, rows
from stream_world import SCHEMA as RIDES

STATED = """
[publication]
title = "People of four towns"
description = "A survey of heights."
license = "CC-BY-4.0"
contact = "statistics@town.example"
source = "https://town.example/survey"
publisher = "Office of the town"
"""
TOWNS = from_dict(
    tomllib.loads(
        STATED
        + SCHEMA_TEXT.replace("bounds = [100, 220]", 'bounds = [100, 220]\nmeasured_in = "cm"')
    )
)


def publish(name, settings, schema=SCHEMA, epsilon=3):
    method = make_method(name, settings)
    schema = method.prepare(schema) if hasattr(method, "prepare") else schema
    budget = method.budget(epsilon) if hasattr(method, "budget") else Budget.seeded(epsilon)
    return method.release(open_table(arrow_table(), schema), budget=budget, rng=seeded(5))


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    release = publish("histogram", {"columns": ("height", "sex")}, TOWNS)
    return release.save(tmp_path_factory.mktemp("package") / "out")


def descriptor_of(folder):
    return json.loads((folder / "datapackage.json").read_text())


def errors_of(folder):
    report = frictionless.validate(str(folder / "datapackage.json"))
    return [error.message for part in (report, *report.tasks) for error in part.errors]


@pytest.mark.parametrize(
    ("name", "settings"), CASES, ids=[f"{name}-{number}" for number, (name, _) in enumerate(CASES)]
)
def test_every_method_makes_a_package_that_frictionless_accepts(name, settings, tmp_path):
    folder = publish(name, settings).save(tmp_path / "out")
    assert errors_of(folder) == []
    for resource in descriptor_of(folder)["resources"]:
        fields = resource["schema"]["fields"]
        table = pq.read_table(folder / resource["path"])
        assert [field["name"] for field in fields] == table.column_names
        assert [f["name"] for f in fields if not f.get("description", "").endswith(".")] == []
    assert load(folder).tables().keys() == publish(name, settings).tables().keys()


def test_frictionless_notices_a_table_that_is_not_as_described(folder, tmp_path):
    copy = publish("histogram", {"columns": ("height",)}).save(tmp_path / "out")
    path = copy / "data" / "counts.parquet"
    table = pq.read_table(path)
    pq.write_table(table.set_column(0, "cell_number", pa.array(["x"] * table.num_rows)), path)
    assert any("Type error" in message for message in errors_of(copy))


def test_the_package_states_what_the_schema_states(folder):
    found = descriptor_of(folder)
    assert found["title"] == "People of four towns"
    assert found["description"].startswith("A survey of heights. NOT PRIVATE")
    assert found["licenses"] == [{"name": "CC-BY-4.0"}]
    assert found["sources"] == [
        {"title": "https://town.example/survey", "path": "https://town.example/survey"}
    ]
    assert found["contributors"] == [
        {"title": "Office of the town", "role": "publisher"},
        {
            "title": "statistics@town.example",
            "email": "statistics@town.example",
            "role": "contact",
        },
    ]
    units = {f["name"]: f.get("unit") for f in found["resources"][0]["schema"]["fields"]}
    assert [units[name] for name in ("height", "height_low", "height_high")] == ["cm"] * 3
    assert units["noisy_count"] is units["sex"] is None
    assert errors_of(folder) == []


def test_nothing_is_stated_where_the_schema_states_nothing(tmp_path):
    found = descriptor_of(publish("histogram", {"columns": ("sex",)}).save(tmp_path / "out"))
    assert not {"licenses", "sources", "contributors"} & found.keys()
    assert found["title"] == "histogram released by dpublish"


def test_what_is_stated_changes_no_number_and_comes_back(folder):
    plain = publish("histogram", {"columns": ("height", "sex")})
    assert load(folder).tables() == plain.tables()
    assert load(folder).schema.publication == TOWNS.publication
    assert load(folder).schema["height"].measured_in == "cm"


ALIKE = Schema(
    (
        column("age", "integer", bounds=[0, 99], bins=4, measured_in="years"),
        column("age_low", "category", values=["x", "y"], description="Whether it is low"),
        column("age_high", "numeric", bounds=[0, 10], bins=2, measured_in="cm"),
        column("count_low", "integer", bounds=[0, 3], measured_in="kg"),
    )
)
ALIKE_ROWS = pa.table(
    {
        "age": [5, 40, 80, 99] * 10,
        "age_low": ["x", "y"] * 20,
        "age_high": [1.0, 2.0, 7.0, 9.0] * 10,
        "count_low": [0, 1, 2, 3] * 10,
    }
)


@pytest.mark.parametrize(
    ("name", "settings"),
    [
        ("histogram", {"columns": ALIKE.names}),
        ("histogram", {"columns": ALIKE.names, "threshold": 3}),
        ("histogram", {"columns": ("age",)}),
        ("statistics", {"measures": ("count", "mean(age)"), "by": ("age_low", "count_low")}),
        ("statistics", {"measures": ("count",), "by": ALIKE.names}),
        ("synth", {}),
        ("marginals", {}),
        ("privbayes", {}),
        ("privpfc", {"target": "age_low"}),
        ("dpcopula", {}),
        ("filter-priority", {"columns": ALIKE.names}),
        ("psd", {"columns": ("age", "age_high")}),
        ("topk", {"column": "count_low", "count": 2}),
    ],
)
def test_columns_called_as_derived_ones_are_told_apart(name, settings, tmp_path):
    method = make_method(name, settings)
    release = method.release(open_table(ALIKE_ROWS, ALIKE), budget=Budget.seeded(3), rng=seeded(5))
    folder = release.save(tmp_path / "out")
    assert load(folder) == release
    assert errors_of(folder) == []
    for table in (*release.tables().values(), *release.tables_to_read().values()):
        assert len(set(table.column_names)) == table.num_columns


def test_what_is_derived_is_described_as_such_whatever_it_is_called(tmp_path):
    both = publish_alike(("age", "age_low", "count_low"), tmp_path / "both")
    assert list(both) == [
        *("cell_number", "age", "age_low_", "age_high", "age_low"),
        *("count_low", "count_low_low", "count_low_high"),
        *("noisy_count", "count_low_", "count_high", "estimated_count"),
    ]
    assert both["age_low"]["description"] == "Value of age_low: Whether it is low."
    assert both["age_low_"]["description"] == "First integer of the bin of age."
    assert (both["count_low"]["unit"], both["count_low_low"]["unit"]) == ("kg", "kg")
    assert "unit" not in both["count_low_"]
    # The other columns are in the schema, and not in this table.
    alone = publish_alike(("age",), tmp_path / "alone")
    assert alone["age_low"] == {
        **{"name": "age_low", "type": "integer", "unit": "years"},
        "description": "First integer of the bin of age.",
    }
    assert alone["age_high"]["unit"] == "years"
    assert alone["count_low"]["description"].startswith("Lower end of the interval")
    assert "unit" not in alone["count_low"]


def publish_alike(columns, path):
    """Publish a histogram; return how its fields are described."""
    release = make_method("histogram", {"columns": columns}).release(
        open_table(ALIKE_ROWS, ALIKE), budget=Budget.seeded(3), rng=seeded(5)
    )
    fields = descriptor_of(release.save(path))["resources"][0]["schema"]["fields"]
    return {field["name"]: field for field in fields}


@pytest.fixture(params=[METHOD, ASKING, THRESHOLD], ids=lambda method: method.name)
def stream(request, tmp_path):
    """The folder of a stream of five steps, as an operator writes it."""
    make_ledger(tmp_path)
    schema = replace(RIDES, publication=TOWNS.publication)
    state = tmp_path / "rides.stream"
    with StreamOperator.start(state, request.param, schema, **arguments(tmp_path)) as operator:
        for number in range(1, 6):
            operator.next(rows(number), f"2024-05-01T{number:02}:00")
        operator.write_pages()
    return tmp_path / "out"


def test_frictionless_accepts_every_step_of_a_stream_and_reads_all_of_them(stream):
    assert errors_of(stream) == []
    found, loaded = descriptor_of(stream), load(stream)
    assert (found["title"], found["licenses"]) == ("People of four towns", [{"name": "CC-BY-4.0"}])
    steps, *counts = found["resources"]
    assert steps["path"] == "steps.jsonl"
    package = frictionless.Package(str(stream / "datapackage.json"))
    for resource, time in zip(counts, loaded.times, strict=True):
        table = loaded.table(time)
        assert [field["name"] for field in resource["schema"]["fields"]] == table.column_names
        assert len(package.get_resource(resource["name"]).read_rows()) == table.num_rows == 8
    for action in {record.action for record in loaded.records}:
        last = [r for r in counts if r["title"].endswith(action)][-1]
        assert all(field["description"].endswith(".") for field in last["schema"]["fields"])


def test_frictionless_notices_a_wrong_file_of_any_step(stream):
    for resource in descriptor_of(stream)["resources"][1:]:
        path = stream / resource["path"]
        content = path.read_bytes()
        table = pq.read_table(path)
        at = table.column_names.index("estimate")
        pq.write_table(table.set_column(at, "estimate", pa.array(["x"] * 8)), path)
        assert any("Type error" in message for message in errors_of(stream))
        path.write_bytes(content)
    assert errors_of(stream) == []
