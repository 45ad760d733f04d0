"""Mechanisms on small worst-case inputs: exact probabilities, drawn outcomes, a broken twin.

A specimen is made from a call that a method made: the same mechanism with the same epsilon and
the same sensitivity, on inputs so small that every outcome can be listed.  Its twin has half the
noise, that is twice the epsilon.
"""

from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass
from fractions import Fraction
from itertools import product
from math import ceil, floor
from typing import Any

import numpy as np
from scipy.stats import chi2, gamma, laplace, ncx2

from dpublish.accuracy.noise_distribution import noise_survival
from dpublish.auditing import distributions as exact
from dpublish.auditing.distributions import Odds
from dpublish.data.draws import choose
from dpublish.mechanisms import noise, quantile, rank_threshold, selection, tail_bounds, top_k
from dpublish.mechanisms import sparse_counts as sparse
from dpublish.mechanisms.continuous_noise import continuous_noise
from dpublish.mechanisms.sparse_vector import retraversal
from dpublish.mechanisms.sparse_vector.calibration import Calibration, calibrate
from dpublish.mechanisms.sparse_vector.stored import StoredVector
from dpublish.mechanisms.sparse_vector.vector import SparseVector
from dpublish.privacy.budget import Budget
from dpublish.randomness import RandomSource
from dpublish.testing.probabilities import pooled
from dpublish.testing.replay import Call

NOISE_DRAWS, CHOICES = 100_000, 3_000
"""How many outcomes are drawn: of noise, which is drawn many at a time, and of choices."""
_WIDEST = 10
"""Rankings of scores that move more are tried on scores that move by 1: all heights are listed."""
_LARGEST = 100
"""Beyond such an epsilon densities are too small for floats."""


@dataclass(frozen=True)
class Specimen:
    """A mechanism on two neighboring inputs.

    Attributes:
        name: The mechanism.
        epsilon: What a call costs at most.
        sensitivity: By how much its input may change; None if the call does not tell.
        worst: Return the probabilities of outcomes on the worst neighbors that are known, with
            the noise of so many times the epsilon.
        expected: Return the probabilities of the outcomes that `draw` draws.
        draw: Draw outcomes by the mechanism itself, with so many times the epsilon.
        draws: How many.
        is_attained: Whether the loss of the worst neighbors is epsilon itself.
        twin: What is wrong with the twin, which has twice the epsilon.
    """

    name: str
    epsilon: Fraction
    sensitivity: Fraction | None
    worst: Callable[[float], tuple[Odds, Odds]] | None
    expected: Callable[[float], Odds]
    draw: Callable[[int, RandomSource], Iterable[Hashable]]
    draws: int = CHOICES
    is_attained: bool = True
    twin: str = "half the noise"

    def is_telling(self, doubt: float, least: float) -> bool:
        """Check whether draws at twice the epsilon are sure to be noticed.

        They are not where the noise is nearly always 0, or scores say nothing at this epsilon.
        Outcomes are pooled until each is expected so often, as in the test of the draws.
        """
        here, there = self.expected(1), self.expected(2)
        pools = pooled(here, least / self.draws)
        wanted = np.array([sum(here[each] for each in pool) for pool in pools])
        found = np.array([sum(there.get(each, 0.0) for each in pool) for pool in pools])
        if len(pools) < 2 or wanted.min() * self.draws < least:
            return False
        apart = float(self.draws * ((found - wanted) ** 2 / wanted).sum())
        missed = ncx2(len(pools) - 1, apart).cdf(chi2(len(pools) - 1).isf(doubt))
        return bool(missed < doubt)


def specimen_of(call: Call) -> Specimen | None:
    """Make the specimen of a call; None if the call draws nothing that has one."""
    make = _MAKERS.get(call.kind)
    return None if make is None else make(call)


# --- Noise on counts and reals ----------------------------------------------------------------


def _noise(
    call: Call,
    epsilon: Fraction,
    rate: Fraction,
    add: Callable[[int, RandomSource, int], Any],
    draws: int = NOISE_DRAWS,
) -> Specimen:
    """Compare noise around 0 with noise around the sensitivity."""
    step, own = ceil(epsilon / rate), float(rate)

    def worst(factor: float) -> tuple[Odds, Odds]:
        return (
            exact.noise_odds(own * factor, own),
            exact.noise_odds(own * factor, own, center=step),
        )

    return Specimen(
        name=call.kind,
        epsilon=epsilon,
        sensitivity=epsilon / rate,
        worst=worst,
        expected=lambda factor: exact.noise_odds(own * factor, own),
        draw=lambda factor, rng: exact.noise_bins(add(factor, rng, draws), own),
        draws=draws,
    )


def _geometric(call: Call) -> Specimen:
    epsilon, rate = _paid(call), call.public[0]

    def add(factor: int, rng: RandomSource, draws: int) -> Any:
        zeros = np.zeros(draws, dtype=np.int64)
        return noise.add_geometric(
            zeros, sensitivity=int(epsilon / rate), budget=_budget(epsilon, factor), rng=rng
        )

    return _noise(call, epsilon, rate, add)


def _laplace(call: Call) -> Specimen:
    epsilon, (rate, exponent, _) = _paid(call), call.public

    def add(factor: int, rng: RandomSource, draws: int) -> Any:
        step = Fraction(2) ** exponent
        found = noise.add_laplace(
            np.zeros(draws),
            sensitivity=epsilon / rate * step,
            granularity=step,
            touched=1,
            budget=_budget(epsilon, factor),
            rng=rng,
        )
        return found.units

    return _noise(call, epsilon, rate, add)


def _order_statistic(call: Call) -> Specimen:
    epsilon, rate = _paid(call), call.public[0]
    scores = np.zeros(3, dtype=np.int64)

    def add(factor: int, rng: RandomSource, draws: int) -> Any:
        return [
            retraversal.noisy_order_statistic(
                scores,
                rank=1,
                sensitivity=int(epsilon / rate),
                budget=_budget(epsilon, factor),
                rng=rng,
            )
            for _ in range(draws)
        ]

    return _noise(call, epsilon, rate, add, CHOICES)


def _sparse_counts(call: Call) -> Specimen:
    """Compare a cell without a record and one with as many as may come or go."""
    epsilon, (rate, _, _) = _paid(call), call.public
    step, threshold, own = int(epsilon / rate), 2, float(rate)
    last = threshold + max(4, ceil(4 / own))

    def cell(count: int, factor: float) -> Odds:
        return _thresholded(count, own * factor, threshold, last)

    def draw(factor: int, rng: RandomSource) -> Iterable[Hashable]:
        for _ in range(CHOICES):
            found = sparse.sparse_counts(
                np.array([1]),
                np.array([step]),
                domain_size=3,
                threshold=threshold,
                sensitivity=step,
                budget=_budget(epsilon, factor),
                rng=rng,
            )
            shown = dict(zip(found.keys.tolist(), found.counts.tolist(), strict=True))
            yield tuple(min(shown.get(key, 0), last) for key in (0, 1))

    def expected(factor: float) -> Odds:
        empty, full = cell(0, factor), cell(step, factor)
        return {(a, b): p * q for a, p in empty.items() for b, q in full.items()}

    return Specimen(
        call.kind,
        epsilon,
        Fraction(step),
        lambda factor: (cell(0, factor), cell(step, factor)),
        expected,
        draw,
    )


def _thresholded(count: int, rate: float, threshold: int, last: int) -> Odds:
    """Give a cell noise, hide it below the threshold, and tell nothing apart from `last` on."""
    values = np.arange(threshold, last + 1) - count
    above = noise_survival(rate, values)
    hidden = noise_survival(rate, count - threshold + 1)
    shown = np.concatenate([above[:-1] - above[1:], above[-1:]])
    return {0: float(hidden), **dict(zip(range(threshold, last + 1), shown.tolist(), strict=True))}


def _continuous(call: Call) -> Specimen:
    """Compare length and signs of a vector with theirs; its density with a moved one."""
    epsilon = _paid(call)
    shape, dimensions, rate = call.public
    order = 1 if shape == "laplace" else 2
    cuts = gamma(dimensions, scale=1 / float(rate)).ppf(np.arange(1, 20) / 20)

    def draw(factor: int, rng: RandomSource) -> Iterable[Hashable]:
        for _ in range(CHOICES):
            found = continuous_noise(
                shape,
                dimensions,
                sensitivity=epsilon / rate,
                budget=_budget(epsilon, factor),
                rng=rng,
            )
            yield int(np.searchsorted(cuts, np.linalg.norm(found, order))), *_signs(found)

    def expected(factor: float) -> Odds:
        below = gamma(dimensions, scale=1 / (float(rate) * factor)).cdf(cuts)
        lengths = np.diff(np.concatenate([[0.0], below, [1.0]])).tolist()
        sides = list(product((False, True), repeat=min(2, dimensions)))
        return {
            (length, *signs): odds / len(sides)
            for length, odds in enumerate(lengths)
            for signs in sides
        }

    def worst(factor: float) -> tuple[Odds, Odds]:
        step = float(epsilon / rate)
        along = np.linspace(-4 * step, 4 * step, 9)  # density on a line through both centers
        scale = 1 / (float(rate) * factor)
        here, there = (laplace(moved, scale).pdf(along).tolist() for moved in (0, step))
        return dict(enumerate(here)), dict(enumerate(there))

    known = worst if epsilon < _LARGEST else None
    return Specimen(call.kind, epsilon, epsilon / rate, known, expected, draw)


def _signs(vector: np.ndarray) -> tuple[bool, ...]:
    """Tell on which sides of 0 the first and the last coordinate are."""
    ends = vector[[0, -1]] if vector.size > 1 else vector
    return tuple((ends > 0).tolist())


# --- Choices ----------------------------------------------------------------------------------


def _select(call: Call) -> Specimen:
    epsilon, (rate, _, method, _) = _paid(call), call.public

    def choose_one(scores: np.ndarray, factor: int, rng: RandomSource) -> int:
        return selection.select(
            scores,
            sensitivity_range=epsilon / rate,
            method=method,
            budget=_budget(epsilon, factor),
            rng=rng,
        )

    return _choice(call.kind, epsilon, rate, method, choose_one)


def _flip(call: Call) -> Specimen:
    """A choice for one of several disjoint parts; what it costs is what its rate says."""
    rate = call.public[0]

    def choose_one(scores: np.ndarray, factor: int, rng: RandomSource) -> int:
        distances = selection.distances_below_best(scores)
        return selection.permute_and_flip(rate * factor, distances, rng)

    # One record moves two scores against each other by a step of the lattice, or more: what
    # that costs was measured in the replay.
    return _choice(call.kind, rate, rate, selection.PERMUTE_AND_FLIP, choose_one)


def _choice(
    name: str,
    epsilon: Fraction,
    rate: Fraction,
    method: str,
    choose_one: Callable[[np.ndarray, int, RandomSource], int],
) -> Specimen:
    flips = method == selection.PERMUTE_AND_FLIP
    odds = exact.flip_odds if flips else exact.exponential_odds
    own, widest = float(rate), floor(epsilon / rate)
    apart = max(1, round(1 / own))
    scores = [0, -apart, -2 * apart, -2 * apart]
    behind = 0 if flips else ceil(40 / own)  # the exponential mechanism comes near to epsilon

    def worst(factor: float) -> tuple[Odds, Odds]:
        return (
            odds([0, -behind], own * factor),
            odds([0, -behind - widest], own * factor),
        )

    known = np.array(scores)
    return Specimen(
        f"{name} ({method})",
        epsilon,
        epsilon / rate,
        worst,
        lambda factor: odds(scores, own * factor),
        lambda factor, rng: (choose_one(known, factor, rng) for _ in range(CHOICES)),
        is_attained=widest == epsilon / rate,
    )


def _ranking(call: Call) -> Specimen:
    epsilon, (own, (candidates,), most) = _paid(call), call.public
    moved = epsilon / (own * max(1, min(most, candidates - 1)))
    if moved > _WIDEST:
        moved = Fraction(1)
    count = min(2, most)
    rate = float(epsilon / moved) / count
    apart = max(1, round(1 / rate))
    scores = np.array([2 * apart, apart, apart, 0])

    def draw(factor: int, rng: RandomSource) -> Iterable[Hashable]:
        for _ in range(CHOICES):
            yield tuple(
                top_k.top_k(
                    scores,
                    count=count,
                    sensitivity_range=moved,
                    budget=_budget(epsilon, factor),
                    rng=rng,
                )
            )

    def worst(factor: float) -> tuple[Odds, Odds]:
        ahead = ceil(9 * moved)
        here, there = [0] * count + [ahead] * 2, [0] * count + [ahead + floor(moved)] * 2
        return (
            exact.ranked_odds(here, rate * factor, count),
            exact.ranked_odds(there, rate * factor, count),
        )

    return Specimen(
        call.kind,
        epsilon,
        moved,
        worst,
        lambda factor: exact.ranked_odds(scores.tolist(), rate * factor, count),
        draw,
        is_attained=moved == floor(moved),
    )


def _quantile(call: Call) -> Specimen:
    epsilon, (rate, share, *_) = _paid(call), call.public
    part, parts, cells = share.numerator, share.denominator, 6
    values = [0, 0, 1, 5, 5, 5, 6] * max(1, round(2 / float(epsilon)))
    own = float(rate)

    def odds(known: list[int], points: int, factor: float) -> Odds:
        return exact.weigh(exact.quantile_scores(known, part, parts, points), own * factor)

    def draw(factor: int, rng: RandomSource) -> Iterable[Hashable]:
        for _ in range(CHOICES):
            found = quantile.quantile(
                np.array(values),
                probability=share,
                lower=0,
                upper=cells,
                cells=cells,
                budget=_budget(epsilon, factor),
                rng=rng,
            )
            yield int(found)

    def worst(factor: float) -> tuple[Odds, Odds]:
        points = 100_000
        known, added = _worst_values(share, points)
        return odds(known, points, factor), odds([*known, added], points, factor)

    return Specimen(
        call.kind,
        epsilon,
        Fraction(quantile.rank_range(share), parts),
        worst,
        lambda factor: odds(values, cells, factor),
        draw,
        is_attained=False,
    )


def _worst_values(share: Fraction, cells: int) -> tuple[list[int], int]:
    """Arrange values so that one more of them lifts nearly all points and sinks one."""
    if share > Fraction(1, 2):
        values, added = _worst_values(1 - share, cells)
        return [cells - value for value in values], cells - added
    if share == 0:
        return [], cells - 1
    return [cells - 1] * ceil((1 - share) / share), 0


def _threshold(call: Call) -> Specimen:
    epsilon, (rate, _, percentile) = _paid(call), call.public
    sensitivity = epsilon / (2 * rate * percentile.denominator)
    rest, parts = (1 - percentile).numerator, percentile.denominator
    highest, size = 12, min(2_000, max(4, ceil(8 * sensitivity / epsilon)))
    values = np.arange(size) % highest + 1

    def odds(factor: float) -> Odds:
        counted = np.array([(values >= point).sum() for point in range(1, highest + 1)])
        scores = -np.abs(parts * counted - rest * size).astype(float)
        return {
            point + 1: p
            for point, p in enumerate(exact.weigh(scores, float(rate) * factor).values())
        }

    def draw(factor: int, rng: RandomSource) -> Iterable[Hashable]:
        for _ in range(CHOICES):
            yield rank_threshold.choose_threshold(
                values,
                highest=highest,
                percentile=percentile,
                sensitivity=sensitivity,
                budget=_budget(epsilon, factor),
                rng=rng,
            )

    return Specimen(call.kind, epsilon, sensitivity, None, odds, draw)


def _bounds(call: Call) -> Specimen:
    epsilon, sides = _paid(call), call.public[2]
    size = max(1, round(6 / float(epsilon)))
    counts, price = np.array([1, 1, 2, 1, 1]) * size, 4 if sides == "both" else 3

    def side(known: np.ndarray, factor: float) -> Odds:
        return exact.flip_odds(_far_out(known.tolist(), size), float(epsilon) * factor / price)

    def expected(factor: float) -> Odds:
        upper = side(counts, factor) if sides != "lower" else {None: 1.0}
        lower = side(counts[::-1], factor) if sides != "upper" else {None: 1.0}
        return {
            (None if i is None else 2 - int(i), j): p * q  # type: ignore[call-overload]
            for i, p in lower.items()
            for j, q in upper.items()
        }

    def draw(factor: int, rng: RandomSource) -> Iterable[Hashable]:
        for _ in range(CHOICES):
            yield tuple(
                tail_bounds.choose_bounds(
                    counts,
                    tail=Fraction(0),
                    least=size,
                    sides=sides,
                    budget=_budget(epsilon, factor),
                    rng=rng,
                )
            )

    return Specimen(call.kind, epsilon, Fraction(price), None, expected, draw)


def _far_out(counts: list[int], least: int) -> list[float]:
    """Score points as upper bounds that `least` records lie beyond, by definition, in records."""
    target = min(least, sum(counts) / 2)
    scores = []
    for point in range((len(counts) + 1) // 2):
        above = sum(counts[2 * point + 1 :])
        before = sum(counts[max(2 * point - 1, 0) :])
        scores.append(-max(0, 2 * (target - before), above - target))
    return scores


# --- Comparisons and samples ------------------------------------------------------------------


def _sparse_vector(call: Call) -> Specimen:
    epsilon, settings = call.public[0], dict(call.public[1:])
    return _comparisons(call.kind, epsilon, settings, is_stored=False)


def _stored_vector(call: Call) -> Specimen:
    sensitivity, most, epsilon, *rest = call.public
    settings = {"sensitivity": sensitivity, "max_positives": most, **dict(rest)}
    return _comparisons(call.kind, epsilon, settings, is_stored=True)


def _comparisons(
    name: str, epsilon: Fraction, settings: dict[str, Any], *, is_stored: bool
) -> Specimen:
    """Ask of answers beside the threshold; the worst neighbors move the two kinds apart."""
    most, moved = min(2, settings["max_positives"]), settings["sensitivity"]
    given = {**settings, "max_positives": most}

    def calibrated(factor: float) -> Calibration:
        budget = Budget.seeded(epsilon * Fraction(factor))
        return calibrate(**{"monotonic": False, **given}, budget=budget)

    own = calibrated(1)
    apart = max(1, round(1 / float(own.answer_rate)))
    answers = [own.offset, own.offset - apart, own.offset + apart]

    def worst(factor: float) -> tuple[Odds, Odds]:
        found = calibrated(factor)
        scale = ceil(max(1 / found.answer_rate, 1 / found.threshold_rate, moved))
        near, far = found.offset + 10 * scale, found.offset - 60 * scale
        fall = 0 if given.get("monotonic") else moved
        outcome = [False] * 16 + [True] * most
        here, there = (
            exact.comparison_probability(found, asked, outcome)
            for asked in (
                [near] * 16 + [far] * most,
                [near + moved] * 16 + [far - fall] * most,
            )
        )
        return {"worst": here}, {"worst": there}

    def draw(factor: int, rng: RandomSource) -> Iterable[Hashable]:
        asks = _ask_stored if is_stored else _ask
        for _ in range(CHOICES):
            yield asks(given, answers, factor * epsilon, rng)

    return Specimen(
        name,
        epsilon,
        Fraction(moved),
        worst,
        lambda factor: exact.comparison_odds(calibrated(factor), answers, most),
        draw,
        is_attained=False,
    )


def _ask(given: dict[str, Any], answers: list[int], epsilon: Fraction, rng: RandomSource) -> Any:
    vector = SparseVector(**given, budget=Budget.seeded(epsilon), rng=rng)
    return tuple(vector.above_each(np.array(answers), 0).tolist())


def _ask_stored(
    given: dict[str, Any], answers: list[int], epsilon: Fraction, rng: RandomSource
) -> Any:
    told = []
    vector = StoredVector.draw(**given, budget=Budget.seeded(epsilon), rng=rng)
    for answer in answers:
        is_above, vector = vector.above(answer, 0, rng)
        told.append(is_above)
        if not vector.positives_left:
            break
    return tuple(told)


def _sample(call: Call) -> Specimen | None:
    """Keep records at random: a twin keeps them half as often as it says."""
    rate: Fraction = call.public[0]
    if rate >= 1:
        return None

    def kept(factor: float) -> float:
        return float(rate) / factor

    return Specimen(
        call.kind,
        Fraction(0),
        None,
        None,
        lambda factor: {True: kept(factor), False: 1 - kept(factor)},
        lambda factor, rng: choose(rate / factor, NOISE_DRAWS, rng).tolist(),
        draws=NOISE_DRAWS,
        twin="records kept half as often",
    )


def _paid(call: Call) -> Fraction:
    if call.epsilon is None:
        raise AssertionError(f"{call.kind} was paid by no share of the budget")
    return call.epsilon


def _budget(epsilon: Fraction, factor: int) -> Budget:
    return Budget.seeded(epsilon * factor)


_MAKERS: dict[str, Callable[[Call], Specimen | None]] = {
    "add_geometric": _geometric,
    "add_laplace": _laplace,
    "noisy_order_statistic": _order_statistic,
    "sparse_counts": _sparse_counts,
    "continuous_noise": _continuous,
    "select": _select,
    "permute_and_flip": _flip,
    "top_k": _ranking,
    "quantile": _quantile,
    "choose_threshold": _threshold,
    "choose_bounds": _bounds,
    "sparse vector": _sparse_vector,
    "stored vector": _stored_vector,
    "sample": _sample,
}
UNTESTED: dict[str, str] = {
    "minimize_on": "measured in the replay, from gradients on the simulated tables",
    "comparisons": "part of the sparse vector",
    "value": "noise of the sparse vector's budget",
    "words": "public draws, equal on all tables",
    "split": "each record in one block; its loss is measured in the replay",
    "blocks": "each record in one block; its loss is measured in the replay",
    "sample_by": "kept by level; its loss is measured in the replay",
}
"""Calls that have no specimen of their own, and why."""


def why_untested(kind: str) -> str:
    """Tell why no call of this kind has a specimen of its own."""
    if kind in UNTESTED:
        return UNTESTED[kind]
    if kind not in _MAKERS:
        return "none is written for it"
    if kind == "sample":
        return "all records are kept"
    return "at its epsilon too few draws differ from those at twice the epsilon"
