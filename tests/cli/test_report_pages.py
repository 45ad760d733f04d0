"""`dpublish report --keep` and `dpublish certificate`, from a release to the page."""

import json

import pytest

from dpublish.ledger.ledger import Ledger
from ledger.ledger_forgery import read, write


@pytest.fixture
def signed(run, workdir, release):
    run("key", "create", "owner.key")
    run("ledger", "describe", "books.db", "people", "--publisher", "City", "--contact", "a@b.org")
    assert release("out", sign="owner.key", purpose="yearly tables").code == 0
    return workdir


def test_the_report_to_keep_is_written_beside_the_release(run, signed):
    done = run("report", "out", "--keep", "--ledger", "books.db", "--key", "owner.pub")
    assert (done.code, done.err) == (0, "")
    assert "out-report-to-keep.html" in done.out
    page = (signed / "out-report-to-keep.html").read_text()
    assert "yearly tables" in page
    assert "signed with the key given" in page
    named = ("--released-by", "A. Steward", "-o", "kept.html")
    assert run("report", "out", "--keep", "--ledger", "books.db", *named).code == 0
    assert "A. Steward" in (signed / "kept.html").read_text()
    assert run("report", "out", "--keep", "--ledger", "books.db").code == 0  # again, in place
    assert run("verify", "out", "--key", "owner.pub").code == 0


@pytest.mark.usefixtures("signed")
def test_what_is_for_the_owner_alone_is_not_taken_for_the_published_page(run):
    done = run("report", "out", "--ledger", "books.db")
    assert (done.code, "--keep" in done.err) == (1, True)
    done = run("report", "out", "--keep")
    assert (done.code, "--ledger books.db" in done.err) == (1, True)


def test_a_certificate_is_written_and_a_release_folder_takes_no_page(run, signed):
    done = run("certificate", "out", "--ledger", "books.db", "--key", "owner.pub", "-o", "c.html")
    assert (done.code, done.err) == (0, "")
    page = (signed / "c.html").read_text()
    assert "a@b.org" in page
    assert 'class="stamp"' not in page
    for inside in ("out/c.html", "out/data/c.html"):
        for words in (("certificate", "out"), ("report", "out", "--keep")):
            refused = run(*words, "--ledger", "books.db", "-o", inside)
            assert (refused.code, "inside the release folder" in refused.err) == (1, True)
    assert run("certificate", "out", "--ledger", "books.db", "-o", "c.html").code == 1
    assert run("verify", "out").code == 0


@pytest.mark.parametrize("words", [("certificate", "out"), ("report", "out", "--keep")])
def test_what_the_ledger_does_not_vouch_for_is_written_in_red_and_fails(run, signed, words):
    write(signed / "books.db", read(signed / "books.db")[:2])
    done = run(*words, "--ledger", "books.db", "-o", "page.html")
    assert done.code == 3
    assert "page.html says in red: The ledger does not vouch" in done.err
    assert "the ledger has no such entry" in (signed / "page.html").read_text()


def test_a_forged_release_gets_no_clean_certificate(run, signed):
    head = json.loads((signed / "out" / "release.json").read_text())
    head["receipt"]["created"] = "1999-12-31T00:00:00+00:00"
    (signed / "out" / "release.json").write_text(json.dumps(head))
    done = run("certificate", "out", "--ledger", "books.db", "--key", "owner.pub", "-o", "c.html")
    assert done.code == 3
    page = (signed / "c.html").read_text()
    assert "is not the release that the ledger recorded" in page
    assert "what was signed has changed since" in page


def test_a_changed_folder_gets_no_page_at_all(run, signed):
    (signed / "out" / "report.html").write_text("other")
    done = run("certificate", "out", "--ledger", "books.db", "-o", "c.html")
    assert (done.code, "report.html" in done.err) == (3, True)
    assert not (signed / "c.html").exists()


def test_a_purpose_stays_out_of_the_certificate_and_of_the_release(run, signed):
    run("certificate", "out", "--ledger", "books.db", "-o", "c.html")
    with Ledger(signed / "books.db") as books:
        assert books.status("people").grants[0].purpose == "yearly tables"
    assert "yearly tables" not in (signed / "c.html").read_text()
    published = [path for path in (signed / "out").rglob("*") if path.is_file()]
    assert not [path.name for path in published if b"a@b.org" in path.read_bytes()]
