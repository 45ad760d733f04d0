"""How far published clusters of cells agree with those of plain WaveCluster.  NOT PRIVATE."""

from statistics import fmean

import numpy as np
import pyarrow as pa

from dpublish.errors import InvalidParameter
from dpublish.evaluation.findings import Finding
from dpublish.evaluation.metrics.cells import cell_dissimilarity, f_measure
from dpublish.evaluation.numbers import column_values
from dpublish.evaluation.score import Part
from dpublish.methods.wavecluster.plain import PlainWaveCluster
from dpublish.methods.wavecluster.released import WaveClusterRelease
from dpublish.randomness import plain_generator
from dpublish.types import IntArray

LEAST_GAP = 0.05
_SAMPLES = 3


def wave_finding(release: WaveClusterRelease, against: pa.Table, seed: int) -> Finding:
    """Report how far clusters agree with those that the plain algorithm finds in true rows."""
    rows = _points(release, against)
    true = _labels(release, rows)
    rng = plain_generator(seed)
    fresh = fmean(
        1 - f_measure(true, _labels(release, rows.take(pa.array(_draw(rows.num_rows, rng)))))
        for _ in range(_SAMPLES)
    )
    own = release.cell_labels
    measured = 1 - f_measure(true, own)
    baseline = 1 - f_measure(true, np.zeros_like(true))
    true_clusters = int(true.max(initial=-1)) + 1
    differs = cell_dissimilarity(true, own)
    return Finding(
        name="wave-clusters",
        title=f"Clusters of cells beside those of plain WaveCluster on {rows.num_rows:,} true rows",
        headers=["", "clusters", "cells in clusters"],
        rows=[
            ["release", f"{release.clusters:,}", f"{np.count_nonzero(own >= 0):,}"],
            ["without privacy", f"{true_clusters:,}", f"{np.count_nonzero(true >= 0):,}"],
        ],
        notes=[
            f"F-measure of the cells {1 - measured:.3f} (1 is alike); dissimilarity of the cells "
            f"(DSG_C) {differs:.3f} (0 is alike)"
        ],
        figures={
            "rows": rows.num_rows,
            "f_measure": 1 - measured,
            "cell_dissimilarity": differs if np.isfinite(differs) else None,
            "clusters": release.clusters,
            "clusters_without_privacy": true_clusters,
        },
        parts=[
            Part.of(
                "clusters",
                "the shape of clusters",
                "what the cells lack of full agreement (1 - F-measure)",
                measured,
                reference=(f"a fresh sample of {rows.num_rows:,} rows", fresh),
                baseline=("all cells in one cluster", baseline),
                least_gap=LEAST_GAP,
            )
        ],
    )


def _points(release: WaveClusterRelease, against: pa.Table) -> pa.Table:
    """Return the rows that have a number in every column, within the bounds."""
    for name in release.box.names:
        if against.column_names.count(name) != 1:
            raise InvalidParameter(f"the rows must have a column {name!r}, once")
    values = {name: column_values(release.schema, name, against) for name in release.box.names}
    known = np.all([np.isfinite(one) for one in values.values()], axis=0)
    if not known.any():
        raise InvalidParameter("no row has a number in every column that was clustered")
    return against.select(list(release.box.names)).filter(pa.array(known))


def _labels(release: WaveClusterRelease, rows: pa.Table) -> IntArray:
    grid = release.grid
    least = release.receipt.settings.get("min_cells", 1)
    plain = PlainWaveCluster(
        columns=release.box.names,
        cells=grid.sizes,
        wavelet=grid.wavelet,
        levels=grid.levels,
        percentile=grid.percentile,
        adjacency="full" if grid.adjacency == "full" else "face",
        min_cells=least if isinstance(least, int) else 1,
    )
    return plain.of_rows(rows, release.schema).cell_labels


def _draw(size: int, rng: np.random.Generator) -> IntArray:
    return np.asarray(rng.integers(0, size, size), dtype=np.int64)
