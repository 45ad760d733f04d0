"""`dpublish init`: from a table to a schema, a ledger, a plan and the next command."""

import sys
from collections.abc import Mapping, Sequence
from typing import Any

import click
from rich.console import Console
from rich.text import Text

from dpublish.cli.group import complete_files, complete_ledgers
from dpublish.cli.output import (
    emit,
    json_option,
    say,
    say_json,
    say_table,
    standing,
)
from dpublish.cli.source_options import sql_option, table_option
from dpublish.core.text import printable
from dpublish.data.column_answer import FORMS
from dpublish.data.peek import PEEK_STAMP, Glimpse
from dpublish.data.sources import proposable_columns
from dpublish.errors import InvalidParameter, require_known
from dpublish.planning.start import Start, join_names, split_names, split_said
from dpublish.planning.start_files import (
    Prepared,
    StartFiles,
    find_account,
    load_answers,
    look,
    prepare,
    require_free,
    save_answers,
    write_all,
)
from dpublish.planning.start_steps import COLUMN, NONE, WHY_NOT_READ, Step, answer_order
from dpublish.privacy.epsilon import format_short, parse_epsilon


@click.command()
@click.argument("data", shell_complete=complete_files)
@table_option
@sql_option
@click.option("--row", help="What a row is: a person, a hospital visit, a purchase.")
@click.option("--unit", help="The column that all rows of one person share, or none.")
@click.option("--columns", help="The columns that matter: all, or age,sex,ward.")
@click.option("--leave-out", help="Columns to leave out: notes,email.")
@click.option("--goal", help="What for: rows, counts:age,sex, classify:income, clusters, ...")
@click.option("--steps", help="How many steps a stream has, or 'window 10'; for the goal stream.")
@click.option("--rows", help="How many rows there are, roughly, if that is publicly known.")
@click.option("--dates", help="The period of the dates: '2023..2024 as %d.%m.%Y'.")
@click.option(
    "--column",
    "said",
    multiple=True,
    metavar="NAME=ANSWER",
    help="What a column holds: 'age=0..120 by 5', 'size=S < M < L', 'fax=skip'.",
)
@click.option(
    "--codes",
    multiple=True,
    metavar="NAME=FILE",
    help="A public file of codes of a column: ward=wards.csv.",
    shell_complete=complete_files,
)
@click.option("--cap", help="The largest epsilon that may be spent on the table in all.")
@click.option("--epsilon", help="What the first release may spend.")
@click.option("--dataset", help="What the ledger calls the table; its file's name if absent.")
@click.option("--schema", "schema_path", help="The schema file to create.")
@click.option(
    "--ledger",
    "ledger_path",
    help="The ledger, which is created if it is not there; books.db if absent.",
    shell_complete=complete_ledgers,
)
@click.option("--output", "-o", help="The release folder that the next command will create.")
@click.option("--yes", is_flag=True, help="Ask nothing: take proposals, or say what is missing.")
@click.option("--fresh", is_flag=True, help="Forget the answers of an interrupted start.")
@click.option(
    "--peek",
    "with_peek",
    is_flag=True,
    help="Show the owner some values; NOT PRIVATE, and not kept.",
)
@json_option
def init(
    data: str,
    table_name: str | None,
    sql: str | None,
    said: tuple[str, ...],
    codes: tuple[str, ...],
    leave_out: str | None,
    dataset: str | None,
    schema_path: str | None,
    ledger_path: str | None,
    output: str | None,
    yes: bool,
    fresh: bool,
    with_peek: bool,
    as_json: bool,
    **given: str | None,
) -> None:
    """Begin with a table of your own: a schema, a ledger, a plan and the next command.

    Asks what a row is, whose data it is, which columns matter and what for; proposes kinds and
    bounds from types, names and public facts, and asks for the rest.  Reads no value (but shows
    some with --peek) and spends nothing.  What was answered is kept, so that the same command goes
    on after an interruption.

    \b
    dpublish init visits.csv
    dpublish init visits.csv --yes --unit patient_id --leave-out notes \\
        --dates 2023..2024 --codes ward=wards.csv --column "cost=0..20000 by 500" --cap 1
    """  # noqa: D301 - click keeps lines after it
    if as_json and not yes:
        raise InvalidParameter("--json goes with --yes, for it asks nothing")
    files = StartFiles.of(
        data,
        dataset=dataset,
        schema=schema_path,
        ledger=ledger_path,
        table=table_name,
        sql=sql,
        output=output,
    )
    start = Start.of(
        proposable_columns(data, table=table_name, sql=sql),
        account=find_account(files.ledger, files.dataset),
        folder=files.schema.parent,
        data=data,
    )
    if fresh:
        files.answers.unlink(missing_ok=True)
    require_free(files)
    start, resumed = _begin(start, files, _given(start, given, leave_out, said, codes))
    glimpses = look(start, files) if with_peek else {}
    if not as_json:
        _introduce(start, files, resumed, glimpses)
    prepared = _script(start, files) if yes else _converse(start, files, glimpses)
    _finish(*prepared, files=files, as_json=as_json)


def _given(
    start: Start,
    given: Mapping[str, str | None],
    leave_out: str | None,
    said: Sequence[str],
    codes: Sequence[str],
) -> dict[str, str]:
    """Collect the answers that were given as options."""
    found = {key: text for key, text in given.items() if text is not None}
    if "dates" in found:
        found["period"] = found.pop("dates")
    if leave_out is not None:
        names = [f"-{name.removeprefix('-')}" for name in split_names(leave_out)]
        kept = [found["columns"]] if "columns" in found else []
        found["columns"] = ",".join([*kept, join_names(names)])
    for option, sign, texts in (("--column", "", said), ("--codes", "@", codes)):
        for text in texts:
            pair = split_said(text, start.by_name)
            if pair is None and "=" in text:
                require_known("column", text.partition("=")[0].strip(), start.by_name)
            if pair is None:
                raise InvalidParameter(
                    f"{option} {text!r} must look like NAME=..., with the name of a column"
                )
            found[COLUMN + pair[0]] = sign + pair[1]
    return found


def _begin(start: Start, files: StartFiles, given: Mapping[str, str]) -> tuple[Start, int]:
    """Take the answers that are there already: of an interrupted start, and as options."""
    if "cap" in given and start.account is not None:
        if parse_epsilon(given["cap"], "cap") != start.account.cap:
            cap = format_short(start.account.cap)
            raise InvalidParameter(
                f"{files.ledger} has {files.dataset!r} already, with a cap of {cap}; leave out "
                "--cap, or change it with `dpublish ledger cap`"
            )
        given = {key: text for key, text in given.items() if key != "cap"}
    start = load_answers(start, files)
    resumed = len(start.answers)
    start = start.without(*given)
    for key in sorted(given, key=answer_order):
        try:
            start = start.answered(key, given[key])
        except InvalidParameter as refusal:
            raise InvalidParameter(f"{_option_of(key)}: {refusal}") from None
    return start, resumed


def _option_of(key: str) -> str:
    """Name the option that an answer was given with."""
    if key.startswith(COLUMN):
        return f"--column {key.removeprefix(COLUMN)}"
    return f"--{'dates' if key == 'period' else key}"


def _introduce(
    start: Start, files: StartFiles, resumed: int, glimpses: Mapping[str, Glimpse]
) -> None:
    for sentence in WHY_NOT_READ:
        say(sentence)
    say()
    rows = [(each.column, each.summary, each.why) for each in start.proposals]
    rows += [(name or "(no name)", "left out", why) for name, why in start.unreadable.items()]
    say_table(("column", "proposal", "why"), rows)
    say()
    if glimpses:
        say("With --peek you see some values; nothing is taken from them.")
        say(PEEK_STAMP)
        say_table(("column", "values"), [(n, one.describe()) for n, one in glimpses.items()])
        say()
    if resumed:
        say(f"going on with {resumed} answers from {files.answers}; --fresh begins again")
        say()


def _script(start: Start, files: StartFiles) -> tuple[Start, Prepared]:
    """Take all proposals; refuse to guess what only the owner can say."""
    while (step := next(filter(_may_take, start.open_steps()), None)) is not None:
        start = start.answered(step.key, step.default or "")
    missing = start.open_steps()
    if any(step.key == "cap" for step in missing):  # which also decides what is left to spend
        missing = [step for step in missing if step.key != "epsilon"]
    if missing:
        told = "; ".join(step.option for step in missing)
        raise InvalidParameter(
            f"{len(missing)} {'answer is' if len(missing) == 1 else 'answers are'} missing, which "
            f"only the owner can give; add: {told}"
        )
    return start, prepare(start, files)


def _may_take(step: Step) -> bool:
    """Check whether a proposal is safe to take unseen: one that names no unit is not."""
    if step.default is None or step.key == "cap":
        return False
    return not (step.key == "unit" and step.default == NONE)


def _converse(
    start: Start, files: StartFiles, glimpses: Mapping[str, Glimpse]
) -> tuple[Start, Prepared]:
    """Ask until nothing is open and the goal can be met; keep every answer at once."""
    console = Console(file=sys.stdout, highlight=False, markup=False)
    kept = f"the answers so far are kept in {files.answers}; run the same command to go on"
    has_forms = False
    with standing(kept):
        save_answers(start, files)
        while True:
            while (step := start.next_step()) is not None:
                if step.column is not None and not has_forms:
                    say(f"For each column, {FORMS}.")
                    say()
                    has_forms = True
                start = _ask(console, start, step, glimpses)
                save_answers(start, files)
            try:
                return start, prepare(start, files)
            except InvalidParameter as refusal:
                _say_refusal(console, str(refusal))
                start = start.without("goal", "steps")


def _ask(console: Console, start: Start, step: Step, glimpses: Mapping[str, Glimpse]) -> Start:
    """Ask until the answer can be used; Enter takes what is proposed."""
    console.print(Text(printable(step.title), style="bold"))
    for hint in step.hints:
        say(f"  {hint}")
    if step.column in glimpses:
        say(f"  {PEEK_STAMP}:")
        say(f"  {glimpses[str(step.column)].describe()}")
    proposed = "" if step.default is None else f"[{printable(step.default)}] "
    while True:
        text = _read_line(console, f"> {proposed}", start).strip()
        try:
            if not text and step.default is None:
                raise InvalidParameter("nothing is proposed here; write an answer")
            answered = start.answered(step.key, text or step.default or "")
        except InvalidParameter as refusal:
            _say_refusal(console, str(refusal))
            continue
        say()
        return answered


def _say_refusal(console: Console, text: str) -> None:
    console.print(Text("  " + printable(" ".join(text.split())), style="red"), soft_wrap=True)


def _read_line(console: Console, prompt: str, start: Start) -> str:
    try:
        return console.input(Text(prompt, style="cyan"))
    except EOFError:
        emit("\n")
        told = "; ".join(step.option for step in start.open_steps())
        raise InvalidParameter(
            f"the input ended before all was answered; go on in a terminal, or add options: {told}"
        ) from None


def _finish(start: Start, prepared: Prepared, *, files: StartFiles, as_json: bool) -> None:
    told = write_all(start, files, prepared)
    if as_json:
        say_json(_facts(start, prepared, files))
        return
    for line in told:
        say(line)
    choice = prepared.advice.choices[0]
    say()
    say(f"The plan: {choice.name}, for {start.goal}: {choice.why}")
    say(f"  {choice.gives}")
    for note in choice.notes:
        say(f"  {note}")
    say()
    say("Next, compare the table with the schema (for your eyes only), then publish:")
    say(f"  {prepared.check_command}")
    say(f"  {prepared.command}")


def _facts(start: Start, prepared: Prepared, files: StartFiles) -> dict[str, Any]:
    return {
        "schema": str(files.schema),
        "ledger": files.ledger,
        "dataset": files.dataset,
        "plan": str(files.plan),
        "columns": [*prepared.schema.names],
        "left_out": dict(start.left_out),
        "unit": start.unit.column,
        "goal": str(start.goal),
        "method": prepared.advice.choices[0].name,
        "check": prepared.check_command,
        "next": prepared.command,
    }
