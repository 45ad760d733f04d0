"""Draw the cells of rows evenly: as many of each as its probability says, but for rounding.

Rows that are drawn one by one differ from their probabilities by the noise of so many coins.
Nothing asks for that noise: rows that have the same parents may as well share their cells out.
Each group of such rows walks its probabilities at equal steps from a random start (systematic
sampling), in random order.  Every row still has each cell with just its probability, and any
order of a group's rows is as likely as any other.
"""

import numpy as np

from dpublish.core.probabilities import find_cells
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
    mixed = rng.permutation(rows)
    order = mixed[np.argsort(groups[mixed], kind="stable")]
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
    down.  The time grows with the number of rows and its logarithm.

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
    return find_cells(probabilities, rows, even_parts(rows, rng))
