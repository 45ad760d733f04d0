"""What tasks of a Spark cluster do, one partition at a time; no cluster is needed."""

import pickle
from fractions import Fraction

import numpy as np
import pyarrow as pa
import pytest

from data.nasty_tables import arrow, make_rows
from dpublish.aggregates.counts import Counts
from dpublish.data.engines import spark_tasks as tasks
from dpublish.data.engines.spark_tasks import (
    Dealing,
    DealRows,
    Draw,
    DrawnRows,
    Draws,
    LostRows,
    PlainRows,
    Reader,
    Sampling,
    Splitting,
    make_targets,
    merge_answers,
)
from dpublish.data.schema import Schema, column
from dpublish.randomness import secure, seeded
from dpublish.testing import frequency_p_value

ONE = Schema((column("a", "integer", bounds=[0, 9]),))
SYSTEM = Draws()
PLAIN = Reader(PlainRows(("a",)), "t")


def drawn(rule, part=0, rows=10, draws=SYSTEM):
    """Draw from a partition that holds the numbers 0 to 9; return what the task yields."""
    batch = pa.RecordBatch.from_pydict({"c0": list(range(rows))})
    return list(Draw(rule, draws, ONE, PLAIN).run(part, iter([batch])))


def read(batches, nonces, part=0):
    seen = set()
    rows = DrawnRows(nonces).read(part, iter(batches), seen)
    return [value for batch in rows for value in batch.column("a").to_pylist()], seen


def nonce_of(batches):
    return batches[-1].column("nonce")[0].as_py()


def test_what_was_drawn_is_read_again():
    kept = drawn(Sampling(Fraction(1)))
    assert read(kept, (nonce_of(kept),)) == (list(range(10)), {0})
    nothing = drawn(Sampling(Fraction(1, 2**60)))
    assert read(nothing, (nonce_of(nothing),)) == ([], {0})


def test_two_attempts_at_a_draw_are_told_apart():
    """A task that ran twice at once may be kept twice, with different rows."""
    first, second = (drawn(Sampling(Fraction(1, 2))) for _ in range(2))
    recorded = (nonce_of(first),)
    assert nonce_of(first) != nonce_of(second)
    for batches in (second, [*first[:-1], second[-1]], first[:-1], [], [*first, first[-1]]):
        with pytest.raises(LostRows):
            read(batches, recorded)
    with pytest.raises(LostRows):
        read(first, recorded, part=1)


def test_records_are_drawn_independently_in_every_partition():
    taken = []
    for _ in range(1500):
        kept = drawn(Sampling(Fraction(1, 3)), rows=2)
        values, _ = read(kept, (nonce_of(kept),))
        taken.append((0 in values, 1 in values))
    distribution = {
        (False, False): 4 / 9,
        (True, False): 2 / 9,
        (False, True): 2 / 9,
        (True, True): 1 / 9,
    }
    assert frequency_p_value(taken, distribution) > 1e-3
    together = {
        (False, False): 2 / 3,
        (True, True): 1 / 3,
        (True, False): 1e-9,
        (False, True): 1e-9,
    }
    assert frequency_p_value(taken, together) < 1e-20


def test_draws_come_from_the_system_or_from_a_seed_that_partitions_vary():
    assert Draws.of(secure()) == Draws(None)
    seeds = Draws.of(seeded(1))
    assert seeds == Draws.of(seeded(1)) != Draws.of(seeded(2))
    words = [seeds.source(part).words(4).tolist() for part in (0, 1, 0)]
    assert words[0] == words[2] != words[1]
    blocks = [drawn(Splitting(4), part, 10, seeds) for part in (0, 0, 1)]
    parts = [[batch.column("block")[0].as_py() for batch in one] for one in blocks]
    assert parts[0] == parts[1]


def test_an_answer_that_stands_for_a_partition_twice_is_refused():
    kernel = Counts(ONE, ((),))
    blobs = [pickle.dumps((seen, np.array([5]))) for seen in ({0, 1}, {2}, {1})]
    seen, answer = merge_answers(kernel, blobs[:2])
    assert (seen, answer.tolist()) == ({0, 1, 2}, [10])
    with pytest.raises(LostRows):
        merge_answers(kernel, blobs)


def test_all_rows_of_a_unit_go_to_one_task():
    rows = arrow(make_rows(500)).to_batches()[0]
    names = tuple(rows.schema.names)
    found = {}
    for batch in (rows.slice(0, 250), rows.slice(250)):
        reader = Reader(PlainRows(names), "t")
        deal = DealRows(Dealing(make_targets(5), b"key"), "letter", names, reader)
        for blob in deal.run(0, iter([batch])):
            target = blob.column("target")[0].as_py()
            for piece in tasks.unpack(blob.column("blob")[0].as_buffer()):
                for unit in piece.column("letter").to_pylist():
                    found.setdefault(unit.strip(), set()).add(target)
    assert set(found) == {"a", "b", "c", 'é,\n"x'}
    assert all(len(targets) == 1 for targets in found.values())


def test_a_task_that_fails_says_nothing_but_that(monkeypatch):
    def fails(pickled, incoming):
        yield 1
        raise ValueError("a secret value")

    monkeypatch.setattr(tasks, "_steps", fails)
    steps = tasks.run_task(b"", iter([]))
    assert next(steps) == 1
    with pytest.raises(RuntimeError, match="dpublish: the rows of a partition could not") as no:
        next(steps)
    assert no.value.__context__ is None
    assert no.value.__cause__ is None


def test_long_rows_are_cut_into_small_blobs():
    rows = pa.RecordBatch.from_pydict({"a": ["x" * 1000] * 1000})
    pieces = list(tasks._cut(rows))
    assert sum(piece.num_rows for piece in pieces) == 1000
    assert max(len(tasks.pack(piece)) for piece in pieces) < 1 << 18
