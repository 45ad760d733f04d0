"""Statistics in one call: `dpublish.statistics(table, measures=..., by=..., epsilon=...)`."""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any, cast

from dpublish.core.folder.signing import SigningKey
from dpublish.core.method import Progress
from dpublish.core.settings import make_method
from dpublish.data.table import Table
from dpublish.ledger.ledger import Ledger
from dpublish.methods.statistics.released import StatisticsRelease
from dpublish.privacy.epsilon import ExactNumber
from dpublish.publishing.table import publish


def statistics(
    table: Table,
    *,
    measures: str | Sequence[str],
    by: str | Sequence[str] = (),
    epsilon: ExactNumber,
    ledger: Ledger,
    dataset: str,
    output: str | Path,
    purpose: str = "",
    progress: Progress | None = None,
    all_have_levels: bool = False,
    sign: SigningKey | str | os.PathLike[str] | None = None,
    **settings: Any,
) -> StatisticsRelease:
    """Publish statistics of `table` by group as a folder at `output`.

    `settings` are those of `Statistics`: shares, confidence, suppress and the like, as values or
    as text; a name that it does not have is refused.

    Privacy:
        That of `publish` with the method `Statistics`.
    """
    method = make_method("statistics", {"measures": measures, "by": by, **settings})
    released = publish(
        method,
        table,
        output,
        ledger=ledger,
        dataset=dataset,
        epsilon=epsilon,
        purpose=purpose,
        progress=progress,
        all_have_levels=all_have_levels,
        sign=sign,
    )
    return cast("StatisticsRelease", released)
