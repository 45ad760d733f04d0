"""`dpublish evaluate`: how good a release is, measured on true rows; for the owner only."""

from pathlib import Path

import click

from dpublish.cli.group import complete_files
from dpublish.cli.output import json_option, say, say_json, say_table
from dpublish.core.folder.folder import load
from dpublish.errors import InvalidParameter
from dpublish.evaluation.evaluations import STAMP, Request, evaluate
from dpublish.evaluation.synthetic_page import evaluation_page
from dpublish.evaluation.true_rows import read_rows
from dpublish.report.html import render_page
from dpublish.storage.files import require_writable, write_text


@click.command(name="evaluate")
@click.argument("release", shell_complete=complete_files)
@click.option(
    "--against",
    required=True,
    help="True rows; to measure classifiers, ones that the release was not made from.",
    shell_complete=complete_files,
)
@click.option(
    "--train",
    help="True rows on which to train classifiers to compare with.",
    shell_complete=complete_files,
)
@click.option("--target", help="The class column, if the release does not name it.")
@click.option("--classifiers", help="Some of direct,tree,logistic,boosting,svm; all if absent.")
@click.option("--seed", default=0, show_default=True, help="Which synthetic rows to draw.")
@click.option(
    "--page",
    help="An .html file to create, with plots; NOT PRIVATE like all of it.",
    shell_complete=complete_files,
)
@json_option
def evaluate_command(
    release: str,
    against: str,
    train: str | None,
    target: str | None,
    classifiers: str | None,
    seed: int,
    page: str | None,
    as_json: bool,
) -> None:
    """Measure a release against true rows.  NOT PRIVATE: for the owner's eyes only.

    A figure that is measured on private rows tells about them: do not publish it.
    Synthetic rows are compared with true ones by marginals, pairs of columns and range counts;
    classifiers are measured where the class column is known, and centers of clusters by the
    distance of true rows from them (NICV).

    \b
    dpublish evaluate incomes/ --against test.parquet --train train.parquet --page good.html
    """  # noqa: D301 - click keeps lines after it
    path = None if page is None else _new_page(page)
    loaded = load(release)
    names = loaded.schema.source_names
    request = Request(
        release=loaded,
        against=read_rows(against, names),
        train=None if train is None else read_rows(train, names),
        target=target,
        classifiers=None if classifiers is None else _listed(classifiers),
        seed=seed,
    )
    findings = evaluate(request)
    if path is not None:
        made = evaluation_page(loaded, findings, request.comparison)
        write_text(path, render_page(made))
    if as_json:
        told = [{"name": finding.name, **finding.figures} for finding in findings]
        say_json({"stamp": STAMP, "evaluations": told})
        return
    say(STAMP)
    for finding in findings:
        say()
        say_table(finding.headers, finding.rows, title=finding.title)
        for note in finding.notes:
            say(f"  note: {note}")
    if path is not None:
        say()
        say(f"page: {path}  (open it in a browser; NOT PRIVATE)")


def _new_page(named: str) -> Path:
    path = Path(named)
    if path.suffix != ".html":
        raise InvalidParameter(f"{named}: name a file ending in .html")
    require_writable(path)
    return path


def _listed(text: str) -> tuple[str, ...]:
    return tuple(part.strip() for part in text.split(",") if part.strip())
