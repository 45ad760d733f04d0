"""How often items occur in public collections of baskets and sessions, and in Zipf's distribution.

The counts are those of `item_counts.parquet` in the data folder, most frequent first.  A basket
adds at most 1 to each count, so adding or removing one moves all counts the same way by at most 1.

Of Kosarak only the counts of the 156 most frequent items could be had.  The others are simulated:
the count of the i-th item is 5,009 * 156 / i, which goes on from the last true count to the
41,270th item.  All counts then add up to 7,973,294; the whole of Kosarak has 8,019,015 clicks.
"""

from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np
import pyarrow.compute as pc

from dpublish.datasets.parquet_files import missing_file, read_parquet
from dpublish.errors import UnreadableData
from dpublish.types import IntArray

FILE = "item_counts.parquet"
ZIPF_ITEMS, ZIPF_RECORDS = 10_000, 1_000_000


@cache
def zipf_counts(items: int = ZIPF_ITEMS, records: int = ZIPF_RECORDS) -> IntArray:
    """Share `records` over `items` values, the i-th most frequent in proportion to 1/i."""
    weights = 1 / np.arange(1, items + 1)
    return _sealed(np.rint(records * weights / weights.sum()).astype(np.int64))


@dataclass(frozen=True)
class ItemCounts:
    """The counts of a public collection, or where to find them.

    Attributes:
        items: How many items there are; public, like all of it.
        source: What was counted, in words.
        stored: Its name in the file of the data folder; None if the counts are simulated.
        simulated_from: The rank from which on counts are simulated; None if all are true.
    """

    items: int
    source: str
    stored: str | None = None
    simulated_from: int | None = None

    def missing_file(self, folder: Path | None) -> str | None:
        """Return the file that is missing, or None if nothing is."""
        return None if self.stored is None else missing_file(FILE, folder)

    def counts(self, folder: Path | None) -> IntArray:
        """Read the counts, most frequent first."""
        if self.stored is None:
            return zipf_counts(self.items)
        if folder is None:
            raise UnreadableData(f"{self.stored} needs a data folder that holds {FILE}")
        is_own = pc.field("dataset") == self.stored
        stored = read_parquet(folder / FILE, ["count"], is_own)["count"].to_numpy()
        counts = np.sort(stored.astype(np.int64))[::-1]
        if self.simulated_from is not None:
            counts = with_tail(counts, self.items)
        if len(counts) != self.items:
            raise UnreadableData(
                f"{folder / FILE} has {len(counts):,} items of {self.stored}, not {self.items:,}"
            )
        return _sealed(counts)


def with_tail(counts: IntArray, items: int) -> IntArray:
    """Go on from the last count in proportion to 1/rank, up to so many items.

    >>> with_tail(np.array([90, 60]), 5).tolist()
    [90, 60, 40, 30, 24]
    """
    if not len(counts):
        return counts
    ranks = np.arange(len(counts) + 1, items + 1)
    return np.concatenate([counts, np.rint(counts[-1] * len(counts) / ranks).astype(np.int64)])


def _sealed(counts: IntArray) -> IntArray:
    counts = np.ascontiguousarray(counts)
    counts.flags.writeable = False
    return counts


ITEM_COUNTS = {
    "zipf": ItemCounts(
        ZIPF_ITEMS,
        f"{ZIPF_ITEMS:,} values share {ZIPF_RECORDS:,} records; the i-th most frequent has a "
        "count in proportion to 1/i (Zipf). Simulated",
    ),
    "kosarak": ItemCounts(
        41_270,
        "Clicks on 41,270 pages of a news portal in 990,002 sessions. The counts of the 156 most "
        "frequent are true; from there on they are simulated, in proportion to 1/rank",
        "KOSARAK-FULL-TOP",
        simulated_from=157,
    ),
    "bms-pos": ItemCounts(
        256,
        "500,000 baskets of BMS-POS, of each of which one of 256 items was counted; the whole "
        "collection, of which the thesis counts every item of a basket, could not be had",
        "BMS-POS-ONE-PER-BASKET-256",
    ),
    "webview-1": ItemCounts(
        497, "Views of 497 products in 59,601 sessions of a shop (BMS-WebView-1)", "BMS-WEBVIEW-1"
    ),
    "webview-2": ItemCounts(
        3_340,
        "Views of 3,340 products in 77,512 sessions of a shop (BMS-WebView-2)",
        "BMS-WEBVIEW-2",
    ),
    "retail": ItemCounts(
        16_470, "Sales of 16,470 products in 88,162 baskets of a supermarket (Retail)", "RETAIL"
    ),
    "t10i4d100k": ItemCounts(
        870, "870 items in 100,000 baskets of IBM's generator (T10I4D100K)", "T10I4D100K"
    ),
    "netflix": ItemCounts(17_770, "23,168,232 ratings of 17,770 films (Netflix)", "NETFLIX"),
}
