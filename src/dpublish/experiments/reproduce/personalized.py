"""Items of chapter 5 of "Differentially private data release and analytics": own epsilons.

US and Brazil cannot be had; `adult` and `census` stand in for them, with columns of their own
that resemble the thesis's four and eight.  Its normal budgets N(0.1, 1) are truncated to 0.01
to 1, which have a mean of 0.47 (the thesis: approximately 0.5).
"""

from collections.abc import Callable

from dpublish.experiments.personalized import CURVE, ERROR, LEFT, LEFT_BOUND, WRONG
from dpublish.experiments.personalized_population import DISTRIBUTIONS
from dpublish.experiments.reproduce.item import Finding, Item, Outcome, Run

DOCUMENT = "li-thesis"
UNIFORM, NORMAL = "uniform-0.1", "truncated-normal"
MEANS = {UNIFORM: 0.055, NORMAL: 0.468}
STAND_INS = ("adult", "census")
SCAN = (0, 1, 3, 5, 7, 10, 13, 16, 19)
_LEVELS = 20
_COMPARABLE = 1.15


def _counts(dataset: str, columns: int) -> Run:
    return Run(
        "personalized",
        figure="count",
        repeats=6,
        options={
            "datasets": (dataset,),
            "methods": ("minimum", "sampling", "partitioning", "partitioning-privacy"),
            "values": SCAN,
            "settings": {
                "columns": columns,
                "rows": 30_000,
                "preferences": f"{UNIFORM},{NORMAL}",
            },
        },
        full={
            "repeats": 50,
            "values": tuple(range(_LEVELS)),
            "settings": {
                "columns": columns,
                "rows": 100_000 if columns == 4 else 30_000,
                "preferences": f"{UNIFORM},{NORMAL}",
            },
        },
    )


def _fits(model: str, dataset: str, *, repeats: int, rows: int, columns: int | None = None) -> Run:
    columns_too = {} if columns is None else {"columns": columns}
    asked = {"preferences": f"{UNIFORM},{NORMAL}", **columns_too}
    return Run(
        "personalized",
        figure=model,
        repeats=repeats,
        options={
            "datasets": (dataset,),
            "methods": ("minimum", "sampling", "partitioning", "partitioning-privacy"),
            "values": (0, 5, 10, 15, 19),
            "settings": {"rows": rows, **asked},
        },
        full={"repeats": 10, "settings": {"rows": 30_000, **asked}},
    )


_COUNTS = {dataset: _counts(dataset, 4) for dataset in STAND_INS}
_EIGHT = _counts("adult", 8)
_ONE_OR_TWO = Run(
    "personalized",
    figure="count",
    repeats=4,
    options={
        "datasets": ("adult",),
        "methods": ("minimum", "sampling"),
        "values": SCAN,
        "settings": {"preferences": f"{UNIFORM},{NORMAL}"},
    },
    full={"repeats": 50, "values": tuple(range(_LEVELS))},
)
_SVM = {dataset: _fits("svm", dataset, repeats=8, rows=10_000, columns=8) for dataset in STAND_INS}
_LOGISTIC = _fits("logistic", "adult", repeats=6, rows=20_000)
_ROUNDS = Run(
    "personalized",
    figure="rounds",
    repeats=2,
    options={
        "datasets": ("simulated",),
        "methods": ("t-round", "t-round-privacy"),
        "settings": {"preferences": f"{UNIFORM},{NORMAL}"},
    },
    full={"repeats": 10},
)


def _line(
    outcome: Outcome, method: str, measure: str, who: str, inner: str = ""
) -> dict[float, float]:
    return outcome.means(method=method, measure=measure, variant=(who, inner))


def _level(who: str, point: float) -> float:
    return point * float(DISTRIBUTIONS[who].levels(_LEVELS)[-1])


def _mean_point(line: dict[float, float], who: str) -> float:
    """Find the threshold of a scan that is nearest to the mean of what people accept."""
    return min(line, key=lambda point: abs(_level(who, point) - MEANS[who]))


def check_counts(who: str) -> Callable[[Outcome], Finding]:
    """Look whether utility-based groups are as good as the best threshold, and its ends."""

    def check(outcome: Outcome) -> Finding:
        scan = _line(outcome, "sampling", ERROR, who)
        best, first = min(scan.values()), scan[min(scan)]
        useful = min(_line(outcome, "partitioning", ERROR, who).values())
        private = min(_line(outcome, "partitioning-privacy", ERROR, who).values())
        least = min(_line(outcome, "minimum", ERROR, who).values())
        said = (
            f"sampling {best:.5f} at its best threshold and {first:.5f} at the smallest, minimum "
            f"{least:.5f}; utility-based {useful:.5f}, privacy-aware {private:.5f}"
        )
        holds = useful <= _COMPARABLE * best and 0.6 < least / first < 1.6 and first > 1.5 * best
        return Finding(said, holds)

    return check


def check_best_threshold(who: str) -> Callable[[Outcome], Finding]:
    """Look whether sampling is best at the mean of what people accept, or level with it."""

    def check(outcome: Outcome) -> Finding:
        scan = _line(outcome, "sampling", ERROR, who)
        best, mean = min(scan, key=lambda point: scan[point]), _mean_point(scan, who)
        said = (
            f"best at {_level(who, best):.3g} (error {scan[best]:.5f}); {scan[mean]:.5f} at the "
            f"mean, {MEANS[who]:.2g}"
        )
        return Finding(said, scan[mean] <= 1.1 * scan[best])

    return check


def check_below_mean(outcome: Outcome) -> Finding:
    """Look whether sampling gets much worse below the mean."""
    said, holds = [], True
    for who in (UNIFORM, NORMAL):
        scan = _line(outcome, "sampling", ERROR, who)
        first, mean = min(scan), _mean_point(scan, who)
        holds &= scan[first] > 1.5 * scan[mean]
        said.append(f"{who}: {scan[first]:.5f} at the smallest, {scan[mean]:.5f} at the mean")
    return Finding("; ".join(said), holds)


def check_svm(who: str) -> Callable[[Outcome], Finding]:
    """Look whether partitioning has a larger area under the curve than any threshold."""

    def check(outcome: Outcome) -> Finding:
        scan = _line(outcome, "sampling", CURVE, who, "model")
        best = max(scan, key=lambda point: scan[point])
        useful = max(_line(outcome, "partitioning", CURVE, who, "model").values())
        private = max(_line(outcome, "partitioning-privacy", CURVE, who, "model").values())
        least = max(_line(outcome, "minimum", CURVE, who, "model").values())
        said = (
            f"AUC of sampling {scan[best]:.3f} at its best threshold ({_level(who, best):.3g}) and "
            f"{min(scan.values()):.3f} at its worst, minimum {least:.3f}; utility-based "
            f"{useful:.3f}, privacy-aware {private:.3f}"
        )
        return Finding(said, useful > scan[best] and private > scan[best])

    return check


def check_svm_threshold(outcome: Outcome) -> Finding:
    """Look whether sampling's best threshold for SVM is near the mean with normal budgets."""
    scan = _line(outcome, "sampling", CURVE, NORMAL, "model")
    best, mean = max(scan, key=lambda point: scan[point]), _mean_point(scan, NORMAL)
    said = (
        f"best at {_level(NORMAL, best):.3g} (AUC {scan[best]:.3f}), {scan[mean]:.3f} at "
        f"{_level(NORMAL, mean):.3g}"
    )
    return Finding(said, scan[mean] >= scan[best] - 0.003)


def check_logistic(who: str) -> Callable[[Outcome], Finding]:
    """Look whether the largest threshold is best, and partitioning as good."""

    def check(outcome: Outcome) -> Finding:
        scan = _line(outcome, "sampling", WRONG, who, "model")
        best, last = min(scan, key=lambda point: scan[point]), max(scan)
        useful = min(_line(outcome, "partitioning", WRONG, who, "model").values())
        private = min(_line(outcome, "partitioning-privacy", WRONG, who, "model").values())
        said = (
            f"sampling {100 * scan[best]:.1f} % wrong at its best threshold "
            f"({_level(who, best):.3g}), {100 * scan[last]:.1f} % at the largest; utility-based "
            f"{100 * useful:.1f} %, privacy-aware {100 * private:.1f} %"
        )
        near = scan[last] <= scan[best] + 0.003
        return Finding(said, near and useful <= scan[best] + 0.005)

    return check


def check_rounds(outcome: Outcome) -> Finding:
    """Look whether what is left is below its bound, and falls."""
    said, holds = [], True
    for who in (UNIFORM, NORMAL):
        left = _line(outcome, "t-round-privacy", LEFT, who)
        bound = _line(outcome, "t-round-privacy", LEFT_BOUND, who)
        holds &= all(left[point] <= bound[point] for point in left) and left[3.0] <= left[1.0]
        said.append(f"{who}: " + ", ".join(f"{value:.4f}" for value in left.values()))
    return Finding("left of the squared budgets after 1, 2, 3 rounds: " + "; ".join(said), holds)


_TABLES = "The tables are stand-ins, and the errors of few repeats vary by a tenth."
_MEAN = (
    "The best threshold depends on how many people satisfy a query: drawing people adds the "
    "variance q(1 − q) of a share q, which a low threshold avoids, and noise is what a high one "
    "avoids. So the best threshold is below the mean for queries about few columns, and at or "
    "above it for queries about many."
)


def _item(where: str, title: str, printed: str, **rest: object) -> Item:
    return Item({DOCUMENT: where}, title, printed, **rest)  # type: ignore[arg-type]


_SAME = (
    "Utility-based partitioning performs almost as sampling at its best threshold; sampling with "
    "the smallest threshold is as bad as minimum."
)
_SUPERIOR = "Both partitioning mechanisms are superior to sampling."

ITEMS: tuple[Item, ...] = (
    _item(
        "Figure 5.1",
        "Eight records with their own budgets",
        "Privacy-aware partitioning groups neighbors.",
        tested="tests/methods/personalized/groups/test_optimizer.py",
        because="The printed program discards people; the groups are those of a brute-force "
        "search.",
    ),
    _item(
        "Definitions 5.2.1 to 5.2.4",
        "Partitioning is personalized differentially private",
        "No record pays more than its own budget.",
        tested="tests/methods/personalized/test_partitioning.py, "
        "tests/methods/personalized/test_notions.py",
    ),
    _item(
        "Equation (5.2.5)",
        "The utility of empirical risk minimization has a term 1/n",
        "U(n, ε) = a/(nε)² + b/n + c.",
        tested="tests/experiments/test_personalized.py",
        because="b is a setting of the experiment (`--set person_variance=`, `--figure risk`).",
    ),
    _item(
        "Section 5.2.3",
        "What T rounds leave over is bounded",
        "The squares of what is left are at most (n/(n − 1 + k²))^T of those of the budgets.",
        tested="tests/methods/personalized/groups/test_plan.py",
    ),
    _item(
        "Section 5.2.3",
        "What T rounds leave over is used up soon",
        "What is left falls exponentially with the rounds.",
        run=_ROUNDS,
        check=check_rounds,
    ),
    *(
        _item(
            where,
            f"Counts over 4 columns, {country}, {words} budgets",
            _SAME,
            run=_COUNTS[dataset],
            check=check_counts(who),
            because=_TABLES,
        )
        for where, country, words, dataset, who in (
            ("Figure 5.2", "US", "normal", "adult", NORMAL),
            ("Figure 5.3", "US", "uniform", "adult", UNIFORM),
            ("Figure 5.4", "Brazil", "normal", "census", NORMAL),
            ("Figure 5.5", "Brazil", "uniform", "census", UNIFORM),
        )
    ),
    _item(
        "Figures 5.2, 5.3",
        "Sampling gets much worse below the mean budget",
        "Accuracy deteriorates sharply when the threshold is smaller than the mean.",
        run=_COUNTS["adult"],
        check=check_below_mean,
    ),
    *(
        _item(
            where,
            f"The best threshold of sampling is the mean budget: {words}",
            "Optimal when the threshold attains the mean of all budgets.",
            run=run,
            check=check_best_threshold(who),
            because=_MEAN,
        )
        for where, words, run, who in (
            ("Figure 5.2", "4 columns, US, normal budgets", _COUNTS["adult"], NORMAL),
            ("Figure 5.3", "4 columns, US, uniform budgets", _COUNTS["adult"], UNIFORM),
            ("Figure 5.4", "4 columns, Brazil, normal budgets", _COUNTS["census"], NORMAL),
            ("Figure 5.5", "4 columns, Brazil, uniform budgets", _COUNTS["census"], UNIFORM),
            ("Section 5.3.2.1", "8 columns, US, normal budgets", _EIGHT, NORMAL),
            ("Section 5.3.2.1", "8 columns, US, uniform budgets", _EIGHT, UNIFORM),
            ("Section 5.3.2.1", "one or two columns, US, normal budgets", _ONE_OR_TWO, NORMAL),
            ("Section 5.3.2.1", "one or two columns, US, uniform budgets", _ONE_OR_TWO, UNIFORM),
        )
    ),
    *(
        _item(
            where,
            f"Support vector machine, {country}, {words} budgets",
            _SUPERIOR,
            run=_SVM[dataset],
            check=check_svm(who),
            because="Utility-based groups are level with sampling at its best threshold, which no "
            "one knows beforehand, or a little above it; with budgets below 0.1 on `census` (6 % "
            "in one class) they are below it. Privacy-aware groups are below it everywhere.",
        )
        for where, country, words, dataset, who in (
            ("Figure 5.6", "US", "normal", "adult", NORMAL),
            ("Figure 5.7", "US", "uniform", "adult", UNIFORM),
            ("Figure 5.8", "Brazil", "normal", "census", NORMAL),
            ("Figure 5.9", "Brazil", "uniform", "census", UNIFORM),
        )
    ),
    _item(
        "Figure 5.6",
        "The best threshold of sampling for a support vector machine, normal budgets",
        "Around 0.5, approximately the average budget.",
        run=_SVM["adult"],
        check=check_svm_threshold,
        because="From a quarter of the largest budget on, all thresholds are level within the "
        "noise of the repeats. " + _TABLES,
    ),
    *(
        _item(
            where,
            f"Logistic regression, {words} budgets",
            "Sampling is best at the largest budget; partitioning is comparable with that.",
            run=_LOGISTIC,
            check=check_logistic(who),
            because=_TABLES,
        )
        for where, words, who in (
            ("Figure 5.10", "normal", NORMAL),
            ("Figure 5.11", "uniform", UNIFORM),
        )
    ),
    _item(
        "Section 5.3.1",
        "US (370,000 records) and Brazil (190,000), 13 attributes",
        "Census extracts of IPUMS.",
        because="The extracts may not be passed on; adult (45,222 records) and census (99,762) "
        "stand in for them.",
    ),
)
