"""A stream's folder grows, and still whatever is changed or added in it is noticed and named."""

import os
from datetime import datetime

import pytest

from dpublish.core.folder.folder import differences, is_signed, load, sign_folder
from dpublish.core.folder.signing import SigningKey, create_key
from dpublish.errors import CorruptRelease
from dpublish.publishing.streams.operator import StreamOperator
from stream_world import METHOD, SCHEMA, arguments, make_ledger, rows

COUNTS = "data/time=t1/counts.parquet"


@pytest.fixture
def workspace(tmp_path):
    make_ledger(tmp_path)
    path = tmp_path / "rides.stream"
    with StreamOperator.start(path, METHOD, SCHEMA, **arguments(tmp_path)) as operator:
        operator.next(rows(1), "t1")
        operator.write_pages()
    return tmp_path


def grow(workspace, number, **options):
    with StreamOperator.open(workspace / "rides.stream") as operator:
        operator.next(rows(number), f"t{number}")
        operator.write_pages(**options)


def test_a_growing_folder_is_always_as_its_manifest_says(workspace):
    assert not differences(workspace / "out")
    grow(workspace, 2)
    assert not differences(workspace / "out")
    with StreamOperator.open(workspace / "rides.stream") as operator:
        operator.next(rows(3), "t3")  # the manifest lags behind until pages are written
    assert load(workspace / "out").times == ("t1", "t2", "t3")
    assert not differences(workspace / "out")


@pytest.mark.parametrize("name", ["report.html", "datapackage.json", "stream.json", "steps.jsonl"])
def test_a_replaced_file_is_named_and_the_folder_is_refused(workspace, name):
    path = workspace / "out" / name
    path.write_bytes(path.read_bytes().replace(b"e", b"a", 1))
    with pytest.raises(CorruptRelease, match=f"changed or cut: {name}"):
        load(workspace / "out")


def test_counts_that_were_replaced_or_are_missing_are_named(workspace):
    grow(workspace, 2)
    (workspace / "out" / COUNTS).write_bytes(b"other")
    (workspace / "out" / COUNTS.replace("t1", "t2")).unlink()
    found = differences(workspace / "out")
    assert (found.changed, found.missing) == ((COUNTS,), (COUNTS.replace("t1", "t2"),))


@pytest.mark.parametrize("name", ["README.html", "release.json", "folder"])
def test_what_was_added_is_named_and_the_folder_is_refused(workspace, name):
    path = workspace / "out" / name
    path.mkdir() if name == "folder" else path.write_text("read me instead")
    with pytest.raises(CorruptRelease, match=f"added .*: {name}"):
        load(workspace / "out")


def test_added_counts_are_named(workspace):
    (workspace / "out" / "data" / "time=t9").mkdir()
    (workspace / "out" / "data" / "time=t9" / "counts.parquet").write_text("more")
    assert differences(workspace / "out").added == ("data/time=t9/counts.parquet",)


def test_a_cut_list_of_steps_is_refused(workspace):
    grow(workspace, 2)
    steps = workspace / "out" / "steps.jsonl"
    steps.write_bytes(steps.read_bytes().splitlines(keepends=True)[0])
    with pytest.raises(CorruptRelease, match=r"changed or cut: steps\.jsonl"):
        load(workspace / "out")


def test_a_folder_without_a_manifest_is_refused(workspace):
    (workspace / "out" / "manifest.json").unlink()
    with pytest.raises(CorruptRelease, match=r"manifest\.json is missing"):
        load(workspace / "out")


@pytest.mark.parametrize("moment", range(1, 5))
def test_interrupted_between_two_pages_the_folder_still_opens(workspace, monkeypatch, moment):
    with StreamOperator.open(workspace / "rides.stream") as operator:
        operator.next(rows(2), "t2")
        calls = []
        original = os.replace

        def interrupted(*paths):
            calls.append(paths)
            if len(calls) == moment:
                raise KeyboardInterrupt
            original(*paths)

        with monkeypatch.context() as patched:
            patched.setattr(os, "replace", interrupted)
            with pytest.raises(KeyboardInterrupt):
                operator.write_pages()
        assert load(workspace / "out").times == ("t1", "t2")
        page = workspace / "out" / "report.html"
        content = page.read_bytes()
        page.write_bytes(content + b"forged")  # neither the old page nor the new one
        with pytest.raises(CorruptRelease, match=r"report\.html"):
            load(workspace / "out")
        page.write_bytes(content)
        operator.write_pages()
    assert not differences(workspace / "out")
    assert "replaced" not in (workspace / "out" / "manifest.json").read_text()


def test_the_owner_repairs_a_page_by_going_on(workspace):
    (workspace / "out" / "report.html").write_text("forged")
    (workspace / "out" / "datapackage.json").unlink()
    grow(workspace, 2)
    assert not differences(workspace / "out")


def test_a_stream_is_signed_at_every_step(workspace):
    create_key(workspace / "owner.key")
    key = SigningKey.read(workspace / "owner.key")
    sign_folder(workspace / "out", key)
    assert load(workspace / "out", key=workspace / "owner.pub").times == ("t1",)
    grow(workspace, 2, sign=key)
    assert load(workspace / "out", key=workspace / "owner.pub").times == ("t1", "t2")
    with StreamOperator.open(workspace / "rides.stream") as operator:
        operator.write_pages()  # nothing has changed, so the signature stands
        assert load(workspace / "out", key=workspace / "owner.pub").times == ("t1", "t2")
        operator.next(rows(3), "t3")
        with pytest.raises(CorruptRelease, match="not signed yet"):
            load(workspace / "out", key=workspace / "owner.pub")
    grow(workspace, 4)
    assert not is_signed(workspace / "out")  # rather than a signature that no longer fits
    with pytest.raises(CorruptRelease, match="not signed"):
        load(workspace / "out", key=workspace / "owner.pub")


def test_files_show_the_time_of_the_grant_and_the_number_of_steps(workspace):
    grow(workspace, 2)
    stream = load(workspace / "out")
    times = {p.stat().st_mtime for p in [workspace / "out", *(workspace / "out").rglob("*")]}
    begun = datetime.fromisoformat(stream.receipt.created).timestamp()
    assert times <= {begun, begun + 1, begun + 2}
    assert (workspace / "out" / "manifest.json").stat().st_mtime == begun + len(stream.records)
