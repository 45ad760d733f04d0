"""Help, suggestions and completion."""

import os
import shutil
import subprocess
import sys
from importlib.metadata import EntryPoint

import pytest
from click.testing import CliRunner

from dpublish.cli.group import complete_methods
from dpublish.cli.main import COMMANDS, command
from dpublish.core import plugins


def dpublish(*words, **environment):
    return subprocess.run(
        [sys.executable, "-m", "dpublish", *words],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, **environment},
    )


@pytest.mark.parametrize("group", [(), ("ledger",), ("schema",), ("stream",), ("key",)])
def test_a_group_without_a_command_prints_its_help(group):
    done = dpublish(*group)
    assert done.returncode == 0
    assert done.stderr == ""
    lines = done.stdout.splitlines()
    assert lines[0] == f"Usage: {' '.join(['dpublish', *group])} [OPTIONS] COMMAND [ARGS]..."
    assert "Commands:" in lines
    assert max(map(len, lines)) < 100
    assert not any(line.endswith("...") for line in lines[1:])  # every summary is whole


@pytest.mark.parametrize(
    ("words", "meant"),
    [
        (["relase"], "release"),
        (["ledger", "shwo"], "show"),
        (["stream", "strat"], "start"),
        (["schema", "chek"], "check"),
    ],
)
def test_a_mistyped_command_gets_a_suggestion(words, meant):
    done = dpublish(*words)
    assert done.returncode == 1
    assert f"did you mean {meant}" in done.stderr


RELEASE = ["--data", "x", "--schema", "x", "--ledger", "x", "--dataset", "x", "-o", "x"]


@pytest.mark.parametrize(
    ("words", "meant"),
    [
        (["release", "--metod", "histogram"], "did you mean --method?"),
        (["release", "--method", "histgram", *RELEASE], "did you mean 'histogram'?"),
        (["release", "--method", "histogram", "--colums=x", *RELEASE], "did you mean 'columns'?"),
        (["release", "--method", "histogram", "--epsilom", "1", *RELEASE], "mean --epsilon?"),
        (["plan", "--method", "kmeans", "--shema", "x"], "did you mean --schema?"),
        (["plan", "--method", "dsat", "--horizn", "9", "--schema", "x"], "mean 'horizon'?"),
        (["ledger", "show", "--jsn", "x"], "Did you mean '--json'?"),
        (["methods", "--task", "clusterin"], "did you mean 'clustering'?"),
        (["release", "--method", "dsat", *RELEASE], "dpublish stream start STATE --method dsat"),
    ],
)
def test_a_mistyped_option_method_or_setting_gets_a_suggestion(words, meant):
    done = dpublish(*words)
    assert done.returncode == 1
    assert meant in done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_a_setting_that_resembles_an_option_is_taken():
    words = ["--inner", "histogram columns=age", "--epsilon-column", "own", "--levels", "0.1,1"]
    done = dpublish("plan", "--method", "minimum", *words, "--schema", "absent.toml")
    assert "absent.toml" in done.stderr


def test_a_word_that_is_like_no_command_points_to_the_help():
    done = dpublish("xyzzy")
    assert done.returncode == 1
    assert "see: dpublish --help" in done.stderr


def complete(*words):
    done = dpublish(
        _DPUBLISH_COMPLETE="bash_complete",
        COMP_WORDS=" ".join(["dpublish", *words]),
        COMP_CWORD=str(len(words)),
    )
    return [line.partition(",")[2] for line in done.stdout.splitlines() if line]


def test_the_shell_completes_commands_methods_and_their_settings():
    assert complete("rel") == ["release"]
    assert set(complete("release", "--method", "privp")) == {"privpfc"}
    assert "--predictors" in complete("release", "--method", "privpfc", "--pre")
    assert complete("plan", "--method", "model", "--model", "l") == ["logistic", "linear"]
    assert "--horizon" in complete("stream", "start", "--method", "dsat", "--hor")
    assert complete("plan", "--method", "nonsense", "--pre") == []
    assert complete("methods", "topk") == ["topk"]


def test_methods_of_other_packages_are_completed(monkeypatch):
    point = EntryPoint("noisy-mean", "noisy_mean:NoisyMean", plugins.GROUP)
    monkeypatch.setattr(plugins, "entry_points", lambda group: [point])
    plugins.plugins.cache_clear()
    try:
        found = complete_methods(None, None, "noisy")
    finally:
        plugins.plugins.cache_clear()
    assert [item.value for item in found] == ["noisy-mean"]


@pytest.mark.parametrize("words", [("count",), ("release", "--data"), ("ledger", "show")])
def test_names_of_files_are_left_to_the_shell(words):
    done = dpublish(
        _DPUBLISH_COMPLETE="bash_complete",
        COMP_WORDS=" ".join(["dpublish", *words]),
        COMP_CWORD=str(len(words) + 1),
    )
    assert done.stdout == "file,\n"


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_scripts_are_printed(shell):
    shown = CliRunner().invoke(command, ["completion", shell])
    assert shown.exit_code == 0
    assert "_DPUBLISH_COMPLETE" in shown.output


@pytest.mark.skipif(shutil.which("bash") is None, reason="there is no bash")
def test_a_real_bash_completes_with_the_script(tmp_path):
    script = dpublish("completion", "bash").stdout
    (tmp_path / "dpublish").write_text(f'#!/bin/sh\nexec {sys.executable} -m dpublish "$@"\n')
    (tmp_path / "dpublish").chmod(0o755)
    words = ("dpublish", "release", "--method", "privpfc", "--pred")
    typed = f"COMP_WORDS=({' '.join(words)}); COMP_CWORD={len(words) - 1}"
    run = f'{script}\n{typed}; _dpublish_completion dpublish; echo "${{COMPREPLY[@]}}"'
    path = f"{tmp_path}:{os.environ['PATH']}"
    done = subprocess.run(
        ["bash", "-c", run],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PATH": path},
    )
    assert done.stdout == "--predictors\n", done.stderr


def test_every_command_has_help_and_says_what_it_does():
    for name, (_, text) in COMMANDS.items():
        shown = CliRunner().invoke(command, [name, "--help"])
        assert shown.exit_code == 0
        assert text
