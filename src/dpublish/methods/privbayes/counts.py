"""Count by conditions in a published network: in one of its joint counts, or in its rows."""

from typing import TYPE_CHECKING

import numpy as np

from dpublish.accuracy.intervals import half_width, require_confidence
from dpublish.accuracy.noise_distribution import Terms, noise_variance
from dpublish.core.answer import Answer
from dpublish.core.query.axes import read_query
from dpublish.core.query.cells import CellCounts, bounded
from dpublish.core.query.language import parse_query, require_columns
from dpublish.core.query.weights import is_partial

if TYPE_CHECKING:
    from dpublish.methods.privbayes.released import PrivBayesRelease


def count_network(network: "PrivBayesRelease", query: str, confidence: float) -> Answer:
    """Count the records that satisfy `query`.

    If a joint count has all columns asked about, it answers with a confidence interval: the one of
    least noise among those that need not cut a cell, if there are such.  Which that is depends
    on the question and the network, not on the noise.  Else synthetic rows are counted.
    """
    require_confidence(confidence)
    parsed = parse_query(query)
    require_columns(parsed, network.schema.names)
    joints = [
        CellCounts(axes, joint.ravel(), network.noise_rate)
        for axes, joint in zip(network.joint_axes, network.joints, strict=True)
        if set(parsed.columns) <= {axis.column for axis in axes}
    ]
    if not joints:
        return network.sample.answer(query, confidence)
    best = min(joints, key=lambda joint: _doubt(joint, query))
    if not parsed.columns and noise_variance(network.size_rate) <= _doubt(best, query)[1]:
        reach = half_width(network.size_rate, np.ones(1), confidence)
        return bounded(network.size, network.size - reach, network.size + reach, confidence)
    return best.answer(query, confidence)


def _doubt(joint: CellCounts, query: str) -> tuple[bool, float]:
    """Tell whether an answer has to cut cells, and the variance of its noise."""
    weights = read_query(joint.axes, query).weights
    terms = Terms.of_products(weights, float(joint.rate or 0))
    return any(np.any(is_partial(along)) for along in weights), float(terms.variances.sum())
