"""How far noise will carry correlations, predicted from public facts alone."""

from fractions import Fraction
from math import comb, pi, sqrt

import numpy as np

from dpublish.mechanisms.exact.lattice import choose_exponent, lattice_sensitivity
from dpublish.mechanisms.exact.sampler import require_rate
from dpublish.methods.dpcopula.kernel_block_moments import correlation_sensitivity
from dpublish.methods.dpcopula.kernel_concordance import tau_sensitivity
from dpublish.methods.dpcopula.mle import count_blocks
from dpublish.methods.dpcopula.noisy_correlation import CorrelationMethod
from dpublish.methods.dpcopula.score_bridge import (
    SCORE_UNIT,
    best_steepness,
    latent_slope,
    score_table,
)

_LEAVES = 256


def expected_spread(
    method: CorrelationMethod, columns: int, records: int, epsilon: Fraction
) -> float:
    """Predict how far the published correlation of two unrelated columns strays from 0.

    It is the standard deviation, due to noise and to probability in who was recorded, for columns
    with many values and for a whole table, not a sample.  An epsilon is refused if it is so
    small that its noise would not fit.

    >>> for method in ("spearman", "kendall", "mle"):
    ...     print(method, round(expected_spread(method, 8, 50_000, Fraction(1, 9)), 4))
    spearman 0.013
    kendall 0.026
    mle 0.1956
    """
    records = max(records, columns)
    if method == "mle":
        require_rate(epsilon / correlation_sensitivity(columns))
        noise = Fraction(columns**2, 2 * count_blocks(columns, records, records))
        return _join(float(noise / epsilon), 1.0, 1.0, records)
    _require_noise(columns, epsilon)
    if method == "kendall":
        noise = tau_sensitivity(columns, records)
        return _join(float(noise / epsilon), 2 / pi, 2 / 3, records)
    steepness = best_steepness(float(records), float(epsilon), columns)
    probabilities = np.full(_LEAVES, 1 / _LEAVES)
    table = score_table(probabilities, steepness)
    slope = float(latent_slope(np.zeros(1), [table] * 2, [probabilities] * 2)[0])
    square = float(np.mean((table / SCORE_UNIT) ** 2))
    return _join(comb(columns, 2) / float(epsilon) / records, slope, square, records)


def _join(noise: float, slope: float, deviation: float, records: int) -> float:
    """Join the scale of the noise and the deviation that each record brings."""
    return sqrt(2 * noise**2 + deviation**2 / records) / slope


def _require_noise(columns: int, epsilon: Fraction) -> None:
    """Refuse an epsilon that would need wider noise than fits, on any lattice that is chosen."""
    pairs = comb(columns, 2)
    # The lattice may be up to twice finer than for a sensitivity that is a power of two.
    exponent = choose_exponent(Fraction(1), epsilon, pairs) - 1
    require_rate(epsilon / lattice_sensitivity(Fraction(1), exponent, pairs))
