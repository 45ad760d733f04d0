"""The embedded engine: kernels run on this machine, on batches of Arrow rows.

Measured against SQL aggregation in DuckDB and Polars, NumPy on batches that fit the
processor's cache is faster for all our queries, and bins are the same arithmetic for
every source.
"""

from collections.abc import Collection, Generator, Iterable, Sequence
from contextlib import closing
from dataclasses import replace
from fractions import Fraction
from itertools import pairwise
from typing import Any, NoReturn, Protocol

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from dpublish.data.batch import Batch, S, Summable, refuse_copy
from dpublish.data.draws import choose, draw_blocks, require_rate, require_rates
from dpublish.data.engines.bounded import Bound, bound_source, count_rows
from dpublish.data.engines.chosen import ChosenColumns, ChosenSource, make_choice, sample_rows
from dpublish.data.engines.encoded import (
    CachedColumns,
    Reading,
    StreamedColumns,
    readings,
)
from dpublish.data.engines.shared import SharedColumns
from dpublish.data.engines.source import MemorySource, Source, select_header, within_memory
from dpublish.data.engines.units import UnitColumns, draw_rows, needed_columns, require_opened
from dpublish.data.engines.workers import can_start
from dpublish.data.lowest import Lowest
from dpublish.data.schema import Schema, keep_columns
from dpublish.errors import InvalidParameter, require_count
from dpublish.privacy.neighbors import Neighbors
from dpublish.randomness import RandomSource
from dpublish.types import IntArray


class Columns(Protocol):
    """Encoded columns of all records of a table."""

    def batches(self, wanted: Sequence[Reading]) -> Generator[Batch]:
        """Yield the wanted columns in batches."""
        ...


class LocalTable:
    """Private rows of a source, summed up on this machine; made by `open_table`."""

    def __init__(
        self,
        schema: Schema,
        source: Source,
        *,
        cache: bool = True,
        threads: int = 1,
        columns: Columns | None = None,
        opened: Collection[str] | None = None,
        is_bounded: bool = False,
        steps: tuple[str, ...] = (),
        made: tuple[str, ...] = (),
    ) -> None:
        self.steps = steps
        """What was done to each record before, in words that may be published."""
        self.made = made
        """Names of the columns that those steps have added."""
        self.is_bounded = is_bounded
        """Whether rows were chosen among those of their unit, so that none stands alone."""
        self._schema = schema
        self._source = source
        self._cache = cache
        self._threads = threads
        self._opened = schema if opened is None else keep_columns(schema, opened)
        self._columns = columns or _choose_columns(self._opened, source, cache, threads)

    def __repr__(self) -> str:
        return f"LocalTable({', '.join(self._schema.names)})"

    def __reduce__(self) -> NoReturn:
        refuse_copy("a table")

    def __enter__(self) -> "LocalTable":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End worker processes, and let go of a database; the table cannot be used afterward."""
        if isinstance(self._columns, SharedColumns):
            self._columns.close()
        close = getattr(self._source, "close", None)
        if close is not None:
            close()

    @property
    def schema(self) -> Schema:
        """What is publicly known about the rows."""
        return self._schema

    @property
    def opened(self) -> tuple[str, ...]:
        """Names of the columns that can be read: all of the schema, unless fewer were opened."""
        return self._opened.names

    @property
    def neighbors(self) -> Neighbors:
        """The change to the rows that a release must hide."""
        return self._schema.neighbors

    def sum(self, kernel: Summable[S]) -> S:
        """Add up a kernel over all records that its columns keep."""
        wanted = readings(kernel, by_unit=self._schema.unit is not None)
        for reading in wanted:
            reading.check(self._schema)
        require_opened([x.name for x in wanted], self._opened)
        return within_memory(lambda: self._sum(kernel, wanted))

    def sample(
        self, rate: Fraction, rng: RandomSource, columns: Sequence[str] | None = None
    ) -> "LocalTable":
        """Keep every record (every unit, if rows have units) with probability `rate`, exactly.

        The rows of the sample are held in memory, with the given columns only.
        """
        rate = require_rate(rate)
        schema = self._narrow(columns)
        read = self._in_source(schema)
        drawn = draw_rows(self._source, read, lambda count: choose(rate, count, rng))
        kept = within_memory(lambda: [rows.filter(pa.array(chosen)) for rows, chosen in drawn])
        return self._hold(schema, kept)

    def split(
        self, blocks: int, rng: RandomSource, columns: Sequence[str] | None = None
    ) -> list["LocalTable"]:
        """Put every record (every unit) into one of `blocks` tables, uniformly at random.

        All rows are held in memory, with the given columns only.
        """
        require_count(blocks=blocks)
        schema = self._narrow(columns)
        read = self._in_source(schema)
        drawn = draw_rows(self._source, read, lambda count: draw_blocks(blocks, count, rng))
        parts = within_memory(lambda: _deal(drawn, blocks))
        return [self._hold(schema, part) for part in parts]

    def bound(
        self,
        most: int,
        key: bytes,
        columns: Sequence[str] | None = None,
        lowest: str | Lowest | None = None,
        complete: Sequence[str] | None = None,
    ) -> "LocalTable":
        """Keep at most `most` rows of each unit, as records of their own.

        For methods that pay for `most` rows of a unit.  `publish` refuses the result: one record
        more may replace another of its unit.

        Reads the given columns of all rows once, and holds one bit a row from then on; while it
        reads, 14 bytes a row and each unit once.  Rows that come in another order every time
        are held in memory.
        """
        schema = self._narrow(columns)
        read = self._in_source(schema)
        bound = Bound.of(read, most, key, lowest, complete)
        source = within_memory(lambda: bound_source(self._source, read, bound))
        return LocalTable(
            bound.result(schema),
            source,
            cache=self._cache,
            threads=self._threads,
            opened=bound.result(read).names,
            is_bounded=True,
            steps=self.steps,
            made=self.made,
        )

    def rows_per_unit(
        self,
        most: int,
        columns: Sequence[str] | None = None,
        complete: Sequence[str] | None = None,
    ) -> IntArray:
        """Count the units with 1, 2, ... rows, the last entry those with `most` or more.

        Of the rows that no missing rule of the columns (of those that are to be `complete`)
        leaves out; a unit without any is not counted.  Exact, and therefore private: one unit
        changes one entry by one.
        """
        schema = self._in_source(self._narrow(columns))
        bound = Bound.of(schema, most, b"", complete=complete)
        return within_memory(lambda: count_rows(self._source, schema, bound))

    def only(self, column: str, leaves: Collection[int], *, keep: bool = False) -> "LocalTable":
        """Pick the records whose leaf of `column` is one of `leaves`; no row is read yet.

        Tables picked from one table share the columns that it has encoded.
        """
        self._refuse_units()
        choice = make_choice(self._schema[column], leaves)
        require_opened((column,), self._opened)
        schema = self._schema if keep else self._narrow(self._others(column))
        columns: Columns | None = None
        if isinstance(self._columns, SharedColumns):
            columns = self._columns.pick(choice)
        elif isinstance(self._columns, CachedColumns | ChosenColumns):
            columns = ChosenColumns(self._columns, choice)
        return LocalTable(
            schema,
            ChosenSource(self._source, choice),
            cache=self._cache,
            threads=self._threads,
            columns=columns,
            opened=self._opened.names,
            is_bounded=self.is_bounded,
            steps=self.steps,
            made=self.made,
        )

    def sample_by(
        self,
        column: str,
        rates: Sequence[Fraction],
        rng: RandomSource,
        columns: Sequence[str] | None = None,
    ) -> "LocalTable":
        """Keep a record whose leaf of `column` is k with probability `rates[k]`, exactly.

        The rows of the sample are held in memory, with the given columns only.
        """
        self._refuse_units()
        by = self._schema[column]
        rates = require_rates(rates, by.size)
        schema = self._narrow(self._others(column) if columns is None else columns)
        require_opened((column,), self._opened)
        rows = sample_rows(self._source, by, rates, rng, self._in_source(schema).source_names)
        return self._hold(schema, within_memory(lambda: list(rows)))

    def _others(self, column: str) -> list[str]:
        return [name for name in self._schema.names if name != column]

    def _refuse_units(self) -> None:
        """Refuse to tell rows of one unit apart: a unit must not be in several groups."""
        if self._schema.unit is not None:
            raise InvalidParameter("rows belong to units here; only single records can be chosen")

    def _sum(self, kernel: Summable[S], wanted: Sequence[Reading]) -> S:
        if isinstance(self._columns, SharedColumns):
            answer = self._columns.sum(kernel, wanted)
            if answer is not None:
                return answer
        out = kernel.zero()
        with closing(self._columns.batches(wanted)) as batches:
            for batch in batches:
                kernel.add(batch, out)
        return out

    def _narrow(self, columns: Sequence[str] | None) -> Schema:
        if columns is None:
            return self._schema
        return replace(self._schema, columns=tuple(self._schema[name] for name in columns))

    def _in_source(self, schema: Schema) -> Schema:
        """Leave out the columns of a schema that were not opened."""
        return keep_columns(schema, self._opened.names)

    def _hold(self, schema: Schema, batches: Sequence[Any]) -> "LocalTable":
        header = select_header(self._source.header, needed_columns(self._in_source(schema)))
        source = MemorySource(batches, header, self._source.label)
        return LocalTable(
            schema,
            source,
            cache=self._cache,
            threads=self._threads,
            opened=self._opened.names,
            is_bounded=self.is_bounded,
            steps=self.steps,
            made=self.made,
        )


def _deal(drawn: Iterable[tuple[Any, NDArray[Any]]], blocks: int) -> list[list[Any]]:
    """Put each row into the block that was drawn for it."""
    parts: list[list[Any]] = [[] for _ in range(blocks)]
    for rows, numbers in drawn:
        order = np.argsort(numbers, kind="stable")
        cuts = np.searchsorted(numbers[order], np.arange(blocks + 1)).tolist()
        ordered = rows.take(pa.array(order))
        for part, (start, stop) in zip(parts, pairwise(cuts), strict=True):
            part.append(ordered.slice(start, stop - start))
    return parts


def _choose_columns(schema: Schema, source: Source, cache: bool, threads: int) -> Columns:
    if schema.unit is not None:
        return UnitColumns(schema, schema.unit, source, cache=cache)
    if threads > 1 and can_start():
        return SharedColumns.of(schema, source, cache=cache, threads=threads)
    return CachedColumns(schema, source) if cache else StreamedColumns(schema, source)
