"""A public schema and settings of every method and stream, for audits and tests that run on all."""

import tomllib
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any

from dpublish.data.schema import Schema, column
from dpublish.data.schema_file import from_dict

SCHEMA_TEXT = """
[columns.age]
kind = "integer"
bounds = [0, 99]
bins = 10
branching = 2

[columns.sex]
kind = "category"
values = ["Female", "Male"]

[columns.height]
kind = "numeric"
bounds = [100, 220]
bins = 6
missing = "category"

[columns.town]
kind = "category"
values = ["Ost", "West", "Nord", "Sued"]
other = "Elsewhere"
missing = "drop"
"""
SCHEMA = from_dict(tomllib.loads(SCHEMA_TEXT))
"""Four columns of every kind: an integer with levels, categories, a number that may be missing."""

# Levels by a rule, so that the table needs no further column.
RULE: Mapping[str, Any] = {
    "preference": "sex",
    "rule": "Female=1.5; Male=3",
    "levels": ("1.5", "3"),
    "derived": True,
}
EXAMPLES: Mapping[str, Sequence[Mapping[str, Any]]] = {
    "synth": [
        {"target_weight": 2},
        {"columns": ("age", "sex", "town"), "target": ("sex",), "quality_share": Fraction(0)},
        {"columns": ("height",)},
    ],
    "histogram": [
        {"columns": ("age", "sex")},
        {"columns": ("height", "town@0")},
        {"columns": ("age@2", "sex", "height", "town"), "threshold": 3},
        {"columns": ("age", "town"), "threshold": "auto"},
    ],
    "statistics": [
        {"measures": ("count", "mean(age)", "variance(height)", "sum(age)"), "by": ("sex",)},
        {"measures": "count(height), median(height), quantile(age, 0.9)", "by": ("town", "age@1")},
        {"measures": ("sum(height)", "std(age)"), "shares": ("sum(height)=2",), "suppress": True},
    ],
    "privpfc": [
        {"target": "sex"},
        {"target": "town", "predictors": ("age", "sex"), "pool": 5, "rounds": 2},
        {"target": "sex", "rounds": 0, "cells_per_record": "0.2"},
    ],
    "diffgen": [
        {"target": "sex"},
        {"target": "town", "predictors": ("age", "sex"), "steps": 30, "tree_share": Fraction(1, 3)},
        {"target": "sex", "predictors": ("height", "age"), "steps": 3, "threshold": 2},
        {"target": "sex", "threshold": "auto", "steps": 2},
    ],
    "pph": [
        {"target": "sex"},
        {"target": "town", "attributes": 2},
        {
            "target": "sex",
            "predictors": ("age", "height"),
            "attributes": 2,
            "selection_share": Fraction(1, 2),
        },
        {"target": "sex", "attributes": 1},
    ],
    "privbayes": [
        {"target": "sex"},
        {"columns": ("age", "sex", "town"), "theta": Fraction(1, 50), "max_degree": 2},
        {"columns": ("sex",), "score": "F", "max_degree": 1},
        {"columns": ("height", "town"), "theta": Fraction(1000)},
    ],
    "marginals": [
        {"marginal": "auto"},
        {"columns": ("age", "height"), "marginal": "hierarchical"},
        {"columns": ("town", "age"), "marginal": "efpa"},
        {"columns": ("height",), "marginal": "noise-first"},
        {"columns": ("age", "height"), "marginal": "structure-first"},
    ],
    "dpcopula": [
        {"correlation": "spearman"},
        {"columns": ("age", "height", "sex"), "correlation": "kendall", "marginal": "hierarchical"},
        {"columns": ("age", "height"), "correlation": "mle", "ratio": Fraction(2), "shrink": False},
        {"columns": ("town",)},
        {"columns": ("age", "height", "sex"), "correlation": "kendall", "sample": 3},
    ],
    "dpcopula-hybrid": [
        {"design": "auto"},
        {"columns": ("age", "height", "sex"), "least_values": 3, "theta": Fraction(1, 50)},
        {"design": "network", "theta": Fraction(1, 50), "max_degree": 2},
        {"design": "cells", "columns": ("age", "sex")},
        {"design": "cells", "least_records": 1},
        {"design": "cells", "least_records": 1, "least_values": 3, "copulas": "per-cell"},
    ],
    "psd": [
        {"columns": ("age", "height")},
        {"columns": ("height", "age"), "median_share": Fraction(1, 2)},
        {"columns": ("age", "height", "sex"), "median_share": Fraction(1, 10)},
    ],
    "ug": [
        {"columns": ("age", "height")},
        {"columns": ("height",)},
        {"columns": ("sex", "age", "height")},
    ],
    "ag": [{"columns": ("age", "height")}, {"columns": ("age", "height", "sex")}],
    "privelet": [
        {"transform": "haar"},
        {"columns": ("age", "sex", "height")},
        {"columns": ("town", "age"), "transform": "haar"},
    ],
    "p-hp": [{"depth": 3}, {"columns": ("height",), "depth": 12}, {"columns": ("sex", "town")}],
    "filter-priority": [
        {"sample": 5, "threshold": 1},
        {"columns": ("age", "town", "sex"), "threshold": "auto"},
        {"threshold": 2},
    ],
    "diffpid3": [
        {"target": "sex"},
        {
            "target": "town",
            "predictors": ("age@2", "sex", "height"),
            "depth": 2,
            "score": "gini",
            "cuts": "staged",
            "prune": True,
        },
        {"target": "sex", "depth": 1, "score": "entropy", "max_records": 1000},
    ],
    "majority": [{"target": "town"}],
    "model": [
        {"target": "sex"},
        {"target": "town", "predictors": ("age", "sex"), "model": "svm", "pool": 5},
        {"target": "age", "predictors": ("sex", "height")},
    ],
    "privgene": [
        {"target": "sex", "rounds": 3},
        {
            "target": "town",
            "predictors": ("age", "height"),
            "model": "svm",
            "rounds": 2,
            "population": 30,
        },
        {"target": "sex", "choice": "plain", "population": 30},
        {
            "target": "sex",
            "predictors": ("age",),
            "model": "svm",
            "choice": "candidates",
            "parents": 2,
            "population": 20,
            "rounds": 3,
            "cost": Fraction(2),
            "bound": Fraction(2),
        },
    ],
    "privlocal": [
        {"target": "sex"},
        {"target": "town", "predictors": ("age", "sex"), "model": "svm", "rounds": 2},
        {"target": "sex", "moves": "single"},
    ],
    "private-erm": [
        {"target": "sex"},
        {"target": "town", "predictors": ("age",), "model": "svm"},
        {"target": "sex", "noise": "spherical", "regularization": Fraction(1, 100)},
    ],
    "output-perturbation": [{"target": "sex"}, {"target": "town", "predictors": ("age",)}],
    "private-svm": [
        {"target": "sex"},
        {"target": "town", "predictors": ("age",), "cost": Fraction(10)},
        {"target": "sex", "features": "random-fourier", "waves": 3, "bandwidth": Fraction(1)},
    ],
    "functional": [
        {"target": "sex"},
        {"target": "town", "predictors": ("age", "height"), "bound": Fraction(1, 2)},
        {"target": "age", "model": "linear"},
        {"target": "sex", "predictors": ("age", "height"), "calibration": "paper"},
    ],
    "gupt": [
        {"target": "sex"},
        {"target": "age", "model": "linear", "predictors": ("sex", "town"), "blocks": 3},
        {"target": "town", "predictors": ("height",), "bound": Fraction(1, 4)},
        {"target": "sex", "predictors": ("age",), "model": "svm", "blocks": 4},
    ],
    "kmeans": [{"n_clusters": 2}, {"n_clusters": 5, "columns": ("height",)}],
    "dplloyd": [
        {"n_clusters": 2},
        {"n_clusters": 3, "columns": ("height",), "max_iter": 2, "start": "uniform"},
        {"n_clusters": 9, "columns": ("height", "age")},
        {"n_clusters": 2, "columns": ("height",), "max_iter": 4, "schedule": "halving"},
    ],
    "dplloyd-impr": [{"n_clusters": 2}, {"n_clusters": 1, "columns": ("age",)}],
    "eugkm": [
        {"n_clusters": 2},
        {"n_clusters": 3, "columns": ("height",), "n_init": 2},
        {"n_clusters": 2, "columns": ("age",), "n_init": 2, "theta": Fraction(5, 2)},
    ],
    "ugkm": [{"n_clusters": 2}],
    "mkm": [{"n_clusters": 2, "columns": ("age",)}],
    "hybrid": [
        {"n_clusters": 2},
        {"n_clusters": 5, "columns": ("age",)},
        {"n_clusters": 2, "columns": ("age",), "n_init": 2, "theta": Fraction(30)},
    ],
    "gkm": [
        {"n_clusters": 2, "blocks": 3},
        {"n_clusters": 2, "output_range": "loose", "max_iter": 2},
    ],
    "pgkm": [
        {"n_clusters": 2, "rounds": 3, "population": 30},
        {"n_clusters": 3, "columns": ("height",), "rounds": 3, "population": 20, "parents": 2},
        {"n_clusters": 2, "rounds": 3, "population": 20, "parents": 5, "choice": "plain"},
    ],
    "privqt": [{"cells": 8}, {"columns": ("height",), "cells": 8, "wavelet": "db2", "levels": 2}],
    "privthr": [
        {"cells": 8},
        {
            "columns": ("age", "height"),
            "cells": 4,
            "wavelet": "bior2.2",
            "variant": "paper",
            "counts_share": Fraction(9, 10),
            "percentile": Fraction(1, 2),
        },
    ],
    "privthr-em": [{"cells": 8}, {"columns": ("age",), "wavelet": "coif1", "adjacency": "face"}],
    "wave-baseline": [
        {"cells": 8},
        {"columns": ("height",), "cells": 8, "min_cells": 2},
        {"columns": ("age", "height"), "cells": (8, 4), "points": "drawn"},
    ],
    "topk": [
        {"column": "town", "count": 2},
        {"column": "age", "count": 3, "with_counts": True},
        {"column": "town", "count": 2, "selection": "peel-exponential"},
        {"column": "age", "count": 2, "selection": "peel-permute-and-flip"},
        {"column": "age@2", "count": 2, "selection": "sparse-vector", "with_counts": True},
    ],
    "minimum": [
        {"inner": "histogram columns=age,sex", **RULE},
        {"inner": "majority target=town", "mode": "values-only", **RULE},
    ],
    "threshold": [
        {"inner": "marginals", "threshold": "1.5", **RULE},
        {
            "inner": "histogram columns=height",
            "threshold": "1.5",
            "mode": "values-only",
            "exchangeable": True,
            **RULE,
        },
    ],
    "sampling": [
        {"inner": "histogram columns=town", **RULE},
        {
            "inner": "marginals",
            "threshold": "mean",
            "mode": "values-only",
            "exchangeable": True,
            **RULE,
        },
    ],
    "bounds": [
        {"column": "age"},
        {"column": "height", "sides": "upper", "coverage": Fraction(9, 10)},
        {"column": "age", "sides": "lower", "coverage": Fraction(1, 2)},
    ],
    "personalized-em": [
        {"statistic": "count", "query": "age >= 30", "most": "500", **RULE},
        {"statistic": "median", "column": "age", "mode": "values-only", **RULE},
    ],
    "partitioning": [
        {"inner": "histogram columns=age", **RULE},
        {"inner": "marginals", "exchangeable": True, "mode": "values-only", **RULE},
    ],
    "weighting": [
        {"columns": ("age", "town"), "exchangeable": True, "mode": "values-only", **RULE},
        {
            "columns": ("height",),
            "exchangeable": True,
            "mode": "values-only",
            "limit": "1.5",
            **RULE,
        },
    ],
    "t-round": [{"inner": "histogram columns=age", "exchangeable": True, **RULE}],
}
"""Settings that fit the schema, by the name of the method; together they take every way."""

STREAM_SCHEMA = Schema(
    (
        column("zone", "category", values=["north", "south", "east"]),
        column("hour", "integer", bounds=[0, 7]),
    ),
    unit="user",
)
SPAN = 6
"""Steps of a window; a stream with an end has twice as many."""
_ENDS, _WINDOW = {"horizon": 2 * SPAN}, {"window": SPAN}
_HOURS = {"columns": ("hour",)}
_ZONES: Mapping[str, Any] = {"columns": ("zone", "hour")}
_STREAMS: Sequence[tuple[str, Mapping[str, Any]]] = [
    ("dsat", _ENDS),
    ("dsat", {**_ENDS, "controller": "schedule", "contribution": 3}),
    ("dsat", {**_ENDS, "controller": "paper", "releases": 3, "static": "grouped"}),
    ("dsat-w", _WINDOW),
    ("dsat-w", {**_WINDOW, "controller": "schedule", "contribution": 3}),
    ("per-snapshot", _ENDS),
    ("per-snapshot", {**_WINDOW, **_HOURS, "static": "hierarchical", "contribution": 2}),
    ("fixed-sampling", _ENDS),
    ("fixed-sampling", {**_WINDOW, **_HOURS, "static": "efpa"}),
    ("dsft", {**_ENDS, "releases": 4}),
    ("dsft", {**_ENDS, "releases": 2, "threshold": Fraction(50), "contribution": 3}),
    ("bd", _WINDOW),
    ("bd", {**_WINDOW, "static": "grouped", "contribution": 3}),
    ("ba", _WINDOW),
    ("ba", {**_WINDOW, **_HOURS, "static": "ug"}),
]
STREAM_EXAMPLES: Sequence[tuple[str, Mapping[str, Any]]] = [
    (name, {**_ZONES, **settings}) for name, settings in _STREAMS
]
"""Names and settings of streams."""
