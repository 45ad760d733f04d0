"""Pages of the site that are files at the top of the project."""

from collections.abc import Iterator
from pathlib import Path

import links

ROOT = Path(__file__).resolve().parents[2]


def project_pages() -> Iterator[tuple[str, str]]:
    """Yield path and text of each."""
    for name, page in links.FOLLOWED.items():
        file = ROOT / name
        if page != "index.md" and file.is_file():
            yield page, links.from_the_top(file.read_text("utf-8"), page)
