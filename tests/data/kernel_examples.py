"""An example of every kernel that ships, on the table of awkward rows."""

import importlib
import inspect
import pkgutil

import numpy as np

import dpublish
from data.nasty_tables import SCHEMA
from dpublish.aggregates.box_grid import BoxGrid
from dpublish.aggregates.complete_counts import CompleteCounts
from dpublish.aggregates.counts import Counts
from dpublish.aggregates.cut_counts import CutCounts
from dpublish.aggregates.sparse_counts import SparseCounts, Tally
from dpublish.data.box import UNIT, Box
from dpublish.data.features import Features
from dpublish.data.query.language import parse_query
from dpublish.methods.bounds.kernels import PointCounts
from dpublish.methods.dpcopula.kernels import (
    EachGroupProducts,
    Grouping,
    GroupMarginals,
    GroupScoreProducts,
    PairTables,
    ScoreProducts,
)
from dpublish.methods.dpcopula.mle import BlockMoments
from dpublish.methods.kmeans.kernels import CenterLosses, ClusterSums, PairCounts
from dpublish.methods.linear_models.kernel_gradients import LinearGradients
from dpublish.methods.linear_models.kernel_losses import LinearLosses
from dpublish.methods.linear_models.kernel_moments import LinearMoments
from dpublish.methods.personalized.kernels import LevelCounts
from dpublish.methods.privpfc.kernels import ClassCuboids, ResidualSums
from dpublish.methods.privpfc.score_card import ScoreCard, ScoreTerm
from dpublish.methods.spatial.kernels import BoxCells, GridRoute
from dpublish.methods.statistics.kernels import (
    Bounds,
    GroupCells,
    GroupCounts,
    GroupMoments,
    GroupStatistics,
    GroupSums,
)
from dpublish.methods.synth.kernels import ClassCounts
from dpublish.methods.trees.kernels import TreeCounts
from dpublish.methods.trees.tree import Routes
from dpublish.methods.wavecluster.kernels import SplitGrid
from dpublish.publishing.svt.kernel import Matching
from dpublish.randomness import plain_generator, seeded

ALL = tuple((name, None) for name in SCHEMA.names)


def _examples():
    rng = plain_generator(5)
    box, pair = Box.of(SCHEMA), Box.of(SCHEMA, ("hours", "count"))
    features = Features.of(SCHEMA, "sign")
    grouping = Grouping(SCHEMA, ("letter",), np.array([0, 1, 2, 0, 1]))
    by_group = (rng.integers(-9, 9, (3, 16)), rng.integers(-9, 9, (3, 10)))
    scores = (np.arange(16) - 8, np.arange(10) - 5)
    card = ScoreCard(
        (
            ScoreTerm(
                (SCHEMA["letter"].axis(),), rng.integers(-40, 40, (5, 2)), np.zeros(2, np.int64)
            ),
        )
    )
    cuts = (SCHEMA["letter"].axis(), SCHEMA["count"].axis())
    hours, count = Bounds.of(SCHEMA["hours"]), Bounds.of(SCHEMA["count"])
    measured = (
        GroupCounts(),
        GroupSums("hours", hours),
        GroupMoments("hours", hours, 2),
        GroupMoments("count", count, 1),
        GroupCells("hours", hours, 64),
    )
    whole = np.zeros((4, 2), dtype=np.int64), np.full((4, 2), [16, 10])
    return [
        BoxGrid(box, (4, 3, 5)),
        CompleteCounts(SCHEMA, ((("hours", None),), (("letter", None),)), ("hours", "count")),
        Counts(SCHEMA, (ALL, (("letter", None),), ())),
        CutCounts((cuts, cuts[:1]), ("letter", "count", "sign")),
        SparseCounts(SCHEMA, ALL),
        ScoreProducts(SCHEMA, ("hours", "count"), scores, complete=("sign",)),
        GroupMarginals(grouping, ("hours", "sign")),
        GroupScoreProducts(grouping, ("hours", "count"), by_group),
        EachGroupProducts(grouping, ("hours", "count"), by_group),
        PairTables(SCHEMA, ("hours", "count"), (np.arange(16) // 4, np.arange(10) // 5)),
        # One block, so that what is drawn does not matter.
        BlockMoments(SCHEMA, ("hours", "count"), scores, 1, seeded(1)),
        ClusterSums(box, rng.uniform(-1, 1, (4, 3))),
        CenterLosses(box, rng.integers(-UNIT, UNIT, (2, 3, 3))),
        PairCounts(box, 5),
        LinearGradients(SCHEMA, features, "sign", (1,), rng.normal(size=features.size)),
        LinearLosses(SCHEMA, features, "sign", (1,), rng.integers(-999, 999, (3, features.size))),
        LinearMoments(SCHEMA, features, "sign", np.array([[-1], [1]])),
        LevelCounts("letter", (-1, 0, 1, 1, 0), 2, (("sign", (True, False)),)),
        ClassCuboids(SCHEMA, "sign", ("hours", "letter"), ((("hours", 1), ("letter", 1)), ())),
        ResidualSums(SCHEMA, "sign", ("hours", "letter"), card),
        BoxCells(("hours", "count"), GridRoute((16, 10), (2, 2)), *whole, np.full((4, 2), 3)),
        GroupStatistics(SCHEMA, (("letter", None),), measured),
        ClassCounts(
            SCHEMA.names,
            {(name, 1): np.arange(SCHEMA[name].size) // 2 for name in SCHEMA.names},
            ((("hours", 1), ("slope", 1)), (("count", 1), ("letter", 1), ("sign", 1))),
        ),
        TreeCounts(Routes(SCHEMA, {}), (0,), ("hours", "letter"), "sign"),
        SplitGrid(pair, 2, np.array([1, 4, 2, 3])),
        PointCounts("hours", (1.0, 13.25, 50.0, 99.0)),
        Matching(SCHEMA, parse_query("hours >= 20 and letter in {a, b}")),
    ]


EXAMPLES = {type(kernel).__name__: kernel for kernel in _examples()}


def shipped_kernels():
    """Name every class of the package that can be summed up, but for those that others build on."""
    found = set()
    for module in pkgutil.walk_packages(dpublish.__path__, "dpublish."):
        if module.name.endswith("__main__"):
            continue
        for name, item in vars(importlib.import_module(module.name)).items():
            is_own = inspect.isclass(item) and item.__module__ == module.name
            if is_own and all(callable(getattr(item, verb, None)) for verb in VERBS):
                found.add(name)
    return found - {"Kernel", "ArrayKernel", "SumKernel", "ProductKernel", "Summable"}


VERBS = ("zero", "add", "merge")


def plain(answer):
    """Write an answer as a list of arrays, in one way only."""
    if isinstance(answer, list):
        return [array for one in answer for array in plain(one)]
    if isinstance(answer, Tally):
        cells = answer.compact()
        return [cells.keys, cells.counts]
    return [answer]


def same(one, other):
    """Compare two answers bit by bit, types included."""
    return len(plain(one)) == len(plain(other)) and all(
        a.dtype == b.dtype and np.array_equal(a, b)
        for a, b in zip(plain(one), plain(other), strict=True)
    )
