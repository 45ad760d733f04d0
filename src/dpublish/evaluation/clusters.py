"""How near true rows lie to the centers of a release.  NOT PRIVATE: it looks at true rows."""

from statistics import fmean

import numpy as np
import pyarrow as pa

from dpublish.accuracy.rounding import format_number
from dpublish.errors import InvalidParameter
from dpublish.evaluation.findings import Finding
from dpublish.evaluation.metrics.clustering import ClusterFit, cluster_fit
from dpublish.evaluation.metrics.tables import total_variation
from dpublish.evaluation.plain_clusters import plain_centers
from dpublish.evaluation.score import Part
from dpublish.methods.kmeans.released import KMeansRelease
from dpublish.randomness import plain_generator
from dpublish.types import FloatArray

STARTS = 30
"""Searches for the best centers without privacy."""
LEAST_GAP = 0.05
"""Between what scores 100 and 0."""
_GUESSES = 20
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
        parts=[
            _distance_part(points, release, (found, best), seed),
            *_size_parts(release, found, seed),
        ],
    )


def _distance_part(
    points: FloatArray, release: KMeansRelease, fits: tuple[ClusterFit, ClusterFit], seed: int
) -> Part:
    """Score the distance from the nearest center."""
    found, best = fits
    rng = plain_generator(seed)
    shape = (_GUESSES, release.clusters, release.box.dimensions)
    anywhere = fmean(cluster_fit(points, one).nicv for one in rng.uniform(-1, 1, shape))
    least = LEAST_GAP * max(anywhere, best.nicv)
    return Part.of(
        "clusters",
        "centers of clusters",
        "the mean squared distance from the nearest center (NICV)",
        found.nicv,
        reference=("k-means without privacy", best.nicv),
        baseline=("centers anywhere within the bounds", anywhere),
        least_gap=least,
    )


def _size_parts(release: KMeansRelease, found: ClusterFit, seed: int) -> list[Part]:
    """Score the sizes of clusters that a release tells; none if it tells none."""
    told = _told_sizes(release, seed)
    if told is None:
        return []
    rng, records = plain_generator(seed), int(found.sizes.sum())
    samples = rng.multinomial(records, found.sizes / records, size=_GUESSES)
    measured = total_variation(found.sizes, told)
    reference = fmean(total_variation(found.sizes, one) for one in samples)
    baseline = total_variation(found.sizes, np.ones(release.clusters))
    return [
        Part.of(
            "cluster sizes",
            "sizes of clusters",
            "the part of the rows in another cluster (total variation of the sizes)",
            measured,
            reference=(f"a fresh sample of {records:,} rows", reference),
            baseline=("clusters of equal size", baseline),
            least_gap=LEAST_GAP,
        )
    ]


def _told_sizes(release: KMeansRelease, seed: int) -> FloatArray | None:
    """Estimate sizes from what was published: the noisy grid, or rows drawn from the tree."""
    if release.cluster_sizes is not None:
        return np.array([max(one.records, 0.0) for one in release.cluster_sizes])
    if not release.gives_rows:
        return None
    labels = release.label(release.rows(seed=seed))
    return np.bincount(labels[labels >= 0], minlength=release.clusters).astype(np.float64)


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
