"""What a release says is in it: from its schema and receipt alone, and on every page."""

import json
from dataclasses import replace
from datetime import date
from fractions import Fraction

import pyarrow as pa
import pytest

from dpublish.core.coverage import (
    contribution_of,
    coverage_of,
    not_in_intervals,
    what_is_counted,
)
from dpublish.core.registry import make_method
from dpublish.data.schema import Schema, column
from dpublish.data.sources import open_table
from dpublish.errors import InvalidParameter, InvalidQuery
from dpublish.methods.histogram.histogram import Histogram
from dpublish.privacy.budget import Budget
from dpublish.privacy.neighbors import (
    AddRemoveUnit,
    PersonalRecord,
    UserInWindow,
    from_dict,
    to_dict,
)
from dpublish.randomness import seeded
from dpublish.report.page import render_report
from method_examples import CASES, ROWS, SCHEMA, arrow_table


def publish(name, settings, rows=ROWS):
    method = make_method(name, settings)
    table = open_table(arrow_table(rows), SCHEMA)
    return method.release(table, budget=Budget.seeded("1.5"), rng=seeded(7))


HISTOGRAM = publish("histogram", {"columns": ("age", "height", "town")})


def changed(**changes):
    return replace(HISTOGRAM, receipt=replace(HISTOGRAM.receipt, **changes))


def test_a_column_with_a_category_for_missing_leaves_no_record_out():
    assert what_is_counted(HISTOGRAM) == "records with age and town"
    assert what_is_counted(publish("histogram", {"columns": ("height",)})) == "all records"


def test_a_missing_number_leaves_a_record_out_where_numbers_are_needed():
    assert what_is_counted(publish("kmeans", {"n_clusters": 2})) == "records with age and height"


def test_a_grid_counts_records_that_have_its_own_columns():
    release = publish("privpfc", {"target": "sex", "rounds": 0})
    assert set(release.complete) == {axis.column for axis in release.axes}


def test_every_column_says_what_becomes_of_a_missing_or_odd_value():
    assert coverage_of(HISTOGRAM).columns == {
        "age": "a record without a value is left out; values are clipped to 0 to 99",
        "height": "a record without a value counts as (missing); values are clipped to 100 to 220",
        "town": "a record without a value is left out; one that is not listed counts as Elsewhere",
    }


def test_bounds_of_dates_are_written_as_dates():
    admitted = column("admitted", "date", bounds=["2023-01-01", "2024-12-31"], bins="month")
    rows = pa.table({"admitted": [date(2023, 5, 1)]})
    found = Histogram(columns=("admitted",)).release(
        open_table(rows, Schema((admitted,))), budget=Budget.seeded(1), rng=seeded(1)
    )
    rule = coverage_of(found).columns["admitted"]
    assert rule.endswith("values are clipped to 2023-01-01 to 2024-12-31")


def test_a_bound_a_filter_and_a_derived_column_are_told():
    release = changed(
        neighbors=AddRemoveUnit("patient_id"),
        contribution=4,
        steps=("derive bmi = weight / 2", "where age >= 18"),
    )
    said = what_is_counted(release)
    assert said == "records with age and town, at most 4 of any one person, where age >= 18"
    told = " ".join(coverage_of(release).sentences())
    assert "Of any one person ('patient_id'), at most 4 of these records are in it" in told
    assert "record by record: derive bmi = weight / 2." in told


def test_an_interval_says_that_it_does_not_cover_records_beyond_a_bound():
    bounded = changed(neighbors=AddRemoveUnit("patient_id"), contribution=4)
    note = "the interval covers noise, not the records of a person beyond 4"
    assert bounded.count().assumption == note
    halves = bounded.count("height < 130.5").assumption
    assert halves.startswith("records are assumed")
    assert halves.endswith(f"; {note}")
    assert HISTOGRAM.count().assumption is None
    vouched = {"contribution": 2, "trust_rows": True}
    stream = changed(neighbors=AddRemoveUnit("person"), settings=vouched)
    assert not_in_intervals(stream.receipt) is None
    baskets = changed(neighbors=UserInWindow("basket_id", 3, "basket"), settings=vouched)
    assert "records of a basket beyond 2" in not_in_intervals(baskets.receipt)


def test_units_that_count_once_are_people_or_what_the_owner_calls_them():
    people = changed(neighbors=AddRemoveUnit("patient_id"))
    assert what_is_counted(people).startswith("people with age and town, each once for every")
    baskets = changed(neighbors=AddRemoveUnit("basket_id", "basket"))
    assert what_is_counted(baskets).startswith("baskets with age")


def test_a_personalized_release_is_about_the_columns_of_its_parts():
    settings = {"inner": "histogram columns=age", "preference": "sex", "derived": True}
    settings |= {"rule": "Female=1.5; Male=3", "levels": ("1.5", "3")}
    release = publish("minimum", settings)
    assert what_is_counted(release) == "records with age, at one of the levels"


def test_a_stream_counts_at_most_its_contribution():
    receipt = replace(HISTOGRAM.receipt, neighbors=UserInWindow("user", 3))
    receipt = replace(receipt, settings={"contribution": 2})
    assert contribution_of(receipt) == 2
    told = coverage_of(replace(HISTOGRAM, receipt=receipt))
    assert told.counts == "records with age and town, at most 2 of any one person"
    assert "are in a snapshot" in told.limits[0]


@pytest.mark.parametrize(("name", "settings"), CASES)
def test_every_kind_of_release_says_it_everywhere(name, settings, tmp_path):
    release = publish(name, settings)
    said = what_is_counted(release)
    if release.kind != "grid-classifier":  # whose columns are chosen privately
        assert said == what_is_counted(publish(name, settings, rows=[]))  # no row decides
    assert f"In it are {said}." in render_report(release, with_charts=False)
    release.save(tmp_path / "out")
    package = json.loads((tmp_path / "out" / "datapackage.json").read_text())
    assert package["counts"] == said
    assert f"In this release are {said}." in package["description"]
    try:
        answer = release.count()
    except (InvalidQuery, InvalidParameter):
        return
    assert answer.counts == answer.to_dict()["counts"] == said


def test_what_a_unit_is_called_is_kept_and_changes_no_notion():
    basket = AddRemoveUnit("basket_id", "basket")
    assert basket == AddRemoveUnit("basket_id")
    assert from_dict(to_dict(basket)).brief() == "all records of one basket ('basket_id')"
    assert to_dict(AddRemoveUnit("who")) == {"name": "add-remove-unit", "column": "who"}
    old = from_dict({"name": "user-in-window", "column": "who", "window": 3})
    assert old.brief() == "all records of one person ('who') in any 3 consecutive snapshots"
    with pytest.raises(InvalidParameter, match="must be a word"):
        AddRemoveUnit("who", " ")


def test_the_bounds_of_dates_are_told_as_dates():
    schema = Schema((column("admitted", "date", bounds=["2023", "2024"]),))
    days = pa.table({"admitted": pa.array(["2023-05-01"])})
    release = make_method("histogram", {"columns": ("admitted",)}).release(
        open_table(days, schema), budget=Budget.seeded("1"), rng=seeded(7)
    )
    assert coverage_of(release).columns["admitted"].endswith("to 2023-01-01 to 2024-12-31")


def test_levels_that_pay_nothing_are_said_to_be_left_out():
    receipt = HISTOGRAM.receipt
    levels = ("0.5", "2", "3")
    paid = zip(map(Fraction, levels), map(Fraction, ("0", "1.5", "1.5")), strict=True)
    hidden = PersonalRecord("own", levels, "levels")
    release = changed(neighbors=hidden, personal=tuple(paid))
    assert release.receipt.epsilon == receipt.epsilon
    assert what_is_counted(release).endswith("of people at level 2 or above")
    assert "People below level 2 pay nothing" in " ".join(coverage_of(release).sentences())
    owned = replace(release.receipt, neighbors=replace(hidden, unit="patient"), contribution=4)
    told = " ".join(coverage_of(replace(release, receipt=owned)).sentences())
    assert "A person ('patient') has the smallest level of all their records, and at most 4" in told
