"""The section of a model: the largest weights, drawn to scale, and all coefficients."""

from xml.etree import ElementTree

import numpy as np
import pytest

from dpublish.data.schema import Schema, column
from dpublish.methods.linear_models.released import LinearModelRelease
from dpublish.methods.linear_models.report import section
from dpublish.privacy.budget import Budget
from dpublish.privacy.neighbors import AddRemoveRecord
from dpublish.privacy.receipt import Receipt
from dpublish.randomness import seeded

TOWNS = column("town", "category", values=["<b>", *(f"t{i}" for i in range(30))])
RISK = column("risk", "category", values=["low", "high"])


def make(weights, deviation=None, target=RISK, model="svm"):
    budget = Budget.seeded(1)
    budget.spend()
    receipt = Receipt.issue(
        method="model", settings={}, budget=budget, neighbors=AddRemoveRecord(), rng=seeded(1)
    )
    return LinearModelRelease(
        receipt=receipt,
        schema=Schema((TOWNS, target)),
        model=model,
        target=target.name,
        weights=weights,
        expected={},
        standard_deviation=deviation,
    )


WEIGHTS = np.append(np.linspace(-2, 1, 31), 50.0)[None, :]


def bars(figure):
    root = ElementTree.fromstring(figure.svg)
    return [float(b.get("width")) for b in root.iter("{http://www.w3.org/2000/svg}rect")]


def test_the_largest_weights_are_drawn_to_scale_without_the_intercept():
    shown = section(make(WEIGHTS), True)
    widths = bars(shown.figures[0])
    assert len(widths) == 20
    assert widths == sorted(widths, reverse=True)
    assert widths[0] / widths[5] == pytest.approx(2 / 1.5, rel=0.01)
    assert "&lt;b&gt;" in shown.figures[0].svg
    assert section(make(WEIGHTS), False).figures == ()


def test_confidence_intervals_are_drawn_and_listed_where_theory_gives_them():
    plain, noisy = (section(make(WEIGHTS, s), True) for s in (None, np.full_like(WEIGHTS, 0.25)))
    assert "95 %" not in plain.figures[0].caption
    assert "95 %" in noisy.figures[0].caption
    assert noisy.figures[0].svg.count("<line") == plain.figures[0].svg.count("<line") + 20
    assert len(plain.listings[0].headers) == len(plain.listings[0].rows[0]) == 4
    assert len(noisy.listings[0].headers) == len(noisy.listings[0].rows[0]) == 5
    assert noisy.listings[0].rows[0][-1] == "0.25"


def test_all_weights_may_be_zero():
    shown = section(make(np.zeros((1, 32))), True)
    assert set(bars(shown.figures[0])) == {0.0}


def test_only_some_classes_are_drawn_and_some_rows_listed():
    target = column("job", "category", values=[f"j{i}" for i in range(12)])
    shown = section(make(np.repeat(WEIGHTS, 12, axis=0), target=target), True)
    assert len(shown.figures) == 6
    assert len(shown.listings[0].rows) == 300
    assert "300 of 384" in shown.listings[0].caption


def test_probabilities_are_offered_by_logistic_models_alone():
    assert "predict_proba" in section(make(WEIGHTS, model="logistic"), False).python
    assert "predict_proba" not in section(make(WEIGHTS), False).python
