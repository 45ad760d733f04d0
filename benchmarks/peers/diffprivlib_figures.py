"""What diffprivlib reaches: run by compare.py in the environment of diffprivlib.

Usage: python diffprivlib_figures.py INPUT.npz OUTPUT.npz
"""

import sys
import time

import numpy as np
from diffprivlib import models, tools


def classes(given):
    """Fit every model with every epsilon, and predict the rows that were kept back."""
    size = int(given["class_count"])
    count = given["train_codes"].shape[1]
    box = (np.zeros(count), np.ones(count))
    labels = list(range(size))
    makers = {
        "GaussianNB": (lambda e: models.GaussianNB(epsilon=e, bounds=box), "codes"),
        "LogisticRegression": (
            lambda e: models.LogisticRegression(
                epsilon=e, data_norm=float(given["data_norm"]), max_iter=1_000
            ),
            "features",
        ),
        "DecisionTree": (
            lambda e: models.DecisionTreeClassifier(epsilon=e, bounds=box, classes=labels),
            "codes",
        ),
        "RandomForest": (
            lambda e: models.RandomForestClassifier(epsilon=e, bounds=box, classes=labels),
            "codes",
        ),
    }
    known = given["classes"] >= 0
    predicted = []
    for epsilon in given["epsilons"].tolist():
        row = []
        for name in given["models"].tolist():
            make, kind = makers[name]
            model = make(epsilon).fit(given[f"train_{kind}"][known], given["classes"][known])
            row.append(np.asarray(model.predict(given[f"test_{kind}"]), dtype=np.int64))
        predicted.append(row)
    return {"predicted": np.array(predicted)}


def centers(given):
    """Fit k-means, and add up what its noise spends.

    A round adds noise of one rate to the count and of another to each of d sums of a cluster, as
    `_split_epsilon` returns them; the first is for counts, because that is how they are unpacked.
    """
    points = given["points"]
    dimensions = points.shape[1]
    bounds = (-np.ones(dimensions), np.ones(dimensions))
    found = []
    for _ in range(int(given["runs"])):
        model = models.KMeans(
            int(given["clusters"]), epsilon=float(given["epsilon"]), bounds=bounds
        )
        found.append(model.fit(points).cluster_centers_)
    rounds = model._calc_iters(*points.shape[::-1])
    of_count, of_sum = model._split_epsilon(dimensions, rounds)
    spent = rounds * (of_count + dimensions * of_sum)
    return {"centers": np.array(found), "spent": np.array(spent)}


def means(given):
    """Publish a count and a mean of every group with half of epsilon each."""
    half = float(given["epsilon"]) / 2
    bounds = (float(given["low"]), float(given["high"]))
    groups = [given["values"][given["groups"] == k] for k in range(int(given["group_count"]))]
    counts, averages, seconds = [], [], []
    for _ in range(int(given["runs"])):
        start = time.process_time()
        counts.append([tools.count_nonzero(np.ones(len(g)), epsilon=half) for g in groups])
        averages.append([tools.mean(g, epsilon=half, bounds=bounds) for g in groups])
        seconds.append(time.process_time() - start)
    return {"counts": np.array(counts), "means": np.array(averages), "seconds": np.array(seconds)}


def histogram(given):
    """Publish a histogram of a million cells."""
    size = len(given["counts"])
    seconds = []
    for _ in range(int(given["runs"])):
        start = time.process_time()
        tools.histogram(
            given["cells"], epsilon=float(given["epsilon"]), bins=size, range=(-0.5, size - 0.5)
        )
        seconds.append(time.process_time() - start)
    return {"seconds": np.array(seconds)}


TASKS = {"classes": classes, "centers": centers, "means": means, "histogram": histogram}


def main(source, result):
    """Run the task that the input names."""
    given = np.load(source, allow_pickle=False)
    np.savez(result, **TASKS[str(given["task"])](given))


if __name__ == "__main__":
    main(*sys.argv[1:])
