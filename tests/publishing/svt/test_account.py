"""What a run hands to its comparisons, on neighboring tables, costs the budget at most: exactly."""

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from dpublish.mechanisms.sparse_vector.stored import StoredVector
from dpublish.publishing.svt.kernel import Matching
from dpublish.testing import privacy_loss
from mechanisms.sparse_vector.sparse_vector_distribution import distribution, in_turn, variant_of
from svt_world import make_world, start

EPSILON, POSITIVES = 2, 2
AGES = [3, 4, 5, 5, 6, 40, 41, 42, 60, 61]
COUNTS = [("age >= 5", 7), ("age < 50", 9), ("ward = north", 11), ("age in 4..60", 8)]
ESTIMATES = [("age >= 5", 20), ("ward = north", 2), ("age < 50", 30), ("age < 5", 0)]


def compared(folder, ages, monkeypatch, *, estimates):
    """Ask a run, and return how far each answer was from its threshold, and its calibration."""
    folder.mkdir()
    make_world(folder)
    rows = pa.table({"age": ages, "ward": ["north"] * len(ages)})
    pq.write_table(rows, folder / "visits.parquet")
    seen = []

    def record(self, answer, threshold, rng):
        seen.append(answer - threshold)
        return False, self

    monkeypatch.setattr(StoredVector, "above", record)
    settings = {"epsilon": EPSILON, "max_positives": POSITIVES, "monotonic": not estimates}
    with start(folder, **settings) as run:
        for query, number in ESTIMATES if estimates else COUNTS:
            if estimates:
                run.ask(query, threshold=6, estimate=number)
            else:
                run.ask(query, threshold=number)
        return seen, run.calibration


def loss_of_leaving_one_out(folder, monkeypatch, *, estimates):
    """The largest loss over all outcomes, over all records that may be left out."""
    whole, calibration = compared(folder / "all", AGES, monkeypatch, estimates=estimates)
    variant = variant_of(calibration, POSITIVES)
    here, worst = distribution(variant, in_turn(whole)), 0.0
    for left_out in (0, 3, 7, 9):
        rest = AGES[:left_out] + AGES[left_out + 1 :]
        gaps, _ = compared(folder / str(left_out), rest, monkeypatch, estimates=estimates)
        worst = max(worst, privacy_loss(here, distribution(variant, in_turn(gaps))))
    return worst


@pytest.mark.parametrize("estimates", [False, True])
def test_leaving_out_a_record_costs_the_budget_at_most(tmp_path, monkeypatch, estimates):
    worst = loss_of_leaving_one_out(tmp_path, monkeypatch, estimates=estimates)
    assert 0.3 < worst <= EPSILON + 1e-9


def test_a_record_that_counted_several_times_would_be_noticed(tmp_path, monkeypatch):
    original = Matching.add

    def add_often(self, batch, out):
        before = out.copy()
        original(self, batch, out)
        out += 4 * (out - before)

    monkeypatch.setattr(Matching, "add", add_often)
    assert loss_of_leaving_one_out(tmp_path, monkeypatch, estimates=False) > EPSILON
