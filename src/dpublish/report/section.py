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
_NUMBER = re.compile(rf"({_AMOUNT}( ± ?{_AMOUNT})?\*?( %)?)?|cannot run")
_OPEN_FIGURES = 1
_TITLE_HEADERS = 4
_OPEN_ROWS, _OPEN_ROWS_BELOW_FIGURES = 12, 4


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

    @property
    def title(self) -> str:
        """The first sentence of the caption, or else the headers: the label of a folded table.

        >>> Listing(["a"], [], "The cells. Some are hidden.").title
        'The cells'
        """
        said = self.caption.partition(". ")[0].rstrip(".")
        names = [header for header in self.headers if header]
        rest = ", …" if len(names) > _TITLE_HEADERS else ""
        return said or f"Table: {', '.join(names[:_TITLE_HEADERS])}{rest}"


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
        is_folded: Whether only the heading is seen until a reader opens the section.
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
    is_folded: bool = False

    @property
    def open_figures(self) -> Sequence[Figure]:
        """The drawings that are seen at once."""
        return self.figures[:_OPEN_FIGURES]

    @property
    def folded_figures(self) -> Sequence[Figure]:
        """The drawings that a reader has to open."""
        return self.figures[_OPEN_FIGURES:]

    def folds(self, listing: Listing) -> bool:
        """Return whether a reader has to open a table: all but a short first one."""
        most = _OPEN_ROWS_BELOW_FIGURES if self.figures else _OPEN_ROWS
        is_first = listing is self.listings[0]
        return listing.is_folded or not is_first or len(listing.rows) > most


def section_of(release: Release, *, with_charts: bool = True) -> Section:
    """Build the section of a release, empty if its kind has none."""
    if not release.report:
        return Section()
    module, _, name = release.report.partition(":")
    make: Callable[[Release, bool], Section] = getattr(import_module(module), name)
    return make(release, with_charts)
