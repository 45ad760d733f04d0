"""What every method must satisfy, run on all that the registry lists."""

import dataclasses
import io
import pickle
from fractions import Fraction

import duckdb
import polars as pl
import pyarrow as pa
import pytest
from pyarrow import csv, parquet

from dpublish.cli.plan import plan as plan_command
from dpublish.cli.release import release as release_command
from dpublish.core.folder.folder import load
from dpublish.core.registry import CATALOG, make_method, method_settings
from dpublish.data.engines.source import MemorySource
from dpublish.data.sources import open_table
from dpublish.errors import BudgetAlreadyUsed, InvalidParameter
from dpublish.privacy.budget import Budget, Grant
from dpublish.randomness import secure, seeded
from dpublish.report.page import render_report
from method_examples import CASES, EXAMPLES, ROWS, SCHEMA, SECRET, arrow_table

EPSILON = "1.5"


def run(name, settings, source=None, seed=7, budget=None):
    source = arrow_table() if source is None else source
    method = make_method(name, settings)
    budget = Budget.seeded(EPSILON) if budget is None else budget
    return method.release(open_table(source, SCHEMA), budget=budget, rng=seeded(seed))


def content(release):
    """What would be published, but for the time and the random name."""
    tables = {name: table.to_pydict() for name, table in release.tables().items()}
    return _unnamed(release.metadata()), tables, release.schema


def _unnamed(metadata):
    """Facts without the times and random names of the receipts within them."""
    if isinstance(metadata, dict):
        named = ("created", "release_id")
        return {key: _unnamed(value) for key, value in metadata.items() if key not in named}
    return [_unnamed(value) for value in metadata] if isinstance(metadata, list) else metadata


def test_every_method_has_examples_here():
    assert set(CATALOG) == set(EXAMPLES)
    assert len(CASES) >= 16


@pytest.mark.parametrize("name", CATALOG)
def test_every_setting_is_described(name):
    for setting in method_settings(name):
        assert len(setting.help) > 10
        assert setting.type_name


@pytest.mark.parametrize(("name", "settings"), CASES)
class TestMethod:
    def test_settings_are_frozen_hashable_and_shown(self, name, settings):
        method = make_method(name, settings)
        assert hash(method) == hash(make_method(name, settings))
        assert method == make_method(name, settings)
        with pytest.raises(dataclasses.FrozenInstanceError):
            setattr(method, next(iter(settings)), None)
        assert SECRET not in repr(method)

    def test_settings_can_be_given_as_text(self, name, settings):
        as_text = {
            key: ",".join(map(str, value)) if isinstance(value, tuple) else str(value)
            for key, value in settings.items()
        }
        assert make_method(name, as_text) == make_method(name, settings)

    def test_same_seed_same_release_other_seed_other_release(self, name, settings):
        first = run(name, settings)
        assert content(first) == content(run(name, settings))
        assert first == run(name, settings)
        others = [content(run(name, settings, seed=seed)) for seed in range(20)]
        assert any(other != content(first) for other in others)

    def test_the_budget_is_emptied_once_and_the_receipt_says_so(self, name, settings):
        budget = Budget.seeded(EPSILON)
        receipt = run(name, settings, budget=budget).receipt
        assert budget.is_used
        assert all(leaf.is_used for leaf in budget.account())
        assert budget.cost() == budget.epsilon == receipt.epsilon == Fraction(EPSILON)
        if not receipt.parallel:
            assert sum((share for _, share in receipt.shares), Fraction(0)) == Fraction(EPSILON)
        with pytest.raises(BudgetAlreadyUsed):
            run(name, settings, budget=budget)

    def test_a_used_budget_is_refused_before_any_row_is_read(self, name, settings):
        class Untouchable:
            schema, neighbors = SCHEMA, SCHEMA.neighbors

            def sum(self, kernel):
                pytest.fail("rows were read, though nothing paid for them")

        budget = Budget.seeded(EPSILON)
        budget.spend()
        with pytest.raises(BudgetAlreadyUsed):
            make_method(name, settings).release(Untouchable(), budget=budget, rng=seeded(1))

    @pytest.mark.parametrize("rows", [[], ROWS[:1], ROWS[:1] * 6], ids=["none", "one", "same"])
    def test_it_works_on_small_tables(self, name, settings, rows):
        release = run(name, settings, source=arrow_table(rows))
        assert release.summary()
        assert set(release.tables()) == set(run(name, settings).tables())

    def test_a_table_of_nothing_but_bad_rows_is_no_error(self, name, settings):
        bad = {"age": None, "sex": "?", "height": float("inf"), "town": "", "note": SECRET}
        run(name, settings, source=arrow_table([bad] * 3))

    def test_a_table_with_the_columns_it_reads_and_no_others_gives_the_same_release(
        self, name, settings
    ):
        method = make_method(name, settings)
        read = method.reads(SCHEMA)
        assert read
        table = open_table(arrow_table().select(list(read)), SCHEMA, columns=read)
        few = method.release(table, budget=Budget.seeded(EPSILON), rng=seeded(7))
        assert content(few) == content(run(name, settings))

    def test_it_scans_the_columns_that_it_names_and_no_others(self, name, settings, monkeypatch):
        scanned = set()

        def spy(source, columns):
            if source.label == "the Arrow table":
                scanned.update(columns)
            return scan(source, columns)

        scan = MemorySource.scan
        monkeypatch.setattr(MemorySource, "scan", spy)
        run(name, settings)
        named = set(make_method(name, settings).reads(SCHEMA))
        # Which of the columns a grid takes is chosen from a pool, which may leave some out.
        assert scanned <= named if name == "privpfc" else scanned == named

    def test_inputs_are_unchanged(self, name, settings):
        source = arrow_table()
        run(name, settings, source=source)
        assert repr(source.to_pydict()) == repr(arrow_table().to_pydict())

    def test_neighbors_raise_the_same_errors_word_for_word(self, name, settings):
        def error_on(rows):
            with pytest.raises(InvalidParameter) as caught:
                make_method(name, settings).release(
                    open_table(arrow_table(rows), SCHEMA),
                    budget=Budget.seeded("1e-30"),
                    rng=seeded(1),
                )
            return str(caught.value)

        assert error_on(ROWS) == error_on(ROWS[:-1]) == error_on([])

    def test_no_row_value_gets_into_the_release(self, name, settings, tmp_path):
        release = run(name, settings)
        assert SECRET.encode() not in pickle.dumps(release)
        release.save(tmp_path / "out", extras={"report.html": render_report(release).encode()})
        for file in (tmp_path / "out").rglob("*"):
            if file.is_file():
                assert SECRET.encode() not in file.read_bytes()

    def test_every_source_gives_the_same_release(self, name, settings, tmp_path):
        table = arrow_table()
        parquet.write_table(table, tmp_path / "t.parquet")
        csv.write_csv(table, tmp_path / "t.csv")
        connection = duckdb.connect()
        connection.register("t", table)
        expected = content(run(name, settings))
        for source in (
            str(tmp_path / "t.parquet"),
            str(tmp_path / "t.csv"),
            pl.from_arrow(table),
            table.to_pandas(),
            connection.sql("from t"),
            pa.ipc.open_stream(_stream(table)),
        ):
            assert content(run(name, settings, source=source)) == expected

    def test_it_loads_as_it_was_saved(self, name, settings, tmp_path):
        release = run(name, settings)
        release.save(tmp_path / "out")
        assert load(tmp_path / "out") == release

    def test_a_seeded_release_is_stamped_and_never_paid_for(self, name, settings):
        assert any("NOT PRIVATE" in stamp for stamp in run(name, settings).receipt.stamps)
        granted = Budget.granted(EPSILON, grant=Grant("people", 3, "ab" * 32))
        with pytest.raises(InvalidParameter, match="secure"):
            run(name, settings, budget=granted)
        assert not granted.is_used

    def test_the_error_is_predicted_from_public_facts_and_falls_with_epsilon(self, name, settings):
        method = make_method(name, settings)
        loose = method.expected_error(SCHEMA, 1000, Fraction(1, 10))
        tight = method.expected_error(SCHEMA, 1000, Fraction(1))
        assert tight.figures[tight.target] < loose.figures[loose.target]
        assert method.expected_error(SCHEMA, None, Fraction(1)).summary

    def test_the_report_is_one_file_that_names_the_guarantee(self, name, settings):
        method = make_method(name, settings)
        table = open_table(arrow_table(), SCHEMA)
        page = render_report(method.release(table, budget=Budget.seeded(EPSILON), rng=secure()))
        assert "any one record" in page
        assert "NOT ACCOUNTED" in page
        assert "NOT PRIVATE" not in page
        for word in ("<script", "http://", "https://"):
            assert word not in page.replace("http://www.w3.org/", "")
        has_no_counts = name == "topk" and "with_counts" not in settings
        may_be_empty = has_no_counts or "suppress" in settings  # noise may leave no number
        nothing_to_draw = name in ("majority", "bounds") or may_be_empty
        assert "<svg" in page or nothing_to_draw

    def test_the_report_of_a_seeded_release_guarantees_nothing(self, name, settings):
        page = render_report(run(name, settings))
        assert "NOT PRIVATE" in page
        assert "guarantees nothing" in page
        assert "any one record" not in page


def _stream(table):
    buffer = io.BytesIO()
    with pa.ipc.new_stream(buffer, table.schema) as writer:
        writer.write_table(table)
    buffer.seek(0)
    return buffer


@pytest.mark.parametrize("name", CATALOG)
def test_no_setting_has_the_name_of_an_option_that_the_commands_have_already(name):
    commands = (plan_command, release_command)
    taken = {option for command in commands for item in command.params for option in item.opts}
    options = {f"--{setting.name.replace('_', '-')}" for setting in method_settings(name)}
    assert not options & taken
