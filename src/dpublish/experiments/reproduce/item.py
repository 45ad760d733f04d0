"""An item of a research document: what it printed, how to run it again, and how to judge.

A check computes what came out from the results of a run; it never quotes a stored figure.  So a
verdict on a page is that of the run that wrote the page.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, NamedTuple

from dpublish.errors import InvalidParameter
from dpublish.experiments.study import Study
from dpublish.experiments.trials import Cell, Cells, Key, Result


class Verdict(Enum):
    """How an item came out."""

    REPRODUCED = "reproduced"
    IN_ORDER = "reproduced in order"
    DIFFERS = "differs"
    TESTED = "tested"
    CANNOT = "cannot be had"


class Finding(NamedTuple):
    """What came out, in words with numbers, and whether it is what the document says."""

    ours: str
    holds: bool


@dataclass(frozen=True)
class Outcome:
    """The results of an item's run, ready to be looked up by its check."""

    study: Study[Any]
    results: Sequence[Result]

    @property
    def cells(self) -> Cells:
        """Means and standard deviations by line and point."""
        return self.study.summarize(self.results)

    @property
    def points(self) -> list[float]:
        """The points on the axis."""
        return self.study.points(self.results)

    def lines(self, **filters: Any) -> dict[Key, dict[float, Cell]]:
        """Return the lines whose key has the given dataset, measure, method, epsilon, variant."""
        return {
            key: line
            for key, line in self.cells.items()
            if all(getattr(key, name) == value for name, value in filters.items())
        }

    def line(self, **filters: Any) -> dict[float, Cell]:
        """Return the only line that fits."""
        found = self.lines(**filters)
        if len(found) != 1:
            names = ", ".join(f"{name} {value}" for name, value in filters.items())
            raise InvalidParameter(f"{len(found)} lines have {names}; exactly one must")
        return next(iter(found.values()))

    def mean(self, *, point: float, **filters: Any) -> float:
        """Return the mean at a point of the only line that fits."""
        return self.line(**filters)[point].mean

    def means(self, **filters: Any) -> dict[float, float]:
        """Return the means of the only line that fits, by point."""
        return {point: cell.mean for point, cell in self.line(**filters).items()}


@dataclass(frozen=True)
class Run:
    """How an item is run again.

    Attributes:
        study: The name of the experiment.
        figure: Its figure; None for the usual one.
        repeats: How often, in the short version.
        options: Further options of the experiment, in the short version.
        full: What the full version has instead: options, and perhaps `repeats`.
    """

    study: str
    figure: str | None = None
    repeats: int = 1
    options: Mapping[str, Any] = field(default_factory=dict)
    full: Mapping[str, Any] = field(default_factory=dict)

    def given(self, *, is_full: bool) -> dict[str, Any]:
        """Return all options of the experiment, the figure and the repeats among them."""
        found = {"repeats": self.repeats, **self.options, **(self.full if is_full else {})}
        return found if self.figure is None else {"figure": self.figure, **found}

    def command(self, *, is_full: bool) -> str:
        """Write the command.

        >>> Run("kmeans", "blocks", 2, {"datasets": ("s1",)}).command(is_full=False)
        'dpublish experiment kmeans --figure blocks --repeats 2 --datasets s1'
        """
        words = [
            f"{option} {text}"
            for name, value in self.given(is_full=is_full).items()
            for option, text in _option(name, value)
        ]
        return " ".join([f"dpublish experiment {self.study}", *words])


def _option(name: str, value: Any) -> list[tuple[str, str]]:
    if name == "settings":
        return [("--set", f"{key}={one}") for key, one in value.items()]
    text = str(value) if isinstance(value, str | int) else ",".join(map(str, value))
    quoted = f'"{text}"' if " " in text else text
    return [(f"--{name.replace('_', '-')}", quoted)]


@dataclass(frozen=True)
class Item:
    """A figure, a table or a claim of one or more documents.

    Attributes:
        numbers: Where it stands: "Table 5.3" by document.
        title: What it is about.
        printed: What the document prints or says.
        run: How to run it again; None if there is nothing to run.
        check: What came out of the run, and whether it is what was printed.
        exact: Whether the check compares figures; otherwise orders and shapes.
        because: Why ours differs, or why it cannot be had.
        tested: The tests that check a claim, where there is nothing to run.
    """

    numbers: Mapping[str, str]
    title: str
    printed: str
    run: Run | None = None
    check: Callable[[Outcome], Finding] | None = None
    exact: bool = False
    because: str = ""
    tested: str = ""

    def __post_init__(self) -> None:
        if (self.run is None) != (self.check is None):
            raise InvalidParameter(f"{self.title}: a run needs a check, and a check a run")
        if self.run is None and not (self.tested or self.because):
            raise InvalidParameter(f"{self.title}: say where it is tested or why it is missing")

    def judge(self, outcome: Outcome | None) -> tuple[Verdict, str]:
        """Return the verdict and what came out."""
        if self.check is None or outcome is None:
            return (Verdict.TESTED, self.because) if self.tested else (Verdict.CANNOT, "")
        found = self.check(outcome)
        if not found.holds:
            return Verdict.DIFFERS, found.ours
        return (Verdict.REPRODUCED if self.exact else Verdict.IN_ORDER), found.ours
