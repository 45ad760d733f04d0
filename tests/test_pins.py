"""Every pin carries hashes, for all platforms, and nothing that is installed goes unpinned."""

import importlib.util
import json
import subprocess
import sys
import tomllib
from importlib.metadata import PackageNotFoundError, requires
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

ROOT = Path(__file__).resolve().parent.parent
RUNTIME, DEVELOPMENT = ROOT / "requirements.txt", ROOT / "requirements-dev.txt"
S3_SERVER, SITE = ROOT / "requirements-s3.txt", ROOT / "requirements-docs.txt"
PACKAGING = ROOT / "requirements-release.txt"
PLATFORMS = [
    {"sys_platform": system, "platform_system": name, "os_name": os, "platform_machine": machine}
    for system, name, os, machine in (
        ("linux", "Linux", "posix", "x86_64"),
        ("linux", "Linux", "posix", "aarch64"),
        ("darwin", "Darwin", "posix", "arm64"),
        ("win32", "Windows", "nt", "AMD64"),
    )
]
ENVIRONMENTS = [
    platform
    | {
        "python_version": f"3.{minor}",
        "python_full_version": f"3.{minor}.0",
        "implementation_name": "cpython",
        "platform_python_implementation": "CPython",
        "extra": "",
    }
    for platform in PLATFORMS
    for minor in (11, 12, 13, 14)
]


@pytest.fixture(scope="module")
def tool():
    spec = importlib.util.spec_from_file_location("pin_hashes", ROOT / "tools" / "pin_hashes.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules["pin_hashes"] = module
    spec.loader.exec_module(module)
    yield module
    del sys.modules["pin_hashes"]


@pytest.mark.parametrize(
    "file", [RUNTIME, DEVELOPMENT, SITE, S3_SERVER, PACKAGING], ids=lambda file: file.name
)
def test_every_pin_has_hashes_and_one_version(tool, file):
    pins = list(tool.read_pins(file.read_text()))
    assert len(pins) > 20
    for pin in pins:
        assert pin.hashes, pin.requirement
        assert all(len(each) == 64 and int(each, 16) for each in pin.hashes)
        assert [each.operator for each in pin.requirement.specifier] == ["=="]
    assert tool.write_pins(file.read_text(), pins) == file.read_text()


def needed(name, environment):
    try:
        listed = requires(name) or []
    except PackageNotFoundError:  # pinned for another platform
        return set()
    return {
        canonicalize_name(wanted.name)
        for wanted in map(Requirement, listed)
        if wanted.marker is None or wanted.marker.evaluate(environment)
    }


def test_whatever_a_pin_needs_on_any_platform_is_pinned_too(tool):
    # With hashes pip refuses what is not pinned, and would stop there on that platform.
    runtime = list(tool.read_pins(RUNTIME.read_text()))
    everything = [*runtime, *tool.read_pins(DEVELOPMENT.read_text())]
    site = [*runtime, *tool.read_pins(SITE.read_text())]
    for pins in (runtime, everything, site):
        for environment in ENVIRONMENTS:
            there = {
                pin.name
                for pin in pins
                if pin.requirement.marker is None or pin.requirement.marker.evaluate(environment)
            }
            missing = {name: needed(name, environment) - there for name in there}
            assert not {name: what for name, what in missing.items() if what}, environment


def test_files_that_share_an_environment_agree(tool):
    versions = {}
    for file in (RUNTIME, DEVELOPMENT, SITE):
        for pin in tool.read_pins(file.read_text()):
            assert versions.setdefault(pin.name, pin.version) == pin.version, pin.name
    assert "mkdocs" in versions


def test_charts_come_with_a_plain_installation(tool):
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    plain = {Requirement(each).name for each in project["dependencies"]}
    assert "matplotlib" in plain
    assert project["optional-dependencies"]["plots"] == []
    pinned = {pin.name for pin in tool.read_pins(RUNTIME.read_text())}
    assert {canonicalize_name(name) for name in plain} <= pinned


def test_hashes_of_one_version_are_found_on_an_index_page(tool):
    page = "".join(
        f'<a href="../files/{file}#sha256={digit * 64}">{file}</a>'
        for digit, file in (
            ("1", "foo_bar-1.2-py3-none-any.whl"),
            ("2", "foo_bar-1.2.tar.gz"),
            ("3", "foo_bar-1.2.1.tar.gz"),
            ("4", "foo_bar-1.2rc1-py3-none-any.whl"),
            ("5", "foo_bar-1.2.dev3.tar.gz"),
        )
    )
    page += '<a href="foo_bar-1.2-cp311-cp311-linux_x86_64.whl">without a hash</a>'
    assert tool.hashes_listed(page, Version("1.2")) == ("1" * 64, "2" * 64)
    assert tool.hashes_listed(page, Version("9")) == ()


def test_the_bill_of_materials_lists_every_pin(tool):
    done = subprocess.run(
        [sys.executable, "tools/sbom.py", "requirements.txt"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    bill = json.loads(done.stdout)
    pins = list(tool.read_pins(RUNTIME.read_text()))
    assert (bill["bomFormat"], bill["specVersion"]) == ("CycloneDX", "1.6")
    assert {part["purl"] for part in bill["components"]} == {
        f"pkg:pypi/{pin.name}@{pin.version}" for pin in pins
    }
    assert bill["dependencies"][0]["dependsOn"] == [part["bom-ref"] for part in bill["components"]]


def audited(tmp_path, said, code=0):
    auditor = tmp_path / "pip-audit"
    auditor.write_text(f"#!{sys.executable}\nimport sys\nprint({said!r})\nsys.exit({code})\n")
    auditor.chmod(0o755)
    return subprocess.run(
        [sys.executable, "tools/audit_pins.py", str(auditor), "requirements.txt"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )


def test_an_audit_that_could_not_be_made_does_not_pass(tmp_path):
    flaw = {"id": "X-1", "fix_versions": ["2"]}
    clean = {"dependencies": [{"name": "a", "version": "1", "vulns": []}]}
    flawed = {"dependencies": [{"name": "a", "version": "1", "vulns": [flaw]}]}
    skipped = {"dependencies": [{"name": "a", "skip_reason": "not found"}]}
    assert audited(tmp_path, json.dumps(clean)).returncode == 0
    done = audited(tmp_path, json.dumps(flawed), code=1)
    assert (done.returncode, "X-1" in done.stdout) == (1, True)
    assert audited(tmp_path, json.dumps(skipped)).returncode == 2
    failed = audited(tmp_path, "", code=1)
    assert failed.returncode == 2
    assert "not audited" in failed.stderr
