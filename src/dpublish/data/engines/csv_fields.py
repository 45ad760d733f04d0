"""Values of CSV records as Arrow arrays of text."""

import re
from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from dpublish.data.engines.csv_records import Positions, Records

_QUOTED = re.compile(rb' *"([^"]*+(?:""[^"]*+)*+)"?(.*)', re.DOTALL)


def read_fields(records: Records, columns: int, fields: Sequence[int]) -> list[pa.Array]:
    """Read some fields of the records that are not left out, each as an array of text.

    A record is left out if it is too long, has fewer fields than there are `columns`, or has
    bytes that are not UTF-8 in one of `fields`.
    """
    chosen = np.flatnonzero(records.are_short & (records.fields >= columns))
    arrays = [_read_field(records, chosen, field) for field in fields]
    are_text = [_are_text(array) for array in arrays]
    if not all(each.all() for each in are_text):
        keep = pa.array(np.logical_and.reduce(are_text))
        arrays = [array.filter(keep) for array in arrays]
    return [array.cast(pa.string()) for array in arrays]


def are_odd(records: Records, columns: int) -> bool:
    """Check whether some records are left out, lose a field, or break the rules of quoting.

    For the owner only: the answer depends on rows.  A blank line is no record, and a delimiter
    behind the last field does no harm.
    """
    begins, ends = records.spans()
    if records.is_unclosed or not records.are_short.all():
        return True
    has_blank_end = records.text[np.maximum(ends - 1, 0)] == records.delimiter
    fits = (records.fields == columns) | (begins == ends)
    fits |= (records.fields == columns + 1) & has_blank_end
    return not fits.all() or _has_broken_text(records)


def _has_broken_text(records: Records) -> bool:
    """Check for bytes that are not UTF-8, and for text behind a quote that closes a field."""
    if not _is_text(records.text[: records.length].tobytes()):
        return True
    closing = records.quotes[1::2]
    closing = closing[closing < records.length]
    return not np.isin(records.text[closing + 1], [*b'\r\n "', records.delimiter]).all()


def _read_field(records: Records, chosen: Positions, number: int) -> pa.Array:
    """Read one field as bytes; an empty one is missing."""
    begins, ends, first, last = records.field(chosen, number)
    if not len(records.quotes):
        return _gather(records.text, begins, ends)
    # One quote at each end and no other: what lies between is the value.
    are_plain = last == first + 2
    are_plain[are_plain] &= records.quotes[first[are_plain]] == begins[are_plain]
    are_plain[are_plain] &= records.quotes[last[are_plain] - 1] == ends[are_plain] - 1
    array = _gather(records.text, begins + are_plain, ends - are_plain)
    odd = np.flatnonzero((last > first) & ~are_plain)
    return _replace(
        array, odd, [_unquote(array[position].as_py() or b"") for position in odd.tolist()]
    )


def _gather(text: NDArray[np.uint8], begins: Positions, ends: Positions) -> pa.Array:
    """Copy pieces of text into one Arrow array."""
    lengths = ends - begins
    offsets = np.zeros(len(lengths) + 1, dtype=np.int32)
    np.cumsum(lengths, out=offsets[1:])
    positions = np.repeat((begins - offsets[:-1]).astype(np.int32), lengths)
    positions += np.arange(offsets[-1], dtype=np.int32)
    present = np.packbits(lengths > 0, bitorder="little")
    buffers = [pa.py_buffer(each) for each in (present, offsets, text[positions])]
    return pa.Array.from_buffers(pa.binary(), len(lengths), buffers)


def _replace(array: pa.Array, positions: Positions, values: Sequence[bytes]) -> pa.Array:
    if not len(positions):
        return array
    mask = np.zeros(len(array), dtype=bool)
    mask[positions] = True
    new = pa.array([value or None for value in values], pa.binary())
    return pc.replace_with_mask(array, pa.array(mask), new)


def _unquote(field: bytes) -> bytes:
    """Read a field with quotes other than one at each end.

    >>> [_unquote(field) for field in (b'"a""b"', b' "a" ', b'"a"b"c"')]
    [b'a"b', b'a ', b'ab"c"']
    """
    found = _QUOTED.fullmatch(field)
    return field if found is None else found[1].replace(b'""', b'"') + found[2]


def _are_text(array: pa.Array) -> NDArray[np.bool_]:
    """Check which values are UTF-8 text."""
    try:
        array.cast(pa.string())
    except pa.ArrowInvalid:
        return np.array([_is_text(value) for value in array.to_pylist()])
    return np.ones(len(array), dtype=bool)


def _is_text(value: bytes | None) -> bool:
    try:
        (value or b"").decode()
    except UnicodeDecodeError:
        return False
    return True
