"""The whole way through the studio in a browser, and what happens when it is left or repeated."""

import re
import threading
from fractions import Fraction
from urllib.parse import parse_qsl, urlsplit

import pytest

from browser.checks import broken_words, sideways, violations
from dpublish import datasets, load
from dpublish.core.folder.folder import is_signed
from dpublish.core.folder.signing import create_key
from dpublish.errors import InputError
from dpublish.ledger.ledger import Ledger
from dpublish.studio.spends import Spend, now
from dpublish.studio.wanted import Wanted
from studio.test_killed_studio import running, spent
from studio_world import CANARY, open_studio, until, write_files

_MOST_BYTES = 200_000
"""No page is larger, with its styles, scripts and pictures."""
WANTED = "dataset=visits&data=visits.parquet&schema=visits.toml&method=histogram&epsilon=0.5"
REVIEW = f"/release?{WANTED}&set-columns=ward"


class Desk:
    """An owner's browser: it notes every page, what it weighs, and all that it was sent."""

    def __init__(self, visit, world, look="light"):
        self.world, self.begun = world, visit(look)
        self.page = self.begun.context.new_page()
        self.sent, self.weights, self.said = [], {}, []
        self.page.on("response", self._note)
        self.page.on("console", lambda message: self.said.append(message.text))
        self.page.goto(f"{world.origin}/enter?token={world.access.make_token('owner')}")

    def _note(self, response):
        if response.status in (301, 302, 303) or "/events" in response.url:
            return
        try:
            body = response.body()
        except Exception:  # noqa: BLE001 - a page that was left has no body any more
            return
        self.sent.append((response.url, body))
        frame = response.request.frame.url  # a report within a page is a page of its own
        self.weights[frame] = self.weights.get(frame, 0) + len(body)

    def go(self, path):
        self.page.goto(self.world.origin + path)
        return self.page

    def press(self, name):
        self.page.get_by_role("button", name=name).first.click()
        self.page.wait_for_load_state()

    def follow(self, name):
        self.page.get_by_role("link", name=name).first.click()
        self.page.wait_for_load_state()

    def fill(self, **fields):
        for name, text in fields.items():
            self.page.fill(f"[name='{name}']", text)

    def done(self):
        """Wait until the work that is shown has ended."""
        self.page.get_by_role("link", name="Open it").wait_for(timeout=60_000)

    @property
    def text(self):
        return self.page.inner_text("main")


@pytest.fixture
def clinic(tmp_path):
    """A studio without a ledger, beside a table of 24 columns, lists of codes and a key."""
    datasets.write_clinic(tmp_path, 1_000)
    table = tmp_path / "visits.csv"
    rows = table.read_text().splitlines()
    number = rows[0].split(",").index("notes")
    cells = rows[5].split(",")
    cells[number] = CANARY  # the last column that may hold a comma stands behind it
    rows[5] = ",".join(cells)
    table.write_text("\n".join(rows) + "\n")
    create_key(tmp_path / "owner.key")
    with open_studio(tmp_path) as world:
        yield world


@pytest.fixture
def world(tmp_path):
    write_files(tmp_path)
    with open_studio(tmp_path) as found:
        yield found


def test_the_whole_way_from_a_file_to_a_signed_release(clinic, visit, screenshots, capfd):
    desk = Desk(visit, clinic)
    desk.press("Make the ledger")
    desk.follow("Begin")
    begin(desk)
    desk.press("Write schema, dataset and plan")
    assert "visits has a schema" in desk.text
    desk.press("Compare, NOT PRIVATE")
    desk.page.wait_for_selector("text=NOT PRIVATE: for the owner")
    desk.page.go_back()
    desk.go("/begin/done?data=visits.csv")
    desk.follow("Plan the first release")
    desk.go(
        "/plan?dataset=visits&data=visits.csv&schema=visits.toml&goal=counts:ward,sex&epsilon=0.5"
    )
    desk.follow("Review")
    desk.page.select_option("[name=sign]", "owner.key")
    desk.fill(output="wards", purpose="beds", confirm="visits")
    review = urlsplit(desk.page.url)
    desk.press("Publish and spend")
    desk.done()
    work = urlsplit(desk.page.url).path
    desk.follow("Open it")
    assert "the ledger recorded this very release" in desk.text
    release = clinic.folder / "releases" / "wards"
    assert is_signed(release)
    assert load(release).receipt.epsilon == Fraction(1, 2)
    assert spent(clinic.folder) == Fraction(1, 2)
    require_nothing_private(desk, clinic.folder, capfd.readouterr())
    shown = {
        "begin": "/begin",
        "begin-table": "/begin/steps?data=visits.csv&dataset=others",
        "begin-done": "/begin/done?data=visits.csv",
        "datasets": "/",
        "dataset": "/datasets/visits",
        "review": f"{review.path}?{review.query}",
        "work": work,
        "release": "/releases/wards",
        "audit": "/audit",
        "refusal": "/releases/none",
    }
    require_readable(visit, clinic, shown, screenshots)


def begin(desk):
    """Answer what the studio asks about a table."""
    desk.page.select_option("[name=data]", "visits.csv")
    desk.press("Go on")
    desk.fill(row="a hospital visit")
    desk.page.select_option("[name=unit]", "patient_id")
    for column in ("postcode", "date_of_birth", "country"):
        desk.page.get_by_role("checkbox", name=column).uncheck()
    desk.press("Keep and go on")
    desk.page.check("[name=goal][value=counts]")
    desk.fill(goal_columns="ward, sex")
    desk.press("Keep and go on")
    said = {
        "period": "2023..2024 as %d.%m.%Y",
        "ward": "@wards.csv",
        "diagnosis": "@diagnoses.csv",
        "insurance": "Public, Private, None",
        "charges": "0..50000 by 2500",
    }
    for label, text in said.items():
        named = re.compile("Which period" if label == "period" else rf"^{label}:")
        desk.page.get_by_label(named).fill(text)
    desk.press("Keep and go on")
    desk.fill(cap="2")
    desk.press("Keep and go on")
    if desk.page.locator("[name=epsilon]").count():
        desk.fill(epsilon="1")
        desk.press("Keep and go on")


def require_nothing_private(desk, folder, told):
    """A value that stands in one row alone is in no answer, no log and no file but the table."""
    assert len(desk.sent) > 30
    for url, body in desk.sent:
        assert CANARY.encode() not in body, url
    assert CANARY not in told.out + told.err
    assert told.out + told.err == ""
    for path in folder.rglob("*"):
        if path.is_file() and path.name != "visits.csv":
            assert CANARY.encode() not in path.read_bytes(), path
    assert CANARY in (folder / "visits.csv").read_text()
    local, session, cookie = desk.page.evaluate(
        "[{...localStorage}, {...sessionStorage}, document.cookie]"
    )
    assert (local, cookie) == ({}, "")
    assert session.keys() <= {"htmx-current-path-for-history"}
    assert CANARY not in str(session)


def require_readable(visit, world, shown, screenshots):
    """Every page reads in light, dark and on a phone, and weighs little."""
    for look in ("light", "dark", "phone"):
        desk = Desk(visit, world, look)
        for name, path in shown.items():
            desk.weights.clear()
            desk.said.clear()
            page = desk.go(path)
            page.screenshot(path=screenshots / f"studio-{name}-{look}.png", full_page=True)
            problems = [*desk.said, *violations(page), *broken_words(page)]
            assert (name, problems if name != "refusal" else problems[1:]) == (name, [])
            assert sideways(page) == 0, name
            assert max(desk.weights.values()) < _MOST_BYTES, (name, desk.weights)
        assert desk.begun.refused == []


def confirm(desk, name="wards"):
    desk.fill(output=name, confirm="visits")


def test_a_double_click_a_reload_and_the_back_button_spend_once(world, visit):
    desk = Desk(visit, world)
    page = desk.go(REVIEW)
    confirm(desk)
    page.get_by_role("button", name="Publish and spend").dblclick()
    desk.done()
    page.reload()
    assert "Done." in desk.text or page.get_by_role("link", name="Open it").count()
    page.go_back()
    page.wait_for_load_state()
    assert "published or begun before" in desk.text
    confirm(desk, "again")
    desk.press("Publish and spend")
    assert "tick the box" in desk.text
    assert world.spent() == Fraction(1, 2)


def test_two_tabs_with_the_same_request_spend_once(world, visit):
    one = Desk(visit, world)
    one.go(REVIEW)
    tab = one.begun.context.new_page()
    tab.goto(world.origin + REVIEW)
    confirm(one, "first")
    one.press("Publish and spend")
    one.done()
    tab.fill("[name=output]", "second")
    tab.fill("[name=confirm]", "visits")
    tab.get_by_role("button", name="Publish and spend").click()
    tab.get_by_role("link", name="Open it").wait_for()
    assert tab.url == one.page.url
    assert world.spent() == Fraction(1, 2)


def test_a_cap_that_does_not_suffice_leaves_nothing_to_press(world, visit):
    with Ledger(world.folder / "books.db") as ledger:
        ledger.change_cap("visits", "0.4", "less")
    desk = Desk(visit, world)
    page = desk.go(REVIEW)
    assert "not enough" in desk.text
    assert page.get_by_role("button", name="Publish and spend").is_disabled()


def test_a_link_opens_one_browser_only(world, visit):
    token = world.access.make_token("owner")
    first = visit().open(f"{world.origin}/enter?token={token}")
    assert "Datasets" in first.inner_text("main")
    assert "token" not in first.url
    second = visit().open(f"{world.origin}/enter?token={token}")
    assert second.inner_text("body") == "forbidden"


@pytest.mark.parametrize(
    ("name", "content", "told"),
    [
        ("picture.png", b"\x89PNG", "must end in"),
        ("visits.parquet", b"", "exists already"),
        ("broken.parquet", b"PAR1 no more", "broken.parquet"),
        ("empty.csv", b"", "empty.csv"),
    ],
)
def test_a_wrong_file_is_refused_and_not_kept(world, visit, name, content, told):
    desk = Desk(visit, world)
    page = desk.go("/begin")
    before = {path.name for path in world.folder.iterdir()}
    file = {"name": name, "mimeType": "application/octet-stream", "buffer": content}
    page.set_input_files("#table-file", file)
    desk.press("Upload")
    assert told in desk.text
    assert {path.name for path in world.folder.iterdir()} == before


def test_killed_in_the_middle_the_studio_says_what_stands(visit, tmp_path):
    write_files(tmp_path)
    with running(tmp_path) as first:
        # The client took the owner's link, so that the browser shares its session.
        context = visit().context
        give_session(context, first.client)
        page = context.new_page()
        page.goto(first.client.world.origin + REVIEW)
        page.fill("[name=output]", "wards")
        page.fill("[name=confirm]", "visits")
        page.get_by_role("button", name="Publish and spend").click()
        page.wait_for_url("**/jobs/*")
        where = urlsplit(page.url).path
        first.process.kill()
        first.process.wait(30)
    so_far = spent(tmp_path)
    with running(tmp_path) as second:
        give_session(context, second.client)
        page.goto(second.client.world.origin + where)
        said = page.inner_text("main")
        assert "Done." in said or "was not repeated, and will not be" in said
        page.goto(second.client.world.origin + REVIEW)
        assert "published or begun before" in page.inner_text("main")
    assert spent(tmp_path) == so_far


def give_session(context, client):
    name, _, value = client.cookie.partition("=")
    context.add_cookies([{"name": name, "value": value, "url": client.world.origin}])
    until(lambda: client.get("/").status == 200)


def test_pages_of_work_that_runs_or_did_not_end_well_can_be_read(
    world, visit, screenshots, monkeypatch
):
    go_on = threading.Event()

    def publish(wanted, desk, output, progress):
        progress(1, 3, "rounds")
        go_on.wait(60)
        raise InputError("the disk is full; free some space")

    monkeypatch.setattr(Wanted, "publish", publish)
    client = world.client()
    sent = {"output": "wards", "confirm": "visits", "key": client.get(REVIEW).field("key")}
    path = client.post("/release", dict(parse_qsl(REVIEW.partition("?")[2])) | sent).goes_to
    lost = Spend("lost", "content", now(), "visits", "histogram of visits", "0.5", "lost")
    world.studio.spends.begin(lost)
    world.studio.spends.process = "another run"
    try:
        desk = Desk(visit, world)
        page = desk.go(path)
        page.get_by_text("rounds: 1 of 3").wait_for()
        assert page.get_by_role("button", name="Stop").count() == 1
        shown = {"work-running": path, "work-interrupted": "/jobs/lost"}
        require_readable(visit, world, shown, screenshots)
    finally:
        go_on.set()
    page.get_by_text("the disk is full").wait_for()
    more = {
        "work-failed": path,
        "streams-review": (
            "/streams/review?dataset=visits&schema=visits.toml&method=per-snapshot&epsilon=1"
            "&set-columns=ward&set-horizon=3&set-trust_rows=true"
        ),
        "bounds": "/schemas/bounds?schema=visits.toml&column=age",
    }
    require_readable(visit, world, more, screenshots)
