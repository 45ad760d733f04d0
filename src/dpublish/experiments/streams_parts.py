"""What the comparison of streams varies: one part for each figure that it makes.

The figures follow H. Li et al., Differentially Private Histogram Publication for Dynamic
Datasets (CIKM 2015): error of range counts against epsilon, update rate, dimensions and size of
the questions, and against the settings of the methods.  Methods are compared with those that
make the same guarantee.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from dpublish.datasets.stream_sets import STREAM_SETS

NAME = "streams"
ERROR, ANSWER, PUBLISHED, SECONDS = "error", "true answer", "publications", "seconds"
SLOT = "slot "  # and its number: the mean error within a part of the stream
SLOTS = 50
SUMMARY = "summary"
QUESTIONS = 1_000
WINDOW, RELEASES = 40, 10

Level = Literal["stream", "window"]
LEVELS: dict[Level, str] = {
    "stream": "each person is hidden in the whole stream",
    "window": "each person is hidden within every window of steps",
}


@dataclass(frozen=True)
class Contender:
    """A method with the settings it is run with.

    Attributes:
        method: Its name among the stream methods.
        level: What it guarantees.
        span: The setting that says over how many steps; a window of all steps hides people in
            the whole stream.
        title: What it is, in words.
        releases: How often it publishes; None leaves that to the method.
        controller: Who steers DSAT; None for its default.
    """

    method: str
    level: Level
    span: Literal["horizon", "window"]
    title: str
    releases: int | None = None
    controller: str | None = None

    def settings(self, steps: int, changes: Mapping[str, int | str]) -> dict[str, int | str]:
        """Set it for a stream of `steps`; `changes` hold what the part varies."""
        window = int(changes.get("window", WINDOW))
        length = steps if self.level == "stream" else min(window, steps)
        found: dict[str, int | str] = {self.span: length}
        releases = changes.get("releases", self.releases)
        if releases is not None:
            found["releases"] = min(int(releases), length)
        if self.controller is not None:
            found["controller"] = self.controller
        return found


def _whole(method: str, title: str, **settings: Any) -> Contender:
    return Contender(method, "stream", "horizon", title, **settings)


def _windows(method: str, title: str, **settings: Any) -> Contender:
    return Contender(method, "window", "window", title, **settings)


METHODS: dict[str, Contender] = {
    "dsat": _whole("dsat", "DSAT with its defaults"),
    "dsat-schedule": _whole("dsat", "DSAT that keeps to a schedule", controller="schedule"),
    "dsat-paper": _whole("dsat", "DSAT as printed, but private", controller="paper"),
    "dsft": _whole("dsft", "DSFT: a fixed threshold", releases=RELEASES),
    "fixed-sampling": _whole(
        "fixed-sampling", "10 publications at equal distances", releases=RELEASES
    ),
    "fixed-5": _whole("fixed-sampling", "5 publications at equal distances", releases=5),
    "fixed-20": _whole("fixed-sampling", "20 publications at equal distances", releases=20),
    "per-snapshot": _whole("per-snapshot", "a publication at each step"),
    "bd-user": Contender("bd", "stream", "window", "BD with one window of all steps"),
    "ba-user": Contender("ba", "stream", "window", "BA with one window of all steps"),
    "dsat-w": _windows("dsat-w", "DSAT for windows with its defaults"),
    "dsat-schedule-w": _windows("dsat-w", "DSAT on a schedule", controller="schedule"),
    "dsat-paper-w": _windows("dsat-w", "DSAT as printed, but private", controller="paper"),
    "fixed-sampling-w": _windows(
        "fixed-sampling", "10 publications in a window", releases=RELEASES
    ),
    "fixed-5-w": _windows("fixed-sampling", "5 publications in a window", releases=5),
    "fixed-20-w": _windows("fixed-sampling", "20 publications in a window", releases=20),
    "per-snapshot-w": _windows("per-snapshot", "a publication at each step"),
    "bd": _windows("bd", "BD: half of what is left at each publication"),
    "ba": _windows("ba", "BA: what earlier steps saved goes to the next publication"),
}
REFERENCES = ("fixed-5", "fixed-20", "per-snapshot")
"""Drawn in gray, for whatever they guarantee."""
_USUAL = tuple(name for name in METHODS if not name.startswith(("fixed-5", "fixed-20")))


def shown_as(method: str) -> str:
    """Name a method where its guarantee is clear, so that both forms look the same.

    >>> shown_as("fixed-5-w"), shown_as("bd-user")
    ('fixed-5', 'bd')
    """
    return method.removesuffix("-w").removesuffix("-user")


@dataclass(frozen=True)
class Part:
    """One figure: what is on its axis, and what is run for it.

    Attributes:
        title: What the page is called.
        across: What is on the axis.
        reading: What the axis means, for somebody new to it.
        epsilons: The budgets.
        key: What is on the axis; None for epsilon.
        values: The values on the axis.
        methods: The methods compared.
        datasets: The streams.
        is_log: Whether values grow by factors.
    """

    title: str
    across: str
    reading: str
    epsilons: tuple[str, ...] = ("1",)
    key: str | None = None
    values: tuple[int, ...] = ()
    methods: tuple[str, ...] = _USUAL
    datasets: tuple[str, ...] = tuple(STREAM_SETS)
    is_log: bool = True


MAKERS = {"rate": 1_000, "dimensions": None, "steps": None}
"""Settings of a stream's maker, and the whole they are a part of; rates are per 1,000."""

PARTS = {
    "epsilon": Part(
        title="How well can a changing histogram be published again and again?",
        across="privacy budget ε (left: more private)",
        reading="From left to right privacy gets weaker, so there is less noise.",
        epsilons=("0.05", "0.1", "0.2", "0.5", "1", "2"),
    ),
    "update-rate": Part(
        title="What if more people change at each step?",
        across="people who change at a step, in 1,000",
        reading="From left to right the histogram changes faster, so what was published "
        "gets old sooner.",
        key="rate",
        values=(0, 1, 2, 5, 10, 20, 50, 100),
        datasets=("census", "drift"),
        is_log=False,
    ),
    "dimensions": Part(
        title="What if the histogram has more columns?",
        across="number of columns",
        reading="From left to right there are more columns and so more bins: 16, 160, 960, "
        "3,840 and 7,680. Every bin has its own noise.",
        key="dimensions",
        values=(1, 2, 3, 4, 5),
        datasets=("census",),
        is_log=False,
    ),
    "query-size": Part(
        title="What if questions are about more bins?",
        across="part of all bins that a question adds up, in 1,000",
        reading="From left to right each answer adds up more bins, and the noise of them all.",
        key="share",
        values=(10, 40, 90, 160, 250, 490, 810),
        datasets=("static", "drift", "bursts", "tdrive"),
        is_log=False,
    ),
    "window": Part(
        title="How long should the window be within which people are hidden?",
        across="steps of a window (w)",
        reading="From left to right people are hidden within more steps, so each step has a "
        "smaller part of the budget.",
        key="window",
        values=(10, 20, 40, 80, 160),
        methods=tuple(name for name in _USUAL if METHODS[name].level == "window"),
        datasets=("static", "drift", "bursts", "nyc-taxi", "tdrive"),
    ),
    "releases": Part(
        title="How often should a stream publish?",
        across="publications in a stream or window (C)",
        reading="From left to right more histograms are published, each with a smaller part "
        "of the budget. DSAT with its defaults takes it as the most publications ahead of time.",
        key="releases",
        values=(2, 5, 10, 20, 40),
        methods=(
            "dsat",
            "dsat-schedule",
            "dsat-paper",
            "dsft",
            "fixed-sampling",
            "dsat-w",
            "dsat-schedule-w",
            "dsat-paper-w",
            "fixed-sampling-w",
        ),
        datasets=("static", "drift", "bursts", "nyc-taxi", "tdrive"),
    ),
    "horizon": Part(
        title="What if a stream goes on for longer?",
        across="steps of the stream",
        reading="From left to right there are more steps for the same budget.",
        key="steps",
        values=(50, 100, 200, 500, 1_000),
        methods=tuple(name for name in _USUAL if METHODS[name].level == "stream"),
        datasets=("static", "drift", "bursts", "nyc-taxi"),
    ),
    SUMMARY: Part(
        title="Which method publishes which stream best?",
        across="privacy budget ε (left: more private)",
        reading="Under each stream is also shown how the error goes over time.",
        epsilons=("0.1", "1"),
        methods=tuple(METHODS),
    ),
}
