"""Experiments: known by their settings, kept as they come, finished where they stopped."""

import json
from dataclasses import replace

import pytest

from dpublish.errors import InputError, InvalidParameter, UnreadableData
from dpublish.experiments import trials as module
from dpublish.experiments.study import run_experiment
from dpublish.experiments.trials import Trial, run_trials

TRIALS = tuple(
    Trial("demo", method, epsilon, seed, {"count": 3})
    for seed in range(2)
    for epsilon in ("0.1", "0.5")
    for method in ("good", "bad")
)


class Runner:
    """Runs trials, remembers which, and may break down."""

    def __init__(self, breaks_at=None):
        self.seen, self.breaks_at = [], breaks_at

    def run_trial(self, trial):
        if len(self.seen) == self.breaks_at:
            raise KeyboardInterrupt
        self.seen.append(trial.key)
        return {"error": float(trial.rng().words(1)[0])}


def test_a_trial_is_known_by_every_one_of_its_settings():
    trial = TRIALS[0]
    changed = [
        replace(trial, experiment="other"),
        replace(trial, method="bad"),
        replace(trial, epsilon="0.10"),
        replace(trial, seed=7),
        replace(trial, setting={"count": 4}),
        replace(trial, setting={"size": 3}),
    ]
    assert len({one.key for one in [trial, *changed]}) == 7
    assert replace(trial, setting={"count": 3}).key == trial.key
    draws = {int(one.rng().words(1)[0]) for one in [trial, *changed]}
    assert len(draws) == 7


def test_every_line_says_what_was_run_and_that_it_is_not_private(tmp_path):
    path = tmp_path / "demo.jsonl"
    run_trials(TRIALS, Runner().run_trial, path)
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    assert [line["key"] for line in lines] == [trial.key for trial in TRIALS]
    for line, trial in zip(lines, TRIALS, strict=True):
        assert line["stamp"].startswith("NOT PRIVATE")
        assert (line["method"], line["setting"]) == (trial.method, {"count": 3})


def test_an_interrupted_run_is_finished_and_not_begun_again(tmp_path):
    path = tmp_path / "demo.jsonl"
    broken = Runner(breaks_at=5)
    with pytest.raises(KeyboardInterrupt):
        run_trials(TRIALS, broken.run_trial, path)
    again = Runner()
    results = run_trials(TRIALS, again.run_trial, path)
    assert broken.seen + again.seen == [trial.key for trial in TRIALS]
    assert results == run_trials(TRIALS, Runner(breaks_at=0).run_trial, path)
    assert results == run_trials(TRIALS, Runner().run_trial, tmp_path / "undisturbed.jsonl")


@pytest.mark.parametrize("torn", [b'{"key": "ab', b"x", b'{"key": "ab"}'])
def test_a_line_that_was_half_written_is_dropped(tmp_path, torn):
    path = tmp_path / "demo.jsonl"
    run_trials(TRIALS, Runner().run_trial, path)
    whole = path.read_bytes()
    half = b"".join(whole.splitlines(keepends=True)[:3])
    path.write_bytes(half + torn)
    again = Runner()
    run_trials(TRIALS, again.run_trial, path)
    assert len(again.seen) == len(TRIALS) - 3
    assert path.read_bytes().startswith(half)
    assert untimed(path.read_bytes()) == untimed(whole)


def untimed(lines):
    """Results without the time that each trial took, which is never the same."""
    found = [json.loads(line) for line in lines.splitlines()]
    return [record | {"processor_seconds": 0} for record in found]


@pytest.mark.parametrize("line", ["not json", '{"figures": {}}', "[1]", ""])
def test_a_whole_line_that_is_no_result_is_an_error(tmp_path, line):
    path = tmp_path / "demo.jsonl"
    path.write_text(line + "\n")
    with pytest.raises(UnreadableData, match="line 1"):
        run_trials(TRIALS, Runner().run_trial, path)


def test_results_of_another_version_are_not_mixed_in(tmp_path, monkeypatch):
    path = tmp_path / "demo.jsonl"
    monkeypatch.setattr(module, "_package_version", lambda: "0.0.0")
    run_trials(TRIALS, Runner().run_trial, path)
    monkeypatch.undo()
    again = Runner()
    run_trials(TRIALS, again.run_trial, path)
    assert len(again.seen) == len(TRIALS)


def test_progress_counts_what_was_done_before(tmp_path):
    path, calls = tmp_path / "demo.jsonl", []
    run_trials(TRIALS[:3], Runner().run_trial, path)
    run_trials(TRIALS, Runner().run_trial, path, lambda *call: calls.append(call))
    assert [done for done, _, _ in calls] == [3, 4, 5, 6, 7, 8]
    assert {total for _, total, _ in calls} == {8}
    assert calls[0][2] == "bad, epsilon 0.5"


@pytest.mark.parametrize(
    ("name", "options", "word"),
    [
        ("svt-vs-me", {}, "svt-vs-em"),
        ("svt-vs-em", {"value": [3]}, "values"),
        ("svt-vs-em", {"repeats": 0}, "repeats"),
        ("svt-vs-em", {"methods": ["one-shoot"]}, "one-shot"),
    ],
)
def test_unknown_names_are_refused_with_a_hint(tmp_path, name, options, word):
    with pytest.raises(InvalidParameter, match=word):
        run_experiment(name, output=tmp_path / "results", **options)
    assert not (tmp_path / "results").exists()


def test_a_folder_that_cannot_be_written_is_an_input_error(tmp_path):
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(InputError, match="cannot write"):
        run_experiment("svt-vs-em", repeats=1, output=tmp_path / "file")
