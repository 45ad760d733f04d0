"""How far are counts from the truth when a changing histogram is published again and again?

After H. Li et al., Differentially Private Histogram Publication for Dynamic Datasets (CIKM
2015): the mean absolute error of random range counts over all steps, for every method that
publishes a stream, on public streams and on streams that are simulated.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from dpublish.datasets.benchmarks import find_data_folder
from dpublish.datasets.stream_sets import STREAM_SETS
from dpublish.errors import require_known
from dpublish.experiments import streams_page, streams_summary
from dpublish.experiments.experiment import Plan, Result, ResultTable, Trial
from dpublish.experiments.options import choose, present_datasets, write_figure
from dpublish.experiments.page import Page
from dpublish.experiments.streams_laboratory import Laboratory
from dpublish.experiments.streams_parts import NAME, PARTS, Part


def plan(
    repeats: int,
    *,
    part: str = "epsilon",
    data_folder: str | Path | None = None,
    datasets: Sequence[str] | None = None,
    methods: Sequence[str] | None = None,
    epsilons: Sequence[str] | None = None,
) -> Plan:
    """List the trials of one part; streams that are not in the data folder are left out."""
    require_known("part", part, PARTS)
    chosen = PARTS[part]
    names, amounts = choose(
        methods,
        epsilons,
        usual_methods=chosen.methods,
        usual_epsilons=chosen.epsilons,
        known=chosen.methods,
    )
    folder = find_data_folder(data_folder)
    present, notes = present_datasets(
        datasets or chosen.datasets,
        chosen.datasets,
        lambda name: STREAM_SETS[name].missing_file(folder),
        folder,
    )
    whole = replace(chosen, methods=names, epsilons=amounts, datasets=tuple(present))
    return Plan(tuple(_trials(part, whole, repeats)), Laboratory(folder).run_trial, tuple(notes))


def table(results: Sequence[Result]) -> ResultTable:
    """Lay the errors out: a row for each stream and method, the best of a guarantee marked."""
    return streams_summary.table(results)


def plot(results: Sequence[Result], path: Path) -> Path | None:
    """Draw all panels into one figure."""
    return write_figure(streams_page.figure(results), path)


def page(results: Sequence[Result], notes: Sequence[str]) -> Page:
    """Tell what was done and found to somebody who has not read the paper."""
    return streams_page.page(results, notes)


def _trials(name: str, part: Part, repeats: int) -> Iterator[Trial]:
    """List the trials; those on the same stream come together, so that it is made once."""
    for dataset in part.datasets:
        for value in part.values if part.key else (0,):
            moved = {part.key: value} if part.key else {}
            place: dict[str, int | str] = {"part": name, "dataset": dataset, **moved}
            for seed in range(repeats):
                for epsilon in part.epsilons:
                    for method in part.methods:
                        yield Trial(NAME, method, epsilon, seed, place)
