"""Published correlations: one noisy integer for every two columns, and the matrix it implies.

The correlation of the normal variables behind two columns follows from the published statistic,
the released marginals and the noisy number of records, so it costs nothing more.  Noise can make
a matrix that is no correlation matrix: `repair_correlation` finds one near it, after N. J.
Higham, "Computing the nearest correlation matrix: a problem from finance", IMA J. Numer. Anal.
22(3), 2002 (alternating projections); `shrink` moves correlations toward 0 by their noise.
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
from dpublish.core.released import is_same
from dpublish.errors import InvalidParameter, require_count, require_known
from dpublish.mechanisms.exact.lattice import LatticeValues
from dpublish.mechanisms.exact.sampler import require_rate
from dpublish.methods.dpcopula.latent_correlation import (
    SCORE_UNIT,
    classed_column,
    correlation_of_terms,
    pair_terms,
    score_table,
    slope_of_terms,
    tau_terms,
)
from dpublish.privacy.epsilon import format_epsilon, parse_epsilon
from dpublish.types import FloatArray, IntArray

CorrelationMethod = Literal["spearman", "kendall", "mle"]
Repair = Literal["clip", "nearest", "shrink"]

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
SMALLEST_EIGENVALUE = 1e-6
_ROUNDS = 100
_TOLERANCE = 1e-8


class _Reading(NamedTuple):
    """The latent correlation of each pair, and its standard deviation due to the noise."""

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
        settings: What else is needed to read the numbers, all public: `kept`, the part of each
            column's records that are in its order, and what the method needs.
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
        return is_same(self, other)

    __hash__ = None  # type: ignore[assignment]  # it holds an array

    def matrix(
        self, probabilities: Sequence[FloatArray], records: float, repair: Repair = "clip"
    ) -> FloatArray:
        """Estimate the correlation matrix of the normal variables behind the columns.

        Args:
            probabilities: Probabilities of each column's listed values, as released, adding up
                to 1.
            records: Noisy number of records.
            repair: How noise is kept from making it no correlation matrix.
        """
        return repair_correlation(self.latent(probabilities, records), repair)

    def latent(self, probabilities: Sequence[FloatArray], records: float) -> FloatArray:
        """Return the correlations that the statistics imply, which may be no correlation matrix."""
        return pair_matrix(self._read(probabilities, records).correlations, len(self.columns), 1)

    def deviations(self, probabilities: Sequence[FloatArray], records: float) -> FloatArray:
        """Return the standard deviation of each latent correlation that is due to the noise.

        It is the noise divided by the slope of the statistic in the correlation, at the
        estimate or at 0, whichever is smaller: noise alone can move an estimate to where the
        slope is large.  It is not cut off at 1.
        """
        deviations = self._read(probabilities, records).deviations
        return pair_matrix(deviations, len(self.columns), 0)

    def metadata(self) -> dict[str, Any]:
        """Return all but the noisy numbers as plain values for a file."""
        return {
            "method": self.method,
            "columns": list(self.columns),
            "exponent": self.exponent,
            "rate": format_epsilon(self.rate),
            "settings": dict(self.settings),
        }

    @classmethod
    def from_metadata(cls, metadata: Mapping[str, Any], units: IntArray) -> Self:
        """Read back what `metadata` returned."""
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
        # How many records have both is not published.  With the most that is possible, a
        # correlation is understated, never caused by values that are missing together.
        shared = np.minimum(kept[first], kept[second])
        if self.method == "kendall":
            terms = tau_terms([classed_column(x, self.settings["classes"]) for x in probabilities])
            return _read_terms(values / shared**2, noise / shared**2, terms)
        if self.method == "mle":
            return self._read_blocks(values, noise, probabilities, max(records, 1.0))
        scale = max(records, 1.0) * SCORE_UNIT**2 * shared
        tables = [score_table(x, float(self.settings["steepness"])) for x in probabilities]
        return _read_terms(values / scale, noise / scale, pair_terms(tables, probabilities))

    def _read_blocks(
        self, values: FloatArray, noise: float, probabilities: Sequence[FloatArray], records: float
    ) -> _Reading:
        """Undo what small blocks, ties and records outside the order take from correlations."""
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
        terms = pair_terms(wide, probabilities)
        return _read_terms(products, noise * scale / (blocks * usable), terms)


def _probability_to_vary(probabilities: FloatArray, kept: float, size: float) -> float:
    """Find the probability that a column has more than one value in a block of `size` records."""
    each = np.append(kept * probabilities, 1 - kept)
    return 1 - float(np.sum(each ** max(size, 1.0)))


def normal_scores(probabilities: FloatArray, records: int) -> IntArray:
    """Score each cell by the normal quantile of its middle rank, in units of `NORMAL_UNIT`.

    Ranks are kept away from 0 and 1 by half a record, so that no score is far out.

    >>> normal_scores(np.array([0.25, 0.5, 0.25]), 1000).tolist()
    [-1178, 0, 1178]
    """
    least = 1 / (2 * max(records, 1))
    middle = np.clip(np.cumsum(probabilities) - probabilities / 2, least, 1 - least)
    scores = np.clip(ndtri(middle), -8, 8)
    return np.asarray(np.rint(scores * NORMAL_UNIT).astype(np.int64))


def _read_terms(values: FloatArray, noise: FloatArray, terms: FloatArray) -> _Reading:
    correlations = correlation_of_terms(values, terms)
    slopes = np.minimum(
        slope_of_terms(correlations, terms), slope_of_terms(np.zeros_like(values), terms)
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


# --- Matrices of correlations ---------------------------------------------------------------------


def repair_correlation(matrix: FloatArray, repair: Repair = "clip") -> FloatArray:
    """Find a correlation matrix near a symmetric matrix; a correlation matrix is only cleaned.

    Args:
        matrix: Symmetric; the diagonal is taken as 1 and the rest is moved into -1..1.
        repair: `clip` raises eigenvalues that are too small; `nearest` first looks for the
            nearest correlation matrix; `shrink` mixes with uncorrelated columns.

    >>> crooked = np.array([[1, 0.9, 0.9], [0.9, 1, -0.9], [0.9, -0.9, 1]])
    >>> np.linalg.eigvalsh(crooked).round(1).tolist()
    [-0.8, 1.9, 1.9]
    >>> repair_correlation(crooked).round(2).tolist()
    [[1.0, 0.5, 0.5], [0.5, 1.0, -0.5], [0.5, -0.5, 1.0]]
    """
    require_known("repair", repair, ("clip", "nearest", "shrink"))
    cleaned = _with_unit_diagonal(np.clip((matrix + matrix.T) / 2, -1, 1))
    smallest = float(np.linalg.eigvalsh(cleaned)[0])
    if smallest >= SMALLEST_EIGENVALUE:
        return cleaned
    if repair == "shrink":
        part = (SMALLEST_EIGENVALUE - smallest) / (1 - smallest)
        return _with_unit_diagonal((1 - part) * cleaned)
    return _raise_eigenvalues(_nearest(cleaned) if repair == "nearest" else cleaned)


def pair_matrix(values: FloatArray, columns: int, diagonal: float) -> FloatArray:
    """Lay out values of the pairs (0, 1), (0, 2), ... as a symmetric matrix."""
    matrix = np.full((columns, columns), diagonal, dtype=np.float64)
    first, second = np.triu_indices(columns, 1)
    matrix[first, second] = matrix[second, first] = values
    return matrix


def _raise_eigenvalues(matrix: FloatArray) -> FloatArray:
    """Raise the small eigenvalues, then rescale to a unit diagonal."""
    values, vectors = np.linalg.eigh(matrix)
    raised = (vectors * np.maximum(values, SMALLEST_EIGENVALUE)) @ vectors.T
    scale = np.sqrt(np.diag(raised))
    return _with_unit_diagonal(np.clip(raised / np.outer(scale, scale), -1, 1))


def _nearest(matrix: FloatArray) -> FloatArray:
    """Project in turn onto matrices without negative eigenvalues and with a unit diagonal."""
    found, correction = matrix, np.zeros_like(matrix)
    for _ in range(_ROUNDS):
        shifted = found - correction
        values, vectors = np.linalg.eigh(shifted)
        projected = (vectors * np.maximum(values, 0)) @ vectors.T
        correction = projected - shifted
        before, found = found, _with_unit_diagonal(projected)
        if float(np.abs(found - before).max()) < _TOLERANCE:
            break
    return found


def _with_unit_diagonal(matrix: FloatArray) -> FloatArray:
    fixed = (matrix + matrix.T) / 2
    np.fill_diagonal(fixed, 1)
    return fixed


def shrink(matrix: FloatArray, deviations: FloatArray) -> FloatArray:
    """Shrink each correlation by how uncertain it is.

    A correlation r with standard deviation s becomes r max(0, 1 - s²/r²): one that noise alone
    may have caused becomes 0, and a clear one stays.

    Known as: positive-part James-Stein, one number at a time.

    >>> noisy = np.array([[1, 0.5, 0.1], [0.5, 1, -0.2], [0.1, -0.2, 1]])
    >>> shrink(noisy, 0.1 - 0.1 * np.eye(3)).round(3).tolist()
    [[1.0, 0.48, 0.0], [0.48, 1.0, -0.15], [0.0, -0.15, 1.0]]
    """
    squares = matrix * matrix
    kept = np.maximum(squares - deviations * deviations, 0)
    return matrix * np.divide(kept, squares, out=np.zeros_like(matrix), where=squares > 0)
