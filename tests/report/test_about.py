"""What a page says first and last: what it is, for whom, what it reveals, and how to cite it."""

import re
from dataclasses import replace
from fractions import Fraction
from html import unescape

import pyarrow as pa

from dpublish.data.publication import Publication
from dpublish.data.schema import Schema, column
from dpublish.data.sources import open_table
from dpublish.methods.histogram.histogram import Histogram
from dpublish.privacy.budget import Budget
from dpublish.privacy.meaning import PRIORS, most_sure, percent_at_most
from dpublish.privacy.neighbors import PersonalRecord, UserInWindow
from dpublish.randomness import secure, seeded
from dpublish.report.about import ANYONE, NOT_PRIVATE, about, how_to_cite, what_is_learned
from dpublish.report.page import page_title, render_report

STATED = Publication(
    title="Pay by work",
    license="CC-BY-4.0",
    publisher="Office of statistics",
    source="https://office.example/survey",
    audience="Journalists",
)
SCHEMA = Schema((column("work", "category", values=["State", "Private"]),), publication=STATED)
ROWS = pa.table({"work": ["State", "Private", "State"]})


def publish(schema=SCHEMA, rng=None, **receipt):
    method = Histogram(columns=("work",))
    made = method.release(open_table(ROWS, schema), budget=Budget.seeded(1), rng=rng or secure())
    return replace(made, receipt=replace(made.receipt, **receipt))


def by_level(count):
    levels = tuple(Fraction(each, count) for each in range(1, count + 1))
    hides = PersonalRecord("own", tuple(map(str, levels)), "levels")
    return {"neighbors": hides, "personal": tuple((each, each) for each in levels)}


def test_a_page_says_what_it_is_and_for_whom_it_was_made():
    section = about(publish())
    assert section.pairs["it is for"] == "Journalists"
    assert section.pairs["it publishes"].startswith("noisy counts")
    assert "title" not in section.pairs
    unstated = replace(SCHEMA, publication=None)
    assert about(publish(unstated)).pairs["it is for"] == ANYONE
    assert about(publish(unstated, rng=seeded(1))).pairs["it is for"] == NOT_PRIVATE


def test_the_table_of_what_is_learned_holds_the_bounds_of_the_guarantee():
    (listing,) = what_is_learned(publish().receipt)
    assert [row[0] for row in listing.rows] == ["1 %", "10 %", "50 %"]
    assert [row[2] for row in listing.rows] == ["2.68 %", "23.2 %", "73.2 %"]
    assert [row[1] for row in listing.rows] == ["0.37 %", "3.92 %", "26.8 %"]
    assert "that a given record is in the table" in listing.caption
    assert listing.numeric == [True, True, True]


def test_the_table_is_about_what_is_hidden():
    (listing,) = what_is_learned(publish(neighbors=UserInWindow("user", 24)).receipt)
    assert "person ('user') is in the data within 24 consecutive snapshots" in listing.caption


def test_where_levels_pay_differently_each_has_its_own_bounds():
    (listing,) = what_is_learned(publish(**by_level(4)).receipt)
    assert [row[:2] for row in listing.rows] == [[x, x] for x in ("0.25", "0.5", "0.75", "1")]
    half = [percent_at_most(most_sure(prior, Fraction(1, 2))) for prior in PRIORS]
    assert listing.rows[1][2:] == half


def test_of_many_levels_the_first_and_the_last_are_shown_and_the_rest_is_counted():
    (listing,) = what_is_learned(publish(**by_level(20)).receipt)
    assert [row[0] for row in listing.rows][::7] == ["0.05", "1"]
    assert len(listing.rows) == 8
    assert "12 levels between them are not shown" in listing.caption


def test_noise_from_a_seed_has_no_table():
    assert what_is_learned(publish(rng=seeded(1)).receipt) == []


def test_a_citation_names_what_the_owner_states_the_version_and_the_release():
    release = publish(created="2026-03-05T10:00:00+00:00", package_version="0.2.0")
    said = how_to_cite(release, page_title(release))
    assert said.paragraphs == [
        "Office of statistics (2026): Pay by work. Differentially private release, histogram, "
        f"ε = 1, dpublish 0.2.0. Release {release.receipt.release_id}, 5 March 2026. "
        "License: CC-BY-4.0. Source: https://office.example/survey."
    ]
    assert said.notes == []


def test_a_citation_makes_nothing_up():
    release = publish(replace(SCHEMA, publication=None), dataset="census")
    said = how_to_cite(release, page_title(release))
    assert said.paragraphs[0].startswith("Histogram of census (")
    assert said.notes == ["The owner states no publisher and no license."]


def test_the_page_holds_all_of_it_in_words_that_cannot_become_markup():
    nasty = replace(STATED, title="<b>x</b>", audience="<i>all</i>")
    text = render_report(publish(replace(SCHEMA, publication=nasty)), with_charts=False)
    assert "<b>x" not in text
    assert "<i>all" not in text
    assert "<i>all</i>" in unescape(text)
    headings = re.findall(r"<h2>(.*?)</h2>", text)
    assert headings[:2] == ["What this is", "What was guaranteed"]
    assert headings[-1] == "How to cite it"
    assert "73.2 %</td>" in text
