"""One request as a page sees it: what was asked, by whom, and how to answer."""

from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any
from urllib.parse import quote, urlencode, urlsplit, urlunsplit

from anyio import CapacityLimiter, to_thread
from jinja2 import Environment, PackageLoader, StrictUndefined
from starlette.datastructures import FormData, UploadFile
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response
from starlette.routing import Route

from dpublish.accuracy.rounding import format_number
from dpublish.core.method import figure_name
from dpublish.core.settings import default_words
from dpublish.errors import (
    BudgetError,
    CorruptRelease,
    DPublishError,
    InputError,
    InvalidParameter,
)
from dpublish.privacy.epsilon import format_epsilon, format_rounded, format_short
from dpublish.studio.access import Access, Session
from dpublish.studio.desk import Desk
from dpublish.studio.jobs import Jobs, fault_words
from dpublish.studio.phrasing import for_pages
from dpublish.studio.spends import Spends

_MOST_FIELDS = 2_000
_READING = 4
"""Requests of readers that are answered at once; all others wait, so that owners do not."""


@dataclass(frozen=True)
class Studio:
    """What all pages share."""

    desk: Desk
    access: Access
    jobs: Jobs
    spends: Spends
    reading: CapacityLimiter = field(default_factory=lambda: CapacityLimiter(_READING))


@dataclass(frozen=True)
class Visit:
    """A request of one session.

    Attributes:
        request: The request.
        studio: What all pages share.
        session: Who asks.
        form: The fields of a form that was sent; empty otherwise.
        uploads: The files that were sent with it.
    """

    request: Request
    studio: Studio
    session: Session
    form: Mapping[str, str] = field(default_factory=dict)
    uploads: Mapping[str, UploadFile] = field(default_factory=dict)

    @property
    def desk(self) -> Desk:
        """What the studio works on."""
        return self.studio.desk

    @property
    def query(self) -> Mapping[str, str]:
        """The fields of the address."""
        return self.request.query_params

    @property
    def is_part(self) -> bool:
        """Whether a part of a page is asked for, to be put into one that is shown."""
        return self.request.headers.get("hx-request") == "true"

    @property
    def came_from(self) -> str:
        """The page of the studio that led here; empty if it is not known, or this very page."""
        stated = urlsplit(self.request.headers.get("referer", ""))
        here = self.request.url
        found = urlunsplit(("", "", stated.path, stated.query, ""))
        is_own = stated.netloc == here.netloc and found.startswith("/") and found[1:2] != "/"
        return found if is_own and (stated.path, stated.query) != (here.path, here.query) else ""

    def part(self, name: str) -> str:
        """Read a part of the address, such as the name of a release."""
        return str(self.request.path_params[name])

    def given(self, name: str) -> str:
        """Read a field of the form, or of the address; refuse an empty one."""
        found = self.form.get(name, self.query.get(name, "")).strip()
        if not found:
            raise InvalidParameter(f"{name.replace('_', ' ')} is missing; fill it in")
        return found

    def show(self, template: str, *, code: int = 200, **content: Any) -> Response:
        """Answer with a page."""
        text = templates().get_template(template).render(visit=self, **content)
        return HTMLResponse(text, code)

    def go(self, path: str, *, anchor: str = "", **query: str) -> Response:
        """Send the browser to another page, or to a part of it."""
        target = address(path, **query) + (f"#{anchor}" if anchor else "")
        if self.is_part:
            return Response(status_code=200, headers={"HX-Redirect": target})
        return RedirectResponse(target, 303)

    def refuse(self, error: DPublishError) -> Response:
        """Answer that it cannot be done, why, and what to do."""
        notes = tuple(getattr(error, "__notes__", ()))
        template = "refusal_part.html" if self.is_part else "refusal.html"
        status = 200 if self.is_part else _status(error)  # parts of other codes are not shown
        return self.show(template, code=status, problem=str(error), notes=notes)

    def deny(self) -> Response:
        """Answer a reader that this is for owners."""
        told = "this page is for owners; readers see datasets, schemas, plans, releases and streams"
        return self.show("refusal.html", code=403, problem=told, notes=())

    def miss(self) -> Response:
        """Answer that there is no such page."""
        told = "there is no page at this address; take one of those above"
        return self.show("refusal.html", code=404, problem=told, notes=())


Handler = Callable[[Visit], Response]


@dataclass(frozen=True)
class Page:
    """An address and the function that answers there.

    Attributes:
        path: The address.
        handler: What answers.
        method: GET to look, POST to change.
        owner_only: Whether readers are refused.
    """

    path: str
    handler: Handler
    method: str = "GET"
    owner_only: bool = False

    def route(self, studio: Studio) -> Route:
        """Make the route; the handler runs in a thread, so that others are answered meanwhile."""
        return Route(self.path, self._endpoint(studio), methods=[self.method])

    def _endpoint(self, studio: Studio) -> Callable[[Request], Awaitable[Response]]:
        async def endpoint(request: Request) -> Response:
            session: Session = request.scope["session"]
            if (self.owner_only or self.method != "GET") and not session.may_spend:
                return Visit(request, studio, session).deny()
            visit = Visit(request, studio, session)
            if self.method == "GET":
                limiter = None if session.may_spend else studio.reading
                return await to_thread.run_sync(self._answer, visit, limiter=limiter)
            async with request.form(max_fields=_MOST_FIELDS) as form:
                sent = Visit(request, studio, session, *_split(form))
                return await to_thread.run_sync(self._answer, sent)

        return endpoint

    def _answer(self, visit: Visit) -> Response:
        try:
            if self.method != "GET":
                visit.session.require_form(visit.form.get("csrf", ""))
            return self.handler(visit)
        except DPublishError as error:
            return visit.refuse(error)
        except Exception as fault:  # noqa: BLE001 - a traceback may quote rows
            return visit.refuse(InputError(fault_words(fault)))


def _split(form: FormData) -> tuple[dict[str, str], dict[str, UploadFile]]:
    """Part fields and files; of fields with the same name the texts are joined by commas."""
    fields: dict[str, str] = {}
    files: dict[str, UploadFile] = {}
    for name, value in form.multi_items():
        if isinstance(value, UploadFile):
            files[name] = value
        else:
            fields[name] = f"{fields[name]},{value}" if name in fields else value
    return fields, files


def _status(error: DPublishError) -> int:
    if isinstance(error, BudgetError):
        return 409
    return 404 if isinstance(error, InputError) and not isinstance(error, CorruptRelease) else 422


def address(path: str, **query: str) -> str:
    """Write the address of a page; empty words are left out.

    >>> address("/plan", dataset="people", goal="classify:income", rows="")
    '/plan?dataset=people&goal=classify%3Aincome'
    """
    told = {name: text for name, text in query.items() if text}
    return quote(path) + ("?" + urlencode(told) if told else "")


def named_like(names: Iterable[str], other: str) -> str:
    """Find the file that is called as another is, but for its ending; empty if none is.

    >>> named_like(["codes.csv", "visits.csv"], "visits.toml"), named_like(["codes.csv"], "visits")
    ('visits.csv', '')
    """
    wanted = other.rpartition(".")[0] or other
    return next((each for each in names if (each.rpartition(".")[0] or each) == wanted), "")


@cache
def templates() -> Environment:
    """Return the templates; whatever they are given is escaped."""
    environment = Environment(
        loader=PackageLoader("dpublish.studio"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {
        "epsilon": format_short,
        "rounded": format_rounded,
        "exact": format_epsilon,
        "number": format_number,
        "figure": figure_name,
        "setting": default_words,
        "for_pages": for_pages,
        "named_like": named_like,
        "capital": lambda text: text[:1].upper() + text[1:],
        "when": lambda time: f"{time[:10]} {time[11:16]} UTC",
    }
    environment.globals["address"] = address
    return environment
