"""The page of a stream: what was published when, what of the budget is used, what changed."""

import re

import pytest

from dpublish.core.answer import Answer
from dpublish.methods.streams import report as histogram_stream
from dpublish.methods.streams.folder import load_stream
from dpublish.methods.streams.per_snapshot import PerSnapshot
from dpublish.methods.streams.released import StreamRelease
from dpublish.methods.streams.report import section
from dpublish.plots.charts import band_chart, course_chart
from dpublish.publishing.streams.operator import StreamOperator
from dpublish.report.page import render_report
from stream_world import METHOD, SCHEMA, arguments, make_ledger, rows


def published(workspace, method, labels):
    make_ledger(workspace)
    with StreamOperator.start(
        workspace / "s.stream", method, SCHEMA, **arguments(workspace)
    ) as operator:
        for number, label in enumerate(labels, 1):
            operator.next(rows(number), label, allow_new_labels=True)
    return load_stream(workspace / "out")


def figure_about(stream, words):
    [found] = [one for one in section(stream, True).figures if words in one.caption]
    return found


def column_heights(svg):
    return [float(part.split('"')[0]) for part in svg.split(' height="')[1:]]


@pytest.mark.parametrize("with_charts", [True, False])
def test_the_page_says_what_was_published_when_and_what_is_guaranteed(tmp_path, with_charts):
    page = render_report(
        published(tmp_path, METHOD, ["a<b>", "noon & night"]), with_charts=with_charts
    )
    assert "within 4 consecutive snapshots" in page
    assert "within any 4 consecutive steps, for ever" in page
    assert "noon &amp; night" in page
    assert "<b>" not in page.replace("method <b>", "")
    assert "The last 2 of 2 steps" in page
    assert "stream.json" in page
    assert "release.json" not in page
    assert ("Budget used within the 4 steps" in page) == with_charts
    assert ("Change seen at each step" in page) == with_charts
    assert ("Estimates by zone and hour at" in page) == with_charts


def test_a_page_of_user_level_says_for_how_many_steps(tmp_path):
    method = PerSnapshot(columns=("hour",), horizon=3)
    page = render_report(published(tmp_path, method, ["a"]))
    assert "in all steps together, at most 3 of them" in page
    assert "Budget spent so far" in page


def test_a_stream_without_steps_has_a_page(tmp_path):
    assert "0, of which 0 published" in render_report(published(tmp_path, METHOD, []))


def test_the_budget_is_drawn_to_scale(tmp_path):
    stream = published(tmp_path, METHOD, ["a", "b", "c", "d", "e"])
    svg = figure_about(stream, "Budget").svg
    heights = column_heights(svg)
    assert len(heights) == 5
    assert [round(height / heights[0]) for height in heights] == [1, 2, 3, 4, 4]


def test_counts_over_time_are_drawn_to_scale_with_their_intervals(tmp_path, monkeypatch):
    stream = published(tmp_path, PerSnapshot(columns=("hour",), horizon=4), ["a", "b", "c", "d"])
    told = {
        "a": Answer(10.0, 0.0, 20.0, 0.95),
        "b": Answer(40.0, 30.0, 50.0, 0.95),
        "c": Answer(-5.0, 0.0, 5.0, 0.95),
        "d": Answer(20.0, None, None, 0.95),
    }
    monkeypatch.setattr(StreamRelease, "count", lambda _, time: told[time])
    figure = figure_about(stream, "count of all bins over time")
    downs = [float(found) for found in re.findall(r'cy="([\d.]+)"', figure.svg)]
    floor = downs[2]  # a count below 0 is drawn as none
    assert [round((floor - down) / (floor - downs[0]), 1) for down in downs] == [1, 4, 0, 2]
    band = re.search(r'<path d="([^"]+)" fill="#', figure.svg)[1]
    assert band.count("M") == 3, "there is no band where no interval is known"
    ends = re.findall(r"M[\d.]+ ([\d.]+)h[\d.]+V([\d.]+)", band)
    heights = [floor - float(top) for top, _ in ends]
    assert [round(height / heights[0], 2) for height in heights] == [1, 2.5, 0.25]
    assert "95 % confidence interval" in figure.caption
    assert "a: 10, b: 40, c: 0, d: 20" in figure.alt


def test_steps_that_repeat_an_estimate_have_neither_dot_nor_band():
    svg = band_chart([3, 3], [(2, 4), None], marked=[True, False], ends=("<a>", "b"))
    assert svg.count("<circle") == 1
    assert svg.count("h") > svg.count("h-")
    assert "<a>" not in svg


def test_counts_of_long_streams_are_drawn_at_some_steps_and_lost_steps_are_left_out(
    tmp_path, monkeypatch
):
    stream = published(tmp_path, PerSnapshot(columns=("hour",), horizon=5), ["a", "b", "c", "d"])
    monkeypatch.setattr(histogram_stream, "_MAX_COUNTED", 3)
    figure = figure_about(stream, "over time, 3 of its steps")
    assert ">a<" in figure.svg
    assert ">d<" in figure.svg
    (stream.folder / stream.records[0].file).unlink()
    assert "2 of its steps" in figure_about(stream, "over time").caption


def test_a_course_of_nothing_and_of_one_step_can_be_drawn():
    for values in ([0.0], [0.0, 0.0]):
        svg = course_chart(values, marked=[False] * len(values), ends=("<", "&"))
        assert svg.count("<rect") == 0
        assert "&lt;" in svg
