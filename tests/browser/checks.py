"""What is asked of every page: axe finds nothing serious, and a phone shows it whole."""

import json
import re

from browser.chromium import LOOKS, REVIEWED, Visit

_SERIOUS = ("serious", "critical")
_RUN = """async rules => {
  const chosen = rules.length ? {runOnly: {type: 'rule', values: rules}} : {};
  return JSON.stringify(await axe.run(document, {resultTypes: ['violations'], ...chosen}));
}"""
_BROKEN = """() => {
  const found = [], walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  const range = document.createRange();
  while (walker.nextNode()) {
    const node = walker.currentNode;
    if (node.parentElement.closest('code, pre, script, style, svg')) continue;
    for (const word of node.data.matchAll(/[\\p{L}\\p{N}]+/gu)) {
      range.setStart(node, word.index);
      range.setEnd(node, word.index + word[0].length);
      if (/^[0-9a-f]{32,}$/.test(word[0])) continue;
      const lines = new Set([...range.getClientRects()].map(each => Math.round(each.top)));
      if (lines.size > 1) found.push(word[0]);
    }
  }
  return found;
}"""

_OPEN = """() => {
  const bottom = each => each.getBoundingClientRect().bottom + window.scrollY;
  const open = [...document.querySelectorAll('section:not(:has(> .whole))')].map(bottom);
  const stamps = [...document.querySelectorAll('.stamp')].map(each => each.offsetHeight);
  return Math.max(0, ...open) - stamps.reduce((sum, each) => sum + each, 0);
}"""


def violations(page, *rules):
    """Run axe on a page: its serious and critical findings, each with where it is.

    With `rules`, such as "color-contrast", it looks for these only.
    """
    from axe_playwright_python.base import AXE_SCRIPT

    # What is evaluated by the browser's protocol runs under any content security policy.
    page.evaluate(AXE_SCRIPT)
    found = json.loads(page.evaluate(_RUN, list(rules)))
    return [
        f"{each['impact']} {each['id']}: {each['help']}: "
        + "; ".join(f"{node['target']} {node['html'][:120]}" for node in each["nodes"][:5])
        for each in found["violations"]
        if each["impact"] in _SERIOUS
    ]


def sideways(page):
    """How many pixels the page is wider than the window."""
    return page.evaluate(
        "document.documentElement.scrollWidth - document.documentElement.clientWidth"
    )


def broken_words(page):
    """Find the words that the end of a line cuts, but for code and for digests."""
    return page.evaluate(_BROKEN)


def screens(page):
    """How many windows high the page is."""
    return page.evaluate("document.documentElement.scrollHeight / window.innerHeight")


def open_screens(page):
    """How many windows high the page is down to where nothing but folded sections follows.

    Stamps are left out: what is drawn from no seed has none.
    """
    return page.evaluate(_OPEN) / page.viewport_size["height"]


def take_screenshots(browser, where, name, folder, looks=REVIEWED, **options):
    """Write pictures of a page (an address or a file) as every kind of reader sees it."""
    stem = re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")
    for look in looks:
        visit = Visit(browser, look, **options)
        try:
            page = visit.open(where)
            page.screenshot(path=folder / f"{stem}-{look}.png", full_page=True)
        finally:
            visit.close()


__all__ = [
    "LOOKS",
    "broken_words",
    "open_screens",
    "screens",
    "sideways",
    "take_screenshots",
    "violations",
]
