"""Rows of pandas and Polars tables, without importing either unless the caller did."""

from collections.abc import Iterable, Iterator, Sequence
from importlib import import_module
from typing import Any, NoReturn

import numpy as np
import pyarrow as pa

from dpublish.data.batch import BATCH_ROWS, refuse_copy
from dpublish.data.engines.source import UNREADABLE, Rescan, quietly


class PandasSource:
    """Rows of a pandas table.

    pandas' own conversion to Arrow refuses a column of mixed Python objects and quotes one of
    them.  Here such a column is read as text, value by value.
    """

    label = "the pandas table"
    rescan: Rescan = "cheap"

    def __init__(self, frame: Any) -> None:
        self._frame = frame.copy(deep=False)  # rows that the caller moves later stay here
        self._names = [str(name) for name in frame.columns]
        types = [self._type(index) for index in range(len(self._names))]
        self.header = pa.schema(list(zip(self._names, types, strict=True)))

    def __reduce__(self) -> NoReturn:
        refuse_copy("a source")

    def scan(self, columns: Sequence[str]) -> Iterator[Any]:
        """Read some columns as Arrow record batches."""
        indices = [self._names.index(name) for name in columns]
        for start in range(0, len(self._frame), BATCH_ROWS):
            arrays = [self._column(index, start, start + BATCH_ROWS) for index in indices]
            yield pa.RecordBatch.from_arrays(arrays, names=list(columns))

    def _type(self, index: int) -> Any:
        """Find the type of a column by converting none of its values."""
        try:
            return self._column(index, 0, 0).type
        except (pa.ArrowException, TypeError, ValueError):
            return UNREADABLE

    def _column(self, index: int, start: int, stop: int) -> Any:
        series = self._frame.iloc[start:stop, index]
        if str(series.dtype) == "category":
            codes = series.cat.codes.to_numpy()
            indices = pa.array(codes, type=pa.int32(), mask=codes < 0)
            categories = series.cat.categories
            return pa.DictionaryArray.from_arrays(indices, _texts(categories, categories.isna()))
        if series.dtype == np.dtype(object) or getattr(series.dtype, "storage", "") == "python":
            return _texts(series, series.isna())
        array = pa.array(series, from_pandas=True)
        if pa.types.is_string(array.type):
            array = array.cast(pa.large_string())  # all chunks together may be too long for 32 bits
        return array.combine_chunks() if isinstance(array, pa.ChunkedArray) else array


class PolarsSource:
    """Rows of a Polars table, eager or lazy; a lazy one is run for every scan."""

    label = "the Polars table"

    def __init__(self, frame: Any, wanted: Sequence[str] | None = None) -> None:
        self.rescan: Rescan = "unordered" if hasattr(frame, "collect") else "cheap"
        self._frame = frame.clone()
        self.header = quietly(lambda: _polars_header(frame, wanted), f"{self.label} cannot be read")

    def __reduce__(self) -> NoReturn:
        refuse_copy("a source")

    def scan(self, columns: Sequence[str]) -> Iterator[Any]:
        """Read some columns as Arrow record batches."""
        by_name = import_module("polars.selectors").by_name  # a bare ^name$ would be a pattern
        frame = self._frame.select(by_name(*columns))
        frames = frame.collect_batches() if hasattr(frame, "collect_batches") else [frame]
        for part in frames:
            whole = part.collect() if hasattr(part, "collect") else part
            yield from whole.to_arrow().to_batches(max_chunksize=BATCH_ROWS)


def _polars_header(frame: Any, wanted: Sequence[str] | None) -> Any:
    """Find names and types without running a lazy table."""
    found = frame.collect_schema().items()
    kinds = {name: kind for name, kind in found if wanted is None or name in wanted}
    return import_module("polars").DataFrame(schema=kinds).to_arrow().schema


def _texts(values: Iterable[object], absent: Any) -> Any:
    """Write Python objects as text; what is absent stays so."""
    pairs = zip(values, np.asarray(absent), strict=True)
    texts = [None if gone else _text(value) for value, gone in pairs]
    return pa.array(texts, pa.large_string())


def _text(value: object) -> str:
    try:
        text = value if isinstance(value, str) else str(value)
        # Halves of characters are written out: one sign for all would make one unit of two.
        return text if str.isascii(text) else str.encode(text, errors="backslashreplace").decode()
    except Exception:  # noqa: BLE001 - one odd object must not stop the others
        return ""
