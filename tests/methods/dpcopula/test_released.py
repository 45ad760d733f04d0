"""The published copula: its rows, its counts, and what it refuses to be."""

import json
from dataclasses import replace
from fractions import Fraction
from itertools import product

import numpy as np
import pyarrow as pa
import pytest
from scipy.stats import multivariate_normal

from dpublish.core.noisy_size import NoisySize
from dpublish.data.schema import Schema, column
from dpublish.errors import DPublishError, InvalidParameter, InvalidQuery
from dpublish.methods.dpcopula.correlation import NoisyCorrelation, shrink
from dpublish.methods.dpcopula.gaussian_copula import ValueDistribution, draw_codes
from dpublish.methods.dpcopula.latent_correlation import (
    SCORE_UNIT,
    correlation_of_terms,
    pair_terms,
    score_table,
)
from dpublish.methods.dpcopula.released import DPCopulaRelease
from dpublish.methods.marginals.noisy_marginal import NoisyMarginal
from dpublish.methods.marginals.released import SMOOTHED
from dpublish.privacy.budget import Budget
from dpublish.privacy.receipt import Receipt
from dpublish.randomness import seeded
from dpublish.testing import frequency_p_value

SCHEMA = Schema(
    (
        column("age", "integer", bounds=[0, 3]),
        column("height", "numeric", bounds=[1, 2], bins=3, missing="category"),
        column("sex", "category", values=["F", "M"]),
        column("rank", "ordinal", values=["low", "mid", "high"], other="none"),
    )
)
COUNTS = {
    "age": [300, 500, 0, 200],
    "height": [200, 300, 300, 200],  # the last is missing
    "sex": [600, 400],
    "rank": [250, 250, 400, 100],  # the last is unlisted
}
ORDERED = ("age", "height", "rank")
PRODUCTS = (0.12, -0.08, 0.05)  # mean products of scores: age-height, age-rank, height-rank


def marginal(counts, method="identity"):
    return NoisyMarginal(method, len(counts), np.array(counts, dtype=np.int64), Fraction(1))


def correlation(products=PRODUCTS, noise=Fraction(1)):
    kept = [1.0, 0.8, 0.9]
    shared = np.array([0.8, 0.9, 0.72])
    units = np.rint(np.array(products) * shared * 1000 * SCORE_UNIT**2).astype(np.int64)
    settings = {"kept": kept, "steepness": "1"}
    return NoisyCorrelation("spearman", ORDERED, units, 0, noise / SCORE_UNIT**2, settings)


def copula(**changes):
    budget = Budget.seeded(1)
    budget.spend()
    receipt = Receipt.issue(
        method="dpcopula",
        settings={},
        budget=budget,
        neighbors=SCHEMA.neighbors,
        rng=seeded(1),
    )
    settings = {
        "receipt": receipt,
        "schema": SCHEMA,
        "marginals": tuple(marginal(counts) for counts in COUNTS.values()),
        "correlation": correlation(),
        "size": NoisySize(1000, Fraction(1, 10)),
        "shrink": False,
    }
    return DPCopulaRelease(**settings | changes)


def cell_distribution(release):
    """Probability of each combination of leaves, by boxes of the normal distribution."""
    names = list(COUNTS)
    distributions = [release.distributions[name] for name in names]
    order = [names.index(name) for name in ORDERED]
    normal = multivariate_normal(cov=release.matrix, abseps=1e-7, releps=1e-6)
    listed = {}
    for leaves in product(*(range(distributions[j].listed) for j in order)):
        low = [distributions[j].starts[leaf] for j, leaf in zip(order, leaves, strict=True)]
        high = [distributions[j].ends[leaf] for j, leaf in zip(order, leaves, strict=True)]
        probability = normal.cdf(high, lower_limit=low)
        listed[leaves] = float(probability) if np.less(low, high).all() else 0.0
    distribution = {}
    for codes in product(*(range(one.probabilities.size) for one in distributions)):
        probability = distributions[2].probabilities[codes[2]]
        for j in order:
            one, special = distributions[j], codes[j] >= distributions[j].listed
            probability *= one.probabilities[codes[j]] if special else 1 - one.special
        probability *= sum(
            part
            for leaves, part in listed.items()
            if all(
                codes[j] in (leaf, *range(distributions[j].listed, 99))
                for j, leaf in zip(order, leaves, strict=True)
            )
        )
        distribution[codes] = probability
    return distribution


def codes_of(rows):
    encoded = [SCHEMA[name].encode(rows[name])[0] for name in COUNTS]
    return list(zip(*(one.tolist() for one in encoded), strict=True))


def test_the_correlations_are_those_of_the_published_products():
    release = copula()
    probabilities = [release.distributions[name].listed_probabilities for name in ORDERED]
    tables = [score_table(part, 1.0) for part in probabilities]
    # The sums were made for values missing separately; they are read as missing together.
    kept = np.array([1 - release.distributions[name].special for name in ORDERED])
    first, second = np.triu_indices(3, 1)
    parts = kept[first] * kept[second] / np.minimum(kept[first], kept[second])
    wanted = correlation_of_terms(np.array(PRODUCTS) * parts, pair_terms(tables, probabilities))
    assert release.matrix[np.triu_indices(3, 1)] == pytest.approx(wanted, abs=1e-3)
    assert release.ordered == ORDERED
    assert release.records == pytest.approx(1000)


def test_rows_follow_marginals_and_correlations():
    release = copula()
    seen = codes_of(release.rows(30_000, seed=4))
    distribution = cell_distribution(release)
    assert sum(distribution.values()) == pytest.approx(1, abs=1e-4)
    assert {codes[0] for codes in seen} == {0, 1, 3}  # no row has the value of probability 0
    possible = {
        codes: probability / sum(distribution.values())
        for codes, probability in distribution.items()
        if probability > 0
    }
    assert frequency_p_value(seen, possible) > 1e-4
    # A twin without correlations has the same marginals and fails.
    alone = {
        codes: np.prod(
            [release.distributions[n].probabilities[c] for n, c in zip(COUNTS, codes, strict=True)]
        )
        for codes in possible
    }
    assert frequency_p_value(seen, alone) < 1e-20


def test_counts_add_up_the_probabilities_of_cells():
    release = copula()
    distribution = cell_distribution(release)

    def part(test):
        return 1000 * sum(
            probability for codes, probability in distribution.items() if test(*codes)
        )

    queries = {
        "age >= 1 and sex = F": lambda a, h, s, r: a >= 1 and s == 0,
        "age in {0, 3} and rank >= mid": lambda a, h, s, r: a in (0, 3) and r in (1, 2),
        'age <= 1 and height = "(missing)"': lambda a, h, s, r: a <= 1 and h == 3,
        'age <= 1 and height != "(missing)" and rank != low': (
            lambda a, h, s, r: a <= 1 and h != 3 and r != 0
        ),
        "age = 0 and rank in {low, none} and sex = M": (
            lambda a, h, s, r: a == 0 and r in (0, 3) and s == 1
        ),
    }
    for query, test in queries.items():
        answer = release.count(query)
        assert answer.value == pytest.approx(part(test), abs=1.5), query
        assert answer.low < answer.value < answer.high
        joined = query != "age >= 1 and sex = F"
        assert ("Gaussian copula" in answer.assumption) == joined
        assert ("sex is assumed to depend on no other" in answer.assumption) == ("sex" in query)


def test_one_column_is_answered_by_its_marginal_and_none_by_all():
    negative = marginal([-30, 500, 0, 200])
    release = copula(marginals=(negative, *copula().marginals[1:]))
    answer = release.count("age = 0")
    assert (answer.value, answer.low) == (-30, 0)  # the unbiased estimate, without any model
    assert answer.assumption is None
    assert release.count("age in 0..1").value == 470
    # A condition that all satisfy is none.
    assert release.count("age in 0..1 and sex in {F, M}").value == 470
    whole = release.count()
    assert whole.value == release.records
    assert whole.low < release.records < whole.high


def test_parts_of_bins_count_in_part():
    release = copula()
    assert release.count("height < 1.5").value == pytest.approx(200 + 150)
    halves = release.count("height < 1.5 and sex = F")
    assert halves.value == pytest.approx(0.6 * 350, rel=1e-2)
    assert "partly covered cells" in halves.assumption


def test_boxes_are_counted_as_queries_are():
    release = copula()
    names = ["age", "rank", "sex"]
    lows = np.array([[1, 0, 0], [0, 1, 0], [0, 0, 1], [2, 3, 0], [0, 0, 0]])
    highs = np.array([[4, 2, 2], [2, 4, 1], [4, 3, 2], [3, 4, 2], [4, 4, 2]])
    texts = [
        "age >= 1 and rank in {low, mid}",
        "age <= 1 and rank in {mid, high, none} and sex = F",
        "rank in {low, mid, high} and sex = M",
        "age = 2 and rank = none",
        "",
    ]
    found = release.count_boxes(names, lows, highs)
    wanted = [release.count(text).value for text in texts]
    assert found == pytest.approx(wanted, abs=1.0)
    one = release.count_boxes(["age"], np.array([[0], [1]]), np.array([[2], [1]]))
    assert one.tolist() == [800, 0]
    everything = release.count_boxes([], np.empty((2, 0), np.int64), np.empty((2, 0), np.int64))
    assert everything.tolist() == [release.records] * 2
    assert release.count_boxes(["age"], np.array([[-9]]), np.array([[99]])).tolist() == [1000]
    plain = release.count_boxes(["age", "sex"], np.array([[1, -3]]), np.array([[9, 1]]))
    assert plain == pytest.approx([0.6 * 700], rel=1e-3)


@pytest.mark.parametrize(
    ("columns", "low", "high"),
    [
        (["age", "age"], [0, 0], [1, 1]),
        (["age"], [0, 0], [1, 1]),
        (["other"], [0], [1]),
    ],
)
def test_boxes_that_do_not_exist_are_refused(columns, low, high):
    with pytest.raises(InvalidQuery):
        copula().count_boxes(columns, np.array([low]), np.array([high]))


def test_queries_that_cannot_be_answered_are_refused():
    with pytest.raises(InvalidQuery, match="knows nothing of 'town'"):
        copula().count("town = A")
    with pytest.raises(InvalidParameter, match="confidence"):
        copula().count("age = 1", confidence=1.0)
    with pytest.raises(InvalidParameter):
        copula().rows(-1)
    with pytest.raises(InvalidParameter, match="at most"):
        copula().rows(10**9)


def test_rows_are_as_many_as_wanted_and_the_same_for_a_seed():
    release = copula()
    assert release.rows(seed=1).num_rows == 1000
    assert release.rows(0).schema.names == list(COUNTS)
    assert release.rows(50, seed=3) == release.rows(50, seed=3)
    assert release.rows(50, seed=3) != release.rows(50, seed=4)


def test_many_rows_are_drawn_block_by_block(monkeypatch):
    monkeypatch.setattr("dpublish.methods.dpcopula.released._BLOCK", 64)
    assert copula().rows(150, seed=1).num_rows == 150


def test_columns_without_correlation_are_independent():
    release = copula(correlation=None)
    assert release.matrix.shape == (0, 0)
    assert release.count("age = 0 and rank = low").value == pytest.approx(0.3 * 250, rel=1e-3)
    assert release.summary()["dependence"].startswith("none")


def test_noise_alone_still_makes_a_release():
    """An empty table: noisy numbers may all be negative, and so may the size."""
    nothing = tuple(marginal([-2] * len(counts)) for counts in COUNTS.values())
    release = copula(
        marginals=nothing, size=NoisySize(-40, Fraction(1, 10)), correlation=correlation([-9, 9, 9])
    )
    assert release.records == 0
    assert release.rows(seed=1).num_rows == 0
    assert release.rows(20, seed=1).num_rows == 20
    answer = release.count("age = 0 and sex = F and rank = low")
    assert answer.value == 0
    assert answer.high > 0
    assert np.linalg.eigvalsh(release.matrix).min() > 0
    certain = copula(marginals=tuple(marginal([7, *[0] * (len(c) - 1)]) for c in COUNTS.values()))
    assert set(codes_of(certain.rows(30, seed=1))) == {(0, 0, 0, 0)}
    assert certain.count("age = 0 and sex = F").value == pytest.approx(certain.records)
    assert certain.count("age = 1 and sex = F").value == 0


def test_a_leaf_without_probability_is_never_drawn():
    distribution = ValueDistribution(np.array([0, 0.2, 0, 0.5, 0, 0.3, 0]), 5)
    draws = np.random.Generator(np.random.Philox(2))
    extreme = np.array([-40.0, 40.0, *distribution.ends[np.isfinite(distribution.ends)]])
    assert set(distribution.choose(extreme, draws).tolist()) <= {1, 3, 5}
    codes = draw_codes(np.eye(1), {"a": distribution}, 5000, draws)["a"]
    assert set(codes.tolist()) == {1, 3, 5}
    only_special = ValueDistribution(np.array([0.0, 0.0, 1.0]), 2)
    assert set(only_special.choose(np.zeros(50), draws).tolist()) == {2}


def test_shrinking_moves_uncertain_correlations_to_zero():
    matrix = np.array([[1, 0.4, -0.05], [0.4, 1, 0.2], [-0.05, 0.2, 1]])
    deviations = np.full((3, 3), 0.1) - 0.1 * np.eye(3)
    found = shrink(matrix, deviations)
    assert found[0, 1] == pytest.approx(0.4 * (1 - 0.01 / 0.16))
    assert found[0, 2] == 0
    assert np.diag(found).tolist() == [1, 1, 1]
    assert np.array_equal(shrink(matrix, np.zeros((3, 3))), matrix)
    sure, unsure = (
        copula(shrink=True, correlation=correlation(noise=n))
        for n in (Fraction(1), Fraction(1, 100))
    )
    plain = copula(correlation=correlation(noise=Fraction(1, 100)))
    assert sure.matrix == pytest.approx(copula().matrix, abs=5e-3)
    assert np.all(np.abs(unsure.matrix) <= np.abs(plain.matrix) + 1e-9)
    assert np.any(np.abs(unsure.matrix) < np.abs(plain.matrix) - 0.05)


def again(release, tables=None, **changes):
    """Take a release apart and put it together again, by way of a file's text."""
    return DPCopulaRelease.from_parts(
        receipt=release.receipt,
        schema=release.schema,
        metadata=json.loads(json.dumps(release.metadata(), allow_nan=False)) | changes,
        tables=release.tables() | (tables or {}),
    )


def test_a_release_survives_its_folder():
    for release in (copula(), copula(shrink=True), copula(correlation=None)):
        assert again(release) == release
    assert copula() != copula(shrink=True)
    assert copula() != copula(size=NoisySize(999, Fraction(1, 10)))
    tree = NoisyMarginal("hierarchical", 4, np.array([1, 2, 3, 4]), Fraction(1))
    assert again(copula(marginals=(tree, *copula().marginals[1:]))).marginals[0] == tree


def test_tables_say_what_follows_from_the_noisy_numbers():
    tables = copula().tables()
    assert tables["probabilities"].column_names == [
        *("column", "cell", "cell_low", "cell_high", "probability"),
        *("expected_count", "count_low", "count_high"),
    ]
    assert tables["probabilities"].num_rows == tables["marginals"].num_rows == 14
    assert tables["correlations"]["first"].to_pylist() == ["age", "age", "height"]
    assert sum(tables["probabilities"]["expected_count"].to_pylist()) == pytest.approx(4000)


@pytest.mark.parametrize(
    "changes",
    [
        {"marginals": copula().marginals[:3]},
        {"marginals": copula().marginals[::-1]},
        {"size": NoisySize(2.5, Fraction(1))},
        {"size": NoisySize(2, Fraction(0))},
        {"shrink": 1},
        {"correlation": replace(correlation(), columns=("age", "height", "town"))},
    ],
)
def test_what_no_method_publishes_is_refused(changes):
    with pytest.raises(InvalidParameter):
        copula(**changes)


def test_a_folder_that_was_changed_is_refused():
    release = copula()
    tables = release.tables()
    numbers, pairs = tables["marginals"], tables["correlations"]
    for changed in (
        {"marginals": numbers.slice(1)},
        {"marginals": numbers.slice(0, 13)},
        {"marginals": numbers.set_column(2, "noisy_number", pa.array([0.5] * 14))},
        {"marginals": pa.concat_tables([numbers, numbers.slice(0, 1)])},
        {"marginals": pa.concat_tables([numbers.slice(1), numbers.slice(0, 1)])},
        {"correlations": pairs.slice(1)},
        {"correlations": pairs.set_column(0, "first", pa.array(["age", "rank", "age"]))},
    ):
        with pytest.raises(DPublishError):
            again(release, changed)
    with pytest.raises(DPublishError):
        again(release, correlation=None)
    with pytest.raises(DPublishError):
        again(release, size={"count": "many", "rate": "1"})
    unknown = numbers.set_column(
        0, "column", pa.array(["town", *numbers["column"].to_pylist()[1:]])
    )
    with pytest.raises(DPublishError):
        again(release, {"marginals": unknown})


def test_expected_errors_come_from_the_noise_alone():
    errors = copula().expected_error()
    assert (
        errors
        == copula(marginals=tuple(marginal([0] * len(c)) for c in COUNTS.values())).expected_error()
    )
    assert errors["half_of_a_column_95"] == marginal(COUNTS["age"]).half_width(
        np.array([1.0, 1, 0, 0]), 0.95
    )
    merged = marginal(COUNTS["age"], "noise-first")
    biased = copula(marginals=(merged, *copula().marginals[1:]))
    assert set(biased.expected_error()) == {"records_95"}
    assert biased.count_by_model("age = 0 and sex = F").kind == "confidence"
    assert "error" not in biased.summary()


def test_an_answer_from_merged_values_says_so_beside_the_interval_of_what_was_published():
    merged = (marginal(COUNTS["age"], "noise-first"), *copula().marginals[1:])
    release = copula(marginals=merged)
    for query, is_unbiased in (("", True), ("sex = F", True), ("age = 1", False)):
        answer = release.count(query)
        assert answer.interval == "confidence"
        assert (SMOOTHED in (answer.assumption or "")) == (not is_unbiased)
    joined = release.count("age = 1 and rank = low").assumption
    assert joined.endswith(SMOOTHED)
    assert "Gaussian copula" in joined
