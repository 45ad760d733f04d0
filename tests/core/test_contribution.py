"""People with several rows, in every method: rows are bounded, and what is hidden is the person."""

from collections import Counter
from contextlib import suppress
from dataclasses import replace
from fractions import Fraction
from itertools import pairwise, product

import numpy as np
import pyarrow as pa
import pytest

from choice_distribution import choice_distribution
from dpublish.aggregates.counts import Counts
from dpublish.core import run as runs
from dpublish.core.catalog import CATALOG
from dpublish.core.contribution import MOST_ROWS, QUANTILE, prior, quantile_scores
from dpublish.core.method import settings_of
from dpublish.core.settings import make_method, method_class, method_settings
from dpublish.data.engines import bounded, units
from dpublish.data.engines.local import LocalTable
from dpublish.data.schema import Schema, column, parse_columns
from dpublish.data.sources import open_table
from dpublish.errors import InvalidParameter
from dpublish.ledger.ledger import Ledger
from dpublish.mechanisms.quantile import rank_range
from dpublish.methods.dpcopula.dpcopula import DPCopula
from dpublish.methods.histogram.histogram import Histogram
from dpublish.methods.topk.topk import TopK
from dpublish.privacy.budget import Budget, Grant
from dpublish.privacy.neighbors import AddRemoveRecord, AddRemoveUnit, ReplaceRecord
from dpublish.publishing.plan import plan
from dpublish.publishing.table import publish
from dpublish.randomness import secure, seeded
from method_examples import EXAMPLES, arrow_table
from method_examples import SCHEMA as EXAMPLE

WARDS = ["A", "B", "C"]
VISITS = Schema((column("ward", "category", values=WARDS),), unit="patient")
EPSILON = Fraction(1, 2)


def visits(rows, batch=2):
    patients, wards = zip(*rows, strict=True) if rows else ((), ())
    table = pa.table(
        {"patient": pa.array(patients, pa.int64()), "ward": pa.array(wards, pa.string())}
    )
    return pa.Table.from_batches(table.to_batches(max_chunksize=batch), table.schema)


def release(rows, contribution, epsilon=EPSILON, seed=1, **settings):
    method = Histogram(columns=("ward",), contribution=contribution, **settings)
    table = open_table(visits(rows), VISITS)
    return method.release(table, budget=Budget.seeded(epsilon), rng=seeded(seed))


# --- The guarantee, exactly: noise of rate r hides a change of L1 distance d at r * d ----------


def noisy_answer(rows, contribution, seed):
    """Return what noise is added to, and the noise's rate: its log-odds for each step of 1."""
    seen = []

    def record(answer, *, sensitivity, budget, rng):
        seen.append((answer, budget.spend() / sensitivity))
        return answer

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(runs, "add_geometric", record)
        with suppress(InvalidParameter):  # a receipt that does not add up comes too late
            release(rows, contribution, seed=seed)
    [(answer, rate)] = seen
    return answer, rate


def largest_loss(contribution, seeds=4):
    """Return the most by which the log-odds of a release change over small neighboring tables."""
    rows = [(1, "A"), (1, "C"), (1, "A"), (2, "A"), (2, "A"), (3, "C")]
    new = [(9, ward) for ward in "BBBBAC"]
    losses = []
    for at, size, seed in product(range(len(rows) + 1), range(1, len(new) + 1), range(seeds)):
        more = [*rows[:at], *new[:size], *rows[at:]]
        here, rate = noisy_answer(rows, contribution, seed)
        there, same_rate = noisy_answer(more, contribution, seed)
        assert rate == same_rate
        losses.append(rate * int(np.abs(there - here).sum()))
    return max(losses)


@pytest.mark.parametrize("contribution", [1, 2, 3])
def test_all_rows_of_a_patient_are_hidden_at_the_whole_epsilon_and_no_more(contribution):
    assert largest_loss(contribution) == EPSILON


def bound_skipped(patch):
    patch.setattr(bounded, "_choose", lambda numbers, *_: np.ones(numbers.size, np.bool_))


def epsilon_not_divided(patch):
    def for_rows(self, most, hides=None):
        return self.at_most(self.epsilon, hides=AddRemoveRecord())

    patch.setattr(Budget, "for_rows", for_rows)


def units_split_over_batches(patch):
    class Forgetful(units.UnitNumbers):
        def add(self, found):
            batch = len(self._waiting) + len(self._numbers)
            super().add(pa.array([100 * batch + unit for unit in found.to_pylist()], pa.int64()))

    patch.setattr(bounded, "UnitNumbers", Forgetful)


def hash_shared_by_units(patch):
    patch.setattr(
        bounded, "to_units", lambda array, label: pa.array([x % 2 for x in array.to_pylist()])
    )


def bound_by_position(patch):
    def by_position(numbers, words, known, bound):
        order = np.argsort(np.arange(numbers.size) % 2, kind="stable")  # others move a row
        ranks = [int((numbers[order[:i]] == numbers[order[i]]).sum()) for i in range(order.size)]
        chosen = np.zeros(numbers.size, np.bool_)
        chosen[order] = np.array(ranks, dtype=np.int64) < bound.most
        return chosen

    patch.setattr(bounded, "_choose", by_position)


@pytest.mark.parametrize(
    "broken",
    [
        bound_skipped,
        epsilon_not_divided,
        units_split_over_batches,
        hash_shared_by_units,
        bound_by_position,
    ],
)
def test_a_broken_bound_is_caught(broken, monkeypatch):
    broken(monkeypatch)
    assert max(largest_loss(1), largest_loss(2)) > EPSILON


def test_the_order_of_rows_changes_nothing_and_a_bound_by_row_order_is_caught(monkeypatch):
    rows = [(patient, ward) for patient in range(12) for ward in "ABC"]
    there = [rows[int(i)] for i in np.argsort(seeded(5).words(36))]

    def counts(rows):
        return noisy_answer(rows, 1, seed=1)[0].tolist()

    assert counts(rows) == counts(there)
    monkeypatch.setattr(bounded, "hash_rows", lambda columns, key: np.zeros(columns[0].size, "u8"))
    monkeypatch.setattr(bounded, "hash_marks", lambda columns, key: columns[2].astype("u8"))
    assert counts(rows) != counts(there)


def test_the_key_is_drawn_for_every_release():
    rows = [(patient, ward) for patient in range(12) for ward in "ABC"]
    found = {tuple(noisy_answer(rows, 1, seed)[0].tolist()) for seed in range(20)}
    assert len(found) > 5
    assert {sum(counts) for counts in found} == {12}


def test_only_the_columns_that_are_read_decide_which_rows_are_complete():
    schema = Schema((*VISITS.columns, column("age", "integer", bounds=[0, 99])), unit="patient")
    rows = visits([(1, "A"), (2, "B")]).append_column("age", pa.array([None, 5], pa.int64()))

    class AllColumns(Histogram):
        def reads(self, schema):
            return ("ward", "age")

    class AllButAges(AllColumns):
        def complete_columns(self, schema):
            return ("ward",)

    table = open_table(rows, schema)
    cases = ((Histogram, [1, 1, 0]), (AllColumns, [0, 1, 0]), (AllButAges, [1, 1, 0]))
    for kind, kept in cases:
        method = kind(columns=("ward",), contribution=2)
        found = method.release(table, budget=Budget.seeded(10**4), rng=seeded(1))
        assert found.counts.tolist() == kept


# --- What the receipt and the ledger say -------------------------------------------------------


def test_the_receipt_names_the_patient_the_whole_epsilon_and_the_bound():
    receipt = release([(1, "A")] * 9, 4).receipt
    assert receipt.neighbors == AddRemoveUnit("patient")
    assert receipt.epsilon == EPSILON
    assert receipt.contribution == 4
    assert receipt.shares == (("release/counts", EPSILON),)
    assert receipt.settings["contribution"] == 4
    again = type(receipt).from_dict(receipt.to_dict())
    assert again == receipt


def test_shares_are_what_they_cost_a_patient():
    method = make_method("privbayes", {"contribution": "3"})
    rows = visits([(n % 7, WARDS[n % 3]) for n in range(30)])
    rows = rows.append_column("stay", pa.array([n % 5 for n in range(30)]))
    schema = Schema((*VISITS.columns, column("stay", "integer", bounds=[0, 4])), unit="patient")
    table = open_table(rows, schema)
    by_unit = method.release(table, budget=Budget.seeded(EPSILON), rng=seeded(1)).receipt
    plain = open_table(rows, replace(schema, unit=None))
    by_row = make_method("privbayes", {}).release(
        plain, budget=Budget.seeded(EPSILON), rng=seeded(1)
    )
    assert by_unit.shares == by_row.receipt.shares
    assert sum(share for _, share in by_unit.shares) == EPSILON


def test_settings_without_a_bound_are_written_as_they_always_were():
    assert settings_of(Histogram(columns=("ward",))) == {"columns": ["ward"], "threshold": None}
    bound = Histogram(columns=("ward",), contribution=2)
    assert settings_of(bound)["contribution"] == 2
    assert repr(Histogram(columns=("ward",))) == "Histogram(columns=('ward',), threshold=None)"


def test_the_ledger_is_debited_for_the_patient(tmp_path):
    table = open_table(visits([(1, "A"), (1, "B"), (2, "C")]), VISITS)
    with Ledger.create(tmp_path / "books.db") as ledger:
        ledger.add("visits", cap="1")
        found = publish(
            Histogram(columns=("ward",), contribution=2),
            table,
            tmp_path / "out",
            ledger=ledger,
            dataset="visits",
            epsilon=EPSILON,
        )
        assert found.receipt.neighbors == AddRemoveUnit("patient")
        account = ledger.status("visits")
        assert (account.left, account.hides) == (1 - EPSILON, AddRemoveUnit("patient"))


# --- What is refused, and when -----------------------------------------------------------------


class Untouchable:
    """A table whose rows must not be read."""

    is_bounded = False
    steps = ()

    def __init__(self, schema):
        self.schema, self.neighbors, self.opened = schema, schema.neighbors, schema.names

    def __getattr__(self, name):
        raise AssertionError("rows were read")


RECORDS = replace(VISITS, unit=None)


@pytest.mark.parametrize(
    ("method", "schema", "words"),
    [
        (Histogram(columns=("ward",)), VISITS, "--contribution 4"),
        (Histogram(columns=("ward",), contribution=2), RECORDS, "unit = "),
        (Histogram(columns=("ward",), contribution="auto"), RECORDS, "unit = "),
        (Histogram(columns=("ward",), contribution=0), VISITS, "contribution"),
        (Histogram(columns=("ward",), contribution=1.5), VISITS, "contribution"),
        (Histogram(columns=("ward",), contribution=True), VISITS, "contribution"),
        (
            Histogram(columns=("ward",), contribution="auto", contribution_share=Fraction(1)),
            VISITS,
            "contribution_share",
        ),
        (DPCopula(public_records=100, contribution=2), VISITS, "leave one of the two out"),
    ],
)
def test_what_does_not_fit_is_refused_before_a_row_is_read_or_paid_for(method, schema, words):
    budget = Budget.seeded(EPSILON)
    with pytest.raises(InvalidParameter, match=words):
        method.release(Untouchable(schema), budget=budget, rng=seeded(1))
    assert not budget.is_used
    if not isinstance(method, DPCopula):
        with pytest.raises(InvalidParameter, match=words):
            plan(method, schema, epsilon=EPSILON)


def test_a_grant_for_records_pays_for_no_patient():
    grant = Grant("visits", 3, "f" * 64, "2026-01-01T00:00:00+00:00")
    budget = Budget.granted(EPSILON, grant=grant, hides=AddRemoveRecord())
    method = Histogram(columns=("ward",), contribution=2)
    with pytest.raises(InvalidParameter, match="the ledger was told"):
        method.release(Untouchable(VISITS), budget=budget, rng=secure())
    assert not budget.is_used
    with pytest.raises(InvalidParameter, match="do not make up"):
        Budget.granted(1, grant=grant, hides=ReplaceRecord()).for_rows(2)
    with pytest.raises(InvalidParameter, match="most"):
        Budget.seeded(1).for_rows(0)


def test_an_epsilon_too_small_for_its_rows_is_refused_before_a_row_is_read():
    tiny = Fraction(1, 2**38)
    method = Histogram(columns=("ward",))
    method.release(open_table(visits([]), RECORDS), budget=Budget.seeded(tiny), rng=seeded(1))
    for contribution in (64, "auto"):
        bounded, budget = replace(method, contribution=contribution), Budget.seeded(tiny)
        with pytest.raises(InvalidParameter):
            bounded.predict_error(VISITS, None, tiny)
        with pytest.raises(InvalidParameter):
            bounded.release(Untouchable(VISITS), budget=budget, rng=seeded(1))
        assert not budget.is_used


def test_the_error_is_predicted_for_the_noise_that_is_added():
    method = Histogram(columns=("ward",))
    for most in (1, 4):
        expected = replace(method, contribution=most).predict_error(VISITS, None, EPSILON)
        plain = method.predict_error(RECORDS, None, EPSILON / most)
        assert expected.figures == plain.figures
        assert "of each person ('patient')" in expected.summary
    found = release([(1, "A")], 4)
    assert found.expected_error().items() <= dict(expected.figures).items()


def test_a_method_that_hides_units_by_itself_keeps_doing_so_and_takes_a_bound_too():
    table = open_table(visits([(1, "A")] * 50 + [(2, "B"), (3, "B")]), VISITS)
    lavish = Budget.seeded(10**4)
    alone = TopK(column="ward", count=1).release(table, budget=lavish, rng=seeded(1))
    assert alone.receipt.contribution is None
    assert alone.values == ("B",)  # two patients against one
    by_rows = TopK(column="ward", count=1, contribution=9)
    found = by_rows.release(table, budget=Budget.seeded(10**4), rng=seeded(1))
    assert found.receipt.contribution == 9
    assert found.values == ("A",)  # nine rows against two


def test_every_method_has_the_setting_and_lists_it_last():
    for name in ("histogram", "privpfc", "kmeans", "minimum"):
        listed = [each.name for each in method_settings(name)]
        assert listed[-2:] == ["contribution", "contribution_share"]
    assert make_method("histogram", {"columns": "a", "contribution": "4"}).contribution == 4
    assert make_method("histogram", {"columns": "a", "contribution": "auto"}).contribution == "auto"
    for wrong in ("0", "-1", "4.5", "many"):
        with pytest.raises(InvalidParameter, match="contribution"):
            make_method("histogram", {"columns": "a", "contribution": wrong})


# --- A private number of rows ------------------------------------------------------------------


def test_auto_spends_its_share_and_says_which_bound_came_out():
    rows = [(patient, ward) for patient in range(900) for ward in "AB"]
    found = release(rows, "auto", epsilon=4)
    receipt = found.receipt
    assert receipt.contribution == 2
    assert receipt.shares == (
        ("release/contribution", Fraction(1, 5)),
        ("release/release/counts", Fraction(19, 5)),
    )
    assert receipt.settings["contribution"] == "auto"
    assert receipt.epsilon == 4
    dearer = release(rows, "auto", epsilon=4, contribution_share=Fraction(1, 2)).receipt
    assert dearer.shares[0] == ("release/contribution", 2)
    assert dearer.settings["contribution_share"] == "0.5"


def test_auto_uses_the_bound_that_it_paid_for():
    rows = [(patient, ward) for patient in range(400) for ward in "ABCABC"]
    seen = []

    class Watched(LocalTable):
        def bound(self, most, key, *given, **options):
            seen.append(most)
            return super().bound(most, key, *given, **options)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("dpublish.data.sources.LocalTable", Watched)
        found = release(rows, "auto", epsilon=10**4)
    assert seen == [6] == [found.receipt.contribution]
    assert found.counts.tolist() == [800, 800, 800]


def count_vectors(length, most):
    return [np.array(each) for each in product(range(most + 1), repeat=length)]


def test_no_patient_moves_two_scores_against_each_other_by_more_than_the_range():
    changes = set()
    for counts in count_vectors(3, 6):
        for rows in range(3):
            more = counts + np.eye(3, dtype=np.int64)[rows]
            moved = quantile_scores(more) - quantile_scores(counts)
            assert np.abs(moved).max() <= max(QUANTILE.numerator, 20 - QUANTILE.numerator)
            changes.add(int(np.ptp(moved)))
    assert rank_range(QUANTILE) == 38
    assert 20 < max(changes) <= 38


@pytest.mark.parametrize("claimed", [38, 9])
def test_no_choice_tells_a_patient_by_more_than_its_share(claimed):
    """Half the range or less would not do: the twin with 9 is caught."""
    epsilon = 2.0
    rate = epsilon / claimed
    shift = prior(Fraction(1, 20))[:3]
    worst = 0.0
    for counts in count_vectors(3, 5):
        here = choice_distribution(quantile_scores(counts) + shift // 100, rate)
        for rows in range(3):
            more = counts + np.eye(3, dtype=np.int64)[rows]
            there = choice_distribution(quantile_scores(more) + shift // 100, rate)
            worst = max(worst, float(np.abs(np.log(here / there)).max()))
    assert (worst <= epsilon + 1e-9) == (claimed == 38)


def test_the_choice_follows_the_distribution_of_its_scores():
    table = open_table(
        visits([(n, "A") for n in range(40)] + [(n, "B") for n in range(20)]), VISITS
    )
    share = Fraction(3, 2)
    found = Counter(release_auto(table, share, seed).receipt.contribution for seed in range(1500))
    counts = table.rows_per_unit(MOST_ROWS)
    scores = quantile_scores(counts) + prior(share)
    expected = choice_distribution(scores, float(share / rank_range(QUANTILE)))
    observed = np.array([found[m] for m in range(1, MOST_ROWS + 1)]) / 1500
    assert np.abs(observed - expected).max() < 0.06
    assert observed.sum() == 1


def release_auto(table, share, seed):
    method = Histogram(columns=("ward",), contribution="auto", contribution_share=share / 3)
    return method.release(table, budget=Budget.seeded(3), rng=seeded(seed))


def test_scores_are_best_at_the_quantile_and_fall_on_both_sides():
    sizes = np.repeat([1, 2, 3, 4, 5], [500, 300, 120, 60, 20])
    counts = np.bincount(sizes, minlength=9)[1:]
    scores = quantile_scores(counts)
    best = int(np.argmax(scores)) + 1
    assert best == int(np.quantile(sizes, 0.95, method="inverted_cdf")) == 4
    assert all(low < high for low, high in pairwise(scores[:best]))
    assert all(low >= high for low, high in pairwise(scores[best - 1 :]))


def test_an_empty_table_gives_some_bound():
    table = open_table(visits([]), VISITS)
    assert table.rows_per_unit(3).tolist() == [0, 0, 0]
    found = {release_auto(table, Fraction(3, 2), seed).receipt.contribution for seed in range(30)}
    assert len(found) > 3


def test_counts_of_a_bounded_table_add_up_to_what_may_stay():
    rows = [(patient, "A") for patient in range(6) for _ in range(patient)]
    table = open_table(visits(rows), VISITS).bound(3, b"key")
    assert table.sum(Counts(table.schema, ((),))).tolist() == [0 + 1 + 2 + 3 + 3 + 3]


# --- Every method ------------------------------------------------------------------------------

ORDINARY = sorted(name for name in CATALOG if not method_class(name).takes_levels)


@pytest.mark.parametrize("name", ORDINARY)
def test_every_ordinary_method_hides_patients_and_says_so(name):
    schema = replace(EXAMPLE, unit="patient")
    rows = arrow_table()
    rows = rows.append_column("patient", pa.array([n // 3 for n in range(rows.num_rows)]))
    method = make_method(name, EXAMPLES[name][0] | {"contribution": "2"})
    budget = Budget.seeded(3)
    found = method.release(open_table(rows, schema), budget=budget, rng=seeded(1))
    receipt = found.receipt
    assert receipt.neighbors == AddRemoveUnit("patient")
    assert (receipt.epsilon, receipt.contribution) == (3, 2)
    assert budget.is_used
    within = [getattr(value, "receipt", receipt) for value in vars(found).values()]
    assert all(inner == receipt for inner in within)  # also of a release within the release
    for unbounded in (method.for_records(), replace(method, contribution=0)):
        if AddRemoveUnit not in method.hidden or unbounded.contribution is not None:
            with pytest.raises(InvalidParameter, match="contribution"):
                unbounded.release(Untouchable(schema), budget=Budget.seeded(3), rng=seeded(1))


def test_a_bound_that_leaves_nothing_to_see_is_refused_in_plain_words():
    with pytest.raises(InvalidParameter, match="must be at most 1,000,000; noise grows"):
        make_method("histogram", {"columns": "ward", "contribution": str(10**12)})


def test_who_is_counted_is_nothing_to_count_by():
    schema = Schema((column("ward", "category", values=["A", "B"]),), unit="patient")
    with pytest.raises(InvalidParameter, match="'patient' tells people apart"):
        parse_columns("patient", schema)
