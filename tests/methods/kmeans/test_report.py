"""The section of centers: pictures over the noisy grid, a list, and how to use them."""

import re
from dataclasses import replace
from fractions import Fraction
from itertools import pairwise
from xml.etree import ElementTree

import numpy as np
import pyarrow as pa
import pytest

from dpublish.core.registry import make_method
from dpublish.data.schema import Schema, column
from dpublish.data.sources import open_table
from dpublish.methods.kmeans.dplloyd import DPLloyd
from dpublish.methods.kmeans.report import section
from dpublish.methods.kmeans.synopsis import GridSynopsis
from dpublish.privacy.budget import Budget
from dpublish.randomness import plain_generator, seeded

NASTY = "<b>size</b>"


def publish(dimensions, clusters=3):
    names = [NASTY, *(f"x{j}" for j in range(1, dimensions))]
    schema = Schema(tuple(column(name, "numeric", bounds=[0, 10]) for name in names))
    points = plain_generator(1).uniform(0, 10, (50, dimensions))
    rows = pa.table(dict(zip(names, points.T, strict=True)))
    method = DPLloyd(n_clusters=clusters)
    return method.release(open_table(rows, schema), budget=Budget.seeded(5), rng=seeded(2))


def with_grid(release, sizes):
    counts = plain_generator(3).integers(-5, 20, int(np.prod(sizes)))
    return replace(release, synopsis=GridSynopsis(sizes, counts, Fraction(1)))


def shades(figure):
    return len(re.findall("fill-opacity", figure.svg))


def dots(figure):
    root = ElementTree.fromstring(figure.svg)
    return [(float(c.get("cx")), float(c.get("cy"))) for c in root.iter("circle")]


@pytest.mark.parametrize(("dimensions", "pictures"), [(1, 1), (2, 1), (3, 3), (7, 3)])
def test_pairs_of_columns_are_drawn_three_at_most(dimensions, pictures):
    shown = section(publish(dimensions), True)
    assert len(shown.figures) == pictures
    for figure in shown.figures:
        assert len(dots(figure)) == 3
        assert shades(figure) == 0
    assert section(publish(dimensions), False).figures == ()


def test_centers_stand_where_they_are_with_the_second_column_upwards():
    release = publish(2, clusters=2)
    moved = replace(release, centers=np.array([[0.0, 0.0], [10.0, 7.5]]))
    assert dots(section(moved, True).figures[0]) == [(0, 400), (400, 100)]


def labels(figure):
    """Where the number of each center begins and ends, and its baseline, in the box."""
    found = []
    shapes = list(ElementTree.fromstring(figure.svg).iter())
    for shape, text in pairwise(shapes):
        if shape.tag == "circle":
            x, wide = float(text.get("x")), 7 * len(text.text)
            left = x - wide if text.get("text-anchor") == "end" else x
            found.append((left, left + wide, float(text.get("y"))))
    return found


def test_labels_of_centers_at_the_bounds_stay_inside_of_the_box():
    corners = np.array([[x, y] for x in (0.0, 10.0) for y in (0.0, 10.0)] * 3)
    release = replace(with_grid(publish(2), (4, 5)), centers=corners)
    found = labels(section(release, True).figures[0])
    assert len(found) == len(corners)
    for left, right, baseline in found:
        assert 0 < left < right < 400
        assert 9 < baseline <= 400


def test_a_box_without_a_grid_has_lines_and_numbers_at_its_quarters():
    release = publish(2)
    (plain,) = section(release, True).figures
    for part, text in ((0.25, "2.5"), (0.5, "5"), (0.75, "7.5")):
        assert f"M{400 * part:.0f} 0V400" in plain.svg
        assert f"M0 {400 * part:.0f}H400" in plain.svg
        assert plain.svg.count(f">{text}</text>") == 2
    shaded = section(with_grid(release, (4, 5)), True).figures[0]
    assert "7.5" not in shaded.svg
    assert "V400" not in shaded.svg


def test_long_numbers_of_a_column_stand_at_its_ends_only():
    schema = Schema(
        (
            column("when", "datetime", bounds=["2024-01-01", "2024-12-31"]),
            column("x", "numeric", bounds=[0, 4]),
        )
    )
    rows = pa.table({"when": ["2024-05-01T10:00:00"] * 9, "x": [1.0] * 9})
    method = DPLloyd(n_clusters=2)
    release = method.release(open_table(rows, schema), budget=Budget.seeded(5), rng=seeded(2))
    (figure,) = section(release, True).figures
    assert figure.svg.count("2024-") == 2
    assert figure.svg.count(">3</text>") == 1


def test_the_words_of_a_picture_say_where_the_centers_are():
    release = publish(2, clusters=2)
    moved = replace(release, centers=np.array([[0.0, 2.5], [10.0, 7.5]]))
    (figure,) = section(moved, True).figures
    assert figure.alt.endswith(f"0 at {NASTY} = 0, x1 = 2.5; 1 at {NASTY} = 10, x1 = 7.5.")


def test_cells_with_a_positive_count_are_shaded_behind_the_centers():
    release = with_grid(publish(2), (4, 5))
    figure, _ = section(release, True).figures
    assert shades(figure) == np.count_nonzero(release.synopsis.counts > 0)
    assert figure.svg.index("fill-opacity") < figure.svg.index("<circle")
    assert "over the noisy grid" in figure.caption
    nothing = replace(release, synopsis=GridSynopsis((1, 1), np.array([-3]), Fraction(1)))
    assert shades(section(nothing, True).figures[0]) == 0


def test_a_shade_stands_where_its_cell_is():
    counts = np.zeros(15, dtype=np.int64)
    counts[1 * 5 + 4] = 9  # second third across, top fifth
    release = replace(publish(2), synopsis=GridSynopsis((3, 5), counts, Fraction(1)))
    found = re.search(
        r'<rect x="([\d.]+)" y="([\d.]+)" width="([\d.]+)" height="([\d.]+)" fill-o',
        section(release, True).figures[0].svg,
    )
    assert [float(n) for n in found.groups()] == pytest.approx([133.3, 0, 133.3, 80], abs=0.1)


@pytest.mark.parametrize("sizes", [(200, 49), (1, 97)])
def test_fine_grids_are_drawn_coarser(sizes):
    counts = np.ones(int(np.prod(sizes)), dtype=np.int64)
    release = replace(publish(2), synopsis=GridSynopsis(sizes, counts, Fraction(1)))
    figure, _ = section(release, True).figures
    assert shades(figure) <= 64 * 64
    areas = re.findall(r'width="([\d.]+)" height="([\d.]+)" fill-opacity', figure.svg)
    assert sum(float(w) * float(h) for w, h in areas) == pytest.approx(160_000, rel=0.02)


def test_grids_of_one_and_of_many_columns_are_drawn_too():
    assert shades(section(with_grid(publish(1), (9,)), True).figures[0]) > 0
    *planes, sizes = section(with_grid(publish(4), (2, 3, 1, 2)), True).figures
    assert all(shades(figure) > 0 for figure in planes)
    assert "Records of each cluster" in sizes.caption


def test_the_columns_where_centers_differ_most_are_drawn():
    release = publish(4)
    centers = np.full((3, 4), 5.0)
    centers[:, 3], centers[:, 1], centers[:, 2] = [0, 5, 10], [2, 5, 8], [4, 5, 6]
    captions = [f.caption for f in section(replace(release, centers=centers), True).figures]
    assert captions == [
        "Centers by x1 and x2.",
        "Centers by x1 and x3.",
        "Centers by x2 and x3.",
    ]


def test_centers_are_listed_and_long_lists_say_that_they_are_cut():
    release = publish(2)
    (listing,) = section(release, False).listings
    assert listing.headers == ["cluster", NASTY, "x1"]
    assert listing.rows[0] == ["0", *(f"{value:,.7g}" for value in release.centers[0])]
    (long,) = section(publish(2, clusters=120), False).listings
    assert len(long.rows) == 100
    assert "the first 100" in long.caption


def test_only_a_grid_can_be_clustered_again():
    plain, grid = publish(2), with_grid(publish(2), (2, 2))
    assert "recluster" not in section(plain, False).python
    assert section(plain, False).shell == ""
    assert "recluster" in section(grid, False).python
    assert "choose-k RELEASE" in section(grid, False).shell


def test_names_are_escaped_in_pictures():
    svg = section(publish(2), True).figures[0].svg
    assert NASTY not in svg
    assert "&lt;b&gt;size&lt;/b&gt;" in svg


def test_other_releases_show_nothing_here():
    schema = Schema((column("sex", "category", values=["F", "M"]),))
    method = make_method("histogram", {"columns": ("sex",)})
    table = open_table(pa.table({"sex": ["F"]}), schema)
    shown = section(method.release(table, budget=Budget.seeded(1), rng=seeded(1)), True)
    assert (shown.figures, shown.listings) == ((), ())


def test_sizes_of_clusters_are_drawn_with_intervals_and_doubtful_ones_are_marked():
    counts = np.zeros(100, dtype=np.int64)
    counts[:3] = 500
    grid = GridSynopsis((10, 10), counts, Fraction(1))
    release = replace(publish(2), centers=np.array([[0.5, 1.0], [9.0, 9.0]]), synopsis=grid)
    *_, sizes = section(release, True).figures
    assert [each.may_be_noise for each in release.cluster_sizes] == [False, True]
    assert ">1 (may be noise)<" in sizes.svg
    assert ">0<" in sizes.svg
    assert "0: 1,500, 1 (may be noise): 0 records" in sizes.alt
    (listing,) = section(release, False).listings
    assert listing.headers[-2:] == ["records", "note"]
    assert [row[-1] for row in listing.rows] == ["", "may be noise"]
    clear = replace(release, centers=release.centers[:1])
    assert section(clear, False).listings[0].headers[-1] == "records"


def test_a_tree_of_marginals_is_drawn():
    rows = pa.table({name: np.linspace(0, 10, 200) for name in "abcd"})
    schema = Schema(tuple(column(name, "numeric", bounds=[0, 10]) for name in "abcd"))
    method = make_method("kmeans", {"n_clusters": 2})
    release = method.release(open_table(rows, schema), budget=Budget.seeded(5), rng=seeded(2))
    drawn = section(release, True).figures[-1]
    assert "counted together" in drawn.caption
    assert drawn.svg.count("<rect") == 4
    assert "marker" not in drawn.svg
