"""The comparison of streams: planned, resumed and explained; with stand-ins for methods."""

from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

import numpy as np
import pytest

from dpublish.core.catalog import STREAMS, Entry
from dpublish.core.method import setting
from dpublish.datasets.benchmarks import VARIABLE
from dpublish.datasets.stream_sets import STREAM_SETS, StreamSet
from dpublish.datasets.streams import bursty_stream, drifting_stream, static_stream
from dpublish.errors import InvalidParameter
from dpublish.evaluation.metrics.streams import RangeQueries
from dpublish.experiments.streams import (
    ANSWER,
    ERROR,
    FIGURES,
    METHODS,
    PUBLISHED,
    QUERIES,
    SLOT,
    SLOTS,
    STUDY,
    SUMMARY,
    StreamRunner,
    over_time,
)
from dpublish.experiments.study import run_experiment
from dpublish.experiments.trials import SECONDS, Key, Result, Trial
from dpublish.methods.streams.method import StreamMethod, make_stream_method, stream_settings
from dpublish.methods.streams.policy import Publish, Repeat


@dataclass(frozen=True)
class EverySoOften:
    """Publishes whenever so many steps have gone by."""

    price: Fraction
    interval: int

    def plan(self, history):
        return Repeat() if (history.step - 1) % self.interval else Publish(self.price)

    def learn(self, history, publication):
        pass


@dataclass(frozen=True, kw_only=True)
class StandIn(StreamMethod):
    """Publishes `releases` times at equal distances, whatever it is called."""

    name: ClassVar[str] = "stand-in"
    horizon: int | None = setting("steps", default=None)
    window: int | None = setting("steps of a window", default=None)
    releases: int = setting("publications", default=1)
    controller: str = setting("what steers", default="none")

    def policy(self, bins, epsilon):
        interval = -(-(self.horizon or self.window) // self.releases)
        return EverySoOften(self.publication_epsilon(bins, epsilon), interval)

    def publication_epsilon(self, bins, epsilon):
        return epsilon / self.releases


@pytest.fixture
def stand_ins(monkeypatch):
    for name in {method.method for method in METHODS.values()}:
        location = f"{__name__}:StandIn"
        monkeypatch.setitem(STREAMS, name, Entry(location, "streams", "", ""))


@pytest.fixture(autouse=True)
def small_streams(monkeypatch):
    monkeypatch.delenv(VARIABLE, raising=False)
    for make in (static_stream, drifting_stream, bursty_stream):
        name = {"static_stream": "static", "drifting_stream": "drift"}.get(make.__name__, "bursts")

        def small(steps=60, make=make, **settings):
            return make((4, 5), people=500, steps=steps, **settings)

        monkeypatch.setitem(
            STREAM_SETS, name, StreamSet(name, STREAM_SETS[name].kind, f"small {name}", small)
        )


SMALL = {
    "figure": SUMMARY,
    "datasets": ("static", "bursts"),
    "methods": ("fixed-sampling", "per-snapshot", "fixed-5-w", "bd"),
    "epsilons": ("0.5", "20"),
}


@pytest.fixture
def summary(tmp_path, stand_ins):
    return run_experiment("streams", repeats=2, output=tmp_path, **SMALL)


def test_a_run_leaves_results_a_table_a_plot_and_a_page_and_is_not_run_again(tmp_path, summary):
    lines = summary.results.read_text().splitlines()
    assert len(lines) == 2 * 2 * 2 * 4  # streams, repeats, epsilons, methods
    assert all("NOT PRIVATE" in line for line in lines)
    assert summary.headers == ["stream", "hidden in", "method", "epsilon 0.5", "epsilon 20"]
    assert [row[:3] for row in summary.rows[:4]] == [
        ["static", "stream", "fixed-sampling"],
        ["static", "stream", "per-snapshot"],
        ["static", "window", "fixed-5-w"],
        ["static", "window", "bd"],
    ]
    assert "<svg" in summary.plot.read_text()
    again = run_experiment("streams", repeats=2, output=tmp_path, **SMALL)
    assert again.results.read_text().splitlines() == lines
    assert again.rows == summary.rows


def test_more_budget_brings_counts_nearer_to_the_truth(summary):
    for row in summary.rows:
        if row[0] == "static":
            worse, better = (float(cell.split()[0]) for cell in row[3:])
            assert 0 <= better < worse


def test_the_page_explains_itself(summary):
    page = summary.page.read_text()
    for words in (
        "NOT PRIVATE",
        "smaller is stronger",
        "the two are compared apart",
        "The stream: small bursts.",
        "1,000 random ranges",
        "2 times with fresh noise",
        "bursts: the error over time",
        ">bursts: hidden in the window<",
        "fixed-5-w: 5 publications in a window; each person is hidden within every window",
        "= 20 the lowest error is that of",
        "publications",
    ):
        assert words in page, words
    assert "http" not in page.replace("http://www.w3.org/", "")
    assert "<script" not in page


@pytest.mark.parametrize("figure", FIGURES)
def test_every_figure_is_planned_tabled_and_explained(figure):
    chosen = FIGURES[figure]
    planned = STUDY.plan(2, figure=figure)
    measured = {ERROR: 2.5, ANSWER: 10.0, PUBLISHED: 3.0, SECONDS: 0.5, f"{SLOT}0": 1.0}
    results = [Result(trial, measured) for trial in planned.trials]
    tabled = STUDY.table(results)
    points = chosen.values if chosen.key else chosen.epsilons
    assert len(tabled.headers) == 3 + len(points)
    assert all("±" in cell for row in tabled.rows for cell in row[3:])
    assert {row[2].partition(",")[0] for row in tabled.rows} == set(chosen.methods)
    page = STUDY.page(results, ["a note"])
    assert page.title == chosen.title
    assert "a note" in page.sections[-1].paragraphs


@pytest.mark.usefixtures("stand_ins")
def test_the_error_of_a_trial_is_what_its_stream_gives_out():
    setting = {"part": SUMMARY, "dataset": "drift"}
    measured = StreamRunner(None).run_trial(Trial("streams", "per-snapshot", "1000", 3, setting))
    # One publication, of the first step, with so much budget that there is no noise.
    counts = drifting_stream((4, 5), people=500, steps=60, seed=2024 + 3).counts
    queries = RangeQueries.draw((4, 5), QUERIES, seed=3)
    errors = [queries.mean_error(counts[0].astype(float), truth) for truth in counts]
    assert measured[PUBLISHED] == 1
    assert measured[ERROR] == pytest.approx(np.mean(errors))
    assert measured[ANSWER] == pytest.approx(queries.answers(counts.mean(axis=0)).mean())
    slots = [value for name, value in measured.items() if name.startswith(SLOT)]
    assert len(slots) == SLOTS
    assert slots[0] == pytest.approx(np.mean(errors[:2]), rel=1e-3)
    assert slots[-1] == pytest.approx(errors[-1], rel=1e-3)


@pytest.mark.usefixtures("stand_ins")
@pytest.mark.parametrize(
    ("given", "published"),
    [
        ({}, 10),
        ({"releases": 20}, 20),
        ({"steps": 5}, 5),  # no more often than there are steps
    ],
)
def test_what_a_figure_varies_is_set_in_stream_and_method(given, published):
    setting = {"part": "releases", "dataset": "static", **given}
    measured = StreamRunner(None).run_trial(Trial("streams", "fixed-sampling", "1", 0, setting))
    assert measured[PUBLISHED] == published


@pytest.mark.usefixtures("stand_ins")
def test_queries_about_more_bins_have_more_noise():
    def error(share):
        setting = {"part": "query-size", "dataset": "static", "share": share}
        return StreamRunner(None).run_trial(Trial("streams", "per-snapshot", "0.1", 0, setting))[
            ERROR
        ]

    assert error(50) < error(800)


@pytest.mark.usefixtures("stand_ins")
def test_each_repeat_has_a_stream_of_its_own():
    setting = {"part": "epsilon", "dataset": "drift"}
    runner = StreamRunner(None)
    answers = [
        runner.run_trial(Trial("streams", "per-snapshot", "1", seed, setting))[ANSWER]
        for seed in (0, 1)
    ]
    assert answers[0] != answers[1]


def test_windows_are_for_methods_that_hide_within_windows():
    assert METHODS["bd"].settings(500, {}) == {"window": 40}
    assert METHODS["bd"].settings(500, {"window": 80}) == {"window": 80}
    assert METHODS["bd-user"].settings(500, {"window": 80}) == {"window": 500}
    assert METHODS["fixed-5-w"].settings(30, {}) == {"window": 30, "releases": 5}
    assert METHODS["dsat"].settings(500, {}) == {"horizon": 500}
    assert METHODS["dsat"].settings(500, {"releases": 20}) == {"horizon": 500, "releases": 20}
    assert METHODS["dsat-paper"].settings(9, {}) == {"horizon": 9, "controller": "paper"}


@pytest.mark.parametrize("name", METHODS)
def test_every_competitor_is_a_stream_method_that_takes_its_settings(name):
    competitor = METHODS[name]
    settings = competitor.settings(500, {})
    assert settings.keys() <= {known.name for known in stream_settings(competitor.method)}
    method = make_stream_method(competitor.method, {"columns": ("x",), **settings})
    hides_for_ever = method.window is None or method.window == 500
    assert hides_for_ever == (competitor.level == "stream")


def result(method, epsilon, seed, error, dataset="static"):
    measured = {ERROR: error, f"{SLOT}0": error, f"{SLOT}1": 2 * error}
    trial = Trial("streams", method, epsilon, seed, {"part": SUMMARY, "dataset": dataset})
    return Result(trial, measured)


RESULTS = [
    result("dsat", "1", 0, 2.0),
    result("dsat", "1", 1, 4.0),
    result("dsat", "0.1", 0, 9.0),
    result("bd-user", "1", 0, 5.0),
    result("bd-user", "0.1", 0, 8.0),
    result("bd", "1", 0, 1.0),
    result("bd", "0.1", 0, 1.0),
]


def test_means_and_deviations_are_over_repeats():
    cell = STUDY.summarize(RESULTS)[Key("static", ERROR, "dsat", "", ("stream",))][1.0]
    assert (cell.mean, cell.deviation) == (3.0, pytest.approx(2**0.5))


def test_the_best_is_marked_among_methods_with_the_same_guarantee():
    group, _ = STUDY.groups(STUDY.summarize(RESULTS))
    assert STUDY.best_at(group, 1.0).method == "dsat"
    assert STUDY.best_at(group, 0.1).method == "bd-user"
    rows = {row[2]: [cell.endswith("*") for cell in row[3:]] for row in STUDY.table(RESULTS).rows}
    assert rows == {"dsat": [False, True], "bd-user": [True, False], "bd": [False, False]}


def test_errors_over_time_are_means_over_repeats():
    assert over_time(RESULTS, "static", "1")["dsat"] == [3.0, 6.0]


def test_streams_that_are_not_there_are_left_out_with_a_note(tmp_path):
    planned = STUDY.plan(1)
    assert "tdrive" not in {trial.setting["dataset"] for trial in planned.trials}
    assert [note.split()[0] for note in planned.notes] == [
        "census-pool",
        "oldenburg",
        "tdrive",
        "tdrive-raised",
        "nyc-taxi",
        "nyc-bike",
    ]
    with pytest.raises(InvalidParameter, match="DPUBLISH_DATA"):
        STUDY.plan(1, datasets=("tdrive",), data_folder=tmp_path)


@pytest.mark.parametrize(
    ("options", "word"),
    [
        ({"figure": "epsilons"}, "epsilon"),
        ({"datasets": ("statics",)}, "static"),
        ({"figure": "horizon", "methods": ("bd",)}, "bd-user"),
        ({"methods": ()}, "at least one"),
        ({"epsilons": ("0",)}, "epsilon"),
        ({"folds": 3}, "folds"),
    ],
)
def test_options_that_make_no_sense_are_refused_before_anything_is_run(tmp_path, options, word):
    with pytest.raises(InvalidParameter, match=word):
        run_experiment("streams", output=tmp_path / "new", **options)
    assert not (tmp_path / "new").exists()
