"""The method on tables of all kinds, and settings that it refuses."""

import warnings
from fractions import Fraction

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import pytest

from dpublish.core.catalog import CATALOG
from dpublish.data.schema import Schema, column
from dpublish.errors import InputError, InvalidParameter, UnreadableData
from dpublish.methods.synth.synth import MOST_COLUMNS, Synth
from dpublish.privacy.budget import Budget
from dpublish.randomness import plain_generator, seeded
from methods.synth.synth_world import SCHEMA, make_rows, publish, shorten_fits

EMPTY = make_rows(3).slice(0, 0)
NOTE = "too few records for this epsilon to join columns"


def check(release, rows=50):
    """Check what every release offers, whatever it was made from."""
    drawn = release.rows(rows, seed=1)
    assert drawn.num_rows == rows
    assert tuple(drawn.column_names) == release.schema.names
    counted = release.count("")
    assert 0 <= counted.low <= counted.high
    for table in release.probabilities:
        assert np.all(np.isfinite(table))
    said = release.summary()
    assert str(len(release.marginals)) in said["published"]
    assert ("note" in said) == (not release.counted)
    return said


@pytest.mark.parametrize("epsilon", ["0.001", "1", "100"])
@pytest.mark.parametrize("number", [0, 1, 2, 400])
def test_any_number_of_rows_at_any_epsilon(epsilon, number):
    release = publish(make_rows(400).slice(0, number), epsilon)
    said = check(release)
    if epsilon == "0.001" or (epsilon == "1" and number < 400):
        assert NOTE in said["note"]
        assert "too small" in said["quality"]


def test_one_record_at_a_large_epsilon_is_the_rows():
    row = make_rows(400).filter(pa.array([True] + [False] * 399))
    release = publish(pa.concat_tables([row] * 300), "100")
    drawn = release.rows(200, seed=1).to_pandas()
    assert (drawn.job == row["job"][0].as_py()).mean() > 0.98
    assert (drawn.sex == row["sex"][0].as_py()).mean() > 0.98


def test_columns_depend_on_each_other_as_in_the_rows():
    """What the method is for: the model of all pairs is near the truth."""
    rows = make_rows(20_000)
    release = publish(rows, "5")
    true, drawn = rows.drop_null().to_pandas(), release.rows(20_000, seed=1).to_pandas()
    for names in (["sex", "job"], ["town", "job"], ["age", "town"], ["age", "job"]):
        one, other = (x.groupby(names).size() / len(x) for x in (true, drawn))
        assert one.sub(other, fill_value=0).abs().sum() / 2 < 0.12
    assert release.mean_distance().high < 0.1
    alone = publish(rows, "5", columns=("sex", "age"))
    assert alone.rows(10).num_columns == 2


def test_all_values_missing():
    schema = Schema(
        (
            column("a", "integer", bounds=[0, 3], missing="category"),
            column("b", "category", values=["x", "y"], missing="category"),
            column("c", "category", values=["p", "q"], missing="drop"),
        )
    )
    rows = pa.table(
        {
            "a": pa.array([None] * 900, pa.int64()),
            "b": pa.array([None] * 900, pa.string()),
            "c": pa.array(["p"] * 900, pa.string()),
        }
    )
    release = publish(rows, "10", schema=schema)
    check(release)
    drawn = release.rows(400, seed=1)
    assert drawn["a"].null_count > 390
    assert drawn["b"].null_count > 390
    dropped = rows.set_column(2, "c", pa.array([None] * 900, pa.string()))
    assert publish(dropped, "10", schema=schema).total < 60
    assert release.total > 800


@pytest.mark.parametrize("values", [["only"], ["only", "never"]])
def test_constant_columns_and_columns_of_one_value(values):
    schema = Schema(
        (
            column("a", "category", values=values),
            column("b", "integer", bounds=[5, 5]),
            column("c", "integer", bounds=[0, 9]),
        )
    )
    number = 2_000
    rows = pa.table({"a": ["only"] * number, "b": [5] * number, "c": np.arange(number) % 10})
    release = publish(rows, "8", schema=schema)
    check(release)
    drawn = release.rows(300, seed=1)
    assert set(drawn["b"].to_pylist()) == {5}
    assert drawn["a"].to_pylist().count("only") > 290
    assert release.mean_distance().low < 0.05


def test_one_column_is_its_marginal():
    release = publish(make_rows(2_000), "2", columns=("job",))
    check(release)
    assert release.quality is None
    assert "not measured" in release.summary()["quality"]
    true = make_rows(2_000)
    jobs = true["job"].to_pandas().value_counts(normalize=True)
    drawn = release.rows(20_000, seed=1)["job"].to_pandas().value_counts(normalize=True)
    assert jobs.sub(drawn, fill_value=0).abs().max() < 0.02


def test_two_columns_are_one_table():
    release = publish(make_rows(3_000), "6", columns=("job", "sex"))
    check(release)
    assert {table.columns for table in release.counted} == {(0, 1)}


def test_sixty_columns(monkeypatch):
    shorten_fits(monkeypatch, 5)
    rng = plain_generator(4)
    schema = Schema(tuple(column(f"c{i}", "integer", bounds=[0, 3]) for i in range(60)))
    first = rng.integers(0, 4, 2_000)
    rows = pa.table(
        {
            name: np.where(rng.random(2_000) < 0.5, first, rng.integers(0, 4, 2_000))
            for name in schema.names
        }
    )
    release = publish(rows, "2", schema=schema)
    check(release)
    assert release.counted
    assert release.quality.pairs == 60 * 59 // 2


@pytest.mark.parametrize("kind", ["integer", "category"])
def test_columns_of_5000_values(monkeypatch, kind):
    shorten_fits(monkeypatch, 10)
    given = (
        {"bounds": [0, 4_999]} if kind == "integer" else {"values": [f"v{i}" for i in range(5_000)]}
    )
    schema = Schema((column("many", kind, **given), SCHEMA["sex"], SCHEMA["job"]))
    rows = make_rows(3_000)
    codes = plain_generator(2).integers(0, 50, 3_000) * 100
    many = codes if kind == "integer" else np.char.add("v", codes.astype(str))
    release = publish(
        pa.table({"many": many, "sex": rows["sex"], "job": rows["job"]}), "6", schema=schema
    )
    check(release)
    assert max(release.tree.sizes) < 500
    assert len(set(release.rows(2_000, seed=1)["many"].to_pylist())) > 30


def test_the_same_seed_gives_the_same_release():
    one, again, other = (publish(make_rows(2_000), seed=seed) for seed in (1, 1, 2))
    assert one.tables() == again.tables()
    assert one.tables() != other.tables()


def test_no_warning_of_numbers_for_any_rows():
    """Warnings would tell of the rows; here they are errors anyway, but users' settings vary."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for number in (0, 1, 900):
            publish(make_rows(900).slice(0, number), "5").rows(20, seed=1, where="age < 4")
    assert caught == []


# --- Settings -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"target": ("height",)}, "height"),
        ({"columns": ("height",)}, "height"),
        ({"columns": ("sex", "sex")}, "sex"),
        ({"columns": ("sex", "age"), "target": ("job",)}, "job"),
        ({"quality_share": Fraction(1)}, "0 to 0.5"),
        ({"quality_share": Fraction(-1, 2)}, "0 to 0.5"),
        ({"quality_share": "much"}, "quality_share"),
        ({"target_weight": 0}, "target_weight"),
        ({"target_weight": 1_000}, "target_weight"),
        ({"prior": "/nowhere/prior.csv"}, "prior"),
        ({"prior": "/nowhere/prior.txt"}, "prior"),
    ],
)
def test_bad_settings_are_refused_before_anything_is_paid(settings, said):
    from dpublish.data.sources import open_table

    budget = Budget.seeded(1)
    with pytest.raises((InvalidParameter, InputError), match=said):
        Synth(**settings).release(open_table(make_rows(9), SCHEMA), budget=budget, rng=seeded(1))
    assert not budget.is_used


def test_priors_that_say_nothing_are_refused(tmp_path):
    path = tmp_path / "prior.parquet"
    for content, said in (
        ({"other": [1, 2], "sex": ["F", "M"]}, "fewer than two"),
        ({"sex": ["?"], "job": ["?"]}, "no row"),
    ):
        pyarrow.parquet.write_table(pa.table(content), path)
        with pytest.raises(InvalidParameter, match=said):
            publish(make_rows(9), prior=str(path))
    path.write_text("no parquet")
    with pytest.raises(UnreadableData, match="cannot be read"):
        publish(make_rows(9), prior=str(path))


def test_a_prior_that_was_written_anew_is_read_anew(tmp_path):
    path = tmp_path / "prior.csv"
    pyarrow.csv.write_csv(make_rows(3_000, seed=8).select(["town", "job"]), path)
    first = publish(make_rows(400), "3", prior=str(path))
    pyarrow.csv.write_csv(make_rows(10, seed=8).select(["sex", "pay"]), path)
    second = publish(make_rows(400), "3", prior=str(path))
    assert first.receipt.settings == second.receipt.settings
    assert first.tables() != second.tables()


def test_an_earlier_release_is_a_prior(tmp_path):
    publish(make_rows(6_000, seed=4), "5").save(tmp_path / "before")
    settings = {"prior": str(tmp_path / "before"), "quality_share": Fraction(1, 4)}
    after = publish(make_rows(900), "0.3", **settings)
    without = publish(make_rows(900), "0.3", quality_share=Fraction(1, 4))
    assert after.prior == "chosen"
    rows = make_rows(20_000, seed=3).drop_null().to_pandas()
    errors = []
    for release in (after, without):
        drawn = release.rows(20_000, seed=1).to_pandas()
        one, other = (x.groupby(["age", "job"]).size() / len(x) for x in (rows, drawn))
        errors.append(one.sub(other, fill_value=0).abs().sum() / 2)
    assert errors[0] < 0.7 * errors[1]


def test_too_many_columns_are_refused():
    schema = Schema(
        tuple(column(f"c{i}", "integer", bounds=[0, 1]) for i in range(MOST_COLUMNS + 1))
    )
    with pytest.raises(InvalidParameter, match="at most"):
        Synth().expected_error(schema, None, Fraction(1))


def test_an_epsilon_too_small_for_exact_noise_is_refused():
    with pytest.raises(InvalidParameter):
        Synth().expected_error(SCHEMA, None, Fraction(1, 10**14))


def test_expected_errors_tell_what_will_be_counted():
    few, many = (Synth().expected_error(SCHEMA, n, Fraction(2)) for n in (1, 20_000))
    assert few.figures["tables"] == 0
    assert "too few records" in few.summary
    assert many.figures["tables"] >= 4
    release = publish(make_rows(20_000), "2")
    # Choices that find nothing left to choose count no table.
    assert 0.6 * many.figures["tables"] <= len(release.counted) <= many.figures["tables"]
    widest = max(one.half_width(np.eye(one.leaves)[0], 0.95) for one in release.marginals)
    assert many.figures["one_value_95"] <= widest


def test_columns_that_follow_from_others_are_not_read():
    from methods.synth.synth_world import stated_schema

    schema = stated_schema()
    assert "double" not in Synth().reads(schema)
    assert set(Synth().reads(schema)) == set(SCHEMA.names)
    with pytest.raises(InvalidParameter, match="double"):
        Synth(target=("double",)).expected_error(schema, None, Fraction(1))
    assert "synth" in CATALOG
