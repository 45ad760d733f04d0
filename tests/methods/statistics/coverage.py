"""How often the intervals of statistics hold the truth: many releases of groups of known values.

All repetitions are groups of one release: the noise of a group is its own, so that one release
of 2,000 groups with the same values is 2,000 releases of one group.
"""

from typing import NamedTuple

import numpy as np
import pyarrow as pa

from dpublish import Budget, Statistics, column, open_table, seeded
from dpublish.data.schema import Schema
from dpublish.randomness import plain_generator

LOW, HIGH = -20.0, 100.0


class Coverage(NamedTuple):
    """The part of the intervals that hold the truth, of numbers known, and mean half-width."""

    covered: float
    known: float
    half_width: float


def make_values(n, kind, rng):
    """Draw values of a group: spread over the bounds, all at an end, or with a long tail."""
    if kind == "even":
        return rng.uniform(LOW, HIGH, n)
    if kind == "edge":
        return np.full(n, HIGH)
    return np.minimum(LOW + rng.lognormal(1.5, 1.0, n), HIGH)


def truth(measure, values):
    """Compute a measure of plain values; None of nothing."""
    if measure in ("count", "count(x)"):
        return float(values.size)
    if measure == "sum(x)":
        return float(values.sum())
    if not values.size:
        return None
    plain = {"mean(x)": np.mean, "variance(x)": np.var, "std(x)": np.std}
    if measure in plain:
        return float(plain[measure](values))
    part = 0.5 if measure == "median(x)" else float(measure[len("quantile(x, ") : -1])
    return float(np.quantile(values, part, method="inverted_cdf"))


class _Repeated:
    """A table whose groups all hold the same values; only its sums are computed."""

    def __init__(self, table, groups):
        self._table, self._groups = table, groups
        self.schema = Schema(
            (column("group", "integer", bounds=[0, groups - 1]), table.schema["x"])
        )
        self.neighbors = table.neighbors

    def sum(self, kernel):
        single = type(kernel)(self._table.schema, (), kernel.parts)
        found = [np.repeat(one, self._groups) for one in single.split(self._table.sum(single))]
        return np.concatenate(found)


def measure_coverage(measures, values, *, epsilon, releases, seed, whole=False, confidence="0.95"):
    """Release the same values many times; return the coverage of each measure."""
    kind = "integer" if whole else "numeric"
    schema = Schema((column("x", kind, bounds=[LOW, HIGH]),))
    values = np.floor(values) if whole else values
    table = _Repeated(open_table(pa.table({"x": values}), schema), releases)
    method = Statistics(measures=measures, by=("group",))
    released = method.release(table, budget=Budget.seeded(epsilon), rng=seeded(seed))
    found = {}
    for measure in released.measures:
        true, estimates = truth(measure, values), released.estimates(measure)
        slack = 1e-9 * (values.size + 1) if measure == "sum(x)" else 1e-9  # of adding up floats
        holds = (
            np.ones(releases, dtype=bool)
            if true is None
            else (estimates.lows - slack <= true) & (true <= estimates.highs + slack)
        )
        found[measure] = Coverage(
            float(holds.mean()),
            float(estimates.known.mean()),
            float((estimates.highs - estimates.lows).mean() / 2),
        )
    return found


def generator(seed):
    """Make a generator of public test values."""
    return plain_generator(seed)
