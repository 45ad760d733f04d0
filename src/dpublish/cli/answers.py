"""Answer one query or a workload of many, and print the answers as words, JSON or CSV."""

import csv
import io
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

from dpublish.cli.output import emit, say, say_json, say_table
from dpublish.core.answer import Answer
from dpublish.core.folder.folder import load
from dpublish.core.query.rows import ClearRows
from dpublish.data.schema import Schema
from dpublish.errors import InputError, InvalidParameter, InvalidQuery, UnreadableData
from dpublish.evaluation.true_rows import read_rows
from dpublish.methods.streams.released import StreamRelease

Ask = Callable[[str], Answer]

PLAIN_COUNT = "a plain count of rows in the clear: the file is read as public, nothing is protected"
_LONGEST = 100_000
_HEADERS = (
    "query",
    "value",
    "low",
    "high",
    "confidence",
    "assumption",
    "counts",
    "interval",
    "bounds_low",
    "bounds_high",
)


def asker(source: str, schema_path: str | None, confidence: float, time: str | None = None) -> Ask:
    """Return what answers a query: a release, or rows in the clear if there is a schema."""
    if schema_path is None:
        if Path(source).is_file():
            raise InvalidParameter(
                f"{source} is a file, not a release; to count its rows in the clear, as public "
                "ones, add --schema FILE"
            )
        release = load(source)
        if isinstance(release, StreamRelease):
            return lambda query: release.count(query, confidence=confidence, time=time)
        if time is not None:
            raise InvalidParameter("--time is for streams; this release has no steps")
        return lambda query: release.count(query, confidence=confidence)
    if Path(source).is_dir():
        raise InvalidParameter("--schema is for files of rows; a release has its own schema")
    schema = Schema.read(schema_path)
    clear = ClearRows(read_rows(source), schema)

    def count(query: str) -> Answer:
        return Answer(float(clear.matches(query).sum()), None, None, confidence, PLAIN_COUNT)

    return count


class NumberedQuery(NamedTuple):
    """A query of a workload, and the number of its line."""

    line: int
    query: str


def read_workload(path: str) -> list[NumberedQuery]:
    """Read one query a line from a file, or from standard input if its name is a dash."""
    try:
        text = sys.stdin.read() if path == "-" else Path(path).read_text("utf-8")
    except UnicodeDecodeError:
        raise UnreadableData(f"{path} is not text in UTF-8") from None
    except OSError as error:
        raise InputError(f"cannot read {path} ({error.strerror or 'unknown reason'})") from None
    lines = [line.strip() for line in text.removeprefix("\ufeff").splitlines()]
    queries = [
        NumberedQuery(number, line)
        for number, line in enumerate(lines, start=1)
        if line and not line.startswith("#")
    ]
    if len(queries) > _LONGEST:
        raise InvalidParameter(f"at most {_LONGEST:,} queries are answered at once")
    return queries


def answer_all(ask: Ask, queries: Sequence[NumberedQuery]) -> list[Answer]:
    """Answer all queries, equal ones once; name the line of one that cannot be answered."""
    known: dict[str, Answer] = {}
    for line, query in queries:
        if query in known:
            continue
        try:
            known[query] = ask(query)
        except InvalidQuery as refusal:
            raise InvalidQuery(f"line {line}: {refusal}") from None
    return [known[query] for _, query in queries]


def say_answer(query: str, answer: Answer, as_json: bool) -> None:
    """Print one answer."""
    if as_json:
        say_json({"query": query, **answer.to_dict()})
        return
    say(str(answer))
    if answer.counts:
        say(f"  counted: {answer.counts}")
    if answer.assumption:
        say(f"  note: {answer.assumption}")


def say_answers(
    queries: Sequence[NumberedQuery], answers: Sequence[Answer], *, as_json: bool, as_csv: bool
) -> None:
    """Print the answers to a workload."""
    texts = [each.query for each in queries]
    found = [{"query": q, **a.to_dict()} for q, a in zip(texts, answers, strict=True)]
    if as_json:
        say_json(found)
    elif as_csv:
        text = io.StringIO()
        writer = csv.DictWriter(text, _HEADERS, lineterminator="\n")
        writer.writeheader()
        writer.writerows(found)
        emit(text.getvalue())
    else:
        shown = [[query, *_told(answer)] for query, answer in zip(texts, answers, strict=True)]
        say_table(["query", "count", "low", "high", "interval"], shown)
        for counted in dict.fromkeys(a.counts for a in answers if a.counts):
            say(f"  counted: {counted}")
        for note in dict.fromkeys(a.assumption for a in answers if a.assumption):
            say(f"  note: {note}")


def _told(answer: Answer) -> list[str]:
    numbers = (answer.value, answer.low, answer.high)
    told = ["-" if n is None else f"{n:,.1f}".removesuffix(".0") for n in numbers]
    return [*told, answer.interval or "-"]
