"""Growing a tree: the exact privacy loss of whole trees, and twins that lose too much."""

from dataclasses import replace
from fractions import Fraction
from math import inf, log

import numpy as np
import pyarrow as pa
import pytest

from choice_distribution import choice_distribution
from dpublish.core import run as mechanisms
from dpublish.core.run import Run
from dpublish.data.schema import Schema, column
from dpublish.data.sources import open_table
from dpublish.mechanisms.noise import add_geometric
from dpublish.mechanisms.selection import select
from dpublish.methods.trees import growth as tree_growth
from dpublish.methods.trees.growth import Plan, goes_on, grow
from dpublish.methods.trees.splits import Room, make_score, score_splits
from dpublish.privacy.budget import Budget
from dpublish.randomness import plain_generator, seeded
from dpublish.testing import frequency_p_value

SCHEMA = Schema(
    (
        column("age", "integer", bounds=[0, 3]),
        column("work", "category", values=["a", "b", "c"]),
        column("sex", "category", values=["F", "M"]),
        column("class", "category", values=["no", "yes"]),
    )
)
EPSILON = 8


def make_plan(depth=2, score="max", staged=False, max_records=None):
    axes = tuple(SCHEMA[name].axis() for name in SCHEMA.names[:-1])
    return Plan(axes, "class", 2, depth, make_score(score, max_records), staged)


def make_table(records):
    columns = {
        "age": [r[0] for r in records],
        "work": ["abc"[r[1]] for r in records],
        "sex": ["FM"[r[2]] for r in records],
        "class": [("no", "yes")[r[3]] for r in records],
    }
    types = {"age": pa.int64()}
    return open_table(
        pa.table({k: pa.array(v, types.get(k, pa.string())) for k, v in columns.items()}), SCHEMA
    )


def grow_tree(records, plan, *, budget, seed=1):
    return grow(Run(make_table(records), rng=seeded(seed)), plan, budget=budget)


class Diverged(Exception):
    """The same published values led elsewhere: this transcript is impossible here."""


class Transcript:
    """Stands in for both mechanisms: records what they publish, or replays it elsewhere."""

    def __init__(self, played=None):
        self.played = played
        self.calls = []

    def _answer(self, call, draw):
        index = len(self.calls)
        if self.played is None:
            output = draw()
        else:
            if index == len(self.played.calls) or self.played.calls[index][0] != call:
                raise Diverged
            output = self.played.calls[index][1]
        return output

    def add_geometric(self, counts, *, sensitivity, budget, rng):
        rate = budget.epsilon / sensitivity
        draw = lambda: add_geometric(counts, sensitivity=sensitivity, budget=budget, rng=rng)  # noqa: E731
        output = self._answer(("noise", rate, counts.shape), draw)
        likelihood = -float(rate) * float(np.abs(output - counts).sum())
        self.calls.append((("noise", rate, counts.shape), output, likelihood))
        return output

    def select(self, scores, *, sensitivity_range, budget, rng, **_):
        rate = budget.epsilon / sensitivity_range
        draw = lambda: select(scores, sensitivity_range=sensitivity_range, budget=budget, rng=rng)  # noqa: E731
        output = self._answer(("choice", rate, scores.shape), draw)
        self.calls.append(
            (
                ("choice", rate, scores.shape),
                output,
                log(choice_distribution(scores, float(rate))[output]),
            )
        )
        return output

    def grow(self, records, plan, seed, monkeypatch):
        with monkeypatch.context() as patch:
            patch.setattr(mechanisms, "add_geometric", self.add_geometric)
            patch.setattr(mechanisms, "select", self.select)
            grow_tree(records, plan, budget=Budget.seeded(EPSILON), seed=seed)
        if self.played is not None and len(self.calls) != len(self.played.calls):
            raise Diverged
        return sum(likelihood for _, _, likelihood in self.calls)


def loss(records, extra, plan, seed, monkeypatch):
    """Log ratio of the exact likelihoods of one published tree, with and without `extra`."""
    here = Transcript()
    likelihood = here.grow(records, plan, seed, monkeypatch)
    try:
        return abs(likelihood - Transcript(here).grow([*records, extra], plan, seed, monkeypatch))
    except Diverged:
        return inf


def random_records(seed, size):
    draws = plain_generator(seed).integers(0, [4, 3, 2, 2], size=(size + 1, 4)).tolist()
    return draws[:-1], draws[-1]


def worst_loss(plan, monkeypatch, runs=40, sizes=(0, 3, 20, 60)):
    losses = []
    for seed in range(runs):
        records, extra = random_records(seed, sizes[seed % len(sizes)])
        losses.append(loss(records, extra, plan, seed, monkeypatch))
    return max(losses)


PLANS = [
    make_plan(1),
    make_plan(2),
    make_plan(3),
    make_plan(2, "gini"),
    make_plan(2, "entropy", max_records=30),
    make_plan(2, staged=True),
]


@pytest.mark.parametrize("plan", PLANS, ids=["1", "2", "3", "gini", "entropy", "staged"])
def test_no_tree_tells_neighbors_apart_by_more_than_the_budget(plan, monkeypatch):
    found = worst_loss(plan, monkeypatch)
    assert found <= EPSILON + 1e-9
    assert found > EPSILON / 4  # the trees are not so noisy that nothing was tested


def test_a_record_in_an_otherwise_empty_table_costs_the_whole_budget(monkeypatch):
    losses = [loss([], (0, 0, 0, 1), make_plan(2), seed, monkeypatch) for seed in range(20)]
    assert max(losses) == pytest.approx(EPSILON)


def test_the_audit_notices_choices_that_forget_the_range(monkeypatch):
    plan = make_plan(2)
    careless = replace(plan, score=replace(plan.score, sensitivity_range=Fraction(1, 40)))
    losses = [
        loss([(0, 0, 0, 0)] * 12 + [(1, 0, 0, 1)] * 12, (1, 0, 0, 1), careless, seed, monkeypatch)
        for seed in range(40)
    ]
    assert max([*losses, worst_loss(careless, monkeypatch)]) > EPSILON


def test_the_audit_notices_leaves_that_spend_what_was_spent_above(monkeypatch):
    def generous(budget, **parts):
        return {name: Budget.seeded(2 * EPSILON) for name, nodes in parts.items() if nodes}

    monkeypatch.setattr(tree_growth, "_part", generous)
    assert worst_loss(make_plan(2), monkeypatch) > EPSILON


def test_the_audit_notices_a_tree_that_stops_when_purity_stops_improving(monkeypatch):
    """The papers' rule is a test on exact counts that no one pays for."""

    def improves(node, growth, share):
        splits = node.room.splits
        best = max(
            int(score_splits(many, node.counts[name], make_score("max")).max())
            for name, many in splits.items()
        )
        return best > node.classes.max()

    records = [(age, 0, 0, 0) for age in range(4)] * 10  # one class only: nothing to improve
    assert loss(records, (3, 0, 0, 0), make_plan(1), 5, monkeypatch) <= EPSILON
    assert loss(records, (3, 2, 0, 1), make_plan(1), 5, monkeypatch) <= EPSILON
    monkeypatch.setattr(tree_growth, "_goes_on", improves)
    assert loss(records, (3, 2, 0, 1), make_plan(1), 5, monkeypatch) == inf


@pytest.mark.parametrize("plan", PLANS, ids=["1", "2", "3", "gini", "entropy", "staged"])
@pytest.mark.parametrize("size", [0, 1, 200])
def test_every_budget_is_used_and_the_tree_of_budgets_costs_the_budget(plan, size):
    budget = Budget.seeded("1.5")
    growth = grow_tree(random_records(1, size)[0], plan, budget=budget)
    assert all(leaf.is_used for leaf in budget.account())
    assert budget.cost() == budget.epsilon
    leaves = set(range(len(growth.parents))) - set(growth.branches)
    assert leaves == set(growth.counts)


@pytest.mark.parametrize("plan", PLANS, ids=["1", "2", "3", "gini", "entropy", "staged"])
def test_every_path_from_the_root_to_a_leaf_costs_the_budget(plan, monkeypatch):
    epsilon = Fraction(EPSILON)
    share, rates = plan.share(epsilon), plan.count_rates(epsilon)
    for depth, rate in enumerate(rates):
        sizes = min(depth + 1, plan.depth)  # at full depth no node needs the size
        assert sizes * share + depth * plan.choice_weight * share + rate == epsilon
    transcript = Transcript()
    transcript.grow(random_records(3, 150)[0], plan, 3, monkeypatch)
    paid = {rate for (kind, rate, shape), _, _ in transcript.calls if kind == "noise"}
    assert paid <= {share, *rates}


def test_the_first_split_is_chosen_with_the_probabilities_of_the_proof():
    plan = make_plan(1)
    records = [
        [*r[:3], int(r[0] >= 2)] if i % 3 else r for i, r in enumerate(random_records(2, 60)[0])
    ]
    epsilon = Fraction(2)
    run = Run(make_table(records), rng=seeded(11))
    root = tree_growth._root(run, plan)
    splits = [split for many in root.room.splits.values() for split in many]
    scores = np.concatenate(
        [score_splits(many, root.counts[c], plan.score) for c, many in root.room.splits.items()]
    )
    distribution = choice_distribution(scores, float(plan.share(epsilon)))
    drawn = []
    for _ in range(800):
        branches = tree_growth.choose(run, root, plan, budget=Budget.seeded(plan.share(epsilon)))
        drawn.append(splits.index(branches))
    assert frequency_p_value(drawn, dict(enumerate(distribution))) > 1e-3
    doubled = choice_distribution(scores, 2 * float(plan.share(epsilon)))
    assert frequency_p_value(drawn, dict(enumerate(doubled))) < 1e-3


def test_a_category_is_split_once_and_numbers_until_one_leaf_is_left():
    room = Room(make_plan().axes)
    assert {name: len(many) for name, many in room.splits.items()} == {
        "age": 3,
        "work": 1,
        "sex": 1,
    }
    low, high = room.below(room.splits["age"][0])
    assert "age" not in low.splits
    assert [split.starts for split in high.splits["age"]] == [(0, 2), (0, 3)]
    for child in room.below(room.splits["work"][0]):
        assert set(child.splits) == {"age", "sex"}


@pytest.mark.parametrize("size", [-5, 0])
def test_no_node_goes_on_without_records_or_splits(size):
    room = Room(make_plan().axes)
    assert not goes_on(room, size, 2, Fraction(10**6))
    assert not goes_on(Room(()), 10**9, 2, Fraction(1))
    assert goes_on(room, 10**9, 2, Fraction(1))


def test_the_least_size_that_goes_on_is_exact():
    room = Room(make_plan().axes)  # 2, 3 and 2 branches: 7 / 3 on average
    share = Fraction(1, 10)
    least = next(size for size in range(1000) if goes_on(room, size, 2, share))
    assert least == 66  # 20 * sqrt(2) * 7 / 3 = 65.997


def test_counting_in_several_passes_gives_the_same_tree(monkeypatch):
    def publish():
        records = random_records(3, 150)[0]
        return grow_tree(records, make_plan(3), budget=Budget.seeded(50), seed=4)

    once = publish()
    assert len(once.branches) > 4
    monkeypatch.setattr(tree_growth, "MAX_CELLS", 40)
    again = publish()
    assert (once.branches, once.sizes) == (again.branches, again.sizes)
    assert all((once.counts[leaf] == again.counts[leaf]).all() for leaf in once.counts)


def test_with_ample_budget_the_tree_finds_the_rule_that_made_the_classes():
    records = [[*r[:3], int(r[0] >= 2 and r[1] == 1)] for r in random_records(9, 400)[0]]
    growth = grow_tree(records, make_plan(2), budget=Budget.seeded(10_000))
    root = growth.branches[0]
    assert (root.column, root.starts) in {("age", (0, 2)), ("work", (0, 1, 2))}
    wrong = sum(min(counts) for counts in growth.counts.values())
    assert wrong <= 0  # noise at this budget is 0 but for one in e^1000
