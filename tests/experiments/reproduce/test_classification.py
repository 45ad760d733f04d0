"""The checks on chapter 3 of Su's thesis: each says yes and no, by the results alone."""

from pathlib import Path

import pytest

from dpublish.datasets.benchmarks import VARIABLE
from dpublish.experiments.classification import FIGURES, OnePage
from dpublish.experiments.classification_methods import UNPAID
from dpublish.experiments.reproduce.classification import ITEMS
from dpublish.experiments.reproduce.item import Outcome, Verdict
from dpublish.experiments.study import study_of
from dpublish.experiments.trials import Result

ROOT = Path(__file__).resolve().parents[3]
RUN = [item for item in ITEMS if item.run is not None]


@pytest.fixture(autouse=True)
def no_folder(monkeypatch):
    monkeypatch.delenv(VARIABLE, raising=False)


def made(item, value, deviation=lambda trial: 0.0):
    """Results of an item's run whose errors are made by a rule, on a table that is always here."""
    study = study_of(item.run.study)
    given = {"repeats": 1, **item.run.options, "folds": 2}
    if given["datasets"][0] not in ("simulated-binary",):
        is_wide = item.run.figure == "dimensions"
        given["datasets"] = ("simulated-binary" if is_wide else "simulated",)
    repeats = given.pop("repeats")
    plan = study.plan(repeats, figure=item.run.figure, **given)
    results = []
    for trial in plan.trials:
        error = value(trial) + (int(trial.setting["fold"]) - 0.5) * deviation(trial)
        measures = FIGURES[item.run.figure].measures
        if isinstance(FIGURES[item.run.figure], OnePage):
            measured = {measures[0]: error}
        else:
            measured = dict.fromkeys(("tree", "svm", "logistic"), error)
        results.append(Result(trial, {"seconds": error, **measured}))
    return Outcome(plan.study, results)


def ranked(names, worst=0.9):
    """Errors that rise along a list of methods, and with a smaller epsilon."""

    def value(trial):
        rank = names.index(trial.method) if trial.method in names else len(names)
        noise = 0.0 if trial.epsilon == "none" else 0.001 / float(trial.epsilon)
        return min(0.1 + 0.02 * rank + noise, worst)

    return value


def item_of(number):
    (found,) = (item for item in ITEMS if item.numbers.get("privpfc") == number)
    return found


def verdict(number, value, **given):
    item = item_of(number)
    return item.judge(made(item, value, **given))[0]


TREES = ["privpfc-paper", "diffgen-10", "pph", "diffpc45", "privbayes-paper"]
SVM = [
    *("privpfc-paper", "diffgen-10", "privlocal-single", "pph", "private-erm", "private-erm-paper"),
    "privbayes-paper",
    "privgene-paper",
]
LOGISTIC = [
    *("privpfc-paper", "privlocal-single", "privlocal", "diffgen-10", "pph", "privbayes-paper"),
    *("functional", "privgene-paper"),
]
OURS = ["privpfc", "diffgen", "pph", "diffpid3", "privbayes"]


@pytest.mark.parametrize(
    ("number", "names"),
    [
        ("Figure 4", TREES),
        ("Figure 4 a", TREES),
        ("Figure 4 a, our defaults", OURS),
        ("Figure 5", SVM),
        ("Figure 5, order", SVM),
        ("Section 5.3, Figure 5", SVM),
        ("Figure 6", LOGISTIC),
        ("Figure 6, order", LOGISTIC),
        ("Section 5.3, Figure 6", LOGISTIC),
        ("Figure 7", ["privpfc-paper", "diffgen-10", "pph", "privlocal-single"]),
        ("Figure 6 c and d", ["privlocal-single", "privpfc-paper"]),
        ("Figure 10, DiffGen", ["privpfc", "diffgen-unpaid", "diffgen"]),
        ("Figure 10, PrivBayes", ["privpfc", "privbayes-unpaid", "privbayes"]),
        ("Figure 13", ["diffgen-10", "pph", "privpfc-paper", "privbayes-paper"]),
        (
            "Section 5.6, running times",
            ["diffpc45", "functional", "private-erm", "privgene", "privlocal-single"],
        ),
    ],
)
def test_an_order_is_confirmed_and_its_reverse_is_not(number, names):
    assert verdict(number, ranked(names)) is Verdict.IN_ORDER
    assert verdict(number, ranked(names[::-1])) is Verdict.DIFFERS


def test_robustness_is_that_of_deviations():
    def deviation(steady):
        return lambda trial: 0.001 if trial.method == steady else 0.02

    number = "Section 5.3, Figure 4"
    value = ranked(TREES)
    assert verdict(number, value, deviation=deviation("privpfc-paper")) is Verdict.IN_ORDER
    assert verdict(number, value, deviation=deviation("pph")) is Verdict.DIFFERS


def test_gains_with_epsilon_are_compared():
    def value(improving):
        def error(trial):
            is_noisy = trial.method in improving and trial.epsilon == "0.1"
            return 0.4 if is_noisy else 0.2

        return error

    number = "Section 5.3, Figure 5, ε"
    searches = ("privlocal-single", "private-erm")
    assert verdict(number, value(searches)) is Verdict.IN_ORDER
    assert verdict(number, value(("pph",))) is Verdict.DIFFERS


def test_the_gap_to_the_truth_is_compared_by_classifier():
    item = item_of("Section 5.3, Figures 4 to 6")

    def outcome(far):
        known = made(item, lambda trial: 0.1)
        results = [
            Result(
                trial,
                {
                    name: 0.1 + (trial.method != "noise-free") * (0.2 if name == far else 0.01)
                    for name in ("tree", "svm", "logistic")
                },
            )
            for trial, _ in known.results
        ]
        return Outcome(known.study, results)

    assert item.judge(outcome("tree"))[0] is Verdict.IN_ORDER
    assert item.judge(outcome("svm"))[0] is Verdict.DIFFERS


def by_pool(errors, rival=0.3):
    def value(trial):
        return errors.get(trial.setting.get("pool"), rival)

    return value


def test_pools_help_at_first_and_time_grows_no_faster_than_they_do():
    helpful = {100: 0.3, 10_000: 0.2, 200_000: 0.19}
    late = {100: 0.3, 10_000: 0.29, 200_000: 0.1}
    assert verdict("Figure 8", by_pool(helpful)) is Verdict.IN_ORDER
    assert verdict("Figure 8", by_pool(late)) is Verdict.DIFFERS
    near = "Section 5.7, Figures 8 and 13"
    assert verdict(near, by_pool(helpful, rival=0.31)) is Verdict.IN_ORDER
    assert verdict(near, by_pool(helpful, rival=0.4)) is Verdict.DIFFERS
    assert verdict("Section 4.5", by_pool({100: 0.1, 10_000: 5, 200_000: 50})) is Verdict.IN_ORDER
    assert verdict("Section 4.5", by_pool({100: 0.1, 10_000: 5, 200_000: 500})) is Verdict.DIFFERS


def test_shares_are_compared():
    better = ["privpfc-paper-10-87", "privpfc-paper", "diffgen-10"]
    assert verdict("Figure 9", ranked(better)) is Verdict.IN_ORDER
    assert verdict("Figure 9", ranked([better[1], better[0], better[2]])) is Verdict.DIFFERS
    assert verdict("Figure 9", ranked(better[::-1])) is Verdict.DIFFERS

    def minor(step):
        def value(trial):
            return (
                0.3
                if trial.method == "diffgen"
                else 0.1 + step * trial.setting.get("selection_percent", 0)
            )

        return value

    assert verdict("Section 5.4", minor(0.0001)) is Verdict.IN_ORDER
    assert verdict("Section 5.4", minor(0.01)) is Verdict.DIFFERS


def test_a_free_choice_may_gain_less_than_a_rival_lies_behind():
    assert verdict("Figure 10", ranked(["privpfc-unpaid", "privpfc", *[""] * 3, "diffgen"])) is (
        Verdict.IN_ORDER
    )
    assert verdict("Figure 10", ranked(["privpfc", "privpfc-unpaid", "diffgen"])) is Verdict.DIFFERS
    assert all(name.endswith("-unpaid") for name in UNPAID)


def test_columns_and_rows_are_compared():
    order = ["privpfc-paper", "diffgen", "pph", "privbayes-paper"]

    def wide(names):
        rank = ranked(names)

        def value(trial):
            return rank(trial) + 0.0001 * trial.setting.get("predictors", 0)

        return value

    assert verdict("Figure 11", wide(order)) is Verdict.IN_ORDER
    assert verdict("Figure 11", wide(order[::-1])) is Verdict.DIFFERS
    assert verdict("Figure 11", ranked(order)) is Verdict.DIFFERS  # PrivBayes loses nothing

    def many(names, sign=-1):
        rank = ranked(names)

        def value(trial):
            return rank(trial) + sign * 1e-7 * trial.setting.get("rows", 0)

        return value

    rows = ["privpfc-paper", "diffgen-10", "pph", "privbayes-paper"]
    for number in ("Figure 12 a", "Figure 12 b"):
        assert verdict(number, many(rows)) is Verdict.IN_ORDER
        assert verdict(number, many(rows[::-1])) is Verdict.DIFFERS
        assert verdict(number, many(rows, sign=1)) is Verdict.DIFFERS


def test_the_sensitivity_is_reproduced_digit_by_digit(tmp_path):
    item = item_of("Figure 2")
    plan = study_of("grid-quality").plan(1)
    results = plan.run(tmp_path / "results.jsonl")
    assert item.judge(Outcome(plan.study, results))[0] is Verdict.REPRODUCED
    wrong = [Result(t, {k: v + 0.02 for k, v in m.items()}) for t, m in results[:1]] + results[1:]
    assert item.judge(Outcome(plan.study, wrong))[0] is Verdict.DIFFERS


def test_the_correlation_is_that_of_the_results():
    item = item_of("Figure 3")
    plan = study_of("grid-quality").plan(
        1, figure="correlation", datasets=("simulated-multiclass",), epsilons=("0.05", "0.5")
    )
    for value, expected in ((0.95, Verdict.IN_ORDER), (0.5, Verdict.DIFFERS)):
        results = [Result(trial, {"correlation": value}) for trial in plan.trials]
        assert item.judge(Outcome(plan.study, results))[0] is expected


def test_every_item_is_numbered_once_and_its_tests_are_there():
    for document in ("su-thesis", "privpfc"):
        numbers = [item.numbers[document] for item in ITEMS if document in item.numbers]
        assert len(numbers) == len(set(numbers))
        assert len(numbers) >= 25
    for item in ITEMS:
        for path in item.tested.split(", ") if item.tested else ():
            assert (ROOT / path).is_file(), path


@pytest.mark.parametrize("item", RUN, ids=lambda item: next(iter(item.numbers.values())))
def test_short_and_full_runs_can_be_planned_where_the_tables_are(item, real_data):
    study = study_of(item.run.study)
    for is_full in (False, True):
        given = item.run.given(is_full=is_full)
        repeats = given.pop("repeats")
        planned = study.plan(repeats, data_folder=real_data, **given)
        assert planned.trials
        assert planned.notes == ()
