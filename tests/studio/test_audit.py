"""The audit tells what is wrong with ledger and releases, and changes nothing."""

import re
import sqlite3

import pytest

from dpublish import Histogram, open_table, publish
from dpublish.core.folder.folder import sign_folder
from dpublish.core.folder.signing import SigningKey, create_key
from dpublish.ledger.ledger import Ledger
from dpublish.privacy.neighbors import AddRemoveRecord
from dpublish.randomness import secure
from studio_world import SCHEMA


def make_release(folder, name):
    (folder / "releases").mkdir(exist_ok=True)
    table = open_table(folder / "visits.parquet", SCHEMA, columns=["ill"])
    with Ledger(folder / "books.db") as ledger:
        publish(
            Histogram(columns=["ill"]),
            table,
            folder / "releases" / name,
            ledger=ledger,
            dataset="visits",
            epsilon="0.5",
        )
    table.close()


def head_of(folder):
    with Ledger(folder / "books.db") as ledger:
        return ledger.verify().head


def rows_of(page):
    """List the cells of each release, by its name."""
    found = re.findall(r'href="/releases/(\w+)/verify">.*?</tr>', page.text, re.DOTALL)
    whole = re.findall(r'(<a href="/releases/\w+/verify">.*?</tr>)', page.text, re.DOTALL)
    return {
        name: [re.sub("<[^>]+>", "", cell) for cell in re.findall(r"<td[^>]*>.*?</td>", row)]
        for name, row in zip(found, whole, strict=True)
    }


def test_what_is_in_order_is_said_to_be(world):
    make_release(world.folder, "ill")
    page = world.client().get("/audit")
    assert "The chain is whole" in page.text
    assert head_of(world.folder) in page.text
    assert "1 release of the folder" in page.text
    cells = rows_of(page)["ill"]
    assert cells[0:2] == ["visits", "0.5"]
    assert cells[3:] == ["as published", "recorded", "not signed"]
    assert 'role="alert"' not in page.text


def test_readers_may_audit(world):
    before = head_of(world.folder)
    assert world.client("reader").get("/audit").status == 200
    assert head_of(world.folder) == before


def test_a_noted_head_is_compared(world):
    client = world.client()
    noted = head_of(world.folder)
    make_release(world.folder, "ill")
    assert "the noted head, which is entry 2" in client.get("/audit", head=noted).text
    assert "no entry has the expected hash" in client.get("/audit", head="0" * 64).text
    assert "is not a hash" in client.get("/audit", head="<b>").text


def test_an_edited_entry_is_found(world):
    make_release(world.folder, "ill")
    connection = sqlite3.connect(world.folder / "books.db")
    triggers = connection.execute(
        "SELECT name FROM sqlite_master WHERE type = 'trigger'"
    ).fetchall()
    for (name,) in triggers:
        connection.execute(f'DROP TRIGGER "{name}"')
    table = next(
        name
        for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")
        if "body" in {row[1] for row in connection.execute(f'PRAGMA table_info("{name}")')}
    )
    connection.execute(f"UPDATE {table} SET body = replace(body, '1/2', '1/4')")
    connection.commit()
    connection.close()
    page = world.client().get("/audit")
    assert 'role="alert"' in page.text
    assert "The chain is whole" not in page.text


@pytest.mark.parametrize("damage", ["gone", "cut off", "another file"])
def test_a_damaged_anchor_is_told(world, damage):
    with Ledger(world.folder / "books.db") as ledger:
        ledger.set_anchor(world.folder / "books.anchor")
    make_release(world.folder, "ill")
    anchor = world.folder / "books.anchor"
    assert "up to entry" in world.client().get("/audit").text
    lines = anchor.read_text().splitlines(keepends=True)
    if damage == "gone":
        anchor.unlink()
    else:
        anchor.write_text("".join(lines[:2]) if damage == "cut off" else "else")
    page = world.client().get("/audit")
    assert page.status == 200
    assert 'role="alert"' in page.text
    assert "The chain is whole" not in page.text


def test_a_changed_release_is_found(world):
    make_release(world.folder, "ill")
    (world.folder / "releases" / "ill" / "report.html").write_text("<b>changed</b>")
    cells = rows_of(world.client().get("/audit"))["ill"]
    assert any("changed or cut: report.html" in cell for cell in cells)


def test_a_release_of_another_ledger_is_found(world, tmp_path):
    make_release(world.folder, "ill")
    (world.folder / "books.db").unlink()
    for rest in world.folder.glob("books.db-*"):
        rest.unlink()
    with Ledger.create(world.folder / "books.db") as ledger:
        ledger.add("visits", cap="9")
        ledger.add("more", cap="9")
        ledger.add("most", cap="9")
    page = world.client().get("/audit")
    assert "contradict each other" in page.text


def test_signatures_are_checked_with_the_keys_of_the_folder(world):
    make_release(world.folder, "ill")
    public = create_key(world.folder / "owner.key")
    sign_folder(world.folder / "releases" / "ill", SigningKey.read(world.folder / "owner.key"))
    client = world.client()
    page = client.get("/audit")
    assert rows_of(page)["ill"][-1] == "signed with owner.pub"
    assert public.fingerprint in page.text
    (world.folder / "owner.pub").unlink()
    assert rows_of(client.get("/audit"))["ill"][-1].startswith("not checked; names the key sha256:")


def test_a_grant_without_a_release_is_listed(world):
    with Ledger(world.folder / "books.db") as ledger:
        ledger.grant(
            "visits",
            epsilon="0.25",
            purpose="<b>cut short</b>",
            hides=AddRemoveRecord(),
            rng=secure(),
        )
    page = world.client().get("/audit")
    assert "&lt;b&gt;cut short&lt;/b&gt;" in page.text
    assert "0.25" in page.text


def test_without_a_ledger_there_is_nothing_to_audit(world):
    (world.folder / "books.db").unlink()
    assert "There is no ledger yet" in world.client().get("/audit").text


@pytest.mark.parametrize("content", [b"", b"no key", b"-----BEGIN PRIVATE KEY-----"])
def test_a_file_that_is_no_key_is_named(world, content):
    (world.folder / "odd.pub").write_bytes(content)
    page = world.client().get("/audit")
    assert page.status == 200
    assert "odd.pub" in page.text
