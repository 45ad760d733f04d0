"""`dpublish audit`: rerun the proof tests of an installed method."""

from collections.abc import Iterable
from typing import Any

import click

from dpublish.auditing.audit import EPSILON, RUNS, audit, auditable, planned_checks
from dpublish.auditing.result import Audit
from dpublish.cli.group import complete_methods
from dpublish.cli.output import (
    FREE_SETTINGS,
    json_option,
    say,
    say_json,
    say_table,
    settings_from,
    show_progress,
)
from dpublish.errors import InvalidParameter

ALL = "all"
FAILED = 4
"""The exit code if a check failed: the request was right, and the method is not."""


@click.command("audit", context_settings=FREE_SETTINGS)
@click.argument("name", metavar="[METHOD]", required=False, shell_complete=complete_methods)
@click.option("--epsilon", default=EPSILON, help=f"What the releases spend; {EPSILON} if absent.")
@click.option(
    "--runs",
    type=int,
    help=f"Runs of the black box on each of two neighbors; {RUNS}, fewer for slow methods.",
)
@click.option("--seed", type=int, help="Repeat the draws; fresh randomness if absent.")
@click.option("--list", "as_list", is_flag=True, help="List what would be checked.")
@click.option("--set", "pairs", multiple=True, metavar="NAME=VALUE", help="A setting.")
@json_option
@click.pass_context
def audit_command(
    ctx: click.Context,
    name: str | None,
    epsilon: str,
    runs: int | None,
    seed: int | None,
    as_list: bool,
    pairs: tuple[str, ...],
    as_json: bool,
) -> None:
    """Rerun the proof tests of METHOD as it is installed here, and print what was checked.

    Checks conformance, replay on other rows, the account, each mechanism against its exact
    distribution, and the whole method as a black box.  Every part but conformance is tried on
    broken twins.  What was not checked or compared is listed at the end.

    Reads simulated tables only: no private row, no ledger; nothing is spent or published.  The
    tables have the columns age, sex, height and town; streams have zone and hour.  Settings go
    on top of an example of the audit's own.

    Without METHOD it lists the methods; METHOD all audits each of them.  Exit code 4 says that a
    check failed.

    \b
    dpublish audit histogram
    dpublish audit histogram --columns age,town --threshold 3 --epsilon 0.5
    dpublish audit topk --runs 5000 --json
    """  # noqa: D301 - click keeps lines after it
    settings = settings_from(ctx.args, pairs)
    if name is None:
        _refuse_settings(settings, "without a method")
        _list_methods(as_json)
        return
    if name == ALL:
        _refuse_settings(settings, "for all methods")
    names = auditable() if name == ALL else [name]
    if as_list:
        _list_checks(names, settings, as_json)
        return
    found = _audits(names, as_json, settings=settings, epsilon=epsilon, runs=runs, seed=seed)
    if as_json:
        plain = [each.to_dict() for each in found]
        say_json(plain if name == ALL else plain[0])
    elif name == ALL:
        _say_summary(found)
    if not all(each.passed for each in found):
        ctx.exit(FAILED)


def _refuse_settings(settings: dict[str, str], when: str) -> None:
    if settings:
        raise InvalidParameter(f"settings ({', '.join(settings)}) mean nothing {when}")


def _audits(names: Iterable[str], is_quiet: bool, **options: Any) -> list[Audit]:
    found = []
    for name in names:
        with show_progress() as show:
            one = audit(name, progress=show, **options)
        found.append(one)
        if not is_quiet:
            for line in str(one).splitlines():
                say(line)
    return found


def _say_summary(found: list[Audit]) -> None:
    rows = [[each.method, f"{len(each.checks)}", f"{len(each.failed)}"] for each in found]
    say_table(["method", "checks", "failed"], rows, title="all methods")


def _list_methods(as_json: bool) -> None:
    names = auditable()
    if as_json:
        say_json(names)
        return
    say(f"dpublish audit METHOD, or all; METHOD is one of these {len(names)}:")
    say(", ".join(names))
    say("or a method of another package, with its settings")


def _list_checks(names: Iterable[str], settings: dict[str, str], as_json: bool) -> None:
    found = {name: planned_checks(name, settings) for name in names}
    if as_json:
        keys = ("part", "name", "says")
        say_json(
            {name: [dict(zip(keys, each, strict=True)) for each in found[name]] for name in found}
        )
        return
    for name, checks in found.items():
        say_table(["part", "check", "what holds"], [list(each) for each in checks], title=name)
