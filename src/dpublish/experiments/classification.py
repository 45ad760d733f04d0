"""How often are classifiers wrong that learn from private releases?

Section 5 of D. Su, J. Cao, N. Li, M. Lyu, "PrivPfC: differentially private data publication
for classification" (VLDB Journal, 2018), on the public tables that can be had: stratified
folds, each measured by what was released from the other nine.  Its figures are error against
epsilon, all methods on one page (4 to 7), the size of the pool (8), the budget's shares (9), the
sources of error (10), the number of predictors (11) and of rows (12), and the running times (13).
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
import pyarrow as pa

from dpublish.core.prediction import UNKNOWN, encode_rows
from dpublish.core.released import Release
from dpublish.data.schema import Schema
from dpublish.data.sources import open_table
from dpublish.datasets.benchmarks import ALL_BENCHMARKS, BENCHMARKS, Benchmark
from dpublish.errors import InvalidParameter, require_known
from dpublish.evaluation.classification import (
    DIRECT,
    MAJORITY,
    evaluate_release,
    evaluate_true_rows,
    gives_rows,
    require_classifiers,
)
from dpublish.evaluation.classification import TITLES as CLASSIFIER_TITLES
from dpublish.evaluation.sklearn_adapter import CLASSIFIERS, SVM_ROWS
from dpublish.experiments.classification_methods import (
    KNOBS,
    METHODS,
    TITLES,
    UNPAID,
    counts_alone,
    fits,
    is_moved,
    known_competitors,
    make_run,
    paid_twin,
)
from dpublish.experiments.folds import FOLDS, Folds, Split, fold_words, own_benchmark, require_folds
from dpublish.experiments.own_table import OwnTable
from dpublish.experiments.study import (
    EPSILON_AXIS,
    NOISE_FREE,
    Dataset,
    Figure,
    Request,
    RunTrial,
    Setting,
    Study,
)
from dpublish.experiments.trials import FIGURE, REFUSED, SECONDS, Cell, Cells, Key, Result, Trial
from dpublish.methods.privpfc.released import PrivPfCRelease
from dpublish.plots.comparisons import Layout, Line, Panel
from dpublish.plots.style import plain_number
from dpublish.privacy.budget import Budget
from dpublish.report.html import NO_PLOT

NAME = "classification"
REFERENCES = {NOISE_FREE: "No privacy: the same classifier trained on the true rows"}
_MAJORITY_LINE = "No learning: always the majority class of the true rows"
EPSILONS = ("0.05", "0.1", "0.2", "0.5", "1")
EITHER = "tree or model"
MEASURE_TITLES = CLASSIFIER_TITLES | {
    EITHER: "a decision tree on synthetic rows, or the method's own model",
    SECONDS: "seconds for one release",
}
_USUAL = tuple(BENCHMARKS)
_NEAR_THE_PAPER = ("simulated", "adult", "bank", "acs", "privbayes-acs")
_CHOOSERS = ("privpfc", "diffgen", "privbayes")
_PUBLISHERS = ("privpfc", "diffgen", "pph", "privbayes")
_WITH_PRINTED = (
    "privpfc",
    "privpfc-paper",
    "diffgen",
    "diffgen-10",
    "pph",
    "privbayes",
    "privbayes-paper",
)
_SEARCHES = ("privlocal", "privlocal-single", "privgene", "privgene-plain", "privgene-paper")
_OTHER_MODELS = (
    *("model", "private-erm", "private-erm-paper", "output-perturbation"),
    *("functional", "functional-paper", "private-svm"),
)


@dataclass(frozen=True)
class OnePage(Figure):
    """A figure with a line for every method, whatever it publishes.

    A method that publishes rows is judged by a classifier trained on them, any other by its own
    predictions.

    Attributes:
        classifier: That classifier; None if only time is measured.
        model: The kind of linear models that are fitted.
    """

    epsilons: tuple[str, ...] = EPSILONS
    datasets: tuple[str, ...] = _NEAR_THE_PAPER
    classifier: str | None = "tree"
    model: str | None = None


_figure = partial(
    Figure,
    methods=tuple(METHODS),
    epsilons=EPSILONS,
    datasets=_USUAL,
    measures=(DIRECT, *CLASSIFIERS, MAJORITY),
)
_one_page = partial(OnePage, across=EPSILON_AXIS)
_ONE_LINE_EACH = (
    "From left to right privacy gets weaker. Every method has one line: one that publishes rows "
    "is judged by a classifier trained on them, one that publishes a classifier by that."
)
FIGURES: dict[str, Figure] = {
    "epsilon": _figure(
        title="How well can one learn from what was published privately?",
        across=EPSILON_AXIS,
        reading="From left to right privacy gets weaker, so there is less noise, and errors "
        "usually fall.",
    ),
    "tree": _one_page(
        title="Decision trees: rows to train on, or a tree grown privately?",
        reading=_ONE_LINE_EACH,
        methods=(*_WITH_PRINTED, "diffpid3", "diffpc45", "diffpc45-entropy"),
        measures=("tree", MAJORITY),
    ),
    "svm": _one_page(
        title="Support vector machines: rows to train on, or a model fitted privately?",
        reading=_ONE_LINE_EACH,
        methods=(*_WITH_PRINTED, *_SEARCHES, *_OTHER_MODELS),
        measures=("svm", MAJORITY),
        classifier="svm",
        model="svm",
    ),
    "logistic": _one_page(
        title="Logistic regression: rows to train on, or a model fitted privately?",
        reading=_ONE_LINE_EACH,
        methods=(*_WITH_PRINTED, *_SEARCHES, *_OTHER_MODELS),
        measures=("logistic", MAJORITY),
        classifier="logistic",
        model="logistic",
    ),
    "multiclass": _one_page(
        title="More than two classes: rows to train on, or a model fitted privately?",
        reading=_ONE_LINE_EACH + " Here rows train a decision tree, and models are logistic "
        "regressions, one for each class.",
        methods=(*_WITH_PRINTED, "diffpid3", *_SEARCHES, *_OTHER_MODELS),
        datasets=(
            "adult-marital",
            "bank-poutcome",
            "census-school",
            "census-employment",
            "simulated-multiclass",
        ),
        measures=(EITHER, MAJORITY),
        model="logistic",
    ),
    "pool": _figure(
        title="How many grids should PrivPfC choose from?",
        across="grids to choose from (Θ)",
        reading="PrivPfC picks one of many candidate grids; from left to right there are more.",
        methods=("privpfc",),
        epsilons=("0.05", "0.5"),
        key="pool",
        values=(100, 1_000, 10_000, 200_000),
    ),
    "shares": _figure(
        title="How should PrivPfC share out its budget?",
        across="percent of ε for choosing the grid",
        reading="The number of rows takes 3 percent of ε.  From left to right more of the rest is "
        "spent on choosing the grid, and less on the counts in it.  DiffGen, which always spends "
        "half of ε on its choices, is drawn as a level line.",
        methods=("privpfc", "diffgen"),
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
        values=(5_000, 10_000, 20_000, 50_000, 100_000, 200_000),
        datasets=("simulated-binary", "simulated-multiclass"),
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
    "time": _one_page(
        title="How long does a release take?",
        reading="From left to right privacy gets weaker; some methods then publish more, and take "
        "longer. Models are logistic regressions.",
        methods=(*_PUBLISHERS, "diffpid3", "privlocal", "privgene", "private-erm", "functional"),
        epsilons=("0.05", "0.5"),
        datasets=("simulated", "adult", "census"),
        measures=(SECONDS,),
        classifier=None,
        model="logistic",
    ),
}


def chi_squared_order(rows: pa.Table, schema: Schema, target: str) -> list[str]:
    """Sort the predictors by how strongly they go with the class (chi-squared), on true rows.

    NOT PRIVATE: for drawing a published figure again on public data, and nothing else.
    """
    codes = encode_rows(rows, schema, schema.names)
    classes = codes.pop(target)
    found = {}
    for name, values in codes.items():
        known = (classes != UNKNOWN) & (values != UNKNOWN)
        seen = np.zeros((schema[name].size, schema[target].size))
        np.add.at(seen, (values[known], classes[known]), 1)
        expected = np.outer(seen.sum(axis=1), seen.sum(axis=0)) / max(seen.sum(), 1)
        apart = (seen - expected)[expected > 0] ** 2 / expected[expected > 0]
        found[name] = float(apart.sum())
    return sorted(found, key=lambda name: -found[name])


def predictors_of(schema: Schema, target: str) -> list[str]:
    """List the columns from which the class is predicted."""
    return [name for name in schema.names if name != target]


class ClassificationRunner(Folds):
    """Publishes from nine folds, and measures classifiers on the tenth."""

    def __init__(
        self, folder: Path | None, benchmarks: Mapping[str, Benchmark] = ALL_BENCHMARKS
    ) -> None:
        super().__init__(folder, benchmarks)
        self.sort_columns = lru_cache(maxsize=8)(self._sort_columns)

    def run_trial(self, trial: Trial) -> dict[str, float]:
        """Release from nine folds, measure on the tenth; errors by classifier, and seconds."""
        given = trial.setting
        split = self.split(trial.dataset, int(given["fold"]), int(given.get("rows", 0)))
        figure = FIGURES[str(given[FIGURE])]
        if trial.method == NOISE_FREE:
            return self._without_privacy(trial, split, figure)
        begin = perf_counter()
        try:
            release = self._publish(trial, split, figure)
        except InvalidParameter:
            return {REFUSED: 1.0}
        seconds = {SECONDS: round(perf_counter() - begin, 3)}
        classifiers = str(given["classifiers"]).split(",") if given["classifiers"] else []
        if isinstance(figure, OnePage):
            if not gives_rows(release):
                classifiers = [DIRECT] if classifiers else []
            wrong = [*_measure(release, split, classifiers, trial.seed).values()]
            return seconds | ({figure.measures[0]: wrong[0]} if wrong else {})
        return seconds | _measure(release, split, classifiers, trial.seed)

    def _without_privacy(self, trial: Trial, split: Split, figure: Figure) -> dict[str, float]:
        scores = evaluate_true_rows(
            split.train.select([*self._columns(trial, split), split.target]),
            split.held_out,
            schema=split.schema,
            target=split.target,
            classifiers=str(trial.setting["classifiers"]).split(","),
            seed=trial.seed,
        )
        wrong = {score.classifier: score.misclassification for score in scores}
        if isinstance(figure, OnePage) and figure.classifier is not None:
            wrong[figure.measures[0]] = wrong.pop(figure.classifier)
        return wrong

    def _publish(self, trial: Trial, split: Split, figure: Figure) -> Release:
        columns = self._columns(trial, split)
        is_limited = len(columns) < len(split.schema.names) - 1
        run = make_run(
            trial,
            split.schema,
            split.target,
            predictors=columns if is_limited else (),
            model=figure.model if isinstance(figure, OnePage) else None,
        )
        table = open_table(split.train, split.schema)
        release = run.method.release(table, budget=Budget.seeded(run.epsilon), rng=trial.rng())
        twin = paid_twin(trial, release)
        if twin is not None:
            return self._publish(twin, split, figure)
        is_grid = run.by_counts and isinstance(release, PrivPfCRelease)
        return counts_alone(release) if is_grid else release

    def _columns(self, trial: Trial, split: Split) -> list[str]:
        """List the predictors of a trial, in the order in which further ones are added."""
        names = predictors_of(split.schema, split.target)
        if trial.setting.get("order") == "chi2":
            names = self.sort_columns(trial.dataset)
        return names[: int(trial.setting.get("predictors", len(names)))]

    def _sort_columns(self, dataset: str) -> list[str]:
        schema, rows, _ = self.load(dataset)
        return chi_squared_order(rows, schema, self._benchmarks[dataset].target)


def _measure(
    release: Release, split: Split, classifiers: Sequence[str], seed: int
) -> dict[str, float]:
    if not classifiers:
        return {}
    scores = evaluate_release(
        release, split.held_out, target=split.target, classifiers=classifiers, seed=seed
    )
    return {score.classifier: score.misclassification for score in scores}


class ClassificationStudy(Study[Figure]):
    """Classifiers that learn from private releases."""

    name = NAME
    options = (*Study.options, "classifiers", "folds")
    knobs = KNOBS
    figures = FIGURES
    datasets: Mapping[str, Benchmark] = ALL_BENCHMARKS
    references = REFERENCES
    headers = ("dataset", "classifier", "method")
    table_caption = "Misclassification: mean ± standard deviation over folds and repeats."
    no_plot = f"{NO_PLOT} Or none of the methods can serve the classifier."

    def known_methods(self, figure: Figure) -> Collection[str]:
        """List the methods that this version has, and that fit the models of the figure."""
        model = figure.model if isinstance(figure, OnePage) else None
        return [name for name in known_competitors() if fits(name, model)]

    def usual_methods(self, figure: Figure) -> Collection[str]:
        """List the figure's methods, less those that do not fit such models."""
        known = self.known_methods(figure)
        return [name for name in figure.methods if name in known]

    def known_datasets(self, figure: Figure) -> Collection[str]:
        """List all benchmarks: each can be used for each figure."""
        return self.datasets

    def own_dataset(self, table: OwnTable) -> Dataset:
        """Make a benchmark of a user's own table."""
        return own_benchmark(table)

    def trials(
        self,
        asked: Request[Figure],
        *,
        classifiers: Sequence[str] | None = None,
        folds: int = FOLDS,
        **_: Any,
    ) -> Iterator[Trial]:
        """List fold by fold the references, then every method at every point."""
        chosen = _classifiers(asked.figure, classifiers)
        require_folds(folds)
        require_known("order", str(asked.figure.fixed.get("order", "schema")), ("schema", "chi2"))
        for benchmark in (self.datasets[name] for name in asked.figure.datasets):
            axis = _axis(asked.figure, benchmark, asked.folder)
            for seed in range(asked.repeats):
                for fold in range(folds):
                    setting = asked.setting(benchmark.name, classifiers=",".join(chosen), fold=fold)
                    for trial in _round(asked.figure, axis, seed):
                        yield replace(trial, setting={**setting, **trial.setting})

    def runner(self, folder: Path | None) -> RunTrial:
        """Build what runs a trial on the benchmarks of a data folder."""
        return ClassificationRunner(folder, self.datasets).run_trial

    def summarize(self, results: Sequence[Result]) -> Cells:
        """Average as usual; a method that cannot run has a line for what was measured of others."""
        measured = {name for _, found in results for name in found}
        return {
            key: line
            for key, line in super().summarize(results).items()
            if line or (key.measure in measured and key.measure != MAJORITY)
        }

    def names(self, key: Key) -> list[str]:
        """Name a line by dataset, classifier and method."""
        if key.measure == MAJORITY:
            return [key.dataset, "none", "majority class"]
        return [key.dataset, key.measure, key.short_name]

    def layout(self, results: Sequence[Result], dataset: str | None) -> Layout:
        """Draw the classifiers of one dataset to one scale."""
        usual = super().layout(results, dataset)
        is_timed = SECONDS in self.figure_of(results).measures
        return usual._replace(
            up="seconds" if is_timed else "misclassification",
            has_one_scale=dataset is not None,
            width=3.1,
            height=2.9,
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
        return MEASURE_TITLES[measure].partition(" (")[0]

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
        return f"{dataset}: {self.datasets[dataset].predicts}"

    def about(self, dataset: str, results: Sequence[Result]) -> str:
        """Describe a benchmark."""
        benchmark = self.datasets[dataset]
        size = f"{benchmark.records:,} rows"
        if self.figure_of(results).key == "rows":
            size = "as many rows to learn from as the axis says, and the same ones to measure on"
        return f"{benchmark.source}: {size}; the class is {benchmark.target}."

    def findings(self, results: Sequence[Result]) -> list[str]:
        """Name the private method and the classifier with the fewest errors."""
        figure, cells = self.figure_of(results), self.summarize(results)
        if SECONDS in figure.measures:
            return []
        private = {key: line for key, line in cells.items() if key.method not in UNPAID}
        said = []
        for point in self.ends(results):
            best = self.best_at(private, point)
            if best is not None:
                said.append(
                    f"At {figure.axis} = {plain_number(point)} the fewest errors are made with "
                    f"{best.short_name}, by {MEASURE_TITLES[best.measure]}: "
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
        ]
        named = [CLASSIFIER_TITLES[name] for name in classifiers if name]
        if named:
            said.append("Classifiers: " + "; ".join(named) + ".")
        if "svm" in classifiers:
            said.append(
                f"The support vector machine is trained on at most {SVM_ROWS:,} rows, drawn."
            )
        return said


def _classifiers(figure: Figure, given: Sequence[str] | None) -> Sequence[str]:
    if isinstance(figure, OnePage):
        if given is not None:
            raise InvalidParameter("this figure has its classifier; choose another figure instead")
        return () if figure.classifier is None else (figure.classifier,)
    chosen = (DIRECT, "tree") if given is None else given
    require_classifiers(chosen)
    return chosen


def _round(figure: Figure, axis: Sequence[Setting], seed: int) -> Iterator[Trial]:
    """List one round of trials: the references first, then every method at every point.

    A method that the axis does not move is run once, and drawn as a level line.
    """
    still: list[Setting] = [{}]
    if seed == 0 and SECONDS not in figure.measures:
        for moved in axis if figure.moves_references else still:
            yield Trial(NAME, NOISE_FREE, "none", 0, moved)
    for moved in axis:
        for epsilon in figure.epsilons:
            for method in figure.methods:
                if is_moved(method, figure.key):
                    yield Trial(NAME, method, epsilon, seed, moved)
                elif moved == axis[0]:
                    yield Trial(NAME, method, epsilon, seed, {})


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
