"""PostgreSQL as a source: the same answers, one snapshot, and refusals before a row is read."""

import gc
import os
import subprocess
import sys
import textwrap
import threading
import time
from decimal import Decimal
from functools import partial

import numpy as np
import psycopg
import pyarrow.parquet as pq
import pytest

from data.nasty_tables import SCHEMA, arrow, count_by_hand, make_rows
from dpublish import Budget, Histogram, Ledger, publish, seeded
from dpublish.aggregates.counts import Counts
from dpublish.data.draft import draft_schema
from dpublish.data.engines import postgres_reader
from dpublish.data.schema import Schema, column
from dpublish.data.sources import find_source, open_table, source_columns
from dpublish.errors import DPublishError, InvalidParameter, UnreadableData

ALL = Counts(SCHEMA, (tuple((name, None) for name in SCHEMA.names),))
ONE = Schema((column("a", "integer", bounds=[0, 9]),))
ONE_COUNTS = Counts(ONE, ((("a", None),),))
TWO = Schema((column("a", "integer", bounds=[0, 1]), column("b", "integer", bounds=[0, 1])))
METHOD = Histogram(columns=("letter", "sign"))
PAID = {"dataset": "people", "epsilon": 1}
LOST = "could not be read to its end; check that all of it can be read"


class Database:
    """The test's own database, and a second connection to change it behind a table's back."""

    def __init__(self, uri):
        self.uri = uri
        self.label = uri.replace(uri.partition("://")[2].partition("@")[0] + "@", "")

    def run(self, *statements):
        with psycopg.connect(self.uri, autocommit=True) as connection:
            for statement in statements:
                connection.execute(statement)

    def fill(self, name, rows):
        kinds = ("float8", "float8", "int8", "text", "text", "text")
        names = [*SCHEMA.names, "ignored"]
        columns = ", ".join(f'"{x}" {kind}' for x, kind in zip(names, kinds, strict=True))
        with psycopg.connect(self.uri) as connection, connection.cursor() as cursor:
            cursor.execute(f"CREATE TABLE {name} ({columns})")
            with cursor.copy(f"COPY {name} FROM STDIN") as copy:
                for row in rows:
                    copy.write_row([row[x] for x in names])

    def open(self, schema=ONE, **options):
        return open_table(self.uri, schema, **options)


@pytest.fixture
def database(postgres_database):
    yield Database(postgres_database)
    gc.collect()  # a table that is still open would hold its connection


def refusal(action, kind=DPublishError):
    with pytest.raises(kind) as refused:
        action()
    assert refused.value.__context__ is None
    assert "\n" not in str(refused.value)
    return str(refused.value)


@pytest.mark.parametrize("cache", [True, False], ids=["cached", "streamed"])
@pytest.mark.parametrize("size", [0, 1, 1000])
def test_tables_views_partitions_and_queries_count_as_one_would_by_hand(database, size, cache):
    rows = make_rows(size)
    database.fill("people", rows)
    database.run(
        "CREATE VIEW seen AS SELECT * FROM people",
        "CREATE MATERIALIZED VIEW kept AS SELECT * FROM people",
        "CREATE TABLE parts (LIKE people) PARTITION BY LIST (sign)",
        "CREATE TABLE part_n PARTITION OF parts FOR VALUES IN ('n')",
        "CREATE TABLE part_rest PARTITION OF parts DEFAULT",
        "INSERT INTO parts SELECT * FROM people",
    )
    expected = count_by_hand(rows)
    queries = [{"table": name} for name in ("people", "public.people", "seen", "kept", "parts")]
    for options in [*queries, {"sql": "SELECT * FROM people; "}]:
        table = database.open(SCHEMA, cache=cache, **options)
        for _ in range(2):
            assert np.array_equal(ALL.split(table.sum(ALL))[0], expected), options


def test_units_samples_and_splits_are_those_of_the_same_rows_in_memory(database):
    schema = Schema(SCHEMA.columns[:3], unit="letter")
    kernel = Counts(schema, ((("count", None), ("hours", None)),))
    rows = make_rows(2000)
    database.fill("people", rows)
    for options in ({"table": "people"}, {"sql": "SELECT * FROM people"}):
        table, twin = database.open(schema, **options), open_table(arrow(rows), schema)
        assert np.array_equal(table.sum(kernel), twin.sum(kernel))
        parts = table.split(3, seeded(1))
        # A unit is in one part only, so nothing is counted twice.
        assert np.array_equal(sum(part.sum(kernel) for part in parts), twin.sum(kernel))


TYPES = {
    "int2": ("7::int2", "7"),
    "int4": ("7", "7"),
    "int8": ("9007199254740993", "9007199254740993"),
    "float4": ("0.1::float4", "0.1"),
    "float8": ("0.1::float8", "0.1"),
    "float8 that is not a number": ("'NaN'::float8", None),
    "numeric": ("1.10", "1.1"),
    "numeric of any length": ("12345678901234567890123456789012345678901234567890.50", None),
    "numeric of some digits": ("3.10::numeric(10,2)", "3.1"),
    "numeric without decimals": ("42::numeric(12,0)", "42"),
    "numeric that is not a number": ("'NaN'::numeric", None),
    "numeric of digits that is not a number": ("'NaN'::numeric(10,2)", None),
    "numeric as a whole": ("'NaN'::numeric(10,0)", None),
    "text": ("' a '", "a"),
    "varchar": ("'a'::varchar(5)", "a"),
    "char": ("'a'::char(5)", "a"),
    "one byte": ("'z'::\"char\"", "z"),
    "boolean": ("true", "true"),
    "date": ("date '2024-02-29'", "2024-02-29"),
    "date without an end": ("date 'infinity'", None),
    "timestamp": ("timestamp '2024-02-29 12:00'", "2024-02-29 12:00:00"),
    "timestamp with decimals": ("timestamp '2024-02-29 12:00:00.25'", "2024-02-29 12:00:00.25"),
    "timestamp without an end": ("timestamp '-infinity'", None),
    "timestamp beyond Arrow": ("timestamp '294275-01-01'", None),
    "timestamptz": ("timestamptz '2024-02-29 12:00+02'", "2024-02-29 10:00:00Z"),
    "timestamptz without an end": ("timestamptz 'infinity'", None),
    "uuid": (
        "'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11'::uuid",
        "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11",
    ),
    "enum": ("'ok'::mood", "ok"),
    "domain": ("5::small", "5"),
    "domain of numeric": ("5.50::price", "5.5"),
    "json": ("'[1]'::json", "[1]"),
    "jsonb": ("'[1, 2]'::jsonb", "[1, 2]"),
    "money": ("'12.50'::money", "12.50"),
    "inet": ("'127.0.0.1'::inet", "127.0.0.1"),
    "bit": ("B'101'", "101"),
    "oid": ("4000000000::oid", "4000000000"),
    "null": ("NULL::text", None),
}
LARGE = "12345678901234567890123456789012345678901234567890.5"


@pytest.mark.parametrize("name", TYPES)
def test_a_value_of_each_type_is_the_category_that_one_would_write(database, name):
    expression, text = TYPES[name]
    text = LARGE if "any length" in name else text
    database.run(
        "CREATE TYPE mood AS ENUM ('sad', 'ok')",
        "CREATE DOMAIN small AS int",
        "CREATE DOMAIN price AS numeric(10,2)",
        f"CREATE TABLE t AS SELECT {expression} AS a",
    )
    values = ["never", *([] if text is None else [text])]
    schema = Schema((column("a", "category", values=values, other="o", missing="category"),))
    counted = database.open(schema, table="t").sum(Counts(schema, ((("a", None),),)))
    assert counted.tolist() == ([0, 0, 1] if text is None else [0, 1, 0, 0])


@pytest.mark.parametrize(
    "expression",
    [
        "ARRAY[1]",
        "'\\x00'::bytea",
        "time '12:00'",
        "interval '1 day'",
        "point(1,2)",
        "int4range(1,2)",
    ],
)
def test_a_type_that_no_schema_can_use_is_refused_when_the_table_is_opened(database, expression):
    database.run(f"CREATE TABLE t AS SELECT {expression} AS a, 1 AS b")
    message = refusal(lambda: database.open(table="t"), UnreadableData)
    assert message.startswith("column 'a' has the type ")
    assert "are needed" in message


def test_numbers_are_the_nearest_floats(database):
    texts = ["0.1", "1e-320", "-1e300", "123456789.123456789", "Infinity", "-Infinity", "1e400"]
    database.run(
        "CREATE TABLE t (n int, a numeric, b numeric(20,5))",
        *(f"INSERT INTO t VALUES ({n}, '{text}', 1.00005)" for n, text in enumerate(texts)),
    )
    (source,) = find_source(database.uri, table="t")
    (batch,) = source.scan(["a", "b"])
    schema = Schema((column("a", "numeric", bounds=[-1e300, 1e300], bins=2),))
    found = schema["a"].values(batch.column("a"))[0].tolist()
    assert found == [min(max(float(text), -1e300), 1e300) for text in texts]
    assert batch.column("b").to_pylist() == [Decimal("1.00005")] * len(texts)


def test_a_draft_knows_the_types_of_a_table_and_of_a_query(database):
    database.run("CREATE TABLE t (a int, p numeric(10,2), d timestamp, w text, x int[])")
    drafted = draft_schema(source_columns(database.uri, table="t"))
    assert drafted == draft_schema(source_columns(database.uri, sql="SELECT * FROM t"))
    kinds = [
        line.partition("#")[0].strip() for line in drafted.splitlines() if line.startswith("kind")
    ]
    assert kinds == [f'kind = "{x}"' for x in ("integer", "numeric", "datetime", "category")]
    assert "left out" in drafted


@pytest.mark.parametrize("options", [{"table": "t"}, {"sql": "SELECT a, b FROM t"}])
@pytest.mark.parametrize("cache", [True, False])
def test_all_sums_see_the_rows_that_were_there_when_the_table_was_opened(database, options, cache):
    database.run("CREATE TABLE t AS SELECT i % 2 AS a, i % 2 AS b FROM generate_series(1, 1000) i")
    table = database.open(TWO, cache=cache, **options)
    first, both = (Counts(TWO, (x,)) for x in ((("a", None),), (("a", None), ("b", None))))
    assert table.sum(first).tolist() == [500, 500]
    database.run("DELETE FROM t WHERE a = 0", "INSERT INTO t SELECT 1, 0 FROM t", "VACUUM t")
    assert table.sum(both).tolist() == [500, 0, 0, 500]


@pytest.mark.parametrize(
    "setting",
    [
        "random_page_cost = 0.01",  # an index seems best
        "enable_seqscan = off",
        "parallel_setup_cost = 0; parallel_tuple_cost = 0; max_parallel_workers_per_gather = 4",
        "synchronize_seqscans = on",
    ],
)
def test_columns_read_in_separate_scans_fit_together(database, setting):
    """Indexes, workers, dead rows and other readers do not change the order of the rows."""
    name = database.uri.rpartition("/")[2]
    database.run(
        "CREATE TABLE t AS SELECT (i <= 70000)::int AS a, (i <= 70000)::int AS b, "
        "repeat('x', 400) AS wide FROM generate_series(1, 130000) i",
        "DELETE FROM t WHERE ctid IN (SELECT ctid FROM t WHERE a = 0 LIMIT 10000)",
        "CREATE INDEX ON t (a)",
        "CREATE INDEX ON t (b DESC)",
        "VACUUM ANALYZE t",
        *(f"ALTER DATABASE {name} SET {each}" for each in setting.split("; ")),
    )
    table = database.open(TWO, table="t")
    by_a, by_b = (Counts(TWO, (((name, None),),)) for name in "ab")
    assert table.sum(by_a).tolist() == [50_000, 70_000]
    with psycopg.connect(database.uri) as other, other.cursor(name="slow") as cursor:
        cursor.execute("SELECT wide FROM t")  # another scan, which this one could join midway
        cursor.fetchmany(40_000)
        database.run("UPDATE t SET a = 1 - a WHERE ctid < '(100,0)'", "ANALYZE t")
        assert table.sum(by_b).tolist() == [50_000, 70_000]
    crossed = table.sum(Counts(TWO, ((("a", None), ("b", None)),)))
    assert crossed.tolist() == [50_000, 0, 0, 70_000]


def test_only_the_columns_of_the_schema_need_a_permission(database, postgres_server):
    user = f"reader_{os.urandom(4).hex()}"
    database.run(
        "CREATE TABLE t (a int, secret text)",
        "INSERT INTO t VALUES (3, 'x')",
        f"CREATE ROLE {user} LOGIN",
        f"GRANT SELECT (a) ON t TO {user}",
    )
    uri = postgres_server.uri(database.uri.rpartition("/")[2], user)
    try:
        assert open_table(uri, ONE, table="t").sum(ONE_COUNTS)[3] == 1
        secret = Schema((column("secret", "category", values=["x"], other="o"),))
        for options in ({"table": "t"}, {"sql": "SELECT secret FROM t"}):
            message = refusal(partial(open_table, uri, secret, **options), UnreadableData)
            assert message.endswith("grant SELECT on the columns of the schema")
    finally:
        gc.collect()
        database.run(f"DROP OWNED BY {user}", f"DROP ROLE {user}")


def test_tables_are_named_with_or_without_their_schema(database):
    odd = '"we""ird, name"'
    assert "tables: none" in refusal(database.open)
    database.run(f"CREATE TABLE {odd} AS SELECT 3 AS a")
    assert database.open().sum(ONE_COUNTS)[3] == 1  # the only one needs no name
    database.run("CREATE SCHEMA s", 'CREATE TABLE s."a.b" AS SELECT 4 AS a')
    assert database.open(table='we"ird, name').sum(ONE_COUNTS)[3] == 1
    assert database.open(table="s.a.b").sum(ONE_COUNTS)[4] == 1
    listed = 'tables: we"ird, name, s.a.b'
    assert refusal(database.open) == f"{database.label}: name one of its tables; {listed}"
    message = refusal(lambda: database.open(table="nope"), InvalidParameter)
    assert message == f"{database.label}: it has no table 'nope'; {listed}"
    database.run('CREATE SCHEMA "s.a"', 'CREATE TABLE "s.a".b (a int)')
    assert "several tables are called 's.a.b'" in refusal(lambda: database.open(table="s.a.b"))


def test_a_column_that_is_gone_is_refused_when_the_table_is_opened(database):
    database.run("CREATE TABLE t (a int)", "ALTER TABLE t RENAME a TO renamed")
    message = refusal(lambda: database.open(table="t"), UnreadableData)
    assert message.startswith(f"column 'a' of table 't' of {database.label} is not there")


def test_a_table_cannot_be_dropped_or_changed_while_it_is_open(database):
    database.run("CREATE TABLE t AS SELECT 3 AS a")
    table = database.open(table="t", cache=False)
    for change in ("DROP TABLE t", "ALTER TABLE t DROP a", "TRUNCATE t"):
        with pytest.raises(psycopg.errors.LockNotAvailable):
            database.run("SET lock_timeout = '50ms'", change)
    assert table.sum(ONE_COUNTS)[3] == 1
    del table
    gc.collect()
    database.run("DROP TABLE t")
    assert "it has no table 't'" in refusal(lambda: database.open(table="t"))


def test_a_table_that_another_program_has_locked_is_refused_after_a_while(database, monkeypatch):
    monkeypatch.setitem(postgres_reader._SETTINGS, "lock_timeout", "100ms")
    database.run("CREATE TABLE t AS SELECT 3 AS a")
    with psycopg.connect(database.uri) as other:
        other.execute("LOCK TABLE t IN ACCESS EXCLUSIVE MODE")
        message = refusal(lambda: database.open(table="t"), UnreadableData)
    assert message.endswith("another program has locked it; try again later")
    assert database.open(table="t").sum(ONE_COUNTS)[3] == 1


@pytest.mark.parametrize(
    ("sql", "message"),
    [
        ("SELECT DISTINCT a FROM t", "DISTINCT"),
        ("SELECT max(a) AS a FROM t", "an aggregate"),
        ("SELECT a FROM t GROUP BY a", "GROUP BY"),
        ("SELECT a - (SELECT min(a) FROM t) AS a FROM t", "an aggregate"),
        ("SELECT rank() OVER (ORDER BY a)::int AS a FROM t", "a window function"),
        ("SELECT a FROM t LIMIT 5", "LIMIT"),
        ("SELECT a FROM t OFFSET 5", "LIMIT"),
        ("SELECT a FROM t UNION SELECT a FROM t", "UNION"),
        ("SELECT a FROM t EXCEPT SELECT 3", "EXCEPT"),
        ("SELECT a FROM totals", "an aggregate"),
        ("SELECT a FROM t TABLESAMPLE system (50)", "TABLESAMPLE"),
        ("SELECT a FROM t FOR UPDATE", "FOR UPDATE"),
        (
            "WITH RECURSIVE r AS (SELECT 1 AS a UNION ALL SELECT a + 1 FROM r WHERE a < 5) TABLE r",
            "WITH RECURSIVE",
        ),
        ("SELECT (random() * 9)::int AS a FROM t", "random"),
        ("SELECT a FROM t WHERE random() < 0.5", "random"),
        ("SELECT a FROM t JOIN LATERAL odd(a) o ON o > 0", "the rows are made by odd"),
        ("SELECT nextval('numbers')::int AS a FROM t", "nextval"),
        ("DELETE FROM t", "the query cannot be run: it is not valid SQL"),
        ("WITH d AS (DELETE FROM t RETURNING a) SELECT a FROM d", "the query cannot be run"),
        ("SELECT a FROM t; SELECT 1", "the query cannot be run: it is not valid SQL"),
        ("SELECT 1 AS a) r; DELETE FROM t; SELECT * FROM (SELECT 1 AS a", "it is not valid SQL"),
        ("SELEC", "the query cannot be run: it is not valid SQL"),
        ("SELECT b FROM t", "the query cannot be run: a column in it does not exist"),
        ("SELECT a FROM u", "the query cannot be run: a table in it does not exist"),
        ("SELECT f(a) FROM t", "the query cannot be run: a function or an operator in it"),
    ],
)
def test_a_query_that_mixes_rows_or_does_not_run_is_refused_at_opening(database, sql, message):
    database.run(
        "CREATE TABLE t AS SELECT i % 9 AS a FROM generate_series(1, 100) i",
        "CREATE INDEX ON t (a)",
        "ANALYZE t",
        "CREATE VIEW totals AS SELECT sum(a)::int AS a FROM t",
        "CREATE SEQUENCE numbers",
        "CREATE FUNCTION odd(a int) RETURNS int AS $$BEGIN RETURN a; END$$ LANGUAGE plpgsql",
    )
    assert message in refusal(lambda: database.open(sql=sql), InvalidParameter)


SUBQUERY = "a subquery on a table inside an expression"
CATALOG = "a catalog of the server"
TWICE = "a table twice"


@pytest.mark.parametrize(
    ("sql", "message"),
    [
        ("SELECT cardinality(ARRAY(SELECT 1 FROM t)) AS a FROM t", SUBQUERY),
        (
            "SELECT o::int AS a FROM unnest(ARRAY(SELECT a FROM t)) WITH ORDINALITY x(v, o)",
            SUBQUERY,
        ),
        ("SELECT a FROM t WHERE a >= ALL (SELECT a FROM t)", SUBQUERY),
        ("SELECT a FROM t WHERE a NOT IN (SELECT a FROM u)", SUBQUERY),
        ("SELECT EXISTS (SELECT 1 FROM t WHERE id = 7)::int AS a FROM t", SUBQUERY),
        ("SELECT a FROM t WHERE EXISTS (SELECT 1 FROM u WHERE u.id = 7)", SUBQUERY),
        ("SELECT (SELECT u.a FROM u WHERE u.id = t.id) AS a FROM t", SUBQUERY),
        ("WITH x AS MATERIALIZED (SELECT a FROM t) SELECT ARRAY(TABLE x)::text AS a", SUBQUERY),
        ("SELECT c.reltuples::int AS a FROM t, pg_class c WHERE c.relname = 't'", CATALOG),
        ("SELECT length(feature_name) AS a FROM information_schema.sql_features", CATALOG),
        ("SELECT a FROM kept", "a materialized view"),
        ("SELECT last_value::int AS a FROM numbers", "a sequence"),
        ("SELECT (ctid::text::point)[1]::int AS a FROM t", "ctid, which tells where"),
        ("SELECT a FROM t WHERE ctid = '(0,1)'", "ctid, which tells where"),
        ("SELECT a FROM t WHERE xmin::text <> ''", "xmin, which tells where"),
        ("SELECT tableoid::int8 AS a FROM t", "tableoid, which tells where"),
        ("SELECT a FROM t UNION ALL SELECT a FROM t", TWICE),
        ("SELECT t.a FROM t JOIN t AS s ON s.a = t.a", TWICE),
        ("SELECT a FROM t WHERE a IN (SELECT a FROM t WHERE id = 7)", TWICE),
        ("SELECT a FROM parts UNION ALL SELECT a FROM low", TWICE),
        ("WITH x AS MATERIALIZED (SELECT a FROM t) TABLE x UNION ALL TABLE x", TWICE),
        ("SELECT length(table_to_xml('t', false, false, '')::text) AS a FROM t", "table_to_xml"),
        ("SELECT length(query_to_xml('TABLE t', false, false, '')::text) AS a", "query_to_xml"),
        ("SELECT length(schema_to_xml('public', true, true, '')::text) AS a", "schema_to_xml"),
        ("SELECT length(database_to_xml(true, true, '')::text) AS a", "database_to_xml"),
        ("SELECT pg_stat_get_live_tuples('t'::regclass)::int AS a FROM t", "pg_stat_get_live"),
        ("SELECT pg_relation_size('t')::int AS a FROM t", "pg_relation_size"),
        ('SELECT ("it\'s" + random() + "it\'s")::int AS a FROM t', "made by random"),
        ("SELECT (a ### 1) AS a FROM t", "made by operator ###"),
        ("SELECT (a OPERATOR(far.!!!) 1) AS a FROM t", "made by operator !!!"),
    ],
)
def test_a_query_that_mixes_rows_without_an_aggregate_is_refused_at_opening(database, sql, message):
    database.run(
        'CREATE TABLE t AS SELECT i % 9 AS a, i AS id, 0::float8 AS "it\'s" '
        "FROM generate_series(1, 100) i",
        "ALTER TABLE t ADD PRIMARY KEY (id)",
        "CREATE TABLE u AS SELECT a, id FROM t",
        "CREATE TABLE parts (a int) PARTITION BY RANGE (a)",
        "CREATE TABLE low PARTITION OF parts FOR VALUES FROM (0) TO (5)",
        "CREATE TABLE high PARTITION OF parts DEFAULT",
        "CREATE MATERIALIZED VIEW kept AS SELECT count(*)::int AS a FROM t",
        "CREATE SEQUENCE numbers",
        "CREATE SCHEMA far",
        "CREATE FUNCTION dice(int, int) RETURNS int LANGUAGE plpgsql AS 'BEGIN RETURN 1; END'",
        "CREATE OPERATOR ### (leftarg = int, rightarg = int, function = dice)",
        "CREATE OPERATOR far.!!! (leftarg = int, rightarg = int, function = dice)",
        "ANALYZE",
    )
    refused = refusal(lambda: database.open(sql=sql), InvalidParameter)
    assert message in refused


def test_a_query_may_filter_compute_order_join_and_unnest(database):
    database.run(
        "CREATE TABLE t AS SELECT i % 10 AS a, i AS id FROM generate_series(1, 1000) i",
        "CREATE TABLE u AS SELECT i % 500 AS id FROM generate_series(1, 3000) i",
        "CREATE TABLE no (a int)",
        "CREATE TABLE parts (a int, id int) PARTITION BY RANGE (id)",
        "CREATE TABLE low PARTITION OF parts FOR VALUES FROM (0) TO (200)",
        "CREATE TABLE high PARTITION OF parts DEFAULT",
        "INSERT INTO parts SELECT a, id FROM t WHERE id <= 500",
        "ANALYZE",
    )
    half = [50] * 10
    for sql, expected in (
        ("SELECT a FROM t WHERE id <= 500 ORDER BY a -- a remark", half),
        ("SELECT a FROM t WHERE id IN (SELECT id FROM u)", [49, *half[1:]]),
        ("WITH x AS (SELECT a + 0 AS a, id FROM t) SELECT x.a FROM x WHERE id <= 500", half),
        ("SELECT a FROM t WHERE EXISTS (SELECT 1 FROM u WHERE u.id = t.id)", [49, *half[1:]]),
        ("SELECT unnest(ARRAY[a, a]) AS a FROM t WHERE id <= 500", [100] * 10),
        ("SELECT a FROM t WHERE now() > '2000-01-01' AND 'random()' <> ''", [100] * 10),
        ("SELECT a FROM t WHERE id <= 500 UNION ALL SELECT 1 FROM u WHERE id < 0", half),
        ("SELECT a FROM t WHERE id <= 500 AND NOT EXISTS (SELECT 1 FROM no WHERE no.a = id)", half),
        ("WITH x AS MATERIALIZED (SELECT * FROM t) SELECT a FROM x WHERE id <= 500", half),
        ("SELECT a FROM t, generate_series(1, 2) WHERE id <= 250", half),
        ("SELECT (ARRAY(SELECT x FROM unnest(ARRAY[a]) x))[1] AS a FROM t WHERE id <= 500", half),
        ("SELECT a FROM parts", half),
        ("SELECT a FROM t WHERE id <= 500 AND pg_typeof(a) = 'int'::regtype", half),
    ):
        assert database.open(sql=sql).sum(ONE_COUNTS).tolist() == expected, sql


def test_a_view_may_make_one_row_for_each_person_but_not_new_rows_each_time(database):
    database.run(
        "CREATE TABLE visits AS SELECT i % 10 AS person FROM generate_series(1, 35) i",
        "CREATE VIEW people AS SELECT count(*)::int AS a FROM visits GROUP BY person",
        "CREATE VIEW dice AS SELECT (random() * 9)::int AS a FROM visits",
    )
    assert database.open(table="people").sum(ONE_COUNTS).tolist()[3:5] == [5, 5]
    assert "the rows are made by random" in refusal(lambda: database.open(table="dice"))


@pytest.mark.parametrize("cache", [True, False])
def test_a_row_that_makes_a_query_fail_is_not_quoted(database, cache):
    database.run("CREATE TABLE t AS SELECT i AS b FROM generate_series(-4711, 4711) i")
    for sql in ("SELECT 1 / b AS a FROM t", "SELECT ('4711' || b || 'x')::int AS a FROM t"):
        table = database.open(sql=sql, cache=cache)
        message = refusal(lambda table=table: table.sum(ONE_COUNTS), UnreadableData)
        assert message == f"the query of {database.label} {LOST}"


def test_an_interrupted_sum_leaves_the_table_usable(database):
    class Interrupted(Counts):
        def add(self, batch, out):
            raise KeyboardInterrupt

    database.run("CREATE TABLE t AS SELECT 3 AS a FROM generate_series(1, 300000)")
    table = database.open(table="t", cache=False)
    with pytest.raises(KeyboardInterrupt):
        table.sum(Interrupted(ONE, ((("a", None),),)))
    assert table.sum(ONE_COUNTS)[3] == 300_000


SEVERAL_BATCHES = (
    "CREATE TABLE t AS SELECT i % 2 AS a, i % 2 AS b, repeat('x', 100) AS wide "
    "FROM generate_series(1, 400000) i"
)
WIDE = Schema((*TWO.columns, column("wide", "category", values=["y"], other="o")))


class Slow(Counts):
    """Counts that wait for another thread in the middle of their first pass."""

    def __init__(self, schema, tables, meet):
        super().__init__(schema, tables)
        object.__setattr__(self, "meet", meet)

    def add(self, batch, out):
        super().add(batch, out)
        self.meet()


@pytest.mark.parametrize("threads", [1, 2])
def test_two_threads_that_sum_one_table_at_once_both_get_the_right_sum(database, threads):
    database.run(SEVERAL_BATCHES)
    table = database.open(WIDE, table="t", cache=False, threads=threads)
    begun, done, found = threading.Event(), threading.Event(), {}

    def meet():
        begun.set()
        done.wait(1)  # in vain: the other one has to wait

    def first():
        found["a"] = table.sum(Slow(WIDE, ((("a", None), ("wide", None)),), meet))

    def second():
        begun.wait()
        found["b"] = table.sum(Counts(WIDE, ((("b", None), ("wide", None)),)))
        done.set()

    both = [threading.Thread(target=each) for each in (first, second)]
    for each in both:
        each.start()
    for each in both:
        each.join()
    assert {name: x.tolist() for name, x in found.items()} == {
        "a": [0, 200_000, 0, 200_000],
        "b": [0, 200_000, 0, 200_000],
    }


def test_a_pass_within_a_pass_is_refused_and_the_first_one_goes_on(database):
    database.run(SEVERAL_BATCHES)
    (source,) = find_source(database.uri, table="t")
    first = source.scan(["a", "wide"])
    seen = next(first).num_rows
    message = refusal(lambda: next(source.scan(["b"])), UnreadableData)
    assert message == (
        f"another pass over {database.label} is not finished; read it to its end or close it, or "
        "open the table once more"
    )
    assert seen + sum(batch.num_rows for batch in first) == 400_000
    again = source.scan(["a", "wide"])
    next(again)
    again.close()  # one that is given up does not stand in the way
    assert sum(batch.num_rows for batch in source.scan(["b"])) == 400_000


def test_a_pass_that_a_thread_left_behind_is_refused_not_waited_for(database):
    database.run(SEVERAL_BATCHES)
    (source,) = find_source(database.uri, table="t")
    left = source.scan(["a", "wide"])
    thread = threading.Thread(target=lambda: next(left))
    thread.start()
    thread.join()
    assert "is not finished" in refusal(lambda: next(source.scan(["b"])), UnreadableData)
    left.close()


def test_rows_that_are_held_are_read_once_by_two_threads(database):
    database.run(SEVERAL_BATCHES)
    table = database.open(TWO, sql="SELECT a, b FROM t")
    source, found = table._source, []
    read, times = source._source.scan, []

    def count_reads(columns):
        times.append(1)
        time.sleep(0.2)
        return read(columns)

    source._source.scan = count_reads
    both = [
        threading.Thread(target=lambda: found.append(sum(x.num_rows for x in source.scan(["a"]))))
        for _ in range(2)
    ]
    for each in both:
        each.start()
    for each in both:
        each.join()
    assert (found, len(times)) == ([400_000] * 2, 1)


@pytest.mark.filterwarnings("ignore:This process.*is multi-threaded:DeprecationWarning")
def test_a_forked_process_may_not_use_the_connection_and_does_not_end_it(database):
    """The child ends as Python does, so that everything in it is cleared away."""
    database.run("CREATE TABLE t AS SELECT 3 AS a")
    code = f"""
        import os, sys
        from dpublish.aggregates.counts import Counts
        from dpublish.data.schema import Schema, column
        from dpublish.data.sources import open_table
        from dpublish.errors import UnreadableData

        schema = Schema((column("a", "integer", bounds=[0, 9]),))
        table = open_table({database.uri!r}, schema, table="t", cache=False)
        counts = Counts(schema, ((("a", None),),))
        child = os.fork()
        if not child:
            try:
                table.sum(counts)
            except UnreadableData as refused:
                print(refused, flush=True)
            del table
            sys.exit()
        os.waitpid(child, 0)
        print(table.sum(counts)[3])
    """
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", textwrap.dedent(code)],
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.stdout.splitlines() == [
        f"{database.label} was opened by another process, and a connection cannot be shared; open "
        "the table anew in this one",
        "1",
    ], done.stderr


@pytest.mark.parametrize("mode", ["fast", "immediate"])
def test_a_server_that_stops_is_reported_without_a_word_of_the_rows(
    database, postgres_server, mode
):
    class Stopping(Counts):
        def add(self, batch, out):
            super().add(batch, out)
            if postgres_server.is_up:
                postgres_server.stop(mode)
                postgres_server.is_up = False

    database.run(
        "CREATE TABLE t AS SELECT 3 AS a, repeat('x', 500) AS b FROM generate_series(1, 100000)"
    )
    schema = Schema((*ONE.columns, column("b", "category", values=["x"], other="o")))
    table, other = (database.open(schema, table="t", cache=False) for _ in range(2))
    kernel = ((("a", None), ("b", None)),)
    postgres_server.is_up = True
    try:
        message = refusal(lambda: table.sum(Stopping(schema, kernel)), UnreadableData)
        assert message == f"table 't' of {database.label} {LOST}"
        assert refusal(lambda: other.sum(Counts(schema, kernel))) == message
        message = refusal(lambda: database.open(table="t"), UnreadableData)
        assert message.endswith("no server listens there; check host and port")
    finally:
        postgres_server.start()
    assert database.open(table="t").sum(ONE_COUNTS)[3] == 100_000
    assert refusal(lambda: other.sum(Counts(schema, kernel)), UnreadableData).endswith(LOST)


@pytest.mark.parametrize(
    ("uri", "message"),
    [
        ("postgresql://{host}/no_such", "the server has no such database; check its name"),
        ("postgresql://ghost@{host}/postgres", "the server does not let this user in"),
        ("postgresql://127.0.0.1:1/x", "no server listens there; check host and port"),
        ("postgresql://no-such-host.invalid/x", "its host is unknown; check the name of the host"),
        ("postgresql:///x?service=nothing", "the service is not there; check PGSERVICEFILE"),
        ("postgresql://{host}/x?color=red", "the address is not as libpq wants it"),
    ],
)
def test_an_address_that_does_not_answer_says_what_to_do(
    postgres_server, uri, message, monkeypatch
):
    monkeypatch.setenv("PGUSER", "dpublish_owner")
    address = uri.format(host=f"127.0.0.1:{postgres_server.port}")
    assert message in refusal(lambda: open_table(address, ONE, table="t"), UnreadableData)


def test_a_read_only_server_with_time_limits_and_habits_is_read(database):
    name = database.uri.rpartition("/")[2]
    database.run(
        "CREATE TABLE t AS SELECT 'é' AS w, date '2024-02-03' AS d",
        *(
            f"ALTER DATABASE {name} SET {setting}"
            for setting in (
                "default_transaction_read_only = on",
                "default_transaction_isolation = 'read committed'",
                "statement_timeout = '5s'",
                "idle_in_transaction_session_timeout = '200ms'",
                "datestyle = 'German'",
                "client_encoding = 'LATIN1'",
            )
        ),
    )
    schema = Schema(
        (column("w", "category", values=["é", "e"]), column("d", "category", values=["2024-02-03"]))
    )
    kernel = Counts(schema, ((("w", None), ("d", None)),))
    tables = [database.open(schema, table="t"), database.open(schema, sql="SELECT * FROM t")]
    time.sleep(0.5)  # longer than the server lets others idle
    assert [table.sum(kernel).tolist() for table in tables] == [[1, 0], [1, 0]]
    session = find_source(database.uri, table="t")[0]._session
    for setting, value in (("statement_timeout", "0"), ("transaction_read_only", "on")):
        assert session.rows(f"SELECT current_setting('{setting}')") == [(value,)]
    assert session.rows("SELECT current_setting('transaction_isolation')") == [("repeatable read",)]


PASSWORD = "sEcReT-4711"


@pytest.fixture
def guarded(database, postgres_server):
    """A user of a server that demands passwords; yields its address without one."""
    user = f"guarded_{os.urandom(4).hex()}"
    rules = postgres_server.folder / "data" / "pg_hba.conf"
    before = rules.read_text()
    database.run(
        "CREATE TABLE t AS SELECT 3 AS a",
        f"CREATE ROLE {user} LOGIN PASSWORD '{PASSWORD}'",
        f"GRANT SELECT ON t TO {user}",
    )
    rules.write_text(f"host all {user} 127.0.0.1/32 scram-sha-256\n{before}")
    database.run("SELECT pg_reload_conf()")
    try:
        yield postgres_server.uri(database.uri.rpartition("/")[2], user)
    finally:
        gc.collect()
        rules.write_text(before)
        database.run("SELECT pg_reload_conf()", f"DROP OWNED BY {user}", f"DROP ROLE {user}")


def test_passwords_come_from_libpqs_own_files(guarded, tmp_path, monkeypatch):
    user, host, port, name = guarded.replace("@", "/").replace(":", "/").split("/")[3:]
    monkeypatch.setenv("PGPASSFILE", str(tmp_path / "pass"))
    (tmp_path / "pass").write_text(f"{host}:{port}:{name}:{user}:{PASSWORD}\n")
    (tmp_path / "pass").chmod(0o600)
    assert open_table(guarded, ONE, table="t").sum(ONE_COUNTS)[3] == 1
    monkeypatch.setenv("PGPASSFILE", str(tmp_path / "none"))
    monkeypatch.setenv("PGSERVICEFILE", str(tmp_path / "services"))
    (tmp_path / "services").write_text(
        f"[clinic]\nhost={host}\nport={port}\nuser={user}\npassword={PASSWORD}\ndbname={name}\n"
    )
    table = open_table("postgresql:///?service=clinic", ONE, table="t")
    assert table.sum(ONE_COUNTS)[3] == 1
    monkeypatch.setenv("PGSERVICE", "clinic")
    assert open_table("postgresql://", ONE, table="t").sum(ONE_COUNTS)[3] == 1
    for each in (table, find_source("postgresql://", table="t")[0]):
        assert PASSWORD not in repr(each) + str(vars(each))


def test_a_wrong_missing_or_expired_password_says_what_to_do(guarded, database, monkeypatch):
    user = guarded.partition("//")[2].partition("@")[0]
    monkeypatch.setenv("PGPASSFILE", "/nowhere")
    advice = "the password has expired; put it into a file that PGPASSFILE or PGSERVICE names"
    assert advice in refusal(lambda: open_table(guarded, ONE, table="t"), UnreadableData)
    monkeypatch.setenv("PGPASSWORD", "wrong-4711")
    assert advice in refusal(lambda: open_table(guarded, ONE, table="t"), UnreadableData)
    monkeypatch.setenv("PGPASSWORD", PASSWORD)
    assert open_table(guarded, ONE, table="t").sum(ONE_COUNTS)[3] == 1
    database.run(f"ALTER ROLE {user} VALID UNTIL '2020-01-01'")
    message = refusal(lambda: open_table(guarded, ONE, table="t"), UnreadableData)
    assert advice in message
    assert PASSWORD not in message


@pytest.mark.parametrize(
    "uri",
    [
        f"postgresql://ann:{PASSWORD}@127.0.0.1/db",
        f"postgresql://ann:{PASSWORD}/x@127.0.0.1/db",
        f"postgres://:{PASSWORD}@/db",
        f"postgresql://127.0.0.1/db?password={PASSWORD}",
        f"postgresql://127.0.0.1/db?sslmode=require&p%61ssword={PASSWORD}",
        f"postgresql://127.0.0.1:{PASSWORD}/db",
        f"postgresql://127.0.0.1/db#{PASSWORD}",
    ],
)
def test_an_address_with_a_password_is_refused_and_not_quoted(uri):
    for action in (lambda: open_table(uri, ONE, table="t"), lambda: source_columns(uri, table="t")):
        assert PASSWORD not in refusal(action, InvalidParameter)


def test_table_and_query_together_are_refused(database):
    message = refusal(lambda: database.open(table="t", sql="SELECT 1 AS a"), InvalidParameter)
    assert message == "give either a table or a query (sql), not both"


def test_a_release_from_postgresql_is_the_release_of_the_same_rows(database, tmp_path):
    rows = make_rows(3000)
    database.fill("people", rows)
    pq.write_table(arrow(rows), tmp_path / "people.parquet")
    schema = Schema((SCHEMA["letter"], SCHEMA["sign"]))
    tables = [
        open_table(tmp_path / "people.parquet", schema),
        database.open(schema, table="people"),
        database.open(schema, sql="SELECT * FROM people"),
    ]
    # With noise from a seed, which no ledger pays for.
    first, *others = (METHOD.release(x, budget=Budget.seeded(1), rng=seeded(7)) for x in tables)
    assert all(release == first for release in others)


def test_a_published_folder_names_neither_the_server_nor_its_user(database, tmp_path):
    database.fill("people", make_rows(100))
    table = database.open(Schema((SCHEMA["letter"], SCHEMA["sign"])), table="people")
    with Ledger.create(tmp_path / "books.db") as ledger:
        ledger.add("people", cap=5)
        publish(METHOD, table, tmp_path / "out", ledger=ledger, **PAID)
        assert ledger.status("people").spent == 1
    written = b"".join(x.read_bytes() for x in (tmp_path / "out").rglob("*") if x.is_file())
    for secret in ("postgresql://", "dpublish_owner", "127.0.0.1", database.uri.rpartition("/")[2]):
        assert secret.encode() not in written


def test_nothing_is_debited_if_opening_fails_and_the_debit_comes_before_the_first_row(
    database, tmp_path
):
    database.run("CREATE TABLE t AS SELECT 0 AS b, 'n' AS letter FROM generate_series(1, 10)")
    schema = Schema((SCHEMA["letter"], SCHEMA["sign"]))
    failing = "SELECT letter, (1 / b)::text AS sign FROM t"
    with Ledger.create(tmp_path / "books.db") as ledger:
        ledger.add("people", cap=5)
        refusal(lambda: database.open(schema, table="nope"))
        table = database.open(schema, sql=failing)
        assert ledger.status("people").spent == 0
        with pytest.raises(UnreadableData, match=LOST):
            publish(METHOD, table, tmp_path / "out", ledger=ledger, **PAID)
        assert ledger.status("people").spent == 1


def test_two_million_rows_take_little_memory(database):
    database.run(
        "CREATE TABLE t AS SELECT i % 10 AS a, md5(i::text) || md5((i + 1)::text) AS b "
        "FROM generate_series(1, 2000000) i"
    )
    code = f"""
        import resource
        from dpublish.data.schema import Schema, column
        from dpublish.data.sources import open_table
        from dpublish.aggregates.counts import Counts

        text = column("b", "category", values=["x"], other="o")
        schema = Schema((column("a", "integer", bounds=[0, 9]), text))
        table = open_table({database.uri!r}, schema, table="t", cache=False)
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        counted = table.sum(Counts(schema, ((("a", None), ("b", None)),)))
        after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        assert counted.sum() == 2_000_000
        print((after - before) // 1024)
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)], capture_output=True, text=True, check=True
    )
    assert int(done.stdout) < 120  # MB; the text alone has 128


def test_a_missing_driver_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "adbc_driver_postgresql.dbapi", None)
    with pytest.raises(UnreadableData, match=r'pip install "dpublish\[postgres\]"'):
        open_table("postgresql://127.0.0.1:1/x", ONE, table="t")


def test_the_drivers_are_not_loaded_for_files():
    code = "import dpublish.data.sources, sys; print([x for x in sys.modules if 'adbc' in x])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "['dpublish.data.engines.adbc_reader']"


@pytest.mark.parametrize("options", [{"table": "t"}, {"sql": "SELECT a FROM t"}])
def test_a_table_that_is_closed_may_be_changed_by_others(database, options):
    database.run("CREATE TABLE t (a int)", "INSERT INTO t VALUES (1)")
    change = ("SET lock_timeout = '1s'", "ALTER TABLE t ADD COLUMN IF NOT EXISTS more int")
    with database.open(**options), pytest.raises(psycopg.errors.LockNotAvailable):
        database.run(*change)
    database.run(*change)
