"""The list of methods, and how one is found and built by its name."""

from typing import NamedTuple

from dpublish.core.catalog import CATALOG, STREAMS, Entry
from dpublish.core.plugins import plugin_class, plugins
from dpublish.core.settings import Setting, make_method, method_class, method_settings

__all__ = [
    "CATALOG",
    "Entry",
    "MethodInfo",
    "Setting",
    "list_methods",
    "make_method",
    "method_class",
    "method_settings",
]


class MethodInfo(NamedTuple):
    """A method as a list shows it."""

    name: str
    task: str
    publishes: str
    prefer_when: str
    standing: str
    """Whether it is the default of its task, an alternative, or a baseline of the literature."""


def list_methods(task: str | None = None) -> list[MethodInfo]:
    """List the methods that can be used, those of other packages and for streams included.

    >>> [method.name for method in list_methods("ranking")]
    ['topk']
    """
    own = {**CATALOG, **STREAMS}
    found = [
        MethodInfo(name, entry.task, entry.publishes, entry.prefer_when, entry.standing)
        for name, entry in own.items()
    ]
    for name in sorted(plugins()):
        if name not in own:
            kind = plugin_class(name)
            standing = getattr(kind, "standing", "alternative")
            found.append(MethodInfo(name, kind.task, kind.publishes, kind.prefer_when, standing))
    return [each for each in found if task in (None, each.task)]
