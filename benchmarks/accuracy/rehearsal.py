"""Does a rehearsal predict what a later release gives?  On UCI Adult and UCI Bank.

Of each table, four fifths of the rows are private and one fifth is kept back.  An earlier release
(`synth`, without a target; `1+target` is one of epsilon 1 that prefers tables with the class) is
made from the private rows.  `rehearse` sees that release and the schema alone, and predicts the
accuracy of later releases; then these are made from the private rows, and measured in the same
way on true rows.  A prediction holds if it is within 2 points (0.02, of shares) or within 10 % of
what later releases give; both are medians of the repeats.

NOT PRIVATE: it looks at true rows, to judge the predictions.

Run: DPUBLISH_DATA=... .venv/bin/python benchmarks/accuracy/rehearsal.py [--earlier 1 1+target]
"""

import argparse
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa

from dpublish.core.registry import make_method
from dpublish.core.released import Release
from dpublish.data.schema import Schema
from dpublish.data.sources import open_table
from dpublish.datasets.benchmarks import ALL_BENCHMARKS, find_data_folder
from dpublish.planning.measures import measurer_class
from dpublish.planning.rehearse import Stage, rehearse
from dpublish.planning.stand_in import read_stand_in
from dpublish.privacy.budget import Budget
from dpublish.privacy.epsilon import parse_epsilon
from dpublish.randomness import seeded

EPSILONS = ("0.1", "0.5", "1")
CLUSTERS = {
    "adult": ("age,hours_per_week", "age,education_num,capital_gain,hours_per_week"),
    "bank": ("age,balance", "age,balance,day,duration"),
}
POINTS, PART = 0.02, 0.1
_IN_POINTS = {"wrong", "auc", "tv"}
_EARLIER_SEED, _LATER_SEED = 99, 7


class Case(NamedTuple):
    """One prediction beside what later releases gave."""

    dataset: str
    method: str
    epsilon: str
    measure: str
    is_main: bool
    predicted: float
    true: float

    @property
    def holds(self) -> bool:
        """Whether the prediction is near enough."""
        apart = abs(self.predicted - self.true)
        return (self.measure in _IN_POINTS and apart <= POINTS) or apart <= PART * self.true


def methods_of(dataset: str, target: str) -> list[str]:
    """List the methods that are rehearsed, as they are written."""
    found = [f"privpfc target={target}", f"model target={target}"]
    found += [f"kmeans n_clusters=4 columns={names}" for names in CLUSTERS[dataset]]
    return [*found, "synth"]


def later_releases(written: str, schema: Schema, rows: pa.Table, repeats: int) -> dict[Any, Any]:
    """Make later releases from private rows, and measure them on true ones."""
    name, *pairs = written.split()
    method = make_method(name, dict(pair.split("=", 1) for pair in pairs))
    private = read_stand_in(rows, schema, method.reads(schema))
    kind = measurer_class(method, schema)
    stage = Stage.of(
        method, schema, private, kind, repeats=repeats, seed=_LATER_SEED, progress=None
    )
    found = stage.rehearse([parse_epsilon(one) for one in EPSILONS], None)
    return {point.epsilon: point.figures for point in found.points}


def earlier_release(schema: Schema, rows: pa.Table, target: str, written: str) -> Release:
    """Publish synthetic rows from the private part of a table."""
    epsilon, _, prefers = written.partition("+")
    private = read_stand_in(rows, schema, schema.names).rows
    table = open_table(private, schema)
    method = make_method("synth", {prefers: target} if prefers else {})
    return method.release(table, budget=Budget.seeded(epsilon), rng=seeded(_EARLIER_SEED))


def cases(dataset: str, earlier: Sequence[str], repeats: int) -> Iterator[tuple[str, Case]]:
    """Compare predictions with what later releases give, for every method and epsilon."""
    folder = find_data_folder(None)
    benchmark = ALL_BENCHMARKS[dataset]
    schema, rows = benchmark.schema(folder), benchmark.rows(folder)
    rows = rows.select(list(schema.names))
    releases = {one: earlier_release(schema, rows, benchmark.target, one) for one in earlier}
    for written in methods_of(dataset, benchmark.target):
        truth = later_releases(written, schema, rows, repeats)
        for known, release in releases.items():
            found = rehearse(written, schema, stand_in=release, epsilons=EPSILONS, repeats=repeats)
            for point, text in zip(found.points, EPSILONS, strict=True):
                for number, one in enumerate(found.measures):
                    values = point.figures[one.name], truth[point.epsilon][one.name]
                    medians = [each.median for each in values]
                    yield known, Case(dataset, written, text, one.name, not number, *medians)


def show(title: str, found: Sequence[Case]) -> None:
    """Print a table in Markdown, and how many predictions hold."""
    print(f"\n{title}\n")
    print("| table | method | epsilon | measure | predicted | later releases | off by | holds |")
    print("|---|---|---:|---|---:|---:|---:|---|")
    for one in found:
        off = one.predicted - one.true
        print(
            f"| {one.dataset} | {one.method} | {one.epsilon} | {one.measure} "
            f"| {one.predicted:.4f} | {one.true:.4f} | {off:+.4f} ({off / one.true:+.0%}) "
            f"| {'yes' if one.holds else '**no**'} |"
        )
    held = sum(one.holds for one in found)
    print(f"\n{held} of {len(found)} hold ({held / max(len(found), 1):.0%})", flush=True)


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--datasets", nargs="+", default=list(CLUSTERS), choices=list(CLUSTERS))
    parser.add_argument("--earlier", nargs="+", default=["1", "1+target"])
    parser.add_argument("--repeats", type=int, default=5)
    options = parser.parse_args()
    folder = find_data_folder(None)
    if folder is None or not Path(folder).is_dir():
        sys.exit("set DPUBLISH_DATA to the folder of the public tables")
    every = []
    for dataset in options.datasets:
        for earlier, case in cases(dataset, options.earlier, options.repeats):
            every.append((earlier, case))
            print(earlier, *case, file=sys.stderr, flush=True)
    for earlier in options.earlier:
        here = [case for known, case in every if known == earlier]
        show(
            f"Earlier release: synth, epsilon {earlier}; the goal's own measure",
            [case for case in here if case.is_main],
        )
        show("The other measures", [case for case in here if not case.is_main])


if __name__ == "__main__":
    main()
