"""A schema on a server has the verbs of a file, and survives what happens on the way to it."""

import os
import sys
import time
from contextlib import suppress
from threading import Thread

import pytest

from dpublish.errors import InputError, InvalidParameter
from dpublish.storage.address import read_address, shown_location, whole_location
from dpublish.storage.postgres import PostgresDatabase, SchemaKind
from postgres_proxy import AFTER, BEFORE, LATE, proxied

KIND = SchemaKind(
    noun="the notebook",
    content="a notebook",
    maker="dpublish note",
    mark="dpublish notebook",
    format=2,
    tables=("CREATE TABLE notes (number bigint PRIMARY KEY, text text NOT NULL)",),
    error=InputError,
    look="look at the notes",
)


class Notebook(PostgresDatabase):
    kind = KIND

    def add(self, number, text):
        self._last = (number, text)
        with self.writing():
            self.change("INSERT INTO notes VALUES (?, ?)", number, text)

    def texts(self):
        return [text for (text,) in self.rows("SELECT text FROM notes ORDER BY number")]

    def _stands(self):
        return self.first("SELECT number, text FROM notes WHERE number = ?", self._last[0]) == (
            self._last
        )


@pytest.fixture
def address(postgres_database):
    made = read_address(postgres_database)
    KIND.create(made, lambda connection: None)
    return made


@pytest.fixture
def notes(address):
    notebook = Notebook(address, wait_seconds=5)
    yield notebook
    notebook.close()


def through(proxy, address):
    """Return the address of the same database behind a proxy."""
    host, _, database = address.uri.rpartition("/")
    return read_address(f"{host.rpartition(':')[0]}:{proxy.port}/{database}")


# Addresses


@pytest.mark.parametrize(
    "text",
    [
        "postgresql://ada:geheim@host/db",
        "postgresql://ada:ge#heim@host/db",
        "postgresql://ada:ge/he?im@host/db",
        "postgres://host/db?password=geheim",
        "postgresql://host/db?sslmode=require&sslpassword=geheim",
        "postgresql://host/db?pass%77ord=geheim",
        "postgresql://host/db?oauth_client_secret=geheim",
        "postgresql://host/db?scram_client_key=geheim",
        "postgresql://ada:geheim%40host/db",
        "postgresql://ada:geheim",
        "postgresql://ada:12geheim#team",
        "postgresql://one:1,ada:geheim%40host/db",
    ],
)
def test_a_password_is_refused_and_not_repeated(text):
    with pytest.raises(InvalidParameter, match="PGPASSFILE") as caught:
        read_address(text)
    assert "heim" not in str(caught.value)


@pytest.mark.parametrize(
    "text",
    [
        "postgresql://",
        "postgresql:///db",
        "postgresql://ada@[::1]:5433/db#team",
        "postgresql://ada@one:1,two:2/db?target_session_attrs=primary&passfile=/p",
        "postgresql://%2Frun%2Fpostgresql/db",
        "postgresql://?service=books",
        "postgresql://host/db#secrets",
    ],
)
def test_addresses_without_a_password_are_taken(text):
    assert read_address(text).text == text


@pytest.mark.parametrize("schema", ["a-b", "1a", 'x"y', "pg_toast", "public", "a" * 64, "é"])
def test_a_schema_has_a_plain_name_of_its_own(schema):
    with pytest.raises(InvalidParameter, match="schema of its own"):
        read_address(f"postgresql://host/db#{schema}")


def test_an_address_is_kept_whole_and_shown_without_options(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    text = "postgres://ada@host:1/db?sslmode=require#team"
    assert whole_location(text) == "postgresql://ada@host:1/db?sslmode=require#team"
    assert shown_location(text) == "postgresql://ada@host:1/db#team"
    assert whole_location("books.db") == str(tmp_path / "books.db")


def test_a_missing_driver_says_what_to_install(address, monkeypatch):
    monkeypatch.setitem(sys.modules, "psycopg", None)
    with pytest.raises(InputError, match=r'pip install "dpublish\[postgres\]"'):
        Notebook(address)


# Opening


def test_what_is_there_is_never_replaced(address):
    with pytest.raises(InputError, match="exists already; a notebook is never replaced"):
        KIND.create(address, lambda connection: None)


def test_a_schema_that_is_something_else_is_refused(postgres_server, address):
    database = address.uri.rpartition("/")[2]
    with pytest.raises(InputError, match="does not exist; `dpublish note` makes one"):
        Notebook(read_address(f"{address.uri}#other"))
    postgres_server.execute("CREATE SCHEMA other", database=database)
    with pytest.raises(InputError, match="is not a notebook: it is some other schema"):
        Notebook(read_address(f"{address.uri}#other"))
    postgres_server.execute(
        "COMMENT ON SCHEMA dpublish IS 'dpublish notebook 3'", database=database
    )
    with pytest.raises(InputError, match="format 3, newer than 2: upgrade dpublish"):
        Notebook(address)


def test_a_creation_that_fails_leaves_nothing(postgres_database):
    address = read_address(postgres_database)

    def fail(connection):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        KIND.create(address, fail)
    with pytest.raises(InputError, match="does not exist"):
        Notebook(address)


def test_a_server_that_is_not_there_is_named():
    with pytest.raises(
        InputError, match=r"notebook postgresql://127\.0\.0\.1:1/db cannot be reach"
    ):
        Notebook(read_address("postgresql://127.0.0.1:1/db"))


def test_a_server_that_forgets_in_a_crash_is_not_written(postgres_server, notes):
    try:
        postgres_server.execute("ALTER SYSTEM SET fsync = off", "SELECT pg_reload_conf()")
        with pytest.raises(InputError, match="its server has fsync = off"):
            write_for_a_while(notes)
    finally:
        postgres_server.execute("ALTER SYSTEM RESET fsync", "SELECT pg_reload_conf()")


def write_for_a_while(notes):
    for number in range(300):  # the server takes its settings in when it comes to it
        notes.add(number, "maybe lost")
        time.sleep(0.01)


def test_a_database_that_is_read_only_says_so(postgres_server, address, notes):
    database = address.uri.rpartition("/")[2]
    postgres_server.execute(
        f"ALTER DATABASE {database} SET default_transaction_read_only = on",
        f"ALTER DATABASE {database} SET synchronous_commit = off",
    )
    notes.add(1, "a transaction says itself that it writes, and that it waits for the disk")
    second = Notebook(address)
    with second.writing():
        assert second.first("SHOW synchronous_commit") == ("on",)
    second.close()


# Transactions


def test_what_is_written_is_read_back_and_what_fails_is_taken_back(notes):
    notes.add(1, "a 100% ¿café?")
    with pytest.raises(KeyboardInterrupt):
        write_and_stop(notes)
    assert notes.texts() == ["a 100% ¿café?"]
    assert notes.first("SELECT text FROM notes WHERE number = ?", 2) is None


def write_and_stop(notes):
    with notes.writing():
        notes.change("INSERT INTO notes VALUES (?, ?)", 2, "never")
        raise KeyboardInterrupt


def test_an_error_that_is_swallowed_does_not_pass_for_a_change(notes):
    notes.add(1, "one")
    with pytest.raises(InputError, match="was not changed"):
        write_and_swallow(notes)
    assert notes.texts() == ["one"]


def write_and_swallow(notes):
    with notes.writing(), pytest.raises(Exception, match="duplicate key"):
        notes.change("INSERT INTO notes VALUES (?, ?)", 1, "again")


def test_one_writer_is_at_work_at_a_time(address, notes):
    late = Notebook(address, wait_seconds=0.2)
    with notes.writing():
        with pytest.raises(InputError, match="is busy: another process kept it locked"):
            late.add(1, "too early")
        assert late.texts() == []  # readers do not wait
    late.add(1, "now")
    late.close()


def test_readers_see_one_moment(address, notes):
    second = Notebook(address)
    with notes.reading():
        assert notes.texts() == []
        second.add(1, "meanwhile")
        assert notes.texts() == []
    assert notes.texts() == ["meanwhile"]
    second.close()


def test_it_cannot_be_used_while_it_is_changed_nor_once_it_is_closed(notes):
    with notes.writing(), pytest.raises(InputError, match="is in use"), notes.writing():
        pass
    notes.close()
    notes.close()
    with pytest.raises(InputError, match="was closed; open it again"):
        notes.texts()


def test_threads_take_turns(notes):
    threads = [Thread(target=notes.add, args=(number, "x")) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(notes.texts()) == 8


def test_a_forked_child_is_refused_and_does_not_end_the_session(notes):
    session = notes.first("SELECT pg_backend_pid()")
    child = os.fork()
    if child == 0:
        code = 1
        try:
            notes.texts()
        except InputError as error:
            code = 0 if "forked" in str(error) else 2
        finally:
            notes.close()
            os._exit(code)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert notes.first("SELECT pg_backend_pid()") == session


def test_a_child_that_is_forked_before_the_commit_does_not_take_it_for_its_own(notes):
    parent = os.getpid()
    read, write = os.pipe()
    told = ""
    try:
        with notes.writing():
            notes._last = (1, "one")
            notes.change("INSERT INTO notes VALUES (?, ?)", 1, "one")
            child = os.fork()
            if child == 0:
                os.read(read, 1)  # until the parent has committed
    except InputError as error:
        told = str(error)
    finally:
        if os.getpid() != parent:
            os._exit(0 if "forked" in told else 1)
    os.write(write, b"x")
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert notes.texts() == ["one"]
    os.close(read)
    os.close(write)


def test_an_interrupt_at_any_line_leaves_it_usable(notes):
    lines = interrupted(notes, at=0)
    assert lines > 20
    for line in range(1, lines + 1):
        interrupted(notes, at=line)
        notes.texts()


def interrupted(notes, at):
    """Read, and be interrupted at a line of the storage; return how many lines there are."""
    seen = 0

    def trace(frame, event, _):
        nonlocal seen
        if not frame.f_code.co_filename.endswith("storage/postgres.py"):
            return None
        if event == "line":
            seen += 1
            if seen == at:
                raise KeyboardInterrupt
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        with suppress(KeyboardInterrupt):
            notes.texts()
    finally:
        sys.settrace(before)
    return seen


# Standbys


@pytest.fixture
def standby_missing(postgres_server):
    """A server that waits for a standby which is not there."""
    local = "SET synchronous_commit = local"
    name = "ALTER SYSTEM SET synchronous_standby_names = 'nowhere'"
    postgres_server.execute(name, "SELECT pg_reload_conf()")
    postgres_server.await_standbys()
    yield
    name = "ALTER SYSTEM RESET synchronous_standby_names"
    postgres_server.execute(local, name, "SELECT pg_reload_conf()")


def end_wait(server, how):
    """End the wait for a standby, once there is one: by pg_cancel_backend, for example."""
    local = "SET synchronous_commit = local"
    query = f"SELECT {how}(pid) FROM pg_stat_activity WHERE wait_event = 'SyncRep'"
    deadline = time.monotonic() + 60
    while not server.execute(local, query):
        assert time.monotonic() < deadline, "no one waits for the standby"
        time.sleep(0.05)


def in_thread(act):
    """Run something in a thread; `join` on what is returned, then see what it left."""
    left = []

    def run():
        try:
            left.append(act())
        except InputError as error:
            left.append(str(error))

    thread = Thread(target=run, daemon=True)
    thread.start()
    return thread, left


def test_a_change_that_no_standby_confirms_is_not_taken_for_safe(
    postgres_server, notes, standby_missing
):
    thread, left = in_thread(lambda: notes.add(1, "one"))
    end_wait(postgres_server, "pg_cancel_backend")
    thread.join(10)
    assert "was changed, but the server warns: canceling wait for sync" in left[0]


def test_no_default_of_a_role_hides_that_a_standby_has_not_confirmed(
    postgres_server, address, standby_missing
):
    silent = f"{address.uri}?options=-cclient_min_messages%3Derror"
    notes = Notebook(read_address(silent), wait_seconds=5)
    thread, left = in_thread(lambda: notes.add(1, "one"))
    end_wait(postgres_server, "pg_cancel_backend")
    thread.join(10)
    notes.close()
    assert "but the server warns" in left[0]


def test_a_commit_that_is_looked_up_waits_for_the_standby_again(
    postgres_server, notes, standby_missing
):
    thread, left = in_thread(lambda: notes.add(1, "one"))
    end_wait(postgres_server, "pg_terminate_backend")
    time.sleep(0.5)  # it connects again and finds what it wrote
    end_wait(postgres_server, "pg_cancel_backend")
    thread.join(10)
    assert "was changed, but the server warns: canceling wait for sync" in left[0]
    assert notes.texts() == ["one"]


# Lost connections


def test_a_connection_that_was_lost_is_made_anew(postgres_server, address, notes):
    notes.add(1, "one")
    postgres_server.restart()
    notes.add(2, "two")
    with proxied(postgres_server.port) as proxy:
        second = Notebook(through(proxy, address), wait_seconds=5)
        proxy.cut_all()
        assert second.texts() == ["one", "two"]
        second.close()


def test_a_connection_lost_within_a_change_has_changed_nothing(postgres_server, address):
    with proxied(postgres_server.port) as proxy:
        notes = Notebook(through(proxy, address), wait_seconds=5)
        with pytest.raises(InputError, match="cannot be reached"):
            write_and_be_cut(notes, proxy)
        assert notes.texts() == []
        notes.close()


def write_and_be_cut(notes, proxy):
    with notes.writing():
        notes.change("INSERT INTO notes VALUES (?, ?)", 1, "never")
        proxy.cut_all()
        notes.change("INSERT INTO notes VALUES (?, ?)", 2, "never")


@pytest.mark.parametrize("moment", [BEFORE, AFTER, LATE])
def test_a_commit_without_an_answer_is_looked_up(postgres_server, address, moment):
    with proxied(postgres_server.port) as proxy:
        notes = Notebook(through(proxy, address), wait_seconds=5)
        notes.add(1, "one")
        proxy.cut_at = moment
        if moment == BEFORE:
            with pytest.raises(InputError, match=r"was not changed: .* repeat the command"):
                notes.add(2, "two")
        else:
            notes.add(2, "two")
        assert notes.texts() == (["one"] if moment == BEFORE else ["one", "two"])
        notes.close()


def test_a_commit_that_cannot_be_looked_up_is_unknown(postgres_server, address):
    with proxied(postgres_server.port) as proxy:
        notes = Notebook(through(proxy, address), wait_seconds=0.5)
        proxy.cut_at, proxy.stays_away = AFTER, True
        with pytest.raises(InputError, match=r"may stand or not, .*; look at the notes"):
            notes.add(1, "who knows")
        proxy.stays_away = False
        assert notes.texts() == ["who knows"]
        notes.close()
