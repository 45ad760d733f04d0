"""What pages are made of, and the hook by which a kind of release adds its own section.

Reports of releases, evaluations and experiments are all made of these sections.  A new kind of
release adds one line to `SECTIONS` and one file with a function that takes the release and
whether to draw, and returns a `Section`.
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
    """A drawing (inline SVG) and what it shows."""

    caption: str
    svg: str


@dataclass(frozen=True)
class Listing:
    """A small table; columns of numbers are aligned to the right."""

    headers: Sequence[str]
    rows: Sequence[Sequence[str]]
    caption: str = ""

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


SECTIONS = {
    "histogram": "dpublish.methods.histogram.report:section",
    "labeled-histogram": "dpublish.methods.histogram.report:labeled_section",
    "grid-classifier": "dpublish.methods.privpfc.report:section",
    "bayes-network": "dpublish.methods.privbayes.report:section",
    "decision-tree": "dpublish.methods.trees.report:section",
    "centers": "dpublish.methods.kmeans.report:section",
    "tree-centers": "dpublish.methods.kmeans.report:section",
    "wave-clusters": "dpublish.methods.wavecluster.report:section",
    "top-values": "dpublish.methods.topk.report:section",
    "linear-model": "dpublish.methods.linear_models.report:section",
    "marginals": "dpublish.methods.marginals.report:section",
    "copula": "dpublish.methods.dpcopula.report:section",
    "mixed-table": "dpublish.methods.dpcopula.report_hybrid:section",
    "cell-copulas": "dpublish.methods.dpcopula.report_cells:section",
    "boxes": "dpublish.methods.spatial.report:section",
    "wavelet-histogram": "dpublish.methods.privelet.report:section",
    "cell-sample": "dpublish.methods.filter_priority.report:section",
    "personal": "dpublish.methods.personalized.report:section",
    "personal-answer": "dpublish.methods.personalized.report_answer:section",
    "histogram-stream": "dpublish.methods.streams.report:section",
}


def section_of(release: Release, *, with_charts: bool = True) -> Section:
    """Build the section of a release, empty if its kind has none."""
    if release.kind not in SECTIONS:
        return Section()
    module, _, name = SECTIONS[release.kind].partition(":")
    make: Callable[[Release, bool], Section] = getattr(import_module(module), name)
    return make(release, with_charts)
