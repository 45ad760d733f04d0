"""The score of grids: its sensitivity as a curve, and how two scores go together."""

import numpy as np
import pytest

from dpublish.datasets.benchmarks import ALL_BENCHMARKS, VARIABLE
from dpublish.errors import InvalidParameter
from dpublish.experiments.grid_quality import (
    CLOSED_FORM,
    FIGURES,
    STUDY,
    TABLE,
    GridQualityRunner,
    expected_right,
)
from dpublish.experiments.study import run_experiment
from dpublish.experiments.trials import Key


@pytest.fixture(autouse=True)
def no_folder(monkeypatch):
    monkeypatch.delenv(VARIABLE, raising=False)


def test_the_curve_is_the_papers_and_ends_at_one(tmp_path):
    planned = STUDY.plan(3)
    assert len(planned.trials) == 2 * len(FIGURES["sensitivity"].epsilons)  # never repeated
    results = planned.run(tmp_path / "results.jsonl")
    cells = STUDY.summarize(results)
    tabulated, printed = (
        cells[Key("every-table", "sensitivity", name)] for name in (TABLE, CLOSED_FORM)
    )
    for point, cell in tabulated.items():
        assert cell.mean == pytest.approx(printed[point].mean, abs=3e-6)
        assert 1 <= cell.mean <= 1.08892
    assert tabulated[0.00001].mean == pytest.approx(1.0889, abs=1e-4)
    assert tabulated[100.0].mean == 1.0


def test_expected_right_is_the_closed_form_for_two_classes():
    for first, second, epsilon in [(7, 3, 0.5), (20, 19, 0.1), (4, 0, 1.0), (9, 9, 0.3)]:
        lead = epsilon * (first - second)
        wrong = np.exp(-lead) / 2 * (1 + lead / 2)
        exact = first * (1 - wrong) + second * wrong
        counts = np.array([[second], [first]])
        assert expected_right(counts, epsilon) == pytest.approx(exact, abs=0.01)


def test_expected_right_is_what_noise_does_to_three_classes():
    counts = np.array([[12, 0], [9, 30], [8, 2]])
    rng = np.random.Generator(np.random.PCG64(1))
    noisy = counts + rng.laplace(scale=5.0, size=(200_000, 3, 2))
    chosen = noisy.argmax(axis=1)
    simulated = np.take_along_axis(np.broadcast_to(counts, noisy.shape), chosen[:, None], 1)
    mean = float(simulated.sum(axis=(1, 2)).mean())
    assert expected_right(counts, 0.2) == pytest.approx(mean, abs=0.05)
    # Two classes alone expect another number here, so the two scores are not the same.
    assert abs(expected_right(counts[:2], 0.2) - mean) > 0.3


def test_the_two_scores_go_together_on_a_table_of_five_classes(tmp_path):
    summary = run_experiment(
        "grid-quality",
        output=tmp_path,
        figure="correlation",
        datasets=("simulated-multiclass",),
        epsilons=("0.1", "1"),
        settings={"grids": 40},
    )
    (row,) = summary.rows
    assert row[:2] == ["simulated-multiclass", "two-classes"]
    assert all(0.9 < float(cell.split()[0]) <= 1 for cell in row[2:])
    assert "40 grids" in summary.page.read_text()


def test_cells_are_counted_as_the_rows_say():
    runner = GridQualityRunner(None, {"simulated": ALL_BENCHMARKS["simulated"]})
    counter = runner._load("simulated")
    rows = ALL_BENCHMARKS["simulated"].rows(None).to_pandas()
    levels = [0] * 9
    levels[4], levels[5] = 3, 2  # late payments by number, homes by value
    counts = counter.count(levels)
    assert counts.sum() == 20_000
    seen = ((rows["late_payments"] == 0) & (rows["home"] == "Mortgage")).to_numpy()
    expected = rows["repaid"][seen].value_counts()
    assert counts.reshape(2, 8, 4)[:, 0, 1].tolist() == [expected["yes"], expected["no"]]


def test_a_number_of_grids_that_cannot_be_is_refused():
    for grids in (1, 10_001):
        with pytest.raises(InvalidParameter, match="grids"):
            STUDY.plan(
                1,
                figure="correlation",
                datasets=("simulated-multiclass",),
                settings={"grids": grids},
            )
