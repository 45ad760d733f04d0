"""Bounds are paid for, measured, and entered in the schema file; in this order."""

import datetime
import json
import os
import tomllib
from contextlib import closing
from fractions import Fraction

import numpy as np
import pyarrow as pa
import pytest

import dpublish
from dpublish.core.folder.folder import load
from dpublish.data.engines.local import LocalTable
from dpublish.data.schema_file import load_schema
from dpublish.errors import (
    BudgetExhausted,
    DPublishError,
    InputError,
    InvalidParameter,
    InvalidSchema,
)
from dpublish.ledger.ledger import Ledger
from dpublish.privacy.neighbors import AddRemoveRecord, AddRemoveUnit
from dpublish.publishing import bounds as publishing_bounds
from dpublish.publishing.bounds import measure_bounds, request_bounds
from dpublish.randomness import plain_generator

TEXT = """\
# visits of one year
name = "visits"

[columns.cost]
kind = "numeric"  # in euros
# bounds = [ , ]  # fill in from public knowledge
bins = 20

[columns.stay]
kind = "integer"
missing = "drop"

[columns.admitted]
kind = "date"

[columns.ward]
kind = "category"
values = ["A", "B"]

[columns.age]
kind = "integer"
bounds = [0, 120]
"""


def visits(n=5_000):
    rng = plain_generator(1)
    days = rng.integers(0, 365, n)
    return pa.table(
        {
            "cost": np.exp(rng.normal(6, 1, n)),
            "stay": rng.poisson(5, n),
            "big": rng.integers(0, 10**7, n),
            "admitted": pa.array(
                [datetime.date(2024, 1, 1) + datetime.timedelta(int(d)) for d in days]
            ),
            "patient": rng.integers(0, n // 4, n),
        }
    )


@pytest.fixture
def books(tmp_path):
    """Write the schema and a ledger; measure bounds with any setting replaced."""
    path = tmp_path / "visits.toml"
    path.write_text(TEXT)
    with Ledger.create(tmp_path / "books.db") as ledger:
        ledger.add("visits", cap="1")

        def measure(column, source=None, **settings):
            return measure_bounds(
                visits() if source is None else source,
                path,
                column,
                **{"epsilon": "0.2", "ledger": ledger, "dataset": "visits", **settings},
            )

        measure.path, measure.ledger = path, ledger
        yield measure


def test_bounds_are_entered_where_the_draft_asks_for_them_and_nothing_else_changes(books):
    release = books("cost", lower=0)
    line = f"bounds = [0, {release.bounds[1]}]"
    assert books.path.read_text() == TEXT.replace(
        "# bounds = [ , ]  # fill in from public knowledge", line
    )
    assert 1_000 <= release.upper <= 10_000
    assert dpublish.measure_bounds is measure_bounds


def test_the_receipt_is_beside_the_schema_and_the_ledger_knows_it(books):
    release = books("cost", nonnegative=True)
    folder = books.path.with_name("visits-cost-bounds")
    assert load(folder) == release
    receipt = json.loads((folder / "release.json").read_text())["receipt"]
    assert (receipt["method"], receipt["epsilon"]) == ("bounds", "0.2")
    assert receipt["dataset"] == "visits"
    [grant] = books.ledger.status("visits").grants
    assert (grant.release_id, grant.purpose) == (release.receipt.release_id, "bounds of cost")
    assert release.receipt.neighbors == AddRemoveRecord()


def test_a_column_that_the_schema_lacks_is_added_and_integers_too_many_get_bins(books):
    release = books("big", kind="integer", lower=0)
    assert books.path.read_text() == (
        f'{TEXT}\n[columns.big]\nkind = "integer"\nbounds = [0, {release.bounds[1]}]\nbins = 16\n'
    )


@pytest.mark.parametrize("suffix", ["toml", "json"])
def test_bins_that_do_not_fit_the_measured_bounds_are_written_anew(books, suffix):
    rows = visits()
    seen = [datetime.datetime(1990 + 2 * (i % 16), 1, 1 + i % 28) for i in range(rows.num_rows)]
    rows = rows.append_column("seen", pa.array(seen, pa.timestamp("s")))
    wanted = {"stay": {"kind": "integer", "bins": 50}, "seen": {"kind": "datetime", "bins": "hour"}}
    path = books.path.with_suffix(f".{suffix}")
    if suffix == "json":
        path.write_text(json.dumps({"columns": wanted}))
    else:
        text = '[columns.stay]\nkind = "integer"\nbins = 50  # weeks\n\n'
        path.write_text(text + '[columns.seen]\nkind = "datetime"\nbins = "hour"\n')
    ledger = {"epsilon": "0.2", "ledger": books.ledger, "dataset": "visits"}
    stay = measure_bounds(rows, path, "stay", nonnegative=True, **ledger)
    measure_bounds(rows, path, "seen", **ledger)
    if suffix == "toml":
        assert f"bins = {stay.bounds[1] - stay.bounds[0] + 1}  # weeks\n" in path.read_text()
    schema = load_schema(path)
    assert schema["stay"].size == stay.bounds[1] - stay.bounds[0] + 1 < 50
    assert schema["seen"].partition.period == "day"


def test_bins_that_could_not_be_written_anew_are_found_before_anything_is_paid(books):
    books.path.write_text('columns.stay.kind = "integer"\ncolumns.stay.bins = 50\n')
    spent = books.ledger.status("visits").spent
    with pytest.raises(InvalidSchema, match="by hand"):
        books("stay", nonnegative=True, output=books.path.with_name("again"))
    assert books.ledger.status("visits").spent == spent


def test_a_schema_is_complete_once_all_bounds_are_measured(books):
    books("cost", lower=0)
    books("stay", nonnegative=True)
    low, high = books("admitted").bounds
    assert (low[:7], high[:7]) in {("2024-01", "2025-01"), ("2024-01", "2024-12")}
    assert load_schema(books.path).names == ("cost", "stay", "admitted", "ward", "age")
    assert (
        books.ledger.status("visits").spent == 3 * books.ledger.status("visits").grants[0].epsilon
    )


def test_all_rows_of_a_person_are_hidden_if_the_schema_names_a_unit(books):
    books.path.write_text('unit = "patient"\n' + TEXT)
    with pytest.raises(InvalidParameter, match="contribution"):
        books("cost", lower=0)
    release = books("cost", lower=0, contribution=3)
    assert release.receipt.neighbors == AddRemoveUnit("patient")
    assert release.receipt.contribution == 3
    assert release.receipt.epsilon == books.ledger.status("visits").spent


def test_a_unit_is_called_as_the_schema_calls_it(books):
    books.path.write_text('unit = "patient"\nunit_name = "household"\n' + TEXT)
    release = books("cost", lower=0, contribution=3)
    assert "household" in release.receipt.guarantee() + release.receipt.neighbors.brief()


def test_an_account_with_levels_pays_if_the_owner_vouches_for_all(books):
    books.ledger.add("people", levels=("0.5", "1"))
    others = {"source": visits(), "schema": books.path, "column": "cost", "ledger": books.ledger}
    asked = {"dataset": "people", "epsilon": "0.1", "lower": 0}
    with pytest.raises(InvalidParameter, match="all_have_levels"):
        measure_bounds(**others, **asked)
    assert measure_bounds(**others, **asked, all_have_levels=True).upper > 0
    assert books.ledger.status("people").spent == Fraction(1, 10)


def test_steps_come_before_the_bounds_and_are_on_the_receipt(books):
    books.path.write_text('unit = "patient"\n' + TEXT)
    release = books(
        "daily",
        where="stay >= 1",
        derive="daily = cost / stay",
        lower=0,
        contribution=2,
    )
    assert release.receipt.steps == ("derive daily = cost / stay", "where stay >= 1")
    assert release.upper < 3_000
    assert load_schema_column(books.path, "daily") == [0, release.bounds[1]]


def load_schema_column(path, name):
    return tomllib.loads(path.read_text())["columns"][name]["bounds"]


def test_a_unit_pays_with_rows_aimed_at_in_proportion_to_its_bound(books):
    books.path.write_text('unit = "patient"\n' + TEXT)
    one = books("cost", lower=0, contribution=1, output=books.path.with_name("one"))
    books.path.write_text('unit = "patient"\n' + TEXT)
    four = books("cost", lower=0, contribution=4, output=books.path.with_name("four"))
    assert 3.5 < four.least / one.least <= 4.1


@pytest.mark.parametrize(
    ("column", "settings", "fault"),
    [
        ("age", {}, "has bounds already"),
        ("ward", {}, "only numbers"),
        ("cost", {"kind": "integer"}, "leave out the kind"),
        ("cost", {"kind": "category"}, "must be one of"),
        ("cost", {"lower": 0, "upper": 10}, "both known"),
        ("cost", {"lower": 0, "nonnegative": True}, "without lower"),
        ("cost", {"lower": "ten"}, "must be a number"),
        ("cost", {"lower": 1e300}, "bounds"),
        ("cost", {"coverage": "1.5"}, "coverage"),
        ("admitted", {"lower": "2024-02-30"}, "bounds"),
        ("admitted", {"nonnegative": True}, "nonnegative"),
        ("nowhere", {}, "nowhere"),
        ("cost", {"epsilon": "0"}, "epsilon"),
        ("cost", {"contribution": 2}, "unit"),
        ("cost", {"dataset": "others"}, "others"),
    ],
)
def test_what_is_wrong_with_a_request_is_found_before_anything_is_paid(
    books, column, settings, fault
):
    with pytest.raises(DPublishError, match=fault):
        books(column, **settings)
    assert books.ledger.status("visits").grants == ()
    assert books.path.read_text() == TEXT


def test_a_file_that_could_not_be_edited_is_found_before_anything_is_paid(books):
    books.path.write_text('columns = { cost = { kind = "numeric" } }\n')
    with pytest.raises(InvalidSchema, match="by hand"):
        books("cost")
    assert books.ledger.status("visits").grants == ()


def test_a_folder_that_cannot_be_written_is_found_before_anything_is_paid(books, monkeypatch):
    monkeypatch.setattr(os, "access", lambda path, mode: False)
    with pytest.raises(InputError, match="cannot be written"):
        books("cost")
    assert books.ledger.status("visits").grants == ()


def test_an_empty_account_pays_for_nothing_and_no_row_is_read(books, monkeypatch):
    monkeypatch.setattr(LocalTable, "sum", lambda table, kernel: pytest.fail("rows were read"))
    with pytest.raises(BudgetExhausted):
        books("cost", epsilon="2")
    assert books.path.read_text() == TEXT


def test_a_schema_that_cannot_be_written_after_all_says_what_to_write(books, monkeypatch):
    def fail(*args, **named):
        raise InvalidSchema("the disk is gone")

    monkeypatch.setattr(publishing_bounds, "write_text", fail)
    with pytest.raises(InvalidSchema) as caught:
        books("cost", lower=0)
    assert "write bounds = [0, " in caught.value.__notes__[0]
    assert len(books.ledger.status("visits").grants) == 1


def test_a_change_of_the_file_while_rows_were_read_is_kept(books):
    request = request_bounds(books.path, "cost", lower=0)
    later = TEXT.replace('name = "visits"', 'name = "visits of 2024"')
    books.path.write_text(later)
    with closing(dpublish.open_table(visits(), request.schema)) as table:
        request.run(table, None, ledger=books.ledger, dataset="visits", epsilon="0.2")
    assert 'name = "visits of 2024"' in books.path.read_text()
