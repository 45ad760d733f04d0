"""Choices about records are exact: every word decides as the proof says."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from dpublish.data.draws import choose, draw_blocks, require_rate
from dpublish.errors import InvalidParameter
from dpublish.randomness import seeded
from dpublish.testing import frequency_p_value

WORD = 2**64


class Script:
    """A source that hands out given words, and then the greatest word for ever."""

    def __init__(self, *words):
        self._words = list(words)

    def words(self, count):
        taken, self._words = self._words[:count], self._words[count:]
        return np.array(taken + [WORD - 1] * (count - len(taken)), dtype=np.uint64)


class Silence:
    """A source that must not be asked."""

    def words(self, count):
        raise AssertionError("a word was drawn though none was needed")


@settings(deadline=None)
@given(
    rate=st.fractions(0, 1).filter(lambda rate: 0 < rate < 1),
    offsets=st.lists(st.sampled_from([-1, 0, 1]), min_size=1, max_size=3),
)
@example(rate=Fraction(1, 3), offsets=[0, -1])
@example(rate=Fraction(1, 3), offsets=[0, 0, -1])
@example(rate=Fraction(1, 3), offsets=[0, 1])
def test_a_choice_compares_a_uniform_number_with_the_rate(rate, offsets):
    words, rest = [], rate
    for offset in offsets:  # words near those of the rate, where the decision is close
        whole, rest = divmod(rest * WORD, 1)
        words.append(min(max(int(whole) + offset, 0), WORD - 1))
    digits = [*words, *[WORD - 1] * 9]
    number = sum(Fraction(word, WORD ** (index + 1)) for index, word in enumerate(digits))
    assert choose(rate, 1, Script(*words)).tolist() == [number < rate]


def test_a_rate_of_one_takes_all_and_draws_nothing():
    assert choose(Fraction(1), 3, Silence()).all()


@pytest.mark.parametrize("rate", [Fraction(1, 3), Fraction(1, 64), Fraction(63, 64)])
def test_records_are_chosen_as_often_as_they_should(rate, rng):
    chosen = choose(rate, 100_000, rng).tolist()

    def p_value(rare):
        often, seldom = (True, False) if rate > Fraction(1, 2) else (False, True)
        return frequency_p_value(chosen, {often: 1 - rare, seldom: rare})

    rare = float(min(rate, 1 - rate))
    assert p_value(rare) > 1e-3
    assert p_value(rare * 0.7) < 1e-20
    assert p_value(rare * 1.3) < 1e-20


@pytest.mark.parametrize("blocks", [1, 2, 3, 7, 2**16 - 1])
def test_words_that_would_favor_some_blocks_are_drawn_again(blocks):
    fair = WORD - WORD % blocks
    edges = [0, 1, blocks - 1, blocks, fair - 1]
    assert draw_blocks(blocks, 5, Script(*edges)).tolist() == [edge % blocks for edge in edges]
    if fair < WORD:
        assert draw_blocks(blocks, 1, Script(fair, WORD - 1, 5)).tolist() == [5 % blocks]


def test_blocks_are_drawn_uniformly_and_a_skewed_twin_is_found_out(rng):
    drawn = draw_blocks(7, 70_000, rng).tolist()
    uniform = dict.fromkeys(range(7), 1 / 7)
    assert frequency_p_value(drawn, uniform) > 1e-3
    skewed = (seeded(1).words(70_000) % np.uint64(16) % np.uint64(7)).tolist()
    assert frequency_p_value(skewed, uniform) < 1e-20


@pytest.mark.parametrize("rate", [0.5, 1, 0, Fraction(0), Fraction(-1, 2), Fraction(3, 2), "1/2"])
def test_a_rate_must_be_an_exact_fraction(rate):
    with pytest.raises(InvalidParameter, match="must be a Fraction"):
        require_rate(rate)


@pytest.mark.parametrize("blocks", [0, -1, 1.5, True])
def test_a_number_of_blocks_must_be_a_count(blocks, rng):
    with pytest.raises(InvalidParameter, match="must be an integer"):
        draw_blocks(blocks, 3, rng)
