"""A snapshot of the table: at most so many rows of each user, and their exact counts."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from dpublish.aggregates.counts import Counts
from dpublish.data.table import Table
from dpublish.errors import InvalidParameter
from dpublish.methods.streams.bins import Bins
from dpublish.privacy.neighbors import AddRemoveRecord


def bounded(
    table: Table, contribution: int, key: bytes, columns: Sequence[str] | None = None
) -> Table:
    """Keep at most `contribution` rows of each unit, with the given columns only.

    Rows that a missing rule of one of the columns leaves out go first.  Which of a unit's
    other rows stay is settled by the key and by that unit's rows alone: adding or removing
    a unit adds or removes at most `contribution` rows, all of them its own, whatever the key
    is (proof: docs/proofs/contribution_bound.md).  So hiding single rows of the result at
    epsilon / contribution hides a unit at epsilon.  With one key for the whole stream, a
    unit whose rows do not change keeps the same ones at every step.
    """
    return table.bound(contribution, key, columns)


def exact_counts(table: Table, bins: Bins) -> NDArray[np.int64]:
    """Count the rows in each bin: exact, and therefore private."""
    if not isinstance(table.neighbors, AddRemoveRecord):
        raise InvalidParameter("a unit may have any number of rows here; bound them first")
    return table.sum(Counts(table.schema, (bins.columns,)))
