"""Cluster sums as the published listings have them: wrong, and kept to show that tests see it."""

import numpy as np

from dpublish.methods.kmeans.kernels import ClusterSums


class InAllOfEquals(ClusterSums):
    """Broken: the listings' `<=` puts a record into every cluster that is equally near."""

    def _add(self, points, out):
        apart = np.square(points[:, None] - self._lattice.T[:, :, None]).sum(axis=0)
        members = (apart == apart.min(axis=0)).astype(np.int64)
        out[:, 0] += members.sum(axis=1)
        out[:, 1:] += members @ points.T.astype(np.int64)


class InTheFarthest(ClusterSums):
    """Broken: the listings' `for all i` picks the center that no other is farther than."""

    def assign(self, points):
        apart = np.square(points[:, None] - self._lattice.T[:, :, None]).sum(axis=0)
        return apart.argmax(axis=0)
