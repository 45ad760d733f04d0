"""CSV: no line raises an error, and a line decides about itself alone."""

import csv
import gzip
import io
import os
import tempfile
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from dpublish.aggregates.counts import Counts
from dpublish.data.check import check_table
from dpublish.data.engines.csv_reader import CsvSource
from dpublish.data.schema import Schema, column
from dpublish.data.sources import open_table
from dpublish.errors import InvalidParameter, UnreadableData

SCHEMA = Schema(
    (
        column("a", "integer", bounds=[0, 9], missing="drop"),
        column("b", "category", values=["x", "y"], other="other", missing="category"),
    )
)
KERNEL = Counts(SCHEMA, ((("a", None), ("b", None)),))
GOOD = [b"1,x,u", b"2,y,v", b"3,x,w", b"4,y,"]
TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
FIELD = st.sampled_from(["x", "y", "3", "", "NaN", 'a "quoted" word', "two\nlines", ","]) | TEXT


def count(lines, path, line_end=b"\n", header=b"a,b,c", cache=True):
    path.write_bytes(line_end.join([header, *lines, b""]))
    return KERNEL.split(open_table(path, SCHEMA, cache=cache).sum(KERNEL))[0]


@pytest.fixture
def path(tmp_path):
    return tmp_path / "t.csv"


@pytest.mark.parametrize("line_end", [b"\n", b"\r\n"], ids=["unix", "windows"])
@pytest.mark.parametrize("where", [0, 2, 4])
@pytest.mark.parametrize(
    ("line", "cell"),
    [
        (b"", None),
        (b",,", None),
        (b"5", None),
        (b"5,x", None),
        (b"5,x,u,more,and,more", (5, 0)),
        (b"5,x,u,", (5, 0)),
        (b"5,\xff\xfe,u", None),
        (b"5,x,\xff\xfe", (5, 0)),
        (b"5,x\x00,u", (5, 2)),
        (b'5,"x",u', (5, 0)),
        (b'5,"x","two\nlines, ""quoted"""', (5, 0)),
        (b'5,x"y,u', (5, 2)),
        (b'"5","","u"', (5, 3)),
        (b" 5 , x ,u", (5, 0)),
        (b"5.0,x,u", (5, 0)),
        (b"1e300,x,u", (9, 0)),
        (b"-inf,x,u", (0, 0)),
        (b"nan,x,u", None),
        (b"five,x,u", None),
        (b"#5,x,u", None),
        (b"5,x," + b"long" * 600_000, None),
        ("5,\N{SNOWMAN},u".encode(), (5, 2)),
        (b"5,x,u\r6,x,u\r7,x,u", (5, 0)),
        (b"5,x\r,\ru", (5, 0)),
        (b"5,x,\r\r", (5, 0)),
        (b'5,x,"u\r6,x,v"', (5, 0)),
        (b"\r", None),
    ],
    ids=lambda value: repr(value)[:30],
)
def test_a_line_changes_nothing_but_its_own_cell(path, line, cell, where, line_end):
    expected = count(GOOD, path, line_end)
    if cell is not None:
        expected[cell] += 1
    assert np.array_equal(count([*GOOD[:where], line, *GOOD[where:]], path, line_end), expected)


@pytest.mark.parametrize(
    "tail",
    [b'5,"x,u', b'5,x,"u', b'"', b'5,"x"y,u', b"5,x\ry,u", b'5,x,u"\r"'],
)
def test_broken_quotes_and_line_ends_raise_no_error(path, tail):
    before = count(GOOD, path)
    after = count([*GOOD, tail], path)
    assert (after - before).min() >= 0
    assert (after - before).sum() <= 1


@pytest.mark.parametrize("extra", [[], [b"5,x\r,u"], [b'5,"x\n",u'], [b"5,\xff,u"], [b"5"]])
def test_no_row_makes_the_reader_use_the_disk(path, monkeypatch, extra):
    def refuse(*_args, **_options):
        raise OSError(28, "No space left on device")

    for name in ("mkdtemp", "mkstemp", "TemporaryFile", "NamedTemporaryFile"):
        monkeypatch.setattr(tempfile, name, refuse)
    assert count([*GOOD, *extra], path).sum() >= len(GOOD)


def test_lines_from_a_pipe_are_read_once_as_from_a_file(path):
    lines = [*GOOD, b"5,x\r,u", b'6,"y\n",v']
    expected = count(lines, path)
    reading, writing = os.pipe()
    with os.fdopen(writing, "wb") as file:
        file.write(b"\n".join([b"a,b,c", *lines]))
    with os.fdopen(reading, "rb") as file:
        table = open_table(file, SCHEMA)
        for _ in range(2):  # what was read once is held
            assert np.array_equal(KERNEL.split(table.sum(KERNEL))[0], expected)


def test_a_pipe_is_not_checked_since_that_takes_two_passes():
    with pytest.raises(InvalidParameter, match="by its path"):
        check_table(SCHEMA, io.BytesIO(b"a,b,c\n1,x,u\n"))


def test_an_open_quote_in_the_middle_raises_no_error(path):
    assert count([*GOOD[:2], b'5,"x,u', *GOOD[2:]], path).sum() <= len(GOOD)


@pytest.mark.parametrize("text", [b"a,b,c", b"a,b,c\n", b"a,b,c\r\n", b"\xef\xbb\xbfa,b,c\n\n"])
def test_a_header_alone_is_an_empty_table(path, text):
    path.write_bytes(text)
    assert open_table(path, SCHEMA).sum(KERNEL).sum() == 0


@pytest.mark.parametrize(
    ("header", "lines"),
    [
        (b"\xef\xbb\xbfa,b,c", GOOD),
        (b'"a","b","c"', GOOD),
        (b" a , b , c ", GOOD),
        (b"c,b,a", [b"u,x,1", b"v,y,2", b"w,x,3", b",y,4"]),
        (b"c,c,b,a", [b"u,u,x,1", b"v,v,y,2", b"w,w,x,3", b",,y,4"]),
        (b"A,a,b,c", [b"9,1,x,u", b"9,2,y,v", b"9,3,x,w", b"9,4,y,"]),
        (b"a;b;c", [line.replace(b",", b";") for line in GOOD]),
        (b"a|b|c", [line.replace(b",", b"|") for line in GOOD]),
        (b"a\tb\tc", [line.replace(b",", b"\t") for line in GOOD]),
        (b"a;b;c,d", [line.replace(b",", b";") for line in GOOD]),
    ],
)
def test_the_header_alone_says_how_a_file_is_to_be_read(path, header, lines):
    expected = count(GOOD, path)
    assert np.array_equal(count(lines, path, header=header), expected)


@settings(max_examples=60, deadline=None)
@given(rows=st.lists(st.tuples(FIELD, FIELD, FIELD), max_size=6))
@example(rows=[("3", "\r", "x"), ("4", "x", "u\r5,x,v\r6,x,w")])
def test_what_a_csv_writer_wrote_is_read_as_it_was(rows, tmp_path_factory):
    path = tmp_path_factory.mktemp("csv") / "t.csv"
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerows([("a", "b", "c"), *rows])
    columns = zip(*rows, strict=True) if rows else [[], [], []]
    names = ["a", "b", "c"]
    table = pa.table({n: pa.array(c, pa.string()) for n, c in zip(names, columns, strict=True)})
    for cache in (True, False):
        read = open_table(path, SCHEMA, cache=cache).sum(KERNEL)
        assert np.array_equal(read, open_table(table, SCHEMA).sum(KERNEL))


@pytest.mark.parametrize("cache", [True, False])
def test_a_column_read_alone_leaves_out_the_same_lines(path, cache):
    lines = [*GOOD, b"5,\xff,u", b"\xff,x,u", b"6,x"]
    count(lines, path)
    table = open_table(path, SCHEMA, cache=cache)
    alone = Counts(SCHEMA, ((("b", None),),))
    assert table.sum(alone).tolist() == [2, 2, 0, 0]
    together = KERNEL.split(table.sum(KERNEL))[0]
    assert np.array_equal(together, count(GOOD, path))


def test_quoted_line_ends_are_read_right_in_a_file_of_many_pieces(path):
    record = b'1,x,"' + b"7,x,u\n" * 20 + b'"\n'
    records = 36_000_000 // len(record)  # above 32 MB the parser would hand pieces to threads
    path.write_bytes(b"a,b,c\n" + record * records)
    counts = KERNEL.split(open_table(path, SCHEMA, cache=False).sum(KERNEL))[0]
    assert np.argwhere(counts).tolist() == [[1, 0]]
    assert counts[1, 0] == records
    assert not CsvSource(str(path)).has_odd_lines()


@pytest.mark.parametrize("folder", ["c0=7", "a=7", "c1=x"])
def test_the_name_of_a_folder_is_no_value(tmp_path, folder):
    (tmp_path / folder).mkdir()
    counts = count([b"1,x,u"], tmp_path / folder / "t.csv")
    assert np.argwhere(counts).tolist() == [[1, 0]]


def test_a_tilde_in_a_path_is_no_home(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("~").mkdir()
    assert count([b"1,x,u"], Path("~", "t.csv")).sum() == 1


def test_a_blank_line_is_a_missing_value_only_where_there_is_one_column(path):
    alone = Schema((column("a", "integer", bounds=[0, 9], missing="category"),))
    kernel = Counts(alone, ((("a", None),),))
    path.write_text("a\n1\n\n2\n")
    assert open_table(path, alone).sum(kernel).tolist() == [0, 1, 1, *[0] * 7, 1]
    path.write_text("a,b\n1,x\n\n2,y\n")
    assert open_table(path, alone).sum(kernel).tolist() == [0, 1, 1, *[0] * 7, 0]


@pytest.mark.parametrize("keep", [11, 40, -4])
def test_a_damaged_archive_is_refused_without_a_word_of_its_rows(tmp_path, keep):
    path = tmp_path / "t.csv.gz"
    packed = gzip.compress(b"a,b,c\n" + b"".join(b"%d,x,%d\n" % (n, n * n) for n in range(2000)))
    path.write_bytes(packed[:keep] + b"\xff" * 50)
    with pytest.raises(UnreadableData) as refused:
        open_table(path, SCHEMA).sum(KERNEL)
    assert refused.value.__context__ is None or refused.value.__suppress_context__
    with pytest.raises(UnreadableData):
        check_table(SCHEMA, path)


@pytest.mark.parametrize("body", [b"", b"\r", b"x,q\r", b"x,\xff\r", b"x,q\r" * 30_000, b'x,"\r'])
def test_old_line_ends_are_refused_whatever_the_rows(tmp_path, body):
    # Rows are part of the first line there: nothing else about them may be told.
    file = tmp_path / "old.csv"
    file.write_bytes(b"a,b,c\r" + body)
    with pytest.raises(UnreadableData, match="old line ends"):
        open_table(file, SCHEMA)


def test_a_pipe_that_was_begun_is_not_read_on_from_the_middle():
    class Interrupted(io.BytesIO):
        calls = 0

        def read1(self, size=-1):
            self.calls += 1
            if self.calls == 3:
                raise KeyboardInterrupt
            return super().read1(10)

    table = open_table(Interrupted(b"a,b,c\n" + b"x,y,z\n" * 10), SCHEMA)
    with pytest.raises(KeyboardInterrupt):
        table.sum(KERNEL)
    with pytest.raises(UnreadableData, match="only once"):
        table.sum(KERNEL)


def test_a_pipe_that_does_not_wait_for_its_rows_is_refused():
    reader, writer = os.pipe()
    os.write(writer, b"a,b,c\nx,y,z\n")
    os.set_blocking(reader, False)
    with os.fdopen(reader, "rb") as file, pytest.raises(UnreadableData, match="non-blocking"):
        open_table(file, SCHEMA)
    os.close(writer)
