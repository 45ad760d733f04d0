"""The section of a tree: its rules, and a drawing of its branches."""

import re
from fractions import Fraction

import numpy as np
import pytest

from dpublish.data.schema import Schema, column
from dpublish.methods.trees.released import DecisionTreeRelease
from dpublish.methods.trees.report import section
from dpublish.methods.trees.tree import Branches
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
    only = DecisionTreeRelease(
        receipt=tree().receipt, schema=SCHEMA, target="risk", label=1, branches={}
    )
    assert len(section(only, False).listings) == 1, "a class without counts has no accuracy"
