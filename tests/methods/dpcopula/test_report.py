"""The copula's section of the report."""

import re
from fractions import Fraction

import numpy as np
import pytest

from dpublish.core.noisy_size import NoisySize
from dpublish.data.schema import Schema, column
from dpublish.methods.dpcopula.correlation import NoisyCorrelation
from dpublish.methods.dpcopula.latent_correlation import SCORE_UNIT
from dpublish.methods.dpcopula.released import DPCopulaRelease
from dpublish.methods.dpcopula.report import section
from dpublish.methods.marginals.noisy_marginal import NoisyMarginal
from dpublish.plots import charts, comparisons
from dpublish.plots.charts import correlation_map, dependence_map
from dpublish.plots.style import show_dependence
from dpublish.privacy.budget import Budget
from dpublish.privacy.receipt import Receipt
from dpublish.randomness import seeded


def release(columns=3, leaves=300, joined=True):
    schema = Schema(
        (
            *(column(f"number {j}", "integer", bounds=[0, leaves - 1]) for j in range(columns)),
            column("light", "category", values=["dark $x$", "bright"]),
            column("weight", "numeric", bounds=[-1.5, 1.5], bins=3, missing="category"),
        )
    )
    budget = Budget.seeded(1)
    budget.spend()
    receipt = Receipt.issue(
        method="dpcopula", settings={}, budget=budget, neighbors=schema.neighbors, rng=seeded(1)
    )
    names, pairs = schema.names[:columns], columns * (columns - 1) // 2
    products = np.linspace(-0.2, 0.25, pairs) * 1000 * SCORE_UNIT**2
    settings = {"kept": [1.0] * columns, "steepness": "1"}
    rate = Fraction(1, SCORE_UNIT**2)
    return DPCopulaRelease(
        receipt=receipt,
        schema=schema,
        marginals=tuple(
            NoisyMarginal("identity", c.size, np.full(c.size, 1000 // c.size), Fraction(1))
            for c in schema.columns
        ),
        correlation=NoisyCorrelation(
            "spearman", names, np.rint(products).astype(np.int64), 0, rate, settings
        )
        if joined
        else None,
        size=NoisySize(1000, Fraction(1, 10)),
    )


def test_marginals_and_correlations_are_drawn():
    pytest.importorskip("matplotlib")
    shown = section(release(), with_charts=True)
    marginals, correlations = shown.figures
    assert all(name in marginals.svg for name in ("number 2", "light", "dark $x$"))
    assert "light" not in correlations.svg  # it has no order, so it has no correlations
    assert "number 2" in correlations.svg
    assert "mean per value" in marginals.caption


def test_long_names_of_correlations_are_not_cut():
    pytest.importorskip("matplotlib")
    drawn = correlation_map(["W" * 24, "M" * 24], np.eye(2))
    (end,) = re.findall(r'text-anchor: end[^>]* x="([\d.]+)"[^>]*>W+<', drawn)
    assert float(end) > 24 * 0.98 * 7  # a W is nearly as wide as its seven points are high


@pytest.mark.parametrize("columns", [1, 2, 3, 8, 40])
def test_all_labels_of_the_correlations_lie_in_the_picture(columns):
    paths = pytest.importorskip("matplotlib.textpath")
    names = [f"a_rather_long_column_{number}" for number in range(columns)]
    drawn = correlation_map(names, np.eye(columns))
    width, height = map(float, re.search(r'viewBox="0 0 ([\d.]+) ([\d.]+)"', drawn).groups())
    rows = re.findall(r'text-anchor: end[^>]* x="([\d.]+)" y="([\d.]+)"[^>]*>(\w+…?)<', drawn)
    below = re.findall(r"translate\(([\d.]+) ([\d.]+)\) rotate\(-90\)[^>]*>\w+…?<", drawn)
    assert len(rows) == len(below) == columns
    for end, down, label in rows:
        assert paths.TextPath((0, 0), label, size=7).get_extents().width < float(end) < width
        assert 0 < float(down) < height
    for across, start in below:
        assert 0 < float(across) < width
        assert 0 < float(start) < height


def test_both_pages_use_one_scale_of_colors(monkeypatch):
    pytest.importorskip("matplotlib")
    scales = []

    def watch(axes, matrix, **signs):
        image = show_dependence(axes, matrix, **signs)
        colors = image.get_cmap()(image.norm(np.array([0.25, 1.0]))).round(3).tolist()
        scales.append((colors, image.get_clim()))
        return image

    monkeypatch.setattr(charts, "show_dependence", watch)
    monkeypatch.setattr(comparisons, "show_dependence", watch)
    correlation_map(["a", "b"], np.eye(2))
    comparisons.draw_associations(["a", "b"], np.eye(2), np.eye(2))
    dependence_map(["a", "b"], np.eye(2), measure="Cramer's V")
    assert [limits for _, limits in scales] == [(-1, 1)] * 3 + [(0, 1)]
    for (pale, strong), _ in scales:
        assert pale == pytest.approx(scales[0][0][0], abs=0.02), "0.25 looks the same everywhere"
        assert strong == scales[0][0][1]
        assert (pale[:3], strong[3]) == (strong[:3], 1.0)
        assert pale[3] == pytest.approx(0.25, abs=0.01)


def test_only_the_first_forty_marginals_are_drawn():
    pytest.importorskip("matplotlib")
    shown = section(release(columns=45, leaves=2), with_charts=True)
    assert "The first 40; 7 more are not shown" in shown.figures[0].caption
    assert "number 39" in shown.figures[0].svg
    assert "number 40" not in shown.figures[0].svg


def test_the_strongest_correlations_come_first_with_their_noise():
    one = release()
    strongest, sample = section(one, with_charts=False).listings
    sizes = [abs(float(row[2])) for row in strongest.rows]
    assert sizes == sorted(sizes, reverse=True)
    assert strongest.rows[0][:2] == ["number 1", "number 2"]
    assert float(strongest.rows[0][3]) == pytest.approx(one.deviations[1, 2], abs=1e-3)
    assert len(sample.rows) == 5
    assert list(sample.headers) == list(one.schema.names)


def test_a_copula_without_correlations_shows_none():
    shown = section(release(joined=False), with_charts=False)
    assert len(shown.listings) == 1
    assert shown.figures == ()


def test_the_example_runs():
    one = release()
    shown = section(one, with_charts=False)
    assert shown.python.startswith('release.count(\'"number 0" >= 150 and "number 1" >= 150\')')
    value = eval(shown.python.splitlines()[0], {"release": one}).value
    assert 0 < value < 1000
    assert "dpublish rows RELEASE" in shown.shell
