"""Refuse a query of PostgreSQL's that makes a row from several records, or never the same rows.

The records to protect are the rows of the result, and a row more or less in the database must
change few of them.  What the server would do is read from EXPLAIN, which reads no row.  Its plan
depends on statistics about the rows, so it is made with those steps switched off that the
planner may take or leave; what remains is there because the query says so.

Refused are steps that put records together, subqueries that are computed from a table (ARRAY,
EXISTS, ALL ... in an expression), a table that is read twice, what is no table of records
(catalogs, sequences, materialized views), where a row is stored (ctid, xmin ...), and functions
of the server that read tables by themselves.  Left to the owner's word are joins of different
tables, IN (SELECT ...) and EXISTS as joins, and what functions, operators and casts of the
owner's own do, apart from their declared volatility.
"""

import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple, Protocol

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
_SYSTEM_COLUMNS = frozenset({"ctid", "xmin", "cmin", "xmax", "cmax", "tableoid"})
# Names stand in a plan as they are, expressions with names that are quoted where necessary.
_NAMES = frozenset(
    {"Node Type", "Relation Name", "Schema", "Alias", "Index Name", "CTE Name", "Subplan Name"}
    | {"Function Name"}
)
# Literals and quoted names may hold anything, each other's quotes too, so they are read in turn.
_TOKEN = re.compile(
    r"""'(?:[^']|'')*'"""
    r"""|(?P<name>"(?:[^"]|"")+"|[A-Za-z_][\w$]*)(?P<called>\s*\()?"""
    r"""|(?P<operator>[-+*/<>=~!@#%^&|`?]+)"""
)
_VOLATILE_FUNCTIONS = """
    SELECT DISTINCT proname::text FROM pg_proc
    WHERE provolatile = 'v' AND proname IN ({names}) ORDER BY 1"""
_VOLATILE_OPERATORS = """
    SELECT DISTINCT oprname::text FROM pg_operator o JOIN pg_proc p ON p.oid = o.oprcode
    WHERE provolatile = 'v' AND oprname IN ({names}) ORDER BY 1"""
# Functions of the server and of its extensions that look at more than their arguments.
_READING_FUNCTIONS = r"""
    SELECT DISTINCT proname::text FROM pg_proc p JOIN pg_namespace n ON n.oid = p.pronamespace
    WHERE provolatile <> 'i' AND proname IN ({names}) AND (
        'regclass'::regtype = ANY (proargtypes) OR 'refcursor'::regtype = ANY (proargtypes)
        OR proname ~ '_to_xml(_and_xmlschema|schema)?$'
        OR proname ~ '^(crosstab\d*|connectby|xpath_table|ts_stat|dblink.*|row_security_active)$'
        OR (nspname = 'pg_catalog' AND proname ~ '^(pg|txid|lo)_'
            AND proname NOT IN ('pg_typeof', 'pg_collation_for')))
    ORDER BY 1"""
_NO_RECORDS = """
    SELECT relkind::text FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
    WHERE (nspname::text, relname::text) IN ({names}) AND relkind IN ('m', 'S') ORDER BY 1"""


class Explaining(Protocol):
    """A session with a database."""

    def run(self, statement: str) -> None:
        """Run a statement that returns no rows."""
        ...

    def rows(self, query: str, about: str = ..., *, use_copy: bool = ...) -> list[Any]:
        """Run a query about names and types, and return what it finds."""
        ...


class _Words(NamedTuple):
    """What the expressions of a plan consist of."""

    columns: set[str]
    functions: set[str]
    operators: set[str]


def refuse_mixed_rows(session: Explaining, query: str) -> None:
    """Refuse a query that makes a row from several records, or several rows by reading twice."""
    plan = _explain(session, query)
    _refuse_mixing_steps(plan)
    _refuse_subqueries(plan)
    _refuse_other_relations(session, plan)
    _refuse_second_scans(plan)
    words = _read_words(_texts(plan))
    if hidden := sorted(words.columns & _SYSTEM_COLUMNS):
        raise _mixed(f"{', '.join(hidden)}, which tells where or when a row was stored")
    if reading := _find(session, _READING_FUNCTIONS, words.functions):
        raise _mixed(f"{', '.join(reading)}, which may read more than one record")


def refuse_changing_rows(session: Explaining, query: str) -> None:
    """Refuse a query whose rows may differ from scan to scan, by what computes them.

    Functions and operators are known by name: one that is VOLATILE stands for all of that name.
    """
    words = _read_words(_texts(_explain(session, query)))
    changing = _find(session, _VOLATILE_FUNCTIONS, words.functions)
    changing += [f"operator {x}" for x in _find(session, _VOLATILE_OPERATORS, words.operators)]
    if changing:
        raise InvalidParameter(
            f"the rows are made by {', '.join(changing)}, which may give another value each time "
            "(VOLATILE); leave it out, or declare it STABLE if it is"
        )


def _mixed(reason: str) -> InvalidParameter:
    return InvalidParameter(
        f"the query must make each row from one record, but has {reason}; select plain rows, or "
        "name a view of one row for each person with table="
    )


def _refuse_mixing_steps(plan: Any) -> None:
    for step in _steps(plan):
        if step["Node Type"] in _MIXING:
            raise _mixed(_MIXING[step["Node Type"]])


def _refuse_subqueries(plan: Any) -> None:
    """Refuse subqueries in expressions that read a table; WITH and joins are no such ones."""
    for step in _steps(plan):
        is_inside = step.get("Parent Relationship") in ("InitPlan", "SubPlan")
        is_with = step.get("Subplan Name", "").startswith("CTE ")
        if is_inside and not is_with and any(_scanned(part) for part in _steps(step)):
            raise _mixed(
                "a subquery on a table inside an expression (ARRAY, EXISTS, ALL, NOT IN ...)"
            )


def _refuse_other_relations(session: Explaining, plan: Any) -> None:
    """Refuse relations whose rows are no records, or are made from several."""
    relations = (step for step in _steps(plan) if "Relation Name" in step)
    scanned = sorted({(step["Schema"], step["Relation Name"]) for step in relations})
    if any(schema == "information_schema" or schema.startswith("pg_") for schema, _ in scanned):
        raise _mixed("a catalog of the server, which knows about all rows")
    pairs = ", ".join(f"({quote_text(schema)}, {quote_text(name)})" for schema, name in scanned)
    if pairs and (kinds := session.rows(_NO_RECORDS.format(names=pairs))):
        raise _mixed({"m": "a materialized view", "S": "a sequence"}[kinds[0][0]])


def _refuse_second_scans(plan: Any) -> None:
    """Refuse to read a table twice; partitions are tables of their own."""
    times = Counter(_scanned(step) for step in _steps(plan))
    times.pop(None, None)
    if any(number > 1 for number in times.values()):
        raise _mixed("a table twice (UNION ALL or a join with itself)")


def _scanned(step: Any) -> tuple[str, ...] | None:
    """Return what a step scans: a relation, or what a WITH made."""
    if "Relation Name" in step:
        return step["Schema"], step["Relation Name"]
    return (step["CTE Name"],) if "CTE Name" in step else None


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
    """Walk through all expressions of a plan."""
    if isinstance(item, str):
        yield item
    elif isinstance(item, list):
        for part in item:
            yield from _texts(part)
    elif isinstance(item, dict):
        if "Function Name" in item:
            yield f"{_quote(item['Function Name'])}("
        for key, part in item.items():
            if key not in _NAMES:
                yield from _texts(part)


def _quote(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _read_words(texts: Iterable[str]) -> _Words:
    words = _Words(set(), set(), set())
    for token in (token for text in texts for token in _TOKEN.finditer(text)):
        if name := token["name"]:
            plain = name[1:-1].replace('""', '"') if name.startswith('"') else name.lower()
            (words.functions if token["called"] else words.columns).add(plain)
        elif token["operator"]:
            words.operators.add(token["operator"])
    return words


def _find(session: Explaining, query: str, names: set[str]) -> list[str]:
    listed = ", ".join(map(quote_text, sorted(names)))
    return [name for (name,) in session.rows(query.format(names=listed))] if listed else []
