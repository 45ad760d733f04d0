"""Privelet: counts as noisy Haar coefficients, so that long ranges add up little noise."""

from dataclasses import dataclass, replace
from fractions import Fraction
from math import prod
from typing import ClassVar, Literal, get_args

import numpy as np

from dpublish.aggregates.counts import Counts
from dpublish.core.method import ExpectedError, Method, Run, setting
from dpublish.data.column import Column
from dpublish.data.schema import Schema
from dpublish.errors import InvalidParameter, require_known
from dpublish.mechanisms.exact.sampler import require_rate
from dpublish.methods.histogram.domain import (
    COUNTED_COLUMNS,
    counted_columns,
    counted_names,
    require_few,
    require_names,
)
from dpublish.methods.privelet.haar import depth_of, mean_square, transform
from dpublish.methods.privelet.released import (
    PriveletRelease,
    coefficient_shape,
    coefficients_moved,
    range_errors,
)
from dpublish.types import IntArray

MAX_COEFFICIENTS = 2**24
Transform = Literal["auto", "haar"]


@dataclass(frozen=True, kw_only=True)
class Privelet(Method[PriveletRelease]):
    """Publish counts as noisy Haar coefficients, so that long ranges add up little noise.

    A range of a transformed column adds up a few noisy coefficients instead of many noisy
    counts.  Choose it for range queries over one or two long columns; choose `Histogram` for
    short columns, and `PSD` or `AG` for several columns or uneven data.

    Guarantee:
        Pure epsilon-differential privacy for adding or removing one record.
        Proof: docs/proofs/wavelet.md.

    Parameters:
        columns: Columns to count by, each value or bin apart; all numeric, integer and ordinal
            columns if none is named.
        transform: `"auto"` transforms the ordered columns that are long enough for a random
            range to gain by it (some 500 values), `"haar"` all ordered columns.

    Returns:
        A `PriveletRelease` with `count(query)`, `marginal(column)`, `rows(n)`, `tables()`.

    Example:
        >>> from dpublish import Budget, Privelet, datasets, seeded
        >>> people = datasets.table("census", 2_000)
        >>> method = Privelet(columns=("age",), transform="haar")
        >>> release = method.release(people, budget=Budget.seeded("1"), rng=seeded(7))
        >>> print(release.count("age <= 50"))
        1,363.7 (95 % confidence interval 1,351.5 to 1,375.8)

    Reference:
        X. Xiao, G. Wang, J. Gehrke, "Differential Privacy via Wavelet Transforms", ICDE 2010;
        with `transform="auto"` it is their Privelet+, which leaves short columns as they are.
    """

    name: ClassVar[str] = "privelet"
    proofs: ClassVar[tuple[str, ...]] = ("wavelet", "exact")
    task: ClassVar[str] = "counting"
    publishes: ClassVar[str] = (
        "noisy wavelet coefficients of counts; range counts and rows follow for free"
    )
    prefer_when: ClassVar[str] = (
        "one or two ordered columns have many values, and long ranges matter"
    )

    columns: tuple[str, ...] = setting(COUNTED_COLUMNS, default=())
    transform: Transform = setting(
        "Which ordered columns are transformed: auto takes those long enough that a random "
        "range gains by it (some 500 values), haar takes all of them.",
        default="auto",
    )

    def __post_init__(self) -> None:
        require_names(self.columns)
        require_known("transform", self.transform, get_args(Transform))

    def _release(self, run: Run) -> PriveletRelease:
        """Publish the noisy coefficients.

        Privacy:
            `run.epsilon`-differentially private when one record is added or removed.  The
            record lies in one cell.  Along a transformed column of 2^h cells it moves the
            total and one difference on each of the h levels, each by 1 up or down; along
            another column, one cell.  A coefficient of all columns is moved by the product,
            so just m = prod(1 + h) coefficients move, by 1 each (`coefficients_moved`), and
            each gets two-sided geometric noise of rate epsilon / m.  Which columns are
            transformed depends on the schema alone.  Proof: docs/proofs/wavelet.md.
        """
        columns, haar = self._plan(run.schema, run.epsilon)
        moved = coefficients_moved([column.axis() for column in columns], haar)
        # Opened before any row is read: a share that is already used stops here.
        share = run.split(coefficients=1)["coefficients"]
        kernel = Counts(run.schema, (tuple((column.name, None) for column in columns),))
        exact = transform_counts(kernel.split(run.sum(kernel))[0], haar)
        noisy = run.add_noise(exact, sensitivity=moved, budget=share)
        run.step(1, 1, "coefficients")
        return PriveletRelease(
            receipt=run.receipt(),
            schema=replace(run.schema, columns=columns),
            haar=haar,
            coefficients=noisy,
            noise_rate=run.epsilon / moved,
        )

    def reads(self, schema: Schema) -> tuple[str, ...]:
        """Name the columns that a release reads; public, from settings and schema alone."""
        return counted_names(schema, self.columns)

    def expected_error(
        self, schema: Schema, n_records: int | None, epsilon: Fraction
    ) -> ExpectedError:
        """Predict the error of a random range of all columns, and of the total."""
        require_rate(epsilon)
        columns, haar = self._plan(schema, epsilon)
        axes = [column.axis() for column in columns]
        rate = epsilon / coefficients_moved(axes, haar)
        figures = range_errors(axes, haar, rate, n_records)
        summary = (
            f"{prod(axis.size for axis in axes):,} cells, {sum(haar)} of {len(axes)} columns "
            f"transformed; a random range within about {figures['random_range_95']:,.0f} of the "
            "truth (95 %)"
        )
        return ExpectedError(summary, figures, target="random_range_95")

    def _plan(
        self, schema: Schema, epsilon: Fraction
    ) -> tuple[tuple[Column, ...], tuple[bool, ...]]:
        """Decide from the schema what is counted and transformed, and refuse what is too large."""
        columns = counted_columns(schema, self.columns)
        require_few(columns)
        haar = tuple(
            column.kind != "category" and (self.transform == "haar" or gains(column.size))
            for column in columns
        )
        axes = [column.axis() for column in columns]
        many = prod(coefficient_shape(axes, haar))
        if many > MAX_COEFFICIENTS:
            raise InvalidParameter(
                f"{many:,} coefficients are too many to publish one by one (at most "
                f"{MAX_COEFFICIENTS:,}); take fewer columns, or columns with fewer bins"
            )
        require_rate(epsilon / coefficients_moved(axes, haar))
        return columns, haar


def gains(size: int) -> bool:
    """Decide whether the transform lowers the average variance of ranges of a column.

    Without it a range of (size + 2) / 3 cells on average adds up as many draws of noise.

    >>> gains(256), gains(512)
    (False, True)
    """
    depth = depth_of(size)
    return (1 + depth) ** 2 * mean_square(depth) < (size + 2) / 3


def transform_counts(counts: IntArray, haar: tuple[bool, ...]) -> IntArray:
    """Fill up the transformed axes with empty cells to a power of two, and transform them."""
    for axis, is_haar in enumerate(haar):
        if is_haar:
            fill = [(0, 0)] * counts.ndim
            fill[axis] = (0, 2 ** depth_of(counts.shape[axis]) - counts.shape[axis])
            counts = transform(np.pad(counts, fill), axis)
    return np.ascontiguousarray(counts)
