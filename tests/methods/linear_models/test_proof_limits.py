"""What the proof of a minimizer assumes is said in the receipt, and not passed over."""

import json
from fractions import Fraction

import pytest

from dpublish.core.folder.folder import load
from dpublish.data.sources import open_table
from dpublish.errors import InvalidParameter
from dpublish.methods.linear_models import output_perturbation as perturbed_output
from dpublish.methods.linear_models import private_erm as perturbed_objective
from dpublish.methods.linear_models.output_perturbation import OutputPerturbation
from dpublish.methods.linear_models.private_erm import PrivateERM
from dpublish.methods.linear_models.proof_limits import BEYOND
from dpublish.privacy.budget import Budget
from dpublish.privacy.receipt import Receipt
from dpublish.randomness import seeded
from dpublish.report.page import render_report
from method_examples import ROWS, SCHEMA, arrow_table

CATALOG = [
    PrivateERM(target="sex", noise="spherical"),
    PrivateERM(target="sex", regularization=Fraction(1, 10), noise="laplace"),
    OutputPerturbation(target="sex"),
]


def released(method):
    table = open_table(arrow_table(ROWS), SCHEMA)
    return method.release(table, budget=Budget.seeded(2), rng=seeded(1))


@pytest.mark.parametrize("method", CATALOG, ids=lambda method: method.name)
def test_the_receipt_the_page_and_the_folder_name_the_assumptions(method, tmp_path):
    release = released(method)
    named = release.receipt.assumptions
    for words in ("16,777,216 (2^24) records", "10^-50", "16,384 passes"):
        assert any(words in each for each in named)
    is_spherical = any("square root" in each for each in named)
    assert is_spherical == (getattr(method, "noise", "spherical") != "laplace")
    assert BEYOND not in named
    page = render_report(release, with_charts=False)
    assert all(each.replace("'", "&#39;") in page for each in named)
    release.save(tmp_path / "out")
    head = json.loads((tmp_path / "out" / "release.json").read_text())
    assert tuple(head["receipt"]["assumptions"]) == named
    assert load(tmp_path / "out").receipt == release.receipt


def test_other_receipts_look_as_they_did():
    receipt = released(CATALOG[0]).receipt
    plain = receipt.to_dict()
    del plain["assumptions"]
    bare = Receipt.from_dict(plain)
    assert bare.assumptions == ()
    assert bare.to_dict() == plain


@pytest.mark.parametrize("method", CATALOG, ids=lambda method: method.name)
def test_a_public_size_beyond_the_proof_is_refused(method):
    method.expected_error(SCHEMA, 1 << 24, Fraction(2))
    with pytest.raises(InvalidParameter, match=r"at most 16,777,216 \(2\^24\) records"):
        method.expected_error(SCHEMA, (1 << 24) + 1, Fraction(2))


@pytest.mark.parametrize(
    ("module", "method"), [(perturbed_objective, CATALOG[1]), (perturbed_output, CATALOG[2])]
)
@pytest.mark.parametrize("extra", [0, 1])
def test_a_noisy_size_beyond_the_proof_is_stamped_and_not_refused(
    monkeypatch, module, method, extra
):
    def count(*_given, budget, rng):
        return budget.spend() and (1 << 24) + extra

    monkeypatch.setattr(module, "count_records", count)
    assert (BEYOND in released(method).receipt.assumptions) == bool(extra)
