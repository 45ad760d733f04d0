"""The documentation, built strictly and opened from disk: no network, search, light and dark."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from browser.checks import sideways, violations

ROOT = Path(__file__).resolve().parents[2]
LOOKED_AT = {
    "home": "index.html",
    "tutorial": "tutorials/hospital_visits.html",
    "concept": "concepts/epsilon.html",
    "method": "methods/synth.html",
    "api": "reference/api/methods-tables.html",
    "command": "reference/commands/release.html",
    "proof": "proofs/selection.html",
    "compare": "compare/index.html",
}

OTHER_LOOKS = ("dark", "phone")


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """Build the site as `make site` does; a warning fails."""
    pytest.importorskip("mkdocs")
    folder = tmp_path_factory.mktemp("site")
    done = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(folder)],
        cwd=ROOT,
        env=os.environ | {"NO_MKDOCS_2_WARNING": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    warned = [line for line in done.stderr.splitlines() if not line.startswith("INFO")]
    assert done.returncode == 0, "\n".join(warned)
    return folder


@pytest.mark.parametrize(
    ("name", "look"),
    [
        *((name, "light") for name in LOOKED_AT),
        *((name, look) for name in ("home", "tutorial", "method", "api") for look in OTHER_LOOKS),
    ],
)
def test_a_page_opens_from_disk_and_loads_nothing(site, visit, screenshots, name, look):
    reader = visit(look)
    page = reader.open(site / LOOKED_AT[name])
    page.wait_for_selector("h1")
    page.screenshot(path=screenshots / f"site-{name}-{look}.png")
    assert reader.refused == []
    assert sideways(page) == 0
    scheme = page.evaluate("document.body.getAttribute('data-md-color-scheme')")
    assert scheme == ("slate" if look == "dark" else "default")


@pytest.mark.parametrize("name", ["home", "method", "proof"])
def test_axe_finds_nothing_serious(site, visit, name):
    reader = visit()
    page = reader.open(site / LOOKED_AT[name])
    page.wait_for_selector("h1")
    assert violations(page) == []


def test_search_finds_a_page_without_a_server(site, visit):
    reader = visit()
    page = reader.open(site / "index.html")
    page.get_by_role("textbox", name="Search").first.click()
    page.keyboard.type("sparse vector", delay=20)
    page.wait_for_selector(".md-search-result__item a")
    found = page.eval_on_selector_all(".md-search-result__item a", "all => all.map(a => a.href)")
    assert any("sparse" in address for address in found)
    assert reader.refused == []


def test_formulas_are_shown_as_formulas(site, visit):
    page = visit().open(site / LOOKED_AT["proof"])
    assert page.locator("math").count() >= 5
    assert page.locator(".arithmatex").count() == 0


def test_no_page_is_left_out_of_the_navigation(site):
    """A page that no other page links to cannot be found."""
    home = (site / "index.html").read_text("utf-8")
    for part in ("start", "tutorials", "concepts", "methods", "reference", "proofs", "compare"):
        assert f"{part}/" in home
