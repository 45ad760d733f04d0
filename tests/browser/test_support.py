"""The checks of pages find what they look for."""

import pytest

from browser import chromium
from browser.checks import broken_words, screens, sideways, take_screenshots, violations

GOOD = """<!doctype html><html lang="en"><head><title>A page</title>
<meta name="viewport" content="width=device-width, initial-scale=1"></head>
<body><main><h1>A page</h1><p>Whatever holds.</p>{}</main></body></html>"""


@pytest.fixture
def write(tmp_path):
    def write_page(inside):
        path = tmp_path / "page.html"
        path.write_text(GOOD.format(inside))
        return path

    return write_page


def test_a_good_page_passes_every_check(visit, write):
    reader = visit("phone")
    page = reader.open(write(""))
    assert violations(page) == []
    assert sideways(page) == 0
    assert broken_words(page) == []
    assert screens(page) == 1
    assert reader.refused == []


def test_faults_are_found(visit, write):
    faults = (
        '<img src="https://example.org/a.png"><p style="color: #aaa">Too pale.</p>'
        '<p style="width: 3em; overflow-wrap: anywhere">Donaudampfschifffahrt</p>'
        '<div style="width: 900px; height: 3000px">wide</div>'
    )
    reader = visit("phone")
    page = reader.open(write(faults))
    found = " ".join(violations(page))
    assert "image-alt" in found
    assert "color-contrast" in found
    assert sideways(page) > 400
    assert broken_words(page) == ["Donaudampfschifffahrt"]
    assert screens(page) > 3
    assert reader.refused == ["https://example.org/a.png"]


def test_a_page_is_pictured_as_every_reader_sees_it(browser, write, tmp_path):
    scheme = "<style>@media (prefers-color-scheme: dark) { html { background: #000 } }</style>"
    take_screenshots(browser, write(scheme), "A Page!", tmp_path)
    written = {path.name: path.read_bytes() for path in tmp_path.glob("*.png")}
    assert set(written) == {"a-page-light.png", "a-page-dark.png", "a-page-phone.png"}
    assert len(set(written.values())) == 3


def test_a_browser_that_is_missing_is_an_error_in_continuous_integration(monkeypatch):
    monkeypatch.setattr(chromium, "PROGRAMS", ("no-such-browser",))
    monkeypatch.delenv("CI", raising=False)
    with pytest.raises(pytest.skip.Exception, match="Chromium is not installed"):
        chromium.require_browser()
    monkeypatch.setenv("CI", "true")
    with pytest.raises(pytest.fail.Exception, match="Chromium is not installed"):
        chromium.require_browser()


def test_all_of_these_tests_run_in_one_worker(request):
    is_grouped = getattr(request.config.option, "loadgroup", False)
    assert request.node.nodeid.endswith("@browser") == is_grouped
