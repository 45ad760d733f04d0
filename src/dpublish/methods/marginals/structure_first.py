"""StructureFirst: choose buckets of neighboring values first, then count the buckets.

After J. Xu, Z. Zhang, X. Xiao, Y. Yang, G. Yu, M. Winslett, "Differentially Private Histogram
Publication", The VLDB Journal 22(6), 2013.  There a bucket costs the squared deviation of its
counts from their mean, whose sensitivity grows with the counts themselves and was bounded by the
largest of them, which is private.  Here it costs the absolute deviation from their median: one
record moves that by at most 1, whatever the counts are.
"""

from bisect import bisect_left, insort

import numpy as np

from dpublish.types import IntArray

VALUES_PER_BUCKET = 10
MOST_STRUCTURED = 1024
"""Most values whose buckets are chosen: the work grows with the square of their number."""
CHOICE_RANGE = 2
"""One record moves the costs of two partitions by at most 1 each, perhaps apart."""
LARGEST_COUNT = 1 << 48
"""Counts beyond are taken for it, which brings neighbors no farther apart."""
_NEVER = 1 << 60


def count_buckets(size: int) -> int:
    """Return how many buckets so many values are cut into: public.

    >>> count_buckets(5), count_buckets(1000)
    (1, 100)
    """
    return -(-size // VALUES_PER_BUCKET)


def deviations(counts: IntArray) -> IntArray:
    """Compute the cost of every bucket: how far its counts are from their median, in sum.

    The cost of the values from i up to, but without, j is at [i, j]; elsewhere it is too high to
    be chosen.

    >>> deviations(np.array([4, 9, 5]))[0, 1:]
    array([0, 5, 5])
    """
    size = counts.size
    costs = np.full((size + 1, size + 1), _NEVER, dtype=np.int64)
    values = counts.tolist()
    for start in range(size):
        costs[start, start + 1 :] = _running_deviations(values[start:])
    return costs


def _running_deviations(values: list[int]) -> list[int]:
    """Compute the cost of the first value, of the first two, and so on."""
    ordered: list[int] = []
    found, cost, middle = [], 0, 0
    for value in values:
        # The cost grows by the distance of the new value from the median, before or after.
        if len(ordered) % 2:
            cost += abs(value - ordered[middle])
        elif ordered:
            low, high = ordered[middle - 1], ordered[middle]
            cost += max(low - value, value - high, 0)
        insort(ordered, value, bisect_left(ordered, value))
        middle = len(ordered) // 2
        found.append(cost)
    return found


def best_costs(costs: IntArray, buckets: int) -> list[IntArray]:
    """Compute the least cost of cutting the first values into 1, 2, ... buckets, by their number.

    Dynamic programming; what cannot be cut costs too much to be chosen.
    """
    found = [costs[0]]
    for _ in range(1, buckets):
        found.append(np.minimum((found[-1][:, None] + costs).min(axis=0), _NEVER))
    return found


def last_cut_costs(costs: IntArray, best: list[IntArray], buckets: int, stop: int) -> IntArray:
    """Compute the least cost of cutting the values before `stop`, by where the last bucket begins.

    The first entry stands for the earliest beginning that leaves a value for each other bucket.
    """
    begins = np.arange(buckets - 1, stop)
    return np.asarray(best[buckets - 2][begins] + costs[begins, stop])
