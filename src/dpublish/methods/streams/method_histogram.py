"""Any method that counts, as the static histogram of a stream.

The method sees a table with one row for every record that the snapshot keeps, in which each
row tells its bin and nothing else.  What it publishes is asked for the count of every bin.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpublish.core.method import Method
from dpublish.core.released import Release
from dpublish.data.schema import Schema
from dpublish.data.table import Table
from dpublish.errors import InvalidParameter
from dpublish.methods.filter_priority.released import FilterPriorityRelease
from dpublish.methods.marginals.released import MarginalsRelease
from dpublish.methods.privelet.released import PriveletRelease
from dpublish.methods.spatial.released import SpatialRelease
from dpublish.methods.streams.bins import Bins
from dpublish.methods.streams.reading import Reading, rows_of, schema_of
from dpublish.methods.streams.static import ROUNDING, round_running
from dpublish.privacy.budget import Budget
from dpublish.privacy.neighbors import AddRemoveRecord
from dpublish.randomness import RandomSource, seeded

MOST_BINS = 1 << 18
MOST_ROWS = 100_000
"""Most rows of the public table on which a method's noise is measured."""
_SEED = 1

_MARGINALS = ("hierarchical", "efpa", "noise-first")
_PLACES: Mapping[str, str] = {
    **dict.fromkeys(_MARGINALS, "dpublish.methods.marginals.marginals:Marginals"),
    "psd": "dpublish.methods.spatial.psd:PSD",
    "ug": "dpublish.methods.spatial.ug:UG",
    "ag": "dpublish.methods.spatial.ag:AG",
    "privelet": "dpublish.methods.privelet.privelet:Privelet",
    "p-hp": "dpublish.methods.spatial.php:PHP",
    "filter-priority": "dpublish.methods.filter_priority.filter_priority:FilterPriority",
}


@dataclass(frozen=True)
class MethodHistogram:
    """One of the methods for a single table, run on every snapshot that is published."""

    name: str

    def check(self, schema: Schema, bins: Bins, rate: Fraction = Fraction(1)) -> None:
        """Refuse bins that the method cannot publish, or not at `rate` per row."""
        if bins.size > MOST_BINS:
            raise InvalidParameter(
                f"{self.name} takes at most {MOST_BINS:,} bins, not {bins.size:,}; use identity, "
                "or coarser columns"
            )
        if self.name in _MARGINALS and len(bins.axes) > 1:
            raise InvalidParameter(
                f"{self.name} publishes one column, not {len(bins.axes)}; use psd, ag or privelet"
            )
        self._method(bins).expected_error(schema_of(bins), None, rate)

    def publish(
        self, reading: Reading, *, contribution: int, budget: Budget, rng: RandomSource
    ) -> tuple[NDArray[np.int64], float]:
        """Publish by the method, and count every bin in what it published.

        Privacy:
            `budget.epsilon`-differentially private when up to `contribution` = s rows are
            added or removed.  The method is epsilon / s-private for one row (it is handed a
            share of that much), so s rows, added one after the other, cost epsilon (group
            privacy).  A row of the snapshot is a row of the method's table (`rows_of`).
            Counts of bins are read from the release.  The variance is found by running the
            method again, on the published counts: that reads nothing private.
        """
        rate = budget.epsilon / contribution
        share = budget.at_most(rate, hides=AddRemoveRecord())
        method = self._method(reading.bins)
        released = _count_bins(method.release(reading.rows, budget=share, rng=rng), reading.bins)
        return released, _measure_noise(method, released, rate, reading.bins)

    def _method(self, bins: Bins) -> Method[Any]:
        module, _, attribute = _PLACES[self.name].partition(":")
        make: Callable[..., Method[Any]] = getattr(import_module(module), attribute)
        settings: dict[str, Any] = {"marginal": self.name} if self.name in _MARGINALS else {}
        return make(columns=bins.names, **settings)


def _count_bins(release: Release, bins: Bins) -> NDArray[np.int64]:
    """Read the count of every bin from a release about a table of bins; may be negative."""
    if isinstance(release, MarginalsRelease):
        found = release.marginals[0].bins
    elif isinstance(release, FilterPriorityRelease):
        sums = np.bincount(release.cells, weights=release.weights, minlength=bins.size)
        found = sums.astype(np.float64)
    elif isinstance(release, PriveletRelease):
        found = release.estimates.ravel()
    elif isinstance(release, SpatialRelease):
        found = _paint(release, bins)
    else:
        raise InvalidParameter(f"a release of kind {release.kind!r} does not count bins")
    return round_running(found)


def _paint(release: SpatialRelease, bins: Bins) -> NDArray[np.float64]:
    """Spread the estimate of every box evenly over its bins; asking for each bin takes long."""
    lows, highs = release.lows[release.ends], release.highs[release.ends]
    heights = release.estimates / np.prod(highs - lows, axis=1)
    found = np.zeros(bins.shape)
    for low, high, height in zip(lows.tolist(), highs.tolist(), heights.tolist(), strict=True):
        found[tuple(map(slice, low, high))] = height
    return found.ravel()


def _measure_noise(
    method: Method[Any], released: NDArray[np.int64], rate: Fraction, bins: Bins
) -> float:
    """Run a method on what it published, and say how far a bin strays on average (squared).

    The published counts stand for the truth, which they resemble.  Of many records only a
    part is taken; with a rate that is higher in proportion the method works alike, on a
    smaller scale.
    """
    total = int(np.maximum(released, 0).sum())
    scale = Fraction(min(MOST_ROWS, total), total) if total else Fraction(1)
    public = round_running(np.maximum(released, 0) * float(scale))
    table: Table = rows_of(public, bins)
    again = method.release(table, budget=Budget.seeded(rate / scale), rng=seeded(_SEED))
    error = (_count_bins(again, bins) - public) / float(scale)
    return max(float(np.mean(np.square(error))), ROUNDING)
