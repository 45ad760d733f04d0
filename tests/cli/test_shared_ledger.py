"""Commands with a ledger on a server: where a file's path is taken, an address is taken."""

import click
import pytest

from dpublish.cli.group import complete_ledgers
from dpublish.data.schema_file import dumps_toml
from dpublish.ledger.ledger import Ledger
from stream_world import SCHEMA, write_snapshots


@pytest.fixture
def address(run, postgres_server, postgres_database):
    """A ledger on a server, made by the command."""
    done = run("ledger", "create", postgres_database)
    assert done.code == 0, done.err
    assert run("ledger", "add", postgres_database, "people", "--cap", "2").code == 0
    return postgres_database


def test_a_release_is_paid_for_shown_verified_and_recorded(run, release, address):
    assert release(ledger=address).code == 0
    shown = run("ledger", "show", address, "--json").json()
    assert (shown[0]["left"], shown[0]["grants"][0]["state"]) == ("1", "published")
    verified = run("ledger", "verify", address, "--release", "out")
    assert verified.code == 0, verified.err
    assert "the chain is whole" in verified.out
    assert "is entered already" in run("ledger", "record", address, "out").out
    spent = release("more", ledger=address, epsilon="1.5")
    assert spent.code == 2
    assert "has 1 left of its cap of 2" in spent.err


def test_the_whole_of_a_ledger_is_moved_to_a_server_and_back(run, release, workdir, address):
    assert release().code == 0
    moved = f"{address}#moved"
    done = run("ledger", "copy", "books.db", moved)
    assert done.code == 0, done.err
    assert f"books.db is closed; from now on use {moved}" in done.out
    assert run("ledger", "verify", moved, "--release", "out").code == 0
    refused = release("second", epsilon="0.5")
    assert refused.code == 3
    assert "is closed: by entry 5 it was moved to" in refused.err
    assert "it was moved to" in run("ledger", "show", "books.db").err
    assert release("second", ledger=moved, epsilon="0.5").code == 0
    back = run("ledger", "copy", moved, "back.db")
    assert back.code == 0, back.err
    assert run("ledger", "verify", "back.db", "--release", "out", "--release", "second").code == 0
    assert release("third", ledger="back.db", epsilon="0.5").code == 0
    with Ledger("back.db") as ledger:
        assert ledger.status("people").left == 0


def test_a_stream_goes_on_with_the_address_that_it_was_started_with(run, tmp_path, address):
    (tmp_path / "rides.toml").write_text(dumps_toml(SCHEMA))
    write_snapshots(tmp_path / "in", 3)
    paid = ("--epsilon", "1", "--ledger", address, "--dataset", "people", "-o", "out")
    method = ("--method", "per-snapshot", "--columns", "zone,hour", "--window", "4")
    words = ("stream", "start", "rides.stream", *method, "--schema", "rides.toml", *paid)
    for _ in range(2):
        done = run(*words)
        assert done.code == 0, done.err
    for number in (1, 2):
        done = run("stream", "next", "rides.stream", f"in/t{number}.parquet")
        assert done.code == 0, done.err
    assert run("stream", "status", "rides.stream", "--json").json()["ledger"] == address
    moved = f"{address}#moved"
    assert run("ledger", "copy", address, moved).code == 0
    done = run("stream", "next", "rides.stream", "in/t3.parquet", "--ledger", moved)
    assert done.code == 0, done.err
    with Ledger(moved) as ledger:
        assert ledger.status("people").spent == 1
        assert ledger.status("people").grants[0].state == "published"


def test_an_interactive_run_is_paid_for_at_an_address(run, workdir, address):
    start = ("--data", "people.csv", "--schema", "people.toml", "--epsilon", "1")
    paid = ("--max-positives", "2", "--ledger", address, "--dataset", "people")
    done = run("svt", "start", "wards", *start, *paid, "--threshold", "100")
    assert done.code == 0, done.err
    assert run("svt", "ask", "wards", "", "--threshold", "-1000").code == 0
    assert run("svt", "status", "wards").code == 0
    with Ledger(address) as ledger:
        assert ledger.status("people").grants[0].state == "published"


@pytest.mark.parametrize(
    "words",
    [
        ("ledger", "show", "postgresql://ada:geheim@127.0.0.1/db"),
        ("ledger", "create", "postgresql://127.0.0.1/db?password=geheim"),
        ("ledger", "copy", "books.db", "postgres://ada:geheim@127.0.0.1/db"),
    ],
)
def test_a_password_on_the_command_line_is_refused_and_not_repeated(run, workdir, words):
    done = run(*words)
    assert done.code == 1
    assert "PGPASSFILE" in done.err
    assert "geheim" not in done.out + done.err


def test_a_release_with_a_wrong_address_debits_nothing_and_leaves_nothing(release, workdir):
    done = release(ledger="postgresql://127.0.0.1:1/db")
    assert done.code == 3
    assert "the ledger postgresql://127.0.0.1:1/db cannot be reached" in done.err
    assert not (workdir / "out").exists()


def test_the_shell_completes_files_and_the_beginning_of_an_address():
    def offered(text):
        items = complete_ledgers(None, click.Option(["--ledger"]), text)
        return [(item.value, item.type) for item in items]

    assert offered("bo") == [("bo", "file")]
    assert offered("post") == [("postgresql://", "plain"), ("post", "file")]
    assert offered("postgresql://db") == []
