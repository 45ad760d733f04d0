"""Noise on counts and reals: what it hides, exactly; what it costs; what it refuses."""

import os
import warnings
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from scipy.stats import chisquare

from dpublish.accuracy.noise_distribution import noise_pmf
from dpublish.errors import BudgetAlreadyUsed, InvalidParameter
from dpublish.mechanisms import noise as module
from dpublish.mechanisms.exact.lattice import UNIT_LIMIT
from dpublish.mechanisms.exact.sampler import LARGEST_NOISE
from dpublish.mechanisms.noise import add_geometric, add_laplace, noisy_size
from dpublish.privacy.budget import Budget
from dpublish.randomness import plain_generator, secure, seeded
from dpublish.testing import frequency_p_value, privacy_loss
from noise_oracle import CountingSource, fit_p_value, two_sided_survival

WINDOW = range(-12, 16)


def distribution(counts, rate):
    """Probability of every noisy array with all entries in the window."""
    noisy = product(WINDOW, repeat=len(counts))
    return {y: float(np.prod(noise_pmf(rate, np.subtract(y, counts)))) for y in noisy}


@pytest.mark.parametrize(
    ("sensitivity", "here", "there"),
    [(1, [3], [4]), (1, [0], [1]), (1, [2, 5], [2, 4]), (2, [2, 5], [3, 4]), (2, [1, 1], [1, 3])],
)
def test_neighbors_learn_the_budget_and_no_more(sensitivity, here, there):
    epsilon = Fraction(1, 2)
    loss = privacy_loss(
        distribution(here, epsilon / sensitivity), distribution(there, epsilon / sensitivity)
    )
    assert loss == pytest.approx(0.5, abs=1e-12)
    if sensitivity > 1:  # the broken twin forgets the sensitivity
        assert privacy_loss(
            distribution(here, epsilon), distribution(there, epsilon)
        ) == pytest.approx(1.0)


def test_noisy_counts_are_as_frequent_as_the_proof_assumes():
    pairs = np.tile([1, 3], 20_000)
    noisy = add_geometric(pairs, sensitivity=2, budget=Budget.seeded("1.5"), rng=seeded(1)).reshape(
        -1, 2
    )
    seen = [y for y in map(tuple, noisy.tolist()) if set(y) <= set(WINDOW)]
    assert frequency_p_value(seen, distribution([1, 3], Fraction(3, 4))) > 1e-4
    assert (
        frequency_p_value(seen, distribution([1, 3], Fraction(3, 2))) < 1e-20
    )  # sensitivity forgotten


@pytest.mark.parametrize("sensitivity", [1, 3])
def test_noise_has_the_scale_that_the_sensitivity_asks_for(sensitivity):
    zeros = np.zeros(200_000, dtype=np.int64)
    noise = add_geometric(
        zeros, sensitivity=sensitivity, budget=Budget.seeded("0.1"), rng=seeded(2)
    )

    def fit(share):
        return fit_p_value(noise, lambda k: two_sided_survival(0.1 / sensitivity / share, k))

    assert fit(1) > 1e-4
    assert fit(0.7) < 1e-20
    assert fit(1.3) < 1e-20


def test_the_size_gets_noise_of_sensitivity_one():
    rng = seeded(3)
    sizes = np.array([noisy_size(7, budget=Budget.seeded("0.5"), rng=rng) for _ in range(5000)])
    assert fit_p_value(sizes - 7, lambda k: two_sided_survival(0.5, k), bins=30) > 1e-4
    assert fit_p_value(sizes - 7, lambda k: two_sided_survival(0.35, k), bins=30) < 1e-20
    assert (sizes < 1).any()  # left to the caller


@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.int32, np.uint64, ">i8", ">u8"])
def test_counts_of_any_width_and_shape_are_perturbed_and_left_unchanged(dtype):
    counts = np.arange(12, dtype=dtype).reshape(3, 2, 2)
    noisy = add_geometric(counts, sensitivity=1, budget=Budget.seeded(30), rng=seeded(4))
    assert noisy.dtype == np.int64
    assert noisy.tolist() == counts.tolist() == np.arange(12).reshape(3, 2, 2).tolist()


def test_absurd_counts_are_moved_into_range_without_a_word():
    for extreme in (np.uint64(2**64 - 1), np.int64(2**63 - 1), np.int64(-(2**63))):
        noisy = add_geometric(
            np.array([extreme]), sensitivity=1, budget=Budget.seeded(50), rng=seeded(5)
        )
        assert abs(int(noisy[0])) == UNIT_LIMIT


@pytest.mark.parametrize("count", [-(1 << 63), -5, 0, 7, (1 << 63) - 1])
@pytest.mark.parametrize("drawn", [-LARGEST_NOISE - 1, LARGEST_NOISE])
def test_noise_too_wide_to_be_told_apart_hides_every_count(count, drawn, monkeypatch):
    monkeypatch.setattr(module, "discrete_laplace", lambda rate, size, rng: np.full(size, drawn))
    rest = {"sensitivity": 1, "budget": Budget.seeded(1), "rng": seeded(5)}
    noisy = add_geometric(np.array([count]), **rest)
    assert noisy.tolist() == [UNIT_LIMIT if drawn > 0 else -UNIT_LIMIT]
    rest["budget"] = Budget.seeded(1)
    reals = add_laplace(np.array([float(count)]), granularity=1, **rest)
    assert reals.units.tolist() == noisy.tolist()


def test_moving_noise_to_its_limit_changes_no_result():
    def moved(number, limit):
        return max(-limit, min(number, limit))

    def differ(noise_limit, limit):
        return any(
            moved(count + moved(noise, noise_limit), limit) != moved(count + noise, limit)
            for count in range(-limit, limit + 1)
            for noise in range(-30, 31)
        )

    assert not differ(noise_limit=8, limit=4)
    assert differ(noise_limit=7, limit=4)  # twice the limit is needed
    assert LARGEST_NOISE >= 2 * UNIT_LIMIT
    assert LARGEST_NOISE + 1 + UNIT_LIMIT < 2**63


def test_empty_input_gives_empty_output_and_still_costs():
    budget = Budget.seeded(1)
    empty = np.empty((0, 4), dtype=np.int64)
    assert add_geometric(empty, sensitivity=1, budget=budget, rng=seeded(6)).shape == (0, 4)
    assert budget.is_used
    reals = add_laplace(np.empty(0), sensitivity=1, budget=Budget.seeded(1), rng=seeded(6))
    assert reals.values.shape == (0,)


@pytest.mark.parametrize(
    ("bad", "match"),
    [
        ({"counts": np.array([1.0])}, "integer"),
        ({"counts": np.array([True])}, "integer"),
        ({"counts": np.array([2**70])}, "integer"),
        ({"counts": [1]}, "integer"),  # the type of a list depends on its values: [2**70], [0.5]
        ({"counts": []}, "integer"),
        ({"counts": 1}, "integer"),
        ({"counts": np.ma.masked_array([1, 2], mask=[False, True])}, "integer"),
        ({"sensitivity": 0}, "sensitivity"),
        ({"sensitivity": 1.5}, "sensitivity"),
        ({"sensitivity": 1 << 50}, "rate"),
    ],
)
def test_a_refused_call_costs_nothing(bad, match):
    settings = {
        "counts": np.array([1]),
        "sensitivity": 1,
        "budget": Budget.seeded(1),
        "rng": seeded(7),
    }
    settings |= bad
    with pytest.raises(InvalidParameter, match=match):
        add_geometric(settings.pop("counts"), **settings)
    assert not settings["budget"].is_used


@pytest.mark.parametrize(
    "bad",
    [{"sensitivity": 0.1}, {"granularity": "1/3"}, {"granularity": 0.5}, {"touched": 0}],
)
def test_reals_refuse_inexact_settings_for_free(bad):
    settings = {"sensitivity": 1, "budget": Budget.seeded(1), "rng": seeded(8)} | bad
    with pytest.raises(InvalidParameter, match=next(iter(bad))):
        add_laplace([0.5, 0.25], **settings)
    assert not settings["budget"].is_used


def test_reals_refuse_noise_that_is_too_wide_for_free():
    settings = {"sensitivity": 1, "granularity": Fraction(1, 2**41), "rng": seeded(8)}
    budget = Budget.seeded(1)
    with pytest.raises(InvalidParameter, match="rate"):
        add_laplace(np.zeros(2), **settings, budget=budget)
    assert not budget.is_used


def test_sizes_of_any_whole_type_are_perturbed_and_others_refused_for_free():
    for size in (7, np.int64(7), np.uint8(7)):
        assert noisy_size(size, budget=Budget.seeded(50), rng=seeded(9)) == 7
    assert noisy_size(2**70, budget=Budget.seeded(50), rng=seeded(9)) == UNIT_LIMIT
    budget = Budget.seeded(1)
    for bad in (7.0, "7", None):
        with pytest.raises(InvalidParameter, match="size must be an integer"):
            noisy_size(bad, budget=budget, rng=seeded(9))
    assert not budget.is_used


def test_a_budget_pays_once():
    budget = Budget.seeded("0.1")
    noisy_size(5, budget=budget, rng=seeded(9))
    with pytest.raises(BudgetAlreadyUsed):
        noisy_size(5, budget=budget, rng=seeded(9))


def test_words_drawn_do_not_depend_on_the_counts():
    used = set()
    for counts in (np.zeros(500, dtype=int), np.arange(500) * 10**12):
        source = CountingSource(seeded(10))
        add_geometric(counts, sensitivity=1, budget=Budget.seeded("0.1"), rng=source)
        used.add(source.used)
    assert used == {500}


@pytest.mark.parametrize("values", [0.3, [0.1, -2.5, 1e3]])
def test_noise_on_reals_has_the_distribution_of_the_lattice(values):
    shape = np.shape(values)
    source, units = seeded(11), []
    for _ in range(3000):
        noisy = add_laplace(
            values, sensitivity=2, budget=Budget.seeded("0.5"), rng=source, granularity=1
        )
        units.append(noisy.units - np.floor(values).astype(int))
    rate = 0.5 / (2 + len(values) - 1 if shape else 2)
    noise = np.ravel(units)
    assert fit_p_value(noise, lambda k: two_sided_survival(rate, k), bins=30) > 1e-4
    assert fit_p_value(noise, lambda k: two_sided_survival(rate / 0.7, k), bins=30) < 1e-20
    assert fit_p_value(noise, lambda k: two_sided_survival(rate / 1.3, k), bins=30) < 1e-20


def test_only_the_coordinates_that_one_record_touches_widen_the_noise():
    values, source, units = np.array([0.3, -2.5, 7.0]), seeded(14), []
    settings = {"sensitivity": 1, "granularity": 1, "touched": 2, "rng": source}
    for _ in range(3000):
        noisy = add_laplace(values, **settings, budget=Budget.seeded("0.5"))
        units.append(noisy.units - np.floor(values).astype(int))

    def fit(rate):
        return fit_p_value(np.ravel(units), lambda k: two_sided_survival(rate, k), bins=30)

    assert fit(0.5 / 2) > 1e-4  # ceil(1) + 2 - 1 units
    assert fit(0.5 / 3) < 1e-20  # all three coordinates
    assert fit(0.5 / 1) < 1e-20  # none but one


def test_published_reals_lie_on_a_lattice_that_does_not_depend_on_them():
    for value in (0.0, 1.0, 1 / 3, 5e-324, -(2**-40), Fraction(1, 3)):
        values = [value] * 4000
        noisy = add_laplace(
            values, sensitivity=1, budget=Budget.seeded(1), rng=seeded(12), touched=1
        )
        assert noisy.exponent == -20
        assert all((f * 2**20).denominator == 1 for f in noisy.fractions()[:50])
        low_digits = np.bincount(noisy.units & 15, minlength=16)
        assert chisquare(low_digits).pvalue > 1e-4
        assert (noisy.values == [float(f) for f in noisy.fractions()]).all()


def test_float_noise_would_have_given_the_value_away():
    noise = plain_generator(0).laplace(size=20_000)
    low_digit = {v: [n + v for n in noise if 0.25 < n + v < 0.5] for v in (0.0, 1.0)}
    odd = {v: np.mean([int(x * 2**54) & 1 for x in xs]) for v, xs in low_digit.items()}
    assert odd[0.0] > 0.4
    assert odd[1.0] == 0


def test_values_that_are_not_finite_raise_nothing_and_count_as_zero():
    odd = add_laplace(
        [np.nan, np.inf, -np.inf], sensitivity=1, budget=Budget.seeded(99), rng=seeded(13)
    )
    assert np.abs(odd.values).max() < 2


def test_no_value_raises_a_floating_point_error():
    values = np.array([np.nan, np.inf, -5e-324, 1e308, -1e308, 2.0**-1040])
    with np.errstate(all="raise"):
        for kind in (values, values.astype(object), values.tolist()):
            add_laplace(
                kind, sensitivity=1, granularity=2**20, budget=Budget.seeded(1), rng=seeded(13)
            )
        signaling = np.array([0x7FA00000], dtype=np.uint32).view(np.float32)  # a kind of NaN
        add_laplace(signaling, sensitivity=1, budget=Budget.seeded(1), rng=seeded(13))


def test_a_forked_process_draws_other_noise():
    counts = np.zeros(4, dtype=np.int64)
    secure_noise = []
    for _ in range(2):
        read, write = os.pipe()
        if (child := fork()) == 0:
            noise = add_geometric(
                counts, sensitivity=1, budget=Budget.seeded("0.000001"), rng=secure()
            )
            os.write(write, noise.tobytes())
            os._exit(0)
        secure_noise.append(os.read(read, 32))
        os.waitpid(child, 0)
        os.close(read)
        os.close(write)
    assert len(secure_noise[0]) == 32
    assert secure_noise[0] != secure_noise[1]


def fork():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # other tests may have left threads
        return os.fork()
