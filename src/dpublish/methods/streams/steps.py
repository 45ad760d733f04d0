"""The steps of a stream as its release folder lists them: labels, lines and places of files.

A step is known by its label, which says what time the snapshot is of.  Labels increase in
their natural order, in which digits count as numbers: `day-9` comes before `day-10`.
"""

import json
import re
import unicodedata
from dataclasses import dataclass
from fractions import Fraction
from math import isfinite
from typing import Any, Literal, Self
from urllib.parse import quote

from dpublish.errors import InvalidParameter
from dpublish.ledger.text import is_one_line
from dpublish.privacy.epsilon import format_epsilon, quoted, read_exact

LONGEST_LABEL = 200
"""Most bytes of a step's folder name; disks take 255, and archives may add something."""

_NUMBERS = re.compile(r"([0-9]+)")
_SHA256 = re.compile(r"[0-9a-f]{64}")

Action = Literal["published", "repeated"]


def clean_label(text: str) -> str:
    """Give a label as it is stored; refuse what cannot name a step.

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
    """Give what labels are ordered by; capitals do not count, for not all disks know them.

    >>> natural_key("day-9") < natural_key("day-10") < natural_key("Day-10b")
    True
    """
    parts = _NUMBERS.split(label.casefold())
    return tuple(int(part) if place % 2 else part for place, part in enumerate(parts))


def label_shape(label: str) -> str:
    """Give what the labels of a stream share: all but their numbers, and capitals.

    >>> label_shape("2024-05-01T10"), label_shape("Day-9") == label_shape("day-10")
    ('0-0-0t0', True)
    """
    return _NUMBERS.sub("0", label.casefold())


def label_problem(time: str, last: str | None, *, allow_new: bool) -> str | None:
    """Say why a label cannot follow the last one, if it cannot.

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
