"""Errors of classifiers on people who were kept back, ours and those of diffprivlib.

All of them learn from the same folds of public tables, and are measured on the others.  Peers get
what their documentation asks for, from the public schema alone: bounds, classes, and the largest
norm of a row.
"""

import argparse
import tempfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from environments import PEERS, Stopped, run_script
from figures import ADD_REMOVE, NOT_STATED, OURS, Figure

from dpublish.core.prediction import encode_rows
from dpublish.data.column import NumberColumn
from dpublish.datasets.benchmarks import find_data_folder
from dpublish.evaluation.features import encode_classes, encode_features
from dpublish.evaluation.metrics.classification import misclassification
from dpublish.experiments.folds import Folds, Split
from dpublish.experiments.models import MOST_FREQUENT, STUDY, WRONG
from dpublish.experiments.study import NOISE_FREE

TASK = "classes"
OWN = ("privpfc", "model")
REFERENCES = {
    NOISE_FREE: "logistic regression without privacy",
    MOST_FREQUENT: "always the majority class",
}
TABLES = ("adult", "bank", "acs")
MODELS = ("GaussianNB", "LogisticRegression", "DecisionTree", "RandomForest")


def own_figures(options: argparse.Namespace) -> Iterator[Figure]:
    """Measure our classifiers, and what bounds them."""
    with tempfile.TemporaryDirectory() as folder:
        planned = STUDY.plan(
            1,
            data_folder=find_data_folder(options.data_folder),
            datasets=TABLES,
            methods=OWN,
            epsilons=options.epsilons,
            classifiers=("logistic",),
            folds=options.folds,
        )
        results = planned.run(Path(folder) / "classes.jsonl", lambda *_: None)
    found: dict[tuple[str, str, str], dict[str, list[float]]] = {}
    for trial, measured in results:
        measures = found.setdefault((trial.dataset, trial.epsilon, trial.method), {})
        measures.setdefault("wrong", []).append(measured[WRONG])
    for (table, epsilon, method), measures in found.items():
        yield Figure(
            task=TASK,
            table=table,
            epsilon=epsilon,
            who=OURS if method in OWN else "none",
            method=REFERENCES.get(method, method),
            delta="0" if method in OWN else "",
            neighbors=ADD_REMOVE if method in OWN else "",
            measures=measures,
            date=options.date,
        )


def largest_norm(split: Split) -> float:
    """Compute the largest norm of encoded rows from the public schema."""
    squares = 0.0
    for column in split.schema.columns:
        if column.name == split.target:
            continue
        with_flag = isinstance(column, NumberColumn) and column.missing == "category"
        squares += 1.25 if with_flag else 1.0  # a missing number is 0.5, and has a flag
    return float(np.sqrt(squares))


def encode_split(split: Split) -> dict[str, np.ndarray]:
    """Encode a fold as features for linear models, and one number for each column for others."""
    columns = [column for column in split.schema.columns if column.name != split.target]
    given = {"data_norm": np.array(largest_norm(split))}
    for name, rows in (("train", split.train), ("test", split.held_out.rows)):
        codes = encode_rows(rows, split.schema, [column.name for column in columns])
        given[f"{name}_features"] = encode_features(rows, columns).astype(np.float64)
        given[f"{name}_codes"] = np.stack(
            [codes[column.name] / max(column.size - 1, 1) for column in columns], axis=1
        )
    given["classes"] = encode_classes(split.train, split.schema, split.target)
    given["class_count"] = np.array(split.schema[split.target].size)
    return given


def peer_figures(options: argparse.Namespace) -> Iterator[Figure]:
    """Measure the classifiers of diffprivlib."""
    peer = PEERS["diffprivlib"]
    folds = Folds(find_data_folder(options.data_folder))
    wrong: dict[tuple[str, str, str], list[float]] = {}
    for table in TABLES:
        for fold in range(options.folds):
            split = folds.split(table, fold, 0)
            given = encode_split(split) | {"task": TASK, "models": np.array(MODELS)}
            given["epsilons"] = np.array([float(epsilon) for epsilon in options.epsilons])
            try:
                made = run_script("diffprivlib_figures.py", peer, given, options.minutes)
            except Stopped as why:
                print(f"{peer.title}, {table}: {why}")
                return
            for j, epsilon in enumerate(options.epsilons):
                for k, model in enumerate(MODELS):
                    key = (table, epsilon, model)
                    error = misclassification(made["predicted"][j, k], split.held_out.classes)
                    wrong.setdefault(key, []).append(error)
    for (table, epsilon, model), values in wrong.items():
        yield Figure(
            task=TASK,
            table=table,
            epsilon=epsilon,
            who=peer.title,
            method=model,
            delta="0",
            neighbors=NOT_STATED,
            measures={"wrong": values},
            date=options.date,
        )
