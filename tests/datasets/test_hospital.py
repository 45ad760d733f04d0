"""The simulated hospital is as hospitals are: many visits of one patient, tails and gaps."""

import numpy as np
import pyarrow.compute as pc
import pytest

from dpublish import datasets
from dpublish.datasets.hospital import LEVELS, hospital
from dpublish.errors import InvalidParameter


@pytest.fixture(scope="module")
def visits():
    return hospital().to_pandas()


def test_twenty_thousand_patients_come_ninety_thousand_times(visits):
    assert 88_000 < len(visits) < 93_000
    assert visits["patient_id"].nunique() > 19_900
    rows = visits["patient_id"].value_counts()
    assert rows.max() >= 50
    assert (rows == 1).mean() > 0.2


def test_values_are_missing_clipped_and_unlisted(visits):
    missing = visits.isna().mean()
    assert 0.02 < missing["age"] < 0.04
    assert 0.01 < missing["cost"] < 0.03
    assert 0.001 < missing["patient_id"] < 0.01
    schema = datasets.schema("hospital")
    assert (visits["cost"] > 64_000).any()
    assert (visits["stay"] > 29).any()
    listed = set(schema["diagnosis"].axis().labels)
    unlisted = set(visits["diagnosis"]) - listed
    assert len(unlisted) == 1
    assert "Other" in listed


def test_costs_have_a_long_tail_and_depend_on_ward_and_stay(visits):
    cost = visits["cost"].dropna()
    assert cost.mean() > 1.3 * cost.median()
    by_ward = visits.groupby("ward")["cost"].mean()
    assert by_ward["Oncology"] > 5 * by_ward["Emergency"]
    within = visits[visits["ward"] == "Surgery"]
    assert np.corrcoef(within["stay"], within["cost"].fillna(0))[0, 1] > 0.4


def test_winters_are_busier_than_summers_and_weekends_quieter(visits):
    dates = visits["admitted"].astype("datetime64[s]").dt
    months, days = dates.month.value_counts(), dates.day_of_week.value_counts()
    assert months[1] > 1.3 * months[7]
    assert days[5] < 0.7 * days[2]
    assert visits["admitted"].is_monotonic_increasing


def test_who_comes_back_can_be_predicted(visits):
    comes_back = (visits["readmitted"] == "yes").groupby(visits["ward"]).mean()
    assert comes_back["Oncology"] > 5 * comes_back["Orthopedics"]


def test_a_patient_has_one_home_and_mostly_accepts_one_level(visits):
    known = visits.dropna(subset="patient_id").groupby("patient_id")
    assert known["home_east"].nunique().max() == 1
    assert set(visits["accepts"]) == set(LEVELS)
    assert 0.9 < (known["accepts"].nunique() == 1).mean() < 1


def test_a_seed_repeats_the_visits():
    assert hospital(50, seed=3).equals(hospital(50, seed=3))
    assert not hospital(50, seed=3).equals(hospital(50, seed=4))


def test_an_empty_hospital_has_the_same_columns():
    empty, usual = hospital(0), hospital(20)
    assert empty.num_rows == 0
    assert empty.schema == usual.schema


def test_every_column_of_the_schema_is_in_the_table():
    schema = datasets.schema("hospital")
    assert schema.unit == "patient_id"
    assert set(schema.names) <= set(hospital(5).column_names)


def test_a_negative_number_of_patients_is_refused():
    with pytest.raises(InvalidParameter, match="patients"):
        hospital(-1)


def test_no_value_of_a_listed_column_is_outside_the_schema_by_mistake():
    rows, schema = hospital(500), datasets.schema("hospital")
    for name in ("ward", "sex", "insurance", "readmitted"):
        assert set(pc.unique(rows[name]).to_pylist()) == set(schema[name].axis().labels)
