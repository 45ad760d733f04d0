"""How near true rows lie to the centers of a release.  NOT PRIVATE: it looks at true rows."""

import pyarrow as pa

from dpublish.accuracy.rounding import format_number
from dpublish.errors import InvalidParameter
from dpublish.evaluation.findings import Finding
from dpublish.evaluation.metrics.clustering import ClusterFit, cluster_fit
from dpublish.evaluation.plain_clusters import plain_centers
from dpublish.methods.kmeans.released import KMeansRelease
from dpublish.randomness import plain_generator
from dpublish.types import FloatArray

STARTS = 30
"""Searches for the best centers without privacy."""
MOST_ROWS = 20_000
"""How many rows the best centers are looked for in."""


def cluster_finding(release: KMeansRelease, against: pa.Table, seed: int) -> Finding:
    """Report how far true rows lie from the centers, and how many are nearest to each."""
    points, known = release.scale(against)
    points = points[known]
    if not len(points):
        raise InvalidParameter("no row has a number in every column that was clustered")
    found = cluster_fit(points, release.box.scale(release.centers))
    best = cluster_fit(points, _best_centers(points, release.clusters, seed))
    return Finding(
        name="clusters",
        title=f"Clusters: {len(points):,} true rows lie {found.nicv:.4f} from the nearest center "
        f"(NICV); from the best centers without privacy, {best.nicv:.4f}",
        headers=["cluster", *release.box.names, "true rows", "distance", "noisy estimate"],
        rows=_rows(release, found),
        notes=[
            "distances are squared, and every column runs from -1 to 1",
            f"without privacy: k-means, the best of {STARTS} starts; its largest cluster has "
            f"{best.sizes.max():,} rows, its smallest {best.sizes.min():,}",
            *_sample_note(len(points)),
        ],
        figures={
            "rows": len(points),
            "nicv": found.nicv,
            "nicv_without_privacy": best.nicv,
            "sizes": found.sizes.tolist(),
            "sizes_without_privacy": sorted(best.sizes.tolist(), reverse=True),
        },
    )


def _best_centers(points: FloatArray, clusters: int, seed: int) -> FloatArray:
    if len(points) > MOST_ROWS:
        rng = plain_generator(seed)
        points = points[rng.choice(len(points), size=MOST_ROWS, replace=False)]
    return plain_centers(points, clusters, starts=STARTS, seed=seed)


def _sample_note(rows: int) -> list[str]:
    if rows <= MOST_ROWS:
        return []
    return [f"the best centers are looked for in {MOST_ROWS:,} of the rows"]


def _rows(release: KMeansRelease, found: ClusterFit) -> list[list[str]]:
    noisy = release.cluster_sizes
    return [
        [
            str(number),
            *(
                column.show(float(coordinate))
                for column, coordinate in zip(release.box.columns, center, strict=True)
            ),
            f"{found.sizes[number]:,}",
            f"{found.distances[number]:.4f}",
            "" if noisy is None else format_number(noisy[number].records),
        ]
        for number, center in enumerate(release.centers)
    ]
