"""Keep a few rows of every unit, by a rule that looks at that unit's rows alone.

A unit's rows are put in an order that a keyed hash gives them, and the first ones stay.  The
hash is taken of the unit, of the codes and values of the row, and of a number that tells equal
rows of the unit apart.  So the choice does not depend on other units, on the order of rows, or
on how they are cut into batches.  Units are told apart by what they are, never by a hash: two
units with the same hash would share one allowance, and the one would move the other's rows.

Rows are not held.  One pass notes 14 bytes of each row (the number of its unit, a word that
stands for its codes and values, whether it has a unit, and whether it is complete) and each
unit once; what remains is one bit a row, by which later scans leave rows out.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from hashlib import shake_256
from typing import Any, NamedTuple, NoReturn

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from dpublish.data.batch import refuse_copy
from dpublish.data.column import Column, NumberColumn
from dpublish.data.date_column import DateColumn
from dpublish.data.engines.encoded import Part, Reading
from dpublish.data.engines.source import (
    HeldSource,
    MemorySource,
    Rescan,
    Source,
    read_quietly,
    scan,
    select_header,
)
from dpublish.data.engines.units import UnitNumbers, as_integers, needed_columns, to_units
from dpublish.data.lowest import Lowest
from dpublish.data.schema import Schema, bounded_schema
from dpublish.data.stamps import write_stamps
from dpublish.errors import InvalidParameter, UnreadableData, require_count
from dpublish.types import IntArray

Words = NDArray[np.uint64]
Mask = NDArray[np.bool_]
_SORTED_ROWS = 1 << 21  # about so many at once
_HASHED_TEXTS = 1 << 14  # at once: several words are held for every letter
_SHIFTS = tuple(map(np.uint64, (30, 27, 31)))
_FACTORS = tuple(map(np.uint64, (0xBF58476D1CE4E5B9, 0x94D049BB133111EB)))


@dataclass(frozen=True)
class Bound:
    """Which rows stay: at most `most` of each unit, chosen with `key`.

    With `lowest`, every row of a unit gets the smallest number over all rows of the unit, and a
    unit goes if one of its rows has none.  `complete` names the columns that a row must have
    (None: all); of the others, whether there is a value is part of what makes rows differ.
    """

    unit: str
    most: int
    key: bytes
    lowest: Lowest | None = None
    complete: tuple[str, ...] | None = None

    @classmethod
    def of(
        cls,
        schema: Schema,
        most: int,
        key: bytes,
        lowest: str | Lowest | None = None,
        complete: Sequence[str] | None = None,
    ) -> "Bound":
        """Refuse a bound that makes no sense for a schema; reads no row."""
        require_count(most=most)
        if schema.unit is None:
            raise InvalidParameter("rows belong to no unit here; name it in the schema")
        if isinstance(lowest, str):
            lowest = Lowest.of(schema[lowest])
        if lowest is not None:
            write_codes(lowest.column)
        needed = None if complete is None else tuple(schema[name].name for name in complete)
        return cls(schema.unit, most, key, lowest, needed)

    def needs(self, name: str) -> bool:
        """Return whether a row that the missing rule of a column leaves out goes."""
        return self.complete is None or name in self.complete

    @property
    def by(self) -> tuple[str, ...]:
        """The column that gives rows their numbers, if any; it need not be one of the schema's."""
        return () if self.lowest is None else (self.lowest.source.source_name,)

    def reads(self, schema: Schema) -> tuple[str, ...]:
        """Name the columns to read."""
        return tuple(dict.fromkeys((*needed_columns(schema), *self.by)))

    def result(self, schema: Schema) -> Schema:
        """Describe the rows that stay: records of their own."""
        columns = {column.name: column for column in schema.columns}
        if self.lowest is not None:
            columns[self.lowest.column.name] = self.lowest.column
        return bounded_schema(schema, columns.values())


class _Noted(NamedTuple):
    """What is noted of a record batch; all but the first are about its rows that have a unit."""

    has_unit: Mask
    units: Any
    is_complete: Mask
    words: Words | None
    codes: NDArray[Any] | None
    """Codes of the column whose smallest is wanted, counted from 1; 0 where there is none."""


class _Notes(NamedTuple):
    """The same of all rows of a source, with a number for each unit."""

    has_unit: Mask
    numbers: NDArray[np.int32]
    units: Any
    is_complete: Mask
    words: Words
    codes: NDArray[Any]


def bound_source(source: Source, schema: Schema, bound: Bound) -> "BoundedSource":
    """Read the columns of a schema once, and choose the rows that stay.

    Rows without a unit, and rows that the missing rule of a needed column leaves out, go first.
    """
    if source.rescan not in ("cheap", "costly"):
        source = HeldSource(source, bound.reads(schema))  # another order would fit no choice
    notes = _note_rows(source, schema, bound)
    stays, words = notes.is_complete.copy(), notes.words
    lowest = None
    if bound.lowest is not None:
        least = _least_of_each(notes)
        stays &= least[notes.numbers] > 0
        lowest = least[notes.numbers] - 1
        words = words[stays[notes.is_complete]]
    stays[stays] = _choose(notes.numbers[stays], words, notes.units, bound)
    kept = notes.has_unit.copy()
    kept[notes.has_unit] = stays
    lowered = None
    if bound.lowest is not None and lowest is not None:
        lowered = _Lowered(bound.lowest, lowest[stays])
    return BoundedSource(source, schema, kept, lowered)


def bound_rows(source: Source, schema: Schema, bound: Bound) -> Iterator[Any]:
    """Yield the rows that stay of a source that can be scanned once; all of it is held."""
    held = list(read_quietly(scan(source, bound.reads(schema)), source.label))
    if held:
        whole = MemorySource(held, held[0].schema, source.label)
        yield from bound_source(whole, schema, bound).scan(bound.result(schema).source_names)


def count_rows(source: Source, schema: Schema, bound: Bound) -> IntArray:
    """Count the units with 1, 2, ... rows that no missing rule leaves out; the last: or more."""
    notes, most = _note_rows(source, schema, bound, hashed=False), bound.most
    rows = np.bincount(notes.numbers[notes.is_complete], minlength=len(notes.units))
    return np.bincount(np.minimum(rows, most), minlength=most + 1)[1:].astype(np.int64)


class BoundedSource:
    """The rows of another source that stay; each scan leaves the others out anew.

    Holds one bit for each row of the source, and one code for each row that stays if codes
    of a column were replaced.
    """

    def __init__(
        self, source: Source, schema: Schema, kept: Mask, lowered: "_Lowered | None" = None
    ) -> None:
        self._source = source
        self._rows = kept.size
        self._bits = np.packbits(kept)
        self._lowered = lowered
        self.label = source.label
        self.rescan: Rescan = source.rescan
        header = select_header(source.header, schema.source_names)
        self.header = header if lowered is None else lowered.retype(header)

    def __reduce__(self) -> NoReturn:
        refuse_copy("a source")

    def scan(self, columns: Sequence[str]) -> Iterator[Any]:
        """Read some columns as Arrow record batches."""
        start = kept_before = 0
        read = columns if self._lowered is None else self._lowered.reads(columns)
        for raw in scan(self._source, read):
            stop = start + raw.num_rows
            stays = self._mask(start, stop)
            rows = raw.filter(pa.array(stays))
            if self._lowered is not None:
                rows = self._lowered.write(rows, kept_before).select(list(columns))
            start, kept_before = stop, kept_before + rows.num_rows
            yield rows
        if start != self._rows:
            raise self._changed()

    def _mask(self, start: int, stop: int) -> Mask:
        if stop > self._rows:
            raise self._changed()
        first = start // 8
        bits = np.unpackbits(self._bits[first : -(-stop // 8)])
        return bits[start - 8 * first : stop - 8 * first].view(np.bool_)

    def _changed(self) -> UnreadableData:
        return UnreadableData(f"{self.label} was changed while it was in use")


class _Lowered:
    """The column of which every row has the smallest number of its unit as its code."""

    def __init__(self, lowest: Lowest, codes: NDArray[Any]) -> None:
        self._name = lowest.column.name
        self._source = lowest.source.source_name
        self._written = write_codes(lowest.column)
        self._codes = codes

    def retype(self, header: Any) -> Any:
        """Give the column in a header the type in which its codes are written."""
        index, field = header.get_field_index(self._name), pa.field(self._name, self._written.type)
        return header.append(field) if index < 0 else header.set(index, field)

    def reads(self, columns: Sequence[str]) -> tuple[str, ...]:
        """Name what to read in order to have some columns: at least one, that counts the rows."""
        return tuple(name for name in columns if name != self._name) or (self._source,)

    def write(self, rows: Any, start: int) -> Any:
        """Write the codes of the rows that stay, from number `start` on, into their column."""
        codes = self._written.take(pa.array(self._codes[start : start + rows.num_rows]))
        index = rows.schema.get_field_index(self._name)
        if index < 0:
            return rows.append_column(self._name, codes)
        return rows.set_column(index, self._name, codes)


def write_codes(column: Column) -> Any:
    """Write each code of a column as a value that has it: public, from the schema alone.

    >>> from dpublish.data.schema import column
    >>> write_codes(column("level", "numeric", bounds=[0, 1], bins=2)).to_pylist()
    [0.0, 0.5]
    """
    special = int(column.missing == "category")
    if isinstance(column, NumberColumn):
        edges = column.partition.edges
        plain: Sequence[Any] = edges[1:] if column.partition.closed == "right" else edges[:-1]
    else:
        plain = column.axis().leaf_labels[: column.size - special]
    written = pa.array([*plain, *[None] * special])
    if isinstance(column, DateColumn):
        missing = np.array([value is None for value in written.to_pylist()])
        written = write_stamps(column.kind, written.fill_null(0.0).to_numpy(), missing)
    codes, keep = column.encode(written)
    if (
        column.source_name != column.name
        or keep is not None
        or not np.array_equal(codes, np.arange(column.size))
    ):
        raise InvalidParameter(
            f"the codes of column {column.name!r} cannot be compared; write them to a column of "
            "their own, of kind integer or ordinal"
        )
    return written


# --- One pass over the rows ------------------------------------------------------------------


def _note_rows(source: Source, schema: Schema, bound: Bound, *, hashed: bool = True) -> _Notes:
    raws = scan(source, bound.reads(schema))
    noted = (_note(raw, schema, bound, source.label, hashed=hashed) for raw in raws)
    has_unit: list[Mask] = []
    is_complete: list[Mask] = []
    words: list[Words] = []
    codes: list[NDArray[Any]] = []
    units = UnitNumbers()
    for part in read_quietly(noted, source.label):
        units.add(part.units)
        has_unit.append(part.has_unit)
        is_complete.append(part.is_complete)
        words.extend([] if part.words is None else [part.words])
        codes.extend([] if part.codes is None else [part.codes])
    numbers, known = units.finish()
    return _Notes(
        _join_and_free(has_unit, np.bool_),
        numbers,
        known,
        _join_and_free(is_complete, np.bool_),
        _join_and_free(words, np.uint64),
        _join_and_free(codes, np.uint8),
    )


def _note(raw: Any, schema: Schema, bound: Bound, label: str, *, hashed: bool) -> _Noted:
    units = to_units(raw.column(bound.unit), label)
    has_unit = units.is_valid().to_numpy(zero_copy_only=False)
    codes = {name: Reading(name, as_values=False).encode(schema, raw) for name in schema.names}
    # A value that is missing as a category has a code and no number, and its row stays.
    kept = [x.keep for name, x in codes.items() if x.keep is not None and bound.needs(name)]
    is_complete = np.logical_and.reduce([has_unit, *kept])
    words = None
    if hashed:
        numbers = [column.name for column in schema.columns if isinstance(column, NumberColumn)]
        values = [Reading(name, as_values=True).encode(schema, raw) for name in numbers]
        columns = [_without_blanks(part) for part in codes.values()]
        columns += [as_integers(part.data) for part in values]
        columns += [_is_there(part) for name, part in codes.items() if not bound.needs(name)]
        words = hash_rows([column[is_complete] for column in columns], bound.key)
    ranks = None if bound.lowest is None else bound.lowest.rank(raw)[has_unit]
    return _Noted(has_unit, units.filter(pa.array(has_unit)), is_complete[has_unit], words, ranks)


def _without_blanks(part: Part) -> NDArray[Any]:
    """Return codes, with the same one wherever there is no value."""
    codes = part.data
    return codes if part.keep is None else np.where(part.keep, codes, np.zeros(1, codes.dtype))


def _is_there(part: Part) -> Mask:
    return np.ones(len(part.data), dtype=np.bool_) if part.keep is None else part.keep


def _join_and_free(parts: list[NDArray[Any]], kind: Any) -> NDArray[Any]:
    """Put parts together, and let go of them: the next ones need the memory."""
    joined = np.concatenate(parts) if parts else np.empty(0, dtype=kind)
    parts.clear()
    return joined


def _least_of_each(notes: _Notes) -> NDArray[Any]:
    """Find the smallest code of each unit, counted from 1; 0 if one of its rows has none."""
    least = np.full(len(notes.units), np.iinfo(notes.codes.dtype).max, dtype=notes.codes.dtype)
    np.minimum.at(least, notes.numbers, notes.codes)
    return least


# --- The choice ------------------------------------------------------------------------------


def _choose(numbers: NDArray[np.int32], words: Words, units: Any, bound: Bound) -> Mask:
    """Mark the rows that stay; only units with more rows than may stay need an order.

    These are sorted a few units at a time, as a sort needs several times the memory of what
    it sorts.
    """
    rows = np.bincount(numbers, minlength=len(units))
    exceeding = rows > bound.most
    blocks = np.cumsum(np.where(exceeding, rows, 0)) // _SORTED_ROWS
    chosen = np.ones(numbers.size, dtype=np.bool_)
    for block in np.unique(blocks[exceeding]):
        members = exceeding & (blocks == block)
        positions = np.flatnonzero(members[numbers])
        chosen[positions] = _come_first(
            (np.cumsum(members) - 1)[numbers[positions]],
            hash_units(units.filter(pa.array(members)), bound.key),
            words[positions],
            bound,
        )
    return chosen


def _come_first(units: NDArray[np.int64], unit_words: Words, words: Words, bound: Bound) -> Mask:
    """Mark the first rows of every unit in the order of their hashes.

    Equal rows of a unit, which no kernel can tell apart, are numbered, so that each of them is
    as likely to stay as any other row.
    """
    order = np.lexsort((words, units))
    units, words = units[order], words[order]
    repeats = _number_within([units, words])
    marks = hash_marks([unit_words[units], words, repeats], bound.key)
    again = np.lexsort((marks, units))  # stable: rows with the same hash stay in their order
    first = _number_within([units[again]]) < bound.most
    chosen = np.zeros(units.size, dtype=np.bool_)
    chosen[order[again[first]]] = True
    return chosen


def _number_within(columns: Sequence[NDArray[Any]]) -> NDArray[np.int64]:
    """Number sorted rows within each run of equal ones, from 0."""
    size = columns[0].size
    starts_run = np.ones(size, dtype=np.bool_)
    starts_run[1:] = np.logical_or.reduce([x[1:] != x[:-1] for x in columns])
    starts = np.flatnonzero(starts_run)
    return np.arange(size) - np.repeat(starts, np.diff(np.append(starts, size)))


def hash_rows(columns: Sequence[NDArray[Any]], key: bytes) -> Words:
    """Hash rows of integers.

    >>> rows = [np.array([1, 1, 2]), np.array([5, 5, 5])]
    >>> first, second, third = hash_rows(rows, b"key")
    >>> bool(first == second), bool(first == third)
    (True, False)
    """
    return _hash(columns, _stretch(key, b"rows", len(columns)))


def hash_marks(columns: Sequence[NDArray[Any]], key: bytes) -> Words:
    """Hash units, words of rows and repeat numbers: the order in which rows of a unit stay."""
    return _hash(columns, _stretch(key, b"marks", len(columns)))


def _hash(columns: Sequence[NDArray[Any]], salts: Words) -> Words:
    state = np.zeros(columns[0].size, dtype=np.uint64)
    for column, salt in zip(columns, salts, strict=True):
        state = _mix((state ^ column.astype(np.uint64)) + salt)
    return state


def hash_units(units: Any, key: bytes) -> Words:
    """Hash an Arrow array of units, none of them null or empty; numbers as they are written.

    So it makes no difference whether a file holds units as numbers or as text.
    """
    texts = units.cast(pa.large_string())
    parts = range(0, len(texts), _HASHED_TEXTS)
    hashed = [_hash_texts(texts.slice(start, _HASHED_TEXTS), key) for start in parts]
    return np.concatenate([np.empty(0, dtype=np.uint64), *hashed])


def _hash_texts(texts: Any, key: bytes) -> Words:
    """Add up the bytes of each text, each with a weight of its position, then mix."""
    _, offsets, data = texts.buffers()
    ends = np.frombuffer(offsets, dtype=np.int64)[texts.offset :][: len(texts) + 1]
    letters = np.frombuffer(data, dtype=np.uint8)[ends[0] : ends[-1]].astype(np.uint64)
    starts, lengths = ends[:-1] - ends[0], np.diff(ends)
    position = np.arange(letters.size) - np.repeat(starts, lengths)
    weights = _stretch(key, b"text", int(lengths.max())) | np.uint64(1)
    weighed = (letters + np.uint64(1)) * weights[position]  # a text ending in byte 0 differs, too
    return _mix(np.add.reduceat(weighed, starts))


def _stretch(key: bytes, purpose: bytes, words: int) -> Words:
    """Make as many words from the key as are wanted."""
    return np.frombuffer(shake_256(purpose + key).digest(8 * words), dtype="<u8").astype(np.uint64)


def _mix(words: Words) -> Words:
    """Mix every bit of a word into all of it; no two words become one (SplitMix64)."""
    for shift, factor in zip(_SHIFTS, _FACTORS, strict=False):
        words = (words ^ (words >> shift)) * factor
    return words ^ (words >> _SHIFTS[-1])
