"""What all subcommands share: JSON or words, a progress bar on a terminal, settings as options."""

import json
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, TypeVar

import click

from dpublish.errors import InvalidParameter
from dpublish.release.recipe import Progress

F = TypeVar("F", bound=Callable[..., Any])

json_option = click.option("--json", "as_json", is_flag=True, help="Print machine-readable JSON.")
all_have_levels_option = click.option(
    "--all-have-levels",
    is_flag=True,
    help="Your word that no record is below the first level; for ordinary methods, where the "
    "dataset has levels.",
)


def say(text: str = "") -> None:
    """Print for people."""
    click.echo(text)


def say_warnings(texts: Iterable[str]) -> None:
    """Print what is not wrong yet, beside the output."""
    for text in texts:
        click.echo("dpublish: warning: " + " ".join(text.split()), err=True)


def say_json(value: Any) -> None:
    """Print for programs."""
    click.echo(json.dumps(value, indent=1, ensure_ascii=False))


def say_table(headers: Sequence[str], rows: Sequence[Sequence[str]], *, title: str = "") -> None:
    """Print a table, as wide as the terminal allows and unwrapped in a pipe."""
    from rich.console import Console
    from rich.table import Table

    table = Table(title=title or None, title_justify="left", box=None, pad_edge=False)
    for header in headers:
        table.add_column(header, overflow="fold")
    for row in rows:
        table.add_row(*map(_shown, row))
    console = Console(file=sys.stdout, highlight=False, markup=False)
    if not console.is_terminal:
        console.width = 400
    console.print(table)


def _shown(cell: str) -> str:
    """Write out what would move the cursor, turn the line around or not be seen."""
    return "".join(c if c.isprintable() else ascii(c)[1:-1] for c in cell)


@contextmanager
def progress_bar() -> Iterator[Progress | None]:
    """Show progress on a terminal and stay silent in a pipe."""
    if not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import Progress as Bar

    with Bar(console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("", total=None)

        def show(done: int, total: int, label: str) -> None:
            bar.update(task, completed=done, total=total, description=label)

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
            raise InvalidParameter(f"unexpected argument {word!r}; settings look like --name value")
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


_ALIASES = {"epsilon_column": "preference"}
"""Settings by the names that people look for."""


def _put(settings: dict[str, str], name: str, value: str) -> None:
    key = name.strip().replace("-", "_")
    key = _ALIASES.get(key, key)
    if key in settings:
        raise InvalidParameter(f"the setting {name!r} is given twice")
    settings[key] = value


def method_options(function: F) -> F:
    """Add what `release` and `plan` share: the method, the schema and free settings."""
    return _with_method(function, needs_schema=True)


def planning_options(function: F) -> F:
    """Add the same, but for the schema, which not every plan needs."""
    return _with_method(function, needs_schema=False)


def _with_method(function: F, *, needs_schema: bool) -> F:
    for option in (
        click.option("--set", "pairs", multiple=True, metavar="NAME=VALUE", help="A setting."),
        click.option(
            "--schema", "schema_path", required=needs_schema, help="The schema file (TOML)."
        ),
        click.option("--method", required=True, help="See: dpublish methods"),
    ):
        function = option(function)
    return function


FREE_SETTINGS: Mapping[str, Any] = {"ignore_unknown_options": True, "allow_extra_args": True}
