"""Seeded releases publish the numbers that they published before."""

import json

import pytest

from golden.published import FILE, FITTED_FILE, digest, fitted_numbers, names

KNOWN = json.loads(FILE.read_text(encoding="utf-8"))
FITTED = json.loads(FITTED_FILE.read_text(encoding="utf-8"))


def test_every_case_is_known():
    assert set(names()) == set(KNOWN) | set(FITTED)


@pytest.mark.parametrize("case", sorted(KNOWN))
def test_published_numbers_are_the_same(case):
    assert digest(case) == KNOWN[case]


@pytest.mark.parametrize("case", sorted(FITTED))
def test_published_models_are_the_same(case):
    assert fitted_numbers(case) == pytest.approx(FITTED[case], rel=1e-4, abs=1e-6)
