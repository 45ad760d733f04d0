"""Bring the steps of a stream into its release folder, however often that is interrupted.

The state knows every line of the list of steps, and where in the list it stands.  So delivering
a step once more, late and by whomever, puts the same bytes to the same positions.  The list is
never replaced by another file: one that was written earlier and comes later would set it back.
"""

import shutil
from collections.abc import Callable
from pathlib import Path

from dpublish.core.folder.folder import require_new_folder
from dpublish.core.folder.signing import SigningKey
from dpublish.errors import CorruptRelease, InputError, InvalidParameter
from dpublish.methods.streams.folder import (
    complete_list,
    create_folder,
    describe_stream,
    is_current,
    is_stream,
    list_size,
    open_stream,
    put_line,
    release_id_of,
    remove_drafts,
    require_line,
    sign_stream,
)
from dpublish.methods.streams.folder import write_pages as put_pages
from dpublish.methods.streams.snapshot import Bins
from dpublish.publishing.streams.state import StreamStore, Undelivered
from dpublish.publishing.table import draw_report
from dpublish.storage.files import file_time, write_file

_SPARE = 16 << 20  # bytes; journals, lists and pages are small against it
_BYTES_A_BIN = 64  # a state and a file of counts, each twice while they are written


def settle_folder(file: StreamStore, head: bytes, release_id: str, moved_to: Path | None) -> Path:
    """Find the release folder, or make it; `moved_to` says where it is from now on.

    A folder whose list of steps is longer than the state file knows belongs to a later state:
    going on from an older one would spend the same budget again, so it is refused.
    """
    recorded = Path(file.text("output"))
    folder = recorded if moved_to is None else moved_to.absolute()
    is_there = folder.exists()
    if is_there and not _is_home(folder, release_id):
        raise InvalidParameter(f"{folder} is not the release folder of this stream")
    if moved_to is None and not is_there and file.steps > (file.undelivered() is not None):
        raise CorruptRelease(
            f"the release folder {folder} is gone; put it back, or say with --output FOLDER "
            "where it is now or where to begin a new one (steps before are then missing)"
        )
    _require_left(file, recorded, folder, release_id)
    if not is_there:
        require_new_folder(folder)
        create_folder(folder, head, _delivered_lines(file), shown_time(file))
    waiting = file.undelivered()
    beside = [] if waiting is None else [(folder / waiting.file).parent]
    remove_drafts(shown_time(file), folder, *beside)
    mend_list(file, folder)
    if moved_to is not None:
        file.put(output=str(folder))
    return folder


def mend_list(file: StreamStore, folder: Path) -> None:
    """Complete a list of steps that was cut; refuse one with steps that the file does not know."""
    if not is_stream(folder):
        raise CorruptRelease(f"the release folder {folder} is gone; put it back and go on")
    start, line = _expected(file)
    try:
        require_line(folder, start, line)
        if list_size(folder) < start:
            complete_list(folder, b"".join(_delivered_lines(file)), shown_time(file))
    except OSError as error:
        raise InputError(
            f"the list of steps in {folder} is not whole and cannot be mended "
            f"({error.strerror or 'input/output error'})"
        ) from None


def shown_time(file: StreamStore) -> float:
    """Return the time that files of a stream show: a second after its start for every step.

    The true time would tell how long a step took.  That it moves lets tools that copy by time
    see that a file was replaced.
    """
    return file_time(file.receipt().created) + file.steps


def deliver(folder: Path, step: Undelivered, time: float) -> None:
    """Put a step's counts and then its line into the folder; harmless if they are there.

    If another step is listed at its position, that step's counts are left alone.
    """
    try:
        require_line(folder, step.start, step.line)
        write_file(folder / step.file, step.content, time, shared=True)
        put_line(folder, step.start, step.line, time)
    except OSError as error:
        raise InputError(
            f"step {step.number} is done and kept, but could not be written to {folder} "
            f"({error.strerror or 'input/output error'}); mend that and repeat the command"
        ) from None


def require_room(bins: Bins, *folders: Path) -> None:
    """Refuse to begin a step that may not fit on the disk.

    What a step takes is bounded here by the number of bins alone, and looked at before any
    row is read: so whether a step goes through does not hang on its outcome.
    """
    need = bins.size * (_BYTES_A_BIN + 16 * len(bins.axes)) + _SPARE
    for folder in folders:
        if shutil.disk_usage(folder).free < need:
            raise InputError(
                f"the disk of {folder} has less than {need >> 20} MB left; free some space and "
                "repeat the command (no row was read)"
            )


def write_pages(
    folder: Path, key: SigningKey | None = None, check: Callable[[], None] = lambda: None
) -> None:
    """Write the report and the description of the folder anew, from the folder alone.

    A folder that is as its manifest says is left alone, but for a signature if there is a key.
    `check` refuses it to an operator who was taken over, right before and after it is written.
    """
    stream = open_stream(folder)
    time = file_time(stream.receipt.created) + len(stream.records)
    try:
        if not is_current(folder):
            pages = {"datapackage.json": describe_stream(stream), **draw_report(stream)}
            check()
            put_pages(folder, pages, time, key)
            check()
        elif key is not None:
            check()
            sign_stream(folder, time, key)
    except OSError as error:
        raise InputError(
            f"the report in {folder} cannot be written ({error.strerror or 'input/output error'});"
            " the steps themselves are whole"
        ) from None


def is_list_whole(file: StreamStore, folder: Path) -> bool:
    """Return whether the folder's list of steps is as long as the state file says.

    The line of a step that is being delivered may be there or not.
    """
    start, line = _expected(file)
    return start <= list_size(folder) <= start + len(line)


def _delivered_lines(file: StreamStore) -> list[bytes]:
    waiting = file.undelivered()
    return list(file.lines())[: None if waiting is None else waiting.number - 1]


def _expected(file: StreamStore) -> tuple[int, bytes]:
    """Return how long the list of steps is, and what line may follow or be on its way."""
    waiting = file.undelivered()
    return (file.length, b"") if waiting is None else (waiting.start, waiting.line)


def _is_home(folder: Path, release_id: str) -> bool:
    return is_stream(folder) and release_id_of(folder) == release_id


def _require_left(file: StreamStore, recorded: Path, folder: Path, release_id: str) -> None:
    """Refuse a second folder while the first is there: two copies of a state could use them."""
    if folder == recorded or (folder.exists() and recorded.exists() and folder.samefile(recorded)):
        return
    if _is_home(recorded, release_id):
        require_line(recorded, *_expected(file))
        raise InvalidParameter(
            f"the release folder of this stream is still at {recorded}; move it instead of copying "
            "it, and then say where it is"
        )
