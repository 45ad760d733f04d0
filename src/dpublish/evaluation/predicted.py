"""Predict the class of rows in the clear with a release: whoever has the rows asks."""

import pyarrow as pa

from dpublish.core.released import Release
from dpublish.errors import InvalidParameter
from dpublish.evaluation.evaluations import target_of
from dpublish.evaluation.true_rows import read_rows


def predict_file(release: Release, path: str) -> pa.Table:
    """Read the rows of a file, and add a column: `predicted_` and the name of the class."""
    given = read_rows(path)
    name = f"predicted_{target_of(release) or 'class'}"
    if name in given.column_names:
        raise InvalidParameter(f"{path} has a column {name!r} already; rename it")
    return given.append_column(name, release.predict(given))
