"""The hook by which a kind of release adds its own section to the report.

A released value names in `report` a function that takes the release and whether to draw, and
returns a `Section`.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib import import_module

from dpublish.core.released import Release


@dataclass(frozen=True)
class Figure:
    """A drawing (inline SVG) and what it shows."""

    caption: str
    svg: str


@dataclass(frozen=True)
class Listing:
    """A small table."""

    headers: Sequence[str]
    rows: Sequence[Sequence[str]]
    caption: str = ""


@dataclass(frozen=True)
class Section:
    """What a kind of release shows of itself."""

    figures: Sequence[Figure] = ()
    listings: Sequence[Listing] = ()
    python: str = ""
    shell: str = ""


def section_of(release: Release, *, with_charts: bool = True) -> Section:
    """Make the section of a release, empty if its kind has none."""
    if not release.report:
        return Section()
    module, _, name = release.report.partition(":")
    make: Callable[[Release, bool], Section] = getattr(import_module(module), name)
    return make(release, with_charts)
