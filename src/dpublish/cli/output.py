"""What all subcommands share: JSON or words, progress on a terminal, settings as options.

All that is printed goes through here, because names, values and notes may come from a
stranger's file: what is no printable character is written out, so that nothing can move the
cursor, recolor the terminal, turn a line around or pass for a line of ours.
"""

import json
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import Any, TypeVar

import click

from dpublish.cli.group import SETTING_ALIASES, complete_files, complete_ledgers, complete_methods
from dpublish.core.method import Progress
from dpublish.core.text import printable
from dpublish.errors import InputError, InvalidParameter

F = TypeVar("F", bound=Callable[..., Any])

json_option = click.option("--json", "as_json", is_flag=True, help="Print machine-readable JSON.")


def say(text: str = "") -> None:
    """Print a line for people."""
    emit(printable(text) + "\n")


def say_warnings(texts: Iterable[str]) -> None:
    """Print warnings on standard error."""
    for text in texts:
        say_aside("warning: " + " ".join(text.split()))


def say_aside(text: str) -> None:
    """Print a line for people on standard error; one that cannot be printed is left out."""
    with suppress(OSError):
        click.echo(f"dpublish: {printable(text)}", err=True)


def say_json(value: Any, *, indent: int | None = 1) -> None:
    """Print for programs: exactly, with characters that a terminal might obey as escapes."""
    text = json.dumps(value, indent=indent, ensure_ascii=False)
    emit("".join(map(_json_escaped, text)) + "\n")


def emit(text: str) -> None:
    """Write to standard output, as it is.

    If the reader has gone away, the rest is dropped: the command itself goes on.
    """
    try:
        click.echo(text, nl=False)
    except BrokenPipeError:
        _drop_output()
    except OSError as error:
        _drop_output()
        raise InputError(
            f"standard output cannot be written ({error.strerror or 'input/output error'}); what "
            "the command has done stands"
        ) from None


def _drop_output() -> None:
    """Let all further output go nowhere: what is still held back would fail again at exit."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, sys.stdout.fileno())
    os.close(nowhere)


@contextmanager
def standing(done: str) -> Iterator[None]:
    """Add to any error within a note of what is done already."""
    try:
        yield
    except BaseException as error:
        error.add_note(done)
        raise


def _json_escaped(character: str) -> str:
    if character == "\n" or character.isprintable():
        return character
    return json.dumps(character)[1:-1]


def say_table(headers: Sequence[str], rows: Sequence[Sequence[str]], *, title: str = "") -> None:
    """Print a table, as wide as the terminal allows and unwrapped in a pipe."""
    from rich.console import Console
    from rich.table import Table

    if title:
        say(title)
    table = Table(box=None, pad_edge=False)
    for header in headers:
        table.add_column(printable(header), overflow="fold")
    for row in rows:
        table.add_row(*map(printable, row))
    console = Console(file=sys.stdout, highlight=False, markup=False)
    if not console.is_terminal:
        console.width = 400
    with console.capture() as drawn:
        console.print(table)
    emit("".join(f"{line.rstrip()}\n" for line in drawn.get().splitlines()))


@contextmanager
def show_progress() -> Iterator[Progress | None]:
    """Show progress on a terminal and stay silent in a pipe."""
    from dpublish.core.progress import showing_progress

    with showing_progress(True, patience=0) as show:
        yield show


def settings_from(arguments: Sequence[str], pairs: Sequence[str]) -> dict[str, str]:
    """Read a method's settings: `--name value`, `--name=value`, `--flag`, and `--set name=value`.

    >>> settings_from(["--columns", "age,sex", "--with-counts"], ["count=5"])
    {'columns': 'age,sex', 'with_counts': 'true', 'count': '5'}
    """
    settings: dict[str, str] = {}
    words = list(arguments)
    while words:
        word = words.pop(0)
        if not word.startswith("--") or len(word) < 3:
            raise InvalidParameter(
                f"unexpected argument {word!r}: settings look like --name value, and lists are "
                "written with commas: --columns age,sex"
            )
        name, has_value, value = word[2:].partition("=")
        if not has_value:
            value = words.pop(0) if words and not words[0].startswith("--") else "true"
        _put(settings, name, value)
    for pair in pairs:
        name, has_value, value = pair.partition("=")
        if not has_value:
            raise InvalidParameter(f"--set {pair!r} must look like name=value")
        _put(settings, name, value)
    return settings


def _put(settings: dict[str, str], name: str, value: str) -> None:
    key = name.strip().replace("-", "_")
    key = SETTING_ALIASES.get(key, key)
    if key in settings:
        raise InvalidParameter(f"the setting {name!r} is given twice")
    settings[key] = value


def payment_options(function: F) -> F:
    """Add what `release` and `stream start` share: who pays, what for, and where to publish."""
    output = click.option(
        "-o",
        "--output",
        required=True,
        help="The release folder to create.",
        shell_complete=complete_files,
    )
    return account_options(output(function))


def account_options(function: F) -> F:
    """Add who pays, and what for."""
    for option in (
        click.option(
            "--all-have-levels",
            is_flag=True,
            help="Confirm that no record is below the first level; an ordinary method needs it "
            "where the dataset has levels.",
        ),
        click.option(
            "--purpose",
            default="",
            help="What it is for; published in the receipt, and kept in the ledger.",
        ),
        click.option("--dataset", required=True, help="Which dataset of the ledger pays."),
        click.option(
            "--ledger",
            "ledger_path",
            required=True,
            help="The ledger: a file, or postgresql://HOST/DATABASE.",
            shell_complete=complete_ledgers,
        ),
    ):
        function = option(function)
    return function


def method_options(function: F) -> F:
    """Add what `release` and `plan` share: the method, the schema and free settings."""
    return _with_method(function, needs_schema=True)


def planning_options(function: F) -> F:
    """Add the same, but for the schema, which not every plan needs."""
    return _with_method(function, needs_schema=False)


def schema_option(*, required: bool = True) -> Callable[[F], F]:
    """Return the option that names the schema file."""
    return click.option(
        "--schema",
        "schema_path",
        required=required,
        help="The schema file (TOML).",
        shell_complete=complete_files,
    )


def _with_method(function: F, *, needs_schema: bool) -> F:
    for option in (
        click.option("--set", "pairs", multiple=True, metavar="NAME=VALUE", help="A setting."),
        schema_option(required=needs_schema),
        click.option(
            "--method",
            required=True,
            help="What to publish: histogram, synth, privpfc ... (dpublish methods lists all)",
            shell_complete=complete_methods,
        ),
    ):
        function = option(function)
    return function


FREE_SETTINGS: Mapping[str, Any] = {"ignore_unknown_options": True, "allow_extra_args": True}
