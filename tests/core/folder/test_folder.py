"""The release folder is whole or absent, opens only unchanged, and others can open it."""

import hashlib
import json
import os
from hashlib import sha256
from pathlib import Path

import frictionless
import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet

from dpublish.core.folder.folder import folder_hash, load
from dpublish.core.registry import make_method
from dpublish.data.sources import open_table
from dpublish.errors import CorruptRelease, InputError, InvalidParameter
from dpublish.privacy.budget import Budget
from dpublish.randomness import secure
from method_examples import SCHEMA, arrow_table


@pytest.fixture
def release():
    method = make_method("histogram", {"columns": ("age", "sex")})
    return method.release(open_table(arrow_table(), SCHEMA), budget=Budget.seeded(1), rng=secure())


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


def test_a_path_that_is_not_there_is_an_input_error(release, tmp_path):
    with pytest.raises(InputError, match="not a folder"):
        release.save(tmp_path / "no" / "such" / "folder")


@pytest.mark.parametrize("failing", ["_write", "rename"])
def test_a_full_disk_leaves_nothing_behind_and_says_so(release, tmp_path, monkeypatch, failing):
    def full(*_):
        raise OSError(28, "No space left on device")

    if failing == "rename":
        monkeypatch.setattr(os, "rename", full)
    else:
        original = Path.write_bytes
        monkeypatch.setattr(
            Path,
            "write_bytes",
            lambda p, content: full() if p.name == "release.json" else original(p, content),
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
        ("format", 3),
        ("metadata", {}),
        ("metadata", None),
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


@pytest.mark.parametrize(("number", "said"), [(1, "dpublish 0.1"), (3, "newer dpublish")])
def test_a_folder_of_another_format_is_refused_with_what_to_do(release, tmp_path, number, said):
    folder = release.save(tmp_path / "out")
    head = json.loads((folder / "release.json").read_text())
    (folder / "release.json").write_text(json.dumps(head | {"format": number}))
    with pytest.raises(CorruptRelease, match=said):
        load(folder)


@pytest.mark.parametrize("text", ['{"format": 2, "kind": []}', "[" * 100_000, '{"format": true}'])
def test_a_head_that_is_nonsense_does_not_load(release, tmp_path, text):
    path = release.save(tmp_path / "out")
    (path / "release.json").write_text(text)
    with pytest.raises(CorruptRelease):
        load(path)


def forge(path, *, metadata=None, **columns):
    """Change a release and its digests, as someone would who knows the format."""
    head = json.loads((path / "release.json").read_text())
    (file,) = [name for name in head["files"] if name.startswith("data/")]
    table = parquet.read_table(path / file)
    for name, values in columns.items():
        table = table.set_column(table.column_names.index(name), name, pa.array(values))
    parquet.write_table(table, path / file)
    content = (path / file).read_bytes()
    entry = {"sha256": hashlib.sha256(content).hexdigest(), "bytes": len(content)}
    head["files"][file] = entry
    head["metadata"] |= metadata or {}
    (path / "release.json").write_text(json.dumps(head))


SIZE = 20


@pytest.mark.parametrize(
    "forgery",
    [
        {"cell_number": [99, *range(1, SIZE)]},
        {"cell_number": [-1, *range(1, SIZE)]},
        {"cell_number": [1, *range(1, SIZE)]},
        {"cell_number": [x + 0.5 for x in range(SIZE)]},
        {"noisy_count": [None] * SIZE},
        {"noisy_count": ["7"] * SIZE},
        {"noisy_count": np.full(SIZE, 2**63, dtype=np.uint64)},
        {"metadata": {"threshold": "5"}},
        {"metadata": {"threshold": 10**400}},
        {"metadata": {"threshold": -5}},
        {"metadata": {"threshold": 2.5}},
        {"metadata": {"noise_rate": "1e-99"}},
        {"metadata": {"axes": []}},
        {"metadata": {"axes": [{"column": "age", "level": None}] * 2}},
    ],
    ids=lambda forgery: str(forgery)[:60],
)
def test_a_forged_histogram_does_not_load(release, tmp_path, forgery):
    path = release.save(tmp_path / "out")
    forge(path, **forgery)
    with pytest.raises(CorruptRelease):
        load(path)


@pytest.mark.parametrize(
    "forgery",
    [
        {"cell_number": [99, 1, 2]},
        {"cell_number": [-1, 1, 2]},
        {"cell_number": [1, 1, 2]},
        {"noisy_count": [1.5, 2.0, 3.0]},
        {"metadata": {"expected": [1]}},
        {"metadata": {"expected": {"each_count_95": "many"}}},
        {"metadata": {"noise_rate": None}},
    ],
    ids=str,
)
def test_a_forged_ranking_does_not_load(tmp_path, forgery):
    method = make_method("topk", {"column": "age", "count": 3, "with_counts": True})
    table = open_table(arrow_table(), SCHEMA)
    path = method.release(table, budget=Budget.seeded(1), rng=secure()).save(tmp_path / "out")
    assert load(path)
    forge(path, **forgery)
    with pytest.raises(CorruptRelease):
        load(path)


def test_a_release_holds_its_own_files(release, tmp_path):
    path = release.save(tmp_path / "out")
    file = path / "data" / "counts.parquet"
    file.rename(tmp_path / "elsewhere.parquet")
    file.symlink_to(tmp_path / "elsewhere.parquet")
    with pytest.raises(CorruptRelease, match="link"):
        load(path)


def test_a_long_name_is_no_obstacle(release, tmp_path):
    assert load(release.save(tmp_path / ("n" * 250))) == release


def test_every_byte_of_the_data_counts(release, tmp_path):
    path = release.save(tmp_path / "out")
    file = path / "data" / "counts.parquet"
    content = bytearray(file.read_bytes())
    for position in range(0, len(content), max(1, len(content) // 25)):
        changed = content.copy()
        changed[position] ^= 1
        file.write_bytes(changed)
        with pytest.raises(CorruptRelease, match="changed or cut"):
            load(path)


def test_the_head_tells_the_whole_guarantee(release, tmp_path):
    head = json.loads((release.save(tmp_path / "out") / "release.json").read_text())
    assert head["receipt"]["epsilon"] == "1"
    assert head["receipt"]["neighbors"] == {"name": "add-remove-record"}
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
    content = (path / resource["path"]).read_bytes()
    assert resource["hash"] == f"sha256:{sha256(content).hexdigest()}"
