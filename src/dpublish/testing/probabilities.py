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

    Outcomes expected fewer than `min_expected` times are pooled, with as many others, the least
    likely first, as the pool needs to be expected so often; an outcome that should be impossible
    gives 0.

    Raises:
        ValueError: All outcomes would be pooled into one, so that no sample could fail.
    """
    seen = Counter(samples)
    if any(expected.get(outcome, 0) <= 0 for outcome in seen):
        return 0.0
    scale = seen.total() / sum(expected.values())
    pools = pooled(expected, min_expected / scale)
    if len(pools) < 2:
        raise ValueError("a test on fewer than two sets of outcomes cannot fail")
    observed = [sum(seen[outcome] for outcome in pool) for pool in pools]
    wanted = [scale * sum(expected[outcome] for outcome in pool) for pool in pools]
    rescale = sum(observed) / sum(wanted)
    return float(chisquare(observed, [w * rescale for w in wanted]).pvalue)


def pooled(expected: Mapping[Hashable, float], least: float) -> list[list[Hashable]]:
    """Put outcomes together, the rarest first, until each pool is as likely as `least`."""
    rare = sorted((each for each in expected if expected[each] < least), key=expected.__getitem__)
    usual = sorted((each for each in expected if expected[each] >= least), key=expected.__getitem__)
    total = sum(expected[each] for each in rare)
    while len(usual) > 1 and 0 < total < least:
        rare.append(usual.pop(0))
        total += expected[rare[-1]]
    return [pool for pool in (rare, *([each] for each in usual)) if pool and _some(pool, expected)]


def _some(pool: list[Hashable], expected: Mapping[Hashable, float]) -> bool:
    return any(expected[outcome] > 0 for outcome in pool)
