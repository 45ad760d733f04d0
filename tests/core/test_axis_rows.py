"""Rows that are drawn from cells of dates hold dates, inside their cells."""

import numpy as np
import pyarrow as pa
import pytest

from dpublish.core.axis_rows import draw_column, draw_rows
from dpublish.data.schema import column
from dpublish.randomness import plain_generator

KINDS = {"date": pa.date32(), "datetime": pa.timestamp("s")}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("bins", ["week", "month", 5])
def test_drawn_dates_lie_in_their_cells(kind, bins):
    made = column("when", kind, bounds=["2023-01-15", "2024-12-31"], bins=bins, missing="category")
    cells = np.repeat(np.arange(made.size), 50)
    drawn = draw_column(made.axis(), cells, plain_generator(1))
    assert drawn.type == KINDS[kind]
    assert drawn.null_count == 50
    codes, keep = made.encode(drawn)
    assert keep is None
    assert np.array_equal(codes, cells)


def test_a_table_of_rows_writes_dates_as_such():
    axes = [
        column("admitted", "date", bounds=["2024-02-29", "2024-02-29"]).axis(),
        column("seen", "datetime", bounds=["2024-02-29T13:00:05", "2024-02-29T13:00:05"]).axis(),
    ]
    rows = draw_rows(axes, [np.array([0]), np.array([0])], plain_generator(1))
    assert [str(value) for value in rows.to_pylist()[0].values()] == [
        "2024-02-29",
        "2024-02-29 13:00:05",
    ]
    assert [str(x) for x in rows.to_pandas().dtypes] == ["object", "datetime64[s]"]
