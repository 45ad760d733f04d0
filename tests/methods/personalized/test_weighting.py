"""Counts in which people weigh what they accept: who loses how much, and how good they are."""

import json
import re
from fractions import Fraction

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from dpublish.core import run
from dpublish.core.folder.folder import load
from dpublish.core.registry import make_method
from dpublish.data.schema import Schema, column
from dpublish.data.sources import open_table
from dpublish.errors import InvalidParameter
from dpublish.ledger.ledger import Ledger
from dpublish.mechanisms.noise import add_geometric
from dpublish.methods.personalized import weighting
from dpublish.publishing.table import publish as publish_table
from dpublish.randomness import plain_generator, seeded
from dpublish.report.page import render_report

LEVELS = ("0.07", "0.3", "1")
PEOPLE = Schema((column("home", "category", values=["a", "b", "c"]),))


def configured(name="weighting", **settings):
    shared = {"preference": "own", "levels": LEVELS, "exchangeable": True}
    own = {"columns": ("home",)} if name == "weighting" else {"inner": "histogram columns=home"}
    return make_method(name, {**shared, **own, **settings})


def publish(method, rows, epsilon="1", seed=1):
    homes, numbers = zip(*rows, strict=True) if rows else ((), ())
    data = pa.table({"home": pa.array(homes, pa.string()), "own": pa.array(numbers, pa.float64())})
    table = open_table(data, method.prepare(PEOPLE))
    return method.release(table, budget=method.budget(Fraction(epsilon)), rng=seeded(seed))


@pytest.fixture
def seen(monkeypatch):
    """What the noise is added to, and its rate."""
    calls = []

    def watch(counts, *, sensitivity, budget, rng):
        calls.append((counts.copy(), budget.epsilon / sensitivity))
        return add_geometric(counts, sensitivity=sensitivity, budget=budget, rng=rng)

    monkeypatch.setattr(run, "add_geometric", watch)
    return calls


def losses(method, seen, epsilon):
    """Exact loss of each level: its record moves the counts, and the noise has one rate."""
    base = [("a", 0.3), ("b", 1.0), ("c", 0.07), ("a", 5.0)]
    found = {}
    for level, number in zip(method.levels, (0.07, 0.3, 1.0), strict=True):
        here, there = [*base, ("b", number)], base
        if method.mode == "values-only":
            there = [*base, ("c", number)]
        seen.clear()
        publish(method, here, epsilon)
        publish(method, there, epsilon)
        (one, rate), (other, same) = seen
        assert rate == same
        found[level] = float(rate) * float(np.abs(one - other).sum())
    return found


SIZES = {"sizes": (400, 300, 300)}
CASES = [
    {**SIZES},
    {**SIZES, "limit": "0.3"},
    {**SIZES, "limit": "1"},
    {**SIZES, "limit": "0.07"},
    {"mode": "values-only"},
    {"mode": "values-only", "limit": "1"},
]


@pytest.mark.parametrize("settings", CASES)
@pytest.mark.parametrize("epsilon", ["1", "0.37"])
def test_every_level_loses_at_most_what_it_pays(seen, settings, epsilon):
    method = configured(**settings)
    paid = method.spending(Fraction(epsilon))
    for level, loss in losses(method, seen, epsilon).items():
        assert loss <= float(paid[level]) * (1 + 1e-12)
        assert paid[level] <= level * Fraction(epsilon)


def test_little_of_what_is_paid_is_wasted(seen):
    method = configured(limit="1", **SIZES)
    paid = method.spending(Fraction(1))
    for level, loss in losses(method, seen, "1").items():
        assert loss > 0.999 * float(paid[level])


def test_weights_that_are_rounded_up_would_be_caught(seen, monkeypatch):
    def rounded_up(self, epsilon, most):
        shares = self.preferences.amounts(epsilon).values()
        return [int(min(share, most) * weighting.UNITS / most) + 1 for share in shares]

    monkeypatch.setattr(weighting.Weighting, "_weights", rounded_up)
    method = configured(limit="1", **SIZES)
    paid = method.spending(Fraction(1))
    found = losses(method, seen, "1")
    assert any(loss > float(paid[level]) for level, loss in found.items())


def test_noise_for_adding_would_be_caught_where_values_are_exchanged(seen, monkeypatch):
    monkeypatch.setattr(weighting.Weighting, "halves", 1)
    method = configured(mode="values-only", limit="1")
    paid = method.spending(Fraction(1))
    assert any(loss > 1.5 * float(paid[level]) for level, loss in losses(method, seen, "1").items())


def test_people_below_the_first_level_or_without_a_number_count_nothing(seen):
    method = configured(**SIZES)
    publish(method, [("a", 0.01), ("b", float("nan")), ("c", -1.0)])
    assert seen[0][0].tolist() == [0, 0, 0]


@pytest.mark.parametrize("rows", [[], [("a", 1.0)]])
def test_it_works_on_hardly_any_rows(rows):
    assert publish(configured(**SIZES), rows).count("home = a").value >= 0


def population(n=6_000, seed=3):
    rng = plain_generator(seed)
    own = rng.permutation(np.repeat([0.07, 0.3, 1.0], n // 3))
    homes = rng.choice(["a", "b", "c"], n, p=[0.5, 0.3, 0.2])
    return list(zip(homes, own, strict=True))


def errors(method, epsilon="0.1", runs=60):
    found = []
    for seed in range(runs):
        rows = population(seed=seed)
        true = sum(home == "a" for home, _ in rows)
        found.append(publish(method, rows, epsilon, seed + 500).count("home = a").value - true)
    return np.array(found)


def test_it_is_unbiased_and_as_good_as_predicted():
    method = configured(sizes=(2_000,) * 3)
    found = errors(method)
    predicted = method.expected_error(PEOPLE, None, Fraction("0.1")).figures["count_error"]
    assert abs(found.mean()) < 4 * predicted / len(found) ** 0.5
    assert np.sqrt(np.mean(found**2)) == pytest.approx(predicted, rel=0.3)


def test_it_beats_sampling_at_every_threshold():
    sizes = (2_000,) * 3
    ours = np.sqrt(np.mean(errors(configured(sizes=sizes)) ** 2))
    for threshold in LEVELS:
        rival = configured("sampling", sizes=sizes, threshold=threshold)
        assert ours < 1.1 * np.sqrt(np.mean(errors(rival) ** 2))


def test_intervals_cover_the_truth():
    method, covered = configured(sizes=(2_000,) * 3), 0
    for seed in range(100):
        rows = population(seed=seed)
        answer = publish(method, rows, "0.1", seed).count("home = a")
        covered += answer.low <= sum(home == "a" for home, _ in rows) <= answer.high
    assert covered >= 88


def test_the_limit_is_the_level_of_least_error():
    method = configured(sizes=(2_000,) * 3)
    chosen = method._limit(Fraction(1), method.sizes)
    by_level = [method._error(Fraction(1), method.sizes, level) for level in method.levels]
    assert by_level[method.levels.index(chosen)] == min(by_level)


def test_what_it_cannot_do_is_refused():
    for settings in (
        {},
        {**SIZES, "exchangeable": False},
        {**SIZES, "limit": "0.2"},
        {**SIZES, "person_variance": "-1/4"},
        {**SIZES, "columns": ()},
    ):
        with pytest.raises(InvalidParameter):
            configured(**settings)
    for columns in (("own",), ("home", "home"), ("no one",)):
        with pytest.raises(InvalidParameter):
            configured(**SIZES, columns=columns).expected_error(PEOPLE, None, Fraction(1))


@pytest.mark.parametrize(
    ("levels", "sizes", "settings"),
    [
        (("0.00001", "1"), (10**9, 10**3), {"person_variance": "0"}),
        (("0.000001", "1"), (10**6, 0), {"limit": "1"}),
        (("0.07", "1"), (0, 0), {}),
    ],
)
def test_what_is_predicted_is_what_the_rounded_weights_give(levels, sizes, settings):
    method = configured(levels=levels, sizes=sizes, **settings)
    predicted = method.expected_error(PEOPLE, None, Fraction(1)).figures["count_error"]
    release = publish(method, [])
    part = release.parts[0]
    noise = (2**0.5) / float(part.release.noise_rate) * part.scale / part.size
    assert predicted >= 0.99 * noise * max(sum(sizes), 1)


def test_an_interval_knows_that_one_person_stands_for_many_even_if_nothing_is_scaled():
    method = configured(levels=("0.000001", "1"), sizes=(65535, 1), limit="1")
    answer = publish(method, [("a", 1.0)]).count("home = a")
    assert answer.assumption
    assert answer.high - answer.value > 10_000


def test_partitioning_groups_where_people_are_counted_by_what_gives_their_level():
    rule = {"preference": "home", "rule": "a=0.07; b=0.3; c=1", "derived": True}
    method = configured("partitioning", combine="weighted", sizes=(400,) * 3, **rule)
    assert method.weighing is None


def test_partitioning_that_weighs_says_so_wherever_the_method_is_named(tmp_path):
    method = configured("partitioning", combine="weighted", sizes=(400,) * 3)
    assert method.runs == method.weighing
    assert "weighting" in method.expected_error(PEOPLE, None, Fraction(1)).summary
    rows = pa.table({"home": ["a", "b"], "own": [0.3, 1.0]})
    folder = tmp_path / "weighed"
    with Ledger.create(tmp_path / "books.db") as ledger:
        ledger.add("people", levels=LEVELS)
        release = publish_table(
            method,
            open_table(rows, method.prepare(PEOPLE)),
            folder,
            ledger=ledger,
            dataset="people",
            epsilon="1",
        )
        [granted] = ledger.status("people").grants
    assert (granted.purpose, granted.release_id) == ("weighting", release.receipt.release_id)
    receipt = json.loads((folder / "release.json").read_text())["receipt"]
    assert receipt["method"] == release.receipt.method == "weighting"
    assert make_method(receipt["method"], receipt["settings"]) == method.weighing
    assert release.summary()["note"].startswith("partitioning runs weighting")
    assert "method weighting." in (folder / "report.html").read_text()


def test_partitioning_that_groups_is_named_so():
    method = configured("partitioning", combine="weighted", sizes=(400,) * 3, within="least")
    release = publish(method, [("a", 0.3)])
    assert (method.runs, release.receipt.method) == (method, "partitioning")


def test_files_page_and_data_package_count_records_not_weights(tmp_path):
    sizes = (2_000, 2_000, 2_000)
    method = configured(sizes=sizes)
    homes = ["a"] * 3_000 + ["b"] * 1_800 + ["c"] * 1_200
    levels = [0.07, 0.3, 1.0] * 2_000
    release = publish(method, list(zip(homes, levels, strict=True)))
    folder = release.save(tmp_path / "weighed")

    counts = pq.read_table(folder / "data" / "part1_counts.parquet").to_pydict()
    asked = [release.count(f"home = {home}").value for home in counts["home"]]
    assert counts["estimated_count"] == pytest.approx(asked, abs=1)
    assert counts["estimated_count"] == pytest.approx([3_000, 1_800, 1_200], abs=300)

    described = json.loads((folder / "datapackage.json").read_text())["resources"]
    fields = {f["name"]: f for one in described for f in one["schema"]["fields"]}
    assert "noisy_count" not in fields, "sums of weights must not be called counts"
    factor = float(re.search(r"stands for (\S+) records", fields["noisy_weight"]["description"])[1])
    assert np.array(counts["noisy_weight"]) * factor == pytest.approx(asked, abs=1)
    assert "65,536" in fields["noisy_weight"]["description"]

    page = render_report(release)
    drawn = [float(n.replace(",", "")) for n in re.findall(r">([\d,]+)</text>", page)]
    assert 1_000 < max(drawn) < 10_000, "the axis of records"
    assert fields["noisy_weight"]["description"] in page
    assert load(folder) == release


def test_a_column_named_as_the_weights_is_refused():
    taken = Schema((column("noisy_weight", "category", values=["a"]),))
    with pytest.raises(InvalidParameter, match="noisy_weight"):
        configured(sizes=(1, 1, 1), columns=("noisy_weight",)).expected_error(
            taken, None, Fraction(1)
        )
