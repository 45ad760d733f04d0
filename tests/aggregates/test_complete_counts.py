"""Counts of complete records: all sets see the same records."""

from dpublish.aggregates.complete_counts import CompleteCounts
from dpublish.aggregates.counts import Counts
from dpublish.data.sources import open_table
from recipe_examples import ROWS, SCHEMA, arrow_table

SETS = ((("sex", None),), (("town", None), ("age", 1)), ())


def test_a_record_that_lacks_one_column_is_counted_in_no_set():
    table = open_table(arrow_table(ROWS), SCHEMA)
    kernel = CompleteCounts(SCHEMA, SETS, ("sex", "town", "age"))
    assert [int(part.sum()) for part in kernel.split(table.sum(kernel))] == [4, 4, 4]
    loose = Counts(SCHEMA, ((),))
    assert table.sum(loose).tolist() == [5]  # without a column to read nothing is left out


def test_its_sensitivity_is_one_for_each_set():
    kernel = CompleteCounts(SCHEMA, SETS, ("sex",))
    assert kernel.sensitivity(SCHEMA.neighbours) == 3
    assert kernel.range_sensitivity(SCHEMA.neighbours) == 1
