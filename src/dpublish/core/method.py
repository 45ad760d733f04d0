"""What every method offers: public settings, a release, and its error predicted.

A method is a frozen dataclass.  Each field is a public setting, described by `setting(...)`,
so that the command line, the plan, the receipt and the report list the same things.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING, dataclass, field, fields, is_dataclass
from fractions import Fraction
from typing import Any, ClassVar, Protocol

from dpublish.core.released import Release
from dpublish.data.schema import Schema
from dpublish.data.table import Table
from dpublish.privacy.budget import Budget
from dpublish.privacy.epsilon import format_epsilon
from dpublish.privacy.receipt import Receipt
from dpublish.randomness import RandomSource

Progress = Callable[[int, int, str], None]
"""Called with (done, total, label); all three are public."""


@dataclass(frozen=True)
class ExpectedError:
    """How far a release will be from the truth, told without the data."""

    summary: str
    figures: Mapping[str, float]
    target: str
    """The figure that shrinks as epsilon grows; `plan` solves for it."""


class Predicts(Protocol):
    """Public settings whose error can be predicted: a method, or a method for streams."""

    name: ClassVar[str]

    def expected_error(
        self, schema: Schema, n_records: int | None, epsilon: Fraction
    ) -> ExpectedError:
        """Predict the error from public facts."""
        ...


class Method(Predicts, Protocol):
    """A way to publish something: public settings and one verb."""

    def release(
        self,
        table: Table,
        *,
        budget: Budget,
        rng: RandomSource,
        progress: Progress | None = None,
    ) -> Release:
        """Publish from `table`, spending exactly `budget`.

        Privacy:
            Argued by each method.
        """
        ...


def setting(description: str, *, default: Any = MISSING) -> Any:
    """Declare a public setting of a method, with the help text that users see."""
    return field(default=default, metadata={"help": description})


def figure_name(name: str) -> str:
    """Write the name of a figure for people.

    >>> figure_name("one_cell_95")
    'one cell (95 %)'
    """
    return name.replace("_", " ").replace(" 95", " (95 %)")


def settings_of(method: Any) -> dict[str, Any]:
    """List a method's settings as plain values, for receipts and files."""
    return {f.name: _plain(getattr(method, f.name)) for f in fields(method)}


def receipt_for(
    method: Method,
    table: Table,
    *,
    budget: Budget,
    rng: RandomSource,
    assumptions: Sequence[str] = (),
) -> Receipt:
    """Write the receipt of a method's release; call it when the whole budget is spent.

    `assumptions` are what the proof takes for granted, beyond what all proofs do.

    Privacy:
        Reads no rows and spends nothing (`Receipt.issue`).
    """
    return Receipt.issue(
        method=method.name,
        settings=settings_of(method),
        budget=budget,
        neighbors=table.neighbors,
        rng=rng,
        assumptions=assumptions,
    )


def _plain(value: Any) -> Any:
    if isinstance(value, Fraction):
        return format_epsilon(value)
    if isinstance(value, tuple):
        return [_plain(item) for item in value]
    if is_dataclass(value):  # a method within a method
        return {"method": value.name, **settings_of(value)}  # type: ignore[union-attr]
    return value
