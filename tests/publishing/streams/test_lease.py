"""A stream on a server: one operator at a time, and whoever was taken over publishes nothing."""

import os
import signal
import subprocess
import sys
import time
from contextlib import closing, contextmanager, nullcontext
from threading import Barrier, Event, Thread

import pytest
from psycopg.errors import InsufficientPrivilege

import lease_worker
from dpublish.core.folder.folder import load
from dpublish.errors import BudgetExhausted, CorruptRelease, InputError, InvalidParameter
from dpublish.ledger.ledger import Ledger
from dpublish.methods.streams import folder as stream_folder
from dpublish.methods.streams.folder import load_stream, stream_differences
from dpublish.publishing.streams import delivery as stream_delivery
from dpublish.publishing.streams import lease as stream_lease
from dpublish.publishing.streams import operator as stream_operator
from dpublish.publishing.streams.lease import Claim, Process
from dpublish.publishing.streams.operator import StreamOperator
from dpublish.publishing.streams.server_state import StreamSchema
from dpublish.publishing.streams.state import StreamStore, TakenOver
from dpublish.publishing.streams.status import stream_status
from dpublish.storage.address import read_address
from lease_worker import HeldUp
from postgres_proxy import AFTER, BEFORE, LATE, proxied
from postgres_server import require_programs, running_server
from stream_world import METHOD, SCHEMA, arguments, make_ledger, rows


@pytest.fixture
def workspace(tmp_path):
    make_ledger(tmp_path)
    return tmp_path


@pytest.fixture
def state(postgres_database):
    return f"{postgres_database}#rides"


def start(workspace, state, **changes):
    return StreamOperator.start(state, METHOD, SCHEMA, **arguments(workspace, **changes))


def take_over(state, **more):
    return StreamOperator.open(state, take_over=True, **more)


def lease(state):
    """The fence and the holder's token, as the server has them."""
    with closing(StreamSchema(read_address(state))) as schema:
        return tuple(schema.first("SELECT fence, token FROM lease"))


def require_steps(folder, count):
    """The folder is whole, and holds these steps once each."""
    stream = load_stream(folder)
    assert stream.times == tuple(f"t{number}" for number in range(1, count + 1))
    assert [stream.at(time).shape for time in stream.times] == [(2, 4)] * count
    assert not stream_differences(folder)


@contextmanager
def before(monkeypatch, owner, name, act):
    """Let `act` happen once, right before the next call of `owner.name` goes through."""
    original = getattr(owner, name)

    def late(*given, **named):
        monkeypatch.setattr(owner, name, original)
        act()
        return original(*given, **named)

    monkeypatch.setattr(owner, name, late)
    yield
    assert getattr(owner, name) is original, f"{name} was not called"


# Taking and giving back


def test_every_operator_gets_a_higher_fence_and_gives_the_lease_back(workspace, state):
    fences = []
    with start(workspace, state):
        fences.append(lease(state))
    assert lease(state) == (1, None)
    for _ in range(2):
        with StreamOperator.open(state):
            fences.append(lease(state))
        assert stream_status(state).operator is None
    assert [fence for fence, _ in fences] == [1, 2, 3]
    assert len({token for _, token in fences}) == 3


def test_of_operators_that_come_at_once_one_gets_the_stream(workspace, state):
    start(workspace, state).close()
    gate, won, lost = Barrier(6), [], []

    def run():
        gate.wait()
        try:
            won.append(StreamOperator.open(state))
        except InputError as error:
            lost.append(str(error))

    threads = [Thread(target=run) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (len(won), len(lost)) == (1, 5)
    assert all("another operator is at work on" in said for said in lost)
    with won[0] as operator:
        assert operator.next(rows(1), "t1").number == 1


def test_who_is_refused_learns_who_has_the_stream_and_until_when(workspace, state):
    with start(workspace, state):
        about = stream_status(state).operator
        with pytest.raises(InputError) as caught:
            StreamOperator.open(state)
        said = f"process {os.getpid()} on {about['host']}, since {about['since']}"
        assert said in str(caught.value)
        assert f"its lease ends at {about['until']}" in str(caught.value)
        assert "--wait SECONDS" in str(caught.value)


def test_whoever_waits_gets_the_stream_when_it_is_given_back(workspace, state, tmp_path):
    file = tmp_path / "rides.stream"
    for where, output in ((state, "out"), (file, "other")):
        first = start(workspace, where, output=workspace / output)
        closer = Thread(target=lambda held=first: (time.sleep(0.5), held.close()))
        closer.start()
        StreamOperator.open(where, wait_seconds=20).close()
        closer.join()
        with first, pytest.raises(InputError, match="was closed"):
            first.next(rows(1), "t1")


def test_a_lease_that_is_not_renewed_runs_out_and_one_that_is_does_not(
    workspace, state, monkeypatch
):
    start(workspace, state).close()
    with StreamOperator.open(state, lease_seconds=1):
        time.sleep(2.5)
        with pytest.raises(InputError, match="another operator"):
            StreamOperator.open(state)
    monkeypatch.setattr(stream_lease.Heartbeat, "_beat", lambda self: True)  # a twin that is silent
    with (
        StreamOperator.open(state, lease_seconds=1) as first,
        StreamOperator.open(state, wait_seconds=10) as second,
    ):
        assert second.next(rows(1), "t1").number == 1
        with pytest.raises(TakenOver, match="another operator has moved"):
            first.next(rows(2), "t2")


def test_a_lease_outlives_cuts_of_the_network(postgres_server, workspace, state):
    start(workspace, state).close()
    with proxied(postgres_server.port) as proxy:
        behind = state.replace(f":{postgres_server.port}/", f":{proxy.port}/")
        with StreamOperator.open(behind, lease_seconds=1) as operator:
            for number in (1, 2, 3):
                proxy.cut_all()
                assert operator.next(rows(number), f"t{number}").number == number
                time.sleep(0.5)
            with pytest.raises(InputError, match="another operator"):
                StreamOperator.open(state)
            proxy.cut_all()
    load_stream(workspace / "out").at("t3")


def test_only_a_process_that_ran_here_is_known_to_be_gone(monkeypatch):
    own = Process.current()
    assert not own.is_gone
    with subprocess.Popen([sys.executable, "-c", ""]) as ended:
        ended.wait()
    gone = Process(own.host, ended.pid, own.machine)
    assert gone.is_gone == (own.machine != "")
    assert not Process(own.host, ended.pid, "another").is_gone
    assert not Process(own.host, ended.pid, "").is_gone
    monkeypatch.setattr(stream_lease, "Path", lambda name: (_ for _ in ()).throw(OSError))
    assert Process.current().machine == ""


@pytest.mark.parametrize(
    "wrong",
    [
        {"lease_seconds": 0},
        {"lease_seconds": float("nan")},
        {"lease_seconds": 1e9},
        {"wait_seconds": -1},
        {"wait_seconds": float("inf")},
    ],
)
def test_a_claim_that_makes_no_sense_is_refused(wrong):
    with pytest.raises(InvalidParameter):
        Claim(**wrong)


def test_a_file_is_not_taken_over(workspace, tmp_path):
    path = tmp_path / "rides.stream"
    start(workspace, path).close()
    with pytest.raises(InvalidParameter, match="nothing to take over"):
        StreamOperator.open(path, take_over=True)


# Fencing


def test_an_operator_that_stood_still_in_a_step_publishes_nothing_when_it_wakes(workspace, state):
    start(workspace, state).close()
    worker = subprocess.Popen(
        [sys.executable, lease_worker.__file__, state],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    with worker:
        try:
            assert worker.stdout.readline() == "reading\n"
            time.sleep(2)  # two leases: a step may take as long as it likes
            with pytest.raises(InputError, match=f"process {worker.pid}"):
                StreamOperator.open(state)
            os.kill(worker.pid, signal.SIGSTOP)
            with StreamOperator.open(state, wait_seconds=20) as operator:
                step = operator.next(rows(2), "t2")
                operator.write_pages()
                os.kill(worker.pid, signal.SIGCONT)
                said, _ = worker.communicate("go\n", timeout=60)
                assert said.startswith("TakenOver: another operator has moved")
                assert operator.next(rows(3), "t3").number == 3
                operator.write_pages()
        finally:
            worker.kill()
    require_steps(workspace / "out", 3)
    assert load_stream(workspace / "out").at("t2").ravel().tolist() == step.estimate.tolist()


@pytest.mark.parametrize("act", ["next", "stop", "write_pages", "mark", "put"])
def test_whoever_was_taken_over_changes_nothing(workspace, state, act):
    with start(workspace, state) as first:
        first.next(rows(1), "t1")
        with take_over(state) as second:
            held = lease(state)
            acts = {
                "next": lambda: first.next(lambda: "never opened", "t2"),
                "stop": first.stop,
                "write_pages": first.write_pages,
                "mark": lambda: first._file.mark_delivered(1),
                "put": lambda: first._file.put(output="/elsewhere"),
            }
            with pytest.raises(TakenOver):
                acts[act]()
            first.close()
            assert lease(state) == held  # nor gives it back
            assert second.next(rows(2), "t2").number == 2
            second.write_pages()
    assert stream_status(state).phase == "running"
    require_steps(workspace / "out", 2)


def test_a_step_made_while_another_operator_made_it_is_refused_at_its_commit(workspace, state):
    with start(workspace, state) as first:
        made = []

        def overtake():
            with take_over(state) as second:
                made.append(second.next(rows(1), "t1").estimate.tolist())

        with pytest.raises(TakenOver):
            first.next(HeldUp(1, overtake), "t1")
    assert load_stream(workspace / "out").at("t1").ravel().tolist() == made[0]
    assert stream_status(state).steps == 1


@pytest.mark.parametrize("has_fence", [True, False])
def test_without_the_fence_a_step_would_be_lost(workspace, state, monkeypatch, has_fence):
    with start(workspace, state) as first:
        others = []

        def overtake():
            others.append(StreamSchema.take(read_address(state), Claim(take_over=True)))
            if not has_fence:  # the broken twin
                monkeypatch.setattr(StreamSchema, "require_held", lambda self: None)

        expected = pytest.raises(TakenOver) if has_fence else nullcontext()
        with before(monkeypatch, StreamStore, "mark_delivered", overtake), expected:
            first.next(rows(1), "t1")
    with closing(others[0]) as other:
        # The other may have a folder of its own, to which it would have to bring the step.
        assert (other.undelivered() is not None) == has_fence


# The folder, when a deposed operator wakes up late


def move_on(state, number):
    """Let another operator take the stream over and publish a step."""

    def act():
        with take_over(state) as second:
            second.next(rows(number), f"t{number}")
            second.write_pages()

    return act


def test_a_line_that_is_written_late_changes_nothing(workspace, state, monkeypatch):
    with (
        start(workspace, state) as first,
        before(monkeypatch, stream_folder, "_write_at", move_on(state, 2)),
        pytest.raises(TakenOver),
    ):
        first.next(rows(1), "t1")
    require_steps(workspace / "out", 2)
    assert stream_status(state).undelivered is None


def test_counts_that_are_written_late_change_nothing(workspace, state, monkeypatch):
    with (
        start(workspace, state) as first,
        before(monkeypatch, stream_delivery, "write_file", move_on(state, 2)),
        pytest.raises(CorruptRelease),
    ):
        first.next(rows(1), "t1")
    require_steps(workspace / "out", 2)


def test_a_list_that_is_mended_late_is_not_set_back(workspace, state, monkeypatch):
    with start(workspace, state) as first:
        first.next(rows(1), "t1")
        (workspace / "out" / "steps.jsonl").write_bytes(b"")
        with (
            before(monkeypatch, stream_delivery, "complete_list", move_on(state, 2)),
            pytest.raises(TakenOver),
        ):
            first.next(HeldUp(2, lambda: None), "t3")
    require_steps(workspace / "out", 2)


def test_pages_that_come_late_are_not_written(workspace, state, monkeypatch):
    with start(workspace, state) as first:
        first.next(rows(1), "t1")
        with (
            before(monkeypatch, stream_delivery, "draw_report", move_on(state, 2)),
            pytest.raises(TakenOver),
        ):
            first.write_pages()
    require_steps(workspace / "out", 2)


def test_pages_written_by_an_operator_that_slept_are_renewed_by_the_next(
    workspace, state, monkeypatch
):
    with start(workspace, state) as first:
        first.next(rows(1), "t1")
        with (
            before(monkeypatch, stream_delivery, "put_pages", move_on(state, 2)),
            pytest.raises(TakenOver),
        ):
            first.write_pages()
    with StreamOperator.open(state) as operator:
        assert operator.stream.number == 2
        operator.write_pages()
    require_steps(workspace / "out", 2)


def test_a_list_that_was_cut_gets_no_hole(workspace, state):
    with start(workspace, state) as operator:
        operator.next(rows(1), "t1")
        listed = workspace / "out" / "steps.jsonl"
        line = listed.read_bytes()
        listed.write_bytes(line[:5])
        with pytest.raises(CorruptRelease, match="was cut"):
            stream_folder.put_line(workspace / "out", len(line), b"{}\n")
        assert listed.read_bytes() == line[:5]


def test_a_draft_that_a_killed_operator_left_is_removed(workspace, state):
    with start(workspace, state) as operator:
        operator.next(rows(1), "t1")
        operator.write_pages()
    (workspace / "out" / ".0123456789abcdef.partial").write_bytes(b"half")
    StreamOperator.open(state).close()
    require_steps(workspace / "out", 1)


def test_another_machine_without_the_folder_begins_one_with_the_list(workspace, state, monkeypatch):
    with start(workspace, state) as first:
        first.next(rows(1), "t1")
        with monkeypatch.context() as patch:
            patch.setattr(stream_operator, "deliver", lambda *_: None)
            patch.setattr(StreamStore, "mark_delivered", lambda *_: None)
            first.next(rows(2), "t2")  # committed, and never delivered
        (workspace / "out").rename(workspace / "on the first machine")
        with pytest.raises(CorruptRelease, match="--output"):
            take_over(state)
        with take_over(state, output=workspace / "new") as second:
            assert second.next(rows(3), "t3").number == 3
    stream = load_stream(workspace / "new")
    assert (stream.times, stream.missing()) == (("t1", "t2", "t3"), ["t1"])


def test_a_state_that_was_set_back_is_refused(postgres_server, workspace, state):
    tables = ("metadata", "arrays", "steps", "outbox")
    database = read_address(state).uri.rpartition("/")[2]
    keep = [f"CREATE TABLE kept_{name} AS SELECT * FROM rides.{name}" for name in tables]
    restore = [
        f"DELETE FROM rides.{name}; INSERT INTO rides.{name} SELECT * FROM kept_{name}"
        for name in tables
    ]
    with start(workspace, state) as operator:
        operator.next(rows(1), "t1")
        postgres_server.execute(*keep, database=database)
        operator.next(rows(2), "t2")
    postgres_server.execute(*restore, database=database)
    for output in (None, workspace / "new"):
        with pytest.raises(CorruptRelease, match="older copy"):
            StreamOperator.open(state, output=output)


# Commits whose answer is lost


@contextmanager
def behind_a_proxy(postgres_server, state):
    with proxied(postgres_server.port) as proxy:
        yield proxy, state.replace(f":{postgres_server.port}/", f":{proxy.port}/")


def cut_at_commit(monkeypatch, proxy, moment, **more):
    """Cut the connection when the next step is committed."""
    original = StreamStore._put_state

    def armed(self, content):
        monkeypatch.setattr(StreamStore, "_put_state", original)
        original(self, content)
        proxy.cut_at = moment
        proxy.stays_away = more.get("stays_away", False)

    monkeypatch.setattr(StreamStore, "_put_state", armed)


@pytest.mark.parametrize("moment", [AFTER, LATE])
def test_a_commit_whose_answer_is_lost_is_found_and_delivered(
    postgres_server, workspace, state, monkeypatch, moment
):
    with (
        behind_a_proxy(postgres_server, state) as (proxy, address),
        start(workspace, address) as operator,
    ):
        cut_at_commit(monkeypatch, proxy, moment)
        step = operator.next(rows(1), "t1")
        assert proxy.cut_at is None
        assert operator.next(rows(1), "t1") is None
        assert operator.next(rows(2), "t2").number == 2
        operator.write_pages()
    require_steps(workspace / "out", 2)
    assert load_stream(workspace / "out").at("t1").ravel().tolist() == step.estimate.tolist()


def test_a_commit_that_the_server_did_not_get_is_made_again(
    postgres_server, workspace, state, monkeypatch
):
    with (
        behind_a_proxy(postgres_server, state) as (proxy, address),
        start(workspace, address) as operator,
    ):
        cut_at_commit(monkeypatch, proxy, BEFORE)
        with pytest.raises(InputError, match="was not changed: the connection was lost"):
            operator.next(rows(1), "t1")
        assert stream_status(state).steps == 0
        assert operator.next(rows(1), "t1").number == 1
        operator.write_pages()
    require_steps(workspace / "out", 1)


def test_a_commit_of_which_nothing_is_heard_is_delivered_by_the_next_operator(
    postgres_server, workspace, state, monkeypatch
):
    with (
        behind_a_proxy(postgres_server, state) as (proxy, address),
        start(workspace, address) as operator,
    ):
        operator._file._wait_seconds = 1
        cut_at_commit(monkeypatch, proxy, AFTER, stays_away=True)
        with pytest.raises(InputError, match=r"may stand or not.*dpublish stream status"):
            operator.next(rows(1), "t1")
        assert list((workspace / "out" / "data").iterdir()) == []
        assert stream_status(state).undelivered == 1
        with take_over(state) as second:
            assert second.next(rows(1), "t1") is None  # done once, and for good
            assert second.next(rows(2), "t2").number == 2
            second.write_pages()
    require_steps(workspace / "out", 2)


def test_a_commit_whose_answer_is_lost_and_is_overtaken_is_not_taken_for_ones_own(
    postgres_server, workspace, state, monkeypatch
):
    with (
        behind_a_proxy(postgres_server, state) as (proxy, address),
        start(workspace, address) as operator,
    ):
        cut_at_commit(monkeypatch, proxy, BEFORE)
        with (
            before(monkeypatch, StreamSchema, "_reconnect", move_on(state, 1)),
            pytest.raises(InputError, match="may stand or not"),
        ):
            operator.next(rows(1), "t1")
        with pytest.raises(TakenOver):
            operator.next(rows(2), "t2")
    require_steps(workspace / "out", 1)


def test_a_server_that_crashes_in_the_middle_of_steps_loses_none(workspace):
    require_programs()
    with running_server() as server:
        state = f"{server.uri()}#rides"
        with start(workspace, state) as operator:
            for number in (1, 2, 3):
                held = HeldUp(number, server.restart)
                assert operator.next(held, f"t{number}").number == number
            operator.write_pages()
        require_steps(workspace / "out", 3)
        with StreamOperator.open(state) as operator:
            assert operator.next(rows(4), "t4").number == 4


# What is not a stream


@contextmanager
def lacking_a_standby(server, *, is_waited_for=False):
    """A server that waits for a standby that is not there, and is told again and again not to."""

    def set_standbys(names):
        server.execute(
            f"ALTER SYSTEM SET synchronous_standby_names = '{names}'", "SELECT pg_reload_conf()"
        )
        time.sleep(0.5)

    over = Event()

    def end_waits():
        while not over.wait(0.1):
            server.execute(
                "SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE wait_event = 'SyncRep'"
            )

    set_standbys("nowhere")
    server.await_standbys()
    if is_waited_for:
        over.set()
    impatient = Thread(target=end_waits)
    impatient.start()
    try:
        yield
    finally:
        over.set()
        impatient.join()
        set_standbys("")


def test_a_step_that_a_standby_may_lack_is_not_delivered_before_it_is_confirmed(workspace):
    require_programs()
    with running_server() as server:
        with start(workspace, server.uri() + "#rides") as operator:
            with lacking_a_standby(server):
                for _ in range(2):
                    with pytest.raises(InputError, match="was changed, but the server warns"):
                        operator.next(rows(1), "t1")
                with pytest.raises(InputError, match="was changed, but the server warns"):
                    operator.stop()
            require_steps(workspace / "out", 0)
            assert operator.next(rows(1), "t1") is None  # made once, and delivered now
            operator.next(rows(2), "t2")
        require_steps(workspace / "out", 2)


def test_a_lease_is_renewed_and_given_back_without_a_standby(workspace):
    require_programs()
    with running_server() as server:
        operator = start(workspace, server.uri() + "#rides", lease_seconds=1.5)
        with lacking_a_standby(server, is_waited_for=True):
            time.sleep(2)
            assert stream_status(server.uri() + "#rides").operator is not None
            leaving = Thread(target=operator.close, daemon=True)
            leaving.start()
            leaving.join(10)
            assert not leaving.is_alive()
        operator.close()
        assert stream_status(server.uri() + "#rides").operator is None


def test_the_ledger_may_be_beside_the_stream(workspace, postgres_database):
    with Ledger.create(f"{postgres_database}#books") as ledger:
        ledger.add("rides", cap="5")
    state, books = f"{postgres_database}#rides", f"{postgres_database}#books"
    with start(workspace, state, ledger=books) as operator:
        operator.next(rows(1), "t1")
        operator.write_pages()
    with StreamOperator.open(state) as operator:
        assert operator.next(rows(2), "t2").number == 2
    status = stream_status(state)
    assert (status.ledger, status.steps) == (books, 2)
    with Ledger(books) as ledger:
        assert ledger.status("rides").spent == 2
    assert load(workspace / "out").times == ("t1", "t2")
    for use in (StreamOperator.open, stream_status, lambda at: start(workspace, at)):
        with pytest.raises(InputError, match="books is not the state of a stream"):
            use(books)
    with pytest.raises(InputError, match="rides is not a ledger"):
        Ledger(state)


@pytest.mark.parametrize("is_entered", [False, True])
@pytest.mark.parametrize("is_on_server", [False, True])
def test_a_start_that_was_taken_over_while_it_asked_debits_nothing(
    workspace, state, monkeypatch, postgres_database, is_entered, is_on_server
):
    ledger = f"{postgres_database}#books" if is_on_server else workspace / "books.db"
    if is_on_server:
        with Ledger.create(ledger) as books:
            books.add("rides", cap="5")
    later = []

    def start_again():
        if is_entered:
            later.append(start(workspace, state, ledger=ledger, take_over=True))
            return
        with monkeypatch.context() as patch:  # killed after its grant
            patch.setattr(StreamStore, "begin", interrupt)
            with pytest.raises(KeyboardInterrupt):
                start(workspace, state, ledger=ledger, take_over=True)

    with before(monkeypatch, Ledger, "grant", start_again), pytest.raises(TakenOver):
        start(workspace, state, ledger=ledger)
    with Ledger(ledger) as books:
        assert len(books.status("rides").grants) == 1
    with later[0] if is_entered else start(workspace, state, ledger=ledger) as operator:
        assert operator.is_new
        operator.next(rows(1), "t1")
    with Ledger(ledger) as books:
        assert [grant.state for grant in books.status("rides").grants] == ["published"]


def interrupt(*_, **__):
    raise KeyboardInterrupt


def test_a_start_that_is_refused_leaves_nothing_on_the_server(workspace, state):
    with pytest.raises(BudgetExhausted):
        start(workspace, state, epsilon="6")
    assert not StreamSchema.exists(read_address(state))
    start(workspace, state).close()


def test_a_state_that_is_not_there_or_no_longer_is_told(postgres_server, workspace, state):
    for use in (StreamOperator.open, stream_status):
        with pytest.raises(InputError, match="does not exist; `dpublish stream start` makes one"):
            use(state)
        with pytest.raises(InputError, match="cannot be reached"):
            use("postgresql://127.0.0.1:1/nothing#rides")
        with pytest.raises(InvalidParameter, match="PGPASSFILE"):
            use("postgresql://ada:geheim@127.0.0.1/db#rides")
    database = read_address(state).uri.rpartition("/")[2]
    with start(workspace, state) as operator:
        postgres_server.execute("DROP SCHEMA rides CASCADE", database=database)
        with pytest.raises(InputError, match="gone or damaged"):
            operator.next(rows(1), "t1")


def test_no_other_role_can_read_the_state(postgres_server, workspace, state):
    database = read_address(state).uri.rpartition("/")[2]
    role = f"reader_{os.urandom(4).hex()}"
    postgres_server.execute(
        f"CREATE ROLE {role} LOGIN",
        f"ALTER DEFAULT PRIVILEGES GRANT ALL ON SCHEMAS TO {role}",
        f"ALTER DEFAULT PRIVILEGES GRANT ALL ON TABLES TO {role}, PUBLIC",
        database=database,
    )
    start(workspace, state).close()
    with pytest.raises(InsufficientPrivilege, match="permission denied for schema rides"):
        postgres_server.execute("SELECT * FROM rides.metadata", database=database, user=role)
    owned = state.replace("dpublish_owner@", f"{role}@")
    with pytest.raises(InputError, match="your role has not been granted what this needs"):
        stream_status(owned)
    postgres_server.execute(f"DROP OWNED BY {role}", f"DROP ROLE {role}", database=database)


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE rides.arrays SET type = 'O'",
        "UPDATE rides.metadata SET value = '{' WHERE name = 'secret'",
        "DELETE FROM rides.steps",
        "DELETE FROM rides.lease",
        "DROP TABLE rides.lease",
        "DROP TABLE rides.metadata",
        "INSERT INTO rides.outbox VALUES (1, 'text'); UPDATE rides.steps SET line = 'text'",
    ],
)
def test_a_state_that_was_tampered_with_is_damaged(postgres_server, workspace, state, statement):
    with start(workspace, state) as operator:
        operator.next(rows(1), "t1")
    database = read_address(state).uri.rpartition("/")[2]
    postgres_server.execute(statement, database=database)
    for use in (StreamOperator.open, stream_status):
        with pytest.raises(InputError, match="damaged") as caught:
            use(state)
        assert "threshold" not in str(caught.value)
