"""Plan a release: what it would cost and how far it would be from the truth; no data is read."""

from collections.abc import Mapping
from dataclasses import dataclass
from decimal import ROUND_CEILING, Context, Decimal
from fractions import Fraction
from math import inf, log10

from dpublish.core.method import Predicts
from dpublish.data.schema import Schema
from dpublish.errors import InvalidParameter
from dpublish.methods.personalized.method import PersonalSettings
from dpublish.privacy.epsilon import ExactNumber, format_rounded, format_short
from dpublish.publishing.table import predict, predict_error, read_epsilon

_MOST = Fraction(10_000)


@dataclass(frozen=True)
class Plan:
    """What a release of `epsilon` is expected to be like."""

    epsilon: Fraction
    summary: str
    figures: Mapping[str, float]

    def __str__(self) -> str:
        return f"epsilon {format_rounded(self.epsilon)}: {self.summary}"


def plan(
    method: Predicts,
    schema: Schema,
    *,
    epsilon: ExactNumber | None = None,
    wanted_error: float | None = None,
    n_records: int | None = None,
) -> Plan:
    """Predict the error of a release; free, for no data is read and nothing is spent.

    Args:
        method: The method with its settings.
        schema: What is publicly known of the table.
        epsilon: What would be spent; or leave it out and name
        wanted_error: the error to come down to, for which the smallest epsilon is found.
        n_records: Roughly how many records there are, if that is public.

    >>> from dpublish import Histogram, Schema, column, plan
    >>> schema = Schema((column("sex", "category", values=["Female", "Male"]),))
    >>> print(plan(Histogram(columns=("sex",)), schema, epsilon="0.5"))
    epsilon 0.5: 2 cells; each count within 6 of the truth (95 %)
    """
    if (epsilon is None) == (wanted_error is None):
        raise InvalidParameter("name either epsilon or wanted_error")
    if epsilon is not None:
        exact = read_epsilon(epsilon, has_levels=isinstance(method, PersonalSettings))
    else:
        exact = epsilon_for(method, schema, n_records, float(wanted_error or 0))
    expected = predict(method, schema, n_records, exact)
    return Plan(exact, expected.summary, dict(expected.figures))


def epsilon_for(method: Predicts, schema: Schema, n_records: int | None, wanted: float) -> Fraction:
    """Find the smallest epsilon whose expected error is at most `wanted`.

    It is rounded up to three digits, and not sought below one millionth.
    """
    if not wanted > 0:
        raise InvalidParameter(f"wanted error ({wanted}) must be greater than 0")

    most = method.levels[-1] if isinstance(method, PersonalSettings) else _MOST

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


def _rounded(value: float) -> Fraction:
    return Fraction(Context(prec=3, rounding=ROUND_CEILING).create_decimal(Decimal(value)))
