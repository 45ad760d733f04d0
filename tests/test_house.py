"""How far a newcomer has to walk: few files and folders do the work of one release."""

import sys
from contextlib import contextmanager
from pathlib import Path

import pytest

import dpublish
from dpublish.auditing.examples import STREAM_SCHEMA
from dpublish.auditing.worlds import snapshots
from dpublish.core.registry import make_method
from dpublish.data.sources import open_table
from dpublish.methods.streams.method import make_stream_method
from dpublish.privacy.budget import Budget
from dpublish.randomness import seeded
from method_examples import SCHEMA, arrow_table

ROOT = Path(dpublish.__file__).parent
LISTED = {
    path.name for path in (ROOT / "methods").iterdir() if path.is_dir() and path.name[0] != "_"
}


@contextmanager
def entered(*packages):
    """Collect the files of some packages whose functions are called meanwhile."""
    files = set()

    def note(frame, event, argument):
        path = Path(frame.f_code.co_filename)
        if frame.f_code.co_name != "<module>" and path.is_relative_to(ROOT):
            name = path.relative_to(ROOT)
            if name.parts[0] in packages:
                files.add(name)

    before = sys.getprofile()
    sys.setprofile(note)
    try:
        yield files
    finally:
        sys.setprofile(before)


@pytest.mark.parametrize(
    ("name", "settings"),
    [
        ("privpfc", {"target": "sex"}),
        ("dpcopula", {"correlation": "spearman"}),
        ("dpcopula", {"correlation": "kendall", "columns": ("age", "height", "sex")}),
        ("histogram", {"columns": ("age", "sex")}),
        ("kmeans", {"n_clusters": 2}),
    ],
)
def test_a_release_enters_few_files_of_methods(name, settings, tmp_path):
    method, table = make_method(name, settings), open_table(arrow_table(), SCHEMA)
    with entered("methods") as files:
        release = method.release(table, budget=Budget.seeded(1), rng=seeded(1))
        release.save(tmp_path / "out")
    assert 2 <= len(files) <= 15
    assert len({path.parent for path in files}) <= 4


def test_a_step_of_a_stream_enters_few_files():
    method = make_stream_method("dsat", {"columns": ("zone", "hour"), "horizon": 20})
    rng = seeded(2)
    stream = method.start(STREAM_SCHEMA, budget=Budget.seeded(2), rng=rng)
    with entered("methods", "publishing") as files:
        for counts in snapshots(5, 40, 24)[:6]:
            stream.next_counts(counts, rng=rng)
    assert 2 <= len(files) <= 20
    assert len({path.parent for path in files}) <= 4


def test_the_packages_of_methods_are_those_that_the_field_names():
    known = """
        bounds diffgen dpcopula filter_priority histogram kmeans linear_models marginals
        personalized pph privbayes privelet privpfc spatial statistics streams synth topk trees
        wavecluster
    """
    assert set(known.split()) == LISTED
