"""The functions that expressions may call; each looks at one record only.

There is none that draws, tells the time of day, or sees another record: a column that is derived
by them is the same whenever and wherever it is computed.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from dpublish.data.encoding import to_numbers, to_texts
from dpublish.data.expressions import vectors
from dpublish.data.expressions.compiler import Compiled, Compiler, Field, Operand, Read, Run
from dpublish.data.expressions.language import Expression
from dpublish.data.expressions.tree import Call, Negative, Node, Number
from dpublish.data.expressions.vectors import Form, Vector
from dpublish.errors import require_known
from dpublish.types import FloatArray

Built = tuple[Form, Run]


class Plain(NamedTuple):
    """A function of fixed forms: those of its values, that of its result, and what it does."""

    takes: tuple[Form, ...]
    gives: Form
    compute: Callable[..., Vector]


def _floor_or_ceil(function: Callable[[Any], Any]) -> Callable[[FloatArray], FloatArray]:
    return lambda numbers: vectors.finite(np.asarray(function(numbers)))


def _root(numbers: FloatArray) -> FloatArray:
    with np.errstate(invalid="ignore"):
        return vectors.finite(np.sqrt(numbers))


def _one_by_one(function: Callable[..., float]) -> Callable[..., FloatArray]:
    return lambda *values: vectors.each(function, *values)


def _part(name: str) -> Callable[[FloatArray], FloatArray]:
    return lambda days: vectors.part_of_date(days, name)


def _days_between(first: FloatArray, second: FloatArray) -> FloatArray:
    return second - first


_PLAIN: Mapping[str, Plain] = {
    "abs": Plain(("number",), "number", np.abs),
    "floor": Plain(("number",), "number", _floor_or_ceil(np.floor)),
    "ceil": Plain(("number",), "number", _floor_or_ceil(np.ceil)),
    "sqrt": Plain(("number",), "number", _root),
    "exp": Plain(("number",), "number", _one_by_one(math.exp)),
    "log": Plain(("number",), "number", _one_by_one(math.log)),
    "log10": Plain(("number",), "number", _one_by_one(math.log10)),
    "lower": Plain(("text",), "text", pc.utf8_lower),
    "upper": Plain(("text",), "text", pc.utf8_upper),
    "trim": Plain(("text",), "text", pc.utf8_trim_whitespace),
    "length": Plain(("text",), "number", lambda texts: _to_numbers(pc.utf8_length(texts))),
    "year": Plain(("date",), "number", _part("year")),
    "quarter": Plain(("date",), "number", _part("quarter")),
    "month": Plain(("date",), "number", _part("month")),
    "day": Plain(("date",), "number", _part("day")),
    "weekday": Plain(("date",), "text", vectors.weekday),
    "hour": Plain(("datetime",), "number", vectors.hour),
    "days_between": Plain(("date", "date"), "number", _days_between),
}


def compile_expression(
    expression: Expression, fields: Mapping[str, Field], public: Sequence[str] = ()
) -> Compiled:
    """Give an expression types, for a table with these columns, and make it ready to be computed.

    `public` are the columns that a message may name: the first line of a file without a header is
    a row, so those of the table are not.

    >>> from dpublish.data.expressions.language import parse_expression
    >>> rows = pa.table({"age": ["17", "30", "x"]})
    >>> fields = {field.name: Field(field.type) for field in rows.schema}
    >>> adult = compile_expression(parse_expression("age >= 18"), fields)
    >>> adult.run(lambda name: rows[name], 3)  # no, yes, missing
    array([0, 1, 2], dtype=uint8)
    """
    compiler = Compiler(expression.text, fields, public, compile_call)
    return compiler.whole(expression.tree)


def compile_call(compiler: Compiler, call: Call) -> Built:
    """Compile a call of a function; refuse one that is not known, or has other arguments."""
    plain = _PLAIN.get(call.name)
    if plain is not None:
        return _plain_call(compiler, call, plain)
    special = _SPECIAL.get(call.name)
    if special is None:
        require_known("function", call.name, FUNCTIONS)
        raise compiler.refuse(call.at, f"there is no function {call.name!r}")
    return special(compiler, call)


def _plain_call(compiler: Compiler, call: Call, plain: Plain) -> Built:
    _require_count(compiler, call, len(plain.takes), len(plain.takes))
    pairs = zip(call.arguments, plain.takes, strict=True)
    runs = [compiler.run(compiler.operand(node), form) for node, form in pairs]
    compute = plain.compute
    return plain.gives, lambda read, rows: compute(*(run(read, rows) for run in runs))


def _require_count(compiler: Compiler, call: Call, least: int, most: int | None) -> None:
    found = len(call.arguments)
    if found < least or (most is not None and found > most):
        wanted = f"{least}" if most == least else f"{least} or more" if most is None else (
            f"{least} to {most}"
        )  # fmt: skip
        raise compiler.refuse(call.at, f"{call.name}(..) takes {wanted} values, not {found}")


def _to_numbers(integers: Any) -> FloatArray:
    floats = integers.cast("float64").to_numpy(zero_copy_only=False)
    return np.asarray(floats, dtype=np.float64)


# --- Functions whose form depends on what they are given ----------------------------------------


def _extreme(compiler: Compiler, call: Call) -> Built:
    """Compile `min` or `max` of several numbers or dates; one that is missing makes it missing."""
    _require_count(compiler, call, 2, None)
    form, runs = _alike(compiler, call.arguments, otherwise="number")
    if form in ("text", "truth"):
        raise compiler.unlike(call.arguments[0].at, "number", form)
    choose = np.minimum if call.name == "min" else np.maximum  # both hand on NaN
    return form, lambda read, rows: choose.reduce([run(read, rows) for run in runs])


def _coalesce(compiler: Compiler, call: Call) -> Built:
    """Compile the first of several values that is not missing."""
    _require_count(compiler, call, 2, None)
    form, runs = _alike(compiler, call.arguments)

    def run(read: Read, rows: int) -> Vector:
        found = runs[0](read, rows)
        for following in runs[1:]:
            absent = vectors.is_absent(found, form)
            found = _choose(absent, following(read, rows), found, form)
        return found

    return form, run


def _if(compiler: Compiler, call: Call) -> Built:
    """Compile a choice between two values; missing if the condition is."""
    _require_count(compiler, call, 3, 3)
    condition = compiler.truth(call.arguments[0])
    form, (first, second) = _alike(compiler, call.arguments[1:])

    def run(read: Read, rows: int) -> Vector:
        truth = condition(read, rows)
        chosen = _choose(truth == vectors.YES, first(read, rows), second(read, rows), form)
        return _without(chosen, truth == vectors.UNKNOWN, form)

    return form, run


def _choose(mask: Any, first: Vector, second: Vector, form: Form) -> Vector:
    if form == "text":
        return pc.if_else(_mask(mask), first, second)
    return np.where(mask, first, second)


def _without(vector: Vector, absent: Any, form: Form) -> Vector:
    if form == "text":
        return pc.if_else(_mask(absent), None, vector)
    return np.where(absent, vectors.UNKNOWN if form == "truth" else np.nan, vector).astype(
        vector.dtype
    )


def _mask(marks: Any) -> Any:
    return pa.array(marks)


def _alike(
    compiler: Compiler, nodes: tuple[Node, ...], otherwise: Form | None = None
) -> tuple[Form, list[Run]]:
    """Compile several values of one form, `otherwise` if all of them adapt."""
    operands = [compiler.operand(node) for node in nodes]
    firm = {operand.form for operand in operands if operand.form is not None}
    if len(firm) > 1 and not firm <= {"date", "datetime"}:
        raise compiler.refuse(nodes[0].at, "these values must all be numbers, texts or dates")
    form = "datetime" if "datetime" in firm else min(firm, default=None)
    form = form or otherwise or _shared(compiler, operands)
    return form, [compiler.run(operand, form) for operand in operands]


def _shared(compiler: Compiler, operands: list[Operand]) -> Form:
    """Return the form of values that all adapt: of numbers if one is written, else of text."""
    forms: set[Form] = {compiler.natural(x) for x in operands if x.literal is not None}
    forms = forms or {compiler.natural(x) for x in operands}
    return next(iter(forms)) if len(forms) == 1 else "text"


def _round(compiler: Compiler, call: Call) -> Built:
    _require_count(compiler, call, 1, 2)
    number = compiler.number(call.arguments[0])
    digits = _whole(compiler, call.arguments[1], -15, 15) if len(call.arguments) > 1 else 0
    return "number", lambda read, rows: vectors.rounded(number(read, rows), digits)


def _whole(compiler: Compiler, node: Node, least: int, most: int) -> int:
    """Read an argument that must be written as an integer."""
    sign = -1 if isinstance(node, Negative) else 1
    inner = node.of if isinstance(node, Negative) else node
    if isinstance(inner, Number) and inner.value.is_integer():
        found = sign * int(inner.value)
        if least <= found <= most:
            return found
    raise compiler.refuse(node.at, f"an integer from {least} to {most:,} must be written here")


def _substring(compiler: Compiler, call: Call) -> Built:
    """Compile some letters of a text: from which on, counted from 1, and how many."""
    _require_count(compiler, call, 2, 3)
    texts = compiler.run(compiler.operand(call.arguments[0]), "text")
    start = _whole(compiler, call.arguments[1], 1, 1_000_000) - 1
    stop = None
    if len(call.arguments) > 2:
        stop = start + _whole(compiler, call.arguments[2], 1, 1_000_000)

    def run(read: Read, rows: int) -> Vector:
        cut = pc.utf8_slice_codeunits(texts(read, rows), start, stop)
        return pc.if_else(pc.equal(cut, ""), None, cut)

    return "text", run


def _number(compiler: Compiler, call: Call) -> Built:
    _require_count(compiler, call, 1, 1)
    operand = compiler.operand(call.arguments[0])
    if operand.form != "text" or operand.column is not None:
        return "number", compiler.run(operand, "number")
    texts = compiler.run(operand, "text")
    return "number", lambda read, rows: to_numbers(texts(read, rows), "")


def _text(compiler: Compiler, call: Call) -> Built:
    _require_count(compiler, call, 1, 1)
    operand = compiler.operand(call.arguments[0])
    form = compiler.natural(operand)
    if operand.column is not None or operand.literal is not None or form == "text":
        return "text", compiler.run(operand, "text")
    inner = compiler.run(operand, form)
    return "text", lambda read, rows: to_texts(vectors.to_arrow(inner(read, rows), form), "")


def _date(compiler: Compiler, call: Call) -> Built:
    _require_count(compiler, call, 1, 1)
    form: Form = "date" if call.name == "date" else "datetime"
    return form, compiler.run(compiler.operand(call.arguments[0]), form)


_SPECIAL: Mapping[str, Callable[[Compiler, Call], Built]] = {
    "min": _extreme,
    "max": _extreme,
    "coalesce": _coalesce,
    "if": _if,
    "round": _round,
    "substring": _substring,
    "number": _number,
    "text": _text,
    "date": _date,
    "datetime": _date,
}
FUNCTIONS = tuple(sorted((*_PLAIN, *_SPECIAL, "column")))
"""Names of all functions."""
