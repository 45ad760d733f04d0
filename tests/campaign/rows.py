"""Row-blindness: the same types with other values must give the same exit code and message."""

import datetime
import decimal
import random  # noqa: TID251 - chooses cases, not noise
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyarrow import parquet

from campaign.world import Clock, Outcome, Result, release_words, run, write_inputs

SECRET = "ZQCANARY7391"
COLUMNS = {
    "numeric": 'kind = "numeric"\nbounds = [-1e300, 1e300]\nbins = 7\n',
    "integer": 'kind = "integer"\nbounds = [-9007199254740991, 9007199254740991]\nbins = 5\n',
    "category": 'kind = "category"\nvalues = ["Male", "33", "true"]\n',
    "other": 'kind = "category"\nvalues = ["Male", "33"]\nother = "o"\n',
    "missing": 'kind = "numeric"\nbounds = [0, 50]\nmissing = "category"\n',
    "drop": 'kind = "integer"\nbounds = [0, 50]\nmissing = "drop"\n',
}
_LARGE = decimal.Decimal("9" * 28)
_TIME = datetime.date
VALUES: list[tuple[pa.DataType, list[Any], list[Any]]] = [
    (pa.int8(), [33, 40], [-128, 127, None]),
    (pa.int64(), [33, 40], [2**63 - 1, -(2**63), None, 0]),
    (pa.uint64(), [33, 40], [2**64 - 1, 0, None]),
    (pa.float32(), [33.0, 1.5], [float("nan"), float("inf"), -float("inf"), 3e38, -0.0, None]),
    (pa.float64(), [33.0, 1.5], [float("nan"), float("inf"), 1.7e308, 5e-324, -0.0, None]),
    (pa.string(), ["33", "Male"], ["", "\x00", "x" * 100_000, "nan", "1e999", "٣", None, SECRET]),
    (pa.bool_(), [True, False], [None, True]),
    (pa.decimal128(38, 10), [decimal.Decimal("1.5")] * 2, [_LARGE, -_LARGE, None]),
    (pa.date32(), [_TIME(2020, 1, 1)] * 2, [_TIME(1, 1, 1), _TIME(9999, 12, 31), None]),
    (pa.timestamp("ns"), [0, 1], [2**63 - 1, -(2**63) + 1, None]),
    (pa.binary(), [b"33", b"Male"], [b"\xff\xfe", b"", None]),
]
METHODS = [
    ["histogram", "--columns", "x,y"],
    ["marginals"],
    ["topk", "--column", "x", "--count", "2"],
    ["privbayes"],
    ["majority", "--target", "y"],
    ["privpfc", "--target", "y"],
    ["dpcopula", "--columns", "x"],
    ["kmeans", "--columns", "x", "--clusters", "2"],
]


def arrow_values(folder: Path, rng: random.Random, clock: Clock) -> Iterator[Result]:
    """Tame values, extreme values, missing values, no values: one answer for all."""
    write_inputs(folder)
    cases = [(method, kind, value) for method in METHODS for kind in COLUMNS for value in VALUES]
    rng.shuffle(cases)
    for number, (method, kind, (type_, tame, wild)) in enumerate(cases):
        if clock.is_over:
            return
        column = f"[columns.x]\n{COLUMNS[kind]}"
        other = '[columns.y]\nkind = "category"\nvalues = ["p", "q"]\n'
        (folder / "xy.toml").write_text(column + other)
        seen = set()
        for attempt, values in enumerate((tame * 50, wild * 40, wild[:1] * 100, [None] * 10, [])):
            table = pa.table(
                {"x": pa.array(values, type_), "y": (["p", "q"] * len(values))[: len(values)]},
                schema=pa.schema([("x", type_), ("y", pa.string())]),
            )
            parquet.write_table(table, folder / "xy.parquet")
            seen.add(_said(_release(folder, method, f"out/{number}-{attempt}")))
        problem = "" if len(seen) == 1 and 70 not in {code for code, _ in seen} else str(seen)
        yield Result(f"{method[0]} of {type_} as {kind}", problem)


def _release(folder: Path, method: list[str], out: str) -> Outcome:
    paid = ["--epsilon", "0.01", "--ledger", "books.db", "--dataset", "people", "-o", out]
    data = ["--data", "xy.parquet", "--schema", "xy.toml"]
    return run(["release", "--method", *method, *data, *paid], folder)


def _said(done: Outcome) -> tuple[int, str]:
    """Exit code and text without what counts releases, and without published numbers."""
    if done.code == 0:
        return 0, SECRET if SECRET in done.text else ""
    return done.code, re.sub(r"entry \d+|out/\S+", "#", done.text)


PIECES = [
    *(b"33", b"Male", b"", b'""', b'"a,b"', b'"un', b"\xff", b"\x00", b"1e400", b"-inf", b"nan"),
    *(b"9" * 50, b"x" * 3000, " ٣ ".encode(), b"0x21", b"=1+1", SECRET.encode(), b'"a\nb"'),
    *(b'"a\rb"', b"\r", b'a"b', b"'", b"\\N", b"\xef\xbb\xbf", b"\xff\xfe", b"\x1a"),
]


def csv_bodies(folder: Path, rng: random.Random, clock: Clock) -> Iterator[Result]:
    """Under one header no body may change the exit code, or get into what is said."""
    write_inputs(folder)
    good = (folder / "people.csv").read_bytes().splitlines(keepends=True)
    for number in range(100_000):
        if clock.is_over:
            return
        (folder / "odd.csv").write_bytes(good[0] + _body(good[1:], rng))
        done = run(release_words(f"out/{number}", data="odd.csv"), folder)
        problem = "" if done.code == 0 else f"exit {done.code}: {done.text[-300:]}"
        if SECRET in done.text:
            problem = f"a row is quoted: {done.text[-300:]}"
        if any((folder / "tmp").iterdir()):
            problem = "temporary files are left"
        yield Result(f"CSV body {number}", problem)


def _body(good: list[bytes], rng: random.Random) -> bytes:
    draw = rng.random()
    if draw < 0.1:
        return rng.randbytes(rng.choice([1, 50, 3000]))
    lines = []
    for _ in range(rng.choice([0, 1, 3, 30])):
        if rng.random() < 0.4:
            lines.append(rng.choice(good))
            continue
        cells = [rng.choice(PIECES) for _ in range(rng.choice([4, 4, 3, 5, 1, 0, 40]))]
        lines.append(b",".join(cells) + rng.choice([b"\n", b"\r\n", b"\r", b"", b"\n\n"]))
    body = b"".join(lines)
    if draw < 0.14:
        body += rng.choice([b"y", b'"', b",", b"\r"]) * rng.choice([2_000_001, 4_500_000])
    return body
