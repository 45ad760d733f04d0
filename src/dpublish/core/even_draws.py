"""Draw the cells of rows evenly: as many of each as its probability says, but for rounding.

Rows that are drawn one by one differ from their probabilities by the noise of so many coins.
Nothing asks for that noise: rows that have the same parents may as well share their cells out.
Each group of such rows walks its probabilities at equal steps from a random start (systematic
sampling), in random order.  Every row still has each cell with just its probability, and any
order of a group's rows is as likely as any other.
"""

import numpy as np

from dpublish.types import FloatArray, IntArray


def even_parts(groups: IntArray, rng: np.random.Generator) -> FloatArray:
    """Draw a number in [0, 1) for each row, such that those of a group are evenly spaced.

    The numbers of a group of n rows are (u + 0)/n, (u + 1)/n, ..., with one uniform u, in
    random order.  `groups` numbers the group of each row, from 0 on.

    >>> rng = np.random.Generator(np.random.Philox(1))
    >>> parts = even_parts(np.array([0, 1, 0, 0, 1]), rng)
    >>> np.diff(np.sort(parts[[0, 2, 3]])).round(6).tolist()
    [0.333333, 0.333333]
    """
    rows = groups.size
    if rows == 0:
        return np.zeros(0)
    order = _random_order(groups, rng)
    sizes = np.bincount(groups)
    start = rng.random(sizes.size)
    rank = np.arange(rows) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    parts = np.empty(rows)
    # Rounding may reach 1, which is no part.
    parts[order] = np.minimum((rank + np.repeat(start, sizes)) / np.repeat(sizes, sizes), _LAST)
    return parts


_LAST = float(np.nextafter(1.0, 0.0))


def draw_evenly(probabilities: FloatArray, rows: IntArray, rng: np.random.Generator) -> IntArray:
    """Draw a cell by each of the `rows` of probabilities, evenly among equal rows.

    Of n rows with the same probabilities, the cell of probability p has n p rounded up or
    down.  The time grows with the number of rows, and with that of probabilities.

    Args:
        probabilities: A row for each cell of the parents, a column for each cell to draw.
        rows: The cell of the parents of each row that is drawn.
        rng: Source of the draws.

    >>> rng = np.random.Generator(np.random.Philox(1))
    >>> table = np.array([[0.25, 0.75], [1.0, 0.0]])
    >>> cells = draw_evenly(table, np.repeat([0, 1], [400, 50]), rng)
    >>> np.bincount(cells[:400]).tolist(), np.bincount(cells[400:]).tolist()
    ([100, 300], [50])
    """
    groups, cells = probabilities.shape
    parts = np.minimum(np.cumsum(probabilities, axis=1), 1.0)
    # What rounding leaves goes to the last cell that is possible at all.
    last = cells - 1 - np.argmax(probabilities[:, ::-1] > 0, axis=1)
    parts[np.arange(cells) >= last[:, None]] = 1.0
    found = share_out(rows, parts.ravel(), np.repeat(np.arange(groups), cells), rng)
    return np.asarray(found % cells)


def share_out(
    rows: IntArray, parts: FloatArray, groups: IntArray, rng: np.random.Generator
) -> IntArray:
    """Share the rows of each group out among the entries of that group, evenly.

    Args:
        rows: The group of each row.
        parts: For each entry, the part of its group's rows that it and those before it get;
            1 for the last entry of a group.
        groups: The group of each entry, in rising order, every group with one entry at least.
        rng: Source of the draws.

    Returns:
        The entry of each row.

    >>> rng = np.random.Generator(np.random.Philox(1))
    >>> parts, groups = np.array([0.5, 1.0, 1.0]), np.array([0, 0, 1])
    >>> np.bincount(share_out(np.repeat([0, 1], [10, 3]), parts, groups, rng)).tolist()
    [5, 5, 3]
    """
    order = _random_order(rows, rng)
    number = int(groups[-1]) + 1
    sizes = np.bincount(rows, minlength=number)
    start = rng.random(number)
    # Row r of a group lies at (r + start) / size: so many of them lie before each entry's end.
    ends = np.ceil(parts * sizes[groups] - start[groups]).astype(np.int64)
    ends = np.clip(ends, 0, sizes[groups])
    before = np.concatenate([[0], ends[:-1]])
    before[np.flatnonzero(np.diff(groups, prepend=-1))] = 0
    found = np.empty(rows.size, dtype=np.int64)
    found[order] = np.repeat(np.arange(parts.size), ends - before)
    return found


def _random_order(groups: IntArray, rng: np.random.Generator) -> IntArray:
    """Put rows in order of their groups, those of a group in random order."""
    mixed = rng.permutation(groups.size)
    if groups.size and int(groups.max()) < _FEW:
        groups = groups.astype(np.uint16)  # sorted by counting, which is much quicker
    return np.asarray(mixed[np.argsort(groups[mixed], kind="stable")])


_FEW = 1 << 16
