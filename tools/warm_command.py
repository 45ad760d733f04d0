"""Run `dpublish` many times without importing it many times, for the examples of pages.

A server imports the command with all that it uses and forks for each call; the child takes over
the caller's arguments, folder, environment and streams, and leaves with the command's exit code.
`command_folder()` is a folder to put first in PATH: its `dpublish` calls the server.
"""

import array
import atexit
import json
import os
import socket
import subprocess
import sys
import tempfile
from contextlib import suppress
from functools import cache
from importlib import import_module
from pathlib import Path

STREAMS = (0, 1, 2)
_MODULES = (
    "dpublish.cli.release",
    "dpublish.cli.datasets",
    "dpublish.cli.use",
    "dpublish.cli.plan",
    "dpublish.cli.methods",
    "dpublish.cli.stream",
    "dpublish.datasets.files",
    "dpublish.report.page",
    "dpublish.publishing",
    "dpublish.plots.style",
    "duckdb",
    "matplotlib.figure",
    "matplotlib.backends.backend_svg",
    "pyarrow.csv",
    "pyarrow.parquet",
    "scipy.optimize",
    "scipy.stats",
)
_CLIENT = """#!{python} -IS
import array, json, os, socket, sys
line = socket.socket(socket.AF_UNIX)
line.connect({address!r})
call = json.dumps([sys.argv[1:], os.getcwd(), dict(os.environ)]).encode()
rights = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", (0, 1, 2)))]
line.sendmsg([len(call).to_bytes(8, "big")], rights)
line.sendall(call)
sys.exit(int.from_bytes(line.recv(1) or b"\\xff", "big"))
"""


@cache
def command_folder() -> Path:
    """Start a server, and return a folder with a `dpublish` that calls it."""
    folder = Path(tempfile.mkdtemp(prefix="warm-"))
    address = str(folder / "socket")
    listening = socket.socket(socket.AF_UNIX)
    listening.bind(address)
    listening.listen()
    server = subprocess.Popen(
        [sys.executable, __file__, str(listening.fileno())],
        pass_fds=[listening.fileno()],
        stdin=subprocess.DEVNULL,
        start_new_session=True,
    )
    listening.close()
    atexit.register(server.wait)
    atexit.register(server.terminate)
    program = folder / "dpublish"
    program.write_text(_CLIENT.format(python=sys.executable, address=address), "utf-8")
    program.chmod(0o755)
    return folder


def serve(listening: socket.socket) -> None:
    """Answer calls for good, each in a child of its own."""
    for name in _MODULES:
        import_module(name)
    while True:
        line, _ = listening.accept()
        if os.fork() == 0:  # a child for the call, so that calls can overlap
            listening.close()
            _answer(line)
            os._exit(0)
        line.close()
        with suppress(ChildProcessError):  # none is left
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass


def _answer(line: socket.socket) -> None:
    """Run one call in a child, and tell the caller how it ended."""
    received, rights, _, _ = line.recvmsg(8, socket.CMSG_SPACE(3 * 4))
    streams = array.array("i")
    for _, _, data in rights:
        streams.frombytes(data)
    wanted = int.from_bytes(received, "big")
    text = b""
    while len(text) < wanted:
        text += line.recv(wanted - len(text))
    words, folder, variables = json.loads(text)
    child = os.fork()
    if child == 0:
        line.close()
        _become(streams, words, folder, variables)
    _, status = os.waitpid(child, 0)
    line.sendall(bytes([os.waitstatus_to_exitcode(status) & 0xFF]))


def _become(
    streams: "array.array[int]", words: list[str], folder: str, variables: dict[str, str]
) -> None:
    """Run the command as the caller, and end the process."""
    for wanted, given in zip(STREAMS, streams, strict=True):
        os.dup2(given, wanted)
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(variables)
    sys.argv = ["dpublish", *words]
    code = 0
    try:
        from dpublish.cli.main import run

        run()
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else int(end.code is not None)
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


if __name__ == "__main__":
    serve(socket.socket(fileno=int(sys.argv[1])))
