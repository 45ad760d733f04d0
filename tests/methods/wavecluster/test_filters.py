"""The filters that come with the package are those of PyWavelets, which development needs."""

import importlib.util
import json
from pathlib import Path

import numpy as np
import pytest
import pywt

from dpublish.methods.wavecluster.filters import FILTERS, WAVELETS

ROOT = Path(__file__).resolve().parents[3]
FILE = ROOT / "src/dpublish/methods/wavecluster/filters.json"


@pytest.fixture(scope="module")
def tool():
    spec = importlib.util.spec_from_file_location("writer", ROOT / "tools/wavelet_filters.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_file_is_what_the_tool_writes(tool):
    assert tool.text_of(tool.filters()) == FILE.read_text("utf-8")


def test_every_wavelet_of_the_families_is_offered_in_their_order(tool):
    assert list(WAVELETS) == [name for each in tool.FAMILIES for name in pywt.wavelist(each)]
    assert len(WAVELETS) == 90


@pytest.mark.parametrize("name", WAVELETS)
def test_a_filter_is_that_of_the_library(name):
    found = np.array(FILTERS[name].taps, dtype=np.float64) * FILTERS[name].unit
    assert found == pytest.approx(pywt.Wavelet(name).dec_lo, rel=0, abs=3e-12)
    assert all(type(tap) is int for tap in FILTERS[name].taps)


def test_a_tap_that_is_wrong_in_its_last_bits_is_noticed(tool):
    wrong = json.loads(FILE.read_text("utf-8"))
    wrong["db2"]["taps"][0] += 1
    assert tool.text_of(wrong) != tool.text_of(tool.filters())
