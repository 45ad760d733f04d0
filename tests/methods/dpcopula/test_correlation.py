"""A published correlation: read back as a matrix, kept in a file, refused if it is nonsense."""

import json
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from dpublish.accuracy.noise_distribution import noise_variance
from dpublish.errors import InvalidParameter
from dpublish.methods.dpcopula.correlation import NORMAL_UNIT, NoisyCorrelation, normal_scores
from dpublish.methods.dpcopula.latent_correlation import SCORE_UNIT

EVEN = np.full(200, 1 / 200)
COLUMNS = ("x", "y", "z")
ALL = [1.0, 1.0, 1.0]
SPEARMAN = NoisyCorrelation(
    "spearman",
    COLUMNS,
    # Spearman's rank correlation is three times the mean product of scores.
    (np.array([0.5, 0.0, -0.2]) / 3 * 1000 * SCORE_UNIT**2 / 16).astype(np.int64),
    4,
    Fraction(1, 1 << 20),
    {"steepness": "1.0", "kept": ALL},
)
KENDALL = NoisyCorrelation(
    "kendall",
    COLUMNS,
    (np.array([0.5, 0.0, -0.2]) * 2**20).astype(np.int64),
    -20,
    Fraction(1, 100),
    {"classes": 128, "fewest_records": 900, "sample_rate": "1", "kept": ALL},
)
BLOCKS = NoisyCorrelation(
    "mle",
    COLUMNS,
    (np.array([0.5, 0.0, -0.2]) * 2**20 * 10).astype(np.int64),
    -20,
    Fraction(1, 100),
    {"blocks": 10, "fewest_records": 900, "kept": ALL},
)


@pytest.mark.parametrize(
    ("noisy", "first", "last"),
    [
        (SPEARMAN, 2 * np.sin(np.pi * 0.5 / 6), -2 * np.sin(np.pi * 0.2 / 6)),
        (KENDALL, np.sin(np.pi * 0.5 / 2), -np.sin(np.pi * 0.2 / 2)),
        (BLOCKS, 0.5, -0.2),
    ],
)
def test_the_matrix_is_that_of_the_normal_variables_behind(noisy, first, last):
    matrix = noisy.matrix([EVEN] * 3, 1000.0)
    assert matrix[0, 1] == pytest.approx(first, abs=0.012)
    assert matrix[0, 2] == pytest.approx(0, abs=1e-3)
    assert matrix[1, 2] == pytest.approx(last, abs=0.012)
    assert np.array_equal(matrix, matrix.T)


@pytest.mark.parametrize(("noisy", "power"), [(SPEARMAN, 1), (KENDALL, 2)])
def test_records_outside_the_order_are_corrected_for(noisy, power):
    halved = replace(
        noisy,
        units=np.rint(noisy.units * 0.5**power).astype(np.int64),
        settings={**noisy.settings, "kept": [0.5, 1.0, 1.0]},
    )
    whole = noisy.matrix([EVEN] * 3, 1000.0)
    assert halved.matrix([EVEN] * 3, 1000.0)[0] == pytest.approx(whole[0], abs=1e-3)


@pytest.mark.parametrize("noisy", [SPEARMAN, KENDALL, BLOCKS])
def test_the_deviation_is_that_of_small_correlations_by_noise(noisy):
    deviation = noisy.deviations([EVEN] * 3, 1000.0)
    assert np.array_equal(np.diag(deviation), np.zeros(3))
    step = round(np.sqrt(noise_variance(noisy.rate)))
    moved = replace(noisy, units=np.array([0, step, 0]))
    assert moved.matrix([EVEN] * 3, 1000.0)[0, 2] == pytest.approx(deviation[0, 2], rel=0.02)


@pytest.mark.parametrize("noisy", [SPEARMAN, KENDALL, BLOCKS])
def test_neither_no_records_nor_odd_marginals_break_it(noisy):
    single = np.eye(200)[3]
    for probabilities in ([EVEN] * 3, [single] * 3, [single, EVEN, EVEN]):
        for records in (-50.0, 0.0, 1.0, 1e12):
            assert np.isfinite(noisy.matrix(probabilities, records)).all()
            assert np.isfinite(noisy.deviations(probabilities, records)).all()


@pytest.mark.parametrize("noisy", [SPEARMAN, KENDALL, BLOCKS])
def test_facts_survive_a_file(noisy):
    metadata = json.loads(json.dumps(noisy.metadata()))
    back = NoisyCorrelation.from_metadata(metadata, noisy.units)
    assert back == noisy
    assert back != replace(noisy, exponent=noisy.exponent + 1)
    assert back != replace(noisy, units=noisy.units + 1)
    assert (back == 3) is False


@pytest.mark.parametrize(
    "wrong",
    [
        {"method": "pearson"},
        {"columns": ("x",)},
        {"columns": ("x", "x", "z")},
        {"units": np.zeros(2, dtype=np.int64)},
        {"units": np.zeros(3)},
        {"exponent": 5000},
        {"exponent": 0.5},
        {"rate": Fraction(0)},
        {"settings": {"kept": ALL}},
        {"settings": {"kept": ALL, "steepness": "-1"}},
        {"settings": {"kept": [1.0], "steepness": "1"}},
        {"settings": {"kept": [1.0, 1.0, 2.0], "steepness": "1"}},
        {"settings": {"kept": [1.0, 1.0, "a"], "steepness": "1"}},
        {"settings": {"kept": None, "steepness": "1"}},
        {"settings": {"kept": ALL, "steepness": "steep"}},
        {"settings": {"kept": ALL, "steepness": "nan"}},
    ],
)
def test_nonsense_is_refused(wrong):
    with pytest.raises(InvalidParameter):
        replace(SPEARMAN, **wrong)


def test_nonsense_in_whole_settings_is_refused():
    with pytest.raises(InvalidParameter, match="classes"):
        replace(KENDALL, settings={**KENDALL.settings, "classes": 0})
    with pytest.raises(InvalidParameter, match="probabilities for each column"):
        KENDALL.matrix([EVEN], 10.0)


def test_normal_scores_end_half_a_record_from_the_ends():
    scores = normal_scores(np.array([1e-12, 1 - 2e-12, 1e-12]), 100)
    assert scores[0] == -scores[2] == round(-2.5758293 * NORMAL_UNIT)
    assert np.abs(normal_scores(np.array([1e-300, 1.0]), 10**40)).max() <= 8 * NORMAL_UNIT
