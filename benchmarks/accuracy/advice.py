"""Is the method that `dpublish advise` names the best in hindsight?  Five tables, 19 goals.

Every method of ours that can serve a goal publishes from 80 % of a table, several times with
other seeds, and is measured in the goal's own unit; smaller is better:

- rows: total variation distance of two columns, on average over all pairs;
- counts: mean absolute error of 900 counts about the columns of the goal: cells that records are
  in, ranges of all columns, and ranges of one of them;
- classify, model: share of wrong predictions on the rows that were kept back; for a number, the
  root of the mean squared error as a part of the column's bounds;
- clusters: mean squared distance from the nearest center, in the box from -1 to 1 (NICV);
- statistics: mean distance of means and medians by group from the truth, in standard deviations
  of the column, over groups of at least 100 records.

The advice is asked for with the schema, the number of rows and epsilon, as an owner would; no
measurement enters it.  Results are kept in a file, and an interrupted run goes on.

NOT PRIVATE: everything here looks at true rows, and noise is seeded.

Run: .venv/bin/python benchmarks/accuracy/advice.py [--data-folder DATA] [-o results.jsonl]
"""

import argparse
import json
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from itertools import combinations
from math import prod, sqrt
from pathlib import Path
from statistics import fmean, stdev
from time import process_time
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from numpy.typing import NDArray
from synth_measures import marginal

from dpublish.core.prediction import encode_rows
from dpublish.core.registry import make_method
from dpublish.core.released import Release
from dpublish.data.box import Box
from dpublish.data.schema import Schema, column
from dpublish.data.sources import open_table
from dpublish.datasets.benchmarks import ALL_BENCHMARKS, find_data_folder
from dpublish.errors import InvalidParameter, InvalidQuery, UnreadableData
from dpublish.evaluation.metrics.clustering import normalized_intra_cluster_variance
from dpublish.evaluation.sklearn_adapter import fit
from dpublish.evaluation.workload import (
    Workload,
    answers,
    random_ranges,
    ranges_between_records,
    true_counts,
)
from dpublish.planning.advise import advise
from dpublish.planning.goals import Goal
from dpublish.privacy.budget import Budget
from dpublish.randomness import plain_generator, seeded

GOALS = {
    "adult": (
        "rows",
        "classify:income",
        "counts:age,education,sex",
        "statistics:hours_per_week,education",
        "clusters",
    ),
    "bank": ("rows", "classify:y", "model:y", "counts:age,job,balance,month"),
    "acs": ("rows", "classify:income", "counts:PUMA,AGEP,SEX,INDP_CAT,EDU"),
    "nltcs": ("rows", "classify:a00", "counts:a00,a01,a02,a03,a04,a05"),
    "gowalla": ("rows", "counts:lat,lon", "clusters:lat,lon", "counts:lat"),
}
"""What is asked of each table."""
EPSILONS = ("0.1", "1")
WITHIN = 1.1
BOOSTED = "synth, boosting"
_QUERIES = 300
_LEAST_GROUP = 100
_SPLIT_SEED, _WORKLOAD_SEED = 80_20, 5
_PART = 0.8
_MOST_DENSE = 2_000_000
_CLUSTERED = ("kmeans", "dplloyd", "dplloyd-impr", "eugkm", "ugkm", "mkm", "hybrid", "gkm")
_CLASSIFIERS = (
    *("privpfc", "model", "diffpid3", "diffgen", "pph", "privbayes", "majority", "privlocal"),
    *("private-erm", BOOSTED),
)
_FITTED = (
    *("model", "privgene", "privlocal", "private-erm", "output-perturbation", "private-svm"),
    *("functional", "gupt"),
)


class Setup(NamedTuple):
    """A method and its settings, as a command line writes them."""

    method: str
    settings: tuple[tuple[str, str], ...] = ()

    @classmethod
    def of(cls, method: str, **settings: str) -> "Setup":
        """Set a method up, with settings in an order of their own."""
        return cls(method, tuple(sorted(settings.items())))

    @property
    def label(self) -> str:
        """The name, with a setting that another line of the same goal has otherwise."""
        return self.method + (" (threshold)" if "threshold" in dict(self.settings) else "")


@dataclass(frozen=True, eq=False)
class Data:
    """A public table with its schema, split into rows to publish and rows to test on."""

    name: str
    schema: Schema
    train: pa.Table
    test: pa.Table

    @cached_property
    def codes(self) -> dict[str, NDArray[np.int64]]:
        """The rows to publish, as codes of the schema's cells."""
        return encode_rows(self.train, self.schema, self.schema.names)

    def sizes(self, names: Sequence[str]) -> tuple[int, ...]:
        """Return the number of cells of each of the columns."""
        return tuple(self.schema[name].size for name in names)


# --- Tables ----------------------------------------------------------------------------------


@cache
def load(name: str, folder: Path) -> Data:
    """Read a table and split it, always in the same way."""
    schema, rows = _READ[name](folder)
    order = plain_generator(_SPLIT_SEED).permutation(rows.num_rows)
    cut = int(_PART * rows.num_rows)
    train, test = (rows.take(np.sort(part)) for part in (order[:cut], order[cut:]))
    return Data(name, schema, train, test)


def _benchmark(name: str) -> Callable[[Path], tuple[Schema, pa.Table]]:
    def read(folder: Path) -> tuple[Schema, pa.Table]:
        known = ALL_BENCHMARKS[name]
        schema = known.schema(folder)
        return schema, known.rows(folder).select(schema.names)

    return read


def _read_nltcs(folder: Path) -> tuple[Schema, pa.Table]:
    names = [f"a{number:02}" for number in range(16)]
    schema = Schema(tuple(column(name, "category", values=["0", "1"]) for name in names))
    return schema, pq.read_table(folder / "privbayes_nltcs.parquet", columns=names)


def _read_gowalla(folder: Path) -> tuple[Schema, pa.Table]:
    rows = pq.read_table(folder / "gowalla_checkins_1000users.parquet")
    schema = Schema(
        (
            column("lat", "numeric", bounds=[-90, 90], bins=180),
            column("lon", "numeric", bounds=[-180, 180], bins=180),
            column("hour", "integer", bounds=[0, 23]),
            column("weekday", "integer", bounds=[0, 6]),
        )
    )
    made = {"hour": pc.hour(rows["time_utc"]), "weekday": pc.day_of_week(rows["time_utc"])}
    return schema, pa.table({"lat": rows["lat"], "lon": rows["lon"], **made})


_READ = {
    "adult": _benchmark("adult-all"),
    "bank": _benchmark("bank"),
    "acs": _benchmark("acs"),
    "nltcs": _read_nltcs,
    "gowalla": _read_gowalla,
}


# --- Who competes ----------------------------------------------------------------------------


def competitors(data: Data, goal: Goal) -> list[Setup]:
    """List our methods that can serve a goal; those that refuse it drop out later."""
    names = goal.columns or data.schema.names
    if goal.task in ("classify", "model"):
        return _predictors(goal)
    if goal.task == "clusters":
        listed = {"columns": ",".join(goal.columns)} if goal.columns else {}
        return [Setup.of(name, n_clusters="5", **listed) for name in _CLUSTERED]
    if goal.task == "statistics":
        return [
            *(Setup.of(name, columns=",".join(names)) for name in ("synth", "histogram")),
            Setup.of("synth"),
        ]
    return _tables(data, names, is_named=bool(goal.columns))


def _predictors(goal: Goal) -> list[Setup]:
    names = _FITTED if goal.task == "model" else _CLASSIFIERS
    return [Setup.of(name, target=goal.columns[0]) for name in names]


def _tables(data: Data, names: Sequence[str], *, is_named: bool) -> list[Setup]:
    """List methods for rows and counts; those that count all cells only where there are few."""
    listed = {"columns": ",".join(names)}
    some = dict(listed) if is_named else {}
    found = [
        Setup.of(name, **some)
        for name in ("synth", "privbayes", "dpcopula-hybrid", "dpcopula", "marginals")
    ]
    if len(names) <= 6:
        found += [Setup.of("filter-priority", **listed), Setup.of("p-hp", **listed)]
        found.append(Setup.of("histogram", threshold="auto", **listed))
    if prod(data.sizes(names)) <= _MOST_DENSE:
        found += [Setup.of(name, **listed) for name in ("histogram", "privelet")]
    if len(names) <= 3:
        found += [Setup.of(name, **listed) for name in ("ug", "ag", "psd")]
    return found


# --- Measures --------------------------------------------------------------------------------


def _pairs(data: Data, goal: Goal, release: Release, seed: int) -> float:
    """Compare all pairs of columns of synthetic rows with the truth."""
    names = goal.columns or data.schema.names
    rows = release.rows(data.train.num_rows, seed=seed)
    drawn = encode_rows(rows, data.schema, names)
    sizes = data.sizes(names)
    ours, true = (np.array([codes[name] for name in names]) for codes in (drawn, data.codes))
    return fmean(
        float(np.abs(marginal(ours, sizes, pair) - marginal(true, sizes, pair)).sum()) / 2
        for pair in combinations(range(len(names)), 2)
    )


def _workloads(data: Data, goal: Goal) -> list[Workload]:
    """Draw the counts to answer: cells, ranges of all columns, ranges of one column."""
    names = goal.columns
    rng = plain_generator(_WORKLOAD_SEED)
    chosen = rng.integers(0, data.train.num_rows, _QUERIES)
    cells = np.array([data.codes[name][chosen] for name in names]).T
    part = _QUERIES // len(names)
    return [
        Workload(tuple(names), cells, cells + 1),
        ranges_between_records(data.codes, names, _QUERIES, rng),
        *(random_ranges(data.schema, [name], part, rng) for name in names),
    ]


def _counted(data: Data, goal: Goal, release: Release, seed: int) -> float:
    """Return the mean absolute error of counts."""
    errors = [
        np.abs(answers(release, workload, seed) - true_counts(data.codes, workload))
        for workload in _workloads(data, goal)
    ]
    return float(np.concatenate(errors).mean())


def _wrong(data: Data, goal: Goal, release: Release, seed: int) -> float:
    """Return the share of wrong predictions; of a number, its root mean squared error."""
    target = goal.columns[0]
    predicted: Any = release
    if isinstance(release, _Boosted):
        codes = release.predict(data.test)
        return float((codes != encode_rows(data.test, data.schema, [target])[target]).mean())
    found = predicted.predict(data.test).to_numpy(zero_copy_only=False)
    truth = data.test[target].to_numpy(zero_copy_only=False)
    return float((found.astype(str) != truth.astype(str)).mean())


class _Boosted:
    """Boosting that learned from synthetic rows."""

    def __init__(self, release: Release, data: Data, target: str, seed: int) -> None:
        rows = release.rows(20_000, seed=seed)
        self._fitted = fit(rows, data.schema, target, "boosting", seed=seed % 2**31)

    def predict(self, rows: pa.Table) -> NDArray[np.int64]:
        return self._fitted.predict(rows)


def _distance(data: Data, goal: Goal, release: Release, seed: int) -> float:
    """Return the mean squared distance of the rows from the nearest center."""
    centers: Any = release
    box: Box = centers.box
    points = np.array([data.train[name].to_numpy(zero_copy_only=False) for name in box.names]).T
    return normalized_intra_cluster_variance(
        box.scale(points.astype(float)), box.scale(centers.centers)
    )


def _by_group(data: Data, goal: Goal, release: Release, seed: int) -> float:
    """Return how far means and medians by group are off, in standard deviations."""
    number, group = goal.columns
    true = _grouped(data.train, number, group)
    found = _released_groups(release, number, group, seed)
    deviation = float(np.std(data.train[number].to_numpy()))
    middle = sum(data.schema[number].bounds) / 2  # what anyone knows where nothing was published
    errors = []
    for label, (count, *truth) in true.items():
        if count >= _LEAST_GROUP:
            guess = [middle if each is None else each for each in found.get(label, (None, None))]
            errors += [abs(a - b) / deviation for a, b in zip(guess, truth, strict=True)]
    return fmean(errors)


def _grouped(rows: pa.Table, number: str, group: str) -> dict[str, tuple[float, float, float]]:
    labels, values = (rows[name].to_numpy(zero_copy_only=False) for name in (group, number))
    return {
        str(label): (
            float((labels == label).sum()),
            float(values[labels == label].mean()),
            float(np.median(values[labels == label])),
        )
        for label in set(labels)
    }


def _released_groups(
    release: Release, number: str, group: str, seed: int
) -> dict[str, tuple[float | None, float | None]]:
    shown: Any = release
    if hasattr(shown, "value"):
        labels = shown.schema[group].axis().labels
        return {
            label: tuple(
                shown.value(f"{what}({number})", {group: label}).value
                for what in ("mean", "median")
            )
            for label in labels
        }
    rows = _grouped(release.rows(seed=seed), number, group)
    return {label: (mean, median) for label, (_, mean, median) in rows.items()}


MEASURES: Mapping[str, tuple[str, Callable[[Data, Goal, Release, int], float]]] = {
    "rows": ("TV of pairs", _pairs),
    "counts": ("error of a count", _counted),
    "classify": ("wrong", _wrong),
    "model": ("wrong", _wrong),
    "clusters": ("NICV", _distance),
    "statistics": ("error, in deviations", _by_group),
}


# --- Runs ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Line:
    """One release to make: who, of what, for which goal, at which epsilon, and which repeat."""

    table: str
    goal: str
    epsilon: str
    setup: Setup
    repeat: int

    @property
    def key(self) -> str:
        """What the line is known by in the file of results."""
        return json.dumps([self.table, self.goal, self.epsilon, self.setup, self.repeat])


def measure(data: Data, goal: Goal, line: Line) -> float | None:
    """Release once and measure; None if the method is not for this table or goal."""
    seed = 1_000 + line.repeat
    name = "synth" if line.setup.method == BOOSTED else line.setup.method
    try:
        method = make_method(name, dict(line.setup.settings))
        release: Any = method.release(
            open_table(data.train, data.schema),
            budget=Budget.seeded(line.epsilon),
            rng=seeded(seed),
        )
        if line.setup.method == BOOSTED:
            release = _Boosted(release, data, goal.columns[0], seed)
        return MEASURES[goal.task][1](data, goal, release, seed)
    except (InvalidParameter, InvalidQuery):
        return None


def advised(data: Data, goal: Goal, epsilon: str) -> Setup:
    """Ask for advice with what is public."""
    choice = advise(data.schema, goal, n_records=data.train.num_rows, epsilon=epsilon).choices[0]
    return Setup(choice.name, tuple(sorted(choice.settings.items())))


class Kept:
    """Results in a file, so that an interrupted run goes on."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self.found: dict[str, dict[str, Any]] = {}
        if path.is_file():
            for text in path.read_text("utf-8").splitlines():
                each = json.loads(text)
                self.found[each["key"]] = each

    def of(self, line: Line, run: Callable[[], float | None]) -> float | None:
        """Return what was measured before, or run it and keep it."""
        if line.key not in self.found:
            start = process_time()
            value = run()
            kept = {"key": line.key, "value": value, "seconds": process_time() - start}
            self.found[line.key] = kept
            with self._path.open("a", encoding="utf-8") as file:
                file.write(json.dumps(kept) + "\n")
        value = self.found[line.key]["value"]
        return None if value is None else float(value)


class Row(NamedTuple):
    """One line of the table."""

    table: str
    goal: str
    epsilon: str
    advised: str
    value: float
    best: str
    best_value: float
    error: float
    competitors: int

    @property
    def ratio(self) -> float:
        """How many times the best figure the advised method has."""
        return self.value / self.best_value


def compare(
    data: Data, goal: Goal, epsilon: str, repeats: int, kept: Kept, *, is_loud: bool
) -> Row:
    """Run all competitors on one goal at one epsilon."""
    choice = advised(data, goal, epsilon)
    setups = competitors(data, goal)
    if choice not in setups:
        setups.append(choice)
    means: dict[Setup, float] = {}
    errors: dict[Setup, float] = {}
    for setup in setups:
        values = list(_values(data, goal, epsilon, setup, repeats, kept))
        if values:
            means[setup] = fmean(values)
            errors[setup] = stdev(values) / sqrt(len(values)) if len(values) > 1 else 0.0
            if is_loud:
                print(f"  {data.name} {goal} {epsilon} {setup.label}: {means[setup]:.4f}")
    best = min(means, key=lambda setup: means[setup])
    return Row(
        *(data.name, str(goal), epsilon, choice.label, means[choice]),
        *(best.label, means[best], errors[choice], len(means)),
    )


def _values(
    data: Data, goal: Goal, epsilon: str, setup: Setup, repeats: int, kept: Kept
) -> Iterator[float]:
    for repeat in range(repeats):
        line = Line(data.name, str(goal), epsilon, setup, repeat)
        value = kept.of(line, lambda line=line: measure(data, goal, line))  # type: ignore[misc]
        if value is None:
            return
        yield value


def _write(rows: Sequence[Row]) -> str:
    """Write the table as Markdown."""
    lines = [
        "| table | goal | ε | measure | advised | value | best in hindsight | value | ratio |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for row in rows:
        measured = MEASURES[row.goal.partition(":")[0]][0]
        best = "the same" if row.best == row.advised else f"`{row.best}`"
        value = f"{_number(row.value)} ± {_number(row.error)}"
        cells = (
            *(row.table, f"`{row.goal}`", row.epsilon, measured, f"`{row.advised}`", value),
            *(best, _number(row.best_value), f"{row.ratio:.2f}"),
        )
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)


def _number(value: float) -> str:
    return f"{value:.1f}" if value >= 10 else f"{value:.3g}"


def main() -> None:
    options = _options()
    folder = find_data_folder(options.data_folder)
    if folder is None:
        sys.exit("skipped: name the folder of public tables with --data-folder or DPUBLISH_DATA")
    path = Path(options.output or tempfile.mkdtemp(prefix="dpublish-advice-") + "/advice.jsonl")
    kept = Kept(path)
    rows = []
    for name in options.tables:
        try:
            data = load(name, folder)
        except (UnreadableData, FileNotFoundError) as error:
            sys.exit(f"skipped: {name} cannot be read from {folder} ({type(error).__name__})")
        for text in GOALS[name]:
            goal = Goal.parse(text, data.schema)
            if options.goals and goal.task not in options.goals:
                continue
            for epsilon in options.epsilons:
                row = compare(data, goal, epsilon, options.repeats, kept, is_loud=options.verbose)
                rows.append(row)
                if options.verbose:
                    print(f"{name} {text} {epsilon}: {row.advised}, best {row.best}", row.ratio)
    print(_write(rows))
    good = sum(row.ratio <= WITHIN for row in rows)
    seconds = sum(float(each["seconds"]) for each in kept.found.values())
    print(f"\nRESULT within_10_percent={good} of={len(rows)} cpu_seconds={seconds:.0f}")


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Advice beside the best method in hindsight")
    parser.add_argument("--data-folder", help="where the tables are; DPUBLISH_DATA if absent")
    parser.add_argument("--repeats", type=int, default=5, help="releases of each method")
    parser.add_argument("--tables", nargs="+", choices=GOALS, default=list(GOALS))
    parser.add_argument("--goals", nargs="+", choices=MEASURES, help="tasks; all unless named")
    parser.add_argument("--epsilons", nargs="+", default=list(EPSILONS))
    parser.add_argument("-o", "--output", help="file that keeps results")
    parser.add_argument("--verbose", action="store_true", help="print every method's figure")
    return parser.parse_args()


if __name__ == "__main__":
    main()
