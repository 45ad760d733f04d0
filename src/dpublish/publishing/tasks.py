"""One call for a release: rows, schema and ledger as they are at hand.

    dpublish.release("histogram", frame, columns=["age", "sex"], schema="people.toml",
                     epsilon=0.5, ledger="books.db", dataset="people")

`release` takes any method; the other functions are named for what is wanted.  All of them read
what they are given, open what has to be opened, and leave the rest to `publish`.
"""

import os
from collections.abc import Mapping, Sequence
from contextlib import ExitStack, closing
from typing import Any, cast

from dpublish.core.folder.signing import SigningKey
from dpublish.core.method import Method, Progress
from dpublish.core.progress import showing_progress
from dpublish.core.released import Release
from dpublish.data.lookup import Lookup
from dpublish.data.schema import Schema
from dpublish.data.sources import open_table
from dpublish.data.table import Table, is_table
from dpublish.errors import InvalidParameter, plain_refusals
from dpublish.ledger.account import Account
from dpublish.ledger.debit import debit
from dpublish.ledger.ledger import Ledger
from dpublish.methods.histogram.released import HistogramRelease
from dpublish.methods.kmeans.released import KMeansRelease
from dpublish.methods.personalized.method import PersonalSettings
from dpublish.methods.statistics.released import StatisticsRelease
from dpublish.methods.topk.released import TopKRelease
from dpublish.privacy.epsilon import EpsilonLike
from dpublish.publishing.requests import (
    RELEASES,
    open_ledger,
    read_dataset,
    read_method,
    read_output,
    schema_for,
)
from dpublish.publishing.table import publish, read_epsilon

AnyLedger = Ledger | str | os.PathLike[str]
"""An open ledger, its file, or its address."""
Names = str | Sequence[str]
"""Names of columns: a list, or text in which commas separate them."""
AnyPath = str | os.PathLike[str]


@plain_refusals
def release(
    method: str | type[Method[Any]] | Method[Any],
    data: Any,
    *,
    schema: Any = None,
    epsilon: EpsilonLike,
    ledger: AnyLedger,
    dataset: str,
    output: AnyPath | None = None,
    purpose: str = "",
    progress: Progress | bool | None = True,
    all_have_levels: bool = False,
    sign: SigningKey | AnyPath | None = None,
    table: str | None = None,
    sql: str | None = None,
    where: str | None = None,
    derive: str | Sequence[str] = (),
    lookups: Lookup | Sequence[Lookup] = (),
    threads: int | None = None,
    **settings: Any,
) -> Release:
    """Publish from rows by a method of any name, paid for from the ledger.

    Args:
        method: A name such as `"histogram"` (`list_methods` lists them), a class such as
            `Histogram`, or a method that is set.
        data: The rows: a path, an address, a pandas or Polars table, an Arrow table or reader, a
            DuckDB relation, or what `open_table` returned.
        schema: What is publicly known about the rows: the path of a schema file, a `Schema`, or
            a dict with the keys of such a file.  A table that is open has one already.
        epsilon: What to spend: 0.5, "1/3", or an exact number.  A float is read by its shortest
            decimal, so that 0.1 is 1/10, and the receipt says so.
        ledger: The ledger that pays: its file, its address, or an open `Ledger`.
        dataset: Which dataset of the ledger pays.
        output: The release folder to create; if None, the next free one below `releases` in the
            current folder, such as `releases/people-histogram-1`.  It is in `release.folder`.
        purpose: What it is for; published in the receipt, and kept in the ledger.
        progress: Whether to show progress, on a terminal or in a notebook, after a second of
            work; or a function of (done, total, label).
        all_have_levels: Your word, for a dataset with levels, that no record is below the first.
        sign: Your private key or its file, to sign the folder with.
        table: Which table of a database, as for `open_table`.
        sql: A SELECT whose rows are the table, as for `open_table`.
        where: Which records to keep, as for `open_table`.
        derive: Columns to derive from others of the same record, as for `open_table`.
        lookups: Public tables to look values up in, as for `open_table`.
        threads: How many cores may work on a large table, as for `open_table`.
        settings: Those of the method: columns, target and the like, as values, lists or text.

    Returns:
        The release, which is also in its folder: `dpublish.load(folder)` reads it again.

    >>> import os, tempfile; os.chdir(tempfile.mkdtemp())
    >>> import dpublish; from dpublish import datasets
    >>> with dpublish.Ledger.create("books.db") as ledger:
    ...     ledger.add("people", cap=1)
    >>> ages = dpublish.release(
    ...     "histogram", datasets.census(1_000), columns=["age", "sex"],
    ...     schema=datasets.schema("census"), epsilon=0.5, ledger="books.db", dataset="people",
    ... )
    >>> ages.folder.as_posix()
    'releases/people-histogram-1'

    Privacy:
        That of `publish`: what can be wrong is found first and costs nothing, then the ledger is
        debited, and only then is the first row read.
    """
    chosen = read_method(method, settings)
    found = schema_for(data, schema, chosen)
    account = read_dataset(dataset)
    path = read_output(output, account, chosen.name)
    steps = {"table": table, "sql": sql, "where": where, "derive": derive, "lookups": lookups}
    with ExitStack() as stack:
        paying = stack.enter_context(open_ledger(ledger))
        _require_left(chosen, paying, account, epsilon)
        rows = _open(data, found, chosen, stack, threads=threads, **steps)
        report = stack.enter_context(showing_progress(progress))
        if output is None:
            path.parent.mkdir(exist_ok=True)
        return publish(
            chosen,
            rows,
            path,
            ledger=paying,
            dataset=account,
            epsilon=epsilon,
            purpose=purpose,
            progress=report,
            all_have_levels=all_have_levels,
            sign=sign,
        )


@plain_refusals
def histogram(
    data: Any,
    columns: Names,
    *,
    schema: Any = None,
    epsilon: EpsilonLike,
    ledger: AnyLedger,
    dataset: str,
    output: AnyPath | None = None,
    **options: Any,
) -> HistogramRelease:
    """Publish noisy counts of every combination of a few columns.

    `options` are those of `release`, and settings of `Histogram`, such as `contribution=4`.

    Privacy:
        That of `publish` with the method `Histogram`.
    """
    paid = _paid(epsilon, ledger, dataset, output, options)
    found = release("histogram", data, schema=schema, columns=columns, **paid)
    return cast("HistogramRelease", found)


@plain_refusals
def statistics(
    data: Any,
    measures: Names,
    by: Names = (),
    *,
    schema: Any = None,
    epsilon: EpsilonLike,
    ledger: AnyLedger,
    dataset: str,
    output: AnyPath | None = None,
    **options: Any,
) -> StatisticsRelease:
    """Publish statistics by group: counts, sums, means, variances, quantiles, with intervals.

    `measures` are such as `["count", "mean(age)", "quantile(age, 0.9)"]`, and `by` names the
    columns that make the groups.  `options` are those of `release`, and settings of `Statistics`:
    shares, confidence, suppress and the like; a name that it does not have is refused.

    Privacy:
        That of `publish` with the method `Statistics`.
    """
    paid = _paid(epsilon, ledger, dataset, output, options)
    found = release("statistics", data, schema=schema, measures=measures, by=by, **paid)
    return cast("StatisticsRelease", found)


@plain_refusals
def synthesize(
    data: Any,
    columns: Names = (),
    *,
    method: str = "synth",
    schema: Any = None,
    epsilon: EpsilonLike,
    ledger: AnyLedger,
    dataset: str,
    output: AnyPath | None = None,
    **options: Any,
) -> Release:
    """Publish a model of many columns, from which `release.rows(n)` draws synthetic rows.

    All columns of the schema, unless some are named.  `method` is another one that gives rows,
    such as `"privbayes"`.  `options` are those of `release`, and settings of the method.

    Privacy:
        That of `publish` with the method.
    """
    paid = _paid(epsilon, ledger, dataset, output, options)
    return release(method, data, schema=schema, **_named(columns=columns), **paid)


@plain_refusals
def classifier(
    data: Any,
    target: str,
    predictors: Names = (),
    *,
    method: str = "privpfc",
    schema: Any = None,
    epsilon: EpsilonLike,
    ledger: AnyLedger,
    dataset: str,
    output: AnyPath | None = None,
    **options: Any,
) -> Release:
    """Publish a classifier of the column `target`: `release.predict(rows)` uses it.

    All other columns of the schema predict it, unless `predictors` names some.  `method` is
    another one that classifies, such as `"model"` or `"diffpid3"`.  `options` are those of
    `release`, and settings of the method.

    Privacy:
        That of `publish` with the method.
    """
    paid = _paid(epsilon, ledger, dataset, output, options)
    named = _named(predictors=predictors)
    return release(method, data, schema=schema, target=target, **named, **paid)


@plain_refusals
def kmeans(
    data: Any,
    n_clusters: int,
    columns: Names = (),
    *,
    method: str = "kmeans",
    schema: Any = None,
    epsilon: EpsilonLike,
    ledger: AnyLedger,
    dataset: str,
    output: AnyPath | None = None,
    **options: Any,
) -> KMeansRelease:
    """Publish `n_clusters` centers of clusters: `release.label(rows)` assigns rows to them.

    All columns of numbers count, unless some are named.  `options` are those of `release`, and
    settings of the method.

    Privacy:
        That of `publish` with the method.
    """
    paid = _paid(epsilon, ledger, dataset, output, options)
    named = _named(columns=columns)
    found = release(method, data, schema=schema, n_clusters=n_clusters, **named, **paid)
    return cast("KMeansRelease", found)


@plain_refusals
def topk(
    data: Any,
    column: str,
    k: int = 10,
    *,
    schema: Any = None,
    epsilon: EpsilonLike,
    ledger: AnyLedger,
    dataset: str,
    output: AnyPath | None = None,
    **options: Any,
) -> TopKRelease:
    """Publish the `k` most frequent values of a column, with `with_counts=True` also noisy counts.

    `options` are those of `release`, and settings of `TopK`.

    Privacy:
        That of `publish` with the method `TopK`.
    """
    paid = _paid(epsilon, ledger, dataset, output, options)
    found = release("topk", data, schema=schema, column=column, count=k, **paid)
    return cast("TopKRelease", found)


def _paid(
    epsilon: EpsilonLike,
    ledger: AnyLedger,
    dataset: str,
    output: AnyPath | None,
    options: Mapping[str, Any],
) -> dict[str, Any]:
    """Collect what `release` is passed by name."""
    return {**options, "epsilon": epsilon, "ledger": ledger, "dataset": dataset, "output": output}


def _named(**settings: Any) -> dict[str, Any]:
    """Leave out settings that were not given: the method decides."""
    return {name: value for name, value in settings.items() if not _is_empty(value)}


def _is_empty(value: Any) -> bool:
    return value is None or (isinstance(value, (str, list, tuple)) and not value)


def _open(
    data: Any, schema: Schema, method: Method[Any], stack: ExitStack, **options: Any
) -> Table:
    """Open the rows with the columns that the method reads; a table that is open stays so."""
    if is_table(data):
        named = [name for name, value in options.items() if value not in (None, ())]
        if named:
            raise InvalidParameter(
                f"the table is open already; give {', '.join(named)} to open_table instead"
            )
        opened: Table = data
        return opened
    return stack.enter_context(
        closing(open_table(data, schema, columns=method.reads(schema), **options))
    )


def _require_left(method: Method[Any], ledger: Ledger, dataset: str, epsilon: EpsilonLike) -> None:
    """Refuse what the account cannot pay, before rows are opened, which may take long."""
    has_levels = isinstance(method, PersonalSettings)
    exact, status = read_epsilon(epsilon, has_levels=has_levels), ledger.status(dataset)
    if not has_levels and not status.levels:
        debit(status.dataset, Account(status.cap, status.spent), exact, ())


__all__ = [
    "RELEASES",
    "classifier",
    "histogram",
    "kmeans",
    "release",
    "statistics",
    "synthesize",
    "topk",
]
