"""Rows of another source after the steps that look at one record each.

The steps are applied to record batches as they come, in whichever process reads them, before
anything is encoded, bounded or drawn.  Nothing is held.
"""

from collections.abc import Iterator, Sequence
from typing import Any

from dpublish.data.engines.source import (
    Divisible,
    Piece,
    Rescan,
    Source,
    check_header,
    scan,
)
from dpublish.data.schema import Schema
from dpublish.data.steps import Plan, Steps


def prepare_source(source: Source, schema: Schema, steps: Steps, columns: Sequence[str]) -> Source:
    """See a source through steps; refuse steps that do not fit it, and read no row.

    `columns` are those that will be read after the steps.
    """
    if not steps:
        return source
    # Before any expression: in a file without a header, names of columns are a row.
    check_header(source, [name for name in columns if name not in steps.made])
    plan = steps.plan(source.header, schema, source.label)
    plan.check(columns)
    return PreparedSource(source, plan)


class PreparedSource:
    """A source, or a piece of one, seen through the steps of a plan.

    A piece can be pickled if the piece that it is made from can.
    """

    def __init__(self, source: Source, plan: Plan) -> None:
        self._source = source
        self.plan = plan
        self.label = source.label
        self.header = plan.header
        self.rescan: Rescan = source.rescan

    @property
    def weight(self) -> int:
        """About how many rows are read, if the source is a piece."""
        return int(getattr(self._source, "weight", 0))

    def close(self) -> None:
        """Let go of where the rows come from."""
        close = getattr(self._source, "close", None)
        if close is not None:
            close()

    def scan(self, columns: Sequence[str]) -> Iterator[Any]:
        """Read some columns as Arrow record batches."""
        return self.plan.apply(scan(self._source, self.plan.needs(columns)), columns)

    def cut(self) -> Sequence[Piece]:
        """Cut the source, if that is possible, and see each piece through the same steps."""
        if not isinstance(self._source, Divisible):
            return []
        return [PreparedSource(piece, self.plan) for piece in self._source.cut()]
