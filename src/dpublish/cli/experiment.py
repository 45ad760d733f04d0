"""`dpublish experiment`: rerun and compare methods."""

import os
from pathlib import Path
from typing import Any

import click

from dpublish.cli.output import json_option, say, say_json, say_table, show_progress
from dpublish.errors import InvalidParameter, require_count
from dpublish.experiments import EXPERIMENTS
from dpublish.experiments.reproduce.reproduction import Reproduction
from dpublish.experiments.study import Summary, run_experiment

ALL = "all"


@click.command()
@click.argument("name", required=False)
@click.option("--repeats", type=int, help="How often to repeat each trial.")
@click.option(
    "--figure",
    "--part",
    "figure",
    help="Which figure of the experiment: epsilon, pool, shares, ...",
)
@click.option("--data-folder", help="Where public tables are; DPUBLISH_DATA if absent.")
@click.option("--datasets", help="Some of the datasets: adult,bank")
@click.option("--methods", help="Some of the methods: privpfc,pph")
@click.option("--epsilons", help="Some budgets: 0.1,0.5")
@click.option("--classifiers", help="Some of direct,tree,logistic,boosting,svm.")
@click.option("--values", help="Points of the figure's axis: 100,10000,200000")
@click.option(
    "--set",
    "settings",
    multiple=True,
    metavar="NAME=VALUE",
    help="A setting of all trials, such as rows=1000000; a wrong name lists those there are.",
)
@click.option("--data", help="A public table of your own instead of the datasets.")
@click.option("--schema", help="The schema of that table.")
@click.option("--target", help="The column of that table to predict or to count.")
@click.option("--folds", type=int, help="How many of the ten folds to measure on.")
@click.option("--full", is_flag=True, help="With `all`: every repeat and value, for hours.")
@click.option("--pages", help="With `all`: the folder for the pages on research documents.")
@click.option("--jobs", type=int, help="With `all`: how many processes; as many as cores.")
@click.option("--studies", help="With `all`: some of the experiments: kmeans,streams")
@click.option("-o", "--output", default="results", show_default=True, help="Folder for results.")
@json_option
def experiment(
    name: str | None,
    repeats: int | None,
    output: str,
    as_json: bool,
    full: bool,
    pages: str | None,
    jobs: int | None,
    studies: str | None,
    **options: Any,
) -> None:
    """Rerun and compare methods on seeded noise.  Not private: for public data only.

    Results are kept as they come; an interrupted run goes on where it stopped.  Options that
    an experiment does not have are refused.

    `all` runs every figure, table and claim of the research documents again and writes a page
    for each document: short (within half an hour on two cores), or --full.

    \b
    dpublish experiment classification --data-folder data --datasets adult \\
        --methods privpfc,pph --epsilons 0.1,0.5 -o results
    """  # noqa: D301 - click keeps lines after it
    if name is None:
        _list_experiments(as_json)
        return
    if name == ALL:
        given = {key: value for key, value in options.items() if value not in (None, ())}
        _run_all(
            output, as_json=as_json, full=full, pages=pages, jobs=jobs, studies=studies, **given
        )
        return
    if full or pages or jobs or studies:
        raise InvalidParameter("--full, --pages, --jobs and --studies are options of `all`")
    given = {key: _value(key, value) for key, value in options.items() if value not in (None, ())}
    with show_progress() as progress:
        summary = run_experiment(
            name, repeats=repeats, output=Path(output), progress=progress, **given
        )
    if as_json:
        say_json({"headers": list(summary.headers), "rows": [list(r) for r in summary.rows]})
        return
    _show(summary)


def _list_experiments(as_json: bool) -> None:
    if as_json:
        say_json([{"name": n, "title": e.title} for n, e in EXPERIMENTS.items()])
        return
    say_table(["experiment", "what it shows"], [[n, e.title] for n, e in EXPERIMENTS.items()])


def _value(name: str, value: Any) -> Any:
    if name in ("datasets", "methods", "epsilons", "classifiers", "values"):
        return tuple(name.strip() for name in value.split(",") if name.strip())
    if name == "settings":
        return dict(_setting(each) for each in value)
    return value


def _setting(text: str) -> tuple[str, str]:
    name, separator, value = text.partition("=")
    if not (name.strip() and separator and value.strip()):
        raise InvalidParameter(f"--set takes NAME=VALUE, not {text!r}")
    return name.strip(), value.strip()


def _show(summary: Summary) -> None:
    say_table(summary.headers, summary.rows, title=summary.title)
    say()
    for note in summary.notes:
        say(f"note: {note}")
    say(f"page: {summary.page}  (open it in a browser)")
    say(f"plot: {summary.plot}" if summary.plot else "plot: none, for lack of Matplotlib")
    say(f"results: {summary.results}  (seeded noise: NOT PRIVATE)")


def _run_all(
    output: str,
    *,
    as_json: bool,
    full: bool,
    pages: str | None,
    jobs: int | None,
    studies: str | None,
    data_folder: str | None = None,
    **others: Any,
) -> None:
    for option in others:
        raise InvalidParameter(f"--{option.replace('_', '-')} is no option of `all`")
    workers = (os.cpu_count() or 1) if jobs is None else jobs
    require_count(jobs=workers)
    wanted = None if studies is None else _value("methods", studies)
    again = Reproduction.plan(Path(output), is_full=full, data_folder=data_folder, studies=wanted)
    if not as_json:
        say(again.estimate_words(workers))
    with show_progress() as progress:
        verdicts = again.run(Path(pages or f"{output}/reproduce"), workers, progress)
    headers, rows = again.summary(verdicts)
    if as_json:
        say_json({"headers": headers, "rows": rows})
        return
    say_table(headers, rows)
    say(f"pages: {pages or f'{output}/reproduce'}/index.md")
