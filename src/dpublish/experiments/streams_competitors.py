"""The stream methods that are compared, by name, each with the settings it is run with."""

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from math import ceil
from typing import Any, Literal

from dpublish.errors import InvalidParameter
from dpublish.methods.streams.method import stream_settings
from dpublish.privacy.epsilon import parse_epsilon

WINDOW, RELEASES = 40, 10
LAVISH = "1000000"
"""The budget of lines without noise: what is left is the error of counts that have got old."""

Level = Literal["stream", "window"]
LEVELS: dict[Level, str] = {
    "stream": "each person is hidden in the whole stream",
    "window": "each person is hidden within every window of steps",
}
_OWN_KNOBS = {
    "window": "steps of a window within which people are hidden (w)",
    "releases": "publications in a stream or window (C), or a part of its steps, such as 1%",
    "static": "how one histogram is published: identity, grouped, psd, ag, privelet, ...",
    "threshold": "the threshold (T) of DSFT, or with which DSAT begins: a part of the first total",
    "decision_share": "share of epsilon for comparisons (k)",
}
_NO_KNOBS = ("columns", "horizon", "interval", "controller", "contribution", "trust_rows")
_OPEN_METHODS = ("dsft", "dsat", "dsat-w", "fixed-sampling", "bd", "ba")
_DEFAULT_KNOBS = ("static", "decision_share", "smoothing")
"""What the default controller of DSAT heeds; the others are for its other controllers."""
METHOD_KNOBS = _OWN_KNOBS | {
    known.name: known.help
    for name in _OPEN_METHODS
    for known in stream_settings(name)
    if known.name not in (*_NO_KNOBS, *_OWN_KNOBS)
}
"""Settings of methods that users may choose; a method takes those that it has."""


@dataclass(frozen=True)
class Competitor:
    """A method with the settings it is run with.

    Attributes:
        method: Its name among the stream methods.
        level: What it guarantees.
        span: The setting for the number of steps; a window of all steps hides people in the
            whole stream.
        title: What it is, in words.
        releases: How often it publishes; None leaves that to the method.
        controller: What steers DSAT; None for its default.
        static: How one histogram is published; None for the default.
        is_pinned: Whether it publishes so often whatever users choose.
        is_true: Whether it runs with so much budget that there is no noise.
    """

    method: str
    level: Level
    span: Literal["horizon", "window"]
    title: str
    releases: int | None = None
    controller: str | None = None
    static: str | None = None
    is_pinned: bool = False
    is_true: bool = False

    def settings(self, steps: int, changes: Mapping[str, int | str]) -> dict[str, int | str]:
        """Set it for a stream of `steps`; `changes` hold what figure and users choose."""
        window = int(changes.get("window", WINDOW))
        length = steps if self.level == "stream" else min(window, steps)
        found: dict[str, int | str] = {self.span: length}
        if self.releases is not None:
            wanted = changes["releases"] if self.takes("releases", changes) else self.releases
            found["releases"] = min(count_releases(wanted, length), length)
        if self.controller is not None:
            found["controller"] = self.controller
        for name in METHOD_KNOBS:
            if name not in ("window", "releases") and self.takes(name, changes):
                found[name] = str(changes[name])
        if self.static is not None:
            found["static"] = self.static
        return found

    def takes(self, name: str, changes: Mapping[str, int | str]) -> bool:
        """Whether `changes` hold a setting that the method has and leaves open."""
        return name in changes and self.is_moved_by(name)

    def is_moved_by(self, name: str) -> bool:
        """Whether a setting of methods makes a difference to this one."""
        if name == "releases":
            return self.releases is not None and not self.is_pinned
        if name == "window":
            return self.level == "window"
        if name == "static" and self.static is not None:
            return False
        if self.method in DEFAULTS.values() and self.controller is None:
            return name in _DEFAULT_KNOBS
        return name in _setting_names(self.method)


@cache
def _setting_names(method: str) -> frozenset[str]:
    return frozenset(known.name for known in stream_settings(method))


def count_releases(wanted: int | str, length: int) -> int:
    """Read a number of publications, or a part of `length` steps.

    >>> count_releases(10, 500), count_releases("1%", 500), count_releases("1%", 40)
    (10, 5, 1)
    """
    text = str(wanted)
    if not text.endswith("%"):
        if isinstance(wanted, int) and wanted > 0:
            return wanted
        raise InvalidParameter(f"releases ({wanted}) must be an integer, or a part such as 1%")
    share: Fraction = parse_epsilon(text.removesuffix("%"), "releases") / 100
    return max(1, ceil(share * length))


def _whole(method: str, title: str, **settings: Any) -> Competitor:
    return Competitor(method, "stream", "horizon", title, **settings)


def _windows(method: str, title: str, **settings: Any) -> Competitor:
    return Competitor(method, "window", "window", title, **settings)


_SCHEDULE: dict[str, Any] = {"releases": RELEASES, "controller": "schedule"}
_PAPER: dict[str, Any] = {"releases": RELEASES, "controller": "paper"}

METHODS: dict[str, Competitor] = {
    "dsat": _whole("dsat", "DSAT with its defaults"),
    "dsat-schedule": _whole("dsat", "DSAT that keeps to a schedule", **_SCHEDULE),
    "dsat-paper": _whole("dsat", "DSAT as printed, but private", **_PAPER),
    "dsft": _whole("dsft", "DSFT: a fixed threshold", releases=RELEASES),
    "fixed-sampling": _whole(
        "fixed-sampling", "10 publications at equal distances", releases=RELEASES
    ),
    "fixed-5": _whole(
        "fixed-sampling", "5 publications at equal distances", releases=5, is_pinned=True
    ),
    "fixed-20": _whole(
        "fixed-sampling", "20 publications at equal distances", releases=20, is_pinned=True
    ),
    "per-snapshot": _whole("per-snapshot", "a publication at each step"),
    "bd-user": Competitor("bd", "stream", "window", "BD with one window of all steps"),
    "ba-user": Competitor("ba", "stream", "window", "BA with one window of all steps"),
    "dsat-psd": _whole("dsat", "DSAT with its defaults, each histogram by PSD", static="psd"),
    "dsat-paper-psd": _whole(
        "dsat", "DSAT as printed, each histogram by PSD", static="psd", **_PAPER
    ),
    "fixed-psd": _whole(
        "fixed-sampling",
        "publications at equal distances, each histogram by PSD",
        releases=RELEASES,
        static="psd",
    ),
    "dsat-true": _whole("dsat", "DSAT as printed, without noise", is_true=True, **_PAPER),
    "dsat-schedule-true": _whole(
        "dsat", "DSAT that keeps to a schedule, without noise", is_true=True, **_SCHEDULE
    ),
    "fixed-true": _whole(
        "fixed-sampling",
        "publications at equal distances, without noise",
        releases=RELEASES,
        is_true=True,
    ),
    "dsat-w": _windows("dsat-w", "DSAT for windows with its defaults"),
    "dsat-schedule-w": _windows("dsat-w", "DSAT on a schedule", **_SCHEDULE),
    "dsat-paper-w": _windows("dsat-w", "DSAT as printed, but private", **_PAPER),
    "fixed-sampling-w": _windows(
        "fixed-sampling", "10 publications in a window", releases=RELEASES
    ),
    "fixed-5-w": _windows(
        "fixed-sampling", "5 publications in a window", releases=5, is_pinned=True
    ),
    "fixed-20-w": _windows(
        "fixed-sampling", "20 publications in a window", releases=20, is_pinned=True
    ),
    "per-snapshot-w": _windows("per-snapshot", "a publication at each step"),
    "bd": _windows("bd", "BD: half of what is left at each publication"),
    "ba": _windows("ba", "BA: what earlier steps saved goes to the next publication"),
}
TRUE = tuple(name for name, method in METHODS.items() if method.is_true)
"""Lines without noise, and so without privacy."""
PINNED = tuple(name for name, method in METHODS.items() if method.is_pinned)
OTHER_HISTOGRAMS = tuple(name for name, method in METHODS.items() if method.static)
REFERENCES = ("fixed-5", "fixed-20", "per-snapshot", *TRUE)
"""Drawn in gray, for whatever they guarantee."""
PRIVATE = tuple(name for name in METHODS if name not in (*TRUE, *OTHER_HISTOGRAMS))
USUAL = tuple(name for name in PRIVATE if name not in PINNED)
DEFAULTS: dict[Level, str] = {"stream": "dsat", "window": "dsat-w"}


def of_level(names: tuple[str, ...], level: Level) -> tuple[str, ...]:
    """Keep the methods with one guarantee."""
    return tuple(name for name in names if METHODS[name].level == level)


def shown_as(method: str) -> str:
    """Name a method where its guarantee is clear, so that both forms look the same.

    >>> shown_as("fixed-5-w"), shown_as("bd-user")
    ('fixed-5', 'bd')
    """
    return method.removesuffix("-w").removesuffix("-user")
