"""The exact law of permute-and-flip, for audits of methods that make several choices."""

from itertools import product
from math import exp


def choice_law(scores, rate):
    """Chances of each candidate, by listing which coins show heads."""
    best = max(scores)
    odds = [exp(-rate * (best - score)) for score in scores]
    chances = [0.0] * len(scores)
    for heads in product((False, True), repeat=len(scores)):
        chance = 1.0
        for shown, odd in zip(heads, odds, strict=True):
            chance *= odd if shown else 1 - odd
        for place in range(len(scores)):
            if heads[place]:
                chances[place] += chance / sum(heads)
    return chances
