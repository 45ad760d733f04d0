"""What browser tests share: one browser, visits of it, and a folder for pictures.

All tests in this folder are one group of xdist (`browser`), so that one worker runs them.
"""

import os
from pathlib import Path

import pytest

from browser.chromium import Visit, require_browser, running_browser

HERE = Path(__file__).resolve().parent


@pytest.hookimpl(tryfirst=True)  # before xdist looks for groups
def pytest_collection_modifyitems(items):
    for item in items:
        if item.path.is_relative_to(HERE):
            item.add_marker(pytest.mark.xdist_group("browser"))


@pytest.fixture(scope="session")
def browser():
    """The system's Chromium; tests are skipped where it is missing, but fail with CI set.

    While it runs, Playwright's event loop is that of this thread: `asyncio.run` needs another.
    """
    require_browser()
    with running_browser() as started:
        yield started


@pytest.fixture
def visit(browser):
    """Make visits: `visit("dark").open(path_or_address)` is a page in the dark scheme."""
    visits = []

    def begin(look="light", **options):
        visits.append(Visit(browser, look, **options))
        return visits[-1]

    yield begin
    for each in visits:
        each.close()


@pytest.fixture(scope="session")
def screenshots(tmp_path_factory):
    """The folder for pictures: DPUBLISH_SCREENSHOTS, or a temporary one."""
    chosen = os.environ.get("DPUBLISH_SCREENSHOTS")
    folder = Path(chosen) if chosen else tmp_path_factory.mktemp("screenshots")
    folder.mkdir(parents=True, exist_ok=True)
    return folder
