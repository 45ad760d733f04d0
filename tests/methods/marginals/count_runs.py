"""Runs for parts of a method that start from given counts."""

import pyarrow as pa

from dpublish.core.run import Run
from dpublish.data.schema import Schema, column
from dpublish.data.sources import open_table
from dpublish.randomness import seeded

NO_RECORDS = open_table(
    pa.table({"x": pa.array([], pa.int64())}), Schema((column("x", "integer", bounds=[0, 9]),))
)


def run_of(seed):
    """Make a seeded run on a table without records: the counts are given."""
    return Run(NO_RECORDS, rng=seeded(seed))
