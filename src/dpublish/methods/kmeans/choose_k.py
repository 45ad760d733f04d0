"""Choose the number of clusters from a noisy grid: near their own center, far from the others.

Known as: the validity of Ray and Turi, intra / inter; the smallest is best.
Reference: S. Ray and R. H. Turi, "Determination of Number of Clusters in K-Means Clustering
and Application in Color Image Segmentation", ICAPRDT 1999.
"""

from collections.abc import Callable, Sequence
from math import inf, isfinite
from typing import NamedTuple

from scipy.spatial.distance import pdist

from dpublish.errors import InvalidParameter, require_count
from dpublish.methods.kmeans.method import MOST_CLUSTERS, require_at_most
from dpublish.methods.kmeans.released import KMeansRelease
from dpublish.plots.comparisons import Layout, Line, Panel, small_multiples
from dpublish.randomness import plain_generator
from dpublish.types import FloatArray


class Validity(NamedTuple):
    """How well a number of clusters fits the noisy grid; distances are measured in the box."""

    n_clusters: int
    within: float
    """Mean squared distance from the own center."""
    between: float
    """Least squared distance of two centers."""

    @property
    def ratio(self) -> float:
        """The validity; the smaller, the better."""
        return self.within / self.between if self.between > 0 else inf


def judge_clusters(
    release: KMeansRelease,
    candidates: Sequence[int],
    *,
    n_init: int = 30,
    seed: int | None = None,
    progress: Callable[[int, int, str], None] | None = None,
) -> list[Validity]:
    """Cluster a release's grid into each of several numbers of clusters; free.

    The grid should have been made for the largest of them: a grid for fewer clusters may
    have fewer cells.
    """
    require_count(n_init=n_init)
    if not candidates:
        raise InvalidParameter("there must be numbers of clusters to choose from")
    for clusters in candidates:
        require_count(n_clusters=clusters, at_least=2)
        require_at_most("n_clusters", clusters, MOST_CLUSTERS)
    rng = plain_generator(seed)
    found = []
    for number, clusters in enumerate(candidates, start=1):
        best = release.find_clusters(clusters, n_init=n_init, rng=rng)
        found.append(Validity(int(clusters), best.score, _least_distance(best.centers)))
        if progress is not None:
            progress(number, len(candidates), "numbers of clusters")
    return found


def best_of(found: Sequence[Validity]) -> Validity:
    """Return the number of clusters with the least validity, the fewest of equals."""
    return min(found, key=lambda one: (one.ratio, one.n_clusters))


def draw_validity(found: Sequence[Validity], chosen: int | None = None) -> str | None:
    """Draw the validity over the number of clusters, as SVG; None without Matplotlib.

    `chosen` is a number of clusters to mark.
    """
    shown = [one for one in found if isfinite(one.ratio)]
    lines = [_line("validity", shown)]
    if marked := [one for one in shown if one.n_clusters == chosen]:
        lines.append(_line(f"{chosen} clusters", marked))
    step = -(-len(found) // 16)
    ticks = [float(one.n_clusters) for one in found[::step]]
    layout = Layout("number of clusters", "within / between", ticks, width=6.0, height=2.9)
    return small_multiples([Panel("Validity: the smallest is best", lines)], layout)


def _line(label: str, shown: Sequence[Validity]) -> Line:
    numbers = [float(one.n_clusters) for one in shown]
    return Line(label, numbers, [one.ratio for one in shown], [0.0] * len(shown), is_ours=True)


def _least_distance(centers: FloatArray) -> float:
    return float(pdist(centers, "sqeuclidean").min())
