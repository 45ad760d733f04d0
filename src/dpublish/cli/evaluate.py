"""`dpublish evaluate`: how good a release is, measured on true rows; for the owner only."""

import click

from dpublish.cli.output import json_option, say, say_json, say_table
from dpublish.evaluation.evaluations import STAMP, Request, evaluate
from dpublish.evaluation.true_rows import read_rows
from dpublish.release.folder import load


@click.command(name="evaluate")
@click.argument("release")
@click.option("--against", required=True, help="True rows that the release was not made from.")
@click.option("--train", help="True rows on which to train classifiers to compare with.")
@click.option("--target", help="The class column, if the release does not name it.")
@click.option("--classifiers", help="Some of direct,tree,logistic,boosting,svm; all if absent.")
@click.option("--seed", default=0, show_default=True, help="Which synthetic rows to draw.")
@json_option
def evaluate_command(
    release: str,
    against: str,
    train: str | None,
    target: str | None,
    classifiers: str | None,
    seed: int,
    as_json: bool,
) -> None:
    """Measure a release against true rows.  NOT PRIVATE: for the owner's eyes only.

    A figure that is measured on private rows tells about them: do not publish it.

    \b
    dpublish evaluate incomes/ --against test.parquet --train train.parquet
    """  # noqa: D301 - click keeps lines after it
    loaded = load(release)
    names = loaded.schema.names
    request = Request(
        release=loaded,
        against=read_rows(against, names),
        train=None if train is None else read_rows(train, names),
        target=target,
        classifiers=None if classifiers is None else _listed(classifiers),
        seed=seed,
    )
    findings = evaluate(request)
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


def _listed(text: str) -> tuple[str, ...]:
    return tuple(part.strip() for part in text.split(",") if part.strip())
