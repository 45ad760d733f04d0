"""Measures: what is asked of each group, read from text such as `quantile(cost, 0.9)`."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal

from dpublish.data.column import NumberColumn
from dpublish.data.date_column import DateColumn
from dpublish.data.schema import Schema
from dpublish.errors import InvalidParameter, require_known
from dpublish.privacy.epsilon import format_epsilon, parse_epsilon

Function = Literal["count", "sum", "mean", "variance", "std", "quantile"]
FUNCTIONS = ("count", "sum", "mean", "variance", "std", "median", "quantile")
_CALL = re.compile(r"\s*([A-Za-z_]+)\s*(?:\((.*)\))?\s*", re.S)
_FINEST_PART = 10_000
_LARGEST = 1e100


@dataclass(frozen=True)
class Measure:
    """One number for each group.

    Attributes:
        function: What is computed; a median is a quantile.
        column: Of which column; None for the number of all records of a group.
        part: Which quantile; None for other functions.

    >>> str(read_measure("quantile(cost, 0.90)")), str(read_measure("quantile(stay, 0.5)"))
    ('quantile(cost, 0.9)', 'median(stay)')
    """

    function: Function
    column: str | None = None
    part: Fraction | None = None

    def __str__(self) -> str:
        if self.column is None:
            return self.function
        name = f'"{self.column}"' if re.search(r'[(),="]', self.column) else self.column
        if self.part is None:
            return f"{self.function}({name})"
        if self.part == Fraction(1, 2):
            return f"median({name})"
        return f"quantile({name}, {format_epsilon(self.part)})"

    @property
    def is_additive(self) -> bool:
        """Whether numbers of groups add up to that of all of them."""
        return self.function in ("count", "sum")


_OTHER_NAMES = {
    "avg": "mean",
    "average": "mean",
    "var": "variance",
    "stddev": "std",
    "stdev": "std",
    "percentile": "quantile",
    "total": "sum",
    "n": "count",
}


def read_measures(listed: str | Iterable[str]) -> tuple[Measure, ...]:
    """Read a list of measures, each of them once.

    A text may hold several; a list may have been cut at every comma, also within parentheses.

    >>> [str(x) for x in read_measures("count, quantile(cost, 0.9)")]
    ['count', 'quantile(cost, 0.9)']
    """
    found = tuple(read_measure(text) for text in split_outside(listed))
    if not found:
        raise InvalidParameter('measures must name at least one, such as "count, mean(age)"')
    for one in found:
        if found.count(one) > 1:
            raise InvalidParameter(f"the measure {one} is listed twice")
    return found


def read_measure(text: str) -> Measure:
    """Read one measure."""
    call = _CALL.fullmatch(text)
    if call is None:
        raise InvalidParameter(
            f"the measure {text.strip()!r} cannot be read; write count, or a function of a "
            "column such as mean(age) or quantile(cost, 0.9)"
        )
    name, inner = call.group(1).lower(), call.group(2)
    if name in _OTHER_NAMES:
        raise InvalidParameter(f"the measure {name!r} is called {_OTHER_NAMES[name]!r} here")
    require_known("measure", name, FUNCTIONS)
    if name == "count":
        column = None if inner is None or inner.strip() in ("", "*") else _name(inner, text)
        return Measure("count", column)
    if inner is None or not inner.strip():
        raise InvalidParameter(f"the measure {name} needs a column: {name}(COLUMN)")
    if name == "median":
        return Measure("quantile", _name(inner, text), Fraction(1, 2))
    if name != "quantile":
        return Measure(name, _name(inner, text))  # type: ignore[arg-type]
    column, comma, part = inner.rpartition(",")
    if not comma:
        raise InvalidParameter(f"{text.strip()} needs a part: quantile(COLUMN, 0.9)")
    return Measure("quantile", _name(column, text), _read_part(part, text))


def _name(text: str, measure: str) -> str:
    text = text.strip()
    if len(text) > 1 and text[0] == text[-1] == '"':
        return text[1:-1]
    if "," in text or not text:
        raise InvalidParameter(
            f"the measure {measure.strip()!r} is of one column, which it names; decimals are "
            "written with a point: quantile(cost, 0.9)"
        )
    return text


def _read_part(text: str, measure: str) -> Fraction:
    problem = InvalidParameter(
        f"the part of {measure.strip()} must lie between 0 and 1, with at most 4 decimals"
    )
    try:
        part = parse_epsilon(text.strip(), "part")
    except InvalidParameter:
        raise problem from None
    if not 0 < part < 1 or _FINEST_PART % part.denominator:
        raise problem
    return part


def split_outside(listed: str | Iterable[str]) -> list[str]:
    """Split a text at its commas, but not within parentheses or quotes.

    >>> split_outside(["count", "quantile(cost", " 0.9)=2"])
    ['count', 'quantile(cost, 0.9)=2']
    """
    text = listed if isinstance(listed, str) else ",".join(map(str, listed))
    parts, depth, is_quoted = [""], 0, False
    for letter in text:
        is_quoted ^= letter == '"'
        depth += 0 if is_quoted else (letter == "(") - (letter == ")")
        if letter == "," and depth <= 0 and not is_quoted:
            parts.append("")
        else:
            parts[-1] += letter
    return [part.strip() for part in parts if part.strip()]


def read_shares(listed: str | Iterable[str], measures: Sequence[Measure]) -> dict[Measure, int]:
    """Read how much of epsilon measures get, in proportion: `mean(age)=2, count=1`.

    A measure that is not named gets 1, if any is.
    """
    found: dict[Measure, int] = {}
    for text in split_outside(listed):
        name, equals, weight = text.rpartition("=")
        if not equals or not (weight.strip().isascii() and weight.strip().isdigit()):
            raise InvalidParameter(
                f"the share {text!r} must be a measure and an integer: mean(age)=2"
            )
        measure, amount = read_measure(name), int(weight)
        require_known("measure with a share:", str(measure), [str(one) for one in measures])
        if measure in found:
            raise InvalidParameter(f"the share of {measure} is given twice")
        if not 1 <= amount <= _FINEST_PART:
            raise InvalidParameter(f"the share of {measure} must lie from 1 to {_FINEST_PART:,}")
        found[measure] = amount
    return {one: found.get(one, 1) for one in measures} if found else {}


def require_measurable(schema: Schema, measures: Sequence[Measure]) -> None:
    """Refuse a column that the schema does not have, or that holds no numbers."""
    for measure in measures:
        if measure.column is None:
            continue
        require_known("column", measure.column, schema.names)
        column = schema[measure.column]
        if not isinstance(column, NumberColumn):
            raise InvalidParameter(
                f"{measure} needs numbers, but column {column.name!r} is of kind {column.kind}; "
                "count it by group instead (--by)"
            )
        if measure.function == "sum" and isinstance(column, DateColumn):
            raise InvalidParameter(
                f"{measure}: dates do not add up; take mean({column.name}), median or count"
            )
        _require_bounds(column, measure)


def _require_bounds(column: NumberColumn, measure: Measure) -> None:
    low, high = map(float, column.bounds)
    if not low < high:
        raise InvalidParameter(f"column {column.name!r} has one value only: no {measure}")
    if max(-low, high) > _LARGEST or high - low < 1 / _LARGEST:
        raise InvalidParameter(
            f"{measure} needs bounds of column {column.name!r} whose squares are numbers: from "
            f"{1 / _LARGEST:g} to {_LARGEST:g} in size"
        )
