"""How much one record changes what is asked of coefficients, by search over small worlds."""

from fractions import Fraction
from itertools import product

import numpy as np
import pytest
import pywt

from dpublish.methods.wavecluster.wavecluster import (
    WAVELETS,
    WaveTransform,
    positive_sensitivity,
    rank_sensitivity,
    touched,
)
from dpublish.randomness import plain_generator

TENTH = Fraction(1, 10)
SPECIFIED = {
    "haar": 1,
    "db2": 4,
    "bior3.1": 2,
    "bior2.2": 5,
    "bior1.3": 5,
    "coif1": 5,
    "sym4": 8,
    "db4": 10,
    "bior4.4": 13,
}


def record_at(transform, cell):
    """What a record in one cell adds to the coefficients."""
    single = np.zeros(transform.sizes, dtype=np.int64)
    single.flat[cell] = 1
    return transform.apply(single).ravel()


def worlds(transform, number, seed):
    """Coefficients of small random worlds, many of them empty in most cells."""
    rng = plain_generator(seed)
    cells = int(np.prod(transform.sizes))
    for _ in range(number):
        full = rng.random(cells) < rng.random()
        yield transform.apply(rng.integers(0, rng.integers(2, 9), cells) * full).ravel()


def count_change(before, after):
    return abs(int((after > 0).sum()) - int((before > 0).sum()))


def qualities(coefficients, thresholds, percentile):
    """Minus the distance between the rank of each threshold and (1 - p) of the positive ones."""
    positive = coefficients[coefficients > 0]
    wanted = (1 - percentile) * positive.size
    return [-abs(int((positive >= x).sum()) - wanted) for x in thresholds]


def quality_change(before, after, percentile):
    """The largest change over all thresholds; it only changes where a coefficient lies."""
    thresholds = sorted({value for value in (*before, *after) if value > 0})
    pairs = zip(
        qualities(before, thresholds, percentile),
        qualities(after, thresholds, percentile),
        strict=True,
    )
    return max((abs(b - a) for a, b in pairs), default=0)


@pytest.mark.parametrize(("name", "expected"), SPECIFIED.items())
def test_the_sensitivities_in_the_plane_are_those_of_the_specification(name, expected):
    assert positive_sensitivity(WaveTransform((40, 40), name)) == expected


@pytest.mark.parametrize("name", WAVELETS)
@pytest.mark.parametrize(
    ("sizes", "levels"), [((8, 8), 1), ((12, 4), 2), ((40,), 1), ((4, 4, 4), 1)]
)
def test_one_record_touches_as_many_coefficients_as_are_counted(name, sizes, levels):
    transform = WaveTransform(sizes, name, levels)
    seen = set()
    for cell in range(int(np.prod(sizes))):
        added = record_at(transform, cell)
        seen.add((int((added > 0).sum()), int((added < 0).sum())))
    assert seen == touched(transform)


@pytest.mark.parametrize("name", WAVELETS)
def test_no_world_moves_the_number_of_positive_coefficients_by_more(name):
    transform = WaveTransform((16,), name)
    bound, largest = positive_sensitivity(transform), 0
    kernels = [record_at(transform, cell) for cell in range(16)]
    for before in [record_at(transform, 0) * 0, *worlds(transform, 60, seed=3)]:
        largest = max(largest, *(count_change(before, before + added) for added in kernels))
    assert largest <= bound
    raised = max(int((added > 0).sum()) for added in kernels)
    assert largest >= raised  # the first record of an empty world raises just as many


@pytest.mark.parametrize("percentile", [TENTH, Fraction(1, 2), Fraction(9, 10)])
@pytest.mark.parametrize("name", ["haar", "db2", "db4", "coif1", "bior2.2", "bior3.1", "sym4"])
def test_no_world_moves_the_quality_of_a_threshold_by_more(name, percentile):
    transform = WaveTransform((8,), name)
    bound = rank_sensitivity(transform, percentile)
    for before in worlds(transform, 150, seed=4):
        for cell in range(8):
            after = before + record_at(transform, cell)
            assert quality_change(before, after, percentile) <= bound


def test_a_bound_that_forgets_that_the_number_of_positive_ones_changes_too_is_broken():
    transform = WaveTransform((8,), "bior2.2")
    forgetful = positive_sensitivity(transform)  # as if k stayed where it is
    largest = max(
        quality_change(before, before + record_at(transform, cell), TENTH)
        for before in worlds(transform, 4000, seed=5)
        for cell in (0, 1)
    )
    assert forgetful < largest <= rank_sensitivity(transform, TENTH)


@pytest.mark.parametrize("name", ["db2", "bior2.2"])
def test_a_wavelet_treated_as_haar_is_broken(name):
    transform = WaveTransform((8, 8), name)
    empty = record_at(transform, 0) * 0
    largest = max(count_change(empty, record_at(transform, cell)) for cell in range(64))
    assert largest > positive_sensitivity(WaveTransform((8, 8), "haar"))
    assert largest == positive_sensitivity(transform)


@pytest.mark.parametrize("name", ["bior2.2", "db4", "sym4"])
def test_symmetric_padding_would_touch_more_than_is_counted(name):
    most = max(up + down for up, down in touched(WaveTransform((16, 16), name)))
    padded = 0
    for cell in product(range(16), repeat=2):
        single = np.zeros((16, 16))
        single[cell] = 1
        low = pywt.dwt2(single, name, mode="symmetric")[0]
        padded = max(padded, int((np.abs(low) > 1e-12).sum()))
    assert padded > most


def test_haar_ranks_have_sensitivity_1_whatever_the_percentile_and_level():
    for percentile in (TENTH, Fraction(1, 3), Fraction(99, 100)):
        for levels in (1, 2, 3):
            assert rank_sensitivity(WaveTransform((8, 8), "haar", levels), percentile) == 1
