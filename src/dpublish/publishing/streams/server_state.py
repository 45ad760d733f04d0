"""The state of a stream on a PostgreSQL server, so that another machine can go on with it.

It is a schema of its own with the tables of a state file, and one row more: the lease (`lease`).
Every change is one transaction that first locks that row and looks whether its number, the
fence, is still the one that this operator was given.  It leaves a random word there, by which it
is recognized if the answer to its commit is lost on the way.

Whoever may read the schema can read the secrets of the stream.  So it is its owner's alone; but
the server's administrators, its log of statements, backups and standbys hold them, too.
"""

import os
import secrets
from collections.abc import Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Self

from dpublish.errors import InputError
from dpublish.publishing.state_file import METADATA, PUT, metadata_rows
from dpublish.publishing.streams.lease import (
    LEASE_SECONDS,
    ON_THE_PRIMARY,
    Claim,
    Heartbeat,
    Process,
)
from dpublish.publishing.streams.state import StreamStore
from dpublish.storage.address import Address
from dpublish.storage.postgres import (
    PostgresDatabase,
    SchemaKind,
    begin_changing,
    connect,
    find_schema,
    load_driver,
)

if TYPE_CHECKING:
    import psycopg

_TABLES = (
    METADATA,
    "CREATE TABLE arrays (name text PRIMARY KEY, type text, shape text, data bytea)",
    """CREATE TABLE steps (number bigint PRIMARY KEY, time text NOT NULL UNIQUE,
        line bytea NOT NULL, stop bigint NOT NULL)""",
    "CREATE TABLE outbox (number bigint PRIMARY KEY, content bytea NOT NULL)",
    # What a step needs on the disk must not hang on how well its outcome can be compressed.
    "ALTER TABLE arrays ALTER data SET STORAGE EXTERNAL",
    "ALTER TABLE outbox ALTER content SET STORAGE EXTERNAL",
    """CREATE TABLE lease (one boolean PRIMARY KEY DEFAULT true CHECK (one),
        fence bigint NOT NULL DEFAULT 0, token text, host text, pid bigint, machine text,
        since timestamptz, expires timestamptz, change text)""",
    "INSERT INTO lease DEFAULT VALUES",
    # What default privileges of the database give to others is taken back.
    """DO $$ DECLARE grantee text; BEGIN FOR grantee IN
        SELECT CASE WHEN acl.grantee = 0 THEN 'PUBLIC' ELSE acl.grantee::regrole::text END
        FROM pg_namespace, aclexplode(nspacl) AS acl
        WHERE nspname = current_schema() AND acl.grantee <> nspowner
        LOOP EXECUTE 'REVOKE ALL ON SCHEMA {schema} FROM ' || grantee; END LOOP; END $$""",
)
_STATE = SchemaKind(
    noun="the state",
    content="the state of a stream",
    maker="dpublish stream start",
    mark="dpublish stream",
    format=1,
    tables=_TABLES,
    error=InputError,
    advice={"42P01": "is gone or damaged: a table of it is not there"},
    look="`dpublish stream status` shows what stands, and the same command may be repeated",
    is_secret=True,
)
_SECONDS = "make_interval(secs => ?)"
_LOOK = (
    "SELECT token, host, pid, machine, to_char(since AT TIME ZONE 'UTC', {form}), "
    "to_char(expires AT TIME ZONE 'UTC', {form}), expires > clock_timestamp() FROM lease"
).format(form="""'YYYY-MM-DD"T"HH24:MI:SS"+00:00"'""")
_TAKE = (
    "UPDATE lease SET fence = fence + 1, token = ?, host = ?, pid = ?, machine = ?, change = ?, "
    f"since = clock_timestamp(), expires = clock_timestamp() + {_SECONDS} RETURNING fence"
)
_KEEP = f"UPDATE lease SET change = ?, expires = clock_timestamp() + {_SECONDS}"
_LEAVE = "UPDATE lease SET token = NULL, expires = NULL WHERE fence = %s AND token = %s"


class StreamSchema(StreamStore, PostgresDatabase):
    """An open state on a server."""

    kind = _STATE

    _fence = -1  # no lease has this one
    _token = ""
    _change = ""
    _seconds = LEASE_SECONDS
    _heartbeat: Heartbeat | None = None

    @classmethod
    def exists(cls, address: Address) -> bool:
        """Return whether there is a schema at the address, of whatever kind."""
        with cls.kind.explained(address):
            connection = connect(address, 30)
            try:
                return find_schema(address, connection) is not None
            finally:
                connection.close()

    @classmethod
    def create(cls, address: Address, metadata: Mapping[str, Any]) -> None:
        """Make a new state, whole or not at all; no one has its lease yet."""

        def fill(connection: "psycopg.Connection[Any]") -> None:
            for row in metadata_rows(metadata):
                connection.execute(PUT.replace("?", "%s"), row)

        cls.kind.create(address, fill)

    @classmethod
    def take(cls, address: Address, claim: Claim) -> Self:
        """Open a state and take its lease, or say who has it; closing it gives the lease back."""
        state = cls(address)
        try:
            state._seconds = claim.lease_seconds
            claim.until_free(lambda: state._try(take_over=claim.take_over))
            state._heartbeat = Heartbeat(address, state._fence, state._token, state._seconds)
        except BaseException:
            state.close()
            raise
        return state

    def close(self) -> None:
        """Give the lease back and end the connection; harmless if that was done before."""
        if self._heartbeat is not None:
            self._heartbeat.stop()
        if not self._is_closed and self._fence >= 0 and self._process == os.getpid():
            self._leave()
        super().close()

    def require_held(self) -> None:
        """Refuse to go on if another operator has taken the lease since.

        Within a change this locks the lease until the change is done, and renews it.
        """
        if not self._is_in_use:
            if not self._is_ours("SELECT fence, token FROM lease"):
                raise self.moved_on()
            return
        if not self._is_ours("SELECT fence, token FROM lease FOR UPDATE"):
            raise self.moved_on()
        self._change = secrets.token_hex(8)
        self.change(_KEEP, self._change, self._seconds)

    def settled(self, ledger: str) -> None:
        """Note the ledger; who has the stream is noted in the lease."""
        self.put(ledger=ledger)

    def holder(self) -> dict[str, Any] | None:
        """Return who has the lease and until when; None if it is free or has run out."""
        with self.checked():
            token, host, pid, _, since, until, is_live = self.first(_LOOK)
            if token is None or not is_live:
                return None
            return {"pid": pid, "host": host, "since": since, "until": until}

    def discard(self) -> None:
        """Drop the schema of a stream that was not started after all."""
        with self.changing():
            self.change(f'DROP SCHEMA "{self.address.schema}" CASCADE')

    def _try(self, *, take_over: bool) -> str | None:
        """Take the lease if it is free, has run out, or is to be taken over; else say who has it.

        The lease of a process that ran on this machine and is gone is free, too: a killed
        command may be repeated at once.
        """
        with self.writing(), self.checked():
            token, host, pid, machine, since, until, is_live = self.first(f"{_LOOK} FOR UPDATE")
            is_free = token is None or not is_live or take_over
            if not is_free and not Process(host, pid, machine).is_gone:
                return (
                    f"another operator is at work on {self.shown}: process {pid} on {host}, since "
                    f"{since}; its lease ends at {until} unless it is renewed: wait for it with "
                    "--wait SECONDS, or take the stream from it with --take-over"
                )
            own = Process.current()
            self._token, self._change = secrets.token_hex(16), secrets.token_hex(8)
            values = (self._token, own.host, own.pid, own.machine, self._change, self._seconds)
            (self._fence,) = self.first(_TAKE, *values)
        return None

    def _is_ours(self, statement: str) -> bool:
        with self.checked():
            return tuple(self.first(statement)) == (self._fence, self._token)

    def _stands(self) -> bool | None:
        """Look for the word that the change has left; only the holder of the lease leaves one."""
        if not self._is_ours("SELECT fence, token FROM lease"):
            return None  # another operator has left one since
        return bool(self.first("SELECT change FROM lease") == (self._change,))

    def _leave(self) -> None:
        """Give the lease back if the server can be asked at once; else it runs out by itself."""
        with suppress(load_driver().Error), self._lock:
            self._roll_back()
            if not self._connection.closed:
                self._connection.execute(begin_changing(self.address, 1))
                self._connection.execute(ON_THE_PRIMARY)
                self._connection.execute(_LEAVE, (self._fence, self._token))
                self._connection.execute("COMMIT")
