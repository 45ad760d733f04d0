"""What all private estimators share: public facts, one paid release a fit, and no second one."""

import tempfile
from collections.abc import Mapping
from contextlib import nullcontext
from os import PathLike
from pathlib import Path
from typing import Any, Self

import pyarrow as pa
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted, validate_data

from dpublish.core.registry import make_method
from dpublish.core.released import Release
from dpublish.data.schema import Schema
from dpublish.data.sources import open_table
from dpublish.errors import InvalidParameter, InvalidType
from dpublish.ledger.ledger import Ledger
from dpublish.publishing.table import publish
from dpublish.sklearn import public_facts, rows


class RefitRefused(InvalidParameter):
    """An estimator that is fitted was asked to fit again, which would cost epsilon again."""


class PaidEstimator(BaseEstimator):  # type: ignore[misc]
    """An estimator whose fit is one release, granted and recorded by the ledger.

    Subclasses name their method and say which column is predicted, if one is.
    """

    _method: str
    epsilon: Any
    schema: Any
    bounds: Any
    bins: int
    ledger: Any
    dataset: str | None
    output: Any
    settings: Mapping[str, Any] | None
    allow_refit: bool
    release_: Any

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.non_deterministic = True  # noise comes from the operating system, and has no seed
        tags.input_tags.allow_nan = True  # by the schema's rule for missing values
        tags.input_tags.string = True  # by a schema
        return tags

    def _release(self, rows_in: Any, target: Any, column: str | None) -> Self:
        """Declare the rows, pay, release, and keep what was released.

        Privacy:
            That of `publish`: one grant of `epsilon` before any row is read.  The schema comes
            from parameters and from the names of columns; values of X and y are read by the
            data layer alone.  `n_features_in_` and names are public.
        """
        self._refuse_refit()
        features = self._without_unit(rows_in)
        names = self._names(features)
        schema = self._declare(names, column)
        validate_data(self, features, reset=True, skip_check_array=True)
        table = self._join(rows_in, names, target, column)
        self.release_ = self._pay(table, schema, names, column)
        self._names_of_fit = names
        return self

    def _refuse_refit(self) -> None:
        if hasattr(self, "release_") and not self.allow_refit:
            raise RefitRefused(
                f"this {type(self).__name__} is fitted, and fitting it again would cost epsilon "
                "again; fit a clone of it (sklearn.base.clone), or pass allow_refit=True"
            )

    def _names(self, features: Any) -> tuple[str, ...]:
        if rows.is_frame(features) and rows.has_text_names(features):
            return rows.frame_names(features)
        schema = public_facts.read_schema(self.schema)
        count = rows.read_array(features).shape[1]
        if schema is None:
            return rows.name_features(count)
        names = [each for each in schema.names if each not in (self._target(), schema.unit)]
        if len(names) != count:
            raise InvalidParameter(
                f"X has {count} features without names, and the schema {len(names)}: pass a "
                "DataFrame, or columns in the schema's order"
            )
        return tuple(names)

    def _target(self) -> str | None:
        """Name the column that is predicted, where the parameters do."""
        return getattr(self, "target", None)

    def _declare(self, names: tuple[str, ...], column: str | None) -> Schema:
        """Build the schema from public parameters alone."""
        schema = public_facts.read_schema(self.schema)
        if schema is not None:
            wanted = [*names, *([] if column is None else [column])]
            for name in wanted:
                _ = schema[name]  # refuses a name that the schema does not know
            return schema
        columns = public_facts.number_columns(names, self.bounds, self.bins)
        return Schema((*columns, *self._target_columns()))

    def _target_columns(self) -> tuple[Any, ...]:
        """Declare the target of an array."""
        return ()

    def _without_unit(self, rows_in: Any) -> Any:
        """Leave out the column that tells people apart: it is no feature."""
        schema = public_facts.read_schema(self.schema)
        unit = None if schema is None else schema.unit
        if unit is not None and rows.is_frame(rows_in) and unit in rows.frame_names(rows_in):
            return rows.drop_column(rows_in, unit)
        return rows_in

    def _join(self, rows_in: Any, names: tuple[str, ...], target: Any, column: str | None) -> Any:
        """Set X and y side by side, as the data layer reads them."""
        if rows.is_frame(rows_in) and rows.has_text_names(rows_in):
            if column is None:
                return rows_in
            rows.require_same_length(rows_in.shape[0], len(target))
            return rows.add_column(rows_in, column, target)
        array = rows.read_array(rows_in)
        columns = rows.array_columns(array, names)
        if column is not None:
            rows.require_same_length(len(array), len(target))
            columns |= rows.array_columns(target.reshape(-1, 1), [column])
        return pa.table(columns)

    def _pay(
        self, table: Any, schema: Schema, names: tuple[str, ...], column: str | None
    ) -> Release:
        """Publish one release for the whole epsilon.

        Privacy:
            That of `publish`.
        """
        method = make_method(self._method, self._settings(names, column))
        opened = open_table(table, schema, columns=method.reads(schema))
        folder = self._folder()
        with self._open_ledger() as books:
            released = publish(
                method,
                opened,
                folder,
                ledger=books,
                dataset=self._require("dataset", "the dataset of the ledger: dataset='people'"),
                epsilon=self._require("epsilon", "what a fit costs: epsilon='0.5'"),
                purpose=f"{type(self).__name__} of dpublish.sklearn",
            )
        self.release_folder_ = str(folder)
        return released

    def _settings(self, names: tuple[str, ...], column: str | None) -> dict[str, Any]:
        """Return the settings of the method: our own, and those that were passed."""
        found: dict[str, Any] = {}
        if column is not None:
            found = {"target": column, "predictors": names}
        return found | dict(self.settings or {})

    def _require(self, name: str, what: str) -> Any:
        value = getattr(self, name)
        if value is None:
            raise InvalidParameter(f"{name} is missing; pass {what}")
        return value

    def _open_ledger(self) -> Any:
        """Open the ledger at a path; one that is open stays open."""
        ledger = self._require("ledger", "the ledger that pays: ledger='books.db'")
        if isinstance(ledger, Ledger):
            return nullcontext(ledger)
        if not isinstance(ledger, str | PathLike):
            raise InvalidType(
                f"ledger must be a path, an address or a dpublish.Ledger, not "
                f"{type(ledger).__name__}"
            )
        return Ledger(ledger)

    def _folder(self) -> Path:
        if self.output is not None:
            return Path(self.output)
        return Path(tempfile.mkdtemp(prefix="dpublish-sklearn-")) / "release"

    def _rows(self, rows_in: Any) -> pa.Table:
        """Check rows to predict against those of the fit, and name their columns."""
        check_is_fitted(self)
        features = self._without_unit(rows_in)
        if not rows.is_frame(features):
            features = rows.read_array(features)
        validate_data(self, features, reset=False, skip_check_array=True)
        if rows.is_frame(features) and rows.has_text_names(features):
            return _arrow(features)
        array = rows.read_array(features)
        return pa.table(rows.array_columns(array, self._names_of_fit))


def _arrow(frame: Any) -> pa.Table:
    if isinstance(frame, pa.Table):
        return frame
    try:
        return (
            pa.table(frame) if hasattr(frame, "__arrow_c_stream__") else pa.Table.from_pandas(frame)
        )
    except (pa.ArrowException, TypeError, ValueError):
        raise InvalidParameter(
            "the rows have a column of mixed types, which cannot be read; make each column text "
            "or numbers"
        ) from None
