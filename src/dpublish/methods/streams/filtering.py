"""The estimate of the bins: published histograms, weighed against each other over time.

A fresh histogram is noisy, and so was the one before it.  If the counts have hardly moved, the
two are measurements of the same thing and their average is better than either; if they have
moved far, the old one is worthless.  How far they moved shows in the difference itself: noise
explains a known part of it, the rest is change.  This is a Kalman filter with one gain for all
bins, whose process noise is estimated at each update (James and Stein's idea).

Counts that drift keep drifting for a while.  So the bins are followed in two ways, as if they
stood still and as if they moved on, and the way that has predicted publications clearly better
is used.  All of it uses published numbers only and costs nothing.

Reference: R. E. Kalman, "A New Approach to Linear Filtering and Prediction Problems", 1960;
W. James, C. Stein, "Estimation with Quadratic Loss", 1961; C. C. Holt, "Forecasting Seasonals and
Trends by Exponentially Weighted Moving Averages", 1957.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

Values = NDArray[np.float64]
Blocks = NDArray[np.int64]

BLOCKS_OF_ONE_AXIS, BLOCKS_OF_MANY = 8, 16
_VARIANCE_OF_SQUARE = 5.0  # variance of x^2 for Laplace noise of variance 1
_SIGNIFICANT = 3.0  # standard deviations by which blocks must move more than bins
_SLOPE_GAIN = 0.3  # part of a correction that is taken for a change of speed
_FORGET = 0.8  # weight of older successes and failures at each publication
_CLEARLY = 0.9  # the moving track is used if it misses by at most so much of the other


@dataclass(frozen=True)
class Track:
    """The bins as they were at the last publication, and how fast each was moving.

    Attributes:
        level: The estimate.
        slope: Its change in one step; all zeros for bins that stand still.
        variance: What noise leaves as the variance of one bin's level.
        slope_variance: The same for its slope.
        misses: How far publications were from what it predicted, in units of their noise.
    """

    level: Values
    slope: Values
    variance: float
    slope_variance: float = 0.0
    misses: float = 0.0

    def ahead(self, steps: int) -> "Track":
        """Move on by some steps."""
        if not self.slope_variance:
            return self
        return replace(
            self,
            level=self.level + steps * self.slope,
            variance=self.variance + steps**2 * self.slope_variance,
        )


@dataclass(frozen=True)
class Estimate:
    """An estimate of every bin, which may move between publications.

    Attributes:
        number: Step of the last publication.
        still: The bins followed as if they stood still.
        moving: The bins followed as if they moved on; None without smoothing.
        jump: How far the last publication was from the estimate before it, as a variance
            of one bin, beyond what noise explains.
        shift: The same for blocks of bins, in units of one bin: larger than `jump` if
            neighboring bins moved together, as range queries notice.
    """

    number: int
    still: Track
    moving: Track | None = None
    jump: float = 0.0
    shift: float = 0.0

    def at(self, number: int) -> Track:
        """Return the estimate of the bins at a step."""
        moving = self.moving
        if moving is None or moving.misses >= _CLEARLY * self.still.misses:
            return self.still
        return moving.ahead(number - self.number)

    def to_dict(self) -> tuple[dict[str, Any], dict[str, Values]]:
        """Turn the estimate into plain values and arrays, for a file."""
        tracks = {"still": self.still, "moving": self.moving}
        plain: dict[str, Any] = {"number": self.number, "jump": self.jump, "shift": self.shift}
        arrays = {}
        for name, track in tracks.items():
            if track is not None:
                plain[name] = [track.variance, track.slope_variance, track.misses]
                arrays[f"{name}_level"] = track.level
                if track.slope_variance:
                    arrays[f"{name}_slope"] = track.slope
        return plain, arrays

    @classmethod
    def from_dict(cls, plain: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> "Estimate":
        """Read back what `to_dict` wrote."""
        tracks = {}
        for name in ("still", "moving"):
            if name in plain:
                level = np.asarray(arrays[f"{name}_level"], dtype=np.float64)
                slope = arrays.get(f"{name}_slope", np.zeros_like(level))
                tracks[name] = Track(level, np.asarray(slope, dtype=np.float64), *plain[name])
        return cls(plain["number"], **tracks, jump=plain["jump"], shift=plain["shift"])


def make_blocks(shape: tuple[int, ...]) -> Blocks:
    """Number the bins by the block of neighbors in which they lie, a few along each axis."""
    many = max(2, round(BLOCKS_OF_MANY ** (1 / len(shape))))
    wanted = BLOCKS_OF_ONE_AXIS if len(shape) == 1 else many
    numbers = np.zeros(shape, dtype=np.int64)
    for axis, size in enumerate(shape):
        parts = min(size, wanted)
        along = np.arange(size) * parts // size
        numbers = numbers * parts + along.reshape(
            [-1 if a == axis else 1 for a in range(len(shape))]
        )
    return numbers.ravel()


def first_estimate(
    released: NDArray[np.int64], variance: float, number: int, *, smoothing: bool
) -> Estimate:
    """Estimate the bins from a first histogram whose bins have noise of `variance`.

    With smoothing, bins are drawn toward their mean as far as noise explains their variance:
    an even histogram of the right total is better than one of noise alone.
    """
    values = released.astype(np.float64)
    still = np.zeros_like(values)
    if not smoothing:
        return Estimate(number, Track(values, still, variance))
    mean = values.mean()
    dispersion = float(np.square(values - mean).sum() / max(values.size - 1, 1))
    signal = max(0.0, dispersion - variance) if values.size > 1 else np.inf
    gain = 1.0 if signal == np.inf else signal / (signal + variance)
    left = variance * (gain + (1 - gain) / values.size)
    track = Track(mean + gain * (values - mean), still, left)
    return Estimate(number, track, track, jump=dispersion, shift=dispersion)


def update(
    estimate: Estimate,
    released: NDArray[np.int64],
    variance: float,
    number: int,
    *,
    blocks: Blocks,
    smoothing: bool,
) -> Estimate:
    """Weigh a new histogram, with noise of `variance` in each bin, against the estimate."""
    known = estimate.at(number)
    jump, shift = _change(released - known.level, known.variance + variance, blocks)
    if not smoothing or estimate.moving is None:
        track = Track(released.astype(np.float64), estimate.still.slope, variance)
        return Estimate(number, track, jump=jump, shift=shift)
    steps = number - estimate.number
    still = _follow(estimate.still, released, variance, blocks)
    moving = _follow(estimate.moving.ahead(steps), released, variance, blocks)
    gained = moving.level - estimate.moving.ahead(steps).level
    moving = replace(
        moving,
        slope=estimate.moving.slope + _SLOPE_GAIN * gained / steps,
        slope_variance=_slope_variance(estimate.moving, moving.variance, variance, steps),
    )
    return Estimate(number, still, moving, jump, shift)


def _follow(track: Track, released: NDArray[np.int64], variance: float, blocks: Blocks) -> Track:
    """Correct a track's level by a publication, and count by how much it was wrong."""
    difference = released - track.level
    _, shift = _change(difference, track.variance + variance, blocks)
    prior = track.variance + shift
    gain = prior / (prior + variance)
    miss = (float(np.mean(np.square(difference))) + _block_square(difference, blocks)) / 2
    return replace(
        track,
        level=track.level + gain * difference,
        variance=gain * variance,
        misses=_FORGET * track.misses + miss / variance,
    )


def _slope_variance(track: Track, left: float, variance: float, steps: int) -> float:
    """Compute what noise leaves in a slope: less of the old one, and a part of the new noise."""
    gain = left / variance
    kept = (1 - _SLOPE_GAIN * gain) ** 2 * track.slope_variance
    return min(kept + _SLOPE_GAIN**2 * gain * variance / steps**2, variance / steps**2)


def _change(difference: Values, explained: float, blocks: Blocks) -> tuple[float, float]:
    """Compute how far bins, and blocks of them, moved beyond noise; 0 where it is unclear."""
    doubt = explained * (_VARIANCE_OF_SQUARE / difference.size) ** 0.5
    jump = max(0.0, float(np.mean(np.square(difference))) - explained - doubt)
    moved = _block_square(difference, blocks) - explained
    count = int(blocks[-1]) + 1
    return jump, max(jump, moved if moved > _SIGNIFICANT * explained * (2 / count) ** 0.5 else 0.0)


def _block_square(difference: Values, blocks: Blocks) -> float:
    """Compute the mean square of blocks' differences, in units of one bin."""
    return float(np.mean(np.square(np.bincount(blocks, difference)) / np.bincount(blocks)))
