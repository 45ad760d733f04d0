"""The exact probability of published boxes, worked out anew from the table and the receipt."""

from math import exp, expm1, log

import numpy as np

from choice_distribution import choice_distribution


def log_noise(rate, value):
    """Log of the probability of one value of two-sided geometric noise."""
    rate = float(rate)
    return log(-expm1(-rate)) - log(1 + exp(-rate)) - rate * abs(value)


def inside(codes, lows, highs):
    """Which records lie in a box."""
    return np.all((lows <= codes) & (codes < highs), axis=1)


def log_counts(release, codes, rates=None):
    """Log of the probability of the noisy counts, given the boxes."""
    rates = release.rates if rates is None else rates
    found = 0.0
    for low, high, level, count in zip(
        release.lows, release.highs, release.levels, release.counts, strict=True
    ):
        if rates[level] is not None:
            found += log_noise(rates[level], count - inside(codes, low, high).sum())
    return found


def log_size(release, codes, rate=None):
    """Log of the probability of the noisy number of records."""
    return log_noise(rate or release.size.rate, release.size.value - len(codes))


def log_medians(release, codes, shares):
    """Log of the probability of the cuts; `shares` gives the epsilon of each level of medians."""
    found = 0.0
    for box in range(release.parents.size):
        parts = np.flatnonzero(release.parents == box)
        if parts.size != 2 or release.levels[box] >= len(shares):
            continue
        lower, upper = parts
        column = int(np.flatnonzero(release.lows[lower] != release.lows[upper])[0])
        low, high = release.lows[box, column], release.highs[box, column]
        along = codes[inside(codes, release.lows[box], release.highs[box]), column]
        scores = [
            -abs(int((along < cut).sum()) - int((along >= cut).sum()))
            for cut in range(low + 1, high)
        ]
        rate = float(shares[release.levels[box]]) / 2
        found += log(choice_distribution(scores, rate)[release.lows[upper, column] - low - 1])
    return found


def neighbors(codes, sizes):
    """All tables with one record less or more."""
    for row in range(len(codes)):
        yield np.delete(codes, row, axis=0)
    for cell in np.ndindex(*sizes):
        yield np.concatenate([codes, [cell]])


def largest_loss(releases, codes, sizes, distribution):
    """The largest log ratio of the probability of a release, over all neighbors of a table."""
    return max(
        abs(distribution(release, codes) - distribution(release, other))
        for release in releases
        for other in neighbors(codes, sizes)
    )
