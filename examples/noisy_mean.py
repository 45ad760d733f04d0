"""A method of your own in one file: the mean of a column, its released value and its test.

Run it: python examples/noisy_mean.py (and its test: pytest examples/noisy_mean.py).

In a package of yours, one line of pyproject.toml makes it a method like any other:

    [project.entry-points."dpublish.methods"]
    noisy-mean = "noisy_mean:NoisyMean"

Then `dpublish release --method noisy-mean --column age ...` and `dpublish.load(...)` know it.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, ClassVar, Self

import numpy as np
import pyarrow as pa

from dpublish import (
    Budget,
    ExpectedError,
    Method,
    Release,
    Run,
    Schema,
    open_table,
    seeded,
    setting,
)
from dpublish.accuracy.noise_distribution import sum_quantile
from dpublish.aggregates.counts import Counts
from dpublish.data.table import Batch
from dpublish.errors import InvalidParameter
from dpublish.privacy.neighbors import AddRemoveRecord, Neighbors
from dpublish.privacy.receipt import Receipt
from dpublish.testing import check_method

STEPS = 1000
"""Values are counted in thousandths of the width between the column's bounds."""


TOTAL = Fraction(4, 5)
"""Share of epsilon for the sum; the rest is for the number of records."""


@dataclass(frozen=True)
class Steps:
    """Kernel: the sum of a column over all records, in steps above its lower bound."""

    column: str
    low: float
    high: float

    codes: ClassVar[tuple[str, ...]] = ()

    @property
    def values(self) -> tuple[str, ...]:
        """Columns that it reads as clipped numbers."""
        return (self.column,)

    def zero(self) -> np.ndarray:
        """Return the answer for no records."""
        return np.zeros(1, dtype=np.int64)

    def add(self, batch: Batch, out: np.ndarray) -> None:
        """Add the records of a batch; integers, so that the order does not matter."""
        share = (batch.values(self.column) - self.low) / (self.high - self.low)
        out += np.rint(share * STEPS).astype(np.int64).sum()

    def merge(self, out: np.ndarray, other: np.ndarray) -> None:
        """Add another partial answer."""
        out += other

    def sensitivity(self, neighbors: Neighbors) -> int:
        """Return STEPS: a record adds at most that many to the sum."""
        if not isinstance(neighbors, AddRemoveRecord):
            raise InvalidParameter("the mean hides one record added or removed, nothing else")
        return STEPS


@dataclass(frozen=True, eq=False, kw_only=True)
class MeanRelease(Release):
    """The noisy number of records and the noisy sum, from which the mean follows."""

    kind: ClassVar[str] = "noisy-mean"

    receipt: Receipt
    schema: Schema
    counts: np.ndarray
    expected: Mapping[str, float] = field(default_factory=dict)

    @property
    def mean(self) -> float:
        """The mean, in the column's own unit."""
        low, high = self.schema.columns[0].bounds
        records, steps = (float(number) for number in self.counts)
        share = min(max(steps / (STEPS * max(records, 1.0)), 0.0), 1.0)
        return low + share * (high - low)

    def __eq__(self, other: object) -> bool:
        same = isinstance(other, MeanRelease) and self.receipt == other.receipt
        return same and self.tables()["mean"].equals(other.tables()["mean"])

    __hash__ = None

    def tables(self) -> dict[str, pa.Table]:
        """Return what is published."""
        return {"mean": pa.table({"noisy_number": self.counts})}

    def metadata(self) -> dict[str, Any]:
        """Return what else is needed to load it."""
        return {"expected": dict(self.expected)}

    @classmethod
    def from_parts(
        cls,
        *,
        receipt: Receipt,
        schema: Schema,
        metadata: Mapping[str, Any],
        tables: Mapping[str, pa.Table],
    ) -> Self:
        """Load it again."""
        counts = tables["mean"]["noisy_number"].to_numpy()
        return cls(receipt=receipt, schema=schema, counts=counts, expected=metadata["expected"])

    def summary(self) -> dict[str, str]:
        """Describe it for the terminal and the report."""
        return {"mean": f"{self.schema.columns[0].name}: {self.mean:,.2f}"}

    def expected_error(self) -> dict[str, float]:
        """Return the error that was predicted."""
        return dict(self.expected)


@dataclass(frozen=True, kw_only=True)
class NoisyMean(Method[MeanRelease]):
    """Publish the mean of one numeric column.

    Guarantee:
        Pure epsilon-differential privacy for adding or removing one record.

    Parameters:
        column: The column; its public bounds come from the schema.
    """

    name: ClassVar[str] = "noisy-mean"
    task: ClassVar[str] = "statistics"
    publishes: ClassVar[str] = "the mean of one column"
    prefer_when: ClassVar[str] = "one mean is all that matters"
    released: ClassVar[type[Release]] = MeanRelease

    column: str = setting("The numeric column whose mean is published.")

    def _release(self, run: Run) -> MeanRelease:
        """Add noise to the number of records and to their sum, and divide.

        Privacy:
            A record adds 1 to the number of records and at most STEPS to the sum; geometric
            noise of that sensitivity hides it in each, and the two shares add up to epsilon.
            The mean is computed from the noisy numbers.
        """
        column = run.schema[self.column]
        everyone, steps = Counts(run.schema, (((self.column, 0),),)), self._kernel(run.schema)
        shares = run.split(records=1 - TOTAL, total=TOTAL)  # opened before any row is read
        records = run.add_noise(run.sum(everyone), of=everyone, budget=shares["records"])
        total = run.add_noise(run.sum(steps), of=steps, budget=shares["total"])
        return MeanRelease(
            receipt=run.receipt(),
            schema=Schema((column,)),
            counts=np.concatenate([records, total]),
            expected=run.expected,
        )

    def _kernel(self, schema: Schema) -> Steps:
        return Steps(self.column, *schema[self.column].bounds)

    def reads(self, schema: Schema) -> tuple[str, ...]:
        """Name the column that a release reads; the data need no other."""
        return (self.column,)

    def expected_error(
        self, schema: Schema, n_records: int | None, epsilon: Fraction
    ) -> ExpectedError:
        """Predict how far noise moves the sum; with a number of records, also the mean."""
        low, high = schema[self.column].bounds
        steps = sum_quantile(epsilon * TOTAL / STEPS, 1, 0.95)
        figures = {"sum_95": steps / STEPS * (high - low)}
        if n_records:
            figures["mean_95"] = figures["sum_95"] / n_records
        return ExpectedError(f"the sum within {figures['sum_95']:,.1f} (95 %)", figures, "sum_95")


def test_it_keeps_the_rules_of_every_method():
    check_method(NoisyMean(column="age"))


if __name__ == "__main__":
    from dpublish import column
    from dpublish.datasets.census import census

    rows, schema = census(2_000), Schema((column("age", "integer", bounds=[16, 95]),))
    method = NoisyMean(column="age")
    print(f"true mean: {np.mean(rows['age'].to_numpy()):.2f} (simulated people)")
    for epsilon in ("0.05", "0.1", "0.5", "1"):
        expected = method.expected_error(schema, len(rows), Fraction(epsilon))
        release = method.release(
            open_table(rows, schema), budget=Budget.seeded(epsilon), rng=seeded(7)
        )
        print(
            f"epsilon {epsilon:>4}: noisy mean {release.mean:.2f}; "
            f"noise on the sum moves it by at most {expected.figures['mean_95']:.2f} (95 %)"
        )
