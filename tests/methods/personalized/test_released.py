"""A personalized release: parts are counted, predict, are saved and loaded together."""

import json
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pyarrow as pa
import pytest

from dpublish.core.folder.folder import load
from dpublish.core.registry import make_method
from dpublish.data.schema import Schema, column
from dpublish.data.sources import open_table
from dpublish.errors import CorruptRelease, InvalidParameter, InvalidQuery
from dpublish.methods.personalized.released import PersonalizedRelease
from dpublish.methods.personalized.released_combined import EXCHANGEABLE, NOISY_SIZES
from dpublish.methods.personalized.released_parts import Part
from dpublish.privacy.budget import Budget
from dpublish.privacy.neighbors import (
    AddRemoveRecord,
    AddRemoveUnit,
    PersonalRecord,
    ReplaceRecord,
)
from dpublish.privacy.receipt import Receipt
from dpublish.randomness import plain_generator, seeded

LOW, HIGH = Fraction(1, 10), Fraction(1)
AMPLE = (Fraction(1000), Fraction(2000))  # levels of people who accept hardly any noise
SCHEMA = Schema(
    (
        column("age", "integer", bounds=[0, 99], bins=10),
        column("height", "numeric", bounds=[100, 220], bins=6),
        column("sex", "category", values=["Female", "Male"]),
    )
)


def people(count, seed=8):
    rng = plain_generator(seed)
    sex = rng.integers(0, 2, count)
    return pa.table(
        {
            "age": rng.integers(0, 100, count),
            "height": np.clip(rng.normal(165, 8, count) + 14 * sex, 100, 220),
            "sex": np.array(["Female", "Male"])[sex],
        }
    )


def receipt_of(mode="frame", amounts=((LOW, LOW), (HIGH, HIGH))):
    budget = Budget.seeded(max(amount for _, amount in amounts), levels=amounts)
    budget.spend()
    neighbors = PersonalRecord("own", tuple(str(level) for level, _ in amounts), mode)
    return Receipt.issue(
        method="stand-in", settings={}, budget=budget, neighbors=neighbors, rng=seeded(1)
    )


def inner(table, epsilon, seed=1, method="histogram", **settings):
    settings = settings or {"columns": ("age", "sex")}
    chosen = make_method(method, settings)
    return chosen.release(
        open_table(table, SCHEMA), budget=Budget.seeded(epsilon), rng=seeded(seed)
    )


def part(level, size, epsilon=None, *, weight=1.0, scale=1.0, seed=1, table=None, **settings):
    epsilon = level if epsilon is None else epsilon
    table = people(int(size), seed) if table is None else table
    return Part(
        levels=(level,),
        epsilon=epsilon,
        weight=weight,
        scale=scale,
        size=size,
        release=inner(table, epsilon, seed, **settings),
    )


def make(*parts, mode="frame", combine="sum", **changes):
    levels = sorted({LOW, HIGH, *(level for part in parts for level in part.levels)})
    receipt = receipt_of(mode, tuple((level, level) for level in levels))
    given = {"receipt": receipt, "schema": SCHEMA, "expected": {"count_error": 3.0}}
    return PersonalizedRelease(combine=combine, parts=parts, **given | changes)


def sure(*sizes, combine="weighted", **changes):
    """Make a release whose counts have hardly any noise."""
    parts = [
        part(level, size, Fraction(1000), weight=float(position + 1), seed=position)
        for position, (level, size) in enumerate(zip(AMPLE, sizes, strict=False))
    ]
    return make(*parts, combine=combine, **changes)


def test_counts_are_added_up_times_their_scale():
    first, second = part(LOW, 500.0), part(HIGH, 300.0, scale=2.5)
    whole = make(first, second)
    for query in ("", "age < 30", "sex = Male and age >= 50"):
        counted = [each.release.count(query).value for each in (first, second)]
        assert whole.count(query).value == pytest.approx(counted[0] + 2.5 * counted[1])


def test_weighted_counts_are_shares_of_all_people_by_normalized_weights():
    whole = sure(500, 300, total=1000.0)
    shares = [each.release.count("age < 30").value / each.size for each in whole.parts]
    assert whole.count("age < 30").value == pytest.approx(1000 * (shares[0] + 2 * shares[1]) / 3)
    assert sure(500, 300).people == 800
    # Weights say how parts relate; their unit does not matter.
    huge = [replace(each, weight=each.weight * 1e19) for each in whole.parts]
    assert replace(whole, parts=tuple(huge)).count().value == pytest.approx(1000, rel=1e-6)


@pytest.mark.parametrize("combine", ["sum", "weighted"])
def test_boxes_are_combined_as_queries_are(combine):
    whole = sure(400, 700, combine=combine)
    lows, highs = np.array([[0], [30], [0]]), np.array([[3], [70], [10]])
    found = whole.count_boxes(["age"], np.minimum(lows, 9), np.minimum(highs, 10))
    asked = [whole.count(query).value for query in ("age < 30", "age >= 90", "")]
    assert found == pytest.approx(asked)


def coverage(make_one, truth, confidence, runs=400):
    hits = 0
    for seed in range(runs):
        answer = make_one(seed).count("sex = Male", confidence=confidence)
        hits += answer.low <= truth <= answer.high
    return hits / runs


@pytest.mark.parametrize("confidence", [0.5, 0.8, 0.95])
def test_the_interval_of_a_sum_covers_the_truth_as_often_as_it_says(confidence):
    tables = [people(300, seed) for seed in (1, 2)]
    truth = sum(t["sex"].to_pylist().count("Male") for t in tables)
    settings = {"columns": ("sex",)}

    def one(seed):
        return make(
            *(
                part(level, 300.0, level, seed=2 * seed + n, table=t, **settings)
                for n, (level, t) in enumerate(zip((LOW, HIGH), tables, strict=True))
            )
        )

    # At most 5 deviations too few; and the bar is no wider than it needs to be by far.
    found = coverage(one, truth, confidence)
    assert found > confidence - 5 * np.sqrt(confidence * (1 - confidence) / 400)
    assert found < confidence + 0.7 * (1 - confidence)


def exchangeable(seed, share=0.3, sizes=(400, 1600), weights=(1.0, 9.0), scale=1.0, drop=0):
    """Draw people whose sex says nothing about their level, and publish both levels."""
    rng = plain_generator(1000 + seed)
    parts, truth = [], 0
    for number, (level, size) in enumerate(zip((LOW, HIGH), sizes, strict=True)):
        is_male = rng.random(size) < share
        truth += int(is_male.sum())
        kept = rng.random(size) < 1 / scale
        sexes = np.array(["Female", "Male"])[is_male[kept].astype(int)]
        count = int(kept.sum())
        table = pa.table({"age": [1] * count, "height": [150.0] * count, "sex": sexes})
        given = {"weight": weights[number], "scale": scale, "seed": seed, "columns": ("sex",)}
        parts.append(part(level, float(size), level, table=table, **given))
    return parts[drop:], truth, float(sum(sizes))


@pytest.mark.parametrize("changes", [{}, {"drop": 1}, {"scale": 3.0}, {"scale": 2.0, "drop": 1}])
def test_the_interval_of_a_weighted_count_allows_for_who_is_in_which_part(changes):
    hits = naive = 0
    for seed in range(300):
        parts, truth, total = exchangeable(seed, **changes)
        answer = make(*parts, combine="weighted", total=total).count("sex = Male", confidence=0.8)
        hits += answer.low <= truth <= answer.high
        assert EXCHANGEABLE in answer.assumption
        # The broken twin knows of noise only.
        noise = [each.release.count("sex = Male", confidence=0.8) for each in parts]
        weights = np.array([each.weight for each in parts])
        factors = total * weights / weights.sum() * [e.scale / e.size for e in parts]
        intervals = factors * [a.high - a.value for a in noise]
        naive += abs(answer.value - truth) <= np.sqrt(intervals @ intervals)
    assert 240 - 5 * np.sqrt(48) < hits <= 296
    assert naive < hits
    if changes:
        assert naive < 200


def test_a_sum_rests_on_the_model_of_any_of_its_parts(monkeypatch):
    parts = part(LOW, 300.0), part(HIGH, 300.0)
    assert make(*parts).count("sex = Male").kind == "confidence"
    plain, modeled = type(parts[1].release).count, parts[1].release

    def count(self, query="", *, confidence=0.95):
        found = plain(self, query, confidence=confidence)
        return replace(found, assumption="a model fits", kind="model") if self is modeled else found

    monkeypatch.setattr(type(modeled), "count", count)
    answer = make(*parts).count("sex = Male")
    assert (answer.kind, answer.assumption) == ("model", "a model fits")


def test_no_interval_is_offered_where_one_would_not_hold():
    noisy = sure(400, 700, mode="levels").count()
    assert noisy.low is None
    assert NOISY_SIZES in noisy.assumption
    table = people(300)
    silent = part(LOW, 300.0, table=table, method="privbayes", max_degree=1)
    query = "age < 30 and height < 160 and sex = Male"
    answer = make(silent, part(HIGH, 300.0, columns=SCHEMA.names)).count(query)
    assert answer.interval == "confidence"  # what the joint counts of the network allow
    assert "however they depend" in answer.assumption
    hidden = part(LOW, 300.0, table=table, method="filter-priority", columns=("age", "sex"))
    answer = make(hidden, part(HIGH, 300.0, columns=("age", "sex"))).count("age < 30")
    assert answer.low is None
    assert "not counted" in answer.assumption


def test_intervals_that_hold_more_than_noise_are_added_not_squared():
    parts = [part(level, 300.0, columns=("age",), threshold=5) for level in (LOW, HIGH)]
    answer = make(*parts).count("age < 50", confidence=0.9)
    each = [one.release.count("age < 50", confidence=0.95) for one in parts]
    half_width = sum(max(one.high - one.value, one.value - one.low) for one in each)
    assert answer.high == pytest.approx(answer.value + half_width)


def test_a_single_part_answers_for_itself():
    alone = part(HIGH, 300.0, columns=("age",), threshold=5)
    assert make(alone).count("age < 50") == alone.release.count("age < 50")


def test_noisy_sizes_of_no_one_do_not_stop_a_release():
    parts = [replace(part(LOW, 300.0), size=-3.0), part(HIGH, 200.0)]
    whole = make(*parts, combine="weighted", mode="levels", receipt=receipt_of("levels"))
    own = parts[1].release.count("age < 30").value
    assert whole.count("age < 30").value == pytest.approx(own)
    empty = make(replace(parts[0], weight=0.0), combine="weighted", receipt=receipt_of("levels"))
    assert empty.count().value == 0
    assert empty.rows(5).num_rows == 5
    assert empty.rows().num_rows == 0


def test_unknown_sizes_are_said_so():
    parts = [replace(part(level, 300.0), size=None) for level in (LOW, HIGH)]
    with pytest.raises(InvalidQuery, match="not known"):
        make(*parts, combine="weighted").count()
    assert make(*parts).count().value > 0


def linear(level, weights, seed=1, **changes):
    settings = {"target": "sex", "predictors": ("age", "height")} | changes
    return part(
        level, 400.0, Fraction(50), weight=weights, seed=seed, method="private-erm", **settings
    )


def test_linear_models_are_averaged_by_weight():
    parts = [linear(AMPLE[0], 1.0, 1), linear(AMPLE[1], 3.0, 2)]
    whole = make(*parts, combine="weighted")
    first, second = (each.release.weights for each in parts)
    assert whole.model.weights == pytest.approx((first + 3 * second) / 4)
    rows = people(200, 5)
    assert whole.predict(rows).equals(whole.model.predict(rows))
    assert whole.coefficients()["weight"].to_pylist() == pytest.approx(
        ((first + 3 * second) / 4).ravel().tolist()
    )


def test_grids_average_their_probabilities():
    parts = [
        part(level, 2000.0, Fraction(9), weight=w, seed=n, method="privpfc", target="sex")
        for n, (level, w) in enumerate(zip(AMPLE, (1.0, 2.0), strict=True))
    ]
    whole = make(*parts, combine="weighted")
    rows = people(300, 6)
    probabilities = [each.release.predict_proba(rows) for each in parts]
    wanted = (probabilities[0] + 2 * probabilities[1]) / 3
    found = whole.predict_proba(rows)
    assert np.column_stack([found[name] for name in found.column_names]) == pytest.approx(wanted)
    labels = np.array(["Female", "Male"])[wanted.argmax(axis=1)]
    assert whole.predict(rows).to_pylist() == labels.tolist()
    assert np.mean(labels == rows["sex"].to_numpy()) > 0.7


def test_other_classifiers_vote_with_their_weights():
    parts = [
        part(level, 800.0, Fraction(20), weight=w, method="diffpid3", seed=n, target="sex")
        for n, (level, w) in enumerate(zip(AMPLE, (1.0, 2.0), strict=True))
    ]
    rows = people(100, 6)
    whole = make(*parts, combine="weighted")
    assert whole.predict(rows).equals(parts[1].release.predict(rows))
    turned = make(replace(parts[0], weight=5.0), parts[1], combine="weighted")
    assert turned.predict(rows).equals(parts[0].release.predict(rows))
    with pytest.raises(InvalidQuery, match="no probabilities"):
        whole.predict_proba(rows)
    with pytest.raises(InvalidQuery, match="not linear models"):
        whole.coefficients()


def test_rows_come_from_parts_in_proportion():
    male, female = (
        people(1000).filter(pa.compute.equal(people(1000)["sex"], s)) for s in ("Male", "Female")
    )
    parts = [
        part(AMPLE[0], 1000.0, table=male.slice(0, 100)),
        part(AMPLE[1], 1000.0, table=female.slice(0, 300), weight=9.0),
    ]
    added = make(*parts).rows(4000, seed=3)
    assert added["sex"].to_pylist().count("Male") == pytest.approx(1000, abs=150)
    assert added.equals(make(*parts).rows(4000, seed=3))
    assert make(*parts).rows(seed=3).num_rows == 400
    weighted = make(*parts, combine="weighted").rows(4000, seed=3)
    assert weighted["sex"].to_pylist().count("Male") == pytest.approx(400, abs=100)
    first = added["sex"].slice(0, 400).to_pylist()
    assert 50 < first.count("Male") < 150  # mixed, not part after part


def test_rows_are_drawn_by_weight_where_the_sizes_are_unknown():
    parts = [
        replace(part(LOW, 300.0, weight=0.0), size=None),
        replace(part(HIGH, 300.0), size=None),
    ]
    whole = make(*parts, combine="weighted")
    assert whole.rows(50, seed=1).num_rows == 50
    assert whole.rows().num_rows == 0
    sole = make(parts[1], combine="weighted")
    ages = [each.rows(2000, seed=1)["age"].to_numpy() // 10 for each in (whole, sole)]
    first, second = (np.bincount(each, minlength=10) for each in ages)
    assert np.abs(first - second).max() < 100


def test_models_of_different_features_average_their_numbers():
    settings = {"method": "functional", "target": "height", "model": "linear"}
    parts = [
        part(level, 400.0, Fraction(50), weight=w, **settings, predictors=(name,))
        for level, w, name in ((AMPLE[0], 1.0, "age"), (AMPLE[1], 3.0, "sex"))
    ]
    rows = people(20, 5)
    first, second = (np.array(each.release.predict(rows)) for each in parts)
    found = make(*parts, combine="weighted").predict(rows)
    assert np.array(found) == pytest.approx((first + 3 * second) / 4)


KINDS = [
    ("histogram", {"columns": ("age", "sex")}),
    ("marginals", {}),
    ("private-erm", {"target": "sex", "predictors": ("age", "height")}),
    ("privpfc", {"target": "sex"}),
]


@pytest.mark.parametrize(("method", "settings"), KINDS)
def test_parts_of_any_kind_are_saved_and_loaded(method, settings, tmp_path):
    parts = [part(level, 300.0, method=method, **settings) for level in (LOW, HIGH)]
    whole = make(*parts, combine="weighted", notes=("a note",), total=700.0)
    whole.save(tmp_path / "out")
    loaded = load(tmp_path / "out")
    assert loaded == whole
    assert loaded != replace(whole, total=701.0)
    assert loaded.parts[1].release.receipt == parts[1].release.receipt
    assert loaded.expected_error() == {"count_error": 3.0}
    assert "note" in loaded.summary()


@pytest.mark.parametrize(
    "change",
    [
        lambda metadata: metadata.update(combine="product"),
        lambda metadata: metadata.update(parts=[]),
        lambda metadata: metadata.update(total="many"),
        lambda metadata: metadata.update(total=1e308),
        lambda metadata: metadata.update(total=10**400),
        lambda metadata: metadata.update(expected={"count_error": 10**400}),
        lambda metadata: metadata.update(notes=[1]),
        lambda metadata: metadata["parts"][0].update(kind="personal"),
        lambda metadata: metadata["parts"][0].update(kind="no-such-kind"),
        lambda metadata: metadata["parts"][0].update(weight=-1),
        lambda metadata: metadata["parts"][0].update(weight=1e308),
        lambda metadata: metadata["parts"][0].update(scale=0),
        lambda metadata: metadata["parts"][0].update(scale=1e308),
        lambda metadata: metadata["parts"][0].update(scale=1e-320),
        lambda metadata: metadata["parts"][0].update(size=-1e308),
        lambda metadata: metadata["parts"][0].update(size="few"),
        lambda metadata: metadata["parts"][0].update(levels=["1/3"]),
        lambda metadata: metadata["parts"][0].update(levels=[]),
        lambda metadata: metadata["parts"][0].update(epsilon="7"),
        lambda metadata: metadata["parts"].reverse(),
        lambda metadata: metadata["parts"][0].pop("receipt"),
    ],
)
def test_a_folder_that_was_tampered_with_is_refused(change, tmp_path):
    parts = [part(LOW, 300.0, columns=("age",)), part(HIGH, 300.0, columns=("age", "sex"))]
    make(*parts).save(tmp_path / "out")
    head = json.loads((tmp_path / "out" / "release.json").read_text())
    change(head["metadata"])
    (tmp_path / "out" / "release.json").write_text(json.dumps(head))
    with pytest.raises(CorruptRelease):
        load(tmp_path / "out")


@pytest.mark.parametrize("combine", ["sum", "weighted"])
@pytest.mark.parametrize("size", [1e-320, 0.0, 0.5, -7.0, 1.0, 1e20])
@pytest.mark.parametrize("scale", [1e-20, 1.0, 1e20])
def test_the_numbers_of_a_stranger_that_are_taken_give_finite_answers(combine, size, scale):
    parts = [
        part(LOW, 50.0, columns=("age",)),
        replace(part(HIGH, 50.0, columns=("age",)), size=size, scale=scale, weight=1e20),
    ]
    for total in (None, 1e-320, 1e20, -1e20):
        whole = make(*parts, combine=combine, total=total)
        answer = whole.count("age < 50")
        told = [answer.value, answer.low, answer.high]
        assert np.isfinite([number for number in told if number is not None]).all()
        lows, highs = np.array([[0]]), np.array([[5]])
        assert np.isfinite(whole.count_boxes(["age"], lows, highs)).all()
        assert whole.rows(5, seed=1).num_rows == 5


def test_a_part_spends_no_more_than_its_levels_paid_and_hides_single_records():
    dear = part(LOW, 300.0, Fraction(50))
    with pytest.raises(InvalidParameter, match="spends more than any of its levels paid"):
        make(dear)
    with pytest.raises(InvalidParameter, match="spends more"):
        make(part(LOW, 300.0), receipt=receipt_of(amounts=((LOW, LOW / 2), (HIGH, HIGH))))
    both = replace(dear, levels=(LOW, HIGH), epsilon=HIGH, release=part(HIGH, 300.0).release)
    assert make(both).parts == (both,)
    one = part(HIGH, 300.0)
    for others in (AddRemoveUnit("household"), ReplaceRecord()):
        receipt = replace(one.release.receipt, neighbors=others)
        with pytest.raises(InvalidParameter, match="one record that is added or removed"):
            replace(one, release=replace(one.release, receipt=receipt))


def test_what_no_method_would_publish_is_refused():
    one = part(HIGH, 300.0)
    with pytest.raises(InvalidParameter, match="at least one part"):
        make()
    with pytest.raises(InvalidParameter, match="in common"):
        make(one, one)
    assert make(one, one, combine="weighted", total=300.0).people == 300
    assert make(one, one, combine="weighted").people is None
    with pytest.raises(InvalidParameter, match="what each level paid"):
        make(one, receipt=one.release.receipt)
    with pytest.raises(InvalidParameter, match="finite"):
        make(one, expected={"count_error": float("nan")})
    with pytest.raises(InvalidParameter, match="ordinary release"):
        Part((HIGH,), HIGH, 1.0, 1.0, None, make(one))


def test_weights_without_meaning_are_refused():
    one = part(HIGH, 300.0)
    with pytest.raises(InvalidParameter, match="units"):
        replace(one, units=0)
    with pytest.raises(InvalidParameter, match="number of people"):
        replace(one, units=10, size=None)
    with pytest.raises(InvalidParameter, match="all cells"):
        replace(part(HIGH, 300.0, columns=("age",), threshold=5), units=10)
    weighed = replace(one, units=10)
    with pytest.raises(InvalidParameter, match="number of people"):
        make(weighed, weighed, combine="weighted")  # the parts share people: how many is unknown


def test_a_release_guarantees_no_more_than_its_parts():
    honest = receipt_of()
    assert honest.stamps
    with pytest.raises(InvalidParameter, match="guarantee more"):
        make(part(HIGH, 300.0), receipt=replace(honest, stamps=()))


def test_the_neighbors_of_the_parts_stay_those_of_the_parts():
    whole = make(part(LOW, 300.0), part(HIGH, 300.0))
    assert isinstance(whole.receipt.neighbors, PersonalRecord)
    assert isinstance(whole.parts[0].release.receipt.neighbors, AddRemoveRecord)
    told = whole.summary()
    assert "level 0.1 (epsilon 0.1); level 1 (epsilon 1)" in told["parts"]
    assert "0.1 at level 0.1 and 1 at level 1" in told["cost"]
