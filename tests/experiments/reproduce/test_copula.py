"""The items of chapter 3: every check says yes to what was printed, and no to the opposite."""

import pytest

from dpublish.experiments.copula import STUDY
from dpublish.experiments.reproduce import copula
from dpublish.experiments.reproduce.copula import ITEMS
from dpublish.experiments.reproduce.item import Outcome, Verdict
from dpublish.experiments.trials import Result, Trial

PAPER, HYBRID, KENDALL, MLE = (
    "dpcopula-paper",
    "dpcopula-hybrid-paper",
    *copula._CORRELATIONS["methods"],
)
ALL = copula.ALL
RISING, FALLING, FLAT = (1.0, 2.0, 3.0, 4.0), (4.0, 3.0, 2.0, 1.0), (1.0, 1.0, 1.0, 1.0)


def outcome(figure, measures, lines, axis=("2", "4", "6", "8"), dataset="simulated", **setting):
    """Make results: for each method its values along the axis, the same for every measure."""
    key = STUDY.figures[figure].key
    results = []
    for method, values in lines.items():
        for point, value in zip(axis, values, strict=True):
            given = {"part": figure, "dataset": dataset, **setting, **({key: point} if key else {})}
            epsilon = "1" if key else point
            measured = dict.fromkeys(measures, value)
            results.append(Result(Trial("copula", method, epsilon, 0, given), measured))
    return Outcome(STUDY, results)


def test_every_figure_table_and_theorem_of_the_chapter_has_an_item():
    numbers = " ".join(item.numbers["li-thesis"] for item in ITEMS)
    wanted = [f"Figure 3.{number}" for number in range(1, 11)]
    wanted += ["Table 3.1", "Table 3.2", "Table 3.3", "Theorem 3.1.3", "Lemma 3.2.1"]
    wanted += [f"Theorem 3.2.{number}" for number in range(1, 5)]
    assert [name for name in wanted if name not in numbers] == []
    assert all(item.because or item.tested or item.run for item in ITEMS)


def test_the_runs_are_those_of_the_study_and_short():
    for item in ITEMS:
        if item.run is None:
            continue
        figure = STUDY.figures[item.run.figure]
        given = item.run.given(is_full=False)
        assert set(given.get("methods", ())) <= set(STUDY.known_methods(figure))
        assert set(given.get("settings", {})) <= set(STUDY.knobs)
        assert given["repeats"] <= item.run.given(is_full=True)["repeats"]


AXES = {
    copula.check_ratio: ("0.25", "1", "4", "16"),
    copula.check_us: ("0.1", "0.25", "0.5", "1"),
    copula.check_brazil: ("0.1", "0.25", "0.5", "1"),
    copula.check_partition_cost: ("0.1", "0.25", "0.5", "1"),
    copula.check_time_by_rows: ("10000", "20000", "40000", "80000"),
    copula.check_convergence: ("1000", "10000", "100000", "1000000"),
}
FIGURES = {
    copula.check_ratio: "ratio",
    copula.check_us: "mixed",
    copula.check_brazil: "mixed",
    copula.check_partition_cost: "mixed",
    copula.check_time_by_rows: "time",
    copula.check_convergence: "rows",
    copula.check_correlation_times: "time-columns",
    copula.check_time_by_columns: "time-columns",
    copula.check_quadratic: "time-columns",
}
OTHERS = dict.fromkeys(copula.COMPARATORS, (8.0, 5.0, 4.0, 3.0))
LOW = {HYBRID: FLAT, "dpcopula-hybrid": FLAT, "dpcopula": FLAT}


@pytest.mark.parametrize(
    ("check", "yes", "no"),
    [
        (copula.check_ratio, {ALL: (4.0, 1.0, 1.1, 1.2)}, {ALL: (4.0, 1.0, 1.1, 2.2)}),
        (copula.check_ratio, {ALL: (4.0, 1.0, 1.1, 1.2)}, {ALL: FLAT}),
        (copula.check_correlations, {KENDALL: FLAT, MLE: RISING}, {KENDALL: RISING, MLE: FLAT}),
        (
            copula.check_correlation_times,
            {KENDALL: RISING, MLE: FLAT},
            {KENDALL: FLAT, MLE: RISING},
        ),
        (copula.check_us, {**LOW, **OTHERS}, {**LOW, **OTHERS, "p-hp": (0.9, 5.0, 4.0, 3.0)}),
        (copula.check_us, {**LOW, **OTHERS}, {**LOW, **dict.fromkeys(copula.COMPARATORS, RISING)}),
        (
            copula.check_brazil,
            {**LOW, "psd": FALLING, "p-hp": FALLING, "filter-priority": (0.1,) * 4},
            {**LOW, "psd": FALLING, "p-hp": (0.1,) * 4},
        ),
        (copula.check_partition_cost, LOW, {**LOW, "dpcopula": (0.5,) * 4}),
        (copula.check_dimensions, {PAPER: FLAT, "psd": RISING}, {PAPER: RISING, "psd": FLAT}),
        (copula.check_growth, {PAPER: RISING, "psd": RISING}, {PAPER: RISING, "psd": FALLING}),
        (
            copula.check_time_by_rows,
            {KENDALL: FLAT, "psd": RISING, "privelet": FLAT},
            {KENDALL: FLAT, "psd": FLAT, "privelet": RISING},
        ),
        (
            copula.check_time_by_rows,
            {KENDALL: FLAT, "psd": RISING, "privelet": FLAT},
            {KENDALL: FLAT, "psd": (1.0, 4.0, 16.0, 64.0), "privelet": FLAT},
        ),
        (
            copula.check_time_by_columns,
            {KENDALL: RISING, "psd": FLAT},
            {KENDALL: FLAT, "psd": RISING},
        ),
        (
            copula.check_quadratic,
            {KENDALL: RISING, MLE: RISING},
            {KENDALL: (1.0, 8.0, 27.0, 64.0), MLE: RISING},
        ),
        (copula.check_convergence, {PAPER: (4.0, 1.0, 0.5, 0.1)}, {PAPER: FALLING}),
        (
            copula.check_sample,
            {PAPER: FLAT, "dpcopula-paper-all": FLAT},
            {PAPER: RISING, "dpcopula-paper-all": FLAT},
        ),
    ],
)
def test_checks_tell_the_printed_order_from_another_one(check, yes, no):
    figure = FIGURES.get(check, "dimensions")
    measures = ("relative", "absolute", "seconds")
    axis = AXES.get(check, ("2", "4", "6", "8"))
    assert check(outcome(figure, measures, yes, axis)).holds
    found = check(outcome(figure, measures, no, axis))
    assert not found.holds
    assert any(digit in found.ours for digit in "123456789")


SIZES = ("0.000001", "0.0001", "0.001", "0.01", "0.1", "0.5")


@pytest.mark.parametrize(
    ("check", "yes", "no"),
    [
        (
            copula.check_relative_sizes,
            (0.1, 2.0, 3.0, 4.0, 2.0, 1.0),
            (4.0, 3.0, 3.0, 3.0, 2.0, 1.0),
        ),
        (
            copula.check_relative_sizes,
            (0.1, 2.0, 3.0, 4.0, 2.0, 1.0),
            (0.1, 1.0, 2.0, 3.0, 4.0, 5.0),
        ),
        (
            copula.check_absolute_sizes,
            (1.0, 2.0, 3.0, 4.0, 5.0, 6.0),
            (6.0, 5.0, 4.0, 3.0, 2.0, 1.0),
        ),
    ],
)
def test_checks_of_query_sizes(check, yes, no):
    others = dict.fromkeys(("psd", "p-hp"), (9.0,) * 6)
    measures = ("relative", "absolute")
    assert check(outcome("query-size", measures, {PAPER: yes, **others}, SIZES)).holds
    assert not check(outcome("query-size", measures, {PAPER: no, **others}, SIZES)).holds
    worse = {PAPER: tuple(10 * value for value in yes), **others}
    assert not check(outcome("query-size", measures, worse, SIZES)).holds


def shapes(own, psd):
    results = []
    for name, mine, other in zip(copula._SHAPES, own, psd, strict=True):
        lines = {PAPER: (mine,) * 2, "dpcopula": (mine,) * 2, "psd": (other,) * 2}
        found = outcome("marginals", ("relative_between_records",), lines, ("0.1", "1"), name)
        results.extend(found.results)
    return Outcome(STUDY, results)


def test_checks_of_shapes():
    assert copula.check_shapes(shapes((3, 2, 1), (4, 4, 9))).holds
    assert not copula.check_shapes(shapes((3, 2, 1), (9, 4, 4))).holds
    assert not copula.check_shapes(shapes((3, 2, 5), (4, 4, 4))).holds
    assert copula.check_smooth_shapes(shapes((3, 2, 1), (4, 4, 4))).holds
    assert not copula.check_smooth_shapes(shapes((3, 2, 5), (4, 4, 4))).holds


def test_checks_of_settings():
    made = outcome("epsilon", ("relative",), {PAPER: (0.1,)}, ("1",), sanity=1)
    assert copula.check_defaults(made).holds
    other = outcome("epsilon", ("relative",), {PAPER: (0.1,)}, ("1",), sanity=2)
    assert not copula.check_defaults(other).holds
    stand_in = outcome("mixed", ("relative",), LOW, ("0.1", "0.25", "0.5", "1"), "us-census")
    found = copula.check_domains(stand_in)
    assert not found.holds
    assert "96 × 47 × 1,020 × 2" in found.ours


def test_items_without_a_run_are_tested():
    for item in ITEMS:
        if item.run is None:
            assert item.judge(None)[0] is Verdict.TESTED
