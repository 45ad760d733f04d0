"""Run a few lines on a ledger in a process of their own."""

import subprocess
import sys
import textwrap

PREAMBLE = """
import os, sys
from dpublish.errors import LedgerUnavailable
from dpublish.ledger.ledger import Ledger
from dpublish.privacy.neighbors import AddRemoveRecord
from dpublish.randomness import secure
def grant(ledger):
    asked = {"epsilon": "0.1", "purpose": "ages", "hides": AddRemoveRecord(), "rng": secure()}
    return ledger.grant("census", **asked)
path = sys.argv[1]
"""


def run_script(script, path):
    """Run `script`, in which `path` and `grant` are known, and return the lines it prints."""
    done = subprocess.run(
        [sys.executable, "-c", PREAMBLE + textwrap.dedent(script), str(path)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def start_script(script, path):
    """Start `script`, which can be spoken to while it runs."""
    return subprocess.Popen(
        [sys.executable, "-c", PREAMBLE + textwrap.dedent(script), str(path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
