"""The release folder of a stream: it grows by one part at every step.

    bike-hours/
      stream.json        what it is, what was guaranteed, what it costs; written once
      steps.jsonl        one line a step: what was done, its noise, the digest of its counts
      manifest.json      digests of these two and of the pages (`listing`)
      data/time=LABEL/counts.parquet   the bins with their estimates, and the noisy counts if
                         a fresh histogram was published
      datapackage.json   a Frictionless description
      report.html        one page for people
      release.sig        the owner's signature of manifest.json, if it was signed

Every file but the list of steps is written under another name and then renamed.  Of the list, a
last line that is not ended by a line break was cut by an interruption and does not count.
"""

import os
import secrets
import shutil
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from dpublish.core.beside_labels import cell_width, with_interval
from dpublish.core.folder.data_package import (
    PARQUET,
    describe_table,
    package_head,
    resource_name,
)
from dpublish.core.folder.folder import Layout, require_format
from dpublish.core.folder.manifest import SIGNATURE, Differences
from dpublish.core.folder.opening import (
    MOST_JSON_BYTES,
    Fingerprint,
    fingerprint,
    list_files,
    parquet_bytes,
    read_file,
    read_json,
    require_modest_claims,
)
from dpublish.core.folder.signing import (
    STREAM_TAG,
    BadSignature,
    PublicKey,
    SigningKey,
    read_signature,
)
from dpublish.data import schema_file
from dpublish.data.schema import Schema
from dpublish.errors import CorruptRelease, InputError
from dpublish.methods.streams.listing import (
    HEAD,
    MANIFEST,
    OWN,
    PAGES,
    STEPS,
    StepRecord,
    StreamManifest,
)
from dpublish.methods.streams.released import StreamRelease
from dpublish.privacy.receipt import Receipt
from dpublish.storage.files import PARTIAL, json_bytes, set_times, sync, write_file

FORMAT = 2
_NOT_A_STREAM = (KeyError, TypeError, ValueError, AttributeError, ArithmeticError, RecursionError)


def is_stream(folder: Path) -> bool:
    """Return whether a folder is that of a stream."""
    return os.path.lexists(folder / HEAD)


def head_of(receipt: Receipt, schema: Schema, metadata: dict[str, Any]) -> bytes:
    """Write the content of `stream.json`."""
    head = {
        "format": FORMAT,
        "kind": StreamRelease.kind,
        "receipt": receipt.to_dict(),
        "schema": schema_file.to_dict(schema),
        "metadata": metadata,
    }
    return json_bytes(head)


def head_hash(folder: Path) -> str:
    """Digest of `stream.json`, by which the ledger knows the stream."""
    return Fingerprint.of(read_file(folder, HEAD)).sha256


def counts_file(
    cells: pa.Table,
    estimate: NDArray[np.float64],
    released: NDArray[np.int64] | None,
    rate: Fraction | None = None,
) -> bytes:
    """Write the content of a step's file of counts.

    With the `rate` of noise that every bin has by itself, the counts have intervals.
    """
    table = cells.append_column("estimate", pa.array(estimate, pa.float64()))
    if released is not None:
        table = table.append_column("noisy_count", pa.array(released, pa.int64()))
        table = with_interval(table, None if rate is None else cell_width(rate))
    return parquet_bytes(table)


def create_folder(
    folder: Path, head: bytes, lines: Iterable[bytes] = (), time: float | None = None
) -> None:
    """Make the folder of a stream, whole or not at all; its files show `time`."""
    steps = b"".join(lines)
    draft = folder.parent / f".{secrets.token_hex(8)}{PARTIAL}"
    try:
        (draft / "data").mkdir(parents=True)
        write_file(draft / STEPS, steps, time)
        write_file(draft / MANIFEST, StreamManifest.of(head, steps).to_bytes(), time)
        write_file(draft / HEAD, head, time)
        if time is not None:
            set_times(time, draft / "data")
        os.rename(draft, folder)
    except OSError as error:
        shutil.rmtree(draft, ignore_errors=True)
        raise InputError(
            f"cannot make the folder {folder} ({error.strerror or 'input/output error'}); what was "
            "debited is kept: go on with `dpublish stream next STATE SOURCE --output ELSEWHERE`"
        ) from None
    with suppress(OSError):  # whole and renamed; what is lost now is made again
        sync(folder.parent)


def put_line(folder: Path, start: int, line: bytes, time: float | None = None) -> None:
    """Write a line of the list of steps where it belongs; a beginning of it may be there."""
    require_line(folder, start, line)
    if list_size(folder) < start:
        raise CorruptRelease(f"the list of steps in {folder} was cut; repeat this, which mends it")
    _write_at(folder / STEPS, start, line, time)


def complete_list(folder: Path, steps: bytes, time: float | None = None) -> None:
    """Write the beginning of the list of steps, in place: what follows it stays."""
    (folder / STEPS).touch()
    _write_at(folder / STEPS, 0, steps, time)
    if time is not None:
        set_times(time, folder)


def remove_drafts(time: float, *homes: Path) -> None:
    """Remove drafts that a killed operator has left in folders, which then show `time`."""
    with suppress(OSError):  # they are in no one's way
        for home in homes:
            drafts = list(home.glob(f".*{PARTIAL}"))
            for draft in drafts:
                draft.unlink(missing_ok=True)
            if drafts:
                set_times(time, home)


def require_line(folder: Path, start: int, line: bytes) -> None:
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
    """Return how long the list of steps is; 0 if there is none."""
    try:
        return (folder / STEPS).stat().st_size
    except OSError:
        return 0


def release_id_of(folder: Path) -> str:
    """Return the id of the stream whose folder it is."""
    try:
        return str(read_head(folder)["receipt"]["release_id"])
    except _NOT_A_STREAM:
        raise CorruptRelease(f"{folder} does not hold what its {HEAD} says") from None


def load_stream(folder: Path, key: PublicKey | None = None) -> StreamRelease:
    """Open the folder of a stream and compare it with its manifest.

    Counts are compared with their digests when they are read.  With `key`, the manifest must be
    signed with it, and all steps must be in the manifest.
    """
    content = read_file(folder, MANIFEST, MOST_JSON_BYTES)
    if key is not None:
        key.check(STREAM_TAG, content, read_signature(folder))
    manifest = StreamManifest.parse(folder, content)
    steps = read_file(folder, STEPS)
    found = manifest.differences(folder, read_file(folder, HEAD), steps)
    foreign = tuple(manifest.foreign_files(folder))
    replace(found, added=(*found.added, *foreign)).require_none(folder)
    stream = open_stream(folder)
    if key is not None and len(steps) > manifest.steps.size:
        raise BadSignature(
            "changed",
            f"{folder} has steps that are not signed yet: it is being written, or the owner was "
            "interrupted; try again, or ask the owner to sign it",
        )
    return stream


def open_stream(folder: Path) -> StreamRelease:
    """Open the folder of a stream without comparing it with its manifest."""
    head = read_head(folder)
    try:
        schema, metadata = schema_file.from_dict(head["schema"]), head["metadata"]
        return StreamRelease(
            receipt=Receipt.from_dict(head["receipt"]),
            schema=schema,
            axes=tuple(schema[a["column"]].axis(a["level"]) for a in metadata["axes"]),
            records=tuple(_read_steps(folder)),
            folder=folder,
            horizon=metadata["horizon"],
            window=metadata["window"],
        )
    except _NOT_A_STREAM:
        raise CorruptRelease(f"{folder} does not hold what its {HEAD} says") from None


def stream_differences(folder: Path) -> Differences:
    """Compare all files of a stream's folder, counts and hidden files too, with its manifest."""
    manifest = StreamManifest.read(folder)
    found = manifest.differences(folder, read_file(folder, HEAD), read_file(folder, STEPS))
    files = list_files(folder)
    counts = {record.file: record.sha256 for record in open_stream(folder).records}
    known = {*OWN, *PAGES, *manifest.pages, *counts}
    altered = [
        name
        for name, digest in counts.items()
        if name in files and fingerprint(folder, name).sha256 != digest
    ]
    return Differences(
        changed=(*found.changed, *altered),
        missing=(*found.missing, *(name for name in counts if name not in files)),
        added=(*found.added, *(name for name in files if name not in known)),
    )


def is_current(folder: Path) -> bool:
    """Return whether the manifest lists all steps and pages, as they are."""
    with suppress(CorruptRelease):
        known, steps = StreamManifest.read(folder), read_file(folder, STEPS)
        return (
            known.replaced is None
            and set(PAGES) <= set(known.pages)
            and known.steps.size == steps.rfind(b"\n") + 1
            and not known.differences(folder, read_file(folder, HEAD), steps)
        )
    return False


def sign_stream(folder: Path, time: float, key: SigningKey) -> None:
    """Sign the manifest of a stream's folder; its signature shows `time`."""
    signature = key.sign(STREAM_TAG, read_file(folder, MANIFEST))
    write_file(folder / SIGNATURE, signature, time, shared=True)


def write_pages(
    folder: Path, pages: Mapping[str, bytes], time: float, key: SigningKey | None = None
) -> None:
    """Replace the pages of a stream's folder, and its manifest with them.

    A process that is killed in between leaves a folder that opens: see `listing`.
    """
    known = _manifest_now(folder)
    between = known.replacing(
        folder, {name: Fingerprint.of(content) for name, content in pages.items()}
    )
    final = replace(between, replaced=None).to_bytes()
    if between.pages != between.replaced or not _holds(folder, final):
        # The signature goes first: that of an older manifest would look like a forgery.
        (folder / SIGNATURE).unlink(missing_ok=True)
        write_file(folder / MANIFEST, between.to_bytes(), time, shared=True)
        for name, content in pages.items():
            write_file(folder / name, content, time, shared=True)
        write_file(folder / MANIFEST, final, time, shared=True)
    if key is not None:
        sign_stream(folder, time, key)


def _write_at(path: Path, start: int, content: bytes, time: float | None) -> None:
    with path.open("r+b") as file:
        file.seek(start)
        file.write(content)
        file.flush()
        if time is not None:
            set_times(time, path)
        os.fsync(file.fileno())


def _manifest_now(folder: Path) -> StreamManifest:
    """Return the manifest of the steps that there are, and of the pages that it takes so far."""
    steps = read_file(folder, STEPS)
    whole = steps[: steps.rfind(b"\n") + 1]
    known = StreamManifest.of(read_file(folder, HEAD), whole)
    with suppress(CorruptRelease):
        before = StreamManifest.read(folder)
        return replace(known, pages=before.pages, replaced=before.replaced)
    return known


def _holds(folder: Path, manifest: bytes) -> bool:
    with suppress(CorruptRelease):
        return read_file(folder, MANIFEST) == manifest
    return False


def read_head(folder: Path) -> dict[str, Any]:
    """Read `stream.json`."""
    if folder.name.endswith(PARTIAL):
        raise CorruptRelease(f"{folder} was left by an interrupted start; delete it")
    head = read_json(folder, HEAD)
    require_modest_claims(head)
    if not isinstance(head, dict) or type(head.get("format")) is not int or head["format"] < 1:
        raise CorruptRelease(f"{folder}/{HEAD} is not a stream")
    require_format(folder, head["format"], FORMAT)
    if head.get("kind") != StreamRelease.kind:
        raise CorruptRelease(f"{folder} holds a kind of stream that this version does not know")
    return head


def describe_stream(stream: StreamRelease) -> bytes:
    """Write the content of `datapackage.json`: the list of steps, and the counts of each.

    Every file is a resource of its own: of a resource of several Parquet files, which cannot be
    joined end to end, tools read the first alone.
    """
    steps = {"name": "steps", "path": STEPS, "format": "jsonl", "type": "file"}
    last = {record.action: record for record in stream.records}
    schemas = {action: _counts_schema(stream, record) for action, record in last.items()}
    return json_bytes(
        package_head(stream)
        | {
            "resources": [
                steps,
                *(
                    _describe_counts(
                        record, schemas[record.action], in_words=record is last[record.action]
                    )
                    for record in stream.records
                ),
            ]
        }
    )


def _counts_schema(stream: StreamRelease, record: StepRecord) -> dict[str, Any]:
    """Describe the fields of a step's counts; steps of the same action have the same ones."""
    with suppress(CorruptRelease):  # a file that is missing or damaged is told when it is read
        return describe_table(stream.schema, "counts", stream.table(record.time))
    return {}


def _describe_counts(
    record: StepRecord, schema: Mapping[str, Any], *, in_words: bool
) -> dict[str, Any]:
    """Describe the file of a step; what fields mean is said once, or long streams repeat it."""
    found = {
        "name": resource_name(f"counts-{record.number}"),
        "title": f"{record.time}, {record.action}",
        "path": record.file,
        **PARQUET,
        "hash": f"sha256:{record.sha256}",
    }
    if not schema:
        return found
    if in_words:
        return found | {"schema": schema}
    fields = [{key: field[key] for key in ("name", "type")} for field in schema["fields"]]
    return found | {"schema": {**schema, "fields": fields}}


LAYOUT = Layout(
    load=load_stream,
    differences=stream_differences,
    digest=head_hash,
    manifest=MANIFEST,
    tag=STREAM_TAG,
)
"""How `core.folder` opens, compares and signs the folder of a stream."""


def _read_steps(folder: Path) -> Iterable[StepRecord]:
    content = read_file(folder, STEPS)
    whole, _, _ = content.rpartition(b"\n")
    return [StepRecord.from_line(line) for line in whole.split(b"\n")] if whole else []
