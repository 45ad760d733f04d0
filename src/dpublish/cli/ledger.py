"""`dpublish ledger`: keep the books."""

from pathlib import Path

import click

from dpublish.cli.output import json_option, say, say_json, say_table
from dpublish.errors import InputError, InvalidParameter, LedgerTampered
from dpublish.privacy.budget import Grant
from dpublish.privacy.epsilon import format_epsilon, format_short
from dpublish.privacy.ledger import Ledger
from dpublish.privacy.ledger_account import GrantStatus
from dpublish.privacy.receipt import Receipt
from dpublish.release.folder import folder_hash, load

_path = click.argument("path")


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
@click.option("--cap", required=True, help="The most that may ever be spent on this dataset.")
@click.option("--note", default="", help="A remark for the books.")
def add(path: str, dataset: str, cap: str, note: str) -> None:
    """Give a dataset an allowance."""
    with Ledger(path) as books:
        books.add(dataset, cap=cap, note=note)
    say(f"{dataset} may spend epsilon {cap} in all")


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
    rows = [
        [
            str(grant.entry),
            grant.time,
            status.dataset,
            format_epsilon(grant.epsilon),
            grant.state,
            grant.purpose,
        ]
        for status in statuses
        for grant in status.grants
    ]
    if rows:
        say()
        say_table(["entry", "time", "dataset", "epsilon", "state", "purpose"], rows)


@ledger.command()
@_path
@click.argument("release")
def record(path: str, release: str) -> None:
    """Enter a release whose publication was interrupted before the books were closed on it."""
    receipt = load(release).receipt
    with Ledger(path) as books:
        grant, _ = _paid_by(books, release, receipt)
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
    return grant, status


def _is_recorded(books: Ledger, folder: str, receipt: Receipt) -> bool:
    _, status = _paid_by(books, folder, receipt)
    if status.release_id is None:
        return False
    if (status.release_id, status.release_hash) != (receipt.release_id, folder_hash(Path(folder))):
        raise InvalidParameter(f"{folder} is not the release that the ledger recorded")
    return True
