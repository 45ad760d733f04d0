"""Replay grids and rounds of k-means with fixed answers, and add up their exact privacy loss.

A noisy array y has probability proportional to exp(-rate |y - exact|_1).  For fixed answers
the log ratio between neighbors is at most the sum of rate * |exact - exact'|_1, and answers
beyond both attain it.  So what was asked, and at which rate, is all that is needed.
"""

from functools import cache
from math import inf

import numpy as np

from dpublish.core import run as run_module
from dpublish.data.batch import Batch
from dpublish.data.box import UNIT
from dpublish.data.schema import Schema, column
from dpublish.privacy.neighbors import AddRemoveRecord
from dpublish.randomness import plain_generator


@cache
def schema_of(dimensions):
    return Schema(tuple(column(f"x{j}", "numeric", bounds=[-1, 1]) for j in range(dimensions)))


class Points:
    """A table of few records; it keeps the kernels that it was asked for."""

    neighbors = AddRemoveRecord()

    def __init__(self, points, dimensions):
        self.schema = schema_of(dimensions)
        self._points = np.array(points, dtype=float).reshape(-1, dimensions)
        self.kernels = []

    def sum(self, kernel):
        self.kernels.append(kernel)
        answer = kernel.zero()
        values = dict(zip(self.schema.names, self._points.T, strict=True))
        kernel.add(Batch(len(self._points), values=values), answer)
        return answer


class Replay:
    """Stands in for the noise: keeps what was asked, answers the same whatever that was.

    Without a `size` to tell, it is a broken twin: it gives the exact number of records away.
    """

    def __init__(self, seed=1, size=1000):
        self._rng = plain_generator(seed)
        self._size = size
        self.exact, self.rates, self.queries = [], [], []

    def add_geometric(self, counts, *, sensitivity, budget, rng):
        self.exact.append(counts.astype(object))
        self.rates.append(budget.spend() / sensitivity)
        wide = 1 if sensitivity == 1 else UNIT
        return self._rng.integers(-3 * wide, 9 * wide, counts.shape)

    def noisy_size(self, size, *, budget, rng):
        self.exact.append(np.array(size, dtype=object))
        self.rates.append(budget.spend())
        return size if self._size is None else self._size

    def run(self, monkeypatch, table, play):
        with monkeypatch.context() as patch:
            patch.setattr(run_module, "add_geometric", self.add_geometric)
            patch.setattr(run_module, "noisy_size", self.noisy_size)
            play(table)
        self.queries = [_query(kernel) for kernel in table.kernels]
        return self


def _query(kernel):
    """What a kernel asks for: the sizes of its grid, or its centers."""
    return getattr(kernel, "sizes", None) or kernel.centers.tolist()


def exact_loss(one, other):
    """The largest log ratio of the answers' probabilities; infinite if something else differs."""
    if (one.rates, one.queries) != (other.rates, other.queries):
        return inf
    return sum(
        rate * int(np.abs(a - b).sum())
        for rate, a, b in zip(one.rates, one.exact, other.exact, strict=True)
    )
