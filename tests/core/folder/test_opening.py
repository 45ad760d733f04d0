"""A stranger's files: bombs, links, pipes and devices are refused before they cost anything."""

import os
import resource
import subprocess
import sys

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet

from dpublish.core.folder import opening
from dpublish.core.folder.opening import (
    Allowance,
    fingerprint,
    has_file,
    list_files,
    parquet_bytes,
    read_file,
    read_json,
    read_parquet,
)
from dpublish.core.folder.parquet_pages import measure_parquet
from dpublish.errors import CorruptRelease

TABLE = pa.table(
    {
        "n": pa.array([1, None, 3], pa.int64()),
        "x": pa.array([0.5, 1.5, None]),
        "text": pa.array(["a", None, "a longer text"]),
        "label": pa.array(["Ost", "West", "Ost"]).dictionary_encode(),
    }
)


def encoded(table, **options):
    sink = pa.BufferOutputStream()
    parquet.write_table(table, sink, **options)
    return bytes(sink.getvalue())


def repeated(table, times):
    """A file of many equal row groups, each of which takes a few bytes."""
    sink = pa.BufferOutputStream()
    with parquet.ParquetWriter(sink, table.schema, compression="zstd") as writer:
        for _ in range(times):
            writer.write_table(table)
    return bytes(sink.getvalue())


def padded(number, size):
    """A zigzag varint of a given length, which writers never use and readers accept."""
    coded = number << 1
    parts = [(coded >> 7 * k & 127) | (128 if k < size - 1 else 0) for k in range(size)]
    return bytes(parts)


@pytest.mark.parametrize("table", [TABLE, TABLE.slice(0, 0), pa.table({}), TABLE.slice(1, 1)])
def test_what_was_encoded_is_decoded(table):
    assert read_parquet(parquet_bytes(table), Allowance()).equals(table)


@pytest.mark.parametrize("rows", [10, 3_000, 100_000])
def test_a_table_is_measured_without_decoding_it(rows):
    numbers = np.arange(rows)
    table = pa.table({"n": numbers, "x": numbers / 3, "t": list(map(str, numbers))})
    for options in ({}, {"data_page_version": "2.0"}, {"row_group_size": 1_000}):
        content = encoded(table, **options)
        found = measure_parquet(content)
        assert (found.rows, found.columns) == (rows, 3)
        texts = sum(map(len, map(str, range(rows))))
        assert 16 * rows + texts <= found.decoded_bytes <= 1.3 * (32 * rows + texts) + 1_000
        assert read_parquet(content, Allowance()).equals(table)


def test_a_bomb_of_rows_is_refused():
    zeros = np.zeros(1_000_000, np.int64)
    content = repeated(pa.table({"a": zeros, "b": zeros, "c": zeros}), 40)
    assert len(content) < 1_000_000
    assert measure_parquet(content).decoded_bytes >= 960_000_000
    with pytest.raises(CorruptRelease, match="more memory"):
        read_parquet(content, Allowance())


def test_a_bomb_of_texts_is_refused():
    long = pa.array(["x" * 900_000]).take(pa.array(np.zeros(2_000, np.int64)))
    content = encoded(pa.table({"t": long}))
    assert len(content) < 200_000
    with pytest.raises(CorruptRelease, match="more memory"):
        read_parquet(content, Allowance())


def test_tables_share_one_allowance():
    zeros = np.zeros(10_000_000, np.int64)
    content = encoded(pa.table({"a": zeros}))
    allowance = Allowance()
    for _ in range(3):
        read_parquet(content, allowance)
    with pytest.raises(CorruptRelease, match="more memory"):
        read_parquet(content, allowance)


def test_a_footer_that_understates_its_pages_is_refused():
    rows = 1_000_000
    content = encoded(pa.table({"a": np.zeros(rows, np.int64)}), write_statistics=False)
    true = padded(rows, 3)
    start = len(content) - 8 - int.from_bytes(content[-8:-4], "little")
    footer = content[start:]
    assert footer.count(true) >= 3  # of the file, its group of rows and its column
    assert measure_parquet(content).rows == rows
    with pytest.raises(CorruptRelease):
        measure_parquet(content[:start] + footer.replace(true, padded(7, 3)))
    refused = 0
    for index in [k for k in range(len(footer)) if footer.startswith(true, k)]:
        lie = footer[:index] + padded(7, 3) + footer[index + 3 :]
        try:
            measure_parquet(content[:start] + lie)
        except CorruptRelease:
            refused += 1
    assert refused == 3  # what is left is a statistic, by which no decoder goes


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"PAR1",
        b"PAR1PAR1PAR1",
        b"PAR1" + b"\x1c" * 1_000_000 + (1_000_000).to_bytes(4, "little") + b"PAR1",
        b"PAR1" + b"\x19\xfc\xff\xff\xff\x0f" + (6).to_bytes(4, "little") + b"PAR1",
        encoded(pa.table({"nested": [[1], [2, 3]]})),
        encoded(pa.table({"nested": [{"a": 1}]})),
        encoded(
            pa.table({"t": ["a", "ab"]}),
            use_dictionary=False,
            column_encoding={"t": "DELTA_BYTE_ARRAY"},
        ),
        encoded(TABLE, compression="gzip"),
        encoded(TABLE)[:-30] + encoded(TABLE)[-8:],
    ],
    ids=range(10),
)
def test_what_dpublish_does_not_write_is_refused(content):
    with pytest.raises(CorruptRelease):
        read_parquet(content, Allowance())


@pytest.mark.parametrize("kind", [pa.time32("s"), pa.int32(), pa.bool_()])
def test_types_that_are_not_published_are_refused(kind):
    table = pa.table({"a": pa.array([0], pa.int32()).cast(kind)})
    with pytest.raises(CorruptRelease, match="types"):
        read_parquet(encoded(table), Allowance())


def test_no_changed_byte_leads_astray():
    content = parquet_bytes(TABLE)
    for index in range(len(content)):
        for change in (1, 128, 255):
            forged = bytearray(content)
            forged[index] ^= change
            try:
                table = read_parquet(bytes(forged), Allowance())
            except CorruptRelease:
                continue
            assert table.num_rows == 3


def test_a_deep_or_large_json_file_is_refused(tmp_path):
    deep = opening.MOST_DEPTH
    for text, fine in [
        ("[" * deep + "]" * deep, True),
        ("[" * (deep + 1) + "]" * (deep + 1), False),
        ('{"a":' * (deep + 1) + "1" + "}" * (deep + 1), False),
        ('"' + "[" * 1_000 + '\\""', True),
        ("[0" + ",0" * 4_000_000 + "]", False),
        ('"\\ud800"x', False),
        ("1" * 5_000, False),
        ("\xff", False),
    ]:
        (tmp_path / "a.json").write_bytes(text.encode("latin-1"))
        if fine:
            read_json(tmp_path, "a.json")
        else:
            with pytest.raises(CorruptRelease):
                read_json(tmp_path, "a.json")


def test_a_file_above_its_limit_is_not_read(tmp_path):
    (tmp_path / "large").touch()
    os.truncate(tmp_path / "large", 1 << 40)  # takes no space on the disk
    for attempt in (read_file, read_json):
        with pytest.raises(CorruptRelease, match="too large"):
            attempt(tmp_path, "large")


def make_pipe(path):
    os.mkfifo(path)


def make_link_to_zeros(path):
    path.symlink_to("/dev/zero")


def make_link(path):
    path.symlink_to(path.parent / "real")


def make_folder(path):
    path.mkdir()


def make_broken_link(path):
    path.symlink_to("nowhere")


@pytest.mark.parametrize(
    "make", [make_pipe, make_link_to_zeros, make_link, make_folder, make_broken_link]
)
@pytest.mark.parametrize("attempt", [read_file, read_json, fingerprint])
def test_only_regular_files_are_opened(tmp_path, make, attempt):
    (tmp_path / "real").write_text("[1]")
    assert attempt(tmp_path, "real")
    make(tmp_path / "odd")
    with pytest.raises(CorruptRelease, match="no regular file"):
        attempt(tmp_path, "odd")
    assert not has_file(tmp_path, "odd")
    if make is not make_folder:
        with pytest.raises(CorruptRelease, match="link or no regular"):
            list_files(tmp_path)


def test_a_folder_on_the_way_is_no_link(tmp_path):
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "a").write_text("{}")
    (tmp_path / "release").mkdir()
    (tmp_path / "release" / "data").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(CorruptRelease, match="link"):
        read_file(tmp_path / "release", "data/a")
    (tmp_path / "named").symlink_to(tmp_path / "elsewhere")  # the user's own link is theirs
    assert read_file(tmp_path / "named", "a") == b"{}"


@pytest.mark.parametrize("name", ["../a", "/etc/hostname", "data//a", "./a", "", "a/..", "a\0"])
def test_names_stay_inside(tmp_path, name):
    with pytest.raises(CorruptRelease, match="outside"):
        read_file(tmp_path, name)


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(CorruptRelease, match="data/a is missing"):
        read_file(tmp_path, "data/a")


def test_files_are_listed_with_their_sizes(tmp_path):
    (tmp_path / "data" / "deep").mkdir(parents=True)
    (tmp_path / "data" / "deep" / "b").write_bytes(b"12345")
    (tmp_path / "a").touch()
    assert list_files(tmp_path) == {"a": 0, "data/deep/b": 5}
    assert fingerprint(tmp_path, "data/deep/b").size == 5


def test_memory_stays_small_while_a_bomb_is_refused(tmp_path):
    zeros = np.zeros(1_000_000, np.int64)
    (tmp_path / "bomb").write_bytes(repeated(pa.table({"a": zeros, "b": zeros}), 120))
    script = (
        "import resource, sys\n"
        "from pathlib import Path\n"
        "from dpublish.errors import CorruptRelease\n"
        "from dpublish.core.folder.opening import Allowance, read_file, read_parquet\n"
        "before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss\n"
        "try:\n"
        "    read_parquet(read_file(Path(sys.argv[1]), 'bomb'), Allowance())\n"
        "except CorruptRelease:\n"
        "    print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script, str(tmp_path)],
        capture_output=True,
        text=True,
        check=True,
        timeout=120,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (4 << 30, 4 << 30)),
    )
    assert int(done.stdout) < 50_000  # kilobytes
