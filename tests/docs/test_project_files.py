"""Files at the top of the project agree with each other, and with what hosts expect of them."""

import re
import tomllib
from pathlib import Path

import pytest
import yaml

import dpublish
from dpublish.core.catalog import CATALOG, STREAMS

ROOT = Path(__file__).resolve().parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
CITATION = yaml.safe_load((ROOT / "CITATION.cff").read_text("utf-8"))
YAML = [
    ROOT / ".pre-commit-config.yaml",
    *sorted((ROOT / ".github").rglob("*.yml")),
]


def test_the_version_stands_in_one_file_and_citations_repeat_it():
    assert CITATION["version"] == PROJECT["version"]
    assert re.fullmatch(r"\d+\.\d+\.\d+", PROJECT["version"])
    assert not hasattr(dpublish, "__version__"), "the version comes from the metadata alone"
    for path in (ROOT / "src").rglob("*.py"):
        assert f'"{PROJECT["version"]}"' not in path.read_text("utf-8"), path


def test_the_five_documents_are_cited():
    assert len(CITATION["references"]) == 5
    for reference in CITATION["references"]:
        assert reference["title"]
        assert all(each["family-names"] for each in reference["authors"])


def test_every_supported_python_is_named():
    named = {each.rpartition(" ")[2] for each in PROJECT["classifiers"] if "Python :: 3." in each}
    assert named == {"3.11", "3.12", "3.13", "3.14"}
    assert PROJECT["requires-python"] == ">=3.11"
    workflow = yaml.safe_load((ROOT / ".github/workflows/ci.yml").read_text("utf-8"))
    assert set(workflow["jobs"]["test"]["strategy"]["matrix"]["python"]) == named


def test_the_extra_all_holds_every_other_extra():
    extras = PROJECT["optional-dependencies"]
    (everything,) = extras["all"]
    held = set(re.fullmatch(r"dpublish\[(.*)\]", everything)[1].split(","))
    assert held == {name for name, needs in extras.items() if needs and name != "all"}


@pytest.mark.parametrize("path", YAML, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_settings_of_hosts_can_be_read(path):
    read = yaml.safe_load(path.read_text("utf-8"))
    assert isinstance(read, dict)


def test_workflows_run_targets_that_exist():
    targets = set(re.findall(r"^([a-z][\w-]*)(?: [\w-]+)*:", (ROOT / "Makefile").read_text(), re.M))
    targets |= {"lint", "types"}
    named = set()
    for path in (ROOT / ".github" / "workflows").glob("*.yml"):
        for words in re.findall(r"run: make (.*)", path.read_text("utf-8")):
            named |= set(words.split())
    assert {"audit", "mutants", "docs", "package", "test"} <= named <= targets


def test_the_readme_and_the_overview_count_the_methods():
    count = len(CATALOG) + len(STREAMS)
    assert f"any of {count} methods" in (ROOT / "README.md").read_text("utf-8")
    assert f"among {count} methods" in (ROOT / "docs" / "index.md").read_text("utf-8")


def test_the_readme_counts_the_mutants():
    rows = sum(
        path.read_text("utf-8").count("[[mutant]]")
        for path in (ROOT / "tests" / "mutants").glob("*.toml")
    )
    assert f"{rows} small changes" in (ROOT / "README.md").read_text("utf-8")
