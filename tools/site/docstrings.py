"""Make the project's docstrings readable for the site.

`Example:` and doctests become code, and defaults of settings are those that a caller sees.
"""

import re
from collections.abc import Iterator
from typing import Any

from griffe import ExprCall, Extension, Module, Object

_SECTION = re.compile(r"^Example:$", re.MULTILINE)
_TREE = re.compile(r"^(\w+(?:\n[├│└ ].*)+)$", re.MULTILINE)
"""A root, and what hangs below it."""


class Docstrings(Extension):
    """Rewrites docstrings while the package is read."""

    def on_object(self, *, obj: Object, **_: Any) -> None:
        """Change the docstring of an object, if it has one."""
        if obj.docstring is not None:
            obj.docstring.value = readable(obj.docstring.value)

    def on_package(self, *, pkg: Module, **_: Any) -> None:
        """Show the defaults of settings, once dataclasses have got their parameters."""
        for parameter in _parameters(pkg):
            parameter.default = _plain_default(parameter.default)


def readable(text: str) -> str:
    r"""Return a docstring in which every doctest is code.

    >>> readable("Return one.\n\n>>> one()\n1\n\nMore.")
    'Return one.\n\n```pycon\n>>> one()\n1\n```\n\nMore.'
    >>> readable("Errors.\n\nBase\n└── One\n\nMore.")
    'Errors.\n\n```text\nBase\n└── One\n```\n\nMore.'
    >>> readable("Return one.\n\nExample:\n    >>> one()\n    1")
    'Return one.\n\nExamples:\n    >>> one()\n    1'
    """
    lines, fenced = [], False
    for line in _TREE.sub(r"```text\n\1\n```", _SECTION.sub("Examples:", text)).splitlines():
        if not fenced and line.startswith(">>>"):
            lines.append("```pycon")
            fenced = True
        elif fenced and not line.strip():
            lines.append("```")
            fenced = False
        lines.append(line)
    return "\n".join([*lines, "```"] if fenced else lines)


def _plain_default(default: Any) -> Any:
    """Return what a setting is unless it is given: of `setting("...", default=3)` the 3."""
    if isinstance(default, ExprCall) and str(default.function) == "setting":
        given = [each.value for each in default.arguments if getattr(each, "name", "") == "default"]
        return given[0] if given else None
    return default


def _parameters(found: Object) -> Iterator[Any]:
    """Yield the parameters of all functions below a module or class."""
    for member in found.members.values():
        if member.is_alias:
            continue
        if member.is_function:
            yield from member.parameters
        elif member.is_module or member.is_class:
            yield from _parameters(member)
