"""The low-pass filters of the wavelets, as integers in proportion.

The numbers are those of the usual tables; `tools/wavelet_filters.py` writes them, and a test
compares them with PyWavelets.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from importlib.resources import files

import msgspec


@dataclass(frozen=True)
class LowPass:
    """The smoothing half of a wavelet.

    Attributes:
        unit: What a tap of 1 is worth in the usual scale of the wavelet.
        taps: Integers, with 40 bits unless fewer are exact.
    """

    unit: float
    taps: tuple[int, ...]


def _read() -> dict[str, LowPass]:
    path = files("dpublish.methods.wavecluster").joinpath("filters.json")
    return msgspec.json.decode(path.read_bytes(), type=dict[str, LowPass])


FILTERS: Mapping[str, LowPass] = _read()
"""The filter of each wavelet."""
WAVELETS: tuple[str, ...] = tuple(FILTERS)
"""The wavelets offered: Haar, Daubechies, symlets, coiflets and biorthogonal ones."""
