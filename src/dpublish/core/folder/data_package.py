"""Describe a release folder as a Frictionless Data Package, so that other tools can open it."""

import re
from collections.abc import Mapping
from typing import Any

import pyarrow as pa

from dpublish.core.released import Release, field_description
from dpublish.privacy.epsilon import format_epsilon


def describe(
    release: Release, tables: Mapping[str, pa.Table], files: Mapping[str, Mapping[str, Any]]
) -> dict[str, Any]:
    """Write the descriptor (Data Package, version 1 profile) of a release."""
    receipt = release.receipt
    return {
        "profile": "data-package",
        "name": re.sub(r"[^a-z0-9]+", "-", f"dpublish-{release.kind}-{receipt.release_id[:8]}"),
        "title": f"{release.kind} released by dpublish",
        "description": " ".join([*receipt.stamps, receipt.guarantee()]),
        "created": receipt.created,
        "keywords": ["differential privacy", f"epsilon {format_epsilon(receipt.epsilon)}"],
        "resources": [
            {
                "name": re.sub(r"[^a-z0-9]+", "-", name.lower()),
                "path": f"data/{name}.parquet",
                "format": "parquet",
                "mediatype": "application/vnd.apache.parquet",
                "bytes": files[f"data/{name}.parquet"]["bytes"],
                "hash": f"sha256:{files[f'data/{name}.parquet']['sha256']}",
                "schema": {"fields": [_field(item) for item in table.schema]},
            }
            for name, table in tables.items()
        ],
    }


def _field(item: pa.Field) -> dict[str, str]:
    if pa.types.is_integer(item.type):
        kind = "integer"
    elif pa.types.is_floating(item.type):
        kind = "number"
    else:
        kind = "string"
    described = field_description(item)
    return {"name": item.name, "type": kind} | (
        {} if described is None else {"description": described}
    )
