"""Draw one Gaussian copula with two pairs of marginals, for docs/methods/dpcopula.md.

Run: python tools/draw_copula.py docs/pictures/copula.svg
"""

import sys
from pathlib import Path

import matplotlib as mpl

mpl.use("svg")
import matplotlib.pyplot as plt
import numpy as np
from scipy import stats

from dpublish.plots.style import INK
from dpublish.randomness import plain_generator

POINTS, CORRELATION = 200, 0.7


def main() -> None:
    """Draw ranks and values of the same points under two pairs of marginals."""
    normals = plain_generator(2024).standard_normal((2, POINTS))
    normals[1] = CORRELATION * normals[0] + np.sqrt(1 - CORRELATION**2) * normals[1]
    ranks = stats.norm.cdf(normals)
    pairs = {
        "exponential and gamma": (stats.expon(), stats.gamma(3)),
        "uniform and t (4 degrees of freedom)": (stats.uniform(), stats.t(4)),
    }
    with mpl.rc_context({"svg.hashsalt": "dpublish", "svg.fonttype": "none", "font.size": 8}):
        figure, axes = plt.subplots(2, 2, figsize=(6, 6), layout="constrained")
        for (before, after), (names, marginals) in zip(axes, pairs.items(), strict=True):
            values = [one.ppf(rank) for one, rank in zip(marginals, ranks, strict=True)]
            own = [one.cdf(value) for one, value in zip(marginals, values, strict=True)]
            before.scatter(*own, s=3, color=INK)
            before.set_title("ranks: the copula")
            after.scatter(*values, s=3, color=INK)
            after.set_title(f"values: {names}")
        figure.savefig(sys.argv[1], metadata={"Date": None})
    text = Path(sys.argv[1]).read_text("utf-8")
    Path(sys.argv[1]).write_text("\n".join(line.rstrip() for line in text.splitlines()) + "\n")


if __name__ == "__main__":
    main()
