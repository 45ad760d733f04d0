"""Pages of releases, streams and the audit as a browser shows them, to all kinds of readers."""

import pytest

from browser.checks import sideways, violations
from dpublish.ledger.ledger import Ledger
from releases_world import STREAM, make_releases, write_snapshots
from studio_world import open_studio

PAGES = {
    "releases": "/releases",
    "release": "/releases/wards",
    "ask": "/releases/wards/ask?q=ward+%3D+north&asked=ill+%3D+no",
    "rows": "/releases/table/rows?seed=1",
    "predict": "/releases/tree/predict",
    "statistics": "/releases/means/statistics",
    "choose-k": "/releases/points/choose-k?k=4",
    "compare": "/releases/wards/compare?with=table",
    "export": "/releases/wards/export",
    "verify": "/releases/wards/verify?key=owner.pub",
    "evaluate": "/releases/wards/evaluate",
    "streams": "/streams",
    "stream": "/streams/releases/days",
    "stream-start": "/streams/start?method=dsat",
    "audit": "/audit",
}


@pytest.fixture(scope="module")
def shared(tmp_path_factory):
    """A studio with releases and a stream of two steps."""
    folder = tmp_path_factory.mktemp("shown")
    make_releases(folder)
    write_snapshots(folder)
    with Ledger(folder / "books.db") as ledger:
        ledger.add("rides", cap="2")  # a stream hides people, and the releases hide records
    wanted = STREAM | {"dataset": "rides"}
    with open_studio(folder) as world:
        client = world.client()
        key = client.get("/streams/review", **wanted).field("key")
        sent = wanted | {"key": key, "output": "days", "confirm": "rides"}
        client.wait(client.post("/streams/start", sent).goes_to)
        for day in (1, 2):
            step = client.post("/streams/releases/days/next", {"file": f"2024-05-0{day}.parquet"})
            client.wait(step.goes_to)
        yield world


def enter(visit, world, look="light"):
    """Open the studio as its owner."""
    begun = visit(look)
    begun.open(f"{world.origin}/enter?token={world.access.make_token('owner')}")
    return begun


@pytest.mark.parametrize("look", ["light", "dark", "phone"])
def test_every_page_can_be_read(visit, shared, screenshots, look):
    begun = enter(visit, shared, look)
    page, said = begun.context.new_page(), []
    page.on("console", lambda message: said.append(message.text))
    for name, path in PAGES.items():
        said.clear()  # axe complains that it cannot look into the frame of a report
        page.goto(shared.origin + path)
        page.screenshot(path=screenshots / f"studio-{name}-{look}.png", full_page=True)
        assert said == [], name
        assert sideways(page) == 0, name
        assert violations(page) == [], name
    assert begun.refused == []


def test_answers_are_put_above_earlier_ones(visit, shared):
    page = enter(visit, shared).open(f"{shared.origin}/releases/wards/ask")
    for query in ("ill = yes", "ward = south"):
        page.fill("#q", query)
        page.click("button:has-text('Count')")
        page.wait_for_selector(f".answer:has-text('{query}')")
    page.fill("#q", "nothing = 1")
    page.click("button:has-text('Count')")
    page.wait_for_selector(".answers .problem")
    assert page.locator("#answers > *").count() == 3
    assert "ward = south" in page.locator("#answers > *").nth(1).inner_text()


def test_the_plot_follows_the_slider(visit, shared):
    page = enter(visit, shared).open(f"{shared.origin}/releases/points/choose-k")
    page.focus("#k")
    page.keyboard.press("End")
    page.wait_for_selector("#chosen:has-text('16 clusters')")
    width = "async image => { await image.decode(); return image.naturalWidth; }"
    assert page.locator("#chosen img").evaluate(width) > 100


def test_rows_are_previewed_and_downloaded(visit, shared):
    page = enter(visit, shared).open(f"{shared.origin}/releases/table/rows")
    page.fill("#n", "50")
    page.fill("#where", "ward = south")
    page.click("text=Preview 20 rows")
    page.wait_for_selector("#preview table")
    assert page.locator("#preview tbody tr").count() == 20
    with page.expect_download() as download:
        page.click("text=Download CSV")
    assert download.value.suggested_filename == "table-rows.csv"
    lines = download.value.path().read_text().splitlines()
    assert len(lines) == 51
    assert all("south" in line for line in lines[1:])


def test_the_report_is_shown_within_the_page_and_runs_nothing(visit, shared):
    page = enter(visit, shared).open(f"{shared.origin}/releases/wards")
    page.locator("iframe").scroll_into_view_if_needed()
    frame = page.frame_locator("iframe")
    frame.locator("h1").wait_for()
    assert frame.locator("h1").inner_text() == "Histogram of visits"
    assert frame.locator("svg").count() > 0


def test_the_settings_follow_the_method(visit, shared):
    page = enter(visit, shared).open(f"{shared.origin}/streams/start")
    page.select_option("#method", "bd")
    page.wait_for_selector("#set-window")
    page.select_option("#method", "dsft")
    page.wait_for_selector("#set-horizon")
    assert page.locator("#set-window").count() == 0
