"""Serve the studio on this computer, and print the one-time link that opens it."""

import socket
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import uvicorn

from dpublish.errors import InputError, InvalidParameter
from dpublish.studio.access import ENTRY, Access, Role
from dpublish.studio.app import make_app
from dpublish.studio.desk import Desk

_USUAL = {"http": 80, "https": 443}
LOOPBACK = ("127.0.0.1", "::1", "localhost")


@dataclass(frozen=True)
class Listening:
    """Where the studio listens, and what its address is to browsers.

    Attributes:
        host: The address to listen on; others than this computer's own need one of the next.
        port: The port; 0 takes a free one.
        certificate: The file of the server's TLS certificate, and `key` that of its key.
        key: See `certificate`.
        public: The address under which a reverse proxy with TLS offers the studio.
    """

    host: str = "127.0.0.1"
    port: int = 0
    certificate: Path | None = None
    key: Path | None = None
    public: str | None = None

    def __post_init__(self) -> None:
        if (self.certificate is None) is not (self.key is None):
            raise InvalidParameter("TLS needs both: --tls-certificate and --tls-key")
        if self.public is not None and not self.public.startswith("https://"):
            raise InvalidParameter(
                "--public-address must begin with https://: without TLS everyone on the way "
                "could read what the owner reads"
            )
        if self.host not in LOOPBACK and self.certificate is None and self.public is None:
            raise InvalidParameter(
                f"{self.host} is not an address of this computer alone, so the studio needs TLS "
                "there: --tls-certificate and --tls-key, or --public-address of a reverse proxy "
                "that has it"
            )

    def origins(self, port: int) -> list[str]:
        """List the addresses that browsers may have in front of a page's path."""
        if self.public is not None:
            return [self.public.rstrip("/")]
        scheme = "http" if self.certificate is None else "https"
        shown = f"[{self.host}]" if ":" in self.host else self.host
        names = [shown]
        if self.host in LOOPBACK:
            names += [name for name in ("127.0.0.1", "localhost") if name != shown]
        shown_port = "" if port == _USUAL[scheme] else f":{port}"  # browsers leave it out
        return [f"{scheme}://{name}{shown_port}" for name in names]


def bind(where: Listening) -> socket.socket:
    """Take the port; refuse one that is taken."""
    family = socket.AF_INET6 if ":" in where.host else socket.AF_INET
    found = socket.socket(family, socket.SOCK_STREAM)
    found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        found.bind((where.host, where.port))
        found.listen(128)
    except OSError as error:
        found.close()
        raise InputError(
            f"cannot listen on {where.host} port {where.port}: {error.strerror}; --port 0 takes a "
            "free one"
        ) from None
    return found


def link(access: Access, origin: str, role: Role) -> str:
    """Make a link that opens one session."""
    return f"{origin}{ENTRY}?token={access.make_token(role)}"


def serve(
    desk: Desk,
    where: Listening,
    *,
    told: Callable[[str, Access], None] = lambda origin, access: None,
) -> None:
    """Serve until interrupted; `told` is called when the studio answers."""
    listening = bind(where)
    origins = where.origins(listening.getsockname()[1])
    access = Access(origins)
    app, studio = make_app(desk, access)
    config = uvicorn.Config(
        app,
        access_log=False,  # a line a request would hold what an owner asked for
        log_level="error",
        server_header=False,
        date_header=False,
        lifespan="off",
        ssl_certfile=where.certificate,
        ssl_keyfile=where.key,
        timeout_graceful_shutdown=2,
    )
    server = uvicorn.Server(config)
    told(origins[0], access)
    try:
        server.run(sockets=[listening])
    finally:
        listening.close()
        studio.spends.close()
