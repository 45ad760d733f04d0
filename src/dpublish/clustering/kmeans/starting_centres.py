"""Where k-means starts; a release needs the same to be clustered again, so it lives there."""

from dpublish.release.starting_centres import public_generator, spread_centres, uniform_centres

__all__ = ["public_generator", "spread_centres", "uniform_centres"]
