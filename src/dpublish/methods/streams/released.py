"""A published stream: a histogram for every step, kept in a folder that grows.

The steps are listed in memory; the counts of a step are read, and checked, when they are used.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from math import floor, log10
from pathlib import Path
from typing import Any, ClassVar, NoReturn

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from dpublish.core.answer import Answer
from dpublish.core.folder.opening import Allowance, Fingerprint, has_file, read_file, read_parquet
from dpublish.core.query.cells import CellCounts
from dpublish.core.released import CellRelease, Metadata, Tables, whole_column
from dpublish.data.axis import Axis
from dpublish.data.schema import Schema
from dpublish.errors import CorruptRelease, InvalidParameter, InvalidQuery, require_known
from dpublish.methods.streams.listing import StepRecord, natural_key, partition_name
from dpublish.privacy.epsilon import format_epsilon, format_rounded
from dpublish.privacy.receipt import Receipt

FREE_STANDING = "identity"
"""The static method that gives every bin noise of its own, whose confidence intervals are known."""


def write_number(value: float, digits: int = 3) -> str:
    """Write a positive number with at least so many digits, and never with an exponent.

    >>> write_number(20_480.4), write_number(2.7992), write_number(0.01234), write_number(0.0)
    ('20,480', '2.80', '0.0123', '0')
    """
    decimals = max(0, digits - 1 - floor(log10(value))) if value else 0
    return f"{value:,.{decimals}f}"


@dataclass(frozen=True, eq=False)
class StreamRelease(CellRelease):
    """The steps of a stream over the bins of `axes`, and the folder that holds their counts.

    People are hidden in all of `horizon` steps, or within any `window` consecutive ones.
    """

    kind: ClassVar[str] = "histogram-stream"
    report: ClassVar[str] = "dpublish.methods.streams.report:section"

    receipt: Receipt
    schema: Schema
    axes: tuple[Axis, ...]
    records: tuple[StepRecord, ...]
    folder: Path
    horizon: int | None = None
    window: int | None = None

    def __post_init__(self) -> None:
        """Refuse what no stream would publish: a folder may come from anywhere."""
        if not self.axes or len({axis.column for axis in self.axes}) != len(self.axes):
            raise InvalidParameter("a stream has at least one axis, each column once")
        spans = [span for span in (self.horizon, self.window) if span is not None]
        if len(spans) != 1 or type(spans[0]) is not int or spans[0] < 1:
            raise InvalidParameter("a stream has a horizon or a window of at least one step")
        if [record.number for record in self.records] != list(range(1, len(self.records) + 1)):
            raise InvalidParameter("the steps of a stream are numbered from 1, none left out")
        if any(record.spent > self.receipt.epsilon for record in self.records):
            raise InvalidParameter("a stream never spends more than its epsilon")
        keys = [natural_key(time) for time in self.times]
        if any(before >= after for before, after in pairwise(keys)):
            raise InvalidParameter("the labels of a stream's steps increase")

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, StreamRelease)
            and self.metadata() == other.metadata()
            and self.receipt == other.receipt
            and self.records == other.records
        )

    __hash__ = None  # type: ignore[assignment]

    @cached_property
    def times(self) -> tuple[str, ...]:
        """Labels of the steps, in order."""
        return tuple(record.time for record in self.records)

    @property
    def has_published(self) -> bool:
        """Whether a histogram was published; until then estimates are zeros and say nothing."""
        return any(record.action == "published" for record in self.records)

    def steps(self) -> pa.Table:
        """List the steps: when, what was done, what it cost, noise and change."""
        plain = [record.to_dict() for record in self.records]
        kinds = {"number": pa.int64(), "noise": pa.float64(), "change": pa.float64()}
        names = ["number", "time", "action", "epsilon", "noise", "change", "spent", "sha256"]
        return pa.table(
            {
                name: pa.array([step[name] for step in plain], kinds.get(name, pa.string()))
                for name in names
            }
        )

    def record(self, time: str | None = None) -> StepRecord:
        """Find the record of a step by its label; the last one if none is given."""
        if not self.records:
            raise InvalidQuery("the stream has no step yet")
        if time is None:
            return self.records[-1]
        require_known("step", time, self.times)
        return self.records[self.times.index(time)]

    def table(self, time: str | None = None) -> pa.Table:
        """Return the bins of a step with their labels, as they stand in the folder."""
        record = self.record(time)
        content = read_file(self.folder, record.file)
        if Fingerprint.of(content).sha256 != record.sha256:
            raise CorruptRelease(
                f"{self.folder / record.file} was changed or cut; ask for the release again"
            )
        return self._checked(read_parquet(content, Allowance()), record)

    def at(self, time: str | None = None) -> NDArray[np.float64]:
        """Return the estimate of every bin at a step, shaped by the axes."""
        estimates = np.asarray(self.table(time)["estimate"].to_numpy(), dtype=np.float64)
        return estimates.reshape(self.shape)

    @property
    def complete(self) -> tuple[str, ...]:
        """Names of the columns whose missing rules decide which records are counted."""
        return tuple(axis.column for axis in self.axes)

    def count(
        self, query: str = "", *, confidence: float = 0.95, time: str | None = None
    ) -> Answer:
        """Count the records that satisfy `query` at a step; the last one if none is given.

        A step at which every bin was published with noise of its own has a confidence interval.
        A repeated step shows an earlier estimate.  How far the counts have moved since was not
        measured, so there is no interval.
        """
        record = self.record(time)
        table = self.table(record.time)
        settings = self.receipt.settings
        most = int(settings.get("contribution", 1))
        notes = []
        if record.action == "published" and settings.get("static") == FREE_STANDING:
            noisy = whole_column(table, "noisy_count")
            answer = CellCounts(self.axes, noisy, record.epsilon / most).answer(query, confidence)
        else:
            answer = self._estimates(table).answer(query, confidence)
        if record.action == "repeated":
            notes.append(self._last_published(record))
        notes += [answer.assumption] if answer.assumption else []
        return replace(answer, assumption="; ".join(notes) or None)

    def _last_published(self, record: StepRecord) -> str:
        past = [each.time for each in self.records[: record.number] if each.action == "published"]
        return f"published last at {past[-1]}" if past else "nothing was published yet"

    def count_boxes(
        self, columns: Sequence[str], lows: NDArray[np.int64], highs: NDArray[np.int64]
    ) -> NDArray[np.float64]:
        """Estimate how many records lie in each of many boxes of codes, at the last step."""
        return self._estimates(self.table()).boxes(columns, lows, highs)

    def missing(self) -> list[str]:
        """Name the steps whose counts are not in the folder; looks at names only."""
        return [each.time for each in self.records if not has_file(self.folder, each.file)]

    def tables(self) -> dict[str, pa.Table]:
        """Return the counts of the last step, by their path in the folder."""
        if not self.records:
            return {}
        return {f"{partition_name(self.records[-1].time)}/counts": self.table()}

    def tables_to_read(self) -> dict[str, pa.Table]:
        """Return the list of steps, and the counts of all steps as one table."""
        counts = []
        for record in self.records:
            table = self.table(record.time)
            times = pa.array([record.time], pa.string()).take(pa.array([0] * table.num_rows))
            counts.append(table.add_column(0, "time", times))
        if not counts:
            return {"steps": self.steps()}
        joined = pa.concat_tables(counts, promote_options="default")
        return {"counts": joined, "steps": self.steps()}

    def metadata(self) -> dict[str, Any]:
        """Return axes, and the steps in which people are hidden."""
        return {
            "axes": [{"column": axis.column, "level": axis.level} for axis in self.axes],
            "horizon": self.horizon,
            "window": self.window,
        }

    @classmethod
    def read_parts(cls, schema: Schema, metadata: Metadata, tables: Tables) -> NoReturn:
        """Refuse: a stream is more than its tables."""
        raise InvalidParameter("a stream is opened by its folder, which lists the steps")

    def save(
        self,
        path: str | Path,
        *,
        extras: Mapping[str, bytes] | None = None,
        sign: object = None,
    ) -> NoReturn:
        """Refuse: the folder grows step by step, where it is."""
        raise InvalidParameter(f"a stream is its folder; copy {self.folder} instead")

    def expected_error(self) -> dict[str, float]:
        """Return the noise of the last step's estimates; nothing before the first publication."""
        if not self.has_published:
            return {}
        return {"standard_deviation_of_one_bin": self.records[-1].noise}

    def guarantee(self) -> str:
        """Describe in a few words for how long a person is hidden."""
        if self.window is not None:
            return f"a person is hidden within any {self.window:,} consecutive steps, for ever"
        return f"a person is hidden in all steps together, at most {self.horizon:,} of them"

    def summary(self) -> dict[str, str]:
        """Describe the stream in a few words."""
        published = sum(record.action == "published" for record in self.records)
        words = {
            "counts by": " x ".join(f"{axis.column} ({axis.size})" for axis in self.axes),
            "guarantee": f"{self.guarantee()}, at epsilon {format_epsilon(self.receipt.epsilon)}",
            "steps": f"{len(self.records):,}, of which {published:,} published a fresh histogram",
        }
        if self.records:
            last = self.records[-1]
            scope = "so far" if self.window is None else "in the window that ends there"
            words["last step"] = f"{last.time}, {last.action}; spent {scope}: " + format_rounded(
                last.spent
            )
            words["error"] = (
                f"noise gives a bin of the last estimate a standard deviation of "
                f"{write_number(last.noise)}"
                if self.has_published
                else "not known: nothing was published yet, and estimates of 0 say nothing"
            )
        return words

    def _estimates(self, table: pa.Table) -> CellCounts:
        return CellCounts(self.axes, table["estimate"].to_numpy(), None)

    def _checked(self, table: pa.Table, record: StepRecord) -> pa.Table:
        """Refuse a file that does not hold what its step says."""
        wanted = {"estimate": pa.float64()}
        if record.action == "published":
            wanted["noisy_count"] = pa.int64()
        for name, kind in wanted.items():
            whole = name in table.column_names and table[name].type == kind
            if not whole or table[name].null_count or table.num_rows != self.size:
                raise CorruptRelease(f"the counts of step {record.number} are not what they say")
        if not np.all(np.isfinite(table["estimate"].to_numpy())):
            raise CorruptRelease(f"the estimates of step {record.number} are not numbers")
        return table
