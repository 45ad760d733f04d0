"""What a stream hides is written into the grant, and agrees with the account that pays."""

import pytest

from dpublish.core.registry import make_method
from dpublish.data.sources import open_table
from dpublish.errors import InvalidParameter, LedgerTampered
from dpublish.ledger.ledger import Ledger
from dpublish.methods.streams.per_snapshot import PerSnapshot
from dpublish.privacy.neighbors import AddRemoveUnit, UserInWindow, to_dict
from dpublish.publishing import publish
from dpublish.publishing.streams.operator import StreamOperator
from dpublish.publishing.streams.state import StreamFile
from stream_world import METHOD, SCHEMA, THRESHOLD, arguments, make_ledger, rows

FINITE = PerSnapshot(columns=("zone", "hour"), horizon=4)


@pytest.fixture
def workspace(tmp_path):
    make_ledger(tmp_path)
    with Ledger(tmp_path / "books.db") as ledger:
        ledger.add("people", levels=("0.1", "1"))
    return tmp_path


def start(workspace, method=METHOD, name="a", **changes):
    given = arguments(workspace, output=workspace / f"{name}-out", epsilon="0.1") | changes
    return StreamOperator.start(workspace / f"{name}.stream", method, SCHEMA, **given)


def books(workspace):
    with Ledger(workspace / "books.db") as ledger:
        return ledger.status("rides"), ledger.status("people"), ledger.verify()


@pytest.mark.parametrize(
    ("method", "hides"),
    [(METHOD, UserInWindow("user", 4)), (THRESHOLD, AddRemoveUnit("user"))],
)
def test_the_grant_says_what_the_stream_hides(workspace, method, hides):
    with start(workspace, method, epsilon="2") as operator:
        operator.next(rows(1), "t1")
    status, _, found = books(workspace)
    assert status.hides == status.grants[0].hides == hides
    assert found.is_intact


def test_endless_and_finite_streams_have_accounts_of_their_own(workspace):
    start(workspace).close()
    for other in (FINITE, PerSnapshot(columns=("zone", "hour"), window=5)):
        with pytest.raises(InvalidParameter, match="epsilons do not add up"):
            start(workspace, other, "b")
        assert not (workspace / "b.stream").exists()
    start(workspace, name="c").close()
    status, _, _ = books(workspace)
    assert [grant.window for grant in status.grants] == [4, 4]


def test_a_stream_and_a_table_that_hide_the_same_unit_share_an_account(workspace):
    with Ledger(workspace / "books.db") as ledger:
        ranking = make_method("topk", {"column": "zone", "count": "1"})
        publish(
            ranking,
            open_table(rows(1), SCHEMA),
            workspace / "ranking",
            ledger=ledger,
            dataset="rides",
            epsilon="0.5",
        )
    with pytest.raises(InvalidParameter, match=r"one person \('user'\), and this one would"):
        start(workspace)
    start(workspace, FINITE).close()
    status, _, found = books(workspace)
    assert len(status.grants) == 2
    assert found.is_intact


@pytest.mark.parametrize("vouched", [False, True])
def test_people_with_levels_never_pay_for_an_endless_stream(workspace, vouched):
    """At 0.1 per window of one step, 40 steps would cost a person of level 0.1 as much as 4."""
    endless = PerSnapshot(columns=("zone", "hour"), window=1)
    with pytest.raises(InvalidParameter, match="give it a horizon"):
        start(workspace, endless, dataset="people", all_have_levels=vouched)
    assert not (workspace / "a.stream").exists()
    assert not (workspace / "a-out").exists()
    assert books(workspace)[1].grants == ()


def test_people_with_levels_pay_for_a_finite_stream_if_all_of_them_have_one(workspace):
    with pytest.raises(InvalidParameter, match="all_have_levels=True"):
        start(workspace, FINITE, dataset="people")
    assert books(workspace)[1].grants == ()
    with start(workspace, FINITE, dataset="people", all_have_levels=True) as operator:
        for step in range(1, 5):
            operator.next(rows(step), f"t{step}")
    _, people, found = books(workspace)
    assert [level.left for level in people.levels] == [0, people.levels[1].level - people.spent]
    assert people.grants[0].all_have_levels
    assert found.is_intact


def test_a_repeated_start_gives_the_same_word(workspace, monkeypatch):
    def interrupted(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(StreamFile, "begin", interrupted)
    with pytest.raises(KeyboardInterrupt):
        start(workspace, FINITE, dataset="people", all_have_levels=True)
    monkeypatch.undo()
    with pytest.raises(InvalidParameter, match="its all_have_levels differs"):
        start(workspace, FINITE, dataset="people")
    start(workspace, FINITE, dataset="people", all_have_levels=True).close()
    assert len(books(workspace)[1].grants) == 1


def test_a_stream_that_says_it_hides_something_else_than_was_paid_for_does_not_go_on(workspace):
    start(workspace).close()
    file = StreamFile(workspace / "a.stream")
    file.put(receipt=file.metadata("receipt") | {"neighbors": to_dict(AddRemoveUnit("user"))})
    file.close()
    with pytest.raises(LedgerTampered, match="did not debit what this stream costs"):
        StreamOperator.open(workspace / "a.stream")
