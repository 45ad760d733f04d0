"""Streams: their state, their steps, what is due, and the operator's actions."""

from hashlib import sha256
from pathlib import Path
from typing import NamedTuple

from starlette.responses import Response

from dpublish.core.catalog import STREAMS
from dpublish.core.folder.folder import is_signed, load
from dpublish.core.folder.signing import signing_key
from dpublish.core.run import Progress
from dpublish.errors import DPublishError, InputError, InvalidParameter
from dpublish.methods.streams.listing import clean_label, label_problem
from dpublish.methods.streams.method import stream_settings
from dpublish.methods.streams.released import StreamRelease
from dpublish.methods.streams.report import counts_over_time
from dpublish.publishing.state_file import STOPPED
from dpublish.publishing.streams.operator import StreamOperator
from dpublish.publishing.streams.snapshots import label_of
from dpublish.publishing.streams.status import StreamStatus, stream_status
from dpublish.studio import starting
from dpublish.studio.desk import BESIDE, KEYS, SCHEMAS, TABLES
from dpublish.studio.pages.using import chart
from dpublish.studio.paying import Payment, Started, carry_out, review_content
from dpublish.studio.visit import Page, Visit
from dpublish.studio.wanted import Wanted

_MOST_WAITING = 20
_MOST_WINDOWS = 50
_MOST_STEPS = 50
_PATIENCE = 30.0
"""Seconds to wait for another operator, such as the same button in another tab."""


class Row(NamedTuple):
    """A stream as the list shows it; `problem` says why its state cannot be read."""

    folder: str
    name: str
    status: StreamStatus | None = None
    problem: str = ""


def streams(visit: Visit) -> Response:
    """List the streams whose states lie in the studio's folders."""
    rows = [_row(visit, folder, name) for folder, name in visit.desk.list_streams()]
    return visit.show("streams.html", rows=rows)


def stream(visit: Visit) -> Response:
    """Show one stream: its budget, its steps, what can be next, and what is wrong."""
    folder, name = visit.part("folder"), visit.part("name")
    status = stream_status(visit.desk.stream(folder, name))
    found = _folder_of(visit, status)
    return visit.show(
        "stream.html",
        folder=folder,
        name=name,
        status=status,
        scope=_scope(status),
        is_over=_is_over(status),
        release=None if found is None else found.folder.name,
        steps=[] if found is None else found.records[: -_MOST_STEPS - 1 : -1],
        has_chart=found is not None and found.has_published,
        windows=status.commitments[:_MOST_WINDOWS],
        waiting=_waiting(visit, status),
        files=visit.desk.list_files(TABLES),
        keys=visit.desk.list_files(KEYS),
    )


def counts_chart(visit: Visit) -> Response:
    """Draw the published counts over time."""
    status = stream_status(visit.desk.stream(visit.part("folder"), visit.part("name")))
    found = _folder_of(visit, status)
    figure = None if found is None else counts_over_time(found)
    if figure is None:
        raise InputError("nothing was published yet, or the folder is not the studio's")
    return chart(figure.svg)


def start_form(visit: Visit) -> Response:
    """Ask what a stream should publish; nothing is spent here."""
    wanted = Wanted.of(visit.query)
    method = wanted.method if wanted.method in STREAMS else ""
    with visit.desk.open_ledger() as ledger:
        datasets = ledger.datasets()
    return visit.show(
        "stream_start.html",
        wanted=wanted,
        method=method,
        methods=list(STREAMS),
        publishes={name: entry.publishes for name, entry in STREAMS.items()},
        settings=stream_settings(method) if method else [],
        datasets=datasets,
        schemas=visit.desk.list_files(SCHEMAS),
        files=visit.desk.list_files(TABLES),
    )


def review(visit: Visit, problem: str = "") -> Response:
    """Show what a stream will publish, what it will cost, and what will be left."""
    wanted = Wanted.of(visit.form or visit.query)
    wanted.require("dataset", "schema", "method", "epsilon")
    schema, method = starting.read_schema(wanted, visit.desk), starting.make_method(wanted)
    starting.first_snapshot(wanted, visit.desk)
    expected = method.expected_error(schema, wanted.n_records, wanted.exact)
    output = visit.form.get("output") or visit.desk.free_name(f"{wanted.dataset}-{wanted.method}")
    return visit.show(
        "stream_review.html",
        code=422 if problem else 200,
        wanted=wanted,
        expected=expected,
        horizon=method.horizon,
        window=method.window,
        output=output,
        command=starting.command(wanted, visit.desk, output),
        problem=problem,
        **review_content(visit, _payment(wanted, visit), method.neighbors(schema)),
    )


def send(visit: Visit) -> Response:
    """Start a stream once, however often the form is sent."""
    wanted = Wanted.of(visit.form)

    def prepare() -> Started:
        name = visit.given("output")
        if not visit.desk.new_stream(BESIDE, name).exists():  # else the start goes on
            visit.desk.new_release(name)
        title = f"{wanted.method} stream of {wanted.dataset}"
        return Started(
            title=title,
            doing=f"Starting {title}",
            output=name,
            work=lambda report: _started(wanted, visit, name, report),
            back="/streams",
        )

    return carry_out(
        visit,
        lambda: _payment(wanted, visit),
        review=lambda problem: review(visit, problem),
        prepare=prepare,
    )


def _payment(wanted: Wanted, visit: Visit) -> Payment:
    schema = starting.read_schema(wanted, visit.desk)
    content = wanted.content(starting.make_method(wanted), schema)
    return Payment(wanted.dataset, content, wanted.exact)


def take_step(visit: Visit) -> Response:
    """Publish the next step from a file of the folder, once for each label."""
    folder, name = visit.part("folder"), visit.part("name")
    state, chosen = visit.desk.stream(folder, name), visit.given("file")
    file, sign = visit.desk.file(chosen), visit.form.get("sign", "").strip()
    label = clean_label(visit.form.get("time", "").strip() or label_of(file))
    key = visit.desk.file(sign) if sign else None
    allow_new = visit.form.get("new_labels") == "yes"

    def work(report: Progress) -> dict[str, str]:
        report(0, 0, "publishing the step")
        return {"said": _take(state, file, label, key, allow_new=allow_new)}

    job = visit.studio.jobs.start_once(
        sha256(f"{folder}/{name}/{label}".encode()).hexdigest()[:32],
        f"Step {label} of {name}",
        work,
        back=f"/streams/{folder}/{name}",
        can_cancel=False,  # a step that stops on demand could tell about the rows
    )
    return visit.go(f"/jobs/{job.key}")


def stop(visit: Visit) -> Response:
    """End a stream for good."""
    folder, name = visit.part("folder"), visit.part("name")
    state = visit.desk.stream(folder, name)
    if visit.form.get("confirm", "").strip() != name:
        raise InvalidParameter(f"type the name of the stream, {name}, to confirm")
    with StreamOperator.open(state, wait_seconds=_PATIENCE) as operator, operator.reporting():
        operator.stop()
    return visit.go(f"/streams/{folder}/{name}")


def _row(visit: Visit, folder: str, name: str) -> Row:
    try:
        return Row(folder, name, stream_status(visit.desk.stream(folder, name)))
    except DPublishError as error:
        return Row(folder, name, problem=str(error))


def _started(wanted: Wanted, visit: Visit, name: str, report: Progress) -> dict[str, str]:
    is_new = starting.start(wanted, visit.desk, name, report)
    said = f"started {name}" if is_new else f"{name} was started already; nothing was debited again"
    return {"goes_to": f"/streams/{BESIDE}/{name}", "said": said}


def _take(state: Path, file: Path, label: str, key: Path | None, *, allow_new: bool) -> str:
    """Publish one step, and say what came of it."""
    with StreamOperator.open(state, wait_seconds=_PATIENCE) as operator:
        was_signed = is_signed(operator.folder)
        with operator.reporting(signing_key(key)):
            step = operator.next(str(file), label, allow_new_labels=allow_new)
        lost = was_signed and not is_signed(operator.folder)
    if step is None:
        return f"{label} was published already: nothing was read or spent"
    done = "published a fresh histogram" if step.action == "published" else "repeated the estimate"
    note = "; the folder has changed and is no longer signed" if lost else ""
    return f"step {step.number:,}, {label}: {done}{note}"


def _folder_of(visit: Visit, status: StreamStatus) -> StreamRelease | None:
    """Open the release folder of a stream, if it is one of the studio's."""
    folder = Path(status.folder)
    if folder.parent.resolve() != visit.desk.releases.resolve():
        return None
    try:
        found = load(visit.desk.release(folder.name))
    except DPublishError:  # the status says what is wrong with it
        return None
    return found if isinstance(found, StreamRelease) else None


def _scope(status: StreamStatus) -> str:
    if status.window is None:
        return f"a person is hidden in all {status.horizon:,} steps together"
    return f"a person is hidden within any {status.window:,} consecutive steps"


def _is_over(status: StreamStatus) -> bool:
    is_full = status.horizon is not None and status.steps >= status.horizon
    return status.phase == STOPPED or is_full


def _waiting(visit: Visit, status: StreamStatus) -> list[str]:
    """List the files of the folder whose names could be the next steps."""
    last = None if status.last is None else status.last.time
    if last is None or _is_over(status):
        return []
    found = [
        name
        for name in visit.desk.list_files(TABLES)
        if label_problem(label_of(Path(name)), last, allow_new=False) is None
    ]
    return found[:_MOST_WAITING]


PAGES = (
    Page("/streams", streams),
    Page("/streams/start", start_form, owner_only=True),
    Page("/streams/review", review, owner_only=True),
    Page("/streams/start", send, "POST"),
    Page("/streams/{folder}/{name}", stream),
    Page("/streams/{folder}/{name}/counts.svg", counts_chart),
    Page("/streams/{folder}/{name}/next", take_step, "POST"),
    Page("/streams/{folder}/{name}/stop", stop, "POST"),
)
