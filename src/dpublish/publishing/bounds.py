"""Measure bounds that no one knows, and enter them in the schema file.

What can be wrong with the request, the schema file included, is found first and costs nothing;
then the bounds are published as any release is; last they are entered in the file.
"""

import os
import re
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any, Literal, cast, get_args

from dpublish.core.registry import make_method
from dpublish.data import schema_file
from dpublish.data.column import NumberColumn
from dpublish.data.date_column import DateColumn
from dpublish.data.fact_file import FUNCTION_KEYS
from dpublish.data.interval import MAX_LEAVES
from dpublish.data.lookup import Lookup
from dpublish.data.periods import DATE_KINDS, PERIODS, write_bounds
from dpublish.data.publication import Publication, read_publication
from dpublish.data.schema import DEFAULT_BINS, Schema, column
from dpublish.data.schema_edit import read_plain, with_keys
from dpublish.data.sources import open_table
from dpublish.data.table import Table
from dpublish.errors import (
    DPublishError,
    InputError,
    InvalidParameter,
    InvalidSchema,
    about,
    plain_refusals,
)
from dpublish.ledger.ledger import Ledger
from dpublish.methods.bounds.bounds import Bounds
from dpublish.methods.bounds.grid import EARLIEST, LATEST, WIDEST, grid_points
from dpublish.methods.bounds.released import BoundsRelease, plain_number
from dpublish.privacy.epsilon import EpsilonLike
from dpublish.publishing.table import publish
from dpublish.storage.files import require_writable, write_text

NumberKind = Literal["numeric", "integer", "date", "datetime"]
_KINDS: tuple[NumberKind, ...] = get_args(NumberKind)
_KEPT = ("format", "time_zone", "description", "measured_in")
"""Keys of a column without which dates cannot be read, or that are words for readers."""


@dataclass(frozen=True)
class BoundsRequest:
    """Bounds that are wanted: how they are measured, and where they are entered.

    Attributes:
        path: The schema file.
        column: The column without bounds.
        schema: What the table is opened with: that column, as wide as any value.
        method: The method that measures them.
        keys: What the file lacks beside the bounds.
    """

    path: Path
    column: str
    schema: Schema
    method: Bounds
    keys: dict[str, Any]

    @property
    def folder(self) -> Path:
        """Where the release goes unless told otherwise: beside the schema file."""
        name = re.sub(r"[^A-Za-z0-9_-]+", "-", self.column)
        return self.path.with_name(f"{self.path.stem}-{name}-bounds")

    def run(
        self,
        table: Table,
        output: str | os.PathLike[str] | None,
        *,
        ledger: Ledger,
        dataset: str,
        epsilon: EpsilonLike,
        purpose: str = "",
        all_have_levels: bool = False,
    ) -> BoundsRelease:
        """Publish the bounds from a table that was opened with `schema`, and enter them.

        Privacy:
            That of `publish`.  What is written to the schema file is computed from the release.
        """
        release = publish(
            self.method,
            table,
            self.folder if output is None else Path(output),
            ledger=ledger,
            dataset=dataset,
            epsilon=epsilon,
            purpose=purpose or f"bounds of {self.column}",
            all_have_levels=all_have_levels,
        )
        found = cast("BoundsRelease", release)
        self._enter([*found.bounds])
        return found

    def _enter(self, bounds: list[Any]) -> None:
        """Enter the bounds in the schema file, whole or not at all."""
        try:
            text, plain = read_plain(self.path)
            keys = self.keys | {"bounds": bounds} | _bins(plain, self, bounds)
            write_text(self.path, with_keys(self.path, text, self.column, keys), replaces=True)
        except DPublishError as error:
            error.add_note(
                f"the bounds are published and paid for; do not measure them again, but write "
                f"bounds = {bounds} for column {self.column!r} by hand"
            )
            raise


def request_bounds(
    schema_path: str | os.PathLike[str],
    name: str,
    *,
    kind: NumberKind | None = None,
    coverage: EpsilonLike = "0.99",
    lower: float | str | None = None,
    upper: float | str | None = None,
    nonnegative: bool = False,
    contribution: int | str | None = None,
) -> BoundsRequest:
    """Prepare the measurement of bounds; refuse what could not be measured or entered."""
    path = Path(schema_path)
    text, plain = read_plain(path)
    declared = plain.get("columns", {}).get(name)
    found = _require_without_bounds(path, name, declared, kind)
    low, high = _widest(found, lower, upper, nonnegative)
    kept = {key: declared[key] for key in _KEPT if key in (declared or {})}
    bins: Any = "year" if found in DATE_KINDS else 1
    wide = column(name, found, bounds=[low, high], bins=bins, missing="drop", **kept)
    unit, unit_name = plain.get("unit"), plain.get("unit_name")
    table_name = plain.get("name", "table")
    if not isinstance(table_name, str) or not all(
        isinstance(text, str | None) for text in (unit, unit_name)
    ):
        raise InvalidSchema(f"{path}: name, unit and unit_name must be text")
    settings: dict[str, Any] = {
        "column": name,
        "coverage": str(coverage),
        "sides": _sides(lower, upper),
    }
    if contribution is not None:
        settings["contribution"] = str(contribution)
    keys = {} if declared is not None else {"kind": found}
    request = BoundsRequest(
        path=path,
        column=name,
        schema=Schema(
            (wide,),
            unit=unit,
            name=table_name,
            unit_name=unit_name,
            publication=_publication(path, plain),
        ),
        method=cast("Bounds", make_method("bounds", settings)),
        keys=keys,
    )
    _rehearse(request, text, plain)
    return request


@plain_refusals
def measure_bounds(
    source: Any,
    schema: str | os.PathLike[str],
    column: str,
    *,
    epsilon: EpsilonLike,
    ledger: Ledger,
    dataset: str,
    output: str | os.PathLike[str] | None = None,
    kind: NumberKind | None = None,
    coverage: EpsilonLike = "0.99",
    lower: float | str | None = None,
    upper: float | str | None = None,
    nonnegative: bool = False,
    contribution: int | None = None,
    table: str | None = None,
    sql: str | None = None,
    where: str | None = None,
    derive: str | Sequence[str] = (),
    lookups: Lookup | Sequence[Lookup] = (),
    purpose: str = "",
    all_have_levels: bool = False,
) -> BoundsRelease:
    """Measure bounds of a column with `epsilon`, and enter them in the schema file.

    Args:
        source: The rows, as for `open_table`.
        schema: The schema file.  The column must have no bounds there yet; if it is not there at
            all, it is added.
        column: Column of numbers or dates whose bounds are wanted.
        epsilon: What to spend, exactly.
        ledger: The ledger, open.
        dataset: Which dataset of the ledger pays.
        output: The release folder to create, with the receipt; beside the schema file if None.
        kind: "numeric" (if None), "integer", "date" or "datetime", for a column that the schema
            does not name.
        coverage: Part of the values that should lie within the bounds.
        lower: The lower bound, if it is publicly known; then only the upper one is measured.
            A date is written as text.
        upper: The upper bound, if it is publicly known.
        nonnegative: Whether it is publicly known that no value is below 0; leaves more precision.
        contribution: How many rows each unit keeps, if the schema names a unit.
        table: Which table of a database.
        sql: A SELECT whose rows are the table.
        where: Which records to keep, as for `open_table`.
        derive: Columns to derive from others of the same record, as for `open_table`.
        lookups: Public tables to look values up in, as for `open_table`.
        purpose: What it is for; published in the receipt, and kept in the ledger.
        all_have_levels: Your word, for a dataset with levels, that no record is below the first.

    Privacy:
        `epsilon`-differentially private for the change that the schema names: that of
        `publish` with the method `Bounds`.  What is written to the schema file is computed from
        the release.
    """
    request = request_bounds(
        schema,
        column,
        kind=kind,
        coverage=coverage,
        lower=lower,
        upper=upper,
        nonnegative=nonnegative,
        contribution=contribution,
    )
    rows = open_table(
        source,
        request.schema,
        table=table,
        sql=sql,
        where=where,
        derive=derive,
        lookups=lookups,
    )
    with closing(rows):
        return request.run(
            rows,
            output,
            ledger=ledger,
            dataset=dataset,
            epsilon=epsilon,
            purpose=purpose,
            all_have_levels=all_have_levels,
        )


def _publication(path: Path, plain: dict[str, Any]) -> Publication | None:
    """Read what the file says of releases, which that of its bounds says too."""
    with about(f"{path}:"):
        return read_publication(plain.get("publication"))


def _require_without_bounds(
    path: Path, name: str, declared: Any, kind: NumberKind | None
) -> NumberKind:
    """Return the kind of a column that has no bounds yet."""
    if kind is not None and kind not in _KINDS:
        raise InvalidParameter(f"kind ({kind}) must be one of {', '.join(_KINDS)}")
    if declared is None:
        return kind or "numeric"
    found = declared.get("kind") if isinstance(declared, dict) else None
    if found not in _KINDS:
        raise InvalidSchema(
            f'{path}: column {name!r} must say kind = "numeric" or another of {", ".join(_KINDS)}: '
            "only numbers and dates have bounds"
        )
    if kind not in (None, found):
        raise InvalidParameter(f"column {name!r} is of kind {found} in {path}; leave out the kind")
    for key in ("bounds", "cuts", "taxonomy"):
        if key in declared:
            raise InvalidSchema(
                f"{path}: column {name!r} has bounds already ({key}); remove them to measure others"
            )
    return found  # type: ignore[no-any-return]


def _widest(
    kind: NumberKind, lower: float | str | None, upper: float | str | None, nonnegative: bool
) -> tuple[Any, Any]:
    """Return the known bound, and one beyond all points on the other side."""
    if lower is not None and upper is not None:
        raise InvalidParameter("lower and upper are both known; write them in the schema instead")
    if kind in DATE_KINDS:
        if nonnegative:
            raise InvalidParameter("nonnegative is for numbers; a date may be any")
        return lower or EARLIEST, upper or LATEST
    if nonnegative and lower is not None:
        raise InvalidParameter("nonnegative goes without lower")
    low = _number("lower", lower, 0.0 if nonnegative else -WIDEST)
    high = _number("upper", upper, WIDEST)
    return (int(low), int(high)) if kind == "integer" and _are_integers(low, high) else (low, high)


def _number(name: str, given: float | str | None, otherwise: float) -> float:
    try:
        return otherwise if given is None else float(given)
    except ValueError:
        raise InvalidParameter(f"{name} ({given}) must be a number") from None


def _are_integers(*ends: float) -> bool:
    return all(float(end).is_integer() for end in ends)


def _sides(lower: object, upper: object) -> str:
    if lower is None and upper is None:
        return "both"
    return "lower" if lower is None else "upper"


def _bins(plain: dict[str, Any], request: BoundsRequest, bounds: list[Any]) -> dict[str, Any]:
    """Set bins that fit the bounds, if those of the file do not: from public facts alone.

    Integers too many to be cells of their own get some, fewer integers than bins a cell each,
    and periods too many for dates so far apart become longer.
    """
    declared = plain.get("columns", {}).get(request.column, {})
    kind, bins = request.schema[request.column].kind, declared.get("bins")
    if kind == "integer":
        integers = bounds[1] - bounds[0] + 1
        if bins is None:
            return {"bins": DEFAULT_BINS} if integers > MAX_LEAVES else {}
        return {"bins": integers} if isinstance(bins, int) and bins > integers else {}
    if kind not in DATE_KINDS or bins is None or _fits(request, declared, bounds, bins):
        return {}
    longer = PERIODS[PERIODS.index(bins) + 1 :] if bins in PERIODS else PERIODS
    return next(({"bins": one} for one in longer if _fits(request, declared, bounds, one)), {})


def _fits(request: BoundsRequest, declared: dict[str, Any], bounds: list[Any], bins: Any) -> bool:
    """Return whether a column of dates with these bounds can be cut into these bins."""
    given = {**declared, "bounds": bounds, "bins": bins}
    try:
        schema_file.from_dict({"columns": {request.column: _alone(given)}})
    except InvalidSchema:
        return False
    return True


def _alone(declared: dict[str, Any]) -> dict[str, Any]:
    """Leave out what concerns other columns, too: by which rule the column follows from them."""
    return {key: value for key, value in declared.items() if key not in FUNCTION_KEYS}


def _rehearse(request: BoundsRequest, text: str, plain: dict[str, Any]) -> None:
    """Enter some bounds in a copy, so that nothing is paid for that could not be entered."""
    require_writable(request.path, replaces=True)
    if not os.access(request.path.absolute().parent, os.W_OK):
        raise InputError(f"{request.path.absolute().parent} cannot be written; the schema is there")
    points = grid_points(cast("NumberColumn", request.schema[request.column])).tolist()
    narrowest = min(pairwise(points), key=lambda ends: ends[1] - ends[0])
    for low, high in ((points[0], points[-1]), narrowest):
        bounds = _entry(request, low, high)
        keys = request.keys | {"bounds": bounds} | _bins(plain, request, bounds)
        declared = {**plain.get("columns", {}).get(request.column, {}), **keys}
        schema_file.from_dict({"columns": {request.column: _alone(declared)}})
        with_keys(request.path, text, request.column, keys)


def _entry(request: BoundsRequest, low: float, high: float) -> list[Any]:
    """Write bounds as they are entered."""
    wide = cast("NumberColumn", request.schema[request.column])
    if isinstance(wide, DateColumn):
        return write_bounds(int(low), int(high), wide.kind)
    return [plain_number(low), plain_number(high)]
