"""Random Fourier features: waves over a record's features, so that a linear model may bend.

A wave has a random direction and length; its cosine and sine at a record are two features.  A
linear model of many of them behaves as a kernel machine with a Gaussian kernel.  Directions are
drawn without looking at the rows, and published with the model.

Everything here is in integers: an angle is a sum of integers, which floats hold exactly, and its
cosine is looked up in a table whose entries are rounded towards 0.  So the features of a record
depend on nothing but the record, and their norm is bounded exactly.

Known as: random kitchen sinks, random Fourier features.
Reference: A. Rahimi, B. Recht, "Random Features for Large-Scale Kernel Machines", NIPS 2007.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache, cached_property
from math import inf, nextafter, pi, sqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpublish.data.column import Column
from dpublish.data.features import FEATURE_UNIT, INTERCEPT, MAX_FEATURES, Features
from dpublish.errors import InvalidParameter
from dpublish.types import FloatArray, IntArray

FREQUENCY_UNIT = 1 << 20
"""A frequency of one turn for each unit of a feature, as an integer."""

LARGEST_FREQUENCY = 1 << 30
"""Frequencies are at most this, so that floats hold the sums of all products."""

AMPLITUDE = FEATURE_UNIT // 4
"""A wave's height; the intercept is four times as high, so that many waves leave it a share."""

_TABLE_BITS = 12
_STEPS = 1 << _TABLE_BITS  # angles that are told apart
_STEP = FEATURE_UNIT * FREQUENCY_UNIT // _STEPS


@dataclass(frozen=True, eq=False)
class FourierFeatures:
    """Cosine and sine of some waves over the features of a record, and the intercept.

    Attributes:
        base: The features that the waves run over.
        frequencies: A row for each wave, a column for each feature, in units of
            1 / `FREQUENCY_UNIT` turns.

    >>> from dpublish.data.schema import column
    >>> base = Features((column("age", "integer", bounds=[0, 4]),))
    >>> waves = FourierFeatures(base, np.array([[FREQUENCY_UNIT // 4, 0]]))
    >>> waves.matrix({"age": np.array([0, 2, 4])}).astype(int)  # a quarter turn back, or on
    array([[   0, -255, 1024],
           [ 255,    0, 1024],
           [   0,  255, 1024]])
    """

    base: Features
    frequencies: IntArray = field(repr=False)

    def __post_init__(self) -> None:
        shape = self.frequencies.shape
        if self.frequencies.dtype != np.int64 or len(shape) != 2 or shape[1] != self.base.size:
            raise InvalidParameter("frequencies are integers: a row a wave, a column a feature")
        if not shape[0] or self.size > MAX_FEATURES:
            raise InvalidParameter(f"there must be 1 to {(MAX_FEATURES - 1) // 2:,} waves")
        if np.abs(self.frequencies).max() > LARGEST_FREQUENCY:
            raise InvalidParameter("frequencies are too large for exact angles")

    @property
    def predictors(self) -> tuple[Column, ...]:
        """The columns."""
        return self.base.predictors

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of the predictors."""
        return self.base.columns

    @property
    def size(self) -> int:
        """Number of features (p)."""
        return 2 * len(self.frequencies) + 1

    @cached_property
    def names(self) -> tuple[str, ...]:
        """Names of the features."""
        numbers = range(1, len(self.frequencies) + 1)
        return (*(f"cos {i}" for i in numbers), *(f"sin {i}" for i in numbers), INTERCEPT)

    @property
    def norms(self) -> float:
        """Bound of the L2 norm of a record's features: a wave adds at most 1/16 to its square."""
        part = AMPLITUDE / FEATURE_UNIT
        return nextafter(sqrt(len(self.frequencies) * part**2 + 1), inf)

    def matrix(self, codes: Mapping[str, NDArray[Any]]) -> FloatArray:
        """Compute the features of records, in whole units, a row each."""
        # All products and partial sums are integers below 2^10 * 2^30 * 2^11: floats hold them
        # exactly, in whatever order they are added.
        angles = self.base.matrix(codes) @ self._directions
        steps = np.floor(angles / _STEP).astype(np.int64)
        waves, quarter = len(self.frequencies), _STEPS // 4
        found = np.empty((len(steps), self.size))
        found[:, :waves] = cosine_table()[steps % _STEPS]
        found[:, waves:-1] = cosine_table()[(steps - quarter) % _STEPS]
        found[:, -1] = FEATURE_UNIT
        return found

    def sums(self, codes: Mapping[str, NDArray[Any]], weights: FloatArray) -> FloatArray:
        """Weigh the features of records and add them up, in a fixed order."""
        matrix = self.matrix(codes)
        found = np.full(len(matrix), weights[-1])
        for column, weight in zip(matrix.T[:-1], weights[:-1] / FEATURE_UNIT, strict=True):
            found += column * weight
        return found

    def largest_sum(self, weights: NDArray[Any]) -> FloatArray:
        """Bound |sum of feature * weight|: cosine and sine lie in a circle."""
        waves = len(self.frequencies)
        lengths = np.hypot(weights[..., :waves], weights[..., waves:-1]).sum(axis=-1)
        return np.asarray(lengths * (AMPLITUDE / FEATURE_UNIT) + np.abs(weights[..., -1]))

    @cached_property
    def _directions(self) -> FloatArray:
        return np.ascontiguousarray(self.frequencies.T, dtype=np.float64)


@cache
def cosine_table() -> FloatArray:
    """Tabulate `AMPLITUDE` times the cosine in the middle of each step, rounded towards 0."""
    middles = (np.arange(_STEPS) + 0.5) * (2 * pi / _STEPS)
    table = np.trunc(AMPLITUDE * np.cos(middles)) + 0.0
    table.flags.writeable = False
    return np.asarray(table)


def draw_frequencies(
    waves: int, size: int, bandwidth: float, generator: np.random.Generator
) -> IntArray:
    """Draw waves of a Gaussian kernel exp(-distance^2 / (2 bandwidth^2)); no record is needed.

    The intercept, which never changes, turns by a random part of a turn.
    """
    turns = generator.standard_normal((waves, size)) / (2 * pi * bandwidth)
    turns[:, -1] = generator.uniform(0, 1, waves)
    units = np.rint(turns * FREQUENCY_UNIT)
    return np.clip(units, -LARGEST_FREQUENCY, LARGEST_FREQUENCY).astype(np.int64)
