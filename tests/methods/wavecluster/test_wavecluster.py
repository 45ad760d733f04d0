"""The plain algorithm: exact coefficients, significant ones, and connected ones."""

from fractions import Fraction

import numpy as np
import pytest
import pywt
from hypothesis import given
from hypothesis import strategies as st

from dpublish.errors import InvalidParameter
from dpublish.methods.wavecluster.wavecluster import (
    MOST_PER_CELL,
    WAVELETS,
    AxisFilter,
    WaveTransform,
    connect,
    largest_cells,
    significant_cells,
    wave_clusters,
)
from dpublish.randomness import plain_generator

TENTH = Fraction(1, 10)


def counts_of(*shape, seed=1, most=50):
    return plain_generator(seed).integers(0, most, shape)


def coefficients_of(transform, counts):
    return transform.apply(counts).astype(np.float64) * transform.unit


@pytest.mark.parametrize("name", WAVELETS)
def test_one_level_is_the_low_pass_half_of_the_periodized_transform(name):
    size = max(8, 2 * (pywt.Wavelet(name).dec_len // 2 + 1))
    line = counts_of(size)
    expected = pywt.dwt(line, name, mode="periodization")[0]
    assert coefficients_of(WaveTransform((size,), name), line) == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize("name", ["haar", "db2", "sym4", "coif1", "bior2.2", "bior4.4"])
def test_two_levels_in_two_dimensions_are_those_of_the_library(name):
    counts = counts_of(80, 48)
    expected = pywt.wavedec2(counts, name, mode="periodization", level=2)[0]
    found = coefficients_of(WaveTransform((80, 48), name, 2), counts)
    assert found == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize("name", ["haar", "db4", "bior3.1"])
def test_a_transform_is_the_sum_of_those_of_its_cells_to_the_last_bit(name):
    transform = WaveTransform((4, 8), name)
    counts = counts_of(4, 8)
    one_by_one = np.zeros(transform.shape, dtype=object)
    for cell in np.ndindex(4, 8):
        single = np.zeros((4, 8), dtype=np.int64)
        single[cell] = 1
        one_by_one = one_by_one + transform.apply(single) * int(counts[cell])
    assert (transform.apply(counts) == one_by_one).all()


@pytest.mark.parametrize("name", ["haar", "db4"])
def test_no_sum_overflows_however_full_a_cell_is(name):
    transform = WaveTransform((4, 4), name)
    full = np.full((4, 4), 2**62, dtype=np.int64)
    capped = transform.apply(np.full((4, 4), MOST_PER_CELL))
    assert (transform.apply(full) == capped).all()
    assert (capped > 0).all()


def test_haar_cells_belong_to_the_coefficient_that_adds_them_up():
    assert AxisFilter.of(6, "haar").owners.tolist() == [0, 0, 1, 1, 2, 2]
    assert AxisFilter.of(8, "haar", 2).owners.tolist() == [0, 0, 0, 0, 1, 1, 1, 1]


@pytest.mark.parametrize("name", ["db2", "bior2.2", "sym5"])
def test_a_cell_belongs_where_it_weighs_most(name):
    size = 12
    line = AxisFilter.of(size, name)
    matrix = np.abs(np.stack([line.apply(row, 0) for row in np.eye(size, dtype=np.int64)]))
    assert line.owners.tolist() == matrix.argmax(axis=1).tolist()


@pytest.mark.parametrize(
    ("sizes", "wavelet", "levels"),
    [
        ((5,), "haar", 1),
        ((6,), "haar", 2),
        ((), "haar", 1),
        ((8,), "nonsense", 1),
        ((8,), "db2", 0),
    ],
)
def test_what_cannot_be_halved_is_refused(sizes, wavelet, levels):
    with pytest.raises(InvalidParameter):
        WaveTransform(sizes, wavelet, levels)


def test_the_kth_largest_and_its_equals_are_significant():
    values = np.array([[5, 3, 3], [0, -2, 9]])
    half = significant_cells(values, Fraction(1, 2))  # 2 of 4 positive ones
    assert half.tolist() == [[True, False, False], [False, False, True]]
    most = significant_cells(values, Fraction(1, 4))  # 3 of 4: the third largest occurs twice
    assert most.tolist() == [[True, True, True], [False, False, True]]


def test_nothing_positive_gives_no_cluster():
    for counts in (np.zeros((4, 4), dtype=np.int64), np.full((4, 4), -3)):
        assert (wave_clusters(counts, WaveTransform((4, 4))) == -1).all()


@given(st.lists(st.integers(-5, 5), min_size=1, max_size=12), st.integers(-3, 15))
def test_the_largest_are_taken_and_the_first_of_equals(values, count):
    array = np.array(values)
    marked = largest_cells(array, count)
    order = sorted(range(len(values)), key=lambda i: (-values[i], i))
    assert np.flatnonzero(marked).tolist() == sorted(order[: max(count, 0)])
    assert largest_cells(array.astype(object), count).tolist() == marked.tolist()


@pytest.mark.parametrize("dimensions", [1, 2, 3, 4])
def test_corners_connect_only_if_they_are_to(dimensions):
    marked = np.zeros((3,) * dimensions, dtype=np.bool_)
    marked[(0,) * dimensions] = marked[(1,) * dimensions] = True
    assert connect(marked, "full").max() == 0
    assert connect(marked, "face").max() == (0 if dimensions == 1 else 1)


def test_small_clusters_are_dropped_and_the_others_renumbered():
    marked = np.array([True, False, True, True, False, True, True, True])
    assert connect(marked, min_cells=2).tolist() == [-1, -1, 0, 0, -1, 1, 1, 1]


@pytest.mark.parametrize("percentile", [0.1, Fraction(0), Fraction(1), Fraction(3, 2)])
def test_a_percentile_is_exact_and_between_0_and_1(percentile):
    with pytest.raises(InvalidParameter, match="percentile"):
        wave_clusters(np.zeros((4,), dtype=np.int64), WaveTransform((4,)), percentile)
