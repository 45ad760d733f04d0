"""CSV text in pieces: a record is read or left out by its own bytes alone."""

import csv
import io

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpublish.aggregates.counts import Counts
from dpublish.data.check import check_table
from dpublish.data.engines import csv_records
from dpublish.data.engines.csv_fields import read_fields
from dpublish.data.engines.csv_records import LONGEST_RECORD, read_records
from dpublish.data.schema import Schema, column
from dpublish.data.sources import open_table

SCHEMA = Schema(
    (
        column("g", "category", values=["x", "y"]),
        column("b", "category", values=["q"], other="o"),
    )
)
KERNEL = Counts(SCHEMA, ((("g", None),),))
LONG_AGO = 2_000_001  # what a parser behind us once took for the first record, and for no other


def rows(text, columns=2, *, block=1 << 22, longest=LONGEST_RECORD):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(csv_records, "_BLOCK", block)
        patch.setattr(csv_records, "LONGEST_RECORD", longest)
        found = []
        for records in read_records(io.BytesIO(text), ","):
            arrays = read_fields(records, columns, range(columns))
            found += zip(*(array.to_pylist() for array in arrays), strict=True)
        return found


def by_the_standard_library(text, columns=2):
    lines = text.decode().replace("\r\n", "\0").replace("\r", " ").replace("\0", "\r\n")
    read = csv.reader(lines.splitlines(keepends=True), skipinitialspace=True)
    return [row[:columns] for row in read if len(row) >= columns]


def without_marginal(found):
    return [[(value or "").lstrip(" ") for value in row] for row in found]


@settings(max_examples=400, deadline=None)
@given(text=st.text('ab,"\n\r ', max_size=40), block=st.integers(1, 12))
def test_records_are_those_of_the_standard_library_wherever_blocks_are_cut(text, block):
    expected = without_marginal(by_the_standard_library(text.encode()))
    assert without_marginal(rows(text.encode(), block=block)) == expected
    assert without_marginal(rows(text.encode())) == expected


FIELD = st.text(st.sampled_from('ab,"\n\r \N{SNOWMAN}'), max_size=9)


@st.composite
def records(draw):
    """Give well-formed records as a writer writes them, each with its line end."""
    written = []
    for _ in range(draw(st.integers(0, 5))):
        fields = ['"' + draw(FIELD).replace('"', '""') + '"' for _ in range(2)]
        plain = draw(st.sampled_from(["a", "b", " a", '"a"']))
        line = ",".join(draw(st.sampled_from([fields, [plain, fields[1]], ["a"]])))
        written.append((line + draw(st.sampled_from(["\n", "\r\n"]))).encode())
    return written


@settings(max_examples=400, deadline=None)
@given(written=records(), block=st.integers(1, 12), longest=st.integers(1, 30))
def test_a_record_is_read_as_if_it_were_alone(written, block, longest):
    alone = [rows(record, longest=longest) for record in written]
    together = rows(b"".join(written), block=block, longest=longest)
    assert together == [row for found in alone for row in found]
    lengths = [len(record.rstrip(b"\r\n")) for record in written]
    for found, length, record in zip(alone, lengths, written, strict=True):
        assert len(found) == (length <= longest and len(rows(record)))


@settings(max_examples=300, deadline=None)
@given(text=st.text('ab,"\n\r ', max_size=60), block=st.integers(1, 12), longest=st.integers(1, 20))
def test_broken_text_is_cut_at_the_same_bytes_whatever_the_blocks(text, block, longest):
    raw = text.encode()
    assert rows(raw, block=block, longest=longest) == rows(raw, longest=longest)


def count(path, lines, line_end=b"\n"):
    path.write_bytes(b"g,b\n" + b"".join(line + line_end for line in lines))
    return open_table(path, SCHEMA).sum(KERNEL).tolist()


def plain(length):
    return b"x," + b"z" * (length - 2)


def quoted(length):
    lines = b'x,"' + b'z\n"",' * (length // 5)
    return lines[: length - 6].rstrip(b'"').ljust(length - 1, b"z") + b'"'


def multibyte(length):
    return (
        b"x,"
        + b"z" * (length % 2)
        + "\N{LATIN SMALL LETTER E WITH ACUTE}".encode() * ((length - 2 - length % 2) // 2)
    )


@pytest.mark.parametrize("line_end", [b"\n", b"\r\n"], ids=["lf", "crlf"])
@pytest.mark.parametrize("make", [plain, quoted, multibyte])
@pytest.mark.parametrize(
    "length", [LONGEST_RECORD - 1, LONGEST_RECORD, LONGEST_RECORD + 1, LONG_AGO - 1, LONG_AGO]
)
def test_one_record_more_changes_one_count_at_most(tmp_path, length, make, line_end):
    long, path = make(length), tmp_path / "t.csv"
    assert len(long) == length
    is_read = length <= LONGEST_RECORD
    for others in ([b"y,q"], [b"y,q", plain(LONGEST_RECORD + 1)], []):
        before = count(path, others, line_end)
        for index in range(len(others) + 1):
            lines = [*others[:index], long, *others[index:]]
            assert count(path, lines, line_end) == [before[0] + is_read, before[1]]


def test_the_owner_is_told_of_a_record_that_is_too_long(tmp_path):
    path = tmp_path / "t.csv"
    count(path, [b"y,q", plain(LONGEST_RECORD)])
    assert not [f for f in check_table(SCHEMA, path) if f.is_serious]
    count(path, [b"y,q", plain(LONGEST_RECORD + 1)])
    assert [f.column for f in check_table(SCHEMA, path) if f.is_serious] == ["table"]


def test_a_run_of_returns_is_read_in_blocks_of_the_usual_size():
    text = b"x,q\n" + b"x," + b"\r" * 500 + b"q\n"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(csv_records, "_BLOCK", 16)
        blocks = list(csv_records._blocks(io.BytesIO(text)))
    assert max(map(len, blocks)) <= 17
    assert b"".join(blocks) == text.replace(b"\r", b" ")


def test_the_quote_that_closes_the_last_record_does_not_count_as_its_own():
    assert rows(b'"', 1, longest=1) == rows(b'"', 1)
    assert rows(b'"a', 1, longest=2) == [("a",)]
    assert rows(b'"ab', 1, longest=2) == []
