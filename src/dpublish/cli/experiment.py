"""`dpublish experiment`: rerun and compare methods."""

from pathlib import Path

import click

from dpublish.cli.output import json_option, progress_bar, say, say_json, say_table
from dpublish.evaluation.experiment import run_experiment
from dpublish.evaluation.experiments import EXPERIMENTS


@click.command()
@click.argument("name", required=False)
@click.option("--repeats", type=int, help="How often to repeat each trial.")
@click.option("-o", "--output", default="results", show_default=True, help="Folder for results.")
@json_option
def experiment(name: str | None, repeats: int | None, output: str, as_json: bool) -> None:
    """Rerun and compare methods on seeded noise.  Not private: for public data only.

    Results are kept as they come; an interrupted run goes on where it stopped.
    """
    if name is None and as_json:
        say_json([{"name": n, "title": e.title} for n, e in EXPERIMENTS.items()])
        return
    if name is None:
        say_table(["experiment", "what it shows"], [[n, e.title] for n, e in EXPERIMENTS.items()])
        return
    with progress_bar() as progress:
        summary = run_experiment(name, repeats=repeats, output=Path(output), progress=progress)
    if as_json:
        say_json({"headers": list(summary.headers), "rows": [list(r) for r in summary.rows]})
        return
    say_table(summary.headers, summary.rows, title=summary.title)
    say()
    say(f"plot: {summary.plot}")
    say(f"results: {summary.results}  (seeded noise: NOT PRIVATE)")
