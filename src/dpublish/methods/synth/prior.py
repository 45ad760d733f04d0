"""A public prior: rows of a public table or of an earlier release, to start the model from."""

from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import combinations
from pathlib import Path

import numpy as np
import pyarrow as pa

from dpublish.core.prediction import UNKNOWN, encode_rows, find_column
from dpublish.core.run import Run
from dpublish.data.schema import Schema
from dpublish.errors import InvalidParameter, UnreadableData
from dpublish.methods.synth.choice import (
    Candidate,
    ExactTables,
    excess,
    finest,
    in_steps,
    whole_scores,
)
from dpublish.methods.synth.junction_tree import Columns
from dpublish.methods.synth.model import Known, Model, PriorTable, fit_model
from dpublish.methods.synth.quality import STEPS
from dpublish.privacy.budget import Budget
from dpublish.types import FloatArray, IntArray

ROWS = 1 << 17
"""Rows that are drawn from an earlier release."""
_SEED = 20_261_118
_CELLS_PER_ROW = 0.2
"""Most cells of a prior's table, for each of its rows."""
_SMOOTHING = 0.5


@dataclass(frozen=True, eq=False)
class Prior:
    """Public rows as codes; columns that they lack are not there."""

    codes: dict[str, IntArray]

    @property
    def rows(self) -> int:
        """Number of rows."""
        return len(next(iter(self.codes.values()), ()))


def read_prior(path: str, schema: Schema, names: tuple[str, ...]) -> Prior:
    """Read a public table, or draw rows from an earlier release, as codes of the schema."""
    table = _read_rows(path, _stamp(path))
    found = [name for name in names if find_column(table, schema[name]) in table.column_names]
    if len(found) < 2:
        raise InvalidParameter(f"the prior {path} has fewer than two of the columns to publish")
    codes = encode_rows(table, schema, found)
    kept = np.all([along != UNKNOWN for along in codes.values()], axis=0)
    if not kept.any():
        raise InvalidParameter(f"the prior {path} has no row whose values the schema lists")
    return Prior({name: along[kept] for name, along in codes.items()})


def _stamp(path: str) -> tuple[int, int] | None:
    """Tell a file from what is written to its path later; None if there is none."""
    try:
        found = Path(path).stat()
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size


@lru_cache(maxsize=4)
def _read_rows(path: str, stamp: tuple[int, int] | None) -> pa.Table:
    """Read the rows of a public file, or of the release in a folder."""
    if Path(path).is_dir():
        from dpublish.core.folder.folder import load

        return load(path).rows(ROWS, seed=_SEED)
    if not Path(path).exists():
        raise UnreadableData(f"the prior {path} is not there")
    import duckdb

    readers = {".parquet": "read_parquet", ".csv": "read_csv"}
    reader = readers.get(Path(path).suffix)
    if reader is None:
        raise InvalidParameter(f"{path}: a prior is a .parquet or .csv file, or a release folder")
    try:
        with duckdb.connect() as link:
            return link.sql(f"select * from {reader}(?)", params=[path]).to_arrow_table()
    except duckdb.Error as error:
        raise UnreadableData(f"the prior {path} cannot be read: {error}") from None


def choose_prior(
    run: Run, known: Known, exact: ExactTables, prior: Prior, *, budget: Budget
) -> Known:
    """Take a prior if it fits the rows better than independent columns.

    Privacy:
        `budget.epsilon`-differentially private when one record is added or removed.  What each
        of the two models expects follows from the prior and noisy marginals.  A score is minus
        the records by which true counts exceed what is expected, over all pairs of columns: a
        record adds 0 to 1 to each pair's excess, so a score falls by 0 to the number of pairs,
        and none rises.  Proof: docs/proofs/synth.md.
    """
    with_prior = replace(known, prior=prior_tables(known, prior))
    models = [fit_model(known), fit_model(with_prior)]
    pairs = list(combinations(range(len(known.names)), 2))
    scores = [-sum(_pair_excess(model, exact, pair) for pair in pairs) for model in models]
    index = run.select(whole_scores(scores), sensitivity_range=STEPS * len(pairs), budget=budget)
    return (known, with_prior)[index]


def _pair_excess(model: Model, exact: ExactTables, pair: Columns) -> int:
    levels = tuple(len(model.known.classes[i].levels) - 1 for i in pair)
    return excess(exact.last(pair), in_steps(model.expected(pair, levels)))


def prior_tables(known: Known, prior: Prior) -> tuple[PriorTable, ...]:
    """Join the columns by the pairs that depend most in the prior's rows: a forest."""
    limit = max(4.0, _CELLS_PER_ROW * prior.rows)
    there = [i for i, name in enumerate(known.names) if name in prior.codes]
    found: dict[Columns, tuple[float, PriorTable]] = {}
    for pair in combinations(there, 2):
        one = finest(known, pair, limit)
        if one is not None:
            table = _tabulate(known, prior, one)
            found[pair] = (_strength(table), PriorTable(*one, table))
    tree = list(range(len(known.names)))
    chosen = []
    for columns in sorted(found, key=lambda x: (-found[x][0], x)):
        a, b = (tree[i] for i in columns)
        if a != b:
            tree = [a if one == b else one for one in tree]
            chosen.append(found[columns][1])
    return tuple(chosen)


def _tabulate(known: Known, prior: Prior, one: Candidate) -> FloatArray:
    """Compute the probabilities of a table by the prior's rows, a little smoothed."""
    along = [
        known.classes[i].levels[level][prior.codes[known.names[i]]]
        for i, level in zip(*one, strict=True)
    ]
    shape = tuple(known.classes[i].sizes[level] for i, level in zip(*one, strict=True))
    counts = np.bincount(np.ravel_multi_index(along, shape), minlength=int(np.prod(shape)))
    expected = np.ones(())
    for cells, size in zip(along, shape, strict=True):
        expected = np.multiply.outer(expected, np.bincount(cells, minlength=size) / prior.rows)
    smooth = counts.reshape(shape) + _SMOOTHING * counts.size * (expected + 1e-6)
    return np.asarray(smooth / smooth.sum())


def _strength(table: FloatArray) -> float:
    independent = np.multiply.outer(table.sum(axis=1), table.sum(axis=0))
    return float(np.abs(table - independent).sum())
