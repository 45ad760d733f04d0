"""Published centers together with the tree of noisy marginals that they were first found in."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from dpublish.core.answer import Answer
from dpublish.core.noisy_size import MAX_ROWS, NoisySize
from dpublish.core.query.sampled import SampledCount
from dpublish.core.released import whole_column
from dpublish.data.schema import Schema
from dpublish.errors import InvalidParameter, require_count
from dpublish.methods.kmeans.dense_regions import likely_starts
from dpublish.methods.kmeans.marginal_synopsis import MarginalTree
from dpublish.methods.kmeans.released import KMeansRelease
from dpublish.methods.kmeans.weighted_lloyd import Clustering, search_effort, weighted_lloyd
from dpublish.privacy.epsilon import format_epsilon, parse_epsilon
from dpublish.privacy.receipt import Receipt
from dpublish.randomness import plain_generator
from dpublish.types import FloatArray

SAMPLE = 10_000
"""How many points are drawn from the tree to be clustered."""


@dataclass(frozen=True, eq=False, kw_only=True)
class TreeKMeansRelease(KMeansRelease):
    """Centers of clusters, and counts of pairs of columns from which rows can be drawn."""

    kind: ClassVar[str] = "tree-centers"

    tree: MarginalTree

    def __post_init__(self) -> None:
        super().__post_init__()
        if len(self.tree.order) != self.box.dimensions or self.synopsis is not None:
            raise InvalidParameter("the tree must have the same columns as the centers")

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, TreeKMeansRelease)
            and super().__eq__(other)
            and self.tree == other.tree
        )

    __hash__ = None

    def find_clusters(self, clusters: int, *, starts: int, rng: np.random.Generator) -> Clustering:
        """Find centers, between -1 and 1, in points drawn from the tree."""
        return cluster_tree(self.tree, clusters, starts, rng)

    def rows(self, n: int | None = None, *, seed: int | None = None) -> pa.Table:
        """Draw synthetic rows from the tree: `n` of them, or as many as were counted."""
        size = round(self.tree.total) if n is None else n
        require_count(seed=0 if seed is None else seed, n=size, at_least=0)
        if size > MAX_ROWS:
            raise InvalidParameter(f"at most {MAX_ROWS:,} rows are drawn at once; name a number")
        points = self.box.unscale(self.tree.draw(size, plain_generator(seed)))
        columns = {}
        for column, values in zip(self.box.columns, points.T, strict=True):
            whole = column.kind == "integer"
            columns[column.name] = np.rint(values).astype(np.int64) if whole else values
        return pa.table(columns)

    def count(self, query: str = "", *, confidence: float = 0.95) -> Answer:
        """Count the records that satisfy `query` in rows drawn from the tree."""
        return self._sample.answer(query, confidence)

    def count_boxes(
        self, columns: Sequence[str], lows: NDArray[np.int64], highs: NDArray[np.int64]
    ) -> FloatArray:
        """Estimate how many records lie in each of many boxes of leaves at once."""
        return self._sample.boxes(columns, lows, highs)

    @cached_property
    def _sample(self) -> SampledCount:
        return SampledCount(self, self.tree.total)

    def tables(self) -> dict[str, pa.Table]:
        """Give the centers, and the counts of each column of the tree."""
        tree, names = self.tree, self.box.names
        edges = list(zip(tree.parents[1:], tree.order[1:], strict=True))
        coarse, fine = tree.coarse_bins, tree.bins
        first = [names[tree.order[0]]] * fine
        pairs = {
            "column": [*first, *(names[child] for _, child in edges for _ in range(coarse * fine))],
            "bin": np.tile(np.arange(fine), 1 + coarse * len(edges)),
            "parent": pa.array(
                [None] * fine
                + [names[parent] for parent, _ in edges for _ in range(coarse * fine)],
                pa.string(),
            ),
            "parent_bin": np.concatenate(
                [np.zeros(fine, np.int64), np.tile(np.repeat(np.arange(coarse), fine), len(edges))]
            ),
            "noisy_count": np.concatenate([tree.root, tree.counts.ravel()]),
        }
        return {**super().tables(), "marginals": pa.table(pairs)}

    def metadata(self) -> dict[str, Any]:
        """Give what the centers need, the shape of the tree and its noise."""
        tree = self.tree
        return super().metadata() | {
            "tree": {
                "order": list(tree.order),
                "parents": list(tree.parents),
                "bins": tree.bins,
                "coarse_bins": tree.coarse_bins,
                "rate": format_epsilon(tree.rate),
                "records": tree.records.value,
                "records_rate": format_epsilon(tree.records.rate),
            }
        }

    @classmethod
    def from_parts(
        cls,
        *,
        receipt: Receipt,
        schema: Schema,
        metadata: Mapping[str, Any],
        tables: Mapping[str, pa.Table],
    ) -> Self:
        """Rebuild the centers of a release folder."""
        plain = KMeansRelease.from_parts(
            receipt=receipt, schema=schema, metadata=metadata, tables=tables
        )
        tree = metadata["tree"]
        fine = tree["bins"]
        counts = whole_column(tables["marginals"], "noisy_count")
        shape = (len(tree["order"]) - 1, tree["coarse_bins"], fine)
        return cls(
            receipt=receipt,
            schema=schema,
            centers=plain.centers,
            expected=plain.expected,
            notes=plain.notes,
            tree=MarginalTree(
                order=tuple(tree["order"]),
                parents=tuple(tree["parents"]),
                root=counts[:fine],
                counts=counts[fine:].reshape(shape),
                rate=parse_epsilon(tree["rate"]),
                records=NoisySize(tree["records"], parse_epsilon(tree["records_rate"])),
            ),
        )

    def summary(self) -> dict[str, str]:
        """Describe centers and tree in a few words."""
        names = self.box.names
        edges = zip(self.tree.parents[1:], self.tree.order[1:], strict=True)
        shown = ", ".join(f"{names[parent]} - {names[child]}" for parent, child in edges)
        described = super().summary()
        return {"centers": described.pop("centers"), "marginals": shown, **described}


def cluster_tree(
    tree: MarginalTree, clusters: int, starts: int, rng: np.random.Generator
) -> Clustering:
    """Draw points from a tree of marginals and find their centers, in the box from -1 to 1."""
    points = tree.draw(SAMPLE, rng)
    alike = np.ones(SAMPLE)
    effort = search_effort(starts, clusters, SAMPLE)
    sets = likely_starts(points, alike, clusters, effort.starts, rng)
    return weighted_lloyd(points, alike, sets, min_count=1.0, iterations=effort.rounds)
