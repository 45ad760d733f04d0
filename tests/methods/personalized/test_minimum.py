"""Minimum: each person loses at most the least share, whoever is in the table."""

from dataclasses import dataclass
from fractions import Fraction
from math import inf
from typing import ClassVar

import pyarrow as pa
import pytest

from dpublish.core import run as noisy
from dpublish.data.schema import Schema, column
from dpublish.data.sources import open_table
from dpublish.errors import InvalidParameter
from dpublish.methods.dpcopula.dpcopula import DPCopula
from dpublish.methods.histogram.histogram import Histogram
from dpublish.methods.personalized.minimum import Minimum
from dpublish.privacy.budget import Budget
from dpublish.randomness import seeded
from transcript import privacy_loss

LEVELS = (Fraction(1, 10), Fraction(1, 2), Fraction(2))
SCHEMA = Schema((column("sex", "category", values=["F", "M"]),))
INNER = Histogram(columns=("sex",))
OWN = [0.5, 0.5, 2.0, 3.0]


def minimum(**settings):
    return Minimum(preference="own", levels=LEVELS, inner=INNER, **settings)


def source(own, sex=None):
    return pa.table({"own": pa.array(own, pa.float64()), "sex": sex or ["F"] * len(own)})


def losses(method, epsilon, monkeypatch):
    """Exact losses when a record of each level is added."""

    def release_of(table):
        return method.release(
            open_table(table, method.prepare(SCHEMA)), budget=method.budget(epsilon), rng=seeded(4)
        )

    return {
        level: privacy_loss(
            release_of, source(OWN), source([*OWN, float(level)]), [noisy], monkeypatch
        )
        for level in LEVELS
    }


@pytest.mark.parametrize("epsilon", [Fraction(2), Fraction(1, 3)])
def test_every_level_loses_the_least_share(epsilon, monkeypatch):
    method = minimum()
    spent = method.spending(epsilon)
    assert set(spent.values()) == {epsilon / 20}
    for level, loss in losses(method, epsilon, monkeypatch).items():
        assert loss == pytest.approx(float(spent[level]), rel=1e-9)


@dataclass(frozen=True, kw_only=True)
class PresentMinimum(Minimum):
    """The twin as printed: the minimum over the records that are there."""

    name: ClassVar[str] = "present-minimum"
    present: tuple[float, ...] = ()

    @property
    def lowest(self):
        return next(level for level in LEVELS if float(level) >= min(self.present))


def test_the_minimum_over_the_records_present_is_caught(monkeypatch):
    def release_of(table):
        method = PresentMinimum(
            preference="own",
            levels=LEVELS,
            inner=INNER,
            present=tuple(table["own"].to_pylist()),
        )
        return method.release(
            open_table(table, method.prepare(SCHEMA)),
            budget=method.budget(LEVELS[-1]),
            rng=seeded(4),
        )

    there = source([*OWN, 0.1])
    assert privacy_loss(release_of, source(OWN), there, [noisy], monkeypatch) == inf


def test_in_a_frame_the_least_level_is_that_of_somebody_eligible():
    method = minimum(sizes=(0, 10, 10))
    assert method.spending(Fraction(2)) == {
        LEVELS[0]: Fraction(0),
        LEVELS[1]: Fraction(1, 2),
        LEVELS[2]: Fraction(1, 2),
    }
    assert minimum(sizes=(0, 0, 0)).lowest == LEVELS[0]


def test_exchanged_values_are_hidden_as_well(monkeypatch):
    method = minimum(mode="values-only")

    def release_of(table):
        return method.release(
            open_table(table, method.prepare(SCHEMA)), budget=Budget.seeded("0.1"), rng=seeded(4)
        )

    here, there = source(OWN), source(OWN, ["M", "F", "F", "F"])
    loss = privacy_loss(release_of, here, there, [noisy], monkeypatch)
    assert 0 < loss <= 0.1 * (1 + 1e-9)


def test_all_people_at_or_above_the_first_level_are_counted():
    method = minimum()
    table = open_table(source([0.1] * 4000 + [0.09] * 4000 + [None] * 50), method.prepare(SCHEMA))
    release = method.release(table, budget=method.budget(Fraction(2)), rng=seeded(9))
    assert release.count("sex = F").value == pytest.approx(4000, abs=200)


def test_an_inner_method_that_hides_an_exchange_is_refused_before_the_budget_is_opened():
    inner = DPCopula(columns=("sex",), public_records=4)
    method = Minimum(preference="own", levels=LEVELS, inner=inner)
    budget = method.budget(1)
    table = open_table(source(OWN), method.prepare(SCHEMA))
    with pytest.raises(InvalidParameter, match="public number of records"):
        method.release(table, budget=budget, rng=seeded(4))
    assert not budget.is_used
