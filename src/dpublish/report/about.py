"""What a page says to readers who do not know the release: what it is, for whom, what it reveals.

All of it follows from the receipt, from what the owner states in the schema, and from public
words about the method.
"""

from collections.abc import Sequence
from datetime import datetime
from fractions import Fraction
from typing import Any

from dpublish.core.catalog import CATALOG, STREAMS
from dpublish.core.released import Release
from dpublish.privacy.epsilon import format_rounded
from dpublish.privacy.levels import LevelAmounts
from dpublish.privacy.meaning import (
    PRIORS,
    least_sure,
    most_sure,
    percent_at_least,
    percent_at_most,
)
from dpublish.privacy.receipt import Receipt
from dpublish.report.section import Listing, Section

_MOST_LEVELS = 8
"""Levels that a table lists; of more, the first and the last ones."""
ANYONE = "anyone; the guarantee does not depend on who reads it, or on what they know"
NOT_PRIVATE = "those who try things out; it is not private, and no one else should get it"


def about(release: Release) -> Section:
    """Say what a release is and for whom, and what its owner states of it."""
    receipt, stated = release.receipt, dict(statement_of(release))
    stated.pop("title", None)
    description = stated.pop("description", None)
    audience = stated.pop("audience", None) or (ANYONE if receipt.is_private else NOT_PRIVATE)
    known = CATALOG.get(receipt.method) or STREAMS.get(receipt.method)
    published = {} if known is None else {"it publishes": known.publishes}
    return Section(
        "What this is",
        [] if description is None else [description],
        pairs={**published, "it is for": audience, **stated},
    )


def statement_of(release: Release) -> dict[str, str]:
    """Return what the owner states of the publication in its schema."""
    stated = release.schema.publication
    return {} if stated is None else stated.to_dict()


def what_is_learned(receipt: Receipt) -> list[Listing]:
    """Tabulate how sure anyone can become at most; nothing if there is no guarantee."""
    if not receipt.is_private:
        return []
    claim = receipt.neighbors.claim()
    if len({paid for _, paid in receipt.personal}) > 1:
        return [_by_level(receipt.personal, claim)]
    rows = [
        [
            percent_at_most(most_sure(prior, Fraction(0))),
            percent_at_least(least_sure(prior, receipt.epsilon)),
            percent_at_most(most_sure(prior, receipt.epsilon)),
        ]
        for prior in PRIORS
    ]
    headers = ["held likely before", "at least, after it", "at most, after it"]
    caption = f"How likely an attacker can hold {_claimed(claim)}."
    return [Listing(headers, rows, caption, is_folded=True)]


def _claimed(claim: str) -> str:
    return f"it {claim}, whatever else they know"


def _by_level(amounts: LevelAmounts, claim: str) -> Listing:
    rows = [
        [
            format_rounded(level),
            format_rounded(paid),
            *(percent_at_most(most_sure(prior, paid)) for prior in PRIORS),
        ]
        for level, paid in amounts
    ]
    before = [percent_at_most(most_sure(prior, Fraction(0))) for prior in PRIORS]
    headers = ["level", "ε", *(f"{prior} becomes at most" for prior in before)]
    shown, left_out = ends(rows)
    rest = f" {left_out:,} levels between them are not shown." if left_out else ""
    caption = f"How likely an attacker can hold {_claimed(claim)}, by the level of that record."
    return Listing(headers, shown, caption + rest, is_folded=True)


def ends(rows: Sequence[Any], most: int = _MOST_LEVELS) -> tuple[list[Any], int]:
    """Keep the first and the last of many; also return how many are left out.

    >>> ends([1, 2, 3, 4, 5], most=4)
    ([1, 2, 4, 5], 1)
    """
    if len(rows) <= most:
        return list(rows), 0
    half = most // 2
    return [*rows[:half], *rows[-half:]], len(rows) - 2 * half


def how_to_cite(release: Release, title: str) -> Section:
    """Write how a release is cited, and the terms under which it may be used."""
    receipt, stated = release.receipt, statement_of(release)
    who = stated.get("publisher")
    year = receipt.created[:4]
    named = f"{who} ({year}): {title}." if who else f"{title} ({year})."
    parts = [
        named,
        f"Differentially private release, {receipt.method}, ε = {format_rounded(receipt.epsilon)}, "
        f"dpublish {receipt.package_version}.",
        f"Release {receipt.release_id}, {tell_date(receipt.created)}{tell_steps(release)}.",
    ]
    if "license" in stated:
        parts.append(f"License: {stated['license']}.")
    if "source" in stated:
        parts.append(f"Source: {stated['source']}.")
    unstated = [name for name in ("publisher", "license") if name not in stated]
    notes = [f"The owner states no {' and no '.join(unstated)}."] if unstated else []
    return Section("How to cite it", [" ".join(parts)], notes=notes, is_folded=True)


def tell_steps(release: Release) -> str:
    """Write how far a stream has come when the page is written; nothing for a table."""
    records = getattr(release, "records", None)
    if release.receipt.method not in STREAMS or records is None:
        return ""
    return f", as of step {len(records):,}"


def tell_date(time: str) -> str:
    """Write a time for people; as it stands if it is none.

    >>> tell_date("2026-11-18T20:04:40+00:00"), tell_date("")
    ('18 November 2026', 'date unknown')
    """
    try:
        day = datetime.fromisoformat(time)
    except ValueError:
        return time or "date unknown"
    return f"{day.day} {_MONTHS[day.month - 1]} {day.year}"


_MONTHS = (
    *("January", "February", "March", "April", "May", "June", "July", "August", "September"),
    *("October", "November", "December"),
)
