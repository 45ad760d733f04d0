"""Plan a release: what it would cost and how far it would be from the truth; no data is read."""

import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import ROUND_CEILING, Context, Decimal
from fractions import Fraction
from math import inf, isfinite, log10
from typing import Any

from dpublish.accuracy.rounding import format_number
from dpublish.core.method import Method, Predicts, figure_name
from dpublish.core.settings import written_settings
from dpublish.data.column import NumberColumn
from dpublish.data.schema import Schema
from dpublish.data.schema_file import to_schema
from dpublish.display import Card, Display, draw, one_line
from dpublish.errors import InvalidParameter, plain_refusals, require_count, require_positive
from dpublish.methods.personalized.method import PersonalSettings
from dpublish.privacy.epsilon import EpsilonLike, format_rounded, format_short, parse_epsilon
from dpublish.privacy.neighbors import AddRemoveUnit
from dpublish.publishing.requests import read_any_method
from dpublish.publishing.table import predict, predict_error, read_epsilon

_MOST = Fraction(10_000)
THEORY = "the figures are theory: bounds of the noise, from public facts alone"
LACKING: Mapping[str, str] = {
    "classification": "how many predictions will be wrong",
    "model fitting": "how many predictions will be wrong, or by how much",
    "clustering": "how far records will lie from their centers",
    "shapes": "how many records will end up in another cluster",
    "synthesis": "how far pairs of columns of the rows will be from the truth",
}
"""What theory does not predict, by what a method is for; `rehearse` measures it."""
_WANTED = {"clustering": "distance <= 1.1", "shapes": "mismatch <= 0.1"}
_STEPS = [Fraction(step) for step in ("0.15", "0.25", "0.4", "0.6", "1", "1.5", "2.5", "4", "6")]


@dataclass(frozen=True)
class Plan(Display):
    """What a release of `epsilon` is expected to be like."""

    epsilon: Fraction
    summary: str
    figures: Mapping[str, float]
    hidden: str = ""
    """The change to the table that the release would hide."""
    errors_at: Callable[[Sequence[Fraction]], list[float]] | None = field(
        default=None, compare=False, repr=False
    )
    """Predicts the main figure for other epsilons, where the method has one."""
    target: str = field(default="", compare=False, repr=False)
    """The name of that figure among `figures`."""

    def __str__(self) -> str:
        return f"epsilon {format_rounded(self.epsilon)}: {self.summary}"

    def __repr__(self) -> str:
        return one_line(f"Plan({self})")

    def _card(self) -> Card:
        figures = {figure_name(name): format_number(value) for name, value in self.figures.items()}
        said = {"cost": f"epsilon {format_rounded(self.epsilon)}", "expected": self.summary}
        hidden = {"hidden": self.hidden} if self.hidden else {}
        return Card("Plan", {**said, **figures, **hidden})

    def _as_records(self) -> list[dict[str, Any]]:
        return [{"epsilon": float(self.epsilon), "summary": self.summary, **self.figures}]

    def plot(self, epsilons: Sequence[EpsilonLike] | None = None) -> Any:
        """Draw the expected error over epsilon; returns a Matplotlib figure.

        From a tenth of the plan's epsilon to ten times as much, unless epsilons are named.
        """
        if self.errors_at is None:
            raise InvalidParameter("this plan predicts no error that could be drawn over epsilon")
        steps = [self.epsilon * Fraction(10) ** k for k in (-1, 1)]
        wanted = epsilons or [*steps, *(self.epsilon * x for x in _STEPS)]
        exact = sorted({parse_epsilon(each) for each in wanted})
        drawn = list(zip(exact, self.errors_at(exact), strict=True))
        points = [(float(x), y) for x, y in drawn if isfinite(y)]
        return draw("curve", points, mark=float(self.epsilon), title=str(self))


@plain_refusals
def plan(
    method: Any,
    schema: Any = None,
    *,
    epsilon: EpsilonLike | None = None,
    wanted_error: float | None = None,
    n_records: int | None = None,
    **settings: Any,
) -> Plan:
    """Predict the error of a release; free, for no data is read and nothing is spent.

    Args:
        method: The method with its settings; or its name or class, with `settings`.
        schema: What is publicly known of the table: a `Schema`, the path of a schema file, or a
            dict with the keys of such a file.
        epsilon: What would be spent; or leave it out and name
        wanted_error: the error to come down to, for which the smallest epsilon is found.
        n_records: Roughly how many records there are, if that is public.
        settings: Those of the method, if it is named: columns and the like.

    >>> from dpublish import Histogram, Schema, column, plan
    >>> schema = Schema((column("sex", "category", values=["Female", "Male"]),))
    >>> print(plan(Histogram(columns=("sex",)), schema, epsilon="0.5"))
    epsilon 0.5: 2 cells; each count within 6 of the truth (95 %)
    >>> print(plan("histogram", schema, columns="sex", epsilon=0.5))
    epsilon 0.5: 2 cells; each count within 6 of the truth (95 %)
    """
    if (epsilon is None) == (wanted_error is None):
        raise InvalidParameter(
            "name either epsilon (epsilon=0.5) or wanted_error (wanted_error=20)"
        )
    chosen, known = read_any_method(method, settings), to_schema(schema)
    if n_records is not None:
        require_count(n_records=n_records, at_least=0)
    if epsilon is not None:
        exact = read_epsilon(epsilon, has_levels=isinstance(chosen, PersonalSettings))
    else:
        exact = epsilon_for(chosen, known, n_records, _read_wanted(wanted_error))
    expected = predict(chosen, known, n_records, exact)
    has_target = expected.target in expected.figures

    def errors_at(epsilons: Sequence[Fraction]) -> list[float]:
        return [_error_at(chosen, known, n_records, each) for each in epsilons]

    return Plan(
        exact,
        expected.summary,
        dict(expected.figures),
        chosen.neighbors(known).brief(),
        errors_at if has_target else None,
        expected.target if has_target else "",
    )


def _error_at(method: Predicts, schema: Schema, n_records: int | None, epsilon: Fraction) -> float:
    """Predict the main figure; infinite where epsilon does not fit the method."""
    try:
        expected = predict_error(method, schema, n_records, epsilon)
    except InvalidParameter:
        return inf
    return expected.figures.get(expected.target, inf)


def _read_wanted(error: Any) -> float:
    require_positive(wanted_error=error)
    return float(error)


@dataclass(frozen=True)
class Trade:
    """What a bound on the rows of a unit means: more noise, and more rows kept.

    Attributes:
        contribution: Most rows of one unit that are kept.
        figure: Which figure of the expected error is shown; None if the method refuses the bound.
        error: Its value.
        kept: Which part of the rows is kept, if the rows per unit are known.
    """

    contribution: int
    figure: str | None
    error: float | None
    kept: float | None


def trade_of_bounds(
    method: Method[Any],
    schema: Schema,
    epsilon: Fraction,
    *,
    n_records: int | None = None,
    rows_per_unit: float | None = None,
    bounds: Sequence[int] = (1, 2, 4, 8, 16),
) -> list[Trade]:
    """Set several bounds side by side; free, for no data is read.

    `rows_per_unit` is how many rows a unit has on average, if that is public; what part of the
    rows is kept then assumes that rows per unit are distributed geometrically.

    >>> from dpublish import Histogram, Schema, column
    >>> schema = Schema((column("sex", "category", values=["F", "M"]),), unit="patient")
    >>> method = Histogram(columns=("sex",))
    >>> for each in trade_of_bounds(method, schema, Fraction(1), bounds=(1, 4)):
    ...     print(each.contribution, each.figure, each.error)
    1 one_cell_95 3.0
    4 one_cell_95 12.0
    """
    found = []
    for most in bounds:
        kept = None if rows_per_unit is None else kept_part(most, rows_per_unit)
        try:
            bounded = replace(method, contribution=most)
            expected = bounded.predict_error(schema, n_records, epsilon)
        except InvalidParameter:  # too little epsilon for so many rows
            found.append(Trade(most, None, None, kept))
            continue
        error = expected.figures.get(expected.target)
        found.append(Trade(most, None if error is None else expected.target, error, kept))
    return found


def find_trades(
    method: Predicts,
    schema: Schema,
    epsilon: Fraction,
    *,
    n_records: int | None,
    rows_per_unit: float | None = None,
) -> list[Trade]:
    """Set bounds side by side where rows belong to units; nothing to trade elsewhere."""
    if schema.unit is None or not isinstance(method, Method):
        return []
    if hides_units(method):
        return []
    return trade_of_bounds(
        method, schema, epsilon, n_records=n_records, rows_per_unit=rows_per_unit
    )


def hides_units(method: Predicts) -> bool:
    """Check whether a method hides units as it is set, without a bound on their rows."""
    if not isinstance(method, Method):
        return True
    return method.contribution is None and AddRemoveUnit in method.hidden


def kept_part(most: int, rows_per_unit: float) -> float:
    """Return which part of the rows is kept, if units have a geometric number of rows.

    Of a unit with R rows min(R, m) are kept, whose mean is (1 - q^m) times that of R, where
    q = 1 - 1 / mean.

    >>> round(kept_part(4, 4.5), 3), kept_part(1, 1)
    (0.634, 1.0)
    """
    if not isfinite(rows_per_unit) or rows_per_unit < 1:
        raise InvalidParameter(f"records per person ({rows_per_unit}) must be a number from 1 on")
    return float(1 - (1 - 1 / rows_per_unit) ** most)


def epsilon_for(
    method: Predicts,
    schema: Schema,
    n_records: int | None,
    wanted: float,
    *,
    schema_path: str | None = None,
) -> Fraction:
    """Find the smallest epsilon whose expected error is at most `wanted`.

    It is rounded up to three digits, and not sought below one millionth.  Where the expected
    error is not one of what the release is for, it is refused: `rehearse` measures that.
    """
    if not wanted > 0:
        raise InvalidParameter(f"wanted error ({wanted}) must be greater than 0")

    most = method.levels[-1] if isinstance(method, PersonalSettings) else _MOST
    _require_theory(method, schema, n_records, most, wanted, schema_path)

    def error_at(exponent: float) -> float:
        expected = predict_error(method, schema, n_records, min(_rounded(10**exponent), most))
        if expected.target not in expected.figures:
            raise InvalidParameter("the error depends on the number of records; name it (--rows)")
        return expected.figures[expected.target]

    def error_or_infinite(exponent: float) -> float:
        try:
            return error_at(exponent)
        except InvalidParameter:  # too small an epsilon for this method: settings were checked
            return inf

    low, high = -6.0, log10(most)
    if error_at(high) > wanted:
        raise InvalidParameter(
            f"no epsilon up to {format_short(most)} brings the error down to {wanted}"
        )
    for _ in range(40):
        middle = (low + high) / 2
        low, high = (low, middle) if error_or_infinite(middle) <= wanted else (middle, high)
    return min(_rounded(10**high), most)


def _require_theory(
    method: Predicts,
    schema: Schema,
    n_records: int | None,
    epsilon: Fraction,
    wanted: float,
    schema_path: str | None,
) -> None:
    """Refuse to plan for an error that theory does not predict, and write what measures it."""
    expected = predict_error(method, schema, n_records, epsilon)
    if expected.is_of_goal:
        _require_records(method, schema, wanted, schema_path)
        return
    raise InvalidParameter(
        f"{method.name}: theory bounds {figure_name(expected.target)}, which is noise on the way, "
        f"and not {lacking(method) or 'what the release is for'}; no epsilon follows from a wanted "
        f"error of {wanted:g}. Measure it on public rows instead: "
        + rehearse_command(method, schema, schema_path, wanted=wanted)
    )


def _require_records(
    method: Predicts, schema: Schema, wanted: float, schema_path: str | None
) -> None:
    """Refuse a part of one record as the error of rows: who asks for 0.1 does not mean a count."""
    inner = getattr(method, "inner", method)
    if wanted >= 1 or getattr(inner, "task", "") != "synthesis":
        return
    raise InvalidParameter(
        f"{method.name}: theory bounds the error of counts, in records, and {wanted:g} is less "
        "than one; for an error of counts write 1 or more. "
        f"{LACKING['synthesis'].capitalize()}, a part of 1, is measured on public rows: "
        + rehearse_command(method, schema, schema_path, wanted=wanted)
    )


def lacking(method: Predicts) -> str | None:
    """Return what theory does not predict of a method's releases, in words; None if nothing."""
    inner = getattr(method, "inner", method)
    return LACKING.get(getattr(inner, "task", ""))


def rehearse_command(
    method: Predicts,
    schema: Schema,
    schema_path: str | None = None,
    *,
    wanted: float | None = None,
) -> str:
    """Write the command that measures on public rows what theory does not predict.

    >>> from dpublish import PrivPfC, Schema, column
    >>> schema = Schema((column("sex", "category", values=["F", "M"]),))
    >>> print(rehearse_command(PrivPfC(target="sex"), schema, "people.toml", wanted=0.1))
    dpublish rehearse --method privpfc --target sex --schema people.toml \
--stand-in EARLIER_RELEASE --wanted 'wrong <= 0.1'
    """
    inner: Any = getattr(method, "inner", method)
    words = ["dpublish", "rehearse", "--method", inner.name]
    if isinstance(inner, Method):
        for name, value in written_settings(inner).items():
            words += [f"--{name.replace('_', '-')}", value]
    words += ["--schema", schema_path or "schema.toml", "--stand-in", "EARLIER_RELEASE"]
    if wanted is not None:
        words += ["--wanted", _wanted(inner, schema, wanted)]
    return shlex.join(words)


def _wanted(method: Any, schema: Schema, error: float) -> str:
    """Write a wanted error in the unit of the goal."""
    if method.task in _WANTED:
        return _WANTED[method.task]
    if method.task == "synthesis":
        return f"tv <= {error if error < 1 else 0.05:g}"
    target = getattr(method, "target", None)
    if isinstance(target, str) and isinstance(schema[target], NumberColumn):
        return f"rmse <= {error:g}"
    return f"wrong <= {error if error < 1 else 0.2:g}"


def _rounded(value: float) -> Fraction:
    return Fraction(Context(prec=3, rounding=ROUND_CEILING).create_decimal(Decimal(value)))
