"""What a kernel sees of the private rows: encoded columns of some records.

A kernel is a query that is answered by adding up over records.  It is handed the records
in batches, and its answer must not depend on how they were cut: that makes it the same on
every engine, and its sensitivity that of one record.
"""

from collections.abc import Iterator, Mapping
from typing import NoReturn, Protocol, TypeVar, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from dpublish.data.encoding import Codes

BATCH_ROWS = 1 << 16  # keys of one batch stay in the processor's cache
S = TypeVar("S")


class Batch:
    """Encoded columns of some records, none of them left out by a rule for missing values.

    >>> batch = Batch(2, codes={"sex": np.array([0, 1], dtype=np.uint8)})
    >>> len(batch), batch.codes("sex")
    (2, array([0, 1], dtype=uint8))
    """

    def __init__(
        self,
        size: int,
        codes: Mapping[str, Codes] | None = None,
        values: Mapping[str, NDArray[np.float64]] | None = None,
    ) -> None:
        self._size = size
        self._codes = codes or {}
        self._values = values or {}

    def __len__(self) -> int:
        return self._size

    def __repr__(self) -> str:
        return f"Batch(codes={list(self._codes)}, values={list(self._values)})"

    def codes(self, name: str) -> Codes:
        """Return the code of a column for each record."""
        return self._codes[name]

    def values(self, name: str) -> NDArray[np.float64]:
        """Return the value of a column for each record, clipped to the public bounds."""
        return self._values[name]

    def cut(self, rows: int = BATCH_ROWS) -> Iterator["Batch"]:
        """Cut into batches of at most so many rows."""
        for start in range(0, self._size, rows):
            part = slice(start, start + rows)
            yield Batch(
                min(rows, self._size - start),
                {name: codes[part] for name, codes in self._codes.items()},
                {name: values[part] for name, values in self._values.items()},
            )

    def filter(self, keep: NDArray[np.bool_]) -> "Batch":
        """Leave out the records that are not marked in `keep`."""
        return Batch(
            int(np.count_nonzero(keep)),
            {name: codes[keep] for name, codes in self._codes.items()},
            {name: values[keep] for name, values in self._values.items()},
        )


class Summable(Protocol[S]):
    """What a table can add up: a kernel; `S` is the type of its answer.

    `aggregates/kernel.py` has the base class of those that ship here.

    It may be copied to other processes, so it must survive pickling.  Adding the batches of
    any cut of the same records gives the same answer, and so does merging partial answers:
    bit by bit, which sums of floats do not (add integers instead).
    """

    @property
    def codes(self) -> tuple[str, ...]:
        """Columns that it reads as codes."""
        ...

    @property
    def values(self) -> tuple[str, ...]:
        """Columns that it reads as clipped numbers."""
        ...

    def zero(self) -> S:
        """Return the answer for no records."""
        ...

    def add(self, batch: Batch, out: S) -> None:
        """Add the answer for the records of `batch` to `out`."""
        ...

    def merge(self, out: S, other: S) -> None:
        """Add another partial answer to `out`."""
        ...


@runtime_checkable
class Leveled(Protocol):
    """A kernel that reads its columns on coarser levels than the finest.

    A unit with several rows is shown to it once per cell, not once per code.
    """

    @property
    def levels(self) -> Mapping[str, int]:
        """Level on which the kernel looks at a column; the finest, if it is not named."""
        ...


@runtime_checkable
class Tolerant(Protocol):
    """A kernel that also sees records without a number in some of the columns that it reads.

    It gets NaN there, where the record would be left out otherwise.
    """

    @property
    def optional(self) -> tuple[str, ...]:
        """Those of `values` that leave no record out."""
        ...


def refuse_copy(what: str) -> NoReturn:
    """Refuse to pickle or copy something that holds private rows."""
    raise TypeError(f"{what} holds private rows and cannot be copied or pickled")
