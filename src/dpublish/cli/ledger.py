"""`dpublish ledger`: keep the books."""

from typing import Any

import click

from dpublish.cli.group import Group, complete_files, complete_ledgers
from dpublish.cli.level_use import say_level_use
from dpublish.cli.output import F, json_option, say, say_json, say_table, say_warnings
from dpublish.cli.release_schedule import say_schedule
from dpublish.errors import (
    CorruptRelease,
    InputError,
    InvalidParameter,
    LedgerTampered,
    LedgerUnavailable,
)
from dpublish.ledger.account import GrantStatus, Status
from dpublish.ledger.ledger import Ledger
from dpublish.ledger.verify import Verification
from dpublish.planning.schedule import PERIODS, plan_releases
from dpublish.privacy.epsilon import format_epsilon, format_rounded, format_short
from dpublish.publishing.recording import (
    Compared,
    checked_receipts,
    compare_releases,
    record_release,
)

_path = click.argument("path", shell_complete=complete_ledgers)


def _role_options(function: F) -> F:
    """Add the roles of a PostgreSQL server to which a new ledger is opened."""
    for option in (
        click.option(
            "--reader",
            "readers",
            multiple=True,
            metavar="ROLE",
            help="On a server: a role that may show and verify.",
        ),
        click.option(
            "--writer",
            "writers",
            multiple=True,
            metavar="ROLE",
            help="On a server: a role that may grant and publish, but change nothing.",
        ),
    ):
        function = option(function)
    return function


@click.group(cls=Group)
def ledger() -> None:
    """Keep the ledger: set caps, show what was spent, and verify that no entry was altered.

    PATH is a file, or the address of a database that a team shares:
    postgresql://HOST/DATABASE (without a password; see PGPASSFILE).
    """


@ledger.command()
@_path
@click.option(
    "--anchor",
    help="A second file, on another disk or an append-only share, that every change is also "
    "written to and checked against.",
    shell_complete=complete_files,
)
@_role_options
def create(
    path: str, anchor: str | None, writers: tuple[str, ...], readers: tuple[str, ...]
) -> None:
    """Start a new ledger, in a file or on a PostgreSQL server."""
    Ledger.create(path, anchor=anchor, writers=writers, readers=readers).close()
    beside = "" if anchor is None else f" with its anchor {anchor}"
    say(f"created {path}{beside}; next: dpublish ledger add {path} NAME --cap 2.0")


@ledger.command(name="anchor")
@_path
@click.argument("file", shell_complete=complete_files)
@click.option("--lost", is_flag=True, help="The anchor so far is gone, or was set back.")
def set_anchor(path: str, file: str, lost: bool) -> None:
    """Write every change to FILE, too, and check against it.

    It begins now.  FILE is new, or an anchor of this ledger that was moved.
    """
    with Ledger(path) as books:
        books.set_anchor(file, lost=lost)
    say(f"every change of {path} is now also written to {file}, and checked against it")


@ledger.command()
@click.argument("source", shell_complete=complete_ledgers)
@click.argument("target", shell_complete=complete_ledgers)
@_role_options
def copy(source: str, target: str, writers: tuple[str, ...], readers: tuple[str, ...]) -> None:
    """Move a ledger to TARGET, and close SOURCE for good.

    From a file to a server, or back, with all entries.  Two ledgers that both grant would
    overspend together, so SOURCE is closed by an entry that TARGET begins with.  If the command
    is interrupted, repeat it.
    """
    with Ledger(source) as books:
        books.move_to(target, writers=writers, readers=readers)
    with Ledger(target) as books:
        result = books.verify()
    if not result.is_intact:
        raise LedgerTampered(f"{target} is not to be trusted: {'; '.join(result.problems)}")
    say(f"{result.entries:,} entries, head {result.head}")
    say(f"{source} is closed; from now on use {target}")


@ledger.command()
@_path
@click.argument("dataset")
@click.option("--cap", help="The largest epsilon that may be spent on this dataset in all.")
@click.option(
    "--levels",
    help="Instead of a cap: levels to which each person's own epsilon is rounded down: 0.01,0.1,1.",
)
@click.option("--note", default="", help="A remark that the ledger keeps.")
@click.option("--publisher", default="", help="Who publishes it; certificates show it.")
@click.option("--contact", default="", help="Whom to ask: an e-mail or a web address.")
def add(
    path: str,
    dataset: str,
    cap: str | None,
    levels: str | None,
    note: str,
    publisher: str,
    contact: str,
) -> None:
    """Give a dataset a cap on epsilon, or levels of it."""
    if cap is None and levels is None:
        raise InvalidParameter("name what may be spent: --cap 2.0, or --levels 0.01,0.1,1")
    numbers = [] if levels is None else levels.split(",")
    with Ledger(path) as books:
        books.add(dataset, cap=cap, note=note, levels=numbers, publisher=publisher, contact=contact)
        status = books.status(dataset)
    if not status.levels:
        say(f"{dataset} may spend epsilon {cap} in all")
        return
    say(f"each person of {dataset} may spend their level in all: {levels}")
    first = format_short(status.levels[0].level)
    say(f"records whose own epsilon is below {first}, or missing, must not be in any release")


@ledger.command()
@_path
@click.argument("dataset")
@click.option("--publisher", help='Who publishes it; "" takes it back.')
@click.option("--contact", help='Whom to ask: an e-mail or a web address; "" takes it back.')
def describe(path: str, dataset: str, publisher: str | None, contact: str | None) -> None:
    """State who publishes a dataset, and whom to ask.

    Certificates and the owner's reports show it.  What is not named stays as it was.

    \b
    dpublish ledger describe books.db people --publisher "City of Example" --contact dp@example.org
    """  # noqa: D301 - click keeps lines after it
    if publisher is None and contact is None:
        raise InvalidParameter("say what changes: --publisher, --contact, or both")
    with Ledger(path) as books:
        books.describe(dataset, publisher=publisher, contact=contact)
        status = books.status(dataset)
    _say_stated(status)


@ledger.command(name="cap")
@_path
@click.argument("dataset")
@click.argument("cap")
@click.option("--reason", required=True, help="Why; the ledger keeps it for good.")
def change_cap(path: str, dataset: str, cap: str, reason: str) -> None:
    """Change a dataset's cap, for a stated reason."""
    with Ledger(path) as books:
        books.change_cap(dataset, cap, reason=reason)
    say(f"{dataset} may now spend epsilon {cap} in all")


@ledger.command()
@_path
@click.argument("dataset", required=False)
@click.option("--exact", is_flag=True, help="Write every epsilon exactly, such as 1/3.")
@json_option
def show(path: str, dataset: str | None, exact: bool, as_json: bool) -> None:
    """Show caps, what is left of them, and every grant."""
    with Ledger(path) as books:
        names = [dataset] if dataset else list(books.datasets())
        statuses = [books.status(name) for name in names]
        anchor, warnings = books.anchor, books.anchor_warnings()
    say_warnings(warnings)
    if as_json:
        file = None if anchor is None else str(anchor)
        say_json([_plain(status) | {"anchor": file} for status in statuses])
        return
    written = format_epsilon if exact else format_rounded
    say_table(
        ["dataset", "cap", "spent", "left", "grants", "hides"],
        [
            [
                status.dataset,
                *(written(amount) for amount in (status.cap, status.spent, status.left)),
                f"{len(status.grants):,}",
                "not decided yet" if status.hides is None else status.hides.brief(),
            ]
            for status in statuses
        ],
    )
    _say_remarks(statuses)
    for status in statuses:
        if status.levels:
            _show_levels(status)
    rows = [
        _grant_row(status.dataset, grant, written(grant.epsilon))
        for status in statuses
        for grant in status.grants
    ]
    if rows:
        say()
        say_table(["entry", "time", "dataset", "epsilon", "hides", "state", "purpose"], rows)
    if anchor is not None:
        say()
        say(f"anchor: {click.format_filename(anchor)}")


def _say_remarks(statuses: list[Status]) -> None:
    """Print what a table of amounts does not say of some datasets."""
    for status in statuses:
        if status.publisher or status.contact:
            _say_stated(status)
    for status in statuses:
        if status.window is not None:
            say(
                f"{status.dataset}: cap, spent and left are per window of {status.window:,} "
                "snapshots; they are spent anew in every window, without end"
            )


def _say_stated(status: Status) -> None:
    """Print who publishes a dataset, and whom to ask."""
    publisher, contact = status.publisher or "not stated", status.contact or "not stated"
    say(f"{status.dataset}: publisher: {publisher}; contact: {contact}")


def _plain(status: Status) -> dict[str, Any]:
    """Return a status as plain values, with what is hidden in words, too."""
    words = None if status.hides is None else status.hides.brief()
    return status.to_dict() | {"hides_in_words": words}


def _show_levels(status: Status) -> None:
    """Draw how much of each level is used."""
    say()
    say(f"{status.dataset}: epsilon by level (cap, spent and left above are the highest level's)")
    say_level_use(
        {each.level: each.spent for each in status.levels},
        {each.level: each.left for each in status.levels},
        heading="spent",
    )


def _grant_row(dataset: str, grant: GrantStatus, epsilon: str) -> list[str]:
    shown = f"up to {epsilon}, by level" if grant.levels else epsilon
    if grant.window is not None:
        shown = f"{epsilon} per window of {grant.window:,}"
    if grant.all_have_levels:
        shown += " at every level (all have levels, by the owner's word)"
    hides = grant.hides.brief()
    return [f"{grant.entry:,}", grant.time, dataset, shown, hides, grant.state, grant.purpose]


@ledger.command(name="plan")
@_path
@click.argument("dataset")
@click.option("--releases", type=int, help="How many releases there will be.")
@click.option(
    "--per",
    type=click.Choice(list(PERIODS)),
    help="How often; alone it means the releases of one year.",
)
@click.option("--epsilon", help="Instead: what each release will cost. Says how many there can be.")
@click.option("--keep", help="What to keep for later: an epsilon, 0.2, or a part, 20%.")
@json_option
def plan_releases_of(
    path: str,
    dataset: str,
    releases: int | None,
    per: str | None,
    epsilon: str | None,
    keep: str | None,
    as_json: bool,
) -> None:
    """Divide what is left of a cap over the releases to come.  Spends nothing.

    \b
    dpublish ledger plan books.db people --releases 12 --per month
    dpublish ledger plan books.db people --per week --keep 20%
    dpublish ledger plan books.db people --epsilon 0.1
    """  # noqa: D301 - click keeps lines after it
    with Ledger(path) as books:
        status = books.status(dataset)
        warnings = books.anchor_warnings()
    found = plan_releases(status, releases=releases, epsilon=epsilon, per=per, keep=keep)
    say_warnings(warnings)
    if as_json:
        say_json(found.to_dict())
    else:
        say_schedule(found)


@ledger.command()
@_path
@click.argument("release", shell_complete=complete_files)
def record(path: str, release: str) -> None:
    """Enter a release whose command was interrupted."""
    with Ledger(path) as books:
        done = record_release(books, release)
    if done.is_new:
        say(f"entered {release} under entry {done.entry:,}")
    else:
        say(f"{release} is entered already, under entry {done.entry:,}")


@ledger.command()
@_path
@click.option("--head", help="The head hash noted down earlier.")
@click.option(
    "--release",
    "releases",
    multiple=True,
    help="A release folder to check against.",
    shell_complete=complete_files,
)
@click.option(
    "--anchor",
    help="The ledger's anchor, or a copy; the one that it names if absent.",
    shell_complete=complete_files,
)
@json_option
def verify(
    path: str, head: str | None, releases: tuple[str, ...], anchor: str | None, as_json: bool
) -> None:
    """Check that no entry was edited, removed or reordered.

    That the last entries were not cut off shows against what is kept elsewhere: the ledger's
    anchor, the receipts of releases, a head hash.  With --release, also that a release is the
    one that was recorded; files that were changed, are missing or were added are named.
    """
    receipts = checked_receipts(releases)
    with Ledger(path) as books:
        result = books.verify(expected_head=head, anchor_file=anchor)
        in_order = not _ledger_problems(result)
        checked = compare_releases(books, path, receipts, is_in_order=in_order)
    problems = [*result.problems, *checked.contradictions, *checked.problems]
    compared = [*result.compared, *checked.compared]
    if as_json:
        told = {"entries": result.entries, "head": result.head, "problems": problems}
        told |= {"compared": compared, "unrecorded": checked.unrecorded}
        say_json(told | {"warnings": list(result.warnings)})
    else:
        say(f"{result.entries:,} entries, head {result.head}")
    say_warnings(result.warnings)
    _require_trusted(path, result, checked, is_named=anchor is not None)
    if not as_json:
        say("the chain is whole")
        say(f"compared with {'; '.join(compared)}" if compared else _COMPARED_WITH_NOTHING)
    if checked.unrecorded:
        remedy = "; ".join(f"dpublish ledger record {path} {each}" for each in checked.unrecorded)
        raise InputError(f"not recorded as published yet, though paid for; run: {remedy}")


_COMPARED_WITH_NOTHING = (
    "compared with nothing kept elsewhere: that its end was cut off would not show; set an "
    "anchor, or name a release (--release) or a head noted earlier (--head)"
)


def _ledger_problems(result: Verification) -> list[str]:
    return [problem for problem in result.problems if problem != result.anchor_problem]


def _require_trusted(path: str, result: Verification, checked: Compared, *, is_named: bool) -> None:
    """Refuse what was found wrong, and blame the ledger, its anchor or the release for it."""
    if problems := _ledger_problems(result):
        every = (*problems, result.anchor_problem, *checked.contradictions, *checked.problems)
        told = "; ".join(each for each in every if each is not None)
        raise LedgerTampered(f"{path} is not to be trusted: {told}")
    if checked.contradictions:
        raise LedgerTampered("; ".join((*checked.contradictions, *checked.problems)))
    if checked.problems:
        told = "; ".join(checked.problems)
        raise CorruptRelease(f"the release is not to be trusted, and {path} is in order: {told}")
    if result.anchor_problem is not None:
        where = "check the name after --anchor" if is_named else _advise_anchor(path)
        advice = "" if "--" in result.anchor_problem else f"; {where}"
        raise LedgerUnavailable(
            f"{result.anchor_problem}{advice}. Its entries are in order, but {path} could not be "
            "compared with its anchor, so a cut-off end would not show"
        )


def _advise_anchor(path: str) -> str:
    return (
        f"bring it back, or set another one if it is lost for good: dpublish ledger anchor {path} "
        "FILE --lost"
    )
