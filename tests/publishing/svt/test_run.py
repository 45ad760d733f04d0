"""An interactive run: one debit, one noisy threshold, recorded answers, nothing told twice."""

import json
import shutil
import sqlite3
import stat
from dataclasses import replace
from fractions import Fraction

import pytest

from dpublish.errors import (
    BudgetExhausted,
    CorruptRelease,
    DPublishError,
    InputError,
    InvalidParameter,
)
from dpublish.ledger.ledger import Ledger
from dpublish.mechanisms.sparse_vector.stored import StoredVector
from dpublish.privacy.budget import Budget
from dpublish.publishing.svt import run as module
from dpublish.publishing.svt.outcome import SENSITIVITY, Outcome, canonical
from dpublish.publishing.svt.run import InteractiveRun
from dpublish.publishing.svt.state import RunFile
from svt_world import QUERIES, SCHEMA, THRESHOLD, count_from, make_world, start, write_table


@pytest.fixture
def world(tmp_path):
    make_world(tmp_path)
    return tmp_path


def told_anew(folder, queries=QUERIES, **named):
    """Ask each query in a run that is opened for it alone."""
    told = []
    for query in queries:
        with InteractiveRun.open(folder / "run") as run:
            if not run.positives_left:
                break
            told.append(run.ask(query, **named))
    return told


def by_hand(seed, *, monotonic=True, numeric_share=None, estimate=None):
    """The outcomes of a seeded run, straight from the stored vector and the true counts."""
    vector = StoredVector.draw(
        sensitivity=SENSITIVITY,
        max_positives=3,
        monotonic=monotonic,
        values_share=numeric_share,
        budget=Budget.seeded(1),
        rng=module._derived(seed, 0),
    )
    told = []
    for number, query in enumerate(QUERIES, start=1):
        if not vector.positives_left:
            break
        rng = module._derived(seed, number)
        count = count_from(int(query.split()[-1]))
        compared = count if estimate is None else abs(count - estimate)
        above, vector = vector.above(compared, THRESHOLD, rng)
        value = None if numeric_share is None else vector.value(count, rng)
        told.append((above, value if above else None, vector.positives_left))
    return told


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"numeric_share": Fraction(1, 3)},
        {"monotonic": False},
        {"monotonic": False, "estimate": 900},
    ],
)
def test_a_run_answers_as_the_stored_vector_does_after_any_number_of_restarts(world, settings):
    estimate = settings.pop("estimate", None)
    for seed in range(4):
        with start(world, seed=seed, **settings):
            pass
        told = told_anew(world, estimate=estimate)
        found = [(each.above, each.value, each.positives_left) for each in told]
        assert found == by_hand(seed, estimate=estimate, **settings)
        for path in (world / "run" / "public").iterdir():
            path.unlink()
        (world / "run" / "public").rmdir()
        (world / "run" / "state.db").unlink()


def test_a_threshold_that_is_drawn_anew_at_a_restart_would_be_noticed(world, monkeypatch):
    original = StoredVector.from_dict
    drawn = iter(range(500, 50_000, 700))

    def redrawn(plain):
        return replace(original(plain), threshold_noise=plain["threshold_noise"] + next(drawn))

    with start(world, seed=1, epsilon="0.01"):
        pass
    honest = [each.above for each in told_anew(world, threshold=2_000)]
    (world / "other").mkdir()
    make_world(world / "other")
    with start(world / "other", seed=1, epsilon="0.01"):
        pass
    monkeypatch.setattr(StoredVector, "from_dict", redrawn)
    assert [each.above for each in told_anew(world / "other", threshold=2_000)] != honest


def test_the_ledger_is_debited_once_for_all_answers(world):
    with start(world) as run:
        assert run.is_new
        for query in QUERIES:
            if run.positives_left:
                run.ask(query)
    with start(world) as again:
        assert not again.is_new
        assert again.receipt.epsilon == 1
        assert sum(share for _, share in again.receipt.shares) == 1
    with Ledger(world / "books.db") as ledger:
        assert ledger.verify().problems == ()
        status = ledger.status("visits")
    assert status.spent == 1
    assert [(grant.epsilon, grant.state) for grant in status.grants] == [(1, "published")]


@pytest.mark.parametrize(
    ("settings", "ratio"), [({}, 3 ** (2 / 3)), ({"monotonic": False}, 6 ** (2 / 3))]
)
def test_the_budget_is_split_as_is_best(world, settings, ratio):
    with start(world, **settings) as run:
        shares = {purpose.rpartition("/")[2]: share for purpose, share in run.receipt.shares}
    assert float(shares["answers"] / shares["threshold"]) == pytest.approx(ratio, rel=0.01)


def test_the_same_query_is_answered_from_the_transcript(world):
    with start(world, epsilon="0.01") as run:
        first = run.ask("age >= 65 and ward = north")
        write_table(world, extra=1)  # even though the table has changed
        for same in ("ward = north and age>=65", "age >= 65 and age >= 65 and ward = north"):
            assert run.ask(same) == first
        assert run.ask("age >= 65 and ward = north", threshold=THRESHOLD) == first
        assert len(run.outcomes) == 1
        with pytest.raises(InvalidParameter, match="table has changed"):
            run.ask("age >= 65 and ward = north", threshold=THRESHOLD + 1)
    assert canonical("") == ""


def test_a_table_that_changed_is_refused_and_nothing_is_told(world):
    with start(world) as run:
        run.ask("age >= 85")
    write_table(world, extra=1)
    with InteractiveRun.open(world / "run") as run:
        with pytest.raises(InvalidParameter, match="table has changed"):
            run.ask("age >= 80")
        assert len(run.outcomes) == 1
    write_table(world)
    with InteractiveRun.open(world / "run") as run:
        assert run.ask("age >= 80").number == 2


def test_a_table_that_changes_while_it_is_read_is_refused(world, monkeypatch):
    seen = iter(["same", "same", "other"])
    with start(world) as run:
        run._file.put(fingerprint="same")
        monkeypatch.setattr(module, "fingerprint", lambda _: next(seen))
        run.ask("age >= 85")
        with pytest.raises(InvalidParameter, match="table has changed"):
            run.ask("age >= 80")
        assert len(run.outcomes) == 1


def test_after_the_last_positive_nothing_more_is_answered(world):
    with start(world, max_positives=2, threshold=-(10**6)) as run:
        assert [run.ask(query).positives_left for query in QUERIES[:2]] == [1, 0]
        with pytest.raises(BudgetExhausted, match="2 queries were above"):
            run.ask(QUERIES[2])
        assert run.ask(QUERIES[0]).above  # told before
    with InteractiveRun.open(world / "run") as run, pytest.raises(BudgetExhausted):
        run.ask(QUERIES[2])


def test_negatives_are_free(world):
    with start(world, threshold=10**6) as run:
        told = [run.ask(f"age >= {age}") for age in range(20)]
        assert not any(each.above for each in told)
        assert run.positives_left == 3


def test_values_come_with_a_confidence_interval(world):
    with start(world, numeric_share=Fraction(1, 2), epsilon=4) as run:
        outcome = run.ask("age >= 10")
        answer = outcome.answer(run.calibration)
        assert answer.low <= outcome.value <= answer.high
        assert abs(outcome.value - count_from(10)) < 60
        assert outcome.answer(run.calibration, 0.5).high < answer.high
        assert run.ask("age >= 85").answer(run.calibration) is None


def test_errors_of_estimates_need_a_run_that_pays_for_them(world):
    with start(world) as run, pytest.raises(InvalidParameter, match="no-monotonic"):
        run.ask("age >= 60", estimate=900)


def test_a_run_that_was_stopped_forgets_its_secrets_and_answers_nothing_new(world):
    with start(world) as run:
        first = run.ask("age >= 85")
        noise = run._file.vector().threshold_noise
        run.stop()
        assert run.ask("age >= 85") == first
        with pytest.raises(InvalidParameter, match="stopped"):
            run.ask("age >= 80")
        assert run._file.metadata("vector") is None
        assert isinstance(noise, int)
    with pytest.raises(InvalidParameter, match="stopped"):
        start(world)


def test_no_public_file_and_no_message_holds_a_secret(world):
    with start(world, epsilon="0.0001") as run:
        noise = str(run._file.vector().threshold_noise)
        print_hash = run._file.text("fingerprint")
        run.ask("age >= 85")
        public = [path.read_text() for path in (world / "run" / "public").iterdir()]
        assert len(public) == 2
        for text in [*public, repr(run), repr(run._file.vector())]:
            assert print_hash not in text
            assert f": {noise}" not in text
    mode = stat.S_IMODE((world / "run" / "state.db").stat().st_mode)
    assert mode == 0o600
    assert stat.S_IMODE((world / "run").stat().st_mode) == 0o700


def test_files_show_no_time_at_which_a_query_was_answered(world):
    with start(world) as run:
        run.ask("age >= 85")
        shown = (world / "run" / "public" / "transcript.jsonl").stat().st_mtime
        assert shown == pytest.approx(module.file_time(run.receipt.created) + 1)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"seed": 3, "ledger": "books.db"}, "cannot be drawn from a seed"),
        ({"ledger": None, "dataset": None}, "--ledger, --dataset"),
        ({"max_positives": 0}, "max_positives"),
        ({"threshold": 1.5}, "integer"),
        ({"numeric_share": Fraction(1)}, "less than 1"),
        ({"numeric_share": 0.5}, "Fraction"),
        ({"epsilon": 0}, "epsilon"),
        ({"dataset": "others"}, "others"),
    ],
)
def test_what_is_wrong_with_a_start_costs_nothing(world, changes, words):
    given = {"ledger": world / "books.db", "dataset": "visits"} | changes
    with pytest.raises(DPublishError, match=words):
        start(world, **given)
    with Ledger(world / "books.db") as ledger:
        assert ledger.status("visits").spent == 0
    assert not (world / "run" / "state.db").exists()


def test_a_start_that_the_ledger_cannot_pay_leaves_no_run(world):
    with pytest.raises(BudgetExhausted):
        start(world, epsilon=6)
    with start(world, epsilon=5) as run:  # the folder may be used
        assert run.is_new


def test_units_with_several_rows_are_refused(world):
    schema = replace(SCHEMA, unit="ward", columns=SCHEMA.columns[:1])
    with pytest.raises(InvalidParameter, match="more than one"):
        InteractiveRun.start(
            world / "run", world / "visits.parquet", schema, epsilon=1, max_positives=1, seed=1
        )


def test_another_start_in_the_same_folder_is_refused(world):
    with start(world), pytest.raises(InputError, match="at work"):
        start(world)
    with pytest.raises(InvalidParameter, match="its settings differ"):
        start(world, max_positives=4)
    with pytest.raises(InvalidParameter, match="epsilon"):
        start(world, epsilon=2)
    (world / "full").mkdir()
    (world / "full" / "letter").write_text("in the way")
    with pytest.raises(InvalidParameter, match="exists already"):
        InteractiveRun.start(
            world / "full", world / "visits.parquet", SCHEMA, epsilon=1, max_positives=1, seed=1
        )


def test_a_moved_table_and_a_moved_ledger_are_found_again(world):
    with start(world):
        pass
    (world / "visits.parquet").rename(world / "moved.parquet")
    (world / "books.db").rename(world / "moved.db")
    with pytest.raises(DPublishError):
        InteractiveRun.open(world / "run")
    moved = {"ledger": world / "moved.db", "data": world / "moved.parquet"}
    with InteractiveRun.open(world / "run", **moved) as run:
        run.ask("age >= 85")
    with InteractiveRun.open(world / "run") as run:
        run.ask("age >= 80")


def test_an_older_copy_of_the_state_is_noticed(world):
    state = world / "run" / "state.db"
    with start(world) as run:
        run.ask("age >= 85")
    older = state.read_bytes()
    with InteractiveRun.open(world / "run") as run:
        run.ask("age >= 80")
    state.write_bytes(older)
    with pytest.raises(CorruptRelease, match="older copy"):
        InteractiveRun.open(world / "run")


def positives_of(run):
    """Ask until all that was paid for is spent; count what was above."""
    for query in QUERIES:
        if run.positives_left:
            run.ask(query, threshold=0)
    return sum(outcome.above for outcome in run.outcomes)


def test_a_state_set_back_to_its_start_is_refused_where_the_transcript_is_gone(world):
    """Or the noisy threshold would serve for as many positives again."""
    state = world / "run" / "state.db"
    with start(world):
        pass
    first = state.read_bytes()
    with InteractiveRun.open(world / "run") as run:
        assert positives_of(run) == 3
    state.write_bytes(first)
    (world / "run" / "public" / "transcript.jsonl").unlink()
    for take_up in (lambda: InteractiveRun.open(world / "run"), lambda: start(world)):
        with pytest.raises(CorruptRelease, match="gone; put it back"):
            take_up()
    shutil.rmtree(world / "run" / "public")
    with pytest.raises(CorruptRelease, match="gone; put it back"):
        InteractiveRun.open(world / "run")


def test_a_copy_of_the_state_in_another_folder_is_refused(world):
    with start(world):
        pass
    (world / "copy").mkdir()
    shutil.copy(world / "run" / "state.db", world / "copy" / "state.db")
    with pytest.raises(CorruptRelease, match="gone; put it back"):
        InteractiveRun.open(world / "copy")


def test_a_start_that_the_ledger_has_not_entered_yet_is_finished_without_a_transcript(
    world, monkeypatch
):
    def die(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(module, "record_stream", die)
    with pytest.raises(KeyboardInterrupt):
        start(world)
    monkeypatch.undo()
    path = world / "run" / "public" / "transcript.jsonl"
    path.unlink()
    with start(world) as run:
        assert path.read_bytes() == b""
        assert positives_of(run) == 3


def test_a_transcript_that_was_cut_is_completed_and_one_that_was_changed_is_refused(world):
    path = world / "run" / "public" / "transcript.jsonl"
    with start(world) as run:
        for query in QUERIES[:3]:
            run.ask(query, threshold=10**6)
    whole = path.read_bytes()
    path.write_bytes(whole[:30])
    with InteractiveRun.open(world / "run"):
        assert path.read_bytes() == whole
    path.write_bytes(whole.replace(b"false", b"true ", 1))
    with pytest.raises(CorruptRelease):
        InteractiveRun.open(world / "run")
    path.unlink()
    with pytest.raises(CorruptRelease, match="gone"):
        InteractiveRun.open(world / "run")


def test_another_grant_does_not_pay_for_a_copy_of_a_run(world):
    """Two runs that found the same grant: the ledger knows one of them only."""
    with start(world) as run:
        run.ask("age >= 85")
    file = RunFile(world / "run" / "state.db")
    receipt = file.metadata("receipt") | {"release_id": "0" * 32}
    file.put(receipt=receipt)
    file.close()
    (world / "run" / "public" / "receipt.json").unlink()
    with pytest.raises(InvalidParameter, match="another run"):
        InteractiveRun.open(world / "run")


HOSTILE = {
    "vector": [
        None,
        {},
        7,
        {"threshold_noise": 3},
        {"threshold_noise": "3"},
        {"positives_left": 99},
        {"answer_rate": "100"},
        {"threshold_noise": 1.5},
        {"threshold_noise": -(10**6)},
        {"value_rate": "1"},
    ],
    "terms": [None, {}, {"max_positives": -1}, {"monotonic": "yes", "odd": 1}],
    "schema": [None, {"columns": 3}],
    "phase": [None, "asleep", 3],
    "epsilon": ["-1", "much", 3],
    "seed": ["x"],
    "fingerprint": [None, 5],
    "receipt": [None, {}, "text"],
}


@pytest.mark.parametrize(
    ("name", "value"), [(name, value) for name, values in HOSTILE.items() for value in values]
)
def test_a_state_that_holds_something_else_is_refused_without_repeating_it(world, name, value):
    with start(world) as run:
        run.ask("age >= 85", threshold=10**6)
        before = run._file.metadata(name)
    if name == "vector" and isinstance(value, dict) and value:
        value = before | value
        if value["threshold_noise"] == 3:
            value = before | {"answer_rate": "1"}
    file = RunFile(world / "run" / "state.db")
    file.put(**{name: value})
    file.close()
    with pytest.raises(DPublishError) as refused, InteractiveRun.open(world / "run") as run:
        run.ask("age >= 80")
    text = str(refused.value)
    assert "threshold_noise" not in text
    assert len((world / "run" / "public" / "transcript.jsonl").read_bytes().splitlines()) == 1


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE outcomes SET line = x'00'",
        "UPDATE outcomes SET number = 7",
        "DELETE FROM outcomes",
        "DROP TABLE outcomes",
        "DELETE FROM metadata",
    ],
)
def test_lines_that_were_tampered_with_are_refused(world, statement):
    with start(world) as run:
        run.ask("age >= 85", threshold=-(10**6))
    with sqlite3.connect(world / "run" / "state.db") as connection:
        connection.execute(statement)
    connection.close()
    with pytest.raises(DPublishError), InteractiveRun.open(world / "run") as run:
        run.ask("age >= 80")


def test_a_line_reads_back_as_it_was_written():
    outcome = Outcome(
        number=3,
        query='ward = "a \\"b\\""',
        threshold=-5,
        estimate=7,
        above=True,
        value=12,
        positives_left=0,
    )
    assert Outcome.from_line(outcome.to_line()) == outcome
    assert json.loads(outcome.to_line())["estimate"] == 7


def test_two_processes_that_hold_no_lock_do_not_answer_twice(world, monkeypatch):
    """Where locks do not work, the second to commit is refused."""
    with start(world) as first:
        monkeypatch.setattr(module, "_hold", lambda folder: first._lock)
        second = InteractiveRun.open(world / "run")
        vector = second._file.vector()
        told = first.ask("age >= 85", threshold=10**6)
        with pytest.raises(InputError, match="moved"):
            second._file.commit(vector, told)
        second._file.close()
