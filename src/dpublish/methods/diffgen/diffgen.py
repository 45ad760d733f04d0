"""DiffGen: class counts over cells that are specialized step by step through taxonomies."""

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from math import prod
from typing import ClassVar, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpublish.accuracy.intervals import half_width
from dpublish.aggregates.complete_counts import CompleteCounts
from dpublish.aggregates.cut_counts import CutCounts
from dpublish.aggregates.sparse_counts import MAX_DOMAIN
from dpublish.core.method import ExpectedError, Run, Standing, setting
from dpublish.core.task import Task
from dpublish.data.schema import Schema
from dpublish.errors import InvalidParameter, require_count
from dpublish.mechanisms.exact.sampler import require_rate
from dpublish.mechanisms.selection import selection_rate, shortfall_95
from dpublish.mechanisms.sparse_counts import auto_threshold, require_sparse
from dpublish.methods.diffgen.cuts import (
    Cuts,
    Node,
    inner_nodes,
    most_cells,
    require_distinct_nodes,
)
from dpublish.methods.histogram.published_cells import (
    LabeledHistogramMethod,
    add_noise_to_cells,
    require_free_names,
)
from dpublish.methods.histogram.released import LabeledHistogramRelease

MOST_STEPS = 100
MAX_DENSE_CELLS = 1 << 17
SCORE_RANGE = 1
"""R: a record raises each score by 0 or 1."""


class Plan(NamedTuple):
    """What follows from the public schema: the task, its steps, and weights of epsilon."""

    task: Task
    steps: int
    step_weight: Fraction
    most_cells: int

    @property
    def counts_weight(self) -> Fraction:
        """What the steps leave of epsilon."""
        return 1 - self.steps * self.step_weight

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the predictors."""
        return tuple(column.name for column in self.task.predictors)


@dataclass(frozen=True, kw_only=True)
class DiffGen(LabeledHistogramMethod):
    """Publish noisy class counts over cells that are specialized where it helps to predict.

    Every predictor starts as one cell.  In each step, private selection replaces one node of a
    taxonomy by its children: one whose children predict the class well.  Then the records are
    counted by cell and class.  Choose it when the predictors have meaningful taxonomies and a
    small, readable table of counts is wanted.  Choose `PrivPfC` for fewer wrong predictions.

    Guarantee:
        Pure epsilon-differential privacy when one record is added or removed.  Each choice and
        the counts spend a share of epsilon; a record raises each score by at most 1 and lies in
        one cell.

    Parameters:
        target: Column with the classes, of kind category or ordinal.
        predictors: Columns that may predict the class; all others, if none is named.
        steps: How many nodes to replace by their children.
        tree_share: Part of epsilon for all choices together; the counts get the rest.
        threshold: Publish only cells whose noisy count is at least this; `"auto"` chooses it
            so that about one empty cell passes.  None publishes every cell, or does as
            `"auto"` where there are more than 131,072.

    Returns:
        A `LabeledHistogramRelease` with `predict(rows)`, `count(query)`, `rows(n)` and
        `tables()`.

    Example:
        >>> from dpublish import Budget, DiffGen, datasets, seeded
        >>> people = datasets.table("census", 4_000)
        >>> method = DiffGen(target="income", predictors=("age", "education", "hours"), steps=4)
        >>> release = method.release(people, budget=Budget.seeded("1"), rng=seeded(7))
        >>> release.summary()["from"]
        'age (2) x education (4) x hours (17); 136 cells'
        >>> some = {"age": [30, 30], "education": ["Primary", "Master"], "hours": [20, 45]}
        >>> release.predict(some).to_pylist()
        ['<=50K', '>50K']

    Reference:
        N. Mohammed, R. Chen, B. Fung, P. Yu, "Differentially Private Data Release for Data
        Mining", KDD 2011.  Taxonomies of numbers are public here, and a choice gets twice the
        precision for its share, since the score has range sensitivity 1.
    """

    name: ClassVar[str] = "diffgen"
    proofs: ClassVar[tuple[str, ...]] = ("selection", "exact")
    publishes: ClassVar[str] = (
        "noisy class counts over cells that are refined through taxonomies; predictions and rows "
        "to train on follow for free"
    )
    prefer_when: ClassVar[str] = (
        "columns have taxonomies, and others will train classifiers on the rows"
    )
    standing: ClassVar[Standing] = "baseline"

    steps: int = setting("How many nodes to replace by their children (h).", default=6)
    tree_share: Fraction = setting(
        "Part of epsilon that pays for the choices; counts get the rest.", default=Fraction(1, 2)
    )
    threshold: int | Literal["auto"] | None = setting(
        "Publish only cells whose noisy count reaches this; auto picks it so that about one "
        "empty cell gets through. Left out: every cell, or as auto where there are too many.",
        default=None,
    )

    def __post_init__(self) -> None:
        require_count(steps=self.steps)
        object.__setattr__(self, "steps", int(self.steps))  # a NumPy integer, too
        if self.steps > MOST_STEPS:
            raise InvalidParameter(f"steps ({self.steps}) must be at most {MOST_STEPS}")
        if not isinstance(self.tree_share, Fraction) or not 0 < self.tree_share < 1:
            raise InvalidParameter(f"tree_share ({self.tree_share}) must lie between 0 and 1")
        if self.threshold is not None and self.threshold != "auto":
            require_count(threshold=self.threshold)
            object.__setattr__(self, "threshold", int(self.threshold))

    def _release(self, run: Run) -> LabeledHistogramRelease:
        """Publish counts of `table` by refined predictors and class.

        Privacy:
            `budget.epsilon`-differentially private when one record is added or removed.  The
            number of steps is public, for each step uses up one inner node of a taxonomy.
            A score is a sum of class maxima over the children of a node; the record lies in
            at most one child and raises its maximum by 0 or 1, so R = 1, and `select` costs
            its share.  Candidates depend on earlier choices only.  Counts get noise of rate
            their share, for a record lies in one cell; whether they are cut off at a
            threshold depends on chosen cells only.  Shares add up.
        """
        plan = self._plan(run.schema)
        # Opened before any row is read: a share that is already used stops here.
        budgets = run.split(
            **{f"step-{step + 1}": plan.step_weight for step in range(plan.steps)},
            counts=plan.counts_weight,
        )
        counts_budget = budgets.pop("counts")
        cuts = Cuts.of_roots(plan.task.predictors)
        kernel = _leaf_kernel(run.schema, plan.task)
        by_leaf = kernel.split(run.sum(kernel))
        leaves = dict(zip(plan.names, by_leaf, strict=True))
        for step, share in enumerate(budgets.values()):
            scores = score_nodes(cuts.candidates, leaves)
            chosen = run.select(scores, sensitivity_range=SCORE_RANGE, budget=share)
            cuts = cuts.refine(chosen)
            run.step(step + 1, plan.steps + 1, "cells")
        axes = (*cuts.axes(plan.task.predictors), plan.task.classes)
        cells_kernel = CutCounts((axes,), (*plan.names, self.target))
        size = prod(axis.size for axis in axes)
        rate = counts_budget.epsilon
        threshold = self._threshold(size, rate)
        exact = run.sum(cells_kernel)[0].compact()
        cells, counts = add_noise_to_cells(run, exact, size, threshold, budget=counts_budget)
        run.step(plan.steps + 1, plan.steps + 1, "counts")
        return LabeledHistogramRelease(
            receipt=run.receipt(),
            schema=plan.task.schema_of(run.schema),
            axes=axes,
            cells=cells,
            counts=counts,
            noise_rate=rate,
            threshold=threshold,
        )

    def expected_error(
        self, schema: Schema, n_records: int | None, epsilon: Fraction
    ) -> ExpectedError:
        """Predict the error of one count, and by how much a choice may miss the best.

        Which cells are counted depends on the choices; their number is bounded.
        """
        plan = self._plan(schema)
        rate = epsilon * plan.counts_weight
        require_rate(rate)
        if isinstance(self.threshold, int):
            require_sparse(plan.most_cells, self.threshold, rate)
        figures = {
            "steps": float(plan.steps),
            "cells_at_most": float(plan.most_cells),
            "one_cell_95": half_width(rate, np.ones(1), 0.95),
        }
        if plan.steps:
            step_rate = selection_rate(epsilon * plan.step_weight, SCORE_RANGE)
            nodes = sum(len(inner_nodes(column)) for column in plan.task.predictors)
            figures["choice_shortfall_95"] = float(shortfall_95(nodes, step_rate))
        if n_records:
            figures["records_per_cell_at_least"] = n_records / plan.most_cells
        summary = (
            f"{plan.steps} choices, at most {plan.most_cells:,} cells; each count within "
            f"{figures['one_cell_95']:,.0f} of the truth (95 %)"
        )
        return ExpectedError(summary, figures, target="one_cell_95", is_of_goal=False)

    def _plan(self, schema: Schema) -> Plan:
        task = self.class_task(schema)
        require_free_names(task)
        _leaf_kernel(schema, task)  # refuses more leaves than can be counted one by one
        for column in task.predictors:
            require_distinct_nodes(column)
        # Each step uses up one node that has children: so many can be made, and no more.
        steps = min(self.steps, sum(len(inner_nodes(column)) for column in task.predictors))
        cells = most_cells(task.predictors, steps) * task.classes.size
        if cells >= MAX_DOMAIN:
            raise InvalidParameter(
                f"{steps} steps may make 2**62 cells or more; take fewer steps or predictors"
            )
        return Plan(task, steps, self.tree_share / self.steps, cells)

    def _threshold(self, size: int, rate: Fraction) -> int | None:
        if isinstance(self.threshold, int):
            return self.threshold
        if self.threshold is None and size <= MAX_DENSE_CELLS:
            return None
        return auto_threshold(size, rate)


def score_nodes(
    nodes: tuple[Node, ...], leaves: Mapping[str, NDArray[np.int64]]
) -> NDArray[np.int64]:
    """Add up the majority class of each child of each node.

    >>> counts = {"sex": np.array([[5, 2], [1, 4]])}
    >>> score_nodes((Node("sex", 0, 2, (0, 1)),), counts)
    array([9])
    """
    scores = [
        np.add.reduceat(leaves[node.column][: node.stop], node.children, axis=0).max(axis=1).sum()
        for node in nodes
    ]
    return np.array(scores, dtype=np.int64)


def _leaf_kernel(schema: Schema, task: Task) -> CompleteCounts:
    """Count by leaf and class for each predictor, in one pass: all that any step needs.

    The score of a node looks at the values of its own column only, whatever the cuts of the
    others are.
    """
    names = tuple(column.name for column in task.predictors)
    target = task.target.name
    sets = tuple(((name, None), (target, None)) for name in names)
    return CompleteCounts(schema, sets, (*names, target))
