"""The report of a release: what was published, guaranteed and spent, from the release alone."""

from collections.abc import Iterator, Sequence
from fractions import Fraction
from itertools import accumulate
from typing import NamedTuple

from markupsafe import Markup

from dpublish.accuracy.rounding import format_number
from dpublish.core.coverage import coverage_of
from dpublish.core.method import figure_name
from dpublish.core.released import DERIVED, Release, field_description, field_note
from dpublish.plots.style import can_draw, plain_number
from dpublish.privacy.epsilon import format_rounded
from dpublish.privacy.meaning import two_sentences
from dpublish.privacy.receipt import Receipt
from dpublish.report.about import about, how_to_cite, statement_of, what_is_learned
from dpublish.report.html import Page, render_page
from dpublish.report.section import Figure, Listing, Section, section_of

_TITLES = {
    "personal": "Personalized release",
    "personal-answer": "Personalized answer",
    "junction-tree": "Synthetic table",
}
_VARIABLES = {"histogram": "histogram", "top-values": "ranking"}
_DIGITS = "0123456789"
_MOST_DRAWN = 150_000
"""Characters of drawings on a page: with styles and tables it stays below 200 kB."""


def render_report(release: Release, *, with_charts: bool = True, folder: str = "") -> str:
    """Write the page of a release, from the release alone.

    `folder` is the path from the page to the release folder; it is empty if the page lies there.
    """
    return render_page(report_page(release, with_charts=with_charts, folder=folder))


def report_page(release: Release, *, with_charts: bool = True, folder: str = "") -> Page:
    """Collect what the page of a release shows; arguments are those of `render_report`."""
    receipt = release.receipt
    own = section_of(release, with_charts=with_charts and can_draw())
    started = receipt.created[:16].replace("T", " at ")
    title = page_title(release)
    return Page(
        title=title,
        lead=f"Started {started} UTC by dpublish {receipt.package_version}, method "
        f"{receipt.method}.",
        stamps=receipt.stamps,
        sections=[
            about(release),
            _guarantee(receipt),
            _published(release, own),
            _covered(release),
            _accuracy(release),
            _cost(receipt),
            _settings(receipt),
            _files(release, own, folder),
            how_to_cite(release, title),
        ],
    )


def page_title(release: Release) -> str:
    """Return the title that the owner states, or what is published of which dataset."""
    title = _TITLES.get(release.kind, release.kind.replace("-", " ").capitalize())
    dataset = release.receipt.dataset
    return statement_of(release).get("title") or (f"{title} of {dataset}" if dataset else title)


def _guarantee(receipt: Receipt) -> Section:
    said = [receipt.guarantee()]
    if receipt.is_private:
        said.append(two_sentences(receipt.epsilon, receipt.neighbors, receipt.personal))
    if receipt.assumptions:
        said.append("The proof of this method takes for granted:")
    return Section(
        "What was guaranteed",
        said,
        receipt.assumptions,
        is_boxed=True,
        listings=what_is_learned(receipt),
    )


def _published(release: Release, own: Section) -> Section:
    no_charts = Markup(
        "There are no charts, because Matplotlib is missing here: run <code>pip install "
        "matplotlib</code>, and then <code>dpublish report</code> on the release folder."
    )
    shown = _few_enough(own.figures)
    notes = [] if can_draw() else [no_charts]
    if left := len(own.figures) - len(shown):
        number = "1 further chart is" if left == 1 else f"{left:,} further charts are"
        notes.append(
            Markup(
                "{} left out, so that the page stays light: <code>release.plot(NUMBER)</code> "
                "draws each of them, {} to {}."
            ).format(number, len(shown), len(own.figures) - 1)
        )
    return Section(
        "What was published",
        own.paragraphs,
        pairs=release.summary(),
        figures=shown,
        listings=own.listings,
        notes=notes,
    )


def _few_enough(figures: Sequence[Figure]) -> list[Figure]:
    """Return the first drawings, as many as a light page has room for; one at least."""
    sizes = accumulate(len(each.svg) for each in figures)
    fits = [size <= _MOST_DRAWN for size in sizes]
    return list(figures[: max(1, sum(fits))])


def _covered(release: Release) -> Section:
    """Say which records are in the release, and which are not."""
    found = coverage_of(release)
    return Section(
        "What was left out or clipped",
        [f"In it are {found.counts}."],
        pairs=found.columns,
        notes=[
            *found.limits,
            "How many records that leaves out is not published: it would cost privacy.",
        ],
        is_folded=True,
    )


def _accuracy(release: Release) -> Section:
    errors = release.expected_error().items()
    return Section(
        "How good it is",
        ["Known without looking at the truth:"],
        pairs={figure_name(name): plain_number(value) for name, value in errors},
        notes=[
            "A figure marked 95 % holds in 95 of 100 releases. It covers the noise that privacy "
            "needs, not mistakes in the table itself."
        ],
    )


def _cost(receipt: Receipt) -> Section:
    column = Markup('<div class="bar" style="width: {0}%"></div><span class="unseen">{0} %</span>')
    rows = [[row.name, row.epsilon, column.format(row.percent)] for row in share_rows(receipt)]
    notes = [f"Epsilon was {receipt.epsilon_read}."] if receipt.epsilon_read else []
    if receipt.ledger_entry is not None:
        notes.append(
            Markup(
                "Entry {} of the owner's ledger, dataset {}, debited before any record was read. "
                "Its hash is <code>{}</code>; the owner can prove that the ledger still has it "
                "with <code>dpublish ledger verify LEDGER --release RELEASE</code>."
            ).format(receipt.ledger_entry, receipt.dataset, receipt.ledger_hash)
        )
    headers = ["share", "ε", "part of the whole"]
    whole = ["in all", format_rounded(receipt.epsilon), ""]
    return Section(
        "What it cost",
        listings=[Listing(headers, [*rows, whole], "What each share of epsilon paid for.")],
        notes=notes,
        is_folded=True,
    )


def _settings(receipt: Receipt) -> Section:
    return Section(
        "Settings",
        pairs={
            name.replace("_", " "): "not set" if value is None else _words(value)
            for name, value in receipt.settings.items()
        },
        is_folded=True,
    )


def _files(release: Release, own: Section, folder: str) -> Section:
    variable = _VARIABLES.get(release.kind, "release")
    where = f"the folder {folder}" if folder else "this folder"
    load = f'import dpublish\n\n{variable} = dpublish.load("RELEASE")   # {where}\n{own.python}'
    return Section(
        "How to use the files",
        code=[load, own.shell] if own.shell else [load],
        notes=list(_file_notes(release, f"{folder}/" if folder else "")),
        is_folded=True,
    )


def _file_notes(release: Release, prefix: str) -> Iterator[str]:
    """Describe every file and every column that has a description."""
    for name, table in release.tables().items():
        columns = Markup(", ").join(Markup("<code>{}</code>").format(f) for f in table.column_names)
        opened = Markup(
            "<code>{}data/{}.parquet</code> opens in any tool that reads Parquet: {}."
        ).format(prefix, name, columns)
        yield opened
        for field in table.schema:
            words = field_description(field)
            if words and field_note(field, DERIVED) is None:
                yield Markup("<code>{}</code>: {}").format(field.name, words)
    yield Markup(
        "Columns whose names end with <code>_low</code> and <code>_high</code> are the ends of "
        "bins, and of the intervals (95 %) of counts. <code>{}datapackage.json</code> describes "
        "every column."
    ).format(prefix)
    main = "stream.json" if release.kind == "histogram-stream" else "release.json"
    yield Markup(
        "<code>{0}{1}</code> holds everything on this page for programs, "
        "<code>{0}datapackage.json</code> a Frictionless description. Whatever is computed from "
        "these files costs no further privacy."
    ).format(prefix, main)


def _words(value: object) -> str:
    if isinstance(value, dict):  # a method within a method
        given = {name: inner for name, inner in value.items() if inner is not None}
        return "; ".join(f"{name}: {_words(inner)}" for name, inner in given.items())
    if isinstance(value, list):
        return ", ".join(map(str, value))
    if isinstance(value, bool):
        return "yes" if value else "no"
    return str(value)


class ShareRow(NamedTuple):
    """What a share was for, its epsilon, and its part of the whole in percent."""

    name: str
    epsilon: str
    percent: str


def share_rows(receipt: Receipt) -> list[ShareRow]:
    """List the shares; those of disjoint parts that differ by a number only are one row."""
    disjoint = set(receipt.parallel)
    parts: dict[tuple[str, Fraction], list[str]] = {}
    for purpose, share in receipt.shares:
        parts.setdefault((_without_part(purpose, disjoint), share), []).append(purpose)
    return [
        ShareRow(
            _share_name(name, purposes),
            format_rounded(share),
            format_number(float(100 * share / receipt.epsilon)),
        )
        for (name, share), purposes in parts.items()
    ]


def _without_part(purpose: str, disjoint: set[str]) -> str:
    """Remove the numbers of parts, wherever a budget was shared over disjoint ones."""
    steps = purpose.split("/")
    above = ["", *accumulate(steps, "{}/{}".format)]
    return "/".join(
        step.rstrip(_DIGITS).rstrip("- ") if before in disjoint and step[-1:] in _DIGITS else step
        for before, step in zip(above, steps, strict=False)
    )


def _share_name(name: str, purposes: list[str]) -> str:
    if len(purposes) == 1:
        return purposes[0]
    return f"{name} ({len(purposes):,} parts of different records, paid for once)"
