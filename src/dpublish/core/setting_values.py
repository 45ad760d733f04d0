"""Read values of settings as people give them: lists, names separated by commas, decimals."""

import re
from collections.abc import Iterable, Mapping, Set
from dataclasses import fields
from decimal import Decimal
from fractions import Fraction
from functools import cache
from numbers import Real
from os import PathLike, fspath
from types import NoneType, UnionType
from typing import Any, Union, get_args, get_origin, get_type_hints

from dpublish.errors import InvalidType
from dpublish.privacy.epsilon import parse_epsilon, quoted

_ONE_COLUMN = 'the name of one column, such as "age"'
_TEXTS = {"target": _ONE_COLUMN, "column": _ONE_COLUMN, "preference": _ONE_COLUMN}
_ZERO = re.compile(r"\s*0{1,30}(\.0{1,30})?\s*")


def read_list(value: Any, name: str, of: Any = str) -> tuple[Any, ...]:
    """Read a list of names (or numbers): any sequence, or text in which commas separate them.

    >>> read_list(["age", "sex"], "columns"), read_list("age, sex", "columns")
    (('age', 'sex'), ('age', 'sex'))
    >>> read_list(3, "columns")
    Traceback (most recent call last):
    dpublish.errors.InvalidType: columns must be names, such as ["age", "sex"] or "age,sex", not 3
    """
    if isinstance(value, str):
        return tuple(part.strip() for part in value.split(","))
    is_list = isinstance(value, Iterable) and not isinstance(value, bytes | Mapping | Set)
    if is_list and not _is_data(value):  # values of a table are not the names of its columns
        parts = tuple(value)
        if of is not str or all(isinstance(part, str) for part in parts):
            return tuple(part.strip() if isinstance(part, str) else part for part in parts)
    raise InvalidType(f"{name} must be {_what_to_pass(of)}, not {_shown(value)}")


def _is_data(value: Any) -> bool:
    """Say whether something is a table or a column of one, of pandas, Polars or Arrow."""
    return hasattr(value, "dtypes") or hasattr(value, "__arrow_c_stream__")


def settle_settings(method: Any) -> None:
    """Turn the settings of a frozen dataclass into the types that it declares.

    Lists become tuples, text with commas becomes several names, and decimals become fractions;
    other values are left to the method's own checks.
    """
    kind: type = type(method)
    for name, wanted in _declared(kind).items():
        value = getattr(method, name)
        found = _settled(value, name, wanted)
        if found is not value:
            object.__setattr__(method, name, found)


def is_zero(value: Any) -> bool:
    """Say whether a number is 0, which some settings may be: each method says which.

    >>> [is_zero(value) for value in (0, "0", "0.00", 0.0, "0.01", False)]
    [True, True, True, True, False, False]
    """
    if isinstance(value, str):
        return _ZERO.fullmatch(value) is not None
    return not isinstance(value, bool) and isinstance(value, Real) and value == 0


def read_fraction(value: Any, name: str) -> Fraction:
    """Read a number that may be 0, exactly; a float by its shortest decimal."""
    return Fraction(0) if is_zero(value) else parse_epsilon(value, name)


def _settled(value: Any, name: str, wanted: Any) -> Any:
    if get_origin(wanted) is tuple:
        return value if _is_settled(value, wanted) else read_list(value, name, get_args(wanted)[0])
    if isinstance(value, PathLike) and _is_text(wanted):
        return fspath(value)
    _refuse_other_types(value, name, wanted)
    if wanted is Fraction:
        is_given = isinstance(value, str | int | float) and not isinstance(value, bool)
        return read_fraction(value, name) if is_given else value
    if get_origin(wanted) in (UnionType, Union) and isinstance(value, list):
        return tuple(value)
    return value


def _refuse_other_types(value: Any, name: str, wanted: Any) -> None:
    """Refuse what is no text where text is wanted, no number where one is, and tables anywhere."""
    if _is_text(wanted) and not isinstance(value, str if wanted is str else str | None):
        raise InvalidType(f"{name} must be {_TEXTS.get(name, 'text')}, not {_shown(value)}")
    if wanted is Fraction and not isinstance(value, str | Real | Decimal):
        raise InvalidType(f"{name} must be a number such as 0.5, not {_shown(value)}")
    if _is_data(value):
        raise InvalidType(f"{name} must be a setting of the method, not {_shown(value)}")


def _is_text(wanted: Any) -> bool:
    """Return whether a setting is text, or text or None."""
    if get_origin(wanted) in (UnionType, Union):
        return set(get_args(wanted)) == {str, NoneType}
    return wanted is str


def _is_settled(value: Any, wanted: Any) -> bool:
    if not isinstance(value, tuple):
        return False
    return get_args(wanted)[0] is not str or all(isinstance(part, str) for part in value)


@cache
def _declared(kind: type) -> dict[str, Any]:
    """List the types of a dataclass's fields; of one whose types are not found, none."""
    try:
        hints = get_type_hints(kind)
    except NameError:
        return {}
    return {each.name: hints[each.name] for each in fields(kind)}


def _what_to_pass(of: Any) -> str:
    if of is str:
        return 'names, such as ["age", "sex"] or "age,sex"'
    return 'numbers, such as [1, 2] or "1,2"'


def _shown(value: Any) -> str:
    if value is None or isinstance(value, bool | Real | list | tuple):
        return quoted(value)
    return f"an object of type {type(value).__name__}"
