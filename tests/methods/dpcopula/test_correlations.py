"""Private correlations: right on average, paid for exactly, and noisy enough for any neighbor."""

from fractions import Fraction
from functools import partial
from itertools import pairwise, product
from math import comb

import numpy as np
import pyarrow as pa
import pytest
from scipy.special import ndtr

from dpublish.accuracy.noise_distribution import noise_pmf, noise_survival
from dpublish.core import run as draws
from dpublish.core.noisy_size import NoisySize
from dpublish.core.run import Run
from dpublish.data.schema import Schema, column
from dpublish.data.sources import open_table
from dpublish.errors import BudgetAlreadyUsed, InvalidParameter
from dpublish.mechanisms.exact.lattice import floor_units
from dpublish.methods.dpcopula.dpcopula import expected_deviation
from dpublish.methods.dpcopula.kendall import release_kendall, tau_values
from dpublish.methods.dpcopula.kernels import PairTables, ScoreProducts
from dpublish.methods.dpcopula.latent_correlation import score_table
from dpublish.methods.dpcopula.mle import correlation_sensitivity, release_mle
from dpublish.methods.dpcopula.spearman import release_spearman
from dpublish.methods.marginals.noisy_marginal import NoisyMarginal
from dpublish.privacy.amplification import amplified_epsilon
from dpublish.privacy.budget import Budget
from dpublish.randomness import seeded
from dpublish.testing import frequency_p_value, privacy_loss

METHODS = {"spearman": release_spearman, "kendall": release_kendall, "mle": release_mle}
RATE = Fraction(1, 50)
SHAPES = {
    "binary": np.array([0.3, 0.7]),
    "five": np.full(5, 0.2),
    "geometric": 0.7 ** np.arange(20) / (0.7 ** np.arange(20)).sum(),
    "many": np.full(600, 1 / 600),
}


def make_table(codes, leaves, **settings):
    """Open codes as a table of integers; -1 is a missing value."""
    names = tuple(f"c{i}" for i in range(codes.shape[1]))
    columns = tuple(column(x, "integer", bounds=[0, leaves - 1], **settings) for x in names)
    rows = {x: pa.array(codes[:, i], mask=codes[:, i] < 0) for i, x in enumerate(names)}
    return open_table(pa.table(rows), Schema(columns))


def true_marginals(table, codes):
    """Give marginals without noise; the leaf after the last is that of missing values."""
    marginals = {}
    for index, spec in enumerate(table.schema.columns):
        leaves = np.where(codes[:, index] < 0, spec.size - 1, codes[:, index])
        counts = np.bincount(leaves, minlength=spec.size).astype(np.int64)
        marginals[spec.name] = NoisyMarginal("identity", spec.size, counts, Fraction(1))
    return marginals


def draw_codes(records, columns, correlation, probabilities, key=1):
    """Cut normal variables with one correlation among all of them into cells."""
    rng = np.random.Generator(np.random.Philox(key=key))
    matrix = np.full((columns, columns), correlation)
    np.fill_diagonal(matrix, 1)
    normal = rng.standard_normal((records, columns)) @ np.linalg.cholesky(matrix).T
    codes = np.searchsorted(np.cumsum(probabilities), ndtr(normal))
    return np.minimum(codes, probabilities.size - 1)


def publish(method, table, marginals, records, *, epsilon=1, rng=None, **options):
    return METHODS[method](
        Run(table, rng=rng or seeded(3)),
        tuple(marginals),
        marginals,
        NoisySize(records, RATE),
        budget=Budget.seeded(epsilon),
        **options,
    )


def world(records, columns, correlation, shape, key=1):
    codes = draw_codes(records, columns, correlation, SHAPES[shape], key)
    table = make_table(codes, SHAPES[shape].size)
    return table, true_marginals(table, codes)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("correlation", [-0.2, 0.6, 0.9])
@pytest.mark.parametrize("method", METHODS)
def test_correlations_are_found_whatever_the_ties(method, correlation, shape):
    table, marginals = world(40_000, 4, correlation, shape)
    noisy = publish(method, table, marginals, 40_000, epsilon=1000)
    matrix = noisy.matrix([x.probabilities for x in marginals.values()], 40_000)
    found = matrix[np.triu_indices(4, 1)]
    assert found.mean() == pytest.approx(correlation, abs=0.015)
    assert np.abs(found - correlation).max() < 0.04


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("together", [False, True])
def test_missing_values_never_make_correlations_up(method, together):
    codes = draw_codes(60_000, 3, 0.6, SHAPES["five"])
    probability = np.random.Generator(np.random.Philox(key=9)).random(codes.shape)
    lost = (probability[:, :1] if together else probability) < [0.4, 0.2, 0.0]
    codes = np.where(lost, -1, codes)
    table = make_table(codes, 5, missing="category")
    marginals = true_marginals(table, codes)
    noisy = publish(method, table, marginals, 60_000, epsilon=1000)
    listed = [x.probabilities[:5] / x.probabilities[:5].sum() for x in marginals.values()]
    found = noisy.matrix(listed, 60_000)[np.triu_indices(3, 1)]
    # The first two are missing together in 40 % of the records, or in 52 % one or both.
    assert found[1:] == pytest.approx(0.6, abs=0.04)
    assert 0.56 < found[0] < 0.64 if together else 0.35 < found[0] < 0.6


def test_a_column_that_hardly_varies_does_not_wipe_out_the_others():
    codes = draw_codes(40_000, 2, 0.6, SHAPES["five"])
    rare = np.random.Generator(np.random.Philox(key=4)).random(40_000) < 0.02
    codes = np.column_stack([codes, rare * 4])
    table = make_table(codes, 5)
    marginals = true_marginals(table, codes)
    noisy = publish("mle", table, marginals, 40_000, epsilon=1000)
    found = noisy.matrix([x.probabilities for x in marginals.values()], 40_000)
    assert found[0, 1] == pytest.approx(0.6, abs=0.03)
    assert np.abs(found[2, :2]).max() < 0.15


class Heard(Exception):
    """What the mechanism was given."""


def heard(monkeypatch, method, table, marginals, records, **options):
    """Run a method up to its mechanism, and give what it was asked to perturb."""
    name = "add_geometric" if method == "mle" else "add_laplace"

    def stop(values, *, sensitivity, budget, rng, **further):
        assert not any(further.values())
        raise Heard(values, sensitivity, budget.epsilon)

    with monkeypatch.context() as patch:
        patch.setattr(draws, name, stop)
        with pytest.raises(Heard) as caught:
            publish(method, table, marginals, records, **options)
    return caught.value.args


@pytest.mark.parametrize("size", [-9, 40, 420])
@pytest.mark.parametrize("records", [1, 2, 3, 30])
@pytest.mark.parametrize("method", METHODS)
def test_what_the_mechanism_gets_moves_by_no_more_than_the_sensitivity(
    method, records, size, monkeypatch
):
    """Whatever the noisy size says: far fewer or far more records than there are."""
    worst = 0.0
    for key in range(12):
        draws = np.random.Generator(np.random.Philox(key=key)).integers(0, 3, (records + 1, 3))
        marginals = true_marginals(make_table(draws, 3), draws)
        here = heard(monkeypatch, method, make_table(draws, 3), marginals, size)
        there = heard(monkeypatch, method, make_table(draws[:-1], 3), marginals, size)
        assert here[1:] == there[1:]
        moved = sum(
            abs(Fraction(a) - Fraction(b))
            for a, b in zip(
                *(
                    [int(x) if isinstance(x, np.integer) else x for x in side[0]]
                    for side in (here, there)
                ),
                strict=True,
            )
        )
        worst = max(worst, float(moved / Fraction(here[1])))
    assert worst <= 1
    if size == -9 and records < 4 and method != "mle":
        assert worst > 0.2  # something was tested


def test_a_sample_is_paid_for_by_its_own_rate(monkeypatch):
    table, marginals = world(400, 3, 0.5, "five")
    sampled = []
    honest = type(table).sample

    def note(self, rate, rng, columns=None):
        sampled.append(rate)
        return honest(self, rate, rng, columns)

    monkeypatch.setattr(type(table), "sample", note)
    for options, wanted in (
        ({"most_work": 300}, 100),
        ({"sample": 40}, 40),
        ({"sample": "paper"}, 299),
    ):
        _, _, epsilon = heard(monkeypatch, "kendall", table, marginals, 400, **options)
        assert sampled.pop() == Fraction(wanted, 400)
        assert epsilon == amplified_epsilon(Fraction(1), Fraction(wanted, 400))
    assert heard(monkeypatch, "kendall", table, marginals, 400)[2] == 1
    assert heard(monkeypatch, "kendall", table, marginals, 400, sample=1000)[2] == 1


@pytest.mark.parametrize("columns", [2, 3, 5])
def test_blocks_get_noise_for_all_that_a_block_can_change(columns):
    table, marginals = world(300, columns, 0.3, "five")
    noisy = publish("mle", table, marginals, 300, epsilon="0.8")
    assert noisy.rate * correlation_sensitivity(columns) == Fraction(4, 5)


@pytest.mark.parametrize("method", METHODS)
def test_the_deviation_is_that_of_repeated_releases(method):
    table, marginals = world(3000, 3, 0.0, "five")
    probabilities = [x.probabilities for x in marginals.values()]
    rng = seeded(8)
    options = {"blocks": 60} if method == "mle" else {}
    found, deviations = [], []
    for _ in range(120):
        noisy = publish(method, table, marginals, 3000, epsilon="0.5", rng=rng, **options)
        found.append(noisy.matrix(probabilities, 3000)[np.triu_indices(3, 1)])
        deviations.append(noisy.deviations(probabilities, 3000)[0, 1])
    if method != "mle":  # there blocks are drawn anew, which adds to the deviation
        assert np.std(found, axis=0).mean() == pytest.approx(np.mean(deviations), rel=0.2)
    assert np.std(found, axis=0).mean() > 0.8 * np.mean(deviations)


@pytest.mark.parametrize("method", METHODS)
def test_budget_in_is_budget_spent(method):
    table, marginals = world(200, 3, 0.5, "five")
    budget = Budget.seeded("0.3")
    size = NoisySize(200, RATE)
    run = Run(table, rng=seeded(1))
    publish_once = partial(METHODS[method], run, tuple(marginals), marginals, size)
    publish_once(budget=budget)
    assert budget.cost() == budget.epsilon
    assert all(share.is_used for share in budget.account())
    with pytest.raises(BudgetAlreadyUsed):
        publish_once(budget=budget)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("codes", [np.zeros((0, 3)), np.ones((1, 3)), np.full((50, 3), 2)])
@pytest.mark.parametrize("size", [-400, 0, 7, 10**15])
def test_any_table_and_any_noisy_size_will_do(method, codes, size):
    codes = codes.astype(np.int64)
    table = make_table(codes, 5)
    marginals = true_marginals(table, codes)
    noisy = publish(method, table, marginals, size)
    assert np.isfinite(noisy.matrix([x.probabilities for x in marginals.values()], size)).all()


@pytest.mark.parametrize("method", METHODS)
def test_the_noise_has_the_rate_that_is_published(method):
    empty = np.zeros((0, 2), dtype=np.int64)
    table = make_table(empty, 5)
    marginals = true_marginals(table, empty)
    rng = seeded(5)
    drawn = [publish(method, table, marginals, 400, epsilon="0.5", rng=rng) for _ in range(3000)]
    rate = drawn[0].rate
    edges = [round(x / float(rate)) for x in (-2, -1, -0.4, 0, 0.4, 1, 2)]
    bins = np.searchsorted(edges, [int(x.units[0]) for x in drawn], side="right").tolist()

    def expected(rate):
        tails = [1.0, *noise_survival(rate, edges).tolist(), 0.0]
        return {i: tails[i] - tails[i + 1] for i in range(len(edges) + 1)}

    assert frequency_p_value(bins, expected(rate)) > 1e-4
    assert frequency_p_value(bins, expected(rate * Fraction(13, 10))) < 1e-8
    assert frequency_p_value(bins, expected(rate * Fraction(7, 10))) < 1e-8


def kendall_units(codes, noisy, marginals, table):
    leaves = next(iter(marginals.values())).leaves
    classes = (np.arange(leaves),) * len(marginals)
    tables = table.sum(PairTables(table.schema, tuple(marginals), classes))
    taus = np.array(tau_values(tables, noisy.settings["fewest_records"]), dtype=object)
    return floor_units(taus, noisy.exponent)


def spearman_units(codes, noisy, marginals, table):
    steepness = float(noisy.settings["steepness"])
    scores = tuple(score_table(x.probabilities, steepness) for x in marginals.values())
    sums = table.sum(ScoreProducts(table.schema, tuple(marginals), scores))
    return sums[np.triu_indices(len(marginals), 1)] >> noisy.exponent


@pytest.mark.parametrize("columns", [2, 3, 4])
@pytest.mark.parametrize("size", [-9, 40, 420])
@pytest.mark.parametrize(
    ("method", "units_of"), [("kendall", kendall_units), ("spearman", spearman_units)]
)
def test_no_neighbor_moves_the_statistic_by_more_than_the_noise_hides(
    method, units_of, size, columns
):
    # The noise has density proportional to exp(-rate |y - statistic|), so this is the loss.
    epsilon = Fraction(1)
    old = np.repeat(np.arange(1, 9)[:, None], columns, axis=1)
    table = make_table(old, 10)
    marginals = true_marginals(table, old)  # released before: the same for both neighbors
    noisy = publish(method, table, marginals, size, epsilon=epsilon)
    before = units_of(old, noisy, marginals, table)
    losses = []
    for record in product((0, 5, 9), repeat=columns):
        more = np.vstack([old, record])
        other = make_table(more, 10)
        again = publish(method, other, marginals, size, epsilon=epsilon)
        assert (again.rate, again.exponent) == (noisy.rate, noisy.exponent)
        moved = np.abs(units_of(more, noisy, marginals, other) - before).sum()
        losses.append(noisy.rate * int(moved))
    assert max(losses) <= epsilon
    if method == "spearman" or size < 0:
        assert max(losses) > epsilon / 4  # the test would notice a noise four times too small


def test_noise_scaled_by_the_private_number_of_records_is_caught():
    # The scale would be 4 / (n + 1) on one table and 4 / (n + 2) on its neighbor.
    epsilon, records = Fraction(1), 20
    old = np.repeat(np.arange(records)[:, None], 2, axis=1)
    step = Fraction(1, 1 << 12)
    grid = np.arange(-(1 << 14), 1 << 14)

    def distribution(codes, rate):
        table = make_table(codes, records + 1)
        tables = table.sum(PairTables(table.schema, ("c0", "c1"), (np.arange(records + 1),) * 2))
        unit = int(tau_values(tables, 2)[0] // step)
        return dict(zip(grid.tolist(), noise_pmf(rate, grid - unit).tolist(), strict=True))

    more = np.vstack([old, [records, 0]])
    sound = epsilon / (Fraction(4, 21) / step + 1)
    assert privacy_loss(distribution(old, sound), distribution(more, sound)) <= epsilon + Fraction(
        1, 10**9
    )
    broken = epsilon / (Fraction(4, 22) / step + 1)
    assert privacy_loss(distribution(old, sound), distribution(more, broken)) > epsilon


def test_a_sample_is_taken_above_a_public_amount_of_work_and_still_tells():
    table, marginals = world(30_000, 3, 0.6, "five")
    budget = Budget.seeded(2)
    noisy = release_kendall(
        Run(table, rng=seeded(2)),
        tuple(marginals),
        marginals,
        NoisySize(30_000, RATE),
        budget=budget,
        most_work=3 * 10_000,
    )
    assert noisy.settings["sample_rate"] == "1/3"
    assert noisy.settings["fewest_records"] < 10_000
    assert budget.cost() == 2
    assert all(share.is_used for share in budget.account())
    whole = publish("kendall", table, marginals, 30_000, epsilon=2)
    assert whole.settings["sample_rate"] == "1"
    found = noisy.matrix([x.probabilities for x in marginals.values()], 30_000)
    assert found[np.triu_indices(3, 1)] == pytest.approx(0.6, abs=0.05)


def test_records_that_another_marginal_leaves_out_are_left_out():
    rows = {"a": [0, 1, 1], "b": [0, 1, 1], "c": [None, 1, 0]}
    schema = Schema(tuple(column(x, "integer", bounds=[0, 1], missing="drop") for x in rows))
    table = open_table(pa.table(rows), schema)
    codes = np.array([[1, 1, 1], [1, 1, 0]])
    marginals = true_marginals(table, codes)
    run, size = Run(table, rng=seeded(1)), NoisySize(-9, RATE)
    found = [
        release_kendall(run, ("a", "b"), used, size, budget=Budget.seeded(10**6))
        for used in (marginals, {name: marginals[name] for name in ("a", "b")})
    ]
    assert [round(np.ldexp(float(x.units[0]), x.exponent), 2) for x in found] == [0.0, 0.67]


@pytest.mark.parametrize("method", METHODS)
def test_units_with_several_rows_and_single_columns_are_refused(method):
    codes = np.zeros((3, 2), dtype=np.int64)
    table = make_table(codes, 2)
    marginals = true_marginals(table, codes)
    with pytest.raises(InvalidParameter, match="two columns"):
        METHODS[method](
            Run(table, rng=seeded(1)),
            ("c0",),
            marginals,
            NoisySize(3, RATE),
            budget=Budget.seeded(1),
        )
    schema = Schema(table.schema.columns, unit="who")
    rows = pa.table({"c0": [0, 1], "c1": [0, 1], "who": ["a", "a"]})
    budget = Budget.seeded(1)
    with pytest.raises(InvalidParameter, match="single records"):
        METHODS[method](
            Run(open_table(rows, schema), rng=seeded(1)),
            tuple(marginals),
            marginals,
            NoisySize(3, RATE),
            budget=budget,
        )
    assert not budget.is_used


@pytest.mark.parametrize("method", METHODS)
def test_the_predicted_deviation_falls_with_epsilon_and_is_met(method):
    predicted = [expected_deviation(method, 4, 20_000, Fraction(x, 100)) for x in range(1, 300, 7)]
    assert all(one > other for one, other in pairwise(predicted))
    found = []
    for key in range(12):
        table, marginals = world(20_000, 4, 0.0, "many", key=key + 1)
        noisy = publish(method, table, marginals, 20_000, epsilon="0.1", rng=seeded(key))
        matrix = noisy.matrix([x.probabilities for x in marginals.values()], 20_000)
        found.extend(matrix[np.triu_indices(4, 1)])
    assert len(found) == 12 * comb(4, 2)
    expected = expected_deviation(method, 4, 20_000, Fraction(1, 10))
    assert np.std(found) == pytest.approx(expected, rel=0.35)
    with pytest.raises(InvalidParameter, match="rate"):
        expected_deviation(method, 4, 20_000, Fraction(1, 10**12))
