"""A PostgreSQL server of the tests' own: on loopback, in a temporary folder, gone with the tests.

The programs are those of the machine.  Where they are missing, tests that need a server are
skipped.  A server does not run as root, so root starts it as another user.
"""

import os
import shutil
import socket
import subprocess
import tempfile
import time
from contextlib import contextmanager
from pathlib import Path
from threading import Thread

import pytest

OWNER = "dpublish_owner"
_UNPRIVILEGED = ("postgres", "daemon")


def programs():
    """Find the folder of the server's programs; None if they are not on this machine."""
    folders = [
        Path(found).resolve().parent for name in ("initdb",) if (found := shutil.which(name))
    ]
    listed = sorted(Path("/usr/lib/postgresql").glob("*/bin"), key=lambda x: x.parent.name)
    for folder in [*listed[::-1], *folders]:
        if all((folder / name).exists() for name in ("initdb", "pg_ctl", "postgres")):
            return folder
    return None


def require_programs():
    """Skip the test where there is no PostgreSQL; in continuous integration that is an error."""
    if programs() is None:
        message = "PostgreSQL (initdb, pg_ctl) is not installed on this machine"
        if os.environ.get("CI"):
            pytest.fail(message)
        pytest.skip(message)


class PostgresServer:
    """A server on a free port of 127.0.0.1; `uri()` is how its owner connects."""

    def __init__(self, folder):
        self.folder = Path(folder)
        self.port = _free_port()
        self._programs = programs()
        self._user = _other_user() if os.geteuid() == 0 else None
        if self._user is not None:
            os.chmod(self.folder, 0o755)
            shutil.chown(self.folder, self._user)
        self._run("initdb", "-D", "data", "-A", "trust", "-U", OWNER, "--no-sync", "-E", "UTF8")
        self.start()

    def uri(self, database="postgres", user=OWNER):
        return f"postgresql://{user}@127.0.0.1:{self.port}/{database}"

    def start(self):
        options = f"-p {self.port} -c listen_addresses=127.0.0.1 -c unix_socket_directories=''"
        self._run("pg_ctl", "-D", "data", "-l", "log", "-w", "-o", options, "start")

    def stop(self, mode="fast"):
        """Stop it: `fast` ends connections, `immediate` is as if it had crashed."""
        self._run("pg_ctl", "-D", "data", "-m", mode, "-w", "stop")

    def restart(self, mode="immediate"):
        self.stop(mode)
        self.start()

    def execute(self, *statements, database="postgres", user=OWNER):
        """Run statements one by one, each committed at once; return the rows of the last."""
        import psycopg

        with psycopg.connect(self.uri(database, user), autocommit=True) as connection:
            for statement in statements:
                cursor = connection.execute(statement)
            return cursor.fetchall() if cursor.description else []

    def await_standbys(self):
        """Wait until commits wait for standbys: a server takes up new settings a moment later."""
        probe = "SELECT pg_logical_emit_message(true, 'probe', '')"
        cancel = "SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE wait_event = 'SyncRep'"
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline:
            commit = Thread(target=self.execute, args=(probe,), daemon=True)
            commit.start()
            while commit.is_alive() and time.monotonic() < deadline:
                if self.execute("SET synchronous_commit = local", cancel):
                    commit.join(10)
                    return
                time.sleep(0.02)
        raise AssertionError("no commit waits for a standby")

    @contextmanager
    def database(self):
        """Make an empty database for one test, and yield its name."""
        name = f"test_{os.urandom(6).hex()}"
        self.execute(f"CREATE DATABASE {name}")
        try:
            yield name
        finally:
            self.execute(f"DROP DATABASE {name} WITH (FORCE)")

    def _run(self, program, *words):
        command = [str(self._programs / program), *words]
        if self._user is not None:
            command = ["runuser", "-u", self._user, "--", *command]
        done = subprocess.run(
            command,
            cwd=self.folder,
            check=False,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            timeout=120,
            env=os.environ | {"LC_ALL": "C.UTF-8"},
        )
        if done.returncode:
            raise RuntimeError(f"{program} failed: {done.stderr.decode(errors='replace')}")


def _other_user():
    import pwd

    known = {entry.pw_name for entry in pwd.getpwall()}
    return next(name for name in _UNPRIVILEGED if name in known)


def _free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


@contextmanager
def running_server():
    """Start a server, and stop it and remove its folder afterward."""
    folder = tempfile.mkdtemp(prefix="dpublish-postgres-")
    try:
        server = PostgresServer(folder)
        try:
            yield server
        finally:
            server.stop("immediate")
    finally:
        shutil.rmtree(folder, ignore_errors=True)
