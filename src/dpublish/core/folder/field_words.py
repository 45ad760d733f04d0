"""What the fields of published tables mean, for readers who have the files alone."""

import re

import pyarrow as pa

from dpublish.core.released import ABOUT, DERIVED, field_description, field_note
from dpublish.data.column import NumberColumn
from dpublish.data.schema import Schema

_PART = re.compile(r"part\d+_")
_END = re.compile(r"(first|last) (code|value) of (.+)", re.DOTALL)

_WORDS = {
    "bin": "Number of the bin of the column, from 0.",
    "cell": "The cell in words.",
    "cell_number": "Number of the cell, from 0, the last column's values counting fastest.",
    "class": "The class.",
    "class_number": "Number of the class, from 0.",
    "class_score": "Score of the class in the cell; the class of the highest score is predicted.",
    "clique": "Number of the clique of columns, from 0.",
    "cluster": "Number of the cluster, from 0; null outside of all clusters.",
    "coefficient_number": "Number of the wavelet coefficient, row by row from 0.",
    "coefficients": "Number of wavelet coefficients of the cluster.",
    "column": "Name of the column that the row is about.",
    "condition": "Which records of the parent node are in the node.",
    "correlation": "Correlation of the two columns in the copula.",
    "epsilon": "The epsilon that the part was published with.",
    "estimate": "Estimated number of records in the bin.",
    "estimated_count": "Estimated number of records, from the noisy numbers.",
    "expected_count": "Expected number of records: the probability times all records.",
    "feature": "The feature that the weight belongs to.",
    "first": "Name of the first column.",
    "first_code": "Number of the first value of the column in this row, from 0.",
    "frequency": "Frequency of the wave along the feature.",
    "group_number": "Number of the group of cells that share marginals, from 0.",
    "high": "Upper end of the interval that holds the value, at the stated confidence.",
    "interval": "What the interval rests on: confidence (noise alone) or model; null if none.",
    "joint": "Number of the set of columns that were counted together, from 0.",
    "kind": "Kind of release that the part is.",
    "label": "The answer in words.",
    "levels": "The privacy levels of the people in the part.",
    "low": "Lower end of the interval that holds the value, at the stated confidence.",
    "lower": "Lower bound of the column's values.",
    "lower_date": "Lower bound as a date.",
    "measure": "The statistic.",
    "node": "Number of the node of the tree, from 0, the root.",
    "noise_deviation": "Standard deviation that noise gives the correlation.",
    "noisy_coefficient": "Wavelet coefficient with noise, row by row.",
    "noisy_count": "Number of records with noise; it may be negative.",
    "noisy_number": "The published number with noise, of which estimates are made.",
    "noisy_remainder": "Sum that is counted with the residuals, with noise.",
    "noisy_remainder_of_second": "The same sum for the second class, with noise.",
    "noisy_residual": "Sum of the residuals of the class in the cell, with noise.",
    "noisy_size": "Number of records in the node with noise; null where it was not counted.",
    "noisy_variance": "Sum of the variances of the class in the cell, with noise.",
    "note": "What else is to be known of the value.",
    "number": "The published number with noise, of which the statistics are made.",
    "of": "Which records the value is about.",
    "parent_bin": "Number of the bin of the parent column, from 0.",
    "part": "Number of the part, from 1.",
    "position": "Number of the noisy number within the column's marginal, from 0.",
    "predicted": "The class that the node predicts.",
    "probability": "Estimated probability; those of a column, or of a clique, add up to 1.",
    "rank": "Rank of the value, from 1, the most frequent.",
    "refinement": "Number of the refinement of the classifier, from 0.",
    "scale": "Number of records that one unit of the part's counts stands for.",
    "second": "Name of the second column.",
    "share": "The share of the budget that the number was measured with.",
    "split_by": "Name of the column by which the node is split; null for a leaf.",
    "standard_deviation": "Standard deviation that noise gives the weight; null if not known.",
    "table": "Number of the noisy table, from 0.",
    "time": "Label of the step of the stream.",
    "units": "What a record of full weight adds to a count of the part.",
    "upper": "Upper bound of the column's values.",
    "upper_date": "Upper bound as a date.",
    "value": "The value, or the bin.",
    "wave": "Number of the random wave, from 0.",
    "weight_in_own_units": "Weight per unit of the feature as the table states it.",
}
_WORDS_OF_TABLES = {
    ("answer", "value"): "The answer: a count, or the number of the bin of the median.",
    ("bounds", "column"): "Name of the column whose bounds were measured.",
    ("boxes", "level"): "Number of the noise rate of the box, from 0.",
    ("boxes", "parent"): "Number of the box, from 0, that this one is a part of; -1 for none.",
    ("classes", "class"): "Number of the class that the run of values belongs to, from 0.",
    ("classes", "level"): "Level of the classes, from 0, the coarsest.",
    ("marginals", "parent"): "Name of the column above; null for the first.",
    ("noisy", "part"): "Number of the sum of the share, from 0.",
    ("nodes", "parent"): "Number of the parent node; null for the root.",
    ("parts", "size"): "Number of people in the part, if it is known.",
    ("parts", "weight"): "Weight of the part when parts are combined.",
    ("sample", "weight"): "Number of records that the sampled cell stands for.",
    ("statistics", "value"): "The statistic; null where nothing can be said.",
    ("statistics", "value_date"): "The statistic as a date.",
    ("statistics", "low_date"): "Lower end of the interval as a date.",
    ("statistics", "high_date"): "Upper end of the interval as a date.",
    ("steps", "number"): "Number of the step, from 1.",
    ("steps", "time"): "Label of the step.",
    ("steps", "action"): "Whether a fresh histogram was published, or the last one repeated.",
    ("steps", "epsilon"): "The epsilon that the publication was measured with.",
    ("steps", "noise"): "Standard deviation that noise gives the estimate of a bin.",
    ("steps", "change"): "Sum over bins of how far the estimates moved at the step.",
    ("steps", "spent"): "Epsilon spent so far, or within the window that ends with the step.",
    ("steps", "sha256"): "Digest of the step's file of counts.",
    ("weights", "weight"): "Weight of the feature, scaled to the column's bounds.",
    ("weights", "class"): "The class that the weight speaks for.",
}


def described_field(schema: Schema, table: str, field: pa.Field) -> str | None:
    """Describe a field: by its own words, by the schema's, or by what its name stands for."""
    own = field_description(field)
    if column_of(schema, field) == field.name:
        return _of_column(schema, field, own)
    if own is not None:
        return f"{own[:1].upper()}{own[1:].removesuffix('.')}."
    if (end := _END.fullmatch(field.name)) is not None:
        which, what, column = end.groups()
        number = "Number of the" if what == "code" else "The"
        return f"{number} {which} value of {column} in the box."
    plain = _PART.sub("", table).rpartition("/")[2]  # a part of a release, a step of a stream
    return _WORDS_OF_TABLES.get((plain, field.name), _WORDS.get(field.name))


def column_of(schema: Schema, field: pa.Field) -> str | None:
    """Name the column whose values or ends of bins a field holds, if it is about one.

    A field that follows from others may be called as a column by accident: the end `age_low` of
    a bin of `age` is not about a column of that name.
    """
    found = field_note(field, ABOUT)
    if found is None and field_note(field, DERIVED) is None:
        found = field.name
    return found if found in schema.names else None


def _of_column(schema: Schema, field: pa.Field, own: str | None) -> str:
    """Describe a field that is called as a column of the schema."""
    declared = schema[field.name]
    is_number = pa.types.is_floating(field.type) or pa.types.is_integer(field.type)
    is_bin = isinstance(declared, NumberColumn) and not is_number
    said = [f"{'Bin' if is_bin else 'Value'} of {field.name}"]
    said += [text.strip().rstrip(".") for text in (declared.description, own) if text]
    return ": ".join(said[:2]) + "".join(f"; {text}" for text in said[2:]) + "."
