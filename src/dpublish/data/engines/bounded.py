"""Keep a few rows of every unit, by a rule that looks at that unit's rows alone.

A unit's rows are put in an order that a keyed hash gives them, and the first ones stay.  The
hash is taken of the unit, of the codes of the row, and of a number that tells equal rows of
the unit apart.  So the choice does not depend on other units, on the order of rows, or on how
they are cut into batches.  Units are told apart by what they are, never by a hash: two units
with the same hash would share one allowance, and the one would move the other's rows.
"""

from collections.abc import Iterable, Sequence
from hashlib import shake_256
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from dpublish.data.column import NumberColumn
from dpublish.data.engines.encoded import Part, Reading
from dpublish.data.engines.source import Source, read_quietly, scan
from dpublish.data.engines.units import as_integers, needed_columns, to_units
from dpublish.data.schema import Schema

Words = NDArray[np.uint64]
_HASHED_TEXTS = 1 << 14  # at once: several words are held for every letter
_SHIFTS = tuple(map(np.uint64, (30, 27, 31)))
_FACTORS = tuple(map(np.uint64, (0xBF58476D1CE4E5B9, 0x94D049BB133111EB)))


class _Rows(NamedTuple):
    """Complete rows of a record batch, as they were read and as kernels see them."""

    raw: Any
    units: Any
    codes: tuple[NDArray[Any], ...]
    values: tuple[NDArray[Any], ...]


def bound_rows(source: Source, schema: Schema, unit: str, most: int, key: bytes) -> list[Any]:
    """Read the columns of a schema, and keep at most `most` rows of each unit.

    Rows without a unit, and rows that the missing rule of a column leaves out, go first.
    """
    read = (_read(raw, schema, unit, source.label) for raw in scan(source, needed_columns(schema)))
    held = list(read_quietly(read, source.label))
    if not held:
        return []
    chosen = _choose(held, most, key)
    ends = np.cumsum([rows.raw.num_rows for rows in held])[:-1]
    masks = np.split(chosen, ends)
    return [rows.raw.filter(pa.array(mask)) for rows, mask in zip(held, masks, strict=True)]


def _read(raw: Any, schema: Schema, unit: str, label: str) -> _Rows:
    units = to_units(raw.column(unit), label)
    numbers = [column.name for column in schema.columns if isinstance(column, NumberColumn)]
    codes = [Reading(name, as_values=False).encode(schema, raw) for name in schema.names]
    values = [Reading(name, as_values=True).encode(schema, raw) for name in numbers]
    # A value that is missing as a category has a code and no number, and its row stays.
    keep = np.logical_and.reduce(
        [units.is_valid().to_numpy(zero_copy_only=False)]
        + [part.keep for part in codes if part.keep is not None]
    )
    return _Rows(
        raw.select(list(schema.source_names)).filter(pa.array(keep)),
        units.filter(pa.array(keep)),
        _pick(codes, keep),
        _pick(values, keep),
    )


def _pick(parts: Iterable[Part], keep: NDArray[np.bool_]) -> tuple[NDArray[Any], ...]:
    return tuple(as_integers(part.data)[keep] for part in parts)


def _choose(held: Sequence[_Rows], most: int, key: bytes) -> NDArray[np.bool_]:
    """Mark the rows that stay; only units with more rows than may stay need an order."""
    encoded = pa.concat_arrays([rows.units for rows in held]).dictionary_encode()
    units = encoded.indices.to_numpy()
    exceeding = np.bincount(units, minlength=len(encoded.dictionary)) > most
    positions = np.flatnonzero(exceeding[units])
    chosen = np.ones(units.size, dtype=np.bool_)
    chosen[positions] = _come_first(
        (np.cumsum(exceeding) - 1)[units[positions]],
        hash_units(encoded.dictionary.filter(pa.array(exceeding)), key),
        _join([rows.codes for rows in held], positions),
        _join([rows.values for rows in held], positions),
        most,
        key,
    )
    return chosen


def _join(
    parts: Sequence[tuple[NDArray[Any], ...]], positions: NDArray[np.int64]
) -> list[NDArray[Any]]:
    """Put the parts of each column together, and pick the rows at some positions."""
    return [np.concatenate(column)[positions] for column in zip(*parts, strict=True)]


def _come_first(
    units: NDArray[np.int64],
    unit_words: Words,
    codes: Sequence[NDArray[Any]],
    values: Sequence[NDArray[Any]],
    most: int,
    key: bytes,
) -> NDArray[np.bool_]:
    """Mark the first rows of every unit in the order of their hashes.

    Rows with the same codes are numbered by their values, which settles all that a kernel can
    tell apart; rows that it cannot are interchangeable.
    """
    order = np.lexsort((*values, *codes, units))
    units, codes = units[order], [column[order] for column in codes]
    repeats = _number_within([units, *codes])
    marks = hash_rows([unit_words[units], *codes, repeats], key)
    again = np.lexsort((marks, units))  # stable: rows with the same hash stay in their order
    first = _number_within([units[again]]) < most
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
    state = np.zeros(columns[0].size, dtype=np.uint64)
    for column, salt in zip(columns, _stretch(key, b"rows", len(columns)), strict=True):
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
