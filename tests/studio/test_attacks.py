"""What a hostile reader tried against the studio, and must not get."""

import socket
import threading

import pytest

from dpublish.studio.pages import using
from dpublish.studio.spends import Spend, now
from studio_world import CANARY

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
    return WANTED | {"key": page.field("key"), "output": "wards", "confirm": "visits"} | changes


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


def spend(key, content="ages", output="ages"):
    return Spend(key, content, now(), "people", "histogram", "0.5", output)


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
