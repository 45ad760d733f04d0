"""`dpublish ledger`: keep the books."""

from collections.abc import Sequence
from math import ceil
from pathlib import Path

import click

from dpublish.cli.output import json_option, say, say_json, say_table
from dpublish.errors import InputError, InvalidParameter, LedgerTampered
from dpublish.privacy.budget import Grant
from dpublish.privacy.epsilon import format_epsilon, format_short
from dpublish.privacy.ledger import Ledger
from dpublish.privacy.ledger_account import GrantStatus, LevelStatus, Status
from dpublish.privacy.receipt import Receipt
from dpublish.release.folder import folder_hash, load

_path = click.argument("path")
_BAR = 20  # characters
_MOST_SHOWN = 20  # levels


@click.group()
def ledger() -> None:
    """Keep the books: who may spend how much, what was granted, and that nothing was altered."""


@ledger.command()
@_path
def create(path: str) -> None:
    """Start a new ledger file."""
    Ledger.create(path).close()
    say(f"created {path}; next: dpublish ledger add {path} NAME --cap 2.0")


@ledger.command()
@_path
@click.argument("dataset")
@click.option("--cap", help="The most that may ever be spent on this dataset.")
@click.option(
    "--levels", help="Instead: the numbers among which people's own are rounded down: 0.01,0.1,1."
)
@click.option("--note", default="", help="A remark for the books.")
def add(path: str, dataset: str, cap: str | None, levels: str | None, note: str) -> None:
    """Give a dataset an allowance, or each of its people one of several."""
    if cap is None and levels is None:
        raise InvalidParameter("say what may be spent: --cap 2.0, or --levels 0.01,0.1,1")
    numbers = [] if levels is None else levels.split(",")
    with Ledger(path) as books:
        books.add(dataset, cap=cap, note=note, levels=numbers)
        status = books.status(dataset)
    if not status.levels:
        say(f"{dataset} may spend epsilon {cap} in all")
        return
    say(f"each person of {dataset} may spend in all what her level says: {levels}")
    first = format_epsilon(status.levels[0].level)
    say(f"whoever has a number below {first}, or none, must not be in any release")


@ledger.command(name="cap")
@_path
@click.argument("dataset")
@click.argument("cap")
@click.option("--reason", required=True, help="Why; it stays in the books for good.")
def change_cap(path: str, dataset: str, cap: str, reason: str) -> None:
    """Change a dataset's allowance, for a stated reason."""
    with Ledger(path) as books:
        books.change_cap(dataset, cap, reason=reason)
    say(f"{dataset} may now spend epsilon {cap} in all")


@ledger.command()
@_path
@click.argument("dataset", required=False)
@json_option
def show(path: str, dataset: str | None, as_json: bool) -> None:
    """Show allowances and grants."""
    with Ledger(path) as books:
        names = [dataset] if dataset else list(books.datasets())
        statuses = [books.status(name) for name in names]
    if as_json:
        say_json([status.to_plain() for status in statuses])
        return
    say_table(
        ["dataset", "cap", "spent", "left", "grants"],
        [
            [
                status.dataset,
                *(format_epsilon(v) for v in (status.cap, status.spent, status.left)),
                str(len(status.grants)),
            ]
            for status in statuses
        ],
    )
    for status in statuses:
        if status.levels:
            _show_levels(status)
    rows = [_grant_row(status.dataset, grant) for status in statuses for grant in status.grants]
    if rows:
        say()
        say_table(["entry", "time", "dataset", "epsilon", "state", "purpose"], rows)


def _show_levels(status: Status) -> None:
    """Draw how much of each level's own number is used."""
    shown = _some(status.levels)
    say()
    say(f"{status.dataset}: each person's own number (cap, spent and left above: the highest)")
    say_table(
        ["level", "spent", "left", "used"],
        [
            [*(format_short(v) for v in (each.level, each.spent, each.left)), _bar(each)]
            for each in shown
        ],
    )
    if status.hides == "values":
        say("who is in the table is public here; releases hide people's values")
    if len(shown) < len(status.levels):
        say(f"{len(status.levels) - len(shown):,} levels between them are not shown; see --json")


def _some(levels: Sequence[LevelStatus]) -> Sequence[LevelStatus]:
    """Take a table's worth of levels, the first and the last among them."""
    if len(levels) <= _MOST_SHOWN:
        return levels
    places = [(len(levels) - 1) * row // (_MOST_SHOWN - 1) for row in range(_MOST_SHOWN)]
    return [levels[place] for place in places]


def _bar(status: LevelStatus) -> str:
    filled = ceil(status.spent / status.level * _BAR)  # what is used a little is seen to be used
    return "#" * filled + "." * (_BAR - filled)


def _grant_row(dataset: str, grant: GrantStatus) -> list[str]:
    epsilon = format_epsilon(grant.epsilon)
    shown = f"up to {epsilon}, by level" if grant.levels else epsilon
    return [str(grant.entry), grant.time, dataset, shown, grant.state, grant.purpose]


@ledger.command()
@_path
@click.argument("release")
def record(path: str, release: str) -> None:
    """Enter a release whose publication was interrupted before the books were closed on it."""
    receipt = load(release).receipt
    with Ledger(path) as books:
        grant, _ = _paid_by(books, release, receipt)
        if _is_recorded(books, release, receipt):
            say(f"{release} is entered already, under entry {grant.entry}")
            return
        books.publish(grant, receipt.release_id, folder_hash(Path(release)))
    say(f"entered {release} under entry {grant.entry}")


@ledger.command()
@_path
@click.option("--head", help="The head hash noted down earlier.")
@click.option("--release", "releases", multiple=True, help="A release folder to check against.")
@json_option
def verify(path: str, head: str | None, releases: tuple[str, ...], as_json: bool) -> None:
    """Check that no entry was edited, removed or reordered."""
    found = {folder: load(folder).receipt for folder in releases}
    anchors = [receipt.anchor for receipt in found.values() if receipt.anchor is not None]
    with Ledger(path) as books:
        result = books.verify(expected_head=head, anchors=anchors)
        problems, unrecorded = list(result.problems), []
        for folder, receipt in found.items() if result.is_intact else ():
            try:
                if not _is_recorded(books, folder, receipt):
                    unrecorded.append(folder)
            except InvalidParameter as error:
                problems.append(str(error))
    if as_json:
        told = {"entries": result.entries, "head": result.head, "problems": problems}
        say_json(told | {"unrecorded": unrecorded})
    else:
        say(f"{result.entries} entries, head {result.head}")
    if problems:
        raise LedgerTampered(f"{path} is not to be trusted: " + "; ".join(problems))
    if not as_json:
        say("the chain is whole")
    if unrecorded:
        remedy = "; ".join(f"dpublish ledger record {path} {folder}" for folder in unrecorded)
        raise InputError(f"not recorded as published yet, though paid for; run: {remedy}")


def _paid_by(books: Ledger, folder: str, receipt: Receipt) -> tuple[Grant, GrantStatus]:
    """Look up the grant that paid for a release; refuse a receipt that says otherwise."""
    if receipt.dataset is None or receipt.anchor is None:
        raise InvalidParameter(f"{folder} was not paid for from any ledger")
    grant = Grant(receipt.dataset, *receipt.anchor)
    try:
        status = books.grant_status(grant)
    except InvalidParameter:
        raise InvalidParameter(f"{folder} names a grant that the ledger did not make") from None
    if status.epsilon != receipt.epsilon:
        raise InvalidParameter(
            f"{folder} claims epsilon {format_short(receipt.epsilon)}, "
            f"but entry {grant.entry} debited {format_short(status.epsilon)}"
        )
    _require_levels_paid(folder, receipt, grant, status)
    return grant, status


def _require_levels_paid(folder: str, receipt: Receipt, grant: Grant, status: GrantStatus) -> None:
    """Refuse a receipt by which some level pays more than was debited there."""
    paid, claimed = dict(status.levels), dict(receipt.personal)
    if paid and paid.keys() != claimed.keys():
        raise InvalidParameter(f"{folder} has other levels than entry {grant.entry} debited")
    for level, amount in claimed.items():
        if amount > (debited := paid.get(level, status.epsilon)):
            raise InvalidParameter(
                f"{folder} claims epsilon {format_short(amount)} at level {format_short(level)}, "
                f"but entry {grant.entry} debited {format_short(debited)} there"
            )


def _is_recorded(books: Ledger, folder: str, receipt: Receipt) -> bool:
    _, status = _paid_by(books, folder, receipt)
    if status.release_id is None:
        return False
    if (status.release_id, status.release_hash) != (receipt.release_id, folder_hash(Path(folder))):
        raise InvalidParameter(f"{folder} is not the release that the ledger recorded")
    return True
