"""Build the studio's web application."""

from collections.abc import Awaitable, Callable
from pathlib import Path

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Mount
from starlette.staticfiles import StaticFiles
from starlette.types import ASGIApp

from dpublish.studio.access import Access, Guard
from dpublish.studio.desk import Desk
from dpublish.studio.jobs import Jobs
from dpublish.studio.pages import (
    audit,
    beginning,
    datasets,
    planning,
    releases,
    releasing,
    schemas,
    streams,
    work,
)
from dpublish.studio.spends import Spends
from dpublish.studio.visit import Page, Studio, Visit

MOST_BYTES = 256 * 1024 * 1024
"""No request is larger; an uploaded table is the largest."""
PAGES: tuple[Page, ...] = (
    *datasets.PAGES,
    *beginning.PAGES,
    *schemas.PAGES,
    *planning.PAGES,
    *releasing.PAGES,
    *releases.PAGES,
    *streams.PAGES,
    *audit.PAGES,
    *work.PAGES,
)


def make_app(desk: Desk, access: Access) -> tuple[ASGIApp, Studio]:
    """Build the application that `serve` runs, and what its pages share."""
    studio = Studio(desk, access, Jobs(), Spends(desk.releases))
    static = StaticFiles(directory=Path(__file__).with_name("static"))
    routes = [page.route(studio) for page in PAGES]
    app = Starlette(
        routes=[*routes, Mount("/static", static)],
        exception_handlers=dict.fromkeys((404, 405), _missing(studio)),
    )
    return Guard(app, access, MOST_BYTES), studio


def _missing(studio: Studio) -> Callable[[Request, Exception], Awaitable[Response]]:
    async def answer(request: Request, error: Exception) -> Response:
        return Visit(request, studio, request.scope["session"]).miss()

    return answer
