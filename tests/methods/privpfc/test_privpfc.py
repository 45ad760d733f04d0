"""The method privpfc: shares, public decisions, the exact loss of whole releases, refusals."""

from dataclasses import dataclass
from fractions import Fraction
from math import inf, log

import numpy as np
import pyarrow as pa
import pytest

from choice_distribution import choice_distribution
from dpublish.aggregates.counts import Counts
from dpublish.core import run as mechanisms
from dpublish.core.run import Run
from dpublish.data.schema import Schema, column
from dpublish.data.sources import open_table
from dpublish.errors import BudgetAlreadyUsed, InvalidParameter
from dpublish.mechanisms.noise import add_geometric, noisy_size
from dpublish.mechanisms.selection import select
from dpublish.methods.privpfc import kernels
from dpublish.methods.privpfc import privpfc as grid_choice
from dpublish.methods.privpfc.grid_quality import GridQuality
from dpublish.methods.privpfc.privpfc import PrivPfC
from dpublish.methods.privpfc.refine import CHOICE, SUMS
from dpublish.privacy.budget import Budget
from dpublish.privacy.neighbors import AddRemoveRecord, ReplaceRecord
from dpublish.randomness import plain_generator, seeded

SCHEMA = Schema(
    (
        column("age", "integer", bounds=[0, 7], branching=2, missing="category"),
        column("work", "category", values=["a", "b", "c"], missing="drop"),
        column("sex", "category", values=["F", "M"]),
        column("class", "category", values=["no", "yes"]),
    )
)


def random_rows(size, seed=1, classes=("no", "yes")):
    rng = plain_generator(seed)
    ages, works, sexes = (rng.integers(0, high, size) for high in (9, 4, 2))
    own = np.where(rng.random(size) < 0.7, (ages > 3) ^ (sexes == 1), rng.integers(0, 2, size))
    own = (own + rng.integers(0, max(len(classes) - 1, 1), size)) % len(classes)
    return pa.table(
        {
            "age": pa.array([None if age == 8 else int(age) for age in ages], pa.int64()),
            "work": pa.array([None if w == 3 else "abc"[w] for w in works], pa.string()),
            "sex": pa.array(["FM"[s] for s in sexes], pa.string()),
            "class": pa.array([classes[k] for k in own.astype(int)], pa.string()),
        }
    )


class Watched:
    """A table that notes what is asked of it, and answers only once the budget is open."""

    def __init__(self, rows, budget=None, schema=SCHEMA):
        self._table = open_table(rows, schema)
        self._budget = budget
        self.kernels = []

    schema = property(lambda self: self._table.schema)
    neighbors = property(lambda self: self._table.neighbors)

    def sum(self, kernel):
        assert self._budget is None or self._budget.is_used, (
            "rows were read before the budget opened"
        )
        self.kernels.append(kernel)
        return self._table.sum(kernel)


def publish(rows, epsilon=2, seed=1, schema=SCHEMA, budget=None, method=PrivPfC, **settings):
    budget = budget or Budget.seeded(epsilon)
    table = Watched(rows, budget, schema)
    made = method(**{"target": "class", **settings})
    return made.release(table, budget=budget, rng=seeded(seed))


def content(release):
    tables = {name: table.to_pydict() for name, table in release.tables().items()}
    return release.metadata(), tables


# --- shares -------------------------------------------------------------------------------------


def shares_of(release):
    return {purpose.removeprefix("release/"): share for purpose, share in release.receipt.shares}


@pytest.mark.parametrize("rounds", [0, 1, 3])
def test_the_shares_are_those_of_the_settings_and_add_up(rounds):
    method = PrivPfC(target="class", rounds=rounds)
    budget = Budget.seeded("1.7")
    release = publish(random_rows(3000), budget=budget, rounds=rounds)
    shares = shares_of(release)
    assert sum(shares.values()) == budget.cost() == budget.epsilon == Fraction("1.7")
    assert all(leaf.is_used for leaf in budget.account())
    assert shares.pop("size") == Fraction("1.7") * method.size_share == release.records.rate
    selection = shares.pop("rest/grid/selection")
    counts = [shares.pop(name) for name in list(shares) if name.startswith("rest/grid/counts")]
    assert selection / sum(counts) == method.selection_share / method.counts_share
    assert counts[0] == release.noise_rate
    grouped = [a.column for a in release.predictors if a.size < SCHEMA[a.column].size]
    assert [one.axis.column for one in release.values] == (grouped if rounds else [])
    assert [one.rate * len(grouped) for one in release.values] == counts[1:] * len(release.values)
    assert len(release.refinements) == rounds
    assert len(shares) == 2 * rounds
    for number in range(rounds):
        name = f"rest/refinements/round-{number + 1}"
        assert shares[f"{name}/choice"] / shares[f"{name}/sums"] == Fraction(CHOICE, SUMS)
        assert shares[f"{name}/sums"] == shares["rest/refinements/round-1/sums"]


def test_counts_of_values_have_noise_for_all_columns_together(monkeypatch):
    names, budget, rates = SCHEMA.names[:2], Budget.seeded(3), []

    def watched(counts, *, sensitivity, budget, rng):
        rates.append(budget.epsilon / sensitivity)
        return add_geometric(counts, sensitivity=sensitivity, budget=budget, rng=rng)

    monkeypatch.setattr(mechanisms, "add_geometric", watched)
    run = Run(Watched(random_rows(50), None), rng=seeded(1))
    found = grid_choice._count_values(run, names, budget=budget)
    assert [(one.axis.column, one.rate) for one in found] == [(n, Fraction(3, 2)) for n in names]
    assert rates == [Fraction(3, 2)]  # what is published of the noise is true
    assert budget.is_used


def test_with_the_paper_s_settings_the_shares_are_the_paper_s():
    release = publish(random_rows(3000), epsilon=1, rounds=0, cells_per_record=Fraction(1, 5))
    assert shares_of(release) == {
        "size": Fraction(3, 100),
        "rest/grid/selection": Fraction(37, 100),
        "rest/grid/counts": Fraction(60, 100),
    }


def fixed_size(monkeypatch, value):
    def told(size, *, budget, rng):
        budget.spend()
        return value

    monkeypatch.setattr(mechanisms, "noisy_size", told)


@pytest.mark.parametrize("size", [-(10**6), 0, 1])
def test_with_one_grid_only_its_share_goes_to_the_counts(size, monkeypatch):
    """Known from the noisy size alone: no grid but that of one cell fits."""
    fixed_size(monkeypatch, size)
    budget = Budget.seeded(1)
    release = publish(random_rows(500), budget=budget)
    assert set(shares_of(release)) == {"size", "rest/grid/counts"}
    assert release.noise_rate == Fraction(97, 100)
    assert release.predictors == ()
    assert budget.cost() == 1


# --- what is decided from the noisy size, and from nothing else ---------------------------------


def enumerations(monkeypatch):
    asked = []
    honest = grid_choice.enumerate_grids

    def watched(sizes, *, max_cells, limit, uniform):
        asked.append((tuple(map(tuple, sizes)), max_cells, limit))
        return honest(sizes, max_cells=max_cells, limit=limit, uniform=uniform)

    monkeypatch.setattr(grid_choice, "enumerate_grids", watched)
    return asked


def test_the_limit_on_cells_is_the_paper_s_but_for_the_exact_number_of_records(monkeypatch):
    asked = enumerations(monkeypatch)
    for exact in (10, 800):
        fixed_size(monkeypatch, 137)
        publish(random_rows(exact), epsilon=1, rounds=0, cells_per_record=Fraction(1, 5))
    # 0.2 * 137 * 0.6, rounded down; levels of age, work and sex
    assert asked == [(((1, 3, 5, 9), (1, 3), (1, 2)), 16, 10_000)] * 2


def test_rounds_follow_the_noisy_number_of_records(monkeypatch):
    seen = []
    for noisy in (-5, 0, 10**2, 10**4, 10**6, 10**9):
        fixed_size(monkeypatch, noisy)
        counts = {len(publish(random_rows(exact), epsilon=1).refinements) for exact in (0, 700)}
        assert len(counts) == 1
        seen += counts
    assert seen == sorted(seen)
    assert seen[0] == 0
    assert seen[-1] == grid_choice.MAX_ROUNDS


class Told:
    """Stands in for all mechanisms: answers from public shapes alone."""

    def install(self, monkeypatch, size=400):
        fixed_size(monkeypatch, size)
        monkeypatch.setattr(mechanisms, "add_geometric", self.add_geometric)
        monkeypatch.setattr(mechanisms, "select", self.select)

    @staticmethod
    def add_geometric(counts, *, sensitivity, budget, rng):
        budget.spend()
        return np.arange(counts.size, dtype=np.int64).reshape(counts.shape) * 7 % 97

    @staticmethod
    def select(scores, *, sensitivity_range, budget, rng, **_):
        budget.spend()
        return len(scores) - 1


@pytest.mark.parametrize("settings", [{}, {"rounds": 3}, {"rounds": 2, "pool": 5}], ids=str)
def test_given_the_noisy_answers_nothing_else_depends_on_the_rows(settings, monkeypatch):
    """The structural audit: any two tables lead to the same release, bit by bit."""
    Told().install(monkeypatch)
    empty, some, others = (
        content(publish(random_rows(size, seed), epsilon=9, **settings))
        for size, seed in ((0, 1), (300, 1), (301, 8))
    )
    assert empty == some == others


@dataclass(frozen=True, kw_only=True)
class ExactSize(PrivPfC):
    """The papers' blunder: the limit on cells from the exact number of records."""

    def _candidates(self, run, task, size, epsilon):
        exact = int(run.sum(Counts(run.schema, ((),)))[0])
        return super()._candidates(run, task, exact, epsilon)


@dataclass(frozen=True, kw_only=True)
class RankedBefore(PrivPfC):
    """The papers' blunder: predictors ranked on the rows, before anything is paid for."""

    def release(self, table, *, budget, rng, progress=None):
        counts = table.sum(Counts(table.schema, ((("age", None),),)))
        kept = ("age", "sex") if counts[0] % 2 else ("work", "sex")
        ranked = PrivPfC(target=self.target, predictors=kept)
        return ranked.release(table, budget=budget, rng=rng, progress=progress)


def test_the_audit_notices_a_limit_from_the_exact_size(monkeypatch):
    Told().install(monkeypatch)
    contents = [content(publish(random_rows(n), method=ExactSize)) for n in (0, 300)]
    assert contents[0] != contents[1]


def test_the_audit_notices_predictors_ranked_on_the_rows():
    with pytest.raises(AssertionError, match="before the budget"):
        publish(random_rows(30), method=RankedBefore)


# --- the exact loss of whole releases -----------------------------------------------------------


class Diverged(Exception):
    """The same published values led elsewhere: this transcript is impossible here."""


class Transcript:
    """Stands in for the mechanisms: records what they publish, or replays it elsewhere."""

    def __init__(self, played=None):
        self.played, self.calls = played, []

    def _answer(self, asked, draw, likelihood):
        index = len(self.calls)
        output = draw()  # spends the budget, also where another output is played
        if self.played is not None:
            if index == len(self.played.calls) or self.played.calls[index][0] != asked:
                raise Diverged
            output = self.played.calls[index][1]
        self.calls.append((asked, output, likelihood(output)))
        return output

    def noisy_size(self, size, *, budget, rng):
        rate = float(budget.epsilon)
        return self._answer(
            ("size", rate),
            lambda: noisy_size(size, budget=budget, rng=rng),
            lambda y: -rate * abs(y - size),
        )

    def add_geometric(self, counts, *, sensitivity, budget, rng):
        rate = float(budget.epsilon / sensitivity)
        return self._answer(
            ("noise", rate, counts.shape),
            lambda: add_geometric(counts, sensitivity=sensitivity, budget=budget, rng=rng),
            lambda y: -rate * float(np.abs(y - counts).sum()),
        )

    def select(self, scores, *, sensitivity_range, budget, rng, **_):
        rate = float(budget.epsilon / sensitivity_range)
        return self._answer(
            ("choice", rate, scores.shape),
            lambda: select(scores, sensitivity_range=sensitivity_range, budget=budget, rng=rng),
            lambda o: log(choice_distribution(scores, rate)[o]),
        )

    def publish(self, rows, epsilon, seed, method, **settings):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(mechanisms, "noisy_size", self.noisy_size)
            patch.setattr(mechanisms, "add_geometric", self.add_geometric)
            patch.setattr(mechanisms, "select", self.select)
            made = method(target="class", cells_per_record=Fraction(20), **settings)
            made.release(open_table(rows, SCHEMA), budget=Budget.seeded(epsilon), rng=seeded(seed))
        if self.played is not None and len(self.calls) != len(self.played.calls):
            raise Diverged
        return sum(likelihood for _, _, likelihood in self.calls)


def loss(rows, extra, epsilon, seed, method=PrivPfC, **settings):
    """Log ratio of the exact likelihoods of one release, with and without `extra`."""
    here = Transcript()
    likelihood = here.publish(rows, epsilon, seed, method, **settings)
    more = pa.concat_tables([rows, extra])
    try:
        return abs(likelihood - Transcript(here).publish(more, epsilon, seed, method, **settings))
    except Diverged:
        return inf


def worst_loss(epsilon, method=PrivPfC, **settings):
    return max(
        loss(random_rows(size, seed), random_rows(1, 50 + seed), epsilon, seed, method, **settings)
        for size in (0, 4, 40)
        for seed in range(6)
    )


@pytest.mark.parametrize("rounds", [0, 2, "auto"])
def test_no_release_tells_neighbors_apart_by_more_than_epsilon(rounds):
    found = worst_loss(4, rounds=rounds)
    assert found <= 4 + 1e-6
    assert found > 1.5  # releases are not so noisy that nothing was tested


def test_a_record_that_misses_a_predictor_costs_no_more_either():
    left_out = random_rows(1).set_column(1, "work", pa.array([None], pa.string()))
    for seed in range(6):
        assert loss(random_rows(30, seed), left_out, 4, seed, rounds=2) <= 4 + 1e-6


def test_the_audit_notices_counts_that_are_paid_for_twice_as_well(monkeypatch):
    def generous(self, budget, grids):
        epsilon = budget.spend()
        return {"selection": Budget.seeded(epsilon), "counts": Budget.seeded(4 * epsilon)}

    monkeypatch.setattr(PrivPfC, "_split_grid", generous)
    assert worst_loss(4, rounds=0) > 4


def test_the_audit_notices_candidates_from_the_exact_size():
    losses = [
        loss(random_rows(n, 3), random_rows(1, 9), 1, 1, ExactSize, rounds=0) for n in range(4)
    ]
    assert inf in losses


def test_the_grid_is_chosen_with_the_range_of_its_quality_and_all_cells_are_published(monkeypatch):
    asked = []

    def watched(scores, *, sensitivity_range, budget, rng, **_):
        asked.append((sensitivity_range, budget.epsilon))
        return select(scores, sensitivity_range=sensitivity_range, budget=budget, rng=rng)

    monkeypatch.setattr(mechanisms, "select", watched)
    release = publish(random_rows(2000), epsilon=Fraction(5, 3), rounds=0)
    (asked_range, paid), quality = asked[0], GridQuality(Fraction(1))
    assert release.noise_rate == 1
    assert paid == Fraction(37, 60)
    assert asked_range == quality.range_sensitivity
    assert asked_range / quality.unit == pytest.approx(2 * 1.083969 - 1, abs=2e-5)
    assert release.counts.size == np.prod([axis.size for axis in release.axes])
    assert (release.counts != 0).sum() > release.counts.size / 2  # empty cells are perturbed too


# --- order, and rows ----------------------------------------------------------------------------


def test_rows_are_read_after_the_budget_is_opened_and_each_pass_is_known():
    budget = Budget.seeded(2)
    table = Watched(random_rows(300), budget)
    PrivPfC(target="class", rounds=2).release(table, budget=budget, rng=seeded(1))
    kinds = [type(kernel).__name__ for kernel in table.kernels]
    assert kinds == ["Counts", "ClassCuboids", "Counts", "Counts", "ResidualSums", "ResidualSums"]
    assert table.kernels[0].sets == ((),)
    for kernel in table.kernels[-2:]:
        assert set(kernel.codes) == set(SCHEMA.names)  # whatever the card looks at


def test_a_used_budget_reads_nothing():
    budget = Budget.seeded(1)
    budget.spend()
    table = Watched(random_rows(10))
    with pytest.raises(BudgetAlreadyUsed):
        PrivPfC(target="class").release(table, budget=budget, rng=seeded(1))
    assert table.kernels == []


def test_progress_tells_public_numbers_only(monkeypatch):
    Told().install(monkeypatch)
    told = []
    for rows in (random_rows(0), random_rows(200)):
        steps = []
        PrivPfC(target="class", rounds=2).release(
            open_table(rows, SCHEMA),
            budget=Budget.seeded(2),
            rng=seeded(1),
            progress=lambda *step, steps=steps: steps.append(step),
        )
        told.append(steps)
    assert told[0] == told[1]
    assert told[0][-1] == (2, 2, "refinements")


# --- odd tables ---------------------------------------------------------------------------------

CLASSES = column("class", "category", values=["no", "yes", "so"], other="else", missing="category")
MANY_CLASSES = Schema((*SCHEMA.columns[:3], CLASSES))


@pytest.mark.parametrize("size", [0, 1, 400])
@pytest.mark.parametrize("rounds", [0, 2])
def test_several_classes_with_others_and_missing_ones(size, rounds):
    rows = random_rows(size, classes=("no", "yes", "so", "?", None))
    release = publish(rows, epsilon=20, rounds=rounds, schema=MANY_CLASSES)
    assert release.classes.labels == ("no", "yes", "so", "else", "(missing)")
    predicted = set(release.predict(rows).to_pylist())
    assert predicted <= {"no", "yes", "so", "else", None}
    assert release.rows(20, seed=1).num_rows == 20


@pytest.mark.parametrize("rounds", [0, 1, 3])
def test_predictors_of_one_value_leave_nothing_to_choose(rounds):
    schema = Schema((column("one", "category", values=["a"]), SCHEMA["class"]))
    rows = pa.table({"one": ["a"] * 50, "class": ["yes"] * 40 + ["no"] * 10})
    budget = Budget.seeded(5)
    release = publish(rows, budget=budget, rounds=rounds, schema=schema)
    assert all(leaf.is_used for leaf in budget.account())
    assert release.predict(pa.table({"one": ["a"]})).to_pylist() == ["yes"]


def test_one_predictor_with_very_many_leaves():
    schema = Schema((column("income", "integer", bounds=[0, 99_999]), SCHEMA["class"]))
    incomes = np.arange(2000) * 49
    rows = pa.table({"income": incomes, "class": np.where(incomes > 40_000, "yes", "no").tolist()})
    release = publish(rows, schema=schema, rounds=2)
    assert release.predict(rows).to_pylist().count(None) == 0


@pytest.mark.parametrize("epsilon", ["0.0002", "0.01", "1000000"])
def test_tiny_and_huge_budgets_work(epsilon):
    for size in (0, 200):
        release = publish(random_rows(size), epsilon=epsilon, rounds=3)
        assert np.abs(release.scores).max() <= 8 * 1024
        release.rows(10, seed=1)


@pytest.mark.parametrize("rounds", [0, 4])
def test_a_clear_rule_is_learned(rounds):
    rows = random_rows(20_000).drop_null()
    ages, sexes = (np.array(rows[name].to_pylist()) for name in ("age", "sex"))
    truth = np.where((ages > 3) ^ (sexes == "M"), "yes", "no")  # what most of such records are
    predicted = publish(rows, epsilon=2, rounds=rounds).predict(rows).to_pylist()
    assert np.mean(np.array(predicted) == truth) > 0.98


def test_refinements_add_what_the_grid_leaves_out(monkeypatch):
    """With the grid of one cell, all that is learned comes from refinements."""
    fixed_size(monkeypatch, 0)
    rng = plain_generator(2)
    sexes, works = rng.integers(0, 2, 4000), rng.integers(0, 3, 4000)
    rows = pa.table(
        {
            "age": np.zeros(4000, dtype=int),
            "work": ["abc"[w] for w in works],
            "sex": ["FM"[s] for s in sexes],
            "class": np.where(sexes == 1, "yes", "no").tolist(),
        }
    )
    right = np.mean(
        np.array(publish(rows, epsilon=2, rounds=2).predict(rows).to_pylist())
        == np.array(rows["class"].to_pylist())
    )
    assert right > 0.99


# --- refusals -----------------------------------------------------------------------------------

RESERVED = ["cell_number", "noisy_count", "estimated_count", "class_score"]


def refusals():
    named = [Schema((column(name, "integer", bounds=[0, 3]), SCHEMA["class"])) for name in RESERVED]
    yield from (({}, schema, 1) for schema in named)
    yield {"target": "age"}, SCHEMA, 1
    yield {"target": "nonsense"}, SCHEMA, 1
    yield {"predictors": ("nonsense",)}, SCHEMA, 1
    yield {"predictors": ("age", "age")}, SCHEMA, 1
    yield {"predictors": ("class",)}, SCHEMA, 1
    yield {}, Schema((SCHEMA["class"],)), 1
    yield {}, SCHEMA, Fraction(1, 10**6)
    yield {"rounds": 0}, SCHEMA, Fraction(1, 10**7)
    yield {"rounds": 10**6}, SCHEMA, 1
    yield {}, Schema(SCHEMA.columns, unit="person"), 1


@pytest.mark.parametrize(("settings", "schema", "epsilon"), list(refusals()))
def test_what_release_refuses_the_forecast_refuses_too_and_nothing_is_spent(
    settings, schema, epsilon
):
    class Untouchable:
        neighbors = AddRemoveRecord()

        def sum(self, kernel):
            pytest.fail("rows were read")

    table = Untouchable()
    table.schema = schema
    method = PrivPfC(**{"target": "class", **settings})
    budget = Budget.seeded(epsilon)
    with pytest.raises(InvalidParameter) as predicted:
        method.expected_error(schema, None, Fraction(epsilon))
    with pytest.raises(InvalidParameter) as refused:
        method.release(table, budget=budget, rng=seeded(1))
    assert str(predicted.value) == str(refused.value)
    assert not budget.is_used


def test_more_sums_than_fit_are_refused_unless_there_are_no_refinements(monkeypatch):
    monkeypatch.setattr(kernels, "MOST_SUMS", 20)
    with pytest.raises(InvalidParameter, match="too many"):
        PrivPfC(target="class").expected_error(SCHEMA, None, Fraction(1))
    PrivPfC(target="class", rounds=0).expected_error(SCHEMA, None, Fraction(1))


def test_the_smallest_epsilon_that_is_not_refused_works(monkeypatch):
    method = PrivPfC(target="class")
    low, high = Fraction(1, 10**6), Fraction(1)
    for _ in range(30):
        middle = (low + high) / 2
        try:
            method.expected_error(SCHEMA, None, middle)
            high = middle
        except InvalidParameter:
            low = middle
    fixed_size(monkeypatch, 10**12)  # as many rounds as there may be
    release = publish(random_rows(50), epsilon=high)
    assert len(release.refinements) == grid_choice.MAX_ROUNDS


def test_tables_whose_neighbors_replace_records_are_refused():
    table = Watched(random_rows(5))
    table.__class__ = type("Replacing", (Watched,), {"neighbors": ReplaceRecord()})
    with pytest.raises(InvalidParameter, match="added or removed"):
        PrivPfC(target="class").release(table, budget=Budget.seeded(1), rng=seeded(1))
    assert table.kernels == []


@pytest.mark.parametrize(
    "settings",
    [
        {"pool": 0},
        {"pool": 1.5},
        {"pool": 10**9},
        {"rounds": -1},
        {"rounds": "some"},
        {"cells_per_record": "few"},
        {"cells_per_record": Fraction(0)},
        {"size_share": Fraction(1, 2)},
        {"counts_share": Fraction(-6, 10)},
    ],
    ids=str,
)
def test_bad_settings_are_refused_at_once(settings):
    with pytest.raises(InvalidParameter):
        PrivPfC(target="class", **settings)


@pytest.mark.parametrize("n_records", [None, 0, 10**6])
def test_the_forecast_needs_no_number_of_records(n_records):
    figures = PrivPfC(target="class").expected_error(SCHEMA, n_records, Fraction(1)).figures
    assert ("most_cells" in figures) == bool(n_records)
    assert (figures["rounds"] > 0) == bool(n_records)


def test_the_forecast_of_a_count_holds():
    """One count in twenty, no more and not far fewer, is farther off than predicted."""
    method = PrivPfC(target="class", rounds=0, predictors=("sex",))
    half_width = method.expected_error(SCHEMA, None, Fraction(2)).figures["one_cell_95"]
    rows = random_rows(500)
    exact = np.unique(np.array(rows["class"].to_pylist()), return_counts=True)[1]
    errors = []
    for seed in range(400):
        release = publish(rows, epsilon=2, seed=seed, rounds=0, predictors=("sex",))
        if release.predictors:
            sums = release.counts.reshape(2, 2)
            by_sex = open_table(rows, SCHEMA).sum(
                Counts(SCHEMA, ((("sex", None), ("class", None)),))
            )
            errors += np.abs(sums.ravel() - by_sex).tolist()
        else:
            errors += np.abs(release.counts - exact).tolist()
    outside = np.mean(np.array(errors) > half_width)
    assert 0.01 < outside < 0.06
