"""`dpublish stream`: publish a histogram of a changing table at every step."""

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from io import BufferedIOBase
from pathlib import Path
from typing import Any

import click

from dpublish.cli.group import Group, MethodCommand, complete_files, complete_ledgers
from dpublish.cli.output import (
    FREE_SETTINGS,
    json_option,
    method_options,
    payment_options,
    say,
    say_aside,
    say_json,
    say_table,
    settings_from,
    standing,
)
from dpublish.cli.signing import read_signing_key, say_signed, sign_option
from dpublish.cli.step_options import RecordSteps, step_options
from dpublish.cli.stream_feed import listed, standard_input, watched
from dpublish.core.folder.folder import is_signed
from dpublish.core.folder.signing import SigningKey
from dpublish.data.schema_file import load_schema
from dpublish.errors import DPublishError, InvalidParameter
from dpublish.methods.streams.method import make_stream_method
from dpublish.methods.streams.stream import Step
from dpublish.privacy.epsilon import format_epsilon, format_rounded, format_short, parse_epsilon
from dpublish.publishing.streams.lease import LEASE_SECONDS
from dpublish.publishing.streams.operator import StreamOperator
from dpublish.publishing.streams.snapshots import files_in, label_of, require_source
from dpublish.publishing.streams.state import TakenOver
from dpublish.publishing.streams.status import StreamStatus, stream_status

_BLOCK = 1 << 20
_MOST_LISTED = 50
_state = click.argument("state", shell_complete=complete_files)
_ledger = click.option(
    "--ledger",
    "ledger_path",
    help="The ledger, if it was moved: a file, or postgresql://HOST/DATABASE.",
    shell_complete=complete_ledgers,
)


def _lease_options(command: Callable[..., None]) -> Callable[..., None]:
    """Add the options by which an operator asks for a stream."""
    for option in (
        click.option(
            "--take-over",
            is_flag=True,
            help="Take the stream from an operator that is gone (STATE on a server).",
        ),
        click.option(
            "--wait",
            "wait_seconds",
            type=click.FloatRange(min=0),
            default=0.0,
            help="Seconds to wait for another operator who has the stream.",
        ),
        click.option(
            "--lease",
            "lease_seconds",
            type=click.FloatRange(min=1, max=86_400),
            default=LEASE_SECONDS,
            show_default=True,
            help="Seconds after which a silent operator may be replaced (STATE on a server).",
        ),
    ):
        command = option(command)
    return command


@click.group(cls=Group)
def stream() -> None:
    """Publish a histogram of a changing table at every step, for a fixed guarantee in all.

    STATE is a file that holds all a stream needs to go on, or postgresql://HOST/DATABASE#NAME:
    then another machine can go on.  It holds secrets: keep it with the ledger.  Whatever is
    interrupted, repeat the last command.
    """


@stream.command(cls=MethodCommand, context_settings=dict(FREE_SETTINGS))
@_state
@method_options
@click.option("--epsilon", required=True, help="For all steps, or for every window: exactly.")
@step_options
@click.option(
    "--try",
    "try_path",
    metavar="FILE",
    help="A first snapshot: check that it has the columns, and then start; nothing is paid if not.",
    shell_complete=complete_files,
)
@payment_options
@sign_option
@_lease_options
@click.pass_context
def start(
    ctx: click.Context,
    /,
    state: str,
    method: str,
    schema_path: str,
    pairs: tuple[str, ...],
    epsilon: str,
    try_path: str | None,
    ledger_path: str,
    dataset: str,
    purpose: str,
    all_have_levels: bool,
    output: str,
    sign_path: str | None,
    steps: RecordSteps,
    **claim: Any,
) -> None:
    """Start a stream and debit its whole cost; reads no rows.

    \b
    dpublish stream start taxis.stream --method per-snapshot --columns zone --horizon 500 \\
        --schema taxis.toml --epsilon 1 --try 2024-05-01.csv \\
        --ledger books.db --dataset taxis -o taxis/
    """  # noqa: D301 - click keeps lines after it
    key = read_signing_key(sign_path)
    chosen = make_stream_method(method, settings_from(ctx.args, pairs))
    exact = parse_epsilon(epsilon)
    schema = load_schema(schema_path)
    started = StreamOperator.start(
        state,
        chosen,
        schema,
        ledger=ledger_path,
        dataset=dataset,
        epsilon=exact,
        output=output,
        purpose=purpose,
        all_have_levels=all_have_levels,
        **steps.options(),
        try_table=try_path,
        **claim,
    )
    with standing(f"{state} is started and paid for; the same command may be repeated"):
        with started as operator:
            operator.write_pages(key)
        said = f"{state} was started already and is paid for"
        if started.is_new:
            said = f"started {state}"
        say(f"{said}; next: dpublish stream next {state} SNAPSHOT")
        if try_path is not None:
            say(f"  tried: {try_path} has the columns that are read; it is not published yet")
        say_signed(key)
        debited = f"epsilon {format_short(exact)}, for {_scope(chosen.window, chosen.horizon)}"
        say(f"  debited: {debited}")
        say(f"  {state} holds secrets; keep it where the ledger is")


@stream.command(name="next")
@_state
@click.argument("source", required=False, shell_complete=complete_files)
@click.option("--time", "label", help="What time the snapshot is of; its file's name if absent.")
@click.option(
    "--files",
    "names",
    help="A file that lists snapshots, one a line; - as they come.",
    shell_complete=complete_files,
)
@click.option("--watch", is_flag=True, help="Keep looking for new files in a folder.")
@click.option(
    "--poll",
    type=click.FloatRange(min=0.05),
    default=10.0,
    show_default=True,
    help="Seconds between two looks.",
)
@click.option("--pattern", help="Which files of a folder, such as '*.parquet'.")
@click.option(
    "--new-labels", is_flag=True, help="Take labels that differ in more than their numbers."
)
@_ledger
@click.option(
    "-o",
    "--output",
    help="Where the release folder is now, if it was moved or lost.",
    shell_complete=complete_files,
)
@sign_option
@_lease_options
@json_option
def next_step(
    state: str,
    source: str | None,
    label: str | None,
    names: str | None,
    watch: bool,
    poll: float,
    pattern: str | None,
    new_labels: bool,
    ledger_path: str | None,
    output: str | None,
    sign_path: str | None,
    as_json: bool,
    **claim: Any,
) -> None:
    """Publish the next step, or all steps of a folder.

    SOURCE is a file, a folder, or - for the CSV lines of one snapshot on standard input.

    Labels and the number of snapshots are published exactly: they must not depend on rows, so
    hand in an empty snapshot rather than none.  Set no time limit that a step may reach: one
    that stops some outcomes more often than others tells about the rows.

    \b
    dpublish stream next taxis.stream 2024-05-01T10.parquet
    dpublish stream next taxis.stream incoming/ --watch
    tail -f done.log | dpublish stream next taxis.stream --files -
    """  # noqa: D301 - click keeps lines after it
    if (source is None) == (names is None):
        raise InvalidParameter("name one SOURCE, or a list of them with --files")
    is_folder = source is not None and Path(source).is_dir()
    if (watch or pattern is not None) and not is_folder:
        raise InvalidParameter("--watch and --pattern are for a folder")
    if source == "-" and label is None:
        raise InvalidParameter("say with --time what time the snapshot is of")
    if label is not None and (is_folder or names is not None):
        raise InvalidParameter("--time is for one snapshot; several are named by their files")
    key = read_signing_key(sign_path)
    opened = StreamOperator.open(state, ledger=ledger_path, output=output, **claim)
    with opened as operator, _reported(operator, key):
        taker = _Taker(operator, new_labels, as_json, key)
        if names is not None:
            taker.take_all(listed(names))
        elif is_folder and watch:
            taker.take_all(watched(Path(str(source)), pattern, poll))
        elif is_folder:
            taker.take_all(files_in(Path(str(source)), pattern))
        else:
            taker.take_one(str(source), label)


@stream.command()
@_state
@json_option
def status(state: str, as_json: bool) -> None:
    """Show steps, budget, and what coming windows have used."""
    found = stream_status(state)
    if as_json:
        say_json(found.to_dict())
    else:
        _say_status(found)


@stream.command()
@_state
@_ledger
@sign_option
@_lease_options
def stop(state: str, ledger_path: str | None, sign_path: str | None, **claim: Any) -> None:
    """End a stream for good; its budget stays debited."""
    key = read_signing_key(sign_path)
    opened = StreamOperator.open(state, ledger=ledger_path, **claim)
    with opened as operator, _reported(operator, key):
        operator.stop()
    say(f"stopped {state} for good; what the ledger debited for it stays debited")
    say_signed(key)


@contextmanager
def _reported(operator: StreamOperator, key: SigningKey | None) -> Iterator[None]:
    """Write the report when the command ends, however it ends; leave a folder that is current."""
    was_signed = is_signed(operator.folder)
    try:
        with operator.reporting(key):
            yield
    finally:
        _say_if_unsigned(operator.folder, was_signed)


def _say_if_unsigned(folder: Path, was_signed: bool) -> None:
    if was_signed and not is_signed(folder):
        say_aside(
            f"{folder} has changed and is no longer signed; next time say --sign FILE, or run: "
            f"dpublish sign {folder} --key FILE"
        )


@dataclass(frozen=True)
class _Taker:
    """Hands snapshots to an operator and tells what came of them."""

    operator: StreamOperator
    new_labels: bool
    as_json: bool
    key: SigningKey | None

    def take_one(self, source: str, label: str | None) -> None:
        """Publish one snapshot, from a file or from standard input."""
        if source == "-":
            rows = standard_input()
            self._take(rows, str(label))
            while rows.read1(_BLOCK):  # whoever writes them is not cut off
                pass
        else:
            time = label_of(Path(source)) if label is None else label
            if not self.operator.has_published(time):
                require_source(source)  # a name that is mistyped makes an odd label, too
            self._take(source, time)

    def take_all(self, files: Iterable[Path | None]) -> None:
        """Publish files in order; None says that there is time for the report.

        Those that are published already are passed over in silence; those that are late, or not
        named like the others, are named.
        """
        is_fresh = False
        try:
            for path in files:
                if path is None:
                    self._rest(is_fresh)
                    is_fresh = False
                elif self._is_next(path):
                    if self.operator.is_over:
                        say("the stream is over; files that are left were not read")
                        return
                    self._take(path, label_of(path))
                    is_fresh = True
        except TakenOver:
            raise
        except DPublishError as error:
            error.add_note("mend or move it and repeat the command: every step so far is whole")
            raise
        except KeyboardInterrupt:
            say("interrupted; every step so far is whole, and the same command goes on from here")

    def _rest(self, is_fresh: bool) -> None:
        """Write the report of fresh steps; a watcher that was taken over ends."""
        self.operator.require_held()
        if is_fresh:
            self.operator.write_pages(self.key)

    def _is_next(self, path: Path) -> bool:
        """Say whether a file may be the next step, and tell why not unless it is one already."""
        label = label_of(path)
        problem = self.operator.problem_with(label, allow_new_labels=self.new_labels)
        if problem is None:
            return True
        if not self.operator.has_published(label):
            say_aside(f"{click.format_filename(path)} is left out: {problem}")
        return False

    def _take(self, source: str | Path | BufferedIOBase, label: str) -> None:
        step = self.operator.next(source, label, allow_new_labels=self.new_labels)
        with standing(f"the step {label} is published; repeating the command spends nothing"):
            self._tell(step, label)

    def _tell(self, step: Step | None, label: str) -> None:
        if self.as_json:
            told: dict[str, Any] = {"time": label, "action": "published already"}
            if step is not None:
                spent = format_epsilon(step.spent)
                told |= {"action": step.action, "number": step.number, "spent": spent}
            say_json(told, indent=None)
        elif step is None:
            say(f"{label}: published already; nothing was read or spent")
        elif step.action == "published":
            spent = format_rounded(step.epsilon)
            say(f"{label}: step {step.number}, published with epsilon {spent}")
        else:
            say(f"{label}: step {step.number}, repeated the last estimate")


def _scope(window: int | None, horizon: int | None) -> str:
    return f"all {horizon:,} steps" if window is None else f"every {window:,} consecutive steps"


def _say_status(found: StreamStatus) -> None:
    """Print the status of a stream."""
    whole = format_epsilon(found.epsilon)
    scope = (
        f"a person is hidden in all {found.horizon:,} steps together"
        if found.window is None
        else f"a person is hidden within any {found.window:,} consecutive steps"
    )
    say(f"{found.method} on {found.dataset}, {found.phase}: {scope}, at epsilon {whole}")
    for name, value in found.settings.items():
        say(f"  {name.replace('_', ' ')}: {_words(value)}")
    say(f"  ledger: {found.ledger}")
    say(f"  release folder: {found.folder} ({found.folder_problem or 'whole'})")
    of_all = "" if found.horizon is None else f" of {found.horizon:,}"
    say(f"  steps done: {found.steps:,}{of_all}")
    if found.last is not None:
        say(f"  last step: {found.last.time}, {found.last.action}")
    where = "so far" if found.window is None else "in the window that ends at the last step"
    say(f"  spent {where}: {format_rounded(found.spent)} of {whole}")
    if found.window is not None:
        say(f"  worst window so far: {format_rounded(found.worst)} of {whole}")
    if found.undelivered is not None:
        say(f"  step {found.undelivered} is not in the folder yet; the next command delivers it")
    if found.operator is not None:
        say("  at work on it: process {pid} on {host}, since {since}".format(**found.operator))
        if "until" in found.operator:
            say("    its lease ends at {until} unless it is renewed".format(**found.operator))
    _say_commitments(found)


def _say_commitments(found: StreamStatus) -> None:
    if not found.commitments:
        return
    say()
    rows = [
        [str(step), format_rounded(used), format_rounded(found.epsilon - used)]
        for step, used in found.commitments[:_MOST_LISTED]
    ]
    say_table(["step", "used already in its window", "left"], rows)
    if len(found.commitments) > _MOST_LISTED:
        say(f"and {len(found.commitments) - _MOST_LISTED:,} more; --json lists up to 1,000")


def _words(value: object) -> str:
    if isinstance(value, list):
        return ", ".join(map(str, value))
    if isinstance(value, bool):
        return "yes" if value else "no"
    return "not set" if value is None else str(value)
