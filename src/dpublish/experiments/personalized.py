"""How much do counts and models gain when each person brings her own epsilon?

After chapter 5 of "Differentially private data release and analytics": people accept different
epsilons, drawn independently of their records, and all of each person's number is spent on one
release.  How many people there are at each level is public (the mode `frame`).
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from dpublish.datasets.benchmarks import BENCHMARKS, find_data_folder
from dpublish.errors import InvalidParameter, require_known
from dpublish.experiments import personalized_page, personalized_summary
from dpublish.experiments.experiment import Plan, Result, ResultTable, Trial
from dpublish.experiments.options import choose, present_datasets, write_figure
from dpublish.experiments.page import Page
from dpublish.experiments.personalized_laboratory import PersonalLaboratory
from dpublish.experiments.personalized_parts import (
    INNERS,
    NAME,
    NOISE_FREE,
    OWN,
    PARTS,
    Part,
)

Place = Mapping[str, int | str]


def plan(
    repeats: int,
    *,
    part: str = "count",
    data_folder: str | Path | None = None,
    datasets: Sequence[str] | None = None,
    methods: Sequence[str] | None = None,
    classifiers: Sequence[str] | None = None,
) -> Plan:
    """List the trials of one part; datasets that are not in the data folder are left out.

    `classifiers` are the methods that fit models within the personal ones.
    """
    require_known("part", part, PARTS)
    chosen = PARTS[part]
    names, _ = choose(
        methods,
        None,
        usual_methods=chosen.methods,
        usual_epsilons=("1",),
        known=chosen.methods,
    )
    folder = find_data_folder(data_folder)
    present, notes = present_datasets(
        datasets or chosen.datasets,
        BENCHMARKS,
        lambda name: BENCHMARKS[name].missing_file(folder),
        folder,
    )
    whole = replace(
        chosen, methods=names, datasets=tuple(present), inners=_inners(chosen, classifiers)
    )
    laboratory = PersonalLaboratory(folder)
    return Plan(tuple(_trials(part, whole, repeats)), laboratory.run_trial, tuple(notes))


def table(results: Sequence[Result]) -> ResultTable:
    """Lay the figures out: a row for each dataset, distribution, measure and method."""
    return personalized_summary.table(results)


def plot(results: Sequence[Result], path: Path) -> Path | None:
    """Draw all panels into one figure."""
    return write_figure(personalized_page.figure(results), path)


def page(results: Sequence[Result], notes: Sequence[str]) -> Page:
    """Tell what was done and found to somebody who has not read the thesis."""
    return personalized_page.page(results, notes)


def _inners(part: Part, asked: Sequence[str] | None) -> tuple[str, ...]:
    if asked is None:
        return part.inners
    if part.model is None:
        raise InvalidParameter("counts have no classifiers")
    for name in asked:
        require_known("classifier", name, INNERS)
    if not asked:
        raise InvalidParameter("name at least one classifier")
    return tuple(asked)


def _trials(name: str, part: Part, repeats: int) -> Iterator[Trial]:
    """List the trials; those on the same people come together, so that they are drawn once."""
    for dataset in part.datasets:
        for preferences in part.preferences:
            place = {"part": name, "dataset": dataset, "preferences": preferences}
            moved = part.key in ("levels", "rows")
            for value in part.values if moved else (0,):
                here: Place = place | ({part.key: value} if moved else {})
                for seed in range(repeats):
                    yield from _round(part, here, seed)


def _round(part: Part, place: Place, seed: int) -> Iterator[Trial]:
    """List the trials on the same people: every method, at every threshold if it has one."""
    if part.model is not None:
        yield Trial(NAME, NOISE_FREE, OWN, seed, place)
    for inner in part.inners or ("",):
        fitted = {"inner": inner} if inner else {}
        for method in part.methods:
            if part.key in ("threshold", "groups") and part.moves(method):
                for value in part.values:
                    yield Trial(NAME, method, OWN, seed, {**place, **fitted, part.key: value})
            else:
                yield Trial(NAME, method, OWN, seed, {**place, **fitted})
