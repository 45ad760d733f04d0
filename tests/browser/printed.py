"""Print pages as the system's Chromium does, and count the sheets that come out."""

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

PROGRAMS = ("chromium", "chromium-browser", "google-chrome")
PAPERS = {"A4": (595, 842), "Letter": (612, 792)}
"""Width and height in points."""
_PAGE = re.compile(rb"/Type\s*/Page\b")
_BOX = re.compile(rb"/MediaBox\s*\[\s*0\s+0\s+([\d.]+)\s+([\d.]+)\s*\]")


def require_chromium():
    """Skip the test where Chromium is missing; in continuous integration that is an error."""
    found = next(filter(None, map(shutil.which, PROGRAMS)), None)
    if found is None:
        missing = "Chromium is not installed on this machine (apt-get install chromium)"
        if os.environ.get("CI") == "true":
            pytest.fail(missing)
        pytest.skip(missing)
    return found


def sheets(program: str, page: str, paper: str, folder: Path) -> int:
    """Print a page on a paper, and return how many sheets it takes."""
    source, printed = folder / f"{paper}.html", folder / f"{paper}.pdf"
    # The browser prints on Letter; a rule of the page chooses another paper, as a reader would.
    assert page.count("@page {") == 1
    source.write_text(page.replace("@page {", f"@page {{ size: {paper};"), "utf-8")
    options = (
        *("--headless", "--no-sandbox", "--disable-gpu", "--no-first-run"),
        *("--disable-background-networking", "--no-pdf-header-footer"),
        *(f"--user-data-dir={folder / 'profile'}", f"--print-to-pdf={printed}"),
    )
    done = subprocess.run(
        [program, *options, source.resolve().as_uri()], capture_output=True, timeout=60, check=False
    )
    assert printed.is_file(), done.stderr.decode(errors="replace")[-2000:]
    content = printed.read_bytes()
    width, height = (float(number) for number in _BOX.search(content).groups())
    assert (round(width), round(height)) == PAPERS[paper]
    return len(_PAGE.findall(content))
