"""Links and pictures of the documentation lead to files that are there."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
GENERATED = {ROOT / "docs/reference" / each / "index.md" for each in ("commands", "api")}
"""Pages that building the site writes; it checks the links to them."""
LINK = re.compile(r"\]\(([^)\s]+)\)")


def missing(page, text):
    """List the links of a page to files that are not there."""
    targets = [link.partition("#")[0] for link in LINK.findall(text)]
    files = [each for each in targets if each and "://" not in each and not each.startswith("<")]
    there = (page.parent / each for each in files)
    return [
        each
        for each, file in zip(files, there, strict=True)
        if not file.exists() and file.resolve() not in GENERATED
    ]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_what_a_page_links_to_is_there(page):
    assert missing(page, page.read_text(encoding="utf-8")) == []


def test_a_link_that_leads_nowhere_is_noticed():
    page = ROOT / "docs" / "how-to" / "studio.md"
    assert missing(page, "[here](none.md#part) and ![a picture](../pictures/none.png)") == [
        "none.md",
        "../pictures/none.png",
    ]
