"""A simulated census: people with age, sex, education, work, hours, region and income.

No person in it exists.  The columns depend on each other roughly as in a real survey, so that
examples and demonstrations have something to find.
"""

import numpy as np
import pyarrow as pa

from dpublish.errors import require_count
from dpublish.randomness import plain_generator

SCHEMA = """\
# What is publicly known about the table.  Nothing here was taken from its rows.
name = "census"

[columns.age]
kind = "integer"
bounds = [16, 95]
bins = 16
branching = 2

[columns.sex]
kind = "category"
values = ["Female", "Male"]

[columns.education]
kind = "ordinal"
values = ["Primary", "Secondary", "Vocational", "Bachelor", "Master", "Doctorate"]
taxonomy = { any = { "No degree" = ["Primary", "Secondary", "Vocational"], \
"Degree" = ["Bachelor", "Master", "Doctorate"] } }

[columns.work]
kind = "category"
values = ["None", "Farm", "Craft", "Factory", "Office", "Care", "Teaching", "Management"]
other = "Elsewhere"

[columns.hours]
kind = "numeric"
bounds = [0, 80]
bins = 16
missing = "category"

[columns.region]
kind = "category"
values = ["North", "East", "South", "West"]

[columns.income]
kind = "category"
values = ["<=50K", ">50K"]
"""

_EDUCATION = ("Primary", "Secondary", "Vocational", "Bachelor", "Master", "Doctorate")
_WORK = ("None", "Farm", "Craft", "Factory", "Office", "Care", "Teaching", "Management", "Circus")


def census(records: int = 20_000, seed: int = 2024) -> pa.Table:
    """Simulate `records` people; the same seed simulates the same people.

    >>> people = census(2)
    >>> people.column_names
    ['age', 'sex', 'education', 'work', 'hours', 'region', 'income']
    >>> people["education"].to_pylist()
    ['Vocational', 'Bachelor']
    """
    require_count(records=records, at_least=0)
    rng = plain_generator(seed)
    age = np.clip(rng.gamma(6.0, 7.5, records), 16, 95).astype(np.int64)
    sex = rng.integers(0, 2, records)
    schooling = rng.normal(1.9 + 0.01 * np.minimum(age, 45) - 0.004 * age, 1.15, records)
    education = np.clip(np.rint(schooling), 0, 5).astype(np.int64)
    working = (age >= 18) & (age < 70) & (rng.random(records) < 0.82)
    leaning = rng.normal(1.2 * education + 0.6 * sex + 1.5, 1.6, records)
    work = np.where(working, np.clip(np.rint(leaning), 1, 7), 0).astype(np.int64)
    work[rng.random(records) < 0.004] = 8  # not in the schema: becomes "Elsewhere"
    hours = np.where(work > 0, np.clip(rng.normal(37 + 2 * sex, 9, records), 2, 80), 0.0)
    drive = -4.2 + 1.1 * education + 0.035 * (hours - 30) + 0.03 * np.minimum(age - 16, 35)
    rich = rng.random(records) < 1 / (1 + np.exp(-drive))
    region = rng.choice(4, size=records, p=[0.18, 0.22, 0.35, 0.25])
    return pa.table(
        {
            "age": age,
            "sex": np.array(("Female", "Male"))[sex],
            "education": np.array(_EDUCATION)[education],
            "work": np.array(_WORK)[work],
            "hours": pa.array(np.round(hours, 1), mask=rng.random(records) < 0.02),
            "region": np.array(("North", "East", "South", "West"))[region],
            "income": np.array(("<=50K", ">50K"))[rich.astype(np.int64)],
        }
    )
