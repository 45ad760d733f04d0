"""Rows in files that can be cut: every process reads pieces of them by itself.

Each process has its own pieces, as many rows as the others.  Whoever is done with its own helps
the others if nothing is kept, or if one of them is still starting: no one waits for that.  What
it reads for another is not kept, so that the shards stay equal for the sums to come.
"""

from collections.abc import Sequence
from typing import NoReturn

from dpublish.data.batch import S, Summable, refuse_copy
from dpublish.data.engines.encoded import Reading
from dpublish.data.engines.messages import pack_kernel
from dpublish.data.engines.shard import Picks, Shard
from dpublish.data.engines.source import PIECE_ROWS, ChainedSource, Divisible, Piece, Source
from dpublish.data.engines.worker import SumPieces
from dpublish.data.engines.workers import LOST, UnknownKernel, Worker, Workers
from dpublish.data.schema import Schema
from dpublish.errors import UnreadableData

_MOST_PIECES = 1 << 10  # so many numbers fit into the smallest pipe


def cut_source(source: Source) -> list[Piece]:
    """Cut a source into pieces, if it can be; small ones are joined with their neighbors."""
    pieces = source.cut() if isinstance(source, Divisible) else ()
    least = max(PIECE_ROWS, -(-sum(piece.weight for piece in pieces) // _MOST_PIECES))
    groups: list[list[Piece]] = [[]]
    for piece in pieces:
        if sum(x.weight for x in groups[-1]) >= least:
            groups.append([])
        groups[-1].append(piece)
    return [_join(group, source.label) for group in groups if group]


def _join(pieces: Sequence[Piece], label: str) -> Piece:
    return pieces[0] if len(pieces) == 1 else ChainedSource(pieces, label)


def share_out(weights: Sequence[int], processes: int) -> list[int]:
    """Give each piece, one after the other, to the process that has the least so far.

    >>> share_out([5, 1, 2, 3], 2)
    [0, 1, 1, 1]
    """
    owners: list[int] = []
    loads = [0] * processes
    for weight in weights:
        owners.append(loads.index(min(loads)))
        loads[owners[-1]] += weight
    return owners


class SplitRows:
    """Pieces of files, shared out among this process and its workers."""

    def __init__(
        self, schema: Schema, pieces: Sequence[Piece], *, cache: bool, threads: int
    ) -> None:
        self._schema = schema
        self._pieces = pieces
        self._cache = cache
        self._threads = min(threads, len(pieces))
        self._owners = share_out([piece.weight for piece in pieces], self._threads)
        self._shard = Shard(schema, pieces, cache=cache)
        self._workers: Workers | None = None

    def __reduce__(self) -> NoReturn:
        refuse_copy("a table")

    def sum(
        self,
        kernel: Summable[S],
        wanted: Sequence[Reading],
        picks: Picks,
        forgotten: tuple[int, ...],
    ) -> S | None:
        """Sum up a kernel; None if only this process can, and by itself."""
        packed = pack_kernel(kernel)
        workers = self._find_workers() if packed is not None else None
        if packed is None or workers is None:
            return None
        self._shard.forget(forgotten)
        helps = not self._cache or not workers.are_all_ready
        request = SumPieces(packed, picks, helps, forgotten)
        for piece, owner in enumerate(self._owners):
            workers.queues.put(owner, piece)
        out = kernel.zero()
        asked, pieces = self._add_own(kernel, out, wanted, request, workers)
        try:
            pieces += workers.merge(asked, kernel, out)
        except UnknownKernel:
            while workers.queues.take(0, others=True) is not None:
                pass  # left there by those who do not know the kernel
            raise
        if pieces != len(self._owners):
            raise UnreadableData(LOST)
        return out

    def _find_workers(self) -> Workers | None:
        """Start the workers, unless they are there; None if there are none to be had."""
        if self._workers is None:
            self._workers = Workers(
                self._threads - 1, self._schema, self._pieces, cache=self._cache
            )
        usable = self._workers.are_ours and not self._workers.are_all_gone
        return self._workers if usable else None

    def _add_own(
        self,
        kernel: Summable[S],
        out: S,
        wanted: Sequence[Reading],
        request: SumPieces,
        workers: Workers,
    ) -> tuple[list[Worker], int]:
        """Add this process's own pieces, and others that wait; tell who else was asked."""
        asked = list(workers.ready)
        for worker in asked:
            workers.send(worker, request)

        def ask_the_new() -> None:
            for worker in workers.look():
                workers.send(worker, request)
                asked.append(worker)

        pieces = 0
        while (found := workers.queues.take(0, others=request.others)) is not None:
            ask_the_new()
            self._shard.add(
                kernel,
                out,
                found[0],
                picks=request.picks,
                own=found[1],
                wanted=wanted,
                after_each=None if workers.are_all_ready else ask_the_new,
            )
            pieces += 1
        return asked, pieces

    def end(self) -> None:
        """End the workers; the next sum starts others."""
        if self._workers is not None:
            self._workers.close()
            self._workers = None
