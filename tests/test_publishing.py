"""Publishing: refused for free, debited before reading, and never thrown away once paid for."""

from dataclasses import replace

import pytest

from dpublish.core.folder.folder import load
from dpublish.core.registry import make_method
from dpublish.core.released import Release
from dpublish.data.sources import open_table
from dpublish.errors import (
    BudgetExhausted,
    DPublishError,
    InputError,
    InvalidParameter,
    LedgerUnavailable,
)
from dpublish.ledger.ledger import Ledger
from dpublish.methods.histogram.histogram import Histogram
from dpublish.privacy.neighbors import AddRemoveUnit
from dpublish.publishing import publish
from dpublish.publishing import table as publishing
from method_examples import SCHEMA, arrow_table

METHOD = Histogram(columns=("age", "sex"))


@pytest.fixture
def ledger(tmp_path):
    with Ledger.create(tmp_path / "books.db") as books:
        books.add("people", cap="1")
        yield books


def go(ledger, output, method=METHOD, table=None, epsilon="0.4"):
    table = open_table(arrow_table(), SCHEMA) if table is None else table
    return publish(method, table, output, ledger=ledger, dataset="people", epsilon=epsilon)


class Watched:
    """A table that notes how much was spent when its first row was read."""

    def __init__(self, ledger, failing=False):
        self._table, self._ledger, self._failing = (
            open_table(arrow_table(), SCHEMA),
            ledger,
            failing,
        )
        self.schema, self.neighbors = self._table.schema, self._table.neighbors
        self.spent_when_read = None

    def sum(self, kernel):
        if self.spent_when_read is None:
            self.spent_when_read = self._ledger.status("people").spent
        if self._failing:
            raise InputError("the disk went away")
        return self._table.sum(kernel)


def test_a_table_whose_rows_were_bounded_by_unit_is_refused_before_the_debit(ledger, tmp_path):
    """One row more may replace another one of its unit: twice epsilon for a record."""
    by_unit = open_table(arrow_table(), replace(SCHEMA, unit="note"))
    bounded = by_unit.bound(2, b"k" * 16)
    for table in (bounded, bounded.only("sex", [0], keep=True)):
        with pytest.raises(InvalidParameter, match="bounded by unit"):
            go(ledger, tmp_path / "out", table=table)
    assert ledger.status("people").spent == 0


def test_neighbors_that_the_method_does_not_hide_are_refused_before_the_debit(ledger, tmp_path):
    by_unit = open_table(arrow_table(), replace(SCHEMA, unit="note"))
    with pytest.raises(InvalidParameter, match="--contribution 4"):
        go(ledger, tmp_path / "out", METHOD, by_unit)
    assert ledger.status("people").spent == 0


def test_a_table_with_another_unit_is_not_paid_for_from_the_same_account(ledger, tmp_path):
    """50 rows of one person: 0.5 for them, and 0.5 for each of their rows, would be 25.5."""
    ranking = make_method("topk", {"column": "sex", "count": "1"})
    by_record = open_table(arrow_table(), SCHEMA)
    by_unit = open_table(arrow_table(), replace(SCHEMA, unit="age"))
    go(ledger, tmp_path / "a", ranking, by_unit)
    assert ledger.status("people").hides == AddRemoveUnit("age")
    before = ledger.entries()
    with pytest.raises(InvalidParameter, match="their epsilons do not add up"):
        go(ledger, tmp_path / "b", ranking, by_record)
    assert ledger.entries() == before
    assert not (tmp_path / "b").exists()


def test_the_ledger_is_debited_before_the_first_row_is_read(ledger, tmp_path):
    table = Watched(ledger)
    go(ledger, tmp_path / "out", table=table)
    assert table.spent_when_read == ledger.status("people").spent > 0


def test_a_release_that_fails_while_reading_stays_debited_and_says_so(ledger, tmp_path):
    with pytest.raises(DPublishError) as caught:
        go(ledger, tmp_path / "out", table=Watched(ledger, failing=True))
    assert "stays debited" in "".join(caught.value.__notes__)
    status = ledger.status("people")
    assert str(status.spent) == "2/5"
    assert [grant.state for grant in status.grants] == ["interrupted or running"]
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("change", "error"),
    [
        ({"method": Histogram(columns=("wealth",))}, InvalidParameter),
        ({"epsilon": [0.4]}, InvalidParameter),
        ({"epsilon": "0"}, InvalidParameter),
        ({"epsilon": "1.1"}, BudgetExhausted),
    ],
)
def test_what_is_refused_is_free_and_reads_nothing(ledger, tmp_path, change, error):
    table = Watched(ledger)
    with pytest.raises(error):
        go(ledger, tmp_path / "out", table=table, **change)
    assert table.spent_when_read is None
    assert ledger.status("people").spent == 0


def test_a_folder_that_cannot_be_written_is_refused_for_free(ledger, tmp_path):
    (tmp_path / "out").touch()
    with pytest.raises(InvalidParameter):
        go(ledger, tmp_path / "out")
    with pytest.raises(InputError):
        go(ledger, tmp_path / "no" / "out")
    assert ledger.status("people").spent == 0


def test_a_paid_release_is_rescued_when_its_folder_cannot_be_written(ledger, tmp_path, monkeypatch):
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    original = Release.save

    def full_at_first(self, path, **options):
        if path.parent == tmp_path:
            raise InputError("No space left on device")
        return original(self, path, **options)

    monkeypatch.setattr(Release, "save", full_at_first)
    with pytest.raises(InputError, match="is whole in") as caught:
        go(ledger, tmp_path / "out")
    rescued = str(caught.value).split("whole in ")[1].split(" instead")[0]
    assert load(rescued).receipt.dataset == "people"
    assert [grant.state for grant in ledger.status("people").grants] == ["published"]


@pytest.mark.parametrize("failing_with", ["charts", "everything"])
def test_a_page_that_cannot_be_drawn_does_not_cost_the_release(
    ledger, tmp_path, monkeypatch, failing_with
):
    original = publishing.render_report

    def broken(release, *, with_charts):
        if with_charts or failing_with == "everything":
            raise RuntimeError("no fonts")
        return original(release, with_charts=with_charts)

    monkeypatch.setattr(publishing, "render_report", broken)
    release = go(ledger, tmp_path / "out")
    assert load(tmp_path / "out") == release
    assert (tmp_path / "out" / "report.html").exists() == (failing_with == "charts")


def test_a_folder_that_appears_meanwhile_does_not_cost_the_release(ledger, tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    table = open_table(arrow_table(), SCHEMA)
    with pytest.raises(InputError, match="is whole in"):
        publish(
            METHOD,
            table,
            tmp_path / "out",
            ledger=ledger,
            dataset="people",
            epsilon="0.4",
            progress=lambda *_: (tmp_path / "out").mkdir(),
        )
    (rescued,) = tmp_path.glob("dpublish-rescued-*/release")
    assert load(rescued).receipt.dataset == "people"


def test_books_that_cannot_be_closed_say_where_the_release_is(ledger, tmp_path, monkeypatch):
    def busy(*_):
        raise LedgerUnavailable("the ledger is busy")

    monkeypatch.setattr(ledger, "publish", busy)
    with pytest.raises(LedgerUnavailable) as caught:
        go(ledger, tmp_path / "out")
    assert f"ledger record LEDGER {tmp_path / 'out'}" in "".join(caught.value.__notes__)
    assert load(tmp_path / "out")


def test_a_lack_of_memory_does_not_tell_how_much_was_asked_for(ledger, tmp_path, monkeypatch):
    def greedy(*_, **__):
        raise MemoryError("Unable to allocate an array with shape (4711,)")

    monkeypatch.setattr(Histogram, "release", greedy)
    with pytest.raises(InputError, match="not enough memory") as caught:
        go(ledger, tmp_path / "out")
    assert "4711" not in str(caught.value)
    assert caught.value.__cause__ is None


def test_the_receipt_is_an_anchor_of_the_ledger(ledger, tmp_path):
    release = go(ledger, tmp_path / "out")
    assert ledger.verify(anchors=[release.receipt.anchor]).problems == ()
    assert release.receipt.stamps == ()
    assert load(tmp_path / "out") == release
    assert (tmp_path / "out" / "report.html").is_file()


def test_an_epsilon_that_hides_nothing_is_refused_and_costs_nothing(ledger, tmp_path):
    with pytest.raises(InvalidParameter, match="hide nothing"):
        go(ledger, tmp_path / "out", epsilon="1e8")
    assert ledger.status("people").spent == 0


def test_too_small_an_epsilon_is_named_and_other_faults_are_not_blamed_on_it(ledger, tmp_path):
    advice = "epsilon is too small for this method"
    with pytest.raises(InvalidParameter, match=f"2..-40.*; {advice}$"):
        go(ledger, tmp_path / "out", epsilon="1e-13")
    with pytest.raises(InvalidParameter) as other:
        go(ledger, tmp_path / "out", method=Histogram(columns=("x",)), epsilon="1e-13")
    assert advice not in str(other.value)
    assert ledger.status("people").spent == 0
