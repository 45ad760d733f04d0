"""Every method names the pages that argue for it, and these pages are there."""

from dataclasses import replace
from fractions import Fraction
from functools import wraps
from importlib import import_module
from pathlib import Path

import pytest

from dpublish.core import proofs as proofs_module
from dpublish.core import run as run_module
from dpublish.core.catalog import CATALOG, STREAMS
from dpublish.core.proofs import proof_link, proofs_of
from dpublish.core.registry import make_method
from dpublish.data.sources import open_table
from dpublish.privacy.budget import Budget
from dpublish.privacy.neighbors import PersonalRecord
from dpublish.privacy.receipt import Receipt
from dpublish.randomness import seeded
from method_examples import EXAMPLES, SCHEMA, arrow_table

FOLDER = Path(__file__).resolve().parents[2] / "docs" / "proofs"
CLASSES = {
    name: getattr(import_module(entry.location.split(":")[0]), entry.location.split(":")[1])
    for name, entry in {**CATALOG, **STREAMS}.items()
}
PAGES = {
    "add_geometric": "exact",
    "add_laplace": "exact",
    "noisy_size": "exact",
    "sparse_counts": "exact",
    "select": "selection",
    "permute_and_flip": "selection",
    "quantile": "selection",
    "choose_threshold": "selection",
    "choose_bounds": "tail_bounds",
    "top_k": "top_k",
    "retraverse": "sparse_vector",
    "continuous_noise": "private_erm",
    "search": "center_losses",
}
"""The page of every mechanism, by the name under which a run calls it."""


def receipt(method="histogram", **changes):
    plain = {
        "method": method,
        "settings": {},
        "epsilon": "1",
        "shares": [{"purpose": "all", "epsilon": "1"}],
        "neighbors": {"name": "add-remove-record"},
        "package_version": "0",
        "created": "",
        "release_id": "",
        "parallel": [],
        "stamps": [],
        "dataset": None,
        "ledger_entry": None,
        "ledger_hash": None,
    }
    return Receipt.from_dict(plain | changes)


@pytest.mark.parametrize("name", CLASSES)
def test_every_method_names_proofs_that_exist(name):
    named = CLASSES[name].proofs
    assert named, f"{name} names no proof"
    assert len(set(named)) == len(named)
    assert [page for page in named if not (FOLDER / f"{page}.md").is_file()] == []


def test_every_run_verb_that_draws_has_a_page():
    drawing = {
        name
        for name, item in vars(run_module).items()
        if callable(item) and getattr(item, "__module__", "").startswith("dpublish.mechanisms")
    }
    others = {"LatticeValues", "Breeding", "Scores", "NoisyCells", "TailBounds", "uniform_below"}
    others |= {"distances_below_best", "draw_uniform", "selection_rate"}  # parts of the others
    assert drawing - others == set(PAGES)
    assert all((FOLDER / f"{page}.md").is_file() for page in PAGES.values())


@pytest.mark.parametrize("name", EXAMPLES)
def test_a_release_names_the_page_of_every_mechanism_that_it_drew_from(name, monkeypatch):
    drawn = set()

    def noting(verb):
        function = getattr(run_module, verb)

        @wraps(function)
        def noted(*given, **named):
            drawn.add(PAGES[verb])
            return function(*given, **named)

        return noted

    for verb in PAGES:
        monkeypatch.setattr(run_module, verb, noting(verb))
    for settings in EXAMPLES[name]:
        method = make_method(name, settings)
        budget = method.budget(1) if hasattr(method, "budget") else Budget.seeded(1)
        table = (
            open_table(arrow_table(), method.prepare(SCHEMA))
            if hasattr(method, "prepare")
            else open_table(arrow_table(), SCHEMA)
        )
        drawn.clear()
        release = method.release(table, budget=budget, rng=seeded(1))
        assert drawn <= set(proofs_of(release.receipt))


def test_what_is_done_beside_the_method_has_its_pages():
    assert proofs_of(receipt(steps=["filter: age >= 18"])) == ("exact", "record_steps")
    assert proofs_of(receipt(contribution=4)) == ("exact", "contribution_bound")
    inner = {"inner": {"method": "privbayes", "target": "sex"}}
    whose = PersonalRecord("own", ("1",), "levels", unit="patient")
    told = replace(
        receipt("threshold", settings=inner),
        personal=((Fraction(1), Fraction(1)),),
        neighbors=whose,
    )
    assert proofs_of(told) == (
        *("exact", "bayes_network", "selection"),
        *("personal_ledger", "personal_units"),
    )


@pytest.mark.parametrize(
    ("static", "page"),
    [("grouped", "grouped_histogram"), ("efpa", "marginals"), ("privelet", "wavelet")],
)
def test_a_stream_names_its_operator_and_the_histogram_of_a_step(static, page):
    told = proofs_of(receipt("dsat", settings={"static": static, "contribution": 2}))
    assert told[:2] == ("stream", "sparse_vector")
    assert {page, "stream_operator", "contribution_bound"} <= set(told)
    assert page not in proofs_of(receipt("dsat", settings={"static": "identity"}))


def test_a_method_of_another_package_that_is_not_here_names_nothing():
    assert proofs_of(receipt("no-such-method")) == ()


def test_links_lead_to_the_address_that_the_package_states(monkeypatch):
    assert proof_link("exact") == "docs/proofs/exact.md"
    assert proof_link("exact", "https://a.example/p/") == "https://a.example/p/exact.md"

    class Stated:
        def get_all(self, name):
            return ["Source, https://b.example", "Documentation, https://b.example/docs/"]

    monkeypatch.setattr(proofs_module, "metadata", lambda name: Stated())
    assert proof_link("exact") == "https://b.example/docs/proofs/exact.md"
