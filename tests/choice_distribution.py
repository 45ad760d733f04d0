"""Exact probabilities of a private choice, for tests that compare neighbors."""

import numpy as np


def choice_distribution(scores, rate):
    """Give each candidate's probability under permute-and-flip.

    A candidate wins with the others' tails integrated over its own: a polynomial, which so
    many nodes integrate exactly.
    """
    scores = np.asarray(scores)
    odds = np.exp(-rate * (scores.max() - scores).astype(float))
    nodes, weights = np.polynomial.legendre.leggauss(odds.size // 2 + 1)
    factors = 1 - odds[:, None] * (nodes + 1) / 2
    distribution = np.empty(odds.size)
    for winner in range(odds.size):
        others = np.prod(np.delete(factors, winner, axis=0), axis=0)
        distribution[winner] = odds[winner] * (weights / 2) @ others
    return distribution
