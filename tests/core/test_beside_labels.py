"""Ends of bins and intervals of counts stand beside labels, and say what is true."""

from datetime import date, datetime
from fractions import Fraction

import numpy as np
import pyarrow as pa
import pytest

from dpublish.core.beside_labels import (
    Along,
    bin_ends,
    cell_width,
    every_cell,
    with_bins,
    with_interval,
    with_joints,
    with_listed_bins,
)
from dpublish.core.released import DERIVED, field_description, field_note
from dpublish.data.schema import Schema, column
from dpublish.data.sources import open_table
from dpublish.methods.histogram.histogram import Histogram
from dpublish.methods.marginals.hierarchical import count_hierarchy
from dpublish.methods.marginals.marginals import Marginals
from dpublish.methods.marginals.noisy_marginal import NoisyMarginal
from dpublish.methods.marginals.released import value_widths
from dpublish.methods.privelet.privelet import Privelet
from dpublish.privacy.budget import Budget
from dpublish.randomness import seeded

AGE = column("age", "integer", bounds=[0, 99], bins=10, branching=2, missing="category")
HEIGHT = column("height", "numeric", bounds=[100, 220], bins=6)
DAY = column("day", "date", bounds=["2023-01-01", "2024-12-31"], bins="quarter")
HOUR = column("hour", "datetime", bounds=["2024-01-01", "2024-01-02"], bins="hour")
TOWN = column("town", "category", values=["Ost", "West"])


def ends_of(declared, level=None):
    axis = declared.axis(level)
    cells = np.arange(axis.size)
    return bin_ends(axis, cells, cells)


def test_ends_are_the_values_that_labels_name():
    age = ends_of(AGE)
    assert age.low.to_pylist() == [*range(0, 100, 10), None]  # the last cell is that of nulls
    assert age.high.to_pylist() == [*range(9, 100, 10), None]
    assert (age.low.type, ends_of(HEIGHT).low.type) == (pa.int64(), pa.float64())
    assert ends_of(HEIGHT).high.to_pylist() == [120, 140, 160, 180, 200, 220]
    assert ends_of(TOWN) is None


def test_a_coarser_level_has_the_ends_of_its_cells():
    labels = AGE.axis(2).labels
    ends = ends_of(AGE, 2)
    for label, low, high in zip(labels, *(end.to_pylist() for end in ends), strict=True):
        assert label == ("(missing)" if low is None else f"{low}..{high}")


def test_dates_are_dates():
    assert ends_of(DAY).low.to_pylist()[:2] == [date(2023, 1, 1), date(2023, 4, 1)]
    assert ends_of(DAY).high.to_pylist()[-1] == date(2024, 12, 31)
    assert ends_of(HOUR).high.to_pylist()[0] == datetime(2024, 1, 1, 0, 59, 59)


def test_a_name_that_is_taken_is_not_taken_twice():
    other = column("age_low", "category", values=["a", "b"])
    axes = [AGE.axis(), other.axis()]
    cells = [np.array([3]), np.array([1])]
    table = pa.table({"age": ["30..39"], "age_low": ["b"]})
    found = with_bins(table, axes, cells)
    assert found.to_pydict() == {
        "age": ["30..39"],
        "age_low_": [30],
        "age_high": [39],
        "age_low": ["b"],
    }


def test_numbers_and_dates_of_a_long_table_have_columns_of_their_own():
    axes = [TOWN.axis(), HEIGHT.axis(), DAY.axis()]
    labels = [label for axis in axes for label in axis.labels]
    found = with_listed_bins(pa.table({"value": labels}), "value", every_cell(axes))
    assert found.column_names == [
        "value",
        *("value_low", "value_high", "value_low_date", "value_high_date"),
    ]
    assert found["value_low"].to_pylist()[:4] == [None, None, 100, 120]
    assert found["value_low"].null_count == 2 + DAY.size
    assert found["value_high_date"].to_pylist()[-1] == date(2024, 12, 31)
    only = with_listed_bins(pa.table({"value": ["Ost", "West"]}), "value", every_cell(axes[:1]))
    assert only.column_names == ["value"]


def test_joint_tables_name_the_cells_of_every_column():
    joints = [[Along.of(TOWN.axis()), Along.of(HEIGHT.axis())], [Along.of(TOWN.axis())]]
    table = pa.table({"cell": np.arange(14)})
    found = with_joints(table, "cell", joints, ("height", "town"))
    assert found.column_names == ["cell", "height", "height_low", "height_high", "town"]
    assert found["town"].to_pylist() == ["Ost"] * 6 + ["West"] * 6 + ["Ost", "West"]
    assert found["height_low"].to_pylist() == [*range(100, 220, 20)] * 2 + [None, None]


def test_intervals_are_no_lower_than_zero_and_null_where_none_is_known():
    table = pa.table({"noisy_count": [-5, 2, 40]})
    found = with_interval(table, np.array([4.0, 4.0, np.nan]))
    assert found["count_low"].to_pylist() == [0, 0, None]
    assert found["count_high"].to_pylist() == [0, 6, None]
    assert with_interval(table, None) is table
    field = found.schema.field("count_low")
    assert field_note(field, DERIVED) == "yes"
    assert "without noise, with probability 95 %" in field_description(field)


def counted(method, schema, rows, seed, epsilon=Fraction(1, 4)):
    table = open_table(rows, schema)
    return method.release(table, budget=Budget.seeded(epsilon), rng=seeded(seed)).tables()


def covered(found, truth):
    low, high = (np.asarray(found[name].to_numpy(), float) for name in ("count_low", "count_high"))
    return (low <= truth) & (truth <= high)


ROWS = pa.table({"height": np.repeat(np.arange(105.0, 220, 20), [40, 0, 300, 90, 3, 60])})
TRUTH = np.array([40, 0, 300, 90, 3, 60])
HEIGHTS = Schema((HEIGHT,))


@pytest.mark.parametrize(
    ("method", "table"),
    [
        (Histogram(columns=("height",)), "counts"),
        (Marginals(marginal="identity"), "probabilities"),
        (Marginals(marginal="hierarchical"), "probabilities"),
        (Privelet(transform="haar"), "marginals"),
    ],
    ids=lambda value: value if isinstance(value, str) else f"{value.name}",
)
def test_intervals_hold_the_truth_as_often_as_they_say(method, table):
    held = [covered(counted(method, HEIGHTS, ROWS, seed)[table], TRUTH) for seed in range(150)]
    share = np.mean(held)  # of 900 intervals; clipping at 0 holds the truth no less often
    assert 0.93 <= share <= 0.99
    assert np.mean(held, axis=0).min() >= 0.88


def test_intervals_of_cells_that_passed_a_threshold_hold_all_at_once():
    method = Histogram(columns=("height",), threshold=20)
    together = []
    for seed in range(200):
        found = counted(method, HEIGHTS, ROWS, seed)["counts"]
        together.append(covered(found, TRUTH[found["cell_number"].to_numpy()]).all())
        assert "for all rows of the table at once" in field_description(
            found.schema.field("count_low")
        )
    assert np.mean(together) >= 0.93


def test_every_value_of_a_tree_of_counts_has_the_width_of_its_own_noise():
    units = np.zeros(count_hierarchy(7, 3).nodes, dtype=np.int64)
    marginal = NoisyMarginal("hierarchical", 7, units, Fraction(1, 5), branching=3)
    each = [marginal.half_width(one, 0.95) for one in np.eye(7)]
    assert value_widths(marginal) == pytest.approx(each)


def test_the_width_of_a_cell_is_the_quantile_of_its_noise():
    width = cell_width(Fraction(1, 4))
    ratio = np.exp(-0.25)
    beyond = 2 * ratio ** (width + 1) / (1 + ratio)
    assert beyond <= 0.05 < 2 * ratio**width / (1 + ratio)
