"""An anchor: whoever cuts off the end of a ledger is found out, and a crash is not blamed."""

import os
import shutil
import stat
import time
from fractions import Fraction
from types import SimpleNamespace

import pytest

from dpublish.errors import InvalidParameter, LedgerTampered, LedgerUnavailable
from dpublish.ledger import anchor as anchor_module
from dpublish.ledger.anchor import Anchor, _sync_folder
from dpublish.ledger.chain import Head
from dpublish.ledger.ledger import Ledger
from dpublish.privacy.neighbors import AddRemoveRecord
from dpublish.randomness import secure
from ledger.ledger_forgery import edit_body, read, reseal, tamper, verify, write
from ledger.ledger_script import start_script

KINDS = ("prepared", "committed")
needs_fork = pytest.mark.skipif(os.name != "posix", reason="needs fork")


@pytest.fixture
def anchor(tmp_path):
    (tmp_path / "elsewhere").mkdir()
    return tmp_path / "elsewhere" / "anchor"


@pytest.fixture
def books(path, anchor):
    """A ledger with an anchor from the start, and three grants."""
    with Ledger.create(path, anchor=anchor) as ledger:
        ledger.add("census", cap="1")
        for _ in range(3):
            grant(ledger)
    return path


def grant(ledger, epsilon="0.1"):
    asked = {"purpose": "ages", "hides": AddRemoveRecord(), "rng": secure()}
    return ledger.grant("census", epsilon=epsilon, **asked)


def spent(path):
    with Ledger(path) as ledger:
        return ledger.status("census").spent


def cut(path, count=1):
    """Cut off the last entries and set the head back, as who may write the file can."""
    write(path, read(path)[:-count])


# What is found


def test_without_an_anchor_nothing_shows_that_the_end_was_cut_off(path):
    with Ledger.create(path) as ledger:
        ledger.add("census", cap="1")
        grant(ledger, "1")
    cut(path)
    assert verify(path).is_intact
    with Ledger(path) as ledger:
        assert ledger.anchor is None
        grant(ledger, "1")  # the budget is there again


@pytest.mark.parametrize(
    ("count", "told"), [(1, "entry 5 is gone"), (2, "entries 4 to 5 are gone"), (4, "2 to 5 are")]
)
def test_the_end_that_was_cut_off_is_missed(books, count, told):
    assert verify(books).is_intact
    cut(books, count)
    (problem,) = verify(books).problems
    assert told in problem
    with Ledger(books) as ledger:
        before = ledger.entries()
        for act in (grant, lambda each: each.add("more", cap="1")):
            with pytest.raises(LedgerTampered, match=told):
                act(ledger)
        assert ledger.entries() == before


def test_an_older_copy_is_missed(books):
    older = read(books)
    with Ledger(books) as ledger:
        grant(ledger)
    write(books, older)
    assert "entry 6 is gone" in verify(books).problems[0]


@pytest.mark.parametrize("number", [2, 3, 4])
def test_a_chain_that_was_rewritten_is_told_from_its_first_other_entry(books, number):
    entries = read(books)
    entries[number] = edit_body(entries[number], salt="0" * 32)
    write(books, reseal(entries))
    (problem,) = verify(books).problems
    assert f"entry {number + 1} is not the one that was committed" in problem
    with Ledger(books) as ledger, pytest.raises(LedgerTampered, match="entry 5 is not the one"):
        grant(ledger)


def test_every_change_is_written_down_before_and_after(books, anchor):
    header, *lines = anchor.read_text().splitlines()
    entries = read(books)
    assert header == f"dpublish-anchor-1 {entries[0].hash}"
    told = [line.split() for line in lines]
    expected = [["committed", "1"]]
    expected += [[kind, str(n)] for n in range(2, 6) for kind in ("prepared", "committed")]
    assert [line[:2] for line in told] == expected
    assert all(entries[int(number) - 1].hash == known for _, number, known, _ in told)
    with Ledger(books) as ledger:
        assert ledger.anchor == anchor


# Interruptions


def end_process(*_, **__):
    os._exit(9)


def tear(act):
    """Write half of a line, and end."""

    def torn(self, line):
        act(self, line[: len(line) // 2].rstrip("\n"))
        os._exit(9)

    return torn


def interrupt_before(owner, name):
    setattr(owner, name, end_process)


def interrupt_after(owner, name):
    original = getattr(owner, name)

    def act(*arguments, **settings):
        original(*arguments, **settings)
        os._exit(9)

    setattr(owner, name, act)


def tear_line(kind):
    original = Anchor._append

    def act(self, line):
        if line.startswith(kind):
            tear(original)(self, line)
        original(self, line)

    Anchor._append = act


MOMENTS = {  # where the process ends, and how many of several such grants stay debited
    "before the entry is prepared": (lambda: interrupt_before(Anchor, "prepare"), lambda _: 0),
    "in the middle of preparing": (lambda: tear_line("prepared"), lambda _: 0),
    "when it is prepared": (lambda: interrupt_after(Anchor, "prepare"), lambda _: 0),
    # The next one ends when it confirms what the first has left.
    "before it is confirmed": (lambda: interrupt_before(Anchor, "commit"), lambda _: 1),
    "in the middle of confirming": (lambda: tear_line("committed"), lambda _: 1),
    "when all is done": (lambda: interrupt_after(Anchor, "commit"), lambda times: times),
}


def run_and_end(path, arrange):
    """Grant in a process that ends at some moment; give its exit code, 0 if it got its budget."""
    child = os.fork()
    if child == 0:
        arrange()
        with Ledger(path) as ledger:
            grant(ledger)
        os._exit(0)
    _, status = os.waitpid(child, 0)
    return os.waitstatus_to_exitcode(status)


@needs_fork
@pytest.mark.parametrize("times", [1, 3])
@pytest.mark.parametrize("moment", MOMENTS)
def test_an_interrupted_grant_is_no_tampering_and_mends_itself(books, anchor, moment, times):
    arrange, stays_of = MOMENTS[moment]
    stays = stays_of(times)
    for _ in range(times):
        assert run_and_end(books, arrange) == 9
    assert spent(books) == Fraction(3 + stays, 10)
    assert verify(books).is_intact
    with Ledger(books) as ledger:
        grant(ledger)
    assert verify(books).is_intact
    assert verify(books, anchor_file=anchor).is_intact
    assert spent(books) == Fraction(4 + stays, 10)
    cut(books)
    assert "is gone" in verify(books).problems[0]


def test_a_change_that_the_database_refuses_is_no_tampering(books, monkeypatch):
    original = Anchor.prepare

    def prepare(self, entry):
        original(self, entry)
        raise LedgerUnavailable("the ledger cannot be written")

    monkeypatch.setattr(Anchor, "prepare", prepare)
    with Ledger(books) as ledger:
        for _ in range(3):
            with pytest.raises(LedgerUnavailable):
                grant(ledger)
        monkeypatch.undo()
        assert ledger.verify().is_intact
        grant(ledger)
        assert ledger.verify().is_intact
    assert spent(books) == Fraction(4, 10)


def test_a_twin_that_announces_but_never_confirms_cannot_tell_a_cut_from_a_crash(
    books, monkeypatch
):
    monkeypatch.setattr(Anchor, "commit", lambda *_: None)
    with Ledger(books) as ledger:
        grant(ledger)  # the budget was handed out
    cut(books)
    assert verify(books).is_intact


def test_two_processes_share_an_anchor(books):
    script = """
        with Ledger(path) as ledger:
            for _ in range(20):
                ledger.grant(
                    "census", epsilon="0.001", purpose="p", hides=AddRemoveRecord(), rng=secure()
                )
    """
    workers = [start_script(script, books) for _ in range(2)]
    for worker in workers:
        worker.communicate()
        assert worker.returncode == 0
    assert spent(books) == Fraction(34, 100)
    assert verify(books).is_intact


# An anchor that is not there


def remove(anchor):
    anchor.unlink()


def put_folder(anchor):
    anchor.unlink()
    anchor.mkdir()


def put_pipe(anchor):
    anchor.unlink()
    os.mkfifo(anchor)


def put_other(anchor):
    anchor.write_text("shopping list\n")


def forget_folder(anchor):
    anchor.unlink()
    anchor.parent.rmdir()


@needs_fork
@pytest.mark.parametrize("harm", [remove, put_folder, put_pipe, put_other, forget_folder])
def test_an_anchor_that_cannot_be_opened_refuses_the_grant_before_the_debit(books, anchor, harm):
    before = read(books)
    harm(anchor)
    with Ledger(books) as ledger, pytest.raises(LedgerUnavailable, match="the ledger is unchanged"):
        grant(ledger)
    assert read(books) == before
    assert str(anchor) in verify(books).problems[0]


def test_an_anchor_that_fails_before_the_commit_debits_nothing(books, monkeypatch):
    def fail(self, line):
        raise LedgerUnavailable("the anchor cannot be written: the disk is full")

    before = read(books)
    monkeypatch.setattr(Anchor, "_append", fail)
    with Ledger(books) as ledger, pytest.raises(LedgerUnavailable, match="disk is full"):
        grant(ledger)
    assert read(books) == before


def test_an_anchor_on_a_full_disk_refuses_the_grant_and_mends_itself(books, anchor, monkeypatch):
    before, write_all = read(books), os.write
    with Ledger(books) as ledger:
        with monkeypatch.context() as patch:
            patch.setattr(os, "write", lambda file, text: write_all(file, text[: len(text) // 2]))
            with pytest.raises(LedgerUnavailable, match=r"written: the disk is full"):
                grant(ledger)
        assert read(books) == before
        assert anchor.read_text()[-1] != "\n"  # half of a line
        grant(ledger)
        assert ledger.verify().is_intact
    cut(books)
    assert "entry 6 is gone" in verify(books).problems[0]


def test_an_anchor_is_made_on_a_system_whose_folders_cannot_be_opened(tmp_path, monkeypatch):
    synced, sync = [], os.fsync
    monkeypatch.setattr(os, "fsync", lambda file: synced.append(is_folder(file)) or sync(file))
    _sync_folder(tmp_path)
    assert synced == [True]
    monkeypatch.setattr(anchor_module, "os", SimpleNamespace(name="nt"))  # has no os.open
    _sync_folder(tmp_path)
    assert synced == [True]


def is_folder(file):
    return stat.S_ISDIR(os.fstat(file).st_mode)


def test_an_anchor_that_fails_after_the_commit_hands_out_nothing_and_says_what_stands(
    books, monkeypatch
):
    def fail(self, entry):
        raise LedgerUnavailable("the anchor cannot be written: the share is gone")

    monkeypatch.setattr(Anchor, "commit", fail)
    with Ledger(books) as ledger, pytest.raises(LedgerUnavailable, match="stays debited"):
        grant(ledger)
    monkeypatch.undo()
    assert spent(books) == Fraction(4, 10)
    with Ledger(books) as ledger:
        grant(ledger)
    assert verify(books).is_intact


def set_back(anchor):
    """Put an old version of the anchor back, of when the ledger had two entries."""
    anchor.write_text("".join(anchor.read_text().splitlines(keepends=True)[:4]))


def test_an_anchor_that_was_set_back_is_noticed(books, anchor):
    set_back(anchor)
    assert "ends at entry 2, and the ledger at entry 5" in verify(books).problems[0]
    with Ledger(books) as ledger, pytest.raises(LedgerTampered, match="ends at entry 2"):
        grant(ledger)


def test_an_older_copy_of_the_anchor_serves_to_verify(books, anchor, tmp_path):
    shutil.copy(anchor, tmp_path / "copy")
    with Ledger(books) as ledger:
        grant(ledger)
    assert verify(books, anchor_file=tmp_path / "copy").is_intact
    cut(books, 2)
    assert "entry 5 is gone" in verify(books, anchor_file=tmp_path / "copy").problems[0]


# Set, moved, lost


def test_an_anchor_can_be_set_later_and_be_moved(path, anchor, tmp_path):
    with Ledger.create(path) as ledger:
        ledger.add("census", cap="1")
        grant(ledger)
        ledger.set_anchor(anchor)
        grant(ledger)
        with pytest.raises(InvalidParameter, match="is this ledger's anchor already"):
            ledger.set_anchor(anchor)
    moved = tmp_path / "moved"
    anchor.rename(moved)
    with Ledger(path) as ledger:
        with pytest.raises(LedgerUnavailable):
            grant(ledger)
        with pytest.raises(LedgerUnavailable, match="cannot be read") as caught:
            ledger.set_anchor(moved)
        assert "--lost" in caught.value.__notes__[0]
        ledger.set_anchor(moved, lost=True)
        grant(ledger)
        assert ledger.anchor == moved
        assert ledger.verify().is_intact
    cut(path)
    assert "is gone" in verify(path).problems[0]


def test_a_ledger_cut_back_to_before_its_anchor_was_set_shows_where_the_anchor_is_named(
    path, anchor
):
    with Ledger.create(path) as ledger:
        ledger.add("census", cap="1")
        ledger.set_anchor(anchor)
        grant(ledger)
    cut(path, 2)
    assert verify(path).is_intact  # it has forgotten that it had one
    assert "entries 3 to 4 are gone" in verify(path, anchor_file=anchor).problems[0]


@pytest.mark.parametrize("lost", [False, True])
def test_an_anchor_in_order_is_exchanged_and_never_declared_lost(books, anchor, tmp_path, lost):
    known = anchor.read_text()
    with Ledger(books) as ledger:
        ledger.set_anchor(tmp_path / "new", lost=lost)
        assert ledger.anchor == tmp_path / "new"
        grant(ledger)
        assert ledger.anchor_warnings() == ()
        assert ledger.verify().is_intact
    assert read(books)[5].content().lost is False
    assert anchor.read_text() == known
    assert "committed 7" in (tmp_path / "new").read_text()


def test_an_anchor_that_was_set_back_is_exchanged_by_the_owners_word_only(books, anchor, tmp_path):
    set_back(anchor)
    with Ledger(books) as ledger:
        with pytest.raises(LedgerTampered, match=r"ends at entry 2.*--lost") as caught:
            ledger.set_anchor(tmp_path / "new")
        assert not hasattr(caught.value, "__notes__")  # it says already what can be done
        assert ledger.anchor == anchor
        ledger.set_anchor(tmp_path / "new", lost=True)
        grant(ledger)
        (told,) = ledger.anchor_warnings()
        assert told.startswith("by entry 6 the anchor until then was declared lost")
        assert told in ledger.verify().warnings


def test_a_declaration_of_loss_that_was_edited_is_reported_and_not_repeated(books, anchor):
    anchor.unlink()
    with Ledger(books) as ledger:
        ledger.set_anchor(anchor.with_name("new"), lost=True)
        grant(ledger)
    tamper(books, "UPDATE entries SET body = replace(body, 'true', 'false') WHERE kind = 'anchor'")
    found = verify(books)
    assert "entry 6: it was edited: its hash does not fit" in found.problems
    assert not [text for text in found.warnings if "declared lost" in text]


@pytest.mark.parametrize(
    ("harm", "told"),
    [
        (lambda books, anchor: anchor.unlink(), "cannot be read: No such file"),
        (lambda books, anchor: set_back(anchor), "ends at entry 2, and the ledger at entry 5"),
        (lambda books, anchor: cut(books), "entry 5 is gone"),
    ],
)
def test_whoever_is_shown_a_ledger_is_told_what_its_anchor_says(books, anchor, harm, told):
    with Ledger(books) as ledger:
        assert ledger.anchor_warnings() == ()
    harm(books, anchor)
    with Ledger(books) as ledger:
        (warning,) = ledger.anchor_warnings()
        assert ledger.status("census").spent >= Fraction(2, 10)  # it is shown all the same
    assert told in warning
    assert warning.endswith("; what is shown may leave out what was spent")


def test_no_other_anchor_hides_what_the_old_one_misses(books, tmp_path):
    cut(books)
    with Ledger(books) as ledger:
        for lost in (False, True):
            with pytest.raises(LedgerTampered, match="entry 5 is gone"):
                ledger.set_anchor(tmp_path / "new", lost=lost)
    assert not (tmp_path / "new").exists()


def test_an_interrupted_setting_can_be_repeated(path, anchor, monkeypatch):
    def interrupted(*_):
        raise KeyboardInterrupt

    with Ledger.create(path) as ledger:
        ledger.add("census", cap="1")
        monkeypatch.setattr(Anchor, "prepare", interrupted)
        with pytest.raises(KeyboardInterrupt):
            ledger.set_anchor(anchor)
        monkeypatch.undo()
        assert ledger.anchor is None
        ledger.set_anchor(anchor)
        grant(ledger)
        assert ledger.verify().is_intact


def test_a_file_that_is_no_anchor_of_this_ledger_is_left_alone(books, anchor, locate, tmp_path):
    notes = tmp_path / "notes"
    notes.write_text("mine\n")
    with Ledger.create(locate("other")) as ledger:
        with pytest.raises(LedgerUnavailable, match="some other file"):
            ledger.set_anchor(notes)
        with pytest.raises(LedgerTampered, match="belongs to another ledger"):
            ledger.set_anchor(anchor)
        assert [entry.kind for entry in ledger.entries()] == ["create"]
    assert notes.read_text() == "mine\n"
    with pytest.raises(LedgerUnavailable, match="exists already"):
        Ledger.create(locate("third"), anchor=notes)
    with pytest.raises(LedgerUnavailable, match="does not exist"):
        Ledger(locate("third"))


def test_a_ledger_that_cannot_be_made_leaves_no_anchor(books, tmp_path):
    with pytest.raises(LedgerUnavailable, match="exists already"):
        Ledger.create(books, anchor=tmp_path / "new")
    assert not (tmp_path / "new").exists()
    with pytest.raises(InvalidParameter, match="must be different files"):
        Ledger.create(tmp_path / "same", anchor=tmp_path / "same")
    assert not (tmp_path / "same").exists()


def test_a_relative_anchor_is_found_from_anywhere(path, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with Ledger.create(path, anchor="anchor") as ledger:
        ledger.add("census", cap="1")
    (tmp_path / "deeper").mkdir()
    monkeypatch.chdir(tmp_path / "deeper")
    with Ledger(path) as ledger:
        grant(ledger)
    assert (tmp_path / "anchor").read_text().count("committed") == 3


def test_an_open_ledger_learns_of_an_anchor_that_another_set(path, anchor):
    with Ledger.create(path) as ledger:
        ledger.add("census", cap="1")
        grant(ledger)
        with Ledger(path) as other:
            other.set_anchor(anchor)
        grant(ledger)
        assert ledger.verify().is_intact
    assert "committed 5" in anchor.read_text()


def test_a_long_anchor_is_read_in_time_that_grows_with_its_length(tmp_path):
    def seconds(count):
        lines = [f"{kind} {n} {n:064x} now" for n in range(1, count) for kind in KINDS]
        path = tmp_path / str(count)
        path.write_text("\n".join([f"dpublish-anchor-1 {0:064x}", *lines, ""]))
        begun = time.process_time()
        head = Head(count - 1, f"{count - 1:064x}")
        Anchor(path).check("0" * 64, head, lambda n: f"{n:064x}")
        return time.process_time() - begun

    # 64 times, if with the square of it; the least of some, for a collection may come between.
    assert min(seconds(8_000) for _ in range(5)) < 40 * seconds(1_000) + 0.1
