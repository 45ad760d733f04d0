"""Publish something useful from a sensitive table under differential privacy.

The public names are listed here and imported when they are first used, so that asking the
command for help does not load the whole field of statistics.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dpublish.core.folder.folder import load
    from dpublish.core.registry import make_method
    from dpublish.core.released import Release
    from dpublish.core.stream_catalog import make_stream_method
    from dpublish.data.schema import Schema
    from dpublish.data.schema_file import load_schema
    from dpublish.data.sources import open_table
    from dpublish.errors import DPublishError
    from dpublish.ledger.ledger import Ledger
    from dpublish.methods.diffgen.diffgen import Specialization
    from dpublish.methods.histogram.histogram import NoisyHistogram
    from dpublish.methods.pph.pph import Projection
    from dpublish.methods.privbayes.privbayes import PrivateBayesNetwork
    from dpublish.methods.privpfc.privpfc import GridChoice
    from dpublish.methods.topk.topk import FrequentValues
    from dpublish.methods.trees.diffpid3 import PrivateDecisionTree
    from dpublish.methods.trees.majority import MajorityClass
    from dpublish.privacy.budget import Budget
    from dpublish.publishing import publish
    from dpublish.publishing.streams.operator import StreamOperator
    from dpublish.randomness import secure, seeded

_HOME = {
    "Budget": "dpublish.privacy.budget",
    "DPublishError": "dpublish.errors",
    "FrequentValues": "dpublish.methods.topk.topk",
    "GridChoice": "dpublish.methods.privpfc.privpfc",
    "Ledger": "dpublish.ledger.ledger",
    "MajorityClass": "dpublish.methods.trees.majority",
    "NoisyHistogram": "dpublish.methods.histogram.histogram",
    "PrivateBayesNetwork": "dpublish.methods.privbayes.privbayes",
    "PrivateDecisionTree": "dpublish.methods.trees.diffpid3",
    "Projection": "dpublish.methods.pph.pph",
    "Release": "dpublish.core.released",
    "Schema": "dpublish.data.schema",
    "Specialization": "dpublish.methods.diffgen.diffgen",
    "StreamOperator": "dpublish.publishing.streams.operator",
    "load": "dpublish.core.folder.folder",
    "load_schema": "dpublish.data.schema_file",
    "make_method": "dpublish.core.registry",
    "make_stream_method": "dpublish.core.stream_catalog",
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
