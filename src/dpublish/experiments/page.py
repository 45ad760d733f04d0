"""The page of an experiment: one self-contained HTML file, written for whoever comes by."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from importlib.metadata import version
from importlib.resources import files

from jinja2 import Environment, StrictUndefined, Template
from markupsafe import Markup


@dataclass(frozen=True)
class Listing:
    """A table with a caption; columns after the first `text_columns` hold numbers."""

    headers: Sequence[str]
    rows: Sequence[Sequence[str]]
    caption: str = ""
    text_columns: int = 1


@dataclass(frozen=True)
class Section:
    """A heading, what is said under it, a figure (SVG) and tables; all but the first optional."""

    heading: str
    paragraphs: Sequence[str] = ()
    figure: str | None = None
    figure_caption: str = ""
    listings: Sequence[Listing] = ()
    points: Sequence[str] = ()


@dataclass(frozen=True)
class Page:
    """A title, a sentence below it, and sections."""

    title: str
    lead: str
    sections: Sequence[Section]


def render_page(page: Page, stamp: str) -> str:
    """Write the page; text is escaped, figures are taken as they are."""
    figures = [None if s.figure is None else Markup(s.figure) for s in page.sections]
    return _template().render(
        page=page, stamp=stamp, figures=figures, package_version=version("dpublish")
    )


@cache
def _template() -> Template:
    environment = Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True)
    place = files("dpublish.experiments").joinpath("experiment_page.html")
    return environment.from_string(place.read_text("utf-8"))
