"""A ledger on a server: who may do what, what tampering shows, and connections that are lost."""

import os
import socket
import warnings
from dataclasses import replace
from fractions import Fraction

import psycopg
import pytest

from dpublish.errors import (
    InvalidParameter,
    LedgerExposed,
    LedgerTampered,
    LedgerUnavailable,
    LedgerUncertain,
)
from dpublish.ledger.chain import DESCRIBED_FORMAT
from dpublish.ledger.ledger import Ledger
from dpublish.ledger.opening import open_store
from dpublish.ledger.postgres_store import _FUNCTIONS, _TRIGGERS, PostgresStore
from dpublish.privacy.neighbors import AddRemoveRecord
from dpublish.randomness import secure
from dpublish.storage import postgres
from dpublish.storage.address import read_address
from ledger.ledger_backends import servers_only
from ledger.ledger_forgery import make_honest, read, tamper, verify, write
from postgres_proxy import AFTER, BEFORE, LATE, proxied

# Many tests grant as the owner, where others are writers, too; one of them is about that.
pytestmark = [
    servers_only,
    pytest.mark.filterwarnings("ignore:dpublish_owner, as whom you are connected"),
]

WRITER, READER, STRANGER = "team_writer", "team_reader", "team_stranger"


def grant(ledger, epsilon="0.1", **changes):
    asked = {"purpose": "ages", "hides": AddRemoveRecord(), "rng": secure()} | changes
    return ledger.grant("census", epsilon=epsilon, **asked)


def sql(path, *statements, user=None):
    """Run statements as the owner, or as another role; each is committed at once."""
    address = read_address(path)
    options = {"options": f"-csearch_path={address.schema}"} | ({"user": user} if user else {})
    with psycopg.connect(address.uri, autocommit=True, **options) as connection:
        for statement in statements:
            connection.execute(statement)


def as_role(path, role):
    """Return the address at which a role uses the ledger."""
    scheme, rest = path.split("//")
    return f"{scheme}//{role}@{rest.partition('@')[2]}"


def through(proxy, path):
    """Return the address of the same ledger behind a proxy."""
    address = read_address(path)
    head, _, database = address.uri.rpartition("/")
    return f"{head.rpartition(':')[0]}:{proxy.port}/{database}#{address.schema}"


@pytest.fixture(scope="module")
def roles(request):
    server = request.getfixturevalue("postgres_server")
    for role in (WRITER, READER, STRANGER):
        server.execute(f"CREATE ROLE {role} LOGIN")


@pytest.fixture
def books(path, roles):
    """A ledger that a team uses in three roles."""
    with Ledger.create(path, writers=[WRITER], readers=[READER]) as ledger:
        ledger.add("census", cap="1")
    with Ledger(as_role(path, WRITER)) as ledger:
        grant(ledger, fingerprint="f")
    return path


# Roles


def test_a_writer_grants_and_publishes(books):
    with Ledger(as_role(books, WRITER)) as ledger:
        budget = grant(ledger, fingerprint="g")
        ledger.publish(budget.grant, "id", "hash")
        assert ledger.verify().is_intact
        assert ledger.status("census").spent == Fraction(2, 10)


@pytest.mark.parametrize(
    "act",
    [
        lambda ledger, folder: ledger.add("more", cap="9"),
        lambda ledger, folder: ledger.change_cap("census", "9", reason="more"),
        lambda ledger, folder: ledger.set_anchor(folder / "anchor"),
        lambda ledger, folder: ledger.move_to(folder / "mine.db"),
    ],
)
def test_caps_anchors_and_moves_are_the_owners(books, tmp_path, act):
    before = read(books)
    with Ledger(as_role(books, WRITER)) as ledger, pytest.raises(LedgerUnavailable, match="owner"):
        act(ledger, tmp_path)
    assert read(books) == before
    assert not (tmp_path / "mine.db").exists()


FORBIDDEN = [
    "UPDATE entries SET body = ''",
    "DELETE FROM entries",
    "TRUNCATE entries",
    "TRUNCATE entries, head, fingerprints",
    "UPDATE head SET entries = 1",
    "INSERT INTO head VALUES (1, 0, '')",
    "DELETE FROM head",
    "UPDATE fingerprints SET fingerprint = ''",
    "DELETE FROM fingerprints",
    "ALTER TABLE entries DISABLE TRIGGER ALL",
    "ALTER TABLE entries ADD COLUMN more text",
    "DROP TABLE entries",
    "DROP TRIGGER entry_stays ON entries",
    "CREATE TRIGGER more BEFORE INSERT ON entries FOR EACH ROW EXECUTE FUNCTION refuse_change()",
    "CREATE RULE more AS ON INSERT TO entries DO INSTEAD NOTHING",
    "CREATE OR REPLACE FUNCTION refuse_change() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN END'",
    "CREATE TABLE more (x int)",
    "CREATE FUNCTION more() RETURNS int LANGUAGE sql AS 'SELECT 1'",
    "COMMENT ON TABLE entries IS 'mine'",
    "SET session_replication_role = replica",
    "CREATE TEMP TABLE own (number bigint, hash text);"
    "CREATE TRIGGER t AFTER INSERT ON own FOR EACH ROW EXECUTE FUNCTION head_moves()",
]


@pytest.mark.parametrize("statement", FORBIDDEN)
def test_a_writer_can_change_nothing_by_hand(books, statement):
    before = read(books)
    with pytest.raises(psycopg.Error):
        sql(books, statement, user=WRITER)
    assert read(books) == before
    assert verify(books).is_intact


@pytest.mark.parametrize("statement", FORBIDDEN[:9])
def test_not_even_the_owner_gets_past_the_triggers(books, statement):
    with pytest.raises(psycopg.errors.RestrictViolation, match="append-only"):
        sql(books, statement)
    assert verify(books).is_intact


def test_an_entry_that_does_not_follow_the_head_is_refused(books):
    row = "SELECT {}, time, kind, dataset, body, {}, 'x' FROM entries WHERE number = 3"
    for number, previous in ((4, "'x'"), (5, "hash"), (3, "previous")):
        with pytest.raises(psycopg.errors.IntegrityError):
            sql(books, "INSERT INTO entries " + row.format(number, previous), user=WRITER)
    with pytest.raises(psycopg.errors.RestrictViolation):
        sql(books, "INSERT INTO fingerprints VALUES (2, 'f', 's')", user=WRITER)
    assert verify(books).is_intact


def test_a_reader_shows_and_verifies_but_grants_nothing(books):
    with Ledger(as_role(books, READER)) as ledger:
        assert ledger.verify().is_intact
        assert ledger.status("census").grants[0].fingerprint == "f"
        with pytest.raises(LedgerUnavailable, match="readers show and verify"):
            grant(ledger)


@pytest.mark.parametrize("role", [WRITER, READER])
def test_only_the_owner_describes_a_dataset(books, role):
    before = read(books)
    refused = pytest.raises(LedgerUnavailable, match="the owner adds and describes datasets")
    with Ledger(as_role(books, role)) as ledger, refused:
        ledger.describe("census", publisher="Someone else")
    assert read(books) == before
    with Ledger(books) as ledger:
        ledger.describe("census", publisher="City", contact="a@b.org")
    with Ledger(as_role(books, role)) as ledger:
        assert ledger.status("census").publisher == "City"
        assert ledger.verify().is_intact
        assert ledger.history("census")[-1].what == "publisher: City; contact: a@b.org"


def test_an_older_program_is_told_to_upgrade_once_there_is_a_description(books, monkeypatch):
    with Ledger(books) as ledger:
        ledger.describe("census", publisher="City")
        ledger.describe("census", contact="a@b.org")
    older = replace(PostgresStore.kind, newest=DESCRIBED_FORMAT - 1)
    monkeypatch.setattr(PostgresStore, "kind", older)
    with pytest.raises(LedgerUnavailable, match="format 6, newer than 5: upgrade dpublish"):
        Ledger(books)


def test_a_stranger_sees_nothing(books):
    with pytest.raises(LedgerUnavailable, match="cannot be used like this by your role"):
        Ledger(as_role(books, STRANGER))


def test_roles_are_those_of_the_server(path, tmp_path):
    with pytest.raises(InvalidParameter, match="has no role 'ghost'; make it first"):
        Ledger.create(path, writers=["ghost"])
    with pytest.raises(LedgerUnavailable, match="does not exist"):
        Ledger(path)
    with pytest.raises(InvalidParameter, match="roles of a PostgreSQL server"):
        Ledger.create(tmp_path / "books.db", writers=["ghost"])


@pytest.mark.parametrize(
    ("statement", "told"),
    [
        (f"GRANT UPDATE ON entries TO {STRANGER}", f"{STRANGER} has the right UPDATE on table ent"),
        (f"GRANT UPDATE (body) ON entries TO {STRANGER}", f"{STRANGER} has the right UPDATE on ta"),
        ("GRANT TRUNCATE ON head TO PUBLIC", "PUBLIC has the right TRUNCATE on table head"),
        ("GRANT SELECT ON fingerprints TO PUBLIC", "PUBLIC has the right SELECT on table fingerp"),
        (f"GRANT EXECUTE ON FUNCTION head_moves() TO {STRANGER}", f"{STRANGER} may use a function"),
    ],
)
def test_rights_that_go_too_far_are_told_at_every_grant(books, statement, told):
    assert verify(books).warnings == ()
    sql(books, statement)
    assert verify(books).warnings[0].startswith(told)
    with Ledger(as_role(books, WRITER)) as ledger, pytest.warns(LedgerExposed, match=told):
        grant(ledger)


def test_whoever_may_act_as_the_owner_is_told(path, roles):
    address = read_address(path)
    group, member = "team_owner", "team_member"
    sql(
        path,
        f"CREATE ROLE {group} LOGIN",
        f"CREATE ROLE {member} LOGIN",
        f"GRANT CREATE ON DATABASE {address.uri.rpartition('/')[2]} TO {group}",
    )
    Ledger.create(as_role(path, group), writers=[WRITER]).close()
    assert verify(path).warnings == ()
    sql(path, f"GRANT {group} TO {member}")
    told = f"{member} may act as {group}, who owns the ledger: REVOKE {group} FROM {member}"
    assert verify(path).warnings == (told,)
    sql(path, f"REVOKE {group} FROM {member}")
    assert verify(path).warnings == ()


def test_an_owner_who_grants_where_others_are_writers_is_told(books):
    told = "dpublish_owner, as whom you are connected, owns the ledger or is a superuser"
    with Ledger(books) as ledger, pytest.warns(LedgerExposed, match=told):
        grant(ledger)
    assert verify(books).warnings == ()  # that is the owner's to do
    sql(books, f"REVOKE INSERT ON entries FROM {WRITER}")
    with Ledger(books) as ledger, warnings.catch_warnings():
        warnings.simplefilter("error")
        grant(ledger)


def test_whoever_may_write_every_table_of_the_server_is_told(books):
    told = (
        f"{STRANGER} may write every table of the server: REVOKE pg_write_all_data FROM {STRANGER}"
    )
    assert verify(books).warnings == ()
    sql(books, f"GRANT pg_write_all_data TO {STRANGER}")
    try:
        assert verify(books).warnings == (told,)
        with Ledger(as_role(books, WRITER)) as ledger, pytest.warns(LedgerExposed, match=told):
            grant(ledger)
    finally:
        sql(books, f"REVOKE pg_write_all_data FROM {STRANGER}")
    assert verify(books).warnings == ()


# Tampering with the schema

CHANGES = {
    "a disabled trigger": ("ALTER TABLE entries DISABLE TRIGGER entry_stays", "entry_stays"),
    "a trigger for some sessions": (
        "ALTER TABLE entries ENABLE TRIGGER entry_is_final",
        "entry_is_final",
    ),
    "a dropped trigger": ("DROP TRIGGER heads_stay ON head", "heads_stay"),
    "another trigger": (
        "CREATE TRIGGER more BEFORE INSERT ON entries FOR EACH ROW EXECUTE FUNCTION head_moves()",
        "more",
    ),
    "another function": (
        "CREATE FUNCTION more() RETURNS int LANGUAGE sql AS 'SELECT 1'",
        "more",
    ),
    "a function that does nothing": (
        "CREATE OR REPLACE FUNCTION refuse_change() RETURNS trigger LANGUAGE plpgsql "
        "SET search_path FROM CURRENT AS 'BEGIN RETURN NEW; END'",
        "refuse_change",
    ),
    "a function with another path": (
        "ALTER FUNCTION head_moves() SET search_path = public",
        "head_moves",
    ),
    "a function without its owner's rights": (
        "ALTER FUNCTION head_moves() SECURITY INVOKER",
        "head_moves",
    ),
    "a function that does not see the entry before": (
        "ALTER FUNCTION entry_follows_head() STABLE",
        "entry_follows_head",
    ),
    "a rule": ("CREATE RULE more AS ON DELETE TO entries DO INSTEAD NOTHING", "more"),
    "a policy": ("CREATE POLICY more ON entries USING (number < 3)", "more"),
    "hidden rows": ("ALTER TABLE entries ENABLE ROW LEVEL SECURITY", "entries"),
    "an heir": ("CREATE TABLE more () INHERITS (entries)", "more"),
    "a column": ("ALTER TABLE entries ADD COLUMN more text", "entries"),
    "a dropped column": ("ALTER TABLE entries DROP COLUMN previous", "entries"),
    "a default": ("ALTER TABLE entries ALTER COLUMN time SET DEFAULT ''", "entries"),
    "an optional column": ("ALTER TABLE entries ALTER COLUMN time DROP NOT NULL", "entries"),
    "no primary key": ("ALTER TABLE entries DROP CONSTRAINT entries_pkey", "entries_pkey"),
    "an index": ("CREATE INDEX more ON entries (dataset) WHERE number < 3", "more"),
    "a view": ("CREATE VIEW more AS SELECT 1 AS one", "more"),
    "a sequence": ("CREATE SEQUENCE more", "more"),
    "an operator": (
        "CREATE OPERATOR === (LEFTARG = text, RIGHTARG = text, FUNCTION = texteq)",
        "===",
    ),
    "another owner": (f"ALTER TABLE fingerprints OWNER TO {STRANGER}", "fingerprints"),
}


@pytest.mark.parametrize("case", CHANGES)
def test_a_changed_schema_is_found_and_nothing_is_granted(books, case):
    statement, name = CHANGES[case]
    sql(books, statement)
    assert any(f"{name!r} of the database" in problem for problem in verify(books).problems)
    with Ledger(books) as ledger, pytest.raises((LedgerTampered, LedgerUnavailable)):
        grant(ledger)


# What is made wherever a session, or a transaction of ours, looks names up.
STAND_INS = {
    "before a transaction": (
        "CREATE FUNCTION public.obj_description(oid, text) RETURNS text LANGUAGE plpgsql AS "
        "$$ BEGIN {act}; RETURN pg_catalog.obj_description($1, $2::name); END $$"
    ),
    "within the schema": (
        "CREATE FUNCTION quote_ident(name) RETURNS text LANGUAGE plpgsql AS "
        "$$ BEGIN {act}; RETURN pg_catalog.quote_ident($1::text); END $$"
    ),
}


@pytest.mark.parametrize("moment", STAND_INS)
def test_a_function_named_like_the_servers_own_is_not_run(postgres_server, backend, moment):
    act = "INSERT INTO public.ran VALUES (session_user)"
    with postgres_server.database() as name:
        path = postgres_server.uri(name)
        Ledger.create(path).close()
        sql(path, "CREATE TABLE public.ran (who text)", "GRANT ALL ON public.ran TO PUBLIC")
        sql(path, STAND_INS[moment].format(act=act))
        with Ledger(path) as ledger:
            assert ledger.verify().is_intact is (moment == "before a transaction")
        assert postgres_server.execute("SELECT * FROM ran", database=name) == []


def test_no_default_of_a_role_makes_an_intact_ledger_look_changed(books):
    sql(books, f"ALTER ROLE {READER} SET quote_all_identifiers = on")
    try:
        assert verify(as_role(books, READER)).is_intact
    finally:
        sql(books, f"ALTER ROLE {READER} RESET quote_all_identifiers")


def test_every_trigger_and_function_counts(path):
    make_honest(path)
    for name, trigger in _TRIGGERS.items():
        sql(path, f"ALTER TABLE {trigger.table} DISABLE TRIGGER {name}")
        assert [name in problem for problem in verify(path).problems] == [True]
        sql(path, f"ALTER TABLE {trigger.table} ENABLE ALWAYS TRIGGER {name}")
    for name in _FUNCTIONS:
        sql(path, f"ALTER FUNCTION {name}() RENAME TO other")
        assert any(name in problem for problem in verify(path).problems)
        sql(path, f"ALTER FUNCTION other() RENAME TO {name}")
    assert verify(path).is_intact


def test_an_open_ledger_notices_that_it_was_set_back(books):
    with Ledger(books) as ledger:
        grant(ledger)
        write(books, read(books)[:-1])
        with pytest.raises(LedgerTampered, match="entries that were there are gone"):
            grant(ledger)
        sql(books, f'DROP SCHEMA "{read_address(books).schema}" CASCADE')
        Ledger.create(books).close()
        with pytest.raises(LedgerTampered, match="entries that were there are gone"):
            ledger.add("census", cap="1")


def test_an_index_that_leaves_an_entry_out_is_found_and_all_rows_are_read(books):
    with Ledger(books) as ledger:
        grant(ledger)
    entries = read(books)
    switch = "UPDATE pg_index SET indisready = {} WHERE indexrelid = 'entries_pkey'::regclass"
    tamper(
        books,
        "CREATE TEMPORARY TABLE kept AS SELECT * FROM entries WHERE number = 4",
        "DELETE FROM entries WHERE number = 4",
        switch.format("false"),
        "INSERT INTO entries SELECT * FROM kept",
        switch.format("true"),
    )
    found = verify(books)
    assert found.problems == ("the index of 'entries' leaves rows out, or has others",)
    assert (found.entries, found.head) == (4, entries[-1].hash)
    sql(books, "REINDEX INDEX entries_pkey")
    assert verify(books).is_intact


def test_the_catalog_is_read_once_within_a_transaction_and_again_in_the_next(books):
    store = open_store(books, 5)
    asked, read_catalog = [], store.catalog_rows
    store.catalog_rows = lambda *query: asked.append(query) or read_catalog(*query)
    with store.reading():
        assert store.changed_parts() == store.changed_parts() == set()
        assert len(asked) == 1
    sql(books, "ALTER TABLE entries DISABLE TRIGGER entry_stays")
    with store.reading():
        assert store.changed_parts() == {"entry_stays"}
    store.close()
    assert len(asked) == 2


# Lost connections


def entries_of(path):
    return [entry.kind for entry in read(path)]


@pytest.mark.parametrize("moment", [BEFORE, AFTER, LATE])
def test_a_grant_whose_answer_is_lost_is_debited_once_or_not_at_all(
    postgres_server, books, moment, tmp_path
):
    with Ledger(books) as ledger:
        ledger.set_anchor(tmp_path / "anchor")
    with proxied(postgres_server.port) as proxy, Ledger(through(proxy, books)) as ledger:
        grant(ledger)
        proxy.cut_at = moment
        if moment == BEFORE:
            with pytest.raises(LedgerUnavailable, match=r"was not changed.* repeat the command"):
                grant(ledger)
        else:
            budget = grant(ledger)
            assert ledger.grant_status(budget.grant).epsilon == budget.epsilon
        grants = 2 if moment == BEFORE else 3
        assert ledger.status("census").spent == Fraction(grants, 10)
        grant(ledger)
        assert ledger.status("census").spent == Fraction(grants + 1, 10)
        assert ledger.verify().is_intact


@pytest.mark.parametrize("moment", [BEFORE, AFTER, LATE])
def test_a_creation_whose_answer_is_lost_is_found_and_keeps_its_anchor(
    postgres_server, path, moment, tmp_path
):
    anchor = tmp_path / "anchor"
    with proxied(postgres_server.port) as proxy:
        proxy.cut_at = moment
        if moment == BEFORE:
            with pytest.raises(LedgerUnavailable, match=r"was not changed.* repeat the command"):
                Ledger.create(through(proxy, path), anchor=anchor)
            assert not anchor.exists()
        with Ledger.create(through(proxy, path), anchor=anchor) as ledger:
            ledger.add("census", cap="1")
            grant(ledger)
    assert verify(path).is_intact


def test_a_creation_that_cannot_be_looked_up_keeps_its_anchor(
    postgres_server, path, monkeypatch, tmp_path
):
    monkeypatch.setattr(postgres, "_CREATE_SECONDS", 0.3)
    anchor = tmp_path / "anchor"
    with proxied(postgres_server.port) as proxy:
        proxy.cut_at = AFTER
        with pytest.raises(LedgerUncertain, match="may stand or not"):
            make_and_stay_away(proxy, path, anchor)
    with Ledger(path) as ledger:
        assert ledger.anchor == anchor
        ledger.add("census", cap="1")
    assert verify(path).is_intact


def make_and_stay_away(proxy, path, anchor):
    is_cut = proxy._is_cut

    def cut(*arguments):
        proxy.stays_away = True
        return is_cut(*arguments)

    proxy._is_cut = cut
    Ledger.create(through(proxy, path), anchor=anchor)


def test_a_creation_that_is_interrupted_while_it_commits_keeps_its_anchor(
    path, monkeypatch, tmp_path
):
    def commit(kind, address, connection, warnings):
        connection.execute("COMMIT")
        raise KeyboardInterrupt

    monkeypatch.setattr(postgres.SchemaKind, "commit", commit)
    with pytest.raises(LedgerUncertain, match="it may stand; `dpublish ledger show`"):
        Ledger.create(path, anchor=tmp_path / "anchor")
    assert (tmp_path / "anchor").exists()


@pytest.mark.parametrize("moment", [BEFORE, AFTER])
def test_a_writer_finds_out_whether_its_grant_stands(postgres_server, books, moment):
    with (
        proxied(postgres_server.port) as proxy,
        Ledger(as_role(through(proxy, books), WRITER)) as ledger,
    ):
        proxy.cut_at = moment
        if moment == BEFORE:
            with pytest.raises(LedgerUnavailable, match="was not changed"):
                grant(ledger)
        else:
            grant(ledger)
        assert ledger.status("census").spent == Fraction(1 if moment == BEFORE else 2, 10)


@pytest.mark.parametrize("moment", [BEFORE, AFTER])
def test_a_publication_whose_answer_is_lost_is_entered_once_or_not_at_all(
    postgres_server, books, moment
):
    with proxied(postgres_server.port) as proxy, Ledger(through(proxy, books)) as ledger:
        budget = grant(ledger)
        proxy.cut_at = moment
        if moment == BEFORE:
            with pytest.raises(LedgerUnavailable, match="was not changed"):
                ledger.publish(budget.grant, "id", "hash")
            ledger.publish(budget.grant, "id", "hash")
        else:
            ledger.publish(budget.grant, "id", "hash")
        assert ledger.grant_status(budget.grant).release_id == "id"
        assert entries_of(books).count("publish") == 1


def test_a_grant_that_cannot_be_looked_up_hands_out_nothing_and_says_how_to_find_out(
    postgres_server, books
):
    with (
        proxied(postgres_server.port) as proxy,
        Ledger(through(proxy, books), wait_seconds=0.3) as ledger,
    ):
        proxy.cut_at, proxy.stays_away = AFTER, True
        with pytest.raises(LedgerUnavailable, match=r"may stand or not, .* `dpublish ledger show`"):
            grant(ledger)
        with pytest.raises(LedgerUnavailable, match="cannot be reached"):
            grant(ledger)
        proxy.stays_away = False
        assert ledger.status("census").spent == Fraction(2, 10)  # debited, and never handed out


@pytest.mark.parametrize("moment", [BEFORE, AFTER])
def test_a_lost_answer_to_what_wrote_nothing_is_no_obstacle(postgres_server, books, moment):
    with proxied(postgres_server.port) as proxy, Ledger(through(proxy, books)) as ledger:
        first = grant(ledger, purpose="start 1", once=True)
        proxy.cut_at = moment
        again = grant(ledger, purpose="start 1", once=True)  # looked up, and not debited again
        assert proxy.cut_at is None
        assert again.grant == first.grant
        assert ledger.status("census").spent == Fraction(2, 10)


def test_a_twin_that_tries_again_without_looking_debits_twice(postgres_server, books):
    with proxied(postgres_server.port) as proxy, Ledger(through(proxy, books)) as ledger:
        ledger._store._stands = lambda: False
        proxy.cut_at = AFTER
        with pytest.raises(LedgerUnavailable, match="was not changed"):
            grant(ledger)
        grant(ledger)
        assert ledger.status("census").spent == Fraction(3, 10)


def test_a_restart_of_the_server_is_not_noticed_between_two_grants(postgres_server, books):
    with Ledger(books) as ledger:
        for _ in range(2):
            grant(ledger)
            postgres_server.restart()
        grant(ledger)
        assert ledger.status("census").spent == Fraction(4, 10)
        assert ledger.verify().is_intact


def test_a_server_that_is_gone_is_told(postgres_server, books):
    with socket.create_server(("127.0.0.1", 0)) as silent:
        free = silent.getsockname()[1]
    address = read_address(books)
    gone = address.uri.replace(f":{postgres_server.port}/", f":{free}/")
    with pytest.raises(LedgerUnavailable, match="cannot be reached"):
        Ledger(gone)


def test_no_message_shows_the_options_of_the_connection(books):
    address = read_address(books)
    with Ledger(f"{address.uri}?passfile=/home/ada/.secrets#{address.schema}") as ledger:
        assert repr(ledger) == f"Ledger({address.shown!r})"
        ledger.close()
        with pytest.raises(LedgerUnavailable) as caught:
            ledger.status("census")
    assert "secrets" not in str(caught.value)


def test_a_fork_does_not_disturb_the_parents_grants(books):
    with Ledger(books) as ledger:
        child = os.fork()
        if child == 0:
            code = 1
            try:
                grant(ledger)
            except LedgerUnavailable:
                code = 0
            finally:
                os._exit(code)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        grant(ledger)
        assert ledger.status("census").spent == Fraction(2, 10)
