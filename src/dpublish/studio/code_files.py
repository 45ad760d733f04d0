"""Files of codes in the studio's folder: public lists, and never a table that has a schema."""

from pathlib import Path

from dpublish.data.code_list import CODE_ENDINGS
from dpublish.errors import InvalidParameter
from dpublish.planning.start_files import ANSWERS
from dpublish.studio.desk import SCHEMAS, Desk

_READ = (*CODE_ENDINGS, ".json")


def list_codes(desk: Desk) -> list[str]:
    """List the files that may hold codes."""
    names = desk.list_files(CODE_ENDINGS)
    return [name for name in names if not _is_described(desk.files / name)]


def find_codes(desk: Desk, name: str) -> Path:
    """Find a file of codes or a tree in the folder; refuse a table, whose values are private."""
    path = desk.file(name)
    if not path.name.lower().endswith(_READ):
        raise InvalidParameter(f"the name of a file of codes must end in one of {', '.join(_READ)}")
    if _is_described(path):
        raise InvalidParameter(
            f"{path.name} has a schema of its own, so it is a table and no list of codes: its "
            "values are private; name a file that is public, or write the values"
        )
    return path


def _is_described(path: Path) -> bool:
    return any(path.with_suffix(ending).exists() for ending in (*SCHEMAS, ANSWERS))
