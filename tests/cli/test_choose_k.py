"""`dpublish choose-k`: a table, a picture, JSON, and refusals in one line."""

import numpy as np
import pyarrow as pa
import pytest

from dpublish.data.schema import Schema, column
from dpublish.data.sources import open_table
from dpublish.methods.histogram.histogram import Histogram
from dpublish.methods.kmeans.eugkm import EUGkM
from dpublish.privacy.budget import Budget
from dpublish.randomness import plain_generator, seeded

SCHEMA = Schema(tuple(column(n, "numeric", bounds=[-1, 1], bins=4) for n in ("x", "y")))


def publish(method, path):
    rng = plain_generator(8)
    middles = np.array([[-0.7, -0.7], [0.7, -0.6], [0.0, 0.7]])
    points = middles[rng.integers(0, 3, 9000)] + rng.normal(0, 0.05, (9000, 2))
    table = open_table(pa.table({"x": points[:, 0], "y": points[:, 1]}), SCHEMA)
    return method.release(table, budget=Budget.seeded(1), rng=seeded(2)).save(path)


@pytest.fixture
def shops(tmp_path):
    return publish(EUGkM(n_clusters=6), tmp_path / "shops")


def test_the_best_number_is_marked_and_drawn(run, shops):
    done = run("choose-k", shops, "--from", 2, "--to", 6, "--seed", 1)
    assert done.code == 0
    assert [line.split()[0] for line in done.out.splitlines()[:6]] == ["clusters", *"23456"]
    assert "3 *" in done.out
    assert "3 clusters fit best" in done.out
    picture = shops.with_name("shops-choose-k.svg").read_text()
    assert picture.startswith("<svg")
    assert "number of clusters" in picture


@pytest.mark.parametrize("given", ["shops", "shops/", "./shops"])
def test_the_picture_is_named_as_the_folder_was_given(run, shops, given):
    done = run("choose-k", given, "--to", 3, "--n-init", 1)
    assert "wrote shops-choose-k.svg" in done.out
    assert shops.with_name("shops-choose-k.svg").exists()


def test_programs_get_json_and_may_choose_where_it_is_drawn(run, shops, tmp_path):
    options = ("--to", 4, "--n-init", 5, "--json", "-o", "validity.svg")
    found = run("choose-k", shops, *options).json()
    assert found["best"] == 3
    assert [one["clusters"] for one in found["validity"]] == [2, 3, 4]
    assert found["plot"] == "validity.svg"
    assert (tmp_path / "validity.svg").exists()
    best = min(found["validity"], key=lambda one: one["validity"])
    assert best["validity"] == best["within"] / best["between"]


def test_it_can_be_drawn_again_and_the_release_still_loads(run, shops):
    for _ in range(2):
        assert run("choose-k", shops, "--to", 3, "--starts", 2).code == 0
    assert run("rows", shops, "-n", 5, "-o", "rows.csv").code == 0


@pytest.mark.parametrize("name", ["books.db", "taken.svg", "plot.png"])
def test_a_file_that_the_user_names_is_new_and_an_svg(run, shops, tmp_path, name):
    taken = tmp_path / name
    if name != "plot.png":
        taken.write_text("precious")
    done = run("choose-k", shops, "--to", 3, "--n-init", 1, "-o", name)
    words = "taken.svg exists already" if name == "taken.svg" else "ending in .svg"
    assert (done.code, words in done.err) == (1, True), done.err
    assert not taken.exists() or taken.read_text() == "precious"


def test_without_matplotlib_the_table_is_all(run, shops, monkeypatch):
    monkeypatch.setattr("dpublish.plots.comparisons.can_draw", lambda: False)
    done = run("choose-k", shops, "--to", 3, "--starts", 2)
    assert done.code == 0
    assert "Matplotlib is not installed" in done.out
    assert not shops.with_name("shops-choose-k.svg").exists()


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--from", 5, "--to", 3), "must not be above"),
        (("--from", 1), "at least 2"),
        (("--to", 5000), "at most"),
        (("--n-init", 0), "at least 1"),
    ],
)
def test_impossible_requests_are_refused(run, shops, options, words):
    done = run("choose-k", shops, *options)
    assert done.code == 1
    assert words in done.err


def test_other_kinds_of_release_are_refused(run, tmp_path):
    counts = publish(Histogram(columns=("x", "y")), tmp_path / "counts")
    done = run("choose-k", counts)
    assert done.code == 1
    assert "has no clusters" in done.err


def test_a_picture_that_cannot_be_written_is_an_error(run, shops):
    done = run("choose-k", shops, "--to", 3, "--n-init", 1, "-o", "nowhere/plot.svg")
    assert done.code == 3
    assert "create it first" in done.err


@pytest.mark.parametrize("option", ["--n-clusters", "--clusters"])
def test_the_number_of_clusters_has_its_present_and_its_former_option(run, tmp_path, option):
    schema = tmp_path / "points.toml"
    schema.write_text('[columns.x]\nkind = "numeric"\nbounds = [0, 1]\n')
    plan = ("plan", "--method", "kmeans", "--schema", schema, "--epsilon", 1, "--json")
    assert run(*plan, option, 3).json() == run(*plan, "--n-clusters", 3).json()
    assert run(*plan, option, 3, "--n-clusters", 4).code != 0
