"""The system's Chromium, driven by Playwright: how tests look at pages.

Pages of tests are files or live on loopback.  Whatever else a page asks for is refused and noted
in `Visit.refused`: pages must work without a network.
"""

import os
import shutil
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import pytest

ARGUMENTS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)
PROGRAMS = ("chromium", "chromium-browser", "google-chrome")
LOCAL = ("file:", "data:", "blob:", "about:", "http://127.0.0.1", "http://localhost")
LOCAL_TLS = ("https://127.0.0.1", "https://localhost")


class Look(NamedTuple):
    """How a reader looks at a page: the scheme of colors and the size of the window."""

    scheme: str
    width: int
    height: int


LOOKS = {
    "light": Look("light", 1280, 800),
    "dark": Look("dark", 1280, 800),
    "phone": Look("light", 390, 844),
    "dark-phone": Look("dark", 390, 844),
}
REVIEWED = ("light", "dark", "phone")


def require_browser():
    """Skip the test where there is no browser; in continuous integration that is an error."""
    missing = None
    if not any(map(shutil.which, PROGRAMS)):
        missing = "Chromium is not installed on this machine (apt-get install chromium)"
    try:
        import axe_playwright_python.base  # noqa: F401
        import playwright.sync_api  # noqa: F401
    except ImportError as error:
        missing = f"{error.name} is not installed (requirements-dev.txt)"
    if missing is not None:
        if os.environ.get("CI"):
            pytest.fail(missing)
        pytest.skip(missing)


@contextmanager
def running_browser():
    """Start the browser without a window, and stop it at the end."""
    from playwright.sync_api import sync_playwright

    program = next(found for found in map(shutil.which, PROGRAMS) if found)
    with sync_playwright() as playwright:
        started = playwright.chromium.launch(
            executable_path=program, headless=True, args=list(ARGUMENTS)
        )
        try:
            yield started
        finally:
            started.close()


class Visit:
    """One reader's visit: a context of the browser with pages, cookies and storage of its own."""

    def __init__(self, browser, look="light", **options):
        chosen = LOOKS[look]
        self.context = browser.new_context(
            viewport={"width": chosen.width, "height": chosen.height},
            color_scheme=chosen.scheme,
            reduced_motion="reduce",
            **options,
        )
        self.context.set_default_timeout(20_000)
        self.refused = []
        self.context.route(lambda address: not address.startswith(LOCAL + LOCAL_TLS), self._refuse)

    def open(self, where):
        """Open an address or a file in a new page."""
        page = self.context.new_page()
        page.goto(where.resolve().as_uri() if isinstance(where, Path) else where)
        return page

    def close(self):
        self.context.close()

    def _refuse(self, route):
        self.refused.append(route.request.url)
        route.abort()
