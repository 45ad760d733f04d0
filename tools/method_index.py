"""Write src/dpublish/core/catalog.py, the index of methods and released values, from the classes.

    python tools/method_index.py

The index lets the command line list methods without importing any.  A new method adds one
line to `ORDER`; whatever else the index states comes from its class.
"""

import importlib
import pkgutil
import textwrap
from pathlib import Path
from typing import Any

from dpublish import methods
from dpublish.core.method import Method
from dpublish.core.released import Release
from dpublish.methods.streams.method import StreamMethod

FILE = Path(__file__).resolve().parent.parent / "src/dpublish/core/catalog.py"

# fmt: off
ORDER = [
    "synth", "histogram", "statistics", "marginals", "privpfc", "diffgen", "pph", "privbayes",
    "dpcopula", "dpcopula-hybrid", "psd", "ug", "ag", "privelet", "p-hp", "filter-priority",
    "diffpid3", "majority", "model", "privgene", "privlocal", "private-erm", "output-perturbation",
    "private-svm", "functional", "gupt",
    "kmeans", "dplloyd", "dplloyd-impr", "eugkm", "ugkm", "mkm", "hybrid", "gkm", "pgkm",
    "privthr", "privthr-em", "privqt", "wave-baseline", "topk",
    "bounds",
    "partitioning", "weighting", "t-round", "minimum", "threshold", "sampling", "personalized-em",
    "dsat", "dsat-w", "per-snapshot", "fixed-sampling", "dsft", "bd", "ba",
]
# fmt: on
"""The order in which methods are listed: of each task the recommended one first."""

HEAD = '''"""The index of methods and released values; written by tools/method_index.py.

An entry names where a class lives without importing it, so that `--help` is quick.  What it
states comes from the class.
"""

from collections.abc import Mapping
from typing import NamedTuple


class Entry(NamedTuple):
    """Where a method lives, what it publishes, when to prefer it, and how it stands in its task."""

    location: str
    task: str
    publishes: str
    prefer_when: str
    standing: str = "alternative"

'''


def own_classes(base: type[Any], attribute: str) -> dict[str, type[Any]]:
    """Find the classes below `base` that state a name of their own in `attribute`."""
    for found in pkgutil.walk_packages(methods.__path__, f"{methods.__name__}."):
        importlib.import_module(found.name)
    classes: dict[str, type[Any]] = {}
    todo = list(base.__subclasses__())
    while todo:
        kind = todo.pop()
        todo += kind.__subclasses__()
        if attribute in vars(kind) and kind.__module__.startswith(f"{methods.__name__}."):
            classes[vars(kind)[attribute]] = kind
    return classes


def location(kind: type[Any]) -> str:
    """Write where a class is."""
    return f"{kind.__module__}:{kind.__qualname__}"


def literal(text: str, indent: int, before: int) -> str:
    """Write a text as a literal that fits into lines of 100 characters."""
    if before + len(text) + 3 <= 100:
        return f'"{text}"'
    fits = indent + 4 + len(text) + 2 <= 100
    parts = [text] if fits else textwrap.wrap(text, 97 - indent - 4, drop_whitespace=False)
    gap = "\n" + " " * (indent + 4)
    return "(" + gap + gap.join(f'"{part}"' for part in parts) + "\n" + " " * indent + ")"


def entry(name: str, kind: type[Any]) -> str:
    """Write the entry of one method."""
    lines = [f'    "{name}": Entry(']
    for field, value in (
        ("location", location(kind)),
        ("task", kind.task),
        ("publishes", kind.publishes),
        ("prefer_when", kind.prefer_when),
        ("standing", kind.standing),
    ):
        lines.append(f"        {field}={literal(value, 8, 9 + len(field))},")
    return "\n".join([*lines, "    ),"])


def listed(title: str, classes: dict[str, type[Any]]) -> str:
    """Write the entries of all methods of one sort."""
    rank = {name: number for number, name in enumerate(ORDER)}
    if missing := sorted(set(classes) - set(rank)):
        raise SystemExit(f"add {', '.join(missing)} to ORDER in tools/method_index.py")
    body = "\n".join(entry(name, classes[name]) for name in sorted(classes, key=rank.__getitem__))
    return f"\n{title}: Mapping[str, Entry] = {{\n{body}\n}}\n"


def index() -> str:
    """Write the whole index."""
    kinds = own_classes(Release, "kind")
    body = "\n".join(f'    "{name}": "{location(kinds[name])}",' for name in sorted(kinds))
    return (
        HEAD
        + listed("CATALOG", own_classes(Method, "name"))
        + listed("STREAMS", own_classes(StreamMethod, "name"))
        + f"\nKINDS: Mapping[str, str] = {{\n{body}\n}}\n"
        + '"""Where the released values are, by the kind that their folder names."""\n'
    )


if __name__ == "__main__":
    FILE.write_text(index(), encoding="utf-8")
