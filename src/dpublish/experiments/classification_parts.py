"""What the comparison of classifiers varies: one part for each figure that it makes.

The figures are those of section 5 of the PrivPfC paper: error against epsilon (its figures 4
to 7), the size of the pool (8), the budget's shares (9), the sources of error (10), the number
of predictors (11) and of rows (12); the running times (13) come with each of them.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

from dpublish.core.method import Method
from dpublish.core.registry import make_method, method_settings
from dpublish.core.released import Release
from dpublish.data.schema import Schema
from dpublish.errors import InvalidParameter
from dpublish.experiments.experiment import Trial

NOISE_FREE = "noise-free"
EPSILONS = ("0.05", "0.1", "0.2", "0.5", "1")
METHODS = {
    "privpfc": "PrivPfC: picks one grid of cells in one step, then counts in it",
    "diffgen": "DiffGen: refines a grid step by step, then counts in it",
    "pph": "PPH: picks a few columns, then counts in all their cells",
    "privbayes": "PrivBayes: counts a few columns at a time, linked to a network",
    "diffpid3": "DiffPID3: a decision tree grown privately",
    "majority": "Majority: only tells which class is the most frequent",
}
UNPAID = {
    "privpfc-unpaid": "PrivPfC with the grid picked without noise (not private)",
    "diffgen-unpaid": "DiffGen with the steps chosen without noise (not private)",
    "privbayes-unpaid": "PrivBayes with the network chosen without noise (not private)",
}
# A choice that is paid for this well is made without noise; nobody may pay so much in earnest.
_LAVISH = Fraction(10_000)


@dataclass(frozen=True)
class Part:
    """One figure: what is on its axis, and what is run for it.

    Attributes:
        title: What the page is called.
        across: What is on the axis.
        reading: What the axis means, for somebody new to it.
        methods: The methods compared.
        epsilons: The budgets; each is a line of its own, unless they are the axis.
        key: Which setting of a trial is on the axis; None for epsilon.
        values: The values of that setting.
        datasets: The datasets; empty for all.
        moves_references: Whether the setting matters without privacy, too.
    """

    title: str
    across: str
    reading: str
    methods: tuple[str, ...] = tuple(METHODS)
    epsilons: tuple[str, ...] = EPSILONS
    key: str | None = None
    values: tuple[int, ...] = ()
    datasets: tuple[str, ...] = ()
    moves_references: bool = False
    is_log: bool = True


_CHOOSERS = ("privpfc", "diffgen", "privbayes")
_PUBLISHERS = ("privpfc", "diffgen", "pph", "privbayes")
PARTS = {
    "epsilon": Part(
        title="How well can one learn from what was published privately?",
        across="privacy budget ε (left: more private)",
        reading="From left to right privacy gets weaker, so there is less noise, and errors "
        "usually fall.",
    ),
    "pool": Part(
        title="How many grids should PrivPfC choose from?",
        across="grids to choose from (Θ)",
        reading="PrivPfC picks one of many candidate grids; from left to right there are more.",
        methods=("privpfc",),
        epsilons=("0.05", "0.5"),
        key="pool",
        values=(100, 1_000, 10_000, 100_000),
    ),
    "shares": Part(
        title="How should PrivPfC share out its budget?",
        across="percent of ε for choosing the grid",
        reading="3 percent of ε buy the number of rows.  From left to right more of the rest is "
        "spent on choosing the grid, and less on the counts in it.",
        methods=("privpfc",),
        epsilons=("0.05", "0.2", "1"),
        key="selection_percent",
        values=(10, 20, 37, 50, 67),
        is_log=False,
    ),
    "dimensions": Part(
        title="What do further columns cost?",
        across="number of columns to predict from",
        reading="The first columns of the table are used, in the order of its public description. "
        "Further columns hold more to learn from, and more to get lost in.",
        methods=_PUBLISHERS,
        epsilons=("0.5",),
        key="predictors",
        values=(3, 5, 10, 15, 20, 30, 40),
        moves_references=True,
        is_log=False,
    ),
    "rows": Part(
        title="What do further rows bring?",
        across="number of rows",
        reading="Noise does not grow with the number of rows, so the more there are, the less it "
        "matters.",
        methods=_PUBLISHERS,
        epsilons=("0.1",),
        key="rows",
        values=(2_000, 5_000, 10_000, 20_000, 50_000, 100_000),
        datasets=("simulated",),
        moves_references=True,
    ),
    "errors": Part(
        title="Where does the error come from: from what is chosen, or from the noise in counts?",
        across="privacy budget ε (left: more private)",
        reading="Some lines are not private at all: there the structure (grid, steps or network) "
        "was chosen without noise, and only the counts are noisy.  The gap to the private line of "
        "the same method is what the private choice costs.",
        methods=tuple(name for kind in _CHOOSERS for name in (kind, f"{kind}-unpaid")),
    ),
}
TITLES = METHODS | UNPAID


@dataclass(frozen=True)
class Run:
    """A method and what it is given to spend."""

    method: Method[Any]
    epsilon: Fraction


def make_run(trial: Trial, schema: Schema, target: str) -> Run:
    """Build the method of a trial."""
    method = trial.method.removesuffix("-unpaid")
    epsilon = Fraction(trial.epsilon)
    settings: dict[str, Any] = {"target": target}
    if "pool" in trial.setting:
        settings["pool"] = int(trial.setting["pool"])
    if "selection_percent" in trial.setting:
        settings |= _shares(int(trial.setting["selection_percent"]))
    if "predictors" in trial.setting:
        names = predictors_of(schema, target)[: int(trial.setting["predictors"])]
        settings |= _limited_to(method, names, target)
    if method == "privpfc" and trial.setting.get("part") == "errors":
        settings["rounds"] = 0  # the grid alone, so that there is one choice to look at
    if method != trial.method:
        share, epsilon = _unpaid(method, epsilon)
        settings |= share
    return Run(make_method(method, settings), epsilon)


def paid_twin(trial: Trial, release: Release) -> Trial | None:
    """Give the private twin of an unpaid trial in which nothing was left to choose.

    Then the money for the choice goes to the counts, and they would hardly be noisy.
    """
    amounts = [share for purpose, share in release.receipt.shares if "counts" in purpose]
    if not trial.method.endswith("-unpaid") or max(amounts) <= Fraction(trial.epsilon):
        return None
    return replace(trial, method=trial.method.removesuffix("-unpaid"))


def predictors_of(schema: Schema, target: str) -> Sequence[str]:
    """List the columns from which the class is predicted."""
    return [name for name in schema.names if name != target]


def _shares(percent: int) -> dict[str, Any]:
    return {
        "size_share": Fraction(3, 100),
        "selection_share": Fraction(percent, 100),
        "counts_share": Fraction(97 - percent, 100),
    }


def _limited_to(method: str, names: Sequence[str], target: str) -> dict[str, Any]:
    limited = {"predictors": tuple(names), "columns": (*names, target)}
    known = [setting.name for setting in method_settings(method)]
    return {name: columns for name, columns in limited.items() if name in known}


def _unpaid(method: str, epsilon: Fraction) -> tuple[dict[str, Any], Fraction]:
    """Give the choice of the structure as much as it can use, and the rest what it had.

    So the very same method runs, its receipt says what was spent, and nobody can mistake it
    for a release at the epsilon of its private twin.
    """
    if method == "privpfc":
        whole = epsilon * Fraction(63, 100) + _LAVISH
        return {
            "size_share": epsilon * Fraction(3, 100) / whole,
            "selection_share": _LAVISH / whole,
            "counts_share": epsilon * Fraction(60, 100) / whole,
        }, whole
    if method == "diffgen":
        whole = epsilon / 2 + _LAVISH
        return {"tree_share": _LAVISH / whole}, whole
    if method == "privbayes":
        after_size = epsilon * Fraction(97, 100) * Fraction(7, 10) + _LAVISH
        share = {"structure_share": _LAVISH / after_size}
        return share, after_size / Fraction(97, 100)
    raise InvalidParameter(f"{method} has no variant with an unpaid structure")
