"""The hook by which a kind of release adds its own section to the report.

A new kind adds one line to `SECTIONS` and one file with a function that takes the release
and whether to draw, and gives a `Section`.
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
    "mixed-table": "dpublish.methods.dpcopula.report:mixed_section",
    "cell-copulas": "dpublish.methods.dpcopula.report:cells_section",
    "boxes": "dpublish.methods.spatial.report:section",
    "wavelet-histogram": "dpublish.methods.privelet.report:section",
    "cell-sample": "dpublish.methods.filter_priority.report:section",
    "personal": "dpublish.methods.personalized.report:section",
    "personal-answer": "dpublish.methods.personalized.report:answer_section",
    "histogram-stream": "dpublish.methods.streams.report:section",
}


def section_of(release: Release, *, with_charts: bool = True) -> Section:
    """Make the section of a release, empty if its kind has none."""
    if release.kind not in SECTIONS:
        return Section()
    module, _, name = SECTIONS[release.kind].partition(":")
    make: Callable[[Release, bool], Section] = getattr(import_module(module), name)
    return make(release, with_charts)
