"""DiffPID3: a decision tree whose splits are chosen privately."""

from dataclasses import dataclass, replace
from fractions import Fraction
from math import ceil, sqrt
from typing import ClassVar, Literal

import numpy as np

from dpublish.accuracy.noise_distribution import sum_quantile
from dpublish.core.method import ExpectedError, Method, Run, setting
from dpublish.core.task import Task, task_names
from dpublish.data.schema import Schema, parse_columns
from dpublish.errors import InvalidParameter, require_count, require_known
from dpublish.mechanisms.exact.sampler import require_rate
from dpublish.mechanisms.selection import selection_rate, shortfall_95
from dpublish.methods.trees.growth import Plan, grow
from dpublish.methods.trees.released import DecisionTreeRelease
from dpublish.methods.trees.splits import MOST_RECORDS, Room, Score, make_score

MOST_LEVELS = 30


@dataclass(frozen=True, kw_only=True)
class DiffPID3(Method[DecisionTreeRelease]):
    """Publish a decision tree that predicts one column from others.

    Splits are chosen by private selection, level by level; the classes are counted in the
    leaves, with noise.  Choose it when people will read the model: a few rules say most of it,
    and there are many records.  Choose `PrivPfC` for the fewest wrong predictions, or for
    synthetic rows.

    Guarantee:
        Pure epsilon-differential privacy when one record is added or removed.  Every path from
        the root to a leaf spends epsilon.  Proof: docs/proofs/diffpid3.md.

    Parameters:
        target: Column with the classes, of kind category or ordinal.
        predictors: Columns to split by; all others, if none is named.  `"job@1"` splits job
            into the cells of level 1 of its taxonomy.
        depth: Most splits on any path.
        score: What makes a good split.  `"max"` counts the records of each cell's majority
            class; `"gini"` and `"entropy"` are finer, with two and about log2(records) + 1.4
            times the noise.
        max_records: Number of records up to which the entropy is exact; goes with it only.
        cuts: `"joint"` chooses among all splits of all columns at once; `"staged"` first
            spends a share on one cut of every number column, as DiffP-C4.5 does.
        prune: Let a branch predict what its parent does unless its noisy counts clearly say
            otherwise; gives shorter rules.

    Returns:
        A `DecisionTreeRelease` with `predict(rows)`, `rules()`, `count(query)` and `tables()`.

    Example:
        >>> from dpublish import Budget, DiffPID3, datasets, seeded
        >>> people = datasets.table("census", 4_000)
        >>> method = DiffPID3(
        ...     target="income", predictors=("education", "hours"), depth=2, prune=True
        ... )
        >>> release = method.release(people, budget=Budget.seeded("1"), rng=seeded(7))
        >>> print(release.rules())
        education = Bachelor
          hours < 30: <=50K
          hours >= 30 or (missing): >50K
        education = Master
          hours < 15: <=50K
          hours >= 15 or (missing): >50K
        education in Primary, Secondary, Vocational: <=50K
        education = Doctorate: >50K

    Reference:
        A. Friedman and A. Schuster (2010), "Data mining with differential privacy"; D. Su
        (2016), PhD thesis, Purdue University, Algorithm 4.
    """

    name: ClassVar[str] = "diffpid3"
    proofs: ClassVar[tuple[str, ...]] = ("diffpid3", "selection", "exact")
    task: ClassVar[str] = "classification"
    publishes: ClassVar[str] = (
        "a decision tree with noisy class counts; rules and predictions follow for free"
    )
    prefer_when: ClassVar[str] = "people will read the model, and a few splits suffice"

    target: str = setting("Column of the classes.")
    predictors: tuple[str, ...] = setting(
        "Columns to split by, all others unless named; job@1 splits job into the cells of "
        "level 1 of its taxonomy.",
        default=(),
    )
    depth: int = setting("Most splits on any path.", default=3)
    score: Score = setting(
        "What makes a good split: max counts the records of each cell's majority class; gini "
        "and entropy are finer, and noisier.",
        default="max",
    )
    max_records: int | None = setting(
        "Number of records up to which the entropy is exact; its noise grows with the logarithm.",
        default=None,
    )
    cuts: Literal["joint", "staged"] = setting(
        "How numbers are cut: joint chooses among all splits of all columns at once; staged "
        "first spends a share on one cut of every number column.",
        default="joint",
    )
    prune: bool = setting(
        "Let a branch predict what its parent does unless its noisy counts clearly say "
        "otherwise; gives shorter rules.",
        default=False,
    )

    def __post_init__(self) -> None:
        require_count(depth=self.depth)
        if self.depth > MOST_LEVELS:
            raise InvalidParameter(f"depth ({self.depth}) must be at most {MOST_LEVELS}")
        require_known("way to cut", self.cuts, ("joint", "staged"))
        if self.max_records is not None:
            require_count(max_records=self.max_records)
            if self.max_records > MOST_RECORDS:
                raise InvalidParameter(f"max_records must be at most {MOST_RECORDS:,}")
            object.__setattr__(self, "max_records", int(self.max_records))
        make_score(self.score, self.max_records)
        object.__setattr__(self, "depth", int(self.depth))  # a NumPy integer, too

    def _release(self, run: Run) -> DecisionTreeRelease:
        """Publish a tree that predicts the target.

        Privacy:
            `run.epsilon`-differentially private when one record is added or removed, as
            `grow` argues: noisy sizes, private choices and noisy counts, at most epsilon
            along each path.  Predictions and pruning use the noisy counts alone.
        """
        plan = self._plan(run.schema)
        growth = grow(run, plan, budget=run.budget)
        kept = (*plan.columns, self.target)
        return DecisionTreeRelease(
            receipt=run.receipt(),
            schema=replace(run.schema, columns=tuple(run.schema[name] for name in kept)),
            target=self.target,
            branches=growth.branches,
            sizes=growth.sizes,
            counts=np.stack([growth.counts[leaf] for leaf in sorted(growth.counts)]),
            size_rate=plan.share(run.epsilon),
            count_rates=plan.count_rates(run.epsilon),
            prune=self.prune,
            expected=run.expected,
        )

    def reads(self, schema: Schema) -> tuple[str, ...]:
        """Name the columns that a release reads; public, from settings and schema alone."""
        return task_names(schema, self.target, self.predictors)

    def expected_error(
        self, schema: Schema, n_records: int | None, epsilon: Fraction
    ) -> ExpectedError:
        """Predict how far choices fall behind the best, and how noisy the counts are.

        The figures hold for a choice at the root and for leaves at full depth; leaves that
        stop earlier have less noise.
        """
        plan = self._plan(schema)
        share = plan.share(epsilon)
        require_rate(share)
        rate = selection_rate(share, plan.score.sensitivity_range)
        room = Room(plan.axes)
        splits = sum(map(len, room.splits.values()))
        needed = float(room.usual_branches * plan.classes / share) * sqrt(2)
        figures = {
            "splits_to_choose_from": float(splits),
            "choice_shortfall_95": shortfall_95(splits, rate) / plan.score.steps,
            "leaf_count_95": float(sum_quantile(plan.count_rates(epsilon)[-1], 1, 0.95)),
            "records_needed_to_split": float(ceil(needed)),
        }
        if n_records:
            figures["choice_shortfall_per_record"] = figures["choice_shortfall_95"] / n_records
        summary = (
            f"at most {self.depth} splits on a path; each choice scores at most "
            f"{figures['choice_shortfall_95']:,.0f} records less than the best, each count of a "
            f"leaf within {figures['leaf_count_95']:,.0f} (95 %)"
        )
        return ExpectedError(summary, figures, target="choice_shortfall_95", is_of_goal=False)

    def _plan(self, schema: Schema) -> Plan:
        levels = dict(parse_columns(self.predictors, schema))
        task = Task.of(schema, target=self.target, predictors=tuple(levels))
        return Plan(
            axes=tuple(column.axis(levels.get(column.name)) for column in task.predictors),
            target=self.target,
            classes=task.classes.size,
            depth=self.depth,
            score=make_score(self.score, self.max_records),
            staged=self.cuts == "staged",
        )
