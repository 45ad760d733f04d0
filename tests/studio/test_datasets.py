"""Datasets: what is spent and left, caps that change for a reason, and what was interrupted."""

import pytest

from dpublish.ledger.ledger import Ledger
from dpublish.privacy.neighbors import AddRemoveRecord
from dpublish.randomness import secure
from dpublish.studio.desk import Desk
from studio_world import open_studio


def grant(world, epsilon, purpose):
    with Ledger(world.folder / "books.db") as ledger:
        hides, rng = AddRemoveRecord(), secure()
        ledger.grant("visits", epsilon=epsilon, purpose=purpose, hides=hides, rng=rng)


def test_a_dataset_shows_what_was_spent_and_when(world):
    for epsilon, purpose in (("0.5", "ages"), ("1", "<b>wards</b>")):
        grant(world, epsilon, purpose)
    text = world.client().get("/datasets/visits").text
    assert "<dd>3.5</dd>" in text
    assert "interrupted or running" in text
    assert "V 36.0 H" in text  # 0.5 of 5
    assert "V 28.0 H" in text  # and 1 more
    assert "&lt;b&gt;wards&lt;/b&gt;" in text
    assert "<b>wards" not in text


def test_a_ledger_is_made_and_datasets_are_added(tmp_path):
    with open_studio(tmp_path) as world:
        client = world.client()
        assert "There is no ledger yet" in client.get("/").text
        assert client.post("/ledger").goes_to == "/"
        sent = {"dataset": "a/b & c", "levels": "0.1, 1", "note": "of a team"}
        page = client.get(client.post("/datasets", sent).goes_to)
        assert page.status == 200
        assert "a/b &amp; c" in page.text
        assert "Levels" in page.text


@pytest.mark.parametrize(
    ("fields", "told"),
    [
        ({"dataset": "more"}, "a cap such as 2"),
        ({"dataset": "", "cap": "1"}, "dataset is missing"),
        ({"dataset": "visits", "cap": "1"}, "visits"),
        ({"dataset": "more", "cap": "0"}, "cap"),
        ({"dataset": "more", "cap": "much"}, "cap"),
        ({"dataset": "two\nlines", "cap": "1"}, "line"),
    ],
)
def test_what_cannot_be_added_says_why(world, fields, told):
    answer = world.client().post("/datasets", fields)
    assert answer.status in (404, 422)
    assert told in answer.text
    with Ledger(world.folder / "books.db") as ledger:
        assert ledger.datasets() == ("visits",)


def test_a_cap_changes_for_a_reason_only(world):
    client = world.client()
    assert client.post("/datasets/visits/cap", {"cap": "6", "reason": ""}).status == 422
    grant(world, "2", "ages")
    assert "spent already" in client.post("/datasets/visits/cap", {"cap": "1", "reason": "x"}).text
    client.post("/datasets/visits/cap", {"cap": "6", "reason": "asked by the board"})
    assert "<dd>6</dd>" in client.get("/datasets/visits").text


def test_publisher_and_contact_are_stated_and_kept(world):
    client = world.client()
    for publisher in ("City of Example", "Town of <Example>"):
        sent = {"publisher": publisher, "contact": "dp@example.org"}
        assert client.post("/datasets/visits/about", sent).goes_to == "/datasets/visits"
    text = client.get("/datasets/visits").text
    assert "Published by Town of &lt;Example&gt;; contact: dp@example.org." in text
    assert "publisher: City of Example" in text  # what was entered before
    assert client.post("/datasets/visits/about", {"publisher": "x" * 500}).status == 422


def test_a_ledger_that_cannot_be_read_is_a_page_and_no_fault(world):
    (world.folder / "books.db").write_bytes(b"no ledger")
    answer = world.client().get("/")
    assert answer.status == 404
    assert "is not a ledger" in answer.text
    assert isinstance(world.studio.desk, Desk)
