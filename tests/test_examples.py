"""README, docs and examples run as written."""

import importlib.util
import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from pyarrow import csv

from dpublish.datasets.census import census

ROOT = Path(__file__).resolve().parent.parent
SPEC = importlib.util.spec_from_file_location("page_examples", ROOT / "tools" / "page_examples.py")
page_examples = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(page_examples)
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
    """Its commands print what it says, in an empty folder, and then its Python runs there."""
    assert page_examples.differences(ROOT / "README.md", tmp_path) == []
    assert (tmp_path / "months" / "report.html").is_file()
    (program,) = blocks("README.md", "python")
    out = run([sys.executable, "-c", program], tmp_path)
    assert "confidence interval" in out


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
