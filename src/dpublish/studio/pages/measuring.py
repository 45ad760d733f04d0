"""Measure bounds that no one knows: reviewed, confirmed by a name, and paid for once."""

import json
from collections.abc import Mapping
from contextlib import closing
from dataclasses import asdict, dataclass
from fractions import Fraction
from hashlib import sha256
from pathlib import Path, PurePosixPath
from typing import Self

from starlette.responses import Response

from dpublish.data.schema import Schema
from dpublish.data.schema_file import dumps_toml
from dpublish.data.sources import open_table
from dpublish.errors import InvalidParameter
from dpublish.privacy.epsilon import format_epsilon, parse_epsilon
from dpublish.publishing.bounds import BoundsRequest, request_bounds
from dpublish.studio.desk import Desk
from dpublish.studio.opened_schema import OpenedSchema
from dpublish.studio.paying import Payment, Started, carry_out, review_content
from dpublish.studio.visit import Page, Visit, address


@dataclass(frozen=True)
class Measured:
    """Bounds that a page asks for; the texts of its fields."""

    schema: str = ""
    column: str = ""
    dataset: str = ""
    data: str = ""
    epsilon: str = ""
    coverage: str = "0.99"
    lower: str = ""
    upper: str = ""
    contribution: str = ""

    @classmethod
    def of(cls, fields: Mapping[str, str]) -> Self:
        """Read the fields of a form, or of an address."""
        names = cls.__dataclass_fields__
        return cls(**{name: fields[name].strip() for name in names if name in fields})

    def content(self, schema: Schema) -> str:
        """All that is measured and paid for, as one text, however its fields were written."""
        told = asdict(self) | {
            "data": str(PurePosixPath(self.data)),
            "schema": str(PurePosixPath(self.schema)),
            "epsilon": format_epsilon(self.exact),
            "declared": sha256(dumps_toml(schema).encode("utf-8", "replace")).hexdigest(),
        }
        return json.dumps({"bounds": told}, sort_keys=True)

    @property
    def exact(self) -> Fraction:
        """What it costs."""
        return parse_epsilon(self.epsilon)

    def request(self, desk: Desk) -> BoundsRequest:
        """Prepare the measurement; refuse what could not be measured or entered."""
        return request_bounds(
            OpenedSchema.open(desk, self.schema).path,
            self.column,
            coverage=self.coverage,
            lower=self.lower or None,
            upper=self.upper or None,
            contribution=self.contribution or None,
        )


def ask(visit: Visit) -> Response:
    """Show the form that says what to measure, or the review of what was said."""
    wanted = Measured.of(visit.query)
    if wanted.epsilon:
        return _review(visit, wanted)
    opened = OpenedSchema.open(visit.desk, visit.given("schema"))
    opened.declared(visit.given("column"))
    with visit.desk.open_ledger() as ledger:
        datasets = ledger.datasets()
    return visit.show(
        "bounds.html", wanted=wanted, datasets=datasets, tables=visit.desk.list_tables()
    )


def send(visit: Visit) -> Response:
    """Measure once, however often the form is sent."""
    wanted = Measured.of(visit.form)

    def prepare() -> Started:
        request = wanted.request(visit.desk)
        path = visit.desk.new_release(visit.given("output"))
        title = f"bounds of {wanted.column}"
        return Started(
            title=title,
            doing=f"Measuring {title}",
            output=path.name,
            work=lambda report: _measured(wanted, request, visit, path),
            back=f"/schemas/{wanted.schema}",
        )

    return carry_out(
        visit,
        lambda: _payment(wanted, wanted.request(visit.desk)),
        review=lambda problem: _review(visit, wanted, problem),
        prepare=prepare,
    )


def _payment(wanted: Measured, request: BoundsRequest) -> Payment:
    return Payment(wanted.dataset, wanted.content(request.schema), wanted.exact)


def _measured(wanted: Measured, request: BoundsRequest, visit: Visit, path: Path) -> dict[str, str]:
    path.parent.mkdir(parents=True, exist_ok=True)
    source = visit.desk.source(wanted.data)
    rows = open_table(source.location, request.schema, table=source.table)
    with visit.desk.open_ledger() as ledger, closing(rows) as table:
        found = request.run(
            table,
            path,
            ledger=ledger,
            dataset=wanted.dataset,
            epsilon=format_epsilon(wanted.exact),
        )
    goes_to = address("/schemas/column", schema=wanted.schema, column=wanted.column)
    return {"goes_to": goes_to, "said": f"entered the bounds of {wanted.column}", **found.summary()}


def _review(visit: Visit, wanted: Measured, problem: str = "") -> Response:
    """Show what will be measured, what it will cost, and what will be left."""
    for name in ("dataset", "data", "epsilon"):
        if not getattr(wanted, name):
            raise InvalidParameter(f"{name} is missing; choose one")
    request = wanted.request(visit.desk)
    visit.desk.source(wanted.data)
    output = visit.form.get("output")
    return visit.show(
        "bounds_review.html",
        code=422 if problem else 200,
        wanted=wanted,
        fields=asdict(wanted),
        output=output or visit.desk.free_name(f"{wanted.dataset}-{wanted.column}-bounds"),
        problem=problem,
        **review_content(
            visit, _payment(wanted, request), request.method.neighbors(request.schema)
        ),
    )


PAGES = (
    Page("/schemas/bounds", ask, owner_only=True),
    Page("/schemas/bounds", send, "POST"),
)
