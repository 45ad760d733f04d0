"""A step that compares does the work of a publication, whatever comes of the comparison."""

import numpy as np
import pytest

from dpublish.methods.streams.static import IdentityHistogram
from dpublish.privacy.budget import Budget
from dpublish.randomness import secure, seeded
from stream_world import ASKING, SCHEMA, THRESHOLD

NEAR = np.array([900, 0, 0, 0, 900, 0, 0, 0], dtype=np.int64)
FAR = NEAR[::-1].copy()
EPSILON = 500  # so much that comparisons come out as they should


@pytest.fixture
def published(monkeypatch):
    """Count how often a histogram is made."""
    calls = []
    make = IdentityHistogram.publish

    def count(self, run, *, budget):
        calls.append(budget.epsilon)
        return make(self, run, budget=budget)

    monkeypatch.setattr(IdentityHistogram, "publish", count)
    return calls


def steps(method, snapshots, source):
    stream = method.start(SCHEMA, budget=Budget.seeded(EPSILON), rng=source)
    return stream, [stream.next_counts(counts, rng=source) for counts in snapshots]


@pytest.mark.parametrize("method", [ASKING, THRESHOLD], ids=lambda method: method.name)
def test_near_and_far_snapshots_take_the_same_work(method, published):
    _, found = steps(method, [NEAR, NEAR, FAR, FAR], secure())
    actions = [step.action for step in found]
    assert actions == ["published", "repeated", "published", "repeated"]
    assert len(published) == 4


@pytest.mark.parametrize("method", [ASKING, THRESHOLD], ids=lambda method: method.name)
def test_nothing_of_a_rehearsal_is_kept_or_paid(method, published):
    stream, found = steps(method, [NEAR, NEAR], secure())
    first, repeated = found
    assert np.array_equal(first.estimate, repeated.estimate)
    assert repeated.released is None
    assert (repeated.epsilon, repeated.change) == (0, 0.0)
    assert stream.state().public["history"]["number"] == 2
    assert len(published) == 2
    # Whether a histogram was thrown away shows nowhere in what the stream goes on with.
    spied, _ = steps(method, [NEAR, NEAR], seeded(1))
    assert len(published) == 3
    for part in ("history", "account"):
        assert stream.state().public[part].keys() == spied.state().public[part].keys()
    assert stream.spent == spied.spent


@pytest.mark.parametrize("method", [ASKING, THRESHOLD], ids=lambda method: method.name)
def test_what_a_rehearsal_found_is_forgotten(method, monkeypatch):
    """Even if it is far from what is believed, as it may be where noise is large."""
    stream, (first,) = steps(method, [NEAR], secure())
    before = stream.state()
    rehearsed = []

    def publish(self, run, *, budget):
        rehearsed.append(budget.spend())
        return run.counts + 1000, 1.0

    monkeypatch.setattr(IdentityHistogram, "publish", publish)
    repeated = stream.next_counts(NEAR, rng=secure())
    assert len(rehearsed) == 1
    assert repeated.action == "repeated"
    assert np.array_equal(repeated.estimate, first.estimate)
    after = stream.state()
    assert after.public["estimate"] == before.public["estimate"]
    assert after.arrays.keys() == before.arrays.keys()
    assert all(np.array_equal(after.arrays[name], before.arrays[name]) for name in before.arrays)


def test_what_stops_a_publication_stops_a_repetition_too(published, monkeypatch):
    stream, _ = steps(THRESHOLD, [NEAR], secure())

    def run_out(*_args, **_options):
        raise MemoryError

    monkeypatch.setattr(IdentityHistogram, "publish", run_out)
    with pytest.raises(MemoryError):
        stream.next_counts(NEAR, rng=secure())


def test_a_step_that_is_known_to_repeat_reads_and_rehearses_nothing(published):
    stream, _ = steps(THRESHOLD, [NEAR], secure())
    while stream.number < 6:
        stream.next_counts(FAR if stream.number % 2 else NEAR, rng=secure())
    before = len(published)
    stream.next_counts(NEAR, rng=secure())  # all releases are used up, which is public
    assert len(published) == before
