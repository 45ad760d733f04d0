"""Refuse a query of PostgreSQL's that makes a row from several records, or never the same rows.

The records to protect are the rows of the result, and a row more or less in the database must
change one of them at most.  What the server would do is read from EXPLAIN, which reads no row.
Its plan depends on statistics about the rows, so it is made with those steps switched off that
the planner may take or leave; what remains is there because the query says so.
"""

import json
import re
from collections.abc import Iterator
from typing import Any, Protocol

from dpublish.data.engines.duckdb_reader import quote_text
from dpublish.errors import InvalidParameter

_MIXING = {
    "Aggregate": "an aggregate, GROUP BY, DISTINCT or UNION",
    "Group": "GROUP BY",
    "Unique": "DISTINCT or UNION",
    "WindowAgg": "a window function",
    "Limit": "LIMIT, OFFSET or an aggregate",
    "SetOp": "INTERSECT or EXCEPT",
    "Recursive Union": "WITH RECURSIVE",
    "LockRows": "FOR UPDATE or FOR SHARE",
    "ModifyTable": "a change to a table",
    "Sample Scan": "TABLESAMPLE",
    "Foreign Scan": "a foreign table, whose own plan is not seen",
    "Custom Scan": "a step of an extension, which is not known",
}
# To join with what IN (SELECT ...) finds, the planner may first make that distinct, or not.
_CHOICES = ("hashagg", "sort", "incremental_sort", "indexscan", "indexonlyscan", "mergejoin")
_LITERAL = re.compile(r"'(?:[^']|'')*'")
_CALL = re.compile(r'("(?:[^"]|"")+"|[A-Za-z_][\w$]*)\s*\(')


class Explaining(Protocol):
    """A session with a database."""

    def run(self, statement: str) -> None:
        """Run a statement that returns no rows."""
        ...

    def rows(self, query: str, about: str = ..., *, use_copy: bool = ...) -> list[Any]:
        """Run a query about names and types, and return what it finds."""
        ...


def refuse_mixed_rows(session: Explaining, query: str) -> None:
    """Refuse a query that makes a row from several records."""
    for step in _steps(_explain(session, query)):
        if step["Node Type"] in _MIXING:
            raise InvalidParameter(
                "the query must make each row from one record, but has "
                f"{_MIXING[step['Node Type']]}; select plain rows, or name a view of one row for "
                "each person with table="
            )


def refuse_changing_rows(session: Explaining, query: str) -> None:
    """Refuse a query whose rows may differ from scan to scan, by the functions that it calls."""
    texts = _texts(_explain(session, query))
    called = sorted({name for text in texts for name in _calls(text)})
    if called and (changing := _find_volatile(session, called)):
        raise InvalidParameter(
            f"the rows are made by {', '.join(changing)}, which may give another value each time "
            "(VOLATILE); leave it out, or declare it STABLE if it is"
        )


def _explain(session: Explaining, query: str) -> Any:
    session.run("SAVEPOINT explaining")
    for choice in _CHOICES:
        session.run(f"SET LOCAL enable_{choice} = off")
    told = session.rows(
        f"EXPLAIN (FORMAT JSON, VERBOSE, COSTS OFF) {query}", "the query", use_copy=False
    )
    session.run("ROLLBACK TO SAVEPOINT explaining")
    text = told[0][0]
    return (json.loads(text) if isinstance(text, str) else text)[0]["Plan"]


def _steps(plan: Any) -> Iterator[Any]:
    yield plan
    for part in plan.get("Plans", ()):
        yield from _steps(part)


def _texts(item: Any) -> Iterator[str]:
    """Walk through all texts of a plan, among them all expressions."""
    if isinstance(item, str):
        yield item
    elif isinstance(item, list):
        for part in item:
            yield from _texts(part)
    elif isinstance(item, dict):
        if "Function Name" in item:
            yield f"{item['Function Name']}("
        for part in item.values():
            yield from _texts(part)


def _calls(text: str) -> Iterator[str]:
    for name in _CALL.findall(_LITERAL.sub("''", text)):
        yield name[1:-1].replace('""', '"') if name.startswith('"') else name.lower()


def _find_volatile(session: Explaining, names: list[str]) -> list[str]:
    listed = ", ".join(map(quote_text, names))
    found = session.rows(
        "SELECT DISTINCT proname::text FROM pg_proc WHERE provolatile = 'v' "
        f"AND proname IN ({listed}) ORDER BY 1"
    )
    return [name for (name,) in found]
