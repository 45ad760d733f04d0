"""Fill in navigation: an entry that ends in `*` stands for all pages of a folder not named yet."""

from collections.abc import Iterator, Sequence
from typing import Any

Entry = str | dict[str, Any]


def filled(nav: Sequence[Entry], pages: Sequence[str]) -> list[Entry]:
    """Put pages for entries that end in `*`, in the order of their names.

    >>> filled(["a/one.md", {"More": ["a/*"]}], ["a/one.md", "a/two.md", "b/three.md"])
    ['a/one.md', {'More': ['a/two.md']}]
    """
    named = set(_named(nav))
    return [each for entry in nav for each in _fill(entry, named, pages)]


def _named(nav: Sequence[Entry]) -> Iterator[str]:
    for entry in nav:
        for value in entry.values() if isinstance(entry, dict) else [entry]:
            if isinstance(value, str):
                yield value
            else:
                yield from _named(value)


def _fill(entry: Entry, named: set[str], pages: Sequence[str]) -> Iterator[Entry]:
    if isinstance(entry, dict):
        for title, value in entry.items():
            if isinstance(value, str):
                yield {title: value}
            elif inner := [each for part in value for each in _fill(part, named, pages)]:
                yield {title: inner}
    elif entry.endswith("/*"):
        folder = entry.removesuffix("*")
        yield from sorted(
            page
            for page in pages
            if page.startswith(folder)
            and page.endswith(".md")
            and "/" not in page.removeprefix(folder)
            and page not in named
        )
    else:
        yield entry
