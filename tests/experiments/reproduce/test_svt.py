"""Checks of the thesis's chapter on sparse vectors: each says yes and no, on made results."""

from dataclasses import replace

import pytest

from dpublish.experiments.reproduce import svt as items
from dpublish.experiments.reproduce.item import Outcome, Verdict
from dpublish.experiments.study import Request, study_of
from dpublish.experiments.svt_variants import INFINITE
from dpublish.experiments.trials import Result

GOOD = {
    items.BOOK: 0.9,
    items.ONE: 0.6,
    items.THREE: 0.4,
    items.BY_C: 0.3,
    items.BEST: 0.3,
    "SVT-ReTr 1D": 0.2,
    "SVT-ReTr 2D": 0.1,
    "SVT-ReTr 3D": 0.09,
    "SVT-ReTr 4D": 0.09,
    "SVT-ReTr 5D": 0.09,
    items.EM: 0.08,
}


def outcome_of(run, measured):
    """Make results for the trials of a run, without any data."""
    study = study_of(run.study)
    usual = study.figures[run.figure]
    chosen = replace(
        usual,
        datasets=run.options.get("datasets", ()),
        methods=run.options.get("methods", usual.methods),
        values=run.options.get("values", usual.values),
    )
    asked = Request(run.figure, chosen, 2, None)
    return Outcome(study, [Result(trial, measured(trial)) for trial in study.trials(asked)])


def made(table=GOOD, **special):
    """SERs of the methods; those of a dataset, or of a method at c = 50, can be set apart."""

    def measured(trial):
        value = special.get(trial.dataset.replace("-", "_"), {}).get(trial.method)
        value = table[trial.method] if value is None else value
        wobble = 0.02 if trial.method == items.BY_C else 0.01
        return {"ser": value + wobble * (trial.seed - 0.5), "fnr": value}

    return outcome_of(items._COUNTS, measured)


def test_orders_are_seen_and_reversed_ones_refused():
    check = items.check_orders(items.INTERACTIVE, items.KOSARAK, "0.1", items._is_interactive_order)
    assert check(made()).holds
    assert "c = 50: DPBook 0.900" in check(made()).ours
    assert not check(made(kosarak={items.BOOK: 0.1})).holds
    assert not check(made(kosarak={items.BY_C: 0.9, items.BEST: 0.9})).holds
    listed = items.check_orders(items.LISTED, items.ZIPF, "0.5", items._is_listed_order)
    assert listed(made()).holds
    assert not listed(made(zipf={items.EM: 0.3})).holds


def test_the_rows_of_kosarak_need_both_orders():
    check = items.check_table_kosarak("0.1")
    assert check(made()).holds
    assert not check(made(kosarak={items.BOOK: 0.1})).holds
    assert not check(made(kosarak={items.EM: 0.5})).holds


def printed_rows(trial):
    column = items.NINE.index(trial.method) if trial.method in items.NINE else None
    row = items._ZIPF[trial.epsilon][int(trial.setting["count"])]
    cell = None if column is None else row[column]
    return 0.5 if cell is None else cell[0] / 1000


@pytest.mark.parametrize("epsilon", ["0.1", "0.5"])
def test_digits_are_compared_with_print(epsilon):
    check = items.check_table_zipf(epsilon)
    as_printed = outcome_of(items._COUNTS, lambda trial: {"ser": printed_rows(trial), "fnr": 0})
    found = check(as_printed)
    assert found.holds
    assert "the widest gap is 0.000" in found.ours
    far = outcome_of(items._COUNTS, lambda trial: {"ser": 1 - printed_rows(trial), "fnr": 0})
    assert not check(far).holds


def test_claims_about_kosarak_splits_and_selection():
    small = {items.ONE: 0.05, items.THREE: 0.03, items.BY_C: 0.03, items.BEST: 0.02}
    assert items.check_small_c(made(kosarak=small)).holds
    assert not items.check_small_c(made()).holds
    assert items.check_deviations(made()).holds
    level = outcome_of(items._COUNTS, lambda trial: {"ser": 0.3, "fnr": 0.3})
    assert not items.check_deviations(level).holds
    assert items.check_selection(made()).holds
    behind = items.check_selection(made(bms_pos={items.EM: 0.5}))
    assert not behind.holds
    assert "bms-pos" in behind.ours


def test_the_best_rise_must_depend_on_the_data():
    worse = {"SVT-ReTr 5D": 0.4, "SVT-ReTr 1D": 0.05}
    assert items.check_rises(made(bms_pos=worse)).holds
    assert not items.check_rises(made()).holds


def test_scores_must_fall():
    falling = outcome_of(items._SCORES, lambda t: {"score": 1000 / int(t.setting["rank"])})
    assert items.check_scores(falling).holds
    rising = outcome_of(items._SCORES, lambda t: {"score": int(t.setting["rank"])})
    assert not items.check_scores(rising).holds


def losses(run, table):
    def measured(trial):
        value = table[trial.method]
        value = value(trial) if callable(value) else value
        return {"general": value, "monotonic": value / 2}

    return outcome_of(run, measured)


def grown(trial):
    return 0.2 * int(trial.setting["negatives"])


TRUE = {
    "Alg. 17": 1.0,
    "Alg. 18": 1.0,
    "Alg. 19": grown,
    "Alg. 20": 4.75,
    "Alg. 21": INFINITE,
    "Alg. 22": grown,
    "dpublish": 1.0,
}


def test_costs_of_algorithms_are_judged():
    true = losses(items._QUERIES, TRUE)
    assert items.check_private("Alg. 17")(true).holds
    assert not items.check_private("Alg. 20")(true).holds
    assert items.check_unbounded("Alg. 21")(true).holds
    assert "infinite" in items.check_unbounded("Alg. 21")(true).ours
    assert not items.check_unbounded("Alg. 17")(true).holds
    assert items.check_summary(true).holds
    assert not items.check_summary(losses(items._QUERIES, TRUE | {"Alg. 18": 1.2})).holds
    assert not items.check_summary(losses(items._QUERIES, TRUE | {"Alg. 20": 3.0})).holds
    assert not items.check_summary(losses(items._QUERIES, TRUE | {"Alg. 22": 1.0})).holds


def test_the_formula_of_algorithm_20_is_judged():
    def by_count(moves):
        def measured(trial):
            count = int(trial.setting["positives"])
            return {"general": (1 + moves * count) / 4, "monotonic": (1 + 3 * count) / 4}

        return outcome_of(items._POSITIVES, measured)

    assert items.check_forgotten_count(by_count(6)).holds
    assert not items.check_forgotten_count(by_count(5)).holds


@pytest.mark.parametrize(("argued", "honest", "holds"), [(9, -0.5, True), (0.2, -0.5, False)])
def test_the_argument_about_gptt_is_judged(argued, honest, holds):
    outcome = outcome_of(items._GPTT, lambda _: {"true": 0.5, "argued": argued, "honest": honest})
    assert items.check_gptt(outcome).holds is holds


@pytest.mark.parametrize(("loss", "holds"), [(0.5, False), (3.0, True)])
def test_the_leak_of_an_absolute_value_is_judged(loss, holds):
    outcome = outcome_of(items._ABSOLUTE, lambda _: {"loss": loss})
    assert items.check_absolute(outcome).holds is holds


@pytest.mark.parametrize(("sparse", "holds"), [(90.0, True), (70.0, False)])
def test_the_formulas_of_accuracy_are_judged(sparse, holds):
    outcome = outcome_of(
        items._ALPHA, lambda t: {"formula": sparse if t.method == "SVT" else 10.0, "exact": 10.0}
    )
    assert items.check_alpha(outcome).holds is holds


def test_every_figure_and_table_of_the_chapter_has_an_item():
    numbers = " ".join(item.numbers["su-thesis"] for item in items.ITEMS)
    assert all(f"Figure 5.{number}" in numbers for number in range(1, 17))
    assert all(
        f"5.{number} (" in numbers or f"Table 5.{number}" in numbers for number in range(1, 7)
    )


def test_what_differs_or_is_missing_says_why():
    for item in items.ITEMS:
        if item.run is None:
            assert item.tested or item.because
    (absolute,) = [item for item in items.ITEMS if item.check is items.check_absolute]
    outcome = outcome_of(items._ABSOLUTE, lambda _: {"loss": 0.5})
    assert absolute.judge(outcome)[0] is Verdict.DIFFERS
    assert "upward only" in absolute.because
