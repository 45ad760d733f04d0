"""How good are range counts from a synthetic table?

The evaluation of DPCopula (H. Li, L. Xiong and X. Jiang, EDBT 2014) on simulated tables with
Gaussian dependence and on four numbers of UCI Adult: the error of random range counts of every
method that publishes a table of many columns.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from dpublish.datasets.benchmarks import find_data_folder
from dpublish.datasets.number_tables import NUMBER_TABLES
from dpublish.errors import require_known
from dpublish.experiments import copula_page, copula_summary
from dpublish.experiments.copula_laboratory import Laboratory
from dpublish.experiments.copula_parts import (
    NAME,
    PARTS,
    REFERENCES,
    SECONDS,
    Part,
    available_methods,
)
from dpublish.experiments.experiment import Plan, Result, ResultTable, Trial
from dpublish.experiments.options import choose, present_datasets, write_figure
from dpublish.experiments.page import Page


def plan(
    repeats: int,
    *,
    part: str = "epsilon",
    data_folder: str | Path | None = None,
    datasets: Sequence[str] | None = None,
    methods: Sequence[str] | None = None,
    epsilons: Sequence[str] | None = None,
) -> Plan:
    """List the trials of one part; tables that are not in the data folder are left out.

    A method that refuses a table from public facts is planned and told of all the same, so
    that the page shows who cannot run where.
    """
    require_known("part", part, PARTS)
    chosen = PARTS[part]
    known = available_methods()
    names, amounts = choose(
        methods,
        epsilons,
        usual_methods=[name for name in chosen.methods if name in known],
        usual_epsilons=chosen.epsilons,
        known=known,
    )
    folder = find_data_folder(data_folder)
    # Only a simulated table can be had with other columns and rows.
    is_simulated = chosen.key in ("columns", "records")
    present, notes = present_datasets(
        datasets or chosen.datasets,
        chosen.datasets if is_simulated else NUMBER_TABLES,
        lambda name: NUMBER_TABLES[name].missing_file(folder),
        folder,
    )
    whole = replace(chosen, methods=names, epsilons=amounts, datasets=tuple(present))
    trials = tuple(_trials(part, whole, repeats))
    laboratory = Laboratory(folder)
    notes += _refusals(trials, laboratory)
    return Plan(trials, laboratory.run_trial, tuple(notes))


def table(results: Sequence[Result]) -> ResultTable:
    """Lay the errors out: a row for each dataset and method, mean ± deviation."""
    return copula_summary.table(results)


def plot(results: Sequence[Result], path: Path) -> Path | None:
    """Draw all panels into one figure."""
    return write_figure(copula_page.figure(results), path)


def page(results: Sequence[Result], notes: Sequence[str]) -> Page:
    """Tell what was done and found to somebody who has not read the paper."""
    return copula_page.page(results, notes)


def _trials(name: str, part: Part, repeats: int) -> Iterator[Trial]:
    """List place by place the references, then all methods once before any of them twice.

    References are asked the same questions as the methods; each repeat asks others.
    """
    for dataset in part.datasets:
        for place in _places({"part": name, "dataset": dataset}, part):
            for seed in range(repeats):
                if part.measure != SECONDS:
                    for reference in REFERENCES:
                        yield Trial(NAME, reference, "none", seed, place)
                for epsilon in part.epsilons:
                    for method in part.methods:
                        yield Trial(NAME, method, epsilon, seed, place)


def _places(plain: dict[str, int | str], part: Part) -> Iterator[dict[str, int | str]]:
    if part.key is None:
        yield plain
        return
    for value in part.values:
        yield {**plain, part.key: value}


def _refusals(trials: Sequence[Trial], laboratory: Laboratory) -> list[str]:
    """Say once for each reason which method cannot run on which table."""
    found: dict[str, None] = {}
    for trial in trials:
        if trial.seed == 0:
            reason = laboratory.refusal(trial)
            if reason is not None:
                found[f"{trial.method} cannot run on {_name(trial)}: {reason}"] = None
    return list(found)


def _name(trial: Trial) -> str:
    given = trial.setting
    size = f" with {given['columns']} columns" if "columns" in given else ""
    return f"{given['dataset']}{size}"
