"""Checks of the items of chapter 5: each says yes and no, on made results."""

from dataclasses import replace
from pathlib import Path

import pytest

from dpublish.experiments.personalized import (
    CURVE,
    ERROR,
    FIGURES,
    LEFT,
    LEFT_BOUND,
    STUDY,
    WRONG,
)
from dpublish.experiments.reproduce import personalized as items
from dpublish.experiments.reproduce.item import Outcome, Verdict
from dpublish.experiments.study import Request
from dpublish.experiments.trials import Result

PARTITIONING = ("partitioning", "partitioning-privacy")


def outcome_of(run, measured):
    """Make results for the trials of a run, without any data."""
    options = run.options
    chosen = replace(
        FIGURES[run.figure],
        datasets=options["datasets"],
        methods=options["methods"],
        values=options.get("values", FIGURES[run.figure].values),
        fixed=options["settings"],
    )
    asked = Request(run.figure, chosen, 1, None)
    return Outcome(STUDY, [Result(t, measured(t)) for t in STUDY.trials(asked)])


def part_of_range(trial):
    """Return the threshold as a part of the largest level, by its position among 20."""
    return int(trial.setting["threshold"]) / 19


def made(*, sampling, others):
    """Make errors: of sampling by its threshold, of others by their name."""

    def measured(trial):
        if trial.method == "sampling":
            value = sampling(part_of_range(trial))
        else:
            value = others.get(trial.method, 0.5)
        return {ERROR: value, WRONG: value, CURVE: 1 - value, LEFT: 0.1, LEFT_BOUND: 0.9}

    return measured


def at_mean(part):
    """An error that is least halfway, where the mean of uniform budgets is."""
    return 0.01 + 0.04 * abs(part - 0.5) ** 2 * 4


GOOD = made(sampling=at_mean, others={"minimum": 0.05, **dict.fromkeys(PARTITIONING, 0.005)})
BAD = made(sampling=lambda part: 0.01 + 0.04 * part, others=dict.fromkeys(PARTITIONING, 0.4))
RISING = made(
    sampling=lambda part: 0.05 - 0.04 * part,
    others={"minimum": 0.05, **dict.fromkeys(PARTITIONING, 0.011)},
)


def verdicts(check_names, measured):
    return {
        item.title: item.judge(outcome_of(item.run, measured))[0]
        for item in items.ITEMS
        if item.check is not None and item.check.__qualname__.startswith(check_names)
    }


@pytest.mark.parametrize(
    ("names", "good"),
    [
        (("check_counts", "check_best_threshold", "check_below_mean"), GOOD),
        (("check_svm",), GOOD),
        (("check_logistic",), RISING),
    ],
)
def test_results_as_printed_are_reproduced_and_others_are_not(names, good):
    found = verdicts(names, good)
    assert found
    assert set(found.values()) == {Verdict.IN_ORDER}
    # A scan that is best at its start contradicts all of them.
    assert set(verdicts(names, BAD).values()) == {Verdict.DIFFERS}


@pytest.mark.parametrize(("left", "holds"), [((0.5, 0.2, 0.1), True), ((0.5, 0.6, 0.95), False)])
def test_what_is_left_must_fall_and_stay_below_its_bound(left, holds):
    def measured(trial):
        value = left[int(trial.setting.get("rounds", 1)) - 1]
        return {ERROR: 0.1, LEFT: value, LEFT_BOUND: 0.9}

    found = items.check_rounds(outcome_of(items._ROUNDS, measured))
    assert found.holds is holds
    assert f"{left[0]:.4f}" in found.ours


def test_every_figure_of_the_chapter_is_an_item_and_tests_that_are_named_exist():
    root = Path(__file__).resolve().parents[3]
    numbers = {item.numbers["li-thesis"] for item in items.ITEMS}
    assert {f"Figure 5.{number}" for number in range(1, 12)} <= numbers
    for item in items.ITEMS:
        for named in filter(None, item.tested.split(", ")):
            assert (root / named).is_file()


def test_means_are_those_of_the_distributions():
    from dpublish.experiments.personalized_population import Population

    for who, mean in items.MEANS.items():
        numbers = Population.draw(who, 20, 200_000, seed=1).numbers
        assert numbers.mean() == pytest.approx(mean, rel=0.01)
