"""Released statistics: totals add up, little is said where little is known, files come back."""

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

import dpublish
from dpublish.core.coverage import coverage_of
from dpublish.data.schema import Schema, column
from dpublish.data.sources import open_table
from dpublish.errors import InvalidParameter, InvalidQuery
from dpublish.methods.statistics.kernels import Bounds, GroupCells
from dpublish.methods.statistics.released import _of_cells
from dpublish.methods.statistics.report import section
from dpublish.methods.statistics.statistics import Statistics
from dpublish.privacy.budget import Budget
from dpublish.randomness import seeded
from methods.statistics.statistics_rows import ALL, SCHEMA, make_rows, publish


@pytest.fixture(scope="module")
def release():
    return publish(make_rows(3_000), measures=ALL + ", std(cost), count(cost)", by="ward,sex")


def test_totals_are_exactly_the_sums_of_the_groups(release):
    listed, totals = release.statistics(), release.totals()
    for measure in ("count", "sum(cost)"):
        of_groups = {one.group: one.value for one in listed if one.measure == measure}
        of_totals = {one.group: one.value for one in totals if one.measure == measure}
        assert of_totals["(all)", "(all)"] == pytest.approx(sum(of_groups.values()))
        for ward in "ABC":
            part = sum(value for group, value in of_groups.items() if group[0] == ward)
            assert of_totals[ward, "(all)"] == pytest.approx(part)


def test_totals_have_intervals_that_hold_the_truth():
    """All wards and sexes: the noise of six groups together."""
    rows = make_rows(2_000)
    kept = rows.to_pandas()
    kept = kept[kept.ward != "Z"]
    ages = kept["age"].clip(0, 99)
    truth = {"count": len(kept), "mean(age)": ages.mean(), "variance(age)": ages.var(ddof=0)}
    hits = dict.fromkeys(truth, 0)
    for seed in range(40):
        made = publish(rows, seed=seed, measures="count, mean(age), variance(age)", by="ward,sex")
        for measure, true in truth.items():
            found = made.value(measure)
            hits[measure] += found.low <= true <= found.high
    assert min(hits.values()) >= 33


def test_quantiles_have_no_totals(release):
    assert not [one for one in release.totals() if "median" in one.measure]
    with pytest.raises(InvalidQuery, match="quantiles have no totals"):
        release.value("median(cost)", {"ward": "A"})


def test_a_group_that_may_be_empty_has_no_mean():
    empty = publish(make_rows(3_000), measures="mean(age), variance(age)", by="ward")
    found = empty.value("mean(age)", {"ward": "C"})
    assert (found.value, found.low, found.high, found.note) == (None, 0, 99, "unknown")
    assert empty.value("mean(age)", {"ward": "A"}).value is not None


def test_suppression_leaves_out_what_says_nothing_and_looks_at_published_numbers_alone():
    shown = publish(make_rows(3_000), measures="count, mean(age)", by="ward")
    hidden = publish(make_rows(3_000), measures="count, mean(age)", by="ward", suppress=True)
    assert np.array_equal(shown.numbers, hidden.numbers)
    assert hidden.statistics() == [one for one in shown.statistics() if not one.note]
    assert len(hidden.statistics()) < len(shown.statistics())


def test_a_release_comes_back_from_its_folder(release, tmp_path):
    release.save(tmp_path / "out")
    again = dpublish.load(tmp_path / "out")
    assert again == release
    assert again.statistics() == release.statistics()
    assert again.table().num_rows == len(release.statistics()) + len(release.totals())


def test_a_frame_lists_groups_measures_and_ends(release):
    frame = release.to_pandas(totals=False)
    columns = ["ward", "sex", "measure", "value", "low", "high", "interval", "of", "note"]
    assert [*frame.columns] == columns
    assert len(frame) == 9 * 8
    assert {*frame.interval} == {"confidence"}
    known = frame.dropna(subset="value")
    additive = known[known.measure.isin(["count", "sum(cost)", "count(cost)"])]
    others = known.drop(additive.index)
    assert (others.low <= others.value).all()
    assert (others.value <= others.high).all()


def test_counts_of_groups_answer_queries(release):
    answer = release.count("ward = A")
    assert answer.low <= answer.value <= answer.high
    without = publish(make_rows(5), measures="mean(age)", by="ward")
    with pytest.raises(InvalidQuery, match="no count"):
        without.count("ward = A")
    with pytest.raises(InvalidQuery, match="synthetic rows"):
        release.rows(3)


def test_what_no_method_would_publish_is_refused(release):
    with pytest.raises(InvalidParameter, match="integers for each share"):
        replace(release, numbers=release.numbers[1:])
    with pytest.raises(InvalidParameter, match="an epsilon for each share"):
        replace(release, epsilons=release.epsilons[1:])
    with pytest.raises(InvalidParameter, match="one of the cells"):
        replace(release, numbers=np.full_like(release.numbers, 10**9))


@pytest.mark.parametrize("contribution", [None, 2])
def test_a_record_without_a_measured_value_counts_with_units_as_without(contribution):
    visits = {"ward": ["A", "A", None], "cost": [None, 5.0, 5.0], "patient": [1, 1, 1]}
    rows, columns = pa.table(visits), tuple(SCHEMA[name] for name in ("ward", "cost"))
    unit = None if contribution is None else "patient"
    table = open_table(rows, Schema(columns, unit=unit))
    measures = ("count", "count(cost)", "mean(cost)")
    method = Statistics(measures=measures, by=("ward",), contribution=contribution)
    made = method.release(table, budget=Budget.seeded(10**4), rng=seeded(1))
    group = {"ward": "A"}
    assert [round(made.value(one, group).value) for one in measures] == [2, 1, 5]
    assert made.value("count").of == "records with ward"
    assert made.value("mean(cost)").of == "records with ward and cost"
    told = coverage_of(made)
    assert told.counts.startswith("records with ward")
    assert "cost" not in told.counts
    assert told.columns["ward"].endswith("is left out")
    assert told.columns["cost"].startswith("a record without a value counts, and has no part")
    assert told.columns["cost"].endswith("values are clipped to 0 to 1,000")
    assert made.count().counts == told.counts


@pytest.mark.parametrize("contribution", [None, 3])
def test_a_count_of_all_records_needs_no_column(contribution):
    rows = pa.table({"cost": [None, 5.0, 5.0], "patient": [1, 1, 1]})
    unit = None if contribution is None else "patient"
    table = open_table(rows, Schema((SCHEMA["cost"],), unit=unit))
    method = Statistics(measures=("count",), contribution=contribution)
    made = method.release(table, budget=Budget.seeded(10**4), rng=seeded(1))
    assert (made.value("count").value, made.value("count").of) == (3, "all records")


def test_means_and_quantiles_of_dates_are_dates():
    days = column("admitted", "date", bounds=["2024-01-01", "2024-12-31"])
    rows = pa.table({"admitted": pa.array(["2024-03-01"] * 400 + ["2024-03-11"] * 400)})
    table = open_table(rows, Schema((days,)))
    method = Statistics(measures=("mean(admitted)", "median(admitted)", "std(admitted)"))
    made = method.release(table, budget=Budget.seeded("1000"), rng=seeded(1))
    mean, median, deviation = (made.value(one) for one in made.measures)
    assert made.written("mean(admitted)", mean.value) == "2024-03-06"
    assert made.written("median(admitted)", median.low) == "2024-03-01"
    assert made.written("median(admitted)", median.high) == "2024-03-11"
    assert deviation.value == pytest.approx(5, abs=0.2)
    assert made.written("std(admitted)", 5.0) == "5"
    shown = made.table().to_pydict()
    assert shown["value_date"] == [
        "2024-03-06",
        made.written("median(admitted)", median.value),
        None,
    ]


def test_the_report_shows_dots_with_intervals_and_a_table(release):
    shown = section(release, with_charts=True)
    assert len(shown.figures) == 8
    assert all("<svg" in one.svg for one in shown.figures)
    assert shown.listings[0].headers[:3] == ["ward", "sex", "measure"]
    assert "population" in shown.paragraphs[0]


def test_a_table_of_units_is_refused_by_its_sums():
    from dpublish.methods.statistics.kernels import GroupCounts
    from dpublish.privacy.neighbors import AddRemoveUnit

    with pytest.raises(InvalidParameter, match="contribution"):
        GroupCounts().sensitivity(AddRemoveUnit("patient"))


# --- Numbers of an unusual size, and groups without values ----------------------------------------


def released_from(columns, rows, epsilon="1", **settings):
    method = Statistics(**settings)
    table = open_table(pa.table(rows), Schema(tuple(columns)))
    return method.release(table, budget=Budget.seeded(epsilon), rng=seeded(1))


def test_a_sum_with_wide_bounds_has_an_interval_as_wide_as_its_noise():
    x = column("x", "numeric", bounds=[0, 1e15])
    made = released_from((x,), {"x": [5e14] * 1_000}, measures=("sum(x)", "mean(x)"))
    found = made.value("sum(x)")
    one = column("x", "numeric", bounds=[0, 1])
    small = released_from((one,), {"x": [0.5] * 1_000}, measures=("sum(x)", "mean(x)"))
    width = small.value("sum(x)").high - small.value("sum(x)").low
    assert found.high - found.low == pytest.approx(1e15 * width, rel=1e-6)


def test_dates_do_not_add_up_and_bounds_must_have_squares():
    days = column("admitted", "date", bounds=["2024-01-01", "2024-12-31"])
    with pytest.raises(InvalidParameter, match=r"sum\(admitted\): dates do not add up"):
        released_from((days,), {"admitted": ["2024-01-01"]}, measures=("sum(admitted)",))
    for bounds in ([0, 1e300], [0, 1e-300]):
        x = column("x", "numeric", bounds=bounds)
        with pytest.raises(InvalidParameter, match="whose squares are numbers"):
            released_from((x,), {"x": [0.0]}, measures=("variance(x)",))


@pytest.mark.parametrize("helper", ["count", "mean(x)", "count(x)"])
def test_a_quantile_of_an_empty_group_is_unknown_if_something_tells_that_it_may_be(helper):
    groups = column("g", "integer", bounds=[0, 1_999])
    x = column("x", "numeric", bounds=[-3, 7])
    rows = {"g": [0] * 900, "x": [2.0] * 900}
    made = released_from((groups, x), rows, measures=(helper, "median(x)"), by=("g",))
    found = made.estimates("median(x)")
    assert found.known[0]
    assert found.known[1:].sum() <= 6  # of 1,999: one in 2,000 is expected
    assert np.all(found.lows[~found.known] == -3)
    assert np.all(found.highs[~found.known] == 7)
    alone = released_from((groups, x), rows, measures=("median(x)",), by=("g",))
    assert 0 < alone.estimates("median(x)").known[1:].mean() < 0.06


def test_a_quantile_of_values_that_are_all_missing_is_unknown_if_the_column_has_moments():
    x = column("x", "numeric", bounds=[0, 1], missing="drop")
    rows = {"x": pa.array([None] * 1_000, pa.float64())}
    made = released_from((x,), rows, measures=("count", "mean(x)", "median(x)"))
    assert made.value("count").value > 900
    assert made.value("median(x)").value is None


def test_a_looked_up_number_is_the_listed_one(release):
    for one in (*release.statistics(), *release.totals()):
        pairs = zip(release.axes, one.group, strict=True)
        group = {axis.column: label for axis, label in pairs if label != "(all)"}
        assert release.value(one.measure, group) == one


@pytest.mark.parametrize("bounds", [[-9, -2], [-(10**15), 10**15], [0, 1]])
@pytest.mark.parametrize("kind", ["integer", "numeric"])
@pytest.mark.parametrize("n", [0, 2_000])
def test_bounds_of_any_sign_and_size_give_numbers_within_them(bounds, kind, n):
    low, high = bounds
    x = column("x", kind, bounds=bounds, bins=2)
    middle = (low + high) // 2
    measures = ["count", "count(x)", "sum(x)", "mean(x)", "variance(x)", "std(x)", "median(x)"]
    made = released_from((x,), {"x": pa.array([middle] * n, pa.int64())}, measures=measures)
    assert (made.value("mean(x)").value is None) == (n == 0)
    for measure in ("mean(x)", "median(x)"):
        found = made.value(measure)
        assert low <= found.low <= found.high <= high
        assert n == 0 or found.low <= middle <= found.high
    total = made.value("sum(x)")
    assert total.low <= middle * n <= total.high


def test_a_huge_integer_lies_within_the_ends_of_its_cell():
    """Floats of this size round, so a value at an edge may be found on either side of it."""
    bounds = Bounds(-1e15, 1e15, whole=True)
    part = GroupCells("x", bounds, 4095)
    near = np.round(part.edges)[:, None] + np.arange(-2, 3)
    values = np.clip(near, bounds.low, bounds.high).ravel()
    cells = part.locate(values)
    found = _of_cells(part, np.tile(cells, (3, 1)), None)
    assert np.all((found.lows <= values) & (values <= found.highs))
