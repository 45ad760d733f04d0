"""Counts and means by group, a large histogram, and top k: ours and those of peers."""

import argparse
from collections.abc import Iterator
from fractions import Fraction
from time import process_time
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from environments import PEERS, Arrays, Peer, Stopped, run_script
from figures import ADD_REMOVE, NOT_STATED, OURS, Figure

from dpublish.data.schema import Schema, column
from dpublish.data.sources import open_table
from dpublish.datasets.benchmarks import find_data_folder
from dpublish.mechanisms.noise import add_geometric
from dpublish.mechanisms.top_k import top_k
from dpublish.methods.statistics.statistics import Statistics
from dpublish.privacy.budget import Budget
from dpublish.randomness import plain_generator, secure

MEANS, HISTOGRAM, TOP_K = "means", "histogram", "topk"
BOUNDS = (1, 99)
BY, NUMBER = "education", "hours_per_week"
CELLS = 1_000_000
SPEED_RUNS = 3
LISTS = {"kosarak, 128 items": ("KOSARAK-ONE-PER-USER-128", 10), "retail": ("RETAIL", 50)}
LIST_RUNS = 20


class Way(NamedTuple):
    """How a peer does a task: its script, what it is called there, and its guarantee."""

    peer: Peer
    script: str
    method: str
    delta: str
    neighbors: str
    runs: int | None = None
    note: str = ""


PUBLIC_SIZE = "takes the number of records for public"
WAYS = {
    MEANS: (
        Way(PEERS["opendp"], "opendp_figures.py", "count, sum", "0", ADD_REMOVE),
        Way(PEERS["diffprivlib"], "diffprivlib_figures.py", "tools", "0", NOT_STATED, None,
            PUBLIC_SIZE),
        Way(PEERS["pipelinedp"], "pipelinedp_figures.py", "LocalBackend", "0", ADD_REMOVE, 10),
        Way(PEERS["smartnoise-sql"], "smartnoise_sql_figures.py", "SQL", "1e-15", ADD_REMOVE, 10,
            "three queries' shares: it counts again for AVG"),
        Way(PEERS["tumult"], "tumult_figures.py", "Session", "0", ADD_REMOVE, 2),
    ),
    HISTOGRAM: (
        Way(PEERS["opendp"], "opendp_figures.py", "vector mechanism", "0", ADD_REMOVE),
        Way(PEERS["diffprivlib"], "diffprivlib_figures.py", "tools.histogram", "0", NOT_STATED, 1),
    ),
    TOP_K: (
        Way(PEERS["opendp"], "opendp_figures.py", "make_noisy_top_k", "0", ADD_REMOVE),
    ),
}  # fmt: skip


def ask_peers(
    task: str, given: dict[str, Any], options: argparse.Namespace
) -> Iterator[tuple[Way, Arrays]]:
    """Run a task with every peer that is installed."""
    for way in WAYS[task]:
        if options.peers and way.peer.environment not in options.peers:
            continue
        runs = options.runs if way.runs is None else way.runs
        try:
            yield (
                way,
                run_script(
                    way.script, way.peer, given | {"task": task, "runs": runs}, options.minutes
                ),
            )
        except Stopped as why:
            print(f"{way.peer.title}, {task}: {why}")


def make_figure(
    task: str, table: str, epsilon: str, way: Way | None, method: str,
    measures: dict[str, list[float]], options: argparse.Namespace,
) -> Figure:  # fmt: skip
    """Make the figure of a peer, or of ours where `way` is absent."""
    return Figure(
        task=task,
        table=table,
        epsilon=epsilon,
        who=OURS if way is None else way.peer.title,
        method=method,
        delta="0" if way is None else way.delta,
        neighbors=ADD_REMOVE if way is None else way.neighbors,
        measures=measures,
        date=options.date,
        note="" if way is None else way.note,
    )


def read_groups(options: argparse.Namespace) -> pa.Table:
    """Read hours of work and education from UCI Adult."""
    folder = find_data_folder(options.data_folder)
    rows = pq.read_table(f"{folder}/adult.parquet", columns=[BY, NUMBER])
    return rows.set_column(0, BY, rows[BY].cast(pa.string()))


def group_errors(found: np.ndarray, truth: np.ndarray) -> list[float]:
    """Average over groups how far each run is from the truth."""
    return np.abs(found - truth).mean(axis=1).tolist()


def own_means(rows: pa.Table, names: list[str], epsilon: str, runs: int) -> Arrays:
    """Publish counts and means with our method."""
    schema = Schema(
        (column(BY, "category", values=names), column(NUMBER, "integer", bounds=list(BOUNDS)))
    )
    table = open_table(rows, schema)
    measures = ("count", f"mean({NUMBER})")
    method = Statistics(measures=measures, by=(BY,))
    found, seconds = [], []
    for _ in range(runs):
        start = process_time()
        release = method.release(table, budget=Budget.seeded(epsilon), rng=secure())
        found.append([np.asarray(release.estimates(one).values) for one in measures])
        seconds.append(process_time() - start)
    counts, means = np.moveaxis(np.array(found), 1, 0)
    # A mean that is called unknown counts as the middle of the bounds, as a reader would take it.
    means = np.where(np.isnan(means), sum(BOUNDS) / 2, means)
    return {"counts": counts, "means": means, "seconds": np.array(seconds)}


def means_figures(options: argparse.Namespace) -> Iterator[Figure]:
    """Measure counts and means of hours of work by education."""
    rows = read_groups(options)
    names = sorted(pc.unique(rows[BY]).to_pylist())
    codes = pc.index_in(rows[BY], pa.array(names)).to_numpy()
    values = rows[NUMBER].to_numpy().astype(np.float64)
    counts = np.bincount(codes, minlength=len(names))
    truth = np.bincount(codes, weights=values, minlength=len(names)) / counts
    table = f"adult, {len(names)} groups"
    for epsilon in options.epsilons:
        given = {"groups": codes, "values": values, "group_count": len(names)}
        given |= {"low": BOUNDS[0], "high": BOUNDS[1], "epsilon": float(epsilon)}
        made: list[tuple[Way | None, Arrays]] = []
        if not options.peers_only:
            made.append((None, own_means(rows, names, epsilon, options.runs)))
        made += ask_peers(MEANS, given, options)
        for way, found in made:
            measures = {
                "mean": group_errors(np.clip(found["means"], *BOUNDS), truth),
                "count": group_errors(found["counts"], counts),
            }
            if "seconds" in found:
                measures["seconds"] = found["seconds"].tolist()
            method = "statistics" if way is None else way.method
            yield make_figure(MEANS, table, epsilon, way, method, measures, options)


def histogram_figures(options: argparse.Namespace) -> Iterator[Figure]:
    """Time a histogram of a million cells that hold a million records."""
    cells = plain_generator(0).integers(0, CELLS, CELLS)
    counts = np.bincount(cells, minlength=CELLS)
    epsilon = options.epsilons[0]
    rng = secure()
    seconds = []
    for _ in range(SPEED_RUNS):
        start = process_time()
        add_geometric(counts, sensitivity=1, budget=Budget.seeded(epsilon), rng=rng)
        seconds.append(process_time() - start)
    table = f"{CELLS:,} cells"
    yield make_figure(
        HISTOGRAM, table, epsilon, None, "add_geometric", {"seconds": seconds}, options
    )
    given = {"cells": cells, "counts": counts, "epsilon": float(epsilon)}
    for way, made in ask_peers(HISTOGRAM, given, options):
        measures = {"seconds": made["seconds"].tolist()}
        yield make_figure(HISTOGRAM, table, epsilon, way, way.method, measures, options)


def missed(chosen: np.ndarray, counts: np.ndarray) -> list[float]:
    """Compute the part of the records of the true top k that the chosen items do not have."""
    best = np.sort(counts)[::-1][: chosen.shape[1]].sum()
    return (1 - counts[chosen].sum(axis=1) / best).tolist()


def topk_figures(options: argparse.Namespace) -> Iterator[Figure]:
    """Measure what the most frequent items of baskets lose."""
    folder = find_data_folder(options.data_folder)
    stored = pq.read_table(f"{folder}/item_counts.parquet")
    rng = secure()
    for name, (dataset, count) in LISTS.items():
        of_dataset = pc.equal(stored["dataset"].cast(pa.string()), dataset)
        counts = stored.filter(of_dataset)["count"].to_numpy().astype(np.int64)
        table = f"{name}, k = {count}"
        for epsilon in options.epsilons:
            chosen, seconds = [], []
            for _ in range(LIST_RUNS):
                start = process_time()
                budget = Budget.seeded(Fraction(epsilon))
                found = top_k(counts, count=count, sensitivity_range=1, budget=budget, rng=rng)
                chosen.append(found)
                seconds.append(process_time() - start)
            measures = {"missed": missed(np.array(chosen), counts), "seconds": seconds}
            yield make_figure(TOP_K, table, epsilon, None, "topk", measures, options)
            given = {"counts": counts, "count": count, "epsilon": float(epsilon)}
            given["list_runs"] = LIST_RUNS
            for way, made in ask_peers(TOP_K, given, options):
                measures = {"missed": missed(made["chosen"], counts)}
                measures["seconds"] = made["seconds"].tolist()
                yield make_figure(TOP_K, table, epsilon, way, way.method, measures, options)
