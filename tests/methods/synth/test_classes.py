"""Classes of values: nested, never across what is stated apart, and free."""

from fractions import Fraction

import numpy as np
import pytest

from dpublish.accuracy.noise_distribution import noise_variance
from dpublish.data.schema import Schema, column
from dpublish.data.statements import Combination, KnownTotal
from dpublish.errors import InvalidParameter
from dpublish.methods.marginals.hierarchical import count_hierarchy
from dpublish.methods.marginals.noisy_marginal import BRANCHING, NoisyMarginal
from dpublish.methods.synth.classes import (
    JOINED_BELOW,
    ColumnClasses,
    class_counts,
    make_classes,
    masks_of,
)
from dpublish.methods.synth.synth import most_classes
from dpublish.randomness import plain_generator

RATE = Fraction(1, 10)
ORDERED = column("age", "integer", bounds=[0, 39], missing="category")
LISTED = column("town", "category", values=[f"t{i}" for i in range(30)], other="else")
TREE = column(
    "work",
    "category",
    taxonomy={
        "Paid": {"Public": ["State", "City"], "Private": ["Firm", "Own"]},
        "Unpaid": {"Home": ["Care", "House"], "Away": ["School", "Army"]},
    },
)
MANY = column("day", "integer", bounds=[0, 2_999], missing="category")
NAMES = column("name", "category", values=[f"n{i}" for i in range(2_500)], missing="category")
COLUMNS = (ORDERED, LISTED, TREE, MANY, NAMES)


def marginal_of(size, seed, scale=60.0, rate=RATE):
    rng = plain_generator(seed)
    counts = np.rint(rng.gamma(0.5, scale, size) + rng.laplace(0, 10, size)).astype(np.int64)
    return NoisyMarginal("identity", size, counts, rate)


def is_nested(classes):
    for coarse, fine in zip(classes.levels, classes.levels[1:], strict=False):
        above = {}
        for a, b in zip(fine.tolist(), coarse.tolist(), strict=True):
            if above.setdefault(a, b) != b:
                return False
    return True


def runs(level):
    return 1 + int((np.diff(level) != 0).sum())


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("one", COLUMNS, ids=[one.name for one in COLUMNS])
def test_classes_are_nested_and_grow_finer(one, seed):
    made = make_classes(one.axis(), marginal_of(one.size, seed), most=64)
    assert is_nested(made)
    assert [*made.sizes] == sorted(set(made.sizes))
    assert made.levels[0].size == one.size
    assert 0 <= made.joined < len(made.levels)


@pytest.mark.parametrize("most", [64, 12, 4])
@pytest.mark.parametrize("one", [MANY, NAMES], ids=["ordered", "listed"])
def test_columns_of_thousands_of_values_have_few_classes(one, most):
    for seed in range(3):
        made = make_classes(one.axis(), marginal_of(one.size, seed), most=most)
        assert made.sizes[-1] <= most + 1  # and the missing ones
        assert made.sizes[-1] >= most // 2


@pytest.mark.parametrize("one", [ORDERED, MANY], ids=["few", "many"])
@pytest.mark.parametrize("seed", range(4))
def test_classes_of_ordered_columns_are_runs_and_missing_values_are_alone(one, seed):
    made = make_classes(one.axis(), marginal_of(one.size, seed), most=64)
    assert len(made.levels) > 2
    for level, size in zip(made.levels, made.sizes, strict=True):
        assert runs(level) == size
        assert (level == level[-1]).sum() == 1  # missing


def test_what_stands_out_of_its_noise_is_not_joined():
    counts = np.full(40, 10_000)
    marginal = NoisyMarginal("identity", 41, np.array([*counts, 10]), RATE)
    made = make_classes(ORDERED.axis(), marginal, most=64)
    assert made.sizes[made.joined] == 41
    faint = NoisyMarginal("identity", 41, np.array([*counts // 1000, 10]), RATE)
    joined = make_classes(ORDERED.axis(), faint, most=64)
    level = joined.levels[joined.joined]
    lengths = np.bincount(level)[:-1]
    deviation = np.sqrt(noise_variance(RATE))
    # Each run is as long as it takes, and no longer: one value less would not stand out.
    assert np.all(10 * lengths >= JOINED_BELOW * deviation * np.sqrt(lengths) - 1e-9)
    shorter = lengths[:-1] - 1
    assert np.all(10 * shorter < JOINED_BELOW * deviation * np.sqrt(shorter) + 10)


def test_rare_categories_are_joined_into_one_rest():
    counts = np.array([5_000, 4_000, 3_000, *([1] * 28)])
    made = make_classes(LISTED.axis(), NoisyMarginal("identity", 31, counts, RATE), most=64)
    level = made.levels[made.joined]
    assert made.sizes[made.joined] == 4
    assert len(set(level[:3].tolist())) == 3
    assert len(set(level[3:].tolist())) == 1


def test_levels_of_a_taxonomy_are_used():
    counts = np.array([900, 800, 700, 600, 500, 400, 300, 200])
    made = make_classes(TREE.axis(), NoisyMarginal("identity", 8, counts, RATE), most=64)
    partitions = [tuple(np.unique(x, return_inverse=True)[1].tolist()) for x in made.levels]
    for groups in ([0, 0, 0, 0, 1, 1, 1, 1], [0, 0, 1, 1, 2, 2, 3, 3], [*range(8)]):
        assert any(_same_partition(groups, one) for one in partitions)
    for level in made.levels:  # none mixes the two branches of the top
        assert not {*level[:4].tolist()} & {*level[4:].tolist()}


def _same_partition(one, other):
    return len(set(zip(one, other, strict=True))) == len(set(one)) == len(set(other))


STATED = Schema(
    (ORDERED, LISTED, TREE, column("sex", "category", values=["F", "M"])),
    impossible=(
        Combination("age < 17 and sex = F"),
        Combination("town in {t3, t4, t20} and sex = M"),
        Combination("work in {State, Care} and sex = M"),
    ),
    totals=(KnownTotal("age >= 11 and age < 31", count=5),),
)


@pytest.mark.parametrize("scale", [60.0, 0.1])
@pytest.mark.parametrize("name", ["age", "town", "work"])
def test_no_class_of_any_level_crosses_a_mask(name, scale):
    one = STATED[name]
    masks = masks_of((*STATED.impossible, *STATED.totals), name)
    assert masks
    for seed in range(4):
        marginal = marginal_of(one.size, seed, scale)
        made = make_classes(one.axis(), marginal, most=8, kept_apart=masks)
        assert is_nested(made)
        for level in made.levels:
            for mask in masks:
                assert not {*level[mask].tolist()} & {*level[~mask].tolist()}
        free = make_classes(one.axis(), marginal, most=8)
        crossed = any({*x[m].tolist()} & {*x[~m].tolist()} for x in free.levels for m in masks)
        assert crossed  # masks are what keeps them apart


@pytest.mark.parametrize("one", COLUMNS, ids=[one.name for one in COLUMNS])
def test_classes_follow_from_the_released_marginal_alone(one):
    first, again, other = (
        make_classes(one.axis(), marginal_of(one.size, seed), most=16) for seed in (1, 1, 2)
    )
    assert [x.tolist() for x in first.levels] == [x.tolist() for x in again.levels]
    if one is not TREE:
        assert [x.tolist() for x in first.levels] != [x.tolist() for x in other.levels]


@pytest.mark.parametrize("one", COLUMNS, ids=[one.name for one in COLUMNS])
@pytest.mark.parametrize("counts", [0, -500, 10**12])
def test_any_noisy_numbers_make_classes(one, counts):
    units = np.full(one.size, counts)
    made = make_classes(one.axis(), NoisyMarginal("identity", one.size, units, RATE), most=16)
    assert is_nested(made)


def test_columns_of_one_value_have_one_class():
    one = column("x", "integer", bounds=[3, 3])
    made = make_classes(one.axis(), NoisyMarginal("identity", 1, np.array([7]), RATE), most=64)
    assert made.sizes == (1,)
    assert made.joined == 0


def test_a_tree_of_counts_gives_classes_too():
    tree = count_hierarchy(MANY.size, BRANCHING)
    units = np.full(tree.nodes, 40)
    marginal = NoisyMarginal("hierarchical", MANY.size, units, RATE)
    made = make_classes(MANY.axis(), marginal, most=32)
    assert is_nested(made)
    counts, variances = class_counts(marginal, made.levels[-1])
    assert counts.sum() == pytest.approx(marginal.bins.sum())
    assert np.all(variances > 0)
    assert np.all(np.isfinite(variances))


def test_counts_of_classes_add_up_with_their_variance():
    marginal = marginal_of(41, 3)
    classes = np.arange(41) // 5
    counts, variances = class_counts(marginal, classes)
    for cell in range(9):
        assert counts[cell] == marginal.units[classes == cell].sum()
        wanted = noise_variance(RATE) * (classes == cell).sum()
        assert variances[cell] == pytest.approx(wanted)


@pytest.mark.parametrize(
    ("levels", "joined"),
    [
        ((), 0),
        (([0, 1],), 1),
        (([0, 2],), 0),
        (([1, 1],), 0),
        (([0, 1], [0, 0]), 0),
        (([0, 0, 1], [0, 1]), 0),
        (([0, 0, 1], [0, 1, 1]), 0),
    ],
)
def test_what_are_no_nested_classes_is_refused(levels, joined):
    with pytest.raises(InvalidParameter):
        ColumnClasses(tuple(np.array(x, dtype=np.int64) for x in levels), joined)


def test_many_wide_columns_have_fewer_classes_each():
    few = (MANY,) * 3
    many = tuple(column(f"c{i}", "integer", bounds=[0, 999]) for i in range(100))
    assert most_classes(few) > most_classes(many)
    limit = most_classes(many)
    assert (100 * 99 // 2) * limit**2 <= 4_000_000
