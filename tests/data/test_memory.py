"""Too little memory: the error does not tell how many rows there are."""

from fractions import Fraction

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from dpublish.aggregates.counts import Counts
from dpublish.aggregates.sparse_counts import Tally
from dpublish.data.schema import Schema, column
from dpublish.data.sources import open_table
from dpublish.errors import UnreadableData
from dpublish.randomness import seeded

COLUMNS = (column("a", "integer", bounds=[0, 9]),)
PLAIN, UNITS = Schema(COLUMNS), Schema(COLUMNS, unit="u")
TABLE = pa.table({"a": [1, 2, 3], "u": [1, 1, 2]})


def run_out(*_args, **_options):
    raise pa.ArrowMemoryError("unable to allocate an array of shape (4711,)")


def total(table):
    return table.sum(Counts(table.schema, ((("a", None),),)))


def sample(table):
    return table.sample(Fraction(1, 2), seeded(1))


def split(table):
    return table.split(2, seeded(1))


def bound(table):
    return table.bound(1, b"key")


class Greedy(Counts):
    """A kernel that needs too much memory."""

    def add(self, batch, out):
        np.empty(2**59, dtype=np.int64)


def refusal_of(action):
    with pytest.raises(UnreadableData) as refused:
        action()
    assert refused.value.__context__ is None
    assert refused.value.__cause__ is None
    return str(refused.value)


@pytest.mark.parametrize(
    ("location", "schema", "cache", "action"),
    [
        ("encoded._join", PLAIN, True, total),
        ("encoded.make_batch", PLAIN, False, total),
        ("source.plain_array", PLAIN, True, total),
        ("units.distinct_pairs", UNITS, True, total),
        ("units.to_units", UNITS, False, total),
        ("units.to_units", UNITS, False, sample),
        ("local.choose", PLAIN, False, sample),
        ("local._deal", PLAIN, False, split),
        ("local.draw_blocks", UNITS, False, split),
        ("bounded.to_units", UNITS, True, bound),
        ("bounded._choose", UNITS, False, bound),
    ],
)
def test_how_much_memory_is_lacking_is_not_told(location, schema, cache, action, monkeypatch):
    table = open_table(TABLE, schema, cache=cache)
    monkeypatch.setattr(f"dpublish.data.engines.{location}", run_out)
    message = "there is not enough memory to read the rows; use cache=False or fewer columns"
    assert refusal_of(lambda: action(table)) == message


def test_a_kernel_that_runs_out_of_memory_does_not_tell_either():
    table = open_table(pd.DataFrame({"a": [1]}), PLAIN)
    kernel = Greedy(PLAIN, ((("a", None),),))
    assert "not enough memory" in refusal_of(lambda: table.sum(kernel))


def test_occupied_cells_that_do_not_fit_are_not_counted_in_an_error(monkeypatch):
    tally = Tally()
    tally.add(np.array([1, 2, 3]))
    monkeypatch.setattr("dpublish.aggregates.sparse_counts._merge", run_out)
    assert "not enough memory" in refusal_of(tally.compact)
