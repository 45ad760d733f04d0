"""Replay: hand a method what the mechanisms returned on another table, and watch what it does.

Only mechanisms may let something of the rows out.  So if every mechanism returns on one table
what it returned on another one, a method must do and publish exactly the same there, however
different the two tables are: whatever differs went around the mechanisms.  And between
neighbors the same values cost at most epsilon, added up over the calls by each mechanism's own
account: the rate times the change for noise, the rate times the range for choices.

A `Tape` holds the calls of one run.  `playing` puts stand-ins behind the verbs of a run, through
which methods draw, and of a stream's step.  The first tape records; a tape that was made from
another one plays that one back, and fails at the first call that is not the recorded one.

Three kinds of randomness are told apart:

- noise and choices: what the mechanism returned is recorded and played back;
- words that a method draws itself (random starts, the order of candidates): they are public,
  recorded and played back, so a mechanism that no one listed here shows as a difference;
- coins of records (samples, blocks): every record has its own, which its neighbor tables share.
"""

import contextlib
import copy
import dataclasses
import importlib
import inspect
import io
import pkgutil
import sys
import warnings
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from functools import partial, wraps
from itertools import product
from math import exp, log, prod
from types import FunctionType, ModuleType
from typing import Any
from unittest.mock import patch

import numpy as np
import pyarrow as pa

from dpublish.data import draws
from dpublish.data.engines import chosen as engine_chosen
from dpublish.data.engines import local as engine_local
from dpublish.data.engines.local import LocalTable
from dpublish.mechanisms import noise
from dpublish.mechanisms.continuous_noise import continuous_noise
from dpublish.mechanisms.exact import lattice
from dpublish.mechanisms.exact import sampler as exact
from dpublish.mechanisms.quantile import _positions, equal_stretches, quantile, rank_range
from dpublish.mechanisms.rank_threshold import choose_threshold, rank_scale
from dpublish.mechanisms.selection import permute_and_flip, select, selection_rate
from dpublish.mechanisms.sparse_counts import _merge, sparse_counts
from dpublish.mechanisms.sparse_vector.retraversal import noisy_order_statistic
from dpublish.mechanisms.sparse_vector.stored import StoredVector
from dpublish.mechanisms.sparse_vector.vector import SparseVector
from dpublish.mechanisms.tail_bounds import bounds_rate, choose_bounds, tail_scores
from dpublish.mechanisms.top_k import ONE_SHOT, top_k
from dpublish.mechanisms.weighted_choice import weighted_choice
from dpublish.methods.dpcopula import mle
from dpublish.methods.linear_models.kernel_gradients import LinearGradients
from dpublish.methods.linear_models.minimizer import LOSSES, minimize_on
from dpublish.privacy.epsilon import parse_exact
from dpublish.randomness import seeded

ROUNDING = 1e-9
"""Losses are added up in floats."""
_HOOKED = ("core", "data", "mechanisms", "methods", "publishing")
"""The packages whose modules publish."""

Public = tuple[Any, ...]
Given = Mapping[str, Any]
"""What a mechanism was called with, by name."""
Described = tuple[Public, Any]
"""What of it is public, and what is private."""


AROUND = "given the same noise, something else was published from other rows"


def require(holds: object, rule: str) -> None:
    """Refuse to go on, in words, if a rule is broken."""
    if not holds:
        raise AssertionError(rule)


class Diverged(AssertionError):
    """The method asked something else although it was given the same values."""


@dataclass
class Call:
    """One query to a mechanism, or one draw."""

    kind: str
    public: tuple[Any, ...]
    private: Any = field(default=None, repr=False)
    output: Any = field(default=None, repr=False)
    epsilon: Fraction | None = None


Forge = Callable[[str, Any], Any]
"""Puts another outcome instead of what a mechanism of that kind drew."""


def all_zero(kind: str, output: Any) -> Any:
    """Let noisy numbers be 0, which ties them all: rare, and as possible as others."""
    return _numbers_of(kind, output, 0)


def all_low(kind: str, output: Any) -> Any:
    """Let noisy numbers be far below 0."""
    return _numbers_of(kind, output, -1_000)


def _numbers_of(kind: str, output: Any, number: int) -> Any:
    if kind == noise.add_geometric.__name__:
        return np.full_like(output, number)
    if kind == noise.add_laplace.__name__:
        return dataclasses.replace(output, units=np.full_like(output.units, number))
    return output


class Tape:
    """What was asked and returned in one run.

    A tape that records may `forge` what mechanisms return: whatever that is, other rows must
    publish the same with it.
    """

    def __init__(
        self,
        played: "Tape | None" = None,
        *,
        seed: int = 1,
        fates: Mapping[int, tuple[int, bool]] | None = None,
        forge: "Forge | None" = None,
    ) -> None:
        self.played = played
        self.forge = forge
        self.calls: list[Call] = []
        self.source = PublicWords(self)
        self.fates = {} if fates is None else fates
        self.coins: dict[int, Coins] = {}
        self._seed: int = seed if played is None else played._seed
        self._noise = seeded(self._seed)
        self._is_inside = False

    @property
    def is_inside(self) -> bool:
        """Whether a mechanism is at work: what it calls is part of it."""
        return self._is_inside

    def answer(
        self,
        kind: str,
        public: tuple[Any, ...],
        private: Any,
        draw: Callable[[Any], Any],
        epsilon: Fraction | None = None,
    ) -> Any:
        """Let a mechanism draw, or give what it returned on the tape that is played."""
        call = Call(kind, public, copy.deepcopy(private), epsilon=epsilon)
        before = self._expected(call)
        self._is_inside = True
        try:  # in any case, for it spends the budget and may refuse
            output = draw(self._noise)
        finally:
            self._is_inside = False
        if before is not None:
            output = before.output
        elif self.forge is not None:
            output = self.forge(kind, output)
        call.output = copy.deepcopy(output)
        self.calls.append(call)
        return copy.deepcopy(call.output)

    def flip(self, kind: str, public: tuple[Any, ...]) -> "Coins":
        """Give every record a coin that depends on its position alone."""
        position = len(self.calls)
        call = Call(kind, public)
        self._expected(call)
        self.calls.append(call)
        self.coins[position] = Coins(self._seed * 1_000_003 + position, self.fates.get(position))
        return self.coins[position]

    def end(self) -> None:
        """Refuse to have asked less than what is played."""
        if self.played is not None and len(self.calls) < len(self.played.calls):
            raise Diverged(f"{self.played.calls[len(self.calls)]} was not asked")

    def _expected(self, call: Call) -> Call | None:
        if self.played is None:
            return None
        position = len(self.calls)
        if position >= len(self.played.calls):
            raise Diverged(f"{call} was asked after the last call of the tape")
        expected = self.played.calls[position]
        if _asked(expected) != _asked(call):
            raise Diverged(f"call {position} is {call}, but was {expected}")
        return expected


def _asked(call: Call) -> tuple[Any, ...]:
    return call.kind, call.public, call.epsilon


class PublicWords:
    """The source that a method is given: words that it draws itself are public."""

    def __init__(self, tape: Tape) -> None:
        self._tape = tape

    def words(self, count: int) -> Any:
        """Draw words, or play them back."""
        return self._tape.answer("words", (int(count),), None, lambda rng: rng.words(count))


class Coins:
    """Words for records, one after the other; `fate` settles one of them."""

    def __init__(self, seed: int, fate: tuple[int, bool] | None) -> None:
        self._source = seeded(seed)
        self._fate = fate
        self.rates: list[Fraction] = []

    @property
    def last(self) -> tuple[int, Fraction]:
        """Position of the last record, and the probability with which it is drawn."""
        return len(self.rates) - 1, self.rates[-1]

    def words(self, count: int) -> Any:
        """Draw a word for each of the next records; the least one always keeps a record."""
        drawn = self._source.words(count).copy()
        if self._fate is not None:
            position, is_in = self._fate
            position -= len(self.rates)
            if 0 <= position < count:
                drawn[position] = 0 if is_in else np.iinfo(np.uint64).max
        return drawn


def _choose(rate: Fraction, count: int, rng: Coins) -> Any:
    drawn = draws.choose(rate, count, rng)
    rng.rates += [rate] * count
    return drawn


def _choose_by(rates: Any, codes: Any, rng: Coins) -> Any:
    drawn = draws.choose_by(rates, codes, rng)
    rng.rates += [rates[code] for code in codes.tolist()]
    return drawn


# --- What each mechanism is asked in public, what it is given, and what a change costs ----------


@dataclass(frozen=True)
class Mechanism:
    """A mechanism: what of its arguments is public and what private, and its loss."""

    function: Callable[..., Any]
    describe: Callable[[Mapping[str, Any]], tuple[tuple[Any, ...], Any]]
    loss: Callable[[tuple[Any, ...], Any, Any, Any], float]
    applies: Callable[[Mapping[str, Any]], bool] = lambda given: True

    def stand_in(self, tape: Tape) -> Callable[..., Any]:
        """Make the function that is called instead."""
        signature = inspect.signature(self.function)

        @wraps(self.function)
        def standing_in(*args: Any, **named: Any) -> Any:
            bound = signature.bind(*args, **named)
            bound.apply_defaults()
            given = dict(bound.arguments)
            if tape.is_inside or not self.applies(given) or given.get("rng") is not tape.source:
                # A source of one's own is played back by no tape: what it draws must be the same
                # on every table, or the releases differ.
                return self.function(**given)
            public, private = self.describe(given)
            paid = given["budget"].epsilon if "budget" in given else None

            def draw(rng: Any) -> Any:
                return self.function(**(given | {"rng": rng} if "rng" in given else given))

            return tape.answer(self.function.__name__, public, private, draw, paid)

        return standing_in


def _geometric(given: Given) -> Described:
    counts = given["counts"]
    rate = given["budget"].epsilon / int(given["sensitivity"])
    return (rate, counts.shape), noise.clip_counts(counts)


def _laplace(given: Given) -> Described:
    granularity, touched, budget = given["granularity"], given["touched"], given["budget"]
    reals = lattice.require_reals(given["values"])
    wide = parse_exact(given["sensitivity"], "sensitivity")
    positions = max(reals.size, 1) if touched is None else min(max(reals.size, 1), int(touched))
    if granularity is None:
        exponent = lattice.choose_exponent(wide, budget.epsilon, positions)
    else:
        exponent = lattice.exponent_of(granularity)
    rate = budget.epsilon / lattice.lattice_sensitivity(wide, exponent, positions)
    return (rate, exponent, reals.shape), lattice.floor_units(reals, exponent)


def _distance(public: Public, here: Any, there: Any, output: Any) -> float:
    apart = np.abs(np.asarray(here).astype(object) - np.asarray(there).astype(object))
    return float(public[0]) * float(apart.sum())


def _selected(given: Given) -> Described:
    rate = selection_rate(given["budget"].epsilon, given["sensitivity_range"])
    known = None if given["weights"] is None else tuple(given["weights"].tolist())
    return (rate, given["scores"].shape, given["method"], known), given["scores"]


def _flipped(given: Given) -> Described:
    return (given["rate"], given["distances"].shape), -given["distances"]


def _range(public: Public, here: Any, there: Any, output: Any) -> float:
    moves = np.asarray(there).astype(object) - np.asarray(here).astype(object)
    return float(public[0]) * float(max(moves) - min(moves))


def _ranked(given: Given) -> Described:
    scores, count = given["scores"], int(given["count"])
    paying = max(1, min(count, scores.size - 1))
    rate = selection_rate(given["budget"].epsilon / paying, given["sensitivity_range"])
    return (rate, scores.shape, count), scores


def _winners(public: Public, here: Any, there: Any, output: Any) -> float:
    # Winners pay for what they rise less than the candidate that rises most, or fall behind.
    moves = np.asarray(there).astype(object) - np.asarray(here).astype(object)
    won = moves[output]
    return float(public[0]) * float(max((max(moves) - won).sum(), (won - min(moves)).sum()))


def _quantile(given: Given) -> Described:
    share = Fraction(given["probability"])
    lower, upper, cells = float(given["lower"]), float(given["upper"]), int(given["cells"])
    rate = selection_rate(given["budget"].epsilon, rank_range(share))
    positions = _positions(given["values"], lower, upper, cells)
    return (rate, share, lower, upper, cells), positions


def _quantile_range(public: Public, here: Any, there: Any, output: Any) -> float:
    rate, share, _, _, cells = public
    scores = []
    points = np.unique(np.concatenate([here, there, here + 1, there + 1, [0, cells]]))
    points = points[(points >= 0) & (points <= cells)]
    for positions in (here, there):
        runs = equal_stretches(positions, probability=share, cells=cells)
        order = np.argsort(runs.starts)
        found = np.searchsorted(runs.starts[order], points, side="right") - 1
        scores.append(runs.scores[order][found])
    return _range((rate,), scores[0], scores[1], output)


def _threshold(given: Given) -> Described:
    values, percentile = given["exact"], given["percentile"]
    rate = selection_rate(given["budget"].epsilon, rank_scale(given["sensitivity"], percentile))
    return (rate, given["highest"], percentile), np.sort(values[values > 0].ravel())


def _threshold_range(public: Public, here: Any, there: Any, output: Any) -> float:
    rate, highest, percentile = public
    points = np.unique(np.clip(np.concatenate([here, here + 1, there, there + 1]), 1, highest))
    points = np.union1d(points, [1, highest])
    rest, parts = (1 - percentile).numerator, percentile.denominator
    scores = [
        -np.abs(parts * (known.size - np.searchsorted(known, points)) - rest * known.size)
        for known in (here, there)
    ]
    return _range((rate,), scores[0], scores[1], output)


def _bounds(given: Given) -> Described:
    counts, tail, sides = given["counts"], given["tail"], given["sides"]
    sides_scored = {"both": (counts, counts[::-1]), "upper": (counts,), "lower": (counts[::-1],)}
    scores = [tail_scores(one, tail=tail, least=given["least"]) for one in sides_scored[sides]]
    rate = bounds_rate(given["budget"].epsilon, tail, sides)
    return (rate, counts.shape, sides), np.array(scores)


def _bounds_ranges(public: Public, here: Any, there: Any, output: Any) -> float:
    return sum((_range(public, *scores, output) for scores in zip(here, there, strict=True)), 0.0)


def _sparse(given: Given) -> Described:
    size, counts = int(given["domain_size"]), given["counts"]
    merged = _merge(given["keys"].astype(np.int64), counts, size)
    cells = dict(zip(merged.keys.tolist(), merged.counts.tolist(), strict=True))
    rate = given["budget"].epsilon / int(given["sensitivity"])
    return (rate, size, int(given["threshold"])), cells


def _sparse_distance(public: Public, here: Any, there: Any, output: Any) -> float:
    cells = here.keys() | there.keys()
    apart = sum(abs(int(here.get(cell, 0)) - int(there.get(cell, 0))) for cell in cells)
    return float(public[0]) * apart


def _order_statistic(given: Given) -> Described:
    scores, rank = given["scores"], given["rank"]
    rate = given["budget"].epsilon / given["sensitivity"]
    return (rate, scores.shape, rank), np.sort(scores)[-rank]


def _hidden_noise(given: Given) -> Described:
    rate = (given["budget"].epsilon - given["reserve"]) / given["sensitivity"]
    return (given["shape"], given["dimensions"], rate), None


def _nothing(public: Public, here: Any, there: Any, output: Any) -> float:
    return 0.0


MECHANISMS = (
    Mechanism(noise.add_geometric, _geometric, _distance),
    Mechanism(noise.add_laplace, _laplace, _distance),
    Mechanism(select, _selected, _range),
    Mechanism(permute_and_flip, _flipped, _range),
    Mechanism(top_k, _ranked, _winners, lambda given: given["method"] == ONE_SHOT),
    Mechanism(quantile, _quantile, _quantile_range),
    Mechanism(choose_threshold, _threshold, _threshold_range),
    Mechanism(choose_bounds, _bounds, _bounds_ranges),
    Mechanism(sparse_counts, _sparse, _sparse_distance),
    Mechanism(noisy_order_statistic, _order_statistic, _distance),
    Mechanism(continuous_noise, _hidden_noise, _nothing),
)
SAMPLERS = (
    exact.geometric,
    exact.discrete_laplace,
    exact.bernoulli_exp,
    exact.skip_positions,
    weighted_choice,
)
"""Samplers of mechanisms: no one else may draw from them."""

_LOSSES = {mechanism.function.__name__: mechanism.loss for mechanism in MECHANISMS}


def _guard(sampler: Callable[..., Any], tape: Tape) -> Callable[..., Any]:
    """Let a sampler draw for mechanisms only."""

    @wraps(sampler)
    def guarded(*args: Any, **named: Any) -> Any:
        if any(given is tape.source for given in (*args, *named.values())):
            raise AssertionError(
                f"{sampler.__name__} draws for something that replay does not know"
            )
        return sampler(*args, **named)

    return guarded


# --- Minimizers: their noise is hidden in what they find ----------------------------------------


class _Fit:
    """One problem of a minimizer on one table; a table cannot be copied, and need not be."""

    def __init__(self, run: Any, task: Any, positive: Any, ridge: Any, pull: Any) -> None:
        self.given = (run, task, positive, ridge, pull)
        self.found: Any = None

    def __deepcopy__(self, memo: Any) -> "_Fit":
        return self

    def slope_and_curvature(self, weights: Any) -> tuple[Any, Any]:
        """Give the gradient without the linear term, and the Hessian, at `weights`."""
        run, task, positive, ridge, _ = self.given
        kernel = LinearGradients(
            task.schema,
            task.features,
            task.target.name,
            positive,
            weights,
            LOSSES[task.model],
            second=True,
        )
        sums = kernel.read(run.sum(kernel))
        return sums.slope + ridge * weights, sums.curvature + ridge * np.eye(weights.size)


def _minimize_stand_in(tape: Tape) -> Callable[..., Any]:
    @wraps(minimize_on)
    def standing_in(run: Any, task: Any, positive: Any, ridge: Any, pull: Any) -> Any:
        fit = _Fit(run, task, positive, ridge, pull)

        def find(_: Any) -> Any:
            fit.found = minimize_on(run, task, positive, ridge, pull)
            return fit.found

        asked = (task.model, tuple(positive), float(ridge), pull.shape)
        return tape.answer("minimize_on", asked, fit, find)

    return standing_in


def _minimum_loss(drawn: Call, here: Call, there: Call) -> float:
    """Account for a minimizer whose noise was `drawn` just before.

    Noise that is added to the minimum hides how far that moves.  Noise within the objective: the
    weights belong to another linear term there, so to other noise, and volumes change, too.
    """
    shape, _, rate = drawn.public
    order = 1 if shape == "laplace" else 2
    pull = here.private.given[-1]
    if not pull.any():
        return float(rate) * float(np.linalg.norm(here.private.found - there.private.found, order))
    widths = pull / drawn.output
    slope, curvature = here.private.slope_and_curvature(here.output)
    other_slope, other_curvature = there.private.slope_and_curvature(here.output)
    moved = np.linalg.norm((slope - other_slope) / widths, order)
    volumes = np.linalg.slogdet(curvature)[1] - np.linalg.slogdet(other_curvature)[1]
    return float(rate) * float(moved) + abs(float(volumes))


# --- Sparse vectors: a run of comparisons is one mechanism --------------------------------------


class _Comparisons:
    """Stands in for a `SparseVector`."""

    def __init__(self, tape: Tape, **settings: Any) -> None:
        self._tape = tape
        real = tape.answer(
            "sparse vector",
            (
                settings["budget"].epsilon,
                *((name, settings[name]) for name in sorted(settings) if name not in _UNTOLD),
            ),
            None,
            lambda rng: _Held(SparseVector(**settings | {"rng": rng}), settings["max_positives"]),
        )
        self._real = real.vector
        self.calibration = self._real.calibration
        self.positives_left = settings["max_positives"]
        self._number = len(tape.calls) - 1

    def above_each(self, answers: Any, thresholds: Any) -> Any:
        """Compare, or play back how it came out."""
        public = (*self._rates(), np.asarray(thresholds).tolist(), answers.shape)
        outcome = self._tape.answer(
            "comparisons", public, answers, lambda rng: self._compare(answers, thresholds)
        )
        self.positives_left -= int(outcome.sum())
        return outcome

    def above(self, answer: int, threshold: int) -> bool:
        """Compare one answer."""
        return bool(self.above_each(np.array([answer]), threshold)[0])

    def noisy_value(self, answer: int) -> int:
        """Publish a value that was above."""
        found: int = self._tape.answer(
            "value", (self.calibration.value_rate,), answer, lambda rng: self._value(answer)
        )
        return found

    def _rates(self) -> tuple[Any, ...]:
        return self._number, self.calibration.threshold_rate, self.calibration.answer_rate

    def _compare(self, answers: Any, thresholds: Any) -> Any:
        # When a tape is played the outcomes are known, and this vector may have none left.
        return None if self._tape.played else self._real.above_each(answers, thresholds)

    def _value(self, answer: int) -> Any:
        return None if self._tape.played else self._real.noisy_value(answer)


class _Held:
    """A real vector on a tape: it cannot be copied."""

    def __init__(self, vector: SparseVector, positives: int) -> None:
        self.vector = vector

    def __deepcopy__(self, memo: Any) -> "_Held":
        return self


_UNTOLD = ("budget", "rng")


_DRAWN = ("sensitivity", "max_positives", "budget", "rng")


def _stored_draw(tape: Tape) -> Any:
    original = StoredVector.draw

    def draw(cls: Any, /, **given: Any) -> Any:
        settings = {name: item for name, item in given.items() if name not in _DRAWN}
        sensitivity, max_positives, budget = (given[name] for name in _DRAWN[:-1])
        return tape.answer(
            "stored vector",
            (sensitivity, max_positives, budget.epsilon, *sorted(settings.items())),
            None,
            lambda rng: original(
                sensitivity=sensitivity,
                max_positives=max_positives,
                budget=budget,
                rng=rng,
                **settings,
            ),
        )

    return classmethod(draw)


def _stored_above(tape: Tape) -> Any:
    original = StoredVector.above

    def above(self: Any, answer: Any, threshold: Any, rng: Any) -> Any:
        # A stored vector is known by its latest draw: only one is in force at a time.
        number = max(i for i, call in enumerate(tape.calls) if call.kind == "stored vector")
        is_above = tape.answer(
            "comparisons",
            (number, self.threshold_rate, self.answer_rate, int(threshold), self.positives_left),
            np.array([answer]),
            lambda rng: np.array([original(self, answer, threshold, rng)[0]]),
        )[0]
        left = self.positives_left - int(is_above)
        return bool(is_above), dataclasses.replace(self, positives_left=left)

    return above


def _run_loss(pairs: list[tuple[Call, Call]]) -> float:
    """Account for one run of comparisons.

    Pair the threshold's noise z here with z + s there, s being the most by which an answer that
    was below rises, so that it stays below; an answer that was above needs what s exceeds its
    own rise by.  Only rises are used, since noise may be one-sided.
    """
    threshold_rate, answer_rate = map(float, pairs[0][0].public[1:3])
    outcomes = np.concatenate([here.output for here, _ in pairs])
    moves = np.concatenate(
        [
            np.asarray(there.private)[: len(here.output)].astype(object)
            - np.asarray(here.private)[: len(here.output)].astype(object)
            for here, there in pairs
        ]
    )
    losses = []
    for rises in (moves, -moves):
        shift = max([0, *rises[~outcomes]])
        excess = sum(max(shift - rise, 0) for rise in rises[outcomes])
        losses.append(threshold_rate * float(shift) + answer_rate * float(excess))
    return max(losses)


# --- Putting stand-ins to work -----------------------------------------------------------------


def _modules() -> list[ModuleType]:
    """Import all that publishes: a module that is loaded later would keep a stand-in."""
    for name in _HOOKED:
        package = importlib.import_module(f"dpublish.{name}")
        for found in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            importlib.import_module(found.name)
    inside = tuple(f"dpublish.{name}." for name in _HOOKED)
    return [module for name, module in sorted(sys.modules.items()) if name.startswith(inside)]


_USES: dict[Any, list[tuple[ModuleType, str]]] = {}


_RUNS = ("dpublish.core.run", "dpublish.methods.streams.snapshot")
"""Where runs are: the verbs through which methods and steps of streams draw."""


def _hooks(module: ModuleType, item: Any) -> bool:
    """Check whether a mechanism is hooked where a module knows it.

    Only runs and mechanisms that are made of others call mechanisms.  Samplers are guarded
    everywhere: what draws around a run is noticed.
    """
    if item in SAMPLERS or item in (minimize_on, mle.BlockMoments):
        return True
    return module.__name__ in _RUNS or module.__name__.startswith("dpublish.mechanisms.")


def _uses(function: Any) -> list[tuple[ModuleType, str]]:
    """List where a function or class is hooked: modules, and the name by which each knows it."""
    if not _USES:
        known = {mechanism.function for mechanism in MECHANISMS}
        known |= {*SAMPLERS, SparseVector, minimize_on, mle.BlockMoments}
        for item in known:
            _USES[item] = []
        for module in _modules():
            for name, item in vars(module).items():
                if isinstance(item, FunctionType | type) and item in known and _hooks(module, item):
                    _USES[item].append((module, name))
    return _USES[function]


def _block_moments(tape: Tape) -> Callable[..., Any]:
    original = mle.BlockMoments

    def make(*args: Any, **named: Any) -> Any:
        kernel = original(*args, **named)
        return dataclasses.replace(kernel, rng=tape.flip("blocks", (kernel.blocks,)))

    return make


def _table_methods(tape: Tape) -> dict[str, Callable[..., Any]]:
    sample, split, sample_by = LocalTable.sample, LocalTable.split, LocalTable.sample_by

    def new_sample(self: Any, rate: Any, rng: Any, columns: Any = None) -> Any:
        return sample(self, rate, tape.flip("sample", (rate, _names(columns))), columns)

    def new_split(self: Any, blocks: Any, rng: Any, columns: Any = None) -> Any:
        return split(self, blocks, tape.flip("split", (blocks, _names(columns))), columns)

    def new_sample_by(self: Any, column: Any, rates: Any, rng: Any, columns: Any = None) -> Any:
        public = (column, tuple(rates), _names(columns))
        return sample_by(self, column, rates, tape.flip("sample_by", public), columns)

    return {"sample": new_sample, "split": new_split, "sample_by": new_sample_by}


def _names(columns: Any) -> Any:
    return None if columns is None else tuple(columns)


@contextlib.contextmanager
def playing(tape: Tape) -> Iterator[None]:
    """Put stand-ins of `tape` instead of all mechanisms."""
    standing_in: dict[Any, Any] = {one.function: one.stand_in(tape) for one in MECHANISMS}
    standing_in |= {sampler: _guard(sampler, tape) for sampler in SAMPLERS}
    standing_in[SparseVector] = partial(_Comparisons, tape)
    standing_in[minimize_on] = _minimize_stand_in(tape)
    standing_in[mle.BlockMoments] = _block_moments(tape)
    with contextlib.ExitStack() as stack:
        for function, other in standing_in.items():
            for module, name in _uses(function):
                stack.enter_context(patch.object(module, name, other))
        for name, other in _table_methods(tape).items():
            stack.enter_context(patch.object(LocalTable, name, other))
        stack.enter_context(patch.object(engine_local, "choose", _choose))
        stack.enter_context(patch.object(engine_chosen, "choose_by", _choose_by))
        stack.enter_context(patch.object(StoredVector, "draw", _stored_draw(tape)))
        stack.enter_context(patch.object(StoredVector, "above", _stored_above(tape)))
        yield
    tape.end()


# --- What a run showed, and what it cost --------------------------------------------------------


@dataclass
class Shown:
    """All that somebody sees of a run, but for times and random names."""

    content: Any
    progress: list[Any]
    warnings: list[str]
    written: str


def watch(run: Callable[..., Any], tape: Tape) -> Shown:
    """Run something with the mechanisms of `tape`; `run` takes `rng` and `progress`."""
    progress: list[Any] = []
    written = io.StringIO()
    with (
        playing(tape),
        warnings.catch_warnings(record=True) as caught,
        contextlib.redirect_stdout(written),
        contextlib.redirect_stderr(written),
    ):
        warnings.simplefilter("always")
        content = run(rng=tape.source, progress=lambda *told: progress.append(told))
    told = [f"{one.category.__name__}: {one.message}" for one in caught]
    return Shown(plain(content), progress, told, written.getvalue())


_NAMED = {"created", "release_id"}


def plain(value: Any) -> Any:
    """Turn a release into plain values that can be compared, hidden fields included."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        held = {one.name: getattr(value, one.name) for one in dataclasses.fields(value)}
        return type(value).__name__, plain(held)
    if isinstance(value, Mapping):
        return {plain(key): plain(item) for key, item in value.items() if key not in _NAMED}
    if isinstance(value, np.ndarray):
        return str(value.dtype), value.shape, [plain(item) for item in value.ravel().tolist()]
    if isinstance(value, pa.Table):
        return plain(value.to_pydict())
    if isinstance(value, list | tuple):
        return tuple(plain(item) for item in value)
    if isinstance(value, set | frozenset):
        return frozenset(plain(item) for item in value)
    return repr(value)


def path_loss(played: Tape, replayed: Tape, changes: int = 1) -> float:
    """Add up what the calls of two runs with the same answers cost, each by its own account.

    None may cost more than it was paid for each of so many `changes`, records that come or go,
    whatever the others leave over.
    """
    total = 0.0
    runs: dict[int, list[tuple[Call, Call]]] = {}
    drawn: Call | None = None
    for here, there in zip(played.calls, replayed.calls, strict=True):
        if here.kind == "comparisons":
            runs.setdefault(here.public[0], []).append((here, there))
        elif here.kind == "minimize_on":
            if drawn is None:
                raise AssertionError("a minimum without noise of its own")
            total += _minimum_loss(drawn, here, there)
            drawn = None
        elif here.kind == "value":
            total += _distance(here.public, here.private, there.private, None)
        elif here.kind in _LOSSES:
            lost = _LOSSES[here.kind](here.public, here.private, there.private, here.output)
            require(
                here.epsilon is None or lost <= changes * float(here.epsilon) + ROUNDING,
                f"a change of rows costs {lost:.4g} in {here.kind}, more than epsilon as it was "
                f"paid ({here.epsilon}): a sensitivity is too small",
            )
            total += lost
        drawn = here if here.kind == "continuous_noise" else drawn
    return total + sum(map(_run_loss, runs.values()))


def removal_loss(run: Callable[..., Any], more: Any, reference: Tape, seen: Shown) -> float:
    """Bound what the last record of `more` loses by what was published without it.

    `reference` is the tape of the run without it, and `seen` what that run showed.
    """
    tape = Tape(reference)
    require(watch(partial(run, more), tape) == seen, AROUND)
    own = {
        position: coins.last
        for position, coins in tape.coins.items()
        if len(coins.rates) > len(reference.coins[position].rates)
    }
    return _mean_loss(run, more, reference, own) if own else path_loss(reference, tape)


def exchange_loss(run: Callable[..., Any], here: Any, there: Any) -> float:
    """Bound what the last record loses if it is exchanged for another one.

    If it is drawn by lot, it is taken out and another one put in: from here to the runs in
    which it is not drawn, and from these to there.
    """
    first = Tape()
    seen = watch(partial(run, here), first)
    second = Tape(first)
    require(watch(partial(run, there), second) == seen, AROUND)
    own = {position: coins.last for position, coins in first.coins.items() if coins.rates}
    if all(rate == 1 for _, rate in own.values()):
        return path_loss(first, second, changes=2)
    reference = Tape(fates={position: (last, False) for position, (last, _) in own.items()})
    watch(partial(run, here), reference)
    return sum(_mean_loss(run, rows, reference, own) for rows in (here, there))


def _mean_loss(
    run: Callable[..., Any], rows: Any, reference: Tape, own: Mapping[int, tuple[int, Fraction]]
) -> float:
    """Weigh what a record loses if it is drawn and if it is not.

    If it is drawn with probability p, and loses L then, it loses log(1 - p + p e^L): fix the
    coins of all others, and that is how likely an outcome is with it and without it.
    """
    mean = 0.0
    for outcome in product((True, False), repeat=len(own)):
        likely = prod(
            float(rate if is_in else 1 - rate)
            for is_in, (_, rate) in zip(outcome, own.values(), strict=True)
        )
        if not likely:
            continue
        fates = {
            position: (last, is_in)
            for is_in, (position, (last, _)) in zip(outcome, own.items(), strict=True)
        }
        tape = Tape(reference, fates=fates)
        watch(partial(run, rows), tape)
        mean += likely * exp(min(path_loss(reference, tape), 700.0))
    return log(mean)
