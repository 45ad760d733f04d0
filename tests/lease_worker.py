"""An operator in a process of its own, which a test holds up in the middle of a step.

Run as a script: the state's address.  It says `reading` when it has begun to read the snapshot of
the second step, goes on when it is told so, and says what came of it.
"""

import sys

from dpublish.data.sources import open_table
from dpublish.errors import DPublishError
from dpublish.publishing.streams.operator import StreamOperator
from stream_world import SCHEMA, rows


class HeldUp:
    """A table that waits, in the middle of the step that reads it, until it is told to go on."""

    schema = SCHEMA

    def __init__(self, number, wait):
        self._table = open_table(rows(number), SCHEMA)
        self._wait = wait
        self.neighbors = self._table.neighbors

    def bound(self, *given):
        self._wait()
        return self._table.bound(*given)


def say(line):
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def wait():
    say("reading")
    sys.stdin.readline()


def main():
    with StreamOperator.open(sys.argv[1], lease_seconds=1) as operator:
        operator.next(rows(1), "t1")
        try:
            step = operator.next(HeldUp(2, wait), "t2")
        except DPublishError as error:
            say(f"{type(error).__name__}: {error}")
        else:
            say(f"published {step.number}")


if __name__ == "__main__":
    main()
