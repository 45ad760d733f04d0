"""The studio opens what lies in its folders, and nothing else on the computer."""

import os

import pytest

from dpublish.errors import DPublishError, InvalidParameter
from dpublish.studio.desk import Desk, read_sources
from studio_world import write_files

OUTSIDE = [
    "../visits.parquet",
    "/etc/passwd",
    "a/../../books.db",
    ".hidden.csv",
    "link.csv",
    "linked/visits.csv",
    "nul\0.csv",
    "x" * 5_000,
    "",
    ".",
]


@pytest.fixture
def desk(tmp_path):
    folder = tmp_path / "files"
    folder.mkdir()
    write_files(folder)
    (tmp_path / "visits.csv").write_text("age\n1\n")
    (folder / ".hidden.csv").write_text("age\n1\n")
    os.symlink(tmp_path / "visits.csv", folder / "link.csv")
    os.symlink(tmp_path, folder / "linked")
    return Desk(str(folder / "books.db"), tmp_path / "releases", folder)


@pytest.mark.parametrize("name", OUTSIDE)
def test_nothing_outside_is_opened_or_written(desk, name):
    for find in (desk.file, desk.new_file, desk.release):
        with pytest.raises(DPublishError):
            find(name)
    if name != "link.csv":  # which names nothing in the folder of releases
        with pytest.raises(DPublishError):
            desk.new_release(name)


def test_files_are_listed_without_links_and_hidden_ones(desk):
    assert desk.list_tables() == ["visits.parquet"]
    assert desk.list_files((".toml",)) == ["visits.toml"]


def test_what_is_there_is_not_replaced(desk):
    with pytest.raises(InvalidParameter, match="exists already"):
        desk.new_file("visits.toml")
    (desk.releases / "ages").mkdir(parents=True)
    with pytest.raises(InvalidParameter, match="exists already"):
        desk.new_release("ages")
    assert desk.free_name("a b/../c") == "a-b-c-1"


def test_tables_elsewhere_are_named(desk):
    sources = read_sources(
        ["visits=postgresql://db.local/clinic#people", "logs=s3://box/a.parquet"]
    )
    named = Desk(desk.ledger, desk.releases, desk.files, sources)
    assert named.list_tables() == ["visits", "logs", "visits.parquet"]
    assert named.source("visits") == ("postgresql://db.local/clinic", "people")
    assert named.source("logs").table is None


@pytest.mark.parametrize(
    "text", ["visits", "=x", "visits=", "../x=y", "a=postgresql://me:secret@host/db#t"]
)
def test_sources_that_cannot_be_used_are_refused(text):
    with pytest.raises(InvalidParameter) as refusal:
        read_sources([text])
    assert ":secret@" not in str(refusal.value)
