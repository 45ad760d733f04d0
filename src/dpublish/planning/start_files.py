"""What a guided start leaves: a commented schema, a ledger with a cap, a plan, the next command.

Answers are kept beside the schema as they are given, so that a start that was interrupted goes on
where it was.  Nothing here reads a row, and nothing is spent.
"""

import re
import shlex
import tomllib
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dpublish.data.code_list import read_code_list
from dpublish.data.draft import column_text, one_line
from dpublish.data.peek import Glimpse, peek
from dpublish.data.proposals import DATES
from dpublish.data.schema import Schema
from dpublish.data.schema_file import parse_schema, toml_key, toml_value
from dpublish.errors import InputError, InvalidParameter
from dpublish.ledger.ledger import Ledger
from dpublish.planning.advise import Advice, advise
from dpublish.planning.start import Account, Start
from dpublish.planning.start_steps import answer_order
from dpublish.privacy.epsilon import format_short, parse_epsilon
from dpublish.storage.address import is_address
from dpublish.storage.files import require_writable, write_text

ANSWERS = ".init.toml"
"""How the names of files of answers end."""
_ENDINGS = re.compile(
    r"(\.(csv|tsv|tab|parquet|pq|arrow|feather|ipc|duckdb|ddb|db))?(\.gz)?$", re.I
)
_HEAD = """\
# What is publicly known of {data}.  Nothing here was taken from its rows.
# A row is {row}.  A release hides {hidden}.
# Check each line against public knowledge before the first release, and change what is not so.
# missing = "category" counts missing values in a cell of their own; write "refuse" where there
# are none, or "drop" to leave such records out.
"""


@dataclass(frozen=True)
class StartFiles:
    """Where a guided start reads from, and where it writes to."""

    data: str
    schema: Path
    ledger: str
    dataset: str
    table: str | None = None
    sql: str | None = None
    output: str | None = None

    @classmethod
    def of(
        cls,
        data: str,
        *,
        dataset: str | None = None,
        schema: str | None = None,
        ledger: str | None = None,
        table: str | None = None,
        sql: str | None = None,
        output: str | None = None,
    ) -> "StartFiles":
        """Fill in names that are not given from the name of the table."""
        named = dataset or table or _ENDINGS.sub("", data.rstrip("/").rpartition("/")[2])
        stem = re.sub(r"[^\w.-]+", "-", named).strip("-.") or "table"
        return cls(
            data=data,
            schema=Path(schema or f"{stem}.toml"),
            ledger=ledger or "books.db",
            dataset=dataset or stem,
            table=table,
            sql=sql,
            output=output,
        )

    @property
    def answers(self) -> Path:
        """The file of answers, beside the schema."""
        return self.schema.with_suffix(ANSWERS)

    @property
    def plan(self) -> Path:
        """The file of the plan, beside the schema."""
        return self.schema.with_suffix(".plan.txt")

    def release_folder(self, task: str) -> str:
        """Name a folder for the first release that is not there yet."""
        if self.output is not None:
            return self.output
        stem = f"{re.sub(r'[^A-Za-z0-9_.-]+', '-', self.dataset)}-{task}".lstrip("-")
        names = (stem if number == 1 else f"{stem}-{number}" for number in range(1, 10_000))
        return next(name for name in names if not Path(name).exists())

    def source_options(self) -> str:
        """Write which rows of a database are meant, for a command."""
        pairs = (("--table", self.table), ("--sql", self.sql))
        return "".join(f" {shlex.join([name, value])}" for name, value in pairs if value)


@dataclass(frozen=True)
class Prepared:
    """All that a guided start will write, and the commands to run next."""

    schema_text: str
    schema: Schema
    advice: Advice
    command: str
    check_command: str

    @property
    def plan_text(self) -> str:
        """The text of the plan."""
        return f"{self.advice}\n\nNext:\n  {self.check_command}\n  {self.command}\n"


def find_account(ledger: str, dataset: str) -> Account | None:
    """Look up what a dataset may spend, if there is a ledger that has it."""
    if not is_address(ledger) and not Path(ledger).exists():
        return None
    with Ledger(ledger) as books:
        if dataset not in books.datasets():
            return None
        status = books.status(dataset)
    if status.levels:
        raise InvalidParameter(
            f"{dataset!r} has levels in {ledger}: each person has an epsilon of their own; see "
            "docs/how-to/personalized.md, or name another dataset (--dataset)"
        )
    if status.left <= 0:
        raise InvalidParameter(
            f"{dataset!r} has no epsilon left in {ledger}; raise its cap with `dpublish ledger "
            "cap`, or name another dataset (--dataset)"
        )
    return Account(status.cap, status.left)


def look(start: Start, files: StartFiles) -> dict[str, Glimpse]:
    """Look at some values of every column.  NOT PRIVATE: show it to the owner and forget it."""
    names = [each.column for each in start.proposals if each.role != "unusable"]
    return peek(files.data, names, table=files.table, sql=files.sql)


def prepare(start: Start, files: StartFiles) -> Prepared:
    """Write the schema's text, and plan the first release; nothing is written to disk yet."""
    text = schema_text(start, files)
    schema = parse_schema(text, files.schema.parent)
    length = start.stream_settings
    advice = advise(
        schema,
        start.goal,
        n_records=start.n_records,
        epsilon=start.epsilon,
        horizon=length.get("horizon"),
        window=length.get("window"),
    )
    command = advice.choices[0].command(
        data=files.data,
        schema=files.schema,
        ledger=files.ledger,
        dataset=files.dataset,
        output=files.release_folder(start.goal.task),
    )
    options = files.source_options()
    if not advice.choices[0].is_stream:
        command += options
    check = shlex.join(["dpublish", "schema", "check", str(files.schema), files.data]) + options
    return Prepared(text, schema, advice, command, check)


def schema_text(start: Start, files: StartFiles) -> str:
    r"""Write the schema with a comment on each column and on those that are left out.

    >>> start = Start.of([("age", None), ("email", None)]).answered("columns", "age=0..99 by 10")
    >>> print(schema_text(start, StartFiles.of("people.csv")).partition("\n\n")[2])
    name = "people"
    <BLANKLINE>
    [columns.age]  # as the owner says
    kind = "integer"
    bounds = [0, 99]
    bins = 10
    missing = "category"
    <BLANKLINE>
    # Left out:
    # email: it names people directly, and is never published
    <BLANKLINE>
    """
    unit = start.unit
    noun = f"all rows of any one {unit.noun}" if unit.column is not None else "any one row"
    row = start.answers.get("row", "a record")
    head = _HEAD.format(data=one_line(files.data), row=one_line(row), hidden=noun)
    settings = {"name": files.dataset}
    if unit.column is not None:
        settings["unit"] = unit.column
        if unit.noun != "person":
            settings["unit_name"] = unit.noun
    lines = "".join(f"{key} = {toml_value(value)}\n" for key, value in settings.items())
    blocks = [
        column_text(x.name, x.settings, x.why, _comments(x.settings, start.folder))
        for x in start.described
    ]
    left = [
        f"# {one_line(name) or '(no name)'}: {one_line(why)}\n"
        for name, why in start.left_out.items()
    ]
    tail = ["# Left out:\n" + "".join(left)] if left else []
    return "\n".join([head, lines, *blocks, *tail])


def _comments(settings: Mapping[str, Any], folder: Path) -> list[str]:
    """Offer what the owner may add: groups of a code list, or another period of bins."""
    values = settings.get("values")
    if isinstance(values, str) and read_code_list(folder / values).others(None):
        return [
            f"# taxonomy = {toml_value(values)}  # if its other columns are groups, finest first"
        ]
    if settings["kind"] in DATES and "bins" not in settings:
        return [
            '# bins = "month"  # or "day", "week", "quarter", "year"; the bounds choose if absent'
        ]
    return []


def require_free(files: StartFiles) -> None:
    """Refuse to start over a schema that is there already."""
    if files.schema.exists() and not files.answers.exists():
        raise InvalidParameter(
            f"{files.schema} exists already, and is not overwritten; check it with `dpublish "
            f"schema check {files.schema}`, or name another file: --schema other.toml"
        )
    require_writable(files.answers, replaces=True)


def write_all(start: Start, files: StartFiles, prepared: Prepared) -> list[str]:
    """Write the schema, the ledger and the plan; say what was done, line by line.

    What an interrupted call has written already is taken as it is.
    """
    if not (files.schema.exists() and _read(files.schema) == prepared.schema_text):
        write_text(files.schema, prepared.schema_text)
    told = [f"wrote {files.schema}: {len(prepared.schema.names)} columns"]
    told.append(_keep_account(start, files))
    write_text(files.plan, prepared.plan_text, replaces=True)
    told.append(f"wrote {files.plan}")
    files.answers.unlink(missing_ok=True)
    return told


def _keep_account(start: Start, files: StartFiles) -> str:
    """Give the dataset its cap in the ledger, which is made if there is none."""
    known = find_account(files.ledger, files.dataset)
    if known is not None:
        left = format_short(known.left)
        return f"{files.ledger} has {files.dataset} already: epsilon {left} may still be spent"
    cap = start.answers["cap"]
    is_new = not is_address(files.ledger) and not Path(files.ledger).exists()
    with Ledger.create(files.ledger) if is_new else Ledger(files.ledger) as books:
        books.add(files.dataset, cap=parse_epsilon(cap, "cap"))
    verb = "created" if is_new else "used"
    return f"{verb} {files.ledger}: {files.dataset} may spend epsilon {cap} in all"


def save_answers(start: Start, files: StartFiles) -> None:
    """Keep the answers so far, so that the same command goes on from here."""
    lines = [
        f"# Answers to `dpublish init {one_line(files.data)}` so far; run it again to go on.",
        f"data = {toml_value(files.data)}",
        f"columns = {toml_value(_names(start))}",
        "",
        "[answers]",
        *(f"{toml_key(key)} = {toml_value(text)}" for key, text in start.answers.items()),
    ]
    write_text(files.answers, "\n".join(lines) + "\n", replaces=True)


def load_answers(start: Start, files: StartFiles) -> Start:
    """Go on with the answers of an interrupted start; those that no longer fit are asked again."""
    if not files.answers.exists():
        return start
    try:
        plain = tomllib.loads(_read(files.answers))
        columns, answers = plain["columns"], plain["answers"]
        pairs = [(str(key), str(text)) for key, text in answers.items()]
    except (ValueError, KeyError, AttributeError):
        raise InputError(
            f"{files.answers} is not a file of answers; remove it, or begin again with --fresh"
        ) from None
    if columns != _names(start):
        raise InvalidParameter(
            f"the columns of {files.data} have changed since the answers in {files.answers} were "
            "given; begin again with --fresh"
        )
    for key, text in sorted(pairs, key=lambda pair: answer_order(pair[0])):
        with suppress(InvalidParameter):
            start = start.answered(key, text)
    return start


def _names(start: Start) -> Sequence[str]:
    return [each.column for each in start.proposals]


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except OSError as failure:
        raise InputError(f"cannot read {path}: {failure.strerror}") from None
