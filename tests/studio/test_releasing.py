"""A release is paid for once, whatever the browser does, and refusals cost nothing."""

import socket
import threading
from urllib.parse import parse_qs, urlencode

import pytest

from dpublish import load
from dpublish.ledger.ledger import Ledger
from dpublish.privacy.neighbors import AddRemoveRecord
from dpublish.randomness import secure
from dpublish.studio.wanted import Wanted
from studio_world import until

WANTED = {
    "dataset": "visits",
    "data": "visits.parquet",
    "schema": "visits.toml",
    "method": "histogram",
    "set-columns": "ward",
    "epsilon": "0.5",
}


def review(client, **changes):
    return client.get("/release", **WANTED | changes)


def form(page, **changes):
    sent = {name: page.field(name) for name in ("key",)}
    sent |= {"output": "wards", "confirm": "visits"}
    return WANTED | sent | changes


def publish(client, **changes):
    answer = client.post("/release", form(review(client), **changes))
    assert answer.status == 303
    return client.wait(answer.goes_to)


def test_a_form_publishes_what_the_review_showed(world):
    client = world.client()
    page = review(client)
    assert "Left afterward" in page.text
    done = client.wait(client.post("/release", form(page)).goes_to)
    assert "/releases/wards" in done.text
    release = load(world.folder / "releases" / "wards")
    assert (release.kind, release.receipt.epsilon) == ("histogram", 0.5)
    assert world.spent() == 0.5
    assert "wards" in client.get("/datasets/visits").text


def test_a_double_click_publishes_once(world):
    client = world.client()
    page = review(client)
    first, second = (client.post("/release", form(page)) for _ in range(2))
    assert first.goes_to == second.goes_to
    client.wait(first.goes_to)
    assert world.spent() == 0.5
    third = client.post("/release", form(page, output="again"))  # the back button
    assert third.goes_to == first.goes_to
    assert world.spent() == 0.5


def test_two_tabs_publish_once(world):
    one, other = world.client(), world.client()
    pages = [review(one), review(one), review(other)]
    answers = [
        one.post("/release", form(pages[0])),
        one.post("/release", form(pages[1])),
        other.post("/release", form(pages[2])),
    ]
    assert len({answer.goes_to for answer in answers}) == 1
    one.wait(answers[0].goes_to)
    assert world.spent() == 0.5


def test_the_same_request_is_published_again_only_by_a_tick(world):
    client = world.client()
    publish(client)
    page = review(client)
    assert "published or begun before" in page.text
    refused = client.post("/release", form(page, output="again"))
    assert refused.status == 422
    assert world.spent() == 0.5
    client.wait(client.post("/release", form(page, output="again", again="yes")).goes_to)
    assert world.spent() == 1


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"confirm": "visit"}, "type the name of the dataset"),
        ({"epsilon": "0"}, "epsilon"),
        ({"epsilon": "50"}, "5 left"),
        ({"set-columns": "ill", "key": "kept"}, "out of date"),
        ({"epsilon": "a lot"}, "epsilon"),
        ({"data": "../visits.parquet"}, "not in the studio"),
        ({"data": "none.parquet"}, "there is no file"),
        ({"schema": "none.toml"}, "there is no file"),
        ({"method": "histogramm"}, "histogram"),
        ({"set-columns": "income"}, "income"),
        ({"dataset": "others", "confirm": "others"}, "others"),
        ({"output": "../elsewhere"}, "name"),
        ({"key": "made-up"}, "out of date"),
        ({"csrf": "made-up"}, "out of date"),
    ],
)
def test_what_cannot_be_published_costs_nothing(world, changes, told):
    client = world.client()
    asked = review(client, **{name: text for name, text in changes.items() if name in WANTED})
    answer = asked
    if asked.status == 200:
        answer = client.post("/release", form(asked, **changes))
    if answer.status == 303:
        answer = client.wait(answer.goes_to)
    assert told in answer.text
    assert world.spent() == 0
    assert not [*(world.folder / "releases").glob("*/")]


def test_a_cap_that_does_not_suffice_refuses_before_any_row_is_read(world):
    with Ledger(world.folder / "books.db") as ledger:
        ledger.change_cap("visits", "0.3", "less")
    client = world.client()
    page = review(client)
    assert "not enough" in page.text
    answer = client.post("/release", form(page))
    assert answer.status == 422
    assert "0.3 left" in answer.text
    assert world.spent() == 0


def test_a_killed_studio_does_not_repeat_what_it_was_asked(world, monkeypatch):
    client = world.client()
    page = review(client)
    spends = world.studio.spends
    begun = []
    monkeypatch.setattr(world.studio.jobs, "start", lambda *args, **given: begun.append(given))
    answer = client.post("/release", form(page))
    assert len(begun) == 1
    spends.process = "the next run"  # and the job is gone, as after a kill
    told = client.get(answer.goes_to)
    assert "ended while it worked" in told.text
    assert client.post("/release", form(page)).goes_to == answer.goes_to
    assert len(begun) == 1
    assert "The studio stopped" in client.get("/").text


def test_a_lost_connection_publishes_once(world):
    client = world.client()
    sent = urlencode(form(review(client)) | {"csrf": client.csrf})
    head = (
        f"POST /release HTTP/1.1\r\nHost: {world.host}\r\nOrigin: {world.origin}\r\n"
        f"Cookie: {client.cookie}\r\nContent-Type: application/x-www-form-urlencoded\r\n"
        f"Content-Length: {len(sent)}\r\n\r\n"
    )
    with socket.create_connection(("127.0.0.1", world.port)) as connection:
        connection.sendall((head + sent).encode())  # and no answer is waited for
    key = parse_qs(sent)["key"][0]
    until(lambda: world.studio.spends.find(key))
    again = client.ask(
        "POST",
        "/release",
        sent,
        Origin=world.origin,
        Content_Type="application/x-www-form-urlencoded",
    )
    client.wait(again.goes_to)
    assert world.spent() == 0.5


def test_a_stopped_release_publishes_nothing_and_says_what_was_debited(world, monkeypatch):
    client = world.client()
    reading, go_on = threading.Event(), threading.Event()

    def publish_slowly(wanted, desk, output, progress):
        with desk.open_ledger() as ledger:
            hides = AddRemoveRecord()
            ledger.grant("visits", epsilon="0.5", purpose="ages", hides=hides, rng=secure())
        reading.set()
        go_on.wait(20)
        progress(1, 2, "rounds")
        raise AssertionError("it went on")

    monkeypatch.setattr(Wanted, "publish", publish_slowly)
    path = client.post("/release", form(review(client))).goes_to
    assert reading.wait(20)
    assert client.post(f"{path}/cancel").goes_to == path
    go_on.set()
    assert "It was stopped" in client.wait(path).text
    assert "interrupted or running" in client.get("/datasets/visits").text
    assert world.spent() == 0.5
