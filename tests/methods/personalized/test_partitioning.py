"""Partitioning against its proof: exact loss of each level, plans, budgets and answers."""

from fractions import Fraction

import numpy as np
import pyarrow as pa
import pytest

from dpublish.core import run as noisy
from dpublish.data.sources import open_table
from dpublish.errors import InvalidParameter, InvalidQuery
from dpublish.methods.histogram.histogram import Histogram
from dpublish.methods.personalized.groups import method as group_release
from dpublish.methods.personalized.groups.method import GroupMethod
from dpublish.methods.personalized.partitioning import Partitioning
from dpublish.privacy.budget import Budget
from dpublish.randomness import plain_generator, seeded
from methods.personalized.group_distribution import (
    INNER,
    SCHEMA,
    group_loss,
    losses,
    table_of,
    watch,
)
from transcript import privacy_loss

LEVELS = (Fraction(1, 5), Fraction(1, 2), Fraction(1))
SIZES = (600, 700, 800)
ONE = Fraction(1)


def partitioning(**settings):
    return Partitioning(inner=INNER, preference="own", levels=LEVELS, **settings)


def weighted(**settings):
    return partitioning(combine="weighted", exchangeable=True, **settings)


FRAMES = [
    partitioning(sizes=SIZES),
    partitioning(sizes=SIZES, objective="privacy", groups=2),
    partitioning(sizes=SIZES, objective="privacy", groups=3),
    weighted(sizes=SIZES, within="least"),
    weighted(sizes=SIZES, within="draw", groups=1),
    weighted(sizes=SIZES, within="draw", person_variance=Fraction(0)),
    weighted(sizes=SIZES, objective="privacy"),
    weighted(size_share=Fraction(0)),
]


@pytest.mark.parametrize("method", FRAMES)
@pytest.mark.parametrize("epsilon", [ONE, Fraction(1, 4)])
@pytest.mark.parametrize("counts", [(0, 0, 0), (2, 1, 3), (0, 4, 0)])
def test_a_record_loses_what_its_level_pays_and_no_more(method, epsilon, counts, rng, monkeypatch):
    paid = method.spending(epsilon)
    found = losses(method, counts, epsilon, rng, monkeypatch)
    for level in LEVELS:
        assert found[level] <= float(paid[level]) + 1e-9
        assert found[level] >= 0.95 * float(paid[level])
        assert paid[level] <= level * epsilon


@pytest.mark.parametrize("within", ["least", "draw"])
def test_if_values_are_exchanged_each_step_costs_half(within, rng, monkeypatch):
    method = weighted(mode="values-only", least_size=0, within=within)
    counts = (3, 2, 4)
    table = table_of(method, counts)

    seen = watch(method, table, ONE, rng, monkeypatch)
    for position, level in enumerate(LEVELS):
        fewer = [n - (b == position) for b, n in enumerate(counts)]
        before, after = (dict(zip(LEVELS, each, strict=True)) for each in (fewer, counts))
        assert 2 * group_loss(seen, seen, before, after) <= float(level) + 1e-9


class PresentSizes(Partitioning):
    """Broken: groups are formed from the records present."""

    def release(self, table, **further):
        counted = table.sum(group_release.level_counts(self, table.schema))
        object.__setattr__(self, "sizes", tuple(300 * int(n) for n in counted))
        return super().release(table, **{**further, "budget": self.budget(ONE)})


def test_groups_of_the_records_present_are_caught(rng, monkeypatch):
    twin = PresentSizes(
        inner=INNER,
        preference="own",
        levels=LEVELS,
        sizes=SIZES,
        combine="weighted",
        exchangeable=True,
        within="least",
    )
    found = losses(twin, (2, 2, 2), ONE, rng, monkeypatch)
    assert found[LEVELS[1]] > 10 * float(LEVELS[1])


def test_the_minimum_over_the_records_present_is_caught(rng, monkeypatch):
    # One group of all people; levels without a record do not hold it back.
    twin = PresentSizes(inner=INNER, preference="own", levels=LEVELS, sizes=SIZES)
    found = losses(twin, (0, 0, 3), ONE, rng, monkeypatch)
    assert found[LEVELS[0]] > 2 * float(LEVELS[0])


def test_a_drawing_rate_in_proportion_to_levels_is_caught(rng, monkeypatch):
    method = weighted(sizes=SIZES, within="draw", groups=1, person_variance=Fraction(0))
    monkeypatch.setattr(group_release, "sampling_rate", lambda paid, most: paid / most)
    found = losses(method, (2, 1, 3), ONE, rng, monkeypatch)
    assert any(found[level] > 1.1 * float(level) for level in LEVELS)


@pytest.mark.parametrize(
    "settings", [{}, {"objective": "privacy"}, {"objective": "privacy", "groups": 2}]
)
def test_measured_sizes_cost_their_share_too(settings, monkeypatch):
    method = weighted(least_size=0, within="least", **settings)
    modules = [noisy]
    counts = (2, 1, 3)
    for position, level in enumerate(LEVELS):
        more = table_of(method, [n + (b == position) for b, n in enumerate(counts)])
        found = []
        for seed in range(25):
            found.append(
                privacy_loss(
                    lambda table, seed=seed: method.release(
                        table, budget=method.budget(ONE), rng=seeded(seed)
                    ),
                    table_of(method, counts),
                    more,
                    modules,
                    monkeypatch,
                )
            )
        assert max(found) <= float(level) + 1e-9
        assert max(found) >= float(level) / 20  # the size alone
        if position == 0:  # the level that others have to follow
            assert max(found) >= 0.95 * float(level)


def test_sizes_that_are_counted_but_not_paid_for_are_caught(monkeypatch):
    method = weighted(least_size=0, within="least")

    def give_away(run, method, *, budget):
        measured(run, method, budget=budget)
        return tuple(1000.0 * run.sum(group_release.level_counts(method, run.schema)))

    measured = group_release._measure_sizes
    monkeypatch.setattr(group_release, "_measure_sizes", give_away)
    here, there = table_of(method, (0, 3, 0)), table_of(method, (1, 3, 0))
    found = privacy_loss(
        lambda table: method.release(table, budget=method.budget(ONE), rng=seeded(1)),
        here,
        there,
        [noisy],
        monkeypatch,
    )
    assert found > 1


EVERY = [
    *FRAMES,
    weighted(),
    weighted(mode="values-only"),
    partitioning(),
    partitioning(mode="values-only"),
    partitioning(objective="privacy", groups=2),
]


@pytest.mark.parametrize("method", EVERY)
@pytest.mark.parametrize("counts", [(0, 0, 0), (0, 1, 0), (5, 0, 2)])
def test_the_whole_budget_is_spent_and_the_receipt_says_it_by_level(method, counts, rng):
    budget = method.budget(Fraction(1, 2))
    release = method.release(table_of(method, counts), budget=budget, rng=rng)
    assert budget.cost() == budget.epsilon == release.receipt.epsilon
    assert all(share.is_used for share in budget.account())
    assert dict(release.receipt.personal) == method.spending(Fraction(1, 2))
    assert release.expected_error()["groups"] == len(release.parts)


@pytest.mark.parametrize("method", EVERY)
def test_the_error_predicted_falls_with_epsilon(method):
    schema = method.prepare(SCHEMA)
    figures = [
        method.expected_error(schema, 5000, epsilon).figures["count_error"]
        for epsilon in (Fraction(1, 10), Fraction(1, 3), ONE)
    ]
    assert figures[0] > figures[1] > figures[2]


def test_one_group_is_best_for_a_sum():
    sizes = (600, 700, 80_000)
    assert len(partitioning(sizes=sizes).plan(ONE, sizes)) == 1
    more = partitioning(sizes=sizes, objective="privacy", groups=3)
    assert len(more.plan(ONE, sizes)) == 3
    schema = more.prepare(SCHEMA)
    errors = [
        method.expected_error(schema, None, ONE).figures["count_error"]
        for method in (partitioning(sizes=sizes), more)
    ]
    assert errors[0] < errors[1]


def test_a_sum_leaves_no_one_out_and_measures_no_sizes():
    method = partitioning()
    assert not method.measures_sizes
    assert method.spending(ONE) == dict.fromkeys(LEVELS, LEVELS[0])
    (group,) = method.plan(ONE, method.public_sizes())
    assert group.members == (0, 1, 2)


def test_levels_without_people_do_not_hold_a_group_back():
    method = partitioning(sizes=(0, 700, 800))
    assert method.spending(ONE) == dict(zip(LEVELS, (0, LEVELS[1], LEVELS[1]), strict=True))


def test_light_groups_are_left_out_and_pay_nothing():
    method = Partitioning(
        inner=INNER,
        preference="own",
        levels=(Fraction(1, 1000), ONE),
        sizes=(1000, 100_000),
        combine="weighted",
        exchangeable=True,
        within="least",
        person_variance=Fraction(0),
    )
    assert method.spending(ONE) == {Fraction(1, 1000): 0, ONE: 1}


def test_averages_need_the_owners_word():
    with pytest.raises(InvalidParameter, match="--exchangeable"):
        partitioning(combine="weighted")


@pytest.mark.parametrize(
    ("settings", "complaint"),
    [
        ({"size_share": ONE}, "size_share"),
        ({"least_size": -1}, "least_size"),
        ({"groups": 0}, "groups"),
        ({"noise": Fraction(0)}, "noise"),
        ({"within": "draw"}, "drawn only"),
        ({"inner": partitioning()}, "ordinary"),
    ],
)
def test_settings_that_make_no_sense_are_refused(settings, complaint):
    with pytest.raises(InvalidParameter, match=complaint):
        Partitioning(**{"inner": INNER, "preference": "own", "levels": LEVELS, **settings})


def test_a_budget_of_other_amounts_is_refused_before_rows_are_read(rng):
    method = weighted(sizes=SIZES)
    with pytest.raises(InvalidParameter):
        method.release(table_of(method, (1, 1, 1)), budget=Budget.seeded(2), rng=rng)


def test_what_inner_refuses_is_refused_before_the_ledger_pays():
    method = Partitioning(inner=Histogram(columns=("age",)), preference="own", levels=LEVELS)
    with pytest.raises(InvalidParameter, match="age"):
        method.expected_error(method.prepare(SCHEMA), None, ONE)


SPEC_LEVELS = (Fraction(1, 100), Fraction(1, 5), ONE)
SPEC_SIZES = (500, 3500, 6000)


def spec_error(share, **settings):
    method = Partitioning(
        inner=INNER, preference="own", levels=SPEC_LEVELS, sizes=SPEC_SIZES, **settings
    )
    errors = []
    for seed in range(150):
        if seed % 10 == 0:
            table = open_table(shuffled(share, seed), method.prepare(SCHEMA))
        release = method.release(table, budget=method.budget(ONE), rng=seeded(seed))
        errors.append(release.count("sex = 'Female'").value - share * 10_000)
    predicted = method.expected_error(method.prepare(SCHEMA), None, ONE).figures["count_error"]
    return np.sqrt(np.mean(np.square(errors))), predicted


def test_sizes_that_cannot_be_measured_are_refused_before_the_ledger_pays():
    method = weighted(size_share=Fraction(1, 1000))
    schema = method.prepare(SCHEMA)
    small = Fraction(1, 2**36)
    weighted(size_share=Fraction(0)).expected_error(schema, None, small)
    with pytest.raises(InvalidParameter, match="rate"):
        method.expected_error(schema, None, small)


def shuffled(share, seed):
    own = np.repeat([float(level) for level in SPEC_LEVELS], SPEC_SIZES)
    women = np.arange(10_000) < share * 10_000
    sex = np.where(plain_generator(seed).permutation(women), "Female", "Male")
    return pa.table({"sex": sex, "own": own})


def test_the_spec_example_is_met_and_predicted():
    # 10,000 people, 5, 35 and 60 % at 0.01, 0.2 and 1: minimum and sum 141, weighted 10.
    error, predicted = spec_error(0.1)
    assert predicted == pytest.approx(141.4, rel=0.001)
    assert error == pytest.approx(141, rel=0.25)
    tenth = {"combine": "weighted", "exchangeable": True, "person_variance": Fraction(9, 100)}
    error, predicted = spec_error(0.1, **tenth)
    assert predicted == pytest.approx(10, rel=0.1)
    assert error == pytest.approx(predicted, rel=0.25)


def test_counts_of_people_drawn_are_scaled_up(rng):
    method = Partitioning(
        inner=INNER,
        preference="own",
        levels=SPEC_LEVELS,
        sizes=SPEC_SIZES,
        combine="weighted",
        exchangeable=True,
        groups=1,
        person_variance=Fraction(1, 1000),
    )
    (group,) = method.plan(ONE, SPEC_SIZES)
    assert group.drawn < 0.95 * group.size
    release = method.release(
        open_table(shuffled(0.3, 1), method.prepare(SCHEMA)), budget=method.budget(ONE), rng=rng
    )
    assert release.count("sex = 'Female'").value == pytest.approx(3000, abs=250)


def test_without_sizes_averages_do_not_count(rng):
    method = weighted(size_share=Fraction(0))
    release = method.release(table_of(method, (3, 3, 3)), budget=method.budget(ONE), rng=rng)
    with pytest.raises(InvalidQuery, match="not known"):
        release.count()


def test_a_measured_size_that_is_all_noise_counts_as_0():
    method = weighted()
    believed = method.believed((20.0, -40.0, 5000.0), ONE)
    assert believed == (0.0, 0.0, 5000.0)
    assert method.believed((20.0, -40.0, 3.0), ONE) == (20.0, 0.0, 3.0)


def test_progress_tells_groups_only(rng):
    method = partitioning(sizes=SIZES, objective="privacy", groups=2)
    told = []
    method.release(
        table_of(method, (1, 1, 1)),
        budget=method.budget(ONE),
        rng=rng,
        progress=lambda *step: told.append(step),
    )
    assert told == [(1, 2, "groups"), (2, 2, "groups")]


def test_groups_partition_the_levels_whatever_the_sizes():
    generator = plain_generator(3)
    method = weighted()
    assert isinstance(method, GroupMethod)
    for _ in range(50):
        sizes = tuple(generator.normal(300, 400, 3).tolist())
        members = [position for group in method.plan(ONE, sizes) for position in group.members]
        assert len(members) == len(set(members))
        assert members
