"""The command publishes and plans under levels: `--epsilon-column`, `--levels`, `--compare`."""

from dataclasses import dataclass
from fractions import Fraction

import pyarrow as pa
import pytest
from pyarrow import csv

from dpublish.cli.level_use import epsilon_left
from dpublish.core.folder.folder import load
from dpublish.core.registry import make_method
from dpublish.ledger.account import LevelStatus, Status
from dpublish.ledger.ledger import Ledger
from dpublish.methods.personalized.minimum import Minimum

INNER = ("--inner", "histogram columns=age", "--levels", "0.01,0.1,1")
SIZES = ("--sizes", "500,3500,6000")


@pytest.fixture
def leveled(workdir):
    rows = csv.read_csv(workdir / "people.csv")
    own = pa.array([0.02, 0.1, 0.5, 1.0, 0.001] * 40)
    csv.write_csv(rows.append_column("accepted", own), workdir / "people.csv")
    with Ledger(workdir / "books.db") as ledger:
        ledger.add("staff", levels=("0.01", "0.1", "1"))
    return workdir


@pytest.fixture
def publish(run, leveled):
    def call(*words, method="minimum", output="out", column="--epsilon-column", dataset="staff"):
        files = ("--data", "people.csv", "--schema", "people.toml", "--ledger", "books.db")
        where = ("--dataset", dataset, "-o", output)
        return run(
            "release", "--method", method, *INNER, column, "accepted", *files, *where, *words
        )

    return call


def left(workdir):
    with Ledger(workdir / "books.db") as ledger:
        return [each.left for each in ledger.status("staff").levels]


def test_a_personalized_release_is_published_shown_and_asked(publish, run, leveled):
    done = publish("--epsilon", "0.5")
    assert done.code == 0, done.err
    assert "spent: up to epsilon 0.005, by level" in done.out
    assert left(leveled) == [Fraction(1, 200), Fraction(19, 200), Fraction(199, 200)]
    [row] = [line for line in done.out.splitlines() if line.startswith("0.01")]
    assert row.split() == ["0.01", "0.005", "0.005", "#" * 10 + "." * 10]
    assert load(leveled / "out").receipt.is_private
    assert run("count", "out", "age < 50").code == 0
    assert run("rows", "out", "-n", "5", "-o", "rows.csv").code == 0
    assert "levels" in run("ledger", "show", "books.db", "staff", "--json").json()[0]
    assert run("ledger", "verify", "books.db", "--release", "out").code == 0


def test_without_epsilon_all_that_the_levels_have_left_is_spent(publish, leveled):
    assert publish("--epsilon", "0.5").code == 0
    told = publish("--json", method="sampling", output="b", column="--preference").json()
    assert told["receipt"]["personal"] == [["0.01", "0.005"], ["0.1", "0.05"], ["1", "0.5"]]
    assert told["levels"][0] == {"level": "0.01", "spent": "0.01", "left": "0"}
    over = publish(output="c")
    assert over.code == 2
    assert "nothing left" in over.err


def test_what_cannot_be_is_refused_in_words(publish, run, leveled):
    assert "no levels" in publish("--epsilon", "0.5", dataset="people").err
    assert "same --levels" in publish(dataset="people").err
    assert "given twice" in publish("--preference", "age").err
    words = ("--columns", "age", "--data", "people.csv", "--schema", "people.toml")
    where = ("--ledger", "books.db", "--dataset", "people", "-o", "x")
    plain = run("release", "--method", "histogram", *words, *where)
    assert plain.code == 1
    assert "--epsilon" in plain.err
    assert left(leveled) == [Fraction(1, 100), Fraction(1, 10), 1]


def test_an_ordinary_release_from_people_with_levels_needs_the_owners_word(run, leveled):
    words = ("--columns", "age", "--data", "people.csv", "--schema", "people.toml")
    where = ("--ledger", "books.db", "--epsilon", "0.001")
    release = ("release", "--method", "histogram", *words, *where)
    refused = run(*release, "--dataset", "staff", "-o", "a")
    assert refused.code == 1
    assert "below the first level (0.01)" in refused.err
    assert "--all-have-levels" in refused.err
    assert left(leveled) == [Fraction(1, 100), Fraction(1, 10), 1]
    assert not (leveled / "a").exists()
    done = run(*release, "--dataset", "staff", "-o", "a", "--all-have-levels")
    assert done.code == 0, done.err
    assert left(leveled)[0] == Fraction(9, 1000)
    needless = run(*release, "--dataset", "people", "-o", "b", "--all-have-levels")
    assert needless.code == 1
    assert "leave it out here" in needless.err


def test_a_personalized_release_needs_no_such_word(publish):
    refused = publish("--epsilon", "0.5", "--all-have-levels")
    assert refused.code == 1
    assert "leaves records without a level out by itself" in refused.err
    assert publish("--epsilon", "0.5").code == 0


def test_settings_may_be_zero_on_the_command_line(publish):
    words = (
        "--epsilon",
        "0.1",
        "--exchangeable",
        "true",
        "--person-variance",
        "0",
        "--size-share",
        "0.0",
    )
    told = publish(*words, "--json", method="t-round").json()
    settings = told["receipt"]["settings"]
    assert (settings["person_variance"], settings["size_share"]) == ("0", "0")


def test_the_plan_tells_what_each_level_pays(run, leveled):
    words = ("plan", "--method", "sampling", *INNER, "--epsilon-column", "accepted")
    [told] = run(*words, "--schema", "people.toml", "--json").json()
    assert told["epsilon"] == "1"
    assert told["levels"][1] == {"level": "0.1", "pays": "0.1"}
    shown = run(*words, "--schema", "people.toml", "--epsilon", "0.5").out
    assert "#" * 10 + "." * 10 in shown
    assert "--schema" in run(*words).err
    wanted = run(*words, "--schema", "people.toml", "--wanted-error", "4", "--json").json()[0]
    assert Fraction(wanted["epsilon"]) <= 1
    assert wanted["expected_error"]["one_cell_95"] <= 4
    none = run(*words, "--schema", "people.toml", "--wanted-error", "0.5")
    assert none.code == 1
    assert "no epsilon up to 1 " in none.err


def test_methods_are_compared_before_anything_is_spent(run, leveled):
    words = ("plan", "--method", "partitioning", *INNER, *SIZES, "--compare")
    shown = run(*words)
    assert shown.code == 0, shown.err
    rows = {line.split("  ")[0]: line for line in shown.out.splitlines()}
    for method in ("minimum", "threshold 0.1", "sampling 1", "partitioning, weighted", "t-round"):
        assert method in rows
    assert "141.4" in rows["minimum"]
    assert "levels say nothing about records" in rows["t-round"]
    told = run(*words, "--json").json()
    errors = {each["method"]: each["count_error"] for each in told["methods"]}
    assert errors["partitioning, weighted"] < errors["minimum"] / 3
    assert told["methods"][0]["share_error"] == pytest.approx(errors["minimum"] / 10_000)
    assert [each["pays"] for each in told["levels"]] == ["0.01", "0.01", "0.01"]
    half = run(*words, "--epsilon", "0.5", "--json").json()
    assert half["methods"][0]["count_error"] == pytest.approx(2 * errors["minimum"], rel=1e-3)
    assert left(leveled) == [Fraction(1, 100), Fraction(1, 10), 1]


def test_a_comparison_needs_levels_and_sizes(run, workdir):
    assert "--sizes" in run("plan", "--method", "minimum", *INNER, "--compare").err
    plain = run("plan", "--method", "histogram", "--columns", "age", "--compare")
    assert plain.code == 1
    assert "personalized" in plain.err


@dataclass(frozen=True, kw_only=True)
class Fickle(Minimum):
    """Spends at the largest level only, unless it may not spend all there is."""

    def row_spending(self, epsilon):
        shares = self.preferences.amounts(epsilon)
        top = self.levels[-1]
        return {e: a if e == top or epsilon < top else Fraction(0) for e, a in shares.items()}


@pytest.mark.parametrize(
    ("spent", "wanted"), [(("0", "0"), "1"), (("0.01", "0.5"), "0.5"), (("0.08", "0.5"), "0.2")]
)
def test_what_is_left_is_never_more_than_every_level_can_pay(spent, wanted):
    inner = make_method("histogram", {"columns": ("age",)})
    levels = (Fraction(1, 10), Fraction(1))
    method = Fickle(inner=inner, preference="own", levels=levels)
    state = tuple(LevelStatus(e, Fraction(s)) for e, s in zip(levels, spent, strict=True))
    found = epsilon_left(method, Status("people", levels[-1], state[-1].spent, (), state))
    assert found == Fraction(wanted)


def test_a_refusal_says_what_the_method_may_be_asked_for(run, tmp_path):
    """All levels pay alike for `minimum`, so --epsilon is a hundred times what each pays."""
    (tmp_path / "p.toml").write_text('[columns.sex]\nkind = "category"\nvalues = ["F", "M"]\n')
    (tmp_path / "p.csv").write_text("sex,own\nF,0.01\nM,1\n")
    assert run("ledger", "create", "b.db").code == 0
    assert run("ledger", "add", "b.db", "people", "--levels", "0.01,1").code == 0
    asked = ["release", "--method", "minimum", "--inner", "histogram columns=sex"]
    asked += ["--epsilon-column", "own", "--levels", "0.01,1", "--data", "p.csv"]
    asked += ["--schema", "p.toml", "--ledger", "b.db", "--dataset", "people"]
    assert run(*asked, "--epsilon", "0.9", "-o", "one").code == 0
    refused = run(*asked, "--epsilon", "0.5", "-o", "two")
    assert refused.code == 2
    assert "--epsilon 0.1 at most" in refused.err
    assert run(*asked, "--epsilon", "0.1", "-o", "two").code == 0


# --- People with several rows ---------------------------------------------------------------------


@pytest.fixture
def visits(leveled):
    """Two hundred visits of fifty people; one of ten of them wrote another number once."""
    rows = csv.read_csv(leveled / "people.csv").drop_columns(["accepted"])
    people = [number % 50 for number in range(200)]
    own = [0.01 if number < 5 else 1.0 for number in range(200)]
    rows = rows.append_column("who", pa.array(people)).append_column("accepted", pa.array(own))
    csv.write_csv(rows, leveled / "people.csv")
    text = (leveled / "people.toml").read_text()
    (leveled / "people.toml").write_text(f'unit = "who"\n{text}')
    return leveled


EACH = ("--contribution", "2")


@pytest.mark.parametrize("by", ["accepted", "age"])
@pytest.mark.parametrize(
    ("method", "words", "paid"),
    [
        ("minimum", (), ("0.005", "0.005", "0.005")),
        ("threshold", ("--threshold", "0.1"), ("0", "0.05", "0.05")),
        ("sampling", (), ("0.005", "0.05", "0.5")),
        ("partitioning", (), ("0.005", "0.005", "0.005")),
        ("t-round", ("--exchangeable", "true"), ("0.005", "0.05", "0.5")),
    ],
)
def test_people_with_several_rows_are_hidden_at_what_their_level_pays(
    run, visits, method, words, paid, by
):
    rule = ("--rule", "..29=0.01, 30..59=1, *=0.1", "--derived", "true") if by == "age" else ()
    asked = ("release", "--method", method, *INNER, "--epsilon-column", by, *rule, *words, *EACH)
    files = ("--data", "people.csv", "--schema", "people.toml", "--ledger", "books.db")
    rest = ("--dataset", "staff", "-o", "out", "--epsilon", "0.5", "--json")
    done = run(*asked, *files, *rest)
    assert done.code == 0, done.err
    told = done.json()["receipt"]
    assert told["personal"] == [["0.01", paid[0]], ["0.1", paid[1]], ["1", paid[2]]]
    assert (told["contribution"], told["neighbors"]["unit"]) == (2, "who")
    assert told["settings"]["preference"] == by
    receipt = load(visits / "out").receipt
    assert "all records of any one person ('who'), at the smallest level" in receipt.guarantee()
    assert run("ledger", "verify", "books.db", "--release", "out").code == 0
    shown = run("ledger", "show", "books.db", "staff").out
    assert "all records of one person ('who')" in shown
    assert "all records of any one person" in (visits / "out" / "report.html").read_text()


def test_ordinary_releases_that_hide_the_same_people_are_added_to_them(run, publish, visits):
    assert publish(*EACH, "--epsilon", "0.5").code == 0
    files = ("--data", "people.csv", "--schema", "people.toml", "--ledger", "books.db")
    plain = ("release", "--method", "histogram", "--columns", "age", *files, "--dataset", "staff")
    done = run(*plain, *EACH, "--epsilon", "0.001", "--all-have-levels", "-o", "plain")
    assert done.code == 0, done.err
    assert left(visits)[0] == Fraction("0.004")
    assert run("ledger", "verify", "books.db").code == 0


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ((), "--contribution"),
        (("--contribution", "0"), "contribution"),
        (("--contribution", "auto"), "--contribution 4"),
        (("--contribution", "two"), "contribution"),
        ((*EACH, "--mode", "values-only"), "how many records a person has"),
    ],
)
def test_what_people_with_several_rows_do_not_allow_costs_nothing(publish, visits, words, says):
    done = publish(*words, "--epsilon", "0.5")
    assert done.code == 1
    assert says in done.err
    assert left(visits) == [Fraction(1, 100), Fraction(1, 10), 1]
    assert not (visits / "out").exists()


def test_a_bound_needs_people_whose_rows_it_bounds(publish, leveled):
    done = publish(*EACH, "--epsilon", "0.5")
    assert (done.code, "unit" in done.err) == (1, True)
    assert left(leveled) == [Fraction(1, 100), Fraction(1, 10), 1]


def test_the_plan_shows_that_noise_grows_with_the_rows_that_are_kept(run, visits):
    asked = ("plan", "--method", "minimum", *INNER, "--epsilon-column", "accepted")
    rest = ("--schema", "people.toml", "--epsilon", "0.5", "--json")
    widths = []
    for most in ("1", "4"):
        [told] = run(*asked, *rest, "--contribution", most).json()
        widths.append(told["expected_error"]["one_cell_95"])
        assert told["levels"][0]["pays"] == "0.005"
    assert widths[1] > 3.8 * widths[0]
    compared = run(*asked, *SIZES, *EACH, "--compare")
    assert (compared.code, "leave --contribution out" in compared.err) == (1, True)
