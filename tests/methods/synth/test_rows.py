"""Rows and counts of a release: whatever is asked, they are those of the model."""

from datetime import date

import numpy as np
import pyarrow as pa
import pytest

from dpublish.data.column_function import Formula
from dpublish.data.schema import Schema, column
from dpublish.data.statements import Combination, KnownTotal
from dpublish.errors import InvalidParameter, InvalidQuery
from dpublish.methods.synth import rows as drawing
from dpublish.randomness import plain_generator
from methods.synth import synth_world
from methods.synth.synth_world import SCHEMA, VIOLATED, make_rows, publish, stated_schema


@pytest.fixture(scope="module")
def release():
    return publish(make_rows(3_000))


@pytest.fixture(scope="module")
def stated():
    rows = make_rows(3_000)
    return publish(
        rows.append_column("double", pa.array([0] * rows.num_rows)), "3", schema=stated_schema()
    )


@pytest.mark.parametrize("number", [0, 1, 2, 777])
def test_any_number_of_rows_in_the_order_of_the_schema(release, number):
    found = release.rows(number, seed=3)
    assert found.num_rows == number
    assert tuple(found.column_names) == SCHEMA.names


def test_as_many_rows_as_were_counted_with_noise(release):
    assert release.rows(seed=1).num_rows == round(release.total)
    assert release.total != 3_000


def test_rows_follow_the_seed(release):
    assert release.rows(500, seed=4) == release.rows(500, seed=4)
    assert release.rows(500, seed=4) != release.rows(500, seed=5)
    assert release.rows(500) != release.rows(500)


def _joined(batches):
    table = pa.Table.from_batches(list(batches))
    return table.cast(
        pa.schema(
            [
                (f.name, f.type.value_type if pa.types.is_dictionary(f.type) else f.type)
                for f in table.schema
            ]
        )
    )


@pytest.mark.parametrize("size", [1, 7, 100, 1_000, 5_000])
def test_batches_of_any_size_hold_the_same_rows(monkeypatch, release, size):
    monkeypatch.setattr(drawing, "BLOCK", 300)
    whole = release.rows(1_000, seed=6)
    batches = list(release.row_batches(1_000, seed=6, batch_size=size))
    assert max(batch.num_rows for batch in batches) <= size
    assert _joined(batches) == whole


def _model_frequencies(release, names):
    """Compute the model's joint probabilities of values, none of which is joined to others."""
    columns = tuple(release.names.index(name) for name in names)
    levels = tuple(release.levels[i] for i in columns)
    found = release.model.expected(columns, levels) / release.total
    values = [release.classes[i].levels[level] for i, level in zip(columns, levels, strict=True)]
    return found[np.ix_(*values)]


def test_rows_have_the_probabilities_of_the_model(release):
    rows = release.rows(200_000, seed=2)
    sex, job = (rows[name].to_pandas() for name in ("sex", "job"))
    wanted = _model_frequencies(release, ("sex", "job"))
    assert wanted.shape == (2, 5)  # no class is joined here
    for i, one in enumerate(("F", "M")):
        for j, other in enumerate(synth_world.JOB.categories):
            part = float(((sex == one) & (job == other)).mean())
            assert part == pytest.approx(wanted[i, j], abs=0.002)


# --- Conditions ---------------------------------------------------------------------------------

CONDITIONS = [
    ("sex = F", lambda x: x.sex == "F"),
    ("age < 5", lambda x: x.age < 5),
    ("age >= 4 and age < 9 and job != cook", lambda x: x.age.between(4, 8) & (x.job != "cook")),
    ("pay > 33.5 and pay <= 47", lambda x: (x.pay > 33.5) & (x.pay <= 47)),
    ("town in {Ost, Nord} and sex = M", lambda x: x.town.isin(["Ost", "Nord"]) & (x.sex == "M")),
    ("age in {1, 7, 12}", lambda x: x.age.isin([1, 7, 12])),
]


@pytest.mark.parametrize(("where", "holds"), CONDITIONS, ids=[x for x, _ in CONDITIONS])
def test_all_rows_satisfy_conditions_and_are_those_that_filtering_leaves(release, where, holds):
    found = release.rows(20_000, seed=8, where=where).to_pandas()
    assert len(found) == 20_000
    assert holds(found).all()
    everyone = release.rows(250_000, seed=9).to_pandas()
    left = everyone[holds(everyone)]
    assert len(left) > 3_000
    for name in ("sex", "town", "job"):
        one, other = (x[name].value_counts(normalize=True) for x in (found, left))
        assert one.sub(other, fill_value=0).abs().max() < 0.03
    assert abs(found["age"].mean() - left["age"].mean()) < 0.25
    assert abs(found["pay"].mean() - left["pay"].mean()) < 1.5
    expected = round(release.total * len(left) / len(everyone))
    assert abs(release.rows(seed=1, where=where).num_rows - expected) <= 0.02 * release.total


def test_conditions_that_nothing_satisfies_are_refused(release, stated):
    with pytest.raises(InvalidQuery, match="no row"):
        release.rows(5, where="sex = F and sex = M")
    with pytest.raises(InvalidQuery, match="no row"):
        stated.rows(5, where=VIOLATED[0])
    assert stated.rows(0, where=VIOLATED[0]).num_rows == 0
    with pytest.raises(InvalidQuery, match="filled in by a rule"):
        stated.rows(5, where="double = 4")
    with pytest.raises(InvalidQuery):
        release.rows(5, where="height > 3")
    with pytest.raises(InvalidParameter):
        release.rows(-1)


# --- What is stated holds -----------------------------------------------------------------------


def test_impossible_combinations_never_occur_and_functions_hold(stated):
    rows = stated.rows(200_000, seed=5).to_pandas()
    assert not ((rows.age < 3) & rows.job.isin(["clerk", "cook", "smith"])).any()
    assert not ((rows.sex == "F") & (rows.town == "Sued") & (rows.job == "smith")).any()
    known = rows[rows.age.notna()]
    assert (known.double == 2 * known.age).all()
    assert rows.double[rows.age.isna()].isna().all()
    assert rows.age.isna().any()


def test_known_totals_are_those_of_the_rows(stated):
    assert stated.total == 3_400
    rows = stated.rows(seed=5).to_pandas()
    assert len(rows) == 3_400
    # Each is walked evenly given the columns before: off by less than one row for each cell.
    assert abs((rows.sex == "F").sum() - 1_700) <= 40
    assert abs(((rows.town == "Ost") & (rows.job == "pupil")).sum() - 300) <= 40
    many = stated.rows(200_000, seed=6).to_pandas()
    assert (many.sex == "F").mean() == pytest.approx(1_700 / 3_400, abs=0.002)
    assert stated.count("").value == 3_400
    assert stated.count(VIOLATED[0]).high == 0


def test_impossible_ones_are_there_if_no_one_says_so():
    rows = synth_world.strangers(3_000)
    found = publish(rows, "3").rows(20_000, seed=1).to_pandas()
    assert ((found.age < 3) & found.job.isin(["clerk", "cook", "smith"])).any()


# --- Types --------------------------------------------------------------------------------------

TYPED = Schema(
    (
        column(
            "day", "date", bounds=["2023-01-01", "2024-12-31"], bins="month", missing="category"
        ),
        column("grade", "category", values=[1, 2, 3, 6]),
        column("rank", "ordinal", values=["low", "mid", "high"]),
        column("count", "integer", bounds=[0, 40], bins=5),
        column("size", "numeric", bounds=[0, 1], bins=4),
        column("twice", "integer", bounds=[0, 80]),
    ),
    functions=(Formula("twice", "2 * count"),),
)


def _typed(number):
    rng = plain_generator(3)
    days = rng.integers(19_358, 20_080, number)
    counts = rng.integers(0, 41, number)
    return pa.table(
        {
            "twice": 2 * counts,
            "day": pa.array(days, pa.int32(), mask=rng.random(number) < 0.1).cast(pa.date32()),
            "grade": np.array([1, 2, 3, 6])[rng.integers(0, 4, number)],
            "rank": np.array(["low", "mid", "high"])[np.minimum(counts // 14, 2)],
            "count": counts,
            "size": rng.random(number),
        }
    )


@pytest.mark.parametrize("where", ["", "day in 2024-03..2024-05", "grade in {2, 6}"])
def test_columns_have_the_types_of_the_owner_s_table(where):
    made = publish(_typed(2_000), schema=TYPED)
    rows = made.rows(3_000, seed=1, where=where)
    assert rows.column_names == list(TYPED.names)
    assert pa.types.is_date(rows["day"].type)
    assert pa.types.is_integer(rows["grade"].type)
    assert pa.types.is_string(rows["rank"].type)
    assert pa.types.is_integer(rows["count"].type)
    assert pa.types.is_floating(rows["size"].type)
    assert set(rows["grade"].to_pylist()) <= {1, 2, 3, 6}
    assert rows["twice"].to_pylist() == [2 * x for x in rows["count"].to_pylist()]
    days = [day for day in rows["day"].to_pylist() if day is not None]
    assert all(date(2023, 1, 1) <= day <= date(2024, 12, 31) for day in days)
    if "day" in where:
        assert len(days) == 3_000
        assert all(date(2024, 3, 1) <= day <= date(2024, 5, 31) for day in days)
    if "grade" in where:
        assert set(rows["grade"].to_pylist()) == {2, 6}


def test_columns_that_are_named_are_published_alone():
    made = publish(make_rows(500), columns=("pay", "sex"))
    assert set(made.rows(10).column_names) == {"pay", "sex"}
    assert made.rows(10).column_names == [n for n in SCHEMA.names if n in ("pay", "sex")]


def test_statements_of_columns_that_are_not_published_are_left_out():
    schema = Schema(
        SCHEMA.columns,
        impossible=(Combination("sex = F and job = cook"),),
        totals=(KnownTotal("town = Ost", count=5),),
    )
    made = publish(make_rows(1_000), schema=schema, columns=("sex", "age"))
    assert not made.receipt.assumptions or not any("cook" in x for x in made.receipt.assumptions)
    assert made.count("sex = F").value > 100
