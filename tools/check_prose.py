"""Read the project's Markdown as an editor does: long sentences, and words that say nothing.

    python tools/check_prose.py [PATH ...]

Without paths, all pages of the project.  Code, tables, links' addresses, formulas and HTML are not
read.  What stands between double quotation marks is quoted, such as the title of a paper: its
words count for the length of a sentence, and are not judged.  Words of the field's list are
checked by tests/test_vocabulary.py.  Exit code 0: nothing was found; 1: something was, one line
each.
"""

import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent
MOST_WORDS = 40
"""Words of a sentence; what stands in brackets or after a colon's list counts, too."""

EMPTY = {
    r"simply": "leave it out",
    r"obviously|of course|clearly and": "leave it out",
    r"easy|easily|effortless\w*": "say how many steps or seconds",
    r"powerful|seamless\w*|state[- ]of[- ]the[- ]art|cutting[- ]edge": "say what it does",
    r"leverag\w+|utili[sz]\w+": "use",
    r"in order to": "to",
    r"due to the fact that": "because",
    r"please": "leave it out",
    r"it should be noted( that)?|(?<!a )note that": "leave it out",
    r"respectively": "pair the words",
    r"and/or": "and, or or",
    r"e\.g\.|i\.e\.|etc\.": "for example; that is; and so on",
    r"100 ?% (private|secure|safe|anonymous)": "state the guarantee",
    r"anonymi[sz]ed data": "say what was done",
}
"""Words that tell a reader nothing, and what to write instead."""

_FENCE = re.compile(r"^\s*(```|~~~)")
_INLINE = (
    (re.compile(r"<!--.*?-->", re.DOTALL), " "),
    (re.compile(r"`[^`]*`"), " code "),
    (re.compile(r"!\[[^\]]*\]\([^)]*\)"), " "),
    (re.compile(r"\[([^\]]*)\]\([^)]*\)"), r"\1"),
    (re.compile(r"\$[^$]*\$"), " formula "),
    (re.compile(r"<[^>]+>"), " "),
)
_END = re.compile(r"(?<!\bvs)(?<!\bal)(?<!\bEq)(?<!\b[A-Z])[.!?:;](?=\**(?:\s|$))")
_WORD = re.compile(r"[^\W\d_][\w'’-]*")
_QUOTED = re.compile(r'"[^"]*"|“[^”]*”')
_SKIPPED = re.compile(r"^\s*(\||#|---|===|:::|!!!|\?\?\?|>>>)")


class Fault(NamedTuple):
    """A sentence or a word that should be written otherwise."""

    file: str
    line: int
    text: str

    def __str__(self) -> str:
        return f"{self.file}:{self.line}: {self.text}"


def faults(name: str, text: str) -> Iterator[Fault]:
    """List what a page should say otherwise.

    >>> [fault.text for fault in faults("page.md", "Simply add noise.")]
    ["'Simply': leave it out"]
    >>> list(faults("page.md", 'See "Data Analysis Made Easy".'))
    []
    """
    for number, line in _prose(text):
        for sentence in _END.split(line):
            words = len(_WORD.findall(sentence))
            if words > MOST_WORDS:
                beginning = " ".join(sentence.split()[:6])
                yield Fault(name, number, f"{words} words, at most {MOST_WORDS}: {beginning} ...")
        own = _QUOTED.sub('""', line)
        for pattern, instead in EMPTY.items():
            for found in re.finditer(rf"(?<!\w)({pattern})(?!\w)", own, re.IGNORECASE):
                yield Fault(name, number, f"{found[0]!r}: {instead}")


def _prose(text: str) -> Iterator[tuple[int, str]]:
    """Yield the lines of prose with their numbers: no code, tables or headings."""
    fenced = shown = False
    for number, line in enumerate(text.splitlines(), 1):
        if _FENCE.match(line):
            fenced = not fenced
        elif line.strip() == "$$":
            shown = not shown
        elif not (fenced or shown or _SKIPPED.match(line) or line.startswith("    ")):
            yield number, _plain(line)


def _plain(line: str) -> str:
    for pattern, instead in _INLINE:
        line = pattern.sub(instead, line)
    return line


def pages() -> list[Path]:
    """List the pages of the project."""
    at_the_top = [each for each in sorted(ROOT.glob("*.md")) if each.name != "CHANGELOG.md"]
    below = [each for folder in ("docs", "benchmarks") for each in (ROOT / folder).rglob("*.md")]
    return [*at_the_top, *sorted(below)]


def main(paths: list[str]) -> int:
    """Print the faults of pages; return 1 if there are any."""
    chosen = [Path(path).resolve() for path in paths] or pages()
    found = [
        fault
        for path in chosen
        for fault in faults(path.relative_to(ROOT).as_posix(), path.read_text("utf-8"))
    ]
    for fault in found:
        print(fault)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
