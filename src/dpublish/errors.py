"""Every error this package raises, and the checks that raise them.

DPublishError
├── InvalidParameter        a public setting is out of range (also a ValueError)      exit code 1
│   ├── InvalidSchema       the schema file is incomplete or contradicts itself
│   ├── InvalidQuery        a query that the release cannot answer
│   └── GrantPublished      what a grant paid for is published already
├── BudgetError             budget was asked for that is not there                    exit code 2
│   ├── BudgetAlreadyUsed   a budget was split or spent twice
│   └── BudgetExhausted     the ledger has no allowance left for this dataset
└── InputError              a file cannot be read or written                          exit code 3
    ├── UnreadableData      the table is missing, or is not what its name says
    ├── LedgerUnavailable   the ledger is missing, read-only, busy or not a ledger
    │   └── LedgerUncertain what was written may stand or be lost: look before repeating it
    ├── LedgerTampered      an entry was edited, removed or reordered
    └── CorruptRelease      the release folder is incomplete or was changed

Messages quote public settings only, never a value computed from private data:
an error message is a release that no one paid for.
"""

import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from difflib import get_close_matches
from fractions import Fraction
from functools import wraps
from math import inf
from numbers import Integral, Real
from typing import ParamSpec, TypeVar

_P = ParamSpec("_P")
_R = TypeVar("_R")
_LISTED = 20  # names that a message lists


class DPublishError(Exception):
    """Base class, so that callers can catch everything by one name."""

    exit_code = 1


class InvalidParameter(DPublishError, ValueError):
    """A public setting is out of range."""


class InvalidType(InvalidParameter, TypeError):
    """A value of a type that is not understood; says what to pass instead."""


class InvalidSchema(InvalidParameter):
    """The schema is incomplete or contradicts itself."""


class InvalidQuery(InvalidParameter):
    """A query that the release cannot answer."""


class GrantPublished(InvalidParameter):
    """What a grant of the ledger paid for is published already."""


class BudgetError(DPublishError):
    """Budget was asked for that is not there."""

    exit_code = 2


class BudgetAlreadyUsed(BudgetError):
    """A budget was split or spent twice."""


class BudgetExhausted(BudgetError):
    """The ledger has no allowance left for this dataset."""


class InputError(DPublishError):
    """A file cannot be read or written."""

    exit_code = 3


class UnreadableData(InputError):
    """The table is missing, or is not what its name says."""


class LedgerUnavailable(InputError):
    """The ledger is missing, read-only, busy or not a ledger."""


class LedgerUncertain(LedgerUnavailable):
    """What was written to the ledger may stand or be lost."""


class LedgerTampered(InputError):
    """An entry of the ledger was edited, removed or reordered."""


class LedgerExposed(UserWarning):
    """Other users of the machine may write the ledger, or replace it."""


class CorruptRelease(InputError):
    """The release folder is incomplete or was changed."""


def require_positive(**settings: float | Fraction) -> None:
    """Refuse settings that are not positive and finite."""
    for name, value in settings.items():
        if isinstance(value, bool) or not isinstance(value, Real):
            raise InvalidType(f"{name} must be a positive number, not {type(value).__name__}")
        if not 0 < value < inf:
            raise InvalidParameter(f"{name} ({value}) must be positive and finite")


def require_count(*, at_least: int = 1, **settings: object) -> None:
    """Refuse settings that are not integers of at least `at_least`."""
    for name, value in settings.items():
        is_integer = isinstance(value, Integral) and not isinstance(value, bool)
        if not is_integer or int(value) < at_least:  # type: ignore[call-overload]
            refused = InvalidParameter if is_integer else InvalidType
            told = value if isinstance(value, str) else what_it_is(value)
            raise refused(f"{name} ({told}) must be an integer, at least {at_least}")


def what_it_is(value: object) -> str:
    """Name a value that was passed by mistake: a table holds private values, so only its type.

    >>> what_it_is(None), what_it_is(3), what_it_is(["a"])
    ('None', '3', 'an object of type list')
    """
    if value is None or isinstance(value, Real):
        return str(value)
    return f"an object of type {type(value).__name__}"


def _first_of(names: list[str]) -> str:
    """List names, and say how many are left out."""
    more = f" and {len(names) - _LISTED} more" if len(names) > _LISTED else ""
    return ", ".join(names[:_LISTED]) + more


def require_known(what: str, name: object, known: Iterable[str]) -> None:
    """Refuse a name that is not among the `known` ones, and offer the nearest."""
    names = sorted(known)
    if not isinstance(name, str):
        subject = what.rstrip(":")
        raise InvalidType(
            f"{subject} must be text, not {what_it_is(name)}; known: {_first_of(names)}"
        )
    if name in names:
        return
    near = get_close_matches(name, names, n=1)
    hint = f"did you mean {near[0]!r}?" if near else f"known: {_first_of(names)}"
    raise InvalidParameter(f"there is no {what} {name!r}; {hint}")


def plain_refusals(call: Callable[_P, _R]) -> Callable[_P, _R]:
    """Let a mistake of the caller show without the lines of this package in which it was found.

    What is refused is refused with all that is known of it in the message, so the lines below
    the call tell a user nothing.  Any other error is a fault of this package, and shows whole;
    so does everything where Python runs in development mode (`python -X dev`).
    """

    @wraps(call)
    def checked(*args: _P.args, **options: _P.kwargs) -> _R:
        try:
            return call(*args, **options)
        except DPublishError as refusal:
            if sys.flags.dev_mode:
                raise
            raise refusal.with_traceback(None) from None

    return checked


@contextmanager
def about(subject: str) -> Iterator[None]:
    """Name in a refusal what it is about."""
    try:
        yield
    except InvalidParameter as refusal:
        raise InvalidSchema(f"{subject} {refusal}") from None
    except OverflowError:
        raise InvalidSchema(f"{subject} holds a number that is too large") from None
