"""Read how a stream stands, without taking it from whoever is at work on it."""

import os
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

from dpublish.errors import DPublishError, InvalidParameter
from dpublish.methods.streams.folder import load_stream
from dpublish.methods.streams.listing import StepRecord
from dpublish.privacy.epsilon import format_epsilon
from dpublish.publishing.streams.delivery import is_list_whole
from dpublish.publishing.streams.locations import open_state
from dpublish.publishing.streams.state import STARTING, StreamStore
from dpublish.storage.address import whole_location

_MOST_AHEAD = 1000


@dataclass(frozen=True)
class StreamStatus:
    """How a stream stands; all of it is public but for the paths of files."""

    method: str
    settings: dict[str, Any]
    dataset: str
    epsilon: Fraction
    phase: str
    ledger: str
    folder: str
    steps: int
    horizon: int | None
    window: int | None
    last: StepRecord | None
    spent: Fraction
    worst: Fraction
    commitments: tuple[tuple[int, Fraction], ...]
    undelivered: int | None
    operator: dict[str, Any] | None
    folder_problem: str | None

    def to_dict(self) -> dict[str, Any]:
        """Turn the status into plain values."""
        amounts = {"epsilon": self.epsilon, "spent": self.spent, "worst": self.worst}
        return vars(self) | {
            **{name: format_epsilon(amount) for name, amount in amounts.items()},
            "last": None if self.last is None else self.last.to_dict(),
            "commitments": [
                {"step": step, "used": format_epsilon(used)} for step, used in self.commitments
            ],
        }


def stream_status(path: str | os.PathLike[str]) -> StreamStatus:
    """Read how the stream of a state stands, which is in a file or on a server."""
    file = open_state(whole_location(path))
    try:
        with file.reading():
            if file.phase == STARTING:
                raise InvalidParameter(
                    f"the start of {file.shown} was interrupted; repeat `dpublish stream start` "
                    "with the same options"
                )
            return _read(file)
    finally:
        file.close()


def _read(file: StreamStore) -> StreamStatus:
    stream = file.stream()
    window = stream.method.window
    waiting = file.undelivered()
    folder = Path(file.text("output"))
    return StreamStatus(
        method=stream.method.name,
        settings=file.metadata("settings"),
        dataset=file.text("dataset"),
        epsilon=stream.receipt.epsilon,
        phase=file.phase,
        ledger=file.text("ledger"),
        folder=str(folder),
        steps=stream.number,
        horizon=stream.method.horizon,
        window=window,
        last=file.last_step(),
        spent=stream.spent,
        worst=stream.worst,
        commitments=tuple(stream.commitments(min(window, _MOST_AHEAD)) if window else ()),
        undelivered=None if waiting is None else waiting.number,
        operator=file.holder(),
        folder_problem=_folder_problem(file, folder),
    )


def _folder_problem(file: StreamStore, folder: Path) -> str | None:
    try:
        missing = load_stream(folder).missing()
    except DPublishError as error:
        return str(error)
    if missing:
        return f"the counts of {len(missing):,} steps are missing, the first of {missing[0]}"
    return None if is_list_whole(file, folder) else "the list of steps is not whole"
