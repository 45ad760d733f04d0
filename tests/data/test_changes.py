"""A source that changes, or that is used up, is never read half old and half new."""

import os

import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet as pq
import pytest

from dpublish.aggregates.counts import Counts
from dpublish.data.schema import Schema, column
from dpublish.data.sources import open_table
from dpublish.errors import UnreadableData

BITS = Schema((column("a", "integer", bounds=[0, 1]), column("b", "integer", bounds=[0, 1])))
FIRST = Counts(BITS, ((("a", None),),))
SECOND = Counts(BITS, ((("b", None),),))
BOTH = Counts(BITS, ((("a", None), ("b", None)),))
OLD = {"a": [0, 0, 1, 1], "b": [0, 0, 1, 1]}
NEW = {"a": [1, 1, 0, 0], "b": [1, 1, 0, 0]}


def _write_csv(values, path):
    pd.DataFrame(values).to_csv(path, index=False)


WRITERS = {
    "t.csv": _write_csv,
    "t.parquet": lambda values, path: pq.write_table(pa.table(values), path),
    "t.feather": lambda values, path: pyarrow.feather.write_feather(pa.table(values), str(path)),
}


@pytest.mark.parametrize("cache", [True, False])
@pytest.mark.parametrize("name", WRITERS)
def test_a_file_written_anew_with_as_many_rows_is_noticed(name, cache, tmp_path):
    path = tmp_path / name
    WRITERS[name](OLD, path)
    table = open_table(path, BITS, cache=cache)
    assert table.sum(FIRST).tolist() == [2, 2]
    WRITERS[name](NEW, tmp_path / f"new-{name}")
    os.replace(tmp_path / f"new-{name}", path)
    if cache and name == "t.csv":  # all columns were read with the first
        assert table.sum(BOTH).tolist() == [2, 0, 0, 2]
        return
    with pytest.raises(UnreadableData, match="was changed while it was being read"):
        table.sum(SECOND)


@pytest.mark.parametrize("name", WRITERS)
def test_a_file_that_changes_during_a_scan_is_noticed(name, tmp_path):
    path = tmp_path / name
    WRITERS[name](OLD, path)

    class Meddling(Counts):
        def add(self, batch, out):
            super().add(batch, out)
            os.utime(path, ns=(1, 1))

    table = open_table(path, BITS, cache=False)
    with pytest.raises(UnreadableData, match="was changed while it was being read"):
        table.sum(Meddling(BITS, ((("a", None),),)))


def test_a_file_that_is_gone_is_noticed(tmp_path):
    _write_csv(OLD, tmp_path / "t.csv")
    table = open_table(tmp_path / "t.csv", BITS)
    (tmp_path / "t.csv").unlink()
    with pytest.raises(UnreadableData, match="was changed"):
        table.sum(FIRST)


def _turn_round(frame):
    frame[:] = frame[::-1].to_numpy()


def _add_a_row(frame):
    frame.loc[len(frame)] = [0, 0]


def _overwrite(frame):
    frame["b"] = 1 - frame["b"]


@pytest.mark.parametrize("change", [_turn_round, _add_a_row, _overwrite])
def test_a_pandas_table_is_read_as_it_was_when_it_was_opened(change):
    frame = pd.DataFrame(OLD)
    table = open_table(frame, BITS)
    table.sum(FIRST)
    change(frame)
    assert table.sum(BOTH).tolist() == [2, 0, 0, 2]


def test_a_polars_table_is_read_as_it_was_when_it_was_opened():
    frame = pl.DataFrame(OLD)
    table = open_table(frame, BITS)
    table.sum(FIRST)
    frame.replace_column(1, pl.Series("b", [1, 1, 0, 0]))
    assert table.sum(BOTH).tolist() == [2, 0, 0, 2]


@pytest.mark.parametrize("cache", [True, False])
def test_a_stream_that_broke_does_not_answer_later(cache):
    def rows():
        yield pa.record_batch({"a": [1], "b": [1]})
        raise ValueError("row 4711 is bad")

    header = pa.schema([("a", pa.int64()), ("b", pa.int64())])
    table = open_table(pa.RecordBatchReader.from_batches(header, rows()), BITS, cache=cache)
    for message in ("could not be read to its end", "can be read only once", "only once"):
        with pytest.raises(UnreadableData, match=message) as failed:
            table.sum(BOTH)
        assert "4711" not in str(failed.value)


def test_a_reader_answers_one_table_only():
    reader = pa.table(OLD).to_reader()
    first, second = open_table(reader, BITS), open_table(reader, BITS)
    assert first.sum(BOTH).tolist() == first.sum(BOTH).tolist() == [2, 0, 0, 2]
    for table in (second, open_table(reader, BITS)):
        with pytest.raises(UnreadableData, match="can be read only once, and was"):
            table.sum(BOTH)
