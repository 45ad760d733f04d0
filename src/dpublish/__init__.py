"""Publish something useful from a sensitive table under differential privacy.

The public names are listed here and imported when they are first used, so that asking the
command for help does not load the whole field of statistics.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dpublish.classification.decision_tree import PrivateDecisionTree
    from dpublish.classification.grid_choice import GridChoice
    from dpublish.classification.majority import MajorityClass
    from dpublish.classification.projection import Projection
    from dpublish.classification.specialization import Specialization
    from dpublish.data.schema import Schema
    from dpublish.data.schema_file import load_schema
    from dpublish.data.sources import open_table
    from dpublish.errors import DPublishError
    from dpublish.methods import make_method
    from dpublish.methods.streams import make_stream_method
    from dpublish.privacy.budget import Budget
    from dpublish.privacy.ledger import Ledger
    from dpublish.publishing import publish
    from dpublish.publishing.stream_operator import StreamOperator
    from dpublish.randomness import secure, seeded
    from dpublish.ranking.frequent_values import FrequentValues
    from dpublish.release.folder import load
    from dpublish.release.release import Release
    from dpublish.synthesis.bayes_network import PrivateBayesNetwork
    from dpublish.synthesis.histograms.noisy import NoisyHistogram

_HOME = {
    "Budget": "dpublish.privacy.budget",
    "DPublishError": "dpublish.errors",
    "FrequentValues": "dpublish.ranking.frequent_values",
    "GridChoice": "dpublish.classification.grid_choice",
    "Ledger": "dpublish.privacy.ledger",
    "MajorityClass": "dpublish.classification.majority",
    "NoisyHistogram": "dpublish.synthesis.histograms.noisy",
    "PrivateBayesNetwork": "dpublish.synthesis.bayes_network",
    "PrivateDecisionTree": "dpublish.classification.decision_tree",
    "Projection": "dpublish.classification.projection",
    "Release": "dpublish.release.release",
    "Schema": "dpublish.data.schema",
    "Specialization": "dpublish.classification.specialization",
    "StreamOperator": "dpublish.publishing.stream_operator",
    "load": "dpublish.release.folder",
    "load_schema": "dpublish.data.schema_file",
    "make_method": "dpublish.methods",
    "make_stream_method": "dpublish.methods.streams",
    "open_table": "dpublish.data.sources",
    "publish": "dpublish.publishing",
    "secure": "dpublish.randomness",
    "seeded": "dpublish.randomness",
}

__all__ = [
    "Budget",
    "DPublishError",
    "FrequentValues",
    "GridChoice",
    "Ledger",
    "MajorityClass",
    "NoisyHistogram",
    "PrivateBayesNetwork",
    "PrivateDecisionTree",
    "Projection",
    "Release",
    "Schema",
    "Specialization",
    "StreamOperator",
    "load",
    "load_schema",
    "make_method",
    "make_stream_method",
    "open_table",
    "publish",
    "secure",
    "seeded",
]


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'dpublish' has no attribute {name!r}")
    return getattr(import_module(_HOME[name]), name)


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
