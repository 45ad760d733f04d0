"""Time what `dpublish rows` writes: fifteen columns, batch by batch, in each format.

A stand-in draws the batches: nine columns of texts that come with their dictionaries, four
of integers, one of reals and one of dates, in about the time that a table lookup takes.
The reference is pyarrow, which writes a table of plain texts that is in memory as a whole.

Run: .venv/bin/python benchmarks/speed/row_files.py [--rows N]
"""

import argparse
import resource
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter, process_time

import numpy as np
import pyarrow as pa
from rich.console import Console
from rich.table import Table

from dpublish.core.released import BATCH_ROWS
from dpublish.publishing.table_file import ENDINGS, write_batches, write_table
from dpublish.randomness import plain_generator

ROWS = 1 << 23
TEXTS = (2, 5, 16, 9, 42, 7, 3, 15, 4)  # values of each column


def batches(rows: int) -> Iterator[pa.RecordBatch]:
    """Draw batches in about the time of a table lookup: a pool of rows, turned around."""
    rng = plain_generator(1)
    pool: dict[str, np.ndarray] = {}
    for number, size in enumerate(TEXTS):
        pool[f"text{number}"] = rng.integers(0, size, BATCH_ROWS).astype(np.int32)
    for number in range(4):
        pool[f"integer{number}"] = rng.integers(0, 100_000, BATCH_ROWS)
    pool["real"] = rng.random(BATCH_ROWS) * 100
    pool["day"] = rng.integers(10_000, 20_000, BATCH_ROWS).astype("datetime64[D]")
    values = {f"text{n}": pa.array([f"value {v}" for v in range(k)]) for n, k in enumerate(TEXTS)}
    for start in range(0, rows, BATCH_ROWS):
        size = min(BATCH_ROWS, rows - start)
        drawn = {name: pa.array(np.roll(along, start)[:size]) for name, along in pool.items()}
        yield pa.record_batch(
            {
                name: pa.DictionaryArray.from_arrays(along, values[name])
                if name in values
                else along
                for name, along in drawn.items()
            }
        )


def main() -> None:
    parser = argparse.ArgumentParser(description="Speed of writing synthetic rows")
    parser.add_argument("--rows", type=int, default=ROWS, help="how many rows")
    rows = parser.parse_args().rows
    shown = Table("format", "million rows/s", "CPU s per million", "file (MB)", "peak memory (MB)")
    figures = []
    with TemporaryDirectory() as folder:
        for ending in ENDINGS:
            path = Path(folder) / f"rows{ending}"
            start, cpu = perf_counter(), process_time()
            write_batches(batches(rows), path)
            speed = rows / (perf_counter() - start) / 1e6
            each = (process_time() - cpu) / rows * 1e6
            peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
            size = path.stat().st_size / 1e6
            path.unlink()
            shown.add_row(ending, f"{speed:.2f}", f"{each:.2f}", f"{size:,.0f}", f"{peak:.0f}")
            figures += [f"{ending[1:]}_speed={speed:.2f}", f"{ending[1:]}_cpu={each:.2f}"]
        whole = pa.Table.from_batches(batches(1 << 20))
        names = whole.column_names
        plain = pa.table(
            [pa.concat_arrays([_decoded(c) for c in x.chunks]) for x in whole.columns], names=names
        )
        for ending in ENDINGS:
            cpu = process_time()
            write_table(plain, Path(folder) / f"whole{ending}")
            each = (process_time() - cpu) / plain.num_rows * 1e6
            shown.add_row(f"{ending}, pyarrow, a table of texts", "", f"{each:.2f}", "", "")
            figures.append(f"{ending[1:]}_plain_cpu={each:.2f}")
    Console().print(shown)
    print(" ".join(["RESULT", *figures]))


def _decoded(column: pa.Array) -> pa.Array:
    return column.dictionary_decode() if pa.types.is_dictionary(column.type) else column


if __name__ == "__main__":
    main()
