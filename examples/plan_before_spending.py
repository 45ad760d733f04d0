"""See what a release would cost and how good it would be, before any row is read."""

import tomllib
from fractions import Fraction

import dpublish
from dpublish.data.schema_file import from_dict
from dpublish.datasets.census import SCHEMA

schema = from_dict(tomllib.loads(SCHEMA))
print(f"{'columns':<24}{'cells':>7}{'epsilon':>9}{'one count ±':>13}{'total ±':>9}")
for columns in (("age",), ("age", "sex", "income"), ("age@2", "sex", "income")):
    method = dpublish.Histogram(columns=columns)
    for epsilon in ("0.1", "0.5", "1"):
        error = method.expected_error(schema, 20_000, Fraction(epsilon)).figures
        print(
            f"{','.join(columns):<24}{error['cells']:>7.0f}{epsilon:>9}"
            f"{error['one_cell_95']:>13.0f}{error['total_95']:>9.0f}"
        )
