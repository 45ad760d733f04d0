"""Expressions are parsed as queries are where both can say it; what cannot be read is refused."""

import pytest

from dpublish.data.expressions.language import MAX_LENGTH, parse_expression
from dpublish.data.expressions.tree import (
    Among,
    Between,
    Comparison,
    Glued,
    Junction,
    Period,
    words_of,
)
from dpublish.data.query.language import parse_query
from dpublish.errors import InvalidParameter

SHARED = [
    "age in 30..40 and sex = Female and income >= 50000",
    'income = "<=50K"',
    "light in {red, 'dark red'}",
    "hours-per-week >= 40 and occupation != Prof-specialty",
    "a == 3 and b < -5",
    "name = 'O''Neil' and x in -5..5",
    "zip = 01234 and share = 1e-5",
    "AGE > 3 AND code IN {A-1, B/2}",
]


@pytest.mark.parametrize("text", SHARED)
def test_what_a_query_can_say_is_said_alike(text):
    """The same conditions, with the same columns and the same values."""
    tree = parse_expression(text).tree
    parts = tree.conditions if isinstance(tree, Junction) else (tree,)
    for part, condition in zip(parts, parse_query(text).conditions, strict=True):
        assert part.left.text == condition.column
        kinds = {"in set": Among, "in range": Between}
        assert isinstance(part, kinds.get(condition.operator, Comparison))
        sides = {
            "in set": lambda part=part: part.values,
            "in range": lambda part=part: (part.low, part.high),
        }.get(condition.operator, lambda part=part: (part.right,))
        assert tuple(map(_written, sides())) == condition.operands


def _written(node):
    return node.text if hasattr(node, "text") else f"-{node.of.text}"


NORMAL = {
    "country  ==  FR AND age in [18,19]": "country = FR and age in {18, 19}",
    "x in (a, b)": "x in {a, b}",
    "x in (1+2)*3..20": "x in (1+2)*3..20",
    "weight/( height / 100 )**2 > 25": "weight/(height / 100)**2 > 25",
    "not(x IS NOT MISSING)": "not (x is not missing)",
    "x='a \"b\"'": 'x = "a ""b"""',
    "if( a>1,2 , 3)>2": "if(a > 1, 2, 3) > 2",
}


@pytest.mark.parametrize(("text", "normal"), NORMAL.items())
def test_the_public_text_is_written_one_way_and_reads_back(text, normal):
    parsed = parse_expression(text)
    assert str(parsed) == normal
    assert str(parse_expression(normal)) == normal
    assert words_of(parse_expression(normal).tree) == words_of(parsed.tree)


def test_products_bind_before_sums_and_powers_before_signs():
    tree = parse_expression("a + b * c ** 2 - -d").tree
    assert (tree.sign, tree.left.sign, tree.left.right.sign) == ("-", "+", "*")
    assert tree.left.right.right.sign == "**"
    assert parse_expression("-a ** 2").tree.of.sign == "**"
    assert parse_expression("a ** b ** c").tree.right.sign == "**"


def test_and_binds_before_or_and_not_before_both():
    tree = parse_expression("not a = 1 and b = 2 or c = 3").tree
    assert tree.word == "or"
    assert tree.conditions[0].word == "and"
    assert type(tree.conditions[0].conditions[0]).__name__ == "Not"


FAULTS = {
    "": "expected a column or a value but found the end, at its end",
    "a =": "found the end",
    "a = b c": "put values with spaces in quotes",
    "30 < age < 40": "of a chain like 30 < age < 40 make age in 30..40",
    "a ! b": "write not",
    'a = "x': "the quote is not closed",
    "x in {a": "not closed with '}'",
    "x in 5": "expected a range or a list",
    "a <> b": "write !=",
    "a => b": "write >=",
    "x | y": "write or",
    "x is null": "column is missing",
    "x = 1 ^ 2": "write \\*\\* for a power",
    "f(": "found the end",
    "(a = 1": "expected '\\)'",
    "a between 3": "both ends count",
    "a + * b": "at '\\* b' in the expression 'a \\+ \\* b'",
}


@pytest.mark.parametrize(("text", "message"), FAULTS.items())
def test_an_error_points_at_the_fault_and_says_what_to_write(text, message):
    with pytest.raises(InvalidParameter, match=message):
        parse_expression(text)


@pytest.mark.parametrize(
    "text",
    [
        "(" * 5000 + "a",
        "not " * 2000 + "a = 1",
        "-" * 5000 + "a",
        "+".join("a" * 2000),
        "a = " + "2**" * 2000 + "2",
        "x in (" * 1000,
        "f(" * 3000,
        " or ".join(["a = 1"] * 1000),
        "a" * (MAX_LENGTH + 1),
    ],
)
def test_expressions_beyond_the_limits_are_refused_quickly(text):
    with pytest.raises(InvalidParameter):
        parse_expression(text)


def test_something_else_than_text_is_refused():
    with pytest.raises(InvalidParameter, match="must be text"):
        parse_expression(3)


def test_what_only_looks_like_a_date_is_a_value():
    assert isinstance(parse_expression("code = 2024-13").tree.right, Glued)
    assert isinstance(parse_expression("on = 2024-12").tree.right, Period)
