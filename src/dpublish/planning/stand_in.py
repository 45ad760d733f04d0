"""Rows to rehearse on in place of private ones: an earlier release, a public table, a simulation.

A stand-in is public.  Nothing here opens the private table, so a rehearsal costs nothing and may
be repeated as often as wanted.
"""

import json
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from os import PathLike, fspath
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pyarrow as pa

from dpublish.core.axis_rows import draw_rows
from dpublish.core.folder.folder import load
from dpublish.core.noisy_size import MAX_ROWS
from dpublish.core.prediction import UNKNOWN, encode_rows, find_column
from dpublish.core.released import Release
from dpublish.data.axis import Axis
from dpublish.data.column import CategoryColumn, Column
from dpublish.data.column_function import fill_functions
from dpublish.data.date_column import DatePartColumn
from dpublish.data.schema import Schema
from dpublish.errors import (
    InputError,
    InvalidParameter,
    InvalidType,
    UnreadableData,
    require_count,
    require_known,
)
from dpublish.evaluation.classification import gives_rows
from dpublish.evaluation.true_rows import read_rows
from dpublish.privacy.epsilon import format_rounded
from dpublish.randomness import plain_generator
from dpublish.types import FloatArray

Origin = Literal["release", "table", "simulated"]
SIMULATED = "simulated"
"""The word for a simulation in which nothing but the schema is stated."""
STAMP = "simulated: no private row was read"
"""What figures of a rehearsal are stamped with."""
STAMP_OF_TABLE = f"{STAMP}, if the table that stands in is public, as you state"
"""The same, where only whoever named the table knows that it is public."""
STAMP_OF_SEEDED = "NOT PRIVATE: the release that stands in guarantees nothing about its rows"
"""The same, where the noise of the release that stands in came from a seed."""
_HELD_OUT = 4
"""One row to measure on for so many rows to release from."""
_DEFAULT_ROWS = 10_000
_SHARE_ENDINGS = (".toml", ".json")


@dataclass(frozen=True, eq=False)
class StandIn:
    """Public rows of the same columns as a private table.

    Attributes:
        rows: Rows that a rehearsed release is made from.
        held_out: Further rows, to measure predictions on.
        origin: Where the rows are from.
        label: The same in words.
        notes: What the rows cannot show, in words.
        release: The earlier release that they were drawn from, if there is one.
    """

    rows: pa.Table
    held_out: pa.Table
    origin: Origin
    label: str
    notes: tuple[str, ...] = ()
    release: Release | None = None

    @property
    def stamp(self) -> str:
        """What figures that are measured on it are stamped with."""
        if self.release is not None and not self.release.receipt.is_private:
            return STAMP_OF_SEEDED
        return STAMP_OF_TABLE if self.origin == "table" else STAMP


def read_stand_in(
    source: Any,
    schema: Schema,
    columns: Sequence[str],
    *,
    n_records: int | None = None,
    seed: int = 0,
) -> StandIn:
    """Read a stand-in that has the named columns; reads no private row.

    Args:
        source: The folder of an earlier release or the release itself; a public table (a file, or
            any Arrow-compatible object); shares of values by column (a .toml or .json file, or a
            dict); or the word "simulated", for even shares.
        schema: What is publicly known of the private table.
        columns: Columns that are needed.
        n_records: How many rows to release from; as many as the release counted or the table
            has, unless named.
        seed: Decides which rows are drawn.
    """
    require_count(seed=seed, at_least=0)
    if n_records is not None:
        require_count(n_records=n_records)
        if n_records > MAX_ROWS:
            raise InvalidParameter(f"n_records ({n_records:,}) must be at most {MAX_ROWS:,}")
    if isinstance(source, (str, PathLike)):
        source = _find(fspath(source))
    if isinstance(source, Release):
        return _of_release(source, schema, columns, n_records, seed)
    if isinstance(source, Mapping):
        return simulate(schema, columns, source, n_records=n_records, seed=seed)
    if isinstance(source, Path):
        names = [schema[name].source_name for name in columns]
        rows = read_rows(str(source), list(dict.fromkeys(names)), schema=schema)
        return _of_table(rows, schema, columns, n_records, seed, str(source))
    return _of_table(_as_table(source), schema, columns, n_records, seed, "the public table")


def _find(path: str) -> Any:
    """Read a release or stated shares from a path; leave the path of a table as it is."""
    if path == SIMULATED:
        return {}
    if not Path(path).exists():
        raise UnreadableData(
            f"the stand-in {path} is not there; name a release folder, a public table, a file of "
            f"shares (.toml, .json), or {SIMULATED}"
        )
    if Path(path).is_dir():
        return load(path)
    return read_shares(path) if path.endswith(_SHARE_ENDINGS) else Path(path)


def read_shares(path: str) -> dict[str, Any]:
    """Read stated shares by column from a .toml or .json file."""
    try:
        text = Path(path).read_text(encoding="utf-8")
    except OSError as error:
        raise InputError(f"{path} cannot be read ({error.strerror})") from None
    except ValueError as error:
        raise InputError(f"{path} is not valid: {error}") from None
    return parse_shares(text, path, is_json=path.endswith(".json"))


def parse_shares(
    text: str, source: str = "what was written", *, is_json: bool = False
) -> dict[str, Any]:
    r"""Read stated shares by column from text; `source` names it in a refusal.

    >>> parse_shares("[sex]\nFemale = 0.52")
    {'sex': {'Female': 0.52}}
    """
    try:
        found = json.loads(text) if is_json else tomllib.loads(text)
    except (ValueError, RecursionError) as error:
        raise InputError(f"{source} is not valid: {error}") from None
    if not isinstance(found, dict):
        raise InvalidParameter(f"{source} must hold shares by column, such as [sex] Female = 0.52")
    return found


def _as_table(source: Any) -> pa.Table:
    try:
        return source if isinstance(source, pa.Table) else pa.table(source)
    except (TypeError, ValueError, AttributeError):
        raise InvalidType(
            "a stand-in is the folder of a release, a public table (a file or a DataFrame) or "
            f"shares by column (a dict), not {type(source).__name__}"
        ) from None


def _of_release(
    release: Release, schema: Schema, columns: Sequence[str], n_records: int | None, seed: int
) -> StandIn:
    """Draw rows of an earlier release: as many as it counted, and a quarter more to measure on."""
    if not gives_rows(release) or not getattr(release, "gives_rows", True):
        raise InvalidParameter(
            f"a release of kind {release.kind!r} gives no rows to rehearse on; take one of synth, "
            "a public table, or shares of values"
        )
    first = release.rows(n_records, seed=seed)
    _require_columns(first, schema, columns, "the earlier release")
    size = first.num_rows
    if not size:
        raise InvalidParameter("the earlier release counted no record; name how many (--rows)")
    drawn = release.rows(size + _held_out(size), seed=seed)
    method, epsilon = release.receipt.method, format_rounded(release.receipt.epsilon)
    return StandIn(
        *_cut(drawn, size, seed),
        origin="release",
        label=f"{size:,} rows of an earlier release ({method}, epsilon {epsilon})",
        notes=(
            "rows of a release show columns to depend on each other only as far as the release "
            "kept that, and numbers lie evenly within bins",
        ),
        release=release,
    )


def _of_table(
    rows: pa.Table,
    schema: Schema,
    columns: Sequence[str],
    n_records: int | None,
    seed: int,
    label: str,
) -> StandIn:
    """Set a fifth of a public table aside to measure on, and take the others."""
    _require_columns(rows, schema, columns, label)
    if rows.num_rows < _HELD_OUT + 1:
        raise InvalidParameter(f"{label} has {rows.num_rows} rows; too few to rehearse on")
    kept = rows.num_rows - rows.num_rows // (_HELD_OUT + 1)
    taken, held_out = _cut(rows, kept, seed)
    notes = ["what holds for the public table need not hold for the private one"]
    size = kept if n_records is None else n_records
    if size > kept:
        chosen = plain_generator(seed).integers(kept, size=size)
        taken = taken.take(pa.array(chosen))
        notes.append(f"{size:,} rows were drawn with replacement from the {kept:,} at hand")
    return StandIn(
        taken.slice(0, size),
        held_out,
        origin="table",
        label=f"{size:,} rows of {label}",
        notes=tuple(notes),
    )


def simulate(
    schema: Schema,
    columns: Sequence[str],
    shares: Mapping[str, Any],
    *,
    n_records: int | None = None,
    seed: int = 0,
) -> StandIn:
    """Draw every column by itself, by its stated shares.

    A column's shares are a table from labels to shares, or a list with one for each label in
    order.  Labels that are not stated share what is left; of a column that is not stated, all
    values are as likely, and none is missing.

    >>> from dpublish.data.schema import column
    >>> people = Schema((column("sex", "category", values=["F", "M"]),))
    >>> made = simulate(people, ["sex"], {"sex": {"F": 0.75}}, n_records=1000)
    >>> made.rows.num_rows, made.origin
    (1000, 'simulated')
    """
    for name in shares:
        require_known("column", name, schema.names)
    size = _DEFAULT_ROWS if n_records is None else n_records
    rng = plain_generator(seed)
    made = {rule.column for rule in schema.functions}
    axes = [schema[name].axis() for name in _sources(schema, columns)]
    cells = [
        rng.choice(axis.size, size=size + _held_out(size), p=_probabilities(axis, shares))
        for axis in axes
    ]
    drawn = draw_rows(axes, cells, rng)
    if made & set(columns):
        drawn = fill_functions(drawn, [one for one in schema.functions if one.column in columns])
    stated = ", ".join(shares) or "no column"
    return StandIn(
        *_cut(drawn, size, seed),
        origin="simulated",
        label=f"{size:,} simulated rows (shares stated of {stated})",
        notes=(
            "the shape is simulated, so dependence between columns is missing: nothing can be "
            "predicted from other columns, no groups of records stand apart, and pairs of columns "
            "are easier to publish than true ones; believe the noise of counts, nothing else",
        ),
    )


def _sources(schema: Schema, columns: Sequence[str]) -> list[str]:
    """Name the columns to draw: those needed, and what rules of the schema compute from."""
    rules = {rule.column: rule for rule in schema.functions}
    found: dict[str, None] = {}
    waiting = list(columns)
    while waiting:
        name = waiting.pop(0)
        if name in rules:
            waiting.extend(rules[name].of)
        else:
            found[name] = None
    return list(found)


def _probabilities(axis: Axis, shares: Mapping[str, Any]) -> FloatArray:
    """Compute the probability of each value of a column from what is stated of it."""
    stated = shares.get(axis.column)
    even = _even(axis)
    if stated is None:
        return even
    if isinstance(stated, Sequence) and not isinstance(stated, str):
        if len(stated) != axis.size:
            raise InvalidParameter(
                f"column {axis.column!r} has {axis.size} values or bins, and {len(stated)} shares "
                "are stated; state one for each, or a table from labels to shares"
            )
        stated = dict(zip(axis.labels, stated, strict=True))
    if not isinstance(stated, Mapping):
        raise InvalidParameter(f"shares of {axis.column!r} must be a list or a table of numbers")
    return _fill_shares(axis, {str(label): _share(axis, v) for label, v in stated.items()}, even)


def _fill_shares(axis: Axis, stated: Mapping[str, float], even: FloatArray) -> FloatArray:
    """Give stated labels their shares, and the others what is left."""
    for label in stated:
        require_known(f"value of {axis.column}", label, axis.labels)
    is_open = np.array([label not in stated for label in axis.labels])
    found = np.array([stated.get(label, 0.0) for label in axis.labels])
    total = float(found.sum())
    left = even * is_open
    if left.sum() > 0 and total < 1:
        found = found + left / left.sum() * (1 - total)
    elif not total > 0:
        raise InvalidParameter(f"the shares of {axis.column!r} add up to 0")
    return np.asarray(found / found.sum())


def _share(axis: Axis, value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < 1e12:
        raise InvalidParameter(f"a share of {axis.column!r} must be a number from 0 on")
    return float(value)


def _even(axis: Axis) -> FloatArray:
    """Make all ordinary values as likely, numbers by the width of their bins."""
    weights = np.zeros(axis.size)
    ordinary = axis.ordinary_leaves
    weights[:ordinary] = 1.0 if axis.edges is None else np.diff(np.asarray(axis.edges))[:ordinary]
    return np.asarray(weights / weights.sum())


def _held_out(size: int) -> int:
    return max(size // _HELD_OUT, 1)


def _cut(drawn: pa.Table, size: int, seed: int) -> tuple[pa.Table, pa.Table]:
    """Shuffle rows, and cut them in two."""
    order = plain_generator(seed + 1).permutation(drawn.num_rows)
    shuffled = drawn.take(pa.array(order))
    return shuffled.slice(0, size), shuffled.slice(size)


def _require_columns(rows: pa.Table, schema: Schema, columns: Sequence[str], label: str) -> None:
    """Refuse rows that lack a column, or hold no value of it that the schema lists."""
    lacking = [name for name in columns if find_column(rows, schema[name]) not in rows.column_names]
    if lacking:
        raise InvalidParameter(
            f"{label} has no column {', '.join(map(repr, lacking))}, which the method reads; take "
            "a stand-in with all of its columns, or name fewer columns in the method's settings"
        )
    for name, codes in encode_rows(rows, schema, columns).items():
        if rows.num_rows and not (codes != UNKNOWN).any():
            raise InvalidParameter(
                f"{label} has no value in the column {name!r} that the schema lists; is it of the "
                "same schema?"
            )


def under_own_names(schema: Schema, rows: pa.Table) -> Schema:
    """Describe rows whose columns have the names of the schema, as those of a release have.

    Parts of dates are read there as they are, and not taken from a column of dates.
    """
    return replace(schema, columns=tuple(_plain(one, rows) for one in schema.columns))


def _plain(column: Column, rows: pa.Table) -> Column:
    if not isinstance(column, DatePartColumn) or column.name not in rows.column_names:
        return column
    return CategoryColumn(
        name=column.name, kind=column.kind, categories=column.categories, missing=column.missing
    )
