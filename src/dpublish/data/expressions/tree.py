"""What an expression is made of, once it is parsed: a tree of small values.

A tree knows nothing of any table.  Whether a word is a column or a value is decided by
`compiler`, which knows the columns that there are.
"""

from dataclasses import dataclass


@dataclass(frozen=True)
class Node:
    """A part of an expression, and where it starts in the text."""

    at: int

    @property
    def parts(self) -> tuple["Node", ...]:
        """The parts that it is made of."""
        return ()


@dataclass(frozen=True)
class Number(Node):
    """A number, as it was written and as a double."""

    text: str
    value: float


@dataclass(frozen=True)
class Period(Node):
    """A date: a month, day, hour, minute or second."""

    text: str


@dataclass(frozen=True)
class Word(Node):
    """A word without quotes: a column, if there is one so called, else a value."""

    text: str


@dataclass(frozen=True)
class Quoted(Node):
    """A text in quotes: a value, or a column to the left of a comparison."""

    text: str


@dataclass(frozen=True)
class Glued(Node):
    """Words and signs without a blank between: `hours-per-week`, or `a-b`.

    It is a column if there is one so called, arithmetic (`meaning`) if it is made of columns
    and numbers, and else a value, as in queries.
    """

    text: str
    meaning: Node | None

    @property
    def parts(self) -> tuple[Node, ...]:
        """The arithmetic that it may be."""
        return () if self.meaning is None else (self.meaning,)


@dataclass(frozen=True)
class Negative(Node):
    """A number with the other sign."""

    of: Node

    @property
    def parts(self) -> tuple[Node, ...]:
        """What the sign stands before."""
        return (self.of,)


@dataclass(frozen=True)
class Arithmetic(Node):
    """One of + - * / // % ** between two numbers."""

    sign: str
    left: Node
    right: Node

    @property
    def parts(self) -> tuple[Node, ...]:
        """Both sides."""
        return self.left, self.right


@dataclass(frozen=True)
class Comparison(Node):
    """One of = != < <= > >= between two values."""

    sign: str
    left: Node
    right: Node

    @property
    def parts(self) -> tuple[Node, ...]:
        """Both sides."""
        return self.left, self.right


@dataclass(frozen=True)
class Among(Node):
    """Whether a value is one of several."""

    left: Node
    values: tuple[Node, ...]

    @property
    def parts(self) -> tuple[Node, ...]:
        """What is looked for, and where."""
        return self.left, *self.values


@dataclass(frozen=True)
class Between(Node):
    """Whether a value lies in a range, both of whose ends count."""

    left: Node
    low: Node
    high: Node

    @property
    def parts(self) -> tuple[Node, ...]:
        """What is compared, and the ends."""
        return self.left, self.low, self.high


@dataclass(frozen=True)
class IsMissing(Node):
    """Whether there is no value."""

    of: Node

    @property
    def parts(self) -> tuple[Node, ...]:
        """What may be missing."""
        return (self.of,)


@dataclass(frozen=True)
class Not(Node):
    """The opposite of a condition."""

    of: Node

    @property
    def parts(self) -> tuple[Node, ...]:
        """The condition."""
        return (self.of,)


@dataclass(frozen=True)
class Junction(Node):
    """Conditions joined by `and`, or by `or`."""

    word: str
    conditions: tuple[Node, ...]

    @property
    def parts(self) -> tuple[Node, ...]:
        """The conditions."""
        return self.conditions


@dataclass(frozen=True)
class Call(Node):
    """A function of some values."""

    name: str
    arguments: tuple[Node, ...]

    @property
    def parts(self) -> tuple[Node, ...]:
        """The values."""
        return self.arguments


def words_of(node: Node) -> tuple[str, ...]:
    """List all words and texts that may name a column, each once.

    >>> words_of(Comparison(0, "=", Word(0, "country"), Word(10, "FR")))
    ('country', 'FR')
    """
    found = dict.fromkeys([node.text] if isinstance(node, Word | Quoted | Glued) else ())
    for part in node.parts:
        found |= dict.fromkeys(words_of(part))
    return tuple(found)
