"""Pages of the Python interface: what is public, sorted by what a reader wants, from docstrings."""

from collections.abc import Iterator, Mapping, Sequence
from importlib import import_module
from types import ModuleType
from typing import NamedTuple

import dpublish
from dpublish.core.catalog import CATALOG, STREAMS


class Part(NamedTuple):
    """A page of the interface: its title, a sentence, and what it describes."""

    title: str
    about: str
    names: Sequence[str]
    """Names of `dpublish`, or whole modules such as `dpublish.errors`."""


PARTS: Mapping[str, Part] = {
    "publish": Part(
        "Publish",
        "One call from a table to a release folder; the ledger pays before any row is read.",
        (
            *("release", "histogram", "statistics", "synthesize", "classifier", "kmeans", "topk"),
            *("publish", "measure_bounds", "InteractiveRun", "StreamOperator"),
        ),
    ),
    "decide": Part(
        "Decide",
        "Choose a method and an ε; nothing here reads private rows.",
        ("advise", "explain", "plan", "plan_releases", "rehearse", "list_methods", "ExpectedError"),
    ),
    "describe": Part(
        "Describe a table",
        "Schemas, columns, and what is publicly known.",
        (
            *("column", "Schema", "load_schema", "read_codes", "Publication", "Combination"),
            *("KnownTotal", "Formula", "ValueMap", "Lookup", "open_table", "open_spark"),
        ),
    ),
    "pay": Part(
        "Pay and draw",
        "The ledger, budgets, and where randomness comes from.",
        ("Ledger", "Budget", "secure", "seeded"),
    ),
    "use": Part(
        "Use a release",
        "What an analyst does; all of it is post-processing, and costs no privacy.",
        ("load", "Release", "Answer", "export", "evaluate"),
    ),
    "audit": Part(
        "Audit",
        "Rerun the proof tests of a method, on simulated tables.",
        ("audit", "dpublish.auditing.result"),
    ),
    "extend": Part(
        "Write a method",
        "What a method of your own builds on.",
        ("Method", "Run", "setting", "make_method", "make_stream_method", "dpublish.testing"),
    ),
    "datasets": Part("Datasets", "Simulated tables.", ("dpublish.datasets",)),
    "sklearn": Part(
        "scikit-learn",
        "Estimators with `fit` and `predict`; each fit is one paid release.",
        ("dpublish.sklearn",),
    ),
    "errors": Part("Errors", "What can be raised, and when.", ("dpublish.errors",)),
}


_IN_MODULES = {"DPublishError"}
"""Public names that stand on the page of their module."""


def api_pages() -> Iterator[tuple[str, str]]:
    """Yield path and text of every page of the interface, and of their index."""
    parts = {**PARTS, **_method_parts()}
    described = {name for part in parts.values() for name in part.names} | _IN_MODULES
    if left := [name for name in dpublish.__all__ if name not in described]:
        parts["more"] = Part("More", "Other public names.", left)
    yield "reference/api/index.md", _index(parts)
    for key, part in parts.items():
        yield f"reference/api/{key}.md", _page(part)


def _method_parts() -> dict[str, Part]:
    """Sort the method classes by the folder that holds them."""
    kinds: dict[str, list[str]] = {key: [] for key in (*_FOLDERS.values(), "methods-streams")}
    for entry in CATALOG.values():
        module, _, name = entry.location.partition(":")
        kinds[_FOLDERS.get(module.split(".")[2], "methods-tables")].append(name)
    kinds["methods-streams"] = [entry.location.partition(":")[2] for entry in STREAMS.values()]
    kinds["methods-clusters"].append("PlainWaveCluster")
    return {key: Part(*_TITLES[key], names) for key, names in kinds.items()}


_FOLDERS = {
    "synth": "methods-tables",
    "trees": "methods-models",
    "privpfc": "methods-models",
    "diffgen": "methods-models",
    "pph": "methods-models",
    "linear_models": "methods-models",
    "kmeans": "methods-clusters",
    "wavecluster": "methods-clusters",
    "personalized": "methods-personalized",
}
"""The page that describes the methods of a folder; `methods-tables` if it is not here."""

_TITLES = {
    "methods-tables": ("Methods: rows and counts", "Synthetic tables, counts, statistics, ranks."),
    "methods-models": ("Methods: classifiers and models", "What predicts a class or a number."),
    "methods-clusters": ("Methods: clusters", "Centers, and clusters of any shape."),
    "methods-personalized": ("Methods: each person's own ε", "No one loses more than they accept."),
    "methods-streams": ("Methods: streams", "A table that changes."),
}


def _index(parts: Mapping[str, Part]) -> str:
    lines = [
        "# Python",
        "",
        "`import dpublish` offers all of this; parts are imported when used.",
        "",
    ]
    lines += ["| Page | What it holds |", "|---|---|"]
    for key, part in parts.items():
        named = ", ".join(f"`{name}`" for name in part.names)
        lines.append(f"| [{part.title}]({key}.md) | {part.about} {named} |")
    return "\n".join(lines) + "\n"


def _page(part: Part) -> str:
    lines = [f"# {part.title}", "", part.about, ""]
    for name in part.names:
        lines += [f"::: {_home(name)}", ""]
        if name.startswith("dpublish."):
            lines[-1:] = ["    options:", "      show_root_toc_entry: false"]
            if errors := _errors_of(import_module(name)):
                lines += ["      members:", *(f"        - {each}" for each in errors)]
            lines.append("")
    return "\n".join(lines)


def _errors_of(module: ModuleType) -> list[str]:
    """List the errors and warnings that a module defines; those that check are no reader's."""
    return [
        name
        for name, value in vars(module).items()
        if isinstance(value, type)
        and issubclass(value, (Exception, Warning))
        and value.__module__ == module.__name__
    ]


def _home(name: str) -> str:
    """Return where a public name is defined, for that is where its docstring stands."""
    if name.startswith("dpublish."):
        return name
    found = getattr(dpublish, name)
    module = getattr(found, "__module__", None)
    if module is None or not hasattr(import_module(module), name):
        raise LookupError(f"{name} has no module of its own")
    return f"{module}.{name}"
