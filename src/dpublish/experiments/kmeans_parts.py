"""What the comparison of private k-means varies: one part for each figure that it makes.

The figures are those of section 4.6 of D. Su, PhD thesis, Purdue, 2016: distance against
epsilon (4.1, 4.2 and 4.5), heat maps over k and d (4.3), and the number of blocks of GkM
(4.6); the running times (4.8) come with each of them.
"""

from dataclasses import dataclass

from dpublish.core.registry import CATALOG, method_settings
from dpublish.datasets.point_clouds import POINT_SETS

NAME = "kmeans"
NOISE_FREE = "noise-free"
NICV, SECONDS = "nicv", "seconds"
CLOUDS = "clouds"
"""Datasets that are simulated for each k and d."""
SLOW = {("adult-num", "mkm"), (CLOUDS, "mkm")}
"""Datasets on which a method takes minutes for one run: it is left out unless it is named."""


@dataclass(frozen=True)
class Part:
    """One figure: what is on its axis, and what is run for it.

    Attributes:
        title: What the page is called.
        across: What is on the axis; of a heat map, nothing.
        reading: What the axis means, for somebody new to it.
        epsilons: The budgets.
        key: Which setting of the method is on the axis; None for epsilon.
        values: The values of that setting, or of k and d.
        methods: The methods compared; None for all.
        datasets: The datasets.
    """

    title: str
    across: str
    reading: str
    epsilons: tuple[str, ...]
    key: str | None = None
    values: tuple[int, ...] = ()
    methods: tuple[str, ...] | None = None
    datasets: tuple[str, ...] = tuple(POINT_SETS)


HEAT_MAP = "heat-map"
PARTS = {
    "epsilon": Part(
        title="How well can clusters be found privately?",
        across="privacy budget ε (left: more private)",
        reading="From left to right privacy gets weaker, so there is less noise, and centers "
        "come nearer to the records.",
        epsilons=("0.05", "0.1", "0.2", "0.5", "1", "2"),
    ),
    HEAT_MAP: Part(
        title="How many clusters, in how many dimensions, can be found privately?",
        across="",
        reading="Each square is one simulated table. From left to right there are more clusters "
        "to find, from bottom to top more columns.",
        epsilons=("1",),
        values=(2, 4, 6, 8, 10),
        datasets=(CLOUDS,),
    ),
    "blocks": Part(
        title="Into how many blocks should GkM deal the records?",
        across="number of blocks",
        reading="From left to right there are more blocks. The mean over more blocks has less "
        "noise, but each holds fewer records, so its own centers are worse.",
        epsilons=("0.1", "1"),
        key="blocks",
        values=(3, 10, 30, 100, 300, 1_000, 3_000),
        methods=("gkm",),
    ),
}


def kmeans_methods() -> tuple[str, ...]:
    """List the methods that are told how many clusters to find."""
    return tuple(
        name
        for name, entry in CATALOG.items()
        if entry.task == "clustering"
        and "n_clusters" in (setting.name for setting in method_settings(name))
    )
