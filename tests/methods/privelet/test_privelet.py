"""The method privelet: one record moves as many coefficients as the proof says, by 1 each."""

from fractions import Fraction
from itertools import product

import numpy as np
import pyarrow as pa
import pytest

from dpublish.accuracy.noise_distribution import noise_pmf
from dpublish.data.schema import Schema, column
from dpublish.data.sources import open_table
from dpublish.errors import InvalidParameter
from dpublish.methods.privelet.haar import coefficient_weights, mean_square
from dpublish.methods.privelet.privelet import Privelet, transform_counts
from dpublish.methods.privelet.released import coefficients_moved
from dpublish.privacy.budget import Budget
from dpublish.randomness import seeded
from dpublish.testing import frequency_p_value, privacy_loss


def integers(**sizes):
    return Schema(
        tuple(column(name, "integer", bounds=[0, size - 1]) for name, size in sizes.items())
    )


def publish(schema, rows, epsilon="1", seed=1, **settings):
    names = schema.names
    arrow = pa.table({name: pa.array([row[name] for row in rows]) for name in names})
    return Privelet(**settings).release(
        open_table(arrow, schema), budget=Budget.seeded(epsilon), rng=seeded(seed)
    )


@pytest.mark.parametrize(
    ("sizes", "haar"),
    [
        ((8,), (True,)),
        ((5, 3), (True, False)),
        ((3, 4, 2), (True, True, True)),
        ((1, 6), (True,) * 2),
    ],
)
def test_every_record_moves_exactly_as_many_coefficients_as_is_said_by_one_each(sizes, haar):
    axes = [c.axis() for c in integers(**dict(zip("abc", sizes, strict=False))).columns]
    claimed = coefficients_moved(axes, haar)
    for cell in product(*map(range, sizes)):
        one = np.zeros(sizes, dtype=np.int64)
        one[cell] = 1
        moved = np.abs(transform_counts(one, haar))
        assert moved.max() == 1
        assert moved.sum() == claimed


def distribution_of_two_values(counts, rate, most=40):
    """Distribution of the total and the difference of two values, each with noise of `rate`."""
    values = np.arange(-most, most + 1)
    total = noise_pmf(rate, values - sum(counts))
    difference = noise_pmf(rate, values - (counts[0] - counts[1]))
    joint = np.multiply.outer(total, difference)
    return {
        (int(a), int(b)): joint[i, j] for i, a in enumerate(values) for j, b in enumerate(values)
    }


def test_the_noise_keeps_the_guarantee_and_without_weights_it_would_not():
    release = publish(integers(x=2), [{"x": 0}], "1/2", transform="haar")
    rate = release.noise_rate
    here, there = (distribution_of_two_values(counts, rate) for counts in ((3, 1), (4, 1)))
    assert privacy_loss(here, there) == pytest.approx(0.5)
    # The twin takes the counts' sensitivity, 1, for that of the coefficients.
    here, there = (distribution_of_two_values(counts, 2 * rate) for counts in ((3, 1), (4, 1)))
    assert privacy_loss(here, there) > 0.99


def test_published_coefficients_carry_just_the_noise_of_the_proof():
    schema, rows = integers(x=5, y=2), [{"x": 4, "y": 1}] * 3
    exact = np.zeros((5, 2), dtype=np.int64)
    exact[4, 1] = 3
    exact = transform_counts(exact, (True, True))
    samples = []
    for seed in range(150):
        release = publish(schema, rows, "4", seed, transform="haar")
        samples.extend((release.coefficients - exact).ravel().tolist())
    values = np.arange(-80, 81)
    right, twin = (
        dict(zip(values.tolist(), noise_pmf(rate, values), strict=True)) for rate in (0.5, 1.0)
    )
    assert frequency_p_value(samples, right) > 1e-4
    assert frequency_p_value(samples, twin) < 1e-20


def test_only_columns_that_gain_are_transformed_unless_all_are_asked_for():
    schema = Schema((*integers(a=1000, b=9).columns, column("c", "category", values=["x", "y"])))
    rows = [{"a": 1, "b": 2, "c": "x"}]
    assert publish(schema, rows).haar == (True, False)
    assert publish(schema, rows, transform="haar").haar == (True, True)
    named = publish(schema, rows, columns=("c", "b"), transform="haar")
    assert named.schema.names == ("b", "c")
    assert named.haar == (True, False)


def test_the_average_square_of_weights_is_that_over_all_ranges():
    for depth in range(6):
        size = 2**depth
        squares = []
        for low in range(size):
            for high in range(low + 1, size + 1):
                inside = np.zeros(size)
                inside[low:high] = 1
                squares.append(np.sum(coefficient_weights(inside) ** 2))
        assert mean_square(depth) == pytest.approx(np.mean(squares))


def test_what_a_release_would_refuse_the_plan_refuses():
    for method, schema in (
        (Privelet(), integers(a=6000, b=6000)),
        (Privelet(columns=("z",)), integers(a=3)),
        (Privelet(columns=("a", "a")), integers(a=3)),
        (Privelet(), Schema((column("c", "category", values=["x", "y"]),))),
        (Privelet(), Schema(integers(a=3, b=3).columns, unit="b")),
    ):
        with pytest.raises(InvalidParameter):
            method.expected_error(schema, None, Fraction(1))
    for bad in ({"columns": 3}, {"transform": "db2"}):
        with pytest.raises(InvalidParameter):
            Privelet(**bad)


def test_the_error_predicted_is_that_of_random_ranges():
    schema = integers(x=64, y=8)
    method = Privelet(transform="haar")
    predicted = method.expected_error(schema, 1000, Fraction(1)).figures["random_range_95"]
    generator = np.random.Generator(np.random.PCG64(3))
    ends = [np.sort(generator.choice(size + 1, (400, 2)), axis=1) for size in (64, 8)]
    ends = [np.where(e[:, :1] == e[:, 1:], [[0, 1]], e) for e in ends]
    lows, highs = (np.stack([e[:, k] for e in ends], axis=1) for k in (0, 1))
    errors = [
        publish(schema, [], "1", seed, transform="haar").count_boxes(("x", "y"), lows, highs)
        for seed in range(40)
    ]
    assert 0.8 < 1.96 * np.std(errors) / predicted < 1.2
