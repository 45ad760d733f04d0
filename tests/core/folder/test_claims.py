"""What a stranger's release claims is compared with what it holds before memory is taken."""

import copy
import json
import resource
import subprocess
import sys
from fractions import Fraction

import pyarrow as pa
import pytest

from dpublish.core.folder.opening import MOST_VALUES, require_loadable, require_modest_claims
from dpublish.core.registry import make_method
from dpublish.data.schema import Schema, column
from dpublish.data.sources import open_table
from dpublish.errors import CorruptRelease, InvalidParameter
from dpublish.ledger.ledger import Ledger
from dpublish.methods.personalized.method import PersonalSettings
from dpublish.privacy.budget import Budget
from dpublish.publishing import publish
from dpublish.randomness import seeded
from method_examples import EXAMPLES, SCHEMA, arrow_table

SIZES = {"bins", "leaves", "grid", "sizes", "shape", "coarse_bins", "noisy_size", "clusters"}
"""Keys under which some kind of release says how large something is."""


CASES = [(name, many[0]) for name, many in EXAMPLES.items()]
PLANE = Schema(tuple(column(name, "numeric", bounds=[0, 1], bins=4) for name in "xy"))


def claim(value, number):
    """Claim `number` wherever a size stands."""
    if isinstance(value, list):
        for part in value:
            claim(part, number)
    if isinstance(value, dict):
        for key, old in value.items():
            if key in SIZES and type(old) is int:
                value[key] = number
            elif key in SIZES and isinstance(old, list) and all(type(x) is int for x in old):
                value[key] = [number] * len(old)
            else:
                claim(old, number)


def publish_example(name, settings):
    method = make_method(name, settings)
    is_personal = isinstance(method, PersonalSettings)
    budget = method.budget(Fraction(1)) if is_personal else Budget.seeded(1)
    return method.release(open_table(arrow_table(), SCHEMA), budget=budget, rng=seeded(1))


def save_forged(release, parent):
    """Save a release, and beside it heads with claims of several sizes."""
    parent.mkdir()
    folder = release.save(parent / "out")
    head = json.loads((folder / "release.json").read_text())
    for number in (1_000, 50_000, 10**9, 2**62, 10**30):
        for parts in (("schema",), ("metadata",), ("schema", "metadata")):
            forged = copy.deepcopy(head)
            for part in parts:
                claim(forged[part], number)
            (parent / f"{number}-{'-'.join(parts)}.json").write_text(json.dumps(forged))


LOAD = """
import resource, sys
from pathlib import Path
import scipy.special, scipy.stats
from dpublish.errors import DPublishError
from dpublish.core.folder.folder import load

def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss

tried = 0
for forged in sorted(Path(sys.argv[1]).glob("*/*.json")):
    folder = forged.parent / "out"
    (folder / "release.json").write_bytes(forged.read_bytes())
    before = peak()
    try:
        load(folder)
    except DPublishError:
        pass
    tried += 1
    if peak() - before > 250_000:
        print(forged, "took", (peak() - before) >> 10, "MB")
print("tried", tried)
"""


def require_modest_memory(folder, tried):
    done = subprocess.run(
        [sys.executable, "-c", LOAD, str(folder)],
        capture_output=True,
        text=True,
        check=False,
        timeout=900,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (4 << 30, 4 << 30)),
    )
    assert done.returncode == 0, done.stderr[-2000:]
    assert done.stdout.splitlines() == [f"tried {tried}"]


@pytest.mark.parametrize("part", range(4))
def test_no_claim_takes_memory(tmp_path, part):
    cases = CASES[part::4]
    for number, (name, settings) in enumerate(cases):
        save_forged(publish_example(name, settings), tmp_path / f"{number}-{name}")
    require_modest_memory(tmp_path, 15 * len(cases))


@pytest.mark.parametrize(
    ("name", "settings"),
    [
        ("histogram", {"columns": ("x", "y")}),
        ("privelet", {"columns": ("x", "y")}),
        ("privbayes", {"columns": ("x", "y")}),
        ("eugkm", {"n_clusters": 2}),
        ("privqt", {"cells": 8}),
        ("ug", {"columns": ("x", "y")}),
    ],
)
def test_claims_that_multiply_take_no_memory(tmp_path, name, settings):
    table = open_table(pa.table({"x": [0.1, 0.9], "y": [0.2, 0.8]}), PLANE)
    release = make_method(name, settings).release(table, budget=Budget.seeded(1), rng=seeded(1))
    save_forged(release, tmp_path / name)
    require_modest_memory(tmp_path, 15)


def test_claims_of_all_schemas_are_added_up():
    many = {"kind": "numeric", "bounds": [0, 1], "bins": MOST_VALUES // 3}
    require_modest_claims({"schema": {"columns": [many, many, many]}})
    for head in (
        {"schema": {"columns": [many, many, many, many]}},
        {"metadata": {"parts": [{"schema": {"columns": [many, many]}}] * 2}},
        {"schema": {"columns": [{"kind": "integer", "bounds": [-(10**9), 10**9]}]}},
        {"schema": {"columns": [{"bins": 10**30}]}},
    ):
        with pytest.raises(CorruptRelease, match="claim more than"):
            require_modest_claims(head)
    require_modest_claims({"bins": -5, "bounds": ["a", None]})


def test_a_schema_that_could_not_be_read_back_is_refused_before_it_is_paid_for(tmp_path):
    names = [f"c{k}" for k in range(4)]
    wide = Schema(tuple(column(n, "numeric", bounds=[0, 1], bins=1_000_000) for n in names))
    with pytest.raises(InvalidParameter, match="take fewer bins"):
        require_loadable(wide)
    require_loadable(SCHEMA, parts=100)
    method = make_method("histogram", {"columns": ("c0",)})
    rows = pa.table({name: [0.5, 0.25] for name in names})
    table = open_table(rows, wide)
    with Ledger.create(tmp_path / "books.db") as ledger:
        ledger.add("people", cap=1)
        with pytest.raises(InvalidParameter, match="take fewer bins"):
            publish(method, table, tmp_path / "out", ledger=ledger, dataset="people", epsilon=1)
        assert ledger.status("people").spent == 0
