"""Folders and patterns: every row is read once."""

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from dpublish.aggregates.counts import Counts
from dpublish.data.schema import Schema, column
from dpublish.data.sources import open_table
from dpublish.errors import UnreadableData

ONE = Schema((column("a", "integer", bounds=[0, 9]),))
COUNTS = Counts(ONE, ((("a", None),),))


def write(*names):
    for number, path in enumerate(names):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"a\n{number}\n")


def read(source):
    return open_table(source, ONE).sum(COUNTS).tolist()[:3]


def test_a_file_with_several_names_is_read_once(tmp_path):
    write(tmp_path / "t.csv")
    (tmp_path / "latest.csv").symlink_to("t.csv")
    (tmp_path / "below").mkdir()
    (tmp_path / "below" / "other.csv").symlink_to(tmp_path / "t.csv")
    assert read(tmp_path) == [1, 0, 0]
    assert read(tmp_path / "*.csv") == [1, 0, 0]


def test_a_pattern_that_finds_a_file_twice_reads_it_once(tmp_path):
    write(tmp_path / "t.csv", tmp_path / "x" / "t.csv", tmp_path / "x" / "y" / "t.csv")
    assert read(tmp_path / "**" / "**" / "*.csv") == [1, 1, 1]


@pytest.mark.parametrize(
    "name", [".ipynb_checkpoints/t.csv", "_temporary/0/t.csv", "x/.t.csv", "x/_t.csv"]
)
def test_what_programs_leave_in_a_folder_is_not_read(tmp_path, name):
    write(tmp_path / "t.csv", tmp_path / name)
    assert read(tmp_path) == [1, 0, 0]
    assert read(tmp_path / name) == [0, 1, 0]  # unless the owner names it


def test_a_folder_may_itself_be_hidden(tmp_path):
    write(tmp_path / ".hidden" / "_too" / "t.csv")
    assert read(tmp_path / ".hidden" / "_too") == [1, 0, 0]


@pytest.mark.parametrize("source", ["", "*", "t*"])
def test_files_of_several_kinds_are_refused(tmp_path, source):
    write(tmp_path / "t.csv")
    pq.write_table(pa.table({"a": [0]}), tmp_path / "t.parquet")
    with pytest.raises(UnreadableData, match=r"several kinds \(\.csv, \.parquet\)"):
        open_table(tmp_path / source, ONE)
    assert read(tmp_path / "*.csv") == [1, 0, 0]
