"""Rows in batches: the same rows as at once, and a word for what a kind cannot do."""

from dataclasses import fields, replace

import pyarrow as pa
import pytest

from dpublish.core.noisy_size import MAX_ROWS, MAX_STREAMED_ROWS
from dpublish.core.registry import make_method
from dpublish.core.released import in_batches
from dpublish.data.sources import open_table
from dpublish.errors import InvalidParameter, InvalidQuery
from dpublish.methods.histogram.released import HistogramRelease
from dpublish.privacy.budget import Budget
from dpublish.randomness import seeded
from method_examples import SCHEMA, arrow_table

KINDS = {
    "histogram": {"columns": ("age", "sex")},
    "dpcopula": {"correlation": "spearman"},
    "privpfc": {"target": "sex"},
    "privbayes": {},
}


def publish(name):
    table = open_table(arrow_table(), SCHEMA)
    method = make_method(name, KINDS[name])
    return method.release(table, budget=Budget.seeded(1), rng=seeded(1))


@pytest.mark.parametrize("name", KINDS)
@pytest.mark.parametrize("batch_size", [1, 7, 1000])
def test_batches_hold_the_rows_that_are_drawn_at_once(name, batch_size):
    release = publish(name)
    batches = list(release.row_batches(50, seed=3, batch_size=batch_size))
    assert max(batch.num_rows for batch in batches) <= batch_size
    assert pa.Table.from_batches(batches).equals(release.rows(50, seed=3))
    default = pa.Table.from_batches(release.row_batches(seed=3))
    assert default.equals(release.rows(seed=3))


def test_a_request_for_no_rows_is_one_batch_with_all_fields():
    release = publish("histogram")
    (batch,) = release.row_batches(0)
    assert batch.num_rows == 0
    assert batch.schema == release.rows(0).schema


def test_chunks_of_a_table_do_not_show_in_its_batches():
    table = pa.table({"age": pa.chunked_array([[1, 2, 3], [], [4], [5, 6, 7]])})
    batches = list(in_batches(table, 5))
    assert [batch.num_rows for batch in batches] == [5, 2]
    assert pa.Table.from_batches(batches)["age"].to_pylist() == [1, 2, 3, 4, 5, 6, 7]


def test_wrong_requests_are_refused_before_the_first_batch():
    release = publish("histogram")
    with pytest.raises(InvalidQuery, match=r"'histogram'.* draw rows and filter them"):
        release.row_batches(5, where="sex = Female")
    for wrong in ({"batch_size": 0}, {"n": -1}, {"n": MAX_ROWS + 1}, {"seed": -1}):
        with pytest.raises(InvalidParameter):
            release.row_batches(**wrong)


def test_no_condition_is_no_refusal():
    release = publish("histogram")
    (batch,) = release.row_batches(5, seed=1, where=" ")
    assert pa.Table.from_batches([batch]).equals(release.rows(5, seed=1))


def test_a_kind_that_draws_in_batches_may_draw_more_than_fit_at_once():
    release = publish("histogram")
    release.row_generator(MAX_STREAMED_ROWS, 1, counted=0, most=MAX_STREAMED_ROWS)
    with pytest.raises(InvalidParameter, match="at most 10,000,000,000 rows"):
        release.row_generator(MAX_STREAMED_ROWS + 1, 1, counted=0, most=MAX_STREAMED_ROWS)
    with pytest.raises(InvalidParameter, match="at most 100,000,000 rows"):
        release.row_generator(MAX_ROWS + 1, 1, counted=0)


class Modeled(HistogramRelease):
    """A histogram whose counts rest on a model."""

    def count(self, query="", *, confidence=0.95):
        return replace(super().count(query), assumption="a model fits", kind="model")


def test_what_is_told_of_a_count_keeps_its_kind():
    release = publish("histogram")
    modeled = Modeled(**{each.name: getattr(release, each.name) for each in fields(release)})
    assert release.count().kind == "confidence"
    assert modeled.count().kind == "model"
    assert modeled.count().counts == release.count().counts
