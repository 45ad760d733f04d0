"""Tell people how a stream stands."""

from dpublish.cli.output import say, say_table
from dpublish.privacy.epsilon import format_epsilon, format_rounded
from dpublish.publishing.streams.status import StreamStatus

_MOST_LISTED = 50


def say_status(found: StreamStatus) -> None:
    """Print the status of a stream."""
    whole = format_epsilon(found.epsilon)
    scope = (
        f"a user is hidden in all {found.horizon:,} steps together"
        if found.window is None
        else f"a user is hidden within any {found.window:,} consecutive steps"
    )
    say(f"{found.method} on {found.dataset}, {found.phase}: {scope}, at epsilon {whole}")
    for name, value in found.settings.items():
        say(f"  {name.replace('_', ' ')}: {_words(value)}")
    say(f"  ledger: {found.ledger}")
    say(f"  release folder: {found.folder} ({found.folder_problem or 'whole'})")
    of_all = "" if found.horizon is None else f" of {found.horizon:,}"
    say(f"  steps done: {found.steps:,}{of_all}")
    if found.last is not None:
        say(f"  last step: {found.last.time}, {found.last.action}")
    where = "so far" if found.window is None else "in the window that ends at the last step"
    say(f"  spent {where}: {format_rounded(found.spent)} of {whole}")
    if found.window is not None:
        say(f"  worst window so far: {format_rounded(found.worst)} of {whole}")
    if found.undelivered is not None:
        say(f"  step {found.undelivered} is not in the folder yet; the next command delivers it")
    if found.operator is not None:
        say("  at work on it: process {pid} on {host}, since {since}".format(**found.operator))
    _say_commitments(found)


def _say_commitments(found: StreamStatus) -> None:
    if not found.commitments:
        return
    say()
    rows = [
        [str(step), format_rounded(used), format_rounded(found.epsilon - used)]
        for step, used in found.commitments[:_MOST_LISTED]
    ]
    say_table(["step", "used already in its window", "left"], rows)
    if len(found.commitments) > _MOST_LISTED:
        say(f"and {len(found.commitments) - _MOST_LISTED:,} more; --json lists up to 1,000")


def _words(value: object) -> str:
    if isinstance(value, list):
        return ", ".join(map(str, value))
    if isinstance(value, bool):
        return "yes" if value else "no"
    return "not set" if value is None else str(value)
