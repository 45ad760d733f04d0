"""The release folder of a stream: it grows by one part at every step.

    bike-hours/
      stream.json        what it is, what was promised, what it costs; written once
      steps.jsonl        one line a step: what was done, its noise, the digest of its counts
      data/time=LABEL/counts.parquet   the bins with their estimates, and the noisy counts if
                         a fresh histogram was published
      datapackage.json   a Frictionless description
      report.html        one page for people

Every file but the list of steps is written beside its place and then renamed.  Of the list, a
last line that is not ended by a line break was cut by an interruption and does not count.
"""

import hashlib
import json
import os
import re
import secrets
import shutil
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from dpublish.data import schema_file
from dpublish.data.schema import Schema
from dpublish.errors import CorruptRelease, InputError
from dpublish.privacy.epsilon import format_epsilon
from dpublish.privacy.receipt import Receipt
from dpublish.release.histogram_stream import HistogramStream
from dpublish.release.stream_steps import StepRecord

FORMAT = 1
HEAD = "stream.json"
STEPS = "steps.jsonl"
_PARTIAL = ".partial"
_NOT_A_STREAM = (KeyError, TypeError, ValueError, AttributeError, ArithmeticError, RecursionError)


def is_stream(folder: Path) -> bool:
    """Say whether a folder is that of a stream."""
    return (folder / HEAD).is_file()


def head_of(receipt: Receipt, schema: Schema, facts: dict[str, Any]) -> bytes:
    """Write the content of `stream.json`."""
    head = {
        "format": FORMAT,
        "kind": HistogramStream.kind,
        "receipt": receipt.to_plain(),
        "schema": schema_file.to_plain(schema),
        "facts": facts,
    }
    return _json(head)


def head_hash(folder: Path) -> str:
    """Digest of `stream.json`, by which the ledger knows the stream."""
    try:
        return hashlib.sha256((folder / HEAD).read_bytes()).hexdigest()
    except OSError:
        raise CorruptRelease(f"{folder} has no {HEAD} that can be read") from None


def counts_file(
    cells: pa.Table, estimate: NDArray[np.float64], released: NDArray[np.int64] | None
) -> bytes:
    """Write the content of a step's file of counts."""
    table = cells.append_column("estimate", pa.array(estimate, pa.float64()))
    if released is not None:
        table = table.append_column("noisy_count", pa.array(released, pa.int64()))
    sink = pa.BufferOutputStream()
    pq.write_table(table, sink, compression="zstd")
    return bytes(sink.getvalue())


def create_folder(folder: Path, head: bytes, lines: Iterable[bytes] = ()) -> None:
    """Make the folder of a stream, whole or not at all."""
    draft = folder.parent / f".{secrets.token_hex(8)}{_PARTIAL}"
    try:
        (draft / "data").mkdir(parents=True)
        write_file(draft / STEPS, b"".join(lines))
        write_file(draft / HEAD, head)
        os.rename(draft, folder)
    except OSError as error:
        shutil.rmtree(draft, ignore_errors=True)
        raise InputError(
            f"cannot make the folder {folder} ({error.strerror or 'input/output error'}); what was "
            "debited is kept: go on with `dpublish stream next STATE SOURCE --output ELSEWHERE`"
        ) from None
    with suppress(OSError):  # whole and in its place; what is lost now is made again
        sync(folder.parent)


def write_file(path: Path, content: bytes) -> None:
    """Put a file into its place, whole or not at all, and wait for the disk."""
    if not path.parent.is_dir():
        path.parent.mkdir(parents=True)
        sync(path.parent.parent)
    draft = path.with_name(f".{path.name}{_PARTIAL}")  # one operator writes, so one name will do
    try:
        with draft.open("wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.replace(draft, path)
    except BaseException:
        draft.unlink(missing_ok=True)
        raise
    sync(path.parent)


def put_line(folder: Path, start: int, line: bytes) -> None:
    """Write a line of the list of steps at its place; a beginning of it may be there already."""
    require_place(folder, start, line)
    with (folder / STEPS).open("r+b") as file:
        file.seek(start)
        file.write(line)
        file.flush()
        os.fsync(file.fileno())


def require_place(folder: Path, start: int, line: bytes) -> None:
    """Refuse to write a line of the list of steps where another one stands."""
    rest = b""
    if list_size(folder) > start:
        with (folder / STEPS).open("rb") as file:
            file.seek(start)
            rest = file.read()
    if not line.startswith(rest):
        raise CorruptRelease(
            f"{folder} has steps that the state file does not know: the state file is an older "
            "copy, or another operator is at work on a copy of it; going on would spend the same "
            "budget twice, so put the newest back"
        )


def list_size(folder: Path) -> int:
    """Say how long the list of steps is; 0 if there is none."""
    try:
        return (folder / STEPS).stat().st_size
    except OSError:
        return 0


def release_id_of(folder: Path) -> str:
    """Say which stream's folder it is."""
    try:
        return str(read_head(folder)["receipt"]["release_id"])
    except _NOT_A_STREAM:
        raise CorruptRelease(f"{folder} does not hold what its {HEAD} says") from None


def sync(folder: Path) -> None:
    """Wait until the names in a folder are on the disk."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def load_stream(folder: Path) -> HistogramStream:
    """Open the folder of a stream; counts are checked when they are read."""
    head = read_head(folder)
    try:
        schema, facts = schema_file.from_plain(head["schema"]), head["facts"]
        return HistogramStream(
            receipt=Receipt.from_plain(head["receipt"]),
            schema=schema,
            axes=tuple(schema[a["column"]].axis(a["level"]) for a in facts["axes"]),
            records=tuple(_read_steps(folder)),
            folder=folder,
            horizon=facts["horizon"],
            window=facts["window"],
        )
    except _NOT_A_STREAM:
        raise CorruptRelease(f"{folder} does not hold what its {HEAD} says") from None


def read_head(folder: Path) -> dict[str, Any]:
    """Read `stream.json`."""
    if folder.name.endswith(_PARTIAL):
        raise CorruptRelease(f"{folder} was left by an interrupted start; delete it")
    try:
        head = json.loads((folder / HEAD).read_text("utf-8"))
    except (OSError, ValueError, RecursionError):
        raise CorruptRelease(f"{folder} has no {HEAD} that can be read") from None
    if not isinstance(head, dict) or type(head.get("format")) is not int or head["format"] < 1:
        raise CorruptRelease(f"{folder}/{HEAD} is not a stream")
    if head["format"] > FORMAT:
        raise CorruptRelease(f"{folder} was written by a newer dpublish; upgrade to open it")
    if head.get("kind") != HistogramStream.kind:
        raise CorruptRelease(f"{folder} holds a kind of stream that this version does not know")
    return head


def describe_stream(stream: HistogramStream) -> bytes:
    """Write the content of `datapackage.json`: the list of steps, and the counts of all."""
    receipt = stream.receipt
    counts = {
        "name": "counts",
        "path": [record.file for record in stream.records],
        "format": "parquet",
        "mediatype": "application/vnd.apache.parquet",
    }
    return _json(
        {
            "profile": "data-package",
            "name": re.sub(r"[^a-z0-9]+", "-", f"dpublish-{stream.kind}-{receipt.release_id[:8]}"),
            "title": f"{stream.kind} released by dpublish",
            "description": " ".join([*receipt.stamps, receipt.promise()]),
            "created": receipt.created,
            "keywords": ["differential privacy", f"epsilon {format_epsilon(receipt.epsilon)}"],
            "resources": [
                {"name": "steps", "path": STEPS, "format": "jsonl"},
                *([counts] if stream.records else []),
            ],
        }
    )


def _read_steps(folder: Path) -> Iterable[StepRecord]:
    try:
        content = (folder / STEPS).read_bytes()
    except OSError:
        raise CorruptRelease(f"{folder}/{STEPS} is missing; ask for the release again") from None
    whole, _, _ = content.rpartition(b"\n")
    return [StepRecord.from_line(line) for line in whole.split(b"\n")] if whole else []


def _json(value: Any) -> bytes:
    text = json.dumps(value, indent=1, ensure_ascii=False, allow_nan=False)
    return text.encode("utf-8") + b"\n"
