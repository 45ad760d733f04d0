"""How far points lie from private centers, ours and those of diffprivlib."""

import argparse
import tempfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from environments import PEERS, Stopped, run_script
from figures import ADD_REMOVE, NOT_STATED, OURS, Figure

from dpublish.data.box import Box
from dpublish.datasets.benchmarks import find_data_folder
from dpublish.datasets.point_clouds import POINT_SETS
from dpublish.evaluation.metrics.clustering import normalized_intra_cluster_variance
from dpublish.experiments.kmeans import NICV, STUDY
from dpublish.experiments.study import NOISE_FREE

TASK = "centers"
OWN = "kmeans"
TABLES = ("s1", "adult-num")


def own_figures(options: argparse.Namespace) -> Iterator[Figure]:
    """Measure our default, and k-means without privacy."""
    with tempfile.TemporaryDirectory() as folder:
        planned = STUDY.plan(
            options.runs,
            data_folder=find_data_folder(options.data_folder),
            datasets=TABLES,
            methods=(OWN,),
            epsilons=options.epsilons,
        )
        results = planned.run(Path(folder) / "centers.jsonl", lambda *_: None)
    found: dict[tuple[str, str, str], dict[str, list[float]]] = {}
    for trial, measured in results:
        measures = found.setdefault((trial.dataset, trial.epsilon, trial.method), {})
        measures.setdefault("nicv", []).append(measured[NICV])
    for (table, epsilon, method), measures in found.items():
        yield Figure(
            task=TASK,
            table=table,
            epsilon=epsilon,
            who="none" if method == NOISE_FREE else OURS,
            method="k-means without privacy" if method == NOISE_FREE else method,
            delta="" if method == NOISE_FREE else "0",
            neighbors="" if method == NOISE_FREE else ADD_REMOVE,
            measures=measures,
            date=options.date,
        )


def peer_figures(options: argparse.Namespace) -> Iterator[Figure]:
    """Measure the centers of diffprivlib, in the same box."""
    peer = PEERS["diffprivlib"]
    for table in TABLES:
        source = POINT_SETS[table]
        rows = source.rows(find_data_folder(options.data_folder))
        box = Box.of(source.schema)
        columns = [column.values(rows[column.name])[0] for column in box.columns]
        points = box.scale(np.stack(columns, axis=1).astype(np.float64))
        for epsilon in options.epsilons:
            given = {"task": TASK, "points": points, "clusters": source.clusters}
            given |= {"epsilon": float(epsilon), "runs": options.runs}
            try:
                made = run_script("diffprivlib_figures.py", peer, given, options.minutes)
            except Stopped as why:
                print(f"{peer.title}, {table}, ε = {epsilon}: {why}")
                continue
            distances = [normalized_intra_cluster_variance(points, c) for c in made["centers"]]
            spent = float(made["spent"])
            yield Figure(
                task=TASK,
                table=table,
                epsilon=epsilon,
                who=peer.title,
                method="KMeans",
                delta="0",
                neighbors=NOT_STATED,
                measures={"nicv": distances},
                date=options.date,
                note=f"its noise spends ε = {spent:.3g}",
            )
