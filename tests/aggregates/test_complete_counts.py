"""Counts of complete records: all sets see the same records."""

import numpy as np
import pyarrow as pa
import pytest

from dpublish.aggregates.complete_counts import CompleteCounts
from dpublish.aggregates.counts import Counts
from dpublish.data.schema import Schema, column
from dpublish.data.sources import open_table
from dpublish.errors import InvalidParameter
from method_examples import ROWS, SCHEMA, arrow_table

SETS = ((("sex", None),), (("town", None), ("age", 1)), ())


def test_a_record_that_lacks_one_column_is_counted_in_no_set():
    table = open_table(arrow_table(ROWS), SCHEMA)
    kernel = CompleteCounts(SCHEMA, SETS, ("sex", "town", "age"))
    assert [int(part.sum()) for part in kernel.split(table.sum(kernel))] == [4, 4, 4]
    loose = Counts(SCHEMA, ((),))
    assert table.sum(loose).tolist() == [5]  # without a column to read nothing is left out


def test_its_sensitivity_is_one_for_each_set():
    kernel = CompleteCounts(SCHEMA, SETS, ("sex",))
    assert kernel.sensitivity(SCHEMA.neighbors) == 3
    assert kernel.range_sensitivity(SCHEMA.neighbors) == 1


UNITS = Schema(
    (
        column("sex", "category", values=["F", "M"]),
        column("age", "integer", bounds=[0, 7], branching=2),
        column("day", "integer", bounds=[0, 39]),
    ),
    unit="who",
)


def widest_range(kernel, trials=30):
    """Find by how much the changes of two counts differ when a random unit is removed."""
    draws = np.random.default_rng(5)  # noqa: TID251 - draws rows, not noise
    widest = 0
    for _ in range(trials):
        size = int(draws.integers(1, 400))
        rows = {
            "sex": draws.choice(["F", "M"], size),
            "age": draws.integers(0, 8, size),
            "day": draws.integers(0, 40, size),
            "who": draws.integers(0, 3, size),
        }
        stays = rows["who"] > 0
        without = {name: values[stays] for name, values in rows.items()}
        both = [open_table(pa.table(each), UNITS).sum(kernel) for each in (rows, without)]
        widest = max(widest, int(np.ptp(both[0] - both[1])))
    return widest


@pytest.mark.parametrize(
    ("sets", "columns"),
    [
        (((("sex", None),),), ("sex",)),
        (((("sex", None), ("age", 1)),), ("age",)),
        (((("age", 2), ("day", None)),), ("day", "age")),
    ],
)
def test_a_unit_moves_counts_by_one_if_no_other_column_tells_its_rows_apart(sets, columns):
    kernel = CompleteCounts(UNITS, sets, columns)
    assert widest_range(kernel) == kernel.range_sensitivity(UNITS.neighbors) == 1


def test_units_whose_rows_other_columns_tell_apart_are_refused():
    kernel = CompleteCounts(UNITS, ((("sex", None),),), ("sex", "day"))
    claimed = Counts.range_sensitivity(kernel, UNITS.neighbors)  # what was claimed before
    assert widest_range(kernel) > 5 * claimed
    with pytest.raises(InvalidParameter, match="count over day, too"):
        kernel.range_sensitivity(UNITS.neighbors)
    assert CompleteCounts(UNITS, kernel.sets, ("sex",)).range_sensitivity(UNITS.neighbors) == 1
