"""A release: a public value and its receipt.

Each kind of value is a subclass in a file of its own.  Whatever a release holds may be
published; whatever is computed from it afterward is free.

How a released value is written::

    @dataclass(frozen=True, eq=False, kw_only=True)
    class SampleRelease(Release):
        kind: ClassVar[str] = "cell-sample"  # names the format, never the method that made it

        receipt: Receipt
        schema: Schema
        cells: IntArray = in_table("sample", "cell_number")
        threshold: int = in_metadata()
        noise_rate: Fraction = in_metadata(RATE)

        def __post_init__(self) -> None: ...  # refuse what no method would publish
        def tables(self) -> dict[str, pa.Table]: ...  # the declared columns, and derived ones

Each field states where it is kept: in a column of a published table, or in the metadata.  From
that follow `metadata`, `from_parts` and equality.  A value that is kept in another way writes
`metadata` and `read_parts` itself.  `rows` begins with `row_generator`, which checks the
request; a value that can draw rows batch by batch, or rows that satisfy conditions, writes
`row_batches` as well.  A released value never asks which method made it: what its answers
depend on is a field.
"""

import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import MISSING, Field, field, fields, is_dataclass, replace
from functools import wraps
from importlib import import_module
from math import prod
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Self

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from dpublish.core.answer import Answer
from dpublish.core.codecs import PLAIN, Codec
from dpublish.core.coverage import not_in_intervals, what_is_counted
from dpublish.core.folder.signing import SigningKey, signing_key
from dpublish.core.noisy_size import MAX_ROWS
from dpublish.data.axis import Axis
from dpublish.data.schema import Schema
from dpublish.display import Card, Display, arrow_to_pandas, arrow_to_polars, one_line, pick
from dpublish.errors import (
    CorruptRelease,
    InvalidParameter,
    InvalidQuery,
    plain_refusals,
    require_count,
)
from dpublish.privacy.epsilon import format_rounded
from dpublish.privacy.receipt import Receipt
from dpublish.randomness import plain_generator

Metadata = Mapping[str, Any]
"""Plain values by name, as release.json keeps them."""
Tables = Mapping[str, pa.Table]
"""Published tables by name."""

BATCH_ROWS = 1 << 18
"""Number of synthetic rows in a batch, unless another is wanted."""

_DESCRIPTION = "description"
DERIVED = "derived"
"""Key of the metadata of fields that follow from others, and that a release is read without."""
ABOUT = "about"
"""Key of the metadata of fields that hold values of a column of the schema, to name the column."""


def whole_column(table: pa.Table, name: str) -> NDArray[np.int64]:
    """Take a column of integers out of a published table; anything else is corrupt."""
    column = table[name]
    if column.type != pa.int64() or column.null_count:
        raise CorruptRelease(f"the column {name!r} does not hold integers")
    return np.asarray(column.to_numpy(), dtype=np.int64)


def describe_field(field: pa.Field, words: str | None, **more: str | None) -> pa.Field:
    """Attach a description to a field: it enters the Parquet file, data package and report."""
    said = {_DESCRIPTION: words, **more}
    return field.with_metadata({key: text for key, text in said.items() if text is not None})


def field_note(field: pa.Field, key: str) -> str | None:
    """Return what `describe_field` attached under a key, if anything."""
    words = (field.metadata or {}).get(key.encode())
    return None if words is None else words.decode("utf-8", "replace")


def field_description(field: pa.Field) -> str | None:
    """Return the description that `describe_field` attached, if anything."""
    return field_note(field, _DESCRIPTION)


def in_batches(table: pa.Table, batch_size: int) -> Iterator[pa.RecordBatch]:
    """Cut a table into batches of at most so many rows; one without rows is one batch.

    >>> [batch.num_rows for batch in in_batches(pa.table({"age": [3, 1, 4, 1, 5]}), 2)]
    [2, 2, 1]
    """
    if not table.num_rows:
        yield pa.RecordBatch.from_pylist([], table.schema)
    for start in range(0, table.num_rows, batch_size):
        yield from table.slice(start, batch_size).combine_chunks().to_batches()


# --- Where a field is kept --------------------------------------------------------------------


class _Cell(NamedTuple):
    """A column of a published table, and whether the table may lack it."""

    table: str
    column: str
    optional: bool


def in_metadata(codec: Codec = PLAIN, *, key: str | None = None, default: Any = MISSING) -> Any:
    """Declare a field that is kept in the metadata, under its own name unless a `key` is given."""
    made = {"default_factory" if callable(default) else "default": default}
    return field(**made, metadata={"key": key, "codec": codec})


def in_table(table: str, column: str, *, optional: bool = False, default: Any = MISSING) -> Any:
    """Declare an array that is kept as a column of integers of a published table.

    If it is `optional`, a table without the column stands for None.
    """
    return field(default=default, metadata={"cell": _Cell(table, column, optional)})


def _kept(cls: type[Any], where: str) -> Iterator[Field[Any]]:
    return (one for one in fields(cls) if where in one.metadata)


def _read_cell(cell: _Cell, tables: Mapping[str, pa.Table]) -> NDArray[np.int64] | None:
    table = tables[cell.table]
    if cell.optional and cell.column not in table.column_names:
        return None
    return whole_column(table, cell.column)


def is_same(one: Any, other: Any) -> bool:
    """Check whether two values are equal: arrays by their content, dataclasses by their fields.

    >>> is_same((np.arange(3), "a"), (np.arange(3), "a"))
    True
    """
    if type(one) is not type(other):
        return bool(np.isscalar(one) and np.isscalar(other) and one == other)
    if isinstance(one, np.ndarray):
        floats = one.dtype.kind == "f" and other.dtype.kind == "f"
        return np.array_equal(one, other, equal_nan=floats)
    if isinstance(one, tuple | list):
        return len(one) == len(other) and all(map(is_same, one, other))
    if is_dataclass(one):
        names = (each.name for each in fields(one) if each.compare)
        return all(is_same(getattr(one, name), getattr(other, name)) for name in names)
    return bool(one == other)


# --- The value ---------------------------------------------------------------------------------


_ASKED = frozenset({"count", "rows", "predict"})
"""What users ask a release for by a method of its own."""


class Release(Display, ABC):
    """A published value.  Subclasses are frozen dataclasses with `receipt` and `schema`.

    Equality compares the declared fields; subclasses say `eq=False` to inherit it.
    """

    kind: ClassVar[str]
    """The name of the format, which its folder states."""
    report: ClassVar[str] = ""
    """Where the function is that writes its section of the report, as "module:function"."""
    receipt: Receipt
    schema: Schema

    def __init_subclass__(cls, **options: Any) -> None:
        """Let every answer of a count say what was counted, and mistakes show without our lines."""
        super().__init_subclass__(**options)
        if "__repr__" not in vars(cls):  # so that a dataclass does not write one with all arrays
            cls.__repr__ = Release.__repr__  # type: ignore[method-assign]
        if "count" in vars(cls):
            cls.count = _telling(cls.count)  # type: ignore[method-assign]
        for name in _ASKED & vars(cls).keys():
            setattr(cls, name, plain_refusals(getattr(cls, name)))

    @property
    def complete(self) -> tuple[str, ...]:
        """Names of the columns whose missing rules decide which records are in the release."""
        return self.schema.names

    @property
    def measured_columns(self) -> tuple[str, ...]:
        """Names of other columns, without a value of which a record still counts elsewhere."""
        return ()

    @property
    def needs_numbers(self) -> bool:
        """Whether a record without a number is left out, even where missing is a category."""
        return False

    def with_receipt(self, receipt: Receipt) -> Self:
        """Return the same value with the receipt of the release that it is a part of.

        A value that holds other releases says what becomes of their receipts.
        """
        value: Any = self
        found: Self = replace(value, receipt=receipt)
        return found

    @abstractmethod
    def tables(self) -> dict[str, pa.Table]:
        """Return the published value as tables; each becomes one Parquet file."""

    def tables_to_read(self) -> dict[str, pa.Table]:
        """Return the tables for people and other tools; those of the folder, as a rule."""
        return self.tables()

    def metadata(self) -> dict[str, Any]:
        """Return whatever else is needed to load the value again, as plain values."""
        return {
            one.metadata["key"] or one.name: one.metadata["codec"].write(getattr(self, one.name))
            for one in _kept(type(self), "codec")
        }

    @classmethod
    def from_parts(
        cls, *, receipt: Receipt, schema: Schema, metadata: Metadata, tables: Tables
    ) -> Self:
        """Rebuild the value from what `metadata` and `tables` returned."""
        make: Callable[..., Self] = cls
        return make(receipt=receipt, schema=schema, **cls.read_parts(schema, metadata, tables))

    @classmethod
    def read_parts(cls, schema: Schema, metadata: Metadata, tables: Tables) -> dict[str, Any]:
        """Read the declared fields, by name."""
        found: dict[str, Any] = {
            one.name: one.metadata["codec"].read(metadata[one.metadata["key"] or one.name], schema)
            for one in _kept(cls, "codec")
        }
        for one in _kept(cls, "cell"):
            found[one.name] = _read_cell(one.metadata["cell"], tables)
        return found

    def __eq__(self, other: object) -> bool:
        return self is other or (hasattr(self, "__dataclass_fields__") and is_same(self, other))

    if not TYPE_CHECKING:  # so that subclasses that still say so may
        __hash__ = None

    def __repr__(self) -> str:
        said = self.summary()
        what = said.get("published") or next(iter(said.values()), "")
        where = "" if self.folder is None else f", in {self.folder}"
        whose = f"{self.receipt.dataset}, " if self.receipt.dataset else ""
        paid = f"epsilon {format_rounded(self.receipt.epsilon)}"
        return one_line(f"{type(self).__name__}({whose}{paid}: {what}{where})")

    def _card(self) -> Card:
        receipt = self.receipt
        title = self.kind.replace("-", " ").capitalize()
        entry = (
            "" if receipt.ledger_entry is None else f", entry {receipt.ledger_entry} of its ledger"
        )
        paid = f"epsilon {format_rounded(receipt.epsilon)}{entry}"
        read = {"epsilon": f"was {receipt.epsilon_read}"} if receipt.epsilon_read else {}
        folder = {} if self.folder is None else {"folder": str(self.folder)}
        return Card(
            f"{title} of {receipt.dataset}" if receipt.dataset else title,
            {
                **self.summary(),
                "in it": what_is_counted(self),
                "guarantee": receipt.guarantee(),
                "cost": paid,
                **read,
                **folder,
                "tables": ", ".join(self.tables()),
            },
            warnings=receipt.stamps,
        )

    def to_arrow(self, table: str | None = None) -> pa.Table:
        """Return a published table by its name; the first one if none is named."""
        found = self.tables()
        return found[pick([*found], table, "table")]

    @plain_refusals
    def to_pandas(self, table: str | None = None) -> Any:
        """Return a published table as a pandas DataFrame; the first one if none is named."""
        return arrow_to_pandas(self.to_arrow(table))

    @plain_refusals
    def to_polars(self, table: str | None = None) -> Any:
        """Return a published table as a Polars DataFrame; the first one if none is named."""
        return arrow_to_polars(self.to_arrow(table))

    @plain_refusals
    def plot(self, which: int | str = 0) -> Any:
        """Draw a chart of the report: by its number, or by a word of its caption.

        Returns a Matplotlib figure; of charts that the report draws without Matplotlib, such as
        centers of clusters, a picture that shows itself in a notebook and can be saved.
        """
        return import_module("dpublish.report.charts").chart_of(self, which)

    @abstractmethod
    def summary(self) -> dict[str, str]:
        """Describe the value in a few words, for the terminal and the report."""

    @abstractmethod
    def expected_error(self) -> dict[str, float]:
        """Return the error predicted from public facts, as figures by name."""

    @plain_refusals
    def rows(self, n: int | None = None, *, seed: int | None = None) -> pa.Table:
        """Draw synthetic rows; free, as often and as many as wanted."""
        raise InvalidQuery(f"a release of kind {self.kind!r} does not give synthetic rows")

    def row_batches(
        self,
        n: int | None = None,
        *,
        seed: int | None = None,
        where: str = "",
        batch_size: int = BATCH_ROWS,
    ) -> Iterator[pa.RecordBatch]:
        """Draw synthetic rows batch by batch, so that a file of any size can be written; free.

        There is at least one batch, and all have the same fields; columns of texts may be
        dictionary-encoded.  With a seed the rows are the same for every `batch_size`.  This
        one draws all rows at once and cuts them.  A value that draws each batch when it is
        wanted may give up to `MAX_STREAMED_ROWS`, and may take `where`: a query, such as
        "sex = Female", that all rows satisfy.  Wrong requests are refused by the call itself,
        before the first batch.
        """
        if where.strip() and type(self).rows is not Release.rows:
            raise InvalidQuery(
                f"a release of kind {self.kind!r} does not draw rows that satisfy conditions; "
                "draw rows and filter them"
            )
        require_count(batch_size=batch_size)
        return in_batches(self.rows(n, seed=seed), batch_size)

    def row_generator(
        self, n: int | None, seed: int | None, *, counted: float, most: int = MAX_ROWS
    ) -> np.random.Generator:
        """Check a request for `n` rows, or as many as were `counted`, and seed a generator."""
        require_count(seed=0 if seed is None else seed, n=0 if n is None else n, at_least=0)
        if (counted if n is None else n) > most:
            raise InvalidParameter(f"at most {most:,} rows are drawn at once; name a number")
        return plain_generator(seed)

    @plain_refusals
    def count(self, query: str = "", *, confidence: float = 0.95) -> Answer:
        """Count the records that satisfy `query`, with a confidence interval; free."""
        raise InvalidQuery(f"a release of kind {self.kind!r} does not answer counts")

    def count_boxes(
        self, columns: Sequence[str], lows: NDArray[np.int64], highs: NDArray[np.int64]
    ) -> NDArray[np.float64]:
        """Estimate how many records lie in each of many boxes at once; free.

        Box i holds the codes `lows[i, j] <= code < highs[i, j]` of every column j; columns
        that are not named are not limited.
        """
        raise InvalidQuery(f"a release of kind {self.kind!r} does not answer counts")

    @plain_refusals
    def predict(self, rows: Any) -> pa.Array:
        """Predict the class of each of `rows` (any Arrow-compatible object); free."""
        raise InvalidQuery(f"a release of kind {self.kind!r} does not classify")

    @property
    def folder(self) -> Path | None:
        """The folder in which it was saved or from which it was loaded; None if there is none."""
        found: Path | None = vars(self).get("_folder")
        return found

    @folder.setter
    def folder(self, path: Path) -> None:  # a stream, which is its folder, declares it as a field
        vars(self)["_folder"] = path

    def keep_folder(self, path: Path) -> Self:
        """Remember the folder that holds this release, and return the release."""
        vars(self)["_folder"] = path
        return self

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

        saved = save(self, Path(path), extras=extras or {}, sign=signing_key(sign))
        self.keep_folder(saved)
        return saved


def _telling(count: Callable[..., Answer]) -> Callable[..., Answer]:
    """Make a count say what it counts; public, from the schema and the receipt alone."""

    @wraps(count)
    def told(self: Release, *args: Any, **options: Any) -> Answer:
        found = count(self, *args, **options)
        notes = [found.assumption or "", not_in_intervals(self.receipt) or ""]
        if found.low is None or notes[1] in notes[0]:  # no interval, or said within another count
            return replace(found, counts=what_is_counted(self))
        said = "; ".join(note for note in notes if note)
        return replace(found, assumption=said, counts=what_is_counted(self))

    return told


class CellRelease(Release):
    """A published value over the cells of some axes, which a subclass keeps or derives."""

    if TYPE_CHECKING:  # a property here would become the default of a subclass's field

        @property
        def axes(self) -> tuple[Axis, ...]:
            """The axes, in order."""

    @property
    def shape(self) -> tuple[int, ...]:
        """Number of cells along each axis."""
        return tuple(axis.size for axis in self.axes)

    @property
    def size(self) -> int:
        """Number of cells of the domain, published or not."""
        return prod(self.shape)
