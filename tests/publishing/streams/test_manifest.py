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
def place(tmp_path):
    make_ledger(tmp_path)
    path = tmp_path / "rides.stream"
    with StreamOperator.start(path, METHOD, SCHEMA, **arguments(tmp_path)) as operator:
        operator.next(rows(1), "t1")
        operator.write_pages()
    return tmp_path


def grow(place, number, **options):
    with StreamOperator.open(place / "rides.stream") as operator:
        operator.next(rows(number), f"t{number}")
        operator.write_pages(**options)


def test_a_growing_folder_is_always_as_its_manifest_says(place):
    assert not differences(place / "out")
    grow(place, 2)
    assert not differences(place / "out")
    with StreamOperator.open(place / "rides.stream") as operator:
        operator.next(rows(3), "t3")  # the manifest lags behind until pages are written
    assert load(place / "out").times == ("t1", "t2", "t3")
    assert not differences(place / "out")


@pytest.mark.parametrize("name", ["report.html", "datapackage.json", "stream.json", "steps.jsonl"])
def test_a_replaced_file_is_named_and_the_folder_is_refused(place, name):
    path = place / "out" / name
    path.write_bytes(path.read_bytes().replace(b"e", b"a", 1))
    with pytest.raises(CorruptRelease, match=f"changed or cut: {name}"):
        load(place / "out")


def test_counts_that_were_replaced_or_are_missing_are_named(place):
    grow(place, 2)
    (place / "out" / COUNTS).write_bytes(b"other")
    (place / "out" / COUNTS.replace("t1", "t2")).unlink()
    found = differences(place / "out")
    assert (found.changed, found.missing) == ((COUNTS,), (COUNTS.replace("t1", "t2"),))


@pytest.mark.parametrize("name", ["README.html", "release.json", "folder"])
def test_what_was_added_is_named_and_the_folder_is_refused(place, name):
    path = place / "out" / name
    path.mkdir() if name == "folder" else path.write_text("read me instead")
    with pytest.raises(CorruptRelease, match=f"added .*: {name}"):
        load(place / "out")


def test_added_counts_are_named(place):
    (place / "out" / "data" / "time=t9").mkdir()
    (place / "out" / "data" / "time=t9" / "counts.parquet").write_text("more")
    assert differences(place / "out").added == ("data/time=t9/counts.parquet",)


def test_a_cut_list_of_steps_is_refused(place):
    grow(place, 2)
    steps = place / "out" / "steps.jsonl"
    steps.write_bytes(steps.read_bytes().splitlines(keepends=True)[0])
    with pytest.raises(CorruptRelease, match=r"changed or cut: steps\.jsonl"):
        load(place / "out")


def test_a_folder_without_a_manifest_is_refused(place):
    (place / "out" / "manifest.json").unlink()
    with pytest.raises(CorruptRelease, match=r"manifest\.json is missing"):
        load(place / "out")


@pytest.mark.parametrize("moment", range(1, 5))
def test_interrupted_between_two_pages_the_folder_still_opens(place, monkeypatch, moment):
    with StreamOperator.open(place / "rides.stream") as operator:
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
        assert load(place / "out").times == ("t1", "t2")
        page = place / "out" / "report.html"
        content = page.read_bytes()
        page.write_bytes(content + b"forged")  # neither the old page nor the new one
        with pytest.raises(CorruptRelease, match=r"report\.html"):
            load(place / "out")
        page.write_bytes(content)
        operator.write_pages()
    assert not differences(place / "out")
    assert "replaced" not in (place / "out" / "manifest.json").read_text()


def test_the_owner_repairs_a_page_by_going_on(place):
    (place / "out" / "report.html").write_text("forged")
    (place / "out" / "datapackage.json").unlink()
    grow(place, 2)
    assert not differences(place / "out")


def test_a_stream_is_signed_at_every_step(place):
    create_key(place / "owner.key")
    key = SigningKey.read(place / "owner.key")
    sign_folder(place / "out", key)
    assert load(place / "out", key=place / "owner.pub").times == ("t1",)
    grow(place, 2, sign=key)
    assert load(place / "out", key=place / "owner.pub").times == ("t1", "t2")
    with StreamOperator.open(place / "rides.stream") as operator:
        operator.write_pages()  # nothing has changed, so the signature stands
        assert load(place / "out", key=place / "owner.pub").times == ("t1", "t2")
        operator.next(rows(3), "t3")
        with pytest.raises(CorruptRelease, match="not signed yet"):
            load(place / "out", key=place / "owner.pub")
    grow(place, 4)
    assert not is_signed(place / "out")  # rather than a signature that no longer fits
    with pytest.raises(CorruptRelease, match="not signed"):
        load(place / "out", key=place / "owner.pub")


def test_files_show_the_time_of_the_grant_and_the_number_of_steps(place):
    grow(place, 2)
    stream = load(place / "out")
    times = {p.stat().st_mtime for p in [place / "out", *(place / "out").rglob("*")]}
    begun = datetime.fromisoformat(stream.receipt.created).timestamp()
    assert times <= {begun, begun + 1, begun + 2}
    assert (place / "out" / "manifest.json").stat().st_mtime == begun + len(stream.records)
