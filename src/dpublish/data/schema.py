"""A schema: all that is publicly known of a table, declared by its owner.

Bounds, lists of values and taxonomies come from public knowledge (a code book, a distribution, a
questionnaire), never from the rows: whatever is learned from the rows has to be paid for.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from os import PathLike
from typing import Any

from dpublish.data.axis import Kind
from dpublish.data.column import (
    Category,
    CategoryColumn,
    Column,
    Missing,
    NumberColumn,
    require_distinct,
    with_words,
)
from dpublish.data.column_function import ColumnFunction, settle_functions
from dpublish.data.date_column import DateColumn, DatePart, DatePartColumn, cut_dates
from dpublish.data.interval import Partition, cut_at, equal_bins, order_intervals, whole_bins
from dpublish.data.periods import DateKind
from dpublish.data.publication import Publication, require_publication
from dpublish.data.stamps import UTC_NAME
from dpublish.data.statements import Combination, KnownTotal, settle_statements
from dpublish.data.taxonomy import Node, canonical_text, read_tree
from dpublish.display import Card, Display, draw, one_line
from dpublish.errors import (
    InvalidParameter,
    InvalidSchema,
    InvalidType,
    about,
    plain_refusals,
    require_count,
    require_known,
    what_it_is,
)
from dpublish.privacy.neighbors import (
    PERSON,
    AddRemoveRecord,
    AddRemoveUnit,
    plural,
    require_noun,
)

DEFAULT_BINS = 16
_LISTED = 5  # values of a column that a line lists
KINDS = ("numeric", "integer", "date", "datetime", "category", "ordinal")
MISSING_RULES = ("refuse", "category", "drop")


@dataclass(frozen=True)
class Schema(Display):
    """The columns of a table, and what is protected in it.

    Attributes:
        columns: The columns that may be used; a table may have more.
        unit: Column whose value all rows of one person (basket, ...) share; None if every
            row is a person of its own.
        name: What the table is called in reports.
        unit_name: What one unit is, for messages, if it is no person: a basket, a household.
        impossible: Combinations of values that no record can have.
        totals: Numbers of records that were published elsewhere.
        functions: Columns that follow from others, in an order in which they can be filled in;
            parts of dates are among them by themselves.
        publication: What is said of releases: title, license, contact, source; None for nothing.

    Statements are public facts.  A schema of fewer columns keeps those whose columns it keeps.

    >>> schema = Schema((column("age", "integer", bounds=[17, 90]),))
    >>> schema["age"].size, schema.names
    (74, ('age',))
    """

    columns: tuple[Column, ...]
    unit: str | None = None
    name: str = "table"
    unit_name: str | None = field(default=None, compare=False)
    impossible: tuple[Combination, ...] = ()
    totals: tuple[KnownTotal, ...] = ()
    functions: tuple[ColumnFunction, ...] = ()
    publication: Publication | None = field(default=None, compare=False)

    @plain_refusals
    def __post_init__(self) -> None:
        self._require_columns()
        for name in self.names:
            if self.names.count(name) > 1:
                raise InvalidSchema(f"two columns are called {name!r}; rename one of them")
        if self.unit is not None and not self.unit.strip():
            raise InvalidSchema(
                "unit is blank; name the column that tells people apart, or remove it"
            )
        if self.unit_name is not None:
            require_noun(self.unit_name)
        require_publication(self.publication)
        self._settle()

    def _require_columns(self) -> None:
        if not self.columns:
            raise InvalidSchema("a schema must have at least one column")
        for each in self.columns:
            if not isinstance(each, Column):
                raise InvalidType(
                    "columns must be declared, such as "
                    f'column("age", "integer", bounds=[0, 120]), not {what_it_is(each)}'
                )

    def _settle(self) -> None:
        """Fit what is stated to the columns."""
        facts = settle_statements(self._by_name, self.impossible, self.totals)
        settled = {
            **{"impossible": facts.impossible, "totals": facts.totals},
            "functions": settle_functions(self._by_name, self.functions),
        }
        for name, statements in settled.items():
            object.__setattr__(self, name, statements)

    def __repr__(self) -> str:
        unit = "" if self.unit is None else f", unit={self.unit!r}"
        return one_line(f"Schema({self.name!r}, columns: {', '.join(self.names)}{unit})")

    def _card(self) -> Card:
        hidden = self.neighbors.brief()
        rows = [[str(value) for value in each.values()] for each in self._as_records()]
        headers = ("column", "kind", "cells", "values", "missing")
        return Card(f"Schema {self.name}", {"hidden": hidden}, headers, rows)

    def _as_records(self) -> list[dict[str, Any]]:
        return [
            {
                "column": each.name,
                "kind": each.kind,
                "cells": each.size,
                "values": _values_of(each),
                "missing": each.missing,
            }
            for each in self.columns
        ]

    def plot(self) -> Any:
        """Draw how many cells each column has; returns a Matplotlib figure."""
        sizes = [each.size for each in self.columns]
        return draw("bars", self.names, sizes, title=f"Schema {self.name}", unit="cells")

    @classmethod
    def read(cls, path: str | PathLike[str]) -> "Schema":
        """Read a schema from a TOML or JSON file."""
        from dpublish.data.schema_file import load_schema  # which itself builds on this module

        return load_schema(path)

    @cached_property
    def names(self) -> tuple[str, ...]:
        """Names of the columns, in order."""
        return tuple(column.name for column in self.columns)

    @cached_property
    def source_names(self) -> tuple[str, ...]:
        """Names of the table's columns from which the columns are read, each once."""
        return tuple(dict.fromkeys(column.source_name for column in self.columns))

    @property
    def neighbors(self) -> AddRemoveRecord | AddRemoveUnit:
        """The change to the table that a release must not reveal."""
        return AddRemoveRecord() if self.unit is None else AddRemoveUnit(self.unit, self.unit_noun)

    @property
    def unit_noun(self) -> str:
        """What one unit is: a person, unless the owner says otherwise."""
        return PERSON if self.unit_name is None else self.unit_name

    @property
    def unit_who(self) -> str:
        """Name a unit and the column by which it is known: person ('patient_id')."""
        return AddRemoveUnit(self.unit or self.unit_noun, self.unit_noun).who

    def __getitem__(self, name: str) -> Column:
        if not isinstance(name, str) or name not in self._by_name:
            require_known("column", name, self.names)
        return self._by_name[name]

    @cached_property
    def _by_name(self) -> dict[str, Column]:
        return {column.name: column for column in self.columns}


def _values_of(given: Column) -> str:
    """Say which values a column may have: its bounds, or its first values."""
    if isinstance(given, NumberColumn):
        low, high = given.bounds
        return f"{given.show(low, digits=12)} to {given.show(high, digits=12)}"
    labels = given.axis().labels
    more = f" and {len(labels) - _LISTED:,} more" if len(labels) > _LISTED else ""
    return ", ".join(labels[:_LISTED]) + more


def keep_columns(schema: Schema, names: Collection[str]) -> Schema:
    """Keep the columns of these names, in the schema's order; other names are ignored."""
    return replace(schema, columns=tuple(x for x in schema.columns if x.name in names))


def bounded_schema(schema: Schema, columns: Iterable[Column]) -> Schema:
    """Describe the rows that are kept of each unit: records of their own.

    Known totals count all rows of the table, so none is known of those that are kept.
    """
    return replace(schema, columns=tuple(columns), unit=None, totals=())


def refuse_unit(schema: Schema) -> None:
    """Refuse a schema whose unit may own many rows, for methods that protect single records."""
    if schema.unit is not None:
        raise needs_contribution(schema)


def needs_contribution(schema: Schema, method: str = "this method") -> InvalidParameter:
    """Return the refusal of a unit that may own many rows, with what to write instead."""
    return InvalidParameter(
        f"{method} hides single records, but here one {schema.unit_who} may have several; write "
        "--contribution 4 (contribution=4) to keep at most 4 records of each, chosen at random, "
        "and to hide all of them"
    )


def parse_columns(
    listed: str | Iterable[str], schema: Schema
) -> tuple[tuple[str, int | None], ...]:
    """Read a list of columns such as `age@2,sex`, each with an optional level.

    >>> schema = Schema((column("age", "numeric", bounds=[0, 99], branching=2),))
    >>> parse_columns("age@2", schema)
    (('age', 2),)
    """
    parts = [part.strip() for part in listed.split(",")] if isinstance(listed, str) else listed
    found = tuple(_parse_column(part, schema) for part in parts)
    names = [name for name, _ in found]
    for name in names:
        if names.count(name) > 1:
            raise InvalidParameter(f"column {name!r} is listed twice")
    return found


def listed_names(listed: Iterable[str], schema: Schema) -> tuple[str, ...]:
    """Name the listed columns without their levels, in the schema's order.

    >>> schema = Schema((column("age", "numeric", bounds=[0, 99], branching=2),))
    >>> listed_names(("age@2",), schema)
    ('age',)
    """
    found = {_parse_column(text, schema)[0] for text in listed}
    return tuple(name for name in schema.names if name in found)


def all_names(schema: Schema) -> tuple[str, ...]:
    """Name all columns but the one that tells units apart."""
    return tuple(name for name in schema.names if name != schema.unit)


def _parse_column(text: str, schema: Schema) -> tuple[str, int | None]:
    if text in schema.names:
        return text, None
    name, at, level = text.rpartition("@")
    if not at:
        if text == schema.unit:
            raise InvalidParameter(
                f"column {text!r} tells {plural(schema.unit_noun)} apart, and is nothing to publish"
            )
        require_known("column", text, schema.names)
    height = schema[name].height
    if not (level.isascii() and level.isdigit() and int(level) <= height):
        raise InvalidParameter(f"column {name!r} has the levels 0 (one cell) to {height} (leaves)")
    return name, int(level)


@plain_refusals
def column(
    name: str,
    kind: Kind | None = None,
    *,
    bounds: Sequence[Any] | None = None,
    bins: int | str | None = None,
    cuts: Sequence[float] | None = None,
    values: Sequence[Category] | None = None,
    codes: Sequence[Category] | None = None,
    other: str | None = None,
    taxonomy: Any = None,
    branching: int | None = None,
    missing: Missing | None = None,
    time_zone: str | None = None,
    format: str | None = None,
    source: DateColumn | None = None,
    part: DatePart | None = None,
    description: str | None = None,
    measured_in: str | None = None,
) -> Column:
    """Declare a column by the same keys as in a schema file.

    A part of a date names its column of dates as `source` (in a file: `from`) and needs no kind.
    What the column holds (`description`) and in what it is measured (`measured_in`) are words
    for readers, which releases carry.

    >>> age = column("age", "integer", bounds=[0, 99], bins=10)
    >>> age.size, age.axis().labels[:2]
    (10, ('0..9', '10..19'))
    >>> column("sex", "category", values=["Female", "Male"], missing="category").axis().labels
    ('Female', 'Male', '(missing)')
    >>> admitted = column("admitted", "date", bounds=["2023-01-01", "2024-12-31"], bins="quarter")
    >>> admitted.axis().labels[-2:], admitted.axis(1).labels
    (('2024-Q3', '2024-Q4'), ('2023', '2024'))
    >>> column("weekday", source=admitted, part="weekday").axis().labels[:2]
    ('Monday', 'Tuesday')
    """
    _require_lists(name, bounds=bounds, cuts=cuts, values=values, codes=codes)
    with about(f"column {name!r}:"):
        if source is not None or part is not None:
            _refuse_settings(
                "a part of a date",
                **{"bounds": bounds, "bins": bins, "cuts": cuts, "values": values, "other": other},
                **{"taxonomy": taxonomy, "branching": branching, "missing": missing},
                **{"time_zone": time_zone, "format": format},
            )
            return with_words(_declare_part(name, kind, source, part), description, measured_in)
        if kind is None:
            raise InvalidSchema(f"kind is missing; it must be one of {', '.join(KINDS)}")
        missing = missing or "refuse"
        _check_settings(name, kind, missing, branching, taxonomy)
        if kind == "date" or kind == "datetime":
            _refuse_settings(kind, values=values, other=other, cuts=cuts, taxonomy=taxonomy)
            dates = _declare_dates(name, kind, bounds, bins, branching, missing, time_zone, format)
            return with_words(dates, description, measured_in)
        _refuse_settings(kind, time_zone=time_zone, format=format)
        if isinstance(bins, str):
            raise InvalidSchema("bins must be an integer; periods are for dates")
        if bins is not None:
            require_count(bins=bins)
        tree = None if taxonomy is None else read_tree(taxonomy)
        if kind == "numeric" or kind == "integer":
            _refuse_settings(kind, values=values, codes=codes, other=other)
            numbers = NumberColumn(
                name=name,
                kind=kind,
                partition=_cut_numbers(kind == "integer", bounds, bins, cuts, tree),
                tree=tree,
                branching=branching,
                missing=missing,
            )
            return with_words(numbers, description, measured_in)
        _refuse_settings(kind, bounds=bounds, bins=bins, cuts=cuts)
        categories = _list_categories(kind, values, other, tree)
        found = CategoryColumn(
            name=name,
            kind=kind,
            categories=categories,
            codes=_order_codes(categories, values, codes),
            other=other,
            tree=tree,
            branching=branching,
            missing=missing,
        )
        return with_words(found, description, measured_in)


_LISTS = {
    "bounds": "the least and the greatest value, such as [0, 120]",
    "cuts": "the ends of bins, such as [0, 18, 65, 120]",
    "values": 'a list of values, such as ["Female", "Male"]',
    "codes": 'a list of codes, one for each value, such as ["F", "M"]',
}


def _require_lists(name: object, **settings: object) -> None:
    """Refuse text and single values where a list is wanted: text would be read by its letters."""
    if not isinstance(name, str):
        raise InvalidType(f"the name of a column must be text, not {what_it_is(name)}")
    for setting, value in settings.items():
        is_text = isinstance(value, str) and setting != "bounds"  # whose checks know the kind
        if value is not None and (is_text or not isinstance(value, Iterable)):
            told = repr(value) if isinstance(value, str) else what_it_is(value)
            raise InvalidType(f"column {name!r}: {setting} must be {_LISTS[setting]}, not {told}")


def _declare_dates(
    name: str,
    kind: DateKind,
    bounds: Sequence[Any] | None,
    bins: int | str | None,
    branching: int | None,
    missing: Missing,
    time_zone: str | None,
    written: str | None,
) -> DateColumn:
    zone = UTC_NAME if time_zone is None else time_zone
    if isinstance(bins, int):
        require_count(bins=bins)
    elif branching is not None:
        raise InvalidSchema("branching needs a number of bins; periods have levels of their own")
    return DateColumn(
        name=name,
        kind=kind,
        partition=cut_dates(kind, bounds, bins, zone),
        branching=branching,
        missing=missing,
        time_zone=zone,
        format=written,
    )


def _declare_part(
    name: str, kind: Kind | None, source: DateColumn | None, part: DatePart | None
) -> DatePartColumn:
    if source is None or part is None:
        raise InvalidSchema(
            'a part of a date needs both: from = "a column of dates" and part = "weekday"'
        )
    if not name.strip():
        raise InvalidSchema("name is blank; write a name for the part")
    if kind not in (None, "ordinal"):
        raise InvalidSchema(f"kind ({kind}) must be ordinal for a part of a date; remove it")
    return DatePartColumn.of(name, source, part)


def _check_settings(
    name: str, kind: str, missing: str, branching: int | None, taxonomy: object
) -> None:
    if not name.strip():
        raise InvalidSchema("name is blank; write the column's name in the table")
    if kind not in KINDS:
        raise InvalidSchema(f"kind ({kind}) must be one of {', '.join(KINDS)}")
    if missing not in MISSING_RULES:
        raise InvalidSchema(f"missing ({missing}) must be one of {', '.join(MISSING_RULES)}")
    if branching is None:
        return
    require_count(at_least=2, branching=branching)
    if taxonomy is not None:
        raise InvalidSchema("taxonomy and branching exclude each other; remove one")
    if kind == "category":
        _refuse_settings(kind, branching=branching)


def _refuse_settings(kind: str, **settings: object) -> None:
    for name, value in settings.items():
        if value is not None:
            what = kind if kind.startswith("a ") else f"columns of kind {kind}"
            raise InvalidSchema(f"{name} does not apply to {what}; remove it")


def _cut_numbers(
    whole: bool,
    bounds: Sequence[float] | None,
    bins: int | None,
    cuts: Sequence[float] | None,
    tree: Node | None,
) -> Partition:
    if tree is None and cuts is None:
        return _cut_evenly(whole, bounds, bins)
    source = "cuts" if tree is None else "taxonomy"
    if bins is not None or (tree is not None and cuts is not None):
        raise InvalidSchema(f"{source} alone says where to cut; remove bins and other cuts")
    with about(source):
        if tree is None:
            partition = cut_at(tuple(cuts or ()), whole=whole)
        else:
            partition = order_intervals(tree, whole=whole).partition
    low, high = partition.low, partition.high
    if bounds is not None and tuple(bounds) != (low, high):
        raise InvalidSchema(
            f"bounds contradict {source}, from {low:.12g} to {high:.12g}; remove bounds"
        )
    return partition


def _cut_evenly(whole: bool, bounds: Sequence[float] | None, bins: int | None) -> Partition:
    if bounds is None:
        raise InvalidSchema(
            "bounds are missing; write bounds = [low, high] from public knowledge, or measure them "
            "with: dpublish schema bounds"
        )
    with about("bounds"):
        if len(bounds) != 2:
            raise InvalidSchema("must be two numbers, [low, high]")
        low, high = bounds
        if not whole:
            return equal_bins(float(low), float(high), DEFAULT_BINS if bins is None else bins)
        if not (float(low).is_integer() and float(high).is_integer()):
            raise InvalidSchema("must be integers for a column of kind integer")
        return whole_bins(int(low), int(high), bins)


def _list_categories(
    kind: str, values: Sequence[Category] | None, other: str | None, tree: Node | None
) -> tuple[Category, ...]:
    """List the values in the order of the leaves."""
    if values is not None:
        require_distinct(tuple(map(str, values)))
    if tree is None:
        if not values:
            raise InvalidSchema("values are missing; list them, or give a taxonomy")
        return tuple(values)
    leaves = tuple(tree.leaves())
    if values is None:
        return leaves
    listed = {canonical_text(value): value for value in values}
    in_tree = [canonical_text(leaf) for leaf in leaves]
    _require_same(listed, in_tree, other)
    if kind == "ordinal" and [text for text in in_tree if text in listed] != list(listed):
        raise InvalidSchema("taxonomy changes the order of values, which an ordinal must keep")
    return tuple(listed.get(text, leaf) for text, leaf in zip(in_tree, leaves, strict=True))


def _order_codes(
    categories: tuple[Category, ...],
    values: Sequence[Category] | None,
    codes: Sequence[Category] | None,
) -> tuple[Category, ...] | None:
    """Put codes in the order of the leaves, as the values were; a leaf of its own is its code."""
    if codes is None:
        return None
    if values is None or len(values) != len(codes):
        raise InvalidSchema("codes must be one for each of the values")
    code_of = dict(zip(map(canonical_text, values), codes, strict=True))
    return tuple(code_of.get(canonical_text(leaf), leaf) for leaf in categories)


def _require_same(listed: Mapping[str, Category], in_tree: list[str], other: str | None) -> None:
    catch_all = None if other is None else canonical_text(other)
    leaves = set(in_tree)
    for text in listed:
        if text not in leaves and text != catch_all:
            raise InvalidSchema(f"taxonomy has no leaf for {text!r}, which values lists")
    for text in in_tree:
        if text not in listed and text != catch_all:
            raise InvalidSchema(f"taxonomy has {text!r}, which values does not list")
