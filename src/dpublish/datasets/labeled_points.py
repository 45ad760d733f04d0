"""Simulated points of several classes with twenty numeric columns, any number of them.

No person in it exists.  As in the simulated tables of section 5 of D. Su, J. Cao, N. Li, M. Lyu,
"PrivPfC" (VLDB Journal, 2018), all predictors are numbers and there are two or five classes; how
those points were drawn is not printed, so this is a table of the same shape.
"""

import numpy as np
import pyarrow as pa

from dpublish.errors import require_count
from dpublish.randomness import plain_generator
from dpublish.types import FloatArray

COLUMNS = 20
_BOUND = 4.0
_DECIDING, _FOLLOWING = 5, 3
_CLUSTERS = 2  # of each class, so that no line separates the classes
_DEVIATION = 0.9
_MISLABELED = 0.02
# Which corners of a cube the clusters are at, the same for every table: two classes or five.
_CORNERS = (
    0b00000,
    0b11001,
    0b00111,
    0b11110,
    0b01010,
    0b10101,
    0b01101,
    0b10010,
    0b00001,
    0b11100,
)


def labeled_points_schema(classes: int) -> str:
    """Write the schema of points of so many classes, in TOML.

    >>> labeled_points_schema(2).splitlines()[-1]
    'values = ["0", "1"]'
    """
    names = [f"x{number:02}" for number in range(1, COLUMNS + 1)]
    tables = [
        f'[columns.{name}]\nkind = "numeric"\nbounds = [{-_BOUND}, {_BOUND}]\nbins = 16\n'
        "branching = 2\n"
        for name in names
    ]
    labels = ", ".join(f'"{number}"' for number in range(classes))
    label = f'[columns.label]\nkind = "category"\nvalues = [{labels}]'
    return "\n".join((f'name = "labeled-points-{classes}"\n', *tables, label))


def labeled_points(records: int = 50_000, seed: int = 2024, *, classes: int = 2) -> pa.Table:
    """Simulate points; the same seed simulates the same, and all seeds the same classes.

    A class has two round clusters at corners of a cube in the first five columns; three columns
    follow these with noise of their own, and the other twelve tell nothing.  Two in a hundred
    points have a label drawn at random.

    >>> labeled_points(3, classes=5)["label"].to_pylist()
    ['1', '3', '0']
    """
    require_count(records=records, at_least=0)
    require_count(classes=classes, at_least=2)
    rng = plain_generator(seed)
    label = rng.integers(0, classes, records)
    cluster = label + classes * rng.integers(0, _CLUSTERS, records)
    deciding = _corners()[cluster] + _DEVIATION * rng.standard_normal((records, _DECIDING))
    following = deciding[:, :_FOLLOWING] - deciding[:, -_FOLLOWING:]
    following = 0.5 * following + 0.5 * rng.standard_normal((records, _FOLLOWING))
    idle = rng.standard_normal((records, COLUMNS - _DECIDING - _FOLLOWING))
    points = np.clip(np.hstack([deciding, following, idle]), -_BOUND, _BOUND)
    wrong = rng.random(records) < _MISLABELED
    label[wrong] = rng.integers(0, classes, int(wrong.sum()))
    columns = {f"x{number + 1:02}": points[:, number] for number in range(COLUMNS)}
    return pa.table({**columns, "label": np.arange(classes).astype(str)[label]})


def _corners() -> FloatArray:
    """List the corners at which clusters are, one a row."""
    bits = [[corner >> bit & 1 for bit in range(_DECIDING)] for corner in _CORNERS]
    return 2.0 * np.array(bits, dtype=np.float64) - 1.0
