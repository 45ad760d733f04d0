"""A table that users bring along to an experiment.  It must be public: nothing hides it here."""

from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from dpublish.data.column import NumberColumn
from dpublish.data.schema import Schema
from dpublish.errors import InvalidParameter, UnreadableData
from dpublish.evaluation.true_rows import read_rows


@dataclass(frozen=True, eq=False)
class OwnTable:
    """A public table with its schema.

    Attributes:
        name: The file's name without its ending.
        rows: The columns of the schema.
        schema: Bounds, categories and taxonomies.
        target: The column that users named, or None.
        digest: A hash of rows, schema and target: results of another table are not taken for it.
    """

    name: str
    rows: pa.Table
    schema: Schema
    target: str | None
    digest: str

    @classmethod
    def read(cls, data: str | Path, schema: str | Path, target: str | None = None) -> "OwnTable":
        """Read a file of rows, and keep the columns of the schema; its numbers may be text."""
        described = Schema.read(schema)
        if target is not None and target not in described.names:
            raise InvalidParameter(
                f"the schema has no column {target!r}; it has {', '.join(described.names)}"
            )
        names = described.source_names
        rows = read_rows(str(data), names)
        for index, name in enumerate(names):
            column = described[name] if name in described.names else None
            is_number = isinstance(column, NumberColumn) and column.holds == "numbers"
            if is_number and _is_text(rows.field(index).type):
                rows = rows.set_column(index, name, _numbers(rows[index], name))
        if not rows.num_rows:
            raise UnreadableData(f"{data} has no rows")
        digest = sha256(f"{target}\n{Path(schema).read_text('utf-8')}\n".encode())
        for column in rows.columns:
            for buffer in column.combine_chunks().buffers():
                digest.update(buffer or b"")
        return cls(Path(data).stem, rows, described, target, digest.hexdigest()[:16])

    def require_target(self) -> str:
        """Return the target, or say how to name it."""
        if self.target is None:
            raise InvalidParameter("name the column that matters: --target COLUMN")
        return self.target


def _numbers(texts: pa.ChunkedArray, name: str) -> pa.ChunkedArray:
    """Read numbers from text; empty fields are missing."""
    try:
        return pc.if_else(pc.equal(texts, ""), None, texts).cast(pa.float64())
    except pa.ArrowInvalid:
        raise UnreadableData(f"column {name!r} has text where its schema says numbers") from None


def _is_text(type_: pa.DataType) -> bool:
    return bool(pa.types.is_string(type_) or pa.types.is_large_string(type_))
