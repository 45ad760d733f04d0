"""README, docs and examples run as written."""

import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from pyarrow import csv

from dpublish.datasets.census import SCHEMA as CENSUS
from dpublish.datasets.census import census
from dpublish.datasets.hospital import SCHEMA as HOSPITAL
from dpublish.datasets.hospital import hospital

ROOT = Path(__file__).resolve().parent.parent
EXAMPLES = sorted((ROOT / "examples").glob("*.py"))


def blocks(file, language):
    return re.findall(rf"```{language}\n(.*?)```", (ROOT / file).read_text(), flags=re.DOTALL)


def run(command, folder, **variables):
    environment = os.environ | {"PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    environment |= variables
    done = subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_the_readme_runs_as_written(tmp_path):
    csv.write_csv(hospital(500), tmp_path / "visits.csv")
    shell, python = blocks("README.md", "sh"), blocks("README.md", "python")
    assert len(shell) >= 2
    assert len(python) == 1
    out = run(["bash", "-euo", "pipefail", "-c", "\n".join(shell)], tmp_path)
    assert "the chain is whole" in out
    assert (tmp_path / "months" / "report.html").is_file()
    out = run([sys.executable, "-c", python[0]], tmp_path)
    assert "confidence" in out
    assert "'ward'" in out


def test_the_page_of_synth_runs_as_written(tmp_path):
    """Every command of the page, with the statements that it adds to the schema."""
    csv.write_csv(census(1_500), tmp_path / "people.csv")
    csv.write_csv(hospital(300), tmp_path / "visits.csv")
    (tmp_path / "people.toml").write_text(CENSUS, "utf-8")
    (tmp_path / "visits.toml").write_text(HOSPITAL, "utf-8")
    (statements,) = blocks("docs/methods/synth.md", "toml")
    (tmp_path / "known.toml").write_text(f"{CENSUS}\n{statements}", "utf-8")
    shown = "\n".join(blocks("docs/methods/synth.md", "text"))
    commands = re.findall(r"^\$ ((?:.*\\\n)*.*)$", shown, flags=re.MULTILINE)
    assert len(commands) >= 10
    ledger = ["create books.db", "add books.db census --cap 5", "add books.db hospital --cap 1"]
    script = [*(f"dpublish ledger {words}" for words in ledger), *commands]
    out = run(["bash", "-euo", "pipefail", "-c", "\n".join(script)], tmp_path)
    assert "known total: 10,107 records" in out
    assert out.count("from the truth (95 %)") >= 4


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.stem)
def test_an_example_runs_and_prints_something_worth_looking_at(example, tmp_path):
    assert len(run([sys.executable, str(example)], tmp_path).splitlines()) >= 5


def test_there_are_eleven_examples():
    assert len(EXAMPLES) == 11


def test_the_example_method_works_as_an_installed_package(tmp_path):
    """What pip would write: the module, and the entry point of the guide beside it."""
    (project,) = blocks("docs/how-to/write-a-method.md", "toml")
    settings = tomllib.loads(project)
    site, name = tmp_path / "site", settings["project"]["name"].replace("-", "_")
    info = site / f"{name}-{settings['project']['version']}.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 0.1\n")
    points = settings["project"]["entry-points"]["dpublish.methods"]
    lines = [f"{method} = {value}" for method, value in points.items()]
    (info / "entry_points.txt").write_text("\n".join(["[dpublish.methods]", *lines, ""]))
    shutil.copy(ROOT / "examples" / "noisy_mean.py", site)
    csv.write_csv(census(500), tmp_path / "people.csv")
    (tmp_path / "people.toml").write_text('[columns.age]\nkind = "integer"\nbounds = [16, 95]\n')
    words = "--method noisy-mean --column age --schema people.toml --epsilon 1"
    script = f"""
        dpublish methods noisy-mean
        dpublish plan {words}
        dpublish ledger create books.db
        dpublish ledger add books.db people --cap 1
        dpublish release {words} --data people.csv --ledger books.db --dataset people -o mean
        python -c 'import dpublish; print(dpublish.load("mean").mean)'
    """
    path = os.pathsep.join([str(site), *filter(None, [os.environ.get("PYTHONPATH")])])
    out = run(["bash", "-euo", "pipefail", "-c", script], tmp_path, PYTHONPATH=path)
    assert "noisy-mean: publishes the mean of one column" in out
    assert 16 <= float(out.split()[-1]) <= 95


def test_every_link_between_the_docs_leads_somewhere():
    pages = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
    assert len(pages) > 10
    for page in pages:
        for target in re.findall(r"\]\(([^)#:]+)\)", page.read_text()):
            assert (page.parent / target).exists(), f"{page.name} links to {target}"
