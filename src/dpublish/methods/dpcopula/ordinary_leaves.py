"""What the released marginals say about the leaves that have a place in a column's order."""

from collections.abc import Mapping, Sequence
from math import floor, log
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpublish.core.noisy_size import NoisySize
from dpublish.data.schema import Schema
from dpublish.data.table import Table
from dpublish.errors import InvalidParameter
from dpublish.methods.marginals.noisy_marginal import NoisyMarginal
from dpublish.privacy.neighbors import AddRemoveRecord
from dpublish.types import IntArray


class OrdinaryLeaves(NamedTuple):
    """The ordinary leaves of a column: all but those of unlisted and missing values."""

    probabilities: NDArray[np.float64]
    """Their probabilities, adding up to 1; even if nothing is left."""
    kept: float
    """Part of all records that lies in them."""
    special: int
    """Number of the other leaves, which come last."""

    def pad(self, table: IntArray, filler: int) -> IntArray:
        """Add the special leaves to a table of the ordinary ones."""
        return np.pad(table, (0, self.special), constant_values=filler)


def ordinary_leaves(
    schema: Schema, columns: Sequence[str], marginals: Mapping[str, NoisyMarginal]
) -> list[OrdinaryLeaves]:
    """Look at the ordinary leaves of each column."""
    found = []
    for name in columns:
        axis = schema[name].axis()
        probabilities = marginals[name].probabilities[: axis.ordinary_leaves]
        kept = min(float(probabilities.sum()), 1.0)
        even = np.full(probabilities.size, 1 / probabilities.size)
        found.append(OrdinaryLeaves(probabilities / kept if kept > 0 else even, kept, axis.special))
    return found


def fewest_records(size: NoisySize, columns: int) -> int:
    """Bound the number of records from below: right in 999 of 1000 cases, and at least `columns`.

    Nothing private rests on it being right.
    """
    return max(columns, floor(size.value - log(500) / float(size.rate)))


def complete_columns(
    columns: Sequence[str], marginals: Mapping[str, NoisyMarginal]
) -> tuple[str, ...]:
    """List the columns that a record must have: those that marginals were published of, too."""
    return tuple(dict.fromkeys((*columns, *marginals)))


def require_correlated(table: Table, columns: Sequence[str]) -> None:
    """Refuse tables whose neighbors differ by more than a record, and fewer than two columns."""
    if not isinstance(table.neighbors, AddRemoveRecord):
        raise InvalidParameter("correlations are published for single records added or removed")
    if len(columns) < 2:
        raise InvalidParameter("a correlation needs two columns or more")
