"""Every method has a page with a paragraph, commands that run, a picture and six headings."""

import importlib.util
import re
from pathlib import Path

import pytest

from dpublish.core.catalog import CATALOG, STREAMS

ROOT = Path(__file__).resolve().parents[2]
PAGES = ROOT / "docs" / "methods"
SPEC = importlib.util.spec_from_file_location("page_examples", ROOT / "tools" / "page_examples.py")
page_examples = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(page_examples)

METHODS = {**CATALOG, **STREAMS}
HEADINGS = ["Publishes", "Guarantees", "Prefer it when", "Costs", "Peers", "Reference"]
LEAST_WORDS, LEAST_ALT = 25, 5
LARGEST_PICTURE = 150_000
HEADING = re.compile(r"^## (.+)$", re.MULTILINE)
LINK = re.compile(r"(?<!!)\[[^\]]*\]\(([^)\s]+)\)")
IMAGE = re.compile(r"^<!-- picture: \S+ \d+ -->\n!\[([^\]]*)\]\(([^)\s]+)\)$", re.MULTILINE)


def faults(name, text, folder=PAGES):
    """List what the page of a method lacks."""
    checks = [opening, commands, picture, headings, reference, links]
    return [said for check in checks for said in check(name, text, folder)]


def opening(name, text, _folder):
    """Check the first lines and the paragraph below the title."""
    lines = text.splitlines()
    if lines[:2] != ["<!-- examples -->", f"# {name}"]:
        yield "does not begin with <!-- examples --> and its name"
    paragraph = text.partition(f"# {name}\n\n")[2].partition("\n\n")[0]
    if len(paragraph.split()) < LEAST_WORDS or paragraph.startswith(("#", "```", "- ", "|")):
        yield "has no paragraph in plain words below its title"


def commands(name, text, _folder):
    """Check that a command that runs names the method."""
    shown = [each for each in page_examples.examples(text) if each.shown]
    names = re.compile(rf"dpublish schema {name}\s|--method {name}(\s|$)")
    if not any(names.search(each.command) and each.expected for each in shown):
        yield "shows no command with this method and what it prints"
    if not shown or not shown[0].command.startswith("dpublish datasets "):
        yield "does not begin with dpublish datasets"


def picture(name, text, folder):
    """Check that there is a picture, and words for it."""
    found = IMAGE.findall(text.partition("\n## ")[0])
    if len(found) != 1 or found[0][1] != f"../pictures/methods/{name}.svg":
        yield "has not one picture above its headings"
        return
    alt, target = found[0]
    if len(alt.split()) < LEAST_ALT:
        yield "does not say what its picture shows"
    file = folder / target
    if not file.is_file():
        yield "has a picture that is not there"
    elif file.stat().st_size > LARGEST_PICTURE:
        yield "has a picture that is too large for a page"


def headings(_name, text, _folder):
    """Check the headings and their order."""
    if [each for each in HEADING.findall(text) if each in HEADINGS] != HEADINGS:
        yield "has not the six headings in order"
    parts = HEADING.split(text)[1:]
    yield from (f"says nothing below {each}" for each in HEADINGS if not section(parts, each))


def reference(name, text, _folder):
    """Check that a paper or the lack of one, the class and the command are named."""
    said = section(HEADING.split(text)[1:], "Reference")
    if not re.search(r"\b(19|20)\d\d\b|\bour own\b", said):
        yield "names no paper, and does not say that the method is our own"
    kind = METHODS[name].location.partition(":")[2]
    if f"`dpublish.{kind}`" not in said or f"`dpublish methods {name}`" not in said:
        yield f"does not name dpublish.{kind} and dpublish methods {name}"


def links(_name, text, folder):
    """Check that links lead to files, and one of the guarantees to a proof."""
    targets = [each.partition("#")[0] for each in LINK.findall(text)]
    files = [each for each in targets if each and "://" not in each]
    yield from (f"links to {each}" for each in files if not (folder / each).is_file())
    proofs = LINK.findall(section(HEADING.split(text)[1:], "Guarantees"))
    if not any(each.startswith("../proofs/") for each in proofs):
        yield "links to no proof"


def section(parts, heading):
    """Return the text below a heading, given headings and texts in turn."""
    found = dict(zip(parts[::2], parts[1::2], strict=True))
    return found.get(heading, "").strip()


@pytest.mark.parametrize("name", METHODS)
def test_the_page_of_a_method_has_all_that_a_page_needs(name):
    assert faults(name, (PAGES / f"{name}.md").read_text("utf-8")) == []


def test_every_page_is_of_a_method():
    assert {page.stem for page in PAGES.glob("*.md")} == {*METHODS, "index"}


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("<!-- examples -->\n", "", "begin with"),
        ("# histogram", "# Histogram", "begin with"),
        ("\n\n```text", "\n\n```sh", "no command"),
        ("--method histogram ", "--method topk ", "no command"),
        ("$ dpublish datasets census", "$ cp census.csv", "dpublish datasets"),
        ("![", "[", "not one picture"),
        ("<!-- picture: by-age 0 -->\n", "", "not one picture"),
        ("methods/histogram.svg", "methods/none.svg", "not one picture"),
        ("## Costs", "## Price", "six headings"),
        ("## Peers", "## Reference", "six headings"),
        ("../proofs/exact.md", "../proofs/inexact.md", "links to ../proofs/inexact.md"),
        ("../proofs/exact.md", "../how-to/streams.md", "links to no proof"),
        ("STOC 2009", "STOC", "names no paper"),
        ("`dpublish.Histogram`", "`Histogram`", "dpublish.Histogram"),
        ("`dpublish methods histogram`", "`dpublish methods`", "dpublish methods histogram"),
    ],
)
def test_what_a_page_lacks_is_noticed(old, new, said):
    text = (PAGES / "histogram.md").read_text("utf-8")
    assert old in text
    assert any(said in each for each in faults("histogram", text.replace(old, new)))


def test_a_page_without_words_is_noticed(tmp_path):
    text = (PAGES / "histogram.md").read_text("utf-8")
    bare = re.sub(r"(# histogram\n\n).*?(```text)", r"\1\2", text, flags=re.DOTALL)
    assert "has no paragraph in plain words below its title" in faults("histogram", bare)
    silent = re.sub(r"!\[[^\]]*\]", "![counts]", text)
    assert "does not say what its picture shows" in faults("histogram", silent)
    emptied = re.sub(r"(## Peers\n).*?(## )", r"\1\n\2", text, flags=re.DOTALL)
    assert "says nothing below Peers" in faults("histogram", emptied)


def test_a_picture_that_is_missing_or_too_large_is_noticed(tmp_path):
    text = (PAGES / "histogram.md").read_text("utf-8")
    pages = tmp_path / "methods"
    pages.mkdir()
    assert "has a picture that is not there" in faults("histogram", text, pages)
    (tmp_path / "pictures" / "methods").mkdir(parents=True)
    large = tmp_path / "pictures" / "methods" / "histogram.svg"
    large.write_text(" " * (LARGEST_PICTURE + 1), "utf-8")
    assert "has a picture that is too large for a page" in faults("histogram", text, pages)
