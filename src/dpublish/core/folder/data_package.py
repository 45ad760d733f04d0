"""The description of a release folder for other tools: a Frictionless Data Package, version 1.

It lists every table with its fields, types, descriptions and units of measurement, and states
title, license, contact and source as the owner's schema does.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa

from dpublish.core.coverage import coverage_of, what_is_counted
from dpublish.core.folder.field_words import column_of, described_field
from dpublish.core.released import Release
from dpublish.data.column import NumberColumn
from dpublish.data.publication import Publication
from dpublish.data.schema import Schema
from dpublish.privacy.epsilon import format_epsilon

PARQUET = {"format": "parquet", "mediatype": "application/vnd.apache.parquet"}
NULLS = ("", "nan", "NaT")
"""How tools that read Parquet through pandas write a null."""
_TYPES = (
    (pa.types.is_boolean, "boolean"),
    (pa.types.is_integer, "integer"),
    (pa.types.is_floating, "number"),
    (pa.types.is_date, "date"),
    (pa.types.is_timestamp, "datetime"),
)
_ADDRESS = re.compile(r"https?://\S+")
_EMAIL = re.compile(r"[^@\s]+@[^@\s]+\.[^@\s]+")
_LICENSE = re.compile(r"[-A-Za-z0-9._]+")


def describe_package(
    release: Release, tables: Mapping[str, pa.Table], files: Mapping[str, Mapping[str, Any]]
) -> dict[str, Any]:
    """Describe a release folder; `files` are the entries of its manifest.

    The sizes of files are not repeated: frictionless compares them for no Parquet file.
    """
    return package_head(release) | {
        "resources": [
            {
                "name": resource_name(name),
                "path": f"data/{name}.parquet",
                **PARQUET,
                "hash": f"sha256:{files[f'data/{name}.parquet']['sha256']}",
                "schema": describe_table(release.schema, name, table),
            }
            for name, table in tables.items()
        ]
    }


def package_head(release: Release) -> dict[str, Any]:
    """Describe a release: all but its files."""
    receipt = release.receipt
    stated = release.schema.publication or Publication()
    said = [*receipt.stamps, receipt.guarantee(), *coverage_of(release).sentences()]
    return {
        "profile": "data-package",
        "name": resource_name(f"dpublish-{release.kind}-{receipt.release_id[:8]}"),
        "title": stated.title or f"{release.kind} released by dpublish",
        "description": " ".join([*filter(None, [stated.description]), *said]),
        "counts": what_is_counted(release),
        "created": receipt.created,
        "keywords": ["differential privacy", f"epsilon {format_epsilon(receipt.epsilon)}"],
        **_statements(stated),
    }


def describe_table(schema: Schema, name: str, table: pa.Table) -> dict[str, Any]:
    """Describe the fields of a table, and how nulls are written if there are any."""
    found: dict[str, Any] = {
        "fields": [_describe_field(schema, name, field) for field in table.schema]
    }
    if any(column.null_count for column in table.columns):
        found["missingValues"] = list(NULLS)
    return found


def resource_name(text: str) -> str:
    """Write a name as a Data Package allows it.

    >>> resource_name("part1_Counts of age")
    'part1-counts-of-age'
    """
    return re.sub(r"[^a-z0-9]+", "-", text.lower())


def _describe_field(schema: Schema, table: str, field: pa.Field) -> dict[str, str]:
    words = described_field(schema, table, field)
    kind = next((kind for is_kind, kind in _TYPES if is_kind(field.type)), "string")
    found = {"name": field.name, "type": kind}
    if words is not None:
        found["description"] = words
    column = column_of(schema, field)
    if column is not None:
        declared = schema[column]
        if isinstance(declared, NumberColumn) and declared.measured_in is not None:
            found["unit"] = declared.measured_in
    return found


def _statements(stated: Publication) -> dict[str, Any]:
    """Write license, contact, publisher and source as a Data Package has them."""
    people = []
    if stated.publisher is not None:
        people.append({"title": stated.publisher, "role": "publisher"})
    if stated.contact is not None:
        people.append({"title": stated.contact, **_address(stated.contact), "role": "contact"})
    found: dict[str, Sequence[Mapping[str, str]]] = {
        "licenses": [] if stated.license is None else [_license(stated.license)],
        "contributors": people,
        "sources": []
        if stated.source is None
        else [{"title": stated.source, **_address(stated.source)}],
    }
    return {key: listed for key, listed in found.items() if listed}


def _license(text: str) -> dict[str, str]:
    """Write a license by its identifier, by its address, or in words.

    >>> _license("CC-BY-4.0"), _license("Open data of our town")
    ({'name': 'CC-BY-4.0'}, {'name': 'open-data-of-our-town', 'title': 'Open data of our town'})
    """
    if _ADDRESS.fullmatch(text):
        return {"path": text}
    if _LICENSE.fullmatch(text):
        return {"name": text}
    return {"name": resource_name(text).strip("-") or "other", "title": text}


def _address(text: str) -> dict[str, str]:
    """Find the address in a contact or a source, if it is one."""
    if _ADDRESS.fullmatch(text):
        return {"path": text}
    return {"email": text} if _EMAIL.fullmatch(text) else {}
