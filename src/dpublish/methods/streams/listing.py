"""What a stream's folder lists: its steps (steps.jsonl) and its files (manifest.json).

A step is known by its label, which names the time of the snapshot.  Labels increase in their
natural order, in which digits count as numbers: `day-9` comes before `day-10`.

The manifest holds the digests of stream.json, of the list of steps as far as it went when the
manifest was written, and of the pages that people read.  The list of steps holds the digest of
every step's counts.  Lines that were added to the list since are whole steps, but not in the
manifest yet.

Pages are replaced one after the other, and a process may be killed in between.  So before they
are, a manifest is written that takes both, the new pages and those that they replace; and when
all are written, one that takes the new ones only.
"""

import json
import re
import unicodedata
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from fractions import Fraction
from hashlib import sha256
from math import isfinite
from pathlib import Path
from typing import Any, Literal, Self
from urllib.parse import quote

from dpublish.core.folder.manifest import SIGNATURE, Differences, read_entries, read_entry, to_entry
from dpublish.core.folder.opening import (
    MOST_JSON_BYTES,
    Fingerprint,
    fingerprint,
    list_names,
    parse_json,
    read_file,
)
from dpublish.errors import CorruptRelease, InvalidParameter
from dpublish.ledger.chain import is_one_line
from dpublish.privacy.epsilon import format_epsilon, quoted, read_exact
from dpublish.storage.files import json_bytes

FORMAT = 1
HEAD = "stream.json"
STEPS = "steps.jsonl"
MANIFEST = "manifest.json"
PAGES = ("datapackage.json", "report.html")
OWN = (HEAD, STEPS, MANIFEST, SIGNATURE)
LONGEST_LABEL = 200
"""Most bytes of a step's folder name; disks take 255, and archives may add something."""

_NUMBERS = re.compile(r"([0-9]+)")
_SHA256 = re.compile(r"[0-9a-f]{64}")

Action = Literal["published", "repeated"]


def clean_label(text: str) -> str:
    """Return a label as it is stored; refuse what cannot name a step.

    >>> clean_label(" 2024-05-01T10:00 ")
    '2024-05-01T10:00'
    """
    label = unicodedata.normalize("NFC", text).strip() if isinstance(text, str) else ""
    if not is_one_line(label):
        raise InvalidParameter(
            f"a step's time ({quoted(text)}) must be one line of text, such as 2024-05-01"
        )
    size = len(partition_name(label).encode())
    if size > LONGEST_LABEL:
        raise InvalidParameter(
            f"a step's time ({quoted(label)}) is too long: its folder's name takes {size} bytes, "
            f"at most {LONGEST_LABEL} (a letter takes 1 to 4, a sign such as : takes 3)"
        )
    return label


def natural_key(label: str) -> tuple[str | int, ...]:
    """Return what labels are ordered by; capitals do not count, for not all disks know them.

    >>> natural_key("day-9") < natural_key("day-10") < natural_key("Day-10b")
    True
    """
    parts = _NUMBERS.split(label.casefold())
    return tuple(int(part) if index % 2 else part for index, part in enumerate(parts))


def label_shape(label: str) -> str:
    """Return what the labels of a stream share: all but their numbers, and capitals.

    >>> label_shape("2024-05-01T10"), label_shape("Day-9") == label_shape("day-10")
    ('0-0-0t0', True)
    """
    return _NUMBERS.sub("0", label.casefold())


def label_problem(time: str, last: str | None, *, allow_new: bool) -> str | None:
    """Return why a label cannot follow the last one; None if it can.

    >>> label_problem("day-9", "day-10", allow_new=False)
    "'day-9' does not come after 'day-10', the last step: late snapshots cannot be filled in"
    """
    try:
        label = clean_label(time)
    except InvalidParameter as error:
        return str(error)
    if last is None:
        return None
    if natural_key(label) <= natural_key(last):
        return (
            f"{label!r} does not come after {last!r}, the last step: late snapshots cannot be "
            "filled in"
        )
    if allow_new or label_shape(label) == label_shape(last):
        return None
    return (
        f"{label!r} differs from {last!r}, the last step, in more than its numbers; a label cannot "
        "be taken back, and later ones must come after it: if that is meant, say --new-labels "
        "(allow_new_labels=True)"
    )


def partition_name(label: str) -> str:
    """Name the folder of a step, as tools that read partitioned Parquet expect it.

    Letters of any script stand as they are; of other signs, what tools may trip over does not.

    >>> partition_name("2024-05-01 10:00")
    'time=2024-05-01%2010%3A00'
    """
    return "time=" + "".join(sign if sign.isalnum() else quote(sign, safe="") for sign in label)


@dataclass(frozen=True)
class StepRecord:
    """What a stream says of one step, but for the counts themselves.

    Attributes:
        number: Number of the step, from 1.
        time: Label of its snapshot.
        action: Whether a fresh histogram was published or the last estimate repeated.
        epsilon: What the fresh histogram cost; 0 if there is none.
        noise: Standard deviation that noise gives one bin of the estimate.
        change: Sum over bins of how far the estimate moved at this step.
        spent: User level: spent so far; window level: spent in the window that ends here.
        sha256: Digest of the step's file of counts.
    """

    number: int
    time: str
    action: Action
    epsilon: Fraction
    noise: float
    change: float
    spent: Fraction
    sha256: str

    def __post_init__(self) -> None:
        """Refuse what no stream writes: a folder may come from anywhere."""
        whole = type(self.number) is int and self.number >= 1
        if not whole or self.time != clean_label(self.time):
            raise InvalidParameter("a step needs a number, from 1, and a label")
        if self.action not in ("published", "repeated"):
            raise InvalidParameter("a step is published or repeated")
        if self.spent < 0 or (self.epsilon > 0) is not (self.action == "published"):
            raise InvalidParameter("a step that publishes costs something, and no other does")
        for figure in (self.noise, self.change):
            if not (isinstance(figure, float) and isfinite(figure) and figure >= 0):
                raise InvalidParameter("noise and change of a step are numbers from 0")
        if not isinstance(self.sha256, str) or not _SHA256.fullmatch(self.sha256):
            raise InvalidParameter("a step names the digest of its file")

    @property
    def file(self) -> str:
        """Where the counts are, inside the release folder."""
        return f"data/{partition_name(self.time)}/counts.parquet"

    def to_dict(self) -> dict[str, Any]:
        """Turn the record into plain values."""
        return vars(self) | {
            "epsilon": format_epsilon(self.epsilon),
            "spent": format_epsilon(self.spent),
        }

    def to_line(self) -> bytes:
        """Write the record as a line of `steps.jsonl`."""
        text = json.dumps(self.to_dict(), ensure_ascii=False, allow_nan=False)
        return text.encode("utf-8") + b"\n"

    @classmethod
    def from_line(cls, line: bytes) -> Self:
        """Read back what `to_line` wrote; fields that a later version added are ignored."""
        plain = json.loads(line.decode("utf-8"))
        known = {name: plain[name] for name in cls.__dataclass_fields__}
        return cls(
            **known | {"epsilon": read_exact(known["epsilon"]), "spent": read_exact(known["spent"])}
        )


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

    def foreign_files(self, folder: Path) -> list[str]:
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
