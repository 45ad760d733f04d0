"""`dpublish svt`: ask query after query whether its count is above a threshold."""

from fractions import Fraction

import click
import numpy as np

from dpublish.accuracy.intervals import half_width, require_confidence
from dpublish.cli.group import Group, complete_files, complete_ledgers
from dpublish.cli.output import json_option, say, say_json, schema_option, standing
from dpublish.data.schema_file import load_schema
from dpublish.errors import InvalidParameter
from dpublish.mechanisms.sparse_vector.stored import comparison_deviation
from dpublish.privacy.epsilon import format_epsilon, format_rounded, format_short, read_exact
from dpublish.publishing.svt.outcome import Outcome
from dpublish.publishing.svt.run import PUBLIC, InteractiveRun

_folder = click.argument("folder", shell_complete=complete_files)
_ledger = click.option(
    "--ledger",
    "ledger_path",
    help="The ledger, if it was moved: a file, or postgresql://HOST/DATABASE.",
    shell_complete=complete_ledgers,
)


@click.group(cls=Group)
def svt() -> None:
    """Ask query after query whether its count is above a threshold; only "above" is paid for.

    FOLDER holds all that a run needs to go on.  Its file state.db holds secrets: keep it with the
    ledger.  Its folder public, with receipt and transcript, may be published.  Whatever is
    interrupted, repeat the last command.
    """


@svt.command()
@_folder
@click.option(
    "--data",
    "data_path",
    required=True,
    help="The files of rows; they must stay as they are.",
    shell_complete=complete_files,
)
@schema_option()
@click.option("--epsilon", required=True, help="What all answers together cost, exactly.")
@click.option(
    "--max-positives", type=int, required=True, help='How many queries may be answered "above".'
)
@click.option("--threshold", type=int, help="For queries that name none of their own.")
@click.option(
    "--monotonic/--no-monotonic",
    default=True,
    help="Counts all move the same way when a record is added, which allows for half the noise. "
    "--no-monotonic pays for comparing errors of estimates, too.",
)
@click.option(
    "--numeric-share", help='Part of epsilon, such as 1/3, for noisy counts of what is "above".'
)
@click.option(
    "--ledger",
    "ledger_path",
    help="The ledger that pays: a file, or postgresql://HOST/DATABASE.",
    shell_complete=complete_ledgers,
)
@click.option("--dataset", help="Which dataset of the ledger pays.")
@click.option("--purpose", default="", help="What it is for; kept in the ledger.")
@click.option(
    "--all-have-levels",
    is_flag=True,
    help="Confirm that no record is below the first level, where the dataset has levels.",
)
@click.option("--seed", type=int, help="Try it out without a ledger; NOT PRIVATE.")
def start(
    folder: str,
    data_path: str,
    schema_path: str,
    epsilon: str,
    max_positives: int,
    threshold: int | None,
    monotonic: bool,
    numeric_share: str | None,
    ledger_path: str | None,
    dataset: str | None,
    purpose: str,
    all_have_levels: bool,
    seed: int | None,
) -> None:
    """Start a run and debit its whole cost; answers nothing.

    \b
    dpublish svt start wards --data visits.parquet --schema visits.toml --epsilon 1 \\
        --max-positives 5 --threshold 100 --ledger books.db --dataset visits
    """  # noqa: D301 - click keeps lines after it
    started = InteractiveRun.start(
        folder,
        data_path,
        load_schema(schema_path),
        epsilon=epsilon,
        max_positives=max_positives,
        threshold=threshold,
        monotonic=monotonic,
        numeric_share=_share(numeric_share),
        ledger=ledger_path,
        dataset=dataset,
        purpose=purpose,
        all_have_levels=all_have_levels,
        seed=seed,
    )
    with started as run, standing(f"{folder} is started and paid for; the command may be repeated"):
        done = "started" if run.is_new else "was started already:"
        say(f"{done} {folder}; next: dpublish svt ask {folder} QUERY")
        if seed is None:
            say(f"  debited: epsilon {format_short(run.receipt.epsilon)}, for all answers")
        else:
            say("  NOT PRIVATE: the noise comes from a seed")
        _say_noise(run)
        say(f"  {folder}/state.db holds secrets; {folder}/{PUBLIC} may be published")


@svt.command()
@_folder
@click.argument("query")
@click.option("--threshold", type=int, help="What to compare with, if not with the run's own.")
@click.option(
    "--estimate",
    type=int,
    help="Compare how far the count is from this estimate (--no-monotonic runs).",
)
@click.option("--confidence", type=float, default=0.95, show_default=True)
@click.option(
    "--data", "data_path", help="Where the table is now, if moved.", shell_complete=complete_files
)
@_ledger
@json_option
def ask(
    folder: str,
    query: str,
    threshold: int | None,
    estimate: int | None,
    confidence: float,
    data_path: str | None,
    ledger_path: str | None,
    as_json: bool,
) -> None:
    """Tell whether the count of QUERY is above a threshold.

    What was asked before is answered from the transcript: nothing is read or spent.  Thresholds
    and estimates must not come from the rows, but from public knowledge and earlier answers.

    \b
    dpublish svt ask wards "age >= 65 and sex = Female" --threshold 120
    """  # noqa: D301 - click keeps lines after it
    require_confidence(confidence)
    with InteractiveRun.open(folder, ledger=ledger_path, data=data_path) as run:
        outcome = run.ask(query, threshold=threshold, estimate=estimate)
        with standing("the answer is in the transcript; repeating the command spends nothing"):
            _say_outcome(run, outcome, confidence, as_json)


@svt.command()
@_folder
@_ledger
@json_option
def status(folder: str, ledger_path: str | None, as_json: bool) -> None:
    """Show what was answered, and how many positives are left."""
    with InteractiveRun.open(folder, ledger=ledger_path) as run:
        if as_json:
            say_json(
                {
                    "epsilon": format_epsilon(run.receipt.epsilon),
                    "dataset": run.receipt.dataset,
                    "stamps": list(run.receipt.stamps),
                    "phase": run.phase,
                    "settings": run.terms.to_dict(),
                    "positives_left": run.positives_left,
                    "outcomes": [outcome.to_dict() for outcome in run.outcomes],
                }
            )
        else:
            _say_status(run)


@svt.command()
@_folder
@_ledger
def stop(folder: str, ledger_path: str | None) -> None:
    """End a run for good and forget its secrets; its budget stays debited."""
    with InteractiveRun.open(folder, ledger=ledger_path) as run:
        run.stop()
    say(f"stopped {folder} for good; what the ledger debited for it stays debited")


def _share(text: str | None) -> Fraction | None:
    if text is None:
        return None
    try:
        return read_exact(text)
    except (ValueError, ZeroDivisionError):
        raise InvalidParameter(
            f"--numeric-share {text!r} must be a part of epsilon, such as 1/3 or 0.25"
        ) from None


def _say_outcome(run: InteractiveRun, outcome: Outcome, confidence: float, as_json: bool) -> None:
    answer = outcome.answer(run.calibration, confidence)
    if as_json:
        told = outcome.to_dict() | ({} if answer is None else {"answer": answer.to_dict()})
        say_json(told)
        return
    what = "the count" if outcome.estimate is None else f"its distance from {outcome.estimate:,}"
    side = "above" if outcome.above else "below"
    say(f"{side}: {what} of {outcome.query or 'all records'} against {outcome.threshold:,}")
    if answer is not None:
        say(f"  noisy count: {answer}")
    _say_left(run)


def _say_left(run: InteractiveRun) -> None:
    say(f"  positives left: {run.positives_left} of {run.terms.max_positives}")


def _say_noise(run: InteractiveRun) -> None:
    calibration = run.calibration
    deviation = comparison_deviation(calibration)
    say(f"  noise of a comparison: standard deviation {deviation:,.1f}")
    if calibration.value_rate is not None:
        width = half_width(calibration.value_rate, np.ones(1), 0.95)
        say(f"  noise of a count: within ±{width:,.0f} (95 %)")


def _say_status(run: InteractiveRun) -> None:
    receipt, terms = run.receipt, run.terms
    payer = f"on {receipt.dataset}" if receipt.dataset else "NOT PRIVATE, from a seed"
    say(f"svt {payer}, {run.phase}: epsilon {format_rounded(receipt.epsilon)} for all answers")
    say(f"  compares: {'counts' if terms.monotonic else 'counts, and errors of estimates'}")
    if terms.threshold is not None:
        say(f"  threshold: {terms.threshold:,}")
    _say_noise(run)
    say(f"  queries answered: {len(run.outcomes):,}")
    _say_left(run)
    for outcome in run.outcomes:
        if outcome.above:
            value = "" if outcome.value is None else f", noisy count {outcome.value:,}"
            about = "" if outcome.estimate is None else f" (estimate {outcome.estimate:,})"
            query = outcome.query or "all records"
            say(f"  above {outcome.threshold:,}: {query}{about}{value}")
