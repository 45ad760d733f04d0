"""Write src/dpublish/methods/wavecluster/filters.json, the low-pass filters of the wavelets.

    python tools/wavelet_filters.py

PyWavelets, which only development needs, has the filters as floats.  Times the root of 2, Haar's
taps are 1 and those of the biorthogonal wavelets are short binary fractions, so that these are
exact; others keep 40 bits.  Common factors are left out, and `unit` is what a tap of 1 is worth.
"""

import json
from functools import reduce
from math import gcd
from operator import add
from pathlib import Path

import numpy as np
import pywt

FILE = Path(__file__).resolve().parent.parent / "src/dpublish/methods/wavecluster/filters.json"
FAMILIES = ("haar", "db", "sym", "coif", "bior")
PRECISION = 40  # bits of a tap


def integer_taps(low_pass: list[float]) -> list[int]:
    """Write a filter as integers in proportion."""
    whole = [int(tap) for tap in np.rint(np.ldexp(np.array(low_pass) * 2**0.5, PRECISION))]
    common = reduce(gcd, whole)
    return [tap // common for tap in whole]


def filters() -> dict[str, dict[str, object]]:
    """List all filters in the order in which the settings offer them."""
    found: dict[str, dict[str, object]] = {}
    for name in (name for family in FAMILIES for name in pywt.wavelist(family)):
        low_pass = pywt.Wavelet(name).dec_lo
        taps = integer_taps(low_pass)
        found[name] = {"unit": reduce(add, low_pass) / sum(taps), "taps": taps}
    return found


def text_of(found: dict[str, dict[str, object]]) -> str:
    """Write one filter a line."""
    lines = [f"{json.dumps(name)}: {json.dumps(what)}" for name, what in found.items()]
    return "{\n" + ",\n".join(lines) + "\n}\n"


if __name__ == "__main__":
    FILE.write_text(text_of(filters()), "utf-8")
    print(f"{FILE.name}: {len(filters())} wavelets")
