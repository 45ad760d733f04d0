"""Code lists: the values of a column, and groups of them, from a public CSV file.

```text
code,name,group,chapter
A00,Cholera,A00-A09,Infections
A01,Typhoid,A00-A09,Infections
```

The first column holds the codes unless another one is named.  Whatever a release needs of the
file is copied into its schema, so that it does not depend on the file.
"""

import csv
import io
from collections.abc import Sequence
from os import PathLike
from pathlib import Path
from typing import Any, NamedTuple

from dpublish.data.taxonomy import canonical_text
from dpublish.errors import InvalidSchema, require_known

CODE_ENDINGS = (".csv", ".tsv")
_MOST_BYTES = 256 << 20


class CodeList(NamedTuple):
    """A code list as it was read: names of its columns, and its rows, without blanks around."""

    path: Path
    header: tuple[str, ...]
    rows: list[list[str]]

    def column(self, name: str | None = None) -> list[str]:
        """Return a column by its name, or the first one."""
        index = self._index(name)
        return [row[index] for row in self.rows]

    def others(self, *names: str | None) -> tuple[str, ...]:
        """Name the columns that are not among `names`; None stands for the first one."""
        taken = {self._index(name) for name in names}
        return tuple(name for i, name in enumerate(self.header) if i not in taken)

    def _index(self, name: str | None) -> int:
        if name is None:
            return 0
        require_known(f"column of {self.path}", name, self.header)
        return self.header.index(name)


def read_codes(path: str | PathLike[str], column: str | None = None) -> tuple[str, ...]:
    """Read the codes of a CSV file with a header, for `column(..., values=read_codes(...))`.

    Args:
        path: The file; commas between its fields, or tabs if its name ends in .tsv.
        column: The column of codes; the first one if None.
    """
    return distinct_codes(read_code_list(path), column)


def read_code_list(path: str | PathLike[str]) -> CodeList:
    """Read a CSV file with a header; refuse one that is not quite in order."""
    path = Path(path)
    try:
        if path.stat().st_size > _MOST_BYTES:
            raise InvalidSchema(f"code list {path} has more than {_MOST_BYTES >> 20} MB")
        text = path.read_text(encoding="utf-8-sig")
    except OSError as failure:
        raise InvalidSchema(f"code list {path} cannot be read: {failure.strerror}") from None
    except UnicodeDecodeError:
        raise InvalidSchema(f"code list {path} is not UTF-8; save it as UTF-8") from None
    delimiter = "\t" if path.suffix.lower() == ".tsv" else ","
    try:
        lines = list(csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True))
    except csv.Error as failure:
        raise InvalidSchema(f"code list {path} is not CSV: {failure}") from None
    rows = [[field.strip() for field in line] for line in lines if line]
    if len(rows) < 2:
        raise InvalidSchema(f"code list {path} needs a header and at least one code below it")
    header = tuple(rows[0])
    _require_header(path, header)
    for number, row in enumerate(rows[1:], 1):
        if len(row) != len(header):
            raise InvalidSchema(
                f"code list {path}: code {number} ({row[0]!r}) has {len(row)} fields, and the "
                f"header has {len(header)}"
            )
    return CodeList(path, header, rows[1:])


def distinct_codes(codes: CodeList, column: str | None = None) -> tuple[str, ...]:
    """Return a column of a code list, whose values must be unique and none of them blank."""
    seen: dict[str, int] = {}
    found = codes.column(column)
    for number, code in enumerate(found, 1):
        text = canonical_text(code)
        if not text:
            raise InvalidSchema(f"code list {codes.path}: code {number} is blank; remove its row")
        if text in seen:
            raise InvalidSchema(
                f"code list {codes.path}: {code!r} is listed twice, as codes {seen[text]} and "
                f"{number}; every code must be unique"
            )
        seen[text] = number
    return tuple(found)


def code_tree(codes: CodeList, leaves: Sequence[str], groups: Sequence[str]) -> list[Any]:
    """Build a taxonomy of a code list; `groups` are the columns of groups, finest first.

    A code whose group is blank hangs under the next one.
    """
    columns = [codes.column(name) for name in reversed(groups)]
    tree: list[Any] = []
    known: dict[str, tuple[tuple[str, ...], list[Any]]] = {}
    for index, leaf in enumerate(leaves):
        inside = tree
        path: tuple[str, ...] = ()
        for names in columns:
            if not (name := names[index]):
                continue
            if name not in known:
                known[name] = (path, [])
                inside.append({name: known[name][1]})
            elif known[name][0] != path:
                raise InvalidSchema(
                    f"code list {codes.path}: {name!r} is in two groups; every group has one above"
                )
            path = (*path, name)
            inside = known[name][1]
        inside.append(leaf)
    return tree


def _require_header(path: Path, header: Sequence[str]) -> None:
    for name in header:
        if not name:
            raise InvalidSchema(f"code list {path}: a column of the header has no name")
        if header.count(name) > 1:
            raise InvalidSchema(f"code list {path}: two columns are called {name!r}")
