"""A small table whose columns depend on each other, and models of it."""

from dataclasses import replace

import numpy as np
import pyarrow as pa

from dpublish.core.run import Run
from dpublish.data.column_function import Formula
from dpublish.data.schema import Schema, column
from dpublish.data.sources import open_table
from dpublish.data.statements import Combination, KnownTotal
from dpublish.methods.synth import fit as fitting
from dpublish.methods.synth import model, synth
from dpublish.methods.synth.synth import Synth
from dpublish.privacy.budget import Budget
from dpublish.randomness import plain_generator, seeded

SEX = column("sex", "category", values=["F", "M"])
AGE = column("age", "integer", bounds=[0, 15], missing="category")
TOWN = column("town", "category", values=["Ost", "West", "Nord", "Sued"], missing="drop")
JOB = column("job", "category", values=["none", "pupil", "clerk", "cook", "smith"])
PAY = column("pay", "numeric", bounds=[0, 100], bins=6)
SCHEMA = Schema((SEX, AGE, TOWN, JOB, PAY))
VIOLATED = ("age < 3 and job in {clerk, cook, smith}", "sex = F and town = Sued and job = smith")


def make_rows(number, seed=1):
    """Make rows in which all columns depend on each other, some of them missing."""
    rng = plain_generator(seed)
    ages = rng.integers(0, 16, number)
    sexes = rng.random(number) < 0.35 + ages / 60
    jobs = np.where(
        ages < 3, 0, np.where(ages < 7, 1, 2 + (rng.integers(0, 3, number) + sexes) % 3)
    )
    towns = (ages // 4 + (rng.random(number) < 0.3)) % 4
    pays = np.clip(12 * jobs + 4 * sexes + ages + rng.normal(0, 8, number), 0, 100)
    return pa.table(
        {
            "sex": np.where(sexes, "F", "M"),
            "age": pa.array(ages, mask=rng.random(number) < 0.05),
            "town": pa.array(np.array(TOWN.categories)[towns], mask=rng.random(number) < 0.04),
            "job": np.array(JOB.categories)[jobs],
            "pay": pays,
        }
    )


def strangers(number, seed=77):
    """Make rows of another kind altogether, which violate whatever is stated."""
    rng = plain_generator(seed)
    ages = rng.integers(-4, 4, number).astype(object)
    ages[::7] = None
    return pa.table(
        {
            "sex": np.where(rng.random(number) < 0.9, "F", "M"),
            "age": pa.array(ages, pa.int64()),
            "town": np.where(rng.random(number) < 0.5, "Sued", "nowhere"),
            "job": np.where(rng.random(number) < 0.8, "smith", "cook"),
            "pay": rng.normal(50, 400, number),
        }
    )


def with_last(rows, **record):
    """Append a record."""
    last = pa.table({name: [record.get(name)] for name in rows.column_names})
    return pa.concat_tables([rows, last.cast(rows.schema)])


def stated_schema():
    """The same columns, with all that a schema can state."""
    return Schema(
        (*SCHEMA.columns, column("double", "integer", bounds=[0, 30], missing="category")),
        impossible=tuple(map(Combination, VIOLATED)),
        totals=(
            KnownTotal("sex = F", count=1_700),
            KnownTotal("town = Ost and job = pupil", count=300),
            KnownTotal("", count=3_400),
        ),
        functions=(Formula("double", "2 * age"),),
    )


def publish(rows, epsilon="4", seed=1, schema=SCHEMA, **settings):
    """Publish rows."""
    table = open_table(rows, schema)
    return Synth(**settings).release(table, budget=Budget.seeded(epsilon), rng=seeded(seed))


def shorten_fits(monkeypatch, steps):
    """Fit by so many steps at most: any model will do where only its use is tested."""

    def short(*given, **named):
        return fitting.fit(*given, **named | {"steps": steps})

    monkeypatch.setattr(model, "fit", short)


def limit_tables(monkeypatch, most):
    """Plan tables of so many columns at most."""
    make = synth.make_plan
    monkeypatch.setattr(
        synth,
        "make_plan",
        lambda *given, **named: replace(make(*given, **named), most_in_table=most),
    )


def pretend_size(monkeypatch, size):
    """Let the noisy number of records come out as `size`; it is paid for as always."""

    def noisy_size(self, count, *, budget):
        budget.spend()
        return size

    monkeypatch.setattr(Run, "noisy_size", noisy_size)
