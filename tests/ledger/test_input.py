"""What a ledger is told: texts, names, clocks, and a Ctrl-C at a bad moment."""

from datetime import UTC, datetime, timedelta, timezone
from fractions import Fraction

import pytest

from dpublish.errors import (
    BudgetExhausted,
    InvalidParameter,
    InvalidType,
    LedgerTampered,
    LedgerUnavailable,
)
from dpublish.ledger.chain import Added
from dpublish.ledger.ledger import Ledger
from dpublish.privacy.budget import Grant
from dpublish.privacy.neighbors import AddRemoveRecord
from dpublish.randomness import is_secure, secure, seeded
from ledger.ledger_forgery import tamper


@pytest.fixture
def path(locate):
    path = locate()
    with Ledger.create(path) as ledger:
        ledger.add("census", cap="10")
    return path


@pytest.fixture
def ledger(path):
    with Ledger(path) as ledger:
        yield ledger


def grant(ledger, **changes):
    asked = {
        "epsilon": "0.1",
        "purpose": "ages",
        "hides": AddRemoveRecord(),
        "rng": secure(),
    } | changes
    return ledger.grant("census", **asked)


@pytest.mark.parametrize("note", [None, 0, False, [], b"", 7, "a\nb", " "])
def test_a_note_is_text_or_nothing(ledger, note):
    with pytest.raises(InvalidParameter, match="note must be one line of text"):
        ledger.add("clinic", note=note)
    assert ledger.datasets() == ("census",)


@pytest.mark.parametrize(
    "text", ["a\u2028b", "a\u2029b", "a\u0085b", "pay \u202e9.0", "\u2066a", "a\u200f", "a\x1b[2K"]
)
def test_a_text_that_would_not_look_like_what_it_is_is_refused(ledger, text):
    for act in (
        lambda: grant(ledger, purpose=text),
        lambda: ledger.add(text),
        lambda: ledger.change_cap("census", "3", reason=text),
        lambda: ledger.publish(Grant("census", 1, "h"), text, "h"),
    ):
        with pytest.raises(InvalidParameter, match="must be one line of text") as caught:
            act()
        assert str(caught.value).isprintable()
    assert len(ledger.entries()) == 2


@pytest.mark.parametrize("name", ["clinic ", " clinic", "cafe\u0301", "\u212bngstrom"])
def test_a_name_is_written_in_one_way(ledger, name):
    with pytest.raises(InvalidParameter, match="must not begin or end with a space"):
        ledger.add(name)


@pytest.mark.parametrize(
    "name",
    [
        "Census",
        "CENSUS",
        "cen\u200bsus",
        "cen\u00adsus",
        "\uff43ensus",
        "cen\u017fus",
        "c\u2060ensus",
    ],
)
def test_a_name_that_looks_like_another_is_refused(ledger, name):
    with pytest.raises(InvalidParameter, match="looks like 'census', which the ledger has"):
        ledger.add(name)
    assert ledger.datasets() == ("census",)


def test_names_that_differ_to_the_eye_are_different_accounts(ledger):
    for name in ("census-2", "censu", "café", "zählung", "人口"):
        ledger.add(name)
    assert len(ledger.datasets()) == 6


def test_an_entry_that_could_not_be_read_back_is_never_written(ledger):
    with ledger._store.writing(), pytest.raises(InvalidParameter, match="could not be read back"):
        ledger._append("clinic", Added(cap="1", spent="0", note=7))
    assert len(ledger.entries()) == 2


def test_times_are_written_in_utc(locate):
    noon = datetime(2024, 2, 29, 12, tzinfo=timezone(timedelta(hours=2)))
    with Ledger.create(locate("new"), clock=lambda: noon) as ledger:
        assert ledger.entries()[0].time == "2024-02-29T10:00:00+00:00"


FAR = timezone(timedelta(hours=14))


@pytest.mark.parametrize(
    "time",
    [
        datetime.min.replace(tzinfo=FAR),
        datetime.max.replace(tzinfo=timezone(-FAR.utcoffset(None))),
        None,
        "now",
        0,
    ],
)
def test_an_absurd_clock_is_refused_and_nothing_granted(path, locate, time):
    with Ledger(path, clock=lambda: time) as ledger:
        with pytest.raises(InvalidParameter, match="the clock"):
            grant(ledger)
        assert ledger.status("census").spent == 0
    with pytest.raises(InvalidParameter, match="the clock"):
        Ledger.create(locate("new"), clock=lambda: time)
    with pytest.raises(LedgerUnavailable, match="does not exist"):
        Ledger(locate("new"))


def test_a_clock_that_looks_into_its_own_ledger_is_refused_and_breaks_nothing(path):
    refused = []

    def clock():
        for act in (lambda: grant(ledger), lambda: ledger.status("census")):
            try:
                act()
            except LedgerUnavailable as error:
                refused.append("is in use" in str(error))
        return datetime.now(UTC)

    with Ledger(path, clock=clock) as ledger:
        grant(ledger)
        assert refused == [True, True]
        assert ledger.status("census").spent == Fraction(1, 10)
        assert ledger.verify().is_intact


class Interrupting:
    """A connection on which Ctrl-C is pressed just after one statement was run."""

    def __init__(self, connection, statement):
        self.connection, self.statement = connection, statement

    def __getattr__(self, name):
        return getattr(self.connection, name)

    def execute(self, statement, *values):
        done = self.connection.execute(statement, *values)
        if self.statement is not None and statement.startswith(self.statement):
            self.statement = None
            raise KeyboardInterrupt
        return done


@pytest.mark.parametrize(
    ("statement", "spent"), [("BEGIN", 0), ("INSERT", 0), ("COMMIT", Fraction(1, 10))]
)
def test_an_interrupt_leaves_no_lock_behind(path, statement, spent):
    with Ledger(path) as ledger, Ledger(path, wait_seconds=0.1) as other:
        ledger._store._connection = Interrupting(ledger._store._connection, statement)
        with pytest.raises(KeyboardInterrupt):
            grant(ledger)
        assert other.status("census").spent == spent
        grant(other)
        grant(ledger)
        assert ledger.status("census").spent == spent + Fraction(2, 10)
        assert ledger.verify().is_intact


def test_a_transaction_that_was_left_open_is_taken_back(ledger):
    ledger._store._connection.execute("BEGIN")
    grant(ledger)
    assert ledger.status("census").spent == Fraction(1, 10)


def test_forty_digits_are_taken_and_forty_one_are_not(ledger):
    assert grant(ledger, epsilon=Fraction(1, 10**40 - 1)).epsilon == Fraction(1, 10**40 - 1)
    with pytest.raises(InvalidParameter, match="more than 40 digits"):
        grant(ledger, epsilon=Fraction(1, 10**40))


def test_an_overdraft_of_an_odd_account_is_told_shortly(ledger):
    for odd in range(3, 90, 2):
        grant(ledger, epsilon=Fraction(1, 10**30 + odd))
    with pytest.raises(BudgetExhausted) as caught:
        grant(ledger, epsilon="20")
    assert "has 9.99999999999 left" in str(caught.value)
    assert len(str(caught.value)) < 200
    assert grant(ledger, epsilon="9.99999999999").epsilon > 9  # the advice can be followed


def test_a_publication_is_found_without_reading_every_other_one(path):
    read = []
    with Ledger(path) as ledger:
        first = grant(ledger, epsilon="0.001").grant
        for number in range(30):
            ledger.publish(grant(ledger, epsilon="0.001").grant, f"id-{number}", "h")
        fetch = ledger._store.entries
        ledger._store.entries = lambda *query: (read.append(e) or e for e in fetch(*query))
        ledger.publish(first, "id", "h")
    assert len(read) < 8


def test_an_edited_publication_is_not_believed(ledger, path):
    budget = grant(ledger)
    ledger.publish(budget.grant, "id", "h")
    grant(ledger)
    tamper(path, "UPDATE entries SET body = replace(body, 'id', 'di') WHERE number = 4")
    with pytest.raises(LedgerTampered, match="entry 4 was edited"):
        ledger.grant_status(budget.grant)


def test_a_secure_source_cannot_be_given_other_words():
    source = secure()
    with pytest.raises(AttributeError):
        source.words = seeded(1).words
    assert is_secure(source)


@pytest.mark.parametrize(
    ("location", "told"), [(None, "None"), (5, "type int"), (b"books.db", "type bytes")]
)
def test_a_ledger_has_a_path_or_an_address(location, told):
    with pytest.raises(InvalidType, match=f'a ledger is a file, such as "books.db".*{told}$'):
        Ledger(location)
