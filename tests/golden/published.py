"""Digest what a seeded release of each method publishes: numbers and labels, no names of keys.

What a minimizer finds depends on the processor in its last digits, so that fitted models are
kept as numbers, to be compared with a tolerance.

`python -m golden.published` (with `tests` on the path) writes both files anew; do that only
when a method is meant to publish something else.
"""

import hashlib
import json
from collections.abc import Iterator, Mapping
from fractions import Fraction
from math import isfinite
from numbers import Number
from pathlib import Path

import numpy as np
import pyarrow as pa
from threadpoolctl import threadpool_limits

from dpublish.auditing.examples import STREAM_SCHEMA
from dpublish.auditing.worlds import people, snapshots
from dpublish.core.registry import make_method
from dpublish.core.released import DERIVED, field_note
from dpublish.data.sources import open_table
from dpublish.errors import DPublishError
from dpublish.methods.streams.method import make_stream_method
from dpublish.privacy.budget import Budget
from dpublish.randomness import seeded
from method_examples import SCHEMA
from test_replay import CASES, EPSILON, STREAM_CASES, STREAM_EPSILON, _number

FILE = Path(__file__).with_name("published.json")
FITTED_FILE = Path(__file__).with_name("fitted.json")
FITTED = (
    "synth-",
    "model-",
    "private-erm-",
    "output-perturbation-",
    "private-svm-",
    "functional-",
    "gupt-",
)
ROWS = 2_000


def names() -> list[str]:
    """List the cases, tables and streams."""
    return [*_number(CASES), *_number(STREAM_CASES)]


def published(case: str) -> list[str]:
    """Publish one case and list what it published."""
    with threadpool_limits(1):
        if case in _number(CASES):
            return _publish(*CASES[_number(CASES).index(case)])
        return _stream(*STREAM_CASES[_number(STREAM_CASES).index(case)])


def fitted_numbers(case: str) -> list[float]:
    """List the numbers that a fitted model published."""
    return [float(text) for text in published(case) if _is_number(text)]


def _is_number(text: str) -> bool:
    try:
        return isfinite(float(text))
    except ValueError:
        return False


def digest(case: str) -> str:
    """Publish one case and digest what it published."""
    content = published(case)
    return hashlib.sha256("\n".join(content).encode()).hexdigest()[:32]


def _publish(name, settings) -> list[str]:
    method = make_method(name, settings)
    schema = method.prepare(SCHEMA) if hasattr(method, "prepare") else SCHEMA
    budget = method.budget(EPSILON) if hasattr(method, "budget") else Budget.seeded(EPSILON)
    table = open_table(people(ROWS, 8), schema)
    release = method.release(table, budget=budget, rng=seeded(12))
    content = sorted(_numbers(release.metadata()))
    for published in release.tables().values():
        # Texts name methods and kinds; ends of bins and intervals follow from the rest.
        numeric = [
            field.name
            for field in published.schema
            if not pa.types.is_string(field.type) and field_note(field, DERIVED) is None
        ]
        content += _cells(published.select(numeric))
    content += sorted(str(share) for share in _fractions(release.receipt.shares))
    for use in (
        lambda: release.rows(100, seed=3),
        lambda: pa.table({"class": release.predict(people(200, 9))}),
        lambda: pa.table({"count": [release.count("age in 20..60").value]}),
    ):
        try:
            content += _cells(use())
        except DPublishError as error:
            content.append(type(error).__name__)
    return content


def _stream(name, settings) -> list[str]:
    method = make_stream_method(name, {"columns": ("zone", "hour"), **settings})
    rng = seeded(21)
    stream = method.start(STREAM_SCHEMA, budget=Budget.seeded(STREAM_EPSILON), rng=rng)
    content = []
    for counts in snapshots(5, 40, 8 if method.columns == ("hour",) else 24):
        step = stream.next_counts(counts, rng=rng)
        content += [step.action, *_array(step.estimate), f"{step.noise:.7g}", f"{step.change:.7g}"]
        content += [str(step.epsilon), str(stream.spent)]
    return content


def _fractions(value) -> Iterator[Fraction]:
    if isinstance(value, Fraction):
        yield value
    elif isinstance(value, Mapping):
        for item in value.values():
            yield from _fractions(item)
    elif isinstance(value, (list, tuple)):
        for item in value:
            yield from _fractions(item)
    elif hasattr(value, "__dataclass_fields__"):
        for field in value.__dataclass_fields__:
            yield from _fractions(getattr(value, field))


def _numbers(value) -> Iterator[str]:
    if isinstance(value, Mapping):
        for item in value.values():
            yield from _numbers(item)
    elif isinstance(value, (list, tuple)):
        for item in value:
            yield from _numbers(item)
    elif isinstance(value, float):
        yield f"{value:.7g}"
    elif isinstance(value, Number):
        yield str(value)


def _cells(table: pa.Table) -> list[str]:
    return [text for column in table.columns for text in _array(column.to_numpy())]


def _array(values: np.ndarray) -> list[str]:
    if values.dtype.kind == "f":
        return [f"{value + 0.0:.7g}" for value in values.ravel().tolist()]
    return [str(value) for value in values.ravel().tolist()]


if __name__ == "__main__":
    exact = [case for case in names() if not case.startswith(FITTED)]
    fitted = [case for case in names() if case.startswith(FITTED)]
    for path, content in (
        (FILE, {case: digest(case) for case in exact}),
        (FITTED_FILE, {case: fitted_numbers(case) for case in fitted}),
    ):
        path.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")
