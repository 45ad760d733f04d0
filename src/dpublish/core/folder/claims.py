"""Compare what a release's head claims with limits, before anything of that size is made.

A column of a million bins is claimed in a few bytes, and takes hundreds of megabytes when its
schema is read.  So the claims of all schemas in a head are added up first.
"""

from collections.abc import Iterator
from typing import Any

from dpublish.data.schema import Schema
from dpublish.errors import CorruptRelease, InvalidParameter

MOST_VALUES = 3_000_000
"""Most values (bins, categories) of all columns of all schemas of a release."""


def require_modest_claims(head: Any) -> None:
    """Refuse a head whose schemas claim more values than any release has; reads plain values."""
    total = 0
    for claim in _claims(head):
        total += claim
        if total > MOST_VALUES:
            raise CorruptRelease(
                f"the columns of the release claim more than {MOST_VALUES:,} values; nothing "
                "that dpublish publishes does: ask whoever sent it"
            )


def require_loadable(schema: Schema, parts: int = 0) -> None:
    """Refuse, before anything is paid for, a schema that could not be read back from a release.

    `parts` says how many parts of the release may repeat the schema.
    """
    values = sum(column.size for column in schema.columns) * (1 + parts)
    if values > MOST_VALUES:
        raise InvalidParameter(
            f"the columns have {values:,} values in all, over all parts of the release, and a "
            f"release is opened only if they have at most {MOST_VALUES:,}; take fewer bins or "
            "leave columns out of the schema"
        )


def _claims(head: Any) -> Iterator[int]:
    waiting = [head]
    while waiting:
        value = waiting.pop()
        if isinstance(value, dict):
            yield _claim(value)
            waiting.extend(value.values())
        elif isinstance(value, list):
            waiting.extend(value)


def _claim(column: dict[str, Any]) -> int:
    """Return how many values a column claims without listing them."""
    bins, bounds = column.get("bins"), column.get("bounds")
    if isinstance(bins, int):
        return max(bins, 0)
    if isinstance(bounds, list) and all(isinstance(end, int) for end in bounds):
        return max(bounds, default=0) - min(bounds, default=0)
    return 0
