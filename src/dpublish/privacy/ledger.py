"""A ledger remembers what was promised: it grants budgets by debiting them first.

One file keeps, for every dataset, a cap on epsilon and every grant made against it.  A grant
is on the disk before its budget exists, so that nothing which happens later, a crash, a kill,
a second process, can spend what was not debited.  Entries are never edited; `verify` shows
whether someone did.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from types import TracebackType
from typing import get_args

from dpublish.errors import InvalidParameter, require_known
from dpublish.privacy import ledger_chain as chain
from dpublish.privacy.budget import Budget, Grant
from dpublish.privacy.epsilon import ExactNumber, format_epsilon, format_short
from dpublish.privacy.ledger_account import Account, GrantStatus, LevelStatus, Status
from dpublish.privacy.ledger_chain import Entry, Hides
from dpublish.privacy.ledger_debit import (
    LEVEL_DIGITS,
    debit,
    fix_notion,
    open_account,
    parse_amount,
    require_secure,
    totals,
)
from dpublish.privacy.ledger_lookup import (
    add_up,
    dataset_names,
    find_grant,
    intact_head,
    is_release_known,
    require_account,
)
from dpublish.privacy.ledger_store import LedgerStore
from dpublish.privacy.ledger_text import Clock, require_new_name, require_text, stamp
from dpublish.privacy.ledger_verify import Verification, verify_store
from dpublish.privacy.levels import LevelAmounts, largest, parse_amounts
from dpublish.randomness import RandomSource


class Ledger:
    """An open ledger file.

    >>> import tempfile; from dpublish.randomness import secure
    >>> with Ledger.create(tempfile.mkdtemp() + "/books.db") as ledger:
    ...     ledger.add("census", cap="1.0")
    ...     budget = ledger.grant("census", epsilon="0.3", purpose="ages", rng=secure())
    ...     ledger.status("census").left
    Fraction(7, 10)
    """

    def __init__(
        self, path: str | os.PathLike[str], *, clock: Clock | None = None, wait_seconds: float = 30
    ) -> None:
        self._store = LedgerStore(Path(path), wait_seconds)
        self._clock = clock

    @classmethod
    def create(
        cls, path: str | os.PathLike[str], *, clock: Clock | None = None, wait_seconds: float = 30
    ) -> Ledger:
        """Make a new ledger file; one that is there is never replaced."""
        first = chain.seal(1, stamp(clock), "", chain.Created(), chain.ORIGIN)
        LedgerStore.create(Path(path), first)
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

        With `levels`, they cost each person at most the level of her own number.
        """
        require_text(dataset=dataset, note="none" if note == "" else note)
        account = open_account(cap, levels)
        with self._store.writing():
            intact_head(self._store)
            require_new_name(dataset, dataset_names(self._store))
            self._append(dataset, chain.Added(**totals(account), note=note))

    def change_cap(self, dataset: str, cap: ExactNumber, reason: str) -> None:
        """Raise or lower a cap; what is spent stays spent, and the reason stays on record."""
        require_text(reason=reason)
        limit = parse_amount(cap, "cap")
        with self._store.writing():
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
        rng: RandomSource,
        fingerprint: str | None = None,
    ) -> Budget:
        """Debit `epsilon` for good and hand out the budget that it pays for.

        `rng` is the source from which the release will draw.  A `fingerprint` of the input is
        kept for the owner alone: no hash that a receipt shows is computed from it.

        Privacy:
            All releases from `dataset` whose budgets come from this ledger are together
            cap-differentially private: by sequential composition, adaptive choices included,
            their epsilons add up, and the sum is compared with the cap under the write lock
            and made durable before the budget exists.  A refused grant costs nothing; an
            interrupted release stays paid.  Assumes that the same people's rows are not
            released under another name or from another ledger, and that the file is not set
            back to an older copy (see `verify`).
        """
        amount = parse_amount(epsilon, "epsilon")
        return self._grant(dataset, amount, (), purpose=purpose, rng=rng, fingerprint=fingerprint)

    def grant_levels(
        self,
        dataset: str,
        amounts: Mapping[Fraction, Fraction],
        *,
        purpose: str,
        rng: RandomSource,
        fingerprint: str | None = None,
        hides: Hides = "presence",
    ) -> Budget:
        """Debit each level its own amount for good and hand out the budget that this pays for.

        `amounts` names every level of the dataset; 0 says that its records are not used.
        `hides` is "values" for a release that takes it for public who is in the table; all
        grants of a dataset with levels hide the same, and the first decides what.

        Privacy:
            What one person's record costs over all releases from `dataset` is at most her
            level: each release costs her at most what it debits there, and the sums are
            compared with the levels as `grant` compares one sum with the cap, all of them
            in one entry.  All of them hide the same change.  Assumes besides that her level
            stays what it is from release to release (docs/proofs/personal_ledger.md).
        """
        pairs = parse_amounts(amounts)
        for level, amount in pairs:
            if amount:
                parse_amount(amount, f"the amount at level {format_short(level)}", LEVEL_DIGITS)
        return self._grant(
            dataset,
            largest(pairs),
            pairs,
            purpose=purpose,
            rng=rng,
            fingerprint=fingerprint,
            hides=hides,
        )

    def publish(self, grant: Grant, release_id: str, release_hash: str) -> None:
        """Record that what `grant` paid for was published; once only."""
        require_text(release_id=release_id, release_hash=release_hash)
        with self._store.writing():
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
        """Say how `dataset` stands: its cap, what is spent and left, and every grant."""
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

    def verify(
        self, expected_head: str | None = None, anchors: Iterable[tuple[int, str]] = ()
    ) -> Verification:
        """Check every entry, every total and the file itself.

        A chain of hashes cannot show that someone rewrote it from end to end.  What was noted
        elsewhere can: `expected_head`, a head hash written down earlier (the ledger may have
        grown since), and `anchors`, the entry numbers and hashes that receipts carry.
        """
        with self._store.reading():
            return verify_store(self._store, expected_head, anchors)

    def _grant(
        self,
        dataset: str,
        epsilon: Fraction,
        amounts: LevelAmounts,
        *,
        purpose: str,
        rng: RandomSource,
        fingerprint: str | None,
        hides: Hides = "presence",
    ) -> Budget:
        require_text(purpose=purpose, fingerprint="none" if fingerprint is None else fingerprint)
        require_known("value for hides:", hides, get_args(Hides))
        require_secure(rng)
        with self._store.writing():
            account = self._require_account(dataset)
            fix_notion(dataset, account, hides)
            debit(dataset, account, epsilon, amounts)
            body = chain.Granted(
                **totals(account),
                epsilon=format_epsilon(epsilon),
                purpose=purpose,
                fingerprinted=fingerprint is not None,
                amounts=chain.write_levels(amounts),
            )
            entry = self._append(dataset, body, fingerprint)
        paid_by = Grant(dataset, entry.number, entry.hash, entry.time)
        return Budget(epsilon, purpose, grant=paid_by, levels=amounts or None, hides=hides)

    def _append(self, dataset: str, body: chain.Totals, fingerprint: str | None = None) -> Entry:
        head = intact_head(self._store)
        entry = chain.seal(head.entries + 1, stamp(self._clock), dataset, body, head.hash)
        if not chain.holds(entry, body):
            raise InvalidParameter("the entry could not be read back as it was given")
        self._store.require_format(chain.needed_format(body))
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
