"""The manifest of a release folder: every file with its digest, so that any change shows.

Of an ordinary release it is the part `files` of release.json.  A stream's folder grows, so its
manifest is a file of its own, manifest.json (`methods.streams.listing`).
"""

import os
import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dpublish.core.folder.opening import MOST_FILES, Fingerprint, fingerprint, list_files
from dpublish.errors import CorruptRelease, InvalidParameter

SIGNATURE = "release.sig"
"""The file of the owner's signature; it signs the manifest, so the manifest does not list it."""

_SHA256 = re.compile(r"[0-9a-f]{64}")
_MOST_NAMED = 10


@dataclass(frozen=True)
class Differences:
    """Where a folder is not what its manifest says."""

    changed: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()
    added: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.changed or self.missing or self.added)

    def to_dict(self) -> dict[str, list[str]]:
        """Turn the differences into plain values."""
        return {name: list(files) for name, files in vars(self).items()}

    def tell(self) -> str:
        """Name the files that differ."""
        words = {
            "changed or cut": self.changed,
            "missing": self.missing,
            "added (not in the manifest)": self.added,
        }
        return "; ".join(f"{word}: {_named(files)}" for word, files in words.items() if files)

    def require_none(self, folder: Path) -> None:
        """Refuse a folder that differs, and name the files."""
        if self:
            advice = "ask for the release again"
            if not self.changed and not self.missing:
                advice = "a release holds nothing but its own files, so move others out of it"
            raise CorruptRelease(f"{folder} is not as it was published: {self.tell()}; {advice}")


def to_entry(of: Fingerprint) -> dict[str, Any]:
    """Write the entry of a file."""
    return {"sha256": of.sha256, "bytes": of.size}


def read_entry(entry: Any) -> Fingerprint:
    """Read back what `to_entry` wrote."""
    if not isinstance(entry, Mapping):
        raise CorruptRelease("a manifest is malformed")
    digest, size = entry.get("sha256"), entry.get("bytes")
    if not isinstance(digest, str) or not _SHA256.fullmatch(digest):
        raise CorruptRelease("a manifest names a digest that is none")
    if type(size) is not int or size < 0:
        raise CorruptRelease("a manifest names a size that is none")
    return Fingerprint(digest, size)


def read_entries(entries: Any) -> dict[str, Fingerprint]:
    """Read the list of files of a manifest."""
    if not isinstance(entries, Mapping) or len(entries) > MOST_FILES:
        raise CorruptRelease("a manifest has no list of files, or one that is too long")
    return {str(name): read_entry(entry) for name, entry in entries.items()}


def find_differences(
    folder: Path,
    listed: Mapping[str, Fingerprint],
    own: Collection[str],
    *,
    with_hidden: bool = False,
) -> Differences:
    """Compare the files of a folder with its manifest; `own` are files that it does not list.

    Files whose names, or whose folders' names, begin with a dot are passed over unless
    `with_hidden`: systems leave such files about, and people do not see them.
    """
    found = list_files(folder)
    changed = [
        name
        for name, known in listed.items()
        if name in found and (found[name] != known.size or fingerprint(folder, name) != known)
    ]
    return Differences(
        changed=tuple(changed),
        missing=tuple(name for name in listed if name not in found),
        added=tuple(
            name
            for name in found
            if name not in listed and name not in own and (with_hidden or not _is_hidden(name))
        ),
    )


def beside(release: str | Path, ending: str) -> Path:
    """Name a file beside a release folder: nothing is added to a folder that was published.

    A folder that was given by a relative path has its file at a relative path.

    >>> beside("releases/shops/", "choose-k.svg").as_posix()
    'releases/shops-choose-k.svg'
    """
    given, folder = Path(release), Path(os.path.abspath(release))
    if given.name == folder.name:  # a path that ends in .. has no name of its own
        folder = given
    return folder.with_name(f"{folder.name}-{ending}")


def require_outside(path: Path, release: str | Path) -> None:
    """Refuse to write into a release folder, which would not be as it was published."""
    inside = Path(os.path.realpath(path.parent)).is_relative_to(os.path.realpath(release))
    if inside:
        raise InvalidParameter(
            f"{path} lies inside the release folder, whose files are listed and must not change; "
            "name another folder"
        )


def _is_hidden(name: str) -> bool:
    return any(part.startswith(".") for part in name.split("/"))


def _named(files: tuple[str, ...]) -> str:
    rest = len(files) - _MOST_NAMED
    named = ", ".join(map(_printable, files[:_MOST_NAMED]))
    return f"{named} and {rest:,} more" if rest > 0 else named


def _printable(name: str) -> str:
    return name if name.isprintable() else ascii(name)
