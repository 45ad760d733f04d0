"""The report to keep: all of a release's report, and what the owner alone should know of it.

It tells the purposes of every grant, what is left, and who released it.  So it is written outside
of every release folder, and no manifest lists it.
"""

import getpass
import os
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

from dpublish.core.folder.folder import require_outside_releases
from dpublish.core.folder.signing import PublicKey
from dpublish.data.schema_file import dumps_toml
from dpublish.errors import InvalidParameter
from dpublish.ledger.account import GrantStatus, Status
from dpublish.ledger.chain import is_one_line
from dpublish.ledger.history import Event
from dpublish.ledger.ledger import Ledger
from dpublish.plots.style import can_draw
from dpublish.privacy.epsilon import format_rounded, quoted
from dpublish.report.about import tell_date
from dpublish.report.checks import Examined, examine
from dpublish.report.html import made_by, render_page
from dpublish.report.page import report_page
from dpublish.report.section import Listing, Section
from dpublish.storage.files import require_writable, write_text

STAMP = "FOR THE OWNER: keep this page with the ledger; it is not a part of the release"
Clock = Callable[[], datetime]


def write_keep(
    folder: str | os.PathLike[str],
    ledger: Ledger | str | os.PathLike[str],
    output: str | os.PathLike[str],
    *,
    key: PublicKey | str | os.PathLike[str] | None = None,
    released_by: str | None = None,
    replaces: bool = False,
) -> Examined:
    """Write the report to keep of a release, as a new HTML file outside of every release folder.

    Args:
        folder: The release folder.
        ledger: The ledger that paid for it, open or by its location.
        output: The file to write.
        key: The owner's public key, with which the signature is checked.
        released_by: Who released it; the operating system's user unless it is named.
        replaces: Whether a file that is there is replaced.

    Returns:
        What was checked; `problems` are stated in red on the page.
    """
    path = owners_page(output, replaces=replaces)
    examined = examine(folder, ledger, key=key)
    write_text(path, render_keep(examined, released_by=released_by), replaces=replaces)
    return examined


def owners_page(output: str | os.PathLike[str], *, replaces: bool = False) -> Path:
    """Return where a page of the owner's is written; refuse what lies in a release folder."""
    path = Path(output)
    if path.suffix != ".html":
        raise InvalidParameter(f"{path}: name a file ending in .html")
    require_outside_releases(path)
    require_writable(path, replaces=replaces)
    return path


def render_keep(
    examined: Examined,
    *,
    released_by: str | None = None,
    with_charts: bool = True,
    clock: Clock | None = None,
) -> str:
    """Write the report to keep, from what was examined."""
    who = released_by_whom(released_by)
    release = examined.release
    page = report_page(release, with_charts=with_charts and can_draw(), folder=str(examined.folder))
    return render_page(
        replace(
            page,
            title=f"{page.title}: report to keep",
            lead=f"{page.lead} This page: {tell_date(now(clock))}. {made_by()}",
            stamps=[*examined.problems, *page.stamps, STAMP],
            sections=[
                _released(examined, who),
                _checked(examined),
                *_budget(examined),
                *(replace(each, is_folded=True) for each in page.sections),
                Section("Schema as it was used", code=[dumps_toml(release.schema)], is_folded=True),
            ],
        )
    )


def released_by_whom(stated: str | None) -> str:
    """Return who released something: as stated, or the operating system's user."""
    if stated is not None:
        if not is_one_line(stated):
            raise InvalidParameter(f"released_by must be one line of text, not {quoted(stated)}")
        return stated
    try:
        return getpass.getuser()
    except (OSError, KeyError):  # a container may run as a user who has no name
        return "unknown"


def now(clock: Clock | None) -> str:
    """Write down what the clock says, in UTC; without one, the time."""
    time = datetime.now(UTC) if clock is None else clock()
    return time.astimezone(UTC).isoformat(timespec="seconds")


def _released(examined: Examined, who: str) -> Section:
    receipt, grant, status = examined.release.receipt, examined.grant, examined.account
    unknown = "unknown: the ledger has no entry of it"
    pairs = {
        "purpose": unknown if grant is None else grant.purpose,
        "released by": who,
        "granted": unknown if grant is None else _time(grant.time),
        "dataset": receipt.dataset or "none: no ledger paid for it",
        "publisher": _stated(status, "publisher"),
        "contact": _stated(status, "contact"),
        "release id": receipt.release_id,
        "folder": str(examined.folder),
        "digest (SHA-256)": examined.digest,
        "dpublish": receipt.package_version,
    }
    if examined.manifest_digest != examined.digest:
        pairs[f"digest of {examined.manifest}"] = examined.manifest_digest
    return Section("Who released it, and for what", pairs=pairs)


def _stated(status: Status | None, name: str) -> str:
    if status is None:
        return "unknown: the ledger does not vouch for this release"
    stated: str = getattr(status, name)
    return stated or "not stated (on the dataset's page of the studio, or dpublish ledger describe)"


def _checked(examined: Examined) -> Section:
    rows = [[check.what, check.result, check.found] for check in examined.checks]
    return Section("What was checked", listings=[Listing(["check", "result", "found"], rows)])


def _budget(examined: Examined) -> list[Section]:
    """Tell what the dataset may spend, and every entry of the ledger about it."""
    status = examined.status
    if status is None:
        return [Section("Budget of the dataset", ["The ledger does not know the dataset."])]
    listings = [_history(examined.history)]
    notes = [
        "The time of a publish entry tells how long the release took, and so about how many "
        "records there are: do not publish it."
    ]
    if status.levels:
        listings.insert(0, _levels(status))
        notes.append("With levels, ε, cap and what is left are those of the highest level.")
    doubt = "The ledger does not vouch for this release, so another account may have paid for it."
    return [
        Section(
            f"Budget of {status.dataset}",
            [doubt] if examined.account is None else [],
            pairs={
                "cap": f"ε = {format_rounded(status.cap)}{_per(status)}",
                "spent": format_rounded(status.spent),
                "left": format_rounded(status.left),
                "grants": f"{len(status.grants):,}",
                "hidden": "not decided yet" if status.hides is None else status.hides.brief(),
            },
            listings=listings,
            notes=notes,
        )
    ]


def _per(status: Status) -> str:
    return "" if status.window is None else f", within any {status.window:,} consecutive snapshots"


def _levels(status: Status) -> Listing:
    rows = [
        [format_rounded(amount) for amount in (each.level, each.spent, each.left)]
        for each in status.levels
    ]
    return Listing(["level", "spent", "left"], rows, "What each level has spent.")


def _history(history: tuple[Event, ...]) -> Listing:
    rows = [
        [
            f"{event.entry:,}",
            _time(event.time),
            event.kind,
            event.what,
            "" if event.grant is None else format_rounded(event.grant.epsilon),
            "" if event.grant is None else _state(event.grant),
            format_rounded(event.left),
        ]
        for event in history
    ]
    headers = ["entry", "time (UTC)", "kind", "purpose or words", "ε", "state", "left"]
    return Listing(headers, rows, "Every entry of the ledger about it, and what was left after.")


def _state(grant: GrantStatus) -> str:
    return grant.state if grant.window is None else f"{grant.state}, per window"


def _time(time: str) -> str:
    return time[:16].replace("T", " ")
