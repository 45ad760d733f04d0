"""How the status of a dataset shows itself in notebooks; and what an entry's schema says."""

import json
from datetime import UTC, datetime
from fractions import Fraction

import jsonschema
import pytest

from dpublish.display import Card
from dpublish.ledger import chain
from dpublish.ledger.account import Status
from dpublish.ledger.ledger import Ledger
from dpublish.privacy.neighbors import AddRemoveRecord
from dpublish.randomness import secure
from ledger.ledger_forgery import make_honest, read

NOON = datetime(2026, 7, 1, 12, 30, 59, tzinfo=UTC)
EMPTY = Status("census", Fraction(2), Fraction(0), ())


@pytest.fixture
def status(tmp_path):
    """Two grants, one of them published, and a fingerprint that nothing may show."""
    with Ledger.create(tmp_path / "books.db", clock=lambda: NOON) as ledger:
        ledger.add("census", cap="2", publisher="City of Example")
        first = grant(ledger, "0.3", "ages")
        ledger.publish(first.grant, "id7", "hash")
        grant(ledger, "1/3", "sexes")
        return ledger.status("census")


def grant(ledger, epsilon, purpose):
    asked = {"hides": AddRemoveRecord(), "rng": secure(), "fingerprint": "secret"}
    return ledger.grant("census", epsilon=epsilon, purpose=purpose, **asked)


def test_a_status_is_one_line_that_says_what_is_left(status):
    told = "Status('census', cap=2, spent=0.633333333333, left=1.36666666666, 2 grants)"
    assert repr(status) == told
    one = Status("census", Fraction(2), Fraction("0.3"), status.grants[:1])
    assert repr(one) == "Status('census', cap=2, spent=0.3, left=1.7, 1 grant)"
    assert repr(EMPTY).endswith("left=2, 0 grants)")


def test_a_notebook_shows_the_newest_grant_first(status):
    assert status._card() == Card(
        "Dataset census",
        {
            "cap": "epsilon 2",
            "spent": "epsilon 0.633333333333",
            "left": "epsilon 1.36666666666",
            "hidden": "one record",
            "publisher": "City of Example",
        },
        ("entry", "time (UTC)", "epsilon", "purpose", "state"),
        [
            ["5", "2026-07-01T12:30", "0.333333333333", "sexes", "interrupted or running"],
            ["3", "2026-07-01T12:30", "0.3", "ages", "published"],
        ],
    )


def test_a_notebook_shows_no_table_before_the_first_grant():
    card = EMPTY._card()
    assert card.pairs["hidden"] == "decided by the first grant"
    assert not card.pairs.keys() & {"publisher", "contact"}
    assert (card.headers, card.rows) == ((), [])


def test_grants_are_records_of_a_frame(status):
    table = status.to_arrow()
    shared = {"time": "2026-07-01T12:30:59+00:00"}
    assert table.to_pylist() == [
        shared
        | {
            "entry": 3,
            "epsilon": 0.3,
            "exact": "0.3",
            "purpose": "ages",
            "state": "published",
            "release_id": "id7",
        },
        shared
        | {
            "entry": 5,
            "epsilon": 1 / 3,
            "exact": "1/3",
            "purpose": "sexes",
            "state": "interrupted or running",
            "release_id": None,
        },
    ]
    assert EMPTY.to_arrow().schema == table.schema
    assert EMPTY.to_arrow().num_rows == 0


def test_a_chart_shows_every_grant_and_what_is_left(status):
    axes = status.plot().axes[0]
    assert [label.get_text() for label in axes.get_yticklabels()] == ["3: ages", "5: sexes", "left"]
    widths = [column.get_width() for column in axes.patches]
    assert widths == [0.3, 1 / 3, float(status.left)]
    assert axes.get_title(loc="left") == "census: epsilon 2 in all"
    assert axes.get_xlabel() == "epsilon"


def test_nothing_that_a_notebook_shows_holds_a_fingerprint(status):
    assert status.grants[0].fingerprint == "secret"
    shown = [repr(status), status._repr_html_(), str(status.to_arrow()), str(status.to_dict())]
    assert not [text for text in shown if "secret" in text or "fingerprint'" in text]


# The schema of an entry


@pytest.fixture
def entries(tmp_path):
    """Entries of every kind."""
    make_honest(tmp_path / "old.db")
    with Ledger(tmp_path / "old.db") as ledger:
        ledger.set_anchor(tmp_path / "anchor")
        ledger.describe("clinic", publisher="City of Example")
        ledger.move_to(tmp_path / "new.db")
    return read(tmp_path / "new.db")


def by_kind():
    return {kind["title"]: kind for kind in chain.json_schema()["anyOf"]}


def test_the_schema_describes_every_kind_of_entry(entries):
    jsonschema.Draft202012Validator.check_schema(chain.json_schema())
    assert by_kind().keys() == {entry.kind for entry in entries}
    for entry in entries:
        schema = jsonschema.Draft202012Validator(by_kind()[entry.kind])
        assert list(schema.iter_errors(json.loads(entry.body))) == []
    assert by_kind()["grant"]["description"] == (
        "Epsilon was debited: at each level its own amount, or the same at all."
    )


@pytest.mark.parametrize(
    "break_it",
    [
        lambda body: body.pop("cap"),
        lambda body: body.update(cap=2),
        lambda body: body.update(purpose=None),
        lambda body: body.update(fingerprinted="yes"),
    ],
)
def test_the_schema_refuses_what_no_ledger_reads(entries, break_it):
    (body, *_) = (json.loads(entry.body) for entry in entries if entry.kind == "grant")
    schema = jsonschema.Draft202012Validator(by_kind()["grant"])
    assert schema.is_valid(body)
    break_it(body)
    assert not schema.is_valid(body)
