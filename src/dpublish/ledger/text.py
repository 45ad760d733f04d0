"""Which texts a ledger takes: one line that looks like what it is.

Receipts and tables show these texts to people.  Two names that look the same would be two
accounts for one dataset, and a character that turns the line around would show another text
than the one that was agreed to.
"""

import unicodedata
from collections.abc import Callable, Iterable
from datetime import UTC, datetime

from dpublish.errors import InvalidParameter
from dpublish.privacy.epsilon import quoted

Clock = Callable[[], datetime]

_NEVER = frozenset({"Cc", "Cs", "Zl", "Zp"})  # controls, halves of characters, line separators
_TURNS = frozenset("\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")


def is_one_line(text: object) -> bool:
    r"""Say whether `text` is a line that can be shown.

    >>> is_one_line("ages, by ward"), is_one_line("two\nlines"), is_one_line("\u202eelif")
    (True, False, False)
    """
    return (
        isinstance(text, str)
        and bool(text.strip())
        and not any(unicodedata.category(c) in _NEVER or c in _TURNS for c in text)
    )


def require_text(**settings: str) -> None:
    """Refuse settings that are not one line of text."""
    for name, value in settings.items():
        if not is_one_line(value):
            raise InvalidParameter(f"{name} must be one line of text, not {quoted(value)}")


def require_new_name(name: str, known: Iterable[str]) -> None:
    """Refuse a dataset's name that could be taken for another, or for itself written otherwise."""
    if name != unicodedata.normalize("NFC", name).strip():
        raise InvalidParameter(
            f"dataset ({quoted(name)}) must not begin or end with a space, and its "
            "accented letters must be single characters (Unicode NFC)"
        )
    for other in known:
        if other == name:
            raise InvalidParameter(
                f"the ledger has {name!r} already; `dpublish ledger cap` changes what it may spend"
            )
        if _look(other) == _look(name):
            raise InvalidParameter(f"{name!a} looks like {other!a}, which the ledger has already")


def stamp(clock: Clock | None) -> str:
    """Write down what the clock says, in UTC; without one, the time."""
    now = datetime.now(UTC) if clock is None else clock()
    if not isinstance(now, datetime):
        raise InvalidParameter("the clock must tell a datetime")
    try:
        return now.astimezone(UTC).isoformat(timespec="seconds")
    except (OverflowError, ValueError):
        raise InvalidParameter("the clock tells a time that cannot be written in UTC") from None


def _look(name: str) -> str:
    shown = unicodedata.normalize("NFKC", name).casefold()
    shown = "".join(c for c in shown if unicodedata.category(c) != "Cf")
    return unicodedata.normalize("NFKC", shown)
