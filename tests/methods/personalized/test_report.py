"""The section of a personalized release: each level's budget to scale, and the parts."""

from fractions import Fraction
from xml.etree import ElementTree

import pyarrow as pa
import pytest

from dpublish.core.registry import make_method
from dpublish.data.schema import Schema, column
from dpublish.data.sources import open_table
from dpublish.methods.personalized.report import answer_section, level_bars, section
from dpublish.privacy.epsilon import format_short
from dpublish.privacy.levels import parse_amounts
from dpublish.randomness import seeded
from dpublish.report.page import render_report

SCHEMA = Schema((column("age", "integer", bounds=[0, 99], bins=10),))
ROWS = pa.table({"age": [3, 50, 70, 99], "own": [0.1, 1.0, 1.0, 5.0]})


def make(
    levels=("0.1", "1"), epsilon="0.5", method="minimum", inner="histogram columns=age", **more
):
    given = {"inner": inner, "preference": "own", "levels": levels}
    chosen = make_method(method, given | more)
    table = open_table(ROWS, chosen.prepare(SCHEMA))
    return chosen.release(table, budget=chosen.budget(Fraction(epsilon)), rng=seeded(2))


def widths(svg):
    root = ElementTree.fromstring(svg)
    return [float(bar.get("width")) for bar in root.iter("{http://www.w3.org/2000/svg}rect")]


def test_bars_show_which_part_of_each_level_is_spent():
    svg = level_bars(parse_amounts({Fraction(1, 10): "0.1", Fraction(1): "0.25", Fraction(2): 0}))
    whole, spent, _, quarter, _, nothing = widths(svg)
    assert spent == whole
    assert quarter == pytest.approx(whole / 4, abs=0.1)
    assert nothing == 0
    assert "0.25 of 1 (25 %)" in svg


def test_parts_and_pictures_are_shown():
    shown = section(make(), True)
    assert "the stronger color is spent here" in shown.figures[0].caption
    assert "Part 1, levels 0.1 and 1" in shown.figures[1].caption
    assert section(make(), False).figures == ()
    assert [len(row) for row in shown.listings[0].rows] == [len(shown.listings[0].headers)]
    assert "release.count()" in shown.python
    assert "release.rows(1000)" in shown.python
    assert "predict" not in shown.python


def test_many_levels_are_shown_by_some():
    levels = tuple(str(Fraction(n, 100)) for n in range(1, 101))
    figure = section(make(levels), True).figures[0]
    assert "24 of 100 levels" in figure.caption
    assert len(widths(figure.svg)) == 48


def test_one_answer_shows_every_level_with_its_amounts():
    settings = {"statistic": "count", "query": "age >= 30", "most": "50"}
    given = {"preference": "own", "levels": ("0.1", "1", "5")}
    chosen = make_method("personalized-em", settings | given)
    table = open_table(ROWS, chosen.prepare(SCHEMA))
    release = chosen.release(table, budget=chosen.budget(Fraction(1, 2)), rng=seeded(2))
    (figure,) = answer_section(release, True).figures
    assert len(widths(figure.svg)) == 6
    for level, amount in release.receipt.personal:
        said = f"{format_short(amount)} of {format_short(level)} ("
        assert said in figure.svg
        assert f"level {format_short(level)}: {said}" in figure.alt
    assert "this answer uses" in figure.caption


def test_the_parts_are_told_apart_in_words():
    shown = section(make(method="partitioning"), True)
    assert len({figure.alt for figure in shown.figures}) == len(shown.figures)
    assert shown.figures[1].alt.startswith("Part ")


def test_the_page_says_what_each_level_paid():
    page = render_report(make())
    assert "0.05 of 0.1 (50 %)" in page
    assert "What was guaranteed" in page
    assert "levels used: 0.1, 1" in page
