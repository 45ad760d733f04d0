"""Starting centers: inside the box, far apart, and independent of any record."""

import numpy as np
import pytest

from dpublish.core.run import Run
from dpublish.errors import InvalidParameter
from dpublish.methods.kmeans import starting_centers
from dpublish.methods.kmeans.starting_centers import (
    separated_centers,
    uniform_centers,
)
from dpublish.randomness import plain_generator, secure, seeded


def least_distance(centers):
    apart = np.sqrt(np.square(centers[:, None] - centers).sum(axis=2))
    return apart[np.triu_indices(len(centers), 1)].min()


def corner_distance(centers):
    return np.sqrt(np.square(1 - np.abs(centers)).sum(axis=1)).min()


@pytest.mark.parametrize(("clusters", "dimensions"), [(1, 1), (9, 1), (15, 2), (5, 6), (40, 10)])
@pytest.mark.parametrize("draw", [separated_centers, uniform_centers])
def test_centers_lie_in_the_box(draw, clusters, dimensions):
    centers = draw(clusters, dimensions, plain_generator(1))
    assert centers.shape == (clusters, dimensions)
    assert np.all(np.abs(centers) <= 1)


def test_separated_centers_are_further_apart_than_uniform_ones_and_off_the_corners():
    for seed in range(20):
        apart = separated_centers(15, 2, plain_generator(seed))
        uniform = uniform_centers(15, 2, plain_generator(seed))
        assert least_distance(apart) > 0.4 > 0.35 > least_distance(uniform)
        assert corner_distance(apart) >= least_distance(apart) / 2 * 0.9


@pytest.mark.parametrize("block", [1, 7, 10_000])
def test_every_placement_keeps_its_radius(monkeypatch, block):
    monkeypatch.setattr(starting_centers, "_BLOCK", block)
    seen = []
    pack = starting_centers._pack

    def spy(radius, clusters, dimensions, rng):
        packed = pack(radius, clusters, dimensions, rng)
        seen.append((radius, packed))
        return packed

    monkeypatch.setattr(starting_centers, "_pack", spy)
    found = separated_centers(6, 2, plain_generator(3))
    kept = [(radius, packed) for radius, packed in seen if packed is not None]
    for radius, packed in kept:
        assert least_distance(packed) >= 2 * radius
        assert corner_distance(packed) >= radius
    # The last success is returned, though the last attempt may have failed.
    assert found is kept[-1][1]
    assert kept[-1][0] == max(radius for radius, _ in kept)
    assert len(seen) == 20
    assert len(kept) < 20


def test_if_nothing_can_be_packed_the_radius_zero_still_succeeds(monkeypatch):
    monkeypatch.setattr(starting_centers, "_pack", lambda *_: None)
    assert separated_centers(4, 3, plain_generator(1)).shape == (4, 3)


def test_the_same_seed_gives_the_same_start_and_secure_ones_differ():
    one, same = (
        separated_centers(3, 2, Run(None, rng=seeded(5)).public_generator()) for _ in range(2)
    )
    assert np.array_equal(one, same)
    fresh = [separated_centers(3, 2, Run(None, rng=secure()).public_generator()) for _ in range(2)]
    assert not np.array_equal(*fresh)


@pytest.mark.parametrize(("clusters", "dimensions"), [(0, 1), (1, 0), (2.5, 1)])
def test_no_centers_and_no_columns_are_refused(clusters, dimensions):
    with pytest.raises(InvalidParameter):
        separated_centers(clusters, dimensions, plain_generator(1))
