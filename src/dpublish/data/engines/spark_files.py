"""Notice that the files of a Spark table were changed, or removed, since it was opened.

Spark lists the files of a table once and reads them in every job.  A column that is gone from
a file would be read as missing values.  So length and time of each file are compared before
and after every job, as for local files; they are never shown.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from dpublish.data.engines.source import quietly
from dpublish.data.engines.spark_plan import list_files
from dpublish.errors import UnreadableData


@dataclass(frozen=True)
class SparkFiles:
    """The files that a Spark table reads: none, if it is not made of files."""

    label: str
    session: Any
    paths: tuple[str, ...] = ()
    states: Mapping[str, tuple[int, int]] = field(default_factory=dict)

    @classmethod
    def of(cls, data: Any, label: str) -> "SparkFiles":
        """Look at the files of a DataFrame."""
        message = f"the files of {label} cannot be listed; check that they are there"
        paths = list_files(data, label)  # as analyzed: what is cached later names no files
        found = cls(label, data.sparkSession, paths)
        return cls(label, data.sparkSession, paths, quietly(found._look, message))

    @classmethod
    def none(cls, label: str, session: Any) -> "SparkFiles":
        """Stand for rows that are not read from files."""
        return cls(label, session)

    def require_same(self) -> None:
        """Refuse files that are gone, or are not as they were."""
        if not self.paths:
            return
        message = f"{self.label} was changed or dropped since it was opened; open it anew"
        if quietly(self._look, message) != self.states:
            raise UnreadableData(message)

    def _look(self) -> dict[str, tuple[int, int]]:
        """Return length and time of each file, by one listing of each folder."""
        context = self.session.sparkContext
        hadoop, uri = context._jvm.org.apache.hadoop.fs, context._jvm.java.net.URI
        paths = [hadoop.Path(uri(path)) for path in self.paths]
        folders = {path.getParent().toString(): path.getParent() for path in paths}
        listed: dict[str, tuple[int, int]] = {}
        for folder in folders.values():
            system = folder.getFileSystem(context._jsc.hadoopConfiguration())
            for status in system.listStatus(folder):
                state = status.getLen(), status.getModificationTime()
                listed[status.getPath().toString()] = state
        return {path.toString(): listed[path.toString()] for path in paths}
