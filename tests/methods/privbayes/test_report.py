"""The section of a network: what depends on what, drawn and read out."""

import re

from dpublish import datasets
from dpublish.methods.privbayes.network import Node
from dpublish.methods.privbayes.privbayes import PrivBayes
from dpublish.methods.privbayes.report import network_figures, section
from dpublish.privacy.budget import Budget
from dpublish.randomness import seeded


def test_the_network_of_the_release_is_drawn():
    release = PrivBayes(columns=("age", "sex", "income")).release(
        datasets.table("census", 500), budget=Budget.seeded(5), rng=seeded(3)
    )
    first, *others = section(release, True).figures
    assert len(re.findall("<rect", first.svg)) == 3
    edges = sum(len(node.parents) for node in release.nodes)
    assert first.svg.count("<path") == edges + 1  # and the tip of the arrows
    for node in release.nodes:
        above = ", ".join(name for name, _ in node.parents) or "nothing"
        assert f"{node.column} depends on {above}" in first.alt
    assert all("95 % confidence intervals" in figure.caption for figure in others)
    assert all("records" in figure.alt for figure in others)
    assert section(release, False).figures == ()


def test_networks_of_one_column_and_of_very_many_are_not_drawn():
    assert network_figures([Node("a", 0)]) == []
    assert network_figures([Node(f"c{number}", 0) for number in range(41)]) == []
    (drawn,) = network_figures([Node(f"c{number}", 0) for number in range(40)])
    assert drawn.svg.count("<rect") == 40
