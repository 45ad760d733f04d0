"""A ledger that a team shares: one schema of a PostgreSQL database that is only ever appended to.

Two machines cannot overspend together.  A grant takes the ledger's advisory lock before it reads
what is left, so the second one reads what the first has committed.  Whoever does not take the
lock (another program, an edited one) still cannot put two entries in one position: the number is
the primary key, and the trigger `entry_follows_head` takes only the entry that names the hash of
the last one.  Of two that were computed from the same head one is refused, and its transaction
with it; the other states totals that `verify` adds up again.

The role of those who grant may insert entries and fingerprints and read.  It may update, delete
or truncate nothing: the head is moved by a trigger that runs with the owner's rights, and only
onto an entry that is there.  Datasets, caps, anchors and moves are entered by the owner alone.
A ledger that was moved takes no entry any more, whoever writes it.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

from dpublish.errors import (
    InvalidParameter,
    LedgerTampered,
    LedgerUnavailable,
    LedgerUncertain,
)
from dpublish.ledger.chain import (
    FORMAT,
    NEWEST,
    ORIGIN,
    Continued,
    Entry,
    Moved,
    format_of,
)
from dpublish.ledger.store import INSERT_ENTRY, INSERT_FINGERPRINT, TABLES, Copied, LedgerStore
from dpublish.storage.address import Address
from dpublish.storage.postgres import PostgresDatabase, SchemaKind, load_driver

if TYPE_CHECKING:
    import psycopg

ROW, BEFORE, INSERT, DELETE, UPDATE, TRUNCATE = 1, 2, 4, 8, 16, 32  # as PostgreSQL keeps them

_EVENTS = {INSERT: "INSERT", DELETE: "DELETE", UPDATE: "UPDATE", TRUNCATE: "TRUNCATE"}
_REFUSE = "RAISE EXCEPTION 'append-only' USING ERRCODE = 'restrict_violation'"


class _Trigger(NamedTuple):
    """When a function runs: on a table, at an event, before or after it, by row or not."""

    table: str
    event: int
    function: str
    is_before: bool = True

    @property
    def bits(self) -> int:
        """The moment as PostgreSQL keeps it."""
        row = 0 if self.event == TRUNCATE else ROW
        return row | (BEFORE if self.is_before else 0) | self.event

    def statements(self, name: str) -> tuple[str, str]:
        """Write what makes the trigger, and lets it run in every session."""
        moment = "BEFORE" if self.is_before else "AFTER"
        each = "STATEMENT" if self.event == TRUNCATE else "ROW"
        return (
            f"CREATE TRIGGER {name} {moment} {_EVENTS[self.event]} ON {self.table} "
            f"FOR EACH {each} EXECUTE FUNCTION {self.function}()",
            f"ALTER TABLE {self.table} ENABLE ALWAYS TRIGGER {name}",
        )


_COLUMNS = {
    "entries": {
        "number": "bigint",
        **dict.fromkeys(("time", "kind", "dataset", "body", "previous", "hash"), "text"),
    },
    "head": {"one": "bigint", "entries": "bigint", "hash": "text"},
    "fingerprints": {"entry": "bigint", "fingerprint": "text", "seal": "text"},
}
_CONSTRAINTS = {
    "entries_pkey": ("entries", "PRIMARY KEY (number)"),
    "head_pkey": ("head", "PRIMARY KEY (one)"),
    "head_one_check": ("head", "CHECK ((one = 1))"),
    "fingerprints_pkey": ("fingerprints", "PRIMARY KEY (entry)"),
}
_FUNCTIONS = {
    "refuse_change": f"BEGIN {_REFUSE}; END",
    "entry_follows_head": f"""BEGIN
    IF NOT EXISTS (SELECT 1 FROM head WHERE NEW.number = entries + 1 AND NEW.previous = hash) THEN
        {_REFUSE};
    END IF;
    IF NEW.kind <> '{Continued.kind}' AND EXISTS (SELECT 1 FROM entries
            WHERE number = NEW.number - 1 AND kind = '{Moved.kind}') THEN
        RAISE EXCEPTION 'the ledger was moved' USING ERRCODE = 'restrict_violation';
    END IF;
    IF NEW.kind NOT IN ('grant', 'publish') AND NOT EXISTS (
            SELECT 1 FROM pg_catalog.pg_class WHERE oid = TG_RELID AND
            pg_catalog.pg_has_role(current_user, relowner, 'USAGE'::pg_catalog.text)) THEN
        RAISE EXCEPTION 'owner only' USING ERRCODE = 'insufficient_privilege';
    END IF;
    RETURN NEW;
END""",
    "head_moves": """BEGIN
    UPDATE head SET entries = NEW.number, hash = NEW.hash;
    RETURN NULL;
END""",
    "head_follows_entry": f"""BEGIN
    IF NEW.one <> 1 OR NEW.entries <> OLD.entries + 1 OR NOT EXISTS (
            SELECT 1 FROM entries WHERE number = NEW.entries AND hash = NEW.hash) THEN
        {_REFUSE};
    END IF;
    RETURN NEW;
END""",
    "fingerprint_is_new": f"""BEGIN
    IF NEW.entry IS DISTINCT FROM (SELECT entries FROM head) THEN
        {_REFUSE};
    END IF;
    RETURN NEW;
END""",
}
_WITH_OWNERS_RIGHTS = "head_moves"
_TRIGGERS = {
    "entry_follows_head": _Trigger("entries", INSERT, "entry_follows_head"),
    "head_moves": _Trigger("entries", INSERT, "head_moves", is_before=False),
    "entry_is_final": _Trigger("entries", UPDATE, "refuse_change"),
    "entry_stays": _Trigger("entries", DELETE, "refuse_change"),
    "entries_stay": _Trigger("entries", TRUNCATE, "refuse_change"),
    "head_is_one": _Trigger("head", INSERT, "refuse_change"),
    "head_follows_entry": _Trigger("head", UPDATE, "head_follows_entry"),
    "head_stays": _Trigger("head", DELETE, "refuse_change"),
    "heads_stay": _Trigger("head", TRUNCATE, "refuse_change"),
    "fingerprint_is_new": _Trigger("fingerprints", INSERT, "fingerprint_is_new"),
    "fingerprint_is_final": _Trigger("fingerprints", UPDATE, "refuse_change"),
    "fingerprint_stays": _Trigger("fingerprints", DELETE, "refuse_change"),
    "fingerprints_stay": _Trigger("fingerprints", TRUNCATE, "refuse_change"),
}


def _table_statements() -> Iterator[str]:
    for table, columns in _COLUMNS.items():
        listed = [f"{name} {kind} NOT NULL" for name, kind in columns.items()]
        listed += [
            f"CONSTRAINT {name} {definition}"
            for name, (of, definition) in _CONSTRAINTS.items()
            if of == table
        ]
        yield f"CREATE TABLE {table} ({', '.join(listed)})"
    yield f"INSERT INTO head VALUES (1, 0, '{ORIGIN}')"
    for name, source in _FUNCTIONS.items():
        rights = "SECURITY DEFINER " if name == _WITH_OWNERS_RIGHTS else ""
        yield (
            f"CREATE FUNCTION {name}() RETURNS trigger LANGUAGE plpgsql {rights}"
            f"SET search_path = {{schema}}, pg_temp AS $${source}$$"
        )
        # A trigger runs without this right, and no one shall use the function for another one.
        yield f"REVOKE ALL ON FUNCTION {name}() FROM PUBLIC"
    for name, trigger in _TRIGGERS.items():
        yield from trigger.statements(name)


# The catalog is read as it is kept, not as some version of the server would write it out.
_PARTS = """
WITH space AS (SELECT oid, nspowner, nspname FROM pg_namespace WHERE nspname = ?),
    relations AS (SELECT c.* FROM pg_class c JOIN space ON relnamespace = space.oid)
SELECT 'relation', relname::text, concat_ws(' ', relkind, relpersistence, relrowsecurity,
        relforcerowsecurity, relispartition, relowner = (SELECT nspowner FROM space))
    FROM relations
UNION ALL
SELECT 'column', relname::text, concat_ws(' ', attnum, attname, format_type(atttypid, atttypmod),
        attnotnull, atthasdef, attidentity = '', attgenerated = '', attcollation IN (0, 100))
    FROM relations JOIN pg_attribute ON attrelid = relations.oid
    WHERE attnum > 0 AND relkind <> 'i'
UNION ALL
SELECT 'constraint', conname::text,
        concat_ws(' ', relname, convalidated, pg_get_constraintdef(pg_constraint.oid))
    FROM relations JOIN pg_constraint ON conrelid = relations.oid WHERE contype <> 'n'
UNION ALL
SELECT 'index', relname::text, concat_ws(' ', indrelid IN (SELECT oid FROM relations), indisunique,
        indisprimary, indimmediate, indisvalid, indisready, indislive, indkey,
        indpred IS NULL, indexprs IS NULL)
    FROM relations JOIN pg_index ON indexrelid = relations.oid
UNION ALL
SELECT 'trigger', tgname::text, concat_ws(' ', relname, tgtype, tgenabled, proname,
        pronamespace = relnamespace, tgisinternal, tgqual IS NULL, tgnargs, tgattr = '')
    FROM relations JOIN pg_trigger ON tgrelid = relations.oid JOIN pg_proc ON tgfoid = pg_proc.oid
UNION ALL
SELECT 'function', proname::text, concat_ws(' ', lanname, prosecdef, provolatile, pronargs,
        prorettype::regtype, proowner = nspowner,
        proconfig = ARRAY['search_path=' || quote_ident(nspname) || ', pg_temp'], prosrc)
    FROM space JOIN pg_proc ON pronamespace = space.oid JOIN pg_language AS l ON l.oid = prolang
UNION ALL
SELECT 'rule', rulename::text, relname FROM relations JOIN pg_rewrite ON ev_class = relations.oid
UNION ALL
SELECT 'policy', polname::text, relname FROM relations JOIN pg_policy ON polrelid = relations.oid
UNION ALL
SELECT 'heir', relname::text, '' FROM relations
    JOIN pg_inherits ON relations.oid IN (inhrelid, inhparent)
UNION ALL
SELECT 'operator', oprname::text, '' FROM pg_operator JOIN space ON oprnamespace = space.oid
"""


def _expected_parts() -> Iterator[tuple[str, str, str]]:
    for table, columns in _COLUMNS.items():
        yield "relation", table, "r p f f f t"
        for number, (name, kind) in enumerate(columns.items(), 1):
            yield "column", table, f"{number} {name} {kind} t f t t t"
    for name, (table, definition) in _CONSTRAINTS.items():
        yield "constraint", name, f"{table} t {definition}"
        if definition.startswith("PRIMARY KEY"):
            yield "relation", name, "i p f f f t"
            yield "index", name, "t t t t t t t 1 t t"
    for name, source in _FUNCTIONS.items():
        as_owner = "t" if name == _WITH_OWNERS_RIGHTS else "f"
        yield "function", name, f"plpgsql {as_owner} v 0 trigger t t {source}"
    for name, trigger in _TRIGGERS.items():
        yield "trigger", name, f"{trigger.table} {trigger.bits} A {trigger.function} t f t 0 t"


# What others than the owner may do to the tables, beyond what granting and reading need.
_RIGHTS = """
SELECT coalesce(rolname, 'PUBLIC'), privilege_type, what FROM (
    SELECT 'TABLE ' || relname AS what, relowner AS owner, relacl AS rights FROM pg_class
        WHERE relnamespace = (SELECT oid FROM pg_namespace WHERE nspname = ?) AND relkind = 'r'
    UNION ALL
    SELECT 'TABLE ' || relname, relowner, attacl FROM pg_attribute JOIN pg_class ON attrelid =
        pg_class.oid WHERE relnamespace = (SELECT oid FROM pg_namespace WHERE nspname = ?)
    UNION ALL
    SELECT 'SCHEMA', nspowner, nspacl FROM pg_namespace WHERE nspname = ?
    UNION ALL
    SELECT 'FUNCTION ' || proname, proowner, coalesce(proacl, acldefault('f', proowner))
        FROM pg_proc WHERE prosecdef
        AND pronamespace = (SELECT oid FROM pg_namespace WHERE nspname = ?)
) AS listed CROSS JOIN aclexplode(rights) LEFT JOIN pg_roles ON pg_roles.oid = grantee
WHERE grantee <> owner AND (grantee = 0
    OR privilege_type IN ('UPDATE', 'DELETE', 'TRUNCATE', 'TRIGGER', 'CREATE', 'EXECUTE'))
UNION ALL
SELECT rolname, 'MEMBER', nspowner::regrole::text FROM pg_namespace JOIN pg_roles
    ON pg_roles.oid <> nspowner AND pg_has_role(pg_roles.oid, nspowner, 'MEMBER')
    WHERE nspname = ? AND rolcanlogin AND NOT rolsuper
UNION ALL
SELECT current_user::text, 'OWNER', '' FROM pg_namespace
    WHERE nspname = ? AND current_setting('transaction_read_only') = 'off'
        AND pg_has_role(current_user, nspowner, 'USAGE') AND EXISTS (
        SELECT 1 FROM pg_class CROSS JOIN aclexplode(relacl) WHERE relnamespace = pg_namespace.oid
            AND relname = 'entries' AND privilege_type = 'INSERT' AND grantee <> relowner)
UNION ALL
SELECT rolname, 'ALL', '' FROM pg_roles WHERE NOT rolsuper AND rolname <> 'pg_write_all_data'
    AND to_regrole('pg_write_all_data') IS NOT NULL
    AND pg_has_role(oid, to_regrole('pg_write_all_data'), 'USAGE')
ORDER BY 3, 1, 2
"""
_COMMENT = """SELECT pg_catalog.obj_description(n.oid, 'pg_namespace'::pg_catalog.name)
FROM pg_catalog.pg_namespace AS n
WHERE n.nspname OPERATOR(pg_catalog.=) ?::pg_catalog.name"""
_SCANS = ("enable_indexscan", "enable_indexonlyscan", "enable_bitmapscan")

_LEDGER = SchemaKind(
    noun="the ledger",
    content="a ledger",
    maker="dpublish ledger create",
    mark="dpublish ledger, format",
    format=FORMAT,
    newest=NEWEST,
    tables=tuple(_table_statements()),
    error=LedgerUnavailable,
    uncertain=LedgerUncertain,
    tampered=LedgerTampered,
    advice={
        "42501": (
            "cannot be used like this by your role: writers may grant and publish, readers show "
            "and verify, and the owner adds and describes datasets and changes caps and anchors"
        ),
        "53100": "cannot be written: the server's disk is full, so this entry was not made",
        "XX001": "is damaged; restore a copy and verify it against your receipts",
        "XX002": "is damaged; restore a copy and verify it against your receipts",
    },
    look="`dpublish ledger show` shows what stands",
)


class PostgresStore(LedgerStore, PostgresDatabase):
    """An open ledger on a server; may be shared by threads, but not carried over a fork."""

    kind: ClassVar[SchemaKind] = _LEDGER
    entries_table = "entries"
    body_contains = "pg_catalog.strpos(body, ?::pg_catalog.text) > 0"

    _parts: set[str] | None = None  # what this transaction has found changed

    @staticmethod
    def create(
        address: Address, first: Entry, writers: Sequence[str], readers: Sequence[str]
    ) -> None:
        """Make a new schema that holds its `first` entry; let roles write and read it."""

        def fill(connection: "psycopg.Connection[Any]") -> None:
            _insert_all(connection, [(first, None)])
            _grant_rights(connection, address, writers, readers)

        def stands(connection: "psycopg.Connection[Any]") -> bool:
            query = "SELECT 1 FROM entries WHERE number = 1 AND hash = %s"
            try:  # the hash has a salt, so that no other ledger begins with it
                return connection.execute(query, (first.hash,)).fetchone() is not None
            except load_driver().errors.UndefinedTable:
                return False

        _LEDGER.create(address, fill, stands)

    @staticmethod
    @contextmanager
    def drafting(
        address: Address, writers: Sequence[str], readers: Sequence[str]
    ) -> Iterator["PostgresDraft"]:
        """Make a new schema, to be filled; nothing of it is there unless the block ends well."""
        with _LEDGER.explained(address), _LEDGER.creating(address) as connection:
            _grant_rights(connection, address, writers, readers)
            yield PostgresDraft(connection, address)

    def raise_format(self, to: int) -> None:
        """Let programs that do not know of this format refuse the ledger; never lower it."""
        (comment,) = self.first(_COMMENT, self.address.schema)
        version = int(str(comment).rpartition(" ")[2])
        if version < to:
            self.change(_mark(self.address, to))

    def changed_parts(self) -> set[str]:
        """Name the parts of the schema that are not those of a ledger.

        Within one transaction the catalog is read once.
        """
        if self._parts is None:
            found = Counter(self.catalog_rows(_PARTS, self.address.schema))
            expected = Counter(_expected_parts())
            changed = (found - expected) + (expected - found)
            self._parts = {str(name) for _, name, *_ in changed}
        return self._parts

    def damage(self) -> list[str]:
        """Compare indexes with their tables; from here on the tables' own rows are read."""
        found = []
        for table in sorted(TABLES):
            counts = []
            for switched in ("on", "off"):
                self._switch(_SCANS, switched)
                self._switch(("enable_seqscan",), "off" if switched == "on" else "on")
                counts.append(self.first(f"SELECT count(*) FROM {table}"))
            if counts[0] != counts[1]:
                found.append(f"the index of {table!r} leaves rows out, or has others")
        return found

    def exposed(self) -> list[str]:
        """List which roles could write the ledger past its guards, by rights that were granted."""
        name = self.address.schema
        names = [name] * _RIGHTS.count("?")
        return [_tell_right(name, *row) for row in self.catalog_rows(_RIGHTS, *names)]

    def _switch(self, names: Iterable[str], setting: str) -> None:
        for name in names:
            self.change(f"SET LOCAL {name} = {setting}")

    def _begun(self) -> None:
        super()._begun()
        self._parts = None

    def _stands(self) -> bool:
        """Look for the entry that was being committed: its hash, which has a salt, is its own."""
        if self._written is None:
            return True
        found = next(self.entries("number = ?", self._written.number), None)
        return found == self._written


class PostgresDraft:
    """A ledger that is being made on a server, within one transaction."""

    def __init__(self, connection: "psycopg.Connection[Any]", address: Address) -> None:
        self._connection = connection
        self._address = address

    def fill(self, entries: Iterable[Copied]) -> None:
        """Write the entries of a ledger that goes on here."""
        copied = tuple(entries)
        _insert_all(self._connection, copied)
        version = format_of(entry.kind for entry, _ in copied)
        self._connection.execute(_mark(self._address, version))


def _tell_right(schema: str, role: str, right: str, what: str) -> str:
    """Report a right that goes too far, and how to take it back."""
    if right == "ALL":
        return f"{role} may write every table of the server: REVOKE pg_write_all_data FROM {role}"
    if right == "MEMBER":
        return f"{role} may act as {what}, who owns the ledger: REVOKE {what} FROM {role}"
    if right == "OWNER":
        return (
            f"{role}, as whom you are connected, owns the ledger or is a superuser, whom no guard "
            "stops: use a writer's role, and keep this one for caps"
        )
    if what.startswith("FUNCTION "):
        on = f'FUNCTION "{schema}".{what.removeprefix("FUNCTION ")}()'
        return f"{role} may use a function of the ledger: REVOKE {right} ON {on} FROM {role}"
    on = f'SCHEMA "{schema}"' if what == "SCHEMA" else what.replace("TABLE ", f'"{schema}".')
    told = f"{role} has the right {right} on {what.lower()} of the ledger"
    return f"{told}: REVOKE {right} ON {on} FROM {role}"


def _mark(address: Address, version: int) -> str:
    return f"COMMENT ON SCHEMA \"{address.schema}\" IS '{_LEDGER.mark} {version}'"


def _insert_all(connection: "psycopg.Connection[Any]", entries: Iterable[Copied]) -> None:
    for entry, fingerprint in entries:
        connection.execute(INSERT_ENTRY.replace("?", "%s"), tuple(vars(entry).values()))
        if fingerprint is not None:
            row = (entry.number, *fingerprint)
            connection.execute(INSERT_FINGERPRINT.replace("?", "%s"), row)


def _grant_rights(
    connection: "psycopg.Connection[Any]",
    address: Address,
    writers: Sequence[str],
    readers: Sequence[str],
) -> None:
    from psycopg import sql

    names = {"schema": sql.Identifier(address.schema)}
    for role in dict.fromkeys((*writers, *readers)):
        rights = ["GRANT USAGE ON SCHEMA {schema} TO {role}"]
        rights.append("GRANT SELECT ON entries, head, fingerprints TO {role}")
        if role in writers:
            rights.append("GRANT INSERT ON entries, fingerprints TO {role}")
        try:
            for right in rights:
                connection.execute(sql.SQL(right).format(**names, role=sql.Identifier(role)))
        except load_driver().errors.UndefinedObject:
            raise InvalidParameter(
                f"the server has no role {role!r}; make it first: CREATE ROLE"
            ) from None
