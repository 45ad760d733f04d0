"""The base classes of kernels: what is added up over records, and how far one record moves it."""

from abc import ABC, abstractmethod
from typing import ClassVar, Generic

import numpy as np

from dpublish.data.batch import Batch, S
from dpublish.errors import InvalidParameter
from dpublish.privacy.neighbors import AddRemoveRecord, AddRemoveUnit, Neighbors, ReplaceRecord
from dpublish.types import IntArray


class Kernel(ABC, Generic[S]):
    """A query that is answered by adding up over records; `S` is the type of its answer.

    Subclasses are frozen dataclasses.  They name the columns that they read in `codes` and
    `values`, and write `zero`, `add` and `merge`.  If one record can change more than one
    number by one, they override `record_change`.
    """

    remedy: ClassVar[str] = "count single records"
    """What to do instead where the change is not bounded, for the message."""

    @property
    def codes(self) -> tuple[str, ...]:
        """Columns that it reads as codes."""
        return ()

    @property
    def values(self) -> tuple[str, ...]:
        """Columns that it reads as clipped numbers."""
        return ()

    @abstractmethod
    def zero(self) -> S:
        """Return the answer for no records."""

    @abstractmethod
    def add(self, batch: Batch, out: S) -> None:
        """Add the answer for the records of `batch` to `out`."""

    @abstractmethod
    def merge(self, out: S, other: S) -> None:
        """Add another partial answer to `out`."""

    @property
    def record_change(self) -> int:
        """The most by which adding one record changes all numbers of the answer, in sum."""
        return 1

    def sensitivity(self, neighbors: Neighbors) -> int:
        """Return the most by which all numbers together can change, in sum (L1).

        Replacing a record removes one and adds another, so it counts twice.
        """
        if isinstance(neighbors, AddRemoveRecord):
            return self.record_change
        if isinstance(neighbors, ReplaceRecord):
            return 2 * self.record_change
        raise unbounded(neighbors, self.remedy)


class ArrayKernel(Kernel[IntArray]):
    """A kernel whose answer is an array of `size` integers, which add up."""

    @property
    @abstractmethod
    def size(self) -> int:
        """Number of integers of the answer."""

    def zero(self) -> IntArray:
        """Return the answer for no records."""
        return np.zeros(self.size, dtype=np.int64)

    def merge(self, out: IntArray, other: IntArray) -> None:
        """Add another partial answer to `out`."""
        out += other


class CodeSums:
    """What kernels share that read codes alone and add up arrays of integers.

    It states no sensitivity: a kernel whose answer may be published says its own.
    """

    @property
    def values(self) -> tuple[str, ...]:
        """Columns that it reads as clipped numbers: none."""
        return ()

    def merge(self, out: IntArray, other: IntArray) -> None:
        """Add another partial answer to `out`."""
        out += other


def unbounded(neighbors: Neighbors, remedy: str) -> InvalidParameter:
    """Explain why sums have no sensitivity under a notion of neighbors."""
    if isinstance(neighbors, AddRemoveUnit):
        return InvalidParameter(
            f"a unit ({neighbors.column!r}) may have any number of rows and change any number "
            f"of counts; {remedy}"
        )
    return InvalidParameter(f"counts have no sensitivity under {neighbors.name}")
