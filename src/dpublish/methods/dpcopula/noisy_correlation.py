"""How columns go together, as published: one noisy integer for every two columns.

What the numbers say about the correlation of normal variables behind the columns follows from
the released marginals and the noisy number of records, so it costs nothing more.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import comb, sqrt
from typing import Any, Literal, NamedTuple, Self

import numpy as np
from scipy.special import ndtri
from scipy.stats import poisson

from dpublish.accuracy.noise_distribution import noise_variance
from dpublish.errors import InvalidParameter, require_count, require_known
from dpublish.mechanisms.exact.lattice import LatticeValues
from dpublish.mechanisms.exact.sampler import require_rate
from dpublish.methods.dpcopula.concordance_bridge import (
    classed_column,
    correlation_of_tau,
    slope_of_tau,
    tau_terms,
)
from dpublish.methods.dpcopula.correlation_repair import Repair, pair_matrix, repair_correlation
from dpublish.methods.dpcopula.score_bridge import (
    SCORE_UNIT,
    latent_correlation,
    latent_slope,
    score_table,
)
from dpublish.privacy.epsilon import format_epsilon, parse_epsilon
from dpublish.types import FloatArray, IntArray

CorrelationMethod = Literal["spearman", "kendall", "mle"]

NORMAL_UNIT = 1 << 10
"""A normal score of 1 as an integer; scores end at 8."""
_NEEDED = {
    "spearman": ("steepness",),
    "kendall": ("classes", "fewest_records", "sample_rate"),
    "mle": ("blocks", "fewest_records"),
}
_EXPONENTS = range(-1000, 901)
_LEAST_KEPT = 1e-3
_FLATTEST = 1e-9


class _Reading(NamedTuple):
    """The latent correlation of each pair, and how far the noise carries it."""

    correlations: FloatArray
    deviations: FloatArray


@dataclass(frozen=True, eq=False)
class NoisyCorrelation:
    """A published statistic of every two columns.

    Attributes:
        method: What was added up: products of ranks, agreement of pairs of records (tau), or
            correlations within blocks of records.
        columns: Columns, in order.
        units: Noisy statistic of the pairs (0, 1), (0, 2), ..., in multiples of 2**exponent.
        exponent: See `units`.
        rate: Rate of the two-sided geometric noise on each unit.
        settings: What else is needed to read the numbers; all of it public: `kept`, the part
            of each column's records that have a place in the order, and as the method needs.
    """

    method: CorrelationMethod
    columns: tuple[str, ...]
    units: IntArray
    exponent: int
    rate: Fraction
    settings: Mapping[str, Any]

    def __post_init__(self) -> None:
        require_known("correlation method", self.method, _NEEDED)
        if len(self.columns) < 2 or len(set(self.columns)) < len(self.columns):
            raise InvalidParameter("a correlation needs two columns or more, each listed once")
        if self.units.dtype != np.int64 or self.units.shape != (comb(len(self.columns), 2),):
            raise InvalidParameter("a correlation needs an integer for every two columns")
        if type(self.exponent) is not int or self.exponent not in _EXPONENTS:
            raise InvalidParameter("the exponent of a correlation must be between -1000 and 900")
        require_rate(self.rate)
        _require_settings(self.method, len(self.columns), self.settings)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, NoisyCorrelation):
            return NotImplemented
        return self.metadata() == other.metadata() and np.array_equal(self.units, other.units)

    __hash__ = None  # type: ignore[assignment]  # it holds an array

    def matrix(
        self, probabilities: Sequence[FloatArray], records: float, repair: Repair = "clip"
    ) -> FloatArray:
        """Estimate the correlation matrix of the normal variables behind the columns.

        Args:
            probabilities: Probabilities of each column's ordinary leaves, as released, adding up to
            1.
            records: Noisy number of records.
            repair: How noise is kept from making it no correlation matrix.
        """
        return repair_correlation(self.latent(probabilities, records), repair)

    def latent(self, probabilities: Sequence[FloatArray], records: float) -> FloatArray:
        """Give the correlations as they are read, which may be no correlation matrix."""
        return pair_matrix(self._read(probabilities, records).correlations, len(self.columns), 1)

    def spread(self, probabilities: Sequence[FloatArray], records: float) -> FloatArray:
        """Give the standard deviation of each latent correlation that is due to the noise.

        It is the noise divided by how steeply the statistic rises with the correlation, at
        the estimate or at 0, wherever it rises less: noise alone can carry an estimate to
        where it seems certain.  It is not cut off at 1.
        """
        deviations = self._read(probabilities, records).deviations
        return pair_matrix(deviations, len(self.columns), 0)

    def metadata(self) -> dict[str, Any]:
        """Give all but the noisy numbers as plain values for a file."""
        return {
            "method": self.method,
            "columns": list(self.columns),
            "exponent": self.exponent,
            "rate": format_epsilon(self.rate),
            "settings": dict(self.settings),
        }

    @classmethod
    def from_metadata(cls, metadata: Mapping[str, Any], units: IntArray) -> Self:
        """Read back what `metadata` gave."""
        return cls(
            method=metadata["method"],
            columns=tuple(metadata["columns"]),
            units=units,
            exponent=metadata["exponent"],
            rate=parse_epsilon(metadata["rate"], "rate"),
            settings=dict(metadata["settings"]),
        )

    def _read(self, probabilities: Sequence[FloatArray], records: float) -> _Reading:
        if len(probabilities) != len(self.columns):
            raise InvalidParameter("there must be probabilities for each column")
        values = LatticeValues(self.units, self.exponent).values
        noise = sqrt(noise_variance(self.rate)) * float(np.ldexp(1.0, self.exponent))
        kept = np.maximum(self.settings["kept"], _LEAST_KEPT)
        first, second = np.triu_indices(len(kept), 1)
        # How many records have both is not published; so many at most, and then a
        # correlation is understated, never made up by values that are missing together.
        shared = np.minimum(kept[first], kept[second])
        if self.method == "kendall":
            return self._read_kendall(values / shared**2, noise / shared**2, probabilities)
        if self.method == "mle":
            return self._read_blocks(values, noise, probabilities, max(records, 1.0))
        scale = max(records, 1.0) * SCORE_UNIT**2 * shared
        tables = [score_table(x, float(self.settings["steepness"])) for x in probabilities]
        return _read_products(values / scale, noise / scale, tables, probabilities)

    def _read_kendall(
        self, taus: FloatArray, noise: FloatArray, probabilities: Sequence[FloatArray]
    ) -> _Reading:
        terms = tau_terms([classed_column(x, self.settings["classes"]) for x in probabilities])
        correlations = correlation_of_tau(taus, terms)
        slopes = np.minimum(
            slope_of_tau(correlations, terms), slope_of_tau(np.zeros_like(taus), terms)
        )
        return _Reading(correlations, noise / np.maximum(slopes, _FLATTEST))

    def _read_blocks(
        self, values: FloatArray, noise: float, probabilities: Sequence[FloatArray], records: float
    ) -> _Reading:
        """Undo what small blocks, ties and records without a place take from correlations."""
        blocks = self.settings["blocks"]
        size = records / blocks
        # Blocks of too few records count as uncorrelated, and small ones fall short a little.
        kept = np.maximum(self.settings["kept"], _LEAST_KEPT)
        first, second = np.triu_indices(len(kept), 1)
        filled = float(poisson.sf(len(self.columns), size))
        varied = np.array(
            [_probability_to_vary(x, k, size) for x, k in zip(probabilities, kept, strict=True)]
        )
        usable = np.maximum(filled * varied[first] * varied[second], _LEAST_KEPT)
        means = np.clip(values / (blocks * usable), -1, 1)
        means = np.clip(means * (1 + (1 - means**2) / (2 * max(size, 2.0))), -1, 1)
        tables = [normal_scores(x, self.settings["fewest_records"]) for x in probabilities]
        center = np.array([x @ t for x, t in zip(probabilities, tables, strict=True)]) / NORMAL_UNIT
        square = np.array([x @ t**2 for x, t in zip(probabilities, tables, strict=True)])
        deviation = np.sqrt(kept * square / NORMAL_UNIT**2 - (kept * center) ** 2)
        scale = deviation[first] * deviation[second] / np.minimum(kept[first], kept[second])
        products = means * scale + center[first] * center[second]
        wide = [table * (SCORE_UNIT // NORMAL_UNIT) for table in tables]
        return _read_products(products, noise * scale / (blocks * usable), wide, probabilities)


def _probability_to_vary(probabilities: FloatArray, kept: float, size: float) -> float:
    """Find how likely a column is to take more than one value in a block of so many records."""
    each = np.append(kept * probabilities, 1 - kept)
    return 1 - float(np.sum(each ** max(size, 1.0)))


def normal_scores(probabilities: FloatArray, records: int) -> IntArray:
    """Score each cell by the normal quantile of its middle rank, in units of `NORMAL_UNIT`.

    Ranks are kept away from 0 and 1 by half a record, so that no score is far out.

    >>> normal_scores(np.array([0.25, 0.5, 0.25]), 1000).tolist()
    [-1178, 0, 1178]
    """
    marginal = 1 / (2 * max(records, 1))
    middle = np.clip(np.cumsum(probabilities) - probabilities / 2, marginal, 1 - marginal)
    scores = np.clip(ndtri(middle), -8, 8)
    return np.asarray(np.rint(scores * NORMAL_UNIT).astype(np.int64))


def _read_products(
    products: FloatArray,
    noise: FloatArray,
    tables: Sequence[IntArray],
    probabilities: Sequence[FloatArray],
) -> _Reading:
    correlations = latent_correlation(products, tables, probabilities)
    slopes = np.minimum(
        latent_slope(correlations, tables, probabilities),
        latent_slope(np.zeros_like(products), tables, probabilities),
    )
    return _Reading(correlations, noise / np.maximum(slopes, _FLATTEST))


def _require_settings(method: str, columns: int, settings: Mapping[str, Any]) -> None:
    for name in ("kept", *_NEEDED[method]):
        if name not in settings:
            raise InvalidParameter(f"a correlation by {method} needs the setting {name!r}")
    kept = settings["kept"]
    if not isinstance(kept, list) or len(kept) != columns or not all(map(_is_part, kept)):
        raise InvalidParameter("a correlation needs a part between 0 and 1 for each column")
    for name in {"classes", "blocks", "fewest_records"} & settings.keys():
        require_count(**{name: settings[name]})
    if method == "spearman" and not _is_steepness(settings["steepness"]):
        raise InvalidParameter("the steepness of scores must be a number greater than 0")


def _is_part(value: object) -> bool:
    return isinstance(value, (int, float)) and 0 <= value <= 1


def _is_steepness(text: object) -> bool:
    try:
        return isinstance(text, str) and float(text) > 0
    except ValueError:
        return False
