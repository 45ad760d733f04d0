"""What is learned from rows for the owner's eyes: found in the background, shown once, forgotten.

It lies in memory alone, is on no page but one that is stamped, and is gone when that page was
shown, or after a while if no one asks for it.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from threading import Timer
from typing import Any

from starlette.responses import Response

from dpublish.studio.jobs import Job
from dpublish.studio.visit import Page, Visit

_SECONDS = 600.0
"""How long a result waits for its page."""


@dataclass(frozen=True)
class Look:
    """What was learned, and the page that shows it.

    Attributes:
        template: The page, which carries the stamp.
        content: What it shows; not part of any text about the look.
    """

    template: str
    content: Mapping[str, Any] = field(repr=False)


def start_look(visit: Visit, title: str, find: Callable[[], Look], *, back: str) -> Response:
    """Begin to look at rows, and lead to the page that shows what was found."""
    job = visit.studio.jobs.start(
        title,
        lambda report: find(),
        back=back,
        can_cancel=False,
        is_look=True,
        ended=_forget_later,
    )
    return visit.go(f"/looks/{job.key}")


def show_look(visit: Visit) -> Response:
    """Show what was found, once; or that it is still looked for."""
    job = visit.studio.jobs.find(visit.part("key"))
    state = job.state  # read once: the work may end while the page is written
    if state != "done":
        return visit.show("look.html", job=job, is_running=state == "running", is_gone=False)
    found = job.result
    if not isinstance(found, Look):
        return visit.show("look.html", code=410, job=job, is_running=False, is_gone=True)
    job.result = None
    return visit.show(found.template, back=job.back, **found.content)


def _forget_later(job: Job, state: str) -> None:
    def forget() -> None:
        job.result = None

    timer = Timer(_SECONDS, forget)
    timer.daemon = True
    timer.start()


PAGES = (Page("/looks/{key}", show_look, owner_only=True),)
