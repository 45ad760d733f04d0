"""Links from pages to files of the project that the site does not hold."""

import posixpath
import re

_LINK = re.compile(r"(?<!!)\[([^\]]*)\]\(([^)\s]+)\)")
FOLLOWED = {
    "CONTRIBUTING.md": "project/contributing.md",
    "CHANGELOG.md": "project/changelog.md",
    "SECURITY.md": "project/security.md",
    "CODE_OF_CONDUCT.md": "project/code-of-conduct.md",
    "README.md": "index.md",
}
"""Files at the top of the project, and the pages that show them."""


def within_site(markdown: str, page: str) -> str:
    """Lead links to what the site shows; of a file that it does not show, print the path.

    >>> within_site("[how](../../CONTRIBUTING.md#commits)", "how-to/python.md")
    '[how](../project/contributing.md#commits)'
    >>> within_site("[an example](../../examples/noisy_mean.py)", "how-to/python.md")
    'an example (`examples/noisy_mean.py`)'
    >>> within_site("[cost](streams.md)", "how-to/python.md")
    '[cost](streams.md)'
    """

    def follow(found: re.Match[str]) -> str:
        text, address = found.groups()
        target, hash_, part = address.partition("#")
        if "://" in address or not target or address.startswith("mailto:"):
            return found[0]
        path = posixpath.normpath(posixpath.join("docs", posixpath.dirname(page), target))
        if path.startswith("docs/"):
            return found[0]
        shown = _shown(path)
        if shown is None:
            return f"{text} (`{path}`)" if text.strip("`") != path else f"`{path}`"
        relative = posixpath.relpath(shown, posixpath.dirname(page) or ".")
        return f"[{text}]({relative}{hash_}{part})"

    return _LINK.sub(follow, markdown)


def from_the_top(markdown: str, page: str) -> str:
    """Make links of a file at the top of the project those of a page of the site.

    >>> from_the_top("[limits](docs/project/known-limits.md)", "project/security.md")
    '[limits](known-limits.md)'
    """

    def move(found: re.Match[str]) -> str:
        text, address = found.groups()
        target, hash_, part = address.partition("#")
        if "://" in address or not target or address.startswith("mailto:"):
            return found[0]
        path = posixpath.normpath(target)
        shown = path.removeprefix("docs/") if path.startswith("docs/") else _shown(path)
        if shown is None:
            return f"{text} (`{path}`)"
        relative = posixpath.relpath(shown, posixpath.dirname(page) or ".")
        return f"[{text}]({relative}{hash_}{part})"

    return _LINK.sub(move, markdown)


def _shown(path: str) -> str | None:
    """Return the page that shows a file of the project, if one does."""
    if path.startswith("examples/notebooks/") and path.endswith(".ipynb"):
        return f"tutorials/{posixpath.basename(path).removesuffix('.ipynb')}.md"
    return FOLLOWED.get(path)
