"""Score thousands of grids on the same records, from a few passes over the rows.

The rows are counted in a few base cuboids; everything else is adding up.  Cuboids are added
up to smaller ones, step by step, until each has the grids of one group.  These are reached
depth first, one predictor after the other, so that they share what was added up; all levels
of the last predictor are scored at once.
"""

from collections.abc import Iterator, Sequence
from itertools import accumulate, groupby
from math import exp, log

import numpy as np

from dpublish.core.run import Run
from dpublish.core.task import Task
from dpublish.data.schema import Schema
from dpublish.errors import InvalidParameter
from dpublish.methods.privpfc.cuboids import (
    Cube,
    Group,
    Levels,
    RollUp,
    Sizes,
    group_grids,
    pack_groups,
)
from dpublish.methods.privpfc.grid_quality import GridQuality
from dpublish.methods.privpfc.kernels import ClassCuboids, count_planes
from dpublish.types import FloatArray, IntArray

MOST_COUNTS = 1 << 24
"""Most counts that a grid may have: its cells times the classes; of two classes, its cells."""

Axis = tuple[int, int]  # a predictor and the level on which it is counted
Path = tuple[tuple[int, ...], int]  # the levels of a grid along the axes, and its number
_COUNTS_PER_PASS = 1 << 23
_LEAST_CAP, _MOST_CAP = 1 << 17, 1 << 20  # counts of a base cuboid
_SHRINK = 16  # how much smaller the cuboids are that a cuboid is added up to
_SMALL = 1 << 8  # so small a cuboid is added up to each group by itself
_PART = 1 << 16  # cells of a large grid that are scored at a time


def score_grids(
    run: Run, task: Task, grids: Levels, quality: GridQuality, *, rows_hint: int = 0
) -> IntArray:
    """Score each grid exactly; the scores are private.

    Every pass reads all predictors and the target.  So a record that misses one of them, and
    is left out by that column's rule, is left out of all scores alike and changes none:
    `quality.range_sensitivity` bounds what a record does to these scores, as they are.

    Args:
        run: The release at work; its table is read, and it reports how many grids are scored.
        task: The target and the predictors.
        grids: A row per grid, with the level of each predictor; see `enumerate_grids`.
        quality: What makes a grid good.
        rows_hint: Public guess of how many records there are.  It decides how large the
            cuboids are, and so the time this takes; never the scores.
    """
    planes = count_planes(task.target.size)
    scorer = _Scorer(task, grids, quality)
    most = scorer.sizes.logs(grids).sum(axis=1).max()
    if most > log(MOST_COUNTS // planes) + 1e-9:
        raise InvalidParameter(
            f"a grid may have at most {MOST_COUNTS // planes:,} cells; lower the limit on cells"
        )
    cap = max(min(max(rows_hint, _LEAST_CAP), _MOST_CAP) // planes, 1)
    groups = group_grids(grids, scorer.sizes, cap)
    bases = pack_groups(np.stack([group.levels for group in groups]), scorer.sizes, cap)
    done = records = 0
    for part in _cut_into_passes(bases, scorer.sizes, _COUNTS_PER_PASS // planes):
        kernel = _make_kernel(run.schema, task, part)
        answer = run.sum(kernel)
        records = kernel.count_records(answer)
        for base, counts in zip(part, kernel.split(answer), strict=True):
            members = [groups[number] for number in base.members]
            scorer.score(
                Cube(counts.astype(np.float64), *_find_raised(base.levels)), members, cap // _SHRINK
            )
            done += sum(len(group.members) for group in members)
            run.step(done, len(grids), "grids scored")
    if planes == 1:  # what `score_differences` leaves out
        scorer.scores += quality.unit // 2 * records
    return scorer.scores


def _find_raised(levels: Levels) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """List the columns that are not on their root, and the levels of these."""
    columns = np.flatnonzero(levels)
    return tuple(columns.tolist()), tuple(levels[columns].tolist())


def _make_kernel(schema: Schema, task: Task, bases: Sequence[Group]) -> ClassCuboids:
    names = tuple(column.name for column in task.predictors)
    cuboids = tuple(
        tuple(
            (names[column], level) for column, level in zip(*_find_raised(base.levels), strict=True)
        )
        for base in bases
    )
    return ClassCuboids(schema, task.target.name, names, cuboids)


def _cut_into_passes(bases: Sequence[Group], sizes: Sizes, most: int) -> Iterator[list[Group]]:
    """Cut the bases into lists that have at most so many cells, or a single base."""
    part: list[Group] = []
    cells = 0.0
    for base in bases:
        more = exp(sizes.logs(base.levels).sum())
        if part and cells + more > most:
            yield part
            part, cells = [], 0.0
        part.append(base)
        cells += more
    yield part


class _Scorer:
    """Adds cuboids up to grids, and keeps the grids' scores."""

    def __init__(self, task: Task, grids: Levels, quality: GridQuality) -> None:
        taxonomies = [column.taxonomy for column in task.predictors]
        self.sizes = Sizes([[len(x.starts) for x in one.levels] for one in taxonomies])
        self.scores = np.zeros(len(grids), dtype=np.int64)
        self._grids = grids
        self._quality = quality
        self._roll_up = RollUp(taxonomies)

    def score(self, cube: Cube, groups: Sequence[Group], cap: int) -> None:
        """Score all grids of all groups, none of which is finer than the cube."""
        if len(groups) == 1 or cap < _SMALL:
            for group in groups:
                self._score_group(self._roll_up.project(cube, group.levels), group.members)
            return
        for part in pack_groups(np.stack([group.levels for group in groups]), self.sizes, cap):
            smaller = self._roll_up.project(cube, part.levels)
            self.score(smaller, [groups[number] for number in part.members], cap // _SHRINK)

    def _score_group(self, cube: Cube, members: IntArray) -> None:
        """Score grids that use just the columns of the cube."""
        levels = self._grids[members][:, cube.columns]
        if (levels == cube.levels).all():
            self._score_whole(cube.counts, members)
            return
        # Few levels come first: they are nodes of the search, those of the last are scored.
        order = sorted(range(len(cube.columns)), key=lambda axis: len(set(levels[:, axis])))
        axes = [(cube.columns[axis], cube.levels[axis]) for axis in order]
        counts = cube.counts.transpose(0, *(1 + axis for axis in order))
        paths = sorted(zip(map(tuple, levels[:, order].tolist()), members.tolist(), strict=True))
        self._descend(counts, axes, paths)

    def _score_whole(self, counts: FloatArray, members: IntArray) -> None:
        """Score the cube as it is, part by part: a single grid may be large."""
        flat = counts.reshape(len(counts), -1)
        for start in range(0, flat.shape[1], _PART):
            self.scores[members] += self._score_cells(flat[:, start : start + _PART]).sum()

    def _descend(self, counts: FloatArray, axes: Sequence[Axis], paths: Sequence[Path]) -> None:
        """Fix the level of the first of the axes left, one after the other; score at the last.

        The axes left come first in `counts`, after the planes; those fixed come after them.
        """
        column, fine = axes[0]
        counts = counts.reshape(len(counts), self._roll_up.size(column, fine), -1)
        depth = -len(axes)
        if len(axes) > 1:
            for level, part in groupby(paths, key=lambda item: item[0][depth]):
                turned = self._roll_up.turn(counts, column, fine, level)
                self._descend(turned, axes[1:], list(part))
            return
        levels = tuple(path[depth] for path, _ in paths)
        lengths = [self._roll_up.size(column, level) for level in levels]
        starts = [0, *accumulate(lengths[:-1])]
        members = [grid for _, grid in paths]
        for stacked in self._roll_up.stack(counts, column, fine, levels):
            rows = self._score_cells(stacked).sum(axis=1)
            self.scores[members] += np.add.reduceat(rows, starts)

    def _score_cells(self, counts: FloatArray) -> IntArray:
        whole = counts.astype(np.int64)
        if len(whole) == 1:
            return self._quality.score_differences(whole[0])
        return self._quality.score_cells(whole)
