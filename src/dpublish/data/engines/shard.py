"""A shard: the pieces of a table that one process reads, encodes and sums up.

Every process that works on a table has a shard, the one that opened it too.  All of them know
all pieces, and each keeps the columns of its own.  A piece of another process can be read as
well, but nothing of it is kept.
"""

from collections.abc import Callable, Iterable, Sequence
from contextlib import closing
from typing import Any, NamedTuple, NoReturn

from dpublish.data.batch import S, Summable, refuse_copy
from dpublish.data.engines.chosen import Choice, ChosenColumns, ChosenSource
from dpublish.data.engines.encoded import (
    CachedColumns,
    HeldColumns,
    Part,
    Reading,
    StreamedColumns,
)
from dpublish.data.engines.source import Source
from dpublish.data.schema import Schema


class Pick(NamedTuple):
    """A choice of records, and a number that tells it from all others of the table."""

    number: int
    choice: Choice


Picks = tuple[Pick, ...]
"""Choices one after the other: each picks from the records of those before it."""


class Shard:
    """Columns of some pieces of a table, kept (`cache`) or read anew for every sum."""

    def __init__(self, schema: Schema, pieces: Sequence[Source], *, cache: bool) -> None:
        self._schema = schema
        self._pieces = pieces
        self._cache = cache
        self._kept: dict[int, CachedColumns | HeldColumns] = {}
        self._picked: dict[tuple[int, int], ChosenColumns] = {}

    def __reduce__(self) -> NoReturn:
        refuse_copy("a table")

    @property
    def held(self) -> list[int]:
        """Numbers of the pieces that were handed over."""
        return [number for number, x in self._kept.items() if isinstance(x, HeldColumns)]

    def hold(self, piece: int, rows: int, columns: Any) -> None:
        """Take over columns of a piece that cannot be read from here."""
        held = self._kept.setdefault(piece, HeldColumns(rows))
        if isinstance(held, HeldColumns):
            held.hold(columns)

    def take_back(self, piece: int, wanted: Sequence[Reading]) -> dict[Reading, Part]:
        """Give back columns that were handed over, and keep none of the piece."""
        parts = self._kept.pop(piece).parts(wanted)
        return dict(zip(wanted, parts, strict=True))

    def drop(self, piece: int) -> None:
        """Let go of the columns of a piece."""
        del self._kept[piece]

    def forget(self, numbers: Iterable[int]) -> None:
        """Let go of what some choices picked; they will not be asked for again."""
        gone = set(numbers)
        self._picked = {key: x for key, x in self._picked.items() if key[0] not in gone}

    def add(
        self,
        kernel: Summable[S],
        out: S,
        piece: int,
        *,
        picks: Picks = (),
        own: bool = True,
        wanted: Sequence[Reading],
        after_each: Callable[[], None] | None = None,
    ) -> None:
        """Add the records of one piece to `out`; keep their columns if it is an `own` piece."""
        columns = self._find(piece, picks) if own else self._stream(piece, picks)
        with closing(columns.batches(wanted)) as batches:
            for batch in batches:
                kernel.add(batch, out)
                if after_each is not None:
                    after_each()

    def _find(
        self, piece: int, picks: Picks
    ) -> StreamedColumns | CachedColumns | HeldColumns | ChosenColumns:
        found: CachedColumns | HeldColumns | ChosenColumns | None = self._kept.get(piece)
        if found is None:
            if not self._cache:
                return self._stream(piece, picks)
            found = self._kept[piece] = CachedColumns(self._schema, self._pieces[piece])
        for pick in picks:
            key = pick.number, piece
            if key not in self._picked:
                self._picked[key] = ChosenColumns(found, pick.choice)
            found = self._picked[key]
        return found

    def _stream(self, piece: int, picks: Picks) -> StreamedColumns:
        source: Source = self._pieces[piece]
        for pick in picks:
            source = ChosenSource(source, pick.choice)
        return StreamedColumns(self._schema, source)
