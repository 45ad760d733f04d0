"""Schemas are shown and changed in the studio; what can be read never becomes what cannot."""

import json

import pytest

from dpublish.data.publication import Publication
from dpublish.data.schema_file import load_schema
from dpublish.ledger.ledger import Ledger
from studio_world import CANARY

OWN = """\
# what we know of visits
name = "visits"

[columns.age]  # in years
kind = "integer"
bounds = [0, 99]  # no one is older
bins = 10

[columns.ward]
kind = "category"
values = ["north", "south", "west"]
other = "other"

[columns.ill]
kind = "category"
values = ["no", "yes"]

# Left out:
# email
"""
DRAFT = """\
[columns.age]
kind = "integer"
# bounds = [ , ]  # fill in

[columns.ward]
kind = "category"
"""
AGE = {"schema": "visits.toml", "column": "age", "kind": "integer"}
ANSWERED = {"low": "0", "high": "99", "bins": "10", "missing": "refuse"}


@pytest.fixture
def own(world):
    (world.folder / "visits.toml").write_text(OWN)
    return world


@pytest.fixture
def client(own):
    return own.client()


def text_of(world, name="visits.toml"):
    return (world.folder / name).read_text()


def change(client, **fields):
    digest = client.get("/schemas/text", schema="visits.toml").field("digest")
    return client.post("/schemas/column", AGE | ANSWERED | {"digest": digest} | fields)


def group(name, *children):
    return {"name": name, "children": [{"name": c} if isinstance(c, str) else c for c in children]}


def draw(client, column, drawn, path="/schemas/taxonomy", **fields):
    page = client.get("/schemas/taxonomy", schema="visits.toml", column=column)
    sent = {"schema": "visits.toml", "column": column, "digest": page.field("digest")}
    return client.post(path, sent | {"tree": json.dumps(drawn)} | fields)


def test_schemas_are_listed_with_their_state(own, client):
    (own.folder / "draft.toml").write_text(DRAFT)
    (own.folder / "broken.toml").write_text("a = ")
    (own.folder / "begun.init.toml").write_text('data = "x"')
    page = client.get("/schemas").text
    assert page.count("to be completed") == 2
    assert page.count("<td>complete</td>") == 1
    assert "begun" not in page
    assert "bounds are missing" in client.get("/schemas/draft.toml").text
    assert "cannot be shown as columns" in client.get("/schemas/broken.toml").text


def test_a_schema_shows_what_each_column_holds(client):
    page = client.get("/schemas/visits.toml").text
    for told in ("0 to 99", "north, south, west", "A release hides any one row"):
        assert told in page
    assert CANARY not in page


def test_one_key_changes_and_comments_stay(own, client):
    assert change(client, high="120", bins="11").status == 303
    before, after = OWN.splitlines(), text_of(own).splitlines()
    assert [x for x in after if x not in before] == [
        "bounds = [0, 120]  # no one is older",
        "bins = 11",
    ]
    assert change(client).status == 303
    assert text_of(own) == OWN


def test_a_field_that_is_wrong_is_told_where_it_is_and_nothing_is_written(own, client):
    for fields, field in [
        ({"low": "9", "high": "1"}, "low"),
        ({"low": "nine"}, "low"),
        ({"high": ""}, "low"),
        ({"bins": "1000"}, "low"),
        ({"kind": "category"}, "low"),
        ({"branching": "two"}, "branching"),
        ({"cuts": "1, x"}, "cuts"),
        ({"kind": "category", "low": "", "high": ""}, "bins"),
        ({"kind": "category", "low": "", "high": "", "bins": ""}, "values"),
    ]:
        page = change(client, **fields)
        assert page.status == 422, fields
        assert f'id="{field}-fault"' in page.text, (fields, page.text)
    assert text_of(own) == OWN


def test_what_was_typed_stays_in_the_form(client):
    page = change(client, low="nine", description="<b>years</b> {{7*7}}")
    assert 'value="nine"' in page.text
    assert "&lt;b&gt;years&lt;/b&gt; {{7*7}}" in page.text


def test_a_file_that_changed_meanwhile_is_not_overwritten(own, client):
    page = client.get("/schemas/column", schema="visits.toml", column="age")
    newer = OWN.replace("north", "nord")
    (own.folder / "visits.toml").write_text(newer)
    seen = {"digest": page.field("digest")}
    for path, fields in [
        ("/schemas/column", AGE | ANSWERED | {"bins": "5"}),
        ("/schemas/column/remove", AGE),
        ("/schemas/text", {"schema": "visits.toml", "text": OWN}),
        ("/schemas/taxonomy", AGE | {"tree": json.dumps(group(None, "nord", "south", "west"))}),
    ]:
        given = fields | seen | ({"column": "ward"} if "tree" in fields else {})
        assert "has changed since" in client.post(path, given).text, path
    assert text_of(own) == newer


def test_columns_are_added_and_removed(own, client):
    new = {"is_new": "yes", "column": "{{7*7}}<script>", "kind": "category", "values": "a\r\nb\r\n"}
    bare = dict.fromkeys(ANSWERED, "")
    assert change(client, **bare | new).goes_to == "/schemas/visits.toml"
    page = client.get("/schemas/visits.toml").text
    assert "{{7*7}}&lt;script&gt;" in page
    assert "<script>\n" not in page.replace("<script src", "")
    assert load_schema(own.folder / "visits.toml")["{{7*7}}<script>"].labels == ("a", "b")
    assert "has a column" in change(client, **bare | new).text
    page = client.get("/schemas/column", schema="visits.toml", column="{{7*7}}<script>")
    gone = {"schema": "visits.toml", "column": "{{7*7}}<script>", "digest": page.field("digest")}
    assert client.post("/schemas/column/remove", gone).status == 303
    assert text_of(own) == OWN


def test_the_last_column_is_not_removed(own, client):
    for column in ("age", "ward", "ill"):
        page = client.get("/schemas/column", schema="visits.toml", column=column)
        sent = {"schema": "visits.toml", "column": column, "digest": page.field("digest")}
        last = client.post("/schemas/column/remove", sent)
    assert last.status == 422
    assert "ill" in text_of(own)


def test_a_draft_is_completed_column_by_column(own, client):
    (own.folder / "visits.toml").write_text(DRAFT)
    page = client.get("/schemas/column", schema="visits.toml", column="age")
    assert 'id="low-fault"' in page.text
    assert change(client, low="0", high="9", bins="").status == 303
    assert "bounds = [0, 9]" in text_of(own)
    assert "values are missing" in client.get("/schemas/visits.toml").text
    bare = dict.fromkeys(ANSWERED, "")
    assert change(client, **bare | {"column": "ward", "kind": "category"}).status == 422
    done = bare | {"column": "ward", "kind": "category", "values": "A\nB"}
    assert change(client, **done).status == 303
    assert load_schema(own.folder / "visits.toml").names == ("age", "ward")


def test_values_from_a_file_of_codes_lie_in_the_folder(own, client):
    (own.folder / "wards.csv").write_text("code,side\nnorth,cold\nsouth,warm\nwest,warm\n")
    (own.folder.parent / "secret.csv").write_text("code\nhidden-code\nother-code\n")
    bare = dict.fromkeys(ANSWERED, "") | {"column": "ward", "kind": "category"}
    for name in ("../secret.csv", "/etc/passwd", str(own.folder.parent / "secret.csv")):
        for path in ("/schemas/column", "/schemas/column/check"):
            for fields in ({"list_file": name}, {"values": "north", "groups": name}):
                page = client.post(path, AGE | bare | fields | {"digest": "x"})
                assert "not in the studio" in page.text, (name, path, fields)
    texts = OWN.replace('values = ["no", "yes"]', 'values = "../secret.csv"')
    for text in (texts, texts.replace('"../secret.csv"', '{ file = "../secret.csv" }')):
        page = client.post("/schemas/text", {"schema": "visits.toml", "digest": "x", "text": text})
        assert "not in the studio" in page.text
    assert not any("hidden-code" in each.text for _, each in client.seen)
    assert change(client, **bare, list_file="wards.csv", groups="wards.csv").status == 303
    item = load_schema(own.folder / "visits.toml")["ward"]
    assert item.taxonomy.labels(1) == ("cold", "warm")


def test_a_table_is_no_list_of_codes(own, client):
    (own.folder / "visits.csv").write_text(f"ward\n{CANARY}\nnorth\n")
    bare = dict.fromkeys(ANSWERED, "") | {"column": "ward", "kind": "category"}
    page = client.get("/schemas/column", schema="visits.toml", column="ward")
    assert '<option value="visits.csv"' not in page.text
    for path in ("/schemas/column", "/schemas/column/check"):
        page = client.post(path, AGE | bare | {"list_file": "visits.csv", "digest": "x"})
        assert "values are private" in page.text
        assert CANARY not in page.text


def test_a_file_outside_that_was_named_by_hand_may_stay(own, client):
    (own.folder.parent / "wards.csv").write_text("code\nnorth\nsouth\n")
    text = OWN.replace('["north", "south", "west"]', '"../wards.csv"')
    (own.folder / "visits.toml").write_text(text)
    assert change(client, bins="5").status == 303
    assert '"../wards.csv"' in text_of(own)


def test_the_check_tells_levels_and_faults_and_writes_nothing(own, client):
    page = client.post(
        "/schemas/column/check", AGE | ANSWERED | {"branching": "2"}, HX_Request="true"
    )
    assert "10 cells" in page.text
    assert "<html" not in page.text
    bad = client.post("/schemas/column/check", AGE | ANSWERED | {"low": "x"}, HX_Request="true")
    assert (bad.status, "no number" in bad.text) == (200, True)
    assert text_of(own) == OWN


def test_head_and_words_for_publication(own, client):
    page = client.get("/schemas/visits.toml")
    sent = dict.fromkeys(("unit", "unit_name", *Publication.__dataclass_fields__), "")
    sent |= {"schema": "visits.toml", "digest": page.field("digest"), "name": "stays"}
    sent |= {"title": 'Visits\r\n"quoted"', "unit": "patient"}
    assert client.post("/schemas/head", sent).status == 303
    schema = load_schema(own.folder / "visits.toml")
    assert (schema.name, schema.unit) == ("stays", "patient")
    assert schema.publication.title == 'Visits "quoted"'
    assert "# Left out:\n# email" in text_of(own)
    page = client.post("/schemas/head", sent | {"unit": "", "unit_name": "ship", "digest": "x"})
    assert page.status == 422
    assert 'value="ship"' in page.text


def test_the_text_is_saved_if_it_is_a_schema(own, client):
    page = client.get("/schemas/text", schema="visits.toml")
    assert "no one is older" in page.text
    sent = {"schema": "visits.toml", "digest": page.field("digest")}
    for text in ("a = ", OWN + "nonsense = 1\n", OWN.replace("99", "-1"), "", "[columns]\n"):
        refused = client.post("/schemas/text", sent | {"text": text})
        assert refused.status == 422, text
    assert text_of(own) == OWN
    stated = OWN + '\n[[impossible]]\nwhere = "age < 10 and ill = yes"\n'
    assert client.post("/schemas/text", sent | {"text": stated.replace("\n", "\r\n")}).status == 303
    assert text_of(own) == stated
    assert "age &lt; 10" in client.get("/schemas/visits.toml").text


@pytest.mark.parametrize(
    "name", ["../visits.toml", "/etc/passwd", "visits.parquet", "books.db", "none.toml", "x\r\ny"]
)
def test_other_files_are_not_opened_or_written(own, client, name):
    (own.folder.parent / "visits.toml").write_text(OWN)
    answers = [
        client.get("/schemas/" + name.replace("\r\n", "%0D%0A").replace("../", "%2e%2e/")),
        client.get("/schemas/text", schema=name),
        client.get("/schemas/column", schema=name, column="age"),
        client.get("/schemas/taxonomy", schema=name, column="age"),
        client.post("/schemas/text", {"schema": name, "digest": "x", "text": OWN}),
        client.post("/schemas/compare", {"schema": name, "data": "visits.parquet"}),
        client.post("/schemas/compare", {"schema": "visits.toml", "data": name}),
    ]
    assert {answer.status for answer in answers[:-1]} <= {404, 422}
    assert not any("root:" in answer.text for answer in answers)


DATED = """\
[columns.admitted]
kind = "date"
bounds = [2023-01-01, 2024-12-31]  # the period
bins = "month"

[columns.weekday]
from = "admitted"
part = "weekday"
"""


def test_dates_and_their_parts_are_changed_like_others(own, client):
    (own.folder / "visits.toml").write_text(DATED)
    page = client.get("/schemas/column", schema="visits.toml", column="admitted")
    assert 'value="2024-12-31"' in page.text
    assert "Edit its taxonomy" not in page.text
    given = {"column": "admitted", "kind": "date", "low": "2023-01-01", "high": "2024-12-31"}
    assert change(client, **given | {"bins": "month"}).status == 303
    assert text_of(own) == DATED
    assert change(client, **given | {"bins": "quarter", "format": "%d.%m.%Y"}).status == 303
    assert "bounds = [2023-01-01, 2024-12-31]  # the period" in text_of(own)
    item = load_schema(own.folder / "visits.toml")["admitted"]
    assert (item.size, item.format) == (8, "%d.%m.%Y")
    bare = dict.fromkeys(ANSWERED, "") | {"column": "weekday", "kind": "", "from": "admitted"}
    assert change(client, **bare | {"part": "month"}).status == 303
    assert 'part = "month"' in text_of(own)
    refused = client.get("/schemas/taxonomy", schema="visits.toml", column="admitted")
    assert "levels of the calendar" in refused.text


def test_what_the_name_of_a_column_says_can_be_taken_over(own, client):
    (own.folder / "visits.toml").write_text(DRAFT)
    asked = {"schema": "visits.toml", "column": "age"}
    assert "take=proposal" in client.get("/schemas/column", **asked).text
    page = client.get("/schemas/column", **asked, take="proposal")
    assert 'value="0, 5, 10, 15' in page.text
    assert text_of(own) == DRAFT


# ---- taxonomies


def test_a_drawn_tree_is_checked_and_saved(own, client):
    page = client.get("/schemas/taxonomy", schema="visits.toml", column="ward")
    assert page.text.count("<li data-name") == 3
    tree = group(None, group("warm", "west", "south"), "north")
    told = draw(client, "ward", tree, "/schemas/taxonomy/check")
    assert "Every value is in the tree once" in told.text
    assert text_of(own) == OWN
    assert draw(client, "ward", tree).status == 303
    item = load_schema(own.folder / "visits.toml")["ward"]
    assert item.taxonomy.labels(1) == ("warm", "north", "other")
    assert 'values = ["north", "south", "west"]' in text_of(own)
    again = client.get("/schemas/taxonomy", schema="visits.toml", column="ward", saved="yes")
    assert '<li data-name="warm">' in again.text
    assert draw(client, "ward", group(None, "north", "south", "west")).status == 303
    assert text_of(own) == OWN


def test_ranges_of_numbers_are_grouped_with_their_neighbors(own, client):
    labels = [f"{n}0..{n}9" if n else "0..9" for n in range(10)]
    tree = group(None, group("minor", *labels[:2]), group(None, *labels[2:]))
    assert draw(client, "age", tree).status == 303
    item = load_schema(own.folder / "visits.toml")["age"]
    assert item.taxonomy.labels(1) == ("minor", "20..99")
    assert item.bounds == (0, 99)
    assert "# in years" in text_of(own)
    torn = group(None, group("ends", labels[0], labels[9]), *labels[1:9])
    refused = draw(client, "age", torn)
    assert refused.status == 422
    assert "gap" in refused.text
    assert '<li data-name="ends">' in refused.text  # what was drawn is not lost
    page = client.get("/schemas/column", schema="visits.toml", column="age")
    assert "taxonomy says the bounds" in page.text
    assert change(client, low="", high="", bins="", description="age at admission").status == 303
    assert load_schema(own.folder / "visits.toml")["age"].taxonomy.labels(1) == ("minor", "20..99")


@pytest.mark.parametrize(
    ("tree", "told"),
    [
        (group(None, "north", "south"), "lacks"),
        (group(None, "north", "south", "west", "west"), "twice"),
        (group(None, "north", "south", "west", "<script>"), "no value of the column"),
        (group(None, "north", "south", "west", group("empty")), "empty"),
        (group(None, group("north", "north", "south"), "west"), "twice"),
        ("a tree", "no drawn tree"),
        (None, "no drawn tree"),
    ],
)
def test_trees_that_are_none_are_refused(own, client, tree, told):
    for path in ("/schemas/taxonomy", "/schemas/taxonomy/check"):
        answer = draw(client, "ward", tree, path)
        assert told in answer.text
        assert "<script>" not in answer.text.replace("<script src", "")
    assert "no drawn tree" in draw(client, "ward", "", tree="[" * 100_000).text
    assert text_of(own) == OWN


def test_readers_see_schemas_and_change_nothing(own):
    reader = own.client("reader")
    for path in ("/schemas", "/schemas/visits.toml"):
        page = reader.get(path)
        assert page.status == 200
        assert "<form" not in page.text
    tree = reader.get("/schemas/taxonomy", schema="visits.toml", column="ward")
    assert "taxonomy.js" not in tree.text
    assert reader.get("/schemas/column", schema="visits.toml", column="age").status == 403
    assert reader.post("/schemas/compare", {"schema": "visits.toml"}).status == 403


# ---- what reads rows


def test_a_comparison_is_stamped_and_shown_once(own, client):
    sent = client.post("/schemas/compare", {"schema": "visits.toml", "data": "visits.parquet"})
    page = client.look(sent.goes_to)
    assert "NOT PRIVATE" in page.text
    assert "1 value (0.11 %) is not listed" in page.text
    assert "900" in page.text
    assert page.headers["cache-control"] == "no-store"
    again = client.get(sent.goes_to)
    assert (again.status, "shown once and not kept" in again.text) == (410, True)
    assert "900" not in again.text
    work = sent.goes_to.replace("/looks/", "/jobs/")
    assert "900" not in client.get(work).text
    assert own.client("reader").get(sent.goes_to).status == 403
    assert own.spent() == 0
    assert not any(CANARY in each.text for _, each in client.seen)


def test_bounds_are_measured_once_and_entered(own, client):
    text = OWN.replace("bounds = [0, 99]  # no one is older\nbins = 10\n", "bins = 10\n")
    (own.folder / "visits.toml").write_text(text)
    form = client.get("/schemas/bounds", schema="visits.toml", column="age")
    assert "Nothing is spent before you confirm" in form.text
    wanted = {"schema": "visits.toml", "column": "age", "dataset": "visits", "epsilon": "0.5"}
    wanted |= {"data": "visits.parquet", "coverage": "0.95", "lower": "0"}
    review = client.get("/schemas/bounds", **wanted)
    assert "Left afterward" in review.text
    sent = wanted | {"upper": "", "contribution": "", "output": "ages"}
    sent |= {"key": review.field("key"), "confirm": "visits"}
    assert client.post("/schemas/bounds", sent | {"confirm": "visit"}).status == 422
    assert own.spent() == 0
    first, second = (client.post("/schemas/bounds", sent) for _ in range(2))
    assert first.goes_to == second.goes_to
    client.wait(first.goes_to)
    assert client.get(first.goes_to.replace("/jobs/", "/looks/")).status == 410  # it is no look
    assert "Open it" in client.get(first.goes_to).text
    assert own.spent() == 0.5
    assert load_schema(own.folder / "visits.toml")["age"].bounds[0] == 0
    assert (own.folder / "releases" / "ages" / "release.json").exists()
    with Ledger(own.folder / "books.db") as ledger:
        assert len(ledger.status("visits").grants) == 1


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"epsilon": "50"}, "5 left"),
        ({"column": "ward"}, "only numbers and dates have bounds"),
        ({"dataset": "other"}, "other"),
        ({"data": "../x.csv"}, "not in the studio"),
        ({"output": "../x"}, "cannot be a name"),
        ({"key": "made-up"}, "out of date"),
    ],
)
def test_bounds_that_cannot_be_measured_cost_nothing(own, client, changes, told):
    text = OWN.replace("bounds = [0, 99]  # no one is older\nbins = 10\n", "bins = 10\n")
    (own.folder / "visits.toml").write_text(text)
    wanted = {"schema": "visits.toml", "column": "age", "dataset": "visits", "epsilon": "0.5"}
    wanted |= {"data": "visits.parquet", "lower": "0"} | changes
    review = client.get("/schemas/bounds", **wanted)
    answer = review
    if review.status == 200:
        key = {"key": review.field("key"), "confirm": "visits", "output": "ages"}
        answer = client.post("/schemas/bounds", wanted | key | changes)
    assert told in answer.text
    assert own.spent() == 0
    assert text_of(own) == text
