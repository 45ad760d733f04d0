"""The grid classifier's section: the grid as a labeled histogram, and what refines it."""

from dataclasses import replace

from dpublish.core.released import Release
from dpublish.methods.histogram.report import classifier_section
from dpublish.methods.privpfc.released import PrivPfCRelease
from dpublish.methods.privpfc.score_card import STEP
from dpublish.report.section import Listing, Section

_MAX_CELLS = 40
_REFINED = (
    "Rules and accuracy below are those of the grid. Refinements change some of its predictions, "
    "usually for the better; no published count tells how many of these are right."
)


def section(release: Release, with_charts: bool) -> Section:
    """Show a grid classifier."""
    if not isinstance(release, PrivPfCRelease):
        return Section()
    predicted = release.card.terms[0].scores.argmax(axis=1)
    grid = classifier_section(release, with_charts, predicted)
    listings = [_listing(release, number) for number in range(len(release.refinements))]
    said = [_REFINED] if listings else []
    return replace(grid, paragraphs=said, listings=[*grid.listings, *listings])


def _listing(release: PrivPfCRelease, number: int) -> Listing:
    refinement = release.refinements[number]
    scores = refinement.term.scores[:_MAX_CELLS]
    labels = release.classes.labels
    rows = [
        [label, *(f"{score / STEP:+.2f}" for score in row)]
        for label, row in zip(refinement.axis.labels, scores.tolist(), strict=False)
    ]
    shown = "" if len(rows) == refinement.axis.size else f", the first {len(rows)} cells"
    return Listing(
        headers=[refinement.axis.column, *labels],
        rows=rows,
        caption=f"{_ordinal(number)} refinement: what {refinement.axis.column} adds to the "
        f"log-odds of each class{shown}.",
    )


def _ordinal(number: int) -> str:
    """Write the ordinal number of a refinement in words.

    >>> _ordinal(0), _ordinal(9)
    ('First', 'Number 10')
    """
    words = ("First", "Second", "Third", "Fourth", "Fifth", "Sixth", "Seventh", "Eighth")
    return words[number] if number < len(words) else f"Number {number + 1}"
