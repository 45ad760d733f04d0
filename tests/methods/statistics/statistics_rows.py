"""A small table of visits with missing values, and statistics published from it."""

import pyarrow as pa

from dpublish.core.settings import make_method
from dpublish.data.schema import Schema, column
from dpublish.data.sources import open_table
from dpublish.privacy.budget import Budget
from dpublish.randomness import plain_generator, seeded

SCHEMA = Schema(
    (
        column("ward", "category", values=["A", "B", "C"], missing="drop"),
        column("sex", "category", values=["F", "M"], missing="category"),
        column("age", "integer", bounds=[0, 99]),
        column("cost", "numeric", bounds=[0, 1000], missing="drop"),
    )
)
ALL = "count, sum(cost), mean(age), variance(age), median(cost), quantile(age, 0.9)"


def make_rows(n, seed=1):
    rng = plain_generator(seed)
    costs = rng.uniform(0, 1200, n)
    return pa.table(
        {
            "ward": pa.array(rng.choice(["A", "B", "Z"], n)),
            "sex": pa.array([None if x < 0.1 else "F" for x in rng.random(n)], pa.string()),
            "age": rng.integers(-5, 110, n),
            "cost": pa.array([None if x > 900 else x for x in costs], pa.float64()),
        }
    )


def publish(rows, epsilon="1", seed=1, **settings):
    table = open_table(rows, SCHEMA)
    method = make_method("statistics", settings)
    return method.release(table, budget=Budget.seeded(epsilon), rng=seeded(seed))
