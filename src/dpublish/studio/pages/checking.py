"""Compare a table with its schema: reads rows, for the owner's eyes only."""

from starlette.responses import Response

from dpublish.data.check import inspect_table
from dpublish.studio.looks import PAGES as LOOKS
from dpublish.studio.looks import Look, start_look
from dpublish.studio.opened_schema import OpenedSchema
from dpublish.studio.visit import Page, Visit, address


def compare(visit: Visit) -> Response:
    """Begin to compare a table with a schema."""
    opened = OpenedSchema.open(visit.desk, visit.given("schema"))
    loaded = opened.read()
    data = visit.given("data")
    source = visit.desk.source(data)

    def find() -> Look:
        found = inspect_table(loaded, source.location, table=source.table)
        told = {"found": found, "data": data, "schema": opened.name, "columns": loaded.names}
        return Look("compared.html", told)

    back = address(f"/schemas/{opened.name}")
    return start_look(visit, f"Comparing {data} with {opened.name}", find, back=back)


PAGES = (Page("/schemas/compare", compare, "POST"), *LOOKS)
