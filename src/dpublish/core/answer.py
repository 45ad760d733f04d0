"""An answer with an interval, and on what the interval rests."""

from dataclasses import asdict, dataclass, field
from typing import Any, Literal, get_args

from dpublish.accuracy.rounding import format_number
from dpublish.display import Card, Display, draw, one_line
from dpublish.errors import InvalidParameter, require_known

IntervalKind = Literal["confidence", "model"]
"""On what an interval rests: on the noise alone, or on a model too."""


@dataclass(frozen=True)
class Answer(Display):
    """An estimate, and an interval that holds the truth with probability `confidence`.

    >>> print(Answer(12.25, 10, 1234.5, 0.95))
    12.2 (95 % confidence interval 10 to 1,234.5)

    Without an interval (`low` and `high` are None) no honest one is known.

    The `kind` says on what the interval rests.  A "confidence" interval rests on the noise
    alone, whose distribution is known: it holds with the stated probability, whatever the
    records are.  A "model" interval holds with that probability only if a model fits; which
    one, `assumption` states.  Beside it, `bounds` are the confidence interval, where one is
    known: it is wider, and holds whether the model fits or not.

    >>> print(Answer(1234, 1100, 1300, 0.95, "age and pay follow a copula", kind="model"))
    1,234 (95 % model interval 1,100 to 1,300)

    The `assumption` of a confidence interval tells how the estimate was made and what the
    interval allows for.  `counts` says which records were counted.
    """

    value: float
    low: float | None
    high: float | None
    confidence: float
    assumption: str | None = None
    counts: str | None = field(default=None, compare=False, repr=False)
    kind: IntervalKind = field(default="confidence", kw_only=True)
    bounds: tuple[float, float] | None = field(default=None, kw_only=True)

    def __post_init__(self) -> None:
        require_known("kind of interval", self.kind, get_args(IntervalKind))
        if self.kind == "model" and not self.assumption:
            raise InvalidParameter("an answer that rests on a model must state it as assumption")
        if self.kind != "model" and self.bounds is not None:
            raise InvalidParameter(
                "bounds stand beside the interval of a model; a confidence interval is its own"
            )

    @property
    def interval(self) -> IntervalKind | None:
        """The kind of the interval; None where there is no interval."""
        return None if self.low is None or self.high is None else self.kind

    def to_dict(self) -> dict[str, Any]:
        """Turn the answer into plain values for a file; `interval` is the kind, if there is one."""
        plain = asdict(self)
        del plain["kind"]  # without an interval it would say something of none
        del plain["bounds"]
        low, high = (None, None) if self.bounds is None else self.bounds
        return plain | {"interval": self.interval, "bounds_low": low, "bounds_high": high}

    def __repr__(self) -> str:
        return one_line(f"Answer({self})".replace(" (", ", ", 1).removesuffix(")"))

    def _card(self) -> Card:
        said = {"answer": str(self), "rests on": self.assumption, "counts": self.counts}
        return Card("Answer", {name: text for name, text in said.items() if text})

    def _as_records(self) -> list[dict[str, Any]]:
        return [self.to_dict()]

    def plot(self) -> Any:
        """Draw the value and its interval; returns a Matplotlib figure."""
        return draw("dot_chart", [""], [self.value], [(self.low, self.high)], title=str(self))

    def __str__(self) -> str:
        value = _written(max(self.value, 0.0))  # no count is negative, though an estimate may be
        if self.low is None or self.high is None:
            return f"{value} (no confidence interval is offered)"
        interval = f"{_written(self.low)} to {_written(self.high)}"
        percent = format_number(100 * self.confidence, 14)
        told = f"{value} ({percent} % {self.kind} interval {interval}"
        if self.bounds is None:
            return f"{told})"
        low, high = map(_written, self.bounds)
        return f"{told}; {low} to {high} whether the model fits or not)"


def _written(number: float) -> str:
    return f"{number:,.1f}".removesuffix(".0")
