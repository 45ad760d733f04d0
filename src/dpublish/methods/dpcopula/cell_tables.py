"""Cells and copulas as tables for a release folder, and back."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from dpublish.core.released import whole_column
from dpublish.data.schema import Schema
from dpublish.errors import CorruptRelease
from dpublish.methods.dpcopula.cell_groups import CellGroups
from dpublish.methods.marginals.noisy_marginal import NoisyMarginal
from dpublish.privacy.epsilon import format_epsilon, parse_epsilon

if TYPE_CHECKING:
    from dpublish.methods.dpcopula.released_cells import CellCopulasRelease

RESERVED = frozenset({"cell_number", "group_number", "noisy_count", "estimated_count"})
"""Column names that the published table of cells uses itself."""


def tables_of(release: "CellCopulasRelease") -> dict[str, pa.Table]:
    """Give noisy numbers, probabilities and correlations."""
    return {
        "cells": _cells(release.groups),
        "marginals": _marginals(release.groups),
        "probabilities": _probabilities(release.groups),
        "correlations": _correlations(release),
    }


def metadata_of(release: "CellCopulasRelease") -> dict[str, Any]:
    """Give all but the noisy numbers."""
    groups = release.groups
    return {
        "categories": [axis.column for axis in groups.categories],
        "numbers": [axis.column for axis in groups.numbers],
        "rate": format_epsilon(groups.rate),
        "kept": groups.kept.tolist(),
        "marginals": [[marginal.metadata() for marginal in row] for row in groups.marginals],
        "correlation": None if release.correlation is None else release.correlation.metadata(),
    }


def groups_from(
    schema: Schema, metadata: Mapping[str, Any], tables: Mapping[str, pa.Table]
) -> CellGroups:
    """Rebuild cells, groups and marginals."""
    counts = whole_column(tables["cells"], "noisy_count")
    if not np.array_equal(whole_column(tables["cells"], "cell_number"), np.arange(counts.size)):
        raise CorruptRelease("the cells are out of order")
    return CellGroups(
        categories=tuple(schema[name].axis() for name in metadata["categories"]),
        numbers=tuple(schema[name].axis() for name in metadata["numbers"]),
        counts=counts,
        rate=parse_epsilon(metadata["rate"], "rate"),
        kept=np.array(metadata["kept"], dtype=np.int64),
        marginals=_read_marginals(metadata["marginals"], tables["marginals"]),
    )


def _cells(groups: CellGroups) -> pa.Table:
    columns: dict[str, Any] = {"cell_number": np.arange(groups.counts.size)}
    along = np.unravel_index(np.arange(groups.counts.size), groups.shape)
    for axis, index in zip(groups.categories, along, strict=True):
        columns[axis.column] = _named(axis.labels, index)
    columns["group_number"] = groups.group_of
    columns["noisy_count"] = groups.counts
    columns["estimated_count"] = groups.estimates
    return pa.table(columns)


def _marginals(groups: CellGroups) -> pa.Table:
    """List the noisy numbers group by group, and in a group column by column."""
    marginals = [marginal for row in groups.marginals for marginal in row]
    sizes = [marginal.units.size for marginal in marginals]
    return pa.table(
        {
            **_places(groups, sizes),
            "position": _joined([np.arange(size) for size in sizes]),
            "noisy_number": _joined([marginal.units for marginal in marginals]),
        }
    )


def _probabilities(groups: CellGroups) -> pa.Table:
    probabilities = [
        distribution.probabilities for row in groups.distributions for distribution in row
    ]
    labels = [
        label for _ in groups.distributions for axis in groups.numbers for label in axis.labels
    ]
    every = np.concatenate([np.empty(0), *probabilities])
    places = _places(groups, [part.size for part in probabilities])
    sizes = np.maximum(groups.sizes, 0)[places["group_number"]]
    return pa.table(
        {
            **places,
            "value": pa.array(labels, pa.string()),
            "probability": every,
            "expected_count": every * sizes,
        }
    )


def _correlations(release: "CellCopulasRelease") -> pa.Table:
    first, second = np.triu_indices(len(release.numbers), 1)
    units = np.empty(0, dtype=np.int64)
    if release.correlation is not None:
        units = release.correlation.units
    return pa.table(
        {
            "first": pa.array([release.numbers[i] for i in first], pa.string()),
            "second": pa.array([release.numbers[i] for i in second], pa.string()),
            "noisy_number": units,
            "correlation": release.matrix[first, second],
            "noise_deviation": release.reading.spread[first, second],
        }
    )


def _places(groups: CellGroups, sizes: Sequence[int]) -> dict[str, Any]:
    """Name group and column of each number; `sizes` go by group, then by column."""
    names = [axis.column for axis in groups.numbers]
    owners = np.repeat(np.arange(len(sizes), dtype=np.int64), sizes)
    return {
        "group_number": owners // max(len(names), 1),
        "column": _named(names, owners % max(len(names), 1)),
    }


def _named(names: Sequence[str], index: NDArray[np.integer[Any]]) -> pa.DictionaryArray:
    return pa.DictionaryArray.from_arrays(
        pa.array(index.astype(np.int32)), pa.array(list(names), pa.string())
    )


def _joined(parts: Sequence[NDArray[np.int64]]) -> NDArray[np.int64]:
    return np.concatenate([np.empty(0, dtype=np.int64), *parts])


def _read_marginals(
    metadata: Sequence[Sequence[Mapping[str, Any]]], table: pa.Table
) -> tuple[tuple[NoisyMarginal, ...], ...]:
    positions, units = whole_column(table, "position"), whole_column(table, "noisy_number")
    starts = np.flatnonzero(positions == 0)
    parts = np.split(units, starts[1:]) if starts.size else []
    if len(parts) != sum(len(row) for row in metadata):
        raise CorruptRelease("the noisy numbers are not those of the groups' marginals")
    left = iter(parts)
    return tuple(
        tuple(NoisyMarginal.from_metadata(one, next(left)) for one in row) for row in metadata
    )
