"""The taxonomy of one column: its tree as it is, drawn anew, checked and saved."""

import json

from starlette.responses import Response

from dpublish.data.column import NumberColumn
from dpublish.data.schema_text import with_column
from dpublish.data.taxonomy import Node
from dpublish.data.taxonomy_edit import current_tree, drawn_keys, read_drawn
from dpublish.errors import DPublishError, InvalidSchema
from dpublish.studio.column_form import field_of
from dpublish.studio.opened_schema import OpenedSchema
from dpublish.studio.pages.columns import levels
from dpublish.studio.visit import Page, Visit


def tree(visit: Visit) -> Response:
    """Show the tree of a column; it is edited where scripts run."""
    opened, name = _opened(visit)
    return _show(visit, opened, name, current_tree(opened.column(name)))


def check(visit: Visit) -> Response:
    """Tell which levels a drawn tree has, or what is wrong with it."""
    opened, name = _opened(visit)
    found = opened.changed(_text(visit, opened, name), name).column(name)
    return visit.show("taxonomy_check.html", item=found, levels=levels(found))


def save(visit: Visit) -> Response:
    """Write a drawn tree into the schema's file."""
    opened, name = _opened(visit)
    drawn = _drawn(visit)
    try:
        opened.save(_text(visit, opened, name), seen=visit.given("digest"), column=name)
    except DPublishError as error:
        return _show(visit, opened, name, drawn, field_of(str(error))[1])
    return visit.go("/schemas/taxonomy", schema=opened.name, column=name, saved="yes")


def _opened(visit: Visit) -> tuple[OpenedSchema, str]:
    opened = OpenedSchema.open(visit.desk, visit.given("schema"))
    name = visit.form.get("column", visit.query.get("column", ""))
    opened.declared(name)
    return opened, name


def _drawn(visit: Visit) -> Node:
    try:
        return read_drawn(json.loads(visit.given("tree")))
    except (ValueError, RecursionError) as error:
        if isinstance(error, DPublishError):
            raise
        raise InvalidSchema("this is no drawn tree; open the page again") from None


def _text(visit: Visit, opened: OpenedSchema, name: str) -> str:
    keys = drawn_keys(opened.declared(name), opened.column(name), _drawn(visit))
    return with_column(opened.text, name, keys)


def _show(
    visit: Visit, opened: OpenedSchema, name: str, drawn: Node, problem: str = ""
) -> Response:
    item = opened.column(name)
    return visit.show(
        "taxonomy.html",
        code=422 if problem else 200,
        opened=opened,
        item=item,
        tree=drawn,
        levels=levels(item),
        is_ranges=isinstance(item, NumberColumn),
        is_ordered=item.kind == "ordinal",
        from_file=isinstance(opened.declared(name).get("taxonomy"), str),
        problem=problem,
        saved=visit.query.get("saved") == "yes",
        digest=visit.form.get("digest", opened.digest),
    )


PAGES = (
    Page("/schemas/taxonomy", tree),
    Page("/schemas/taxonomy", save, "POST"),
    Page("/schemas/taxonomy/check", check, "POST"),
)
