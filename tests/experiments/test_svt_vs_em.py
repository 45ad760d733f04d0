"""The thesis's comparison comes out as printed, and our own choice is no worse than its best."""

from itertools import pairwise
from math import sqrt

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from dpublish.datasets.item_counts import FILE, ITEM_COUNTS, zipf_counts
from dpublish.errors import InvalidParameter, UnreadableData
from dpublish.experiments.study import run_experiment
from dpublish.experiments.svt_vs_em import METHODS, SER, STUDY

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
    results = STUDY.plan(REPEATS, datasets=["zipf"], values=[100], epsilons=["0.5"]).run(path)
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
    settings = {
        "datasets": ["zipf"],
        "values": [25, 50],
        "epsilons": ["0.5"],
        "methods": ["SVT-S 1:1", "EM", "one-shot"],
    }
    calls = []
    summary = run_experiment(
        "svt-vs-em",
        repeats=2,
        output=tmp_path / "new" / "folder",
        progress=lambda *call: calls.append(call),
        **settings,
    )
    assert calls[-1][:2] == (12, 12)
    assert summary.headers == ["dataset", "measure", "epsilon", "c", *settings["methods"]]
    assert [row[1:4] for row in summary.rows] == [
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
    results = STUDY.plan(1, datasets=["zipf"], values=[1, 300], epsilons=["0.01", "5"]).run(
        tmp_path / "r.jsonl"
    )
    assert len(results) == 4 * len(METHODS)
    assert all(0 <= measured[SER] <= 1 for _, measured in results)


KOSARAK_TOP = [90_000 // rank for rank in range(1, 157)]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A data folder with small collections under the names of the real ones."""
    path = tmp_path_factory.mktemp("data")
    collections = {
        "KOSARAK-FULL-TOP": KOSARAK_TOP,
        "BMS-POS-ONE-PER-BASKET-256": [50_000 // rank for rank in range(1, 257)],
        "BMS-WEBVIEW-1": [5, 4],
    }
    rows = [(name, n) for name, counts in collections.items() for n in reversed(counts)]
    names, counts = zip(*rows, strict=True)
    pq.write_table(pa.table({"dataset": names, "count": counts}), path / FILE)
    return path


def test_kosarak_has_its_true_top_counts_and_a_tail_that_goes_on_from_them(folder):
    counts = ITEM_COUNTS["kosarak"].counts(folder)
    assert counts.shape == (41_270,)
    assert counts[:156].tolist() == KOSARAK_TOP
    assert np.all(np.diff(counts[155:]) <= 0)
    assert counts[311] == pytest.approx(KOSARAK_TOP[-1] / 2, abs=0.5)
    assert counts[-1] >= 1


def test_a_file_with_other_items_than_stated_is_refused(folder):
    with pytest.raises(UnreadableData, match="2 items of BMS-WEBVIEW-1, not 497"):
        ITEM_COUNTS["webview-1"].counts(folder)


def test_without_a_data_folder_zipf_is_run_and_the_others_are_named(monkeypatch):
    monkeypatch.delenv("DPUBLISH_DATA", raising=False)
    plan = STUDY.plan(1, values=[25])
    assert {trial.dataset for trial in plan.trials} == {"zipf"}
    assert any("kosarak was left out: it needs item_counts.parquet" in note for note in plan.notes)


def test_the_order_of_table_5_3_on_a_long_list(folder, tmp_path):
    plan = STUDY.plan(20, data_folder=folder, datasets=["kosarak"], values=[20], epsilons=["0.1"])
    assert "permute-and-flip" not in {trial.method for trial in plan.trials}
    assert any("name it to run it" in note for note in plan.notes)
    cells = STUDY.summarize(plan.run(tmp_path / "r.jsonl"))
    means = {key.method: line[20.0].mean for key, line in cells.items() if key.measure == SER}
    assert means["SVT-DPBook"] > means["SVT-S 1:1"] > means["SVT-S 1:c^(2/3)"] > means["EM"]
    named = STUDY.plan(
        1, data_folder=folder, datasets=["kosarak"], values=[20], methods=["permute-and-flip"]
    )
    assert len(named.trials) == 2


def test_more_values_than_there_are_cannot_be_asked_for(folder):
    plan = STUDY.plan(1, data_folder=folder, datasets=["bms-pos"])
    assert {trial.setting["count"] for trial in plan.trials} == {25, 50, 100, 150, 200, 250}


def test_the_highest_scores_are_listed_and_drawn(folder, tmp_path):
    summary = run_experiment(
        "svt-vs-em",
        repeats=3,
        output=tmp_path,
        figure="scores",
        data_folder=folder,
        datasets=["kosarak", "bms-pos"],
        values=[1, 2, 300],
    )
    assert summary.headers == ["dataset", "method", "rank 1", "rank 2", "rank 300"]
    assert summary.rows[0][2:4] == ["90,000", "45,000"]
    assert summary.rows[1] == ["bms-pos", "true counts", "50,000", "25,000", ""]
    assert "log10 of the count" in summary.plot.read_text()
    assert "without privacy" in summary.page.read_text()


def own_table(folder, values):
    data, schema = folder / "visits.parquet", folder / "visits.toml"
    pq.write_table(pa.table({"ward": values}), data)
    listed = ", ".join(f'"w{number}"' for number in range(40))
    schema.write_text(f'[columns.ward]\nkind = "category"\nvalues = [{listed}]\n')
    return {"data": data, "schema": schema}


def test_the_values_of_a_column_of_ones_own_are_ranked(tmp_path):
    values = [f"w{number}" for number in range(39) for _ in range(1000 - 20 * number)]
    given = own_table(tmp_path, values)
    plan = STUDY.plan(
        2, **given, target="ward", methods=["EM", "one-shot"], epsilons=["1"], values=[3, 39, 40]
    )
    dataset = plan.study.datasets["visits"]
    assert dataset.counts(None).tolist() == [1000 - 20 * n for n in range(39)] + [0]
    results = plan.run(tmp_path / "own.jsonl")
    assert {trial.setting["count"] for trial, _ in results} == {3, 39}
    assert all(measured[SER] < 0.2 for _, measured in results)
    with pytest.raises(InvalidParameter, match="--target"):
        STUDY.plan(1, **given)
