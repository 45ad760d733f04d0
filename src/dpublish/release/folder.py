"""The release folder: written whole or not at all, checked when it is opened.

    income-grid/
      release.json       what it is, what was promised, what it cost; digests of the data files
      data/*.parquet     the published value
      datapackage.json   a Frictionless description, so that other tools can open it
      report.html        one page for people (written by the report layer)

Everything is first written to a hidden neighbour of the folder and then renamed, so a
process killed at any moment leaves either no release or a whole one.
"""

import hashlib
import json
import os
import secrets
import shutil
from collections.abc import Mapping
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from dpublish.data import schema_file
from dpublish.errors import CorruptRelease, DPublishError, InputError, InvalidParameter
from dpublish.privacy.receipt import Receipt
from dpublish.release.data_package import describe
from dpublish.release.parquet_file import read_parquet
from dpublish.release.release import Release
from dpublish.release.stream_folder import head_hash, is_stream, load_stream

FORMAT = 1
_PARTIAL = ".partial"
_NOT_A_RELEASE = (
    KeyError,
    TypeError,
    ValueError,
    AttributeError,
    ArithmeticError,
    RecursionError,
    pa.ArrowException,
)
_KINDS = {
    "histogram": "dpublish.release.histogram:Histogram",
    "labelled-histogram": "dpublish.release.labelled_histogram:LabelledHistogram",
    "grid-classifier": "dpublish.release.grid_classifier:GridClassifier",
    "bayes-network": "dpublish.release.bayes_network:BayesNetwork",
    "decision-tree": "dpublish.release.decision_tree:DecisionTree",
    "centres": "dpublish.release.centres:Centres",
    "tree-centres": "dpublish.release.tree_centres:TreeCentres",
    "wave-clusters": "dpublish.release.wave_clusters:WaveClusters",
    "top-values": "dpublish.release.top_values:TopValues",
    "linear-model": "dpublish.release.linear_model:LinearModel",
    "margins": "dpublish.release.margins:Margins",
    "copula": "dpublish.release.copula:Copula",
    "mixed-table": "dpublish.release.mixed_table:MixedTable",
    "cell-copulas": "dpublish.release.cell_copulas:CellCopulas",
    "boxes": "dpublish.release.boxes:Boxes",
    "wavelet-histogram": "dpublish.release.wavelet_histogram:WaveletHistogram",
    "cell-sample": "dpublish.release.cell_sample:CellSample",
    "histogram-stream": "dpublish.release.histogram_stream:HistogramStream",
    "personal": "dpublish.release.personal:PersonalRelease",
    "personal-answer": "dpublish.release.personal_answer:PersonalAnswer",
}


def require_new_folder(path: Path) -> None:
    """Refuse a place where a release cannot be written; call it before budget is spent."""
    if path.exists() or path.is_symlink():
        raise InvalidParameter(f"{path} exists already; name a folder that does not exist yet")
    parent = path.absolute().parent
    if not parent.is_dir():
        raise InputError(f"{parent} is not a folder; create it first")
    if not os.access(parent, os.W_OK | os.X_OK):
        raise InputError(f"{parent} cannot be written; choose another place")


def save(release: Release, path: Path, *, extras: Mapping[str, bytes]) -> Path:
    """Write `release` as a folder at `path`, atomically; `extras` are further files by name."""
    require_new_folder(path)
    draft = path.absolute().parent / f".{secrets.token_hex(8)}{_PARTIAL}"
    try:
        _write(release, draft, extras)
        # A folder that appeared meanwhile is refused by the system, unless it is empty.
        os.rename(draft, path)
    except OSError as error:
        shutil.rmtree(draft, ignore_errors=True)
        raise InputError(
            f"cannot write the release to {path} ({error.strerror or 'input/output error'}); "
            "free some space or name another place, and save again"
        ) from None
    except BaseException:
        shutil.rmtree(draft, ignore_errors=True)
        raise
    # It is published now: a disk that does not confirm the new name must not call that undone.
    with suppress(OSError):
        _sync(path.absolute().parent)
    return path


def load(path: str | Path) -> Release:
    """Open a release folder and check that it is whole.

    The typed value comes back: a `Histogram`, a list of top values, and so on, each with
    its `.receipt`.
    """
    folder = Path(path)
    if is_stream(folder):
        return load_stream(folder)
    head = _read_head(folder)
    kind = kind_called(head.get("kind"))
    if kind is None:
        raise CorruptRelease(f"{folder} holds a kind of release that this version does not know")
    try:
        tables = {
            Path(file).stem: read_parquet(_checked(folder, file, entry))
            for file, entry in head["files"].items()
        }
        return kind.from_parts(
            receipt=Receipt.from_plain(head["receipt"]),
            schema=schema_file.from_plain(head["schema"]),
            facts=head["facts"],
            tables=tables,
        )
    except _NOT_A_RELEASE as error:
        if isinstance(error, DPublishError) and not isinstance(error, InvalidParameter):
            raise
        raise CorruptRelease(f"{folder} does not hold what its release.json says") from None


def kind_called(name: object) -> type[Release] | None:
    """Find a kind of release by its name."""
    target = _KINDS.get(name) if isinstance(name, str) else None
    if target is None:
        return None
    module, _, attribute = target.partition(":")
    kind: type[Release] = getattr(import_module(module), attribute)
    return kind


def folder_hash(folder: Path) -> str:
    """Digest of release.json, which itself holds the digests of the data files.

    Of a stream, whose folder grows, it is that of stream.json.
    """
    if is_stream(folder):
        return head_hash(folder)
    try:
        return hashlib.sha256((folder / "release.json").read_bytes()).hexdigest()
    except OSError:
        raise CorruptRelease(f"{folder} has no release.json that can be read") from None


def _write(release: Release, draft: Path, extras: Mapping[str, bytes]) -> None:
    (draft / "data").mkdir(parents=True)
    files: dict[str, dict[str, Any]] = {}
    tables = release.tables()
    for name, table in tables.items():
        file = f"data/{name}.parquet"
        pq.write_table(table, draft / file, compression="zstd")
        content = (draft / file).read_bytes()
        files[file] = {"sha256": hashlib.sha256(content).hexdigest(), "bytes": len(content)}
    head = {
        "format": FORMAT,
        "kind": release.kind,
        "receipt": release.receipt.to_plain(),
        "schema": schema_file.to_plain(release.schema),
        "expected_error": release.expected_error(),
        "facts": release.facts(),
        "files": files,
    }
    _write_json(draft / "datapackage.json", describe(release, tables, files))
    for name, content in extras.items():
        (draft / name).write_bytes(content)
    # release.json comes last: without it the folder does not load.
    _write_json(draft / "release.json", head)
    for folder, _, names in os.walk(draft):
        for name in names:
            _sync(Path(folder) / name)
        _sync(Path(folder))


def _write_json(path: Path, value: Any) -> None:
    path.write_text(
        json.dumps(value, indent=1, ensure_ascii=False, allow_nan=False) + "\n", "utf-8"
    )


def _sync(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _read_head(folder: Path) -> dict[str, Any]:
    if not folder.is_dir():
        raise CorruptRelease(f"{folder} is not a release folder")
    if folder.name.endswith(_PARTIAL):
        raise CorruptRelease(f"{folder} was left by an interrupted release; delete it")
    try:
        head = json.loads((folder / "release.json").read_text("utf-8"))
    except FileNotFoundError:
        raise CorruptRelease(f"{folder} has no release.json: it is not a whole release") from None
    except (OSError, ValueError, RecursionError):
        raise CorruptRelease(f"{folder}/release.json cannot be read") from None
    if not isinstance(head, dict) or type(head.get("format")) is not int or head["format"] < 1:
        raise CorruptRelease(f"{folder}/release.json is not a release")
    if head["format"] > FORMAT:
        raise CorruptRelease(f"{folder} was written by a newer dpublish; upgrade to open it")
    return head


def _checked(folder: Path, file: str, entry: Mapping[str, Any]) -> bytes:
    parts = Path(file).parts
    if len(parts) != 2 or parts[0] != "data" or parts[1] in ("..", "."):
        raise CorruptRelease(f"{folder}/release.json names a file outside its data folder")
    try:
        if (folder / "data").is_symlink() or (folder / file).is_symlink():
            raise CorruptRelease(f"{folder}/{file} is a link; a release holds its own files")
        content = (folder / file).read_bytes()
    except OSError:
        raise CorruptRelease(f"{folder}/{file} is missing; ask for the release again") from None
    if hashlib.sha256(content).hexdigest() != entry["sha256"]:
        raise CorruptRelease(f"{folder}/{file} was changed or cut; ask for the release again")
    return content
