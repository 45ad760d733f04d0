"""Published cells and copulas: intervals that hold, rows that fit, nothing odd accepted."""

import json
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pyarrow as pa
import pytest

from dpublish.core.run import Run
from dpublish.data.schema import Schema, column
from dpublish.data.sources import open_table
from dpublish.errors import CorruptRelease, InvalidParameter, InvalidQuery
from dpublish.methods.dpcopula.cell_copulas import release_cells
from dpublish.methods.dpcopula.hybrid import DPCopulaHybrid
from dpublish.methods.dpcopula.released_cells import CellCopulasRelease
from dpublish.methods.dpcopula.report import cells_section
from dpublish.methods.marginals.noisy_marginal import NoisyMarginal
from dpublish.privacy.budget import Budget
from dpublish.randomness import plain_generator, seeded
from dpublish.report.section import Listing

SCHEMA = Schema(
    (
        column("age", "integer", bounds=[0, 29]),
        column("sex", "category", values=["a", "b"]),
        column("pay", "integer", bounds=[0, 19], missing="category"),
        column("town", "category", values=["x", "y", "z"], other="w"),
    )
)
RECORDS = 3000


def _draw():
    draw = plain_generator(11)
    normals = np.linalg.cholesky([[1, 0.7], [0.7, 1]]) @ draw.standard_normal((2, RECORDS))
    sex = draw.integers(0, 2, RECORDS)
    age = np.clip(np.rint(8 + 4 * normals[0] + 10 * sex), 0, 29).astype(int)
    pay = np.clip(np.rint(10 + 3 * normals[1]), 0, 19).astype(int)
    town = draw.choice(4, RECORDS, p=[0.6, 0.3, 0.08, 0.02])
    return pa.table(
        {
            "age": age,
            "sex": np.array(["a", "b"])[sex],
            "pay": pa.array(pay, mask=draw.random(RECORDS) < 0.1),
            "town": np.array(["x", "y", "z", "elsewhere"])[town],
        }
    )


ROWS = _draw()
FRAME = ROWS.to_pandas()
TABLE = open_table(ROWS, SCHEMA)


def publish(
    seed=1,
    epsilon=4,
    numbers=("age", "pay"),
    least_records=100,
    marginal="auto",
    copulas="shared",
):
    run = Run(TABLE, rng=seeded(seed), method=DPCopulaHybrid(), budget=Budget.seeded(epsilon))
    return release_cells(
        run,
        numbers=numbers,
        categories=tuple(name for name in SCHEMA.names if name not in ("age", "pay")),
        marginal=marginal,
        least_records=least_records,
        copulas=copulas,
    )


def coverage(releases, query, truth):
    answers = [release.count(query) for release in releases]
    return np.mean([answer.low <= truth <= answer.high for answer in answers])


def test_intervals_of_cells_hold_as_often_as_they_say():
    releases = [publish(seed, Fraction(1, 3), numbers=()) for seed in range(400)]
    truth = {
        "": RECORDS,
        "sex = a": (FRAME.sex == "a").sum(),
        "town in {x, w}": FRAME.town.isin(["x", "elsewhere"]).sum(),
        "sex = b and town = z": ((FRAME.sex == "b") & (FRAME.town == "z")).sum(),
    }
    found = [coverage(releases, query, count) for query, count in truth.items()]
    assert 0.93 <= np.mean(found) <= 0.99
    # A bar half as wide would not hold: the test can tell.
    narrow = [r.count("sex = a") for r in releases]
    held = [abs(a.value - truth["sex = a"]) <= (a.high - a.low) / 4 for a in narrow]
    assert np.mean(held) < 0.9


def test_intervals_of_one_column_in_whole_groups_hold_as_often_as_they_say():
    releases = [publish(seed) for seed in range(250)]
    truth = {
        "age in 5..12": FRAME.age.between(5, 12).sum(),
        "pay >= 12": (FRAME.pay >= 12).sum(),
        "age < 10 and sex = a and town = x": (
            (FRAME.age < 10) & (FRAME.sex == "a") & (FRAME.town == "x")
        ).sum(),
    }
    found = [coverage(releases, query, count) for query, count in truth.items()]
    assert 0.93 <= np.mean(found) <= 0.99


def test_answers_by_the_model_come_near_between_what_the_marginals_allow():
    release = publish(2, 100)
    truth = ((FRAME.age < 10) & (FRAME.pay < 10)).sum()
    answer = release.count("age < 10 and pay < 10")
    assert answer.low <= truth <= answer.high <= (FRAME.age < 10).sum() + 20
    assert "Gaussian copula" in answer.assumption
    assert answer.value == pytest.approx(truth, rel=0.1)
    independent = (FRAME.age < 10).sum() * (FRAME.pay < 10).sum() / RECORDS
    assert abs(independent - truth) > 2 * abs(answer.value - truth)


def test_a_column_in_part_of_the_rest_is_answered_by_the_model():
    release = publish(1, 4, least_records=800)
    assert 0 < release.groups.kept.size < release.groups.counts.size
    assert "Gaussian copula" in release.count("age < 10 and town = z").assumption
    assert release.count("age < 10").assumption is None


def test_biased_marginals_have_the_interval_of_what_was_published():
    release = publish(1, 4, marginal="noise-first")
    answer = release.count("age < 10")
    assert answer.low <= (FRAME.age < 10).sum() <= answer.high
    assert release.count("sex = a").low is not None


def test_boxes_are_counted_as_queries_are():
    release = publish(3, 20)
    lows = np.array([[0, 0], [5, 1], [0, 0]])
    highs = np.array([[10, 10], [20, 8], [30, 21]])
    boxes = release.count_boxes(["age", "pay"], lows, highs)
    asked = [
        release.count(q).value for q in ("age < 10 and pay < 10", "age in 5..19 and pay in 1..7")
    ]
    assert boxes[:2] == pytest.approx(asked, rel=1e-3)
    assert boxes[2] == pytest.approx(release.groups.estimates.sum())
    cells = release.count_boxes(["town", "sex"], np.array([[0, 1]]), np.array([[2, 2]]))
    estimates = release.groups.estimates.reshape(release.groups.shape)
    assert cells == pytest.approx(estimates[1, :2].sum())
    mixed = release.count_boxes(["sex", "age"], np.array([[1, 0]]), np.array([[2, 10]]))
    assert mixed == pytest.approx(((FRAME.sex == "b") & (FRAME.age < 10)).sum(), abs=60)


def test_rows_follow_cells_marginals_and_correlations():
    release = publish(4, 100)
    rows = release.rows(seed=5).to_pandas()
    assert len(rows) == pytest.approx(RECORDS, abs=5)
    for sex in "ab":
        mean = FRAME.age[FRAME.sex == sex].mean()
        assert rows.age[rows.sex == sex].mean() == pytest.approx(mean, abs=0.5)
        inside = rows[rows.sex == sex][["age", "pay"]].corr().iloc[0, 1]
        assert inside == pytest.approx(0.7, abs=0.08)
    assert rows.pay.isna().mean() == pytest.approx(0.1, abs=0.03)
    assert (rows.town == "x").mean() == pytest.approx(0.6, abs=0.02)
    assert list(rows.columns) == list(SCHEMA.names)
    assert release.rows(50, seed=1).equals(release.rows(50, seed=1))
    assert release.rows(0).num_rows == 0


def test_the_number_of_records_is_weighed_from_all_that_was_counted():
    found = [publish(seed) for seed in range(150)]
    deviation = np.std([release.groups.sizes.sum() for release in found])
    predicted = np.mean([release.groups.records_deviation for release in found])
    assert deviation == pytest.approx(predicted, rel=0.2)
    cells = np.std([release.groups.counts.sum() for release in found])
    assert deviation < cells


def test_it_is_rebuilt_from_its_parts():
    each = publish(copulas="per-cell")
    for release in (publish(), publish(numbers=("age",)), publish(numbers=()), each):
        again = rebuilt(release)
        assert again == release
        assert again.rows(40, seed=2).equals(release.rows(40, seed=2))
    assert publish(seed=1) != publish(seed=2)


def rebuilt(release, metadata=None, tables=None):
    return CellCopulasRelease.from_parts(
        receipt=release.receipt,
        schema=release.schema,
        metadata=json.loads(json.dumps(release.metadata())) | (metadata or {}),
        tables=release.tables() | (tables or {}),
    )


def test_odd_correlations_of_groups_are_refused():
    release = publish(copulas="per-cell")
    table = release.tables()["correlations"]
    assert table.num_rows == release.groups.groups
    assert "correlations of their own" in release.summary()["groups"]
    with pytest.raises(CorruptRelease, match="not those of the groups"):
        rebuilt(release, tables={"correlations": table[::-1]})
    with pytest.raises(InvalidParameter, match="together or of each"):
        replace(release, correlations=release.correlations[:1])
    with pytest.raises(InvalidParameter, match="together or of each"):
        replace(release, correlation=release.correlations[0])


def test_odd_parts_are_refused():
    release = publish()
    tables = release.tables()
    with pytest.raises(CorruptRelease, match="out of order"):
        rebuilt(release, tables={"cells": tables["cells"][::-1]})
    with pytest.raises(CorruptRelease, match="not those"):
        rebuilt(release, tables={"marginals": tables["marginals"][:10]})
    for odd in ([3, 1], [-1, 2], [0, 99], [1, 1]):
        with pytest.raises(InvalidParameter, match="in order"):
            rebuilt(release, {"kept": odd})
    with pytest.raises(InvalidParameter, match="every group"):
        rebuilt(release, {"kept": []})
    with pytest.raises(InvalidParameter, match="every column comes once"):
        rebuilt(release, {"categories": ["sex", "sex"]})
    with pytest.raises(InvalidParameter, match="every cell"):
        rebuilt(release, {"categories": ["sex"]})
    with pytest.raises(InvalidParameter, match="correlations must join"):
        replace(release, correlation=None)
    with pytest.raises(InvalidParameter, match="those of the schema"):
        replace(release, schema=Schema(SCHEMA.columns[:3]))
    short = NoisyMarginal("identity", 3, np.zeros(3, dtype=np.int64), Fraction(1))
    marginals = ((short, short), *release.groups.marginals[1:])
    with pytest.raises(InvalidParameter, match="all its values"):
        replace(release.groups, marginals=marginals)


def test_unknown_columns_and_bad_numbers_are_refused():
    release = publish()
    with pytest.raises(InvalidQuery, match="size"):
        release.count("size = 3")
    with pytest.raises(InvalidParameter):
        release.rows(-1)
    with pytest.raises(InvalidParameter, match="at once"):
        release.rows(10**12)
    with pytest.raises(InvalidParameter, match="confidence"):
        release.count("sex = a", confidence=1.0)


def test_the_report_shows_cells_columns_and_correlations():
    shown = cells_section(publish(), with_charts=True)
    assert [figure.caption.split(" by ")[1].split(".")[0] for figure in shown.figures] == [
        "sex",
        "town",
        "age",
        "pay",
    ]
    assert all(isinstance(listing, Listing) for listing in shown.listings)
    assert [len(listing.rows) for listing in shown.listings] == [8, 1]
    assert not cells_section(publish(), with_charts=False).figures
    least = publish().groups.counts[publish().groups.kept].min()
    assert f"have a noisy count of {least:,} or more" in shown.listings[0].caption
    assert len(cells_section(publish(numbers=()), with_charts=True).figures) == 2
