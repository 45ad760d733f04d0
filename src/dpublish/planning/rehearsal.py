"""What a rehearsal found: a goal's measures against epsilon, and where more stops paying."""

import re
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from decimal import ROUND_CEILING, Context, Decimal
from fractions import Fraction
from functools import cached_property
from html import escape
from math import exp, log
from os import PathLike, fspath
from pathlib import Path
from statistics import median
from typing import Any, Literal

import numpy as np
import pyarrow as pa

from dpublish.accuracy.isotonic import monotone_fit
from dpublish.accuracy.rounding import format_number
from dpublish.display import arrow_to_pandas, arrow_to_polars
from dpublish.errors import InvalidParameter, InvalidType, require_known
from dpublish.planning.measures import Measure
from dpublish.planning.stand_in import STAMP
from dpublish.plots.curves import Curve, draw_curves
from dpublish.plots.style import Drawing, can_draw
from dpublish.privacy.epsilon import format_epsilon, format_rounded
from dpublish.storage.files import require_writable, whole_file
from dpublish.types import FloatArray

REST = 0.1
"""More epsilon stops paying where less than this part of the whole improvement is left."""
_WANTED = re.compile(r"\s*([a-z0-9_]+)\s*(<=|>=|<|>)\s*([0-9.eE+-]+)\s*")
_PICTURES = (".svg", ".png")


@dataclass(frozen=True)
class Repeats:
    """The median of a few repeats, the least and the largest."""

    median: float
    low: float
    high: float

    @classmethod
    def of(cls, values: Sequence[float]) -> "Repeats":
        """Gather repeats."""
        return cls(float(median(values)), float(min(values)), float(max(values)))

    def __str__(self) -> str:
        shown = [format_number(value, 3) for value in (self.median, self.low, self.high)]
        return f"{shown[0]} ({shown[1]} to {shown[2]})"


@dataclass(frozen=True)
class Point:
    """What was measured at one epsilon."""

    epsilon: Fraction
    figures: Mapping[str, Repeats]


@dataclass(frozen=True)
class Wanted:
    """A measure and the value that it should reach: `wrong <= 0.18`."""

    name: str
    relation: Literal["<=", ">="]
    value: float

    @classmethod
    def parse(cls, text: "str | Wanted", measures: Sequence[Measure]) -> "Wanted":
        """Read what is wanted; refuse measures that are not taken, and the wrong direction.

        >>> from dpublish.planning.measures import AUC, WRONG
        >>> Wanted.parse("wrong <= 0.18", (WRONG, AUC))
        Wanted(name='wrong', relation='<=', value=0.18)
        """
        if isinstance(text, Wanted):
            return text
        if not isinstance(text, str):
            raise InvalidType(
                f"wanted is a text such as 'wrong <= 0.18', not {type(text).__name__}"
            )
        first = measures[0]
        example = f"{first.name} {'<=' if first.is_better_low else '>='} 0.2"
        found = _WANTED.fullmatch(text)
        try:
            name, sign, value = (found.group(1), found.group(2), float(found.group(3)))  # type: ignore[union-attr]
        except (AttributeError, ValueError):
            raise InvalidParameter(
                f"{text!r} cannot be read; write what is wanted as {example!r}"
            ) from None
        by_name = {measure.name: measure for measure in measures}
        require_known("measure", name, by_name)
        is_low = by_name[name].is_better_low
        if is_low != sign.startswith("<"):
            raise InvalidParameter(
                f"{by_name[name].title}: {'less' if is_low else 'more'} is better, so write "
                f"{name} {'<=' if is_low else '>='} {value:g}"
            )
        return cls(name, "<=" if is_low else ">=", value)

    def is_met(self, value: float) -> bool:
        """Check whether a value is good enough."""
        return value <= self.value if self.relation == "<=" else value >= self.value

    def __str__(self) -> str:
        return f"{self.name} {self.relation} {self.value:g}"


@dataclass(frozen=True, eq=False)
class Rehearsal:
    """A goal's measures at several epsilons, from a stand-in.  No private row was read.

    Attributes:
        method: The method and its settings, in words.
        stand_in: What stood in for the private table, in words.
        n_records: Number of rows that each release was made from.
        repeats: Number of releases at each epsilon.
        measures: What was measured; the first one is the goal's own.
        points: What was found, by rising epsilon.
        notes: What to keep in mind.
        wanted: What was asked for, or None.
        stamp: That no private row was read.
    """

    method: str
    stand_in: str
    n_records: int
    repeats: int
    measures: tuple[Measure, ...]
    points: tuple[Point, ...]
    notes: tuple[str, ...] = ()
    wanted: Wanted | None = None
    stamp: str = STAMP

    @property
    def measure(self) -> Measure:
        """The measure that decides: the wanted one, or the first."""
        named = self.measures[0].name if self.wanted is None else self.wanted.name
        return next(one for one in self.measures if one.name == named)

    @cached_property
    def fitted(self) -> FloatArray:
        """The medians of the deciding measure, made monotone (isotonic regression)."""
        name = self.measure.name
        medians = np.array([point.figures[name].median for point in self.points])
        return monotone_fit(medians, is_falling=self.measure.is_better_low)

    @cached_property
    def knee(self) -> Fraction:
        """The smallest epsilon tried from which more stops paying.

        What is left to gain up to the largest epsilon tried is there at most a tenth of the
        whole gain, or within the noise of a median: half of the range of the repeats, divided
        by the square root of their number.
        """
        gains = np.abs(self.fitted - self.fitted[-1])
        for point, left in zip(self.points, gains, strict=True):
            values = point.figures[self.measure.name]
            noise = (values.high - values.low) / 2 / self.repeats**0.5
            if left <= max(REST * gains[0], noise):
                return point.epsilon
        return self.points[-1].epsilon

    @cached_property
    def epsilon(self) -> Fraction | None:
        """The smallest epsilon for what is wanted; None if none that was tried suffices.

        It is interpolated between the epsilons tried, on a logarithmic scale, and rounded up to
        two digits.  Where the smallest one tried suffices, it is that one.
        """
        if self.wanted is None:
            raise InvalidParameter("nothing was wanted; name it: wanted='wrong <= 0.18'")
        met = [self.wanted.is_met(float(value)) for value in self.fitted]
        if not any(met):
            return None
        at = met.index(True)
        if at == 0:
            return self.points[0].epsilon
        return self._between(at)

    def _between(self, at: int) -> Fraction:
        """Interpolate between the last epsilon that does not suffice and the first that does."""
        if self.wanted is None:
            return self.points[at].epsilon
        low, high = (log(float(self.points[i].epsilon)) for i in (at - 1, at))
        worse, better = float(self.fitted[at - 1]), float(self.fitted[at])
        part = (self.wanted.value - worse) / (better - worse)
        found = Decimal(exp(low + part * (high - low)))
        rounded = Fraction(Context(prec=2, rounding=ROUND_CEILING).create_decimal(found))
        return min(rounded, self.points[at].epsilon)

    def answer(self) -> list[str]:
        """State where more epsilon stops paying, and which one suffices, in sentences."""
        found = [self._knee_sentence()]
        if self.wanted is not None:
            found.append(self._wanted_sentence(self.wanted))
        return found

    def _knee_sentence(self) -> str:
        name, knee = self.measure.name, format_rounded(self.knee)
        index = [point.epsilon for point in self.points].index(self.knee)
        left = abs(float(self.fitted[index] - self.fitted[-1]))
        last = format_rounded(self.points[-1].epsilon)
        if len(self.points) == 1:
            return f"one epsilon was tried, {knee}; name several to see where more stops paying"
        if index == len(self.points) - 1:
            return f"{name} still improves at epsilon {knee}, the largest one tried"
        return (
            f"it stops paying at epsilon {knee}: up to {last}, {name} improves by "
            f"{format_number(left, 2)} more"
        )

    def _wanted_sentence(self, wanted: Wanted) -> str:
        if self.epsilon is None:
            best = format_number(float(self.fitted[-1]), 3)
            last = format_rounded(self.points[-1].epsilon)
            return (
                f"{wanted}: no epsilon up to {last} suffices on this stand-in; the best is {best}"
            )
        told = f"{wanted}: epsilon {format_rounded(self.epsilon)}"
        if self.epsilon == self.points[0].epsilon:
            return f"{told} suffices, the smallest one tried"
        return f"{told}, interpolated between those tried"

    def headers(self) -> list[str]:
        """Name the columns of the table."""
        return ["epsilon", *(f"{one.name}: median (range)" for one in self.shown())]

    def table(self) -> list[list[str]]:
        """List what was found as texts, one row for each epsilon."""
        return [
            [
                format_rounded(point.epsilon),
                *(str(point.figures[one.name]) for one in self.shown()),
            ]
            for point in self.points
        ]

    def shown(self) -> list[Measure]:
        """List the measures that every release allowed."""
        return [one for one in self.measures if all(one.name in p.figures for p in self.points)]

    def legend(self) -> list[str]:
        """Say what each measure is."""
        return [f"{one.name}: {one.title}" for one in self.shown()]

    def title(self) -> str:
        """Say what was rehearsed on what."""
        often = "once" if self.repeats == 1 else f"{self.repeats} times"
        return f"{self.method}, rehearsed {often} at each epsilon on {self.stand_in}"

    def __str__(self) -> str:
        rows = [self.headers(), *self.table()]
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        lines = ["  ".join(map(str.ljust, row, widths)).rstrip() for row in rows]
        told = [f"  {line}" for line in self.legend()]
        notes = [f"  note: {note}" for note in self.notes]
        return "\n".join([self.title(), self.stamp, *lines, *told, *self.answer(), *notes])

    def __repr__(self) -> str:
        tried = ", ".join(format_rounded(point.epsilon) for point in self.points)
        return f"Rehearsal({self.method}; epsilon {tried}; knee {format_rounded(self.knee)})"

    def to_dict(self) -> dict[str, Any]:
        """Return all of it as plain values, as `--json` prints it."""
        found: dict[str, Any] = {
            "stamp": self.stamp,
            "method": self.method,
            "stand_in": self.stand_in,
            "n_records": self.n_records,
            "repeats": self.repeats,
            "measures": {one.name: one.title for one in self.shown()},
            "points": [
                {"epsilon": format_epsilon(point.epsilon)}
                | {name: vars(values) for name, values in point.figures.items()}
                for point in self.points
            ],
            "stops_paying_at": format_epsilon(self.knee),
            "notes": list(self.notes),
        }
        if self.wanted is not None:
            enough = None if self.epsilon is None else format_epsilon(self.epsilon)
            found |= {"wanted": str(self.wanted), "epsilon": enough}
        return found

    def to_pandas(self) -> Any:
        """Return a pandas frame, one row for each epsilon and measure: median, low, high."""
        return arrow_to_pandas(self.to_arrow())

    def to_polars(self) -> Any:
        """Return the same as a Polars frame."""
        return arrow_to_polars(self.to_arrow())

    def to_arrow(self) -> pa.Table:
        """Return the same as an Arrow table."""
        listed = [
            {"epsilon": float(point.epsilon), "measure": name, **vars(values)}
            for point in self.points
            for name, values in point.figures.items()
        ]
        return pa.Table.from_pylist(listed)

    def plot(self, path: str | PathLike[str] | None = None) -> Any:
        """Draw each measure against epsilon; with a path (.svg, .png), write the picture.

        Returns a Matplotlib figure.
        """
        target = None if path is None else picture_path(path)
        _require_plots()
        with self._drawn() as drawn:
            if target is not None:
                _write(drawn, target)
            return drawn.figure

    def _drawn(self) -> AbstractContextManager[Drawing]:
        return draw_curves(self._curves(), knee=float(self.knee), stamp=self.stamp)

    def _curves(self) -> list[Curve]:
        points = [float(point.epsilon) for point in self.points]
        found = []
        for one in self.shown():
            repeated = [point.figures[one.name] for point in self.points]
            wanted = self.wanted
            found.append(
                Curve(
                    title=one.title,
                    points=points,
                    medians=[each.median for each in repeated],
                    lows=[each.low for each in repeated],
                    highs=[each.high for each in repeated],
                    limit=wanted.value if wanted is not None and wanted.name == one.name else None,
                )
            )
        return found

    def _repr_html_(self) -> str:
        """Show table and picture in a notebook."""
        head = "".join(f"<th>{escape(text)}</th>" for text in self.headers())
        body = "".join(
            "<tr>" + "".join(f"<td>{escape(text)}</td>" for text in row) + "</tr>"
            for row in self.table()
        )
        told = "".join(f"<p>{escape(line)}</p>" for line in (*self.answer(), *self.notes))
        drawn = ""
        if can_draw():
            with self._drawn() as picture:
                drawn = picture.svg()
        return (
            f"<p><b>{escape(self.title())}</b><br>{escape(self.stamp)}</p>"
            f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{told}{drawn}"
        )


def picture_path(path: str | PathLike[str]) -> Path:
    """Refuse a path that no picture can be written to."""
    target = Path(fspath(path))
    if target.suffix not in _PICTURES:
        raise InvalidParameter(f"{target}: name a file ending in {' or '.join(_PICTURES)}")
    require_writable(target)
    _require_plots()
    return target


def _write(drawn: Drawing, target: Path) -> None:
    with whole_file(target) as draft:
        if target.suffix == ".svg":
            draft.write_text(drawn.svg(), encoding="utf-8")
        else:
            drawn.figure.savefig(draft, format="png", dpi=150)


def _require_plots() -> None:
    if not can_draw():
        raise InvalidParameter(
            "plots need Matplotlib, which is missing; run: pip install matplotlib"
        )
