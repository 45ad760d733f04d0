"""A stranger's folder: fuzzed releases, bombs, links and pipes, under a memory limit."""

import copy
import hashlib
import json
import math
import os
import random  # noqa: TID251 - chooses cases, not noise
import shutil
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyarrow import parquet

from campaign.world import HANG, Clock, Outcome, Result, run, write_inputs
from dpublish.core.registry import make_method
from dpublish.data.sources import open_table
from dpublish.privacy.budget import Budget
from dpublish.randomness import seeded
from method_examples import EXAMPLES, SCHEMA, arrow_table

MEGABYTES = 3000
"""Limit of the address space: what libraries map at import is most of it."""
PEAK = 1200
CODES = {0, 1, 2, 3}
HEAD = "release.json"
NASTY: list[Any] = [
    *(None, True, False, 0, 1, -1, 2, 3, 7, 2**31, 2**53, 2**63 - 1, 2**63, 10**9, 10**12, 10**30),
    *(0.5, -0.5, 1e308, -1e308, 5e-324, math.nan, math.inf, -math.inf),
    *("", "x", "1", "1/3", "0", "-1", "1/0", "9" * 900 + "/7", "1e99", "NaN", "age", "sex", "\x00"),
    *([], {}, [[]], [1, 2], {"a": 1}, "<script>alert(1)</script>", "../../../etc/passwd"),
]


def publish_examples(folder: Path, names: Iterable[str] = EXAMPLES) -> list[Path]:
    """Save the first example release of each method, drawn from a seed."""
    folder.mkdir(parents=True)
    kinds = []
    for name in names:
        method = make_method(name, EXAMPLES[name][0])
        table = open_table(arrow_table(), SCHEMA)
        release = method.release(table, budget=Budget.seeded("1.5"), rng=seeded(3))
        release.save(folder / name, extras={"report.html": b"<p>page</p>"})
        kinds.append(folder / name)
    return kinds


def fuzzed(folder: Path, rng: random.Random, clock: Clock) -> Iterator[Result]:
    """Change what a release says in its files, make the digests right again, and use it."""
    write_inputs(folder)
    kinds = publish_examples(folder / "kinds")
    for number in range(100_000):
        if clock.is_over:
            return
        source = kinds[number % len(kinds)]
        target = folder / "stranger"
        shutil.rmtree(target, ignore_errors=True)
        shutil.copytree(source, target)
        what = _change(target, rng)
        words = _use(rng, number)
        done = run(words, folder, seconds=60, megabytes=MEGABYTES)
        yield Result(f"{words[0]} of {source.name}, {what}, {number}", _wrong(done))


def _use(rng: random.Random, number: int) -> list[str]:
    queries = ("age in 30..40", "", "age >= 60 and sex = Male", "town = Ost", "height < 170")
    uses = [
        ["count", "stranger", rng.choice(queries)],
        ["rows", "stranger", "-n", "100", "--seed", "1", "-o", f"tmp/{number}.parquet"],
        ["report", "stranger", "-o", f"tmp/{number}.html"],
        ["verify", "stranger"],
        ["choose-k", "stranger"],
    ]
    return rng.choices(uses, weights=[4, 3, 3, 1, 1])[0]


def _wrong(done: Outcome) -> str:
    if done.code == HANG:
        return "did not end"
    if done.code not in CODES or "Traceback" in done.text:
        return f"exit {done.code}: {done.text[-400:]}"
    if done.peak_megabytes > PEAK:
        return f"took {done.peak_megabytes} MB"
    return ""


def _change(target: Path, rng: random.Random) -> str:
    head = json.loads((target / HEAD).read_text())
    tables = sorted(target.rglob("*.parquet"))
    if tables and rng.random() < 0.4:
        file = rng.choice(tables)
        parquet.write_table(_other_table(parquet.read_table(file), rng), file)
        what = file.name
    else:
        head = _other_json(head, rng)
        what = "its description"
    _seal(target, head)
    return what


def _seal(target: Path, head: Any) -> None:
    """Write the description with digests that fit the files."""
    listed = head.get("files") if isinstance(head, dict) else None
    if isinstance(listed, dict):
        for name in list(listed):
            file = target / str(name)
            if file.is_file() and isinstance(listed[name], dict):
                content = file.read_bytes()
                digest = hashlib.sha256(content).hexdigest()
                listed[name] = {**listed[name], "sha256": digest, "bytes": len(content)}
    (target / HEAD).write_text(json.dumps(head))


def _positions(value: Any, at: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    yield at
    if isinstance(value, dict):
        for key in value:
            yield from _positions(value[key], (*at, key))
    elif isinstance(value, list):
        for index in range(min(len(value), 30)):
            yield from _positions(value[index], (*at, index))


def _at(value: Any, position: tuple[Any, ...]) -> Any:
    for key in position:
        value = value[key]
    return value


def _other_json(head: Any, rng: random.Random) -> Any:
    head = copy.deepcopy(head)
    for _ in range(rng.choice([1, 1, 1, 2, 4])):
        positions = [position for position in _positions(head) if position]
        if not positions:
            break
        position = rng.choice(positions)
        parent, old = _at(head, position[:-1]), _at(head, position)
        new: Any = copy.deepcopy(rng.choice(NASTY))
        if isinstance(old, int | float) and not isinstance(old, bool) and rng.random() < 0.6:
            new = rng.choice([old + 1, old - 1, -old, old * 2, old * 10**6, 10**9, 2**40])
        if isinstance(old, list) and old and rng.random() < 0.5:
            new = rng.choice([old[:-1], old * 50, old[::-1], [*old, old[0]]])
        if rng.random() < 0.15:
            del parent[position[-1]]
        elif rng.random() < 0.15:
            parent[position[-1]] = copy.deepcopy(_at(head, rng.choice(positions)))
        else:
            parent[position[-1]] = new
    return head


def _other_table(table: pa.Table, rng: random.Random) -> pa.Table:
    whole = [
        lambda: table.slice(0, rng.choice([0, 1, max(0, table.num_rows - 1)])),
        lambda: pa.concat_tables([table, table]),
        lambda: table.append_column("x", pa.nulls(table.num_rows)),
        lambda: table.drop_columns(table.column_names[:1]) if table.num_columns else table,
        lambda: table.take(pa.array(rng.sample(range(table.num_rows), table.num_rows), pa.int64())),
    ]
    if not table.num_columns or rng.random() < 0.4:
        return rng.choice(whole)()
    index = rng.randrange(table.num_columns)
    name, rows = table.column_names[index], table.num_rows
    columns = [
        pa.nulls(rows, table.column(index).type),
        pa.array([rng.choice([2**63 - 1, -(2**63), 0, 5]) for _ in range(rows)], pa.int64()),
        pa.array([rng.choice([math.nan, math.inf, -1e308, 0.0]) for _ in range(rows)]),
        pa.array(["<img src=x onerror=alert(1)>"] * rows, pa.string()),
    ]
    return table.set_column(index, name, rng.choice(columns))


def hostile(folder: Path, rng: random.Random, clock: Clock) -> Iterator[Result]:
    """Links, pipes, devices and bombs instead of files: refused at once, in little memory."""
    write_inputs(folder)
    source = publish_examples(folder / "kinds", ["histogram"])[0]
    files = sorted(file.relative_to(source) for file in source.rglob("*") if file.is_file())
    for relative in files:
        for trap in (_fifo, _device, _link, _bomb):
            if clock.is_over:
                return
            target = folder / "stranger"
            shutil.rmtree(target, ignore_errors=True)
            shutil.copytree(source, target)
            if not trap(target / relative, folder):
                continue
            if relative.name != HEAD:
                _seal(target, json.loads((target / HEAD).read_text()))
            done = run(["count", "stranger", ""], folder, seconds=60, megabytes=MEGABYTES)
            problem = _wrong(done)
            if not problem and done.code == 0:
                problem = "was taken"
            yield Result(f"{trap.__name__[1:]} for {relative}", problem)


def _fifo(file: Path, folder: Path) -> bool:
    file.unlink()
    os.mkfifo(file)
    return True


def _device(file: Path, folder: Path) -> bool:
    file.unlink()
    file.symlink_to("/dev/zero")
    return True


def _link(file: Path, folder: Path) -> bool:
    elsewhere = folder / "elsewhere"
    shutil.copy(file, elsewhere)
    file.unlink()
    file.symlink_to(elsewhere)
    return True


def _bomb(file: Path, folder: Path) -> bool:
    """A Parquet file of some kilobytes with 50 million rows."""
    if file.suffix != ".parquet":
        return False
    table = parquet.read_table(file)
    piece = table.slice(0, 1).take(pa.array([0] * 1_000_000, pa.int32()))
    with parquet.ParquetWriter(file, table.schema, compression="zstd") as writer:
        for _ in range(50):
            writer.write_table(piece)
    return True
