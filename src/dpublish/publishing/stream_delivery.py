"""Bring the steps of a stream into its release folder, however often that is interrupted.

The state file knows every line of the list of steps, and where in the list it stands.  So
delivering a step once more puts the same bytes into the same places.
"""

import os
import shutil
from pathlib import Path

from dpublish.errors import CorruptRelease, InputError, InvalidParameter
from dpublish.publishing.stream_file import StreamFile, Undelivered
from dpublish.publishing.table import draw_report
from dpublish.release.folder import require_new_folder
from dpublish.release.stream_folder import (
    STEPS,
    create_folder,
    describe_stream,
    is_stream,
    load_stream,
    put_line,
    read_head,
    write_file,
)
from dpublish.release.stream_steps import StepRecord
from dpublish.streams.bins import Bins

_SPARE = 16 << 20  # bytes; journals, lists and pages are small against it
_BYTES_A_BIN = 64  # a state and a file of counts, each twice while they are written


def settle_folder(file: StreamFile, head: bytes, release_id: str, place: Path | None) -> Path:
    """Find the release folder, or make it; `place` says where it is from now on.

    A folder whose list of steps is longer than the state file knows belongs to a later state:
    going on from an older one would spend the same budget again, so it is refused.
    """
    folder = Path(file.fact("output")) if place is None else place.absolute()
    if not folder.exists():
        if place is None and file.steps > (file.undelivered() is not None):
            raise CorruptRelease(
                f"the release folder {folder} is gone; put it back, or say with --output FOLDER "
                "where it is now or where to begin a new one (steps before are then missing)"
            )
        require_new_folder(folder)
        create_folder(folder, head, _delivered_lines(file))
    elif not is_stream(folder) or read_head(folder)["receipt"]["release_id"] != release_id:
        raise InvalidParameter(f"{folder} is not the release folder of this stream")
    _mend_list(file, folder)
    if place is not None:
        file.put(output=str(folder))
    return folder


def deliver(folder: Path, step: Undelivered) -> None:
    """Put a step's counts and then its line into the folder; harmless if they are there."""
    record = StepRecord.from_line(step.line)
    try:
        write_file(folder / record.file, step.content)
        put_line(folder, step.start, step.line)
    except OSError as error:
        raise InputError(
            f"step {step.number} is done and kept, but could not be written to {folder} "
            f"({error.strerror or 'input/output error'}); mend that and repeat the command"
        ) from None


def require_room(bins: Bins, *places: Path) -> None:
    """Refuse to begin a step that may not fit on the disk.

    What a step takes is bounded here by the number of bins alone, and looked at before any
    row is read: so whether a step goes through does not hang on its outcome.
    """
    need = bins.size * (_BYTES_A_BIN + 16 * len(bins.axes)) + _SPARE
    for place in places:
        if shutil.disk_usage(place).free < need:
            raise InputError(
                f"the disk of {place} has less than {need >> 20} MB left; free some space and "
                "repeat the command (no row was read)"
            )


def write_pages(folder: Path) -> None:
    """Write the report and the description of the folder anew, from the folder alone."""
    stream = load_stream(folder)
    try:
        write_file(folder / "datapackage.json", describe_stream(stream))
        for name, page in draw_report(stream).items():
            write_file(folder / name, page)
    except OSError as error:
        raise InputError(
            f"the report in {folder} cannot be written ({error.strerror or 'input/output error'});"
            " the steps themselves are whole"
        ) from None


def is_list_whole(file: StreamFile, folder: Path) -> bool:
    """Say whether the folder's list of steps is as long as the state file says."""
    waiting = file.undelivered()
    length = file.length if waiting is None else waiting.start
    try:
        return os.path.getsize(folder / STEPS) == length
    except OSError:
        return False


def _delivered_lines(file: StreamFile) -> list[bytes]:
    waiting = file.undelivered()
    return list(file.lines())[: None if waiting is None else waiting.number - 1]


def _mend_list(file: StreamFile, folder: Path) -> None:
    waiting = file.undelivered()
    start, line = (file.length, b"") if waiting is None else (waiting.start, waiting.line)
    path = folder / STEPS
    size = path.stat().st_size if path.is_file() else 0
    if size < start or not path.is_file():
        write_file(path, b"".join(_delivered_lines(file)))
        return
    with path.open("rb") as listed:
        listed.seek(start)
        rest = listed.read()
    if rest != line[: len(rest)]:
        raise CorruptRelease(
            f"{folder} has steps that the state file {file.path} does not know: the state file is "
            "an older copy; going on would spend the same budget twice, so put the newest back"
        )
