"""An S3-compatible server of the tests' own (moto), on loopback, gone with the tests.

It has an environment of its own, because it needs other versions of packages than we pin:
`make s3-server`.  Where that was not made, tests that need it are skipped.
"""

import os
import socket
import subprocess
import time
from contextlib import contextmanager
from pathlib import Path

import pytest

PROGRAM = Path(__file__).resolve().parent.parent / ".venv-s3" / "bin" / "moto_server"


def require_program():
    """Find the server's program; without it skip the test, or fail in continuous integration."""
    program = Path(os.environ.get("DPUBLISH_S3_SERVER", PROGRAM))
    if program.exists():
        return program
    message = "there is no S3-compatible server here; run: make s3-server"
    if os.environ.get("CI"):
        pytest.fail(message)
    pytest.skip(message)


@contextmanager
def running_server():
    """Start a server, yield the settings of its addresses, and stop it afterward."""
    program = require_program()
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    process = subprocess.Popen([str(program), "-H", "127.0.0.1", "-p", str(port)], **quiet)
    try:
        _wait_for(port)
        yield f"?region=us-east-1&scheme=http&endpoint_override=127.0.0.1:{port}"
    finally:
        process.terminate()
        process.wait(timeout=30)


def _wait_for(port):
    for _ in range(300):
        try:
            socket.create_connection(("127.0.0.1", port)).close()
            return
        except OSError:
            time.sleep(0.1)
    raise TimeoutError("the S3-compatible server does not answer")
