"""A plan says what a release would give and cost; it reads no row and spends nothing."""

import html
import re
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from fractions import Fraction
from urllib.parse import parse_qs, urlencode, urlsplit

import pytest

from dpublish import Histogram, plan
from dpublish.accuracy.rounding import format_number
from dpublish.core.catalog import CATALOG, STREAMS
from dpublish.core.method import figure_name
from dpublish.core.settings import method_settings
from dpublish.data.schema import column
from dpublish.data.schema_file import dumps_toml
from dpublish.ledger.ledger import Ledger
from dpublish.methods.personalized.expected_counts import Population
from dpublish.planning.advise import advise
from dpublish.planning.goals import GOALS
from dpublish.privacy.neighbors import UserInWindow
from dpublish.publishing.plan import trade_of_bounds
from dpublish.randomness import secure
from dpublish.studio import study
from dpublish.studio.phrasing import for_pages
from studio_world import CANARY, SCHEMA, open_studio, write_files

BASE = {"dataset": "visits", "data": "visits.parquet", "schema": "visits.toml", "rows": "900"}
HISTOGRAM = BASE | {"method": "histogram", "set-columns": "ward", "epsilon": "0.5"}
TASKS = {
    "rows": "rows",
    "counts": "counts:age,ward",
    "statistics": "statistics:age,ward",
    "classify": "classify:ill",
    "model": "model:ill",
    "clusters": "clusters:age",
    "top": "top:ward",
    "stream": "stream:ward",
}
PERSON = column("person", "category", values=["a", "b"], other="others")
PART = {"HX_Request": "true"}


@pytest.fixture(scope="module")
def looked_at(tmp_path_factory):
    """A studio that tests only look at."""
    folder = tmp_path_factory.mktemp("studio")
    write_files(folder)
    with Ledger(folder / "books.db") as ledger:
        ledger.add("personal", levels=["0.1", "1"])
        ledger.add("small", cap="0.3")
    with open_studio(folder) as found:
        yield found


@pytest.fixture(scope="module")
def client(looked_at):
    return looked_at.client()


def see(client, **query):
    """Look at a plan; none of it may show what stands in rows alone."""
    answer = client.get("/plan", **query)
    assert CANARY not in answer.text
    return answer


def links(answer, start):
    """List where a page leads, as path and fields."""
    found = [html.unescape(each) for each in re.findall(r'href="([^"]*)"', answer.text)]
    parts = [urlsplit(each) for each in found if each.startswith(start)]
    return [{name: text[0] for name, text in parse_qs(each.query).items()} for each in parts]


def words(answer):
    """Return the text of a page as it reads."""
    return " ".join(html.unescape(re.sub(r"<[^>]*>", " ", answer.text)).split())


# --- Goals and advice -----------------------------------------------------------------------


def test_every_task_is_tried_here():
    assert set(TASKS) == set(GOALS)


@pytest.mark.parametrize("task", TASKS)
def test_a_goal_is_advised_and_planned(client, task):
    sizes = {"horizon": "30"} if task == "stream" else {}
    shown = see(client, **BASE, goal=TASKS[task], **sizes)
    assert shown.status == 200
    assert "Nothing is spent here, and no row is read" in words(shown)
    horizon = 30 if task == "stream" else None
    advice = advise(SCHEMA, TASKS[task], n_records=900, horizon=horizon)
    for choice in advice.choices:
        assert for_pages(choice.why)[1:] in words(shown)
        assert for_pages(choice.gives)[1:] in words(shown)
        assert all(for_pages(note) in words(shown) for note in choice.notes)
    first = advice.choices[0]
    for name in first.expected_error:
        assert figure_name(name) in words(shown)
    start = "/streams/start?" if task == "stream" else "/release?"
    (going_on,) = links(shown, start)
    assert going_on["method"] == first.name
    assert Fraction(going_on["epsilon"]) == advice.epsilon
    given = {f"set-{name}": text for name, text in first.settings.items()}
    assert given.items() <= going_on.items()


def test_a_form_with_ticks_asks_for_the_same(client):
    by_form = client.ask(
        "GET",
        "/plan?dataset=visits&data=visits.parquet&schema=visits.toml&rows=900&epsilon=0.5"
        "&task=counts&column=age&column=ward",
    )
    by_goal = see(client, **BASE, epsilon="0.5", goal="counts:age,ward")
    assert links(by_form, "/release?") == links(by_goal, "/release?") != []
    assert 'value="ward" checked' in by_form.text
    assert 'value="ill" checked' not in by_form.text


def test_the_second_method_can_be_taken(client):
    shown = see(client, **BASE, goal="classify:ill")
    assert shown.text.count("planned below") == 1
    (other,) = [each for each in links(shown, "/plan?") if each.get("method") == "model"]
    taken = see(client, **other)
    assert {each["method"] for each in links(taken, "/release?")} == {"model"}


def test_an_epsilon_that_is_not_given_is_proposed(client):
    shown = see(client, **BASE, goal="counts:ward")
    advice = advise(SCHEMA, "counts:ward", n_records=900, ledger=None)
    assert advice.epsilon_why in words(shown)
    kept = see(client, **BASE, goal="counts:ward", epsilon="0.3")
    assert "as given; 5 is left" in words(kept)


def test_what_no_formula_says_is_named(client):
    shown = words(see(client, **BASE, goal="classify:ill"))
    assert "No formula tells how many predictions will be wrong" in shown
    assert "The figures are theory" in shown


def test_without_a_ledger_there_is_a_plan_nevertheless(tmp_path):
    write_files(tmp_path)
    (tmp_path / "books.db").unlink()
    with open_studio(tmp_path) as found:
        shown = see(found.client(), **BASE | {"dataset": ""}, goal="counts:ward")
    assert "each count within" in words(shown)
    assert links(shown, "/release?") == []
    assert "choose the dataset" in words(shown)


# --- Wrong inputs ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"goal": "counts:income"}, "there is no column 'income'"),
        ({"goal": "guess:ill"}, "there is no goal 'guess'"),
        ({"goal": "classify"}, "needs the one column to predict"),
        ({"goal": "classify:ill,ward"}, "needs the one column to predict"),
        ({"goal": "classify:age"}, "predicts classes"),
        ({"goal": "<script>alert(1)</script>"}, "there is no goal '<script>alert(1)</script>'"),
        ({"epsilon": "0"}, "must be greater than 0"),
        ({"epsilon": "-1"}, "must be greater than 0"),
        ({"epsilon": "a lot"}, "is not a number"),
        ({"epsilon": "1e-90"}, "epsilon"),
        ({"rows": "many"}, "write the public number of rows as digits"),
        ({"rows": "0"}, "from 1 on"),
        ({"rows": "9" * 3_000}, "write the public number of rows as digits"),
        ({"schema": "none.toml"}, "there is no file 'none.toml'"),
        ({"schema": "../visits.toml"}, "not in the studio's folder"),
        ({"schema": "/etc/passwd"}, "not in the studio's folder"),
        ({"schema": "visits.parquet"}, "visits.parquet"),
        ({"dataset": "others"}, "others"),
        ({"goal": "clusters", "n_clusters": "some"}, "write the number of clusters in digits"),
        ({"goal": "stream:ward"}, "a stream needs one of two numbers"),
        ({"goal": "stream:ward", "horizon": "-3"}, "write the number of steps in digits"),
        ({"method": "histogramm"}, "did you mean 'histogram'?"),
        ({"method": "histogram", "set-columns": "income"}, "there is no column 'income'"),
        ({"method": "histogram", "set-columns": "ward", "set-shade": "red"}, "shade"),
        ({"method": "kmeans", "set-n_clusters": "few", "set-columns": "age"}, "an integer"),
        ({"goal": "x" * 20_000}, "a field holds at most"),
    ],
)
def test_what_cannot_be_planned_is_told_and_nothing_is_lost(client, changes, told):
    asked = BASE | {"goal": "counts:ward"} | changes
    shown = see(client, **asked)
    assert shown.status == 422
    assert told in words(shown)
    assert "<script>alert" not in shown.text
    assert "Traceback" not in shown.text
    if len(asked["goal"]) < 100:
        assert 'id="choices"' in shown.text
        assert f'name="rows" type="text" value="{asked["rows"]}"' in shown.text


def test_a_table_that_is_not_offered_cannot_be_reviewed(client):
    for name in ("../visits.parquet", "none.parquet", ""):
        shown = see(client, **HISTOGRAM | {"data": name})
        assert shown.status == 200
        assert links(shown, "/release?") == []
        assert "To review it, choose the table above" in words(shown)


def test_readers_look_and_go_no_further(looked_at):
    reader = looked_at.client("reader")
    shown = see(reader, **HISTOGRAM, goal="counts:ward")
    assert "each count within" in words(shown)
    assert links(shown, "/release?") == []
    assert "/plan/rehearsals" not in shown.text
    assert reader.post("/plan/rehearsals", HISTOGRAM | {"origin": "simulated"}).status == 403


# --- No row is read -------------------------------------------------------------------------


def test_a_plan_opens_no_table(world, monkeypatch):
    def refuse(*args, **given):
        raise AssertionError("a table was opened")

    for module in ("data.sources", "studio.wanted", "planning.rehearse", "planning.measures"):
        monkeypatch.setattr(f"dpublish.{module}.open_table", refuse)
    monkeypatch.setattr("dpublish.planning.stand_in.read_rows", refuse)
    client = world.client()
    for query in (BASE | {"goal": "rows"}, HISTOGRAM, BASE | {"method": "kmeans"}):
        assert see(client, **query).status == 200
        assert client.get("/plan/estimate", **query).status == 200
    (world.folder / "visits.parquet").write_bytes(b"no table")
    first = see(client, **HISTOGRAM).text
    (world.folder / "visits.parquet").unlink()
    assert see(client, **HISTOGRAM).status == 200
    assert "each count within" in first
    assert world.spent() == 0


# --- The slider -----------------------------------------------------------------------------


def test_the_part_that_follows_the_slider(client):
    asked = HISTOGRAM | {"goal": "counts:ward"}
    answer = client.ask("GET", "/plan/estimate?" + urlencode(asked), **PART)
    assert answer.headers["hx-replace-url"].startswith("/plan?")
    assert parse_qs(urlsplit(answer.headers["hx-replace-url"]).query)["epsilon"] == ["0.5"]
    planned = plan("histogram", SCHEMA, columns="ward", epsilon="0.5", n_records=900)
    told = words(answer)
    assert planned.summary in told
    assert "Left now 5 Left afterward 4.5 Releases of this size 10" in told
    assert "This is pure differential privacy with ε = 0.5" in told
    assert "62.3 %" in told  # what anyone can believe who held it for 50 % likely
    assert "ε 0.5" in re.search(r'<text class="mark wanted"[^>]*>([^<]*)', answer.text)[1]
    assert 'id="advice"' in answer.text
    assert "<html" not in answer.text
    moved = client.ask("GET", "/plan/estimate?" + urlencode(asked | {"epsilon": "1"}), **PART)
    assert "Left afterward 4 Releases of this size 5" in words(moved)


def test_a_slider_that_moves_does_not_compute_the_curve_anew(client):
    asked = HISTOGRAM | {"set-columns": "ill"}
    client.get("/plan/estimate", **asked)
    before = study._errors.cache_info()
    client.get("/plan/estimate", **asked | {"epsilon": "0.7"})
    after = study._errors.cache_info()
    assert after.misses == before.misses
    assert after.hits > before.hits


def test_the_field_of_epsilon_tells_what_is_wrong(client):
    for epsilon, told in (("0", "greater than 0"), ("much", "is not a number")):
        query = urlencode(HISTOGRAM | {"epsilon": epsilon})
        answer = client.ask("GET", "/plan/estimate?" + query, **PART)
        assert answer.status == 200  # parts of other codes are not shown
        assert told in words(answer)


def test_the_curve_is_the_one_that_theory_predicts(client):
    shown = see(client, **HISTOGRAM)
    planned = plan("histogram", SCHEMA, columns="ward", epsilon="0.5", n_records=900)
    table = shown.text[shown.text.index("The curve as a table") :]
    rows = re.findall(r'<th scope="row" class="number">([^<]*)</th><td[^>]*>([^<]*)', table)
    found = {Fraction(epsilon): error for epsilon, error in rows[: len(study.STEPS)]}
    expected = planned.errors_at([*study.STEPS])
    assert [float(found[each].replace(",", "")) for each in study.STEPS] == expected


def test_without_javascript_a_button_shows_the_same(client):
    shown = see(client, **HISTOGRAM)
    form = shown.text[shown.text.index('id="sizes"') :]
    form = form[: form.index("</form>")]
    fields = dict(re.findall(r'name="([^"]*)" value="([^"]*)"', form))
    assert "<button" in form
    sent = {html.unescape(n): html.unescape(t) for n, t in fields.items()} | {"epsilon": "0.25"}
    assert "Left afterward 4.75" in words(see(client, **sent))


# --- What is left ---------------------------------------------------------------------------


def test_a_cap_that_does_not_suffice_leads_no_further(client):
    shown = see(client, **HISTOGRAM | {"dataset": "small"})
    assert "Left now 0.3 Left afterward not enough" in words(shown)
    assert "take a smaller ε, or raise the cap" in words(shown)
    assert links(shown, "/release?") == []
    enough = see(client, **HISTOGRAM | {"dataset": "small", "epsilon": "0.1"})
    assert "Left afterward 0.2 Releases of this size 3" in words(enough)


def test_the_review_is_of_what_was_planned(client):
    (asked,) = links(see(client, **HISTOGRAM | {"where": "age >= 18"}), "/release?")
    reviewed = client.get("/release", **asked)
    assert reviewed.status == 200
    assert plan("histogram", SCHEMA, columns="ward", epsilon="0.5").summary in words(reviewed)
    assert "age >= 18" in words(reviewed)


def test_what_does_not_add_up_with_earlier_releases_is_told_before_anything_is_spent(world):
    with Ledger(world.folder / "books.db") as ledger:
        hides = UserInWindow("person", 24)
        ledger.grant("visits", epsilon="0.1", purpose="a stream", hides=hides, rng=secure())
    client = world.client()
    shown = see(client, **HISTOGRAM)
    assert "their epsilons do not add up" in words(shown)
    assert links(shown, "/release?") == []


# --- Methods by name ------------------------------------------------------------------------


@pytest.mark.parametrize("name", [*CATALOG, *STREAMS])
def test_every_method_has_a_form_of_its_settings(client, name):
    shown = see(client, **BASE, method=name)
    settings = study.stream_settings(name) if name in STREAMS else method_settings(name)
    assert settings
    for each in settings:
        assert f'name="set-{each.name}"' in shown.text
        assert " ".join(each.help.split()) in words(shown)


def test_settings_that_are_given_stay_in_their_form(client):
    shown = see(client, **BASE, method="histogram", epsilon="1", **{"set-columns": "age,ward"})
    assert 'name="set-columns" type="text" value="age,ward"' in shown.text
    planned = plan("histogram", SCHEMA, columns="age,ward", epsilon="1", n_records=900)
    assert planned.summary in words(shown)


def test_a_method_without_an_epsilon_asks_for_one(client):
    shown = see(client, **HISTOGRAM | {"epsilon": ""})
    assert shown.status == 200
    assert "Write an ε to see what it would give and cost" in words(shown)
    assert links(shown, "/release?") == []


def test_bounds_of_records_stand_side_by_side_where_people_have_several(looked_at, client):
    schema = replace(SCHEMA, unit="person", columns=(*SCHEMA.columns, PERSON))
    (looked_at.folder / "people.toml").write_text(dumps_toml(schema))
    asked = HISTOGRAM | {"schema": "people.toml"}
    trades = trade_of_bounds(Histogram(columns=("ward",)), schema, Fraction(1, 2), n_records=900)
    table = " ".join(f"{each.contribution} {format_number(each.error)}" for each in trades)
    unbound = see(client, **asked)
    assert "contribution 4 to keep at most 4 records of each" in words(unbound)
    assert table in words(unbound)
    assert links(unbound, "/release?") == []
    bound = see(client, **asked | {"set-contribution": "4"})
    assert table in words(bound)
    assert len(links(bound, "/release?")) == 1


# --- Levels ---------------------------------------------------------------------------------


def test_levels_lead_to_personalized_methods(looked_at, client):
    shown = see(client, **BASE | {"dataset": "personal"}, goal="counts:ward")
    assert links(shown, "/release?") == []
    offered = [each for each in links(shown, "/plan?") if each.get("method") == "partitioning"]
    assert offered[0]["set-levels"] == "0.1,1"
    assert offered[0]["set-inner"] == "histogram columns=ward"
    chosen = offered[0] | {"set-preference": "age", "set-rule": "0..49=0.1, 50..=1"}
    chosen |= {"set-derived": "true", "epsilon": "1"}
    planned = see(client, **chosen)
    assert "Left now 0.1 Left afterward 0 " in words(planned)  # where people are short first
    assert "What each level pays" in words(planned)
    (going_on,) = links(planned, "/release?")
    assert going_on["method"] == "partitioning"
    other = see(client, **chosen | {"set-levels": "0.5,1", "set-rule": "0..49=0.5, 50..=1"})
    assert "has other levels in the ledger" in words(other)
    assert links(other, "/release?") == []


def test_personalized_methods_stand_side_by_side_where_sizes_are_public(client):
    asked = BASE | {"dataset": "personal", "method": "threshold", "epsilon": "1"}
    asked |= {"set-levels": "0.1,1", "set-preference": "age", "set-sizes": "3000,900"}
    asked |= {"set-rule": "0..49=0.1, 50..=1", "set-derived": "true"}
    asked |= {"set-inner": "histogram columns=ward", "set-threshold": "1"}
    shown = words(see(client, **asked))
    for each in Population.of(["0.1", "1"], [3000, 900]).compare():
        assert f"{each.method} {each.groups} {format_number(each.error, 3)}" in shown
    unknown = words(see(client, **asked | {"set-sizes": "", "set-mode": "levels"}))
    assert "count is off by" not in unknown


# --- Rehearsals -----------------------------------------------------------------------------

REHEARSED = HISTOGRAM | {"origin": "simulated", "tried": "0.1, 1", "repeats": "2"}


def rehearse(client, **changes):
    answer = client.post("/plan/rehearsals", REHEARSED | changes)
    assert answer.status == 303, words(answer)
    key = parse_qs(urlsplit(answer.goes_to).query)["rehearsal"][0]
    return key, answer.goes_to


def files(folder):
    return {path: path.stat().st_mtime_ns for path in folder.rglob("*") if path.is_file()}


def test_a_rehearsal_is_shown_in_the_plan_and_kept_nowhere(world):
    client = world.client()
    before = files(world.folder)
    key, back = rehearse(client, shares="[ward]\nnorth = 0.9", enough="relative <= 0.9")
    client.wait(f"/jobs/{key}")
    shown = client.get(back)
    told = words(shown)
    assert "simulated: no private row was read" in told
    assert "histogram columns=ward, rehearsed 2 times at each epsilon on 900 simulated" in told
    assert "shares stated of ward" in told
    assert "relative <= 0.9: epsilon 0.1 suffices" in told
    assert 'class="band"' in shown.text
    assert links(shown, "/plan?")[-1]["epsilon"] == "0.1"
    assert "# " not in told
    moved = see(client, **links(shown, "/plan?")[-1])
    assert "simulated: no private row was read" in words(moved)
    assert files(world.folder) == before
    assert world.spent() == 0


def test_equal_rehearsals_are_computed_once(world, monkeypatch):
    from dpublish.studio import rehearsals

    counted = []
    true = rehearsals.rehearse

    def counting(*args, **given):
        counted.append(given)
        return true(*args, **given)

    monkeypatch.setattr(rehearsals, "rehearse", counting)
    client, reader = world.client(), world.client("reader")
    with ThreadPoolExecutor(4) as pool:
        ((key, back),) = set(pool.map(lambda _: rehearse(client), range(4)))
    client.wait(f"/jobs/{key}")
    assert rehearse(client)[0] == key
    assert rehearse(client, tried="0.1,1", epsilon="0.7")[0] == key  # the plan's epsilon is no part
    assert len(counted) == 1
    assert "simulated: no private row was read" in words(reader.get(back))
    others = [{"repeats": "3"}, {"tried": "0.1"}, {"set-columns": "ill"}, {"rows": "400"}]
    keys = {rehearse(client, **other)[0] for other in [*others, {"shares": "[ill]\nyes = 0.1"}]}
    assert len(keys | {key}) == 6
    for each in keys:
        client.wait(f"/jobs/{each}")


def test_another_plan_does_not_show_it(world):
    client = world.client()
    key, _ = rehearse(client)
    client.wait(f"/jobs/{key}")
    for other in ({"set-columns": "ill"}, {"schema": "none.toml"}, {"goal": "counts:ward"}):
        assert "rehearsed 2 times" not in words(see(client, **HISTOGRAM | other, rehearsal=key))
    assert "rehearsed 2 times" in words(see(client, **HISTOGRAM, rehearsal=key))


@pytest.fixture
def slow(monkeypatch):
    """Make rehearsals wait until they are let go or stopped."""
    go, reported = threading.Event(), threading.Event()

    def waiting(*args, progress, **given):
        for done in range(2_000):
            progress(done % 4, 4, "epsilon 0.1")
            reported.set()
            if go.wait(0.01):
                break
        raise AssertionError("never stopped")

    monkeypatch.setattr("dpublish.studio.rehearsals.rehearse", waiting)
    yield reported
    go.set()


def test_a_rehearsal_goes_on_elsewhere_and_can_be_stopped(world, slow):
    client = world.client()
    key, back = rehearse(client)
    assert slow.wait(10)
    shown = client.get(back)
    assert f'data-events="/jobs/{key}/events"' in shown.text
    assert "epsilon 0.1" in shown.text
    assert client.get("/").status == 200
    elsewhere = see(client)
    assert "Rehearsing histogram is under way" in words(elsewhere)
    assert links(elsewhere, "/plan?")[0]["rehearsal"] == key
    assert rehearse(client)[0] == key
    client.post(f"/jobs/{key}/cancel")
    client.wait(f"/jobs/{key}")
    assert "It was stopped." in words(client.get(back))
    again, _ = rehearse(client)
    assert again == key
    assert not world.studio.jobs.get(key).is_over
    client.post(f"/jobs/{key}/cancel")
    client.wait(f"/jobs/{key}")
    assert world.spent() == 0


def test_rehearsals_keep_no_release_waiting(world, slow):
    client = world.client()
    keys = [rehearse(client, repeats=str(number))[0] for number in (1, 2, 3)]
    assert slow.wait(10)
    form = HISTOGRAM | {"key": client.get("/release", **HISTOGRAM).field("key")}
    sent = client.post("/release", form | {"output": "wards", "confirm": "visits"})
    assert "Open it" in client.wait(sent.goes_to).text
    for key in keys:
        client.post(f"/jobs/{key}/cancel")
    for key in keys:
        client.wait(f"/jobs/{key}")


def test_an_earlier_release_stands_in(world):
    client = world.client()
    wanted = HISTOGRAM | {"set-columns": "age,ward"}
    form = wanted | {"key": client.get("/release", **wanted).field("key")}
    client.wait(client.post("/release", form | {"output": "ages", "confirm": "visits"}).goes_to)
    key, back = rehearse(client, origin="release", release="ages")
    client.wait(f"/jobs/{key}")
    assert "rows of an earlier release (histogram, epsilon 0.5)" in words(client.get(back))
    lacking, back = rehearse(client, origin="release", release="ages", **{"set-columns": "ill"})
    client.wait(f"/jobs/{lacking}")
    assert "has no column 'ill'" in words(client.get(back))


def test_a_public_table_stands_in_once_someone_says_that_it_is_public(world):
    client = world.client()
    (world.folder / "public.csv").write_text("age,ward,ill\n" + "31,north,no\n62,south,yes\n" * 50)
    asked = {"origin": "table", "public": "public.csv"}
    refused = client.post("/plan/rehearsals", REHEARSED | asked)
    assert refused.status == 422
    assert "confirm that public.csv is public" in words(refused)
    key, back = rehearse(client, is_public="yes", rows="80", **asked)
    client.wait(f"/jobs/{key}")
    assert "if the table that stands in is public, as you state" in words(client.get(back))


@pytest.mark.parametrize("name", ["visits.parquet", "./visits.parquet", "again.parquet"])
def test_the_private_table_never_stands_in(world, name):
    (world.folder / "again.parquet").hardlink_to(world.folder / "visits.parquet")
    answer = world.client().post(
        "/plan/rehearsals", REHEARSED | {"origin": "table", "public": name, "is_public": "yes"}
    )
    assert answer.status == 422
    assert "is the table of this plan, which is private" in words(answer)
    assert world.studio.jobs.running() == []


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"origin": "guess"}, "choose what stands in"),
        ({"origin": "release"}, "choose the earlier release"),
        ({"origin": "release", "release": "none"}, "there is no release 'none'"),
        ({"origin": "release", "release": "../releases"}, "cannot be a name here"),
        ({"origin": "table", "is_public": "yes"}, "choose the public table"),
        ({"origin": "table", "is_public": "yes", "public": "../a.csv"}, "not in the studio's"),
        ({"shares": "[ward"}, "what is stated of shares is not valid"),
        ({"repeats": "many"}, "write the number of repeats in digits"),
        ({"repeats": "51"}, "at most"),
        ({"tried": "1," * 30}, "at most"),
        ({"method": "dsat", "set-horizon": "9"}, "is not rehearsed"),
        ({"method": "kmeans"}, "choose a schema and a method, with its settings"),
        ({"schema": "none.toml"}, "there is no file 'none.toml'"),
        ({"csrf": "made-up"}, "out of date"),
    ],
)
def test_what_cannot_be_rehearsed_is_told_at_once(looked_at, changes, told):
    owner = looked_at.client()
    answer = owner.post("/plan/rehearsals", {"csrf": owner.csrf} | REHEARSED | changes)
    assert answer.status == 422
    assert told in words(answer)
    assert looked_at.studio.jobs.running() == []


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"tried": "0"}, "must be greater than 0"),
        ({"enough": "soon"}, "cannot be read; write what is wanted as"),
        ({"enough": "wrong <= 0.1"}, "there is no measure 'wrong'"),
        ({"shares": "[ward]\nmoon = 1"}, "there is no value of ward 'moon'"),
        ({"shares": "[moon]\nward = 1"}, "there is no column 'moon'"),
    ],
)
def test_what_a_rehearsal_refuses_stands_in_the_plan(looked_at, changes, told):
    owner = looked_at.client()
    key, back = rehearse(owner, **changes)
    owner.wait(f"/jobs/{key}")
    shown = owner.get(back)
    assert told in words(shown)
    assert f'value="{html.escape(changes.get("tried", "0.1, 1"))}"' in shown.text


def test_a_rehearsal_that_is_forgotten_is_missed(world):
    client = world.client()
    key, back = rehearse(client)
    client.wait(f"/jobs/{key}")
    del world.studio.jobs._jobs[key]
    assert "is not known any more" in words(client.get(back))
