"""Read what people pass to the functions of the Python API: a method, a ledger, a folder."""

import os
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, cast

from dpublish.core.catalog import STREAMS
from dpublish.core.method import Method, Predicts
from dpublish.core.settings import build, canonical_name, make_method
from dpublish.data.schema import Schema
from dpublish.data.schema_file import to_schema
from dpublish.data.table import Table, is_table
from dpublish.errors import InvalidParameter, InvalidType
from dpublish.ledger.ledger import Ledger
from dpublish.methods.streams.method import StreamMethod, make_stream_method

RELEASES = "releases"
"""The folder, in the current one, of releases for which no folder was named."""
_WHAT_METHODS_ARE = (
    'a name such as "histogram" (dpublish.list_methods() lists them), a class such as '
    'dpublish.Histogram, or a method that is set: dpublish.Histogram(columns=["age"])'
)


def read_method(method: Any, settings: Mapping[str, Any]) -> Method[Any]:
    """Find the method that a name, a class or a method stands for, and set it."""
    _refuse_stream(method)
    return cast("Method[Any]", read_any_method(method, settings))


def read_any_method(method: Any, settings: Mapping[str, Any]) -> Predicts:
    """Find a method for tables or for streams."""
    if isinstance(method, str):
        name = canonical_name(method)
        made: Predicts = (make_stream_method if name in STREAMS else make_method)(name, settings)
        return made
    if isinstance(method, type) and issubclass(method, (Method, StreamMethod)):
        set_up: Predicts = build(method, method.name, settings)
        return set_up
    if not isinstance(method, (Method, StreamMethod)):
        raise InvalidType(f"method must be {_WHAT_METHODS_ARE}; not {_kind_of(method)}")
    if settings:
        raise InvalidParameter(
            f"the method is set already, so {', '.join(settings)} cannot be set again: pass "
            f'its name instead, "{method.name}", or set it where it is made'
        )
    return cast("Predicts", method)


def _refuse_stream(method: Any) -> None:
    """Refuse a method for streams, before its settings are looked at."""
    name = canonical_name(method) if isinstance(method, str) else getattr(method, "name", "")
    if name in STREAMS:
        kind = STREAMS[name].location.rpartition(":")[2]
        raise InvalidParameter(
            f"{name} publishes a stream, step by step; start one with "
            f'dpublish.StreamOperator.start("stream.db", dpublish.{kind}(...), schema, '
            "ledger=..., dataset=..., epsilon=..., output=...), and publish each snapshot with next"
        )


def schema_for(data: Any, schema: Any, method: Method[Any] | None = None) -> Schema:
    """Return the schema that was named, or that of a table that is open already."""
    if is_table(data):
        return _schema_of(data, schema)
    found = to_schema(schema)
    prepare = getattr(method, "prepare", None)  # of a personalized method: it adds levels
    return found if prepare is None else cast("Schema", prepare(found))


def _schema_of(data: Table, schema: Any) -> Schema:
    if schema is not None and to_schema(schema) != data.schema:
        raise InvalidParameter(
            "the table was opened with another schema; leave schema out, or pass the rows "
            "themselves"
        )
    return data.schema


@contextmanager
def open_ledger(ledger: Any) -> Iterator[Ledger]:
    """Take an open ledger as it is; open one at a path or an address, and close it again."""
    if isinstance(ledger, Ledger):
        yield ledger
        return
    if not isinstance(ledger, (str, os.PathLike)):
        raise InvalidType(
            'ledger must be the file of the ledger that pays ("books.db"), its address, or an '
            f"open dpublish.Ledger, not {_kind_of(ledger)}; make one with "
            'dpublish.Ledger.create("books.db"), and add a dataset: '
            'ledger.add("people", cap=2)'
        )
    with Ledger(ledger) as opened:
        yield opened


def read_dataset(dataset: Any) -> str:
    """Refuse what cannot be the name of a dataset."""
    if not isinstance(dataset, str):
        raise InvalidType(
            'dataset must be the name under which the ledger keeps the account, such as "people", '
            f"not {_kind_of(dataset)}"
        )
    return dataset


def read_output(output: Any, dataset: str, name: str) -> Path:
    """Return the folder to create: as named, or the next free one below `releases`.

    A release that is paid for is always kept in a folder: what is held in memory alone is lost
    with the process, and cannot be drawn again for free.
    """
    if output is not None and not isinstance(output, (str, os.PathLike)):
        raise InvalidType(
            'output must be the folder to create, such as "ages", or None for the next free one '
            f"below {RELEASES}, not {_kind_of(output)}"
        )
    if output is not None:
        return Path(output)
    start = re.sub(r"[^A-Za-z0-9_-]+", "-", f"{dataset}-{name}")
    folder = Path(RELEASES)
    number = 1
    while os.path.lexists(folder / f"{start}-{number}"):
        number += 1
    return folder / f"{start}-{number}"


def _kind_of(given: object) -> str:
    return "None" if given is None else f"an object of type {type(given).__name__}"
