"""Give every part of an expression a type, from names and types of columns alone, and compile it.

Types never depend on rows: they come from the header, which is public, and from the schema.  Text,
as of a CSV file, is read as numbers or dates where the expression needs some, value by value and by
the same rule as everywhere (`to_numbers`).  What does not fit is refused here, before any row is
read; what remains cannot fail on a value.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from dpublish.data.column import CategoryColumn, Column, NumberColumn
from dpublish.data.date_column import DateColumn
from dpublish.data.encoding import is_text, plain_array, to_numbers, to_texts
from dpublish.data.expressions import vectors
from dpublish.data.expressions.language import refusal
from dpublish.data.expressions.tree import (
    Among,
    Arithmetic,
    Between,
    Call,
    Comparison,
    Glued,
    IsMissing,
    Junction,
    Negative,
    Node,
    Not,
    Number,
    Period,
    Quoted,
    Word,
)
from dpublish.data.expressions.vectors import DAY, Form, Vector
from dpublish.data.periods import Span, read_period
from dpublish.data.stamps import StampReader
from dpublish.data.taxonomy import canonical_text
from dpublish.errors import InvalidParameter, InvalidQuery

Read = Callable[[str], Any]
"""Returns a column of some records, as an Arrow array."""
Run = Callable[[Read, int], Vector]
"""Computes something for some records, given their columns and how many they are."""

_ORDER = ("<", "<=", ">", ">=")
_DATES = ("date", "datetime")
_NAMED = {"number": "a number", "text": "text", "truth": "a condition", "date": "a date",
          "datetime": "a time"}  # fmt: skip
_NUMBER_FORMS: Mapping[str, Form] = {"date": "date", "datetime": "datetime"}
_MOST_MULTIPLIED = 16
_PLAIN_NUMBER = re.compile(r"-?(?:(?:0|[1-9][0-9]*)\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")


class Field(NamedTuple):
    """A column that an expression may use: its type, and what the schema says of it.

    A part of a date is read from another column, the `source`.
    """

    kind: Any
    declared: Column | None = None
    source: str | None = None


@dataclass(frozen=True)
class Compiled:
    """An expression for tables with certain columns.

    Attributes:
        form: What it computes.
        run: Computes it.
        uses: The columns that it reads.
    """

    form: Form
    run: Run
    uses: tuple[str, ...]


@dataclass(frozen=True)
class Operand:
    """A part of an expression: of a fixed form, a column, or a literal that adapts.

    Attributes:
        at: Where it starts in the text.
        form: Its form; None for what adapts to what it is compared with.
        run: Computes it, if its form is fixed.
        column: The column that it is.
        literal: The text that it is.
        is_quoted: Whether it was written in quotes, so that it is text unless numbers are needed.
    """

    at: int
    form: Form | None = None
    run: Run | None = None
    column: str | None = None
    literal: str | None = None
    is_quoted: bool = False

    @property
    def is_plain_number(self) -> bool:
        """Whether it is a literal that suggests a comparison of numbers."""
        return self.literal is not None and not self.is_quoted and _is_plain_number(self.literal)


class Compiler:
    """Walks through a tree, from the outside to the inside."""

    def __init__(
        self,
        text: str,
        fields: Mapping[str, Field],
        public: Sequence[str],
        call: "Callable[[Compiler, Call], tuple[Form, Run]]",
    ) -> None:
        self.text = text
        self.fields = fields
        self._public = public
        self._call = call
        self._uses: dict[str, None] = {}

    def whole(self, tree: Node) -> Compiled:
        """Compile all of it; a lone column or value has the form that its type suggests."""
        operand = self.operand(tree)
        form = self.natural(operand)
        return Compiled(form, self.run(operand, form), tuple(self._uses))

    def natural(self, operand: Operand) -> Form:
        """Return the form of a part that nothing is compared with."""
        if operand.form is not None:
            return operand.form
        if operand.column is not None:
            return arrow_form(self.fields[operand.column].kind) or "text"
        return "number" if operand.is_plain_number else "text"

    def refuse(self, at: int, fault: str, hint: str = "") -> InvalidParameter:
        """Make an error about a position."""
        return refusal(self.text, at, fault, hint)

    # --- Names ----------------------------------------------------------------------------

    def column(self, name: str, at: int) -> Operand:
        """Make an operand of a column."""
        if name not in self.fields:
            raise self.refuse(at, f"there is no column {name!r}", self._hint(name))
        self._uses[self.fields[name].source or name] = None
        return Operand(at, form=_firm_form(self.fields[name]), column=name)

    def _hint(self, name: str) -> str:
        """Say what may have been meant by a column that is not there."""
        if name in self._public:
            return f'it is declared, but not in the data: derive it first (--derive "{name} = ...")'
        near = get_close_matches(name, self._public, n=1)
        known = ", ".join(self._public[:20]) + (", ..." if len(self._public) > 20 else "")
        hint = f"did you mean {near[0]!r}?" if near else f"columns of the schema: {known}"
        return f'{hint}; a text stands in quotes: "{name}"'

    def left(self, node: Node) -> Operand:
        """Compile the left side of a condition: a word or text is a column there."""
        if isinstance(node, Word | Quoted):
            return self.column(node.text, node.at)
        return self.operand(node)

    def right(self, node: Node, left: Operand, sign: str) -> Operand:
        """Compile the right side: a word is a value, unless only a column makes sense."""
        has_order = sign in _ORDER and self._listed(left) is None
        may_be_column = has_order or left.literal is not None
        if may_be_column and isinstance(node, Word | Glued) and node.text in self.fields:
            return self.column(node.text, node.at)
        if isinstance(node, Glued):
            return self._glued(node, is_value=True)
        if isinstance(node, Word):
            return Operand(node.at, literal=self._value(node))
        return self.operand(node)

    def _value(self, node: Word) -> str:
        if node.text in self.fields:
            raise self.refuse(
                node.at,
                f"{node.text!r} may be a value or a column",
                f'write "{node.text}" for the value, column({node.text}) for the column',
            )
        return node.text

    def _glued(self, node: Glued, *, is_value: bool) -> Operand:
        if node.text in self.fields:
            if is_value:
                self._value(Word(node.at, node.text))
            return self.column(node.text, node.at)
        if node.meaning is not None and self._is_arithmetic(node.meaning):
            return self.operand(node.meaning)
        if is_value:
            return Operand(node.at, literal=node.text)
        return self.column(node.text, node.at)  # which is refused

    def _is_arithmetic(self, node: Node) -> bool:
        if isinstance(node, Word):
            return node.text in self.fields
        return not isinstance(node, Glued) and all(map(self._is_arithmetic, node.parts))

    # --- Operands -------------------------------------------------------------------------

    def operand(self, node: Node) -> Operand:
        """Compile a part."""
        if isinstance(node, Word):
            return self.column(node.text, node.at)
        if isinstance(node, Glued):
            return self._glued(node, is_value=False)
        if isinstance(node, Number | Period | Quoted):
            fixed: Form | None = "date" if isinstance(node, Period) else None
            is_quoted = isinstance(node, Quoted)
            return Operand(node.at, form=fixed, literal=node.text, is_quoted=is_quoted)
        if isinstance(node, Negative) and isinstance(node.of, Number):
            return Operand(node.at, literal=f"-{node.of.text}")
        if isinstance(node, Call) and node.name == "column":
            return self._named(node)
        form, run = self._computed(node)
        return Operand(node.at, form=form, run=run)

    def _named(self, node: Call) -> Operand:
        """Compile `column(..)`: a column by its name, whatever the name looks like."""
        name = getattr(node.arguments[0], "text", None) if len(node.arguments) == 1 else None
        if not isinstance(name, str):
            raise self.refuse(node.at, "column(..) takes the name of a column")
        return self.column(name, node.at)

    def _computed(self, node: Node) -> tuple[Form, Run]:
        match node:
            case Negative():
                return self._negative(node)
            case Arithmetic():
                return self._arithmetic(node)
            case Call():
                return self._call(self, node)
            case _:
                return "truth", self._condition(node)

    def _condition(self, node: Node) -> Run:
        match node:
            case Comparison():
                return self._comparison(node)
            case Among():
                return self._among(node)
            case Between():
                return self._between(node)
            case IsMissing():
                return self._missing(node)
            case Not():
                inner = self.truth(node.of)
                return lambda read, rows: vectors.opposite(inner(read, rows))
            case Junction():
                parts = [self.truth(part) for part in node.conditions]
                join = vectors.all_of if node.word == "and" else vectors.any_of
                return lambda read, rows: join([part(read, rows) for part in parts])
        raise self.refuse(node.at, "this cannot be read")

    def truth(self, node: Node) -> Run:
        """Compile a condition."""
        return self.run(self.operand(node), "truth")

    def number(self, node: Node) -> Run:
        """Compile a number."""
        return self.run(self.operand(node), "number")

    # --- Forms ----------------------------------------------------------------------------

    def run(self, operand: Operand, form: Form) -> Run:
        """Return how an operand is computed in a form; refuse one that it does not have."""
        if operand.column is not None:
            return self._read_column(operand.column, operand.at, form)
        if operand.literal is not None:
            return self._constant(operand, form)
        if operand.run is None or operand.form is None:
            raise self.refuse(operand.at, "this cannot be read")
        if operand.form == form:
            return operand.run
        run = operand.run
        if operand.form == "date" and form == "datetime":
            return lambda read, rows: run(read, rows) * DAY
        if operand.form == "datetime" and form == "date":
            return lambda read, rows: np.floor(run(read, rows) / DAY)
        raise self.unlike(operand.at, form, operand.form)

    def unlike(self, at: int, wanted: Form, found: Form) -> InvalidParameter:
        """Make the error about something of another form than is needed."""
        hints = {
            ("truth", "text"): "write a condition, such as smoker = true",
            ("truth", "number"): "write a condition, such as age >= 18",
            ("number", "truth"): "write if(condition, 1, 0)",
            ("number", "date"): "take its year(..), month(..) or days_between(..)",
            ("number", "datetime"): "take its year(..), hour(..) or days_between(..)",
            ("number", "text"): "number(..) reads text as a number",
            ("text", "number"): "text(..) writes a number as text",
        }
        hint = hints.get((wanted, found), "")
        return self.refuse(at, f"{_NAMED[wanted]} is needed, but this is {_NAMED[found]}", hint)

    def _read_column(self, name: str, at: int, form: Form) -> Run:
        field = self.fields[name]
        _require_form(self, field, at, form)
        if field.source is not None:
            hint = f"compare it with =, or write a function of {field.source}"
            raise self.refuse(at, f"{name!r} is a part of a date", hint)
        if form == "number":
            return lambda read, rows: to_numbers(read(name), name)
        if form == "text":
            return lambda read, rows: to_texts(read(name), name)
        if form == "truth":
            return lambda read, rows: vectors.to_truth(plain_array(read(name)))
        seconds = _read_seconds(name, field)
        if form == "datetime":
            return seconds
        return lambda read, rows: np.floor(seconds(read, rows) / DAY)

    def _constant(self, operand: Operand, form: Form) -> Run:
        text = operand.literal or ""
        if form == "text":
            array = pa.array([canonical_text(text) or None], pa.large_string())
            return lambda read, rows: array.take(pa.array(np.zeros(rows, dtype=np.int64)))
        if form == "number":
            found = float(to_numbers(pa.array([text]), "")[0])
            if np.isnan(found):
                hint = "put blanks around - + * / if columns are meant"
                raise self.refuse(operand.at, f"{text!r} is no number", hint)
            return lambda read, rows: np.full(rows, found)
        if form == "truth":
            truth = {"true": vectors.YES, "false": vectors.NO}.get(canonical_text(text))
            if truth is None:
                raise self.refuse(operand.at, f"{text!r} is no condition")
            return lambda read, rows: np.full(rows, truth, dtype=np.uint8)
        start = self.period(operand)[0]
        return lambda read, rows: np.full(rows, start / DAY if form == "date" else start)

    def period(self, operand: Operand) -> Span:
        """Read a literal as a period, in seconds."""
        found = read_period(operand.literal or "", "datetime")
        if found is None:
            hint = "dates are written 2024-01-31, months 2024-01, years 2024"
            raise self.refuse(operand.at, f"{operand.literal!r} is no date", hint)
        return found

    # --- Arithmetic -----------------------------------------------------------------------

    def _negative(self, node: Negative) -> tuple[Form, Run]:
        inner = self.number(node.of)
        return "number", lambda read, rows: -inner(read, rows)

    def _arithmetic(self, node: Arithmetic) -> tuple[Form, Run]:
        left, right = self.operand(node.left), self.operand(node.right)
        if node.sign in ("+", "-") and (left.form in _DATES or right.form in _DATES):
            return self._shifted(node.sign, left, right)
        if node.sign == "**" and isinstance(node.right, Number):
            exponent = node.right.value
            if exponent.is_integer() and exponent <= _MOST_MULTIPLIED:
                base, times = self.run(left, "number"), int(exponent)
                return "number", lambda read, rows: vectors.whole_power(base(read, rows), times)
        first, second = self.run(left, "number"), self.run(right, "number")
        sign = node.sign
        return "number", lambda read, rows: vectors.calculate(
            sign, first(read, rows), second(read, rows)
        )

    def _shifted(self, sign: str, left: Operand, right: Operand) -> tuple[Form, Run]:
        """Compile the days between two dates, or a date some days before or after another."""
        if left.form in _DATES and right.form in _DATES:
            if sign == "+":
                raise self.refuse(right.at, "two dates cannot be added", "days_between(a, b)")
            ends = self.run(left, "datetime"), self.run(right, "datetime")
            return "number", lambda read, rows: (ends[0](read, rows) - ends[1](read, rows)) / DAY
        if left.form not in _DATES:
            raise self.refuse(right.at, "a date stands to the left of + and -", "write date + 7")
        form: Form = "datetime" if left.form == "datetime" else "date"
        start, days = self.run(left, "datetime"), self.run(right, "number")
        scale = DAY if form == "date" else 1.0

        def shift(read: Read, rows: int) -> Vector:
            seconds = vectors.calculate("*", days(read, rows), np.full(rows, DAY))
            moved = vectors.calculate(sign, start(read, rows), seconds)
            return vectors.within_calendar(moved) / scale

        return form, shift

    # --- Conditions -----------------------------------------------------------------------

    def _missing(self, node: IsMissing) -> Run:
        operand = self.left(node.of)
        column = self._listed(operand)
        if column is not None:
            return _with_codes(column, lambda codes, absent: absent)
        declared = None if operand.column is None else self.fields[operand.column].declared
        form = operand.form or ("number" if isinstance(declared, NumberColumn) else "text")
        run = self.run(operand, form)
        return lambda read, rows: vectors.is_absent(run(read, rows), form).astype(np.uint8)

    def _comparison(self, node: Comparison) -> Run:
        left = self.left(node.left)
        return self._compare(node.sign, left, self.right(node.right, left, node.sign))

    def _among(self, node: Among) -> Run:
        left = self.left(node.left)
        values = [self.right(value, left, "=") for value in node.values]
        column = self._listed(left)
        if column is not None and all(value.literal is not None for value in values):
            return self._picked(column, "=", values)
        parts: list[Run] = []
        alike: dict[Form, list[str]] = {"number": [], "text": []}
        for value in values:
            compared = self._compare("=", left, value)
            form = self._common_form("=", left, value)
            text = canonical_text(value.literal or "")
            if text and column is None and form in alike:
                alike[form].append(text)
            else:
                parts.append(compared)
        parts += [self._one_of(left, form, texts) for form, texts in alike.items() if texts]
        return lambda read, rows: vectors.any_of([part(read, rows) for part in parts])

    def _one_of(self, left: Operand, form: Form, texts: Sequence[str]) -> Run:
        """Look for numbers or texts in a list, all of it at once: lists of codes may be long."""
        known = pa.array(texts, pa.large_string())
        run = self.run(left, form)
        if form == "text":
            texts_of = _spelled(left, run)
            return lambda read, rows: vectors.among_texts(texts_of(read, rows), known)
        numbers = to_numbers(known, "")
        return lambda read, rows: vectors.among_numbers(run(read, rows), numbers)

    def _between(self, node: Between) -> Run:
        left = self.left(node.left)
        low, high = self.right(node.low, left, ">="), self.right(node.high, left, "<=")
        self._refuse_backwards(low, high)
        if "date" in (low.form, high.form):  # then 2023 is a year, too
            low, high = (_as_date(end) for end in (low, high))
        parts = [self._compare(">=", left, low), self._compare("<=", left, high)]
        return lambda read, rows: vectors.all_of([part(read, rows) for part in parts])

    def _refuse_backwards(self, low: Operand, high: Operand) -> None:
        ends = [_literal_number(low), _literal_number(high)]
        if None not in ends and ends[0] > ends[1]:  # type: ignore[operator]
            shown = f"{low.literal}..{high.literal}"
            raise self.refuse(low.at, f"the range {shown!r} ends before it starts")

    def _compare(self, sign: str, left: Operand, right: Operand) -> Run:
        column = self._listed(left)
        if column is not None and right.literal is not None:
            return self._picked(column, sign, [right])
        form = self._common_form(sign, left, right)
        if form in _DATES and right.literal is not None:
            start, stop = self.period(right)
            seconds = self.run(left, "datetime")
            return lambda read, rows: vectors.in_period(sign, seconds(read, rows), start, stop)
        if form in _DATES and left.literal is not None:
            return self._compare(_MIRRORED[sign], right, left)
        first, second = self.run(left, form), self.run(right, form)
        if form == "text":
            return _text_comparison(sign, _spelled(left, first), _spelled(right, second))
        return lambda read, rows: vectors.compare(sign, first(read, rows), second(read, rows))

    def _common_form(self, sign: str, left: Operand, right: Operand) -> Form:
        """Decide as what two sides are compared."""
        firm = {side.form for side in (left, right)} - {None}
        if firm & set(_DATES):
            return "datetime" if "datetime" in firm else "date"
        if "truth" in firm:
            at = left.at if left.form == "truth" else right.at
            raise self.refuse(at, "a condition cannot be compared", "write it, or not (..)")
        if firm == {"number"} or (not firm and (left.is_plain_number or right.is_plain_number)):
            return "number"
        if sign in _ORDER and "text" in firm:
            raise self.refuse(left.at, "text has no order", "compare it with =, != or in {a, b}")
        if sign in _ORDER:
            return "date" if _is_date(left) or _is_date(right) else "number"
        return "text"

    # --- Listed values --------------------------------------------------------------------

    def _listed(self, operand: Operand) -> CategoryColumn | None:
        """Return the column of the schema that an operand is, if its values are listed there."""
        if operand.column is None:
            return None
        declared = self.fields[operand.column].declared
        return declared if isinstance(declared, CategoryColumn) else None

    def _picked(self, column: CategoryColumn, sign: str, values: Sequence[Operand]) -> Run:
        """Compare a column of the schema with listed values or groups of them, as queries do."""
        texts = [value.literal or "" for value in values]
        axis = column.axis()
        try:
            if sign in ("=", "!="):
                weights = axis.match(*texts)
            elif sign in (">", ">="):
                weights = axis.cover(low=texts[0], include_low=sign == ">=")
            else:
                weights = axis.cover(high=texts[0], include_high=sign == "<=")
        except InvalidQuery as refused:
            hint = f"to compare the text as it is in the data, write trim({column.name})"
            raise self.refuse(values[0].at, str(refused), hint) from None
        picked = (weights > 0) != (sign == "!=")
        return _with_codes(column, lambda codes, absent: vectors.known_truth(picked[codes], absent))


_MIRRORED = {"=": "=", "!=": "!=", "<": ">", "<=": ">=", ">": "<", ">=": "<="}


def _is_date(operand: Operand) -> bool:
    return operand.literal is not None and read_period(operand.literal, "datetime") is not None


def _as_date(operand: Operand) -> Operand:
    return operand if operand.literal is None else replace(operand, form="date")


def _read_seconds(name: str, field: Field) -> Run:
    """Read dates and times, as the schema says if it says anything."""
    declared = field.declared
    if isinstance(declared, DateColumn):
        scale = DAY if declared.kind == "date" else 1.0
        stamps = declared.read
        return lambda read, rows: vectors.within_calendar(stamps(read(name)) * scale)
    reader = StampReader("datetime")
    return lambda read, rows: vectors.within_calendar(reader.read(read(name), name))


def _with_codes(column: CategoryColumn, use: Callable[[Any, Any], Any]) -> Run:
    """Compute something from the codes of a column of the schema; special ones are missing."""
    has_missing = column.missing == "category"

    def run(read: Read, rows: int) -> Vector:
        codes, keep = column.encode_source(read(column.source_name))
        absent = np.zeros(rows, dtype=np.bool_) if keep is None else ~keep
        if has_missing:
            absent = absent | (codes == column.size - 1)
        return np.asarray(use(codes, absent), dtype=np.uint8)

    return run


def _spelled(operand: Operand, run: Run) -> Run:
    """Spell a text that was computed as columns and values are: `TRUE` is `true`."""
    return run if operand.run is None else lambda read, rows: to_texts(run(read, rows), "")


def _text_comparison(sign: str, first: Run, second: Run) -> Run:
    def run(read: Read, rows: int) -> Vector:
        same = vectors.same_text(first(read, rows), second(read, rows))
        return same if sign == "=" else vectors.opposite(same)

    return run


def _literal_number(operand: Operand) -> float | None:
    text = operand.literal
    if text is None:
        return None
    if _is_plain_number(text):
        return float(text)
    period = read_period(text, "datetime")
    return None if period is None else period.start


def _is_plain_number(text: str) -> bool:
    """Check for a number; 007 is a code, and compared as text."""
    return _PLAIN_NUMBER.fullmatch(text) is not None


def _firm_form(field: Field) -> Form | None:
    """Return the form that a column has by itself; None if it adapts, as text of a CSV file."""
    declared = field.declared
    if isinstance(declared, CategoryColumn):
        return "text"
    if isinstance(declared, NumberColumn):
        return _NUMBER_FORMS.get(declared.kind, "number")
    form = arrow_form(field.kind)
    return None if form == "truth" else form  # `smoker = true` compares its text


def arrow_form(kind: Any) -> Form | None:
    """Return the form of an Arrow type; None for text, which adapts."""
    types = pa.types
    if types.is_dictionary(kind):
        return arrow_form(kind.value_type)
    if types.is_boolean(kind):
        return "truth"
    if types.is_date(kind):
        return "date"
    if types.is_timestamp(kind):
        return "datetime"
    if types.is_integer(kind) or types.is_floating(kind) or types.is_decimal(kind):
        return "number"
    return None


def _require_form(compiler: Compiler, field: Field, at: int, form: Form) -> None:
    """Refuse to read a type as something that it is not."""
    kind = plain_array(pa.array([], field.kind)).type
    found = arrow_form(kind)
    value = kind.value_type if pa.types.is_dictionary(kind) else kind
    if found is None and not is_text(value):
        raise compiler.refuse(at, f"a column of the type {field.kind} cannot be used", "cast it")
    fits = {
        "number": found in (None, "number", "truth"),
        "text": True,
        "truth": found == "truth",
        "date": found in (None, "date", "datetime"),
        "datetime": found in (None, "date", "datetime"),
    }
    if not fits[form]:
        raise compiler.unlike(at, form, found or "text")
    if form == "number" and isinstance(field.declared, CategoryColumn):
        _require_numbers(compiler, field.declared, at)


def _require_numbers(compiler: Compiler, column: CategoryColumn, at: int) -> None:
    """Refuse to calculate with values of which the schema says that none is a number."""
    listed = column.categories if column.codes is None else column.codes
    if not any(_is_number(canonical_text(value)) for value in listed):
        fault = f"a number is needed, but no value of {column.name!r} in the schema is one"
        raise compiler.refuse(at, fault, f"write if({column.name} = ..., 1, 0) to mark one")


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
