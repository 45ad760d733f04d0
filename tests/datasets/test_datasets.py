"""Simulated datasets in one call: rows and schema fit, and a seed repeats them."""

import pytest

from dpublish import datasets
from dpublish.aggregates.complete_counts import CompleteCounts
from dpublish.errors import InvalidParameter


@pytest.mark.parametrize("name", datasets.NAMES)
def test_a_table_holds_as_many_records_as_requested(name):
    table = datasets.table(name, 50, seed=3)
    assert table.schema == datasets.schema(name)
    counts = table.sum(CompleteCounts(table.schema, ((),), table.schema.names))
    if table.schema.unit is not None:
        assert counts.sum() > 50  # several rows for most baskets and patients
    else:
        assert counts.sum() == 50


def test_functions_stay_functions_when_their_modules_are_imported():
    """`census` and `loans` are the names of modules, too."""
    from dpublish.datasets.census import SCHEMA, census

    assert datasets.census is census
    assert 'name = "census"' in SCHEMA
    assert datasets.census(5, seed=1).equals(census(5, seed=1))
    assert not datasets.census(5, seed=1).equals(census(5, seed=2))


@pytest.mark.parametrize("call", [datasets.table, datasets.schema])
def test_an_unknown_dataset_is_refused_with_the_known_ones(call):
    with pytest.raises(InvalidParameter, match="census"):
        call("sensus")
