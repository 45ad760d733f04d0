"""What is predicted of a count by each method is what a simulation finds."""

from fractions import Fraction

import numpy as np
import pytest

from dpublish.errors import InvalidParameter
from dpublish.methods.personalized.expected_counts import Population
from dpublish.methods.personalized.groups.optimizer import drawing_rates
from dpublish.methods.personalized.groups.plan import PlannedGroup
from dpublish.randomness import plain_generator

LEVELS, SIZES = ("0.01", "0.2", "1"), (500, 3500, 6000)


def errors(share, levels=LEVELS, sizes=SIZES, **changes):
    population = Population.of(levels, sizes, share=share, **changes)
    return {each.method: each.error for each in population.compare()}


def geometric(rng, epsilon, size):
    stop = -np.expm1(-epsilon)
    return rng.geometric(stop, size) - rng.geometric(stop, size)


def simulate(population, groups, runs, rng):
    """Draw who is counted, who is drawn and the noise; give the root mean square error."""
    counted = [rng.binomial(1, population.share, (runs, size)) for size in population.sizes]
    truth = sum(each.sum(axis=1) for each in counted)
    found = np.zeros(runs)
    for group in groups:
        noisy = geometric(rng, float(group.epsilon), runs).astype(float)
        for position, paid in zip(group.members, group.pays, strict=True):
            rate = float(drawing_rates(np.array(float(paid)), float(group.epsilon)))
            noisy += (counted[position] * (rng.random(counted[position].shape) < rate)).sum(axis=1)
        found += population.people * group.weight / group.drawn * noisy
    return float(np.sqrt(np.mean((found - truth) ** 2)))


def group(population, members, epsilon, weight=1.0):
    pays = tuple(min(population.amounts[position], epsilon) for position in members)
    rates = drawing_rates(np.array(pays, dtype=float), float(epsilon))
    size = sum(population.sizes[position] for position in members)
    drawn = float(rates @ [population.sizes[position] for position in members])
    return PlannedGroup(tuple(members), pays, epsilon, float(size), drawn, weight)


PEOPLE = Population.of(["0.05", "0.3", "1"], [60, 200, 140], share=0.3)
PLANS = {
    "all people": [group(PEOPLE, (0, 1, 2), Fraction(1, 20))],
    "some": [group(PEOPLE, (1, 2), Fraction(3, 10))],
    "drawn": [group(PEOPLE, (0, 1, 2), Fraction(1))],
    "groups": [
        group(PEOPLE, (0,), Fraction(1, 20), 0.1),
        group(PEOPLE, (1, 2), Fraction(1), 0.9),
    ],
    "rounds": [
        group(PEOPLE, (1, 2), Fraction(3, 10), 0.6),
        group(PEOPLE, (2,), Fraction(7, 10), 0.4),
    ],
}


@pytest.mark.parametrize("plan", PLANS)
def test_the_error_predicted_is_the_error_simulated(plan):
    runs = 6000
    found = simulate(PEOPLE, PLANS[plan], runs, plain_generator(5))
    # The error of a root mean square of Laplace noise is about 1.1 / sqrt(runs).
    assert found == pytest.approx(PEOPLE.error(PLANS[plan]), rel=6 / np.sqrt(runs))


def test_a_twin_that_forgets_who_was_drawn_is_caught():
    forgetful = Population.of(
        ["0.05", "0.3", "1"], [60, 200, 140], share=0.0
    )  # noise alone is left
    found = simulate(PEOPLE, PLANS["drawn"], 6000, plain_generator(5))
    assert found != pytest.approx(forgetful.error(PLANS["drawn"]), rel=0.5)


def test_the_example_of_ten_thousand_people_holds():
    rare = errors(0.08)
    assert round(rare["minimum"]) == round(rare["partitioning, sum"]) == 141
    assert 18 <= rare["sampling mean"] < rare["sampling 1"] <= 20.5
    assert round(rare["partitioning, weighted"]) in (9, 10)
    assert errors(0.31)["personalized-em"] == pytest.approx(134, abs=1)


def test_the_personalized_choice_errs_as_its_distribution_says():
    levels, sizes, share = ("0.2", "1"), (6, 10), 0.5
    population = Population.of(levels, sizes, share=share)
    prices = np.cumsum([0.2] * 3 + [1.0] * 5)
    odds = np.concatenate([[1.0], np.exp(-prices / 2), np.exp(-prices / 2)])
    steps = np.concatenate([[0], np.arange(1, 9), np.arange(1, 9)])
    wanted = np.sqrt(odds @ steps**2 / odds.sum())
    found = {each.method: each.error for each in population.compare()}["personalized-em"]
    assert found == pytest.approx(wanted)


def test_no_level_pays_more_than_its_share():
    population = Population.of(LEVELS, SIZES, Fraction(1, 2))
    assert population.amounts == (Fraction(1, 200), Fraction(1, 10), Fraction(1, 2))
    for each in population.compare():
        assert all(paid <= own for paid, own in zip(each.paid, population.amounts, strict=True))
        assert any(each.paid)
        assert each.groups >= 1


def test_more_epsilon_errs_less():
    small, large = errors(0.5, epsilon=Fraction(1, 10)), errors(0.5)
    assert small.keys() == large.keys()
    assert all(large[name] <= small[name] for name in small)


def test_empty_levels_hold_no_one_back():
    found = errors(0.5, sizes=(0, 3500, 6000))
    assert found["minimum"] == pytest.approx(np.sqrt(2) / 0.2, rel=0.01)


def test_many_levels_are_compared_at_some():
    levels = [Fraction(n, 200) for n in range(1, 201)]
    found = errors(0.5, levels=levels, sizes=[50] * 200)
    assert sum(name.startswith("threshold") for name in found) <= 6
    assert found["partitioning, weighted"] < found["minimum"] / 3


@pytest.mark.parametrize(
    "change",
    [
        {"sizes": (1, 2)},
        {"sizes": (0, 0, 0)},
        {"sizes": (1, 2, -3)},
        {"share": 1.5},
        {"epsilon": Fraction(2)},
        {"epsilon": Fraction(0)},
    ],
)
def test_what_makes_no_sense_is_refused(change):
    with pytest.raises(InvalidParameter):
        Population.of(LEVELS, **{"sizes": SIZES} | change)
