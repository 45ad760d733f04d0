"""`dpublish demo`: data, schema, release and report in a minute."""

import shutil
import subprocess
import sys
from pathlib import Path

import click

from dpublish.cli.group import complete_files
from dpublish.cli.output import emit, say
from dpublish.errors import InputError, InvalidParameter, require_count

_MARK = ".dpublish-demo"


@click.command()
@click.argument("folder", default="dpublish-demo", shell_complete=complete_files)
@click.option("--fresh", is_flag=True, help="Start over if an earlier demo is there.")
@click.option("--records", default=20_000, show_default=True, help="How many people to simulate.")
def demo(folder: str, fresh: bool, records: int) -> None:
    """Publish from a simulated census in three ways, and use what was published."""
    path = Path(folder)
    require_count(records=records, at_least=0)
    _prepare(path, fresh)
    _write_inputs(path, records)
    say(f"{path}/people.csv is a simulated census of {records:,} people.")
    say(f"{path}/people.toml is its schema: what is public about the table.")
    say()
    for words in _STORY:
        _step(path, words)
    say()
    say(f"Done.  Open {path}/by-age/report.html in a browser, or in Python:")
    say(f"  import dpublish; dpublish.load('{path}/by-age').count('age in 31..45')")


_HISTOGRAM = ("--method", "histogram", "--columns", "age,sex,income", "--schema", "people.toml")
_RANKING = ("--method", "topk", "--column", "work", "--count", "3", "--with-counts")
_GRID = ("--method", "privpfc", "--target", "income")
_PAID = ("--data", "people.csv", "--ledger", "books.db", "--dataset", "census")

_STORY: tuple[tuple[str, ...], ...] = (
    ("schema", "check", "people.toml"),
    ("ledger", "create", "books.db"),
    ("ledger", "add", "books.db", "census", "--cap", "1.0"),
    ("plan", *_HISTOGRAM, "--epsilon", "0.5"),
    ("release", *_HISTOGRAM, *_PAID, "--epsilon", "0.5", "-o", "by-age"),
    ("release", *_RANKING, "--schema", "people.toml", *_PAID, "--epsilon", "0.2", "-o", "top-work"),
    ("release", *_GRID, "--schema", "people.toml", *_PAID, "--epsilon", "0.3", "-o", "incomes"),
    ("count", "by-age", 'age in 31..45 and sex = Female and income = ">50K"'),
    ("rows", "by-age", "-o", "synthetic.csv"),
    ("rows", "incomes", "-n", "1000", "-o", "to-train-on.csv"),
    ("predict", "incomes", "people.csv", "-o", "predicted.csv"),
    ("evaluate", "incomes", "--against", "people.csv", "--classifiers", "direct"),
    ("ledger", "show", "books.db"),
    ("ledger", "verify", "books.db", "--release", "by-age", "--release", "incomes"),
)


def _prepare(path: Path, fresh: bool) -> None:
    if path.exists():
        if not (path / _MARK).exists():
            raise InvalidParameter(f"{path} exists and is not an earlier demo; name another folder")
        if not fresh:
            raise InvalidParameter(f"{path} holds an earlier demo; add --fresh to start over")
        shutil.rmtree(path)
    try:
        path.mkdir(parents=True)
        (path / _MARK).touch()
    except OSError as error:
        raise InputError(f"cannot create {path} ({error.strerror})") from None


def _write_inputs(path: Path, records: int) -> None:
    from pyarrow import csv

    from dpublish.datasets.census import SCHEMA, census

    csv.write_csv(census(records), path / "people.csv")
    (path / "people.toml").write_text(SCHEMA, "utf-8")


def _step(path: Path, words: tuple[str, ...]) -> None:
    shown = " ".join(f"'{word}'" if " " in word else word for word in words)
    emit(click.style(f"$ dpublish {shown}", bold=True) + "\n")
    # Each step is the real command in a process of its own, as a user would run it.
    done = subprocess.run([sys.executable, "-m", "dpublish", *words], cwd=path, check=False)
    if done.returncode:
        raise InputError(f"the step failed with exit code {done.returncode}")
    say()
