"""From a table to a published folder in one call: debit, release, save, enter in the ledger.

The order is the guarantee: what can be wrong with the request is found first and costs
nothing; then the ledger is debited; only then is the first row read.
"""

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from fractions import Fraction
from pathlib import Path
from typing import Any

from dpublish.core.folder.folder import folder_hash, load, require_new_folder
from dpublish.core.folder.opening import require_loadable
from dpublish.core.folder.signing import SigningKey, signing_key
from dpublish.core.method import (
    ExpectedError,
    Method,
    Predicts,
    Progress,
    refuse_bounded,
    require_columns,
)
from dpublish.core.released import Release
from dpublish.data.schema import Schema
from dpublish.data.table import Table
from dpublish.errors import DPublishError, InputError, InvalidParameter, plain_refusals
from dpublish.ledger.debit import LEVEL_DIGITS, parse_amount
from dpublish.ledger.ledger import Ledger
from dpublish.methods.personalized.method import PersonalSettings
from dpublish.privacy.budget import Budget, Grant
from dpublish.privacy.epsilon import EpsilonLike, how_read, parse_epsilon
from dpublish.randomness import RandomSource, secure
from dpublish.report.page import render_report

MOST_EPSILON = 1_000_000
_AMPLE_EPSILON = 1


@plain_refusals
def publish(
    method: Method[Any],
    table: Table,
    output: str | Path,
    *,
    ledger: Ledger,
    dataset: str,
    epsilon: EpsilonLike,
    purpose: str = "",
    progress: Progress | None = None,
    all_have_levels: bool = False,
    sign: SigningKey | str | os.PathLike[str] | None = None,
) -> Release:
    """Publish `method` on `table` as a folder at `output`, paid for by `dataset`'s allowance.

    A personalized method spends `epsilon` at the largest level and less at the others; the
    table must have been opened with the schema that it prepares.  An ordinary method is paid
    for from a dataset with levels only if the owner says that `all_have_levels`: that no record
    of the table is below the first level.  With `sign`, the owner's private key or its file,
    the folder is signed.

    Privacy:
        `epsilon`-differentially private for the table's neighbors: the ledger grants one
        budget, the method spends it with noise from the operating system, and the folder,
        the report and the ledger's last entry are computed from the release alone.  For a
        personalized method every level is debited what the method's `spending` says there.
    """
    if not isinstance(ledger, Ledger):
        raise InvalidParameter(
            'ledger must be an open one: with dpublish.Ledger("books.db") as ...'
        )
    path = Path(output)
    exact = read_epsilon(epsilon, has_levels=isinstance(method, PersonalSettings))
    require_new_folder(path)
    refuse_bounded(table)
    key = signing_key(sign)
    if isinstance(method, PersonalSettings):
        method.preferences.check(table.schema)
    method.require_table(table)
    require_columns(method, table)
    predict(method, table.schema, None, exact)  # refuses settings that do not fit
    _require_loadable(method, table.schema, exact)
    rng = secure()
    with may_be_debited("the ledger may have been debited: dpublish ledger show LEDGER tells"):
        budget = _grant(
            method,
            table,
            ledger=ledger,
            dataset=dataset,
            epsilon=epsilon,
            purpose=purpose or method.runs.name,
            rng=rng,
            all_have_levels=all_have_levels,
        )
    grant = budget.grant
    try:
        release = _without_sizes(method, table, budget=budget, rng=rng, progress=progress)
        saved = _save(release, path, key)
    except BaseException as error:
        error.add_note(_what_stands(path, grant))
        raise
    if grant is not None:
        _record(ledger, grant, release, saved)
    if saved != path:
        raise InputError(
            f"{path} could not be written; the release is whole in {saved} instead, and entered "
            "in the ledger: move it to where you want it"
        )
    return release


def read_epsilon(value: EpsilonLike, *, has_levels: bool = False) -> Fraction:
    """Read an epsilon that can be spent: not more than hides anything, and of few digits."""
    exact = (
        parse_amount(value, "epsilon", LEVEL_DIGITS)
        if has_levels
        else parse_amount(value, "epsilon")
    )
    if exact > MOST_EPSILON:
        raise InvalidParameter(f"epsilon must be at most {MOST_EPSILON:,}; it would hide nothing")
    return exact


def predict(
    method: Predicts, schema: Schema, n_records: int | None, epsilon: Fraction
) -> ExpectedError:
    """Predict the error; refuse settings that do not fit, and say if epsilon alone does not."""
    try:
        return predict_error(method, schema, n_records, epsilon)
    except InvalidParameter as refusal:
        if epsilon < _AMPLE_EPSILON and _fits(method, schema, n_records):
            raise type(refusal)(f"{refusal}; epsilon is too small for this method") from None
        raise


def predict_error(
    method: Predicts, schema: Schema, n_records: int | None, epsilon: Fraction
) -> ExpectedError:
    """Predict the error of a method for tables, or of one for streams."""
    if isinstance(method, Method):
        return method.predict_error(schema, n_records, epsilon)
    return method.expected_error(schema, n_records, epsilon)


def _require_loadable(method: Method[Any], schema: Schema, epsilon: Fraction) -> None:
    parts = len(method.spending(epsilon)) if isinstance(method, PersonalSettings) else 0
    require_loadable(schema, parts)


def _grant(
    method: Method[Any],
    table: Table,
    *,
    ledger: Ledger,
    dataset: str,
    epsilon: EpsilonLike,
    purpose: str,
    rng: RandomSource,
    all_have_levels: bool,
) -> Budget:
    """Debit the dataset, each level by itself if the method is a personalized one."""
    if not isinstance(method, PersonalSettings):
        return ledger.grant(
            dataset,
            epsilon=epsilon,
            purpose=purpose,
            hides=method.neighbors_of(table),
            rng=rng,
            all_have_levels=all_have_levels,
        )
    if all_have_levels:
        raise InvalidParameter(
            f"{method.name} leaves records without a level out by itself; all_have_levels "
            "(--all-have-levels) is for ordinary methods"
        )
    hides = method.preferences.neighbors(table.schema)
    amounts = method.spending(parse_epsilon(epsilon))
    return ledger.grant_levels(
        dataset, amounts, purpose=purpose, hides=hides, rng=rng, epsilon_read=how_read(epsilon)
    )


@contextmanager
def may_be_debited(note: str) -> Iterator[None]:
    """Note what may have happened if the ledger is interrupted while it is asked to pay."""
    try:
        yield
    except KeyboardInterrupt as stop:
        stop.add_note(note)
        raise


def _fits(method: Predicts, schema: Schema, n_records: int | None) -> bool:
    """Say whether the method would be taken if epsilon were large."""
    try:
        predict_error(method, schema, n_records, Fraction(_AMPLE_EPSILON))
    except InvalidParameter:
        return False
    return True


def _without_sizes(
    method: Method[Any],
    table: Table,
    *,
    budget: Budget,
    rng: RandomSource,
    progress: Progress | None,
) -> Release:
    """Release, and keep to itself how much memory was asked for: it tells how many rows.

    Privacy:
        That of the method.
    """
    try:
        released: Release = method.release(table, budget=budget, rng=rng, progress=progress)
        return released
    except MemoryError:
        raise InputError("not enough memory; take fewer columns or coarser levels") from None


def _save(release: Release, path: Path, key: SigningKey | None) -> Path:
    """Save where asked; a release that is paid for is not thrown away over a full disk."""
    extras = draw_report(release)
    try:
        return release.save(path, extras=extras, sign=key)
    except DPublishError:
        spare = Path(tempfile.mkdtemp(prefix="dpublish-rescued-")) / "release"
        return release.save(spare, extras=extras, sign=key)


def draw_report(release: Release) -> dict[str, bytes]:
    """Write the page; one that cannot be drawn does not hold up a release that is paid for."""
    for with_charts in (True, False):
        try:
            page = render_report(release, with_charts=with_charts)
            return {"report.html": page.encode("utf-8", "replace")}
        except Exception:  # noqa: BLE001 - whatever goes wrong here, the release comes first
            continue
    return {}


def _record(ledger: Ledger, grant: Grant, release: Release, saved: Path) -> None:
    try:
        ledger.publish(grant, release.receipt.release_id, folder_hash(saved))
    except BaseException as error:
        error.add_note(_to_be_recorded(saved))
        raise


def _what_stands(path: Path, grant: Grant | None) -> str:
    """Say what is left of a release that was interrupted: a whole folder, or only the debit."""
    if grant is None:
        return "nothing was published"
    with suppress(DPublishError):
        if load(path).receipt.anchor == (grant.entry, grant.entry_hash):
            return _to_be_recorded(path)
    return (
        f"nothing was published; ledger entry {grant.entry} stays debited: rows may have been read"
    )


def _to_be_recorded(saved: Path) -> str:
    return (
        f"the release is published, whole in {saved}; do not repeat it, but enter it in the "
        f"books with: dpublish ledger record LEDGER {saved}"
    )
