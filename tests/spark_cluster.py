"""A Spark cluster on loopback with two executors, for tests; it leaves nothing behind.

`local-cluster` starts a master, two workers and an executor process for each.  Executors keep
their logs below SPARK_HOME, so that is a folder of links which is removed afterward.
"""

import os
import shutil
import signal
import subprocess
import sys
import tempfile
from contextlib import contextmanager
from pathlib import Path

import pytest

MASTER = "local-cluster[2,1,1024]"
SETTINGS = {
    "spark.ui.enabled": "false",
    "spark.eventLog.enabled": "false",
    "spark.io.encryption.enabled": "true",
    "spark.log.level": "OFF",
    "spark.driver.extraJavaOptions": "-Dlog4j2.level=OFF",
    "spark.executor.extraJavaOptions": "-Dlog4j2.level=OFF",
    "spark.ui.showConsoleProgress": "false",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.memory": "512m",
    "spark.executor.memory": "512m",
    "spark.sql.shuffle.partitions": "4",
    "spark.deploy.maxExecutorRetries": "-1",  # executors that tests kill are always replaced
}


def require_java():
    """Skip where there is no Java or PySpark; fail in continuous integration."""
    lacking = None
    if shutil.which("java") is None:
        lacking = "Spark's tests need Java 17 or newer"
    else:
        try:
            import pyspark  # noqa: F401
        except ImportError:
            lacking = 'Spark\'s tests need PySpark: pip install "dpublish[spark]"'
    if lacking is not None:
        if os.environ.get("CI"):
            pytest.fail(lacking)
        pytest.skip(lacking)


class SparkCluster:
    """A session on the cluster, and the processes of its executors."""

    def __init__(self, session, folder):
        self.session = session
        self.folder = Path(folder)

    def executors(self):
        """List the processes of the executors that this test run started."""
        return [pid for pid, line in self._children() if "CoarseGrainedExecutorBackend" in line]

    def python_workers(self):
        """List the Python processes that run tasks: children of the executors' daemons."""
        return [pid for pid, line in self._children() if "pyspark.worker" in line]

    def kill(self, pid):
        os.kill(pid, signal.SIGKILL)

    def _children(self):
        listed = subprocess.run(
            ["ps", "-ww", "-eo", "pid,ppid,args"], capture_output=True, text=True, check=True
        ).stdout.splitlines()[1:]
        rows = [line.split(None, 2) for line in listed]
        found, known = [], {os.getpid()}
        for _ in range(6):  # children, their children, ...
            for pid, parent, line in rows:
                if int(parent) in known and int(pid) not in known:
                    known.add(int(pid))
                    found.append((int(pid), line))
        return found


def link_home(folder):
    """Make a SPARK_HOME of links, in which executors may write their logs."""
    import pyspark

    home = Path(folder) / "home"
    home.mkdir()
    for inside in Path(pyspark.__file__).parent.iterdir():
        if inside.name in ("bin", "jars", "python", "sbin"):
            (home / inside.name).symlink_to(inside)
    return home


@contextmanager
def running_cluster():
    """Start a cluster, and stop it and remove its folder afterward."""
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

    folder = tempfile.mkdtemp(prefix="dpublish-cluster-")
    before = dict(os.environ)
    os.environ |= {
        "SPARK_HOME": str(link_home(folder)),
        "SPARK_LOCAL_IP": "127.0.0.1",
        "PYSPARK_PYTHON": sys.executable,
    }
    try:
        builder = SparkSession.builder.master(MASTER).appName("tests")
        for name, value in SETTINGS.items():
            builder = builder.config(name, value)
        builder = builder.config("spark.local.dir", f"{folder}/local")
        session = builder.config("spark.sql.warehouse.dir", f"{folder}/warehouse").getOrCreate()
        try:
            yield SparkCluster(session, folder)
        finally:
            gateway = SparkContext._gateway
            session.stop()
            end_gateway(gateway)
    finally:
        os.environ.clear()
        os.environ.update(before)
        shutil.rmtree(folder, ignore_errors=True)


def end_gateway(gateway):
    """End the Java process, too, so that another test may start one with other settings."""
    from pyspark import SparkContext

    gateway.shutdown()
    gateway.proc.stdin.close()
    gateway.proc.wait(timeout=60)
    SparkContext._gateway = SparkContext._jvm = None
