"""Turn Arrow columns into numbers and into positions in a public list of values.

What becomes of a value depends on that value alone, never on its neighbors, and no value
can raise an error: an error would tell that such a value is there.  A column whose *type*
cannot be used is refused; types are public.
"""

import re
from collections.abc import Iterable, Mapping
from decimal import Decimal
from typing import Any, NamedTuple, cast

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from dpublish.data.taxonomy import canonical_text
from dpublish.errors import UnreadableData

Codes = NDArray[np.uint8] | NDArray[np.uint16] | NDArray[np.uint32]
UNKNOWN, MISSING = -1, -2
_MEANINGFUL = ("pandas.period", "pandas.interval")  # their storage alone would be misread
# Each `++` and `*+` takes all digits for good: a long text that is no number is read just once.
_NUMBER = re.compile(
    rb"[+-]?([0-9]++(\.[0-9]*+)?|\.[0-9]++)([eE][+-]?[0-9]++)?|[+-]?inf(inity)?", re.I
)

_PLAIN_WORD = "^[A-Za-z0-9_-]+$"  # spelled as it is, unless it is a truth value
_CLOSING_ZEROS = (r"\.0+$|(\.[0-9]*[1-9])0+$", r"\1")


class Encoded(NamedTuple):
    """Leaf codes of some records; `keep` marks those not left out (None: all are kept)."""

    codes: Codes
    keep: NDArray[np.bool_] | None


class Numbers(NamedTuple):
    """Clipped values of some records; `keep` marks those not left out (None: all are kept)."""

    values: NDArray[np.float64]
    keep: NDArray[np.bool_] | None


def code_type(size: int) -> np.dtype[Any]:
    """Choose the narrowest type that holds the codes `0 .. size - 1`."""
    return np.min_scalar_type(max(size - 1, 0))


def to_numbers(array: Any, name: str) -> NDArray[np.float64]:
    """Read an Arrow array as numbers; NaN stands for missing and for text that is no number."""
    if isinstance(array, pa.ChunkedArray):
        return np.concatenate([np.empty(0), *(to_numbers(part, name) for part in array.chunks)])
    array = plain_array(array)
    if pa.types.is_dictionary(array.type):
        entries, positions = used_entries(array)
        return np.append(to_numbers(entries, name), np.nan)[positions]
    if is_text(array.type):
        return _parse(pc.ascii_trim_whitespace(array))
    if not _is_number(array.type):
        raise _unusable(array.type, name, "numbers, or text that holds numbers,")
    return _to_floats(array)


def to_positions(array: Any, known: Mapping[str, int], name: str) -> NDArray[np.int64]:
    """Look up each value by its canonical text; `UNKNOWN` is not listed, `MISSING` is blank."""
    if isinstance(array, pa.ChunkedArray):
        parts = [to_positions(part, known, name) for part in array.chunks]
        return np.concatenate([np.empty(0, dtype=np.int64), *parts])
    distinct, positions = _distinct(array, name)
    texts = map(_text, _scalars(distinct))
    found = [known.get(text, UNKNOWN) if text else MISSING for text in texts]
    return np.array([*found, MISSING], dtype=np.int64)[positions]


def _distinct(array: Any, name: str) -> tuple[Any, NDArray[np.int64]]:
    """Return the distinct values, and for each row which one it has; null is past the last."""
    array = plain_array(array)
    if pa.types.is_dictionary(array.type):
        entries, positions = used_entries(array)
        return _comparable(entries, name), positions
    encoded = _comparable(array, name).dictionary_encode()
    return encoded.dictionary, dictionary_positions(encoded)


def to_texts(array: Any, name: str) -> Any:
    """Write each value as its canonical text, as an Arrow array; blank is null."""
    if isinstance(array, pa.ChunkedArray):
        parts = [to_texts(part, name) for part in array.chunks]
        return pa.concat_arrays([pa.array([], pa.large_string()), *parts])
    distinct, positions = _distinct(array, name)
    texts = pa.concat_arrays([_write_texts(distinct), pa.nulls(1, pa.large_string())])
    return texts.take(pa.array(positions))


def _write_texts(distinct: Any) -> Any:
    """Write distinct values as canonical texts; one by one only those that look odd."""
    if pa.types.is_integer(distinct.type):
        return distinct.cast(pa.large_string())
    if not pa.types.is_large_binary(distinct.type):
        return pa.array([_text(value) or None for value in _scalars(distinct)], pa.large_string())
    is_word = pc.match_substring_regex(distinct, _PLAIN_WORD)
    is_truth = pc.match_substring_regex(distinct, "(?i)^(true|false)$")
    is_odd = pc.fill_null(pc.or_(pc.invert(is_word), is_truth), True)
    odd = [_text(value) or None for value in distinct.filter(is_odd).to_pylist()]
    words = pc.if_else(is_odd, b"", distinct).cast(pa.large_string())
    return pc.replace_with_mask(words, is_odd, pa.array(odd, pa.large_string()))


def plain_array(array: Any) -> Any:
    """Undo extensions and encodings that carry no meaning here."""
    while isinstance(array, pa.ExtensionArray) and array.type.extension_name not in _MEANINGFUL:
        array = array.storage
    kind = array.type
    if pa.types.is_run_end_encoded(kind):
        runs = pa.RunEndEncodedArray.from_arrays(array.run_ends, plain_array(array.values))
        # Written out, text may be longer than what 32 bits can count; so it was made large.
        return pc.run_end_decode(runs.slice(array.offset, len(array)))
    if pa.types.is_dictionary(kind):
        entries = plain_array(array.dictionary)
        same = entries.type == kind.value_type
        return array if same else pa.DictionaryArray.from_arrays(array.indices, entries)
    if is_text(kind):
        return array.cast(pa.large_string())
    return array.cast(pa.large_string()) if pa.types.is_null(kind) else array


def used_entries(array: Any) -> tuple[Any, NDArray[np.int64]]:
    """Return the entries of a dictionary, and for each value its entry; null is past the last.

    Entries that no value uses are left out of a dictionary longer than the column: many
    batches may share it, and must not look up all of it every time.
    """
    positions = dictionary_positions(array)
    if len(array.dictionary) <= len(array):
        return array.dictionary, positions
    used, positions = np.unique(positions, return_inverse=True)
    return array.dictionary.take(pa.array(used[used < len(array.dictionary)])), positions


def dictionary_positions(array: Any) -> NDArray[np.int64]:
    """List the dictionary entry of each value; null is one past the last entry."""
    indices = array.indices.cast(pa.int64()).fill_null(len(array.dictionary))
    return np.asarray(indices.to_numpy(zero_copy_only=False), dtype=np.int64)


def _to_floats(array: Any) -> NDArray[np.float64]:
    if pa.types.is_decimal(array.type):
        array = array.cast(pa.string())  # by itself Arrow does not take the nearest float
    floats = pc.cast(array, pa.float64(), safe=False).to_numpy(zero_copy_only=False)
    return np.asarray(floats, dtype=np.float64)


def _parse(trimmed: Any) -> NDArray[np.float64]:
    """Read text as numbers: all at once if all of it is numbers, else value by value.

    Both ways give the same number for the same text, which a test checks.
    """
    filled = pc.if_else(pc.equal(pc.binary_length(trimmed), 0), None, trimmed)
    try:
        return _to_floats(filled)
    except pa.ArrowInvalid:
        encoded = filled.cast(pa.large_binary()).dictionary_encode()
        numbers = [_parse_one(text) for text in encoded.dictionary.to_pylist()]
        return np.array([*numbers, np.nan])[dictionary_positions(encoded)]


def _parse_one(text: bytes | None) -> float:
    return float(text) if text is not None and _NUMBER.fullmatch(text) else np.nan


def _comparable(array: Any, name: str) -> Any:
    """Refuse types whose values have no text; text itself becomes bytes, valid or not."""
    array = plain_array(array)
    if pa.types.is_date(array.type):
        array = array.cast(pa.large_string())  # Python knows fewer dates than Arrow does
    if pa.types.is_timestamp(array.type):
        array = _write_times(array)
    if is_text(array.type):
        return array.cast(pa.large_binary())
    if _is_number(array.type):
        return array
    raise _unusable(array.type, name, "text, numbers, dates or truth values")


def _write_times(array: Any) -> Any:
    """Write points in time as `2024-02-29 12:00:00`, with decimals of seconds if there are any.

    Those with a time zone are written in UTC, with a Z at the end.
    """
    naive = array.cast(pa.timestamp(array.type.unit))  # in UTC
    texts = pc.replace_substring_regex(naive.cast(pa.large_string()), *_CLOSING_ZEROS)
    return texts if array.type.tz is None else pc.replace_substring_regex(texts, "$", "Z")


def _scalars(array: Any) -> Iterable[object]:
    if pa.types.is_float16(array.type) or pa.types.is_float32(array.type):
        # As doubles they would be written with more digits than anyone gave them.
        return cast("Iterable[object]", array.to_numpy(zero_copy_only=False))
    return cast("Iterable[object]", array.to_pylist())


def _text(value: object) -> str:
    """Write a value as canonical text; the empty text means missing."""
    if value is None:
        return ""
    if isinstance(value, bytes):
        return canonical_text(value.decode(errors="replace"))
    if isinstance(value, float | np.floating):
        if np.isnan(value):
            return ""
        return str(int(value)) if value.is_integer() else canonical_text(value)
    if isinstance(value, Decimal):
        text = f"{value:f}"
        return canonical_text(text.rstrip("0") if "." in text else text)
    return canonical_text(value)


def is_text(kind: Any) -> bool:
    """Check whether an Arrow type holds text."""
    types = pa.types
    return bool(types.is_string(kind) or types.is_large_string(kind) or types.is_string_view(kind))


def _is_number(kind: Any) -> bool:
    types = pa.types
    numeric = types.is_integer(kind) or types.is_floating(kind) or types.is_decimal(kind)
    return bool(numeric or types.is_boolean(kind))


def _unusable(kind: Any, name: str, wanted: str) -> UnreadableData:
    return UnreadableData(f"column {name!r} has the type {kind}, but {wanted} are needed")
