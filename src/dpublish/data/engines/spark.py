"""Tables that live in Apache Spark: kernels run on the cluster, and a few vectors come back.

Every partition is read by the same code as in one process (`spark_tasks`), so answers are the
same bit by bit.  Partial answers are merged on the cluster, level by level; rows never leave
it.  A task that is run again, or twice at once, changes nothing: what it yields is used once.

What is drawn at random is drawn once and kept on the executors.  Each partition carries a
nonce that is recorded here; a partition that was lost and would be drawn anew is refused, so
that no release ever shows two samples.
"""

import pickle
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import pairwise
from typing import Any, NoReturn

import pyarrow as pa

from dpublish.data.batch import S, Summable, refuse_copy
from dpublish.data.draws import require_rate, require_rates
from dpublish.data.engines.bounded import Bound
from dpublish.data.engines.chosen import Choice, make_choice
from dpublish.data.engines.encoded import Reading, names_of, readings
from dpublish.data.engines.source import UNREADABLE
from dpublish.data.engines.spark_files import SparkFiles
from dpublish.data.engines.spark_jobs import Job, ask
from dpublish.data.engines.spark_tasks import (
    DRAWN,
    MARKER,
    Adding,
    Bounding,
    Counting,
    CountRows,
    Dealing,
    DealPairs,
    DealRows,
    DealtRows,
    Draw,
    DrawnRows,
    Draws,
    LostRows,
    Merge,
    PlainRows,
    Reader,
    Rows,
    Rule,
    Sampling,
    SamplingBy,
    Splitting,
    SumPairs,
    SumRows,
    make_targets,
    merge_answers,
)
from dpublish.data.engines.units import needed_columns, require_opened
from dpublish.data.lowest import Lowest
from dpublish.data.schema import Schema, keep_columns
from dpublish.data.steps import Plan
from dpublish.errors import InvalidParameter, require_count
from dpublish.privacy.neighbors import Neighbors
from dpublish.randomness import RandomSource, secure
from dpublish.types import IntArray

_FAN_IN = 32
_MERGED_BYTES = 1 << 28  # of partial answers that one task merges, and that come back
_ARROW_TYPES = {
    "ByteType": pa.int8(),
    "ShortType": pa.int16(),
    "IntegerType": pa.int32(),
    "LongType": pa.int64(),
    "FloatType": pa.float32(),
    "DoubleType": pa.float64(),
    "BooleanType": pa.bool_(),
    "StringType": pa.string(),
    "CharType": pa.string(),
    "VarcharType": pa.string(),
    "DateType": pa.date32(),
    "BinaryType": pa.binary(),
    "TimestampType": pa.timestamp("us", "UTC"),
    "TimestampNTZType": pa.timestamp("us"),
    "NullType": pa.null(),
}


def read_header(types: Any) -> Any:
    """Write the names and types of a Spark table as an Arrow schema."""
    return pa.schema([pa.field(x.name, _arrow_type(x.dataType)) for x in types.fields])


def _arrow_type(kind: Any) -> Any:
    name = type(kind).__name__
    if name == "DecimalType":
        return pa.decimal128(kind.precision, kind.scale)
    return _ARROW_TYPES.get(name, UNREADABLE)


@dataclass(frozen=True)
class Kept:
    """Rows that were drawn once: the nonce of each partition, and which block is looked at."""

    nonces: tuple[bytes, ...]
    block: int = 0


@dataclass(frozen=True)
class Frame:
    """Rows in Spark, as the driver knows them: a plan, and no row.

    Attributes:
        data: The Spark DataFrame.
        header: Names and types of the columns, as an Arrow schema.
        label: How messages call it.
        parts: About how many partitions it has; a hint, on which no answer depends.
        files: The files that it reads, and how they were when the table was opened.
        kept: Set if its rows were drawn, so that they are blobs.
        choices: What picks some of the rows.
        plan: The steps that each record is taken through where it is read; None if there are
            none, or if its rows were drawn after them.
        session: Held as long as the rows are in use.
    """

    data: Any
    header: Any
    label: str
    parts: int
    files: SparkFiles
    kept: Kept | None = None
    choices: tuple[Choice, ...] = ()
    session: Any = None
    plan: Plan | None = None

    def read(self, columns: Sequence[str]) -> tuple[Any, Reader]:
        """Return a plan that reads some columns, and how its tasks understand them."""
        if self.kept is not None:
            block = self.data["block"]
            data = self.data.where((block == self.kept.block) | (block == MARKER))
            return data, self._reader(DrawnRows(self.kept.nonces))
        chosen = [choice.column.source_name for choice in self.choices]
        names = tuple(dict.fromkeys((*columns, *chosen)))
        header = self.header
        if self.plan is not None:
            names, header = self.plan.needs(names), self.plan.raw
        indices = [header.get_field_index(name) for name in names]
        # By number, for names may hold dots, or differ in capitals only.
        plain = self.data.toDF(*(f"c{index}" for index in range(len(header.names))))
        return plain.select(*(f"c{index}" for index in indices)), self._reader(PlainRows(names))

    def _reader(self, rows: Rows) -> Reader:
        return Reader(rows, self.label, self.choices, self.plan)


class SparkTable:
    """Private rows in Apache Spark, summed up there; made by `open_table` or `open_spark`."""

    def __init__(
        self,
        schema: Schema,
        frame: Frame,
        *,
        opened: Collection[str] | None = None,
        is_bounded: bool = False,
        steps: tuple[str, ...] = (),
        made: tuple[str, ...] = (),
    ) -> None:
        self.steps = steps
        """What was done to each record before, in words that may be published."""
        self.made = made
        """Names of the columns that those steps have added."""
        self.is_bounded = is_bounded
        """Whether rows were chosen among those of their unit, so that none stands alone."""
        self._schema = schema
        self._opened = schema if opened is None else keep_columns(schema, opened)
        self._frame = frame

    def __repr__(self) -> str:
        return f"SparkTable({', '.join(self._schema.names)})"

    def __reduce__(self) -> NoReturn:
        refuse_copy("a table")

    @property
    def schema(self) -> Schema:
        """What is publicly known about the rows."""
        return self._schema

    @property
    def opened(self) -> tuple[str, ...]:
        """Names of the columns that can be read: all of the schema, unless fewer were opened."""
        return self._opened.names

    @property
    def neighbors(self) -> Neighbors:
        """The change to the rows that a release must hide."""
        return self._schema.neighbors

    def close(self) -> None:
        """End the Spark session, if it was started for this table."""
        if self._frame.session is not None:
            self._frame.session.close()

    def sum(self, kernel: Summable[S]) -> S:
        """Add up a kernel over all records that its columns keep."""
        unit = self._schema.unit
        wanted = readings(kernel, by_unit=unit is not None)
        for reading in wanted:
            reading.check(self._schema)
        require_opened([x.name for x in wanted], self._opened)
        adding = _adding(kernel)
        widths = [*_merge_widths(self._frame.parts, _size_of(kernel)), 1]
        first = replace(adding, targets=make_targets(widths[0]))
        if unit is None:
            job = self._add_rows(first, wanted)
        else:
            job = self._add_units(first, unit, wanted)
        for width, following in pairwise(widths):
            merge = Merge(replace(adding, targets=make_targets(following)))
            job = job.exchange(width).map(merge)
        return ask(self._frame.files, lambda: self._finish(kernel, job.blobs()))

    def sample(
        self, rate: Fraction, rng: RandomSource, columns: Sequence[str] | None = None
    ) -> "SparkTable":
        """Keep every record (every unit, if rows have units) with probability `rate`, exactly.

        The rows of the sample are held by the executors, with the given columns only.
        """
        rule = Sampling(require_rate(rate))
        schema = self._narrow(columns)
        return self._keep(schema, self._draw(schema, rule, Draws.of(rng)))

    def split(
        self, blocks: int, rng: RandomSource, columns: Sequence[str] | None = None
    ) -> list["SparkTable"]:
        """Put every record (every unit) into one of `blocks` tables, uniformly at random.

        All rows are held by the executors, once, with the given columns only.
        """
        require_count(blocks=blocks)
        schema = self._narrow(columns)
        whole = self._draw(schema, Splitting(blocks), Draws.of(rng))
        kept = whole.kept
        if kept is None:
            raise InvalidParameter("blocks must have been drawn")
        return [
            self._keep(schema, replace(whole, kept=replace(kept, block=block)))
            for block in range(blocks)
        ]

    def bound(
        self,
        most: int,
        key: bytes,
        columns: Sequence[str] | None = None,
        lowest: str | Lowest | None = None,
        complete: Sequence[str] | None = None,
    ) -> "SparkTable":
        """Keep at most `most` rows of each unit, as records of their own.

        For methods that pay for `most` rows of a unit.  `publish` refuses the result: one record
        more may replace another of its unit.

        The rows that stay are held by the executors, with the given columns only; a task holds
        all rows of its units while it chooses.
        """
        schema = self._narrow(columns)
        bound = Bound.of(schema, most, key, lowest, complete)
        frame = self._draw(schema, Bounding(bound), Draws(), by=bound.by)
        opened = bound.result(keep_columns(schema, self._opened.names)).names
        return SparkTable(
            bound.result(schema),
            frame,
            opened=opened,
            is_bounded=True,
            steps=self.steps,
            made=self.made,
        )

    def rows_per_unit(
        self,
        most: int,
        columns: Sequence[str] | None = None,
        complete: Sequence[str] | None = None,
    ) -> IntArray:
        """Count the units with 1, 2, ... rows, the last entry those with `most` or more.

        Of the rows that no missing rule of the columns (of those that are to be `complete`)
        leaves out; a unit without any is not counted.  Exact, and therefore private: one unit
        changes one entry by one.
        """
        schema = keep_columns(self._narrow(columns), self._opened.names)
        counting = Counting(Bound.of(schema, most, b"", complete=complete))
        names = needed_columns(schema)
        data, reader = self._frame.read(names)
        deal = DealRows(self._dealing(), counting.bound.unit, names, reader)
        count = CountRows(counting, schema, Reader(DealtRows(), self._frame.label))
        job = Job(data).map(deal).exchange(self._frame.parts).map(count)
        return ask(self._frame.files, lambda: counting.add_up(job.blobs()))

    def only(self, column: str, leaves: Collection[int], *, keep: bool = False) -> "SparkTable":
        """Pick the records whose leaf of `column` is one of `leaves`; no row is read yet."""
        self._refuse_units()
        choice = make_choice(self._schema[column], leaves)
        require_opened((column,), self._opened)
        schema = self._schema if keep else self._narrow(self._others(column))
        return self._keep(schema, replace(self._frame, choices=(*self._frame.choices, choice)))

    def sample_by(
        self,
        column: str,
        rates: Sequence[Fraction],
        rng: RandomSource,
        columns: Sequence[str] | None = None,
    ) -> "SparkTable":
        """Keep a record whose leaf of `column` is k with probability `rates[k]`, exactly.

        The rows of the sample are held by the executors, with the given columns only.
        """
        self._refuse_units()
        by = self._schema[column]
        require_opened((column,), self._opened)
        rule = SamplingBy(by, require_rates(rates, by.size))
        schema = self._narrow(self._others(column) if columns is None else columns)
        return self._keep(schema, self._draw(schema, rule, Draws.of(rng), by=(by.source_name,)))

    # --- Sums -----------------------------------------------------------------------------

    def _add_rows(self, adding: Adding, wanted: tuple[Reading, ...]) -> Job:
        counted = wanted or (Reading(self._opened.names[0], as_values=False),)
        names = names_of(self._opened, counted)  # some column counts the rows
        data, reader = self._frame.read(names)
        return Job(data).map(SumRows(adding, self._opened, wanted, reader))

    def _add_units(self, adding: Adding, unit: str, wanted: tuple[Reading, ...]) -> Job:
        names = tuple(dict.fromkeys((unit, *names_of(self._schema, wanted))))
        data, reader = self._frame.read(names)
        deal = DealPairs(self._dealing(), self._schema, unit, wanted, names, reader)
        return Job(data).map(deal).exchange(self._frame.parts).map(SumPairs(adding, wanted))

    def _finish(self, kernel: Summable[S], blobs: Sequence[Any]) -> S:
        """Merge the last partial answers; of rows that were kept, all partitions must be there."""
        seen, answer = merge_answers(kernel, blobs)
        if self._schema.unit is None and seen != set(range(self._count_parts(len(seen)))):
            raise LostRows
        found: S = answer
        return found

    def _count_parts(self, otherwise: int) -> int:
        return otherwise if self._frame.kept is None else len(self._frame.kept.nonces)

    def _dealing(self) -> Dealing:
        return Dealing(make_targets(self._frame.parts), secure().words(2).tobytes())

    # --- Rows that are drawn and kept -----------------------------------------------------

    def _draw(self, schema: Schema, rule: Rule, draws: Draws, by: tuple[str, ...] = ()) -> Frame:
        """Draw rows once, keep them on the executors, and record the nonce of each partition."""
        schema = keep_columns(schema, self._opened.names)
        columns = tuple(dict.fromkeys((*needed_columns(schema), *by)))
        data, reader = self._frame.read(columns)
        job = Job(data)
        if schema.unit is not None:
            deal = DealRows(self._dealing(), schema.unit, columns, reader)
            job = job.map(deal).exchange(self._frame.parts)
            reader = Reader(DealtRows(), self._frame.label)
        draw = Draw(rule, draws, schema, reader)
        data, nonces = ask(self._frame.files, lambda: _store(job.map(draw, DRAWN)))
        return Frame(
            data=data,
            header=self._frame.header,
            label=self._frame.label,
            parts=len(nonces),
            files=SparkFiles.none(self._frame.label, self._frame.files.session),
            kept=Kept(nonces),
            session=self._frame.session,
        )

    def _keep(self, schema: Schema, frame: Frame) -> "SparkTable":
        return SparkTable(
            schema,
            frame,
            opened=self._opened.names,
            is_bounded=self.is_bounded,
            steps=self.steps,
            made=self.made,
        )

    # --- Names ----------------------------------------------------------------------------

    def _others(self, column: str) -> list[str]:
        return [name for name in self._schema.names if name != column]

    def _refuse_units(self) -> None:
        """Refuse to tell rows of one unit apart: a unit must not be in several groups."""
        if self._schema.unit is not None:
            raise InvalidParameter("rows belong to units here; only single records can be chosen")

    def _narrow(self, columns: Sequence[str] | None) -> Schema:
        if columns is None:
            return self._schema
        return replace(self._schema, columns=tuple(self._schema[name] for name in columns))


def _store(job: Job) -> tuple[Any, tuple[bytes, ...]]:
    """Run a draw, cut off what it was made from, and read which nonce each partition has.

    From then on a partition that is lost cannot be made again: whatever needs it fails.
    """
    data = job.data.localCheckpoint(eager=True)
    markers = data.where(data["block"] == MARKER).select("part", "nonce", "blob").toArrow()
    found = {row["part"]: row["nonce"] for row in markers.to_pylist()}
    seen = [pickle.loads(blob.as_buffer()) for blob in markers.column("blob")]
    parts = data.rdd.getNumPartitions()
    is_whole = markers.num_rows == parts and set(found) == set(range(parts))
    if not is_whole or len(set[int]().union(*seen)) != sum(map(len, seen)):
        raise LostRows
    return data, tuple(found[part] for part in range(parts))


def _adding(kernel: Summable[Any]) -> Adding:
    """Prepare a kernel for the cluster; one that draws gets a source of its own in every task."""
    rng = getattr(kernel, "rng", None)
    if rng is None:
        return Adding(kernel)
    drawing: Any = kernel
    return Adding(replace(drawing, rng=secure()), draws=Draws.of(rng))


def _size_of(kernel: Summable[Any]) -> int:
    return len(pickle.dumps(kernel.zero(), protocol=pickle.HIGHEST_PROTOCOL))


def _merge_widths(parts: int, size: int) -> list[int]:
    """Choose by how many tasks partial answers are merged, level by level.

    A task merges 32 answers, or fewer if they are large; 16 come back at most.

    >>> _merge_widths(4, 100), _merge_widths(200, 100), _merge_widths(10_000, 100)
    ([], [7], [313, 10])
    >>> _merge_widths(200, 1 << 26)
    [50, 13, 4, 1]
    """
    fan_in = min(max(_MERGED_BYTES // size, 2), _FAN_IN)
    widths: list[int] = []
    while parts > max(fan_in // 2, 1):
        parts = -(-parts // fan_in)
        widths.append(parts)
    return widths
