"""Read a Parquet file that is held in memory, by the calling thread alone."""

import pyarrow as pa
import pyarrow.parquet as pq


def read_parquet(content: bytes) -> pa.Table:
    """Read the content of a Parquet file without starting a native thread.

    `pyarrow.parquet.read_table` scans through Arrow's dataset layer, which hands row groups to
    a worker of Arrow's I/O pool even with `use_threads=False`.  That worker may still let go of
    `content`, a Python object, while the interpreter shuts down, and then aborts the process.
    `ParquetFile.read` decodes in the calling thread, so there is nothing left to wait for.
    """
    with pq.ParquetFile(pa.BufferReader(content), memory_map=False, pre_buffer=False) as file:
        return file.read(use_threads=False)
