"""The grid classifier's section: its grid, and each refinement in words and numbers."""

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pyarrow as pa
import pytest

from dpublish.core.registry import make_method
from dpublish.data.schema import Schema, column
from dpublish.data.sources import open_table
from dpublish.methods.histogram.report import labeled_section
from dpublish.methods.privpfc.privpfc import PrivPfC
from dpublish.methods.privpfc.released_columns import Refinement
from dpublish.methods.privpfc.report import section
from dpublish.privacy.budget import Budget
from dpublish.randomness import secure, seeded
from dpublish.report.page import render_report

NASTY = "<b>M</b>"
SCHEMA = Schema(
    (
        column("age", "integer", bounds=[0, 99]),
        column("sex", "category", values=["F", NASTY]),
        column("risk", "category", values=["low", "high"]),
    )
)
ROWS = pa.table(
    {
        "age": [i % 100 for i in range(600)],
        "sex": [("F", NASTY)[i % 2] for i in range(600)],
        "risk": [("low", "high")[i % 2] for i in range(600)],
    }
)


def publish(rounds, rng=None):
    method = PrivPfC(target="risk", rounds=rounds)
    return method.release(open_table(ROWS, SCHEMA), budget=Budget.seeded(5), rng=rng or seeded(1))


def with_refinements(count, axis):
    one = Refinement(axis, 2, np.full((4, 1, axis.size), 1 << 30), Fraction(1, 1 << 20))
    return replace(publish(0), refinements=(one,) * count)


def test_the_grid_is_shown_as_any_labeled_histogram():
    release = publish(0)
    shown, plain = section(release, True), labeled_section(release, True)
    assert shown.figures == plain.figures
    assert [each.headers for each in shown.listings] == [each.headers for each in plain.listings]
    assert not shown.paragraphs
    assert section(release, False).figures == ()


def test_each_refinement_lists_what_it_adds_to_the_log_odds():
    release = with_refinements(2, SCHEMA["sex"].axis())
    first, second = section(release, False).listings[-2:]
    assert first.headers == ["sex", "low", "high"]
    step = release.refinements[0].term.scores[0, 1] / 1024
    assert first.rows == [["F", "+0.00", f"{step:+.2f}"], [NASTY, "+0.00", f"{step:+.2f}"]]
    assert first.caption.startswith("First refinement: what sex adds")
    assert second.caption.startswith("Second refinement")
    assert "cells" not in first.caption


def test_long_columns_are_cut_and_say_so():
    (listing,) = section(with_refinements(1, SCHEMA["age"].axis()), False).listings[-1:]
    assert len(listing.rows) == 40
    assert "the first 40 cells" in listing.caption


def test_many_refinements_are_numbered():
    shown = section(with_refinements(9, SCHEMA["sex"].axis()), True)
    assert shown.listings[-1].caption.startswith("Number 9 refinement")


def test_the_page_names_refinements_and_escapes_values():
    page = render_report(publish(1, secure()))
    assert "First refinement" in page
    assert NASTY not in page
    assert "&lt;b&gt;M&lt;/b&gt;" in page


@pytest.mark.parametrize("with_charts", [True, False])
def test_other_releases_show_nothing_here(with_charts):
    method = make_method("histogram", {"columns": ("sex",)})
    release = method.release(open_table(ROWS, SCHEMA), budget=Budget.seeded(1), rng=seeded(1))
    shown = section(release, with_charts)
    assert (shown.figures, shown.listings, shown.python) == ((), (), "")


def test_rules_say_what_is_predicted_and_accuracy_is_bounded_by_the_grid():
    release = publish(0)
    accuracy, _, rules = section(release, False).listings
    assert [row[0] for row in accuracy.rows] == ["the rules of this release", "always low"]
    for row in accuracy.rows:
        middle, low, high = (float(part.removesuffix(" %")) for part in row[1:])
        assert 0 <= low <= middle <= high <= 100
    assert rules.headers == ["if", "then risk is", "noisy count", "of that class"]
    for condition, label, count, agreeing in rules.rows:
        said = dict(part.split(" is ", 1) for part in condition.split(" and ") if " is " in part)
        cell = {
            axis.column: axis.labels.index(said.get(axis.column, axis.labels[0]))
            for axis in release.predictors
        }
        index = 0
        for axis in release.predictors:
            index = index * axis.size + cell[axis.column]
        counts = release.counts.reshape(-1, 2)[index]
        scores = release.scores.reshape(-1, 2)[index]
        assert label == release.classes.labels[int(scores.argmax())]
        assert count == f"{counts.sum():,}"
        assert agreeing == f"{counts[scores.argmax()]:,}"


def test_a_page_with_refinements_says_that_accuracy_is_that_of_the_grid():
    shown = section(with_refinements(1, SCHEMA["age"].axis()), False)
    assert "those of the grid" in shown.paragraphs[0]
    assert "those of the grid" in render_report(with_refinements(1, SCHEMA["age"].axis()))
