"""A release: a public value and its receipt.

Each kind of value is a subclass in a file of its own.  Whatever a release holds may be
published; whatever is computed from it afterward is free.
"""

import os
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from dpublish.core.answer import Answer
from dpublish.core.folder.signing import SigningKey, signing_key
from dpublish.data.schema import Schema
from dpublish.errors import CorruptRelease, InvalidQuery
from dpublish.privacy.receipt import Receipt

_DESCRIPTION = b"description"  # key of the fields' metadata


def whole_column(table: pa.Table, name: str) -> NDArray[np.int64]:
    """Take a column of integers out of a published table; anything else is corrupt."""
    column = table[name]
    if column.type != pa.int64() or column.null_count:
        raise CorruptRelease(f"the column {name!r} does not hold integers")
    return np.asarray(column.to_numpy(), dtype=np.int64)


def describe_field(field: pa.Field, words: str) -> pa.Field:
    """Attach a description to a field: it enters the Parquet file, data package and report."""
    return field.with_metadata({_DESCRIPTION: words.encode("utf-8")})


def field_description(field: pa.Field) -> str | None:
    """Return what `describe_field` attached, if anything."""
    words = (field.metadata or {}).get(_DESCRIPTION)
    return None if words is None else words.decode("utf-8", "replace")


class Release(ABC):
    """A published value.  Subclasses are frozen dataclasses with `receipt` and `schema`."""

    kind: ClassVar[str]
    receipt: Receipt
    schema: Schema

    @abstractmethod
    def tables(self) -> dict[str, pa.Table]:
        """Give the published value as tables; each becomes one Parquet file."""

    @abstractmethod
    def metadata(self) -> dict[str, Any]:
        """Give whatever else is needed to load the value again, as plain values."""

    @classmethod
    @abstractmethod
    def from_parts(
        cls,
        *,
        receipt: Receipt,
        schema: Schema,
        metadata: Mapping[str, Any],
        tables: Mapping[str, pa.Table],
    ) -> Self:
        """Rebuild the value from what `metadata` and `tables` gave."""

    @abstractmethod
    def summary(self) -> dict[str, str]:
        """Describe the value in a few words, for the terminal and the report."""

    @abstractmethod
    def expected_error(self) -> dict[str, float]:
        """Give the error predicted from public facts, as figures by name."""

    def rows(self, n: int | None = None, *, seed: int | None = None) -> pa.Table:
        """Draw synthetic rows; free, as often and as many as wanted."""
        raise InvalidQuery(f"a release of kind {self.kind!r} does not give synthetic rows")

    def count(self, query: str = "", *, confidence: float = 0.95) -> Answer:
        """Count the records that satisfy `query`, with a confidence interval; free."""
        raise InvalidQuery(f"a release of kind {self.kind!r} does not answer counts")

    def count_boxes(
        self, columns: Sequence[str], lows: NDArray[np.int64], highs: NDArray[np.int64]
    ) -> NDArray[np.float64]:
        """Estimate how many records lie in each of many boxes at once; free.

        Box i holds the leaves `lows[i, j] <= code < highs[i, j]` of every column j; columns
        that are not named are not limited.
        """
        raise InvalidQuery(f"a release of kind {self.kind!r} does not answer counts")

    def predict(self, rows: Any) -> pa.Array:
        """Predict the class of each of `rows` (any Arrow-compatible object); free."""
        raise InvalidQuery(f"a release of kind {self.kind!r} does not classify")

    def save(
        self,
        path: str | Path,
        *,
        extras: Mapping[str, bytes] | None = None,
        sign: SigningKey | str | os.PathLike[str] | None = None,
    ) -> Path:
        """Write the release folder, whole or not at all; it must not exist yet.

        With `sign`, the owner's private key or its file, the folder is signed.
        """
        from dpublish.core.folder.folder import save  # the folder knows all kinds of release

        return save(self, Path(path), extras=extras or {}, sign=signing_key(sign))
