"""Releases are shown, asked, compared, exported and checked; those of strangers are not trusted."""

import io
import json
import re
import shutil
import zipfile
from contextlib import contextmanager

import pyarrow as pa
import pyarrow.csv as pacsv
import pyarrow.parquet as pq
import pytest

from dpublish import load
from dpublish.core.folder.folder import folder_hash
from dpublish.core.folder.signing import PublicKey, create_key
from dpublish.data.publication import Publication
from dpublish.data.schema import Schema, column
from dpublish.ledger.ledger import Ledger
from dpublish.studio.pages import documents, releases
from releases_world import NAMES, make_release, make_releases
from studio_world import CANARY, SCHEMA, open_studio

HTML = "<script>alert(1)</script>"


@pytest.fixture(scope="module")
def published(tmp_path_factory):
    """One release of each kind that a page treats in a way of its own."""
    folder = tmp_path_factory.mktemp("published")
    make_releases(folder)
    create_key(folder / "other.key")
    return folder


@pytest.fixture(scope="module")
def shared(published):
    """A studio in which nothing is changed."""
    with open_studio(published) as found:
        yield found


@pytest.fixture
def own(published, tmp_path):
    """A studio with a copy of the releases, to be damaged."""
    shutil.copytree(published, tmp_path / "own", symlinks=True)

    @contextmanager
    def opened():
        with open_studio(tmp_path / "own") as found:
            yield found

    with opened() as found:
        yield found


def words(answer):
    return re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", answer.text))


def test_the_list_says_what_each_release_is(shared):
    page = shared.client().get("/releases")
    for name in NAMES:
        assert f'href="/releases/{name}"' in page.text
    row = re.search(r'<a href="/releases/wards">.*?</tr>', page.text, re.DOTALL)[0]
    cells = re.findall(r"<td[^>]*>(.*?)</td>", row)
    assert cells[0] == "visits"
    assert cells[1:3] == ["histogram", "1"]
    assert cells[4:] == ["yes", "yes"]  # signed, whole


def test_a_release_shows_its_guarantee_and_what_it_offers(shared):
    client = shared.client()
    page = client.get("/releases/wards")
    assert "can be at most 73.2 % sure" in page.text
    assert "the ledger recorded this very release" in page.text
    offered = {
        name: set(
            re.findall(r'href="/releases/\w+/([a-z-]+)"', client.get(f"/releases/{name}").text)
        )
        for name in NAMES
    }
    common = {"report", "compare", "export", "verify", "evaluate", "keep", "certificate"}
    assert offered["wards"] == common | {"ask", "rows"}
    assert offered["tree"] >= {"predict"}
    assert "statistics" in offered["means"]
    assert "choose-k" in offered["points"]
    assert not {"statistics", "choose-k"} & offered["wards"]


def test_a_report_is_drawn_once_and_refused_once_the_folder_was_changed(own, monkeypatch):
    client, drawn = own.client(), []
    render = releases.render_report
    monkeypatch.setattr(releases, "render_report", lambda found: drawn.append(1) or render(found))
    first, again = (client.get("/releases/wards/report") for _ in range(2))
    assert first.status == 200
    assert first.text == again.text
    assert len(drawn) == 1
    (own.folder / "releases" / "wards" / "added.txt").write_text("added")
    assert client.get("/releases/wards/report").status != 200


def test_the_report_can_do_nothing_but_be_read(shared):
    answer = shared.client().get("/releases/wards/report")
    policy = answer.headers["content-security-policy"]
    assert policy == documents.DOCUMENT_POLICY
    assert policy.startswith("default-src 'none'")
    assert "sandbox" in policy
    assert "script-src" not in policy
    assert "<h1>Histogram of visits</h1>" in answer.text


def test_a_count_has_an_interval_and_says_on_what_it_rests(shared):
    client = shared.client()
    answer = client.get("/releases/wards/ask", q="ward = north", confidence="0.9")
    expected = load(shared.folder / "releases" / "wards").count("ward = north", confidence=0.9)
    assert str(expected) in answer.text
    assert "rests on the noise alone" in answer.text
    assert "model interval" in client.get("/releases/table/ask", q="age in 20..40").text.lower()


def test_queries_stay_on_the_page_with_their_answers(shared):
    client = shared.client()
    path = "/releases/wards/ask?q=ill+%3D+no&asked=ward+%3D+south&asked=ward+%3D+west"
    asked = re.findall(r'class="asked"><code>(.*?)</code>', client.get(path).text)
    assert asked == ["ill = no", "ward = west", "ward = south"]
    part = client.ask("GET", "/releases/wards/ask?q=ill+%3D+no", HX_Request="true")
    assert part.text.strip().startswith("<li")
    assert "<html" not in part.text


def test_the_examples_are_queries_that_are_answered(shared):
    client = shared.client()
    page = client.get("/releases/wards/ask")
    examples = re.findall(r'class="chip" href="([^"]+)"', page.text)
    assert len(examples) >= 3
    for each in examples:
        assert 'class="answer"' in client.get(each.replace("&amp;", "&")).text


@pytest.mark.parametrize(
    ("query", "told"),
    [
        ({"q": "income > 3"}, "income"),
        ({"q": "ward = "}, "found the end"),
        ({"q": HTML}, "in the query"),
        ({"q": "ward = north", "confidence": "2"}, "confidence"),
        ({"q": "ward = north", "confidence": "a"}, "confidence"),
        ({"q": "x" * 20_000}, "longer than"),
    ],
)
def test_a_query_that_cannot_be_answered_is_refused(shared, query, told):
    client = shared.client()
    answer = client.get("/releases/wards/ask", **query)
    assert answer.status == 422
    assert told in answer.text
    assert HTML not in answer.text


def test_rows_are_shown_and_sent_as_files(shared):
    client = shared.client()
    page = client.get("/releases/table/rows", seed="1", where="ill = yes")
    assert page.text.count("<td>yes</td>") == 20
    sent = client.get("/releases/table/rows.csv", n="500", seed="1")
    assert sent.headers["content-disposition"] == 'attachment; filename="table-rows.csv"'
    release = load(shared.folder / "releases" / "table")
    wanted = release.rows(500, seed=1)
    found = pacsv.read_csv(io.BytesIO(sent.body))
    assert found.num_rows == 500
    assert found["age"].to_pylist() == wanted["age"].to_pylist()
    sent = client.get("/releases/table/rows.parquet", n="500", seed="1")
    assert pq.read_table(io.BytesIO(sent.body))["ward"].to_pylist() == wanted["ward"].to_pylist()


@pytest.mark.parametrize(
    "query",
    [{"n": "-1"}, {"n": "many"}, {"n": "9" * 30}, {"n": "9" * 15}, {"n": "5", "where": "no = 1"}],
)
def test_rows_that_cannot_be_drawn_are_refused_before_any_is_sent(shared, query):
    answer = shared.client().get("/releases/table/rows.csv", **query)
    assert answer.status in (404, 422)
    assert "content-disposition" not in answer.headers


def test_rows_are_predicted_for_the_owner_alone(shared):
    client, reader = shared.client(), shared.client("reader")
    assert reader.get("/releases/tree/predict").status == 403
    assert reader.post("/releases/tree/predict", {"table": "visits.parquet"}).status == 403
    page = client.post("/releases/tree/predict", {"table": "visits.parquet", "to": "page"})
    assert "NOT PRIVATE" in page.text
    assert "predicted_ill" in page.text
    sent = client.post("/releases/tree/predict", {"table": "visits.parquet", "to": "parquet"})
    found = pq.read_table(io.BytesIO(sent.body))
    rows = pq.read_table(shared.folder / "visits.parquet")
    release = load(shared.folder / "releases" / "tree")
    assert found["predicted_ill"].to_pylist() == release.predict(rows).to_pylist()


def send_file(client, path, name, content):
    boundary = "edge"
    fields = f'--{boundary}\r\nContent-Disposition: form-data; name="csrf"\r\n\r\n{client.csrf}\r\n'
    head = f'--{boundary}\r\nContent-Disposition: form-data; name="rows"; filename="{name}"\r\n\r\n'
    body = (fields + head).encode() + content + f"\r\n--{boundary}--\r\n".encode()
    headers = {"Origin": client.world.origin}
    headers["Content_Type"] = f"multipart/form-data; boundary={boundary}"
    return client.ask("POST", path, body, **headers)


def test_a_file_that_is_sent_is_predicted_and_kept_nowhere(shared):
    client = shared.client()
    content = b"age,ward,ill\n70,north,no\n10,south,no\n"
    answer = send_file(client, "/releases/tree/predict", "../../x.csv", content)
    assert "the file that you sent, 2 rows" in answer.text
    assert not [*shared.folder.rglob("x.csv")]
    refused = send_file(client, "/releases/tree/predict", "x.exe", content)
    assert "send a .csv" in refused.text
    damaged = send_file(client, "/releases/tree/predict", "x.parquet", b"nothing")
    assert damaged.status >= 400
    assert "/dpublish-" not in damaged.text  # the path of a moment


def test_statistics_are_listed_with_their_intervals(shared):
    client = shared.client()
    page = client.get("/releases/means/statistics", measure="mean(age)")
    release = load(shared.folder / "releases" / "means")
    value = release.value("mean(age)", {"ward": "north"})
    assert release.written("mean(age)", value.low) in page.text
    assert "count" not in re.findall(r"<td[^>]*>(.*?)</td>", page.text)
    assert client.get("/releases/wards/statistics").status == 422
    assert client.get("/releases/means/statistics", measure="mean(income)").status == 422


def test_a_number_of_clusters_is_chosen_on_a_plot(shared):
    client = shared.client()
    page = client.get("/releases/points/choose-k", k="5")
    assert "5 clusters" in page.text
    part = client.ask("GET", "/releases/points/choose-k?k=6", HX_Request="true")
    assert "6 clusters" in part.text
    assert "<html" not in part.text
    drawn = client.get("/releases/points/choose-k.svg", k="6")
    assert drawn.headers["content-type"] == "image/svg+xml"
    assert "sandbox" in drawn.headers["content-security-policy"]
    assert "6 clusters" in drawn.text
    assert client.get("/releases/points/choose-k", k="99").status == 422


def test_two_releases_are_compared(shared):
    page = shared.client().get("/releases/wards/compare", **{"with": "table"})
    told = words(page)
    assert "histogram" in told
    assert "synth" in told
    assert re.search(r"ward 4 [\d.]+ % [\d.]+ % [\d.]+ %", told)
    assert "age not there integer, 10 values or bins" in told
    assert shared.client().get("/releases/wards/compare", **{"with": "../x"}).status == 422


@pytest.mark.parametrize("to", ["csv", "json", "parquet"])
def test_an_export_is_a_file(shared, to):
    answer = shared.client().get("/releases/wards/export", to=to)
    assert answer.headers["content-disposition"] == f'attachment; filename="wards-{to}.zip"'
    with zipfile.ZipFile(io.BytesIO(answer.body)) as packed:
        names = {name.partition("/")[2] for name in packed.namelist()}
        assert names == {f"counts.{to}", "datapackage.json", "receipt.json"}
        assert json.loads(packed.read(f"wards-{to}/receipt.json"))["epsilon"] == "1"


def test_an_export_in_an_unknown_format_is_refused(shared):
    assert shared.client().get("/releases/wards/export", to="exe").status == 422


def test_verify_checks_files_signature_and_entry(shared):
    client = shared.client()
    good = client.get("/releases/wards/verify", key="owner.pub")
    assert "Every file is as release.json lists it" in good.text
    assert "Signed with the key owner.pub" in good.text
    assert "the ledger recorded this very release" in good.text
    assert "Not valid for other.pub" in client.get("/releases/wards/verify", key="other.pub").text
    assert "is not signed" in client.get("/releases/table/verify").text
    assert client.get("/releases/wards/verify", key="../owner.pub").status == 422
    refused = client.get("/releases/wards/verify", key="owner.key")
    assert "is a private key" in refused.text


@pytest.mark.parametrize("damage", ["report.html", "data/counts.parquet", "added.txt"])
def test_a_release_that_was_changed_is_not_shown(own, damage):
    path = own.folder / "releases" / "wards" / damage
    path.write_bytes(b"<script>changed</script>")
    client = own.client()
    assert damage in client.get("/releases").text
    for page in ("", "/report", "/ask?q=", "/rows.csv", "/export?to=csv", "/compare?with=table"):
        answer = client.get(f"/releases/wards{page}")
        assert answer.status == 422, page
        assert "<script>changed" not in answer.text
    assert "not as it was published" in client.get("/releases/wards/verify").text


def test_hostile_folders_are_not_followed(own, tmp_path):
    outside = tmp_path / "outside"
    shutil.copytree(own.folder / "releases" / "wards", outside)
    folder = own.folder / "releases"
    (folder / "linked").symlink_to(outside)
    (folder / HTML.replace("/", "")).mkdir()
    (folder / HTML.replace("/", "") / "release.json").write_text("{}")
    (folder / "empty").mkdir()
    (folder / "empty" / "release.json").write_text("[" * 100_000)
    client = own.client()
    page = client.get("/releases")
    assert page.status == 200
    assert "linked" not in page.text
    assert "<script>alert" not in page.text
    assert client.get("/releases/linked").status == 422
    assert client.get("/releases/empty").status == 422


@pytest.mark.parametrize(
    "name",
    ["..", "%2e%2e", "..%2f..%2fetc", "%2fetc", "wards%0d%0aX:%20y", ".hidden", "a%00b", "none"],
)
@pytest.mark.parametrize("page", ["", "/report", "/rows.csv", "/export?to=csv", "/verify"])
def test_names_lead_nowhere_else(shared, name, page):
    answer = shared.client().get(f"/releases/{name}{page}")
    assert answer.status in (404, 422)
    assert "x" not in answer.headers
    assert "root:" not in answer.text


def test_texts_of_a_stranger_are_only_texts(own):
    wards = column("ward", "category", values=["north", HTML, "=1+1"], other="other")
    stated = Publication(title=HTML, description=HTML, source=HTML)
    schema = Schema((SCHEMA["age"], wards, SCHEMA["ill"]), name="visits", publication=stated)
    make_release(own.folder, "titled", "histogram", {"columns": "ward"}, schema)
    make_release(own.folder, "drawn", "synth", {"columns": "ward,ill"}, schema)
    client = own.client()
    for name in ("titled", "drawn"):
        pages = (
            "",
            "/report",
            "/ask?q=",
            "/compare?with=wards",
            "/export",
            "/verify",
            "/rows?seed=1",
        )
        for page in pages:
            answer = client.get(f"/releases/{name}{page}")
            assert answer.status == 200, page
            assert HTML not in answer.text, page
    assert "&lt;script&gt;" in client.get("/releases/titled").text
    asked = client.get("/releases/titled/ask", q=f'ward = "{HTML}"')
    assert 'class="answer"' in asked.text
    assert HTML not in asked.text
    for page in ("/releases", "/audit"):
        assert HTML not in client.get(page).text
    plain = client.get("/releases/drawn/rows.csv", n="2000", seed="1", plain="yes").text
    assert '"\'=1+1"' in plain or "=1+1" not in plain


def test_an_interrupted_release_is_entered_by_a_button(own):
    client = own.client()
    path = own.folder / "releases" / "wards"
    with Ledger(own.folder / "books.db") as ledger:
        before = [each for each in ledger.entries() if each.kind != "published"]
    assert before
    from dpublish.ledger.ledger import Ledger as Books

    published = Books.publish
    try:
        Books.publish = lambda *given, **named: (_ for _ in ()).throw(KeyboardInterrupt)
        with pytest.raises(KeyboardInterrupt):
            make_release(own.folder, "cut", "histogram", {"columns": "ill"})
    finally:
        Books.publish = published
    assert path.exists()
    page = client.get("/releases/cut")
    assert "the ledger has not recorded it" in page.text
    assert 'action="/releases/cut/record"' in page.text
    assert 'action="/releases/cut/record"' not in own.client("reader").get("/releases/cut").text
    assert own.client("reader").post("/releases/cut/record").status == 403
    assert client.post("/releases/cut/record").status == 303
    assert "the ledger recorded this very release" in client.get("/releases/cut").text
    assert client.post("/releases/cut/record").status == 303  # again, which changes nothing
    with Ledger(own.folder / "books.db") as ledger:
        assert ledger.verify().is_intact


def test_a_release_is_measured_for_the_owner_alone(shared):
    client, reader = shared.client(), shared.client("reader")
    asked = {"against": "visits.parquet", "seed": "0"}
    answers = [client.post("/releases/wards/evaluate", asked) for _ in range(2)]
    assert len({each.goes_to for each in answers}) == 1
    path = answers[0].goes_to
    shared.studio.jobs.wait(shared.studio.jobs.find(path.rpartition("/")[2]))
    page = client.get(path)
    assert "NOT PRIVATE" in page.text
    assert "Parts of the score" in page.text
    assert page.headers["cache-control"] == "no-store"
    for hidden in (path, "/releases/wards/evaluate"):
        assert reader.get(hidden).status == 403
    assert client.post("/releases/wards/evaluate", {"against": "../x.csv"}).status == 422
    written = [each for each in shared.folder.rglob("*") if each.is_file()]
    assert not [each for each in written if b"Parts of the score" in each.read_bytes()]


def test_readers_look_and_ask(shared):
    reader = shared.client("reader")
    for page in ("", "/report", "/ask?q=", "/compare", "/export", "/verify"):
        assert reader.get(f"/releases/wards{page}").status == 200, page
    page = reader.get("/releases/tree").text
    assert "/predict" not in page
    assert "/evaluate" not in page


def test_no_page_of_a_release_shows_a_row(shared):
    client = shared.client()
    for name in NAMES:
        for page in ("", "/report", "/ask?q=", "/rows?seed=1", "/compare?with=wards", "/verify"):
            client.get(f"/releases/{name}{page}")
    assert all(CANARY not in answer.text for _, answer in client.seen)


def test_the_certificate_and_the_report_to_keep_are_made_when_asked_for(shared):
    client = shared.client()
    before = folder_hash(shared.folder / "releases" / "wards")
    certificate = client.get("/releases/wards/certificate")
    assert certificate.headers["content-security-policy"] == documents.DOCUMENT_POLICY
    assert "Histogram of visits" in words(certificate)
    named = PublicKey.read(shared.folder / "owner.pub").fingerprint
    assert named in certificate.text
    kept = client.get("/releases/wards/keep", download="yes")
    assert kept.headers["content-disposition"] == 'attachment; filename="wards-keep.html"'
    assert "report to keep" in kept.text
    assert folder_hash(shared.folder / "releases" / "wards") == before
    assert CANARY not in certificate.text + kept.text


def test_a_certificate_says_in_red_what_the_ledger_does_not_know(own):
    (own.folder / "books.db").unlink()
    with Ledger.create(own.folder / "books.db") as ledger:
        ledger.add("visits", cap="9")
    answer = own.client().get("/releases/wards/certificate")
    assert "the ledger" in answer.text
    assert "What the release claims" in answer.text
    (own.folder / "books.db").unlink()
    assert own.client().get("/releases/wards/certificate").status == 404
    assert "certificate" not in own.client().get("/releases/wards").text


def test_readers_see_the_certificate_and_not_the_report_to_keep(shared):
    reader = shared.client("reader")
    assert reader.get("/releases/wards/certificate").status == 200
    assert reader.get("/releases/wards/keep").status == 403
    assert "/keep" not in reader.get("/releases/wards").text


def test_a_table_may_be_empty_when_rows_are_predicted(shared):
    empty = pa.table({"age": pa.array([], pa.int64()), "ward": pa.array([], pa.string())})
    path = shared.folder / "empty.parquet"
    pq.write_table(empty, path)
    answer = shared.client().post("/releases/tree/predict", {"table": "empty.parquet", "to": "csv"})
    assert answer.status == 200
    assert "predicted_ill" in answer.text
