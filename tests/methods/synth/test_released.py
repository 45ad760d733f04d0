"""A published model: it comes back from its folder, and what is no model is refused."""

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pyarrow as pa
import pytest

import dpublish
from dpublish.core.folder.folder import _NOT_A_RELEASE
from dpublish.errors import CorruptRelease, InvalidParameter
from dpublish.methods.synth import released as releasing
from dpublish.methods.synth.model import CountedTable
from dpublish.methods.synth.quality import Quality
from dpublish.methods.synth.released import SynthRelease
from dpublish.methods.synth.report import section
from methods.synth.synth_world import make_rows, publish, stated_schema

REFUSED = (CorruptRelease, *_NOT_A_RELEASE)
"""What `load` turns into a refusal."""


@pytest.fixture(scope="module")
def release():
    return publish(make_rows(2_500))


@pytest.fixture(scope="module")
def stated():
    rows = make_rows(2_500)
    rows = rows.append_column("double", pa.array([0] * rows.num_rows))
    return publish(rows, "3", schema=stated_schema(), target=("job",), quality_share=Fraction(0))


@pytest.mark.parametrize("name", ["release", "stated"])
def test_a_release_comes_back_from_its_folder(request, tmp_path, name):
    made = request.getfixturevalue(name)
    made.save(tmp_path / "out")
    again = dpublish.load(tmp_path / "out")
    assert again == made
    for one, other in zip(made.classes, again.classes, strict=True):
        assert [x.tolist() for x in one.levels] == [x.tolist() for x in other.levels]
    for one, other in zip(made.probabilities, again.probabilities, strict=True):
        assert np.array_equal(one, other)  # to the last bit
    assert again.rows(500, seed=3) == made.rows(500, seed=3)
    assert again.count("sex = F and job = cook") == made.count("sex = F and job = cook")
    assert again.mean_distance() == made.mean_distance()
    assert again.summary() == made.summary()


def test_a_release_of_one_column_comes_back(tmp_path):
    made = publish(make_rows(50), columns=("age",))
    made.save(tmp_path / "out")
    again = dpublish.load(tmp_path / "out")
    assert again == made
    assert again.counted == ()
    assert again.rows(9, seed=1) == made.rows(9, seed=1)


def test_the_report_lists_tables_and_quality(release):
    shown = section(release, with_charts=False)
    tables = next(one for one in shown.listings if "cells" in one.headers)
    assert len(tables.rows) == len(release.counted) > 3
    quality = next(one for one in shown.listings if "measured" in one.headers)
    assert len(quality.rows) == 2


# --- What no method would publish ---------------------------------------------------------------


def rebuilt(release, metadata=lambda x: x, **tables):
    """Read a release from what it wrote, with changes."""
    written = release.tables()
    for name, change in tables.items():
        written[name] = change(written[name])
    return SynthRelease.from_parts(
        receipt=release.receipt,
        schema=release.schema,
        metadata=metadata(release.metadata()),
        tables=written,
    )


def test_what_was_not_changed_is_read(release):
    assert rebuilt(release) == release


def _set(table, name, row, value):
    values = table[name].to_pylist()
    values[row] = value
    at = table.column_names.index(name)
    return table.set_column(at, name, pa.array(values, table[name].type))


CHANGED_TABLES = {
    "a negative probability": {"model": lambda x: _set(x, "probability", 0, -0.5)},
    "no number": {"model": lambda x: _set(x, "probability", 0, float("nan"))},
    "infinity": {"model": lambda x: _set(x, "probability", 0, float("inf"))},
    "null": {"model": lambda x: _set(x, "probability", 0, None)},
    "more than 1 in all": {"model": lambda x: _set(x, "probability", 0, 0.9)},
    "a cell less": {"model": lambda x: x.slice(1)},
    "a cell more": {"model": lambda x: pa.concat_tables([x, x.slice(0, 1)])},
    "no model": {"model": lambda x: x.select(["clique"])},
    "a count less": {"counts": lambda x: x.slice(1)},
    "a count more": {"counts": lambda x: pa.concat_tables([x, x.slice(0, 1)])},
    "a class that is not there": {"classes": lambda x: _set(x, "class", 0, 77)},
    "a negative class": {"classes": lambda x: _set(x, "class", 0, -1)},
    "codes without a class": {"classes": lambda x: _set(x, "first_code", 0, 1)},
    "codes beyond the column": {"classes": lambda x: _set(x, "first_code", x.num_rows - 1, 999)},
    "no classes": {"classes": lambda x: x.slice(0, 0)},
    "a level left out": {"classes": lambda x: _set(x, "level", 0, 5)},
    "a marginal cut off": {"marginals": lambda x: x.slice(1)},
}


@pytest.mark.parametrize("change", CHANGED_TABLES.values(), ids=CHANGED_TABLES.keys())
def test_changed_tables_are_refused(release, change):
    with pytest.raises(REFUSED):
        rebuilt(release, **change)


def _first_table(**changes):
    def change(found):
        first, *others = found["tables"]
        return found | {"tables": [first | changes, *others]}

    return change


CHANGED_METADATA = {
    "an unknown column": _first_table(columns=["sex", "nothing"]),
    "a column twice": _first_table(columns=["sex", "sex"]),
    "columns out of order": _first_table(columns=["job", "sex"]),
    "a level that is not there": _first_table(levels=[0, 99]),
    "a negative level": _first_table(levels=[-1, 0]),
    "one level": _first_table(levels=[0]),
    "a rate of 0": _first_table(rate="0"),
    "a negative rate": _first_table(rate="-1/2"),
    "no tables": lambda x: x | {"tables": []},
    "a table that is none": lambda x: x | {"tables": [7]},
    "a clique less": lambda x: x | {"cliques": x["cliques"][1:], "parents": x["parents"][1:]},
    "an unknown clique": lambda x: x | {"cliques": [["nothing"], *x["cliques"][1:]]},
    "no root": lambda x: x | {"parents": [0] * len(x["parents"])},
    "a parent that follows": lambda x: x | {"parents": [len(x["parents"]), *x["parents"][1:]]},
    "no parents": lambda x: x | {"parents": []},
    "parents that are no numbers": lambda x: x | {"parents": ["0"] * len(x["parents"])},
    "levels of the model": lambda x: x | {"model_levels": [99] * len(x["model_levels"])},
    "fewer levels": lambda x: x | {"model_levels": x["model_levels"][1:]},
    "joined levels": lambda x: x | {"joined_levels": [99] * len(x["joined_levels"])},
    "joined levels that are none": lambda x: x | {"joined_levels": 3},
    "a quality of floats": lambda x: x | {"quality": x["quality"] | {"summed_distance": 1.5}},
    "a quality without pairs": lambda x: x | {"quality": x["quality"] | {"pairs": 0}},
    "a quality rounded away": lambda x: x | {"quality": x["quality"] | {"rounding": 7.0}},
    "a quality without a rate": lambda x: x | {"quality": x["quality"] | {"worst_rate": "0"}},
    "nothing": lambda x: {},
}


@pytest.mark.parametrize("change", CHANGED_METADATA.values(), ids=CHANGED_METADATA.keys())
def test_changed_metadata_is_refused(release, change):
    with pytest.raises(REFUSED):
        rebuilt(release, metadata=change)


def test_a_folder_with_such_a_change_is_corrupt(monkeypatch, release, tmp_path):
    written = release.tables()
    written["model"] = _set(written["model"], "probability", 0, -0.5)
    with monkeypatch.context() as patch:
        patch.setattr(SynthRelease, "tables", lambda self: written)
        release.save(tmp_path / "out")
    with pytest.raises(CorruptRelease):
        dpublish.load(tmp_path / "out")


def test_cliques_that_are_no_tree_are_refused(release):
    """Columns 0 and 1 are joined to 2, but meet again below: no order of drawing has both."""
    sizes = [x.sizes[level] for x, level in zip(release.classes, release.levels, strict=True)]
    cliques = ((0, 2), (1, 2), (0, 1), (3,), (4,))
    shapes = [tuple(sizes[i] for i in clique) for clique in cliques]
    tables = tuple(np.full(shape, 1 / np.prod(shape)) for shape in shapes)
    with pytest.raises(InvalidParameter, match="not those of a tree"):
        replace(release, cliques=cliques, parents=(-1, 0, 1, 0, 0), probabilities=tables)
    sound = ((0, 2), (1, 2), (3,), (4,))
    kept = tuple(np.full(s, 1 / np.prod(s)) for s in (shapes[0], shapes[1], *shapes[3:]))
    made = replace(release, cliques=sound, parents=(-1, 0, 0, 0), probabilities=kept)
    assert made.rows(5).num_rows == 5
    with pytest.raises(InvalidParameter, match="follows its parent"):
        replace(made, parents=(-1, 0, -1, 0))  # two roots
    with pytest.raises(InvalidParameter, match="follows its parent"):
        replace(made, parents=(-1, 2, 0, 0))
    with pytest.raises(InvalidParameter, match="lies in a clique"):
        replace(made, cliques=sound[:3], parents=(-1, 0, 0), probabilities=kept[:3])


def test_too_many_cells_are_refused(monkeypatch, release):
    monkeypatch.setattr(releasing, "_MOST_CELLS", 3)
    with pytest.raises(InvalidParameter, match="too many cells"):
        replace(release)


def test_wrong_tables_are_refused(release):
    first = release.counted[0]
    for table in (
        replace(first, counts=first.counts.astype(np.float64)),
        replace(first, counts=first.counts[1:]),
        CountedTable((0, 99), first.levels, first.counts, first.rate),
        CountedTable((), (), np.zeros((), np.int64), first.rate),
    ):
        with pytest.raises((InvalidParameter, ValueError)):
            replace(release, counted=(table,))


def test_wrong_qualities_are_refused():
    sound = {"pairs": 3, "summed": 5, "worst": 4, "rounding": 0.0}
    rates = {"summed_rate": Fraction(1, 9), "worst_rate": Fraction(1, 9)}
    Quality(**sound, **rates)
    for change in ({"pairs": 0}, {"summed": 1.5}, {"worst": True}, {"rounding": -0.1}):
        with pytest.raises(InvalidParameter):
            Quality(**sound | change, **rates)
