"""Schema files: what is written is read back, and what is wrong is said in a line."""

import json
import os
import tomllib
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpublish.data.schema import Schema, column
from dpublish.data.schema_file import dumps_toml, from_dict, load_schema, to_dict
from dpublish.errors import InputError, InvalidSchema

ROOT = Path(__file__).resolve().parents[2]
DATA = Path(os.environ.get("DPUBLISH_DATA", ROOT / ".." / "shared" / "data"))
ADULT = DATA / "adult_taxonomies.json"
needs_adult = pytest.mark.skipif(not ADULT.exists(), reason="the Adult taxonomies are not here")
ADULT_NUMBERS = [
    "age",
    "capital_gain",
    "capital_loss",
    "education_num",
    "fnlwgt",
    "hours_per_week",
]

names = st.text(min_size=1, max_size=6).filter(lambda text: text.strip() == text)
finite = st.floats(-1e9, 1e9) | st.integers(-(10**9), 10**9)
rules = st.sampled_from(["refuse", "category", "drop"])
branchings = st.none() | st.integers(2, 4)


@st.composite
def columns(draw, name):
    """Draw a sound column of any kind."""
    kind = draw(st.sampled_from(["numeric", "integer", "category", "ordinal"]))
    missing, branching = draw(rules), draw(branchings)
    if kind == "category" or kind == "ordinal":
        values = st.lists(names.map("v{}".format), min_size=1, max_size=6, unique=True)
        other = draw(st.sampled_from([None, "o", "o o"]))
        if kind == "ordinal":
            return column(name, kind, values=draw(values), other=other, missing=missing)
        leaves = draw(values)
        tree = {"g r": [leaves[0], "v\x7f"], "h": leaves[1:]} if draw(st.booleans()) else leaves
        return column(name, kind, taxonomy=tree, other=other, missing=missing)
    low, high = sorted(draw(st.lists(finite, min_size=2, max_size=2, unique_by=int)))
    if kind == "integer":
        bins = draw(st.integers(1, min(9, int(high) - int(low) + 1)))
        bounds = [int(low), int(high)]
        return column(name, kind, bounds=bounds, bins=bins, branching=branching, missing=missing)
    if draw(st.booleans()):
        cuts = [low, (low + high) / 2, high]
        return column(name, kind, cuts=cuts, branching=branching, missing=missing)
    return column(name, kind, bounds=[low, high], branching=branching, missing=missing)


@st.composite
def schemas(draw):
    labels = draw(st.lists(names, min_size=1, max_size=4, unique=True))
    unit = draw(st.none() | names)
    return Schema(tuple(draw(columns(label)) for label in labels), unit=unit, name=draw(names))


@settings(deadline=None)
@given(schema=schemas())
def test_a_schema_survives_json_and_toml_exactly(schema):
    plain = json.loads(json.dumps(to_dict(schema), sort_keys=True))
    assert from_dict(plain) == schema
    assert from_dict(tomllib.loads(dumps_toml(schema))) == schema
    assert from_dict(plain).columns[0].axis() == schema.columns[0].axis()


def write(folder, text, name="schema.toml"):
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


def test_every_key_of_a_file_has_its_meaning(tmp_path):
    path = write(
        tmp_path,
        """
        name = "survey"
        unit = "person"
        [columns.age]
        kind = "integer"
        bounds = [17, 90]
        branching = 2
        [columns."net pay"]
        kind = "numeric"
        cuts = [0, 10, 15.5, 100]
        missing = "drop"
        [columns.work]
        kind = "category"
        taxonomy = { Paid = ["Private", "State"], Unpaid = {} }
        other = "rest"
        [columns.answer]
        kind = "ordinal"
        values = [1, true, "x"]
        missing = "category"
        """,
    )
    work = {"Paid": ["Private", "State"], "Unpaid": {}}
    expected = Schema(
        (
            column("age", "integer", bounds=[17, 90], branching=2),
            column("net pay", "numeric", cuts=[0, 10, 15.5, 100], missing="drop"),
            column("work", "category", taxonomy=work, other="rest"),
            column("answer", "ordinal", values=[1, True, "x"], missing="category"),
        ),
        unit="person",
        name="survey",
    )
    assert Schema.read(path) == load_schema(str(path)) == expected
    plain = write(tmp_path, json.dumps(to_dict(expected)), "schema.json")
    assert load_schema(plain) == expected


@pytest.mark.parametrize(
    ("keys", "complaint"),
    [
        ("", "kind is missing; it must be"),
        ('kind = "numerc"', 'kind must be "numeric"'),
        ('kind = "numeric"\nbouns = [0, 1]', "there is no key 'bouns'; did you mean 'bounds'"),
        ('kind = "numeric"\nbounds = 3', "bounds must be a list of two numbers"),
        ('kind = "numeric"\nbounds = ["a", "b"]', "bounds must be a list of two numbers"),
        ('kind = "numeric"\nbounds = [0, nan]', "bounds must be two finite numbers"),
        ('kind = "numeric"\nbounds = [0, 1]\nbins = 2.5', "bins must be an integer"),
        ('kind = "category"\nvalues = [1.5]', "values must be a list of texts"),
        ('kind = "category"\ntaxonomy = "gone.json"', "gone.json cannot be read"),
        ('kind = "category"\ntaxonomy = "list.json"', "must hold one object"),
        ('kind = "category"\ntaxonomy = "text.json"', "is not JSON"),
        ('kind = "category"\ntaxonomy = "trees.json"', "name one in taxonomy_key"),
        (
            'kind = "category"\ntaxonomy = "trees.json"\ntaxonomy_key = "wrok"',
            "did you mean 'work'",
        ),
        ('kind = "category"\nvalues = ["a"]\ntaxonomy_key = "x"', "needs a taxonomy file"),
        ('kind = "category"\ntaxonomy = { a = 3 }', "taxonomy must be made of tables and lists"),
        ('kind = "ordinal"\nvalues = ["a"]\nmissing = "ignore"', 'missing must be "refuse"'),
    ],
)
def test_a_faulty_column_is_refused_in_one_line_that_names_file_and_column(
    tmp_path, keys, complaint
):
    write(tmp_path, '["a"]', "list.json")
    write(tmp_path, "a", "text.json")
    write(tmp_path, '{"work": {"a": {}}}', "trees.json")
    path = write(tmp_path, f"[columns.x]\n{keys}\n")
    with pytest.raises(InvalidSchema, match=f"column 'x': .*{complaint}") as refusal:
        load_schema(path)
    assert str(path) in str(refusal.value)
    assert "\n" not in str(refusal.value)


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("", "columns is missing"),
        ("columns = 3", "columns must be a table for each column"),
        ("colums = 3", "did you mean 'columns'"),
        ("name = 3\n[columns.a]\nkind = 'numeric'", "name must be text"),
        ("[columns.a]\nkind = ?\n", "line 2"),
        ("[columns]", "at least one column"),
    ],
)
def test_a_faulty_file_is_refused_by_name(tmp_path, text, complaint):
    path = write(tmp_path, text)
    with pytest.raises(InvalidSchema, match=complaint) as refusal:
        load_schema(path)
    assert str(path) in str(refusal.value)


def test_all_faulty_columns_are_listed_at_once(tmp_path):
    path = write(tmp_path, "[columns.a]\nkind = 'numeric'\n[columns.b]\nkind = 'category'\n")
    with pytest.raises(InvalidSchema) as refusal:
        load_schema(path)
    first, *lines = str(refusal.value).splitlines()
    assert first.endswith("2 columns need attention")
    assert [line.split(":")[0].strip() for line in lines] == ["column 'a'", "column 'b'"]


def test_a_file_that_is_not_there_is_an_input_error(tmp_path):
    with pytest.raises(InputError, match="No such file"):
        load_schema(tmp_path / "gone.toml")


def test_a_release_cannot_point_to_a_taxonomy_file():
    plain = {"columns": [{"name": "a", "kind": "category", "taxonomy": "trees.json"}]}
    with pytest.raises(InvalidSchema, match="not the name of a file"):
        from_dict(plain)
    with pytest.raises(InvalidSchema, match="has no name"):
        from_dict({"columns": [{"kind": "category"}]})


@needs_adult
def test_the_adult_taxonomies_are_read_whole(tmp_path):
    trees = json.loads(ADULT.read_text())
    kinds = {
        key: "integer" if key.replace("-", "_") in ADULT_NUMBERS else "category" for key in trees
    }
    text = "".join(
        f"[columns.{key.replace('-', '_')}]\nkind = '{kind}'\ntaxonomy = '{ADULT}'\n"
        for key, kind in kinds.items()
    )
    schema = load_schema(write(tmp_path, text))
    assert len(schema.columns) == 14
    sizes = {name: schema[name].size for name in schema.names}
    assert sizes["age"] == 16
    assert sizes["native_country"] == 41
    assert schema["age"].axis(1).labels == ("15..55", "56..95")
    assert schema["capital_gain"].axis(2).edges[:4] == (0, 5001, 10001, 15001)
    for name, size in sizes.items():
        tree = trees.get(name, trees.get(name.replace("_", "-")))
        assert size == count_leaves(tree)
        assert len(schema[name].taxonomy.render().splitlines()) == count_nodes(tree)
    assert from_dict(to_dict(schema)) == schema


@needs_adult
@pytest.mark.parametrize("kind", ["integer", "numeric"])
@pytest.mark.parametrize("name", ADULT_NUMBERS)
def test_adult_numbers_fall_into_the_intervals_where_pandas_puts_them(tmp_path, name, kind):
    path = write(tmp_path, f"[columns.{name}]\nkind = '{kind}'\ntaxonomy = '{ADULT}'\n")
    rows = pq.read_table(DATA / "adult.parquet", columns=[name])[name]
    tree = json.loads(ADULT.read_text())[name.replace("_", "-")]
    tops = sorted({float(text.strip("(]").split(",")[1]) for text in labels_of_leaves(tree)})
    numbers = np.clip(rows.to_numpy(), 0, tops[-1])
    expected = pd.cut(numbers, [-np.inf, *tops], labels=False)
    np.testing.assert_array_equal(load_schema(path)[name].encode(rows).codes, expected)


def labels_of_leaves(tree):
    for label, inner in tree.items():
        yield from labels_of_leaves(inner) if inner else [label]


def count_leaves(tree):
    return len(list(labels_of_leaves(tree)))


def count_nodes(tree):
    return sum(1 + count_nodes(inner) for inner in tree.values())
