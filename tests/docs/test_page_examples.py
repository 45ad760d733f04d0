"""The commands of pages run, and print what the pages say."""

import importlib.util
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SPEC = importlib.util.spec_from_file_location("page_examples", ROOT / "tools" / "page_examples.py")
page_examples = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(page_examples)
WARM = importlib.util.spec_from_file_location("warm_command", ROOT / "tools" / "warm_command.py")
warm_command = importlib.util.module_from_spec(WARM)
WARM.loader.exec_module(warm_command)
PAGES = sorted((ROOT / "docs").rglob("*.md"))
READY = "<!-- examples -->"
"""Pages that begin with this line have examples that run; all others have none or say so."""


def text_of(page):
    return page.read_text("utf-8")


@pytest.mark.parametrize(
    "page",
    [page for page in PAGES if text_of(page).startswith(READY)],
    ids=lambda page: page.relative_to(ROOT / "docs").as_posix(),
)
def test_a_page_shows_what_its_commands_print(page, tmp_path):
    assert page_examples.examples(text_of(page))
    found = page_examples.differences(page, tmp_path, [warm_command.command_folder()])
    assert not found, "\n\n".join(found)


@pytest.mark.parametrize(
    ("says", "prints"),
    [
        (["4,496 (95 %)"], ["1,203 (95 %)"]),
        (["a", "...", "b"], ["a", "b"]),
        (["a", "...", "b"], ["a", "1", "2", "b"]),
        (["from: age, ... (9)"], ["from: age, sex, work (12)"]),
        (["column    takes"], ["column  takes"]),
        ([], ["anything"]),
    ],
)
def test_what_varies_from_release_to_release_agrees(says, prints):
    assert page_examples.agrees(says, prints)


@pytest.mark.parametrize(
    ("says", "prints"),
    [
        (["published by-age"], ["published by-sex"]),
        (["a", "b"], ["a", "1", "b"]),
        (["a"], ["a", "b"]),
        (["a", "b"], ["a"]),
        (["a"], []),
        (["column takes"], ["columntakes"]),
    ],
)
def test_other_words_or_lines_are_noticed(says, prints):
    assert not page_examples.agrees(says, prints)


def test_a_command_that_fails_unannounced_is_noticed(tmp_path):
    page = tmp_path / "page.md"
    page.write_text("```text\n$ exit 3\n```\n", "utf-8")
    assert len(page_examples.differences(page, tmp_path)) == 1


def test_output_is_written_into_a_page(tmp_path):
    page = tmp_path / "page.md"
    page.write_text("```text\n$ echo right\nwrong\n\n$ echo 5\n6\n```\n", "utf-8")
    assert page_examples.rewrite(page, tmp_path) == 1
    assert page.read_text("utf-8") == "```text\n$ echo right\nright\n\n$ echo 5\n6\n```\n"


@pytest.mark.parametrize(
    "words",
    [["--version"], ["explain", "0.5"], ["rows"], ["relase"], ["count", "nothing", "age = 3"]],
)
def test_the_command_that_is_kept_warm_does_what_the_command_does(words, tmp_path):
    """The same output, the same complaints, the same exit code."""
    done = [
        subprocess.run(
            [folder / "dpublish", *words], cwd=tmp_path, capture_output=True, text=True, check=False
        )
        for folder in (warm_command.command_folder(), Path(sys.executable).parent)
    ]
    warm, cold = [(each.stdout, each.stderr, each.returncode) for each in done]
    assert warm == cold
