"""Help, suggestions and completion."""

import os
import subprocess
import sys

import pytest
from click.testing import CliRunner

from dpublish.cli.main import _COMMANDS, command


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
    assert "--horizon" in complete("stream", "start", "--method", "dsat", "--hor")
    assert complete("plan", "--method", "nonsense", "--pre") == []
    assert complete("methods", "topk") == ["topk"]


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_scripts_are_printed(shell):
    shown = CliRunner().invoke(command, ["completion", shell])
    assert shown.exit_code == 0
    assert "_DPUBLISH_COMPLETE" in shown.output


def test_every_command_has_help_and_says_what_it_does():
    for name, (_, text) in _COMMANDS.items():
        shown = CliRunner().invoke(command, [name, "--help"])
        assert shown.exit_code == 0
        assert text
