"""PrivBayes: a Bayesian network of low degree, with noisy joint counts of a few columns each."""

from dataclasses import dataclass, replace
from fractions import Fraction
from typing import ClassVar, Literal, get_args

from dpublish.accuracy.noise_distribution import sum_quantile
from dpublish.aggregates.cells import ColumnSet
from dpublish.aggregates.complete_counts import CompleteCounts
from dpublish.aggregates.dependence import ASSIGNMENT, DISTANCE, MOST_CELLS_TO_ASSIGN, Score
from dpublish.core.method import ExpectedError, Method, Run, setting
from dpublish.data.column import Column, NumberColumn
from dpublish.data.schema import Schema, listed_names, needs_contribution
from dpublish.errors import InvalidParameter, require_count, require_known, require_positive
from dpublish.mechanisms.exact.sampler import require_rate
from dpublish.methods.privbayes.network import Node, joint_sets
from dpublish.methods.privbayes.released import PrivBayesRelease
from dpublish.methods.privbayes.structure import (
    Plan,
    choose_network,
    make_plan,
    records_per_cell,
    require_countable,
)
from dpublish.privacy.budget import Budget

ScoreName = Literal["R", "F"]
SIZE_SHARE = Fraction(3, 100)
"""Part of epsilon that the noisy number of records costs."""
LEAST_IN_MARGINALS = 8
"""How often theta a cell of a marginal must hold for a network without a target."""
MOST_PARENTS = 6
_MOST_ASSIGNED_PARENTS = MOST_CELLS_TO_ASSIGN.bit_length() - 1


@dataclass(frozen=True, kw_only=True)
class PrivBayes(Method[PrivBayesRelease]):
    """Publish a Bayesian network of low degree, and draw synthetic rows from it.

    Chooses a few parents for each column, then adds noise to the joint counts of each column
    with its parents.  Choose `Synth` for rows of any use.  Choose this one for a network whose
    parents can be read off, or to predict one column from the others; choose `DPCopula` for
    columns of many numbers, and `Histogram` for a few columns.

    Guarantee:
        Pure epsilon-differential privacy for adding or removing one record.
        Proof: docs/proofs/bayes_network.md.

    Parameters:
        columns: Columns of the network; all, unless named.
        target: Class column, to be predicted with `predict`; it comes first in the network.
        score: How dependence is measured: "R", the distance from independence, for all
            columns; "F", the fit of an assignment, for columns of two values each.
        theta: Least average count of a joint cell, in units of its noise.  Without a target there
            is no network unless a cell of a single column could hold eight times as much.
        structure_share: Part of epsilon, after that of the size, for choosing the network.
        max_degree: Most parents of a column.

    Returns:
        A `PrivBayesRelease` with `rows(n)`, `count(query)`, `marginal(column)`,
        `predict(rows)`, `nodes`, `probabilities`.

    Example:
        >>> from dpublish import Budget, PrivBayes, datasets, seeded
        >>> people = datasets.table("census", 2_000)
        >>> method = PrivBayes(columns=("age", "education", "sex", "income"), target="income")
        >>> release = method.release(people, budget=Budget.seeded("2"), rng=seeded(7))
        >>> for node in release.nodes:
        ...     print(node.column, [name for name, level in node.parents])
        income []
        education ['income']
        age ['income', 'education']
        sex ['income', 'education', 'age']
        >>> print(release.count("sex = Female"))
        1,002 (95 % confidence interval 976 to 1,028)
        >>> release.rows(1, seed=1).to_pylist()
        [{'age': 32, 'education': 'Master', 'sex': 'Male', 'income': '<=50K'}]

    Reference:
        J. Zhang, G. Cormode, C. Procopiuc, D. Srivastava, X. Xiao, "PrivBayes: Private Data
        Release via Bayesian Networks", ACM TODS 42(4), 2017.
    """

    name: ClassVar[str] = "privbayes"
    proofs: ClassVar[tuple[str, ...]] = ("bayes_network", "selection", "exact")
    task: ClassVar[str] = "synthesis"
    publishes: ClassVar[str] = (
        "a Bayesian network of noisy joint counts; rows of all columns and predictions follow for "
        "free"
    )
    prefer_when: ClassVar[str] = (
        "you want a network whose parents can be read off, or its predictions; synth is the "
        "default for rows of any use"
    )

    columns: tuple[str, ...] = setting("Columns of the network; all, unless named.", default=())
    target: str | None = setting(
        "Class column, to be predicted with predict; it comes first in the network.", default=None
    )
    score: ScoreName = setting(
        "How to measure dependence. R: distance from independence, for all columns; F: fit of "
        "an assignment, for columns of two values each.",
        default="R",
    )
    theta: Fraction = setting(
        "Least average count of a joint cell, in units of its noise.", default=Fraction(4)
    )
    structure_share: Fraction = setting(
        "Part of epsilon, after that of the size, for choosing the network.",
        default=Fraction(3, 10),
    )
    max_degree: int = setting("Most parents of a column.", default=4)

    def __post_init__(self) -> None:
        if not isinstance(self.columns, tuple):
            raise InvalidParameter("columns must be a list of names")
        require_known("score", self.score, get_args(ScoreName))
        require_count(max_degree=self.max_degree)
        object.__setattr__(self, "max_degree", int(self.max_degree))  # a NumPy integer, too
        most = _MOST_ASSIGNED_PARENTS if self.score == "F" else MOST_PARENTS
        if self.max_degree > most:
            raise InvalidParameter(f"max_degree ({self.max_degree}) must be at most {most}")
        for name in ("theta", "structure_share"):
            if not isinstance(getattr(self, name), Fraction):
                raise InvalidParameter(f"{name} must be an exact Fraction")
        require_positive(theta=self.theta, structure_share=self.structure_share)
        if self.structure_share >= 1:
            raise InvalidParameter(f"structure_share ({self.structure_share}) must be below 1")

    def _release(self, run: Run) -> PrivBayesRelease:
        """Publish a network and its noisy joint counts.

        Privacy:
            `run.epsilon`-differentially private when one record is added or removed.  The
            noisy size costs its share.  What it allows (parents, levels, whether a network is
            chosen at all) follows from it and the schema.  The network costs one selection a
            column (`choose_network`).  A record lies in one cell of each of the m joints, so
            their counts move by m in all and get two-sided geometric noise of rate (their
            share) / m.  If no network is chosen its share goes to the counts, so all of
            epsilon is spent either way.  Rows and predictions follow from noisy counts alone.
            Proof: docs/proofs/bayes_network.md.
        """
        columns = self._columns(run.schema)
        budgets = run.split(size=SIZE_SHARE, network=1 - SIZE_SHARE)
        exact_size = int(run.sum(_joint_counts(run.schema, columns, ((),)))[0])
        size = run.noisy_size(exact_size, budget=budgets["size"])
        plan = self._plan(columns, size, budgets["network"].epsilon)
        nodes, share = self._choose(run, plan, budget=budgets["network"])
        sets = joint_sets(nodes)
        rate = share.epsilon / len(sets)
        exact = run.sum(_joint_counts(run.schema, columns, sets))
        counts = run.add_noise(exact, sensitivity=len(sets), budget=share)
        return PrivBayesRelease(
            receipt=run.receipt(),
            schema=replace(run.schema, columns=columns),
            nodes=nodes,
            counts=counts,
            noise_rate=rate,
            size=size,
            size_rate=budgets["size"].epsilon,
            target=self.target,
        )

    def _choose(self, run: Run, plan: Plan, *, budget: Budget) -> tuple[tuple[Node, ...], Budget]:
        """Choose the network, if the plan allows one; return it and the share for the counts.

        Privacy:
            That of `choose_network` with the structure's share; without a network nothing is
            read and the whole budget is left.
        """
        if plan.degree == 0:
            nodes = tuple(Node(name, plan.own(name)[0]) for name in plan.levels)
            return nodes, budget.split(counts=1)["counts"]
        budgets = budget.split(structure=self.structure_share, counts=1 - self.structure_share)
        nodes = choose_network(
            run,
            plan,
            schema=run.schema,
            first=() if self.target is None else (self.target,),
            score=self._score,
            budget=budgets["structure"],
        )
        return nodes, budgets["counts"]

    def reads(self, schema: Schema) -> tuple[str, ...]:
        """Name the columns that a release reads; public, from settings and schema alone."""
        return listed_names(self.columns, schema) if self.columns else super().reads(schema)

    def expected_error(
        self, schema: Schema, n_records: int | None, epsilon: Fraction
    ) -> ExpectedError:
        """Predict the noise of a joint count, for as many joints as there are columns.

        There may be fewer joints, and then less noise.  With the number of records, it also
        predicts how many parents and cells are allowed.
        """
        columns = self._columns(schema)
        self._require_rates(columns, epsilon)
        share = (1 - SIZE_SHARE) * (1 - self.structure_share)
        width = float(sum_quantile(epsilon * share / len(columns), 1, 0.95))
        figures = {"one_cell_95": width, "most_joints": float(len(columns))}
        summary = f"up to {len(columns)} joints; each count within {width:,.0f} of the truth (95 %)"
        if n_records:
            plan = self._plan(columns, n_records, epsilon * (1 - SIZE_SHARE))
            figures["one_cell_95_per_record"] = width / n_records
            figures["parents"] = float(plan.degree)
            figures["cells_per_joint"] = float(max(plan.most_cells, 0))
            summary += f"; up to {plan.degree} parents a column"
        return ExpectedError(summary, figures, target="one_cell_95")

    @property
    def _score(self) -> Score:
        return ASSIGNMENT if self.score == "F" else DISTANCE

    def _plan(self, columns: tuple[Column, ...], size: int, epsilon: Fraction) -> Plan:
        least = LEAST_IN_MARGINALS * self.theta
        is_worth_it = self.target or records_per_cell(columns, size, epsilon) >= least
        return make_plan(
            columns,
            size=size,
            joint_budget=epsilon * (1 - self.structure_share),
            whole_budget=epsilon,
            theta=self.theta,
            max_degree=self.max_degree if is_worth_it else 0,
            target=self.target,
        )

    def _require_rates(self, columns: tuple[Column, ...], epsilon: Fraction) -> None:
        """Refuse an epsilon whose smallest share allows no exact noise."""
        left = epsilon * (1 - SIZE_SHARE)
        require_rate(epsilon * SIZE_SHARE)
        require_rate(left * (1 - self.structure_share) / len(columns))
        choices = max(len(columns) - 1, 1)
        require_rate(left * self.structure_share / choices / self._score.sensitivity_range)

    def _columns(self, schema: Schema) -> tuple[Column, ...]:
        if schema.unit is not None:
            raise needs_contribution(schema, self.name)
        names = self.columns or schema.names
        for name in names:
            require_known("column", name, schema.names)
            if names.count(name) > 1:
                raise InvalidParameter(f"column {name!r} is listed twice")
        columns = tuple(schema[name] for name in names)
        for column in columns:
            require_countable(column, self.target)
        if self.score == "F" and any(column.size != 2 for column in columns):
            raise InvalidParameter("score F needs columns of two values each; take score R")
        if self.target is not None:
            _require_target(self.target, names, schema)
        return columns


def _require_target(target: str, names: tuple[str, ...], schema: Schema) -> None:
    require_known("column", target, names)
    column = schema[target]
    if isinstance(column, NumberColumn):
        raise InvalidParameter(
            f"the target {target!r} holds {column.holds}; classes need kind category or ordinal"
        )
    if schema[target].size < 2:
        raise InvalidParameter(f"the target {target!r} has one class only")


def _joint_counts(
    schema: Schema, columns: tuple[Column, ...], sets: tuple[ColumnSet, ...]
) -> CompleteCounts:
    """Count the complete records by the given sets of columns."""
    return CompleteCounts(schema, sets, tuple(column.name for column in columns))
