"""All methods publish visits from the command line, and hide all visits of any one patient."""

import json
from fractions import Fraction
from types import SimpleNamespace

import pyarrow.compute as pc
import pytest
from pyarrow import csv

from dpublish.cli import main
from dpublish.core.folder.folder import load
from dpublish.datasets.hospital import LEVELS, SCHEMA, hospital
from dpublish.ledger.ledger import Ledger
from dpublish.methods.streams.folder import load_stream
from dpublish.privacy.neighbors import AddRemoveUnit, PersonalRecord
from hospital_methods import CONTRIBUTION, METHODS, PERSONALIZED, STREAM

PATIENTS, EPSILON = 600, Fraction(1, 2)
UNIT = AddRemoveUnit("patient_id")
PAYMENT = ("--ledger", "books.db", "--epsilon", str(EPSILON))
PAID = ("--schema", "visits.toml", *PAYMENT, "--contribution", str(CONTRIBUTION))


def words_of(settings):
    """Write settings as options of the command."""
    for name, value in settings.items():
        yield f"--{name.replace('_', '-')}"
        if value is not True:
            yield ",".join(map(str, value)) if isinstance(value, tuple) else str(value)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A hospital with its schema and its ledger."""
    path = tmp_path_factory.mktemp("hospital")
    (path / "visits.toml").write_text(SCHEMA)
    csv.write_csv(hospital(PATIENTS), path / "visits.csv")
    with Ledger.create(path / "books.db") as ledger:
        ledger.add("hospital", cap=str(EPSILON * len(METHODS)))
        ledger.add("months", cap=str(EPSILON))
        ledger.add("accepted", levels=LEVELS)
    return path


@pytest.fixture
def run(folder, capsys, monkeypatch):
    """Run the command in the hospital's folder; give its exit code and what it printed."""
    monkeypatch.chdir(folder)

    def call(*words):
        with pytest.raises(SystemExit) as left:
            main([str(word) for word in words])
        out, err = capsys.readouterr()
        return SimpleNamespace(code=left.value.code, out=out, err=err)

    return call


@pytest.mark.parametrize("name", METHODS)
def test_a_method_hides_all_visits_of_a_patient(run, folder, name):
    options = (*words_of(METHODS[name]), "--data", "visits.csv", *PAID, "--dataset", "hospital")
    with Ledger(folder / "books.db") as ledger:
        before = ledger.status("hospital").spent
    done = run("release", "--method", name, *options, "-o", name, "--json")
    assert done.code == 0, done.err
    told = json.loads(done.out)["receipt"]
    receipt = load(folder / name).receipt
    assert receipt.neighbors == UNIT
    assert receipt.epsilon == EPSILON == Fraction(told["epsilon"])
    assert receipt.contribution == CONTRIBUTION == told["contribution"]
    assert sum(share for _, share in receipt.shares) == EPSILON
    assert receipt.is_private
    with Ledger(folder / "books.db") as ledger:
        assert ledger.status("hospital").spent - before == EPSILON
    assert run("ledger", "verify", "books.db", "--release", name).code == 0
    page = (folder / name / "report.html").read_text()
    assert "patient_id" in page


def test_all_of_them_together_spend_the_sum_and_no_more_is_left(run, folder):
    """After the tests above: each was paid for once, and no other could be."""
    with Ledger(folder / "books.db") as ledger:
        status = ledger.status("hospital")
    made = [name for name in METHODS if (folder / name).exists()]
    assert status.spent == EPSILON * len(made)
    if len(made) == len(METHODS):
        options = (*words_of(METHODS["histogram"]), "--data", "visits.csv", *PAID)
        again = run(
            "release", "--method", "histogram", *options, "--dataset", "hospital", "-o", "more"
        )
        assert again.code == 2


def test_a_stream_of_months_hides_a_patient_in_all_of_them(run, folder):
    visits = hospital(PATIENTS)
    months = pc.strftime(visits["admitted"], format="%Y-%m")
    (folder / "in").mkdir()
    for month in pc.unique(months).to_pylist():
        csv.write_csv(visits.filter(pc.equal(months, month)), folder / "in" / f"{month}.csv")
    options = (*words_of(STREAM), *PAID, "--dataset", "months", "-o", "months")
    done = run("stream", "start", "months.stream", "--method", "per-snapshot", *options)
    assert done.code == 0, done.err
    done = run("stream", "next", "months.stream", "in")
    assert done.code == 0, done.err
    stream = load_stream(folder / "months")
    assert stream.times[0] == "2023-01"
    assert stream.times[-1] == "2024-12"
    assert len(stream.times) == 24
    assert stream.receipt.neighbors == UNIT
    assert stream.receipt.epsilon == EPSILON
    with Ledger(folder / "books.db") as ledger:
        assert ledger.status("months").left == 0


def test_a_personalized_release_costs_a_patient_what_the_least_of_their_visits_accepts(run, folder):
    options = (*words_of(PERSONALIZED), "--data", "visits.csv", *PAID, "--dataset", "accepted")
    done = run("release", "--method", "minimum", *options, "-o", "accepted")
    assert done.code == 0, done.err
    receipt = load(folder / "accepted").receipt
    assert isinstance(receipt.neighbors, PersonalRecord)
    assert receipt.neighbors.unit == "patient_id"
    assert receipt.contribution == CONTRIBUTION
    assert [level for level, _ in receipt.personal] == [Fraction(level) for level in LEVELS]
    with Ledger(folder / "books.db") as ledger:
        spent = {each.level: each.spent for each in ledger.status("accepted").levels}
    assert spent == dict(receipt.personal)
    assert all(amount <= level * EPSILON / 2 for level, amount in spent.items())
