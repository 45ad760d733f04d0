"""The steps that each record of a stream is taken through: fixed at its start, the same ever after.

A filter that changed from step to step would make one person's rows count for one thing in one
step and for another in the next, and no receipt could name it.  So the state holds the steps, and
the receipt their texts.  A lookup is kept as the name of its file and that file's digest: whoever
changes the file has to start a new stream.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from os import fspath
from pathlib import Path
from typing import Any

from dpublish.data.lookup import Lookup
from dpublish.data.steps import read_steps
from dpublish.errors import InvalidParameter


@dataclass(frozen=True)
class StreamSteps:
    """The steps of a stream, as its state holds them."""

    where: str | None = None
    derive: tuple[str, ...] = ()
    lookups: tuple[Lookup, ...] = ()
    texts: tuple[str, ...] = ()

    @classmethod
    def of(
        cls,
        where: str | None,
        derive: str | Sequence[str],
        lookups: Lookup | Sequence[Lookup],
    ) -> "StreamSteps":
        """Parse the steps of a stream that is started; refuse what a state cannot hold."""
        tables = [lookups] if isinstance(lookups, Lookup) else lookups
        files = tuple(Lookup(_path(each), each.on, each.key) for each in tables)
        parsed = read_steps(where, derive, files)
        texts = (derive,) if isinstance(derive, str) else tuple(derive)
        return cls(where, texts, files, parsed.texts)

    @classmethod
    def from_dict(cls, plain: Mapping[str, Any] | None) -> "StreamSteps":
        """Read back what `to_dict` wrote; a state from before there were steps has none."""
        if not plain:
            return cls()
        lookups = tuple(Lookup(path, on, key) for path, on, key in plain["lookups"])
        return cls(plain["where"], tuple(plain["derive"]), lookups, tuple(plain["texts"]))

    def to_dict(self) -> dict[str, Any]:
        """Turn the steps into plain values for the state; nothing if there are none."""
        if not self.texts:
            return {}
        return {
            "where": self.where,
            "derive": list(self.derive),
            "lookups": [[fspath(each.source), each.on, each.key] for each in self.lookups],
            "texts": list(self.texts),
        }

    def options(self) -> dict[str, Any]:
        """Return the steps as options of `open_table`."""
        return {"where": self.where, "derive": self.derive, "lookups": self.lookups}


NO_STEPS = StreamSteps()
"""Records as they are."""


def _path(lookup: Lookup) -> str:
    if not isinstance(lookup.source, str | Path):
        raise InvalidParameter("a stream looks up in files only: give the lookup by its path")
    return str(Path(lookup.source).absolute())
