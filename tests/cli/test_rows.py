"""`dpublish rows`: batch by batch into a file of three formats, whole or not at all."""

import os
import signal
import subprocess
import sys
import textwrap
import threading
import time

import duckdb
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow import csv, feather

from dpublish.cli import use
from dpublish.core.folder.folder import load
from dpublish.core.formulas import without_formulas
from dpublish.core.released import BATCH_ROWS
from dpublish.data.query.language import parse_query
from dpublish.errors import InputError
from dpublish.methods.histogram.released import HistogramRelease
from dpublish.publishing import table_file
from dpublish.publishing.table_file import ENDINGS, write_batches

READERS = {".parquet": pq.read_table, ".csv": csv.read_csv, ".arrow": feather.read_table}


@pytest.fixture
def published(release, workdir):
    assert release(epsilon="1").code == 0
    return workdir


def encoded(values, *, entries=None):
    entries = entries or sorted({value for value in values if value is not None})
    codes = [None if value is None else entries.index(value) for value in values]
    return pa.DictionaryArray.from_arrays(pa.array(codes, pa.int32()), pa.array(entries))


def left_in(folder):
    return sorted(path.name for path in folder.iterdir())


@pytest.mark.parametrize("ending", ENDINGS)
def test_a_file_holds_the_rows_that_python_draws(run, published, ending, monkeypatch):
    monkeypatch.setattr(use, "BATCH_ROWS", 7)
    done = run("rows", "out", "-n", "50", "--seed", "3", "-o", f"rows{ending}")
    assert done.out == f"wrote 50 synthetic rows to rows{ending}\n"
    drawn = load(published / "out").rows(50, seed=3)
    assert READERS[ending](published / f"rows{ending}").equals(drawn)
    assert run("rows", "out", "-n", "0", "-o", f"none{ending}").code == 0
    assert READERS[ending](published / f"none{ending}").column_names == ["age", "sex"]


@pytest.mark.parametrize("ending", ENDINGS)
def test_texts_that_come_with_dictionaries_are_plain_texts_in_the_file(tmp_path, ending):
    batches = [
        pa.record_batch({"town": encoded(["Ulm", None, "Bonn"]), "n": [1, 2, 3]}),
        pa.record_batch({"town": encoded(["Köln, West", "Ulm"]), "n": [4, 5]}),  # others
        pa.record_batch({"town": encoded(["Ulm", "Ulm"], entries=["Ulm", None]), "n": [6, 7]}),
    ]
    path = tmp_path / f"rows{ending}"
    assert write_batches(batches, path) == 7
    options = {"convert_options": csv.ConvertOptions(strings_can_be_null=True)}
    found = READERS[ending](path, **(options if ending == ".csv" else {}))
    assert found.schema.field("town").type == pa.string()
    towns = ["Ulm", None, "Bonn", "Köln, West", "Ulm", "Ulm", "Ulm"]
    assert found.to_pydict() == {"town": towns, "n": [1, 2, 3, 4, 5, 6, 7]}
    if ending == ".parquet":
        kinds = duckdb.sql(f"DESCRIBE SELECT * FROM '{path}'").fetchall()
        assert [kind[1] for kind in kinds] == ["VARCHAR", "BIGINT"]
        assert pd.read_parquet(path)["town"].dropna().map(type).unique().tolist() == [str]


def test_written_batches_are_forgotten(tmp_path):
    size, held = 1 << 16, []

    def draw():
        for number in range(40):
            held.append(pa.total_allocated_bytes())
            yield pa.record_batch({"n": np.full(size, number), "f": np.arange(size) + 0.5})

    write_batches(draw(), tmp_path / "rows.arrow")
    assert max(held) - held[0] < 5 * 16 * size  # all would be 40


def test_a_batch_is_drawn_while_another_is_written(tmp_path, monkeypatch):
    is_drawn, waits, shown = threading.Event(), [], []
    plain = table_file._BatchWriter.write

    def write(self, batch):
        waits.append(is_drawn.wait(60))  # ends only if another batch is drawn meanwhile
        plain(self, batch)

    def draw():
        yield pa.record_batch({"n": [1]})
        is_drawn.set()
        yield pa.record_batch({"n": [2]})

    monkeypatch.setattr(table_file._BatchWriter, "write", write)
    write_batches(draw(), tmp_path / "rows.csv", show=shown.append)
    assert waits == [True, True]
    assert shown == [1, 2]
    assert csv.read_csv(tmp_path / "rows.csv").to_pydict() == {"n": [1, 2]}


@pytest.mark.parametrize("ending", ENDINGS)
@pytest.mark.parametrize("fault", [KeyboardInterrupt, ValueError, OSError])
def test_rows_that_fail_half_way_leave_no_file(tmp_path, ending, fault):
    def draw():
        yield pa.record_batch({"n": [1, 2]})
        yield pa.record_batch({"n": [3]})
        raise fault

    with pytest.raises(InputError if fault is OSError else fault):
        write_batches(draw(), tmp_path / f"rows{ending}")
    assert left_in(tmp_path) == []


@pytest.mark.skipif(os.name != "posix", reason="limits of file size are POSIX")
@pytest.mark.parametrize("ending", ENDINGS)
def test_a_disk_that_runs_full_half_way_leaves_no_file(run, published, ending):
    before = left_in(published)
    script = f"""
        import resource
        resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))
        from dpublish.cli import main, use
        use.BATCH_ROWS = 1000
        main(["rows", "out", "-n", "300000", "-o", "rows{ending}"])
    """
    words = [sys.executable, "-c", textwrap.dedent(script)]
    done = subprocess.run(words, cwd=published, capture_output=True, text=True, check=False)
    assert done.returncode == 3
    assert done.stderr.count("\n") == 1, done.stderr
    assert f"cannot write rows{ending}" in done.stderr
    assert "nothing is left there" in done.stderr
    assert left_in(published) == before


@pytest.mark.skipif(os.name != "posix", reason="signals are POSIX")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_a_command_that_is_stopped_half_way_leaves_nothing_under_the_name(published, number):
    before = left_in(published)
    script = """
        import signal
        from itertools import repeat
        import pyarrow as pa
        from dpublish.cli.main import run
        from dpublish.methods.histogram.released import HistogramRelease
        signal.signal(signal.SIGINT, signal.default_int_handler)
        batch = pa.record_batch({"n": range(1000)})
        HistogramRelease.row_batches = lambda self, n=None, **_: repeat(batch)
        run()
    """
    words = [sys.executable, "-c", textwrap.dedent(script), "rows", "out", "-o", "rows.csv"]
    with subprocess.Popen(words, cwd=published, stderr=subprocess.PIPE, text=True) as command:
        until = time.monotonic() + 60
        while not any(path.stat().st_size > 10_000 for path in published.glob(".*.partial")):
            assert command.poll() is None, command.stderr.read()
            assert time.monotonic() < until
            time.sleep(0.01)
        command.send_signal(number)
        assert command.wait(60) == {signal.SIGKILL: -9}.get(number, 128 + number)
    hidden = [path.name for path in published.glob(".*.partial")]
    assert left_in(published) == sorted(before + hidden)
    assert len(hidden) == (number == signal.SIGKILL)  # no one is left to remove it


def test_a_release_that_cannot_draw_under_conditions_says_what_to_do(run, published):
    done = run("rows", "out", "--where", "sex = Female", "-o", "rows.csv")
    assert done.code == 1
    assert "'histogram' does not draw rows that satisfy conditions; draw rows and" in done.err
    assert not (published / "rows.csv").exists()


def test_a_release_without_rows_says_so_with_conditions_too(run, release, published):
    top = {"method": "topk", "columns": None, "column": "age", "count": "2"}
    assert release("top", **top).code == 0
    done = run("rows", "top", "--where", "age = 3", "-o", "rows.csv")
    assert "does not give synthetic rows" in done.err


def test_filled_rows_are_not_drawn_under_conditions(run, release, published):
    assert release("class", method="privpfc", columns=None, target="sex").code == 0
    done = run("rows", "class", "--fill", "--where", "age < 30", "-o", "rows.csv")
    assert done.code == 1
    assert "--fill or --where" in done.err
    assert run("rows", "class", "--fill", "-n", "9", "--seed", "2", "-o", "rows.parquet").code == 0
    drawn = load(published / "class").rows(9, seed=2, fill=True)
    assert pq.read_table(published / "rows.parquet").equals(drawn)


@pytest.fixture
def conditional(published, monkeypatch):
    """Let histograms draw in batches and under conditions, as a coming kind will."""
    asked = []

    def row_batches(self, n=None, *, seed=None, where="", batch_size=BATCH_ROWS):
        parse_query(where)
        asked.append((n, seed, where, batch_size))
        row = pa.record_batch({"age": [70], "sex": encoded(["Female"])})
        return iter([row] * 3)

    monkeypatch.setattr(HistogramRelease, "row_batches", row_batches)
    return asked


def test_conditions_seed_and_number_are_handed_to_a_release_that_takes_them(
    run, published, conditional
):
    where = "sex = Female and age >= 65"
    words = ("-n", "10000000000", "--seed", "4", "--where", where)
    done = run("rows", "out", *words, "-o", "rows.csv")
    assert (done.code, done.out) == (0, "wrote 3 synthetic rows to rows.csv\n")
    ((n, seed, asked, batch_size),) = conditional
    assert (n, seed, asked) == (10_000_000_000, 4, where)
    assert n / batch_size <= 8192  # or the footer of a Parquet file would fill the memory
    assert (published / "rows.csv").read_text() == '"age","sex"\n' + '70,"Female"\n' * 3


def test_conditions_that_cannot_be_read_leave_no_file(run, published, conditional):
    done = run("rows", "out", "--where", "age is 3", "-o", "rows.csv")
    assert done.code == 1
    assert "column = value" in done.err
    assert not (published / "rows.csv").exists()


def test_progress_tells_the_rows_of_the_request(run, published, monkeypatch):
    seen = []

    class Shown:
        def __enter__(self):
            return lambda *told: seen.append(told)

        def __exit__(self, *_):
            return None

    monkeypatch.setattr(use, "show_progress", Shown)
    monkeypatch.setattr(use, "BATCH_ROWS", 2)
    assert run("rows", "out", "-n", "5", "-o", "rows.csv").code == 0
    assert seen == [(2, 5, "2 rows"), (4, 5, "4 rows"), (5, 5, "5 rows")]
    seen.clear()
    assert run("rows", "out", "-o", "more.csv").code == 0
    assert {total for _, total, _ in seen} == {0}  # not named


def test_formulas_in_batches_are_made_harmless_as_in_a_table():
    texts = ["=1+1", None, "-5", "plain", "=1+1"]
    columns = {"=x": encoded(texts), "y": pa.array(texts), "z": pa.array(texts, pa.large_string())}
    harmless = ["'=1+1", None, "-5", "plain", "'=1+1"]
    wanted = {"'=x": harmless, "y": harmless, "z": harmless}
    batch = without_formulas(pa.record_batch(columns))
    assert batch.to_pydict() == wanted
    assert [str(kind) for kind in batch.schema.types] == ["string", "string", "large_string"]
    twice = pa.concat_tables([pa.table(columns)] * 2)
    assert without_formulas(twice).to_pydict() == {name: 2 * v for name, v in wanted.items()}
