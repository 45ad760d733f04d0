"""Sessions of Apache Spark that keep private rows private: refused, or started, by their settings.

Spark shows numbers of rows on its web page and in event logs, logs the values at which it
fails, and leaves files behind when an executor is killed.  So a table is opened only in a
session whose settings prevent that.  `open_spark` starts such a session and ends it with the
table.  Opening also runs one small job over no private data on the cluster, so that a missing
package or another Python is found before anything is paid for.
"""

import atexit
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import weakref
import zipfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from hashlib import sha256
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from dpublish.data.engines.encoded import check_type
from dpublish.data.engines.prepared import prepare_source
from dpublish.data.engines.source import MemorySource, Source, check_header, quietly
from dpublish.data.engines.spark import Frame, SparkTable, read_header
from dpublish.data.engines.spark_files import SparkFiles
from dpublish.data.engines.spark_jobs import require_whole, silent
from dpublish.data.engines.spark_plan import check_plan
from dpublish.data.engines.units import needed_columns, opened_part, unit_type
from dpublish.data.lookup import Lookup
from dpublish.data.schema import Schema
from dpublish.data.steps import NO_STEPS, Steps, read_steps
from dpublish.errors import DPublishError, InvalidParameter, UnreadableData

PATIENCE = 120
"""Seconds that a cluster may take to answer the first, small job."""

_JAVA = 17
_ANSWER = 5  # seconds until a master has to accept a connection
_ENDING = 30  # seconds that Java may take to end
_MASTERS = re.compile(
    r"local(\[(\*|\d+)(,\d+)?\])?|local-cluster\[\d+,\d+,\d+\]|spark://.+|yarn|k8s://.+"
)
_SHIPPED: "weakref.WeakKeyDictionary[Any, str]" = weakref.WeakKeyDictionary()


class Need(NamedTuple):
    """A setting of Spark that private rows need, and why."""

    name: str
    values: tuple[str, ...]
    default: str
    why: str


NEEDS = (
    Need("spark.ui.enabled", ("false",), "true", "Spark's web page shows numbers of rows"),
    Need("spark.eventLog.enabled", ("false",), "false", "event logs hold numbers of rows"),
    Need(
        "spark.io.encryption.enabled",
        ("true",),
        "false",
        "an executor that is killed leaves files with rows on its disk",
    ),
    Need("spark.log.level", ("OFF", "FATAL"), "WARN", "Spark logs the values at which it fails"),
)
NETWORK_NEED = Need(
    "spark.network.crypto.enabled",
    ("true",),
    "false",
    "rows and sums cross the network between executors",
)
JAVA_OPTIONS = "spark.executor.extraJavaOptions"
_DEFAULT_JAVA_OPTIONS = "spark.executor.defaultJavaOptions"
_LOG_FILE = re.compile(r"-Dlog4j2\.configurationFile=\S+")
NO_LOG = "-Dlog4j2.level=OFF"
"""Keeps an executor from logging, from its start on; Spark's own settings reach it too late."""


def check_settings(settings: Mapping[str, str], master: str) -> None:
    """Refuse a session whose settings would show private numbers or leave rows behind."""
    for need in _needs(settings, master):
        value = settings.get(need.name, need.default)
        if value.lower() not in (x.lower() for x in need.values):
            raise InvalidParameter(
                f"{need.name} is {value}, but {need.why}; start the Spark session with "
                f"{need.name}={need.values[0]}"
            )
    if not _is_one_process(master):
        _check_java_options(settings)


def _check_java_options(settings: Mapping[str, str]) -> None:
    """Refuse executors that would log, or that are told twice what to log."""
    given = " ".join(settings.get(name, "") for name in (_DEFAULT_JAVA_OPTIONS, JAVA_OPTIONS))
    found = [option.strip("\"'") for option in given.split() if "log4j" in option.lower()]
    if not found or not all(option == NO_LOG or _LOG_FILE.fullmatch(option) for option in found):
        raise InvalidParameter(
            f"{JAVA_OPTIONS} lacks {NO_LOG}, but executors log the values at which they fail; "
            f"start the Spark session with {JAVA_OPTIONS}={NO_LOG}, or name a file there that "
            "switches logs off (-Dlog4j2.configurationFile=...), and give no other option of log4j"
        )
    if len(found) > 1:
        raise InvalidParameter(
            f"{JAVA_OPTIONS} has several options of log4j, and one may undo another; give {NO_LOG} "
            "alone"
        )


def _needs(settings: Mapping[str, str], master: str) -> tuple[Need, ...]:
    is_encrypted = settings.get("spark.ssl.rpc.enabled", "").lower() == "true"
    return NEEDS if master.startswith("local") or is_encrypted else (*NEEDS, NETWORK_NEED)


def _is_one_process(master: str) -> bool:
    return master.startswith("local") and not master.startswith("local-cluster")


# --- Opening ----------------------------------------------------------------------------------


def open_frame(
    data: Any,
    schema: Schema,
    *,
    columns: Sequence[str] | None = None,
    label: str = "the Spark table",
    steps: Steps = NO_STEPS,
) -> SparkTable:
    """Open a Spark DataFrame for the mechanisms; reads names and types of columns, and no row.

    Its plan is run anew for every sum, so it must give the same rows every time.  `columns` are
    those of the schema that it must have (None: all).
    """
    return _open(data, schema, columns, label, None, steps)


def _open(
    data: Any,
    schema: Schema,
    columns: Sequence[str] | None,
    label: str,
    session: "OwnSession | None",
    steps: Steps,
) -> SparkTable:
    if not hasattr(data, "_jdf"):
        raise InvalidParameter(
            "Spark Connect is not supported: the settings of its server cannot be checked; "
            "give a DataFrame of a classic Spark session"
        )
    with silent():
        return _open_silently(data, schema, columns, label, session, steps)


def _open_silently(
    data: Any,
    schema: Schema,
    columns: Sequence[str] | None,
    label: str,
    session: "OwnSession | None",
    steps: Steps,
) -> SparkTable:
    context = data.sparkSession.sparkContext
    check_settings(dict(context.getConf().getAll()), context.master)
    require_whole(data.sparkSession)
    check_plan(data, label)
    opened = opened_part(schema, columns)
    wanted = needed_columns(opened)
    raw: Source = MemorySource((), read_header(data.schema), label)
    public = prepare_source(raw, schema, steps, wanted)
    header = public.header
    check_header(public, wanted, known=needed_columns(schema))
    for name in opened.names:
        check_type(schema, name, public)
    if schema.unit is not None:
        unit_type(header.field(schema.unit).type, label)
    files = SparkFiles.of(data, label)
    prepare(data.sparkSession)
    plan = getattr(public, "plan", None)
    frame = Frame(data, header, label, _count_parts(data), files, session=session, plan=plan)
    return SparkTable(schema, frame, opened=opened.names, steps=steps.texts, made=steps.made)


def _count_parts(data: Any) -> int:
    """Find about how many partitions a plan has, without running any of it."""
    message = "the plan of the Spark table cannot be made; check that its parts are still there"
    query = quietly(lambda: data._jdf.queryExecution().executedPlan().toString(), message)
    if "Exchange" in query or "AdaptiveSparkPlan" in query:
        return max(1, int(data.sparkSession.conf.get("spark.sql.shuffle.partitions")))
    return max(1, int(quietly(data.rdd.getNumPartitions, message)))


# --- The first job ----------------------------------------------------------------------------


def prepare(session: Any) -> None:
    """Send this package to the cluster, and check by a small job that it runs there."""
    context = session.sparkContext
    if context in _SHIPPED:
        return
    archive = _ship(context)
    found = _probe(session)
    here = {"python": sys.version.split()[0].rpartition(".")[0], **_versions()}
    for worker in found:
        if archive not in worker.pop("code"):
            raise UnreadableData(
                "the workers of this cluster load another dpublish than this process; remove it "
                "from their PYTHONPATH"
            )
        for name, version in worker.items():
            if version != here[name]:
                raise UnreadableData(
                    f"the workers of this cluster have {name} {version}, but this process has "
                    f"{here[name]}; answers must not depend on where they are computed: give "
                    "both the same environment (PYSPARK_PYTHON names the workers' Python)"
                )
    _SHIPPED[context] = archive


def _ship(context: Any) -> str:
    """Add this package to the application, as an archive named by what is in it."""
    root = Path(__file__).resolve().parents[2]
    sources = sorted(root.rglob("*.py"))
    mark = sha256(b"".join(path.read_bytes() for path in sources)).hexdigest()[:16]
    folder = Path(tempfile.mkdtemp(prefix="dpublish-code-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)  # workers fetch it when they start
    archive = folder / f"dpublish-{mark}.zip"
    with zipfile.ZipFile(archive, "w") as file:
        for path in sources:
            file.write(path, f"dpublish/{path.relative_to(root).as_posix()}")
    known = list(sys.path)
    context.addPyFile(str(archive))
    sys.path[:] = known  # this process has the package already
    return archive.name


def _versions() -> dict[str, str]:
    return {"numpy": np.__version__, "pyarrow": pa.__version__}


def probe_worker(incoming: Iterator[Any]) -> Iterator[Any]:
    """Tell the versions of a worker; reads no row of a table."""
    for _ in incoming:
        pass
    version = sys.version.split()[0].rpartition(".")[0]
    found = {"code": str(__file__), "python": version, **_versions()}
    yield pa.RecordBatch.from_pylist([found])


def _probe(session: Any) -> list[dict[str, str]]:
    context = session.sparkContext
    parts = max(2, min(int(context.defaultParallelism), 64))
    fields = "code string, python string, numpy string, pyarrow string"

    def run() -> list[dict[str, str]]:
        with silent():
            data = session.range(0, parts, 1, parts).mapInArrow(probe_worker, fields)
            rows: list[dict[str, str]] = data.toArrow().to_pylist()
        return rows

    found: list[dict[str, str]] = _within_patience(run, context)
    return found


def _within_patience(run: Callable[[], Any], context: Any) -> Any:
    """Run a job over no private data; say what went wrong, as nothing in it is private."""
    answers: list[Any] = []
    problems: list[str] = []

    def attempt() -> None:
        try:
            answers.append(run())
        except Exception as error:  # noqa: BLE001 - it is sorted out below
            problems.append(str(error))

    thread = threading.Thread(target=attempt, daemon=True)
    thread.start()
    thread.join(PATIENCE)
    if answers:
        return answers[0]
    if not problems:
        context.cancelAllJobs()
        raise UnreadableData(
            f"no executor of {context.master} ran a small job within {PATIENCE} seconds; check "
            "that its workers are up and have cores and memory free"
        )
    raise UnreadableData(_explain(problems[0]))


def _explain(problem: str) -> str:
    """Say what keeps a worker from running our code."""
    version = ".".join(map(str, sys.version_info[:2]))
    lacking = re.search(r"No module named '([\w.]+)'", problem)
    if "PYTHON_VERSION_MISMATCH" in problem:
        return (
            f"the workers of this cluster run another Python than this process ({version}); set "
            "PYSPARK_PYTHON to the same version before the session starts"
        )
    if lacking:
        return (
            f"the workers' Python lacks {lacking[1]}; they need Python {version} with numpy, "
            "pyarrow and pyspark (PYSPARK_PYTHON names it)"
        )
    return (
        "the workers of this cluster could not run a small job; check that PYSPARK_PYTHON names "
        f"a Python {version} that each of them has"
    )


# --- A session of our own ---------------------------------------------------------------------


class OwnSession:
    """A Spark session that was started for one table, and ends with it or with the process."""

    def __init__(self, session: Any, folder: str) -> None:
        self.session = session
        self._end = weakref.finalize(self, _stop, session, folder)

    def close(self) -> None:
        """Stop the session and remove its files."""
        self._end()


def _stop(session: Any, folder: str) -> None:
    """Stop the session and its Java process, and remove what they wrote."""
    from pyspark import SparkContext

    with suppress(Exception):  # it may be gone already
        gateway: Any = SparkContext._gateway
        session.stop()
        gateway.shutdown()
        gateway.proc.stdin.close()
        gateway.proc.wait(timeout=_ENDING)
    SparkContext._gateway = SparkContext._jvm = None
    shutil.rmtree(folder, ignore_errors=True)


def open_spark(
    data: str | None,
    schema: Schema,
    *,
    table: str | None = None,
    columns: Sequence[str] | None = None,
    master: str = "local[*]",
    settings: Mapping[str, str] | None = None,
    where: str | None = None,
    derive: str | Sequence[str] = (),
    lookups: Lookup | Sequence[Lookup] = (),
) -> SparkTable:
    """Start a Spark session that keeps rows private, and open a table in it.

    The session ends when the table is closed, or with the process.

    Args:
        data: Path, pattern or folder of Parquet files, as Spark takes it (`s3a://...`); None
            if `table` names a table of the catalog.
        schema: What is publicly known about the rows.
        table: A table of Spark's catalog.
        columns: Which columns of the schema will be read, such as `method.reads(schema)` (None:
            all); the rows may lack the others.
        master: Where Spark runs: `local[4]`, `spark://host:7077`, `yarn`, `k8s://...`.
        settings: Further settings of Spark, such as `{"spark.executor.memory": "8g"}`.
        where: A condition on single records, as for `open_table`.
        derive: Columns to compute from others of the same record, as for `open_table`.
        lookups: Public tables to join by a key, as for `open_table`.
    """
    if (data is None) == (table is None):
        raise InvalidParameter("give data (Parquet files), or table (a table of the catalog)")
    steps = read_steps(where, derive, lookups)
    _check_master(master)
    _require_pyspark()
    _require_java()
    session = _start(master, dict(settings or {}), has_catalog=table is not None)
    try:
        label = str(data if table is None else table)
        return _open(_find(session.session, data, table), schema, columns, label, session, steps)
    except BaseException:
        session.close()
        raise


def _find(session: Any, data: str | None, table: str | None) -> Any:
    if table is not None:
        message = f"there is no table {table} in Spark's catalog, or it cannot be read"
        return quietly(lambda: session.table(table), message)
    message = f"Spark finds no Parquet files that it can read at {data}"
    return quietly(lambda: session.read.parquet(data), message)


def _check_master(master: str) -> None:
    """Refuse a master that Spark would look for in vain."""
    if not _MASTERS.fullmatch(master):
        raise InvalidParameter(
            f"{master!r} is no address of a Spark master; give local[4], spark://host:7077, yarn "
            "or k8s://https://host:port"
        )
    if not master.startswith("spark://"):
        return
    for address in master.removeprefix("spark://").split(","):
        host, _, port = address.rpartition(":")
        if not (host and port.isdigit() and int(port) < 1 << 16):
            raise InvalidParameter(f"{master!r} lacks a host or port, as in spark://host:7077")
        if _answers(host, int(port)):
            return
    raise UnreadableData(f"no Spark master answers at {master}; check that it is up")


def _answers(host: str, port: int) -> bool:
    try:
        with socket.create_connection((host, port), timeout=_ANSWER):
            return True
    except OSError:
        return False


def _require_pyspark() -> None:
    # PySpark itself asks for pandas.
    if find_spec("pyspark") is None or find_spec("pandas") is None:
        raise InvalidParameter('Spark needs PySpark and pandas: pip install "dpublish[spark]"')
    from pyspark import SparkContext

    if SparkContext._active_spark_context is not None:
        raise InvalidParameter(
            "a Spark session runs in this process already; open its DataFrame with open_table"
        )


def _require_java() -> None:
    home = os.environ.get("JAVA_HOME")
    program = shutil.which("java", path=f"{home}/bin" if home else None)
    advice = f"install Java {_JAVA} or newer, or set JAVA_HOME to it"
    if program is None:
        raise InvalidParameter(f"Spark needs Java, which is not found; {advice}")
    told = subprocess.run([program, "-version"], capture_output=True, text=True, check=False)
    version = re.search(r'version "(\d+)', told.stderr)
    if version is None or int(version[1]) < _JAVA:
        raise InvalidParameter(f"Spark needs Java {_JAVA} or newer; {advice}")


def _start(master: str, settings: dict[str, str], *, has_catalog: bool) -> OwnSession:
    from pyspark.sql import SparkSession

    folder = tempfile.mkdtemp(prefix="dpublish-spark-")  # for its owner alone
    chosen = _private_settings(master, folder, has_catalog) | settings
    builder = SparkSession.builder.master(master).appName("dpublish")
    for name, value in chosen.items():
        builder = builder.config(name, value)
    try:
        check_settings(chosen, master)
        with _environment(master), silent(), _without_errors(), _interrupted_later() as waiting:
            session = OwnSession(quietly(builder.getOrCreate, _no_session(master)), folder)
    except DPublishError:
        shutil.rmtree(folder, ignore_errors=True)
        raise
    if waiting:
        session.close()
        raise KeyboardInterrupt
    return session


def _no_session(master: str) -> str:
    return f"no Spark session could be started at {master}; check the master and the settings"


def _private_settings(master: str, folder: str, has_catalog: bool) -> dict[str, str]:
    """List the settings that keep rows private, for a session of our own."""
    chosen = {need.name: need.values[0] for need in NEEDS} | {
        "spark.ui.showConsoleProgress": "false",
        "spark.local.dir": folder,
        "spark.driver.extraJavaOptions": NO_LOG,
        JAVA_OPTIONS: NO_LOG,
    }
    if not has_catalog:
        chosen["spark.sql.warehouse.dir"] = f"{folder}/warehouse"
    if master.startswith("local"):
        chosen |= {"spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1"}
    return chosen


@contextmanager
def _interrupted_later() -> Iterator[list[int]]:
    """Note Ctrl-C instead of ending: Java, once started, would go on without this process."""
    waiting: list[int] = []
    if threading.current_thread() is not threading.main_thread():
        yield waiting  # signals come to the main thread only
        return
    before = signal.signal(signal.SIGINT, lambda number, _: waiting.append(number))
    try:
        yield waiting
    finally:
        signal.signal(signal.SIGINT, before)


@contextmanager
def _without_errors() -> Iterator[None]:
    """Start programs whose errors go nowhere: Java greets there, and may quote rows later."""
    kept, nowhere = os.dup(2), os.open(os.devnull, os.O_WRONLY)
    try:
        os.dup2(nowhere, 2)
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)
        os.close(nowhere)


@contextmanager
def _environment(master: str) -> Iterator[None]:
    """Start with the same Python for workers, and for local masters on loopback only."""
    wanted = {"PYSPARK_PYTHON": sys.executable}
    if master.startswith("local"):
        wanted["SPARK_LOCAL_IP"] = "127.0.0.1"
    lacking = {name: value for name, value in wanted.items() if name not in os.environ}
    os.environ.update(lacking)
    try:
        yield
    finally:
        for name in lacking:
            del os.environ[name]
