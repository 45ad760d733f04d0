"""Where peers run: each in an environment of its own, which `make peers` installs.

A script of a peer gets a file of arrays and writes one.  It runs alone, at low priority, with one
thread.  Its version is read from the file of requirements that the environment was made from.
"""

import os
import subprocess
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

HERE = Path(__file__).resolve().parent
ENVIRONMENTS = HERE.parent.parent / ".venv-peers"
Arrays = dict[str, NDArray[Any]]


class Peer(NamedTuple):
    """A package that is measured: what its environment and it are called, and whom it hides."""

    environment: str
    package: str
    shown: str

    @property
    def python(self) -> Path:
        """The interpreter of its environment."""
        return ENVIRONMENTS / self.environment / "bin" / "python"

    @property
    def version(self) -> str:
        """Its version, as pinned."""
        pinned = (HERE / f"requirements-{self.environment}.txt").read_text("utf-8")
        found = [line.partition("==")[2] for line in pinned.splitlines()
                 if line.partition("==")[0] == self.package]  # fmt: skip
        return found[0]

    @property
    def title(self) -> str:
        """Its name and version, as tables show them."""
        return f"{self.shown} {self.version}"


PEERS = {
    "diffprivlib": Peer("diffprivlib", "diffprivlib", "diffprivlib"),
    "dpmm": Peer("dpmm", "dpmm", "dpmm"),
    "opendp": Peer("opendp", "opendp", "OpenDP"),
    "pipelinedp": Peer("pipelinedp", "pipeline-dp", "PipelineDP"),
    "sdv": Peer("sdv", "sdv", "SDV"),
    "smartnoise-sql": Peer("smartnoise-sql", "smartnoise-sql", "SmartNoise SQL"),
    "smartnoise-synth": Peer("smartnoise-synth", "smartnoise-synth", "SmartNoise Synth"),
    "tumult": Peer("tumult", "tmlt.analytics", "Tumult Analytics"),
}


class Stopped(Exception):
    """A peer did not finish: why, in words."""


def run_script(script: str, peer: Peer, given: Mapping[str, Any], minutes: float) -> Arrays:
    """Run a script of this folder in a peer's environment, and read what it wrote."""
    if not peer.python.is_file():
        raise Stopped("not installed")
    with tempfile.TemporaryDirectory() as folder:
        source, result = Path(folder) / "given.npz", Path(folder) / "made.npz"
        np.savez(source, **given)
        command = ["nice", str(peer.python), "-W", "ignore", str(HERE / script), source, result]
        settings = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
        settings["PYSPARK_PYTHON"] = str(peer.python)  # Spark would start another one
        try:
            done = subprocess.run(
                command,
                capture_output=True,
                text=True,
                timeout=60 * minutes,
                env={**os.environ, **settings},
                cwd=folder,
            )
        except subprocess.TimeoutExpired:
            raise Stopped(f"stopped after {minutes:g} minutes") from None
        if done.returncode:
            last = (done.stderr.strip().splitlines() or ["no message"])[-1]
            raise Stopped(f"failed: {last[:200]}")
        stored = np.load(result, allow_pickle=False)
        return {name: stored[name] for name in stored.files}
