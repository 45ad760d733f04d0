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
@click.option("--patients", default=20_000, show_default=True, help="How many to simulate.")
def demo(folder: str, fresh: bool, patients: int) -> None:
    """Publish from the visits of a simulated hospital, and use what was published.

    A patient has one visit or fifty; every release hides all visits of any one patient.
    """
    path = Path(folder)
    require_count(patients=patients, at_least=0)
    _prepare(path, fresh)
    _write_inputs(path, patients)
    say(f"{path}/visits.csv has the visits of {patients:,} simulated patients, several of most.")
    say(f"{path}/visits.toml is its schema: what is public about the table.")
    say('Its first lines say unit = "patient_id": all visits of one patient are hidden together.')
    say()
    for part in _STORY:
        if isinstance(part, str):
            say(part)
        else:
            _step(path, part)
    say(f"Done.  Open {path}/by-ward/report.html or {path}/synthetic/report.html in a browser,")
    say("or in Python:")
    say(f"  import dpublish; dpublish.load('{path}/by-month').count('ward = Surgery')")


_SCHEMA = ("--schema", "visits.toml")
_PAID = (*_SCHEMA, "--data", "visits.csv", "--ledger", "books.db", "--dataset", "hospital")
_MEASURES = "count, mean(cost), median(stay)"
_STATISTICS = ("--method", "statistics", "--measures", _MEASURES, "--by", "ward")
_MONTHS = ("--method", "histogram", "--columns", "admitted,ward")
_ROWS = ("--method", "synth", "--columns", "age,sex,ward,stay,insurance,cost,readmitted")
_KEPT = ("--contribution", "4")

_STORY: tuple[str | tuple[str, ...], ...] = (
    ("schema", "check", "visits.toml"),
    "The ledger keeps account of epsilon: 3 in all for this table, and not a bit more.",
    ("ledger", "create", "books.db"),
    ("ledger", "add", "books.db", "hospital", "--cap", "3"),
    "A plan reads no row.  At most 4 visits of each patient are kept, and noise hides all 4.",
    ("plan", *_MONTHS, *_KEPT, *_SCHEMA, "--epsilon", "1"),
    "Statistics by ward, each with a confidence interval.",
    ("release", *_STATISTICS, *_KEPT, *_PAID, "--epsilon", "1", "-o", "by-ward"),
    ("statistics", "by-ward", "--no-totals"),
    "Visits by month and ward; whoever has the release may count in it, for free.",
    ("release", *_MONTHS, *_KEPT, *_PAID, "--epsilon", "1", "-o", "by-month"),
    ("count", "by-month", "admitted in 2024-01..2024-03 and ward = Cardiology"),
    "Synthetic visits for any use; the release itself says how far they are from the truth.",
    ("release", *_ROWS, *_KEPT, *_PAID, "--epsilon", "1", "-o", "synthetic"),
    "Rows as many as you like, here of one ward only.",
    ("rows", "synthetic", "-n", "1000", "--where", "ward = Surgery", "-o", "surgery.csv"),
    "The ledger is debited before any row is read, and no one can change it unnoticed.",
    ("ledger", "show", "books.db"),
    ("ledger", "verify", "books.db", "--release", "by-ward", "--release", "by-month"),
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


def _write_inputs(path: Path, patients: int) -> None:
    from pyarrow import csv

    from dpublish.datasets.hospital import SCHEMA, hospital

    csv.write_csv(hospital(patients), path / "visits.csv")
    (path / "visits.toml").write_text(SCHEMA, "utf-8")


def _step(path: Path, words: tuple[str, ...]) -> None:
    shown = " ".join(f"'{word}'" if " " in word else word for word in words)
    emit(click.style(f"$ dpublish {shown}", bold=True) + "\n")
    # Each step is the real command in a process of its own, as a user would run it.
    done = subprocess.run([sys.executable, "-m", "dpublish", *words], cwd=path, check=False)
    if done.returncode:
        raise InputError(f"the step failed with exit code {done.returncode}")
    say()
