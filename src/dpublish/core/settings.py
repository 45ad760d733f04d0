"""Find a method by name, list its settings, and build it from values or text."""

import shlex
from collections.abc import Mapping
from dataclasses import MISSING, Field, dataclass, fields
from fractions import Fraction
from importlib import import_module
from types import UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from dpublish.core.catalog import CATALOG
from dpublish.core.method import Method, settings_of
from dpublish.core.plugins import plugin_class, plugins
from dpublish.core.setting_values import read_fraction, read_list
from dpublish.errors import InvalidParameter, plain_refusals, require_known
from dpublish.privacy.epsilon import format_rounded


@dataclass(frozen=True)
class Setting:
    """A method's setting as users see it."""

    name: str
    help: str
    type_name: str
    default: Any
    is_required: bool


ALIASES: Mapping[str, str] = {
    "margins": "marginals",
    "personalised-em": "personalized-em",
    "topc": "topk",
}
"""Former names of methods, which are still understood."""
SETTING_ALIASES: Mapping[str, str] = {
    "clusters": "n_clusters",
    "rounds": "max_iter",
    "starts": "n_init",
}
"""Former names of settings, which are still understood where a method has no such setting."""


def canonical_name(name: str) -> str:
    """Return the name of a method that `name` stands for.

    >>> canonical_name("topc"), canonical_name("histogram")
    ('topk', 'histogram')
    """
    return ALIASES.get(name, name)


def method_class(name: str) -> type[Method[Any]]:
    """Import the method called `name`."""
    name = canonical_name(name)
    if name not in CATALOG and name in plugins():
        return plugin_class(name)
    require_known("method", name, [*CATALOG, *plugins()])
    module, _, attribute = CATALOG[name].location.partition(":")
    found: type[Method[Any]] = getattr(import_module(module), attribute)
    return found


def method_settings(name: str) -> list[Setting]:
    """List the settings of the method called `name`."""
    return list_settings(method_class(name))


def list_settings(kind: type) -> list[Setting]:
    """List the settings of a dataclass whose fields were declared by `setting`."""
    hints = get_type_hints(kind)
    return [
        Setting(
            name=item.name,
            help=item.metadata["help"],
            type_name=_type_name(hints[item.name]),
            default=None if item.default is MISSING else item.default,
            is_required=item.default is MISSING,
        )
        for item in _fields(kind)
    ]


@plain_refusals
def make_method(name: str, settings: Mapping[str, Any]) -> Method[Any]:
    """Build a method from settings, given as values or as text from a command line or file."""
    method: Method[Any] = build(method_class(name), name, settings)
    if isinstance(method, Method):  # one of another package may be none
        method.check_contribution()
    return method


def written_settings(method: Method[Any]) -> dict[str, str]:
    """Write the settings that are not the default ones, as a command line takes them.

    >>> written_settings(make_method("kmeans", {"n_clusters": 4, "columns": "age,hours"}))
    {'n_clusters': '4', 'columns': 'age,hours'}
    """
    plain = settings_of(method)
    return {
        one.name: _written(plain[one.name])
        for one in _fields(type(method))
        if one.name in plain and getattr(method, one.name) != one.default
    }


def _written(value: Any) -> str:
    if isinstance(value, Mapping):  # a method within a method
        rest = {name: one for name, one in value.items() if name != "method" and one}
        return " ".join([value["method"], *(f"{n}={_written(one)}" for n, one in rest.items())])
    if isinstance(value, list):
        return ",".join(map(_written, value))
    return str(value).lower() if isinstance(value, bool) else str(value)


def default_words(value: Any) -> str:
    """Write a default for people: decimals, thousands separators.

    >>> [default_words(value) for value in (Fraction(1, 2), None, (), True, ("age", "sex"), 20_000)]
    ['0.5', 'not set', 'not set', 'true', 'age,sex', '20,000']
    """
    if value is None or value == ():
        return "not set"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, Fraction):
        return format_rounded(value)
    return ",".join(map(default_words, value)) if isinstance(value, tuple) else str(value)


def build(kind: type, name: str, settings: Mapping[str, Any]) -> Any:
    """Build one of `kind` from settings that are converted to the types of its fields."""
    known = {item.name: item for item in _fields(kind)}
    hints = get_type_hints(kind)
    settings = _by_present_names(name, settings, known)
    for given in settings:
        require_known(f"{name} setting", given, known)
    absent = [n for n, item in known.items() if item.default is MISSING and n not in settings]
    if absent:
        options = ", ".join(f"{each} (--{each.replace('_', '-')})" for each in absent)
        raise InvalidParameter(f"{name} needs {options}; see: dpublish methods {name}")
    return kind(**{n: _convert(v, hints[n], n) for n, v in settings.items()})


def _by_present_names(
    name: str, settings: Mapping[str, Any], known: Mapping[str, Any]
) -> dict[str, Any]:
    """Replace former names of settings by the present ones; refuse a setting given by both."""
    found: dict[str, Any] = {}
    for given, value in settings.items():
        present = SETTING_ALIASES.get(given, given)
        chosen = given if given in known or present not in known else present
        if chosen in found:
            raise InvalidParameter(f"the {name} setting {chosen!r} is given twice")
        found[chosen] = value
    return found


def _fields(kind: type) -> tuple[Field[Any], ...]:
    """List a method's own settings first, then those that every method has."""
    shared = {item.name for item in fields(Method)} if issubclass(kind, Method) else set()
    return tuple(sorted(fields(kind), key=lambda item: item.name in shared))


def _convert(value: Any, wanted: Any, name: str) -> Any:
    """Turn text (or a plain JSON value) into the wanted type; leave other values to the method."""
    if _is_method(wanted):
        return _inner_method(value, name)
    if get_origin(wanted) in (UnionType, Union):
        return _convert_union(value, get_args(wanted), name)
    if get_origin(wanted) is tuple:
        of = get_args(wanted)[0]
        return tuple(_convert(part, of, name) for part in read_list(value, name, of))
    if get_origin(wanted) is Literal:
        require_known(f"value for {name}:", str(value), [str(v) for v in get_args(wanted)])
        return value
    if wanted is Fraction:
        return read_fraction(value, name)
    if wanted is str or not isinstance(value, str):
        return value
    return _from_text(value, wanted, name)


def _is_method(wanted: Any) -> bool:
    return wanted is Method or get_origin(wanted) is Method


def _inner_method(value: Any, name: str) -> Any:
    """Read a method within a method: "histogram columns=age,sex", or what a receipt keeps of it."""
    if isinstance(value, Mapping):
        settings = dict(value)
        return make_method(str(settings.pop("method", "")), settings)
    if not isinstance(value, str):
        return value
    try:
        words = shlex.split(value)
    except ValueError:
        words = []
    if not words or not all("=" in word for word in words[1:]):
        raise InvalidParameter(
            f'{name} ({value!r}) must name a method and its settings: "histogram columns=age,sex"'
        )
    return make_method(words[0], dict(word.split("=", 1) for word in words[1:]))


def _convert_union(value: Any, choices: tuple[Any, ...], name: str) -> Any:
    if value is None or (isinstance(value, str) and value.lower() == "none"):
        return None
    problem: InvalidParameter | None = None
    for choice in choices:
        if choice is type(None):
            continue
        try:
            return _convert(value, choice, name)
        except InvalidParameter as error:
            problem = error
    words = [_type_name(choice) for choice in choices[:-1] if get_origin(choice) is Literal]
    if problem is not None and words:
        raise InvalidParameter(f"{problem}, or {' | '.join(words)}")
    raise problem or InvalidParameter(f"{name} ({value!r}) cannot be read")


def _from_text(text: str, wanted: Any, name: str) -> Any:
    if wanted is bool:
        words = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}
        if text.lower() not in words:
            raise InvalidParameter(f"{name} ({text!r}) must be true or false")
        return words[text.lower()]
    try:
        return wanted(text)
    except (TypeError, ValueError):
        raise InvalidParameter(f"{name} ({text!r}) must be {_type_name(wanted)}") from None


def _type_name(wanted: Any) -> str:
    if get_origin(wanted) in (UnionType, Union):
        return " or ".join(_type_name(w) for w in get_args(wanted) if w is not type(None))
    if get_origin(wanted) is tuple:
        kind = "names" if get_args(wanted)[0] is str else "numbers"
        return f"{kind}, separated by commas"
    if get_origin(wanted) is Literal:
        return " | ".join(str(choice) for choice in get_args(wanted))
    if _is_method(wanted):
        return 'a method and its settings: "histogram columns=age,sex"'
    words = {int: "an integer", str: "text", bool: "true | false", Fraction: "an exact number"}
    return words.get(wanted, str(getattr(wanted, "__name__", wanted)))
