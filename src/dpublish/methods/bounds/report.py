"""The section about bounds: the line for the schema."""

from dpublish.core.released import Release
from dpublish.methods.bounds.released import BoundsRelease
from dpublish.report.section import Listing, Section


def section(release: Release, with_charts: bool) -> Section:
    """Show the bounds, and the line that a schema file needs."""
    if not isinstance(release, BoundsRelease):
        return Section()
    low, high = (end if isinstance(end, str) else f"{end:,}" for end in release.bounds)
    rows = [[release.column, low, high, release.measured]]
    return Section(
        listings=[Listing(["column", "lower", "upper", "measured"], rows, "The bounds.")],
        python="release.bounds",
    )
