"""A schema: all that is publicly known of a table, declared by its owner.

Bounds, lists of values and taxonomies come from public knowledge (a code book, a distribution, a
questionnaire), never from the rows: whatever is learned from the rows has to be paid for.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
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
)
from dpublish.data.interval import Partition, cut_at, equal_bins, order_intervals, whole_bins
from dpublish.data.taxonomy import Node, canonical_text, read_tree
from dpublish.errors import InvalidParameter, InvalidSchema, require_count, require_known
from dpublish.privacy.neighbors import AddRemoveRecord, AddRemoveUnit

DEFAULT_BINS = 16
KINDS = ("numeric", "integer", "category", "ordinal")
MISSING_RULES = ("refuse", "category", "drop")


@dataclass(frozen=True)
class Schema:
    """The columns of a table, and what is protected in it.

    Attributes:
        columns: The columns that may be used; a table may have more.
        unit: Column whose value all rows of one person (basket, ...) share; None if every
            row is a person of its own.
        name: What the table is called in reports.

    >>> schema = Schema((column("age", "integer", bounds=[17, 90]),))
    >>> schema["age"].size, schema.names
    (74, ('age',))
    """

    columns: tuple[Column, ...]
    unit: str | None = None
    name: str = "table"

    def __post_init__(self) -> None:
        if not self.columns:
            raise InvalidSchema("a schema must have at least one column")
        for name in self.names:
            if self.names.count(name) > 1:
                raise InvalidSchema(f"two columns are called {name!r}; rename one of them")
        if self.unit is not None and not self.unit.strip():
            raise InvalidSchema(
                "unit is blank; name the column that tells units apart, or remove it"
            )

    @classmethod
    def read(cls, path: str | PathLike[str]) -> "Schema":
        """Read a schema from a TOML or JSON file."""
        from dpublish.data.schema_file import load_schema  # which itself builds on this module

        return load_schema(path)

    @cached_property
    def names(self) -> tuple[str, ...]:
        """Names of the columns, in order."""
        return tuple(column.name for column in self.columns)

    @property
    def neighbors(self) -> AddRemoveRecord | AddRemoveUnit:
        """The change to the table that a release must not reveal."""
        return AddRemoveRecord() if self.unit is None else AddRemoveUnit(self.unit)

    def __getitem__(self, name: str) -> Column:
        if name not in self._by_name:
            require_known("column", name, self.names)
        return self._by_name[name]

    @cached_property
    def _by_name(self) -> dict[str, Column]:
        return {column.name: column for column in self.columns}


def refuse_unit(schema: Schema) -> None:
    """Refuse a schema whose unit may own many rows, for methods that protect single records."""
    if schema.unit is not None:
        raise needs_contribution(schema.unit)


def needs_contribution(unit: str, method: str = "this method") -> InvalidParameter:
    """Return the refusal of a unit that may own many rows, with what to write instead."""
    return InvalidParameter(
        f"{method} hides single records, but here a unit ({unit!r}) may have several rows; write "
        "--contribution 4 (contribution=4) to keep at most 4 rows of each, chosen at random, and "
        "to hide all of them"
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


def _parse_column(text: str, schema: Schema) -> tuple[str, int | None]:
    if text in schema.names:
        return text, None
    name, at, level = text.rpartition("@")
    if not at:
        require_known("column", text, schema.names)
    height = schema[name].height
    if not (level.isascii() and level.isdigit() and int(level) <= height):
        raise InvalidParameter(f"column {name!r} has the levels 0 (one cell) to {height} (leaves)")
    return name, int(level)


def column(
    name: str,
    kind: Kind,
    *,
    bounds: Sequence[float] | None = None,
    bins: int | None = None,
    cuts: Sequence[float] | None = None,
    values: Sequence[Category] | None = None,
    other: str | None = None,
    taxonomy: Any = None,
    branching: int | None = None,
    missing: Missing = "refuse",
) -> Column:
    """Declare a column by the same keys as in a schema file.

    >>> age = column("age", "integer", bounds=[0, 99], bins=10)
    >>> age.size, age.axis().labels[:2]
    (10, ('0..9', '10..19'))
    >>> column("sex", "category", values=["Female", "Male"], missing="category").axis().labels
    ('Female', 'Male', '(missing)')
    """
    with about(f"column {name!r}:"):
        _check_settings(name, kind, missing, branching, taxonomy)
        if bins is not None:
            require_count(bins=bins)
        tree = None if taxonomy is None else read_tree(taxonomy)
        if kind == "numeric" or kind == "integer":
            _refuse_settings(kind, values=values, other=other)
            return NumberColumn(
                name=name,
                kind=kind,
                partition=_cut_numbers(kind == "integer", bounds, bins, cuts, tree),
                tree=tree,
                branching=branching,
                missing=missing,
            )
        _refuse_settings(kind, bounds=bounds, bins=bins, cuts=cuts)
        return CategoryColumn(
            name=name,
            kind=kind,
            categories=_list_categories(kind, values, other, tree),
            other=other,
            tree=tree,
            branching=branching,
            missing=missing,
        )


@contextmanager
def about(subject: str) -> Iterator[None]:
    """Name in a refusal what it is about."""
    try:
        yield
    except InvalidParameter as refusal:
        raise InvalidSchema(f"{subject} {refusal}") from None
    except OverflowError:
        raise InvalidSchema(f"{subject} holds a number that is too large") from None


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
            raise InvalidSchema(f"{name} does not apply to columns of kind {kind}; remove it")


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
        raise InvalidSchema("bounds are missing; write bounds = [low, high] from public knowledge")
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


def _require_same(listed: Mapping[str, Category], in_tree: list[str], other: str | None) -> None:
    catch_all = None if other is None else canonical_text(other)
    for text in listed:
        if text not in in_tree and text != catch_all:
            raise InvalidSchema(f"taxonomy has no leaf for {text!r}, which values lists")
    for text in in_tree:
        if text not in listed and text != catch_all:
            raise InvalidSchema(f"taxonomy has {text!r}, which values does not list")
