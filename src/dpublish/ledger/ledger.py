"""A ledger remembers what was guaranteed: it grants budgets by debiting them first.

One file, or one schema on a server that a team shares, keeps for every dataset a cap on epsilon
and every grant made against it.  A grant is on the disk before its budget exists, so that nothing
which happens later, a crash, a kill, a second process, can spend what was not debited.  Entries
are never edited; `verify` shows whether someone did.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import replace
from fractions import Fraction
from hashlib import sha256
from pathlib import Path
from types import TracebackType

import msgspec

from dpublish.errors import (
    GrantPublished,
    InvalidParameter,
    LedgerExposed,
    LedgerTampered,
    LedgerUnavailable,
    LedgerUncertain,
    plain_refusals,
)
from dpublish.ledger import chain
from dpublish.ledger.account import Account, GrantStatus, LevelStatus, Status
from dpublish.ledger.anchor import Anchor, AnchorBehind, Trail
from dpublish.ledger.chain import (
    Clock,
    Entry,
    Head,
    Statement,
    require_new_name,
    require_statement,
    require_text,
    stamp,
)
from dpublish.ledger.debit import (
    LEVEL_DIGITS,
    debit,
    fix_notion,
    open_account,
    parse_amount,
    require_same_levels,
    require_secure,
    require_word,
    totals,
)
from dpublish.ledger.history import Event, history_of
from dpublish.ledger.opening import Draft, Location, create_store, drafting, open_store
from dpublish.ledger.store import (
    add_up,
    dataset_names,
    find_anchor,
    find_grant,
    find_grants,
    find_move,
    find_statement,
    hash_in,
    intact_head,
    is_continued,
    is_release_known,
    lost_anchors,
    note_continued,
    origin_of,
    require_account,
    tampered,
)
from dpublish.ledger.verify import Verification, tell_lost, tell_move, verify_store
from dpublish.privacy.budget import Budget, Grant
from dpublish.privacy.epsilon import EpsilonLike, format_epsilon, format_short, how_read
from dpublish.privacy.levels import LevelAmounts, largest, parse_amounts, parse_levels
from dpublish.privacy.neighbors import Neighbors, PersonalRecord
from dpublish.randomness import RandomSource
from dpublish.storage.address import is_address, shown_location, whole_location


class Ledger:
    """An open ledger, at a path or at an address such as `postgresql://db.example.org/books`.

    >>> import tempfile; from dpublish.randomness import secure
    >>> from dpublish.privacy.neighbors import AddRemoveRecord
    >>> with Ledger.create(tempfile.mkdtemp() + "/books.db") as ledger:
    ...     ledger.add("census", cap="1.0")
    ...     budget = ledger.grant(
    ...         "census", epsilon="0.3", purpose="ages", hides=AddRemoveRecord(), rng=secure()
    ...     )
    ...     ledger.status("census").left
    Fraction(7, 10)
    """

    @plain_refusals
    def __init__(
        self, path: Location, *, clock: Clock | None = None, wait_seconds: float = 30
    ) -> None:
        self._store = open_store(path, wait_seconds)
        self._clock = clock
        self._searched = 0  # entries among which an anchor was looked for
        self._anchor: Anchor | None = None

    @classmethod
    @plain_refusals
    def create(
        cls,
        path: Location,
        *,
        anchor: str | os.PathLike[str] | None = None,
        clock: Clock | None = None,
        wait_seconds: float = 30,
        writers: Sequence[str] = (),
        readers: Sequence[str] = (),
    ) -> Ledger:
        """Make a new ledger, and its `anchor` elsewhere; what is there is never replaced.

        With an anchor, every change is also written to that second file and checked against
        it, so that entries which were cut off the end are missed.  On a server, `writers` are
        roles that may grant and publish, and `readers` are roles that may show and verify.
        """
        body = chain.Created()
        if anchor is not None and _is_same_file(anchor, path):
            raise InvalidParameter("ledger and anchor must be different files")
        if anchor is not None:
            body = chain.Created(anchor=_whole_path(anchor))
        first = chain.seal(1, stamp(clock), "", body, chain.ORIGIN)
        if isinstance(body.anchor, str):
            Anchor(Path(body.anchor)).create(first.hash, first)
        try:
            create_store(path, first, writers=writers, readers=readers)
        except LedgerUncertain:  # a ledger that stands needs its anchor
            raise
        except BaseException:
            if isinstance(body.anchor, str):
                Path(body.anchor).unlink(missing_ok=True)
            raise
        return cls(path, clock=clock, wait_seconds=wait_seconds)

    def __enter__(self) -> Ledger:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"Ledger({self._store.shown!r})"

    def __deepcopy__(self, memo: object) -> Ledger:
        """Return the same ledger: whatever copies a value that holds it, the account is one."""
        return self

    def close(self) -> None:
        """Let go of the file, or of the connection."""
        self._store.close()

    @plain_refusals
    def add(
        self,
        dataset: str,
        cap: EpsilonLike | None = None,
        note: str = "",
        *,
        levels: Iterable[EpsilonLike] = (),
        publisher: str = "",
        contact: str = "",
    ) -> None:
        """Begin an account for `dataset`: all its releases together cost at most `cap` (2.0).

        With `levels`, they cost each person at most the level of their own number.  `publisher`
        and `contact` are as in `describe`.
        """
        require_text(dataset=dataset, note="none" if note == "" else note)
        stated = Statement(publisher, contact)
        require_statement(stated)
        account = open_account(cap, levels)
        body = chain.Added(
            **totals(account),
            note=note,
            publisher=publisher or msgspec.UNSET,
            contact=contact or msgspec.UNSET,
        )
        with self._changing():
            intact_head(self._store)
            require_new_name(dataset, dataset_names(self._store))
            self._append(dataset, body)

    def describe(
        self, dataset: str, *, publisher: str | None = None, contact: str | None = None
    ) -> None:
        """State who publishes `dataset`, and whom to ask: public words for certificates.

        What is None stays as it was; "" takes it back.  The ledger keeps what was stated before.
        """
        if publisher is None and contact is None:
            raise InvalidParameter("name the publisher, the contact, or both")
        require_statement(Statement(publisher or "", contact or ""))
        with self._changing():
            account = self._require_account(dataset)
            before = find_statement(self._store, dataset)
            body = chain.Described(
                **totals(account),
                publisher=before.publisher if publisher is None else publisher,
                contact=before.contact if contact is None else contact,
            )
            self._append(dataset, body)
            self._store.raise_format(chain.DESCRIBED_FORMAT)

    def set_anchor(self, path: str | os.PathLike[str], *, lost: bool = False) -> None:
        """Write every change from now on to an anchor at `path`, too, and check it there.

        A file that is there must be an anchor of this ledger, one that was moved for instance.
        `lost` says that the anchor so far is gone or was set back; while it can be read, the
        ledger must still have all that it knows.
        """
        location = _whole_path(path)
        with self._store.writing():
            head = self._open_head()
            before = self._find_anchor(head)
            if before is not None and str(before.path) == location:
                raise InvalidParameter(f"{before.name} is this ledger's anchor already")
            waived = before is not None and self._is_waived(before, lost)
            anchor = Anchor(Path(location))
            if os.path.lexists(location):
                self._check(anchor, head)
            else:
                anchor.create(origin_of(self._store), self._last_entry())
            entry = self._append("", chain.Anchored(anchor=location, lost=waived))
            anchor.prepare(entry)
        self._confirm(anchor, entry)

    def move_to(
        self, target: Location, *, writers: Sequence[str] = (), readers: Sequence[str] = ()
    ) -> None:
        """Close this ledger for good and go on, with all its entries, in a new one at `target`.

        Two ledgers that both grant would overspend together.  So this one is closed first, by an
        entry that is part of the chain, and the other one begins with it.  After a kill in
        between neither grants; the same call again makes the other one.  Once the other one is
        complete, this one remembers it: whoever repeats the call then has it looked for, and it
        is never made a second time.
        """
        move = _move_to(target)
        if problems := self.verify().problems:
            raise tampered(problems[0])
        with self._store.reading():
            known, is_done = find_move(self._store), is_continued(self._store)
        if known is not None and known[1].target != move.target:
            raise LedgerUnavailable(
                f"the ledger {self._store.shown} is closed: {tell_move(*known)}; name that one, "
                "written as it was then"
            )
        if is_done:
            self._require_continued_at(target)
            return
        try:
            confirm = self._make(target, None if known else move, writers, readers)
        except LedgerUnavailable as error:
            if known is not None and self._is_continued_at(target):
                self._note_continued()  # the call that closed this ledger had come that far
                return
            if known is not None or self._is_closed:
                error.add_note(f"{self._store.shown} is closed by now: repeat the command")
            raise
        confirm()

    def _make(
        self,
        target: Location,
        move: chain.Moved | None,
        writers: Sequence[str],
        readers: Sequence[str],
    ) -> Callable[[], None]:
        """Close this ledger, unless that was done, and make the other one, once."""
        with ExitStack() as drafted:
            draft = drafted.enter_context(drafting(target, writers=writers, readers=readers))
            if move is not None:
                self._close_for(move)
            with self._store.writing():  # no other call that repeats the move comes in between
                if is_continued(self._store):
                    raise LedgerUnavailable("another process has made that ledger meanwhile")
                confirm = self._continue_in(draft)
                drafted.close()  # from here on the other one grants
                note_continued(self._store)
        self._require_noted()
        return confirm

    def _close_for(self, move: chain.Moved) -> None:
        with self._changing():
            self._append("", move)
            self._store.raise_format(chain.MOVED_FORMAT)

    def _note_continued(self) -> None:
        with self._store.writing():
            note_continued(self._store)
        self._require_noted()

    def _require_noted(self) -> None:
        """Look whether the note stands: its commit leaves no entry by which it is recognized."""
        with self._store.reading():
            if not is_continued(self._store):
                raise LedgerUnavailable(
                    f"the ledger {self._store.shown} could not note that it goes on elsewhere"
                )

    @property
    def _is_closed(self) -> bool:
        with self._store.reading():
            return find_move(self._store) is not None

    def _continue_in(self, draft: Draft) -> Callable[[], None]:
        """Write all entries to a new ledger, and that it goes on there; tell the anchor, too."""
        head = intact_head(self._store)
        anchor = self._find_anchor(head)
        if anchor is not None:
            self._catch_up(anchor, head)
        entries, fingerprints = tuple(self._store.entries()), self._store.fingerprints()
        body = chain.Continued(source=self._store.shown)
        entry = chain.seal(head.entries + 1, stamp(self._clock), "", body, head.hash)
        if anchor is not None:
            anchor.prepare(entry)
        copied = [(each, fingerprints.get(each.number)) for each in (*entries, entry)]
        draft.fill(copied)
        return lambda: None if anchor is None else self._confirm(anchor, entry)

    def _is_continued_at(self, target: Location) -> bool:
        try:
            self._require_continued_at(target)
        except LedgerUnavailable:
            return False
        return True

    def _require_continued_at(self, target: Location) -> None:
        """Refuse a target at which there is no ledger that begins with all entries of this one."""
        with self._store.reading():
            entries = tuple(self._store.entries())
        problem = "another ledger is there"
        try:
            with closing(open_store(target, 30)) as other, other.reading():
                found = tuple(other.entries("number <= ?", len(entries) + 1))
            if found[:-1] == entries and found[-1].kind == chain.Continued.kind:
                return
        except LedgerUnavailable as error:
            problem = str(error).partition(";")[0]  # without the advice to make a new one
        raise LedgerUnavailable(
            f"the ledger {self._store.shown} was moved to {shown_location(target)}, but {problem}; "
            "if that one is gone, restore it from a backup: it is the ledger now, it has granted "
            "since, and it is not made again"
        )

    @property
    def anchor(self) -> Path | None:
        """Where the ledger has its anchor, if it has one."""
        with self._store.reading():
            return find_anchor(self._store)

    def anchor_warnings(self) -> tuple[str, ...]:
        """Compare with the anchor, and say what is not as it should be; nothing is refused."""
        with self._store.reading():
            head = intact_head(self._store)
            anchor = self._find_anchor(head)
            told = [tell_lost(number) for number in lost_anchors(self._store)]
            move = find_move(self._store)
            told += [] if move is None else [tell_move(*move)]
            try:
                if anchor is not None:
                    self._check(anchor, head, is_closed=move is not None)
            except (LedgerTampered, LedgerUnavailable) as problem:
                told.insert(0, f"{problem}; what is shown may leave out what was spent")
        return tuple(told)

    @plain_refusals
    def change_cap(self, dataset: str, cap: EpsilonLike, reason: str) -> None:
        """Raise or lower a cap; what is spent stays spent, and the reason stays on record."""
        require_text(reason=reason)
        limit = parse_amount(cap, "cap")
        with self._changing():
            account = self._require_account(dataset)
            if account.levels:
                raise InvalidParameter(
                    f"{dataset!r} has levels: people's own numbers are its caps, and stay"
                )
            if limit < account.spent:
                raise InvalidParameter(
                    f"cap ({format_short(limit)}) must be at least "
                    f"{format_short(account.spent)}, which {dataset!r} has spent already"
                )
            account.cap = limit
            self._append(dataset, chain.CapChanged(**totals(account), reason=reason))

    def grant(
        self,
        dataset: str,
        *,
        epsilon: EpsilonLike,
        purpose: str,
        hides: Neighbors,
        rng: RandomSource,
        fingerprint: str | None = None,
        all_have_levels: bool = False,
        once: bool = False,
    ) -> Budget:
        """Debit `epsilon` for good and hand out the budget that it pays for.

        `hides` is the change that the release hides: `table.neighbors`, or what the stream
        method says.  The first grant decides it for the dataset; epsilons of another change do
        not add up with it.  `rng` is the source from which the release will draw.  A
        `fingerprint` of the input is kept for the owner alone: no hash that a receipt shows is
        computed from it.  `all_have_levels` is the owner's word, needed where the dataset has
        levels, that no record of the table is below the first of them.

        `once` is for a start that may be repeated, by another process too, and whose `purpose`
        is its own: a grant of this dataset with the same purpose, epsilon and notion is handed
        out again instead of a second debit, and refused (`GrantPublished`) if something is
        published for it.  Looking for it and debiting are one transaction.

        Privacy:
            All releases from `dataset` whose budgets come from this ledger are together
            cap-differentially private for the one change that they hide: by sequential
            composition, adaptive choices included, their epsilons add up, and the sum is
            compared with the cap under the write lock and made durable before the budget
            exists.  Where they hide a user within a window, that is true of every window.  A
            refused grant costs nothing; an interrupted release stays paid.  With `once` the
            caller must know, as for `reopen`, that no row was read for the grant yet, or that
            all that was drawn from it is lost; of those who get it one publishes, since the
            ledger records one release a grant.  Assumes that the same people's rows are not
            released under another name or from another ledger, and that the file is not set
            back to an older copy (see `verify`).
        """
        amount = parse_amount(epsilon, "epsilon")
        if isinstance(hides, PersonalRecord):
            raise InvalidParameter("a personalized release is paid for by level: use grant_levels")
        return self._grant(
            dataset,
            amount,
            (),
            purpose=purpose,
            hides=hides,
            rng=rng,
            fingerprint=fingerprint,
            all_have_levels=all_have_levels,
            once=once,
            epsilon_read=how_read(epsilon),
        )

    def grant_levels(
        self,
        dataset: str,
        amounts: Mapping[Fraction, Fraction],
        *,
        purpose: str,
        hides: PersonalRecord,
        rng: RandomSource,
        fingerprint: str | None = None,
        epsilon_read: str = "",
    ) -> Budget:
        """Debit each level its own amount for good and hand out the budget that this pays for.

        `amounts` names every level of the dataset; 0 says that its records are not used.
        `hides` says what gives a record its level, and what is public about that
        (`preferences.neighbors`); the first such grant decides it for the dataset.
        `epsilon_read` says how the epsilon of the largest level was read, for the receipt.

        Privacy:
            What one person's record costs over all releases from `dataset` is at most their
            level: each release costs them at most what it debits there, and the sums are
            compared with the levels as `grant` compares one sum with the cap, all of them
            in one entry.  All of them hide the same change, and take levels from the same
            column by the same rule.  Assumes besides that the values there stay what they are
            from release to release (docs/proofs/personal_ledger.md).
        """
        pairs = parse_amounts(amounts)
        if not isinstance(hides, PersonalRecord) or (
            parse_levels(hides.levels) != tuple(level for level, _ in pairs)
        ):
            raise InvalidParameter("hides must be a PersonalRecord that has the same levels")
        for level, amount in pairs:
            if amount:
                parse_amount(amount, f"the amount at level {format_short(level)}", LEVEL_DIGITS)
        return self._grant(
            dataset,
            largest(pairs),
            pairs,
            purpose=purpose,
            hides=hides,
            rng=rng,
            fingerprint=fingerprint,
            epsilon_read=epsilon_read,
        )

    def publish(self, grant: Grant, release_id: str, release_hash: str) -> None:
        """Record that what `grant` paid for was published; once only."""
        require_text(release_id=release_id, release_hash=release_hash)
        with self._changing():
            account = self._require_account(grant.dataset)
            if self._require_grant(grant).release_id is not None:
                raise _is_published(grant)
            if is_release_known(self._store, release_id):
                raise InvalidParameter(f"a release with the id {release_id!r} is recorded already")
            body = chain.Published(
                **totals(account),
                grant=grant.entry,
                release_id=release_id,
                release_hash=release_hash,
            )
            self._append(grant.dataset, body)

    def datasets(self) -> tuple[str, ...]:
        """List the datasets in the order in which they were added."""
        with self._store.reading():
            return dataset_names(self._store)

    def entries(self) -> tuple[Entry, ...]:
        """Read every entry as it stands, without judging it."""
        with self._store.reading():
            return tuple(self._store.entries())

    @plain_refusals
    def status(self, dataset: str) -> Status:
        """Return how `dataset` stands: its cap, what is spent and left, and every grant."""
        with self._store.reading():
            self._require_account(dataset)
            account = add_up(self._store.entries("dataset = ?", dataset))
            fingerprints = self._store.fingerprints()
        grants = [
            replace(grant, fingerprint=fingerprints.get(number, (None,))[0])
            for number, grant in account.grants.items()
        ]
        levels = tuple(LevelStatus(level, spent) for level, spent in account.levels.items())
        return Status(
            dataset,
            account.cap,
            account.spent,
            tuple(grants),
            levels,
            account.hides,
            publisher=account.stated.publisher,
            contact=account.stated.contact,
        )

    def history(self, dataset: str) -> tuple[Event, ...]:
        """Return every entry about `dataset` in words, and what was left after it."""
        with self._store.reading():
            self._require_account(dataset)
            return history_of(self._store.entries("dataset = ?", dataset))

    def grant_status(self, grant: Grant) -> GrantStatus:
        """Look up one grant: what was debited, and the hash of what was published for it."""
        with self._store.reading():
            intact_head(self._store)
            return self._require_grant(grant)

    def reopen(self, grant: Grant) -> Budget:
        """Make the budget of a grant again, for a start that stopped before any row was read.

        Refused once something is published for the grant.

        Privacy:
            The grant was debited once.  The caller must know that no row was read for it yet, or
            that all that was drawn from it is lost.
        """
        return _reopened(grant, self.grant_status(grant))

    def verify(
        self,
        expected_head: str | None = None,
        anchors: Iterable[tuple[int, str]] = (),
        *,
        anchor_file: str | os.PathLike[str] | None = None,
    ) -> Verification:
        """Check every entry, every total and the file itself.

        A chain of hashes cannot show that someone rewrote it from end to end.  What was noted
        elsewhere can: `expected_head`, a head hash written down earlier (the ledger may have
        grown since), `anchors`, the entry numbers and hashes that receipts carry, and the
        ledger's anchor.  `anchor_file` names another path for it, maybe a copy.
        """
        named = None if anchor_file is None else Path(anchor_file).absolute()
        with self._store.reading():
            return verify_store(self._store, expected_head, anchors, named)

    def _grant(
        self,
        dataset: str,
        epsilon: Fraction,
        amounts: LevelAmounts,
        *,
        purpose: str,
        hides: Neighbors,
        rng: RandomSource,
        fingerprint: str | None,
        all_have_levels: bool = False,
        once: bool = False,
        epsilon_read: str = "",
    ) -> Budget:
        require_text(purpose=purpose, fingerprint="none" if fingerprint is None else fingerprint)
        if not isinstance(hides, Neighbors):
            raise InvalidParameter("hides must say what is hidden, such as AddRemoveRecord()")
        require_secure(rng)
        with self._changing():
            for text in self._store.exposed():
                warnings.warn(text, LedgerExposed, stacklevel=3)
            account = self._require_account(dataset)
            if once and (known := self._find_same(dataset, epsilon, purpose, hides)) is not None:
                return known
            require_same_levels(dataset, account, amounts)
            fix_notion(dataset, account, hides)
            require_word(dataset, account, by_level=bool(amounts), all_have_levels=all_have_levels)
            debit(dataset, account, epsilon, amounts)
            body = chain.Granted(
                **totals(account),
                epsilon=format_epsilon(epsilon),
                purpose=purpose,
                fingerprinted=fingerprint is not None,
                amounts=chain.write_levels(amounts),
                all_have_levels=all_have_levels,
            )
            entry = self._append(dataset, body, fingerprint)
        paid_by = Grant(dataset, entry.number, entry.hash, entry.time)
        levels = amounts or None
        return Budget.granted(
            epsilon,
            purpose,
            grant=paid_by,
            levels=levels,
            hides=hides,
            epsilon_read=epsilon_read,
        )

    def _find_same(
        self, dataset: str, epsilon: Fraction, purpose: str, hides: Neighbors
    ) -> Budget | None:
        """Find the grant that was asked for once, earlier or by another process."""
        for status in find_grants(self._store, dataset, purpose):
            if (status.epsilon, status.hides) == (epsilon, hides):
                sealed = hash_in(self._store, status.entry) or ""
                return _reopened(Grant(dataset, status.entry, sealed, status.time), status)
        return None

    @contextmanager
    def _changing(self) -> Iterator[None]:
        """Change the ledger, and tell its anchor before that is committed and after it."""
        with self._store.writing():
            head = self._open_head()
            anchor = self._find_anchor(head)
            if anchor is not None:
                self._catch_up(anchor, head)
            yield
            entry = self._last_entry()
            if anchor is not None and entry.number > head.entries:
                anchor.prepare(entry)
        if anchor is not None and entry.number > head.entries:
            self._confirm(anchor, entry)

    def _open_head(self) -> Head:
        """Read the head of a ledger that may be changed; refuse one that was moved."""
        head = intact_head(self._store)
        if (move := find_move(self._store)) is not None:
            raise LedgerUnavailable(
                f"the ledger {self._store.shown} is closed: {tell_move(*move)}; use that one"
            )
        return head

    def _find_anchor(self, head: Head) -> Anchor | None:
        if self._searched < head.entries:
            found = find_anchor(self._store, self._searched)
            self._anchor = self._anchor if found is None else Anchor(found)
            self._searched = head.entries
        return self._anchor

    def _check(self, anchor: Anchor, head: Head, *, is_closed: bool = False) -> Trail:
        return anchor.check(
            origin_of(self._store),
            head,
            lambda number: hash_in(self._store, number),
            is_closed=is_closed,
        )

    def _catch_up(self, anchor: Anchor, head: Head) -> None:
        """Check the ledger against its anchor; confirm an entry whose writer was interrupted."""
        try:
            if self._check(anchor, head).last != head:
                anchor.commit(self._last_entry())
        except LedgerUnavailable as error:
            raise LedgerUnavailable(
                f"{error}; the ledger is unchanged. Bring it back, or set another one: "
                "dpublish ledger anchor LEDGER FILE --lost"
            ) from None

    def _is_waived(self, before: Anchor, lost: bool) -> bool:
        """Check the anchor that is to be replaced; say whether that was impossible, but waived."""
        try:
            self._check(before, intact_head(self._store))
        except (LedgerUnavailable, AnchorBehind) as error:
            if lost:
                return True
            if "--lost" not in str(error):
                error.add_note("if it is lost for good, say --lost")
            raise
        return False

    @staticmethod
    def _confirm(anchor: Anchor, entry: Entry) -> None:
        try:
            anchor.commit(entry)
        except LedgerUnavailable as error:
            raise LedgerUnavailable(
                f"{error}; entry {entry.number} stands in the ledger, what it debited stays "
                "debited, and nothing was released for it"
            ) from None

    def _last_entry(self) -> Entry:
        entry = self._store.last_entry()
        if entry is None:
            raise tampered("its entries are gone")
        return entry

    def _append(self, dataset: str, body: chain.Body, fingerprint: str | None = None) -> Entry:
        head = intact_head(self._store)
        entry = chain.seal(head.entries + 1, stamp(self._clock), dataset, body, head.hash)
        if not chain.holds(entry, body):
            raise InvalidParameter("the entry could not be read back as it was given")
        self._store.append(entry, fingerprint)
        return entry

    def _require_account(self, dataset: str) -> Account:
        require_text(dataset=dataset)
        return require_account(self._store, dataset)

    def _require_grant(self, grant: Grant) -> GrantStatus:
        found = find_grant(self._store, grant)
        if found is None:
            raise InvalidParameter("the grant is not one of this ledger's")
        return found


def _reopened(grant: Grant, status: GrantStatus) -> Budget:
    if status.release_id is not None:
        raise _is_published(grant)
    return Budget.granted(
        status.epsilon,
        status.purpose,
        grant=Grant(grant.dataset, grant.entry, grant.entry_hash, status.time),
        levels=status.levels or None,
        hides=status.hides,
    )


def _is_published(grant: Grant) -> GrantPublished:
    return GrantPublished(f"what grant {grant.entry} paid for is published already")


def _move_to(target: Location) -> chain.Moved:
    """Write down where a ledger goes on, such that no other address is taken for that one."""
    text = whole_location(target)
    to = shown_location(text)
    require_text(target=to)
    return chain.Moved(to=to, target=sha256(text.encode("utf-8", "surrogateescape")).hexdigest())


def _is_same_file(anchor: str | os.PathLike[str], path: Location) -> bool:
    return not is_address(path) and Path(anchor).resolve() == Path(path).resolve()


def _whole_path(path: str | os.PathLike[str]) -> str:
    """Write a path so that it means the same wherever the process goes."""
    location = str(Path(path).absolute())
    require_text(anchor=location)
    return location
