"""Methods of other packages, found by the entry-point group `dpublish.methods`.

A package offers a method by one line of its own pyproject.toml:

    [project.entry-points."dpublish.methods"]
    noisy-mean = "noisy_mean:NoisyMean"

Its class is imported when the method is named, never before.
"""

from functools import cache
from importlib.metadata import EntryPoint, entry_points
from typing import Any

from dpublish.errors import InvalidParameter

GROUP = "dpublish.methods"


@cache
def plugins() -> dict[str, EntryPoint]:
    """List the methods of other packages by name, without importing them."""
    return {point.name: point for point in entry_points(group=GROUP)}


def plugin_class(name: str) -> type[Any]:
    """Import a method of another package; refuse what is no method of that name."""
    from dpublish.core.method import Method

    found = plugins()[name].load()
    if not (isinstance(found, type) and issubclass(found, Method)):
        raise InvalidParameter(
            f"{plugins()[name].value} is offered as the method {name!r}, but is no subclass of "
            "dpublish.Method; its package has to mend that"
        )
    if found.name != name:
        raise InvalidParameter(
            f"{plugins()[name].value} is offered as the method {name!r}, but calls itself "
            f"{found.name!r}; its package has to mend that"
        )
    return found


def plugin_release(kind: str) -> type[Any] | None:
    """Find the released value of a kind among the methods of other packages."""
    for name in plugins():
        released = getattr(plugin_class(name), "released", None)
        if released is not None and released.kind == kind:
            kind_found: type[Any] = released
            return kind_found
    return None
