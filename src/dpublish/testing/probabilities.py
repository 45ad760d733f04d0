"""Compare what a mechanism does with what its proof says."""

from collections import Counter
from collections.abc import Hashable, Iterable, Mapping
from math import inf, log

from scipy.stats import chisquare


def privacy_loss(here: Mapping[Hashable, float], there: Mapping[Hashable, float]) -> float:
    """Find the largest log ratio of an outcome's probability on two neighboring datasets.

    >>> round(privacy_loss({"a": 0.5, "b": 0.5}, {"a": 0.25, "b": 0.75}), 3)
    0.693
    """
    loss = 0.0
    for outcome in here.keys() | there.keys():
        first, second = here.get(outcome, 0.0), there.get(outcome, 0.0)
        if first == second:
            continue
        if min(first, second) == 0:
            return inf  # an outcome that only one of them can produce gives it away
        loss = max(loss, abs(log(first / second)))
    return loss


def frequency_p_value(
    samples: Iterable[Hashable], expected: Mapping[Hashable, float], *, min_expected: float = 5
) -> float:
    """Test by chi-squared whether `samples` were drawn from the `expected` distribution.

    Outcomes expected fewer than `min_expected` times are pooled; an outcome that should be
    impossible gives 0.

    Raises:
        ValueError: All outcomes would be pooled into one, so that no sample could fail.
    """
    seen = Counter(samples)
    if any(expected.get(outcome, 0) <= 0 for outcome in seen):
        return 0.0
    total = seen.total()
    scale = total / sum(expected.values())
    observed: list[float] = []
    wanted: list[float] = []
    rare_observed = rare_wanted = 0.0
    for outcome, probability in expected.items():
        if probability * scale >= min_expected:
            observed.append(seen[outcome])
            wanted.append(probability * scale)
        else:
            rare_observed += seen[outcome]
            rare_wanted += probability * scale
    if rare_wanted > 0:
        observed.append(rare_observed)
        wanted.append(rare_wanted)
    if len(wanted) < 2:
        raise ValueError("a test on fewer than two sets of outcomes cannot fail")
    rescale = sum(observed) / sum(wanted)
    return float(chisquare(observed, [w * rescale for w in wanted]).pvalue)
