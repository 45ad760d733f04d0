"""The command's entry: subcommands are imported when they are called, so that help is quick.

Exit codes: 0 done, 1 the request is wrong, 2 the budget does not suffice, 3 a file cannot be
read or written, 4 a check of an audit failed, 70 a fault of dpublish itself (set
DPUBLISH_TRACEBACK to see where), 130 interrupted by Ctrl-C, 143 by SIGTERM and 129 by SIGHUP.
"""

import os
import sys
import warnings
from collections.abc import Sequence
from importlib import import_module
from importlib.metadata import version

import click

from dpublish.cli.group import Group
from dpublish.cli.stop_signals import Stopped, StopSignals
from dpublish.errors import DPublishError, InvalidParameter, LedgerExposed

COMMANDS = {
    "demo": ("dpublish.cli.demo:demo", "Try it: data, schema, release and report in a minute."),
    "datasets": (
        "dpublish.cli.datasets:datasets",
        "Write a simulated table and its schema, to try things on.",
    ),
    "init": (
        "dpublish.cli.init:init",
        "Begin with a table of your own: schema, ledger and plan, step by step.",
    ),
    "schema": (
        "dpublish.cli.schema:schema",
        "Draft, check and show a schema; measure bounds.",
    ),
    "ledger": ("dpublish.cli.ledger:ledger", "Keep the ledger: caps, grants, verification."),
    "methods": ("dpublish.cli.methods:methods", "List the methods, and the settings of one."),
    "advise": (
        "dpublish.cli.advise:advise_command",
        "Choose a method for a goal; reads no data.",
    ),
    "explain": ("dpublish.cli.explain:explain", "Explain what an epsilon means; reads no data."),
    "plan": ("dpublish.cli.plan:plan", "Predict cost and error; reads no data."),
    "rehearse": (
        "dpublish.cli.rehearse:rehearse_command",
        "Measure accuracy on public rows before spending.",
    ),
    "release": ("dpublish.cli.release:release", "Publish from a table; the ledger pays."),
    "stream": ("dpublish.cli.stream:stream", "Publish a changing table step by step."),
    "svt": ("dpublish.cli.svt:svt", "Ask which counts are above a threshold, one by one."),
    "rows": ("dpublish.cli.use:rows", "Draw synthetic rows from a release; free."),
    "count": ("dpublish.cli.use:count", "Count records in a release; free."),
    "statistics": (
        "dpublish.cli.statistics:statistics",
        "Show means, sums and the like of a release; free.",
    ),
    "predict": ("dpublish.cli.use:predict", "Classify rows with a release; free."),
    "choose-k": ("dpublish.cli.choose_k:choose_k", "Find how many clusters a release shows; free."),
    "wavecluster": (
        "dpublish.cli.wavecluster:wavecluster",
        "Find clusters of any shape in a release; free.",
    ),
    "export": (
        "dpublish.cli.export:export",
        "Write the tables of a release as CSV, Excel and others; free.",
    ),
    "report": (
        "dpublish.cli.report:report",
        "Write the report of a release again, or the owner's one to keep; free.",
    ),
    "certificate": (
        "dpublish.cli.report:certificate",
        "Write a page that states what is guaranteed and was checked; free.",
    ),
    "verify": (
        "dpublish.cli.signing:verify",
        "Check that a release is unchanged, and who signed it; free.",
    ),
    "sign": ("dpublish.cli.signing:sign", "Sign a release with the owner's key."),
    "key": ("dpublish.cli.signing:key", "Create a key to sign releases with."),
    "studio": (
        "dpublish.cli.studio:studio",
        "Open the owner's desk in the browser.",
    ),
    "evaluate": (
        "dpublish.cli.evaluate:evaluate_command",
        "Measure a release on true rows; NOT PRIVATE.",
    ),
    "audit": (
        "dpublish.cli.audit:audit_command",
        "Rerun a method's proof tests on simulated tables.",
    ),
    "experiment": (
        "dpublish.cli.experiment:experiment",
        "Compare methods on public data; NOT PRIVATE.",
    ),
    "formats": (
        "dpublish.cli.formats:formats",
        "Print the JSON Schema of schemas, releases and ledgers.",
    ),
    "completion": ("dpublish.cli.main:completion", "Print a completion script for your shell."),
}


_FAULT, _INTERRUPTED = 70, 130


class _LazyGroup(Group):
    """A group that knows its subcommands by name and imports one only when it is called."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        module, _, name = COMMANDS[cmd_name][0].partition(":")
        command: click.Command = getattr(import_module(module), name)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, text) for name, (_, text) in COMMANDS.items()])


@click.group(cls=_LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(version("dpublish"), prog_name="dpublish")
@click.pass_context
def command(ctx: click.Context) -> None:
    """Publish counts, synthetic rows, models and clusters under differential privacy.

    Start with `dpublish demo`, or with `dpublish init TABLE` on a table of your own.

    Exit codes: 0 done, 1 the request is wrong, 2 the budget does not suffice, 3 a file cannot be
    read or written, 4 a check of an audit failed, 130 interrupted (143 by SIGTERM, 129 by SIGHUP).
    """
    ctx.with_resource(warnings.catch_warnings())
    warnings.simplefilter("always", LedgerExposed)
    warnings.showwarning = _show_warning


def _show_warning(message: Warning | str, *_: object, **__: object) -> None:
    """Print a warning in one line, without the line of code that it came from."""
    from dpublish.cli.output import say_aside

    say_aside("warning: " + " ".join(str(message).split()))


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command and leave with its exit code."""
    try:
        code = command.main(arguments, prog_name="dpublish", standalone_mode=False)
    except click.exceptions.Exit as leave:
        sys.exit(leave.exit_code)
    except click.exceptions.NoArgsIsHelpError as request:  # a group, named without a command
        from dpublish.cli.output import emit

        emit(f"{request.format_message()}\n")
        sys.exit(0)
    except (Exception, KeyboardInterrupt) as error:  # noqa: BLE001 - tracebacks may quote rows
        from dpublish.cli.output import say_aside

        message, code = _explain(error)
        lines = [" ".join(line.split()) for line in message.splitlines()]
        say_aside("; ".join(line for line in lines if line))
        sys.exit(code)
    sys.exit(code if isinstance(code, int) else 0)


@click.command()
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def completion(shell: str) -> None:
    """Print the completion script of a shell; load it once from its start-up file.

    \b
    bash:  dpublish completion bash > ~/.dpublish-complete.bash
           echo '. ~/.dpublish-complete.bash' >> ~/.bashrc
    zsh:   dpublish completion zsh > ~/.dpublish-complete.zsh
           echo '. ~/.dpublish-complete.zsh' >> ~/.zshrc
    fish:  dpublish completion fish > ~/.config/fish/completions/dpublish.fish
    """  # noqa: D301 - click keeps lines after it
    from click.shell_completion import get_completion_class

    from dpublish.cli.output import emit

    kind = get_completion_class(shell)
    if kind is None:
        raise InvalidParameter(f"there is no completion for {shell}")
    emit(kind(command, {}, "dpublish", "_DPUBLISH_COMPLETE").source() + "\n")


def run() -> None:
    """Run the command as a process of its own; the installed script calls it."""
    signals = StopSignals()
    try:
        signals.watch()
        main()
    except Stopped as stop:  # in the few lines around the command itself
        sys.exit(stop.exit_code)
    finally:
        signals.ignore()


def _explain(error: BaseException) -> tuple[str, int]:
    """Return one line on what went wrong and what is done, and the exit code to leave with."""
    if isinstance(error, click.Abort) and isinstance(error.__cause__, KeyboardInterrupt):
        error = error.__cause__
    message, code = _classify(error)
    # What was debited, or may have been, is noted where the ledger is asked to pay.
    notes = [] if code == _FAULT else [f"({note})" for note in getattr(error, "__notes__", ())]
    return " ".join([message, *notes]), code


def _classify(error: BaseException) -> tuple[str, int]:
    if isinstance(error, DPublishError):
        return str(error), error.exit_code
    if isinstance(error, click.Abort | KeyboardInterrupt):
        return "interrupted", error.exit_code if isinstance(error, Stopped) else _INTERRUPTED
    if isinstance(error, click.ClickException):
        return _explain_usage(error), 1
    if isinstance(error, OSError):
        return f"the system says: {error.strerror or 'input/output error'}", 3
    if isinstance(error, MemoryError):
        # Its own text would tell how much was asked for, and so how many rows there are.
        return "not enough memory; take fewer columns or coarser levels", 3
    if os.environ.get("DPUBLISH_TRACEBACK"):
        raise error
    # The text of an unforeseen error, and notes on it, may quote a row; its kind does not.
    fault = f"a fault of dpublish itself ({type(error).__name__}); please report it"
    return f"{fault}; `dpublish ledger show` lists what was debited", _FAULT


def _explain_usage(error: click.ClickException) -> str:
    """Say what is wrong with the words of a command, what is meant, and where help is."""
    message = error.format_message().rstrip(".")
    if isinstance(error, click.MissingParameter) and error.param is not None:
        message = _missing(error.param)
    context = error.ctx if isinstance(error, click.UsageError) else None
    if context is None or "--help" in message:
        return message
    return f"{message}; see: {context.command_path} --help"


def _missing(param: click.Parameter) -> str:
    """Name what is missing, and what it is."""
    if not isinstance(param, click.Option):
        return f"{param.human_readable_name.upper()} is missing"
    words = (param.help or "").rstrip(".")
    return f"{max(param.opts, key=len)} is missing: {words[:1].lower()}{words[1:]}"
