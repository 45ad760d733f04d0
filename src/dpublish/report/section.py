"""The hook by which a kind of release adds its own section to the report.

A new kind adds one line to `SECTIONS` and one file with a function that takes the release
and whether to draw, and gives a `Section`.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib import import_module

from dpublish.release.release import Release


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
    "histogram": "dpublish.report.histogram:section",
    "labeled-histogram": "dpublish.report.labeled_histogram:section",
    "grid-classifier": "dpublish.report.grid_classifier:section",
    "bayes-network": "dpublish.report.bayes_network:section",
    "decision-tree": "dpublish.report.decision_tree:section",
    "centers": "dpublish.report.centers:section",
    "tree-centers": "dpublish.report.centers:section",
    "wave-clusters": "dpublish.report.wave_clusters:section",
    "top-values": "dpublish.report.top_values:section",
    "linear-model": "dpublish.report.linear_model:section",
    "marginals": "dpublish.report.marginals:section",
    "copula": "dpublish.report.copula:section",
    "mixed-table": "dpublish.report.mixed_table:section",
    "cell-copulas": "dpublish.report.cell_copulas:section",
    "boxes": "dpublish.report.boxes:section",
    "wavelet-histogram": "dpublish.report.wavelet_histogram:section",
    "cell-sample": "dpublish.report.cell_sample:section",
    "personal": "dpublish.report.personal:section",
    "personal-answer": "dpublish.report.personal_answer:section",
    "histogram-stream": "dpublish.report.histogram_stream:section",
}


def section_of(release: Release, *, with_charts: bool = True) -> Section:
    """Make the section of a release, empty if its kind has none."""
    if release.kind not in SECTIONS:
        return Section()
    module, _, name = SECTIONS[release.kind].partition(":")
    make: Callable[[Release, bool], Section] = getattr(import_module(module), name)
    return make(release, with_charts)
