"""How good are synthetic rows of other packages, beside ours?

Peers get the same 80 % of the same tables as our methods in `benchmarks/accuracy/synth.py`, cut
into the same 20 bins, and their rows are measured in the same way.  A peer takes minutes for each
release.
"""

import argparse
import secrets
import sys
from collections.abc import Iterator
from statistics import fmean
from typing import NamedTuple

import numpy as np
from environments import HERE, PEERS, Peer, Stopped, run_script
from figures import ADD_REMOVE, NO_GUARANTEE, NOT_STATED, OURS, Figure

from dpublish.data.column import NumberColumn

sys.path.append(str(HERE.parent / "accuracy"))

from synth import Setup, bounds, measure
from synth_measures import BINS, Reference, auc, load, measures

TASK = "synthesis"
TABLES = ("adult", "acs")
OWN = ("synth",)
DELTA = "1e-9"
KNOWN_SIZE = "takes the number of rows for public"


class Way(NamedTuple):
    """A synthesizer of another package, its guarantee, and what is measured unless asked."""

    peer: Peer
    script: str
    algorithm: str
    shown: str
    delta: str
    neighbors: str
    usual: tuple[tuple[str, str], ...] = ()
    note: str = ""


NONE = "none"
SHARE = "share of choices searched for"
WAYS = {
    "sdv-copula": Way(PEERS["sdv"], "sdv_rows.py", "copula", "GaussianCopula, NOT PRIVATE", "none",
                      NO_GUARANTEE, (("adult", NONE), ("acs", NONE))),
    "sdv-categories": Way(PEERS["sdv"], "sdv_rows.py", "categories",
                          "GaussianCopula of categories, NOT PRIVATE", "none", NO_GUARANTEE,
                          (("adult", NONE), ("acs", NONE))),
    "dpmm-mst": Way(PEERS["dpmm"], "dpmm_rows.py", "mst", "MST", DELTA, NOT_STATED,
                    (("adult", "0.1"), ("adult", "1"), ("acs", "1"))),
    "smartnoise-mst": Way(PEERS["smartnoise-synth"], "smartnoise_synth_rows.py", "mst", "MST",
                          DELTA, NOT_STATED, (("adult", "0.1"), ("adult", "1"), ("acs", "1")),
                          KNOWN_SIZE),
    "opendp-mst": Way(PEERS["opendp"], "opendp_rows.py", "mst", "MST", "0", ADD_REMOVE,
                      (("adult", "0.1"), ("adult", "1")), SHARE),
    "dpmm-aim": Way(PEERS["dpmm"], "dpmm_rows.py", "aim", "AIM", DELTA, NOT_STATED,
                    (("adult", "0.1"),)),
    "dpmm-aim-shortened": Way(PEERS["dpmm"], "dpmm_rows.py", "aim-shortened", "AIM, shortened",
                              DELTA, NOT_STATED, (("adult", "0.1"), ("adult", "1")),
                              "100 steps for each fit, 1,000 for the last"),
    "opendp-mst-delta": Way(PEERS["opendp"], "opendp_rows.py", "mst", "MST", DELTA, ADD_REMOVE,
                            (), SHARE),
    "opendp-aim-delta": Way(PEERS["opendp"], "opendp_rows.py", "aim", "AIM", DELTA, ADD_REMOVE),
    "smartnoise-aim": Way(PEERS["smartnoise-synth"], "smartnoise_synth_rows.py", "aim", "AIM",
                          DELTA, NOT_STATED, (), KNOWN_SIZE),
}  # fmt: skip
"""What is usual takes minutes; all else is run if it is named with --ways."""


def cases(table: str, options: argparse.Namespace) -> Iterator[tuple[Way, str]]:
    """List what is measured on a table, and with which budgets."""
    for name in options.ways or WAYS:
        way = WAYS[name]
        if options.peers and way.peer.environment not in options.peers:
            continue
        usual = [epsilon for known, epsilon in way.usual if known == table]
        asked = [NONE] if way.neighbors == NO_GUARANTEE else options.epsilons
        for epsilon in asked if options.ways else usual:
            yield way, epsilon


def measure_peer(
    way: Way, reference: Reference, epsilon: str, options: argparse.Namespace
) -> dict[str, list[float]]:
    """Measure the releases of a peer."""
    numbers = [isinstance(column, NumberColumn) for column in reference.schema.columns]
    given = {"codes": reference.train_codes, "sizes": np.array(reference.sizes)}
    given |= {"is_number": np.array(numbers), "algorithm": way.algorithm}
    given |= {"epsilon": 0.0 if epsilon == "none" else float(epsilon)}
    given["delta"] = 0.0 if way.delta == "none" else float(way.delta)
    found: dict[str, list[float]] = {}
    for _ in range(options.releases):
        made = run_script(way.script, way.peer, given, options.minutes)
        release = measures(reference, made["codes"])
        release["auc"] = auc(reference, made["codes"])
        release |= {name: float(made[name]) for name in ("seconds", "megabytes")}
        for name, value in release.items():
            found.setdefault(name, []).append(value)
    return found


def own_figures(options: argparse.Namespace) -> Iterator[Figure]:
    """Measure our methods on the peers' bins, and what bounds all methods."""
    for table in options.tables or TABLES:
        reference = load(table, options.data_folder)

        def figure(epsilon: str, who: str, method: str, found: dict[str, list[float]]) -> Figure:
            is_ours = who == OURS
            return Figure(
                task=TASK,
                table=reference.name,  # noqa: B023 - used before the next table
                epsilon=epsilon,
                who=who,
                method=method,
                delta="0" if is_ours else "",
                neighbors=ADD_REMOVE if is_ours else "",
                measures=found,
                date=options.date,
            )

        titles = {"bootstrap": "true rows again", "independent": "true columns, independent"}
        for name, one in bounds(reference, True):
            yield figure("none", "none", titles[name], {key: [one[key]] for key in one})
        for epsilon in options.epsilons:
            for method in OWN:
                runs: dict[str, list[float]] = {}
                for _ in range(options.own_releases):
                    setup = Setup(method, epsilon, BINS)
                    for key, value in measure(reference, setup, secrets.randbits(62), True).items():
                        runs.setdefault(key, []).append(value)
                yield figure(epsilon, OURS, method, runs)


def peer_figures(options: argparse.Namespace) -> Iterator[Figure]:
    """Measure the synthesizers that are installed, one at a time."""
    for table in options.tables or TABLES:
        reference = load(table, options.data_folder)
        for way, epsilon in cases(table, options):
            named = f"{way.peer.title} {way.shown}, {table}, ε = {epsilon}"
            try:
                found = measure_peer(way, reference, epsilon, options)
            except Stopped as why:
                print(f"{named}: {why}")
                continue
            print(f"{named}: TV 2 {fmean(found['tv2']):.4f}", flush=True)
            yield Figure(
                task=TASK,
                table=table,
                epsilon=epsilon,
                who=way.peer.title,
                method=way.shown,
                delta=way.delta,
                neighbors=way.neighbors,
                measures=found,
                date=options.date,
                note=way.note,
            )
