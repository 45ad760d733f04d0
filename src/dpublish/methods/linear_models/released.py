"""A published linear model: predict a class or a number from other columns."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, Literal

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from dpublish.core.codecs import Codec
from dpublish.core.prediction import encode_rows, label_rows
from dpublish.core.released import Metadata, Release, Tables, in_metadata, whole_column
from dpublish.data.axis import Axis
from dpublish.data.column import MISSING_LABEL, NumberColumn
from dpublish.data.features import FEATURE_UNIT, Features, Scale
from dpublish.data.schema import Schema
from dpublish.errors import CorruptRelease, InvalidParameter, InvalidQuery, require_known
from dpublish.methods.linear_models.fourier_features import FourierFeatures
from dpublish.privacy.receipt import Receipt
from dpublish.types import FloatArray, IntArray

Model = Literal["logistic", "svm", "linear"]
MODELS = {
    "logistic": "logistic regression",
    "svm": "linear support vector machine",
    "linear": "linear regression",
}


@dataclass(frozen=True, eq=False, kw_only=True)
class LinearModelRelease(Release):
    """Weights of a record's features; their sum is the score of a class, or a number.

    `predict` and `predict_proba` predict rows, `coefficients` lists the weights.

    Attributes:
        receipt: What was guaranteed and paid.
        schema: The predictors and the target.
        model: What kind of model it is.
        target: Column that it predicts.
        weights: A row for each two-class problem (one if there are two classes: the second
            against the first) or one for a number; a column for each feature, scaled to
            [-1, 1].  A number is predicted on the scale of its bounds, -1 to 1.
        expected: Error predicted from public facts, by name.
        notes: What a user should know of how the model was fitted.
        standard_deviation: Of the noise of each weight, where theory gives it.
        by_cell: Whether a number of few cells has a feature for each of them.
        frequencies: Of the random waves that are weighed instead of the columns, if any: a row
            for each wave, a column for each feature, in 2^-20 turns.
    """

    kind: ClassVar[str] = "linear-model"
    report: ClassVar[str] = "dpublish.methods.linear_models.report:section"

    receipt: Receipt
    schema: Schema
    model: Model = in_metadata()
    target: str = in_metadata()
    weights: FloatArray
    expected: Mapping[str, float] = in_metadata(Codec(dict, lambda plain, _: dict(plain)))
    notes: tuple[str, ...] = in_metadata(Codec(list, lambda plain, _: tuple(plain)), default=())
    standard_deviation: FloatArray | None = None
    by_cell: bool = in_metadata(default=False)
    frequencies: IntArray | None = None

    def __post_init__(self) -> None:
        """Refuse what no method would publish: a release may come from anywhere."""
        require_known("model", self.model, MODELS)
        require_known("column", self.target, self.schema.names)
        is_number = isinstance(self.schema[self.target], NumberColumn)
        if is_number != (self.model == "linear"):
            raise InvalidParameter(f"{MODELS[self.model]} cannot predict {self.target!r}")
        if not is_number and self.classes.size < 2:
            raise InvalidParameter(f"the target {self.target!r} has one class only")
        shape = (len(self.scored), self.features.size)
        _require_numbers(self.weights, shape)
        if self.standard_deviation is not None:
            _require_numbers(self.standard_deviation, shape)
            if self.standard_deviation.min() < 0:
                raise InvalidParameter("a standard deviation cannot be negative")
        if not all(isinstance(figure, (int, float)) for figure in self.expected.values()):
            raise InvalidParameter("expected errors must be numbers")

    @cached_property
    def features(self) -> Features | FourierFeatures:
        """The features that the weights belong to."""
        base = Features.of(self.schema, self.target, by_cell=self.by_cell)
        return base if self.frequencies is None else FourierFeatures(base, self.frequencies)

    @property
    def classes(self) -> Axis:
        """The classes, at the finest level of the target."""
        return self.schema[self.target].axis()

    @property
    def scored(self) -> tuple[str, ...]:
        """What each row of weights scores: a class, or the target of a linear model."""
        if self.model == "linear":
            return (self.target,)
        return self.classes.labels[1:] if self.classes.size == 2 else self.classes.labels

    def decision(self, codes: Mapping[str, NDArray[np.int64]]) -> FloatArray:
        """Score records, given by codes, for each row of weights; an unknown value (-1) adds 0."""
        found = self.features.matrix(codes) @ (self.weights.T / FEATURE_UNIT)
        return np.asarray(found, dtype=np.float64)

    def predict(self, rows: Any) -> pa.Array:
        """Predict the class, or the number, of each of `rows`."""
        codes = encode_rows(rows, self.schema, self.features.columns)
        if self.model == "linear":
            return pa.array(self.predict_numbers(codes))
        return label_rows(self.classes, self.predict_codes(codes))

    def predict_codes(self, codes: Mapping[str, NDArray[np.int64]]) -> NDArray[np.int64]:
        """Predict the target's codes from codes; unknown values (-1) add nothing to a score."""
        column = self.schema[self.target]
        if isinstance(column, NumberColumn):
            return column.partition.locate(self.predict_numbers(codes)).astype(np.int64)
        scores = self.decision(codes)
        if len(self.scored) == 1:
            return np.asarray(scores[:, 0] > 0, dtype=np.int64)
        return np.asarray(scores.argmax(axis=1), dtype=np.int64)

    def predict_numbers(self, codes: Mapping[str, NDArray[np.int64]]) -> FloatArray:
        """Predict numbers in the owner's units from codes, within the public bounds."""
        column = self.schema[self.target]
        if not isinstance(column, NumberColumn):
            raise InvalidQuery(f"this model predicts classes of {self.target!r}, not numbers")
        low, high = column.bounds
        scores = np.clip(self.decision(codes)[:, 0], -1, 1)
        return np.asarray((low + high) / 2 + scores * (high - low) / 2)

    def predict_proba(self, rows: Any) -> pa.Table:
        """Predict the probability of each class for each of `rows`: a column a class."""
        codes = encode_rows(rows, self.schema, self.features.columns)
        probabilities = self.probabilities(codes)
        return pa.table(dict(zip(self.classes.labels, probabilities.T, strict=True)))

    def probabilities(self, codes: Mapping[str, NDArray[np.int64]]) -> FloatArray:
        """Predict the probability of each class (a column each) for records given by codes."""
        if self.model != "logistic":
            raise InvalidQuery(
                f"{MODELS[self.model]} gives no probabilities; logistic regression does"
            )
        scores = self.decision(codes)
        likely = np.exp(-np.logaddexp(0, -scores))
        if len(self.scored) == 1:
            return np.hstack([np.exp(-np.logaddexp(0, scores)), likely])
        # Each class was set against all others; the probabilities need not add up to 1 by
        # themselves.
        total = likely.sum(axis=1, keepdims=True)
        even = np.full_like(likely, 1 / len(self.scored))
        return np.asarray(np.divide(likely, total, out=even, where=total > 0))

    def coefficients(self) -> pa.Table:
        """List the weights, also in the owner's units, with their error where it is known.

        In the owner's units a weight is what one unit more adds to the score; for a linear
        model, to the number itself.
        """
        own = [self._own_weights(row) for row in self.weights]
        size = self.features.size
        deviations = None if self.standard_deviation is None else self.standard_deviation.ravel()
        return pa.table(
            {
                "feature": pa.array(self.features.names * len(own), pa.string()),
                "class": pa.array(np.repeat(self.scored, size).tolist(), pa.string()),
                "weight": pa.array(self.weights.ravel()),
                "weight_in_own_units": pa.array(np.concatenate(own)),
                "standard_deviation": pa.array(
                    [None] * (size * len(own)) if deviations is None else deviations, pa.float64()
                ),
            }
        )

    def _own_weights(self, weights: FloatArray) -> FloatArray:
        if isinstance(self.features, FourierFeatures):
            return weights  # a wave has no unit
        own = np.array([weight for _, weight in self.features.explain(weights)])
        if self.model != "linear":
            return own
        slope, offset = Scale.of(self.schema[self.target])
        if slope == 0:
            return np.zeros_like(own)
        own[-1] -= offset
        return own / slope

    def tables(self) -> dict[str, pa.Table]:
        """Return the weights with the names of features and classes, and waves if there are."""
        found = {"weights": self.coefficients()}
        if isinstance(self.features, FourierFeatures):
            found["frequencies"] = _wave_table(self.features)
        return found

    @classmethod
    def read_parts(cls, schema: Schema, metadata: Metadata, tables: Tables) -> dict[str, Any]:
        """Read the model of a release folder."""
        found = super().read_parts(schema, metadata, tables)
        table = tables["weights"]
        if type(found["by_cell"]) is not bool:
            raise CorruptRelease("by_cell must be true or false")
        base = Features.of(schema, found["target"], by_cell=found["by_cell"])
        frequencies = _read_waves(tables.get("frequencies"), base)
        size = base.size if frequencies is None else 2 * len(frequencies) + 1
        if table.num_rows % size or table["weight"].null_count:
            raise CorruptRelease("the table of weights does not list every feature")
        deviations = table["standard_deviation"]
        return found | {
            "weights": table["weight"].to_numpy().reshape(-1, size),
            "standard_deviation": (
                None if deviations.null_count else deviations.to_numpy().reshape(-1, size)
            ),
            "frequencies": frequencies,
        }

    def summary(self) -> dict[str, str]:
        """Describe model, target and features in a few words."""
        described = {
            "model": MODELS[self.model],
            "predicts": self._describe_target(),
            "from": f"{', '.join(self.features.columns)}; {self.features.size:,} weights",
        }
        if self.frequencies is not None:
            described["weighs"] = f"{len(self.frequencies):,} random waves over these columns"
        if self.notes:
            described["note"] = "; ".join(self.notes)
        return described

    def _describe_target(self) -> str:
        column = self.schema[self.target]
        if isinstance(column, NumberColumn):
            low, high = column.bounds
            return f"{self.target} ({low:,.12g} to {high:,.12g})"
        shown = ["missing" if label == MISSING_LABEL else label for label in self.classes.labels]
        return f"{self.target} ({', '.join(shown)})"

    def expected_error(self) -> dict[str, float]:
        """Return the error predicted from public facts, as figures by name."""
        return {name: float(figure) for name, figure in self.expected.items()}


def _wave_table(features: FourierFeatures) -> pa.Table:
    """List the frequency of every wave in every feature."""
    waves, size = features.frequencies.shape
    return pa.table(
        {
            "wave": pa.array(np.repeat(np.arange(1, waves + 1), size)),
            "feature": pa.array(features.base.names * waves, pa.string()),
            "frequency": pa.array(features.frequencies.ravel()),
        }
    )


def _read_waves(table: pa.Table | None, base: Features) -> IntArray | None:
    if table is None:
        return None
    found = whole_column(table, "frequency")
    if not found.size or found.size % base.size:
        raise CorruptRelease("the table of frequencies does not list every feature")
    return found.reshape(-1, base.size)


def _require_numbers(weights: FloatArray, shape: tuple[int, int]) -> None:
    if weights.dtype != np.float64 or weights.shape != shape:
        raise InvalidParameter(f"weights must be {shape[0]} rows of {shape[1]} numbers")
    if not np.isfinite(weights).all():
        raise InvalidParameter("weights must be finite")
