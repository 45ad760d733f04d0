"""The estimate of the bins: published histograms, weighed against each other over time.

A fresh histogram is noisy, and so was the one before it.  If the counts have hardly moved, the
two are measurements of the same thing and their average is better than either; if they have
moved far, the old one is worthless.  How far they moved shows in the difference itself: noise
explains a known part of it, the rest is change.  This is a Kalman filter whose process noise is
estimated at each update (James and Stein's idea).

Range queries add up many bins, and small errors of the same sign with them.  So the filter works
on Haar wavelets of the histogram, with a gain for each scale: where change is seen in large
blocks and drowns in noise in single bins, blocks follow at once and bins slowly.  A coefficient
that stands out from the noise of its scale follows by itself (Donoho and Johnstone's idea).

Counts that drift keep drifting for a while.  So the bins are followed in two ways, as if they
stood still and as if they moved on, and the way that has predicted publications clearly better
is used.  All of it uses published numbers only and costs nothing.

Reference: R. E. Kalman, "A New Approach to Linear Filtering and Prediction Problems", 1960;
W. James, C. Stein, "Estimation with Quadratic Loss", 1961; C. C. Holt, "Forecasting Seasonals and
Trends by Exponentially Weighted Moving Averages", 1957; D. L. Donoho, I. M. Johnstone, "Ideal
Spatial Adaptation by Wavelet Shrinkage", 1994.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

Values = NDArray[np.float64]

_VARIANCE_OF_SQUARE = 5.0  # variance of x^2 for Laplace noise of variance 1
_DOUBT = 1.0  # standard deviations of a mean square that are not taken for change
_TAIL = 2.0  # Laplace noise has longer tails than normal noise
_OUTSTANDING = 7.0  # a coefficient whose square is so many times its variance has changed
_SLOPE_GAIN = 0.3  # part of a correction that is taken for a change of speed
_FORGET = 0.8  # weight of older successes and failures at each publication
_CLEARLY = 0.9  # the moving track is used if it misses by at most so much of the other
RANGE_BLOCKS = 16  # range queries are judged by blocks, of which there are at least so many
_LEAST_BLOCKS = 8  # fewer blocks say too little about how far they move
_SIGNIFICANT = 3.0  # standard deviations by which blocks must move more than bins


class Scales:
    """Haar wavelets of the bins: each is a difference of two neighboring blocks, small or large.

    The transform is orthonormal, along one axis after the other, so noise that is independent
    in all bins is independent in all coefficients, with the same variance.  Coefficients whose
    wavelets cover about as many bins, in powers of two, make up a scale.

    Attributes:
        shape: Number of bins along each axis.
        scale: Number of the scale of each coefficient, the finest first.
        degrees: How many coefficients each scale has.
        kurtosis: Excess kurtosis of Laplace noise in each scale: sums of many bins are normal.
    """

    def __init__(self, shape: tuple[int, ...]) -> None:
        self.shape = shape
        self._weights = [_pair_weights(size) for size in shape]
        supports = np.ones(1)
        for size, weights in zip(shape, self._weights, strict=True):
            supports = np.multiply.outer(supports, _supports(size, weights)).ravel()
        powers = np.rint(np.log2(supports)).astype(np.int64)
        found, self.scale = np.unique(powers, return_inverse=True)
        self.kurtosis = 3 / 2.0**found
        self.degrees = np.bincount(self.scale)
        self.pooled_degrees = np.cumsum(self.degrees[::-1])[::-1]
        wide = np.flatnonzero(self.pooled_degrees >= RANGE_BLOCKS)
        self.ranges = int(wide[-1]) if wide.size else 0

    def transform(self, values: NDArray[Any]) -> Values:
        """Compute the coefficients of all wavelets."""
        found = np.asarray(values, dtype=np.float64).reshape(self.shape)
        for axis, weights in enumerate(self._weights):
            found = np.moveaxis(_analyze(np.moveaxis(found, axis, 0), weights), 0, axis)
        return found.ravel()

    def invert(self, coefficients: Values) -> Values:
        """Compute the bins from the coefficients."""
        found = coefficients.reshape(self.shape)
        for axis, weights in enumerate(self._weights):
            found = np.moveaxis(_synthesize(np.moveaxis(found, axis, 0), weights), 0, axis)
        return found.ravel()

    def squares(self, coefficients: Values) -> Values:
        """Compute the mean square of the coefficients of each scale."""
        return np.bincount(self.scale, np.square(coefficients)) / self.degrees

    def mean(self, by_scale: Values) -> float:
        """Average variances of the scales into that of a bin."""
        return float(np.sum(self.degrees * by_scale) / self.degrees.sum())

    def pooled(self, by_scale: Values) -> Values:
        """Average variances over each scale and all that are coarser."""
        sums = np.cumsum((self.degrees * by_scale)[::-1])[::-1]
        return np.asarray(sums / self.pooled_degrees)


PairWeights = list[tuple[Values, Values]]


def _pair_weights(size: int) -> PairWeights:
    """For each halving of an axis, find the weights of the two blocks of every pair."""
    sizes, found = np.ones(size), []
    while sizes.size > 1:
        last = sizes.size // 2 * 2
        first, second = sizes[0:last:2], sizes[1:last:2]
        found.append((np.sqrt(first / (first + second)), np.sqrt(second / (first + second))))
        sizes = np.append(first + second, sizes[last:])
    return found


def _supports(size: int, weights: PairWeights) -> Values:
    """Count the bins of each wavelet along one axis, in the order of `_analyze`."""
    sizes, details = np.ones(size), []
    for _ in weights:
        last = sizes.size // 2 * 2
        details.append(sizes[0:last:2] + sizes[1:last:2])
        sizes = np.append(details[-1], sizes[last:])
    return np.concatenate([sizes, *reversed(details)])


def _analyze(values: Values, weights: PairWeights) -> Values:
    """Transform along the first axis: the mean of all, then details, the coarsest first."""
    details = []
    for first, second in weights:
        last = 2 * first.size
        left, right = _column(first, values), _column(second, values)
        one, other = values[0:last:2], values[1:last:2]
        details.append(right * one - left * other)
        values = np.concatenate([left * one + right * other, values[last:]])
    return np.concatenate([values, *reversed(details)])


def _synthesize(coefficients: Values, weights: PairWeights) -> Values:
    """Undo `_analyze`."""
    values, begin = coefficients[:1], 1
    for first, second in reversed(weights):
        pairs = first.size
        detail = coefficients[begin : begin + pairs]
        begin += pairs
        left, right = _column(first, values), _column(second, values)
        means = values[:pairs]
        found = np.empty((values.shape[0] + pairs, *values.shape[1:]))
        found[0 : 2 * pairs : 2] = left * means + right * detail
        found[1 : 2 * pairs : 2] = right * means - left * detail
        found[2 * pairs :] = values[pairs:]
        values = found
    return values


def _column(weights: Values, values: Values) -> Values:
    return weights.reshape(-1, *([1] * (values.ndim - 1)))


@dataclass(frozen=True)
class Track:
    """The bins as they were at the last publication, and how fast each was moving.

    Attributes:
        level: The estimate.
        slope: Its change in one step; all zeros for bins that stand still.
        variance: What noise leaves as the variance of the level's details, for each scale.
        slope_variance: The same for its slope; all zeros for bins that stand still.
        misses: How far publications were from what it predicted, in units of their noise.
        error: Mean squared error of a bin at the last publication, by Stein's estimate: it
            counts what was taken for noise and is not, too.
    """

    level: Values
    slope: Values
    variance: Values
    slope_variance: Values
    misses: float = 0.0
    error: float = 0.0

    @property
    def moves(self) -> bool:
        """Whether the bins have a speed."""
        return bool(self.slope_variance.any())

    def ahead(self, steps: int) -> "Track":
        """Move on by some steps."""
        if not self.moves:
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
        plain: dict[str, Any] = {name: getattr(self, name) for name in ("number", "jump", "shift")}
        arrays = {}
        for name, track in tracks.items():
            if track is not None:
                plain[name] = [
                    track.variance.tolist(),
                    track.slope_variance.tolist(),
                    track.misses,
                    track.error,
                ]
                arrays[f"{name}_level"] = track.level
                if track.moves:
                    arrays[f"{name}_slope"] = track.slope
        return plain, arrays

    @classmethod
    def from_dict(cls, plain: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> "Estimate":
        """Read back what `to_dict` wrote."""
        tracks = {}
        for name in ("still", "moving"):
            if name in plain:
                variance, slope_variance, misses, error = plain[name]
                level = np.asarray(arrays[f"{name}_level"], dtype=np.float64)
                slope = arrays.get(f"{name}_slope", np.zeros_like(level))
                tracks[name] = Track(
                    level,
                    np.asarray(slope, dtype=np.float64),
                    np.array(variance, dtype=np.float64),
                    np.array(slope_variance, dtype=np.float64),
                    misses,
                    error,
                )
        return cls(plain["number"], **tracks, jump=plain["jump"], shift=plain["shift"])


def first_estimate(
    released: NDArray[np.int64], variance: float, number: int, *, scales: Scales, smoothing: bool
) -> Estimate:
    """Estimate the bins from a first histogram whose bins have noise of `variance`.

    With smoothing, the wavelets of each scale are reduced as far as noise explains them: an
    even histogram of the right total is better than one of noise alone.
    """
    values = released.astype(np.float64)
    still, none = np.zeros_like(values), np.zeros(scales.degrees.size)
    noise = np.full(scales.degrees.size, variance)
    if not smoothing:
        return Estimate(number, Track(values, still, noise, none, error=variance))
    coefficients = scales.transform(values)
    kept, gains = _shrink(coefficients, np.zeros(noise.size), noise, scales)
    kept[0] = coefficients[0]  # the mean of all bins
    # What was too faint to be seen may be there all the same.
    doubt = noise * np.sqrt((2 + scales.kurtosis) / scales.degrees)
    faint = np.maximum(scales.squares(coefficients) - noise, 0.0) + doubt
    level, left = scales.invert(kept), noise * faint / (faint + noise)
    error = _stein_error(values - level, gains, variance, scales)
    track = Track(level, still, left, none, error=error)
    return Estimate(number, track, track)


def update(
    estimate: Estimate,
    released: NDArray[np.int64],
    variance: float,
    number: int,
    *,
    scales: Scales,
    smoothing: bool,
) -> Estimate:
    """Weigh a new histogram, with noise of `variance` in each bin, against the estimate."""
    known = estimate.at(number)
    jump, shift = _change(released - known.level, known.variance + variance, scales)
    if not smoothing or estimate.moving is None:
        track = replace(
            estimate.still,
            level=released.astype(np.float64),
            variance=np.full(scales.degrees.size, variance),
            error=variance,
        )
        return Estimate(number, track, jump=jump, shift=shift)
    steps = number - estimate.number
    still = _follow(estimate.still, released, variance, scales)
    moving = _follow(estimate.moving.ahead(steps), released, variance, scales)
    gained = moving.level - estimate.moving.ahead(steps).level
    moving = replace(
        moving,
        slope=estimate.moving.slope + _SLOPE_GAIN * gained / steps,
        slope_variance=_slope_variance(estimate.moving, moving.variance, variance, steps),
    )
    return Estimate(number, still, moving, jump, shift)


def _follow(track: Track, released: NDArray[np.int64], variance: float, scales: Scales) -> Track:
    """Correct a track's level by a publication, and count by how much it was wrong."""
    missed = scales.transform(released - track.level)
    noise = np.full(scales.degrees.size, variance)
    correction, gains = _shrink(missed, track.variance, noise, scales)
    squares = scales.squares(missed)
    miss = (scales.mean(squares) + float(scales.pooled(squares)[scales.ranges])) / 2
    level = track.level + scales.invert(correction)
    return replace(
        track,
        level=level,
        variance=gains * noise,
        misses=_FORGET * track.misses + miss / variance,
        error=_stein_error(released - level, gains, variance, scales),
    )


def _stein_error(left: Values, gains: Values, variance: float, scales: Scales) -> float:
    """Estimate the mean squared error of an estimate from what it left of a publication.

    Reference: C. Stein, "Estimation of the Mean of a Multivariate Normal Distribution", 1981.
    """
    found = float(np.mean(np.square(left))) + (2 * scales.mean(gains) - 1) * variance
    return max(found, scales.mean(gains) * variance)


def _shrink(missed: Values, known: Values, noise: Values, scales: Scales) -> tuple[Values, Values]:
    """Take as much of what a publication says as noise does not explain.

    Single coefficients that stand out have changed, whatever the others did; the rest of a scale
    has one gain.

    Args:
        missed: Coefficients of the publication beyond those of the estimate.
        known: Variance of the estimate's coefficients, for each scale.
        noise: The same for the publication.
        scales: The wavelets.

    Returns:
        The correction of each coefficient, and the mean gain of each scale.
    """
    squares, explained = np.square(missed), known + noise
    limit = explained * np.maximum(
        _OUTSTANDING, 2 * np.log(scales.degrees) * (1 + _TAIL * scales.kurtosis)
    )
    stands_out = squares > limit[scales.scale]
    others = np.maximum(np.bincount(scales.scale, ~stands_out), 1)
    seen = np.bincount(scales.scale, np.where(stands_out, 0.0, squares)) / others
    doubt = explained * np.sqrt((2 + scales.kurtosis) / others)
    change = np.maximum(seen - explained - _DOUBT * doubt, 0.0)
    change = np.maximum.accumulate(change)  # where a scale has changed, so have the coarser ones
    each = np.where(stands_out, squares - explained[scales.scale], change[scales.scale])
    prior = known[scales.scale] + each
    gains = prior / (prior + noise[scales.scale])
    return gains * missed, np.bincount(scales.scale, gains) / scales.degrees


def _slope_variance(track: Track, left: Values, variance: float, steps: int) -> Values:
    """Compute what noise leaves in a slope: less of the old one, and a part of the new noise."""
    gain = left / variance
    kept = (1 - _SLOPE_GAIN * gain) ** 2 * track.slope_variance
    new = kept + _SLOPE_GAIN**2 * gain * variance / steps**2
    return np.asarray(np.minimum(new, variance / steps**2))


def _change(difference: Values, explained: Values, scales: Scales) -> tuple[float, float]:
    """Compute how far bins, and blocks of them, moved beyond noise; 0 where it is unclear."""
    squares = scales.squares(scales.transform(difference))
    doubt = scales.mean(explained) * (_VARIANCE_OF_SQUARE / difference.size) ** 0.5
    jump = max(0.0, scales.mean(squares - explained) - doubt)
    noise = scales.pooled(explained)
    moved = scales.pooled(squares) - noise
    doubts = noise * np.sqrt(2 / scales.pooled_degrees)
    is_clear = (moved > _SIGNIFICANT * doubts) & (scales.pooled_degrees >= _LEAST_BLOCKS)
    return jump, max(jump, float(moved[is_clear].max(initial=0.0)))
