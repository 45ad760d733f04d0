"""The experiments by name.  Their modules are imported when they are run.

A module offers `STUDY`, a `dpublish.experiments.study.Study`.
"""

from typing import NamedTuple


class Entry(NamedTuple):
    """Where an experiment is, what it shows, and how often each trial is repeated by default."""

    module: str
    title: str
    repeats: int


_STUDIES = {
    "svt-vs-em": (
        "Which private choice of the c most frequent values misses least (Zipf, Kosarak, ...)",
        50,
    ),
    "svt-variants": ("What published sparse vector algorithms really cost that claim ε", 1),
    "classification": ("How often are classifiers wrong that learn from private releases", 1),
    "grid-quality": ("How good is the score by which PrivPfC chooses its grid", 1),
    "kmeans": ("How far do records lie from centers that were found privately (NICV)", 10),
    "wavecluster": (
        "How well do private clusters keep the shapes of the true ones (WaveCluster)",
        10,
    ),
    "copula": ("How good are range counts from a synthetic table of many columns (DPCopula)", 5),
    "model-fitting": ("How good are linear models that were fitted privately (PrivGene)", 1),
    "streams": ("How far are counts from the truth when a changing table is published for long", 5),
    "personalized": (
        "How much do counts and models gain when each person has their own epsilon",
        5,
    ),
}
_MODULES = {"model-fitting": "models"}
EXPERIMENTS = {
    name: Entry(
        f"dpublish.experiments.{_MODULES.get(name, name.replace('-', '_'))}", title, repeats
    )
    for name, (title, repeats) in _STUDIES.items()
}
