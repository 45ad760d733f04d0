"""What is hidden: the change to the data that a release must not reveal.

The promise is always "the release would have looked almost the same if ...".  What
follows the dots is a value, carried by the table, the receipt and the report.
"""

from dataclasses import asdict, dataclass
from typing import Any, ClassVar

from dpublish.errors import InvalidParameter, require_count


@dataclass(frozen=True)
class AddRemoveRecord:
    """One record is added or removed; the number of records is private."""

    name: ClassVar[str] = "add-remove-record"

    def describe(self) -> str:
        """Say in plain words what is hidden."""
        return "any one record were added to the table or removed from it"


@dataclass(frozen=True)
class ReplaceRecord:
    """One record is exchanged for another; the number of records is public."""

    name: ClassVar[str] = "replace-record"

    def describe(self) -> str:
        """Say in plain words what is hidden."""
        return "any one record of the table were exchanged for another"


@dataclass(frozen=True)
class AddRemoveUnit:
    """All rows that share one value of `column` (a person, a basket) are added or removed."""

    column: str
    name: ClassVar[str] = "add-remove-unit"

    def describe(self) -> str:
        """Say in plain words what is hidden."""
        return f"all rows of any one {self.column!r} were added to the table or removed from it"


@dataclass(frozen=True)
class UserInWindow:
    """All rows of one user within any `window` consecutive snapshots are added or removed."""

    column: str
    window: int
    name: ClassVar[str] = "user-in-window"

    def __post_init__(self) -> None:
        require_count(window=self.window)

    def describe(self) -> str:
        """Say in plain words what is hidden."""
        return (
            f"all rows of any one {self.column!r} within {self.window} consecutive snapshots "
            "were added or removed"
        )


Neighbours = AddRemoveRecord | ReplaceRecord | AddRemoveUnit | UserInWindow
_KINDS: dict[str, type[Neighbours]] = {
    kind.name: kind for kind in (AddRemoveRecord, ReplaceRecord, AddRemoveUnit, UserInWindow)
}


def to_plain(neighbours: Neighbours) -> dict[str, Any]:
    """Turn a notion of neighbours into plain values for a file.

    >>> to_plain(AddRemoveUnit("basket"))
    {'name': 'add-remove-unit', 'column': 'basket'}
    """
    return {"name": neighbours.name, **asdict(neighbours)}


def from_plain(plain: dict[str, Any]) -> Neighbours:
    """Read back what `to_plain` wrote."""
    settings = dict(plain)
    kind = _KINDS.get(settings.pop("name", ""))
    if kind is None:
        raise InvalidParameter("unknown notion of neighbours; a newer dpublish may have written it")
    return kind(**settings)
