"""Privacy mutants: small changes to the source, each of which would break a guarantee.

A mutant is a row of a TOML file in this folder.  It names an object by its qualified name, the
code to look for inside that object and its replacement, and the tests that must fail.
Code is compared token by token, so that reformatting and comments do not matter.
"""

import ast
import io
import re
import textwrap
import token
import tokenize
import tomllib
from dataclasses import dataclass
from functools import lru_cache
from itertools import zip_longest
from pathlib import Path
from typing import Any, NamedTuple

FOLDER = Path(__file__).resolve().parent
ROOT = FOLDER.parent.parent

_LAYOUT = {token.NEWLINE, token.INDENT, token.DEDENT, token.ENDMARKER, tokenize.NL, token.COMMENT}


class NotApplicable(Exception):
    """A row does not fit the source as it is now."""


@dataclass(frozen=True)
class Edit:
    """Replace the code `old`, which occurs once in the object `name`, by `new`."""

    name: str
    old: str
    new: str


@dataclass(frozen=True)
class Mutant:
    """A privacy bug, and the tests that must notice it.

    Attributes:
        area: Name of the file that holds the row.
        title: What is wrong, in one sentence; no two mutants share it.
        edits: What is replaced; more than one where two pieces of code must agree.
        tests: Files or node ids, as pytest takes them, from the project's root.
    """

    area: str
    title: str
    edits: tuple[Edit, ...]
    tests: tuple[str, ...]


class Span(NamedTuple):
    """Lines of a file that hold an object, counted from 1; the last one is included."""

    first: int
    last: int


def read_mutants(folder: Path = FOLDER) -> list[Mutant]:
    """Read every row of every file in `folder`, by area."""
    return [
        _read_row(path.stem, row)
        for path in sorted(folder.glob("*.toml"))
        for row in tomllib.loads(path.read_text(encoding="utf-8"))["mutant"]
    ]


def _read_row(area: str, row: dict[str, Any]) -> Mutant:
    edits = [{key: row[key] for key in ("name", "old", "new")}, *row.pop("also", [])]
    if unknown := set(row) - {"title", "name", "old", "new", "tests"}:
        raise ValueError(f"{area}.toml, {row['title']!r}: unknown keys {sorted(unknown)}")
    return Mutant(area, row["title"], tuple(Edit(**edit) for edit in edits), tuple(row["tests"]))


def mutated_files(mutant: Mutant, source: Path) -> dict[Path, str]:
    """Compute the text of each file that the mutant changes, by its path below `source`.

    Raises:
        NotApplicable: An object or the old code in it is missing or ambiguous, or the new code
            is not Python or the same.
    """
    texts: dict[Path, str] = {}
    for edit in mutant.edits:
        path, attributes = find_module(edit.name, source)
        text = texts.get(path) or (source / path).read_text(encoding="utf-8")
        texts[path] = apply_edit(text, attributes, edit)
        _require_python(texts[path], edit)
    return texts


def find_module(name: str, source: Path) -> tuple[Path, tuple[str, ...]]:
    """Split a qualified name into the file of its module, below `source`, and the rest."""
    parts = name.split(".")
    for count in range(len(parts) - 1, 0, -1):
        stem = Path(*parts[:count])
        for path in (stem.with_suffix(".py"), stem / "__init__.py"):
            if (source / path).is_file():
                return path, tuple(parts[count:])
    raise NotApplicable(f"{name}: there is no such module")


def apply_edit(text: str, attributes: tuple[str, ...], edit: Edit) -> str:
    """Replace the old code inside the object; further lines of the new code are indented."""
    span = _find_span(_parse(text), attributes, edit.name)
    found = [each for each in _code_tokens(text) if span.first <= each.start[0] <= span.last]
    wanted = _fragment(edit.old)
    if wanted == _fragment(edit.new):
        raise NotApplicable(f"{edit.name}: the new code is the old")
    strings = [each.string for each in found]
    starts = [
        index
        for index in range(len(strings) - len(wanted) + 1)
        if strings[index : index + len(wanted)] == wanted
    ]
    if len(starts) != 1:
        raise NotApplicable(f"{edit.name}: the old code occurs {len(starts)} times, not once")
    first, last = found[starts[0]], found[starts[0] + len(wanted) - 1]
    lines = text.splitlines(keepends=True)
    start, end = _offset(lines, first.start), _offset(lines, last.end)
    indent = re.match(" *", lines[first.start[0] - 1])
    new = edit.new.strip().replace("\n", "\n" + (indent.group() if indent else ""))
    return text[:start] + new + text[end:]


def _find_span(tree: ast.Module, attributes: tuple[str, ...], name: str) -> Span:
    body: list[ast.stmt] = tree.body
    node: ast.stmt | None = None
    for attribute in attributes:
        node = next((each for each in body if attribute in _names(each)), None)
        if node is None:
            raise NotApplicable(f"{name}: there is no {attribute} in its module")
        body = getattr(node, "body", [])
    if node is None:
        raise NotApplicable(f"{name}: name an object of the module")
    return Span(node.lineno, node.end_lineno or node.lineno)


def _names(node: ast.stmt) -> set[str]:
    """The names that a statement defines."""
    if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
        return {node.name}
    if isinstance(node, (ast.Assign, ast.AnnAssign)):
        targets = node.targets if isinstance(node, ast.Assign) else [node.target]
        return {each.id for target in targets for each in ast.walk(target) if _is_name(each)}
    return set()


def _is_name(node: ast.AST) -> bool:
    return isinstance(node, ast.Name)


def _fragment(code: str) -> list[str]:
    return [each.string for each in _code_tokens(textwrap.dedent(code).strip())]


@lru_cache(maxsize=32)
def _parse(text: str) -> ast.Module:
    return ast.parse(text)


@lru_cache(maxsize=32)
def _code_tokens(text: str) -> list[tokenize.TokenInfo]:
    """Tokens that carry meaning: no layout, no comments, no comma before a closing bracket."""
    lines = io.StringIO(text)
    try:
        tokens = list(tokenize.generate_tokens(lines.readline))
    except (tokenize.TokenError, IndentationError) as error:
        raise NotApplicable(f"{text!r} has an open bracket or uneven lines: {error}") from None
    found = [each for each in tokens if each.type not in _LAYOUT]
    return [
        each
        for each, after in zip_longest(found, found[1:])
        if each.string != "," or after is None or after.string not in (")", "]", "}")
    ]


def _offset(lines: list[str], position: tuple[int, int]) -> int:
    row, column = position
    return sum(map(len, lines[: row - 1])) + column


def _require_python(text: str, edit: Edit) -> None:
    try:
        ast.parse(text)
    except SyntaxError as error:
        raise NotApplicable(f"{edit.name}: the new code is not Python: {error}") from None
