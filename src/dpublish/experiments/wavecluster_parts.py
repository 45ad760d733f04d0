"""The parts of the comparison of private WaveClusters: what varies, and which methods run."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

PLAIN = "plain"


class Method(NamedTuple):
    """A way to run a method, what it is in words, and the settings that make it so."""

    method: str
    title: str
    settings: Mapping[str, str] = {}


METHODS = {
    "privthr": Method(
        "privthr",
        "PrivTHR: perturbs the counts of the cells, and keeps as many as a perturbed number of "
        "empty ones leaves over",
    ),
    "privthr-paper": Method(
        "privthr",
        "PrivTHR as printed: spends 9/10 of ε on the counts, and takes half of the perturbed "
        "number of empty cells off the number of those whose perturbed value is positive",
        {"variant": "paper", "counts_share": "0.9"},
    ),
    "privthr-em": Method(
        "privthr-em",
        "PrivTHR-EM: perturbs the counts of the cells, and draws the value from which on cells are "
        "kept",
    ),
    "privqt": Method(
        "privqt", "PrivQT: perturbs the counts of the cells, and clusters them as if they were true"
    ),
    "wave-baseline": Method(
        "wave-baseline",
        "Baseline: perturbs counts of a grid that is finer where there are more points, spreads "
        "them over the cells, and clusters those as if they were true",
    ),
}
TITLES = {name: method.title for name, method in METHODS.items()} | {
    PLAIN: "No privacy: plain WaveCluster on the true counts"
}


class Measure(NamedTuple):
    """A figure by which clusterings are compared."""

    title: str
    meaning: str


MEASURES = {
    "dsg": Measure(
        "DSG_C",
        "true and private clusters are paired so that they differ least; how many cells they "
        "differ by, as a part of all true cells. 0 is perfect, and it may exceed 1",
    ),
    "ocm": Measure(
        "OCM",
        "a decision tree learns the true clusters and another one the private clusters; the part "
        "of the points left aside that they put into different classes. 0 is perfect",
    ),
    "2ce": Measure(
        "2CE",
        "the part of all pairs of those points that one tree puts together and the other apart. "
        "0 is perfect",
    ),
    "f": Measure(
        "F-measure",
        "how well each true cluster is found again by some private one, which may be the same "
        "for several. 1 is perfect",
    ),
    "clusters": Measure("clusters", "how many clusters there are"),
    "cells": Measure("cells", "how many cells belong to a cluster"),
    "reached": Measure(
        "cells without noise",
        "of a method that publishes the value from which on it keeps cells: how many it would "
        "have kept if their own values had been free of noise",
    ),
}


@dataclass(frozen=True)
class Part:
    """One part of the experiment.

    Attributes:
        title: The question, in words.
        across: What the axis is called.
        reading: How to read the axis, in a sentence.
        key: The setting that varies, or None for epsilon.
        values: Its values.
        epsilons: Budgets.
        methods: Which of the methods run.
        is_log: Whether the axis is logarithmic.
    """

    title: str
    across: str
    reading: str
    key: str | None = None
    values: Sequence[int | str] = ()
    epsilons: Sequence[str] = ("1",)
    methods: Sequence[str] = tuple(METHODS)
    is_log: bool = False


PARTS = {
    "epsilon": Part(
        title="How well do private clusters keep the shapes of the true ones?",
        across="ε",
        reading="Going to the right, privacy becomes weaker and clusters should become better.",
        epsilons=("0.1", "0.2", "0.5", "1", "2"),
        is_log=True,
    ),
    "cells": Part(
        title="How fine should the grid of private clusters be?",
        across="cells along each side",
        reading="Going to the right, cells become smaller: shapes are seen more sharply, but "
        "fewer points are in each cell and noise weighs more.",
        key="cells",
        values=(24, 32, 40, 48, 64, 80),
    ),
    "percentile": Part(
        title="How many thin cells should private clusters leave out?",
        across="part of the non-empty cells that is left out (p)",
        reading="Going to the right, more of the thinly filled cells are left out, so that "
        "clusters shrink and come apart.",
        key="percentile",
        values=("0.05", "0.1", "0.2", "0.3", "0.4", "0.5", "0.6"),
    ),
}
