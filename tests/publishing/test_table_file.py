"""Batches become the bytes of a file as they come."""

import io

import pyarrow as pa
import pyarrow.csv as pacsv
import pyarrow.parquet as pq
import pytest

from dpublish.publishing.table_file import batches_as_bytes

BATCH = pa.record_batch(
    {"ward": pa.array(["a", None, "b"]).dictionary_encode(), "n": pa.array([1, 2, 3])}
)
READ = {
    ".csv": lambda content: pacsv.read_csv(
        io.BytesIO(content), convert_options=pacsv.ConvertOptions(strings_can_be_null=True)
    ),
    ".parquet": lambda content: pq.read_table(io.BytesIO(content)),
    ".arrow": lambda content: pa.ipc.open_file(content).read_all(),
}


@pytest.mark.parametrize("ending", READ)
def test_the_bytes_are_those_of_a_file(ending):
    found = READ[ending](b"".join(batches_as_bytes([BATCH, BATCH], ending)))
    assert found["n"].to_pylist() == [1, 2, 3] * 2
    assert found["ward"].to_pylist() == ["a", None, "b"] * 2


@pytest.mark.parametrize("ending", READ)
def test_bytes_come_before_the_last_batch_is_drawn(ending):
    drawn = []

    def batches():
        for number in range(3):
            drawn.append(number)
            yield BATCH

    coming = batches_as_bytes(batches(), ending)
    assert next(coming)
    assert drawn == [0]
