"""The list of privacy mutants fits the source and the tests as they are now.

`make mutants` runs the list; here it is only checked that a change of the source or of a test
has not left a row behind.
"""

import ast
from collections import Counter
from functools import cache

from mutants.mutant import ROOT, NotApplicable, mutated_files, read_mutants

MUTANTS = read_mutants()


def test_there_are_many_and_no_two_have_the_same_title():
    titles = Counter(mutant.title for mutant in MUTANTS)
    assert len(titles) >= 250
    assert [title for title, count in titles.items() if count > 1] == []


def test_every_row_applies_to_the_source():
    problems = []
    for mutant in MUTANTS:
        try:
            mutated_files(mutant, ROOT / "src")
        except NotApplicable as error:
            problems.append(f"{mutant.area}.toml, {mutant.title!r}: {error}")
    assert problems == []


def test_every_row_names_tests_that_exist():
    missing = [
        f"{mutant.area}.toml, {mutant.title!r}: there is no {test}"
        for mutant in MUTANTS
        for test in mutant.tests
        if not _exists(test)
    ]
    assert missing == []
    assert all(mutant.tests for mutant in MUTANTS)


def _exists(test: str) -> bool:
    path, *names = test.partition("[")[0].split("::")
    return (ROOT / path).is_file() and tuple(names) in _defined(path)


@cache
def _defined(path: str) -> set[tuple[str, ...]]:
    """The tests of a file, and those of its classes, by name; () is the file itself."""
    found: set[tuple[str, ...]] = {()}
    for node in ast.parse((ROOT / path).read_text(encoding="utf-8")).body:
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            found.add((node.name,))
        if isinstance(node, ast.ClassDef):
            found |= {(node.name, each.name) for each in node.body if hasattr(each, "name")}
    return found
