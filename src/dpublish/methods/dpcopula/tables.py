"""A copula as tables for a release folder, and back."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from dpublish.core.released import whole_column
from dpublish.errors import CorruptRelease
from dpublish.methods.dpcopula.noisy_correlation import NoisyCorrelation
from dpublish.methods.marginals.noisy_marginal import NoisyMarginal

if TYPE_CHECKING:
    from dpublish.methods.dpcopula.released import DPCopulaRelease


def tables_of(copula: "DPCopulaRelease") -> dict[str, pa.Table]:
    """Give noisy numbers, probabilities and correlations."""
    names = copula.schema.names
    probabilities = [distribution.probabilities for distribution in copula.distributions.values()]
    every = np.concatenate(probabilities)
    return {
        "marginals": pa.table(
            {
                "column": _named(names, [marginal.units.size for marginal in copula.marginals]),
                "position": np.concatenate([np.arange(m.units.size) for m in copula.marginals]),
                "noisy_number": np.concatenate([marginal.units for marginal in copula.marginals]),
            }
        ),
        "probabilities": pa.table(
            {
                "column": _named(names, [part.size for part in probabilities]),
                "cell": [label for name in names for label in copula.axes[name].labels],
                "probability": every,
                "expected_count": every * copula.records,
            }
        ),
        "correlations": _correlations(copula),
    }


def _named(names: Sequence[str], repeats: Sequence[int]) -> pa.DictionaryArray:
    numbers = np.repeat(np.arange(len(names), dtype=np.int32), repeats)
    return pa.DictionaryArray.from_arrays(pa.array(numbers), pa.array(names))


def _correlations(copula: "DPCopulaRelease") -> pa.Table:
    first, second = np.triu_indices(len(copula.ordered), 1)
    units = np.empty(0, dtype=np.int64)
    if copula.correlation is not None:
        units = copula.correlation.units
    return pa.table(
        {
            "first": pa.array([copula.ordered[i] for i in first], pa.string()),
            "second": pa.array([copula.ordered[i] for i in second], pa.string()),
            "noisy_number": units,
            "correlation": copula.matrix[first, second],
            "noise_deviation": copula.spread[first, second],
        }
    )


def read_marginals(
    metadata: Sequence[Mapping[str, Any]], names: Sequence[str], table: pa.Table
) -> tuple[NoisyMarginal, ...]:
    """Rebuild the marginals of all columns from the table of their numbers."""
    columns = np.array(table["column"].cast(pa.string()).to_pylist(), dtype=object)
    positions, units = whole_column(table, "position"), whole_column(table, "noisy_number")
    found = []
    for name, fact in zip(names, metadata, strict=True):
        own = columns == name
        if not np.array_equal(positions[own], np.arange(np.count_nonzero(own))):
            raise CorruptRelease(f"the numbers of the marginal of {name!r} are out of order")
        found.append(NoisyMarginal.from_metadata(fact, units[own]))
    if sum(marginal.units.size for marginal in found) != units.size:
        raise CorruptRelease("there are numbers of a marginal that no column has")
    return tuple(found)


def read_correlation(
    metadata: Mapping[str, Any] | None, table: pa.Table
) -> NoisyCorrelation | None:
    """Rebuild the correlations from the table of their numbers."""
    units = whole_column(table, "noisy_number")
    if metadata is None:
        if units.size:
            raise CorruptRelease("there are correlations that the release does not speak of")
        return None
    found = NoisyCorrelation.from_metadata(metadata, units)
    first, second = np.triu_indices(len(found.columns), 1)
    named = zip(table["first"].to_pylist(), table["second"].to_pylist(), strict=True)
    if list(named) != [
        (found.columns[i], found.columns[j]) for i, j in zip(first, second, strict=True)
    ]:
        raise CorruptRelease("the correlations are out of order")
    return found
