"""Pages of every kind: axe finds nothing serious, a phone shows them whole, print opens all."""

import re

import pytest

from browser import kinds
from browser.checks import (
    broken_words,
    open_screens,
    screens,
    sideways,
    take_screenshots,
    violations,
)

OPEN_ALL = "document.querySelectorAll('details').forEach(each => each.open = true)"
OTHERS = {
    "stream": kinds.write_stream,
    "keep": kinds.write_keep,
    "certificate": kinds.write_certificate,
    "evaluation": kinds.write_evaluation,
    "experiment": kinds.write_experiment,
}
ALL = [*kinds.RELEASES, *OTHERS]


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    """Write each page once."""
    pages = {}

    def write(kind):
        if kind not in pages:
            folder = tmp_path_factory.mktemp(kind)
            make = OTHERS.get(kind)
            pages[kind] = make(folder) if make else kinds.write_release(kind, folder)
        return pages[kind]

    return write


@pytest.mark.parametrize("kind", ALL)
def test_axe_finds_nothing_serious_and_two_screens_are_open(visit, written, kind):
    reader = visit()
    page = reader.open(written(kind))
    assert open_screens(page) <= 2
    assert sideways(page) == 0
    page.evaluate(OPEN_ALL)
    assert screens(page) > open_screens(page) or kind == "certificate"
    assert violations(page) == []
    page.emulate_media(color_scheme="dark")
    assert violations(page, "color-contrast") == []
    page.set_viewport_size({"width": 390, "height": 844})
    assert sideways(page) == 0
    assert broken_words(page) == []
    assert reader.refused == []


@pytest.mark.parametrize("kind", ALL)
def test_drawings_have_words_and_names_of_their_own(written, kind):
    text = written(kind).read_text("utf-8")
    drawings = re.findall(r"<svg[^>]*>", text)
    assert drawings or kind in ("bounds", "certificate")
    for drawing in drawings:
        assert re.search(r'role="img" aria-label="[^"]{20,}"', drawing), drawing
    assert len(text) < 200_000
    names = re.findall(r'\bid="([^"]+)"', text)
    assert len(names) == len(set(names))
    used = re.findall(r'(?:href="#|url\(#)([^")]+)', text)
    assert set(used) <= set(names)


def test_what_is_folded_is_printed_and_contents_lead_there(visit, written):
    page = visit().open(written("histogram"))
    number = page.get_by_role("link", name="Settings").get_attribute("href")
    assert not page.locator(number).is_visible()
    page.emulate_media(media="print", color_scheme="dark")
    page.wait_for_function(f"document.querySelector('{number}').checkVisibility()")
    assert page.locator(number).bounding_box()["height"] > 40
    background = "getComputedStyle(document.body).backgroundColor"
    assert page.evaluate(background) == "rgb(255, 255, 255)", "paper is bright"
    page.emulate_media(media="screen")
    page.get_by_role("link", name="Settings").click()
    page.wait_for_function(f"document.querySelector('{number}').closest('details').open")
    assert page.locator(number).is_visible()


def test_a_reader_with_a_keyboard_sees_where_the_focus_is(visit, written):
    page = visit().open(written("kmeans"))
    page.keyboard.press("Tab")
    focused = "getComputedStyle(document.activeElement)"
    assert page.evaluate("document.activeElement.textContent") == "Skip to the content"
    assert page.evaluate(f"{focused}.outlineStyle") == "solid"
    assert page.evaluate("document.activeElement.getBoundingClientRect().left") >= 0


def test_drawings_follow_the_scheme_of_the_reader(visit, written):
    bar = "getComputedStyle(document.querySelector('figure svg path[style*=\"--c-9dc3dd\"]')).fill"
    found = {
        look: visit(look).open(written("histogram")).evaluate(bar) for look in ("light", "dark")
    }
    assert found == {"light": "rgb(157, 195, 221)", "dark": "rgb(47, 98, 133)"}


@pytest.mark.parametrize("kind", ["histogram", "synth", "evaluation"])
def test_pages_are_pictured_for_review(browser, written, screenshots, kind):
    take_screenshots(browser, written(kind), f"report {kind}", screenshots)
    assert (screenshots / f"report-{kind}-phone.png").stat().st_size > 10_000
