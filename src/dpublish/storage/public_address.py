"""Addresses on other machines (`scheme://...`), which must hold no secret.

An address is written on command lines, where every user of the machine sees it, and messages
name it.  So one that holds a password, a key or a token is refused before it is used, and
without being quoted.
"""

import re
from urllib.parse import parse_qsl

from dpublish.errors import InvalidParameter

_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+://")
# `user:password@` before the first slash; what follows a colon may also be a port.
_USER_AND_PASSWORD = re.compile(rf"(?:{_SCHEME.pattern})?(?!//)[^/?#@]*:(?!//|\d+/)[^?#]*@")
_SECRET = re.compile(
    r"passw|pwd|secret|token|credential|signature|\bsig\b|access.?key|api.?key", re.I
)
_SETTING = re.compile(r"(?:^|[?&;\s])([^?&;=\s]+)\s*=")


def has_scheme(text: str) -> bool:
    """Check whether a text is an address rather than a path."""
    return _SCHEME.match(text) is not None


def holds_secret(address: str) -> bool:
    """Check whether an address looks as if it held a password, a key or a token.

    >>> [holds_secret(x) for x in ("s3://key:secret@bucket/a.csv", "abfss://box@host/a.csv")]
    [True, False]
    """
    query = address.partition("?")[2]
    names = [name for name, _ in parse_qsl(query, keep_blank_values=True)]
    names += _SETTING.findall(address)
    return bool(_USER_AND_PASSWORD.match(address)) or any(map(_SECRET.search, names))


def refuse_secret(address: str, advice: str) -> None:
    """Refuse an address that holds a secret; the message does not quote it."""
    if holds_secret(address):
        raise InvalidParameter(
            "an address must not hold a password or a key, for other users of the machine see it "
            f"in the list of processes; {advice}"
        )
