"""The report: safe, self-contained, and honest about what it shows."""

import ast
import re
import shlex
import tomllib
from dataclasses import replace
from fractions import Fraction
from html import unescape
from html.parser import HTMLParser
from importlib import import_module

import pyarrow as pa
import pytest

import method_examples
from dpublish.core.catalog import KINDS
from dpublish.core.registry import make_method
from dpublish.core.released import Release
from dpublish.data.schema import Schema, column
from dpublish.data.schema_file import from_dict
from dpublish.data.sources import open_table
from dpublish.methods.histogram.histogram import Histogram
from dpublish.privacy.budget import Budget
from dpublish.privacy.meaning import two_sentences
from dpublish.privacy.neighbors import (
    AddRemoveRecord,
    AddRemoveUnit,
    PersonalRecord,
    UserInWindow,
)
from dpublish.privacy.receipt import Receipt
from dpublish.randomness import secure, seeded
from dpublish.report import page
from dpublish.report.page import render_report, share_rows
from dpublish.report.section import Section, section_of
from method_examples import EXAMPLES, arrow_table

NASTY = '<b onload="x()">$x_1$ & \u00e4'
SCHEMA = from_dict(
    tomllib.loads(
        f"""
[columns."a <i>"]
kind = "category"
values = ['{NASTY}', 'plain']

[columns.size]
kind = "numeric"
bounds = [0, 10]
bins = 300
"""
    )
)
GIVEN = {"rows", "print"}  # what a reader of a page has besides
ROWS = pa.table({"a <i>": [NASTY, "plain"], "size": [1.0, 2.0]})


def publish(method, **settings):
    chosen = make_method(method, settings)
    return chosen.release(open_table(ROWS, SCHEMA), budget=Budget.seeded(1), rng=secure())


class Tags(HTMLParser):
    """Every opened tag is closed, in order."""

    VOID = ("meta", "br", "path", "use", "rect", "image", "clippath")

    def __init__(self):
        super().__init__()
        self.open, self.seen = [], set()

    def handle_starttag(self, tag, attrs):
        self.seen.add((tag, *(name for name, _ in attrs if name.startswith("on"))))
        if tag not in ("meta", "br"):
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.seen.add((tag, *(name for name, _ in attrs if name.startswith("on"))))

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


@pytest.mark.parametrize(
    ("method", "settings"),
    [
        ("histogram", {"columns": ("a <i>", "size")}),
        ("histogram", {"columns": ("size",), "threshold": 2}),
        ("topk", {"column": "a <i>", "count": 2, "with_counts": True}),
        ("topk", {"column": "size", "count": 2}),
    ],
)
def test_names_and_labels_cannot_become_markup(method, settings):
    text = render_report(publish(method, **settings))
    tags = Tags()
    tags.feed(text.replace("<!doctype html>", ""))
    assert tags.open == []
    assert not any(len(entry) > 1 for entry in tags.seen)  # no tag has an event handler
    assert ("b",) not in tags.seen or "<b onload" not in text
    assert "<b onload" not in text


@pytest.mark.parametrize("name", ["$x_{$", "a b", "it's", 'say "x"', "and", "<b>", "a,b@c"])
def test_the_example_queries_of_the_page_work_as_they_stand(name):
    schema = Schema(
        (
            column(name, "category", values=["q'; touch pwned #", "x y"]),
            column("n", "integer", bounds=[0, 99], bins=10),
            column("r", "numeric", bounds=[0, 1e7], bins=7),
        )
    )
    rows = pa.table({name: ["x y"], "n": [3], "r": [5.0]})
    for columns in ((name, "n"), ("n", name), ("r", name)):
        method = Histogram(columns=columns)
        release = method.release(open_table(rows, schema), budget=Budget.seeded(1), rng=secure())
        assert "<svg" in render_report(release)
        section = section_of(release)
        command, query = shlex.split(section.shell.splitlines()[0])[1:4:2]
        assert command == "count"
        assert release.count(query).assumption is None
        python = section.python.splitlines()[0].replace("histogram", "release")
        assert eval(python, {"release": release}) == release.count(query)


def rules(shown):
    """Read the rules of the page's style sheet, outside of media queries."""
    style = re.search(r"<style>(.*?)</style>", shown, re.DOTALL)[1]
    style = re.sub(r"@media[^{]*\{(?:[^{}]*\{[^{}]*\})*[^{}]*\}", "", style)
    found = {}
    for selectors, body in re.findall(r"([^{}]+)\{([^{}]*)\}", style):
        declared = dict(re.findall(r"([\w-]+):\s*([^;]+)", body))
        for selector in selectors.split(","):
            found[selector.strip()] = found.get(selector.strip(), {}) | declared
    return found


def test_wide_tables_scroll_and_do_not_break_words():
    shown = render_report(publish("histogram", columns=("size",)))
    style = rules(shown)
    assert style[".scroll"]["overflow-x"] == "auto"
    assert style[".scroll td"]["overflow-wrap"] == "normal"
    assert style[".scroll th"]["overflow-wrap"] == "normal"
    assert '<div class="scroll" role="region" tabindex="0"' in shown


def test_without_matplotlib_the_report_has_tables_and_says_what_is_missing(monkeypatch):
    monkeypatch.setattr(page, "can_draw", lambda: False)
    text = render_report(publish("histogram", columns=("a <i>",)))
    assert "<svg" not in text
    assert "pip install matplotlib" in text
    assert "plain" in text


def test_the_budget_is_shown_by_name_and_adds_up():
    text = render_report(publish("topk", column="size", count=2, with_counts=True))
    shares = re.findall(r"<td>release/(\w+)</td><td class=\"number\">([\d.]+)</td>", text)
    assert shares == [("selection", "0.5"), ("counts", "0.5")]


def test_parts_of_different_records_that_cost_the_same_are_one_row():
    budget = Budget.seeded(1)
    budgets = budget.split(size=1, rounds=2, rest=1)
    for share in budgets["rounds"].split_evenly(2):
        parts = share.share_disjoint([*(f"box-{number}" for number in range(5)), "others"])
        parts["box-4"].split(first=1, second=1)
    assert budget.cost() == 1
    receipt = Receipt.issue(
        method="x", settings={}, budget=budget, neighbors=SCHEMA.neighbors, rng=secure()
    )
    once = "release/rounds/round-{}/box (4 parts of different records, paid for once)"
    assert [(row.name, row.percent) for row in share_rows(receipt)] == [
        ("release/size", "25"),
        *(
            row
            for number in (1, 2)
            for row in [
                (once.format(number), "25"),
                (f"release/rounds/round-{number}/box-4/first", "12.5"),
                (f"release/rounds/round-{number}/box-4/second", "12.5"),
                (f"release/rounds/round-{number}/others", "25"),
            ]
        ),
        ("release/rest", "25"),
    ]


@pytest.mark.parametrize("method", EXAMPLES)
def test_the_code_of_a_page_uses_the_variable_that_it_made(method):
    chosen = make_method(method, EXAMPLES[method][0])
    table = open_table(arrow_table(), method_examples.SCHEMA)
    text = render_report(
        chosen.release(table, budget=Budget.seeded(1), rng=secure()), with_charts=False
    )
    code = unescape(re.search(r"<pre[^>]*><code>(import dpublish.*?)</code>", text, re.DOTALL)[1])
    names = [node for node in ast.walk(ast.parse(code)) if isinstance(node, ast.Name)]
    made = {name.id for name in names if isinstance(name.ctx, ast.Store)}
    assert {name.id for name in names} - made - GIVEN == {"dpublish"}


def test_a_kind_without_a_section_still_has_a_page(monkeypatch):
    release = publish("histogram", columns=("a <i>",))
    monkeypatch.setattr(type(release), "report", "")
    assert section_of(release) == Section()
    assert "What was guaranteed" in render_report(release)


def test_every_kind_of_release_has_a_section():
    for location in KINDS.values():
        import_module(location.partition(":")[0])
    named = [k for k in subclasses(Release) if hasattr(k, "kind")]
    ours = {k.kind: k for k in named if k.__module__.startswith("dpublish.")}
    assert set(ours) == set(KINDS)
    assert all(kind.report for kind in ours.values())


def subclasses(kind):
    for below in kind.__subclasses__():
        yield below
        yield from subclasses(below)


HIDING = [
    AddRemoveRecord(),
    AddRemoveUnit("patient_id"),
    UserInWindow("user", 24),
    PersonalRecord("own", ("0.1", "1"), "levels"),
]


@pytest.mark.parametrize("hides", HIDING, ids=lambda hides: hides.name)
def test_the_page_says_what_epsilon_means_in_two_sentences(hides):
    release = publish("histogram", columns=("size",))
    paid = ()
    if isinstance(hides, PersonalRecord):
        paid = ((Fraction(1, 10), Fraction(1, 10)), (Fraction(1), Fraction(1)))
    receipt = replace(release.receipt, neighbors=hides, personal=paid)
    text = unescape(render_report(replace(release, receipt=receipt), with_charts=False))
    assert f"<p>{two_sentences(Fraction(1), hides, paid)}</p>" in text
    assert hides.claim() in text


def test_a_page_of_seeded_noise_claims_no_bound():
    table = open_table(pa.table({"size": [3.0], "a <i>": ["plain"]}), SCHEMA)
    release = Histogram(columns=("size",)).release(table, budget=Budget.seeded(1), rng=seeded(1))
    text = render_report(release, with_charts=False)
    assert "guarantees nothing" in text
    assert "% sure" not in text


def test_a_page_of_many_charts_stays_light_and_says_what_is_left_out():
    many = Schema(tuple(column(f"c{n}", "category", values=list("abcdefgh")) for n in range(40)))
    rows = pa.table({name: list("abcd") * 10 for name in many.names})
    method = make_method("marginals", {})
    release = method.release(open_table(rows, many), budget=Budget.seeded(1), rng=secure())
    text = render_report(release)
    shown = text.count("<figure")
    assert 1 <= shown < len(section_of(release).figures)
    left = len(section_of(release).figures) - shown
    assert f"{left} further charts are left out" in text
    assert len(text.encode()) < 200_000
