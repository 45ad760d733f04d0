"""`make package` looks at the wheel as a stranger would: what it notices."""

import importlib.util
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def tool():
    path = ROOT / "tools" / "check_package.py"
    before = list(sys.path)
    spec = importlib.util.spec_from_file_location("check_package", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    yield module
    sys.path[:] = before
    sys.modules.pop("page_examples", None)


def wheel_of(folder, name, without=()):
    source = ROOT / "src"
    path = folder / name
    with zipfile.ZipFile(path, "w") as archive:
        for file in (source / "dpublish").rglob("*"):
            if file.is_file() and "__pycache__" not in file.parts and file.name not in without:
                archive.writestr(file.relative_to(source).as_posix(), "")
    return path


def test_a_wheel_with_all_files_passes(tool, tmp_path):
    tool.check_contents(wheel_of(tmp_path, f"dpublish-{tool.version()}-py3-none-any.whl"))


@pytest.mark.parametrize("lacking", ["py.typed", "page.html", "filters.json"])
def test_a_wheel_that_lacks_a_file_is_refused(tool, tmp_path, lacking):
    name = f"dpublish-{tool.version()}-py3-none-any.whl"
    with pytest.raises(tool.Refused, match=lacking):
        tool.check_contents(wheel_of(tmp_path, name, (lacking,)))


def test_a_wheel_of_another_version_is_refused(tool, tmp_path):
    with pytest.raises(tool.Refused, match="not of version"):
        tool.check_contents(wheel_of(tmp_path, "dpublish-9.9.9-py3-none-any.whl"))


def test_the_readme_is_pasted_as_it_stands(tool):
    pasted = tool.script((ROOT / "README.md").read_text("utf-8"))
    assert pasted.startswith("dpublish datasets hospital")
    assert "import dpublish" in pasted
    assert "make " not in pasted
    with pytest.raises(tool.Refused, match="no command"):
        tool.script("```python\nimport dpublish\n```\n")


def test_a_requirement_without_a_lowest_version_is_refused(tool):
    assert tool.lowest(["numpy>=2.0"]) == ["numpy==2.0"]
    with pytest.raises(tool.Refused, match="states no lowest version"):
        tool.lowest(["numpy"])


def test_a_program_that_fails_is_shown(tool, tmp_path):
    with pytest.raises(tool.Refused, match="out of order"):
        tool.run(["bash", "-c", "echo out of order; exit 3"], tmp_path, {"PATH": "/usr/bin:/bin"})
