"""Whatever is changed, removed or added in a release folder is noticed and named."""

import json
import os
from pathlib import Path

import pytest

from dpublish.core.folder.folder import differences, load
from dpublish.core.folder.manifest import beside, require_outside
from dpublish.core.registry import make_method
from dpublish.data.sources import open_table
from dpublish.errors import CorruptRelease, InvalidParameter
from dpublish.privacy.budget import Budget
from dpublish.randomness import secure
from method_examples import SCHEMA, arrow_table


@pytest.fixture
def folder(tmp_path):
    method = make_method("histogram", {"columns": ("age", "sex")})
    release = method.release(
        open_table(arrow_table(), SCHEMA), budget=Budget.seeded(1), rng=secure()
    )
    return release.save(tmp_path / "out", extras={"report.html": b"<p>What people read</p>"})


def test_every_file_is_listed_with_its_digest(folder):
    listed = json.loads((folder / "release.json").read_text())["files"]
    found = {p.relative_to(folder).as_posix() for p in folder.rglob("*") if p.is_file()}
    assert listed.keys() == found - {"release.json"}
    assert not differences(folder)


@pytest.mark.parametrize("name", ["report.html", "datapackage.json", "data/counts.parquet"])
def test_a_replaced_file_is_named(folder, name):
    content = (folder / name).read_bytes()
    (folder / name).write_bytes(content[:-1] + bytes([content[-1] ^ 1]))
    assert differences(folder).changed == (name,)
    with pytest.raises(CorruptRelease, match=f"changed or cut: {name}"):
        load(folder)


@pytest.mark.parametrize("name", ["report.html", "datapackage.json", "data/counts.parquet"])
def test_a_missing_file_is_named(folder, name):
    (folder / name).unlink()
    assert differences(folder).missing == (name,)
    with pytest.raises(CorruptRelease, match=f"missing: {name}"):
        load(folder)


@pytest.mark.parametrize("name", ["README.html", "data/more.parquet", "new/page.html"])
def test_an_added_file_is_named(folder, name):
    (folder / name).parent.mkdir(exist_ok=True)
    (folder / name).write_text("read me instead")
    assert differences(folder).added == (name,)
    with pytest.raises(CorruptRelease, match=f"added .*: {name}; .* move others out"):
        load(folder)


def test_what_systems_leave_about_does_not_matter_but_is_named(folder):
    (folder / ".DS_Store").write_bytes(b"droppings")
    assert load(folder)
    assert differences(folder).added == (".DS_Store",)


def test_an_added_link_or_pipe_is_refused(folder):
    os.mkfifo(folder / "pipe")
    with pytest.raises(CorruptRelease, match="no regular file"):
        load(folder)


@pytest.mark.parametrize(
    "entry",
    [
        None,
        {},
        {"sha256": "0" * 64},
        {"sha256": "0" * 63, "bytes": 1},
        {"sha256": "0" * 64, "bytes": -1},
        {"sha256": "0" * 64, "bytes": True},
        {"sha256": ["0"], "bytes": 10**30},
    ],
    ids=str,
)
def test_an_entry_that_is_none_is_refused(folder, entry):
    head = json.loads((folder / "release.json").read_text())
    head["files"]["report.html"] = entry
    (folder / "release.json").write_text(json.dumps(head))
    with pytest.raises(CorruptRelease):
        load(folder)


def test_files_beside_a_folder_are_named_by_it(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "ages").mkdir()
    for name in ("ages", "ages/", "./ages", Path("ages")):
        assert beside(name, "report.html") == Path("ages-report.html")
    assert beside(tmp_path / "ages", "report.html") == tmp_path / "ages-report.html"
    (tmp_path / "ages" / "data").mkdir()
    monkeypatch.chdir(tmp_path / "ages")
    for name in (".", "", "data/..", "../ages/."):
        assert beside(name, "report.html").resolve() == tmp_path / "ages-report.html"


def test_nothing_is_written_into_a_release(tmp_path):
    (tmp_path / "ages" / "data").mkdir(parents=True)
    (tmp_path / "link").symlink_to(tmp_path / "ages")
    for name in ("ages/x.html", "ages/data/x", "link/x.html", "ages/../ages/x"):
        with pytest.raises(InvalidParameter, match="inside the release folder"):
            require_outside(tmp_path / name, tmp_path / "ages")
    require_outside(tmp_path / "ages-report.html", tmp_path / "ages")


@pytest.mark.parametrize("name", ["release.json", "data/counts.parquet", "report.html"])
@pytest.mark.parametrize("kind", ["pipe", "device", "folder"])
def test_nothing_but_regular_files_is_opened_and_nothing_hangs(folder, name, kind):
    path = folder / name
    path.unlink()
    if kind == "pipe":
        os.mkfifo(path)
    elif kind == "device":
        path.symlink_to("/dev/zero")
    else:
        path.mkdir()
    with pytest.raises(CorruptRelease):
        load(folder)
