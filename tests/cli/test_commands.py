"""The command does what its help says, for people and for programs."""

from fractions import Fraction

import pyarrow.parquet as pq
import pytest
from pyarrow import csv

from dpublish.cli.plan import epsilon_for
from dpublish.core.folder.folder import load
from dpublish.core.registry import make_method
from dpublish.data.schema_file import load_schema
from dpublish.data.sources import open_table
from dpublish.ledger.ledger import Ledger
from dpublish.privacy.neighbors import AddRemoveRecord, AddRemoveUnit
from dpublish.randomness import secure


def test_a_release_is_published_paid_for_and_used(release, run, workdir):
    done = release()
    assert done.code == 0, done.err
    assert "left for people: 1" in done.out
    for name in ("release.json", "datapackage.json", "report.html", "data/counts.parquet"):
        assert (workdir / "out" / name).is_file()
    published = load(workdir / "out")
    assert published.receipt.stamps == ()
    assert published.receipt.is_private

    answer = run("count", "out", "age in 30..39", "--confidence", "0.999999", "--json").json()
    assert answer["low"] <= 80 <= answer["high"]
    assert "confidence" in run("count", "out", "sex = Male").out

    assert run("rows", "out", "-n", "50", "-o", "rows.parquet").code == 0
    assert pq.read_table(workdir / "rows.parquet").num_rows == 50
    assert run("rows", "out", "-o", "rows.csv").code == 0
    assert csv.read_csv(workdir / "rows.csv").column_names == ["age", "sex"]
    assert run("rows", "out", "-n", "5", "-o", "rows.arrow").code == 0

    assert run("report", "out", "-o", "page.html").code == 0
    assert "What was guaranteed" in (workdir / "page.html").read_text()
    with Ledger(workdir / "books.db") as ledger:
        assert [g.state for g in ledger.status("people").grants] == ["published"]
    assert "the chain is whole" in run("ledger", "verify", "books.db", "--release", "out").out


def test_a_ranking_is_published(release, run):
    options = {"method": "topk", "columns": None, "column": "age", "count": "2"}
    done = release(output="top", **options, with_counts="true")
    assert done.code == 0, done.err
    assert "most frequent" in done.out
    assert run("count", "top", 'age = "30..39"').code in (0, 1)
    assert run("rows", "top", "-o", "x.csv").code == 1


def test_json_tells_programs_everything(release):
    answer = release(json=None, purpose="test").out  # without --json it is for people
    assert not answer.startswith("{")
    told = release(output="b", set="threshold=3")
    assert told.code == 0
    assert "noisy count at least 3" in told.out


def test_json_of_a_release(run, workdir):
    words = [
        "--method",
        "histogram",
        "--columns",
        "age",
        "--data",
        "people.csv",
        "--schema",
        "people.toml",
    ]
    words += [
        "--epsilon",
        "1/3",
        "--ledger",
        "books.db",
        "--dataset",
        "people",
        "-o",
        "j",
        "--json",
    ]
    told = run("release", *words).json()
    assert told["receipt"]["epsilon"] == "1/3"
    assert told["left"] == "5/3"
    assert told["kind"] == "histogram"


def test_the_plan_tells_cost_and_error_and_reads_no_data(run, workdir):
    (workdir / "people.csv").unlink()
    words = ["plan", "--method", "histogram", "--columns", "age", "--schema", "people.toml"]
    plans = run(*words, "--epsilon", "0.1,1", "--rows", "1000", "--json").json()
    assert [p["epsilon"] for p in plans] == ["0.1", "1"]
    assert plans[0]["expected_error"]["one_cell_95"] == 30
    told = run(*words, "--epsilon", "0.5").out
    assert "within" in told
    assert "  hidden: one record" in told
    assert run(*words).code == 1
    with Ledger(workdir / "books.db") as ledger:
        assert ledger.status("people").spent == 0


VISITS = """
unit = "patient"
[columns.ward]
kind = "category"
values = ["A", "B"]
"""


def test_a_plan_says_what_it_does_not_take(run, workdir):
    (workdir / "visits.toml").write_text(VISITS)
    words = ["plan", "--method", "histogram", "--columns", "ward", "--schema", "visits.toml"]
    words += ["--epsilon", "1"]
    assert "leave --data out" in run(*words, "--data", "visits.csv").err
    assert "must be an integer, or auto" in run(*words, "--contribution", "four").err


def test_the_plan_shows_what_a_bound_on_rows_trades(run, workdir):
    (workdir / "visits.toml").write_text(VISITS)
    words = ["plan", "--method", "histogram", "--columns", "ward", "--schema", "visits.toml"]
    words += ["--epsilon", "1"]
    told = run(*words, "--contribution", "4", "--rows-per-person", "4.5").out
    assert (
        "each count within 12 of the truth (95 %); at most 4 records of each person ('patient')"
        in told
    )
    lines = [line.split() for line in told.splitlines()]
    assert ["1", "3", "22", "%"] in lines
    assert ["8", "24", "87", "%"] in lines
    assert "geometric" in told
    assert "  hidden: all records of one person ('patient')" in told
    without = run(*words).out
    assert "one person ('patient') may have several records; choose how many of them" in without
    assert "  hidden: all records of one person ('patient')" in without
    assert ["16", "48"] in [line.split() for line in without.splitlines()]
    [plain] = run(*words, "--contribution", "2", "--json").json()
    assert [each["contribution"] for each in plain["contributions"]] == [1, 2, 4, 8, 16]
    assert {each["kept"] for each in plain["contributions"]} == {None}
    assert plain["hidden"] == "all records of one person ('patient')"
    assert "at most 64 records of each person ('patient'), the most that auto may choose" in (
        run(*words, "--contribution", "auto").out
    )
    assert "must be an integer, at least 1" in run(*words, "--contribution", "0").err
    assert (
        "records per person" in run(*words, "--contribution", "2", "--rows-per-person", "0.5").err
    )
    topk = ["plan", "--method", "topk", "--column", "ward", "--schema", "visits.toml"]
    assert "contribution" not in run(*topk, "--epsilon", "1").out


def test_a_release_hides_a_patient_with_several_rows(run, workdir):
    (workdir / "visits.toml").write_text(VISITS)
    (workdir / "visits.csv").write_text("patient,ward\n" + "1,A\n" * 5 + "2,B\n")
    words = ["--method", "histogram", "--columns", "ward", "--schema", "visits.toml"]
    words += ["--data", "visits.csv"]
    words += ["--epsilon", "0.5", "--ledger", "books.db", "--dataset", "people"]
    refused = run("release", *words, "-o", "out")
    assert "--contribution 4" in refused.err
    with Ledger(workdir / "books.db") as ledger:
        assert ledger.status("people").spent == 0
    told = run("release", *words, "--contribution", "2", "-o", "out", "--json").json()
    assert told["receipt"]["contribution"] == 2
    assert told["receipt"]["neighbors"] == {"name": "add-remove-unit", "column": "patient"}


@pytest.mark.parametrize("wanted", [1000.0, 20.0, 3.0])
def test_the_plan_finds_the_smallest_epsilon_for_a_wanted_error(workdir, wanted):
    schema = load_schema(workdir / "people.toml")
    method = make_method("histogram", {"columns": ("age",)})
    epsilon = epsilon_for(method, schema, None, wanted)
    assert method.expected_error(schema, None, epsilon).figures["one_cell_95"] <= wanted
    less = epsilon * Fraction(97, 100)
    assert method.expected_error(schema, None, less).figures["one_cell_95"] > wanted


def test_methods_are_listed_with_their_settings(run):
    listed = run("methods").out
    assert "histogram" in listed
    assert "topk" in listed
    assert {m["name"] for m in run("methods", "--task", "ranking", "--json").json()} == {"topk"}
    assert "--threshold" in run("methods", "histogram").out
    settings = run("methods", "topk", "--json").json()["settings"]
    assert {s["name"] for s in settings} >= {"column", "count", "with_counts"}
    assert run("methods", "histogran").code == 1
    told = run("methods", "zzz").err.strip()
    listed, _, more = told.partition("known: ")[2].rpartition(" and ")
    known = len(run("methods", "--json").json())
    assert more == f"{known - len(listed.split(', '))} more"


def test_what_was_learned_from_rows_is_stamped_in_json_too(run, workdir):
    told = run("schema", "check", "people.toml", "people.csv", "--json").json()
    assert told["stamp"].startswith("NOT PRIVATE")
    assert "stamp" not in run("schema", "check", "people.toml", "--json").json()


@pytest.mark.parametrize("command", [("release",), ("stream", "start")])
def test_the_help_says_that_a_purpose_is_published(run, workdir, release, command):
    done = release(purpose="ages for the board")
    assert done.code == 0, done.err
    assert "ages for the board" in (workdir / "out" / "release.json").read_text()
    words = " ".join(run(*command, "--help").out.split())
    assert "--purpose TEXT What it is for; published" in words


def test_a_schema_is_drafted_filled_in_and_checked(run, workdir):
    assert run("schema", "draft", "people.csv", "-o", "new.toml").code == 0
    draft = (workdir / "new.toml").read_text()
    assert "age" in draft
    assert "31" not in draft
    assert run("schema", "check", "new.toml", "people.csv").code == 0  # public facts suffice
    (workdir / "odd.csv").write_text("color,shape\nred,round\n")
    assert run("schema", "draft", "odd.csv", "-o", "odd.toml").code == 0
    unfinished = run("schema", "check", "odd.toml")
    assert unfinished.code == 1
    assert unfinished.out.count("values are missing") == 2
    assert unfinished.err.count("\n") == 1
    assert run("schema", "check", "people.toml").code == 0
    checked = run("schema", "check", "people.toml", "people.csv")
    assert checked.code == 0, checked.err
    assert "NOT PRIVATE" in checked.out
    assert "sex" in run("schema", "show", "people.toml").out


def test_a_table_that_does_not_fit_is_told_to_the_owner_without_a_value(run, workdir):
    (workdir / "people.csv").write_text("age,sex\n31,Female\n4711,Martian\n,Male\n")
    checked = run("schema", "check", "people.toml", "people.csv")
    assert checked.code == 1
    assert "age" in checked.out
    for secret in ("4711", "Martian"):
        assert secret not in checked.out + checked.err


def test_a_check_counts_what_is_clipped_missing_and_unlisted_and_rows_per_person(run, workdir):
    (workdir / "people.toml").write_text(
        'unit = "id"\n[columns.age]\nkind = "integer"\nbounds = [0, 99]\n'
        '[columns.sex]\nkind = "category"\nvalues = ["Female", "Male"]\nmissing = "drop"\n'
    )
    rows = "1,31,Female\n1,110,Male\n1,-1,Male\n2,,Female\n2,x,Male\n,5,Martian\n"
    (workdir / "people.csv").write_text(f"id,age,sex\n{rows}")
    told = run("schema", "check", "people.toml", "people.csv", "--json").json()
    assert (told["rows"], told["left_out"]) == (6, 3)
    age = {"missing": 1, "unreadable": 1, "below": 1, "above": 1, "not_whole": 0, "unlisted": 0}
    assert told["counts"]["age"] == {**age, "left_out": 2}
    assert told["counts"]["sex"]["unlisted"] == 1
    assert told["units"]["kept"] == [[1, 2], [2, 4], [3, 5]]
    shown = run("schema", "check", "people.toml", "people.csv").out
    assert "1 value (17 %) is above 99 and counts as 99" in shown
    assert 'write missing = "category" to count them apart' in shown
    assert "id: 1 record (17 %) is of no known person, and left out" in shown
    assert "3 records (50 %) are left out of a release that reads all columns" in shown


def test_the_ledger_is_shown_and_its_cap_changed_for_a_reason(release, run):
    assert release().code == 0
    shown = run("ledger", "show", "books.db", "--json").json()
    assert shown[0]["spent"] == "1"
    assert shown[0]["grants"][0]["state"] == "published"
    assert "people" in run("ledger", "show", "books.db", "people").out
    assert run("ledger", "cap", "books.db", "people", "5", "--reason", "new consent").code == 0
    assert run("ledger", "cap", "books.db", "people", "0.5", "--reason", "oops").code == 1


def test_epsilon_is_shown_in_decimals_and_exactly_on_request(release, run):
    done = release(epsilon="1/3")
    assert done.code == 0, done.err
    assert "spent: epsilon ≈0.3333; left for people: ≈1.667" in done.out
    shown = run("ledger", "show", "books.db").out
    assert "≈0.3333" in shown
    assert "1/3" not in shown
    assert "5/3" in run("ledger", "show", "books.db", "--exact").out
    assert run("ledger", "show", "books.db", "--json").json()[0]["left"] == "5/3"
    over = release(output="more", epsilon="7/3")
    assert over.code == 2
    assert "at most 1.66666666666" in over.err


def test_large_figures_of_a_plan_are_written_out(run, workdir):
    words = ("--method", "histogram", "--columns", "age", "--schema", "people.toml")
    shown = run("plan", *words, "--epsilon", "0.0001").out
    assert "one cell (95 %): 29,9" in shown
    assert "e+" not in shown


def test_a_forged_ledger_or_release_is_found_out(release, run, workdir):
    assert release().code == 0
    (workdir / "books.db").unlink()
    for leftover in workdir.glob("books.db-*"):
        leftover.unlink()
    assert run("ledger", "create", "books.db").code == 0
    assert run("ledger", "add", "books.db", "people", "--cap", "9").code == 0
    assert run("ledger", "verify", "books.db").code == 0
    assert run("ledger", "verify", "books.db", "--release", "out").code == 3


def test_a_release_whose_books_were_not_closed_can_be_entered_later(release, run, workdir):
    with Ledger(workdir / "books.db") as ledger:
        budget = ledger.grant(
            "people", epsilon="1", purpose="ages", hides=AddRemoveRecord(), rng=secure()
        )
    table = open_table(str(workdir / "people.csv"), load_schema(workdir / "people.toml"))
    method = make_method("histogram", {"columns": ("age",)})
    method.release(table, budget=budget, rng=secure()).save(workdir / "late")
    assert run("ledger", "verify", "books.db", "--release", "late").code == 3
    assert run("ledger", "record", "books.db", "late").code == 0
    assert run("ledger", "verify", "books.db", "--release", "late").code == 0
    again = run("ledger", "record", "books.db", "late")  # once only: an interrupted one repeats
    assert (again.code, "already" in again.out) == (0, True)
    with Ledger(workdir / "books.db") as ledger:
        assert [entry.kind for entry in ledger.entries()].count("publish") == 1


def test_experiments_are_listed_and_run(run, workdir):
    assert "svt-vs-em" in run("experiment").out
    assert run("experiment", "--json").json()[0]["name"] == "svt-vs-em"


def test_the_demo_tells_its_whole_story(run, workdir):
    done = run("demo", "story", "--patients", "500")
    assert done.code == 0, done.err
    assert (workdir / "story" / "by-ward" / "report.html").is_file()
    by_month = load(workdir / "story" / "by-month")
    assert by_month.receipt.neighbors == AddRemoveUnit("patient_id")
    assert by_month.count("admitted in 2024-01..2024-03").value > 0
    assert load(workdir / "story" / "synthetic").rows(5).num_rows == 5
    with Ledger(workdir / "story" / "books.db") as ledger:
        assert ledger.status("hospital").left == 0
    assert run("demo", "story").code == 1  # an earlier demo is not overwritten unasked
    (workdir / "mine").mkdir()
    assert run("demo", "mine", "--fresh").code == 1
    assert (workdir / "mine").is_dir()


def test_help_and_version_answer(run):
    assert "release" in run("--help").out
    assert "0." in run("--version").out
    for command in (
        "release",
        "plan",
        "rows",
        "count",
        "ledger",
        "schema",
        "experiment",
        "predict",
    ):
        assert run(command, "--help").code == 0


STATED = """
[columns.adult]
kind = "category"
values = ["yes", "no"]
function = "if(age >= 18, 'yes', 'no')"

[[impossible]]
where = "age < 20 and sex = Female"

[[totals]]
where = "sex = Female"
count = 3
source = "Census"
"""


def test_a_check_lists_what_is_stated_and_counts_what_contradicts_it(run, workdir):
    schema = workdir / "people.toml"
    schema.write_text(schema.read_text() + STATED)
    listed = run("schema", "check", "people.toml")
    assert listed.code == 0
    assert listed.out.splitlines()[1:] == [
        '  adult = if(age >= 18, "yes", "no")',
        "  impossible: age < 20 and sex = Female",
        "  known total: 3 records with sex = Female (Census)",
    ]
    (workdir / "people.csv").write_text("age,sex,adult\n31,Female,yes\n8,Female,no\n9,Male,yes\n")
    checked = run("schema", "check", "people.toml", "people.csv")
    assert checked.code == 1
    assert "adult: 1 record (33 %) contradicts what the schema states (adult = if(" in checked.out
    assert "1 record (33 %) contradicts what the schema states (impossible: age" in checked.out
    assert "(Census), but there are 2" in checked.out
    told = run("schema", "check", "people.toml", "people.csv", "--json").json()
    assert told["stated"] == [
        {"statement": 'adult = if(age >= 18, "yes", "no")', "contradicted": 1},
        {"statement": "impossible: age < 20 and sex = Female", "contradicted": 1},
        {"statement": "known total: 3 records with sex = Female (Census)", "counted": 2},
    ]
    assert run("schema", "check", "people.toml", "--json").json()["statements"] == [
        each["statement"] for each in told["stated"]
    ]


def test_a_draft_says_what_may_be_stated(run, workdir):
    assert run("schema", "draft", "people.csv", "-o", "new.toml").code == 0
    draft = (workdir / "new.toml").read_text()
    for key in ("# [[impossible]]", "# [[totals]]", "function ="):
        assert key in draft
