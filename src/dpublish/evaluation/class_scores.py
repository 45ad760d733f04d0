"""Scores of classes that a released classifier gives to rows, where it gives any.

They put rows in an order, so that the area under the curve can be measured; they need not be
probabilities.
"""

from typing import Any

import numpy as np
import pyarrow as pa

from dpublish.core.prediction import encode_rows
from dpublish.core.released import Release
from dpublish.errors import InvalidQuery
from dpublish.methods.histogram.released import LabeledHistogramRelease
from dpublish.methods.linear_models.released import LinearModelRelease
from dpublish.methods.personalized.released import PersonalizedRelease
from dpublish.methods.privbayes.released import PrivBayesRelease
from dpublish.methods.privpfc.released import PrivPfCRelease
from dpublish.methods.trees.released import DecisionTreeRelease
from dpublish.types import FloatArray, IntArray


def release_scores(release: Release, rows: pa.Table) -> FloatArray | None:
    """Score each class (a column) for each of `rows`; None of a release that gives classes only."""
    for kind, score in _SCORES:
        if isinstance(release, kind):
            found: FloatArray | None = score(release, rows)
            return found
    return None


def _of_linear(release: LinearModelRelease, rows: pa.Table) -> FloatArray | None:
    if release.model == "linear":
        return None
    scores = release.decision(encode_rows(rows, release.schema, release.features.columns))
    return np.hstack([-scores, scores]) if scores.shape[1] == 1 else scores


def _of_grid(release: PrivPfCRelease, rows: pa.Table) -> FloatArray:
    return release.predict_proba(rows)


def _of_cells(release: LabeledHistogramRelease, rows: pa.Table) -> FloatArray:
    names = [axis.column for axis in release.predictors]
    cells, known = release.locate(encode_rows(rows, release.schema, names), rows.num_rows)
    groups, labels = np.divmod(release.cells, release.classes.size)
    occupied, positions = np.unique(groups, return_inverse=True)
    # The last line is that of cells that were not published, and of unknown values.
    counts = np.zeros((occupied.size + 1, release.classes.size), dtype=np.int64)
    counts[positions, labels] = release.counts.ravel()
    at = np.searchsorted(occupied, cells)
    found = known & (np.append(occupied, -1)[at] == cells)
    return _shares(counts)[np.where(found, at, occupied.size)]


def _of_tree(release: DecisionTreeRelease, rows: pa.Table) -> FloatArray:
    codes = encode_rows(rows, release.schema, release.routes.columns)
    return _shares(release.node_counts)[release.routes.follow(codes, rows.num_rows)]


def _of_network(release: PrivBayesRelease, rows: pa.Table) -> FloatArray | None:
    if release.target is None:
        return None
    names = [name for name in release.schema.names if name != release.target]
    if not names:
        return None
    return release.score_codes(encode_rows(rows, release.schema, names))


def _of_parts(release: PersonalizedRelease, rows: pa.Table) -> FloatArray | None:
    try:
        found = release.predict_proba(rows)
    except InvalidQuery:  # its parts give classes only
        return None
    return np.stack([column.to_numpy() for column in found.columns], axis=1)


def _shares(counts: IntArray) -> FloatArray:
    """Turn noisy counts by class into shares; few counts lean on those of all cells."""
    plausible = np.maximum(counts, 0)
    total = plausible.sum(axis=0) + 1
    smooth = plausible + total / total.sum()
    return np.asarray(smooth / smooth.sum(axis=1, keepdims=True))


_SCORES: tuple[tuple[type[Release], Any], ...] = (
    (LinearModelRelease, _of_linear),
    (PrivPfCRelease, _of_grid),
    (LabeledHistogramRelease, _of_cells),
    (DecisionTreeRelease, _of_tree),
    (PrivBayesRelease, _of_network),
    (PersonalizedRelease, _of_parts),
)
"""The first kind that fits is taken: a grid classifier is a labeled histogram, too."""
