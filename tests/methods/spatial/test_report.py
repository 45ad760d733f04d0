"""The section of boxes: a picture for two columns, marginals, and the fullest boxes."""

import re
from xml.etree import ElementTree

import numpy as np
import pyarrow as pa
import pytest

from dpublish.core.registry import make_method
from dpublish.data.schema import Schema, column
from dpublish.data.sources import open_table
from dpublish.methods.spatial.ag import AG
from dpublish.methods.spatial.report import _range_ends, section
from dpublish.methods.spatial.ug import UG
from dpublish.privacy.budget import Budget
from dpublish.randomness import plain_generator, seeded

NASTY = "<b>size</b>"


def publish(names, records=500, method=None, epsilon=5):
    schema = Schema(tuple(column(name, "numeric", bounds=[0, 10], bins=200) for name in names))
    points = plain_generator(1).beta(1, 4, (records, len(names))) * 10
    rows = pa.table(dict(zip(names, points.T, strict=True)))
    method = method or AG()
    return method.release(open_table(rows, schema), budget=Budget.seeded(epsilon), rng=seeded(2))


def test_two_columns_are_drawn_box_by_box_the_denser_the_darker():
    release = publish([NASTY, "y"])
    picture = section(release, True).figures[0]
    ElementTree.fromstring(picture.svg)
    assert NASTY not in picture.svg
    opacities = re.findall(r'fill-opacity="([0-9.]+)"', picture.svg)
    shades = np.array(opacities, dtype=float)
    assert shades.size == release.ends.size
    areas = np.prod((release.highs - release.lows)[release.ends], axis=1)
    assert shades[np.argmax(release.plausible / areas)] == shades.max() == 1
    assert shades.min() < 0.1


def test_more_boxes_than_can_be_told_apart_are_drawn_as_tiles():
    release = publish(["x", "y"], 20_000, UG())
    assert release.ends.size > 5000
    picture = section(release, True).figures[0]
    assert picture.caption == "Estimated counts by y and x."
    assert "fill-opacity" not in picture.svg[:200]


@pytest.mark.parametrize("names", [["x"], ["x", "y", "z"]])
def test_other_numbers_of_columns_show_marginals(names):
    release = publish(names)
    shown = section(release, True)
    captions = [figure.caption for figure in shown.figures]
    assert captions == [f"Estimated counts by {name}." for name in names]
    assert section(release, False).figures == ()


def test_columns_stand_for_equally_many_codes_but_for_the_last():
    for size, expected in ((200, {5}), (61, {2}), (7, {1}), (81, {3})):
        axis = column("x", "integer", bounds=[0, size - 1]).axis()
        lengths = np.diff(_range_ends(axis))
        assert set(lengths[:-1]) == expected
        assert 0 < lengths[-1] <= lengths[0]
        assert lengths.sum() == size
        assert lengths.size <= 40


def test_the_fullest_boxes_are_listed_in_words():
    release = publish(["x", "y", "z"])
    (listing,) = section(release, False).listings
    assert listing.headers == ["x", "y", "z", "estimated records"]
    counts = [float(row[-1].replace(",", "")) for row in listing.rows]
    assert counts == sorted(counts, reverse=True)
    assert counts[0] == pytest.approx(release.plausible.max(), abs=0.5)
    assert " to " in listing.rows[0][0]
    assert listing.caption.startswith("The 20 fullest of")


def test_the_example_query_can_be_sent():
    for release in (publish(["x"]), publish([NASTY, "y"])):
        query = re.match(r"release\.count\('(.*)'\)", section(release, False).python).group(1)
        assert release.count(query).high > 0


def test_other_releases_show_nothing_here():
    schema = Schema((column("sex", "category", values=["F", "M"]),))
    method = make_method("histogram", {"columns": ("sex",)})
    table = open_table(pa.table({"sex": ["F"]}), schema)
    shown = section(method.release(table, budget=Budget.seeded(1), rng=seeded(1)), True)
    assert (shown.figures, shown.listings, shown.python) == ((), (), "")
