"""A cut through a taxonomy: cells on different levels, such as `Gov` beside `Private`."""

from collections.abc import Sequence
from itertools import pairwise

from dpublish.data.axis import Axis
from dpublish.data.column import Column, NumberColumn
from dpublish.data.taxonomy import ROOT, Level, Taxonomy
from dpublish.errors import InvalidParameter


def cut_axis(column: Column, starts: Sequence[int]) -> Axis:
    """Make the axis of `column` whose cells begin at the leaves `starts`.

    Each cell must be a node of the column's taxonomy, and is named after it; a cell of numbers
    may be any run of leaves.  If the cells are those of a level, it is that level's axis.

    >>> from dpublish.data.schema import column
    >>> work = column("work", "category", taxonomy={"Paid": ["Private", "State"], "Unpaid": {}})
    >>> cut_axis(work, [0, 1, 2]).labels, cut_axis(work, [0, 2]).labels
    (('Private', 'State', 'Unpaid'), ('Paid', 'Unpaid'))
    >>> cut_axis(column("age", "integer", bounds=[0, 99]), [0, 40]).labels
    ('0..39', '40..99')
    """
    taxonomy = column.taxonomy
    for number, level in enumerate(taxonomy.levels):
        if level.starts == tuple(starts):  # with all its levels, it can answer more queries
            return column.axis(number)
    names: dict[tuple[int, int], str] = {}
    for level in taxonomy.levels:
        runs = pairwise((*level.starts, taxonomy.size))
        names = dict(zip(runs, level.labels, strict=True)) | names
    cells = list(pairwise((*starts, taxonomy.size)))
    if isinstance(column, NumberColumn):
        names = {run: column.partition.label(*run) for run in _number_runs(cells, column)} | names
    if not cells or cells[0][0] != 0 or any(run not in names for run in cells):
        raise InvalidParameter(f"the cells of {column.name!r} are not nodes of its taxonomy")
    cut = Level(tuple(starts), tuple(names[run] for run in cells))
    leaves = column.axis()
    return Axis(
        column=column.name,
        kind=column.kind,
        level=1,
        taxonomy=Taxonomy((Level((0,), (ROOT,)), cut, taxonomy.levels[-1])),
        leaf_edges=leaves.leaf_edges,
        closed=leaves.closed,
        special=leaves.special,
    )


def _number_runs(runs: Sequence[tuple[int, int]], column: NumberColumn) -> list[tuple[int, int]]:
    """Keep the runs that hold numbers only, and at least one."""
    return [run for run in runs if 0 <= run[0] < run[1] <= column.partition.size]
