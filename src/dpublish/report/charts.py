"""Charts of a release outside its report: `release.plot()`."""

from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import Any

from dpublish.core.released import Release
from dpublish.display import require_matplotlib
from dpublish.errors import InvalidParameter, InvalidType
from dpublish.plots.style import KEPT, keeping_figures
from dpublish.report.section import Figure, section_of


@dataclass(frozen=True)
class Picture:
    """A chart that is written as SVG by hand; a notebook shows it."""

    caption: str
    svg: str

    def __repr__(self) -> str:
        return f"Picture({self.caption!r})"

    def _repr_html_(self) -> str:
        return f'<figure style="max-width:600px">{self.svg}<p>{escape(self.caption)}</p></figure>'

    def save(self, path: str | Path) -> Path:
        """Write the picture to an .svg file."""
        Path(path).write_text(standalone(self.svg), encoding="utf-8")
        return Path(path)


def standalone(svg: str) -> str:
    """Write a drawing as a file of its own, which has to name its language.

    >>> standalone('<svg role="img"></svg>')
    '<svg xmlns="http://www.w3.org/2000/svg" role="img"></svg>'
    """
    name = 'xmlns="http://www.w3.org/2000/svg"'
    return svg if name in svg else svg.replace("<svg", f"<svg {name}", 1)


def chart_of(release: Release, which: int | str = 0) -> Any:
    """Draw one chart of a release's report: a Matplotlib figure, or a `Picture`."""
    require_matplotlib()
    with keeping_figures() as kept:
        figures = list(section_of(release).figures)
    if not figures:
        raise InvalidParameter(
            f"the report of a release of kind {release.kind!r} has no chart; to_pandas() gives its "
            "table"
        )
    chosen = _choose([figure.caption for figure in figures], which)
    if figures[chosen].svg != KEPT:
        return Picture(figures[chosen].caption, figures[chosen].svg)
    return kept[_drawn_before(figures, chosen)]


def _drawn_before(figures: list[Figure], number: int) -> int:
    """Count the figures before one that were drawn with Matplotlib."""
    return sum(figure.svg == KEPT for figure in figures[:number])


def _choose(captions: list[str], which: int | str) -> int:
    if isinstance(which, bool) or not isinstance(which, (int, str)):
        raise InvalidType(
            "which must be the number of a chart or a word of its caption, such as 0 or "
            f'"age", not an object of type {type(which).__name__}'
        )
    if isinstance(which, int):
        if not -len(captions) <= which < len(captions):
            raise InvalidParameter(f"there are charts 0 to {len(captions) - 1}, not {which}")
        return which % len(captions)
    fitting = [number for number, text in enumerate(captions) if which.lower() in text.lower()]
    if not fitting:
        raise InvalidParameter(f"no chart is about {which!r}; there are: {' '.join(captions)}")
    return fitting[0]
