"""Draw rows in given cells: the other columns from the copula of each cell's group."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpublish.methods.dpcopula.cell_groups import CellGroups
from dpublish.methods.dpcopula.rows import draw_codes
from dpublish.types import FloatArray


def draw_cells(
    groups: CellGroups,
    matrix: FloatArray,
    cells: NDArray[np.integer[Any]],
    rng: np.random.Generator,
) -> dict[str, NDArray[np.integer[Any]]]:
    """Draw the leaf codes of a row in each of `cells`, which may be listed many times.

    Args:
        groups: Cells, and the marginals of their groups.
        matrix: Correlations of the normal variables behind the columns that have marginals.
        cells: Cell of each row.
        rng: Source of the draws; rows are post-processing, so it need not be secure.
    """
    along = np.unravel_index(cells, groups.shape)
    codes: dict[str, NDArray[np.integer[Any]]] = {
        axis.column: index for axis, index in zip(groups.categories, along, strict=True)
    }
    if not groups.numbers:
        return codes
    names = [axis.column for axis in groups.numbers]
    codes |= {name: np.empty(cells.size, dtype=np.int64) for name in names}
    own = groups.group_of[cells]
    for group, distributions in enumerate(groups.distributions):
        here = np.flatnonzero(own == group)
        drawn = draw_codes(matrix, dict(zip(names, distributions, strict=True)), here.size, rng)
        for name, leaves in drawn.items():
            codes[name][here] = leaves
    return codes
