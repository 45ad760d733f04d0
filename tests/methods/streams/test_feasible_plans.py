"""A step is never refused after its comparison: that would tell what the comparison said."""

from fractions import Fraction

import numpy as np
import pytest

from dpublish.data.schema import Schema, column
from dpublish.errors import InvalidParameter
from dpublish.methods.streams.method import make_stream_method
from dpublish.methods.streams.static import IdentityHistogram
from dpublish.privacy.budget import Budget
from dpublish.randomness import seeded

SCHEMA = Schema((column("a", "integer", bounds=[0, 63], bins=64),))
LEAST = Fraction(1, 2000)


class Choosy(IdentityHistogram):
    """A static method that refuses small rates, as EFPA and others do."""

    def check(self, schema, bins, rate=Fraction(1)):
        if rate < LEAST:
            raise InvalidParameter("rate is too small")

    def publish(self, run, *, budget):
        self.check(None, None, budget.epsilon / run.contribution)
        return super().publish(run, budget=budget)


@pytest.mark.parametrize(
    ("name", "span"), [("dsat", {"horizon": 2000}), ("dsat-w", {"window": 500})]
)
@pytest.mark.parametrize("jump", [0, 10**5, 10**7])
def test_small_publications_are_skipped_whatever_the_counts_are(monkeypatch, name, span, jump):
    method = make_stream_method(name, {"columns": "a", "trust_rows": True, **span})
    monkeypatch.setattr(type(method), "static_histogram", lambda _: Choosy())
    stream = method.start(SCHEMA, budget=Budget.seeded("0.05"), rng=seeded(1))
    rng, counts = seeded(2), np.zeros(64, dtype=np.int64)
    for step in range(60):
        counts[step % 64] += jump
        assert stream.next_counts(counts, rng=rng).number == step + 1


def test_without_the_precaution_a_step_would_fail_by_what_it_saw(monkeypatch):
    """The broken twin: plans are carried out unseen, and the error depends on the counts."""
    method = make_stream_method("dsat", {"columns": "a", "trust_rows": True, "horizon": 2000})
    monkeypatch.setattr(type(method), "static_histogram", lambda _: Choosy())
    stream = method.start(SCHEMA, budget=Budget.seeded("0.05"), rng=seeded(1))
    monkeypatch.setattr(stream, "_feasible", lambda plan: plan)
    rng, counts = seeded(2), np.zeros(64, dtype=np.int64)

    def go_on():
        for step in range(60):
            counts[step % 64] += 10**7
            stream.next_counts(counts, rng=rng)

    with pytest.raises(InvalidParameter, match="too small"):
        go_on()
