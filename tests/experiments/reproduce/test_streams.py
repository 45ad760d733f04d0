"""The items of chapter 4 on streams: every check says yes and no, and runs have printed sizes."""

from dataclasses import replace
from pathlib import Path

import pytest

from dpublish.core.catalog import STREAMS
from dpublish.experiments.reproduce import streams
from dpublish.experiments.reproduce.item import Outcome, Verdict
from dpublish.experiments.reproduce.streams import (
    BINS,
    BUDGETS,
    CENSUS,
    ITEMS,
    PRINTED_DEFAULTS,
    check_baseline,
    check_below,
    check_columns,
    check_defaults,
    check_first_threshold,
    check_hindsight,
    check_nearer_with_budget,
    check_printed_share,
    check_psd,
    check_query_size,
    check_share,
    check_small_budgets,
    check_stable,
    check_threshold,
    check_windows,
)
from dpublish.experiments.streams import ERROR, RELATIVE, STUDY
from dpublish.experiments.streams_competitors import LAVISH, METHODS
from dpublish.experiments.trials import Result, Trial
from dpublish.methods.streams.dsft import share_for_decisions
from dpublish.methods.streams.method import stream_settings

LONG = "oldenburg-long"


def outcome(figure, lines, *, dataset=CENSUS, measure=ERROR):
    """Make results of lines: by method, the mean at each point of the axis."""
    key = STUDY.figures[figure].key
    results = []
    for method, means in lines.items():
        for point, mean in means.items():
            setting = {"part": figure, "dataset": dataset}
            epsilon = "1" if key else str(point)
            if METHODS[method].is_true:
                epsilon = LAVISH
            if key:
                setting[key] = point
            results.append(Result(Trial("streams", method, epsilon, 0, setting), {measure: mean}))
    return Outcome(STUDY, results)


def both(*outcomes):
    return Outcome(STUDY, [result for one in outcomes for result in one.results])


def flat(*methods, at=(0.1, 1), mean=1.0):
    return {method: dict.fromkeys(at, mean) for method in methods}


def test_a_method_is_below_its_rivals_at_every_point_or_not():
    lines = {"dsat": {0.1: 5.0, 1: 2.0}, "fixed-sampling": {0.1: 6.0, 1: 3.0}}
    given = {"method": "dsat", "rivals": ("fixed-sampling",), "dataset": CENSUS}
    found = check_below(outcome("epsilon", lines), **given)
    assert found.holds
    assert found.ours == "at 0.1, 1: dsat 5, 2; fixed-sampling 6, 3"
    lines["dsat"][1] = 3.5
    assert not check_below(outcome("epsilon", lines), **given).holds


def shares(schedule):
    values = ("0.001", "0.01", "0.05", "0.9")
    own = dict(zip(values, schedule, strict=True))
    rest = flat("dsft", "dsat-paper", at=values)
    return both(
        *(
            outcome("decision-share", {"dsat-schedule": own, **rest}, dataset=d)
            for d in ("bursts", CENSUS)
        )
    )


@pytest.mark.parametrize(
    ("errors", "holds"),
    [((20, 11, 10, 40), True), ((10, 11, 10, 40), False), ((20, 15, 15, 12), False)],
)
def test_a_share_in_between_is_best_or_not(errors, holds):
    assert check_share(shares(errors)).holds is holds


def test_the_printed_share_is_compared_by_its_digits(monkeypatch):
    found = check_printed_share(Outcome(STUDY, []))
    assert not found.holds
    assert found.ours.startswith("0.0527; the printed formula gives 0.167")
    ours = share_for_decisions(None, bins=BINS, releases=10, horizon=500, window=None)
    assert float(ours) == pytest.approx(0.0527, abs=5e-5)
    monkeypatch.setattr(streams, "PRINTED_SHARE", "0.0527")
    assert check_printed_share(Outcome(STUDY, [])).holds


@pytest.mark.parametrize(
    ("fixed", "adaptive", "holds"),
    [((9, 5, 8), 5.2, True), ((9, 5, 8), 7, False), ((5.1, 5, 5.2), 5, False)],
)
def test_an_error_falls_and_rises_with_the_threshold_or_not(fixed, adaptive, holds):
    values = ("0.1", "0.2", "0.4")
    lines = {
        "dsft": dict(zip(values, fixed, strict=True)),
        **flat("dsat-paper", at=values, mean=adaptive),
        **flat("dsat", at=values, mean=3),
    }
    found = check_threshold(outcome("threshold", lines), dataset=CENSUS)
    assert found.holds is holds
    assert "best T = 0.2" in found.ours


def test_the_first_threshold_does_not_matter_or_does():
    steady = outcome("threshold", {"dsat-paper": {"0.1": 10.0, "0.4": 10.5}})
    assert check_first_threshold(steady, dataset=CENSUS).holds
    other = outcome("threshold", {"dsat-paper": {"0.1": 10.0, "0.4": 12.0}})
    assert not check_first_threshold(other, dataset=CENSUS).holds


def test_more_budget_is_nearer_to_no_noise_or_not():
    def lines(last):
        return {
            "dsat-paper": {0.1: 50, 1: 20},
            "fixed-sampling": {0.1: 50, 1: last},
            "dsat-true": {0.1: 10},
            "fixed-true": {0.1: 10},
        }

    assert check_nearer_with_budget(outcome("epsilon", lines(30))).holds
    assert not check_nearer_with_budget(outcome("epsilon", lines(60))).holds


def test_the_baseline_is_an_order_of_magnitude_worse_or_not():
    lines = flat("fixed-sampling", "dsat-paper", "dsat")
    far = check_baseline(outcome("epsilon", {**lines, **flat("per-snapshot", mean=12)}))
    assert far.holds
    assert far.ours.startswith("12 to 12 times")
    assert not check_baseline(outcome("epsilon", {**lines, **flat("per-snapshot", mean=9)})).holds


def test_the_defaults_are_those_of_the_run():
    setting = {"part": "epsilon", "dataset": CENSUS, **BUDGETS.options["settings"]}
    trials = [Trial("streams", "dsat-paper", e, 0, setting) for e in ("0.1", "1")]
    found = check_defaults(Outcome(STUDY, [Result(trial, {}) for trial in trials]))
    assert found.holds
    assert "n = 500,000" in found.ours
    smaller = [replace(trial, setting={**setting, "steps": 400}) for trial in trials]
    assert not check_defaults(Outcome(STUDY, [Result(trial, {}) for trial in smaller])).holds
    assert set(PRINTED_DEFAULTS) == {"N", "d", "n", "ε", "C", "r", "δ", "θ"}


def test_psd_inside_is_better_or_not():
    lines = flat("fixed-sampling", "dsat-paper", mean=3)
    better = {**lines, **flat("fixed-psd", "dsat-paper-psd", mean=2)}
    assert check_psd(outcome("static", better)).holds
    better["fixed-psd"][1] = 4
    assert not check_psd(outcome("static", better)).holds


def test_errors_are_stable_over_update_rates_or_not():
    methods = ("dsat", "dsat-paper", "fixed-sampling", "dsat-true", "fixed-true")
    lines = flat(*methods, at=("10", "50"))
    assert check_stable(outcome("update-rate", lines)).holds
    lines["fixed-true"]["50"] = 2.0
    assert not check_stable(outcome("update-rate", lines)).holds


def test_more_columns_help_fixed_sampling_or_not():
    falling, rising = {3: 5.0, 6: 3.0}, {3: 5.0, 6: 6.0}
    lines = {
        "fixed-sampling": falling,
        "fixed-true": falling,
        "dsat-true": falling,
        "dsat-paper": rising,
        "dsat": rising,
    }
    assert check_columns(outcome("dimensions", lines)).holds
    assert not check_columns(outcome("dimensions", {**lines, "fixed-sampling": rising})).holds
    assert not check_columns(outcome("dimensions", {**lines, "dsat-paper": falling})).holds


def test_larger_queries_have_larger_and_relatively_smaller_errors_or_not():
    methods = ("dsat", "dsat-paper", "fixed-sampling")
    rising, falling = {10: 5.0, 490: 9.0}, {10: 0.9, 490: 0.1}

    def found(relative):
        return check_query_size(
            both(
                outcome("query-size", dict.fromkeys(methods, rising)),
                outcome("query-size", dict.fromkeys(methods, relative), measure=RELATIVE),
            )
        )

    assert found(falling).holds
    assert "relative at 10, 490: dsat 0.9, 0.1" in found(falling).ours
    assert not found(rising).holds


@pytest.mark.parametrize(("at_800", "holds"), [(30, True), (12, False), (5, False)])
def test_the_gap_grows_with_the_window_or_not(at_800, holds):
    lines = {
        "dsat-w": {40: 5.0, 800: 10.0},
        "bd": {40: 7.0, 800: at_800},
        "ba": {40: 7.0, 800: 30.0},
        "fixed-sampling-w": {40: 6.0, 800: 9.0},
    }
    found = check_windows(outcome("window", lines, dataset=LONG), method="dsat-w")
    assert found.holds is holds


@pytest.mark.parametrize(
    ("dsat", "ba", "holds"),
    [((12, 5), (40, 9), True), ((38, 5), (40, 9), False), ((1, 5), (10, 9), False)],
)
def test_small_budgets_hurt_ba_or_not(dsat, ba, holds):
    points = (0.1, 1)
    lines = {
        "dsat-w": dict(zip(points, dsat, strict=True)),
        "ba": dict(zip(points, ba, strict=True)),
        **flat("bd", "fixed-sampling-w"),
    }
    found = check_small_budgets(outcome("epsilon", lines, dataset=LONG), method="dsat-w")
    assert found.holds is holds


@pytest.mark.parametrize(("default", "holds"), [(1.05, True), (1.2, False), (1.5, False)])
def test_the_default_is_near_the_best_rival_or_not(default, holds):
    lines = {**flat("dsat", mean=default), **flat("ba-user", mean=1.0)}
    assert check_hindsight(outcome("hindsight", lines)).holds is holds


def test_every_figure_and_table_of_the_chapter_has_an_item():
    numbers = {item.numbers["li-thesis"] for item in ITEMS}
    assert {f"Figure 4.{number}" for number in (1, 2, 3, 5, 6, 7, 8, 9)} <= numbers
    assert {f"Figure 4.4({part})" for part in "abc"} <= numbers
    assert {"Table 4.1", "Table 4.2"} <= numbers


@pytest.mark.parametrize("item", ITEMS, ids=lambda item: item.title)
def test_every_run_can_be_planned_and_every_test_is_there(item, monkeypatch):
    if item.run is None:
        assert (Path(__file__).parents[3] / item.tested).is_file()
        assert item.judge(None)[0] is Verdict.TESTED
        return
    monkeypatch.setattr(STUDY, "missing_file", lambda dataset, folder: None)
    for is_full in (False, True):
        given = item.run.given(is_full=is_full)
        planned = STUDY.plan(given.pop("repeats"), **given)
        assert planned.trials


def test_the_notation_of_the_thesis_is_found_among_the_settings():
    known = {name: {setting.name for setting in stream_settings(name)} for name in STREAMS}
    assert {"horizon", "releases", "decision_share", "threshold"} <= known["dsft"]
    assert {"horizon", "releases", "decision_share", "burn_in"} <= known["dsat"]
    assert {"window", "releases", "decision_share"} <= known["dsat-w"]
