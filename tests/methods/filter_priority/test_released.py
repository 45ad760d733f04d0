"""A published sample of cells: counts, boxes, rows, and what it refuses to be."""

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

from dpublish.data.schema import Schema, column
from dpublish.data.sources import open_table
from dpublish.errors import InvalidParameter, InvalidQuery
from dpublish.methods.filter_priority.filter_priority import FilterPriority
from dpublish.methods.filter_priority.released import FilterPriorityRelease
from dpublish.methods.filter_priority.report import section
from dpublish.privacy.budget import Budget
from dpublish.randomness import plain_generator, seeded

SCHEMA = Schema(
    (
        column("age", "integer", bounds=[0, 19]),
        column("height", "numeric", bounds=[100, 200], bins=5, missing="category"),
    )
)


def people(count=3000):
    rng = plain_generator(8)
    return pa.table(
        {
            "age": np.minimum(rng.geometric(0.15, count) - 1, 19),
            "height": pa.array(rng.uniform(100, 200, count), mask=rng.random(count) < 0.1),
        }
    )


PEOPLE = people()


def publish(epsilon="1", seed=1, source=PEOPLE, **settings):
    return FilterPriority(**settings).release(
        open_table(source, SCHEMA), budget=Budget.seeded(epsilon), rng=seeded(seed)
    )


def test_without_noise_and_with_room_for_all_cells_answers_are_the_truth():
    release = publish("1000", threshold=1)
    ages = PEOPLE["age"].to_numpy()
    assert release.count().value == 3000
    assert release.count("age in 3..7").value == np.sum((ages >= 3) & (ages <= 7))
    assert release.rows(seed=1).num_rows == 3000
    drawn = release.rows(200_000, seed=1)
    assert np.mean(drawn["age"].to_numpy()) == pytest.approx(np.mean(ages), abs=0.05)
    assert drawn["height"].null_count / 200_000 == pytest.approx(0.1, abs=0.02)


def test_answers_have_no_interval_and_say_what_they_miss():
    answer = publish().count("age in 3..7 and height < 130")
    assert answer.low is None
    assert answer.high is None
    assert "evenly within partly covered cells" in answer.assumption
    assert "not counted" in answer.assumption


def test_boxes_agree_with_counts_and_marginals():
    release = publish(sample=30)
    assert release.cells.size == 30
    assert release.cutoff > 0
    lows, highs = np.array([[3], [0]]), np.array([[8], [20]])
    boxes = release.count_boxes(("age",), lows, highs)
    assert boxes.tolist() == pytest.approx(
        [release.count("age in 3..7").value, release.count().value]
    )
    assert release.marginal("age").counts.sum() == pytest.approx(release.weights.sum())
    with pytest.raises(InvalidQuery):
        release.count_boxes(("income",), lows, highs)
    with pytest.raises(InvalidQuery):
        release.count("income = 3")


def test_without_any_cell_rows_are_drawn_evenly():
    release = publish(source=PEOPLE.slice(0, 0), threshold=40)
    assert release.cells.size == 0
    assert release.rows().num_rows == 0
    assert set(release.rows(2000, seed=1)["age"].to_pylist()) == set(range(20))
    with pytest.raises(InvalidParameter):
        release.rows(10**12)


def test_it_is_rebuilt_from_its_parts_and_refuses_others():
    release = publish(sample=30)
    again = FilterPriorityRelease.from_parts(
        receipt=release.receipt,
        schema=release.schema,
        metadata=release.metadata(),
        tables=release.tables(),
    )
    assert again == release
    assert release != publish(sample=30, seed=2)
    for bad in (
        {"cells": release.cells[::-1]},
        {"cells": release.cells + 100},
        {"counts": release.counts[1:]},
        {"counts": release.counts.astype(np.float64)},
        {"threshold": int(release.counts.max()) + 1},
        {"cutoff": -1.0},
        {"cutoff": float("nan")},
        {"sample": 29},
        {"sample": 31},
    ):
        with pytest.raises(InvalidParameter):
            replace(release, **bad)


def test_the_report_shows_marginals_and_the_largest_cells():
    shown = section(publish(sample=30), with_charts=True)
    assert len(shown.figures) == 2
    assert len(shown.listings[0].rows) == 20
    nothing = section(publish(source=PEOPLE.slice(0, 0), threshold=40), with_charts=True)
    assert len(nothing.figures) == 2
    assert nothing.listings[0].rows == []
