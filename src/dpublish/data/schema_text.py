"""Change the text of a schema file: set or remove keys of its tables, and keep all the rest.

A line that says already what it shall say stays as it is, with its layout and its comment; other
lines are written anew or put in.  The text is taken only if it then says what it said before and
the change; a file in which that cannot be done is refused, with the lines to write by hand.
"""

import hashlib
import json
import re
import tomllib
from collections.abc import Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dpublish.data.schema_edit import read_text
from dpublish.data.schema_file import parse_schema, read_columns, toml_key, toml_value
from dpublish.errors import InvalidParameter, InvalidSchema
from dpublish.storage.files import write_text

_TOKEN = re.compile(
    r'"""(?:\\.|[^\\])*?"""|\'\'\'.*?\'\'\'|"(?:\\.|[^"\\\n])*"|\'[^\'\n]*\'|#[^\n]*|[\[\]{}\n]',
    re.DOTALL,
)
_Path = tuple[str, ...]
_REST: _Path = ("", "rest")
"""What stands between tables: comments and blank lines."""


@dataclass
class _Block:
    """A table of the file: its name, and its lines with the header; the head has no name."""

    path: _Path
    lines: list[str]


def digest(text: str) -> str:
    """Return what tells one text of a file from another.

    >>> digest("a = 1")[:8]
    'b5bc1ffd'
    """
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def with_column(text: str, column: str, keys: Mapping[str, Any] | None) -> str:
    r"""Return a schema's text in which a column has these keys and no others, or is not there.

    >>> text = '[columns.age]  # in years\nkind = "integer"\nbounds = [0, 99]\n'
    >>> print(with_column(text, "age", {"kind": "integer", "bounds": [0, 120], "bins": 24}))
    [columns.age]  # in years
    kind = "integer"
    bounds = [0, 120]
    bins = 24
    <BLANKLINE>
    """
    wanted = _load(text)
    declared = _table(wanted, "columns")
    blocks = _blocks(text)
    if keys is None:
        declared.pop(column, None)
        return _checked(_without_column(blocks, column), wanted, ("columns", column), {})
    changes = dict.fromkeys(declared.get(column, {})) | dict(keys)
    declared[column] = dict(keys)
    path: _Path = ("columns", column)
    inline = next((block for block in blocks if block.path == path[:1]), None)
    if inline is not None and column in _keys(inline.lines):
        inline.lines = _set(inline.lines, {column: dict(keys)})
    else:
        blocks = _with_changes(blocks, path, changes)
    return _checked(blocks, wanted, path, keys)


def with_head(text: str, changes: Mapping[str, Any]) -> str:
    r"""Return a schema's text with other keys at its head, such as name; None removes a key.

    >>> print(with_head('name = "a"  # the table\n', {"name": "b", "unit": "patient"}))
    name = "b"  # the table
    unit = "patient"
    <BLANKLINE>
    """
    return _with_keys(text, (), changes)


def with_publication(text: str, changes: Mapping[str, Any]) -> str:
    """Return a schema's text with other words for what is published; None removes one."""
    return _with_keys(text, ("publication",), changes)


def replace_schema(path: Path, text: str, *, seen: str, column: str | None = None) -> None:
    """Write a schema's file anew, if it is still the one that was `seen` (its digest).

    A schema that could be read is never replaced by one that cannot.  In one with faults, such as
    a draft, no column gets a fault that it did not have, and `column` has none.
    """
    before = read_text(path)
    if digest(before) != seen:
        raise InvalidParameter(
            f"{path.name} has changed since this page was opened; open it again and repeat the "
            "change; nothing was written"
        )
    require_sound(text, before, path.parent, column)
    write_text(path, text, replaces=True)


def require_sound(text: str, before: str, folder: Path, column: str | None = None) -> None:
    """Refuse a text that is worse than the one before, or in which `column` has a fault."""
    faults = read_columns(text, folder).faults
    try:
        known = read_columns(before, folder).faults
    except InvalidSchema:
        known = faults  # nothing is worse than what cannot be read at all
    for name, fault in faults.items():
        if name not in known or name == column:
            raise InvalidSchema(fault)
    if not faults:
        parse_schema(text, folder)


def _with_keys(text: str, path: _Path, changes: Mapping[str, Any]) -> str:
    wanted = _load(text)
    given = {key: value for key, value in changes.items() if value is not None}
    if path and not given and path[0] not in wanted:
        return text
    table = _table(wanted, path[0]) if path else wanted
    for key in changes:
        table.pop(key, None)
    table.update(given)
    return _checked(_with_changes(_blocks(text), path, changes), wanted, path, given)


def _load(text: str) -> dict[str, Any]:
    try:
        return tomllib.loads(text)
    except (ValueError, RecursionError) as failure:
        raise InvalidSchema(f"the file is not TOML ({failure}); change it as text") from None


def _table(plain: dict[str, Any], key: str) -> dict[str, Any]:
    found = plain.setdefault(key, {})
    if not isinstance(found, dict):
        raise InvalidSchema(f"{key} is no table in this file; change it as text")
    return found


def _checked(blocks: list[_Block], wanted: Any, path: _Path, keys: Mapping[str, Any]) -> str:
    """Join the blocks; refuse a text that does not say what is wanted."""
    text = "".join(line for block in blocks for line in block.lines)
    try:
        if _plain(tomllib.loads(text)) == _plain(wanted):
            return text
    except ValueError:
        pass
    name = ".".join(map(toml_key, path))
    lines = "\n".join(f"{key} = {toml_value(value)}" for key, value in keys.items())
    raise InvalidSchema(
        f"the file cannot be changed without rewriting it; change {name or 'its head'} by hand, "
        f"as text{':' if lines else ''}\n{lines}".rstrip()
    )


def _plain(value: Any) -> Any:
    """Write what a file says so that types count, and a table of no columns does not."""
    said = deepcopy(value)
    if not said.get("columns", True):
        del said["columns"]
    return json.dumps(said, sort_keys=True, default=repr)


def _statements(text: str) -> list[str]:
    """Split a text of TOML into its lines; a value of several lines is in one of them."""
    found: list[str] = []
    start = depth = 0
    for token in _TOKEN.finditer(text):
        depth += token[0] in ("[", "{")
        depth -= token[0] in ("]", "}")
        if token[0] == "\n" and depth <= 0:
            found.append(text[start : token.end()])
            start, depth = token.end(), 0
    return [*found, text[start:] + _line_end(text)] if start < len(text) else found


def _line_end(text: str) -> str:
    return "\r\n" if "\r\n" in text else "\n"


def _blocks(text: str) -> list[_Block]:
    """Split a text of TOML into its tables."""
    found = [_Block((), [])]
    for line in _statements(text):
        if line.lstrip().startswith("["):
            found.append(_Block(_header(line), []))
        found[-1].lines.append(line)
    return found


def _header(line: str) -> _Path:
    """Return the path that a header names; one of a list of tables is nothing to change."""
    path: list[str] = []
    plain: Any = _load(line)
    while isinstance(plain, dict) and plain:
        name, plain = next(iter(plain.items()))
        path.append(name)
    return (*path, "[]") if isinstance(plain, list) else tuple(path)


def _said(line: str) -> tuple[str, Any] | None:
    """Return the key of a line and its value; None for a header, a comment or a blank."""
    if line.lstrip().startswith(("[", "#")) or not line.strip():
        return None
    return next(iter(_load(line).items()))


def _keys(lines: Sequence[str]) -> set[str]:
    return {found[0] for line in lines if (found := _said(line))}


def _with_changes(blocks: list[_Block], path: _Path, changes: Mapping[str, Any]) -> list[_Block]:
    """Set keys of a table, which is added if there is none; None removes a key."""
    depth = len(path)
    kept = [
        block
        for block in blocks
        if not depth  # what follows the head are tables, which stay
        or block.path[:depth] != path
        or not changes.keys() & set(block.path[depth : depth + 1])  # a value in a table of its own
    ]
    own = next((block for block in kept if block.path == path), None)
    if own is None:
        own = _add_block(kept, path)
    own.lines = _set(own.lines, changes)
    return kept


def _add_block(blocks: list[_Block], path: _Path) -> _Block:
    """Put a new table behind the last of its like; behind the head if there is none."""
    like = [i for i, block in enumerate(blocks) if block.path[:1] == path[:1]]
    index = like[-1] if like else len(blocks) - 1 if path[0] == "columns" else 0
    before = blocks[index].lines
    keys = _end_of_keys(before)
    tail = next((i for i in range(keys, len(before)) if not before[i].strip()), len(before))
    rest = before[tail:]
    del before[tail:]
    end = _line_end("".join(line for block in blocks for line in block.lines))
    gap = [end] if before else []
    found = _Block(path, [*gap, f"[{'.'.join(map(toml_key, path))}]{end}"])
    if not rest and index + 1 < len(blocks):
        rest = [end]
    blocks[index + 1 : index + 1] = [found, _Block(_REST, rest)]
    return found


def _end_of_keys(lines: Sequence[str]) -> int:
    """Return where the last key of a table, or its header, ends."""
    ends = [i for i, line in enumerate(lines) if _said(line) or line.lstrip().startswith("[")]
    return ends[-1] + 1 if ends else 0


def _set(lines: Sequence[str], changes: Mapping[str, Any]) -> list[str]:
    there = _keys(lines)
    waiting = {k: v for k, v in changes.items() if v is not None and k not in there}
    end = _line_end("".join(lines))
    written: list[str] = []
    for line in lines:
        found = _said(line)
        asked = next((key for key in waiting if _asks_for(line, key)), None)
        if asked is not None:
            written.append(_line(asked, waiting.pop(asked), end))
        elif found is None or found[0] not in changes or _is_same(found[1], changes[found[0]]):
            written.append(line)
        elif changes[found[0]] is not None:
            written.append(_line(*found[:1], changes[found[0]], end, _comment(line)))
    new = [_line(key, value, end) for key, value in waiting.items()]
    index = _end_of_keys(written) or _end_of_text(written)
    return [*written[:index], *new, *written[index:]]


def _end_of_text(lines: Sequence[str]) -> int:
    filled = [i for i, line in enumerate(lines) if line.strip()]
    return filled[-1] + 1 if filled else 0


def _line(key: str, value: Any, end: str, comment: str = "") -> str:
    text = f"{toml_key(key)} = {toml_value(value)}{comment}\n"
    return text.replace("\n", end)


def _asks_for(line: str, key: str) -> bool:
    """Check whether a comment of a draft asks to fill in a key."""
    found = re.fullmatch(rf"\s*#\s*{re.escape(key)}\s*=\s*(.*)", line.rstrip(), re.DOTALL)
    return found is not None and ("fill in" in found[1] or found[1].startswith("[ ,"))


def _comment(line: str) -> str:
    """Return the comment behind a value."""
    last = [token for token in _TOKEN.finditer(line) if token[0].startswith("#")]
    if not last or last[-1].end() < len(line.rstrip()):
        return ""
    blanks = line[: last[-1].start()]
    return blanks[len(blanks.rstrip()) :] + last[-1][0].rstrip()


def _is_same(one: Any, other: Any) -> bool:
    return json.dumps(one, default=repr) == json.dumps(other, default=repr)


def _without_column(blocks: list[_Block], column: str) -> list[_Block]:
    """Remove a column's tables; what stands behind a blank line after them stays."""
    path = ("columns", column)
    kept: list[_Block] = []
    for block in blocks:
        if block.path[:2] == path:
            rest = block.lines[_end_of_keys(block.lines) :]
            blank = next((i for i, line in enumerate(rest) if not line.strip()), len(rest))
            kept.append(_Block(_REST, rest[blank + 1 :]))
        elif block.path == ("columns",):
            kept.append(_Block(block.path, _set(block.lines, {column: None})))
        else:
            kept.append(block)
    return kept
