"""The section of cells and copulas: the fullest cells, every column's counts, correlations."""

import shlex

import numpy as np
from numpy.typing import NDArray

from dpublish.core.query.language import quote
from dpublish.core.released import Release
from dpublish.methods.dpcopula.released_cells import CellCopulasRelease
from dpublish.report.axis_marginals import marginal_figures
from dpublish.report.section import Figure, Listing, Section

_MAX_LISTED = 20


def section(release: Release, with_charts: bool) -> Section:
    """Show cells and copulas."""
    if not isinstance(release, CellCopulasRelease):
        return Section()
    axis = release.groups.categories[0]
    question = f"{quote(axis.column)} = {quote(axis.labels[0])}"
    listings = [_fullest(release)]
    if len(release.numbers) > 1:
        listings.append(_correlations(release))
    return Section(
        figures=_figures(release) if with_charts else (),
        listings=listings,
        python=f"release.count({question!r})\nrelease.rows(1000).to_pandas()",
        shell=f"dpublish count RELEASE {shlex.quote(question)}\n"
        "dpublish rows RELEASE -n 1000 -o rows.csv",
    )


def _figures(release: CellCopulasRelease) -> list[Figure]:
    """Draw each column: cells added up over the others, marginals over all groups."""
    groups = release.groups
    cube = groups.estimates.reshape(groups.shape)
    counts: list[NDArray[np.float64]] = []
    for place in range(len(groups.categories)):
        others = tuple(axis for axis in range(cube.ndim) if axis != place)
        counts.append(cube.sum(axis=others))
    sizes = np.maximum(groups.sizes, 0)
    for distributions in zip(*groups.distributions, strict=True):
        counts.append(
            sizes @ np.stack([distribution.probabilities for distribution in distributions])
        )
    return marginal_figures((*groups.categories, *groups.numbers), counts, "Estimated counts")


def _fullest(release: CellCopulasRelease) -> Listing:
    groups = release.groups
    order = np.argsort(-groups.counts, kind="stable")[:_MAX_LISTED]
    along = np.unravel_index(order, groups.shape)
    rows = [
        [
            *(axis.labels[i[k]] for axis, i in zip(groups.categories, along, strict=True)),
            f"{groups.counts[cell]:,}",
            "yes" if groups.group_of[cell] < groups.kept.size else "no",
        ]
        for k, cell in enumerate(order)
    ]
    caption = f"The {len(rows)} fullest of {groups.counts.size:,} cells."
    if groups.kept.size:
        least = groups.counts[groups.kept].min()
        caption += f" Cells with marginals of their own have a noisy count of {least:,} or more."
    return Listing(
        headers=[*(axis.column for axis in groups.categories), "noisy count", "own marginals"],
        rows=rows,
        caption=caption,
    )


def _correlations(release: CellCopulasRelease) -> Listing:
    first, second = np.triu_indices(len(release.numbers), 1)
    rows = [
        [
            release.numbers[i],
            release.numbers[j],
            f"{release.matrix[i, j]:.2f}",
            f"{release.reading.spread[i, j]:.2g}",
        ]
        for i, j in zip(first, second, strict=True)
    ]
    return Listing(
        headers=["column", "column", "correlation", "deviation due to noise"],
        rows=rows,
        caption="Correlations inside groups of cells, of the normal variables behind columns.",
    )
