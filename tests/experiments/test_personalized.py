"""The comparison of personalized methods: people drawn, trials run, results explained."""

from dataclasses import dataclass, replace
from fractions import Fraction
from math import erf
from types import SimpleNamespace
from typing import ClassVar

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from dpublish.core.registry import make_method
from dpublish.data.schema import Schema, column
from dpublish.data.sources import open_table
from dpublish.datasets.benchmarks import ALL_BENCHMARKS, VARIABLE
from dpublish.errors import InvalidParameter, InvalidQuery
from dpublish.experiments import personalized
from dpublish.experiments.personalized import (
    ASKED,
    CURVE,
    ERROR,
    FIGURES,
    FITTING,
    LEFT,
    LEFT_BOUND,
    METHODS,
    OWN,
    QUERY,
    STUDY,
    WRONG,
    Competitor,
    PersonalRunner,
    best_point,
    combined_scores,
    named_level,
    times_better,
)
from dpublish.experiments.personalized_population import (
    DISTRIBUTIONS,
    PREFERENCE,
    SUBSETS,
    Population,
    chosen_columns,
    draw_queries,
)
from dpublish.experiments.study import NOISE_FREE, run_experiment
from dpublish.experiments.trials import SECONDS, Result, Trial
from dpublish.methods.personalized.exponential import asked_codes
from dpublish.methods.personalized.method import level_counts
from dpublish.methods.personalized.minimum import Minimum
from dpublish.randomness import plain_generator

PEOPLE = 1_500
HISTOGRAM = make_method("histogram", {"columns": (ASKED,)})


@pytest.fixture(autouse=True)
def few_people(monkeypatch):
    monkeypatch.delenv(VARIABLE, raising=False)
    few = replace(ALL_BENCHMARKS["simulated"], records=PEOPLE)
    monkeypatch.setitem(ALL_BENCHMARKS, "simulated", few)
    monkeypatch.setattr(personalized, "QUERIES", 3)
    for name, figure in FIGURES.items():
        if figure.key == "threshold":
            small = replace(figure, values=(0, 7, 19), preferences=("uniform-1", "normal"))
            monkeypatch.setitem(FIGURES, name, small)


SMALL = {
    "datasets": ("simulated",),
    "methods": ("minimum", "sampling", "personalized-em", "partitioning"),
}


@pytest.fixture
def summary(tmp_path):
    return run_experiment("personalized", repeats=2, output=tmp_path, **SMALL)


def test_a_run_leaves_results_a_table_a_plot_and_a_page_and_is_not_run_again(tmp_path, summary):
    lines = summary.results.read_text().splitlines()
    assert len(lines) == 2 * 2 * (3 + 3)  # preferences, repeats, methods and three thresholds
    assert all("NOT PRIVATE" in line for line in lines)
    assert [row[3].partition(":")[0] for row in summary.rows[:5]] == [
        "minimum",
        "sampling, best",
        "sampling, worst",
        "personalized-em",
        "partitioning",
    ]
    assert "<svg" in summary.plot.read_text()
    again = run_experiment("personalized", repeats=2, output=tmp_path, **SMALL)
    assert again.results.read_text().splitlines() == lines
    assert again.rows == summary.rows


def test_the_page_explains_itself(summary):
    page = summary.page.read_text()
    for words in (
        "NOT PRIVATE",
        "smaller is stronger",
        "no method on this page spends more on them",
        "what people accept is drawn independently",
        "Preferences uniform-1: relative frequency error of partitioning",
        "sampling with its best threshold",
        "2 times at every point",
        "uniform between 0.01 and 1",
        "rounded down to 20 levels",
        ">simulated, normal: relative frequency error<",
        "personalized-em: an answer chosen by how little",
    ):
        assert words.lower() in page.lower(), words
    assert "http" not in page.replace("http://www.w3.org/", "")
    assert "<script" not in page


@pytest.mark.parametrize("figure", FIGURES)
def test_every_figure_is_planned_tabled_and_explained(figure, tmp_path, monkeypatch):
    chosen = replace(FIGURES[figure], datasets=("simulated",))
    monkeypatch.setitem(FIGURES, figure, chosen)
    planned = STUDY.plan(2, figure=figure)
    measured = {ERROR: 0.0025, WRONG: 0.2, CURVE: 0.8, LEFT: 0.1, LEFT_BOUND: 0.9, SECONDS: 0.5}
    results = [Result(trial, measured) for trial in planned.trials]
    tabled = STUDY.table(results)
    named = {row[3 if chosen.key == "threshold" else 2].partition(",")[0] for row in tabled.rows}
    inner = " (model)" if chosen.model else ""
    assert {f"{name}{inner}" for name in chosen.methods} <= named
    assert all(all(row[3:5]) for row in tabled.rows)
    page = STUDY.page(results, ["a note"])
    assert page.title == chosen.title
    assert "a note" in page.sections[-1].paragraphs


@pytest.mark.parametrize("name", DISTRIBUTIONS)
@pytest.mark.parametrize("levels", [3, 20, 100])
def test_the_declared_sizes_are_those_that_a_table_has(name, levels):
    people = Population.draw(name, levels, PEOPLE, seed=1)
    method = Minimum(
        inner=HISTOGRAM, preference=PREFERENCE, levels=people.levels, sizes=people.sizes
    )
    rows = people.join(pa.table({ASKED: ["yes"] * PEOPLE}))
    schema = method.prepare(Schema((column(ASKED, "category", values=["yes", "no"]),)))
    opened = open_table(rows, schema)
    counted = opened.sum(level_counts(method, schema))
    assert tuple(counted.tolist()) == people.sizes
    assert sum(people.sizes) == PEOPLE  # no one is below the first level
    assert people.numbers.min() >= 0.01


def test_people_accept_what_the_distributions_say():
    uniform = Population.draw("uniform-0.1", 20, 50_000, seed=0).numbers
    assert uniform.max() <= 0.1
    assert uniform.mean() == pytest.approx(0.055, abs=0.001)
    normal = Population.draw("normal", 20, 50_000, seed=0).numbers
    assert np.median(normal) == pytest.approx(0.1, abs=0.002)
    assert np.mean(normal == 0.01) == pytest.approx(0.184, abs=0.01)  # clipped
    truncated = Population.draw("truncated-normal", 20, 50_000, seed=0).numbers
    assert truncated.min() >= 0.01
    assert truncated.max() <= 1
    assert truncated.mean() == pytest.approx(0.47, abs=0.005)  # the thesis: about 0.5
    tail = 0.5 * (1 - erf(0.4 / 2**0.5)), 0.5 * (1 - erf(0.9 / 2**0.5))
    below = 0.5 * (1 + erf(-0.09 / 2**0.5))
    inside = 1 - tail[1] - below
    assert np.mean(truncated > 0.5) == pytest.approx((tail[0] - tail[1]) / inside, abs=0.01)
    assert not np.array_equal(uniform, Population.draw("uniform-0.1", 20, 50_000, seed=1).numbers)


def test_a_query_is_about_values_and_never_about_all_of_them():
    schema = Schema(
        (
            column("age", "integer", bounds=[0, 9]),
            column("work", "category", values=["farm", "office", "none"]),
        )
    )
    # Every age with every kind of work.
    domain = pa.table(
        {
            "age": [age for age in range(10) for _ in range(3)],
            "work": ["farm", "office", "none"] * 10,
        }
    )
    queried = set()
    for satisfied in draw_queries(domain, schema, 60, seed=3):
        grid = satisfied.reshape(10, 3)
        ages, works = grid.any(axis=1), grid.any(axis=0)
        assert np.array_equal(grid, np.outer(ages, works))
        assert satisfied.any()
        assert not satisfied.all()
        assert np.abs(np.diff(ages.astype(int))).sum() <= 2  # one range of ages
        queried.add((bool(ages.all()), bool(works.all())))
    assert queried == {(True, False), (False, True), (False, False)}


@dataclass(frozen=True, kw_only=True)
class OffBySeven(Minimum):
    """Counts seven people too many."""

    name: ClassVar[str] = "off-by-seven"

    def release(self, table, *, budget, rng, progress=None):
        """Privacy: none; it is a stand-in."""
        asked = asked_codes(self.preferences.without(table.schema), QUERY)
        truth = table.sum(level_counts(self, table.schema, asked)).sum()
        return SimpleNamespace(count=lambda query: SimpleNamespace(value=float(truth) + 7))


def test_the_error_of_a_trial_is_the_mean_distance_divided_by_all_people(monkeypatch):
    monkeypatch.setitem(METHODS, "minimum", Competitor(OffBySeven, "stand-in"))
    setting = {"part": "count", "dataset": "simulated", "preferences": "uniform-1"}
    runner = PersonalRunner(None)
    measured = runner.run_trial(Trial("personalized", "minimum", OWN, 0, setting))
    assert measured[ERROR] == pytest.approx(7 / PEOPLE)
    fewer = runner.run_trial(Trial("personalized", "minimum", OWN, 0, {**setting, "rows": 300}))
    assert fewer[ERROR] == pytest.approx(7 / 300)


@pytest.mark.parametrize("name", METHODS)
@pytest.mark.parametrize("preferences", ["uniform-0.1", "normal"])
def test_no_competitor_spends_more_on_any_person_than_they_accept(name, preferences):
    people = Population.draw(preferences, 20, PEOPLE, seed=2)
    given = {"threshold": 7, "groups": 3}
    method = METHODS[name].make(people, HISTOGRAM, given, fits_model=False)
    spent = method.spending(people.levels[-1])
    assert all(spent[level] <= level for level in people.levels)
    assert method.mode == "frame"


def test_what_a_figure_varies_is_set_in_the_method():
    people = Population.draw("uniform-1", 20, PEOPLE, seed=0)

    def make(name, fits_model=False, **given):
        return METHODS[name].make(people, HISTOGRAM, given, fits_model=fits_model)

    assert make("sampling", threshold=7).threshold == people.levels[7]
    assert make("partitioning-privacy", groups=3).groups == 3
    assert make("partitioning").person_variance == Fraction(1, 4)
    assert make("partitioning", fits_model=True).person_variance == 0
    assert not hasattr(make("personalized-em"), "inner")


def test_models_are_measured_on_people_who_were_left_out(tmp_path):
    summary = run_experiment(
        "personalized",
        repeats=2,
        output=tmp_path,
        figure="logistic",
        datasets=("simulated",),
        methods=("minimum", "threshold", "partitioning"),
        classifiers=("private-erm",),
    )
    rows = {tuple(row[1:4]): float(row[4].split()[0]) for row in summary.rows}
    curve = {name: mean for (who, what, name), mean in rows.items() if "area" in what}
    assert set(curve) >= {"minimum (private-erm)", "partitioning (private-erm)", NOISE_FREE}
    assert all(0 <= mean <= 1 for mean in rows.values())
    assert rows["uniform-1", "area under the curve", NOISE_FREE] > 0.75
    assert all(
        rows["uniform-1", "area under the curve", NOISE_FREE] >= mean for mean in curve.values()
    )
    page = summary.page.read_text()
    assert "Each repeat leaves out another of 10 folds" in page
    assert "the model of all records, which is not private" in page


def result(method, seed, error, **given):
    setting = {"part": "count", "dataset": "simulated", "preferences": "uniform-1", **given}
    return Result(Trial("personalized", method, OWN, seed, setting), {ERROR: error})


RESULTS = [
    result("minimum", 0, 0.006),
    result("minimum", 1, 0.010),
    result("sampling", 0, 0.004, threshold=0),
    result("sampling", 0, 0.002, threshold=7),
    result("sampling", 1, 0.004, threshold=7),
    result("sampling", 0, 0.005, threshold=19),
    result("partitioning", 0, 0.002),
]


def test_the_best_and_the_worst_threshold_are_named_by_their_levels():
    [group] = STUDY.groups(STUDY.summarize(RESULTS))
    scan = next(line for key, line in group.items() if key.method == "sampling")
    best = best_point(scan, ERROR)
    assert scan[best].mean == pytest.approx(0.003)
    assert scan[best].standard_error == pytest.approx(0.001)
    assert named_level("uniform-1", best) == "0.3565"  # 0.01 + 7 * 0.99 / 20
    names = {row[3]: row[5] for row in STUDY.table(RESULTS).rows}
    assert names == {
        "minimum": "1.00",
        "sampling, best: 0.3565": "2.67",
        "sampling, worst: 0.9505": "1.60",
        "partitioning": "4.00",
    }


def test_a_larger_area_under_the_curve_is_better():
    cells = {
        0.5: SimpleNamespace(mean=0.7),
        1.0: SimpleNamespace(mean=0.9),
    }
    assert best_point(cells, CURVE) == 1.0
    assert best_point(cells, WRONG) == 0.5


def test_methods_without_a_threshold_are_level_lines():
    [group] = STUDY.groups(STUDY.summarize(RESULTS))
    for key, line in group.items():
        assert len(line) == 3
        if key.method != "sampling":
            assert len({cell.mean for cell in line.values()}) == 1
            assert times_better(group, key, max(line)) is not None
    assert STUDY.point(RESULTS[0].trial, FIGURES["count"]) is None


def test_datasets_that_are_not_there_are_left_out_with_a_note(tmp_path):
    planned = STUDY.plan(1)
    assert {trial.setting["dataset"] for trial in planned.trials} == {"simulated"}
    assert [note.split()[0] for note in planned.notes] == ["adult", "census"]
    with pytest.raises(InvalidParameter, match="DPUBLISH_DATA"):
        STUDY.plan(1, datasets=("adult",), data_folder=tmp_path)


@pytest.mark.parametrize(
    ("options", "word"),
    [
        ({"figure": "counts"}, "count"),
        ({"datasets": ("adults",)}, "adult"),
        ({"figure": "svm", "methods": ("personalized-em",)}, "partitioning"),
        ({"methods": ()}, "at least one"),
        ({"classifiers": ("model",)}, "no classifiers"),
        ({"figure": "svm", "classifiers": ("tree",)}, "private-erm"),
        ({"epsilons": ("1",)}, "epsilons"),
    ],
)
def test_options_that_make_no_sense_are_refused_before_anything_is_run(tmp_path, options, word):
    with pytest.raises(InvalidParameter, match=word):
        run_experiment("personalized", output=tmp_path / "new", **options)
    assert not (tmp_path / "new").exists()


def test_every_method_that_fits_models_takes_an_inner_method():
    assert not any(METHODS[name].counts_only for name in FITTING)


def test_a_query_may_be_about_every_column_that_is_named(real_data):
    schema = ALL_BENCHMARKS["adult"].schema(real_data)
    assert chosen_columns("adult", schema, 4) == ("age", "sex", "education", "income")
    assert chosen_columns("adult", schema, "sex, race") == ("sex", "race")
    assert len(chosen_columns("adult", schema, 8)) == 8
    with pytest.raises(InvalidParameter, match="income"):
        chosen_columns("adult", schema, "incomes")
    for name, columns in SUBSETS.items():
        known = ALL_BENCHMARKS[name].schema(real_data).names
        assert len(set(columns)) == 8
        assert set(columns) <= set(known)
    every = Schema(tuple(column(n, "integer", bounds=[0, 3]) for n in "abc"))
    domain = pa.table(
        dict(zip("abc", np.array(np.meshgrid(*[range(4)] * 3)).reshape(3, -1), strict=True))
    )
    for satisfied in draw_queries(domain, every, 20, seed=1, every=("a", "b", "c")):
        assert 0 < satisfied.sum() <= 27  # never all four values of any of the three


def test_fewer_people_and_columns_are_taken_for_models_too():
    given = {"rows": "400", "columns": "income,debt", "preferences": "truncated-normal"}
    planned = STUDY.plan(
        1, figure="logistic", datasets=("simulated",), methods=("partitioning",), settings=given
    )
    assert {trial.setting["preferences"] for trial in planned.trials} == {"truncated-normal"}
    runner = PersonalRunner(None)
    split = runner._narrowed("simulated", 0, 400, "income,debt")
    assert split.train.column_names == ["income", "debt", "repaid"]
    assert split.train.num_rows == 400
    assert split.schema.names == ("income", "debt", "repaid")
    measured = [planned.run_trial(trial) for trial in planned.trials]
    assert all(0 <= one[WRONG] <= 0.7 for one in measured)
    with pytest.raises(InvalidParameter, match="truncated-normal"):
        STUDY.plan(1, settings={"preferences": "normal-truncated"})
    with pytest.raises(InvalidParameter, match="a column to predict"):
        runner._narrowed("simulated", 0, 400, "repaid")


def test_the_second_term_of_the_risk_is_planned_with_where_it_is_given():
    people = Population.draw("uniform-1", 20, 40_000, seed=0)

    def groups(name, **given):
        method = METHODS[name].make(people, HISTOGRAM, given, fits_model=True)
        return method.plan(method.levels[-1], method.public_sizes())

    assert METHODS["partitioning"].make(
        people, HISTOGRAM, {"person_variance": "0.01"}, fits_model=True
    ).person_variance == Fraction(1, 100)
    noise_only = groups("partitioning-least")
    with_records = groups("partitioning-least", person_variance="1")
    used = [{m for group in plan for m in group.members} for plan in (noise_only, with_records)]
    assert len(used[0]) < len(used[1])  # more people are worth their noise


def test_what_is_left_after_rounds_is_measured_beside_its_bound():
    planned = STUDY.plan(
        1, figure="rounds", datasets=("simulated",), settings={"preferences": "uniform-1"}
    )
    results = [Result(trial, planned.run_trial(trial)) for trial in planned.trials]
    lines = {
        (key.measure, key.method): {p: cell.mean for p, cell in line.items()}
        for key, line in STUDY.summarize(results).items()
    }
    left, bound = lines[LEFT, "t-round-privacy"], lines[LEFT_BOUND, "t-round-privacy"]
    assert all(left[point] <= bound[point] <= 1 for point in left)
    assert left[3.0] <= left[1.0]
    assert lines[LEFT, "partitioning-privacy"][1.0] == lines[LEFT, "partitioning-privacy"][3.0]


def test_a_table_of_ones_own_is_counted_and_fitted(tmp_path):
    rng = plain_generator(2)
    age = rng.integers(0, 100, 800)
    pq.write_table(
        pa.table({"age": age, "buys": np.where(age + rng.normal(0, 5, 800) > 50, "yes", "no")}),
        tmp_path / "shop.parquet",
    )
    (tmp_path / "shop.toml").write_text(
        '[columns.age]\nkind = "integer"\nbounds = [0, 99]\nbins = 10\n'
        '[columns.buys]\nkind = "category"\nvalues = ["yes", "no"]\n'
    )
    own = {"data": tmp_path / "shop.parquet", "schema": tmp_path / "shop.toml"}
    options = {"methods": ("minimum", "partitioning"), "settings": {"preferences": "uniform-1"}}
    done = run_experiment("personalized", repeats=1, output=tmp_path / "a", **own, **options)
    assert {row[0] for row in done.rows} == {"shop"}
    assert "A table of the user" in done.page.read_text()
    with pytest.raises(InvalidParameter, match="--target"):
        STUDY.plan(1, figure="logistic", **own, **options)
    fitted = run_experiment(
        "personalized",
        repeats=1,
        output=tmp_path / "b",
        figure="logistic",
        target="buys",
        **own,
        **options,
    )
    curve = {row[3]: row[4] for row in fitted.rows if "area" in row[2]}
    assert float(curve[NOISE_FREE].split()[0]) > 0.9


def test_parts_that_are_not_of_one_kind_vote():
    class Mixed:
        schema = Schema((column("buys", "category", values=["yes", "no"]),))

        @property
        def model(self):
            raise InvalidQuery("not of one kind")

        def predict(self, rows):
            return pa.array(["no", "yes", "no"])

    rows = pa.table({"age": [1, 2, 3]})
    assert combined_scores(Mixed(), rows, "buys").tolist() == [[0, 1], [1, 0], [0, 1]]
