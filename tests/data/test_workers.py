"""Several processes on one table: the same answers, bit by bit, or an error that tells nothing."""

import gc
import importlib
import inspect
import os
import pickle
import pkgutil
import resource
import signal
import subprocess
import sys
import textwrap
import threading
import time
from collections import Counter
from contextlib import contextmanager
from fractions import Fraction
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet as pq
import pytest

import dpublish
from data.nasty_tables import DISGUISES, SCHEMA, arrow, count_by_hand, make_rows
from dpublish.aggregates.counts import Counts
from dpublish.aggregates.sparse_counts import SparseCounts, Tally
from dpublish.core.registry import make_method
from dpublish.data.box import Box
from dpublish.data.engines import (
    arrow_reader,
    dealt_rows,
    shared,
    source,
    split_rows,
    worker,
    workers,
)
from dpublish.data.engines.messages import Queues, pack_kernel
from dpublish.data.engines.workers import Workers, count_threads
from dpublish.data.query.language import parse_query
from dpublish.data.schema import Schema
from dpublish.data.sources import open_table
from dpublish.errors import InvalidParameter, UnreadableData
from dpublish.methods.dpcopula.kernels import Grouping, GroupScoreProducts
from dpublish.methods.dpcopula.mle import BlockMoments
from dpublish.methods.kmeans.kernels import PairCounts
from dpublish.privacy.budget import Budget
from dpublish.publishing.svt.kernel import Matching
from dpublish.randomness import plain_generator, secure, seeded
from method_examples import CASES
from method_examples import SCHEMA as EXAMPLE_SCHEMA

WHOLE = Counts(SCHEMA, (tuple((name, None) for name in SCHEMA.names),))
LETTERS = Counts(SCHEMA, ((("letter", None),),))
TOTAL = Counts(SCHEMA, ((),))


@pytest.fixture(scope="module", autouse=True)
def _small_is_large():
    """Let workers take part in tables of a few rows."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(shared, "LARGE", 1)
        patch.setattr(arrow_reader, "PIECE_ROWS", 100)
        patch.setattr(split_rows, "PIECE_ROWS", 100)
        patch.setattr(dealt_rows, "WINDOW_ROWS", 97)
        patch.setattr(source, "BATCH_ROWS", 50)
        patch.setattr(workers, "_START", 60.0)
        yield


def crew(table):
    """Return the workers of a table; it must have been summed up once."""
    return table._columns._rows._rows._workers


def start(table, kernel=TOTAL):
    """Wait until all workers of a table have started."""
    table.sum(kernel)
    crew(table).wait_until_ready()
    crew(table).look()
    assert crew(table).are_all_ready
    return table


@contextmanager
def shared_out():
    """Let no process help another, and list how many pieces the workers answer for."""
    seen = []
    take, merge = Queues.take, Workers.merge

    def count(self, asked, kernel, out):
        found = merge(self, asked, kernel, out)
        seen.append(found)
        return found

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Queues, "take", lambda self, owner, others: take(self, owner, others=False))
        patch.setattr(Workers, "merge", count)
        yield seen


def write_parts(table, folder, files=3):
    folder.mkdir()
    size = -(-len(table) // files)
    for number in range(files):
        part = table.slice(number * size, size)
        pq.write_table(part, folder / f"part-{number}.parquet", row_group_size=60)
    return folder


# --- Every kernel ---------------------------------------------------------------------------------


def example_rows(count=600):
    rng = plain_generator(3)
    pick = lambda values: [values[i] for i in rng.integers(len(values), size=count)]  # noqa: E731
    return pa.table(
        {
            "age": pa.array(pick([None, 3, 31, 44, 64, 250, -7]), pa.int64()),
            "sex": pa.array(pick(["Female", "Male", "Male", None, "?"])),
            "height": pa.array(pick([None, float("nan"), 1e300, 160.0, 171.5, 188.25, 100.0])),
            "town": pa.array(pick(["Ost", "West", "Nord", "Sued", " Ost", "x", None])),
        }
    )


class Listening:
    """A table that notes what is summed up, here and in the tables made from it."""

    def __init__(self, table, kernels):
        self._table, self._kernels = table, kernels
        self.schema, self.neighbors = table.schema, table.neighbors
        self.is_bounded, self.steps, self.made = table.is_bounded, table.steps, table.made
        self.opened = table.opened

    def sum(self, kernel):
        self._kernels.append(kernel)
        return self._table.sum(kernel)

    def __getattr__(self, name):
        made = getattr(self._table, name)

        def wrapped(*args, **options):
            result = made(*args, **options)
            if isinstance(result, list):
                return [Listening(one, self._kernels) for one in result]
            return Listening(result, self._kernels)

        return wrapped


@pytest.fixture(scope="module")
def kernels():
    """Sum up whatever the methods sum up; keep some kernels of each class."""
    found = []
    rows = example_rows(120)
    for name, settings in CASES:
        table = Listening(open_table(rows, EXAMPLE_SCHEMA, threads=1), found)
        make_method(name, settings).release(table, budget=Budget.seeded(1), rng=seeded(1))
    found.append(Matching(EXAMPLE_SCHEMA, parse_query("age >= 30 and town = Ost")))
    box = Box.of(EXAMPLE_SCHEMA, ("age", "height"))
    found.append(PairCounts(box, 4))
    by_sex = Grouping(EXAMPLE_SCHEMA, ("sex",), np.array([1, 0]))
    scores = tuple(
        np.arange(2 * EXAMPLE_SCHEMA[name].size).reshape(2, -1) for name in ("age", "height")
    )
    found.append(GroupScoreProducts(by_sex, ("age", "height"), scores))
    kept = {}
    for kernel in found:
        kept.setdefault(type(kernel), []).append(kernel)
    return [one for many in kept.values() for one in (many[:2] + many[-1:])]


def shipped_kernels():
    """List the concrete classes of the package that can be summed up."""
    verbs = ("codes", "values", "zero", "add", "merge")
    for module in pkgutil.walk_packages(dpublish.__path__, "dpublish."):
        if "__main__" in module.name or ".spark" in module.name:
            continue
        for item in vars(importlib.import_module(module.name)).values():
            is_class = inspect.isclass(item) and item.__module__ == module.name
            is_complete = is_class and all(hasattr(item, verb) for verb in verbs)
            is_open = inspect.isabstract(item) or getattr(item, "_is_protocol", False)
            if is_complete and not is_open:
                yield item


def plain(answer):
    """Bring an answer into a form that can be compared, bit by bit."""
    if isinstance(answer, Tally):
        return plain(list(answer.compact()))
    if isinstance(answer, list | tuple):
        return [plain(one) for one in answer]
    if isinstance(answer, np.ndarray):
        return answer.dtype.str, answer.shape, answer.tobytes()
    return answer


def test_every_kernel_that_ships_is_among_those_tried(kernels):
    assert {type(kernel) for kernel in kernels} >= set(shipped_kernels())
    assert len({type(kernel) for kernel in kernels}) > 20


@pytest.fixture(scope="module")
def example_parts(tmp_path_factory):
    return write_parts(example_rows(), tmp_path_factory.mktemp("examples") / "parts")


@pytest.mark.parametrize("cache", [True, False])
@pytest.mark.parametrize("threads", [2, 3])
def test_every_kernel_gives_the_same_bits(threads, cache, kernels, example_parts):
    alone = open_table(example_parts, EXAMPLE_SCHEMA, threads=1)
    table = open_table(example_parts, EXAMPLE_SCHEMA, threads=threads, cache=cache)
    start(table, Counts(EXAMPLE_SCHEMA, ((),)))
    for kernel in kernels:
        if isinstance(kernel, BlockMoments):
            continue  # it draws
        with shared_out() as pieces:
            assert plain(table.sum(kernel)) == plain(alone.sum(kernel)), kernel
        assert pieces[0] >= 2


# --- Every source ---------------------------------------------------------------------------------

ROWS = make_rows(700)
SOURCES = [
    "csv",
    "zipped csv",
    "parquet",
    "parquet folder",
    "parquet pattern",
    "feather",
    "arrow stream file",
    "arrow",
    "arrow reader",
    "unknown stream",
    "pandas",
    "pandas objects",
    "polars",
    "polars lazy",
    "duckdb relation",
    "duckdb file",
]


@pytest.fixture(scope="module")
def answers():
    """What one process finds."""
    alone = open_table(arrow(ROWS), SCHEMA, threads=1)
    few = alone.only("letter", [0, 2]).only("sign", [1], keep=True)
    return [plain(x) for x in sums_of(alone)], plain(few.sum(kernel_of(few.schema)))


def kernel_of(schema):
    return Counts(schema, (tuple((name, None) for name in schema.names),))


def sums_of(table):
    yield table.sum(LETTERS)
    yield table.sum(WHOLE)
    yield table.sum(TOTAL)
    yield table.sum(SparseCounts(SCHEMA, (("hours", None), ("sign", None))))


@pytest.mark.parametrize("cache", [True, False])
@pytest.mark.parametrize("disguise", SOURCES)
def test_every_source_gives_the_same_bits(disguise, cache, answers, tmp_path):
    rows, options = DISGUISES[disguise](ROWS, tmp_path)
    table = start(open_table(rows, SCHEMA, cache=cache, threads=2, **options))
    with shared_out() as pieces:
        assert [plain(x) for x in sums_of(table)] == answers[0]
        few = table.only("letter", [0, 2]).only("sign", [1], keep=True)
        for _ in range(2):
            assert plain(few.sum(kernel_of(few.schema))) == answers[1]
    assert all(found > 0 for found in pieces)
    assert len(pieces) == 6


def test_rows_that_are_dealt_out_are_counted_as_by_hand(tmp_path):
    table = start(open_table(arrow(ROWS), SCHEMA, threads=3))
    assert np.array_equal(table.sum(WHOLE), count_by_hand(ROWS).ravel())
    assert len(set(table._columns._rows._rows._owners)) == 3


def test_several_csv_and_arrow_files_are_read_by_all_processes(tmp_path):
    data = arrow(ROWS)
    for kind in ("csv", "feather"):
        (tmp_path / kind).mkdir()
    for number in range(4):
        rows = ROWS[number * 175 : (number + 1) * 175]
        part = data.slice(number * 175, 175)
        pyarrow.feather.write_feather(part, str(tmp_path / f"feather/{number}.feather"))
        path, _ = DISGUISES["csv"](rows, tmp_path)
        os.replace(path, tmp_path / f"csv/{number}.csv")
    for kind in ("csv", "feather"):
        table = start(open_table(tmp_path / kind, SCHEMA, threads=2))
        assert type(table._columns._rows._rows).__name__ == "SplitRows"
        with shared_out() as pieces:
            assert np.array_equal(table.sum(WHOLE), count_by_hand(ROWS).ravel())
        assert pieces[0] >= 1


def test_record_batches_of_an_arrow_file_are_shared_out(tmp_path):
    data = arrow(ROWS)
    with pa.ipc.new_file(str(tmp_path / "t.arrow"), data.schema) as writer:
        writer.write_table(data, max_chunksize=50)
    pieces = arrow_reader.IpcSource(str(tmp_path / "t.arrow")).cut()
    assert sorted(n for piece in pieces for n in piece.numbers) == list(range(14))
    table = start(open_table(tmp_path / "t.arrow", SCHEMA, threads=2))
    assert np.array_equal(table.sum(WHOLE), count_by_hand(ROWS).ravel())


@pytest.mark.parametrize("size", [0, 1, 96, 97, 98, 194])
def test_windows_may_be_few_or_none(size):
    rows = ROWS[:size]
    for cache in (True, False):
        table = open_table(arrow(rows), SCHEMA, threads=2, cache=cache)
        for _ in range(2):
            assert np.array_equal(table.sum(WHOLE), count_by_hand(rows).ravel())


def test_units_are_told_apart_by_one_process(tmp_path):
    schema = Schema(SCHEMA.columns, unit="count")
    kernel = Counts(schema, ((("letter", None),),))
    folder = write_parts(arrow(ROWS), tmp_path / "parts")
    found = [open_table(folder, schema, threads=n).sum(kernel) for n in (1, 2, 3)]
    assert np.array_equal(found[0], found[1])
    assert np.array_equal(found[0], found[2])


def test_samples_and_blocks_stay_what_they_were(tmp_path):
    folder = write_parts(arrow(ROWS), tmp_path / "parts")
    made = []
    for threads in (1, 2):
        table = open_table(folder, SCHEMA, threads=threads)
        table.sum(LETTERS)
        rates = [Fraction(1, 2)] * 2
        parts = [
            table.sample(Fraction(1, 3), seeded(5)),
            *table.split(3, seeded(6)),
            table.sample_by("sign", rates, seeded(7), SCHEMA.names),
        ]
        made.append([plain(part.sum(WHOLE)) for part in parts])
        whole = Schema(SCHEMA.columns, unit="count")
        bounded = open_table(folder, whole, threads=threads).bound(2, b"key")
        made[-1].append(plain(bounded.sum(LETTERS)))
    assert made[0] == made[1]


def test_what_was_picked_is_forgotten_with_its_table(tmp_path):
    folder = write_parts(arrow(ROWS), tmp_path / "parts")
    table = start(open_table(folder, SCHEMA, threads=2))
    own = table._columns._rows._rows._shard
    few = table.only("letter", [0], keep=True)
    few.sum(LETTERS)
    assert own._picked
    del few
    gc.collect()
    table.sum(LETTERS)
    assert not own._picked


# --- Whole releases -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "settings"),
    [
        ("histogram", {"columns": ("age", "sex")}),
        ("histogram", {"columns": ("age", "town"), "threshold": 3}),
        ("privpfc", {"target": "sex", "rounds": 2}),
        ("kmeans", {"n_clusters": 2}),
        ("dplloyd", {"n_clusters": 2}),
        ("dpcopula", {"correlation": "spearman"}),
        ("dpcopula", {"correlation": "kendall", "columns": ("age", "height", "sex")}),
        ("dpcopula", {"correlation": "mle", "columns": ("age", "height")}),
        ("dpcopula-hybrid", {"design": "cells", "least_records": 1}),
    ],
)
def test_a_seed_gives_the_same_release_however_many_processes_work(name, settings, example_parts):
    made = []
    for threads in (1, 2):
        table = open_table(example_parts, EXAMPLE_SCHEMA, threads=threads)
        if threads == 2:
            start(table, Counts(EXAMPLE_SCHEMA, ((),)))
        method = make_method(name, settings)
        release = method.release(table, budget=Budget.seeded(1), rng=seeded(11))
        made.append({name: one.to_pydict() for name, one in release.tables().items()})
    assert made[0] == made[1]


# --- Which kernels may go -------------------------------------------------------------------------


def moments(rng):
    scores = tuple(np.arange(EXAMPLE_SCHEMA[name].size) for name in ("age", "height"))
    return BlockMoments(EXAMPLE_SCHEMA, ("age", "height"), scores, 3, rng)


def test_a_kernel_that_draws_from_a_stream_is_never_copied():
    assert pack_kernel(moments(seeded(1))) is None
    assert pack_kernel(moments(secure())) is not None
    drawing = Drawing(EXAMPLE_SCHEMA, ((),))
    object.__setattr__(drawing, "generator", plain_generator(1))
    assert pack_kernel(drawing) is None


class Drawing(Counts):
    """A kernel that holds a generator."""


class Homeless(Counts):
    """A kernel of a module that other processes do not have."""

    __module__ = "only_here"


class Locked(Counts):
    """A kernel that cannot be pickled."""

    def __reduce__(self):
        raise TypeError("no")


def test_a_kernel_of_the_main_program_stays_there(monkeypatch):
    assert pack_kernel(LETTERS) is not None
    monkeypatch.setattr(Drawing, "__module__", "__main__")
    monkeypatch.setattr(sys.modules["__main__"], "Drawing", Drawing, raising=False)
    assert pack_kernel(Drawing(SCHEMA, LETTERS.sets)) is None


@pytest.mark.parametrize("disguise", ["csv", "arrow"])
def test_columns_that_only_this_process_has_read_are_dealt_out_later(disguise, tmp_path):
    rows, _ = DISGUISES[disguise](ROWS, tmp_path)
    table = start(open_table(rows, SCHEMA, threads=2))
    signs, both = ((("sign", None),),), ((("sign", None), ("count", None)),)
    plain = open_table(rows, SCHEMA, threads=1)
    for kernel in (Locked(SCHEMA, signs), Counts(SCHEMA, signs), Counts(SCHEMA, both)):
        assert np.array_equal(table.sum(kernel), plain.sum(Counts(SCHEMA, kernel.sets)))


def test_many_open_files_do_not_keep_workers_from_being_used(tmp_path):
    limit, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    if most != resource.RLIM_INFINITY and most < 2048:
        pytest.skip("this system allows too few open files")
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(limit, 2048), most))
    opened = []
    try:
        opened += [os.open(os.devnull, os.O_RDONLY) for _ in range(1100)]
        rows, _ = DISGUISES["arrow"](ROWS, tmp_path)
        table = start(open_table(rows, SCHEMA, threads=2, cache=False))
        expected = open_table(rows, SCHEMA, threads=1).sum(LETTERS)
        assert np.array_equal(table.sum(LETTERS), expected)
    finally:
        for descriptor in opened:
            os.close(descriptor)
        resource.setrlimit(resource.RLIMIT_NOFILE, (limit, most))


@pytest.mark.parametrize("cache", [True, False])
@pytest.mark.parametrize("disguise", ["parquet folder", "arrow"])
@pytest.mark.parametrize("kind", [Homeless, Locked])
def test_a_kernel_that_workers_cannot_make_out_is_summed_up_here(
    kind, disguise, cache, tmp_path, monkeypatch
):
    monkeypatch.setitem(sys.modules, "only_here", SimpleNamespace(Homeless=Homeless))
    rows, _ = DISGUISES[disguise](ROWS, tmp_path)
    table = start(open_table(rows, SCHEMA, threads=2, cache=cache))
    expected = table.sum(LETTERS)
    kernel = kind(SCHEMA, LETTERS.sets)
    assert (pack_kernel(kernel) is None) == (kind is Locked)
    for _ in range(2):
        assert np.array_equal(table.sum(kernel), expected)
    assert np.array_equal(table.sum(LETTERS), expected)
    assert crew(table).are_ours


# --- What can go wrong ----------------------------------------------------------------------------


@pytest.fixture
def table(tmp_path):
    return start(open_table(write_parts(arrow(ROWS), tmp_path / "parts"), SCHEMA, threads=2))


def test_a_killed_worker_gives_an_error_and_the_next_sum_is_right(table):
    (worker,) = crew(table).ready
    worker.process.send_signal(signal.SIGSTOP)  # it is in the middle of a sum
    killer = threading.Timer(0.3, worker.process.kill)
    killer.start()
    with shared_out(), pytest.raises(UnreadableData, match="a worker process ended") as failed:
        table.sum(WHOLE)
    killer.join()
    assert failed.value.__context__ is None
    assert np.array_equal(table.sum(WHOLE), count_by_hand(ROWS).ravel())


@pytest.mark.parametrize("cache", [True, False])
def test_a_worker_killed_while_rows_are_dealt_out_gives_an_error(cache):
    table = start(open_table(arrow(ROWS), SCHEMA, threads=2, cache=cache))
    (worker,) = crew(table).ready
    worker.process.kill()
    worker.process.wait()
    with pytest.raises(UnreadableData, match="a worker process ended") as failed:
        table.sum(WHOLE)
    assert failed.value.__context__ is None
    assert np.array_equal(table.sum(WHOLE), count_by_hand(ROWS).ravel())


def test_workers_end_with_the_table():
    table = start(open_table(arrow(ROWS), SCHEMA, threads=2))
    process = crew(table).ready[0].process
    assert process.poll() is None
    del table
    gc.collect()
    assert process.poll() is not None


def test_an_interrupted_sum_leaves_nothing_half_done(table, monkeypatch):
    process = crew(table).ready[0].process

    def interrupt(*_args):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(Counts, "add", interrupt)
        with pytest.raises(KeyboardInterrupt):
            table.sum(WHOLE)
    assert process.poll() is not None
    assert np.array_equal(table.sum(WHOLE), count_by_hand(ROWS).ravel())


def test_a_signal_of_the_keyboard_does_not_end_a_worker(table):
    (worker,) = crew(table).ready
    worker.process.send_signal(signal.SIGINT)
    with shared_out() as pieces:
        assert np.array_equal(table.sum(WHOLE), count_by_hand(ROWS).ravel())
    assert pieces[0] >= 1


def test_workers_that_cannot_start_are_done_without(tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "executable", "/bin/false")
    for rows in (write_parts(arrow(ROWS), tmp_path / "parts"), arrow(ROWS)):
        for cache in (True, False):
            table = open_table(rows, SCHEMA, threads=2, cache=cache)
            for _ in range(2):
                assert np.array_equal(table.sum(WHOLE), count_by_hand(ROWS).ravel())
    monkeypatch.setattr(sys, "executable", "")
    table = open_table(arrow(ROWS), SCHEMA, threads=2)
    assert np.array_equal(table.sum(WHOLE), count_by_hand(ROWS).ravel())
    assert not hasattr(table._columns, "sum")


@pytest.mark.parametrize("forbidden", ["subprocess.Popen", "os.pipe"])
def test_workers_that_the_system_refuses_are_done_without(forbidden, tmp_path, monkeypatch):
    def refuse(*_args, **_options):
        raise OSError("no more of these")

    monkeypatch.setattr(forbidden, refuse)
    for rows in (write_parts(arrow(ROWS), tmp_path / "parts"), arrow(ROWS)):
        for cache in (True, False):
            table = open_table(rows, SCHEMA, threads=3, cache=cache)
            for _ in range(2):
                assert np.array_equal(table.sum(WHOLE), count_by_hand(ROWS).ravel())


def test_a_program_that_never_answers_is_done_without(tmp_path, monkeypatch):
    program = tmp_path / "python"
    program.write_text("#!/bin/sh\nexec sleep 60\n")
    program.chmod(0o700)
    monkeypatch.setattr(sys, "executable", str(program))
    monkeypatch.setattr(workers, "_START", 0.1)
    for rows in (write_parts(arrow(ROWS), tmp_path / "parts"), arrow(ROWS)):
        table = open_table(rows, SCHEMA, threads=2)
        for _ in range(2):
            assert np.array_equal(table.sum(WHOLE), count_by_hand(ROWS).ravel())


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="needs /proc")
def test_a_worker_inherits_no_other_open_file_and_shows_no_path(table, tmp_path):
    with open(tmp_path / "secret", "w") as file:
        os.set_inheritable(file.fileno(), True)
        other = start(open_table(tmp_path / "parts", SCHEMA, threads=2))
        process = crew(other).ready[0].process.pid
        found = [os.readlink(f"/proc/{process}/fd/{n}") for n in os.listdir(f"/proc/{process}/fd")]
    kinds = Counter(name.partition(":")[0] for name in found)
    assert kinds == {"/dev/null": 3, "socket": 1, "pipe": 2}
    assert str(tmp_path) not in Path(f"/proc/{process}/cmdline").read_text()


def test_a_changed_file_is_noticed_by_whoever_reads_it(table, tmp_path):
    table.sum(LETTERS)
    for part in (tmp_path / "parts").iterdir():
        os.utime(part, ns=(1, 1))
    with pytest.raises(UnreadableData, match="was changed while it was being read"):
        table.sum(WHOLE)


def test_a_damaged_file_is_not_quoted(tmp_path):
    folder = write_parts(arrow(ROWS), tmp_path / "parts")
    damaged = folder / "part-1.parquet"
    raw = bytearray(damaged.read_bytes())
    raw[4:2000] = b"\xff" * 1996
    damaged.write_bytes(raw)
    messages = set()
    for threads in (1, 2):
        table = open_table(folder, SCHEMA, threads=threads)
        with pytest.raises(UnreadableData) as failed:
            table.sum(WHOLE)
        assert failed.value.__context__ is None
        messages.add(str(failed.value).replace(str(folder), "").replace("/part-1.parquet", ""))
    assert messages == {" could not be read to its end; check that all of it can be read"}


@pytest.mark.parametrize(
    ("error", "kind", "message"),
    [
        (MemoryError("4711 rows"), UnreadableData, "there is not enough memory to read the rows"),
        (ValueError("row 4711"), UnreadableData, "a worker process could not sum up its rows"),
        (InvalidParameter("as it was said"), InvalidParameter, "as it was said"),
    ],
)
def test_what_goes_wrong_in_a_worker_is_told_in_fixed_words(
    error, kind, message, tmp_path, monkeypatch
):
    def fail(*_args):
        raise error

    folder = write_parts(arrow(ROWS), tmp_path / "parts")
    pieces = arrow_reader.ParquetSource(str(folder / "part-0.parquet")).cut()
    queues = Queues.make(1)
    queues.put(0, 0)
    monkeypatch.setattr(Counts, "add", fail)
    setup = worker.Setup(0, os.getpid(), queues.readers, SCHEMA, tuple(pieces), cache=True)
    request = worker.SumPieces(pack_kernel(LETTERS), (), others=False, forgotten=())
    answer = worker._Worker(setup).handle(request)
    queues.close()
    assert "4711" not in repr(answer)
    with pytest.raises(kind, match=message) as failed:
        workers._require_done(answer)
    assert failed.value.__context__ is None


PARENT = """
    import sys, time
    from dpublish.data.engines import shared, split_rows, arrow_reader
    from dpublish.data.sources import open_table
    from dpublish.data.schema import Schema, column
    from dpublish.aggregates.counts import Counts

    shared.LARGE = split_rows.PIECE_ROWS = arrow_reader.PIECE_ROWS = 1
    schema = Schema((column("count", "integer", bounds=[0, 9], missing="drop"),))
    kernel = Counts(schema, ((("count", None),),))
    table = open_table(sys.argv[1], schema, threads=2)
    table.sum(kernel)
    workers = table._columns._rows._rows._workers
    workers.wait_until_ready()
    print(workers._all[0].process.pid, table.sum(kernel).sum(), flush=True)
"""


def run_parent(folder, rest):
    program = textwrap.dedent(PARENT) + textwrap.dedent(rest)
    return subprocess.Popen(
        [sys.executable, "-W", "error", "-c", program, str(folder)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
    )


def is_running(process):
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="needs /proc")
@pytest.mark.parametrize("end", ["killed", "ended", "forked"])
def test_no_worker_outlives_its_parent(end, tmp_path):
    folder = write_parts(arrow(ROWS), tmp_path / "parts")
    rest = {
        "killed": "time.sleep(60)",
        "ended": "",
        # A copy of the parent reads the rows itself, and leaves the workers alone.
        "forked": """
            import os
            child = os.fork()
            total = int(table.sum(kernel).sum())
            if not child:
                print("child", total, flush=True)
                del table, workers
                os._exit(0)
            os.waitpid(child, 0)
            print("parent", total, int(table.sum(kernel).sum()), flush=True)
        """,
    }[end]
    parent = run_parent(folder, rest)
    with parent:
        process, total = map(int, parent.stdout.readline().split())
        if end == "killed":
            assert is_running(process)
            parent.kill()
        out, err = parent.communicate(timeout=60)
    known = sum(row["count"] is not None for row in ROWS)
    assert total == known
    assert err == ""
    if end == "forked":
        assert sorted(out.split("\n")) == ["", f"child {known}", f"parent {known} {known}"]
    until = time.monotonic() + 20
    while is_running(process) and time.monotonic() < until:
        time.sleep(0.05)
    assert not is_running(process)


def test_a_worker_does_not_wait_for_pandas():
    program = """
        import sys
        from dpublish.data.engines.worker import _spare_pandas
        _spare_pandas()
        import pyarrow as pa
        pa.array([1.5]).fill_null(0).to_numpy(zero_copy_only=False)
        print("pandas" in sys.modules)
        import pandas  # whoever wants it still can
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(program)],
        capture_output=True,
        text=True,
        check=True,
        env=os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
    )
    assert done.stdout == "False\n"


def test_two_threads_may_use_one_table(table):
    found = []
    running = [
        threading.Thread(target=lambda: found.extend(table.sum(WHOLE) for _ in range(5)))
        for _ in range(3)
    ]
    for one in running:
        one.start()
    for one in running:
        one.join()
    assert len(found) == 15
    assert all(np.array_equal(one, count_by_hand(ROWS).ravel()) for one in found)


# --- When there are workers at all ----------------------------------------------------------------


def test_a_small_table_has_no_workers(tmp_path, monkeypatch):
    monkeypatch.setattr(shared, "LARGE", 701)
    monkeypatch.setattr(Workers, "__init__", None)  # cannot be made
    for rows in (write_parts(arrow(ROWS), tmp_path / "parts"), arrow(ROWS)):
        for cache in (True, False):
            table = open_table(rows, SCHEMA, threads=8, cache=cache)
            for kernel in (LETTERS, WHOLE):
                table.sum(kernel)
            assert np.array_equal(table.sum(WHOLE), count_by_hand(ROWS).ravel())


def test_one_thread_means_no_workers():
    table = open_table(arrow(ROWS), SCHEMA, threads=1)
    assert type(table._columns).__name__ == "CachedColumns"


@pytest.mark.parametrize("threads", [0, -1, 1.5, "2", True])
def test_a_number_of_threads_that_makes_no_sense_is_refused(threads):
    with pytest.raises(InvalidParameter, match=r"threads .* must be an integer from 1"):
        open_table(pd.DataFrame({"a": [1]}), SCHEMA, threads=threads)


def test_all_cores_are_those_that_this_process_may_use(monkeypatch):
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 3, 5}, raising=False)
    assert count_threads(None) == 3
    monkeypatch.delattr(os, "sched_getaffinity")
    monkeypatch.setattr(os, "cpu_count", lambda: None)
    assert count_threads(None) == 1


def test_a_table_with_workers_shows_names_and_nothing_else(table):
    assert repr(table) == "LocalTable(hours, slope, count, letter, sign)"
    for item in (table, table._columns, table._columns._rows, crew(table)):
        with pytest.raises(TypeError, match="holds private rows"):
            pickle.dumps(item)
