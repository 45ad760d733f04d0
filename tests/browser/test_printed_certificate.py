"""A certificate is one sheet of paper, whatever it is about and however much is wrong."""

from dataclasses import replace

import pytest

from browser.printed import PAPERS, require_chromium, sheets
from dpublish.report.certificate import certificate_of, render_certificate
from dpublish.report.checks import Check, Signature, examine
from dpublish.report.html import render_template
from owners_world import KINDS, STATED, make_personal

LONG = "A statement that goes on and on and on. " * 30
WIDE = "W" * 160


@pytest.fixture(scope="module")
def chromium():
    return require_chromium()


@pytest.mark.parametrize("kind", KINDS)
def test_a_certificate_is_one_sheet(kind, chromium, tmp_path):
    made = KINDS[kind](tmp_path)
    key = made.key if made.key.exists() else None
    page = render_certificate(examine(made.folder, made.ledger, key=key))
    assert {paper: sheets(chromium, page, paper, tmp_path) for paper in PAPERS} == {
        "A4": 1,
        "Letter": 1,
    }


@pytest.fixture(scope="module")
def worst(tmp_path_factory):
    """A release about which as much is to be said, and as much is wrong, as can be."""
    made = make_personal(tmp_path_factory.mktemp("worst"))
    found = examine(made.folder, made.ledger)
    receipt = replace(
        found.release.receipt,
        dataset=WIDE * 2,
        stamps=("NOT ACCOUNTED: no ledger granted this budget",),
        assumptions=(LONG,) * 5,
        contribution=4,
        steps=("filter: age >= 18",),
        settings={"inner": {"method": "dpcopula-hybrid"}},
    )
    schema = replace(found.release.schema, publication=replace(STATED, title=LONG))
    wrong = ("files", "signature", "ledger", "ledger entry", "ledger", "files")
    return replace(
        found,
        release=replace(found.release, receipt=receipt, schema=schema),
        status=replace(found.status, publisher=WIDE, contact=WIDE),
        checks=tuple(Check(what, "WRONG", LONG) for what in wrong),
        manifest="manifest.json",
        manifest_digest="0" * 64,
        signature=Signature("changed"),
    )


def test_a_certificate_of_all_that_can_be_wrong_is_one_sheet(worst, chromium, tmp_path):
    page = render_certificate(worst)
    assert 'class="dense"' in page
    assert [sheets(chromium, page, paper, tmp_path) for paper in PAPERS] == [1, 1]


def test_a_certificate_that_just_keeps_the_usual_print_is_one_sheet(worst, chromium, tmp_path):
    certificate = replace(certificate_of(worst), problems=(), guarantee=())
    while not replace(certificate, guarantee=(*certificate.guarantee, "x" * 110)).is_dense:
        certificate = replace(certificate, guarantee=(*certificate.guarantee, "x " * 55))
    assert certificate.guarantee
    page = render_template("certificate.html", page=certificate)
    assert 'class="dense"' not in page
    assert sheets(chromium, page, "Letter", tmp_path) == 1


def test_the_count_of_sheets_would_show_a_second_one(worst, chromium, tmp_path):
    page = render_certificate(worst).replace("7pt", "14pt")
    assert sheets(chromium, page, "Letter", tmp_path) > 1
