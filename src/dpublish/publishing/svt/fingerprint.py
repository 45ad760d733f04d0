"""Notice that a table has changed: a hash of the files it is read from.

The hash is computed from private rows.  It is kept with the secrets of a run and never shown.
"""

from hashlib import sha256
from os import PathLike, fspath
from pathlib import Path

from dpublish.data.engines.addresses import is_address
from dpublish.data.sources import DATABASE_ENDINGS, find_files
from dpublish.errors import InvalidParameter, UnreadableData

_BLOCK = 1 << 20


def fingerprint(source: str | PathLike[str]) -> str:
    """Hash all files that a path, a pattern or a folder stands for, in the order of their names."""
    path = fspath(source)
    if not isinstance(path, str) or path.endswith(DATABASE_ENDINGS) or is_address(path):
        raise InvalidParameter(
            "an interactive run reads its table again for every query: name files of rows (CSV, "
            "Parquet or Arrow), by a path, a pattern or a folder"
        )
    whole = sha256()
    try:
        for name in find_files(path):
            content = sha256()
            with Path(name).open("rb") as file:
                while block := file.read(_BLOCK):
                    content.update(block)
            whole.update(content.digest())
    except OSError as error:
        raise UnreadableData(f"{path} cannot be read: {error.strerror}") from None
    return whole.hexdigest()
