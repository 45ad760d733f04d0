"""How good are linear models that were fitted privately?

The comparisons of J. Zhang, X. Xiao, Y. Yang, Z. Zhang, M. Winslett, "PrivGene: Differentially
Private Model Fitting Using Genetic Algorithms" (SIGMOD 2013), and those of D. Su, J. Cao, N. Li,
M. Lyu, "PrivPfC" (VLDB Journal, 2018), that output a classifier: stratified folds, each measured
by what was fitted on the other nine.  The figures are those of the PrivGene paper (2 to 7):
quality against epsilon for logistic regression and support vector machines, the constant that
sets the number of rounds, the enhanced exponential mechanism against the plain one, by budget and
round by round, k-means, and the time it all takes; and linear regression beside them.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import product
from math import ceil
from pathlib import Path
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from dpublish.core.method import Method
from dpublish.core.prediction import encode_rows
from dpublish.core.registry import CATALOG, make_method, method_settings
from dpublish.core.released import Release
from dpublish.data.sources import open_table
from dpublish.datasets.benchmarks import ALL_BENCHMARKS, Benchmark
from dpublish.errors import InvalidParameter, require_known
from dpublish.evaluation.classification import DIRECT, HeldOut, evaluate_release
from dpublish.evaluation.features import encode_classes
from dpublish.evaluation.metrics.classification import mean_area_under_curve, misclassification
from dpublish.evaluation.sklearn_adapter import majority_class
from dpublish.experiments import kmeans
from dpublish.experiments.classification import EPSILONS
from dpublish.experiments.folds import (
    FOLDS,
    Folds,
    Split,
    fold_words,
    own_benchmark,
    require_folds,
)
from dpublish.experiments.models_baselines import fit_plain_model
from dpublish.experiments.models_regression import (
    mean_error,
    number_column,
    plain_error,
    private_error,
)
from dpublish.experiments.models_search import Step, trace_search
from dpublish.experiments.own_table import OwnTable
from dpublish.experiments.study import (
    EPSILON_AXIS,
    NOISE_FREE,
    Figure,
    Plan,
    Request,
    RunTrial,
    Setting,
    Study,
)
from dpublish.experiments.trials import SECONDS, Cell, Cells, Key, Result, Trial, means_by
from dpublish.methods.linear_models.privgene import PrivGene
from dpublish.methods.linear_models.released import LinearModelRelease
from dpublish.methods.privpfc.released import PrivPfCRelease
from dpublish.plots.comparisons import Layout
from dpublish.privacy.budget import Budget
from dpublish.report.section import Listing
from dpublish.types import FloatArray

NAME = "model-fitting"
MOST_FREQUENT = "majority class"
REFERENCES = {
    NOISE_FREE: "No privacy: the same model fitted to the true rows",
    MOST_FREQUENT: "No learning: always the majority class, or the mean, of the true rows",
}
WRONG, CURVE = "misclassification", "auc"
RATIO, LARGEST_LOSS, RANGE, DISTANCE = "ratio", "largest loss", "range", "error"
MEASURES = {
    WRONG: "misclassification (lower is better)",
    CURVE: "area under the curve (higher is better)",
    SECONDS: "seconds for one fit (lower is better)",
    RATIO: "misclassification, as a ratio to that of c = 0.0005 (lower is better)",
    LARGEST_LOSS: "largest loss of a record, Δ1 (noise of the plain mechanism)",
    RANGE: "largest gap between two candidates, Δ2 (noise of the enhanced mechanism)",
    DISTANCE: "root of the mean squared error, as a part of the bounds (lower is better)",
}
FEATURES = "features"
ANY = "any"
"""The model of a method that has no such setting: it is compared with all of them."""
MODELS = {"logistic": "logistic regression", "svm": "linear support vector machine"}
LINEAR = "linear"
KINDS = {**MODELS, LINEAR: "linear regression"}
METHODS = {
    "model": "Model: our default, chosen from public facts",
    "privgene": "PrivGene: weights bred by private choices",
    "privlocal": "PrivLocal: weights improved step by step by private choices",
    "private-erm": "PrivateERM: noise in the objective, which is then minimized",
    "output-perturbation": "Output perturbation: noise in the best weights",
    "private-svm": "PrivateSVM: noise in the weights of a support vector machine",
    "functional": "Functional mechanism: noise in the objective's coefficients",
    "gupt": "GUPT: weights averaged over the fits of blocks of records",
    "privpfc": "PrivPfC: a noisy grid that predicts by itself",
    "majority": "Majority: only publishes which class is the most frequent",
}


class Variant(NamedTuple):
    """A method with settings of its own, as a line beside the others."""

    method: str
    settings: Mapping[str, str | int]
    title: str


VARIANTS = {
    "privgene-em": Variant(
        "privgene",
        {"choice": "candidates"},
        "PrivGene before the enhanced mechanism, as published: exponential mechanism, 10 parents",
    ),
    "privgene-em1": Variant(
        "privgene",
        {"choice": "candidates", "parents": 1},
        "PrivGene with the exponential mechanism and 1 parent, as published",
    ),
    "privgene-plain": Variant(
        "privgene",
        {"choice": "plain"},
        "PrivGene with noise for the largest loss of the whole box: 10 parents",
    ),
    "privlocal-paper": Variant(
        "privlocal", {"moves": "single"}, "PrivLocal as published: one weight moves at a time"
    ),
    "private-erm-paper": Variant(
        "private-erm",
        {"noise": "spherical", "regularization": "1e-12"},
        "PrivateERM as published: noise of uniform direction, λ = 1e-12",
    ),
    "functional-paper": Variant(
        "functional",
        {"calibration": "paper"},
        "Functional mechanism as published: noise for the bound of its paper",
    ),
    "private-svm-paper": Variant(
        "private-svm", {"cost": 10}, "PrivateSVM with C = 10, as the PrivGene paper has it"
    ),
    "private-svm-waves": Variant(
        "private-svm", {"features": "random-fourier"}, "PrivateSVM with random Fourier features"
    ),
    "gupt-paper": Variant(
        "gupt", {"bound": 5}, "GUPT with weights from -5 to 5, as the PrivGene paper has it"
    ),
}
TITLES = METHODS | {name: variant.title for name, variant in VARIANTS.items()}
KNOBS = {
    "parents": "how many models privgene chooses of a generation (m')",
    "population": "models in a generation of privgene",
    "records_per_round": "records for each round of privgene at ε = 1 (1/c)",
    "cost": "C of support vector machines (privgene, privlocal, private-svm)",
    "bound": "largest size of a weight (privgene, privlocal, gupt, functional)",
    "waves": "random waves of private-svm-waves",
    "number": "column that linear regression predicts",
}
REFERENCE_C = 0.5
"""Errors of the figure `rounds` are divided by that of so many rounds for 1,000 records."""
KMEANS = "kmeans"
KMEANS_METHODS = ("pgkm", "gkm", "dplloyd")
_MOST_ROUNDS = 500
_FAR = 2
"""Methods that are always wrong more than so many times as often as no learning are not drawn."""


@dataclass(frozen=True)
class ModelFigure(Figure):
    """A figure that says how many folds are measured on unless users choose another number."""

    epsilons: tuple[str, ...] = EPSILONS
    datasets: tuple[str, ...] = ("simulated", "adult", "bank", "census")
    measures: tuple[str, ...] = (WRONG, CURVE)
    folds: int = FOLDS
    models: tuple[str, ...] = tuple(MODELS)


FIGURES = {
    "epsilon": ModelFigure(
        title="How good are models that were fitted privately?",
        across=EPSILON_AXIS,
        reading="From left to right privacy gets weaker, so there is less noise, and models "
        "usually get better.",
        methods=tuple(METHODS),
    ),
    "rounds": ModelFigure(
        title="How many rounds should a private search make?",
        across="rounds for 1,000 records at ε = 1 (1,000 c)",
        reading="A search of n records makes c n ε rounds. From left to right there are more of "
        "them: the search comes farther, but each round gets less of ε and chooses worse.",
        methods=("privgene", "privlocal"),
        epsilons=("0.1", "1"),
        datasets=("simulated", "adult", "bank"),
        measures=(WRONG, RATIO, CURVE),
        key="rounds_per_1000",
        values=("0.125", "0.25", "0.5", "0.75", "1.25", "2.5", "5"),
    ),
    "choice": ModelFigure(
        title="What does the enhanced exponential mechanism bring to PrivGene?",
        across=EPSILON_AXIS,
        reading="The enhanced mechanism has noise only for how differently one record can score "
        "two candidates of the same round; the plain one for the whole range of a record's score "
        "of any model.",
        methods=("privgene", "privgene-em", "privgene-plain", "privlocal"),
        datasets=("simulated", "acs", "adult", "bank"),
    ),
    "iterations": ModelFigure(
        title="How does the error of PrivGene fall, round by round?",
        across="rounds made",
        reading="From left to right a search makes more of its rounds. Both have one parent and "
        "the same number of rounds in all, c n ε; only the noise of their choices differs. A "
        "search that has ended stays where it is.",
        methods=("privgene", "privgene-em1"),
        epsilons=("1",),
        datasets=("acs", "privbayes-acs"),
        measures=(WRONG, LARGEST_LOSS, RANGE),
        key="iteration",
        values=(1, 2, 4, 8, 12, 16, 20, 25, 40, 55),
        is_log=False,
    ),
    "regression": ModelFigure(
        title="How good is linear regression that was fitted privately?",
        across=EPSILON_AXIS,
        reading="From left to right privacy gets weaker, so there is less noise.",
        methods=("functional", "functional-paper", "gupt", "model"),
        datasets=("simulated", "adult", "bank"),
        measures=(DISTANCE,),
        models=(LINEAR,),
    ),
    "cost": ModelFigure(
        title="How long does it take to fit a model privately?",
        across="number of rows",
        reading="From left to right there are more rows to learn from.",
        methods=tuple(METHODS),
        epsilons=("1",),
        datasets=("simulated",),
        measures=(SECONDS,),
        key="rows",
        values=(2_000, 5_000, 10_000, 20_000, 50_000, 100_000),
        moves_references=True,
        folds=1,
    ),
}


def method_of(method: str) -> str:
    """Return the method of a competitor, which may be a variant of it."""
    return VARIANTS[method].method if method in VARIANTS else method


def known_methods(names: Sequence[str]) -> tuple[tuple[str, ...], list[str]]:
    """Leave out methods that this version lacks, with a note for each."""
    for name in names:
        require_known("method", name, TITLES)
    kept = tuple(name for name in names if method_of(name) in CATALOG)
    absent = [name for name in names if name not in kept]
    return kept, [f"{name} was left out: this version has no such method" for name in absent]


def models_of(method: str, asked: Iterable[str]) -> tuple[str, ...]:
    """List which of the models a method fits; `ANY` for one that has no such setting."""
    types = {setting.name: setting.type_name for setting in method_settings(method_of(method))}
    if "model" not in types:
        return (ANY,)
    return tuple(model for model in asked if model in types["model"].split(" | "))


def settings_for(trial: Trial) -> dict[str, Any]:
    """List the settings of a trial's method: its variant's, then those that users gave."""
    known = {setting.name for setting in method_settings(method_of(trial.method))}
    variant = VARIANTS[trial.method].settings if trial.method in VARIANTS else {}
    given = {knob: trial.setting[knob] for knob in KNOBS if knob in trial.setting}
    return {**variant, **{knob: value for knob, value in given.items() if knob in known}}


def method_for(trial: Trial, target: str, records: int) -> Method[Any]:
    """Build the method of a trial; the size of a benchmark is public, so rounds may follow it."""
    settings: dict[str, Any] = {"target": target, **settings_for(trial)}
    if trial.setting["model"] != ANY:
        settings["model"] = trial.setting["model"]
    if "rounds_per_1000" in trial.setting:
        settings["rounds"] = rounds_for(trial, records)
    return make_method(method_of(trial.method), settings)


def rounds_for(trial: Trial, records: int) -> int:
    """Compute c n ε rounds for a public number of records, from 1 to 500."""
    per_1000 = Fraction(str(trial.setting.get("rounds_per_1000", "1.25")))
    fitted = records * (FOLDS - 1) // FOLDS
    wanted = ceil(fitted * Fraction(trial.epsilon) * per_1000 / 1000)
    return min(max(wanted, 1), _MOST_ROUNDS)


class ModelRunner(Folds):
    """Fits on nine folds, and measures on the tenth."""

    def __init__(self, folder: Path | None, benchmarks: Mapping[str, Benchmark]) -> None:
        super().__init__(folder, benchmarks)
        self._records = {name: benchmark.records for name, benchmark in benchmarks.items()}
        self._searches: dict[str, list[Step]] = {}

    def run_trial(self, trial: Trial) -> dict[str, float]:
        """Fit on nine folds, measure on the tenth: errors, area under the curve, and seconds."""
        given = trial.setting
        split = self.split(trial.dataset, int(given["fold"]), int(given.get("rows", 0)))
        if given["model"] == LINEAR:
            return self._regression(trial, split)
        if trial.method == MOST_FREQUENT:
            return _of_most_frequent(split)
        if "iteration" in given:
            return self._step(trial)
        begin = perf_counter()
        if trial.method == NOISE_FREE:
            model = fit_plain_model(split.train, split.schema, split.target, str(given["model"]))
            seconds = perf_counter() - begin
            measured = score_rows(model.scores(split.held_out.rows), split.held_out)
            measured[FEATURES] = float(model.features.size)
        else:
            method = method_for(trial, split.target, self._records[trial.dataset])
            table = open_table(split.train, split.schema)
            release = method.release(table, budget=Budget.seeded(trial.epsilon), rng=trial.rng())
            seconds = perf_counter() - begin
            measured = _measure(release, split)
        return measured | {SECONDS: round(seconds, 3)}

    def _step(self, trial: Trial) -> dict[str, float]:
        """Look up how far a search has come; all points of a line are of the same search."""
        given = {name: value for name, value in trial.setting.items() if name != "iteration"}
        whole = replace(trial, setting=given)
        if whole.key not in self._searches:
            self._searches[whole.key] = self._run_search(whole)
        steps = self._searches[whole.key]
        step = steps[min(int(trial.setting["iteration"]), len(steps)) - 1]
        return {WRONG: step.wrong, LARGEST_LOSS: step.largest_loss, RANGE: step.range}

    def _run_search(self, trial: Trial) -> list[Step]:
        split = self.split(trial.dataset, int(trial.setting["fold"]), 0)
        if split.schema[split.target].size != 2:
            raise InvalidParameter("rounds are followed for two classes only")
        records = self._records[trial.dataset]
        method = method_for(trial, split.target, records)
        if not isinstance(method, PrivGene):
            raise InvalidParameter("only searches of PrivGene are followed round by round")
        rounds = rounds_for(trial, records)
        return trace_search(split, method, rounds=rounds, epsilon=trial.epsilon, rng=trial.rng())

    def _regression(self, trial: Trial, split: Split) -> dict[str, float]:
        named = trial.setting.get("number")
        number = number_column(split.schema, None if named is None else str(named))
        begin = perf_counter()
        if trial.method == NOISE_FREE:
            error = plain_error(split, number)
        elif trial.method == MOST_FREQUENT:
            return {DISTANCE: mean_error(split, number)}
        else:
            name, settings = method_of(trial.method), settings_for(trial)
            error = private_error(split, number, name, settings, trial.epsilon, trial.rng())
        return {DISTANCE: error, SECONDS: round(perf_counter() - begin, 3)}


def class_scores(release: Release, rows: pa.Table, target: str) -> FloatArray:
    """Score every class for every row by how certain a release is.

    A release that only predicts classes gives the score 1 to the one that it predicts.
    """
    if isinstance(release, PrivPfCRelease):
        return release.predict_proba(rows)
    if isinstance(release, LinearModelRelease):
        decided = release.decision(encode_rows(rows, release.schema, release.features.columns))
        return np.hstack([-decided, decided]) if decided.shape[1] == 1 else decided
    labels = encode_classes(pa.table({target: release.predict(rows)}), release.schema, target)
    return np.eye(release.schema[target].size)[labels]


def _measure(release: Release, split: Split) -> dict[str, float]:
    held_out = split.held_out
    (score,) = evaluate_release(release, held_out, target=split.target, classifiers=(DIRECT,))
    scores = class_scores(release, held_out.rows, split.target)
    return {
        WRONG: score.misclassification,
        CURVE: mean_area_under_curve(scores, held_out.classes),
    }


def score_rows(scores: FloatArray, held_out: HeldOut) -> dict[str, float]:
    """Measure how often the highest score is wrong, and the area under the curve."""
    predicted = np.asarray(scores.argmax(axis=1), dtype=np.int64)
    return {
        WRONG: misclassification(predicted, held_out.classes),
        CURVE: mean_area_under_curve(scores, held_out.classes),
    }


def _of_most_frequent(split: Split) -> dict[str, float]:
    size = split.schema[split.target].size
    classes = encode_classes(split.train, split.schema, split.target)
    scores = np.zeros((len(split.held_out.classes), size))
    scores[:, majority_class(classes, size)] = 1
    return score_rows(scores, split.held_out)


class ModelStudy(Study[ModelFigure]):
    """Linear models that were fitted privately."""

    name = NAME
    options = (*Study.options, "classifiers", "folds")
    knobs = KNOBS
    figures = FIGURES
    datasets: Mapping[str, Benchmark] = ALL_BENCHMARKS
    references = REFERENCES
    headers = ("dataset", "measure", "model", "method")
    drawing_caption = (
        "Lines are means, bands one standard deviation. Methods that are wrong more than twice "
        "as often as always predicting the majority class are in the table only."
    )
    table_caption = "Mean ± standard deviation over folds and repeats."

    def plan(
        self,
        repeats: int,
        *,
        figure: str | None = None,
        methods: Sequence[str] | None = None,
        **options: Any,
    ) -> Plan:
        """List the trials of one figure; datasets and methods that are not there are left out."""
        if figure == KMEANS:
            if "classifiers" in options or "folds" in options:
                raise InvalidParameter("k-means has neither classifiers nor folds")
            return kmeans.STUDY.plan(
                repeats, methods=KMEANS_METHODS if methods is None else methods, **options
            )
        require_known("figure", figure or "epsilon", (*FIGURES, KMEANS))
        usual = FIGURES[figure or "epsilon"]
        names, absent = known_methods(usual.methods if methods is None else methods)
        if not names:
            raise InvalidParameter("; ".join(["name at least one method and one epsilon", *absent]))
        models = options.get("classifiers") or usual.models
        fitted = tuple(name for name in names if models_of(name, models))
        lacking = [
            f"{name} was left out of {KINDS[model]}: it does not fit one"
            for name in names
            for model in models
            if model in KINDS and not models_of(name, (model,))
        ]
        if not fitted:
            raise InvalidParameter("; ".join(lacking))
        planned = super().plan(repeats, figure=figure, methods=fitted, **options)
        return replace(planned, notes=(*planned.notes, *absent, *lacking))

    def known_methods(self, figure: ModelFigure) -> Collection[str]:
        """List all methods: each can be run for each figure."""
        return TITLES

    def known_datasets(self, figure: ModelFigure) -> Collection[str]:
        """List all benchmarks: each can be used for each figure."""
        return self.datasets

    def own_dataset(self, table: OwnTable) -> Benchmark:
        """Cut a user's own table into folds; its class is the column that the user named."""
        return own_benchmark(table)

    def trials(
        self,
        asked: Request[ModelFigure],
        *,
        classifiers: Sequence[str] | None = None,
        folds: int | None = None,
        **_: Any,
    ) -> Iterator[Trial]:
        """List round by round and fold by fold the references, then all methods."""
        models = tuple(asked.figure.models if classifiers is None else classifiers)
        for model in models:
            require_known("classifier", model, asked.figure.models)
        if not models:
            raise InvalidParameter("name at least one classifier")
        count = asked.figure.folds if folds is None else folds
        require_folds(count)
        for seed in range(asked.repeats):
            for dataset, fold in product(asked.figure.datasets, range(count)):
                setting = asked.setting(dataset, fold=fold)
                for trial in _round(asked, models, seed):
                    yield replace(trial, setting={**setting, **trial.setting})

    def runner(self, folder: Path | None) -> RunTrial:
        """Build what runs a trial on the benchmarks of a data folder."""
        return ModelRunner(folder, self.datasets).run_trial

    def summarize(self, results: Sequence[Result]) -> Cells:
        """Average every measure; ratios are those of the averages."""
        cells = super().summarize(results)
        if RATIO not in self.figure_of(results).measures:
            return cells
        ratios = {
            key._replace(measure=RATIO): {
                point: Cell.of([cell.mean / line[REFERENCE_C].mean]) for point, cell in line.items()
            }
            for key, line in cells.items()
            if key.measure == WRONG and REFERENCE_C in line and key.method not in REFERENCES
        }
        return cells | ratios

    def key(self, trial: Trial, figure: ModelFigure, measure: str) -> Key:
        """Return which line a trial belongs to; models are kept apart."""
        usual = super().key(trial, figure, measure)
        return usual._replace(variant=(str(trial.setting["model"]),))

    def names(self, key: Key) -> list[str]:
        """Name a line by dataset, measure, model and method."""
        return [key.dataset, key.measure, *key.variant, key.short_name]

    def is_higher_better(self, measure: str) -> bool:
        """Whether larger values are better: of the area under the curve."""
        return measure == CURVE

    def measure_title(self, measure: str) -> str:
        """Name a measure."""
        return MEASURES[measure].partition(" (")[0]

    def layout(self, results: Sequence[Result], dataset: str | None) -> Layout:
        """Name measures in the titles of panels, unless there is but one."""
        measures = self.figure_of(results).measures
        up = "" if len(measures) > 1 else MEASURES[measures[0]]
        return super().layout(results, dataset)._replace(up=up, height=3.2)

    def groups(self, cells: Cells) -> list[Cells]:
        """Compare methods that have no setting for the model with each of the models."""
        models = [model for model in KINDS if any(key.variant == (model,) for key in cells)]
        kinds = dict.fromkeys((key.dataset, key.measure) for key in cells)
        groups = []
        for (dataset, measure), model in product(kinds, models or [ANY]):
            own = [k for k in cells if (k.dataset, k.measure) == (dataset, measure)]
            both = [k for kind in (model, ANY) for k in own if k.variant == (kind,)]
            groups.append({k: cells[k] for k in both})
        return [group for group in groups if group]

    def drawn(self, group: Cells) -> list[Key]:
        """Leave out lines that would flatten all others: useless, and far from them."""
        reference = [line for key, line in group.items() if key.method == MOST_FREQUENT]
        if next(iter(group)).measure != WRONG or not reference:
            return list(group)
        limit = _FAR * next(iter(reference[0].values())).mean
        return [
            key for key, line in group.items() if min(cell.mean for cell in line.values()) <= limit
        ]

    def panel_title(self, key: Key, dataset: str | None) -> str:
        """Name a panel by measure and model."""
        title = f"{self.measure_title(key.measure)}, {KINDS.get(key.variant[0], 'all')}"
        return title if dataset else f"{key.dataset}: {title}"

    def label(self, key: Key) -> str:
        """Label a line by what its method does."""
        label = REFERENCES.get(key.method) or TITLES[key.method]
        return f"{label}, ε = {key.epsilon}" if key.epsilon else label

    def explanation(self, figure: ModelFigure) -> list[str]:
        """Explain linear models and the measures."""
        return [
            "A linear model predicts one property of a person (the class) from the others: each "
            "value has a weight, and the sum of the weights decides. Here the weights are found "
            "and published without giving away whether any one person is in the table. Then the "
            "model is tried on people who were not in the table. How good is it?",
            "Misclassification is the part of those people whose class is predicted wrongly: 0.15 "
            "means 15 of 100. The area under the curve (AUC) is how often, of two people of "
            "different classes, the model ranks the right one first: 0.5 is a coin, 1 is perfect. "
            "It distinguishes models where one class is so rare that always predicting the other "
            "one is seldom wrong.",
        ]

    def reading_points(self, figure: ModelFigure) -> list[str]:
        """List what lines mean."""
        return [
            "Each colored line is a method; the band around it is one standard deviation over "
            "all runs. Methods that have no such models are drawn in every panel.",
            "The gray lines are what one gets without learning anything, and the same model "
            "fitted to the true rows, without any privacy. The gap to it is the price of privacy.",
        ]

    def heading(self, dataset: str) -> str:
        """Write what is predicted."""
        return f"{dataset}: {self.datasets[dataset].predicts}"

    def about(self, dataset: str, results: Sequence[Result]) -> str:
        """Describe a benchmark."""
        benchmark = self.datasets[dataset]
        figure = self.figure_of(results)
        rows = f"{benchmark.records:,} rows"
        size = "as many rows as the axis says" if figure.key == "rows" else rows
        if figure.models == (LINEAR,):
            return f"{benchmark.source}: {size}; a number is predicted, not the class."
        weights = max(int(measured.get(FEATURES, 0)) for _, measured in results)
        features = f", {weights:,} features with the intercept" if weights else ""
        return f"{benchmark.source}: {size}{features}; the class is {benchmark.target}."

    def finding(self, best: Key, point: float, cells: Cells) -> str:
        """Name the best method and its model."""
        model = "" if best.variant == (ANY,) else f", {KINDS[best.variant[0]]}"
        return (
            f"{best.short_name}{model} has the best {self.measure_title(best.measure)}: "
            f"{cells[best][point].mean:.3f}"
        )

    def method_points(self, used: Collection[str]) -> list[str]:
        """Describe the methods."""
        return [f"{title}." for name, title in TITLES.items() if name in used]

    def how_it_was_run(self, results: Sequence[Result]) -> list[str]:
        """Describe folds and the models without privacy."""
        return [
            fold_words(results, "the model is fitted to") + " Settings are the defaults, but for "
            "what the axis says.",
            "Models without privacy have the same features as the private ones: numbers scaled by "
            "their public bounds, and a weight for each value of a category. Support vector "
            "machines are fitted to a hinge loss with a smooth bend.",
        ]

    def costs(self, results: Sequence[Result]) -> list[Listing]:
        """List the mean time of a fit by dataset, model and method, unless it is shown above."""
        if SECONDS in self.figure_of(results).measures:
            return []
        rows = means_by(
            results,
            (SECONDS,),
            lambda trial: (trial.dataset, str(trial.setting["model"]), trial.method),
        )
        return [Listing(["dataset", "model", "method", "seconds"], rows, "Mean time of one fit.")]


def _round(asked: Request[ModelFigure], models: Sequence[str], seed: int) -> Iterator[Trial]:
    """List one round of trials: the references first, then every method at every point."""
    figure, axis = asked.figure, asked.axis()
    if seed == 0:
        still: list[Setting] = [{}]
        for moved, model in product(axis if figure.moves_references else still, models):
            yield Trial(NAME, NOISE_FREE, "none", 0, {"model": model, **moved})
        if SECONDS not in figure.measures:  # to predict the majority class takes no time
            model = LINEAR if figure.models == (LINEAR,) else ANY
            yield Trial(NAME, MOST_FREQUENT, "none", 0, {"model": model})
    for moved, epsilon, method in product(axis, figure.epsilons, figure.methods):
        for model in models_of(method, models):
            yield Trial(NAME, method, epsilon, seed, {"model": model, **moved})


STUDY = ModelStudy()
