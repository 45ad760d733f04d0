"""Counts by the schema and by cut bins, and what the report and the page show."""

import re
from fractions import Fraction
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest

from dpublish import Budget, Combination, Formula, KnownTotal, Schema, Synth, column, seeded
from dpublish.data.sources import open_table
from dpublish.datasets.census import census
from dpublish.evaluation.evaluations import target_of
from dpublish.methods.synth.report import section
from dpublish.report.page import render_report

ROWS = 4_000
WOMEN = 2_001
COLUMNS = (
    column("age", "integer", bounds=[16, 95], bins=16),
    column("sex", "category", values=["Female", "Male"]),
    column("income", "category", values=["<=50K", ">50K"]),
    column("retired", "category", values=["yes", "no"]),
)
SCHEMA = Schema(
    COLUMNS,
    impossible=(Combination("age <= 20 and income = '>50K'"),),
    totals=(KnownTotal("sex = Female", count=WOMEN, source="register"),),
    functions=(Formula("retired", "if(age >= 66, 'yes', 'no')"),),
)


def publish(method, schema=SCHEMA, epsilon="2"):
    columns = method.reads(schema)
    table = open_table(census(ROWS), schema, columns=columns)
    return method.release(table, budget=Budget.seeded(epsilon), rng=seeded(3))


@pytest.fixture(scope="module")
def release():
    return publish(Synth(target=("income",)))


def test_a_known_total_answers_the_very_same_query(release):
    answer = release.count("sex = Female")
    assert (answer.low, answer.value, answer.high) == (WOMEN, WOMEN, WOMEN)
    assert "register" in answer.assumption
    assert release.count("sex = Male").low < release.count("sex = Male").high
    assert release.count("sex = Female and age <= 20").value < WOMEN


def test_a_cut_bin_of_one_column_is_answered_by_its_marginal(release):
    whole, cut, more = (release.count(f"age >= {age}") for age in (61, 60, 56))
    assert whole.kind == cut.kind == more.kind == "confidence"
    assert whole.assumption is None
    assert "evenly distributed" in cut.assumption
    assert whole.value < cut.value < more.value
    bins = release.marginals[0].bins
    marginal = float(bins[9:].sum() + bins[8] / 5)
    assert cut.value == pytest.approx(marginal)
    assert cut.high - cut.low > 2 * np.sqrt(0.16 * max(bins[8], 0))  # where records lie in the bin


def test_a_release_says_which_column_it_was_made_to_predict(release):
    assert target_of(release) == "income"
    assert target_of(publish(Synth(columns=("sex", "income")))) is None


def test_the_report_shows_quality_dependences_tables_and_rows(release):
    shown = section(release, with_charts=True)
    headers = [listing.headers[0] for listing in shown.listings]
    assert headers == ["distance from the truth", "column", "columns (classes)", "age"]
    assert len(shown.figures) == 2
    assert "Cramer's V" in shown.figures[0].caption
    assert all("<svg" in figure.svg for figure in shown.figures)
    page = render_report(release)
    assert "Synthetic table" in page
    assert "twice this epsilon" in page


def test_a_report_of_independent_columns_draws_no_dependences():
    release = publish(Synth(quality_share=Fraction(0)), epsilon="0.001")
    assert not release.counted
    shown = section(release, with_charts=True)
    assert [listing.headers[0] for listing in shown.listings] == ["age"]
    assert len(shown.figures) == 1


PAGE = Path(__file__).parents[3] / "docs" / "methods" / "synth.md"
LINE = re.compile(r"^\| `([A-Z_]+)`[^|]*\| ([\d.,/]+) \| `(\w+)\.py` \|", flags=re.MULTILINE)


def test_the_page_lists_the_constants_of_the_code():
    listed = LINE.findall(PAGE.read_text("utf-8"))
    assert len(listed) >= 20
    for name, value, module in listed:
        constant = getattr(import_module(f"dpublish.methods.synth.{module}"), name)
        assert float(Fraction(value.replace(",", ""))) == float(constant), name
