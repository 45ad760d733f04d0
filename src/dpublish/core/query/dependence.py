"""Bound counts by several columns from counts by each of them, however the columns depend.

Of n records let a satisfy one condition and b another.  Then at least a + b - n and at most
min(a, b) satisfy both, whatever the dependence is (Fréchet).  With intervals for a, b and n, each
of which may fail with a part of the risk, that is a confidence interval.
"""

from collections.abc import Callable, Sequence

from dpublish.core.answer import Answer
from dpublish.data.query.language import Query
from dpublish.errors import InvalidQuery

ANY_DEPENDENCE = (
    "the interval is what the noisy counts of the conditions one by one allow, however they depend "
    "on each other"
)
"""Said beside such an interval."""

CountOf = Callable[[Query, float], Answer | None]
"""Counts by conditions on one column, or all records, at a confidence; None where it cannot."""


def joint_bounds(query: Query, count_of: CountOf, confidence: float) -> tuple[float, float] | None:
    """Bound how many records satisfy all conditions from those that satisfy each column's.

    Args:
        query: The conditions.
        count_of: Counts by the conditions on one column, and all records (the empty query).
        confidence: Probability with which the bounds hold.

    Returns:
        The bounds; None if the number of records has none.
    """
    names = query.columns
    each = 1 - (1 - confidence) / (len(names) + 1)
    total = count_of(Query(()), each)
    if total is None or total.high is None:
        return None
    found = [_counted(Query(query.about(name)), count_of, each) for name in names]
    return frechet_bounds([interval_of(one, total.high) for one in found], total.high)


def _counted(query: Query, count_of: CountOf, confidence: float) -> Answer | None:
    """Count by one column; None where the published counts cannot tell."""
    try:
        return count_of(query, confidence)
    except InvalidQuery:  # such as two cuts of the same cell, which rows can tell
        return None


def interval_of(answer: Answer | None, most: float) -> tuple[float, float]:
    """Return the ends of an answer's interval; without one, anything is possible."""
    if answer is None or answer.low is None or answer.high is None:
        return 0.0, most
    return answer.low, answer.high


def frechet_bounds(parts: Sequence[tuple[float, float]], most: float) -> tuple[float, float]:
    """Bound how many of at most `most` records satisfy all conditions.

    Args:
        parts: How many records satisfy each condition, at least and at most.
        most: How many records there are at most.

    >>> frechet_bounds([(60, 65), (50, 52)], 102)
    (8, 52)
    """
    low = sum(least for least, _ in parts) - (len(parts) - 1) * most
    return max(low, 0.0), min([most, *(high for _, high in parts)])
