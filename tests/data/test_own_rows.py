"""Rows that their owner hands to a release: from files, frames, Arrow or lists, or refused."""

import polars as pl
import pyarrow as pa
import pytest
from pyarrow import csv, feather, parquet

from dpublish.data.own_rows import own_rows
from dpublish.errors import InvalidParameter, InvalidQuery, InvalidType, UnreadableData

ROWS = pa.table({"note": list("abc"), "y": [1.0, None, 3.0], "x": [5, 6, 7]})


def write(folder, ending):
    path = folder / f"new.{ending}"
    {"csv": csv.write_csv, "parquet": parquet.write_table, "arrow": feather.write_feather}[ending](
        ROWS, str(path)
    )
    return path


@pytest.mark.parametrize("ending", ["csv", "parquet", "arrow"])
@pytest.mark.parametrize("kind", [str, lambda path: path])
def test_files_are_read_column_by_column(tmp_path, ending, kind):
    found = own_rows(kind(write(tmp_path, ending)), ["x", "y"])
    assert found.column_names == ["x", "y"]
    assert [int(value) for value in found["x"].to_pylist()] == [5, 6, 7]


def test_a_folder_of_files_is_one_table(tmp_path):
    for name in ("a", "b"):
        parquet.write_table(ROWS, tmp_path / f"{name}.parquet")
    assert own_rows(tmp_path, ["x"])["x"].to_pylist() == [5, 6, 7] * 2


@pytest.mark.parametrize(
    "make",
    [
        lambda: ROWS,
        lambda: ROWS.to_pandas(),
        lambda: pl.from_arrow(ROWS),
        lambda: pl.from_arrow(ROWS).lazy(),
        lambda: ROWS.to_pydict(),
        lambda: ROWS.combine_chunks().to_batches()[0],
        lambda: pa.RecordBatchReader.from_batches(ROWS.schema, ROWS.to_batches()),
    ],
)
def test_frames_arrow_and_lists_are_the_same_rows(make):
    assert own_rows(make(), ["x"])["x"].to_pylist() == [5, 6, 7]


@pytest.mark.parametrize("rows", [None, 3, [1, 2], object(), {"x": 3}, {"x": [1, 2], "y": [1]}])
def test_anything_else_is_refused_by_its_type(rows):
    with pytest.raises(InvalidType) as refused:
        own_rows(rows, ["x"])
    assert isinstance(refused.value, InvalidParameter)


def test_what_is_not_there_is_refused(tmp_path):
    with pytest.raises(UnreadableData, match="there is no file"):
        own_rows(tmp_path / "nowhere.csv", ["x"])
    for rows in (ROWS, ROWS.to_pandas(), write(tmp_path, "csv")):
        with pytest.raises(InvalidQuery, match="column 'z'"):
            own_rows(rows, ["x", "z"])
    twice = pa.Table.from_arrays([ROWS["x"], ROWS["x"]], names=["x", "x"])
    with pytest.raises(InvalidQuery, match="once"):
        own_rows(twice, ["x"])
