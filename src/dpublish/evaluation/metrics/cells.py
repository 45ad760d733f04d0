"""How far private clusters are from true ones: DSG_C, OCM, 2CE and the F-measure.

L. Chen, T. Yu, R. Chirkova, "WaveCluster with differential privacy" (CIKM, 2015), section 6,
made defined for any numbers of clusters on either side.  All are computed from true clusters
and are not private.  Labels are integers from 0; NONE is the label of what no cluster
holds.  What the clusters are called does not matter, only what lies in them together.
"""

from math import comb, inf

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment

from dpublish.errors import InvalidParameter

NONE = -1
Labels = NDArray[np.int64]


def cell_dissimilarity(true: Labels, private: Labels) -> float:
    """Measure the part of the true significant cells that is clustered otherwise (DSG_C).

    Both give each cell of one grid its label.  Clusters are matched one to one so that the
    total difference is least.  The difference of a pair is what one has and the other lacks,
    whichever is more; a cluster without a partner differs by all its cells.  It may exceed 1.

    >>> cell_dissimilarity(np.array([0, 0, 0, -1]), np.array([5, 5, -1, -1]))
    0.3333333333333333
    """
    _require_pairs(true, private)
    both = _contingency(true, private)
    inside = both[1:, 1:]
    sizes, others = both[1:].sum(axis=1), both[:, 1:].sum(axis=0)
    if not sizes.sum():
        return inf if others.sum() else 0.0
    width = max(inside.shape)
    cost = np.zeros((width, width), dtype=np.int64)
    cost[: len(sizes), :] = sizes[:, None]
    cost[:, : len(others)] = np.maximum(cost[:, : len(others)], others[None, :])
    cost[: len(sizes), : len(others)] -= inside
    return float(cost[linear_sum_assignment(cost)].sum() / sizes.sum())


def class_mismatch(true: Labels, private: Labels) -> float:
    """Measure the part of the points that two classifiers put into different classes (OCM).

    Classes are matched one to one so that as many points as possible agree; points in a class
    without a partner disagree.  The label NONE is a class like any other.

    >>> class_mismatch(np.array([0, 0, 1, 1]), np.array([7, 7, 7, 3]))
    0.25
    """
    _require_pairs(true, private)
    if not true.size:
        raise InvalidParameter("there is no point to measure on")
    both = _contingency(true, private)
    common = both[linear_sum_assignment(both, maximize=True)].sum()
    return float(1 - common / true.size)


def pair_mismatch(true: Labels, private: Labels) -> float:
    """Measure the part of the pairs of points that only one of two classifiers splits (2CE).

    This is one minus the Rand index.  Fewer than two points have no pair: 0.

    >>> pair_mismatch(np.array([0, 0, 1, 1]), np.array([7, 7, 7, 3]))
    0.5
    """
    _require_pairs(true, private)
    if true.size < 2:
        return 0.0
    both = _contingency(true, private)
    rows, columns = both.sum(axis=1), both.sum(axis=0)
    split = int((rows**2).sum() + (columns**2).sum()) - 2 * int((both**2).sum())
    return split / 2 / comb(true.size, 2)


def f_measure(true: Labels, private: Labels) -> float:
    """Measure how well each true cluster is found again by some private one: 1 is perfect.

    A private cluster finds a true one as well as the harmonic mean of precision and recall
    says.  Each true cluster takes its best private one, several may take the same, and the
    mean is weighted by the true clusters' sizes.  Nothing to find: 1 if nothing was found.

    >>> round(f_measure(np.array([0, 0, 0, 1]), np.array([2, 2, -1, 2])), 6)
    0.625
    """
    _require_pairs(true, private)
    both = _contingency(true, private)
    sizes, others = both[1:].sum(axis=1), both[:, 1:].sum(axis=0)
    if not sizes.sum() or not others.sum():
        return float(sizes.sum() == others.sum())
    best = (2 * both[1:, 1:] / (sizes[:, None] + others[None, :])).max(axis=1)
    return float((sizes * best).sum() / sizes.sum())


def cluster_count(labels: Labels) -> int:
    """Count the clusters.

    >>> cluster_count(np.array([[0, 0, -1], [4, -1, -1]]))
    2
    """
    return int(np.unique(labels[labels != NONE]).size)


def _contingency(true: Labels, private: Labels) -> NDArray[np.int64]:
    """Count by true and private label; the first row and column are those of NONE."""
    kinds, rows = np.unique(np.append(true.ravel(), NONE), return_inverse=True)
    others, columns = np.unique(np.append(private.ravel(), NONE), return_inverse=True)
    both = np.zeros((kinds.size, others.size), dtype=np.int64)
    np.add.at(both, (rows[:-1], columns[:-1]), 1)
    return both


def _require_pairs(true: Labels, private: Labels) -> None:
    if true.shape != private.shape:
        raise InvalidParameter("true and private labels must be of the same cells or points")
    if true.size and min(true.min(), private.min()) < NONE:
        raise InvalidParameter(f"labels are integers from 0, or {NONE} for none")
