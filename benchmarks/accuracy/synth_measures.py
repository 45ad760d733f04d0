"""How close synthetic rows come to a true table: measures for `synth.py` and for peers.

Four public tables are split into 80 % to publish and 20 % to test on, always in the same way.
Each has one public schema: categories as the code book lists them, 20 equal bins for every
number of more than 20 values, and a cell of its own for values that are missing.  A method may
be given finer numbers (`fine_schema`), but every measure is computed on these cells:

- `tv1`, `tv2`, `tv3`: total variation distance of the marginals of one column, of two (all
  pairs) and of three (100 random triples), each on average;
- `dv`: by how much Cramér's V of two columns is off, on average over all pairs;
- `auc`: gradient boosting that learns from 20,000 synthetic rows and is tested on true rows
  that were not published, on average over binary targets.

NOT PRIVATE: everything here looks at true rows.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import combinations
from math import comb
from pathlib import Path
from statistics import fmean
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from dpublish.core.prediction import encode_rows
from dpublish.data.column import CategoryColumn, Column, NumberColumn
from dpublish.data.schema import Schema, column
from dpublish.datasets.benchmarks import ALL_BENCHMARKS, find_data_folder
from dpublish.errors import UnreadableData
from dpublish.randomness import plain_generator

Codes = NDArray[np.int64]
"""Codes of a table: one row of the array for each column of the table."""

BINS = 20
FINE_BINS = 100
TRAINED_ON = 20_000
TRIPLES = 100
_SPLIT_SEED, _TRIPLES_SEED = 80_20, 0
_PART = 0.8


class Target(NamedTuple):
    """Something to predict: the cells of a column that count as yes, and what may not be used."""

    column: str
    yes: tuple[str, ...]
    without: tuple[str, ...] = ()


class Source(NamedTuple):
    """A public table: its file, how its schema is declared, and what is predicted in it."""

    file: str
    declare: Callable[[Path], Schema]
    targets: Mapping[str, Target]


@dataclass(frozen=True, eq=False)
class Reference:
    """A table to publish, and the rows that are kept back to test on.

    Attributes:
        name: What the benchmarks call it.
        schema: Its public schema, with the cells that are compared.
        train: The rows to publish.
        test: The rows that are kept back.
        targets: What is predicted, by name.
    """

    name: str
    schema: Schema
    train: pa.Table
    test: pa.Table
    targets: Mapping[str, Target]

    @cached_property
    def fine_schema(self) -> Schema:
        """The same columns, with up to 100 cells for a number: what an owner would declare."""
        return cut_numbers(self.schema, FINE_BINS)

    @cached_property
    def sizes(self) -> tuple[int, ...]:
        """The number of cells of each column."""
        return tuple(each.size for each in self.schema.columns)

    @cached_property
    def train_codes(self) -> Codes:
        """The rows to publish, as codes."""
        return self.encode(self.train)

    @cached_property
    def test_codes(self) -> Codes:
        """The rows that are kept back, as codes."""
        return self.encode(self.test)

    def encode(self, rows: pa.Table) -> Codes:
        """Find the cells of rows, true or synthetic; each column is a row of the array."""
        found = encode_rows(rows, self.schema, self.schema.names)
        codes = np.array([found[name] for name in self.schema.names])
        if codes.size and codes.min() < 0:
            raise UnreadableData(f"rows of {self.name} hold a value that its schema does not list")
        return codes

    @cached_property
    def column_sets(self) -> dict[str, list[tuple[int, ...]]]:
        """The sets of columns whose marginals are compared, by measure."""
        d = len(self.sizes)
        triples = list(combinations(range(d), 3))
        chosen = plain_generator(_TRIPLES_SEED).choice(
            comb(d, 3), min(TRIPLES, comb(d, 3)), replace=False
        )
        return {
            "tv1": [(j,) for j in range(d)],
            "tv2": list(combinations(range(d), 2)),
            "tv3": [triples[k] for k in chosen],
        }

    @cached_property
    def shares(self) -> dict[tuple[int, ...], NDArray[np.float64]]:
        """The marginals of the rows to publish, as relative frequencies."""
        every = (columns for sets in self.column_sets.values() for columns in sets)
        return {columns: marginal(self.train_codes, self.sizes, columns) for columns in every}

    @cached_property
    def associations(self) -> dict[tuple[int, ...], float]:
        """Cramér's V of each pair of columns in the rows to publish."""
        return {pair: cramers_v(self.shares[pair]) for pair in self.column_sets["tv2"]}


def load(name: str, folder: str | Path | None = None) -> Reference:
    """Read and split one of the tables: adult, acs, nltcs or census.

    `folder` is where the tables are; without it, the environment variable DPUBLISH_DATA says.
    """
    source = SOURCES[name]
    found = find_data_folder(folder)
    if found is None or not (found / source.file).is_file():
        raise UnreadableData(
            f"{name} needs the file {source.file}; set DPUBLISH_DATA to the folder that holds it"
        )
    schema = source.declare(found)
    rows = pq.read_table(found / source.file, columns=list(schema.names))
    order = plain_generator(_SPLIT_SEED).permutation(rows.num_rows)
    cut = int(_PART * rows.num_rows)
    train, test = rows.take(np.sort(order[:cut])), rows.take(np.sort(order[cut:]))
    return Reference(name, schema, train, test, source.targets)


def cut_numbers(schema: Schema, bins: int) -> Schema:
    """Cut every number of a schema into so many equal bins, or integers if there are fewer."""
    return replace(schema, columns=tuple(_cut_again(each, bins) for each in schema.columns))


def _cut_again(one: Column, bins: int) -> Column:
    if not isinstance(one, NumberColumn):
        return one
    low, high = one.bounds
    few = one.kind == "integer" and high - low < bins
    bounds = [int(low), int(high)] if one.kind == "integer" else [low, high]
    cells = None if few else bins
    return column(one.name, one.kind, bounds=bounds, bins=cells, missing=one.missing)


def marginal(codes: Codes, sizes: tuple[int, ...], columns: tuple[int, ...]) -> NDArray[np.float64]:
    """Count the cells of some columns, as relative frequencies."""
    shape = tuple(sizes[j] for j in columns)
    cells = codes[columns[0]]
    for j in columns[1:]:
        cells = cells * sizes[j] + codes[j]
    counts = np.bincount(cells, minlength=int(np.prod(shape)))
    return (counts / max(codes.shape[1], 1)).reshape(shape)


def cramers_v(shares: NDArray[np.float64]) -> float:
    """Compute Cramér's V of two columns over the rows and columns that are not empty."""
    down, across = shares.sum(axis=1), shares.sum(axis=0)
    degrees = min(np.count_nonzero(down), np.count_nonzero(across)) - 1
    if degrees < 1:
        return 0.0
    expected = np.outer(down, across)
    filled = expected > 0
    chi = ((shares[filled] - expected[filled]) ** 2 / expected[filled]).sum()
    return float(np.sqrt(chi / degrees))


def measures(reference: Reference, rows: pa.Table | Codes) -> dict[str, float]:
    """Compare synthetic rows (a table, or its codes) with the rows to publish."""
    codes = reference.encode(rows) if isinstance(rows, pa.Table) else rows
    found = {}
    associations = []
    for measure, sets in reference.column_sets.items():
        distances = []
        for columns in sets:
            shares = marginal(codes, reference.sizes, columns)
            distances.append(float(np.abs(shares - reference.shares[columns]).sum()) / 2)
            if measure == "tv2":
                associations.append(abs(cramers_v(shares) - reference.associations[columns]))
        found[measure] = fmean(distances)
    return {**found, "dv": fmean(associations)}


def aucs(reference: Reference, rows: pa.Table | Codes, *, seed: int = 0) -> dict[str, float]:
    """Train on synthetic rows and test on true ones: the area under the ROC curve by target.

    At most 20,000 rows are learned from, drawn at random if there are more.
    """
    from sklearn.ensemble import HistGradientBoostingClassifier
    from sklearn.metrics import roc_auc_score
    from threadpoolctl import threadpool_limits

    codes = reference.encode(rows) if isinstance(rows, pa.Table) else rows
    if codes.shape[1] > TRAINED_ON:
        codes = codes[:, plain_generator(seed).choice(codes.shape[1], TRAINED_ON, replace=False)]
    found = {}
    for name, target in reference.targets.items():
        index = reference.schema.names.index(target.column)
        labels = reference.schema[target.column].axis().labels
        yes = [labels.index(label) for label in target.yes]
        used = [j for j, x in enumerate(reference.schema.names) if x not in _left_out(target)]
        learned, truth = (np.isin(each[index], yes) for each in (codes, reference.test_codes))
        if learned.all() or not learned.any():
            found[name] = 0.5
            continue
        model = HistGradientBoostingClassifier(early_stopping=False, random_state=seed)
        with threadpool_limits(1):  # on a busy machine, several threads wait for each other
            model.fit(codes[used].T, learned)
            scores = model.predict_proba(reference.test_codes[used].T)[:, 1]
        found[name] = float(roc_auc_score(truth, scores))
    return found


def auc(reference: Reference, rows: pa.Table | Codes, *, seed: int = 0) -> float:
    """Train on synthetic rows and test on true ones: the mean of `aucs`."""
    return fmean(aucs(reference, rows, seed=seed).values())


def bootstrap(reference: Reference, seed: int = 0) -> Codes:
    """Draw true rows with replacement: as good as rows can be that do not repeat the table."""
    n = reference.train_codes.shape[1]
    return reference.train_codes[:, plain_generator(seed).integers(0, n, n)]


def independent(reference: Reference, seed: int = 0) -> Codes:
    """Shuffle every column on its own: true marginals, and no dependence."""
    generator = plain_generator(seed)
    return np.array([generator.permutation(column) for column in reference.train_codes])


def _left_out(target: Target) -> tuple[str, ...]:
    return (target.column, *target.without)


def _number(name: str, low: int, high: int, *, missing: bool = False) -> Column:
    """Declare integers within public bounds, in 20 equal bins if there are more than 20."""
    bins = BINS if high - low >= BINS else None
    rule = "category" if missing else "refuse"
    return column(name, "integer", bounds=[low, high], bins=bins, missing=rule)


def _categories(name: str, values: str, *, missing: bool = False) -> Column:
    """Declare categories that are written with blanks between them."""
    rule = "category" if missing else "refuse"
    return column(name, "category", values=values.split(), missing=rule)


def _without_levels(one: Column, numbers: Mapping[str, tuple[int, int]]) -> Column:
    """Declare a column of a longer schema again: no taxonomy, and equal bins for a number."""
    if one.name in numbers:
        return _number(one.name, *numbers[one.name], missing=one.missing == "category")
    if isinstance(one, CategoryColumn):
        return column(one.name, "category", values=one.categories, missing=one.missing)
    raise UnreadableData(f"column {one.name} is a number without bounds")


def _declare_again(benchmark: str, numbers: Mapping[str, tuple[int, int]]) -> Callable:
    """Take a benchmark's schema without its levels, and with these bounds for the numbers."""

    def declare(folder: Path) -> Schema:
        known = ALL_BENCHMARKS[benchmark].schema(folder)
        return Schema(tuple(_without_levels(one, numbers) for one in known.columns))

    return declare


def _acs(folder: Path) -> Schema:
    areas = (
        "01-01301 06-07502 06-08507 08-00803 13-04600 17-03529 17-03531 19-01700 24-01004 26-02702"
        " 28-01100 29-01901 30-00600 32-00405 36-03710 36-04010 38-00100 40-00200 51-01301 51-51255"
    )
    return Schema(
        (
            _categories("PUMA", areas),
            _number("AGEP", 0, 99),
            _categories("SEX", "1 2"),
            _categories("MSP", "1 2 3 4 5 6", missing=True),
            _categories("HISP", "0 1 2 3 4"),
            _categories("RAC1P", "1 2 3 4 5 6 7 8 9"),
            _number("NOC", 0, 12, missing=True),
            _number("NPF", 2, 20, missing=True),
            _categories("HOUSING_TYPE", "1 2 3"),
            _categories("OWN_RENT", "0 1 2"),
            column("DENSITY", "numeric", bounds=[0, 60_000], bins=BINS),
            _categories("INDP_CAT", " ".join(map(str, range(19))), missing=True),
            _number("EDU", 1, 12, missing=True),
            _number("PINCP", -10_000, 500_000, missing=True),
            _number("PINCP_DECILE", 0, 9, missing=True),
            _number("POVPIP", 0, 501, missing=True),
            _categories("DVET", "1 2 3 4 5 6", missing=True),
            _categories("DREM", "1 2", missing=True),
            _categories("DPHY", "1 2", missing=True),
            _categories("DEYE", "1 2"),
            _categories("DEAR", "1 2"),
        )
    )


def _nltcs(folder: Path) -> Schema:
    return Schema(tuple(_categories(f"a{j:02}", "0 1") for j in range(16)))


_ADULT_NUMBERS = {
    "age": (17, 90),
    "fnlwgt": (0, 1_500_000),
    "education_num": (1, 16),
    "capital_gain": (0, 99_999),
    "capital_loss": (0, 4_999),
    "hours_per_week": (1, 99),
}
_CENSUS_NUMBERS = {
    "age": (0, 90),
    "wage_per_hour": (0, 9_999),
    "capital_gains": (0, 99_999),
    "capital_losses": (0, 4_999),
    "dividends_from_stocks": (0, 99_999),
    "num_persons_worked_for_employer": (0, 6),
    "weeks_worked_in_year": (0, 52),
}
SOURCES = {
    "adult": Source(
        "adult.parquet",
        _declare_again("adult-all", _ADULT_NUMBERS),
        {
            "income": Target("income", (">50K",)),
            "married": Target("marital_status", ("Married-civ-spouse", "Married-AF-spouse")),
            "sex": Target("sex", ("Male",)),
        },
    ),
    "acs": Source(
        "nist_acs_national2019.parquet",
        _acs,
        {
            "rich": Target("PINCP_DECILE", ("8", "9"), without=("PINCP",)),
            "married": Target("MSP", ("1", "2")),
            "owner": Target("OWN_RENT", ("1",)),
        },
    ),
    "nltcs": Source(
        "privbayes_nltcs.parquet",
        _nltcs,
        {name: Target(name, ("1",)) for name in ("a00", "a05", "a10")},
    ),
    "census": Source(
        "census_income_kdd_test.parquet",
        _declare_again("census", _CENSUS_NUMBERS),
        {
            "income": Target("income", (">50K",)),
            "married": Target(
                "marital_stat",
                ("Married-civilian spouse present", "Married-A F spouse present"),
                without=("tax_filer_stat",),
            ),
            "sex": Target("sex", ("Male",)),
        },
    ),
}
"""The tables that can be loaded, by name."""
