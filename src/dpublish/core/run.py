"""A run: one release at work, with its table, budget and randomness behind a few verbs.

What a method draws goes through a run: noise, choices, quantiles, samples.  Each verb is the
mechanism of the same name with the run's own randomness, and is as private as that mechanism;
a share of the budget pays for it, and is emptied by it.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import fields, is_dataclass
from fractions import Fraction
from typing import Any, Protocol, Self, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dpublish.data.batch import S, Summable
from dpublish.data.schema import Schema
from dpublish.data.table import Table
from dpublish.errors import InvalidParameter
from dpublish.mechanisms.continuous_noise import Shape, continuous_noise
from dpublish.mechanisms.exact.lattice import LatticeValues
from dpublish.mechanisms.exact.sampler import uniform_below
from dpublish.mechanisms.genetic_search import Breeding, Scores, Watcher, draw_uniform, search
from dpublish.mechanisms.noise import add_geometric, add_laplace, noisy_size
from dpublish.mechanisms.quantile import quantile
from dpublish.mechanisms.rank_threshold import choose_threshold
from dpublish.mechanisms.selection import (
    PERMUTE_AND_FLIP,
    distances_below_best,
    permute_and_flip,
    select,
    selection_rate,
)
from dpublish.mechanisms.sparse_counts import NoisyCells, sparse_counts
from dpublish.mechanisms.sparse_vector.retraversal import retraverse
from dpublish.mechanisms.top_k import ONE_SHOT, top_k
from dpublish.privacy.budget import Budget
from dpublish.privacy.epsilon import ExactNumber, format_epsilon
from dpublish.privacy.neighbors import Neighbors
from dpublish.privacy.receipt import Receipt
from dpublish.randomness import RandomSource, plain_generator
from dpublish.types import FloatArray, IntArray

Progress = Callable[[int, int, str], None]
"""Called with (done, total, label); all three are public."""

R = TypeVar("R", covariant=True)


class HasSensitivity(Protocol):
    """A kernel that knows how much its answer can change between neighbors, in L1 distance."""

    def sensitivity(self, neighbors: Neighbors) -> int:
        """Return the most by which all numbers of the answer together can change."""
        ...


class HasRange(Protocol):
    """Scores that know their range sensitivity."""

    def range_sensitivity(self, neighbors: Neighbors) -> int:
        """Return the most by which two scores can move against each other."""
        ...


class Named(Protocol):
    """What a run knows of the method that it belongs to: its name and settings."""

    @property
    def name(self) -> str:
        """The method's name."""
        ...


class Releases(Protocol[R]):
    """A method that can run within another one."""

    def release_part(
        self, table: Table, *, budget: Budget, rng: RandomSource, progress: Progress | None = None
    ) -> R:
        """Publish from `table`, spending exactly `budget`.

        Privacy:
            Argued by the method.
        """
        ...


class Run:
    """One release at work.

    Made by `Method.release`; tests make one for a part of a method with `Run(table, rng=...)`.
    """

    def __init__(
        self,
        table: Table,
        *,
        rng: RandomSource,
        method: Named | None = None,
        budget: Budget | None = None,
        expected: Mapping[str, float] | None = None,
        progress: Progress | None = None,
    ) -> None:
        self.table = table
        self.rng = rng
        self.progress = progress
        self.expected = dict(expected or {})
        """The figures of the error that was predicted for this release."""
        self._method = method
        self._budget = budget

    @property
    def budget(self) -> Budget:
        """The whole budget of the release."""
        if self._budget is None:
            raise InvalidParameter("this run has no budget of its own")
        return self._budget

    @property
    def epsilon(self) -> Fraction:
        """The epsilon of the whole release."""
        return self.budget.epsilon

    @property
    def schema(self) -> Schema:
        """What is publicly known about the rows."""
        return self.table.schema

    @property
    def neighbors(self) -> Neighbors:
        """The change to the rows that must be hidden."""
        return self.table.neighbors

    def on(self, table: Table) -> Self:
        """Return the same run on another table: a sample, a block, a group of records."""
        return type(self)(
            table,
            rng=self.rng,
            method=self._method,
            budget=self._budget,
            expected=self.expected,
            progress=self.progress,
        )

    # --- The budget -----------------------------------------------------------------------

    def split(self, **weights: int | Fraction) -> dict[str, Budget]:
        """Share the release's budget out by name; call it before any row is read."""
        return self.budget.split(**weights)

    def receipt(self, *, assumptions: Sequence[str] = ()) -> Receipt:
        """Write the receipt; call it when the whole budget is spent.

        `assumptions` are what the proof takes for granted, beyond what all proofs do.
        """
        if self._method is None:
            raise InvalidParameter("this run belongs to no method, so it has no receipt")
        return Receipt.issue(
            method=self._method.name,
            settings=settings_of(self._method),
            budget=self.budget,
            neighbors=self.neighbors,
            rng=self.rng,
            assumptions=assumptions,
            steps=getattr(self.table, "steps", ()),
        )

    def require_spent(self, receipt: Receipt) -> None:
        """Refuse a release that left a share of its budget, or whose receipt is for another one."""
        if not all(share.is_used for share in self.budget.account()):
            raise RuntimeError("a method must spend its whole budget; a share was left")
        if receipt.epsilon != self.budget.epsilon:
            raise RuntimeError("a method's receipt must state the epsilon of its budget")
        if self._method is not None and receipt.method != self._method.name:
            raise RuntimeError("a method's receipt must name the method that ran")

    # --- What reads rows ------------------------------------------------------------------

    def sum(self, kernel: Summable[S]) -> S:
        """Add up a kernel over all records; exact, and therefore private."""
        return self.table.sum(kernel)

    def sample(self, rate: Fraction, columns: Sequence[str] | None = None) -> Self:
        """Keep every record with probability `rate`, exactly, and go on with those."""
        return self.on(self.table.sample(rate, self.rng, columns))

    def split_rows(self, blocks: int, columns: Sequence[str] | None = None) -> Sequence[Table]:
        """Put every record into one of `blocks` tables, uniformly at random."""
        return self.table.split(blocks, self.rng, columns)

    # --- What draws -----------------------------------------------------------------------

    def add_noise(
        self,
        answer: IntArray,
        *,
        of: HasSensitivity | None = None,
        sensitivity: int | None = None,
        budget: Budget,
    ) -> IntArray:
        """Add geometric noise to integers; the kernel `of` knows their sensitivity."""
        found = _one_of(of and of.sensitivity(self.neighbors), sensitivity, "sensitivity")
        return add_geometric(answer, sensitivity=found, budget=budget, rng=self.rng)

    def add_laplace(
        self,
        values: ArrayLike,
        *,
        sensitivity: ExactNumber,
        granularity: ExactNumber | None = None,
        touched: int | None = None,
        budget: Budget,
    ) -> LatticeValues:
        """Add noise to real numbers, on a lattice of powers of two."""
        return add_laplace(
            values,
            sensitivity=sensitivity,
            granularity=granularity,
            touched=touched,
            budget=budget,
            rng=self.rng,
        )

    def noisy_size(self, size: int, *, budget: Budget) -> int:
        """Add noise to a number of records."""
        return noisy_size(size, budget=budget, rng=self.rng)

    def select(
        self,
        scores: NDArray[np.integer[Any]],
        *,
        of: HasRange | None = None,
        sensitivity_range: int | Fraction | None = None,
        method: str = PERMUTE_AND_FLIP,
        weights: NDArray[np.integer[Any]] | None = None,
        budget: Budget,
    ) -> int:
        """Choose the index of a candidate with a high score; `of` knows the range sensitivity."""
        known = of and of.range_sensitivity(self.neighbors)
        found = _one_of(known, sensitivity_range, "sensitivity_range")
        return select(
            scores,
            sensitivity_range=found,
            method=method,
            weights=weights,
            budget=budget,
            rng=self.rng,
        )

    def top_k(
        self,
        scores: NDArray[np.integer[Any]],
        *,
        count: int,
        sensitivity_range: int | Fraction,
        method: str = ONE_SHOT,
        budget: Budget,
    ) -> list[int]:
        """Choose the indices of `count` candidates with high scores, highest first."""
        return top_k(
            scores,
            count=count,
            sensitivity_range=sensitivity_range,
            method=method,
            budget=budget,
            rng=self.rng,
        )

    def quantile(
        self,
        values: NDArray[Any],
        *,
        probability: Fraction | int,
        lower: float,
        upper: float,
        cells: int,
        budget: Budget,
    ) -> float:
        """Find a quantile of private values between public bounds."""
        return quantile(
            values,
            probability=probability,
            lower=lower,
            upper=upper,
            cells=cells,
            budget=budget,
            rng=self.rng,
        )

    def sparse_counts(
        self,
        keys: NDArray[np.integer[Any]],
        counts: NDArray[np.integer[Any]],
        *,
        domain_size: int,
        threshold: int,
        sensitivity: int = 1,
        budget: Budget,
    ) -> NoisyCells:
        """Add noise to every cell of a huge domain, and keep those that reach the threshold."""
        return sparse_counts(
            keys,
            counts,
            domain_size=domain_size,
            threshold=threshold,
            sensitivity=sensitivity,
            budget=budget,
            rng=self.rng,
        )

    def public_generator(self) -> np.random.Generator:
        """Make a generator for draws that have nothing to do with any record.

        Its seed is a word of the run's randomness, so that a seeded release can be repeated.
        The noise comes from later words: who guesses the seed learns nothing of it.
        """
        return plain_generator(int(self.rng.words(1)[0]))

    def select_each(
        self,
        scores: Iterable[NDArray[np.integer[Any]]],
        *,
        sensitivity_range: int | Fraction,
        budget: Budget,
    ) -> list[int]:
        """Choose once for each of several disjoint parts of the records, by permute-and-flip.

        Privacy:
            `budget.epsilon`-differentially private if the parts are public and disjoint: a
            record lies in one of them, so it moves the scores of one choice, and all choices
            together cost as much as one (parallel composition).
        """
        rate = selection_rate(budget.epsilon, sensitivity_range)
        budget.spend()
        return [permute_and_flip(rate, distances_below_best(one), self.rng) for one in scores]

    def retraverse(
        self,
        scores: NDArray[np.integer[Any]],
        *,
        count: int,
        threshold_share: Fraction,
        sensitivity: int,
        monotonic: bool,
        budget: Budget,
    ) -> list[int]:
        """Choose up to `count` scores above a noisy threshold, by the sparse vector technique."""
        return retraverse(
            scores,
            count=count,
            threshold_share=threshold_share,
            sensitivity=sensitivity,
            monotonic=monotonic,
            budget=budget,
            rng=self.rng,
        )

    def continuous_noise(
        self,
        shape: Shape,
        dimensions: int,
        *,
        sensitivity: Fraction,
        reserve: Fraction = Fraction(0),
        budget: Budget,
    ) -> FloatArray:
        """Draw a vector with a density; publish nothing that depends on it without more noise.

        `reserve` is the part of epsilon that pays for something else, such as a change of volume.
        """
        return continuous_noise(
            shape,
            dimensions,
            sensitivity=sensitivity,
            reserve=reserve,
            budget=budget,
            rng=self.rng,
        )

    def choose_threshold(
        self,
        exact: IntArray,
        *,
        highest: int,
        percentile: Fraction,
        sensitivity: Fraction,
        budget: Budget,
    ) -> int:
        """Choose an integer that about (1 - `percentile`) of the positive values reach."""
        return choose_threshold(
            exact,
            highest=highest,
            percentile=percentile,
            sensitivity=sensitivity,
            budget=budget,
            rng=self.rng,
        )

    def genetic_search(
        self,
        score: Callable[[IntArray], Scores],
        first: IntArray,
        plan: Breeding,
        *,
        budget: Budget,
        watcher: Watcher | None = None,
    ) -> IntArray:
        """Improve a generation of vectors round by round, and return one of the last."""
        return search(score, first, plan, budget=budget, rng=self.rng, watcher=watcher)

    def draw_uniform(self, count: int, size: int, bound: int) -> IntArray:
        """Draw public vectors, uniform on the lattice; no record decides them."""
        return draw_uniform(count, size, bound, self.rng)

    def uniform_integers(self, below: int, count: int) -> IntArray:
        """Draw public integers from 0 up to `below`, exactly uniform; no record decides them."""
        return uniform_below(below, count, self.rng)

    def random_order(self, count: int) -> IntArray:
        """Draw a public random order of `count` things, as their indices; no record decides it."""
        return np.argsort(self.rng.words(count), kind="stable")

    def sample_by(
        self, column: str, rates: Sequence[Fraction], columns: Sequence[str] | None = None
    ) -> Self:
        """Keep every record with the rate of its code in `column`, and go on with those."""
        return self.on(self.table.sample_by(column, rates, self.rng, columns))

    def release(self, method: Releases[R], *, budget: Budget, shows_progress: bool = True) -> R:
        """Publish from this run's table by another method, which `budget` pays for."""
        progress = self.progress if shows_progress else None
        return method.release_part(self.table, budget=budget, rng=self.rng, progress=progress)

    # --- What is shown --------------------------------------------------------------------

    def step(self, done: int, total: int, label: str) -> None:
        """Report progress; all three are public."""
        if self.progress is not None:
            self.progress(done, total, label)


def settings_of(method: Any) -> dict[str, Any]:
    """List a method's settings as plain values, for receipts and files."""
    given = [(f, getattr(method, f.name)) for f in fields(method)]
    return {
        f.name: _plain(value)
        for f, value in given
        if not (f.metadata.get("quiet") and value == f.default)
    }


def _plain(value: Any) -> Any:
    if isinstance(value, Fraction):
        return format_epsilon(value)
    if isinstance(value, tuple):
        return [_plain(item) for item in value]
    if is_dataclass(value):  # a method within a method
        return {"method": value.name, **settings_of(value)}  # type: ignore[union-attr]
    return value


def _one_of(known: Any, given: Any, name: str) -> Any:
    if (known is None) == (given is None):
        raise InvalidParameter(f"name either the kernel (of=) or its {name}")
    return given if known is None else known
