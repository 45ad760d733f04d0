"""A command that is asked to end, or killed, leaves no private row and nothing half done."""

import os
import signal
import subprocess
import sys
import time
from contextlib import contextmanager

import pytest

from dpublish.data.schema_file import dumps_toml
from dpublish.ledger.ledger import Ledger
from stream_world import SCHEMA as RIDES
from stream_world import make_ledger

STOPS = [(signal.SIGTERM, 143), (signal.SIGHUP, 129)]
COMMAND = (sys.executable, "-m", "dpublish")
PATIENCE = 120  # seconds; for a busy machine
RELEASE = (
    *("release", "--method", "histogram", "--columns", "age,sex", "--data", "people.csv"),
    *("--schema", "people.toml", "--epsilon", "1", "--ledger", "books.db", "--dataset", "people"),
    *("-o", "shelf/out"),
)
NEXT = ("stream", "next", "rides.stream", "-", "--time", "noon")
SLOW_SAVING = """
import sys, time
from dpublish.cli.main import run
from dpublish.core.folder import folder
folder.sync = lambda path: time.sleep(600)
run()
"""


def wait_until(is_so):
    end = time.monotonic() + PATIENCE
    while not is_so():
        assert time.monotonic() < end
        time.sleep(0.01)


def heed():
    """Heed what whoever runs the tests may ignore, as under nohup."""
    signal.signal(signal.SIGHUP, signal.SIG_DFL)


@contextmanager
def running(folder, *words, command=COMMAND, **options):
    """Run the command with a temporary folder of its own; end it whatever happens."""
    (folder / "temporary").mkdir(exist_ok=True)
    (folder / "shelf").mkdir(exist_ok=True)
    options.setdefault("preexec_fn", heed)
    process = subprocess.Popen(
        [*command, *words],
        cwd=folder,
        env=os.environ | {"TMPDIR": str(folder / "temporary")},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        **options,
    )
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def stop(process, number):
    process.send_signal(number)
    code = process.wait(PATIENCE)
    return code, process.stderr.read().decode()


def grants(folder, dataset="people"):
    with Ledger(folder / "books.db") as ledger:
        return ledger.status(dataset).grants


@pytest.fixture
def people(workdir):
    """Rows with a lone carriage return, and then a record so long that reading takes seconds."""
    path = workdir / "people.csv"
    path.write_bytes(b"age,sex\n31,Female\r\n8,Ma\rle\n64,")
    os.truncate(path, 1 << 30)  # takes no room on the disk
    return workdir


@pytest.mark.parametrize(
    ("number", "code"), [*STOPS, (signal.SIGINT, 130), (signal.SIGKILL, -signal.SIGKILL)]
)
def test_a_stopped_release_leaves_no_row_and_no_folder(people, number, code):
    with running(people, *RELEASE) as process:
        wait_until(lambda: grants(people))  # from here on rows are read
        found, words = stop(process, number)
    assert found == code
    assert number == signal.SIGKILL or "stays debited" in words
    assert list((people / "temporary").iterdir()) == []
    assert list((people / "shelf").iterdir()) == []
    assert [grant.state for grant in grants(people)] == ["interrupted or running"]


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_release_that_is_stopped_while_it_is_saved_takes_its_folder_away(workdir, number):
    shelf = workdir / "shelf"
    with running(workdir, *RELEASE, command=(sys.executable, "-c", SLOW_SAVING)) as process:
        wait_until(lambda: list(shelf.glob(".*.partial/release.json")))
        process.send_signal(number)
        assert stop(process, signal.SIGTERM)[0] in (129, 143)  # two in a row do as one
    assert list(shelf.iterdir()) == []
    assert [grant.state for grant in grants(workdir)] == ["interrupted or running"]


@pytest.fixture
def rides(tmp_path):
    make_ledger(tmp_path)
    (tmp_path / "rides.toml").write_text(dumps_toml(RIDES))
    start = ("stream", "start", "rides.stream", "--method", "per-snapshot", "--columns", "zone")
    paid = ("--window", "4", "--epsilon", "2", "--ledger", "books.db", "--dataset", "rides")
    with running(tmp_path, *start, "--schema", "rides.toml", *paid, "-o", "shelf/out") as process:
        assert process.wait(PATIENCE) == 0
    return tmp_path


def feed(process, header):
    """Write more rows than a pipe holds: when that is done, the command is reading them."""
    process.stdin.write(header + b"z1,3,7\n" * 100_000)
    process.stdin.flush()


@pytest.mark.parametrize(("number", "code"), [*STOPS, (signal.SIGKILL, -signal.SIGKILL)])
def test_rows_from_standard_input_are_written_nowhere(rides, number, code):
    before = sorted(rides.rglob("*"))
    with running(rides, *NEXT, stdin=subprocess.PIPE) as process:
        feed(process, ",".join([*RIDES.names, str(RIDES.unit)]).encode() + b"\n")
        assert list((rides / "temporary").iterdir()) == []  # while they are being read, too
        assert stop(process, number)[0] == code
    left = {path for path in rides.rglob("*") if path not in before}
    assert {path.name for path in left} <= {"rides.stream-wal", "rides.stream-shm"}
    assert not any(b"z1,3,7" in path.read_bytes() for path in rides.rglob("*") if path.is_file())


def test_a_signal_that_is_ignored_from_the_start_stays_ignored(rides):
    def ignore():  # as nohup does
        signal.signal(signal.SIGHUP, signal.SIG_IGN)

    with running(rides, *NEXT, stdin=subprocess.PIPE, preexec_fn=ignore) as process:
        feed(process, ",".join([*RIDES.names, str(RIDES.unit)]).encode() + b"\n")
        process.send_signal(signal.SIGHUP)
        process.communicate(timeout=PATIENCE)
        assert process.returncode == 0
