"""One column of a schema: its form, a check of it while it is filled in, and its removal."""

from collections.abc import Mapping
from typing import Any

from starlette.responses import Response

from dpublish.data.column import Column, NumberColumn
from dpublish.data.date_column import DateColumn
from dpublish.data.periods import PERIODS
from dpublish.data.proposals import propose
from dpublish.data.schema import KINDS, MISSING_RULES
from dpublish.data.schema_text import with_column
from dpublish.data.taxonomy_edit import can_draw
from dpublish.errors import DPublishError, InvalidParameter
from dpublish.studio.code_files import list_codes
from dpublish.studio.column_form import field_of, read_fields, write_fields
from dpublish.studio.opened_schema import OpenedSchema
from dpublish.studio.visit import Page, Visit

_SHOWN = 12


def holds(column: Column) -> str:
    """Say what a column may hold: its bounds, or its first values."""
    if isinstance(column, NumberColumn):
        low, high = (column.show(end, digits=12) for end in column.bounds)
        return f"{low} to {high}"
    shown = column.labels[:_SHOWN]
    more = len(column.labels) - len(shown)
    return ", ".join(shown) + (f" and {more:,} more" if more else "")


def edit(visit: Visit) -> Response:
    """Show the form of a column, or an empty one for a new column."""
    opened = OpenedSchema.open(visit.desk, visit.given("schema"))
    name = visit.query.get("column", "")
    declared = opened.declared(name) if name else {}
    fault = opened.columns.faults.get(name, "")
    fields = write_fields(declared)
    if visit.query.get("take") == "proposal":
        proposal = propose(name)
        fields = write_fields({**declared, "kind": proposal.kind, **proposal.settings})
        fault = ""
    return _show(visit, opened, name, declared, fields, fault)


def save(visit: Visit) -> Response:
    """Write the column into the schema's file, if it is right."""
    opened = OpenedSchema.open(visit.desk, visit.given("schema"))
    declared = _declared(visit, opened)
    try:
        text, name = _text(visit, opened, declared)
        opened.save(text, seen=visit.given("digest"), column=name)
    except DPublishError as error:
        fields = {each: visit.form.get(each, "") for each in write_fields({})}
        return _show(visit, opened, visit.form.get("column", ""), declared, fields, str(error))
    return visit.go(f"/schemas/{opened.name}")


def check(visit: Visit) -> Response:
    """Tell what a column that is being filled in will be, or what is wrong with it."""
    opened = OpenedSchema.open(visit.desk, visit.given("schema"))
    text, name = _text(visit, opened, _declared(visit, opened))
    found = opened.changed(text, name).column(name)
    return visit.show("column_check.html", item=found, holds=holds(found), levels=levels(found))


def remove(visit: Visit) -> Response:
    """Remove a column from the schema; the table keeps it, and releases do not read it."""
    opened = OpenedSchema.open(visit.desk, visit.given("schema"))
    name = visit.form.get("column", "")
    opened.declared(name)
    opened.save(with_column(opened.text, name, None), seen=visit.given("digest"))
    return visit.go(f"/schemas/{opened.name}")


def levels(column: Column) -> list[tuple[int, int, str]]:
    """List the levels of a column: their number, their nodes, and the first names."""
    found = []
    for number, level in enumerate(column.taxonomy.levels):
        shown = level.labels[:_SHOWN]
        more = len(level.labels) - len(shown)
        names = ", ".join(shown) + (f" and {more:,} more" if more else "")
        found.append((number, len(level.labels), names))
    return found


def _declared(visit: Visit, opened: OpenedSchema) -> Mapping[str, Any]:
    return {} if visit.form.get("is_new") else opened.declared(visit.form.get("column", ""))


def _text(visit: Visit, opened: OpenedSchema, declared: Mapping[str, Any]) -> tuple[str, str]:
    name = visit.form.get("column", "").strip() if not declared else visit.form["column"]
    if not name:
        raise InvalidParameter("name: write the name of the column in the table")
    if not declared and name in opened.plain.get("columns", {}):
        raise InvalidParameter(f"name: the schema has a column {name!r} already")
    return with_column(opened.text, name, read_fields(visit.form, declared)), name


def _show(
    visit: Visit,
    opened: OpenedSchema,
    name: str,
    declared: Mapping[str, Any],
    fields: Mapping[str, str],
    fault: str = "",
) -> Response:
    field, told = field_of(fault)
    found = None if name in opened.columns.faults or not declared else opened.column(name)
    return visit.show(
        "column.html",
        code=422 if fault and visit.form else 200,
        opened=opened,
        name=name,
        is_new=not declared,
        fields=fields,
        problem=told,
        at=field,
        has_tree=found is not None and can_draw(found),
        levels=[] if found is None else levels(found),
        draws="taxonomy" in declared,
        keeps=[key for key in ("function", "function_of", "map") if key in declared],
        kinds=KINDS,
        rules=MISSING_RULES,
        periods=PERIODS,
        code_files=list_codes(visit.desk),
        dates=[each.name for each in opened.columns.found if isinstance(each, DateColumn)],
        proposal=propose(name) if name else None,
        digest=visit.form.get("digest", opened.digest),
    )


PAGES = (
    Page("/schemas/column", edit, owner_only=True),
    Page("/schemas/column", save, "POST"),
    Page("/schemas/column/check", check, "POST"),
    Page("/schemas/column/remove", remove, "POST"),
)
