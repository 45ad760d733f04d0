"""A team against one ledger on a server, in short; the campaign has the long version."""

import random  # noqa: TID251 - chooses moments, not noise
import time

from campaign.team import attacked, audit
from ledger.ledger_backends import servers_only

pytestmark = servers_only


def test_whatever_was_handed_out_before_kills_of_writers_is_debited_once(path, tmp_path):
    rng = random.Random(1)
    with attacked(path, tmp_path, rng, writers=4) as team:
        for _ in range(20):
            time.sleep(rng.uniform(0.02, 0.2))
            team.kill(rng.choice((1, 4)))
        team.wait_for(20)
    assert team.books.problems == []
    assert 20 <= team.books.handed_out <= team.books.debited <= team.books.handed_out + 84


def test_whatever_was_handed_out_before_crashes_of_the_server_is_debited_once(
    path, tmp_path, postgres_server
):
    with attacked(path, tmp_path, random.Random(2), writers=4) as team:
        for _ in range(3):
            team.wait_for(10)
            postgres_server.restart("immediate")
        team.wait_for(10)
    assert team.books.problems == []
    assert 40 <= team.books.handed_out <= team.books.debited


def test_the_audit_notices_what_was_handed_out_and_not_debited(path, tmp_path):
    with attacked(path, tmp_path, random.Random(3), writers=1) as team:
        team.wait_for(3)
    notes = tmp_path / "handed-out"
    entry, known, _ = notes.read_text().splitlines()[-1].split(" ", 2)
    with notes.open("a") as file:
        file.write(f"{entry} {known} a second budget\n9999 {known} a lost debit\n")
    problems = " ".join(audit(path, notes).problems)
    for told in ("debited: a second budget", "debited: a lost debit", "entry was handed out twice"):
        assert told in problems
