"""Types that DuckDB guesses from rows: refused, for one row would change how all are read."""

import duckdb
import pytest

from dpublish.aggregates.counts import Counts
from dpublish.data.schema import Schema, column
from dpublish.data.sources import open_table
from dpublish.errors import InvalidParameter

PRICES = Schema((column("a", "category", values=["1.50", "2.50"], other="other"),))
COUNTS = Counts(PRICES, ((("a", None),),))
EXACT = "read_csv('{}', auto_detect = false, header = true, columns = {{'a': 'VARCHAR'}})"
GUESSING = [
    "FROM '{}'",
    "FROM read_csv('{}')",
    "FROM read_csv_auto('{}')",
    "FROM read_csv('{}', all_varchar = true)",
    "WITH t AS (FROM '{}') SELECT CAST(a AS VARCHAR) AS a FROM t WHERE a IS NOT NULL",
    f"FROM {EXACT} UNION ALL FROM '{{}}'",
]


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("a\n" + "1.50\n" * 40)
    (tmp_path / "t.json").write_text('{"a": "1.50"}\n')
    return path


def test_one_row_would_change_all_others(path):
    """What is guarded against: DuckDB by itself reads 1.50 as a number unless an x is there."""
    assert set(duckdb.sql(f"FROM '{path}'").fetchall()) == {(1.5,)}
    path.write_text(path.read_text() + "x\n")
    assert set(duckdb.sql(f"FROM '{path}'").fetchall()) == {("1.50",), ("x",)}


@pytest.mark.parametrize("query", GUESSING)
def test_a_query_that_guesses_is_refused(path, query):
    with pytest.raises(InvalidParameter, match="DuckDB guesses from the rows"):
        open_table(None, PRICES, sql=query.format(path, path))


@pytest.mark.parametrize("query", ["FROM '{}'", "FROM read_json('{}')", "FROM read_ndjson('{}')"])
def test_a_query_that_guesses_from_json_is_refused(path, query):
    with pytest.raises(InvalidParameter, match="DuckDB guesses from the rows"):
        open_table(None, PRICES, sql=query.format(path.with_suffix(".json")))


def test_a_query_that_is_told_all_types_is_read(path):
    query = f"FROM {EXACT}".format(path)
    assert open_table(None, PRICES, sql=query).sum(COUNTS).tolist() == [40, 0, 0]
    json = path.with_suffix(".json")
    query = f"FROM read_json('{json}', auto_detect = false, columns = {{'a': 'VARCHAR'}})"
    assert open_table(None, PRICES, sql=query).sum(COUNTS).tolist() == [1, 0, 0]


def test_a_relation_over_csv_is_refused(path):
    connection = duckdb.connect()
    for relation in (connection.read_csv(str(path)), connection.sql(f"FROM '{path}'")):
        with pytest.raises(InvalidParameter, match="DuckDB guesses from the rows"):
            open_table(relation.filter("a IS NOT NULL"), PRICES)


def test_a_view_over_csv_is_refused_and_a_table_made_from_it_is_not(path, tmp_path):
    database = tmp_path / "t.duckdb"
    with duckdb.connect(str(database)) as connection:
        connection.sql(f"CREATE VIEW guessed AS FROM '{path}'")
        connection.sql(f"CREATE TABLE kept AS FROM read_csv('{path}', all_varchar = true)")
    for options in ({"table": "guessed"}, {"sql": "FROM guessed"}):
        with pytest.raises(InvalidParameter, match="DuckDB guesses from the rows"):
            open_table(database, PRICES, **options)
    assert open_table(database, PRICES, table="kept").sum(COUNTS).tolist() == [40, 0, 0]
