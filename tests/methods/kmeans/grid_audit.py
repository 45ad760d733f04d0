"""Replay methods that count the cells of a grid, with answers told beforehand."""

from dpublish.methods.kmeans import eugkm as grid_synopsis
from dpublish.methods.kmeans import lloyd_round
from methods.kmeans.lloyd_audit import Replay


class GridReplay(Replay):
    """Keeps what was asked of a grid and of a round after it."""

    def run(self, monkeypatch, table, play):
        with monkeypatch.context() as patch:
            for module in (grid_synopsis, lloyd_round):
                patch.setattr(module, "add_geometric", self.add_geometric)
            patch.setattr(grid_synopsis, "noisy_size", self.noisy_size)
            play(table)
        self.centers = [_question(kernel) for kernel in table.kernels]
        return self


def _question(kernel):
    """What a kernel asks: the sizes of its grid, or its centers."""
    return getattr(kernel, "sizes", None) or kernel.centers.tolist()
