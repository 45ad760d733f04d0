"""The release folder is whole or absent, opens only unchanged, and others can open it."""

import json
import os

import frictionless
import pytest

from dpublish.data.sources import open_table
from dpublish.errors import CorruptRelease, InputError, InvalidParameter
from dpublish.privacy.budget import Budget
from dpublish.randomness import secure
from dpublish.recipes import make_recipe
from dpublish.release import folder
from dpublish.release.folder import folder_hash, load
from recipe_examples import SCHEMA, arrow_table


@pytest.fixture
def release():
    recipe = make_recipe("histogram", {"columns": ("age", "sex")})
    return recipe.release(open_table(arrow_table(), SCHEMA), budget=Budget(1), rng=secure())


def test_what_was_saved_is_what_is_loaded(release, tmp_path):
    path = release.save(tmp_path / "out", extras={"report.html": b"<p>"})
    assert load(path) == release
    assert (path / "report.html").read_bytes() == b"<p>"
    assert not list(tmp_path.glob(".*"))


def test_a_folder_is_never_written_over(release, tmp_path):
    release.save(tmp_path / "out")
    before = folder_hash(tmp_path / "out")
    with pytest.raises(InvalidParameter, match="exists already"):
        release.save(tmp_path / "out")
    (tmp_path / "link").symlink_to(tmp_path / "nowhere")
    with pytest.raises(InvalidParameter, match="exists already"):
        release.save(tmp_path / "link")
    assert folder_hash(tmp_path / "out") == before


def test_a_place_that_is_not_there_is_an_input_error(release, tmp_path):
    with pytest.raises(InputError, match="not a folder"):
        release.save(tmp_path / "no" / "such" / "place")


@pytest.mark.parametrize("failing", ["_write", "rename"])
def test_a_full_disk_leaves_nothing_behind_and_says_so(release, tmp_path, monkeypatch, failing):
    def full(*_):
        raise OSError(28, "No space left on device")

    if failing == "rename":
        monkeypatch.setattr(os, "rename", full)
    else:
        original = folder._write_json
        monkeypatch.setattr(
            folder,
            "_write_json",
            lambda p, v: full() if p.name == "release.json" else original(p, v),
        )
    with pytest.raises(InputError, match="No space left on device"):
        release.save(tmp_path / "out")
    assert list(tmp_path.iterdir()) == []


def test_an_interrupt_leaves_nothing_behind(release, tmp_path, monkeypatch):
    def interrupted(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "rename", interrupted)
    with pytest.raises(KeyboardInterrupt):
        release.save(tmp_path / "out")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("kind", "painting"),
        ("format", 2),
        ("facts", {}),
        ("facts", None),
        ("files", {"../../etc/passwd": {"sha256": "0"}}),
        ("files", {"data/other.parquet": {"sha256": "0"}}),
        ("files", {}),
        ("receipt", {}),
        ("schema", {"columns": []}),
    ],
)
def test_a_head_that_was_changed_does_not_load(release, tmp_path, key, value):
    path = release.save(tmp_path / "out")
    head = json.loads((path / "release.json").read_text())
    head[key] = value
    (path / "release.json").write_text(json.dumps(head))
    with pytest.raises(CorruptRelease):
        load(path)


def test_every_byte_of_the_data_counts(release, tmp_path):
    path = release.save(tmp_path / "out")
    file = path / "data" / "counts.parquet"
    content = bytearray(file.read_bytes())
    for position in range(0, len(content), max(1, len(content) // 25)):
        changed = content.copy()
        changed[position] ^= 1
        file.write_bytes(changed)
        with pytest.raises(CorruptRelease, match="was changed or cut"):
            load(path)


def test_the_head_tells_the_whole_promise(release, tmp_path):
    head = json.loads((release.save(tmp_path / "out") / "release.json").read_text())
    assert head["receipt"]["epsilon"] == "1"
    assert head["receipt"]["neighbours"] == {"name": "add-remove-record"}
    assert head["receipt"]["settings"] == {"columns": ["age", "sex"], "threshold": None}
    assert head["expected_error"]["one_cell_95"] == 3
    assert [column["name"] for column in head["schema"]["columns"]] == ["age", "sex"]


def test_the_data_package_is_one(release, tmp_path):
    path = release.save(tmp_path / "out")
    descriptor = json.loads((path / "datapackage.json").read_text())
    assert list(frictionless.Package.metadata_validate(descriptor)) == []
    broken = descriptor | {"resources": [{"name": 7}]}
    assert list(frictionless.Package.metadata_validate(broken)) != []
    resource = descriptor["resources"][0]
    assert (path / resource["path"]).stat().st_size == resource["bytes"]
