"""The certificate: what it states of each kind of release, and what it never hides."""

import re
from dataclasses import replace
from datetime import UTC, datetime
from fractions import Fraction
from html import unescape
from html.parser import HTMLParser
from pathlib import Path

import pytest

from dpublish.core.proofs import proofs_of
from dpublish.data.publication import Publication
from dpublish.errors import InvalidParameter
from dpublish.ledger.ledger import Ledger
from dpublish.privacy.meaning import most_sure, percent_at_most
from dpublish.report.certificate import (
    NOT_COVERED,
    certificate_of,
    render_certificate,
    write_certificate,
)
from dpublish.report.checks import Check, examine
from ledger.ledger_forgery import read, write
from owners_world import CONTACT, KINDS, PUBLISHER

ROOT = Path(__file__).resolve().parents[2]


def clock():
    return datetime(2026, 3, 5, tzinfo=UTC)


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    return {name: make(tmp_path_factory.mktemp(name)) for name, make in KINDS.items()}


@pytest.fixture(scope="module")
def examined(made):
    return {
        name: examine(each.folder, each.ledger, key=each.key if each.key.exists() else None)
        for name, each in made.items()
    }


class Links(HTMLParser):
    def __init__(self):
        super().__init__()
        self.found, self.scripts = [], 0

    def handle_starttag(self, tag, attrs):
        self.found += [value for name, value in attrs if name == "href"]
        self.scripts += tag == "script" or any(name.startswith("on") for name, _ in attrs)


@pytest.mark.parametrize("kind", KINDS)
def test_it_states_what_whose_how_well_and_what_was_checked(examined, kind):
    found = examined[kind]
    receipt = found.release.receipt
    page = unescape(render_certificate(found, clock=clock))
    for part in (
        receipt.release_id,
        found.digest,
        found.manifest_digest,
        receipt.ledger_hash,
        receipt.guarantee(),
        f"dpublish {receipt.package_version}",
        NOT_COVERED,
        "Certificate of 5 March 2026",
        receipt.neighbors.brief(),
    ):
        assert part in page, part
    assert 'class="stamp"' not in page


def test_publisher_and_contact_are_the_ledgers_and_else_those_of_the_release(examined):
    found = examined["plain"]
    told = certificate_of(found, clock=clock).owner
    assert (told["publisher"], told["contact"]) == (PUBLISHER, CONTACT)
    silent = replace(found, status=replace(found.status, publisher="", contact=""))
    told = certificate_of(silent, clock=clock).owner
    assert told["publisher"] == "City of Example (by the release)"
    assert told["contact"] == "not stated"


def test_epsilon_and_the_total_against_the_cap_are_told(examined):
    told = certificate_of(examined["plain"], clock=clock).owner
    assert told["ε of this release"] == "0.5"
    assert told["total so far"] == "0.5 of a cap of 2; 1.5 left on 5 March 2026"
    told = certificate_of(examined["stream"], clock=clock).owner
    assert told["ε of this release"] == "2 in any 4 consecutive snapshots"
    assert told["total so far"].startswith("2 of a cap of 5 in any 4 consecutive snapshots")
    assert certificate_of(examined["stream"], clock=clock).release["released"].endswith("step 2")


def test_each_level_is_told_with_its_total_and_what_can_be_learned(examined):
    found = examined["personal"]
    (listing,) = certificate_of(found, clock=clock).tables
    paid = dict(found.release.receipt.personal)
    assert len(listing.rows) == 6
    assert "2 levels between them are not shown" in listing.caption
    assert listing.rows[0][0] == "0.01"
    assert listing.rows[0][3] == percent_at_most(most_sure(Fraction(1, 2), paid[Fraction(1, 100)]))
    assert listing.rows[0][2] == listing.rows[0][1]  # the first release of the ledger
    unknown = certificate_of(replace(found, grant=None), clock=clock)
    assert {row[2] for row in unknown.tables[0].rows} == {"unknown"}
    assert unknown.owner["total so far"].startswith("unknown")
    assert unknown.release["method"] == "minimum, which runs histogram"


@pytest.mark.parametrize("kind", KINDS)
def test_it_links_the_proofs_of_what_ran_and_they_are_there(examined, kind):
    links = Links()
    links.feed(render_certificate(examined[kind]))
    assert links.found == [
        f"docs/proofs/{name}.md" for name in proofs_of(examined[kind].release.receipt)
    ]
    assert links.found
    assert all((ROOT / link).is_file() for link in links.found)
    assert links.scripts == 0


def test_the_proofs_may_be_published_elsewhere_but_links_run_nothing(made, examined, tmp_path):
    page = render_certificate(examined["plain"], proofs="https://example.org/proofs/")
    assert 'href="https://example.org/proofs/exact.md"' in page
    home = made["plain"]
    with pytest.raises(InvalidParameter, match="web address"):
        write_certificate(home.folder, home.ledger, tmp_path / "c.html", proofs="javascript:x()")
    assert list(tmp_path.iterdir()) == []


def test_the_signature_is_told_with_its_key(examined):
    said = certificate_of(examined["plain"]).release["signature"]
    assert said == f"Signed with the key given, {examined['plain'].signature.fingerprint}"
    assert certificate_of(examined["personal"]).release["signature"] == "It is not signed"


def test_what_the_ledger_does_not_vouch_for_stands_in_red(made, tmp_path):
    home, books = made["plain"], tmp_path / "books.db"
    books.write_bytes(home.ledger.read_bytes())
    write(books, read(books)[:2])
    found = write_certificate(home.folder, books, tmp_path / "c.html")
    page = (tmp_path / "c.html").read_text()
    stamps = re.findall(r'class="stamp"[^>]*>(.*?)</p>', page)
    assert stamps == list(found.problems)
    assert "the ledger has no such entry" in stamps[0]
    assert page.index(stamps[0]) < page.index("release id")


def test_a_ledger_of_others_is_not_taken_for_its_own(made, tmp_path):
    with Ledger.create(tmp_path / "books.db") as books:
        books.add("people", cap="9", publisher="Someone else")
    found = examine(made["plain"].folder, tmp_path / "books.db")
    told = certificate_of(found)
    assert len(told.problems) == 1
    assert "vouch" in told.problems[0]
    assert "Someone else" not in told.owner["publisher"]
    assert told.owner["total so far"].startswith("unknown")
    assert told.heading == "What the release claims; see above"


def test_words_of_an_owner_cannot_become_markup_or_a_second_page(examined):
    nasty = "<script>x()</script> & " * 200
    found = examined["plain"]
    schema = replace(found.release.schema, publication=Publication(title=nasty))
    receipt = replace(found.release.receipt, dataset=nasty)
    problems = tuple(Check("ledger", "WRONG", nasty) for _ in range(9))
    found = replace(
        found, release=replace(found.release, schema=schema, receipt=receipt), checks=problems
    )
    page = render_certificate(found)
    assert "<script" not in page
    assert certificate_of(found).is_dense
    assert len(certificate_of(found).problems) == 5
    assert certificate_of(found).problems[-1] == "And 5 more."
    assert not certificate_of(examined["plain"]).is_dense


@pytest.mark.parametrize("kind", ["plain", "stream"])
def test_it_is_refused_inside_a_release_folder(made, kind):
    home = made[kind]
    for other in made.values():
        with pytest.raises(InvalidParameter, match="inside the release folder"):
            write_certificate(home.folder, home.ledger, other.folder / "certificate.html")
