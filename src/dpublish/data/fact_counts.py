"""Count the rows that contradict what a schema states.  For the owner alone: exact counts.

Nothing here is private, and no release ever looks: statements are public, and stay so only if
the rows have no say in them.
"""

from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from dpublish.data.column import Column
from dpublish.data.column_function import ColumnFunction, PartOfDate, to_row_values
from dpublish.data.schema import Schema
from dpublish.data.statements import Combination, KnownTotal, Statement
from dpublish.types import BoolArray, IntArray

Fact = Combination | KnownTotal | ColumnFunction


@dataclass(frozen=True)
class FactCount:
    """How many rows a statement meets.

    Attributes:
        fact: What is stated.
        rows: Of a known total, the rows that it counts; else the rows that contradict it.
    """

    fact: Fact
    rows: int

    @property
    def is_contradicted(self) -> bool:
        """Whether the rows say otherwise."""
        return self.rows != self.fact.count if isinstance(self.fact, KnownTotal) else self.rows > 0


def stated_facts(schema: Schema) -> tuple[Fact, ...]:
    """List what the owner states; parts of dates are what they are by themselves."""
    functions = [each for each in schema.functions if not isinstance(each, PartOfDate)]
    return (*functions, *schema.impossible, *schema.totals)


class FactCounts:
    """Counts while rows go by."""

    def __init__(self, schema: Schema) -> None:
        self._schema = schema
        self._rows = dict.fromkeys(stated_facts(schema), 0)
        self._unread: set[Fact] = set()

    def expect(self, names: Collection[str]) -> None:
        """Leave out what cannot be counted where only the columns `names` are read."""
        for fact in self._rows:
            read = {self._schema[name].source_name for name in _columns(fact)}
            if not names or not read <= set(names):
                self._unread.add(fact)

    def add(self, batch: Any) -> None:
        """Count the rows of an Arrow batch."""
        for fact in self._rows.keys() - self._unread:
            self._rows[fact] += int(self._marked(fact, batch).sum())

    def counts(self) -> tuple[FactCount, ...]:
        """Return what was counted; what could not be read is left out."""
        return tuple(
            FactCount(fact, rows) for fact, rows in self._rows.items() if fact not in self._unread
        )

    def _marked(self, fact: Fact, batch: Any) -> BoolArray:
        if isinstance(fact, Statement):
            return self._covered(fact, batch)
        return self._contradicted(fact, batch)

    def _covered(self, statement: Statement, batch: Any) -> BoolArray:
        found = np.ones(batch.num_rows, dtype=np.bool_)
        for name, mask in zip(statement.columns, statement.codes, strict=True):
            codes = _codes(self._schema[name], batch)
            found &= mask[codes] & (codes >= 0)
        return found

    def _contradicted(self, function: ColumnFunction, batch: Any) -> BoolArray:
        """Mark the rows whose value has another code than the one that follows from the others."""
        target = self._schema[function.column]
        sources = [self._schema[name] for name in function.of]
        rows = pa.table({each.name: _values(each, batch) for each in sources})
        codes, keep = target.encode(function.fill(rows))
        wanted = codes.astype(np.int64) if keep is None else np.where(keep, codes, -1)
        found = _codes(target, batch)
        return np.asarray((found >= 0) & (found != wanted))


def _columns(fact: Fact) -> tuple[str, ...]:
    return fact.columns if isinstance(fact, Statement) else (fact.column, *fact.of)


def _codes(column: Column, batch: Any) -> IntArray:
    """Return the code of each row; -1 where the missing rule leaves the row out."""
    codes, keep = column.encode_source(batch.column(column.source_name))
    wide = codes.astype(np.int64)
    return wide if keep is None else np.where(keep, wide, -1)


def _values(column: Column, batch: Any) -> Any:
    """Return the values of a column as synthetic rows would have them."""
    if column.source_name == column.name:
        return to_row_values(column, batch.column(column.name))
    codes = _codes(column, batch)
    labels = pa.array(column.axis().labels, pa.string())
    return to_row_values(column, labels.take(pa.array(codes, mask=codes < 0)))
