"""Columns of records as codes and clipped values, read anew for every sum or kept in memory."""

from collections.abc import Generator, Iterable, Mapping, Sequence
from contextlib import closing
from functools import partial
from typing import Any, NamedTuple, NoReturn

import numpy as np
from numpy.typing import NDArray

from dpublish.data.batch import BATCH_ROWS, Batch, Leveled, Summable, Tolerant, refuse_copy
from dpublish.data.column import NumberColumn
from dpublish.data.engines.source import Source, quietly, read_quietly, scan, select_header
from dpublish.data.schema import Schema
from dpublish.errors import InvalidParameter, UnreadableData


class Part(NamedTuple):
    """A column of some records: codes or clipped values, and the records to keep (None: all)."""

    data: NDArray[Any]
    keep: NDArray[np.bool_] | None


class Reading(NamedTuple):
    """A column, read as codes or as clipped values.

    If a `level` is given, codes are told apart on that level only: each stands for the first
    leaf of its cell.  Values that are `optional` leave no record out: where there is none, the
    number is NaN.
    """

    name: str
    as_values: bool
    level: int | None = None
    optional: bool = False

    def check(self, schema: Schema) -> None:
        """Refuse a column that the schema does not have, or that has no numbers to read."""
        column = schema[self.name]
        if self.as_values and not isinstance(column, NumberColumn):
            raise InvalidParameter(
                f"column {self.name!r} is of kind {column.kind}; numeric or integer is needed"
            )

    def encode(self, schema: Schema, raw: Any) -> Part:
        """Encode the column of a record batch."""
        column = schema[self.name]
        array = raw.column(column.source_name)
        if self.as_values:
            numbers, keep = column.values(array)
            if keep is not None and self.optional:
                return Part(np.where(keep, numbers, np.nan), None)
            return Part(numbers, keep)
        codes, keep = column.encode_source(array)
        if self.level is None or self.level == column.height:
            return Part(codes, keep)
        axis = column.axis(self.level)
        return Part(axis.leaf_starts[axis.leaf_to_cell][codes].astype(codes.dtype), keep)


def readings(kernel: Summable[Any], *, by_unit: bool) -> tuple[Reading, ...]:
    """List what a kernel reads, each reading once; `by_unit` also on which levels."""
    levels = kernel.levels if by_unit and isinstance(kernel, Leveled) else {}
    codes = [Reading(name, as_values=False, level=levels.get(name)) for name in kernel.codes]
    optional = kernel.optional if isinstance(kernel, Tolerant) else ()
    values = [Reading(x, as_values=True, optional=x in optional) for x in kernel.values]
    return tuple(dict.fromkeys((*codes, *values)))


def names_of(schema: Schema, wanted: Sequence[Reading]) -> tuple[str, ...]:
    """List the columns of the table that are read, each once."""
    return tuple(dict.fromkeys(schema[reading.name].source_name for reading in wanted))


def make_batch(rows: int, columns: Mapping[Reading, Part]) -> Batch:
    """Put columns together, without the records that one of them does not keep."""
    batch = Batch(
        rows,
        {reading.name: part.data for reading, part in columns.items() if not reading.as_values},
        {reading.name: part.data for reading, part in columns.items() if reading.as_values},
    )
    masks = [part.keep for part in columns.values() if part.keep is not None]
    return batch.filter(np.logical_and.reduce(masks)) if masks else batch


def check_type(schema: Schema, name: str, source: Source) -> None:
    """Refuse a type that the schema cannot use, by encoding no rows of it."""
    message = f"column {name!r} of {source.label} has a type that cannot be used; cast it to text"
    names = (schema[name].source_name,)
    empty = quietly(select_header(source.header, names).empty_table, message)
    quietly(partial(Reading(name, as_values=False).encode, schema, empty), message)


class StreamedColumns:
    """Columns that are read and encoded anew every time; memory stays small."""

    def __init__(self, schema: Schema, source: Source) -> None:
        self._schema = schema
        self._source = source

    def __reduce__(self) -> NoReturn:
        refuse_copy("a table")

    def batches(self, wanted: Sequence[Reading]) -> Generator[Batch]:
        """Read the wanted columns of all records that are kept."""
        counted = wanted or [Reading(self._schema.names[0], as_values=False)]
        raws = scan(self._source, names_of(self._schema, counted))  # some column counts the rows
        encoded = (
            make_batch(raw.num_rows, {x: x.encode(self._schema, raw) for x in wanted})
            for raw in raws
        )
        yield from read_quietly(encoded, self._source.label)


class CachedColumns:
    """Columns that are encoded at first use and then kept, at 1 to 8 bytes a value."""

    def __init__(self, schema: Schema, source: Source) -> None:
        self._schema = schema
        self._source = source
        self._columns: dict[Reading, Part] = {}
        self._rows: int | None = None

    def __reduce__(self) -> NoReturn:
        refuse_copy("a table")

    def batches(self, wanted: Sequence[Reading]) -> Generator[Batch]:
        """Cut the wanted columns of all records that are kept into batches."""
        parts = self.parts(wanted)
        yield from cut_columns(self._rows or 0, dict(zip(wanted, parts, strict=True)))

    def parts(self, wanted: Sequence[Reading]) -> list[Part]:
        """Yield each of the wanted columns whole, with the records that it does not keep."""
        lacking = self.find_lacking(wanted)
        if lacking:
            self.keep(lacking, self.encode(lacking))
        return [self._columns[reading] for reading in wanted]

    @property
    def label(self) -> str:
        """How messages call the source; public."""
        return self._source.label

    @property
    def is_empty(self) -> bool:
        """Whether no column was read yet."""
        return not self._columns

    def find_lacking(self, wanted: Sequence[Reading]) -> list[Reading]:
        """List what has to be read before the wanted columns are there."""
        lacking = [reading for reading in wanted if reading not in self._columns]
        if not wanted and self._rows is None:
            lacking = [Reading(self._schema.names[0], as_values=False)]  # to count the rows
        return self.widen(lacking)

    def encode(self, lacking: Sequence[Reading]) -> Generator[list[Part]]:
        """Read some columns from the source: a part of each, batch by batch."""
        raws = scan(self._source, names_of(self._schema, lacking))
        encoded = ([x.encode(self._schema, raw) for x in lacking] for raw in raws)
        return read_quietly(encoded, self._source.label)

    def keep(self, lacking: Sequence[Reading], encoded: Iterable[list[Part]]) -> None:
        """Keep columns that were read, each in one piece."""
        parts: list[list[Part]] = [[] for _ in lacking]
        for batch in encoded:
            for column, part in zip(parts, batch, strict=True):
                column.append(part)
        columns = {reading: _join_and_free(parts.pop(0)) for reading in lacking}
        rows = len(columns[lacking[0]].data)
        if self._rows not in (None, rows):
            raise UnreadableData(f"{self._source.label} was changed while it was in use")
        self._rows = rows
        self._columns.update(columns)

    def widen(self, lacking: Sequence[Reading]) -> list[Reading]:
        """Add all other columns that may be wanted later, if a second scan would be costly."""
        if not lacking or self._source.rescan != "costly":
            return list(lacking)
        numbers = [x.name for x in self._schema.columns if isinstance(x, NumberColumn)]
        both = {False: self._schema.names, True: tuple(numbers)}
        ways = dict.fromkeys((reading.as_values, reading.optional) for reading in lacking)
        return [
            Reading(name, as_values=as_values, optional=optional)
            for as_values, optional in ways
            for name in both[as_values]
        ]


class HeldColumns:
    """Columns of some records, as they were handed over: nothing more can be read."""

    def __init__(self, rows: int) -> None:
        self.rows = rows
        self._columns: dict[Reading, Part] = {}

    def __reduce__(self) -> NoReturn:
        refuse_copy("a table")

    def hold(self, columns: Mapping[Reading, Part]) -> None:
        """Take over further columns; no one may write to them from now on."""
        for part in columns.values():
            part.data.flags.writeable = False
        self._columns.update(columns)

    def parts(self, wanted: Sequence[Reading]) -> list[Part]:
        """Yield each of the wanted columns whole, with the records that it does not keep."""
        return [self._columns[reading] for reading in wanted]

    def batches(self, wanted: Sequence[Reading]) -> Generator[Batch]:
        """Cut the wanted columns of all records that are kept into batches."""
        yield from cut_columns(self.rows, dict(zip(wanted, self.parts(wanted), strict=True)))


def cut_columns(rows: int, columns: Mapping[Reading, Part]) -> Generator[Batch]:
    """Cut whole columns into batches of the records that all of them keep."""
    for start in range(0, rows, BATCH_ROWS):
        stop = min(start + BATCH_ROWS, rows)
        yield make_batch(stop - start, {x: _cut(y, start, stop) for x, y in columns.items()})


def _cut(column: Part, start: int, stop: int) -> Part:
    keep = None if column.keep is None else column.keep[start:stop]
    return Part(column.data[start:stop], keep)


def cut_windows(encoded: Generator[list[Part]], rows: int) -> Generator[tuple[int, list[Part]]]:
    """Cut columns that come in batches into windows of exactly so many rows; the last has less.

    Where a window begins depends on the number of rows before it alone, so windows of columns
    that are read in separate scans fit together.
    """
    waiting: list[list[Part]] = []
    held = 0
    with closing(encoded):
        for batch in encoded:
            size, start = len(batch[0].data), 0
            while held + size - start >= rows:
                stop = start + rows - held
                waiting.append([_cut(part, start, stop) for part in batch])
                yield rows, _join_batches(waiting)
                waiting, held, start = [], 0, stop
            if start < size:
                waiting.append([_cut(part, start, size) for part in batch])
                held += size - start
    if held:
        yield held, _join_batches(waiting)


def _join_batches(batches: Sequence[list[Part]]) -> list[Part]:
    """Put batches of the same columns together, each column in one piece."""
    return [_join(parts) for parts in zip(*batches, strict=True)]


def _join_and_free(parts: list[Part]) -> Part:
    """Put the parts of a column together, and let go of them: the next column needs the memory."""
    joined = _join(parts)
    parts.clear()
    return joined


def _join(parts: Sequence[Part]) -> Part:
    """Put the parts of a column together; no one may write to what is kept."""
    data = np.concatenate([np.empty(0, np.uint8), *(part.data for part in parts)])
    data.flags.writeable = False
    if all(part.keep is None for part in parts):
        return Part(data, None)
    masks = [np.ones(len(p.data), np.bool_) if p.keep is None else p.keep for p in parts]
    return Part(data, np.concatenate(masks))
