"""`dpublish release --method statistics` and `dpublish statistics`."""

import json

import pyarrow.csv
import pytest

from dpublish.cli.main import main
from dpublish.ledger.ledger import Ledger
from methods.statistics.statistics_rows import make_rows

SCHEMA = """
[columns.ward]
kind = "category"
values = ["A", "B", "C"]
missing = "drop"

[columns.age]
kind = "integer"
bounds = [0, 99]

[columns.cost]
kind = "numeric"
bounds = [0, 1000]
missing = "drop"
"""
MEASURES = "count, sum(cost), mean(age), quantile(cost, 0.9)"


def run(capsys, *arguments):
    with pytest.raises(SystemExit) as left:
        main(list(map(str, arguments)))
    printed = capsys.readouterr()
    return left.value.code, printed.out, printed.err


@pytest.fixture
def world(tmp_path, capsys):
    pyarrow.csv.write_csv(make_rows(2_000), tmp_path / "visits.csv")
    (tmp_path / "visits.toml").write_text(SCHEMA)
    books = tmp_path / "books.db"
    assert run(capsys, "ledger", "create", books)[0] == 0
    assert run(capsys, "ledger", "add", books, "visits", "--cap", "2")[0] == 0
    return tmp_path


def release(capsys, world, *more):
    return run(
        capsys, "release", "--data", world / "visits.csv", "--schema", world / "visits.toml",
        "--method", "statistics", "--epsilon", "1", "--ledger", world / "books.db",
        "--dataset", "visits",
        "-o", world / "out", *more,
    )  # fmt: skip


def test_statistics_are_released_and_shown(world, capsys):
    code, out, err = release(capsys, world, "--measures", MEASURES, "--by", "ward")
    assert code == 0, err
    code, out, err = run(capsys, "statistics", world / "out")
    assert code == 0, err
    lines = out.splitlines()
    assert lines[0].split()[:3] == ["ward", "measure", "value"]
    assert any(line.startswith("A") and "mean(age)" in line for line in lines)
    assert any(line.startswith("(all)") and "sum(cost)" in line for line in lines)
    assert "for the statistic of these records" in lines[-2]
    assert lines[-1] == "counted: records with ward"


def test_statistics_are_written_as_json_csv_and_files(world, capsys):
    release(capsys, world, "--measures", MEASURES, "--by", "ward")
    code, out, _ = run(capsys, "statistics", world / "out", "--measure", "mean(age)", "--json")
    listed = json.loads(out)
    assert code == 0
    assert [one["ward"] for one in listed] == ["A", "B", "C", "(all)"]
    assert listed[2]["value"] is None
    assert listed[2]["note"] == "unknown"
    code, out, _ = run(capsys, "statistics", world / "out", "--csv", "--no-totals")
    assert out.splitlines()[0] == "ward,measure,value,low,high,interval,of,note"
    assert len(out.splitlines()) == 13
    code, out, _ = run(capsys, "statistics", world / "out", "-o", world / "shown.csv")
    assert code == 0
    assert pyarrow.csv.read_csv(world / "shown.csv").num_rows == 15


def test_a_count_and_the_plan_work_as_for_other_methods(world, capsys):
    release(capsys, world, "--measures", MEASURES, "--by", "ward")
    assert "confidence interval" in run(capsys, "count", world / "out", "ward = A")[1]
    code, out, err = run(
        capsys, "plan", "--schema", world / "visits.toml", "--method", "statistics",
        "--epsilon", "1", "--measures", MEASURES, "--by", "ward",
    )  # fmt: skip
    assert code == 0, err
    assert "mean(age)" in out


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (("--measures", "mean(ward)"), "needs numbers"),
        (("--measures", "quantile(age, 2)"), "between 0 and 1"),
        (("--measures", "mean(height)"), "height"),
        (("--measures", "count,count"), "listed twice"),
    ],
)
def test_mistakes_cost_nothing(world, capsys, more, message):
    code, _, err = release(capsys, world, *more)
    assert code == 1
    assert message in err
    assert not (world / "out").exists()
    with Ledger(world / "books.db") as ledger:
        assert ledger.status("visits").spent == 0


def test_other_releases_have_no_statistics(world, capsys):
    code, _, err = run(
        capsys, "release", "--data", world / "visits.csv", "--schema", world / "visits.toml",
        "--method", "histogram", "--columns", "ward", "--epsilon", "1",
        "--ledger", world / "books.db",
        "--dataset", "visits", "-o", world / "counts",
    )  # fmt: skip
    assert code == 0, err
    code, _, err = run(capsys, "statistics", world / "counts")
    assert code == 1
    assert "no statistics" in err


def test_statistics_of_people_with_levels_are_shown_part_by_part(world, capsys):
    rows = pyarrow.csv.read_csv(world / "visits.csv")
    own = pyarrow.array([0.5, 1.0, 2.0, 2.0] * 500)
    pyarrow.csv.write_csv(rows.append_column("own", own), world / "visits.csv")
    run(capsys, "ledger", "add", world / "books.db", "own", "--levels", "0.5,1,2")
    code, out, err = run(
        capsys, "release", "--data", world / "visits.csv", "--schema", world / "visits.toml",
        "--method", "threshold", "--threshold", "1", "--epsilon-column", "own",
        "--levels", "0.5,1,2", "--inner", "statistics measures=mean(age) by=ward",
        "--epsilon", "1", "--ledger", world / "books.db", "--dataset", "own",
        "-o", world / "own",
    )  # fmt: skip
    assert code == 0, err
    assert "of people at level 1 or above" in out
    code, out, err = run(capsys, "statistics", world / "own")
    assert code == 0, err
    assert out.startswith("part 1 (levels 1 and 2), by itself:")
    assert "at level 1 or above" in out.splitlines()[-1]
    listed = json.loads(run(capsys, "statistics", world / "own", "--json")[1])
    assert {one["part"] for one in listed} == {"part 1 (levels 1 and 2)"}
    assert [one["ward"] for one in listed] == ["A", "B", "C", "(all)"]
