"""Which tables to count: chosen one by one, against what is already released.

A candidate is a set of columns, on a level of classes each.  Its score is the number of records
by which its true counts exceed what the model expects, less a part of the noise that counting it
would bring.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import combinations, product
from math import ceil, comb, log, prod
from typing import NamedTuple

import numpy as np

from dpublish.aggregates.kernel import unbounded
from dpublish.core.run import Run
from dpublish.methods.synth.fit import LOOK_STEPS, add_classes
from dpublish.methods.synth.junction_tree import Columns, JunctionTree, count_cells
from dpublish.methods.synth.kernels import ClassCounts
from dpublish.methods.synth.model import CountedTable, Known, Model, fit_model
from dpublish.methods.synth.plan import Plan, table_weights
from dpublish.methods.synth.quality import STEPS
from dpublish.privacy.budget import Budget
from dpublish.privacy.neighbors import AddRemoveRecord, Neighbors
from dpublish.types import FloatArray, IntArray

PENALTY = Fraction(3, 10)
"""Part of the expected noise (half of its L1 distance is 1/2) that is taken off a score."""
CELLS_PER_NOISE = Fraction(4, 10)
"""Most cells of a table: so that a cell holds 2.5 times the scale of its noise on average."""
MOST_CELLS = 300_000
"""Most cells of all cliques of the model's tree."""
MOST_LARGER = 2_000
"""Most candidates of three or more columns at one look."""
COUNTED_AT_ONCE = 200_000_000
"""Records times candidates of three or more columns that are counted at one look."""
_LARGEST = 1 << 60


class Candidate(NamedTuple):
    """A set of columns, each on a level of its classes."""

    columns: Columns
    levels: tuple[int, ...]


@dataclass(frozen=True)
class ExcessScores:
    """Scores of candidates: what their true counts have beyond their expected ones.

    Adding a record adds 0 or 1 to one count of each candidate, so each score rises by 0 to
    STEPS times its weight, and none falls.
    """

    weights: tuple[int, ...]

    def range_sensitivity(self, neighbors: Neighbors) -> int:
        """Return the most by which two scores can move against each other."""
        if not isinstance(neighbors, AddRemoveRecord):
            raise unbounded(neighbors, "choose among counts of single records")
        return STEPS * max(self.weights)


def excess(counts: IntArray, expected: IntArray) -> int:
    """Add up by how much counts exceed what is expected, in steps of a record.

    >>> excess(np.array([3, 0, 5]), STEPS * np.array([1, 1, 6])) // STEPS
    2
    """
    return int(np.maximum(STEPS * counts - expected, 0).sum())


def whole_scores(scores: Sequence[int]) -> IntArray:
    """Write scores as an array of one type, whatever they are.

    Beyond what any table reaches they are cut off: of two that a record moves, neither moves
    further for that.
    """
    return np.array([max(-_LARGEST, min(score, _LARGEST)) for score in scores], dtype=np.int64)


def in_steps(expected: FloatArray) -> IntArray:
    """Round expected counts to steps of a record."""
    return np.rint(STEPS * np.asarray(expected)).astype(np.int64)


class ExactTables:
    """Exact counts: private.  All pairs of columns, on their last levels, are counted at once.

    Every coarser table of two columns is added up from them; larger ones are counted when they
    are asked for, on the levels on which they are candidates.
    """

    def __init__(self, run: Run, known: Known) -> None:
        self._run, self._known = run, known
        pairs = combinations(range(len(known.names)), 2)
        last = [len(one.levels) - 1 for one in known.classes]
        self._found: dict[Candidate, IntArray] = {}
        self.count([Candidate(pair, tuple(last[i] for i in pair)) for pair in pairs])

    def count(self, candidates: Iterable[Candidate]) -> None:
        """Count candidates that are not counted yet, in one pass over the rows."""
        missing = [one for one in candidates if one not in self._found]
        if not missing:
            return
        known = self._known
        sets = tuple(
            tuple((known.names[i], level) for i, level in zip(*one, strict=True)) for one in missing
        )
        classes = {
            (known.names[i], level): known.classes[i].levels[level]
            for one in missing
            for i, level in zip(*one, strict=True)
        }
        kernel = ClassCounts(known.names, classes, sets)
        counts = kernel.split(self._run.sum(kernel))
        self._found.update(zip(missing, counts, strict=True))

    def last(self, columns: Columns) -> IntArray:
        """Return the counts of two columns on their last levels."""
        levels = tuple(len(self._known.classes[i].levels) - 1 for i in columns)
        return self._found[Candidate(columns, levels)]

    def on_levels(self, candidate: Candidate) -> IntArray:
        """Return the counts of a candidate."""
        if candidate in self._found:
            return self._found[candidate]
        table = self.last(candidate.columns)
        for axis, (column, level) in enumerate(zip(*candidate, strict=True)):
            classes = self._known.classes[column]
            lookup = classes.coarser(len(classes.levels) - 1, level)
            if lookup is not None:
                table = add_classes(table, lookup, classes.sizes[level], axis)
        return table


@dataclass
class _Look:
    """What one look at the candidates knows: all of it public but the scores."""

    known: Known
    model: Model | None
    chosen: list[Candidate]

    def expected(self, candidate: Candidate) -> IntArray:
        """Compute what is expected of a candidate, by the model or by independent columns."""
        known = self.known
        if self.model is not None:
            return in_steps(self.model.expected(*candidate))
        found = np.full((), known.total)
        for column, level in zip(*candidate, strict=True):
            counts = np.bincount(known.classes[column].levels[level], weights=known.values[column])
            found = np.multiply.outer(found, counts / known.total)
        return in_steps(found)


def choose_tables(
    run: Run,
    known: Known,
    exact: ExactTables,
    plan: Plan,
    *,
    targets: Sequence[int],
    target_weight: int,
    choices: Budget,
    tables: Budget,
) -> tuple[Known, Model]:
    """Choose tables, count them with noise, and fit the model, look by look.

    Privacy:
        Costs `choices.epsilon + tables.epsilon` when one record is added or removed.  What is a
        candidate, what is expected of it, its penalty and its weight follow from the plan and
        from what was released before.  A record adds 1 to one count of each candidate, so a
        score rises by at most its weight and none falls: the range is the largest weight
        (`ExcessScores`), and each choice gets an equal share.  A chosen table is a set of
        disjoint cells, so one record moves it by 1, and its share of `tables` is the rate of
        its noise.  If candidates run out, the choices that are left are spent on nothing and
        the rest of `tables` on counting the chosen tables once more.
        Proof: docs/proofs/synth.md.
    """
    noise = float(plan.tables / tables.epsilon)
    limit = max(4.0, float(CELLS_PER_NOISE) * known.total / noise)
    candidates = list_candidates(known, limit)
    shares = choices.split_evenly(plan.tables, "choice")
    left, paying = plan.tables, tables
    model = fit_model(known, steps=LOOK_STEPS) if known.prior else None
    looks = plan.batches
    for number, wanted in enumerate(looks):
        run.step(number, len(looks) + 1, "choosing tables")
        larger = list_larger(known, limit, most=plan.most_in_table)
        exact.count(larger)
        pool = [*candidates, *larger]
        new = _choose_batch(
            run,
            _Look(known, model, []),
            exact,
            pool,
            noise,
            weights=lambda one: target_weight if {*one.columns} & {*targets} else 1,
            shares=[shares.pop() for _ in range(wanted)],
        )
        if not new:
            left -= wanted
            continue
        parts = {"now": len(new)} if left == wanted else {"now": len(new), "later": left - wanted}
        budgets = paying.split(**parts)
        known = _count(run, known, exact, new, budget=budgets["now"])
        left -= wanted
        if left:
            paying = budgets["later"]
            model = fit_model(known, model, steps=LOOK_STEPS)
    if not paying.is_used:
        again = [Candidate(one.columns, one.levels) for one in known.tables]
        known = _count(run, known, exact, again, budget=paying) if again else known
        if not again:
            paying.spend()
    return known, fit_model(known, model)


def _count(
    run: Run, known: Known, exact: ExactTables, chosen: Sequence[Candidate], *, budget: Budget
) -> Known:
    """Count chosen tables with noise: the larger ones with more of the budget.

    Privacy:
        As argued in `choose_tables`; the sizes of the tables are public.
    """
    counts = [exact.on_levels(one) for one in chosen]
    weights = table_weights([table.size for table in counts])
    shares = budget.split(**{f"table-{i + 1}": weight for i, weight in enumerate(weights)})
    found = []
    for one, table, share in zip(chosen, counts, shares.values(), strict=True):
        rate = share.epsilon
        noisy = run.add_noise(table.ravel(), sensitivity=1, budget=share)
        found.append(CountedTable(one.columns, one.levels, noisy.reshape(table.shape), rate))
    return replace(known, tables=(*known.tables, *found))


def _choose_batch(
    run: Run,
    look: _Look,
    exact: ExactTables,
    pool: Sequence[Candidate],
    noise: float,
    *,
    weights: Callable[[Candidate], int],
    shares: Sequence[Budget],
) -> list[Candidate]:
    """Choose tables of one look: those of a look form a forest.

    Privacy:
        As argued in `choose_tables`: each choice spends its share, also if nothing is left to
        choose.  The expectations are computed once, before any count is compared with them.
    """
    taken = {table.columns for table in look.known.tables}
    pool = [one for one in pool if one.columns not in taken]
    rules = _SizeRule(look.known, look.model)
    pool = [one for one in pool if rules.fits(one)]
    scores = {}
    for one in pool:
        expected = look.expected(one)
        penalty = ceil(PENALTY * expected.size * Fraction(noise))
        found = excess(exact.on_levels(one), expected) - STEPS * penalty
        scores[one] = weights(one) * found
    forest = _Forest(len(look.known.names))
    for share in shares:
        able = [one for one in pool if forest.joins(one.columns)]
        if not able:
            share.spend()
            continue
        index = run.select(
            whole_scores([scores[one] for one in able]),
            of=ExcessScores(tuple(weights(one) for one in able)),
            budget=share,
        )
        one = able[index]
        pool = [other for other in pool if other.columns != one.columns]
        if rules.allows([*look.chosen, one]):
            look.chosen.append(one)
            forest.join(one.columns)
    return look.chosen


class _Forest:
    """Which columns the tables of one look have joined."""

    def __init__(self, columns: int) -> None:
        self._of = list(range(columns))

    def joins(self, columns: Columns) -> bool:
        """Check whether a set joins columns that are not all joined."""
        return len({self._of[i] for i in columns}) > 1

    def join(self, columns: Columns) -> None:
        """Join the columns of a set."""
        joined = {self._of[i] for i in columns}
        self._of = [min(joined) if tree in joined else tree for tree in self._of]


class _SizeRule:
    """Keeps the tree of the model small; looks at released things only."""

    def __init__(self, known: Known, model: Model | None) -> None:
        self._known = known
        self._tree = None if model is None else model.tree

    def fits(self, one: Candidate) -> bool:
        """Bound the cells that a candidate adds: its columns are carried along a path."""
        if self._tree is None or self._tree.find(one.columns) >= 0:
            return True
        return self._tree.cells + added_cells(self._tree, one.columns) <= MOST_CELLS

    def allows(self, chosen: Sequence[Candidate]) -> bool:
        """Count the cells of the tree with all chosen tables."""
        known = replace(
            self._known,
            tables=(
                *self._known.tables,
                *(CountedTable(*one, np.zeros(0, np.int64), Fraction(1)) for one in chosen),
            ),
        )
        return count_cells(known.sizes, known.sets) <= MOST_CELLS


def added_cells(tree: JunctionTree, columns: Columns) -> int:
    """Bound the cells that joining some columns adds to a tree."""
    homes = [tree.find((column,)) for column in columns]
    path = {i for a, b in combinations(homes, 2) for i in tree.path(a, b)}
    carried = sorted(tree.sizes[column] for column in columns)[:-1]
    return sum(prod(tree.shapes[i]) for i in path) * prod(carried)


def list_candidates(known: Known, limit: float) -> list[Candidate]:
    """List every pair of columns on the finest levels that a table of `limit` cells allows."""
    found = []
    for pair in combinations(range(len(known.names)), 2):
        one = finest(known, pair, limit)
        if one is not None:
            found.append(one)
    return found


def finest(known: Known, columns: Columns, limit: float) -> Candidate | None:
    """Find the finest levels of some columns within a limit; None if one has one class only.

    Of equal numbers of cells, that with the most equal sides; if none is within the limit, the
    coarsest one.
    """
    options = [
        [(level, size) for level, size in enumerate(one.sizes[: one.joined + 1]) if size > 1]
        for one in (known.classes[i] for i in columns)
    ]
    if not all(options):
        return None
    best, most = tuple(levels[0][0] for levels in options), (0.0, 0.0)
    for chosen in product(*options):
        sizes = [size for _, size in chosen]
        worth = (float(prod(sizes)), -log(max(sizes) / min(sizes)))
        if worth[0] <= limit and worth > most:
            best, most = tuple(level for level, _ in chosen), worth
    return Candidate(columns, best)


def list_larger(known: Known, limit: float, *, most: int) -> list[Candidate]:
    """List sets of three up to `most` columns, on their finest levels, that a table allows.

    Sets that add a column to a counted table come first, and then small ones.  Of three columns
    at most, only such: they are for columns of many values.  At most so many sets that they are
    counted in a few seconds.
    """
    if most < 3:
        return []
    number_of = int(min(MOST_LARGER, max(MOST_LARGER / 20, COUNTED_AT_ONCE / known.total)))
    sizes = [one.sizes[one.joined] for one in known.classes]
    able = [i for i, size in enumerate(sizes) if size > 1]
    grown = {
        tuple(sorted({*table.columns, i}))
        for table in known.tables
        for i in able
        if i not in table.columns and {*table.columns} <= {*able}
    }
    found: list[Columns] = sorted(grown, key=lambda x: (len(x), x))
    for number in range(3, most + 1 if most > 3 else 3):
        if comb(len(able), number) > number_of:
            break
        found += combinations(able, number)
    within = [
        one
        for one in dict.fromkeys(found)
        if 3 <= len(one) <= most and prod(sizes[i] for i in one) <= min(limit, MOST_CELLS)
    ]
    return [
        Candidate(one, tuple(known.classes[i].joined for i in one)) for one in within[:number_of]
    ]
