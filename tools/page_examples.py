"""Run the commands that a page shows, and compare what they print with what the page says.

    python tools/page_examples.py PAGE ...            say what differs; exit code 1 if anything does
    python tools/page_examples.py --write PAGE ...    put what was printed into the page

A page shows a command in a block of ```text: a line that begins with `$ ` (continued with a
backslash), then its output.  All commands of a page run from top to bottom in one empty folder.

- A line `<!-- run: COMMAND -->` runs a command that the page does not show.
- A line `<!-- not run: REASON -->` before a block leaves that block out.
- Numbers and digests vary from release to release, so they are compared as `#`; runs of spaces
  count as one.  `...` stands for anything within a line, and alone on a line for any lines.
"""

import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

SECONDS = 240
_FENCE = re.compile(r"^( *)```(\w*)")
_HIDDEN = re.compile(r"^\s*<!-- run: (.*) -->\s*$")
_LEFT_OUT = re.compile(r"^\s*<!-- not run: (.*) -->\s*$")
_DIGEST = re.compile(r"\b(?=[0-9a-f]*\d)[0-9a-f]{8,}\b")
_NUMBER = re.compile(r"[≈~]?[-−]?\d[\d,]*(?:\.\d+)?")
_ANYTHING = "..."


class Example(NamedTuple):
    """A command of a page, the lines it is said to print, and where those lines are."""

    command: str
    expected: list[str]
    first: int
    """The index of the first line of the output in the page."""
    shown: bool = True


class Outcome(NamedTuple):
    """What a command printed, and how it ended."""

    printed: list[str]
    code: int


def examples(text: str) -> list[Example]:
    r"""List the commands of a page in order.

    >>> page = "<!-- run: cd . -->\n```text\n$ echo one \\\n    two\none two\n```\n"
    >>> [(each.command, each.expected) for each in examples(page)]
    [('cd .', []), ('echo one \\\n    two', ['one two'])]
    """
    return list(_examples(text.splitlines()))


def left_out(text: str) -> list[str]:
    """List why blocks of a page are not run."""
    return [found[1] for line in text.splitlines() if (found := _LEFT_OUT.match(line))]


def _examples(lines: list[str]) -> Iterator[Example]:
    position, skip = 0, False
    while position < len(lines):
        line = lines[position]
        if hidden := _HIDDEN.match(line):
            yield Example(hidden[1], [], position, shown=False)
        elif _LEFT_OUT.match(line):
            skip = True
        elif opening := _FENCE.match(line):
            end = _end(lines, position, opening[1])
            if opening[2] == "text" and not skip:
                yield from _of_block(lines, position + 1, end, len(opening[1]))
            position, skip = end, False
        elif line.strip():
            skip = False
        position += 1


def _end(lines: list[str], opening: int, indent: str) -> int:
    for position in range(opening + 1, len(lines)):
        if lines[position].startswith(f"{indent}```"):
            return position
    raise ValueError(f"line {opening + 1}: the block has no end")


def _of_block(lines: list[str], position: int, end: int, indent: int) -> Iterator[Example]:
    while position < end:
        line = lines[position][indent:]
        position += 1
        if not line.startswith("$ "):
            continue
        command = [line[2:]]
        while command[-1].endswith("\\"):
            command.append(lines[position][indent:])
            position += 1
        first = position
        while position < end and not lines[position][indent:].startswith("$ "):
            position += 1
        output = [each[indent:] for each in lines[first:position]]
        yield Example("\n".join(command), _without_end(output), first)


def _without_end(lines: list[str]) -> list[str]:
    while lines and not lines[-1].strip():
        lines = lines[:-1]
    return lines


def run(command: str, folder: Path, programs: Sequence[Path] = ()) -> Outcome:
    """Run a command of a page as a reader's shell would, with folders of programs before others."""
    first = [*programs, Path(sys.executable).parent]
    own = {
        "PATH": os.pathsep.join([*map(str, first), os.environ["PATH"]]),
        "COLUMNS": "200",
        "PYTHONWARNINGS": "default",
        "OPENBLAS_NUM_THREADS": "1",
    }
    done = subprocess.run(
        ["bash", "-c", command],
        cwd=folder,
        env=os.environ | own,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        stdin=subprocess.DEVNULL,
        text=True,
        timeout=SECONDS,
        check=False,
    )
    return Outcome(
        _without_end([line.rstrip() for line in done.stdout.splitlines()]), done.returncode
    )


def difference(example: Example, outcome: Outcome) -> str | None:
    """Say how what was printed differs from what the page says, if it does."""
    if agrees(example.expected, outcome.printed) and (example.expected or outcome.code == 0):
        return None
    said, printed = "\n".join(example.expected), "\n".join(outcome.printed)
    return (
        f"$ {example.command}\n--- the page says\n{said}\n--- printed ({outcome.code})\n{printed}"
    )


def agrees(expected: list[str], printed: list[str]) -> bool:
    """Check output line by line; a page that shows no output says nothing about it.

    >>> agrees(["  cells: 64", "  ..."], ["  cells: 128", "  hidden: one record"])
    True
    >>> agrees(["  cells: 64"], ["  cells: 128", "  hidden: one record"])
    False
    >>> agrees(["from: age, ..."], ["from: age, sex"])
    True
    """
    if not expected:
        return True
    parts = [_pattern(line) for line in expected]
    return (
        re.fullmatch("".join(parts), "".join(f"{_masked(each)}\n" for each in printed)) is not None
    )


def _pattern(line: str) -> str:
    if line.strip() == _ANYTHING:
        return r"(?:.*\n)*?"
    return ".*".join(re.escape(part) for part in _masked(line).split(_ANYTHING)) + r"\n"


def _masked(line: str) -> str:
    """Put # for what varies, and one space for several.

    >>> _masked("4,496   (95 % confidence interval ≈-3,520.5 to 4,754)  ")
    '# (# % confidence interval # to #)'
    """
    return " ".join(_NUMBER.sub("#", _DIGEST.sub("#", line)).split())


def differences(page: Path, folder: Path, programs: Sequence[Path] = ()) -> list[str]:
    """Run all commands of a page in a folder; say what differs."""
    found = []
    for example in examples(page.read_text("utf-8")):
        said = difference(example, run(example.command, folder, programs))
        found += [] if said is None else [said]
    return found


def rewrite(page: Path, folder: Path) -> int:
    """Put what commands printed into the page, where it differs; return how many did."""
    lines = page.read_text("utf-8").splitlines()
    changes = []
    for example in examples("\n".join(lines)):
        outcome = run(example.command, folder)
        if example.shown and not agrees(example.expected or ["#"], outcome.printed):
            changes.append((example, outcome.printed))
    for example, printed in reversed(changes):
        lines[example.first : example.first + len(example.expected)] = printed
    page.write_text("\n".join(lines) + "\n", "utf-8")
    return len(changes)


def main(words: list[str]) -> int:
    """Compare pages with what their commands print, or write that into them."""
    writing = "--write" in words
    failed = False
    for name in (each for each in words if each != "--write"):
        with tempfile.TemporaryDirectory() as folder:
            if writing:
                print(f"{name}: {rewrite(Path(name), Path(folder))} outputs written")
                continue
            found = differences(Path(name), Path(folder))
        print(*found, sep="\n\n", end="\n" if found else "")
        print(f"{name}: {len(found)} differ")
        failed = failed or bool(found)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
