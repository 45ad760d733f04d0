"""The field's words in American spelling: every other word on this list stays at zero.

`python tests/test_vocabulary.py PATH ...` prints where files use a word that is not ours.
"""

import io
import re
import subprocess
import sys
import tokenize
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).parent.parent
HERE = Path(__file__).relative_to(ROOT).as_posix()
READ = (".py", ".pyi", ".md", ".toml", ".html")

WORDS = {
    r"foret(ell|ells|elling|old)": "predict, expected error",
    r"purses?": "budget, share",
    r"blur(s|red|ring)?": "add noise, perturb",
    r"(?<!last )chances?": "probability",
    r"error bars?": "confidence interval",
    r"(the|a|its|their|whose|within|s) reach": "half-width, range, bound",
    r"spreads?": "standard deviation, variance, dispersion; distribute, divide",
    r"(?<!in )(?<!take )(?<!takes )(?<!decimal )place(s|d)?": "index, position, point, path",
    r"margins?": "marginal",
    r"commonest": "most frequent, majority class",
    r"made up (data|rows|tables?|people|records?)": "simulated, synthetic",
    r"laborator(y|ies)": "runner",
    r"crowd(s|ed)?": "population, sample, dense",
    r"contenders?": "competitor",
    r"(?<!zipf s )laws?": "distribution",
    r"(to|from) plain": "to_dict, from_dict",
    r"whole numbers?": "integer",
    r"questions?": "query",
    r"promises?": "privacy guarantee",
    r"bought": "measured with, spends",
    r"speaks? arrow": "Arrow-compatible",
    r"she|her|hers": "they, the individual",
    r"nobody|everybody": "no one, any record, all records",
    r"n hint": "n_records",
    r"recipes?": "method",
    r"(?<!d )topc": "top-k",
    r"(centre|neighbour|colour|behaviour|favour|labell|modell|catalogue)\w*": "American spelling",
    r"(?!personalised em)\w*(personal|general|normal|random|minim|maxim|optim|organ|summar"
    r"|recogn|ideal|initial|equal|special|stabil|discret|standard|central|parallel|vector"
    r"|serial|regular)is(e|ed|es|ing|ation|er|ers)": "American spelling",
}
"""What is banned everywhere, in words of an identifier as in prose, and what is said instead."""

NAMES = {
    r"reach(es|ed)?": "half_width, bound, range",
    r"bars?": "interval (a chart's bars: `columns`)",
}
"""What is banned in identifiers."""

ALLOWED = {
    r"margins?": r"linear_models|models|settings\.py|group\.py|plots/|\.html$|glossary"
    r"|linear_losses|private_erm|private_svm|privlocal|mixed_tables",  # hinge; aliases; CSS
    r"(?<!d )topc": r"cli/|settings\.py|topk|test_help|test_commands",  # an alias
    r"bars?": r"plots/|charts|report|cli/output|page",  # charts and progress
}
"""Files in which a word has the field's own meaning."""


class Use(NamedTuple):
    """A word where it stands."""

    file: str
    line: int
    text: str
    instead: str

    def __str__(self) -> str:
        return f"{self.file}:{self.line}: {self.text!r}; say {self.instead}"


def words_of(text: str) -> str:
    """Split identifiers into words: `n_hint` and `predictChances` become 'n hint' and so on."""
    parted = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", " ", text)
    return re.sub(r"[^a-z0-9]+", " ", parted.lower())


def tracked() -> list[str]:
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    ).stdout.split("\n")
    return [
        name for name in listed if name.endswith(READ) and name != HERE and (ROOT / name).is_file()
    ]


def uses(name: str, text: str) -> Iterator[Use]:
    """Find the banned words of a file."""
    for number, line in enumerate(text.splitlines(), start=1):
        yield from _found(WORDS, words_of(line), name, number)
    if name.endswith(".py"):
        for token in tokenize.generate_tokens(io.StringIO(text).readline):
            if token.type == tokenize.NAME:
                yield from _found(NAMES, words_of(token.string), name, token.start[0])


def _found(rules: dict[str, str], words: str, name: str, number: int) -> Iterator[Use]:
    for pattern, instead in rules.items():
        if pattern in ALLOWED and re.search(ALLOWED[pattern], name):
            continue
        for match in re.finditer(rf"\b({pattern})\b", words):
            yield Use(name, number, words[max(match.start() - 20, 0) : match.end() + 12], instead)


@pytest.mark.parametrize("suffix", READ)
def test_only_the_words_of_the_field_are_used(suffix):
    found = [
        str(use)
        for name in tracked()
        if name.endswith(suffix)
        for use in uses(name, (ROOT / name).read_text(encoding="utf-8"))
    ]
    assert not found, f"{len(found)} uses:\n" + "\n".join(found[:40])


@pytest.mark.parametrize(
    "text",
    [
        "def foretell(self): ...",
        "reach = 3",
        "places = []",
        "# how far the reach goes",
        "n_hint = 1",
        "'each person brings her own epsilon'",
        "predictChances()",
        "colours = {}",
        "is_personalised = True",
    ],
)
def test_a_banned_word_is_noticed(text):
    assert list(uses("new.py", text))


@pytest.mark.parametrize(
    "text", ["# sorted in place", "marginal = 1", "# the count reaches it", "Zipf's law"]
)
def test_other_words_are_not(text):
    assert not list(uses("new.md", text))


def main(paths: list[str]) -> int:
    """Print the uses in files or folders that are named, or in all that git knows."""
    given = [Path(path).resolve() for path in paths]
    files = [each for each in given if each.is_file()]
    folders = tuple(f"{each.relative_to(ROOT).as_posix()}/" for each in given if each.is_dir())
    names = [each.relative_to(ROOT).as_posix() for each in files]
    if folders or not given:
        names += [name for name in tracked() if name.startswith(folders or ("",))]
    found = [
        use
        for name in names
        if name.endswith(READ) and name != HERE
        for use in uses(name, (ROOT / name).read_text(encoding="utf-8"))
    ]
    for use in found:
        sys.stdout.write(f"{use}\n")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
