"""Use a release: ask counts, draw rows, predict, read statistics, choose a number of clusters.

All of it is free but for `predict`, which reads the rows of whoever asks, so its page is for the
owner's eyes.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pyarrow as pa
from starlette.responses import Response, StreamingResponse

from dpublish.accuracy.intervals import require_confidence
from dpublish.accuracy.rounding import format_number
from dpublish.core.answer import Answer
from dpublish.core.coverage import not_in_intervals
from dpublish.core.folder.folder import folder_hash, load
from dpublish.core.formulas import without_formulas
from dpublish.core.query.examples import example_queries
from dpublish.core.released import BATCH_ROWS, Release, in_batches
from dpublish.errors import DPublishError, InputError, InvalidParameter, require_count
from dpublish.evaluation.predicted import predict_file
from dpublish.methods.kmeans.choose_k import Validity, best_of, draw_validity, judge_clusters
from dpublish.methods.kmeans.released import KMeansRelease
from dpublish.methods.streams.released import StreamRelease
from dpublish.plots.inline import in_either_scheme
from dpublish.publishing.statistics_tables import statistics_of, statistics_rows
from dpublish.publishing.table_file import batches_as_bytes
from dpublish.report.charts import standalone
from dpublish.studio.desk import TABLES
from dpublish.studio.visit import Page, Visit

CHART_POLICY = "default-src 'none'; style-src 'unsafe-inline'; sandbox"
"""What a chart may do that is opened by its own address."""
MOST_READ = 1_000_000
"""So many rows a reader may draw at once: all of them may lie in memory together."""
_CONFIDENCES = ("0.8", "0.9", "0.95", "0.99")
_MOST_ASKED = 20
_MOST_STEPS = 500
_PREVIEW = 20
_MOST_LISTED = 200
_FEWEST, _MOST, _SEARCHES = 2, 16, 10
_TYPES = {".csv": "text/csv; charset=utf-8", ".parquet": "application/vnd.apache.parquet"}
_DIGITS = 18


def ask(visit: Visit) -> Response:
    """Count the records that satisfy a query; earlier queries stay on the page."""
    name, found = opened(visit)
    confidence, time = _confidence(visit), visit.query.get("time", "")
    is_asked = "q" in visit.query
    query = visit.query.get("q", "").strip()
    if visit.is_part:
        return visit.show(
            "ask_part.html", query=query, answer=_count(found, query, confidence, time)
        )
    earlier = list(visit.request.query_params.getlist("asked"))[-_MOST_ASKED:]
    asked = [*earlier, query] if is_asked else earlier
    answered = [(each, _count(found, each, confidence, time)) for each in reversed(asked)]
    return visit.show(
        "ask.html",
        name=name,
        answered=answered,
        asked=asked,
        query=query,
        examples=example_queries(found),
        columns=[(each, _values(found, each)) for each in found.complete],
        confidence=f"{confidence:g}",
        confidences=_CONFIDENCES,
        time=time,
        times=found.times[-_MOST_STEPS:] if isinstance(found, StreamRelease) else (),
    )


def rows(visit: Visit) -> Response:
    """Show a few synthetic rows, and offer as many as are wanted."""
    name, found = opened(visit)
    preview = None
    if visit.is_part or "seed" in visit.query or "where" in visit.query:
        preview = _preview(found, visit)
    template = "rows_part.html" if visit.is_part else "rows.html"
    columns = [(each, _values(found, each)) for each in found.schema.names]
    return visit.show(
        template,
        name=name,
        preview=preview,
        query=visit.query,
        columns=columns,
        most=MOST_READ,
    )


def rows_csv(visit: Visit) -> Response:
    """Send synthetic rows as a CSV file."""
    return _send_rows(visit, ".csv")


def rows_parquet(visit: Visit) -> Response:
    """Send synthetic rows as a Parquet file."""
    return _send_rows(visit, ".parquet")


def predict_form(visit: Visit) -> Response:
    """Show the form that asks for rows to classify."""
    name, found = opened(visit)
    return visit.show(
        "predict.html", name=name, tables=_files(visit), release=found, table=None, rows_of=""
    )


def predict(visit: Visit) -> Response:
    """Predict the class of rows in a file; they are kept nowhere."""
    name, found = opened(visit)
    with _given_rows(visit) as (path, shown):
        try:
            table = predict_file(found, str(path))
        except DPublishError as error:  # a path of a moment tells no one anything
            raise InvalidParameter(str(error).replace(str(path), shown)) from None
    if visit.form.get("to") in ("csv", "parquet"):
        return _file(in_batches(table, BATCH_ROWS), f".{visit.form['to']}", f"{name}-predicted")
    return visit.show(
        "predict.html",
        name=name,
        tables=_files(visit),
        release=found,
        table=_shown(table.slice(0, _PREVIEW)),
        rows_of=f"{shown}, {table.num_rows:,} rows",
    )


def statistics(visit: Visit) -> Response:
    """Show the statistics of a release by group."""
    name, found = opened(visit)
    parts, measure = statistics_of(found), visit.query.get("measure", "").strip() or None
    tables = []
    for part, values in parts:
        headers, listed = statistics_rows(values, measure)
        tables.append((part, headers, listed[:_MOST_LISTED], len(listed)))
    return visit.show(
        "statistics.html",
        name=name,
        tables=tables,
        measure=measure or "",
        measures=parts[0][1].measures,
        percent=format_number(100 * float(parts[0][1].confidence), 4),
        note=not_in_intervals(found.receipt) or "",
    )


def choose_k(visit: Visit) -> Response:
    """Show how well each number of clusters fits, and the centers of one."""
    name, found = opened(visit)
    judged = _judged(visit, found)
    best = best_of(judged)
    chosen = _chosen(visit, best.n_clusters)
    one = next(each for each in judged if each.n_clusters == chosen)
    template = "choose_k_part.html" if visit.is_part else "choose_k.html"
    return visit.show(
        template, name=name, judged=judged, best=best, one=one, fewest=_FEWEST, most=_MOST
    )


def choose_k_chart(visit: Visit) -> Response:
    """Draw the validity over the number of clusters, with one marked."""
    _, found = opened(visit)
    judged = _judged(visit, found)
    chosen = _chosen(visit, best_of(judged).n_clusters)
    return chart(draw_validity(judged, chosen))


def opened(visit: Visit) -> tuple[str, Release]:
    """Open the release that the address names, and check it."""
    name = visit.part("name")
    return name, load(visit.desk.release(name))


def chart(svg: str | None) -> Response:
    """Answer with a drawing, which can do nothing but be looked at."""
    if svg is None:
        raise InputError("charts need Matplotlib: pip install matplotlib")
    headers = {"Content-Security-Policy": CHART_POLICY}
    text = standalone(in_either_scheme(svg))
    return Response(text, media_type="image/svg+xml", headers=headers)


def read_number(text: str, what: str) -> int | None:
    """Read a number of things that someone typed; None if there is none."""
    plain = text.strip().replace(",", "")
    if not plain:
        return None
    if not (plain.isascii() and plain.isdecimal()) or len(plain) > _DIGITS:
        raise InvalidParameter(f"write {what} in digits, such as 1000")
    return int(plain)


def _confidence(visit: Visit) -> float:
    try:
        confidence = float(visit.query.get("confidence", "") or "0.95")
    except ValueError:
        raise InvalidParameter("write the confidence as a number, such as 0.95") from None
    require_confidence(confidence)
    return confidence


def _count(found: Release, query: str, confidence: float, time: str) -> Answer:
    if isinstance(found, StreamRelease):
        return found.count(query, confidence=confidence, time=time or None)
    return found.count(query, confidence=confidence)


def _values(found: Release, column: str) -> str:
    """Describe in a few words what a column may hold."""
    axis = found.schema[column].axis()
    if axis.edges is not None:
        return f"{axis.kind}, {axis.labels[0]} ... {axis.labels[axis.ordinary_leaves - 1]}"
    shown = ", ".join(axis.labels[:8])
    return shown + (f", and {axis.size - 8:,} more" if axis.size > 8 else "")


def _preview(found: Release, visit: Visit) -> dict[str, Any]:
    seed = read_number(visit.query.get("seed", ""), "the seed")
    where = visit.query.get("where", "")
    batches = found.row_batches(_PREVIEW, seed=seed, where=where)
    return _shown(pa.Table.from_batches(list(islice(batches, 1))).slice(0, _PREVIEW))


def _shown(table: pa.Table) -> dict[str, Any]:
    return {
        "headers": table.column_names,
        "rows": [[_cell(value) for value in row.values()] for row in table.to_pylist()],
    }


def _cell(value: object) -> str:
    if isinstance(value, float):
        return format_number(value, 6)  # the file has all digits
    return "" if value is None else str(value)


def _send_rows(visit: Visit, ending: str) -> Response:
    name, found = opened(visit)
    number = read_number(visit.query.get("n", ""), "the number of rows")
    require_count(n=0 if number is None else number, at_least=0)
    if not visit.session.may_spend and (number is None or number > MOST_READ):
        raise InvalidParameter(f"say how many rows; readers draw at most {MOST_READ:,} at once")
    seed = read_number(visit.query.get("seed", ""), "the seed")
    batches = found.row_batches(number, seed=seed, where=visit.query.get("where", ""))
    drawn = iter(map(without_formulas, batches)) if visit.query.get("plain") == "yes" else batches
    return _file(drawn, ending, f"{name}-rows")


def _file(batches: Iterator[pa.RecordBatch], ending: str, name: str) -> Response:
    """Send batches as a file, as they come; what cannot be drawn is refused before that."""
    content = batches_as_bytes(batches, ending)
    first = next(content)

    def whole() -> Iterator[bytes]:
        yield first
        yield from content

    return StreamingResponse(whole(), media_type=_TYPES[ending], headers=attached(name + ending))


def attached(name: str) -> dict[str, str]:
    """Say that an answer is a file; `name` is made of the name of a release, which is plain."""
    return {"Content-Disposition": f'attachment; filename="{name}"'}


def _files(visit: Visit) -> list[str]:
    return visit.desk.list_files(TABLES)


@contextmanager
def _given_rows(visit: Visit) -> Iterator[tuple[Path, str]]:
    """Open the file that was chosen or sent; one that was sent is gone when the block ends."""
    sent = visit.uploads.get("rows")
    if sent is None or not sent.filename:
        chosen = visit.given("table")
        yield visit.desk.file(chosen), chosen
        return
    ending = next((each for each in TABLES if sent.filename.lower().endswith(each)), None)
    if ending is None or ending == ".duckdb":
        raise InvalidParameter("send a .csv, .tsv, .parquet, .arrow or .feather file")
    with TemporaryDirectory(prefix="dpublish-") as folder:
        path = Path(folder) / f"rows{ending}"
        with path.open("wb") as file:
            while content := sent.file.read(1 << 20):
                file.write(content)
        yield path, "the file that you sent"


def _judged(visit: Visit, found: Release) -> tuple[Validity, ...]:
    if not isinstance(found, KMeansRelease):
        raise InvalidParameter(f"a release of kind {found.kind!r} has no clusters to choose")
    path = visit.desk.release(visit.part("name"))
    return _judge(path, folder_hash(path))


@lru_cache(maxsize=16)
def _judge(path: Path, digest: str) -> tuple[Validity, ...]:
    """Judge each number of clusters once; `digest` stands for the content of the folder."""
    found = load(path)
    if not isinstance(found, KMeansRelease) or folder_hash(path) != digest:
        raise InvalidParameter("the release was changed meanwhile; reload the page")
    return tuple(judge_clusters(found, range(_FEWEST, _MOST + 1), n_init=_SEARCHES, seed=0))


def _chosen(visit: Visit, otherwise: int) -> int:
    number = read_number(visit.query.get("k", ""), "the number of clusters")
    if number is None:
        return otherwise
    if not _FEWEST <= number <= _MOST:
        raise InvalidParameter(f"the number of clusters is from {_FEWEST} to {_MOST}")
    return number


PAGES = (
    Page("/releases/{name}/ask", ask),
    Page("/releases/{name}/rows", rows),
    Page("/releases/{name}/rows.csv", rows_csv),
    Page("/releases/{name}/rows.parquet", rows_parquet),
    Page("/releases/{name}/predict", predict_form, owner_only=True),
    Page("/releases/{name}/predict", predict, "POST"),
    Page("/releases/{name}/statistics", statistics),
    Page("/releases/{name}/choose-k", choose_k),
    Page("/releases/{name}/choose-k.svg", choose_k_chart),
)
