"""Run the list of privacy mutants: `make mutants`, or `PYTHONPATH=tests python -m mutants`."""

import sys
import time

import click

from mutants.mutant import ROOT, Mutant, read_mutants
from mutants.runner import Outcome, Runner, processor_minutes


@click.command()
@click.option("--only", multiple=True, metavar="TEXT", help="Rows whose title or name has TEXT.")
@click.option("--area", multiple=True, help="Rows of this file.")
@click.option("--list", "only_list", is_flag=True, help="Print the rows and run nothing.")
@click.option("--jobs", default=2, show_default=True, help="Mutants that are tested at once.")
def main(only: tuple[str, ...], area: tuple[str, ...], only_list: bool, jobs: int) -> None:
    """Apply every privacy mutant, one at a time; fail if its tests do not notice it."""
    mutants = [each for each in read_mutants() if _is_chosen(each, only, area)]
    if only_list:
        for mutant in mutants:
            click.echo(f"{mutant.area:<16} {mutant.title}  ({mutant.edits[0].name})")
        return
    if not mutants:
        raise click.ClickException("no row matches; `--list` shows all of them")
    began = time.monotonic()
    runner = Runner(ROOT, jobs=jobs)
    unchanged = runner.check_unchanged(mutants)
    if unchanged.code != 0:
        click.echo(unchanged.output)
        raise click.ClickException("tests fail on the unchanged source; mend these first")
    failed = 0
    for outcome in runner.run(mutants):
        failed += outcome.verdict != "killed"
        click.echo(_line(outcome))
    minutes = (time.monotonic() - began) / 60
    click.echo(f"{minutes:.1f} minutes, {processor_minutes():.1f} of processor time")
    click.echo(f"{len(mutants) - failed} passed, {failed} failed")
    sys.exit(1 if failed else 0)


def _is_chosen(mutant: Mutant, only: tuple[str, ...], area: tuple[str, ...]) -> bool:
    words = " ".join([mutant.title, *(edit.name for edit in mutant.edits)])
    return (not only or any(text in words for text in only)) and (not area or mutant.area in area)


def _line(outcome: Outcome) -> str:
    label = f"{outcome.mutant.area}: {outcome.mutant.title}"
    return f"{outcome.verdict:<14} {outcome.seconds:5.1f} s  {label}\n{'':24}{outcome.detail}"


if __name__ == "__main__":
    main()
