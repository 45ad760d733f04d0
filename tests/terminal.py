"""Run the command on a pseudo-terminal, as a person would, and answer what it asks."""

import os
import pty
import re
import select
import subprocess
import sys
import time
from dataclasses import dataclass

_COLORS = re.compile(r"\x1b\[[0-9;]*m")
_PROMPT = re.compile(r"(^|\n)> [^\n]*$")
_PATIENCE = 120


@dataclass
class Talk:
    """What was shown, the exit code, and how many answers were taken."""

    shown: str
    code: int | None
    answers: int


class Terminal:
    """A command that runs on a terminal of its own."""

    def __init__(self, words, folder):
        ours, theirs = pty.openpty()
        self._ours = ours
        self.process = subprocess.Popen(
            [sys.executable, "-m", "dpublish", *map(str, words)],
            cwd=folder,
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
            start_new_session=True,
            env={**os.environ, "TERM": "xterm-256color", "COLUMNS": "120"},
        )
        os.close(theirs)
        self._shown = b""
        self._seen = 0

    @property
    def shown(self):
        return _COLORS.sub("", self._shown.decode(errors="replace").replace("\r", ""))

    def wait_for_prompt(self):
        """Read until the command waits for an answer; False if it has ended."""
        end = time.monotonic() + _PATIENCE
        while time.monotonic() < end:
            if select.select([self._ours], [], [], 0.1)[0]:
                try:
                    more = os.read(self._ours, 1 << 16)
                except OSError:  # the other side is closed
                    return False
                if not more:
                    return False
                self._shown += more
            elif _PROMPT.search(self.shown[self._seen :]):
                return True
        raise AssertionError(f"the command neither asks nor ends:\n{self.shown}")

    def answer(self, text):
        self._seen = len(self.shown)
        os.write(self._ours, f"{text}\n".encode())

    def close(self):
        code = self.process.wait(timeout=_PATIENCE)
        os.close(self._ours)
        return code


def talk(words, answers, folder):
    """Run the command and answer its prompts in turn; it must ask for as many as there are."""
    terminal = Terminal(words, folder)
    given = 0
    while terminal.wait_for_prompt():
        if given == len(answers):
            terminal.process.kill()
            terminal.close()
            raise AssertionError(f"one prompt more than answers:\n{terminal.shown}")
        terminal.answer(answers[given])
        given += 1
    done = Talk(terminal.shown, terminal.close(), given)
    assert given == len(answers), f"it ended after {given} answers:\n{done.shown}"
    return done
