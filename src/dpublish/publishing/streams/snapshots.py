"""The files of a stream's snapshots: how they are named, and which of a folder they are."""

from fnmatch import fnmatch
from glob import has_magic
from pathlib import Path

from dpublish.data.engines.arrow_reader import ARROW_ENDINGS, PARQUET_ENDINGS
from dpublish.data.engines.csv_reader import CSV_ENDINGS
from dpublish.errors import InputError, UnreadableData
from dpublish.methods.streams.listing import natural_key

_ENDINGS = (*PARQUET_ENDINGS, *ARROW_ENDINGS, *CSV_ENDINGS)
_UNFINISHED = (".tmp", ".part", ".partial")


def label_of(path: Path) -> str:
    """Name a snapshot after its file.

    >>> label_of(Path("taxis/2024-05-01T10.csv.gz"))
    '2024-05-01T10'
    """
    ending = max((e for e in _ENDINGS if path.name.endswith(e)), key=len, default=path.suffix)
    return path.name.removesuffix(ending)


def require_source(source: str) -> None:
    """Refuse the name of a file that is not there; a pattern may stand for several."""
    if not has_magic(source) and not Path(source).exists():
        raise UnreadableData(f"there is no file {source}")


def files_in(folder: Path, pattern: str | None) -> list[Path]:
    """List the snapshots in a folder in the natural order of their labels.

    What is hidden, or called as programs call what they have not finished, is left out.
    """
    try:
        found = [
            path for path in folder.iterdir() if _is_wanted(path.name, pattern) and path.is_file()
        ]
    except OSError as error:
        raise InputError(f"the folder {folder} cannot be read ({error.strerror})") from None
    return sorted(found, key=lambda path: (natural_key(label_of(path)), path.name))


def _is_wanted(name: str, pattern: str | None) -> bool:
    if name.startswith(".") or name.endswith(_UNFINISHED):
        return False
    return name.endswith(_ENDINGS) if pattern is None else fnmatch(name, pattern)
