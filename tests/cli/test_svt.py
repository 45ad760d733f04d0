"""The command `svt`: start, ask, status and stop, in plain words and in JSON."""

import json

import pytest

from dpublish.ledger.ledger import Ledger

START = ("--data", "people.csv", "--schema", "people.toml", "--epsilon", "1", "--max-positives")
PAYER = ("--ledger", "books.db", "--dataset", "people")


@pytest.fixture
def started(run, workdir):
    words = (*START, "2", *PAYER, "--threshold", "100", "--numeric-share", "1/4")
    done = run("svt", "start", "wards", *words)
    assert done.code == 0, done.err
    return done


def test_a_start_says_what_it_costs_and_what_is_secret(run, started):
    assert "debited: epsilon 1, for all answers" in started.out
    assert "wards/state.db holds secrets; wards/public may be published" in started.out
    assert "standard deviation" in started.out
    words = (*START, "2", *PAYER, "--threshold", "100", "--numeric-share", "1/4")
    assert "was started already" in run("svt", "start", "wards", *words).out
    with Ledger("books.db") as ledger:
        assert ledger.status("people").spent == 1


def test_answers_are_told_recorded_and_told_again_for_free(run, started, workdir):
    below = run("svt", "ask", "wards", "age >= 90 and sex = Male", "--threshold", "5000")
    assert below.code == 0
    assert below.out.startswith("below: the count of age >= 90 and sex = Male against 5,000\n")
    above = run("svt", "ask", "wards", "", "--threshold", "-1000")
    assert above.code == 0
    assert "above: the count of all records against -1,000" in above.out
    assert "95 % confidence interval" in above.out
    assert "positives left: 1 of 2" in above.out
    assert run("svt", "ask", "wards", "", "--threshold", "-1000").out == above.out
    told = run("svt", "ask", "wards", "", "--threshold", "-1000", "--json").json()
    assert told["above"] is True
    assert told["answer"]["low"] <= told["value"] <= told["answer"]["high"]
    lines = (workdir / "wards" / "public" / "transcript.jsonl").read_text().splitlines()
    assert [json.loads(line)["above"] for line in lines] == [False, True]


def test_the_last_positive_ends_the_run_with_the_exit_code_of_a_spent_budget(run, started):
    for threshold in ("-1000", "-1001"):
        assert run("svt", "ask", "wards", "", "--threshold", threshold).code == 0
    done = run("svt", "ask", "wards", "age > 5")
    assert done.code == 2
    assert "2 queries were above" in done.err


def test_the_status_lists_what_was_above(run, started):
    run("svt", "ask", "wards", "sex = Male", "--threshold", "-1000")
    run("svt", "ask", "wards", "age > 50")
    status = run("svt", "status", "wards").out
    assert "svt on people, running: epsilon 1 for all answers" in status
    assert "above -1,000: sex = Male, noisy count" in status
    plain = run("svt", "status", "wards", "--json").json()
    assert plain["settings"]["numeric_share"] == "0.25"
    assert len(plain["outcomes"]) == 2
    assert "noise" not in json.dumps(plain)


def test_a_stopped_run_is_over(run, started):
    assert "for good" in run("svt", "stop", "wards").out
    done = run("svt", "ask", "wards", "age > 50")
    assert done.code == 1
    assert "stopped" in done.err
    assert "stopped" in run("svt", "status", "wards").out


def test_estimates_are_compared_where_they_are_paid_for(run, workdir):
    run("svt", "start", "errors", *START, "2", *PAYER, "--no-monotonic")
    done = run("svt", "ask", "errors", "sex = Male", "--estimate", "10000", "--threshold", "50")
    assert done.code == 0, done.err
    assert "above: its distance from 10,000 of sex = Male against 50" in done.out
    assert "errors of estimates" in run("svt", "status", "errors").out


def test_a_seed_is_for_trying_out_and_refused_with_a_ledger(run, workdir):
    done = run("svt", "start", "trial", *START, "2", "--seed", "3")
    assert done.code == 0, done.err
    assert "NOT PRIVATE" in done.out
    assert "NOT PRIVATE" in run("svt", "status", "trial").out
    receipt = json.loads((workdir / "trial" / "public" / "receipt.json").read_text())
    assert any("NOT PRIVATE" in stamp for stamp in receipt["stamps"])
    done = run("svt", "start", "other", *START, "2", *PAYER, "--seed", "3")
    assert done.code == 1
    assert "hides nothing" in done.err


@pytest.mark.parametrize(
    ("words", "told", "code"),
    [
        (("ask", "nowhere", "age > 5"), "dpublish svt start", 3),
        (("ask", "wards", "agee > 5"), "did you mean 'age'", 1),
        (("ask", "wards", "age > 5", "--estimate", "3"), "--no-monotonic", 1),
        (("ask", "wards", "age > 5", "--confidence", "2"), "between 0 and 1", 1),
        (("start", "other", *START, "2"), "--seed", 1),
        (("start", "other", *START, "2", *PAYER, "--numeric-share", "x"), "such as 1/3", 1),
        (("start", "other", *START, "0", *PAYER), "max_positives", 1),
        (("strat", "other"), "start", 1),
    ],
)
def test_mistakes_are_named_and_cost_nothing(run, started, words, told, code):
    done = run("svt", *words)
    assert done.code == code
    assert told in done.err
    with Ledger("books.db") as ledger:
        assert ledger.status("people").spent == 1


@pytest.mark.parametrize("folder", ["wards", "wards/public"])
@pytest.mark.parametrize("command", ["evaluate {} --against people.csv", "export {} --to csv"])
def test_a_run_that_is_named_as_a_release_is_called_what_it_is(run, started, folder, command):
    assert run("svt", "ask", "wards", "", "--threshold", "-1000").code == 0
    done = run(*command.format(folder).split())
    assert done.code == 3
    assert "is an interactive run and no release" in done.err
    assert "wards/public/transcript.jsonl" in done.err
    assert "dpublish svt status" in done.err
