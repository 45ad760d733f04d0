"""The report to keep: all that the owner should find again, and never inside a release."""

import getpass
import re
from datetime import UTC, datetime
from html import unescape

import pytest

from dpublish.core.folder.folder import differences
from dpublish.errors import InvalidParameter
from dpublish.ledger.ledger import Ledger
from dpublish.report.checks import examine
from dpublish.report.keep import STAMP, render_keep, write_keep
from ledger.ledger_forgery import read, write
from owners_world import CONTACT, KINDS, PUBLISHER, make_plain


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    """Two releases and a changed cap, all from one ledger."""
    made = make_plain(tmp_path_factory.mktemp("keep"))
    make_plain(made.folder.parent, name="again", purpose="a <second> look", sign=None)
    with Ledger(made.ledger) as books:
        books.change_cap("people", "3", reason="decision 12")
    return made


def text_of(page):
    return re.sub(r"\s+", " ", unescape(re.sub(r"<[^>]*>", " ", page)))


def test_it_holds_purpose_people_checks_budget_settings_and_schema(home):
    examined = examine(home.folder, home.ledger, key=home.key)
    page = render_keep(examined, with_charts=False, clock=lambda: datetime(2026, 3, 5, tzinfo=UTC))
    told = text_of(page)
    assert STAMP in told
    for part in (
        "purpose yearly tables",
        f"released by {getpass.getuser()}",
        f"publisher {PUBLISHER}",
        f"contact {CONTACT}",
        "This page: 5 March 2026",
        "signature right signed with the key given",
        "ledger entry right entry 3 paid for it",
        "cap ε = 3",
        "spent 1",
        "left 2",
        "cap changed to 3: decision 12",
        "a <second> look",
        "What was guaranteed",
        "columns age, sex",
        "Schema as it was used",
        'kind = "category"',
        "do not publish it",
        examined.digest,
    ):
        assert part in told, part
    assert "<second>" not in page


def test_every_entry_about_the_dataset_is_listed_with_what_was_left(home):
    page = render_keep(examine(home.folder, home.ledger), with_charts=False)
    table = page[page.index("purpose or words") :]
    rows = re.findall(r"<tr>(.*?)</tr>", table, re.DOTALL)
    cells = [re.findall(r"<td[^>]*>(.*?)</td>", row, re.DOTALL) for row in rows]
    left = [(row[2], row[4], row[6]) for row in cells if len(row) == 7]
    assert left == [
        ("add", "", "2"),
        ("grant", "0.5", "1.5"),
        ("publish", "", "1.5"),
        ("grant", "0.5", "1"),
        ("publish", "", "1"),
        ("cap", "", "2"),
    ]


@pytest.mark.parametrize("kind", ["personal", "stream"])
def test_levels_and_windows_are_told(kind, tmp_path):
    made = KINDS[kind](tmp_path)
    told = text_of(render_keep(examine(made.folder, made.ledger), with_charts=False))
    if kind == "personal":
        assert "What each level has spent." in told
        assert "those of the highest level" in told
    else:
        assert "cap ε = 5, within any 4 consecutive snapshots" in told
        assert "published, per window" in told
        assert "digest of manifest.json" in told


def test_who_released_it_can_be_named_in_one_line(home):
    examined = examine(home.folder, home.ledger)
    named = render_keep(examined, released_by="A. Steward", with_charts=False)
    assert "released by A. Steward" in text_of(named)
    with pytest.raises(InvalidParameter, match="one line"):
        render_keep(examined, released_by="two\nlines", with_charts=False)


def test_what_the_ledger_does_not_know_stands_in_red_before_all_else(home, tmp_path):
    books = tmp_path / "books.db"
    books.write_bytes(home.ledger.read_bytes())
    write(books, read(books)[:2])
    page = render_keep(examine(home.folder, books), with_charts=False)
    stamps = re.findall(r'class="stamp"[^>]*>(.*?)</', page)
    assert "the ledger has no such entry" in stamps[0]
    assert stamps[-1] == STAMP
    assert "unknown: the ledger has no entry of it" in page
    assert "so another account may have paid for it" in page


@pytest.mark.parametrize("where", ["", "data", "new"])
def test_it_is_refused_inside_any_release_folder(home, where, tmp_path):
    inside = home.folder.parent / "again" / where / "keep.html"
    with pytest.raises(InvalidParameter, match="inside the release folder"):
        write_keep(home.folder, home.ledger, inside)
    link = tmp_path / "link"
    link.symlink_to(home.folder, target_is_directory=True)
    with pytest.raises(InvalidParameter, match="inside the release folder"):
        write_keep(home.folder, home.ledger, link / "keep.html")
    assert not differences(home.folder)


def test_it_is_refused_inside_a_stream_and_changes_no_file_there(tmp_path):
    made = KINDS["stream"](tmp_path)
    for inside in (made.folder / "keep.html", made.folder / "data" / "keep.html"):
        with pytest.raises(InvalidParameter, match="inside the release folder"):
            write_keep(made.folder, made.ledger, inside)
    write_keep(made.folder, made.ledger, tmp_path / "keep.html", key=made.key)
    assert not differences(made.folder)


def test_a_file_of_the_users_is_never_replaced_and_must_be_a_page(home, tmp_path):
    path = tmp_path / "keep.html"
    assert write_keep(home.folder, home.ledger, path).problems == ()
    with pytest.raises(InvalidParameter, match="exists already"):
        write_keep(home.folder, home.ledger, path)
    write_keep(home.folder, home.ledger, path, replaces=True)
    with pytest.raises(InvalidParameter, match=r"ending in \.html"):
        write_keep(home.folder, home.ledger, tmp_path / "keep.txt")
