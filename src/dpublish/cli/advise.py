"""`dpublish advise`: the method for a goal, what it gives, and the command to run."""

import shlex
from fractions import Fraction
from pathlib import Path
from typing import Any

import click

from dpublish.cli.group import complete_files, complete_ledgers
from dpublish.cli.output import json_option, say, say_json, schema_option
from dpublish.planning.advice_rules import N_CLUSTERS
from dpublish.planning.advise import DATA, LEDGER, Advice, advise
from dpublish.planning.goals import GOALS
from dpublish.privacy.epsilon import format_epsilon, format_short
from dpublish.storage.postgres_address import is_postgres


@click.command("advise")
@schema_option()
@click.option(
    "--goal",
    required=True,
    help="What the release is for: rows, counts:age,sex, statistics:hours,sex, classify:income, "
    "model:income, clusters, top:diagnosis or stream:zone.",
)
@click.option("--rows", "n_records", type=int, help="Roughly how many records, if that is public.")
@click.option("--epsilon", help="What you would spend: 0.5; proposed if absent.")
@click.option("--n-clusters", type=int, default=N_CLUSTERS, help="clusters: how many.")
@click.option("--horizon", type=int, help="stream: how many steps it has.")
@click.option(
    "--window", type=int, help="stream: within how many steps people are hidden, if it never ends."
)
@click.option("--data", help="The table, for the command.", shell_complete=complete_files)
@click.option(
    "--ledger",
    help="The ledger, for the command; if it is there, no more is proposed than is left.",
    shell_complete=complete_ledgers,
)
@click.option("--dataset", help="Which dataset of the ledger pays, for the command.")
@click.option("-o", "--output", help="The release folder to create.", shell_complete=complete_files)
@json_option
def advise_command(
    schema_path: str,
    goal: str,
    n_records: int | None,
    epsilon: str | None,
    n_clusters: int,
    horizon: int | None,
    window: int | None,
    data: str | None,
    ledger: str | None,
    dataset: str | None,
    output: str | None,
    as_json: bool,
) -> None:
    """Name the method to take for a goal, what it gives, and the exact command.

    No data is read and nothing is spent: the advice depends on the schema, the number of records
    that you state, epsilon and the goal alone.

    \b
    dpublish advise --schema people.toml --goal classify:income --rows 45000
    dpublish advise --schema people.toml --goal counts:age,sex --rows 45000 --epsilon 0.5 \\
        --data people.csv --ledger books.db --dataset people -o ages
    dpublish advise --schema taxis.toml --goal stream:zone --horizon 500 --rows 5000
    """  # noqa: D301 - click keeps lines after it
    known = ledger is not None and dataset is not None and _exists(ledger)
    advice = advise(
        schema_path,
        goal,
        n_records=n_records,
        epsilon=epsilon,
        ledger=ledger if known else None,
        dataset=dataset if known else None,
        n_clusters=n_clusters,
        horizon=horizon,
        window=window,
    )
    name = Path(schema_path).stem
    written: dict[str, Any] = {
        "data": data or DATA,
        "ledger": ledger or LEDGER,
        "dataset": dataset or name,
        "output": output,
    }
    if as_json:
        say_json(_plain(advice, written))
        return
    _say_advice(advice, written)
    _say_missing(data, ledger, dataset, written["dataset"], advice)


def _exists(ledger: str) -> bool:
    """Check whether there is a ledger to look into."""
    return is_postgres(ledger) or Path(ledger).exists()


def _say_advice(advice: Advice, written: dict[str, Any]) -> None:
    say(f"goal: {advice.goal} ({GOALS[advice.goal.task]})")
    say(f"epsilon: {format_short(advice.epsilon)} ({advice.epsilon_why})")
    for number, choice in enumerate(advice.choices):
        say()
        say(f"{'take' if number == 0 else 'or'} {choice.name}")
        say(f"  why: {choice.why}")
        say(f"  gives: {choice.gives}")
        for note in choice.notes:
            say(f"  note: {note}")
        say(f"  run: {choice.command(**written)}")


def _say_missing(
    data: str | None, ledger: str | None, dataset: str | None, paying: str, advice: Advice
) -> None:
    """Say which names in the commands are examples, and how to make a ledger."""
    stated = {"--data": data, "--ledger": ledger, "--dataset": dataset}
    if advice.choices[0].is_stream:
        del stated["--data"]
    missing = [option for option, value in stated.items() if value is None]
    if missing:
        say()
        say(f"examples in these commands, to be replaced: {', '.join(missing)}")
    if ledger is None or not _exists(ledger):
        path = shlex.quote(ledger or LEDGER)
        cap = format_short(max(advice.epsilon, Fraction(1)))
        say(
            f"a ledger is made once: dpublish ledger create {path}; dpublish ledger add {path} "
            f"{shlex.quote(paying)} --cap {cap}"
        )


def _plain(advice: Advice, written: dict[str, Any]) -> dict[str, Any]:
    """Write advice for programs."""
    return {
        "goal": str(advice.goal),
        "epsilon": format_epsilon(advice.epsilon),
        "epsilon_why": advice.epsilon_why,
        "choices": [
            {
                "method": choice.name,
                "settings": dict(choice.settings),
                "why": choice.why,
                "gives": choice.gives,
                "expected_error": dict(choice.expected_error),
                "notes": list(choice.notes),
                "command": choice.command(**written),
            }
            for choice in advice.choices
        ],
    }
