"""The thesis's comparison comes out as printed, and our own choice is no worse than its best."""

from itertools import pairwise
from math import sqrt

import numpy as np
import pytest

from dpublish.experiments.study import run_experiment
from dpublish.experiments.svt_vs_em import METHODS, SER, STUDY, zipf_counts

REPEATS = 80
# Mean SER of Tables 5.4 and 5.6 where the methods differ most: Zipf, epsilon 0.5, c = 100.
PRINTED = {
    "SVT-DPBook": 0.919,
    "SVT-S 1:1": 0.808,
    "SVT-S 1:3": 0.571,
    "SVT-S 1:c": 0.353,
    "SVT-ReTr 1D": 0.090,
    "SVT-ReTr 2D": 0.035,
    "SVT-ReTr 3D": 0.036,
    "EM": 0.033,
}


@pytest.fixture(scope="module")
def cells(tmp_path_factory):
    path = tmp_path_factory.mktemp("results") / "svt-vs-em.jsonl"
    results = STUDY.plan(REPEATS, counts=[100], epsilons=["0.5"]).run(path)
    cells = STUDY.summarize(results)
    return {key.method: line[100.0] for key, line in cells.items() if key.measure == SER}


def is_less(first, second):
    """Whether the difference of two means exceeds four standard errors."""
    error = sqrt((first.deviation**2 + second.deviation**2) / REPEATS)
    return second.mean - first.mean > 4 * error


@pytest.mark.parametrize("name", PRINTED)
def test_means_are_those_printed_in_the_thesis(cells, name):
    # The thesis repeated 100 times; five standard errors of the difference, and its rounding.
    tolerance = 5 * cells[name].deviation * sqrt(1 / REPEATS + 1 / 100) + 0.001
    assert cells[name].mean == pytest.approx(PRINTED[name], abs=tolerance)


def test_methods_come_in_the_order_of_the_thesis(cells):
    order = ["SVT-DPBook", "SVT-S 1:1", "SVT-S 1:3", "SVT-S 1:c^(2/3)", "SVT-ReTr 1D", "EM"]
    for worse, better in pairwise(order):
        assert is_less(cells[better], cells[worse]), f"{better} should beat {worse}"
    assert is_less(cells["SVT-S 1:c"], cells["SVT-S 1:3"])


def test_our_default_is_better_than_the_best_of_the_thesis(cells):
    assert is_less(cells["one-shot"], cells["EM"])
    assert not is_less(cells["EM"], cells["permute-and-flip"])


def test_one_sided_noise_is_better_than_two_sided(cells):
    assert is_less(cells["one-sided SVT"], cells["SVT-S 1:3"])
    assert not is_less(cells["SVT-S 1:c^(2/3)"], cells["one-sided SVT"])
    assert is_less(cells["one-sided ReTr"], cells["SVT-ReTr 1D"])


def test_the_counts_are_those_of_zipf():
    counts = zipf_counts()
    assert counts.shape == (10_000,)
    assert counts.sum() == pytest.approx(1_000_000, rel=1e-3)
    assert counts[0] / counts[9] == pytest.approx(10, rel=1e-3)
    assert np.all(np.diff(counts) <= 0)


def test_a_small_run_leaves_results_a_table_and_a_plot(tmp_path):
    settings = {"counts": [25, 50], "epsilons": ["0.5"], "methods": ["SVT-S 1:1", "EM", "one-shot"]}
    calls = []
    summary = run_experiment(
        "svt-vs-em",
        repeats=2,
        output=tmp_path / "new" / "folder",
        progress=lambda *call: calls.append(call),
        **settings,
    )
    assert calls[-1][:2] == (12, 12)
    assert summary.headers == ["measure", "epsilon", "c", "SVT-S 1:1", "EM", "one-shot"]
    assert [row[:3] for row in summary.rows] == [
        ["SER", "0.5", "25"],
        ["SER", "0.5", "50"],
        ["FNR", "0.5", "25"],
        ["FNR", "0.5", "50"],
    ]
    page = summary.table.read_text()
    assert "NOT PRIVATE" in page
    assert " | ".join(summary.rows[0]) in page
    assert len(summary.results.read_text().splitlines()) == 12
    shown = summary.page.read_text()
    assert all(words in shown for words in ["NOT PRIVATE", "one-shot: ours", "0 is perfect"])
    drawn = summary.plot.read_text()
    assert all(name in drawn for name in ["SVT-S 1:1", "EM", "one-shot", "Not private"])


def test_every_method_runs_on_the_smallest_and_the_widest_task(tmp_path):
    results = STUDY.plan(1, counts=[1, 300], epsilons=["0.01", "5"]).run(tmp_path / "r.jsonl")
    assert len(results) == 4 * len(METHODS)
    assert all(0 <= measured[SER] <= 1 for _, measured in results)
