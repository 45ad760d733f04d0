"""Replay what a method published on a neighbor, and compare the exact likelihoods.

A method publishes through a few mechanisms only.  `Transcript` stands in for them: it records
what they publish on one table, or hands the same values out on another one, and adds up how
likely they are there.  If the same values lead the method elsewhere, it has told something
that no one paid for.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from math import inf, log
from typing import Any

import numpy as np

from choice_distribution import choice_distribution
from dpublish.mechanisms import noise
from dpublish.mechanisms.exact.lattice import LatticeValues, floor_units
from dpublish.mechanisms.noise import add_geometric, add_laplace
from dpublish.mechanisms.selection import PERMUTE_AND_FLIP, select, selection_rate


class Diverged(Exception):
    """The same published values led elsewhere: this transcript is impossible here."""


@dataclass
class Transcript:
    """What the mechanisms were asked, what they published, and the log likelihood of it."""

    played: "Transcript | None" = None
    calls: list[tuple[Any, Any]] = field(default_factory=list)
    likelihood: float = 0.0

    def _answer(self, call, draw: Callable[[], Any]):
        if self.played is None:
            output = draw()
        else:
            position = len(self.calls)
            if position == len(self.played.calls) or self.played.calls[position][0] != call:
                raise Diverged
            output = self.played.calls[position][1]
            draw()  # spends the budget, as it would have been
        self.calls.append((call, output))
        return output

    def add_geometric(self, counts, *, sensitivity, budget, rng):
        rate = budget.epsilon / int(sensitivity)
        output = self._answer(
            ("noise", rate, counts.shape),
            lambda: add_geometric(counts, sensitivity=sensitivity, budget=budget, rng=rng),
        )
        self.likelihood -= float(rate) * float(np.abs(output - counts).sum())
        return output

    def add_laplace(self, values, *, sensitivity, budget, rng, **further):
        epsilon = budget.epsilon
        output = self._answer(
            ("laplace", epsilon, sensitivity, np.shape(values)),
            lambda: add_laplace(values, sensitivity=sensitivity, budget=budget, rng=rng, **further),
        )
        units = noise.lattice_sensitivity(
            noise.parse_exact(sensitivity, "sensitivity"), output.exponent, max(np.size(values), 1)
        )
        exact = floor_units(noise.require_reals(values), output.exponent)
        assert isinstance(output, LatticeValues)
        distance = float(np.abs(output.units - exact).sum())
        self.likelihood -= float(epsilon / units) * distance
        return output

    def select(
        self, scores, *, sensitivity_range, budget, rng, method=PERMUTE_AND_FLIP, weights=None
    ):
        assert weights is None
        rate = selection_rate(budget.epsilon, sensitivity_range)
        given = {"sensitivity_range": sensitivity_range, "method": method, "budget": budget}
        output = self._answer(
            ("choice", method, rate, scores.shape), lambda: select(scores, **given, rng=rng)
        )
        if method == PERMUTE_AND_FLIP:
            self.likelihood += log(choice_distribution(scores, float(rate))[output])
        else:
            odds = float(rate) * (scores - scores.max()).astype(float)
            self.likelihood += float(odds[output] - np.log(np.exp(odds).sum()))
        return output

    def run(self, release: Callable[[], Any], modules, monkeypatch):
        """Run `release` with the mechanisms replaced wherever `modules` use them."""
        with monkeypatch.context() as patch:
            for module in modules:
                for name in ("add_geometric", "add_laplace", "select"):
                    if hasattr(module, name):
                        patch.setattr(module, name, getattr(self, name))
            release()
        if self.played is not None and len(self.calls) != len(self.played.calls):
            raise Diverged
        return self.likelihood


def privacy_loss(release_of, here, there, modules, monkeypatch):
    """Log ratio of the exact likelihoods of what `release_of(here)` published, here and there."""
    first = Transcript()
    likelihood = first.run(lambda: release_of(here), modules, monkeypatch)
    try:
        other = Transcript(first).run(lambda: release_of(there), modules, monkeypatch)
    except Diverged:
        return inf
    return abs(likelihood - other)
