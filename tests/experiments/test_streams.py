"""The comparison of streams: planned, resumed and explained; with stand-ins for methods."""

from dataclasses import dataclass, replace
from fractions import Fraction
from typing import ClassVar

import numpy as np
import pyarrow.parquet as pq
import pytest

from dpublish import datasets
from dpublish.core.catalog import STREAMS, Entry
from dpublish.core.method import setting
from dpublish.datasets.benchmarks import VARIABLE
from dpublish.datasets.census import SCHEMA
from dpublish.datasets.pool_streams import pool_stream
from dpublish.datasets.stream_sets import STREAM_SETS, TABLE_KNOBS, StreamSet
from dpublish.datasets.streams import bursty_stream, drifting_stream, static_stream
from dpublish.errors import InvalidParameter
from dpublish.evaluation.metrics.streams import RangeQueries
from dpublish.experiments.own_table import OwnTable
from dpublish.experiments.streams import (
    ANSWER,
    ERROR,
    FIGURES,
    HINDSIGHT,
    PUBLISHED,
    QUERIES,
    RELATIVE,
    SLOT,
    SLOTS,
    STUDY,
    SUMMARY,
    StreamRunner,
    is_moved,
    over_time,
    own_bins,
    own_stream,
)
from dpublish.experiments.streams_competitors import LAVISH, METHODS, TRUE
from dpublish.experiments.streams_hindsight import look_back, verdict
from dpublish.experiments.study import run_experiment
from dpublish.experiments.trials import SECONDS, Cell, Key, Result, Trial
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

        def small(people=500, steps=60, make=make, **settings):
            return make((4, 5), people=people, steps=steps, **settings)

        monkeypatch.setitem(
            STREAM_SETS,
            name,
            StreamSet(
                name,
                STREAM_SETS[name].kind,
                f"small {name}",
                small,
                knobs=STREAM_SETS[name].knobs,
            ),
        )

    def pool(people=100, steps=60, columns=6, **settings):
        shape = (3, 2, 2, 2, 2, 2)[:columns]
        counts = np.full(np.prod(shape), 300, dtype=np.int64)
        return pool_stream(counts, shape, people, steps, name="census-pool", **settings)

    monkeypatch.setitem(
        STREAM_SETS,
        "census-pool",
        StreamSet("census-pool", "exchange", "a small pool", pool, knobs=TABLE_KNOBS),
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
    assert summary.headers == [
        "stream",
        "hidden in",
        "measure",
        "method",
        "epsilon 0.5",
        "epsilon 20",
    ]
    assert [row[:2] + row[3:4] for row in summary.rows[:4]] == [
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
            worse, better = (float(cell.split()[0]) for cell in row[4:])
            assert 0 <= better < worse


def test_the_page_explains_itself(summary):
    page = summary.page.read_text()
    for words in (
        "NOT PRIVATE",
        "smaller is stronger",
        "the two are compared apart",
        "The stream: small bursts.",
        "random ranges of bins (1,000 unless",
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
    measured = {
        ERROR: 2.5,
        RELATIVE: 0.5,
        ANSWER: 10.0,
        PUBLISHED: 3.0,
        SECONDS: 0.5,
        f"{SLOT}0": 1.0,
    }
    results = [Result(trial, measured) for trial in planned.trials]
    if figure != HINDSIGHT:
        tabled = STUDY.table(results)
        points = chosen.values if chosen.key else chosen.epsilons
        assert len(tabled.headers) == 4 + len(points)
        assert all("±" in cell for row in tabled.rows for cell in row[4:])
        assert {row[3].partition(",")[0] for row in tabled.rows} == set(chosen.methods)
        assert {row[2] for row in tabled.rows} == set(chosen.measures)
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
    assert METHODS["dsat"].settings(500, {"releases": 20}) == {"horizon": 500}
    assert METHODS["dsat-paper"].settings(9, {}) == {
        "horizon": 9,
        "controller": "paper",
        "releases": 9,
    }


def test_methods_take_the_settings_that_they_have():
    given = {"releases": "1%", "threshold": "0.1", "decision_share": "0.2", "static": "psd"}
    assert METHODS["dsft"].settings(500, given) == {"horizon": 500, **given, "releases": 5}
    assert METHODS["fixed-5"].settings(300, given) == {
        "horizon": 300,
        "releases": 5,
        "static": "psd",
    }
    assert METHODS["fixed-sampling"].settings(300, given)["releases"] == 3
    assert METHODS["dsat"].settings(500, given) == {
        "horizon": 500,
        "decision_share": "0.2",
        "static": "psd",
    }
    assert METHODS["fixed-psd"].settings(500, {"static": "ag"})["static"] == "psd"
    gains = {"proportional_gain": 2, "burn_in": 5}
    tuned = METHODS["dsat-schedule"].settings(500, gains)
    assert (tuned["proportional_gain"], tuned["burn_in"]) == ("2", "5")
    assert not gains.keys() & METHODS["bd"].settings(500, gains).keys()


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
    rows = {row[3]: [cell.endswith("*") for cell in row[4:]] for row in STUDY.table(RESULTS).rows}
    assert rows == {"dsat": [False, True], "bd-user": [True, False], "bd": [False, False]}


def test_errors_over_time_are_means_over_repeats():
    assert over_time(RESULTS, "static", "1")["dsat"] == [3.0, 6.0]


def test_streams_that_are_not_there_are_left_out_with_a_note(tmp_path):
    planned = STUDY.plan(1)
    assert "tdrive" not in {trial.setting["dataset"] for trial in planned.trials}
    assert [note.split()[0] for note in planned.notes] == [
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
        ({"settings": {"objects": 9}, "datasets": ("static",)}, "static has no setting 'objects'"),
        ({"settings": {"people": "few"}, "datasets": ("static",)}, "people"),
        ({"settings": {"rate": "half"}, "datasets": ("drift",)}, "rate"),
        ({"settings": {"static": "pdf"}, "datasets": ("static",)}, "static"),
        ({"settings": {"releases": "some"}, "datasets": ("static",)}, "releases"),
        ({"settings": {"speed": 3}}, "speed"),
        ({"figure": "threshold", "methods": ("dsat",)}, "threshold"),
        ({"figure": "update-rate", "datasets": ("static",)}, "there is no dataset"),
    ],
)
def test_options_that_make_no_sense_are_refused_before_anything_is_run(tmp_path, options, word):
    with pytest.raises(InvalidParameter, match=word):
        run_experiment("streams", output=tmp_path / "new", **options)
    assert not (tmp_path / "new").exists()


# What users choose


@pytest.mark.usefixtures("stand_ins")
def test_users_set_streams_methods_and_queries():
    def trial(**given):
        setting = {"part": "query-size", "dataset": "drift", **given}
        return StreamRunner(None).run_trial(Trial("streams", "fixed-sampling", "1", 0, setting))

    usual = trial()
    assert usual[PUBLISHED] == 10
    assert trial(releases="5%")[PUBLISHED] == 3  # of 60 steps
    assert trial(people=50)[ANSWER] == pytest.approx(usual[ANSWER] / 10, rel=0.2)
    assert trial(rate=0)[ANSWER] != usual[ANSWER]
    assert trial(queries=10)[ANSWER] != usual[ANSWER]
    bounded = trial(sanity=10_000)  # more than there are people
    assert bounded[RELATIVE] == pytest.approx(bounded[ERROR] / 10_000)
    assert usual[RELATIVE] > trial(sanity=50)[RELATIVE]


def test_rates_are_in_percent():
    chosen = StreamRunner(None)._chosen(
        Trial("streams", "dsat", "1", 3, {"dataset": "drift", "rate": "0.5", "steps": 20})
    )
    assert dict(chosen.settings) == {"rate": 0.005, "steps": 20}


def test_windows_are_as_long_as_the_stream_says():
    assert STREAM_SETS["oldenburg-long"].window == 800
    with_long = {"static": replace(STREAM_SETS["static"], window=30)}
    setting = {"part": "epsilon", "dataset": "static"}
    runner = StreamRunner(None, with_long)
    measured = runner.run_trial(Trial("streams", "per-snapshot-w", "1", 0, setting))
    usual = StreamRunner(None).run_trial(Trial("streams", "per-snapshot-w", "1", 0, setting))
    assert measured[ERROR] < usual[ERROR]


def test_what_the_axis_does_not_move_is_run_once_and_shown_everywhere():
    planned = STUDY.plan(2, figure="threshold", datasets=("bursts",), values=("0.1", "0.2"))
    by_method = {}
    for trial in planned.trials:
        by_method.setdefault(trial.method, []).append(trial)
    assert len(by_method["dsft"]) == 2 * 2
    assert len(by_method["dsat"]) == 2
    assert all("threshold" not in trial.setting for trial in by_method["dsat"])
    assert not is_moved("dsat", FIGURES["threshold"])
    results = [Result(trial, {ERROR: 1.0}) for trial in planned.trials]
    assert all(len(line) == 2 for line in STUDY.summarize(results).values())


def test_lines_without_noise_are_run_once_with_a_budget_that_leaves_none():
    planned = STUDY.plan(1, datasets=("bursts",), epsilons=("0.1", "1"))
    true = [trial for trial in planned.trials if trial.method in TRUE]
    assert [trial.method for trial in true] == list(TRUE)
    assert {trial.epsilon for trial in true} == {LAVISH}
    results = [
        Result(trial, {ERROR: 1.0 if trial.method in TRUE else 2.0, ANSWER: 9.0})
        for trial in planned.trials
    ]
    cells = STUDY.summarize(results)
    key = Key("bursts", ERROR, "fixed-true", "", ("stream",))
    assert list(cells[key]) == [0.1, 1.0]
    assert STUDY.best_at(cells, 1.0).method not in TRUE
    assert "*" not in STUDY.cell_text(cells, key, 1.0)
    assert key in STUDY.drawn(cells)
    assert "factor of at most 1.11" in STUDY.epsilon_words(results)


def test_without_noise_only_what_has_got_old_is_wrong():
    stream = STREAM_SETS["bursts"].stream(None, {"seed": 2024})
    setting = {"part": "epsilon", "dataset": "bursts"}
    measured = StreamRunner(None).run_trial(Trial("streams", "fixed-true", LAVISH, 0, setting))
    queries = RangeQueries.draw((4, 5), QUERIES, seed=0)
    old = [
        queries.mean_error(stream.counts[t // 6 * 6].astype(float), stream.counts[t])
        for t in range(60)
    ]
    assert measured[ERROR] == pytest.approx(np.mean(old))


def test_the_default_is_compared_with_the_best_rival_in_hindsight():
    def cell(mean):
        return {1.0: Cell(mean, 0.0, 1)}

    cells = {
        Key("static", ERROR, "dsat", "", ("stream",)): cell(12.0),
        Key("static", ERROR, "fixed-5", "", ("stream",)): cell(10.0),
        Key("static", ERROR, "dsat-schedule", "", ("stream",)): cell(8.0),
        Key("static", ERROR, "per-snapshot", "", ("stream",)): cell(1.0),
        Key("static", ERROR, "fixed-true", "", ("stream",)): cell(0.1),
        Key("drift", ERROR, "dsat-w", "", ("window",)): cell(9.0),
        Key("drift", ERROR, "ba", "", ("window",)): cell(10.0),
    }
    first, second = look_back(cells)
    assert (first.rival, first.ratio) == ("dsat-schedule", 1.5)
    assert (second.rival, second.ratio) == ("ba", 0.9)
    said = verdict([first, second])
    assert "1.20 times" in said
    assert "1.50 times at most (static)" in said
    assert "static (stream, ε = 1: 1.50)" in said
    assert "nowhere more than 1.3" in verdict([second])


def test_hindsight_has_a_table_of_its_own():
    planned = STUDY.plan(1, figure=HINDSIGHT, datasets=("static",), epsilons=("1",))
    results = [
        Result(trial, {ERROR: 3.0 if trial.method.startswith("dsat") else 2.0, ANSWER: 1.0})
        for trial in planned.trials
    ]
    tabled = STUDY.table(results)
    assert tabled.headers[-1] == "ratio"
    assert [row[-1] for row in tabled.rows] == ["1.50", "1.50"]
    assert "1.50 times" in STUDY.findings(results)[0]


def test_a_page_says_what_psd_inside_brings():
    def errors(lines):
        return [
            Result(
                Trial("streams", name, str(e), 0, {"part": "static", "dataset": "census-pool"}),
                {ERROR: mean},
            )
            for name, means in lines.items()
            for e, mean in means.items()
        ]

    lines = {"fixed-sampling": {0.1: 4.0, 1: 2.0}, "fixed-psd": {0.1: 3.0, 1: 5.0}}
    first, second, *_ = STUDY.findings(errors(lines))
    assert first == (
        "fixed-psd has so many times the error of noise in each bin: 0.75 at 0.1, 2.50 at 1."
    )
    assert second.startswith("PSD helps where a bin holds less than its noise")
    alone = STUDY.findings(errors({"fixed-sampling": {0.1: 4.0, 1: 2.0}}))
    assert not any("PSD" in sentence for sentence in alone)


# A table of one's own


@pytest.fixture
def own(tmp_path):
    rows, schema = tmp_path / "people.parquet", tmp_path / "people.toml"
    pq.write_table(datasets.census(400), rows)
    schema.write_text(SCHEMA)
    return {"data": rows, "schema": schema}


def test_a_table_of_ones_own_becomes_a_stream(own):
    table = OwnTable.read(own["data"], own["schema"])
    stream = own_stream(table, columns="sex,education", steps=5)
    assert stream.shape == (2, 6)
    assert (stream.counts.sum(axis=1) == 200).all()
    whole = own_stream(table, columns=2, people=399, steps=1).counts
    assert np.abs(whole.reshape(-1, 2).sum(axis=0) - [208, 192]).sum() < 40
    assert own_bins(table.schema, 3).names == ("age", "sex", "education")
    with pytest.raises(InvalidParameter, match="sexes"):
        own_bins(table.schema, "sexes")


def test_a_table_of_ones_own_is_the_only_stream_of_a_run(tmp_path, own, stand_ins):
    summary = run_experiment(
        "streams",
        repeats=1,
        output=tmp_path / "out",
        methods=("fixed-sampling", "per-snapshot"),
        epsilons=("1",),
        settings={"steps": 12, "columns": "sex", "people": 50},
        **own,
    )
    assert {row[0] for row in summary.rows} == {"people"}
    assert "Set here: people = 50, steps = 12, columns = sex." in summary.page.read_text()
