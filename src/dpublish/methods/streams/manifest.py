"""The manifest of a stream's folder, which grows: manifest.json.

It holds the digests of stream.json, of the list of steps as far as it went when the manifest was
written, and of the pages that people read.  The list of steps holds the digest of every step's
counts.  Lines that were added to the list since are whole steps, but not in the manifest yet.

Pages are replaced one after the other, and a process may be killed in between.  So before they
are, a manifest is written that takes both, the new pages and those that they replace; and when
all are in their place, one that takes the new ones only.
"""

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from hashlib import sha256
from pathlib import Path
from typing import Any, Self

from dpublish.core.folder.manifest import SIGNATURE, Differences, read_entries, read_entry, to_entry
from dpublish.core.folder.opening import (
    MOST_JSON_BYTES,
    Fingerprint,
    fingerprint,
    list_names,
    parse_json,
    read_file,
)
from dpublish.errors import CorruptRelease
from dpublish.storage.writing import json_bytes

FORMAT = 1
HEAD = "stream.json"
STEPS = "steps.jsonl"
MANIFEST = "manifest.json"
PAGES = ("datapackage.json", "report.html")
OWN = (HEAD, STEPS, MANIFEST, SIGNATURE)


@dataclass(frozen=True)
class StreamManifest:
    """What a stream's folder held when the manifest was written.

    Attributes:
        head: Fingerprint of stream.json.
        steps: Fingerprint of the list of steps, as far as it went.
        pages: Fingerprints of the pages, by name.
        replaced: While pages are being replaced: those that were there before, by name.
    """

    head: Fingerprint
    steps: Fingerprint
    pages: Mapping[str, Fingerprint]
    replaced: Mapping[str, Fingerprint] | None = None

    @classmethod
    def of(cls, head: bytes, steps: bytes) -> Self:
        """Make the manifest of a folder without pages."""
        return cls(Fingerprint.of(head), Fingerprint.of(steps), {})

    @classmethod
    def read(cls, folder: Path) -> Self:
        """Read the manifest of a folder."""
        return cls.parse(folder, read_file(folder, MANIFEST, MOST_JSON_BYTES))

    @classmethod
    def parse(cls, folder: Path, content: bytes) -> Self:
        """Read the content of a manifest."""
        plain = parse_json(content, folder / MANIFEST)
        if not isinstance(plain, dict) or plain.get("format") != FORMAT:
            raise CorruptRelease(f"{folder / MANIFEST} is not one that this version can read")
        replaced = plain.get("replaced")
        return cls(
            read_entry(plain.get(HEAD)),
            read_entry(plain.get(STEPS)),
            read_entries(plain.get("files")),
            None if replaced is None else read_entries(replaced),
        )

    def to_bytes(self) -> bytes:
        """Write the content of manifest.json."""
        plain: dict[str, Any] = {
            "format": FORMAT,
            HEAD: to_entry(self.head),
            STEPS: to_entry(self.steps),
            "files": {name: to_entry(known) for name, known in self.pages.items()},
        }
        if self.replaced is not None:
            plain["replaced"] = {name: to_entry(known) for name, known in self.replaced.items()}
        return json_bytes(plain)

    def takes(self, name: str, found: Fingerprint | None) -> bool:
        """Return whether a page may be this one; None says that there is none."""
        if found == self.pages.get(name):
            return True
        return self.replaced is not None and found == self.replaced.get(name)

    def replacing(self, folder: Path, new: Mapping[str, Fingerprint]) -> "StreamManifest":
        """Return the manifest that takes new pages and those that are there, if they are ours."""
        names = sorted({*PAGES, *self.pages})  # the same order, so the same bytes, every time
        there = {name: _fingerprint(folder, name) for name in names}
        ours = {
            name: found
            for name, found in there.items()
            if found is not None and self.takes(name, found)
        }
        return replace(self, pages=dict(sorted({**ours, **new}.items())), replaced=ours)

    def covers(self, steps: bytes) -> bool:
        """Return whether a list of steps begins with the one that is in the manifest."""
        begin = steps[: self.steps.size]
        return Fingerprint(sha256(begin).hexdigest(), len(begin)) == self.steps

    def differences(self, folder: Path, head: bytes, steps: bytes) -> Differences:
        """Compare all of a folder but the counts of its steps with the manifest."""
        found = {name: _fingerprint(folder, name) for name in {*PAGES, *self.pages}}
        differing = [name for name, mark in found.items() if not self.takes(name, mark)]
        missing = [name for name in differing if found[name] is None]
        added = [name for name in differing if name not in self.pages and found[name] is not None]
        changed = [name for name in differing if name not in (*missing, *added)]
        if Fingerprint.of(head) != self.head:
            changed.append(HEAD)
        if not self.covers(steps):
            changed.append(STEPS)
        return Differences(tuple(sorted(changed)), tuple(sorted(missing)), tuple(sorted(added)))

    def strangers(self, folder: Path) -> list[str]:
        """Name the files at the top of a folder that do not belong to a stream."""
        known = {*OWN, *PAGES, *self.pages, "data"}
        return [
            name for name in list_names(folder) if name not in known and not name.startswith(".")
        ]


def _fingerprint(folder: Path, name: str) -> Fingerprint | None:
    with suppress(FileNotFoundError):
        (folder / name).lstat()
        return fingerprint(folder, name)
    return None
