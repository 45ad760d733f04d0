"""Synthetic rows beside true ones, told in tables and on a page."""

from importlib.util import find_spec

import numpy as np
import pyarrow as pa
import pytest

from dpublish.core.prediction import encode_rows
from dpublish.data.schema import Schema, column
from dpublish.data.sources import open_table
from dpublish.datasets.census import census
from dpublish.errors import InvalidParameter
from dpublish.evaluation.evaluations import Request, evaluate
from dpublish.evaluation.synthetic_page import _marginal, evaluation_page
from dpublish.evaluation.synthetic_table import Comparison
from dpublish.evaluation.workload import Workload, true_counts
from dpublish.methods.histogram.histogram import Histogram
from dpublish.methods.marginals.marginals import Marginals
from dpublish.plots.comparisons import HeatLayout, HeatPanel, draw_errors, heat_maps
from dpublish.privacy.budget import Budget
from dpublish.randomness import plain_generator, seeded
from dpublish.report.html import render_page
from evaluation_rows import CENSUS, Rows, rows_release


class Estimates(Rows):
    """Answers by itself, twice what is true."""

    def count_boxes(self, columns, lows, highs):
        codes = encode_rows(self.given, self.schema, columns)
        return 2.0 * true_counts(codes, Workload(tuple(columns), lows, highs))


def test_a_copy_of_the_true_rows_has_no_error_at_all():
    found = Comparison.of(rows_release(census(3_000)), census(3_000))
    assert {m.total_variation for m in found.marginals} == {0.0}
    assert {m.cdf_gap for m in found.marginals} == {0.0, None}
    assert {pair.difference for pair in found.associations} == {0.0}
    assert len(found.associations) == 21
    assert [one.errors.mean_absolute for one in found.answered] == [0.0] * 4
    assert sum(len(one.truth) for one in found.answered) == 1_000


def test_shuffled_columns_keep_marginals_and_lose_what_ties_them():
    true = census(4_000)
    rng = plain_generator(2)
    shuffled = pa.table(
        {name: true[name].take(pa.array(rng.permutation(4_000))) for name in true.column_names}
    )
    found = Comparison.of(rows_release(shuffled), true)
    assert {m.total_variation for m in found.marginals} == {0.0}
    by_pair = {(pair.first, pair.second): pair for pair in found.associations}
    ranks, nominal = by_pair["age", "education"], by_pair["education", "income"]
    assert (ranks.measure, nominal.measure) == ("rank correlation", "Cramer's V")
    assert nominal.true > 0.3
    assert nominal.synthetic < 0.1
    errors = [one.errors.mean_absolute for one in found.answered]
    assert errors[0] == 0
    assert min(errors[1:]) > 0


def test_numbers_are_those_of_two_tables_that_can_be_checked_by_hand():
    schema = Schema((column("x", "integer", bounds=[0, 3]), column("y", "integer", bounds=[0, 3])))
    true = pa.table({"x": [0, 1, 2, 3], "y": [0, 1, 2, 3]})
    synthetic = pa.table({"x": [0, 0, 2, 3], "y": [3, 2, 1, 0]})
    found = Comparison.of(rows_release(synthetic, schema), true)
    assert found.marginals[0] == ("x", 0.25, 0.25)
    (pair,) = found.associations
    assert pair.true == pytest.approx(1.0)
    assert pair.synthetic < -0.9


def test_answers_are_scaled_to_the_number_of_true_rows():
    true = census(2_000)
    twice = pa.concat_tables([true, true])
    for release in (rows_release(twice), rows_release(true, kind=Estimates)):
        found = Comparison.of(release, true)
        assert [one.errors.mean_absolute for one in found.answered] == pytest.approx([0.0] * 4)
    assert found.has_estimates
    assert not Comparison.of(rows_release(twice), true).has_estimates


def test_rows_that_the_schema_leaves_out_are_left_out():
    schema = Schema((column("x", "integer", bounds=[0, 1], missing="drop"),))
    true = pa.table({"x": [0, 1, None, None]})
    found = Comparison.of(rows_release(pa.table({"x": [0, 1]}), schema), true)
    assert found.records == 2
    assert found.marginals[0].total_variation == 0
    with pytest.raises(InvalidParameter, match="every column"):
        Comparison.of(rows_release(true, schema), true.slice(2))


def test_missing_values_with_a_cell_of_their_own_count_as_values_but_have_no_rank():
    schema = Schema((column("x", "integer", bounds=[0, 3], missing="category"),))
    true = pa.table({"x": [0, 1, 2, 3, None, None, None, None]})
    found = Comparison.of(rows_release(pa.table({"x": [0, 1, 2, 3]}), schema), true)
    assert found.marginals[0].total_variation == pytest.approx(0.5)
    assert found.marginals[0].cdf_gap == 0


def test_a_release_that_gives_no_rows_at_all_is_measured_too():
    found = Comparison.of(rows_release(census(0)), census(500))
    assert {m.total_variation for m in found.marginals} == {1.0}
    assert all(pair.synthetic == 0 for pair in found.associations)
    assert all(0 < one.errors.mean_relative <= 1 for one in found.answered)


def test_a_synthetic_table_of_some_columns_is_measured_on_those():
    some = census(500).select(["age", "sex"])
    found = Comparison.of(rows_release(some), census(500))
    assert found.columns == ("age", "sex")
    assert [one.depth for one in found.answered] == [1, 2]
    assert sum(len(one.truth) for one in found.answered) == 1_000


def test_wide_tables_are_queried_about_some_of_their_columns():
    names = [f"c{number}" for number in range(30)]
    schema = Schema(tuple(column(name, "integer", bounds=[0, 9]) for name in names))
    rng = plain_generator(1)
    true = pa.table({name: rng.integers(0, 10, 200) for name in names})
    found = Comparison.of(rows_release(true, schema), true)
    assert [len(one.truth) for one in found.answered] == [250] * 4
    assert all(one.errors.mean_absolute == 0 for one in found.answered)


def test_findings_are_listed_worst_first_and_also_for_programs():
    request = Request(release=rows_release(census(3_000, seed=9)), against=census(3_000))
    marginals, association, queries, shares = evaluate(request)
    assert [part.name for part in shares.parts] == ["marginals", "pairs", "triples"]
    assert [row[0] for row in marginals.rows] == list(CENSUS.names)
    assert len(association.rows) == 10
    differences = [float(row[-1]) for row in association.rows]
    assert differences == sorted(differences, reverse=True)
    assert len(association.figures["pairs"]) == 21
    assert [row[:2] for row in queries.rows] == [[str(d), "250"] for d in (1, 2, 3, 4)]
    assert queries.figures["sanity"] == pytest.approx(1.5)
    assert "synthetic rows" in queries.title
    one = Request(release=rows_release(census(50).select(["age"])), against=census(50))
    assert [finding.name for finding in evaluate(one)] == ["marginals", "queries", "shares"]


def test_a_column_that_the_true_rows_lack_is_refused():
    request = Request(release=rows_release(census(50)), against=census(50).drop_columns(["age"]))
    with pytest.raises(InvalidParameter, match="age"):
        evaluate(request)


@pytest.mark.parametrize("columns", [["age"], ["age", "sex", "work", "hours"]])
def test_the_page_is_stamped_and_shows_both_tables(columns):
    request = Request(release=rows_release(census(400).select(columns)), against=census(500))
    findings = evaluate(request)
    page = evaluation_page(request.release, findings, request.comparison)
    text = render_page(page)
    assert text.count("NOT PRIVATE") == 1
    for words in ("Marginals", "Random range counts", "Only their owner", "ε = 1"):
        assert words in text, words
    assert "<script" not in text
    assert "http" not in text.replace("http://www.w3.org/", "")
    if find_spec("matplotlib") is not None:
        assert text.count("<figure>") == len(findings)
        for words in (">true rows<", ">synthetic<", ">true count<"):
            assert words in text, words


def test_many_values_are_drawn_in_groups_that_keep_every_record():
    schema = Schema((column("x", "integer", bounds=[0, 999]),))
    rows = pa.table({"x": np.arange(1_000)})
    drawn = _marginal(Comparison.of(rows_release(rows, schema), rows), schema["x"].axis())
    assert len(drawn.labels) == 59
    assert drawn.true.sum() == pytest.approx(1)
    # Every value is in one row, so all groups are alike but for a shorter last one.
    assert set(drawn.synthetic[:-1]) == {0.017}
    assert drawn.synthetic[-1] == 0.014


def test_axes_of_logarithms_are_labeled_by_plain_numbers():
    pytest.importorskip("matplotlib")
    wide = draw_errors([("x", np.array([1, 5000]), np.array([0.001, 0.5]))], 2.0)
    narrow = draw_errors([("x", np.array([3, 4]), np.array([0.2, 0.3]))], 2.0)
    squares = HeatPanel("x", {(1, 1): 0.002, (1, 2): 5.0})
    colored = heat_maps([squares], HeatLayout("a", "b", "c"))
    for drawing, label in ((wide, "1,000"), (narrow, "0.2"), (colored, "0.01")):
        assert "mathdefault" not in drawing
        assert f">{label}<" in drawing


def test_range_counts_of_marginals_say_that_columns_are_taken_as_independent():
    schema = Schema((column("x", "integer", bounds=[0, 9]), column("y", "integer", bounds=[0, 9])))
    rows = pa.table({"x": [1, 2, 3], "y": [3, 4, 5]})
    notes = []
    for method, names in (
        (Marginals(), ["x", "y"]),
        (Marginals(columns=("x",)), ["x"]),
        (Histogram(columns=("x", "y")), ["x", "y"]),
    ):
        release = method.release(open_table(rows, schema), budget=Budget.seeded(9), rng=seeded(1))
        findings = evaluate(Request(release, rows.select(names)))
        (told,) = [finding.notes for finding in findings if finding.name == "queries"]
        notes.append(any("taken as independent" in note for note in told))
    assert notes == [True, False, False]
