"""The method of marginals: an even share for each column, and complete records only."""

from fractions import Fraction

import numpy as np
import pytest

from dpublish.data.schema import Schema, column
from dpublish.data.sources import open_table
from dpublish.errors import InvalidParameter
from dpublish.methods.marginals.marginals import Marginals
from dpublish.privacy.budget import Budget
from dpublish.randomness import seeded
from method_examples import ROWS, SCHEMA, arrow_table


def publish(rows=ROWS, epsilon="1", budget=None, **settings):
    table = open_table(arrow_table(rows), SCHEMA)
    budget = budget or Budget.seeded(epsilon)
    return Marginals(**settings).release(table, budget=budget, rng=seeded(1))


@pytest.mark.parametrize("method", ["auto", "hierarchical", "efpa", "noise-first"])
def test_every_column_gets_an_even_share_and_nothing_is_left(method):
    budget = Budget.seeded("0.7")
    release = publish(budget=budget, marginal=method)
    assert all(share.is_used for share in budget.account())
    assert budget.cost() == release.receipt.epsilon == Fraction(7, 10)
    shares = {}
    for purpose, share in release.receipt.shares:
        marginal = purpose.split("/")[1]
        shares[marginal] = shares.get(marginal, 0) + share
    assert set(shares.values()) == {Fraction(7, 40)}
    assert len(shares) == 4


def test_noise_is_for_the_share_of_one_column():
    rates = [marginal.rate for marginal in publish(epsilon="0.8").marginals]
    assert rates == [Fraction(1, 5)] * 4


def test_one_record_moves_one_count_of_each_column_or_none():
    def exact(rows):
        return [marginal.units for marginal in publish(rows, "100000").marginals]

    seen = []
    for index in range(len(ROWS)):
        fewer = exact(ROWS[:index] + ROWS[index + 1 :])
        moves = {
            int(np.abs(more - less).sum()) for more, less in zip(exact(ROWS), fewer, strict=True)
        }
        seen.append(moves)
    assert all(moves in ({0}, {1}) for moves in seen)
    assert {1} in seen
    assert {0} in seen


def test_columns_are_kept_in_the_order_of_the_schema():
    assert publish(columns=("town", "age")).schema.names == ("age", "town")


def test_what_cannot_be_published_is_refused_beforehand():
    huge = Schema((column("wage", "integer", bounds=[0, 9999]),))
    for method, schema in [
        (Marginals(columns=("height", "wage")), SCHEMA),
        (Marginals(columns=("age", "age")), SCHEMA),
        (Marginals(marginal="efpa"), huge),
        (Marginals(marginal="noise-first"), huge),
    ]:
        with pytest.raises(InvalidParameter):
            method.expected_error(schema, None, Fraction(1))
    with pytest.raises(InvalidParameter):
        Marginals().expected_error(SCHEMA, None, Fraction(1, 2**39))
    with pytest.raises(InvalidParameter):
        Marginals(marginal="guess")
    with pytest.raises(InvalidParameter):
        Marginals(columns=3)


def test_a_schema_whose_units_own_rows_is_refused():
    schema = Schema((column("age", "integer", bounds=[0, 9]),), unit="person")
    with pytest.raises(InvalidParameter, match="person may have several"):
        Marginals().expected_error(schema, None, Fraction(1))


@pytest.mark.parametrize("method", ["auto", "identity", "hierarchical", "efpa", "noise-first"])
def test_the_error_predicted_falls_with_epsilon_and_grows_with_the_columns(method):
    def width(epsilon, *columns):
        chosen = Marginals(marginal=method, columns=columns)
        expected = chosen.expected_error(SCHEMA, 1000, Fraction(epsilon))
        return expected.figures[expected.target]

    assert width("0.1") > width("1") > 0
    assert width("0.1") > width("0.1", "age")


def test_progress_shows_how_many_columns_are_done():
    summaries = []
    table = open_table(arrow_table(), SCHEMA)
    Marginals().release(
        table, budget=Budget.seeded(1), rng=seeded(1), progress=lambda *step: summaries.append(step)
    )
    assert summaries == [(done, 4, "marginals") for done in (1, 2, 3, 4)]


def test_the_plan_states_where_noise_is_not_all():
    summaries = {
        method: Marginals(marginal=method).expected_error(SCHEMA, None, Fraction(1)).summary
        for method in ("identity", "hierarchical", "efpa", "noise-first")
    }
    smoothed = {name for name, words in summaries.items() if "smoothing adds an error" in words}
    assert smoothed == {"efpa", "noise-first"}
    assert all("by noise alone" in summaries[name] for name in smoothed)
