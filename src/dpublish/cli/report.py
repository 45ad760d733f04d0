"""`dpublish report` and `certificate`: pages about a release, written outside of its folder."""

import os
from pathlib import Path

import click

from dpublish.cli.group import complete_files, complete_ledgers
from dpublish.cli.output import say, say_warnings
from dpublish.core.folder.folder import load
from dpublish.core.folder.manifest import beside
from dpublish.errors import CorruptRelease, InvalidParameter
from dpublish.publishing.table_file import page_path
from dpublish.report.checks import Examined
from dpublish.storage.files import write_text

_KEPT = "report-to-keep.html"
_CERTIFIED = "certificate.html"

_release = click.argument("release", shell_complete=complete_files)
_key = click.option(
    "--key",
    help="The owner's public key, to check the signature with.",
    shell_complete=complete_files,
)


@click.command()
@_release
@click.option(
    "-o",
    "--output",
    help="A new .html file; if absent RELEASE-report.html (RELEASE-report-to-keep.html with "
    "--keep), which is replaced if it is there.",
    shell_complete=complete_files,
)
@click.option(
    "--keep",
    is_flag=True,
    help="Write the owner's report: settings, schema, budget history and checks, too.",
)
@click.option(
    "--ledger",
    help="With --keep: the ledger that paid for the release.",
    shell_complete=complete_ledgers,
)
@_key
@click.option("--released-by", metavar="NAME", help="With --keep: who released it; you if absent.")
def report(
    release: str,
    output: str | None,
    keep: bool,
    ledger: str | None,
    key: str | None,
    released_by: str | None,
) -> None:
    """Write a release's page anew, beside its folder, which does not change; free.

    With --keep, write the report that its owner keeps: all of the page, the purpose, every entry
    of the ledger about the dataset, the schema, and what was checked.  It is never written into
    a release folder.

    \b
    dpublish report ages/
    dpublish report ages/ --keep --ledger books.db -o ages-to-keep.html
    """  # noqa: D301 - click keeps lines after it
    if not keep:
        _refuse_owners_options({"--ledger": ledger, "--key": key, "--released-by": released_by})
        _write_report(release, output)
        return
    from dpublish.report.keep import write_keep

    books = _require_ledger(ledger, "--keep")
    path, replaces = _page(release, output, _KEPT)
    examined = write_keep(release, books, path, key=key, released_by=released_by, replaces=replaces)
    say(f"wrote {path}; keep it with the ledger, it is not for publication")
    _require_right(examined, path)


@click.command()
@_release
@click.option(
    "--ledger",
    required=True,
    help="The ledger that paid for the release.",
    shell_complete=complete_ledgers,
)
@click.option(
    "-o",
    "--output",
    help="A new .html file; if absent RELEASE-certificate.html, which is replaced if it is there.",
    shell_complete=complete_files,
)
@_key
@click.option(
    "--proofs",
    default="",
    metavar="ADDRESS",
    help="Where the proof pages are published: https://example.org/proofs.",
)
def certificate(
    release: str, ledger: str, output: str | None, key: str | None, proofs: str
) -> None:
    """Write a certificate of a release: one page to print and sign; free.

    It states what is guaranteed, what the dataset has spent, who publishes it, and what came of
    the checks.  It is written even if something is wrong; that stands at its top, in red, and
    the command ends with exit code 3.

    \b
    dpublish certificate ages/ --ledger books.db --key owner.pub -o ages-certificate.html
    """  # noqa: D301 - click keeps lines after it
    from dpublish.report.certificate import write_certificate

    path, replaces = _page(release, output, _CERTIFIED)
    examined = write_certificate(release, ledger, path, key=key, proofs=proofs, replaces=replaces)
    say(f"wrote {path}")
    _require_right(examined, path)


def _write_report(release: str, output: str | None) -> None:
    from dpublish.report.page import render_report

    path = page_path(release, output, "report.html")
    where = os.path.relpath(os.path.abspath(release), os.path.abspath(path.parent))
    page = render_report(load(release), folder=where)
    write_text(path, page, replaces=output is None)
    say(f"wrote {path}")


def _refuse_owners_options(given: dict[str, str | None]) -> None:
    named = [name for name, value in given.items() if value is not None]
    if named:
        raise InvalidParameter(f"{', '.join(named)} is for the owner's report: say --keep, too")


def _require_ledger(ledger: str | None, asked: str) -> str:
    if ledger is None:
        raise InvalidParameter(f"{asked} needs the ledger that paid for it: --ledger books.db")
    return ledger


def _page(release: str, output: str | None, ending: str) -> tuple[Path, bool]:
    """Return where a page is written: a new file, or the default one, which may be there."""
    return (beside(release, ending), True) if output is None else (Path(output), False)


def _require_right(examined: Examined, path: Path) -> None:
    """Say what is wrong on the terminal, too, and do not end as if all were well."""
    say_warnings(examined.release.receipt.stamps)
    if examined.problems:
        raise CorruptRelease(f"{path} says in red: {' '.join(examined.problems)}")
