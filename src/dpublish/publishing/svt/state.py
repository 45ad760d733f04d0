"""The state file of an interactive run: what it needs to go on, changed by one transaction a query.

It holds the noisy threshold and a hash of the table, which are secrets, and every line of the
transcript.  The line of a query and the state that it led to are written together, before
anything of them leaves.  What is read back is checked against itself: the rates are those of the
settings, and the positives that are left are those that the lines leave.
"""

from collections.abc import Iterator
from fractions import Fraction
from typing import Any

import msgspec

from dpublish.data import schema_file
from dpublish.data.schema import Schema
from dpublish.errors import InputError
from dpublish.mechanisms.sparse_vector.stored import StoredVector
from dpublish.privacy.epsilon import parse_epsilon
from dpublish.publishing.state_file import METADATA, STOPPED, StateFile, put_metadata
from dpublish.publishing.svt.outcome import Outcome, Terms
from dpublish.storage.sqlite import FileKind

_KIND = FileKind(
    noun="the state file",
    content="the state of an interactive run",
    maker="dpublish svt start",
    application=0x6450_5631,  # "dPV1"
    format=1,
    tables=(
        METADATA,
        "CREATE TABLE outcomes (number INTEGER PRIMARY KEY, asked TEXT NOT NULL UNIQUE, "
        "line BLOB NOT NULL)",
    ),
    error=InputError,
    is_secret=True,
)


class RunFile(StateFile):
    """An open state file of an interactive run."""

    kind = _KIND

    @property
    def terms(self) -> Terms:
        """The settings of the run."""
        with self.checked():
            return Terms.from_dict(self.metadata("terms"))

    @property
    def epsilon(self) -> Fraction:
        """What the run costs in all."""
        with self.checked():
            return parse_epsilon(self.text("epsilon"))

    @property
    def schema(self) -> Schema:
        """The schema of the table."""
        with self.checked():
            return schema_file.from_dict(self.metadata("schema"))

    @property
    def seed(self) -> int | None:
        """The seed of a run that hides nothing; None if its noise is the operating system's."""
        seed = self.metadata("seed")
        if seed is not None and type(seed) is not int:
            raise self.damaged()
        return seed

    @property
    def count(self) -> int:
        """How many queries were answered."""
        with self.checked():
            return int(self.first("SELECT coalesce(max(number), 0) FROM outcomes")[0])

    def lines(self) -> Iterator[bytes]:
        """Read the lines of the transcript, in order."""
        with self.checked():
            for (line,) in self.rows("SELECT line FROM outcomes ORDER BY number"):
                yield bytes(line)

    def outcomes(self) -> list[Outcome]:
        """Read what was told, in order; refuse lines that cannot follow each other."""
        with self.checked():
            found = [Outcome.from_line(line) for line in self.lines()]
            left = self.terms.max_positives
            if self.count != len(found):
                raise self.damaged()
            for number, outcome in enumerate(found, start=1):
                left -= outcome.above
                if (outcome.number, outcome.positives_left) != (number, left) or left < 0:
                    raise self.damaged()
            return found

    def find(self, asked: tuple[str, int, int | None]) -> Outcome | None:
        """Find what was told about a query before."""
        with self.checked():
            row = self.first("SELECT line FROM outcomes WHERE asked = ?", _key(asked))
            return None if row is None else Outcome.from_line(bytes(row[0]))

    def vector(self) -> StoredVector:
        """Read the noisy threshold; refuse one that is not of this run's settings."""
        with self.checked():
            plain = self.metadata("vector")
            vector = StoredVector.from_dict(plain)
            wanted = self.terms.calibration(self.epsilon)
            told = sum(outcome.above for outcome in self.outcomes())
            rates = (vector.threshold_rate, vector.answer_rate, vector.value_rate)
            fits = rates == (wanted.threshold_rate, wanted.answer_rate, wanted.value_rate)
            is_whole = type(plain["threshold_noise"]) is int
            if not (fits and is_whole and vector.threshold_noise >= wanted.offset):
                raise self.damaged()
            if vector.positives_left != self.terms.max_positives - told:
                raise self.damaged()
            return vector

    def begin(self, vector: StoredVector, **metadata: Any) -> None:
        """Write the state of a run that is paid for and was asked nothing yet."""
        self.put(vector=vector.to_dict(), **metadata)

    def commit(self, vector: StoredVector, outcome: Outcome) -> None:
        """Write an outcome and the state that it led to, all or nothing.

        Refused if another process has answered a query meanwhile, or has stopped the run.
        """
        with self.writing():
            if outcome.number != self.count + 1 or self.phase == STOPPED:
                raise InputError(f"another process has moved {self.path} on; ask again")
            put_metadata(self._connection, {"vector": vector.to_dict()})
            row = (outcome.number, _key(outcome.asked), outcome.to_line())
            self.change("INSERT INTO outcomes VALUES (?, ?, ?)", *row)

    def stop(self) -> None:
        """End the run for good, and forget the noisy threshold and the hash of the table."""
        self.put(phase=STOPPED, vector=None, fingerprint=None)


def _key(asked: tuple[str, int, int | None]) -> str:
    return msgspec.json.encode(asked).decode()
