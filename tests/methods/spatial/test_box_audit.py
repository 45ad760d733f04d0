"""Boxes: whole releases replayed on neighbors, and a twin whose size is in the clear."""

from fractions import Fraction
from math import inf

import pyarrow as pa
import pytest

from dpublish.aggregates.counts import Counts
from dpublish.core import run as method_run
from dpublish.core.noisy_size import NoisySize
from dpublish.data.schema import Schema, column
from dpublish.data.sources import open_table
from dpublish.mechanisms import noise
from dpublish.methods.spatial import ag, psd, ug
from dpublish.privacy.budget import Budget
from dpublish.randomness import plain_generator, seeded
from transcript import privacy_loss

SCHEMA = Schema(tuple(column(name, "integer", bounds=[0, 7]) for name in "xy"))
EPSILON = Fraction(20)
MODULES = (method_run, noise)
CATALOG = {
    "ug": ug.UG(),
    "ag": ag.AG(),
    "psd": psd.PSD(),
}


def make_table(codes):
    return open_table(pa.table({"x": codes[:, 0], "y": codes[:, 1]}), SCHEMA)


def losses(name, monkeypatch, sizes=(1, 2, 3, 5, 6, 12, 40), seeds=4):
    for size in sizes:
        codes = plain_generator(size).integers(0, 8, size=(size, 2))
        for seed in range(seeds):

            def release(table, seed=seed):
                return CATALOG[name].release(table, budget=Budget.seeded(EPSILON), rng=seeded(seed))

            pair = make_table(codes), make_table(codes[:-1])
            yield privacy_loss(release, *pair, MODULES, monkeypatch)


@pytest.mark.parametrize("name", CATALOG)
def test_no_release_tells_neighbors_apart_by_more_than_the_budget(name, monkeypatch):
    found = max(losses(name, monkeypatch))
    assert float(EPSILON) / 3 < found <= float(EPSILON) * (1 + 1e-9)


@pytest.mark.parametrize("name", ["ug", "psd"])  # the first grid of ag is of least size here
def test_boxes_that_follow_from_the_true_size_are_noticed(name, monkeypatch):
    def in_the_clear(run, domain, *, budget):
        counts = run.sum(Counts(SCHEMA, ((("x", None),),)))
        return NoisySize(int(counts.sum()), budget.spend())

    module = {"ug": ug, "psd": psd}[name]
    monkeypatch.setattr(module, "release_size", in_the_clear)
    assert max(losses(name, monkeypatch, sizes=range(1, 60), seeds=1)) == inf
