"""A ledger remembers what was guaranteed: it grants budgets by debiting them first.

One file keeps, for every dataset, a cap on epsilon and every grant made against it.  A grant
is on the disk before its budget exists, so that nothing which happens later, a crash, a kill,
a second process, can spend what was not debited.  Entries are never edited; `verify` shows
whether someone did.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from types import TracebackType

from dpublish.errors import InvalidParameter, LedgerExposed, LedgerTampered, LedgerUnavailable
from dpublish.ledger import chain
from dpublish.ledger.account import Account, GrantStatus, LevelStatus, Status
from dpublish.ledger.anchor import Anchor, AnchorBehind, Trail
from dpublish.ledger.chain import Clock, Entry, Head, require_new_name, require_text, stamp
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
from dpublish.ledger.store import (
    LedgerStore,
    add_up,
    dataset_names,
    find_anchor,
    find_grant,
    hash_in,
    intact_head,
    is_release_known,
    lost_anchors,
    origin_of,
    require_account,
    tampered,
)
from dpublish.ledger.verify import Verification, tell_lost, verify_store
from dpublish.privacy.budget import Budget, Grant
from dpublish.privacy.epsilon import ExactNumber, format_epsilon, format_short
from dpublish.privacy.levels import LevelAmounts, largest, parse_amounts, parse_levels
from dpublish.privacy.neighbors import Neighbors, PersonalRecord
from dpublish.randomness import RandomSource
from dpublish.storage.files import others_may_write


class Ledger:
    """An open ledger file.

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

    def __init__(
        self, path: str | os.PathLike[str], *, clock: Clock | None = None, wait_seconds: float = 30
    ) -> None:
        self._store = LedgerStore(Path(path), wait_seconds)
        self._clock = clock
        self._searched = 0  # entries among which an anchor was looked for
        self._anchor: Anchor | None = None

    @classmethod
    def create(
        cls,
        path: str | os.PathLike[str],
        *,
        anchor: str | os.PathLike[str] | None = None,
        clock: Clock | None = None,
        wait_seconds: float = 30,
    ) -> Ledger:
        """Make a new ledger file, and its `anchor` elsewhere; what is there is never replaced.

        With an anchor, every change is also written to that second file and checked against
        it, so that entries which were cut off the end are missed.
        """
        body = chain.Created()
        if anchor is not None and Path(anchor).resolve() == Path(path).resolve():
            raise InvalidParameter("ledger and anchor must be different files")
        if anchor is not None:
            body = chain.Created(anchor=_whole_path(anchor))
        first = chain.seal(1, stamp(clock), "", body, chain.ORIGIN)
        if isinstance(body.anchor, str):
            Anchor(Path(body.anchor)).create(first.hash, first)
        try:
            LedgerStore.create(Path(path), first)
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
        return f"Ledger({str(self._store.path)!r})"

    def close(self) -> None:
        """Let go of the file."""
        self._store.close()

    def add(
        self,
        dataset: str,
        cap: ExactNumber | None = None,
        note: str = "",
        *,
        levels: Iterable[ExactNumber] = (),
    ) -> None:
        """Begin an account for `dataset`: all its releases together cost at most `cap` (2.0).

        With `levels`, they cost each person at most the level of their own number.
        """
        require_text(dataset=dataset, note="none" if note == "" else note)
        account = open_account(cap, levels)
        with self._changing():
            intact_head(self._store)
            require_new_name(dataset, dataset_names(self._store))
            self._append(dataset, chain.Added(**totals(account), note=note))

    def set_anchor(self, path: str | os.PathLike[str], *, lost: bool = False) -> None:
        """Write every change from now on to an anchor at `path`, too, and check it there.

        A file that is there must be an anchor of this ledger, one that was moved for instance.
        `lost` says that the anchor so far is gone or was set back; while it can be read, the
        ledger must still have all that it knows.
        """
        location = _whole_path(path)
        with self._store.writing():
            head = intact_head(self._store)
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
            try:
                if anchor is not None:
                    self._check(anchor, head)
            except (LedgerTampered, LedgerUnavailable) as problem:
                told.insert(0, f"{problem}; what is shown may leave out what was spent")
        return tuple(told)

    def change_cap(self, dataset: str, cap: ExactNumber, reason: str) -> None:
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
        epsilon: ExactNumber,
        purpose: str,
        hides: Neighbors,
        rng: RandomSource,
        fingerprint: str | None = None,
        all_have_levels: bool = False,
    ) -> Budget:
        """Debit `epsilon` for good and hand out the budget that it pays for.

        `hides` is the change that the release hides: `table.neighbors`, or what the stream
        method says.  The first grant decides it for the dataset; epsilons of another change do
        not add up with it.  `rng` is the source from which the release will draw.  A
        `fingerprint` of the input is kept for the owner alone: no hash that a receipt shows is
        computed from it.  `all_have_levels` is the owner's word, needed where the dataset has
        levels, that no record of the table is below the first of them.

        Privacy:
            All releases from `dataset` whose budgets come from this ledger are together
            cap-differentially private for the one change that they hide: by sequential
            composition, adaptive choices included, their epsilons add up, and the sum is
            compared with the cap under the write lock and made durable before the budget
            exists.  Where they hide a user within a window, that is true of every window.  A
            refused grant costs nothing; an interrupted release stays paid.  Assumes that the
            same people's rows are not released under another name or from another ledger, and
            that the file is not set back to an older copy (see `verify`).
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
    ) -> Budget:
        """Debit each level its own amount for good and hand out the budget that this pays for.

        `amounts` names every level of the dataset; 0 says that its records are not used.
        `hides` says what gives a record its level, and what is public about that
        (`preferences.neighbors`); the first such grant decides it for the dataset.

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
        )

    def publish(self, grant: Grant, release_id: str, release_hash: str) -> None:
        """Record that what `grant` paid for was published; once only."""
        require_text(release_id=release_id, release_hash=release_hash)
        with self._changing():
            account = self._require_account(grant.dataset)
            if self._require_grant(grant).release_id is not None:
                raise InvalidParameter(f"what grant {grant.entry} paid for is published already")
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
        """Read every entry as it stands in the file, without judging it."""
        with self._store.reading():
            return tuple(self._store.entries())

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
        return Status(dataset, account.cap, account.spent, tuple(grants), levels, account.hides)

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
        status = self.grant_status(grant)
        if status.release_id is not None:
            raise InvalidParameter(f"what grant {grant.entry} paid for is published already")
        return Budget.granted(
            status.epsilon,
            status.purpose,
            grant=Grant(grant.dataset, grant.entry, grant.entry_hash, status.time),
            levels=status.levels or None,
            hides=status.hides,
        )

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
    ) -> Budget:
        require_text(purpose=purpose, fingerprint="none" if fingerprint is None else fingerprint)
        if not isinstance(hides, Neighbors):
            raise InvalidParameter("hides must say what is hidden, such as AddRemoveRecord()")
        require_secure(rng)
        for text in others_may_write(self._store.path, "the ledger"):
            warnings.warn(text, LedgerExposed, stacklevel=3)
        with self._changing():
            account = self._require_account(dataset)
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
        return Budget.granted(epsilon, purpose, grant=paid_by, levels=levels, hides=hides)

    @contextmanager
    def _changing(self) -> Iterator[None]:
        """Change the ledger, and tell its anchor before that is committed and after it."""
        with self._store.writing():
            head = intact_head(self._store)
            anchor = self._find_anchor(head)
            if anchor is not None:
                self._catch_up(anchor, head)
            yield
            entry = self._last_entry()
            if anchor is not None and entry.number > head.entries:
                anchor.prepare(entry)
        if anchor is not None and entry.number > head.entries:
            self._confirm(anchor, entry)

    def _find_anchor(self, head: Head) -> Anchor | None:
        if self._searched < head.entries:
            found = find_anchor(self._store, self._searched)
            self._anchor = self._anchor if found is None else Anchor(found)
            self._searched = head.entries
        return self._anchor

    def _check(self, anchor: Anchor, head: Head) -> Trail:
        return anchor.check(
            origin_of(self._store), head, lambda number: hash_in(self._store, number)
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


def _whole_path(path: str | os.PathLike[str]) -> str:
    """Write a path so that it means the same wherever the process goes."""
    location = str(Path(path).absolute())
    require_text(anchor=location)
    return location
