"""Counts by class: predictions, estimates, rows, and folders from anywhere."""

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pyarrow as pa
import pytest

from dpublish.core.folder.folder import load
from dpublish.core.noisy_size import NoisySize, estimate_total
from dpublish.core.prediction import UNKNOWN
from dpublish.data.cut import cut_axis
from dpublish.data.schema import Schema, column
from dpublish.errors import DPublishError, InvalidParameter, InvalidQuery
from dpublish.methods.histogram.released import LabeledHistogramRelease
from dpublish.methods.histogram.report import labeled_section as section
from dpublish.privacy.budget import Budget
from dpublish.privacy.neighbors import AddRemoveRecord
from dpublish.privacy.receipt import Receipt
from dpublish.randomness import secure

WORK = column(
    "work", "category", taxonomy={"Paid": ["State", "Private"], "Unpaid": ["Carer", "None"]}
)
AGE = column("age", "integer", bounds=[0, 99], bins=10)
TOWN = column("town", "category", values=["Ost", "West"])
RISK = column("risk", "category", values=["low", "middle", "high"])
SCHEMA = Schema((AGE, WORK, TOWN, RISK))
AXES = (cut_axis(AGE, [0, 5]), cut_axis(WORK, [0, 2, 3]), RISK.axis())
COUNTS = np.array(
    [
        [[50, 3, 1], [4, 9, 4], [0, -2, -1]],
        [[7, 7, 7], [-5, -3, -4], [1, 2, 60]],
    ]
)


def receipt():
    budget = Budget.seeded(1)
    budget.spend()
    return Receipt.issue(
        method="diffgen", settings={}, budget=budget, neighbors=AddRemoveRecord(), rng=secure()
    )


RECEIPT = receipt()


def dense(**changes):
    fields = {
        "receipt": RECEIPT,
        "schema": SCHEMA,
        "axes": AXES,
        "cells": np.arange(18),
        "counts": COUNTS.ravel(),
        "noise_rate": Fraction(1, 2),
    }
    return LabeledHistogramRelease(**{**fields, **changes})


def sparse(cells, counts, **changes):
    return dense(cells=np.array(cells), counts=np.array(counts), threshold=5, **changes)


def rows(*records):
    ages, works = zip(*records, strict=True)
    return pa.table({"age": ages, "work": works, "town": ["Ost"] * len(records)})


def test_the_highest_noisy_count_of_the_cell_is_predicted():
    given = rows((20, "State"), (20, "Carer"), (20, "None"), (70, "Private"), (70, "None"))
    # In the third cell all counts are 0 or less: the highest still wins, and the first of equals.
    assert dense().predict(given).to_pylist() == ["low", "middle", "low", "low", "high"]


def test_predictors_without_an_axis_need_not_be_there():
    assert dense().predict({"work": ["None"], "age": [70]}).to_pylist() == ["high"]
    with pytest.raises(InvalidQuery, match="'age', once"):
        dense().predict({"work": ["None"]})
    with pytest.raises(InvalidQuery, match="'age' are missing"):
        dense().predict_codes({"work": np.array([0])}, 1)


def test_unknown_values_get_the_majority_class():
    known = {"age": np.array([7, 7]), "work": np.array([3, UNKNOWN])}
    assert COUNTS.sum(axis=(0, 1)).argmax() == 2
    assert dense().predict_codes(known, 2).tolist() == [2, 2]
    more = COUNTS.copy()
    more[0, 0, 0] = 500
    assert dense(counts=more.ravel()).predict_codes(known, 2).tolist() == [2, 0]
    assert dense().predict(rows((70, "astronaut"))).to_pylist() == ["high"]


def test_cells_that_were_not_published_get_the_majority_class():
    release = sparse([0, 4, 17], [50, 9, 60])
    given = rows((20, "State"), (20, "Carer"), (20, "None"), (70, "Private"), (70, "None"))
    assert release.predict(given).to_pylist() == ["low", "middle", "high", "high", "high"]


def test_nothing_published_predicts_the_first_class():
    nothing = np.array([], dtype=np.int64)
    release = dense(cells=nothing, counts=nothing, threshold=5)
    assert release.predict(rows((20, "State"))).to_pylist() == ["low"]
    assert release.rows().num_rows == 0
    assert section(release, True).listings[1].rows == []


def test_without_predictors_all_get_the_majority_class():
    release = dense(axes=(RISK.axis(),), cells=np.arange(3), counts=np.array([3, 9, 4]))
    assert release.predict(rows((1, "State"), (2, "None"))).to_pylist() == ["middle"] * 2
    assert release.summary()["from"] == "no column; 1 cells"
    assert section(release, False).listings[-1].rows == [["anything", "middle", "16", "9"]]


def test_a_class_of_missing_values_is_predicted_as_null():
    gaps = column("risk", "category", values=["low"], missing="category")
    release = dense(
        schema=Schema((AGE, gaps)),
        axes=(gaps.axis(),),
        cells=np.arange(2),
        counts=np.array([1, 2]),
    )
    assert release.predict({"age": [1]}).to_pylist() == [None]


def test_the_total_weighs_both_sources_by_their_noise():
    counted = float(COUNTS.sum())
    assert dense().total == counted
    alone = dense(records=NoisySize(1000, Fraction(1, 2)))
    # 18 counts are 18 times as uncertain as one.
    assert alone.total == pytest.approx((counted + 18 * 1000) / 19)
    assert alone.estimates.sum() == round(alone.total)
    assert alone.estimates.min() >= 0
    exact = estimate_total(COUNTS.ravel(), Fraction(10**6), NoisySize(7, Fraction(10**6)))
    assert exact == 7


def test_published_counts_above_a_threshold_stand_as_they_are():
    release = sparse([0, 4, 17], [50, 9, 60], records=NoisySize(1000, Fraction(1, 10)))
    assert release.total == 1000
    assert release.estimates.tolist() == [50, 9, 60]
    assert release.rows().num_rows == 119


def test_a_negative_number_of_records_gives_no_rows():
    release = dense(records=NoisySize(-10_000, Fraction(100)))
    assert release.total < 0
    assert release.estimates.sum() == 0
    assert release.rows().num_rows == 0


def test_rows_lie_in_their_cells_and_are_filled_on_demand():
    release = dense()
    drawn = release.rows(2000, seed=3)
    assert drawn.column_names == ["age", "work", "risk"]
    filled = release.rows(2000, seed=3, fill=True)
    assert filled.column_names == ["age", "work", "town", "risk"]
    assert filled.drop_columns(["town"]).equals(drawn)
    assert filled.equals(release.rows(2000, seed=3, fill=True))
    towns = filled["town"].to_pylist()
    assert 850 < towns.count("Ost") < 1150
    high = [r for r in drawn.to_pylist() if r["work"] == "None" and r["age"] >= 50]
    assert sum(r["risk"] == "high" for r in high) / len(high) > 0.9


def test_ranges_are_counted_through_the_cuts():
    assert dense().count("age >= 50 and work = Carer").value == -12
    assert dense().count("risk = high").value == float(COUNTS[:, :, 2].sum())


def test_it_loads_as_it_was_saved(tmp_path):
    for number, release in enumerate(
        [
            dense(),
            dense(records=NoisySize(-3, Fraction(1, 7))),
            sparse([0, 4, 17], [50, 9, 60], records=NoisySize(99, Fraction(1, 7))),
        ]
    ):
        release.save(tmp_path / str(number))
        opened = load(tmp_path / str(number))
        assert opened == release
        assert type(opened) is LabeledHistogramRelease
        assert opened.records == release.records
        assert opened.axes == release.axes
    assert dense() != dense(records=NoisySize(-3, Fraction(1, 7)))
    assert dense() != replace(dense(), counts=COUNTS.ravel() + 1)


@pytest.mark.parametrize(
    "changes",
    [
        {"axes": AXES[:2], "cells": np.arange(6), "counts": np.arange(6)},
        {"axes": AXES[::-1]},
        {"axes": (*AXES[:2], cut_axis(RISK, [0])), "cells": np.arange(6), "counts": np.arange(6)},
        {"schema": Schema((AGE, RISK))},
        {"schema": Schema((AGE, WORK, RISK, TOWN))},
        {"records": NoisySize(1.5, Fraction(1))},
        {"records": NoisySize(True, Fraction(1))},
        {"records": NoisySize(5, Fraction(0))},
        {"cells": np.arange(17), "counts": np.arange(17)},
        {"threshold": 5},
        {"noise_rate": Fraction(-1)},
    ],
    ids=[
        "no class axis",
        "class first",
        "classes merged",
        "axis of no column",
        "class not last in the schema",
        "part of a record",
        "true records",
        "endless noise",
        "cells left out",
        "below the threshold",
        "negative rate",
    ],
)
def test_what_no_method_would_publish_is_refused(changes):
    with pytest.raises(InvalidParameter):
        dense(**changes)


@pytest.mark.parametrize(
    "tamper",
    [
        lambda metadata: metadata["axes"][0].update(starts=[0, 4, 4]),
        lambda metadata: metadata["axes"][1].update(starts=[0, 1]),
        lambda metadata: metadata["axes"][1].update(starts=[]),
        lambda metadata: metadata["axes"][1].update(column="unknown"),
        lambda metadata: metadata["axes"].reverse(),
        lambda metadata: metadata.update(records={"count": "7", "rate": "1"}),
    ],
)
def test_facts_that_do_not_fit_are_refused(tamper):
    metadata = dense(records=NoisySize(5, Fraction(1))).metadata()
    parts = {"receipt": RECEIPT, "schema": SCHEMA, "tables": dense().tables()}
    assert LabeledHistogramRelease.from_parts(metadata=metadata, **parts).records.value == 5
    tamper(metadata)
    with pytest.raises(DPublishError):
        LabeledHistogramRelease.from_parts(metadata=metadata, **parts)


def test_the_section_shows_classes_marginals_and_rules():
    shown = section(dense(), True)
    assert len(shown.figures) == 3
    accuracy, classes, rules = shown.listings
    right = sum(COUNTS.reshape(-1, 3).max(axis=1))
    assert accuracy.rows[0][1] == f"{100 * right / COUNTS.sum():.1f} %"
    assert [row[0] for row in classes.rows] == ["low", "middle", "high"]
    assert [bool(row[2]) for row in classes.rows] == [False, False, True]
    assert rules.headers == ["if", "then risk is", "noisy count", "of that class"]
    first, second = rules.rows[:2]
    assert first[:3] == ["age is 50..99 and work is None", "high", "63"]
    assert second[:3] == ["age is 0..49 and work is Paid", "low", "54"]
    assert len(rules.rows) == 6
    assert "all 6 of them" in rules.caption
    assert "Where no rule fits, risk is high" in rules.caption
    assert section(dense(), False).figures == ()


def test_names_that_charts_take_for_private_are_shown():
    hidden = column("risk", "category", values=["_a", "_b", "$c$"])
    release = dense(schema=Schema((AGE, WORK, hidden)), axes=(*AXES[:2], hidden.axis()))
    drawing = section(release, True).figures[1].svg
    assert "_a" in drawing
    assert "$c$" in drawing
