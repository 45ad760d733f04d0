"""What a hostile reader tried against the studio, and must not get."""

import socket
import threading

import pytest

from dpublish.errors import InvalidParameter
from dpublish.studio.desk import Source
from dpublish.studio.jobs import Jobs
from dpublish.studio.pages import using
from dpublish.studio.serve import Listening
from dpublish.studio.spends import Spend, Spends, now
from studio.test_releasing import WANTED, form, review
from studio_world import CANARY, open_studio, write_files


def publish(client, **changes):
    return client.wait(client.post("/release", form(review(client), **changes)).goes_to)


def at_once(*calls):
    """Call all of these at the same time, and return what they returned."""
    found = [None] * len(calls)

    def run(number):
        found[number] = calls[number]()

    threads = [threading.Thread(target=run, args=(number,)) for number in range(len(calls))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return found


# ---- spend twice ----------------------------------------------------------------------------


def test_many_sendings_at_once_of_one_form_lead_to_one_page(world):
    client = world.client()
    sent = form(review(client))
    answers = at_once(*[lambda: client.post("/release", sent)] * 8)
    assert len({each.goes_to for each in answers}) == 1
    client.wait(answers[0].goes_to)
    assert world.spent() == 0.5


@pytest.mark.parametrize("asked", ["same", "is_open"])
def test_a_double_click_is_not_told_that_it_was_sent_before(world, monkeypatch, asked):
    client = world.client()
    sent = form(review(client))
    spends = world.studio.spends
    look = getattr(spends, asked)
    answers = []

    def look_late(*given):
        """Let the first click arrive just before the second one is looked at."""
        monkeypatch.setattr(spends, asked, look)
        answers.append(client.post("/release", sent))
        return look(*given)

    monkeypatch.setattr(spends, asked, look_late)
    answers.append(client.post("/release", sent))
    assert [each.status for each in answers] == [303, 303]
    client.wait(answers[0].goes_to)
    assert world.spent() == 0.5


def test_work_ends_even_if_that_cannot_be_written_down():
    def fail(job, state):
        raise OSError("no space left")

    jobs = Jobs()
    job = jobs.start("add", lambda report: 2, ended=fail)
    jobs.wait(job)
    assert (job.state, job.result) == ("done", 2)
    assert "could not be written down" in job.notes[0]


@pytest.mark.parametrize(
    "written",
    [
        {"epsilon": "1/2"},
        {"epsilon": "0.50"},
        {"data": "./visits.parquet"},
        {"schema": "./visits.toml"},
        {"set-unknown": "1"},
        {"rows": "900", "purpose": "other words"},
    ],
)
def test_a_request_that_is_written_otherwise_is_the_same(world, written):
    key = review(world.client()).field("key")
    assert review(world.client(), **written).field("key") == key


@pytest.mark.parametrize(
    "other", [{"epsilon": "0.4"}, {"set-columns": "age"}, {"where": "age >= 18"}]
)
def test_another_request_has_another_key(world, other):
    key = review(world.client()).field("key")
    assert review(world.client(), **other).field("key") != key


def test_lists_of_columns_are_compared_as_the_method_reads_them(world):
    one = review(world.client(), **{"set-columns": "ward,ill"})
    other = review(world.client(), **{"set-columns": " ward , ill"})
    assert one.field("key") == other.field("key")


def test_a_form_does_not_pay_for_what_it_did_not_show(world):
    client = world.client()
    page = review(client)
    answer = client.post("/release", form(page, epsilon="0.6"))
    assert "out of date" in answer.text
    assert world.spent() == 0


def change_schema(world):
    path = world.folder / "visits.toml"
    path.write_text(path.read_text().replace("99", "120"))


def test_a_form_does_not_pay_for_a_schema_that_was_not_reviewed(world):
    client = world.client()
    page = review(client)
    change_schema(world)
    assert "out of date" in client.post("/release", form(page)).text
    assert world.spent() == 0


def test_a_release_that_waits_does_not_pay_for_a_schema_that_was_not_reviewed(world):
    client, go_on = world.client(), threading.Event()
    sent = form(review(client))
    for number in range(2):  # both slots are taken
        world.studio.jobs.start(f"wait {number}", lambda report: go_on.wait(20))
    path = client.post("/release", sent).goes_to
    change_schema(world)
    go_on.set()
    assert "the schema was changed after the review" in client.wait(path).text
    assert world.spent() == 0


def test_two_studios_of_one_folder_publish_once(world):
    with open_studio(world.folder) as other:
        one, two = world.client(), other.client()
        forms = [form(review(one)), form(review(two), output="more")]
        answers = at_once(
            lambda: one.post("/release", forms[0]), lambda: two.post("/release", forms[1])
        )
        assert sorted(each.status for each in answers) == [303, 422]
        (one if answers[0].status == 303 else two).wait(
            next(each.goes_to for each in answers if each.status == 303)
        )
    assert world.spent() == 0.5


def spend(key, content="ages", output="ages"):
    return Spend(key, content, now(), "people", "histogram", "0.5", output)


def test_what_another_studio_wrote_meanwhile_is_not_begun_again(tmp_path):
    one, other = Spends(tmp_path), Spends(tmp_path)
    assert one.begin(spend("first"))
    with pytest.raises(InvalidParameter, match="published before"):
        other.begin(spend("second", output="more"))
    assert other.find("second") is None
    assert other.begin(spend("second", output="more"), again=True)


def test_two_releases_of_one_name_are_not_both_paid_for(world):
    client = world.client()
    pages = [review(client, epsilon=each) for each in ("0.5", "0.25")]
    sent = [form(page, epsilon=each) for page, each in zip(pages, ("0.5", "0.25"), strict=True)]
    blocked = threading.Semaphore(0)
    jobs = world.studio.jobs
    for number in range(2):  # both slots are taken, so the first release waits
        jobs.start(f"wait {number}", lambda report: blocked.acquire(timeout=20))
    first, second = (client.post("/release", each) for each in sent)
    blocked.release(2)
    assert (first.status, second.status) == (303, 422)
    assert "another release is about to be called wards" in second.text
    assert "published wards" in client.wait(first.goes_to).text
    assert world.spent() == 0.5


# ---- without a session, or past the guard ---------------------------------------------------


def answer_to(world, *lines, body=b""):
    head = "\r\n".join([*lines, f"Host: {world.host}", "Connection: close", "", ""])
    with socket.create_connection(("127.0.0.1", world.port), timeout=20) as connection:
        connection.sendall(head.encode() + body)
        return connection.makefile("rb").read().decode()


@pytest.mark.parametrize("cookie", ["a/b=1", "a@b=1; c", 'x={"y": "z"}', "=;;=", "\x7f=1"])
def test_odd_cookies_of_other_servers_harm_no_one(world, cookie):
    assert answer_to(world, "GET / HTTP/1.1", f"Cookie: {cookie}").startswith("HTTP/1.1 403")
    own = world.client().cookie
    both = answer_to(world, "GET / HTTP/1.1", f"Cookie: {cookie}; {own}")
    assert both.startswith("HTTP/1.1 200")


def test_a_link_of_a_reader_does_not_put_an_owner_out(world):
    owner, reader = world.client(), world.client("reader")
    for both in (f"{owner.cookie}; {reader.cookie}", f"{reader.cookie}; {owner.cookie}"):
        assert owner.ask("GET", "/begin", Cookie=both).status == 200
    assert reader.get("/begin").status == 403


@pytest.mark.parametrize(
    ("port", "origin"), [(443, "https://10.0.0.1"), (8443, "https://10.0.0.1:8443")]
)
def test_the_usual_port_is_not_in_the_address(tmp_path, port, origin):
    where = Listening("10.0.0.1", port, tmp_path / "a.pem", tmp_path / "a.key")
    assert where.origins(port) == [origin]


def test_a_body_of_unknown_length_is_refused(world):
    client = world.client()
    told = [
        "POST /datasets HTTP/1.1",
        f"Cookie: {client.cookie}",
        f"Origin: {world.origin}",
        "Transfer-Encoding: chunked",
    ]
    for more in ([], ["Content-Length: 3"]):
        answer = answer_to(world, *told, *more, body=b"3\r\na=1\r\n0\r\n\r\n")
        assert answer.startswith("HTTP/1.1 413"), more


# ---- rows -----------------------------------------------------------------------------------


@pytest.mark.parametrize("role", ["owner", "reader"])
def test_no_page_opens_a_table_as_a_schema(world, role):
    (world.folder / "notes.csv").write_bytes(f"name\n{CANARY}\xe9\n".encode("latin-1"))
    client = world.client(role)
    for name in ("notes.csv", "visits.parquet", "books.db", "releases/studio.db"):
        for path in ("/plan", "/release", "/streams/review"):
            answer = client.get(path, **WANTED | {"schema": name})
            assert answer.status == 403 or "its name must end in .toml" in answer.text


def test_a_fault_while_an_answer_is_sent_is_not_logged(world, monkeypatch, capfd, caplog):
    client = world.client()
    publish(client)

    def content(batches, ending):
        yield b"ward\n"
        raise ValueError(CANARY)

    monkeypatch.setattr(using, "batches_as_bytes", content)
    with pytest.raises(Exception, match=r"IncompleteRead|RemoteDisconnected|chunk"):
        client.get("/releases/wards/rows.csv", n="10")
    told = capfd.readouterr()
    assert CANARY not in told.err + told.out + caplog.text
    assert "Traceback" not in told.err


def test_what_is_learned_from_rows_has_no_page_but_its_own(world):
    (world.folder / "empty.csv").write_text("age,ward,ill\n1,,no\n")
    owner, reader = world.client(), world.client("reader")
    publish(owner)
    page = owner.post("/releases/wards/evaluate", {"against": "empty.csv"}).goes_to
    key = page.rpartition("/")[2]
    world.studio.jobs.wait(world.studio.jobs.find(key))
    assert "none of the true rows" in owner.get(page).text
    for client in (owner, reader):
        assert "true rows" not in client.get(f"/jobs/{key}").text
    assert "data:" not in reader.get(f"/jobs/{key}/events").text
    assert reader.get(page).status == 403


def test_an_evaluation_that_ends_while_its_page_is_written_is_shown(world, monkeypatch):
    owner = world.client()
    publish(owner)
    page = owner.post("/releases/wards/evaluate", {"against": "visits.parquet"}).goes_to
    job = world.studio.jobs.find(page.rpartition("/")[2])
    world.studio.jobs.wait(job)

    class Ending:
        """It runs when it is first looked at, and has ended afterward."""

        looked = 0

        def __getattr__(self, name):
            if name in ("state", "result"):
                self.looked += 1
                if self.looked < 3:
                    return {"state": "running", "result": None}[name]
            return getattr(job, name)

    monkeypatch.setitem(world.studio.jobs._jobs, job.key, Ending())
    assert owner.get(page).status == 200


@pytest.mark.parametrize(
    ("data", "schema", "is_named"),
    [
        ("visits", "visits.toml", True),
        ("", "copy.toml", True),
        ("", "visits.toml", False),
    ],
)
def test_a_private_table_that_is_named_otherwise_never_stands_in(tmp_path, data, schema, is_named):
    write_files(tmp_path)
    (tmp_path / "copy.toml").write_text((tmp_path / "visits.toml").read_text())
    table = Source(str(tmp_path / "visits.parquet"))
    with open_studio(tmp_path, {"visits": table} if is_named else {}) as world:
        told = {"origin": "table", "public": "visits.parquet", "is_public": "yes"}
        told |= {"data": data, "schema": schema}
        answer = world.client().post("/plan/rehearsals", WANTED | told)
        assert answer.status == 422
        assert "which is private" in answer.text
        assert world.studio.jobs.running() == []


# ---- files ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "name", ["releases/wards/more.csv", "sub/more.csv", "../more.csv", "a/../more.csv"]
)
def test_an_upload_has_a_name_and_no_path(world, name):
    client = world.client()
    publish(client)
    (world.folder / "sub").mkdir()
    before = sorted(world.folder.parent.rglob("*"))
    for path, field in (("/begin/upload", "table"), ("/schemas/codes", "codes")):
        answer = client.upload(path, field, name, b"code\n1\n")
        assert answer.status == 422
        assert "cannot be a name" in answer.text or "not in the studio" in answer.text
    assert sorted(world.folder.parent.rglob("*")) == before


@pytest.mark.parametrize("key", ["values", "taxonomy"])
def test_a_schema_names_no_table_as_codes(world, key):
    (world.folder / "other.parquet").write_bytes(f"{CANARY}\xe9".encode("latin-1"))
    client = world.client()
    page = client.get("/schemas/text", schema="visits.toml")
    text = (world.folder / "visits.toml").read_text()
    more = '\n[columns.kin]\nkind = "category"\nvalues = ["a", "b"]\n'
    if key == "values":
        more = more.replace('["a", "b"]', '"other.parquet"')
    else:
        more += 'taxonomy = "other.parquet"\n'
    fields = {"schema": "visits.toml", "text": text + more, "digest": page.field("digest")}
    answer = client.post("/schemas/text", fields)
    assert answer.status == 422
    assert "the name of a file of codes must end in" in answer.text
    assert (world.folder / "visits.toml").read_text() == text


# ---- denial ---------------------------------------------------------------------------------


def test_a_reader_does_not_fill_the_memory_with_rows(world):
    owner, reader = world.client(), world.client("reader")
    publish(owner)
    for path in ("/releases/wards/rows.csv", "/releases/wards/rows.parquet"):
        for number in ("", "1,000,001", "100000000"):
            answer = reader.get(path, n=number)
            assert answer.status == 422
            assert "readers draw at most 1,000,000" in answer.text
        assert reader.get(path, n="10").status == 200
    assert owner.get("/releases/wards/rows.csv").status == 200
    assert "At most 1,000,000 at once" in reader.get("/releases/wards/rows").text


def test_readers_do_not_keep_an_owner_waiting(world, monkeypatch):
    owner, reader = world.client(), world.client("reader")
    waiting, go_on = threading.Semaphore(0), threading.Event()
    listed = type(world.studio.desk).list_releases

    def list_slowly(desk):
        if not go_on.is_set():
            waiting.release()
            go_on.wait(20)
        return listed(desk)

    monkeypatch.setattr(type(world.studio.desk), "list_releases", list_slowly)
    threads = [threading.Thread(target=reader.get, args=("/releases",)) for _ in range(45)]
    for thread in threads:
        thread.start()
    try:
        for _ in range(4):
            assert waiting.acquire(timeout=20)
        assert not waiting.acquire(timeout=0.5)  # no more of them are answered at once
        assert owner.get("/").status == 200
    finally:
        go_on.set()
        for thread in threads:
            thread.join()
