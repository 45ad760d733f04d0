"""Tables in Apache Spark, on a cluster of two executors: what is refused, hidden and kept."""

import os
import pickle
import signal
import threading
import time
import warnings
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import method_examples
from data.kernel_examples import ALL, EXAMPLES, same
from data.nasty_tables import SCHEMA, arrow, make_rows
from dpublish.aggregates.counts import Counts
from dpublish.core.registry import make_method
from dpublish.data.engines import spark as engine
from dpublish.data.engines.spark_jobs import Job
from dpublish.data.engines.spark_session import _find as find
from dpublish.data.engines.spark_tasks import make_targets
from dpublish.data.schema import Schema, column
from dpublish.data.sources import open_table, source_columns
from dpublish.errors import DPublishError, InvalidParameter, UnreadableData
from dpublish.ledger.ledger import Ledger
from dpublish.methods.dpcopula.mle import BlockMoments
from dpublish.methods.histogram.histogram import Histogram
from dpublish.methods.streams.method import make_stream_method
from dpublish.privacy.budget import Budget
from dpublish.publishing.table import publish
from dpublish.randomness import secure, seeded

pytestmark = pytest.mark.xdist_group("spark")
WHOLE = Counts(SCHEMA, (ALL,))
MARK = "zq-secret-marker"
UNITS = Schema(SCHEMA.columns, unit="who")


@pytest.fixture
def session(spark_cluster):
    return spark_cluster.session


def with_units(rows):
    who = [f"{MARK}-{number % 37}" for number in range(rows.num_rows)]
    return rows.append_column("who", pa.array(who))


def saved(rows, folder, session, parts=4):
    """Write rows to as many files, and read them by Spark, a partition each."""
    folder.mkdir()
    step = max(1, -(-rows.num_rows // parts))
    for number in range(parts):
        part = rows.slice(number * step, step)
        pq.write_table(part, folder / f"part-{number}.parquet")
    session.conf.set("spark.sql.files.openCostInBytes", str(1 << 30))
    return session.read.parquet(str(folder))


def slowly(data, seconds=0.7):
    """Take some time for each partition, so that something may happen meanwhile."""

    def wait(batches):
        time.sleep(seconds)
        yield from batches

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return data.mapInArrow(wait, data.schema)


# --- Sums -------------------------------------------------------------------------------------


def test_partial_answers_are_merged_on_the_cluster(session, tmp_path, monkeypatch):
    fetched = []
    fetch = Job.blobs

    def watched(job):
        found = fetch(job)
        fetched.append(len(found))
        return found

    monkeypatch.setattr(Job, "blobs", watched)
    rows = arrow(make_rows(400, seed=1))
    table = open_table(saved(rows, tmp_path / "t", session, parts=9), SCHEMA)
    expected = open_table(rows, SCHEMA).sum(WHOLE)
    assert np.array_equal(table.sum(WHOLE), expected)
    monkeypatch.setattr(engine, "_FAN_IN", 3)
    assert np.array_equal(table.sum(WHOLE), expected)
    for name in ("SparseCounts", "CutCounts"):
        kernel = EXAMPLES[name]
        assert same(table.sum(kernel), open_table(rows, SCHEMA).sum(kernel))
    assert fetched == [9, 1, 1, 1]


def test_every_task_of_an_exchange_gets_a_target_of_its_own(session):
    for count in (1, 2, 7, 50):
        targets = ", ".join(map(str, make_targets(count)))
        rows = session.sql(f"SELECT explode(array({targets})) AS target")
        sent = rows.repartition(count, "target").selectExpr("spark_partition_id() AS task")
        assert sorted(row.task for row in sent.collect()) == list(range(count))


@dataclass(frozen=True)
class FailsAtFirst(Counts):
    """A kernel whose first attempt at every partition ends its process."""

    def add(self, batch, out):
        from pyspark import TaskContext

        context = TaskContext.get()
        if context.attemptNumber() == 0 and context.partitionId() % 2 == 0:
            os.kill(os.getpid(), signal.SIGKILL)
        super().add(batch, out)


def test_a_task_that_is_run_again_is_counted_once(session, tmp_path):
    rows = arrow(make_rows(200, seed=2))
    table = open_table(saved(rows, tmp_path / "t", session), SCHEMA)
    found = table.sum(FailsAtFirst(SCHEMA, (ALL,)))
    assert np.array_equal(found, open_table(rows, SCHEMA).sum(WHOLE))


def test_a_kernel_that_draws_has_a_source_of_its_own_in_every_partition(session, tmp_path):
    data = saved(arrow(make_rows(400, seed=2)), tmp_path / "t", session)
    table = open_table(data, SCHEMA)
    scores = (np.arange(16), np.arange(10))
    answers = [
        table.sum(BlockMoments(SCHEMA, ("hours", "count"), scores, 5, rng))
        for rng in (seeded(1), seeded(1), seeded(2), secure())
    ]
    one = table.sum(BlockMoments(SCHEMA, ("hours", "count"), scores, 1, seeded(1)))
    assert np.array_equal(answers[0], answers[1])
    assert all(not np.array_equal(answers[0], other) for other in answers[2:])
    assert all(np.array_equal(answer.sum(axis=1), one[:, 0]) for answer in answers)


# --- Executors that are killed ----------------------------------------------------------------


def kill_while(cluster, action, pick, after=0.9):
    """Kill a process of the cluster while something runs; return its answer or its error."""
    killed = []

    def attack():
        time.sleep(after)
        found = pick(cluster)
        if found:
            cluster.kill(found[0])
            killed.append(found[0])

    thread = threading.Thread(target=attack)
    thread.start()
    try:
        return action()
    except DPublishError as error:
        return error
    finally:
        thread.join()
        assert killed


VICTIMS = {
    "executor": lambda cluster: cluster.executors(),
    "python worker": lambda cluster: cluster.python_workers()[::-1],
}


@pytest.mark.parametrize("victim", VICTIMS)
def test_an_executor_killed_during_a_sum_changes_nothing(spark_cluster, tmp_path, victim):
    rows = with_units(arrow(make_rows(300, seed=3)))
    data = slowly(saved(rows, tmp_path / "t", spark_cluster.session))
    for schema in (SCHEMA, UNITS):
        kernel = Counts(schema, ((("letter", None), ("sign", None)),))
        expected = open_table(rows, schema).sum(kernel)
        table = open_table(data, schema)
        found = kill_while(spark_cluster, lambda: table.sum(kernel), VICTIMS[victim])  # noqa: B023
        assert np.array_equal(found, expected) or isinstance(found, UnreadableData)


@pytest.mark.parametrize("victim", VICTIMS)
def test_an_executor_killed_during_a_draw_leaves_one_sample_or_none(
    spark_cluster, tmp_path, victim
):
    rows = with_units(arrow(make_rows(300, seed=4)))
    data = slowly(saved(rows, tmp_path / "t", spark_cluster.session))
    plain, units = open_table(data, SCHEMA), open_table(data, UNITS)
    everything = open_table(rows, SCHEMA).sum(WHOLE)
    expected = open_table(rows, UNITS).bound(2, b"key").sum(WHOLE)

    def answers(draw):
        table = kill_while(spark_cluster, draw, VICTIMS[victim])
        if isinstance(table, UnreadableData):
            return None
        try:
            return table.sum(WHOLE), table.sum(WHOLE)
        except UnreadableData:
            return None

    sampled = answers(lambda: plain.sample(Fraction(1, 2), secure()))
    if sampled is not None:
        assert np.array_equal(*sampled)
        assert (sampled[0] <= everything).all()
        assert 0 < sampled[0].sum() < everything.sum()
    bounded = answers(lambda: units.bound(2, b"key"))
    assert bounded is None or all(np.array_equal(one, expected) for one in bounded)


def test_a_sample_that_was_lost_is_not_drawn_again(spark_cluster, tmp_path):
    rows = with_units(arrow(make_rows(300, seed=5)))
    data = saved(rows, tmp_path / "t", spark_cluster.session)
    sample = open_table(data, SCHEMA).sample(Fraction(1, 2), secure())
    bounded = open_table(data, UNITS).bound(2, b"key")
    sample.sum(WHOLE)
    for executor in spark_cluster.executors():
        spark_cluster.kill(executor)
    for table in (sample, bounded):
        with pytest.raises(UnreadableData, match="nothing is drawn twice") as caught:
            table.sum(WHOLE)
        assert caught.value.__context__ is None
    assert open_table(data, SCHEMA).sum(WHOLE).sum() > 0


def test_a_partition_with_another_nonce_is_refused(session, tmp_path):
    data = saved(arrow(make_rows(100, seed=6)), tmp_path / "t", session)
    sample = open_table(data, SCHEMA).sample(Fraction(1, 2), secure())
    kept = sample._frame.kept
    for nonces in ((bytes(16), *kept.nonces[1:]), kept.nonces[:-1], (*kept.nonces, bytes(16))):
        frame = replace(sample._frame, kept=replace(kept, nonces=nonces))
        with pytest.raises(UnreadableData, match="nothing is drawn twice"):
            engine.SparkTable(SCHEMA, frame).sum(WHOLE)
    assert sample.sum(WHOLE).sum() > 0


# --- What is refused when a table is opened ---------------------------------------------------


def test_plans_that_give_other_rows_every_time_are_refused(session):
    schema = Schema((column("x", "numeric", bounds=[0, 1]),))
    with pytest.raises(InvalidParameter, match="random function"):
        open_table(session.range(5).selectExpr("rand() AS x"), schema)
    stream = session.readStream.format("rate").load().selectExpr("value AS x")
    with pytest.raises(InvalidParameter, match="is a stream"):
        open_table(stream, schema)
    with pytest.raises(InvalidParameter, match="remove table and sql"):
        open_table(session.range(5), schema, table="people")


def observed(data):
    from pyspark.sql import functions

    return data.observe("seen", functions.count(data["hours"]).alias("rows"))


MIXED = {
    "LIMIT": lambda data: data.limit(10),
    "OFFSET": lambda data: data.offset(10),
    "TABLESAMPLE": lambda data: data.sample(0.5, seed=1),
    "dropDuplicates": lambda data: data.dropDuplicates(["letter"]),
    "GROUP BY": lambda data: data.groupBy("letter").count(),
    "window function": lambda data: data.selectExpr("lag(letter) OVER (ORDER BY hours) AS letter"),
    "INTERSECT": lambda data: data.intersect(data),
    "EXCEPT": lambda data: data.exceptAll(data.where("hours > 3")),
    "ROLLUP": lambda data: data.unpivot("letter", ["hours"], "name", "value"),
    "numbers of rows": observed,
    "FlatMapGroupsInPandas": lambda data: data.groupBy("letter").applyInPandas(same, data.schema),
    "with itself": lambda data: data.union(data.where("hours > 3")),
    "subquery": lambda data: query(data, "SELECT * FROM {0} WHERE hours < (SELECT 3 FROM {0})"),
    "an aggregate": lambda data: query(
        data, "SELECT * FROM {0} WHERE hours IN (SELECT max(hours) FROM {0})"
    ),
    "UNION of": lambda data: query(
        data, "WITH x AS (SELECT * FROM {0}) SELECT * FROM x UNION ALL SELECT * FROM {0}"
    ),
}


def query(data, text):
    data.createOrReplaceTempView("mixed_rows")
    return data.sparkSession.sql(text.format("mixed_rows"))


@pytest.mark.parametrize("word", MIXED)
def test_plans_that_make_a_row_from_several_records_are_refused(session, tmp_path, word):
    schema = Schema((column("letter", "category", values=["a"], other="else"),))
    data = saved(arrow(make_rows(20)), tmp_path / "t", session)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        mixed = MIXED[word](data)
    with pytest.raises(InvalidParameter, match=word):
        open_table(mixed, schema)
    mixed.createOrReplaceTempView("mixed_view")
    with pytest.raises(InvalidParameter, match=word):
        open_table(session.table("mixed_view"), schema)


def test_plans_that_keep_records_apart_are_accepted(session, tmp_path):
    first = saved(arrow(make_rows(60, seed=1)), tmp_path / "a", session)
    second = saved(arrow(make_rows(40, seed=2)), tmp_path / "b", session)
    both = arrow(make_rows(60, seed=1) + make_rows(40, seed=2))
    plans = [
        first.union(second),
        first.union(second).sort("hours").repartition(3).alias("x").where("true"),
        query(first.union(second), "WITH x AS (SELECT * FROM {0}) SELECT * FROM x"),
        query(first.union(second), "SELECT * FROM {0} WHERE 1 IN (SELECT 1 FROM {0})"),
    ]
    expected = open_table(both, SCHEMA).sum(WHOLE)
    for plan in plans:
        assert np.array_equal(open_table(plan, SCHEMA).sum(WHOLE), expected)


@pytest.mark.parametrize("name", ["ignoreCorruptFiles", "ignoreMissingFiles"])
def test_files_must_not_be_left_out(session, tmp_path, name):
    data = saved(arrow(make_rows(40)), tmp_path / "t", session)
    ignoring = session.read.option(name.upper(), "true").parquet(str(tmp_path / "t"))
    for plan in (
        ignoring,
        ignoring.where("hours > 3"),
        data.join(ignoring.select("hours"), "hours"),
    ):
        with pytest.raises(InvalidParameter, match=f"{name}=true"):
            open_table(plan, SCHEMA)
    table = open_table(data, SCHEMA)
    sample = table.sample(Fraction(1, 2), secure())
    session.conf.set(f"spark.sql.files.{name}", "true")
    try:
        for read in (lambda: open_table(data, SCHEMA), lambda: table.sum(WHOLE)):
            with pytest.raises(InvalidParameter, match=f"spark.sql.files.{name} is true"):
                read()
        with pytest.raises(InvalidParameter, match=f"spark.sql.files.{name} is true"):
            sample.sum(WHOLE)
    finally:
        session.conf.unset(f"spark.sql.files.{name}")
    assert sample.sum(WHOLE).sum() <= table.sum(WHOLE).sum()


def test_types_must_not_be_taken_from_rows(session, tmp_path):
    schema = Schema((column("x", "numeric", bounds=[0, 9], bins=3),))
    (tmp_path / "t.csv").write_text("x\n1\n2\n")
    (tmp_path / "t.json").write_text('{"x": 1}\n')
    csv = session.read.option("header", "true")
    for plan in (
        csv.option("inferSchema", "true").csv(str(tmp_path / "t.csv")),
        session.read.json(str(tmp_path / "t.json")),
    ):
        with pytest.raises(InvalidParameter, match="types Spark takes from their rows"):
            open_table(plan, schema)
    csv = session.read.option("header", "true")
    declared = csv.schema("x int")
    kernel = Counts(schema, ((("x", None),),))
    assert open_table(declared.csv(str(tmp_path / "t.csv")), schema).sum(kernel).sum() == 2
    with pytest.raises(InvalidParameter, match="DROPMALFORMED"):
        open_table(declared.option("mode", "DropMalformed").csv(str(tmp_path / "t.csv")), schema)


def test_a_cached_table_is_refused_and_one_cached_later_still_knows_its_files(session, tmp_path):
    data = saved(arrow(make_rows(50)), tmp_path / "t", session)
    table = open_table(data, SCHEMA)
    data.cache()
    try:
        for plan in (data, data.where("hours > 3")):
            with pytest.raises(InvalidParameter, match="unpersist"):
                open_table(plan, SCHEMA)
        assert np.array_equal(table.sum(WHOLE), open_table(arrow(make_rows(50)), SCHEMA).sum(WHOLE))
        pq.write_table(arrow(make_rows(60)), tmp_path / "t" / "part-1.parquet")
        with pytest.raises(UnreadableData, match="changed or dropped"):
            table.sum(WHOLE)
    finally:
        data.unpersist()


def test_a_log_level_that_was_raised_is_set_back_before_rows_are_read(session, tmp_path):
    table = open_table(saved(arrow(make_rows(50)), tmp_path / "t", session), SCHEMA)
    session.sparkContext.setLogLevel("FATAL")
    table.sum(WHOLE)
    logs = session.sparkContext._jvm.org.apache.logging.log4j.LogManager
    assert logs.getRootLogger().getLevel().toString() == "OFF"


@dataclass(frozen=True)
class Hidden(Counts):
    """A kernel that holds a random generator under a name of its own."""

    generator: object = None


def test_a_kernel_with_a_generator_of_its_own_is_refused(session, tmp_path):
    table = open_table(saved(arrow(make_rows(50)), tmp_path / "t", session), SCHEMA)
    for generator in (np.random.PCG64(1), seeded(1), [seeded(2)]):
        with pytest.raises(InvalidParameter, match="every partition would draw the same") as caught:
            table.sum(Hidden(SCHEMA, (ALL,), generator=generator))
        assert caught.value.__context__ is None
    found = table.sum(Hidden(SCHEMA, (ALL,), generator=secure()))
    assert np.array_equal(found, table.sum(WHOLE))


TYPES = {
    "tiny": ("CAST(3 AS TINYINT)", "integer"),
    "long": ("CAST(3 AS BIGINT)", "integer"),
    "float": ("CAST(3.5 AS FLOAT)", "numeric"),
    "decimal": ("CAST(3.25 AS DECIMAL(20, 5))", "numeric"),
    "text": ("' 3.5 '", "numeric"),
    "truth": ("true", "category"),
    "date": ("DATE'2020-01-01'", "category"),
    "char": ("CAST('a' AS VARCHAR(3))", "category"),
    "nothing": ("NULL", "numeric"),
}


def test_types_of_spark_are_read_as_elsewhere(session):
    data = session.sql("SELECT " + ", ".join(f"{sql} AS {n}" for n, (sql, _) in TYPES.items()))
    listed = {"truth": ["true", "false"], "date": ["2020-01-01"], "char": ["a", "b"]}
    columns = [
        column(name, kind, values=listed[name])
        if kind == "category"
        else column(name, kind, bounds=[0, 10], bins=5, missing="category")
        for name, (_, kind) in TYPES.items()
    ]
    schema = Schema(tuple(columns))
    kernel = Counts(schema, tuple(((name, None),) for name in TYPES))
    found = kernel.split(open_table(data, schema).sum(kernel))
    cells = {name: int(np.argmax(one)) for name, one in zip(TYPES, found, strict=True)}
    assert all(one.sum() == 1 for one in found)
    assert cells == dict.fromkeys(TYPES, 1) | {"truth": 0, "date": 0, "char": 0, "nothing": 5}
    header = source_columns(data)
    assert header.field("decimal").type == pa.decimal128(20, 5)


@pytest.mark.parametrize("sql", ["array(1)", "named_struct('a', 1)", "X'00'"])
def test_types_that_mean_nothing_here_are_refused(session, sql):
    schema = Schema((column("x", "category", values=["a"]),))
    with pytest.raises(UnreadableData, match="column 'x'"):
        open_table(session.sql(f"SELECT {sql} AS x"), schema)
    by_unit = Schema((column("y", "category", values=["a"]),), unit="x")
    with pytest.raises(UnreadableData, match="cast it to integers or text"):
        open_table(session.sql(f"SELECT {sql} AS x, 'a' AS y"), by_unit)


@pytest.mark.parametrize("kind", ["TIMESTAMP", "TIMESTAMP_NTZ"])
def test_a_moment_is_the_category_that_one_would_write(session, kind):
    data = session.sql(f"SELECT {kind}'2020-01-01 10:30:00' AS x")
    kind = data.schema["x"].dataType.typeName()
    texts = ["2020-01-01 10:30:00", "2020-01-01 10:30:00Z"]
    schema = Schema((column("x", "category", values=texts, other="else"),))
    counts = open_table(data, schema).sum(Counts(schema, ((("x", None),),)))
    assert counts.tolist() == ([1, 0, 0] if kind == "timestamp_ntz" else [0, 1, 0])


def test_columns_are_found_by_their_exact_names(session):
    data = session.sql("SELECT 1 AS `a.b`, 2 AS `x y`, 3 AS `Age`, 4 AS `tick``ed`")
    names = ("a.b", "x y", "Age", "tick`ed")
    schema = Schema(tuple(column(name, "integer", bounds=[0, 9]) for name in names))
    kernel = Counts(schema, tuple(((name, None),) for name in names))
    found = kernel.split(open_table(data, schema).sum(kernel))
    assert [int(np.argmax(one)) for one in found] == [1, 2, 3, 4]
    lower = Schema((column("age", "integer", bounds=[0, 9]),))
    with pytest.raises(UnreadableData, match="only one in other letters"):
        open_table(data, lower)
    with pytest.raises(UnreadableData, match="several times"):
        open_table(session.sql("SELECT 1 AS age, 2 AS age"), lower)


def test_files_and_tables_that_are_not_there_are_refused(session, tmp_path):
    with pytest.raises(UnreadableData, match="finds no Parquet files that it can read at") as no:
        find(session, f"{tmp_path}/part-*.parquet", None)
    assert no.value.__context__ is None
    (tmp_path / "bad.parquet").write_text(MARK)
    with pytest.raises(UnreadableData, match="finds no Parquet files that it can read at"):
        find(session, f"{tmp_path}/bad.parquet", None)
    with pytest.raises(UnreadableData, match="there is no table nowhere"):
        find(session, None, "nowhere")


def test_a_dropped_table_is_noticed(session, tmp_path):
    session.sql(
        f"CREATE TABLE people USING parquet LOCATION '{tmp_path}/people' AS SELECT 1 AS age"
    )
    schema = Schema((column("age", "integer", bounds=[0, 9]),))
    kernel = Counts(schema, ((("age", None),),))
    table = open_table(session.table("people"), schema)
    assert table.sum(kernel).sum() == 1
    session.sql("DROP TABLE people")
    for file in (tmp_path / "people").iterdir():
        file.unlink()
    with pytest.raises(UnreadableData, match="changed or dropped") as caught:
        table.sum(kernel)
    assert caught.value.__context__ is None


def test_a_changed_schema_fails_the_release_and_keeps_the_debit(session, tmp_path):
    data = saved(arrow(make_rows(50)), tmp_path / "t", session)
    table = open_table(data, SCHEMA)
    changed = arrow(make_rows(60)).drop_columns(["letter"])
    pq.write_table(changed, tmp_path / "t" / "part-1.parquet")
    with Ledger.create(tmp_path / "books.db") as ledger:
        ledger.add("people", cap=2)
        with pytest.raises(UnreadableData, match="changed or dropped"):
            publish(
                Histogram(columns=("letter",)),
                table,
                tmp_path / "out",
                ledger=ledger,
                dataset="people",
                epsilon=1,
            )
        assert ledger.status("people").spent == 1
    assert not (tmp_path / "out").exists()


# --- What others may see ----------------------------------------------------------------------


def files_of(cluster):
    return [
        path for path in cluster.folder.rglob("*") if path.is_file() and "jars" not in str(path)
    ]


def test_no_row_is_in_an_error_a_log_or_a_file(spark_cluster, tmp_path, capfd):
    session = spark_cluster.session
    rows = with_units(arrow(make_rows(2000, seed=7)))
    data = saved(rows, tmp_path / "t", session)
    open_table(data, SCHEMA).sum(WHOLE)
    spark_cluster.kill(spark_cluster.executors()[0])  # another is started, with its own log
    bad = data.selectExpr(
        "* EXCEPT (count)", f"CASE WHEN who = '{MARK}-7' THEN CAST(who AS INT) END AS count"
    )
    for table in (open_table(bad, SCHEMA), open_table(bad, UNITS)):
        with pytest.raises(UnreadableData, match="could not read the Spark table") as caught:
            table.sum(WHOLE)
        assert MARK not in str(caught.value)
        assert caught.value.__context__ is None
        assert caught.value.__cause__ is None
    with pytest.raises(UnreadableData, match="could not read the Spark table"):
        open_table(data, UNITS).sum(Quotes(UNITS, ((("letter", None),),)))
    bounded = open_table(data, UNITS).bound(5, b"key")
    bounded.sum(WHOLE)
    shown = "".join(capfd.readouterr())
    assert MARK not in shown
    assert "secret" not in shown
    found = files_of(spark_cluster)
    assert any("blockmgr" in str(path) for path in found)  # rows did cross the disk
    assert any(path.name == "stderr" for path in found)  # and executors have logs
    assert [path for path in found if MARK.encode() in path.read_bytes()] == []


@dataclass(frozen=True)
class Quotes(Counts):
    """A kernel whose error would quote a value."""

    def add(self, batch, out):
        raise ValueError(f"{MARK} {batch.codes('letter')}")


def test_a_table_shows_names_and_nothing_else(session, tmp_path):
    table = open_table(saved(arrow(make_rows(413)), tmp_path / "t", session), SCHEMA)
    assert repr(table) == "SparkTable(hours, slope, count, letter, sign)"
    with pytest.raises(TypeError, match="holds private rows"):
        pickle.dumps(table)


# --- Whole releases ---------------------------------------------------------------------------


def content(release):
    """What would be published, but for the time and the random name."""
    return {name: table.to_pydict() for name, table in release.tables().items()}


def released(name, settings, table, seed=7):
    return make_method(name, settings).release(table, budget=Budget.seeded("1.5"), rng=seeded(seed))


def people(size=400):
    rows = [method_examples.ROWS[number % 5] for number in range(size)]
    ages = pa.array([number * 7 % 90 for number in range(size)], pa.int64())
    return method_examples.arrow_table(rows).set_column(0, "age", ages)


@pytest.mark.parametrize(
    ("name", "settings"),
    [
        ("histogram", {"columns": ("age", "town")}),
        ("privpfc", {"target": "sex", "pool": 5, "rounds": 1}),
        ("kmeans", {"n_clusters": 2}),
        ("dpcopula", {"columns": ("age", "height"), "correlation": "kendall"}),
        ("minimum", {"inner": "histogram columns=age,sex", **method_examples.RULE}),
    ],
)
def test_a_release_that_samples_nothing_is_that_of_the_local_engine(
    session, tmp_path, name, settings
):
    rows, schema = people(), method_examples.SCHEMA
    table = open_table(saved(rows, tmp_path / "t", session, parts=2), schema)
    local = released(name, settings, open_table(rows, schema))
    assert content(released(name, settings, table)) == content(local)


def test_top_values_of_units_are_those_of_the_local_engine(session, tmp_path):
    schema = Schema(method_examples.SCHEMA.columns, unit="who")
    rows = with_units(people())
    settings = {"column": "town", "count": 2}
    table = open_table(saved(rows, tmp_path / "t", session, parts=2), schema)
    local = released("topk", settings, open_table(rows, schema))
    assert content(released("topk", settings, table)) == content(local)


@pytest.mark.parametrize(
    ("name", "settings"),
    [
        ("gupt", {"target": "age", "model": "linear", "predictors": ("sex",), "blocks": 2}),
        ("dpcopula", {"columns": ("age", "height"), "correlation": "kendall", "sample": 50}),
        ("sampling", {"inner": "histogram columns=town", **method_examples.RULE}),
    ],
)
def test_methods_that_sample_are_reproducible_from_a_seed(session, tmp_path, name, settings):
    data = saved(people(), tmp_path / "t", session, parts=2)
    table = open_table(data, method_examples.SCHEMA)
    first = content(released(name, settings, table))
    assert content(released(name, settings, table)) == first
    assert content(released(name, settings, table, seed=8)) != first


def test_a_step_of_a_stream_bounds_units_as_the_local_engine_does(session, tmp_path):
    columns = tuple(column(name, "integer", bounds=[0, 7], bins=8) for name in "xy")
    schema = Schema(columns, unit="user")
    numbers = range(300)
    rows = pa.table(
        {
            "x": [n % 8 for n in numbers],
            "y": [n * 5 % 8 for n in numbers],
            "user": [f"u{n % 40}" for n in numbers],
        }
    )
    method = make_stream_method("dsat", {"columns": ("x", "y"), "horizon": 3})

    def step(table):
        stream = method.start(schema, budget=Budget.seeded(1), rng=seeded(1))
        return stream.next(table, rng=seeded(2)).estimate

    on_spark = step(open_table(saved(rows, tmp_path / "t", session, parts=3), schema))
    assert np.array_equal(on_spark, step(open_table(rows, schema)))
