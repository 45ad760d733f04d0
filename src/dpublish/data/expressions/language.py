"""Parse an expression about one record: `country = FR and weight / (height / 100) ** 2 > 25`.

Conditions are written as in queries (`age in 30..40`, `light in {red, green}`, quotes that are
doubled within quotes); beyond these there are `or`, `not`, parentheses, `is missing`, arithmetic
and functions.  An expression is parsed, never executed: its tree is bounded in size and depth.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple, NoReturn

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
from dpublish.data.periods import read_period
from dpublish.errors import InvalidParameter, InvalidType

MAX_LENGTH, MAX_NODES, MAX_DEPTH, MAX_NESTING = 10_000, 1_000, 100, 30

_TOKEN = re.compile(
    r"""(?P<blank>\s*)(?:
        "(?P<double>(?:[^"]|"")*)" | '(?P<single>(?:[^']|'')*)'
      | (?P<date>[0-9]{4}-[0-9]{2}(?:-[0-9]{2}(?:T[0-9]{2}:[0-9]{2}(?::[0-9]{2})?)?)?
            (?![^\s,{}\[\]()"'<>=!+*/%.]))
      | (?P<number>[0-9]+(?:\.(?!\.)[0-9]*)?[eE][+-]?[0-9]+(?![^\s,{}\[\]()"'<>=!+\-*/%.]))
      | (?P<sign><=|>=|!=|==|=|<|>|\*\*|//|[-+*/%,(){}\[\]]|\.\.)
      | (?P<word>(?:(?!\.\.)[^\s,{}\[\]()"'<>=!+\-*/%])+)
    )""",
    re.VERBOSE,
)
_NUMBER = re.compile(r"(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
_KEYWORDS = ("and", "or", "not", "in", "is")
_COMPARISONS = ("=", "!=", "<", "<=", ">", ">=")
_SUMS, _PRODUCTS = ("+", "-"), ("*", "/", "//", "%")
_CLOSES = {"{": "}", "[": "]", "(": ")"}
_NO_BLANK_BEFORE, _NO_BLANK_AFTER = (",", ")", "]", "}", ".."), ("(", "[", "{", "..")
_SHOWN = 80

_HINTS = {
    "&&": "write and",
    "||": "write or",
    "&": "write and",
    "|": "write or",
    "like": "write column = value, or column in {a, b}",
    "between": "write column in 30..40, where both ends count",
    "equals": "write column = value",
    "≤": "write <=",
    "≥": "write >=",
    "≠": "write !=",
    "^": "write ** for a power",
    "null": "write column is missing",
}


_Rule = Callable[[], Node]


class Token(NamedTuple):
    """A word or sign, where it starts, and whether a blank stands before it."""

    kind: str
    text: str
    at: int
    is_apart: bool

    @property
    def is_keyword(self) -> bool:
        """Whether it is one of the words of the language."""
        return self.kind == "word" and self.text.lower() in _KEYWORDS


@dataclass(frozen=True)
class Expression:
    """A parsed expression; its text is written in one way, and public."""

    text: str
    tree: Node

    def __str__(self) -> str:
        return self.text


def parse_expression(text: str) -> Expression:
    """Read an expression.

    >>> print(parse_expression("country  ==  FR AND age in [18, 19]"))
    country = FR and age in {18, 19}
    """
    if not isinstance(text, str):
        raise InvalidType("an expression must be text, such as 'age >= 18'")
    if len(text) > MAX_LENGTH:
        raise InvalidParameter(f"the expression is longer than {MAX_LENGTH:,} characters")
    tokens = _Tokens(text)
    tree = _Parser(tokens).whole()
    return Expression(_normalize(tokens), tree)


def refusal(text: str, at: int, fault: str, hint: str = "") -> InvalidParameter:
    """Make the error about a position in an expression; quotes the expression, which is public."""
    rest = text[at : at + 20]
    where = f"at {rest!r}" if rest.strip() else "at its end"
    shown = text if len(text) <= _SHOWN else text[:_SHOWN] + "..."
    ending = f"; {hint}" if hint else ""
    return InvalidParameter(f"{fault}, {where} in the expression {shown!r}{ending}")


class _Tokens:
    """The words and signs of an expression, read from left to right."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.items: list[Token] = []
        self.written: dict[int, str] = {}  # what stands for a token in the public text
        position, end = 0, len(text.rstrip())
        while position < end:
            match = _TOKEN.match(text, position)
            if match is None:
                self._refuse_character(position)
            kind = str(match.lastgroup)
            value, at = match.group(kind), match.start() + len(match["blank"])
            if kind in ("double", "single"):
                mark = '"' if kind == "double" else "'"
                kind, value = "text", value.replace(2 * mark, mark)
            if kind == "word" and _NUMBER.fullmatch(value):
                kind = "number"
            self.items.append(Token(kind, value, at, bool(match["blank"])))
            position = match.end()
        self.next = 0

    def _refuse_character(self, position: int) -> NoReturn:
        rest = self.text[position:].lstrip()
        hint = ""
        if rest[:1] in ("'", '"'):
            hint = "the quote is not closed (inside quotes, a quote is doubled)"
        elif rest[:1] == "!":
            hint = "write not, or != for unlike"
        raise refusal(self.text, len(self.text) - len(rest), "cannot be read", hint)

    def peek(self, ahead: int = 0) -> Token:
        position = self.next + ahead
        if position < len(self.items):
            return self.items[position]
        return Token("end", "", len(self.text), True)

    def take(self) -> Token:
        token = self.peek()
        self.next += 1
        return token

    def is_sign(self, *signs: str, ahead: int = 0) -> bool:
        token = self.peek(ahead)
        return token.kind == "sign" and token.text in signs

    def is_word(self, word: str, ahead: int = 0) -> bool:
        token = self.peek(ahead)
        return token.kind == "word" and token.text.lower() == word

    def take_sign(self, *signs: str) -> str | None:
        return self.take().text if self.is_sign(*signs) else None

    def take_word(self, word: str) -> bool:
        found = self.is_word(word)
        self.next += found
        return found


class _Parser:
    """Recursive descent; every rule is a method, from the weakest binding to the strongest."""

    def __init__(self, tokens: _Tokens) -> None:
        self._tokens = tokens
        self.nesting = 0

    def whole(self) -> Node:
        """Parse all of it."""
        tree = self._either()
        token = self._tokens.peek()
        if token.kind != "end":
            raise self._unexpected(token)
        _check_size(tree)
        return tree

    # --- Conditions -----------------------------------------------------------------------

    def _either(self) -> Node:
        return self._junction("or", partial(self._junction, "and", self._opposite))

    def _junction(self, word: str, rule: _Rule) -> Node:
        first = rule()
        conditions = [first]
        while self._tokens.take_word(word):
            conditions.append(rule())
        if len(conditions) == 1:
            return first
        return Junction(first.at, word, tuple(conditions))

    def _opposite(self) -> Node:
        if not self._tokens.is_word("not"):
            return self._condition()
        at = self._tokens.take().at
        with _Deeper(self):
            return Not(at, self._opposite())

    def _condition(self) -> Node:
        left = self._side()
        tokens = self._tokens
        if (sign := tokens.take_sign(*_COMPARISONS, "==")) is not None:
            return self._comparison(left, "=" if sign == "==" else sign)
        if tokens.is_word("not") and tokens.is_word("in", ahead=1):
            at = tokens.take().at
            tokens.take()
            return Not(at, self._membership(left))
        if tokens.take_word("in"):
            return self._membership(left)
        if tokens.take_word("is"):
            return self._missing(left)
        return left

    def _comparison(self, left: Node, sign: str) -> Node:
        tokens = self._tokens
        follows = tokens.peek()
        if follows.kind == "sign" and follows.text in ("<", ">", "=", "=="):
            meant = {"<>": "!=", "=<": "<=", "=>": ">="}.get(sign + follows.text)
            hint = f"write {meant or 'one of = != < <= > >='}"
            raise refusal(tokens.text, follows.at, f"found {sign + follows.text!r}", hint)
        found = Comparison(left.at, sign, left, self._side())
        if tokens.is_sign(*_COMPARISONS, "=="):
            hint = "of a chain like 30 < age < 40 make age in 30..40, or two conditions"
            raise refusal(tokens.text, tokens.peek().at, "a second comparison", hint)
        return found

    def _membership(self, left: Node) -> Node:
        tokens = self._tokens
        opening = tokens.peek()
        if (sign := tokens.take_sign("{", "[")) is not None:
            return self._list(left, opening, _CLOSES[sign])
        if tokens.is_sign("(") and self._is_list():
            tokens.take()
            return self._list(left, opening, ")")
        low = self._side()
        if tokens.take_sign("..") is None:
            hint = "write column in low..high, or column in {a, b}"
            raise refusal(tokens.text, tokens.peek().at, "expected a range or a list", hint)
        return Between(left.at, left, low, self._side())

    def _is_list(self) -> bool:
        """Look behind the closing parenthesis: an end of a range goes on there."""
        ahead, depth = 1, 1
        while depth and self._tokens.peek(ahead).kind != "end":
            depth += self._tokens.is_sign("(", ahead=ahead) - self._tokens.is_sign(")", ahead=ahead)
            ahead += 1
        return not self._tokens.is_sign("..", "**", *_SUMS, *_PRODUCTS, ahead=ahead)

    def _list(self, left: Node, opening: Token, closing: str) -> Node:
        tokens = self._tokens
        values = [self._side()]
        while tokens.take_sign(","):
            values.append(self._side())
        close = tokens.peek()
        if tokens.take_sign(closing) is None:
            raise refusal(
                tokens.text, close.at, f"the list of values is not closed with {closing!r}"
            )
        tokens.written |= {opening.at: "{", close.at: "}"}
        return Among(left.at, left, tuple(values))

    def _missing(self, left: Node) -> Node:
        tokens = self._tokens
        is_not = tokens.take_word("not")
        token = tokens.peek()
        if not tokens.take_word("missing"):
            hint = "write column = value, or column is missing"
            raise refusal(tokens.text, token.at, "expected 'missing' after 'is'", hint)
        found = IsMissing(left.at, left)
        tokens.written[token.at] = "missing"
        return Not(left.at, found) if is_not else found

    # --- Values ---------------------------------------------------------------------------

    def _side(self) -> Node:
        """Parse one side of a comparison; one that has no blank in it may be a single value."""
        tokens = self._tokens
        start, end = tokens.next, self._end_of_run()
        if end - start < 2:
            return self._sum()
        first, last = tokens.items[start], tokens.items[end - 1]
        text = tokens.text[first.at : last.at + len(last.text)]
        meaning = self._attempt(self._sum)
        if meaning is None or tokens.next != end:
            meaning = None
            tokens.next = end
        return Glued(first.at, text, meaning)

    def _end_of_run(self) -> int:
        """Find where words and signs end that stand without a blank between, up to a delimiter.

        No run if it is part of something larger, such as a product, or starts with a sign.
        """
        tokens = self._tokens
        if tokens.peek().kind not in ("word", "number", "date") or tokens.peek().is_keyword:
            return tokens.next
        ahead = 1
        while not tokens.peek(ahead).is_apart and self._is_glue(tokens.peek(ahead)):
            ahead += 1
        after = tokens.peek(ahead)
        is_whole = after.kind == "end" or after.is_keyword
        is_whole |= after.kind == "sign" and after.text in (
            *_COMPARISONS, "==", ",", ")", "]", "}", "..",
        )  # fmt: skip
        return tokens.next + ahead if is_whole else tokens.next

    @staticmethod
    def _is_glue(token: Token) -> bool:
        if token.kind == "sign":
            return token.text in (*_SUMS, *_PRODUCTS, "**")
        return token.kind in ("word", "number", "date")

    def _attempt(self, rule: _Rule) -> Node | None:
        """Try a rule; None if it does not fit, and what it took stays taken."""
        try:
            return rule()
        except _TooDeep:
            raise
        except InvalidParameter:
            return None

    def _sum(self) -> Node:
        return self._chain(_SUMS, partial(self._chain, _PRODUCTS, self._signed))

    def _chain(self, signs: tuple[str, ...], rule: _Rule) -> Node:
        left = rule()
        while (sign := self._tokens.take_sign(*signs)) is not None:
            left = Arithmetic(left.at, sign, left, rule())
        return left

    def _signed(self) -> Node:
        tokens = self._tokens
        if not tokens.is_sign(*_SUMS):
            return self._power()
        token = tokens.take()
        with _Deeper(self):
            inner = self._signed()
        return inner if token.text == "+" else Negative(token.at, inner)

    def _power(self) -> Node:
        left = self._atom()
        if self._tokens.take_sign("**") is None:
            return left
        with _Deeper(self):
            return Arithmetic(left.at, "**", left, self._signed())

    def _atom(self) -> Node:
        tokens = self._tokens
        token = tokens.take()
        if token.kind == "sign" and token.text == "(":
            with _Deeper(self):
                inner = self._either()
            if tokens.take_sign(")") is None:
                raise refusal(tokens.text, tokens.peek().at, "expected ')'")
            return inner
        if token.kind == "word" and not token.is_keyword:
            return self._call(token) if tokens.is_sign("(") else Word(token.at, token.text)
        if token.kind == "number":
            return _number(token)
        if token.kind == "date":
            return _date(token)
        if token.kind == "text":
            return Quoted(token.at, token.text)
        raise self._unexpected(token, "expected a column or a value")

    def _call(self, name: Token) -> Node:
        tokens = self._tokens
        tokens.take()
        arguments: list[Node] = []
        with _Deeper(self):
            if not tokens.is_sign(")"):
                arguments.append(self._either())
                while tokens.take_sign(","):
                    arguments.append(self._either())
        if tokens.take_sign(")") is None:
            raise refusal(tokens.text, tokens.peek().at, "expected ',' or ')'")
        return Call(name.at, name.text.lower(), tuple(arguments))

    def _unexpected(self, token: Token, fault: str = "") -> InvalidParameter:
        found = f"{token.text!r}" if token.kind != "end" else "the end"
        hint = _HINTS.get(token.text.lower(), "")
        if not fault:
            fault = "expected 'and', 'or' or the end"
            hint = hint or "put values with spaces in quotes"
        return refusal(self._tokens.text, token.at, f"{fault} but found {found}", hint)


class _TooDeep(InvalidParameter):
    """An expression that is nested beyond what is walked safely."""

    def __init__(self) -> None:
        super().__init__(
            "the expression is nested too deep; derive a part of it as a column of its own"
        )


class _Deeper:
    """Counts how deep the parser is, and refuses to go too deep."""

    def __init__(self, parser: _Parser) -> None:
        self._parser = parser

    def __enter__(self) -> None:
        self._parser.nesting += 1
        if self._parser.nesting > MAX_NESTING:
            raise _TooDeep

    def __exit__(self, *_: object) -> None:
        self._parser.nesting -= 1


def _check_size(tree: Node) -> None:
    """Refuse trees that are too large or too deep; walks without recursion."""
    waiting, nodes = [(tree, 1)], 0
    while waiting:
        node, depth = waiting.pop()
        nodes += 1
        if depth > MAX_DEPTH:
            raise _TooDeep
        waiting.extend((part, depth + 1) for part in node.parts)
    if nodes > MAX_NODES:
        raise InvalidParameter(f"the expression has more than {MAX_NODES:,} parts; split it")


def _number(token: Token) -> Number:
    return Number(token.at, token.text, float(token.text))


def _date(token: Token) -> Node:
    """Read a date; what only looks like one (`2024-13`) is a value, as a code may be."""
    period = read_period(token.text, "datetime")
    if period is None:
        return Glued(token.at, token.text, None)
    return Period(token.at, token.text)


def _normalize(tokens: _Tokens) -> str:
    """Write an expression with one blank where there are some, and lists in braces."""
    written: list[str] = []
    before = ""
    for token in tokens.items:
        text = tokens.written.get(token.at) or _write(token)
        is_free = token.kind == "sign" and text in (*_COMPARISONS, "{")
        is_apart = token.is_apart or is_free or before in (*_COMPARISONS, *_KEYWORDS, ",", "}")
        if is_apart and before not in ("", *_NO_BLANK_AFTER) and text not in _NO_BLANK_BEFORE:
            written.append(" ")
        written.append(text)
        before = text if token.kind == "sign" or token.is_keyword else "word"
    return "".join(written)


def _write(token: Token) -> str:
    if token.kind == "text":
        return '"' + token.text.replace('"', '""') + '"'
    if token.is_keyword:
        return token.text.lower()
    return "=" if token.text == "==" else token.text
