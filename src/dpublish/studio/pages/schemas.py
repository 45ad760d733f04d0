"""Schemas: what is publicly known of each table, listed, shown and changed."""

import re
from pathlib import Path
from typing import NamedTuple

from starlette.responses import Response

from dpublish.data.code_list import CODE_ENDINGS, read_code_list
from dpublish.data.column import Column
from dpublish.data.fact_counts import stated_facts
from dpublish.data.publication import Publication
from dpublish.data.schema_text import with_head, with_publication
from dpublish.data.taxonomy_edit import can_draw
from dpublish.errors import DPublishError, InvalidParameter
from dpublish.studio.column_form import field_of
from dpublish.studio.opened_schema import OpenedSchema, list_schemas
from dpublish.studio.pages import checking, columns, measuring, taxonomies
from dpublish.studio.uploads import keep_upload
from dpublish.studio.visit import Page, Visit, address

_MOST_CODE_BYTES = 4 << 20
_HEAD = ("name", "unit", "unit_name")
_WORDS = tuple(Publication.__dataclass_fields__)
_OWN_PAGE = re.compile(r"/(schemas|begin)[/?][^\\]*")


class Row(NamedTuple):
    """A column as a list of columns shows it."""

    name: str
    kind: str
    holds: str
    cells: str
    levels: str
    missing: str
    fault: str
    has_tree: bool


def listing(visit: Visit) -> Response:
    """List the schemas of the folder, and what is wrong with them."""
    found = []
    for name in list_schemas(visit.desk):
        try:
            opened = OpenedSchema.open(visit.desk, name)
            found.append((name, opened.plain.get("name", ""), _number(opened), opened.problem))
        except DPublishError as error:
            found.append((name, "", 0, str(error)))
    return visit.show("schemas.html", schemas=found)


def schema(visit: Visit) -> Response:
    """Show a schema: its columns, its unit, and the words that are published with it."""
    opened = OpenedSchema.open(visit.desk, visit.part("file"))
    return show_schema(visit, opened)


def show_schema(visit: Visit, opened: OpenedSchema, problem: str = "") -> Response:
    """Show a schema, and why a change to it was refused."""
    try:
        rows = _rows(opened)
    except DPublishError as error:
        problem, rows = problem or str(error), None
    plain = {} if rows is None else opened.plain
    fault = "" if rows is None else opened.problem
    return visit.show(
        "schema.html",
        code=422 if visit.form else 200,
        opened=opened,
        rows=rows,
        problem=problem or ("" if any(row.fault for row in rows or ()) else fault),
        is_complete=rows is not None and not fault,
        head={name: _typed(visit, name, plain) for name in _HEAD},
        words={name: _typed(visit, name, plain.get("publication", {})) for name in _WORDS},
        facts=[] if fault or rows is None else stated_facts(opened.read()),
        tables=visit.desk.list_tables(),
    )


def change_head(visit: Visit) -> Response:
    """Change the name, the unit or the words for publication, and nothing else."""
    opened = OpenedSchema.open(visit.desk, visit.given("schema"))
    try:
        text = with_head(opened.text, {name: _word(visit, name) for name in _HEAD})
        text = with_publication(text, {name: _word(visit, name) for name in _WORDS})
        opened.save(text, seen=visit.given("digest"))
    except DPublishError as error:
        return show_schema(visit, opened, str(error))
    return visit.go(f"/schemas/{opened.name}")


def as_text(visit: Visit, problem: str = "") -> Response:
    """Show the file as text, to change what has no form."""
    opened = OpenedSchema.open(visit.desk, visit.given("schema"))
    return visit.show(
        "schema_text.html",
        code=422 if problem else 200,
        opened=opened,
        text=visit.form.get("text", opened.text),
        digest=visit.form.get("digest", opened.digest),
        problem=problem or opened.problem,
    )


def save_text(visit: Visit) -> Response:
    """Save the text if it is a schema."""
    opened = OpenedSchema.open(visit.desk, visit.given("schema"))
    end = "\r\n" if "\r\n" in opened.text else "\n"
    text = visit.form.get("text", "").replace("\r\n", "\n").rstrip() + "\n"
    try:
        opened.save(text.replace("\n", end), seen=visit.given("digest"))
    except DPublishError as error:
        return as_text(visit, str(error))
    return visit.go(f"/schemas/{opened.name}")


def add_codes(visit: Visit) -> Response:
    """Put a public list of codes into the folder; one that cannot be read is not kept."""
    path = keep_upload(visit.desk, visit.uploads.get("codes"), CODE_ENDINGS, _MOST_CODE_BYTES)
    try:
        read_code_list(path)
    except DPublishError:
        path.unlink()
        raise
    back = visit.form.get("back", "")
    if not _OWN_PAGE.fullmatch(back) or "//" in back:
        back = address("/schemas")
    return visit.show("codes_kept.html", name=_within(path, visit), back=back)


def _within(path: Path, visit: Visit) -> str:
    return path.relative_to(visit.desk.files.resolve()).as_posix()


def _rows(opened: OpenedSchema) -> list[Row]:
    found = {each.name: each for each in opened.columns.found}
    rows = []
    for name, keys in opened.plain.get("columns", {}).items():
        if name in opened.columns.faults:
            fault = field_of(opened.columns.faults[name])[1]
            rows.append(Row(name, str(keys.get("kind", "")), "", "", "", "", fault, False))
        else:
            rows.append(_row(found[name]))
    return rows


def _row(column: Column) -> Row:
    return Row(
        column.name,
        column.kind,
        columns.holds(column),
        f"{column.size:,}",
        str(column.height),
        column.missing,
        "",
        can_draw(column),
    )


def _number(opened: OpenedSchema) -> int:
    return len(opened.plain.get("columns", {}))


def _typed(visit: Visit, name: str, plain: object) -> str:
    kept = plain.get(name) if isinstance(plain, dict) else None
    return visit.form.get(name, "" if kept is None else str(kept))


def _word(visit: Visit, name: str) -> str | None:
    """Read words of a form; lines become one, and none remove what is there."""
    if name not in visit.form:
        raise InvalidParameter(f"the field {name} is missing; open the page again")
    return " ".join(visit.form[name].split()) or None


PAGES = (
    Page("/schemas", listing),
    Page("/schemas/head", change_head, "POST"),
    Page("/schemas/text", as_text, owner_only=True),
    Page("/schemas/text", save_text, "POST"),
    Page("/schemas/codes", add_codes, "POST"),
    *columns.PAGES,
    *taxonomies.PAGES,
    *checking.PAGES,
    *measuring.PAGES,
    Page("/schemas/{file:path}", schema),
)
