"""The comparison of synthetic tables: planned, resumed, explained; with stand-in methods."""

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from dpublish.core.method import ExpectedError, setting
from dpublish.core.registry import CATALOG, Entry
from dpublish.datasets import number_tables
from dpublish.datasets.benchmarks import VARIABLE
from dpublish.errors import InvalidParameter
from dpublish.evaluation.workload import true_counts
from dpublish.experiments import copula_runner
from dpublish.experiments.copula import COMPARED, FIGURES, STUDY, available_methods
from dpublish.experiments.copula_runner import (
    METHODS,
    Asked,
    CopulaRunner,
    Size,
    method_of,
    refusal,
    sanity_bound,
)
from dpublish.experiments.study import run_experiment
from dpublish.experiments.trials import SECONDS, Key, Result, Trial
from dpublish.randomness import plain_generator

TABLES = number_tables.NUMBER_TABLES
EVENLY = Asked(1_000, "", "")


class Answers:
    """Answers every query with a number that epsilon brings nearer to the truth."""

    def __init__(self, epsilon, offset):
        self.epsilon, self.offset = epsilon, offset

    def count_boxes(self, columns, lows, highs):
        return np.full(len(lows), self.offset / self.epsilon)

    def rows(self, n=None, *, seed=None):
        raise AssertionError("asked for rows")


@dataclass(frozen=True, kw_only=True)
class StandIn:
    """Publishes next to nothing, and refuses more than four columns."""

    name: ClassVar[str] = "stand-in"
    ratio: str = setting("ratio", default="1")
    correlation: str = setting("correlation", default="spearman")
    most: ClassVar[int] = 100

    def release(self, table, *, budget, rng, progress=None):
        """Privacy: it looks at no record."""
        epsilon = float(budget.epsilon)
        budget.spend()
        return Answers(epsilon, {"kendall": 500}.get(self.correlation, 100))

    def expected_error(self, schema, n_records, epsilon):
        if len(schema.names) > self.most:
            raise InvalidParameter(f"{len(schema.names)} columns are too many")
        return ExpectedError("", {}, "")


@dataclass(frozen=True, kw_only=True)
class Narrow(StandIn):
    name: ClassVar[str] = "narrow"
    most: ClassVar[int] = 4


@pytest.fixture(autouse=True)
def stand_ins(monkeypatch):
    for name in {method.method for method in METHODS.values()} & set(CATALOG):
        monkeypatch.delitem(CATALOG, name)
    for name, kind in (("dpcopula", StandIn), ("marginals", StandIn), ("psd", Narrow)):
        location = f"{kind.__module__}:{kind.__name__}"
        publishes = f"what {name} publishes"
        monkeypatch.setitem(CATALOG, name, Entry(location, "synthesis", publishes, ""))
    monkeypatch.delenv(VARIABLE, raising=False)
    monkeypatch.setattr(copula_runner, "gives_rows", lambda release: False)
    for name, known in number_tables.NUMBER_TABLES.items():
        if known.is_simulated:
            small = replace(known, records=2_000)
            monkeypatch.setitem(number_tables.NUMBER_TABLES, name, small)


def test_methods_are_those_whose_method_is_there():
    assert available_methods() == (
        "dpcopula",
        "dpcopula-paper",
        "dpcopula-paper-all",
        "dpcopula-spearman",
        "dpcopula-kendall",
        "dpcopula-mle",
        "marginals",
        "psd",
    )
    assert set(COMPARED) <= set(METHODS)
    assert all(set(figure.methods) <= set(METHODS) for figure in FIGURES.values())


def test_a_run_leaves_results_a_table_a_plot_and_a_page_and_is_not_run_again(tmp_path):
    options = {"datasets": ("simulated",), "epsilons": ("0.1", "200"), "repeats": 2}
    summary = run_experiment("copula", output=tmp_path, **options)
    lines = summary.results.read_text().splitlines()
    assert len(lines) == 2 * (2 + 2 * 3)  # repeats; references, epsilons, methods
    assert all("NOT PRIVATE" in line for line in lines)
    assert summary.headers == ["dataset", "measure", "method", "epsilon 0.1", "epsilon 200"]
    shown = {row[2]: row[3:] for row in summary.rows}
    assert list(shown) == ["dpcopula", "marginals", "psd", "exact-marginals", "always-zero"]
    assert shown["psd"] == ["cannot run", "cannot run"]
    near, far = (float(shown["dpcopula"][point].split()[0]) for point in (1, 0))
    assert near < far
    assert shown["exact-marginals"][0] == shown["exact-marginals"][1]
    assert summary.notes == ("psd cannot run on simulated: 8 columns are too many",)
    again = run_experiment("copula", output=tmp_path, **options)
    assert summary.results.read_text().splitlines() == lines
    assert again.rows == summary.rows


def test_the_page_explains_itself(tmp_path):
    summary = run_experiment("copula", output=tmp_path, figure="comparators", repeats=1)
    page = summary.page.read_text()
    for words in (
        "NOT PRIVATE",
        "smaller is stronger",
        "0.05 % of the rows",
        "publishing nothing",
        "ranges between records",
        "1 time with fresh noise",
        "publishes what dpcopula publishes",
        "psd cannot run on simulated: 8 columns are too many",
        "adult-numbers was left out",
        "= 1 dpcopula is nearest",
    ):
        assert words in page, words
    assert "http" not in page.replace("http://www.w3.org/", "")
    assert "<script" not in page


def test_every_figure_is_planned_tabled_and_explained():
    for figure, chosen in FIGURES.items():
        has_file = "simulated" not in chosen.datasets
        planned = STUDY.plan(2, figure=figure, **({"datasets": ("simulated",)} if has_file else {}))
        measured = {"relative": 0.25, "seconds": 1.0, "relative_from_rows": 0.5}
        measured |= {"relative_between_records": 0.75, "absolute": 3.5}
        results = [Result(trial, measured) for trial in planned.trials]
        tabled = STUDY.table(results)
        assert len({len(row) for row in tabled.rows} | {len(tabled.headers)}) == 1
        axis = chosen.values if chosen.key else chosen.epsilons
        assert len(tabled.headers) == 3 + len(axis)
        page = STUDY.page(results, ["a note"])
        assert page.title == chosen.title
        assert "a note" in page.sections[-1].paragraphs
        has_reference = any(t.method == "exact-marginals" for t in planned.trials)
        assert has_reference is (SECONDS not in chosen.measures)


def test_columns_and_rows_are_what_their_figures_vary(tmp_path):
    runner = CopulaRunner(None, TABLES)
    for key, value, size in (("columns", 3, (3, 0)), ("rows", 70, (0, 70))):
        trial = Trial("copula", "dpcopula", "1", 0, {"dataset": "simulated", key: str(value)})
        runner.run_trial(trial)
        rows = runner.load(Size("simulated", *size)).rows
        assert value in rows.shape
    refused = Trial("copula", "psd", "1", 0, {"dataset": "simulated", "columns": "6"})
    assert runner.run_trial(refused) == {"cannot_run": 1.0}
    assert "6 columns" in refusal(refused, TABLES)
    narrow = Trial("copula", "psd", "1", 0, {"dataset": "simulated", "columns": "4"})
    assert "relative" in runner.run_trial(narrow)


def test_settings_of_a_trial_are_those_of_its_method():
    def made(method, **given):
        return method_of(Trial("copula", method, "1", 0, given), TABLES["simulated"].schema)

    assert made("dpcopula", ratio="8").ratio == "8"
    assert made("dpcopula-kendall").correlation == "kendall"
    assert made("dpcopula").ratio == "1"


def test_methods_have_the_same_queries_and_repeats_others():
    runner = CopulaRunner(None, TABLES)
    size = Size("simulated", 0, 0)
    assert runner.queries(size, 0, EVENLY) is runner.queries(size, 0, EVENLY)
    first, second = (runner.queries(size, seed, EVENLY).workload for seed in (0, 1))
    assert (first.lows != second.lows).any()
    covering = runner.queries(size, 0, EVENLY._replace(how="0.5")).workload
    parts = np.prod((covering.highs - covering.lows) / 1_000, axis=1)
    assert parts == pytest.approx(0.5, rel=0.01)


def test_the_reference_multiplies_true_marginals():
    runner = CopulaRunner(None, TABLES)
    measured = runner.run_trial(
        Trial("copula", "exact-marginals", "none", 0, {"dataset": "simulated-uniform"})
    )
    task = runner.load(Size("simulated-uniform", 0, 0))
    rng = plain_generator(7)
    shuffled = {name: rng.permutation(codes) for name, codes in task.codes.items()}
    asked = runner.queries(Size("simulated-uniform", 0, 0), 0, EVENLY)
    by_shuffling = asked.errors(true_counts(shuffled, asked.workload).astype(np.float64))
    assert measured["absolute"] == pytest.approx(by_shuffling.mean_absolute, rel=0.2)
    assert "seconds" not in measured


def test_to_answer_zero_is_wrong_by_the_whole_count():
    runner = CopulaRunner(None, TABLES)
    trial = Trial("copula", "always-zero", "none", 0, {"dataset": "simulated"})
    asked = runner.queries(Size("simulated", 0, 0), 0, EVENLY)
    assert runner.run_trial(trial)["absolute"] == pytest.approx(asked.truth.mean())
    assert asked.sanity == pytest.approx(1.0)  # 0.05 % of 2,000 rows


def test_means_and_deviations_are_over_repeats():
    def result(method, epsilon, seed, error):
        setting = {"part": "epsilon", "dataset": "simulated"}
        return Result(Trial("copula", method, epsilon, seed, setting), {"relative": error})

    cells = STUDY.summarize(
        [
            result("exact-marginals", "none", 0, 0.05),
            result("exact-marginals", "none", 1, 0.07),
            result("dpcopula", "0.5", 0, 0.2),
            result("dpcopula", "0.5", 1, 0.4),
            result("dpcopula", "1", 0, 0.1),
        ]
    )
    line, reference = (
        cells[Key("simulated", "relative", name)] for name in ("dpcopula", "exact-marginals")
    )
    assert line[0.5].mean == pytest.approx(0.3)
    assert line[0.5].deviation == pytest.approx(0.2 / 2**0.5)
    assert reference[0.5] == reference[1.0]
    assert reference[1.0].mean == pytest.approx(0.06)


@pytest.mark.parametrize(
    ("options", "word"),
    [
        ({"figure": "epsilons"}, "epsilon"),
        ({"datasets": ("adult",)}, "adult-numbers"),
        ({"figure": "dimensions", "datasets": ("adult-numbers",)}, "DPUBLISH_DATA"),
        ({"settings": {"columns": "two"}}, "integer"),
        ({"settings": {"rows": -1}}, "rows"),
        ({"settings": {"bound": 1}}, "sanity"),
        ({"methods": ("dpcopla",)}, "dpcopula"),
        ({"methods": ("privelet",)}, "dpcopula"),
        ({"methods": ()}, "at least one"),
        ({"epsilons": ("0",)}, "epsilon"),
        ({"datasets": ("adult-numbers",)}, "DPUBLISH_DATA"),
        ({"folds": 3}, "folds"),
    ],
)
def test_options_that_make_no_sense_are_refused_before_anything_is_run(tmp_path, options, word):
    with pytest.raises(InvalidParameter, match=word):
        run_experiment("copula", output=tmp_path / "new", **options)
    assert not (tmp_path / "new").exists()


@pytest.mark.parametrize("text", ["0", "-1", "few", "%"])
def test_a_sanity_bound_is_a_positive_number_of_rows_or_a_part_of_them(text):
    with pytest.raises(InvalidParameter, match="sanity"):
        sanity_bound(text, 1_000)


def test_settings_of_the_command_line_are_those_of_the_trials(tmp_path):
    runner = CopulaRunner(None, TABLES)
    setting = {"dataset": "simulated-zipf", "columns": 2, "rows": 300, "queries": 50}
    measured = {
        sanity: runner.run_trial(Trial("copula", "dpcopula", "1", 0, setting | {"sanity": sanity}))
        for sanity in ("1", "100%")
    }
    task = runner.load(Size("simulated-zipf", 2, 300))
    assert task.rows.shape == (300, 2)
    assert np.median(task.codes["x1"]) < 100  # Zipf's distribution, not a bell
    truth = runner.queries(Size("simulated-zipf", 2, 300), 0, Asked(50, "1", "")).truth
    off = np.abs(100 - truth)
    assert measured["1"]["relative"] == pytest.approx((off / np.maximum(truth, 1)).mean())
    assert measured["100%"]["relative"] == pytest.approx((off / 300).mean())
    assert measured["1"]["absolute"] == measured["100%"]["absolute"] == pytest.approx(off.mean())


def test_where_time_is_measured_nothing_is_asked():
    runner = CopulaRunner(None, TABLES)
    for name in ("time", "time-columns"):
        for trial in STUDY.plan(1, figure=name, datasets=("simulated",)).trials:
            if trial.method.startswith("dpcopula"):
                assert set(runner.run_trial(trial)) == {SECONDS}


def own_table(tmp_path):
    rng = plain_generator(5)
    rows = pa.table({"age": rng.integers(0, 100, 400), "kind": rng.choice(["a", "b", "c"], 400)})
    pq.write_table(rows, tmp_path / "mine.parquet")
    (tmp_path / "mine.toml").write_text(
        '[columns.age]\nkind = "integer"\nbounds = [0, 99]\n'
        '[columns.kind]\nkind = "category"\nvalues = ["a", "b", "c"]\n'
    )
    return {"data": tmp_path / "mine.parquet", "schema": tmp_path / "mine.toml"}


def test_a_table_of_ones_own_is_queried_in_all_its_columns(tmp_path):
    given = own_table(tmp_path)
    options = {"epsilons": ("1",), "repeats": 1, "output": tmp_path / "out", **given}
    summary = run_experiment("copula", settings={"queries": 20}, **options)
    assert {row[0] for row in summary.rows} == {"mine"}
    page = summary.page.read_text()
    assert "2 columns: 100 × 3 = 300 cells" in page
    assert "Settings of all trials: queries = 20." in page
    narrow = run_experiment("copula", settings={"columns": 1, "rows": 50, "queries": 5}, **options)
    assert narrow.rows != summary.rows
    with pytest.raises(InvalidParameter, match="mine has 2 columns, not 4"):
        run_experiment("copula", figure="dimensions", **options)
