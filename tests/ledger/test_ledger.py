import copy
import json
import sqlite3
from dataclasses import replace
from datetime import UTC, datetime
from fractions import Fraction
from threading import Thread

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpublish.errors import BudgetExhausted, GrantPublished, InvalidParameter
from dpublish.ledger.chain import Entry, Granted
from dpublish.ledger.ledger import Ledger
from dpublish.privacy.budget import Grant
from dpublish.privacy.neighbors import AddRemoveRecord, AddRemoveUnit
from dpublish.randomness import SystemSource, secure, seeded
from ledger.ledger_backends import files_only


@pytest.fixture
def ledger(path):
    with Ledger.create(path) as ledger:
        ledger.add("census", cap="1.0", note="all of it")
        yield ledger


def grant(ledger, epsilon="0.3", dataset="census", **changes):
    asked = {
        "epsilon": epsilon,
        "purpose": "ages",
        "hides": AddRemoveRecord(),
        "rng": secure(),
    } | changes
    return ledger.grant(dataset, **asked)


def test_whatever_copies_what_holds_a_ledger_keeps_the_one_account(ledger):
    (copied,) = copy.deepcopy([ledger])
    assert copied is ledger
    grant(copied, "0.7")
    assert ledger.status("census").left == Fraction(3, 10)


# Granting


def test_a_grant_is_debited_and_hands_out_what_was_asked_for(ledger):
    budget = grant(ledger, "0.3")
    status = ledger.status("census")
    assert (budget.epsilon, budget.purpose) == (Fraction(3, 10), "ages")
    assert (status.cap, status.spent, status.left) == (1, Fraction(3, 10), Fraction(7, 10))
    entry = ledger.entries()[-1]
    assert budget.grant == Grant("census", entry.number, entry.hash)


def test_ten_tenths_are_one_and_not_a_digit_more(ledger):
    for _ in range(10):
        grant(ledger, "0.1")
    assert ledger.status("census").left == 0
    with pytest.raises(
        BudgetExhausted, match=r"has 0 left of its cap of 1, .* nothing more can be"
    ):
        grant(ledger, "1e-30")


@settings(max_examples=25, deadline=None)  # every grant waits for the disk
@given(wanted=st.lists(st.fractions(min_value="1/1000", max_value="0.4"), max_size=12))
def test_whatever_is_asked_for_the_cap_holds_exactly(tmp_path_factory, wanted):
    with Ledger.create(tmp_path_factory.mktemp("books") / "books.db") as ledger:
        ledger.add("census", cap="1.0")
        spent = Fraction(0)
        for epsilon in wanted:
            if spent + epsilon <= 1:
                spent += grant(ledger, epsilon).epsilon
            else:
                with pytest.raises(BudgetExhausted):
                    grant(ledger, epsilon)
        assert ledger.status("census").spent == spent
        assert ledger.verify().problems == ()


def test_an_overdraft_says_what_was_asked_what_is_left_and_what_to_do(ledger):
    grant(ledger, "0.8")
    with pytest.raises(BudgetExhausted) as caught:
        grant(ledger, "0.3")
    assert str(caught.value) == (
        "'census' has 0.2 left of its cap of 1, but 0.3 was asked for: "
        "ask for at most 0.2, unless its owner raises the cap"
    )


REFUSED = {
    "no number": ({"epsilon": None}, "epsilon must be a number"),
    "no finite number": ({"epsilon": float("nan")}, "must be a finite number"),
    "zero": ({"epsilon": "0"}, "must be greater than 0"),
    "too many digits": ({"epsilon": "1e-99"}, "more than 40 digits"),
    "a seed": ({"rng": seeded(1)}, "seeded source gives the noise away"),
    "a disguised seed": ({"rng": type("Mine", (SystemSource,), {})()}, "seeded source"),
    "no purpose": ({"purpose": " "}, "purpose must be one line of text"),
    "two lines": ({"purpose": "a\nb"}, "purpose must be one line of text"),
    "a broken character": ({"purpose": "\ud800"}, "purpose must be one line of text"),
    "an empty fingerprint": ({"fingerprint": ""}, "fingerprint must be one line of text"),
    "a misspelt dataset": ({"dataset": "cenus"}, "no dataset 'cenus'; did you mean 'census'"),
    "no dataset": ({"dataset": ""}, "dataset must be one line of text"),
    "more than the cap": ({"epsilon": "1.1"}, "has 1 left of its cap of 1"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_a_refused_grant_costs_nothing(ledger, case):
    changes, message = REFUSED[case]
    before = ledger.entries()
    with pytest.raises((InvalidParameter, BudgetExhausted), match=message):
        grant(ledger, **changes)
    assert ledger.entries() == before


def test_an_empty_ledger_says_to_add_a_dataset(path):
    with Ledger.create(path) as empty, pytest.raises(InvalidParameter, match="no dataset yet"):
        grant(empty)


def test_an_account_that_can_no_longer_be_written_exactly_is_refused(ledger):
    def take_odd_shares():
        for odd in range(3, 2000, 2):
            grant(ledger, Fraction(1, 10**39 + odd))

    with pytest.raises(InvalidParameter, match="too many digits to stay exact"):
        take_odd_shares()
    assert ledger.verify().is_intact
    assert grant(ledger, "0.3").epsilon == Fraction(3, 10)  # a round share still fits


@files_only
def test_another_process_sees_the_debit_before_the_budget_is_handed_out(ledger, path):
    budget = grant(ledger, "0.3")
    with sqlite3.connect(path) as other:
        row = other.execute("SELECT number, hash FROM entries ORDER BY number DESC").fetchone()
    other.close()
    assert row == (budget.grant.entry, budget.grant.entry_hash)


@files_only
def test_commits_wait_for_the_disk(ledger):
    connection = ledger._store._connection
    assert connection.execute("PRAGMA journal_mode").fetchone() == ("delete",)
    assert connection.execute("PRAGMA synchronous").fetchone() == (3,)  # EXTRA


def test_a_grant_that_waits_for_the_lock_sees_what_was_spent_meanwhile(path, ledger):
    refused = []

    def late():
        with Ledger(path) as second:
            try:
                grant(second, "0.6")
            except BudgetExhausted as error:
                refused.append(str(error))

    with ledger._store.writing():
        thread = Thread(target=late)
        thread.start()
        thread.join(0.3)
        assert thread.is_alive()  # it waits before it reads
        half = {"cap": "1", "spent": "0.5", "epsilon": "0.5"}
        ledger._append("census", Granted(**half, purpose="x", fingerprinted=False))
    thread.join()
    assert "has 0.5 left" in refused[0]


def test_threads_share_one_ledger_without_overspending(ledger):
    got = []

    def take():
        try:
            while True:
                got.append(grant(ledger, "0.03").epsilon)
        except BudgetExhausted:
            return

    threads = [Thread(target=take) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(got) == 33
    assert ledger.verify().is_intact


# Datasets, caps, publications


def test_a_dataset_is_added_once_with_a_cap_of_two_unless_said_otherwise(ledger):
    ledger.add("clinic")
    assert ledger.datasets() == ("census", "clinic")
    assert ledger.status("clinic").cap == 2
    with pytest.raises(InvalidParameter, match="has 'clinic' already; `dpublish ledger cap`"):
        ledger.add("clinic", cap="9")
    assert ledger.status("clinic").cap == 2


def test_datasets_do_not_pay_for_each_other(ledger):
    ledger.add("clinic", cap="1")
    grant(ledger, "1", "clinic")
    assert ledger.status("census").left == 1
    with pytest.raises(BudgetExhausted):
        grant(ledger, "0.1", "clinic")


def test_a_cap_goes_up_and_down_but_not_below_what_is_spent(ledger):
    grant(ledger, "0.8")
    ledger.change_cap("census", "3/2", reason="the board agreed")
    grant(ledger, "0.3")
    ledger.change_cap("census", "1.1", reason="enough")
    assert ledger.status("census").left == 0
    with pytest.raises(InvalidParameter, match=r"at least 1\.1, which 'census' has spent already"):
        ledger.change_cap("census", "1.0999", reason="regret")
    with pytest.raises(InvalidParameter, match="reason must be"):
        ledger.change_cap("census", "5", reason="")
    with pytest.raises(InvalidParameter, match="cap must be a number"):
        ledger.change_cap("census", None, reason="hurry")
    assert ledger.status("census").cap == Fraction(11, 10)
    ledger.change_cap("census", 1.2, reason="a float is read by its shortest decimal")
    assert ledger.status("census").cap == Fraction(6, 5)


def test_a_grant_is_interrupted_until_it_is_published_and_published_once(ledger):
    first, second = grant(ledger), grant(ledger)
    ledger.publish(second.grant, "id-2", "hash-2")
    states = [(g.entry, g.state, g.release_id, g.release_hash) for g in statuses(ledger)]
    assert states == [
        (first.grant.entry, "interrupted or running", None, None),
        (second.grant.entry, "published", "id-2", "hash-2"),
    ]
    assert ledger.grant_status(second.grant).release_hash == "hash-2"
    assert ledger.grant_status(first.grant) == statuses(ledger)[0]
    with pytest.raises(InvalidParameter, match="is published already"):
        ledger.publish(second.grant, "id-3", "hash-3")
    with pytest.raises(InvalidParameter, match="release with the id 'id-2' is recorded already"):
        ledger.publish(first.grant, "id-2", "hash-2")
    assert ledger.status("census").spent == Fraction(6, 10)  # interrupted or not, it is paid


def test_a_grant_is_opened_again_until_it_is_published(ledger):
    first = grant(ledger)
    again = ledger.reopen(first.grant)
    assert (again.epsilon, again.purpose, again.hides) == (
        first.epsilon,
        first.purpose,
        first.hides,
    )
    assert (again.grant, again.opened, again.is_used) == (first.grant, first.opened, False)
    assert ledger.status("census").spent == first.epsilon  # it is debited once
    ledger.publish(first.grant, "id-1", "hash-1")
    with pytest.raises(InvalidParameter, match="is published already"):
        ledger.reopen(first.grant)


def ask_once(ledger, **changes):
    asked = {"epsilon": "0.1", "purpose": "start 1", "hides": AddRemoveRecord(), "rng": secure()}
    return ledger.grant("census", once=True, **asked | changes)


def test_what_is_asked_for_once_is_debited_once_and_refused_when_it_is_published(ledger):
    first, again = ask_once(ledger), ask_once(ledger)
    assert (again.grant, again.epsilon, again.hides) == (first.grant, first.epsilon, first.hides)
    assert ledger.status("census").spent == Fraction(1, 10)
    others = [{"epsilon": "0.2"}, {"purpose": "start 11"}, {"purpose": 'a "start 1'}]
    assert len({ask_once(ledger, **other).grant.entry for other in others}) == len(others)
    with pytest.raises(InvalidParameter, match="do not add up"):
        ask_once(ledger, hides=AddRemoveUnit("person"))
    ledger.publish(first.grant, "id-1", "hash-1")
    with pytest.raises(GrantPublished, match="is published already"):
        ask_once(ledger)
    assert ledger.status("census").spent == Fraction(5, 10)


def statuses(ledger):
    return ledger.status("census").grants


def test_only_this_ledgers_own_grants_are_published(ledger):
    real = grant(ledger).grant
    ledger.add("clinic")
    forged = [
        Grant("census", real.entry, "0" * 64),
        Grant("census", real.entry + 1, real.entry_hash),
        Grant("clinic", real.entry, real.entry_hash),
        Grant("census", 99, real.entry_hash),
        Grant("census", True, real.entry_hash),
        Grant("census", float(real.entry), real.entry_hash),
        Grant("census", 10**30, real.entry_hash),
        Grant("census", -1, real.entry_hash),
        Grant("census", 2, ledger.entries()[1].hash),
    ]
    for other in forged:
        with pytest.raises(InvalidParameter, match="not one of this ledger's"):
            ledger.publish(other, "id", "hash")
        with pytest.raises(InvalidParameter, match="not one of this ledger's"):
            ledger.grant_status(other)


def test_the_status_can_be_written_as_json_without_fingerprints(ledger):
    grant(ledger, fingerprint="secret-of-rows")
    plain = json.dumps(ledger.status("census").to_dict())
    assert json.loads(plain)["left"] == "0.7"
    assert "secret-of-rows" not in plain


def test_a_fingerprint_is_kept_for_the_owner_and_enters_no_hash_of_the_chain(ledger):
    budget = grant(ledger, fingerprint="sha256:abc")
    assert statuses(ledger)[0].fingerprint == "sha256:abc"
    entry = ledger.entries()[-1]
    assert "sha256:abc" not in repr(entry)
    assert entry.digest() == entry.hash == budget.grant.entry_hash  # made of these fields alone


def test_equal_entries_have_different_hashes_so_a_published_one_confirms_no_guess(locate):
    hashes = set()
    for name in "ab":
        clock = lambda: datetime(2024, 2, 29, tzinfo=UTC)  # noqa: E731
        with Ledger.create(locate(name), clock=clock) as ledger:
            hashes.add(ledger.entries()[0].hash)
            ledger.add("census")
            hashes.add(ledger.entries()[1].hash)
    assert len(hashes) == 4


@given(first=st.lists(st.text(), min_size=4, max_size=4), second=st.lists(st.text(), min_size=4))
def test_no_two_entries_are_hashed_as_the_same_text(first, second):
    here, there = Entry(1, *first, "p"), Entry(1, *second[:4], "p")
    assert (here.digest() == there.digest()) == (first == second[:4])


@pytest.mark.parametrize("column", ["number", "time", "kind", "dataset", "body", "previous"])
def test_the_hash_covers_every_field(ledger, column):
    entry = ledger.entries()[-1]
    other = 99 if column == "number" else getattr(entry, column) + "x"
    assert replace(entry, **{column: other}).digest() != entry.digest()
