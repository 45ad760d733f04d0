"""The account: shares add up to epsilon, whatever was released on the way."""

from fractions import Fraction

import numpy as np
import pyarrow as pa
import pytest
from threadpoolctl import threadpool_limits

from dpublish.core.run import Run
from dpublish.data.schema import Schema, column
from dpublish.data.sources import open_table
from dpublish.methods.synth import choice, plan, synth
from dpublish.methods.synth.synth import Synth
from dpublish.privacy.budget import Budget
from dpublish.randomness import plain_generator
from methods.synth.synth_world import pretend_size, shorten_fits
from replay import Tape, watch

EPSILON = Fraction(7, 3)


@pytest.fixture(autouse=True)
def short_fits(monkeypatch):
    """Fit by a few steps in one thread: shares do not depend on the model."""
    shorten_fits(monkeypatch, 2)
    with threadpool_limits(1):
        yield


def make_table(number, values=2, rows=30):
    rng = plain_generator(number)
    schema = Schema(
        tuple(column(f"c{i}", "integer", bounds=[0, values - 1]) for i in range(number))
    )
    return open_table(
        pa.table({name: rng.integers(0, values, rows) for name in schema.names}), schema
    )


def account_of(table, method):
    """Publish; return the release, its budget, and all that mechanisms were paid."""
    budget, kept = Budget.seeded(EPSILON), []
    tape = Tape()

    def run(rng, progress):
        kept.append(method.release(table, budget=budget, rng=rng))

    watch(run, tape)
    return kept[0], budget, sum((call.epsilon for call in tape.calls), Fraction(0))


def check(table, method):
    release, budget, paid = account_of(table, method)
    shares = budget.account()
    assert all(share.is_used for share in shares)
    assert all(type(share.epsilon) is Fraction and share.epsilon > 0 for share in shares)
    assert sum(share.epsilon for share in shares) == budget.cost() == EPSILON
    assert paid <= EPSILON
    assert release.receipt.epsilon == EPSILON
    return release, EPSILON - paid


HUGE = 10**9
SIZES = (-(10**9), 0, 1, 3_000, 100_000, HUGE)


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("number", [1, 2, 15])
def test_every_branch_spends_epsilon_exactly(monkeypatch, number, size):
    pretend_size(monkeypatch, size)
    monkeypatch.setattr(choice, "MOST_CELLS", 300)
    release, unpaid = check(make_table(number), Synth())
    assert release.size.value == size
    # The size was pretended, and is the only share that no mechanism saw.
    assert unpaid >= EPSILON * plan.SIZE_SHARE
    if number == 1 or size <= 1:
        assert not release.counted
        assert unpaid == EPSILON * plan.SIZE_SHARE
    elif size == HUGE:
        assert release.counted


@pytest.mark.parametrize("share", [Fraction(0), Fraction(1, 3), Fraction(1, 2)])
@pytest.mark.parametrize("size", [0, 20_000])
def test_any_share_of_quality_is_part_of_epsilon(monkeypatch, share, size):
    pretend_size(monkeypatch, size)
    release, unpaid = check(make_table(4), Synth(quality_share=share))
    assert unpaid == EPSILON * plan.SIZE_SHARE
    assert (release.quality is None) == (share == 0)
    if release.quality is not None:
        spent = release.quality.worst_rate * choice.STEPS
        assert spent == EPSILON * share / 2
        assert release.quality.summed_rate * choice.STEPS * 6 == EPSILON * share / 2


@pytest.mark.parametrize("size", [0, 20_000])
def test_a_prior_pays_its_share(monkeypatch, tmp_path, size):
    import pyarrow.csv

    pretend_size(monkeypatch, size)
    path = tmp_path / "prior.csv"
    pyarrow.csv.write_csv(pa.table({"c0": [0, 1, 1, 0], "c1": [0, 1, 1, 0]}), path)
    _, unpaid = check(make_table(3), Synth(prior=str(path)))
    assert unpaid == EPSILON * plan.SIZE_SHARE


def test_candidates_that_run_out_leave_nothing_unspent(monkeypatch):
    """Columns of one value cannot be joined, so that no choice finds a candidate."""
    pretend_size(monkeypatch, 100_000)
    release, unpaid = check(make_table(4, values=1), Synth())
    assert not release.counted
    assert unpaid > EPSILON * plan.SIZE_SHARE  # choices and tables were spent on nothing


def plans(monkeypatch):
    """Keep the plans that are made."""
    made, make = [], synth.make_plan

    def keeping(*given, **named):
        made.append(make(*given, **named))
        return made[-1]

    monkeypatch.setattr(synth, "make_plan", keeping)
    return made


def share_of(made, name):
    return Fraction(made.weights[name], sum(made.weights.values()))


def test_what_is_left_when_the_tree_is_full_counts_the_tables_again(monkeypatch):
    made = plans(monkeypatch)
    pretend_size(monkeypatch, 100_000)
    monkeypatch.setattr(choice, "MOST_CELLS", 20)
    release, _ = check(make_table(6), Synth())
    sets = [table.columns for table in release.counted]
    assert 0 < len(set(sets)) < len(sets)
    rates = sum(table.rate for table in release.counted)
    left = EPSILON * Synth()._shares(6)["model"]
    assert rates == left * share_of(made[-1], "tables")
    assert release.tree.cells <= 20


def test_no_room_for_any_table_is_paid_for_too(monkeypatch):
    pretend_size(monkeypatch, 100_000)
    monkeypatch.setattr(choice, "MOST_CELLS", 1)
    release, _ = check(make_table(5), Synth())
    assert not release.counted


@pytest.mark.parametrize("size", [3_000, 100_000])
def test_rates_of_marginals_and_tables_are_what_was_paid(monkeypatch, size):
    made = plans(monkeypatch)
    pretend_size(monkeypatch, size)
    release, unpaid = check(make_table(6), Synth(quality_share=Fraction(0)))
    assert unpaid == EPSILON * plan.SIZE_SHARE
    left = EPSILON * (1 - plan.SIZE_SHARE)
    assert sum(one.rate for one in release.marginals) == left * share_of(made[-1], "marginals")
    assert sum(one.rate for one in release.counted) == left * share_of(made[-1], "tables")


def test_the_exact_size_is_read_once_and_only_for_its_noise(monkeypatch):
    seen = []

    def noisy_size(self, count, *, budget):
        seen.append(count)
        budget.spend()
        return 5_000

    monkeypatch.setattr(Run, "noisy_size", noisy_size)
    release, _ = check(make_table(3, rows=41), Synth())
    assert seen == [41]
    assert release.size.value == 5_000
    assert np.isfinite(release.total)
