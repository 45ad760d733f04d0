"""How good is the score by which PrivPfC chooses its grid?

Figures 2 and 3 of D. Su, J. Cao, N. Li, M. Lyu, "PrivPfC: differentially private data publication
for classification" (VLDB Journal, 2018): by how much one record can change the score, and how
well the score that looks at two classes of a cell (Eq. 5) follows the one that looks at all
(Eq. 1), over the candidate grids of tables with more than two classes.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from fractions import Fraction
from functools import lru_cache
from math import floor
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from dpublish.core.prediction import UNKNOWN, encode_rows
from dpublish.data.axis import Axis
from dpublish.data.schema import Schema
from dpublish.datasets.benchmarks import ALL_BENCHMARKS, Benchmark
from dpublish.errors import InvalidParameter
from dpublish.experiments.folds import own_benchmark
from dpublish.experiments.own_table import OwnTable
from dpublish.experiments.study import EPSILON_AXIS, Dataset, Figure, Request, RunTrial, Study
from dpublish.experiments.trials import Result, Trial
from dpublish.methods.privpfc.candidate_grids import enumerate_grids
from dpublish.methods.privpfc.grid_quality import GridQuality, largest_change
from dpublish.randomness import plain_generator
from dpublish.types import FloatArray, IntArray

NAME = "grid-quality"
EVERY_TABLE = "every-table"
TABLE, CLOSED_FORM, TWO_CLASSES = "tabulated", "closed-form", "two-classes"
METHODS = {
    TABLE: "Tabulated: read off the integer table by which grids are scored, as a release does",
    CLOSED_FORM: "Closed form: the paper's Lemma 1, at the best lead x*",
    TWO_CLASSES: "Two classes: the score of Eq. 5 against that of Eq. 1",
}
SENSITIVITY, CORRELATION = "sensitivity", "correlation"
MEASURES = {
    SENSITIVITY: "most by which one record changes the score",
    CORRELATION: "Pearson correlation of the two scores over grids",
}
_CURVE = (
    *("0.00001", "0.0001", "0.001", "0.01", "0.1", "0.2", "0.5", "1", "1.5", "2"),
    *("3", "4", "5", "7", "10", "20", "50", "100"),
)
MULTICLASS = ("adult-marital", "bank-poutcome", "census-school", "census-employment")
_COUNTS_SHARE = Fraction(60, 100)
_CELLS_PER_RECORD = Fraction(1, 5)
POOL = 10_000
GRIDS = 200
_NODES = 200  # of the integral over the noise
_CERTAIN = 40.0  # leads of so many noise scales are never lost
FIGURES = {
    SENSITIVITY: Figure(
        title="By how much can one record change the score of a grid?",
        across=EPSILON_AXIS,
        reading="ε is here the budget of the grid's counts. From left to right they have less "
        "noise, and the score expects fewer cells to predict the wrong class.",
        methods=(TABLE, CLOSED_FORM),
        epsilons=_CURVE,
        datasets=(EVERY_TABLE,),
        measures=(SENSITIVITY,),
    ),
    CORRELATION: Figure(
        title="Does a score of two classes follow that of all classes?",
        across=EPSILON_AXIS,
        reading="From left to right privacy gets weaker: counts have less noise, and grids may "
        "have more cells.",
        methods=(TWO_CLASSES,),
        epsilons=("0.05", "0.1", "0.2", "0.5", "1"),
        datasets=(*MULTICLASS, "simulated-multiclass"),
        measures=(CORRELATION,),
    ),
}


class EveryTable:
    """Stands for any table: what is shown does not depend on its rows."""

    def missing_file(self, folder: Path | None) -> str | None:
        """Return nothing: no file is read."""
        return None


def expected_right(counts: IntArray, epsilon: float) -> float:
    """Compute Eq. 1: how many records cells classify correctly after noise, on average.

    Each class of a cell (first axis of `counts`) has its probability to have the highest count
    once Laplace noise of rate epsilon is added, integrated over the noise of that class.

    >>> expected_right(np.array([[10], [0]]), 100.0)
    10.0
    """
    cells, times = np.unique(counts, axis=1, return_counts=True)
    ordered = np.sort(cells, axis=0)[::-1]
    certain = (ordered[0] - ordered[1]) * epsilon > _CERTAIN
    right = float((ordered[0] * times)[certain].sum())
    cells, times = cells[:, ~certain], times[~certain]
    levels = (np.arange(_NODES) + 0.5) / _NODES
    noise = np.where(levels < 0.5, np.log(2 * levels), -np.log(2 - 2 * levels)) / epsilon
    for number, one in enumerate(cells):
        first = np.ones((cells.shape[1], _NODES))
        for other in np.delete(cells, number, axis=0):
            first *= _below((one - other)[:, None] + noise, epsilon)
        right += float((one * first.mean(axis=1) * times).sum())
    return right


def _below(amounts: FloatArray, epsilon: float) -> FloatArray:
    """Compute the probability that Laplace noise is below each amount."""
    tails = np.exp(-epsilon * np.abs(amounts)) / 2
    return np.where(amounts < 0, tails, 1 - tails)


class _Counter:
    """Counts the cells of grids by class, on the true rows of a public table."""

    def __init__(self, schema: Schema, codes: Mapping[str, IntArray], target: str) -> None:
        known = np.logical_and.reduce([values != UNKNOWN for values in codes.values()])
        self._classes = codes[target][known]
        self._count = schema[target].size
        self._columns = [schema[name] for name in codes if name != target]
        self._codes = [codes[column.name][known] for column in self._columns]

    @property
    def records(self) -> int:
        """How many records have a value in every column."""
        return len(self._classes)

    def grids(self, limit: int, max_cells: int, seed: int) -> IntArray:
        """Draw some of the candidate grids of PrivPfC, each a level per column."""
        rng = plain_generator(seed)
        sizes = [[len(level.starts) for level in c.taxonomy.levels] for c in self._columns]
        pool = enumerate_grids(
            sizes,
            max_cells=max_cells,
            limit=POOL,
            uniform=lambda bound, count: rng.integers(0, bound, count),
        )
        return np.asarray(pool[rng.permutation(len(pool))[:limit]], dtype=np.int64)

    def count(self, levels: Sequence[int]) -> IntArray:
        """Count the records of each class (first axis) in each cell of a grid."""
        axes: list[tuple[Axis, IntArray]] = [
            (column.axis(level), codes)
            for column, codes, level in zip(self._columns, self._codes, levels, strict=True)
            if level
        ]
        cells = np.zeros(self.records, dtype=np.int64)
        size = 1
        for axis, codes in axes:
            cells = cells * axis.size + np.asarray(axis.leaf_to_cell)[codes]
            size *= axis.size
        flat = np.bincount(self._classes * size + cells, minlength=self._count * size)
        return flat.reshape(self._count, size)


class GridQualityRunner:
    """Runs trials on the benchmarks of a data folder; keeps the last table."""

    def __init__(self, folder: Path | None, datasets: Mapping[str, Dataset]) -> None:
        self._folder = folder
        self._datasets = datasets
        self._load = lru_cache(maxsize=1)(self._read)

    def run_trial(self, trial: Trial) -> dict[str, float]:
        """Compute a sensitivity, or a correlation over grids."""
        if trial.method == CLOSED_FORM:
            return {SENSITIVITY: largest_change(float(trial.epsilon))}
        if trial.method == TABLE:
            quality = GridQuality(Fraction(trial.epsilon))
            return {SENSITIVITY: (quality.range_sensitivity / quality.unit + 1) / 2}
        return {CORRELATION: self._correlation(trial)}

    def _correlation(self, trial: Trial) -> float:
        counter = self._load(trial.dataset)
        epsilon = Fraction(trial.epsilon) * _COUNTS_SHARE
        most = max(floor(_CELLS_PER_RECORD * counter.records * epsilon), 1)
        quality = GridQuality(epsilon)
        scores = []
        for levels in counter.grids(int(trial.setting["grids"]), most, trial.seed):
            counts = counter.count(levels.tolist())
            two = quality.score_cells(counts).sum() / quality.unit
            scores.append((expected_right(counts, float(epsilon)), two))
        return float(np.corrcoef(np.array(scores).T)[0, 1])

    def _read(self, dataset: str) -> _Counter:
        benchmark = self._datasets[dataset]
        if not isinstance(benchmark, Benchmark):
            raise InvalidParameter(f"{dataset} has no rows")
        schema, rows = benchmark.schema(self._folder), benchmark.rows(self._folder)
        return _Counter(schema, encode_rows(rows, schema, schema.names), benchmark.target)


class GridQualityStudy(Study[Figure]):
    """The score by which PrivPfC chooses its grid."""

    name = NAME
    knobs: ClassVar[Mapping[str, str]] = {"grids": f"grids that are scored, at most {POOL:,}"}
    figures = FIGURES
    datasets: Mapping[str, Dataset] = {
        EVERY_TABLE: EveryTable(),
        **{name: ALL_BENCHMARKS[name] for name in (*MULTICLASS, "simulated-multiclass")},
    }
    headers = ("dataset", "method")
    drawing_caption = "Lines are means, bands one standard deviation."

    def own_dataset(self, table: OwnTable) -> Dataset:
        """Make a benchmark of a user's own table."""
        return own_benchmark(table)

    def trials(self, asked: Request[Figure], **_: Any) -> Iterator[Trial]:
        """List the trials; a sensitivity is computed once."""
        is_drawn = asked.name == CORRELATION
        given = {} if not is_drawn else {"grids": asked.figure.fixed.get("grids", GRIDS)}
        if not 2 <= int(given.get("grids", 2)) <= POOL:
            raise InvalidParameter(f"grids must be from 2 to {POOL:,}")
        for dataset in asked.figure.datasets:
            for seed in range(asked.repeats if is_drawn else 1):
                for epsilon in asked.figure.epsilons:
                    for method in asked.figure.methods:
                        setting = asked.setting(dataset, **given)
                        yield Trial(NAME, method, epsilon, seed, setting)

    def runner(self, folder: Path | None) -> RunTrial:
        """Build what runs a trial."""
        return GridQualityRunner(folder, self.datasets).run_trial

    def is_higher_better(self, measure: str) -> bool:
        """Whether larger values are better: of the correlation."""
        return measure == CORRELATION

    def measure_title(self, measure: str) -> str:
        """Name a measure."""
        return MEASURES[measure]

    def label(self, key: Any) -> str:
        """Label a line by what it is."""
        return METHODS[key.method]

    def explanation(self, figure: Figure) -> list[str]:
        """Explain what a score is."""
        return [
            "PrivPfC publishes a grid of cells with noisy counts by class; a cell predicts the "
            "class that has the highest noisy count. The score of a grid is how many records it "
            "is expected to classify correctly, and one of thousands of grids is chosen by it, "
            "privately. The less one record can change the score, the better the choice.",
        ]

    def method_points(self, used: Collection[str]) -> list[str]:
        """Describe what is compared."""
        return [f"{title}." for name, title in METHODS.items() if name in used]

    def about(self, dataset: str, results: Sequence[Result]) -> str:
        """Describe a dataset."""
        benchmark = self.datasets[dataset]
        if not isinstance(benchmark, Benchmark):
            return "The bound holds for every table."
        return f"{benchmark.source}: {benchmark.records:,} rows; the class is {benchmark.target}."

    def how_it_was_run(self, results: Sequence[Result]) -> list[str]:
        """Describe the grids."""
        if "grids" not in results[0].trial.setting:
            return ["Nothing is drawn at random."]
        return [
            f"{int(results[0].trial.setting['grids']):,} grids are drawn from the "
            f"{POOL:,} candidates of a release: at most 0.2 cells for each record times ε of the "
            "counts, which is 60 percent of ε. Scores are computed from true counts.",
        ]


STUDY = GridQualityStudy()
