"""Which pages argue that a release is private: told from its receipt alone.

A method names in `proofs` its own page and those of the mechanisms that it draws from.  What a
release does besides (a bound on records of a person, steps before the method, a stream's operator,
each person's own number) has pages of its own.
"""

from collections.abc import Iterator, Mapping
from importlib import import_module
from importlib.metadata import PackageNotFoundError, metadata
from typing import Any

from dpublish.core.catalog import CATALOG, STREAMS
from dpublish.core.coverage import contribution_of
from dpublish.core.plugins import plugins
from dpublish.core.settings import method_class
from dpublish.privacy.neighbors import hides_units
from dpublish.privacy.receipt import Receipt

FOLDER = "docs/proofs"
"""Where the pages lie in the source of every version."""
_PARTS = {"identity": (), "grouped": ("grouped_histogram",)}
_OF_MARGINALS = ("hierarchical", "efpa", "noise-first")


def proofs_of(receipt: Receipt) -> tuple[str, ...]:
    """Name the pages that argue for a release, the method's own first.

    >>> from dpublish import Budget, Histogram, datasets, seeded
    >>> people, method = datasets.table("census", 100), Histogram(columns=("sex",))
    >>> proofs_of(method.release(people, budget=Budget.seeded(1), rng=seeded(1)).receipt)
    ('exact',)
    """
    return tuple(dict.fromkeys([*_of_method(receipt.method, receipt.settings), *_beside(receipt)]))


def proof_link(name: str, base: str = "") -> str:
    """Write the address of a page: below `base`, or where the project publishes its source.

    >>> proof_link("exact", "https://example.org/proofs/")
    'https://example.org/proofs/exact.md'
    """
    return f"{(base or _published_at()).rstrip('/')}/{name}.md"


def _of_method(name: str, settings: Mapping[str, Any]) -> Iterator[str]:
    """Name the pages of a method, and of the methods within it."""
    yield from _class_proofs(name)
    for inner in settings.values():
        if isinstance(inner, Mapping) and isinstance(inner.get("method"), str):
            yield from _of_method(inner["method"], inner)
    if name in STREAMS:
        yield from _of_static(str(settings.get("static", "identity")))
        yield "stream_operator"


def _of_static(name: str) -> tuple[str, ...]:
    """Name the pages of the histogram that a stream publishes at a step."""
    if name in _PARTS:
        return _PARTS[name]
    return _class_proofs("marginals" if name in _OF_MARGINALS else name)


def _class_proofs(name: str) -> tuple[str, ...]:
    if name in STREAMS:
        module, _, attribute = STREAMS[name].location.partition(":")
        return tuple(getattr(import_module(module), attribute).proofs)
    if name in CATALOG or name in plugins():
        return tuple(method_class(name).proofs)
    return ()  # a method of a package that is not installed here


def _beside(receipt: Receipt) -> Iterator[str]:
    if contribution_of(receipt) is not None:
        yield "contribution_bound"
    if receipt.personal:
        yield "personal_ledger"
        if hides_units(receipt.neighbors):
            yield "personal_units"
    if receipt.steps:
        yield "record_steps"


def _published_at() -> str:
    """Return where the pages are published, as the package itself says; else their folder."""
    try:
        stated = metadata("dpublish").get_all("Project-URL") or []
    except PackageNotFoundError:
        return FOLDER
    for line in stated:
        label, _, address = line.partition(", ")
        if label.lower() == "documentation":
            return f"{address.rstrip('/')}/proofs"
    return FOLDER
