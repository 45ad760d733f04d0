"""How often are classifiers wrong that learn from private releases?

Section 5 of D. Su, J. Cao, N. Li, M. Lyu, "PrivPfC: differentially private data publication
for classification" (VLDB Journal, 2018), on the public tables that can be had: stratified
folds, each measured by what was released from the other nine.  Its figures are error against
epsilon (4 to 7), the size of the pool (8), the budget's shares (9), the sources of error (10),
the number of predictors (11) and of rows (12); the running times (13) come with each of them.
"""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from pathlib import Path
from time import perf_counter
from typing import Any

import pyarrow as pa

from dpublish.core.method import Method
from dpublish.core.registry import CATALOG, make_method, method_settings
from dpublish.core.released import Release
from dpublish.data.schema import Schema
from dpublish.data.sources import open_table
from dpublish.datasets.benchmarks import BENCHMARKS, Benchmark
from dpublish.errors import InvalidParameter
from dpublish.evaluation.classification import (
    DIRECT,
    MAJORITY,
    evaluate_release,
    evaluate_true_rows,
    require_classifiers,
)
from dpublish.evaluation.classification import TITLES as CLASSIFIER_TITLES
from dpublish.evaluation.sklearn_adapter import CLASSIFIERS, SVM_ROWS
from dpublish.experiments.folds import FOLDS, Folds, Split, fold_words, require_folds
from dpublish.experiments.study import (
    EPSILON_AXIS,
    NOISE_FREE,
    Figure,
    Request,
    RunTrial,
    Setting,
    Study,
)
from dpublish.experiments.trials import FIGURE, SECONDS, Cell, Cells, Key, Result, Trial
from dpublish.plots.comparisons import Layout, Line, Panel
from dpublish.plots.style import plain_number
from dpublish.privacy.budget import Budget
from dpublish.report.html import NO_PLOT

NAME = "classification"
REFERENCES = {NOISE_FREE: "No privacy: the same classifier trained on the true rows"}
_MAJORITY_LINE = "No learning: always the majority class of the true rows"
EPSILONS = ("0.05", "0.1", "0.2", "0.5", "1")
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
# A choice with so much budget is made without noise; no one may spend so much in earnest.
_LAVISH = Fraction(10_000)
TITLES = METHODS | UNPAID
_CHOOSERS = ("privpfc", "diffgen", "privbayes")
_PUBLISHERS = ("privpfc", "diffgen", "pph", "privbayes")
_figure = partial(
    Figure,
    methods=tuple(METHODS),
    epsilons=EPSILONS,
    measures=(DIRECT, *CLASSIFIERS, MAJORITY),
)
FIGURES = {
    "epsilon": _figure(
        title="How well can one learn from what was published privately?",
        across=EPSILON_AXIS,
        reading="From left to right privacy gets weaker, so there is less noise, and errors "
        "usually fall.",
    ),
    "pool": _figure(
        title="How many grids should PrivPfC choose from?",
        across="grids to choose from (Θ)",
        reading="PrivPfC picks one of many candidate grids; from left to right there are more.",
        methods=("privpfc",),
        epsilons=("0.05", "0.5"),
        key="pool",
        values=(100, 1_000, 10_000, 100_000),
    ),
    "shares": _figure(
        title="How should PrivPfC share out its budget?",
        across="percent of ε for choosing the grid",
        reading="The number of rows takes 3 percent of ε.  From left to right more of the rest is "
        "spent on choosing the grid, and less on the counts in it.",
        methods=("privpfc",),
        epsilons=("0.05", "0.2", "1"),
        key="selection_percent",
        values=(10, 20, 37, 50, 67),
        is_log=False,
    ),
    "dimensions": _figure(
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
    "rows": _figure(
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
    "errors": _figure(
        title="Where does the error come from: from what is chosen, or from the noise in counts?",
        across=EPSILON_AXIS,
        reading="Some lines are not private at all: there the structure (grid, steps or network) "
        "was chosen without noise, and only the counts are noisy.  The gap to the private line of "
        "the same method is what the private choice costs.",
        methods=tuple(name for kind in _CHOOSERS for name in (kind, f"{kind}-unpaid")),
    ),
}


@dataclass(frozen=True)
class Run:
    """A method and its budget."""

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
    if method == "privpfc" and trial.setting.get(FIGURE) == "errors":
        settings["rounds"] = 0  # the grid alone, so that there is one choice to look at
    if method != trial.method:
        share, epsilon = _unpaid(method, epsilon)
        settings |= share
    return Run(make_method(method, settings), epsilon)


def paid_twin(trial: Trial, release: Release) -> Trial | None:
    """Return the private twin of an unpaid trial in which nothing was left to choose.

    Then the budget of the choice goes to the counts, and they would hardly be noisy.
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


class ClassificationRunner(Folds):
    """Publishes from nine folds, and measures classifiers on the tenth."""

    def run_trial(self, trial: Trial) -> dict[str, float]:
        """Release from nine folds, measure on the tenth; errors by classifier, and seconds."""
        given = trial.setting
        split = self.split(trial.dataset, int(given["fold"]), int(given.get("rows", 0)))
        classifiers = str(given["classifiers"]).split(",")
        if trial.method == NOISE_FREE:
            scores = evaluate_true_rows(
                _columns(split, trial),
                split.held_out,
                schema=split.schema,
                target=split.target,
                classifiers=classifiers,
                seed=trial.seed,
            )
            return {score.classifier: score.misclassification for score in scores}
        begin = perf_counter()
        release = _release(trial, split)
        seconds = perf_counter() - begin
        scores = evaluate_release(
            release,
            split.held_out,
            target=split.target,
            classifiers=classifiers,
            seed=trial.seed,
        )
        wrong = {score.classifier: score.misclassification for score in scores}
        return wrong | {SECONDS: round(seconds, 3)}


def _release(trial: Trial, split: Split) -> Release:
    run = make_run(trial, split.schema, split.target)
    table = open_table(split.train, split.schema)
    release = run.method.release(table, budget=Budget.seeded(run.epsilon), rng=trial.rng())
    twin = paid_twin(trial, release)
    return release if twin is None else _release(twin, split)


def _columns(split: Split, trial: Trial) -> pa.Table:
    """Leave out the columns that the trial does without."""
    if "predictors" not in trial.setting:
        return split.train
    names = predictors_of(split.schema, split.target)[: int(trial.setting["predictors"])]
    return split.train.select([*names, split.target])


class ClassificationStudy(Study[Figure]):
    """Classifiers that learn from private releases."""

    name = NAME
    options = (*Study.options, "classifiers", "folds")
    figures = FIGURES
    datasets = BENCHMARKS
    references = REFERENCES
    headers = ("dataset", "classifier", "method")
    table_caption = "Misclassification: mean ± standard deviation over folds and repeats."
    no_plot = f"{NO_PLOT} Or none of the methods can serve the classifier."

    def known_methods(self, figure: Figure) -> Collection[str]:
        """List the methods that this version has."""
        return [name for name in TITLES if name.removesuffix("-unpaid") in CATALOG]

    def known_datasets(self, figure: Figure) -> Collection[str]:
        """List all benchmarks: each can be used for each figure."""
        return BENCHMARKS

    def trials(
        self,
        asked: Request[Figure],
        *,
        classifiers: Sequence[str] = (DIRECT, "tree"),
        folds: int = FOLDS,
        **_: Any,
    ) -> Iterator[Trial]:
        """List fold by fold the references, then every method at every point."""
        require_classifiers(classifiers)
        require_folds(folds)
        for benchmark in (BENCHMARKS[name] for name in asked.figure.datasets):
            axis = _axis(asked.figure, benchmark, asked.folder)
            for seed in range(asked.repeats):
                for fold in range(folds):
                    setting = asked.setting(
                        benchmark.name, classifiers=",".join(classifiers), fold=fold
                    )
                    for trial in _round(asked.figure, axis, seed):
                        yield replace(trial, setting={**setting, **trial.setting})

    def runner(self, folder: Path | None) -> RunTrial:
        """Build what runs a trial on the benchmarks of a data folder."""
        return ClassificationRunner(folder).run_trial

    def names(self, key: Key) -> list[str]:
        """Name a line by dataset, classifier and method."""
        if key.measure == MAJORITY:
            return [key.dataset, "none", "majority class"]
        return [key.dataset, key.measure, key.short_name]

    def layout(self, results: Sequence[Result], dataset: str | None) -> Layout:
        """Draw the classifiers of one dataset to one scale."""
        usual = super().layout(results, dataset)
        return usual._replace(
            up="misclassification", has_one_scale=dataset is not None, width=3.1, height=2.9
        )

    def panels(self, results: Sequence[Result], dataset: str | None) -> list[Panel]:
        """Draw a panel for each classifier that one of the methods serves."""
        cells = self.summarize(results)
        panels = []
        for group in self.groups(cells):
            first = next(iter(group))
            methods = {key: line for key, line in group.items() if key.method != NOISE_FREE}
            if methods and dataset in (None, first.dataset):
                lines = [self.line(key, line) for key, line in methods.items()]
                lines += self._references(cells, first)
                panels.append(Panel(self.panel_title(first, dataset), lines))
        return panels

    def measure_title(self, measure: str) -> str:
        """Name a classifier."""
        return CLASSIFIER_TITLES[measure].partition(" (")[0]

    def label(self, key: Key) -> str:
        """Label a line by what its method does."""
        return f"{TITLES[key.method]}, ε = {key.epsilon}" if key.epsilon else TITLES[key.method]

    def _references(self, cells: Cells, drawn: Key) -> list[Line]:
        """Draw what no method should be worse than, and what none can be expected to beat."""
        free = {
            key.measure: line
            for key, line in cells.items()
            if (key.dataset, key.method) == (drawn.dataset, NOISE_FREE)
        }
        always = free.pop(MAJORITY, None)
        lines = [] if always is None else [_gray(_MAJORITY_LINE, always)]
        if drawn.measure in free:
            lines.append(_gray(REFERENCES[NOISE_FREE], free[drawn.measure]))
        elif free:  # a release's own classifier has no twin without privacy; any other will do
            other, line = next(iter(free.items()))
            words = f"No privacy: {self.measure_title(other)} trained on the true rows"
            lines.append(_gray(words, line))
        return lines

    def explanation(self, figure: Figure) -> list[str]:
        """Explain the task and the measure."""
        return [
            "A table of people is published in a form that keeps each of them private. Others "
            "learn from what was published how to predict one property of a person (the class) "
            "from the others, and try it on people who were not in the table. How often is the "
            "answer wrong?",
            "Misclassification is the part of those people whose class is predicted wrongly: 0.15 "
            "means 15 of 100. Lower is better.",
        ]

    def reading_points(self, figure: Figure) -> list[str]:
        """List what panels and lines mean."""
        return [
            "Each panel is one way to predict: by the release itself (where it can), or by an "
            "ordinary classifier trained on synthetic rows drawn from the release.",
            "Each colored line is a method of publishing; the band around it is one standard "
            "deviation over all runs.",
            "The upper gray line is what one gets without learning anything, by always predicting "
            "the majority class. A method that is not below it is worth nothing.",
            "The lower gray line is the same classifier trained on the true rows, without "
            "any privacy. The gap to it is the price of privacy.",
        ]

    def heading(self, dataset: str) -> str:
        """Write what is predicted."""
        return f"{dataset}: {BENCHMARKS[dataset].predicts}"

    def about(self, dataset: str, results: Sequence[Result]) -> str:
        """Describe a benchmark."""
        benchmark = BENCHMARKS[dataset]
        size = f"{benchmark.records:,} rows"
        if self.figure_of(results).key == "rows":
            size = "as many rows to learn from as the axis says, and the same ones to measure on"
        return f"{benchmark.source}: {size}; the class is {benchmark.target}."

    def findings(self, results: Sequence[Result]) -> list[str]:
        """Name the private method and the classifier with the fewest errors."""
        figure, cells = self.figure_of(results), self.summarize(results)
        private = {key: line for key, line in cells.items() if key.method in METHODS}
        said = []
        for point in self.ends(results):
            best = self.best_at(private, point)
            if best is not None:
                said.append(
                    f"At {figure.axis} = {plain_number(point)} the fewest errors are made with "
                    f"{best.short_name}, by {CLASSIFIER_TITLES[best.measure]}: "
                    f"{100 * cells[best][point].mean:.1f} of 100 are predicted wrongly"
                    f"{_beside(cells, point)}."
                )
        return said

    def method_points(self, used: Collection[str]) -> list[str]:
        """Describe the methods."""
        return [f"{title}." for name, title in TITLES.items() if name in used]

    def how_it_was_run(self, results: Sequence[Result]) -> list[str]:
        """Describe folds and classifiers."""
        classifiers = str(results[0].trial.setting["classifiers"]).split(",")
        said = [
            fold_words(results, "the release is made from") + " Rows that are measured on are "
            "never released from.",
            "Classifiers: " + "; ".join(CLASSIFIER_TITLES[name] for name in classifiers) + ".",
        ]
        if "svm" in classifiers:
            said.append(
                f"The support vector machine is trained on at most {SVM_ROWS:,} rows, drawn."
            )
        return said


def _round(figure: Figure, axis: Sequence[Setting], seed: int) -> Iterator[Trial]:
    """List one round of trials: the references first, then every method at every point."""
    if seed == 0:
        for moved in axis if figure.moves_references else [{}]:
            yield Trial(NAME, NOISE_FREE, "none", 0, moved)
    for moved in axis:
        for epsilon in figure.epsilons:
            for method in figure.methods:
                yield Trial(NAME, method, epsilon, seed, moved)


def _axis(figure: Figure, benchmark: Benchmark, folder: Path | None) -> list[Setting]:
    """List the points on the axis; where the dataset ends before them, its end is the last."""
    if figure.key is None:
        return [{}]
    values = [int(value) for value in figure.values]
    limit = max(values)
    if figure.key == "predictors":
        limit = len(predictors_of(benchmark.schema(folder), benchmark.target))
    elif figure.key == "rows" and benchmark.make is None:
        limit = benchmark.records * (FOLDS - 1) // FOLDS
    return [{figure.key: value} for value in sorted({min(value, limit) for value in values})]


def _gray(label: str, cells: dict[float, Cell]) -> Line:
    means = [cell.mean for cell in cells.values()]
    deviations = [cell.deviation for cell in cells.values()]
    return Line(label, list(cells), means, deviations, is_ours=False)


def _beside(cells: Cells, point: float) -> str:
    """Write how often one is wrong without learning, and without privacy."""
    known = {
        key.measure: line[point].mean
        for key, line in cells.items()
        if key.method == NOISE_FREE and point in line
    }
    always = known.pop(MAJORITY, None)
    said = "" if always is None else f"; always predicting the majority class, {100 * always:.1f}"
    return said + (f"; without privacy, {100 * min(known.values()):.1f} at best" if known else "")


STUDY = ClassificationStudy()
