"""What the k-means methods share: their settings, the noisy number of records, the release."""

from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, ClassVar

from dpublish.aggregates.box_grid import BoxGrid
from dpublish.core.method import Method, Run, setting
from dpublish.core.noisy_size import NoisySize
from dpublish.data.box import Box
from dpublish.data.schema import Schema
from dpublish.errors import InvalidParameter, require_count
from dpublish.methods.kmeans.kernels import require_columns
from dpublish.methods.kmeans.released import KMeansRelease
from dpublish.privacy.budget import Budget
from dpublish.types import FloatArray

SIZE_SHARE = Fraction(3, 100)
"""What the noisy number of records gets of epsilon, where a method needs it."""
MOST_CLUSTERS = 1000


@dataclass(frozen=True, kw_only=True)
class CenterMethod(Method[KMeansRelease]):
    """A method that publishes centers of clusters."""

    task: ClassVar[str] = "clustering"

    n_clusters: int = setting("Number of clusters (k).")
    columns: tuple[str, ...] = setting(
        "Columns of numbers to cluster by; all of them unless named.", default=()
    )

    def __post_init__(self) -> None:
        require_at_most("n_clusters", self.n_clusters, MOST_CLUSTERS)
        object.__setattr__(self, "n_clusters", int(self.n_clusters))  # a NumPy integer, too

    def reads(self, schema: Schema) -> tuple[str, ...]:
        """Name the columns that a release reads; public, from settings and schema alone."""
        return Box.names_of(schema, self.columns)

    def box(self, schema: Schema) -> Box:
        """Find the box of the columns, and refuse one that is too wide; from public facts."""
        found = Box.of(schema, self.columns)
        require_columns(found)
        return found


def require_at_most(name: str, value: int, most: int) -> None:
    """Refuse a setting that is below 1, or so large that it takes too long."""
    require_count(**{name: value})
    if value > most:
        raise InvalidParameter(f"{name} ({value:,}) must be at most {most:,}")


def count_records(run: Run, box: Box, *, budget: Budget) -> NoisySize:
    """Count the records of which all numbers of the box are known, with noise.

    Privacy:
        `budget.epsilon`-differentially private when one record is added or removed: a count
        of sensitivity 1 with geometric noise (`noisy_size`).
    """
    everyone = BoxGrid(box, (1,) * box.dimensions)
    rate = budget.epsilon
    return NoisySize(run.noisy_size(int(run.sum(everyone)[0]), budget=budget), rate)


def publish_centers(
    run: Run,
    box: Box,
    centers: FloatArray,
    kind: type[KMeansRelease] = KMeansRelease,
    **more: Any,
) -> KMeansRelease:
    """Build the release of centers that lie between -1 and 1; `more` are its other fields."""
    return kind(
        receipt=run.receipt(),
        schema=replace(run.schema, columns=box.columns),
        centers=box.unscale(centers),
        expected=run.expected,
        **more,
    )
