"""The review reckons as the ledger does: what each level pays, and what adds up."""

import re
from fractions import Fraction

import pytest

from dpublish.ledger.ledger import Ledger
from dpublish.privacy.neighbors import UserInWindow
from dpublish.randomness import secure

WANTED = {"data": "visits.parquet", "schema": "visits.toml", "epsilon": "1"}
PERSONAL = WANTED | {
    "dataset": "personal",
    "method": "minimum",
    "set-levels": "0.1,1",
    "set-inner": "histogram columns=ward",
    "set-preference": "age",
    "set-rule": "0..49=0.1, 50..=1",
    "set-derived": "true",
}


@pytest.fixture
def client(world):
    with Ledger(world.folder / "books.db") as ledger:
        ledger.add("personal", levels=["0.1", "1"])
    return world.client()


def words(answer):
    return " ".join(re.sub(r"<[^>]*>", " ", answer.text).split())


def test_a_personalized_release_pays_less_at_low_levels(world, client):
    review = client.get("/release", **PERSONAL)
    assert "Left now 0.1 Left afterward 0" in words(review)
    assert "at most 52.5 % sure" in words(review)  # each level pays 0.1
    form = PERSONAL | {"key": review.field("key"), "output": "wards", "confirm": "personal"}
    assert "Open it" in client.wait(client.post("/release", form).goes_to).text
    assert world.spent("personal") == Fraction(1, 10)
    again = client.get("/release", **PERSONAL)
    assert "Left now 0 Left afterward not enough" in words(again)
    form |= {"key": again.field("key"), "output": "more", "again": "yes"}
    refused = client.post("/release", form)
    assert refused.status == 422
    assert "personal has epsilon 0 left, less than 0.1" in words(refused)
    assert world.spent("personal") == Fraction(1, 10)


def test_other_levels_than_the_ledgers_are_refused(world, client):
    other = PERSONAL | {"set-levels": "0.5,1", "set-rule": "0..49=0.5, 50..=1"}
    assert "has other levels in the ledger" in words(client.get("/release", **other))
    assert "a cap for all and no levels" in words(
        client.get("/release", **PERSONAL | {"dataset": "visits"})
    )


def test_what_does_not_add_up_with_earlier_releases_is_refused_at_once(world, client):
    with Ledger(world.folder / "books.db") as ledger:
        hides = UserInWindow("person", 24)
        ledger.grant("visits", epsilon="0.1", purpose="a stream", hides=hides, rng=secure())
    asked = WANTED | {"dataset": "visits", "method": "histogram", "set-columns": "ward"}
    assert "their epsilons do not add up" in words(client.get("/release", **asked))
