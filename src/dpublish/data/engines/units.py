"""Rows that belong to units: a person with many visits, a basket with many goods.

What is hidden is all rows of a unit, so a kernel must not see a unit more often than its
sensitivity allows.  It is shown each distinct combination of its columns once per unit:
then a unit adds at most 1 to every cell of a count over these columns, however many rows it
has.  Rows count as equal if their codes and clipped values are, whatever text they came from.
A row without a unit is left out.
"""

from collections.abc import Callable, Generator, Iterator, Sequence
from typing import Any, NoReturn

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from dpublish.data.batch import Batch, refuse_copy
from dpublish.data.encoding import plain_array
from dpublish.data.engines.encoded import Part, Reading, make_batch, names_of
from dpublish.data.engines.source import Source, read_quietly, scan
from dpublish.data.schema import Schema, keep_columns
from dpublish.errors import InvalidParameter, UnreadableData, require_known

UNIT = "unit"  # the column of units in a table of pairs
MERGE_ROWS = 1 << 20


def unit_type(kind: Any, label: str) -> Any:
    """Return as what type units are compared: integers as such, or text."""
    types = pa.types
    if types.is_dictionary(kind):
        return unit_type(kind.value_type, label)
    if types.is_integer(kind):
        return pa.int64()
    if types.is_string(kind) or types.is_large_string(kind) or types.is_string_view(kind):
        return pa.large_string()
    raise UnreadableData(
        f"the unit column of {label} has the type {kind}; cast it to integers or text"
    )


def to_units(array: Any, label: str) -> Any:
    """Read a column as units; a blank text is null, as no unit is.

    Spellings of a unit are one as those of a value are: blanks around it do not count, and
    integers lose their decimals.
    """
    wanted = unit_type(array.type, label)
    array = plain_array(array)
    if pa.types.is_dictionary(array.type):
        # Cast first: written out, text may be longer than what 32 bits can count.
        entries = array.dictionary.cast(wanted, safe=False)
        array = pa.DictionaryArray.from_arrays(array.indices, entries).dictionary_decode()
    array = array.cast(wanted, safe=False)  # the largest numbers wrap around, but stay distinct
    if not pa.types.is_large_string(wanted):
        return array
    trimmed = pc.utf8_trim_whitespace(_valid(array))
    whole = pc.replace_substring_regex(trimmed, r"^([+-]?[0-9]+)\.0*$", r"\1")
    return pc.if_else(pc.equal(whole, ""), None, whole)


def _valid(texts: Any) -> Any:
    """Write out bytes that are not UTF-8; text that is valid stays as it is.

    One sign for all of them would make one unit of two.
    """
    try:
        texts.validate(full=True)
    except pa.ArrowInvalid:
        raw = texts.cast(pa.large_binary()).to_pylist()
        clean = [None if x is None else x.decode(errors="backslashreplace") for x in raw]
        return pa.array(clean, pa.large_string())
    return texts


def needed_columns(schema: Schema) -> tuple[str, ...]:
    """Name the columns to read: those of the schema, and the units if rows belong to some."""
    units = () if schema.unit is None else (schema.unit,)
    return tuple(dict.fromkeys((*schema.source_names, *units)))


def opened_part(schema: Schema, columns: Sequence[str] | None) -> Schema:
    """Describe the columns that a source must have: those named, or all (None).

    Some column counts the rows, so it is one at least; the unit is one if it is a column.
    """
    if columns is None:
        return schema
    for name in columns:
        require_known("column", name, schema.names)
    named = columns or schema.names[:1]
    return keep_columns(schema, {*named, schema.unit} if schema.unit else set(named))


def require_opened(columns: Sequence[str], opened: Schema) -> None:
    """Refuse to read a column that the table was not opened with."""
    for name in columns:
        if name not in opened.names:
            raise InvalidParameter(
                f"column {name!r} was not opened: name it in columns=, or open the whole table"
            )


def draw_rows(
    source: Source, schema: Schema, draw: Callable[[int], NDArray[Any]]
) -> Iterator[tuple[Any, NDArray[Any]]]:
    """Read all rows and draw a number for each; rows of one unit share what is drawn for it.

    `draw` makes as many independent numbers as it is asked for.  Rows without a unit are
    left out, if rows belong to units.
    """
    raws = read_quietly(scan(source, needed_columns(schema)), source.label)
    if schema.unit is None:
        for raw in raws:
            yield raw, draw(raw.num_rows)
        return
    held = list(raws)
    units = [to_units(raw.column(schema.unit), source.label) for raw in held]
    if not held:
        return
    encoded = pa.concat_arrays(units).dictionary_encode()
    drawn = draw(len(encoded.dictionary))
    start = 0
    for raw in held:
        numbers = encoded.indices.slice(start, raw.num_rows)
        start += raw.num_rows
        yield raw.filter(numbers.is_valid()), drawn[numbers.drop_null().to_numpy()]


class UnitNumbers:
    """Numbers units as they come in, batch by batch; each unit is held once.

    Units are told apart by what they are.  Those of a few batches wait, so that the units that
    are known need not be looked up for every batch.

    >>> numbers = UnitNumbers()
    >>> numbers.add(pa.array(["Ann", "Bob", "Ann"], pa.large_string()))
    >>> numbers.add(pa.array(["Cid", "Bob"], pa.large_string()))
    >>> numbers.finish()[0]
    array([0, 1, 0, 2, 1], dtype=int32)
    """

    def __init__(self) -> None:
        self._known: list[Any] = []  # one array, once there are units
        self._waiting: list[Any] = []
        self._entries = 0
        self._numbers: list[NDArray[np.int32]] = []

    def __reduce__(self) -> NoReturn:
        refuse_copy("a list of units")

    def add(self, units: Any) -> None:
        """Number the units of a batch of rows, none of them null."""
        encoded = units.dictionary_encode()
        self._waiting.append(encoded)
        self._entries += len(encoded.dictionary)
        if self._entries > max([MERGE_ROWS, *map(len, self._known)]):
            self._merge()

    def finish(self) -> tuple[NDArray[np.int32], Any]:
        """Return the number of each row's unit, in order, and the units by their numbers."""
        if self._waiting:
            self._merge()
        if not self._known:
            return np.empty(0, dtype=np.int32), pa.array([], pa.int64())
        numbers = np.concatenate(self._numbers)
        self._numbers.clear()
        return numbers, self._known[0]

    def _merge(self) -> None:
        """Number what waits; units that are known come first and keep their numbers."""
        parts = [*self._known, *(part.dictionary for part in self._waiting)]
        merged = pa.concat_arrays(parts).dictionary_encode()
        numbers = merged.indices.to_numpy()
        start = sum(map(len, self._known))
        for part in self._waiting:
            stop = start + len(part.dictionary)
            self._numbers.append(numbers[start:stop][part.indices.to_numpy()])
            start = stop
        self._known, self._waiting, self._entries = [merged.dictionary], [], 0


class UnitColumns:
    """The distinct combinations of columns that each unit has.

    Memory grows with the number of distinct pairs of a unit and such a combination.
    """

    def __init__(self, schema: Schema, unit: str, source: Source, *, cache: bool) -> None:
        self._schema = schema
        self._unit = unit
        self._source = source
        self._cached: dict[tuple[Reading, ...], Batch] | None = {} if cache else None

    def __reduce__(self) -> NoReturn:
        refuse_copy("a table")

    def batches(self, wanted: Sequence[Reading]) -> Generator[Batch]:
        """Show the distinct combinations of the wanted columns, once per unit."""
        key = tuple(wanted)
        if self._cached is None:
            yield from self._find(key).cut()
            return
        if key not in self._cached:
            self._cached[key] = self._find(key)
        yield from self._cached[key].cut()

    def _find(self, wanted: tuple[Reading, ...]) -> Batch:
        """Merge as rows come in, so that what is held stays near the number of distinct pairs."""
        names = tuple(dict.fromkeys((self._unit, *names_of(self._schema, wanted))))
        raws = scan(self._source, names)
        pairs = (
            pair_units(raw, self._schema, self._unit, wanted, self._source.label) for raw in raws
        )
        parts: list[Any] = []
        waiting = 0
        for part in read_quietly(pairs, self._source.label):
            waiting += part.num_rows if parts else 0
            parts.append(part)
            if waiting > max(MERGE_ROWS, parts[0].num_rows):
                parts, waiting = [distinct_pairs(parts)], 0
        return batch_of_pairs(parts, wanted)


def pair_units(raw: Any, schema: Schema, unit: str, wanted: Sequence[Reading], label: str) -> Any:
    """Put units beside what is wanted of their rows, encoded."""
    units = to_units(raw.column(unit), label)
    parts = [reading.encode(schema, raw) for reading in wanted]
    keep = np.logical_and.reduce(
        [units.is_valid().to_numpy(zero_copy_only=False)]
        + [part.keep for part in parts if part.keep is not None]
    )
    arrays = [units, *(pa.array(as_integers(part.data)) for part in parts)]
    names = [UNIT, *map(str, wanted)]
    return pa.Table.from_arrays(arrays, names=names).filter(pa.array(keep))


def distinct_pairs(parts: Sequence[Any]) -> Any:
    """Leave out the pairs that repeat another."""
    table = pa.concat_tables(parts)
    return table.group_by(table.column_names, use_threads=False).aggregate([])


def batch_of_pairs(parts: Sequence[Any], wanted: Sequence[Reading]) -> Batch:
    """Show each distinct pair of some tables of pairs once."""
    if not parts:
        return make_batch(0, {})
    table = distinct_pairs(parts)
    return make_batch(table.num_rows, {x: _restore(table.column(str(x)), x) for x in wanted})


def as_integers(data: NDArray[Any]) -> NDArray[Any]:
    """Compare floats by their bits; the two zeros are one."""
    return (data + 0.0).view(np.int64) if data.dtype == np.float64 else data


def _restore(column: Any, reading: Reading) -> Part:
    data = column.to_numpy()
    data = data.view(np.float64) if reading.as_values else data
    data.flags.writeable = False
    return Part(data, None)
