"""Publish counts as noisy Haar coefficients, so that long ranges add up little noise.

Known as: Privelet; with `transform` auto, Privelet+, which leaves short columns as they are.
Reference: X. Xiao, G. Wang, J. Gehrke, "Differential Privacy via Wavelet Transforms",
ICDE 2010.
"""

from dataclasses import dataclass, replace
from fractions import Fraction
from math import prod
from typing import ClassVar, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from dpublish.aggregates.counts import Counts
from dpublish.core.method import ExpectedError, Method, Run, setting
from dpublish.data.column import Column
from dpublish.data.schema import Schema
from dpublish.errors import InvalidParameter, require_known
from dpublish.mechanisms.exact.sampler import require_rate
from dpublish.mechanisms.noise import add_geometric
from dpublish.methods.histogram.domain import (
    counted_columns,
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

MAX_COEFFICIENTS = 2**22
Transform = Literal["auto", "haar"]


@dataclass(frozen=True, kw_only=True)
class Privelet(Method[PriveletRelease]):
    """Method: count records by `columns`, transform the counts, then perturb the coefficients."""

    name: ClassVar[str] = "privelet"

    columns: tuple[str, ...] = setting(
        "Columns to count by, at their leaves; all numeric, integer and ordinal ones if none "
        "is named.",
        default=(),
    )
    transform: Transform = setting(
        "Which ordered columns are transformed: auto takes those long enough that a random "
        "range gains by it (some 500 leaves), haar takes all of them.",
        default="auto",
    )

    def __post_init__(self) -> None:
        require_names(self.columns)
        require_known("transform", self.transform, get_args(Transform))

    def _release(self, run: Run) -> PriveletRelease:
        """Publish the noisy coefficients of `table`.

        Privacy:
            `budget.epsilon`-differentially private when one record is added or removed.  The
            record lies in one cell.  Along a transformed column of 2^h leaves it moves the
            total and one difference on each of the h levels, each by 1 up or down; along
            another column, one leaf.  A coefficient of all columns is moved by the product,
            so just m = prod(1 + h) coefficients move, by 1 each (`coefficients_moved`), and
            each gets two-sided geometric noise of rate epsilon / m.  Which columns are
            transformed depends on the schema alone.  Proof: docs/proofs/wavelet.md.
        """
        table, budget, rng, progress = run.table, run.budget, run.rng, run.progress
        columns, haar = self._plan(table.schema, budget.epsilon)
        axes = [column.axis() for column in columns]
        moved = coefficients_moved(axes, haar)
        # Opened before any row is read: a share that is already used stops here.
        share = budget.split(coefficients=1)["coefficients"]
        kernel = Counts(table.schema, (tuple((column.name, None) for column in columns),))
        exact = transform_counts(kernel.split(table.sum(kernel))[0], haar)
        noisy = add_geometric(exact, sensitivity=moved, budget=share, rng=rng)
        if progress is not None:
            progress(1, 1, "coefficients")
        return PriveletRelease(
            receipt=run.receipt(),
            schema=replace(table.schema, columns=columns),
            haar=haar,
            coefficients=noisy,
            noise_rate=budget.epsilon / moved,
        )

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


def gains(leaves: int) -> bool:
    """Say whether the transform lowers the average variance of ranges of a column.

    Without it a range of (leaves + 2) / 3 on average adds up as many draws of noise.

    >>> gains(256), gains(512)
    (False, True)
    """
    depth = depth_of(leaves)
    return (1 + depth) ** 2 * mean_square(depth) < (leaves + 2) / 3


def transform_counts(counts: NDArray[np.int64], haar: tuple[bool, ...]) -> NDArray[np.int64]:
    """Fill up the transformed axes with empty cells to a power of two, and transform them."""
    for place, is_haar in enumerate(haar):
        if is_haar:
            fill = [(0, 0)] * counts.ndim
            fill[place] = (0, 2 ** depth_of(counts.shape[place]) - counts.shape[place])
            counts = transform(np.pad(counts, fill), place)
    return np.ascontiguousarray(counts)
