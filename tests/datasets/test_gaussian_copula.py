"""Simulated tables with Gaussian dependence, and the tables of numbers."""

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from scipy import stats

from dpublish.datasets.gaussian_copula import (
    correlation_matrix,
    gaussian_copula,
    gaussian_copula_schema,
    marginal_probabilities,
)
from dpublish.datasets.number_tables import NUMBER_TABLES
from dpublish.errors import InvalidParameter, UnreadableData


def test_the_same_seed_makes_the_same_rows_and_another_seed_others():
    assert gaussian_copula(50, 3).equals(gaussian_copula(50, 3))
    assert not gaussian_copula(50, 3).equals(gaussian_copula(50, 3, seed=1))
    assert gaussian_copula(0, 2).num_rows == 0


@pytest.mark.parametrize("marginal", ["gaussian", "uniform", "zipf"])
def test_marginals_have_the_shape_that_is_asked_for(marginal):
    probabilities = marginal_probabilities(marginal, 20)
    assert probabilities.sum() == pytest.approx(1)
    rows = gaussian_copula(20_000, 2, values=20, marginal=marginal)
    for name in rows.column_names:
        counts = np.bincount(rows[name].to_numpy(), minlength=20)
        assert stats.chisquare(counts, 20_000 * probabilities).pvalue > 1e-4


def test_marginals_differ_from_each_other():
    bell, even, falling = (marginal_probabilities(m, 10) for m in ("gaussian", "uniform", "zipf"))
    assert bell.argmax() in (4, 5)
    assert bell == pytest.approx(bell[::-1])
    assert np.ptp(even) < 1e-12
    assert falling[0] / falling[9] == pytest.approx(10)


@pytest.mark.parametrize("dependence", ["random", "exchangeable"])
def test_columns_are_tied_as_the_matrix_says(dependence):
    matrix = correlation_matrix(4, dependence)
    assert np.linalg.eigvalsh(matrix).min() > 0
    assert (np.diag(matrix) == 1).all()
    assert (matrix == matrix.T).all()
    rows = gaussian_copula(40_000, 4, marginal="zipf", dependence=dependence)
    ranks = stats.spearmanr(np.stack([rows[n].to_numpy() for n in rows.column_names], 1)).statistic
    bell = gaussian_copula(40_000, 4, dependence=dependence)
    plain = np.stack([bell[name].to_numpy() for name in bell.column_names], 1)
    spearman = stats.spearmanr(plain).statistic
    expected = 6 / np.pi * np.arcsin(matrix / 2)  # rank correlation of a normal distribution
    assert np.abs(spearman - expected).max() < 0.02
    assert np.abs(ranks - expected).max() < 0.05  # ties of Zipf's first values perturb it


def test_exchangeable_columns_are_all_alike():
    matrix = correlation_matrix(5, "exchangeable")
    assert set(matrix[np.triu_indices(5, 1)]) == {0.5}


def test_the_schema_knows_every_value():
    schema = gaussian_copula_schema(3, 50)
    assert schema.names == ("x1", "x2", "x3")
    assert {column.size for column in schema.columns} == {50}


@pytest.mark.parametrize(
    ("options", "word"),
    [
        ({"records": -1}, "records"),
        ({"columns": 0}, "columns"),
        ({"values": 0}, "values"),
        ({"marginal": "gausian"}, "gaussian"),
        ({"dependence": "none"}, "random"),
    ],
)
def test_what_cannot_be_simulated_is_refused(options, word):
    with pytest.raises(InvalidParameter, match=word):
        gaussian_copula(**({"records": 3, "columns": 2} | options))


def test_tables_of_numbers_are_simulated_or_looked_for_in_a_folder(tmp_path):
    simulated = NUMBER_TABLES["simulated-zipf"]
    assert simulated.missing_file(None) is None
    rows = simulated.rows(None)
    assert rows.num_rows == simulated.records
    assert tuple(rows.column_names) == simulated.schema.names
    adult = NUMBER_TABLES["adult-numbers"]
    assert [column.size for column in adult.schema.columns] == [74, 16, 99, 1_000]
    assert adult.missing_file(tmp_path) == "adult.parquet"
    for folder in (None, tmp_path):
        with pytest.raises(UnreadableData, match="adult"):
            adult.rows(folder)


def test_tables_of_people_have_the_columns_that_are_said():
    sizes = {
        "us-census": [96, 47, 1_020, 2],
        "acs-people": [96, 2, 2, 2, 10, 12, 502, 586],
    }
    for name, expected in sizes.items():
        columns = NUMBER_TABLES[name].schema.columns
        assert [column.size for column in columns] == expected
        assert all(column.kind != "category" for column in columns)  # all have an order


def test_incomplete_people_are_left_out_and_marriage_has_two_values(tmp_path):
    acs = NUMBER_TABLES["acs-people"]
    count = 6
    rows = {name: pa.array([1, 2, 3, 4, 5, None]) for name in acs.read}
    rows |= {name: pa.array(["1"] * count) for name in ("SEX", "DPHY")}
    rows["MSP"] = pa.array(["1", "2", "3", "6", None, "1"])
    pq.write_table(pa.table(rows), tmp_path / "nist_acs_national2019.parquet")
    found = acs.rows(tmp_path)
    assert tuple(found.column_names) == acs.schema.names
    assert found["MARRIED"].to_pylist() == ["yes", "yes", "no", "no"]


def test_marginals_change_the_values_and_not_the_dependence():
    """Figure 3.1 of the thesis: one copula, different marginals, the same ranks."""
    tables = [
        gaussian_copula(3_000, 2, marginal=marginal) for marginal in ("gaussian", "uniform", "zipf")
    ]
    pairs = [[column.to_numpy() for column in rows.columns] for rows in tables]
    taus = [stats.kendalltau(*pair).statistic for pair in pairs]
    linear = [np.corrcoef(*pair)[0, 1] for pair in pairs]
    assert max(taus) - min(taus) < 0.01
    assert max(linear) - min(linear) > 0.05
