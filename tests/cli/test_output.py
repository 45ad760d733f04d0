"""What is printed: nothing of a stranger's file reaches the terminal as a command."""

import json

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow import csv

from dpublish.cli.output import printable, say_json, say_table
from dpublish.core.formulas import without_formulas
from dpublish.errors import InputError
from dpublish.publishing.table_file import write_table

NASTY = "age\x1b]0;owned\x07\x9b2J\u202e\u2066\nspent: 0"
TOML_NAME = json.dumps(NASTY)


@pytest.fixture
def strange(release, run, workdir):
    """Publish from a table whose column and values hold escapes, as a stranger might."""
    (workdir / "people.toml").write_text(
        f'[columns.{TOML_NAME}]\nkind = "category"\nvalues = ["\\u001b[31mred", "x\\ny"]\n'
    )
    pq.write_table(pa.table({NASTY: ["x\ny", "\x1b[31mred"] * 20}), workdir / "people.parquet")
    done = release(columns=NASTY, data="people.parquet")
    assert done.code == 0, done.err
    return done


def is_harmless(text):
    return all(c.isprintable() for c in text.replace("\n", ""))


def test_names_and_values_of_a_release_are_not_obeyed_by_the_terminal(strange, run):
    shown = [
        strange,
        run("schema", "show", "people.toml"),
        run("schema", "check", "people.toml", "people.parquet"),
        run("count", "out", 'nothing = "x"'),
        run("count", "out", f'"{NASTY}" = "nothing"'),
        run("rows", "out", "-o", "rows.csv"),
        run("ledger", "show", "books.db"),
    ]
    for done in shown:
        assert is_harmless(done.out + done.err), done.out + done.err
        assert not any(line.startswith("spent: 0") for line in done.out.splitlines())
    assert "\\x1b[31mred" in shown[1].out
    assert len(shown[3].err.splitlines()) == 1


def test_json_is_exact_and_harmless(capsys):
    value = {NASTY: ["\ud800", "\U000e0001", "é"]}
    say_json(value)
    out, _ = capsys.readouterr()
    assert is_harmless(out)
    assert json.loads(out) == value
    assert "é" in out


def test_titles_and_headers_of_tables_are_written_out(capsys):
    say_table([NASTY], [[NASTY]], title=NASTY)
    out, _ = capsys.readouterr()
    assert is_harmless(out)
    assert printable(NASTY) in out


@pytest.mark.parametrize("numerator", ["1" * 400 + "/3", "1" * 399 + "/" + "3" * 400])
def test_a_plan_takes_the_same_epsilons_as_a_release(run, release, workdir, numerator):
    words = ("--method", "histogram", "--columns", "age", "--schema", "people.toml")
    planned = run("plan", *words, "--epsilon", numerator)
    assert planned.code == 1
    assert planned.err == release(columns="age", epsilon=numerator).err
    million = ("--epsilon", "1000001")
    assert "at most 1,000,000" in run("plan", *words, *million).err


def test_formulas_are_made_harmless_for_spreadsheets_only_if_asked(release, run, workdir):
    (workdir / "people.toml").write_text(
        '[columns."=name"]\nkind = "category"\nvalues = ["=1+1", "-2", "@x", "plain"]\n'
        '[columns.n]\nkind = "integer"\nbounds = [-5, -1]\n'
    )
    names = ["=1+1", "-2", "@x", "plain"] * 10
    csv.write_csv(pa.table({"=name": names, "n": [-1, -2, -3, -4] * 10}), workdir / "people.csv")
    assert release(columns="=name,n").code == 0
    assert run("rows", "out", "-n", 400, "--seed", 1, "-o", "plain.csv").code == 0
    done = run("rows", "out", "-n", 400, "--seed", 1, "-o", "sheet.csv", "--for-spreadsheets")
    assert done.code == 0, done.err
    plain, sheet = csv.read_csv(workdir / "plain.csv"), csv.read_csv(workdir / "sheet.csv")
    assert plain.column_names == ["=name", "n"]
    assert sheet.column_names == ["'=name", "n"]
    assert set(sheet["'=name"].to_pylist()) == {"'=1+1", "-2", "'@x", "plain"}
    assert sheet["n"].equals(plain["n"])
    assert [text.removeprefix("'") for text in sheet["'=name"].to_pylist()] == plain[
        "=name"
    ].to_pylist()


@pytest.mark.parametrize("text", ["=A1", "+1+cmd", "-1+1", "@SUM", "\t=1", "\r=1", "\n=1", "＝1"])
def test_what_spreadsheets_run_is_prefixed_in_every_kind_of_text_column(text):
    for kind in (pa.string(), pa.large_string(), pa.dictionary(pa.int32(), pa.string())):
        table = pa.table({"a": pa.array([text, None], pa.string()).cast(kind)})
        assert without_formulas(table)["a"].to_pylist() == [f"'{text}", None]


@pytest.mark.parametrize("ending", ["parquet", "csv", "arrow"])
def test_rows_are_written_whole_or_not_at_all(release, run, workdir, monkeypatch, ending):
    assert release().code == 0
    before = sorted(workdir.iterdir())

    def half(path, *_, **__):
        with open(path, "wb") as file:
            file.write(b"half")
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(pq, "ParquetWriter", half)
        patched.setattr(csv, "CSVWriter", half)
        patched.setattr("pyarrow.ipc.new_file", half)
        done = run("rows", "out", "-o", f"rows.{ending}")
    assert done.code == 3
    assert "No space left on device" in done.err
    assert sorted(workdir.iterdir()) == before
    with monkeypatch.context() as patched:
        for name in ("parquet.write_table", "csv.write_csv", "feather.write_feather"):
            patched.setattr(f"pyarrow.{name}", lambda _, path, **__: half(path))
        with pytest.raises(InputError, match="No space left"):
            write_table(pa.table({"n": [1]}), workdir / f"rows.{ending}")
    assert sorted(workdir.iterdir()) == before
    assert run("rows", "out", "-o", f"rows.{ending}").code == 0
