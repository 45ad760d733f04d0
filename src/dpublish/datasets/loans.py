"""Simulated loans: who applied, and whether the loan was repaid; a class to predict.

No person in it exists.  Five of the nine predictors matter, two of them only together, and the
rest are irrelevant: methods for classification differ in which columns they leave out.
"""

import numpy as np
import pyarrow as pa

from dpublish.errors import require_count
from dpublish.randomness import plain_generator

SCHEMA = """\
# What is publicly known about the table.  Nothing here was taken from its rows.
name = "loans"

[columns.age]
kind = "integer"
bounds = [18, 81]
bins = 16
branching = 2

[columns.income]
kind = "numeric"
bounds = [0, 128_000]
bins = 16
branching = 2

[columns.debt]
kind = "numeric"
bounds = [0, 64_000]
bins = 16
branching = 2

[columns.years_employed]
kind = "integer"
bounds = [0, 39]
bins = 8
branching = 2

[columns.late_payments]
kind = "integer"
bounds = [0, 7]
branching = 2

[columns.home]
kind = "category"
taxonomy = { Owner = ["Paid off", "Mortgage"], Guest = ["Rent", "Family"] }

[columns.purpose]
kind = "category"
values = ["Car", "House", "Study", "Travel", "Other"]

[columns.region]
kind = "category"
taxonomy = { Coast = ["North", "West"], Inland = ["South", "East", "Center"] }

[columns.children]
kind = "integer"
bounds = [0, 5]

[columns.repaid]
kind = "category"
values = ["yes", "no"]
"""

_HOMES = ("Paid off", "Mortgage", "Rent", "Family")
_PURPOSES = ("Car", "House", "Study", "Travel", "Other")
_REGIONS = ("North", "West", "South", "East", "Center")


def loans(records: int = 20_000, seed: int = 2024) -> pa.Table:
    """Simulate `records` loans; the same seed simulates the same loans.

    >>> loans(4).select(["late_payments", "repaid"]).to_pydict()
    {'late_payments': [0, 0, 1, 1], 'repaid': ['no', 'yes', 'no', 'no']}
    """
    require_count(records=records, at_least=0)
    rng = plain_generator(seed)
    age = np.clip(rng.gamma(9.0, 4.7, records), 18, 81).astype(np.int64)
    years = np.clip(rng.exponential(0.3 * (age - 17)), 0, 39).astype(np.int64)
    income = np.clip(rng.gamma(3.0, 9_000 + 450 * years), 0, 128_000)
    debt = np.clip(rng.gamma(1.6, 9_000, records), 0, 64_000)
    late = np.clip(rng.poisson(0.4 + 0.9 * (debt > 0.6 * income)), 0, 7).astype(np.int64)
    home = rng.choice(4, size=records, p=[0.2, 0.3, 0.35, 0.15])
    burden = debt / (income + 5_000)  # income and debt matter together, hardly alone
    risk = 5.0 * (burden - 0.55) + 1.1 * late - 0.08 * years + 0.9 * (home >= 2) - 0.9
    failed = rng.random(records) < 1 / (1 + np.exp(-1.6 * risk))
    return pa.table(
        {
            "age": age,
            "income": np.round(income),
            "debt": np.round(debt),
            "years_employed": years,
            "late_payments": late,
            "home": np.array(_HOMES)[home],
            "purpose": np.array(_PURPOSES)[rng.integers(0, 5, records)],
            "region": np.array(_REGIONS)[rng.integers(0, 5, records)],
            "children": np.clip(rng.poisson(1.1, records), 0, 5).astype(np.int64),
            "repaid": np.array(("yes", "no"))[failed.astype(np.int64)],
        }
    )
