"""The studio's files are those that were reviewed, and nothing is fetched from elsewhere."""

import hashlib
import re
from pathlib import Path

import dpublish

ROOT = Path(dpublish.__file__).parent / "studio"
DOCUMENT = Path(__file__).resolve().parents[2] / "docs" / "project" / "dependencies.md"
INLINE = re.compile(r"<script(?![^>]*\bsrc=)|\son[a-z]+=|\sstyle=|javascript:|<style")


def test_htmx_is_the_file_that_was_published():
    digest = hashlib.sha256((ROOT / "static" / "htmx.min.js").read_bytes()).hexdigest()
    assert f"`{digest}`" in DOCUMENT.read_text()
    assert "Zero-Clause BSD" in (ROOT / "static" / "htmx.LICENSE").read_text()


def test_no_page_has_a_script_or_a_style_of_its_own():
    pages = sorted((ROOT / "templates").rglob("*.html"))
    assert pages
    for page in pages:
        assert not INLINE.findall(page.read_text()), page.name


def test_no_file_names_another_host():
    for path in sorted(ROOT.rglob("*")):
        if path.suffix in {".html", ".css", ".js", ".svg"} and path.name != "htmx.min.js":
            found = re.findall(r"(?:https?:)?//[a-z][a-z.]*\.[a-z]+[^\s\"']*", path.read_text())
            assert {each for each in found if "w3.org" not in each} == set(), path.name
