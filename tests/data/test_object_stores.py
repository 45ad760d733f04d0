"""Files in object stores are read by the rules of files on this machine."""

import os
import sys

import fsspec
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow import fs

from data.nasty_tables import DISGUISES, SCHEMA, count_by_hand, make_rows
from dpublish.aggregates.counts import Counts
from dpublish.data.engines import object_store
from dpublish.data.engines.object_store import _fits
from dpublish.data.schema import Schema, column
from dpublish.data.sources import open_table, source_columns
from dpublish.errors import InvalidParameter, UnreadableData
from dpublish.publishing.svt.fingerprint import fingerprint
from s3_server import running_server

ALL = Counts(SCHEMA, (tuple((name, None) for name in SCHEMA.names),))
ONE = Schema((column("a", "integer", bounds=[0, 9]),))
ONE_COUNTS = Counts(ONE, ((("a", None),),))
KINDS = ("csv", "zipped csv", "parquet", "parquet folder", "feather", "arrow stream file")


class Store:
    """An empty store: addresses in it are `root + key + settings`."""

    def __init__(self, system, inside, root, settings=""):
        self.system, self.inside, self.root, self.settings = system, inside, root, settings

    def address(self, key):
        return f"{self.root}{key}{self.settings}"

    def write(self, key, content):
        path = f"{self.inside}{key}"
        self.system.create_dir(path.rpartition("/")[0], recursive=True)
        with self.system.open_output_stream(path, compression=None) as file:
            file.write(content)

    def write_parquet(self, key, **columns):
        sink = pa.BufferOutputStream()
        pq.write_table(pa.table(columns), sink)
        self.write(key, sink.getvalue())


@pytest.fixture(scope="module")
def s3_settings():
    with running_server() as settings:
        yield settings


@pytest.fixture
def store(request, monkeypatch):
    """Stores of several kinds: Amazon's protocol by Arrow, and a store that only fsspec knows."""
    name = f"box-{os.urandom(6).hex()}"
    if request.param == "memory":
        system = fs.PyFileSystem(fs.FSSpecHandler(fsspec.filesystem("memory")))
        yield Store(system, f"/{name}/", f"memory://{name}/")
        return
    settings = request.getfixturevalue("s3_settings")
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "someone")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "sEcReT-4711")
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    system, inside = fs.FileSystem.from_uri(f"s3://{name}/{settings}&allow_bucket_creation=true")
    system.create_dir(name)
    yield Store(system, f"{inside.rstrip('/')}/", f"s3://{name}/", settings)


every_store = pytest.mark.parametrize("store", ["s3", "memory"], indirect=True)


def refusal(action, kind=UnreadableData):
    with pytest.raises(kind) as refused:
        action()
    assert "\n" not in str(refused.value)
    assert "sEcReT" not in str(refused.value)
    return str(refused.value)


@every_store
@pytest.mark.parametrize("cache", [True, False], ids=["cached", "streamed"])
@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_of_file_counts_as_one_would_by_hand(store, kind, cache, tmp_path):
    rows = make_rows(1000)
    path, _ = DISGUISES[kind](rows, tmp_path)
    files = sorted(path.iterdir()) if path.is_dir() else [path]
    for file in files:
        store.write(f"in/here/{file.name}", file.read_bytes())
    keys = ["in", "in/here/", "in/*/*", "**/*"]
    for key in keys if len(files) > 1 else [*keys, f"in/here/{path.name}"]:
        table = open_table(store.address(key), SCHEMA, cache=cache)
        for _ in range(2):
            assert np.array_equal(ALL.split(table.sum(ALL))[0], count_by_hand(rows)), key
    assert source_columns(store.address("in")).names[:5] == list(SCHEMA.names)


def test_an_address_of_this_machine_is_a_path(tmp_path):
    folder = tmp_path / "odd name"
    folder.mkdir()
    for number in (1, 2):
        pq.write_table(pa.table({"a": [number]}), folder / f"part-{number}.parquet")
    (folder / "again.parquet").symlink_to(folder / "part-1.parquet")
    for address in (f"file://{folder}", f"file://{tmp_path}/odd%20name/*.parquet"):
        assert open_table(address, ONE).sum(ONE_COUNTS).tolist()[:3] == [0, 1, 1]
    message = refusal(lambda: open_table(f"file://{tmp_path}/none.csv", ONE))
    assert message == f"there is no file {tmp_path}/none.csv"


@every_store
def test_files_of_one_kind_and_no_hidden_ones_are_read(store):
    store.write_parquet("rows/a.parquet", a=[1])
    store.write_parquet("rows/deep/b.parquet", a=[2])
    store.write_parquet("rows/_temporary/c.parquet", a=[3])
    store.write_parquet("rows/.hidden.parquet", a=[4])
    store.write("rows/_SUCCESS", b"")
    store.write("rows/readme.txt", b"hello")
    for key, expected in (
        ("rows", [0, 1, 1, 0, 0]),
        ("rows/*.parquet", [0, 1, 0, 0, 0]),
        ("rows/**/*.parquet", [0, 1, 1, 1, 0]),
        ("rows/[a-b].parquet", [0, 1, 0, 0, 0]),
    ):
        counted = open_table(store.address(key), ONE).sum(ONE_COUNTS)
        assert counted.tolist()[:5] == expected, key
    store.write("rows/d.csv", b"a\n1\n")
    message = refusal(lambda: open_table(store.address("rows"), ONE))
    assert message == f"{store.root}rows stands for files of several kinds (.csv, .parquet)"


@every_store
@pytest.mark.parametrize("cache", [True, False])
def test_a_file_written_anew_with_as_many_rows_is_noticed(store, cache):
    schema = Schema(tuple(column(name, "integer", bounds=[0, 1]) for name in "ab"))
    store.write_parquet("t.parquet", a=[0, 1], b=[0, 1])
    table = open_table(store.address("t.parquet"), schema, cache=cache)
    assert table.sum(Counts(schema, ((("a", None),),))).tolist() == [1, 1]
    store.write_parquet("t.parquet", a=[1, 0], b=[1, 0])  # of the same length
    message = refusal(lambda: table.sum(Counts(schema, ((("b", None),),))))
    assert message == f"{store.root}t.parquet was changed while it was being read; open it anew"


@every_store
@pytest.mark.parametrize("name", ["t.parquet", "t.csv"])
def test_a_file_whose_state_cannot_be_seen_is_refused_when_it_is_opened(store, monkeypatch, name):
    def fail(self, path):
        raise OSError("sEcReT-4711")

    store.write_parquet("t.parquet", a=[1])
    store.write("t.csv", b"a\n1\n")
    monkeypatch.setattr(object_store.Store, "_find_version", fail)
    message = refusal(lambda: open_table(store.address(name), ONE))
    assert message.startswith(f"{store.root}{name} does not show its length")


@every_store
def test_a_file_that_is_gone_is_noticed(store):
    store.write("t.csv", b"a\n1\n")
    table = open_table(store.address("t.csv"), ONE)
    store.system.delete_file(f"{store.inside}t.csv")
    assert "t.csv was changed" in refusal(lambda: table.sum(ONE_COUNTS))


@every_store
def test_what_cannot_be_read_is_refused_when_it_is_opened(store):
    store.write("bad.parquet", b"a\n4711\n")
    store.write("bad.feather", b"a\n4711\n")
    store.write("bad.csv.gz", b"a\n4711\n")
    store.write("bad.xlsx", b"a\n4711\n")
    store.write("other/b.csv", b"b\n4711\n")
    store.write("empty/readme.txt", b"hello")
    for key, message in (
        ("none.csv", "there is no file {}"),
        ("none/*.csv", "no file fits the pattern {}"),
        ("empty", "the folder {} holds no file of rows"),
        ("bad.parquet", "{} is not a Parquet file that can be read"),
        ("bad.feather", "{} is not an Arrow file that can be read"),
        ("bad.csv.gz", "{} cannot be opened"),
        ("bad.xlsx", "{} is of no known kind"),
        ("other", "column 'a' of {}/b.csv is not there"),
    ):
        refused = refusal(lambda key=key: open_table(store.address(key), ONE))
        assert refused.startswith(message.format(store.root + key))
        assert "4711" not in refused
    for options in ({"table": "t"}, {"sql": "SELECT 1 AS a"}):
        with pytest.raises(InvalidParameter, match="go with postgresql"):
            open_table(store.address("other"), ONE, **options)


@pytest.mark.parametrize(
    "address",
    [
        "s3://someone:sEcReT@bucket/a.csv",
        "s3://bucket/a.csv?secret_key=sEcReT",
        "abfss://box:sEcReT@account.dfs.core.windows.net/a.csv",
        "gs://bucket/a.csv?access_token=sEcReT",
        "https://host/a.csv?X-Amz-Signature=sEcReT",
    ],
)
def test_an_address_with_a_key_is_refused_and_not_quoted(address):
    message = refusal(lambda: open_table(address, ONE), InvalidParameter)
    assert message.startswith("an address must not hold a password or a key")


def test_a_scheme_that_no_one_knows_is_refused(monkeypatch):
    monkeypatch.setitem(sys.modules, "fsspec.core", None)
    message = refusal(lambda: open_table("nosuch://box/a.csv", ONE))
    assert message.startswith("addresses nosuch://... need fsspec; run: pip install fsspec")


def test_an_interactive_run_refuses_an_address():
    with pytest.raises(InvalidParameter, match="name files of rows"):
        fingerprint("s3://bucket/a.csv")


@pytest.mark.parametrize(
    ("path", "pattern", "fits"),
    [
        ("a.csv", "*.csv", True),
        (".a.csv", "*.csv", False),
        (".a.csv", ".*.csv", True),
        ("x/a.csv", "*.csv", False),
        ("x/a.csv", "*/a.csv", True),
        ("x/y/a.csv", "**/a.csv", True),
        ("a.csv", "**/a.csv", True),
        ("x/.y/a.csv", "**/a.csv", False),
        ("x/y/a.csv", "**", True),
        ("a.csv", "[!b]*.csv", True),
        ("b.csv", "[!b]*.csv", False),
    ],
)
def test_patterns_fit_as_those_of_paths_do(path, pattern, fits):
    assert _fits(path.split("/"), pattern.split("/")) is fits
