"""The exact distribution of a method's groups, if each publishes one noisy count."""

from math import comb, exp, inf
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from dpublish.data.schema import Schema, column
from dpublish.data.sources import open_table
from dpublish.methods.histogram.histogram import Histogram
from dpublish.methods.personalized.preferences import Preferences

SCHEMA = Schema((column("sex", "category", values=["Female", "Male"]),))
INNER = Histogram(columns=("sex",))
LARGEST = 60  # outputs from -LARGEST to LARGEST


class Seen(NamedTuple):
    """What a group did: the probability of each of its levels to be used, and its epsilon."""

    rates: dict
    epsilon: object


def table_of(method, counts):
    """Make a table with so many records at each level."""
    levels = [
        float(level) for level, n in zip(method.levels, counts, strict=True) for _ in range(n)
    ]
    rows = pa.table(
        {
            "sex": pa.array(["Male"] * len(levels), pa.string()),
            "own": pa.array(levels, pa.float64()),
        }
    )
    return open_table(rows, method.prepare(SCHEMA))


def watch(method, table, epsilon, rng, monkeypatch):
    """Run a release and note what each of its groups did; no one is drawn at random."""
    rates: list[dict] = []

    def group(self, table, levels):
        rates.append(dict.fromkeys(levels, 1))
        return real_group(self, table, levels)

    def sample(self, run, probabilities, columns=None):
        rates.append(dict(probabilities))
        return run.on(real_group(self, run.table, list(probabilities)))

    real_group = Preferences.group
    with monkeypatch.context() as patch:
        patch.setattr(Preferences, "group", group)
        patch.setattr(Preferences, "sample", sample)
        release = method.release(table, budget=method.budget(epsilon), rng=rng)
    assert [set(each) for each in rates] == [set(part.levels) for part in release.parts]
    return [Seen(each, part.epsilon) for each, part in zip(rates, release.parts, strict=True)]


def count_distribution(seen, counts):
    """Give the probability of every noisy count of a group, by enumeration of who is drawn."""
    kept = np.ones(1)
    for level, n in counts.items():
        rate = float(seen.rates.get(level, 0))
        drawn = [comb(n, k) * rate**k * (1 - rate) ** (n - k) for k in range(n + 1)]
        kept = np.convolve(kept, drawn)
    ratio = exp(-float(seen.epsilon))
    outputs = np.arange(-LARGEST, LARGEST + 1)
    noise = [(1 - ratio) / (1 + ratio) * ratio ** np.abs(outputs - k) for k in range(len(kept))]
    return kept @ np.array(noise)


def group_loss(here, there, counts, more):
    """Give the largest log ratio between what groups publish without and with one more record.

    Groups are independent, so the worst outputs of all of them together are the worst of each.
    """
    if len(here) != len(there):
        return inf
    total = 0.0
    for before, after in zip(here, there, strict=True):
        ratios = np.log(count_distribution(before, counts)) - np.log(
            count_distribution(after, more)
        )
        total += float(np.abs(ratios).max())
    return total


def losses(method, counts, epsilon, rng, monkeypatch):
    """Give the loss of one more record of each level."""

    def seen(numbers):
        return watch(method, table_of(method, numbers), epsilon, rng, monkeypatch)

    before = dict(zip(method.levels, counts, strict=True))
    here = seen(counts)
    found = {}
    for position, level in enumerate(method.levels):
        more = [n + (b == position) for b, n in enumerate(counts)]
        after = dict(zip(method.levels, more, strict=True))
        found[level] = group_loss(here, seen(more), before, after)
    return found
