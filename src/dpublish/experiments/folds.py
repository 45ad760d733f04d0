"""Benchmarks cut into ten folds: nine to publish from, one to measure on."""

from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from dpublish.data.column import CategoryColumn
from dpublish.data.schema import Schema
from dpublish.datasets.benchmarks import ALL_BENCHMARKS, Benchmark, GivenBenchmark
from dpublish.errors import InvalidParameter, require_count
from dpublish.evaluation.classification import HeldOut, stratified_folds
from dpublish.evaluation.features import encode_classes
from dpublish.experiments.own_table import OwnTable
from dpublish.experiments.trials import Result, how_often
from dpublish.randomness import plain_generator
from dpublish.types import IntArray

FOLDS = 10


class Split(NamedTuple):
    """One fold of a dataset to measure on, the others to learn from."""

    schema: Schema
    target: str
    train: pa.Table
    held_out: HeldOut


class Folds:
    """Reads the benchmarks of a data folder, and keeps the last one and its last split."""

    def __init__(
        self, folder: Path | None, benchmarks: Mapping[str, Benchmark] = ALL_BENCHMARKS
    ) -> None:
        self._folder = folder
        self._benchmarks = benchmarks
        self.load = lru_cache(maxsize=1)(self._load)
        self.split = lru_cache(maxsize=1)(self._split)

    def _load(self, dataset: str) -> tuple[Schema, pa.Table, IntArray]:
        benchmark = self._benchmarks[dataset]
        schema, rows = benchmark.schema(self._folder), benchmark.rows(self._folder)
        if benchmark.fold_column is not None:
            return schema, rows, np.asarray(rows[benchmark.fold_column])
        classes = encode_classes(rows, schema, benchmark.target)
        return schema, rows, stratified_folds(classes, FOLDS, seed=2024)

    def _split(self, dataset: str, fold: int, limit: int) -> Split:
        benchmark = self._benchmarks[dataset]
        schema, rows, folds = self.load(dataset)
        held_out = HeldOut.of(rows.filter(pa.array(folds == fold)), schema, benchmark.target)
        train = rows.filter(pa.array(folds != fold))
        if limit and benchmark.make is not None:
            train = benchmark.make(limit, fold)  # fresh rows, as many as wanted
        elif limit:
            order = plain_generator(fold).permutation(train.num_rows)
            train = train.take(pa.array(order[:limit]))
        return Split(schema, benchmark.target, train, held_out)


def own_benchmark(table: OwnTable) -> Benchmark:
    """Make a benchmark of a user's own table, with the column that the user named as the class."""
    target = table.target
    if target is None:
        raise InvalidParameter("name the class column with --target COLUMN")
    column = table.schema[target]
    if not isinstance(column, CategoryColumn):
        raise InvalidParameter(
            f"{target!r} cannot be the class: it is a number; "
            'a class is a column of kind "category" or "ordinal"'
        )
    if column.size < 2 or len(table.schema.names) < 2:
        raise InvalidParameter(
            f"{target!r} cannot be the class: a class needs at least two values and a column to "
            "predict it from"
        )
    if table.rows.num_rows < FOLDS:
        raise InvalidParameter(f"{table.name} has fewer than {FOLDS} rows, one for each fold")
    return GivenBenchmark(
        name=table.name,
        predicts=f"Which value of {target} does a record have?",
        source="A table of the user",
        target=target,
        records=table.rows.num_rows,
        given_schema=table.schema,
        given_rows=table.rows,
    )


def require_folds(folds: int) -> None:
    """Refuse a number of folds that there are not."""
    require_count(folds=folds)
    if folds > FOLDS:
        raise InvalidParameter(f"folds ({folds}) must be at most {FOLDS}")


def fold_words(results: Sequence[Result], made: str) -> str:
    """Describe folds and repeats; `made` is what is done with the folds to learn from."""
    folds = len({trial.setting["fold"] for trial, _ in results})
    return (
        f"Each dataset is cut into {FOLDS} folds that hold equal parts of every class. In turn "
        f"{folds} of them {'is' if folds == 1 else 'are'} measured on, and {made} the other "
        f"{FOLDS - 1}; each is done {how_often(results)} with fresh noise."
    )
