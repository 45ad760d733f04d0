"""From a table to a published folder in one call: debit, release, save, enter in the ledger.

The order is the guarantee: what can be wrong with the request is found first and costs
nothing; then the ledger is debited; only then is the first row read.
"""

import tempfile
from contextlib import suppress
from fractions import Fraction
from pathlib import Path

from dpublish.data.schema import Schema
from dpublish.data.table import Table
from dpublish.errors import DPublishError, InputError, InvalidParameter
from dpublish.personalised.method import PersonalSettings
from dpublish.privacy.budget import Budget, Grant
from dpublish.privacy.epsilon import ExactNumber
from dpublish.privacy.ledger import Ledger
from dpublish.privacy.ledger_debit import LEVEL_DIGITS, parse_amount
from dpublish.randomness import RandomSource, secure
from dpublish.release.folder import folder_hash, load, require_new_folder
from dpublish.release.recipe import ExpectedError, Foretells, Progress, Recipe
from dpublish.release.release import Release
from dpublish.report.page import render_report

MOST_EPSILON = 1_000_000
_AMPLE_EPSILON = 1


def publish(
    recipe: Recipe,
    table: Table,
    output: str | Path,
    *,
    ledger: Ledger,
    dataset: str,
    epsilon: ExactNumber,
    purpose: str = "",
    progress: Progress | None = None,
) -> Release:
    """Publish `recipe` on `table` as a folder at `output`, paid for by `dataset`'s allowance.

    A personalised recipe spends `epsilon` at the largest level and less at the others; the
    table must have been opened with the schema that it prepares.

    Privacy:
        `epsilon`-differentially private for the table's neighbours: the ledger grants one
        purse, the recipe spends it with noise from the operating system, and the folder,
        the report and the ledger's last entry are computed from the release alone.  For a
        personalised recipe every level is debited what the recipe's `spending` says there.
    """
    path = Path(output)
    exact = read_epsilon(epsilon, has_levels=isinstance(recipe, PersonalSettings))
    require_new_folder(path)
    if isinstance(recipe, PersonalSettings):
        recipe.preferences.check(table.schema)
    foretell(recipe, table.schema, None, exact)  # refuses settings that do not fit
    rng = secure()
    budget = _grant(recipe, ledger, dataset, exact, purpose or recipe.name, rng)
    grant = budget.grant
    try:
        release = _without_sizes(recipe, table, budget=budget, rng=rng, progress=progress)
        saved = _save(release, path)
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


def read_epsilon(value: ExactNumber, *, has_levels: bool = False) -> Fraction:
    """Read an epsilon that can be spent: not more than hides anything, and of few digits."""
    exact = (
        parse_amount(value, "epsilon", LEVEL_DIGITS)
        if has_levels
        else parse_amount(value, "epsilon")
    )
    if exact > MOST_EPSILON:
        raise InvalidParameter(f"epsilon must be at most {MOST_EPSILON:,}; it would hide nothing")
    return exact


def foretell(
    recipe: Foretells, schema: Schema, n_hint: int | None, epsilon: Fraction
) -> ExpectedError:
    """Foretell the error; refuse settings that do not fit, and say if epsilon alone does not."""
    try:
        return recipe.expected_error(schema, n_hint, epsilon)
    except InvalidParameter as refusal:
        if epsilon < _AMPLE_EPSILON and _fits(recipe, schema, n_hint):
            raise type(refusal)(f"{refusal}; epsilon is too small for this method") from None
        raise


def _grant(
    recipe: Recipe, ledger: Ledger, dataset: str, epsilon: Fraction, purpose: str, rng: RandomSource
) -> Budget:
    """Debit the dataset, each level by itself if the recipe is a personalised one."""
    if isinstance(recipe, PersonalSettings):
        amounts = recipe.spending(epsilon)
        return ledger.grant_levels(dataset, amounts, purpose=purpose, rng=rng, hides=recipe.hides)
    return ledger.grant(dataset, epsilon=epsilon, purpose=purpose, rng=rng)


def _fits(recipe: Foretells, schema: Schema, n_hint: int | None) -> bool:
    """Say whether the recipe would be taken if epsilon were large."""
    try:
        recipe.expected_error(schema, n_hint, Fraction(_AMPLE_EPSILON))
    except InvalidParameter:
        return False
    return True


def _without_sizes(
    recipe: Recipe,
    table: Table,
    *,
    budget: Budget,
    rng: RandomSource,
    progress: Progress | None,
) -> Release:
    """Release, and keep to itself how much memory was asked for: it tells how many rows.

    Privacy:
        That of the recipe.
    """
    try:
        return recipe.release(table, budget=budget, rng=rng, progress=progress)
    except MemoryError:
        raise InputError("not enough memory; take fewer columns or coarser levels") from None


def _save(release: Release, path: Path) -> Path:
    """Save where asked; a release that is paid for is not thrown away over a full disk."""
    extras = draw_report(release)
    try:
        return release.save(path, extras=extras)
    except DPublishError:
        spare = Path(tempfile.mkdtemp(prefix="dpublish-rescued-")) / "release"
        return release.save(spare, extras=extras)


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
