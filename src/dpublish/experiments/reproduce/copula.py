"""Chapter 3 of H. Li's thesis, item by item: synthetic tables by DPCopula."""

from collections.abc import Iterable, Mapping
from itertools import pairwise
from math import prod

from dpublish.experiments.copula_runner import (
    ABSOLUTE,
    BETWEEN_RECORDS,
    METHODS,
    RELATIVE,
)
from dpublish.experiments.reproduce.item import Finding, Item, Outcome, Run
from dpublish.experiments.trials import SECONDS

PAPER, OURS, HYBRID = "dpcopula-paper", "dpcopula", "dpcopula-hybrid-paper"
KENDALL, MLE = "dpcopula-kendall", "dpcopula-mle"
ALL = "dpcopula-paper-all"
"""As published, but for the sample: all records are compared."""
COMPARATORS = ("psd", "p-hp", "privelet", "filter-priority")
_LEVEL = 1.1
"""Errors within a tenth of each other count as level: repeats are few."""


def _li(number: str) -> dict[str, str]:
    return {"li-thesis": number}


def _digits(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def _series(means: Mapping[float, float]) -> str:
    """Write a line: its means, in the order of the axis."""
    return " ".join(map(_digits, means.values()))


def _lines(
    outcome: Outcome, methods: Iterable[str], **filters: str
) -> dict[str, dict[float, float]]:
    """Read the lines of methods that ran, by method."""
    found = {}
    for method in methods:
        lines = outcome.lines(method=method, **filters)
        if any(lines.values()):
            found[method] = outcome.means(method=method, **filters)
    return found


def _told(lines: Mapping[str, Mapping[float, float]]) -> str:
    return "; ".join(f"{method} {_series(means)}" for method, means in lines.items())


def _is_first(first: Mapping[float, float], others: Iterable[Mapping[float, float]]) -> bool:
    return all(first[point] <= other[point] for other in others for point in first)


# --- Settings and tables --------------------------------------------------------------------------


def check_defaults(outcome: Outcome) -> Finding:
    """Compare the settings of Table 3.2 with those of the simulated table and the method."""
    table = outcome.study.datasets["simulated"]
    sizes = [column.axis().ordinary_leaves for column in table.schema.columns]  # type: ignore[attr-defined]
    ratio, records = METHODS[PAPER].settings["ratio"], table.records  # type: ignore[attr-defined]
    trials = [trial for trial, _ in outcome.results if trial.method == PAPER]
    sanity = {str(trial.setting["sanity"]) for trial in trials}
    found = (records, len(sizes), set(sizes), ratio, sanity, {trial.epsilon for trial in trials})
    error = outcome.mean(method=PAPER, measure=RELATIVE, point=1.0)
    ours = (
        f"n = {records:,}, m = {len(sizes)}, {sizes[0]:,} values, k = {ratio}, "
        f"s = {', '.join(sanity)}, ε = 1: relative error {_digits(error)}"
    )
    return Finding(ours, found == (50_000, 8, {1_000}, "8", {"1"}, {"1"}))


def check_domains(outcome: Outcome) -> Finding:
    """List the domain sizes of the stand-ins."""
    printed = {
        "us-census": {96, 1_020, 511, 2},
        "acs-people": {95, 2, 31, 140, 586},
    }
    told, is_same = [], True
    for name in dict.fromkeys(trial.dataset for trial, _ in outcome.results):
        columns = outcome.study.datasets[name].schema.columns  # type: ignore[attr-defined]
        sizes = [column.axis().ordinary_leaves for column in columns]
        told.append(f"{name}: {' × '.join(f'{size:,}' for size in sizes)} = {prod(sizes):,} cells")
        is_same = is_same and set(sizes) == printed[name]
    return Finding("; ".join(told), is_same)


# --- Figures --------------------------------------------------------------------------------------


def check_ratio(outcome: Outcome) -> Finding:
    """The error falls up to k = 1 and hardly changes beyond; all records are compared."""
    means = outcome.means(method=ALL, measure=RELATIVE)
    below = [mean for ratio, mean in means.items() if ratio <= 1]
    beyond = [mean for ratio, mean in means.items() if ratio >= 1]
    falls = below[0] >= 1.5 * below[-1]
    is_flat = max(beyond) <= 1.5 * min(beyond)
    axis = " ".join(f"{ratio:g}" for ratio in means)
    lines = _lines(outcome, (ALL, PAPER), measure=RELATIVE)
    return Finding(f"{_told(lines)} for k = {axis}", falls and is_flat)


def check_correlations(outcome: Outcome) -> Finding:
    """Kendall has smaller errors than maximum likelihood at every number of columns."""
    lines = _lines(outcome, (KENDALL, MLE), measure=RELATIVE)
    return Finding(_told(lines), _is_first(lines[KENDALL], [lines[MLE]]))


def check_correlation_times(outcome: Outcome) -> Finding:
    """Kendall takes slightly longer than maximum likelihood."""
    lines = _lines(outcome, (KENDALL, MLE), measure=SECONDS)
    slower = all(lines[KENDALL][point] >= lines[MLE][point] for point in lines[MLE])
    return Finding(f"seconds: {_told(lines)}", slower)


def check_us(outcome: Outcome) -> Finding:
    """DPCopula is before all four others at every epsilon, and farther the smaller that is."""
    return _check_budgets(outcome, COMPARATORS)


def check_brazil(outcome: Outcome) -> Finding:
    """The same against the two best of them, which the figure shows."""
    return _check_budgets(outcome, ("psd", "p-hp"))


def _check_budgets(outcome: Outcome, shown: tuple[str, ...]) -> Finding:
    lines = _lines(outcome, (HYBRID, "dpcopula-hybrid", *COMPARATORS), measure=RELATIVE)
    own = lines[HYBRID]
    others = [lines[name] for name in shown]
    first, last = min(own), max(own)
    gaps = [min(other[point] / own[point] for other in others) for point in (first, last)]
    refused = [name for name in COMPARATORS if name not in lines]
    told = _told(lines) + "".join(f"; {name} cannot run" for name in refused)
    return Finding(told, _is_first(own, others) and gaps[0] >= gaps[1])


def check_partition_cost(outcome: Outcome) -> Finding:
    """The hybrid's cells cost little: it is about as good as DPCopula without them."""
    lines = _lines(outcome, (HYBRID, "dpcopula-hybrid", OURS), measure=RELATIVE)
    point = max(lines[OURS])
    best = min(lines[name][point] for name in (HYBRID, "dpcopula-hybrid"))
    return Finding(_told(lines), best <= _LEVEL * lines[OURS][point])


def check_relative_sizes(outcome: Outcome) -> Finding:
    """Relative errors fall as queries grow, but those of single cells are small; ours is first."""
    lines = _lines(outcome, (PAPER, "psd", "p-hp"), measure=RELATIVE)
    own = list(lines[PAPER].values())
    falls = own[-1] < own[-2] < max(own[1:-2])
    is_small = own[0] < max(own)
    others = [lines[name] for name in ("psd", "p-hp")]
    wide = [point for point in lines[PAPER] if point > min(lines[PAPER])]
    is_first = all(lines[PAPER][p] <= _LEVEL * other[p] for other in others for p in wide)
    return Finding(_told(lines), falls and is_small and is_first)


def check_absolute_sizes(outcome: Outcome) -> Finding:
    """Absolute errors rise as queries grow, and DPCopula's are the smallest of large queries."""
    lines = _lines(outcome, (PAPER, "psd", "p-hp"), measure=ABSOLUTE)
    own = list(lines[PAPER].values())
    rises = own[0] < own[1] < own[2] < own[3]
    last = max(lines[PAPER])
    is_first = all(lines[PAPER][last] <= lines[name][last] for name in ("psd", "p-hp"))
    return Finding(_told(lines), rises and is_first)


_SHAPES = {"simulated": "bell", "simulated-uniform": "even", "simulated-zipf": "Zipf"}


def _by_shape(outcome: Outcome, method: str) -> dict[str, dict[float, float]]:
    return {
        name: outcome.means(method=method, dataset=name, measure=BETWEEN_RECORDS)
        for name in _SHAPES
    }


def check_shapes(outcome: Outcome) -> Finding:
    """DPCopula is before PSD on all shapes, and by most where marginals are skewed."""
    own, ours, psd = (_by_shape(outcome, method) for method in (PAPER, OURS, "psd"))
    told = "; ".join(
        f"{shape}: DPCopula {_series(own[name])} (our default {_series(ours[name])}), "
        f"PSD {_series(psd[name])}"
        for name, shape in _SHAPES.items()
    )
    point = max(own["simulated"])
    gaps = {name: psd[name][point] - own[name][point] for name in _SHAPES}
    is_first = all(_is_first(own[name], [psd[name]]) for name in _SHAPES)
    return Finding(told, is_first and gaps["simulated-zipf"] == max(gaps.values()))


def check_smooth_shapes(outcome: Outcome) -> Finding:
    """DPCopula is better on even and Zipf marginals than on bell-shaped ones."""
    own = _by_shape(outcome, PAPER)
    told = "; ".join(f"{shape} {_series(own[name])}" for name, shape in _SHAPES.items())
    bell = own["simulated"]
    return Finding(told, all(_is_first(own[name], [bell]) for name in list(_SHAPES)[1:]))


def check_dimensions(outcome: Outcome) -> Finding:
    """DPCopula is before PSD at every number of columns, by either error."""
    found = {measure: _lines(outcome, (PAPER, "psd"), measure=measure) for measure in _ERRORS}
    told = "; ".join(f"{name}: {_told(found[measure])}" for measure, name in _ERRORS.items())
    return Finding(told, all(_is_first(lines[PAPER], [lines["psd"]]) for lines in found.values()))


_ERRORS = {RELATIVE: "relative", ABSOLUTE: "absolute"}


def check_growth(outcome: Outcome) -> Finding:
    """Two columns have the smallest errors, which grow from four columns to eight."""
    lines = _lines(outcome, (PAPER, "psd"), measure=RELATIVE)
    grows = all(
        means[2.0] == min(means.values()) and means[4.0] <= means[6.0] <= means[8.0]
        for means in lines.values()
    )
    return Finding(_told(lines), grows)


def check_time_by_rows(outcome: Outcome) -> Finding:
    """Time grows no faster than rows, and PSD takes the longest."""
    lines = _lines(outcome, (KENDALL, "psd", "privelet"), measure=SECONDS)
    few, many = min(outcome.points), max(outcome.points)
    is_linear = all(
        means[many] <= 1.5 * many / few * max(means[few], 0.01) for means in lines.values()
    )
    is_slowest = all(lines["psd"][many] >= lines[name][many] for name in (KENDALL, "privelet"))
    return Finding(f"seconds: {_told(lines)}", is_linear and is_slowest)


def check_time_by_columns(outcome: Outcome) -> Finding:
    """DPCopula takes longer than PSD."""
    lines = _lines(outcome, (KENDALL, "psd"), measure=SECONDS)
    slower = all(lines[KENDALL][point] >= lines["psd"][point] for point in lines["psd"])
    return Finding(f"seconds: {_told(lines)}", slower)


def check_quadratic(outcome: Outcome) -> Finding:
    """Time grows at most with the square of the columns."""
    lines = _lines(outcome, (KENDALL, MLE), measure=SECONDS)
    few, many = min(outcome.points), max(outcome.points)
    bound = 1.5 * (many / few) ** 2
    told = [f"{name} {means[many] / means[few]:.1f} times" for name, means in lines.items()]
    times = f"from {few:g} to {many:g} columns: {', '.join(told)} (square: {(many / few) ** 2:g})"
    return Finding(times, all(m[many] <= bound * max(m[few], 0.01) for m in lines.values()))


def check_convergence(outcome: Outcome) -> Finding:
    """The error vanishes as records grow: by at least three for ten times the records."""
    means = outcome.means(method=PAPER, measure=RELATIVE)
    values = list(means.values())
    falls = all(later < earlier for earlier, later in pairwise(values))
    axis = " ".join(f"{point:,.0f}" for point in means)
    return Finding(f"{_series(means)} for n = {axis}", falls and values[-1] < 0.1 * values[0])


def check_sample(outcome: Outcome) -> Finding:
    """The sample of the rule is hardly worse than all records."""
    lines = _lines(outcome, (PAPER, ALL), measure=RELATIVE)
    sampled, every = lines.values()
    return Finding(_told(lines), all(sampled[point] <= 1.25 * every[point] for point in every))


# --- Items ----------------------------------------------------------------------------------------

_RATIO = {"methods": (ALL, PAPER), "datasets": ("simulated",), "epsilons": ("1",)}
_RATIOS = ("0.0625", "0.125", "0.25", "0.5", "1", "2", "4", "8", "16", "32")
_FIVE = {"repeats": 5}
_CORRELATIONS = {"methods": (KENDALL, MLE), "values": ("2", "4", "6", "8")}
_MIXED = (HYBRID, "dpcopula-hybrid", OURS, *COMPARATORS)
_US = Run(
    "copula",
    "mixed",
    repeats=2,
    options={"datasets": ("us-census",), "methods": _MIXED},
    full={"repeats": 5, "epsilons": ("0.1", "0.25", "0.5", "0.75", "1")},
)
_BRAZIL = Run(
    "copula",
    "mixed",
    repeats=2,
    options={"datasets": ("acs-people",), "methods": _MIXED, "settings": {"sanity": 10}},
    full={"repeats": 5, "epsilons": ("0.1", "0.25", "0.5", "0.75", "1")},
)
_SIZES = Run(
    "copula",
    "query-size",
    repeats=2,
    options={
        "datasets": ("simulated",),
        "methods": (PAPER, OURS, "psd", "p-hp"),
        "epsilons": ("0.1",),
        "values": ("0.000001", "0.0001", "0.001", "0.01", "0.1", "0.5"),
        "settings": {"columns": 2},
    },
    full=_FIVE,
)
_MARGINALS = Run(
    "copula",
    "marginals",
    repeats=2,
    options={"methods": (PAPER, OURS, "psd"), "settings": {"queries": 300}},
    full={"repeats": 5, "epsilons": ("0.1", "0.25", "0.5", "1"), "settings": {}},
)
_DIMENSIONS = Run(
    "copula",
    "dimensions",
    repeats=4,
    options={
        "methods": (PAPER, OURS, "psd"),
        "values": ("2", "4", "6", "8"),
        "settings": {"sanity": 1, "queries": 300},
    },
    full={"repeats": 5, "settings": {"sanity": 1}},
)
_COLUMN_TIMES = Run(
    "copula",
    "time-columns",
    repeats=2,
    options={"methods": (KENDALL, MLE, "psd"), "values": ("2", "4", "6", "8")},
    full=_FIVE,
)
_MANY_ROWS = {"rows": 1_000_000}
_NO_IPUMS = (
    "The thesis's census tables (IPUMS) cannot be had; ours are stand-ins from Census-Income and "
    "from the American Community Survey."
)

ITEMS: tuple[Item, ...] = (
    Item(
        numbers=_li("Table 3.1"),
        title="Notation of chapter 3",
        printed="Names of marginals, copulas, correlations and budgets.",
        tested="tests/test_vocabulary.py",
        because="Nothing to run; our words are those of docs/concepts/glossary.md.",
    ),
    Item(
        numbers=_li("Figure 3.1"),
        title="One Gaussian copula, different marginals",
        printed="Joint distributions differ with their marginals; scatter plots of the "
        "copula do not.",
        tested="tests/datasets/test_gaussian_copula.py",
        because="docs/methods/dpcopula.md shows the picture; the test compares the ranks.",
    ),
    Item(
        numbers=_li("Figure 3.2"),
        title="Overview of DPCopula",
        printed="Marginals, correlations, sampling: a drawing of the steps.",
        tested="tests/methods/dpcopula/test_dpcopula.py",
        because="A drawing; the test replays the steps and their account.",
    ),
    Item(
        numbers=_li("Table 3.2"),
        title="Default settings",
        printed="n = 50,000, ε = 1, m = 8, s = 1, k = 8, 1,000 values.",
        run=Run(
            "copula",
            "epsilon",
            options={
                "datasets": ("simulated",),
                "methods": (PAPER,),
                "epsilons": ("1",),
                "settings": {"sanity": 1},
            },
            full=_FIVE,
        ),
        check=check_defaults,
        exact=True,
    ),
    Item(
        numbers=_li("Figure 3.3 (Table 3.3 in the text), US"),
        title="Domain sizes of the US table",
        printed="Age 96, income 1,020, occupation 511, gender 2.",
        run=_US,
        check=check_domains,
        exact=True,
        because=f"{_NO_IPUMS} It has 47 occupations.",
    ),
    Item(
        numbers=_li("Figure 3.3 (Table 3.3 in the text), Brazil"),
        title="Domain sizes of the Brazil table",
        printed="Age 95, gender 2, disability 2, marital status 2, years 31, education 140, hours "
        "95, income 586.",
        run=_BRAZIL,
        check=check_domains,
        exact=True,
        because=_NO_IPUMS,
    ),
    Item(
        numbers=_li("Figure 3.4"),
        title="Ratio of budgets, two columns",
        printed="The error falls up to k = 1, and does not change much beyond.",
        run=Run(
            "copula",
            "ratio",
            repeats=5,
            options={**_RATIO, "values": _RATIOS, "settings": {"columns": 2}},
            full={"repeats": 20},
        ),
        check=check_ratio,
    ),
    Item(
        numbers=_li("Figure 3.4, claim on other tables"),
        title="Ratio of budgets, eight columns",
        printed="The method is insensitive to k as long as it is greater than 1; k = 8 "
        "from here on.",
        run=Run(
            "copula",
            "ratio",
            repeats=3,
            options={**_RATIO, "values": _RATIOS[2:], "settings": {"queries": 500}},
            full={"repeats": 5, "settings": {}},
        ),
        check=check_ratio,
        because="Eight columns have 28 correlations, for which a ninth of the budget "
        "or less is too "
        "little; the default of dpcopula is k = 2 there.",
    ),
    Item(
        numbers=_li("Figure 3.5(a)"),
        title="Kendall against maximum likelihood, a million records",
        printed="DPCopula-Kendall has smaller errors at every number of columns.",
        run=Run(
            "copula",
            "dimensions",
            options={**_CORRELATIONS, "settings": {**_MANY_ROWS, "queries": 200}},
            full={"repeats": 5, "settings": _MANY_ROWS},
        ),
        check=check_correlations,
    ),
    Item(
        numbers=_li("Figure 3.5(b)"),
        title="Time of Kendall and maximum likelihood, a million records",
        printed="Kendall takes slightly longer; both are efficient.",
        run=Run(
            "copula",
            "time-columns",
            options={**_CORRELATIONS, "settings": _MANY_ROWS},
            full=_FIVE,
        ),
        check=check_correlation_times,
        because="Reversed: we count agreement from tables of at most 128 classes "
        "instead of sorting "
        "pairs, which is faster than the moments of blocks.",
    ),
    Item(
        numbers=_li("Section 3.2.2, size of the sample"),
        title="Kendall on a sample of 50 m (m − 1) / ε₂ records",
        printed="The sample is large enough that its error does not matter.",
        run=Run(
            "copula",
            "dimensions",
            repeats=2,
            options={
                "methods": (PAPER, ALL),
                "values": ("2", "4", "8"),
                "settings": {"queries": 500},
            },
            full={"repeats": 5, "settings": {}},
        ),
        check=check_sample,
        because="With few columns the sample holds a fiftieth of the records, whose "
        "own error shows.",
    ),
    Item(
        numbers=_li("Figure 3.6(a)"),
        title="US census, all comparators",
        printed="DPCopula (hybrid) has the smallest errors at every ε, and the gap "
        "grows as ε falls; "
        "PSD and P-HP are next.",
        run=_US,
        check=check_us,
        because="Our P-HP chooses cuts by a score of constant sensitivity and is "
        "before DPCopula on "
        "this table, most of whose wages are 0; EFPA needs smooth marginals. Before PSD, Privelet "
        "and Filter Priority our default hybrid is as printed.",
    ),
    Item(
        numbers=_li("Figure 3.6(b)"),
        title="Brazil census, eight columns, three of them binary",
        printed="DPCopula (hybrid) has the smallest errors at every ε, and the gap "
        "grows as ε falls.",
        run=_BRAZIL,
        check=check_brazil,
        because="The stand-in has a ninth of the records of the thesis's table.",
    ),
    Item(
        numbers=_li("Section 3.3.3, hybrid"),
        title="The noise of cells of small columns costs little",
        printed="Partitioning by small columns has little impact on DPCopula.",
        run=_US,
        check=check_partition_cost,
    ),
    Item(
        numbers=_li("Figure 3.7(a)"),
        title="Relative error by size of queries, two columns, ε = 0.1",
        printed="DPCopula before PSD and P-HP; errors fall as queries grow; single "
        "cells have small "
        "ones.",
        run=_SIZES,
        check=check_relative_sizes,
    ),
    Item(
        numbers=_li("Figure 3.7(b)"),
        title="Absolute error by size of queries, two columns, ε = 0.1",
        printed="Errors rise as queries grow; DPCopula before PSD and P-HP.",
        run=_SIZES,
        check=check_absolute_sizes,
    ),
    Item(
        numbers=_li("Figure 3.8"),
        title="Three shapes of marginals",
        printed="DPCopula is best on all, most of all before PSD where marginals are skewed.",
        run=_MARGINALS,
        check=check_shapes,
        because="At ε = 0.1 DPCopula as published is level with PSD on all shapes; at ε = 1 it is "
        "before it. Our default, which counts marginals by trees, is before PSD at both.",
    ),
    Item(
        numbers=_li("Figure 3.8, claim"),
        title="Even and Zipf marginals suit DPCopula better than bell-shaped ones",
        printed="Better on uniform and Zipf data, because EFPA suits uniform marginals.",
        run=_MARGINALS,
        check=check_smooth_shapes,
        because="At ε = 0.1 Zipf's marginals are the worst for EFPA, whose few coefficients cannot "
        "follow a steep start; at ε = 1 the three are level.",
    ),
    Item(
        numbers=_li("Figure 3.9"),
        title="Number of columns: DPCopula against PSD, relative and absolute",
        printed="DPCopula is before PSD from 2 to 8 columns.",
        run=_DIMENSIONS,
        check=check_dimensions,
        because="On two columns PSD is level with DPCopula as published, which counts agreement on "
        "a sample of some 900 records there; beyond, DPCopula is far ahead.",
    ),
    Item(
        numbers=_li("Figure 3.9, growth"),
        title="Errors grow with the number of columns",
        printed="Two columns have the smallest errors; from 4 to 8 columns errors grow.",
        run=_DIMENSIONS,
        check=check_growth,
        because="DPCopula's errors grow as printed. PSD's fall again at eight columns, "
        "where random "
        "boxes are nearly empty, and each number of columns has a matrix of its own here.",
    ),
    Item(
        numbers=_li("Figure 3.10(a)"),
        title="Time by rows, four columns",
        printed="All three are linear in n; PSD takes longer than DPCopula and Privelet+.",
        run=Run(
            "copula",
            "time",
            repeats=2,
            options={
                "datasets": ("us-census",),
                "methods": (KENDALL, "psd", "privelet"),
                "values": ("10000", "30000", "100000"),
            },
            full=_FIVE,
        ),
        check=check_time_by_rows,
        because="Privelet's time goes into the noise of nine million coefficients, whatever n is.",
    ),
    Item(
        numbers=_li("Figure 3.10(b)"),
        title="Time by columns, 50,000 records",
        printed="DPCopula takes longer than PSD, but 8 columns are acceptable.",
        run=_COLUMN_TIMES,
        check=check_time_by_columns,
        because="Reversed: agreement is counted from tables of classes, not by sorting pairs.",
    ),
    Item(
        numbers=_li("Section 3.2, complexity"),
        title="Time is at most quadratic in the columns",
        printed="O(n m²) and lower terms.",
        run=_COLUMN_TIMES,
        check=check_quadratic,
    ),
    Item(
        numbers=_li("Theorem 3.2.3, Lemmas 3.2.1 and 3.2.2 (convergence)"),
        title="DPCopula converges as records grow",
        printed="Marginals, taus and the joint distribution converge to the true ones.",
        run=Run(
            "copula",
            "rows",
            options={
                "methods": (PAPER,),
                "values": ("1000", "10000", "100000", "1000000"),
                "settings": {"columns": 4, "queries": 300},
            },
            full={"repeats": 5, "settings": {"columns": 4}},
        ),
        check=check_convergence,
    ),
    Item(
        numbers=_li("Theorem 3.1.3"),
        title="Convergence of copulas",
        printed="A joint distribution converges if its marginals and its copula do.",
        tested="tests/methods/dpcopula/test_convergence.py",
        because="Marginals and correlations of growing tables are compared with the true ones.",
    ),
    Item(
        numbers=_li("Theorems 3.1.1 and 3.1.2"),
        title="Sequential and parallel composition",
        printed="Epsilons of one table add up; of disjoint parts the largest counts.",
        tested="tests/privacy/test_budget.py, tests/test_replay.py",
    ),
    Item(
        numbers=_li("Theorem 3.2.1"),
        title="DPCopula-MLE (Algorithm 1) is ε-private",
        printed="ε₁ + ε₂ = ε.",
        tested="tests/methods/dpcopula/test_mle.py",
        because="False as printed: ranks of the whole table and consecutive blocks let one record "
        "change all blocks. Ours takes ranks from released marginals and draws blocks at random; "
        "both faults are twins that the tests catch.",
    ),
    Item(
        numbers=_li("Lemma 3.2.1"),
        title="Sensitivity of Kendall's tau",
        printed="4 / (n + 1) for one pair.",
        tested="tests/methods/dpcopula/test_kendall.py",
        because="Right for one pair and a known n. All pairs together move by 4 "
        "floor(m²/4) / (n + 1), "
        "half of what adding up pairs gives; n is private, so a noisy lower "
        "bound stands in for it.",
    ),
    Item(
        numbers=_li("Theorem 3.2.2"),
        title="DPCopula-Kendall (Algorithm 4) is ε-private",
        printed="ε = m ε₁ + C(m, 2) ε₂.",
        tested="tests/methods/dpcopula/test_correlations.py",
        because="False as printed: the scale of the noise is taken from the private n. It should "
        "read ε₁ + ε₂.",
    ),
    Item(
        numbers=_li("Theorem 3.2.4"),
        title="DPCopula-hybrid (Algorithm 6) is ε-private",
        printed="Partitions are disjoint, so they cost ε once.",
        tested="tests/methods/dpcopula/test_cell_copulas.py",
        because="Holds once empty cells get noise, too, and groups follow noisy counts.",
    ),
)
