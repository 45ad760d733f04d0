"""TopK: the most frequent values of a column, or the most frequent items of baskets."""

from dataclasses import dataclass, replace
from fractions import Fraction
from math import ceil, expm1, log, log1p, sqrt
from typing import ClassVar, Literal, get_args

import numpy as np

from dpublish.accuracy.noise_distribution import noise_variance, sum_quantile
from dpublish.aggregates.counts import Counts
from dpublish.core.method import ExpectedError, Method, Run, Standing, setting
from dpublish.data.axis import Axis
from dpublish.data.schema import Schema, listed_names, parse_columns
from dpublish.errors import InvalidParameter, require_count, require_known
from dpublish.mechanisms.exact.sampler import require_rate
from dpublish.mechanisms.sparse_vector.calibration import calibrate
from dpublish.methods.topk.released import TopKRelease
from dpublish.privacy.budget import Budget
from dpublish.privacy.neighbors import AddRemoveRecord, AddRemoveUnit, Neighbors
from dpublish.types import IntArray

Selection = Literal["one-shot", "peel-permute-and-flip", "peel-exponential", "sparse-vector"]
HALF = Fraction(1, 2)
LEVEL_SHARE = Fraction(1, 10)
"""Part of the sparse vector's budget that its threshold spends."""


@dataclass(frozen=True, kw_only=True)
class TopK(Method[TopKRelease]):
    """Publish the most frequent values of a column, or the most frequent items of baskets.

    Choose it when the names of the frequent values matter more than their counts, or when rows
    belong to units: a unit may own any number of rows, because each of its values counts once.
    Choose `Histogram` when every value needs a count.  Known as: EM top-k, one-shot noisy
    top-k, SVT-ReTr, frequent items.

    Guarantee:
        Pure epsilon-differential privacy for adding or removing one record, or one unit with
        all its rows if the schema names a unit.  Proofs: docs/proofs/top_k.md,
        docs/proofs/sparse_vector.md.

    Parameters:
        column: Column whose values are ranked; `"education@1"` takes it at level 1 of its taxonomy.
        count: How many values to publish.
        selection: How to choose: `"one-shot"`, `"peel-permute-and-flip"`,
            `"peel-exponential"` or `"sparse-vector"`, which may find fewer values.
        with_counts: Whether each chosen value gets a noisy count.
        counts_share: Part of epsilon that the counts spend, if they are wanted.

    Returns:
        A `TopKRelease` with `values`, `is_ranked`, `count(query)` (if it has counts) and
        `tables()`.

    Example:
        >>> from dpublish import Budget, TopK, datasets, seeded
        >>> people = datasets.table("census", 2_000)
        >>> method = TopK(column="work", count=3, with_counts=True)
        >>> release = method.release(people, budget=Budget.seeded("1"), rng=seeded(7))
        >>> release.values
        ('None', 'Care', 'Office')
        >>> print(release.count("work = Care"))
        273 (95 % confidence interval 267 to 279)

    Reference:
        D. Su, "Differentially private data publishing", PhD thesis, Purdue University, 2016,
        chapter 5.
    """

    name: ClassVar[str] = "topk"
    proofs: ClassVar[tuple[str, ...]] = ("top_k", "sparse_vector", "selection", "exact")
    task: ClassVar[str] = "ranking"
    publishes: ClassVar[str] = "the most frequent values of a column or items of baskets, in order"
    prefer_when: ClassVar[str] = "the domain is large, and only its most frequent values matter"
    standing: ClassVar[Standing] = "default"
    hidden: ClassVar[tuple[type[Neighbors], ...]] = (AddRemoveRecord, AddRemoveUnit)

    column: str = setting("Column whose values are ranked; name@level takes a coarser level.")
    count: int = setting("How many values to publish (c).", default=10)
    selection: Selection = setting(
        "How to choose. one-shot perturbs all counts once and reads off the highest; "
        "sparse-vector compares with a noisy threshold and may find fewer.",
        default="one-shot",
    )
    with_counts: bool = setting("Also publish a noisy count for each chosen value.", default=False)
    counts_share: Fraction = setting(
        "Part of epsilon that pays for the counts, if they are wanted.", default=HALF
    )

    def __post_init__(self) -> None:
        require_count(count=self.count)
        object.__setattr__(self, "count", int(self.count))  # a NumPy integer, too
        require_known("selection", self.selection, get_args(Selection))
        if not isinstance(self.column, str) or not self.column:
            raise InvalidParameter("column must name one column")
        if not isinstance(self.counts_share, Fraction) or not 0 < self.counts_share < 1:
            raise InvalidParameter(f"counts_share ({self.counts_share}) must lie between 0 and 1")

    def _release(self, run: Run) -> TopKRelease:
        """Publish the most frequent values.

        Privacy:
            `run.epsilon`-differentially private.  One record, or one unit with all its rows
            (each value counted once), moves every value's count by at most 1 and all in one
            direction, so the range sensitivity is 1: the selection spends its share.  The
            chosen counts get noise from a share of their own: chosen values are by then
            public, and together their counts move by 1 for a record, which has one value, or
            by the number chosen for a unit.
        """
        axis = self._axis(run.schema)
        kernel = Counts(run.schema, (((axis.column, axis.level),),))
        budgets = self._budgets(run)
        scores = run.sum(kernel)
        chosen = self._choose(run, scores, kernel, budget=budgets["selection"])
        counts = None
        rate = None
        if self.with_counts:
            sensitivity = self._counts_sensitivity(run.neighbors, axis.size)
            rate = budgets["counts"].epsilon / sensitivity
            counts = run.add_noise(
                scores[chosen], sensitivity=sensitivity, budget=budgets["counts"]
            )
        run.step(1, 1, "most frequent values")
        is_ranked = self.selection != "sparse-vector" or counts is not None
        if self.selection == "sparse-vector":
            # It finds values in random order: put them in that of their public noisy counts,
            # or of their positions on the axis, which claims nothing.
            order = np.argsort(chosen if counts is None else -counts, kind="stable")
            chosen = [chosen[index] for index in order]
            counts = None if counts is None else counts[order]
        return TopKRelease(
            receipt=run.receipt(),
            schema=replace(run.schema, columns=(run.schema[axis.column],)),
            axis=axis,
            chosen=np.asarray(chosen, dtype=np.int64),
            counts=counts,
            noise_rate=rate,
            is_ranked=is_ranked,
            expected=run.expected,
        )

    def _choose(self, run: Run, scores: IntArray, kernel: Counts, *, budget: Budget) -> list[int]:
        """Choose the positions of frequent values.

        Privacy:
            That of `top_k` (range sensitivity R of the kernel) or `retraverse` (sensitivity R,
            monotonic, for all counts move one way when a record or unit is added or removed).
        """
        limit = kernel.range_sensitivity(run.neighbors)
        if self.selection == "sparse-vector":
            return run.retraverse(
                scores,
                count=self.count,
                threshold_share=LEVEL_SHARE,
                sensitivity=limit,
                monotonic=True,
                budget=budget,
            )
        return run.top_k(
            scores,
            count=self.count,
            sensitivity_range=limit,
            method=self.selection,
            budget=budget,
        )

    def _budgets(self, run: Run) -> dict[str, Budget]:
        if not self.with_counts:
            return run.split(selection=1)
        return run.split(selection=1 - self.counts_share, counts=self.counts_share)

    def _counts_sensitivity(self, neighbors: Neighbors, pool: int) -> int:
        return 1 if isinstance(neighbors, AddRemoveRecord) else min(self.count, pool)

    def reads(self, schema: Schema) -> tuple[str, ...]:
        """Name the columns that a release reads; public, from settings and schema alone."""
        return listed_names((self.column,), schema)

    def expected_error(
        self, schema: Schema, n_records: int | None, epsilon: Fraction
    ) -> ExpectedError:
        """Predict how much more frequent a value can be than one that was preferred to it.

        The sparse vector has no such bound, for it may stop before it has seen every value;
        for it the standard deviation of a comparison is predicted.
        """
        axis = self._axis(schema)
        share = 1 - self.counts_share if self.with_counts else Fraction(1)
        count = min(self.count, axis.size)
        require_rate(epsilon * share / count)
        figures = {"values_to_choose_from": float(axis.size)}
        if self.selection == "sparse-vector":
            target = "comparison_deviation"
            figures[target] = _comparison_deviation(epsilon * share, count)
            claim = f"each compared with an error of {figures[target]:,.0f} (standard deviation)"
        else:
            target = "omitted_excess_95"
            figures[target] = float(self._excess(float(epsilon * share), count, axis.size))
            claim = (
                "no value omitted or ranked lower is more frequent by more than "
                f"{figures[target]:,.0f} (95 %)"
            )
        if self.with_counts:
            sensitivity = self._counts_sensitivity(schema.neighbors, axis.size)
            counts_rate = epsilon * self.counts_share / sensitivity
            require_rate(counts_rate)
            figures["each_count_95"] = float(sum_quantile(counts_rate, 1, 0.95))
        if n_records:
            figures[f"{target}_per_record"] = figures[target] / n_records
        return ExpectedError(f"{count} of {axis.size:,} values; {claim}", figures, target=target)

    def _excess(self, epsilon: float, count: int, pool: int) -> int:
        """Bound how much more frequent a value can be than one that was preferred to it (95 %).

        One-shot: by no more than the largest of all noises, P(max > t) = 1 - (1 -
        e^(-rate (t+1)))^m.  Peeling: a choice misses the best by more than t with probability
        at most m e^(-rate t), for permute-and-flip and the exponential mechanism alike.
        """
        rate = epsilon / count
        if self.selection == "one-shot":
            tail = -expm1(log1p(-0.05) / pool)
            return max(0, ceil(-log(tail) / rate - 1))
        return ceil(log(pool * count / 0.05) / rate)

    def _axis(self, schema: Schema) -> Axis:
        ((name, level),) = parse_columns((self.column,), schema)
        return schema[name].axis(level)


def _comparison_deviation(epsilon: Fraction, count: int) -> float:
    """Compute the standard deviation of a count minus the noisy threshold."""
    level = epsilon * LEVEL_SHARE
    require_rate(level)
    noise = calibrate(
        sensitivity=1, max_positives=count, monotonic=True, budget=Budget.seeded(epsilon - level)
    )
    variances = (
        noise_variance(level),
        noise.answer_deviation**2,
        noise_variance(noise.threshold_rate) / 2,  # one-sided noise has half the variance
    )
    return sqrt(sum(variances))
