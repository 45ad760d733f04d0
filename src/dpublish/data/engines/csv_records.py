"""Where the records and fields of CSV text begin and end.

The rules are those of Python's `csv` module, with `skipinitialspace`: a double quote opens a
quoted part only where a field begins; a doubled quote within it is a quote; behind the quote
that closes it, everything is literal up to the delimiter.  A record ends at LF or CR LF outside
quotes.  A CR that no LF follows is read as a space: common writers (Python's before 3.13, and
pandas with it) put one into a field without quoting it, and one person's text could otherwise
bring any number of records into the table.

Text is taken in blocks, and a record may go on over many of them.  What is found does not depend
on where the blocks are cut, and at most `LONGEST_RECORD` bytes are carried from one to the next:
a record that is longer is left out, by its own length alone.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from io import BufferedIOBase
from typing import NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

LONGEST_RECORD = 2_000_000
"""Bytes of the longest record that is read, without its line end."""

_BLOCK = 1 << 22
_LONE_RETURN = re.compile(rb"\r(?!\n)")
_LF, _CR, _SPACE, _QUOTE = b'\n\r "'

Positions = NDArray[np.int64]


class Fields(NamedTuple):
    """Where fields begin and end, and which of the piece's quotes lie in them (from, up to)."""

    begins: Positions
    ends: Positions
    first_quotes: Positions
    end_quotes: Positions


@dataclass(frozen=True)
class Records:
    """Whole records in a piece of CSV text, found by the positions of their fields.

    Attributes:
        delimiter: The byte between fields.
        text: The bytes; those behind the last of `stops` are of no record here.
        stops: Where fields end: at a delimiter or a line feed outside quotes.
        quotes: Where quotes stand that open or close a quoted part; both of a doubled quote.
        quotes_before: How many of `quotes` stand before each of `stops`.
        is_cut: Whether the beginning of the first record was thrown away, so that it is too long.
        is_unclosed: Whether the text ended within quotes.
    """

    delimiter: int
    text: NDArray[np.uint8]
    stops: Positions
    quotes: Positions
    quotes_before: Positions
    is_cut: bool
    is_unclosed: bool = False

    @property
    def length(self) -> int:
        """Bytes of the records, with their line ends."""
        return int(self.stops[-1]) + 1

    @cached_property
    def _last_fields(self) -> Positions:
        """Positions in `stops` of the last field of each record."""
        return np.flatnonzero(self.text[self.stops] == _LF)

    @cached_property
    def _first_fields(self) -> Positions:
        return np.concatenate(([0], self._last_fields[:-1] + 1))

    @cached_property
    def fields(self) -> Positions:
        """How many fields each record has."""
        return self._last_fields - self._first_fields + 1

    @cached_property
    def are_short(self) -> NDArray[np.bool_]:
        """Which records have at most `LONGEST_RECORD` bytes."""
        begins, ends = self.spans()
        lengths = ends - begins
        lengths[-1:] -= self.is_unclosed  # the quote that was put there to close it
        short: NDArray[np.bool_] = lengths <= LONGEST_RECORD
        short[:1] &= not self.is_cut
        return short

    def spans(self) -> tuple[Positions, Positions]:
        """Find where each record begins and ends, without its line end."""
        return self._begins(self._first_fields), self._ends(self._last_fields)

    def field(self, records: Positions, number: int) -> "Fields":
        """Find one field of some records."""
        indices = self._first_fields[records] + number
        first = np.where(indices > 0, self.quotes_before[indices - 1], 0)
        return Fields(
            self._begins(indices), self._ends(indices), first, self.quotes_before[indices]
        )

    def _begins(self, indices: Positions) -> Positions:
        return np.where(indices > 0, self.stops[indices - 1] + 1, 0)

    def _ends(self, indices: Positions) -> Positions:
        ends = self.stops[indices]
        # Returns that end no line are gone, so one that stands before a line feed belongs to it.
        before = self.text[np.maximum(ends - 1, 0)]
        trimmed: Positions = ends - ((self.text[ends] == _LF) & (before == _CR))
        return trimmed


def read_records(file: BufferedIOBase, delimiter: str) -> Iterator[Records]:
    """Find the records of a file, from its present position to its end."""
    mark = ord(delimiter)
    rest, is_cut = b"", False
    for block in _blocks(file):
        piece = _Piece.of(rest + block, mark)
        if piece.length:
            yield piece.records(is_cut)
            is_cut = False
        rest = piece.rest
        if len(rest) > LONGEST_RECORD:
            rest, is_cut = piece.state(), True
    if rest:
        is_open = _Piece.of(rest, mark).is_open
        last = _Piece.of(rest + (b'"\n' if is_open else b"\n"), mark)
        yield replace(last.records(is_cut), is_unclosed=is_open)


@dataclass(frozen=True)
class _Piece:
    """Some text that begins with a record; the last record may not be whole."""

    raw: bytes
    text: NDArray[np.uint8]
    delimiter: int
    stops: Positions
    quotes: Positions
    quotes_before: Positions

    @classmethod
    def of(cls, raw: bytes, delimiter: int) -> Self:
        text = np.frombuffer(raw, dtype=np.uint8)
        marks = (text == _LF) | (text == delimiter)
        if b'"' not in raw:
            stops = np.flatnonzero(marks)
            return cls(raw, text, delimiter, stops, stops[:0], np.zeros_like(stops))
        are_quotes = _find_quotes(raw, text, delimiter)
        positions = np.flatnonzero(marks | are_quotes)
        are_turns = are_quotes[positions]
        before = np.cumsum(are_turns)
        are_stops = ~are_turns & (before % 2 == 0)
        quotes, stops = positions[are_turns], positions[are_stops]
        return cls(raw, text, delimiter, stops, quotes, before[are_stops])

    @cached_property
    def length(self) -> int:
        """Bytes of all whole records, with their line ends."""
        line_ends = np.flatnonzero(self.text[self.stops] == _LF)
        return int(self.stops[line_ends[-1]]) + 1 if len(line_ends) else 0

    @property
    def rest(self) -> bytes:
        """What is behind the last whole record."""
        return self.raw[self.length :]

    @property
    def is_open(self) -> bool:
        """Whether the text ends within quotes."""
        return len(self.quotes) % 2 == 1

    def records(self, is_cut: bool) -> Records:
        """Return the whole records."""
        stop = np.searchsorted(self.stops, self.length)
        whole, before = self.stops[:stop], self.quotes_before[:stop]
        return Records(self.delimiter, self.text, whole, self.quotes, before, is_cut)

    def state(self) -> bytes:
        """Return the shortest beginning of a record after which text means what it means here."""
        if self.is_open:
            return b'"'
        if len(self.quotes) and self.quotes[-1] == len(self.raw) - 1:
            return b'""'  # a quote that comes next is a doubled one
        begin = int(self.stops[-1]) + 1 if len(self.stops) else 0
        return b"x" if self.raw[begin:].strip(b" ") else bytes([self.delimiter])


def _find_quotes(raw: bytes, text: NDArray[np.uint8], delimiter: int) -> NDArray[np.bool_]:
    """Mark the quotes that open or close a quoted part, in text that begins with a field.

    If every second quote, from the first, stands where a field begins or right behind the quote
    before it (the two are a doubled one), then all of them do.  Otherwise they are looked at one
    by one.
    """
    are_quotes: NDArray[np.bool_] = text == _QUOTE
    quotes = np.flatnonzero(are_quotes)
    opening = quotes[::2]
    before = np.where(opening > 0, text[opening - 1], _LF)
    if ((before == delimiter) | (before == _LF) | (before == _QUOTE)).all():
        return are_quotes
    are_quotes = np.zeros_like(are_quotes)
    are_quotes[_walk(raw, quotes.tolist(), delimiter)] = True
    return are_quotes


def _walk(raw: bytes, quotes: Sequence[int], delimiter: int) -> list[int]:
    found: list[int] = []
    is_open = False
    for position in quotes:
        if is_open or _opens(raw, position, delimiter, found):
            found.append(position)
            is_open = not is_open
    return found


def _opens(raw: bytes, position: int, delimiter: int, found: list[int]) -> bool:
    if found and found[-1] == position - 1:
        return True
    before = position - 1
    while before >= 0 and raw[before] == _SPACE:
        before -= 1
    return before < 0 or raw[before] in (delimiter, _LF)


def _blocks(file: BufferedIOBase) -> Iterator[bytes]:
    """Read a file in blocks, none of which ends between CR and LF; a lone CR becomes a space."""
    held = b""  # a CR at the end of a block waits for what comes next
    while block := _read_block(file):
        block = held + block
        held = b"\r" if block.endswith(b"\r") else b""
        block = block[: len(block) - len(held)]
        has_lone = b"\r" in block and block.count(b"\r") > block.count(b"\r\n")
        if block:
            yield _LONE_RETURN.sub(b" ", block) if has_lone else block
    if held:
        yield b" "


def _read_block(file: BufferedIOBase) -> bytes:
    """Read a full block, or what is left.

    One system call at a time: `read` would go on to wait for a pipe although a signal has
    come in between, and whoever stops the process would wait with it.
    """
    pieces: list[bytes] = []
    missing = _BLOCK
    while missing and (piece := file.read1(missing)):
        pieces.append(piece)
        missing -= len(piece)
    return b"".join(pieces)
