"""Specialization: its score, its distribution and loss, its account, and what it finds."""

from collections import Counter
from fractions import Fraction
from itertools import product
from math import prod

import numpy as np
import pyarrow as pa
import pytest

from choice_distribution import choice_distribution
from dpublish.data.schema import Schema, column
from dpublish.data.sources import open_table
from dpublish.errors import InvalidParameter
from dpublish.methods.diffgen.cuts import Cuts, inner_nodes, most_cells
from dpublish.methods.diffgen.diffgen import MAX_DENSE_CELLS, DiffGen, score_nodes
from dpublish.privacy.budget import Budget
from dpublish.randomness import plain_generator, seeded
from dpublish.testing import frequency_p_value, privacy_loss

WORK = column(
    "work", "category", taxonomy={"Paid": ["State", "Private"], "Unpaid": ["Carer", "None"]}
)
SEX = column("sex", "category", values=["F", "M"])
RISK = column("risk", "category", values=["low", "high"])
SCHEMA = Schema((WORK, SEX, RISK))
LABELS = {"work": ["State", "Private", "Carer", "None"], "sex": ["F", "M"], "risk": ["low", "high"]}
CELLS = list(product(range(4), range(2), range(2)))


def table(counts):
    """Records by (work, sex, risk), so many of each cell."""
    codes = [cell for cell, count in zip(CELLS, counts, strict=True) for _ in range(count)]
    columns = {
        name: pa.array([LABELS[name][code[index]] for code in codes], pa.string())
        for index, name in enumerate(LABELS)
    }
    return open_table(pa.table(columns), SCHEMA)


def leaves(counts):
    cube = np.array(counts).reshape(4, 2, 2)
    return {"work": cube.sum(axis=1), "sex": cube.sum(axis=0)}


def gain(nodes, by_leaf):
    """The gain form of the score, whose range sensitivity is 2."""
    before = [by_leaf[v.column][v.start : v.stop].sum(axis=0).max() for v in nodes]
    return score_nodes(nodes, by_leaf) - np.array(before)


def distribution(counts, rate, steps, score=score_nodes):
    """Exact probabilities of every sequence of choices."""
    by_leaf = leaves(counts)
    found = {(): (1.0, Cuts.of_roots([WORK, SEX]))}
    for _ in range(steps):
        longer = {}
        for path, (probability, cuts) in found.items():
            probabilities = choice_distribution(score(cuts.candidates, by_leaf).tolist(), rate)
            for index, step_probability in enumerate(probabilities):
                longer[*path, cuts.candidates[index][:3]] = (
                    probability * step_probability,
                    cuts.refine(index),
                )
        found = longer
    return {path: probability for path, (probability, _) in found.items()}


def neighbors(seed=3, count=40):
    """Random small tables, each with one more record in one cell."""
    rng = plain_generator(seed)
    for _ in range(count):
        counts = rng.integers(0, 6, len(CELLS)).tolist()
        for cell in range(len(CELLS)):
            yield counts, [c + (index == cell) for index, c in enumerate(counts)]


EVERY_NODE = tuple(inner_nodes(WORK) + inner_nodes(SEX))


def test_a_record_raises_every_score_by_one_or_nothing():
    seen, gains = set(), set()
    for before, after in neighbors(count=100):
        here, there = leaves(before), leaves(after)
        change = score_nodes(EVERY_NODE, there) - score_nodes(EVERY_NODE, here)
        seen |= set(change.tolist())
        other = gain(EVERY_NODE, there) - gain(EVERY_NODE, here)
        gains |= set(other.tolist())
    assert seen == {0, 1}
    assert gains == {-1, 0, 1}  # the gain form needs twice the range


def worst(rate, steps, score=score_nodes):
    """Largest loss of the choices alone, over many neighbors."""
    return max(
        privacy_loss(
            distribution(before, rate, steps, score), distribution(after, rate, steps, score)
        )
        for before, after in neighbors()
    )


@pytest.mark.parametrize("steps", [1, 2])
def test_choices_cost_their_share_and_not_much_less(steps):
    # The counts add exactly their own share: noise of rate r loses r on one cell's change.
    epsilon = 1.0
    share = epsilon / 2 / steps
    loss = worst(share, steps)
    assert loss <= epsilon / 2 + 1e-9
    assert loss > 0.9 * epsilon / 2


@pytest.mark.parametrize("steps", [1, 2])
def test_half_the_range_would_be_caught(steps):
    assert worst(2 * 0.5 / steps, steps) > 0.5 + 1e-6


def test_the_gain_form_with_the_same_range_would_be_caught():
    cuts = Cuts.of_roots([WORK, SEX]).refine(0)
    assert [node.column for node in cuts.candidates] == ["sex", "work", "work"]
    # A man in a state job with a high risk: most of the paid have one, but not most in state
    # jobs; most people have a low risk, but not most men.
    before = np.zeros((4, 2, 2), dtype=np.int64)
    before[0, 0, 0], before[1, 1, 1], before[2, 0, 0] = 5, 6, 20
    after = before.copy()
    after[0, 1, 1] += 1

    def loss(score):
        here, there = (score(cuts.candidates, leaves(counts)) for counts in (before, after))
        distributions = [
            dict(enumerate(choice_distribution(scores.tolist(), 0.5))) for scores in (here, there)
        ]
        return privacy_loss(*distributions)

    assert loss(score_nodes) <= 0.5 + 1e-9
    assert loss(gain) > 0.9


def test_cells_are_chosen_with_the_probabilities_of_the_proof():
    counts = [1, 0, 0, 0, 0, 1, 2, 0, 2, 0, 0, 0, 0, 1, 0, 1]
    private = table(counts)
    drawn = Counter()
    for seed in range(500):
        release = DiffGen(target="risk", steps=2).release(
            private, budget=Budget.seeded(1), rng=seeded(seed)
        )
        drawn[tuple((a.column, *a.leaf_starts.tolist()) for a in release.predictors)] += 1
    samples = list(drawn.elements())
    assert len(drawn) == 3
    assert frequency_p_value(samples, by_cuts(distribution(counts, 0.25, 2))) > 1e-3
    assert frequency_p_value(samples, by_cuts(distribution(counts, 0.5, 2))) < 1e-3


def by_cuts(probabilities):
    """Add up the probabilities of sequences that lead to the same cuts."""
    found = Counter()
    for path, probability in probabilities.items():
        cuts = Cuts.of_roots([WORK, SEX])
        for step in path:
            cuts = cuts.refine([node[:3] for node in cuts.candidates].index(step))
        axes = cuts.axes([WORK, SEX])
        found[tuple((axis.column, *axis.leaf_starts.tolist()) for axis in axes)] += probability
    return found


def test_noise_has_the_rate_that_is_published():
    nothing = table([0] * len(CELLS))
    drawn = []
    for seed in range(150):
        release = DiffGen(target="risk", steps=1).release(
            nothing, budget=Budget.seeded(1), rng=seeded(seed)
        )
        assert release.noise_rate == Fraction(1, 2)
        drawn.extend(release.counts.tolist())
    decay = np.exp(-0.5)
    ratio = np.var(drawn) * (1 - decay) ** 2 / (2 * decay)
    assert 0.8 < ratio < 1.25
    assert not 0.8 < ratio * 4 < 1.25  # half the rate would be noticed


@pytest.mark.parametrize("threshold", [None, 1])
def test_counts_are_right_when_noise_is_negligible(threshold):
    counts = [3, 0, 1, 2, 0, 1, 2, 2, 5, 1, 0, 0, 1, 3, 0, 1]
    release = DiffGen(target="risk", steps=4, threshold=threshold).release(
        table(counts), budget=Budget.seeded(400), rng=seeded(1)
    )
    assert [axis.size for axis in release.axes] == [4, 2, 2]  # all four nodes are used up
    found = np.zeros(16, dtype=np.int64)
    found[release.cells] = release.counts
    assert found.tolist() == counts


def test_steps_that_cannot_be_made_are_paid_out_to_the_counts():
    # The work column has three inner nodes and sex has one: four steps of nine can be made.
    budget = Budget.seeded("0.9")
    release = DiffGen(target="risk", steps=9).release(table([1] * 16), budget=budget, rng=seeded(1))
    shares = dict(release.receipt.shares)
    assert len(shares) == 5
    assert shares["release/step-4"] == Fraction(1, 20)
    assert shares["release/counts"] == release.noise_rate == Fraction(9, 10) - 4 * Fraction(1, 20)
    assert budget.cost() == budget.epsilon == Fraction(9, 10)
    assert all(leaf.is_used for leaf in budget.account())


def test_predictors_of_one_value_leave_all_to_the_counts():
    one = Schema((column("sex", "category", values=["F"]), RISK))
    rows = pa.table({"sex": ["F"] * 9, "risk": ["high"] * 9})
    release = DiffGen(target="risk").release(
        open_table(rows, one), budget=Budget.seeded(5), rng=seeded(1)
    )
    assert release.receipt.shares == (("release/counts", Fraction(5)),)
    assert release.predictors == ()
    assert release.predict({"sex": ["F"]}).to_pylist() == ["high"]


def test_a_clear_rule_is_learned():
    rng = plain_generator(2)
    work, sex = rng.integers(0, 4, 4000), rng.integers(0, 2, 4000)
    rows = pa.table(
        {
            "work": [LABELS["work"][code] for code in work],
            "sex": [LABELS["sex"][code] for code in sex],
            "risk": [LABELS["risk"][code] for code in (work >= 2).astype(int)],
        }
    )
    release = DiffGen(target="risk", steps=2).release(
        open_table(rows, SCHEMA), budget=Budget.seeded(1), rng=seeded(4)
    )
    assert release.predict(rows).to_pylist() == rows["risk"].to_pylist()
    assert release.schema.names == ("work", "sex", "risk")


def wide_schema(columns=24):
    names = [f"c{number}" for number in range(columns)]
    values = [str(number) for number in range(8)]
    return Schema((*(column(n, "category", values=values) for n in names), RISK)), names


def test_many_cells_are_published_above_a_threshold():
    schema, names = wide_schema()
    rows = pa.table({**dict.fromkeys(names, ["0"] * 300), "risk": ["low"] * 300})
    release = DiffGen(target="risk", steps=8).release(
        open_table(rows, schema), budget=Budget.seeded(1), rng=seeded(1)
    )
    assert release.size == 2 * 8**8 > MAX_DENSE_CELLS
    assert release.threshold > 20
    assert release.counts.max() > 250
    few = DiffGen(target="risk", steps=2).release(
        open_table(rows, schema), budget=Budget.seeded(1), rng=seeded(1)
    )
    assert few.threshold is None


def test_more_cells_than_can_be_numbered_are_refused_before_anything_is_paid():
    schema, _ = wide_schema()
    method = DiffGen(target="risk", steps=21)
    with pytest.raises(InvalidParameter, match="take fewer steps"):
        method.expected_error(schema, None, Fraction(1))
    DiffGen(target="risk", steps=20).expected_error(schema, None, Fraction(1))
    with pytest.raises(InvalidParameter, match="empty cells"):
        DiffGen(target="risk", steps=10, threshold=1).expected_error(schema, None, Fraction(1))


def test_the_bound_on_cells_is_attained_or_above_for_every_sequence():
    columns = [WORK, SEX, column("age", "integer", bounds=[0, 9], branching=3)]
    for steps in range(1, 6):
        most = 0
        for seed in range(60):
            rng, cuts = plain_generator(seed), Cuts.of_roots(columns)
            for _ in range(steps):
                cuts = cuts.refine(int(rng.integers(len(cuts.candidates))))
            most = max(most, prod(len(starts) for starts in cuts.starts.values()))
        assert most <= most_cells(columns, steps) <= 2 * most


def test_names_that_two_cells_would_share_are_refused():
    twins = column("size", "ordinal", values=["a", "b", "a..b", "c"], branching=2)
    with pytest.raises(InvalidParameter, match=r"'a..b'; rename"):
        DiffGen(target="risk").expected_error(Schema((twins, RISK)), None, Fraction(1))
    taken = column("noisy_count", "category", values=["a", "b"])
    with pytest.raises(InvalidParameter, match="rename the columns"):
        DiffGen(target="risk").expected_error(Schema((taken, RISK)), None, Fraction(1))


@pytest.mark.parametrize(
    "settings",
    [
        {"steps": 0},
        {"steps": 101},
        {"tree_share": Fraction(1)},
        {"tree_share": "half"},
        {"threshold": 0},
        {"threshold": "often"},
    ],
    ids=str,
)
def test_settings_that_cannot_work_are_refused(settings):
    with pytest.raises(InvalidParameter):
        DiffGen(target="risk", **settings)


def test_the_forecast_names_its_figures_and_a_hint_relates_them_to_records():
    method = DiffGen(target="risk", steps=2)
    forecast = method.expected_error(SCHEMA, 1600, Fraction(1))
    assert forecast.figures["steps"] == 2
    assert forecast.figures["cells_at_most"] == 8
    assert forecast.figures["one_cell_95"] == 6
    assert forecast.figures["records_per_cell_at_least"] == 200
    assert forecast.figures["choice_shortfall_95"] > 0


def test_progress_tells_steps_only():
    seen = []
    DiffGen(target="risk", steps=2).release(
        table([1] * 16),
        budget=Budget.seeded(2),
        rng=seeded(1),
        progress=lambda *step: seen.append(step),
    )
    assert seen == [(1, 3, "cells"), (2, 3, "cells"), (3, 3, "counts")]
