"""Cells and copulas: what a release gives away, what it costs, and what it refuses."""

from fractions import Fraction
from itertools import product
from math import exp, inf, log

import numpy as np
import pyarrow as pa
import pytest

from dpublish.core.run import Run
from dpublish.data.schema import Schema, column
from dpublish.data.sources import open_table
from dpublish.errors import BudgetAlreadyUsed, InvalidParameter
from dpublish.methods.dpcopula import cell_copulas
from dpublish.methods.dpcopula.cell_copulas import cells_error, release_cells
from dpublish.methods.dpcopula.hybrid import DPCopulaHybrid
from dpublish.privacy.budget import Budget
from dpublish.privacy.neighbors import ReplaceRecord
from dpublish.randomness import plain_generator, seeded
from dpublish.testing import frequency_p_value, privacy_loss

SMALL = Schema(
    (
        column("sex", "category", values=["a", "b"]),
        column("age", "integer", bounds=[0, 1]),
        column("pay", "integer", bounds=[0, 2]),
        column("days", "integer", bounds=[0, 1]),
    )
)


def table(records, schema=SMALL):
    """Records as lists of values in the order of the schema's columns."""
    columns = list(zip(*records, strict=True)) or [[] for _ in schema.names]
    arrays = {
        c.name: pa.array(values, pa.string() if c.kind == "category" else pa.int64())
        for c, values in zip(schema.columns, columns, strict=True)
    }
    return open_table(pa.table(arrays), schema)


def publish(rows, epsilon, seed, numbers=("age",), categories=("sex",), least_records=1, **more):
    run = Run(
        table(rows) if isinstance(rows, list) else rows,
        rng=seeded(seed),
        method=DPCopulaHybrid(),
        budget=more.pop("budget", None) or Budget.seeded(epsilon),
        progress=more.pop("progress", None),
    )
    return release_cells(
        run,
        numbers=numbers,
        categories=categories,
        marginal=more.pop("marginal", "auto"),
        least_records=least_records,
        **more,
    )


def geometric(rate, value):
    decay = exp(-rate)
    return (1 - decay) / (1 + decay) * decay ** abs(value)


def survival(rate, least):
    """P(N >= least) of two-sided geometric noise."""
    decay = exp(-rate)
    head = decay ** max(least, 0) / (1 + decay)
    return head if least >= 0 else 1 - decay ** (1 - least) / (1 + decay)


# One column of two cells, one number of two leaves: epsilon 10 pays 1 for the cells and 9 for
# the marginals.  A cell is a group of its own from a noisy count of 3 on (log(20) = 2.996).
EPSILON, CELLS, MARGINALS, LEAST = 10, 1.0, 9.0, 3


def distribution(rows, keeps):
    """Exact distribution of which cells are kept and of all marginals, each moved by at most 2.

    `keeps(n, kept)` is the probability that a cell of n records is kept, or not.
    """
    true = np.zeros((2, 2), dtype=int)
    for sex, age, *_ in rows:
        true["ab".index(sex), age] += 1
    found = {}
    for kept in product((True, False), repeat=2):
        probability = np.prod(
            [keeps(int(n), k) for n, k in zip(true.sum(axis=1), kept, strict=True)]
        )
        if probability == 0:
            continue
        own = [true[cell] for cell in range(2) if kept[cell]]
        rest = [true[cell] for cell in range(2) if not kept[cell]]
        counts = np.concatenate([*own, *([np.sum(rest, axis=0)] if rest else [])])
        for noisy in product(*(range(max(n - 2, -2), n + 4) for n in counts)):
            noise = [geometric(MARGINALS, y - n) for y, n in zip(noisy, counts, strict=True)]
            found[kept, noisy] = probability * np.prod(noise)
    return found


def as_guaranteed(records, kept):
    probability = survival(CELLS, LEAST - records)
    return probability if kept else 1 - probability


def by_true_counts(records, kept):
    return float(kept == (records >= LEAST))


def seen(release):
    kept = tuple(bool(cell in release.groups.kept) for cell in range(2))
    return kept, tuple(int(x) for row in release.groups.marginals for x in row[0].units)


ROWS = [["a", 0, 0, 0]] * 2 + [["a", 1, 0, 0]] + [["b", 1, 0, 0]] * 2


def test_the_release_follows_the_distribution_that_the_proof_argues_about():
    source = table(ROWS)
    samples = [seen(publish(source, EPSILON, seed)) for seed in range(2000)]
    expected = distribution(ROWS, as_guaranteed)
    inside = [sample for sample in samples if sample in expected]
    assert len(inside) > 1990  # marginals rarely move by more than 2
    assert frequency_p_value(inside, expected) > 1e-4
    assert len({kept for kept, _ in inside}) == 4
    assert frequency_p_value(inside, distribution(ROWS, by_true_counts)) < 1e-9


def test_no_neighbor_is_told_apart_by_more_than_was_paid():
    here = distribution(ROWS, as_guaranteed)
    for extra in (["a", 0, 0, 0], ["a", 1, 0, 0], ["b", 0, 0, 0], ["b", 1, 0, 0]):
        there = distribution([*ROWS, extra], as_guaranteed)
        shared = here.keys() & there.keys()
        loss = privacy_loss({x: here[x] for x in shared}, {x: there[x] for x in shared})
        assert len(shared) > 1000
        assert MARGINALS - 1e-9 <= loss <= EPSILON + 1e-9


def test_groups_by_true_counts_would_give_a_record_away():
    here, there = (
        distribution(ROWS, by_true_counts),
        distribution([*ROWS, ["b", 1, 0, 0]], by_true_counts),
    )
    assert privacy_loss(here, there) == inf


def test_empty_cells_get_noise_like_all_others():
    source = table([["a", 0, 0, 0]])
    releases = (publish(source, 2, seed, numbers=()) for seed in range(1500))
    samples = [tuple(release.groups.counts.tolist()) for release in releases]
    span = range(-12, 14)
    expected = {(x, y): geometric(2, x - 1) * geometric(2, y) for x in span for y in span}
    assert frequency_p_value(samples, expected) > 1e-4
    # The broken twin leaves out the cell that is empty, and tells the first record from none.
    twin = {(x, 0): geometric(2, x - 1) for x in span}
    first = {(x, y): geometric(2, x - 1) * geometric(2, y - 1) for x in span for y in span}
    assert frequency_p_value(samples, twin) == 0
    assert privacy_loss(twin, first) == inf
    assert privacy_loss(expected, first) == pytest.approx(2)


class Twins:
    """A table that also notes by how much each sum would move with one more record."""

    def __init__(self, rows, record):
        self.schema, self.neighbors = SMALL, SMALL.neighbors
        self._here, self._there = table(rows), table([*rows, record])
        self.moves = []

    def sum(self, kernel):
        found = self._here.sum(kernel)
        self.moves.append((kernel, self._there.sum(kernel) - found))
        return found


def losses(rows, record, epsilon, seed, copulas="shared"):
    """What each step gives away about one more record, given all released before it."""
    twins = Twins(rows, record)
    release = publish(twins, epsilon, seed, numbers=("age", "pay", "days"), copulas=copulas)
    (_, cells), (kernel, marginals), (_, products) = twins.moves
    rates = [marginal.rate for marginal in release.groups.marginals[0]]
    by_column = zip(rates, kernel.split(marginals), strict=True)
    published = release.correlations or (release.correlation,)
    matrices = products if copulas == "per-cell" else [products]
    return (
        float(release.groups.rate) * np.abs(cells).sum(),
        sum(float(rate) * np.abs(moved).sum() for rate, moved in by_column),
        sum(
            float(one.rate)
            * np.ceil(np.abs(moved[np.triu_indices(3, 1)]) / 2.0**one.exponent).sum()
            for one, moved in zip(published, matrices, strict=True)
        ),
    )


@pytest.mark.parametrize("copulas", ["shared", "per-cell"])
@pytest.mark.parametrize("seed", range(3))
def test_all_steps_together_give_away_no_more_than_epsilon(seed, copulas):
    rows = [["a", 0, 0, 0]] * 4 + [["a", 1, 2, 1]] * 5 + [["b", 0, 1, 1]] * 2
    worst = 0.0
    for record in product("ab", range(2), range(3), range(2)):
        cells, marginals, products = losses(rows, list(record), 12, seed, copulas)
        assert cells == pytest.approx(1.2)
        assert marginals == pytest.approx(9.6)
        worst = max(worst, cells + marginals + products)
    assert 11.9 < worst <= 12 + 1e-9


def test_marginals_paid_in_parallel_across_columns_would_give_away_more(monkeypatch):
    # A record is in one group but in every column: columns may not share one share.
    class Reckless:
        def __init__(self, share):
            self.epsilon, self._budget = share.epsilon, share

        def split(self, **shares):
            return self._budget.share_disjoint(shares)

    honest = cell_copulas._release_marginals

    def reckless(*arguments, budget, **more):
        return honest(*arguments, budget=Reckless(budget), **more)

    monkeypatch.setattr(cell_copulas, "_release_marginals", reckless)
    _, marginals, _ = losses([["a", 0, 0, 0]] * 4, ["a", 1, 1, 1], 12, 1)
    assert marginals > 12


def test_all_of_the_budget_is_spent_and_groups_share_it():
    for numbers, shares in (((), 1), (("age",), 2), (("age", "pay"), 3)):
        budget = Budget.seeded("12.5")
        release = publish(
            [["a", 0, 0, 0]] * 60 + [["b", 1, 1, 1]], None, 2, numbers=numbers, budget=budget
        )
        assert all(share.is_used for share in budget.account())
        assert budget.cost() == budget.epsilon == release.receipt.epsilon
        assert len({p.purpose.split("/")[1] for p in budget.account()}) == shares
        assert len(budget.parallel_purposes()) == len(numbers)


@pytest.mark.parametrize("rows", [[], [["a", 1, 2, 1]], [["b", 0, 0, 0]] * 7])
@pytest.mark.parametrize("numbers", [(), ("pay",), ("age", "pay", "days")])
def test_small_tables_are_published(rows, numbers):
    for seed in range(4):
        release = publish(rows, "0.3", seed, numbers=numbers)
        assert release.rows(20, seed=1).num_rows == 20
        assert release.rows(seed=1).num_rows == round(release.groups.estimates.sum())
        assert release.count("sex = a").low >= 0
        assert release.summary()
        assert set(release.rows(3).column_names) == {"sex", *numbers}


def test_records_without_a_value_are_left_out_of_everything():
    schema = Schema(
        (
            column("sex", "category", values=["a", "b"], missing="drop"),
            column("age", "integer", bounds=[0, 3], missing="drop"),
            column("pay", "integer", bounds=[0, 3], missing="category"),
        )
    )
    rows = [["a", 1, 2]] * 400 + [[None, 1, 2]] * 50 + [["a", None, 2]] * 50 + [["a", 2, None]] * 90
    source = table(rows, schema)
    release = publish(source, 1000, 1, numbers=("age", "pay"), marginal="identity")
    assert release.groups.counts.tolist() == [490, 0]
    assert release.groups.marginals[0][0].units.tolist() == [0, 400, 90, 0]
    assert release.groups.marginals[0][1].units.tolist() == [0, 0, 400, 0, 90]


def test_correlations_are_those_inside_groups():
    # Inside each cell pay rises with age; across cells it falls.
    schema = Schema(
        (
            column("sex", "category", values=["a", "b"]),
            column("age", "integer", bounds=[0, 39]),
            column("pay", "integer", bounds=[0, 39]),
        )
    )
    draw = plain_generator(4)
    normals = np.linalg.cholesky([[1, 0.6], [0.6, 1]]) @ draw.standard_normal((2, 20_000))
    sex = draw.integers(0, 2, 20_000)
    age = np.clip(np.rint(10 + 4 * normals[0] + 18 * sex), 0, 39).astype(int)
    pay = np.clip(np.rint(28 + 4 * normals[1] - 18 * sex), 0, 39).astype(int)
    assert np.corrcoef(age, pay)[0, 1] < -0.5
    rows = [["ab"[s], int(a), int(p)] for s, a, p in zip(sex, age, pay, strict=True)]
    source = table(rows, schema)
    found = []
    for seed in range(5):
        release = publish(source, 2, seed, numbers=("age", "pay"), least_records=200)
        found.append(release.matrix[0, 1])
    assert np.mean(found) == pytest.approx(0.6, abs=0.02)
    drawn = release.rows(20_000, seed=3).to_pandas()
    inside = [part[["age", "pay"]].corr().iloc[0, 1] for _, part in drawn.groupby("sex")]
    assert np.allclose(inside, 0.6, atol=0.05)
    assert drawn[["age", "pay"]].corr().iloc[0, 1] < -0.5


def test_each_cell_may_have_correlations_of_its_own():
    """Pay rises with age in one cell and falls in the other, which no shared matrix can say."""
    draw = plain_generator(6)
    normals = draw.standard_normal((2, 20_000))
    sex = draw.integers(0, 2, 20_000)
    both = np.where(sex == 0, 0.7, -0.7) * normals[0] + np.sqrt(0.51) * normals[1]
    ages, pays = (np.clip(np.rint(20 + 6 * x), 0, 39).astype(int) for x in (normals[0], both))
    schema = Schema(
        (
            column("sex", "category", values=["a", "b"]),
            column("age", "integer", bounds=[0, 39]),
            column("pay", "integer", bounds=[0, 39]),
        )
    )
    rows = [["ab"[s], int(a), int(p)] for s, a, p in zip(sex, ages, pays, strict=True)]
    settings = {"numbers": ("age", "pay"), "least_records": 200}
    each = publish(table(rows, schema), 2, 1, copulas="per-cell", **settings)
    shared = publish(table(rows, schema), 2, 1, **settings)
    found = [reading.matrix[0, 1] for reading in each.readings]
    assert found == pytest.approx([0.7, -0.7], abs=0.06)
    assert abs(shared.matrix[0, 1]) < 0.1
    assert abs(each.matrix[0, 1]) < 0.1  # their mean
    drawn = each.rows(10_000, seed=3).to_pandas()
    inside = [part[["age", "pay"]].corr().iloc[0, 1] for _, part in drawn.groupby("sex")]
    assert inside == pytest.approx([0.7, -0.7], abs=0.08)
    truth = int(((sex == 1) & (ages >= 25) & (pays >= 25)).sum())
    query = "sex = b and age >= 25 and pay >= 25"
    lows, highs = np.array([[1, 25, 25]]), np.array([[2, 40, 40]])
    [boxed] = each.count_boxes(("sex", "age", "pay"), lows, highs)
    assert boxed == pytest.approx(each.count(query).value, rel=0.05, abs=5)
    assert abs(boxed - truth) < 0.3 * abs(shared.count(query).value - truth)


def test_groups_share_the_budget_of_their_own_correlations():
    budget = Budget.seeded("12.5")
    rows = [["a", 0, 0, 0]] * 60 + [["b", 1, 1, 1]] * 60
    numbers = ("age", "pay")
    release = publish(rows, None, 2, numbers=numbers, budget=budget, copulas="per-cell")
    assert budget.cost() == budget.epsilon == release.receipt.epsilon
    assert all(share.is_used for share in budget.account())
    assert len(budget.parallel_purposes()) == len(numbers) + 1
    with pytest.raises(InvalidParameter, match="design cells"):
        DPCopulaHybrid(copulas="per-cell")


def test_few_cells_are_kept_and_ties_go_to_the_first():
    counts = np.array([5, 9, 9, 9, 1, 9], dtype=np.int64)
    assert cell_copulas._keep(counts, 6).tolist() == [1, 2, 3, 5]
    many = np.full(100, 7, dtype=np.int64)
    many[90] = 8
    assert cell_copulas._keep(many, 1).tolist() == [*range(63), 90]


def test_the_error_is_predicted_and_falls_with_epsilon():
    told = [
        cells_error(SMALL, ("age", "pay"), ("sex",), 1000, Fraction(e)) for e in ("0.1", "1", "10")
    ]
    targets = [error.figures[error.target] for error in told]
    assert targets[0] > targets[1] > targets[2]
    assert told[1].figures["one_cell_95"] == 30
    assert "correlation_95" in told[1].figures
    assert "correlation_95" not in cells_error(SMALL, (), ("sex",), None, Fraction(1)).figures


WIDE = Schema(
    (
        *(column(f"c{k}", "integer", bounds=[0, 99]) for k in range(4)),
        column("large", "integer", bounds=[0, 4999]),
        *(column(f"huge{k}", "integer", bounds=[0, 99_999]) for k in range(3)),
        column("town", "category", values=["x", "y"]),
        column("noisy_count", "category", values=["x", "y"]),
    )
)


@pytest.mark.parametrize(
    ("numbers", "categories", "marginal", "fault"),
    [
        (("large",), (), "auto", "at least one column"),
        (("large",), ("c0", "c1", "c2", "c3"), "auto", "too many"),
        (("town",), ("c0",), "auto", "no order"),
        (("large",), ("large",), "auto", "twice"),
        (("large",), ("unheard",), "auto", "unheard"),
        (("large",), ("c0",), "efpa", "at most"),
        (("large",), ("noisy_count",), "auto", "noisy_count"),
        (("huge0", "huge1", "huge2"), ("c0",), "auto", "coarser bins"),
    ],
)
def test_what_cannot_be_published_is_refused_beforehand_too(numbers, categories, marginal, fault):
    class Untouchable:
        schema, neighbors = WIDE, WIDE.neighbors

    with pytest.raises(InvalidParameter, match=fault):
        cells_error(WIDE, numbers, categories, None, Fraction(1), marginal=marginal)
    with pytest.raises(InvalidParameter, match=fault):
        publish(Untouchable(), 1, 1, numbers=numbers, categories=categories, marginal=marginal)


def test_other_neighbors_small_budgets_and_used_budgets_are_refused():
    class Replaced:
        schema, neighbors = SMALL, ReplaceRecord()

    class Untouchable:
        schema, neighbors = SMALL, SMALL.neighbors

    method = DPCopulaHybrid(design="cells", least_values=3)
    with pytest.raises(InvalidParameter, match="added or removed"):
        method.release(Replaced(), budget=Budget.seeded(1), rng=seeded(1))
    with pytest.raises(InvalidParameter, match="least_records"):
        DPCopulaHybrid(design="cells", least_records=0)
    for numbers in ((), ("age",), ("age", "pay")):
        with pytest.raises(InvalidParameter):
            cells_error(SMALL, numbers, ("sex",), None, Fraction(1, 10**15))
    used = Budget.seeded(1)
    used.spend()
    with pytest.raises(BudgetAlreadyUsed):
        publish(Untouchable(), None, 1, budget=used)


def test_progress_is_told_in_public_words():
    told = []
    publish([["a", 0, 0, 0]], 1, 1, progress=lambda *step: told.append(step))
    assert told == [(1, 3, "cells"), (2, 3, "marginals"), (3, 3, "correlations")]


def test_the_least_count_follows_from_public_numbers():
    # The example above rests on it.
    assert log(10 * 2) / CELLS < LEAST
    plan = cell_copulas.make_cell_plan(SMALL, ("age",), ("sex",))
    assert plan.predict("auto", 100, Fraction(EPSILON))["group_range_count_95"] == 0
