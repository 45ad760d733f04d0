"""Build the studio's web application."""

from pathlib import Path

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
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
from dpublish.studio.visit import Page, Studio

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
        exception_handlers={404: _missing, 405: _missing},
    )
    return Guard(app, access, MOST_BYTES), studio


async def _missing(request: Request, error: Exception) -> Response:
    return PlainTextResponse("not found", 404)
