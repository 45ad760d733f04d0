"""`dpublish experiment`: rerun and compare methods."""

from pathlib import Path
from typing import Any

import click

from dpublish.cli.output import json_option, say, say_json, say_table, show_progress
from dpublish.errors import InvalidParameter
from dpublish.experiments import EXPERIMENTS
from dpublish.experiments.study import Summary, run_experiment


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
@click.option("-o", "--output", default="results", show_default=True, help="Folder for results.")
@json_option
def experiment(
    name: str | None, repeats: int | None, output: str, as_json: bool, **options: Any
) -> None:
    """Rerun and compare methods on seeded noise.  Not private: for public data only.

    Results are kept as they come; an interrupted run goes on where it stopped.  Options that
    an experiment does not have are refused.

    \b
    dpublish experiment classification --data-folder data --datasets adult \\
        --methods privpfc,pph --epsilons 0.1,0.5 -o results
    """  # noqa: D301 - click keeps lines after it
    if name is None:
        _list_experiments(as_json)
        return
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
