"""Pages speak of settings and pages, not of commands and options of the shell."""

import re

import pytest

from dpublish.studio.phrasing import for_pages
from studio_world import open_studio, write_files

SHELL = re.compile(r"(?<![\w-])--[a-z]|dpublish (rehearse|plan|ledger|methods|schema|choose-k)\b")
GOALS = ("rows", "counts:age,ward", "classify:ill", "clusters:age", "top:ward", "stream:ward")


@pytest.fixture(scope="module")
def client(tmp_path_factory):
    folder = tmp_path_factory.mktemp("studio")
    write_files(folder)
    with open_studio(folder) as world:
        yield world.client()


def shown(page):
    """The page without the folded commands, which are for the shell."""
    return re.sub(r"<pre.*?</pre>|<!--.*?-->", "", page.text, flags=re.DOTALL)


@pytest.mark.parametrize("goal", GOALS)
def test_a_plan_names_no_option_of_the_shell(client, goal):
    fields = {"dataset": "visits", "data": "visits.parquet", "schema": "visits.toml"}
    page = client.get("/plan", goal=goal, horizon="9", epsilon="0.5", **fields)
    assert page.status == 200
    assert "Advised for" in page.text
    assert not SHELL.search(shown(page)), SHELL.search(shown(page))


@pytest.mark.parametrize(
    ("said", "words"),
    [
        ("name another dataset (--dataset)", "name another dataset"),
        ("count (--contribution 4), so", "count (contribution 4), so"),
        ("name a column in '--odd'; it is not known", "name a column in '--odd'; it is not known"),
        ("raise its cap with `dpublish ledger cap`", "raise its cap on the page of the dataset"),
    ],
)
def test_options_become_settings(said, words):
    assert for_pages(said) == words
