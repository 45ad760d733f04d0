"""Sampling: a record drawn with the right probability loses just its own share."""

from decimal import Decimal, localcontext
from fractions import Fraction
from itertools import product
from math import exp, prod

import numpy as np
import pyarrow as pa
import pytest

from dpublish.data.schema import Schema, column
from dpublish.data.sources import open_table
from dpublish.errors import InvalidParameter
from dpublish.methods.histogram.histogram import Histogram
from dpublish.methods.personalized.released import OF_THE_DRAWN
from dpublish.methods.personalized.sampling import CORRECTED, NOT_CORRECTED, Sampling
from dpublish.privacy.amplification import sampling_rate
from dpublish.randomness import seeded
from dpublish.testing import frequency_p_value, privacy_loss

LEVELS = (Fraction(1, 10), Fraction(1, 2), Fraction(2))
PEOPLE = (0, 0, 1, 2)
SCHEMA = Schema((column("sex", "category", values=["F", "M"]),))
OUTCOMES = range(-60, 61)


def sampling(**settings):
    inner = Histogram(columns=("sex@0",))
    return Sampling(preference="own", levels=LEVELS, inner=inner, **settings)


def geometric(rate):
    decay = exp(-rate)
    return lambda k: (1 - decay) / (1 + decay) * decay ** abs(k)


def distribution(people, rates, epsilon, value_of=None):
    """The exact distribution of a noisy count of those drawn, over all ways of drawing them."""
    noise = geometric(epsilon)
    found = dict.fromkeys(OUTCOMES, 0.0)
    for drawn in product((False, True), repeat=len(people)):
        probability = prod(
            rates[level] if kept else 1 - rates[level]
            for level, kept in zip(people, drawn, strict=True)
        )
        counted = [level for level, kept in zip(people, drawn, strict=True) if kept]
        total = len(counted) if value_of is None else sum(map(value_of, counted))
        for outcome in OUTCOMES:
            found[outcome] += probability * noise(outcome - total)
    return found


def losses(rates, epsilon, value_of=None):
    """The loss of each level when one of its records is added to any subset of the people."""
    worst = dict.fromkeys(range(len(LEVELS)), 0.0)
    for present in product((False, True), repeat=len(PEOPLE)):
        here = tuple(level for level, there in zip(PEOPLE, present, strict=True) if there)
        for level in worst:
            loss = privacy_loss(
                distribution(here, rates, epsilon, value_of),
                distribution((*here, level), rates, epsilon, value_of),
            )
            worst[level] = max(worst[level], loss)
    return worst


@pytest.mark.parametrize("threshold", ["max", "mean", Fraction(1, 2), Fraction(3, 10)])
@pytest.mark.parametrize("epsilon", [Fraction(2), Fraction(1, 2)])
def test_every_level_loses_just_what_it_pays(threshold, epsilon):
    method = sampling(threshold=threshold)
    rates = [float(rate) for rate in method.rates(epsilon).values()]
    spent = method.spending(epsilon)
    found = losses(rates, float(max(spent.values())))
    for position, level in enumerate(LEVELS):
        assert found[position] <= float(spent[level]) * (1 + 1e-9)
        assert found[position] == pytest.approx(float(spent[level]), rel=1e-9)


def test_the_plain_ratio_of_exponentials_is_caught():
    """The twin with e^Phi / e^t instead of (e^Phi - 1) / (e^t - 1)."""
    found = losses([exp(float(level - LEVELS[-1])) for level in LEVELS], float(LEVELS[-1]))
    assert found[0] > 5 * float(LEVELS[0])


def test_weights_of_the_inverse_probability_are_caught():
    """The twin that counts everyone drawn as 1 / p people, under the same noise."""
    method = sampling()
    rates = [float(rate) for rate in method.rates(LEVELS[-1]).values()]
    found = losses(rates, float(LEVELS[-1]), value_of=lambda level: round(1 / rates[level]))
    assert found[0] > 5 * float(LEVELS[0])


@pytest.mark.parametrize(
    ("share", "threshold"),
    [
        (Fraction(1, 100), Fraction(1)),
        (Fraction(99, 100), Fraction(1)),
        (Fraction(1, 10**9), Fraction(1, 10**8)),
        (Fraction(1, 3), Fraction(40)),
        (Fraction(1, 10**25), Fraction(5)),
        (Fraction(10), Fraction(900)),
    ],
)
def test_rates_are_rounded_down_in_whole_steps(share, threshold):
    found = sampling_rate(share, threshold)
    with localcontext() as context:
        context.prec = 900
        exact = (_decimal(share).exp() - 1) / (_decimal(threshold).exp() - 1)
        steps = int(exact * 2**64)
    assert found == Fraction(steps, 2**64)


def _decimal(value):
    return Decimal(value.numerator) / Decimal(value.denominator)


def test_from_the_threshold_on_all_people_are_used():
    assert sampling_rate(Fraction(2), Fraction(1)) == 1
    rates = sampling(threshold=Fraction(1, 2)).rates(LEVELS[-1])
    assert [rate == 1 for rate in rates.values()] == [False, True, True]


def test_what_is_published_follows_the_distribution_and_another_distribution_is_told_apart():
    method = sampling()
    own = [0.1, 0.5, 0.7, 0.5, 0.5, 5.0]
    source = pa.table({"own": own, "sex": ["F"] * 6})
    table = open_table(source, method.prepare(SCHEMA))
    published = [
        method.release(table, budget=method.budget(LEVELS[-1]), rng=seeded(seed))
        for seed in range(600)
    ]
    counts = [int(release.parts[0].release.counts[0]) for release in published]
    people = (0, 1, 1, 1, 1, 2)
    rates = [float(rate) for rate in method.rates(LEVELS[-1]).values()]
    assert frequency_p_value(counts, distribution(people, rates, 2.0)) > 1e-4
    broken = [exp(float(level - LEVELS[-1])) for level in LEVELS]
    assert frequency_p_value(counts, distribution(people, broken, 2.0)) < 1e-9


def test_the_mean_is_taken_over_public_sizes_or_over_the_levels():
    assert sampling(threshold="mean").limit == Fraction(26, 30)
    assert sampling(threshold="mean", sizes=(10, 0, 10)).limit == Fraction(21, 20)
    assert sampling(threshold="mean", sizes=(0, 0, 0)).limit == Fraction(26, 30)


@pytest.mark.parametrize("settings", [{"sizes": (2000, 3000, 5000)}, {"mode": "values-only"}])
def test_counts_are_corrected_only_on_the_owners_word(settings):
    own = np.repeat([0.1, 0.5, 2.0], [2000, 3000, 5000])
    for word, note in ((False, NOT_CORRECTED), (True, CORRECTED)):
        method = sampling(exchangeable=word, **settings)
        source = pa.table({"own": own, "sex": ["F"] * 10_000})
        table = open_table(source, method.prepare(SCHEMA))
        release = method.release(table, budget=method.budget(LEVELS[-1]), rng=seeded(6))
        rates = [float(rate) for rate in method.rates(LEVELS[-1]).values()]
        drawn = float(np.dot(rates, (2000, 3000, 5000)))
        assert release.count().value == pytest.approx(10_000 if word else drawn, rel=0.03)
        assert release.parts[0].size == pytest.approx(drawn)
        assert note in release.notes
        assert (OF_THE_DRAWN in (release.count().assumption or "")) is not word


def test_exchanged_values_are_drawn_with_half_the_amounts():
    halved = sampling(mode="values-only").rates(LEVELS[-1])
    assert halved == sampling().rates(LEVELS[-1] / 2)


def test_what_makes_no_sense_is_refused():
    with pytest.raises(InvalidParameter, match="must be public"):
        sampling(exchangeable=True)
    with pytest.raises(InvalidParameter, match="between the smallest"):
        sampling(threshold=Fraction(3))
    with pytest.raises(InvalidParameter, match="between the smallest"):
        sampling(threshold=Fraction(1, 20))
    with pytest.raises(InvalidParameter, match="threshold"):
        sampling(threshold="median")
