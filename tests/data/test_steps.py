"""Steps before a method: lookups, derived columns and filters, alike on every engine."""

import os
import pickle
from datetime import date, datetime, timedelta
from fractions import Fraction

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from adbc_driver_postgresql import dbapi
from pyarrow import csv

from dpublish.aggregates.counts import Counts
from dpublish.data.date_column import DatePartColumn
from dpublish.data.engines import arrow_reader, shared, split_rows
from dpublish.data.engines.prepared import PreparedSource
from dpublish.data.engines.source import MemorySource
from dpublish.data.lookup import Lookup
from dpublish.data.schema import Schema, column
from dpublish.data.sources import open_table
from dpublish.data.steps import read_steps
from dpublish.errors import DPublishError, InvalidParameter, UnreadableData
from dpublish.methods.dpcopula.dpcopula import DPCopula
from dpublish.methods.histogram.histogram import Histogram
from dpublish.methods.personalized.minimum import Minimum
from dpublish.privacy.budget import Budget
from dpublish.randomness import plain_generator, seeded

COUNTRIES = ["FR", "DE", " FR ", None, "IT", ""]
AGES = [17, 18, 40, None, 99, 18]
ROWS = [
    {
        "who": f"p{n % 90}",
        "country": COUNTRIES[n % 6],
        "age": AGES[n % 5],
        "weight": [70.0, 0.0, None, 95.5, 1e308, 51.25, 110.0, 83.0, 62.0, 77.7, 90.0][n % 11],
        "height": [170.0, 0.0, 181.5, None][n % 4],
        "ward": [1, 2, 3, 4, None, 1, 3][n % 7],
        "unused": n,
    }
    for n in range(700)
]
KINDS = pa.schema(
    [
        ("who", pa.string()),
        ("country", pa.string()),
        ("age", pa.int64()),
        ("weight", pa.float64()),
        ("height", pa.float64()),
        ("ward", pa.int64()),
        ("unused", pa.int64()),
    ]
)
TABLE = pa.Table.from_pylist(ROWS, schema=KINDS)
WARDS = pa.table(
    {"code": ["1", "2", "3.0"], "floor": ["ground", "ground", "first"], "beds": [8, 9, 5]}
)
SCHEMA = Schema(
    (
        column("country", "category", values=["FR", "DE"], other="Other"),
        column("age", "integer", bounds=[0, 100], bins=10, missing="category"),
        column("bmi", "numeric", bounds=[10, 50], bins=8, missing="category"),
        column("floor", "category", values=["ground", "first"], missing="category"),
        column("roomy", "category", values=["true", "false"], missing="category"),
    )
)
STEPS = {
    "where": "country = FR and age >= 18",
    "derive": ["bmi = weight / (height / 100) ** 2", "roomy = beds * 2 >= age"],
    "lookups": [Lookup(WARDS, on="ward", key="code")],
}
ALL = tuple((name, None) for name in SCHEMA.names)
KERNEL = Counts(SCHEMA, (ALL,))


def by_hand(rows, schema=SCHEMA):
    """The same table, made by a plain loop before it is opened."""
    beds = {"1": ("ground", 8), "2": ("ground", 9), "3": ("first", 5)}
    kept = []
    for row in rows:
        if (row["country"] or "").strip() != "FR" or row["age"] is None or row["age"] < 18:
            continue
        weight, height = row["weight"], row["height"]
        bmi = None
        if weight is not None and height:
            found = weight / ((height / 100) * (height / 100))
            bmi = found if np.isfinite(found) else None
        floor, number = beds.get(str(row["ward"]), (None, None))
        roomy = None if number is None else str(number * 2 >= row["age"]).lower()
        kept.append({**row, "bmi": bmi, "floor": floor, "roomy": roomy})
    kinds = [("bmi", pa.float64()), ("floor", pa.string()), ("roomy", pa.string())]
    return open_table(
        pa.Table.from_pylist(
            kept, schema=pa.schema([*KINDS, *map(pa.field, *zip(*kinds, strict=True))])
        ),
        schema,
    )


def open_csv(rows, schema, folder, fixture, **steps):
    path = folder / "rows.csv"
    csv.write_csv(rows, path)
    return open_table(path, schema, **steps)


def open_gzip_folder(rows, schema, folder, fixture, **steps):
    """Two CSV files of a folder."""
    inside = folder / "rows"
    inside.mkdir()
    csv.write_csv(rows.slice(0, 300), inside / "a.csv")
    csv.write_csv(rows.slice(300), inside / "b.csv")
    return open_table(inside, schema, **steps)


def open_parquet(rows, schema, folder, fixture, **steps):
    path = folder / "rows.parquet"
    pq.write_table(rows, path, row_group_size=100)
    return open_table(path, schema, cache=False, **steps)


def open_arrow(rows, schema, folder, fixture, **steps):
    path = folder / "rows.arrow"
    with pa.ipc.new_file(path, rows.schema) as writer:
        writer.write_table(rows, max_chunksize=64)
    return open_table(path, schema, **steps)


def open_stream(rows, schema, folder, fixture, **steps):
    return open_table(rows.to_reader(max_chunksize=77), schema, **steps)


def open_pandas(rows, schema, folder, fixture, **steps):
    return open_table(rows.to_pandas(), schema, **steps)


def open_polars(rows, schema, folder, fixture, **steps):
    polars = pytest.importorskip("polars")
    return open_table(polars.from_arrow(rows).lazy(), schema, **steps)


def open_duckdb(rows, schema, folder, fixture, **steps):
    path = folder / "rows.parquet"
    pq.write_table(rows, path)
    return open_table(None, schema, sql=f"SELECT * FROM read_parquet('{path}')", **steps)


def open_sqlite(rows, schema, folder, fixture, **steps):
    sqlite = pytest.importorskip("adbc_driver_sqlite.dbapi")
    path = folder / "rows.sqlite"
    with sqlite.connect(str(path)) as link, link.cursor() as cursor:
        cursor.adbc_ingest("rows", rows, mode="create")
        link.commit()
    return open_table(f"adbc:sqlite:{path}", schema, table="rows", **steps)


def open_with_workers(rows, schema, folder, fixture, **steps):
    """Several pieces of a file, read by three processes however few rows there are."""
    patch = fixture("monkeypatch")
    patch.setattr(shared, "LARGE", 1)
    patch.setattr(arrow_reader, "PIECE_ROWS", 100)
    patch.setattr(split_rows, "PIECE_ROWS", 100)
    path = folder / "many.parquet"
    pq.write_table(rows, path, row_group_size=100)
    return open_table(path, schema, threads=3, **steps)


def open_dealt(rows, schema, folder, fixture, **steps):
    """Rows that cannot be cut, dealt out to three processes."""
    fixture("monkeypatch").setattr(shared, "LARGE", 1)
    return open_table(rows, schema, threads=3, **steps)


def open_from_postgres(rows, schema, folder, fixture, **steps):
    address = fixture("postgres_database")
    name = f"rows_{os.urandom(4).hex()}"
    with dbapi.connect(address) as link, link.cursor() as cursor:
        cursor.adbc_ingest(name, rows, mode="create")
        link.commit()
    return open_table(address, schema, table=name, **steps)


def open_on_spark(rows, schema, folder, fixture, **steps):
    session = fixture("spark_cluster").session
    inside = folder / "spark"
    inside.mkdir()
    for number in range(5):
        pq.write_table(rows.slice(number * 150, 150), inside / f"part-{number}.parquet")
    session.conf.set("spark.sql.files.openCostInBytes", str(1 << 30))
    return open_table(session.read.parquet(str(inside)), schema, **steps)


ENGINES = {
    "memory": lambda rows, schema, folder, fixture, **steps: open_table(rows, schema, **steps),
    "csv": open_csv,
    "folder": open_gzip_folder,
    "parquet": open_parquet,
    "arrow": open_arrow,
    "stream": open_stream,
    "pandas": open_pandas,
    "polars": open_polars,
    "duckdb": open_duckdb,
    "sqlite": open_sqlite,
    "three processes": open_with_workers,
    "dealt out": open_dealt,
    "postgresql": open_from_postgres,
    "spark": open_on_spark,
}
GROUPS = {"spark": pytest.mark.xdist_group("spark")}


@pytest.fixture(
    params=[pytest.param(name, marks=GROUPS.get(name, ()), id=name) for name in ENGINES]
)
def prepared(request, tmp_path):
    """A function that opens rows on one of the engines, with steps."""
    make = ENGINES[request.param]

    def open_rows(rows=TABLE, schema=SCHEMA, **steps):
        return make(rows, schema, tmp_path, request.getfixturevalue, **(steps or STEPS))

    return open_rows


def test_every_engine_has_the_answers_of_a_plain_loop(prepared):
    table = prepared()
    assert np.array_equal(table.sum(KERNEL), by_hand(ROWS).sum(KERNEL))
    assert by_hand(ROWS).sum(KERNEL).sum() > 50
    bmi = Counts(SCHEMA, ((("bmi", None),),))
    assert np.array_equal(table.sum(bmi), by_hand(ROWS).sum(bmi))  # fewer columns, another scan
    table.close()


def test_steps_come_before_the_bound_on_every_engine(prepared):
    """A unit keeps rows among those that the filter leaves."""
    schema = Schema(SCHEMA.columns, unit="who")
    table = prepared(schema=schema)
    found = table.bound(1, b"key").sum(KERNEL)
    assert np.array_equal(found, by_hand(ROWS, schema).bound(1, b"key").sum(KERNEL))
    kept = {row["who"] for row in ROWS if (row["country"] or "").strip() == "FR"
            and (row["age"] or 0) >= 18}  # fmt: skip
    assert found.sum() == len(kept)
    table.close()


ADMITTED = column(
    "admitted", "date", bounds=["2023-01-01", "2024-12-31"], bins="quarter", missing="category"
)
SEEN = column(
    "seen",
    "datetime",
    bounds=["2024-03-30", "2024-04-01"],
    bins="hour",
    time_zone="Europe/Paris",
    missing="drop",
)
VISITS = Schema(
    (
        ADMITTED,
        column("weekday", source=ADMITTED, part="weekday"),
        SEEN,
        column("hour", source=SEEN, part="hour"),
        column("cost", "numeric", bounds=[0, 4], bins=2, missing="category"),
    ),
    unit="who",
)


def make_visits():
    """Visits with dates from year 1 to 9999, times around a change of the clock, and blanks."""
    rng = plain_generator(18)
    days = [None, date(1, 1, 1), date(9999, 12, 31), date(2024, 2, 29)]
    days += [date(2023, 1, 1) + timedelta(days=50 * number) for number in range(16)]
    times = [None, datetime(1700, 1, 1), datetime(2024, 3, 31, 2, 30)]
    times += [datetime(2024, 3, 29) + timedelta(minutes=211 * number) for number in range(21)]
    choices = {
        "who": [None, "1", "3.0", "3", " 4 ", "é", "long" * 20, "5", "6"],
        "admitted": days,
        "seen": times,
        "cost": [None, 0.0, 1.5, 99.0],
    }
    rows = [
        {name: few[rng.integers(len(few))] for name, few in choices.items()} for _ in range(700)
    ]
    kinds = (pa.string(), pa.date32(), pa.timestamp("us"), pa.float64())
    return pa.Table.from_pylist(rows, schema=pa.schema([*zip(choices, kinds, strict=True)]))


class DatedCosts:
    """Kernel: add up days, and costs if there are any, by weekday."""

    codes = ("weekday",)
    values = ("cost", "seen")
    optional = ("cost",)

    def zero(self):
        return np.zeros((8, 3), dtype=np.int64)

    def add(self, batch, out):
        costs = batch.values("cost")
        parts = (2 * np.nan_to_num(costs), np.isnan(costs), batch.values("seen"))
        for index, part in enumerate(parts):
            np.add.at(out[:, index], batch.codes("weekday"), part.astype(np.int64))

    def merge(self, out, other):
        out += other


def test_rows_with_dates_are_bounded_alike_on_every_engine(prepared):
    visits = make_visits()
    mixed = visits.take(plain_generator(5).permutation(len(visits)))
    alone = open_table(mixed, VISITS, threads=1)
    table = prepared(rows=visits, schema=VISITS, where="cost >= 0 or cost is missing")
    kernels = [
        Counts(VISITS, (tuple((name, None) for name in ("admitted", "weekday", "cost")),)),
        Counts(VISITS, ((("seen", None),), (("hour", None),))),
        DatedCosts(),
    ]
    for most in (1, 3):
        bounded, expected = table.bound(most, b"key"), alone.bound(most, b"key")
        for kernel in kernels:
            assert np.array_equal(bounded.sum(kernel), expected.sum(kernel))
        assert bounded.sum(kernels[1]).sum() > 0
    assert np.array_equal(table.rows_per_unit(90), alone.rows_per_unit(90))
    table.close()


@pytest.mark.parametrize("name", ["memory", "parquet", "spark"])
def test_steps_are_named_by_all_that_is_made_from_a_table(name, tmp_path, request):
    table = ENGINES[name](TABLE, SCHEMA, tmp_path, request.getfixturevalue, **STEPS)
    assert table.steps == read_steps(**STEPS).texts
    assert table.steps[1:] == (
        "derive bmi = weight / (height / 100) ** 2",
        "derive roomy = beds * 2 >= age",
        "where country = FR and age >= 18",
    )
    made = [
        table.sample(Fraction(1), seeded(1)),
        *table.split(2, seeded(1)),
        table.only("floor", [0]),
        table.sample_by("floor", [Fraction(1)] * 3, seeded(1)),
    ]
    assert {one.steps for one in made} == {table.steps}
    assert np.array_equal(made[0].sum(KERNEL), table.sum(KERNEL))
    kernel = Counts(made[4].schema, ((("bmi", None),),))
    assert np.array_equal(made[4].sum(kernel), table.sum(kernel))
    unit = Schema(SCHEMA.columns, unit="who")
    with_units = open_table(TABLE, unit, **STEPS)
    assert with_units.bound(2, b"key").steps == table.steps


def test_without_steps_there_are_none_to_name():
    schema = Schema(SCHEMA.columns[:2])
    assert open_table(TABLE, schema).steps == ()


def test_only_the_columns_that_are_needed_are_read():
    class Watched(MemorySource):
        def __init__(self, *rest):
            super().__init__(*rest)
            self.seen = set()

        def scan(self, columns):
            self.seen.update(columns)
            return super().scan(columns)

    source = Watched(TABLE.to_batches(), TABLE.schema, "rows")
    plan = read_steps(**STEPS).plan(TABLE.schema, SCHEMA, "rows")
    list(PreparedSource(source, plan).scan(["floor"]))
    assert source.seen == {"ward", "country", "age"}
    source.seen.clear()
    list(PreparedSource(source, plan).scan(["roomy"]))
    assert source.seen == {"ward", "country", "age"}


def test_a_plan_goes_to_other_processes_and_a_source_of_rows_does_not():
    plan = read_steps(**STEPS).plan(TABLE.schema, SCHEMA, "rows")
    again = pickle.loads(pickle.dumps(plan))
    batch = TABLE.to_batches()[0]
    columns = list(SCHEMA.names)
    for one, other in zip(
        plan.apply(iter([batch]), columns), again.apply(iter([batch]), columns), strict=True
    ):
        assert one.equals(other)
    source = PreparedSource(MemorySource([batch], TABLE.schema, "rows"), plan)
    with pytest.raises(TypeError):
        pickle.dumps(source)


def test_a_record_is_prepared_by_itself():
    """Whatever the batches, and whoever else is in them."""
    plan = read_steps(**STEPS).plan(TABLE.schema, SCHEMA, "rows")
    columns = list(SCHEMA.names)

    def prepare(table):
        return pa.Table.from_batches(
            list(plan.apply(iter(table.combine_chunks().to_batches()), columns))
        )

    whole = prepare(TABLE)
    alone = [prepare(TABLE.slice(n, 1)) for n in range(TABLE.num_rows)]
    assert pa.concat_tables(alone).combine_chunks().equals(whole.combine_chunks())


def neighbors(unit=None):
    """Every table of a few records and each that lacks one of its records, or of its units."""
    rows = ROWS[:40]
    units = sorted({row["who"] for row in rows})
    for gone in units if unit else range(len(rows)):
        less = [r for n, r in enumerate(rows) if (r["who"] != gone if unit else n != gone)]
        yield rows, less


@pytest.mark.parametrize("unit", [None, "who"])
def test_neighbors_stay_neighbors(unit):
    """After the steps, a table without a record (or a unit) lacks its rows and no other."""
    plan = read_steps(**STEPS).plan(TABLE.schema, SCHEMA, "rows")
    columns = ["who", *SCHEMA.names]

    def prepare(rows):
        table = pa.Table.from_pylist(rows, schema=KINDS).combine_chunks()
        return [
            row
            for batch in plan.apply(iter(table.to_batches()), columns)
            for row in batch.to_pylist()
        ]

    for rows, less in neighbors(unit):
        more, fewer = prepare(rows), prepare(less)
        lost = list(more)
        for row in fewer:
            lost.remove(row)  # fails if a row is there that was not before
        if unit is None:
            assert len(lost) <= 1
        else:
            assert len({row["who"] for row in lost}) <= 1


# --- Broken twins -----------------------------------------------------------------------------


def test_a_filter_after_the_bound_would_be_noticed():
    """It would keep a unit's chosen row or lose it, where the filter comes first and all count."""
    schema = Schema((column("age", "integer", bounds=[0, 100]),), unit="who")
    rows = pa.table({"who": ["a"] * 8, "age": [10, 20, 30, 40, 50, 60, 70, 80]})
    kernel = Counts(Schema(schema.columns), ((("age", None),),))
    first = {
        key: open_table(rows, schema, where="age >= 45").bound(1, bytes([key])).sum(kernel).sum()
        for key in range(16)
    }
    assert set(first.values()) == {1}
    twin = {
        key: open_table(rows, schema).bound(1, bytes([key])).sum(kernel)[45:].sum()
        for key in range(16)
    }
    assert set(twin.values()) == {0, 1}


def test_a_lookup_made_from_the_data_would_carry_one_record_into_others():
    """With the mean age of a ward as a lookup, one record less moves its neighbors' values."""

    def prepare(rows):
        table = pa.Table.from_pylist(rows, schema=KINDS)
        means = table.group_by("ward").aggregate([("age", "mean")]).drop_null()
        lookup = Lookup(means.rename_columns(["ward", "usual"]), on="ward")
        plan = read_steps(lookups=[lookup]).plan(KINDS, SCHEMA, "rows")
        return [
            row
            for batch in plan.apply(iter(table.combine_chunks().to_batches()), ["unused", "usual"])
            for row in batch.to_pylist()
        ]

    moved = 0
    for rows, less in neighbors():
        before = {row["unused"]: row["usual"] for row in prepare(rows)}
        moved += any(before[row["unused"]] != row["usual"] for row in prepare(less))
    assert moved > 0


# --- What is refused --------------------------------------------------------------------------

REFUSED = {
    "unknown column": ({"where": "agee >= 18"}, "there is no column 'agee'.* did you mean 'age'"),
    "syntax": ({"where": "age >="}, "found the end"),
    "no condition": ({"where": "age + 1"}, "is no condition; write one"),
    "wrong type": ({"where": "country > FR"}, "has no order"),
    "unlisted": ({"where": "country = XX"}, "write trim\\(country\\)"),
    "too deep": ({"where": "(" * 500 + "age"}, "nested too deep"),
    "no derivation": ({"derive": ["weight / 2"]}, "derives no column; write name = expression"),
    "comparison": ({"derive": ["bmi == weight"]}, "derives no column"),
    "clash": ({"derive": ["weight = height"]}, "has a column of that name already"),
    "twice": ({"derive": ["bmi = weight", "bmi = height"]}, "has a column of that name already"),
    "undeclared": ({"derive": ["w2 = weight * 2"]}, 'declare it there, .* kind = "numeric"'),
    "used too early": ({"derive": ["bmi = w2 + 1", "w2 = weight"]}, "'w2'.*: derive it first"),
    "not numbers": ({"derive": ["bmi = country * 2"]}, "no value of 'country' .* is one"),
    "lookup clash": (
        {"lookups": Lookup(pa.table({"ward": [1], "age": [3]}), on="ward")},
        "adds the column 'age', but .* has a column of that name already",
    ),
    "lookup key twice": (
        {"lookups": Lookup(pa.table({"ward": ["1", "2", "1.0"], "f": [1, 2, 3]}), on="ward")},
        "row 3 of the lookup .* repeats the 'ward' of an earlier row",
    ),
    "lookup without key": (
        {"lookups": Lookup(pa.table({"ward": ["1", " "], "f": [1, 2]}), on="ward")},
        "row 2 of the lookup .* has no 'ward'",
    ),
    "lookup column": (
        {"lookups": Lookup(pa.table({"code": [1], "f": [3]}), on="ward")},
        "the key column 'ward' of .* is not there, only 'code', 'f'; write --lookup-on ward=KEY",
    ),
    "joined column": (
        {"lookups": Lookup(pa.table({"room": [1], "f": [3]}), on="room")},
        "on which the lookup .* is to be joined, is not there",
    ),
    "lookup file": ({"lookups": Lookup("nowhere.csv", on="ward")}, "there is no lookup file"),
    "constant": ({"derive": ["bmi = 3 +"]}, "found the end"),
}
SMALL = Schema(SCHEMA.columns[:2])


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_wrong_is_said_when_the_table_is_opened(name):
    steps, message = REFUSED[name]
    declared = [
        c for c in SCHEMA.columns if c.name == "bmi" and name not in ("undeclared", "clash")
    ]
    schema = Schema((*SMALL.columns, *(declared if "derive" in steps else ())))
    with pytest.raises(DPublishError, match=message) as first:
        open_table(TABLE, schema, **steps)
    with pytest.raises(DPublishError) as second:  # whatever the rows are
        open_table(TABLE.slice(0, 0), schema, **steps)
    assert str(first.value) == str(second.value)


def test_a_headerless_file_is_refused_before_its_first_row_can_answer(tmp_path):
    """`FR` stands in the first row; no message may depend on that."""
    path = tmp_path / "rows.csv"
    said = set()
    for line in ("FR,40", "DE,40"):
        path.write_text(f"{line}\nDE,50\n", encoding="utf-8")
        with pytest.raises(UnreadableData) as caught:
            open_table(path, SMALL, where="country = FR")
        said.add(str(caught.value))
    assert len(said) == 1


def test_no_value_makes_a_step_fail(tmp_path):
    """Division by zero, overflow, logarithms of nothing and text: missing, in that record alone."""
    schema = Schema((column("z", "numeric", bounds=[0, 10], bins=5, missing="category"),))
    path = tmp_path / "rows.csv"
    path.write_text("x,y\n1,0\n0,0\n-1,2\n1e308,1e-308\ntext,3\n,\n8,4\n", encoding="utf-8")
    kernel = Counts(schema, ((("z", None),),))
    for derive, counts in {
        "z = x / y": [1, 1, 0, 0, 0, 5],  # -1 / 2 is clipped to the lower bound
        "z = log(x)": [1, 1, 0, 0, 1, 4],
        "z = sqrt(x)": [2, 1, 0, 0, 1, 3],
        "z = exp(x * 100)": [2, 0, 0, 0, 1, 4],
    }.items():
        assert open_table(path, schema, derive=derive).sum(kernel).tolist() == counts, derive


# --- Lookups ----------------------------------------------------------------------------------


@pytest.mark.parametrize("ending", ["csv", "parquet", "arrow"])
def test_a_lookup_is_read_from_a_file_and_named_by_its_digest(tmp_path, ending):
    path = tmp_path / f"wards.{ending}"
    if ending == "csv":
        csv.write_csv(WARDS, path)
    elif ending == "parquet":
        pq.write_table(WARDS, path)
    else:
        with pa.ipc.new_file(path, WARDS.schema) as writer:
            writer.write_table(WARDS)
    table = open_table(TABLE, SCHEMA, **{**STEPS, "lookups": [Lookup(path, on="ward", key="code")]})
    assert np.array_equal(table.sum(KERNEL), by_hand(ROWS).sum(KERNEL))
    assert table.steps[0].startswith(f"lookup wards.{ending} on ward=code (sha256 ")
    assert str(tmp_path) not in "".join(table.steps)


@pytest.mark.parametrize("kind", [pa.string(), pa.string_view(), pa.large_string()])
def test_a_lookup_may_hold_any_text(kind):
    wards = pa.table({"ward": pa.array(["A", "B"], kind), "floor": pa.array(["low", "top"], kind)})
    schema = Schema((column("floor", "category", values=["low", "top"]),))
    table = open_table(
        pa.table({"ward": ["A", "A", "B", "C"]}), schema, lookups=Lookup(wards, "ward")
    )
    assert table.sum(Counts(schema, ((("floor", None),),))).tolist() == [2, 1]


def test_a_lookup_may_follow_another():
    """Ward to floor, floor to wing."""
    schema = Schema((column("wing", "category", values=["A", "B"], missing="category"),))
    wings = pa.table({"floor": ["ground", "first"], "wing": ["A", "B"]})
    lookups = [Lookup(WARDS, on="ward", key="code"), Lookup(wings, on="floor")]
    table = open_table(TABLE, schema, lookups=lookups)
    assert table.sum(Counts(schema, ((("wing", None),),))).tolist() == [300, 200, 200]


def test_a_large_lookup_finds_every_key_and_no_other():
    size = 300_000
    lookup = Lookup(
        pa.table({"k": pa.array(range(0, 2 * size, 2)), "v": range(size)}), on="k"
    ).load()
    asked = pa.array([str(n) for n in range(1000)] + ["x", None, str(2 * size)], pa.large_string())
    rows = lookup.find(asked)
    assert rows[:1000].tolist() == [n // 2 if n % 2 == 0 else -1 for n in range(1000)]
    assert rows[1000:].tolist() == [-1, -1, -1]


def test_a_lookup_file_with_broken_lines_is_refused(tmp_path):
    path = tmp_path / "wards.csv"
    path.write_text("ward,beds\n1,2\n3\n", encoding="utf-8")
    with pytest.raises(UnreadableData, match="mend it"):
        open_table(TABLE, SMALL, lookups=Lookup(path, on="ward"))
    path.write_text("ward,beds,beds\n1,2,3\n", encoding="utf-8")
    with pytest.raises(UnreadableData, match="has the column 'beds' twice"):
        open_table(TABLE, SMALL, lookups=Lookup(path, on="ward"))


def test_an_empty_lookup_makes_all_values_missing():
    schema = Schema((column("v", "category", values=["a"], missing="category"),))
    lookup = Lookup(
        pa.table({"ward": pa.array([], pa.string()), "v": pa.array([], pa.string())}), on="ward"
    )
    assert open_table(TABLE, schema, lookups=lookup).sum(
        Counts(schema, ((("v", None),),))
    ).tolist() == [0, 700]


def test_units_may_be_derived():
    """A unit is then what the expression makes of each record by itself."""
    schema = Schema((column("age", "integer", bounds=[0, 100], bins=1),), unit="person")
    table = open_table(TABLE, schema, derive="person = upper(who)", where="age is not missing")
    plain = open_table(
        TABLE.rename_columns(["person", *KINDS.names[1:]]), schema, where="age is not missing"
    )
    kernel = Counts(schema, ((("age", None),),))
    assert np.array_equal(table.sum(kernel), plain.sum(kernel))
    with pytest.raises(UnreadableData, match="cast it to integers or text"):
        open_table(TABLE, schema, derive="person = ward + 1")


def test_a_parameter_of_the_wrong_kind_is_refused():
    with pytest.raises(InvalidParameter, match="derives no column"):
        open_table(TABLE, SMALL, derive=[3])
    with pytest.raises(InvalidParameter, match="must be text"):
        open_table(TABLE, SMALL, where=3)


def test_dates_and_their_parts_are_compared_as_in_queries():
    """As the schema reads them: its format, its zone, its weekdays."""
    admitted = column("admitted", "date", bounds=["2023-01-01", "2024-12-31"], format="%d.%m.%Y")
    schema = Schema((admitted, DatePartColumn.of("weekday", admitted, "weekday")))
    texts = ["29.02.2024", "31.12.2023", "30.02.2024", "", "01.03.2024", "29.02.1924"]
    rows = pa.table({"admitted": texts})
    kernel = Counts(schema, ((),))
    for where, count in {
        "admitted in 2024-01..2024-02": 1,
        "admitted >= 2023-12-31": 3,
        "admitted < 2024": 2,  # also what is clipped to the bounds later
        "admitted = 2024-Q1": 2,
        "weekday = Thursday": 1,
        "weekday(admitted) = Friday": 2,
        "admitted is missing": 0,  # which the schema's missing rule leaves out
        "year(admitted) = 1924": 1,
    }.items():
        table = open_table(rows, schema, where=where)
        assert table.sum(Counts(schema, ((("admitted", None),),))).sum() == count, where
    assert open_table(rows, schema, where="admitted is missing").sum(kernel).sum() == 2
    with pytest.raises(InvalidParameter, match="'weekday' is a part of a date"):
        open_table(rows, schema, derive="day = lower(weekday)", where="day = x")


def test_parts_of_a_derived_date_and_parts_whose_name_the_data_has_are_compared():
    admitted = column("admitted", "date", bounds=["2023-01-01", "2024-12-31"])
    weekday = DatePartColumn.of("weekday", admitted, "weekday")
    one = column("one", "integer", bounds=[0, 1])
    rows = pa.table({"written": ["2024-02-29", "2024-03-01", None], "one": [1, 1, 1]})
    schema = Schema((weekday, admitted, one))
    derived = {"derive": "admitted = date(written)", "where": "weekday in {Thursday, Sunday}"}
    assert open_table(rows, schema, **derived).sum(Counts(schema, ((),))).sum() == 1
    # A column of the data that has the part's name is not read, whatever it holds.
    named = rows.append_column("weekday", [["Friday", "Thursday", "Thursday"]])
    named = named.rename_columns(["admitted", "one", "weekday"])
    for columns in (None, ["one"]):
        table = open_table(named, schema, columns=columns, where="weekday = Thursday")
        assert table.sum(Counts(schema, ((("one", None),),))).sum() == 1
    # Some column counts the records, and a part is none of the data's.
    constant = Schema((weekday, admitted, column("two", "integer", bounds=[0, 2])))
    table = open_table(named, constant, columns=["two"], derive="two = 2")
    assert table.sum(Counts(constant, ((("two", None),),))).sum() == 3


def test_a_name_that_is_not_there_yet_is_not_offered_for_itself():
    with pytest.raises(InvalidParameter, match="there is no column 'later'") as caught:
        open_table(TABLE, SMALL, derive=["early = later", "later = age"])
    assert "did you mean 'later'" not in str(caught.value)


# --- What is hidden ---------------------------------------------------------------------------


def test_a_filter_is_refused_where_the_number_of_records_is_public():
    """How many records it keeps depends on values that may be exchanged."""
    schema = Schema(
        (
            column("age", "integer", bounds=[0, 100], missing="category"),
            column("ward", "integer", bounds=[0, 9], missing="category"),
        )
    )
    method = DPCopula(public_records=700)
    filtered = open_table(TABLE, schema, where="age >= 18")
    with pytest.raises(InvalidParameter, match="leave out where, or public_records"):
        method.release(filtered, budget=Budget.seeded(Fraction(1), "test"), rng=seeded(1))
    plain = open_table(TABLE.drop(["ward"]), schema, derive="ward = age // 12")
    released = method.release(plain, budget=Budget.seeded(Fraction(1), "test"), rng=seeded(1))
    assert released.receipt.steps == ("derive ward = age // 12",)


def test_steps_are_refused_where_it_is_public_who_is_present_at_which_level():
    schema = Schema((column("age", "integer", bounds=[0, 100], bins=4),))
    method = Minimum(
        inner=Histogram(columns=("age",)),
        preference="level",
        levels=(Fraction(1, 10), Fraction(1)),
        mode="values-only",
    )
    rows = TABLE.append_column("level", pa.array([1.0] * TABLE.num_rows))
    budget = method.budget(Fraction(1))
    table = open_table(rows, method.prepare(schema), where="age >= 18")
    with pytest.raises(InvalidParameter, match="use another mode"):
        method.release(table, budget=budget, rng=seeded(1))


def test_the_receipt_of_a_bounded_release_names_the_steps():
    schema = Schema((column("age", "integer", bounds=[0, 100], bins=4),), unit="who")
    table = open_table(TABLE, schema, where="age >= 18")
    method = Histogram(columns=("age",), contribution=2)
    budget = Budget.seeded(Fraction(1), "test")
    receipt = method.release(table, budget=budget, rng=seeded(1)).receipt
    assert receipt.steps == ("where age >= 18",)
    assert receipt.contribution == 2
