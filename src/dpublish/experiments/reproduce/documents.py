"""The research documents, and their items by study."""

from collections.abc import Sequence
from functools import cache
from importlib import import_module
from typing import NamedTuple

from dpublish.experiments.reproduce.item import Item


class Document(NamedTuple):
    """A research document: who wrote what, and a sentence on what it brings."""

    title: str
    source: str
    about: str


DOCUMENTS = {
    "su-thesis": Document(
        "Differentially private data publishing for data analysis",
        "D. Su, PhD thesis, Purdue University, 2016",
        "PrivPfC and its rivals (chapter 3), k-means (chapter 4), the sparse vector technique "
        "against the exponential mechanism (chapter 5).",
    ),
    "privpfc": Document(
        "PrivPfC: differentially private data publication for classification",
        "D. Su, J. Cao, N. Li, M. Lyu, VLDB Journal, 2018",
        "A grid of cells, chosen in one private step, from which others learn to classify.",
    ),
    "li-thesis": Document(
        "Differentially private data release and analytics",
        "H. Li, PhD thesis, Emory University, 2017",
        "Synthetic tables by copulas (chapter 3), histograms of changing tables (chapter 4), "
        "each person's own epsilon (chapter 5).",
    ),
    "privgene": Document(
        "PrivGene: differentially private model fitting using genetic algorithms",
        "J. Zhang, X. Xiao, Y. Yang, Z. Zhang, M. Winslett, SIGMOD 2013",
        "Models that are bred by private choices.",
    ),
    "wavecluster": Document(
        "WaveCluster with differential privacy",
        "L. Chen, T. Yu, R. Chirkova, North Carolina State University",
        "Clusters of any shape from wavelet coefficients of a grid of counts.",
    ),
}
STUDIES = (
    "general",
    "classification",
    "kmeans",
    "svt",
    "copula",
    "streams",
    "personalized",
    "models",
    "wavecluster",
)
"""The modules beside this one that list items, in the order of pages."""


@cache
def all_items() -> tuple[Item, ...]:
    """List the items of all studies."""
    modules = (import_module(f"dpublish.experiments.reproduce.{name}") for name in STUDIES)
    return tuple(item for module in modules for item in module.ITEMS)


def items_of(document: str, items: Sequence[Item]) -> list[Item]:
    """List the items of a document."""
    return [item for item in items if document in item.numbers]
