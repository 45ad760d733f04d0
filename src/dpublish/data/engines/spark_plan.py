"""Refuse a plan of Spark's that makes a row from several records, or never the same rows.

The records to protect are the rows of the DataFrame, and a row more or less in its tables must
change one of them at most.  The plan is walked as it was analyzed, before Spark looks at any
row, with the plans of views, of common table expressions and of subqueries.  Steps that are
not known are refused, too.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from dpublish.data.engines.source import quietly
from dpublish.errors import InvalidParameter

IGNORING = ("ignoreCorruptFiles", "ignoreMissingFiles")
"""What lets Spark leave out files, or their rest, and answer with a part of the rows."""

_PLAIN = {
    "CTERelationDef",
    "DeserializeToObject",
    "Filter",
    "Generate",
    "Join",
    "LateralJoin",
    "MapElements",
    "MapInArrow",
    "MapInPandas",
    "MapPartitions",
    "MapPartitionsInR",
    "Project",
    "PythonMapInArrow",
    "RebalancePartitions",
    "Repartition",
    "RepartitionByExpression",
    "ResolvedHint",
    "SerializeFromObject",
    "Sort",
    "SubqueryAlias",
    "TypedFilter",
    "Union",
    "UnresolvedHint",
    "View",
    "WithCTE",
}
_MIXING = {
    "Aggregate": "an aggregate, GROUP BY or DISTINCT",
    "CollectMetrics": "an observation, which shows numbers of rows",
    "Deduplicate": "DISTINCT or dropDuplicates",
    "Distinct": "DISTINCT or UNION",
    "Except": "EXCEPT",
    "Expand": "ROLLUP, CUBE, GROUPING SETS or UNPIVOT",
    "GlobalLimit": "LIMIT",
    "Intersect": "INTERSECT",
    "LocalLimit": "LIMIT",
    "Offset": "OFFSET",
    "Sample": "TABLESAMPLE or sample()",
    "Tail": "tail()",
    "UnionLoop": "WITH RECURSIVE",
    "Window": "a window function",
}
_ONE_RECORD = "the plan of a Spark table must make each row from one record, but has"
_ADVICE = "select plain rows, or save one row for each person and open what was saved"
_NAMELESS = re.compile(r"#\d+L?")
_INFERRING = (
    "JsonFileFormat",
    "XmlFileFormat",
    "JsonTable",
)  # their types come from rows if none are given
_V2_FILES = "org.apache.spark.sql.execution.datasources.v2."


def check_plan(data: Any, label: str) -> None:
    """Refuse a plan that mixes rows, gives other rows when it is run anew, or leaves some out."""
    if data.isStreaming:
        raise InvalidParameter(f"{label} is a stream of Spark's own; give a table")
    quietly(lambda: _check(data, label), _unplanned(label))


def list_files(data: Any, label: str) -> tuple[str, ...]:
    """List the files that a plan reads, those behind subqueries among them."""

    def look() -> tuple[str, ...]:
        nodes = _walk(data._jdf.queryExecution().analyzed())
        found = [path for node in nodes for path in _Leaf(node).files()]
        return tuple(dict.fromkeys((*found, *data.inputFiles())))

    files: tuple[str, ...] = quietly(
        look, f"the files of {label} cannot be listed; check that they are there"
    )
    return files


def _unplanned(label: str) -> str:
    return f"the plan of {label} cannot be made by Spark; check that its parts are still there"


def _check(data: Any, label: str) -> None:
    nodes = list(_walk(data._jdf.queryExecution().analyzed()))
    for node in nodes:
        _check_step(node, label)
    _check_unions(nodes, data.sparkSession.sparkContext._jvm)
    for node in nodes:
        _Leaf(node).check()
    now = data.select("*")._jdf.queryExecution()  # a plan remembers what was cached before
    if any(_name(node) == "InMemoryRelation" for node in _walk(now.withCachedData())):
        raise InvalidParameter(
            f"{label} is cached, and what Spark loses of it would be read from files that may "
            "have changed; call unpersist() first, or save it and open what was saved"
        )


# --- Steps ------------------------------------------------------------------------------------


def _check_step(node: Any, label: str) -> None:
    if not node.deterministic():
        raise InvalidParameter(
            f"{label} is made by a random function, so that every pass would read other rows; "
            "save it first, and open what was saved"
        )
    name = _name(node)
    if name in _MIXING or (name not in _PLAIN and node.children().nonEmpty()):
        told = _MIXING.get(name, f"a step {name}, which is not known to keep rows apart")
        raise InvalidParameter(f"{_ONE_RECORD} {told}; {_ADVICE}")
    if node.subqueries().nonEmpty() and any(map(_has_scalar, _items(node.expressions()))):
        raise InvalidParameter(f"{_ONE_RECORD} a subquery that yields a value; {_ADVICE}")


def _has_scalar(expression: Any) -> bool:
    if _name(expression) == "ScalarSubquery":
        return True
    return any(map(_has_scalar, _items(expression.children())))


def _check_unions(nodes: Sequence[Any], jvm: Any) -> None:
    """Refuse the same records twice: a table that is put together with itself."""
    named = {node.id(): node for node in nodes if _name(node) == "CTERelationDef"}
    for node in nodes:
        if _name(node) != "Union":
            continue
        seen = set[str]()
        for part in _items(node.children()):
            found = set(_tables(part, named, jvm))
            if seen & found:
                raise InvalidParameter(
                    "a Spark table must hold each record once, but its plan has UNION of a table "
                    "with itself; select the rows by one condition"
                )
            seen |= found


def _tables(plan: Any, named: dict[int, Any], jvm: Any) -> Iterator[str]:
    """Yield a name for each table or file below a plan, also behind named subqueries."""
    for node in _walk(plan):
        if _name(node) == "CTERelationRef" and node.cteId() in named:
            yield from _tables(named[node.cteId()].child(), named, jvm)
        elif node.children().isEmpty():
            yield from _Leaf(node).tables(jvm)


def _walk(plan: Any) -> Iterator[Any]:
    """Yield all steps of a plan, and of its subqueries."""
    yield plan
    for part in (*_items(plan.children()), *_items(plan.subqueries())):
        yield from _walk(part)


def _items(sequence: Any) -> Iterator[Any]:
    return (sequence.apply(index) for index in range(sequence.size()))


def _name(item: Any) -> str:
    name: str = item.getClass().getSimpleName()
    return name.rstrip("$")


# --- Files and tables -------------------------------------------------------------------------


@dataclass(frozen=True)
class _Leaf:
    """A step that reads a table; other steps have no files."""

    node: Any

    def files(self) -> tuple[str, ...]:
        """List its files."""
        index = self._index()
        return () if index is None else tuple(index.inputFiles())

    def tables(self, jvm: Any) -> Iterator[str]:
        """Yield a name for what it reads, by which the same is known again."""
        name = _name(self.node)
        if name == "OneRowRelation":
            return
        if name == "LocalRelation":  # not by what is in it, which is private
            yield f"rows {jvm.java.lang.System.identityHashCode(self.node.data())}"
        elif name == "LogicalRDD":
            yield f"rdd {self.node.rdd().id()}"
        elif self._index() is not None:
            yield from self.files()
        else:
            yield _NAMELESS.sub("", self.node.toString())

    def check(self) -> None:
        """Refuse files that may be left out, and types that depend on rows."""
        options = self._options()
        for name in IGNORING:
            if options.get(name.lower()) == "true":
                raise InvalidParameter(
                    f"the plan reads files with {name}=true, so that some rows would be left out "
                    "unnoticed; read them without this option"
                )
        if options.get("mode") == "dropmalformed":
            raise InvalidParameter(
                "the plan reads files with mode=DROPMALFORMED, so that some rows would be left "
                "out unnoticed; read them with mode=FAILFAST or PERMISSIVE"
            )
        if options.get("inferschema") == "true" or self._infers():
            raise InvalidParameter(
                "the plan reads files whose types Spark takes from their rows, so that one row "
                "would decide how others are read; read CSV files with a schema of your own, and "
                "JSON or XML files as a table of the catalog with declared columns"
            )

    def _infers(self) -> bool:
        if not self._is_v1():
            return self._index() is not None and _name(self._table()) in _INFERRING
        name = _name(self.node.relation().fileFormat())
        return name in _INFERRING and self.node.catalogTable().isEmpty()

    def _options(self) -> dict[str, str]:
        if self._is_v1():
            pairs = _items(self.node.relation().options().toSeq())
            return {pair._1().lower(): str(pair._2()).lower() for pair in pairs}
        if self._index() is not None:
            options = self._table().options()
            return {str(name).lower(): str(options[name]).lower() for name in options}
        return {}

    def _index(self) -> Any:
        """Return Spark's list of files, if there is one."""
        if self._is_v1():
            return self.node.relation().location()
        table = self._table()
        is_files = table is not None and table.getClass().getName().startswith(_V2_FILES)
        return table.fileIndex() if is_files else None

    def _is_v1(self) -> bool:
        if _name(self.node) != "LogicalRelation":
            return False
        return _name(self.node.relation()) == "HadoopFsRelation"

    def _table(self) -> Any:
        return self.node.table() if _name(self.node) == "DataSourceV2Relation" else None
