"""Enter bounds of one column in a schema file, and leave the rest of the file as it is.

Comments, order and layout stay: one line is put in (and bins that do not fit the bounds are
written anew), and only if the file then says what it said before and the new bounds.  A file in
which that cannot be done is refused, with the line to write by hand.
"""

import json
import re
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from dpublish.data.schema_file import toml_key, toml_value
from dpublish.errors import InputError, InvalidSchema

_HEADER = re.compile(r"\s*\[\s*columns\s*\.\s*(?P<key>.+?)\s*\]\s*(#.*)?")
_ANY_HEADER = re.compile(r"\[.*\]\s*(#.*)?")
_BOUNDS_TO_FILL_IN = re.compile(r"\s*#\s*bounds\s*=.*")
_KIND = re.compile(r"\s*kind\s*=.*")
_BINS = re.compile(r"(?P<key>\s*bins\s*=\s*)[^#\s]+(?P<rest>.*)", re.S)


def read_text(path: Path) -> str:
    """Read a schema file as text; line ends stay what they are."""
    try:
        with path.open(encoding="utf-8", newline="") as file:
            return file.read()
    except OSError as failure:
        raise InputError(f"cannot read the schema {path}: {failure.strerror}") from None
    except ValueError as failure:
        raise InvalidSchema(f"{path}: {failure}") from None


def read_plain(path: Path) -> tuple[str, dict[str, Any]]:
    """Read a schema file as text and as plain values, which may lack what is still unknown."""
    text = read_text(path)
    try:
        plain = json.loads(text) if _is_json(path) else tomllib.loads(text)
    except (ValueError, RecursionError) as failure:
        raise InvalidSchema(f"{path}: {failure}") from None
    if not isinstance(plain, dict) or not isinstance(plain.get("columns", {}), dict):
        raise InvalidSchema(f"{path}: columns must be a table for each column, [columns.NAME]")
    return text, plain


def with_keys(path: Path, text: str, column: str, keys: Mapping[str, Any]) -> str:
    r"""Return the text of a schema file in which a column has some more keys, or other bins.

    >>> draft = '[columns.cost]\nkind = "numeric"\n# bounds = [ , ]  # fill in\nbins = 8\n'
    >>> print(with_keys(Path("a.toml"), draft, "cost", {"bounds": [0, 500]}))
    [columns.cost]
    kind = "numeric"
    bounds = [0, 500]
    bins = 8
    <BLANKLINE>
    """
    if _is_json(path):
        plain = json.loads(text)
        plain.setdefault("columns", {}).setdefault(column, {}).update(keys)
        return json.dumps(plain, indent=2, ensure_ascii=False) + "\n"
    edited = _edit(text, column, keys)
    if not _says(edited, text, column, keys):
        lines = "\n".join(_lines(keys))
        raise InvalidSchema(
            f"{path}: cannot be changed without rewriting it; write the column as a table "
            f"[columns.{toml_key(column)}] of its own, or add by hand:\n{lines}"
        )
    return edited


def _is_json(path: Path) -> bool:
    return path.suffix.lower() == ".json"


def _edit(text: str, column: str, keys: Mapping[str, Any]) -> str:
    """Put the lines where a comment asks for bounds, after the kind, or into a new table."""
    lines = text.splitlines(keepends=True)
    end = "\r\n" if lines and lines[0].endswith("\r\n") else "\n"
    start = next((i for i, line in enumerate(lines) if _is_header(line, column)), None)
    if start is not None and "bins" in keys:
        lines, is_written = _replace_bins(lines, start, keys["bins"])
        keys = {key: value for key, value in keys.items() if key != "bins" or not is_written}
    new = [line + end for line in _lines(keys)]
    if start is None:
        gap = [end] if lines and lines[-1].endswith("\n") else [end, end] if lines else []
        return "".join([*lines, *gap, f"[columns.{toml_key(column)}]{end}", *new])
    if not lines[start].endswith("\n"):
        lines[start] += end
    here = range(start + 1, _block_end(lines, start))
    asked = next((i for i in here if _BOUNDS_TO_FILL_IN.fullmatch(lines[i].rstrip())), None)
    if asked is not None and "kind" not in keys:
        return "".join([*lines[:asked], *new, *lines[asked + 1 :]])
    kind = next((i for i in here if _KIND.fullmatch(lines[i].rstrip())), start)
    if not lines[kind].endswith("\n"):
        lines[kind] += end
    return "".join([*lines[: kind + 1], *new, *lines[kind + 1 :]])


def _replace_bins(lines: list[str], start: int, bins: Any) -> tuple[list[str], bool]:
    """Write other bins where a table names some; tell whether it does."""
    for i in range(start + 1, _block_end(lines, start)):
        found = _BINS.fullmatch(lines[i])
        if found is not None:
            line = f"{found['key']}{toml_value(bins)}{found['rest']}"
            return [*lines[:i], line, *lines[i + 1 :]], True
    return lines, False


def _lines(keys: Mapping[str, Any]) -> Sequence[str]:
    return [f"{key} = {toml_value(value)}" for key, value in keys.items()]


def _is_header(line: str, column: str) -> bool:
    found = _HEADER.fullmatch(line.rstrip())
    if found is None:
        return False
    try:
        return tomllib.loads(f"{found['key']} = 0") == {column: 0}
    except ValueError:
        return False


def _block_end(lines: Sequence[str], start: int) -> int:
    """Find where the table ends; a list in it that looks like a header ends it too early."""
    after = range(start + 1, len(lines))
    return next((i for i in after if _ANY_HEADER.fullmatch(lines[i].strip())), len(lines))


def _says(edited: str, text: str, column: str, keys: Mapping[str, Any]) -> bool:
    """Check that a text says the same as before, and the new keys of a column."""
    wanted = tomllib.loads(text)
    wanted.setdefault("columns", {}).setdefault(column, {}).update(keys)
    try:
        return tomllib.loads(edited) == wanted
    except ValueError:
        return False
