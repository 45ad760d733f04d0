"""What a list of boxes must satisfy to be a tree of partitions."""

import numpy as np
from numpy.typing import NDArray

from dpublish.errors import InvalidParameter
from dpublish.types import IntArray

_ROUNDING = 1e-9


def require_boxes(
    sizes: IntArray, lows: IntArray, highs: IntArray, parents: IntArray, *, partial: bool
) -> None:
    """Refuse boxes that are not in the domain, not in their parents, or do not fill them.

    Parts of a box may be fewer than fill it only if `partial`.  That they do not overlap is
    checked by their volume alone.
    """
    shape = (parents.size, sizes.size)
    for array, wanted in ((lows, shape), (highs, shape), (parents, shape[:1])):
        if array.dtype != np.int64 or array.shape != wanted:
            raise InvalidParameter("boxes are integers: ends for each column, and a parent")
    if not parents.size:
        raise InvalidParameter("there must be at least one box")
    if np.any(lows < 0) or np.any(lows >= highs) or np.any(highs > sizes):
        raise InvalidParameter("every box holds at least one leaf of each column, and no others")
    if np.any(parents < -1) or np.any(parents >= np.arange(parents.size)):
        raise InvalidParameter("a box is listed after the one around it")
    inner = np.flatnonzero(parents >= 0)
    around = parents[inner]
    if np.any(lows[inner] < lows[around]) or np.any(highs[inner] > highs[around]):
        raise InvalidParameter("a box lies within its parent")
    # Volumes are measured against the box around: those of the domain may be too small.
    extents = highs - lows
    outer = np.where((parents >= 0)[:, None], extents[parents], sizes)
    _require_filled(np.prod(extents / outer, axis=1), parents, partial)


def _require_filled(volumes: NDArray[np.float64], parents: IntArray, partial: bool) -> None:
    has_parts = np.bincount(parents + 1) > 0
    filled = np.bincount(parents + 1, weights=volumes)[has_parts]
    if np.any(filled > 1 + _ROUNDING):
        raise InvalidParameter("the parts of a box do not overlap")
    if not partial and np.any(filled < 1 - _ROUNDING):
        raise InvalidParameter("the parts of a box fill it, unless the boxes are partial")
