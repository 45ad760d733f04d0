"""Any database with an ADBC driver: types do not depend on rows, and files are not made."""

import gc
import sqlite3
import sys

import numpy as np
import pytest

from data.nasty_tables import SCHEMA, count_by_hand, make_rows
from dpublish.aggregates.counts import Counts
from dpublish.data.engines.adbc_reader import AdbcSource
from dpublish.data.schema import Schema, column
from dpublish.data.sources import find_source, open_table, source_columns
from dpublish.errors import InvalidParameter, UnreadableData

ALL = Counts(SCHEMA, (tuple((name, None) for name in SCHEMA.names),))
ONE = Schema((column("a", "integer", bounds=[0, 9]),))
ONE_COUNTS = Counts(ONE, ((("a", None),),))


@pytest.fixture(autouse=True)
def close_connections():
    yield
    gc.collect()


@pytest.fixture
def sqlite(tmp_path):
    def make(statement, rows=(), *more):
        connection = sqlite3.connect(tmp_path / "t.sqlite")
        for each in (statement, *more):
            if "?" in each:
                connection.executemany(each, rows)
            else:
                connection.execute(each)
        connection.commit()
        connection.close()
        return f"adbc:sqlite:{tmp_path / 't.sqlite'}"

    return make


def refusal(action, kind):
    with pytest.raises(kind) as refused:
        action()
    assert refused.value.__context__ is None
    assert "\n" not in str(refused.value)
    return str(refused.value)


@pytest.mark.parametrize("cache", [True, False], ids=["cached", "streamed"])
@pytest.mark.parametrize("size", [0, 1, 3000])
def test_a_table_and_a_query_count_as_one_would_by_hand(sqlite, size, cache):
    rows = make_rows(size)
    names = [*SCHEMA.names, "ignored"]
    address = sqlite(
        f"CREATE TABLE people ({', '.join(map('{!r}'.format, names))})",
        [[row[name] for name in names] for row in rows],
        "INSERT INTO people VALUES (?, ?, ?, ?, ?, ?)",
    )
    for options in ({"table": "people"}, {"sql": "SELECT * FROM people;"}):
        table = open_table(address, SCHEMA, cache=cache, **options)
        for _ in range(2):
            assert np.array_equal(ALL.split(table.sum(ALL))[0], count_by_hand(rows))
    long_name = address.replace("adbc:sqlite:", "adbc:adbc_driver_sqlite:")
    assert source_columns(long_name, table="people").names == names


FIRST_ROWS = ["7", 7, 7.5, None, b"7"]


@pytest.mark.parametrize("first", FIRST_ROWS, ids=repr)
def test_how_a_value_is_read_does_not_depend_on_the_rows_before_it(sqlite, first):
    """The driver guesses a type from the first 1024 rows, and fails on others behind them."""
    later = [1, 2.5, "x", None, 0.1 + 0.2, 1e300, 2**62, "é"]
    address = sqlite(
        "CREATE TABLE t (a INTEGER, n)",
        [(value, n) for n, value in enumerate([first] * 3000 + later)],
        "INSERT INTO t VALUES (?, ?)",
    )
    (source,) = find_source(address, table="t")
    assert [str(kind) for kind in source.header.types] == ["string", "string"]
    texts = [text for batch in source.scan(["a"]) for text in batch.column("a").to_pylist()]
    assert texts[3000:] == [
        "1", "2.5", "x", "", "0.30000000000000004", "1.0e+300", str(2**62), "é",
    ]  # fmt: skip
    assert set(texts[:3000]) == {"" if first is None else "7.5" if first == 7.5 else "7"}


def test_an_empty_table_has_the_same_types_as_a_full_one(sqlite):
    address = sqlite("CREATE TABLE t (a INTEGER)")
    empty = source_columns(address, table="t")
    assert open_table(address, ONE, table="t").sum(ONE_COUNTS).sum() == 0
    gc.collect()
    sqlite("INSERT INTO t VALUES (3)")
    assert source_columns(address, table="t") == empty
    assert open_table(address, ONE, table="t").sum(ONE_COUNTS)[3] == 1


def test_odd_names_are_taken_literally(sqlite):
    address = sqlite(
        'CREATE TABLE "we""ird, name" ("a" INT)', (), 'INSERT INTO "we""ird, name" VALUES (3)'
    )
    assert open_table(address, ONE, table='we"ird, name').sum(ONE_COUNTS)[3] == 1


def test_what_cannot_be_opened_is_refused_before_a_row_is_read(sqlite, tmp_path):
    address = sqlite("CREATE TABLE t (b INTEGER)")
    nowhere = tmp_path / "none.sqlite"
    for source, options, kind, message in (
        (f"adbc:sqlite:{nowhere}", {"table": "t"}, UnreadableData, f"there is no file {nowhere}"),
        (address, {"table": "u"}, UnreadableData, "table 'u' of adbc:sqlite cannot be read"),
        (address, {"table": "t"}, UnreadableData, "column 'a' of table 't' of adbc:sqlite is not"),
        (address, {"sql": "SELEC"}, UnreadableData, "the query of adbc:sqlite cannot be read"),
        (address, {"sql": "DROP TABLE t"}, UnreadableData, "the query of adbc:sqlite cannot"),
        (address, {}, InvalidParameter, "name a table, or give a query"),
        (address, {"table": "t", "sql": "SELECT 1"}, InvalidParameter, "name a table, or give"),
        ("adbc:nosuch:x", {"table": "t"}, UnreadableData, "adbc:nosuch cannot be opened"),
        ("adbc:../evil:x", {"table": "t"}, InvalidParameter, "the driver of an adbc: address"),
        ("adbc:", {"table": "t"}, InvalidParameter, "write adbc:DRIVER:ADDRESS"),
        ("adbc:profile:nosuch", {"table": "t"}, UnreadableData, "adbc:profile cannot be opened"),
    ):
        action = lambda source=source, options=options: open_table(source, ONE, **options)  # noqa: E731
        assert refusal(action, kind).startswith(message)
    assert not nowhere.exists()


def test_databases_with_a_door_of_their_own_are_sent_there(postgres_database):
    message = refusal(
        lambda: open_table(f"adbc:postgresql:{postgres_database}", ONE, table="t"), InvalidParameter
    )
    assert message == "open PostgreSQL by its address, postgresql://user@host/database"


@pytest.mark.parametrize(
    "address",
    [
        "adbc:snowflake:ann:sEcReT@account/db",
        "adbc:flightsql:grpc://ann:sEcReT@host",
        "adbc:flightsql:grpc://host?password=sEcReT",
        "adbc:mssql:Server=host;Pwd=sEcReT",
    ],
)
def test_an_address_with_a_password_is_refused_and_not_quoted(address):
    message = refusal(lambda: open_table(address, ONE, table="t"), InvalidParameter)
    assert message.startswith("an address must not hold a password or a key")
    assert "sEcReT" not in message


def test_a_row_that_makes_a_query_fail_is_not_quoted(sqlite):
    address = sqlite("CREATE TABLE t (b)", [("4711 x",)], "INSERT INTO t VALUES (?)")
    table = open_table(address, ONE, sql="SELECT json_extract(b, '$') AS a FROM t")
    message = refusal(lambda: table.sum(ONE_COUNTS), UnreadableData)
    assert message == (
        "the query of adbc:sqlite could not be read to its end; check that all of it can be read"
    )


def test_a_driver_that_guesses_types_is_refused_when_it_shows(sqlite):
    import adbc_driver_sqlite.dbapi as adbc

    address = sqlite("CREATE TABLE t (a)", (), "INSERT INTO t VALUES ('3')")
    connection = adbc.connect(address.removeprefix("adbc:sqlite:"))
    source = AdbcSource(connection, '"t"', "table 't'", is_text=False)
    with pytest.raises(UnreadableData, match="other types with the rows than without them"):
        list(source.scan(["a"]))


def test_a_missing_driver_manager_says_what_to_install(sqlite, monkeypatch):
    address = sqlite("CREATE TABLE t (a)")
    monkeypatch.setitem(sys.modules, "adbc_driver_manager.dbapi", None)
    with pytest.raises(UnreadableData, match=r'pip install "dpublish\[postgres\]"'):
        open_table(address, ONE, table="t")
