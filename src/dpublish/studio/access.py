"""Who may use the studio: one-time links, sessions, and what every request must show.

The studio answers with a plain 403, whatever is asked, unless a request names the studio's own
address, carries the cookie of a session and, where it changes anything, comes from one of the
studio's own pages.  A link is good for one session.
"""

import hmac
import secrets
from dataclasses import dataclass, field
from threading import Lock
from typing import Literal
from urllib.parse import urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import Request, cookie_parser
from starlette.responses import PlainTextResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from dpublish.errors import InvalidParameter

Role = Literal["owner", "reader"]
ENTRY = "/enter"
_SAFE = ("GET", "HEAD")
CONTENT_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
    "connect-src 'self'; frame-src 'self'; form-action 'self'; frame-ancestors 'self'; "
    "base-uri 'none'"
)
"""What a page may load: nothing but the studio's own files, and no script within a page."""
_HEADERS = {
    "Content-Security-Policy": CONTENT_POLICY,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "same-origin",  # with no-referrer browsers send forms with the origin null
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), microphone=(), geolocation=()",
    "Cache-Control": "no-store",
}


@dataclass(frozen=True)
class Session:
    """One browser that came by a link.

    Attributes:
        role: An owner may spend; a reader may look at plans and releases.
        csrf: What every form of the session carries.
    """

    role: Role
    csrf: str = field(default_factory=lambda: secrets.token_urlsafe(24))

    @property
    def may_spend(self) -> bool:
        """Whether the session may change anything."""
        return self.role == "owner"

    def require_form(self, token: str) -> None:
        """Refuse a form that was not made for this session."""
        if not hmac.compare_digest(token.encode(), self.csrf.encode()):
            raise InvalidParameter(
                "this form is out of date: go back, reload the page and send it again; nothing "
                "was done"
            )


class Access:
    """The links and the sessions of one studio, in memory alone.

    >>> access = Access(["http://127.0.0.1:8000"])
    >>> token = access.make_token("owner")
    >>> session = access.redeem(token)
    >>> access.session(session).role, access.redeem(token) is None
    ('owner', True)
    """

    def __init__(self, origins: list[str]) -> None:
        self.origins = frozenset(origins)
        self.hosts = frozenset(urlsplit(each).netloc for each in origins)
        self.is_secure = all(each.startswith("https:") for each in origins)
        port = urlsplit(origins[0]).port
        cookie = f"dpublish-studio-{port or 'web'}"
        self.cookies: dict[Role, str] = {"owner": cookie, "reader": f"{cookie}-reader"}
        self._tokens: dict[str, Role] = {}
        self._sessions: dict[str, Session] = {}
        self._lock = Lock()

    def make_token(self, role: Role) -> str:
        """Make a token that opens one session."""
        token = secrets.token_urlsafe(32)
        with self._lock:
            self._tokens[token] = role
        return token

    def redeem(self, token: str) -> str | None:
        """Open a session for a token, which is good no more; None if it never was."""
        with self._lock:
            role = self._tokens.pop(token, None)
            if role is None:
                return None
            name = secrets.token_urlsafe(32)
            self._sessions[name] = Session(role)
            return name

    def session(self, name: str | None) -> Session | None:
        """Find a session by what its cookie holds."""
        return self._sessions.get(name or "")

    def close(self, session: Session) -> None:
        """End a session."""
        with self._lock:
            self._sessions = {
                name: each for name, each in self._sessions.items() if each is not session
            }

    def session_of(self, headers: Headers) -> Session | None:
        """Find the session of a request; None if it may see nothing."""
        if headers.get("host") not in self.hosts:
            return None
        # Other servers on this computer set cookies, too, and not all of them as the standard says.
        sent = cookie_parser(headers.get("cookie", ""))
        # The owner's first: a reader's link that another page opened does not put an owner out.
        found = (self.session(sent.get(name)) for name in self.cookies.values())
        return next((each for each in found if each is not None), None)

    def is_own(self, headers: Headers) -> bool:
        """Check that a request that changes something comes from one of the studio's pages."""
        origin = headers.get("origin")
        if origin is not None:
            return origin in self.origins
        return headers.get("sec-fetch-site") == "same-origin"


class Guard:
    """Stand before every page: refuse strangers, and send the headers that keep a page safe."""

    def __init__(self, app: ASGIApp, access: Access, most_bytes: int) -> None:
        self.app = app
        self.access = access
        self.most_bytes = most_bytes

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] == "lifespan":
            await self.app(scope, receive, send)
            return
        if scope["type"] != "http":
            return

        is_begun = False

        async def send_safely(message: Message) -> None:
            nonlocal is_begun
            if message["type"] == "http.response.start":
                is_begun = True
                headers = MutableHeaders(scope=message)
                for name, value in _HEADERS.items():
                    headers.setdefault(name, value)
            await send(message)

        try:
            answer = self._answer(scope)
            await (self.app if answer is None else answer)(scope, receive, send_safely)
        except Exception:  # noqa: BLE001 - the server would print its text, which may quote a row
            if not is_begun:
                await PlainTextResponse("failed", 500)(scope, receive, send_safely)

    def _answer(self, scope: Scope) -> Response | None:
        """Return the answer to a request that comes no further; None if it may go on."""
        headers = Headers(scope=scope)
        if scope["path"] == ENTRY and scope["method"] == "GET":
            return self._enter(scope, headers)
        session = self.access.session_of(headers)
        if session is None:
            return _forbidden()
        if scope["method"] not in _SAFE:
            if scope["method"] != "POST" or not self.access.is_own(headers):
                return _forbidden()
            length = headers.get("content-length", "")
            is_told = length.isdecimal() and "transfer-encoding" not in headers
            if not is_told or int(length) > self.most_bytes:
                return PlainTextResponse("too large", 413)
        scope["session"] = session
        return None

    def _enter(self, scope: Scope, headers: Headers) -> Response:
        """Take a one-time link; the browser goes on without it in the address."""
        if headers.get("host") not in self.access.hosts:
            return _forbidden()
        name = self.access.redeem(Request(scope).query_params.get("token", ""))
        if name is None:
            return _forbidden()
        session = self.access.session(name)
        if session is None:
            return _forbidden()
        answer = RedirectResponse("/", 303)
        answer.set_cookie(
            self.access.cookies[session.role],
            name,
            httponly=True,
            samesite="strict",
            secure=self.access.is_secure,
            path="/",
        )
        return answer


def _forbidden() -> Response:
    return PlainTextResponse("forbidden", 403)
