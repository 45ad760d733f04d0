"""X and y as rows with named columns; no message of this file tells a value or a number of rows.

A value that is no number is missing.  Whether one record is readable never decides whether a
fit succeeds: it would tell about that record.
"""

import warnings
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from scipy.sparse import issparse
from sklearn.exceptions import DataConversionWarning

from dpublish.errors import InvalidParameter, InvalidType

_ONE_DIMENSION = (
    "Expected 2D array, got 1D array instead: rows and features. Reshape your data either using "
    "array.reshape(-1, 1) if your data has a single feature or array.reshape(1, -1) if it "
    "contains a single sample."
)


def is_frame(rows: Any) -> bool:
    """Check whether rows have names of their own: a pandas, Polars or Arrow table."""
    return isinstance(rows, pa.Table) or (hasattr(rows, "columns") and hasattr(rows, "shape"))


def frame_names(frame: Any) -> tuple[str, ...]:
    """Name the columns of a frame."""
    names = frame.column_names if isinstance(frame, pa.Table) else list(frame.columns)
    return tuple(str(name) for name in names)


def has_text_names(frame: Any) -> bool:
    """Check whether all names are texts; pandas numbers columns that were given none."""
    listed = frame.column_names if isinstance(frame, pa.Table) else list(frame.columns)
    return all(isinstance(name, str) for name in listed)


def read_array(rows: Any) -> NDArray[Any]:
    """Take rows without names as an array of two dimensions."""
    if issparse(rows):
        raise InvalidType("Sparse data was passed, but dense data is required; use X.toarray()")
    array = np.asarray(rows)
    if array.ndim != 2:
        raise InvalidParameter(
            _ONE_DIMENSION if array.ndim < 2 else "Found array with dim 3; rows and features it is"
        )
    if np.iscomplexobj(array):
        raise InvalidParameter("Complex data not supported; pass real numbers")
    if array.shape[1] == 0:
        # scikit-learn's words, without the number of rows, which is private.
        raise InvalidParameter("0 feature(s) (shape=(, 0)) while a minimum of 1 is required.")
    return array


def name_features(count: int) -> tuple[str, ...]:
    """Name the features of an array: x0, x1, ..."""
    return tuple(f"x{number}" for number in range(count))


def array_columns(array: NDArray[Any], names: Sequence[str]) -> dict[str, pa.Array]:
    """Make columns of an array: numbers where it holds numbers, else values as text."""
    return {name: _column(array[:, index]) for index, name in enumerate(names)}


def read_target(target: Any) -> NDArray[Any]:
    """Take a target as an array of one dimension."""
    array = np.asarray(target)
    if array.ndim == 2 and array.shape[1] == 1:
        warnings.warn(
            "A column-vector y was passed when a 1d array was expected. Please change the shape "
            "of y to (n_samples,), for example using ravel().",
            DataConversionWarning,
            stacklevel=4,
        )
        array = array.ravel()
    if array.ndim != 1:
        raise InvalidParameter("y should be a 1d array: one value for each row of X")
    if np.iscomplexobj(array):
        raise InvalidParameter("Complex data not supported; pass real numbers or classes")
    return array


def require_same_length(rows: int, values: int) -> None:
    """Refuse a target for other rows; how many rows there are stays private."""
    if rows != values:
        raise InvalidParameter("X and y have inconsistent numbers of samples; pass y for each row")


def class_values(target: NDArray[Any], texts: Mapping[str, Any]) -> pa.Array:
    """Name the class of each row; what is no declared class is missing."""
    known = {value: text for text, value in texts.items()}
    return pa.array([_found(known, value) for value in target.tolist()], pa.string())


def numbers(values: NDArray[Any]) -> NDArray[np.float64]:
    """Read numbers; what is none is missing (NaN)."""
    if values.dtype.kind in "fiub":
        return values.astype(np.float64)
    return np.array([_number(value) for value in values.tolist()], dtype=np.float64)


def add_column(frame: Any, name: str, values: NDArray[Any]) -> Any:
    """Add the target to a frame under its name."""
    if name in frame_names(frame):
        raise InvalidParameter(f"X has the target {name!r} among its columns; leave it out of X")
    if isinstance(frame, pa.Table):
        return frame.append_column(name, _column(values))
    if hasattr(frame, "with_columns"):  # Polars
        return frame.with_columns(type(frame)({name: _column(values)}).to_series().alias(name))
    added = frame.copy(deep=False)
    added[name] = values
    return added


def drop_column(frame: Any, name: str) -> Any:
    """Remove a column from a frame."""
    if isinstance(frame, pa.Table) or hasattr(frame, "with_columns"):
        return frame.drop([name]) if isinstance(frame, pa.Table) else frame.drop(name)
    return frame.drop(columns=[name])


def _column(values: NDArray[Any]) -> pa.Array:
    if values.dtype.kind in "fiu":
        return pa.array(np.ascontiguousarray(values), from_pandas=True)
    if values.dtype.kind == "b":
        return pa.array(values.tolist(), pa.bool_())
    if values.dtype.kind == "M":
        return pa.array(values)
    return pa.array([_text(value) for value in values.tolist()], pa.string())


def _text(value: Any) -> str | None:
    """Write a value as text; None and NaN are missing."""
    if value is None or (isinstance(value, float) and value != value):
        return None
    return str(value)


def _number(value: Any) -> float:
    try:
        return float(value)
    except (TypeError, ValueError, OverflowError):
        return float("nan")


def _found(known: Mapping[Any, str], value: Any) -> str | None:
    try:
        return known.get(value)
    except TypeError:  # a list or the like, which is no class
        return None
