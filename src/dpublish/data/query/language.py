"""A small, safe query language: `age in 30..40 and sex = Female and income >= 50000`.

A query is a list of conditions, all of which must hold.  It is parsed, never executed.

    column = value          column != value         column in {red, green}
    column < 5   <= 5   > 5   >= 5                  column in 30..40   (both ends count)

Names and values with spaces or signs stand in quotes: `income = "<=50K"`; a quote within them
is doubled.  The empty query covers all records.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Literal, NoReturn, get_args

from dpublish.errors import InvalidQuery, InvalidType, what_it_is

Operator = Literal["=", "!=", "<", "<=", ">", ">=", "in set", "in range"]

_TOKEN = re.compile(
    r"""\s*(?:
        "(?P<double>(?:[^"]|"")*)" | '(?P<single>(?:[^']|'')*)'
      | (?P<sign><=|>=|!=|==|=|<|>|\{|\}|,)
      | (?P<range>\.\.)
      | (?P<word>(?:(?!\.\.)[^\s,{}"'<>=!])+)
    )""",
    re.VERBOSE,
)
_MAX_LENGTH = 10_000
_QUOTES = {"double": '"', "single": "'"}
_SHOWN = 80

_ONLY_AND = (
    "conditions are joined by 'and' only; for several values of a column write "
    "column in {a, b}, else send two queries and add up the answers"
)
_NO_NOT = "there is no 'not'; write column != value, or count the opposite and subtract"
_NOT_OPERATORS = {
    "is": "write column = value, or column != value",
    "equals": "write column = value",
    "like": "write column = value, or column in {a, b}",
    "between": "write column in 30..40, where both ends count",
    "from": "write column in 30..40, where both ends count",
    "not": _NO_NOT,
    "≤": "write <=",
    "≥": "write >=",
    "≠": "write !=",
}
_NOT_JOINTS = {
    "or": _ONLY_AND,
    "||": _ONLY_AND,
    "|": _ONLY_AND,
    "&": "write 'and' between conditions",
    "&&": "write 'and' between conditions",
    ",": "write 'and' between conditions, and numbers without commas",
    "..": "a range is written column in 30..40",
    "<": "of a chain like 30 < age < 40 make column in 30..40, or two conditions",
    "<=": "of a chain like 30 <= age <= 40 make column in 30..40, or two conditions",
}


@dataclass(frozen=True)
class Condition:
    """One condition on one column; as text it is read back by `parse_query`.

    >>> print(Condition("light", "in set", ("red", "dark red")))
    light in {red, "dark red"}
    """

    column: str
    operator: Operator
    operands: tuple[str, ...]

    def __str__(self) -> str:
        column, operands = quote(self.column), [quote(operand) for operand in self.operands]
        if self.operator == "in set":
            return f"{column} in {{{', '.join(operands)}}}"
        if self.operator == "in range":
            return f"{column} in {operands[0]}..{operands[1]}"
        return f"{column} {self.operator} {operands[0]}"


@dataclass(frozen=True)
class Query:
    """Conditions that must all hold; as text it is read back by `parse_query`."""

    conditions: tuple[Condition, ...]

    def __str__(self) -> str:
        return " and ".join(map(str, self.conditions))

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of the columns of all conditions, each once."""
        return tuple(dict.fromkeys(condition.column for condition in self.conditions))

    def about(self, column: str) -> tuple[Condition, ...]:
        """Pick the conditions on one column."""
        return tuple(c for c in self.conditions if c.column == column)


def parse_query(text: str) -> Query:
    """Read a query.

    >>> for condition in parse_query("age in 30..40 and sex = Female").conditions:
    ...     print(condition)
    age in 30..40
    sex = Female
    """
    if not isinstance(text, str):
        raise InvalidType(
            f"a query is text, such as 'age in 30..40 and sex = Female', not {what_it_is(text)}"
        )
    if len(text) > _MAX_LENGTH:
        raise InvalidQuery(f"the query is longer than {_MAX_LENGTH} characters")
    tokens = _Tokens(text)
    conditions: list[Condition] = []
    while not tokens.at_end:
        if conditions:
            tokens.take_and()
        conditions.append(_condition(tokens))
    return Query(tuple(conditions))


def require_columns(query: Query, known: Sequence[str], who: str = "this release knows") -> None:
    """Refuse a query about columns that a release does not have, and say which it has."""
    for column in query.columns:
        if column in known:
            continue
        bare = column.strip("()")
        near = get_close_matches(bare, known, n=1)
        hint = f"; did you mean {near[0]!r}?" if near else ""
        if bare != column:
            hint = "; brackets are not needed, all conditions must hold"
        elif any(set(c.operands) & set(known) for c in query.about(column)):
            hint = "; write the column first, then the value"
        listed = ", ".join(known[:20]) + (", ..." if len(known) > 20 else "")
        raise InvalidQuery(f"{who} nothing of {column!r}, only of {listed}{hint}")


def quote(text: str) -> str:
    """Write a name or value so that `parse_query` reads it back.

    >>> quote("age"), quote("light blue")
    ('age', '"light blue"')
    """
    match = _TOKEN.fullmatch(text)
    is_plain = match is not None and match.lastgroup == "word" and text.strip() == text
    # A dot at the end would run into that of a range.
    if is_plain and text.lower() not in ("and", "in") and text.strip(".") == text:
        return text
    return '"' + text.replace('"', '""') + '"'


class _Tokens:
    """The query's words and signs, read from left to right."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._items: list[tuple[str, str]] = []
        position, end = 0, len(text.rstrip())
        while position < end:
            match = _TOKEN.match(text, position)
            if match is None:
                self._refuse_character(text[position:].lstrip())
            kind = str(match.lastgroup)
            value = match.group(kind)
            if kind in _QUOTES:
                value = value.replace(2 * _QUOTES[kind], _QUOTES[kind])
            self._items.append(("text" if kind in _QUOTES else kind, value))
            position = match.end()
        self._next = 0

    @staticmethod
    def _refuse_character(rest: str) -> NoReturn:
        hint = ""
        if rest[:1] in ("'", '"'):
            hint = "; the quote is not closed (inside quotes, a quote is doubled)"
        elif rest[:1] == "!":
            hint = "; " + _NO_NOT
        raise InvalidQuery(f"cannot read the query at {rest[:20]!r}{hint}")

    @property
    def at_end(self) -> bool:
        return self._next >= len(self._items)

    def peek(self) -> tuple[str, str]:
        return ("end", "") if self.at_end else self._items[self._next]

    def take(self) -> tuple[str, str]:
        item = self.peek()
        self._next += 1
        return item

    def take_name(self, what: str) -> str:
        kind, value = self.take()
        if kind not in ("word", "text"):
            found = f"{value!r}" if value else "the end"
            raise self.refusal(f"expected {what} but found {found}")
        return value

    def take_and(self) -> None:
        kind, value = self.take()
        if kind != "word" or value.lower() != "and":
            hint = "" if kind == "text" else _NOT_JOINTS.get(value.lower(), "")
            hint = hint or "put values with spaces in quotes"
            raise self.refusal(f"expected 'and' before {value!r}", hint)

    def take_sign(self, sign: str) -> bool:
        if self.peek() == ("sign", sign):
            self._next += 1
            return True
        return False

    def refusal(self, fault: str, hint: str = "") -> InvalidQuery:
        shown = self._text if len(self._text) <= _SHOWN else self._text[:_SHOWN] + "..."
        return InvalidQuery(f"{fault} in the query {shown!r}" + (f"; {hint}" if hint else ""))


def _condition(tokens: _Tokens) -> Condition:
    column = tokens.take_name("a column")
    kind, operator = tokens.take()
    if kind == "word" and operator.lower() == "in":
        return _membership(column, tokens)
    operator = "=" if operator == "==" else operator
    if kind != "sign" or operator not in get_args(Operator):
        found = f"{operator!r}" if operator else "the end"
        hint = _NO_NOT if column.lower() == "not" else _NOT_OPERATORS.get(operator.lower(), "")
        expected = f"expected one of = != < <= > >= in after {column!r} but found {found}"
        raise tokens.refusal(expected, hint)
    follows = tokens.peek()
    if follows[0] == "sign" and follows[1] in ("<", ">", "=", "=="):
        written = operator + follows[1]
        meant = {"<>": "!=", "=<": "<=", "=>": ">="}.get(written, "one of = != < <= > >=")
        raise tokens.refusal(f"found {written!r} after {column!r}", f"write {meant}")
    return Condition(column, operator, (tokens.take_name("a value"),))  # type: ignore[arg-type]


def _membership(column: str, tokens: _Tokens) -> Condition:
    if tokens.take_sign("{"):
        values = [tokens.take_name("a value")]
        while tokens.take_sign(","):
            values.append(tokens.take_name("a value"))
        if not tokens.take_sign("}"):
            raise tokens.refusal(f"the list of values for {column!r} is not closed with }}")
        return Condition(column, "in set", tuple(values))
    low = tokens.take_name("a number or { after 'in'")
    if tokens.take()[0] != "range":
        raise tokens.refusal(
            f"'in' after {column!r} wants a range or a list",
            "write column in low..high, or column in {a, b}",
        )
    return Condition(column, "in range", (low, tokens.take_name("the upper end of the range")))
