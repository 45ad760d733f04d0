"""The parts of a personalized release: which people, what they paid, and what was published."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import combinations
from typing import Any

import numpy as np
import pyarrow as pa

from dpublish.accuracy.rounding import format_number
from dpublish.core.beside_labels import HIGH, LOW
from dpublish.core.released import Release, describe_field, whole_column
from dpublish.data import schema_file
from dpublish.errors import CorruptRelease, InvalidParameter, require_count
from dpublish.mechanisms.exact.sampler import SMALLEST_RATE
from dpublish.methods.histogram.released import HistogramRelease
from dpublish.privacy.epsilon import format_epsilon, format_short, parse_epsilon
from dpublish.privacy.levels import parse_levels
from dpublish.privacy.neighbors import AddRemoveRecord
from dpublish.privacy.receipt import Receipt
from dpublish.types import FloatArray

LARGEST = 1e20
"""Of a weight, a scale or a number of people; beyond any real one, and safe to multiply."""
PARTS = "parts"
"""Name of the published table that lists the parts."""
NOISY_WEIGHT = "noisy_weight"
"""Name of the published column of noisy sums of weights, where records do not count as 1."""
_LARGEST_COUNT = 1 << 62


@dataclass(frozen=True)
class Part:
    """An ordinary release from the records of some levels.

    Attributes:
        levels: The levels whose records are in it, rising.
        epsilon: Epsilon of the release within.
        weight: How much it counts beside other parts, in any unit; 0 for not at all.
        scale: By how much its counts are multiplied to stand for all its people.
        size: Number of its people, public or noisy; None if it is not known.
        release: What was published.
        units: What a record of full weight adds to a count of the release.  Above 1, its counts
            are sums of weights and no numbers of records.
    """

    levels: tuple[Fraction, ...]
    epsilon: Fraction
    weight: float
    scale: float
    size: float | None
    release: Release
    units: int = 1

    def __post_init__(self) -> None:
        """Refuse what no method would publish: a release may come from anywhere."""
        if parse_levels(self.levels) != self.levels:
            raise InvalidParameter("the levels of a part must be exact")
        if not isinstance(self.release, Release) or self.release.kind == "personal":
            raise InvalidParameter("a part holds an ordinary release")
        if self.release.receipt.epsilon != self.epsilon:
            raise InvalidParameter("the epsilon of a part must be that of its release")
        for name, number in (("weight", self.weight), ("scale", self.scale), ("size", self.size)):
            if number is not None or name != "size":
                require_number(f"the {name} of a part", number)
        if self.weight < 0 or self.scale < 1 / LARGEST:
            raise InvalidParameter("a part's weight is at least 0, its scale above 0")
        if not isinstance(self.release.receipt.neighbors, AddRemoveRecord):
            raise InvalidParameter("a part must hide one record that is added or removed")
        self._check_units()

    def _check_units(self) -> None:
        require_count(units=self.units)
        if self.units == 1:
            return
        if not isinstance(self.release, HistogramRelease) or self.release.threshold is not None:
            raise InvalidParameter("only a histogram of all cells has sums of weights")
        if self.size is None:
            raise InvalidParameter("sums of weights need the number of people they stand for")

    @property
    def people(self) -> float:
        """Number of its people, as far as it is known; a noisy one below 1 stands for none."""
        return 0.0 if self.size is None or self.size < 1 else float(self.size)

    @property
    def level_names(self) -> str:
        """Its levels in words; many are named by their ends."""
        first, last = format_short(self.levels[0]), format_short(self.levels[-1])
        if len(self.levels) == 1:
            return f"level {first}"
        return f"levels {first} {'and' if len(self.levels) == 2 else 'to'} {last}"

    def assuming(self, text: str) -> "Part":
        """Return the part with one more assumption in the receipt of its release."""
        receipt = self.release.receipt
        said = replace(receipt, assumptions=(*receipt.assumptions, text))
        return replace(self, release=self.release.with_receipt(said))

    def in_records(self, factor: float) -> Release:
        """Return its release with counts of records, to be shown; sums of weights are rounded.

        Args:
            factor: Number of records that one unit of a count stands for.
        """
        if self.units == 1 or not isinstance(self.release, HistogramRelease):
            return self.release
        counts = np.clip(np.rint(self.release.counts * factor), -_LARGEST_COUNT, _LARGEST_COUNT)
        rate = self.release.noise_rate / max(Fraction(factor), 1 / Fraction(LARGEST))
        return replace(
            self.release,
            counts=counts.astype(np.int64),
            noise_rate=max(rate.limit_denominator(1 << 40), SMALLEST_RATE),
        )

    def tables(self, factor: float) -> dict[str, pa.Table]:
        """Return the tables of its release; of sums of weights, with estimates in records."""
        found = self.release.tables()
        if self.units == 1:
            return found
        return {name: _with_records(table, self.units, factor) for name, table in found.items()}

    def metadata(self) -> dict[str, Any]:
        """Return all but the tables of its release, as plain values."""
        return {
            "levels": [format_epsilon(level) for level in self.levels],
            "epsilon": format_epsilon(self.epsilon),
            "weight": float(self.weight),
            "scale": float(self.scale),
            "size": None if self.size is None else float(self.size),
            "units": self.units,
            "kind": self.release.kind,
            "receipt": self.release.receipt.to_dict(),
            "schema": schema_file.to_dict(self.release.schema),
            "metadata": self.release.metadata(),
        }

    @classmethod
    def read(cls, metadata: Mapping[str, Any], tables: Mapping[str, pa.Table]) -> "Part":
        """Rebuild a part from its metadata and the tables of its release."""
        release = _kind_called(metadata["kind"]).from_parts(
            receipt=Receipt.from_dict(metadata["receipt"]),
            schema=schema_file.from_dict(metadata["schema"]),
            metadata=metadata["metadata"],
            tables={name: _with_counts(table) for name, table in tables.items()}
            if metadata["units"] != 1
            else tables,
        )
        return cls(
            levels=tuple(parse_epsilon(level) for level in metadata["levels"]),
            epsilon=parse_epsilon(metadata["epsilon"]),
            weight=metadata["weight"],
            scale=metadata["scale"],
            size=metadata["size"],
            release=release,
            units=metadata["units"],
        )


def _with_records(table: pa.Table, units: int, factor: float) -> pa.Table:
    """Name sums of weights as such, and put estimates in records beside them."""
    counts = table.schema.get_field_index("noisy_count")
    weight = describe_field(
        pa.field(NOISY_WEIGHT, pa.int64()),
        f"Noisy sum of weights. A record of full weight adds {units:,}, others less; one unit "
        f"stands for {format_number(factor, 9)} records.",
    )
    table = table.set_column(counts, weight, table["noisy_count"])
    estimates = table.schema.get_field_index("estimated_count")
    records = describe_field(
        pa.field("estimated_count", pa.float64()),
        "Estimated number of records: what the noisy weights say, times "
        f"{format_number(factor, 9)}.",
    )
    values = whole_column(table, "estimated_count") * factor
    table = table.set_column(estimates, records, pa.array(values, pa.float64()))
    for name, word in ((LOW, "Lower"), (HIGH, "Upper")):
        at = table.schema.get_field_index(name)
        field = describe_field(
            pa.field(name, pa.float64()),
            f"{word} end of the interval that holds the weighted count without noise, in records, "
            "with probability 95 %.",
            derived="yes",
        )
        ends = pa.array(whole_column(table, name) * factor, pa.float64())
        table = table.set_column(at, field, ends)
    return table


def _with_counts(table: pa.Table) -> pa.Table:
    """Undo `_with_records` as far as a release is read from it."""
    names = table.column_names
    if names.count(NOISY_WEIGHT) != 1 or "noisy_count" in names:
        raise CorruptRelease("a part's table of weights does not hold them once")
    return table.rename_columns(["noisy_count" if n == NOISY_WEIGHT else n for n in names])


def shares(parts: Sequence[Part], counts: FloatArray | None = None) -> FloatArray:
    """Scale the weights to a sum of 1, evenly if all are 0; `counts` marks who takes part."""
    weights = np.array([part.weight for part in parts], dtype=np.float64)
    taking = np.ones(len(parts)) if counts is None else (counts > 0).astype(np.float64)
    if not (weights @ taking) > 0:
        weights = np.ones(len(parts))
    weights = weights / weights.max() * taking  # the sum of huge ones would be infinite
    total = weights.sum()
    return np.asarray(weights / total if total > 0 else weights)


def are_disjoint(parts: Sequence[Part]) -> bool:
    """Check whether every level is in one part at most."""
    levels = [level for part in parts for level in part.levels]
    return len(levels) == len(set(levels))


def shared_pairs(parts: Sequence[Part]) -> list[tuple[int, int]]:
    """List the pairs of parts that have levels in common."""
    sets = [set(part.levels) for part in parts]
    return [(i, j) for i, j in combinations(range(len(parts)), 2) if sets[i] & sets[j]]


def nested_tables(parts: Sequence[Part], factors: Sequence[float]) -> dict[str, pa.Table]:
    """Return a list of the parts, and the tables of each under its number.

    `factors` are the numbers of records that a unit of each part's counts stands for.
    """
    listed = pa.table(
        {
            "part": pa.array(range(1, len(parts) + 1), pa.int64()),
            "levels": [", ".join(map(format_epsilon, part.levels)) for part in parts],
            "epsilon": [format_epsilon(part.epsilon) for part in parts],
            "weight": pa.array([float(part.weight) for part in parts]),
            "scale": pa.array([float(part.scale) for part in parts]),
            "size": pa.array([part.size for part in parts], pa.float64()),
            "units": pa.array([part.units for part in parts], pa.int64()),
            "kind": [part.release.kind for part in parts],
        }
    )
    nested = {
        f"{_prefix(number)}{name}": table
        for number, (part, factor) in enumerate(zip(parts, factors, strict=True))
        for name, table in part.tables(factor).items()
    }
    return {PARTS: _described(listed), **nested}


def _described(listed: pa.Table) -> pa.Table:
    """Describe in the list of parts what its numbers mean."""
    words = {
        "weight": "How much the part counts beside others.",
        "scale": "By how much its counts are multiplied to stand for all its people.",
        "units": "What a record of full weight adds to a count of the part; 1 for plain counts.",
    }
    fields = [describe_field(f, words[f.name]) if f.name in words else f for f in listed.schema]
    return listed.cast(pa.schema(fields))


def read_parts(
    metadata: Sequence[Mapping[str, Any]], tables: Mapping[str, pa.Table]
) -> tuple[Part, ...]:
    """Rebuild the parts that `nested_tables` and `Part.metadata` wrote."""
    found = []
    for number, each in enumerate(metadata):
        prefix = _prefix(number)
        own = {n.removeprefix(prefix): t for n, t in tables.items() if n.startswith(prefix)}
        found.append(Part.read(each, own))
    return tuple(found)


def _prefix(number: int) -> str:
    return f"part{number + 1}_"


def _kind_called(name: object) -> type[Release]:
    from dpublish.core.folder.folder import kind_called  # the folder knows all kinds of release

    kind = kind_called(name)
    if kind is None or name in ("personal", "histogram-stream"):
        raise CorruptRelease("a part holds a kind of release that this version does not know")
    return kind


def require_number(name: str, number: object) -> None:
    """Refuse what is no number, or one with which no sum can be done any more."""
    if isinstance(number, bool) or not isinstance(number, (int, float)):
        raise InvalidParameter(f"{name} must be a number")
    if not -LARGEST <= number <= LARGEST:
        raise InvalidParameter(f"{name} must be finite, and at most {LARGEST:g}")
