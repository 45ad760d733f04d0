"""The rows of "What it cost": parts that were paid for once are told in one row."""

from fractions import Fraction
from itertools import accumulate
from typing import NamedTuple

from dpublish.privacy.epsilon import format_epsilon
from dpublish.privacy.receipt import Receipt

_DIGITS = "0123456789"


class ShareRow(NamedTuple):
    """What it was for, its epsilon, and its part of the whole in percent."""

    name: str
    epsilon: str
    percent: str


def share_rows(receipt: Receipt) -> list[ShareRow]:
    """List the shares; those of disjoint parts that differ by a number only are one row."""
    disjoint = set(receipt.parallel)
    parts: dict[tuple[str, Fraction], list[str]] = {}
    for purpose, share in receipt.shares:
        parts.setdefault((_without_part(purpose, disjoint), share), []).append(purpose)
    return [
        ShareRow(
            _told(name, purposes),
            format_epsilon(share),
            f"{float(100 * share / receipt.epsilon):.4g}",
        )
        for (name, share), purposes in parts.items()
    ]


def _without_part(purpose: str, disjoint: set[str]) -> str:
    """Take off the numbers of parts, wherever a budget was shared over disjoint ones."""
    steps = purpose.split("/")
    above = ["", *accumulate(steps, "{}/{}".format)]
    return "/".join(
        step.rstrip(_DIGITS).rstrip("- ") if before in disjoint and step[-1:] in _DIGITS else step
        for before, step in zip(above, steps, strict=False)
    )


def _told(name: str, purposes: list[str]) -> str:
    if len(purposes) == 1:
        return purposes[0]
    return f"{name} ({len(purposes):,} parts of different records, paid for once)"
