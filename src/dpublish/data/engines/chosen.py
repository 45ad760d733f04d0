"""Records that one column picks: those whose leaf is among some leaves.

Whether a record is picked depends on that record alone.  So tables with different leaves of
a column share no record, and adding a record changes at most one of them.
"""

from collections.abc import Collection, Generator, Iterator, Sequence
from fractions import Fraction
from typing import Any, NamedTuple, NoReturn, Protocol

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from dpublish.data.batch import Batch, refuse_copy
from dpublish.data.column import Column
from dpublish.data.draws import choose_by
from dpublish.data.engines.encoded import Part, Reading, cut_columns
from dpublish.data.engines.source import Rescan, Source, read_quietly, scan
from dpublish.errors import InvalidParameter
from dpublish.randomness import RandomSource


class Choice(NamedTuple):
    """A column, and for each of its leaves whether its records are picked."""

    column: Column
    picked: NDArray[np.bool_]

    @property
    def reading(self) -> Reading:
        """How the column is read to choose by it."""
        return Reading(self.column.name, as_values=False)

    def mark(self, part: Part) -> NDArray[np.bool_]:
        """Mark the records to pick; those without a value are not."""
        chosen: NDArray[np.bool_] = self.picked[part.data]
        return chosen if part.keep is None else chosen & part.keep


def make_choice(column: Column, leaves: Collection[int]) -> Choice:
    """Pick the records in some leaves of a column; refuse leaves that it does not have.

    >>> from dpublish.data.schema import column
    >>> make_choice(column("sex", "category", values=["F", "M"]), [1]).picked
    array([False,  True])
    """
    picked = np.zeros(column.size, dtype=np.bool_)
    for leaf in leaves:
        if not 0 <= leaf < column.size:
            raise InvalidParameter(
                f"column {column.name!r} has the leaves 0 to {column.size - 1}, not {leaf}"
            )
        picked[leaf] = True
    return Choice(column, picked)


class ChosenSource:
    """The picked rows of another source; each scan picks them anew, and nothing is held."""

    def __init__(self, source: Source, choice: Choice) -> None:
        self._source = source
        self._choice = choice
        self.label = source.label
        self.header = source.header
        self.rescan: Rescan = source.rescan

    def __reduce__(self) -> NoReturn:
        refuse_copy("a source")

    def scan(self, columns: Sequence[str]) -> Iterator[Any]:
        """Read some columns as Arrow record batches."""
        column = self._choice.column
        for raw in scan(self._source, tuple(dict.fromkeys((*columns, column.source_name)))):
            codes, keep = column.encode_source(raw.column(column.source_name))
            picked = pa.array(self._choice.mark(Part(codes, keep)))
            yield raw.select(list(columns)).filter(picked)


class WholeColumns(Protocol):
    """Encoded columns of all records, held in memory."""

    def parts(self, wanted: Sequence[Reading]) -> list[Part]:
        """Yield each of the wanted columns whole."""
        ...


class ChosenColumns:
    """Columns of the picked records, copied at first use from those of all records.

    The source is read, and values are encoded, once for all groups; what a group holds is as
    large as the group.
    """

    def __init__(self, whole: WholeColumns, choice: Choice) -> None:
        self._whole = whole
        self._choice = choice
        self._columns: dict[Reading, Part] = {}

    def __reduce__(self) -> NoReturn:
        refuse_copy("a table")

    def parts(self, wanted: Sequence[Reading]) -> list[Part]:
        """Yield each of the wanted columns whole."""
        lacking = [reading for reading in wanted if reading not in self._columns]
        if lacking:
            by, *parts = self._whole.parts((self._choice.reading, *lacking))
            picked = self._choice.mark(by)
            self._columns |= {x: _pick(y, picked) for x, y in zip(lacking, parts, strict=True)}
        return [self._columns[reading] for reading in wanted]

    def batches(self, wanted: Sequence[Reading]) -> Generator[Batch]:
        """Cut the wanted columns of all picked records into batches."""
        counted = wanted or (self._choice.reading,)  # some column counts the rows
        rows = len(self.parts(counted)[0].data)
        yield from cut_columns(rows, dict(zip(wanted, self.parts(wanted), strict=True)))


def sample_rows(
    source: Source,
    column: Column,
    rates: Sequence[Fraction],
    rng: RandomSource,
    columns: Sequence[str],
) -> Iterator[Any]:
    """Keep each row with the rate of its leaf; rows without a value of `column` go."""
    by = column.source_name
    needed = tuple(dict.fromkeys((*columns, by)))
    raws = ((raw, column.encode_source(raw.column(by))) for raw in scan(source, needed))
    for raw, (codes, keep) in read_quietly(raws, source.label):
        chosen = choose_by(rates, codes, rng)  # a word for every row, whatever becomes of it
        if keep is not None:
            chosen &= keep
        yield raw.select(list(columns)).filter(pa.array(chosen))


def _pick(part: Part, picked: NDArray[np.bool_]) -> Part:
    data = part.data[picked]
    data.flags.writeable = False
    return Part(data, None if part.keep is None else part.keep[picked])
