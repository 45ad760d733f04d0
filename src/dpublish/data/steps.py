"""What is done to each record before a method sees it: join lookups, derive columns, filter.

Every step looks at one record (and at public lookups) only, so a table that differs by one record,
or by the rows of one unit, still does so after all steps (docs/proofs/record_steps.md).  The order
is fixed: lookups, then derived columns one after the other, then the filter.  Types are settled
when a table is opened, from names and types of columns alone; no value can make a step fail.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import pyarrow as pa

from dpublish.data.encoding import plain_array, to_texts
from dpublish.data.engines.source import quietly, select_header
from dpublish.data.expressions.compiler import Compiled, Field
from dpublish.data.expressions.functions import compile_expression
from dpublish.data.expressions.language import Expression, parse_expression
from dpublish.data.expressions.tree import words_of
from dpublish.data.expressions.vectors import ARROW_TYPES, YES, to_arrow
from dpublish.data.lookup import Lookup, LookupTable
from dpublish.data.schema import Schema
from dpublish.errors import InvalidParameter, UnreadableData

FILTER = "where "
"""How the text of a filter begins."""
_DERIVATION = re.compile(r"""\s*(?:"((?:[^"]|"")+)"|([^\s"'=<>!]+))\s*=(?!=)(.*)""", re.DOTALL)


@dataclass(frozen=True)
class Derived:
    """A column that is computed from others of the same record."""

    name: str
    expression: Expression

    def __str__(self) -> str:
        plain = re.fullmatch(r"[\w.@#-]+", self.name) is not None
        shown = self.name if plain else '"' + self.name.replace('"', '""') + '"'
        return f"{shown} = {self.expression}"


@dataclass(frozen=True)
class Steps:
    """All steps, parsed; they know nothing of a table yet."""

    lookups: tuple[LookupTable, ...] = ()
    derived: tuple[Derived, ...] = ()
    where: Expression | None = None

    def __bool__(self) -> bool:
        return bool(self.lookups or self.derived or self.where)

    @property
    def texts(self) -> tuple[str, ...]:
        """What is done, in the order in which it is done, in words that may be published."""
        texts = [lookup.text for lookup in self.lookups]
        texts += [f"derive {derived}" for derived in self.derived]
        return (*texts, *([] if self.where is None else [f"{FILTER}{self.where}"]))

    @property
    def made(self) -> tuple[str, ...]:
        """Names of the columns that the steps add."""
        looked_up = [name for lookup in self.lookups for name in lookup.columns.schema.names]
        return (*looked_up, *(derived.name for derived in self.derived))

    @property
    def words(self) -> tuple[str, ...]:
        """All words that may name a column of the source."""
        expressions = [derived.expression for derived in self.derived]
        expressions += [] if self.where is None else [self.where]
        found = [word for expression in expressions for word in words_of(expression.tree)]
        return tuple(dict.fromkeys((*(lookup.on for lookup in self.lookups), *found)))

    def wanted(self, columns: Sequence[str]) -> tuple[str, ...]:
        """List what may be read of a source so that some columns are there after the steps."""
        made = set(self.made)
        asked = (name for name in (*columns, *self.words) if name not in made)
        return tuple(dict.fromkeys(asked))

    def plan(self, header: Any, schema: Schema, label: str) -> "Plan":
        """Settle the types for a source with this header."""
        return Plan(self, header, schema, label)


NO_STEPS = Steps()
"""Records as they are."""


def read_steps(
    where: str | None = None,
    derive: str | Sequence[str] = (),
    lookups: Lookup | Sequence[Lookup] = (),
) -> Steps:
    """Parse steps, and read the lookups, which are public.

    >>> read_steps("age >= 18", ["bmi = weight / (height / 100) ** 2"]).texts
    ('derive bmi = weight / (height / 100) ** 2', 'where age >= 18')
    """
    tables = [lookups] if isinstance(lookups, Lookup) else lookups
    texts = [derive] if isinstance(derive, str) else derive
    return Steps(
        tuple(lookup.load() for lookup in tables),
        tuple(map(_read_derived, texts)),
        None if where is None else parse_expression(where),
    )


def _read_derived(text: str) -> Derived:
    found = _DERIVATION.fullmatch(text) if isinstance(text, str) else None
    if found is None:
        raise InvalidParameter(
            f"{text!r} derives no column; write name = expression, such as "
            "'bmi = weight / (height / 100) ** 2'"
        )
    name = found[2] if found[1] is None else found[1].replace('""', '"')
    return Derived(name, parse_expression(found[3].strip()))


class Plan:
    """Steps for a source with certain columns: how each column that is asked for is made.

    Holds no row, and may go to other processes, which settle the types again.
    """

    def __init__(self, steps: Steps, header: Any, schema: Schema, label: str) -> None:
        self.steps = steps
        self.raw = header
        self._schema = schema
        self._label = label
        self._fields = {
            name: Field(header.field(name).type, self._declared(name))
            for name in header.names
            if header.names.count(name) == 1
        }
        for name in tuple(self._fields):
            self._add_parts(name)
        self._looked_up: dict[str, LookupTable] = {}
        self._derived: dict[str, Compiled] = {}
        for lookup in steps.lookups:
            self._join(lookup)
        for derived in steps.derived:
            self._derive(derived)
        self._where = None if steps.where is None else self._filter(steps.where)
        added = [pa.field(name, self._fields[name].kind) for name in steps.made]
        self.header = pa.schema([*header, *added])

    def __reduce__(self) -> tuple[Any, ...]:
        return Plan, (self.steps, self.raw, self._schema, self._label)

    def check(self, columns: Sequence[str]) -> None:
        """Refuse a derived column that nothing uses, for lack of a declaration in the schema."""
        _ = self._counting
        self._try(columns)
        used = set(columns)
        used |= set() if self._where is None else set(self._where.uses)
        used |= {name for compiled in self._derived.values() for name in compiled.uses}
        for derived in self.steps.derived:
            if derived.name not in used and derived.name not in self._schema.names:
                raise InvalidParameter(
                    f"the derived column {derived.name!r} is not in the schema, and no step uses "
                    f"it; {_declaration(derived.name, self._derived[derived.name].form)}"
                )

    def _try(self, columns: Sequence[str]) -> None:
        """Take no record through all steps: a type that cannot be used is refused by that."""
        asked = (*columns, *self.steps.made)
        read = self.needs(asked)
        message = f"the steps use a column of {self._label} whose type cannot be used; cast it"
        quietly(lambda: list(self.apply(iter([_no_records(self.raw, read)]), asked)), message)

    def needs(self, columns: Sequence[str]) -> tuple[str, ...]:
        """List the columns of the source that are read so that some columns can be made."""
        waiting = [*columns, *(() if self._where is None else self._where.uses)]
        found: dict[str, None] = {}
        while waiting:
            name = waiting.pop(0)
            if name in found:
                continue
            found[name] = None
            if name in self._derived:
                waiting.extend(self._derived[name].uses)
            elif name in self._looked_up:
                waiting.append(self._looked_up[name].on)
        raw = tuple(name for name in found if not self._is_made(name))
        return raw or self._counting  # some column counts the records

    @cached_property
    def _counting(self) -> tuple[str, ...]:
        """A column that is read where all that is asked for is computed from none."""
        known = (*self._schema.source_names, *self.steps.words)
        raw = [name for name in known if self.raw.names.count(name) == 1]
        if not raw:
            raise InvalidParameter("the steps use no column of the table; name one in the schema")
        return tuple(raw[:1])

    def apply(self, batches: Iterator[Any], columns: Sequence[str]) -> Iterator[Any]:
        """Take record batches of a source through all steps; yield the columns asked for."""
        for batch in batches:
            records = _Records(self._make, batch)
            if self._where is not None:
                truth = self._where.run(records.read, batch.num_rows)
                kept = truth == YES
                if not kept.all():
                    records = _Records(self._make, batch.filter(pa.array(kept)))
            arrays = [records.read(name) for name in columns]
            yield pa.RecordBatch.from_arrays(arrays, names=list(columns))

    def _make(self, name: str, records: "_Records") -> Any:
        if name in self._derived:
            compiled = self._derived[name]
            return to_arrow(compiled.run(records.read, records.rows), compiled.form)
        lookup = self._looked_up[name]
        return lookup.take(name, records.rows_of(lookup))

    def _is_made(self, name: str) -> bool:
        return name in self._derived or name in self._looked_up

    def _declared(self, name: str) -> Any:
        return self._schema[name] if name in self._schema.names else None

    def _add(self, name: str, kind: Any, what: str) -> None:
        if name in self.raw.names or name in self._fields:
            raise InvalidParameter(
                f"{what} {name!r}, but {self._label} has a column of that name already; choose "
                "another name"
            )
        self._fields[name] = Field(kind, self._declared(name))
        self._add_parts(name)

    def _add_parts(self, source: str) -> None:
        """Know the parts of a column of dates, also where the source has columns of their names."""
        for part in self._schema.columns:
            if part.source_name == source != part.name:
                self._fields[part.name] = Field(self._fields[source].kind, part, source)

    def _join(self, lookup: LookupTable) -> None:
        if lookup.on not in self._fields:
            raise UnreadableData(
                f"column {lookup.on!r} of {self._label}, on which the lookup {lookup.label} is to "
                "be joined, is not there, or there twice; check its name"
            )
        to_texts(pa.array([], self._fields[lookup.on].kind), lookup.on)  # refuses odd types
        for field in lookup.columns.schema:
            self._add(field.name, field.type, f"the lookup {lookup.label} adds the column")
            self._looked_up[field.name] = lookup

    def _derive(self, derived: Derived) -> None:
        compiled = compile_expression(derived.expression, self._fields, self._public)
        self._add(derived.name, ARROW_TYPES[compiled.form], "a step derives the column")
        self._derived[derived.name] = compiled

    def _filter(self, where: Expression) -> Compiled:
        compiled = compile_expression(where, self._fields, self._public)
        if compiled.form != "truth":
            raise InvalidParameter(
                f"{str(where)!r} is no condition; write one, such as age >= 18 or country = FR"
            )
        return compiled

    @cached_property
    def _public(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys((*self._schema.names, *self.steps.made)))


class _Records:
    """Some records, whose further columns are made when they are asked for."""

    def __init__(self, make: Any, batch: Any) -> None:
        self._make = make
        self._made: dict[str, Any] = dict(zip(batch.schema.names, batch.columns, strict=True))
        self._found: dict[int, Any] = {}
        self.rows = batch.num_rows

    def read(self, name: str) -> Any:
        """Return a column, made if it must be."""
        if name not in self._made:
            self._made[name] = self._make(name, self)
        return self._made[name]

    def rows_of(self, lookup: LookupTable) -> Any:
        """Return the row of a lookup that each record belongs to."""
        if id(lookup) not in self._found:
            self._found[id(lookup)] = lookup.find(to_texts(self.read(lookup.on), lookup.on))
        return self._found[id(lookup)]


def _no_records(header: Any, columns: Sequence[str]) -> Any:
    """Make a record batch without records, of the types that a scan hands over."""
    empty = select_header(header, columns).empty_table()
    arrays = [plain_array(column.combine_chunks()) for column in empty.columns]
    return pa.RecordBatch.from_arrays(arrays, names=list(columns))


def _declaration(name: str, form: str) -> str:
    """Write what a schema must say of a derived column."""
    kinds = {
        "number": 'kind = "numeric" and bounds = [low, high]',
        "date": 'kind = "date" and bounds = [first, last]',
        "datetime": 'kind = "datetime" and bounds = [first, last]',
        "truth": 'kind = "category" and values = ["true", "false"]',
    }
    says = kinds.get(form, 'kind = "category" and values = [...]')
    key = name if re.fullmatch(r"[A-Za-z0-9_-]+", name) else f'"{name}"'
    return f"declare it there, under [columns.{key}], with {says} from public knowledge"
