"""The release folder: written whole or not at all, checked when it is opened.

    income-grid/
      release.json       what it is, what was guaranteed, what it cost; digests of all other files
      data/*.parquet     the published value
      datapackage.json   a Frictionless description, so that other tools can open it
      report.html        one page for people (written by the report layer)
      release.sig        the owner's signature of release.json, if it was signed

Everything is first written to a hidden neighbor of the folder and then renamed, so a
process killed at any moment leaves either no release or a whole one.
"""

import os
import secrets
import shutil
from collections.abc import Callable, Mapping
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa

from dpublish.core.catalog import KINDS
from dpublish.core.folder.data_package import describe_package
from dpublish.core.folder.manifest import (
    SIGNATURE,
    Differences,
    find_differences,
    read_entries,
    to_entry,
)
from dpublish.core.folder.opening import (
    MOST_JSON_BYTES,
    Allowance,
    Fingerprint,
    has_file,
    parquet_bytes,
    parse_json,
    read_file,
    read_parquet,
    require_modest_claims,
)
from dpublish.core.folder.signing import (
    RELEASE_TAG,
    PublicKey,
    SigningKey,
    public_key,
    read_signature,
)
from dpublish.core.plugins import plugin_release
from dpublish.core.released import Release
from dpublish.data import schema_file
from dpublish.errors import (
    CorruptRelease,
    DPublishError,
    InputError,
    InvalidParameter,
    InvalidType,
    plain_refusals,
)
from dpublish.privacy.receipt import Receipt
from dpublish.storage.files import PARTIAL, file_time, json_bytes, set_times, sync, write_file

FORMAT = 2
HEAD = "release.json"
_OWN = (HEAD, SIGNATURE)  # what the manifest cannot list
_NOT_A_RELEASE = (
    KeyError,
    TypeError,
    ValueError,
    AttributeError,
    ArithmeticError,
    RecursionError,
    pa.ArrowException,
)
_LAYOUTS = {"stream.json": "dpublish.methods.streams.folder:LAYOUT"}
"""Folders of another layout, by the file that only they have: a stream's folder grows."""


class Layout(NamedTuple):
    """How the folder of a release is opened that is laid out in its own way.

    Attributes:
        load: Open the folder; with a key, only if the owner of that key has signed it.
        differences: Compare all files with the manifest.
        digest: The digest by which the ledger knows the release.
        manifest: The file that a signature signs.
        tag: What a signature says that it signs.
    """

    load: Callable[[Path, PublicKey | None], Release]
    differences: Callable[[Path], Differences]
    digest: Callable[[Path], str]
    manifest: str
    tag: bytes


def require_new_folder(path: Path) -> None:
    """Refuse a path at which a release cannot be written; call it before budget is spent."""
    if path.exists() or path.is_symlink():
        raise InvalidParameter(f"{path} exists already; name a folder that does not exist yet")
    parent = path.absolute().parent
    if not parent.is_dir():
        raise InputError(f"{parent} is not a folder; create it first")
    if not os.access(parent, os.W_OK | os.X_OK):
        raise InputError(f"{parent} cannot be written; choose another folder")


def save(
    release: Release, path: Path, *, extras: Mapping[str, bytes], sign: SigningKey | None = None
) -> Path:
    """Write `release` as a folder at `path`, atomically; `extras` are further files by name."""
    require_new_folder(path)
    draft = path.absolute().parent / f".{secrets.token_hex(8)}{PARTIAL}"
    try:
        _write(release, draft, extras, sign)
        # A folder that appeared meanwhile is refused by the system, unless it is empty.
        os.rename(draft, path)
    except OSError as error:
        shutil.rmtree(draft, ignore_errors=True)
        raise InputError(
            f"cannot write the release to {path} ({error.strerror or 'input/output error'}); "
            "free some space or name another folder, and save again"
        ) from None
    except BaseException:
        shutil.rmtree(draft, ignore_errors=True)
        raise
    # It is published now: a disk that does not confirm the new name must not call that undone.
    with suppress(OSError):
        sync(path.absolute().parent)
    return path


@plain_refusals
def load(path: str | Path, *, key: PublicKey | str | os.PathLike[str] | None = None) -> Release:
    """Open a release folder and check that it is whole and unchanged.

    The typed value comes back: a `HistogramRelease`, a list of top values, and so on, each with
    its `.receipt`.  A folder in which a file was changed, is missing or was added is refused.

    Args:
        path: The folder.
        key: The owner's public key, or its file.  The release must then be signed with it.
            Without it a signature is not looked at: that the files fit release.json does not
            show who wrote them.
    """
    if not isinstance(path, (str, os.PathLike)):
        raise InvalidType(
            'a release is loaded from the path of its folder, such as "ages", not from an object '
            f"of type {type(path).__name__}"
        )
    folder, owner = Path(path), public_key(key)
    layout = _layout_of(folder)
    found = _load(folder, owner) if layout is None else layout.load(folder, owner)
    return found.keep_folder(folder)


def _load(folder: Path, owner: PublicKey | None) -> Release:
    content = _read_head_bytes(folder)
    if owner is not None:
        owner.check(RELEASE_TAG, content, read_signature(folder))
    head = _parse_head(folder, content)
    kind = kind_called(head.get("kind"))
    if kind is None:
        raise CorruptRelease(f"{folder} holds a kind of release that this version does not know")
    require_modest_claims(head)
    files = read_entries(head.get("files"))
    find_differences(folder, files, _OWN).require_none(folder)
    allowance = Allowance()
    try:
        tables = {
            Path(name).stem: read_parquet(_read_known(folder, name, known), allowance)
            for name, known in files.items()
            if name.startswith("data/")
        }
        return kind.from_parts(
            receipt=Receipt.from_dict(head["receipt"]),
            schema=schema_file.from_dict(head["schema"]),
            metadata=head["metadata"],
            tables=tables,
        )
    except _NOT_A_RELEASE as error:
        if isinstance(error, DPublishError) and not isinstance(error, InvalidParameter):
            raise
        raise CorruptRelease(f"{folder} does not hold what its release.json says") from None


def differences(path: str | Path) -> Differences:
    """Compare all files of a release folder, hidden ones too, with its manifest."""
    folder = Path(path)
    if (layout := _layout_of(folder)) is not None:
        return layout.differences(folder)
    head = _parse_head(folder, _read_head_bytes(folder))
    return find_differences(folder, read_entries(head.get("files")), _OWN, with_hidden=True)


def sign_folder(path: str | Path, key: SigningKey) -> None:
    """Sign a release that is whole; writes release.sig and changes no other file."""
    folder = Path(path)
    release = load(folder)
    content = read_file(folder, manifest_name(folder), MOST_JSON_BYTES)
    layout = _layout_of(folder)
    steps = 0 if layout is None else len(getattr(release, "records", ()))  # as its files show
    tag = RELEASE_TAG if layout is None else layout.tag
    try:
        time = file_time(release.receipt.created) + steps
        write_file(folder / SIGNATURE, key.sign(tag, content), time)
    except OSError as error:
        raise InputError(
            f"cannot write {folder / SIGNATURE} ({error.strerror or 'input/output error'})"
        ) from None


def manifest_name(folder: Path) -> str:
    """Return the name of the file that a signature signs."""
    layout = _layout_of(folder)
    return HEAD if layout is None else layout.manifest


def head_name(folder: Path) -> str:
    """Return the name of the file that holds a release's receipt."""
    return next((name for name in _LAYOUTS if os.path.lexists(folder / name)), HEAD)


def require_outside_releases(path: Path) -> None:
    """Refuse to write into any release folder: nothing is added to what was published."""
    inner = Path(os.path.realpath(path.parent))
    for folder in (inner, *inner.parents):
        if any(os.path.lexists(folder / name) for name in (HEAD, *_LAYOUTS)):
            raise InvalidParameter(
                f"{path} lies inside the release folder {folder}, which is published as it is: "
                "this page is for you to keep, so name another folder"
            )


def is_signed(path: str | Path) -> bool:
    """Return whether a release folder has a signature; says nothing of whose, or of what."""
    return has_file(Path(path), SIGNATURE)


def kind_called(name: object) -> type[Release] | None:
    """Find a kind of release by its name."""
    target = KINDS.get(name) if isinstance(name, str) else None
    if target is not None:
        kind: type[Release] = _found_at(target)
        return kind
    return plugin_release(name) if isinstance(name, str) else None


def folder_hash(folder: Path) -> str:
    """Digest of release.json, which itself holds the digests of all other files.

    Of a stream, whose folder grows, it is that of stream.json.
    """
    if (layout := _layout_of(folder)) is not None:
        return layout.digest(folder)
    return Fingerprint.of(read_file(folder, HEAD)).sha256


def _layout_of(folder: Path) -> Layout | None:
    """Find the layout of a folder that has one of its own."""
    for name, target in _LAYOUTS.items():
        if os.path.lexists(folder / name):
            layout: Layout = _found_at(target)
            return layout
    return None


def _found_at(location: str) -> Any:
    """Import what is registered: methods know the folder, the folder knows no method."""
    module, _, attribute = location.partition(":")
    return getattr(import_module(module), attribute)


def _write(
    release: Release, draft: Path, extras: Mapping[str, bytes], sign: SigningKey | None
) -> None:
    (draft / "data").mkdir(parents=True)
    tables = release.tables()
    contents = {f"data/{name}.parquet": parquet_bytes(table) for name, table in tables.items()}
    data = _entries_of(contents)
    contents["datapackage.json"] = json_bytes(describe_package(release, tables, data))
    contents |= extras
    for name, content in contents.items():
        (draft / name).write_bytes(content)
    head = json_bytes(
        {
            "format": FORMAT,
            "kind": release.kind,
            "receipt": release.receipt.to_dict(),
            "schema": schema_file.to_dict(release.schema),
            "expected_error": release.expected_error(),
            "metadata": release.metadata(),
            "files": _entries_of(contents),
        }
    )
    if sign is not None:
        (draft / SIGNATURE).write_bytes(sign.sign(RELEASE_TAG, head))
    # release.json comes last: without it the folder does not load.
    (draft / HEAD).write_bytes(head)
    time = file_time(release.receipt.created)
    for folder, _, names in os.walk(draft, topdown=False):
        for path in [*(Path(folder) / name for name in names), Path(folder)]:
            set_times(time, path)
            sync(path)


def _entries_of(contents: Mapping[str, bytes]) -> dict[str, dict[str, Any]]:
    return {name: to_entry(Fingerprint.of(content)) for name, content in contents.items()}


def _read_head_bytes(folder: Path) -> bytes:
    if not folder.is_dir():
        what = "is a file, not a release folder" if folder.exists() else "is not there"
        raise CorruptRelease(f"{folder} {what}: name the folder that a release wrote")
    if folder.name.endswith(PARTIAL):
        raise CorruptRelease(f"{folder} was left by an interrupted release; delete it")
    if not os.path.lexists(folder / HEAD):
        _refuse_interactive_run(folder)
        raise CorruptRelease(
            f"{folder} is not a release folder: it holds no release.json; name the folder that a "
            "release wrote"
        )
    return read_file(folder, HEAD, MOST_JSON_BYTES)


def _refuse_interactive_run(folder: Path) -> None:
    """Say of the folder of an interactive run what it is, and how its answers are read."""
    for path in (folder, folder / "public"):
        if os.path.lexists(path / "transcript.jsonl"):
            raise CorruptRelease(
                f"{folder} is an interactive run and no release: read its answers in "
                f"{path / 'transcript.jsonl'}, or with: dpublish svt status"
            )


def _parse_head(folder: Path, content: bytes) -> dict[str, Any]:
    head = parse_json(content, folder / HEAD)
    if not isinstance(head, dict) or type(head.get("format")) is not int or head["format"] < 1:
        raise CorruptRelease(f"{folder}/{HEAD} is not a release")
    require_format(folder, head["format"], FORMAT)
    return head


def require_format(folder: Path, found: int, known: int) -> None:
    """Refuse a folder of another format, and say which version reads it."""
    if found > known:
        raise CorruptRelease(f"{folder} was written by a newer dpublish; upgrade to open it")
    if found < known:
        raise CorruptRelease(
            f"{folder} was written by dpublish 0.1 (format {found}), which this version does not "
            "read; open it with dpublish 0.1, or publish again"
        )


def _read_known(folder: Path, name: str, known: Fingerprint) -> bytes:
    """Read a table, once more compared with its digest: this is what is decoded."""
    if name.count("/") != 1 or not name.endswith(".parquet"):
        raise CorruptRelease(f"{folder}/{HEAD} names a table that is none")
    content = read_file(folder, name)
    if Fingerprint.of(content) != known:
        raise CorruptRelease(f"{folder}/{name} was changed or cut; ask for the release again")
    return content
