"""Show how far a release is: a meter on a terminal and in a notebook, nothing elsewhere."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from time import monotonic
from typing import Any

from dpublish.core.run import Progress
from dpublish.core.text import printable
from dpublish.errors import InvalidType

PATIENCE = 1.0
"""Seconds of work after which progress is shown."""
_SIGNS = 20
_LINE_SECONDS = 0.2  # between two lines: a notebook keeps each of them for a while


@contextmanager
def showing_progress(
    progress: Progress | bool | None, *, patience: float = PATIENCE
) -> Iterator[Progress | None]:
    """Return what a release reports its progress to.

    With True it is shown on standard error, on a terminal and in notebooks, once the work has
    taken `patience` seconds; a function is called as it is; None and False show nothing.
    """
    if progress is None or progress is False:
        yield None
        return
    if progress is not True:
        if not callable(progress):
            raise InvalidType(
                "progress must be True, False, or a function of (done, total, label), not "
                f"an object of type {type(progress).__name__}"
            )
        yield progress
        return
    make = _line if is_notebook() else _meter if sys.stderr.isatty() else None
    if make is None:
        yield None
        return
    with _after(patience, make) as show:
        yield show


def is_notebook() -> bool:
    """Return whether this runs in a notebook: a kernel of IPython that has no terminal."""
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    return type(shell).__name__ == "ZMQInteractiveShell"


class _Shown:
    """Something that shows progress, and can be taken away again."""

    def __init__(self, show: Progress, close: Callable[[], Any]) -> None:
        self.show = show
        self.close = close


@contextmanager
def _after(patience: float, make: Callable[[], _Shown]) -> Iterator[Progress]:
    """Begin to show progress once the work has taken long enough; take it away at the end."""
    begun = monotonic()
    shown: list[_Shown] = []

    def show(done: int, total: int, label: str) -> None:
        if not shown:
            if monotonic() - begun < patience:
                return
            shown.append(make())
        shown[0].show(done, total, printable(label))

    try:
        yield show
    finally:
        for each in shown:
            each.close()


def _meter() -> _Shown:
    """Draw a meter on the terminal."""
    from rich.console import Console
    from rich.markup import escape
    from rich.progress import Progress as Meter

    meter = Meter(console=Console(stderr=True), transient=True)
    meter.start()
    task = meter.add_task("", total=None)

    def show(done: int, total: int, label: str) -> None:
        said = escape(label)
        meter.update(task, completed=done, total=total or None, description=said)  # 0: unknown

    return _Shown(show, meter.stop)


def _in_text(done: int, total: int, label: str) -> str:
    """Write how much is done, with a meter if it is known of how much.

    >>> _in_text(3, 10, "counts"), _in_text(3, 0, "counts")
    ('counts [######--------------] 30 % (3 of 10)', 'counts')
    """
    if not total:
        return label
    part = min(max(done / total, 0.0), 1.0)
    full = int(_SIGNS * part)
    drawn = "#" * full + "-" * (_SIGNS - full)
    return f"{label} [{drawn}] {100 * part:.0f} % ({done:,} of {total:,})"


def _line() -> _Shown:
    """Draw a meter on one line that is written over, as a notebook's output allows."""
    state = {"time": -1.0, "width": 0}

    def write(text: str) -> None:
        with suppress(OSError):
            sys.stderr.write("\r" + text.ljust(int(state["width"])))
            sys.stderr.flush()
        state["width"] = len(text)

    def show(done: int, total: int, label: str) -> None:
        if monotonic() - state["time"] >= _LINE_SECONDS:
            state["time"] = monotonic()
            write(_in_text(done, total, label))

    def close() -> None:
        write("")
        write("")

    return _Shown(show, close)
