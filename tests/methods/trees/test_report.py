"""The section of a tree: its rules, and a drawing of its branches."""

import re
from fractions import Fraction
from xml.etree import ElementTree

import numpy as np
import pytest

from dpublish.data.schema import Schema, column
from dpublish.methods.trees.released import DecisionTreeRelease
from dpublish.methods.trees.report import section
from dpublish.methods.trees.tree import Branches
from dpublish.plots.style import INK, PALE
from dpublish.privacy.budget import Budget
from dpublish.privacy.neighbors import AddRemoveRecord
from dpublish.privacy.receipt import Receipt
from dpublish.randomness import seeded

SCHEMA = Schema(
    (
        column("age", "integer", bounds=[0, 99], bins=10, missing="category"),
        column("job", "category", values=["clerk", "nurse", "none"]),
        column("risk", "category", values=["low", "<high>"]),
    )
)


def tree():
    budget = Budget.seeded(1)
    budget.spend()
    receipt = Receipt.issue(
        method="diffpid3", settings={}, budget=budget, neighbors=AddRemoveRecord(), rng=seeded(1)
    )
    return DecisionTreeRelease(
        receipt=receipt,
        schema=SCHEMA,
        target="risk",
        branches={0: Branches("age", (0, 3), 1), 1: Branches("job", (0, 1, 2), 3)},
        counts=np.array([[50, 1], [9, 1], [-2, 12], [4, 4]]),
        count_rates=(Fraction(1), Fraction(1), Fraction(1)),
    )


def one_class(schema=SCHEMA):
    return DecisionTreeRelease(receipt=tree().receipt, schema=schema, target="risk", label=1)


def test_boxes_of_children_fill_their_parent():
    drawing = section(tree(), True).figures[0].svg
    widths = [float(width) for width in re.findall(r' width="([0-9.]+)"', drawing)]
    assert widths[1] / widths[2] == pytest.approx(28 / 51, abs=0.01)
    assert sum(widths[1:3]) == pytest.approx(widths[0], abs=0.2)
    assert sum(widths[3:]) == pytest.approx(widths[1], abs=0.2)


def test_the_report_lists_the_rules_and_draws_the_boxes():
    shown = section(tree(), True)
    assert ["age < 30", ""] in [list(row) for row in shown.listings[-1].rows]
    assert "<rect" in shown.figures[0].svg
    assert "<high>" not in shown.figures[0].svg  # names are escaped
    assert section(tree(), False).figures == ()


def test_accuracy_is_that_of_the_noisy_counts_with_bounds():
    accuracy = section(tree(), False).listings[0]
    right, total = 50 + 9 + 12 + 4, 51 + 10 + 10 + 8
    assert accuracy.rows[0][1] == f"{100 * right / total:.1f} %"
    assert accuracy.rows[1][:2] == ["always low", f"{100 * 61 / total:.1f} %"]
    only = section(one_class(), False)
    assert len(only.listings) == 1, "a class without counts has no accuracy"


def test_a_class_without_counts_is_the_strong_one_of_equal_boxes():
    (figure,) = section(one_class(), True).figures
    boxes = re.findall(r'<title>(.*?)</title>.*? width="([0-9.]+)".*? fill="(#\w+)"', figure.svg)
    assert boxes == [("low", "360.0", PALE), ("&lt;high&gt;", "360.0", INK)]
    assert "<high>, in the stronger color, is predicted for every record" in figure.caption
    assert section(one_class(), False).figures == ()


def test_too_many_classes_are_not_drawn():
    many = Schema((column("risk", "integer", bounds=[0, 40]),))
    assert list(section(one_class(many), True).figures) == []
    fewer = Schema((column("risk", "integer", bounds=[0, 39]),))
    assert len(section(one_class(fewer), True).figures) == 1


def test_drawings_can_be_files():
    for release in (tree(), one_class()):
        (figure,) = section(release, True).figures
        assert ElementTree.fromstring(figure.svg).tag == "{http://www.w3.org/2000/svg}svg"
