"""What a command does to each record before a method sees it: filter, derive, look up."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import wraps
from typing import Any, TypeVar

import click

from dpublish.cli.group import complete_files
from dpublish.errors import InvalidParameter

F = TypeVar("F", bound=Callable[..., Any])


@dataclass(frozen=True)
class RecordSteps:
    """The steps that a command was told; nothing is parsed or read yet."""

    where: str | None = None
    derive: tuple[str, ...] = ()
    lookups: tuple[str, ...] = ()
    keys: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.where is not None or self.derive or self.lookups or self.keys)

    def options(self) -> dict[str, Any]:
        """Return the steps as options of `open_table`."""
        if len(self.lookups) != len(self.keys):
            raise InvalidParameter(
                "every --lookup FILE needs a --lookup-on COLUMN, in the same order: --lookup "
                "wards.csv --lookup-on ward"
            )
        if not self:
            return {}
        from dpublish.data.lookup import Lookup  # with NumPy, which --help does without

        pairs = [key.partition("=") for key in self.keys]
        lookups = [
            Lookup(path, on=on, key=key or None)
            for path, (on, _, key) in zip(self.lookups, pairs, strict=True)
        ]
        return {"where": self.where, "derive": self.derive, "lookups": lookups}


NO_STEPS = RecordSteps()
"""Records as they are."""


def step_options(function: F) -> F:
    """Add the options about single records; the command gets them as `steps`."""

    @wraps(function)
    def with_steps(
        *args: Any,
        where: str | None,
        derive: tuple[str, ...],
        lookups: tuple[str, ...],
        lookup_keys: tuple[str, ...],
        **others: Any,
    ) -> Any:
        return function(*args, steps=RecordSteps(where, derive, lookups, lookup_keys), **others)

    options = (
        click.option(
            "--where",
            metavar="CONDITION",
            help="Only records for which it holds: 'country = FR and age >= 18'.",
        ),
        click.option(
            "--derive",
            multiple=True,
            metavar="NAME=EXPRESSION",
            help="A column computed from others of the record: 'bmi = weight / (height / 100) ** "
            "2'; the schema declares it.",
        ),
        click.option(
            "--lookup",
            "lookups",
            multiple=True,
            metavar="FILE",
            help="A public table (CSV, Parquet) whose columns are joined to the records.",
            shell_complete=complete_files,
        ),
        click.option(
            "--lookup-on",
            "lookup_keys",
            multiple=True,
            metavar="COLUMN",
            help="The column to join on; ward=code if it is called code in the lookup.",
        ),
    )
    decorated: Any = with_steps
    for option in reversed(options):
        decorated = option(decorated)
    return decorated  # type: ignore[no-any-return]
