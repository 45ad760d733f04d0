"""What a buyer's ordinary classifiers learn from rows of a PrivPfC release.

Trains scikit-learn's decision tree (depth 8, at least 50 rows a leaf), logistic regression
(one-hot categories, standardized numbers) and histogram gradient boosting, as they come, on raw
values and on the release's cells, and measures them on a fold that was held out.

Run: .venv/bin/python benchmarks/accuracy/privpfc_rows.py [--data-folder DATA] [--dataset adult]
     [--epsilons 0.2,0.5,1] [--folds 3] [--models tree,logistic]
"""

import argparse
import warnings
from pathlib import Path
from statistics import fmean

import numpy as np
import pandas as pd
import pyarrow as pa
from sklearn.compose import make_column_transformer
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, OrdinalEncoder, StandardScaler
from sklearn.tree import DecisionTreeClassifier
from threadpoolctl import threadpool_limits

from dpublish.core.prediction import encode_rows
from dpublish.core.registry import make_method
from dpublish.data.sources import open_table
from dpublish.datasets.benchmarks import BENCHMARKS, Benchmark, find_data_folder
from dpublish.evaluation.classification import stratified_folds
from dpublish.evaluation.features import encode_classes
from dpublish.methods.privpfc.released import PrivPfCRelease
from dpublish.privacy.budget import Budget
from dpublish.randomness import seeded

FIRST_SEED = 100
MODELS = {
    "tree": lambda: DecisionTreeClassifier(max_depth=8, min_samples_leaf=50, random_state=0),
    "logistic": lambda: LogisticRegression(max_iter=300),
    "boosting": lambda: HistGradientBoostingClassifier(random_state=0),
}


def main() -> None:
    options = _options()
    folder = find_data_folder(options.data_folder)
    benchmark = BENCHMARKS[options.dataset]
    missing = benchmark.missing_file(folder)
    if missing is not None:
        print(f"skipped: {missing} is not there; name its folder with --data-folder")
        return
    figures = []
    with threadpool_limits(limits=1), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # 300 steps may not be enough for the last digit
        for epsilon in options.epsilons.split(","):
            found = _measure(benchmark, folder, epsilon, options)
            for name, errors in found.items():
                print(f"epsilon {epsilon}, {name}: {100 * fmean(errors):.2f} %", flush=True)
                figures.append(f"{name}_{epsilon}={fmean(errors):.4f}")
    print("RESULT", *figures)


def _measure(
    benchmark: Benchmark, folder: Path | None, epsilon: str, options: argparse.Namespace
) -> dict[str, list[float]]:
    rows, schema = benchmark.rows(folder), benchmark.schema(folder)
    if benchmark.fold_column is None:
        fold_of = stratified_folds(encode_classes(rows, schema, benchmark.target), 10, seed=1)
    else:
        fold_of = rows[benchmark.fold_column].to_numpy()
    found: dict[str, list[float]] = {}
    for fold in range(options.folds):
        train = open_table(rows.filter(pa.array(fold_of != fold)), schema)
        method = make_method("privpfc", {"target": benchmark.target})
        release = method.release(
            train, budget=Budget.seeded(epsilon), rng=seeded(FIRST_SEED + fold)
        )
        test = rows.filter(pa.array(fold_of == fold))
        for name, error in _errors(release, test, fold, options.models.split(",")).items():
            found.setdefault(name, []).append(error)
    return found


def _errors(
    release: PrivPfCRelease, test: pa.Table, seed: int, models: list[str]
) -> dict[str, float]:
    target = release.classes.column
    drawn = release.rows(seed=seed)
    labels, truth = drawn[target].to_pandas(), test[target].to_pandas()
    found = {"own": float((release.predict(test).to_pandas() != truth).mean())}
    raw, raw_test = drawn.drop_columns(target).to_pandas(), test.to_pandas()
    cells, cells_test = _by_cells(release, drawn), _by_cells(release, test)
    for name in models:
        model = _on_raw_values(raw, name).fit(raw, labels)
        found[f"{name}-raw"] = float((model.predict(raw_test[raw.columns]) != truth).mean())
        model = MODELS[name]().fit(cells, labels)
        found[f"{name}-cells"] = float((model.predict(cells_test) != truth).mean())
    return found


def _on_raw_values(rows: pd.DataFrame, name: str) -> object:
    """Build what a buyer would: boosting gets codes of categories, the others ones and zeros."""
    numbers = list(rows.select_dtypes("number"))
    categories = [column for column in rows if column not in numbers]
    codes = OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=-1)
    encoder = codes if name == "boosting" else OneHotEncoder(handle_unknown="ignore")
    columns = make_column_transformer((encoder, categories), (StandardScaler(), numbers))
    return make_pipeline(columns, MODELS[name]())


def _by_cells(release: PrivPfCRelease, rows: pa.Table) -> np.ndarray:
    codes = encode_rows(rows, release.schema, release.card.columns)
    axes = [axis for term in release.card.terms for axis in term.axes]
    return np.hstack([np.eye(axis.size)[axis.leaf_to_cell[codes[axis.column]]] for axis in axes])


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data-folder")
    parser.add_argument("--dataset", default="adult", choices=sorted(BENCHMARKS))
    parser.add_argument("--epsilons", default="0.2,0.5,1")
    parser.add_argument("--folds", type=int, default=3)
    parser.add_argument("--models", default=",".join(MODELS))
    return parser.parse_args()


if __name__ == "__main__":
    main()
