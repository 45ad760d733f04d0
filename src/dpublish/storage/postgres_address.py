"""Where a PostgreSQL database is, and what to do when it does not answer.

An address is `postgresql://user@host:port/database?setting=value`, as libpq reads it; whatever
is left out comes from libpq's own variables (PGHOST, PGSERVICE, PGPASSFILE ...).  It must hold no
password: command lines show in the list of processes.  Messages name host and database only, and
never pass on what the server said, for the server quotes values.
"""

import os
import re
from dataclasses import dataclass
from urllib.parse import parse_qsl, unquote

from dpublish.errors import InvalidParameter

SCHEMES = ("postgresql://", "postgres://")
PASSWORD_ADVICE = "put it into a file that PGPASSFILE or PGSERVICE names (or into PGPASSWORD)"

_CONNECT_SECONDS = 30
_HOST = r"(?:\[[0-9A-Fa-f:.%]+\]|[^\[\]:,@/?#\s]*)(?::\d*)?"
_ADDRESS = re.compile(
    r"postgres(?:ql)?://"
    r"(?:(?P<user>[^:@/?#\s]*)@)?"
    rf"(?P<hosts>{_HOST}(?:,{_HOST})*)"
    r"(?:/(?P<database>[^@/?#\s]*))?"
    r"(?:\?(?P<settings>[^#\s]*))?"
)
_PASSWORD = re.compile(r"postgres(?:ql)?://[^/?#@]*:[^?#]*@")
_SECRET_SETTING = re.compile(r"passw|secret|scram_.*_key", re.IGNORECASE)

_REFUSED = "the user or the password is not accepted, or the password has expired"
_ADVICE_BY_STATE = {
    "28P01": f"{_REFUSED}; {PASSWORD_ADVICE}",
    "28000": "the server does not let this user in; ask its administrator (pg_hba.conf)",
    "3D000": "the server has no such database; check its name",
    "42501": "this user may not read all of it; grant SELECT on the columns of the schema",
    "42P01": "a table in it does not exist; check its name",
    "42703": "a column in it does not exist; check its name",
    "42883": "a function or an operator in it does not exist for these types",
    "42601": "it is not valid SQL; try it in psql first",
    "25006": "the database is read-only, and this would write",
    "53300": "the server has no connection left; try again later",
    "55P03": "another program has locked it; try again later",
    "57P01": "the server is shutting down; try again later",
    "57P02": "the server was restarted; try again",
    "57P03": "the server is starting or shutting down; try again later",
}
# What libpq says when there is no connection yet, and thus no code; servers may speak other
# languages, so the last line of advice is for all else.
_ADVICE_BY_WORDS = (
    (r"password authentication failed|no password supplied", _ADVICE_BY_STATE["28P01"]),
    (r'database ".*" does not exist', _ADVICE_BY_STATE["3D000"]),
    (r'role ".*" does not exist|no pg_hba\.conf entry|authentication', _ADVICE_BY_STATE["28000"]),
    (r"too many clients|connection slots|too many connections", _ADVICE_BY_STATE["53300"]),
    (r"starting up|shutting down|in recovery|not yet accepting", _ADVICE_BY_STATE["57P03"]),
    (r"permission denied for database", "this user may not connect to it; grant CONNECT"),
    (r"service (?:file )?\".*\" not found", "the service is not there; check PGSERVICEFILE"),
    (r"translate host name|Name or service", "its host is unknown; check the name of the host"),
    (r"timeout expired|timed out", "its host does not answer; check host, port and firewall"),
    (r"refused|No such file|No route|unreachable", "no server listens there; check host and port"),
    (r"SSL|certificate", "no encrypted connection can be made; check sslmode and certificates"),
    (r"invalid|missing", "the address is not as libpq wants it; check its settings"),
)


def is_postgres(text: str) -> bool:
    """Check whether a text is the address of a PostgreSQL database."""
    return text.startswith(SCHEMES)


def sets_secret(uri: str) -> bool:
    """Check whether a setting of an address is a password or another secret, however written.

    >>> sets_secret("postgresql://host/db?pass%77ord=x"), sets_secret("postgresql://host/db?user=x")
    (True, False)
    """
    names = (part.partition("=")[0] for part in re.split("[?&]", uri)[1:])
    return any(_SECRET_SETTING.search(unquote(name)) for name in names)


@dataclass(frozen=True)
class PostgresAddress:
    """The address of a database, without a password.

    >>> PostgresAddress.parse("postgresql://ann@db.example:5433/clinic?sslmode=require")
    PostgresAddress(postgresql://db.example:5433/clinic)
    """

    uri: str
    hosts: str
    database: str
    settings: tuple[tuple[str, str], ...] = ()

    def __repr__(self) -> str:
        return f"PostgresAddress({self.label})"

    @classmethod
    def parse(cls, uri: str) -> "PostgresAddress":
        """Take an address apart, and refuse one that holds a password; it is never quoted."""
        found = _ADDRESS.fullmatch(uri)
        settings = tuple(parse_qsl(found["settings"] or "", True)) if found else ()
        if _PASSWORD.match(uri) or sets_secret(uri):
            raise InvalidParameter(
                "the address of a database must not hold a password, for other users of the "
                f"machine see it in the list of processes; {PASSWORD_ADVICE}"
            )
        if found is None:
            raise InvalidParameter(
                "this is no address of a database; write postgresql://user@host:5432/database"
            )
        named = dict(settings)
        database = unquote(found["database"] or "") or named.get("dbname", "")
        return cls(uri, found["hosts"] or named.get("host", ""), database, settings)

    @property
    def label(self) -> str:
        """How messages call it: host and database, or the service that names them."""
        name = f"postgresql://{self.hosts}" + (f"/{self.database}" if self.database else "")
        service = dict(self.settings).get("service")
        return name if service is None else f"{name}?service={service}"

    @property
    def connection_uri(self) -> str:
        """The address for libpq; one that does not answer is given up after a while."""
        is_limited = "connect_timeout" in dict(self.settings) or "PGCONNECT_TIMEOUT" in os.environ
        added = ["fallback_application_name=dpublish"]
        added += [] if is_limited else [f"connect_timeout={_CONNECT_SECONDS}"]
        return self.uri + ("&" if "?" in self.uri else "?") + "&".join(added)


def advise(message: str, state: str | None = None) -> str:
    """Say what to do about a failure, by its SQLSTATE or else by libpq's words.

    >>> advise("FATAL:  sorry, too many clients already")
    'the server has no connection left; try again later'
    """
    if state and state in _ADVICE_BY_STATE:
        return _ADVICE_BY_STATE[state]
    if state and state.startswith("08"):
        return "the connection was lost; try again"
    if state:
        return "it fails; try it in psql first"
    found = (advice for words, advice in _ADVICE_BY_WORDS if re.search(words, message))
    return next(found, "try the same address with psql first")
