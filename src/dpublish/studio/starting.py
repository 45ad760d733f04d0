"""A stream as a page asks for it: its method, its settings, and how it is started."""

import shlex
from pathlib import Path

from dpublish.core.folder.signing import signing_key
from dpublish.core.run import Progress
from dpublish.data.schema import Schema
from dpublish.data.schema_file import load_schema
from dpublish.methods.streams.method import StreamMethod, make_stream_method, stream_settings
from dpublish.publishing.streams.operator import StreamOperator
from dpublish.studio.desk import BESIDE, Desk
from dpublish.studio.wanted import Wanted


def make_method(wanted: Wanted) -> StreamMethod:
    """Build the method of a stream, with its settings; refuse those that do not fit."""
    known = {each.name for each in stream_settings(wanted.method)}
    return make_stream_method(
        wanted.method, {name: text for name, text in wanted.settings.items() if name in known}
    )


def read_schema(wanted: Wanted, desk: Desk) -> Schema:
    """Read the schema's file."""
    return load_schema(desk.schema(wanted.schema))


def first_snapshot(wanted: Wanted, desk: Desk) -> Path | None:
    """Find the file on which the columns are tried, if one was named."""
    return desk.file(wanted.data) if wanted.data else None


def command(wanted: Wanted, desk: Desk, name: str) -> str:
    """Write the command that does the same in a shell."""
    words = ["dpublish", "stream", "start", str(desk.new_stream(BESIDE, name))]
    words += ["--method", wanted.method]
    for setting, text in wanted.settings.items():
        words += [f"--{setting.replace('_', '-')}", text]
    words += ["--schema", str(desk.files / wanted.schema), "--epsilon", wanted.epsilon]
    words += ["--where", wanted.where] if wanted.where else []
    words += ["--try", str(desk.files / wanted.data)] if wanted.data else []
    words += ["--ledger", desk.shown_ledger, "--dataset", wanted.dataset]
    words += ["--purpose", wanted.purpose] if wanted.purpose else []
    words += ["--sign", str(desk.files / wanted.sign)] if wanted.sign else []
    return shlex.join([*words, "-o", str(desk.releases / name)])


def start(wanted: Wanted, desk: Desk, name: str, progress: Progress) -> bool:
    """Start a stream; the same call as that of the command line.

    False means that the same request has started it before: nothing was debited again.

    Privacy:
        That of `StreamOperator.start`: no row is read, and the ledger is debited once for all
        steps, or for every window.
    """
    key = signing_key(desk.file(wanted.sign) if wanted.sign else None)
    desk.releases.mkdir(parents=True, exist_ok=True)
    tried = first_snapshot(wanted, desk)
    progress(0, 0, "debiting the ledger")
    with StreamOperator.start(
        desk.new_stream(BESIDE, name),
        make_method(wanted),
        read_schema(wanted, desk),
        ledger=desk.ledger,
        dataset=wanted.dataset,
        epsilon=wanted.exact,
        output=desk.releases / name,
        purpose=wanted.purpose,
        where=wanted.where or None,
        try_table=None if tried is None else str(tried),
    ) as operator:
        operator.write_pages(key)
        return operator.is_new
