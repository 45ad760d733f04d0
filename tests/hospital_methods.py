"""The methods that hide all visits of a patient, each with settings for the simulated hospital."""

from dpublish.datasets.hospital import LEVELS

CONTRIBUTION = 3
HOME = ("home_east", "home_north")

METHODS = {
    "histogram": {"columns": ("ward", "sex")},
    "statistics": {"measures": ("count", "mean(cost)", "median(stay)"), "by": ("ward",)},
    "marginals": {"columns": ("ward", "age", "stay", "cost")},
    "synth": {"columns": ("ward", "sex", "age", "readmitted"), "target": ("readmitted",)},
    "privpfc": {"target": "readmitted", "predictors": ("ward", "age", "stay", "sex")},
    "privbayes": {"columns": ("ward", "sex", "age", "readmitted")},
    "dpcopula": {"columns": ("age", "stay", "cost")},
    "dpcopula-hybrid": {"columns": ("age", "stay", "ward", "sex")},
    "kmeans": {"columns": HOME, "n_clusters": 4},
    "model": {"target": "readmitted", "predictors": ("ward", "age", "stay")},
    "topk": {"column": "diagnosis", "count": 3, "with_counts": True},
    "ag": {"columns": HOME},
    "privthr": {"columns": HOME},
}
"""Methods for tables, by name, with settings."""

STREAM = {"columns": ("ward",), "horizon": 24}
"""Settings of the stream `per-snapshot`: a snapshot is a month, and there are two years."""

PERSONALIZED = {
    "inner": "histogram columns=ward",
    "preference": "accepts",
    "levels": LEVELS,
}
"""Settings of the personalized methods: what patients accept is a column of the table."""
