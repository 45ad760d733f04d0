"""README, docs and examples run as written."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from pyarrow import csv

from dpublish.datasets.census import census

ROOT = Path(__file__).resolve().parent.parent
EXAMPLES = sorted((ROOT / "examples").glob("*.py"))


def blocks(file, language):
    return re.findall(rf"```{language}\n(.*?)```", (ROOT / file).read_text(), flags=re.DOTALL)


def run(command, folder):
    environment = os.environ | {"PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    done = subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_the_readme_runs_as_written(tmp_path):
    csv.write_csv(census(500), tmp_path / "people.csv")
    shell, python = blocks("README.md", "sh"), blocks("README.md", "python")
    assert len(shell) >= 2
    assert len(python) == 1
    out = run(["bash", "-euo", "pipefail", "-c", "\n".join(shell)], tmp_path)
    assert "the chain is whole" in out
    assert (tmp_path / "ages" / "report.html").is_file()
    out = run([sys.executable, "-c", python[0]], tmp_path)
    assert "confidence" in out
    assert "'age'" in out


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.stem)
def test_an_example_runs_and_prints_something_worth_looking_at(example, tmp_path):
    assert len(run([sys.executable, str(example)], tmp_path).splitlines()) >= 5


def test_there_are_nine_examples():
    assert len(EXAMPLES) == 9


def test_every_link_between_the_docs_leads_somewhere():
    pages = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
    assert len(pages) > 10
    for page in pages:
        for target in re.findall(r"\]\(([^)#:]+)\)", page.read_text()):
            assert (page.parent / target).exists(), f"{page.name} links to {target}"
