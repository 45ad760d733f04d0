"""One page model: a title, sections, and one self-contained HTML file for all kinds of pages."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from importlib.metadata import version
from importlib.resources import files
from itertools import count

from jinja2 import Environment, StrictUndefined, Template
from markupsafe import Markup

from dpublish.plots.inline import dark_rules, inline
from dpublish.report.section import Figure, Section

NO_PLOT = "There is no plot: Matplotlib is missing (run: pip install matplotlib)."


@dataclass(frozen=True)
class Page:
    """A title, a sentence below it, warnings in red, and sections."""

    title: str
    lead: str
    sections: Sequence[Section]
    stamps: Sequence[str] = ()


def render_page(page: Page) -> str:
    """Write the page; text is escaped, drawings are taken as they are."""
    numbers = count(1)

    def draw(figure: Figure) -> Markup:
        label = figure.alt or figure.caption
        return Markup(inline(figure.svg, next(numbers), label))

    return _template().render(page=page, draw=draw, dark=dark_rules())


def made_by() -> str:
    """Name the program and its version, for the line below a title."""
    return f"Made by dpublish {version('dpublish')}."


def render_template(name: str, **values: object) -> str:
    """Write a page of another shape, by its template beside this module; text is escaped."""
    return _template(name).render(**values)


@cache
def _template(name: str = "page.html") -> Template:
    environment = Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True)
    return environment.from_string(files("dpublish.report").joinpath(name).read_text("utf-8"))
