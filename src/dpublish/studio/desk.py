"""What the studio works on: a ledger, a folder of releases, and a folder of tables and schemas."""

import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from dpublish.errors import InputError, InvalidParameter, require_known
from dpublish.ledger.ledger import Ledger
from dpublish.plots.style import shortened
from dpublish.storage.address import is_address, shown_location
from dpublish.storage.public_address import refuse_secret

TABLES = (".csv", ".tsv", ".parquet", ".arrow", ".feather", ".duckdb", ".csv.gz")
"""How the names of files end that may hold a table."""
SCHEMAS = (".toml",)
KEYS = (".key",)
STREAM = ".stream"
"""How the names of files end that hold the state of a stream."""
BESIDE = "releases"
"""Where the studio puts the states of streams: beside the releases."""
MOST_FILES = 500
"""At most so many files are offered; more make no list that one can read."""
_DEPTH = 2
_LONGEST = 1_000
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")


class Source(NamedTuple):
    """Where a table is: a file or an address, and its name in a database."""

    location: str
    table: str | None = None


def read_sources(given: Iterable[str]) -> dict[str, Source]:
    """Read what names tables elsewhere: `NAME=ADDRESS`, and `#TABLE` of a database.

    >>> read_sources(["visits=postgresql://db.local/clinic#visits"])["visits"].table
    'visits'
    """
    found = {}
    for text in given:
        name, _, where = text.partition("=")
        location, _, table = where.partition("#")
        if not _NAME.fullmatch(name) or not location:
            raise InvalidParameter(
                f"--source {text!r} must look like visits=postgresql://HOST/DATABASE#TABLE"
            )
        refuse_secret(location, "put it where the database's own client looks for it")
        found[name] = Source(location, table or None)
    return found


@dataclass(frozen=True)
class Desk:
    """Where the studio finds and puts things; it reaches nothing else on the computer.

    Attributes:
        ledger: The ledger's file or address; it may not exist yet.
        releases: The folder of the releases.
        files: The folder in which tables, schemas, code lists and keys lie.
        sources: Tables that lie elsewhere, in databases for instance, by their names.
    """

    ledger: str
    releases: Path
    files: Path
    sources: Mapping[str, Source] = field(default_factory=dict)

    @property
    def shown_ledger(self) -> str:
        """The ledger, without anything secret."""
        return shown_location(self.ledger)

    @property
    def has_ledger(self) -> bool:
        """Whether there is a ledger to open; of one on a server that is seen when it is opened."""
        return is_address(self.ledger) or Path(self.ledger).exists()

    @contextmanager
    def open_ledger(self) -> Iterator[Ledger]:
        """Open the ledger, and close it again."""
        with Ledger(self.ledger) as opened:
            yield opened

    def list_files(self, endings: tuple[str, ...]) -> list[str]:
        """List the files of the folder with such endings, by their paths within it."""
        found: list[str] = []
        for path in _walk(self.files, _DEPTH):
            if path.name.endswith(endings):
                found.append(path.relative_to(self.files).as_posix())
            if len(found) == MOST_FILES:
                break
        return sorted(found)

    def list_tables(self) -> list[str]:
        """List the tables that there are: named sources, and files of the folder."""
        return [*self.sources, *self.list_files(TABLES)]

    def source(self, name: str) -> Source:
        """Find a table by its name."""
        return self.sources.get(name) or Source(str(self.file(name)))

    def file(self, name: str) -> Path:
        """Find a file of the folder; refuse whatever lies elsewhere, behind a link for instance."""
        path = self._within(self.files, name)
        if not path.is_file():
            raise InputError(f"there is no file {name!r} in {self.files}")
        return path

    def schema(self, name: str) -> Path:
        """Find a schema's file; a table is never opened as one, as a refusal would quote it."""
        path = self.file(name)
        if not path.name.endswith(SCHEMAS):
            raise InvalidParameter(f"{name!r} is no schema file; its name must end in .toml")
        return path

    def new_file(self, name: str) -> Path:
        """Name a file to create in the folder; what is there is never replaced."""
        path = self._within(self.files, name)
        _require_name(name)
        if path.exists() or path.is_symlink():
            raise InvalidParameter(f"{name} exists already; choose another name")
        return path

    def list_releases(self) -> list[str]:
        """List the folders that hold a release or a stream, the newest first."""
        if not self.releases.is_dir():
            return []
        found = [
            path
            for path in self.releases.iterdir()
            if path.is_dir() and not path.is_symlink() and _NAME.fullmatch(path.name)
            if (path / "release.json").is_file() or (path / "stream.json").is_file()
        ]
        return [path.name for path in sorted(found, key=lambda each: -each.stat().st_mtime)]

    def release(self, name: str) -> Path:
        """Find a release of the folder by its name."""
        _require_name(name)
        path = self._within(self.releases, name)
        if not path.is_dir():
            raise InputError(f"there is no release {name!r} in {self.releases}")
        return path

    def new_release(self, name: str) -> Path:
        """Name a release to create; what is there is never replaced."""
        _require_name(name)
        path = self._within(self.releases, name)
        if path.exists():
            raise InvalidParameter(f"the release {name} exists already; choose another name")
        return path

    def list_streams(self) -> list[tuple[str, str]]:
        """List the states of streams: beside the releases or among the files, and their names."""
        found = [
            (folder, path.name.removesuffix(STREAM))
            for folder, path_of in self._stream_folders().items()
            for path in _walk(path_of, 1)
            if path.name.endswith(STREAM) and _NAME.fullmatch(path.name)
        ]
        return sorted(found)[:MOST_FILES]

    def stream(self, folder: str, name: str) -> Path:
        """Find the state of a stream."""
        path = self.new_stream(folder, name)
        if not path.is_file():
            raise InputError(f"there is no stream {name!r} in {self._stream_folders()[folder]}")
        return path

    def new_stream(self, folder: str, name: str) -> Path:
        """Name the state of a stream, which may be there already."""
        _require_name(name)
        require_known("folder", folder, tuple(self._stream_folders()))
        return self._within(self._stream_folders()[folder], name + STREAM)

    def _stream_folders(self) -> dict[str, Path]:
        """Return where states of streams lie; the folders may be one and the same."""
        both = {BESIDE: self.releases, "files": self.files}
        return {BESIDE: self.releases} if self.releases == self.files else both

    def free_name(self, start: str) -> str:
        """Return the next free name of a release, such as `people-histogram-1`."""
        plain = re.sub(r"[^A-Za-z0-9_-]+", "-", start).strip("-") or "release"
        number = 1
        while (self.releases / f"{plain}-{number}").exists():
            number += 1
        return f"{plain}-{number}"

    @staticmethod
    def _within(folder: Path, name: str) -> Path:
        """Resolve a path; refuse one that does not lie in the folder."""
        outside = InvalidParameter(f"{shortened(name)!r} is not in the studio's folder {folder}")
        if len(name) > _LONGEST:
            raise outside
        try:
            base, path = folder.resolve(), (folder / name).resolve()
        except (OSError, ValueError):
            raise outside from None
        hidden = any(part.startswith(".") for part in Path(name).parts)
        if hidden or Path(name).is_absolute() or base not in path.parents:
            raise outside
        return path


def _require_name(name: str) -> None:
    if not _NAME.fullmatch(name):
        raise InvalidParameter(
            f"{shortened(name)!r} cannot be a name here: use letters, digits, and . _ -"
        )


def _walk(folder: Path, depth: int) -> Iterator[Path]:
    """Iterate over the files of a folder and of those within it, without links and hidden ones."""
    try:
        entries = sorted(folder.iterdir())
    except OSError:
        return
    for path in entries:
        if path.name.startswith(".") or path.is_symlink():
            continue
        if path.is_file():
            yield path
        elif depth > 1 and path.is_dir() and not (path / "release.json").exists():
            yield from _walk(path, depth - 1)
