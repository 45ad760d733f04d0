"""Measure a Parquet file before it is decoded: how many rows, and how many bytes they take.

A Parquet file of a megabyte may decode to gigabytes.  Its footer can understate that, but the
headers of its pages cannot: a decoder allocates what they say and fails if they are wrong.  So
this module reads the footer and every page header itself (Thrift's compact protocol), decodes
no value, and accepts the few types, codecs and encodings that dpublish writes.  Where two
readers could understand the same bytes differently, the file is refused.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

from dpublish.errors import CorruptRelease

MOST_ROWS = 1 << 27
MOST_COLUMNS = 1 << 14
_MOST_FOOTER = 8 << 20  # bytes
_MOST_DEPTH = 16  # of nested Thrift structures; Parquet needs 6
_MAGIC = b"PAR1"

_BOOLEANS, _NUMBERS = (1, 2), {3: 8, 4: 16, 5: 32, 6: 64}  # Thrift's types, and their bits
_DOUBLE, _BINARY, _LIST, _SET, _MAP, _STRUCT = range(7, 13)
_I32, _I64 = 5, 6

_WIDTHS = {0: 1, 1: 4, 2: 8, 5: 8, 6: 8}  # physical types: bytes a value, or a reference to one
_TEXT = 6
_CODECS = {0, 1, 6}  # uncompressed, Snappy, Zstandard
_ENCODINGS = {0, 2, 3, 8}  # plain, plain dictionary, run lengths, dictionary
_DATA_PAGE, _DICTIONARY_PAGE, _DATA_PAGE_V2 = 0, 2, 3
_HEADERS = {_DATA_PAGE: (5, 2), _DICTIONARY_PAGE: (7, 2), _DATA_PAGE_V2: (8, 4)}
"""For each type of page: the field that describes it, and therein the field of the encoding."""


class ParquetSize(NamedTuple):
    """What a Parquet file holds, as its pages say."""

    rows: int
    columns: int
    decoded_bytes: int


def measure_parquet(content: bytes) -> ParquetSize:
    """Return how many rows a Parquet file has and how many bytes they take when decoded.

    Texts count as stored: a text that a dictionary repeats counts once, and a reference to it
    for each row.
    """
    footer = _read_footer(content)
    columns = _require_flat(footer)
    rows = decoded = 0
    for group in _take_structs(footer, 4):
        height = _take(group, 3, _I64)
        chunks = _take_structs(group, 1)
        if len(chunks) != columns or not 0 <= height <= MOST_ROWS:
            raise _malformed()
        rows += height
        decoded += sum(_measure_chunk(content, chunk, height) for chunk in chunks)
    if rows != _take(footer, 3, _I64) or rows > MOST_ROWS:
        raise _malformed()
    return ParquetSize(rows, columns, decoded)


def _require_flat(footer: "_Fields") -> int:
    root, *elements = _take_structs(footer, 2) or [{}]
    if len(elements) > MOST_COLUMNS or _take(root, 5, _I32) != len(elements):
        raise _malformed()
    for element in elements:
        is_flat = 5 not in element and _take(element, 3, _I32) in (0, 1)
        if not is_flat or _take(element, 1, _I32) not in _WIDTHS:
            raise _malformed()
    return len(elements)


def _measure_chunk(content: bytes, chunk: "_Fields", rows: int) -> int:
    """Add up what a column takes within a group of rows."""
    about = _take(chunk, 3, _STRUCT)
    kind, codec = _take(about, 1, _I32), _take(about, 4, _I32)
    elsewhere = {1, 8, 9} & chunk.keys()  # in another file, or encrypted
    if elsewhere or kind not in _WIDTHS or codec not in _CODECS:
        raise _malformed()
    if _take(about, 5, _I64) != rows:
        raise _malformed()
    if not rows:
        return 0  # a decoder reads no page, and the writer gives no position of one
    pages = list(_pages(content, about))
    if sum(page.values for page in pages if page.kind != _DICTIONARY_PAGE) != rows:
        raise _malformed()
    stored = sum(page.size for page in pages)
    return max(rows * _WIDTHS[kind] + (stored if kind == _TEXT else 0), stored)


class _Page(NamedTuple):
    kind: int
    values: int
    size: int


def _pages(content: bytes, about: "_Fields") -> Iterator[_Page]:
    """Read the headers of a column chunk's pages, one after another."""
    start = _take(about, 9, _I64)
    if 11 in about:
        start = min(start, _take(about, 11, _I64) or start)
    stop = start + _take(about, 7, _I64)
    if not 4 <= start <= stop <= len(content):
        raise _malformed()
    while start < stop:
        thrift = _Thrift(content, start, stop)
        header = thrift.read_struct()
        yield _page(header)
        start = thrift.position + _take(header, 3, _I32)
    if start != stop:
        raise _malformed()


def _page(header: "_Fields") -> _Page:
    kind, size = _take(header, 1, _I32), _take(header, 2, _I32)
    if kind not in _HEADERS or size < 0 or _take(header, 3, _I32) < 0:
        raise _malformed()
    field, encoding = _HEADERS[kind]
    about = _take(header, field, _STRUCT)
    values = _take(about, 1, _I32)
    if values < 0 or _take(about, encoding, _I32) not in _ENCODINGS:
        raise _malformed()
    return _Page(kind, values, size)


def _read_footer(content: bytes) -> "_Fields":
    if len(content) < 12 or content[:4] != _MAGIC or content[-4:] != _MAGIC:
        raise _malformed()
    size = int.from_bytes(content[-8:-4], "little")
    if not 0 < size <= min(len(content) - 12, _MOST_FOOTER):
        raise _malformed()
    return _Thrift(content, len(content) - 8 - size, len(content) - 8).read_struct()


class _Field(NamedTuple):
    kind: int
    value: Any


_Fields = dict[int, _Field]


def _take(fields: _Fields, number: int, kind: int) -> Any:
    """Return a field that must be there and be of a type: a decoder skips one of another."""
    field = fields.get(number)
    if field is None or field.kind != kind:
        raise _malformed()
    return field.value


def _take_structs(fields: _Fields, number: int) -> list[_Fields]:
    """Return a field that must be a list of structures."""
    elements: list[_Fields] = _take(fields, number, _LIST)
    if not all(isinstance(element, dict) for element in elements):
        raise _malformed()
    return elements


@dataclass
class _Thrift:
    """Reads Thrift's compact protocol from `content`, from `position` up to `stop`."""

    content: bytes
    position: int
    stop: int

    def read_struct(self, depth: int = 0) -> _Fields:
        """Read a structure: fields by number, each once."""
        fields: _Fields = {}
        number = 0
        while head := self._byte():
            step, kind = head >> 4, head & 15
            number = number + step if step else self._number(16)
            if number in fields:
                raise _malformed()
            is_flag = kind in _BOOLEANS  # a field's type says which of the two it is
            fields[number] = _Field(kind, kind == 1 if is_flag else self._value(kind, depth + 1))
        return fields

    def _value(self, kind: int, depth: int) -> Any:
        if depth > _MOST_DEPTH:
            raise _malformed()
        if kind in _NUMBERS:
            return self._byte() if kind == 3 else self._number(_NUMBERS[kind])
        if kind in (_DOUBLE, _BINARY):
            return self._skip(8 if kind == _DOUBLE else self._varint())
        if kind in (_LIST, _SET):
            return self._list(depth)
        if kind == _STRUCT:
            return self.read_struct(depth)
        if kind in _BOOLEANS:
            return self._byte() == 1
        raise _malformed()  # maps among them, which Parquet does not use

    def _list(self, depth: int) -> list[Any]:
        head = self._byte()
        size, kind = head >> 4, head & 15
        if size == 15:
            size = self._varint()
        if size > self.stop - self.position:  # every element takes a byte at least
            raise _malformed()
        return [self._value(kind, depth + 1) for _ in range(size)]

    def _skip(self, size: int) -> None:
        if size > self.stop - self.position:
            raise _malformed()
        self.position += size

    def _byte(self) -> int:
        if self.position >= self.stop:
            raise _malformed()
        self.position += 1
        return self.content[self.position - 1]

    def _varint(self) -> int:
        value = 0
        for shift in range(0, 70, 7):
            byte = self._byte()
            value |= (byte & 127) << shift
            if byte < 128:
                return value
        raise _malformed()

    def _number(self, bits: int) -> int:
        coded = self._varint()
        if coded >= 1 << bits:
            raise _malformed()
        return (coded >> 1) ^ -(coded & 1)


def _malformed() -> CorruptRelease:
    return CorruptRelease("a table is no Parquet file as dpublish writes it")
