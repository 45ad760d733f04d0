"""What pages are made of, and the hook by which a kind of release adds its own section.

Reports of releases, evaluations and experiments are all made of these sections.  A released
value names in `report` a function that takes the release and whether to draw, and returns a
`Section`.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import import_module

from dpublish.core.released import Release

_AMOUNT = r"[-+]?\d[\d,]*(\.\d+)?"
_NUMBER = re.compile(rf"({_AMOUNT}( ±{_AMOUNT})?\*?( %)?)?|cannot run")


@dataclass(frozen=True)
class Figure:
    """A drawing (inline SVG), what it shows, and the same for those who cannot see it.

    `alt` says what a reader would take from the drawing; the caption if it is empty.
    """

    caption: str
    svg: str
    alt: str = ""


@dataclass(frozen=True)
class Listing:
    """A small table; columns of numbers are aligned to the right, a folded one is closed."""

    headers: Sequence[str]
    rows: Sequence[Sequence[str]]
    caption: str = ""
    is_folded: bool = False

    @property
    def numeric(self) -> list[bool]:
        """Whether each column holds nothing but numbers."""
        columns = zip(*self.rows, strict=True) if self.rows else [()] * len(self.headers)
        return [any(column) and all(map(_NUMBER.fullmatch, column)) for column in columns]


@dataclass(frozen=True)
class Section:
    """A heading and what is shown under it, in the order of the fields.

    Text is escaped unless it is `Markup`.

    Attributes:
        heading: The heading.
        paragraphs: Text.
        points: A list.
        is_boxed: Whether text and list are set apart in a box.
        pairs: A table of names and values.
        figures: Drawings.
        listings: Tables.
        code: Blocks of code.
        notes: Text in small print.
        python: Of a release: a few lines of Python that use it.
        shell: Of a release: a few commands that use it.
    """

    heading: str = ""
    paragraphs: Sequence[str] = ()
    points: Sequence[str] = ()
    is_boxed: bool = False
    pairs: Mapping[str, str] = field(default_factory=dict)
    figures: Sequence[Figure] = ()
    listings: Sequence[Listing] = ()
    code: Sequence[str] = ()
    notes: Sequence[str] = ()
    python: str = ""
    shell: str = ""


def section_of(release: Release, *, with_charts: bool = True) -> Section:
    """Build the section of a release, empty if its kind has none."""
    if not release.report:
        return Section()
    module, _, name = release.report.partition(":")
    make: Callable[[Release, bool], Section] = getattr(import_module(module), name)
    return make(release, with_charts)
