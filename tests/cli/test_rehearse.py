"""`dpublish rehearse`: curves, pictures, the wanted epsilon, and wrong requests."""

import pyarrow.parquet as pq
import pytest

from dpublish.core.registry import make_method
from dpublish.data.schema_file import load_schema
from dpublish.data.sources import open_table
from dpublish.datasets.loans import SCHEMA, loans
from dpublish.planning.stand_in import STAMP_OF_SEEDED, STAMP_OF_TABLE
from dpublish.privacy.budget import Budget
from dpublish.randomness import seeded

WORDS = ("rehearse", "--method", "privpfc", "--target", "repaid", "--schema", "loans.toml")
QUICK = ("--epsilon", "0.5,2", "--repeats", "2")


@pytest.fixture
def folder(tmp_path):
    """Write a schema, an earlier release, a public table and shares."""
    (tmp_path / "loans.toml").write_text(SCHEMA)
    schema = load_schema(str(tmp_path / "loans.toml"))
    table = open_table(loans(1_500), schema)
    release = make_method("synth", {}).release(table, budget=Budget.seeded(2), rng=seeded(1))
    release.save(tmp_path / "earlier")
    pq.write_table(loans(1_500, seed=3), tmp_path / "public.parquet")
    (tmp_path / "shares.toml").write_text("[repaid]\nyes = 0.8\n")
    return tmp_path


def test_a_rehearsal_prints_the_goals_measure_by_epsilon(folder, run):
    shown = run(*WORDS, "--stand-in", "earlier", *QUICK)
    assert shown.code == 0, shown.err
    assert STAMP_OF_SEEDED in shown.out
    assert "wrong: median (range)" in shown.out
    assert "auc: median (range)" in shown.out
    assert "epsilon 0.5" in shown.out or "\n0.5 " in shown.out
    assert "stops paying" in shown.out or "still improves" in shown.out


def test_json_says_the_same(folder, run):
    words = (*WORDS, "--stand-in", "earlier", *QUICK, "--wanted", "wrong <= 0.9", "--json")
    found = run(*words).json()
    assert found["stamp"] == STAMP_OF_SEEDED
    assert [point["epsilon"] for point in found["points"]] == ["0.5", "2"]
    assert found["epsilon"] == "0.5"
    assert found["wanted"] == "wrong <= 0.9"
    assert run(*words).json() == found


def test_a_goal_is_enough(folder, run):
    words = ("rehearse", "--goal", "classify:repaid", "--schema", "loans.toml", *QUICK)
    shown = run(*words, "--stand-in", "earlier")
    assert shown.code == 0, shown.err
    assert "target=repaid" in shown.out


def test_names_that_are_also_goals_are_methods_after_the_option(folder, run):
    given = ("--schema", "loans.toml", "--stand-in", "earlier", *QUICK)
    shown = run("rehearse", "--method", "model", "--target", "repaid", *given)
    assert shown.out.startswith("model target=repaid, rehearsed 2 times")
    bare = run("rehearse", "--method", "statistics", *given)
    assert "statistics needs measures (--measures)" in bare.err


def test_a_picture_is_written(folder, run):
    pytest.importorskip("matplotlib")
    shown = run(*WORDS, "--stand-in", "earlier", *QUICK, "--plot", "curve.svg")
    assert "plot: curve.svg" in shown.out
    assert (folder / "curve.svg").read_text().startswith("<svg")
    again = run(*WORDS, "--stand-in", "earlier", *QUICK, "--plot", "curve.svg")
    assert again.code == 1
    assert "exists already" in again.err


def test_a_public_table_and_shares_stand_in(folder, run):
    table = run(*WORDS, "--stand-in", "public.parquet", *QUICK)
    assert STAMP_OF_TABLE in table.out
    shares = run(*WORDS, "--stand-in", "shares.toml", *QUICK, "--rows", "500")
    assert "dependence between columns is missing" in shares.out
    assert "500 simulated rows" in shares.out


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ((), "--stand-in"),
        (("--stand-in", "nowhere"), "is not there"),
        (("--stand-in", "earlier", "--wanted", "wrong < "), "wrong <= 0.2"),
        (("--stand-in", "earlier", "--wanted", "relative <= 1"), "known: auc, wrong"),
        (("--stand-in", "earlier", "--epsilon", "a"), "not a number"),
        (("--stand-in", "earlier", "--plot", "a.pdf"), "ending in .svg or .png"),
        (("--stand-in", "earlier", "--repeats", "0"), "repeats"),
        (("--stand-in", "earlier", "--rows", "0"), "rows (0)"),
        (("--stand-in", "earlier", "--data", "people.csv"), "leave --data out"),
        (("--stand-in", "earlier", "--ledger", "books.db"), "leave --ledger out"),
        (("--stand-in", "earlier", "--stan", "x"), "stan"),
    ],
)
def test_wrong_requests_are_told_what_to_write(folder, run, words, told):
    shown = run(*WORDS, *words)
    assert shown.code == (3 if "nowhere" in words else 1)
    assert told in shown.err
    assert "Traceback" not in shown.err


def test_a_method_or_a_goal_is_needed(folder, run):
    shown = run("rehearse", "--schema", "loans.toml", "--stand-in", "earlier")
    assert "--method" in shown.err
    both = run(
        *("rehearse", "--goal", "rows", "--columns", "a", "--schema", "loans.toml"),
        *("--stand-in", "earlier"),
    )
    assert "--columns is a setting of a method" in both.err
