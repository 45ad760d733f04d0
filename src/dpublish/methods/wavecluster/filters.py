"""The smoothing half of a wavelet transform along one axis, in integers.

A level halves an axis: each coefficient is a weighted sum of neighboring cells, and the axis
wraps around (periodization).  So do several levels, with a longer list of weights.  Weights
are integers, so that a coefficient is exact: whether it is positive, and which of two is
larger, never depends on rounding.
"""

from collections import Counter
from dataclasses import dataclass
from functools import cache, cached_property, reduce
from math import gcd
from typing import Any

import numpy as np
import pywt
from numpy.typing import NDArray

from dpublish.errors import InvalidParameter, require_count, require_known

FAMILIES = ("haar", "db", "sym", "coif", "bior")
WAVELETS: tuple[str, ...] = tuple(name for f in FAMILIES for name in pywt.wavelist(f))
"""The wavelets offered: Haar, Daubechies, symlets, coiflets and biorthogonal ones."""
_PRECISION = 40  # bits of a weight


@dataclass(frozen=True)
class AxisFilter:
    """Weights of the cells `step * r + offset` (around the axis) in coefficient r.

    Attributes:
        size: Number of cells, a multiple of `step`.
        step: Cells that a coefficient stands for, 2 ** levels.
        offsets: Places of the cells with weight, from 0 to `size` - 1, each once.
        weights: Their weights, integers other than 0.
        unit: What a weight of 1 is worth in the usual scale of the wavelet.

    >>> haar = AxisFilter.of(8, "haar")
    >>> haar.offsets, haar.weights, haar.unit == 0.5**0.5
    ((0, 1), (1, 1), True)
    >>> haar.apply(np.arange(8), 0).tolist()
    [1, 5, 9, 13]
    """

    size: int
    step: int
    offsets: tuple[int, ...]
    weights: tuple[int, ...]
    unit: float

    @classmethod
    def of(cls, size: int, wavelet: str, levels: int = 1) -> "AxisFilter":
        """Look the wavelet up and compose its levels; all of it is public."""
        require_known("wavelet", wavelet, WAVELETS)
        require_count(levels=levels)
        step = 1 << int(levels)
        if size < step or size % step:
            raise InvalidParameter(
                f"{size} cells along an axis cannot be halved {levels} times; take a multiple "
                f"of {step}"
            )
        return _compose(int(size), wavelet, int(levels))

    @property
    def coefficients(self) -> int:
        """Number of coefficients along the axis."""
        return self.size // self.step

    @property
    def norm(self) -> int:
        """Sum of the sizes of the weights."""
        return sum(map(abs, self.weights))

    @cached_property
    def signs(self) -> frozenset[tuple[int, int]]:
        """How many coefficients a cell raises and lowers, for all cells of the axis.

        Cells that are a step apart are alike, so `step` cells show all there is.
        """
        up, down = Counter[int](), Counter[int]()
        for offset, weight in zip(self.offsets, self.weights, strict=True):
            (up if weight > 0 else down)[offset % self.step] += 1
        return frozenset((up[place], down[place]) for place in range(self.step))

    @cached_property
    def owners(self) -> NDArray[np.int64]:
        """The coefficient to which each cell belongs: where it weighs most, the first of equals."""
        cells = np.arange(self.size)
        best = np.zeros(self.size, dtype=np.int64)
        heaviest = np.zeros(self.size, dtype=np.float64)
        for offset, weight in zip(self.offsets, self.weights, strict=True):
            place, rest = np.divmod((cells - offset) % self.size, self.step)
            size = np.where(rest == 0, float(abs(weight)), 0.0)
            wins = (size > heaviest) | ((size == heaviest) & (size > 0) & (place < best))
            best[wins], heaviest[wins] = place[wins], size[wins]
        return best

    def apply(self, values: NDArray[Any], axis: int) -> NDArray[Any]:
        """Transform along one axis by direct sums: a cell touches its own coefficients only."""
        starts = np.arange(self.coefficients) * self.step
        parts = (
            np.take(values, (starts + offset) % self.size, axis=axis) * weight
            for offset, weight in zip(self.offsets, self.weights, strict=True)
        )
        return sum(parts)  # type: ignore[return-value]


@cache
def _compose(size: int, wavelet: str, levels: int) -> AxisFilter:
    taps = _whole_taps(wavelet)
    found = {0: 1}
    for level in range(levels):
        # Coefficient k of a level is the sum of h[j] * x[2 k + L / 2 - j], x being a level below.
        longer = Counter[int]()
        for place, weight in found.items():
            for tap, value in enumerate(taps):
                below = 2 * place + len(taps) // 2 - tap
                longer[below % (size >> (levels - 1 - level))] += weight * value
        found = dict(longer)
    kept = {place: weight for place, weight in sorted(found.items()) if weight}
    return AxisFilter(
        size=size,
        step=1 << levels,
        offsets=tuple(kept),
        weights=tuple(kept.values()),
        unit=(sum(pywt.Wavelet(wavelet).dec_lo) / sum(taps)) ** levels,
    )


def _whole_taps(wavelet: str) -> list[int]:
    """Write the low-pass filter as integers in proportion.

    Times the root of 2, Haar's taps are 1 and those of the biorthogonal wavelets are short
    binary fractions, so that these are exact; others keep 40 bits.
    """
    taps = np.array(pywt.Wavelet(wavelet).dec_lo) * 2**0.5
    whole = [int(value) for value in np.rint(np.ldexp(taps, _PRECISION))]
    common = reduce(gcd, whole)
    return [value // common for value in whole]
