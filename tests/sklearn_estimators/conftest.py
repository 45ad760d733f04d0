"""A ledger that pays for fits, and folders that go away with the test."""

import tempfile

import numpy as np
import pytest

from dpublish.ledger.ledger import Ledger
from dpublish.publishing import table


@pytest.fixture(autouse=True)
def _no_pages(monkeypatch, tmp_path):
    """Releases of these tests go to the test's own folder and have no page."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setattr(table, "draw_report", lambda release: {})


@pytest.fixture
def books(tmp_path):
    """The path of a ledger whose dataset may spend a lot."""
    path = tmp_path / "books.db"
    with Ledger.create(path) as ledger:
        ledger.add("people", cap="10000000000")
        ledger.add("little", cap="1")
    return str(path)


@pytest.fixture
def paying(books):
    """Parameters that every estimator needs."""
    return {"epsilon": "100", "ledger": books, "dataset": "people", "bounds": (-5, 5)}


@pytest.fixture(scope="session")
def points():
    """Two features, of which the first decides the class and the number."""
    rng = np.random.RandomState(1)
    X = rng.normal(size=(400, 2))
    return X, (X[:, 0] > 0).astype(int), 2 * X[:, 0] - X[:, 1]
