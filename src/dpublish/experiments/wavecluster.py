"""How well do private clusters keep the shapes of the true ones?

Section 7 of L. Chen, T. Yu, R. Chirkova, "WaveCluster with differential privacy" (CIKM, 2015):
its four methods and its measures, on its sets and on shapes simulated here.
NOT PRIVATE: true clusters are computed from true counts, to compare with.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from functools import lru_cache, partial
from pathlib import Path
from time import perf_counter
from typing import Any, NamedTuple, cast

import numpy as np
import pyarrow as pa

from dpublish.core.registry import make_method
from dpublish.core.settings import build
from dpublish.data.box import Box
from dpublish.data.schema import Schema, column
from dpublish.data.sources import open_table
from dpublish.data.table import Table
from dpublish.datasets.shapes import SHAPES, OwnShapes, ShapeSet
from dpublish.evaluation.metrics.cells import (
    NONE,
    Labels,
    cell_dissimilarity,
    class_mismatch,
    cluster_count,
    f_measure,
    pair_mismatch,
)
from dpublish.evaluation.sklearn_adapter import label_points, require_sklearn
from dpublish.experiments.own_table import OwnTable
from dpublish.experiments.study import Figure, Request, RunTrial, Setting, Study
from dpublish.experiments.trials import SECONDS, Cells, Key, Result, Trial, how_often
from dpublish.methods.wavecluster.bounds import (
    sum_of_terms,
    taken_by_privqt,
    taken_by_privthr,
)
from dpublish.methods.wavecluster.plain import PlainWaveCluster
from dpublish.methods.wavecluster.plan import WavePlan
from dpublish.methods.wavecluster.privqt import PrivQT
from dpublish.methods.wavecluster.privthr import PrivTHR
from dpublish.methods.wavecluster.released import LabeledCells
from dpublish.methods.wavecluster.wavecluster import (
    Coefficients,
    WaveTransform,
    significant_cells,
)
from dpublish.plots.comparisons import NOISE, Layout, Picture, draw_pictures
from dpublish.plots.style import plain_number
from dpublish.privacy.budget import Budget
from dpublish.randomness import plain_generator
from dpublish.report import section
from dpublish.report.section import Listing, Section
from dpublish.types import FloatArray

NAME = "wavecluster"
PLAIN = "plain"
REFERENCES = {PLAIN: "No privacy: the plain algorithm"}
FOLDS = 10
ADJACENCY = "full"  # with corners: only so does the plain algorithm see three spirals in DS2
SIDES = ("cells across", "cells up")
CELL = "cell "  # and its two indices: the label of a cell, for pictures
_LEAST_EPSILON, _RISK = Fraction(1, 100), 0.05


class Method(NamedTuple):
    """A way to run a method, what it is in words, and the settings that make it so."""

    method: str
    title: str
    settings: Mapping[str, str] = {}
    is_plain: bool = False  # publishes no clusters: the plain algorithm runs on its release


METHODS = {
    "privthr": Method(
        "privthr",
        "PrivTHR: perturbs the counts of the cells, and keeps as many as a perturbed number of "
        "empty ones leaves over",
    ),
    "privthr-paper": Method(
        "privthr",
        "PrivTHR as printed: spends 9/10 of ε on the counts, and takes half of the perturbed "
        "number of empty cells off the number of those whose perturbed value is positive",
        {"variant": "paper", "counts_share": "0.9"},
    ),
    "privthr-em": Method(
        "privthr-em",
        "PrivTHR-EM: perturbs the counts of the cells, and draws the value from which on cells are "
        "kept",
    ),
    "privqt": Method(
        "privqt", "PrivQT: perturbs the counts of the cells, and clusters them as if they were true"
    ),
    "wave-baseline": Method(
        "wave-baseline",
        "Baseline: perturbs counts of a grid that is finer where there are more points, divides "
        "them over the cells, and clusters those as if they were true",
    ),
    "wave-baseline-paper": Method(
        "wave-baseline",
        "Baseline as printed: rounds those perturbed counts and draws as many points, which it "
        "clusters as if they were true",
        {"points": "drawn"},
    ),
}
RELEASES = {
    name: Method(name, f"{title}, clustered as if it were true", is_plain=True)
    for name, title in (
        ("psd", "PSD: a tree of perturbed counts"),
        ("privelet", "Privelet: counts of all cells from perturbed wavelet coefficients"),
        ("ug", "UG: perturbed counts of equal cells, as many as the number of points suggests"),
        ("ag", "AG: perturbed counts of a grid that is finer where there are more points"),
    )
}
METHODS |= RELEASES
TITLES = {name: method.title for name, method in METHODS.items()} | {
    PLAIN: "No privacy: plain WaveCluster on the true counts"
}


class Measure(NamedTuple):
    """A figure by which clusterings are compared."""

    title: str
    meaning: str


MEASURES = {
    "dsg": Measure(
        "DSG_C",
        "true and private clusters are paired so that they differ least; how many cells they "
        "differ by, as a part of all true cells. 0 is perfect, and it may exceed 1",
    ),
    "ocm": Measure(
        "OCM",
        "a decision tree learns the true clusters and another one the private clusters; the part "
        "of the points left aside that they put into different classes. 0 is perfect",
    ),
    "2ce": Measure(
        "2CE",
        "the part of all pairs of those points that one tree puts together and the other apart. "
        "0 is perfect",
    ),
    "f": Measure(
        "F-measure",
        "how well each true cluster is found again by some private one, which may be the same "
        "for several. 1 is perfect",
    ),
    "clusters": Measure("clusters", "how many clusters there are"),
    "cells": Measure("cells", "how many cells belong to a cluster (k')"),
    "k_error": Measure(
        "relative error of k'",
        "how far the number of cells in clusters is from the true one, as a part of that",
    ),
    "expected": Measure(
        "cells expected",
        "how many cells noise should leave in clusters, from the distribution of the noise "
        "(Theorems 4 and 5 with the right constants)",
    ),
    "reached": Measure(
        "cells without noise",
        "of a method that publishes the value from which on it keeps cells: how many it would "
        "have kept if their own values had been free of noise",
    ),
}


_USUAL = tuple(name for name in METHODS if name not in RELEASES)
_figure = partial(Figure, methods=_USUAL, measures=tuple(MEASURES), is_log=False)
FIGURES = {
    "epsilon": _figure(
        title="How well do private clusters keep the shapes of the true ones?",
        across="ε",
        reading="Going to the right, privacy becomes weaker and clusters should become better.",
        epsilons=("0.1", "0.2", "0.5", "1", "2"),
        is_log=True,
    ),
    "cells": _figure(
        title="How fine should the grid of private clusters be?",
        across="cells along each side",
        reading="Going to the right, cells become smaller: shapes are seen more sharply, but "
        "fewer points are in each cell and noise weighs more.",
        key="cells",
        values=(24, 32, 40, 48, 64, 80),
    ),
    "percentile": _figure(
        title="How many thin cells should private clusters leave out?",
        across="part of the non-empty cells that is left out (p)",
        reading="Going to the right, more of the thinly filled cells are left out, so that "
        "clusters shrink and come apart.",
        key="percentile",
        values=("0.05", "0.1", "0.2", "0.3", "0.4", "0.5", "0.6"),
    ),
    "shares": _figure(
        title="How should PrivTHR divide its budget?",
        across="part of ε that the counts spend (α)",
        reading="Going to the right, the counts of the cells get less noise, and the number of "
        "empty ones gets more.",
        key="counts_share",
        values=("0.01", "0.1", "0.3", "0.5", "0.7", "0.9", "0.95", "0.99"),
        methods=("privthr-paper", "privthr"),
        epsilons=("0.2", "1"),
    ),
    "releases": _figure(
        title="Can WaveCluster run on what other methods publish?",
        across="ε",
        reading="Going to the right, privacy becomes weaker and clusters should become better.",
        methods=("privthr", "privqt", "wave-baseline", *RELEASES),
        epsilons=("0.1", "0.2", "0.5", "1", "2"),
        is_log=True,
    ),
}
KNOBS = {
    "cells": "cells along each column: 64, or 64,32 for each of two",
    "percentile": "part of the non-empty cells that is left out (p)",
    "wavelet": "haar, db2, bior2.2 and so on",
    "levels": "how often the wavelet halves each axis",
    "adjacency": "full (corners connect) or face",
    "counts_share": "part of ε that the counts of privthr and privthr-em spend",
}
SHARED = ("cells", "percentile", "wavelet", "levels", "adjacency")


class Split(NamedTuple):
    """Nine tenths of the points to find clusters in, one tenth (in -1 .. 1) to measure on."""

    table: Table
    rows: pa.Table
    box: Box
    held_out: FloatArray


class Truth(NamedTuple):
    """What the plain algorithm finds, and the coefficients in which it finds it."""

    labels: Labels
    coefficients: Coefficients
    transform: WaveTransform

    @property
    def marked(self) -> Labels:
        """The labels, with coefficients that are filled and yet in no cluster as noise."""
        is_thin = (self.labels == NONE) & (self.coefficients > 0)
        return np.where(is_thin, NOISE, self.labels)


class WaveRunner:
    """Runs trials on sets of points, of a data folder or a user's own."""

    def __init__(
        self, folder: Path | None, datasets: Mapping[str, ShapeSet | OwnShapes] = SHAPES
    ) -> None:
        self._folder, self._datasets = folder, datasets
        self._rows = lru_cache(maxsize=1)(self._read)
        self._split = lru_cache(maxsize=1)(self.cut)
        self._true = lru_cache(maxsize=1)(self._cluster_plainly)

    def run_trial(self, trial: Trial) -> dict[str, float]:
        """Publish clusters of nine tenths of the points, and compare them with the true ones."""
        shared = tuple((name, trial.setting[name]) for name in SHARED if name in trial.setting)
        fold = trial.seed % FOLDS
        split, truth = self._split(trial.dataset, fold), self._true(trial.dataset, fold, shared)
        if trial.method == PLAIN:
            return _sizes(truth.labels) | _pictured(trial, truth.marked)
        plain, method = _plain(shared), _method(trial, dict(shared))
        begin = perf_counter()
        made = method.release(
            self._input(trial, split, truth), budget=Budget.seeded(trial.epsilon), rng=trial.rng()
        )
        found = (
            plain.of_release(made) if METHODS[trial.method].is_plain else cast("LabeledCells", made)
        )
        measured = {SECONDS: round(perf_counter() - begin, 4)}
        measured |= compare(truth.labels, found.labels, split.held_out) | _sizes(found.labels)
        measured |= _against_truth(method, Fraction(trial.epsilon), truth, found)
        return measured | _pictured(trial, found.labels)

    def _input(self, trial: Trial, split: Split, truth: Truth) -> Table:
        """Return the points; for other methods their columns are cut where the cells are."""
        if not METHODS[trial.method].is_plain:
            return split.table
        columns = tuple(
            column(one.name, one.kind, bounds=list(one.bounds), bins=cells)
            for one, cells in zip(split.box.columns, truth.transform.sizes, strict=True)
        )
        return open_table(split.rows, Schema(columns))

    def _read(self, dataset: str) -> pa.Table:
        return self._datasets[dataset].rows(self._folder)

    def cut(self, dataset: str, fold: int) -> Split:
        """Leave one point in ten aside."""
        rows, schema = self._rows(dataset), self._datasets[dataset].schema
        order = plain_generator(2024).permutation(rows.num_rows)
        is_held_out = order % FOLDS == fold
        box = Box.of(schema)
        away = rows.filter(pa.array(is_held_out))
        points = np.column_stack([away[name].to_numpy() for name in box.names])
        kept = rows.filter(pa.array(~is_held_out))
        return Split(open_table(kept, schema), kept, box, box.scale(points.astype(np.float64)))

    def _cluster_plainly(
        self, dataset: str, fold: int, shared: tuple[tuple[str, int | str], ...]
    ) -> Truth:
        split, plain = self._split(dataset, fold), _plain(shared)
        plan = WavePlan.of(split.table.schema, plain)
        coefficients = plan.transform.apply(split.table.sum(plan.kernel))
        labels = plan.connect(significant_cells(coefficients, plain.percentile))
        return Truth(labels, coefficients, plan.transform)


def _plain(shared: Collection[tuple[str, int | str]]) -> PlainWaveCluster:
    """Build the plain algorithm with the settings that all methods share."""
    found: PlainWaveCluster = build(
        PlainWaveCluster, NAME, {"adjacency": ADJACENCY, **dict(shared)}
    )
    return found


def _method(trial: Trial, shared: Mapping[str, int | str]) -> Any:
    """Build the method of a trial; a share of the budget is for those that have it."""
    method = METHODS[trial.method]
    if method.is_plain:
        return make_method(method.method, method.settings)
    settings = {"adjacency": ADJACENCY, **shared, **method.settings}
    if "counts_share" in trial.setting and method.method in ("privthr", "privthr-em"):
        settings["counts_share"] = str(trial.setting["counts_share"])
    return make_method(method.method, settings)


def _against_truth(
    method: Any, epsilon: Fraction, truth: Truth, found: LabeledCells
) -> dict[str, float]:
    """Compare the number of cells with the true one, and with what noise should make of it."""
    true = int(np.count_nonzero(truth.labels != NONE))
    measured = {"k_error": abs(found.significant - true) / true} if true else {}
    threshold = getattr(found, "threshold", None)
    if threshold is not None:
        values = truth.coefficients * truth.transform.unit
        measured["reached"] = float(np.count_nonzero(values >= threshold))
    expected = _expected(method, epsilon, truth)
    return measured if expected is None else {**measured, "expected": expected}


def _expected(method: Any, epsilon: Fraction, truth: Truth) -> float | None:
    """Compute how many cells Theorems 4 and 5 expect, where they apply."""
    terms = sum_of_terms(truth.transform)
    if terms is None or epsilon < _LEAST_EPSILON:
        return None
    exact = truth.coefficients
    if isinstance(method, PrivQT):
        return taken_by_privqt(exact, method.percentile, epsilon, terms, _RISK).expected
    if isinstance(method, PrivTHR):
        return taken_by_privthr(
            exact,
            method.percentile,
            counts_rate=epsilon * method.counts_share,
            rank_rate=epsilon * (1 - method.counts_share),
            terms=terms,
            risk=_RISK,
            variant="direct" if method.is_direct(epsilon) else "paper",
        ).expected
    return None


def compare(true: Labels, private: Labels, points: FloatArray) -> dict[str, float]:
    """Compare two clusterings of a grid's cells, with points between -1 and 1 to look at."""
    classes, others = _classify(true, points), _classify(private, points)
    return {
        "dsg": cell_dissimilarity(true, private),
        "ocm": class_mismatch(classes, others),
        "2ce": pair_mismatch(classes, others),
        "f": f_measure(_look_up(true, points), _look_up(private, points)),
    }


def _classify(labels: Labels, points: FloatArray) -> Labels:
    """Learn from the centers of labeled cells, and label points anywhere."""
    filled = np.argwhere(labels != NONE)
    centers = (2 * filled + 1) / np.array(labels.shape) - 1
    return label_points(centers, labels[labels != NONE], points)


def _look_up(labels: Labels, points: FloatArray) -> Labels:
    """Return for each point the label of the cell it lies in."""
    sides = np.array(labels.shape)
    cells = np.minimum(((points + 1) / 2 * sides).astype(np.int64), sides - 1)
    found: Labels = labels[tuple(cells.T)]
    return found


def _sizes(labels: Labels) -> dict[str, float]:
    return {
        "clusters": float(cluster_count(labels)),
        "cells": float(np.count_nonzero(labels != NONE)),
    }


def _pictured(trial: Trial, labels: Labels) -> dict[str, float]:
    """Keep the cells themselves of the first run only."""
    return store_labels(labels) if trial.seed == 0 else {}


def store_labels(labels: Labels) -> dict[str, float]:
    """Write the labels of cells as measures, so that pictures can be drawn from results alone.

    There are no pictures of grids with other than two sides.
    """
    if labels.ndim != len(SIDES):
        return {}
    sides = dict(zip(SIDES, map(float, labels.shape), strict=True))
    cells = np.argwhere(labels != NONE).tolist()
    return sides | {f"{CELL}{x} {y}": float(labels[x, y]) for x, y in cells}


def stored_labels(measured: Mapping[str, float]) -> Labels | None:
    """Read the labels of cells from measures, if they hold any."""
    if SIDES[0] not in measured:
        return None
    labels = np.full([int(measured[side]) for side in SIDES], NONE, dtype=np.int64)
    for name, value in measured.items():
        if name.startswith(CELL):
            x, y = map(int, name.removeprefix(CELL).split())
            labels[x, y] = int(value)
    return labels


def in_colors_of(labels: Labels, model: Labels) -> Labels:
    """Rename clusters so that each is called like the cluster of the model it shares most with.

    The larger clusters choose first, and no name is given twice; those that are left over get
    names that the model does not have.
    """
    renamed = np.full_like(labels, NONE)
    names, sizes = np.unique(labels[labels >= 0], return_counts=True)
    free = int(max(model.max(initial=NONE), NONE)) + 1
    taken: set[int] = set()
    for name in names[np.argsort(-sizes, kind="stable")]:
        inside = labels == name
        shared = model[inside]
        wanted, counts = np.unique(shared[shared >= 0], return_counts=True)
        choices = [int(w) for w in wanted[np.argsort(-counts, kind="stable")] if w not in taken]
        given = choices[0] if choices else free
        free += not choices
        taken.add(given)
        renamed[inside] = given
    return renamed


class WaveStudy(Study[Figure]):
    """Private WaveClusters beside the plain algorithm."""

    name = NAME
    figures = FIGURES
    datasets: Mapping[str, ShapeSet | OwnShapes] = SHAPES
    knobs = KNOBS
    references = REFERENCES
    headers = ("dataset", "measure", "method")
    drawing_caption = "Lines are means, bands one standard deviation."

    def known_methods(self, figure: Figure) -> Collection[str]:
        """List all methods: each can be run for each figure."""
        return METHODS

    def trials(self, asked: Request[Figure], **_: Any) -> Iterator[Trial]:
        """List at each point the plain algorithm on new points, then the methods."""
        require_sklearn()
        for dataset in asked.figure.datasets:
            shapes = self.datasets[dataset]
            usual: Setting = {"cells": shapes.cells, "percentile": shapes.percentile}
            for seed in range(asked.repeats):
                for moved in asked.axis():
                    setting = asked.setting(dataset, **{**usual, **asked.figure.fixed, **moved})
                    if seed < FOLDS:
                        yield Trial(NAME, PLAIN, "none", seed, setting)
                    for epsilon in asked.figure.epsilons:
                        for method in asked.figure.methods:
                            yield Trial(NAME, method, epsilon, seed, setting)

    def runner(self, folder: Path | None) -> RunTrial:
        """Build what runs a trial on the sets of points of a data folder."""
        return WaveRunner(folder, self.datasets).run_trial

    def own_dataset(self, table: OwnTable) -> OwnShapes:
        """Take the columns of numbers of a user's own table."""
        return OwnShapes.of(table.name, table.rows, table.schema)

    def names(self, key: Key) -> list[str]:
        """Name a line by dataset, measure and method."""
        return [key.dataset, MEASURES[key.measure].title, key.short_name]

    def decimals(self, mean: float) -> int:
        """Write rates with three decimals, counts with one."""
        return 3 if mean < 10 else 1

    def measure_title(self, measure: str) -> str:
        """Name a measure."""
        return MEASURES[measure].title

    def layout(self, results: Sequence[Result], dataset: str | None) -> Layout:
        """Draw many small panels, one for each measure."""
        usual = super().layout(results, dataset)
        return usual._replace(up="mean", width=3.1, height=2.9)

    def explanation(self, figure: Figure) -> list[str]:
        """Explain what WaveCluster does."""
        return [
            "Points lie in the plane, each of them a person: where are they dense? "
            "WaveCluster lays a grid over the plane, counts the points in each cell, smooths the "
            "counts, and keeps the cells that are well filled. Kept cells that touch, also at a "
            "corner, form a cluster, which so may have any shape.",
            "Here this is done without giving away whether any one person is among the points. "
            "How much do the clusters suffer?",
        ]

    def reading_points(self, figure: Figure) -> list[str]:
        """Say what each measure means."""
        return [f"{measure.title}: {measure.meaning}." for measure in MEASURES.values()]

    def sections(self, results: Sequence[Result], dataset: str) -> list[Section]:
        """Show the clusters of one run, and then the measures."""
        rows = self._pictures(results)
        caption = (
            "Cells of a cluster have one color. Each private cluster has the color of the true "
            "cluster that it shares most cells with, as far as there are enough. Gray cells of "
            "the true clusters hold points, but too few: noise."
        )
        shapes = Section(
            f"{dataset}: the clusters of one run",
            [self.about(dataset, results)],
            figures=[section.Figure(caption, draw_pictures(rows))] if rows else [],
        )
        (measures,) = super().sections(results, dataset)
        return [shapes, replace(measures, paragraphs=measures.paragraphs[1:])]

    def _pictures(self, results: Sequence[Result]) -> list[list[Picture]]:
        """Show the first run at the lowest, the middle and the highest point of the axis."""
        figure, points = self.figure_of(results), self.points(results)
        rows = []
        for point in dict.fromkeys((points[0], points[len(points) // 2], points[-1])):
            found = {
                (r.trial.method, r.trial.epsilon): stored
                for r in results
                if self.point(r.trial, figure) in (point, None)
                and r.trial.seed == 0
                and (stored := stored_labels(r.measured)) is not None
            }
            true = found.pop((PLAIN, "none"), None)
            if true is None:
                continue
            where = f"true, {figure.key} {plain_number(point)}" if figure.key else "true"
            rows.append([Picture(where, true)])
            rows[-1] += [
                Picture(f"{method}, ε = {epsilon}", in_colors_of(labels, true))
                for (method, epsilon), labels in found.items()
            ]
        return rows

    def heading(self, dataset: str) -> str:
        """Write the heading of the section with the measures."""
        return f"{dataset}: how far the clusters are from the true ones"

    def about(self, dataset: str, results: Sequence[Result]) -> str:
        """Describe a set of points."""
        shapes = self.datasets[dataset]
        return f"{shapes.source}: {shapes.records:,} points, in which people see {shapes.title}."

    def findings(self, results: Sequence[Result]) -> list[str]:
        """Name the method that is nearest to the truth at both ends of the axis."""
        figure, cells = self.figure_of(results), self.summarize(results)
        return [
            f"At {figure.axis} = {plain_number(point)} {self._nearest(cells, point)}."
            for point in self.ends(results)
        ]

    def _nearest(self, cells: Cells, point: float) -> str:
        own = {key: line for key, line in cells.items() if key.measure == "dsg"}
        best = self.best_at(own, point)
        if best is None:
            return "there are no clusters to compare"
        counts = {
            key.method: round(line[point].mean)
            for key, line in cells.items()
            if key.measure == "clusters" and point in line
        }
        true = counts.pop(PLAIN)
        private = ", ".join(f"{count} ({name})" for name, count in counts.items())
        return (
            f"the clusters of {best.short_name} are nearest to the true ones: they differ by "
            f"{100 * own[best][point].mean:.0f} cells for every 100 true ones. True clusters: "
            f"{true}; private ones: {private}"
        )

    def method_points(self, used: Collection[str]) -> list[str]:
        """Describe the methods."""
        return [f"{title}." for name, title in TITLES.items() if name in used]

    def how_it_was_run(self, results: Sequence[Result]) -> list[str]:
        """Describe how points were left aside, and the settings that were chosen."""
        return [
            f"Each run leaves one point in {FOLDS} aside. True and private clusters are found in "
            "the others; those left aside are what OCM, 2CE and the F-measure are taken on. "
            f"Each is done {how_often(results)} with fresh noise.",
            "The wavelet is Haar's, once, unless set otherwise. Bounds, grid and the part of cells "
            "left out are public settings that were chosen so that the plain algorithm finds what "
            "people see.",
        ]

    def costs(self, results: Sequence[Result]) -> list[Listing]:
        """List the settings of each dataset, and the mean time of a release."""
        figure = self.figure_of(results)
        first = {trial.dataset: trial.setting for trial, _ in reversed(results)}
        settings = [
            [
                name,
                *("varies" if figure.key == one else str(first[name][one]) for one in SHARED[:2]),
            ]
            for name in dict.fromkeys(trial.dataset for trial, _ in results)
        ]
        headers = ["dataset", "cells along each side", "part left out (p)"]
        return [Listing(headers, settings), *super().costs(results)]


STUDY = WaveStudy()
