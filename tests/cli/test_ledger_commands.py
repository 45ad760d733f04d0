"""The ledger's commands believe no receipt that the books do not bear out."""

import json
import shutil
from fractions import Fraction

import pytest

from dpublish.cli.output import say_table
from dpublish.core.registry import make_method
from dpublish.data.schema_file import load_schema
from dpublish.data.sources import open_table
from dpublish.ledger.ledger import Ledger
from dpublish.privacy.neighbors import AddRemoveRecord, PersonalRecord, UserInWindow
from dpublish.randomness import secure
from ledger.ledger_forgery import edit_body, read, reseal, write


def grant(workdir, epsilon="1"):
    with Ledger(workdir / "books.db") as ledger:
        return ledger.grant(
            "people", epsilon=epsilon, purpose="ages", hides=AddRemoveRecord(), rng=secure()
        )


@pytest.fixture
def late(workdir):
    """A release that is paid for and saved, but not yet recorded."""
    table = open_table(str(workdir / "people.csv"), load_schema(workdir / "people.toml"))
    method = make_method("histogram", {"columns": ("age",)})
    method.release(table, budget=grant(workdir), rng=secure()).save(workdir / "late")
    return workdir / "late"


def forge(folder, copy, **changes):
    """Copy a release and change its receipt."""
    shutil.copytree(folder, folder.with_name(copy))
    file = folder.with_name(copy) / "release.json"
    head = json.loads(file.read_text())
    head["receipt"].update(changes)
    file.write_text(json.dumps(head))
    return copy


def test_a_release_that_waits_to_be_recorded_is_not_called_tampering(late, run):
    checked = run("ledger", "verify", "books.db", "--release", "late")
    assert checked.code == 3
    assert "run: dpublish ledger record books.db late" in checked.err
    assert "not to be trusted" not in checked.err
    assert "the chain is whole" in checked.out
    told = run("ledger", "verify", "books.db", "--release", "late", "--json")
    assert told.json()["unrecorded"] == ["late"]
    assert told.json()["problems"] == []


def test_a_release_recorded_with_another_hash_is_called_so(late, run):
    assert run("ledger", "record", "books.db", "late").code == 0
    other = forge(late, "other", created="1999-12-31T00:00:00+00:00")
    checked = run("ledger", "verify", "books.db", "--release", other)
    assert checked.code == 3
    assert "other is not the release that the ledger recorded" in checked.err
    assert "dpublish ledger record" not in checked.err


def cheap_grant(workdir):
    cheap = grant(workdir, "0.1").grant
    return {"ledger_entry": cheap.entry, "ledger_hash": cheap.entry_hash}


def test_a_release_that_cost_more_than_its_grant_is_not_recorded_or_believed(late, run, workdir):
    forged = forge(late, "forged", **cheap_grant(workdir))
    recorded = run("ledger", "record", "books.db", forged)
    assert recorded.code == 1
    assert "forged claims epsilon 1, but entry 4 debited 0.1" in recorded.err
    checked = run("ledger", "verify", "books.db", "--release", forged)
    assert checked.code == 3
    assert "claims epsilon 1, but entry 4 debited 0.1" in checked.err


@pytest.mark.parametrize(
    "changes",
    [{"dataset": "others"}, {"ledger_entry": 10**30}, {"ledger_entry": 2}, {"ledger_hash": "0"}],
)
def test_a_receipt_that_names_another_grant_is_refused(late, run, workdir, changes):
    with Ledger(workdir / "books.db") as ledger:
        ledger.add("others")
    forged = forge(late, "forged", **changes)
    recorded = run("ledger", "record", "books.db", forged)
    assert recorded.code in (1, 3)
    assert len(recorded.err.splitlines()) == 1
    assert run("ledger", "verify", "books.db", "--release", forged).code == 3
    with Ledger(workdir / "books.db") as ledger:
        assert [entry.kind for entry in ledger.entries()].count("publish") == 0


@pytest.mark.parametrize(
    "claim",
    [
        {"name": "add-remove-unit", "column": "household"},
        {"name": "user-in-window", "column": "household", "window": 24},
        {"name": "replace-record"},
    ],
)
def test_a_receipt_that_claims_to_hide_more_than_was_paid_for_is_refused(late, run, claim):
    forged = forge(late, "forged", neighbors=claim)
    recorded = run("ledger", "record", "books.db", forged)
    assert recorded.code == 1
    assert "forged claims to hide" in recorded.err
    assert "but entry 3 paid to hide one record" in recorded.err
    checked = run("ledger", "verify", "books.db", "--release", forged)
    assert checked.code == 3
    assert "but entry 3 paid to hide one record" in checked.err


def test_what_each_account_and_each_grant_hides_is_shown(run, workdir):
    run("ledger", "add", "books.db", "rides", "--cap", "5")
    assert "not decided yet" in run("ledger", "show", "books.db", "rides").out
    grant(workdir)
    with Ledger(workdir / "books.db") as ledger:
        asked = {"purpose": "rides", "hides": UserInWindow("driver", 24), "rng": secure()}
        ledger.grant("rides", epsilon="0.5", **asked)
    shown = run("ledger", "show", "books.db").out
    [people, rides] = [line for line in shown.splitlines() if "interrupted or running" in line]
    assert "one record" in people
    assert "0.5 per window of 24" in rides
    assert "all records of one person ('driver') in any 24 consecutive snapshots" in rides
    assert "rides: cap, spent and left are per window of 24 snapshots" in shown
    told = {each["dataset"]: each for each in run("ledger", "show", "books.db", "--json").json()}
    assert told["people"]["hides"] == {"name": "add-remove-record"}
    assert told["people"]["hides_in_words"] == "one record"
    assert told["people"]["anchor"] is None
    assert told["rides"]["grants"][0]["per_window_of"] == told["rides"]["per_window_of"] == 24


def test_one_release_does_not_close_two_grants(late, run, workdir):
    assert run("ledger", "record", "books.db", "late").code == 0
    second = grant(workdir).grant
    changes = {"ledger_entry": second.entry, "ledger_hash": second.entry_hash}
    recorded = run("ledger", "record", "books.db", forge(late, "again", **changes))
    assert recorded.code == 1
    assert "is recorded already" in recorded.err


def test_the_end_that_was_cut_off_is_told_by_the_anchor(run, tmp_path):
    assert run("ledger", "create", "a.db", "--anchor", "far/anchor").code == 3
    (tmp_path / "far").mkdir()
    assert run("ledger", "create", "a.db", "--anchor", "far/anchor").code == 0
    assert run("ledger", "add", "a.db", "people", "--cap", "1").code == 0
    assert run("ledger", "cap", "a.db", "people", "0.5", "--reason", "less").code == 0
    assert run("ledger", "verify", "a.db").code == 0
    assert f"anchor: {tmp_path / 'far' / 'anchor'}" in run("ledger", "show", "a.db").out
    write(tmp_path / "a.db", read(tmp_path / "a.db")[:-1])
    for words in ((), ("--anchor", "far/anchor")):
        checked = run("ledger", "verify", "a.db", *words)
        assert checked.code == 3
        assert "entry 3 is gone" in checked.err
    refused = run("ledger", "add", "a.db", "more", "--cap", "1")
    assert refused.code == 3
    assert "entry 3 is gone" in refused.err


@pytest.mark.usefixtures("workdir")
def test_an_anchor_is_set_later_moved_and_given_up(run, tmp_path):
    assert run("ledger", "anchor", "books.db", "anchor").code == 0
    assert run("ledger", "anchor", "books.db", "anchor").code == 1
    (tmp_path / "anchor").unlink()
    refused = run("ledger", "add", "books.db", "more", "--cap", "1")
    assert refused.code == 3
    assert "dpublish ledger anchor LEDGER FILE --lost" in refused.err
    assert "--lost" in run("ledger", "anchor", "books.db", "other").err
    assert run("ledger", "anchor", "books.db", "other", "--lost").code == 0
    assert run("ledger", "add", "books.db", "more", "--cap", "1").code == 0
    assert run("ledger", "verify", "books.db").code == 0


def test_a_ledger_that_others_may_write_is_warned_of(release, run, workdir):
    (workdir / "books.db").chmod(0o666)
    done = release("a")
    assert done.code == 0
    [line] = done.err.splitlines()
    assert line.startswith("dpublish: warning: everyone may write the ledger: chmod go-w ")
    checked = run("ledger", "verify", "books.db", "--json")
    assert checked.code == 0
    assert "everyone may write" in checked.json()["warnings"][0]
    assert "everyone may write" in checked.err
    (workdir / "books.db").chmod(0o600)
    assert release("b").err == ""


def test_a_forged_purpose_cannot_write_on_the_terminal(run, workdir):
    grant(workdir)
    entries = read(workdir / "books.db")
    entries[-1] = edit_body(entries[-1], purpose="\x1b]0;owned\x07\x1b[2Kages\r\n\u202eX")
    write(workdir / "books.db", reseal(entries))
    shown = run("ledger", "show", "books.db")
    assert shown.code in (0, 3)
    for unseen in "\x1b\x07\r\u202e":
        assert unseen not in shown.out + shown.err
    assert run("ledger", "verify", "books.db").code == 3


def test_a_table_writes_out_what_cannot_be_printed(capsys):
    say_table(["name"], [["a\x1b[31m\u202e é"]])
    assert "a\\x1b[31m\\u202e é" in capsys.readouterr().out


@pytest.mark.parametrize("name", ["a\x1b[31m.db", "x" * 300, "two\nlines"])
def test_a_ledger_that_cannot_be_there_is_refused_in_one_line(run, name):
    shown = run("ledger", "show", name)
    assert shown.code == 3
    assert len(shown.err.splitlines()) == 1
    assert "\x1b" not in shown.err


# Levels


@pytest.fixture
def leveled(workdir, run):
    """A dataset whose people have numbers of their own, and one grant by level."""
    run("ledger", "add", "books.db", "survey", "--levels", "0.01, 0.1,1")
    amounts = {level: level / 2 for level in map(Fraction, ("0.01", "0.1", "1"))}
    with Ledger(workdir / "books.db") as ledger:
        hides = PersonalRecord("own", tuple(map(str, amounts)), "levels")
        budget = ledger.grant_levels("survey", amounts, purpose="ages", hides=hides, rng=secure())
        return budget.grant


@pytest.mark.usefixtures("workdir")
def test_a_dataset_with_levels_is_added_and_says_who_must_stay_out(run):
    added = run("ledger", "add", "books.db", "survey", "--levels", "0.01,0.1,1")
    assert added.code == 0
    assert "each person of survey may spend their level in all: 0.01,0.1,1" in added.out
    assert "below 0.01, or missing, must not be in any release" in added.out


@pytest.mark.usefixtures("workdir")
@pytest.mark.parametrize(
    ("options", "message"),
    [
        ([], "--cap 2.0, or --levels 0.01,0.1,1"),
        (["--levels", "1,0.1"], "levels must rise"),
        (["--levels", ""], "a level ('') is not a number"),
        (["--levels", "0.1,1", "--cap", "2"], "leave the cap out"),
    ],
)
def test_levels_that_cannot_be_are_refused_in_one_line(run, options, message):
    added = run("ledger", "add", "books.db", "survey", *options)
    assert added.code == 1
    assert message in added.err
    assert len(added.err.splitlines()) == 1


def test_each_level_is_shown_as_full_as_it_is_used(leveled, run):
    shown = run("ledger", "show", "books.db", "survey").out
    assert "survey: epsilon by level" in shown
    assert shown.count("##########..........\n") == 3
    assert "up to 0.5, by level" in shown
    told = run("ledger", "show", "books.db", "survey", "--json").json()
    assert told[0]["levels"][0] == {"level": "0.01", "spent": "0.005", "left": "0.005"}


@pytest.mark.usefixtures("workdir")
def test_a_thousand_levels_fit_on_a_screen(run):
    levels = ",".join(str(number) for number in range(1, 1001))
    assert run("ledger", "add", "books.db", "wide", "--levels", levels).code == 0
    shown = run("ledger", "show", "books.db", "wide").out
    assert len(shown.splitlines()) < 30
    assert "980 levels between them are not shown" in shown
    assert "\n1000 " in shown


@pytest.mark.parametrize(
    ("personal", "message"),
    [
        ([["0.01", "0.01"], ["0.1", "0.05"], ["1", "0.5"]], "at level 0.01, but entry"),
        ([["0.1", "0.05"], ["1", "0.5"]], "has other levels than entry"),
        ([], "has other levels than entry"),
        ([["0.01", "0.005"], ["0.1", "0.05"], ["1", "0.5"]], None),
    ],
)
def test_a_receipt_is_believed_at_each_level_only_if_that_was_debited_there(
    late, leveled, run, personal, message
):
    hidden = {"column": "own", "levels": [level for level, _ in personal] or ["1"]}
    forged = forge(
        late,
        "forged",
        dataset="survey",
        ledger_entry=leveled.entry,
        ledger_hash=leveled.entry_hash,
        epsilon="0.5",
        shares=[{"purpose": "ages", "epsilon": "0.5"}],
        neighbors={"name": "personal-record", "mode": "levels", **hidden},
        personal=personal,
    )
    recorded = run("ledger", "record", "books.db", forged)
    assert recorded.code == (0 if message is None else 1)
    assert message is None or message in recorded.err


def test_publisher_and_contact_are_stated_changed_and_shown(run, workdir):
    added = run("ledger", "add", "books.db", "clinic", "--cap", "1", "--publisher", "City Clinic")
    assert added.code == 0
    assert (
        "clinic: publisher: City Clinic; contact: not stated"
        in run("ledger", "show", "books.db").out
    )
    done = run("ledger", "describe", "books.db", "clinic", "--contact", "dp@clinic.example")
    assert "publisher: City Clinic; contact: dp@clinic.example" in done.out
    shown = run("ledger", "show", "books.db", "--json").json()
    assert [(each.get("publisher"), each.get("contact")) for each in shown] == [
        (None, None),
        ("City Clinic", "dp@clinic.example"),
    ]
    assert run("ledger", "verify", "books.db").code == 0
    nothing = run("ledger", "describe", "books.db", "clinic")
    assert (nothing.code, "--publisher" in nothing.err) == (1, True)
    wrong = run("ledger", "describe", "books.db", "clinic", "--contact", "two\nlines")
    assert (wrong.code, "one line" in wrong.err) == (1, True)
