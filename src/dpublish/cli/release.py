"""`dpublish release`: publish from a table, paid for from the ledger."""

from contextlib import ExitStack, closing, suppress
from fractions import Fraction
from typing import Any

import click

from dpublish.cli.group import MethodCommand
from dpublish.cli.level_use import epsilon_left, say_level_use
from dpublish.cli.output import (
    FREE_SETTINGS,
    json_option,
    method_options,
    payment_options,
    say,
    say_json,
    settings_from,
    show_progress,
    standing,
)
from dpublish.cli.signing import read_signing_key, say_signed, sign_option
from dpublish.cli.source_options import Rows, source_options
from dpublish.core.catalog import STREAMS
from dpublish.core.coverage import what_is_counted
from dpublish.core.method import Method
from dpublish.core.registry import make_method
from dpublish.core.released import Release
from dpublish.data.schema_file import load_schema
from dpublish.errors import BudgetExhausted, DPublishError, InvalidParameter
from dpublish.ledger.account import Account, Status
from dpublish.ledger.debit import debit
from dpublish.ledger.ledger import Ledger
from dpublish.methods.personalized.method import PersonalSettings
from dpublish.privacy.epsilon import format_epsilon, format_rounded, format_short, parse_epsilon
from dpublish.publishing import publish
from dpublish.publishing.table import read_epsilon


@click.command(cls=MethodCommand, context_settings=dict(FREE_SETTINGS))
@method_options
@source_options
@click.option(
    "--epsilon",
    help='What to spend, exactly: 0.5, or "1/3". Of a personalized method: at the largest level; '
    "all that the levels have left if absent.",
)
@payment_options
@sign_option
@json_option
@click.pass_context
def release(
    ctx: click.Context,
    method: str,
    schema_path: str,
    pairs: tuple[str, ...],
    rows: Rows,
    epsilon: str | None,
    ledger_path: str,
    dataset: str,
    purpose: str,
    all_have_levels: bool,
    output: str,
    sign_path: str | None,
    as_json: bool,
) -> None:
    """Publish from a table, paid for from the ledger.

    The method's own settings are options too: `dpublish methods NAME` lists them.

    \b
    dpublish release --method histogram --columns age,sex --data people.csv \\
        --schema people.toml --epsilon 0.5 --ledger books.db --dataset people -o ages/
    dpublish release --method minimum --inner "histogram columns=age" \\
        --epsilon-column accepted --levels 0.01,0.1,1 --data people.csv \\
        --schema people.toml --ledger books.db --dataset people -o ages/
    dpublish release --method histogram --columns age,sex --data postgresql://db.local/clinic \\
        --table people --schema people.toml --epsilon 0.5 \\
        --ledger postgresql://db.local/books --dataset people -o ages/
    """  # noqa: D301 - click keeps lines after it
    if method in STREAMS:
        raise InvalidParameter(
            f"{method} publishes a stream; run: dpublish stream start STATE --method {method} ..."
        )
    key = read_signing_key(sign_path)
    chosen = make_method(method, settings_from(ctx.args, pairs))
    schema = load_schema(schema_path)
    if isinstance(chosen, PersonalSettings):
        schema = chosen.prepare(schema)
    given = None if epsilon is None else parse_epsilon(epsilon)
    with ExitStack() as stack:
        ledger = stack.enter_context(Ledger(ledger_path))
        exact = _all_left(chosen, ledger, dataset) if given is None else given
        _require_left(chosen, ledger.status(dataset), exact)
        table = stack.enter_context(closing(rows.open(schema, chosen.reads(schema))))
        progress = stack.enter_context(show_progress())
        try:
            published = publish(
                chosen,
                table,
                output,
                ledger=ledger,
                dataset=dataset,
                epsilon=exact,
                purpose=purpose,
                progress=progress,
                all_have_levels=all_have_levels,
                sign=key,
            )
        except BudgetExhausted as error:
            _advise(error, chosen, ledger, dataset)
            raise
        with standing(
            f"{output} is published and entered in the ledger; do not repeat the command"
        ):
            _tell(published, ledger.status(dataset), output, as_json)
            if not as_json:
                say_signed(key)


def _require_left(method: Method[Any], status: Status, epsilon: Fraction) -> None:
    """Refuse what the account cannot pay, before a table is opened, which may take long."""
    exact = read_epsilon(epsilon, has_levels=isinstance(method, PersonalSettings))
    if not isinstance(method, PersonalSettings) and not status.levels:
        debit(status.dataset, Account(status.cap, status.spent), exact, ())


def _tell(published: Release, status: Status, output: str, as_json: bool) -> None:
    """Print what was published, and what it cost."""
    if as_json:
        say_json(
            {
                "path": output,
                "kind": published.kind,
                "counts": what_is_counted(published),
                "receipt": published.receipt.to_dict(),
                "expected_error": published.expected_error(),
                "left": format_epsilon(status.left),
                **_told_levels(status),
            }
        )
        return
    say(f"published {output}  (open {output.rstrip('/')}/report.html)")
    for name, text in published.summary().items():
        say(f"  {name}: {text}")
    say(f"  in it: {what_is_counted(published)}")
    say(f"  hidden: {published.receipt.neighbors.brief()}")
    _say_cost(published, status)


def _told_levels(status: Status) -> dict[str, Any]:
    """Return what each level has left, if there are levels."""
    return {"levels": [each.to_dict() for each in status.levels]} if status.levels else {}


def _advise(error: BudgetExhausted, method: Method[Any], ledger: Ledger, dataset: str) -> None:
    """Note the largest --epsilon that a personalized method can still spend."""
    if isinstance(method, PersonalSettings):
        with suppress(DPublishError):
            most = format_short(epsilon_left(method, ledger.status(dataset)))
            error.add_note(f"for {method.name} that is --epsilon {most} at most")


def _all_left(method: Method[Any], ledger: Ledger, dataset: str) -> Fraction:
    if not isinstance(method, PersonalSettings):
        raise InvalidParameter("name what to spend: --epsilon 0.5")
    return epsilon_left(method, ledger.status(dataset))


def _say_cost(published: Release, status: Status) -> None:
    least = min((each.left for each in status.levels), default=status.left)
    spent, left = format_rounded(published.receipt.epsilon), format_rounded(least)
    if not published.receipt.personal:
        say(f"  spent: epsilon {spent}; left for {status.dataset}: {left}")
        return
    say(f"  spent: up to epsilon {spent}, by level; left for {status.dataset}:")
    say_level_use(
        dict(published.receipt.personal), {each.level: each.left for each in status.levels}
    )
