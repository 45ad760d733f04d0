"""Spark sessions: which settings are refused, and what a session of our own leaves behind."""

import os
import signal
import socket
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from data.nasty_tables import SCHEMA, arrow, count_by_hand, make_rows
from dpublish.data.engines.spark_session import check_settings, open_spark
from dpublish.data.sources import open_table
from dpublish.errors import InvalidParameter, UnreadableData
from spark_cluster import MASTER, SETTINGS, require_java

JAVA = "spark.executor.extraJavaOptions"
NETWORK = SETTINGS | {"spark.network.crypto.enabled": "true"}


def test_sessions_that_keep_rows_private_are_accepted():
    check_settings(SETTINGS, "local[2]")
    check_settings(SETTINGS, MASTER)
    check_settings(NETWORK, "spark://host:7077")
    check_settings(SETTINGS | {JAVA: "-Xss4m -Dlog4j2.configurationFile=quiet.xml"}, MASTER)
    check_settings(SETTINGS | {"spark.ssl.rpc.enabled": "true"}, "yarn")


@pytest.mark.parametrize(
    ("name", "value", "master", "why"),
    [
        ("spark.ui.enabled", "true", "local", "web page shows numbers of rows"),
        ("spark.ui.enabled", None, "local", "spark.ui.enabled=false"),
        ("spark.eventLog.enabled", "true", "local[2]", "event logs"),
        ("spark.io.encryption.enabled", None, "local[*]", "spark.io.encryption.enabled=true"),
        ("spark.io.encryption.enabled", "false", MASTER, "leaves files with rows"),
        ("spark.log.level", None, "local", "spark.log.level=OFF"),
        ("spark.log.level", "ERROR", "local", "logs the values"),
        ("spark.executor.extraJavaOptions", None, MASTER, "-Dlog4j2.level=OFF"),
        (JAVA, "-Dlog4j2.level=OFF -Dlog4j2.level=DEBUG", MASTER, "no other option of log4j"),
        (JAVA, "-Dlog4j2.level=OFF -Dlog4j.configurationFile=x", MASTER, "no other option"),
        (JAVA, "-Dlog4j2.level=OFF -Dlog4j2.level=OFF", MASTER, "several options"),
        (JAVA, "-Dlog4j2.confused=1", MASTER, "lacks -Dlog4j2.level=OFF"),
        ("spark.executor.defaultJavaOptions", "-Dlog4j2.configurationFile=x", MASTER, "several"),
        ("spark.network.crypto.enabled", None, "spark://h:1", "cross the network"),
        ("spark.network.crypto.enabled", "false", "yarn", "spark.network.crypto.enabled=true"),
    ],
)
def test_settings_that_would_show_something_are_refused(name, value, master, why):
    settings = {key: x for key, x in (NETWORK | {name: value}).items() if x is not None}
    with pytest.raises(InvalidParameter, match=why):
        check_settings(settings, master)


@pytest.mark.parametrize("master", ["", "locals", "spark:/host", "local[x]", "http://host:7077"])
def test_what_is_no_master_is_refused(master):
    with pytest.raises(InvalidParameter, match="no address of a Spark master"):
        open_spark("people.parquet", SCHEMA, master=master)


def test_a_master_that_does_not_answer_is_refused_at_once():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    with pytest.raises(
        UnreadableData, match=f"no Spark master answers at spark://127.0.0.1:{port}"
    ):
        open_spark("people.parquet", SCHEMA, master=f"spark://127.0.0.1:{port}")
    with pytest.raises(InvalidParameter, match="lacks a host or port"):
        open_spark("people.parquet", SCHEMA, master="spark://127.0.0.1")


def test_files_or_a_table_are_named_but_not_both():
    for data, table in ((None, None), ("people.parquet", "people")):
        with pytest.raises(InvalidParameter, match="give data"):
            open_spark(data, SCHEMA, table=table)


def test_spark_connect_is_refused():
    frame = type("DataFrame", (), {"__module__": "pyspark.sql.connect", "mapInArrow": None})()
    with pytest.raises(InvalidParameter, match="Spark Connect is not supported"):
        open_table(frame, SCHEMA)


# --- In processes of their own, for a process has one session -----------------------------------

PROGRAM = """
import sys
import numpy as np
from data.nasty_tables import SCHEMA
from dpublish.aggregates.counts import Counts
from dpublish.data.engines.spark_session import open_spark
from dpublish.errors import DPublishError

kernel = Counts(SCHEMA, (tuple((name, None) for name in SCHEMA.names),))
settings = {"spark.driver.memory": "512m"}
for data, table in CASES:
    try:
        with_rows = open_spark(data, SCHEMA, table=table, master="local[1]", settings=settings)
        print(with_rows.sum(kernel).tolist())
        with_rows.close()
    except DPublishError as error:
        print(type(error).__name__, error)
"""


def run(cases, tmp_path, **environment):
    """Open tables in a process of its own; return what it prints, and what it shows aside."""
    program = tmp_path / "program.py"
    program.write_text(f"CASES = {cases!r}\n" + textwrap.dedent(PROGRAM))
    paths = os.pathsep.join(path for path in sys.path if path)
    done = subprocess.run(
        [sys.executable, "-W", "ignore", str(program)],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
        env={**os.environ, "PYTHONPATH": paths, "TMPDIR": str(tmp_path / "tmp"), **environment},
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines(), done.stderr


@pytest.fixture
def people(tmp_path):
    (tmp_path / "tmp").mkdir()
    rows = make_rows(200)
    for number in range(2):
        pq.write_table(
            arrow(rows[number * 100 : number * 100 + 100]), tmp_path / f"p{number}.parquet"
        )
    return rows


def test_without_java_the_answer_is_clear(people, tmp_path):
    cases = [(str(tmp_path / "p*.parquet"), None)]
    shown, aside = run(cases, tmp_path, PATH=str(tmp_path), JAVA_HOME=str(tmp_path))
    assert shown == [
        "InvalidParameter Spark needs Java, which is not found; install Java 17 or newer, or set "
        "JAVA_HOME to it"
    ]
    assert aside == ""


@pytest.mark.xdist_group("spark")
def test_a_session_of_our_own_answers_and_leaves_nothing_behind(people, tmp_path):
    require_java()
    cases = [
        (str(tmp_path / "p*.parquet"), None),
        (None, "no_such_table"),
    ]
    shown, aside = run(cases, tmp_path)
    assert shown[0] == str(count_by_hand(people).ravel().tolist())
    assert shown[1].startswith("UnreadableData there is no table no_such_table in Spark's catalog")
    assert "secret" not in aside
    assert "ERROR" not in aside
    left = [path.name for path in (tmp_path / "tmp").iterdir()]
    assert [name for name in left if name.startswith(("dpublish", "spark", "blockmgr"))] == []


OTHER_PYTHON = """\
#!{python}
import collections, runpy, sys
fields = "major minor micro releaselevel serial"
sys.version_info = collections.namedtuple("Version", fields)(3, 99, 0, "final", 0)
sys.argv = sys.argv[2:]
runpy.run_module("pyspark.daemon", run_name="__main__", alter_sys=False)
"""


@pytest.mark.xdist_group("spark")
def test_workers_with_another_python_are_noticed_before_any_row_is_read(people, tmp_path):
    require_java()
    other = tmp_path / "python"
    other.write_text(OTHER_PYTHON.format(python=sys.executable))
    other.chmod(0o755)
    cases = [(str(tmp_path / "p*.parquet"), None)]
    shown, _ = run(cases, tmp_path, PYSPARK_PYTHON=str(other))
    assert len(shown) == 1
    assert shown[0].startswith("UnreadableData the workers of this cluster run another Python")


@pytest.mark.xdist_group("spark")
def test_an_interrupt_while_spark_starts_leaves_no_java_behind(tmp_path):
    require_java()
    pq.write_table(pa.table({"a": [1, 2]}), tmp_path / "rows.parquet")
    program = (
        "from dpublish import Schema, column, open_spark\n"
        "schema = Schema((column('a', 'integer', bounds=[0, 9]),))\n"
        "print('starting', flush=True)\n"
        f"open_spark({str(tmp_path / 'rows.parquet')!r}, schema, master='local[1]')\n"
    )
    started = subprocess.Popen(
        [sys.executable, "-c", program], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert started.stdout.readline() == "starting\n"
    children = Path(f"/proc/{started.pid}/task/{started.pid}/children")
    until = time.monotonic() + 60
    while not (java := children.read_text().split()) and time.monotonic() < until:
        time.sleep(0.05)
    time.sleep(0.5)
    started.send_signal(signal.SIGINT)
    _, errors = started.communicate(timeout=120)
    assert "KeyboardInterrupt" in errors
    assert java
    assert not any(Path(f"/proc/{pid}").exists() for pid in java)
