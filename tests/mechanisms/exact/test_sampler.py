"""Exact samplers: the distribution they follow, ties and tails included, and the words they use."""

from fractions import Fraction
from functools import partial

import mpmath
import numpy as np
import opendp.prelude as dp
import pytest
from scipy.stats import binom, chi2_contingency, chisquare, poisson

from dpublish.errors import InvalidParameter
from dpublish.mechanisms.exact import sampler as exact
from dpublish.mechanisms.exact.enclosures import (
    Distribution,
    ExpRate,
    floor_exp,
    floor_survival,
)
from dpublish.mechanisms.exact.sampler import (
    bernoulli_exp,
    discrete_laplace,
    geometric,
    skip_positions,
    uniform_below,
)
from dpublish.randomness import seeded
from dpublish.testing import frequency_p_value
from noise_oracle import (
    CountingSource,
    ScriptedSource,
    fit_p_value,
    geometric_survival,
    real,
    two_sided_survival,
)

RATES = [Fraction(r) for r in ("3", "1", "1/10", "1/50", "1/100", "1/1000", "1/1000000")]
RATES += [Fraction(1, 1 << 39), Fraction(22, 7), Fraction(1001, 100003)]
DRAWS = 200_000
SAMPLERS = [(geometric, geometric_survival), (discrete_laplace, two_sided_survival)]


@pytest.mark.parametrize("rate", RATES, ids=str)
@pytest.mark.parametrize(("sampler", "survival"), SAMPLERS)
def test_draws_follow_the_distribution(sampler, survival, rate):
    samples = sampler(rate, DRAWS, seeded(1))
    assert fit_p_value(samples, partial(survival, rate)) > 1e-4


@pytest.mark.parametrize("rate", RATES, ids=str)
@pytest.mark.parametrize("share", [Fraction(7, 10), Fraction(13, 10)])
@pytest.mark.parametrize(("sampler", "survival"), SAMPLERS)
def test_less_or_more_noise_would_be_noticed(sampler, survival, share, rate):
    samples = sampler(rate / share, DRAWS, seeded(2))
    assert fit_p_value(samples, partial(survival, rate)) < 1e-20


def test_noise_at_a_steep_rate_is_nearly_always_zero():
    assert not discrete_laplace(Fraction(20), 100_000, seeded(3)).any()
    assert not geometric(Fraction(10**9), 1000, seeded(3)).any()


@pytest.mark.parametrize("word_bits", [1, 4, 6])
@pytest.mark.parametrize("rate", [Fraction(2), Fraction(1, 5), Fraction(1, 300)], ids=str)
@pytest.mark.parametrize(("sampler", "survival"), SAMPLERS)
def test_ties_are_broken_by_the_same_distribution(sampler, survival, rate, word_bits, monkeypatch):
    monkeypatch.setattr(exact, "WORD_BITS", word_bits)
    source = CountingSource(seeded(4))
    samples = sampler(rate, 20_000, source)
    assert source.used > 20_500  # ties did occur
    assert fit_p_value(samples, partial(survival, rate), bins=40) > 1e-4


def test_breaking_ties_without_more_bits_would_be_noticed(monkeypatch):
    monkeypatch.setattr(exact, "WORD_BITS", 4)
    monkeypatch.setattr(exact, "_refine", lambda distribution, prefix, bits, rng: prefix % 2)
    samples = geometric(Fraction(1, 5), 20_000, seeded(4))
    assert fit_p_value(samples, partial(geometric_survival, Fraction(1, 5)), bins=40) < 1e-20


def test_a_tie_is_decided_by_the_next_word():
    rate, k = Fraction(1, 10), 5
    tie, finer = floor_exp(rate, k, 64), floor_exp(rate, k, 128)
    following = finer - (tie << 64)
    for word, wanted in [(following - 1, k), (following + 1, k - 1)]:
        source = ScriptedSource(tie, word)
        assert geometric(rate, 1, source).tolist() == [wanted]
        assert not source.script
    assert geometric(rate, 1, ScriptedSource(tie - 1)).tolist() == [k]
    assert geometric(rate, 1, ScriptedSource(tie + 1)).tolist() == [k - 1]


def test_the_tail_is_not_cut_off():
    rate = Fraction(1, 10)
    draw = int(geometric(rate, 1, ScriptedSource(0, 0, 0, 7 << 60))[0])
    with mpmath.workprec(400):
        expected = int(mpmath.floor(-mpmath.log(mpmath.ldexp(7, 60 - 256)) / real(rate)))
    assert draw == expected > 1300  # a 64-bit table ends at 443


@pytest.mark.parametrize("chunk", [1, 7, 24, 1 << 14])
def test_the_size_of_a_chunk_does_not_matter(chunk, monkeypatch):
    monkeypatch.setattr(exact, "_CHUNK", chunk)
    samples = discrete_laplace(Fraction(1, 100), 5000, seeded(5))
    assert fit_p_value(samples, partial(two_sided_survival, Fraction(1, 100)), bins=40) > 1e-4


def test_neighboring_draws_are_independent():
    samples = discrete_laplace(Fraction(1, 100), DRAWS, seeded(6)) > 0
    table = np.zeros((2, 2))
    np.add.at(table, (samples[:-1].astype(int), samples[1:].astype(int)), 1)
    assert chi2_contingency(table).pvalue > 1e-4


@pytest.mark.parametrize(("rate", "words"), [("1", 1), ("1/10", 1), ("1/100", 2), ("1/1000000", 3)])
@pytest.mark.parametrize("sampler", [geometric, discrete_laplace])
def test_the_number_of_words_does_not_depend_on_what_is_drawn(sampler, rate, words):
    for seed in range(20):
        source = CountingSource(seeded(seed))
        sampler(Fraction(rate), 1000, source)
        assert source.used == 1000 * words


def test_coins_use_as_many_words_whatever_the_distance():
    used = set()
    for distance in (0, 1, 1000, 1 << 60):
        source = CountingSource(seeded(7))
        bernoulli_exp(Fraction(1, 10), np.full(100, distance), source)
        used.add(source.used)
    assert used == {100}


@pytest.mark.parametrize("word_bits", [5, 64])
@pytest.mark.parametrize("rate", [Fraction(1, 3), Fraction(1, 700)], ids=str)
def test_coins_show_heads_as_often_as_they_should(rate, word_bits, monkeypatch):
    monkeypatch.setattr(exact, "WORD_BITS", word_bits)
    tosses = 200_000 if word_bits == 64 else 4000
    for distance in (0, 1, 2, 300, 1 << 40):
        heads = int(bernoulli_exp(rate, np.full(tosses, distance), seeded(8)).sum())
        probability = np.exp(-float(rate) * distance)
        assert binom.cdf(heads, tosses, probability) > 1e-5
        assert binom.sf(heads - 1, tosses, probability) > 1e-5


@pytest.mark.parametrize("word_bits", [5, 64])
def test_coins_are_exact_up_to_the_largest_noise(word_bits, monkeypatch):
    monkeypatch.setattr(exact, "WORD_BITS", word_bits)
    monkeypatch.setattr(exact, "LARGEST_NOISE", 3)
    for distance in range(4):
        heads = int(bernoulli_exp(Fraction(1, 3), np.full(4000, distance), seeded(8)).sum())
        probability = np.exp(-distance / 3)
        assert binom.cdf(heads, 4000, probability) > 1e-5
        assert binom.sf(heads - 1, 4000, probability) > 1e-5


def test_coins_keep_the_shape_of_the_distances():
    assert bernoulli_exp(Fraction(1), np.zeros((2, 3), dtype=np.int64), seeded(9)).all(
        axis=1
    ).shape == (2,)


@pytest.mark.parametrize("bound", [1, 2, 7, 1000])
def test_uniform_values_are_equally_frequent(bound):
    seen = np.bincount(uniform_below(bound, DRAWS, seeded(10)), minlength=bound)
    assert seen.size == bound
    assert bound == 1 or chisquare(seen).pvalue > 1e-4


def test_large_bounds_are_not_biased_as_a_remainder_would_be():
    bound = 3 << 60
    fair = uniform_below(bound, DRAWS, seeded(11)) < bound // 3
    biased = seeded(11).words(DRAWS) % np.uint64(bound) < bound // 3
    assert 1e-4 < binom.cdf(fair.sum(), DRAWS, 1 / 3) < 1 - 1e-4
    assert binom.sf(biased.sum(), DRAWS, 1 / 3) < 1e-20


def test_a_word_in_the_unfair_rest_is_drawn_again():
    largest = (1 << 64) - 1  # one more than the last multiple of three, less one
    source = ScriptedSource(largest, 4)
    assert uniform_below(3, 1, source).tolist() == [1]
    assert not source.script
    assert uniform_below(3, 1, ScriptedSource(largest - 1)).tolist() == [2]


def test_numpy_integers_are_settings_like_any_other():
    size = np.int64((1 << 62) - 1)
    for same in (size, int(size)):
        assert uniform_below(same, 3, seeded(1)).tolist() == [
            word % int(size) for word in seeded(1).words(3).tolist()
        ]
    found = [skip_positions(s, Fraction(1), t, seeded(2)) for s, t in [(size, 36), (int(size), 36)]]
    assert found[0].tolist() == found[1].tolist() != []
    narrow = skip_positions(np.uint8(200), Fraction(1, 10), np.uint8(9), seeded(3))
    assert narrow.tolist() == skip_positions(200, Fraction(1, 10), 9, seeded(3)).tolist() != []


def success(rate, threshold):
    return float(np.exp(-float(rate) * threshold) / (1 + np.exp(-float(rate))))


@pytest.mark.parametrize(("word_bits", "chunk"), [(5, 1 << 14), (64, 1 << 14), (64, 1), (64, 2)])
@pytest.mark.parametrize("threshold", [1, 3])
def test_every_set_of_positions_is_as_likely_as_independent_coins_make_it(
    threshold, word_bits, chunk, monkeypatch
):
    monkeypatch.setattr(exact, "WORD_BITS", word_bits)
    monkeypatch.setattr(exact, "_CHUNK", chunk)  # gaps of a batch, after which another is drawn
    rate, size, source = Fraction(1, 2), 5, seeded(12)
    probability = success(rate, threshold)
    distribution = {}
    for code in range(1 << size):
        positions = tuple(i for i in range(size) if code >> i & 1)
        distribution[positions] = probability ** len(positions) * (1 - probability) ** (
            size - len(positions)
        )
    samples = [tuple(skip_positions(size, rate, threshold, source).tolist()) for _ in range(4000)]
    assert frequency_p_value(samples, distribution) > 1e-4


@pytest.mark.parametrize("word_bits", [6, 64])
def test_rare_positions_are_as_many_as_they_should_be_and_lie_anywhere(word_bits, monkeypatch):
    monkeypatch.setattr(exact, "WORD_BITS", word_bits)
    rate, threshold, size, runs, source = Fraction(1, 10), 70, 10_000, 300, seeded(13)
    found = [skip_positions(size, rate, threshold, source) for _ in range(runs)]
    numbers = np.array([len(positions) for positions in found])
    probability = success(rate, threshold)
    assert fit_p_value(numbers, lambda k: binom.sf(k - 1, size, probability), bins=20) > 1e-4
    assert chisquare(np.bincount(np.concatenate(found) // 1000, minlength=10)).pvalue > 1e-4
    assert all((np.diff(positions) > 0).all() for positions in found)


def test_wide_gaps_end_on_every_lowest_digit_equally_often():
    source = seeded(17)
    found = [skip_positions(10**12, Fraction(1), 26, source) for _ in range(800)]
    low_bits = np.bincount(np.concatenate(found) & 15, minlength=16)
    assert low_bits.sum() > 2000
    assert chisquare(low_bits).pvalue > 1e-4


@pytest.mark.parametrize(
    ("threshold", "runs"), [(36, 20), (39, 20), (42, 20), (44, 300), (46, 2000)]
)
def test_gaps_as_wide_as_the_integers_do_not_wrap(threshold, runs):
    size, source = (1 << 62) - 1, seeded(14)
    found = [skip_positions(size, Fraction(1), threshold, source) for _ in range(runs)]
    total = sum(len(positions) for positions in found)
    expected = runs * size * success(1, threshold)
    assert 1e-5 < poisson.cdf(total, expected) < 1 - 1e-5
    assert all((np.diff(positions) > 0).all() for positions in found)
    everywhere = np.concatenate(found)
    assert everywhere.min() >= 0
    assert everywhere.max() < size
    assert chisquare(np.bincount(everywhere >> 59, minlength=8)).pvalue > 1e-4


def test_positions_that_are_never_drawn_cost_one_batch_of_words():
    source = CountingSource(seeded(15))
    assert skip_positions(1 << 61, Fraction(1), 10**6, source).size == 0
    assert source.used < 100
    assert skip_positions(0, Fraction(1), 1, source).size == 0


@pytest.mark.parametrize("rate", [Fraction(1), Fraction(1, 10)], ids=str)
def test_opendp_draws_the_same_noise(rate):
    dp.enable_features("contrib")
    space = dp.vector_domain(dp.atom_domain(T="i64")), dp.l1_distance(T="i64")
    theirs = np.array(dp.m.make_laplace(*space, scale=float(1 / rate))([0] * 50_000))
    ours = discrete_laplace(rate, 50_000, seeded(16))
    edge = int(6 / rate)
    table = [np.bincount(np.clip(n, -edge, edge) + edge) for n in (ours, theirs)]
    frequent = np.minimum(*table) >= 5
    assert chi2_contingency(np.array(table)[:, frequent]).pvalue > 1e-6


def test_same_seed_same_noise_and_other_seed_other_noise():
    first, again, other = (discrete_laplace(Fraction(1, 9), 50, seeded(s)) for s in (1, 1, 2))
    assert first.tolist() == again.tolist() != other.tolist()


@pytest.mark.parametrize("sampler", [geometric, discrete_laplace])
def test_nothing_is_drawn_when_nothing_is_asked_for(sampler):
    assert sampler(Fraction(1), 0, ScriptedSource()).dtype == np.int64
    assert uniform_below(5, 0, ScriptedSource()).size == 0


@pytest.mark.parametrize("rate", [0.1, True, Fraction(0), Fraction(-1), Fraction(1, (1 << 40) + 1)])
def test_rates_that_are_not_exact_or_too_small_are_refused(rate):
    for call in (
        lambda: geometric(rate, 1, ScriptedSource()),
        lambda: discrete_laplace(rate, 1, ScriptedSource()),
        lambda: bernoulli_exp(rate, np.zeros(1, dtype=np.int64), ScriptedSource()),
        lambda: skip_positions(5, rate, 1, ScriptedSource()),
    ):
        with pytest.raises(InvalidParameter, match="rate"):
            call()


@pytest.mark.parametrize("bound", [0, -1, 1 << 62, 2.0])
def test_bounds_out_of_range_are_refused(bound):
    with pytest.raises(InvalidParameter, match="bound"):
        uniform_below(bound, 1, ScriptedSource())


@pytest.mark.parametrize("size", [-1, 1 << 62, 2.0])
def test_sizes_out_of_range_are_refused(size):
    with pytest.raises(InvalidParameter, match="size"):
        skip_positions(size, Fraction(1), 1, ScriptedSource())


@pytest.mark.parametrize("prefix", [0, 1, 2, 77, (1 << 20) - 1])
@pytest.mark.parametrize("limits", [{}, {"cap": 40}, {"cap": 3}, {"radix": 8}], ids=str)
def test_a_search_for_more_bits_ends_at_the_largest_value_if_there_is_one(prefix, limits):
    distribution = Distribution(ExpRate(Fraction(1, 10)), **limits)
    words = (0x0123456789ABCDEF, 5)
    found = exact._refine(distribution, prefix, 20, ScriptedSource(*words))
    drawn = ((prefix << 64 | words[0]) << 64) | words[1]  # more bits than it may need
    largest = distribution.largest or 1000
    assert found == sum(drawn < floor_survival(distribution, k, 148) for k in range(1, largest + 1))
