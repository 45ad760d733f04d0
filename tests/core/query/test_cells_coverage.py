"""Intervals of cell counts hold with their probability, and no wider than the records allow."""

from fractions import Fraction

import numpy as np
import pytest

from dpublish.core.noisy_size import NoisySize
from dpublish.core.query.cells import CellCounts
from dpublish.data.schema import column
from dpublish.mechanisms.sparse_counts import auto_threshold
from dpublish.randomness import plain_generator

RUNS = 400
LEAST = 0.95 - 3 * (0.05 * 0.95 / RUNS) ** 0.5
AGE = column("age", "integer", bounds=[0, 99], bins=10).axis()
AT_STARTS = np.array([300, 0, 200, 0, 100, 0, 0, 50, 0, 0])
RATE = Fraction(1, 10)


def noise(rng, rate, size):
    p = 1 - np.exp(-float(rate))
    return rng.geometric(p, size) - rng.geometric(p, size)


@pytest.mark.parametrize(
    ("query", "truth"), [("age < 50", 600), ("age < 25", 500), ("age > 5", 350), ("age = 20", 200)]
)
def test_dense_intervals_hold_where_all_records_lie_at_one_end(query, truth):
    rng, hits, twins = plain_generator(1), 0, 0
    for _ in range(RUNS):
        counts = AT_STARTS + noise(rng, RATE, 10)
        answer = CellCounts((AGE,), counts, RATE).answer(query, 0.95)
        hits += answer.low <= truth <= answer.high
        twins += abs(answer.value - truth) <= 30  # the noise of a cell, around the even estimate
    assert hits / RUNS >= LEAST
    if query != "age < 50":
        assert twins / RUNS < LEAST  # a broken twin would be caught


@pytest.mark.parametrize("where", ["few cells", "one in each"])
def test_sparse_intervals_hold_and_are_capped_by_the_noisy_total(where):
    axes = tuple(column(x, "integer", bounds=[0, 99]).axis() for x in "ab")
    truth = np.zeros((100, 100), dtype=np.int64)
    if where == "few cells":
        truth[:5, :4] = 50
    else:
        truth[::4, ::4] = 1
    rng, rate = plain_generator(2), Fraction(1)
    threshold = auto_threshold(truth.size, rate)
    records, inside = int(truth.sum()), int(truth[:50].sum())
    hits = 0
    for _ in range(RUNS):
        noisy = (truth + noise(rng, rate, truth.shape)).ravel()
        cells = np.flatnonzero(noisy >= threshold)
        size = NoisySize(records + int(noise(rng, RATE, 1)[0]), RATE)
        capped = CellCounts(axes, noisy[cells], rate, cells, threshold, records=size)
        answer = capped.answer("a < 50", 0.95)
        hits += answer.low <= inside <= answer.high
        assert answer.high <= size.value + 100
    assert hits / RUNS >= LEAST
    without = CellCounts(axes, noisy[cells], rate, cells, threshold).answer("a < 50", 0.95)
    assert without.high > 12 * records  # what hidden cells might hold, had none counted all
