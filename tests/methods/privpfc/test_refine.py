"""Refining: the exact privacy loss of a round, twins that lose more, and what a round learns."""

from fractions import Fraction
from itertools import combinations_with_replacement, product
from math import log

import numpy as np
import pytest

from choice_distribution import choice_distribution
from dpublish.accuracy.noise_distribution import noise_pmf
from dpublish.core import run as mechanisms
from dpublish.core.run import Run
from dpublish.core.task import Task
from dpublish.data.batch import Batch
from dpublish.data.schema import Schema, column
from dpublish.errors import InvalidParameter
from dpublish.methods.privpfc import refine as refinement
from dpublish.methods.privpfc.kernels import ResidualSums
from dpublish.methods.privpfc.refine import CHOICE, SUMS, refine
from dpublish.methods.privpfc.released_columns import Refinement
from dpublish.methods.privpfc.score_card import (
    LIMIT,
    STEP,
    UNIT,
    ScoreCard,
    ScoreTerm,
    to_probabilities,
)
from dpublish.privacy.budget import Budget
from dpublish.privacy.neighbors import AddRemoveRecord, ReplaceRecord
from dpublish.randomness import plain_generator, seeded
from dpublish.testing import frequency_p_value

EPSILON = Fraction(3)
AGE = column("age", "integer", bounds=[0, 3], branching=2)  # levels of two and of four cells
SEX = column("sex", "category", values=["F", "M"])
NAMES = ("age", "sex", "y")


def task_of(classes):
    target = column("y", "category", values=[f"c{k}" for k in range(classes)])
    return Task.of(Schema((AGE, SEX, target)), target="y")


class Records:
    """A table of few records, given as codes; it counts how often it is read."""

    neighbors = AddRemoveRecord()

    def __init__(self, records, task):
        self.schema = Schema((*task.predictors, task.target))
        self._columns = np.array(records, dtype=np.uint8).reshape(-1, len(self.schema.names))
        self.reads = 0

    def sum(self, kernel):
        self.reads += 1
        answer = kernel.zero()
        codes = dict(zip(self.schema.names, self._columns.T, strict=True))
        kernel.add(Batch(len(self._columns), codes), answer)
        return answer


def card_of(scores, *axes):
    scores = np.array(scores, dtype=np.int64)
    return ScoreCard((ScoreTerm(axes, scores, np.zeros(scores.shape[1], np.int64)),))


def sure_card(classes):
    """Sure of the second class for F, and of the first for M."""
    scores = np.full((2, classes), -LIMIT)
    scores[0, 1] = scores[1, 0] = LIMIT
    return card_of(scores, SEX.axis())


def cards(classes):
    return [
        card_of([[0] * classes]),
        card_of([[STEP, *[-STEP] * (classes - 1)]]),
        card_of([[-LIMIT, *[LIMIT] * (classes - 1)]]),
        sure_card(classes),
    ]


# --- the exact distribution of a round
# -------------------------------------------------------------------


class Script:
    """Stands in for both mechanisms: answers as told, and keeps what it was asked."""

    def __init__(self, choices, answers=()):
        self.choices, self.answers = list(choices), list(answers)
        self.distributions, self.exact, self.rates = [], [], []

    def select(self, scores, *, sensitivity_range, budget, rng, **_):
        rate = budget.spend() / sensitivity_range
        self.distributions.append(choice_distribution(scores, float(rate)))
        return self.choices[len(self.distributions) - 1]

    def add_geometric(self, counts, *, sensitivity, budget, rng):
        self.rates.append(float(budget.spend() / sensitivity))
        self.exact.append(counts)
        told = len(self.exact) <= len(self.answers)
        return self.answers[len(self.exact) - 1] if told else counts

    def run(self, records, task, card, monkeypatch, rounds=1):
        with monkeypatch.context() as patch:
            patch.setattr(mechanisms, "select", self.select)
            patch.setattr(mechanisms, "add_geometric", self.add_geometric)
            run = Run(Records(records, task), rng=seeded(1))
            refine(run, task, card, rounds=rounds, budget=Budget.seeded(EPSILON))
        return self


def round_loss(records, extra, task, card, monkeypatch):
    """The largest log ratio over all outputs of one round, with and without `extra`.

    An output is a choice o and noisy sums y.  The ratio of its probabilities is that of the
    choice, times exp(rate (|y - s'| - |y - s|)), which over all y is largest at y = s.
    """
    worst = 0.0
    choices = len(Script([0]).run(records, task, card, monkeypatch).distributions[0])
    for chosen in range(choices):
        here = Script([chosen]).run(records, task, card, monkeypatch)
        there = Script([chosen]).run([*records, extra], task, card, monkeypatch)
        odds = abs(log(here.distributions[0][chosen] / there.distributions[0][chosen]))
        moved = int(np.abs(here.exact[0] - there.exact[0]).sum())
        worst = max(worst, odds + here.rates[0] * moved)
    return worst


def worst_loss(classes, monkeypatch, card, most=2):
    """Over all tables of at most `most` records of a small domain, and all records to add."""
    task = task_of(classes)
    domain = list(product((0, 3), (0, 1), range(classes)))
    return max(
        round_loss(list(records), extra, task, card, monkeypatch)
        for size in range(most + 1)
        for records in combinations_with_replacement(domain, size)
        for extra in domain
    )


@pytest.mark.parametrize("number", range(4))
def test_no_output_of_a_round_tells_neighbors_apart_by_more_than_its_budget(number, monkeypatch):
    found = worst_loss(2, monkeypatch, cards(2)[number])
    assert found <= EPSILON + 1e-9
    assert found > EPSILON / 10


@pytest.mark.parametrize("number", range(4))
def test_nor_with_three_classes(number, monkeypatch):
    found = worst_loss(3, monkeypatch, cards(3)[number], most=1)
    assert found <= EPSILON + 1e-9
    assert found > EPSILON / 10


# Residuals by sex are large and those by age cancel; one record pulls them further apart.
LEANING = [(0, 0, 0)] * 41 + [(0, 1, 1)] * 40
PULLING = (0, 1, 1)


def leaning_loss(classes, monkeypatch):
    return round_loss(LEANING, PULLING, task_of(classes), sure_card(classes), monkeypatch)


def test_the_whole_budget_of_a_round_is_used(monkeypatch):
    assert EPSILON - 0.01 < leaning_loss(2, monkeypatch) <= EPSILON + 1e-9


def test_with_many_classes_almost_all_of_it(monkeypatch):
    found = leaning_loss(3, monkeypatch)
    assert 0.8 * EPSILON < found <= EPSILON + 1e-9


# --- twins that the audit must catch ------------------------------------------------------------


@pytest.mark.parametrize("classes", [2, 3])
def test_the_audit_notices_half_the_range(classes, monkeypatch):
    honest = ResidualSums.range_sensitivity
    monkeypatch.setattr(ResidualSums, "range_sensitivity", lambda *a: honest(*a) // 2)
    assert leaning_loss(classes, monkeypatch) > EPSILON


@pytest.mark.parametrize("classes", [2, 3])
def test_the_audit_notices_half_the_sensitivity(classes, monkeypatch):
    honest = ResidualSums.sensitivity
    monkeypatch.setattr(ResidualSums, "sensitivity", lambda *a: honest(*a) // 2)
    assert leaning_loss(classes, monkeypatch) > EPSILON


def test_the_audit_notices_noise_that_forgets_the_unit(monkeypatch):
    monkeypatch.setattr(ResidualSums, "sensitivity", lambda *_: 1)
    assert leaning_loss(2, monkeypatch) > 1000 * EPSILON


# Two rounds, by age, where all records share a cell, then by sex, where one record is alone.
BALANCED = [(0, 0, 1)] * 150 + [(0, 0, 0)] * 150
PATH = [0, 2]


def replay_losses(extra, monkeypatch):
    """What each step of a transcript costs: published here, replayed there."""
    task, card = task_of(2), card_of([[0, 0]])
    here = Script(PATH).run(BALANCED, task, card, monkeypatch, 2)
    there = Script(PATH, here.exact).run([*BALANCED, extra], task, card, monkeypatch, 2)
    distributions = zip(PATH, here.distributions, there.distributions, strict=True)
    choices = [abs(log(a[chosen] / b[chosen])) for chosen, a, b in distributions]
    moved = [np.abs(a - b).sum() for a, b in zip(here.exact, there.exact, strict=True)]
    return max(choices), max(here.rates[0] * float(one) for one in moved)


DOMAIN = list(product((0, 3), (0, 1), (0, 1)))
STEP_COSTS = tuple(EPSILON / 2 * part / (CHOICE + SUMS) for part in (CHOICE, SUMS))


@pytest.mark.parametrize("extra", DOMAIN)
def test_every_step_of_two_rounds_costs_no_more_than_its_budget(extra, monkeypatch):
    for cost, budget in zip(replay_losses(extra, monkeypatch), STEP_COSTS, strict=True):
        assert cost <= budget + 1e-9


def test_the_audit_notices_a_card_made_from_exact_sums(monkeypatch):
    """Such a card lets one record move the probabilities of all records of its cell."""
    exact = []

    class Leaky(Refinement):
        @property
        def term(self):
            return Refinement(self.axis, self.classes, exact[-1], Fraction(10**6)).term

    def add_geometric(self, counts, *, honest=Script.add_geometric, **settings):
        exact.append(counts)
        return honest(self, counts, **settings)

    monkeypatch.setattr(Script, "add_geometric", add_geometric)
    monkeypatch.setattr(refinement, "Refinement", Leaky)
    costs = [replay_losses(extra, monkeypatch)[1] for extra in DOMAIN]
    assert max(costs) > STEP_COSTS[1] * 1.1


# --- the distributions that the audit assumes
# ------------------------------------------------------------


def test_columns_are_chosen_and_sums_perturbed_by_the_distributions_of_the_proof():
    task, card, budget = task_of(2), card_of([[0, 0]]), Fraction(20)
    records = [(0, 0, 1), (0, 1, 0), (3, 1, 1), (1, 0, 1)]
    script = Script([2])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(mechanisms, "select", script.select)
        patch.setattr(mechanisms, "add_geometric", script.add_geometric)
        run = Run(Records(records, task), rng=seeded(1))
        refine(run, task, card, rounds=1, budget=Budget.seeded(budget))
    drawn, noise = [], []
    for seed in range(1500):
        run = Run(Records(records, task), rng=seeded(seed))
        (one,) = refine(run, task, card, rounds=1, budget=Budget.seeded(budget))
        drawn.append((one.axis.column, one.axis.size))
        if one.axis.column == "sex":
            noise += (one.sums - script.exact[0]).ravel().tolist()
    distribution = dict(
        zip([("age", 2), ("age", 4), ("sex", 2)], script.distributions[0], strict=True)
    )
    assert frequency_p_value(drawn, distribution) > 1e-3
    rate = budget * SUMS / (CHOICE + SUMS) / UNIT
    assert one.rate == rate
    assert len(noise) > 400
    for factor, fits in ((1, True), (2, False)):
        edges = np.round(np.linspace(-3, 3, 9) / float(rate)).astype(int)
        grid = np.arange(edges[0], edges[-1])
        mass = noise_pmf(rate * factor, grid)
        bins = np.digitize(grid, edges)
        expected = {int(k): float(mass[bins == k].sum()) for k in np.unique(bins)}
        inside = [int(np.digitize(x, edges)) for x in noise if edges[0] <= x < edges[-1]]
        assert (frequency_p_value(inside, expected) > 1e-3) == fits


# --- accounts, and what is read -----------------------------------------------------------------


@pytest.mark.parametrize("rounds", [1, 3])
def test_every_budget_is_spent_and_each_round_reads_the_rows_once(rounds, rng):
    task, budget = task_of(2), Budget.seeded("0.7")
    table = Records(BALANCED, task)
    run = Run(table, rng=rng)
    found = refine(run, task, card_of([[0, 0]]), rounds=rounds, budget=budget)
    assert len(found) == table.reads == rounds
    assert all(leaf.is_used for leaf in budget.account())
    assert budget.cost() == budget.epsilon
    shares = [leaf.epsilon for leaf in budget.account()]
    each = Fraction("0.7") / rounds / (CHOICE + SUMS)
    assert shares == [CHOICE * each, SUMS * each] * rounds


def test_rows_are_read_only_after_the_budget_is_opened(rng):
    task, budget = task_of(2), Budget.seeded(1)

    class Watched(Records):
        def sum(self, kernel):
            assert budget.is_used
            assert not all(leaf.is_used for leaf in budget.account())
            return super().sum(kernel)

    run = Run(Watched([], task), rng=rng)
    refine(run, task, card_of([[0, 0]]), rounds=2, budget=budget)


def test_neighbors_that_replace_records_are_refused(rng):
    task = task_of(2)
    table = Records([], task)
    table.neighbors = ReplaceRecord()
    with pytest.raises(InvalidParameter, match="single records"):
        refine(Run(table, rng=rng), task, card_of([[0, 0]]), rounds=1, budget=Budget.seeded(1))
    assert table.reads == 0


def test_progress_tells_rounds_only(rng):
    task, steps = task_of(2), []
    run = Run(Records([], task), rng=rng, progress=lambda *step: steps.append(step))
    refine(run, task, card_of([[0, 0]]), rounds=2, budget=Budget.seeded(1))
    assert steps == [(1, 2, "refinements"), (2, 2, "refinements")]


# --- candidates ---------------------------------------------------------------------------------


def offered(task):
    """Among how many axes a round chooses."""
    script = Script([0])
    script.run([], task, card_of([[0] * task.target.size]), pytest.MonkeyPatch())
    return len(script.distributions[0])


def test_each_level_that_tells_more_apart_is_a_candidate_once():
    assert offered(task_of(2)) == 3
    single = column("one", "category", values=["a"])
    chain = column("chain", "category", taxonomy={"A": ["a"], "B": ["b"]})  # two levels, one cut
    target = column("y", "category", values=["n", "j"])
    assert offered(Task.of(Schema((single, chain, target)), target="y")) == 1


def test_columns_that_tell_nothing_apart_refine_all_records_together(rng):
    single = column("one", "category", values=["a"])
    task = Task.of(Schema((single, column("y", "category", values=["n", "j"]))), target="y")
    table, budget = Records([(0, 1)] * 500, task), Budget.seeded(5)
    run = Run(table, rng=rng)
    (one,) = refine(run, task, card_of([[0, 0]]), rounds=1, budget=budget)
    assert one.axis.size == 1
    assert one.term.scores[0, 1] > STEP
    assert all(leaf.is_used for leaf in budget.account())


# --- what a round learns ------------------------------------------------------------------------


@pytest.mark.parametrize("classes", [2, 3])
def test_rounds_bring_the_card_closer_to_the_classes(classes, rng):
    task = task_of(classes)
    source = plain_generator(4)
    records = source.integers(0, [4, 2, classes], (4000, 3))
    records[:, 2] = np.where(source.random(4000) < 0.8, records[:, 1], records[:, 2])
    card = card_of([[0] * classes])

    def surprise(terms):
        codes = {"age": records[:, 0], "sex": records[:, 1]}
        scores = ScoreCard((*card.terms, *terms)).score(codes, len(records))
        probabilities = to_probabilities(scores)[np.arange(len(records)), records[:, 2]]
        return -np.log(np.maximum(probabilities, 1) / UNIT).mean()

    table = Records(records, task)
    found = refine(Run(table, rng=rng), task, card, rounds=3, budget=Budget.seeded(5))
    assert found[0].axis.column == "sex"
    assert surprise([one.term for one in found]) < surprise([]) - 0.3


@pytest.mark.parametrize("classes", [2, 3])
def test_noise_alone_teaches_little(classes):
    """Steps are shortened where noise is large: on average by more than half of the longest."""
    task, sizes = task_of(classes), []
    for seed in range(20):
        run = Run(Records([], task), rng=seeded(seed))
        (one,) = refine(run, task, card_of([[0] * classes]), rounds=1, budget=Budget.seeded(1))
        sizes.append(np.abs(one.term.scores[:, -1]).mean())
    assert np.mean(sizes) < STEP
    careless = np.clip(np.abs(one.sums[0]) * STEP // np.maximum(one.sums[1], 1), 0, 2 * STEP)
    assert careless.max() == 2 * STEP  # without doubt, steps are as long as they may be
