"""A small, safe query language: `age in 30..40 and sex = Female and income >= 50000`.

A query is a list of conditions, all of which must hold.  It is parsed, never executed.

    column = value          column != value         column in {red, green}
    column < 5   <= 5   > 5   >= 5                  column in 30..40   (both ends count)

Names and values with spaces or signs stand in quotes: `income = "<=50K"`; a quote within them
is doubled.  The empty query asks for everything.
"""

import re
from dataclasses import dataclass
from typing import Literal, get_args

from dpublish.errors import InvalidQuery

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


@dataclass(frozen=True)
class Condition:
    """One condition on one column."""

    column: str
    operator: Operator
    operands: tuple[str, ...]


@dataclass(frozen=True)
class Query:
    """Conditions that must all hold."""

    conditions: tuple[Condition, ...]

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of the columns asked about, each once."""
        return tuple(dict.fromkeys(condition.column for condition in self.conditions))

    def about(self, column: str) -> tuple[Condition, ...]:
        """Pick the conditions on one column."""
        return tuple(c for c in self.conditions if c.column == column)


def parse_query(text: str) -> Query:
    """Read a query.

    >>> for condition in parse_query("age in 30..40 and sex = Female").conditions:
    ...     print(condition)
    Condition(column='age', operator='in range', operands=('30', '40'))
    Condition(column='sex', operator='=', operands=('Female',))
    """
    if len(text) > _MAX_LENGTH:
        raise InvalidQuery(f"the query is longer than {_MAX_LENGTH} characters")
    tokens = _Tokens(text)
    conditions: list[Condition] = []
    while not tokens.at_end:
        if conditions:
            tokens.expect_word("and")
        conditions.append(_condition(tokens))
    return Query(tuple(conditions))


def quote(text: str) -> str:
    """Write a name or value so that `parse_query` reads it back.

    >>> quote("age"), quote("light blue")
    ('age', '"light blue"')
    """
    match = _TOKEN.fullmatch(text)
    is_plain = match is not None and match.lastgroup == "word" and text.strip() == text
    if is_plain and text.lower() not in ("and", "in"):
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
                raise InvalidQuery(f"cannot read the query at {text[position : position + 20]!r}")
            kind = str(match.lastgroup)
            value = match.group(kind)
            if kind in _QUOTES:
                value = value.replace(2 * _QUOTES[kind], _QUOTES[kind])
            self._items.append(("text" if kind in _QUOTES else kind, value))
            position = match.end()
        self._next = 0

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
            raise InvalidQuery(f"expected {what} but found {found} in the query {self._text!r}")
        return value

    def expect_word(self, word: str) -> None:
        kind, value = self.take()
        if kind != "word" or value.lower() != word:
            raise InvalidQuery(
                f"expected {word!r} before {value!r} in the query {self._text!r}; "
                "put values with spaces in quotes"
            )

    def take_sign(self, sign: str) -> bool:
        if self.peek() == ("sign", sign):
            self._next += 1
            return True
        return False


def _condition(tokens: _Tokens) -> Condition:
    column = tokens.take_name("a column")
    kind, operator = tokens.take()
    if kind == "word" and operator.lower() == "in":
        return _membership(column, tokens)
    operator = "=" if operator == "==" else operator
    if kind != "sign" or operator not in get_args(Operator):
        found = operator or "the end"
        raise InvalidQuery(f"expected one of = != < <= > >= in after {column!r}, found {found!r}")
    return Condition(column, operator, (tokens.take_name("a value"),))  # type: ignore[arg-type]


def _membership(column: str, tokens: _Tokens) -> Condition:
    if tokens.take_sign("{"):
        values = [tokens.take_name("a value")]
        while tokens.take_sign(","):
            values.append(tokens.take_name("a value"))
        if not tokens.take_sign("}"):
            raise InvalidQuery(f"the list of values for {column!r} is not closed with }}")
        return Condition(column, "in set", tuple(values))
    low = tokens.take_name("a number or { after 'in'")
    if tokens.take()[0] != "range":
        raise InvalidQuery(f"write {column} in low..high, or {column} in {{a, b}}")
    return Condition(column, "in range", (low, tokens.take_name("the upper end of the range")))
