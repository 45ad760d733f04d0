"""A world so small that whole releases can be replayed on every neighbor."""

import tomllib
from itertools import product

import numpy as np
import pyarrow as pa

from dpublish.core.method import Run
from dpublish.core.prediction import encode_rows
from dpublish.data.schema import Schema, column
from dpublish.data.schema_file import from_dict
from dpublish.data.sources import open_table
from dpublish.datasets.loans import SCHEMA as LOANS_SCHEMA
from dpublish.datasets.loans import loans
from dpublish.privacy.budget import Budget
from dpublish.randomness import plain_generator, seeded
from transcript import privacy_loss

SCHEMA = Schema(
    (
        column("age", "integer", bounds=[0, 2], missing="category"),
        column("town", "category", values=["a", "b", "c"]),
        column("ill", "category", values=["no", "yes"]),
    )
)
RECORDS_OF = {}
DOMAIN = list(product([0, 1, 2, None], "abc", ["no", "yes"]))


def make_table(records, schema=SCHEMA):
    columns = list(zip(*records, strict=True)) if records else [[], [], []]
    types = (pa.int64(), pa.string(), pa.string())
    arrays = [pa.array(values, kind) for values, kind in zip(columns, types, strict=True)]
    return open_table(pa.table(dict(zip(schema.names, arrays, strict=True))), schema)


def run_on(records):
    """A run of no method on some records."""
    return Run(make_table(records), rng=seeded(1))


def random_records(seed, size):
    draws = plain_generator(seed).integers(0, len(DOMAIN), size=size)
    return [DOMAIN[draw] for draw in draws]


def worst_loss(monkeypatch, method, epsilon, modules, runs=24, sizes=(0, 1, 6, 30)):
    """The largest exact privacy loss of what some releases published, both ways."""
    losses = []
    for seed in range(runs):
        records = random_records(seed, sizes[seed % len(sizes)])
        extra = DOMAIN[seed % len(DOMAIN)]

        def release(table, seed=seed):
            return method.release(table, budget=Budget.seeded(epsilon), rng=seeded(seed))

        pair = make_table(records), make_table([*records, extra])
        RECORDS_OF.update({id(pair[0]): records, id(pair[1]): [*records, extra]})
        losses.append(privacy_loss(release, *pair, modules, monkeypatch))
        losses.append(privacy_loss(release, *pair[::-1], modules, monkeypatch))
    return max(losses)


def scaled_range(monkeypatch, module, factor):
    """Make `module` use a range that is `factor` of the true one."""
    real = module.score_models

    def scaled(run, task, positive, **settings):
        score = real(run, task, positive, **settings)

        def smaller(candidates):
            scores = score(candidates)
            return scores._replace(sensitivity_range=max(int(scores.sensitivity_range * factor), 1))

        return smaller

    monkeypatch.setattr(module, "score_models", scaled)


def range_of_records_present(monkeypatch, module):
    """Take the range over the records of the table, as the thesis writes it."""
    real = module.score_models

    def local(run, task, positive, **settings):
        score = real(run, task, positive, **settings)
        alone = [real(run_on([r]), task, positive) for r in set(RECORDS_OF[id(run.table)])]

        def present(candidates):
            scores = score(candidates)
            found = [int(np.ptp(one(candidates).values)) for one in alone]
            return scores._replace(sensitivity_range=max([1, *found]))

        return present

    monkeypatch.setattr(module, "score_models", local)


def loans_errors(methods, epsilon, runs=4, records=8000):
    """Mean error of some methods on simulated loans."""
    schema = from_dict(tomllib.loads(LOANS_SCHEMA))
    rows = loans(records)
    table = open_table(rows, schema)
    codes = encode_rows(rows, schema, schema.names)
    errors = []
    for method in methods:
        found = [
            method.release(table, budget=Budget.seeded(epsilon), rng=seeded(seed)).predict_codes(
                codes
            )
            for seed in range(runs)
        ]
        errors.append(float(np.mean(np.array(found) != codes["repaid"])))
    return errors
