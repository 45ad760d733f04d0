"""Curves over epsilon as the studio's pages draw them: small SVG that follows the page's colors.

Everything that is drawn stands in a template as numbers and words; nothing here is HTML.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import ceil, floor, isfinite, log10
from typing import Literal, NamedTuple

from dpublish.accuracy.rounding import format_number
from dpublish.planning.rehearsal import Rehearsal, Repeats
from dpublish.plots.style import plain_number
from dpublish.privacy.epsilon import format_rounded

WIDTH, HEIGHT = 460.0, 250.0
_LEFT, _RIGHT, _TOP, _BOTTOM = 58.0, 16.0, 14.0, 34.0
_ROOM = 0.06  # above and below what is drawn, as a part of its height
_MOST_TICKS = 6
_STEPS = (1, 2, 5, 10)
_APART = 30.0  # between labels of the axis of epsilon


class Tick(NamedTuple):
    """A position along an axis, and what is written there."""

    at: float
    label: str


class Mark(NamedTuple):
    """A vertical line at an epsilon, and what is written beside it."""

    at: float
    label: str
    kind: Literal["wanted", "limit", "knee"]

    @property
    def is_far(self) -> bool:
        """Whether its words stand to the left of it, for want of room at the right."""
        return self.at > WIDTH - _RIGHT - 110


@dataclass(frozen=True)
class Picture:
    """A curve with its axes, in units of a picture of `WIDTH` by `HEIGHT`.

    Attributes:
        title: What is drawn, for those who do not see it.
        line: The points of the curve, as an attribute of SVG.
        band: The outline of the range around it; empty without one.
        dots: Points that were measured or are marked.
        across: The ticks of epsilon.
        up: The ticks of the figure.
        marks: What is marked along epsilon.
        level: The height of a value that is wanted, or None.
    """

    title: str
    line: str
    across: tuple[Tick, ...]
    up: tuple[Tick, ...]
    dots: tuple[tuple[float, float], ...] = ()
    band: str = ""
    marks: tuple[Mark, ...] = ()
    level: float | None = None
    width: float = WIDTH
    height: float = HEIGHT
    left: float = _LEFT
    right: float = WIDTH - _RIGHT
    top: float = _TOP
    bottom: float = HEIGHT - _BOTTOM


@dataclass(frozen=True)
class Scale:
    """An axis: which value lies where."""

    low: float
    high: float
    start: float
    end: float
    is_log: bool

    @classmethod
    def over(
        cls, values: Sequence[float], start: float, end: float, *, is_log: bool, room: float = 0.0
    ) -> "Scale":
        """Make the axis that shows all of some values.

        >>> Scale.over([1.0, 100.0], 0, 10, is_log=True).at(10)
        5.0
        """
        low, high = min(values), max(values)
        if low == high:
            low, high = (low / 2, high * 2) if is_log else (low - 0.5, high + 0.5)
        if is_log:
            part = (high / low) ** room
            return cls(low / part, high * part, start, end, is_log)
        part = (high - low) * room
        return cls(max(low - part, min(low, 0.0)), high + part, start, end, is_log)

    def at(self, value: float) -> float:
        """Return where a value lies; beyond the ends, at the end."""
        found, low, high = (self._turned(each) for each in (value, self.low, self.high))
        part = min(max((found - low) / (high - low), 0.0), 1.0)
        return round(self.start + part * (self.end - self.start), 1)

    def _turned(self, value: float) -> float:
        return log10(max(value, 1e-300)) if self.is_log else value

    def ticks(self) -> list[float]:
        """Choose round values along the axis, a handful of them."""
        return _log_ticks(self.low, self.high) if self.is_log else _even_ticks(self.low, self.high)


def error_curve(
    points: Sequence[tuple[Fraction, float]],
    *,
    figure: str,
    marked: tuple[Fraction, float],
    left: Fraction | None,
) -> Picture | None:
    """Draw an error that theory predicts over epsilon, with one epsilon marked; None of nothing.

    >>> drawn = error_curve([(Fraction(1), 9.0), (Fraction(2), 4.0)], figure="one cell",
    ...                     marked=(Fraction(1), 9.0), left=None)
    >>> drawn.line.count(","), [mark.label for mark in drawn.marks]
    (2, ['ε 1'])
    """
    found = sorted({float(x): y for x, y in (*points, marked)}.items())
    shown = [(x, y) for x, y in found if isfinite(y) and y >= 0]
    if len(shown) < 2:
        return None
    across = Scale.over([x for x, _ in shown], _LEFT, WIDTH - _RIGHT, is_log=True)
    above = [y for _, y in shown if y > 0]  # an error of 0 lies at the foot of the curve
    up = _up(above, is_log=True) if len(above) > 1 else _up([y for _, y in shown], is_log=False)
    marks = [Mark(across.at(float(marked[0])), f"ε {format_rounded(marked[0])}", "wanted")]
    if left is not None and across.low < left < across.high:
        marks.append(Mark(across.at(float(left)), f"left: {format_rounded(left)}", "limit"))
    return Picture(
        title=f"{figure} against epsilon; at epsilon {format_rounded(marked[0])} it is "
        f"{format_number(marked[1])}",
        line=_points([(across.at(x), up.at(y)) for x, y in shown]),
        across=_epsilon_ticks(across),
        up=_ticks(up),
        dots=((across.at(float(marked[0])), up.at(marked[1])),),
        marks=tuple(marks),
    )


def rehearsed_curves(found: Rehearsal, marked: Fraction | None) -> list[Picture]:
    """Draw every measure of a rehearsal over epsilon: medians, the range of the repeats, marks."""
    epsilons = [float(point.epsilon) for point in found.points]
    around = [*epsilons, *([] if marked is None else [float(marked)])]
    across = Scale.over(around, _LEFT, WIDTH - _RIGHT, is_log=True)
    marks = _marks_of(found, marked, across)
    drawn = []
    for one in found.shown():
        values = [point.figures[one.name] for point in found.points]
        wanted = found.wanted if found.wanted and found.wanted.name == one.name else None
        ends = [each for point in values for each in (point.low, point.high)]
        up = _up([*ends, *([] if wanted is None else [wanted.value])], is_log=False)
        xs = [across.at(each) for each in epsilons]
        medians = [up.at(each.median) for each in values]
        lows, highs = ([up.at(getattr(each, end)) for each in values] for end in ("low", "high"))
        around_it = [*zip(xs, highs, strict=True), *reversed([*zip(xs, lows, strict=True)])]
        drawn.append(
            Picture(
                title=f"{one.title} against epsilon: {_ends(found, values)}",
                line=_points([*zip(xs, medians, strict=True)]),
                band=_points(around_it),
                dots=tuple(zip(xs, medians, strict=True)),
                across=_epsilon_ticks(across),
                up=_ticks(up),
                marks=marks,
                level=None if wanted is None else up.at(wanted.value),
            )
        )
    return drawn


def has_knee(found: Rehearsal) -> bool:
    """Whether more stopped paying among the epsilons that were tried."""
    return found.knee != found.points[-1].epsilon


def _ends(found: Rehearsal, values: Sequence[Repeats]) -> str:
    """Say in words where a curve begins and ends."""
    told = [
        f"{format_number(each.median, 3)} at epsilon {format_rounded(point.epsilon)}"
        for point, each in zip(found.points, values, strict=True)
    ]
    return told[0] if len(told) == 1 else f"{told[0]}, {told[-1]}"


def _marks_of(found: Rehearsal, marked: Fraction | None, across: Scale) -> tuple[Mark, ...]:
    """Mark where more stops paying, the epsilon for what was wanted, and that of the plan."""
    marks = []
    if has_knee(found):
        marks.append(Mark(across.at(float(found.knee)), "stops paying", "knee"))
    if found.wanted is not None and found.epsilon is not None:
        words = f"suffices: {format_rounded(found.epsilon)}"
        marks.append(Mark(across.at(float(found.epsilon)), words, "limit"))
    if marked is not None:
        marks.append(Mark(across.at(float(marked)), f"ε {format_rounded(marked)}", "wanted"))
    return tuple(marks)


def _up(values: Sequence[float], *, is_log: bool) -> Scale:
    return Scale.over(values, HEIGHT - _BOTTOM, _TOP, is_log=is_log, room=_ROOM)


def _ticks(scale: Scale) -> tuple[Tick, ...]:
    return tuple(Tick(scale.at(each), plain_number(each)) for each in scale.ticks())


def _epsilon_ticks(across: Scale) -> tuple[Tick, ...]:
    """Label the axis of epsilon, without labels that would touch."""
    found: list[Tick] = []
    for tick in _ticks(across):
        if not found or tick.at - found[-1].at >= _APART:
            found.append(tick)
    return tuple(found)


def _points(found: Sequence[tuple[float, float]]) -> str:
    return " ".join(f"{x:g},{y:g}" for x, y in found)


def _log_ticks(low: float, high: float) -> list[float]:
    """Choose 1, 2 and 5 of every power of ten, or fewer of them.

    >>> _log_ticks(0.01, 10), _log_ticks(3, 40)
    ([0.01, 0.1, 1.0, 10.0], [5.0, 10.0, 20.0])
    """
    powers = range(floor(log10(low)) - 1, ceil(log10(high)) + 1)
    for digits in ((1, 2, 5), (1,)):
        found = [float(f"{digit}e{power}") for power in powers for digit in digits]
        found = [each for each in found if low * 0.9999 <= each <= high * 1.0001]
        if len(found) <= _MOST_TICKS:
            break
    else:
        found = found[:: -(-len(found) // _MOST_TICKS)]
    return found if len(found) > 1 else _even_ticks(low, high)


def _even_ticks(low: float, high: float) -> list[float]:
    """Choose round values at equal distances.

    >>> _even_ticks(0.1, 0.42)
    [0.1, 0.2, 0.3, 0.4]
    """
    rough = (high - low) / (_MOST_TICKS - 1)
    power = 10.0 ** floor(log10(rough))
    step = next(power * each for each in _STEPS if power * each >= rough)
    first = ceil(low / step - 1e-9)
    last = floor(high / step + 1e-9)
    return [float(f"{number * step:.12g}") for number in range(first, last + 1)]
