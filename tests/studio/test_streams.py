"""Streams are started once, moved on once for each label, and stopped by name."""

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from dpublish import load
from dpublish.publishing.streams.status import stream_status
from releases_world import STREAM as WANTED
from releases_world import write_snapshots
from studio_world import CANARY

PAGE = "/streams/releases/days"


def review(client, **changes):
    return client.get("/streams/review", **WANTED | changes)


def form(page, **changes):
    sent = {"key": page.field("key"), "output": "days", "confirm": "visits"}
    return WANTED | sent | changes


def start(client, **changes):
    write_snapshots(client.world.folder)
    answer = client.post("/streams/start", form(review(client, **changes), **changes))
    assert answer.status == 303, answer.text
    return client.wait(answer.goes_to)


def take(client, day, **changes):
    sent = {"file": f"2024-05-0{day}.parquet"} | changes
    answer = client.post(f"{PAGE}/next", sent)
    return client.wait(answer.goes_to) if answer.status == 303 else answer


def state_of(world):
    return stream_status(world.folder / "releases" / "days.stream")


def test_a_stream_is_started_as_the_review_showed(world):
    client = world.client()
    page = review(client)
    assert "all 3 steps together" in page.text
    assert "Left afterward" in page.text
    assert world.spent() == 0
    done = start(client)
    assert f'href="{PAGE}"' in done.text
    assert world.spent() == 1
    status = state_of(world)
    assert (status.method, status.horizon, status.epsilon) == ("per-snapshot", 3, 1)
    assert (world.folder / "releases" / "days.stream").stat().st_mode & 0o077 == 0


def test_a_start_that_is_sent_twice_is_paid_for_once(world):
    client, other = world.client(), world.client()
    pages = [review(client), review(other)]
    answers = [client.post("/streams/start", form(page)) for page in (*pages, pages[0])]
    assert len({each.goes_to for each in answers}) == 1
    client.wait(answers[0].goes_to)
    client.post("/streams/start", form(pages[0], output="more"))
    assert world.spent() == 1


def test_a_start_that_was_interrupted_goes_on_under_its_name(world):
    client = world.client()
    start(client)
    page = review(client)
    assert "published or begun before" in page.text
    assert client.post("/streams/start", form(page)).status == 422
    again = client.post("/streams/start", form(page, again="yes"))
    assert "nothing was debited again" in client.wait(again.goes_to).text
    assert world.spent() == 1


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"confirm": "days"}, "type the name of the dataset"),
        ({"epsilon": "50"}, "5 left"),
        ({"set-horizon": "0"}, "steps"),
        ({"set-columns": "income"}, "income"),
        ({"set-trust_rows": ""}, "trust"),
        ({"set-window": "3"}, "either horizon"),
        ({"method": "per-snap"}, "per-snap"),
        ({"schema": "../visits.toml"}, "not in the studio"),
        ({"data": "none.parquet"}, "there is no file"),
        ({"output": "../elsewhere"}, "name"),
        ({"key": "made-up"}, "out of date"),
        ({"csrf": "made-up"}, "out of date"),
    ],
)
def test_what_cannot_be_started_costs_nothing(world, changes, told):
    client = world.client()
    answer = review(
        client,
        **{name: text for name, text in changes.items() if name in (*WANTED, "data", "set-window")},
    )
    if answer.status == 200:
        answer = client.post("/streams/start", form(answer, **changes))
    if answer.status == 303:
        answer = client.wait(answer.goes_to)
    assert told in answer.text
    assert world.spent() == 0
    assert not [*(world.folder / "releases").glob("*.stream")]


def test_a_first_snapshot_without_the_columns_stops_the_start(world):
    pq.write_table(pa.table({"town": ["x"]}), world.folder / "wrong.parquet")
    client = world.client()
    answer = client.post(
        "/streams/start", form(review(client, data="wrong.parquet"), data="wrong.parquet")
    )
    assert "ward" in client.wait(answer.goes_to).text
    assert world.spent() == 0


def test_each_click_on_a_file_publishes_it_once(world):
    client = world.client()
    start(client)
    answers = [client.post(f"{PAGE}/next", {"file": "2024-05-01.parquet"}) for _ in range(3)]
    assert len({each.goes_to for each in answers}) == 1
    assert "step 1, 2024-05-01" in client.wait(answers[0].goes_to).text
    assert "step 2, 2024-05-02" in take(client, 2).text
    take(client, 1)  # the back button
    assert state_of(world).steps == 2
    assert load(world.folder / "releases" / "days").times == ("2024-05-01", "2024-05-02")
    assert world.spent() == 1


def test_a_step_that_was_published_elsewhere_is_not_repeated(world):
    client = world.client()
    start(client)
    take(client, 1)
    world.studio.jobs._jobs.clear()  # as after the studio was started anew
    assert "was published already" in take(client, 1).text
    assert state_of(world).steps == 1


@pytest.mark.parametrize(
    ("sent", "told"),
    [
        ({"file": "2024-05-01.parquet"}, "does not come after"),
        ({"file": "2024-05-03.parquet", "time": "later"}, "tick that the label may differ"),
        ({"file": "2024-05-03.parquet", "time": "a\nb"}, "one line"),
        ({"file": "../x.parquet"}, "not in the studio"),
        ({"file": ""}, "missing"),
        ({"file": "2024-05-03.parquet", "sign": "none.key"}, "there is no file"),
    ],
)
def test_a_step_that_cannot_be_is_refused(world, sent, told):
    client = world.client()
    start(client)
    take(client, 2)
    answer = client.post(f"{PAGE}/next", sent)
    if answer.status == 303:
        answer = client.wait(answer.goes_to)
    assert told in answer.text
    assert state_of(world).steps == 1


def test_the_page_says_what_is_done_and_what_can_be_next(world):
    client = world.client()
    start(client)
    take(client, 1)
    page = client.get(PAGE)
    assert "1 of 3" in page.text
    assert "Files that could be next: <code>2024-05-02.parquet</code>" in page.text
    drawn = client.get(f"{PAGE}/counts.svg")
    assert drawn.headers["content-type"] == "image/svg+xml"
    assert drawn.text.startswith("<svg xmlns=")
    assert "days" in client.get("/streams").text
    assert CANARY not in "".join(answer.text for path, answer in client.seen)


def test_a_stream_is_stopped_by_its_name_alone(world):
    client = world.client()
    start(client)
    assert client.post(f"{PAGE}/stop", {"confirm": "visits"}).status == 422
    assert state_of(world).phase == "running"
    assert client.post(f"{PAGE}/stop", {"confirm": "days"}).status == 303
    assert state_of(world).phase == "stopped"
    assert "There is no next step" in client.get(PAGE).text
    assert "stopped for good" in take(client, 1).text


def test_the_counts_of_a_step_are_asked_by_its_label(world):
    client = world.client()
    start(client)
    for day in (1, 2):
        take(client, day)
    release = load(world.folder / "releases" / "days")
    for time in release.times:
        told = client.get("/releases/days/ask", q="ward = north", time=time)
        assert str(release.count("ward = north", time=time)) in told.text


def test_damage_is_told(world):
    client = world.client()
    start(client)
    take(client, 1)
    (world.folder / "broken.stream").write_bytes(b"no state at all")
    (next((world.folder / "releases" / "days").rglob("*.parquet"))).unlink()
    page = client.get("/streams")
    assert "the counts of 1 steps are missing" in page.text
    assert "broken" in page.text
    assert client.get("/streams/files/broken").status >= 400


@pytest.mark.parametrize(
    "path",
    [
        "/streams/releases/..",
        "/streams/none/days",
        "/streams/files/a%2f..%2fb",
        "/streams/files/%00",
    ],
)
def test_names_lead_nowhere_else(world, path):
    for page in ("", "/counts.svg"):
        assert world.client().get(path + page).status in (404, 422)


def test_readers_look_and_change_nothing(world):
    client, reader = world.client(), world.client("reader")
    start(client)
    page = reader.get(PAGE)
    assert page.status == 200
    assert "<form" not in page.text
    assert reader.get("/streams").status == 200
    assert reader.get("/streams/start").status == 403
    assert reader.get("/streams/review", **WANTED).status == 403
    for path in ("/streams/start", f"{PAGE}/next", f"{PAGE}/stop"):
        assert reader.post(path, {"file": "2024-05-01.parquet", "confirm": "days"}).status == 403
    assert (state_of(world).phase, state_of(world).steps) == ("running", 0)


def test_the_form_asks_for_the_settings_of_the_method(world):
    client = world.client()
    assert 'name="set-window"' not in client.get("/streams/start").text
    page = client.get("/streams/start", method="bd", **{"set-window": "7"})
    assert 'name="set-window" type="text" value="7"' in page.text
    assert 'name="set-controller"' not in page.text


def test_the_report_of_a_stream_grows_with_it(world):
    client = world.client()
    start(client)
    for day in (1, 2):
        take(client, day)
        assert f"The last {day} of {day} steps" in client.get("/releases/days/report").text
