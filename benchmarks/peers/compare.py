"""How good are synthetic rows of other packages?  MST and AIM of dpmm and of OpenDP.

Peers get the same 80 % of the same tables as our methods in `benchmarks/accuracy/synth.py`, cut
into the same 20 bins, and their rows are measured in the same way.  Our methods go along, on the
same bins.  Each package runs in an environment of its own, which `make peers` installs; one that
is not there is left out, and named with what was measured earlier.

A peer takes minutes for each release, and runs alone at low priority.

Run: .venv/bin/python benchmarks/peers/compare.py [--datasets adult] [--epsilons 1] [--peers NAME]
"""

import argparse
import os
import secrets
import subprocess
import sys
import tempfile
from pathlib import Path
from statistics import fmean
from typing import NamedTuple

import numpy as np
from rich.console import Console
from rich.table import Table as RichTable

HERE = Path(__file__).resolve().parent
ENVIRONMENTS = HERE.parent.parent / ".venv-peers"
sys.path.insert(0, str(HERE.parent / "accuracy"))

from synth import DIGITS, HEADINGS, METHODS, Setup, measure  # noqa: E402
from synth_measures import BINS, SOURCES, Codes, Reference, auc, load, measures  # noqa: E402

from dpublish.core.registry import list_methods  # noqa: E402
from dpublish.errors import UnreadableData  # noqa: E402

DELTA = "1e-9"
PURE = "0"
OUR_RELEASES = 3


class Peer(NamedTuple):
    """A synthesizer of another package: its environment, its script, and its guarantee."""

    package: str
    algorithm: str
    delta: str

    @property
    def python(self) -> Path:
        """The interpreter of its environment."""
        return ENVIRONMENTS / self.package / "bin" / "python"


class Made(NamedTuple):
    """Rows of a peer, as codes, and what they cost."""

    codes: Codes
    seconds: float
    megabytes: float


class Stopped(Exception):
    """A peer did not finish: why, in words."""


PEERS = {
    "dpmm-mst": Peer("dpmm", "mst", DELTA),
    "dpmm-aim": Peer("dpmm", "aim", DELTA),
    "opendp-mst": Peer("opendp", "mst", PURE),
    "opendp-mst-delta": Peer("opendp", "mst", DELTA),
    "opendp-aim-delta": Peer("opendp", "aim", DELTA),
}
DEFAULT_PEERS = ("dpmm-mst", "dpmm-aim", "opendp-mst")
EARLIER = {
    ("dpmm-mst", "adult", "1"): 0.0428,
    ("dpmm-mst", "adult", "0.1"): 0.095,
    ("dpmm-mst", "acs", "1"): 0.057,
    ("dpmm-mst", "acs", "0.1"): 0.151,
    ("dpmm-aim", "adult", "1"): 0.0287,
    ("dpmm-aim", "adult", "0.1"): 0.088,
    ("dpmm-aim", "acs", "1"): 0.045,
    ("dpmm-aim", "acs", "0.1"): 0.183,
}
"""2-way TV that was measured earlier on a split and bins of the same kind (see README.md)."""


def run_peer(peer: Peer, reference: Reference, epsilon: str, minutes: float) -> Made:
    """Let a peer synthesize rows in its own environment."""
    if not peer.python.is_file():
        raise Stopped("not installed")
    with tempfile.TemporaryDirectory() as folder:
        given, made = Path(folder) / "given.npz", Path(folder) / "made.npz"
        np.savez(given, codes=reference.train_codes, sizes=np.array(reference.sizes))
        script = HERE / f"{peer.package}_rows.py"
        command = ["nice", str(peer.python), str(script), str(given), str(made)]
        try:
            done = subprocess.run(
                [*command, peer.algorithm, epsilon, peer.delta],
                capture_output=True,
                text=True,
                timeout=60 * minutes,
                env={**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"},
            )
        except subprocess.TimeoutExpired:
            raise Stopped(f"stopped after {minutes:g} minutes") from None
        if done.returncode:
            last = (done.stderr.strip().splitlines() or ["no message"])[-1]
            raise Stopped(f"failed: {last[:100]}")
        stored = np.load(made, allow_pickle=False)
        return Made(stored["codes"], float(stored["seconds"]), float(stored["megabytes"]))


def measure_peer(
    peer: Peer, reference: Reference, epsilon: str, options: argparse.Namespace
) -> dict[str, float]:
    """Average the measures of a few releases of a peer."""
    runs = []
    for _ in range(options.releases):
        made = run_peer(peer, reference, epsilon, options.minutes)
        found = measures(reference, made.codes)
        if options.auc:
            found["auc"] = auc(reference, made.codes)
        runs.append({**found, "seconds": made.seconds, "megabytes": made.megabytes})
    return {key: fmean(run[key] for run in runs) for key in runs[0]}


def measure_ours(
    method: str, reference: Reference, epsilon: str, options: argparse.Namespace
) -> dict[str, float]:
    """Average the measures of a few releases of one of our methods, on the peers' bins."""
    first = secrets.randbits(62)
    setup = Setup(method, epsilon, BINS)
    runs = [measure(reference, setup, first + k, options.auc) for k in range(OUR_RELEASES)]
    return {key: fmean(run[key] for run in runs) for key in runs[0]}


def show_dataset(reference: Reference, options: argparse.Namespace, console: Console) -> list[str]:
    """Print the table of one dataset, and return what goes into the last line."""
    shown = RichTable(title=f"{reference.name}: {reference.train.num_rows:,} rows, {BINS} bins")
    keys = [key for key in HEADINGS if key != "auc" or options.auc]
    for heading in ("who", "δ", "ε"):
        shown.add_column(heading)
    for key in keys:
        shown.add_column(HEADINGS[key], justify="right")
    shown.add_column("MB", justify="right")
    results = []

    def add(name: str, delta: str, epsilon: str, found: dict[str, float]) -> None:
        cells = [f"{found[key]:.{DIGITS.get(key, 4)}f}" for key in keys]
        memory = f"{found['megabytes']:.0f}" if "megabytes" in found else ""
        shown.add_row(name, delta, epsilon, *cells, memory)
        label = f"eps{epsilon}_{name.replace('-', '_')}"
        watched = [key for key in ("tv2", "auc") if key in found]
        results.extend(f"{reference.name}_{key}_{label}={found[key]:.4f}" for key in watched)

    for epsilon in options.epsilons:
        for name in options.peers:
            peer = PEERS[name]
            try:
                add(name, peer.delta, epsilon, measure_peer(peer, reference, epsilon, options))
            except Stopped as why:
                earlier = EARLIER.get((name, reference.name, epsilon))
                note = "" if earlier is None else f"; TV 2 measured earlier: {earlier}"
                console.print(f"{name}, {reference.name}, ε = {epsilon}: {why}{note}")
        known = {method.name for method in list_methods()}
        for method in (each for each in options.ours if each in known):
            add(method, PURE, epsilon, measure_ours(method, reference, epsilon, options))
        shown.add_section()
    console.print(shown)
    return results


def read_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Accuracy of the synthetic rows of peers")
    parser.add_argument("--data-folder", help="where the tables are; DPUBLISH_DATA if absent")
    parser.add_argument("--datasets", nargs="+", choices=SOURCES, default=["adult"])
    parser.add_argument("--epsilons", nargs="+", default=["1"])
    parser.add_argument("--peers", nargs="*", choices=PEERS, default=list(DEFAULT_PEERS))
    parser.add_argument("--ours", nargs="*", default=list(METHODS), help="our methods")
    parser.add_argument("--releases", type=int, default=1, help="releases of each peer")
    parser.add_argument("--minutes", type=float, default=15, help="limit for a peer's release")
    parser.add_argument("--no-auc", dest="auc", action="store_false", help="train no classifier")
    return parser.parse_args()


def main() -> None:
    options = read_options()
    console = Console(width=120)
    results = []
    for name in options.datasets:
        try:
            reference = load(name, options.data_folder)
        except UnreadableData as error:
            sys.exit(str(error))
        results += show_dataset(reference, options, console)
    print("RESULT", *results)


if __name__ == "__main__":
    main()
