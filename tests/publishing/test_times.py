"""No published time tells how long a release took, and so how many rows there are."""

import json
import re
import time
from datetime import UTC, datetime

import pytest

from dpublish.core.registry import make_method
from dpublish.data.sources import open_table
from dpublish.ledger.ledger import Ledger
from dpublish.methods.personalized.method import PersonalSettings
from dpublish.privacy.budget import Budget, Grant
from dpublish.publishing import publish
from dpublish.randomness import secure
from method_examples import EXAMPLES, SCHEMA, arrow_table

GRANTED = datetime(2001, 2, 3, 4, 5, 6, tzinfo=UTC)
STAMP = re.compile(r"20\d\d-\d\d-\d\d")


def slow(*_):
    time.sleep(0.05)


def test_a_slow_release_shows_the_time_of_its_grant(tmp_path):
    method = make_method("histogram", {"columns": ("age", "sex")})
    with Ledger.create(tmp_path / "books.db", clock=lambda: GRANTED) as ledger:
        ledger.add("people", cap=1)
        publish(
            method,
            open_table(arrow_table(), SCHEMA),
            tmp_path / "out",
            ledger=ledger,
            dataset="people",
            epsilon=1,
            progress=slow,
        )
    head = json.loads((tmp_path / "out" / "release.json").read_text())
    assert head["receipt"]["created"] == GRANTED.isoformat()
    for name in ("release.json", "datapackage.json", "report.html"):
        text = (tmp_path / "out" / name).read_text()
        assert set(STAMP.findall(text)) == {"2001-02-03"}
    for path in [tmp_path / "out", *(tmp_path / "out").rglob("*")]:
        assert path.stat().st_mtime == GRANTED.timestamp()


def test_a_budget_without_a_ledger_shows_when_it_was_made():
    before = datetime.now(UTC).replace(microsecond=0)
    budget = Budget.seeded(1)
    time.sleep(1.1)
    method = make_method("histogram", {"columns": ("age",)})
    release = method.release(open_table(arrow_table(), SCHEMA), budget=budget, rng=secure())
    assert release.receipt.created == budget.opened
    made = datetime.fromisoformat(release.receipt.created)
    assert before <= made < datetime.now(UTC).replace(microsecond=0)


def times_in(value):
    """Every `created` at any depth."""
    if isinstance(value, dict):
        yield from (v for k, v in value.items() if k == "created")
        value = list(value.values())
    if isinstance(value, list):
        for part in value:
            yield from times_in(part)


@pytest.mark.parametrize("name", EXAMPLES)
def test_every_receipt_shows_the_time_of_the_grant(name, tmp_path):
    method = make_method(name, EXAMPLES[name][0])
    budget = method.budget(1) if isinstance(method, PersonalSettings) else Budget.seeded(1)
    grant = Grant("people", 3, "ab" * 32, GRANTED.isoformat())
    granted = Budget.granted(budget.epsilon, grant=grant, levels=budget.levels)
    release = method.release(open_table(arrow_table(), SCHEMA), budget=granted, rng=secure())
    head = json.loads((release.save(tmp_path / "out") / "release.json").read_text())
    assert set(times_in(head)) == {GRANTED.isoformat()}
