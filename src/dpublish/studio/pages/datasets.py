"""Datasets: what each may spend, has spent and has left, and its releases in time."""

from datetime import datetime
from fractions import Fraction
from itertools import accumulate
from typing import NamedTuple

from starlette.responses import Response

from dpublish.core.folder.folder import head_name
from dpublish.core.folder.opening import read_json
from dpublish.errors import DPublishError, InvalidParameter
from dpublish.ledger.account import Status
from dpublish.ledger.ledger import Ledger
from dpublish.privacy.epsilon import format_short
from dpublish.studio.visit import Page, Visit

_OF_GRANTS = ("grant", "publish")
"""Kinds of entries that stand in the list of what was spent."""


def home(visit: Visit) -> Response:
    """Show all datasets; where there is no ledger yet, the form that makes one."""
    if not visit.desk.has_ledger:
        return visit.show("no_ledger.html")
    with visit.desk.open_ledger() as ledger:
        found = [ledger.status(name) for name in ledger.datasets()]
        warnings = ledger.anchor_warnings()
    return visit.show(
        "datasets.html",
        datasets=found,
        warnings=warnings,
        interrupted=visit.studio.spends.interrupted(),
    )


def create_ledger(visit: Visit) -> Response:
    """Make the ledger."""
    Ledger.create(visit.desk.ledger).close()
    return visit.go("/")


def add(visit: Visit) -> Response:
    """Add a dataset with a cap, or with levels."""
    name, levels = visit.given("dataset"), visit.form.get("levels", "").strip()
    cap = visit.form.get("cap", "").strip()
    if not cap and not levels:
        raise InvalidParameter("say what may be spent in all: a cap such as 2, or levels")
    with visit.desk.open_ledger() as ledger:
        ledger.add(
            name,
            cap=cap or None,
            note=visit.form.get("note", "").strip(),
            levels=[each.strip() for each in levels.split(",") if each.strip()],
            publisher=visit.form.get("publisher", "").strip(),
            contact=visit.form.get("contact", "").strip(),
        )
    return visit.go(f"/datasets/{name}")


def dataset(visit: Visit) -> Response:
    """Show one dataset: its account, and every grant with what became of it."""
    with visit.desk.open_ledger() as ledger:
        status = ledger.status(visit.part("name"))
        changes = [
            event for event in ledger.history(status.dataset) if event.kind not in _OF_GRANTS
        ]
    here = {}
    for name in visit.desk.list_releases():
        if (release_id := _release_id(visit, name)) is not None:
            here[release_id] = name
    return visit.show(
        "dataset.html", status=status, here=here, steps=_steps(status), changes=changes
    )


def describe(visit: Visit) -> Response:
    """State who publishes a dataset, and whom to ask; certificates show it."""
    name = visit.part("name")
    with visit.desk.open_ledger() as ledger:
        ledger.describe(
            name,
            publisher=visit.form.get("publisher", "").strip(),
            contact=visit.form.get("contact", "").strip(),
        )
    return visit.go(f"/datasets/{name}")


def change_cap(visit: Visit) -> Response:
    """Raise or lower the cap, with a reason that the ledger keeps."""
    name = visit.part("name")
    with visit.desk.open_ledger() as ledger:
        ledger.change_cap(name, visit.given("cap"), visit.given("reason"))
    return visit.go(f"/datasets/{name}")


class Step(NamedTuple):
    """A grant in the drawing of what was spent: where it begins, and how high it is by then."""

    across: float
    spent: float
    text: str


def _steps(status: Status) -> list[Step]:
    """Locate every grant by its time (0 to 100) and by the part of the cap spent with it."""
    grants = [each for each in status.grants if each.window is None]
    if len(grants) < 2 or not status.cap:
        return []
    times = [datetime.fromisoformat(each.time).timestamp() for each in grants]
    begun, length = times[0], max(times[-1] - times[0], 1)
    sums = accumulate(each.epsilon for each in grants)
    return [
        Step(
            round(100 * (time - begun) / length, 2),
            round(float(100 * min(spent / status.cap, Fraction(1))), 2),
            f"{each.time[:10]}: {each.purpose}, ε {format_short(each.epsilon)}",
        )
        for time, spent, each in zip(times, sums, grants, strict=True)
    ]


def _release_id(visit: Visit, name: str) -> str | None:
    """Read the id that a folder states, for a link; what it holds is checked when it is opened."""
    try:
        path = visit.desk.release(name)
        found = read_json(path, head_name(path))["receipt"]["release_id"]
    except (DPublishError, LookupError, TypeError):
        return None
    return found if isinstance(found, str) else None


PAGES = (
    Page("/", home),
    Page("/ledger", create_ledger, "POST"),
    Page("/datasets", add, "POST"),
    Page("/datasets/{name:path}", dataset),
    Page("/datasets/{name:path}/about", describe, "POST"),
    Page("/datasets/{name:path}/cap", change_cap, "POST"),
)
