"""Counts and distances: intervals hold the truth as often as they say, and are not too wide."""

from fractions import Fraction
from itertools import combinations, product

import numpy as np
import pytest
from threadpoolctl import threadpool_limits

from dpublish import datasets
from dpublish.accuracy.noise_distribution import sum_quantile
from dpublish.methods.synth.kernels import ClassCounts
from dpublish.methods.synth.synth import Synth
from dpublish.privacy.budget import Budget
from dpublish.randomness import seeded
from methods.synth.synth_world import limit_tables, shorten_fits

COLUMNS = ("sex", "education", "region", "income")
ROWS, EPSILON, RELEASES = 2_000, Fraction(3), 210


@pytest.fixture(scope="module")
def people():
    return datasets.table("census", ROWS)


@pytest.fixture(scope="module")
def releases(people):
    """Many releases of the same rows; short fits, for any model has a distance and bounds."""
    found = []
    with pytest.MonkeyPatch.context() as patch, threadpool_limits(1):
        shorten_fits(patch, 8)
        limit_tables(patch, 2)
        for seed in range(RELEASES):
            method = Synth(columns=COLUMNS, quality_share=Fraction(1, 10))
            budget = Budget.seeded(EPSILON)
            found.append(method.release(people, budget=budget, rng=seeded(seed)))
    return found


@pytest.fixture(scope="module")
def truth(people):
    """The exact joint table of all columns."""
    classes = {(name, 0): np.arange(people.schema[name].size) for name in COLUMNS}
    kernel = ClassCounts(COLUMNS, classes, (tuple(classes),))
    (found,) = kernel.split(people.sum(kernel))
    return found


def queries(people, names):
    """Ask for every combination of single values of some columns, with where it is in a table."""
    for values in product(*(enumerate(people.schema[name].axis().labels) for name in names)):
        at = {name: code for name, (code, _) in zip(names, values, strict=True)}
        asked = " and ".join(
            f'{n} = "{label}"' for n, (_, label) in zip(names, values, strict=True)
        )
        yield asked, at


def exact(truth, at):
    return int(truth[tuple(at.get(name, slice(None)) for name in COLUMNS)].sum())


def exact_width(release, names, confidence=0.95):
    """Half-width of one cell of the most precise table of just these columns."""
    columns = tuple(sorted(release.names.index(name) for name in names))
    rates = [table.rate for table in release.counted if table.columns == columns]
    return sum_quantile(max(rates), 1, confidence) if rates else None


def test_cells_of_tables_have_intervals_of_the_right_width(releases, people, truth):
    held, widths = [], []
    pairs = list(combinations(COLUMNS, 2))
    for number, release in enumerate(releases):
        names = pairs[number % len(pairs)]
        width = exact_width(release, names)
        if width is None:
            continue
        for asked, at in list(queries(people, names))[number % 3 :: 3]:
            answer = release.count(asked)
            if answer.kind != "confidence" or answer.assumption is not None:
                continue
            held.append(answer.low <= exact(truth, at) <= answer.high)
            if answer.low > 0:
                widths.append((answer.high - answer.low) / 2 / width)
    assert len(held) > 500
    assert np.mean(held) >= 0.93
    assert np.mean(held) <= 0.985  # no needless width
    assert np.max(widths) <= 1.3
    assert np.min(widths) > 0.4


def test_values_of_one_column_have_intervals_that_hold_the_truth(releases, people, truth):
    held, shorter = [], []
    for number, release in enumerate(releases):
        name = COLUMNS[number % len(COLUMNS)]
        for asked, at in queries(people, (name,)):
            answer = release.count(asked)
            assert answer.kind == "confidence"
            held.append(answer.low <= exact(truth, at) <= answer.high)
            half = (answer.high - answer.low) / 4
            shorter.append(abs(answer.value - exact(truth, at)) <= half)
    assert len(held) > 600
    assert np.mean(held) >= 0.93
    assert np.mean(shorter) < 0.9  # half the width would not do


def test_the_number_of_records_has_an_interval(releases):
    answers = [release.count("") for release in releases]
    held = [answer.low <= ROWS <= answer.high for answer in answers]
    assert 0.9 <= np.mean(held) <= 0.995  # 0.95, and 3.5 standard deviations of 210 releases
    assert {answer.kind for answer in answers} == {"confidence"}


def test_other_counts_rest_on_the_model_and_say_so(releases, people, truth):
    held, asked_all = [], list(queries(people, COLUMNS))[::17]
    for release in releases[:20]:
        for asked, at in asked_all:
            answer = release.count(asked)
            assert answer.assumption
            assert answer.low <= answer.value <= answer.high
            if answer.kind == "model":
                held.append(answer.low <= exact(truth, at) <= answer.high)
    assert len(held) > 100
    assert np.mean(held) >= 0.93


def test_bounds_of_the_columns_alone_hold_the_truth(releases, people, truth):
    """Fréchet: what the noisy marginals allow, whatever the model is."""
    held, widths = [], []
    every = [x for names in combinations(COLUMNS, 3) for x in list(queries(people, names))[::11]]
    from dpublish.data.query.language import parse_query

    for number, release in enumerate(releases):
        for asked, at in every[number % 3 :: 3]:
            low, high = release._outer_bounds(parse_query(asked), 0.95)
            held.append(low <= exact(truth, at) <= high)
            widths.append(high - low)
    assert len(held) > 800
    assert np.mean(held) >= 0.97
    assert np.mean(widths) < 0.8 * ROWS


def test_counts_without_quality_are_bounded_by_the_columns_alone(people):
    method = Synth(columns=COLUMNS, quality_share=Fraction(0))
    release = method.release(people, budget=Budget.seeded(EPSILON), rng=seeded(3))
    answer = release.count(next(queries(people, COLUMNS))[0])
    assert "one by one allow" in answer.assumption
    assert (answer.kind, answer.bounds) == ("confidence", None)
    assert release.mean_distance() is None


def test_a_bin_that_a_query_cuts_is_answered_with_an_assumption(people):
    names = ("age", "sex", "income")
    release = Synth(columns=names).release(people, budget=Budget.seeded("3"), rng=seeded(3))
    low, _ = people.schema["age"].bounds
    answer = release.count(f"age < {int(low) + 7} and sex = Female")
    assert answer.assumption
    assert 0 <= answer.low <= answer.value <= answer.high <= 1.5 * ROWS


# --- Measured distances --------------------------------------------------------------------------


def distances(release, truth):
    """Compute the true distance of every pair, on the classes on which it was measured."""
    found = []
    for a, b in combinations(range(len(COLUMNS)), 2):
        others = tuple(i for i in range(truth.ndim) if i not in (a, b))
        pair = truth.sum(axis=others)
        lookups = [release.classes[i].levels[-1] for i in (a, b)]
        counts = np.zeros([int(x.max()) + 1 for x in lookups])
        np.add.at(counts, np.ix_(*lookups), pair)
        levels = tuple(len(release.classes[i].levels) - 1 for i in (a, b))
        model = release.model.expected((a, b), levels) / release.total
        found.append(0.5 * float(np.abs(counts / counts.sum() - model).sum()))
    return found


def test_measured_distances_hold_the_truth(releases, truth):
    assert releases[0].names == COLUMNS
    means, worsts, widths = [], [], []
    for release in releases:
        true = distances(release, truth)
        mean, worst = release.mean_distance(), release.worst_distance()
        means.append(mean.low <= np.mean(true) <= mean.high)
        worsts.append(worst.low <= max(true) <= worst.high)
        widths.append(mean.high - mean.value)
    assert np.mean(means) >= 0.93
    assert np.mean(worsts) >= 0.93
    # Noise of the sum and of the size, each 95 %, are what an interval is made of at most.
    release = releases[0]
    noise = sum_quantile(release.quality.summed_rate, 1, 0.975) / (64 * release.quality.pairs)
    size = release.count("", confidence=0.975)
    most = (noise + (size.high - size.low) / 2) / (2 * release.total) + release.quality.rounding
    assert np.mean(widths) <= 1.3 * most


def test_intervals_without_the_error_of_the_size_would_be_noticed(releases, truth):
    """The interval of the noise alone, as a first draft of the design had it."""
    short = []
    for release in releases:
        rate = release.quality.worst_rate
        noise = sum_quantile(rate, 1, 0.95) / 64 / (2 * release.total)
        value = release.quality.worst / 64 / (2 * release.total)
        short.append(abs(value - max(distances(release, truth))) <= noise)
        assert release.worst_distance().high - release.worst_distance().low > 0
    whole = np.mean(
        [
            r.worst_distance().low <= max(distances(r, truth)) <= r.worst_distance().high
            for r in releases
        ]
    )
    assert np.mean(short) < whole


def test_wider_confidence_gives_wider_intervals(releases):
    release = releases[5]
    widths = [release.mean_distance(c) for c in (0.5, 0.9, 0.95, 0.999)]
    assert [x.high - x.low for x in widths] == sorted(x.high - x.low for x in widths)
    assert widths[0].high < widths[-1].high
