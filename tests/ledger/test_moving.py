"""A ledger is moved whole, and never grants in two locations, whenever the move is killed."""

import errno
import os
import sqlite3
from contextlib import closing, contextmanager
from fractions import Fraction
from pathlib import Path

import psycopg
import pytest

from dpublish.errors import BudgetExhausted, InvalidParameter, LedgerTampered, LedgerUnavailable
from dpublish.ledger import chain
from dpublish.ledger.anchor import Anchor
from dpublish.ledger.chain import MOVED_FORMAT
from dpublish.ledger.ledger import Ledger
from dpublish.ledger.opening import Draft, drafting, open_store
from dpublish.ledger.postgres_store import PostgresDraft
from dpublish.ledger.sqlite_store import SqliteDraft
from dpublish.ledger.store import note_continued
from dpublish.privacy.neighbors import AddRemoveRecord
from dpublish.randomness import secure
from dpublish.storage.address import is_address
from ledger.ledger_forgery import KINDS, make_honest, read, reseal, tamper, verify, write

DIRECTIONS = ["file to server", "server to file", "file to file", "server to server"]


@pytest.fixture(params=DIRECTIONS)
def ways(request, tmp_path):
    """Where a ledger is, and where it shall be."""
    source, target = request.param.split(" to ")

    def locate(backend, name):
        if backend == "file":
            return tmp_path / f"{name}.db"
        return f"{request.getfixturevalue('ledger_database')}#m{os.urandom(5).hex()}_{name}"

    return locate(source, "old"), locate(target, "new")


def grant(path, epsilon="0.1"):
    asked = {"purpose": "ages", "hides": AddRemoveRecord(), "rng": secure()}
    with Ledger(path) as ledger:
        return ledger.grant("census", epsilon=epsilon, **asked)


def move(source, target):
    with Ledger(source) as ledger:
        ledger.move_to(target)


def test_every_entry_and_fingerprint_is_kept_and_the_old_ledger_is_closed(ways):
    source, target = ways
    make_honest(source)
    before = read(source)
    move(source, target)
    after = read(target)
    assert after[: len(KINDS)] == before
    assert [entry.kind for entry in after[len(KINDS) :]] == ["move", "continue"]
    assert verify(target).is_intact
    assert verify(source).is_intact
    with Ledger(target) as ledger:
        assert ledger.status("clinic").grants[0].fingerprint == "f"
        assert ledger.status("census").spent == Fraction(1, 2)
    assert grant(target).grant.entry == len(KINDS) + 3
    with pytest.raises(LedgerUnavailable, match=r"is closed: by entry 9 it was moved to .*; use"):
        grant(source)
    assert "it was moved to" in verify(source).warnings[0]
    with Ledger(source) as ledger:
        assert ledger.anchor_warnings() == verify(source).warnings
        for change in (lambda: ledger.add("more"), lambda: ledger.set_anchor("/tmp/never")):
            with pytest.raises(LedgerUnavailable, match="is closed"):
                change()


def test_a_move_that_was_done_can_be_repeated_but_not_to_another_target(ways, tmp_path):
    source, target = ways
    make_honest(source)
    move(source, target)
    moved = read(target)
    move(source, target)
    assert read(target) == moved
    with pytest.raises(LedgerUnavailable, match=r"is closed: .*; name that one"):
        move(source, tmp_path / "third.db")
    assert not (tmp_path / "third.db").exists()


def test_a_target_that_cannot_be_made_leaves_the_ledger_in_use(ways):
    source, target = ways
    make_honest(source)
    Ledger.create(target).close()
    before = read(source)
    with pytest.raises(LedgerUnavailable, match="exists already; a ledger is never replaced"):
        move(source, target)
    if is_address(target):
        with Ledger(source) as ledger, pytest.raises(InvalidParameter, match="no role 'ghost'"):
            ledger.move_to(f"{target}_2", writers=["ghost"])
    else:
        with pytest.raises(Exception, match="is not a folder"):
            move(source, target.parent / "none" / "new.db")
    assert read(source) == before
    grant(source)


def test_a_ledger_that_is_not_intact_is_not_moved(ways):
    source, target = ways
    make_honest(source)
    entries = read(source)
    write(source, [*entries[:-1][:3], *entries[4:]])
    with pytest.raises(LedgerTampered):
        move(source, target)
    with pytest.raises(LedgerUnavailable, match="does not exist"):
        Ledger(target)


def test_an_older_program_refuses_a_file_that_was_moved(tmp_path):
    make_honest(tmp_path / "old.db")
    move(tmp_path / "old.db", tmp_path / "new.db")
    for name in ("old.db", "new.db"):
        connection = sqlite3.connect(tmp_path / name)
        assert connection.execute("PRAGMA user_version").fetchone() == (MOVED_FORMAT,)
        connection.close()


def test_a_ledger_that_was_moved_takes_no_entry_whoever_writes_it(ways):
    source, target = ways
    make_honest(source)
    move(source, target)
    before = read(source)
    body = chain.Added(cap="1", spent="0", note="")
    entry = chain.seal(len(before) + 1, before[-1].time, "more", body, before[-1].hash)
    store = open_store(source, 5)
    with pytest.raises(LedgerTampered, match="the ledger was moved"), store.writing():
        store.append(entry)  # as a program does that does not know of moves
    store.close()
    assert read(source) == before
    assert verify(source).is_intact


def test_a_ledger_that_was_moved_can_be_moved_again(ways, tmp_path):
    source, target = ways
    make_honest(source)
    move(source, target)
    move(target, tmp_path / "third.db")
    grant(tmp_path / "third.db")
    assert all(verify(path).is_intact for path in (source, target, tmp_path / "third.db"))


def test_a_file_that_was_moved_and_lacks_its_guard_was_tampered_with(tmp_path):
    make_honest(tmp_path / "old.db")
    move(tmp_path / "old.db", tmp_path / "new.db")
    for name in ("old.db", "new.db"):
        with closing(sqlite3.connect(tmp_path / name)) as connection:
            connection.execute("DROP TRIGGER moved_is_closed")
        assert any("'moved_is_closed'" in problem for problem in verify(tmp_path / name).problems)


@pytest.mark.parametrize(
    "forge",
    [
        lambda entries: [*entries[:-1], entries[2]],  # goes on after the move as if nothing was
        lambda entries: [*entries[:-2], entries[-1]],  # goes on without having been moved
        lambda entries: entries[:-2] + entries[-1:] + entries[-2:-1],
    ],
)
def test_a_ledger_that_goes_on_after_a_move_is_found(tmp_path, forge):
    make_honest(tmp_path / "old.db")
    move(tmp_path / "old.db", tmp_path / "new.db")
    write(tmp_path / "new.db", reseal(forge(read(tmp_path / "new.db"))))
    assert any("was moved goes on" in text for text in verify(tmp_path / "new.db").problems)


# Kills


def end(*_, **__):
    os._exit(9)


def end_after(act):
    def done(*arguments, **settings):
        act(*arguments, **settings)
        os._exit(9)

    return done


def arrange(owner, name, *, after):
    setattr(owner, name, end_after(getattr(owner, name)) if after else end)


MOMENTS = {  # and whether the ledger is still in use then
    "before it is closed": ([(Ledger, "_close_for")], False, True),
    "when it is closed": ([(Ledger, "_close_for")], True, False),
    "when the new one is prepared": ([(Anchor, "prepare")], True, True),
    "before the new one is filled": (
        [(SqliteDraft, "fill"), (PostgresDraft, "fill")],
        False,
        False,
    ),
    "when the new one is filled": ([(SqliteDraft, "fill"), (PostgresDraft, "fill")], True, False),
    "before the anchor knows": ([(Ledger, "_confirm")], False, False),
}


@pytest.mark.parametrize("moment", MOMENTS)
def test_whenever_a_move_is_killed_at_most_one_ledger_grants(ways, moment, tmp_path):
    source, target = ways
    owners, after, is_in_use = MOMENTS[moment]
    with Ledger.create(source, anchor=tmp_path / "anchor") as ledger:
        ledger.add("census", cap="1")
    grant(source)
    child = os.fork()
    if child == 0:
        for owner, name in owners:
            arrange(owner, name, after=after)
        try:
            move(source, target)
        finally:
            os._exit(1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 9
    assert verify(source).is_intact
    granting = [path for path in ways if can_grant(path)]
    assert granting == ([source] if is_in_use else granting[:1])
    assert source not in granting or is_in_use
    move(source, target)
    assert not can_grant(source)
    assert can_grant(target)
    assert verify(target).is_intact
    assert verify(source).is_intact  # though its anchor knows more by now
    with Ledger(source) as ledger:
        assert all("it was moved to" in text for text in ledger.anchor_warnings())
    with Ledger(target) as ledger:
        assert ledger.status("census").spent == Fraction(2 + len(granting), 10)


def set_aside(path):
    """Take a ledger away from where it is, as if it was lost; return where it is then."""
    if not is_address(path):
        return path.rename(path.with_name("aside.db"))
    uri, schema = path.split("#")
    with psycopg.connect(uri, autocommit=True) as connection:
        connection.execute(f"ALTER SCHEMA {schema} RENAME TO {schema}_aside")
    return f"{path}_aside"


@pytest.mark.parametrize("is_killed", [False, True])
def test_a_target_that_is_gone_is_never_made_a_second_time(ways, is_killed, monkeypatch):
    source, target = ways
    with Ledger.create(source) as ledger:
        ledger.add("census", cap="1")
    if is_killed:  # when the target is complete, and the source does not know it
        with monkeypatch.context() as patch:
            patch.setattr("dpublish.ledger.ledger.note_continued", interrupt)
            with pytest.raises(KeyboardInterrupt):
                move(source, target)
    move(source, target)
    grant(target, "1")
    aside = set_aside(target)
    with pytest.raises(LedgerUnavailable, match=r"does not exist; if .* restore it from a backup"):
        move(source, target)
    with pytest.raises(LedgerUnavailable, match="does not exist"):
        Ledger(target)
    assert verify(source).is_intact
    Ledger.create(target).close()
    with pytest.raises(LedgerUnavailable, match="but another ledger is there"):
        move(source, target)
    assert not can_grant(source)
    refused = LedgerTampered if is_address(target) else BudgetExhausted  # for a renamed schema
    assert not can_grant(aside, refused)


@pytest.fixture
def halted(tmp_path, monkeypatch):
    """A ledger that was closed for a move, which was interrupted before the target was made."""
    source, target = tmp_path / "old.db", tmp_path / "new.db"
    make_honest(source)
    with monkeypatch.context() as patch:
        patch.setattr(Ledger, "_continue_in", interrupt)
        with pytest.raises(KeyboardInterrupt):
            move(source, target)
    assert not target.exists()
    return source, target


def test_a_target_that_another_ledger_has_taken_meanwhile_is_left_alone(halted):
    source, target = halted
    Ledger.create(target).close()
    other = read(target)
    with pytest.raises(LedgerUnavailable, match="exists already") as caught:
        move(source, target)
    assert caught.value.__notes__ == [f"{source} is closed by now: repeat the command"]
    assert read(target) == other
    target.unlink()
    move(source, target)
    assert can_grant(target)


def test_a_target_that_fails_when_the_ledger_is_closed_is_made_by_the_next_call(
    tmp_path, monkeypatch
):
    def fail(self, entries):
        raise LedgerUnavailable("the ledger cannot be created: the disk is full")

    source, target = tmp_path / "old.db", tmp_path / "new.db"
    make_honest(source)
    with monkeypatch.context() as patch:
        patch.setattr(SqliteDraft, "fill", fail)
        with pytest.raises(LedgerUnavailable, match="disk is full") as caught:
            move(source, target)
    assert caught.value.__notes__ == [f"{source} is closed by now: repeat the command"]
    assert not can_grant(source)
    move(source, target)
    assert can_grant(target)


def test_of_two_that_repeat_a_move_at_once_only_one_makes_the_target(halted, monkeypatch):
    source, target = halted

    @contextmanager
    def overtaken(*arguments, **settings):
        with drafting(*arguments, **settings) as draft:
            monkeypatch.undo()
            move(source, target)  # the other one is faster
            grant(target, "1")
            set_aside(target)  # and the ledger has gone on from there, too
            yield draft

    monkeypatch.setattr("dpublish.ledger.ledger.drafting", overtaken)
    with pytest.raises(LedgerUnavailable, match="another process has made that ledger meanwhile"):
        move(source, target)
    assert not target.exists()  # a second one would have the budget again


def test_a_move_that_is_not_noted_is_not_called_done(tmp_path, monkeypatch):
    source, target = tmp_path / "old.db", tmp_path / "new.db"
    make_honest(source)
    with monkeypatch.context() as patch:
        patch.setattr("dpublish.ledger.ledger.note_continued", lambda store: None)
        with pytest.raises(LedgerUnavailable, match="could not note that it goes on elsewhere"):
            move(source, target)
    move(source, target)
    assert can_grant(target)
    assert not can_grant(source)


def test_a_ledger_that_goes_on_elsewhere_is_noted_once_and_an_open_one_never(tmp_path):
    source = tmp_path / "old.db"
    make_honest(source)
    noted = []
    for _ in range(2):
        with closing(open_store(source, 5)) as store, store.writing():
            before = store.fingerprints()
            note_continued(store)
            noted.append(store.fingerprints() == before)
        move(source, tmp_path / "new.db")
    assert noted == [True, True]
    assert verify(source).is_intact


def test_an_edited_move_is_reported_and_not_repeated(tmp_path):
    source = tmp_path / "old.db"
    make_honest(source)
    move(source, tmp_path / "new.db")
    tamper(source, "UPDATE entries SET body = replace(body, 'new.db', 'own.db') WHERE number = 9")
    found = verify(source)
    assert "entry 9: it was edited: its hash does not fit" in found.problems
    assert not [text for text in found.warnings if "moved to" in text]


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (FileExistsError(errno.EEXIST, "File exists"), "exists already; a ledger is never replac"),
        (PermissionError(errno.EPERM, "Operation not permitted"), "Operation not permitted"),
    ],
)
def test_a_target_that_cannot_be_named_leaves_nothing_behind(halted, monkeypatch, error, told):
    def refuse(draft, path):
        assert Path(draft).exists()
        raise error

    source, target = halted
    with monkeypatch.context() as patch:
        patch.setattr(os, "link", refuse)
        with pytest.raises(LedgerUnavailable, match=told):
            move(source, target)
    assert [path.name for path in sorted(target.parent.iterdir())] == ["old.db"]
    move(source, target)
    assert can_grant(target)


def test_a_target_that_appears_at_the_last_moment_is_not_replaced(tmp_path):
    source, target = tmp_path / "old.db", tmp_path / "new.db"
    make_honest(source)
    with closing(open_store(source, 5)) as store:
        copied = [(entry, None) for entry in store.entries()]
    draft = SqliteDraft(target)
    target.write_text("mine")
    with pytest.raises(LedgerUnavailable, match="exists already; a ledger is never replaced"):
        draft.fill(copied)
    assert target.read_text() == "mine"
    assert [path.name for path in sorted(tmp_path.iterdir())] == ["new.db", "old.db"]


def test_a_target_is_known_by_all_of_its_address(tmp_path, postgres_server):
    source = tmp_path / "old.db"
    make_honest(source)
    where = f"postgresql://?host=127.0.0.1&port={postgres_server.port}&user=dpublish_owner"
    with postgres_server.database() as one, postgres_server.database() as other:
        move(source, f"{where}&dbname={one}")
        with pytest.raises(LedgerUnavailable, match=r"is closed: .*name that one, written as"):
            move(source, f"{where}&dbname={other}")
        with pytest.raises(LedgerUnavailable, match="does not exist"):
            Ledger(f"{where}&dbname={other}")
        move(source, f"{where}&dbname={one}")
    assert other not in str(read(source))


def test_what_a_closed_ledger_remembers_is_neither_edited_nor_copied(tmp_path):
    source, target = tmp_path / "old.db", tmp_path / "new.db"
    make_honest(source)
    move(source, target)
    for path, count in ((source, 1), (target, 0)):
        connection = sqlite3.connect(path)
        found = connection.execute("SELECT entry FROM fingerprints WHERE fingerprint = 'complete'")
        assert len(found.fetchall()) == count
        connection.close()
    connection = sqlite3.connect(source)
    (guard,) = connection.execute(
        "SELECT sql FROM sqlite_master WHERE name = 'fingerprint_is_final'"
    ).fetchone()
    connection.execute("DROP TRIGGER fingerprint_is_final")
    connection.execute("UPDATE fingerprints SET seal = '0' WHERE fingerprint = 'complete'")
    connection.execute(guard)
    connection.commit()
    connection.close()
    assert verify(source).problems == ("entry 9: its fingerprint was added, removed or edited",)


def interrupt(*_):
    raise KeyboardInterrupt


def can_grant(path, refusal=LedgerUnavailable):
    try:
        grant(path)
    except refusal:
        return False
    return True


def test_both_ways_of_making_a_ledger_are_drafts():
    for kind in (SqliteDraft, PostgresDraft):
        assert callable(kind.fill)
        assert kind.fill.__annotations__ == Draft.fill.__annotations__
