"""Compare a release with another one, write it for other tools, measure it on true rows."""

import json
import zipfile
from hashlib import sha256
from pathlib import Path
from shutil import rmtree
from tempfile import mkdtemp

from starlette.background import BackgroundTask
from starlette.responses import FileResponse, Response

from dpublish.core.folder.folder import load
from dpublish.core.run import Progress
from dpublish.errors import InputError, require_known
from dpublish.evaluation.evaluate import make_request
from dpublish.evaluation.evaluations import evaluate
from dpublish.evaluation.report import HEADERS, EvaluationReport
from dpublish.methods.streams.released import StreamRelease
from dpublish.publishing.export import FORMATS, export
from dpublish.report.comparison import compare_releases
from dpublish.studio.desk import TABLES
from dpublish.studio.pages.using import attached, opened, read_number
from dpublish.studio.visit import Page, Visit

_XLSX = "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"
_DRAFT = "dpublish-export-"


def compare(visit: Visit) -> Response:
    """Show two releases side by side."""
    name, found = opened(visit)
    other = visit.query.get("with", "").strip()
    compared = None
    if other:
        compared = compare_releases(found, load(visit.desk.release(other)))
    return visit.show(
        "compare.html",
        name=name,
        other=other,
        others=[each for each in visit.desk.list_releases() if each != name],
        compared=compared,
    )


def export_form(visit: Visit) -> Response:
    """Offer the formats, or send the tables in one of them."""
    name, found = opened(visit)
    to = visit.query.get("to", "")
    if to:
        return _exported(visit, name, to)
    tables = [(each, table.num_rows) for each, table in found.tables_to_read().items()]
    return visit.show("export.html", name=name, formats=FORMATS, tables=tables)


def evaluate_form(visit: Visit) -> Response:
    """Ask for the true rows to measure a release on."""
    name, found = opened(visit)
    return visit.show(
        "evaluate.html",
        name=name,
        dataset=found.receipt.dataset or "",
        tables=visit.desk.list_files(TABLES),
        is_stream=isinstance(found, StreamRelease),
        columns=found.schema.names,
    )


def start_evaluation(visit: Visit) -> Response:
    """Measure a release on true rows, in the background; what is found is in memory alone."""
    name, _ = opened(visit)
    wanted = {each: visit.form.get(each, "").strip() for each in ("train", "target", "step")}
    wanted["against"] = visit.given("against")
    seed = read_number(visit.form.get("seed", ""), "the seed") or 0
    path = visit.desk.release(name)
    against = str(visit.desk.file(wanted["against"]))
    train = str(visit.desk.file(wanted["train"])) if wanted["train"] else None

    def work(report: Progress) -> EvaluationReport:
        report(0, 0, "reading true rows")
        request = make_request(
            path,
            against,
            train=train,
            target=wanted["target"] or None,
            step=wanted["step"] or None,
            seed=seed,
        )
        report(0, 0, "measuring")
        return evaluate(request)

    key = _key(visit, name, wanted | {"seed": str(seed)})
    page = f"/releases/{name}/evaluations/{key}"
    visit.studio.jobs.start_once(
        key,
        f"Evaluating {name}",
        work,
        back=page,
        can_cancel=False,  # nothing in it looks whether to stop
        is_look=True,
    )
    return visit.go(page)


def evaluation(visit: Visit) -> Response:
    """Show what an evaluation found, to the owner alone."""
    name, job = visit.part("name"), visit.studio.jobs.find(visit.part("key"))
    state = job.state  # read once: the work may end while the page is written
    if state == "done" and not isinstance(job.result, EvaluationReport):
        raise InputError("this work is no evaluation")
    return visit.show(
        "evaluation.html", name=name, job=job, state=state, found=job.result, headers=HEADERS
    )


def _exported(visit: Visit, name: str, to: str) -> Response:
    """Write an export, send it, and remove it."""
    require_known("format", to, FORMATS)
    path = visit.desk.release(name)
    draft = Path(mkdtemp(prefix=_DRAFT))
    try:
        plain = visit.query.get("plain") == "yes"
        target = draft / (f"{name}.xlsx" if to == "xlsx" else f"{name}-{to}")
        export(path, to=to, output=target, for_spreadsheets=plain)  # type: ignore[arg-type]
        file = target if to == "xlsx" else _zipped(target)
    except BaseException:
        rmtree(draft, ignore_errors=True)
        raise
    return FileResponse(
        file,
        media_type=_XLSX if to == "xlsx" else "application/zip",
        headers=attached(file.name),
        background=BackgroundTask(rmtree, draft, ignore_errors=True),
    )


def _zipped(folder: Path) -> Path:
    """Pack a folder; its entries show no time, for the release has one of its own."""
    file = folder.with_name(f"{folder.name}.zip")
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as packed:
        for path in sorted(folder.iterdir()):
            entry = zipfile.ZipInfo(f"{folder.name}/{path.name}")
            entry.compress_type = zipfile.ZIP_DEFLATED
            with path.open("rb") as content, packed.open(entry, "w") as target:
                while block := content.read(1 << 20):
                    target.write(block)
    return file


def _key(visit: Visit, name: str, wanted: dict[str, str]) -> str:
    """Name an evaluation by all that it depends on, so that a second click starts no other."""
    files = [visit.desk.file(wanted[each]) for each in ("against", "train") if wanted[each]]
    stamps = [(each.stat().st_size, each.stat().st_mtime_ns) for each in files]
    told = json.dumps([name, wanted, stamps], sort_keys=True)
    return sha256(told.encode()).hexdigest()[:32]


PAGES = (
    Page("/releases/{name}/compare", compare),
    Page("/releases/{name}/export", export_form),
    Page("/releases/{name}/evaluate", evaluate_form, owner_only=True),
    Page("/releases/{name}/evaluate", start_evaluation, "POST"),
    Page("/releases/{name}/evaluations/{key}", evaluation, owner_only=True),
)
