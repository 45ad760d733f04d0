"""`dpublish evaluate`: how good a release is, measured on true rows; for the owner only."""

from pathlib import Path

import click

from dpublish.cli.group import complete_files
from dpublish.cli.output import json_option, say, say_json, say_table
from dpublish.cli.step_options import RecordSteps, step_options
from dpublish.data.steps import read_steps
from dpublish.errors import InvalidParameter
from dpublish.evaluation.evaluate import make_request
from dpublish.evaluation.evaluations import evaluate
from dpublish.evaluation.report import HEADERS, EvaluationReport
from dpublish.evaluation.synthetic_page import evaluation_page
from dpublish.report.html import render_page
from dpublish.storage.files import require_writable, write_text


@click.command(name="evaluate")
@click.argument("release", shell_complete=complete_files)
@click.option(
    "--against",
    required=True,
    help="True rows; to measure classifiers, ones that the release was not made from. Of a "
    "stream also a folder of snapshots, whose file names are the steps.",
    shell_complete=complete_files,
)
@click.option(
    "--train",
    help="True rows on which to train classifiers to compare with.",
    shell_complete=complete_files,
)
@click.option("--target", help="The class column, if the release does not name it.")
@click.option("--classifiers", help="Some of direct,tree,logistic,boosting,svm; all if absent.")
@click.option("--step", help="Of a stream: the column that holds the step of each row.")
@click.option("--brief", is_flag=True, help="Print the score and its parts, and no tables.")
@click.option("--seed", default=0, show_default=True, help="Which synthetic rows to draw.")
@click.option(
    "--page",
    help="An .html file to create, with plots; NOT PRIVATE like all of it.",
    shell_complete=complete_files,
)
@step_options
@json_option
def evaluate_command(
    release: str,
    against: str,
    train: str | None,
    target: str | None,
    classifiers: str | None,
    step: str | None,
    brief: bool,
    seed: int,
    page: str | None,
    steps: RecordSteps,
    as_json: bool,
) -> None:
    """Measure a release against true rows.  NOT PRIVATE: for the owner's eyes only.

    The answer is one score from 0 to 100, a sentence that says what the release is good for,
    and the parts of the score: shares of columns, pairs and triples, counts of ranges,
    predictions, clusters, statistics, rankings, steps of a stream, whichever the release offers.
    100 is as good as a fresh sample of as many rows, or as a method without privacy; 0 is no
    better than knowing nothing.  Tables with details follow.

    A figure that is measured on private rows tells about them: do not publish it.

    \b
    dpublish evaluate incomes/ --against test.parquet --train train.parquet --page good.html
    dpublish evaluate rides/ --against snapshots/
    """  # noqa: D301 - click keeps lines after it
    path = None if page is None else _new_page(page)
    request = make_request(
        release,
        against,
        train=train,
        target=target,
        classifiers=None if classifiers is None else _listed(classifiers),
        seed=seed,
        step=step,
        steps=read_steps(**steps.options()),
    )
    report = evaluate(request)
    if path is not None:
        made = evaluation_page(request.release, report, request.comparison)
        write_text(path, render_page(made))
    if as_json:
        say_json(report.to_dict())
        return
    _say_verdict(report)
    if not brief:
        _say_tables(report)
    if path is not None:
        say()
        say(f"page: {path}  (open it in a browser; NOT PRIVATE)")


def _say_verdict(report: EvaluationReport) -> None:
    say(report.stamp)
    say()
    say(f"score: {report.verdict}")
    say()
    say_table(HEADERS, report.rows(), title="Parts of the score")
    for part in report.parts:
        say(f"  {part.name}: {part.sentence}")


def _say_tables(report: EvaluationReport) -> None:
    for finding in report:
        say()
        say_table(finding.headers, finding.rows, title=finding.title)
        for note in finding.notes:
            say(f"  note: {note}")


def _new_page(named: str) -> Path:
    path = Path(named)
    if path.suffix != ".html":
        raise InvalidParameter(f"{named}: name a file ending in .html")
    require_writable(path)
    return path


def _listed(text: str) -> tuple[str, ...]:
    return tuple(part.strip() for part in text.split(",") if part.strip())
