"""Work that runs or has ended: its progress as it happens, and how to stop it."""

import json
from collections.abc import AsyncIterator

from anyio import sleep
from starlette.responses import Response, StreamingResponse

from dpublish.errors import DPublishError, InputError
from dpublish.ledger.account import GrantStatus
from dpublish.studio.jobs import Job
from dpublish.studio.spends import BEGUN, Spend
from dpublish.studio.visit import Page, Visit

_SECONDS = 0.2
"""How often progress is looked at."""


def work(visit: Visit) -> Response:
    """Show how far some work is, or how it ended."""
    key = visit.part("key")
    job, spend = visit.studio.jobs.get(key), visit.studio.spends.find(key)
    if job is not None and not job.is_look:
        return visit.show("work.html", job=job, spend=spend)
    if spend is None:
        raise InputError("this work is not known; the studio may have been started anew since")
    return visit.show("past_work.html", spend=spend, open_grants=_open_grants(visit, spend))


def events(visit: Visit) -> Response:
    """Send the progress of some work as it happens."""
    job = visit.studio.jobs.find(visit.part("key"))
    if job.is_look and not visit.session.may_spend:
        raise InputError("this work is for the owner's eyes")
    return StreamingResponse(_follow(job), media_type="text/event-stream")


def cancel(visit: Visit) -> Response:
    """Stop some work; what was debited stays debited."""
    key = visit.part("key")
    job = visit.studio.jobs.find(key)
    if job.can_cancel:
        job.cancel()
    return visit.go(f"/jobs/{key}")


async def _follow(job: Job) -> AsyncIterator[str]:
    seen = None
    while True:
        if job.version != seen:
            seen = job.version
            told = {"state": job.state, "done": job.done, "total": job.total, "label": job.label}
            yield f"data: {json.dumps(told)}\n\n"
        if job.is_over:
            return
        await sleep(_SECONDS)


def _open_grants(visit: Visit, spend: Spend) -> list[GrantStatus]:
    """List what the ledger was debited since a request began, without a release."""
    if spend.state != BEGUN:
        return []
    try:
        with visit.desk.open_ledger() as ledger:
            grants = ledger.status(spend.dataset).grants
    except DPublishError:
        return []
    return [each for each in grants if each.release_id is None and each.time >= spend.time[:19]]


PAGES = (
    Page("/jobs/{key}", work),
    Page("/jobs/{key}/events", events),
    Page("/jobs/{key}/cancel", cancel, "POST"),
)
