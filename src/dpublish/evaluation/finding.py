"""What an evaluation found, in a form for people and in one for programs."""

from collections.abc import Sequence
from typing import Any, NamedTuple


class Finding(NamedTuple):
    """A table of figures for people, and the same figures for programs."""

    name: str
    title: str
    headers: Sequence[str]
    rows: Sequence[Sequence[str]]
    notes: Sequence[str]
    figures: dict[str, Any]
