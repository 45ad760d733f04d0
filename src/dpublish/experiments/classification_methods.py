"""What is compared on classification: our methods, each as its paper has it, and unpaid twins.

A name maps to a registered method and to settings.  Names that end in `-paper` (and `diffgen-10`
and `diffpc45`) are methods as they were published, but for the mechanisms: choices are made and
noise is drawn by this package, with its own proofs, so that all of them are private.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from fractions import Fraction
from typing import Any, NamedTuple

from dpublish.core.method import Method
from dpublish.core.registry import CATALOG, make_method, method_settings
from dpublish.core.released import Release
from dpublish.data.schema import Schema
from dpublish.errors import InvalidParameter
from dpublish.experiments.trials import FIGURE, Trial
from dpublish.methods.histogram.released import LabeledHistogramRelease
from dpublish.methods.privpfc.released import PrivPfCRelease

METHODS = {
    "privpfc": "PrivPfC: picks one grid of cells in one step, then counts in it",
    "diffgen": "DiffGen: refines a grid step by step, then counts in it",
    "pph": "PPH: picks a few columns, then counts in all their cells",
    "privbayes": "PrivBayes: counts a few columns at a time, linked to a network",
    "diffpid3": "DiffPID3: a decision tree grown privately",
    "majority": "Majority: only publishes which class is the most frequent",
}
UNPAID = {
    "privpfc-unpaid": "PrivPfC with the grid picked without noise (not private)",
    "diffgen-unpaid": "DiffGen with the steps chosen without noise (not private)",
    "privbayes-unpaid": "PrivBayes with the network chosen without noise (not private)",
}
MODELS = {
    "model": "Model: our default linear model, chosen from public facts",
    "privgene": "PrivGene: weights bred by private choices",
    "privlocal": "PrivLocal: weights improved step by step by private choices",
    "private-erm": "PrivateERM: noise in the objective, which is then minimized",
    "output-perturbation": "Output perturbation: noise in the best weights",
    "functional": "Functional mechanism: noise in the objective's coefficients",
    "private-svm": "PrivateSVM: noise in the weights of the best support vector machine",
    "gupt": "GUPT: weights averaged over the fits of blocks of records",
}
_PRINTED_SHARES = {
    "size_share": Fraction(3, 100),
    "selection_share": Fraction(10, 100),
    "counts_share": Fraction(87, 100),
}
_PRINTED_GRID = {"rounds": 0, "cells_per_record": Fraction(1, 5)}
# So small that no degree is ever refused: the degree is fixed, whatever the noise.
_ANY_NOISE = Fraction(1, 10**6)


@dataclass(frozen=True)
class Variant:
    """A registered method with settings of its own.

    Attributes:
        title: How it is described.
        method: The method.
        settings: Its settings beside those of a trial.
        by_counts: Whether predictions and rows come from a grid's noisy counts alone.
    """

    title: str
    method: str
    settings: Mapping[str, Any] = field(default_factory=dict)
    by_counts: bool = False


VARIANTS = {
    "privpfc-paper": Variant(
        "PrivPfC as printed: the grid alone, at most 0.2 N ε cells, predictions by its counts",
        "privpfc",
        _PRINTED_GRID,
        by_counts=True,
    ),
    "privpfc-10-87": Variant(
        "PrivPfC with 10 % of ε for the grid and 87 % for its counts", "privpfc", _PRINTED_SHARES
    ),
    "privpfc-paper-10-87": Variant(
        "PrivPfC as printed, with 10 % of ε for the grid and 87 % for its counts",
        "privpfc",
        _PRINTED_GRID | _PRINTED_SHARES,
        by_counts=True,
    ),
    "diffgen-10": Variant(
        "DiffGen as printed for Adult and Bank: 10 steps", "diffgen", {"steps": 10}
    ),
    "privbayes-paper": Variant(
        "PrivBayes as printed for Adult and Bank: three parents each, whatever the noise",
        "privbayes",
        {"theta": _ANY_NOISE, "max_degree": 3},
    ),
    "diffpc45": Variant(
        "DiffP-C4.5 as published: one cut of every number first, then the column; pruned",
        "diffpid3",
        {"cuts": "staged", "prune": True},
    ),
    "diffpc45-entropy": Variant(
        "DiffP-C4.5 with C4.5's own score, the information gain, instead of the majority's records",
        "diffpid3",
        {"cuts": "staged", "prune": True, "score": "entropy", "max_records": 100_000},
    ),
    "privgene-plain": Variant(
        "PrivGene with the plain exponential mechanism and ten parents",
        "privgene",
        {"choice": "plain"},
    ),
    "privgene-paper": Variant(
        "PrivGene with the paper's exponential mechanism: noise for the generation, ten parents",
        "privgene",
        {"choice": "candidates"},
    ),
    "functional-paper": Variant(
        "Functional mechanism with the noise of the paper's bound",
        "functional",
        {"calibration": "paper"},
    ),
    "private-erm-paper": Variant(
        "PrivateERM with noise of any direction and a fixed ridge of 0.01 for each record",
        "private-erm",
        {"noise": "spherical", "regularization": Fraction(1, 100)},
    ),
    "privlocal-single": Variant(
        "PrivLocal as printed: one weight moves in a round", "privlocal", {"moves": "single"}
    ),
}
TITLES = METHODS | UNPAID | MODELS | {name: one.title for name, one in VARIANTS.items()}
KNOBS = {
    "steps": "steps of DiffGen (h)",
    "degree": "most parents of PrivBayes (k)",
    "depth": "most splits on a path of DiffPID3",
    "pool": "grids that PrivPfC chooses from (Θ)",
    "refinements": "further columns that refine PrivPfC's grid; 0 for the grid alone",
    "selection_percent": "percent of ε for PrivPfC's choice of a grid",
    "predictors": "how many columns to predict from",
    "order": "which columns come first: schema, or chi2 for those most associated with the class",
    "rows": "how many rows to learn from",
}
_KNOB_OF = {
    "steps": ("diffgen", "steps"),
    "degree": ("privbayes", "max_degree"),
    "depth": ("diffpid3", "depth"),
    "pool": ("privpfc", "pool"),
    "refinements": ("privpfc", "rounds"),
}
# A choice with so much budget is made without noise; no one may spend so much in earnest.
_LAVISH = Fraction(10_000)


class Run(NamedTuple):
    """A method and its budget; `by_counts` as of a variant."""

    method: Method[Any]
    epsilon: Fraction
    by_counts: bool = False


def method_of(name: str) -> str:
    """Return the registered method of a competitor.

    >>> method_of("diffpc45"), method_of("privpfc-unpaid"), method_of("pph")
    ('diffpid3', 'privpfc', 'pph')
    """
    return VARIANTS[name].method if name in VARIANTS else name.removesuffix("-unpaid")


def known_competitors() -> list[str]:
    """List the competitors whose methods this version has."""
    return [name for name in TITLES if method_of(name) in CATALOG]


def fits(name: str, model: str | None) -> bool:
    """Say whether a competitor can be run where linear models are of the given kind."""
    types = {setting.name: setting.type_name for setting in method_settings(method_of(name))}
    return model is None or "model" not in types or model in types["model"].split(" | ")


def is_moved(name: str, key: str | None) -> bool:
    """Say whether the setting on the axis is one of a competitor's own, or of all trials."""
    owner = {"selection_percent": "privpfc", **{knob: own for knob, (own, _) in _KNOB_OF.items()}}
    return key not in owner or owner[key] == method_of(name)


def make_run(
    trial: Trial,
    schema: Schema,
    target: str,
    *,
    predictors: Sequence[str] = (),
    model: str | None = None,
) -> Run:
    """Build the method of a trial.

    Args:
        trial: The trial.
        schema: The schema of its table.
        target: The class column.
        predictors: The columns to predict from; all, if none is named.
        model: The kind of linear models, for methods that fit one.
    """
    method = method_of(trial.method)
    variant = VARIANTS.get(trial.method)
    settings: dict[str, Any] = {"target": target, **(variant.settings if variant else {})}
    settings |= _knobs(method, trial)
    known = [setting.name for setting in method_settings(method)]
    if predictors:
        limited = {"predictors": tuple(predictors), "columns": (*predictors, target)}
        settings |= {name: columns for name, columns in limited.items() if name in known}
    if model is not None and "model" in known:
        settings["model"] = model
    epsilon = Fraction(trial.epsilon)
    if trial.method in UNPAID:
        share, epsilon = _unpaid(method, epsilon)
        settings |= share
    made = make_method(method, settings)
    return Run(made, epsilon, variant is not None and variant.by_counts)


def _knobs(method: str, trial: Trial) -> dict[str, Any]:
    """Collect what the figure or the user sets of a method."""
    found = {
        name: int(trial.setting[knob])
        for knob, (owner, name) in _KNOB_OF.items()
        if owner == method and knob in trial.setting
    }
    if method != "privpfc":
        return found
    if trial.setting.get(FIGURE) == "errors":
        found.setdefault("rounds", 0)  # the grid alone, so that there is one choice to look at
    if "selection_percent" in trial.setting:
        return found | _shares(int(trial.setting["selection_percent"]))
    return found


def _shares(percent: int) -> dict[str, Any]:
    return {
        "size_share": Fraction(3, 100),
        "selection_share": Fraction(percent, 100),
        "counts_share": Fraction(97 - percent, 100),
    }


def _unpaid(method: str, epsilon: Fraction) -> tuple[dict[str, Any], Fraction]:
    """Set the budget of the structure as high as it can use, and leave the rest as it was.

    So the very same method runs, its receipt states what was spent, and no one can mistake it
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


def paid_twin(trial: Trial, release: Release) -> Trial | None:
    """Return the private twin of an unpaid trial in which nothing was left to choose.

    Then the budget of the choice goes to the counts, and they would hardly be noisy.
    """
    amounts = [share for purpose, share in release.receipt.shares if "counts" in purpose]
    if trial.method not in UNPAID or max(amounts) <= Fraction(trial.epsilon):
        return None
    return replace(trial, method=trial.method.removesuffix("-unpaid"))


def counts_alone(release: PrivPfCRelease) -> LabeledHistogramRelease:
    """Return a grid without its scores: predictions and rows come from its noisy counts."""
    kept = {one.name: getattr(release, one.name) for one in fields(LabeledHistogramRelease)}
    return LabeledHistogramRelease(**kept)
